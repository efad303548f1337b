"""Designs of additive models: each value is stored as a position between two knots instead of one number per ramp.

A piecewise linear function of a column is ``f = Σ_m β_m·φ_m`` with ramps
``φ_m(x) = clip((x − k_{m−1})/(k_m − k_{m−1}), 0, 1)``: β_m is its increment from one knot to the next. The coefficients
here are ``√M·β`` for M ramps, so that a plain ridge on all of them penalises a function of one column by ``M·Σ β²``;
for a straight line this is the square of its total rise, regardless of the number of knots. f is 0 at the knot next to
the median, and a missing value has a separate coefficient.

For a pair of columns, a :class:`RampBasis` has functions that are bilinear between a few knots of each column and have
no part that depends on one column alone, with the ridge ``θ'(S ⊗ 1 + 1 ⊗ S + 0.1)θ`` on their values θ at the knots,
where S is D'D with first differences D, or 1 for levels.

Coefficients belong to terms, each with a strength of its own that the coefficients are scaled by: a ridge on them is
then the sum of the ridges of the terms. A column is a term, except that all columns of two values are one, and all
missing values another.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from apexrank.errors import InputError
from apexrank.kernels.ramps import (
    block_grams,
    expand,
    find_places,
    gather,
    gather_pairs,
    gram,
    scatter,
    scatter_pairs,
    spread,
)
from apexrank.kernels.rows import MAX_CHUNKS, MIN_CHUNK_ROWS, SMALL
from apexrank.parallel import Threads, n_threads
from apexrank.problem.design import SCALE_ROWS, Design, Span

WEAKEST = (
    1e-8  # smallest eigenvalue of a correlation matrix that is not treated as 0 in a change of coordinates
)
SCATTER = 4.0  # multiplications of a matrix product per scattered addition to memory, in equal time
CHUNK = 4096  # rows expanded at a time
MOST_KNOTS = 1 << 16  # of a column, as positions take two bytes
FLAT = 0.1  # ridge on the values of a pair, relative to that on their differences


class Places:
    """Slots and fractions that locate values of columns between their knots."""

    def __init__(self, X: np.ndarray, knots: Sequence[np.ndarray]) -> None:
        self.widths = np.array([len(own) for own in knots], dtype=np.int64)
        bounds = np.append(0, np.cumsum(self.widths))
        most = self.widths.max(initial=0) + 1
        self.code = np.zeros(X.shape, dtype=np.uint8 if most < 2**8 else np.uint16)
        self.fraction = np.zeros(X.shape)
        joined = np.concatenate([*knots, np.zeros(0)])
        n = len(X)
        with Threads(1 if X.size < SMALL else n_threads()) as threads:
            threads.share_range(
                lambda first, last: find_places(X, joined, bounds, first, last, self.code, self.fraction), n
            )


class Side(NamedTuple):
    """A column in pairs: its knots there, and the weight of the training rows at each of them."""

    column: int
    knots: np.ndarray
    weight: np.ndarray
    levels: bool


@dataclass(frozen=True, eq=False)
class RampBasis:
    """Functions of columns and of pairs of columns whose sum is the score.

    Parameters
    ----------
    knots : sequence of arrays
        Increasing knots of each column; 0, 1, 2, … for a column of levels.
    middle : sequence of int
        Knot of each column at which its function is 0.
    missing, levels : sequences of bool
        Whether missing values have a coefficient, and whether there is a coefficient per knot instead of per ramp.
    sides : sequence of Side
        Columns in pairs; a column may have several sides with different knots.
    pairs : sequence of (int, int)
        Pairs of sides.
    strength : array, optional
        Strength of each term (:attr:`terms`); by default 1.
    """

    knots: Sequence[np.ndarray]
    middle: Sequence[int]
    missing: Sequence[bool]
    levels: Sequence[bool]
    sides: Sequence[Side] = ()
    pairs: Sequence[tuple[int, int]] = ()
    strength: np.ndarray | None = None

    def check(self, n_features: int) -> None:
        """Raise InputError unless this is a basis of n_features columns, without pairs."""
        parts = (self.knots, self.middle, self.missing, self.levels)
        inside = all(
            0 <= at < len(knots) < MOST_KNOTS for at, knots in zip(self.middle, self.knots, strict=False)
        )
        if (
            self.pairs
            or self.sides
            or self.strength is not None
            or not inside
            or any(len(part) != n_features for part in parts)
        ):
            raise InputError(f"the knots are not those of {n_features} columns")

    @cached_property
    def blocks(self) -> list[np.ndarray]:
        """Values at the slots of each column and pair of the functions that its coefficients multiply."""
        if self.strength is None:
            return self._plain
        unit = 1 / np.sqrt(self.strength[self.terms])
        bounds = np.cumsum([0, *(block.shape[1] for block in self._plain)])
        return [block * unit[a:b] for block, (a, b) in zip(self._plain, pairwise(bounds), strict=True)]

    @cached_property
    def _plain(self) -> list[np.ndarray]:
        """The blocks at strength 1."""
        found = [self._of_column(j) for j in range(len(self.knots))]
        return found + [self._of_pair(self.sides[a], self.sides[b]) for a, b in self.pairs]

    def with_strength(self, strength: np.ndarray) -> RampBasis:
        """The same functions with other strengths of the terms."""
        other = replace(self, strength=strength)
        other.__dict__["_plain"] = self._plain
        return other

    @cached_property
    def terms(self) -> np.ndarray:
        """Term of each coefficient: its column or, counted on from there, two values, missing values, and each pair."""
        d, found = len(self.knots), [np.zeros(0, dtype=np.int64)]
        for j, knots in enumerate(self.knots):
            own = len(knots) if self.levels[j] else len(knots) - 1
            found += [np.full(own, j if len(knots) > 2 else d), np.full(int(self.missing[j]), d + 1)]
        for q, (a, b) in enumerate(self.pairs):
            size = (len(self.sides[a].knots) - 1) * (len(self.sides[b].knots) - 1)
            found.append(np.full(size, d + 2 + q))
        return np.concatenate(found)

    @property
    def n_terms(self) -> int:
        """Number of terms; some may have no coefficient."""
        return len(self.knots) + 2 + len(self.pairs)

    @cached_property
    def starts(self) -> np.ndarray:
        """First slot of each column and pair."""
        return np.concatenate([[0], np.cumsum([len(block) for block in self.blocks])])

    @cached_property
    def columns(self) -> np.ndarray:
        """First coefficient of each column and pair."""
        return np.concatenate([[0], np.cumsum([block.shape[1] for block in self.blocks])])

    @cached_property
    def matrix(self) -> Any:
        """Values at all slots, plus one unused slot, of the function of each coefficient."""
        return sparse.csr_array(sparse.block_diag([*self.blocks, np.zeros((1, 0))]))

    def combine(self, values: np.ndarray) -> np.ndarray:
        """``values @ matrix``, block by block; faster than the sparse product for many rows."""
        bounds = pairwise(self.starts.tolist())
        return np.hstack([values[:, i:j] @ block for (i, j), block in zip(bounds, self.blocks, strict=True)])

    def _of_column(self, j: int) -> np.ndarray:
        width = len(self.knots[j])
        if self.levels[j]:
            own = np.eye(width)
        else:
            own = np.tri(width, width - 1, -1) / np.sqrt(max(1, width - 1))
            own -= own[self.middle[j]]
        gap = np.zeros((width + 1, own.shape[1] + bool(self.missing[j])))
        gap[:width, : own.shape[1]] = own
        gap[width, own.shape[1] :] = 1.0
        return gap

    @staticmethod
    def _of_pair(*both: Side) -> np.ndarray:
        free, roughness, one = [], [], []
        for side in both:
            free.append(linalg.null_space(side.weight[None, :]))
            one.append(np.eye(len(side.weight)))
            D = np.diff(one[-1], axis=0)
            roughness.append(one[-1] if side.levels else D.T @ D)
        K = np.kron(roughness[0], one[1]) + np.kron(one[0], roughness[1]) + FLAT * np.kron(*one)
        values = np.kron(*free)
        # whitened, so that a plain ridge on the coefficients is the ridge K on the values
        L = linalg.cholesky(values.T @ K @ values, lower=True)
        return linalg.solve_triangular(L, values.T, lower=True).T


class RampRows:
    """Rows of an additive model as an implicit matrix of shape (n_rows, n_coefficients).

    ``places`` are the positions of the values between the knots of single columns, if already known.

    Examples
    --------
    >>> basis = RampBasis([np.array([0.0, 1.0, 3.0])], [0], [False], [False])
    >>> rows = RampRows(np.array([[0.5], [2.0], [np.nan]]), basis)
    >>> (rows.dense(slice(None)) * np.sqrt(2)).round(6).tolist()
    [[0.5, 0.0], [1.0, 0.5], [0.0, 0.0]]
    """

    def __init__(self, X: np.ndarray, basis: RampBasis, places: Places | None = None) -> None:
        self.values, self.basis = X, basis
        self.shape = len(X), int(basis.columns[-1])
        self.places = Places(X, basis.knots) if places is None else places
        columns = [side.column for side in basis.sides]
        self.pair_places = Places(np.ascontiguousarray(X[:, columns]), [side.knots for side in basis.sides])
        self.pairs = np.array(basis.pairs, dtype=np.int64).reshape(-1, 2)
        n = len(X)
        self.chunk = max(MIN_CHUNK_ROWS, -(-n // MAX_CHUNKS))
        self.threads = 1 if X.size < SMALL else n_threads()

    def with_strength(self, strength: np.ndarray) -> RampRows:
        """The same rows with other strengths of the terms."""
        other = copy(self)
        other.basis = self.basis.with_strength(strength)
        return other

    def gather(self, v: np.ndarray) -> np.ndarray:
        """Sum over columns and pairs of the values of v at the positions of each row."""
        out, d = np.zeros(self.shape[0]), len(self.basis.knots)
        code, fraction, starts = self.places.code, self.places.fraction, self.basis.starts
        two = self.pair_places

        def work(first: int, last: int) -> None:
            gather(code, fraction, starts, v, first, last, out)
            if len(self.pairs):
                gather_pairs(two.code, two.fraction, self.pairs, two.widths, starts[d:], v, first, last, out)

        with Threads(self.threads) as threads:
            threads.share_range(work, self.shape[0])
        return out

    def scatter(self, r: np.ndarray) -> np.ndarray:
        """Sum of r at each slot, the transpose of :meth:`gather`."""
        n_chunks, d = -(-self.shape[0] // self.chunk), len(self.basis.knots)
        out = np.zeros((n_chunks, int(self.basis.starts[-1]) + 1))
        code, fraction, starts = self.places.code, self.places.fraction, self.basis.starts
        two = self.pair_places

        def work(first: int, last: int) -> None:
            scatter(code, fraction, starts, r, self.chunk, first, last, out)
            if len(self.pairs):
                scatter_pairs(
                    two.code,
                    two.fraction,
                    self.pairs,
                    two.widths,
                    starts[d:],
                    r,
                    self.chunk,
                    first,
                    last,
                    out,
                )

        with Threads(min(self.threads, n_chunks)) as threads:
            threads.share_range(work, n_chunks)
        return out.sum(axis=0)

    def gram(self, weight: np.ndarray) -> np.ndarray:
        """``Σ weight·x·xᵀ`` over the rows x, in the basis of slots."""
        d, n, size = len(self.basis.knots), self.shape[0], int(self.basis.starts[-1]) + 1
        lines = np.append(2 * np.arange(d), 2 * d + 4 * np.arange(len(self.pairs) + 1))
        tasks, parts = np.stack(np.triu_indices(len(lines) - 1), axis=1), self._parts()
        slot, value = np.empty((lines[-1], CHUNK), dtype=np.uint32), np.empty((lines[-1], CHUNK))
        out = np.zeros((size, size))

        def work(own: np.ndarray, first: int, last: int) -> None:
            gram(slot, value, lines, own, tasks, first, last, out)

        with Threads(self.threads) as threads:
            for first in range(0, n, CHUNK):
                last = min(n, first + CHUNK)
                spread(*parts, first, last, slot, value)
                threads.share_range(partial(work, weight[first:last]), len(tasks))
        return out + np.triu(out, 1).T

    def moments(self, sample_weight: np.ndarray | None) -> tuple[np.ndarray, list[np.ndarray]]:
        """Mean of each coefficient's function and covariances within each column and pair, from a sample of rows."""
        n, some = self.shape[0], min(self.shape[0], SCALE_ROWS // 4)
        chosen = np.arange(n) if some == n else np.random.default_rng(0).integers(0, n, some)
        weight = np.ones(some) if sample_weight is None else np.asarray(sample_weight, dtype=float)[chosen]
        starts, blocks = self.basis.starts, self.basis.blocks
        places = np.append(0, np.cumsum(np.diff(starts) ** 2))
        sums = np.zeros(int(places[-1]))
        block_grams(*self._parts(chosen), weight / (weight.sum() or 1.0), places, sums)
        means, found = [np.zeros(0)], []
        for (first, last), block in zip(pairwise(places.tolist()), blocks, strict=True):
            if block.shape[1]:  # a constant column has no coefficient
                gram = sums[first:last].reshape(len(block), -1)
                gram = gram + np.triu(gram, 1).T
                mean = gram.sum(axis=1)  # the values of a row in a column or pair sum to 1
                means.append(mean @ block)
                found.append(block.T @ (gram - np.outer(mean, mean)) @ block)
        return np.concatenate(means), found

    def dense(self, rows: slice | np.ndarray) -> np.ndarray:
        """Selected rows as a dense array of coefficients."""
        return self.basis.combine(self.slots(rows))

    def slots(self, rows: slice | np.ndarray) -> np.ndarray:
        """Selected rows as a dense array of slots."""
        parts = self._parts(rows)
        out = np.zeros((len(parts[0]), int(self.basis.starts[-1]) + 1))
        expand(*parts, out)
        return out

    def _parts(self, rows: slice | np.ndarray = slice(None)) -> tuple[np.ndarray, ...]:
        one, two = self.places, self.pair_places
        places = (one.code[rows], one.fraction[rows], self.basis.starts, two.code[rows], two.fraction[rows])
        return *places, self.pairs, two.widths


class RampDesign(Design):
    """Matrix-free design of :class:`RampRows`: scores, their transpose and Hessians."""

    can_move = False
    has_span = True

    def __init__(self, X: RampRows) -> None:
        self.X = X
        self.n_rows, self.n_features = X.shape

    def scores(self, w: np.ndarray) -> np.ndarray:
        return self.X.gather(self.X.basis.matrix @ w)

    def pull_back(self, r: np.ndarray) -> np.ndarray:
        return self.X.basis.matrix.T @ self.X.scatter(r)

    def curvature(self, centre: np.ndarray, weight: np.ndarray, U: Any) -> tuple[np.ndarray, np.ndarray]:
        # no column is far from zero here, so the centre can be subtracted afterwards
        combine = self.X.basis.combine
        gram, mean = combine(combine(self.X.gram(weight)).T), self.pull_back(weight)
        gram += np.outer(weight.sum() * centre - mean, centre) - np.outer(centre, mean)
        if sparse.issparse(U):
            # one column per pooled block of rows: thousands, with few rows each
            chunks = (slice(i, i + CHUNK) for i in range(0, self.n_rows, CHUNK))
            V = sum(U[rows].T @ self.X.dense(rows) for rows in chunks).T
        else:
            V = np.column_stack([self.pull_back(np.ascontiguousarray(u)) for u in U.T])
        return gram, V - np.outer(centre, U.sum(axis=0))

    @property
    def hessian_work(self) -> float:
        return SCATTER * self.n_rows * (2.0 * len(self.X.basis.knots) + 4 * len(self.X.pairs)) ** 2

    def column(self, j: int) -> np.ndarray:
        return self.X.gather(self.X.basis.matrix[:, [j]].toarray().ravel())

    def take(self, rows: np.ndarray) -> np.ndarray:
        return self.X.dense(rows)

    def units(self, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
        mean, self._covariances = self.X.moments(sample_weight)
        variance = np.concatenate([np.zeros(0), *map(np.diag, self._covariances)])
        size = np.hypot(mean, np.sqrt(np.maximum(variance, 0.0)))
        # a variance at the level of rounding error counts as zero
        spread = np.where(variance > 1e-12 * size**2, np.sqrt(np.maximum(variance, 0.0)), size)
        return mean, np.where(spread > 0, spread, 1.0)

    def whitening(self, scale: np.ndarray, ridge: float) -> Any:
        """Sparse matrix P of coordinates ``w = P·x`` in which the coefficients of each function are uncorrelated.

        Neighbouring ramps are highly correlated: in the original coordinates L-BFGS takes several times as long.
        """
        parts, first = [], 0
        for covariance in self._covariances:
            last = first + len(covariance)
            own = covariance + np.diag(ridge + WEAKEST * scale[first:last] ** 2)
            parts.append(linalg.lapack.dtrtri(linalg.cholesky(own, check_finite=False))[0])
            first = last
        return sparse.csr_array(sparse.block_diag(parts))

    def varies(self) -> np.ndarray:
        return np.full(self.n_features, True)

    def span(self) -> Span:
        Q, R = linalg.qr(self.take(np.arange(self.n_rows)).T, mode="economic", check_finite=False)
        return Span(np.ascontiguousarray(R.T), lambda v: Q @ v, lambda w: Q.T @ w)
