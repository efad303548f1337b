"""Examples of the talk of 2006, and its printed formulas beside the corrected ones."""

import numpy as np
import pytest
from scipy.optimize import brentq

from apexrank import metrics
from apexrank.objectives import Push
from apexrank.prices import Power
from apexrank_papers.push.boosting import AdaBoostLoss


def test_the_prices_of_the_list():
    """Slides "Original Total Price", "Swap lower pair" and "Swap higher pair" with p = 4; lists from top to bottom."""
    lists = {"++--+-+-": 33, "++--+--+": 34, "+-+-+-+-": 98}
    for marks, price in lists.items():
        liked = np.array([mark == "+" for mark in marks])
        assert metrics.p_norm_risk(liked, -np.arange(8), p=4) == price


def test_a_higher_negative_is_at_least_as_high():
    """The slide has Height(k) = Height(k₁) for k above k₁: it must be ≥, and is > with a positive between them."""
    liked = np.array([True, True, False, False, True, False, True, False])
    heights = metrics.heights(liked, -np.arange(8))
    assert heights.tolist() == [2, 2, 1, 0]
    rng = np.random.default_rng(0)
    for _ in range(50):
        liked, scores = rng.random(12) < 0.5, rng.integers(0, 6, 12)
        if 0 < liked.sum() < 12:
            order = np.argsort(-scores[~liked], kind="stable")
            assert (np.diff(metrics.heights(liked, scores)[order]) <= 0).all()


MOVIES = ("Amelie", "Spiderman", "The Matrix", "Titanic", "Boogeyman")
RULES = np.array(
    [[1, 1, 0, 0, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]]
).T  # most survive, superheroes, is a movie


@pytest.mark.parametrize("p", [1, 4])
def test_the_rules_for_movies(p):
    """The first of the three rules is chosen; the constant rule moves AdaBoost but no pair."""
    liked = np.array([movie in ("Amelie", "Spiderman") for movie in MOVIES])
    slopes = -RULES.T @ Push(liked, price=Power(p)).value_and_grad(np.zeros(5))[1]
    assert slopes == pytest.approx([1.0, 0.5, 0.0])
    constant = -RULES.T @ AdaBoostLoss(liked).value_and_grad(np.zeros(5))[1]
    assert constant[2] == pytest.approx((2 - 3) / 5)  # minus the F-skew over the loss


def boosted(M, p, rounds, printed):
    """R after each round of the slide "The P-Norm Push Algorithm", with its step (d) as printed or corrected."""
    weights, d, risks = np.zeros(M.shape[2]), np.full(M.shape[:2], 1 / M[..., 0].size), []
    for _ in range(rounds):

        def slope(alpha, j, d=d):
            shifted = d * np.exp(-alpha * M[..., j])
            return (shifted.sum(axis=0) ** (p - 1) * (M[..., j] * shifted).sum(axis=0)).sum()

        j = max(range(len(weights)), key=lambda j: abs(slope(0.0, j)))
        step = brentq(slope, -30, 30, args=(j,))
        d = d * np.exp(-(M @ weights if printed else step * M[..., j]))
        d /= d.sum()
        weights[j] += step
        risks.append((np.exp(-(M @ weights)).sum(axis=0) ** p).sum())
    return np.array(risks), d, weights


def test_the_weights_of_pairs_take_the_last_step_only():
    """(d) prints exp(−Mλ_t), which applies every earlier step again; it must be exp(−α_t·M_j), as in both papers."""
    rng = np.random.default_rng(3)
    X = rng.random((40, 4))
    positive = X @ [1.0, -1.0, 0.5, 0.2] + 0.4 * rng.normal(size=40) > 0.4
    M = X[positive][:, None, :] - X[~positive][None, :, :]
    risks, d, weights = boosted(M, 2, 40, printed=False)
    assert (np.diff(risks) <= 1e-9).all()
    expected = np.exp(-(M @ weights))
    np.testing.assert_allclose(d, expected / expected.sum(), rtol=1e-9)
    as_printed = boosted(M, 2, 5, printed=True)[0]
    assert as_printed[1] > 2 * as_printed[0]  # λ₁ = 0: the second round repeats the first step and overshoots
    assert as_printed[4] > 1e4 * as_printed[0]
