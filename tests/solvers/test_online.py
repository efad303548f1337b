"""Regret of online gradient descent grows like log T, measured against the best fixed w in hindsight."""

import numpy as np
import pytest

from apexrank.objectives.retarget import Retarget
from apexrank.rankers.retarget import MonotoneRetargeting
from apexrank.solvers.online import OnlineGradient

SHORT, LONG = 250, 4000
SIGMA = 0.5


class Stream:
    """Lists of five rows whose relevance is a noisy function of the features, without lists of one relevance."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2 * LONG, 5, 3))
        y = np.digitize(X @ [1.0, -1.0, 0.5] + rng.normal(size=X.shape[:2]), [-0.5, 1.0])
        ordered = np.flatnonzero(np.ptp(y, axis=1) > 0)[:LONG]
        self.X, self.y = X[ordered], y[ordered]
        self.objectives = [Retarget(levels, offsets="sqrt") for levels in self.y]
        self.curvatures = [np.linalg.norm(rows, 2) ** 2 for rows in self.X]

    def loss(self, t):
        def value_and_grad(w):
            value, slope = self.objectives[t].value_and_grad(self.X[t] @ w)
            return value, self.X[t].T @ slope

        return value_and_grad

    def best_in_hindsight(self, n):
        """``min_w Σ_t G_t(w) + σ/2·|w|²`` by the batch fit."""
        rows, groups = self.X[:n].reshape(-1, 3), np.repeat(np.arange(n), 5)
        ranker = MonotoneRetargeting(alpha=SIGMA).fit(rows, self.y[:n].ravel(), groups=groups)
        return n * ranker.objective_


def regret(stream, step=None):
    """Regret after few and after many rounds, optionally with custom steps."""
    player, total, found = OnlineGradient(SIGMA, np.zeros(3)), 0.0, []
    for t in range(LONG):
        if step is None:
            total += player.play(stream.loss(t), stream.curvatures[t])
        else:
            value, grad = stream.loss(t)(player.w)
            total += value + 0.5 * SIGMA * player.w @ player.w
            player.w = player.w - step(t + 1) * (grad + SIGMA * player.w)
        if t + 1 in (SHORT, LONG):
            found.append(total - stream.best_in_hindsight(t + 1))
    return np.array(found)


@pytest.fixture(scope="module")
def streams():
    return [Stream(seed) for seed in range(3)]


def test_regret_is_logarithmic(streams):
    """With log T, 16 times as many rounds cost 1.5 times as much here; with √T 4 times, with T 16 times."""
    found = np.array([regret(stream) for stream in streams])
    assert (found > 0).all()
    short, long = found.mean(axis=0)
    assert long < 2 * short
    assert long < 0.005 * streams[0].best_in_hindsight(LONG)


@pytest.mark.parametrize(
    "step", [lambda t: 0.05, lambda t: 0.2 / np.sqrt(t)], ids=["constant", "square root"]
)
@pytest.mark.slow
def test_other_steps_have_more_regret(streams, step):
    """The test above is able to fail."""
    short, long = np.mean([regret(stream, step) for stream in streams], axis=0)
    assert long > 2.5 * short


def test_steps_are_one_over_sigma_t():
    """With losses ``−x_t·w`` and σ = 1 the point after t rounds is the mean of the x seen."""
    player = OnlineGradient(1.0, np.zeros(1))
    for t, x in enumerate([4.0, 2.0, 9.0], 1):
        before = player.w.copy()
        player.play(lambda w, x=x: (-float(x * w[0]), np.array([-x])))
        np.testing.assert_allclose(player.w, before + (x - before) / t)
    np.testing.assert_allclose(player.w, 5.0)
    np.testing.assert_allclose(player.average, (1 * 4 + 2 * 3 + 3 * 5) / 6)


def test_a_curved_loss_does_not_throw_the_player_far():
    rng = np.random.default_rng(0)
    X = 10 * rng.normal(size=(50, 4, 2))
    player = OnlineGradient(1e-3, np.zeros(2))
    for rows in X:
        curvature = float(np.linalg.norm(rows, 2) ** 2)
        player.play(lambda w, A=rows: (0.5 * float(((A @ w - 1) ** 2).sum()), A.T @ (A @ w - 1)), curvature)
        assert np.abs(player.w).max() < 1


@pytest.mark.slow
def test_partial_fit_is_the_same_player(streams):
    stream = streams[0]
    ranker, player = MonotoneRetargeting(alpha=SIGMA), OnlineGradient(SIGMA, np.zeros(3))
    for t in range(30):
        ranker.partial_fit(stream.X[t], stream.y[t])
        centred = stream.X[t] - stream.X[t].mean(axis=0)
        player.play(stream.loss(t), np.linalg.norm(centred, 2) ** 2)
    np.testing.assert_allclose(ranker.online_.w, player.w, rtol=1e-9)
    np.testing.assert_allclose(ranker.coef_, player.average, rtol=1e-9)
    assert ranker.online_.loss == pytest.approx(player.loss)
