"""Voters behind an aggregation: majorities, agreement with the result, and two camps."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from apexrank.aggregation.ballots import Ballots, uneven_ranges
from apexrank.aggregation.fusion import Rule, voter_points
from apexrank.aggregation.kmeans import LovaszBregmanKMeans, silhouette
from apexrank.aggregation.pairwise import copeland_scores, margins, pairwise_counts
from apexrank.aggregation.rank_aggregation import Aggregation
from apexrank.metrics.permutation import kendall_tau
from apexrank.report.votes.methods import MOST_PAIRS, has_gaps

_MOST_COUNTED = 1_000  # maximum number of items for which all majorities are kept, for the Smith set
_MOST_SCORES = 2**23  # maximum number of scores for computing agreement
_MOST_WITH_GAPS = 10_000  # maximum number of voters for it, if they score different items
_MOST_CLUSTERED = 2**21  # maximum number of scores for clustering voters into camps
_FEWEST_VOTERS = 20  # minimum number for finding camps
_SMALLEST_CAMP = 0.1
_FARTHEST_TAU = 0.25  # camps whose orders agree more than this are not distinct


@dataclass(frozen=True, eq=False)
class Majorities:
    """Pairwise majorities among the first items.

    Attributes
    ----------
    items : ndarray
        Indices of the first items of the result, best first.
    shares : ndarray of shape (k, k)
        Share of the voters who prefer the row item to the column item; ties and missing scores count for neither.
    margins : ndarray of shape (k, k)
        Weight of these voters minus that of those who prefer the column item; exactly 0 for a draw.
    winner : int or None
        Index of the Condorcet winner: the item that a majority prefers to every other one.
    smith : ndarray or None
        Indices of the Smith set, the smallest set of items each of which a majority prefers to every item outside, in
        the order of the result; None if there are too many pairs to count.
    circle : tuple of three numbers, or None
        Without a winner: items of which a majority prefers each to the next, and the last to the first.
    """

    items: np.ndarray
    shares: np.ndarray
    margins: np.ndarray
    winner: int | None
    smith: np.ndarray | None
    circle: tuple[int, int, int] | None

    def to_dict(self, labels: list[str]) -> dict[str, Any]:
        """The majorities as plain values, with items by name."""
        smith, circle = self.smith, self.circle
        return {
            "items": [labels[number] for number in self.items.tolist()],
            "shares": self.shares.tolist(),
            "condorcet_winner": None if self.winner is None else labels[self.winner],
            "smith": None if smith is None else [labels[number] for number in smith.tolist()],
            "circle": None if circle is None else [labels[number] for number in circle],
        }


def count_majorities(result: Aggregation, most: int = 15) -> Majorities:
    """Count majorities among the first items, and find the Condorcet winner among all.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> found = count_majorities(aggregate([[3, 2, 1], [1, 3, 2], [2, 1, 3]]))
    >>> found.winner, found.smith.tolist(), found.circle
    (None, [0, 1, 2], (0, 1, 2))
    """
    ballots, total = result.ballots, result.ballots.total
    order = np.argsort(result.ranks, kind="stable")
    items = order[:most]
    counts = _counts_of(result, items)
    margin = margins(counts, total)
    name = result.condorcet_winner
    winner = None if name is None else result.items.index(name)
    smith = np.array([winner]) if winner is not None else None
    n = ballots.n_items
    if winner is None and n <= _MOST_COUNTED and ballots.scores.size * n <= MOST_PAIRS:
        inside = smith_set(result.pairwise, total)
        smith = order[np.isin(order, inside)]
    circle = None if winner is not None else _circle(margin)
    named = None if circle is None else tuple(items[list(circle)].tolist())
    return Majorities(items, counts / total, margin, winner, smith, named)


def smith_set(counts: np.ndarray, total: float) -> np.ndarray:
    """Indices of the Smith set, the smallest set of items that all beat every item outside (Smith 1973).

    k items have a total Copeland score of at most ``k(k − 1)/2 + k(n − k)``, attained only if they beat all others.

    Examples
    --------
    >>> smith_set(np.array([[0, 2, 1, 3], [1, 0, 2, 3], [2, 1, 0, 3], [0, 0, 0, 0]]), 3).tolist()
    [0, 1, 2]
    """
    scores = copeland_scores(counts, total)
    order = np.argsort(-scores, kind="stable")
    n = len(scores)
    k = np.arange(1, n + 1)
    full = k * (k - 1) / 2 + k * (n - k)
    size = int(np.argmax(np.cumsum(scores[order]) == full)) + 1
    return np.sort(order[:size])


def _counts_of(result: Aggregation, items: np.ndarray) -> np.ndarray:
    """Pairwise counts of some items; voters who score none of them have no preference."""
    ballots = result.ballots
    heard = np.flatnonzero(~np.isnan(np.asarray(ballots.scores[:, items], dtype=np.float64)).all(axis=1))
    if not len(heard):
        return np.zeros((len(items), len(items)))
    seen = some_voters(ballots, heard)
    names = [result.items[number] for number in items.tolist()]
    return pairwise_counts(replace(seen, scores=seen.scores[:, items], items=names))


def _circle(margin: np.ndarray) -> tuple[int, int, int] | None:
    """Three items that beat each other in a cycle, with the best ranks."""
    beats = margin > 0
    for a in range(len(beats)):
        for b in np.flatnonzero(beats[a]).tolist():
            back = np.flatnonzero(beats[b] & beats[:, a])
            if len(back):
                return a, b, int(back[0])
    return None


@dataclass(frozen=True, eq=False)
class VoterAgreement:
    """Kendall's τ_b of voters with the result.

    Attributes
    ----------
    rows : ndarray
        Indices of the voters, all of them or a random sample.
    tau : ndarray
        Their τ_b; NaN if all items are tied for the voter, or in the result.
    weights : ndarray
        Number of times each ballot was cast.
    silent : int
        Number of these ballots that rank no item above another.
    sampled : bool
        Whether only a sample was used.
    """

    rows: np.ndarray
    tau: np.ndarray
    weights: np.ndarray
    silent: int
    sampled: bool

    @property
    def known(self) -> np.ndarray:
        """Mask of the voters that have an order and a weight."""
        return ~np.isnan(self.tau) & (self.weights > 0)

    @property
    def mean(self) -> float | None:
        """Mean over the voters who rank some item above another; None if there are none."""
        known = self.known
        return float(np.average(self.tau[known], weights=self.weights[known])) if known.any() else None

    def histogram(self, bins: int = 20) -> tuple[np.ndarray, np.ndarray]:
        """Share of these voters in equal bins from −1 to 1, and the edges of the bins."""
        known = self.known
        counts, ends = np.histogram(self.tau[known], bins, (-1, 1), weights=self.weights[known])
        return counts / max(self.weights[known].sum(), np.finfo(float).tiny), ends

    def extremes(self, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """Positions in ``rows`` of the voters who agree most and least, without overlap."""
        known = np.flatnonzero(self.known)
        order = known[np.argsort(-self.tau[known], kind="stable")]
        most = order[: min(k, (len(order) + 1) // 2)]
        return most, order[::-1][: min(k, len(order) - len(most))]


def voter_agreement(result: Aggregation, random_state: Any, notes: list[str]) -> VoterAgreement:
    """Compute the agreement of all voters, or of a random sample if there are many.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> found = voter_agreement(aggregate([[3, 2, 1], [3, 2, 1], [1, 2, 3]]), 0, [])
    >>> found.tau.tolist(), found.mean
    ([1.0, 1.0, -1.0], 0.3333333333333333)
    """
    ballots = result.ballots
    most = max(1, _MOST_SCORES // ballots.n_items)
    if has_gaps(result):
        most = min(most, _MOST_WITH_GAPS)
    rows = _sample(ballots.n_voters, most, random_state)
    sampled = len(rows) < ballots.n_voters
    if sampled:
        notes.append(f"Agreement is that of {len(rows):,} voters, drawn at random from {ballots.n_voters:,}.")
    seen = some_voters(ballots, rows) if sampled else ballots
    tau = replace(result, ballots=seen).agreement if sampled else result.agreement
    return VoterAgreement(rows, tau, ballots.weight(rows), _silent(seen), sampled)


def _silent(ballots: Ballots) -> int:
    """Number of ballots with positive weight in which no item is above another."""
    number = 0
    for part in ballots.blocks():
        block = part.ordered()
        tied = np.fmax.reduce(block, axis=1) == np.fmin.reduce(block, axis=1)  # ignoring NaN
        number += int((tied & (part.weight() > 0)).sum())
    return number


def some_voters(ballots: Ballots, rows: np.ndarray) -> Ballots:
    """Ballots of selected voters, without their names."""
    weights = None if ballots.weights is None else ballots.weights[rows]
    return replace(ballots, scores=ballots.scores[rows], weights=weights, voters=None)


def _sample(n: int, most: int, random_state: Any) -> np.ndarray:
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(random_state).choice(n, most, replace=False))


def uneven_scales(result: Aggregation, rows: np.ndarray) -> tuple[float, float] | None:
    """Score ranges of narrow and of wide voters if the widest dominate; None otherwise.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> uneven_scales(aggregate([[80, 20, 50], [1, 3, 2], [2, 3, 1]]), np.arange(3))
    (2.0, 60.0)
    """
    rule, ballots = result.rule, result.ballots
    if not rule.takes_scores or rule.normalize is not None or ballots.positional:
        return None
    return uneven_ranges(ballots.read(rows)[ballots.weight(rows) > 0])


@dataclass(frozen=True, eq=False)
class Camps:
    """Two groups of voters, by `apexrank.aggregation.kmeans.LovaszBregmanKMeans` on Borda points.

    Attributes
    ----------
    rows, labels : ndarray
        Indices of the voters, and the camp of each; camp 0 is the larger.
    shares : ndarray of shape (2,)
        Share of the voters in each camp.
    orders : ndarray of shape (2, n)
        Indices of the items by their mean points in each camp, best first.
    silhouette, chance : float
        Simplified silhouette of the camps, and of two groups of as many voters with shuffled ballots.
    tau : float
        Kendall's τ of the two orders.
    """

    rows: np.ndarray
    labels: np.ndarray
    shares: np.ndarray
    orders: np.ndarray
    silhouette: float
    chance: float
    tau: float

    @property
    def places(self) -> np.ndarray:
        """Rank of each item in each camp, shape (2, n)."""
        return np.argsort(self.orders, axis=1) + 1

    @property
    def threshold(self) -> float:
        """Silhouette above which camps are clear: halfway from chance to 1."""
        return (1 + self.chance) / 2

    @property
    def clear(self) -> bool:
        """Whether the camps are separated, have different orders, and neither is small."""
        apart = self.silhouette >= self.threshold and self.tau <= _FARTHEST_TAU
        return bool(apart and self.shares.min() >= _SMALLEST_CAMP)

    def to_dict(self, labels: list[str], most: int) -> dict[str, Any]:
        """The camps as plain values, with the first ``most`` items of each by name."""
        return {
            **{name: getattr(self, name) for name in ("clear", "silhouette", "threshold", "tau")},
            "shares": self.shares.tolist(),
            "orders": [[labels[number] for number in order[:most].tolist()] for order in self.orders],
        }


def find_camps(result: Aggregation, random_state: Any, notes: list[str]) -> Camps | None:
    """Cluster the voters into two camps; None if that is not meaningful, with a note.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> camps = find_camps(aggregate([[4, 3, 2, 1]] * 15 + [[1, 2, 3, 4]] * 10), 0, [])
    >>> camps.clear, camps.shares.tolist(), camps.orders[:, 0].tolist()
    (True, [0.6, 0.4], [0, 3])
    """
    ballots = result.ballots
    if ballots.total < _FEWEST_VOTERS or ballots.n_items < 3:
        notes.append(f"Camps need at least {_FEWEST_VOTERS} voters and three items.")
        return None
    rows = _sample(ballots.n_voters, max(2, _MOST_CLUSTERED // ballots.n_items), random_state)
    rows = rows[ballots.weight(rows) > 0]
    if len(rows) < ballots.n_voters and ballots.n_voters * ballots.n_items > _MOST_CLUSTERED:
        notes.append(f"The search for camps used {len(rows):,} voters, drawn at random.")
    points, weights = _points(ballots, rows), ballots.weight(rows)
    model = _two_groups(points, weights)
    if model is None:
        notes.append("There are no camps: all voters examined have nearly the same order.")
        return None
    shares = np.bincount(model.labels_, weights, 2) / weights.sum()
    larger = np.argsort(-shares, kind="stable")
    labels = np.argsort(larger)[model.labels_]
    orders = model.orders_[larger]
    camps = Camps(
        rows,
        labels,
        shares[larger],
        orders,
        silhouette(model, points, weights),
        _chance(points, weights, ballots.total, random_state),
        float(kendall_tau(orders=(orders[0], orders[1]))),
    )
    if not camps.clear:
        notes.append(
            f"No clear camps: splitting the voters in two has a silhouette of {camps.silhouette:.2f} and orders with a "
            f"Kendall tau of {camps.tau:.2f}; camps are shown from {camps.threshold:.2f} (halfway between shuffled "
            f"ballots and 1), with a tau of at most {_FARTHEST_TAU:g} and {_SMALLEST_CAMP:.0%} of the voters in each."
        )
    return camps


def _points(ballots: Ballots, rows: np.ndarray) -> np.ndarray:
    """Borda points, so that all voters have equal weight; no opinion is the middle."""
    points = voter_points(ballots, Rule("borda"), rows)
    return np.where(np.isnan(points), (ballots.n_items - 1) / 2, points)


def _two_groups(points: np.ndarray, weights: np.ndarray) -> LovaszBregmanKMeans | None:
    """k-means with evenly decreasing gains; None if one group takes all."""
    if (points == points[0]).all():
        return None
    with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LovaszBregmanKMeans(2, f="product", random_state=0).fit(points, sample_weight=weights)
    return model if len(np.unique(model.labels_)) == 2 else None


def _chance(points: np.ndarray, weights: np.ndarray, total: float, random_state: Any) -> float:
    """Silhouette reached by voters without any common opinion: the points of each are shuffled."""
    rng = np.random.default_rng(random_state)
    n = int(min(total, max(2, _MOST_CLUSTERED // points.shape[1])))
    drawn = rng.choice(len(points), n, p=weights / weights.sum())  # repeated ballots are shuffled separately
    shuffled = rng.permuted(points[drawn], axis=1)
    model = _two_groups(shuffled, np.ones(n))
    return 0.0 if model is None else silhouette(model, shuffled)
