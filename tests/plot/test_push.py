"""Displays of pair contributions, the trade-off over p, and sample sizes."""

import sys

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot as plt
from sklearn.linear_model import LogisticRegression

from apexrank.errors import InputError, MissingExtraError
from apexrank.plot import (
    PairContributionDisplay,
    PTradeoffDisplay,
    pair_contributions,
)

matplotlib.use("Agg")


@pytest.fixture
def ranked():
    rng = np.random.default_rng(3)
    return rng.permutation(np.repeat([0, 1], [5, 7])), rng.normal(size=12)


PRICES = {
    "power": lambda r: r**3,
    "identity": lambda r: r,
    "exponential": np.exp,
    "log1p": np.log1p,
}
LOSSES = {
    "exponential": lambda z: np.exp(-z),
    "logistic": lambda z: np.log1p(np.exp(-z)),
    "hinge": lambda z: max(0.0, 1 - z),
    "zero_one": lambda z: float(z <= 0),
}


def by_hand(y, scores, price, loss, side):
    """The caption of Figure 1 (top) and of Figure 4 (bottom), pair by pair."""
    f, g = sorted(scores[y == 1], reverse=True), sorted(scores[y == 0], reverse=True)
    out = np.zeros((len(f), len(g)))
    for i, fi in enumerate(f):
        for k, gk in enumerate(g):
            pair = loss(fi - gk)
            r = sum(loss(fj - gk) for fj in f) if side == "top" else sum(loss(fi - gj) for gj in g)
            out[i, k] = price(r) * pair / r if r else 0.0
    return out


@pytest.mark.parametrize("side", ["top", "bottom"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("price", PRICES)
def test_contributions_are_those_of_the_captions(ranked, price, loss, side):
    expected = by_hand(*ranked, PRICES[price], LOSSES[loss], side)
    found = pair_contributions(*ranked, price=price, p=3, loss=loss, side=side)
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-10)
    assert found.shape == (7, 5)


def test_both_sides_add_up(ranked):
    top, bottom = (
        by_hand(*ranked, PRICES["power"], LOSSES["exponential"], side) for side in ("top", "bottom")
    )
    expected = top + 2.5 * bottom
    found = pair_contributions(*ranked, p=3, side="both", balance=2.5)
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-10)
    np.testing.assert_allclose(
        pair_contributions(*ranked, p=3, side="both", balance=0), top / top.sum(), rtol=1e-10
    )


def test_contributions_do_not_overflow(ranked):
    y, scores = ranked
    found = pair_contributions(y, 1000 * scores, p=64)
    assert found.sum() == pytest.approx(1)
    assert found[-1, 0] == pytest.approx(1)  # lowest positive against highest negative


def test_a_perfect_list_costs_nothing_by_the_zero_one_loss():
    np.testing.assert_array_equal(
        pair_contributions([1, 1, 0], [3.0, 2.0, 1.0], loss="zero_one"), np.zeros((2, 1))
    )


def test_the_map_stands_as_in_the_paper(ranked):
    display = PairContributionDisplay.from_predictions(*ranked, p=2, name="p = 2")
    contributions = pair_contributions(*ranked, p=2)
    np.testing.assert_array_equal(display.image_.get_array(), contributions)
    assert display.image_.origin == "lower"  # the first row, the highest positive, at the bottom
    assert list(display.image_.get_extent()) == [0.5, 5.5, 0.5, 7.5]
    assert display.ax_.get_title() == "p = 2"
    assert "left" in display.ax_.get_xlabel()
    assert "bottom" in display.ax_.get_ylabel()
    colours = display.image_.cmap(display.image_.norm(contributions))[..., :3].sum(axis=-1)
    assert np.unravel_index(colours.argmax(), colours.shape) == (6, 0)  # the lightest is the largest
    assert display.colorbar_.ax.get_ylabel() == "Share of the objective"


def test_the_map_takes_axes_and_image_options(ranked):
    figure, ax = plt.subplots()
    display = PairContributionDisplay.from_predictions(
        *ranked, ax=ax, colorbar=False, image_options={"cmap": "gray", "vmax": 0.5}
    )
    assert display.figure_ is figure
    assert len(figure.axes) == 1
    assert display.colorbar_ is None
    assert display.image_.cmap.name == "gray"
    assert display.image_.get_clim() == (0, 0.5)


def test_the_map_of_an_estimator():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 2))
    y = np.where(X[:, 0] + rng.normal(size=30) > 0, "yes", "no")
    model = LogisticRegression().fit(X, y)
    scores = model.decision_function(X)
    display = PairContributionDisplay.from_estimator(model, X, y, p=2)
    np.testing.assert_array_equal(display.contributions, pair_contributions(y, scores, p=2))
    assert display.ax_.get_title() == "LogisticRegression"
    other = PairContributionDisplay.from_estimator(model, X, y, p=2, pos_label="no", name="no")
    np.testing.assert_array_equal(other.contributions, pair_contributions(y, -scores, p=2, pos_label="no"))


def test_faults_of_the_map(ranked, monkeypatch):
    with pytest.raises(InputError, match="unknown `side` 'left'"):
        pair_contributions(*ranked, side="left")
    with pytest.raises(InputError, match="unknown `price`"):
        pair_contributions(*ranked, price="cheap")
    with pytest.raises(InputError, match="0 positives and 2 negatives"):
        pair_contributions([0, 0], [1.0, 2.0], pos_label=1)
    with pytest.raises(InputError, match=r"got shape \(3,\)"):
        PairContributionDisplay([1, 2, 3])
    monkeypatch.setattr("apexrank.plot.push._MOST_PAIRS", 34)
    with pytest.raises(InputError, match="at most 34 pairs"):
        pair_contributions(*ranked)


VALUES = {
    "AUC": np.array([[0.9, 0.8, 0.7], [0.92, 0.84, 0.6], [0.91, 0.79, 0.8]]),
    "top": np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [3.0, 4.0, 8.0]]),
}


def band_at(band, x):
    points = band.get_paths()[0].vertices
    heights = points[np.isclose(points[:, 0], x), 1]
    return heights.min(), heights.max()


def test_tradeoff_draws_mean_and_standard_error():
    display = PTradeoffDisplay.from_values([1, 4, 64], VALUES)
    assert [ax.get_title() for ax in display.axes_] == ["AUC", "top"]
    for line, band, values in zip(display.lines_, display.bands_, VALUES.values(), strict=True):
        np.testing.assert_allclose(line.get_xdata(), [0, 2, 6])
        np.testing.assert_allclose(line.get_ydata(), values.mean(axis=0))
        error = np.sqrt(((values - values.mean(axis=0)) ** 2).sum(axis=0) / 2 / 3)
        for x, mean, e in zip([0, 2, 6], values.mean(axis=0), error, strict=True):
            np.testing.assert_allclose(band_at(band, x), [mean - e, mean + e])
    assert [label.get_text() for label in display.axes_[0].get_xticklabels()] == ["1", "4", "64"]


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame])
def test_tradeoff_from_a_tidy_table(frame):
    rows = [
        (float(p), name, values[split, j])
        for split in (2, 0, 1)
        for name, values in VALUES.items()
        for j, p in enumerate((1, 4, 64))
    ]
    powers, names, numbers = (list(column) for column in zip(*rows, strict=True))
    table = frame({"power": powers, "what": names, "how much": numbers})
    found = PTradeoffDisplay.from_table(table, p="power", measure="what", value="how much")
    expected = PTradeoffDisplay.from_values([1, 4, 64], VALUES)
    for name in VALUES:
        np.testing.assert_allclose(found.mean[name], expected.mean[name])
        np.testing.assert_allclose(found.error[name], expected.error[name])
    assert found.ps.tolist() == [1, 4, 64]


def test_infinity_stands_one_doubling_to_the_right():
    display = PTradeoffDisplay.from_values([np.inf, 8, 1], VALUES)
    np.testing.assert_allclose(display.lines_[0].get_xdata(), [0, 3, 4])
    np.testing.assert_allclose(display.lines_[0].get_ydata(), VALUES["AUC"].mean(axis=0)[::-1])
    assert [label.get_text() for label in display.axes_[0].get_xticklabels()] == ["1", "8", "∞"]


def test_tradeoff_over_an_earlier_one():
    first = PTradeoffDisplay.from_values([1, 4, 64], VALUES, name="train")
    second = PTradeoffDisplay.from_values([1, 4, 64], VALUES, name="test", axes=first.axes_)
    assert second.figure_ is first.figure_
    assert [text.get_text() for text in first.axes_[0].get_legend().get_texts()] == ["train", "test"]
    for before, now in zip(first.lines_, second.lines_, strict=True):
        assert before.get_color() != now.get_color()
        assert before.get_marker() != now.get_marker()
        assert before.get_linestyle() != now.get_linestyle()


def test_spare_panels_are_taken_away():
    display = PTradeoffDisplay.from_values([1, 2, 4], {str(m): VALUES["AUC"] for m in range(4)})
    assert len(display.axes_) == len(display.figure_.axes) == 4


def test_faults_of_the_tradeoff():
    with pytest.raises(InputError, match="at least two splits"):
        PTradeoffDisplay.from_values([1, 2], {"AUC": [0.9, 0.8]})
    with pytest.raises(InputError, match="at least two splits at every p, got 1"):
        PTradeoffDisplay.from_table({"p": [1, 1, 2], "measure": ["a"] * 3, "value": [1.0, 2.0, 3.0]})
    with pytest.raises(InputError, match="nothing to draw"):
        PTradeoffDisplay([1, 2], {}, {})
    with pytest.raises(InputError, match="2 matplotlib axes, one for each panel, got 1"):
        PTradeoffDisplay.from_values([1, 4, 64], VALUES, axes=[plt.subplots()[1]])


@pytest.mark.parametrize(
    "draw",
    [
        lambda: PairContributionDisplay([[1.0]]).plot(),
        lambda: PTradeoffDisplay.from_values([1, 4, 64], VALUES),
    ],
)
def test_without_matplotlib_the_extra_is_named(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r'pip install "apexrank\[plot\]"'):
        draw()


def test_tradeoff_of_one_set_of_rows():
    from apexrank import metrics

    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 200)
    scores = {1: y + rng.normal(size=200), 8: y + 2 * rng.normal(size=200)}
    display = PTradeoffDisplay.from_scores(scores, y, measures=["auc", "precision_at_5"], n_resamples=50)
    assert list(display.mean) == ["AUC", "precision at 5"]
    for i, values in enumerate(scores.values()):
        interval = metrics.bootstrap("auc", y, values, n_resamples=50)
        assert display.mean["AUC"][i] == interval.value
        assert display.error["AUC"][i] == pytest.approx(interval.standard_error)
