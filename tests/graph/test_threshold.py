"""One cut on one score, against all cuts tried one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from apexrank.errors import InputError
from apexrank.graph.trust import Threshold, best_threshold, error_rates

FEW_VALUES = st.lists(
    st.tuples(st.sampled_from([-2.0, 0.0, 0.5, 0.5000000000000001, 3.0, 1e300]), st.booleans()), min_size=1
)


def all_cuts(scores, spam):
    """Errors of every cut that can differ, the lowest cut first."""
    cuts = [-np.inf, *sorted(set(scores))]
    return cuts, [
        sum((score <= cut) != flag for score, flag in zip(scores, spam, strict=True)) for cut in cuts
    ]


@given(FEW_VALUES)
def test_no_cut_is_better_and_no_lower_one_as_good(rows):
    scores, spam = zip(*rows, strict=True)
    cuts, errors = all_cuts(scores, spam)
    found = best_threshold(scores, spam)
    assert found.error == min(errors) / len(rows)
    assert found.cut == cuts[int(np.argmin(errors))]


@given(FEW_VALUES)
def test_applied_to_its_own_vertices_it_has_its_error(rows):
    scores, spam = zip(*rows, strict=True)
    found = best_threshold(scores, spam)
    assert np.mean(found.is_spam(scores) != np.array(spam)) == found.error


@given(FEW_VALUES, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert best_threshold(*zip(*rows, strict=True)) == best_threshold(*zip(*shuffled, strict=True))


def test_equal_scores_stay_together():
    assert best_threshold([1, 1, 1, 2], [1, 1, 0, 0]) == Threshold(1.0, 0.25)
    # either answer for the tied pair makes one error: nothing is called spam
    assert best_threshold([1, 1], [1, 0]) == Threshold(-np.inf, 0.5)


def test_all_spam_and_none():
    assert best_threshold([3, 1, 2], [1, 1, 1]) == Threshold(3.0, 0.0)
    assert best_threshold([3, 1, 2], [0, 0, 0]) == Threshold(-np.inf, 0.0)


def test_spam_above_the_others_cannot_be_caught():
    """The direction is fixed: low scores are spam."""
    assert best_threshold([1, 2, 3, 4], [0, 0, 0, 1]).error == 0.25


def test_a_million_vertices():
    rng = np.random.default_rng(0)
    spam = rng.random(1_000_000) < 0.2
    scores = np.where(spam, rng.random(spam.size), 0.5 + rng.random(spam.size))
    found = best_threshold(scores, spam)
    # below 0.5 all are spam; between 0.5 and 1 spam is a fifth of the vertices, so the cut lies at 0.5
    assert found.cut == pytest.approx(0.5, abs=1e-3)
    assert found.error == pytest.approx(0.1, abs=2e-3)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2))
def test_error_rates_are_those_of_scikit_learn(rows):
    found, spam = zip(*rows, strict=True)
    if len(set(spam)) == 1:
        with pytest.raises(InputError, match="both spam and other"):
            error_rates(found, spam)
        return
    error, balanced = error_rates(found, spam)
    assert error == pytest.approx(1 - accuracy_score(spam, found), abs=1e-12)
    assert balanced == pytest.approx(1 - balanced_accuracy_score(spam, found), abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "spam", "message"),
    [
        ([], [], "at least one vertex"),
        ([1.0], [1, 0], "one score and one label"),
        ([[1.0]], [[1]], "one score and one label"),
        ([1.0, np.nan], [1, 0], "finite"),
        ([1.0, 2.0], [1, 2], "True or False"),
        ([1.0, 2.0], ["spam", "ham"], "True or False"),
    ],
)
def test_bad_input(scores, spam, message):
    with pytest.raises(InputError, match=message):
        best_threshold(scores, spam)
    with pytest.raises(InputError, match="one answer"):
        error_rates([True], [True, False])
