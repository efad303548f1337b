"""Numbers printed in the papers (the CSV files here), and formatting of our numbers with the same digits."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from importlib.resources import files

import polars as pl


def printed_table(name: str) -> pl.DataFrame:
    """Read the numbers of a printed table as text, which keeps every digit.

    Examples
    --------
    >>> printed_table("table1")["R4_exp"].to_list()
    ['17160.17', '72289.39', '130515.09']
    """
    return pl.read_csv(files(__name__).joinpath(f"{name}.csv").read_bytes(), infer_schema=False)


def like_printed(value: float, printed: str, rounding: str = ROUND_HALF_UP) -> str:
    """Write ``value`` with the digits and the power of ten of a printed number.

    Examples
    --------
    >>> like_printed(3125.0, "3.13e3"), like_printed(235623.9, "23.56e4"), like_printed(0.83714, "0.8370")
    ('3.13e3', '23.56e4', '0.8371')
    """
    mantissa, mark, power = printed.partition("e")
    # Rounding to twelve digits, far more than are printed, removes the last bits, which would spoil exact halves.
    exact = Decimal(f"{value:.12g}").scaleb(-int(power or 0))
    digits = Decimal(1).scaleb(Decimal(mantissa).as_tuple().exponent)  # type: ignore[arg-type]
    return f"{exact.quantize(digits, rounding=rounding)}{mark}{power}"


def power_of_ten(note: str | None) -> float:
    """Return the factor that the paper removed, from a note such as "x1e10"; 1 without a note.

    Examples
    --------
    >>> power_of_ten("x1e10"), power_of_ten(None)
    (10000000000.0, 1.0)
    """
    return float((note or "x1").removeprefix("x"))
