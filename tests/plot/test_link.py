"""Display of a fitted link."""

import sys

import matplotlib
import numpy as np
import pytest
from apexrank.rankers.isotron import Isotron
from matplotlib import pyplot as plt
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from apexrank.errors import InputError, MissingExtraError
from apexrank.plot.link import LinkDisplay
from apexrank.rankers.link import Link, UnknownLinkRegressor

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def data(n=60, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.tanh(2 * X @ [0.6, -0.8, 0.0]) + noise * rng.normal(size=n)


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def band_at(band, x):
    """Lowest and highest point of a band at x, linearly interpolated between its vertices."""
    points = band.get_paths()[0].vertices
    turn = np.argmax(points[:, 0])
    lower, upper = points[1 : turn + 1], points[turn + 1 : -1][::-1]
    sides = sorted((lower, upper), key=lambda side: side[len(side) // 2, 1])
    return tuple(np.interp(x, side[:, 0], side[:, 1]) for side in sides)


# links


@pytest.mark.parametrize(
    "model",
    [
        UnknownLinkRegressor(),
        UnknownLinkRegressor(link="least_squares"),
        UnknownLinkRegressor(link="cost"),
        UnknownLinkRegressor(kernel="rbf", alpha=1e-2),
        Isotron(max_iter=50),
        Isotron(lipschitz=4.0, max_iter=50),
    ],
    ids=["isotonic", "least_squares", "cost", "kernel", "isotron", "lipschitz"],
)
def test_the_line_is_what_the_model_predicts(model):
    X, y = data()
    display = LinkDisplay.from_estimator(model.fit(X, y), X, y)
    theta, value = display.lines_[0].get_data()
    np.testing.assert_allclose(np.interp(model.index(X), theta, value), model.predict(X), atol=1e-12)
    rows = np.argsort(model.index(X))
    np.testing.assert_array_equal(display.points_.get_offsets(), np.column_stack([model.index(X), y])[rows])
    assert legend(display.axes_[0]) == [type(model).__name__, "interval (§4.3)"]
    assert theta[0] < model.index(X).min()
    assert theta[-1] > model.index(X).max()


def test_phi_has_the_inverse_link_as_its_gradient():
    X, y = data(n=300)
    model = UnknownLinkRegressor(link="least_squares").fit(X, y)
    v, phi = LinkDisplay.from_estimator(model, X, y).lines_[1].get_data()
    assert phi[0] == 0
    assert v[0] == model.link_.values[0]
    assert v[-1] == model.link_.values[-1]
    slopes = np.diff(phi) / np.diff(v)
    assert np.all(np.diff(slopes[np.diff(v) > 1e-6]) > -1e-6)  # convex
    middle = np.flatnonzero(np.diff(v) > 1e-6)
    np.testing.assert_allclose(model.link_(slopes[middle]), (v[middle] + v[middle + 1]) / 2, atol=2e-3)


def interval_by_hand(theta, knots, values, slope):
    """§4.3, between two knots."""
    below, above = np.flatnonzero(knots <= theta)[-1], np.flatnonzero(knots >= theta)[0]
    low = max(values[below], values[above] - slope * (knots[above] - theta))
    return low, min(values[above], values[below] + slope * (theta - knots[below]))


@pytest.mark.parametrize("slope", [1.0, 2.0, 1e6])
def test_the_band_is_the_interval_of_the_dissertation(slope):
    knots, values = np.array([-1.0, 0.0, 0.5, 2.0]), np.array([-1.0, -0.2, 0.2, 0.5])
    display = LinkDisplay(knots, values, Link(knots, values, slope)).plot()
    for theta in np.random.default_rng(0).uniform(-1, 2, 30):
        expected = interval_by_hand(theta, knots, values, slope)
        assert band_at(display.band_, theta) == pytest.approx(expected, abs=5e-3 if slope < 10 else 1e-9)


def test_output_range_holds_the_band():
    X, y = data()
    unit = (y - y.min()) / np.ptp(y)
    free = LinkDisplay.from_estimator(UnknownLinkRegressor().fit(X, unit), X, unit)
    held = LinkDisplay.from_estimator(UnknownLinkRegressor(output_range=(0, 1)).fit(X, unit), X, unit)
    right = free.lines_[0].get_xdata()[-1]
    assert band_at(free.band_, right)[1] == pytest.approx(free.axes_[0].get_ylim()[1])
    assert band_at(held.band_, right)[1] == pytest.approx(1.0)
    assert free.axes_[0].get_ylim()[1] > 1.1  # room for the legend


def test_many_rows_stay_readable_and_quick():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=300_000)
    link = Link(np.sort(theta), np.sort(np.tanh(theta)))
    display = LinkDisplay(theta, np.tanh(theta), link).plot()
    drawn = np.asarray(display.points_.get_offsets())
    assert len(drawn) == 2000
    assert drawn[0, 0] == theta.min()
    assert drawn[-1, 0] == theta.max()
    assert len(display.lines_[0].get_xdata()) < 5000
    assert len(display.lines_[1].get_xdata()) < 5000
    assert display.points_.get_alpha() <= 0.2
    assert display.axes_[0].get_title() == "Link; 2,000 of 300,000 rows drawn"
    few = LinkDisplay(theta, np.tanh(theta), link, n_points=50).plot()
    assert len(few.points_.get_offsets()) == 50


def test_links_over_an_earlier_display():
    X, y = data()
    first = LinkDisplay.from_estimator(UnknownLinkRegressor().fit(X, y), X, y, name="ours")
    frame = first.axes_[0].get_ylim()
    second = LinkDisplay.from_estimator(
        UnknownLinkRegressor(link="cost").fit(X, 3 * y), X, 3 * y, name="cost", axes=first.axes_, linewidth=4
    )
    assert second.figure_ is first.figure_
    assert legend(first.axes_[0]) == ["ours", "interval (§4.3)", "cost"]
    assert first.lines_[0].get_color() != second.lines_[0].get_color()
    assert second.lines_[1].get_linewidth() == 4
    low, high = first.axes_[0].get_ylim()
    assert low < frame[0]
    assert high > frame[1]
    line = LinkDisplay.from_estimator(
        UnknownLinkRegressor().fit(X, y), X, y, axes=plt.subplots(1, 2)[1], color="red"
    )
    assert line.lines_[0].get_color() == "red"


def test_a_constant_link(tmp_path):
    X, y = data()[0], np.full(60, 2.0)
    display = LinkDisplay.from_estimator(UnknownLinkRegressor().fit(X, y), X, y)
    assert set(display.lines_[0].get_ydata()) == {2.0}
    display.figure_.savefig(tmp_path / "constant.png")
    assert (tmp_path / "constant.png").stat().st_size > 0


def test_faults_of_links():
    X, y = data()
    model = UnknownLinkRegressor().fit(X, y)
    with pytest.raises(InputError, match="Ridge has no link to draw: give a fitted UnknownLinkRegressor"):
        LinkDisplay.from_estimator(Ridge().fit(X, y), X, y)
    with pytest.raises(NotFittedError):
        LinkDisplay.from_estimator(UnknownLinkRegressor(), X, y)
    with pytest.raises(InputError, match=r"one number for each row: got shapes \(60,\) and \(59,\)"):
        LinkDisplay.from_estimator(model, X, y[1:])
    with pytest.raises(InputError, match="`n_points` must be at least 2, got 1"):
        LinkDisplay.from_estimator(model, X, y, n_points=1)
    with pytest.raises(InputError, match="`axes` must be 2 matplotlib axes, one for each panel, got 1"):
        LinkDisplay.from_estimator(model, X, y, axes=[plt.subplots()[1]])


@pytest.mark.parametrize(
    "draw",
    [
        lambda: LinkDisplay([0.0, 1.0], [0.0, 1.0], Link([0.0, 1.0], [0.0, 1.0])).plot(),
    ],
    ids=["link"],
)
def test_without_matplotlib_the_extra_is_named(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r'pip install "apexrank\[plot\]"'):
        draw()


def test_the_last_step_of_a_pipeline():
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    X = 50 + 3 * rng.normal(size=(80, 2))
    y = np.tanh(X @ [0.2, -0.2])
    pipe = make_pipeline(StandardScaler(), UnknownLinkRegressor()).fit(X, y)
    theta = pipe[-1].index(pipe[:-1].transform(X))
    search = GridSearchCV(pipe, {"unknownlinkregressor__alpha": [1e-4]}, cv=2).fit(X, y)
    for fitted in (pipe, search):
        assert LinkDisplay.from_estimator(fitted, X, y).theta == pytest.approx(theta, abs=1e-6)
