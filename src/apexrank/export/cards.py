"""Base class of scorecards: summing points, measuring the loss from rounding, and output formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight

from apexrank.errors import InputError, warn
from apexrank.export.features import as_table, first_fitted, last_step
from apexrank.export.sql import to_sql
from apexrank.io.columns import read_target
from apexrank.io.judge import ABOVE_ZERO, Judged, measurable
from apexrank.io.table_ranker import TableRanker
from apexrank.metrics.confidence import compare
from apexrank.metrics.evaluation import find_measure, ranking_scores
from apexrank.validation import check_count

if TYPE_CHECKING:
    import polars as pl

OF_ONE_LIST = ("auc", "partial_auc_0.1", "precision_at_50", "average_precision")
OF_MANY_LISTS = ("ndcg", "ndcg_at_10", "average_precision")
OF_WEIGHTED_LISTS = ("auc", "precision_at_10")  # valid with any weights
_SAME = 1e-5  # relative tolerance for recognising the training rows by their objective


class Losses(NamedTuple):
    """Penalised training objective of the model, of the card, and of naive rounding."""

    model: float
    card: float
    naive: float


@dataclass(frozen=True, eq=False)
class Card:
    """Integer points of features; the highest sum ranks first. Subclasses define their meaning.

    ``training`` are the rows on which the points were chosen, and their points.
    """

    features: list[str]
    points: np.ndarray
    objective: Losses
    measures: tuple[str, ...] | None
    model: Any = field(repr=False)
    training: tuple[Judged, np.ndarray] = field(repr=False)

    def score(self, X: Any) -> np.ndarray:
        """Points of each row of a table, frame or array; higher means nearer to the top."""
        raise NotImplementedError

    def to_frame(self) -> pl.DataFrame:
        """The card as a table."""
        raise NotImplementedError

    def rules(self) -> list[str]:
        """Conditions of the points as text, each on a single line."""
        raise NotImplementedError

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
        """Compare metrics of the model and of the card on the same rows.

        Parameters
        ----------
        X, y, groups, sample_weight
            Rows that were not used in training; by default those used to make the card. A TableRanker finds y and
            groups in the table itself.
        confidence, n_resamples, random_state
            Parameters of the bootstrap, as in :func:`apexrank.metrics.compare`.

        Returns
        -------
        polars.DataFrame
            For each ``measure``, its value for the ``model`` and the ``scorecard``, their ``difference`` (card minus
            model) and the confidence interval ``low`` to ``high`` of the difference, from a paired bootstrap.
        """
        if X is None:
            if any(given is not None for given in (y, groups, sample_weight)):
                raise InputError("`y`, `groups` and `sample_weight` belong to rows: give X too")
            judged, points = self.training
        else:
            points, judged = self.score(X), judge_rows(self.model, X, y, groups, sample_weight)
        table = compare(
            {"model": judged.scores, "scorecard": points},
            None,
            judged.y,
            judged.groups,
            measures=self.measures or default_measures(judged),
            confidence=confidence,
            n_resamples=n_resamples,
            relevant=ABOVE_ZERO if judged.graded else None,
            sample_weight=judged.weight,
            random_state=random_state,
        )
        before, after = table.partition_by("ranker", maintain_order=True)
        ends = {"low": "difference_low", "high": "difference_high"}
        after = after.select("measure", "difference", scorecard="value", **ends)
        joined = before.select("measure", model="value").join(after, on="measure", maintain_order="left")
        return joined.select("measure", "model", "scorecard", "difference", "low", "high")

    def to_markdown(self) -> str:
        """The card as a table in Markdown."""
        rows = [
            f"| {points:+d} | {rule.replace('|', chr(92) + '|')} |"
            for points, rule in zip(self.points, self.rules(), strict=True)
        ]
        return "\n".join(["| points | |", "|---:|:---|", *rows, ""])

    def to_sql(self, **options: Any) -> str:
        """The points as SQL; options as in :func:`apexrank.export.to_sql`."""
        return to_sql(self, **options)

    def __str__(self) -> str:
        width = max(len(f"{points:+d}") for points in self.points)
        pairs = zip(self.points, self.rules(), strict=True)
        lines = [f"  {points:+{width}d}  {rule}" for points, rule in pairs]
        return "\n".join(["Add up the points; the highest sum comes first.", *lines])


def default_names(model: Any) -> list[str] | None:
    """Names x0, x1, … for a model fitted without feature names."""
    if isinstance(model, TableRanker) or hasattr(first := first_fitted(model), "feature_names_in_"):
        return None
    return [f"x{j}" for j in range(getattr(first, "n_features_in_", 0))]


def check_training(model: Any, own: float, judged: Judged) -> None:
    """Warn if the rows look like the training rows without their weights."""
    training = model.training if isinstance(model, TableRanker) and judged.weight is None else {}
    trained = training.get("objective") if training.get("rows") == len(judged.y) else None
    if trained is not None and abs(own - trained) > _SAME * max(1.0, abs(trained)):
        warn(
            f"the model's objective is {own:.6g} on these rows, {trained:.6g} in training on the same number "
            "of rows: if the model was fitted with weights, give them here too (`sample_weight`)",
        )


def judge_rows(model: Any, X: Any, y: Any, groups: Any, sample_weight: Any) -> Judged:
    """Labels of the model's positive class, or grades, and the model's scores of the rows.

    A TableRanker finds y and groups in the table if they are not given.

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


def default_measures(judged: Judged) -> list[str]:
    """Default metrics for this kind of labels and number of rows."""
    names: tuple[str, ...] = OF_MANY_LISTS if judged.graded or judged.groups is not None else OF_ONE_LIST
    rows = len(judged.y) if judged.weight is None else judged.weight.sum()
    if judged.groups is None:
        names = tuple(name for name in names if find_measure(name).options.get("k", 1) <= rows)
    return measurable(names, judged.weight) or list(OF_WEIGHTED_LISTS)


def chosen_features(
    names: Sequence[tuple[str, ...]], size: np.ndarray, features: int | Sequence[str] | None
) -> np.ndarray:
    """Mask of the features that may have points: those of size above 0, restricted to the largest or the named ones.

    Examples
    --------
    >>> chosen_features([("a",), ("b",), ("c",)], np.array([1.0, 3.0, 2.0]), 2).tolist()
    [False, True, True]
    """
    if features is None:
        return size > 0
    if isinstance(features, int | Integral):
        check_count("features", features)
        # equal columns have equal coefficients up to rounding: the first of them is chosen
        order = np.argsort(-np.round(size / max(size.max(initial=0.0), 1e-300), 9), kind="stable")
        return (size > 0) & np.isin(np.arange(len(size)), order[: int(features)])
    wanted = {features} if isinstance(features, str) else set(features)
    for name in wanted.difference(*names):
        raise InputError(f"the model has no feature {name!r}")
    return (size > 0) & np.array([not wanted.isdisjoint(own) for own in names])
