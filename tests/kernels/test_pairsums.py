import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apexrank.kernels import pairsums
from apexrank.kernels.pairsums import HingeSums, LogisticSums, SmoothHingeSums
from apexrank.losses import Hinge, Logistic, SmoothHinge, SquaredHinge

KERNELS = [(Logistic(), LogisticSums), (Hinge(), HingeSums), (SquaredHinge(), HingeSums.squared)]
SPREADS = [1e-6, 1e-3, 1.0, 10.0, 100.0, 1e3, 1e4]


def by_pairs(loss, x, w, t):
    z = x[:, None] - t[None, :]
    return (w[:, None] * loss.value(z)).sum(axis=0), (w[:, None] * loss.slope(z)).sum(axis=0)


def one_group(x, t):
    return x, np.array([0, len(x)]), t, np.array([0, len(t)])


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize(("loss", "kernel"), KERNELS, ids=lambda a: getattr(a, "name", ""))
def test_against_the_sum_over_pairs(loss, kernel, spread, offset):
    rng = np.random.default_rng(int(spread * 1e6) % 2**31)
    x, t = offset + spread * rng.normal(size=700), offset + spread * rng.normal(size=500)
    w, m = rng.random(700), rng.random(500)
    sums = kernel(*one_group(x, t))
    value, slope = by_pairs(loss, x, w, t)
    got = sums.forward(w)
    # the arguments themselves are only known to eps·offset
    rtol = 1e-12 if offset == 0 or loss.name == "logistic" else 1e-12 + 1e-9 / min(1.0, spread)
    np.testing.assert_allclose(got.value, value, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(got.slope, slope, rtol=rtol, atol=1e-300)
    z = x[:, None] - t[None, :]
    np.testing.assert_allclose(sums.backward(m), (m * loss.slope(z)).sum(axis=1), rtol=rtol, atol=1e-300)


@pytest.mark.parametrize(("loss", "kernel"), KERNELS, ids=lambda a: getattr(a, "name", ""))
def test_groups_are_summed_one_by_one(loss, kernel):
    rng = np.random.default_rng(0)
    x_sizes, t_sizes = [3, 400, 1, 50], [5, 300, 2, 1]
    x_starts, t_starts = (np.concatenate([[0], np.cumsum(sizes)]) for sizes in (x_sizes, t_sizes))
    x, t, w, m = (rng.normal(size=n) * 3 for n in (x_starts[-1], t_starts[-1], x_starts[-1], t_starts[-1]))
    w, m = np.abs(w), np.abs(m)
    sums = kernel(x, x_starts, t, t_starts)
    forward, backward = sums.forward(w), sums.backward(m)
    for a, b, c, d in zip(x_starts[:-1], x_starts[1:], t_starts[:-1], t_starts[1:], strict=True):
        value, slope = by_pairs(loss, x[a:b], w[a:b], t[c:d])
        np.testing.assert_allclose(forward.value[c:d], value, rtol=1e-12)
        np.testing.assert_allclose(forward.slope[c:d], slope, rtol=1e-12)
        reverse = (m[c:d] * loss.slope(x[a:b, None] - t[None, c:d])).sum(axis=1)
        np.testing.assert_allclose(backward[a:b], reverse, rtol=1e-12)


def test_logistic_by_panels_and_by_pairs_agree_on_gaps_and_clusters():
    # few points far apart: empty panels, far fields on both sides, and everything between
    rng = np.random.default_rng(1)
    centres = np.array([-1e9, -4000.0, -30.0, -14.5, 0.0, 0.4, 13.9, 15.0, 700.0, 1e9])
    x = np.concatenate([c + rng.normal(size=40) * s for c in centres for s in (1e-3, 2.0)])
    t = np.concatenate([c + rng.normal(size=30) for c in centres])
    w = rng.random(len(x))
    panels, pairs = (np.empty((2, len(t))) for _ in range(2))
    pairsums._logistic_by_panels(x, w, t, pairsums._NEAR, pairsums._FAR, *panels)
    pairsums._logistic_by_pairs(x, w, t, *pairs)
    np.testing.assert_allclose(panels, pairs, rtol=1e-12, atol=1e-300)


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12),
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12),
    st.integers(0, 2),
)
def test_any_scores(x, t, which):
    loss, kernel = KERNELS[which]
    x, t, w = np.array(x), np.array(t), np.arange(1.0, len(x) + 1)
    got = kernel(*one_group(x, t)).forward(w)
    value, _ = by_pairs(loss, x, w, t)
    np.testing.assert_allclose(got.value, value, rtol=1e-9, atol=1e-9)


def test_huge_scores_are_finite():
    x, t = np.array([-1e300, 0.0, 1e300]), np.array([-1e300, 5.0, 1e300])
    for _, kernel in KERNELS[:2]:
        got = kernel(*one_group(x, t)).forward(np.ones(3))
        assert np.isfinite(got.value).all()
        assert np.isfinite(got.slope).all()


@pytest.mark.parametrize("width", [1.0, 1e-3, 1e-6])
def test_a_rounded_kink_against_the_sum_over_pairs(width):
    rng = np.random.default_rng(0)
    x, t, w, m = rng.normal(size=70), rng.normal(size=50), rng.random(70), rng.random(50)
    loss, sums = SmoothHinge(width), SmoothHingeSums(*one_group(x, t), width)
    value, slope = by_pairs(loss, x, w, t)
    got = sums.forward(w)
    np.testing.assert_allclose(got.value, value, atol=1e-12 / width)
    np.testing.assert_allclose(got.slope, slope, atol=1e-12 / width)
    np.testing.assert_allclose(sums.backward(m), loss.slope(x[:, None] - t) @ m, atol=1e-12 / width)
    below = Hinge().value(x) - loss.value(x)
    assert (below >= 0).all()
    assert below.max() == pytest.approx(width / 2)
