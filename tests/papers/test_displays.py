"""Displays that only the papers' experiments need: discounts, sample sizes, convergence of solvers."""

import sys

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt

from apexrank.bounds import negatives_needed
from apexrank.errors import InputError, MissingExtraError
from apexrank.rankers import UnknownLinkRegressor
from apexrank_papers.link.convergence_display import ConvergenceDisplay
from apexrank_papers.push.displays import DiscountDisplay, SampleSizeDisplay

matplotlib.use("Agg")


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_discounts_are_the_papers():
    display = DiscountDisplay.from_functions(z=[1.0, np.e - 1, 9.0])
    dcg, aver, ir = (line.get_ydata() for line in display.lines_)
    np.testing.assert_allclose(dcg, [1 / np.log(2), 1, 1 / np.log(10)])
    np.testing.assert_allclose(aver, [1, 1 / (np.e - 1), 1 / 9])
    np.testing.assert_allclose(ir, [-np.log(2), -1, -np.log(10)])
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert [label.split(", ")[1] for label in labels] == ["DCG", "AveR", "IR Push"]
    assert len({line.get_color() for line in display.lines_}) == 3
    assert len({line.get_linestyle() for line in display.lines_}) == 3


def test_discounts_of_ones_own():
    figure, ax = plt.subplots()
    display = DiscountDisplay.from_functions({"half": lambda z: 0.5**z}, z=[1, 2], ax=ax, linewidth=4)
    assert display.figure_ is figure
    assert display.lines_[0].get_xydata().tolist() == [[1, 0.5], [2, 0.25]]
    assert display.lines_[0].get_linewidth() == 4
    with pytest.raises(InputError, match="no discount"):
        DiscountDisplay.from_functions({})


def test_sample_sizes_are_those_of_the_bounds():
    ps = (1, 2, 5)
    display = SampleSizeDisplay.from_bounds(
        ps, [0.1, 0.3], theta=0.2, log_covering=2.0, r_min=0.1, n_positives=1e7, delta=0.01
    )
    for epsilon, line in zip((0.1, 0.3), display.lines_, strict=True):
        options = {"r_min": 0.1, "n_positives": 1e7}
        expected = [negatives_needed(epsilon, 0.01, 0.2, p, 2.0, **options) for p in ps]
        assert line.get_ydata().tolist() == expected
        assert line.get_xdata().tolist() == list(ps)
    assert display.ax_.get_yscale() == "log"
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["ε = 0.1", "ε = 0.3"]
    assert len({line.get_marker() for line in display.lines_}) == 2


def test_sample_sizes_beyond_a_float_are_left_out():
    display = SampleSizeDisplay.from_bounds([1, 400], [0.1], theta=0.2, log_covering=2.0)
    assert display.needed["ε = 0.1"][1] == np.inf
    assert np.isnan(display.lines_[0].get_ydata()).tolist() == [False, True]
    with pytest.raises(InputError, match="at least one epsilon"):
        SampleSizeDisplay.from_bounds([1], [], theta=0.2, log_covering=2.0)


def test_gaps_count_from_the_minimum():
    display = ConvergenceDisplay.from_histories({"slow": [5.0, 4.0, 3.0], "fast": [5.0, 2.0, 1.0]})
    assert display.gaps["slow"].tolist() == [4.0, 3.0, 2.0]
    slow, fast = display.lines_
    assert slow.get_xydata().tolist() == [[1, 3], [2, 2]]  # no place for 0 on a logarithmic axis
    assert fast.get_xdata().tolist() == [1, 2]
    assert fast.get_ydata()[0] == 1
    assert np.isnan(fast.get_ydata()[1])
    assert (display.ax_.get_xscale(), display.ax_.get_yscale()) == ("log", "log")
    assert legend(display.ax_) == ["slow", "fast"]
    assert slow.get_color() != fast.get_color()


def test_the_start_is_drawn_on_a_linear_axis():
    display = ConvergenceDisplay.from_histories({"A": [3.0, 2.0]}, best=1.0, log_x=False, linewidth=5)
    assert display.lines_[0].get_xydata().tolist() == [[0, 2], [1, 1]]
    assert display.ax_.get_xscale() == "linear"
    assert display.lines_[0].get_linewidth() == 5


@pytest.mark.parametrize("log_x", [True, False])
def test_long_histories_are_thinned_but_keep_their_end(log_x):
    values = 1 / np.arange(1.0, 100_002)
    display = ConvergenceDisplay({"A": values}).plot(log_x=log_x)
    t, gap = display.lines_[0].get_data()
    assert len(t) <= 1000
    assert t[0] == int(log_x)
    assert t[-1] == 100_000
    np.testing.assert_array_equal(gap, values[t])


def test_guides_fall_with_their_rates():
    display = ConvergenceDisplay({"low": [9.0, 1.0, 0.5], "high": [9.0, 4.0, 2.0, 1.0]}).plot(
        guides=(0.5, 1, 2, 3)
    )
    for line, rate in zip(display.guides_, (0.5, 1, 2, 3), strict=True):
        t, value = line.get_data()
        assert (t[0], t[-1]) == pytest.approx((1, 3))
        np.testing.assert_allclose(value, 4.0 * t**-rate, rtol=1e-12)
    assert legend(display.ax_)[2:] == ["1/√t", "1/t", "1/t²", "1/t^3"]


def test_no_guide_where_there_is_nothing_above_the_minimum():
    display = ConvergenceDisplay.from_histories({"done": [1.0]}, guides=(1,))
    assert display.guides_ == []
    assert len(display.lines_[0].get_xdata()) == 0


def test_solvers_over_an_earlier_display():
    first = ConvergenceDisplay.from_histories({"A": [3.0, 2.0]}, best=1.0)
    second = ConvergenceDisplay.from_histories({"B": [3.0, 1.5]}, best=1.0, ax=first.ax_)
    assert legend(first.ax_) == ["A", "B"]
    assert first.lines_[0].get_color() != second.lines_[0].get_color()


def test_histories_of_estimators_that_share_an_objective():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.tanh(2 * X @ [0.6, -0.8, 0.0]) + 0.1 * rng.normal(size=200)
    models = {solver: UnknownLinkRegressor(solver=solver).fit(X, y) for solver in ("lbfgs", "newton")}
    display = ConvergenceDisplay.from_histories({name: model.history_ for name, model in models.items()})
    ends = [gaps[-1] / gaps[0] for gaps in display.gaps.values()]
    assert max(ends) < 1e-8
    assert min(ends) == 0


def test_faults_of_convergence():
    for bad in ({}, {"A": []}, {"A": [[1.0]]}):
        with pytest.raises(InputError, match="there is nothing to draw: give"):
            ConvergenceDisplay.from_histories(bad)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: ConvergenceDisplay.from_histories({"A": [2.0, 1.0]}),
        lambda: DiscountDisplay.from_functions(),
        lambda: SampleSizeDisplay([1], {"a": [1.0]}).plot(),
    ],
    ids=["convergence", "discounts", "sample sizes"],
)
def test_without_matplotlib_the_extra_is_named(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r'pip install "apexrank\[plot\]"'):
        draw()
