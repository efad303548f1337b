"""Displays of the top of the list: precision and spam."""

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import same_color
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_curve

from apexrank.errors import InputError
from apexrank.metrics import precision_at, recall_at, roc_points, spam_met
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
