"""Synthetic card payments: shares of the segments, and the effect of a push."""

import numpy as np
import pytest

from apexrank.datasets import make_push_example
from apexrank.errors import InputError
from apexrank.metrics import auc, precision_at
from apexrank.rankers import PNormPush


def test_push_example_is_deterministic_and_keeps_its_shares():
    first, second = make_push_example(1000), make_push_example(1000)
    np.testing.assert_array_equal(first.data, second.data)
    assert (make_push_example(1000, random_state=1).data != first.data).any()
    names, counts = np.unique(first.segment, return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == {
        "big spender": 18,
        "everyday spending": 882,
        "loud fraud": 35,
        "quiet fraud": 65,
    }
    assert make_push_example(100, n_features=9).feature_names[6:] == ["noise_6", "noise_7", "noise_8"]
    assert len(np.unique(make_push_example(100).segment)) == 4


@pytest.mark.parametrize("arguments", [{"n_samples": 99}, {"n_features": 1}])
def test_push_example_refuses_too_small_sizes(arguments):
    with pytest.raises(InputError, match="n_samples >= 100"):
        make_push_example(**arguments)


def test_a_push_visibly_helps_on_the_push_example():
    X, y = make_push_example(return_X_y=True)
    X_new, y_new = make_push_example(10_000, random_state=1, return_X_y=True)
    plain, pushed = (PNormPush(p).fit(X, y).decision_function(X_new) for p in (1, 16))
    assert precision_at(y_new, plain, 100) < 0.65
    assert precision_at(y_new, pushed, 100) > 0.9
    assert auc(y_new, plain) > auc(y_new, pushed) + 0.03
