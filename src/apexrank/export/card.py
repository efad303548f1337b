"""A scorecard: points that a person can add up, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.export.answers import Answers, answers_of, default_measures, model_scores
from apexrank.export.columns import Feature
from apexrank.export.linear import LinearForm, raw_matrix
from apexrank.export.sql import Statement, form_to_sql, shown_columns
from apexrank.io.measures import ABOVE_ZERO
from apexrank.metrics.confidence import compare

if TYPE_CHECKING:
    import polars as pl


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
