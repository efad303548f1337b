"""The rank at ratio 1 against high-precision linear algebra, the power iteration and the published vectors."""

from itertools import pairwise
from math import inf

import numpy as np
import pytest

from apexrank.errors import InputError
from apexrank.graph.lp_equation import LpRoot
from apexrank.graph.lp_root import solve_ratio_one
from tests.graph import exact


def solve(W, v, p, damping=0.85, **options):
    """Rank for the dense weights W[source, target]."""
    options = {"tol": 1e-9, "max_iter": 5000, "single": (W > 0).sum(axis=1) == 1} | options
    d = W.sum(axis=1, keepdims=True)
    B = (damping * np.divide(W, d, where=d > 0, out=np.zeros_like(W)).T) ** p
    return solve_ratio_one(LpRoot(lambda y: B @ y, v, d[:, 0] == 0, p, damping, **options))


def exact_rank(W, v, p):
    return np.array([float(x) for x in exact.lp_root(W, 0.85, v, p, digits=int(40 + 4 * p))])


def random_graph(seed):
    """Dangling and isolated vertices, self-loops, cycles of single links, weights, reducible and undirected graphs."""
    rng = np.random.default_rng(seed)
    n = int(1 + 40 * rng.random() ** 3)
    W = (rng.random((n, n)) < rng.choice([0.5, 1, 2, 4, 8]) / n).astype(float)
    kind = seed % 6
    if kind == 0:
        np.fill_diagonal(W, 0)
    elif kind == 1:
        cycle = rng.permutation(n)[: rng.integers(1, n + 1)]
        W[cycle] = 0
        W[cycle, np.roll(cycle, 1)] = 1
    elif kind == 2:
        W = np.triu(W)
    elif kind == 3:
        W *= rng.random((n, n))
    elif kind == 4:
        W = np.zeros((n, n))
        W[np.arange(n), rng.integers(0, n, n)] = rng.random(n) < 0.8
    else:
        W = np.maximum(W, W.T)
    v = np.ones(n) if rng.random() < 0.5 else rng.random(n) * (rng.random(n) < 0.4)
    v[0] += 0.0 if v.any() else 1.0
    return W, v / v.sum()


def plain_iteration(W, v, p, damping, steps):
    """The nonlinear power iteration."""
    d = W.sum(axis=1)
    share = np.divide(W, d[:, None], where=d[:, None] > 0, out=np.zeros_like(W)).T
    r = v
    for _ in range(steps):
        tau = (1 - damping) * r.sum() + damping * r[d == 0].sum()
        r = (((damping * share * r) ** p).sum(axis=1) + (v * tau) ** p) ** (1 / p)
        r = r / r.sum()
    return r


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, 8.0])
@pytest.mark.parametrize("part", range(3))
@pytest.mark.slow
def test_bounds_hold_and_are_met_on_random_graphs(p, part):
    for seed in range(10 * part, 10 * part + 10):
        W, v = random_graph(seed)
        solution = solve(W, v, p)
        truth = exact_rank(W, v, p)
        support = truth > 0
        assert solution.converged, seed
        assert solution.error_bound <= 1e-9, seed
        assert np.abs(solution.scores - truth).sum() <= solution.error_bound + 1e-14, seed
        assert not solution.scores[~support].any(), seed
        relative = np.abs(np.log(solution.scores[support] / truth[support])).max()
        assert relative <= solution.relative_bound + 1e-13, seed


def test_solution_is_a_fixed_point_with_its_mu():
    W, v = random_graph(9)
    solution = solve(W, v, 3.0, tol=1e-12)
    assert len(v) > 20
    d = W.sum(axis=1)
    r, share = solution.scores, np.divide(W, d[:, None], where=d[:, None] > 0, out=np.zeros_like(W)).T
    tau = 0.15 + 0.85 * r[d == 0].sum()
    image = (((0.85 * share * r) ** 3).sum(axis=1) + (v * tau) ** 3) ** (1 / 3)
    np.testing.assert_allclose(image, solution.mu ** (1 / 3) * r, rtol=1e-10)


def self_loops(n):
    """Page 0 links to itself only, 1 and 2 to each other only, the others to three pages each."""
    W = np.zeros((n, n))
    W[0, 0] = W[1, 2] = W[2, 1] = 1
    for i in range(3, n):
        W[i, [(7 * i + 3) % n, (5 * i + 1) % n, (i + 11) % n]] = 1
    return W, np.full(n, 1 / n)


@pytest.mark.slow
@pytest.mark.parametrize("p", [2.0, 8.0, 16.0])
def test_gap_far_below_rounding(p):
    W, v = self_loops(30)
    solution = solve(W, v, p)
    truth = exact_rank(W, v, p)
    assert solution.converged
    assert solution.n_iter < 120
    assert np.abs(solution.scores - truth).sum() <= solution.error_bound
    assert 0 < solution.gap < 10 ** (-1.5 * p)
    assert solution.mu == pytest.approx(0.85**p, rel=2 * solution.gap + 1e-14)


@pytest.mark.parametrize("n", [30, 300])
def test_powers_beyond_floating_point(n):
    """One page links to itself, two are dangling and linked by all others: λ equals α up to a gap of 1e-100."""
    W = np.zeros((n, n))
    W[0, 0] = 1
    W[3:, 1:3] = 1
    solution = solve(W, np.full(n, 1 / n), 64.0)
    z = np.full(n, 1 / (0.85 * n))
    z[0] = (1 - 0.15 * z[3:].sum() - z[1:3].sum()) / 0.15
    np.testing.assert_allclose(solution.scores, z / z.sum(), rtol=1e-13)
    assert solution.converged
    assert 0 < solution.gap < 1e-100


@pytest.mark.parametrize("weight", [1e-1, 1e-3, 1e-6, 1e-9, 1e-13])
@pytest.mark.parametrize("p", [2.0, 3.0, 8.0])
@pytest.mark.slow
def test_bound_stays_true_for_growth_factors_that_nearly_tie(weight, p):
    W, v = self_loops(30)
    W[0, 3] = weight
    solution = solve(W, v, p, max_iter=1500)
    error = np.abs(solution.scores - exact_rank(W, v, p)).sum()
    assert error <= solution.error_bound + 1e-14
    assert solution.converged == (solution.error_bound <= 1e-9)


def test_long_cycles_and_zero_entries():
    n = 23
    W = np.zeros((n, n))
    for i, j in [*pairwise(range(17)), (16, 0), (17, 18), (18, 17), (19, 0), (19, 17), (20, 21)]:
        W[i, j] = 1
    v = np.zeros(n)
    v[[3, 19]] = 0.25, 0.75
    solution = solve(W, v, 8.0)
    truth = exact_rank(W, v, 8.0)
    assert solution.converged
    assert np.abs(solution.scores - truth).sum() <= solution.error_bound + 1e-14
    assert not solution.scores[20:].any()


def test_a_fading_class_that_is_empty_every_other_step_counts_in_the_bound():
    # undirected: two pairs, and two stars that start from their leaves, so that centre and leaves take turns
    W = np.zeros((12, 12))
    for i, j in [(0, 1), (2, 3), (4, 5), (4, 6), (7, 8), (7, 9), (7, 10)]:
        W[i, j] = W[j, i] = 1
    v = np.array([1, 2, 1, 0, 0, 3, 3, 0, 2, 2, 2, 0]) / 16
    truth = exact_rank(W, v, 2.0)
    for tol in (1e-2, 1e-4, 1e-6, 1e-8, 1e-10):
        solution = solve(W, v, 2.0, tol=tol)
        assert solution.converged
        assert np.abs(solution.scores - truth).sum() <= solution.error_bound + 1e-14


def test_few_steps_where_the_plain_iteration_crawls():
    W, v = self_loops(150)
    solution = solve(W, v, 3.0)
    truth = solve(W, v, 3.0, tol=1e-11).scores
    assert solution.n_iter < 100
    assert np.abs(plain_iteration(W, v, 3.0, 0.85, 400) - truth).sum() > 1e-4
    assert np.abs(solution.scores - truth).sum() < 1e-9


def test_all_dangling_and_single_vertex():
    v = np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(solve(np.zeros((3, 3)), v, 2.0).scores, v, rtol=1e-14)
    one = solve(np.ones((1, 1)), np.ones(1), 2.0)
    assert one.converged
    assert one.mu == pytest.approx(0.85**2 + 0.15**2)


def test_steps_are_counted_and_reported():
    W, v = random_graph(9)
    calls, seen = [], []
    d = W.sum(axis=1)
    B = (0.85 * np.divide(W, d[:, None], where=d[:, None] > 0, out=np.zeros_like(W)).T) ** 2

    def apply_B(y):
        assert (y >= 0).all()
        calls.append(1)
        return B @ y

    problem = LpRoot(apply_B, v, d == 0, 2, 0.85, progress=lambda *args: seen.append(args))
    solution = solve_ratio_one(problem)
    assert solution.converged
    assert len(calls) == solution.n_iter == len(seen)
    assert [k for k, _ in seen] == list(range(1, solution.n_iter + 1))
    bounds = [bound for _, bound in seen]
    assert bounds[0] == inf
    assert bounds == sorted(bounds, reverse=True)


def test_a_series_from_a_bad_guess_is_given_up():
    """Nearly alternating terms (eigenvalues 0.72 and −0.61) used to take a thousand steps."""
    W = np.array([[0.0, 0.0, 0.25], [0.5, 0.5, 0.0], [0.5, 0.0, 0.25]])
    solution = solve(W, np.full(3, 1 / 3), 2.0, tol=1e-9, max_iter=1000)
    assert solution.converged


@pytest.mark.parametrize("max_iter", [0, 2, 10])
def test_out_of_steps_is_said(max_iter):
    W, v = self_loops(30)
    solution = solve(W, v, 8.0, max_iter=max_iter)
    assert not solution.converged
    assert solution.n_iter == max_iter
    assert solution.error_bound == inf
    assert solution.scores.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"damping": 1.0}, "`damping` must lie between 0 and 1"),
        ({"p": 500.0}, "p = 500 is too large for ratio 1"),
    ],
    ids=["damping", "large p"],
)
def test_bad_input(change, message):
    arguments = {
        "v": np.full(2, 0.5),
        "dangling": np.zeros(2, dtype=bool),
        "p": 2.0,
        "damping": 0.85,
    } | change
    with pytest.raises(InputError, match=message):
        solve_ratio_one(LpRoot(lambda y: 0.0 * y, **arguments))
