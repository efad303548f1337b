"""Export to SQL: the score as a single arithmetic expression of a table's columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from numbers import Integral
from typing import Any, NamedTuple

from apexrank.errors import InputError
from apexrank.export import features, forms
from apexrank.validation import check_choice

_ROWS = "r"  # alias of the table in the statement
_QUOTED_OR_LINE = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|\n""")


class Dialect(NamedTuple):
    """Differences between databases.

    ``not_finite`` are the NaN and infinities that it supports; ``number`` yields the number in a column ``{0}`` of
    numeric values, NULL for any other; ``folds_case`` tells that names which differ only by case are the same.
    """

    quote: str = '"'
    nan: str | None = None
    not_finite: tuple[str, ...] = ()
    number: str | None = None
    folds_case: bool = True


_NAN, *_INFINITIES = (f"CAST('{text}' AS DOUBLE PRECISION)" for text in ("NaN", "Infinity", "-Infinity"))
_IN_POSTGRESQL = "'smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision'"

DIALECTS = {
    "standard": Dialect(),
    # If SQLite knows no column of a double-quoted name, it silently treats the name as text.
    "sqlite": Dialect(
        quote="`",
        not_finite=("9e999", "-9e999"),
        number="CASE WHEN TYPEOF({0}) IN ('integer', 'real') THEN {0} END",
    ),
    "duckdb": Dialect(
        nan=_NAN,
        not_finite=(_NAN, *_INFINITIES),
        # Via text, because dates have no cast to numbers.
        number="CASE WHEN TYPEOF({0}) <> 'VARCHAR' AND TYPEOF({0}) NOT LIKE 'ENUM%' "
        "THEN TRY_CAST(CAST({0} AS VARCHAR) AS DOUBLE PRECISION) END",
    ),
    "postgresql": Dialect(
        nan=_NAN,
        not_finite=(_NAN, *_INFINITIES),
        number="CASE WHEN CAST(PG_TYPEOF({0}) AS VARCHAR) IN ("
        + _IN_POSTGRESQL
        + ") THEN CAST(CAST({0} AS VARCHAR) AS DOUBLE PRECISION) END",
        folds_case=False,
    ),
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
    """Write the score of a linear or additive ranker as SQL.

    The scaling of a pipeline or model file is folded into the coefficients, ``w_j/s_j``; imputation becomes
    ``COALESCE``, a category ``CASE``. The function of a column in an additive ranker also becomes ``CASE``, with a
    straight line for each interval between its knots, in the column's original units. Sums are nested, so that
    thousands of columns stay below the databases' limits on depth. If the model would reject a row, its score is NULL,
    except that columns with coefficient 0 are left out.

    Parameters
    ----------
    model : fitted ranker, Pipeline, TableRanker or scorecard
        A pipeline may contain StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, SimpleImputer, OneHotEncoder
        and ColumnTransformer before its ranker.
    table : str, optional
        Write a whole statement, best row first, instead of an expression. A dot is part of the name.
    score : str
        Name of the score in the statement.
    id : str or sequence of str, optional
        Columns of the statement before the score; by default the id of the model, or all columns, after the score.
    dialect : {"standard", "sqlite", "duckdb", "postgresql"}, optional
        "standard" runs in all of them. The named ones are safer: in "sqlite" a misspelt column is an error; in the last
        two NaN counts as a missing value, as in the model; and in all three the score of an infinite value is NULL, and
        numeric categories are compared as numbers in numeric columns.
    feature_names : sequence of str, optional
        Names of the columns, for a model fitted on an array.
    digits : int
        Significant digits of the numbers; 17 is exact. Knots of an additive ranker are always exact.

    Returns
    -------
    str
        SQL without a semicolon.

    Notes
    -----
    Numeric columns must have a numeric type: a text such as "NA" is an error, or the number 0 in SQLite. Categories of
    a model file are compared as text without surrounding spaces (the model also strips tabs and other blanks), a whole
    number with or without a point and trailing zeros, and true and false also as 1 and 0. In "standard", the database
    must write non-integral numbers in the same way as the model. SQLite 3.40 reads about one number in 5,000 with
    another last digit, which can matter if an additive model has knots that are only a few roundings apart.

    Examples
    --------
    >>> from apexrank import PNormPush
    >>> model = PNormPush(p=2, alpha=0.1).fit([[0.0], [1.0], [2.0], [1.5]], [0, 0, 1, 0])
    >>> print(to_sql(model, feature_names=["amount"], table="payments", digits=3))
    SELECT -8.39e0 + 5.03e0 * CAST(r."amount" AS DOUBLE PRECISION) AS "score", r.*
    FROM "payments" AS r
    ORDER BY 1 DESC NULLS LAST
    """
    kind = dialect or "standard"
    check_choice("dialect", kind, DIALECTS)
    if not isinstance(digits, Integral) or isinstance(digits, bool) or not 1 <= digits <= 17:
        raise InputError(f"`digits` must be a whole number between 1 and 17, got {digits!r}")
    form = forms.model_form(model, feature_names)
    model = getattr(model, "model", model)  # a card refers to its model
    features.check_no_dates(form.columns, "SQL")
    writer = _Writer(DIALECTS[kind], int(digits), "" if table is None else f"{_ROWS}.")
    columns = list(dict.fromkeys(column.name for column in form.columns))
    seen: dict[str, str] = {}
    for name in columns if writer.dialect.folds_case else ():
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise InputError(
                f"columns {other!r} and {name!r} differ only by case, which most databases ignore: rename one"
            )
    expression = writer.expression(form)
    if table is None:
        return expression
    id = getattr(model, "id", None) if id is None else id
    shown = [id] if isinstance(id, str) else list(id or ())
    if score.lower() in map(str.lower, shown or [*columns, *getattr(model, "ignored", ())]):
        raise InputError(f"the statement has a column {score!r} already: choose another name of the score")
    named = f"{expression} AS {writer.name(score)}"
    parts = [*map(writer.column, shown), named] if shown else [named, f"{_ROWS}.*"]
    # By position: for two columns of one name SQLite would order by the table's own.
    return (
        f"SELECT {', '.join(parts)}\n"
        f"FROM {writer.name(table)} AS {_ROWS}\n"
        f"ORDER BY {parts.index(named) + 1} DESC NULLS LAST"
    )


class _Writer:
    """Writer of the parts of an expression in one dialect."""

    def __init__(self, dialect: Dialect, digits: int, prefix: str) -> None:
        self.dialect, self.digits, self.prefix = dialect, digits, prefix

    def name(self, name: str) -> str:
        if not name or "\0" in name:
            raise InputError(f"{name!r} cannot name anything in SQL: rename the column")
        quote = self.dialect.quote
        return quote + name.replace(quote, 2 * quote) + quote

    def column(self, name: str) -> str:
        return self.prefix + self.name(name)

    def number(self, value: float) -> str:
        """Numeric literal, rounded to ``digits``."""
        if not isfinite(value):
            raise InputError(f"a coefficient is {value}, which SQL cannot write: fit the model again")
        rounded = float(f"{value:.{self.digits - 1}e}") + 0.0  # adding 0 removes the sign of a zero
        if not isfinite(rounded):
            raise InputError(f"{value} cannot be written with `digits={self.digits}`: use more")
        return literal(rounded)

    def expression(self, form: forms.Form) -> str:
        """Sum over the functions of all columns and pairs; constant functions are added to the constant."""
        constant, terms, lines = form.intercept, [], False
        for effect in form.effects:
            if isinstance(effect, forms.Levels):
                if effect.unknown or any(effect.weights.values()):
                    terms.append(self._category(effect.column, effect.weights, effect.unknown))
            elif effect.is_constant:
                constant += float(effect.values[0])
            elif effect.is_line:
                lines, value = True, self._filled(effect.column)
                if effect.center:
                    value = f"({_nested_sum([value, self.number(-effect.center)])})"
                constant += float(effect.values[0])
                terms.append(f"{self.number(float(effect.slopes[0]))} * {value}")
            else:
                terms.append(self._curve(effect))
        terms += [self._pair(pair) for pair in form.pairs if pair.values.any()]
        total = _nested_sum([self.number(constant), *terms], " " if lines else "\n")
        for value in self.dialect.not_finite if lines else ():
            total = f"NULLIF({total}, {value})"
        return total

    def _double(self, column: features.TableColumn) -> str:
        value = f"CAST({self.column(column.name)} AS DOUBLE PRECISION)"
        return value if self.dialect.nan is None else f"NULLIF({value}, {self.dialect.nan})"

    def _filled(self, column: features.TableColumn) -> str:
        value = self._double(column)
        return value if column.fill is None else f"COALESCE({value}, {self.number(column.fill)})"

    def _curve(self, curve: forms.Curve) -> str:
        value = f"CAST({self.column(curve.column.name)} AS DOUBLE PRECISION)"
        nan = self.dialect.nan
        cases = [f"{value} IS NULL" if nan is None else f"{value} IS NULL OR {value} = {nan}"]
        cases[0] = f"WHEN {cases[0]} THEN {'NULL' if curve.missing is None else self.number(curve.missing)}"
        infinite = [one for one in self.dialect.not_finite if one != nan]
        if infinite:  # the function is constant beyond the last knot, but the model rejects infinities
            cases.append(f"WHEN {value} IN ({', '.join(infinite)}) THEN NULL")
        parts = (curve.bounds, curve.values, curve.slopes)
        return self._pieces(self._scaled(value, curve), parts, cases)

    def _pieces(self, value: str, parts: forms.Pieces, cases: Sequence[str] = ()) -> str:
        """One case per piece; neighbouring pieces with the same constant are merged."""
        bounds, values, slopes = parts
        lines, last = list(cases), len(bounds)
        for i, (height, slope) in enumerate(zip(values.tolist(), slopes.tolist(), strict=True)):
            if i < last and not slope and not slopes[i + 1] and height == values[i + 1]:
                continue
            worth = self.number(height)
            if slope:
                start = bounds[i - 1] if i else 0.0
                worth = _nested_sum([worth, f"{self.number(slope)} * ({self._less(value, start)})"])
            below = f"WHEN {value} < {literal(float(bounds[i]))} THEN" if i < last else "ELSE"
            lines.append(f"{below} {worth}")
        return _case(lines)

    def _less(self, value: str, center: float) -> str:
        return f"{value} {'-' if center > 0 else '+'} {literal(abs(float(center)))}" if center else value

    def _scaled(self, value: str, units: forms.Curve | forms.Side) -> str:
        """Number in the units of the knots, by the operations of the model."""
        value = self._less(value, units.center)
        return value if units.scale == 1 else f"({value}) / {literal(units.scale)}"

    def _pair(self, pair: forms.Pair) -> str:
        """Cases of the first column, whose values are functions of the second."""
        (x, y), (outer, inner) = map(self._side, pair.sides), (side.knots for side in pair.sides)
        ends = [self._pieces(y, forms.pieces(inner, pair.values[k])) for k in (0, -1)]
        lines = [f"WHEN {x} IS NULL OR {y} IS NULL THEN 0e0"]
        lines.append(f"WHEN {x} < {literal(float(outer[0]))} THEN {ends[0]}")
        for a, (low, high) in enumerate(pairwise(outer.tolist())):
            rise = self._pieces(y, forms.pieces(inner, (pair.values[a + 1] - pair.values[a]) / (high - low)))
            start = self._pieces(y, forms.pieces(inner, pair.values[a]))
            lines.append(f"WHEN {x} < {literal(high)} THEN {start}\n+ ({self._less(x, low)}) * {rise}")
        return _case([*lines, f"ELSE {ends[1]}"])

    def _side(self, side: forms.Side) -> str:
        """Number of a row that is compared with the knots of a pair; NULL if missing."""
        feature, column = side.feature, side.feature.column
        if side.levels:
            return self._category(column, side.levels, side.unknown)
        if not feature.is_number:
            return self._category(column, {feature.value: 1.0}, 0.0)
        value = self._scaled(self._filled(column), side)
        return value if value == self._filled(column) else f"({value})"

    def _category(self, column: features.TableColumn, weights: dict[Any, float], unknown: float) -> str:
        cases = self._missing_case(column, weights)
        for value in column.values:
            if value is not None and (column.knows_all or unknown or weights.get(value)):
                cases.append(f"WHEN {self._is(column, value)} THEN {self.number(weights.get(value, 0.0))}")
        if not cases:
            return self.number(unknown)
        end = "" if column.knows_all else f" ELSE {self.number(unknown)}"
        return f"CASE {' '.join(cases)}{end} END"

    def _missing_case(self, column: features.TableColumn, weights: dict[Any, float]) -> list[str]:
        """Case for a missing value; without it, a missing value counts as unknown."""
        value, values = self._category_value(column), column.values
        worth = self.number(weights.get(column.fill, 0.0))
        if column.as_text and (column.needs_value or None in values):
            gaps = [f"{value} IS NULL", f"{value} = ''"]
            if self.dialect.nan is not None and self.dialect.number is not None:  # the text NaN is a category
                gaps.append(f"{self.dialect.number.format(self.column(column.name))} = {self.dialect.nan}")
            worth = "NULL" if column.needs_value else worth
            return [f"WHEN {' OR '.join(gaps)} THEN {worth}"]
        if column.fill is not None or None in values:
            return [f"WHEN {value} IS NULL THEN {worth}"]
        return []

    def _category_value(self, column: features.TableColumn) -> str:
        if column.as_text:
            return f"TRIM(CAST({self.column(column.name)} AS VARCHAR))"
        numeric = all(isinstance(value, int | float) for value in column.values if value is not None)
        return self._double(column) if numeric else self.column(column.name)

    def _is(self, column: features.TableColumn, value: Any) -> str:
        """Condition that the column has this value."""
        name = self._category_value(column)
        if not isinstance(value, str):
            return f"{name} = {literal(float(value))}"
        if not column.as_text:
            return f"{name} = {text(value)}"
        known = [one for one in column.values if one is not None]
        if features.are_booleans(known):
            return f"{name} IN ({', '.join(map(text, features.spellings(value, known)[:2]))})"
        ways = [f"{name} = {text(value)}"]
        if features.is_whole(value):
            ways.append(f"RTRIM({name}, '0') = {text(f'{value}.')}")  # 3.0, and 3.00 of a decimal column
        number = features.as_number(value)
        if number is not None and self.dialect.number is not None:
            ways.append(f"{self.dialect.number.format(self.column(column.name))} = {literal(number)}")
        return " OR ".join(ways)


def _case(lines: Sequence[str]) -> str:
    r"""Format cases, one per line, indented except inside quoted text and names.

    Examples
    --------
    >>> print(_case(["WHEN x = 'a\nb' THEN 1e0", "ELSE 0e0"]))
    CASE
      WHEN x = 'a
    b' THEN 1e0
      ELSE 0e0
    END
    """
    own = "\n".join(["CASE", *lines])
    return _QUOTED_OR_LINE.sub(lambda part: "\n  " if part[0] == "\n" else part[0], own) + "\nEND"


def _nested_sum(terms: list[str], gap: str = " ") -> str:
    """Sum nested in halves, so that its depth is logarithmic in its length.

    Examples
    --------
    >>> _nested_sum(["a", "b", "-c"])
    'a + b - c'
    """
    if len(terms) <= 16:
        head, *rest = terms
        signed = (f"- {term[1:]}" if term.startswith("-") else f"+ {term}" for term in rest)
        return head + "".join(f"{gap}{term}" for term in signed)
    half = len(terms) // 2
    return f"({_nested_sum(terms[:half], gap)})\n+ ({_nested_sum(terms[half:], gap)})"


def text(value: str) -> str:
    """Quote text for SQL.

    Examples
    --------
    >>> print(text("it's"))
    'it''s'
    """
    return "'" + value.replace("'", "''") + "'"


def literal(value: float) -> str:
    """Format a number with an exponent, so that databases read it as a double.

    Examples
    --------
    >>> literal(3.0), literal(1e-05)
    ('3e0', '1e-05')
    """
    digits = repr(value)
    return digits if "e" in digits else f"{digits.removesuffix('.0')}e0"
