"""Properties of every projection and prox:

Sets are written as half-spaces, and a linear programme checks the result.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from apexrank import projections
from apexrank.divergences import KL, Divergence, IDivergence, Squared
from apexrank.errors import InputError
from apexrank.kernels import lipschitz, permutahedron, tv
from apexrank.kernels import pav as pav_module
from apexrank.kernels.lipschitz import lipschitz_isotonic, lipschitz_isotonic_link
from apexrank.kernels.pav import pav
from apexrank.kernels.permutahedron import onto_permutahedron
from apexrank.kernels.tv import total_variation
from apexrank.projections import (
    bregman_projection,
    onto_halfspace,
    onto_hyperplane,
    onto_monotone,
    onto_ordered_simplex,
    onto_simplex,
)
from apexrank.submodular import Chain, is_by_size, prox, prox_extension
from apexrank.submodular.base import all_subsets
from tests.strategies import (
    DIVERGENCE_ATOMS,
    SEPARABLE_ATOMS,
    SET_FUNCTION_MAKERS,
    Draw,
    draws,
    point_of,
)

few = settings(max_examples=5)
LP = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True)
class Target:
    """Set ``A z ≤ b, E z = e``, and the projection of points onto it; row i counts ``weight[i]`` times."""

    project: Callable[..., np.ndarray]
    atom: Divergence
    weight: np.ndarray
    A: np.ndarray
    b: np.ndarray
    E: np.ndarray
    e: np.ndarray

    def violation(self, y: np.ndarray) -> float:
        off = [*(self.A @ y - self.b), *np.abs(self.E @ y - self.e), 0.0]
        return float(max(off)) / (1 + float(np.abs(y).max()))

    def slope(self, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Gradient of ``Σ w d(y ‖ link(θ))`` at y."""
        one = IDivergence() if isinstance(self.atom, KL) else self.atom
        return self.weight * (one.grad(y) - theta)

    def best_descent(self, y: np.ndarray, slope: np.ndarray) -> float:
        """Minimum of ``<slope, z − y>`` over points z of the set near y, which is 0 if y is the minimum."""
        low, high = self.atom.domain
        near = np.column_stack([np.maximum(y - 1, low), np.minimum(y + 1, high)])
        rows = {"A_ub": self.A, "b_ub": np.maximum(self.b, self.A @ y), "A_eq": self.E, "b_eq": self.E @ y}
        found = linprog(slope, bounds=near, options=LP, **{k: v for k, v in rows.items() if len(v)})
        assert found.status == 0, found.message
        return float(found.fun - slope @ y)


def target(
    project: Callable[..., np.ndarray],
    n: int,
    *,
    atom: Divergence | None = None,
    weight: np.ndarray | None = None,
    below: tuple[Any, Any] | None = None,
    equal: tuple[Any, Any] | None = None,
) -> Target:
    none = np.empty((0, n)), np.empty(0)
    (A, b), (E, e) = (
        none if part is None else (np.atleast_2d(part[0]).astype(float), np.atleast_1d(part[1]).astype(float))
        for part in (below, equal)
    )
    return Target(project, atom or Squared(), np.ones(n) if weight is None else weight, A, b, E, e)


# ---------------------------------------------------------------- the sets


def rising(n: int) -> tuple[np.ndarray, np.ndarray]:
    return -np.diff(np.eye(n), axis=0), np.zeros(n - 1)


def monotone(atom: Divergence, draw: Draw) -> Target:
    weight = draw.rng.uniform(0.2, 3, draw.n)
    return target(
        partial(onto_monotone, atom, weight=weight), draw.n, atom=atom, weight=weight, below=rising(draw.n)
    )


def falling(atom: Divergence, draw: Draw) -> Target:
    A, b = rising(draw.n)
    return target(partial(onto_monotone, atom, increasing=False), draw.n, atom=atom, below=(-A, b))


def bounded(atom: Divergence, draw: Draw) -> Target:
    lower, upper = point_of(atom, np.array([-0.5, 0.7]))
    (A, b), eye, one = rising(draw.n), np.eye(draw.n), np.ones(draw.n)
    below = np.vstack([A, eye, -eye]), np.concatenate([b, upper * one, -lower * one])
    return target(partial(onto_monotone, atom, lower=lower, upper=upper), draw.n, atom=atom, below=below)


def simplex(atom: Divergence, draw: Draw) -> Target:
    weight = draw.rng.uniform(0.5, 3, draw.n)
    project = partial(onto_simplex, atom, weight=weight)
    return target(
        project,
        draw.n,
        atom=atom,
        weight=weight,
        below=(-np.eye(draw.n), np.zeros(draw.n)),
        equal=(weight, 1.0),
    )


def ordered_simplex(atom: Divergence, draw: Draw) -> Target:
    weight = draw.rng.uniform(0.5, 3, draw.n)
    (A, b), increasing = rising(draw.n), draw.seed % 2 == 0
    order = A if increasing else -A
    below = np.vstack([order, -np.eye(draw.n)]), np.concatenate([b, np.zeros(draw.n)])
    project = partial(onto_ordered_simplex, atom, weight=weight, increasing=increasing)
    return target(project, draw.n, atom=atom, weight=weight, below=below, equal=(weight, 1.0))


def normals(atom: Divergence, draw: Draw, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Half-spaces whose intersection contains a point of the domain."""
    A = draw.rng.normal(size=(count, draw.n))
    return A, A @ point_of(atom, 0.5 * draw.vectors(4)[3]) + draw.rng.uniform(0.01, 0.5, count)


def of_sum_one(atom: Divergence, n: int) -> tuple[np.ndarray, np.ndarray]:
    return (np.ones((1, n)), np.ones(1)) if isinstance(atom, KL) else (np.empty((0, n)), np.empty(0))


def hyperplane(atom: Divergence, draw: Draw) -> Target:
    a = draw.rng.normal(size=draw.n)
    b = float(a @ point_of(atom, 0.5 * draw.vectors(4)[3]))
    E, e = of_sum_one(atom, draw.n)
    equal = np.vstack([a, E]), np.append(b, e)
    return target(partial(onto_hyperplane, atom, a=a, b=b), draw.n, atom=atom, equal=equal)


def halfspace(atom: Divergence, draw: Draw) -> Target:
    A, b = normals(atom, draw, 1)
    project = partial(onto_halfspace, atom, a=A[0], b=float(b[0]))
    return target(project, draw.n, atom=atom, below=(A, b), equal=of_sum_one(atom, draw.n))


def polyhedron(atom: Divergence, draw: Draw, parallel: bool = False) -> Target:
    A, b = normals(atom, draw, 2)

    def project(theta: np.ndarray, **options: Any) -> np.ndarray:
        return bregman_projection(atom, theta, A, b, parallel=parallel, max_iter=20_000, **options).x

    return target(project, draw.n, atom=atom, below=(A, b), equal=of_sum_one(atom, draw.n))


def segments(draw: Draw) -> Target:
    """Isotonic regression of two segments."""
    cut, weight = draw.n // 2, draw.rng.uniform(0.2, 3, draw.n)
    A, b = rising(draw.n)
    kept = np.arange(draw.n - 1) != cut - 1
    project = euclidean(partial(pav, indptr=[0, cut, draw.n], weight=weight))
    return target(project, draw.n, weight=weight, below=(A[kept], b[kept]))


def all_orders(draw: Draw) -> Target:
    """No set of rows exceeds the sum of as many largest values (Rado 1952)."""
    y = np.sort(draw.rng.normal(size=draw.n))
    most = np.concatenate([[0.0], np.cumsum(y[::-1])])
    subsets = all_subsets(draw.n)[1:-1]
    project = euclidean(lambda z: onto_permutahedron(z, y).values)
    below = subsets, most[subsets.sum(axis=1)]
    return target(project, draw.n, below=below, equal=(np.ones(draw.n), y.sum()))


def bounded_steps(draw: Draw) -> Target:
    lower, upper = np.sort(draw.rng.normal(size=(2, draw.n - 1)), axis=0)
    weight = draw.rng.uniform(0.2, 3, draw.n)
    steps = np.diff(np.eye(draw.n), axis=0)
    below = np.vstack([steps, -steps]), np.concatenate([upper, -lower])
    project = euclidean(partial(lipschitz_isotonic, lower=lower, upper=upper, weight=weight))
    return target(project, draw.n, weight=weight, below=below)


def euclidean(fit: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Points are their own natural parameters."""
    return lambda x, natural=True: fit(x)


ON_SIMPLEX = [atom for atom in DIVERGENCE_ATOMS if atom.name != "shifted-i-divergence"]
FAMILIES: dict[str, tuple[Callable[..., Target], list[Divergence]]] = {
    "monotone": (monotone, SEPARABLE_ATOMS),
    "falling": (falling, SEPARABLE_ATOMS),
    "bounded": (bounded, SEPARABLE_ATOMS),
    "simplex": (simplex, ON_SIMPLEX),
    "ordered_simplex": (ordered_simplex, ON_SIMPLEX),
    "hyperplane": (hyperplane, DIVERGENCE_ATOMS),
    "halfspace": (halfspace, DIVERGENCE_ATOMS),
    "sequential": (polyhedron, DIVERGENCE_ATOMS),
    "parallel": (partial(polyhedron, parallel=True), DIVERGENCE_ATOMS),
}
OF_NUMBERS = {"pav": segments, "permutahedron": all_orders, "lipschitz": bounded_steps}
TARGETS: dict[str, Callable[[Draw], Target]] = OF_NUMBERS | {
    f"{family}-{atom.name}": partial(make, atom)
    for family, (make, atoms) in FAMILIES.items()
    for atom in atoms
}
ITERATIVE = ("sequential", "parallel")

each_target = pytest.mark.parametrize("name", TARGETS)


def test_every_projection_is_among_the_cases():
    """Public functions that return vectors; the others of these modules return blocks, bounds and multipliers."""
    here = {
        *(projections.onto_monotone, projections.onto_simplex, projections.onto_ordered_simplex),
        *(projections.onto_hyperplane, projections.onto_halfspace, projections.bregman_projection),
        *(pav_module.pav, permutahedron.onto_permutahedron, tv.total_variation, prox.prox_extension),
        *(lipschitz.lipschitz_isotonic, lipschitz.lipschitz_isotonic_link),
    }
    helpers = {
        *(projections.hyperplane_multiplier, projections.natural_parameters, projections.check_normal),
        *(pav_module.pav_blocks, pav_module.clip, pav_module.check_indptr, pav_module.check_row_weight),
        *(pav_module.running_sums, pav_module.sort_inside),
    }
    public = {
        function
        for module in (projections, pav_module, permutahedron, lipschitz, tv, prox)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    }
    assert public == here | helpers


# ---------------------------------------------------------------- feasible and optimal


@each_target
@few
@given(draws())
def test_the_nearest_point_of_the_set(name, draw):
    aim = TARGETS[name](draw)
    x = point_of(aim.atom, draw.vectors(1)[0])
    theta = (IDivergence() if isinstance(aim.atom, KL) else aim.atom).grad(x)
    y = aim.project(theta)
    # iterative methods stop at a residual of 1e-10
    tol = 1e-7 if name.startswith(ITERATIVE) else 1e-9
    assert aim.violation(y) <= tol
    slope = aim.slope(y, theta)
    assert aim.best_descent(y, slope) >= -tol * (1 + np.abs(slope).sum()) * (1 + np.abs(y).max())


@each_target
@few
@given(draws())
def test_single_precision_is_read_exactly(name, draw):
    aim = TARGETS[name](draw)
    x = point_of(aim.atom, draw.vectors(1)[0]).astype(np.float32)
    np.testing.assert_array_equal(aim.project(x, natural=False), aim.project(x.astype(float), natural=False))


# ---------------------------------------------------------------- ends and links


def test_no_point_above_one_is_on_the_simplex():
    with pytest.raises(InputError, match="does not cross the domain's interior"):
        onto_simplex("shifted-i-divergence", [0.0, 0.0])


# fits of sequences that keep the order of their inputs and stay within their range
SMOOTHERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "pav": pav,
    "falling pav": partial(pav, increasing=False),
    "lipschitz": partial(lipschitz_isotonic, lower=0.0, upper=0.3),
    "steps both ways": partial(lipschitz_isotonic, lower=-0.5, upper=0.2),
    "total variation": partial(total_variation, strength=0.7),
}


@pytest.mark.parametrize("name", SMOOTHERS)
@few
@given(draws(most=12), st.sampled_from([0.0, 1.0, -40.0, 1e6]))
def test_fits_of_sequences_rise_with_the_input_and_stay_between_its_ends(name, draw, shift):
    fit = SMOOTHERS[name]
    y, push = draw.vectors(2)
    v, rounding = fit(y), 1e-12
    assert y.min() - rounding <= v.min()
    assert v.max() <= y.max() + rounding
    assert v.sum() == pytest.approx(y.sum(), abs=1e-11)
    assert np.all(fit(y + np.abs(push)) >= v - rounding)
    np.testing.assert_allclose(fit(y + shift), v + shift, rtol=1e-15, atol=1e-11)


@pytest.mark.parametrize("atom", SEPARABLE_ATOMS, ids=lambda a: a.name)
@few
@given(draws())
def test_ordered_fits_rise_with_the_point_and_stay_between_its_ends(atom, draw):
    low, high = point_of(atom, np.sort(draw.vectors(2), axis=0))
    y = onto_monotone(atom, low, natural=False)
    rounding = 1e-12 * (1 + np.abs(low).max())
    assert low.min() - rounding <= y.min()
    assert y.max() <= low.max() + rounding
    assert np.all(onto_monotone(atom, high, natural=False) >= y - 1e-12 * (1 + np.abs(y)))


@few
@given(draws(most=10), st.floats(0.1, 5), st.floats(-100, 100))
def test_a_link_is_a_function_of_the_scores(draw, slope, shift):
    scores, y = draw.vectors(2)
    weight = draw.rng.integers(1, 4, draw.n)
    knots, values = lipschitz_isotonic_link(scores, y, slope, weight)
    np.testing.assert_array_equal(knots, np.unique(scores))
    assert np.all(np.diff(values) >= 0)
    assert np.all(np.diff(values) <= slope * np.diff(knots) + 1e-12)
    rows = draw.rng.permutation(np.repeat(np.arange(draw.n), weight))
    np.testing.assert_allclose(
        lipschitz_isotonic_link(scores[rows], y[rows], slope)[1], values, rtol=0, atol=1e-12
    )
    wider = lipschitz_isotonic_link(4 * scores, y + shift, slope / 4, weight)[1]
    np.testing.assert_allclose(wider, values + shift, rtol=1e-13, atol=1e-11)


# ---------------------------------------------------------------- the prox of a set function


def chain_prox(f: Any, v: np.ndarray, strength: float, h: np.ndarray) -> np.ndarray:
    return total_variation(v + strength * h, strength)


def assert_is_the_prox(f: Any, x: np.ndarray, v: np.ndarray, strength: float, h: np.ndarray) -> None:
    """``s = h + (v − x)/t`` is a subgradient of f̂ at x: in the base polytope, with ``<s, x> = f̂(x)``."""
    subsets = all_subsets(len(v))
    values = np.array([f(mask) for mask in subsets])
    s = strength * h + v - x
    slack = 1e-10 * (1 + strength) * (1 + np.abs(values).max() + np.abs(v).max())
    assert np.all(subsets @ s <= strength * values + slack)
    assert s.sum() == pytest.approx(strength * values[-1], abs=slack)
    assert s @ x == pytest.approx(strength * f.extension(x), abs=slack * (1 + np.abs(x).sum()))


@pytest.mark.parametrize("name", [*SET_FUNCTION_MAKERS, "total variation"])
@few
@given(draws(least=1), st.sampled_from([0.01, 0.5, 3.0, 100.0]))
def test_the_prox_of_a_set_function(name, draw, strength):
    by_name = name in SET_FUNCTION_MAKERS
    f = SET_FUNCTION_MAKERS[name](draw.rng, draw.n) if by_name else Chain()
    solve = prox_extension if by_name else chain_prox
    v, other, h = draw.vectors(3)
    x = solve(f, v, strength, h)
    assert_is_the_prox(f, x, v, strength, h)
    rounding = 1e-10 * (1 + strength)
    moved, before = x - solve(f, other, strength, h), v - other
    assert moved @ moved <= moved @ before + rounding * (1 + before @ before)
    np.testing.assert_allclose(solve(f, v + 7, strength, h), x + 7, rtol=0, atol=rounding)
    np.testing.assert_allclose(solve(f, 2 * v, 2 * strength, h), 2 * x, rtol=0, atol=rounding)
    if is_by_size(f) and by_name:
        turned = draw.rng.permutation(draw.n)
        np.testing.assert_allclose(solve(f, v[turned], strength, h[turned]), x[turned], rtol=0, atol=rounding)
