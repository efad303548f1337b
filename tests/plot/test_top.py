"""Displays of the top of the list: measures at k, precision, spam, and two rankers side by side."""

import sys
from itertools import combinations

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import same_color
from scipy.stats import t
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ndcg_score, precision_recall_curve

from apexrank.errors import InputError, MissingExtraError
from apexrank.metrics import precision_at, recall_at, roc_points, spam_met
from apexrank.plot.at_k import MeasureAtKDisplay
from apexrank.plot.bump import BumpDisplay
from apexrank.plot.graph import CumulativeSpamDisplay
from apexrank.plot.roc import PrecisionRecallTopDisplay

matplotlib.use("Agg")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], [400, 100]))
    return y, {f"p = {p}": rng.normal(size=500) + (1 + p) * y for p in range(3)}


@pytest.fixture
def fitted():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 2))
    y = np.where(X[:, 0] + rng.normal(size=90) > 0, "yes", "no")
    return LogisticRegression().fit(X, y), X, y


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def by_gid(ax, gid):
    return [line for line in ax.lines if line.get_gid() == gid]


def assert_all_differ(lines):
    assert len({line.get_color() for line in lines}) == len(lines)
    assert len({line.get_linestyle() for line in lines}) == len(lines)


# a measure at k


def precision_by_hand(y, scores, groups, k):
    """Precision at k of each query that has a positive."""
    values = []
    for group in np.unique(groups):
        mine = groups == group
        if y[mine].any():
            values.append(y[mine][np.argsort(-scores[mine])][:k].sum() / k)
    return np.array(values)


def band_at(band, x):
    points = band.get_paths()[0].vertices
    heights = points[np.isclose(points[:, 0], x), 1]
    return heights.min(), heights.max()


def test_at_k_draws_mean_and_interval_over_queries(data):
    y, scores = data
    groups = np.random.default_rng(2).integers(60, size=500)
    assert min(y[groups == g].sum() for g in range(60)) == 0  # a query without positives is left out
    display = MeasureAtKDisplay.from_scores(
        scores, y, measure="precision", k=[4, 1, 2], groups=groups, confidence=0.9
    )
    for name, line, band in zip(scores, display.lines_, display.bands_, strict=True):
        assert line.get_xdata().tolist() == [1, 2, 4]
        for k, mean in line.get_xydata():
            values = precision_by_hand(y, scores[name], groups, int(k))
            assert mean == pytest.approx(values.mean(), rel=1e-12)
            half = t.ppf(0.95, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
            assert band_at(band, k) == pytest.approx((mean - half, mean + half), rel=1e-9)
    assert display.ax_.get_title() == f"Mean of {len(values)} queries, 90 % interval"
    assert display.ax_.get_ylabel() == "Precision at k"
    assert_all_differ(display.lines_)


def test_ndcg_at_k_of_grades_is_scikit_learns():
    rng = np.random.default_rng(3)
    grades, scores = rng.integers(5, size=(20, 12)), rng.normal(size=(20, 12))
    groups = np.repeat(np.arange(20), 12)
    display = MeasureAtKDisplay.from_predictions(grades.ravel(), scores.ravel(), groups=groups)
    expected = [ndcg_score(2.0**grades - 1, scores, k=k) for k in range(1, 11)]
    np.testing.assert_allclose(display.lines_[0].get_ydata(), expected, rtol=1e-12)
    assert display.ax_.get_ylabel() == "NDCG at k"


def test_one_list_has_no_band(data):
    y, scores = data
    display = MeasureAtKDisplay.from_scores(scores, y, measure="recall", k=range(1, 101))
    assert display.bands_ == [None] * 3
    assert not display.ax_.collections
    assert display.ax_.get_title() == ""
    for line, values in zip(display.lines_, scores.values(), strict=True):
        assert line.get_ydata().tolist() == [recall_at(y, values, k) for k in range(1, 101)]
        assert line.get_markevery() == 5  # twenty markers for a hundred points


def test_at_k_over_an_earlier_one(data):
    y, scores = data
    first = MeasureAtKDisplay.from_predictions(y, scores["p = 0"], name="first")
    second = MeasureAtKDisplay.from_predictions(y, scores["p = 2"], name="second", ax=first.ax_, linewidth=5)
    assert second.figure_ is first.figure_
    assert legend(first.ax_) == ["first", "second"]
    assert_all_differ([*first.lines_, *second.lines_])
    assert second.lines_[0].get_linewidth() == 5


def test_at_k_takes_ready_values():
    low, high = {"A": [0.4, 0.5]}, {"A": [0.6, 0.8]}
    display = MeasureAtKDisplay(
        [10, 5], {"A": [0.5, 0.7], "B": [0.1, 0.2]}, low, high, measure="average_precision"
    ).plot()
    assert display.lines_[0].get_xydata().tolist() == [[5, 0.7], [10, 0.5]]
    assert band_at(display.bands_[0], 5) == (0.5, 0.8)
    assert display.bands_[1] is None
    assert display.ax_.get_ylabel() == "Average precision at k"


def test_at_k_of_an_estimator(fitted):
    model, X, y = fitted
    options = {"measure": "precision", "k": [1, 5]}
    display = MeasureAtKDisplay.from_estimator(model, X, y, **options)
    scores = model.decision_function(X)
    assert display.mean["LogisticRegression"].tolist() == [precision_at(y, scores, k) for k in (1, 5)]
    other = MeasureAtKDisplay.from_estimator(model, X, y, pos_label="no", name="no", **options)
    assert other.mean["no"].tolist() == [precision_at(y, -scores, k, pos_label="no") for k in (1, 5)]


def test_faults_at_k(data):
    y, scores = data
    for k in ([], [0, 1], [0.5], ["ten"]):
        with pytest.raises(InputError, match="`k` must be whole numbers of rows"):
            MeasureAtKDisplay.from_scores(scores, y, k=k)
    with pytest.raises(InputError, match="`confidence` must be between 0 and 1, got 95"):
        MeasureAtKDisplay.from_scores(scores, y, confidence=95)
    with pytest.raises(InputError, match="unknown measure 'accuracy_at_1'"):
        MeasureAtKDisplay.from_scores(scores, y, measure="accuracy")
    with pytest.raises(InputError, match="nothing to draw"):
        MeasureAtKDisplay.from_scores({}, y)
    with pytest.raises(InputError, match="ndcg is not defined in any list"):
        MeasureAtKDisplay.from_predictions([0, 0], [1, 2], k=[1])
    with pytest.raises(InputError, match="low and high for the same rankers"):
        MeasureAtKDisplay([1], {"A": [1]}, {"A": [0]})
    with pytest.raises(InputError, match=r"2 cut-offs k need as many values, got shape \(1,\)"):
        MeasureAtKDisplay([1, 2], {"A": [1]})


# precision against recall and rows


def assert_on_the_curve(display, y, scores, weight=None):
    """Every plotted point has the precision and recall of that many first rows."""
    (whole, top) = display.lines_[0]
    rows, precision = top.get_data()
    recall, same = whole.get_data()
    np.testing.assert_array_equal(same, precision)
    total = len(y) if weight is None else weight.sum()
    assert rows[-1] == pytest.approx(total)
    picked = np.linspace(1, len(rows) - 2, 60).astype(int)
    for m, p, r in zip(rows[picked], precision[picked], recall[picked], strict=True):
        options = {"k": m / total, "sample_weight": weight}
        assert p == pytest.approx(precision_at(y, scores, **options), rel=1e-9)
        assert r == pytest.approx(recall_at(y, scores, **options), rel=1e-9)


def test_precision_and_recall_of_every_row(data):
    y, scores = data
    display = PrecisionRecallTopDisplay.from_scores(scores, y)
    for (whole, top), values in zip(display.lines_, scores.values(), strict=True):
        precision, recall, _ = precision_recall_curve(y, values)
        assert whole.axes is display.axes_[0]
        assert top.axes is display.axes_[1]
        np.testing.assert_allclose(
            np.interp(np.arange(1, 501), *top.get_data()),
            np.cumsum(y[np.argsort(-values)]) / np.arange(1, 501),
        )
        drawn = {tuple(point) for point in whole.get_xydata().round(9)}
        corners = np.column_stack([recall, precision])[:-1]  # scikit-learn adds the point (0, 1)
        turns = np.flatnonzero((np.diff(corners[:, 0]) == 0)[:-1] != (np.diff(corners[:, 0]) == 0)[1:]) + 1
        assert {tuple(point) for point in corners[turns].round(9)} <= drawn
    assert_all_differ([pair[0] for pair in display.lines_])


def test_precision_inside_a_tie_is_the_expected_one(data):
    y, scores = data
    tied = np.round(scores["p = 1"])
    assert_on_the_curve(PrecisionRecallTopDisplay.from_predictions(y, tied), y, tied)
    flat = PrecisionRecallTopDisplay.from_predictions(y, np.zeros(500))
    np.testing.assert_allclose(flat.lines_[0][1].get_ydata(), 0.2)


def test_precision_with_weights(data):
    y, scores = data
    weight = np.random.default_rng(2).uniform(0, 3, 500) * (np.arange(500) % 5 > 0)  # some of weight 0
    display = PrecisionRecallTopDisplay.from_predictions(y, scores["p = 1"], sample_weight=weight)
    assert_on_the_curve(display, y, scores["p = 1"], weight)
    chance = by_gid(display.axes_[1], "apexrank-chance")
    assert [line.get_ydata()[0] for line in chance] == [pytest.approx(weight[y == 1].sum() / weight.sum())]


def test_a_row_of_weight_zero_changes_nothing():
    with_it = PrecisionRecallTopDisplay.from_predictions(
        [1, 0, 0, 1], [4, 3, 2, 1], sample_weight=[1.5, 0, 1, 1]
    )
    without = PrecisionRecallTopDisplay.from_predictions([1, 0, 1], [4, 2, 1], sample_weight=[1.5, 1, 1])
    for found, expected in zip(with_it.lines_[0], without.lines_[0], strict=True):
        np.testing.assert_array_equal(found.get_xydata(), expected.get_xydata())


@pytest.mark.parametrize(("n", "shown"), [(1000, 50), (410, 21), (100, 20), (9, 9)])
def test_default_top_of_precision(n, shown):
    display = PrecisionRecallTopDisplay.from_predictions(np.arange(n) % 2, np.arange(n))
    assert display.axes_[1].get_xlim() == (0, shown)
    assert display.axes_[1].get_title() == f"Top: the first {shown} rows"


def test_a_dot_marks_the_end_of_the_top(data):
    y, scores = data
    tied = {name: np.round(values) for name, values in scores.items()}
    display = PrecisionRecallTopDisplay.from_scores(tied, y, top=33.5)
    dots = by_gid(display.axes_[0], "apexrank-cut")
    for dot, (line, _), values in zip(dots, display.lines_, tied.values(), strict=True):
        expected = [measure(y, values, 33.5 / 500) for measure in (recall_at, precision_at)]
        assert dot.get_xydata()[0] == pytest.approx(expected, rel=1e-9)
        assert dot.get_color() == line.get_color()


def test_the_second_panel_fits_what_it_shows():
    y = np.r_[np.zeros(30), np.ones(10), np.zeros(60)]
    display = PrecisionRecallTopDisplay.from_predictions(y, -np.arange(100), top=32)
    assert display.axes_[1].get_ylim()[1] == pytest.approx(1.04 * 0.1)  # chance is above 2 in 32
    assert display.axes_[0].get_ylim()[1] == pytest.approx(1.04 * 0.25)


def test_precision_over_an_earlier_display(data):
    y, scores = data
    first = PrecisionRecallTopDisplay.from_predictions(y, scores["p = 0"], name="first", top=10)
    second = PrecisionRecallTopDisplay.from_predictions(y, scores["p = 2"], name="second", axes=first.axes_)
    assert second.figure_ is first.figure_
    assert legend(first.axes_[0]) == ["first", "second", "chance, 20 % positive"]
    assert_all_differ([first.lines_[0][0], second.lines_[0][0]])
    together = PrecisionRecallTopDisplay.from_scores({"1": scores["p = 0"], "2": scores["p = 2"]}, y)
    for before, now in zip(second.axes_, together.axes_, strict=True):
        assert before.get_xlim() == now.get_xlim()
        assert before.get_ylim() == now.get_ylim()
    dots = [[d.get_xydata().tolist() for d in by_gid(x.axes_[0], "apexrank-cut")] for x in (second, together)]
    assert dots[0] == dots[1]
    PrecisionRecallTopDisplay.from_predictions(
        y[:100] * 0 + (np.arange(100) < 3), -np.arange(100), axes=first.axes_
    )
    assert legend(first.axes_[0])[3:] == ["chance, 20 % positive", "chance, 3 % positive"]


def test_precision_of_an_estimator(fitted):
    model, X, y = fitted
    scores = model.decision_function(X)
    display = PrecisionRecallTopDisplay.from_estimator(model, X, y, color="red")
    np.testing.assert_array_equal(display.curves["LogisticRegression"], roc_points(y, scores)[:2])
    assert same_color(display.lines_[0][1].get_color(), "red")
    other = PrecisionRecallTopDisplay.from_estimator(model, X, y, pos_label="no", name="no")
    np.testing.assert_array_equal(other.curves["no"], roc_points(y, -scores, pos_label="no")[:2])


def test_faults_of_precision(data):
    y, scores = data
    with pytest.raises(InputError, match="no curve to draw"):
        PrecisionRecallTopDisplay.from_scores({}, y)
    with pytest.raises(InputError, match="top must be a number above 0, got 0"):
        PrecisionRecallTopDisplay.from_scores(scores, y, top=0)
    with pytest.raises(InputError, match="2 matplotlib axes, one for each panel, got 1"):
        PrecisionRecallTopDisplay.from_scores(scores, y, axes=plt.subplots()[1])


# spam met


@pytest.mark.parametrize("decimals", [9, 0])  # without ties and with many
@pytest.mark.parametrize("share", [False, True])
def test_spam_met_in_the_first_ranks(data, decimals, share):
    spam, rankings = data
    rankings = {name: np.round(values, decimals) for name, values in rankings.items()}
    display = CumulativeSpamDisplay.from_scores(rankings, spam, share=share)
    unit = 100 if share else 1
    for line, scores in zip(display.lines_, rankings.values(), strict=True):
        ranks, met = line.get_data()
        np.testing.assert_allclose(met, spam_met(spam, scores, ranks) / unit, atol=1e-12)
        whole = np.arange(501)
        np.testing.assert_allclose(
            np.interp(whole, ranks, met), spam_met(spam, scores, whole) / unit, atol=1e-9
        )
    (chance,) = by_gid(display.ax_, "apexrank-chance")
    np.testing.assert_allclose(chance.get_ydata(), 0.2 * chance.get_xdata() / unit)
    assert legend(display.ax_) == [*rankings, "chance, 20 % spam"]
    assert_all_differ(display.lines_)


def test_a_tie_is_met_at_random():
    display = CumulativeSpamDisplay.from_predictions([1, 0, 0, 1, 0], [5, 2, 2, 2, 1])
    ranks, met = display.lines_[0].get_data()
    np.testing.assert_allclose(np.interp([0, 1, 2, 3, 4, 5], ranks, met), [0, 1, 4 / 3, 5 / 3, 2, 2])


@pytest.mark.parametrize("spam_share", [0.3, 1e-4])
def test_a_million_items_stay_quick_to_draw(spam_share):
    rng = np.random.default_rng(0)
    spam = rng.random(10**6) < spam_share
    display = CumulativeSpamDisplay.from_predictions(spam, rng.normal(size=10**6) - spam)
    ranks, met = display.lines_[0].get_data()
    assert len(ranks) < 6000
    truth = display.curves["ranking"]
    off = np.abs(np.interp(truth.ranks, ranks, met) - truth.spam)
    assert off.max() <= truth.spam[-1] / 500  # less than a pixel
    early = truth.ranks <= 1000  # and on a logarithmic axis the top shows as well
    assert (off[early] <= np.maximum(0.03 * truth.spam[early], 1)).all()


def test_logarithmic_axes_and_drawing_over(data):
    spam, rankings = data
    first = CumulativeSpamDisplay.from_predictions(spam, rankings["p = 0"], name="1", log_x=True, log_y=True)
    assert (first.ax_.get_xscale(), first.ax_.get_yscale()) == ("log", "symlog")
    second = CumulativeSpamDisplay.from_predictions(spam, rankings["p = 2"], name="2", ax=first.ax_)
    assert second.figure_ is first.figure_
    assert (first.ax_.get_xscale(), first.ax_.get_yscale()) == ("log", "symlog")
    assert legend(first.ax_) == ["1", "2", "chance, 20 % spam"]
    assert_all_differ([*first.lines_, *second.lines_])
    assert first.ax_.get_xlim() == (1, 500)
    first.figure_.canvas.draw()


def test_faults_of_spam(data):
    spam, rankings = data
    with pytest.raises(InputError, match="no curve to draw: give the scores"):
        CumulativeSpamDisplay.from_scores({}, spam)
    for flags in ([0, 2], ["spam", "ham"], [[True], [False]], []):
        with pytest.raises(InputError, match="spam needs one flag for each item"):
            CumulativeSpamDisplay.from_predictions(flags, [1, 2])
    with pytest.raises(InputError, match="0 of 2 items are spam"):
        CumulativeSpamDisplay.from_predictions([0, 0], [1, 2])
    with pytest.raises(InputError, match="scores needs one number for each of the 500 rows"):
        CumulativeSpamDisplay.from_predictions(spam, rankings["p = 0"][1:])


# two rankers side by side


def bump_by_hand(left, right, top):
    """Places and plotted elements, item by item in Python."""
    order = [
        sorted(range(len(own)), key=lambda i: (-own[i], -other[i], i))
        for own, other in ((left, right), (right, left))
    ]
    places = [{item: place for place, item in enumerate(side, 1)} for side in order]
    shown = [item for item in order[0] if places[0][item] <= top or places[1][item] <= top]
    beyond = [[item for item in side[top:] if item in shown] for side in order]
    heights = [
        tuple(places[s][item] if places[s][item] <= top else top + 2 + beyond[s].index(item) for s in (0, 1))
        for item in shown
    ]
    return shown, [(places[0][item], places[1][item]) for item in shown], heights


@pytest.mark.parametrize("decimals", [9, 0])  # without ties and with many
@pytest.mark.parametrize("top", [5, 50, 700])
def test_bump_lines_go_from_rank_to_rank(data, top, decimals):
    y, scores = data
    two = {name: np.round(scores[name], decimals) for name in ("p = 0", "p = 2")}
    display = BumpDisplay.from_scores(two, top=top, y_true=y)
    shown, places, heights = bump_by_hand(*two.values(), min(top, 500))
    assert display.items.tolist() == shown
    for line, item, (before, now), ends in zip(display.lines_, shown, places, heights, strict=True):
        assert line.get_xydata().tolist() == [[0, ends[0]], [1, ends[1]]]
        marker, style = ("o", ":") if now == before else ("^", "-") if now < before else ("v", "--")
        assert (line.get_marker(), line.get_linestyle()) == (marker, style)
        assert same_color(line.get_markerfacecolor(), line.get_color() if y[item] else "white")
    left, right = np.transpose(places)
    top = min(top, 500)
    expected = {"up": right < left, "down": right > left, "stays": right == left}
    expected |= {"entered": left > top, "left": right > top}
    assert display.counts == {what: which.sum() for what, which in expected.items()}


def test_bump_labels_say_the_true_rank():
    left = np.arange(1500, 0, -1.0)
    right = left.copy()
    right[1], right[2] = -1, right[3]  # the second falls to the end, third and fourth tie
    display = BumpDisplay.from_scores({"A": left, "B": right}, names=[f"x{i}" for i in range(1500)], top=3)
    assert [text.get_text() for text in display.labels_[0]] == ["x0  1", "x1  2", "x2  3", "x3  4"]
    assert [text.get_text() for text in display.labels_[1]] == ["1  x0", "1,500  x1", "2=  x2", "3=  x3"]
    assert [text.get_position()[0] for side in display.labels_ for text in side] == [-7] * 4 + [7] * 4
    assert legend(display.ax_) == [
        "moved up: 2, 1 of them into the top 3",
        "moved down: 1, 1 of them out of the top 3",
        "unchanged: 1",
    ]
    assert display.ax_.get_title() == "Top 3: from A to B"


def test_directions_differ_in_more_than_colour(data):
    display = BumpDisplay.from_scores({"A": data[1]["p = 0"], "B": data[1]["p = 1"]}, top=40)
    looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in display.lines_}
    assert len(looks) == 3
    for part in zip(*looks, strict=True):
        assert len(set(part)) == 3


def texts_of(display):
    """Bounding boxes of all text in pixels: labels, headers, title and legend."""
    display.figure_.canvas.draw()
    renderer = display.figure_.canvas.get_renderer()
    written = [*display.ax_.texts, display.ax_.title, *display.ax_.get_legend().get_texts()]
    return {text: text.get_window_extent(renderer) for text in written if text.get_text()}


LONG = "a very long $name$ that goes on and on and\non"


@pytest.mark.parametrize(
    ("top", "name", "decimals"),
    [(10, "item", 9), (50, "item", 9), (50, LONG, 0), (10, LONG, 9), (150, "item", 9)],
)
@pytest.mark.slow
def test_no_two_texts_overlap(data, top, name, decimals):
    y, scores = data
    two = {f"ranker {key}": np.round(scores[key], decimals) for key in ("p = 0", "p = 1")}
    display = BumpDisplay.from_scores(two, names=[f"{i} {name}" for i in range(500)], y_true=y, top=top)
    boxes = texts_of(display)
    width, height = display.figure_.canvas.get_width_height()
    for text, box in boxes.items():
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= width, text
        assert box.y1 <= height, text
    for (a, one), (b, other) in combinations(boxes.items(), 2):
        overlap = min(one.x1, other.x1) - max(one.x0, other.x0), min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(overlap) <= 0.5, (a.get_text(), b.get_text())  # half a pixel
    assert (len(display.labels_[0]) == len(display.items)) == (top < 150)


def test_low_axes_go_without_names(data):
    scores = data[1]
    figure, ax = plt.subplots(figsize=(4, 3))
    display = BumpDisplay.from_scores({"A": scores["p = 0"], "B": scores["p = 1"]}, top=50, ax=ax)
    assert display.figure_ is figure
    labels = [text.get_text() for text in display.labels_[0]]
    assert labels[0] == "1"
    assert all("row" not in label for label in labels)
    assert len(labels) < len(display.items) / 4


def test_a_second_bump_chart_replaces_the_first(data):
    a, b, c = data[1].values()
    first = BumpDisplay.from_scores({"A": a, "B": b}, top=10)
    first.ax_.axhline(3, gid="mine")
    second = BumpDisplay.from_scores({"A": a, "C": c}, top=5, ax=first.ax_, linewidth=3)
    assert not set(first.lines_) & set(first.ax_.lines)
    assert set(second.lines_) <= set(first.ax_.lines)
    assert len(by_gid(first.ax_, "mine")) == 1
    assert {line.get_linewidth() for line in second.lines_} == {3}
    assert first.ax_.get_title() == "Top 5: from A to C"


def test_bump_headers_count_the_positives(data):
    y, scores = data
    display = BumpDisplay.from_scores({"A": scores["p = 0"], "B": scores["p = 2"]}, y_true=y, top=40)
    found = [y[np.argsort(-scores[name])][:40].sum() for name in ("p = 0", "p = 2")]
    texts = [text.get_text() for text in display.ax_.texts]
    assert {f"A\n{found[0]} of 40 positive", f"B\n{found[1]} of 40 positive"} <= set(texts)
    assert legend(display.ax_)[3:] == ["filled: positive", "hollow: negative"]


def test_bump_of_estimators(fitted):
    model, X, y = fitted
    other = LogisticRegression(C=1e-3).fit(X[:, ::-1], y)
    display = BumpDisplay.from_estimators({"A": model, "B": other}, X, y, top=20, pos_label="no")
    two = {name: -m.decision_function(X) for name, m in (("A", model), ("B", other))}
    expected = BumpDisplay.from_scores(two, y_true=y, pos_label="no", top=20)
    for found, wanted in zip(display.lines_, expected.lines_, strict=True):
        np.testing.assert_array_equal(found.get_xydata(), wanted.get_xydata())
    assert display.counts == expected.counts
    np.testing.assert_array_equal(display.positive, y == "no")


def test_bump_names_go_by_row_not_by_index():
    names = pd.Series(["a", "b", "c"], index=[2, 1, 0])
    display = BumpDisplay.from_scores({"A": [3, 2, 1], "B": [3, 2, 1]}, names=names)
    assert [text.get_text() for text in display.labels_[1]] == ["1  a", "2  b", "3  c"]
    assert legend(display.ax_) == [
        "moved up: 0",
        "moved down: 0",
        "unchanged: 3",
    ]  # nothing is beyond three of three


def test_long_names_keep_both_ends():
    names = ["one\n line", "https://example.org/a/long/way/to/page-1", "x" * 30]
    display = BumpDisplay.from_scores({"A": [3, 2, 1], "B": [3, 2, 1]}, names=names)
    expected = ["1  one line", "2  https://example…/way/to/page-1", "3  " + "x" * 30]
    assert [text.get_text() for text in display.labels_[1]] == expected
    assert len(expected[1]) == 33


def test_faults_of_bump():
    two = {"A": [1, 2, 3], "B": [3, 2, 1]}
    with pytest.raises(InputError, match="compares two rankers, got 1"):
        BumpDisplay.from_scores({"A": [1, 2]})
    for top in (0, 2.5):
        with pytest.raises(InputError, match=f"`top` must be a whole number of items, 1 or more, got {top}"):
            BumpDisplay.from_scores(two, top=top)
    with pytest.raises(InputError, match="each of 3 items is needed, 'names' has 1"):
        BumpDisplay.from_scores(two, names=["a"])
    with pytest.raises(InputError, match="each of 3 items is needed, 'B' has 2"):
        BumpDisplay.from_scores({"A": [1, 2, 3], "B": [3, 2]})
    for bad in ([1, 2, np.nan], ["a", "b", "c"], [[1]], []):
        with pytest.raises(InputError, match="'B' needs one number for each item"):
            BumpDisplay.from_scores({"A": [1, 2, 3], "B": bad})
    with pytest.raises(InputError, match="y_true has a single class"):
        BumpDisplay.from_scores(two, y_true=[0, 0, 0])


@pytest.mark.parametrize(
    "draw",
    [
        lambda: MeasureAtKDisplay([1], {"A": [1.0]}).plot(),
        lambda: PrecisionRecallTopDisplay.from_predictions([0, 1], [1, 2]),
        lambda: CumulativeSpamDisplay.from_predictions([0, 1], [1, 2]),
        lambda: BumpDisplay.from_scores({"A": [1, 2], "B": [2, 1]}),
    ],
)
def test_without_matplotlib_the_extra_is_named(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r'pip install "apexrank\[plot\]"'):
        draw()
