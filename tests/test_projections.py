"""Bregman projections against general-purpose minimisers, optimality conditions and stored answers."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from apexrank.divergences import KL, IDivergence, ItakuraSaito, Logistic, ShiftedIDivergence, Squared
from apexrank.errors import InputError
from apexrank.kernels.pav import pav
from apexrank.projections import (
    onto_halfspace,
    onto_hyperplane,
    onto_monotone,
    onto_ordered_simplex,
    onto_simplex,
)

VECTORS = json.loads((Path(__file__).parent / "vectors" / "projections.json").read_text())
SEPARABLE = [Squared(), IDivergence(), ShiftedIDivergence(), ItakuraSaito(), Logistic()]
ON_SIMPLEX = [Squared(), KL(), IDivergence(), ItakuraSaito(), Logistic()]
name = pytest.mark.parametrize
N = 5


def point(atom, seed, n=N):
    u = np.random.default_rng(seed).uniform(0.1, 0.9, size=n)
    if isinstance(atom, KL):
        return u / u.sum()
    return u + 1 if isinstance(atom, ShiftedIDivergence) else u


def ids(value):
    return getattr(value, "name", None)


def descend(atom, x, constraints, start, weight=1.0):
    """argmin of Σ w d(y‖x) by SLSQP, from the definition of the divergence."""
    one = IDivergence() if isinstance(atom, KL) else type(atom)()
    slope = one.grad(x)

    def cost(y):
        return sum(
            w * float(one.divergence([a], [b]))
            for w, a, b in zip(weight * np.ones(len(x)), y, x, strict=True)
        )

    low, high = one.domain
    bounds = [(low + 1e-9 if np.isfinite(low) else None, high - 1e-9 if np.isfinite(high) else None)] * len(x)
    found = minimize(
        cost,
        start,
        jac=lambda y: weight * (one.grad(y) - slope),
        bounds=bounds,
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 500},
    )
    return found.x


def sums_to(total, a):
    return {"type": "eq", "fun": lambda y: a @ y - total, "jac": lambda y: a}


# ---------------------------------------------------------------- ordered vectors


def test_weights_of_the_atom_multiply_the_weights():
    x, own, weight = (
        point(Squared(), 3),
        np.array([1.0, 2.0, 3.0, 4.0, 5.0]),
        np.array([2.0, 1.0, 1.0, 3.0, 1.0]),
    )
    for kind in (Squared, IDivergence):
        y = onto_monotone(kind(weight=own), x, weight=weight, natural=False)
        np.testing.assert_allclose(
            y, onto_monotone(kind(), x, weight=own * weight, natural=False), rtol=1e-14
        )


def test_segments_are_projected_one_by_one():
    theta, indptr = np.random.default_rng(4).normal(size=12), np.array([0, 3, 3, 8, 12])
    for function in (onto_monotone, onto_simplex, onto_ordered_simplex):
        for atom in ("squared", "kl", "i-divergence", "logistic"):
            parts = [function(atom, theta[i:j]) for i, j in pairwise(indptr)]
            np.testing.assert_allclose(function(atom, theta, indptr), np.concatenate(parts), rtol=1e-12)


def test_points_on_the_boundary_stay_there():
    np.testing.assert_allclose(onto_monotone("i-divergence", [0.5, 0.0, 0.5], natural=False), [0, 0, 0.5])
    np.testing.assert_allclose(onto_monotone("kl", [0.25, 0.0, 0.75], natural=False), [0, 0, 1])
    np.testing.assert_allclose(onto_monotone("logistic", [1.0, 0.5], natural=False), [1, 1])


# ---------------------------------------------------------------- the simplex


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9), st.sampled_from([0.0, 1e8]))
def test_squared_simplex_by_its_optimality_conditions(x, offset):
    """y_i = max(0, x_i − τ) with one τ for all."""
    x = np.array(x) + offset
    y = onto_simplex("squared", x)
    np.testing.assert_allclose(y.sum(), 1, rtol=1e-9)
    tau = np.max(x) - np.max(y)
    np.testing.assert_allclose(y, np.maximum(0, x - tau), atol=4 * np.spacing(1e3 + offset))


def test_squared_simplex_keeps_a_row_that_is_just_above_zero():
    np.testing.assert_allclose(
        onto_simplex("squared", [0.5, -0.4999, -3.0]), [0.99995, 5e-5, 0.0], atol=1e-15
    )


@name("kind", [Squared, IDivergence, ItakuraSaito])
def test_simplex_with_weights_in_the_divergence_only(kind):
    x, own = point(kind(), 7), np.array([1.0, 4.0, 0.5, 2.0, 1.0])
    y = onto_simplex(kind(weight=own), x, natural=False)
    positive = {"type": "ineq", "fun": lambda y: y}
    expected = descend(kind(), x, [sums_to(1, np.ones(N)), positive], np.full(N, 1 / N), own)
    np.testing.assert_allclose(y, expected, atol=2e-6)


def test_large_scores_do_not_overflow():
    np.testing.assert_allclose(onto_simplex("kl", [1e4, 1e4 + np.log(3)]), [0.25, 0.75], rtol=1e-10)
    np.testing.assert_allclose(
        onto_ordered_simplex("i-divergence", [-1e4, -1e4 + np.log(3)]), [0.25, 0.75], rtol=1e-10
    )


# ---------------------------------------------------------------- hyperplanes and half-spaces


@name("seed", range(3))
@name("atom", [*SEPARABLE, KL(), IDivergence(weight=(1, 2, 3, 4, 5))], ids=ids)
def test_hyperplane_is_the_minimum(atom, seed):
    rng = np.random.default_rng(seed)
    x, inside = point(atom, seed), point(atom, seed + 10)
    a = rng.normal(size=N)
    y = onto_hyperplane(atom, atom.grad(x), a, a @ inside)
    constraints = [sums_to(a @ inside, a)] + ([sums_to(1, np.ones(N))] if isinstance(atom, KL) else [])
    weight = np.array(getattr(atom, "weight", None) or np.ones(N))
    np.testing.assert_allclose(y, descend(atom, x, constraints, inside, weight), atol=2e-6)
    np.testing.assert_allclose(a @ y, a @ inside, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(onto_hyperplane(atom, x, a, a @ inside, natural=False), y)


@given(st.integers(0, 10**6), st.sampled_from([*SEPARABLE, KL()]), st.floats(-6, 6))
def test_hyperplane_is_met_and_the_step_is_along_its_normal(seed, atom, log_scale):
    """Lemma 2: ∇φ(y) − ∇φ(x) is a multiple of a; for every scale of a, near the boundary too."""
    rng = np.random.default_rng(seed)
    x, inside = point(atom, seed), point(atom, seed + 1)
    if not isinstance(atom, KL | ShiftedIDivergence):
        inside = inside ** rng.integers(1, 40)
    a = 10.0**log_scale * rng.normal(size=N)
    y = onto_hyperplane(atom, x, a, a @ inside, natural=False)
    np.testing.assert_allclose(a @ y, a @ inside, rtol=0, atol=1e-12 * np.abs(a) @ np.abs(y))
    assume(np.all(np.isfinite(atom.grad(y))))  # far out a coordinate may underflow to the boundary
    step = atom.grad(y) - atom.grad(x)
    if isinstance(atom, KL):
        step, a = step - step.mean(), a - a.mean()
    across = step - (step @ a) / (a @ a) * a
    np.testing.assert_allclose(across, 0, atol=1e-7 * (1 + np.abs(atom.grad(y)).max()))


def test_coordinates_on_the_boundary_keep_out_of_the_hyperplane():
    y = onto_hyperplane("i-divergence", [0.0, 1.0, 3.0], [5.0, 1.0, 1.0], 8.0, natural=False)
    np.testing.assert_allclose(y, [0, 2, 6], rtol=1e-13)
    with pytest.raises(InputError, match="does not cross"):
        onto_hyperplane("i-divergence", [0.0, 1.0], [1.0, 0.0], 2.0, natural=False)


@name("atom", [*SEPARABLE, KL()], ids=ids)
def test_pythagoras(atom):
    """D(y‖x) ≥ D(y‖Πx) + D(Πx‖x) for y in the set, with equality on a hyperplane (Lemma 1)."""
    x, a = point(atom, 30), np.array([1.0, -2.0, 0.5, 1.5, -1.0])
    inside = point(atom, 31)
    flat = onto_hyperplane(atom, x, a, a @ inside, natural=False)
    right = atom.divergence(inside, flat) + atom.divergence(flat, x)
    np.testing.assert_allclose(atom.divergence(inside, x), right, rtol=1e-10)
    projected = onto_monotone(atom, x, natural=False)
    for seed in range(20):
        y = np.sort(point(atom, seed))
        assert atom.divergence(y, x) >= atom.divergence(y, projected) + atom.divergence(projected, x) - 1e-12


# ---------------------------------------------------------------- stored answers and bad input


def test_stored_kl_projections():
    cases = [v for v in VECTORS if v["what"].startswith("KL")]
    assert len(cases) == 3
    for case in cases:
        y = onto_monotone("kl", case["theta"], increasing=False)
        np.testing.assert_allclose(y, case["projection"], atol=6e-6)


def test_stored_projections_onto_ordered_levels():
    """Subtract a margin per level, sort inside levels, PAV, add it back."""
    cases = [v for v in VECTORS if v["what"].startswith("distance to the ordered set")]
    assert len(cases) == 3
    for case in cases:
        theta, level = np.array(case["theta"]), np.array(case["level"], dtype=float)
        order = np.lexsort((theta, level))
        y = np.empty_like(theta)
        y[order] = onto_monotone("squared", (theta - level)[order]) + level[order]
        np.testing.assert_allclose(y, case["projection"], atol=2e-6)
        np.testing.assert_allclose(0.5 * np.sum((theta - y) ** 2), case["half_squared_distance"], atol=2e-6)


@name(
    ("call", "message"),
    [
        (lambda: onto_monotone("kl", [1.0, 2.0], lower=0.1), "kl takes no bounds"),
        (
            lambda: onto_monotone("logistic", [1.0, 2.0], lower=2.0),
            "no value from 2.0 to None is between 0 and 1",
        ),
        (lambda: onto_monotone("squared", [1.0, 2.0], lower=2.0, upper=1.0), "`lower` must not exceed upper"),
        (lambda: onto_monotone("squared", [1.0, np.nan]), "missing value in row 1"),
        (lambda: onto_monotone("squared", [[1.0]]), "one-dimensional"),
        (lambda: onto_monotone("itakura-saito", [1.0, 2.0]), "natural parameters below 0"),
        (lambda: onto_monotone("i-divergence", [-1.0], natural=False), "at least 0"),
        (lambda: onto_monotone("nearest", [1.0]), "unknown `divergence` 'nearest'"),
        (lambda: onto_simplex("kl", [1.0, 2.0], weight=[1.0, 0.0]), "2 finite numbers above 0"),
        (lambda: onto_simplex("kl", [-np.inf, -np.inf]), "finite largest value"),
        (lambda: onto_simplex(Squared(weight=(1, 2)), [1.0, 2.0], weight=[1.0, 1.0]), "already has weights"),
        (lambda: onto_simplex("shifted-i-divergence", [1.0, 2.0]), "does not cross the domain's interior"),
        (lambda: onto_ordered_simplex(Squared(weight=(1, 2)), [1.0, 2.0]), "without weights"),
        (lambda: onto_hyperplane("squared", [1.0, 2.0], [0.0, 0.0], 1.0), "must not be all zeros"),
        (lambda: onto_hyperplane("squared", [1.0, 2.0], [1.0], 1.0), "2 finite numbers"),
        (lambda: onto_hyperplane("logistic", [1.0, 2.0], [1.0, 1.0], 2.5), "<a, x> = 2.5 does not cross"),
        (lambda: onto_hyperplane("kl", [1.0, 2.0], [1.0, 2.0], 3.0), "does not cross"),
        (lambda: onto_halfspace("i-divergence", [1.0, 2.0], [1.0, 2.0], -1.0), "<a, x> = -1 does not cross"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_pav_is_the_engine():
    theta = np.random.default_rng(0).normal(size=30)
    np.testing.assert_array_equal(onto_monotone("squared", theta, [0, 10, 30]), pav(theta, [0, 10, 30]))
