"""Checks of arguments that several layers share."""

from __future__ import annotations

from math import inf
from numbers import Real
from typing import Any

from apexrank.errors import InputError


def check_finite(name: str, value: Any, lowest: float) -> None:
    """Refuse what is not a finite number of at least ``lowest``.

    Examples
    --------
    >>> check_finite("tol", -1, 0)
    Traceback (most recent call last):
    apexrank.errors.InputError: tol must be a finite number of at least 0, got -1
    """
    if not isinstance(value, Real) or not lowest <= float(value) < inf:
        raise InputError(f"{name} must be a finite number of at least {lowest}, got {value!r}")


def check_between(name: str, value: Any, lowest: float, highest: float) -> None:
    """Refuse what is not a number from ``lowest`` to ``highest``."""
    if not isinstance(value, Real) or not lowest <= float(value) <= highest:
        raise InputError(f"{name} must be between {lowest} and {highest}, got {value!r}")
