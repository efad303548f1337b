"""Bregman's algorithm against a general-purpose minimiser and closed-form projections."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from apexrank.divergences import KL, IDivergence, ItakuraSaito, Logistic, ShiftedIDivergence, Squared
from apexrank.errors import InputError
from apexrank.projections import bregman_projection, onto_halfspace

ATOMS = [Squared(), IDivergence(), ShiftedIDivergence(), ItakuraSaito(), Logistic(), KL()]
both = pytest.mark.parametrize("parallel", [False, True], ids=["sequential", "parallel"])
N = 4


def points(atom, seed, n=2):
    u = np.random.default_rng(seed).uniform(0.1, 0.9, size=(n, N))
    if isinstance(atom, KL):
        return u / u.sum(axis=1, keepdims=True)
    return u + 1 if isinstance(atom, ShiftedIDivergence) else u


def problem(atom, seed, m=6):
    """A point, and half-spaces with a common interior point that exclude it."""
    x, inside = points(atom, seed)
    rows = np.random.default_rng(seed).normal(size=(m, N))
    return x, rows, rows @ inside + 0.02, inside


@pytest.mark.slow
@both
@pytest.mark.parametrize("atom", [*ATOMS, Squared(weight=(1, 2, 3, 4))], ids=lambda atom: atom.name)
def test_the_certificate_can_be_checked_by_hand(atom, parallel):
    x, rows, bounds, inside = problem(atom, 7)
    result = bregman_projection(atom, x, rows, bounds, parallel=parallel, max_iter=20_000, natural=False)
    assert np.all(result.multipliers >= 0)
    stationary = atom.grad(result.x) - atom.grad(x) + result.multipliers @ rows
    stationary -= stationary.mean() if isinstance(atom, KL) else 0.0
    np.testing.assert_allclose(stationary, 0, atol=1e-10)
    assert np.all(rows @ result.x - bounds <= 1e-9)
    np.testing.assert_allclose(result.multipliers * (rows @ result.x - bounds), 0, atol=1e-8)
    np.testing.assert_allclose(result.value, atom.divergence(result.x, x), rtol=1e-12)
    np.testing.assert_allclose(result.gap, result.multipliers @ (bounds - rows @ result.x), atol=1e-15)
    # generalised Pythagoras with a point of the set
    assert atom.divergence(inside, x) >= atom.divergence(inside, result.x) + result.value - 1e-9


@both
@pytest.mark.parametrize("atom", ATOMS, ids=lambda atom: atom.name)
def test_the_dual_value_rises_towards_the_solution(atom, parallel):
    """D(x*‖x) ≤ D* − (value − gap) after every sweep, and the dual value never decreases."""
    x, rows, bounds, _ = problem(atom, 3)
    solution = bregman_projection(atom, x, rows, bounds, max_iter=20_000, natural=False)
    before = 0.0
    for max_iter in range(1, 12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            early = bregman_projection(
                atom, x, rows, bounds, parallel=parallel, max_iter=max_iter, tol=0.0, natural=False
            )
        dual = early.value - early.gap
        assert dual >= before - 1e-13
        assert atom.divergence(solution.x, early.x) <= solution.value - dual + 1e-9
        before = dual
    assert before > 0.5 * solution.value


@pytest.mark.parametrize("atom", ATOMS, ids=lambda atom: atom.name)
def test_one_half_space_takes_one_sweep(atom):
    x, rows, bounds, _ = problem(atom, 2, m=1)
    sign = np.sign(rows[0] @ x - bounds[0])
    for parallel in (False, True):
        result = bregman_projection(atom, x, sign * rows, sign * bounds, parallel=parallel, natural=False)
        assert result.n_iter == 1
        expected = onto_halfspace(atom, x, sign * rows[0], sign * bounds[0], natural=False)
        np.testing.assert_allclose(result.x, expected, rtol=1e-12)


@both
def test_nothing_to_do(parallel):
    x = np.array([0.2, 0.3])
    result = bregman_projection("squared", x, [[1.0, 1.0]], [1.0], parallel=parallel)
    assert (result.n_iter, result.converged, result.residual, result.gap) == (0, True, 0.0, 0.0)
    np.testing.assert_array_equal(result.x, x)
    none = bregman_projection("squared", x, np.empty((0, 2)), [], parallel=parallel)
    np.testing.assert_array_equal(none.x, x)


@both
def test_constraints_that_exclude_each_other_are_reported(parallel):
    with pytest.warns(ConvergenceWarning, match="after 50 sweeps .* no point may satisfy all constraints"):
        result = bregman_projection(
            "squared", [0.0], [[1.0], [-1.0]], [-1.0, -1.0], parallel=parallel, max_iter=50
        )
    assert not result.converged
    assert result.residual > 0.1


def test_without_the_way_down_the_answer_is_wrong():
    """Table 2.1 as printed adds each projection's step to its multiplier and never subtracts any."""
    x, rows, bounds = (
        np.array([2.0, 0.0]),
        np.array([[1.0, 0.0], [1.0, 1.0], [-1.0, 2.0]]),
        np.array([0.5, -0.5, -2.0]),
    )
    printed = x.copy()
    for _ in range(5000):
        for row, bound in zip(rows, bounds, strict=True):
            printed = onto_halfspace("squared", printed, row, bound)
    exact = bregman_projection("squared", x, rows, bounds).x
    assert np.all(rows @ printed <= bounds + 1e-9)
    assert np.sum((printed - x) ** 2) > np.sum((exact - x) ** 2) + 0.01


def test_the_sum_of_parallel_steps_is_wrong():
    """The synchronisation of Table 2.1 adds up the steps: three copies of x ≤ 0 take 1 to −2 permanently."""
    x = np.array([1.0])
    for _ in range(5):
        x = x + sum(onto_halfspace("squared", x, [1.0], 0.0) - x for _ in range(3))
    assert x[0] == -2.0
    result = bregman_projection("squared", [1.0], [[1.0]] * 3, [0.0] * 3, parallel=True)
    np.testing.assert_allclose(result.x, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bregman_projection("squared", [1.0], [[1.0, 2.0]], [1.0]), "`A` needs 1 columns"),
        (lambda: bregman_projection("squared", [1.0], [[1.0]], [1.0, 2.0]), "b one number per row"),
        (lambda: bregman_projection("squared", [1.0], [[0.0]], [1.0]), "must not be all zeros"),
        (lambda: bregman_projection("squared", [1.0], [[np.nan]], [1.0]), "finite numbers"),
        (lambda: bregman_projection("squared", [1.0], [[1.0]], [np.inf]), "b must be finite"),
        (lambda: bregman_projection("squared", [1.0], [[1.0]], [0.0], tol=-1), "`tol` must be"),
        (lambda: bregman_projection("squared", [1.0], [[1.0]], [0.0], max_iter=-1), "`max_iter` must be"),
        (
            lambda: bregman_projection("i-divergence", [1.0], [[1.0]], [-1.0]),
            "does not cross the domain's interior",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(InputError, match=message):
        call()
