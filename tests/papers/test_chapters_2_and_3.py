"""Claims of Acharyya 2013, chapters 2 and 3, that no other test covers: confirmations and counterexamples."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, rel_entr, softmax

from apexrank.divergences import KL, IDivergence, ItakuraSaito, Logistic, Squared
from apexrank.kernels.pav import pav
from apexrank.objectives.retarget import Retarget
from apexrank.projections import onto_hyperplane

ATOMS = [Squared(), IDivergence(), ItakuraSaito(), Logistic()]
atoms = pytest.mark.parametrize("atom", ATOMS, ids=lambda atom: atom.name)


def inside(seed, n):
    """Points in the domain of every atom."""
    return np.random.default_rng(seed).uniform(0.05, 0.95, n)


def hessian(objective, scores):
    [(factor, diagonal, U, S)] = objective.hessian(scores)
    return factor * (np.diag(diagonal) + (U @ S @ U.T).toarray())


def test_example_1_the_image_of_the_relative_gradient_is_a_hyperplane():
    """Its entries sum to 0, so footnote 1's "whole of R^n" is too large; the link is still a softmax."""
    p = softmax(np.random.default_rng(0).normal(size=(20, 4)), axis=1)
    relative = np.log(p) - np.log(p).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(relative.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(softmax(relative, axis=1), p)
    np.testing.assert_allclose(KL().conjugate(relative[0]), logsumexp(relative[0]))


def test_example_2_is_the_kl_divergence_of_completed_distributions():
    def phi(p):
        rest = 1 - p.sum()
        return float((p * np.log(p)).sum() + rest * np.log(rest))

    p, q = (softmax(np.random.default_rng(seed).normal(size=4))[:3] for seed in (0, 1))
    found = phi(p) - phi(q) - np.log(q / (1 - q.sum())) @ (p - q)
    whole = [np.append(x, 1 - x.sum()) for x in (p, q)]
    assert found == pytest.approx(rel_entr(*whole).sum())
    assert found != pytest.approx(rel_entr(p, q).sum())


@atoms
def test_lemma_2_on_two_parallel_hyperplanes(atom):
    """The last equation lacks a term: D(P₂‖y) = D(P₁‖y) + D(P₂‖P₁) + λ₁(b₂ − b₁)."""
    a, y = np.array([1.0, 2.0, -0.5]), inside(0, 3)
    bounds = a @ y + np.array([0.05, 0.1])
    one, two = (onto_hyperplane(atom, y, a, b, natural=False) for b in bounds)
    multipliers = [(atom.grad(p) - atom.grad(y)) / a for p in (one, two)]
    for p, b, own in zip((one, two), bounds, multipliers, strict=True):
        np.testing.assert_allclose(own, own[0], rtol=1e-7)
        assert atom.divergence(p, y) + atom.divergence(y, p) == pytest.approx(own[0] * (b - a @ y))
    assert 0 < multipliers[0][0] <= multipliers[1][0]
    lacking = multipliers[0][0] * np.diff(bounds)[0]
    parts = atom.divergence(one, y) + atom.divergence(two, one)
    assert atom.divergence(two, y) == pytest.approx(parts + lacking)
    assert lacking > 0.1 * atom.divergence(two, y)


def test_lemmas_3_and_4_triangular_matrices_give_all_descending_vectors():
    rng, v = np.random.default_rng(0), np.array([2.0, 0.5, 1.0, 3.0])
    U = np.triu(np.tile(v, (4, 1)))
    T = np.triu(np.tile(1 / np.arange(1.0, 5.0), (4, 1)))
    for _ in range(20):
        down = -np.sort(rng.normal(size=4))
        assert (np.linalg.solve(U, down)[:-1] >= 0).all()
        assert (np.diff(U @ np.append(rng.random(3), rng.normal())) <= 0).all()
        down = -np.sort(-rng.dirichlet(np.ones(4)))
        x = np.linalg.solve(T, down)
        assert x.min() >= -1e-12
        assert x.sum() == pytest.approx(1)
        made = T @ rng.dirichlet(np.ones(4))
        assert (np.diff(made) <= 1e-15).all()
        assert made.sum() == pytest.approx(1)


def test_table_3_1_with_unequal_weights_is_no_divergence():
    """wKL may be negative on the simplex, and the links are those of equal weights."""
    x, y, w = np.array([0.5, 0.5]), np.array([0.25, 0.75]), np.array([1.0, 3.0])
    assert (w * rel_entr(x, y)).sum() < -0.2
    weighted = Squared(weight=tuple(w))
    np.testing.assert_allclose(weighted.grad_inv(weighted.grad(x)), x)
    np.testing.assert_allclose(weighted.grad(x), w * x)  # so that the link is x/w, not x


@atoms
@pytest.mark.parametrize(
    "weight", [np.ones(6), np.array([1.0, 3.0, 0.5, 2.0, 1.0, 4.0])], ids=["equal", "weights"]
)
def test_proposition_1_the_second_argument_does_not_see_the_divergence(atom, weight):
    """With weights, the minimiser of D(x‖y) over ordered y is the weighted PAV of x for every φ."""
    x = inside(3, 6)
    best = pav(x, weight=weight)
    cost = lambda y: float((weight * [atom.divergence([a], [b]) for a, b in zip(x, y, strict=True)]).sum())  # noqa: E731
    gaps = {"type": "ineq", "fun": np.diff}
    found = minimize(
        cost, np.full(6, x.mean()), constraints=gaps, bounds=[(0.01, 0.99)] * 6, options={"ftol": 1e-14}
    )
    np.testing.assert_allclose(best, found.x, atol=1e-4)
    assert cost(best) <= found.fun + 1e-9


def test_corollary_1_is_not_about_essentially_smooth_functions():
    """−log x is, but its conjugate is finite only for negative numbers; for x²/2 on [0, 1] the reverse holds."""
    burg = ItakuraSaito()
    assert abs(burg.grad([1e-8])[0]) > 1e7  # grows without bound towards the edge of the domain
    assert burg.theta_upper == 0
    box = lambda t: np.clip(t, 0, 1) * t - np.clip(t, 0, 1) ** 2 / 2  # noqa: E731
    assert np.isfinite(
        box(np.array([-1e6, 1e6]))
    ).all()  # a conjugate on all numbers, of a slope that stays below 1


@atoms
def test_lemma_5_sorting_is_optimal_with_equal_weights_only(atom):
    for seed in range(30):
        x, y = np.sort(inside(seed, (2, 2)))
        assert atom.divergence(x, y) <= atom.divergence(x, y[::-1]) + 1e-12
        assert atom.divergence(y, x) <= atom.divergence(y[::-1], x) + 1e-12
    w, x = (
        np.array([1.0, 9.0]),
        np.array([0.5, 0.4]),
    )  # the row of weight 9 takes the nearer value, not the smaller
    cost = lambda y: float(sum(u * atom.divergence([a], [b]) for u, a, b in zip(w, x, y, strict=True)))  # noqa: E731
    assert cost(np.array([0.1, 0.4])) < cost(np.array([0.4, 0.1]))


def test_theorem_1_holds_for_every_quadratic_form():
    """φ = ½xᵀQx: the gap is ½|Q^½x − Q^−½y|², jointly convex although φ is not a multiple of |x|²."""
    Q = np.diag([1.0, 4.0])
    joint = np.block([[Q, -np.eye(2)], [-np.eye(2), np.linalg.inv(Q)]])
    assert np.linalg.eigvalsh(joint)[0] > -1e-12
    entropy = lambda x, y: np.array([[1 / x, -1.0], [-1.0, np.exp(y)]])  # noqa: E731
    assert np.linalg.eigvalsh(entropy(2.0, 0.0))[0] < -0.1  # and fails for the I-divergence


def test_lemma_7_needs_the_sizes_of_the_blocks():
    """Two rows of level 0 at 3 and one of level 1 at 0 share the target 2; the printed projection is at 1.5."""
    objective = Retarget([0, 0, 1], order="blocks", margin=0.0)
    np.testing.assert_allclose(objective.targets(np.array([3.0, 3.0, 0.0])).natural, 2.0)
    np.testing.assert_allclose(pav([3.0, 0.0]), 1.5)
    cost = lambda q: 2 * (q - 3) ** 2 + q**2  # noqa: E731
    assert cost(2.0) < cost(1.5)


def test_equation_3_20_is_the_hessian_only_where_nothing_is_pooled():
    """As printed it is 0 for the squared divergence; a pooled pair has the curvature of its difference."""
    objective = Retarget([0, 1], margin=0.0)
    assert not hessian(objective, np.array([0.0, 1.0])).any()
    np.testing.assert_allclose(hessian(objective, np.array([1.0, 0.0])), [[0.5, -0.5], [-0.5, 0.5]])


def test_lemma_10_bounds_the_curvature_by_a_negative_number():
    """s = L = 1 and C_r = C_w = 0 satisfy Lemma 8.

    The correct bound is |A|²(1/s + C_w) + C, here per row of the list.
    """
    s, c_r, c_w, ridge = 1.0, 0.0, 0.0, 0.1
    assert s * (c_r + 1) * (c_w + 1) >= 1
    largest = np.linalg.eigvalsh(hessian(Retarget([0, 1], margin=0.0), np.array([1.0, 0.0])))[-1] + ridge
    printed = 1.0 * (c_w - 1 / (s * (1 + c_r))) + ridge
    assert printed < 0 < largest <= 1.0 * (1 / s + c_w) + ridge


def test_lemma_11_fails_for_the_squared_divergence():
    """Its conjugate has a constant Hessian, but that of G jumps where a block splits."""
    objective = Retarget([0, 1], margin=0.0)
    for step in (1e-3, 1e-9):
        jump = hessian(objective, np.array([step, 0.0])) - hessian(objective, np.array([-step, 0.0]))
        assert np.abs(jump).max() == pytest.approx(0.5)


def test_corollary_9_needs_the_shares_of_the_parts():
    variance = lambda x: float(np.mean((x - np.mean(x)) ** 2))  # noqa: E731
    one, two = np.array([-1.0, 1.0]), np.array([-1.1, 1.1])
    whole = variance(np.concatenate([one, two]))
    assert whole < variance(one) + variance(two)
    assert whole >= 0.5 * variance(one) + 0.5 * variance(two) - 1e-12
