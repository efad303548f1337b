"""Displays used only by the papers' experiments: discounts, sample sizes, convergence of solvers."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from apexrank_papers.link.data import draw_gaps
from apexrank_papers.push.figures import PAPER_DISCOUNTS, figure3
from apexrank_papers.push.tradeoffs import EPSILONS, SIZE_POWERS, THEOREMS, sample_size


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_discounts_are_the_papers():
    (ax,) = figure3().figure.axes
    lines = ax.lines[:3]
    for line, expected in zip(
        lines, (lambda z: 1 / np.log(1 + z), lambda z: 1 / z, lambda z: -np.log(1 + z)), strict=True
    ):
        np.testing.assert_allclose(line.get_ydata(), expected(line.get_xdata()))
    assert legend(ax) == list(PAPER_DISCOUNTS)
    assert len({line.get_color() for line in lines}) == 3
    assert len({line.get_linestyle() for line in lines}) == 3


def test_sample_sizes_are_those_of_the_table():
    found = sample_size()
    for ax, theorem in zip(found.figure.axes, THEOREMS, strict=True):
        for line, epsilon in zip(ax.lines, EPSILONS, strict=True):
            own = found.table.filter(theorem=theorem, epsilon=epsilon)
            assert line.get_xdata().tolist() == own["p"].to_list() == list(SIZE_POWERS)
            assert line.get_ydata().tolist() == own["negatives"].to_list()
        assert ax.get_yscale() == "log"
        assert legend(ax) == [f"ε = {epsilon:g}" for epsilon in EPSILONS]
        assert len({line.get_marker() for line in ax.lines}) == 3


def drawn(gaps, **options):
    ax = Figure().subplots()
    draw_gaps(ax, {name: np.array(values) for name, values in gaps.items()}, **options)
    return ax


def test_gaps_end_at_the_minimum():
    ax = drawn({"slow": [4.0, 3.0, 2.0], "fast": [4.0, 1.0, 0.0]})
    slow, fast = ax.lines
    assert slow.get_xydata().tolist() == [[1, 3], [2, 2]]  # no place for 0 on a logarithmic axis
    assert fast.get_xdata().tolist() == [1, 2]
    assert fast.get_ydata()[0] == 1
    assert np.isnan(fast.get_ydata()[1])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert legend(ax) == ["slow", "fast"]
    assert slow.get_color() != fast.get_color()


def test_the_start_is_drawn_on_a_linear_axis():
    ax = drawn({"A": [2.0, 1.0]}, log_x=False)
    assert ax.lines[0].get_xydata().tolist() == [[0, 2], [1, 1]]
    assert ax.get_xscale() == "linear"


@pytest.mark.parametrize("log_x", [True, False])
def test_long_histories_are_thinned_but_keep_their_end(log_x):
    values = 1 / np.arange(1.0, 100_002)
    t, gap = drawn({"A": values}, log_x=log_x).lines[0].get_data()
    assert len(t) <= 1000
    assert t[0] == int(log_x)
    assert t[-1] == 100_000
    np.testing.assert_array_equal(gap, values[t])


def test_guides_fall_with_their_rates():
    ax = drawn({"low": [9.0, 1.0, 0.5], "high": [9.0, 4.0, 2.0, 1.0]}, guides=(0.5, 1, 2))
    for line, rate in zip(ax.lines[2:], (0.5, 1, 2), strict=True):
        t, value = line.get_data()
        assert (t[0], t[-1]) == pytest.approx((1, 3))
        np.testing.assert_allclose(value, 4.0 * t**-rate, rtol=1e-12)
    assert legend(ax)[2:] == ["1/√t", "1/t", "1/t²"]
