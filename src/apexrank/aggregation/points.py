"""Points that a voter gives to the items: its scores, as given or normalised, or points for their places.

Tied items share the mean of the points of the places they take. A ballot that ranks m of n items and has no opinion
of the others is stretched over all n places where points fall by the same amount each place ("borda", "linear"), so
that its best item has the points of a first place and its worst those of a last one; of a single item that is the
middle. Other points are those of the places in the voter's own list. Where the voter gave ranks, "rrf", "reciprocal"
and "dcg" are those of the ranks as they were given, in the list of the voter that may be longer than ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from apexrank.aggregation.ballots import Ballots
from apexrank.errors import InputError
from apexrank.kernels.inversions import mean_ranks, sort_rows
from apexrank.kernels.jit import kernel
from apexrank.metrics._rows import check_choice
from apexrank.preprocessing import QueryNormalizer
from apexrank.validation import Segments, check_finite

Method = Literal["lovasz-bregman", "borda", "copeland", "kemeny", "median", "combsum", "combmnz", "rrf"]
Normalize = Literal["minmax", "sum", "zscore", "rank", "borda"]
Points = Literal["borda", "linear", "reciprocal", "dcg"]
ListPoints = Literal["borda", "reciprocal", "dcg", "minmax", "zscore"]
_SCORE_METHODS = ("lovasz-bregman", "combsum", "combmnz")
RRF = 60.0  # the constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009)
_ALIASES = {"min-max": "minmax", "zmuv": "zscore"}  # as retrieval libraries spell them


@dataclass(frozen=True)
class Rule:
    """A method of aggregation with its options; the parameters are those of `apexrank.aggregation.aggregate`.

    Examples
    --------
    >>> Rule("rrf", k=1).place_points(3).round(3).tolist()
    [0.5, 0.333, 0.25]
    """

    method: Method = "lovasz-bregman"
    normalize: Normalize | None = None
    points: Points | tuple[float, ...] = "borda"
    k: float = RRF
    max_exact: int = 40
    time_limit: float = 60.0
    min_support: float = 0.0

    @property
    def takes_scores(self) -> bool:
        """Whether the method uses the scores themselves, and not only their order."""
        return self.method in _SCORE_METHODS

    def takes_places(self, ballots: Ballots) -> bool:
        """Whether the points are those of places."""
        return not self.takes_scores or ballots.positional or self.normalize in ("rank", "borda")

    @property
    def scale(self) -> str | tuple[float, ...]:
        """Which points a place has."""
        if self.method == "rrf":
            return "rrf"
        if not self.takes_scores or self.normalize == "borda":
            return "borda"
        return "linear" if self.normalize == "rank" else self.points

    def place_points(self, n: int) -> np.ndarray:
        """Points of each of n places, the best one first."""
        place = np.arange(1.0, n + 1)
        scale = self.scale
        if isinstance(scale, str):
            return self.points_at(place) if scale in _OF_RANKS else _PLACES[scale](place, n)
        table = np.zeros(n)
        table[: len(scale)] = scale[:n]
        return table

    def takes_ranks(self, ballots: Ballots) -> bool:
        """Whether the points are those of the ranks as they were given."""
        return ballots.ranked and self.scale in _OF_RANKS

    def points_at(self, place: np.ndarray) -> np.ndarray:
        """Points of any places or ranks, which a scale has that does not depend on the number of items.

        Examples
        --------
        >>> Rule("rrf", k=60).points_at(np.array([40.0])).item()
        0.01
        """
        if self.scale == "rrf":
            return 1 / (self.k + place)
        return 1 / place if self.scale == "reciprocal" else _dcg(place)


def _dcg(place: np.ndarray) -> np.ndarray:
    return 1 / np.log2(1 + place)


_PLACES: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "borda": lambda place, n: n - place,
    "linear": lambda place, n: (n - place) / (n - 1),
}
_OF_RANKS = ("rrf", "reciprocal", "dcg")


def read_rule(
    method: Any, normalize: Any, points: Any, k: Any, max_exact: Any, time_limit: Any, min_support: Any = 0
) -> Rule:
    """Check the options of a method.

    Examples
    --------
    >>> read_rule("borda", "min-max", None, 60, 40, 60).normalize
    'minmax'
    """
    check_choice("method", method, Method)
    normalize = _ALIASES.get(normalize, normalize) if isinstance(normalize, str) else normalize
    if normalize is not None:
        check_choice("normalize", normalize, Normalize)
    check_finite("k", k, 0)
    check_finite("time_limit", time_limit, 0)
    check_finite("min_support", min_support, 0)
    if not isinstance(max_exact, int | np.integer) or max_exact < 0:
        raise InputError(f"max_exact must be a whole number of items, 0 or more, got {max_exact!r}")
    scale: Any = "borda" if points is None else _read_points(points)
    return Rule(method, normalize, scale, float(k), int(max_exact), float(time_limit), float(min_support))


def _read_points(points: str | Sequence[float]) -> Any:
    if isinstance(points, str):
        check_choice("points", points, Points)
        return points
    try:
        table = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim != 1 or not len(table) or not np.isfinite(table).all():
        raise InputError("points must be a name or finite numbers, one for each place from the best on")
    if (np.diff(table) > 0).any() or table[-1] < 0:
        raise InputError("points must not rise from one place to the next, nor fall below 0")
    return tuple(table.tolist())


def voter_points(ballots: Ballots, rule: Rule, rows: slice | np.ndarray) -> np.ndarray:
    """Points that some voters give to each item, NaN where they give none.

    Examples
    --------
    >>> ballots = Ballots(np.array([[5.0, 9.0, 7.0, 7.0], [1.0, np.nan, 3.0, np.nan]]), list("abcd"))
    >>> voter_points(ballots, Rule("borda"), slice(None))
    array([[0. , 3. , 1.5, 1.5],
           [0. , nan, 3. , nan]])
    """
    if rule.takes_places(ballots):
        of_ranks = rule.takes_ranks(ballots)
        points = (_points_of_ranks if of_ranks else _points_of_places)(ballots, rule, rows)
        return normalized(points, rule.normalize) if rule.takes_scores else points
    points = normalized(ballots.read(rows), rule.normalize)
    missing = np.isnan(points)
    if ballots.missing == "last" and missing.any():
        return np.where(missing, np.nanmin(points, axis=1, keepdims=True), points)
    return points


def _points_of_places(ballots: Ballots, rule: Rule, rows: slice | np.ndarray) -> np.ndarray:
    order, given = ballots.sort(rows)
    table, points = rule.place_points(ballots.n_items), np.empty(given.shape)
    _share_points(*order, table, points)
    if given.all():
        return points
    if rule.scale in ("borda", "linear"):
        ranked = given.sum(axis=1, keepdims=True)
        lowest = table[ranked - 1]
        stretched = (points - lowest) * (ballots.n_items - 1) / np.maximum(ranked - 1, 1)
        points = np.where(ranked == 1, table[0] / 2, stretched)
    return np.where(given, points, np.nan)


def _points_of_ranks(ballots: Ballots, rule: Rule, rows: slice | np.ndarray) -> np.ndarray:
    """Points of the ranks themselves; items that are last share those of the places below all that are ranked."""
    ranks = -ballots.read(rows)
    points = rule.points_at(ranks)
    if ballots.missing == "ignore":
        return points
    missing = np.isnan(ranks)
    for row in np.flatnonzero(missing.any(axis=1)).tolist():
        unranked = int(missing[row].sum())
        lowest = max(np.nanmax(ranks[row]), ballots.n_items - unranked)
        points[row, missing[row]] = rule.points_at(lowest + np.arange(1, unranked + 1)).mean()
    return points


def normalized(points: np.ndarray, normalize: Normalize | None) -> np.ndarray:
    """Each voter's points on a scale of its own; those of places ("rank", "borda") are on one already.

    Examples
    --------
    >>> normalized(np.array([[2.0, 6.0, 4.0]]), "minmax").tolist()
    [[0.0, 1.0, 0.5]]
    """
    if normalize not in ("minmax", "sum", "zscore"):
        return points
    with np.errstate(over="ignore"):
        shifted = points - np.nanmin(points, axis=1, keepdims=True)
    spread = np.nanmax(shifted, axis=1, keepdims=True)
    if np.isinf(spread).any():
        raise InputError(
            "scores of a voter are too far apart to subtract them: divide all by the same number"
        )
    shifted /= np.where(spread > 0, spread, 1.0)  # a voter whose scores are all equal gives 0 to all
    if normalize == "minmax":
        return shifted
    # of numbers from 0 to 1 no sum or square leaves the range of floats
    if normalize == "sum":
        unit = np.nansum(shifted, axis=1, keepdims=True)
    else:
        shifted -= np.nanmean(shifted, axis=1, keepdims=True)
        unit = np.sqrt(np.nanmean(shifted**2, axis=1, keepdims=True))
    return shifted / np.where(unit > 0, unit, 1.0)


def list_points(
    X: np.ndarray, lists: Segments, *, normalize: ListPoints | None = "borda", kind: str = "scores"
) -> np.ndarray:
    """Points of each document of many lists by each ranker, larger is better; NaN where a ranker does not list it.

    Weights of rankers are for lists of any length, so that "borda" is a share of the list's, and is not stretched: the
    last document that a ranker lists is to have more than one it does not list. Tied documents have the points of their
    mean place, where those of a ballot share the points of their places.

    Parameters
    ----------
    X : array of shape (n, rankers)
        Scores, or ranks with 1 for the best; NaN where a ranker does not list a document.
    lists : Segments
        The documents of each list.
    normalize : {"borda", "reciprocal", "dcg", "minmax", "zscore"} or None
        See :class:`~apexrank.aggregation.learn.LovaszAggregator`.
    kind : {"scores", "ranks"}
        What X holds.

    Examples
    --------
    >>> from apexrank.validation import segment
    >>> X = np.array([[4.0], [9.0], [np.nan], [2.0]])
    >>> list_points(X, segment(None, 4), kind="ranks").ravel().tolist()
    [0.75, 0.5, nan, 1.0]
    """
    scores = X if kind == "scores" else -X
    if normalize is None:
        return scores
    if normalize in ("minmax", "zscore"):
        # as `normalized`, but of all lists in one pass, and for rankers that list nothing of some
        method = "minmax" if normalize == "minmax" else "standard"
        return QueryNormalizer(method, missing="keep").fit_transform(scores, groups=lists.of_rows())
    if kind == "ranks" and normalize in _OF_RANKS:
        # ranks are places in the ranker's own list, which may be longer than ours
        return _points_of(X, None, normalize)
    size = np.diff(lists.indptr)[lists.of_rows()][:, None]
    return _points_of(_mean_places(scores, lists), size, normalize)


def points_in_list(
    X: np.ndarray, listed: np.ndarray, *, normalize: ListPoints | None = "borda", kind: str = "scores"
) -> np.ndarray:
    """Points as of `list_points`, of documents that are placed one by one in a list which is there already.

    A document tied with some of the list has their place, one between two of them the place midway; none is before the
    first place or after the last.

    Parameters
    ----------
    X, listed : arrays of shape (n, rankers), (n_listed, rankers)
        What the rankers say of the documents, and of those of the list.
    normalize, kind
        As in `list_points`.

    Examples
    --------
    >>> listed = np.array([[4.0], [3.0], [3.0], [1.0]])
    >>> points_in_list(np.array([[4.0], [3.0], [2.0], [0.0], [np.nan]]), listed).ravel().tolist()
    [1.0, 0.625, 0.375, 0.25, nan]
    """
    scores, own = (X, listed) if kind == "scores" else (-X, -listed)
    if normalize is None:
        return scores
    if normalize in ("minmax", "zscore"):
        method = "minmax" if normalize == "minmax" else "standard"
        return QueryNormalizer(method, missing="keep").fit(own).transform(scores)
    if kind == "ranks" and normalize in _OF_RANKS:
        return _points_of(X, None, normalize)
    places = np.column_stack(
        [_places_among(column, values) for column, values in zip(scores.T, own.T, strict=True)]
    )
    return _points_of(places, len(listed), normalize)


def _points_of(places: np.ndarray, size: Any, normalize: str) -> np.ndarray:
    """Points of places in lists of that size."""
    if normalize == "borda":
        return (size + 1 - places) / size
    return (RRF + 1) / (RRF + places) if normalize == "reciprocal" else _dcg(places)


def _places_among(scores: np.ndarray, listed: np.ndarray) -> np.ndarray:
    """Place of each score among others, 1 for the best: half of those that are equal count as better."""
    known = np.sort(listed[~np.isnan(listed)])
    better = len(known) - (np.searchsorted(known, scores) + np.searchsorted(known, scores, "right")) / 2
    return np.where(np.isnan(scores), np.nan, np.clip(better + 0.5, 1, max(len(known), 1)))


def _mean_places(scores: np.ndarray, lists: Segments) -> np.ndarray:
    """Place of each document in its list by each ranker, 1 for the best; tied documents share the mean."""
    places = np.empty(scores.shape)
    for q in range(len(lists)):
        rows = lists.rows(q)
        places[rows] = mean_ranks(sort_rows(-scores[rows].T)).T  # those not listed come last
    return np.where(np.isnan(scores), np.nan, places)


@kernel()
def _share_points(order, new, table, points):
    """Points of the places; tied items share the mean of theirs."""
    n = order.shape[1]
    for r in range(order.shape[0]):
        start = 0
        while start < n:
            end, total = start + 1, table[start]
            while end < n and not new[r, end]:
                total += table[end]
                end += 1
            for i in range(start, end):
                points[r, order[r, i]] = total / (end - start)
            start = end
