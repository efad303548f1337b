"""Ballots: what each voter says of each item, as one table of voters × items in which larger is better.

A missing score (NaN) is one of two things, by the caller's choice:

- ``"ignore"``: the voter has no opinion of the item, and no pair with it counts;
- ``"last"``: the voter puts the item below all those it names, tied with the others it does not name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from apexrank.errors import InputError
from apexrank.kernels.inversions import SortedRows, sort_rows

Missing = Literal["ignore", "last"]
BLOCK = 2**18  # numbers of a block of voters or items: two megabytes stay in the cache


@dataclass(frozen=True, eq=False, repr=False)
class Ballots:
    """Scores of voters for items.

    Parameters
    ----------
    scores : ndarray of shape (voters, items)
        Larger is better, NaN is missing; the caller's own array where it is one of numbers. Ranks and orders are
        kept as minus the position.
    items : list
        Names of the items, or their numbers.
    missing : {"ignore", "last"}
        What a missing score means.
    positional : bool
        Whether ``scores`` are minus positions, of which only the order counts.
    weights : ndarray of shape (voters,), optional
        How often each ballot was cast; None is once each.
    voters : list, optional
        Names of the voters, where they have some.
    ranked : bool
        Whether ``scores`` are minus ranks that were given, which need not be places among these items.

    Examples
    --------
    >>> ballots = Ballots(np.array([[3.0, 1.0], [np.nan, 2.0]]), ["a", "b"], "last")
    >>> ballots.n_voters, ballots.n_items, ballots.total
    (2, 2, 2.0)
    """

    scores: np.ndarray
    items: list[Any]
    missing: Missing = "ignore"
    positional: bool = False
    weights: np.ndarray | None = None
    voters: list[Any] | None = None
    ranked: bool = False

    @property
    def n_voters(self) -> int:
        """Number of different ballots."""
        return int(self.scores.shape[0])

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.scores.shape[1])

    @property
    def total(self) -> float:
        """Number of ballots, each as often as it was cast."""
        return float(self.n_voters) if self.weights is None else float(self.weights.sum())

    @property
    def voters_said(self) -> str:
        """How many voters there are, in words: whole weights are counts of equal ballots.

        Examples
        --------
        >>> Ballots(np.zeros((2, 2)), ["a", "b"], weights=np.array([18.0, 12.0])).voters_said
        '30 voters (2 different ballots)'
        """
        n, w = self.n_voters, self.weights
        if w is None or (w == 1).all():
            return f"{n:,} voter{'s' if n != 1 else ''}"
        if (w == np.round(w)).all():
            return f"{self.total:,.0f} voters ({n:,} different ballot{'s' if n != 1 else ''})"
        return f"{n:,} weighted voter{'s' if n != 1 else ''}"

    def weight(self, rows: slice | np.ndarray) -> np.ndarray:
        """Weights of some voters."""
        return np.ones(len(self.scores[rows])) if self.weights is None else self.weights[rows]

    def support(self) -> np.ndarray:
        """Weight of the voters who scored each item, whatever a missing score means.

        Examples
        --------
        >>> Ballots(np.array([[3.0, 1.0], [np.nan, 2.0]]), ["a", "b"], "last").support().tolist()
        [1.0, 2.0]
        """
        given, lost = np.zeros((2, self.n_items))
        for rows in self.blocks():
            missing, w = np.isnan(self.scores[rows]), self.weight(rows)
            lost += w @ missing
            given += w @ ~missing
        return np.where(lost == 0, self.total, given)  # no rounding where all did

    def blocks(self) -> Iterator[slice]:
        """Slices of voters, few enough to work on in the cache."""
        step = max(1, BLOCK // self.n_items)
        for start in range(0, self.n_voters, step):
            yield slice(start, min(start + step, self.n_voters))

    def columns(self, stop: int | None = None) -> Iterator[slice]:
        """Slices of the items before ``stop`` (all by default), few enough to work on with all voters at once."""
        stop = self.n_items if stop is None else stop
        step = max(8, BLOCK // self.n_voters)
        for start in range(0, stop, step):
            yield slice(start, min(start + step, stop))

    def read(self, rows: slice | np.ndarray) -> np.ndarray:
        """Scores of some voters as float64, checked: no infinity, no voter without any score."""
        block = np.asarray(self.scores[rows], dtype=np.float64)
        odd = ~np.isfinite(block)
        if odd.any():
            self._check(block, odd, np.arange(self.n_voters)[rows])
        return block

    def ordered(self, rows: slice | np.ndarray) -> np.ndarray:
        """As `read`, with missing items at −inf where they are tied last: good for comparing, not for adding."""
        block = self.read(rows)
        return np.where(np.isnan(block), -np.inf, block) if self.missing == "last" else block

    def sort(self, rows: slice | np.ndarray) -> tuple[SortedRows, np.ndarray]:
        """Items of some voters best first, and which items have a place; the others come last."""
        block = -self.ordered(rows)
        return sort_rows(block), ~np.isnan(block)

    def _check(self, block: np.ndarray, odd: np.ndarray, numbers: np.ndarray) -> None:
        infinite = np.argwhere(np.isinf(block))
        if len(infinite):
            row, item = infinite[0]
            raise InputError(
                f"{voter_name(int(numbers[row]), self.voters)} gives {self.items[item]!r} an infinite score: "
                "use a finite one, or NaN where it is missing"
            )
        silent = np.flatnonzero(odd.all(axis=1))
        if len(silent):
            raise InputError(
                f"{voter_name(int(numbers[silent[0]]), self.voters)} gives no score at all: drop that ballot"
            )


def voter_name(number: int, voters: Sequence[Any] | None) -> str:
    """What messages call a voter.

    Examples
    --------
    >>> voter_name(1, None), voter_name(1, ["ann", "bob"])
    ('voter 1', "voter 'bob'")
    """
    return f"voter {number if voters is None else repr(voters[number])}"


def read_weights(weights: Any, n_voters: int, voters: Sequence[Any] | None) -> np.ndarray | None:
    """Weights of the voters, checked; a mapping gives them by the voter's name, as does a pandas Series by its index.

    Examples
    --------
    >>> read_weights([1, -1], 2, None)
    Traceback (most recent call last):
    apexrank.errors.InputError: weights must be finite numbers of at least 0, got -1
    """
    if weights is None:
        return None
    if voters is not None and is_pandas(weights, "Series"):
        weights = _by_index(weights, voters)
    if isinstance(weights, Mapping):
        if voters is None:
            raise InputError("weights by name need named voters: give one weight for each row")
        unknown = [name for name in voters if name not in weights]
        if unknown:
            raise InputError(f"weights has no weight for the voter {unknown[0]!r}")
        weights = [weights[name] for name in voters]
    try:
        w = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("weights must be numbers, one for each voter") from None
    if w.shape != (n_voters,):
        raise InputError(f"weights must be one number for each of the {n_voters} voters, got shape {w.shape}")
    bad = ~((w >= 0) & (w < np.inf))
    if bad.any():
        raise InputError(f"weights must be finite numbers of at least 0, got {w[bad][0]:g}")
    with np.errstate(over="ignore"):
        if not np.isfinite(w.sum()):
            raise InputError("weights are too large to be added: divide them all by the same number")
    if not w.any():
        raise InputError("weights are all zero: give at least one voter a weight")
    return w


def is_pandas(data: Any, name: str) -> bool:
    """Whether something is a pandas object of some class, without an import of pandas.

    Examples
    --------
    >>> is_pandas([1, 2], "Series")
    False
    """
    return any(
        kind.__name__ == name and kind.__module__.partition(".")[0] == "pandas" for kind in type(data).__mro__
    )


def _by_index(weights: Any, voters: Sequence[Any]) -> Any:
    """Weights of a pandas Series by the voter's name; as they are where its index has the voters' own order."""
    names = weights.index.tolist()
    if names == list(voters):
        return weights.to_numpy()
    if not weights.index.is_unique:
        twice = weights.index[weights.index.duplicated()][0]
        raise InputError(f"weights has the voter {twice!r} twice in its index: give each voter one weight")
    unknown = [name for name in voters if name not in weights.index]
    if unknown:
        raise InputError(
            f"weights is a Series whose index has no voter {unknown[0]!r}: "
            "index it as the ballots, or pass weights.to_numpy() for weights by row"
        )
    return weights.to_dict()
