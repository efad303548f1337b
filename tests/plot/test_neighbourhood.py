"""Display of the in-links of a vertex."""

import matplotlib
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from apexrank.datasets import make_crawl, plant_farms
from apexrank.errors import InputError
from apexrank.graph import InDegree, PageRank
from apexrank.plot import NeighbourhoodDisplay

matplotlib.use("Agg")


@pytest.fixture
def rank():
    links = [("a", "x"), ("b", "x"), ("c", "x"), ("x", "a"), ("c", "b"), ("d", "c"), ("x", "x")]
    return PageRank().fit(tuple(zip(*links, strict=True)))


def test_sources_links_and_colours(rank):
    display = NeighbourhoodDisplay.from_rank(rank, "x")
    found = [text for text in display.ax_.texts if hasattr(text, "arrow_patch")]
    links = {link.source: link.share for link in rank.explain("x")}
    written = [text.get_text() for text in display.ax_.texts if text.get_text()]
    assert set(written) == {f"{name} ({links[name]:.1%})" for name in "abc"}
    into = [text for text in found if tuple(text.xy) == (0, 0)]
    heads = [type(text.arrow_patch.get_arrowstyle()).__name__ for text in into]
    assert len(into) == 3
    assert sorted(heads) == ["CurveFilledAB", "CurveFilledB", "CurveFilledB"]  # x links back to a alone
    assert len(found) == 4  # and c links to b
    widths = [text.arrow_patch.get_linewidth() for text in into]
    assert widths[0] > widths[-1]
    assert widths == sorted(widths, reverse=True)  # the strongest come first
    marks = {group.get_label(): len(group.get_offsets()) for group in display.ax_.collections}
    assert marks["no other in-links"] == 1
    assert marks["other in-links"] == 2
    assert to_hex(display.ax_.collections[0].get_facecolor()[0]) == "#d55e00"
    plt.close(display.figure_)


def test_boosters_of_a_farm_are_seen_and_the_axes_may_be_given():
    crawl = plant_farms(make_crawl(500, random_state=0).adjacency, farms=1, boosters=30)
    figure, ax = plt.subplots()
    display = NeighbourhoodDisplay.from_rank(PageRank().fit(crawl.adjacency), 500, top=5, ax=ax)
    assert display.ax_ is ax
    assert display.around.unsupported == [True] * 5
    figure.canvas.draw()
    plt.close(figure)


def test_bad_input(rank):
    with pytest.raises(InputError, match="nobody links to 'd'"):
        NeighbourhoodDisplay.from_rank(rank, "d")
    with pytest.raises(InputError, match="'z' is not in the graph"):
        NeighbourhoodDisplay.from_rank(rank, "z")
    with pytest.raises(InputError, match="InDegree does not explain its scores: use PageRank"):
        NeighbourhoodDisplay.from_rank(InDegree().fit(([0], [1])), 1)
    with pytest.raises(InputError, match="`top` must be a whole number"):
        NeighbourhoodDisplay.from_rank(rank, "x", top=0)
