"""What differs from one database to another."""

from __future__ import annotations

from typing import NamedTuple


class Dialect(NamedTuple):
    """How a database differs from the others.

    ``not_finite`` are its NaN and infinities, as far as it has them; ``number`` is the number of a column ``{0}`` whose
    values are numbers, NULL of any other; ``folds_case`` says that names which differ by case are one.
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
    # Where SQLite knows no column of a name in double quotes, it takes the name for text and says nothing.
    "sqlite": Dialect(
        quote="`",
        not_finite=("9e999", "-9e999"),
        number="CASE WHEN TYPEOF({0}) IN ('integer', 'real') THEN {0} END",
    ),
    "duckdb": Dialect(
        nan=_NAN,
        not_finite=(_NAN, *_INFINITIES),
        # By way of text, because dates have no cast to numbers.
        number="CASE WHEN TYPEOF({0}) <> 'VARCHAR' THEN TRY_CAST(CAST({0} AS VARCHAR) AS DOUBLE PRECISION) END",
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


def text(value: str) -> str:
    """A text as SQL writes it.

    Examples
    --------
    >>> print(text("it's"))
    'it''s'
    """
    return "'" + value.replace("'", "''") + "'"


def literal(value: float) -> str:
    """A number with an exponent, which makes it a double, never a decimal or an integer.

    Examples
    --------
    >>> literal(3.0), literal(1e-05)
    ('3e0', '1e-05')
    """
    digits = repr(value)
    return digits if "e" in digits else f"{digits.removesuffix('.0')}e0"
