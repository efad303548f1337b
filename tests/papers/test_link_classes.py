"""Claims of Acharyya 2013, chapter 4, with their status (docs/notes-on-the-papers.md)."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import chi2, poisson

from apexrank.kernels.lipschitz import lipschitz_isotonic_link
from apexrank.objectives.link import UnknownLink
from apexrank.rankers.link import Link, UnknownLinkRegressor
from apexrank_papers.link.classes import class_cost, class_interval, smooth_cost

CLASSES = {
    "C^s": lambda theta, y: UnknownLink(y, strong_convexity=0.5).value_and_grad(theta),
    "C_l": lambda theta, y: smooth_cost(theta, y, 2.0),
    "C_l^s": lambda theta, y: class_cost(theta, y, 0.5, 2.0),
}
SLOPES = {"C^s": (0.5, np.inf), "C_l": (0.0, 2.0), "C_l^s": (0.5, 2.0)}


def least_cost(theta, y, s, lipschitz, step=0.02):
    """Linear programme over φ on a grid, with second differences between s and l."""
    cp = pytest.importorskip("cvxpy", reason="cvxpy solves the linear programme")
    v = np.arange(round((y.min() - 2) / step), round((y.max() + 2) / step) + 1) * step
    phi, conjugate = cp.Variable(len(v)), cp.Variable(len(theta))
    bend = (phi[2:] - 2 * phi[1:-1] + phi[:-2]) / step**2
    constraints = [bend >= s, phi[0] == 0] + ([bend <= lipschitz] if np.isfinite(lipschitz) else [])
    constraints += [conjugate[i] >= t * v - phi for i, t in enumerate(theta)]
    at = np.round((y - v[0]) / step).astype(int)
    cost = cp.sum(phi[at]) + cp.sum(conjugate) - y @ theta
    return cp.Problem(cp.Minimize(cost), constraints).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("seed", range(2))
def test_costs_are_those_of_the_best_convex_function(name, seed):
    rng = np.random.default_rng(seed)
    y, theta = np.round(rng.normal(size=4) * 50) / 50, 1.5 * rng.normal(size=4)
    # the grid restricts φ* further, and loses at most (1/s)·step² per row
    assert CLASSES[name](theta, y)[0] == pytest.approx(least_cost(theta, y, *SLOPES[name]), abs=1e-3)


@pytest.mark.parametrize("name", CLASSES)
def test_costs_are_convex_with_their_gradients(name):
    """Theorem 4 and corollary 3: over each class the cost is convex in θ. Lemma 13: 1/s-Lipschitz, at most."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=6)
    for _ in range(20):
        a, b = 2 * rng.normal(size=(2, 6))
        (va, ga), (vb, gb), (middle, _) = (CLASSES[name](t, y) for t in (a, b, (a + b) / 2))
        assert middle <= (va + vb) / 2 + 1e-8
        assert vb >= va + ga @ (b - a) - 1e-8  # a subgradient
        if SLOPES[name][0] > 0:
            assert np.linalg.norm(ga - gb) <= np.linalg.norm(a - b) / 0.5 + 1e-6
        error = check_grad(lambda t: CLASSES[name](t, y)[0], lambda t: CLASSES[name](t, y)[1], a)
        assert error < 1e-4


def test_costs_shrink_with_the_class():
    rng = np.random.default_rng(2)
    for _ in range(10):
        y, theta = rng.normal(size=(2, 5))
        both = CLASSES["C_l^s"](theta, y)[0]
        assert both >= max(CLASSES[name](theta, y)[0] for name in ("C^s", "C_l")) - 1e-8
        wide = class_cost(theta, y, 0.5, 1e6)[0]
        assert wide == pytest.approx(CLASSES["C^s"](theta, y)[0], abs=1e-4)


def test_the_cost_bounds_the_squared_error_of_the_best_link():
    """Section 4.6: D_φ ≥ (s/2)·|y − g(θ)|² for the φ that is best, hence for the best 1/s-Lipschitz link."""
    rng = np.random.default_rng(3)
    for s in (0.2, 1.0, 5.0):
        y, theta = rng.normal(size=(2, 30))
        missed = y - np.interp(theta, *lipschitz_isotonic_link(theta, y, 1 / s))
        assert UnknownLink(y, strong_convexity=s).value_and_grad(theta)[0] >= s / 2 * missed @ missed


# ---------------------------------------------------------------- intervals


@pytest.mark.parametrize(("s", "lipschitz"), [(0.5, np.inf), (0.0, 4.0), (0.5, 4.0)])
def test_intervals_hold_every_link_of_the_class(s, lipschitz):
    link, rng = Link([0.0, 1.0, 3.0], [0.0, 0.5, 2.0]), np.random.default_rng(0)
    lowest, highest = 1 / lipschitz, 1 / s if s else 30.0
    for a, b in ((0, 1), (1, 2)):
        theta = np.linspace(link.knots[a], link.knots[b], 41)
        chord = (link.values[b] - link.values[a]) / (link.knots[b] - link.knots[a])
        low, high = class_interval(link, theta, s, lipschitz)
        seen = []
        for order in (np.arange(40), np.arange(40)[::-1], *(rng.permutation(40) for _ in range(20))):
            # as steep as allowed in some places, as flat as allowed in the others, and correct on average
            steep = round(40 * (chord - lowest) / (highest - lowest), 9)
            slopes = np.where(order < int(steep), highest, lowest)
            slopes = np.where(order == int(steep), lowest + (steep % 1) * (highest - lowest), slopes)
            seen.append(
                link.values[a] + np.append(0, np.cumsum(slopes)) * (link.knots[b] - link.knots[a]) / 40
            )
        assert (np.min(seen, axis=0) >= low - 1e-9).all()
        assert (np.max(seen, axis=0) <= high + 1e-9).all()
        if s > 0:  # the two extreme links are among them, but for the one place where the slope changes
            assert np.abs(np.max(seen, axis=0) - high).max() < highest * 2 / 40
            assert np.abs(np.min(seen, axis=0) - low).max() < highest * 2 / 40
    if lipschitz == np.inf:
        inside = np.linspace(0, 3, 50)
        expected = Link(link.knots, link.values, 1 / s).interval(inside)
        np.testing.assert_allclose(class_interval(link, inside, s), expected, atol=1e-12)


@pytest.mark.parametrize("gamma", [2.0, 3.0, 4.0])
def test_uniformly_convex_functions_have_hölder_continuous_links(gamma):
    """(4.7) for φ = |v|^γ: its modulus is δ(1)·t^γ, and so s = δ(1)^{1/(γ−1)}. (4.6) holds with 2δ, too."""
    x, share = np.meshgrid(np.linspace(-3, 2, 501), np.linspace(0.001, 0.999, 500))
    middle = np.abs(share * x + (1 - share) * (x + 1)) ** gamma
    bend = (share * np.abs(x) ** gamma + (1 - share) * np.abs(x + 1) ** gamma - middle) / (
        share * (1 - share)
    )
    modulus = bend.min()
    assert modulus > (
        0.99 if gamma == 2 else 0.1
    )  # for v², which is 2-strongly convex, it is (s/2)·t², not s·t²
    s = modulus ** (1 / (gamma - 1))
    a, b = np.meshgrid(np.linspace(-4, 4, 161), np.linspace(-4, 4, 161))

    def inverse(t):
        return np.sign(t) * (np.abs(t) / gamma) ** (1 / (gamma - 1))

    gap = np.abs(inverse(a) - inverse(b))
    assert (gap <= np.abs(a - b) ** (1 / (gamma - 1)) / s + 1e-12).all()
    assert ((a - b) * (inverse(a) - inverse(b)) >= 2 * modulus * gap**gamma - 1e-9).all()
    knots = np.array([-1.0, 0.3, 2.0])
    theta = np.linspace(-1, 2, 61)
    low, high = class_interval(Link(knots, inverse(knots)), theta, s, gamma=gamma)
    assert ((low <= inverse(theta) + 1e-12) & (inverse(theta) <= high + 1e-12)).all()


# ---------------------------------------------------------------- theorems


def test_theorem_5_is_false():
    """The cost is not jointly convex in φ* and θ: φ* = c·t²/2 and y = 0 give c·θ²/2."""

    def cost(c, theta, y=0.0):
        return (c * theta - y) ** 2 / (2 * c)

    assert cost(3, 1) > (cost(1, 2) + cost(5, 0)) / 2
    assert cost(2, 1) <= (cost(1, 1) + cost(3, 1)) / 2  # for one θ it is convex, which Theorem 6 needs


def test_lemma_17_is_false_and_what_holds():
    """For y = Xu every w in [s, l] costs nothing, so w = s whatever the penalty; |u − w| grows with the rows."""
    x, s, lipschitz = np.linspace(-1, 1, 1001), 0.5, 2.0
    assert class_cost(s * x[::50], x[::50], s, lipschitz)[0] == pytest.approx(0, abs=1e-9)
    assert (1 - s) * np.linalg.norm(x) > 2 * lipschitz * np.sqrt(2 * 0.5 / s)
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(300, 4)), np.array([1.0, -2.0, 0.5, 0.3])
    y = np.tanh(X @ u)  # a 1-Lipschitz link: in the class for s = 1
    for alpha in (1e-3, 1e-1, 1.0):
        model = UnknownLinkRegressor(1.0, alpha=alpha, refine=False, tol=1e-10).fit(X, y)
        missed = y - model.fitted_
        assert missed @ missed <= 300 * alpha * u @ u  # (s/2)·|y − ĝ(Xw)|² ≤ n·alpha/2·|u|²


def test_theorem_16_is_false_and_what_holds():
    """P(|y| > 3) of ten normal variables is 0.53, the bound 0.011; P(y in A) ≤ exp(−inf_A D_φ) holds for convex A."""
    assert chi2(10).sf(9) == pytest.approx(0.532, abs=5e-4)
    assert np.exp(-9 / 2) == pytest.approx(0.011, abs=2e-4)
    # a fair sign: P(|y| ≥ 1) = 1, and the negative entropy is 1-strongly convex
    assert np.exp(-1 / 2) < 1
    for mean in (0.5, 3.0, 20.0):
        for k in range(int(mean) + 1, int(mean) + 30):
            assert poisson(mean).sf(k - 1) <= np.exp(-(k * np.log(k / mean) - k + mean)) * (1 + 1e-9)
