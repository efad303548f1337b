"""A ranker of tables: columns become features, features become scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import config_context

from apexrank.errors import InputError
from apexrank.io.columns import numbers, texts
from apexrank.io.encode import Encoder
from apexrank.io.labels import answers, positive_value
from apexrank.io.tables import Table
from apexrank.preprocessing import QueryNormalizer

CERTIFICATE = ("n_iter_", "converged_", "objective_", "dual_gap_", "grad_norm_")


@dataclass(frozen=True)
class Recipe:
    """What each column of a training table is for.

    Parameters
    ----------
    target : str
        The column that says which rows are positive, or how relevant they are.
    positive : str, optional
        Its positive value; not needed for 0/1, true/false, yes/no and the like.
    graded : bool
        The target holds grades of relevance, numbers of at least 0.
    id : str, optional
        Names the rows; never a feature.
    groups : str, optional
        Rows are ranked inside each group.
    weight : str, optional
        How many times each row counts.
    features, drop : sequences of str
        Columns to use (all the others by default), and columns to leave out.
    categorical, impute, scale
        See :meth:`apexrank.io.encode.Encoder.learn`. ``scale="query"`` brings every number to the range 0 to 1
        inside each group, LETOR's query-level scaling.
    """

    target: str
    positive: str | None = None
    graded: bool = False
    id: str | None = None
    groups: str | None = None
    weight: str | None = None
    features: Sequence[str] = ()
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    impute: str | None = None
    scale: str = "standard"

    def feature_columns(self, table: Table) -> list[str]:
        """Columns of the table that are features, in the table's order."""
        roles = {"target": self.target, "id": self.id, "groups": self.groups, "weight": self.weight}
        taken = {column: role for role, column in roles.items() if column is not None}
        for name in (*taken, *self.drop, *self.features):
            table.column(name)
        for name in self.features:
            if name in taken:
                raise InputError(f"column {name!r} is the {taken[name]}: it cannot be a feature as well")
        wanted = set(self.features or table.names) - set(taken) - set(self.drop)
        if not wanted:
            raise InputError(f"{table.source} has no column left to use as a feature")
        return [name for name in table.names if name in wanted]


@dataclass(frozen=True)
class Thresholds:
    """Training negatives above a score: ``counts[j]`` of all ``total`` score more than ``scores[j]``.

    Kept for a few hundred counts only, all of them exact, so a model file stays small.
    """

    counts: np.ndarray
    scores: np.ndarray
    total: int

    @classmethod
    def learn(cls, negatives: np.ndarray, size: int = 512) -> Thresholds:
        """Take the table from the training negatives' scores."""
        falling = np.sort(negatives)[::-1]
        steps = np.geomspace(1, len(falling), size).astype(np.int64)
        counts = np.unique(np.concatenate([[0], steps[steps < len(falling)]]))
        return cls(counts, falling[counts], len(falling))

    def at(self, fpr: float) -> float:
        """Score that at most a share ``fpr`` of the training negatives exceeds.

        Examples
        --------
        >>> Thresholds.learn(np.arange(10.0)).at(0.2)
        7.0
        """
        if not 0 <= fpr < 1:
            raise InputError(f"the false positive rate must be at least 0 and below 1, got {fpr!r}")
        # Dividing, not multiplying fpr by the total: 29 / 100 is the float 0.29, but 0.29 * 100 is less than 29.
        return float(self.scores[np.searchsorted(self.counts / self.total, fpr, side="right") - 1])


@dataclass
class TableRanker:
    """A fitted estimator and everything it takes to use it on a table.

    Made by :meth:`fit`; kept with :func:`apexrank.io.save_model`.

    Parameters
    ----------
    estimator : estimator
        A fitted linear ranker.
    encoder : Encoder
        From columns to features.
    target : str
        The training target.
    positive : str, optional
        Its positive value; None when the target holds grades of relevance.
    id, groups : str, optional
        Columns that name rows and groups.
    ignored : list of str
        Training columns that are not features.
    mean : array
        Training mean of each encoded feature, what :meth:`contributions` compares with.
    thresholds : Thresholds, optional
        For a wanted false positive rate; None with grades.
    training : dict
        What was learned from: number of rows, of positives, and the solver's certificate.
    weight : str, optional
        Column of row weights in training.

    Examples
    --------
    >>> import polars as pl
    >>> from apexrank import PNormPush
    >>> table = Table(pl.DataFrame({"x": [0.0, 1.0, 2.0, 1.5], "fraud": [0, 0, 1, 0]}))
    >>> ranker = TableRanker.fit(table, Recipe(target="fraud"), PNormPush(p=2, alpha=0.1))
    >>> ranker.score(table).argmax()
    np.int64(2)
    """

    estimator: Any
    encoder: Encoder
    target: str
    positive: str | None
    id: str | None
    groups: str | None
    ignored: list[str]
    mean: np.ndarray
    thresholds: Thresholds | None
    training: dict[str, Any] = field(default_factory=dict)
    weight: str | None = None

    @classmethod
    def fit(cls, table: Table, recipe: Recipe, estimator: Any) -> TableRanker:
        """Learn the encoding and fit ``estimator`` on the table."""
        positive = None if recipe.graded else positive_value(table, recipe.target, recipe.positive)
        y = answers(table, recipe.target, positive)
        if recipe.scale == "query" and recipe.groups is None:
            raise InputError("--scale query scales inside each group: name the column with --groups")
        encoder = Encoder.learn(
            table,
            recipe.feature_columns(table),
            categorical=recipe.categorical,
            impute=recipe.impute,
            scale="none" if recipe.scale == "query" else recipe.scale,
        )
        used = {column.name for column in encoder.columns}
        ranker = cls(
            estimator=estimator,
            encoder=encoder,
            target=recipe.target,
            positive=positive,
            id=recipe.id,
            groups=recipe.groups,
            ignored=[name for name in table.names if name not in used],
            mean=np.zeros(len(encoder.features)),
            thresholds=None,
            training={"scale": recipe.scale},
            weight=recipe.weight,
        )
        X = ranker.features(table)
        ranker.estimator = _fit(estimator, X, y, _fit_arguments(table, recipe))
        ranker.mean = X.mean(axis=0)
        ranker.training = _summary(table, recipe, y, ranker.estimator)
        if positive is not None:
            ranker.thresholds = Thresholds.learn(ranker._scores(X[y == 0]))
        return ranker

    @property
    def coef(self) -> np.ndarray:
        """One coefficient per feature."""
        return np.ravel(self.estimator.coef_)

    def features(self, table: Table) -> np.ndarray:
        """Feature matrix of the table's rows, scaled as in training."""
        with np.errstate(over="ignore", invalid="ignore"):
            X = self.encoder.encode(table)
        _refuse_overflow(table, np.isfinite(X).all(axis=1))
        if self.training["scale"] != "query":
            return X
        return QueryNormalizer().fit_transform(X, groups=self.group_ids(table))

    def check(self, table: Table, known: Iterable[str | None] = ()) -> list[str]:
        """Sentences about what is odd in a table; a missing column is an error.

        ``known`` names columns that are not odd although training did not have them.
        """
        for column in self.encoder.columns:
            table.column(column.name)
        known = {column.name for column in self.encoder.columns}.union(self.ignored, known)
        extra = [name for name in table.names if name not in known]
        shown = ", ".join(map(repr, extra[:5])) + (", ..." if len(extra) > 5 else "")
        notes = [f"{table.source} has columns the model does not know, left aside: {shown}"] if extra else []
        return notes + self.encoder.notes(table)

    def score(self, table: Table) -> np.ndarray:
        """Ranking score of each row: higher means nearer to the top."""
        X = self.features(table)
        with np.errstate(over="ignore", invalid="ignore"):
            _refuse_overflow(table, np.isfinite(X @ self.coef))
            scores = self._scores(X)
        _refuse_overflow(table, np.isfinite(scores))
        return scores

    def _scores(self, X: np.ndarray) -> np.ndarray:
        estimator = self.estimator
        return estimator.predict(X) if self.positive is None else estimator.decision_function(X)

    def group_ids(self, table: Table) -> np.ndarray | None:
        """Group of each row, or None when the model ranks one list."""
        return None if self.groups is None else group_ids(table, self.groups)

    def contributions(self, table: Table) -> np.ndarray:
        """``Σ_j coef_j·(x_j − mean_j)`` over the features of each column: rows by columns.

        The sum over a row is how far its score lies above that of the average training row.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            parts = (self.features(table) - self.mean) * self.coef
            return np.add.reduceat(parts, self.encoder.starts, axis=1)

    def explain(self, table: Table, n: int = 3) -> list[list[str]]:
        """The ``n`` columns that lift each row most, such as ``amount=+0.83``; fewer when fewer lift it."""
        parts = self.contributions(table)
        best = np.argsort(-parts, axis=1, kind="stable")[:, :n]
        names = [column.name for column in self.encoder.columns]
        return [
            [f"{names[j]}={signed(part)}" for j, part in zip(row, lifts[row], strict=True) if part > 0]
            for row, lifts in zip(best, parts, strict=True)
        ]


def _refuse_overflow(table: Table, fits: np.ndarray) -> None:
    if not fits.all():
        row = int((~fits).argmax())
        raise InputError(f"{table.source} row {row + 1}: its values are too large to score; correct them")


def signed(value: float) -> str:
    """Two digits and a sign: the size of scores depends on p, so a fixed number of decimals would not do.

    Examples
    --------
    >>> signed(0.8312), signed(-0.002), signed(1234.5)
    ('+0.83', '-0.0020', '+1234')
    """
    return f"{value:+#.2g}".rstrip(".") if abs(value) < 100 else f"{value:+.0f}"


def group_ids(table: Table, name: str) -> np.ndarray:
    """Group of each row; none may be missing."""
    text = texts(table, name)
    if text.null_count():
        row = int(text.is_null().to_numpy().argmax())
        raise InputError(f"{table.where(row, name)}: the group is missing; fill it in or take the row out")
    return text.to_numpy().astype(str)


def row_weights(table: Table, name: str) -> np.ndarray:
    weight = numbers(table, name)
    bad = ~(weight >= 0)
    if bad.any():
        raise InputError(f"{table.where(int(bad.argmax()), name)}: a weight must be a number of at least 0")
    return weight


def _fit_arguments(table: Table, recipe: Recipe) -> dict[str, np.ndarray]:
    arguments = {}
    if recipe.groups is not None:
        arguments["groups"] = group_ids(table, recipe.groups)
    if recipe.weight is not None:
        arguments["sample_weight"] = row_weights(table, recipe.weight)
    return arguments


def _fit(estimator: Any, X: np.ndarray, y: np.ndarray, arguments: dict[str, np.ndarray]) -> Any:
    searches = hasattr(estimator, "param_grid")
    if searches and "groups" not in arguments:
        raise InputError(
            "cross-validation of a model of grades leaves out whole groups: name them with --groups"
        )
    try:
        with config_context(enable_metadata_routing=searches):
            estimator.fit(X, y, **arguments)
    except InputError:
        raise
    except ValueError as error:
        # scikit-learn's own checks speak over many lines; the first one says what is wrong.
        raise InputError(str(error).strip().splitlines()[0]) from error
    return getattr(estimator, "best_estimator_", estimator)


def _summary(table: Table, recipe: Recipe, y: np.ndarray, fitted: Any) -> dict[str, Any]:
    certificate = {name.rstrip("_"): getattr(fitted, name) for name in CERTIFICATE if hasattr(fitted, name)}
    return {"rows": len(table), "positives": int((y > 0).sum()), "scale": recipe.scale, **certificate}
