"""Isotonic regression with bounded steps against quadratic programmes, rational arithmetic and its optimality."""

import json
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression, lsq_linear

from apexrank.errors import InputError
from apexrank.kernels.lipschitz import lipschitz_isotonic, lipschitz_isotonic_link
from apexrank.kernels.pav import pav

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "projections.json").read_text())
INF = np.inf


def quadratic_programme(y, lower, upper, weight):
    """The same fit by scipy's bounded least squares, in the first value and the steps."""
    n = len(y)
    root = np.sqrt(weight)
    design = root[:, None] * np.tril(np.ones((n, n)))
    low = np.concatenate([[-INF], np.broadcast_to(lower, n - 1)])
    high = np.concatenate([[INF], np.broadcast_to(upper, n - 1)])
    fixed = low == high  # which scipy does not take
    steps = np.where(fixed, low, 0.0)
    found = lsq_linear(
        design[:, ~fixed], root * y - design @ steps, (low[~fixed], high[~fixed]), method="bvls", tol=1e-15
    )
    steps[~fixed] = found.x
    return np.cumsum(steps)


def exact_fit(y, lower, upper, weight):
    """Try every choice of steps at their bounds, in rational arithmetic, and keep the optimal one."""
    y, weight = [Fraction(float(v)) for v in y], [Fraction(float(v)) for v in weight]
    n, choices = len(y), []
    for low, high in zip(lower, upper, strict=True):
        choices.append([None] + [Fraction(float(b)) for b in {low, high} if np.isfinite(b)])
    for steps in product(*choices):
        fit = _fit_of_blocks(y, weight, steps)
        if _is_optimal(y, weight, fit, lower, upper):
            return [float(v) for v in fit]
    raise AssertionError(f"no optimum among {3 ** (n - 1)}")


def _fit_of_blocks(y, weight, steps):
    fit, start = [], 0
    for end in range(1, len(y) + 1):
        if end < len(y) and steps[end - 1] is not None:
            continue
        offset = [Fraction(0)]
        for step in steps[start : end - 1]:
            offset.append(offset[-1] + step)
        mass = sum(weight[start:end])
        base = (
            sum(w * (v - o) for w, v, o in zip(weight[start:end], y[start:end], offset, strict=True)) / mass
        )
        fit += [base + o for o in offset]
        start = end
    return fit


def _is_optimal(y, weight, fit, lower, upper):
    pull = Fraction(0)
    for i, (low, high) in enumerate(zip(lower, upper, strict=True)):
        pull += weight[i] * (fit[i] - y[i])
        step = fit[i + 1] - fit[i]
        if not low <= step <= high or (pull < 0 and step != low) or (pull > 0 and step != high):
            return False
    return True


def assert_optimal(y, lower, upper, weight, fit):
    """At a free step the gradient of the rows before it is 0; at a bound it points against the bound."""
    steps = np.diff(fit)
    lower, upper = np.broadcast_to(lower, len(y) - 1), np.broadcast_to(upper, len(y) - 1)
    rounding = 1e-12 * max(1.0, np.abs(y).max(), np.abs(fit).max())
    assert np.all(steps >= lower - rounding)
    assert np.all(steps <= upper + rounding)
    pull = np.cumsum(weight * (fit - y))
    tolerance = 1e-11 * max(1.0, (weight * np.abs(fit - y)).sum())
    assert abs(pull[-1]) <= tolerance
    assert np.all(pull[:-1][steps > lower + 1e-9] >= -tolerance)
    assert np.all(pull[:-1][steps < upper - 1e-9] <= tolerance)


def test_the_one_pass_of_the_dissertation_is_not_it():
    """Section 4.2.4 gives 1, 2.83, 1.83, 2.33, which is not even increasing."""
    fit = lipschitz_isotonic([0.0, 5.0, 1.0, 2.0], 0.0, 1.0)
    np.testing.assert_allclose(fit, [1.25, 2.25, 2.25, 2.25], rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    "case", [c for c in VECTORS if c["what"].startswith("Lipschitz")], ids=lambda c: len(c["y"])
)
def test_conformance_vectors(case):
    fit = lipschitz_isotonic(case["y"], 0.0, 0.5 * np.diff(case["x"]))
    np.testing.assert_allclose(fit, case["fit"], rtol=0, atol=2e-6)


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_a_quadratic_programme(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    y, weight = 2 * rng.normal(size=n), rng.uniform(0.2, 3, n)
    lower = 0.5 * rng.normal(size=n - 1)
    upper = lower + rng.choice([0.0, 0.1, 1.0, INF], n - 1)
    lower = np.where(rng.random(n - 1) < 0.1, -INF, lower)
    fit = lipschitz_isotonic(y, lower, upper, weight)
    np.testing.assert_allclose(fit, quadratic_programme(y, lower, upper, weight), rtol=0, atol=1e-8)
    assert_optimal(y, lower, upper, weight, fit)


ROWS = st.lists(
    st.tuples(
        st.floats(-100, 100, allow_subnormal=False),
        st.sampled_from([1.0, 0.01, 7.0]),
        st.sampled_from([0.0, -1.0, 0.25, -INF]),
        st.sampled_from([0.0, 0.5, 30.0, INF]),
    ),
    min_size=2,
    max_size=80,
)


def unpack(rows):
    y, weight, lower, room = np.array(rows).T
    lower, room = lower[1:], room[1:]
    return y, lower, np.where(lower == -INF, -1.0, lower) + room, weight


@given(
    st.lists(
        st.tuples(st.integers(-50, 50), st.integers(-9, 9), st.integers(-2, 2), st.integers(0, 8)),
        min_size=2,
        max_size=5,
    )
)
def test_weights_of_very_different_size(rows):
    """Weights from 1e-9 to 1e9: still exact up to rounding."""
    table = np.array(rows, dtype=float)
    y, weight, lower = table[:, 0], 10.0 ** table[:, 1], table[1:, 2]
    upper = lower + table[1:, 3]
    fit = lipschitz_isotonic(y, lower, upper, weight)
    np.testing.assert_allclose(fit, exact_fit(y, lower, upper, weight), rtol=0, atol=1e-12)


@pytest.mark.parametrize("decades", [0, 6, 12])
def test_without_an_upper_bound_it_is_isotonic_regression(decades):
    rng = np.random.default_rng(4)
    y, weight = rng.normal(size=2000), 10.0 ** rng.uniform(-decades, decades, 2000)
    expected = isotonic_regression(y, weights=weight).x
    np.testing.assert_allclose(lipschitz_isotonic(y, 0.0, INF, weight), expected, rtol=0, atol=1e-13)
    falling = isotonic_regression(y, weights=weight, increasing=False).x
    np.testing.assert_allclose(lipschitz_isotonic(y, -INF, 0.0, weight), falling, rtol=0, atol=1e-13)
    # a bound wider than the data has no effect
    np.testing.assert_allclose(lipschitz_isotonic(y, 0.0, 1e12, weight), expected, rtol=0, atol=1e-13)


def test_without_bounds_nothing_moves():
    y = np.random.default_rng(0).normal(size=50)
    np.testing.assert_array_equal(lipschitz_isotonic(y, -INF, INF), y)


@pytest.mark.parametrize("bound", [0.01, 0.1, 1.0, INF])
def test_far_from_zero_it_keeps_its_digits(bound):
    """Values are multiples of 2**-20, so adding 2**30 is exact, and any difference is rounding in the fit."""
    y = np.round(2**20 * np.random.default_rng(1).normal(size=3000)) / 2**20
    far = lipschitz_isotonic(2**30 + y, 0.0, bound)
    np.testing.assert_allclose(
        far - 2**30, lipschitz_isotonic(y, 0.0, bound), rtol=0, atol=np.spacing(2.0**30)
    )
    if bound == INF:
        np.testing.assert_allclose(far, pav(2**30 + y), rtol=0, atol=np.spacing(2.0**30))


def test_one_wide_step_does_not_cost_the_digits_of_the_others():
    rng = np.random.default_rng(2)
    y = rng.normal(size=400)
    upper = np.full(399, 0.05)
    upper[200] = 1e14
    fit = lipschitz_isotonic(y, 0.0, upper)
    upper[200] = 20.0
    np.testing.assert_allclose(fit, lipschitz_isotonic(y, 0.0, upper), rtol=0, atol=1e-14)


@given(ROWS, st.data())
def test_rows_of_weight_zero_have_no_say(rows, data):
    y, lower, upper, weight = unpack(rows)
    silent = np.array(data.draw(st.lists(st.booleans(), min_size=len(y), max_size=len(y))))
    if silent.all():
        fit = lipschitz_isotonic(y, lower, upper, 0 * weight)
        np.testing.assert_array_equal(fit, lipschitz_isotonic(y, lower, upper))
        return
    fit = lipschitz_isotonic(y, lower, upper, np.where(silent, 0.0, weight))
    assert_optimal(y, lower, upper, np.where(silent, 0.0, weight), fit)
    kept = np.flatnonzero(~silent)
    between = [slice(a, b) for a, b in pairwise(kept)]
    low, high = np.array([[lower[s].sum(), upper[s].sum()] for s in between]).reshape(-1, 2).T
    np.testing.assert_allclose(
        fit[kept], lipschitz_isotonic(y[kept], low, high, weight[kept]), rtol=0, atol=1e-10
    )


def test_rows_of_weight_zero_take_the_flattest_step():
    y, weight = [9.0, 1.0, 9.0, 9.0, 5.0, -9.0], [0, 1, 0, 0, 1, 0]
    assert lipschitz_isotonic(y, 0.0, INF, weight).tolist() == [1, 1, 1, 1, 5, 5]
    assert lipschitz_isotonic(y, 1.0, INF, weight).tolist() == [0, 1, 2, 3, 5, 6]
    assert lipschitz_isotonic(y, 0.0, 1.5, weight).tolist() == [1, 1, 2, 3.5, 5, 5]


@given(ROWS)
def test_rising_fits_never_fall(rows):
    y, _, _, weight = unpack(rows)
    for upper in (0.1, 3.0, INF):
        assert np.all(np.diff(lipschitz_isotonic(y, 0.0, upper, weight)) >= 0)


def swinging(n):
    """Many breakpoints close together, and then a zero that moves back and forth over all of them."""
    half = n // 2
    swing = np.where(np.arange(half) % 2, 1.0, -1.0) * np.arange(1, half + 1)
    y = np.concatenate([np.arange(half) / n**2, swing])
    return y, np.concatenate([np.ones(half), np.zeros(half - 1)])


def test_a_swinging_zero_is_not_quadratic():
    y, upper = swinging(400)
    fit = lipschitz_isotonic(y, 0.0, upper)
    assert_optimal(y, 0.0, upper, np.ones(400), fit)
    # stacks would need 4e10 moves here
    y, upper = swinging(300_000)
    fit = lipschitz_isotonic(y, 0.0, upper)
    assert_optimal(y, 0.0, upper, np.ones(len(y)), fit)


def test_few_rows():
    assert lipschitz_isotonic([], 0.0, 1.0).shape == (0,)
    assert lipschitz_isotonic([3], 0.0, 1.0).tolist() == [3.0]
    assert lipschitz_isotonic([3], 0.0, 1.0, [0.0]).tolist() == [3.0]
    assert lipschitz_isotonic([3.0, 1.0], 0.0, 1.0).tolist() == [2.0, 2.0]
    assert lipschitz_isotonic([1.0, 4.0], 0.0, 1.0, [1.0, 3.0]).tolist() == [2.5, 3.5]
    assert lipschitz_isotonic([2.0, 2.0, 2.0], 0.0, 1.0).tolist() == [2.0, 2.0, 2.0]


def test_the_input_is_left_alone_and_any_number_type_will_do():
    y, weight, upper = np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 4.0]), np.array([1.0, 9.0])
    lipschitz_isotonic(y, -9.0, upper, weight)
    assert (y.tolist(), weight.tolist(), upper.tolist()) == ([3, 1, 2], [1, 2, 4], [1, 9])
    assert lipschitz_isotonic(y.astype(np.float32)[::-1], 0, 9).tolist() == [1.5, 1.5, 3.0]
    assert lipschitz_isotonic([3, 1, 2], 0, 1).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [[1.0]]}, "y must be one-dimensional"),
        ({"y": [1.0, np.nan]}, "missing or infinite in row 1"),
        ({"y": [1.0, -1e308, 1e308]}, "too far apart"),
        ({"lower": 2.0, "upper": 1.0}, "`lower` must not exceed upper"),
        ({"lower": np.nan}, "`lower` must not exceed upper"),
        ({"lower": INF, "upper": INF}, "room"),
        ({"lower": -INF, "upper": -INF}, "room"),
        ({"upper": [1.0]}, r"upper needs one number, or one per step \(2\)"),
        ({"weight": [1.0]}, "one number per row: expected 3"),
        ({"weight": [1.0, -1.0, 1.0]}, "not negative"),
        ({"weight": [1.0, np.nan, 1.0]}, "not negative"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, message):
    with pytest.raises(InputError, match=message):
        lipschitz_isotonic(**{"y": [1.0, 2.0, 3.0], "lower": 0.0, "upper": 1.0, **arguments})


def test_the_link_of_scores_in_any_order_with_ties():
    """Tied scores form one knot: the fit of every row against the quadratic programme over the knots."""
    rng = np.random.default_rng(3)
    scores, y, weight = rng.integers(0, 8, 40) / 4, rng.normal(size=40), rng.uniform(0.5, 2, 40)
    knots, values = lipschitz_isotonic_link(scores, y, 0.7, weight)
    np.testing.assert_array_equal(knots, np.unique(scores))
    mass = np.array([weight[scores == k].sum() for k in knots])
    mean = np.array([np.average(y[scores == k], weights=weight[scores == k]) for k in knots])
    expected = quadratic_programme(mean, 0.0, 0.7 * np.diff(knots), mass)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)


def test_a_link_without_a_largest_slope_is_isotonic_regression():
    rng = np.random.default_rng(5)
    scores, y = rng.normal(size=200), rng.normal(size=200)
    order = np.argsort(scores)
    knots, values = lipschitz_isotonic_link(scores, y)
    np.testing.assert_array_equal(knots, scores[order])
    np.testing.assert_allclose(values, isotonic_regression(y[order]).x, rtol=0, atol=1e-13)


def test_tied_scores_of_weight_zero_have_no_value_of_their_own():
    knots, values = lipschitz_isotonic_link([1.0, 1.0, 0.0], [7.0, 9.0, 3.0], weight=[0.0, 0.0, 1.0])
    assert (knots.tolist(), values.tolist()) == ([0.0, 1.0], [3.0, 3.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"slope": 0.0}, "`slope` must be above 0"),
        ({"slope": np.nan}, "`slope` must be above 0"),
        ({"scores": [1.0]}, "one number per row"),
        ({"scores": [1.0, np.nan]}, "scores are missing or infinite in row 1"),
        ({"weight": [1.0]}, "one number per row"),
    ],
)
def test_bad_links_are_refused_in_one_line(arguments, message):
    with pytest.raises(InputError, match=message):
        lipschitz_isotonic_link(**{"scores": [1.0, 2.0], "y": [1.0, 2.0], **arguments})
