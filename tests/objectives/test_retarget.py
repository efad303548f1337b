import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar, nnls
from scipy.special import logsumexp

from apexrank.divergences import DIVERGENCES, Squared
from apexrank.errors import InputError
from apexrank.objectives.margins import LevelOrder, level_offsets
from apexrank.objectives.retarget import Retarget
from tests.oracles import numerical_gradient

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "projections.json").read_text())
EXPONENTIAL = ["kl", "i-divergence", "shifted-i-divergence"]


def pairs_above(relevance):
    """All (i, j) with i more relevant than j."""
    return [
        (i, j) for i in range(len(relevance)) for j in range(len(relevance)) if relevance[i] > relevance[j]
    ]


def project_by_nnls(theta, relevance, offset, weight):
    """Dual of the QP over every pair of rows: λ ≥ 0, z = θ + W⁻¹Dᵀλ."""
    pairs = pairs_above(relevance)
    D = np.zeros((len(pairs), len(theta)))
    for k, (i, j) in enumerate(pairs):
        D[k, i], D[k, j] = 1, -1
    root = np.sqrt(weight)
    multipliers, _ = nnls((D / root).T, -root * (theta - offset), maxiter=10_000)
    return theta + D.T @ multipliers / weight


def project_by_slsqp(theta, relevance, offset, weight, reward=0.0):
    """KL projection in the probabilities themselves, every pair a constraint ``r_i ≥ e^(o_i − o_j)·r_j``."""
    p = np.exp(theta - logsumexp(theta, b=weight))

    def cost(r):
        r = np.maximum(r, 1e-300)
        return float((weight * r * np.log(r / p)).sum())

    constraints = [{"type": "eq", "fun": lambda r: float(weight @ r) - 1}]
    for i, j in pairs_above(relevance):
        ratio = np.exp(offset[i] - offset[j])
        constraints.append({"type": "ineq", "fun": lambda r, i=i, j=j, ratio=ratio: r[i] - ratio * r[j]})
    start = np.exp(offset) / (weight @ np.exp(offset))
    options = {"ftol": 1e-15, "maxiter": 1000}
    found = minimize(cost, start, constraints=constraints, bounds=[(1e-12, None)] * len(p), options=options)
    return found.x, found.fun


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    groups = rng.permutation(np.repeat([4, 7, 1, 9], [6, 5, 8, 3]))
    relevance = rng.integers(0, 4, len(groups)).astype(float)
    relevance[groups == 9] = 2  # nothing to learn there
    return relevance, groups, rng.normal(size=len(groups)), rng.uniform(0.5, 2, len(groups))


@pytest.mark.parametrize(
    "case", [c for c in VECTORS if c["what"].startswith("distance")], ids=lambda c: len(c["theta"])
)
def test_conformance_vectors(case):
    objective = Retarget(case["level"])
    theta = np.array(case["theta"])
    np.testing.assert_allclose(objective.targets(theta).natural, case["projection"], atol=2e-6)
    assert objective.value_and_grad(theta)[0] == pytest.approx(case["half_squared_distance"], abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("offsets", ["linear", "gain", "sqrt", "binary"])
def test_squared_projection_is_the_qp(seed, offsets):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    relevance = rng.choice([0, 1, 3, 4], n).astype(float)  # a level is skipped
    relevance[:2] = 0, 3
    theta, weight = 2 * rng.normal(size=n), rng.uniform(0.2, 3, n)
    objective = Retarget(relevance, margin=0.7, offsets=offsets, sample_weight=weight)
    expected = project_by_nnls(theta, relevance, 0.7 * level_offsets(relevance, offsets), weight)
    np.testing.assert_allclose(objective.targets(theta).natural, expected, atol=1e-9)
    value, grad = objective.value_and_grad(theta)
    assert value == pytest.approx(0.5 * (weight * (theta - expected) ** 2).sum(), abs=1e-9)
    np.testing.assert_allclose(grad, weight * (theta - expected), atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_kl_projection_is_the_constrained_minimum(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    relevance = rng.integers(0, 3, n).astype(float)
    relevance[:2] = 0, 2
    theta, weight = rng.normal(size=n), rng.uniform(0.5, 2, n)
    objective = Retarget(relevance, divergence="kl", margin=0.8, sample_weight=weight)
    r, cost = project_by_slsqp(theta, relevance, 0.8 * relevance, weight)
    targets = objective.targets(theta)
    np.testing.assert_allclose(targets.primal, r, atol=2e-5)
    assert objective.value_and_grad(theta)[0] == pytest.approx(cost, abs=1e-8)
    assert weight @ targets.primal == pytest.approx(1)


def test_pav_without_the_weights_of_the_margins_is_not_the_kl_projection():
    """The reduction of Propositions 2 and 3 to plain least squares holds for the squared divergence only."""
    relevance, theta = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, -0.6])
    plain = np.exp(Retarget(relevance).targets(theta).natural)  # pools two rows, where KL pools all three
    ours = Retarget(relevance, divergence="kl").targets(theta).primal
    assert np.abs(plain / plain.sum() - ours).max() > 1e-2
    np.testing.assert_allclose(ours, project_by_slsqp(theta, relevance, relevance, np.ones(3))[0], atol=1e-6)


@pytest.mark.parametrize("divergence", ["i-divergence", "shifted-i-divergence"])
def test_i_divergence_with_the_best_offset(data, divergence):
    """Targets with a fixed sum, and the offset that minimises the divergence, found by a line search."""
    relevance, groups, theta, weight = data
    objective = Retarget(relevance, groups=groups, divergence=divergence, sample_weight=weight)
    primal = objective.targets(theta).primal
    atom, total = DIVERGENCES.get("i-divergence"), 0.0
    for q in (4, 7, 1):
        rows = np.flatnonzero(groups == q)
        r = primal[rows] - (divergence == "shifted-i-divergence")
        o = relevance[rows] - relevance[rows].min()
        assert weight[rows] @ r == pytest.approx(weight[rows] @ np.exp(o))

        def cost(beta, rows=rows, r=r):
            return sum(
                weight[i] * float(atom.divergence([r_i], [np.exp(theta[i] + beta)]))
                for i, r_i in zip(rows, r, strict=True)
            )

        total += minimize_scalar(cost, bounds=(-10, 10), method="bounded", options={"xatol": 1e-10}).fun
    assert objective.value_and_grad(theta)[0] == pytest.approx(total, rel=1e-9)


def test_i_divergence_is_kl_times_the_sum_of_the_targets(data):
    relevance, groups, theta, _ = data
    rows = groups == 7
    kl, i = (Retarget(relevance[rows], divergence=d, margin=0.5) for d in ("kl", "i-divergence"))
    mass = np.exp(0.5 * (relevance[rows] - relevance[rows].min())).sum()
    np.testing.assert_allclose(
        i.value_and_grad(theta[rows])[1], mass * kl.value_and_grad(theta[rows])[1], rtol=1e-12
    )


@pytest.mark.parametrize("theta", [[0.3, 0.1, -0.2, 0.8, 0.4], [2.0, -1.0, 0.5, 0.0, 3.0]])
@pytest.mark.parametrize("weights", [np.ones(5), np.array([1.0, 2.0, 0.5, 1.5, 1.0])])
def test_rewarded_margins_are_the_epigraph_qp(theta, weights):
    """Reward on gaps between levels: b_l ≥ targets of level l ≥ a_l, gap = a_(l+1) − b_l ≥ 0, all as one QP."""
    theta, level, c = np.array(theta), np.array([0, 1, 1, 2, 0]), 0.6
    objective = Retarget(level, margin=0.0, reward=c, sample_weight=weights)

    def cost(x):
        return float(0.5 * (weights * (x[:5] - theta) ** 2).sum() - c * (x[6] - x[5] + x[8] - x[7]))

    # x = targets, then b_0, a_1, b_1, a_2
    lower, upper = {1: 6, 2: 8}, {0: 5, 1: 7}
    constraints = [{"type": "ineq", "fun": lambda x, k=k: x[k + 1] - x[k]} for k in (5, 7)]
    for i, l in enumerate(level):
        if l in lower:
            constraints.append({"type": "ineq", "fun": lambda x, i=i, k=lower[l]: x[i] - x[k]})
        if l in upper:
            constraints.append({"type": "ineq", "fun": lambda x, i=i, k=upper[l]: x[k] - x[i]})
    start = np.array([0.0, 1, 1, 2, 0, 0, 1, 1, 2])
    found = minimize(cost, start, constraints=constraints, options={"ftol": 1e-15, "maxiter": 500})
    np.testing.assert_allclose(objective.targets(theta).natural, found.x[:5], atol=1e-5)
    assert objective.value_and_grad(theta)[0] == pytest.approx(found.fun, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("order", ["hidden", "blocks"])
@pytest.mark.parametrize("reward", [0.0, 0.4])
@pytest.mark.parametrize("ends", [(-0.3, None), (None, 0.9), (-0.2, 1.2)])
def test_bounded_projection_is_the_qp(seed, order, reward, ends):
    """(3.21) and (3.22): clipping the free projection is exact, with rewards, weights and both orders."""
    cp = pytest.importorskip("cvxpy", reason="cvxpy solves the quadratic programme")
    rng = np.random.default_rng(seed)
    relevance = np.append(rng.integers(0, 4, 6), [0, 3]).astype(float)
    theta, weight = 2 * rng.normal(size=8), rng.uniform(0.2, 3, 8)
    options = {"margin": 0.4, "order": order, "reward": reward, "sample_weight": weight}
    objective = Retarget(relevance, bounds=ends, **options)
    z = cp.Variable(8)
    cost = 0.5 * cp.sum(cp.multiply(weight, cp.square(z - theta)))
    levels = [z[np.flatnonzero(relevance == level)] for level in np.unique(relevance)]
    for low, high in pairwise(levels):
        cost -= reward * (cp.min(high) - cp.max(low))
    held = [z[i] - z[j] >= 0.4 * (relevance[i] - relevance[j]) for i, j in pairs_above(relevance)]
    held += [z >= ends[0]] if ends[0] is not None else []
    held += [z <= ends[1]] if ends[1] is not None else []
    held += [level == level[0] for level in levels] if order == "blocks" else []
    value = cp.Problem(cp.Minimize(cost), held).solve(solver="CLARABEL")
    np.testing.assert_allclose(objective.targets(theta).natural, z.value, atol=1e-5)
    assert objective.value_and_grad(theta)[0] == pytest.approx(value, abs=1e-6)


def test_bounds_as_wide_as_the_margins_are_regression(data):
    relevance, groups, theta, weight = data
    relevance[groups != 9] = np.where(relevance[groups != 9] == 3, 2, relevance[groups != 9])
    for q in (4, 7, 1):  # all of them with the widest margin
        relevance[np.flatnonzero(groups == q)[:2]] = 0, 2
    objective = Retarget(relevance, groups=groups, bounds=(0.5, 2.5), sample_weight=weight)
    used = groups != 9
    np.testing.assert_allclose(objective.targets(theta).natural[used], 0.5 + relevance[used])
    [(_, diagonal, U, _)] = objective.hessian(theta)
    np.testing.assert_allclose(diagonal, np.where(used, weight, 0))
    assert not U.toarray().any()


def test_wide_bounds_hold_nothing(data):
    relevance, groups, theta, _ = data
    free, wide = (Retarget(relevance, groups=groups, bounds=b) for b in (None, (-1e3, 1e3)))
    assert free.shift_invariant
    assert not wide.shift_invariant
    assert free.value_and_grad(theta)[0] == wide.value_and_grad(theta)[0]
    np.testing.assert_array_equal(free.targets(theta).natural, wide.targets(theta).natural)


def options_of(divergence):
    yield {}
    if divergence == "squared":
        yield {"bounds": (-0.5, 4.0)}
        yield {"bounds": (0.2, None), "order": "blocks", "reward": 0.3}
    yield {"order": "blocks"}
    yield {"reward": 0.3, "margin": 0.2}
    yield {"order": "blocks", "reward": 0.3}
    yield {"normalize": True, "offsets": "gain", "margin": 0.5}
    if divergence != "squared":
        yield {"joint_convexity": True}
        yield {"joint_convexity": (2.0, 0.4), "reward": 0.2}
        yield {"joint_convexity": (2.0, 0.4), "reward": 0.2, "order": "blocks"}


CASES = [(d, o) for d in ["squared", *EXPONENTIAL] for o in options_of(d)]


@pytest.mark.parametrize(("divergence", "options"), CASES, ids=str)
def test_gradient_and_hessian_by_finite_differences(data, divergence, options):
    relevance, groups, theta, weight = data
    group_weight = np.where(groups == 4, 2.0, 0.7)
    objective = Retarget(
        relevance,
        groups=groups,
        divergence=divergence,
        sample_weight=weight,
        group_weight=group_weight,
        **options,
    )
    value, grad = objective.value_and_grad(theta)
    unit = max(1.0, abs(value))
    expected = numerical_gradient(lambda s: objective.value_and_grad(s)[0], theta, step=1e-4)
    np.testing.assert_allclose(grad, expected, atol=1e-7 * unit)
    [(factor, diagonal, U, S)] = objective.hessian(theta)
    hessian = factor * (np.diag(diagonal) + (U @ S @ U.T).toarray())
    columns = [
        numerical_gradient(lambda s, i=i: objective.value_and_grad(s)[1][i], theta) for i in range(len(theta))
    ]
    np.testing.assert_allclose(hessian, columns, atol=1e-7 * unit)
    assert np.abs(np.linalg.eigvalsh(hessian)).max() <= objective.smoothness + 1e-9


# the values of I-divergences are tested with their offset above
@pytest.mark.parametrize(("divergence", "options"), [c for c in CASES if c[0] in ("squared", "kl")], ids=str)
def test_value_is_the_cost_of_the_targets(data, divergence, options):
    """From ``targets`` and the definition: divergence, Lemma 8's terms and rewards, list by list."""
    relevance, groups, theta, _ = data
    objective = Retarget(relevance, groups=groups, divergence=divergence, **options)
    primal = objective.targets(theta).primal
    c_r, c_w = objective.target_penalty, objective.score_penalty
    atom, total = DIVERGENCES.get(divergence), 0.0
    for q in (4, 7, 1):
        rows = groups == q
        s, level = theta[rows], relevance[rows]
        offset = options.get("margin", 1.0) * level_offsets(level, options.get("offsets", "linear"))
        cost = float(atom.divergence(primal[rows], atom.grad_inv(s)))
        cost += c_r * float(atom.divergence(primal[rows], atom.grad_inv(offset))) if c_r else 0.0
        cost += 0.5 * c_w * float(((s - s.mean()) ** 2).sum())
        levels = np.unique(level)
        for low, high in pairwise(levels):
            gap = primal[rows][level == high].min() - primal[rows][level == low].max()
            cost -= options.get("reward", 0.0) * gap
        total += cost / (rows.sum() if options.get("normalize") else 1)
    assert objective.value_and_grad(theta)[0] == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize(("divergence", "options"), CASES, ids=str)
def test_no_other_targets_are_nearer(data, divergence, options):
    """Danskin's premise: with the targets of another point the cost at this one is not smaller."""
    relevance, groups, theta, _ = data
    objective = Retarget(relevance, groups=groups, divergence=divergence, **options)
    value = objective.value_and_grad(theta)[0]
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = objective.project(theta + rng.normal(size=len(theta)))
        moved = other._replace(theta=theta[other.rows])
        cost = objective._squared_cost(moved) if divergence == "squared" else objective._simplex_cost(moved)
        assert cost[0] >= value - 1e-12


def test_group_weights_are_repeated_groups(data):
    relevance, groups, theta, _ = data
    weight = np.select([groups == 4, groups == 7], [2.0, 0.0], 1.0)
    twice = np.concatenate([np.flatnonzero(groups != 7), np.flatnonzero(groups == 4)])
    names = np.concatenate([groups[groups != 7], np.full((groups == 4).sum(), 100)])
    for divergence in ("squared", "kl"):
        one = Retarget(relevance, groups=groups, group_weight=weight, divergence=divergence).value_and_grad(
            theta
        )
        two = Retarget(relevance[twice], groups=names, divergence=divergence).value_and_grad(theta[twice])
        assert one[0] == pytest.approx(two[0], rel=1e-12)
        np.testing.assert_allclose(one[1], np.bincount(twice, two[1], len(theta)), atol=1e-12)


def least_eigenvalue(objective, scores):
    [(factor, diagonal, U, S)] = objective.hessian(scores)
    return np.linalg.eigvalsh(factor * (np.diag(diagonal) + (U @ S @ U.T).toarray()))[0]


# two reversed pairs form two pooled blocks of equal targets; the softmax has weight on the third row only
TWO_BLOCKS = np.array([0.0, 1.0, 2.0, 3.0]), np.array([10.0, -10.0, 30.0, -29.9])


def test_lemma_8_is_needed():
    relevance, scores = TWO_BLOCKS
    without = Retarget(relevance, divergence="kl", margin=0.0, joint_convexity=False)
    assert not without.is_convex
    assert least_eigenvalue(without, scores) < -0.2
    some = Retarget(relevance, divergence="kl", margin=0.0, joint_convexity=(1.0, 0.1))
    assert not some.is_convex
    assert least_eigenvalue(some, scores) < -0.02
    enough = Retarget(relevance, divergence="kl", margin=0.0, joint_convexity=(1.0, 0.25))
    assert enough.is_convex
    assert least_eigenvalue(enough, scores) > -1e-12


def test_lemma_8_is_tight_on_the_simplex():
    """Targets of (nearly) 1/2 and 1/2 in two blocks, while the softmax has weight on the first row only."""
    y = 2.0
    scores = np.array([(1 + np.exp(8)) * y + 8 * np.exp(8), 0.0, 8 + y + 1e-3])
    for penalty, convex in ((0.245, False), (0.25, True)):
        objective = Retarget([0, 1, 2], divergence="kl", offsets=[0, 8, 8], joint_convexity=(1.0, penalty))
        assert objective.is_convex is convex
        assert bool(least_eigenvalue(objective, scores) > -1e-9) == convex


@pytest.mark.parametrize("weight", [[0.2] * 4, [1e-3, 1.0, 0.5, 2.0], [3.0, 1e-4, 1.0, 1.0]])
def test_weights_below_one_keep_the_bound_of_lemma_8(weight):
    relevance, scores = TWO_BLOCKS
    options = {"divergence": "kl", "margin": 0.0, "sample_weight": np.array(weight)}
    rng = np.random.default_rng(0)
    for penalties in ((1.0, 0.25), True):
        objective = Retarget(relevance, joint_convexity=penalties, **options)
        assert objective.is_convex
        for point in (scores, *rng.normal(scale=4, size=(20, 4))):
            assert least_eigenvalue(objective, point) > -1e-12
    assert not Retarget(relevance, joint_convexity=(1.0, 0.2), **options).is_convex


def test_without_margins_equal_scores_are_a_minimum(data):
    relevance, groups, _, _ = data
    for divergence in ("squared", "kl"):
        objective = Retarget(relevance, groups=groups, margin=0.0, divergence=divergence)
        assert objective.collapses
        value, grad = objective.value_and_grad(np.full(len(groups), 3.0))
        assert value == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(grad, 0, atol=1e-12)
    assert not Retarget(relevance, groups=groups).collapses
    assert not Retarget(relevance, groups=groups, margin=0.0, reward=1.0).collapses


def test_groups_of_one_relevance_and_rows_of_weight_0_say_nothing(data):
    relevance, groups, theta, _ = data
    objective = Retarget(relevance, groups=groups, order="blocks")
    assert objective.n_groups == 3
    np.testing.assert_array_equal(objective.value_and_grad(theta)[1][groups == 9], 0)
    np.testing.assert_array_equal(objective.targets(theta).natural[groups == 9], theta[groups == 9])
    alone = Retarget([1, 0, 0], groups=["a", "a", "b"])
    assert alone.value_and_grad(np.zeros(3))[0] == pytest.approx(0.25)


def test_margins_scale_the_squared_objective(data):
    relevance, groups, theta, _ = data
    one, five = (Retarget(relevance, groups=groups, margin=m) for m in (1.0, 5.0))
    assert five.value_and_grad(5 * theta)[0] == pytest.approx(25 * one.value_and_grad(theta)[0], rel=1e-12)


def test_large_levels_are_sorted_too():
    rng = np.random.default_rng(0)
    relevance, groups = rng.integers(0, 2, 500).astype(float), rng.integers(0, 3, 500)
    lists, values = LevelOrder(relevance, groups), rng.normal(size=500).round(1)
    number = np.repeat(np.arange(len(lists.levels) - 1), np.diff(lists.levels))
    np.testing.assert_array_equal(lists.sort(values), np.lexsort((values, number)))


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ("linear", [0, 1, 4]),
        ("gain", [0, 1, 15]),
        ("sqrt", [0, 1, 2]),
        ("binary", [0, 1, 1]),
        ([0, 2, 2, 3, 9], [0, 2, 9]),
        (lambda r: r**2, [0, 1, 16]),
    ],
)
def test_offsets(offsets, expected):
    np.testing.assert_allclose(level_offsets(np.array([0.0, 1.0, 4.0]), offsets), expected)


def test_signs_of_square_roots():
    np.testing.assert_allclose(level_offsets(np.array([-4.0, 0.0, 1.0]), "sqrt"), [-2, 0, 1])


@pytest.mark.parametrize(
    ("relevance", "options", "message"),
    [
        ([1, 1, 1], {}, "no pair to rank"),
        ([0, np.nan, 1], {}, "missing or infinite in row 1"),
        ([0, np.inf, 1], {}, "missing or infinite in row 1"),
        (["a", "b", "c"], {}, "must be numbers"),
        ([[0, 1, 2]], {}, "one number per row"),
        ([0, 1, 2], {"margin": -1}, "`margin` must be"),
        ([0, 1, 2], {"reward": -1}, "`reward` must be"),
        ([0, 1, 2], {"order": "total"}, "order must be 'hidden' or 'blocks'"),
        ([0, 1, 2], {"divergence": "euclid"}, "unknown `divergence`"),
        ([0, 1, 2], {"divergence": "itakura-saito"}, "natural parameters are negative"),
        ([0, 1, 2], {"divergence": "logistic"}, "not convex"),
        ([0, 1, 2], {"divergence": Squared(weight=(1.0, 2.0, 3.0))}, "use `sample_weight`"),
        ([0, 1, 2], {"offsets": "cubic"}, "unknown `offsets`"),
        ([0, 1, 2], {"offsets": [0, 1]}, "for relevance 0 to 1"),
        ([0, 1, 2.5], {"offsets": [0, 1, 2]}, "other values"),
        ([0, 1, 2], {"offsets": [0, 2, 1]}, "must not fall"),
        ([0, 1, 2], {"offsets": [[0], [2]]}, "list of numbers"),
        ([0, 1, 2], {"offsets": lambda r: -r}, "must not fall"),
        ([0, 1, 2], {"offsets": lambda r: r[:2]}, "one finite number for each relevance"),
        ([0, 1, 2000], {"offsets": "gain"}, "smaller grades"),
        ([0, 1, 2000], {"divergence": "kl"}, "too wide"),
        ([0, 1, 2], {"joint_convexity": 3}, "`joint_convexity` must be"),
        ([0, 1, 2], {"joint_convexity": (-1, 1), "divergence": "kl"}, "C_r of joint_convexity"),
        ([0, 1, 2], {"sample_weight": [1, -1, 1]}, "`sample_weight` needs"),
        ([0, 1, 2], {"sample_weight": [1, 1]}, "`sample_weight` needs"),
        ([0, 1, 2], {"group_weight": [1, 2, 1]}, "the same for all rows of a group"),
        ([0, 1, 2], {"groups": [0, 1]}, "one id per row"),
        ([0, 1, 2], {"bounds": (0, 1)}, "no room for margins of 2"),
        ([0, 1, 2], {"bounds": (3, 0)}, "two numbers in order"),
        ([0, 1, 2], {"bounds": (0, 1, 2)}, "two numbers in order"),
        ([0, 1, 2], {"bounds": ("a", 2)}, "two numbers in order"),
        ([0, 1, 2], {"bounds": 3.0}, "two numbers in order"),
        ([0, 1, 2], {"bounds": (np.nan, 5)}, "two numbers in order"),
        ([0, 1, 2], {"bounds": (0, 9), "divergence": "kl"}, "kl takes no bounds"),
        ([0, 1, 2], {"bounds": (0, None), "divergence": "i-divergence"}, "i-divergence takes no bounds"),
    ],
)
def test_bad_input(relevance, options, message):
    with pytest.raises(InputError, match=message):
        Retarget(relevance, **options)
