"""Checks of arguments that several layers share."""

from __future__ import annotations

import os
import re
import sys
from math import inf
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

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


# the squares of numbers beyond these, and sums of them, leave the range of floating point
LARGEST, SMALLEST = 1e100, 1e-100
# weights are taken to higher powers
HEAVIEST, LIGHTEST = 1e60, 1e-60


def check_weights(weight: np.ndarray) -> None:
    """Refuse weights that are neither 0 nor of a size to be computed with.

    Examples
    --------
    >>> check_weights(np.array([0.0, 1e300]))
    Traceback (most recent call last):
    apexrank.errors.InputError: sample_weight has 1e+300: weights are 0 or between 1e-60 and 1e+60; divide all by ...
    """
    odd = (weight > HEAVIEST) | ((weight > 0) & (weight < LIGHTEST))
    if odd.any():
        raise InputError(
            f"sample_weight has {weight[odd][0]:.3g}: weights are 0 or between {LIGHTEST} and {HEAVIEST}; "
            "divide all by their mean"
        )


def check_not_huge(name: str, values: np.ndarray) -> None:
    """Refuse numbers whose squares could not be computed with.

    Examples
    --------
    >>> check_not_huge("X", np.array([1.0, -1e200]))
    Traceback (most recent call last):
    apexrank.errors.InputError: X has numbers as large as 1e+200, beyond 1e+100: scale it first
    """
    if values.dtype == np.float64 and values.size:
        largest = max(float(values.max()), -float(values.min()))
        if largest > LARGEST:
            raise InputError(f"{name} has numbers as large as {largest:.3g}, beyond {LARGEST}: scale it first")


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


def has_polars_threads() -> bool:
    """Whether polars can sort, filter and read here: a process forked after it had begun to has none of its threads.

    polars would wait for them for ever, so that who needs them asks first (:func:`check_polars_threads`), or takes
    another way. A process forked before polars did any work starts threads of its own.

    Examples
    --------
    >>> has_polars_threads()
    True
    """
    return not _forks.lost_threads


def check_polars_threads(what: str) -> None:
    """Refuse ``what`` where polars would wait for ever for threads that a fork did not copy.

    Examples
    --------
    >>> check_polars_threads("tables are read")
    """
    if _forks.lost_threads:
        raise InputError(
            f"{what} by polars, whose threads did not survive that this process was forked: "
            "start workers with multiprocessing's method 'spawn' or 'forkserver', or with joblib"
        )


class _Forks:
    """What a fork does to polars: looked at in the parent, which still has the threads, and kept in the child."""

    def __init__(self) -> None:
        self.has_threads = self.lost_threads = False

    def before(self) -> None:
        self.has_threads = "polars" in sys.modules and _polars_works()

    def in_child(self) -> None:
        self.lost_threads = self.lost_threads or self.has_threads


def _polars_works() -> bool:
    """Whether polars has started its threads; where the system does not name them, they are taken to be there."""
    names = list(Path("/proc/self/task").glob("*/comm"))
    return not names or any(re.match(r"polars-\d", _content(name)) for name in names)


def _content(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the thread has just ended
        return ""


_forks = _Forks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_forks.before, after_in_child=_forks.in_child)
