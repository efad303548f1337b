"""Scorecards: a linear ranker rounded to integer points that a person can add up, and the loss from rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.export.bins import BinnedScorecard, round_bins
from apexrank.export.cards import Card, Losses, check_training, chosen_features, default_names, judge_rows
from apexrank.export.features import Feature, TableColumn, found, last_step, raw_matrix
from apexrank.export.forms import Form, LinearForm, is_additive, linear_form
from apexrank.export.rounding import CardObjective, naive_points, search_points
from apexrank.io.table_ranker import TableRanker
from apexrank.metrics.evaluation import find_measures
from apexrank.validation import check_count

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Scorecard(Card):
    """Integer points for the columns of a table, ``score = Σ_j points_j·x_j/unit_j``; see :func:`round_scorecard`.

    Attributes
    ----------
    features : list of str
        Numeric columns by name, categories as ``city=Oslo``; those with the most points first.
    points : array of int
        Points of each feature.
    units : array of float
        Amount of a number for which the points count; 1 if the feature is an indicator.
    objective : Losses
        Training objective of ``model``, ``card`` and ``naive`` rounding.
    measures : sequence of str, optional
        Metrics computed by :meth:`loss`.
    """

    units: np.ndarray
    form: LinearForm = field(repr=False)
    kept: np.ndarray = field(repr=False)
    present: np.ndarray = field(repr=False)

    def score(self, X: Any) -> np.ndarray:
        """Points of each row of a table, frame or array; higher means nearer to the top."""
        U = _indicators(self.form, raw_matrix(self.model, self.form.features, X))
        return add_up(U[:, self.kept], self.points, self.units)

    def to_frame(self) -> pl.DataFrame:
        """The card as a table: feature, points, unit (null for indicators), and the rule as text."""
        import polars as pl

        units = [None if there else unit for there, unit in zip(self.present, self.units, strict=True)]
        return pl.DataFrame(
            {"feature": self.features, "points": self.points, "unit": units, "rule": self.rules()},
            schema_overrides={"unit": pl.Float64},
        )

    @property
    def points_form(self) -> Form:
        """Points as functions of the columns in their original units."""
        features = (self.form.features[j] for j in self.kept)
        raw = tuple(Feature(_without_shares(feature.column), feature.value) for feature in features)
        of_table = isinstance(self.model, TableRanker)
        return LinearForm(raw, self.points / self.units, 0.0).form(of_table)

    def rules(self) -> list[str]:
        """Rules as text, each on a single line."""
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
    n_bins: int = 5,
    features: int | Sequence[str] | None = None,
    measures: str | Sequence[str] | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
) -> Scorecard | BinnedScorecard:
    """Round a linear or additive ranker to a scorecard of integer points from ``-max_points`` to ``max_points``.

    Points of a linear ranker count per ``unit`` of a column in its original units, 1, 2 or 5 times a power of ten near
    its standard deviation, or for the presence of a category. They are chosen to minimise the ranker's own objective on
    the given rows, ``F(s·Σ_j points_j·(x_j − c_j)/unit_j) + penalty``, over the points and the scale s > 0, which does
    not affect the order but does affect the objective. First the coefficients are rounded at many scales; then single
    points of the best two cards are changed by one while the objective decreases. Naive rounding, with the largest
    coefficient at ``max_points``, is improved in the same way, so the card's objective is never above it. The search is
    heuristic and may miss the optimal card.

    Points of an additive ranker count for a bin of a column, such as "amount 250 to 900", a category, or a missing
    value. The edges of the bins are round numbers between which the column's function varies least, and points start
    from its means in the bins; if the function is monotone, so are the points. Neighbouring bins with equal points are
    merged. A model with pairs of columns raises an error: its single functions were fitted to be used with the pairs,
    so a ranker fitted without pairs makes a better card.

    Parameters
    ----------
    model : fitted ranker, Pipeline or TableRanker
        As in :func:`apexrank.export.to_sql`.
    X, y : table, frame or array; labels or grades
        Rows to round on, such as those of training. A TableRanker finds y and groups in the table itself.
    max_points : int
        Maximum number of points of a feature.
    n_bins : int
        Maximum number of bins of a numeric column, for additive rankers.
    features : int or sequence of str, optional
        Use at most this many features, those with the largest coefficients in standard deviations, or only those of the
        named columns; all by default. Features with coefficient 0 never have points.
    measures : str or sequence of str, optional
        Metrics computed by :meth:`Scorecard.loss`; by default "auc", "partial_auc_0.1", "precision_at_50" and
        "average_precision" (for more than 50 rows), for grades or groups "ndcg", "ndcg_at_10" and "average_precision".
    sample_weight, groups : arrays, optional
        As in the ranker's ``fit``: a ranker fitted with weights must be rounded with them, and a model file does not
        store them. Without weights, a warning is given if there are as many rows as in training but the objective of
        the model file differs.
    feature_names : sequence of str, optional
        Names of the columns, for a model fitted on an array; by default ``x0``, ``x1``, ….

    Returns
    -------
    Scorecard, or BinnedScorecard for an additive ranker

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
    check_count("max_points", max_points)
    if measures is not None:
        measures = (measures,) if isinstance(measures, str) else tuple(measures)
        find_measures(measures)
    model = found(model)
    names = default_names(model) if feature_names is None else feature_names
    if is_additive(model):
        judged = judge_rows(model, X, y, groups, sample_weight)
        wanted_bins: Any = {"n_bins": n_bins, "features": features, "measures": measures}
        return round_bins(model, X, judged, names, max_points=int(max_points), **wanted_bins)
    form = linear_form(model, names)
    raw = raw_matrix(model, form.features, X)
    U = _indicators(form, raw)
    judged = judge_rows(model, X, y, groups, sample_weight)
    if len(U) != len(judged.y):
        raise InputError(f"X has {len(U)} rows, y {len(judged.y)}: give X and y for the same rows")
    counted = U if judged.weight is None else U[judged.weight > 0]
    present = np.array([np.isin(column, (0.0, 1.0)).all() for column in counted.T])
    deviations = (U - np.average(U, axis=0, weights=judged.weight)) ** 2
    spread = np.sqrt(np.average(deviations, axis=0, weights=judged.weight))
    spread[np.ptp(counted, axis=0) == 0] = 0.0  # rounding gives constant columns a nonzero spread
    plain = present | (spread == 0)
    units = np.array([1.0 if one else nice_unit(sd) for one, sd in zip(plain, spread, strict=True)])
    labels = [(feature.label, feature.column.name) for feature in form.features]
    kept = chosen_features(labels, np.abs(form.weights) * spread, features)
    wanted = np.where(kept, form.weights * units, 0.0)
    if not wanted.any():
        raise InputError("no feature with a coefficient and several values is left: nothing to round")
    slopes = np.array([feature.slope for feature in form.features])
    centers = np.array([feature.center for feature in form.features])
    objective = CardObjective(
        last_step(model),
        judged,
        np.asfortranarray((U - centers) / units),
        1 / (units * slopes),
        (raw - centers) @ form.weights,
        form.weights / slopes,
    )
    check_training(model, objective.of_model, judged)
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
    """Features as counted by a card: an unknown value has no points, where the model uses an average row."""
    indicators = [not feature.is_number for feature in form.features]
    return np.where(indicators, U == 1, U)


def _without_shares(column: TableColumn) -> TableColumn:
    """The column without the features of an average row: an unknown value has no points."""
    return replace(column, shares=tuple(pair for pair in column.shares if pair[1] == 1))


def add_up(U: np.ndarray, points: np.ndarray, units: np.ndarray) -> np.ndarray:
    """``Σ_j points_j·u_j/unit_j`` of each row."""
    # Over a common denominator integers add up exactly. Decimal fractions do not: rounding would separate rows with
    # equal points, differently on every processor, so digits beyond the ninth are dropped.
    denominator = 10.0 ** max(0, int(np.ceil(np.log10(units.max()))))
    return np.round(U @ (points * np.round(denominator / units)) / denominator, 9)


def nice_unit(spread: float) -> float:
    """Nearest number, by ratio, of the form 1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> [nice_unit(spread) for spread in (0.7, 34.0, 1400.0, 0.0031)]
    [0.5, 50.0, 1000.0, 0.002]
    """
    exponent = int(np.floor(np.log10(spread)))
    choices = [float(f"{digit}e{power}") for power in (exponent, exponent + 1) for digit in (1, 2, 5)]
    return min(choices, key=lambda unit: abs(np.log(unit / spread)))
