"""Rank aggregation: each method against plain Python, and the attributes of the result."""

import math
import tracemalloc
from itertools import product
from statistics import median

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from apexrank.aggregation.rank_aggregation import aggregate
from apexrank.errors import InputError

NAN = math.nan
ALL = ("lovasz-bregman", "borda", "copeland", "kemeny", "median", "combsum", "combmnz", "rrf")
BUT_KEMENY = tuple(method for method in ALL if method != "kemeny")


# plain Python, one voter after the other


def places(row, missing):
    """Mean place of each item on one ballot, None where it has none."""
    filled = [-math.inf if math.isnan(x) and missing == "last" else x for x in row]
    found = []
    for x in filled:
        if math.isnan(x):
            found.append(None)
            continue
        better = sum(y > x for y in filled)
        equal = sum(y == x for y in filled)
        found.append(better + (equal + 1) / 2)
    return found


def place_points(row, missing, table):
    """Points of the places; tied items share the mean."""
    filled = [-math.inf if math.isnan(x) and missing == "last" else x for x in row]
    found = []
    for x in filled:
        better, equal = sum(y > x for y in filled), sum(y == x for y in filled)
        found.append(NAN if math.isnan(x) else sum(table[better : better + equal]) / equal)
    return found


def borda_points(row, missing):
    n, place = len(row), places(row, missing)
    m = sum(p is not None for p in place)
    if m == 1:
        return [NAN if p is None else (n - 1) / 2 for p in place]
    return [NAN if p is None else (n - 1) * (m - p) / (m - 1) for p in place]


def normalised(row, how):
    known = [x for x in row if not math.isnan(x)]
    low, high, mean = min(known), max(known), sum(known) / len(known)
    if how is None:
        return list(row)
    if how == "minmax":
        shift, unit = low, high - low
    elif how == "sum":
        shift, unit = low, sum(x - low for x in known)
    else:
        shift, unit = mean, math.sqrt(sum((x - mean) ** 2 for x in known) / len(known))
    if high == low:
        shift, unit = low, 1.0
    return [(x - shift) / unit for x in row]


def score_points(row, missing, normalize):
    if normalize in ("borda", "rank"):
        points = borda_points(row, missing)
        return points if normalize == "borda" else [p / (len(row) - 1) for p in points]
    points = normalised(row, normalize)
    worst = min(x for x in points if not math.isnan(x))
    return [worst if math.isnan(x) and missing == "last" else x for x in points]


def naive(method, rows, weights, missing, normalize=None, k=60.0):
    """Scores of the items by the textbook definition; integer weights only."""
    n, total = len(rows[0]), sum(weights)
    if method == "copeland":
        return naive_copeland(rows, weights, missing)
    if method in ("borda", "median"):
        points = [borda_points(row, missing) for row in rows]
    elif method == "rrf":
        points = [place_points(row, missing, [1 / (k + p) for p in range(1, n + 1)]) for row in rows]
    else:
        points = [score_points(row, missing, normalize) for row in rows]
    found = []
    for item in range(n):
        own = [
            p[item] for p, w in zip(points, weights, strict=True) for _ in range(w) if not math.isnan(p[item])
        ]
        found.append(
            {
                "lovasz-bregman": lambda own: sum(own) / len(own),
                "borda": lambda own: sum(own) / len(own) * total,
                "median": median,
                "combsum": sum,
                "combmnz": lambda own: sum(own) * len(own),
                "rrf": sum,
            }[method](own)
        )
    return found


def naive_counts(rows, weights, missing):
    n = len(rows[0])
    counts = [[0] * n for _ in range(n)]
    for row, w in zip(rows, weights, strict=True):
        place = places(row, missing)
        for i, j in product(range(n), repeat=2):
            if place[i] is not None and place[j] is not None and place[i] < place[j]:
                counts[i][j] += w
    return counts


def naive_copeland(rows, weights, missing):
    counts, n = naive_counts(rows, weights, missing), len(rows[0])
    result = {1: 1.0, 0: 0.5, -1: 0.0}
    return [
        sum(result[int(np.sign(counts[i][j] - counts[j][i]))] for j in range(n) if j != i) for i in range(n)
    ]


def election(seed, voters=7, items=5, gaps=True):
    """Scores with ties and missing values; every voter and every item has at least one."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 6, (voters, items)).astype(float)
    if gaps:
        rows[rng.random(rows.shape) < 0.3] = NAN
        rows[0] = rng.integers(1, 6, items)
        rows[np.isnan(rows).all(axis=1), 0] = 3.0
    return rows, rng.integers(1, 5, voters)


# each method against the naive one


@pytest.mark.parametrize("missing", ["ignore", "last"])
@pytest.mark.parametrize("method", BUT_KEMENY)
@pytest.mark.parametrize("seed", range(6))
def test_scores_are_those_of_plain_python(method, missing, seed):
    rows, weights = election(seed)
    result = aggregate(rows, weights, method=method, missing=missing)
    expected = naive(method, rows.tolist(), weights.tolist(), missing)
    np.testing.assert_allclose(result.scores, expected, rtol=1e-12)
    rounded = np.round(expected, 9)
    assert result.ranks.tolist() == [int((rounded > x).sum()) + 1 for x in rounded]
    assert result.order == sorted(range(5), key=lambda item: (-rounded[item], item))


@pytest.mark.parametrize("missing", ["ignore", "last"])
@pytest.mark.parametrize("normalize", ["minmax", "sum", "zscore", "rank", "borda"])
@pytest.mark.parametrize("method", ["lovasz-bregman", "combsum", "combmnz"])
def test_normalised_scores(method, normalize, missing):
    rows, weights = election(3)
    rows[1] = 4.0  # a voter without preference
    found = aggregate(rows, weights, method=method, normalize=normalize, missing=missing).scores
    expected = naive(method, rows.tolist(), weights.tolist(), missing, normalize)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("alias", "name"), [("min-max", "minmax"), ("zmuv", "zscore")])
def test_names_of_retrieval_libraries(alias, name):
    rows, _ = election(1)
    assert (aggregate(rows, normalize=alias).scores == aggregate(rows, normalize=name).scores).all()


@pytest.mark.parametrize("normalize", ["minmax", "sum", "zscore"])
@pytest.mark.parametrize("unit", [1e-250, 1e250])
def test_the_unit_of_normalised_scores_is_free(normalize, unit):
    rows, _ = election(1)
    plain = aggregate(rows, normalize=normalize).scores
    np.testing.assert_allclose(
        aggregate(rows * unit, normalize=normalize).scores, plain, rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("k", [0, 1, 60])
def test_constant_of_reciprocal_rank_fusion(k):
    rows, weights = election(4)
    expected = naive("rrf", rows.tolist(), weights.tolist(), "ignore", k=k)
    np.testing.assert_allclose(aggregate(rows, weights, method="rrf", k=k).scores, expected, rtol=1e-12)


def test_raw_lovasz_bregman_orders_as_combsum_and_on_borda_points_as_borda():
    rows, weights = election(5, voters=40, items=8, gaps=False)
    rows += np.random.default_rng(0).normal(size=rows.shape)
    assert aggregate(rows, weights).order == aggregate(rows, weights, method="combsum").order
    on_points = aggregate(rows, weights, normalize="borda")
    borda = aggregate(rows, weights, method="borda")
    assert on_points.order == borda.order != aggregate(rows, weights).order
    np.testing.assert_allclose(on_points.scores * weights.sum(), borda.scores, rtol=1e-12)


def test_example_of_the_paper():
    result = aggregate([[1.9, 2], [1.8, 2], [1.95, 2], [2, 1], [2.5, 1.2]])
    np.testing.assert_allclose(result.scores, [2.03, 1.64], rtol=1e-12)
    assert result.order == [0, 1]
    assert result.condorcet_winner == 1
    assert result.confidence == pytest.approx((2.03 - 1.64) / (2.65 / 5))


# weights, labels, ties


def test_ties_that_only_rounding_breaks_are_ties():
    rows = np.array([[0.1, 0.3, 5.0], [0.2, 0.2, 5.0], [0.3, 0.1, 5.0]])
    assert rows.mean(0)[0] != rows.mean(0)[1]
    result = aggregate(rows)
    assert (result.ranks.tolist(), result.ties, result.order) == ([2, 2, 1], [(0, 1)], [2, 0, 1])
    signed = aggregate([[0.1, 0.3], [0.2, -0.2], [-0.3, -0.1]])  # both means are rounding errors
    assert signed.ranks.tolist() == [1, 1]
    assert aggregate([[1e-300, 2e-300]]).ties == []
    assert aggregate([[1e12, 1.0, 1.001]] * 50).ties == []  # independent of the size of other items


def test_a_voter_without_weight_decides_no_tie():
    rows = [[3, 2, 1], [1e17] * 3]
    assert aggregate(rows, [1, 0]).ranks.tolist() == [1, 2, 3]
    assert aggregate(rows, [1, 0], method="combmnz").ranks.tolist() == [1, 2, 3]


def test_ties_of_combmnz_depend_on_the_own_voters_of_an_item():
    found = aggregate([["a"], ["b"], ["c"]], [1, 1e9, 2], kind="orders", method="combmnz")
    assert found.ranks.tolist() == [3, 1, 2]


def columns_of_equals(voters=400, items=3, large=1e9):
    """Each column has the same numbers in a different order, including one large number."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 11, voters) / 10
    values[0] = large
    return np.column_stack([rng.permutation(values) for _ in range(items)])


@pytest.mark.parametrize("method", ["lovasz-bregman", "combsum", "combmnz"])
@pytest.mark.parametrize("weights", [None, np.full(400, 0.1)], ids=["plain", "weighted"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_equal_sums_are_ties_whichever_voter_has_the_large_number(method, weights, order):
    rows = np.array(columns_of_equals(), order=order)
    assert aggregate(rows, weights, method=method).ranks.tolist() == [1, 1, 1]
    rows[7, 1] += (
        0.1  # below the rounding of plain sums of a column that begins with 1e9, by far not of its size
    )
    assert aggregate(rows, weights, method=method).ranks.tolist() == [2, 1, 2]


def test_a_long_sum_that_rounds_the_same_way_each_time():
    """1e9 in front rounds each 0.1 the same way, 1e9 at the end none:

    The error grows with the number of voters, not its root.
    """
    rows = np.full((50_000, 2), 0.1)
    rows[0, 0] = rows[-1, 1] = 1e9
    plain = rows.cumsum(axis=0)[-1]
    assert abs(plain[0] - plain[1]) > 16 * np.finfo(float).eps * 1e9
    assert aggregate(rows).ties == [(0, 1)]
    rows[5, 1] += 1e-3
    assert aggregate(rows).ranks.tolist() == [2, 1]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["lovasz-bregman", "combsum", "combmnz"]))
def test_sums_are_those_of_exact_arithmetic(seed, method):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(rng.integers(1, 60), 3)) * 10.0 ** rng.integers(-9, 9, 3)
    weights = rng.random(len(rows))
    found = aggregate(rows, weights, method=method)
    exact = [math.fsum(column) for column in (weights[:, None] * rows).T]
    factor = {"lovasz-bregman": 1 / weights.sum(), "combsum": 1.0, "combmnz": weights.sum()}[method]
    sizes = np.abs(weights[:, None] * rows).sum(axis=0) * factor
    assert (np.abs(found.scores - np.array(exact) * factor) <= 16 * np.finfo(float).eps * sizes).all()


def test_majorities_that_only_rounding_makes_are_draws():
    assert 0.1 + 0.2 > 0.3
    rows, weights = [[2, 1], [2, 1], [1, 2]], [0.1, 0.2, 0.3]
    assert aggregate(rows, weights, method="copeland").scores.tolist() == [0.5, 0.5]
    result = aggregate(rows, weights, method="kemeny")
    assert result.ties == [(0, 1)]
    assert result.condorcet_winner is None


def test_a_ballot_of_one_item_is_in_the_middle():
    rows = [[5, 4, 3], [1, NAN, NAN]]
    assert aggregate(rows, method="borda").scores.tolist() == [3, 2, 0]
    assert aggregate(rows, method="median").scores.tolist() == [1.5, 1, 0]
    assert aggregate(rows, normalize="rank").scores.tolist() == [0.75, 0.5, 0]
    assert aggregate(rows, method="borda", missing="last").scores.tolist() == [4, 1.5, 0.5]


def test_ties_come_in_groups():
    result = aggregate([[4, 4, 2, 1, 1, 1]], items="abcdef", method="copeland")
    assert result.ties == [("a", "b"), ("d", "e", "f")]
    assert repr(result) == "Aggregation by copeland of 1 voter: a = b > c > d = e = f"


# ways in


def test_all_ways_in_say_the_same():
    rows = [[3.0, 1.0, NAN], [2.0, NAN, 5.0], [1.0, 4.0, 2.0]]
    names, voters = ["a", "b", "c"], ["x", "y", "z"]
    nested = {
        v: {i: s for i, s in zip(names, row, strict=True) if s == s}
        for v, row in zip(voters, rows, strict=True)
    }
    frame = pd.DataFrame(rows, columns=names, index=voters)
    ways = [
        aggregate(rows, items=names),
        aggregate(np.ma.masked_invalid(rows), items=names),
        aggregate([[None if s != s else s for s in row] for row in rows], items=np.array(names)),
        aggregate(frame),
        aggregate(frame.convert_dtypes()),
        aggregate(frame.astype(object)),
        aggregate(pl.DataFrame(frame.reset_index(drop=True)).fill_nan(None)),
        aggregate(nested),
        aggregate(nested, items=names),
        aggregate(dict(zip(voters, rows, strict=True)), items=names),
    ]
    for way in ways:
        assert way.items == names
        np.testing.assert_allclose(way.scores, [2.0, 2.5, 3.5])
        assert way.order == ["c", "b", "a"]
    assert [way.voters for way in ways[:4]] == [[0, 1, 2]] * 3 + [voters]
    assert ways[7].voters == voters


def test_weights_by_voter():
    nested = {"x": {"a": 1, "b": 0}, "y": {"a": 0, "b": 1}}
    assert aggregate(nested, {"y": 2, "x": 1}).order == ["b", "a"]
    with pytest.raises(InputError, match="no weight for the voter 'x'"):
        aggregate(nested, {"y": 2})
    with pytest.raises(InputError, match="named voters"):
        aggregate([[1, 2], [2, 1]], {0: 1, 1: 2})


def test_weights_of_a_series_are_those_of_its_index():
    frame = pd.DataFrame([[9, 1, 1], [1, 9, 1], [1, 1, 9]], columns=list("abc"), index=list("xyz"))
    weights = pd.Series({"z": 5, "x": 1, "y": 2})
    found = aggregate(frame, weights)
    assert found.order == ["c", "b", "a"]
    assert found.to_dict() == aggregate(frame, weights.to_dict()).to_dict()
    assert aggregate(frame.T.to_dict(), weights).to_dict() == found.to_dict()
    lists = pd.Series([list("abc"), list("bca"), list("cab")], index=list("xyz"))
    assert aggregate(lists, weights, kind="orders").order == ["c", "a", "b"]
    assert aggregate(frame.to_numpy(), weights).order == [0, 2, 1]  # rows without a name
    again = frame.set_axis(["x", "x", "y"])
    assert aggregate(again, pd.Series([1, 2, 5], index=again.index)).order == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ([0, 1], "index has no voter 'x': index it as the ballots, or pass weights.to_numpy"),
        (["x", "z"], "index has no voter 'y'"),
        (["y", "y"], "the voter 'y' twice"),
    ],
    ids=["numbers", "other", "twice"],
)
def test_a_series_of_other_voters_is_refused(index, message):
    frame = pd.DataFrame([[1, 2], [2, 1]], index=["x", "y"])
    with pytest.raises(InputError, match=message) as caught:
        aggregate(frame, pd.Series([1, 2], index=index))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [pd.Series, dict], ids=["series", "dict"])
def test_rows_with_names_are_read_by_name(kind):
    rows = [kind({"a": 1, "b": 9}), kind({"b": 8, "a": 2, "c": 5})]
    for data in (rows, tuple(rows), dict(zip("xy", rows, strict=True))):
        found = aggregate(data)
        assert (found.items, found.scores.tolist()) == (["a", "b", "c"], [1.5, 8.5, 5.0])
    assert aggregate(rows, items="cab").scores.tolist() == [5.0, 1.5, 8.5]
    assert aggregate(rows, kind="ranks").order == ["a", "c", "b"]
    with pytest.raises(InputError, match="mix voters"):
        aggregate([rows[0], [1, 2]])


def test_a_series_that_names_an_item_twice_is_refused():
    with pytest.raises(InputError, match="two items are named 'a'"):
        aggregate([pd.Series([1, 2], index=["a", "a"]), pd.Series({"a": 1, "b": 2})])


def test_frames_of_several_types():
    frame = pd.DataFrame({"a": [True, False], "b": [0.5, 0.25], "c": pd.array([3, None], dtype="Int64")})
    assert aggregate(frame).scores.tolist() == [0.5, 0.375, 3.0]
    assert aggregate(pl.from_pandas(frame)).scores.tolist() == [0.5, 0.375, 3.0]


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8, bool])
@pytest.mark.parametrize("weights", [None, [1, 2, 3]], ids=["plain", "weighted"])
def test_other_numbers(dtype, weights):
    rows = np.array([[1, 0, 1], [1, 1, 0], [0, 0, 1]])
    np.testing.assert_allclose(
        aggregate(rows.astype(dtype), weights).scores, aggregate(rows.astype(float), weights).scores
    )


def test_items_of_orders():
    assert aggregate([["z", "x"], ["y"]], kind="orders").items == ["z", "x", "y"]
    assert aggregate([[10, 2], [np.int64(7)]], kind="orders").to_frame()["item"].to_list() == [10, 7, 2]
    assert aggregate([list("ba"), tuple("ab"), iter("b")], kind="orders").order == ["b", "a"]
    unnamed = aggregate([["a"], ["b"]], kind="orders", items="abc")
    assert unnamed.ranks.tolist() == [1, 1, 3]
    assert aggregate({"x": ["a", "b"], "y": ["b"]}, kind="orders").voters == ["x", "y"]
    tied = aggregate([["a", ["b", "c"], "d"]], kind="orders")
    assert tied.ballots.scores.tolist() == [[-1, -2, -2, -4]]
    assert tied.voter_ranks().tolist() == [[1, 2.5, 2.5, 4]]


def test_arrays_of_orders_are_read_as_lists():
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(6), (20, 1)), axis=1)
    fast, slow = aggregate(orders, kind="orders"), aggregate(orders.tolist(), kind="orders")
    assert fast.to_dict() == slow.to_dict()
    part = aggregate(orders[:, :3], kind="orders")  # top lists
    assert part.to_dict() == aggregate(orders[:, :3].tolist(), kind="orders").to_dict()


ROWS = [["ann", "bob", "cy"], ["bob", "cy", None], ["bob", None, None]]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_of_orders_are_read_by_rows(frame):
    columns = ["first", "second", "third"]
    data = frame({name: [row[place] for row in ROWS] for place, name in enumerate(columns)})
    lists = [[item for item in row if item is not None] for row in ROWS]
    found = aggregate(data, kind="orders", method="borda")
    assert found.to_dict() == aggregate(lists, kind="orders", method="borda").to_dict()
    assert found.order == ["bob", "ann", "cy"]
    numbers = frame({"first": [3, 1], "second": [1, None]})
    assert aggregate(numbers, kind="orders").to_dict() == aggregate([[3, 1], [1]], kind="orders").to_dict()
    with pytest.raises(InputError, match="an item has no name"):
        aggregate(frame({"first": ["a", None], "second": ["b", "a"]}), kind="orders")
    with pytest.raises(InputError, match="a column of lists: pass that column"):
        aggregate(frame({"ballot": [["a", "b"], ["b", "a"]]}), kind="orders")


def test_names_of_voters_are_those_of_the_frame():
    frame = pd.DataFrame([["a", "b"], ["b", "a"]], index=["x", "y"])
    found = aggregate(frame, {"x": 1, "y": 2}, kind="orders")
    assert (found.voters, found.order) == (["x", "y"], ["b", "a"])


@pytest.mark.parametrize(
    ("ballots", "voter"),
    [
        (["a", "b", "c"], "voter 0"),
        ("abc", "voter 0"),
        ([["a", "b"], b"ba"], "voter 1"),
        ({"x": "ab"}, "voter 'x'"),
        (np.array(["ab", "ba"]), "voter 0"),
        (pl.Series(["ab", "ba"]), "voter 0"),
    ],
    ids=["flat list", "text", "bytes", "mapping", "array", "series"],
)
def test_text_is_no_ballot(ballots, voter):
    with pytest.raises(InputError, match=f"the ballot of {voter} is text: give a list of items"):
        aggregate(ballots, kind="orders")


@pytest.mark.parametrize(
    ("points", "table"),
    [
        ("borda", [3, 2, 1, 0]),
        ("linear", [1, 2 / 3, 1 / 3, 0]),
        ("reciprocal", [1, 1 / 2, 1 / 3, 1 / 4]),
        ("dcg", [1 / math.log2(1 + p) for p in (1, 2, 3, 4)]),
        ([12, 10], [12, 10, 0, 0]),
        ((5, 3, 2, 1, 1), [5, 3, 2, 1]),
    ],
    ids=["borda", "linear", "reciprocal", "dcg", "short", "long"],
)
def test_points_of_places(points, table):
    rows, orders = [[2, 1, 3, 4], [1, 1, 4, 3]], [["b", "a", "c", "d"], [["a", "b"], "d", "c"]]
    by_voter = [place_points([-r for r in row], "ignore", table) for row in rows]
    options = {"points": points, "method": "combsum"}
    found = aggregate(orders, [2, 1], kind="orders", items="abcd", **options).scores
    np.testing.assert_allclose(found, 2 * np.array(by_voter[0]) + by_voter[1], rtol=1e-12)
    if points in ("reciprocal", "dcg"):  # of the ranks themselves
        by_voter = [[table[rank - 1] for rank in row] for row in rows]
    found = aggregate(rows, [2, 1], kind="ranks", **options).scores
    np.testing.assert_allclose(found, 2 * np.array(by_voter[0]) + by_voter[1], rtol=1e-12)


POINTS_OF_RANKS = [
    ({"method": "rrf"}, lambda rank: 1 / (60 + rank)),
    ({"method": "rrf", "k": 0}, lambda rank: 1 / rank),
    ({"method": "combsum", "points": "reciprocal"}, lambda rank: 1 / rank),
    ({"method": "combsum", "points": "dcg"}, lambda rank: 1 / math.log2(1 + rank)),
]


@pytest.mark.parametrize(("options", "worth"), POINTS_OF_RANKS, ids=["rrf", "k", "reciprocal", "dcg"])
def test_ranks_are_those_of_the_voter_s_own_list(options, worth):
    rows = [[1, 50, 100], [7, 7, NAN], [2.5, 9, 1]]
    found = aggregate(rows, [1, 2, 3], kind="ranks", **options)
    gone = [[0 if math.isnan(rank) else worth(rank) for rank in row] for row in rows]
    np.testing.assert_allclose(found.scores, [1, 2, 3] @ np.array(gone), rtol=1e-12)
    last = aggregate(rows, [1, 2, 3], kind="ranks", missing="last", **options)
    gone[1][2] = worth(8)  # below 7
    np.testing.assert_allclose(last.scores, [1, 2, 3] @ np.array(gone), rtol=1e-12)


@pytest.mark.parametrize(("options", "worth"), POINTS_OF_RANKS, ids=["rrf", "k", "reciprocal", "dcg"])
def test_unranked_items_share_the_places_below_all_ranked_ones(options, worth):
    found = aggregate([[1, NAN, 1, NAN]], kind="ranks", missing="last", **options).scores
    low = (worth(3) + worth(4)) / 2
    np.testing.assert_allclose(found, [worth(1), low, worth(1), low], rtol=1e-12)


def test_defaults_for_missing_items():
    orders = [["a"], ["b", "a"], ["c", "b"]]
    for method in ALL:
        rule = "ignore" if method in ("combsum", "combmnz", "rrf") else "last"
        stated = aggregate(orders, kind="orders", method=method, missing=rule)
        other = aggregate(
            orders, kind="orders", method=method, missing={"ignore": "last", "last": "ignore"}[rule]
        )
        found = aggregate(orders, kind="orders", method=method)
        assert found.to_dict() == stated.to_dict()
        assert found.to_dict() != other.to_dict()
    rows = [[1, NAN, 3], [2, 1, NAN]]
    assert aggregate(rows).to_dict() == aggregate(rows, missing="ignore").to_dict()


# attributes of the result


def test_pairs_are_not_counted_before_they_are_asked_for(monkeypatch):
    monkeypatch.setattr("apexrank.aggregation.pairwise.MOST_ITEMS", 3)
    result = aggregate(np.arange(8.0).reshape(2, 4))
    assert result.condorcet_winner == 3
    assert "pairwise" not in vars(result)
    with pytest.raises(InputError, match="pairwise counts of 4 items"):
        _ = result.pairwise
    with pytest.raises(InputError, match="such as borda"):
        aggregate(np.arange(8.0).reshape(2, 4), method="copeland")


@pytest.mark.parametrize("missing", ["ignore", "last"])
def test_agreement_is_kendalls_tau_b(missing):
    rows, _ = election(6, voters=12, items=6)
    rows[3] = 2.0  # a voter without preference
    result = aggregate(rows, missing=missing)
    for row, tau in zip(rows, result.agreement, strict=True):
        kept = ~np.isnan(row) if missing == "ignore" else np.ones(6, dtype=bool)
        expected = kendalltau(-result.ranks[kept], np.where(np.isnan(row), -1, row)[kept]).statistic
        assert tau == pytest.approx(expected, nan_ok=True)
    assert np.isnan(result.agreement[3])


@pytest.mark.parametrize("method", ["lovasz-bregman", "borda", "median", "kemeny", "rrf"])
def test_confidence_is_the_spread_of_the_mean(method):
    rows, weights = election(7, gaps=False)
    kind = {"lovasz-bregman": "lovasz-bregman", "rrf": "rrf"}.get(method, "borda")
    points = np.array([
        {
            "lovasz-bregman": lambda row: row,
            "borda": lambda row: borda_points(row, "ignore"),
            "rrf": lambda row: place_points(row, "ignore", [1 / (60 + p) for p in range(1, 6)]),
        }[kind](row)
        for row in rows.tolist()
    ])  # fmt: skip
    expected = np.ptp(weights @ points) / (weights @ np.ptp(points, axis=1))
    assert aggregate(rows, weights, method=method).confidence == pytest.approx(expected, rel=1e-12)


def test_confidence_at_its_ends():
    assert aggregate([[3, 2, 1], [30, 15, 10]]).confidence == pytest.approx(1)
    assert aggregate([[3, 2, 1], [1, 2, 3]]).confidence == 0
    assert aggregate([[2, 2], [5, 5]]).confidence == 0
    assert aggregate([[9, NAN, 8.0], [NAN, 1, 2.0]]).confidence == 1  # would be more


def test_bootstrap_against_all_draws():
    rows = np.array([[3.0, 2, 1], [3, 1, 2], [2, 3, 1]])
    exact = np.zeros(3)
    for draw in product(range(3), repeat=3):
        scores = rows[list(draw)].sum(0)
        best = scores == scores.max()
        exact += best / best.sum() / 27
    drawn = aggregate(rows).bootstrap(20_000, random_state=1)
    np.testing.assert_allclose(drawn.first, exact, atol=0.015)
    weighted = aggregate(rows[[0, 2]], [2, 1]).bootstrap(20_000)  # three ballots are drawn, not two
    assert weighted.first[1] == pytest.approx(7 / 27, abs=0.015)


@pytest.mark.parametrize("method", ALL)
def test_a_draw_is_an_aggregation_with_its_weights(method, monkeypatch):
    rows, _ = election(9)
    draws = [np.array([2.0, 0, 1, 0, 3, 0, 1]), np.array([1.0, 1, 0, 4, 0, 1, 0])]
    monkeypatch.setattr("apexrank.aggregation.bootstrap._draws", lambda *_: iter([np.array(draws)]))
    found = aggregate(rows, method=method).bootstrap(2).ranks
    for own, weights in zip(found, draws, strict=True):
        assert own.tolist() == aggregate(rows, weights, method=method).ranks.tolist()


def test_voters_who_agree_leave_no_doubt():
    drawn = aggregate([[3, 2, 1]] * 5).bootstrap(50)
    assert (drawn.low == drawn.high).all()
    assert drawn.first.tolist() == [1, 0, 0]
    assert repr(drawn) == "RankBootstrap of 50 draws: 0 first in 100%"
    assert drawn.to_frame().columns == ["item", "low", "high", "first"]


def test_items_that_no_drawn_voter_scored_are_last():
    for method in ("lovasz-bregman", "median"):
        drawn = aggregate([[-3.0, NAN, -2], [-3, -1, NAN]], method=method).bootstrap(200)
        both = (3, 1, 2) if method == "lovasz-bregman" else (3, 1, 1)
        assert set(map(tuple, drawn.ranks.tolist())) == {(2, 3, 1), (2, 1, 3), both}


@pytest.mark.parametrize("method", ["copeland", "kemeny"])
def test_items_that_no_drawn_voter_compared_are_last(method):
    drawn = aggregate([[-3.0, NAN, -2], [-3, -1, NAN]], method=method).bootstrap(200)
    assert {(2, 3, 1), (2, 1, 3)} < set(map(tuple, drawn.ranks.tolist()))


@pytest.mark.parametrize("missing", ["ignore", "last"])
@pytest.mark.parametrize("seed", range(3))
def test_support_is_the_weight_of_the_voters_who_scored(seed, missing, monkeypatch):
    rows, weights = election(seed)
    monkeypatch.setattr("apexrank.aggregation.ballots.BLOCK", 10)
    found = aggregate(rows, weights, missing=missing)
    expected = [
        sum(int(w) for row, w in zip(rows, weights, strict=True) if not math.isnan(row[item]))
        for item in range(5)
    ]
    assert found.support.tolist() == expected
    assert found.to_dict()["support"] == dict(enumerate(expected))
    assert found.to_frame()["support"].to_list() == [expected[item] for item in found.order]


def test_support_is_told_only_where_scores_are_missing():
    found = aggregate(np.array([[1, 2], [2, 3]]), [0.1, 0.2])
    assert found.support.tolist() == [found.ballots.total] * 2
    assert "support" not in found.to_dict()
    assert "support" not in found.to_frame().columns


@pytest.mark.parametrize("method", ALL)
def test_items_of_low_support_are_after_all_others(method):
    rows, weights = election(3, items=6)
    rows[1:, 4:] = NAN
    rows[0, 4:] = 9, 8
    plain = aggregate(rows, weights, method=method)
    found = aggregate(rows, weights, method=method, min_support=float(weights[0]) + 1)
    assert found.support.tolist()[4:] == [weights[0]] * 2
    assert (found.scores == plain.scores).all()
    assert found.order[:4] == [item for item in plain.order if item < 4]
    assert found.order[4:] == [item for item in plain.order if item >= 4]
    assert sorted(found.ranks[4:].tolist()) in ([5, 5], [5, 6])
    assert found.bootstrap(20).ranks[:, 4:].min() == 5
    assert aggregate(rows, weights, method=method, min_support=float(weights[0])).order == plain.order


@pytest.mark.parametrize("method", ["lovasz-bregman", "borda", "combmnz"])
def test_ties_of_draws_are_those_of_exact_sums(method, monkeypatch):
    """With and without the voter of the large number, which is in no sum of the second draw."""
    rows = np.vstack([columns_of_equals(40) - 0.5, [[1e15, -1e15, 1e15]]])
    weights = np.ones(41)
    weights[-1] = 0
    monkeypatch.setattr("apexrank.aggregation.bootstrap._draws", lambda *_: iter([weights[None]]))
    drawn = aggregate(rows, method=method).bootstrap(2).ranks
    assert drawn[0].tolist() == aggregate(rows, weights, method=method).ranks.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "voters", "items", "most"),
    [("lovasz-bregman", 5, 20_000, 2**28), ("copeland", 4_000, 20, 2**26)],
    ids=["linear", "pairs"],
)
def test_draws_are_not_held_all_at_once(method, voters, items, most):
    result = aggregate(np.random.default_rng(0).normal(size=(voters, items)), method=method)
    result.bootstrap(2)
    tracemalloc.start()
    drawn = result.bootstrap(300)
    assert drawn.first.sum() == pytest.approx(1)
    assert (drawn.low <= drawn.high).all()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < most


def test_fractional_weights_draw_voters():
    drawn = aggregate([[1.0, 0], [0, 1], [0, 1]], [0.5, 0.0, 0.25]).bootstrap(100)
    assert drawn.ranks.shape == (100, 2)


def test_frames_and_dictionaries():
    result = aggregate([[1, 3, 3]], items=["a", "b", "c"])
    assert result.to_frame().rows() == [(1, "b", 3.0), (1, "c", 3.0), (3, "a", 1.0)]
    assert aggregate([[1, 2]], items=["a", 1]).to_frame()["item"].to_list() == ["1", "a"]
    assert result.to_dict() == {
        "method": "lovasz-bregman",
        "order": ["b", "c", "a"],
        "ranks": {"a": 3, "b": 1, "c": 1},
        "scores": {"a": 1.0, "b": 3.0, "c": 3.0},
        "ties": [["b", "c"]],
        "n_voters": 1,
    }
    assert aggregate([[2, 1]], method="kemeny").to_dict()["optimal"] is True
    assert repr(aggregate([range(12)])).endswith("> 2 … and 2 more")


# memory, blocks, bad input


@pytest.mark.parametrize("method", ["lovasz-bregman", "combsum", "borda", "rrf"])
@pytest.mark.parametrize("weights", [None, np.arange(1.0, 20_001)], ids=["plain", "weighted"])
def test_the_table_is_not_copied(method, weights):
    rows = np.random.default_rng(0).random((20_000, 100))
    aggregate(rows[:10], method=method)
    tracemalloc.start()
    aggregate(rows, weights, method=method)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < rows.nbytes * (0.1 if method in ("lovasz-bregman", "combsum") else 0.9)


@pytest.mark.parametrize("method", ALL)
def test_blocks_of_voters_and_items_make_no_difference(method, monkeypatch):
    rows, weights = election(10, voters=23, items=10)
    rows[:, 9] = 6.0  # the last one wins, so all others are visited twice
    whole = aggregate(rows, weights, method=method)
    ours = whole.scores, whole.confidence, whole.agreement, whole.condorcet_winner
    assert ours[3] == 9
    monkeypatch.setattr("apexrank.aggregation.ballots.BLOCK", 20)
    parts = aggregate(rows, weights, method=method)
    assert [len(list(blocks)) for blocks in (parts.ballots.blocks(), parts.ballots.columns())] == [12, 2]
    np.testing.assert_allclose(parts.scores, ours[0], rtol=1e-13)
    assert parts.confidence == pytest.approx(ours[1], rel=1e-12)
    np.testing.assert_array_equal(parts.agreement, ours[2])
    assert parts.condorcet_winner == ours[3]


GOOD = [[1.0, 2.0], [2.0, 1.0]]


@pytest.mark.parametrize(
    ("message", "data", "options"),
    [
        ("voter 1 gives no score at all", [[1, 2], [NAN, NAN]], {}),
        ("voter 'y' gives no score at all", {"x": {"a": 1, "b": 2}, "y": {}}, {}),
        ("gives 1 an infinite score", [[1, math.inf], [1, 2]], {}),
        ("gives 'b' an infinite score", [[1, -math.inf], [1, math.inf]], {"items": "ab"}),
        ("too large to be added", [[1e308, 1], [1e308, 1]], {}),
        ("too large to be added", [[1e200, 1], [1e200, 1]], {"weights": [1e60, 1e60], "method": "combmnz"}),
        ("weights are too large to be added", GOOD, {"weights": [1e308, 1e308]}),
        ("a voter are too far apart", [[1, 2], [1e308, -1e308]], {"normalize": "minmax"}),
        ("a voter are too far apart", [[1, 2], [1e308, -1e308]], {"normalize": "zscore"}),
        ("scores must be numbers", [["a", "b"]], {}),
        ("scores must be numbers", [["a", 1.0]], {}),
        ("one per item for each voter", [[1, 2], [1]], {}),
        ("column 'b' must be numbers", pd.DataFrame({"a": [1], "b": ["x"]}), {}),
        ("column 'b' holds String values", pl.DataFrame({"a": [1], "b": ["x"]}), {}),
        ("column 'b' holds datetime", pd.DataFrame({"a": [1], "b": pd.to_datetime(["2020-01-01"])}), {}),
        ("two items are named 'a'", pd.DataFrame([[1, 2]], columns=["a", "a"]), {}),
        ("items are the columns", pd.DataFrame([[1, 2]]), {"items": "ab"}),
        ("voters × items", [1, 2, 3], {}),
        ("are empty", np.empty((0, 3)), {}),
        ("are empty", [], {"kind": "orders"}),
        ("are empty", {}, {}),
        ("only one item", [[1], [2]], {}),
        ("no voter has a score for 1", [[1, NAN, 2], [2, NAN, 1]], {}),
        ("no voter has a score for 1", [[1, NAN, 2], [2, NAN, 1]], {"method": "median"}),
        ("no voter has a score for 1", [[1, NAN, 2], [3, NAN, 1]], {"method": "copeland"}),
        ("no voter has a score for 1", [[1, NAN, 2], [3, NAN, 1]], {"method": "kemeny"}),
        ("no voter has a score for 1", [[1, NAN, 2], [3, 2, 1]], {"method": "kemeny", "weights": [1, 0]}),
        ("`min_support` must be a finite number", GOOD, {"min_support": -1}),
        ("`min_support` 3 is more than any item has: give at most 2", GOOD, {"min_support": 3}),
        ("unknown `method` 'best'", GOOD, {"method": "best"}),
        ("unknown `normalize` 'max'", GOOD, {"normalize": "max"}),
        ("unknown `kind` 'votes'", GOOD, {"kind": "votes"}),
        ("unknown `missing` 'zero'", GOOD, {"missing": "zero"}),
        ("unknown `points` 'best'", GOOD, {"kind": "ranks", "points": "best"}),
        ("`points` must not rise", GOOD, {"kind": "ranks", "points": [1, 2]}),
        ("`points` must be a name or finite", GOOD, {"kind": "ranks", "points": [NAN]}),
        ("`points` are for ranks and orders", GOOD, {"points": "borda"}),
        ("ranks begin with 1", [[0, 1]], {"kind": "ranks"}),
        ("`k` must be a finite number", GOOD, {"k": -1}),
        ("`max_exact` must be", GOOD, {"max_exact": 2.5}),
        ("`time_limit` must be", GOOD, {"time_limit": -1}),
        ("each of the 2 voters", GOOD, {"weights": [1]}),
        ("at least 0, got -1", GOOD, {"weights": [1, -1]}),
        ("at least 0, got nan", GOOD, {"weights": [1, NAN]}),
        ("weights are all zero", GOOD, {"weights": [0, 0]}),
        ("weights must be numbers", GOOD, {"weights": ["a", "b"]}),
        ("one name for each of 2 columns, got 3", GOOD, {"items": "abc"}),
        ("two items are named 'a'", GOOD, {"items": "aa"}),
        ("an item has no name", GOOD, {"items": ["a", None]}),
        ("voter 1 names 'a' twice", [["a", "b"], ["a", "b", "a"]], {"kind": "orders"}),
        ("voter 0 names 'a' twice", [["b", ["a", "a"]]], {"kind": "orders"}),
        ("names 'c', which is not in items", [["a", "c"]], {"kind": "orders", "items": "ab"}),
        ("names 'c', which is not in items", {"x": {"a": 1, "c": 2}}, {"items": "ab"}),
        ("gives no score at all", [["a", "b"], []], {"kind": "orders"}),
        ("is a set, which has no order", [{"a", "b"}], {"kind": "orders"}),
        ("not hashable", [[["a", ["b"]], "c"]], {"kind": "orders"}),
        ("orders must be lists of items", 5, {"kind": "orders"}),
        ("mix voters", {"x": {"a": 1}, "y": [1]}, {}),
    ],
)
def test_bad_input_is_named_in_one_line(message, data, options):
    with pytest.raises(InputError, match=message) as caught:
        aggregate(data, **options)
    assert "\n" not in str(caught.value)


def test_sparse_scores_are_refused():
    from scipy.sparse import csr_array

    with pytest.raises(InputError, match="scores are sparse"):
        aggregate(csr_array(np.eye(3)))


@pytest.mark.parametrize("options", [{"n": 1}, {"confidence": 1.0}])
def test_bad_bootstraps(options):
    with pytest.raises(InputError, match="must be"):
        aggregate(GOOD).bootstrap(**options)


def test_infinity_and_silence_are_found_by_every_method():
    for method in ALL:
        with pytest.raises(InputError, match="infinite"):
            aggregate([[1, math.inf], [1, 2]], method=method)
        with pytest.raises(InputError, match="no score at all"):
            aggregate([[1, 2], [NAN, NAN]], method=method)
