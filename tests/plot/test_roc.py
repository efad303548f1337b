"""Display of ROC curves: contents, constructors and axes."""

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import same_color
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from apexrank.errors import InputError
from apexrank.metrics import roc_points
from apexrank.plot import RocTopDisplay

matplotlib.use("Agg")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [400, 100])
    return y, {f"p = {p}": rng.normal(size=500) + (1 + p) * y for p in range(3)}


def frames(display):
    return [patch for patch in display.axes_[0].patches if patch.get_gid() == "apexrank-zoom"]


def legend(display):
    return [text.get_text() for text in display.axes_[0].get_legend().get_texts()]


def test_both_panels_draw_every_curve(data):
    y, scores = data
    display = RocTopDisplay.from_scores(scores, y)
    assert legend(display) == list(scores)
    for lines, values in zip(display.lines_, scores.values(), strict=True):
        false, true, _ = roc_points(y, values)
        for ax, line in zip(display.axes_, lines, strict=True):
            assert line.axes is ax
            x, height = line.get_data()
            # At each false positive the line reaches the highest point of the curve.
            np.testing.assert_array_equal(np.interp(false, x, height), np.interp(false, false, true))


def test_straight_stretches_keep_only_their_ends():
    display = RocTopDisplay.from_predictions(np.repeat([1, 0], 1000), -np.arange(2000))
    assert display.lines_[0][0].get_xydata().tolist() == [[0, 0], [0, 1000], [1000, 1000]]
    assert len(display.curves["ranker"].false_positives) == 2001


def test_the_frame_is_the_zoomed_part(data):
    y, scores = data
    display = RocTopDisplay.from_scores(scores, y, max_false_positives=7)
    (frame,) = frames(display)
    (left, right), (bottom, top) = display.axes_[1].get_xlim(), display.axes_[1].get_ylim()
    np.testing.assert_allclose(frame.get_bbox().extents, [left, bottom, right, top])
    assert right == 7
    assert "7 false positives" in display.axes_[1].get_title()
    reached = [np.interp(7, *roc_points(y, values)[:2]) for values in scores.values()]
    assert max(reached) < top < max(reached) + 10


@pytest.mark.parametrize(("negatives", "width"), [(1000, 50), (210, 11), (100, 10), (4, 4)])
def test_default_zoom(negatives, width):
    y = np.repeat([0, 1], [negatives, 20])
    display = RocTopDisplay.from_predictions(y, np.arange(len(y)) % 13)
    assert display.axes_[1].get_xlim()[1] == width


def test_rankers_differ_in_colour_and_line_style(data):
    y, scores = data
    lines = [pair[0] for pair in RocTopDisplay.from_scores(scores, y).lines_]
    assert len({line.get_color() for line in lines}) == 3
    assert len({line.get_linestyle() for line in lines}) == 3


def test_thirty_rankers_never_look_the_same(data):
    y, scores = data
    display = RocTopDisplay.from_scores({str(i): scores["p = 1"] for i in range(30)}, y)
    looks = {(pair[0].get_color(), str(pair[0]._dash_pattern)) for pair in display.lines_}
    assert len(looks) == 30


def test_drawing_over_an_earlier_display(data):
    y, scores = data
    display = RocTopDisplay.from_predictions(y, scores["p = 0"], name="first")
    over = RocTopDisplay.from_predictions(y, scores["p = 2"], name="second", axes=display.axes_)
    assert over.figure_ is display.figure_
    assert legend(over) == ["first", "second"]
    assert len(frames(over)) == 1
    first, second = display.lines_[0][0], over.lines_[0][0]
    assert first.get_color() != second.get_color()
    assert first.get_linestyle() != second.get_linestyle()
    together = RocTopDisplay.from_scores({"first": scores["p = 0"], "second": scores["p = 2"]}, y)
    for before, now in zip(over.axes_, together.axes_, strict=True):
        assert before.get_xlim() == now.get_xlim()
        assert before.get_ylim() == now.get_ylim()


def test_curves_can_be_drawn_again_elsewhere(data):
    y, scores = data
    display = RocTopDisplay.from_scores(scores, y)
    figure, axes = plt.subplots(2, 1)
    assert display.plot(axes, linewidth=5) is display
    assert display.figure_ is figure
    assert {line.get_linewidth() for pair in display.lines_ for line in pair} == {5}


@pytest.mark.parametrize("model", [LogisticRegression(), GaussianNB()])
def test_from_estimator(model):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 2))
    y = np.where(X[:, 0] + rng.normal(size=90) > 0, "yes", "no")
    model.fit(X, y)
    scores = model.predict_proba(X)[:, 1]
    display = RocTopDisplay.from_estimator(model, X, y)
    np.testing.assert_array_equal(display.curves[type(model).__name__], roc_points(y, scores)[:2])
    other = RocTopDisplay.from_estimator(model, X, y, pos_label="no", name="no")
    np.testing.assert_array_equal(other.curves["no"], roc_points(y, -scores, pos_label="no")[:2])


def test_weights_are_counts(data):
    y, scores = data
    weight = np.random.default_rng(2).uniform(1, 3, 500)
    display = RocTopDisplay.from_predictions(y, scores["p = 1"], sample_weight=weight)
    assert display.lines_[0][0].get_xydata()[-1] == pytest.approx([weight[:400].sum(), weight[400:].sum()])


def test_line_options_win_over_the_styles(data):
    y, scores = data
    display = RocTopDisplay.from_predictions(y, scores["p = 1"], color="red")
    assert same_color(display.lines_[0][1].get_color(), "red")


def test_faults(data):
    y, scores = data
    with pytest.raises(InputError, match="2 matplotlib axes, one for each panel, got 1"):
        RocTopDisplay.from_scores(scores, y, axes=plt.subplots()[1])
    with pytest.raises(InputError, match="no curve to draw"):
        RocTopDisplay.from_scores({}, y)
    with pytest.raises(
        InputError, match="object is not a ranker: give scores, or an estimator with decision_function"
    ):
        RocTopDisplay.from_estimator(object(), None, y)


def test_the_figure_can_be_saved(data, tmp_path):
    RocTopDisplay.from_scores(data[1], data[0]).figure_.savefig(tmp_path / "roc.png")
    assert plt.imread(tmp_path / "roc.png").std() > 0


def test_rows_of_weight_zero_hide_no_corner():
    display = RocTopDisplay.from_predictions([1, 0, 0, 1], [4, 3, 2, 1], sample_weight=[1, 0, 1, 1])
    line = display.lines_[0][0]
    assert line.get_xydata().tolist() == [[0, 0], [0, 1], [1, 1], [1, 2]]
