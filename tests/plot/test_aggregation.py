"""Display of a merged ranking."""

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt

from apexrank.aggregation.rank_aggregation import aggregate
from apexrank.errors import InputError
from apexrank.plot.aggregation import AggregationDisplay

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def names(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def texts(display):
    return [text.get_text() for text in display.ax_.texts]


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_rows_are_the_items_best_first():
    result = aggregate([[1, 3, 2], [1, 3, 3]], items=["ann", "bob", "cy"])
    display = result.plot(bootstrap=50)
    assert names(display) == ["bob  1", "cy  2", "ann  3"]
    assert display.points_.get_offsets().tolist() == [[1, 0], [2, 1], [3, 2]]
    low, high = display.ax_.get_ylim()
    assert low > high  # the best item on top
    assert display.ax_.get_title() == f"Lovász–Bregman of 2 voters, confidence {result.confidence:.2f}"
    assert texts(display)[:4] == ["score", "3.0", "2.5", "1.0"]


def test_ties_and_numbers_are_marked():
    display = aggregate([[2, 1, 1]]).plot()
    assert names(display) == ["item 0  1", "item 1  2=", "item 2  2="]


def test_intervals_and_shares_are_those_of_the_bootstrap():
    rows = np.linspace(1, 0, 5) + 0.5 * np.random.default_rng(0).normal(size=(12, 5))
    result = aggregate(rows)
    drawn = result.bootstrap(100, confidence=0.8, random_state=3)
    display = result.plot(bootstrap=100, level=0.8, random_state=3)
    order = display.items
    segments = np.array(display.intervals_.get_segments())
    assert segments[:, 0, 0].round().tolist() == drawn.low[order].tolist()
    assert segments[:, 1, 0].round().tolist() == drawn.high[order].tolist()
    assert (segments[:, 0, 0] < drawn.low[order]).all()
    assert texts(display)[-5:] == [f"{share:.0%}" for share in drawn.first[order]]
    assert "80% bootstrap interval" in legend(display)


def test_bubbles_are_shares_of_the_voters():
    orders = [["a", "b", "c"], ["b", "a", "c"], ["c", ["a", "b"]]]
    display = aggregate(orders, [5, 4, 1], kind="orders", method="borda").plot(bootstrap=0)
    offsets, areas = display.bubbles_.get_offsets(), display.bubbles_.get_sizes()
    found = {(float(x), int(y)): area for (x, y), area in zip(offsets, areas, strict=True)}
    unit = 230.0
    expected = {
        (1, 0): 0.5, (2, 0): 0.4, (2.5, 0): 0.1,
        (1, 1): 0.4, (2, 1): 0.5, (2.5, 1): 0.1,
        (1, 2): 0.1, (3, 2): 0.9,
    }  # fmt: skip
    assert found == pytest.approx({place: unit * share for place, share in expected.items()})


def test_missing_ranks_have_no_bubble():
    display = aggregate([[2, 1, np.nan], [3, 1, 2]]).plot(bootstrap=0)
    at_last = display.bubbles_.get_offsets()[:, 1] == display.items.tolist().index(2)
    assert display.bubbles_.get_sizes()[at_last].tolist() == [115.0]


def test_without_draws_or_voters():
    plain = aggregate([[2, 1], [1, 2]]).plot(bootstrap=0)
    assert plain.intervals_ is None
    assert "first" not in texts(plain)
    assert aggregate([[2, 1]]).plot().intervals_ is None  # one voter
    bare = AggregationDisplay(["a", "b"], [2, 1]).plot()
    assert bare.bubbles_ is None
    assert legend(bare) == ["rank of the result"]


def test_many_items_show_the_top_and_gather_the_rest():
    rng = np.random.default_rng(0)
    result = aggregate(np.linspace(1, 0, 200) + rng.normal(size=(400, 200)))
    display = result.plot(top=10, bootstrap=20)
    assert display.items.tolist() == result.order[:10]
    assert "first 10 shown" in display.ax_.get_xlabel()
    last = display.ax_.get_xticklabels()[-1].get_text()
    assert last.startswith("> ")
    limit = float(last[2:])
    offsets, areas = display.bubbles_.get_offsets(), display.bubbles_.get_sizes()
    for row, item in enumerate(display.items):
        beyond = areas[(offsets[:, 1] == row) & (offsets[:, 0] > limit)]
        share = (result.voter_ranks()[:, item] > limit).mean()
        assert beyond.sum() == pytest.approx(230 * share)
    assert display.ax_.get_xlim()[1] >= offsets[:, 0].max()


def test_long_and_odd_names():
    name = "a name that is far too long\nfor a label, with $maths$ in it"
    display = aggregate([[2, 1]], items=[name, "b_{x}$"]).plot()
    display.figure_.canvas.draw()
    assert all(len(text) <= 36 and "\n" not in text for text in names(display))
    assert names(display)[1] == "b_{x}$  2"


def test_given_axes_are_used_and_cleared():
    _, ax = plt.subplots()
    result = aggregate([[2, 1], [1, 2]])
    first = result.plot(ax=ax, bootstrap=20)
    count = len(ax.collections), len(ax.texts)
    again = result.plot(ax=ax, bootstrap=20, color="black")
    assert first.ax_ is again.ax_ is ax
    assert (len(ax.collections), len(ax.texts)) == count
    assert matplotlib.colors.to_hex(again.points_.get_facecolor()[0]) == "#000000"


@pytest.mark.parametrize(
    ("message", "ranks", "options"),
    [
        ("ranks needs one number for each of the 2 items", [1], {}),
        ("scores needs one number", [1, 2], {"scores": ["x", "y"]}),
        ("low needs one number", [1, 2], {"low": [1, np.nan], "high": [1, 2]}),
        ("both ends", [1, 2], {"low": [1, 2]}),
        ("`top` must be a whole number", [1, 2], {"top": 0}),
        (r"voters × 2 items, got shape \(1, 3\)", [1, 2], {"voter_ranks": [[1, 2, 3]]}),
        ("weights needs one number", [1, 2], {"voter_ranks": [[1, 2]], "weights": [1, 2]}),
    ],
)
def test_bad_parts(message, ranks, options):
    with pytest.raises(InputError, match=message):
        AggregationDisplay(["a", "b"], ranks, **options)
