"""Binned scorecards: integer points for every bin of a column, from the functions of an additive ranker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil, floor, inf, log10
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from apexrank.errors import InputError
from apexrank.export.cards import Card, Losses, check_training, chosen_features
from apexrank.export.features import OTHER, Feature, last_step
from apexrank.export.forms import Curve, Form, Levels, model_form
from apexrank.export.rounding import CardObjective, naive_points, search_points
from apexrank.io import types
from apexrank.io.judge import Judged
from apexrank.io.read import as_table
from apexrank.io.table_ranker import TableRanker
from apexrank.penalties import Ridge
from apexrank.validation import check_count, is_missing

if TYPE_CHECKING:
    import polars as pl

CANDIDATES, ROWS = (
    64,
    16,
)  # maximum number of candidate bin edges, and minimum number of rows between two of them
NO_CELL = -1


class Cell(NamedTuple):
    """A bin ``low <= x < high`` of a numeric column, or one of its categories; None stands for missing values.

    ``share`` is its share of the rows that the card was fitted on.
    """

    column: str
    text: str
    low: float | None
    high: float | None
    value: Any
    share: float


@dataclass(frozen=True, eq=False)
class Bins:
    """Cells of a column: one between each two ``edges``, or one per key in ``keys``; with ``gap`` one more at the end.

    The last one is for missing values and, in a text column of a data frame, also for unknown ones.
    """

    effect: Curve | Levels
    edges: np.ndarray
    keys: tuple[Any, ...]
    gap: bool

    @property
    def width(self) -> int:
        """Number of cells."""
        return (len(self.keys) or len(self.edges) + 1) + self.gap

    def codes(self, values: np.ndarray) -> np.ndarray:
        """Cell index of each row; `NO_CELL` if it has none."""
        last = self.width - 1 if self.gap else NO_CELL
        if isinstance(self.effect, Levels):
            return np.where(values < 0, last, values)
        missing = np.isnan(values)
        found = np.searchsorted(self.edges, np.where(missing, 0.0, values), side="right")
        return np.where(missing, last, found)


class Cells:
    """Implicit 0/1 matrix of rows by cells, in which each row has at most one cell per column."""

    def __init__(self, columns: Sequence[Bins], values: Sequence[np.ndarray]) -> None:
        self.starts = np.append(0, np.cumsum([own.width for own in columns])).astype(int)
        none = self.starts[-1]
        parts = [own.codes(x) for own, x in zip(columns, values, strict=True)]
        codes = [np.where(c < 0, none, c + start) for c, start in zip(parts, self.starts[:-1], strict=True)]
        self.codes = np.column_stack(codes).astype(np.int32)

    def __matmul__(self, points: np.ndarray) -> np.ndarray:
        padded = np.append(points, 0)
        return sum((padded[column] for column in self.codes.T), np.zeros(len(self.codes)))

    def __getitem__(self, key: tuple[slice, int]) -> np.ndarray:
        """Whether each row is in a cell."""
        j = key[1]
        return self.codes[:, np.searchsorted(self.starts, j, side="right") - 1] == j

    def sums(self, weight: np.ndarray | None) -> np.ndarray:
        """Total weight of the rows of each cell."""
        repeated = None if weight is None else np.repeat(weight, self.codes.shape[1])
        return np.bincount(self.codes.ravel(), repeated, self.starts[-1] + 1)[:-1]


@dataclass(frozen=True, eq=False)
class BinnedScorecard(Card):
    """Integer points for the bins and categories of a table's columns; created by :func:`round_scorecard`.

    Attributes
    ----------
    features : list of str
        The column of each line; columns whose points vary most come first.
    points : array of int
        Points of each line.
    cells : list of Cell
        Bin or category of each line. Neighbouring bins with equal points form one line. A value without a line, such as
        a category not seen in training, has no points.
    objective : Losses
        Training objective of ``model``, ``card`` and ``naive`` rounding. The penalty of a card applies to increments
        from bin to bin, like that of the model to increments from knot to knot.
    measures : sequence of str, optional
        Metrics computed by :meth:`loss`.
    """

    cells: list[Cell]
    points_form: Form = field(repr=False)

    def score(self, X: Any) -> np.ndarray:
        """Points of each row of a table, frame or array; higher means nearer to the top."""
        effects = self.points_form.effects
        total: Any = 0.0
        for effect, values in zip(effects, read_columns(self.model, effects, X), strict=True):
            if isinstance(effect, Levels):
                total = total + np.append([*effect.weights.values()], effect.unknown)[values]
            else:
                gap = np.nan if effect.missing is None else effect.missing
                total = total + np.where(np.isnan(values), gap, effect(values))
        return np.asarray(total)

    def to_frame(self) -> pl.DataFrame:
        """The card as a table: feature, bin, points, both ends of the bin, share of the rows, and the rule as text."""
        import polars as pl

        columns: dict[str, Any] = {"feature": self.features, "bin": [cell.text for cell in self.cells]}
        columns |= {"points": self.points} | {
            n: [getattr(c, n) for c in self.cells] for n in ("low", "high", "share")
        }
        ends = {"low": pl.Float64, "high": pl.Float64}
        return pl.DataFrame(columns | {"rule": self.rules()}, schema_overrides=ends)

    def rules(self) -> list[str]:
        """Conditions of the points as text, each on a single line."""
        texts = (f"is {cell.text}" if isinstance(cell.value, str) else cell.text for cell in self.cells)
        pairs = zip(self.features, texts, strict=True)
        return [" ".join(f"{name} {text}".splitlines()) for name, text in pairs]


def round_bins(
    model: Any,
    X: Any,
    judged: Judged,
    names: Sequence[str] | None,
    *,
    max_points: int,
    n_bins: int,
    features: int | Sequence[str] | None,
    measures: tuple[str, ...] | None,
) -> BinnedScorecard:
    """Round an additive ranker to points per bin; see :func:`apexrank.export.round_scorecard`."""
    check_count("n_bins", n_bins)
    form = model_form(model, names)
    if form.pairs:
        a, b = (side.feature.column.name for side in form.pairs[0].sides)
        raise InputError(
            f"a scorecard has points for single columns, but the model has pairs of them, such as {a} and {b}: fit it "
            "without pairs (`n_pairs=0`)"
        )
    values = read_columns(model, form.effects, X)
    if len(values[0]) != len(judged.y):
        raise InputError(f"X has {len(values[0])} rows, y {len(judged.y)}: give X and y for the same rows")
    weight = np.ones(len(judged.y)) if judged.weight is None else judged.weight
    ranker = last_step(model)
    importance = _importance(ranker, judged, weight)
    columns = [
        find_bins(effect, x, weight, importance, n_bins)
        for effect, x in zip(form.effects, values, strict=True)
    ]
    cells = Cells(columns, values)
    mass = cells.sums(judged.weight)
    wanted = np.concatenate([_wanted(own, x, weight) for own, x in zip(columns, values, strict=True)])
    spread = np.zeros(len(columns))
    for e, first, last in zip(range(len(columns)), cells.starts[:-1], cells.starts[1:], strict=True):
        own, mine = mass[first:last], wanted[first:last]
        total = own.sum() or 1.0
        mine -= own @ mine / total
        spread[e] = np.sqrt(own @ mine**2 / total)
    kept = chosen_features([(own.effect.column.name,) for own in columns], spread, features)
    wanted[~np.repeat(kept, np.diff(cells.starts)) | (mass == 0)] = 0.0
    if not wanted.any():
        raise InputError("no column with different effects is left: there is nothing to round")
    W, signs = _rises(columns, cells.starts, wanted, mass)
    scores = judged.scores - form.intercept
    # strengths of curves are about their own knots
    penalty = Ridge(0.0) if ranker.alpha == "auto" else ranker._penalty()
    objective = CardObjective(ranker, judged, cells, W, scores, np.ravel(ranker.coef_), signs, penalty)
    check_training(model, objective.of_model, judged)
    best = search_points(objective, wanted, max_points)
    for each, (first, last) in zip(columns, pairwise(cells.starts.tolist()), strict=True):
        if isinstance(each.effect, Curve):
            best.points[first:last] = levelled(best.points[first:last], mass[first:last], max_points)
    naive = objective.best(naive_points(wanted, max_points))
    spans = [slice(*ends) for ends in pairwise(cells.starts.tolist())]
    order = sorted(range(len(columns)), key=lambda e: -np.ptp(best.points[spans[e]]))
    lines: list[tuple[Cell, int]] = []
    effects: list[Curve | Levels] = []
    for e in order:
        span = slice(cells.starts[e], cells.starts[e + 1])
        if best.points[span].any():
            numbers = values[e][~np.isnan(values[e])]
            whole = isinstance(columns[e].effect, Curve) and not (numbers % 1).any()
            lines += _lines(columns[e], best.points[span], mass[span] / weight.sum(), whole)
            effects.append(_stepped(columns[e], best.points[span]))
    return BinnedScorecard(
        features=[cell.column for cell, _ in lines],
        points=np.array([points for _, points in lines]),
        objective=Losses(objective.of_model, best.value, naive.value),
        measures=measures,
        model=model,
        training=(judged, cells @ best.points),
        cells=[cell for cell, _ in lines],
        points_form=Form(effects, [], 0.0),
    )


def levelled(points: np.ndarray, mass: np.ndarray, max_points: int) -> np.ndarray:
    """Shift the points of a column so that their mean is as close to 0 as integers up to ``max_points`` allow.

    Shifting all points of a column by a constant does not change the order. Which of these equivalent cards the search
    finds depends on rounding.

    Examples
    --------
    >>> levelled(np.array([0, 1, 3]), np.array([5.0, 3.0, 1.0]), 5).tolist()
    [-1, 0, 2]
    """
    if not points.any():
        return points
    moves = np.arange(-max_points - points.min(), max_points - points.max() + 1)
    means = np.abs(np.average(points, weights=mass) + moves)
    return points + int(moves[np.argmin(np.round(means, 9))])


# ---------------------------------------------------------------- columns and their bins


def read_columns(model: Any, effects: Sequence[Curve | Levels], X: Any) -> list[np.ndarray]:
    """Numbers of each column with NaN for missing values, or category indices with −1 for others."""
    if isinstance(model, TableRanker):
        X = model.encoder.encode(as_table(X))
    X = X if hasattr(X, "columns") else np.asarray(X)
    return [
        Feature(effect.column).read(X, gaps=True) if isinstance(effect, Curve) else _places(effect, X)
        for effect in effects
    ]


def _places(effect: Levels, X: Any) -> np.ndarray:
    names, fill = (types.OTHER if key is OTHER else key for key in effect.weights), effect.column.fill
    keys = {key: place for place, key in enumerate(names)}
    as_text = all(isinstance(key, str) for key in keys)
    found = (fill if is_missing(value) else value for value in effect.column.of(X).tolist())
    return np.array([keys.get(str(value) if as_text and value is not None else value, -1) for value in found])


def find_bins(
    effect: Curve | Levels, values: np.ndarray, weight: np.ndarray, importance: np.ndarray, n_bins: int
) -> Bins:
    """Cells of a column: bins in which its function varies least, or its categories."""
    if isinstance(effect, Levels):
        gap = effect.unknown != 0 and OTHER not in effect.weights
        return Bins(effect, np.empty(0), tuple(effect.weights), gap)
    known = ~np.isnan(values) & (weight > 0)
    edges = np.empty(0)
    if known.any():
        edges = best_edges(values[known], effect(values[known]), weight[known], n_bins, importance[known])
    return Bins(effect, edges, (), not known[weight > 0].all())


def best_edges(
    x: np.ndarray, f: np.ndarray, weight: np.ndarray, n_bins: int, importance: np.ndarray | None = None
) -> np.ndarray:
    """Round-number edges of at most ``n_bins`` bins in which f varies least, ``Σ w·(f − mean of its bin)²``.

    The edges are chosen from weighted quantiles of the rows; w is their ``importance``, or else these weights.

    Examples
    --------
    >>> x = np.linspace(0, 1000, 2001)
    >>> best_edges(x, np.where(x < 250, 0.0, np.where(x < 900, 2.0, 1.0)), np.ones(2001), 3).tolist()
    [250.0, 900.0]
    """
    edges = candidate_edges(x, weight)
    cell, weight = np.searchsorted(edges, x, side="right"), weight if importance is None else importance
    sums = [
        np.append(0.0, np.cumsum(np.bincount(cell, v, len(edges) + 1)))
        for v in (weight, weight * f, weight * f * f)
    ]
    w, s, q = (part[None, :] - part[:, None] for part in sums)  # sums over cells i to j − 1
    with np.errstate(invalid="ignore", divide="ignore"):
        cost = np.where(w > 0, q - s * s / w, 0.0)
    cost[np.tril_indices(len(cost))] = inf
    # minimum cost of the first j cells in b bins, and the start of the last bin
    best, chosen = cost[0], []
    for _ in range(min(n_bins, len(edges) + 1) - 1):
        through = best[:, None] + cost
        chosen.append(through.argmin(axis=0))
        best = through.min(axis=0)
    end, cuts = len(edges) + 1, []
    for begins in reversed(chosen):
        end = int(begins[end])
        cuts.append(edges[end - 1])
    return np.array(cuts[::-1])


def candidate_edges(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Candidate edges at round numbers between values or, for many values, quantiles at least `ROWS` rows apart.

    Examples
    --------
    >>> candidate_edges(np.array([0.0, 1.0, 1.0, 7.3]), np.ones(4)).tolist()
    [1.0, 4.0]
    """
    order = np.argsort(x, kind="stable")
    x, below = x[order], np.cumsum(weight[order])
    low, high = x[:-1][np.diff(x) > 0], x[1:][np.diff(x) > 0]
    most = int(np.clip(below[-1] / ROWS, 8, CANDIDATES))
    if len(low) > most:
        at = np.searchsorted(below, np.linspace(0, below[-1], most + 2)[1:-1])
        around = np.unique(np.concatenate([x[:1], x[np.minimum(at, len(x) - 1)], x[-1:]]))
        low, high = around[:-1], around[1:]
    return np.unique([roundest(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)])


def roundest(low: float, high: float) -> float:
    """Number with the fewest digits above ``low`` and at most ``high``; of several, the one closest to the middle.

    Examples
    --------
    >>> roundest(239.7, 257.0), roundest(0.0, 1.0), roundest(-0.013, 0.02), roundest(17.25, 17.5)
    (250.0, 1.0, 0.0, 17.5)
    """
    if low < 0 <= high:
        return 0.0
    middle = low + (high - low) / 2
    for power in range(ceil(log10(max(abs(low), abs(high)))), -324, -1):
        step = float(f"1e{power}")
        for k in (round(middle / step), floor(high / step)):
            value = float(f"{k}e{power}")
            if low < value <= high:
                return value
    return high


def _importance(ranker: Any, judged: Judged, weight: np.ndarray) -> np.ndarray:
    """``√(w·|∂F/∂score|)``, the weights used to choose bins.

    The objective is steep at the top of the list and where the order is wrong, so bins are finer where it matters.
    Weights proportional to the gradient itself would ignore the other rows.
    """
    objective = ranker._objective(judged.y if judged.graded else judged.y > 0, judged.weight, judged.groups)
    found = np.sqrt(weight * np.abs(objective.value_and_grad(judged.scores)[1]))
    return found if found.any() else weight


# ---------------------------------------------------------------- points of cells


def _wanted(own: Bins, values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Mean effect of the rows of each cell."""
    effect = own.effect
    if isinstance(effect, Levels):
        return np.array([*effect.weights.values(), *[effect.unknown] * own.gap])
    known, width = ~np.isnan(values), len(own.edges) + 1
    codes, w = own.codes(values[known]), weight[known]
    mass = np.bincount(codes, w, width)
    sums = np.bincount(codes, w * effect(values[known]), width)
    return np.append(sums / np.where(mass > 0, mass, 1.0), [effect.missing] * own.gap).astype(float)


def _rises(
    columns: Sequence[Bins], starts: np.ndarray, wanted: np.ndarray, mass: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Contribution of a point of each cell to the ranker's coefficients, and the sign constraints of these.

    As between knots, a coefficient is √M times the increment over one of the M edges; that of missing values is their
    difference from the bin with the most rows, and that of a category its points. If a function is monotone, so are
    the points of its bins.
    """
    rows, signs = [], []
    for own, start in zip(columns, starts[:-1].tolist(), strict=True):
        eye = np.eye(int(starts[-1]))[start : start + own.width]
        if own.keys:
            rows.append(eye)
            signs.append(np.zeros(own.width))
            continue
        bins = len(own.edges) + 1
        jumps = np.diff(wanted[start : start + bins])
        rows.append(np.sqrt(max(1, bins - 1)) * np.diff(eye[:bins], axis=0))
        signs.append(np.full(bins - 1, (jumps >= 0).all() * 1.0 - (jumps <= 0).all()))
        usual = int(np.argmax(mass[start : start + bins]))
        rows.append(eye[bins:] - eye[usual])
        signs.append(np.zeros(int(own.gap)))
    return np.vstack(rows), np.concatenate(signs)


def _stepped(own: Bins, points: np.ndarray) -> Curve | Levels:
    """Points of a column as a function."""
    effect, gap = own.effect, float(points[-1]) if own.gap else 0.0
    if isinstance(effect, Levels):
        weights = dict(zip(own.keys, points.tolist(), strict=False))
        return replace(effect, weights=weights, unknown=weights.get(OTHER, gap))
    values = points[: len(own.edges) + 1].astype(float)
    missing: float | None = gap
    if not own.gap and effect.missing is None:
        missing = None
    elif not own.gap and effect.column.fill is not None:
        missing = float(values[np.searchsorted(own.edges, effect.column.fill, side="right")])
    flat = np.zeros(len(values))
    return replace(effect, bounds=own.edges, values=values, slopes=flat, missing=missing, center=0.0)


def _lines(own: Bins, points: np.ndarray, shares: np.ndarray, whole: bool) -> list[tuple[Cell, int]]:
    """Cells of a column with their points; neighbouring bins with equal points are merged."""
    name, lines = own.effect.column.name, []
    bins = 0 if own.keys else len(own.edges) + 1
    ends = [-inf, *own.edges.tolist(), inf]
    first = 0
    for i in range(bins):
        if i + 1 < bins and points[i + 1] == points[i]:
            continue
        low, high, share = ends[first], ends[i + 1], float(shares[first : i + 1].sum())
        text = bin_text(low, high, whole, types.Date(name).shown if own.effect.column.date else _written)
        fill = own.effect.column.fill
        if not own.gap and fill is not None and low <= fill < high:
            text += " or missing"
        finite = (None if abs(low) == inf else low), (None if abs(high) == inf else high)
        lines.append((Cell(name, text, *finite, None, share), int(points[i])))
        first = i + 1
    for key, share, point in zip([*own.keys, *[None] * own.gap], shares[bins:], points[bins:], strict=True):
        if not (share or point):
            continue
        text = "missing" if key is None else str(key)
        if own.keys and own.gap and key is None:
            text = "missing or unknown"
        lines.append((Cell(name, text, None, None, key, float(share)), int(point)))
    return lines


def _written(number: float) -> str:
    """Format a number with commas from 10,000 on, because 2004 may be a year."""
    return f"{number:,.15g}" if abs(number) >= 10_000 else f"{number:.15g}"


def bin_text(low: float, high: float, whole: bool = False, written: Callable[[float], str] = _written) -> str:
    """Text of a bin; for whole numbers with the last one included, for others with the excluded upper end.

    Examples
    --------
    >>> bin_text(-inf, 250.0), bin_text(250.0, 900.0), bin_text(900.0, inf), bin_text(2.0, 3.0, whole=True)
    ('below 250', '250 to 900', '900 or more', '2')
    """
    if low == -inf and high == inf:
        return "any"
    if low == -inf:
        return f"below {written(high)}"
    if high == inf:
        return f"{written(low)} or more"
    if whole and low == floor(low) and high == floor(high):
        high -= 1
    return written(low) if low == high else f"{written(low)} to {written(high)}"
