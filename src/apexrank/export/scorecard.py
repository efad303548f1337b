"""Scorecards: a linear ranker rounded to integer points that a person can add up, and the loss from rounding."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight

from apexrank.errors import InputError
from apexrank.export.linear import (
    Feature,
    LinearForm,
    TableColumn,
    as_table,
    coefficients,
    first_fitted,
    found,
    last_step,
    linear_form,
    raw_matrix,
)
from apexrank.export.sql import to_sql
from apexrank.io.columns import read_target
from apexrank.io.judging import ABOVE_ZERO, Judged, measurable
from apexrank.io.table_ranker import TableRanker
from apexrank.metrics.confidence import compare
from apexrank.metrics.evaluation import find_measure, find_measures, ranking_scores

if TYPE_CHECKING:
    import polars as pl

OF_ONE_LIST = ("auc", "partial_auc_0.1", "precision_at_50", "average_precision")
OF_MANY_LISTS = ("ndcg", "ndcg_at_10", "average_precision")
OF_WEIGHTED_LISTS = ("auc", "precision_at_10")  # which any weights allow
_SAME = 1e-5  # of the objective: a model of the same rows and weights has the same one
_SCALES = 64  # scales at which the coefficients are rounded, before single points are changed
_WIDEST = 6.0  # the best scale is looked for within a factor e^6 of the model's own
_PASSES = 50


class Losses(NamedTuple):
    """Penalised training objective of the model, of the card, and of naive rounding."""

    model: float
    card: float
    naive: float


@dataclass(frozen=True, eq=False)
class Scorecard:
    """Whole points for the columns of a table: ``score = Σ_j points_j·x_j/unit_j``; made by :func:`round_scorecard`.

    Attributes
    ----------
    features : list of str
        Columns of numbers by their names, categories as ``city=Oslo``; those with the most points first.
    points : array of int
        Points of each feature.
    units : array of float
        For every how much of a number the points count; 1 where the feature is there or not.
    objective : Losses
        Training objective of ``model``, ``card`` and ``naive`` rounding.
    measures : sequence of str, optional
        What :meth:`loss` measures.
    """

    features: list[str]
    points: np.ndarray
    units: np.ndarray
    objective: Losses
    measures: tuple[str, ...] | None
    model: Any = field(repr=False)
    form: LinearForm = field(repr=False)
    kept: np.ndarray = field(repr=False)
    present: np.ndarray = field(repr=False)
    training: tuple[Judged, np.ndarray] = field(repr=False)

    def score(self, X: Any) -> np.ndarray:
        """Points of each row of a table, frame or array; the higher, the nearer to the top."""
        U = _indicators(self.form, raw_matrix(self.model, self.form, X))
        return add_up(U[:, self.kept], self.points, self.units)

    def loss(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        confidence: float = 0.95,
        n_resamples: int = 2000,
        random_state: Any = 0,
    ) -> pl.DataFrame:
        """Compare measures of the model and of the card on the same rows.

        Parameters
        ----------
        X, y, groups, sample_weight
            Rows that had no part in training; by default those that the card was made on. A TableRanker finds y and
            groups in the table itself.
        confidence, n_resamples, random_state
            Of the bootstrap, as in :func:`apexrank.metrics.compare`.

        Returns
        -------
        polars.DataFrame
            For each ``measure`` its value for the ``model`` and the ``scorecard``, their ``difference`` (card less
            model) and the interval ``low`` to ``high`` of the difference, from draws of the same rows for both.
        """
        if X is None:
            if any(given is not None for given in (y, groups, sample_weight)):
                raise InputError("y, groups and sample_weight belong to rows: give these as X, too")
            judged, points = self.training
        else:
            points, judged = self.score(X), judge_rows(self.model, X, y, groups, sample_weight)
        table = compare(
            {"model": judged.scores, "scorecard": points},
            None,
            judged.y,
            judged.groups,
            measures=self.measures or _default_measures(judged),
            confidence=confidence,
            n_resamples=n_resamples,
            relevant=ABOVE_ZERO if judged.graded else None,
            sample_weight=judged.weight,
            random_state=random_state,
        )
        before, after = table.partition_by("ranker", maintain_order=True)
        after = after.select(
            "measure", "difference", scorecard="value", low="difference_low", high="difference_high"
        )
        joined = before.select("measure", model="value").join(after, on="measure", maintain_order="left")
        return joined.select("measure", "model", "scorecard", "difference", "low", "high")

    def to_frame(self) -> pl.DataFrame:
        """The card as a table: feature, points, unit (null where it is there or not), the rule in words."""
        import polars as pl

        units = [None if there else unit for there, unit in zip(self.present, self.units, strict=True)]
        return pl.DataFrame(
            {"feature": self.features, "points": self.points, "unit": units, "rule": self._rules()},
            schema_overrides={"unit": pl.Float64},
        )

    def to_markdown(self) -> str:
        """The card as a table in Markdown."""
        rows = [
            f"| {points:+d} | {rule.replace('|', chr(92) + '|')} |"
            for points, rule in zip(self.points, self._rules(), strict=True)
        ]
        return "\n".join(["| points | |", "|---:|:---|", *rows, ""])

    def to_sql(
        self,
        *,
        table: str | None = None,
        score: str = "score",
        id: str | Sequence[str] | None = None,
        dialect: str | None = None,
    ) -> str:
        """The points as SQL; arguments as in :func:`apexrank.export.to_sql`."""
        return to_sql(self, table=table, score=score, id=id, dialect=dialect)

    @property
    def points_form(self) -> LinearForm:
        """The points as a linear form of the columns in their own units."""
        features = (self.form.features[j] for j in self.kept)
        raw = tuple(Feature(_without_shares(feature.column), feature.value) for feature in features)
        return LinearForm(raw, self.points / self.units, 0.0)

    def __str__(self) -> str:
        width = max(len(f"{points:+d}") for points in self.points)
        lines = [
            f"  {points:+{width}d}  {rule}" for points, rule in zip(self.points, self._rules(), strict=True)
        ]
        return "\n".join(["Add up the points; the highest sum comes first.", *lines])

    def _rules(self) -> list[str]:
        """Rules in words, one line each even where a name has several."""
        rules = []
        for j, unit, is_present in zip(self.kept, self.units.tolist(), self.present, strict=True):
            feature = self.form.features[j]
            column, fill = feature.column, feature.column.fill
            if not feature.is_number:
                rule = f"if {column.name} is {'missing' if feature.value is None else feature.value}"
            else:
                rule = f"if {column.name}" if is_present else f"for every {unit:g} of {column.name}"
                rule += "" if fill is None else f" (missing: {fill:.6g})"
            rules.append(" ".join(rule.splitlines()))
        return rules


def round_scorecard(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    max_points: int = 10,
    features: int | Sequence[str] | None = None,
    measures: str | Sequence[str] | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
) -> Scorecard:
    """Round a linear ranker to a scorecard of whole points from ``-max_points`` to ``max_points``.

    Points count for every ``unit`` of a column in its own units, 1, 2 or 5 times a power of ten near its standard
    deviation, or where a category is there. They are chosen to minimise what the ranker itself minimises on the given
    rows, ``F(s·Σ_j points_j·(x_j − c_j)/unit_j) + penalty``, over points and the scale s > 0, which an order does not
    show but the objective does. First the coefficients are rounded at many scales; then single points of the best two
    cards change by one while the objective falls. Simple rounding, with the largest coefficient at ``max_points``, is
    improved in the same way, so the card's objective is never above it. The best card of all may be missed.

    Parameters
    ----------
    model : fitted ranker, Pipeline or TableRanker
        As in :func:`apexrank.export.to_sql`.
    X, y : table, frame or array; labels or grades
        Rows to round on, such as those of training. A TableRanker finds y and groups in the table itself.
    max_points : int
        Most points of a feature.
    features : int or sequence of str, optional
        Use at most so many features, those whose coefficients are largest in standard deviations, or those of these
        columns; all by default. Features of coefficient 0 never have points.
    measures : str or sequence of str, optional
        What :meth:`Scorecard.loss` measures; by default "auc", "partial_auc_0.1", "precision_at_50" and
        "average_precision" (of more than 50 rows), of grades or groups "ndcg", "ndcg_at_10" and "average_precision".
    sample_weight, groups : arrays, optional
        As in the ranker's ``fit``: one that was fitted with weights must be rounded with them, and a model file does
        not keep them. Without weights there is a warning where a model file's objective of as many rows is another.
    feature_names : sequence of str, optional
        Names of the columns, for a model that was fitted on an array; by default ``x0``, ``x1``, ….

    Returns
    -------
    Scorecard

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from apexrank import PNormPush, datasets
    >>> data = datasets.make_push_example(2000, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), PNormPush(p=16, alpha=1e-3)).fit(data.data, data.target)
    >>> print(round_scorecard(model, data.data, data.target, max_points=3, features=2))
    Add up the points; the highest sum comes first.
      +3  for every 1 of amount
      +2  for every 1 of unfamiliarity
    """
    _check_whole("max_points", max_points)
    if measures is not None:
        measures = (measures,) if isinstance(measures, str) else tuple(measures)
        find_measures(measures)
    model = found(model)
    form = linear_form(model, _default_names(model) if feature_names is None else feature_names)
    raw = raw_matrix(model, form, X)
    U = _indicators(form, raw)
    judged = judge_rows(model, X, y, groups, sample_weight)
    if len(U) != len(judged.y):
        raise InputError(f"X has {len(U)} rows, y {len(judged.y)}: they must be of the same rows")
    counted = U if judged.weight is None else U[judged.weight > 0]
    present = np.array([np.isin(column, (0.0, 1.0)).all() for column in counted.T])
    deviations = (U - np.average(U, axis=0, weights=judged.weight)) ** 2
    spread = np.sqrt(np.average(deviations, axis=0, weights=judged.weight))
    spread[np.ptp(counted, axis=0) == 0] = 0.0  # rounding gives equal numbers a spread
    units = np.array(
        [1.0 if there or sd == 0 else nice_unit(sd) for there, sd in zip(present, spread, strict=True)]
    )
    wanted = np.where(_chosen(form, spread, features), form.weights * units, 0.0)
    if not wanted.any():
        raise InputError(
            "no feature with a coefficient and different values is left: there is nothing to round"
        )
    objective = CardObjective(last_step(model), form, U, units, judged, raw)
    _check_training(model, objective.of_model, judged)
    best = search_points(objective, wanted, int(max_points))
    naive = objective.best(naive_points(wanted, int(max_points)))
    order = np.argsort(-np.abs(best.points), kind="stable")
    kept = order[best.points[order] != 0]
    points = best.points[kept]
    return Scorecard(
        features=[form.features[j].label for j in kept],
        points=points,
        units=units[kept],
        objective=Losses(objective.of_model, best.value, naive.value),
        measures=measures,
        model=model,
        form=form,
        kept=kept,
        present=present[kept],
        training=(judged, add_up(U[:, kept], points, units[kept])),
    )


def _indicators(form: LinearForm, U: np.ndarray) -> np.ndarray:
    """Features as a card counts them: a value without a level has no points, where the model takes an average row."""
    indicators = [not feature.is_number for feature in form.features]
    return np.where(indicators, U == 1, U)


def _without_shares(column: TableColumn) -> TableColumn:
    """The column without the features of an average row: an unknown value has no points."""
    return replace(column, shares=tuple(pair for pair in column.shares if pair[1] == 1))


def _default_names(model: Any) -> list[str] | None:
    """Names x0, x1, … for a model fitted without names."""
    if isinstance(model, TableRanker) or hasattr(first := first_fitted(model), "feature_names_in_"):
        return None
    return [f"x{j}" for j in range(getattr(first, "n_features_in_", 0))]


def _check_training(model: Any, own: float, judged: Judged) -> None:
    """Warn where the rows look like the training rows without their weights."""
    training = model.training if isinstance(model, TableRanker) and judged.weight is None else {}
    trained = training.get("objective") if training.get("rows") == len(judged.y) else None
    if trained is not None and abs(own - trained) > _SAME * max(1.0, abs(trained)):
        warnings.warn(
            f"the model's objective is {own:.6g} on these rows, {trained:.6g} in its training, on as many rows: if it "
            "was fitted with weights, give them here, too (sample_weight, --weight)",
            stacklevel=3,
        )


def _check_whole(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1, got {value!r}")


def _chosen(form: LinearForm, spread: np.ndarray, features: int | Sequence[str] | None) -> np.ndarray:
    """Mask of the features that may have points; constant columns have none."""
    varies = spread > 0
    if features is None:
        return varies
    if isinstance(features, int | Integral):
        _check_whole("features", features)
        size = np.abs(form.weights) * spread
        # equal columns have coefficients that are equal but for rounding: the first of them is taken
        order = np.argsort(-np.round(size / max(size.max(initial=0.0), 1e-300), 9), kind="stable")
        return varies & np.isin(np.arange(len(spread)), order[: int(features)])
    wanted = [features] if isinstance(features, str) else list(features)
    known = {name for feature in form.features for name in (feature.label, feature.column.name)}
    for name in wanted:
        if name not in known:
            raise InputError(f"the model has no feature {name!r}")
    return varies & np.array([f.label in wanted or f.column.name in wanted for f in form.features])


def judge_rows(model: Any, X: Any, y: Any, groups: Any, sample_weight: Any) -> Judged:
    """Labels of the model's positive class, or grades, and the scores of the rows by the model itself.

    A TableRanker finds y and groups in the table where they are not given.

    Examples
    --------
    >>> from apexrank import IRPush
    >>> ranker = IRPush().fit([[0.0], [1.0], [2.0], [1.5]], ["no", "no", "yes", "yes"])
    >>> judge_rows(ranker, [[3.0], [0.5]], ["yes", "no"], None, None).y.tolist()
    [1, 0]
    """
    if isinstance(model, TableRanker):
        X = as_table(X)
        if y is None:
            y, _ = read_target(X, model.target, model.positive, graded=model.positive is None)
        groups = model.group_ids(X) if groups is None else groups
    if y is None:
        raise InputError("y is missing: give the labels or grades of the rows of X")
    y, weight = np.asarray(y), sample_weight
    if weight is not None:
        weight = _check_sample_weight(weight, y, ensure_non_negative=True)
    classes = getattr(last_step(model), "classes_", None)
    if classes is not None and not np.isin(y, classes).all():
        raise InputError(f"y has labels that the model does not know: it knows {classes.tolist()}")
    labels = y.astype(float) if classes is None else (y == classes[1]).astype(np.int64)
    groups = None if groups is None else np.asarray(groups)
    wanted = None if classes is None else classes[1]
    scores = model.score(X) if isinstance(model, TableRanker) else ranking_scores(model, X, wanted)
    return Judged(labels, scores, groups, classes is None, weight=weight)


def _default_measures(judged: Judged) -> list[str]:
    """Default measures for this kind of labels and number of rows."""
    names: tuple[str, ...] = OF_MANY_LISTS if judged.graded or judged.groups is not None else OF_ONE_LIST
    rows = len(judged.y) if judged.weight is None else judged.weight.sum()
    if judged.groups is None:
        names = tuple(name for name in names if find_measure(name).options.get("k", 1) <= rows)
    return measurable(names, judged.weight) or list(OF_WEIGHTED_LISTS)


def add_up(U: np.ndarray, points: np.ndarray, units: np.ndarray) -> np.ndarray:
    """``Σ_j points_j·u_j/unit_j`` of each row."""
    # Over a common denominator whole numbers add up exactly. Decimal fractions do not: rows whose points are equal on
    # paper would be told apart by rounding, another way on every processor, so digits beyond the ninth are dropped.
    denominator = 10.0 ** max(0, int(np.ceil(np.log10(units.max()))))
    return np.round(U @ (points * np.round(denominator / units)) / denominator, 9)


# ---------------------------------------------------------------- the search for points


class Rounded(NamedTuple):
    """Points, the scale that makes coefficients of them, and the objective of these coefficients."""

    points: np.ndarray
    scale: float
    value: float


def nice_unit(spread: float) -> float:
    """Nearest number of the form 1, 2 or 5 times a power of ten, by ratio.

    Examples
    --------
    >>> [nice_unit(spread) for spread in (0.7, 34.0, 1400.0, 0.0031)]
    [0.5, 50.0, 1000.0, 0.002]
    """
    exponent = int(np.floor(np.log10(spread)))
    choices = [float(f"{digit}e{power}") for power in (exponent, exponent + 1) for digit in (1, 2, 5)]
    return min(choices, key=lambda unit: abs(np.log(unit / spread)))


class CardObjective:
    """The ranker's penalised objective of the coefficients ``s·points_j/unit_j``, at the best s > 0.

    Parameters
    ----------
    ranker : linear ranker
        Its objective of the judged rows, its penalty and its coefficients, whose size is that of the first s.
    form, U : LinearForm, array of shape (n_rows, n_features)
        The model, and the features of the rows.
    units : array of shape (n_features,)
        What a point counts for.
    judged : Judged
        Labels, groups and weights of the rows.
    raw : array of shape (n_rows, n_features)
        The features of the rows as the model has them.
    """

    def __init__(
        self,
        ranker: Any,
        form: LinearForm,
        U: np.ndarray,
        units: np.ndarray,
        judged: Judged,
        raw: np.ndarray,
    ) -> None:
        if not hasattr(ranker, "_objective") or getattr(ranker, "truth", None) is not None:
            raise InputError(
                f"{type(ranker).__name__} cannot become a scorecard: it was fitted without an objective of labels to "
                "round by"
            )
        labels = judged.y if judged.graded else judged.y > 0
        self.objective = ranker._objective(labels, judged.weight, judged.groups)
        self.penalty = ranker._penalty()
        slopes = np.array([feature.slope for feature in form.features])
        centers = np.array([feature.center for feature in form.features])
        # what a point of each feature adds to the score of each row, and to the ranker's own coefficient
        self.V, self.w = np.asfortranarray((U - centers) / units), 1 / (units * slopes)
        self.size = float(np.linalg.norm(coefficients(ranker)[0]))
        self.of_model = self.at((raw - centers) @ form.weights, form.weights * units, 1.0)
        nothing = self.at(np.zeros(len(U)), np.zeros(len(units)), 1.0)
        slack = getattr(ranker, "tol", 0.0) * max(1.0, abs(nothing))
        if hasattr(self.objective, "limit") and nothing <= self.of_model + slack:
            raise InputError(
                "with p=inf equal scores for all these rows are as good as the model's: there is nothing to round by, "
                "fit it with a finite p"
            )

    def at(self, scores: np.ndarray, points: np.ndarray, s: float) -> float:
        """Objective of the points at the scale s, given their scores."""
        # for p = ∞ value_and_grad is of a smoothed objective
        exact = getattr(self.objective, "limit", None)
        with np.errstate(over="ignore", invalid="ignore"):
            value = self.objective.value_and_grad(s * scores)[0] if exact is None else exact(s * scores)
            total = float(value) / self.objective.count + self.penalty.value(s * self.w * points)
        return total if np.isfinite(total) else np.inf

    def best(self, points: np.ndarray) -> Rounded:
        """Minimise over the scale: the objective is convex in s, hence unimodal in log s."""
        scores = self.V @ points
        middle = np.log(self.size / np.linalg.norm(self.w * points))
        s = np.exp(_golden(lambda t: self.at(scores, points, np.exp(t)), middle - _WIDEST, middle + _WIDEST))
        return Rounded(points, float(s), self.at(scores, points, s))


def _golden(f: Callable[[float], float], low: float, high: float, steps: int = 30) -> float:
    """Minimise a unimodal function by golden-section search.

    scipy's bounded search may discard the wrong end where values are infinite, as they may be for large scales.

    Examples
    --------
    >>> round(float(_golden(lambda t: (t - 1) ** 2 if t < 2 else np.inf, -6.0, 6.0)), 4)
    1.0
    """
    share = (np.sqrt(5) - 1) / 2
    left, right = high - share * (high - low), low + share * (high - low)
    at_left, at_right = f(left), f(right)
    for _ in range(steps):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - share * (high - low)
            at_left = f(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + share * (high - low)
            at_right = f(right)
    return left if at_left <= at_right else right


def naive_points(wanted: np.ndarray, max_points: int) -> np.ndarray:
    """Scale the largest coefficient to ``max_points`` and round.

    Examples
    --------
    >>> naive_points(np.array([0.9, -0.31, 0.1]), 3).tolist()
    [3, -1, 0]
    """
    return np.round(wanted * (max_points / np.abs(wanted).max())).astype(np.int64)


def search_points(objective: CardObjective, wanted: np.ndarray, max_points: int) -> Rounded:
    """Round at many scales, then change single points of the best two cards by one while the objective falls.

    ``wanted`` are the coefficients in units of a point; features where it is 0 keep 0 points. Simple rounding is
    improved in the same way, so the result is never worse than it.
    """
    steps = np.linspace(0.51, max_points + 0.49, _SCALES)
    ratios = wanted / np.abs(wanted).max()
    candidates = {tuple(np.round(ratios * t).astype(np.int64).tolist()) for t in steps}
    rounded = [objective.best(np.array(points)) for points in sorted(candidates)]
    starts = sorted(rounded, key=lambda one: one.value)[:2]
    starts.append(objective.best(naive_points(wanted, max_points)))
    improved = (_by_ones(objective, start, wanted != 0, max_points) for start in starts)
    best = min(improved, key=lambda one: one.value)
    divisor = int(np.gcd.reduce(best.points))
    return Rounded(best.points // divisor, best.scale * divisor, best.value)


def _by_ones(objective: CardObjective, best: Rounded, free: np.ndarray, max_points: int) -> Rounded:
    """Coordinate descent in steps of one point, until no step lowers the objective at its own best scale."""
    for _ in range(_PASSES):
        before = best.value
        best = _one_pass(objective, best, free, max_points, quick=True)
        if best.value >= before:
            best = _one_pass(objective, best, free, max_points, quick=False)
        if best.value >= before:
            break
    return best


def _one_pass(
    objective: CardObjective, best: Rounded, free: np.ndarray, max_points: int, quick: bool
) -> Rounded:
    """Try a step up and down for each feature; ``quick`` skips those that do not help at the current scale."""
    scores = objective.V @ best.points
    for j in np.flatnonzero(free):
        for step in (1, -1):
            points = best.points.copy()
            points[j] += step
            if abs(points[j]) > max_points or not points.any():
                continue
            moved = scores + step * objective.V[:, j]
            if quick and objective.at(moved, points, best.scale) >= best.value:
                continue
            better = objective.best(points)
            if better.value < best.value:
                best, scores = better, moved
    return best
