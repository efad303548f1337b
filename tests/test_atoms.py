import numpy as np
import pytest

from apexrank import losses, prices
from apexrank.errors import InputError
from apexrank.objectives import form_of

Z = np.array([-30.0, -2.5, -0.3, 0.4, 0.999, 1.7, 40.0])
R = np.array([1e-2, 0.5, 1.0, 3.0, 20.0])
FITTED_LOSSES = [losses.Exponential(), losses.Logistic(), losses.Hinge(), losses.SquaredHinge()]


def test_zero_one_counts_a_tie_and_has_no_slope():
    assert losses.ZeroOne().value(np.array([-1.0, 0.0, 1e-300])).tolist() == [1, 1, 0]
    with pytest.raises(InputError, match="evaluates rankings"):
        losses.ZeroOne().slope(Z)


def test_extreme_margins_stay_finite():
    assert np.isfinite(losses.Logistic().value(np.array([-1e300, 1e300]))).all()
    assert np.isfinite(losses.Logistic().slope(np.array([-1e300, 1e300]))).all()


@pytest.mark.parametrize(
    ("price", "formula"),
    [
        (prices.Power(3), lambda r: r**3),
        (prices.Identity(), lambda r: r),
        (prices.Exponential(), np.exp),
        (prices.Log1p(), np.log1p),
    ],
    ids=["power", "identity", "exponential", "log1p"],
)
def test_price_values(price, formula):
    np.testing.assert_allclose(price.value(R), formula(R), rtol=1e-14)


def test_prices_in_the_log_domain_at_the_extremes():
    log_r = np.array([-1e4, -50.0, 0.0, 50.0, 1e4])
    log1p = prices.Log1p()
    np.testing.assert_allclose(log1p.log_value(log_r)[:2], log_r[:2])
    np.testing.assert_allclose(log1p.log_value(log_r)[-1], np.log(1e4))
    assert np.isfinite(prices.Power(1024).log_value(log_r)).all()


@pytest.mark.parametrize("p", [0.5, 0, -1, np.inf, np.nan])
def test_power_refuses_p_below_one(p):
    with pytest.raises(InputError, match="`p` must be a finite number of at least 1"):
        prices.Power(p)


CONVEX = {
    # recipes: exponential, logistic, hinge, squared hinge
    prices.Power(1): (True, True, True, True),
    prices.Power(3): (True, True, True, True),
    prices.Identity(): (True, True, True, True),
    prices.Exponential(): (True, True, True, True),
    prices.Log1p(): (True, False, False, False),
    prices.Custom(lambda r: r**0.6, lambda r: 0.6 * r**-0.4): (True, False, False, True),
    prices.Custom(lambda r: r**0.4, lambda r: 0.4 * r**-0.6): (True, False, False, False),
    prices.Custom(lambda r: r**2 + r, lambda r: 2 * r + 1): (True, True, True, True),
    prices.Custom(np.arctan, lambda r: 1 / (1 + r**2)): (False, False, False, False),
    prices.Custom(lambda r: -r, lambda r: -np.ones_like(r)): (False, False, False, False),
    # convex, but falls at first
    prices.Custom(lambda r: (r - 2) ** 2, lambda r: 2 * (r - 2)): (False, False, False, False),
    # convex in the logarithm of r, and falls at first
    prices.Custom(lambda r: np.log(r) ** 2, lambda r: 2 * np.log(r) / r): (False, False, False, False),
    # the slope drops to 0 between two points of the grid on which prices are checked
    prices.Custom(lambda r: np.minimum(r, 1.3), lambda r: np.where(r < 1.3, 1.0, 0.0)): (False,) * 4,
    # flat at first, then rising: convex
    prices.Custom(lambda r: np.maximum(r - 1.3, 0), lambda r: np.where(r > 1.3, 1.0, 0.0)): (True,) * 4,
}


@pytest.mark.parametrize("number", range(len(CONVEX)))
def test_combinations_that_are_not_convex_are_refused_by_name(number):
    price, allowed = list(CONVEX.items())[number]
    for loss, convex in zip(FITTED_LOSSES, allowed, strict=True):
        if convex:
            assert callable(form_of(loss, price))
        else:
            with pytest.raises(
                InputError, match=f"{price.name} price with the {loss.name} loss is not convex"
            ):
                form_of(loss, price)


@pytest.mark.parametrize(
    ("price", "loss", "hint"),
    [
        (prices.Log1p(), losses.Logistic(), "use the exponential loss, or a steeper price"),
        (
            prices.Custom(lambda r: (r - 2) ** 2, lambda r: 2 * (r - 2)),
            losses.Exponential(),
            "no loss makes a falling price convex, use one that never falls",
        ),
        (
            prices.Custom(np.arctan, lambda r: 1 / (1 + r**2)),
            losses.Exponential(),
            r"use a price g for which g\(exp\(t\)\) is convex in t",
        ),
    ],
)
def test_the_hint_never_asks_for_what_is_used(price, loss, hint):
    with pytest.raises(InputError, match=hint + "$"):
        form_of(loss, price)


def test_zero_one_cannot_be_fitted():
    with pytest.raises(InputError, match="zero_one loss evaluates rankings"):
        form_of(losses.ZeroOne(), prices.Power(2))


def test_registry_names_and_instances():
    assert prices.PRICES.get("power", p=7) == prices.Power(7)
    assert prices.PRICES.get("log1p", p=7) == prices.Log1p()
    hinge = losses.Hinge()
    assert losses.LOSSES.get(hinge) is hinge
    with pytest.raises(InputError, match="unknown `loss` 'squared': use one of exponential"):
        losses.LOSSES.get("squared")
    with pytest.raises(InputError, match="unknown `price` 3"):
        prices.PRICES.get(3)
