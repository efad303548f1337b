"""Charts, numbers and names as text, and the colours of the reports."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apexrank.errors import InputError
from apexrank.report.charts import FONT, Axis, Chart, fit_name, padded, width_of
from apexrank.report.page import TEMPLATES, listed, number, percent, render, shorten

STYLE = (TEMPLATES / "report.css").read_text()


def chart(**options):
    return Chart(Axis(0, 10, "x"), Axis(0, 1, "y"), **options)


def parsed(drawing, start=0):
    return ET.fromstring(drawing.render(start, "T", "D"))


class TestAxis:
    def test_places_are_linear_or_logarithmic(self):
        assert Axis(2, 4).place([2, 3, 4]).tolist() == [0, 0.5, 1]
        assert Axis(4, 2).place([2, 3, 4]).tolist() == [1, 0.5, 0]
        np.testing.assert_allclose(Axis(1, 100, log=True).place([1, 10, 100]), [0, 0.5, 1])
        assert np.isneginf(Axis(1, 100, log=True).place([0])).all()

    @pytest.mark.parametrize(
        ("low", "high"), [(0, 1), (-3, 17), (0.123, 0.131), (1e-9, 2e-9), (5, 5e7), (9, 2)]
    )
    def test_ticks_are_round_inside_and_neither_few_nor_many(self, low, high):
        values = [value for value, _ in Axis(low, high).marks()]
        assert 3 <= len(values) <= 12
        assert min(low, high) - 1e-9 * abs(high) <= min(values)
        assert max(values) <= max(low, high) + 1e-9 * abs(high)
        steps = np.diff(values)
        np.testing.assert_allclose(steps, steps[0], rtol=1e-6)
        assert f"{steps[0]:.3e}"[0] in "125"

    @pytest.mark.parametrize(("low", "high"), [(1, 1e3), (0.5, 2e9), (1, 9), (3, 5)])
    def test_ticks_of_a_logarithmic_axis(self, low, high):
        values = [value for value, _ in Axis(low, high, log=True).marks()]
        assert values
        assert len(values) <= 8
        assert low <= min(values) <= max(values) <= high

    def test_given_ticks_stay(self):
        assert Axis(0, 2, ticks=[(0, "one"), (2, "inf")]).marks() == [(0.0, "one"), (2.0, "inf")]

    @pytest.mark.parametrize(
        ("low", "high", "log"), [(1, 1, False), (0, np.nan, False), (0, 1, True), (0, np.inf, False)]
    )
    def test_an_axis_without_room_is_refused(self, low, high, log):
        with pytest.raises(InputError, match="axis needs"):
            Axis(low, high, log=log)


class TestChart:
    def test_points_land_where_the_axes_say(self):
        drawing = chart(width=120, height=110, margins=(10, 10, 5, 5))
        drawing.line([0, 10, 5], [0, 1, 0.5])
        (line,) = parsed(drawing).iter("polyline")
        assert line.get("points") == "10,105 110,5 60,55"

    def test_gaps_split_a_line(self):
        drawing = chart()
        drawing.line([0, 1, 2, 3], [0.1, np.nan, 0.3, 0.4])
        assert [len(line.get("points").split()) for line in parsed(drawing).iter("polyline")] == [1, 2]

    def test_only_the_parts_of_the_starting_frame_are_on(self):
        drawing = chart()
        for frame in range(3):
            drawing.line([0, 1], [0, 1], frame=frame)
        groups = {g.get("data-frame"): g.get("class") for g in parsed(drawing, start=2).iter("g")}
        assert groups == {"0": "frame", "1": "frame", "2": "frame on"}

    def test_what_comes_from_data_is_escaped(self):
        nasty = '<script>alert("1")</script>&'
        drawing = Chart(Axis(0, 1, nasty), Axis(0, 1, ticks=[(0, nasty)]))
        drawing.text(0, 0, nasty)
        drawing.points([0.5], [0.5], titles=[nasty])
        written = drawing.render(0, nasty, nasty)
        assert "<script" not in written
        assert ET.fromstring(written).get("aria-label").startswith(nasty)

    @pytest.mark.parametrize("series", range(9))
    def test_every_series_has_a_mark(self, series):
        drawing = chart()
        drawing.points([1, np.nan], [0.5, 0.5], series=series)
        (mark,) = (path for path in parsed(drawing).iter("path") if "mark" in path.get("class"))
        assert f"s{series % 7}" in mark.get("class")

    def test_an_unknown_shape_is_refused(self):
        with pytest.raises(InputError, match="unknown `shape`"):
            chart().points([1], [1], shape="star")

    def test_bars_have_positive_sides_whatever_the_corners(self):
        drawing = chart()
        drawing.bar(4, 0.5, 1, 0.2)
        (bar,) = parsed(drawing).iter("rect")
        assert float(bar.get("width")) > 0
        assert float(bar.get("height")) > 0

    def test_bands_close(self):
        drawing = chart(width=120, height=110, margins=(10, 10, 5, 5))
        drawing.band([0, 10], [0, 0], [0.5, 1])
        (band,) = parsed(drawing).iter("polygon")
        assert band.get("points") == "10,105 110,105 110,5 10,55"

    def test_bands_have_gaps(self):
        drawing = chart()
        drawing.band([0, 1, 2, 3], [0, 0, np.nan, 0], [0.5, 1, 1, np.nan])
        (band,) = parsed(drawing).iter("polygon")
        assert len(band.get("points").split()) == 4
        empty = chart()
        empty.band([0, 1], [np.nan, np.nan], [1, 1])
        assert not list(parsed(empty).iter("polygon"))


class TestNames:
    @given(st.text(max_size=60), st.floats(1, 12), st.booleans())
    def test_they_fit(self, name, ems, bold):
        short = fit_name(name, ems, bold=bold)
        assert width_of(short, bold=bold) <= max(ems, width_of("…", bold=bold))
        line = " ".join(name.split())
        if short != line:
            head, tail = short.split("…", 1) if line.count("…") == 0 else ("", "")
            assert line.startswith(head)
            assert line.endswith(tail)
            assert width_of(line, bold=bold) > ems


def spans(drawing, font=FONT):
    """Left and right ends of the texts on the horizontal axis, with a generous estimate of their widths."""
    ticks = [each for each in parsed(drawing).iter("text") if each.get("class") == "tick"]
    below = [each for each in ticks if each.get("text-anchor") == "middle"]
    half = [font * width_of(each.text) / 2 for each in below]
    return sorted(
        (float(each.get("x")) - h, float(each.get("x")) + h) for each, h in zip(below, half, strict=True)
    )


class TestTicks:
    """Tick labels do not overlap each other or the axis label, in the larger font of phones."""

    @pytest.mark.parametrize("low", [1, 1000, 9000])
    @pytest.mark.parametrize("n", [2, 6, 12, 40])
    def test_four_digit_ticks_do_not_overlap(self, low, n):
        powers = [f"{p}" for p in range(low, low + n)]
        drawing = Chart(Axis(-0.3, n - 0.7, "p", ticks=list(enumerate(powers))), Axis(0, 1), height=320)
        ends = spans(drawing)
        assert all(right < left for (_, right), (left, _) in pairwise(ends))
        grid = [
            each
            for each in parsed(drawing).iter("path")
            if "V" in each.get("d") and each.get("class") == "grid"
        ]
        assert len(grid) == n  # every position keeps its line
        assert 1 <= len(ends) <= n
        if n == 2:
            assert len(ends) == 2  # nothing is left out where there is room

    @pytest.mark.parametrize("high", [9, 1_000, 123_456, 7e6, 9e9, 2e12])
    @pytest.mark.parametrize("log", [False, True])
    def test_numbers_of_any_size(self, high, log):
        axis = Axis(1 if log else 0, high, "rows", log=log)
        drawing = Chart(axis, axis)
        ends = spans(drawing)
        assert len(ends) >= 2
        assert all(right < left for (_, right), (left, _) in pairwise(ends))
        beside = [each for each in parsed(drawing).iter("text") if each.get("text-anchor") == "end"]
        # the label of the axis, turned by a quarter, ends at 14 + half a line
        assert all(float(each.get("x")) - FONT * width_of(each.text) > 14 + FONT / 2 for each in beside)

    def test_names_that_must_all_be_there_are_kept(self):
        ticks = [(i, f"a long name {i}") for i in range(30)]
        assert len(spans(Chart(Axis(0, 29, ticks=ticks, thin=False), Axis(0, 1)))) == 30


def test_padded_axes():
    assert padded([1, 51]) == (-2, 54)
    assert padded([2, 2, np.nan]) == (1, 3)
    assert padded([np.nan]) == (0, 1)
    assert padded([0.0]) == (-1, 1)


def test_numbers_for_people():
    assert [number(v) for v in (12, -3, 0.5, 1e15, float("inf"))] == ["12", "−3", "0.5", "10¹⁵", "∞"]
    assert (percent(0.5), percent(float("nan"))) == ("50 %", "–")
    assert [percent(v, 2) for v in (1.0, 0.999, 0.033)] == ["100 %", "100 %", "3.3 %"]
    assert [number(v) for v in (1599.9999, -12345.6, 999.6)] == ["1,600", "−12,346", "1,000"]


def test_huge_and_tiny_numbers_are_powers_of_ten():
    shown = [number(v) for v in (1.21e207, -4.1e12, 1e9, 2.5e-7, -1e-9, 123456789.4)]
    assert shown == ["1.21 × 10²⁰⁷", "−4.1 × 10¹²", "10⁹", "2.5 × 10⁻⁷", "−10⁻⁹", "123,456,789"]
    assert not any("e" in text for _, text in Axis(1, 1e12, log=True).marks())


def test_long_lists_are_cut():
    assert listed(list("abcd")) == "a, b, c and d"
    assert listed(list("abcde")) == "a, b, c and 2 others"
    assert listed(list("abcde"), 5) == "a, b, c, d and e"


def test_long_names_keep_both_ends():
    assert shorten("x" * 48) == "x" * 48
    assert shorten("a" * 30 + "b" * 30) == "a" * 24 + "…" + "b" * 23
    assert {len(shorten("n" * 100, most)) for most in (5, 6)} == {5, 6}


def test_a_page_escapes_and_is_told_what_it_lacks():
    import jinja2

    html = render("base.html", SimpleNamespace(notes=["<i>"], seconds={"total": 1.0}), "<b>&")
    assert not re.search(r"<b>|<i>", html)
    assert "default-src 'none'" in html
    with pytest.raises(jinja2.UndefinedError):
        render("base.html", SimpleNamespace(), "t")


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1, 2], ids=["light", "dark", "print"])
def test_contrast_of_text_and_lines(scheme):
    """WCAG AA requires a contrast of 4.5 for text and 3 for lines (WCAG 2.2, 1.4.3 and 1.4.11)."""
    block = re.findall(r":root \{(.*?)\}", STYLE, flags=re.DOTALL)[scheme]
    colour = dict(re.findall(r"--(\w+): (#\w{6})", block))
    for text in ("ink", "muted", "accent", "good", "bad"):
        for ground in ("paper", "card", "shade"):
            assert contrast(colour[text], colour[ground]) >= 4.5, (text, ground)
    for series in range(7):
        assert contrast(colour[f"s{series}"], colour["paper"]) >= 3, series
