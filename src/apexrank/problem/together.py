"""Joint fits: sums over the rows for many coefficient vectors from a single pass over X.

The fits of a search differ in p, alpha and the fold left out. A fold gives weight 0 to its held-out rows, so all fits
share the rows: ``X @ W`` holds the scores of all of them, computed a few rows at a time, and only the contributions of
the rows to the sums are kept. Sums are taken per cell, a set of rows that count equally often in every fold, so that
the sums at one point give the value, the gradient and the Hessian of each fold there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from apexrank.kernels.rows import BOTH, HEADROOM, RowSums, merge_log_sums
from apexrank.objectives.base import Objective, log_weights
from apexrank.objectives.push import Scatter
from apexrank.parallel import Lockstep, Threads, n_threads
from apexrank.problem.block_design import BlockTraining, Part
from apexrank.problem.blocks import Blocks
from apexrank.problem.design import Design, Training, design_of
from apexrank.problem.device import BLOCK_BYTES as DEVICE_BYTES
from apexrank.problem.device import DeviceDesign, DeviceTraining, namespace, to_device, to_host

SLICE_ROWS, MOST_SLICES = 2**15, 128  # rows summed by one thread
CHUNK_NUMBERS = 2**16  # entries of X or of scores that should stay in cache
SAMPLED = 2**15  # minimum average number of rows per class for a Hessian
SCATTER_COLUMNS = 32  # columns of a pass with the cost allowed for a Hessian
SCATTER_BYTES = 2**24  # size of the Hessians computed in one pass
HESSIAN_BYTES = 2**26  # maximum size of the Hessians of all fits; larger ones are not computed
FEWER = 3.0  # log of the share of weight below which rows need a sample of their own
ABSENT = -1e30  # log of a weight of 0; unlike -inf, its product with 0 is not nan
MOST_CELLS, KNOWN_BYTES = 32, 2**26  # limits on the cached sums of cells
EVERYTHING = -1  # fold number of a fit on all rows


class Columns(NamedTuple):
    """Exponents ``slope_c·x·w + log u`` of many columns w: W by columns, slopes of the two classes, and folds.

    ``group`` is the index of the :class:`Cells` that contain the fold of each column, and ``times``, of shape
    (n_cells, n), the number of times their rows count.
    """

    W: np.ndarray
    slope: np.ndarray
    fold: np.ndarray
    group: np.ndarray
    times: np.ndarray

    def take(self, some: np.ndarray) -> Columns:
        return Columns(*(part[..., some] for part in self))


class LogSums(NamedTuple):
    """Maximum exponent, sums of ``exp(t − maximum)`` and weighted sums of rows, per class (and cell) and column."""

    top: np.ndarray
    mass: np.ndarray
    rows: np.ndarray


class Scatters(NamedTuple):
    """Terms of Hessians: class and exponents of each (:class:`~apexrank.objectives.push.Scatter`)."""

    columns: Columns
    label: np.ndarray
    shift: np.ndarray


class Cells(NamedTuple):
    """Cell of each row for some folds; rows of a cell count equally often, ``times`` of shape (n_folds, n_cells)."""

    folds: range
    of_rows: np.ndarray
    times: np.ndarray


def cells_of(times: np.ndarray, first: int = 0) -> list[Cells]:
    """Cells of all folds together, or of subsets of folds if there would be too many cells.

    If k folds partition the rows there are k cells.

    Examples
    --------
    >>> [cells] = cells_of(np.array([[0, 1, 1, 0], [1, 0, 1, 1]]))
    >>> cells.of_rows.tolist(), cells.times.tolist()
    ([1, 0, 2, 1], [[1, 0, 1], [0, 1, 1]])
    """
    k, base = len(times), int(times.max(initial=0)) + 1
    if k == 1 or base**k <= 2**16:
        code = np.zeros(times.shape[1], dtype=np.uint32)
        for count in times[::-1]:
            code = code * np.uint32(base) + count
        used = np.flatnonzero(np.bincount(code))
        if k == 1 or len(used) <= MOST_CELLS:
            number = np.zeros(used[-1] + 1, dtype=np.min_scalar_type(2 * len(used)))
            number[used] = np.arange(len(used))
            own = used // base ** np.arange(k)[:, None] % base
            return [Cells(range(first, first + k), number[code], own)]
    return cells_of(times[: k // 2], first) + cells_of(times[k // 2 :], first + k // 2)


class JointRows:
    """Rows shared by many fits.

    Parameters
    ----------
    parts : Blocks
        The rows, as one :class:`~apexrank.problem.block_design.Part` or many.
    sizes : sequence of int
        Number of rows of each part.
    design : Design
        Design of the original rows, for the units of the columns.
    weight : array, optional
        Weights of the rows, for the same units.
    times : array of shape (n_folds, n), optional
        Number of times each row counts in the fits of a fold.
    """

    def __init__(
        self, parts: Blocks, sizes: Sequence[int], design: Design, weight: Any, times: np.ndarray | None
    ) -> None:
        self.parts, self.design = parts, design
        self.n_rows, self.n_features, self.varies = design.n_rows, design.n_features, design.varies
        mean, self.spread = design.units(weight)
        self.centre = mean if design.can_move else 0 * mean  # far from zero, scores would lose digits
        self.cells = cells_of(np.zeros((1, self.n_rows), np.uint8) if times is None else times)
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        self._own = [[cells.of_rows[a:b] for cells in self.cells] for a, b in pairwise(bounds)]
        self._known: dict[tuple[Any, ...], LogSums] = {}
        self._grams: dict[tuple[Any, ...], tuple[float, np.ndarray]] = {}
        # a sample of the rows suffices for a Hessian unless there are few; heavy rows are always included
        sampled = max(SAMPLED, SCATTER_COLUMNS * self.n_rows / self.n_features)
        self.rate = sampled if self.n_rows > 4 * SAMPLED else np.inf

    def columns(self, W: np.ndarray, slope: np.ndarray, fold: Sequence[int]) -> Columns:
        """Columns of coefficients with their folds and cells."""
        group = [next((g for g, cells in enumerate(self.cells) if f in cells.folds), 0) for f in fold]
        times = np.zeros((max(cells.times.shape[1] for cells in self.cells), len(fold)))
        for k, (f, g) in enumerate(zip(fold, group, strict=True)):
            folds, _, own = self.cells[g]
            times[: own.shape[1], k] = 1 if f == EVERYTHING else own[f - folds.start]
        return Columns(W, slope, np.array(fold), np.array(group), times)

    def log_sums(self, columns: Columns) -> LogSums:
        """Sums of all columns over each active cell, alternating negatives and positives."""
        return reduce(_merged, self.parts.map_with(_part_log_sums, self._own, columns, self.centre))

    def grams(self, terms: Scatters) -> np.ndarray:
        """Sums of outer products of the rows ``(x, 1)`` over each cell, one for each term."""
        return sum(self.parts.map_with(_part_grams, self._own, terms, self.centre, self.rate))

    def knows_folds(self, n: int) -> bool:
        """Whether the Hessians of the folds follow from those on all rows, which have n terms."""
        return len(self.cells) == 1 and n * self._gram_bytes <= HESSIAN_BYTES

    @property
    def _gram_bytes(self) -> int:
        return 8 * max(cells.times.shape[1] for cells in self.cells) * (self.n_features + 1) ** 2

    def answer(self, requests: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Answer the requests of :class:`ColumnSums` in one pass over the rows, or one pass per kind."""
        answers: list[Any] = [None] * len(requests)
        for kind, give in (("sums", self._sums), ("scatter", self._scatter)):
            own = [k for k, request in enumerate(requests) if request[0] == kind]
            if own:
                for k, answer in zip(own, give([requests[k][1:] for k in own]), strict=True):
                    answers[k] = answer
        return answers

    def _sums(self, asked: list[tuple[Any, ...]]) -> list[RowSums]:
        """Sums for coefficients, fold and slopes, using cached sums of the cells where available."""
        w, fold, slope = zip(*asked, strict=True)
        columns = self.columns(np.column_stack(w), np.column_stack(slope), fold)
        keys = [(*key, group) for key, group in zip(map(_key, w, slope), columns.group, strict=True)]
        sums = {k: self._known[key] for k, key in enumerate(keys) if key in self._known}
        new = np.array([k for k in range(len(asked)) if k not in sums], dtype=int)
        if len(new):
            some = columns.take(new)
            top, mass, rows = self.log_sums(some)
            for place, k in enumerate(new):
                sums[k] = LogSums(top[:, place], mass[:, place], rows[:, :, place].copy())
                if fold[k] == EVERYTHING:
                    self._known[keys[k]] = sums[k]
            _keep_latest(self._known, rows[:, :, 0].nbytes, KNOWN_BYTES)
        return [self._in_fold(sums[k], columns.times[:, k]) for k in range(len(asked))]

    @staticmethod
    def _in_fold(sums: LogSums, times: np.ndarray) -> RowSums:
        """Sums of the two classes from those of the cells."""
        with np.errstate(divide="ignore"):
            top = np.log(times)[:, None] + sums.top.reshape(-1, 2)
        return merge_log_sums(top, sums.mass.reshape(-1, 2), sums.rows.reshape(*top.shape, -1))

    def _scatter(self, asked: list[tuple[Any, ...]]) -> list[np.ndarray]:
        """Sums of outer products for coefficients, fold and terms, using cached sums of the cells where available."""
        w, fold, terms = zip(*((w, f, term) for w, f, own in asked for term in own), strict=True)
        columns = self.columns(np.column_stack(w), np.array([[term.slope] * 2 for term in terms]).T, fold)
        keys = [(*_key(w[k], (term.slope,)), term.label, columns.group[k]) for k, term in enumerate(terms)]
        known = [self._grams.get(key, (-np.inf, np.empty(0))) for key in keys]
        # a sample has few of the rows with a small share of the weight
        new = [k for k, (shift, _) in enumerate(known) if terms[k].shift > shift + FEWER]
        at_once = max(1, SCATTER_BYTES // self._gram_bytes)
        for first in range(0, len(new), at_once):
            some = np.array(new[first : first + at_once])
            label, shift = (np.array([getattr(terms[k], name) for k in some]) for name in ("label", "shift"))
            work = Scatters(columns.take(some), label, shift)
            for k, gram in zip(some, self.grams(work), strict=True):
                known[k] = terms[k].shift, gram
                if fold[k] == EVERYTHING:
                    self._grams[keys[k]] = known[k]
        _keep_latest(self._grams, self._gram_bytes, HESSIAN_BYTES)
        found = [
            _centred(gram, columns.times[:, k], terms[k].shift - shift, terms[k].centre)
            for k, (shift, gram) in enumerate(known)
        ]
        ends = np.cumsum([len(own) for _, _, own in asked])
        return [np.array(found[end - len(own) : end]) for end, (_, _, own) in zip(ends, asked, strict=True)]


def _key(w: np.ndarray, slope: tuple[float, ...]) -> tuple[bytes, tuple[float, ...]]:
    return w.tobytes(), slope


def _keep_latest(known: dict[Any, Any], size: int, limit: int) -> None:
    """Drop the oldest entries, each of ``size`` bytes, beyond a limit."""
    for key in list(known)[: max(0, len(known) - limit // size)]:
        del known[key]


def _centred(gram: np.ndarray, times: np.ndarray, shift: float, centre: np.ndarray) -> np.ndarray:
    """``Σ c·(x − centre)(x − centre)ᵀ`` from the sums of ``c·(x, 1)(x, 1)ᵀ`` over the cells."""
    total = np.exp(shift) * np.tensordot(times, gram, axes=1)
    cross = np.outer(total[:-1, -1], centre)
    return total[:-1, :-1] - cross - cross.T + total[-1, -1] * np.outer(centre, centre)


def _merged(a: LogSums, b: LogSums) -> LogSums:
    """Sums over the rows of both."""
    top = np.maximum(a.top, b.top)
    with np.errstate(invalid="ignore"):
        mine, other = (np.where(s.top > -np.inf, np.exp(s.top - top), 0.0) for s in (a, b))
    rows = mine[:, None] * a.rows + other[:, None] * b.rows
    return LogSums(top, mine * a.mass + other * b.mass, rows)


def _part_log_sums(part: Part, own: list[np.ndarray], columns: Columns, centre: np.ndarray) -> LogSums:
    (d, n), kinds = columns.W.shape, 2 * len(columns.times)
    nothing = LogSums(np.full((kinds, n), -np.inf), np.zeros((kinds, n)), np.zeros((kinds, d, n)))

    def work(rows: slice) -> LogSums:
        top, mass, total = (np.copy(array) for array in nothing)
        for kind, mine, numbers in _by_kind(part, own, columns, rows):
            some = columns.take(mine)
            highest, sums = _log_sums(part, numbers, some.W * some.slope[kind % 2], centre)
            top[kind, mine], mass[kind, mine], total[kind][:, mine] = highest, sums[d], sums[:d]
        return LogSums(top, mass, total)

    return _over_slices(part, work, _merged, nothing)


def _log_sums(
    part: Part, numbers: np.ndarray, W: np.ndarray, centre: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Maximum exponent of each column, and the sums of ``(x, 1)`` weighted by ``exp(exponent − maximum)``."""
    d, n = W.shape
    top, sums = np.full(n, -np.inf), np.zeros((d + 1, n))
    factor = np.concatenate([W, np.zeros((1, n)), np.ones((1, n))])
    for Z in _chunks(part, numbers, centre, max(d, n)):
        base = np.where(top > -np.inf, top, 0.0)
        factor[d] = -base
        T = Z @ factor[: Z.shape[1]]
        peak = T.max(axis=0)
        # as in kernels.rows, the maximum moves only when exceeded by a wide margin
        moves = peak > np.where(top > -np.inf, HEADROOM, ABSENT / 2)
        if moves.any():
            step = np.where(moves, peak, 0.0)
            T -= step
            sums *= np.exp(-np.maximum(step, 0.0))  # below 0 there are no sums yet
            top = np.where(moves, base + step, top)
        np.exp(T, out=T)
        sums += Z[:, : d + 1].T @ T
    return top, sums


def _part_grams(
    part: Part, own: list[np.ndarray], terms: Scatters, centre: np.ndarray, rate: float
) -> np.ndarray:
    """Sums over a sample in which a row of weight c is drawn with probability ``min(1, rate·c)``."""
    (d, n), cells = terms.columns.W.shape, len(terms.columns.times)

    def work(some: slice) -> np.ndarray:
        total, rng = np.zeros((n, cells, d + 1, d + 1)), np.random.default_rng(some.start)
        for kind, mine, numbers in _by_kind(part, own, terms.columns, some):
            mine = mine[terms.label[mine] == kind % 2]
            own_columns = terms.columns.take(mine)
            factor = np.concatenate(
                [own_columns.W * own_columns.slope[0], [terms.shift[mine], np.ones(len(mine))]]
            )
            for Z in _chunks(part, numbers, centre, max(d, n)) if len(mine) else ():
                weight = np.exp(Z @ factor[: Z.shape[1]])
                drawn = weight > rng.random(Z.shape[0])[:, None] / rate
                root = np.sqrt(np.maximum(weight, 1 / rate))
                for place, k in enumerate(mine):
                    rows = np.flatnonzero(drawn[:, place])
                    D = Z[rows, : d + 1]
                    D = D if isinstance(D, np.ndarray) else D.toarray()
                    D *= root[rows, place, None]
                    total[k, kind // 2] += D.T @ D
        return total

    return _over_slices(part, work, np.add, np.zeros((n, cells, d + 1, d + 1)))


def _by_kind(
    part: Part, own: list[np.ndarray], columns: Columns, rows: slice
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Rows grouped by cell and label, with the columns in which they count."""
    for group, cells in enumerate(own):
        kind = 2 * cells[rows] + part.label[rows]
        order = rows.start + np.argsort(kind, kind="stable")
        ends = np.cumsum(np.bincount(kind, minlength=2 * len(columns.times)))
        for k, (first, last) in enumerate(pairwise([0, *ends])):
            mine = np.flatnonzero((columns.group == group) & (columns.times[k // 2] > 0))
            if first < last and len(mine):
                yield k, mine, order[first:last]


def _chunks(part: Part, numbers: np.ndarray, centre: np.ndarray, width: int) -> Iterator[Any]:
    """A few rows at a time: centred columns, a column of ones, and the logarithms of the weights, if any."""
    d, step = part.X.shape[1], max(1, CHUNK_NUMBERS // width)
    dense, weighted = isinstance(part.X, np.ndarray), part.log_weight is not None
    for first in range(0, len(numbers), step):
        own = numbers[first : first + step]
        Z = np.empty((len(own), d * dense + 1 + weighted))
        Z[:, d * dense] = 1.0
        if dense:
            np.subtract(part.X[own], centre, out=Z[:, :d])
        if part.log_weight is not None:
            np.maximum(part.log_weight[own], ABSENT, out=Z[:, -1])
        yield Z if dense else sparse.hstack([part.X[own], Z], format="csr")


def _over_slices(
    part: Part, work: Callable[[slice], Any], merge: Callable[[Any, Any], Any], total: Any
) -> Any:
    """Merge ``work(rows)`` over the slices of a part in order: bit-identical for any number of threads."""
    n = part.X.shape[0]
    size = max(SLICE_ROWS, -(-n // MOST_SLICES))
    slices = [slice(a, min(a + size, n)) for a in range(0, n, size)]
    at_once = min(n_threads(), part.threads or n_threads())
    # BLAS threads would wait for each other and change the last bits
    with threadpool_limits(limits=1, user_api="blas"), Threads(at_once) as threads:
        for first in range(0, len(slices), 2 * at_once):  # few results at a time, because each may be large
            total = reduce(merge, threads.map(work, slices[first : first + 2 * at_once]), total)
    return total


# ---------------------------------------------------------------- one of many fits


class ColumnSums:
    """Sums of :class:`apexrank.kernels.rows.RowSummer` for one of many fits, requested jointly by ``steps``."""

    def __init__(self, steps: Lockstep, w: np.ndarray, fold: int) -> None:
        self.steps, self.w, self.fold = steps, w, fold
        self.known: dict[tuple[float, ...], RowSums] = {}

    def log_sum_exp(self, slope: Any, active: Any = BOTH) -> RowSums:
        key = tuple(np.asarray(slope, dtype=float).tolist())
        if key not in self.known:
            self.known[key] = self.steps.ask(("sums", self.w, self.fold, key))
        return self.known[key]

    def scatter(self, terms: list[Scatter]) -> np.ndarray:
        return self.steps.ask(("scatter", self.w, self.fold, terms))


class ColumnDesign(Design):
    """Design of one of many joint fits, for objectives ``(1/p)·log R`` of two rows with a ridge.

    Parameters
    ----------
    rows : JointRows
    steps : Lockstep
        Collects the requests of all fits.
    fold : int
        Fold of the fit, or ``EVERYTHING``.
    n_columns : int
        Number of joint fits, which limits the memory for Hessians.
    known : array, optional
        Initial Hessian, from a nearby fit.
    """

    can_move = False

    def __init__(
        self, rows: JointRows, steps: Lockstep, fold: int, n_columns: int, known: np.ndarray | None = None
    ) -> None:
        self.rows, self.steps, self.fold, self.known = rows, steps, fold, known
        self.n_rows, self.n_features, self.shift = rows.n_rows, rows.n_features, rows.centre
        self.has_room = 8 * n_columns * rows.n_features**2 <= HESSIAN_BYTES
        self._latest: ColumnSums | None = None

    @property
    def hessian_work(self) -> float:
        """Zero if Hessians fit in memory, because a sample of the rows suffices."""
        return 0.0 if self.has_room else np.inf

    def units(self, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.rows.centre, self.rows.spread

    def varies(self) -> np.ndarray:
        return self.rows.varies()

    def sums(self, objective: Objective, w: np.ndarray) -> ColumnSums:
        if self._latest is None or not np.array_equal(self._latest.w, w):
            self._latest = ColumnSums(self.steps, w.copy(), self.fold)
        return self._latest

    def hessian(self, objective: Objective, w: np.ndarray, centre: np.ndarray) -> np.ndarray:
        known, self.known = self.known, None
        return objective.stream_hessian(self.sums(objective, w)) if known is None else known

    def separated(self, objective: Objective, w: np.ndarray) -> bool:
        return False  # only w = 0 has zero penalty, and there all scores are equal


# ---------------------------------------------------------------- rows in memory, in blocks, on a device


class _InMemory(Blocks):
    """All rows as a single part."""

    def __init__(self, part: Part) -> None:
        self.part = part

    def __iter__(self) -> Iterator[Part]:
        yield self.part


class DeviceJointRows(JointRows):
    """Rows on a device, where the sums are computed; only W and the sums are transferred."""

    def knows_folds(self, n: int) -> bool:
        return False

    def __init__(self, data: DeviceTraining, times: np.ndarray | None) -> None:
        super().__init__(_InMemory(None), [], rows_of(data), data.weight, None)  # type: ignore[arg-type]
        self.X, self.xp = data.X, namespace(data.X)
        self.masks = ~data.labels, data.labels
        weight = None if data.weight is None else self.xp.log(data.weight)
        self.log_weight = weight
        self.times = None if times is None else to_device(times, data.X, self.xp.float64)

    def columns(self, W: np.ndarray, slope: np.ndarray, fold: Sequence[int]) -> Columns:
        """Columns with the sums of their own folds; cells are not used here."""
        return Columns(W, slope, np.array(fold), np.array(fold), np.ones((1, len(fold))))

    def log_sums(self, columns: Columns) -> LogSums:
        return reduce(_merged, (self._block_sums(columns, some) for some in self._blocks(columns)))

    def _block_sums(self, columns: Columns, some: slice) -> LogSums:
        xp, found = self.xp, []
        for c in (0, 1):
            Z, T = self._exponents(columns, c, some)
            top = xp.max(T, axis=0)
            base = xp.where(top > -np.inf, top, xp.zeros_like(top))
            E = xp.exp(T - base)
            found.append([to_host(part) for part in (top, xp.sum(E, axis=0), Z.T @ E)])
        return LogSums(*(np.array(part) for part in zip(*found, strict=True)))

    def grams(self, terms: Scatters) -> np.ndarray:
        """Sums over all rows, since products are cheap on a device."""
        d, n = terms.columns.W.shape
        total = np.zeros((n, 1, d + 1, d + 1))
        for some in self._blocks(terms.columns):
            for c in (0, 1):
                mine = np.flatnonzero(terms.label == c)
                if len(mine):
                    Z, T = self._exponents(terms.columns.take(mine), c, some)
                    D = self.xp.concat([Z, self.xp.ones_like(Z[:, :1])], axis=1)
                    weight = self.xp.exp(T + to_device(terms.shift[mine], self.X))
                    for place, k in enumerate(mine):
                        total[k, 0] += to_host((D * weight[:, place, None]).T @ D)
        return total

    def _blocks(self, columns: Columns) -> list[slice]:
        step = max(1, DEVICE_BYTES // (8 * max(columns.W.shape)))
        return [slice(a, min(a + step, self.n_rows)) for a in range(0, self.n_rows, step)]

    def _exponents(self, columns: Columns, c: int, some: slice) -> tuple[Any, Any]:
        """Centred rows, and the exponents of a class for all columns, −inf for rows of the other class."""
        xp = self.xp
        Z = xp.astype(self.X[some, :], xp.float64) - to_device(self.centre, self.X)
        T = Z @ to_device(columns.W * columns.slope[c], self.X)
        if self.log_weight is not None:
            T = T + self.log_weight[some, None]
        if self.times is not None:
            counted = xp.concat(
                [self.times[:, some], xp.ones_like(self.times[:1, some])]
            )  # the last one is for fits on all rows
            T = T + xp.log(counted[to_device(columns.fold % len(counted), self.X), :]).T
        return Z, xp.where(self.masks[c][some, None], T, xp.full_like(T, -np.inf))


def rows_of(data: Training) -> Design:
    """Design of the original rows."""
    if isinstance(data, DeviceTraining):
        return DeviceDesign(data.X)
    return (
        data.design(labelled=not data.found.grouped) if isinstance(data, BlockTraining) else design_of(data.X)
    )


def joint_rows(data: Training, times: np.ndarray | None = None) -> JointRows:
    """Rows of a training set for joint fits; ``times`` is the number of times each row counts in each fold."""
    if isinstance(data, DeviceTraining):
        return DeviceJointRows(data, times)
    if isinstance(data, BlockTraining):
        design: Any = rows_of(data)
        return JointRows(design.parts, data.found.sizes, design, None, times)
    part = Part(data.X, data.labels.view(np.uint8), log_weights(data.weight), None)
    return JointRows(_InMemory(part), [len(data.labels)], rows_of(data), data.weight, times)
