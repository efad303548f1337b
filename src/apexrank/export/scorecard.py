"""Scorecards: a linear ranker rounded to points that a person can add up, and what the rounding costs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight

from apexrank.errors import InputError
from apexrank.export.features import Feature
from apexrank.export.linear import (
    LinearForm,
    as_table,
    coefficients,
    first_fitted,
    found,
    last_step,
    linear_form,
    raw_matrix,
)
from apexrank.export.rounding import CardObjective, naive_points, nice_unit, search_points, training_objective
from apexrank.export.sql import Statement, form_to_sql, shown_columns
from apexrank.io.columns import read_target
from apexrank.io.judging import ABOVE_ZERO, measurable
from apexrank.io.table_ranker import TableRanker
from apexrank.metrics.confidence import compare
from apexrank.metrics.evaluation import find_measure, find_measures, ranking_scores

if TYPE_CHECKING:
    import polars as pl

OF_ONE_LIST = ("auc", "partial_auc_0.1", "precision_at_50", "average_precision")
OF_MANY_LISTS = ("ndcg", "ndcg_at_10", "average_precision")
_SAME = 1e-5  # of the objective: a model of the same rows and weights has the same one


class Answers(NamedTuple):
    """Labels 0 and 1 or grades of rows, and what goes with them."""

    y: np.ndarray
    groups: np.ndarray | None
    weight: np.ndarray | None
    graded: bool


class Losses(NamedTuple):
    """Penalised training objective of the model, of the card, and of points rounded in the simple way."""

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
    training: tuple[Answers, np.ndarray, np.ndarray] = field(repr=False)

    def score(self, X: Any) -> np.ndarray:
        """Points of each row of a table, frame or array; the higher, the nearer to the top."""
        return add_up(raw_matrix(self.model, self.form, X)[:, self.kept], self.points, self.units)

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
        """What rounding costs: measures of the model and of the card on the same rows.

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
            known, before, after = self.training
        else:
            known = answers_of(self.model, X, y, groups, sample_weight)
            before, after = model_scores(self.model, X), self.score(X)
        names = self.measures or default_measures(known)
        table = compare(
            {"model": before, "scorecard": after},
            None,
            known.y,
            known.groups,
            measures=names,
            confidence=confidence,
            n_resamples=n_resamples,
            relevant=ABOVE_ZERO if known.graded else None,
            sample_weight=known.weight,
            random_state=random_state,
        )
        return _side_by_side(table)

    def to_frame(self) -> pl.DataFrame:
        """The card as a table: feature, points, unit (null where it is there or not), the rule in words."""
        import polars as pl

        units = [
            None if there else unit for there, unit in zip(self.present, self.units.tolist(), strict=True)
        ]
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
        features = tuple(Feature(one.column, one.value) for one in self._kept_features())
        form = LinearForm(features, self.points / self.units, 0.0)
        return form_to_sql(form, Statement(table, score, *shown_columns(self.model, id)), dialect=dialect)

    def __str__(self) -> str:
        width = max(len(f"{points:+d}") for points in self.points)
        lines = [
            f"  {points:+{width}d}  {rule}" for points, rule in zip(self.points, self._rules(), strict=True)
        ]
        return "\n".join(["Add up the points; the highest sum comes first.", *lines])

    def _kept_features(self) -> list[Feature]:
        return [self.form.features[j] for j in self.kept]

    def _rules(self) -> list[str]:
        parts = zip(self._kept_features(), self.units.tolist(), self.present, strict=True)
        return [_rule(feature, unit, bool(there)) for feature, unit, there in parts]


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
    known = answers_of(model, X, y, groups, sample_weight)
    U = raw_matrix(model, form, X)
    if len(U) != len(known.y):
        raise InputError(f"X has {len(U)} rows, y {len(known.y)}: they must be of the same rows")
    counted = U if known.weight is None else U[known.weight > 0]
    present = np.array([np.isin(column, (0.0, 1.0)).all() for column in counted.T])
    deviations = (U - np.average(U, axis=0, weights=known.weight)) ** 2
    # rounding gives equal numbers a spread
    spread = np.where(
        np.ptp(counted, axis=0) > 0, np.sqrt(np.average(deviations, axis=0, weights=known.weight)), 0.0
    )
    units = np.array(
        [1.0 if there or not sd > 0 else nice_unit(sd) for there, sd in zip(present, spread, strict=True)]
    )
    wanted = np.where(_chosen(form, spread, features), form.weights * units, 0.0)
    if not wanted.any():
        raise InputError(
            "no feature with a coefficient and different values is left: there is nothing to round"
        )
    objective, own = _card_objective(model, form, U, units, known)
    _check_training(model, own, known)
    best = search_points(objective, wanted, int(max_points))
    naive = objective.best(naive_points(wanted, int(max_points)))
    order = np.argsort(-np.abs(best.points), kind="stable")
    kept = order[best.points[order] != 0]
    points, scores = best.points[kept], add_up(U[:, kept], best.points[kept], units[kept])
    return Scorecard(
        features=[form.features[j].label for j in kept],
        points=points,
        units=units[kept],
        objective=Losses(own, best.value, naive.value),
        measures=measures,
        model=model,
        form=form,
        kept=kept,
        present=present[kept],
        training=(known, model_scores(model, X), scores),
    )


def _default_names(model: Any) -> list[str] | None:
    """x0, x1, … where the model knows no names."""
    if isinstance(model, TableRanker) or hasattr(first := first_fitted(model), "feature_names_in_"):
        return None
    return [f"x{j}" for j in range(getattr(first, "n_features_in_", 0))]


def _card_objective(
    model: Any, form: LinearForm, U: np.ndarray, units: np.ndarray, known: Answers
) -> tuple[CardObjective, float]:
    """The objective in points, and its value for the model itself."""
    ranker = last_step(model)
    slopes, centers = (np.array([getattr(f, name) for f in form.features]) for name in ("slope", "center"))
    V = np.asfortranarray((U - centers) / units)
    coef = coefficients(ranker)[0]
    objective = training_objective(ranker, V, known.y, known.groups, known.weight)
    l1_ratio = getattr(ranker, "l1_ratio", 0.0)
    card = CardObjective(objective, V, 1 / (units * slopes), coef, ranker.alpha, l1_ratio)
    own = card.at(V @ (form.weights * units), form.weights * units, 1.0)
    nothing = card.at(np.zeros(len(V)), np.zeros(len(units)), 1.0)
    if hasattr(objective, "limit") and nothing <= own + getattr(ranker, "tol", 0.0) * max(1.0, abs(nothing)):
        raise InputError(
            "with p=inf equal scores for all these rows are as good as the model's: there is nothing to round by, "
            "fit it with a finite p"
        )
    return card, own


def _check_training(model: Any, own: float, known: Answers) -> None:
    """Warn where the rows look like those of training, but for weights."""
    if (
        not isinstance(model, TableRanker)
        or model.training.get("rows") != len(known.y)
        or known.weight is not None
    ):
        return
    trained = model.training.get("objective")
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
    """Mask of the features that may have points: a column of one value has none."""
    varies = spread > 0
    if features is None:
        return varies
    if isinstance(features, int | Integral):
        _check_whole("features", features)
        size = np.abs(form.weights) * spread
        # equal columns have coefficients that are equal but for rounding: the first of them is taken
        first = np.argsort(-np.round(size / max(size.max(initial=0.0), 1e-300), 9), kind="stable")[
            : int(features)
        ]
        return varies & np.isin(np.arange(len(spread)), first)
    wanted = [features] if isinstance(features, str) else list(features)
    known = {name for feature in form.features for name in (feature.label, feature.column.name)}
    for name in wanted:
        if name not in known:
            raise InputError(f"the model has no feature {name!r}")
    return varies & np.array([f.label in wanted or f.column.name in wanted for f in form.features])


def answers_of(model: Any, X: Any, y: Any, groups: Any, sample_weight: Any) -> Answers:
    """Labels of the model's positive class, or grades; those of a table where a TableRanker is given no others.

    Examples
    --------
    >>> from apexrank import IRPush
    >>> ranker = IRPush().fit([[0.0], [1.0], [2.0], [1.5]], ["no", "no", "yes", "yes"])
    >>> answers_of(ranker, None, ["yes", "no"], None, None).y.tolist()
    [1, 0]
    """
    if isinstance(model, TableRanker):
        table = as_table(X)
        if y is None:
            y, _ = read_target(table, model.target, model.positive, graded=model.positive is None)
        groups = model.group_ids(table) if groups is None else groups
    if y is None:
        raise InputError("y is missing: give the labels or grades of the rows of X")
    ranker, y = last_step(model), np.asarray(y)
    weight = (
        None if sample_weight is None else _check_sample_weight(sample_weight, y, ensure_non_negative=True)
    )
    groups = None if groups is None else np.asarray(groups)
    classes = getattr(ranker, "classes_", None)
    if classes is None:
        return Answers(y.astype(float), groups, weight, True)
    if not np.isin(y, classes).all():
        raise InputError(f"y has labels that the model does not know: it knows {classes.tolist()}")
    return Answers((y == classes[1]).astype(np.int64), groups, weight, False)


def model_scores(model: Any, X: Any) -> np.ndarray:
    """Ranking scores of the rows by the model itself."""
    return model.score(as_table(X)) if isinstance(model, TableRanker) else ranking_scores(model, X)


def default_measures(known: Answers) -> list[str]:
    """Names of measures that make sense for such answers and so many rows."""
    names: tuple[str, ...] = OF_MANY_LISTS if known.graded or known.groups is not None else OF_ONE_LIST
    rows = len(known.y) if known.weight is None else known.weight.sum()
    if known.groups is None:
        names = tuple(name for name in names if find_measure(name).options.get("k", 1) <= rows)
    return measurable(names, known.weight)


def add_up(U: np.ndarray, points: np.ndarray, units: np.ndarray) -> np.ndarray:
    """``Σ_j points_j·u_j/unit_j`` of each row."""
    # Over a common denominator whole numbers add up exactly. Decimal fractions do not: rows whose points are equal on
    # paper would be told apart by rounding, another way on every processor, so digits beyond the ninth are dropped.
    denominator = 10.0 ** max(0, int(np.ceil(np.log10(units.max()))))
    return np.round(U @ (points * np.round(denominator / units)) / denominator, 9)


def _side_by_side(table: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    before = table.filter(pl.col("ranker") == "model").select("measure", model="value")
    after = table.filter(pl.col("ranker") == "scorecard").select(
        "measure", "difference", scorecard="value", low="difference_low", high="difference_high"
    )
    joined = before.join(after, on="measure", how="left", maintain_order="left")
    return joined.select("measure", "model", "scorecard", "difference", "low", "high")


def _rule(feature: Feature, unit: float, there: bool) -> str:
    """The rule in words, on one line even where a name is not."""
    return " ".join(_words(feature, unit, there).splitlines())


def _words(feature: Feature, unit: float, there: bool) -> str:
    if not feature.is_number:
        value = "missing" if feature.value is None else feature.value
        return f"if {feature.column.name} is {value}"
    fill = feature.column.fill
    missing = "" if fill is None else f" (missing: {fill:.6g})"
    return f"if {feature.label}{missing}" if there else f"for every {unit:g} of {feature.label}{missing}"
