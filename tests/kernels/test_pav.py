"""Isotonic regression of many segments against scipy, exact rational arithmetic and its optimality conditions."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from apexrank.errors import InputError
from apexrank.kernels.pav import pav, pav_blocks

VALUE = st.floats(-100, 100, allow_subnormal=False)
WEIGHT = st.floats(0.01, 100)
SEGMENTS = st.lists(st.lists(st.tuples(VALUE, WEIGHT), max_size=12), max_size=6)


def flatten(segments):
    indptr = np.concatenate([[0], np.cumsum([len(s) for s in segments], dtype=int)]).astype(int)
    rows = np.array([row for s in segments for row in s]).reshape(-1, 2)
    return rows[:, 0], rows[:, 1], indptr


def exact_fit(y, weight):
    """min-max formula in rational arithmetic: v_i = max over a ≤ i of the min over b ≥ i of mean(a..b)."""
    y, weight = [Fraction(v) for v in y], [Fraction(w) for w in weight]

    def mean(a, b):
        return sum(w * v for w, v in zip(weight[a:b], y[a:b], strict=True)) / sum(weight[a:b])

    n = len(y)
    return [max(min(mean(a, b) for b in range(i + 1, n + 1)) for a in range(i + 1)) for i in range(n)]


@given(SEGMENTS, st.booleans(), st.booleans())
def test_agrees_with_scipy_on_every_segment(segments, increasing, weighted):
    y, weight, indptr = flatten(segments)
    fitted = pav(y, indptr, weight if weighted else None, increasing=increasing)
    for a, b in pairwise(indptr):
        if a < b:
            w = weight[a:b] if weighted else None
            expected = isotonic_regression(y[a:b], weights=w, increasing=increasing).x
            np.testing.assert_allclose(fitted[a:b], expected, rtol=1e-12, atol=1e-11)


@given(SEGMENTS, st.booleans())
def test_blocks_are_the_level_sets_of_each_segment(segments, increasing):
    y, weight, indptr = flatten(segments)
    fitted, block = pav_blocks(y, indptr, weight, increasing=increasing)
    number, expected = -1, []
    for a, b in pairwise(indptr):
        for i in range(a, b):
            number += i == a or fitted[i] != fitted[i - 1]
            expected.append(number)
    assert block.tolist() == expected
    if len(y):
        mean = np.bincount(block, weight * y) / np.bincount(block, weight)
        np.testing.assert_allclose(fitted, mean[block], rtol=1e-12, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0.0, 1e8, -3e12])
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_far_from_zero_it_is_exact_to_the_last_place(offset, scale):
    rng = np.random.default_rng(7)
    y = offset + scale * rng.normal(size=30)
    weight = rng.random(30) + 0.01
    expected = np.array([float(v) for v in exact_fit(y, weight)])
    last_place = max(np.spacing(abs(offset)), 8 * np.spacing(scale))
    np.testing.assert_allclose(pav(y, weight=weight), expected, rtol=0, atol=last_place)


def test_long_blocks_do_not_drift():
    y = 1e8 + np.random.default_rng(3).random(200_000)
    y[::-1].sort()  # decreasing values: one block of all rows
    exact = float(sum(map(Fraction, y)) / len(y))
    fitted, block = pav_blocks(y)
    assert block.max() == 0
    assert abs(fitted[0] - exact) <= np.spacing(1e8)


@given(st.lists(st.lists(st.tuples(st.floats(-1e300, 1e300), WEIGHT), max_size=8), max_size=4), st.booleans())
def test_ordered_values_stay_as_they_are(segments, increasing):
    """Bit-identical, including ties and values of very different size."""
    segments = [sorted([*rows, *rows[:2]], reverse=not increasing) for rows in segments]
    y, weight, indptr = flatten(segments)
    np.testing.assert_array_equal(pav(y, indptr, weight, increasing=increasing), y)


@given(
    st.lists(st.tuples(VALUE, st.sampled_from([0.0, 0.5, 1.0, 3.0])), min_size=1, max_size=10), st.booleans()
)
def test_rows_of_weight_zero_have_no_say(rows, increasing):
    y, weight = np.array(rows).T
    positive = weight > 0
    fitted = pav(y, weight=weight, increasing=increasing)
    if not positive.any():
        np.testing.assert_array_equal(fitted, pav(y, increasing=increasing))
        return
    expected = pav(y[positive], weight=weight[positive], increasing=increasing)
    np.testing.assert_allclose(fitted[positive], expected, rtol=1e-14, atol=1e-13)
    before = np.maximum(np.cumsum(positive) - 1, 0)  # the last row of weight up to here, or the first one
    np.testing.assert_array_equal(fitted, fitted[positive][before])


def test_not_even_nan_has_a_say_without_weight():
    y, weight = [np.nan, 2.0, np.nan, 1.0, np.inf, 5.0], [0, 1, 0, 1, 0, 1]
    assert pav(y, weight=weight).tolist() == [1.5, 1.5, 1.5, 1.5, 1.5, 5.0]


def test_infinite_values_stand_for_their_limits():
    inf = np.inf
    assert pav([1.0, -inf, 2.0, 0.0]).tolist() == [-inf, -inf, 1.0, 1.0]
    assert pav([-inf, -inf, 3.0]).tolist() == [-inf, -inf, 3.0]
    assert pav([inf, 1.0, 2.0, inf], increasing=False).tolist() == [inf, inf, inf, inf]
    near = pav([1.0, -1e12, 2.0, 0.0])
    assert near[1] < -4e11
    assert near[2] == 1.0


def test_nan_spoils_its_segment_only():
    fitted = pav([1.0, np.nan, 3.0, 1.0], [0, 2, 4])
    assert np.isnan(fitted[1])
    assert fitted[2:].tolist() == [2.0, 2.0]


def test_nothing_in_nothing_out():
    assert pav([]).shape == (0,)
    assert pav([], [0, 0, 0]).shape == (0,)
    assert pav_blocks([], [0]).block.shape == (0,)


def test_the_input_is_left_alone_and_any_number_type_will_do():
    y = np.array([3.0, 1.0, 2.0])
    pav(y, upper=1.5)
    assert y.tolist() == [3.0, 1.0, 2.0]
    assert pav(y.astype(np.float32)[::-1]).tolist() == [1.5, 1.5, 3.0]
    assert pav([3, 1, 2]).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [[1.0]]}, "y must be one-dimensional"),
        ({"y": [1.0, 2.0], "indptr": [0, 1]}, "rise from 0 to the number of rows, 2"),
        ({"y": [1.0, 2.0], "indptr": [1, 2]}, "rise from 0"),
        ({"y": [1.0, 2.0], "indptr": [0, 3, 2]}, "rise from 0"),
        ({"y": [1.0, 2.0], "indptr": [0.0, 2.0]}, "must be integers"),
        ({"y": [1.0, 2.0], "indptr": []}, "must be integers"),
        ({"y": [1.0, 2.0], "weight": [1.0]}, "one number per row: expected 2"),
        ({"y": [1.0, 2.0], "weight": [1.0, -1.0]}, "not negative"),
        ({"y": [1.0, 2.0], "weight": [1.0, np.nan]}, "not negative"),
        ({"y": [1.0, 2.0], "weight": [1.0, np.inf]}, "finite"),
        ({"y": [1.0, 2.0], "lower": 2.0, "upper": 1.0}, "`lower` must not exceed upper"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, message):
    with pytest.raises(InputError, match=message):
        pav(**arguments)
