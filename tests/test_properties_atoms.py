"""Properties of every loss, price, divergence and set function, at numbers of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from apexrank import divergences, losses, prices, submodular
from apexrank.divergences import DIVERGENCES, KL, Separable
from apexrank.losses import LOSSES, ZeroOne
from apexrank.objectives.push import PAIR_SUMS
from apexrank.prices import PRICES, Custom, Power
from apexrank.submodular import SET_FUNCTIONS, SetFunction, is_by_size
from apexrank.submodular.base import all_subsets
from tests.strategies import DIVERGENCE_ATOMS, INTO_DOMAIN, SET_FUNCTION_MAKERS, Draw, draws, point_of

ALL_LOSSES = [LOSSES.get(name) for name in LOSSES.members]
CONVEX_LOSSES = [loss for loss in ALL_LOSSES if loss.least_elasticity < np.inf]
ALL_PRICES = [
    Power(1),
    Power(2.5),
    *(PRICES.get(name) for name in PRICES.members),
    Custom(lambda r: r + r**2, lambda r: 1 + 2 * r),
]
ALL_DIVERGENCES = [
    *DIVERGENCE_ATOMS,
    *(type(a)((0.5, 2.0, 1.0, 3.0)) for a in DIVERGENCE_ATOMS if a.name != "kl"),
]
MARGINS = st.floats(-300, 300)
LOG_HEIGHTS = st.floats(-12, 4)

each_loss = pytest.mark.parametrize("loss", ALL_LOSSES, ids=lambda a: a.name)
each_convex_loss = pytest.mark.parametrize("loss", CONVEX_LOSSES, ids=lambda a: a.name)
each_price = pytest.mark.parametrize("price", ALL_PRICES, ids=lambda a: f"{a.name}-{a.order:g}")
each_divergence = pytest.mark.parametrize(
    "atom", ALL_DIVERGENCES, ids=lambda a: a.name + ("-weighted" if getattr(a, "weight", None) else "")
)
each_set_function = pytest.mark.parametrize("name", SET_FUNCTION_MAKERS)
few = settings(max_examples=12)


def descendants(base: type) -> set[type]:
    """All atoms of a family that the library defines and that need no arguments."""
    below = {kind for child in base.__subclasses__() for kind in (child, *descendants(child))}
    return {kind for kind in below if kind.__module__.startswith("apexrank.")}


def test_every_atom_is_among_the_cases():
    assert {type(loss) for loss in ALL_LOSSES} == descendants(losses.Loss) - {
        losses.SmoothHinge
    }  # a solver's
    assert {type(price) for price in ALL_PRICES} == descendants(prices.Price)
    assert {type(atom) for atom in ALL_DIVERGENCES} == descendants(divergences.Divergence) - {Separable}
    assert set(INTO_DOMAIN) == set(DIVERGENCES.members)
    made = {type(make(np.random.default_rng(0), 3)) for make in SET_FUNCTION_MAKERS.values()}
    named = {kind for kind in descendants(SetFunction) if kind.__name__ in submodular.__all__}
    assert made == named - {submodular.BySize}
    assert set(SET_FUNCTIONS.members.values()) <= made


def test_every_loss_that_can_be_fitted_has_sums_over_pairs():
    """The exponential loss needs none, because it factorises."""
    assert {type(loss) for loss in CONVEX_LOSSES} == {losses.Exponential, *PAIR_SUMS}


# ---------------------------------------------------------------- losses


@each_loss
@few
@given(MARGINS, MARGINS)
def test_losses_fall_and_bound_the_number_of_misranks(loss, a, b):
    low, high = loss.value(np.sort([a, b]))
    assert low >= high >= 0
    unit = np.log(2) if loss.name == "logistic" else 1.0
    assert np.all(loss.value(np.array([a, b, 0.0])) >= unit * ZeroOne().value(np.array([a, b, 0.0])))
    assert (loss.value(np.array(300.0)) == 0) == loss.reaches_zero


@each_convex_loss
@few
@given(MARGINS, MARGINS, st.floats(0, 1))
def test_losses_are_convex_and_slopes_are_their_slopes(loss, a, b, share):
    assume(abs(a - b) > 1e-3)
    a, b = sorted([a, b])
    at_a, between, at_b = loss.value(np.array([a, share * a + (1 - share) * b, b]))
    rounding = 1e-12 * (1 + at_a)
    assert between <= share * at_a + (1 - share) * at_b + rounding
    chord = (at_b - at_a) / (b - a)
    left, right = loss.slope(np.array([a, b]))
    assert left - rounding / (b - a) <= chord <= right + rounding / (b - a)
    assert right <= 0


@each_convex_loss
@few
@given(st.floats(-20, 20))
def test_slopes_of_losses_are_derivatives(loss, z):
    assume(abs(z - 1) > 1e-3)  # the kink of the hinge
    h = 1e-4
    values = loss.value(z + h * np.array([-2.0, -1.0, 1.0, 2.0]))
    numeric = (values @ [1, -8, 8, -1]) / (12 * h)
    assert float(loss.slope(np.array(z))) == pytest.approx(numeric, rel=1e-7, abs=1e-9)


# ---------------------------------------------------------------- prices


@each_price
@few
@given(LOG_HEIGHTS, LOG_HEIGHTS)
def test_prices_rise_and_the_log_domain_agrees(price, a, b):
    log_r = np.sort([a, b])
    low, high = price.value(np.exp(log_r))
    assert 0 <= low <= high * (1 + 1e-12)
    np.testing.assert_allclose(np.exp(price.log_value(log_r)), [low, high], rtol=1e-9)
    np.testing.assert_allclose(np.exp(price.log_slope(log_r)), price.slope(np.exp(log_r)), rtol=1e-9)


@each_price
@few
@given(LOG_HEIGHTS)
def test_slopes_and_elasticities_of_prices_are_derivatives(price, log_r):
    h = 1e-4
    at = log_r + h * np.array([-2.0, -1.0, 1.0, 2.0])
    # d log g / d log r = r·g'/g, and the elasticity is that of r·g'
    growth = price.log_value(at) @ [1, -8, 8, -1] / (12 * h)
    here = np.array([log_r])
    expected = np.exp(log_r + price.log_slope(here) - price.log_value(here))
    np.testing.assert_allclose(growth, expected[0], rtol=1e-6, atol=1e-7)
    of_mass = (at + price.log_slope(at)) @ [1, -8, 8, -1] / (12 * h)
    np.testing.assert_allclose(price.elasticity(here)[0], of_mass, rtol=1e-6, atol=1e-6)


@each_price
@few
@given(LOG_HEIGHTS, LOG_HEIGHTS)
def test_what_prices_say_of_their_convexity_is_true(price, a, b):
    log_r = np.array([a, b])
    assert np.all(price.elasticity(log_r) >= price.least_elasticity() - 1e-6)
    if price.least_elasticity() >= 1 - 1e-6:  # g itself is convex
        r = np.exp(log_r)
        assert price.value(r.mean()) <= price.value(r).mean() * (1 + 1e-9)
    if price.least_elasticity() >= -1e-6:  # g(exp(t)) is convex
        assert np.exp(price.log_value(log_r.mean())) <= np.exp(price.log_value(log_r)).mean() * (1 + 1e-9)
    if price.log_convex:  # and so is its logarithm
        values = price.log_value(log_r)
        assert price.log_value(log_r.mean()) <= values.mean() + 1e-9 * (1 + np.abs(values).max())


# ---------------------------------------------------------------- divergences


def points(atom: Any, draw: Draw, size: float = 2.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three points of the domain, of as many coordinates as the atom has weights."""
    n = len(atom.weight) if getattr(atom, "weight", None) else draw.n
    return tuple(point_of(atom, size * row) for row in Draw(n, draw.tied, draw.seed).vectors(3))  # type: ignore[return-value]


@each_divergence
@few
@given(draws())
def test_divergences_are_zero_at_the_point_itself_only(atom, draw):
    x, y, _ = points(atom, draw)
    assert atom.divergence(x, x) == 0
    same = np.allclose(x, y, rtol=1e-9)
    assert same or atom.divergence(x, y) > 0


@each_divergence
@few
@given(draws())
def test_links_invert_gradients(atom, draw):
    x, y, _ = points(atom, draw)
    np.testing.assert_allclose(atom.grad_inv(atom.grad(x)), x, rtol=1e-12, atol=1e-15)
    # a gradient of a convex function is monotone
    assert (atom.grad(x) - atom.grad(y)) @ (x - y) >= 0


@each_divergence
@few
@given(draws())
def test_three_points(atom, draw):
    x, y, z = points(atom, draw)
    whole, first, second = atom.divergence(x, z), atom.divergence(x, y), atom.divergence(y, z)
    turn = (atom.grad(z) - atom.grad(y)) @ (x - y)
    assert whole == pytest.approx(first + second - turn, rel=1e-10, abs=1e-10 * (first + second + abs(turn)))


@each_divergence
@few
@given(draws(), st.floats(0, 1))
def test_divergences_are_convex_in_the_first_argument(atom, draw, share):
    x, y, z = points(atom, draw)
    between = atom.divergence(share * x + (1 - share) * y, z)
    ends = share * atom.divergence(x, z) + (1 - share) * atom.divergence(y, z)
    assert between <= ends * (1 + 1e-12) + 1e-12


@each_divergence
@few
@given(draws())
def test_the_conjugate_is_dual(atom, draw):
    x, y, z = points(atom, draw)
    theta, eta = atom.grad(y), atom.grad(z)
    size = 1 + abs(atom.phi(x)) + abs(atom.conjugate(theta)) + abs(theta) @ abs(x)
    assert atom.phi(x) + atom.conjugate(theta) >= theta @ x - 1e-13 * size
    assert atom.fenchel_young(x, theta) == pytest.approx(
        float(atom.divergence(x, y)), rel=1e-9, abs=1e-12 * size
    )
    # with the arguments swapped it is the divergence of the conjugate
    psi = [float(atom.conjugate(t)) for t in (theta, eta)]
    dual = psi[1] - psi[0] - y @ (eta - theta)
    scale = abs(psi[0]) + abs(psi[1]) + abs(y) @ abs(eta - theta)
    assert dual == pytest.approx(float(atom.divergence(y, z)), rel=1e-9, abs=1e-12 * scale)


@each_divergence
@few
@given(draws())
def test_the_order_of_coordinates_and_the_type_of_numbers_do_not_matter(atom, draw):
    x, y, _ = points(atom, draw)
    if getattr(atom, "weight", None) is None:
        turned = np.random.default_rng(draw.seed).permutation(len(x))
        assert atom.divergence(x[turned], y[turned]) == pytest.approx(float(atom.divergence(x, y)), rel=1e-12)
    if not isinstance(atom, KL):  # single precision does not sum to 1
        rough = x.astype(np.float32), np.maximum(y, atom.domain[0]).astype(np.float32)
        assert atom.divergence(*rough) == atom.divergence(*(numbers.astype(float) for numbers in rough))


# ---------------------------------------------------------------- set functions


def made(name: str, draw: Draw) -> tuple[SetFunction, np.ndarray, np.ndarray]:
    """The function, all subsets as masks, and its values by single calls."""
    f, subsets = SET_FUNCTION_MAKERS[name](draw.rng, draw.n), all_subsets(draw.n)
    return f, subsets, np.array([f(mask) for mask in subsets])


@each_set_function
@few
@given(draws(least=1, most=5))
def test_set_functions_are_submodular(name, draw):
    f, subsets, values = made(name, draw)
    number = {mask.tobytes(): k for k, mask in enumerate(subsets)}
    join = [[number[(a | b).tobytes()] for b in subsets] for a in subsets]
    meet = [[number[(a & b).tobytes()] for b in subsets] for a in subsets]
    slack = 1e-12 * (1 + np.abs(values).max())
    assert values[0] == 0
    assert np.all(values[:, None] + values[None, :] >= values[join] + values[meet] - slack)
    rises = all(
        values[k] >= values[meet[k][j]] - slack for k in range(len(values)) for j in range(len(values))
    )
    assert f.is_monotone(draw.n) == rises
    assert rises or not f.monotone


@each_set_function
@few
@given(draws())
def test_gains_are_differences_of_values(name, draw):
    f, _, values = made(name, draw)
    order = draw.rng.permutation(draw.n)
    path = np.concatenate([[0], np.cumsum(1 << order)])
    size = 1 + np.abs(values).max()
    np.testing.assert_allclose(f.gains(order), np.diff(values[path]), rtol=0, atol=1e-12 * size)
    assert f.gains(order).sum() == pytest.approx(values[-1], abs=1e-12 * size)
    if is_by_size(f):
        np.testing.assert_array_equal(f.gains(order), f.gains(order[::-1]))


@each_set_function
@few
@given(draws(), st.floats(0, 20), st.floats(-20, 20))
def test_extensions_extend_and_are_homogeneous(name, draw, factor, shift):
    f, subsets, values = made(name, draw)
    size = 1 + np.abs(values).max()
    np.testing.assert_allclose(f.extension(subsets.astype(float)), values, rtol=0, atol=1e-12 * size)
    (x,) = draw.vectors(1)
    at = f.extension(x)
    scale = 1e-12 * size * (1 + factor + abs(shift)) * (1 + np.abs(x).sum())
    assert f.extension(factor * x) == pytest.approx(factor * at, abs=scale)
    assert f.extension(x + shift) == pytest.approx(at + shift * values[-1], abs=scale)


@each_set_function
@few
@given(draws(), st.floats(0, 1))
def test_extensions_are_convex_with_gains_as_subgradients(name, draw, share):
    f, subsets, values = made(name, draw)
    x, y = draw.vectors(2)
    slack = 1e-11 * (1 + np.abs(values).max()) * (1 + np.abs(x).sum() + np.abs(y).sum())
    at_x, at_y, between = f.extension([x, y, share * x + (1 - share) * y])
    assert between <= share * at_x + (1 - share) * at_y + slack
    h = f.subgradient(x)
    assert h @ x == pytest.approx(at_x, abs=slack)
    assert at_y >= at_x + h @ (y - x) - slack
    # it lies in the base polytope: no set gains more than its value
    assert np.all(subsets @ h <= values + slack)
    assert h.sum() == pytest.approx(values[-1], abs=slack)
