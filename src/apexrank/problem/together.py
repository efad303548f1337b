"""Rows of many fits at once: sums over the rows for many vectors of coefficients from one reading of X.

The fits of a search differ in p, alpha and the fold that they leave out. A fold is a weight of 0 for the rows held out,
so that all fits share the rows: ``X @ W`` has the scores of all of them, some rows at a time, and what is kept of a
row are its contributions to the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from apexrank.checkpoints import recall
from apexrank.kernels.rows import BOTH, HEADROOM, RowSums
from apexrank.objectives.base import Objective, log_weights
from apexrank.objectives.push import Scatter
from apexrank.parallel import Lockstep, Threads, n_threads
from apexrank.problem.blocks import Blocks, BlockTraining, Part
from apexrank.problem.design import Design, Training, design_of
from apexrank.problem.device import BLOCK_BYTES as DEVICE_BYTES
from apexrank.problem.device import DeviceDesign, DeviceTraining, namespace, to_device, to_host

SLICE_ROWS, MOST_SLICES = 2**15, 128  # rows whose sums one thread adds up
CHUNK_NUMBERS = 2**16  # of X or of scores, which should stay in cache
SAMPLED = 2**15  # rows of a class, on average, that a Hessian is made of
SCATTER_BYTES = 2**24  # of Hessians that one pass gives
HESSIAN_BYTES = 2**26  # of the Hessians of all fits, beyond which they do without
ABSENT = -1e30  # the logarithm of a weight of 0, which products with 0 do not make nan
MOST_CELLS, KNOWN_BYTES = 32, 2**26  # of sums of cells that are kept
EVERYTHING = -1  # the fold of a fit on all rows


class Columns(NamedTuple):
    """Exponents ``slope_c·x·w + log u`` of many columns w: W by columns, slopes of the two classes, and folds."""

    W: np.ndarray
    slope: np.ndarray
    fold: np.ndarray

    def take(self, some: np.ndarray) -> Columns:
        return Columns(self.W[:, some], self.slope[:, some], self.fold[some])


class LogSums(NamedTuple):
    """Of each class (of each cell) and column: highest exponent, sums of ``exp(t − highest)`` and rows so weighted."""

    top: np.ndarray
    mass: np.ndarray
    rows: np.ndarray


class Scatters(NamedTuple):
    """Terms of Hessians: one class, exponents and centre each (:class:`~apexrank.objectives.push.Scatter`)."""

    columns: Columns
    label: np.ndarray
    shift: np.ndarray
    centre: np.ndarray


class JointRows:
    """Rows that many fits read together.

    Parameters
    ----------
    parts : Blocks
        The rows, as one :class:`~apexrank.problem.blocks.Part` or many.
    sizes : sequence of int
        Rows of each part.
    design : Design
        The rows as given, for the units of the columns.
    weight : array, optional
        Weights of the rows, for these units.
    times : array of shape (n_folds, n), optional
        How often each row counts in the fits of a fold.
    """

    def __init__(
        self, parts: Blocks, sizes: Sequence[int], design: Design, weight: Any, times: np.ndarray | None
    ) -> None:
        self.parts, self.times, self.design = parts, times, design
        self.n_rows, self.n_features, self.varies = design.n_rows, design.n_features, design.varies
        mean, self.spread = design.units(weight)
        self.centre = mean if design.can_move else 0 * mean  # far from zero scores would lose digits
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        self.cells, self.cell_times = cells_of(times)
        self._own = [
            (None, None)
            if times is None
            else (np.ascontiguousarray(times[:, a:b]), None if self.cells is None else self.cells[a:b])
            for a, b in pairwise(bounds)
        ]
        self._known: dict[tuple[bytes, Any], LogSums] = {}
        # a sample of the rows is enough for a Hessian, unless there are few: heavy rows are in it for certain
        self.rate = SAMPLED if self.n_rows > 4 * SAMPLED else np.inf

    def log_sums(self, columns: Columns) -> LogSums:
        """Sums of all columns; of fits on all rows those of each cell, negatives and positives by turns."""
        kinds = 2 * self.cell_times.shape[1] if self._by_cell(columns) else 2
        parts = self.parts.map_with(_part_log_sums, self._own, columns, self.centre, kinds)
        return reduce(merge_log_sums, parts)

    def scatters(self, terms: Scatters) -> np.ndarray:
        """Sums of outer products, one for each term."""
        return sum(self.parts.map_with(_part_scatters, self._own, terms, self.centre, self.rate))

    def answer(self, requests: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Answers to what columns ask (:class:`ColumnSums`), all in one pass over the rows, or one a kind."""
        answers: list[Any] = [None] * len(requests)
        for kind, give in (("sums", self._sums), ("scatter", self._scatter)):
            own = [k for k, request in enumerate(requests) if request[0] == kind]
            if own:
                for k, answer in zip(own, give([requests[k][1:] for k in own]), strict=True):
                    answers[k] = answer
        return answers

    def _sums(self, asked: list[tuple[Any, ...]]) -> list[RowSums]:
        """Sums for coefficients, fold and slopes, unless those of the cells of all rows are known from before."""
        keys = [(w.tobytes(), slope) for w, _, slope in asked]
        sums = {
            k: self._in_fold(self._known[key], asked[k][1])
            for k, key in enumerate(keys)
            if key in self._known
        }
        new = [k for k in range(len(asked)) if k not in sums]
        if new:
            w, fold, slope = zip(*(asked[k] for k in new), strict=True)
            columns = Columns(np.column_stack(w), np.column_stack(slope), np.array(fold))
            top, mass, rows = self._recalled("sums", columns, lambda: self.log_sums(columns))
            for place, k in enumerate(new):
                found = LogSums(top[:, place], mass[:, place], rows[:, :, place].copy())
                if self._by_cell(columns):
                    self._known[keys[k]] = found
                    sums[k] = self._in_fold(found, EVERYTHING)
                else:
                    sums[k] = _row_sums(*found)
            while len(self._known) * rows[:, :, 0].nbytes > KNOWN_BYTES:
                del self._known[next(iter(self._known))]  # the oldest
        return [sums[k] for k in range(len(asked))]

    def _by_cell(self, columns: Columns) -> bool:
        return self.cells is not None and bool((columns.fold == EVERYTHING).all())

    def _in_fold(self, sums: LogSums, fold: int) -> RowSums:
        """Sums of the two classes of a fold, from those of its cells."""
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.ones(self.cell_times.shape[1]) if fold == EVERYTHING else self.cell_times[fold]
            top, mass = sums.top.reshape(-1, 2), sums.mass.reshape(-1, 2)
            t = np.log(times)[:, None] + top
            highest = t.max(axis=0)
            share = np.where(t > -np.inf, np.exp(t - highest), 0.0)
            rows = np.einsum("gc,gcd->cd", share, sums.rows.reshape(*top.shape, -1))
        return _row_sums(highest, (share * mass).sum(axis=0), rows)

    def _scatter(self, asked: list[tuple[Any, ...]]) -> list[np.ndarray]:
        flat = [(w, fold, term) for w, fold, terms in asked for term in terms]
        found: list[np.ndarray] = []
        at_once = max(1, SCATTER_BYTES // (8 * self.n_features**2))
        for first in range(0, len(flat), at_once):
            w, fold, terms = zip(*flat[first : first + at_once], strict=True)
            slope = np.array([[term.slope] * 2 for term in terms]).T
            columns = Columns(np.column_stack(w), slope, np.array(fold))
            label, _, shift, centre = (
                np.array(part) for part in zip(*(term[:4] for term in terms), strict=True)
            )
            some = Scatters(columns, label, shift, centre)
            found += list(self._recalled("scatter", columns, partial(self._gram, some))[0])
        ends = np.cumsum([len(terms) for _, _, terms in asked])
        return [
            np.array(found[end - len(terms) : end]) for end, (_, _, terms) in zip(ends, asked, strict=True)
        ]

    def _gram(self, terms: Scatters) -> tuple[np.ndarray]:
        return (self.scatters(terms),)

    def _recalled(self, name: str, columns: Columns, compute: Callable[[], Any]) -> Any:
        point = np.concatenate([np.ravel(part) for part in columns]).astype(float)
        return recall(self, name, point, compute)


def _row_sums(top: np.ndarray, mass: np.ndarray, rows: np.ndarray) -> RowSums:
    with np.errstate(all="ignore"):
        return RowSums(top + np.log(mass), np.ones(2), rows / mass[:, None])


def merge_log_sums(a: LogSums, b: LogSums) -> LogSums:
    """Sums over the rows of both."""
    top = np.maximum(a.top, b.top)
    with np.errstate(invalid="ignore"):
        mine, other = (np.where(s.top > -np.inf, np.exp(s.top - top), 0.0) for s in (a, b))
    rows = mine[:, None] * a.rows + other[:, None] * b.rows
    return LogSums(top, mine * a.mass + other * b.mass, rows)


def cells_of(times: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray]:
    """Cell of each row, and the times of each cell: rows of a cell count equally often in every fold.

    Of k folds that share out the rows there are k cells. None where there are many.

    Examples
    --------
    >>> cells, times = cells_of(np.array([[0, 1, 1, 0], [1, 0, 1, 1]]))
    >>> cells.tolist(), times.tolist()
    ([1, 0, 2, 1], [[1, 0, 1], [0, 1, 1]])
    """
    nothing = None, np.ones((0, 1))
    if times is None or (times.max() + 1.0) ** len(times) > 2**16:
        return nothing
    code = np.zeros(times.shape[1], dtype=np.uint16)
    for count in times[::-1]:
        code = code * np.uint16(times.max() + 1) + count.astype(np.uint16)
    values, first, cells = np.unique(code, return_index=True, return_inverse=True)
    return (cells.astype(np.uint8), times[:, first]) if len(values) <= MOST_CELLS else nothing


Own = tuple[np.ndarray | None, np.ndarray | None]  # times and cells of the rows of a part


def _part_log_sums(part: Part, own: Own, columns: Columns, centre: np.ndarray, kinds: int) -> LogSums:
    times, cells = own
    if kinds > 2 and cells is not None:
        part, times = part._replace(label=2 * cells + part.label), None
    d, n = columns.W.shape
    nothing = LogSums(np.full((kinds, n), -np.inf), np.zeros((kinds, n)), np.zeros((kinds, d, n)))
    return _over_slices(
        part, lambda rows: _slice_log_sums(part, times, columns, centre, kinds, rows), merge_log_sums, nothing
    )


def _slice_log_sums(
    part: Part, times: np.ndarray | None, columns: Columns, centre: np.ndarray, kinds: int, rows: slice
) -> LogSums:
    d, n = columns.W.shape
    top, sums = np.full((kinds, n), -np.inf), np.zeros((kinds, d + 1, n))
    factors = [_factors(columns, c, times) for c in (0, 1)]
    for kind, Z in _chunks(part, times, centre, rows, max(d, n), kinds):
        factor, base = factors[kind % 2], np.where(top[kind] > -np.inf, top[kind], 0.0)
        factor[d] = -base
        T = Z @ factor
        peak = T.max(axis=0)
        # as in kernels.rows: the maximum moves only when it is passed by far
        moves = peak > np.where(top[kind] > -np.inf, HEADROOM, ABSENT / 2)
        if moves.any():
            step = np.where(moves, peak, 0.0)
            T -= step
            sums[kind] *= np.exp(-np.maximum(step, 0.0))  # where it is below 0 there are no sums yet
            top[kind] = np.where(moves, base + step, top[kind])
        np.exp(T, out=T)
        sums[kind] += Z[:, : d + 1].T @ T
    return LogSums(top, sums[:, d], sums[:, :d])


def _part_scatters(part: Part, own: Own, terms: Scatters, centre: np.ndarray, rate: float) -> np.ndarray:
    (times, _), (d, n) = own, terms.columns.W.shape
    return _over_slices(
        part,
        lambda rows: _slice_scatters(part, times, terms, centre, rate, rows),
        np.add,
        np.zeros((n, d, d)),
    )


def _slice_scatters(
    part: Part, times: np.ndarray | None, terms: Scatters, centre: np.ndarray, rate: float, rows: slice
) -> np.ndarray:
    """Sums of outer products over a sample: a row of weight c is drawn with probability ``min(1, rate·c)``."""
    d, n = terms.columns.W.shape
    total, rng = np.zeros((n, d, d)), np.random.default_rng(rows.start)
    of_class = [np.flatnonzero(terms.label == c) for c in (0, 1)]
    factors = [_factors(terms.columns.take(mine), c, times) for c, mine in enumerate(of_class)]
    for c, Z in _chunks(part, times, centre, rows, max(d, n)):
        factors[c][d] = terms.shift[of_class[c]]
        weight, draw = np.exp(Z @ factors[c]), rng.random(Z.shape[0])[:, None] / rate
        drawn = weight > draw
        for place, k in enumerate(of_class[c]):
            some = np.flatnonzero(drawn[:, place])
            D = Z[some, :d]
            D = (D if isinstance(D, np.ndarray) else D.toarray()) - terms.centre[k]
            D *= np.sqrt(np.maximum(weight[some, place], 1 / rate))[:, None]
            total[k] += D.T @ D
    return total


def _factors(columns: Columns, c: int, times: np.ndarray | None) -> np.ndarray:
    """What the rows of :func:`_chunks` are multiplied with: the exponents of a class, but for the row after W."""
    slopes, every = columns.W * columns.slope[c], np.ones((1, len(columns.fold)))
    folds = () if times is None else (columns.fold == np.arange(len(times))[:, None],)
    return np.concatenate([slopes, 0 * every, *folds, every])


def _chunks(
    part: Part, times: np.ndarray | None, centre: np.ndarray, rows: slice, width: int, kinds: int = 2
) -> Iterator[tuple[int, Any]]:
    """Label and rows of some rows at a time: centred columns, 1, logarithms of times in each fold and of weight."""
    d, k = part.X.shape[1], 0 if times is None else len(times)
    step = max(1, kinds // 2 * CHUNK_NUMBERS // width)
    for first in range(rows.start, rows.stop, step):
        label = part.label[first : min(first + step, rows.stop)]
        for c in range(kinds):
            own = first + np.flatnonzero(label == c)
            if not len(own):
                continue
            dense = isinstance(part.X, np.ndarray)
            Z = np.empty((len(own), (d if dense else 0) + k + 2))
            if dense:
                np.subtract(part.X[own], centre, out=Z[:, :d])
            more = Z[:, -k - 2 :]
            more[:, 0] = 1.0
            with np.errstate(divide="ignore"):
                more[:, 1 : k + 1] = 0.0 if times is None else np.log(times[:, own].T)
            more[:, k + 1] = 0.0 if part.log_weight is None else part.log_weight[own]
            np.maximum(more, ABSENT, out=more)
            yield c, Z if dense else sparse.hstack([part.X[own], Z], format="csr")


def _over_slices(
    part: Part, work: Callable[[slice], Any], merge: Callable[[Any, Any], Any], total: Any
) -> Any:
    """Merge ``work(rows)`` over the slices of a part in their order: the same bits for any number of threads."""
    n = part.X.shape[0]
    size = max(SLICE_ROWS, -(-n // MOST_SLICES))
    slices = [slice(a, min(a + size, n)) for a in range(0, n, size)]
    at_once = min(n_threads(), part.threads or n_threads())
    # threads of BLAS would wait for each other, and change the last bits
    with threadpool_limits(limits=1, user_api="blas"), Threads(at_once) as threads:
        for first in range(0, len(slices), 2 * at_once):  # few results at a time, each may be large
            total = reduce(merge, threads.map(work, slices[first : first + 2 * at_once]), total)
    return total


# ---------------------------------------------------------------- one of many fits


class ColumnSums:
    """The sums of :class:`apexrank.kernels.rows.RowSummer` for one fit of many, which ``steps`` asks for all."""

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
    """The rows as one fit of many sees them, for objectives ``(1/p)·log R`` of two rows and with a ridge.

    Parameters
    ----------
    rows : JointRows
    steps : Lockstep
        Brings the questions of all fits together.
    fold : int
        Fold whose rows the fit has, or ``EVERYTHING``.
    n_columns : int
        Fits that take part, which limits the memory that Hessians may take.
    known : array, optional
        Hessian to start with, that of a fit nearby.
    """

    can_move = False

    def __init__(
        self, rows: JointRows, steps: Lockstep, fold: int, n_columns: int, known: np.ndarray | None = None
    ) -> None:
        self.rows, self.steps, self.fold, self.known = rows, steps, fold, known
        self.n_rows, self.n_features, self.shift = rows.n_rows, rows.n_features, rows.centre
        self.has_room = 8 * n_columns * rows.n_features**2 <= HESSIAN_BYTES
        self.latest_hessian: np.ndarray | None = None
        self._latest: ColumnSums | None = None

    @property
    def hessian_work(self) -> float:
        """Little, as a sample of the rows will do."""
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
        self.latest_hessian = objective.stream_hessian(self.sums(objective, w)) if known is None else known
        return self.latest_hessian

    def separated(self, objective: Objective, w: np.ndarray) -> bool:
        return False  # only w = 0 has no penalty, and there all scores are equal


# ---------------------------------------------------------------- rows in memory, in blocks, on a device


class _InMemory(Blocks):
    """All rows as one part."""

    def __init__(self, part: Part) -> None:
        self.part = part

    def __iter__(self) -> Iterator[Part]:
        yield self.part


class DeviceJointRows(JointRows):
    """Rows on a device, where the sums are taken; only W and the sums cross."""

    def __init__(self, data: DeviceTraining, times: np.ndarray | None) -> None:
        super().__init__(_InMemory(None), [], rows_of(data), data.weight, None)  # type: ignore[arg-type]
        self.X, self.xp = data.X, namespace(data.X)
        self.masks = ~data.labels, data.labels
        weight = None if data.weight is None else self.xp.log(data.weight)
        self.log_weight = weight
        self.times = None if times is None else to_device(times, data.X, self.xp.float64)

    def log_sums(self, columns: Columns) -> LogSums:
        return reduce(merge_log_sums, (self._block_sums(columns, some) for some in self._blocks(columns)))

    def _block_sums(self, columns: Columns, some: slice) -> LogSums:
        xp, found = self.xp, []
        for c in (0, 1):
            Z, T = self._exponents(columns, c, some)
            top = xp.max(T, axis=0)
            base = xp.where(top > -np.inf, top, xp.zeros_like(top))
            E = xp.exp(T - base)
            found.append([to_host(part) for part in (top, xp.sum(E, axis=0), Z.T @ E)])
        return LogSums(*(np.array(part) for part in zip(*found, strict=True)))

    def scatters(self, terms: Scatters) -> np.ndarray:
        """Sums over all rows: here the products are cheap."""
        d, n = terms.columns.W.shape
        total = np.zeros((n, d, d))
        for some in self._blocks(terms.columns):
            for c in (0, 1):
                mine = np.flatnonzero(terms.label == c)
                if len(mine):
                    Z, T = self._exponents(terms.columns.take(mine), c, some)
                    weight = self.xp.exp(T + to_device(terms.shift[mine], self.X))
                    for place, k in enumerate(mine):
                        D = Z - to_device(terms.centre[k], self.X)
                        total[k] += to_host((D * weight[:, place, None]).T @ D)
        return total

    def _blocks(self, columns: Columns) -> list[slice]:
        step = max(1, DEVICE_BYTES // (8 * max(columns.W.shape)))
        return [slice(a, min(a + step, self.n_rows)) for a in range(0, self.n_rows, step)]

    def _exponents(self, columns: Columns, c: int, some: slice) -> tuple[Any, Any]:
        """Centred rows, and the exponents of a class for all columns, −inf outside of it."""
        xp = self.xp
        Z = xp.astype(self.X[some, :], xp.float64) - to_device(self.centre, self.X)
        T = Z @ to_device(columns.W * columns.slope[c], self.X)
        if self.log_weight is not None:
            T = T + self.log_weight[some, None]
        if self.times is not None:
            counted = xp.concat(
                [self.times[:, some], xp.ones_like(self.times[:1, some])]
            )  # the last of them all
            T = T + xp.log(counted[to_device(columns.fold % len(counted), self.X), :]).T
        return Z, xp.where(self.masks[c][some, None], T, xp.full_like(T, -np.inf))


def rows_of(data: Training) -> Design:
    """The design of the rows as given."""
    if isinstance(data, DeviceTraining):
        return DeviceDesign(data.X)
    return (
        data.design(labelled=not data.found.grouped) if isinstance(data, BlockTraining) else design_of(data.X)
    )


def joint_rows(data: Training, times: np.ndarray | None = None) -> JointRows:
    """The rows of a training set for many fits; ``times`` says how often each row counts in the fits of each fold."""
    if isinstance(data, DeviceTraining):
        return DeviceJointRows(data, times)
    if isinstance(data, BlockTraining):
        design: Any = rows_of(data)
        return JointRows(design.parts, data.found.sizes, design, None, times)
    part = Part(data.X, data.labels.view(np.uint8), log_weights(data.weight), None)
    return JointRows(_InMemory(part), [len(data.labels)], rows_of(data), data.weight, times)
