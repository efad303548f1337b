"""Identities of Bregman divergences, and their accuracy against 60-digit arithmetic."""

from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from apexrank.divergences import (
    DIVERGENCES,
    KL,
    IDivergence,
    ItakuraSaito,
    Logistic,
    Separable,
    ShiftedIDivergence,
    Squared,
)
from apexrank.errors import InputError
from tests.oracles import numerical_gradient

W = (0.3, 2.0, 1.0, 5.0)
SEPARABLE = [
    Squared(),
    Squared(weight=W),
    IDivergence(),
    IDivergence(weight=W),
    ShiftedIDivergence(),
    ItakuraSaito(),
    ItakuraSaito(weight=W),
    Logistic(),
]
ATOMS = [*SEPARABLE, KL()]
SHIFT = {"shifted-i-divergence": 1.0}


def label(atom):
    return atom.name + ("-weighted" if getattr(atom, "weight", None) else "")


def points(atom, seed, n=1, size=4):
    """Points inside the domain."""
    u = np.random.default_rng(seed).uniform(0.05, 0.95, size=(n, size))
    if atom.name == "kl":
        u /= u.sum(axis=1, keepdims=True)
    scale = 1.0 if atom.name in ("kl", "logistic") else 3.0
    return scale * u + SHIFT.get(atom.name, 0.0)


def along(atom, v):
    """A direction that stays in the affine hull of the domain."""
    return v - v.mean() if atom.name == "kl" else v


@pytest.fixture(params=ATOMS, ids=label)
def atom(request):
    return request.param


def definition(atom, x, y):
    return atom.phi(x) - atom.phi(y) - atom.grad(y) @ (x - y)


def test_the_divergence_is_its_definition(atom):
    x, y = points(atom, 0), points(atom, 1)
    np.testing.assert_allclose(
        atom.divergence(x[0], y[0]), definition(atom, x[0], y[0]), rtol=1e-12, atol=1e-14
    )


def test_grad_is_the_derivative_of_phi(atom):
    x = points(atom, 4)[0]
    for direction in np.eye(4):
        d = along(atom, direction)
        numeric = numerical_gradient(lambda t, d=d: float(atom.phi(x + t[0] * d)), [0.0], 1e-4)[0]
        np.testing.assert_allclose(atom.grad(x) @ d, numeric, rtol=1e-8, atol=1e-9)


def test_the_link_is_the_gradient_of_the_conjugate_and_has_its_hessian(atom):
    theta = atom.grad(points(atom, 6)[0])
    numeric = numerical_gradient(lambda t: float(atom.conjugate(t)), theta, 1e-5)
    np.testing.assert_allclose(atom.conjugate_grad(theta), numeric, rtol=1e-7)
    v, h = np.array([0.3, -1.0, 0.5, 0.2]), 1e-5
    numeric = (atom.grad_inv(theta + h * v) - atom.grad_inv(theta - h * v)) / (2 * h)
    np.testing.assert_allclose(atom.conjugate_hess_dot(theta, v), numeric, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("atom", SEPARABLE, ids=label)
def test_the_conjugate_is_a_maximum(atom):
    theta = atom.grad(points(atom, 7)[0])
    low, high = max(atom.domain[0], -50.0), min(atom.domain[1], 50.0)
    total = 0.0
    for i, t in enumerate(theta):
        one = type(atom)(weight=None if atom.weight is None else (atom.weight[i],))
        inside = (low + 1e-9, high - 1e-9)
        cost = lambda x, one=one, t=t: float(one.phi([x])) - t * x  # noqa: E731
        best = minimize_scalar(cost, bounds=inside, options={"xatol": 1e-12})
        total -= best.fun
    np.testing.assert_allclose(atom.conjugate(theta), total, rtol=1e-9)


def test_the_conjugate_of_kl_is_a_maximum_over_the_simplex():
    theta = np.array([0.4, -1.3])
    best = minimize_scalar(
        lambda p: float(KL().phi([p, 1 - p])) - theta @ [p, 1 - p], bounds=(1e-12, 1 - 1e-12)
    )
    np.testing.assert_allclose(KL().conjugate(theta), -best.fun, rtol=1e-10)


def test_the_mean_minimises_the_right_hand_argument(atom):
    """Σ π_k D(x_k‖s) = Σ π_k D(x_k‖μ) + D(μ‖s), Theorem 15 of the dissertation; so μ is the minimiser."""
    x, s = points(atom, 11, n=6), points(atom, 12)[0]
    share = np.random.default_rng(0).dirichlet(np.ones(6))
    mean = share @ x
    around = share @ atom.divergence(x, mean)
    np.testing.assert_allclose(share @ atom.divergence(x, s), around + atom.divergence(mean, s), rtol=1e-12)


def test_the_mean_of_natural_parameters_minimises_the_left_hand_argument(atom):
    """Corollary 8, against a numerical minimiser over natural parameters."""
    x = points(atom, 13, n=5)
    best = atom.grad_inv(np.mean(atom.grad(x), axis=0))

    def cost(t):
        return float(
            np.mean(atom.divergence(atom.grad_inv(-np.exp(t) if atom.name == "itakura-saito" else t), x))
        )

    found = minimize(cost, np.zeros(4), options={"gtol": 1e-9})
    np.testing.assert_allclose(np.mean(atom.divergence(best, x)), found.fun, rtol=1e-8)


@given(st.floats(0.01, 0.9), st.floats(-16, -0.5), st.booleans())
def test_no_digits_are_lost_near_the_point(y, exponent, above):
    """x = y·(1 ± 10**exponent) against 60 digits: every relative error is a few times the rounding error of x − y."""
    getcontext().prec = 60
    x = y * (1 + 10.0**exponent) if above else y * (1 - 10.0**exponent)
    if x >= 1:
        return
    a, b = Decimal(x), Decimal(y)
    entropy = a * (a / b).ln() - a + b
    bits = entropy + (1 - a) * ((1 - a) / (1 - b)).ln() + a - b
    expected = {IDivergence(): entropy, ItakuraSaito(): a / b - (a / b).ln() - 1, Logistic(): bits}
    for atom, value in expected.items():
        np.testing.assert_allclose(atom.divergence([x], [y]), float(value), rtol=1e-13, atol=0)


def test_the_boundary_is_exact():
    inf = np.inf
    assert IDivergence().divergence([0.0, 2.0], [3.0, 2.0]) == 3.0
    assert IDivergence().divergence([0.0], [0.0]) == 0.0
    assert IDivergence().divergence([1.0], [0.0]) == inf
    assert ShiftedIDivergence().divergence([1.0], [3.0]) == 2.0
    assert KL().divergence([0.0, 1.0], [0.0, 1.0]) == 0.0
    np.testing.assert_allclose(KL().divergence([0.0, 1.0], [0.75, 0.25]), np.log(4), rtol=1e-15)
    np.testing.assert_allclose(Logistic().divergence([0.0, 1.0], [0.5, 0.5]), 2 * np.log(2), rtol=1e-15)
    assert Logistic().divergence([0.0, 1.0], [0.0, 1.0]) == 0.0
    assert Logistic().divergence([0.5], [1.0]) == inf
    assert IDivergence().phi([0.0, 1.0]) == -1.0
    assert KL().phi([0.0, 1.0]) == 0.0
    assert Logistic().phi([0.0, 1.0]) == 0.0
    assert IDivergence().grad([0.0]).tolist() == [-inf]
    assert Logistic().grad([0.0, 1.0]).tolist() == [-inf, inf]
    for atom in (IDivergence(), KL(), Logistic()):
        assert atom.grad_inv([-inf, 0.0])[0] == 0.0


def test_large_natural_parameters_stay_silent():
    """Warnings are errors here: only values that must overflow become inf."""
    assert IDivergence().grad_inv([800.0, -800.0]).tolist() == [np.inf, 0.0]
    assert IDivergence().conjugate([800.0]) == np.inf
    np.testing.assert_allclose(ShiftedIDivergence().conjugate([-800.0]), -800.0)
    np.testing.assert_allclose(Logistic().conjugate([800.0, -800.0]), 800.0)
    np.testing.assert_array_equal(Logistic().grad_inv([800.0, -800.0]), [1.0, 0.0])
    np.testing.assert_allclose(KL().conjugate([1e5, 1e5]), 1e5 + np.log(2))
    np.testing.assert_allclose(KL().grad_inv([1e5, 1e5 + 1]), KL().grad_inv([0.0, 1.0]))
    np.testing.assert_allclose(ItakuraSaito().divergence([1e-300], [1e300]), 600 * np.log(10) - 1, rtol=1e-14)
    assert ItakuraSaito().divergence([1e300], [1e-300]) == np.inf


def test_sums_run_along_the_last_axis(atom):
    x, y = points(atom, 14, n=3), points(atom, 15)[0]
    one_by_one = [float(atom.divergence(row, y)) for row in x]
    np.testing.assert_allclose(atom.divergence(x, y), one_by_one, rtol=1e-14)
    np.testing.assert_allclose(
        atom.divergence(x[:, None], x[None])[1, 2], atom.divergence(x[1], x[2]), rtol=1e-14
    )
    np.testing.assert_allclose(atom.conjugate(atom.grad(x))[1], atom.conjugate(atom.grad(x[1])), rtol=1e-14)


def test_weights_repeat_coordinates():
    x, y = points(IDivergence(), 16, n=2)
    counts = np.array([2, 1, 3, 1])
    weighted = IDivergence(weight=counts)
    plain = IDivergence().divergence(np.repeat(x, counts), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.divergence(x, y), plain, rtol=1e-13)


def test_names_and_equality():
    names = ["squared", "kl", "i-divergence", "shifted-i-divergence", "itakura-saito", "logistic"]
    assert list(DIVERGENCES.members) == names
    for name in names:
        assert DIVERGENCES.get(name) == DIVERGENCES.members[name]()
    assert DIVERGENCES.get("squared", weight=[1, 2]) == Squared(weight=(1.0, 2.0))
    assert Squared(weight=(1.0, 2.0)) != Squared()
    assert len({Squared(), Squared(), KL()}) == 2
    with pytest.raises(InputError, match="unknown `divergence` 'euclid': use one of squared, kl"):
        DIVERGENCES.get("euclid")


@pytest.mark.parametrize(
    ("atom", "x", "message"),
    [
        (Squared(), [np.nan], "squared needs x to be finite"),
        (IDivergence(), [-1.0], "i-divergence needs x to be finite and at least 0"),
        (ShiftedIDivergence(), [0.5], "at least 1"),
        (ItakuraSaito(), [0.0], "above 0"),
        (Logistic(), [1.5], "between 0 and 1"),
        (KL(), [-0.5, 1.5], "at least 0"),
        (KL(), [0.5, 0.6], "sum to 1 along its last axis: divide it by its sum"),
        (Squared(weight=(1.0, 2.0)), [1.0], "2 coordinates, one for each weight"),
    ],
)
def test_points_outside_the_domain_are_refused(atom, x, message):
    for method in (atom.phi, atom.grad, lambda x: atom.divergence(x, x)):
        with pytest.raises(InputError, match=message):
            method(x)


def test_other_bad_input():
    with pytest.raises(InputError, match="y to be finite and at least 0"):
        IDivergence().divergence([1.0], [-1.0])
    with pytest.raises(InputError, match="natural parameters below 0"):
        ItakuraSaito().grad_inv([-1.0, 0.0])
    for weight in ([1.0, 0.0], [np.inf], [[1.0]]):
        with pytest.raises(InputError, match="finite numbers above 0, one for each coordinate"):
            Squared(weight=weight)


def test_an_atom_of_ones_own():
    class Cosh(Separable):
        """f(x) = cosh(x): three formulas define the divergence."""

        name = "cosh"

        def _f(self, x):
            return np.cosh(x)

        def _grad(self, x):
            return np.sinh(x)

        def _link(self, theta):
            return np.arcsinh(theta)

    atom = DIVERGENCES.get(Cosh())
    x, y, theta = np.array([0.3, -0.2]), np.array([1.2, 0.4]), np.array([0.7, -2.0])
    np.testing.assert_allclose(atom.divergence(x, y), definition(atom, x, y), rtol=1e-13)
    np.testing.assert_allclose(atom.fenchel_young(x, atom.grad(y)), atom.divergence(x, y), rtol=1e-13)
    numeric = numerical_gradient(lambda t: float(atom.conjugate(t)), theta, 1e-5)
    np.testing.assert_allclose(atom.conjugate_grad(theta), numeric, rtol=1e-8)
