"""Scores as SQL: one arithmetic expression of a table's columns, which any database can compute."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import isfinite
from typing import Any, NamedTuple

from apexrank.errors import InputError
from apexrank.export.columns import CategoryColumn, Feature, NumberColumn, spellings
from apexrank.export.linear import LinearForm, linear_form

FAR = 1e3  # units of a column from zero beyond which its centre stays in the expression
_ROWS = "r"  # what the table is called inside the statement


class Dialect(NamedTuple):
    """How a database quotes names, and whether its numbers may be NaN, which is not NULL."""

    quote: str = '"'
    has_nan: bool = False


# Where SQLite knows no column of a name in double quotes, it takes the name for text and says nothing.
DIALECTS = {
    "standard": Dialect(),
    "sqlite": Dialect(quote="`"),
    "duckdb": Dialect(has_nan=True),
    "postgresql": Dialect(has_nan=True),
}


def to_sql(
    model: Any,
    *,
    table: str | None = None,
    score: str = "score",
    id: str | Sequence[str] | None = None,
    dialect: str | None = None,
    feature_names: Sequence[str] | None = None,
    digits: int = 17,
) -> str:
    """Write the score of a linear ranker as SQL.

    The scaling of a pipeline or model file is folded into the coefficients, ``w_j/s_j``; imputation becomes
    ``COALESCE``, a category ``CASE``. Sums are nested, so that thousands of columns stay below the databases' limits
    on depth. Where the model would refuse a row, its score is NULL, except that columns of coefficient 0 are left out.

    Parameters
    ----------
    model : fitted ranker, Pipeline or TableRanker
        A pipeline may hold StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, SimpleImputer, OneHotEncoder and
        ColumnTransformer before its ranker.
    table : str, optional
        Write a whole statement, best row first, instead of an expression. A dot is part of the name.
    score : str
        What the statement calls the score.
    id : str or sequence of str, optional
        Columns of the statement beside the score; by default the id of the model, or all columns.
    dialect : {"standard", "sqlite", "duckdb", "postgresql"}, optional
        "standard" runs in all of them. The named ones are safer: in "sqlite" a misspelt column is an error, in the
        last two a NaN is taken for a missing value, as the model takes it.
    feature_names : sequence of str, optional
        Names of the columns, for a model that was fitted on an array.
    digits : int
        Significant digits of the numbers; 17 is exact.

    Returns
    -------
    str
        SQL without a semicolon.

    Notes
    -----
    Columns of numbers must have a numeric type. Categories of a model file are compared as text without blanks around
    it.

    Examples
    --------
    >>> from apexrank import PNormPush
    >>> model = PNormPush(p=2, alpha=0.1).fit([[0.0], [1.0], [2.0], [1.5]], [0, 0, 1, 0])
    >>> print(to_sql(model, feature_names=["amount"], table="payments", digits=3))
    SELECT r.*, -8.39e0 + 5.03e0 * CAST(r."amount" AS DOUBLE PRECISION) AS "score"
    FROM "payments" AS r
    ORDER BY "score" DESC NULLS LAST
    """
    form = linear_form(model, feature_names)
    id = getattr(model, "id", None) if id is None else id
    return form_to_sql(form, table=table, score=score, id=id, dialect=dialect, digits=digits)


def form_to_sql(
    form: LinearForm,
    *,
    table: str | None,
    score: str,
    id: str | Sequence[str] | None,
    dialect: str | None,
    digits: int = 17,
) -> str:
    """Write a linear form as :func:`to_sql` writes a model."""
    writer = _writer(dialect, digits, qualified=table is not None)
    expression = writer.expression(form)
    if table is None:
        return expression
    names = [id] if isinstance(id, str) else list(id or ())
    if score in (names or [feature.column.name for feature in form.features]):
        raise InputError(f"the statement has a column {score!r} already: choose another name of the score")
    shown = [writer.column(name) for name in names] or [f"{_ROWS}.*"]
    alias = writer.name(score)
    return (
        f"SELECT {', '.join(shown)}, {expression} AS {alias}\n"
        f"FROM {writer.name(table)} AS {_ROWS}\n"
        f"ORDER BY {alias} DESC NULLS LAST"
    )


def _writer(dialect: str | None, digits: int, qualified: bool) -> _Writer:
    name = dialect or "standard"
    if name not in DIALECTS:
        raise InputError(f"unknown dialect {name!r}: use one of {', '.join(DIALECTS)}")
    if not 1 <= digits <= 17:
        raise InputError(f"digits must be between 1 and 17, got {digits!r}")
    return _Writer(DIALECTS[name], digits, f"{_ROWS}." if qualified else "")


class _Writer:
    """Writes the parts of an expression in one dialect."""

    def __init__(self, dialect: Dialect, digits: int, prefix: str) -> None:
        self.dialect, self.digits, self.prefix = dialect, digits, prefix

    def name(self, text: str) -> str:
        if not text or "\0" in text:
            raise InputError(f"{text!r} cannot name anything in SQL: rename the column")
        quote = self.dialect.quote
        return quote + text.replace(quote, 2 * quote) + quote

    def column(self, name: str) -> str:
        return self.prefix + self.name(name)

    def number(self, value: float) -> str:
        """A literal with an exponent, which makes it a double, never a decimal or an integer."""
        if not isfinite(value):
            raise InputError(f"a coefficient is {value}, which SQL cannot write: fit the model again")
        text = repr(float(f"{value:.{self.digits - 1}e}") + 0.0)  # adding 0 takes the sign off a zero
        return text if "e" in text else f"{text.removesuffix('.0')}e0"

    def expression(self, form: LinearForm) -> str:
        """The whole sum; terms of weight 0 are left out."""
        constant, terms = float(form.intercept), []
        for column, run in groupby(zip(form.features, form.weights.tolist(), strict=True), _column):
            own = [(feature, weight) for feature, weight in run if weight]
            if not own:
                continue
            if isinstance(column, CategoryColumn):
                constant -= sum(weight * feature.center for feature, weight in own)
                terms.append(self._category(column, own))
                continue
            for feature, weight in own:
                far = abs(feature.center * feature.slope) > FAR
                constant -= 0.0 if far else weight * feature.center
                terms.append(self._number_term(feature, weight, far))
        return _nested_sum([self.number(constant), *terms])

    def _number_term(self, feature: Feature, weight: float, keep_center: bool) -> str:
        value = self._number_column(feature.column)
        if keep_center:
            value = f"({_nested_sum([value, self.number(-feature.center)])})"
        return f"{self.number(weight)} * {value}"

    def _number_column(self, column: NumberColumn | CategoryColumn) -> str:
        value = f"CAST({self.column(column.name)} AS DOUBLE PRECISION)"
        if column.fill is None:
            return value
        if self.dialect.has_nan:
            value = f"NULLIF({value}, CAST('NaN' AS DOUBLE PRECISION))"
        return f"COALESCE({value}, {self.number(column.fill)})"

    def _category(self, column: CategoryColumn, own: list[tuple[Feature, float]]) -> str:
        weights: dict[Any, float] = {}
        for feature, weight in own:  # a column may have been encoded twice
            weights[feature.value] = weights.get(feature.value, 0.0) + weight
        cases = [self._missing_case(column, weights)]
        name = self._category_value(column)
        known = [value for value in column.values if value is not None]
        listed = known if column.knows_all else [value for value in known if value in weights]
        for value in listed:
            spelt = " OR ".join(f"{name} = {text}" for text in self._spellings(column, value))
            cases.append(f"WHEN {spelt} THEN {self.number(weights.get(value, 0.0))}")
        end = "" if column.knows_all else f" ELSE {self.number(0.0)}"
        return f"CASE {' '.join(filter(None, cases))}{end} END"

    def _missing_case(self, column: CategoryColumn, weights: dict[Any, float]) -> str:
        """What a missing value is worth: without this case it is like one that is not known."""
        name = self.column(column.name)
        if column.fill is not None:
            return f"WHEN {name} IS NULL THEN {self.number(weights.get(column.fill, 0.0))}"
        if None in column.values:
            return f"WHEN {name} IS NULL THEN {self.number(weights.get(None, 0.0))}"
        if column.needs_value:
            return f"WHEN {name} IS NULL OR {self._category_value(column)} = '' THEN NULL"
        return ""

    def _category_value(self, column: CategoryColumn) -> str:
        name = self.column(column.name)
        if column.as_text:
            return f"TRIM(CAST({name} AS VARCHAR))"
        numeric = all(isinstance(value, int | float) for value in column.values if value is not None)
        return f"CAST({name} AS DOUBLE PRECISION)" if numeric else name

    def _spellings(self, column: CategoryColumn, value: Any) -> list[str]:
        if not isinstance(value, str):
            return [self.number(float(value))]
        texts = spellings(value) if column.as_text else [value]
        return ["'" + text.replace("'", "''") + "'" for text in texts]


def _column(pair: tuple[Feature, float]) -> NumberColumn | CategoryColumn:
    return pair[0].column


def _nested_sum(terms: list[str]) -> str:
    """A sum in halves, so that its depth grows with the logarithm of its length.

    Examples
    --------
    >>> _nested_sum(["a", "b", "-c"])
    'a + b - c'
    """
    if len(terms) <= 16:
        head, *rest = terms
        return head + "".join(f" - {term[1:]}" if term.startswith("-") else f" + {term}" for term in rest)
    half = len(terms) // 2
    return f"({_nested_sum(terms[:half])})\n+ ({_nested_sum(terms[half:])})"
