"""The cost of an unknown link against its definition over convex functions, finite differences, and repeated rows."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apexrank.errors import InputError
from apexrank.objectives.link import UnknownLink, check_margin
from apexrank.rankers.link import ConvexFunction, Link
from tests.oracles import numerical_gradient

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "projections.json").read_text())


def cost_by_definition(theta, y, s):
    """``min_φ Σ φ(y_i) + φ*(θ_i) − y_i θ_i`` over s-strongly convex φ, as a convex programme.

    With x_i the maximiser of ``θ_i x − φ(x)`` and p_i its value, strong convexity says
    ``φ(y_j) ≥ θ_i y_j − p_i + s/2·(y_j − x_i)²``. Conversely the largest of these functions of y_j is s-strongly
    convex, at most φ_j at y_j, and its conjugate at θ_i is at most p_i.
    """
    cp = pytest.importorskip("cvxpy", reason="cvxpy solves the programme over convex functions")
    n = len(y)
    phi, p, x = cp.Variable(n), cp.Variable(n), cp.Variable(n)
    constraints = [
        phi[j] >= theta[i] * y[j] - p[i] + s / 2 * cp.square(y[j] - x[i]) for i in range(n) for j in range(n)
    ]
    constraints.append(phi[0] == 0)  # a constant added to φ is subtracted from φ*
    problem = cp.Problem(cp.Minimize(cp.sum(phi) + cp.sum(p) - float(y @ theta)), constraints)
    return problem.solve(solver=cp.CLARABEL)


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    groups = rng.permutation(np.repeat([4, 7, 1, 9], [6, 5, 8, 3]))
    y = rng.integers(0, 4, len(groups)) + 0.0
    y[groups == 9] = 2  # nothing to learn there
    y[groups == 1] = rng.normal(size=8)
    return y, groups, 2 * rng.normal(size=len(groups)), rng.uniform(0.5, 2, len(groups))


@pytest.mark.parametrize(
    "case", [c for c in VECTORS if "permutahedron" in c["what"]], ids=lambda c: len(c["theta"])
)
def test_conformance_vectors(case):
    objective, theta = UnknownLink(case["y"], strong_convexity=case["s"]), np.array(case["theta"])
    value, grad = objective.value_and_grad(theta)
    assert value == pytest.approx(case["cost"], abs=1e-6)
    np.testing.assert_allclose(grad, np.array(case["projection"]) - case["y"], atol=2e-6)


@pytest.mark.parametrize("seed", range(12))
def test_value_is_the_minimum_over_convex_functions(seed):
    rng = np.random.default_rng(seed)
    n, s = int(rng.integers(2, 7)), float(rng.choice([0.3, 1.0, 2.5]))
    y = rng.choice([0.0, 1.0, 1.0, 3.0], n) if seed % 3 == 0 else rng.normal(size=n)
    y[0] = 7.0 if np.ptp(y) == 0 else y[0]
    theta = 2 * rng.normal(size=n)
    found = UnknownLink(y, strong_convexity=s).value_and_grad(theta)[0]
    assert found == pytest.approx(cost_by_definition(theta, y, s), abs=1e-6)


def test_the_published_gradient_is_not_the_gradient():
    """y projected onto monotone, 1/s-Lipschitz vectors in the order of θ: a different vector."""
    y, theta = np.array([0.0, 5.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0, 3.0])
    grad = UnknownLink(y).value_and_grad(theta)[1]
    published = np.array([1.25, 2.25, 2.25, 2.25]) - y  # the exact Lipschitz isotonic regression of y
    numerical = numerical_gradient(lambda t: UnknownLink(y).value_and_grad(t)[0], theta)
    np.testing.assert_allclose(grad, numerical, atol=1e-7)
    assert np.abs(grad - published).max() > 0.4


@pytest.mark.parametrize("s", [0.2, 1.0, 5.0])
def test_hessian_by_differences(data, s):
    y, groups, theta, weight = data
    objective = UnknownLink(y, groups=groups, strong_convexity=s, sample_weight=weight)
    ((factor, diagonal, U, S),) = objective.hessian(theta)
    found = factor * (np.diag(diagonal) + (U @ S @ U.T).toarray())
    h = 1e-6
    step = h * np.eye(len(theta))
    expected = [
        (objective.value_and_grad(theta + e)[1] - objective.value_and_grad(theta - e)[1]) / (2 * h)
        for e in step
    ]
    np.testing.assert_allclose(found, expected, atol=1e-7)
    assert np.linalg.eigvalsh(found).max() <= objective.smoothness * (1 + 1e-12)
    assert np.linalg.eigvalsh(found).min() >= -1e-12


def test_the_hessian_vanishes_where_every_row_is_alone():
    ((_, diagonal, U, S),) = UnknownLink([1.0, 2.0, 3.0]).hessian(np.array([0.0, 9.0, 5.0]))
    assert not diagonal.any()
    assert not (U @ S @ U.T).toarray().any()


def test_normalised_groups_and_group_weights(data):
    y, groups, theta, weight = data
    sizes = {4: 6, 7: 5, 1: 8, 9: 3}
    value = UnknownLink(y, groups=groups, normalize=True, group_weight=groups).value_and_grad(theta)[0]
    expected = sum(
        q / sizes[q] * UnknownLink(y[groups == q]).value_and_grad(theta[groups == q])[0] for q in (4, 7, 1)
    )
    assert value == pytest.approx(expected, rel=1e-12)
    weighted = UnknownLink(y[groups == 4], sample_weight=weight[groups == 4], normalize=True)
    plain = UnknownLink(y[groups == 4], sample_weight=weight[groups == 4])
    at = theta[groups == 4]
    assert weighted.value_and_grad(at)[0] == pytest.approx(
        plain.value_and_grad(at)[0] / weight[groups == 4].sum(), rel=1e-12
    )


@given(st.integers(0, 10**6), st.integers(2, 25), st.floats(-1, 1))
def test_properties(seed, n, log_s):
    rng = np.random.default_rng(seed)
    s, y = 10**log_s, rng.integers(-3, 4, n) / 2 if seed % 2 else rng.normal(size=n)
    if np.ptp(y) == 0:
        return
    objective, a, b = UnknownLink(y, strong_convexity=s), *(2 * rng.normal(size=(2, n)))
    (at_a, slope_a), (at_b, slope_b) = objective.value_and_grad(a), objective.value_and_grad(b)
    size = 1 + at_a + at_b
    assert at_b >= at_a + slope_a @ (b - a) - 1e-12 * size  # convex
    assert np.linalg.norm(slope_a - slope_b) <= np.linalg.norm(a - b) * objective.smoothness * (1 + 1e-9)
    moved, slope = objective.value_and_grad(a + 17.0)
    assert moved == pytest.approx(at_a, rel=1e-9, abs=1e-11)
    np.testing.assert_allclose(slope, slope_a, atol=1e-10 / s)
    assert s * UnknownLink(y).value_and_grad(a / s)[0] == pytest.approx(at_a, rel=1e-9, abs=1e-12)
    doubled = UnknownLink(2 * y, strong_convexity=s).value_and_grad(2 * a)
    assert doubled[0] == pytest.approx(4 * at_a, rel=1e-9, abs=1e-12)


@given(st.integers(0, 10**6), st.integers(2, 8), st.floats(0.3, 2.0))
def test_zero_exactly_where_margins_hold(seed, n, stretch):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n) + 0.0
    if np.ptp(y) == 0:
        return
    s = 0.7
    theta = stretch * s * y + (rng.uniform(0, 0.3, n) if seed % 2 else 0.0) * (y == y.max())
    gaps = [theta[i] - theta[j] - s * (y[i] - y[j]) for i in range(n) for j in range(n) if y[i] > y[j]]
    if abs(min(gaps)) < 1e-6:
        return
    value = UnknownLink(y, strong_convexity=s).value_and_grad(theta)[0]
    assert (value <= 1e-14) == (min(gaps) > 0)


def test_no_margin_is_the_lovasz_bregman_divergence():
    rng = np.random.default_rng(1)
    y, theta = rng.normal(size=9), rng.normal(size=9)
    objective = UnknownLink(y, strong_convexity=0.0)
    value, grad = objective.value_and_grad(theta)
    assert value == pytest.approx(np.sort(theta) @ np.sort(y) - theta @ y, rel=1e-12)
    np.testing.assert_allclose(np.sort(grad + y), np.sort(y))
    np.testing.assert_allclose(
        grad, numerical_gradient(lambda t: objective.value_and_grad(t)[0], theta), atol=1e-7
    )
    assert UnknownLink(y, strong_convexity=1e-9).value_and_grad(theta)[0] == pytest.approx(value, rel=1e-7)
    tied, slope = objective.value_and_grad(np.zeros(9))  # all rows tied: the mean, and the trivial minimum
    assert tied == 0
    np.testing.assert_allclose(slope, y.mean() - y, atol=1e-14)
    assert not objective.has_hessian
    assert objective.smoothness == np.inf
    assert objective.total == objective.curvature / 9 == 1.0


def test_no_cancellation_near_the_minimum():
    """Scores just short of the margin, y and scores far from zero: the value is tiny but accurate."""
    e = 1e-7
    objective = UnknownLink([1e3, 1e3 + 1])
    value, grad = objective.value_and_grad(np.array([5e5, 5e5 + 1 - e]))
    assert value == pytest.approx(e**2 / 4, rel=1e-2)
    assert grad == pytest.approx([e / 2, -e / 2], rel=1e-2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("s", [0.1, 1.0, 4.0])
def test_the_link_attains_the_cost(s, weighted):
    rng = np.random.default_rng(7)
    y, theta = rng.integers(0, 9, 40) / 2, 2 * rng.normal(size=40)
    weight = rng.uniform(0.3, 2, 40) if weighted else np.ones(40)
    objective = UnknownLink(y, strong_convexity=s, sample_weight=weight)
    link = Link(*objective.link(theta), slope=1 / s)
    np.testing.assert_allclose(link(theta), objective.fitted(theta), atol=1e-12)
    slopes = np.diff(link.values) / np.diff(link.knots)
    assert np.all((slopes >= 0) & (slopes <= 1 / s * (1 + 1e-9)))
    phi = ConvexFunction(link)
    cost = float(weight @ (phi(y) + phi.conjugate(theta) - y * theta))
    assert cost == pytest.approx(objective.value_and_grad(theta)[0], rel=1e-10)


def test_every_convex_function_costs_at_least_as_much():
    rng = np.random.default_rng(8)
    y, theta = rng.normal(size=30), rng.normal(size=30)
    least = UnknownLink(y).value_and_grad(theta)[0]
    for _ in range(50):
        knots = np.sort(rng.normal(size=6)) * 3
        rises = rng.uniform(0, 1, 5) * np.diff(knots)
        values = np.concatenate([[0.0], np.cumsum(rises)])
        values = values - values.mean()
        ends = [min(values[0], y.min()), max(values[-1], y.max())]  # φ must be finite at every y
        knots = np.concatenate(
            [[knots[0] - values[0] + ends[0] - 1], knots, [knots[-1] + ends[1] - values[-1] + 1]]
        )
        phi = ConvexFunction(Link(knots, np.concatenate([ends[:1], values, ends[1:]]), slope=1.0))
        assert float((phi(y) + phi.conjugate(theta) - y * theta).sum()) >= least - 1e-10


def test_what_a_linear_model_asks_for(data):
    y, groups, theta, _ = data
    objective = UnknownLink(y, groups=groups)
    assert objective.total == pytest.approx(
        sum(0.5 * y[groups == q].var() * (groups == q).sum() for q in (4, 7, 1))
    )
    assert objective.curvature == 19
    assert not objective.separated(theta)
    assert objective.lists is not None
    assert UnknownLink(y).lists is None
    with pytest.raises(NotImplementedError):
        objective.stream(None)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ([1.0, 1.0], {}, "there is no link to fit: y has only one value"),
        ([1.0, np.nan], {}, "missing or infinite in row 1"),
        ([1.0, 2.0], {"strong_convexity": -1}, "`strong_convexity` must be a finite number of at least 0"),
        ([1.0, 2.0], {"sample_weight": [1.0]}, "`sample_weight` needs one finite number"),
        ([1.0, 2.0], {"sample_weight": [1.0, 0.0]}, "no link to fit"),
        ([1.0, 2.0], {"group_weight": [1.0, 2.0]}, "must be the same for all rows of a group"),
    ],
)
def test_bad_input(arguments, options, message):
    with pytest.raises(InputError, match=message):
        UnknownLink(arguments, **options)


def test_one_link_at_a_time(data):
    y, groups, theta, _ = data
    with pytest.raises(InputError, match="there are 3 groups with a link each"):
        UnknownLink(y, groups=groups).link(theta)


@pytest.mark.parametrize("s", [0, -1, np.inf, np.nan, "1", None])
def test_margins_above_zero(s):
    with pytest.raises(
        InputError, match=r"`strong_convexity` must be a finite number above 0.*minimum is w = 0"
    ):
        check_margin(s)


def test_blocks_of_the_link_do_not_overlap():
    rng = np.random.default_rng(11)
    y, theta = rng.normal(size=200), rng.normal(size=200)
    knots, values = UnknownLink(y, strong_convexity=0.4).link(theta)
    assert all(a <= b for a, b in pairwise(knots))
    assert all(a <= b for a, b in pairwise(values))
    assert values[0] == y.min()
    assert values[-1] == y.max()
