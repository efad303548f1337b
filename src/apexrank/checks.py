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


def on_host(values: Any) -> Any:
    """An array of PyTorch or CuPy as one of NumPy, copied from its device; everything else as it is.

    Examples
    --------
    >>> on_host([1, 2])
    [1, 2]
    """
    if hasattr(values, "detach") and hasattr(values, "cpu"):  # a tensor
        return values.detach().cpu().numpy()
    if hasattr(values, "get") and hasattr(values, "__cuda_array_interface__"):
        return values.get()
    return values
