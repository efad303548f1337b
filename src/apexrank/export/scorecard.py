"""From a linear ranker to a scorecard of small whole numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.export.answers import Answers, answers_of, model_scores
from apexrank.export.card import Losses, Scorecard, add_up
from apexrank.export.linear import (
    LinearForm,
    coefficients,
    first_fitted,
    found,
    last_step,
    linear_form,
    raw_matrix,
)
from apexrank.export.rounding import CardObjective, naive_points, nice_unit, search_points, training_objective
from apexrank.io.ranker import TableRanker
from apexrank.metrics.evaluation import find_measures

__all__ = ["Scorecard", "round_scorecard"]

_SAME = 1e-5  # of the objective: a model of the same rows and weights has the same one


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
    present = np.array([np.isin(column, (0.0, 1.0)).all() for column in U.T])
    spread = np.where(np.ptp(U, axis=0) > 0, U.std(axis=0), 0.0)  # rounding gives equal numbers one
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
        first = np.argsort(-np.abs(form.weights) * spread, kind="stable")[: int(features)]
        return varies & np.isin(np.arange(len(spread)), first)
    wanted = [features] if isinstance(features, str) else list(features)
    known = {name for feature in form.features for name in (feature.label, feature.column.name)}
    for name in wanted:
        if name not in known:
            raise InputError(f"the model has no feature {name!r}")
    return varies & np.array([f.label in wanted or f.column.name in wanted for f in form.features])
