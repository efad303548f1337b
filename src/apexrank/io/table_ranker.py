"""Fitting of a ranker on a table, and ranking of other tables with it.

:func:`fit_table` is the single path from a table to a model: it reads every column once, encodes the matrix once, fits
the estimator and scores the training rows. Weights count as repetitions of rows throughout.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from apexrank.errors import InputError, quoted
from apexrank.io.columns import (
    KNOWN,
    choose_positive,
    feature_columns,
    grades,
    group_ids,
    labelled_rows,
    negative_notes,
    row_weights,
    target_counts,
    target_values,
    unlabelled_note,
    weight_notes,
)
from apexrank.io.delimited import first_line
from apexrank.io.drift import Profile, psi
from apexrank.io.encode import LinearFeatures, TypedColumns
from apexrank.io.judge import Judged
from apexrank.io.read import Table, as_table
from apexrank.io.types import (
    ColumnChoice,
    Facts,
    choose_columns,
    deciding_columns,
    deciding_notes,
    parse_columns,
    table_facts,
)
from apexrank.kernels.pav import pav
from apexrank.preprocessing import QueryNormalizer
from apexrank.problem.blocks import Block
from apexrank.problem.design import Matrix
from apexrank.progress import steps
from apexrank.rankers.base import checked_rows, class_scores, fold_weight
from apexrank.rankers.curves_and_trees import CurvesAndTrees
from apexrank.validation import check_choice, check_folds, segment

SCALES = ("standard", "minmax", "none", "query")
CERTIFICATE = ("n_iter_", "converged_", "objective_", "dual_gap_", "grad_norm_")


@dataclass(frozen=True)
class Recipe:
    """Roles of the columns of a training table.

    Parameters
    ----------
    target : str
        Column of labels or relevance.
    positive : str, optional
        Its positive value; not needed for 0/1, true/false, yes/no and the like.
    graded : bool
        Whether the target holds relevance grades, non-negative numbers.
    id : str, optional
        Column that names the rows; never a feature.
    groups : str, optional
        Column of groups; rows are ranked within each group.
    weight : str, optional
        Column of row weights.
    features, drop : sequences of str
        Columns to use, and columns to leave out. By default, and for "all", useless columns are dropped
        (:func:`apexrank.io.types.table_columns`).
    categorical : sequence of str, optional
        Columns to one-hot encode, or ``["all"]`` for all text columns. By default, and for the other columns, text is
        one-hot encoded if enough rows share the same values; in graded recipes it is not.
    impute : {"median", "mean", "none"}, optional
        Imputation of missing numbers. With "none", the default of graded recipes, a missing value is an error.
        Otherwise missing values get a separate feature if training has enough of them. Trees and curves take missing
        values as they are, unless it is "none".
    scale : {"standard", "minmax", "none", "query"}
        Scale numbers to mean 0 and standard deviation 1, or to the range 0 to 1, or not. "query" scales every number to
        the range 0 to 1 within each group, LETOR's query-level scaling. Trees and curves take columns as they are, and
        scale them only with "query".
    """

    target: str
    positive: str | None = None
    graded: bool = False
    id: str | None = None
    groups: str | None = None
    weight: str | None = None
    features: Sequence[str] = ()
    drop: Sequence[str] = ()
    categorical: Sequence[str] | None = None
    impute: str | None = None
    scale: str = "standard"

    def __post_init__(self) -> None:
        for name in ("features", "drop", "categorical"):
            if isinstance(value := getattr(self, name), str):
                raise InputError(f"`{name}` must be a list of column names: use [{value!r}]")
        check_choice("impute", self.imputation, ("median", "mean", "none"))
        check_choice("scale", self.scale, SCALES)
        if self.scale == "query" and self.groups is None:
            raise InputError(
                "`scale='query'` scales inside each group: name the column of groups with `groups=`"
            )

    @property
    def imputation(self) -> str:
        """Imputation of missing numbers, with the default filled in."""
        return self.impute or ("none" if self.graded else "median")

    @property
    def of_columns(self) -> Recipe:
        """The recipe of a ranker that takes columns as they are, without imputation and scaling."""
        return replace(self, impute="none" if self.impute == "none" else None, scale="standard")

    def feature_columns(self, table: Table) -> list[str]:
        """Feature columns of the table, in table order."""
        roles = {"target": self.target, "id": self.id, "groups": self.groups, "weight": self.weight}
        for name in self.categorical or ():
            if name != "all":
                table.column(name)
        return feature_columns(table, roles, self.features, self.drop)


@dataclass(frozen=True)
class Thresholds:
    """Training negatives above a score: at most ``counts[j]`` of all ``total`` exceed ``scores[j]``.

    Stored for a few hundred counts only, to keep model files small. Weights of negatives count as repetitions; with
    whole-number weights, or none, the counts are exact.
    """

    counts: np.ndarray
    scores: np.ndarray
    total: float

    @classmethod
    def learn(cls, negatives: np.ndarray, weight: np.ndarray | None = None, size: int = 512) -> Thresholds:
        """Build the table from the scores of the training negatives."""
        weight = np.ones(len(negatives)) if weight is None else weight
        negatives, weight = negatives[weight > 0], weight[weight > 0]
        falling = np.argsort(-negatives, kind="stable")
        below = np.cumsum(weight[falling])
        unit = 1.0 if (weight == np.floor(weight)).all() else float(weight.min())
        steps = unit * np.floor(np.geomspace(1, below[-1] / unit, size))
        counts = np.unique(np.concatenate([[0.0], steps[steps < below[-1]]]))
        rows = falling[np.searchsorted(below, counts, side="right")]
        return cls(counts, negatives[rows], float(below[-1]))

    def check_state(self) -> None:
        """Raise InputError unless counts go from 0 to below the total, and scores fall."""
        counts = self.counts
        if not (
            len(counts) > 0 == counts[0]
            and counts[-1] < self.total < 1 << 53
            and (np.diff(self.scores) <= 0).all()
        ):
            raise InputError("the thresholds are out of order")

    def at(self, fpr: float) -> float:
        """Score exceeded by at most a share ``fpr`` of the training negatives.

        Examples
        --------
        >>> Thresholds.learn(np.arange(10.0)).at(0.2)
        7.0
        """
        if not 0 <= fpr < 1:
            raise InputError(f"`fpr` must be at least 0 and below 1, got {fpr!r}")
        # Divide instead of multiplying fpr by the total: 29 / 100 is the float 0.29, but 0.29 * 100 is less than 29.
        return float(self.scores[np.searchsorted(self.counts / self.total, fpr, side="right") - 1])


class Calibration(NamedTuple):
    """Increasing map from scores to probabilities, linear between knots and constant outside them.

    Attributes
    ----------
    scores, probabilities : arrays
        The knots, both increasing.
    """

    scores: np.ndarray
    probabilities: np.ndarray

    @classmethod
    def learn(cls, scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> Calibration:
        """Fit centred isotonic regression (Oron and Flournoy 2017) of labels 0 and 1 on scores.

        A knot is the mean score of a block and its share of positives, so probabilities tie only outside the first and
        last block. One extra row with the base rate at the lowest and at the highest score keeps probabilities away
        from 0 and 1. Weights count as repetitions.

        Examples
        --------
        >>> found = Calibration.learn(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0, 1, 0, 1]))
        >>> found.at(np.array([-9.0, 1.5, 9.0])).round(2).tolist()
        [0.25, 0.5, 0.75]
        """
        weight = np.ones(len(y)) if weight is None else weight
        counted = weight > 0
        values, rows = np.unique(scores[counted], return_inverse=True)
        size: np.ndarray = np.bincount(rows, weight[counted])
        hits: np.ndarray = np.bincount(rows, (weight * (y > 0))[counted])
        base_rate = hits.sum() / size.sum()
        size[[0, -1]] += 1.0
        hits[[0, -1]] += base_rate
        fitted = pav(hits / size, weight=size)
        starts = np.flatnonzero(np.diff(fitted, prepend=-1.0) > 0)
        centers = np.add.reduceat(size * values, starts) / np.add.reduceat(size, starts)
        return cls(centers, fitted[starts])

    def check_state(self) -> None:
        """Raise InputError unless the probabilities are some, from 0 to 1."""
        if not (len(self.scores) and self.probabilities[0] >= 0 and self.probabilities[-1] <= 1):
            raise InputError("the probabilities are not between 0 and 1")

    def at(self, scores: np.ndarray) -> np.ndarray:
        """Return the probability of each score."""
        return np.interp(scores, self.scores, self.probabilities)


@dataclass
class TableRanker:
    """Fitted estimator with everything needed to apply it to a table.

    Created by :meth:`fit`, saved by :func:`apexrank.save`.

    Parameters
    ----------
    estimator : estimator
        A fitted ranker.
    encoder : TypedColumns
        Encoding of columns as features; :class:`~apexrank.io.encode.LinearFeatures` for linear rankers.
    target : str
        Name of the training target.
    positive : str, optional
        Its positive value; None if the target holds relevance grades.
    id, groups : str, optional
        Columns that name rows and groups.
    ignored : list of str
        Training columns that are not features.
    mean : array
        Training mean of each encoded feature, the reference of :meth:`contributions`; 0 for trees and curves.
    thresholds : Thresholds, optional
        Score thresholds for false positive rates; None with grades.
    training : dict
        Training summary: number of rows and positives, and the solver's certificate.
    weight : str, optional
        Column of row weights in training.
    calibration : Calibration, optional
        Probabilities of scores, if calibrated.
    score_profile : Profile, optional
        Distribution of the scores of the training rows.
    negatives : tuple of str
        The other values of the training target, most frequent first, but not more than a few.

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
    encoder: TypedColumns
    target: str
    positive: str | None
    id: str | None
    groups: str | None
    ignored: list[str]
    mean: np.ndarray
    thresholds: Thresholds | None
    training: dict[str, Any] = field(default_factory=dict)
    weight: str | None = None
    calibration: Calibration | None = None
    score_profile: Profile | None = None
    negatives: tuple[str, ...] = ()

    @classmethod
    def fit(cls, table: Any, recipe: Recipe, estimator: Any) -> TableRanker:
        """Learn the encoding and fit ``estimator`` on a table: a data frame, the path of a file, or a `Table`."""
        return fit_table(as_table(table), recipe, estimator)[0]

    @classmethod
    def unfitted(
        cls,
        recipe: Recipe,
        estimator: Any,
        encoder: TypedColumns,
        classes: Sequence[str],
        names: Sequence[str],
    ) -> TableRanker:
        """Create a ranker whose columns (of the table columns ``names``) are known, but not its coefficients."""
        used = {column.name for column in encoder.columns}
        is_scaled = isinstance(encoder, LinearFeatures) or recipe.scale == "query"
        return cls(
            estimator=estimator,
            encoder=encoder,
            positive=classes[0] if classes else None,
            negatives=tuple(classes[1 : 1 + KNOWN]),
            ignored=[name for name in names if name not in used],
            mean=np.zeros(len(encoder.features)),
            thresholds=None,
            training={"scale": recipe.scale if is_scaled else "none"},
            **{role: getattr(recipe, role) for role in ("target", "id", "groups", "weight")},
        )

    def learn_from(self, judged: Judged) -> None:
        """Store the thresholds of the negatives, and a summary of the training rows."""
        weights = np.ones(len(judged.scores)) if judged.weight is None else judged.weight
        self.score_profile = Profile.of_numbers(judged.scores[weights > 0], weights[weights > 0], 0.0)
        if self.positive is not None:
            negative = judged.y == 0
            weight = None if judged.weight is None else judged.weight[negative]
            self.thresholds = Thresholds.learn(judged.scores[negative], weight)
        found = {name: getattr(self.estimator, name, None) for name in CERTIFICATE}
        self.training = {
            "rows": len(judged.y),
            "positives": int((judged.y > 0).sum()),
            "scale": self.training["scale"],
            **{name.rstrip("_"): value for name, value in found.items() if value is not None},
        }

    def check_state(self) -> None:
        """Raise InputError if the estimator, the columns and the summary of the training rows contradict each other."""
        check_is_fitted(self.estimator)
        n_features, graded = len(self.encoder.features), self.positive is None
        if self.estimator.n_features_in_ != n_features or len(self.mean) != n_features:
            raise InputError(f"the estimator or the mean is not that of {n_features} features")
        levels = {j for j, column in enumerate(self.encoder.columns) if column.kind == "category"}
        unnamed = self.encoder.features if isinstance(self.encoder, LinearFeatures) else []
        names = getattr(self.estimator, "feature_names_in_", unnamed)
        if [*names] != self.encoder.features or {*getattr(self.estimator, "levels_", levels)} != levels:
            raise InputError("the columns of the estimator are not those of the table")
        if is_classifier(self.estimator) == graded or graded != (self.thresholds is None):
            raise InputError("the estimator or its thresholds do not fit the target")
        if self.calibration is not None and graded:
            raise InputError("grades have no probabilities")
        numbers = [value for name, value in self.training.items() if name != "scale"]
        if self.training.get("scale") not in SCALES or not all(
            value is None or isinstance(value, int | float) for value in numbers
        ):
            raise InputError("the summary of the training rows is not what it must be")

    @property
    def meaning(self) -> str:
        """Meaning of high scores, such as "fraud = yes" or "high relevance"."""
        return f"high {self.target}" if self.positive is None else f"{self.target} = {self.positive}"

    @property
    def coef(self) -> np.ndarray:
        """One coefficient per feature."""
        if not self.is_linear:
            raise InputError(
                f"{type(self.estimator).__name__} has no coefficients: this needs a linear model"
            )
        return np.ravel(self.estimator.coef_)

    @property
    def is_linear(self) -> bool:
        """Whether scores are linear in the features; other rankers have a method ``contributions``."""
        return hasattr(self.estimator, "coef_") and not hasattr(self.estimator, "contributions")

    def features(self, table: Table, weight: np.ndarray | None = None) -> Any:
        """Features of the table's rows as in training: typed columns, or a matrix, sparse if the estimator is."""
        return self.scaled(table, self.encoder.encode(table), self.group_ids(table), weight)

    def answers(self, table: Table) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Answers, weights and groups of the rows of a table, all of which have a target."""
        if self.positive is None:
            y = grades(table, self.target)
        else:
            y = (target_values(table, self.target) == self.positive).to_numpy().astype(np.int64)
        return y, None if self.weight is None else row_weights(table, self.weight), self.group_ids(table)

    def block(self, table: Table) -> Block:
        """Training rows of a table: features, answers, weights and groups."""
        if self.positive is not None:
            table, _ = labelled_rows(table, self.target)
        y, weight, groups = self.answers(table)
        X = self.scaled(table, self.encoder.encode(table), groups, weight)
        return Block(X.toarray() if sparse.issparse(X) else X, y, weight, groups)

    def scaled(
        self, table: Table, X: Any, groups: np.ndarray | None, weight: np.ndarray | None = None
    ) -> Any:
        """Encoded rows, scaled within groups if training was; rows of weight 0 do not affect the scaling."""
        in_rows = groups is None or self.training["scale"] != "query"
        if isinstance(X, pl.DataFrame):
            numbers = X.select(pl.selectors.float())
            if in_rows or not numbers.width:
                return X
            rows = self.scaled(table, numbers.to_numpy(writable=True), groups, weight)
            return X.with_columns(pl.DataFrame(rows, numbers.schema))
        if sparse.issparse(X):
            if in_rows and get_tags(self.estimator).input_tags.sparse:
                _refuse_overflow(table, ~np.isinf(abs(X).sum(axis=1)))
                return X
            X = X.toarray()
        _refuse_overflow(table, ~np.isinf(X).any(axis=1))
        if groups is None or in_rows:
            return X
        counted = np.full(len(X), True) if weight is None else weight > 0
        X[counted] = QueryNormalizer(missing="keep").fit_transform(X[counted], groups=groups[counted])
        return X

    def check(self, table: Table, known: Iterable[str | None] = ()) -> list[str]:
        """Return warnings about a table to rank; raise InputError if a column is missing.

        ``known`` names extra columns that need no warning.
        """
        for column in self.encoder.columns:
            table.column(column.name)
        known = {column.name for column in self.encoder.columns}.union(self.ignored, known)
        extra = [name for name in table.names if name not in known]
        notes = self.encoder.notes(table)
        if extra:
            notes.insert(0, f"{table.source} has columns the model does not know, ignored: {quoted(extra)}")
        return notes

    def drift(self, table: Table, scores: np.ndarray) -> dict[str, float]:
        """Population stability index of the scores and of each column, largest first; see `apexrank.io.drift`."""
        if self.score_profile is None:
            raise InputError("the model does not know its training rows: fit it again")
        cells = parse_columns(table, self.encoder.columns)
        found = {
            column.name: psi(profile, profile.counts(cells[column.name]))
            for column, profile in zip(self.encoder.columns, self.encoder.profiles, strict=True)
        }
        first = {"score": psi(self.score_profile, self.score_profile.counts(scores))}
        return first | dict(sorted(found.items(), key=lambda item: -item[1]))

    def score(self, table: Any, weight: np.ndarray | None = None) -> np.ndarray:
        """Ranking score of each row: higher means nearer to the top.

        ``table`` is a data frame, the path of a file, or a `Table`. Rows whose ``weight`` is 0 do not affect the
        scaling of their group.
        """
        table = as_table(table)
        return self.score_rows(table, self.features(table, weight))

    def score_rows(self, table: Table, X: Matrix) -> np.ndarray:
        """Scores of the rows of a table, from their features."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.is_linear:
                _refuse_overflow(table, np.isfinite(X @ self.coef))
            scores = self.estimator.predict(X) if self.positive is None else class_scores(self.estimator, X)
        _refuse_overflow(table, np.isfinite(scores))
        return scores

    def group_ids(self, table: Table) -> np.ndarray | None:
        """Group of each row, or None if the model ranks one list."""
        return None if self.groups is None else group_ids(table, self.groups)

    def contributions(self, table: Any, X: Matrix | None = None) -> np.ndarray:
        """``Σ_j coef_j·(x_j − mean_j)`` over the features of each column: rows by columns.

        The sum over a row is the difference between its score and that of the average training row. For
        :class:`CurvesAndTrees` the last number of a row is the contribution of the trees (:attr:`part_names`). ``X``
        holds the features of some of the table's rows, if already computed: a row must be scaled within its whole
        group.
        """
        X = self.features(as_table(table)) if X is None else X
        with np.errstate(over="ignore", invalid="ignore"):
            if sparse.issparse(X) and self.is_linear:
                starts, d = self.encoder.starts, len(self.coef)
                owner = np.repeat(np.arange(len(starts)), np.diff([*starts, d]))
                effects = sparse.csr_array((self.coef, (np.arange(d), owner)), shape=(d, len(starts)))
                return (X @ effects).toarray() - self.mean @ effects
            parts = (X - self.mean) * self.coef if self.is_linear else self.estimator.contributions(X)
            own = np.add.reduceat(parts[:, : len(self.mean)], self.encoder.starts, axis=1)
            return np.column_stack([own, parts[:, len(self.mean) :]])

    @property
    def part_names(self) -> list[str]:
        """Names of the :meth:`contributions`: the columns, and last the trees beside curves."""
        trees = ["(trees)"] if isinstance(self.estimator, CurvesAndTrees) else []
        return [*(column.name for column in self.encoder.columns), *trees]

    def effects(self, table: Table) -> dict[str, float]:
        """Standard deviation over labelled rows of the effect of each column, and of each pair of columns.

        For additive models, and for curves and trees, where pairs are split equally between their columns; weights
        count as in training.
        """
        X, _, weight, _ = self.block(table)
        parts: Iterable[tuple[str, np.ndarray]] = zip(
            self.part_names, self.contributions(table, X).T, strict=True
        )
        if not isinstance(self.estimator, CurvesAndTrees):
            effects = self.estimator._effects(checked_rows(self.estimator, X))
            parts = (
                (" × ".join(self.encoder.features[j] for j in sorted(own)), part) for own, part in effects
            )
        spread = {}
        for name, part in parts:
            variance = np.average((part - np.average(part, weights=weight)) ** 2, weights=weight)
            spread[name] = float(np.sqrt(variance))
        return spread

    def explain(self, table: Any, n: int = 3, X: Matrix | None = None) -> list[list[str]]:
        """The ``n`` columns that raise each row's score most, such as ``amount=+0.83``; fewer if fewer raise it.

        ``X`` is as in :meth:`contributions`.
        """
        parts = self.contributions(table, X)
        best, names = np.argsort(-parts, axis=1, kind="stable")[:, :n], self.part_names
        return [
            [f"{names[j]}={signed(part)}" for j, part in zip(row, lifts[row], strict=True) if part > 0]
            for row, lifts in zip(best, parts, strict=True)
        ]


class TableFacts(NamedTuple):
    """Mergeable facts about the rows, for the choice of columns and of the positive value.

    Attributes
    ----------
    facts : dict
        Facts of the columns in the rows with a target.
    counts : Counter
        Rows of each value of a target of two classes.
    unlabelled, rows : int
        Number of rows without a target, and of all rows.
    guesses : sequence of str
        Notes about assumptions made by the reader.
    """

    facts: dict[str, Facts]
    counts: Counter[str]
    unlabelled: int
    rows: int
    guesses: Sequence[str]

    @classmethod
    def of(cls, table: Table, names: Sequence[str], recipe: Recipe) -> TableFacts:
        """Collect the facts of a table."""
        counts: Counter[str] = Counter()
        labelled = table
        if not recipe.graded:
            labelled, _ = labelled_rows(table, recipe.target)
            counts.update(target_counts(labelled, recipe.target))
        weight = None if recipe.weight is None else row_weights(labelled, recipe.weight)
        facts = table_facts(labelled, names, recipe, weight)
        return cls(facts, counts, len(table) - len(labelled), len(table), table.guesses)

    def __or__(self, other: TableFacts) -> TableFacts:
        """Merge with the rows that follow."""
        facts = {name: own | other.facts[name] for name, own in self.facts.items()}
        guesses = [*dict.fromkeys((*self.guesses, *other.guesses))]
        without, rows = self.unlabelled + other.unlabelled, self.rows + other.rows
        return TableFacts(facts, self.counts + other.counts, without, rows, guesses)

    def choose(
        self, names: Sequence[str], recipe: Recipe, separator: str | None, source: str
    ) -> ColumnChoice:
        """Choose the columns and the positive value of the target."""
        classes, notes = list[str](), []
        if self.unlabelled:
            notes.append(unlabelled_note(self.unlabelled, self.rows, source, recipe.target))
        if not recipe.graded:
            positive = choose_positive(self.counts, source, recipe.target, recipe.positive)
            notes += negative_notes(self.counts, positive)
            classes = [positive, *(value for value in self.counts if value != positive)]
        if recipe.weight is not None and self.facts and not any(facts.total for facts in self.facts.values()):
            raise InputError(
                f"{source} column {recipe.weight!r}: all weights are 0; give some rows a weight above 0"
            )
        choice = choose_columns(names, self.facts, recipe, separator, source)
        return choice._replace(notes=[*notes, *choice.notes], classes=tuple(classes))


def check_recipe(recipe: Recipe, estimator: Any) -> None:
    """Raise InputError if the estimator cannot be fitted with such groups or such an encoding."""
    if hasattr(estimator, "param_grid") and recipe.groups is None:
        raise InputError(
            "cross-validation of a model of grades holds out whole groups: name their column with `groups=`"
        )
    if takes_columns(estimator) and (recipe.scale == "minmax" or recipe.impute in ("median", "mean")):
        raise InputError("trees and curves take columns as they are: leave out `scale` and `impute`")


def takes_columns(estimator: Any) -> bool:
    """Whether an estimator, or that of a search, takes typed columns rather than linear features."""
    searched = estimator.estimator if hasattr(estimator, "param_grid") else estimator
    return getattr(searched, "takes_columns", False)


def fit_table(table: Table, recipe: Recipe, estimator: Any) -> tuple[TableRanker, Judged]:
    """Fit ``estimator`` on a table.

    Returns
    -------
    ranker, judged
        The fitted ranker, and answers, scores, groups and weights of its training rows, without rows that have no
        target. Notes describe how the columns were used.
    """
    check_recipe(recipe, estimator)
    if takes_columns(estimator) and recipe.impute is None:
        recipe = replace(recipe, impute="median")  # missing values are allowed, also with grades
    names = recipe.feature_columns(table)
    choice = TableFacts.of(table, names, recipe).choose(names, recipe, table.separator, table.source)
    columns = choice.columns
    if not recipe.graded:
        table, _ = labelled_rows(table, recipe.target)
    cells = parse_columns(table, columns, training=True)
    weight = None if recipe.weight is None else row_weights(table, recipe.weight)
    kind = TypedColumns if takes_columns(estimator) else LinearFeatures
    encoder = kind.of_cells(cells, columns, recipe, table.source, weight)
    ranker = TableRanker.unfitted(recipe, estimator, encoder, choice.classes, table.names)
    y, weight, groups = ranker.answers(table)
    leaks = [] if recipe.graded else deciding_columns(cells, columns, y, weight)
    notes = (*deciding_notes(leaks), *choice.notes, *weight_notes(weight))
    X = ranker.scaled(table, encoder.transform(cells), groups, weight)
    ranker.estimator = _fit(estimator, X, y, groups=groups, sample_weight=weight)
    scores = ranker.score_rows(table, X)
    judged = Judged(y, scores, groups, recipe.graded, notes=notes, weight=weight)
    ranker.mean = encoder.mean(X, weight)
    ranker.learn_from(judged)
    return ranker, judged


def _refuse_overflow(table: Table, fits: np.ndarray) -> None:
    if not fits.all():
        place = table.place(int((~fits).argmax()))
        raise InputError(f"{place}: its values are too large to score; correct them")


def signed(value: float) -> str:
    """Format a number with a sign and two significant digits, because the scale of scores depends on p.

    Examples
    --------
    >>> signed(0.8312), signed(-0.002), signed(1234.5)
    ('+0.83', '-0.0020', '+1234')
    """
    return f"{value:+#.2g}".rstrip(".") if abs(value) < 100 else f"{value:+.0f}"


def _fit(estimator: Any, X: Any, y: np.ndarray, **given: np.ndarray | None) -> Any:
    """Fit the estimator and return it, or the best one of a search; ``given`` are groups and weights."""
    arguments = {name: values for name, values in given.items() if values is not None}
    searches = hasattr(estimator, "param_grid")
    if searches and isinstance(folds := getattr(estimator.cv, "n_splits", estimator.cv), int):
        check_folds(folds, y, arguments["groups"])
    if "groups" in arguments and not (searches or has_fit_parameter(estimator, "groups")):
        raise InputError(f"{type(estimator).__name__} ranks all rows as one list: leave out `groups`")
    try:
        with config_context(enable_metadata_routing=searches):
            if searches:
                weighted = fold_weight(arguments.get("sample_weight")) is not None
                estimator.scoring.set_score_request(groups=True, sample_weight=weighted)
            estimator.fit(X, y, **arguments)
    except InputError:
        raise
    except ValueError as error:
        # scikit-learn's error messages span many lines; the first one states the problem.
        raise InputError(str(error).strip().splitlines()[0]) from error
    return getattr(estimator, "best_estimator_", estimator)


def check_one_list(recipe: Recipe) -> None:
    """Raise InputError unless the target has two classes and all rows form one list."""
    if recipe.graded:
        raise InputError("probabilities need a target of two classes, and this one holds grades")
    if recipe.groups is not None:
        raise InputError("probabilities need one list: scores inside groups do not compare")


def calibrate(
    ranker: TableRanker, table: Table, recipe: Recipe, *, folds: int = 5, group_split: str | None = None
) -> Calibration:
    """Calibrate the scores of a ranker on the rows it was fitted on.

    Scores of training rows would be overconfident. So each of ``folds`` stratified folds is scored by a ranker with the
    same parameters fitted on the others, encoding included. Rows with the same value in the column ``group_split``,
    such as those of one customer, are kept in one fold, because a ranker that has seen the customer would also be
    overconfident.

    Raises
    ------
    InputError
        If the target holds grades, rows are ranked within groups, or a class has too few rows.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    check_one_list(recipe)
    table, _ = labelled_rows(table, ranker.target)
    y, weight, _ = ranker.answers(table)
    if min(fewest := int(y.sum()), len(y) - fewest) < folds:
        raise InputError(f"probabilities need at least {folds} rows of each class: give more rows")
    scores, recipe = np.empty(len(y)), replace(recipe, positive=ranker.positive)
    groups = None if group_split is None else group_ids(table, group_split)
    kind: Any = StratifiedKFold if groups is None else StratifiedGroupKFold
    splits = kind(folds, shuffle=True, random_state=0).split(y, y, groups)
    for train, test in steps(list(splits)):
        some, others = table.take(train), table.take(test)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the ranker itself has already warned
            scores[test] = fit_table(some, recipe, clone(ranker.estimator))[0].score(others)
    return Calibration.learn(scores, y, weight)


def rank_table(
    ranker: TableRanker,
    table: Any,
    *,
    top: int | None = None,
    fpr: float | None = None,
    min_probability: float | None = None,
    explain: bool = False,
    keep: bool = False,
    id: str | None = None,
    scores: np.ndarray | None = None,
) -> pl.DataFrame:
    """Rank the rows of a table, best first, within each group if the model has groups.

    Parameters
    ----------
    ranker : TableRanker
        A fitted model.
    table : data frame, path or Table
        Rows to rank, with every feature column of the model.
    top : int, optional
        Keep this many rows (per group).
    fpr : float, optional
        Keep the rows above the score that at most this share of the training negatives exceeds.
    min_probability : float, optional
        Keep the rows with at least this probability; for calibrated models.
    explain : bool
        Add ``why_1`` to ``why_3``, the columns that raise the score of the row most.
    keep : bool
        Add all other columns of the table.
    id : str, optional
        Column that names the rows; by default the model's, or the row number if the table lacks it.
    scores : array, optional
        Scores of the rows, if already known; the table then needs features only for ``explain``.

    Returns
    -------
    polars.DataFrame
        The group and id columns, ``rank``, ``score``, ``probability`` for a calibrated model, and requested columns.
    """
    if top is not None and fpr is not None:
        raise InputError("`top` and `fpr` both set the length of the list: give one of them")
    if top is not None and top < 1:
        raise InputError(f"`top` must be at least 1, got {top}")
    if fpr is not None and (ranker.thresholds is None or ranker.groups is not None):
        raise InputError("`fpr` needs a model of two classes that ranks all rows as one list: use `top`")
    table = as_table(table)
    X = ranker.features(table) if scores is None or explain else np.empty((0, 0))
    scores = ranker.score_rows(table, X) if scores is None else scores
    rows, ranks = _order(scores, ranker.group_ids(table))
    kept = np.ones(len(rows), dtype=bool) if top is None else ranks <= top
    if fpr is not None and ranker.thresholds is not None:
        kept &= scores[rows] > ranker.thresholds.at(fpr)
    probability = None if ranker.calibration is None else ranker.calibration.at(scores)
    if min_probability is not None:
        if probability is None:
            raise InputError(
                "the model gives no probabilities: calibrate it first, with apexrank.io.calibrate"
            )
        kept &= probability[rows] >= min_probability
    rows, ranks = rows[kept], ranks[kept]
    if id is not None:
        table.column(id)
    names = [name for name in dict.fromkeys((ranker.groups, id or ranker.id)) if name in table.names]
    columns = [table.frame[name][rows] for name in names]
    if (id or ranker.id) not in names:
        columns.append(pl.Series("row", rows + 1))
    columns += [pl.Series("rank", ranks), pl.Series("score", scores[rows])]
    if probability is not None:
        columns.append(pl.Series("probability", probability[rows]))
    if explain:
        reasons = [[*row, None, None, None] for row in ranker.explain(table, X=X[rows])]
        columns += [pl.Series(f"why_{i + 1}", [row[i] for row in reasons], dtype=pl.String) for i in range(3)]
    if keep:
        columns += [table.frame[name][rows] for name in table.names if name not in names]
    try:
        return pl.DataFrame(columns)
    except pl.exceptions.DuplicateError as error:
        clash = f"{table.source} has a column of the ranking ({first_line(error)})"
        raise InputError(f"{clash}: rename it, or leave out `keep`") from None


def _order(scores: np.ndarray, groups: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Row indices, best first within each group, and their ranks; groups and ties keep the table's order."""
    segments = segment(groups, len(scores))
    first = segments.order[segments.indptr[:-1]][segments.of_rows()]
    best = np.lexsort((-scores, first))
    starts, sizes = np.unique(first[best], return_index=True, return_counts=True)[1:]
    return best, np.arange(len(scores)) - np.repeat(starts, sizes) + 1
