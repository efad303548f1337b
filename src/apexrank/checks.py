"""Checks of arguments that several layers share."""

from __future__ import annotations

import os
import re
import sys
from math import inf
from numbers import Integral, Real
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

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


def check_count(name: str, value: Any, lowest: int = 1, otherwise: str = "") -> None:
    """Raise InputError unless ``value`` is a whole number of at least ``lowest``; ``otherwise`` names what else may be.

    Examples
    --------
    >>> check_count("max_iter", 2.5)
    Traceback (most recent call last):
    apexrank.errors.InputError: max_iter must be a whole number of at least 1, got 2.5
    """
    if not isinstance(value, Integral) or value < lowest:
        raise InputError(f"{name} must be a whole number of at least {lowest}{otherwise}, got {value!r}")


def check_choice(name: str, value: Any, choices: Any) -> None:
    """Raise InputError unless ``value`` is one of the strings of the ``Literal`` type ``choices``.

    Examples
    --------
    >>> from typing import Literal
    >>> check_choice("test", "z", Literal["permutation", "t"])
    Traceback (most recent call last):
    apexrank.errors.InputError: unknown test 'z': use one of permutation, t
    """
    if value not in get_args(choices):
        raise InputError(f"unknown {name} {value!r}: use one of {', '.join(get_args(choices))}")


# the squares of numbers beyond these, and sums of them, leave the range of floating point
LARGEST, SMALLEST = 1e120, 1e-100
# weights are taken to higher powers
HEAVIEST, LIGHTEST = 1e60, 1e-60
POWERS = 150  # of ten between weights that are not 0
_BLOCK = 2**19  # numbers of which a copy is made at a time


def check_weights(weight: np.ndarray) -> None:
    """Refuse weights of a size, or so far from each other, that they cannot be computed with; 0 can.

    Examples
    --------
    >>> check_weights(np.exp(-2.0 * np.arange(120)))
    >>> check_weights(np.array([0.0, 1e300]))
    Traceback (most recent call last):
    apexrank.errors.InputError: the largest sample_weight is 1e+300, not between 1e-60 and 1e+60: divide all by ...
    """
    check_weight_range(*weight_range(weight))


def weight_range(weight: ArrayLike | None) -> tuple[float, float]:
    """The smallest weight that is not 0, and the largest; infinite and 0 where all are 0.

    Examples
    --------
    >>> weight_range(np.array([0.0, 0.5, 2.0]))
    (0.5, 2.0)
    """
    if weight is None:
        return 1.0, 1.0
    weight = np.asarray(weight, dtype=np.float64)
    return float(weight.min(initial=np.inf, where=weight > 0)), float(weight.max(initial=0.0))


def check_weight_range(smallest: float, largest: float) -> None:
    """Refuse a range of weights, as :func:`check_weights` does for the weights themselves."""
    if largest > 0 and not LIGHTEST <= largest <= HEAVIEST:
        raise InputError(
            f"the largest sample_weight is {largest:.3g}, not between {LIGHTEST} and {HEAVIEST}: "
            "divide all by their mean"
        )
    if smallest < 10.0**-POWERS * largest:
        raise InputError(
            f"sample_weight spans more than {POWERS} powers of ten ({smallest:.3g} to {largest:.3g}): "
            "set the smallest to 0"
        )


def check_not_huge(name: str, values: Any) -> None:
    """Refuse numbers whose squares could not be computed with, in an array or a sparse matrix by rows.

    Examples
    --------
    >>> check_not_huge("y", np.array([1.0, -1e200]))
    Traceback (most recent call last):
    apexrank.errors.InputError: y has numbers as large as 1e+200, beyond 1e+120: scale it first
    >>> check_not_huge("X", np.array([[1.0, 1e200]]))
    Traceback (most recent call last):
    apexrank.errors.InputError: column 1 of X has numbers as large as 1e+200, beyond 1e+120: scale it first
    """
    is_sparse = hasattr(values, "indptr")
    numbers = values.data if is_sparse else values
    # the sum of squares is one pass without a copy; only where it is large the numbers are looked at
    if numbers.dtype != np.float64 or _sum_of_squares(numbers) <= LARGEST**2:
        return
    sizes = np.maximum(numbers.max(axis=0), -numbers.min(axis=0)) if numbers.ndim == 2 else np.abs(numbers)
    place = int(sizes.argmax())
    if sizes[place] > LARGEST:
        column = values.indices[place] if is_sparse else place
        name = f"column {column} of {name}" if values.ndim == 2 else name
        raise InputError(
            f"{name} has numbers as large as {sizes[place]:.3g}, beyond {LARGEST}: scale it first"
        )


def _sum_of_squares(values: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        if values.flags.forc:
            flat = values.ravel(order="K")
            return float(np.vdot(flat, flat))
        rows = max(1, _BLOCK // max(1, values[:1].size))  # a view that is no block of memory is copied
        parts = (values[start : start + rows] for start in range(0, len(values), rows))
        return sum(float(np.vdot(part, part)) for part in parts)


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


def check_frame(X: Any) -> None:
    """Refuse a frame of polars as table of numbers where polars has no threads to make one of its columns.

    Examples
    --------
    >>> check_frame(np.eye(2))
    """
    if type(X).__module__.startswith("polars") and type(X).__name__.endswith("Frame"):
        check_polars_threads("a frame as X is converted")


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
