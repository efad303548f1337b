"""One order from many: scores, ranks or lists of voters merged by a named method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from apexrank.aggregation.ballots import Missing
from apexrank.aggregation.fusion import low_support, supported_ranks
from apexrank.aggregation.methods import score_items
from apexrank.aggregation.points import RRF, Method, Normalize, Points, read_rule
from apexrank.aggregation.reading import Kind, read_ballots
from apexrank.aggregation.result import Aggregation
from apexrank.errors import InputError
from apexrank.metrics._rows import check_choice

_RETRIEVAL = ("combsum", "combmnz", "rrf")


def aggregate(
    scores: Any,
    weights: ArrayLike | Mapping[Any, float] | None = None,
    *,
    method: Method = "lovasz-bregman",
    normalize: Normalize | None = None,
    kind: Kind = "scores",
    points: Points | Sequence[float] | None = None,
    missing: Missing | None = None,
    items: Iterable[Any] | None = None,
    k: float = RRF,
    max_exact: int = 40,
    time_limit: float = 60.0,
    min_support: float = 0,
) -> Aggregation:
    """Merge the ballots of many voters into one order.

    The Lovász–Bregman divergence ``d(x‖σ) = <x, h_{σ_x} − h_σ>`` of scores and an order has a closed form for its best
    order: whatever the submodular function, ``Σ_i w_i d(x_i‖σ)`` is least for the order of the weighted mean score
    (Iyer and Bilmes 2013, sec. 4). So on raw scores ``"lovasz-bregman"`` orders exactly as CombSUM does, and on Borda
    points (``normalize="borda"``, or ranks and orders as they are read by default) exactly as Borda does; what it adds
    is that scores near each other weigh little. Voters on different scales need a ``normalize``, and none is chosen
    for you.

    Parameters
    ----------
    scores : table, data frame or mapping
        What the voters say, in one of three ways by ``kind``:

        - "scores": a table of voters × items, larger is better. An array, a pandas or polars data frame with the items
          as its columns, a mapping ``{voter: {item: score}}``, or a list of mappings ``{item: score}``; a pandas Series
          is a mapping. NaN or None is missing.
        - "ranks": the same with positions, 1 is best. They may be those of longer lists than these items.
        - "orders": for each voter a list of items, best first; a list or tuple inside it is a tie. Lists may stop
          early, or be given by voter as a mapping. In a data frame each row is a voter's list, and empty cells end it.
    weights : array of shape (voters,) or mapping of voter to number, optional
        How often each ballot was cast: a weight of 3 is the same as three equal ballots. A pandas Series is a mapping
        where the voters have names, which are the index of a data frame.
    method : str
        ==================  =======================================================================================
        "lovasz-bregman"    order of the weighted mean score
        "borda"             sum of n − place (de Borda 1781)
        "copeland"          number of majorities won, draws one half (Copeland 1951); needs all pairs of items
        "kemeny"            fewest contradicted preferences; needs all pairs of items. Proven best for groups of up to
                            ``max_exact`` items that beat each other in a circle, local search beyond
        "median"            median place
        "combsum"           sum of scores (Fox and Shaw 1994)
        "combmnz"           sum of scores times the number of voters who scored the item
        "rrf"               reciprocal rank fusion: sum of 1/(k + place), or of 1/(k + rank) with ``kind="ranks"``
                            (Cormack et al. 2009)
        ==================  =======================================================================================
    normalize : {"minmax", "sum", "zscore", "rank", "borda"}, optional
        Put each voter's scores on a scale of its own before they are added: to 0 … 1; above their least and summing to
        1; to mean 0 and variance 1; to n − place scaled to 0 … 1, or as it is. A voter whose scores are all equal then
        gives 0 to all ("rank" and "borda": the middle). "min-max" and "zmuv" are other names of the first and the
        third. The methods that use places only are not changed by it.
    kind : {"scores", "ranks", "orders"}
        What ``scores`` holds.
    points : {"borda", "linear", "reciprocal", "dcg"} or sequence of numbers, optional
        With ranks and orders, for the methods that add scores: what a place is worth. n − place, which is the default;
        the same scaled to 0 … 1; 1/place; 1/log2(1 + place); or the points of each place from the best on, 0 after the
        last. Tied items share the points of their places. With ``kind="ranks"`` the place in "reciprocal", "dcg" and
        ``rrf`` is the rank as it was given, so that 1, 50 and 100 are not 1, 2 and 3 and tied items have the points of
        the rank they were given; all other points are those of the places among the items here.
    missing : {"ignore", "last"}, optional
        What a missing score means. "ignore", no opinion: means and medians are over the voters who scored the item,
        sums (``combsum``, ``combmnz``, ``rrf``) get nothing, no pair with the item counts, and places of a ballot of m
        of n items are stretched to n (but for ``rrf``). "last": the item is tied with all others that the voter does
        not score, below those it does; it shares the points of their places, or, where raw or normalised scores are
        added, gets the voter's smallest one. By default "ignore", but "last" for orders unless the method is one of
        the three sums.
    items : iterable of names, optional
        Names of the columns of an array. For mappings and orders: all items there are, in this order.
    k : float
        Constant of ``rrf``.
    max_exact : int
        Largest group that ``kemeny`` solves exactly. Of more than 16 items that is up to 1e-7 of the largest majority,
        and ``optimal`` only where all majorities are multiples of one number, as those of whole votes are.
    time_limit : float
        Seconds that ``kemeny`` may take for the exact solution of a group.
    min_support : float
        Items that voters of less weight than this scored rank after all others, in the order of their scores, so that
        one good rating does not win. All items are in the result, and its scores are not changed.

    Returns
    -------
    Aggregation
        ``order``, ``ranks``, ``scores`` and ``ties``; on demand ``confidence``, ``pairwise``, ``condorcet_winner``,
        ``agreement``, ``support``, ``bootstrap()`` and ``plot()``.

    Notes
    -----
    All methods but "copeland" and "kemeny" are near-linear in the number of scores. "lovasz-bregman" and "combsum" read
    a clean table of raw scores once, without a copy.

    Examples
    --------
    Three voters slightly prefer the second item, two strongly the first (the example of the paper's sec. 4, whose
    text swaps the two orders). The scores say [0, 1], a majority of the voters [1, 0]:

    >>> scores = [[1.9, 2], [1.8, 2], [1.95, 2], [2, 1], [2.5, 1.2]]
    >>> result = aggregate(scores)
    >>> result.order, result.scores.round(2).tolist()
    ([0, 1], [2.03, 1.64])
    >>> round(result.confidence, 2), result.condorcet_winner
    (0.74, 1)
    >>> aggregate(scores, method="borda").order
    [1, 0]

    Ballots with their counts, ties as nested lists, and unnamed items last:

    >>> ballots = [["ann", "bob", "cy"], ["cy", ["ann", "bob"]], ["bob"]]
    >>> aggregate(ballots, [4, 3, 2], kind="orders", method="kemeny")
    Aggregation by kemeny of 9 voters (3 different ballots): ann > bob > cy
    """
    rule = read_rule(method, normalize, points, k, max_exact, time_limit, min_support)
    check_choice("kind", kind, Kind)
    if points is not None and kind == "scores":
        raise InputError(
            "points are for ranks and orders: with kind='scores' use normalize='borda' or another"
        )
    if missing is None:
        missing = "last" if kind == "orders" and method not in _RETRIEVAL else "ignore"
    check_choice("missing", missing, Missing)
    ballots = read_ballots(scores, weights, kind=kind, missing=missing, items=items)
    found = score_items(ballots, rule)
    ranks = supported_ranks(found.scores, found.tolerance, low_support(ballots, rule))
    return Aggregation(ballots.items, found.scores, ranks, ballots, rule, found.tolerance, found.proof)
