"""Constraints on parameters, declared once for each estimator in scikit-learn's ``_parameter_constraints``.

An estimator checks them by ``@checked`` on ``fit``; ``estimator._validate_params()`` checks them before any data are
read, and so does ``apexrank.load``. A bad value raises scikit-learn's InvalidParameterError, which is a ValueError. A
relation between parameters is a line in the estimator's own ``_validate_params``, after scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, get_args

from sklearn.base import _fit_context
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

from apexrank.validation import Registry

__all__ = [
    "HasMethods",
    "InvalidParameterError",
    "above",
    "atom",
    "between",
    "checked",
    "names",
    "number",
    "validate_parameter_constraints",
    "whole",
]

checked = _fit_context(prefer_skip_nested_validation=False)


def number(lowest: float) -> Interval:
    """Return the constraint of a finite number of at least ``lowest``.

    Examples
    --------
    >>> print(number(0))
    a float in the range [0.0, inf)
    """
    return Interval(Real, lowest, None, closed="left")


def above(lowest: float) -> Interval:
    """Return the constraint of a finite number above ``lowest``."""
    return Interval(Real, lowest, None, closed="neither")


def between(lowest: float, highest: float, closed: str = "both") -> Interval:
    """Return the constraint of a number between two others."""
    return Interval(Real, lowest, highest, closed=closed)


def whole(lowest: int = 1) -> Interval:
    """Return the constraint of a whole number of at least ``lowest``."""
    return Interval(Integral, lowest, None, closed="left")


def names(choices: Any) -> StrOptions:
    """Return the constraint of one of some names, given as an iterable or as a ``Literal`` type.

    Examples
    --------
    >>> from typing import Literal
    >>> print(names(Literal["top", "bottom"]))
    a str among {'top', 'bottom'}
    """
    options: Iterable[str] = get_args(choices) or choices
    return StrOptions(dict.fromkeys(options).keys())  # in this order; a set would have any


def atom(registry: Registry[Any]) -> list[Any]:
    """Return the constraints of an atom: its name, or an instance.

    Examples
    --------
    >>> from apexrank.prices import PRICES
    >>> print(*atom(PRICES))
    a str among {'power', 'identity', 'exponential', 'log1p'} <class 'apexrank.prices.Price'>
    """
    return [names(name for name in registry.members if name not in registry.unlisted), registry.base]
