"""Shared argument validation: numbers, weights, group ids, names of atoms, forked processes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from math import inf
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError, unknown

Atom = TypeVar("Atom")


def check_finite(name: str, value: Any, lowest: float) -> None:
    """Raise InputError unless ``value`` is a finite number of at least ``lowest``.

    Examples
    --------
    >>> check_finite("tol", -1, 0)
    Traceback (most recent call last):
    apexrank.errors.InputError: `tol` must be a finite number of at least 0, got -1
    """
    if not isinstance(value, Real) or not lowest <= float(value) < inf:
        raise InputError(f"`{name}` must be a finite number of at least {lowest}, got {value!r}")


def check_between(name: str, value: Any, lowest: float, highest: float) -> None:
    """Raise InputError unless ``value`` is a number from ``lowest`` to ``highest``."""
    if not isinstance(value, Real) or not lowest <= float(value) <= highest:
        raise InputError(f"`{name}` must be between {lowest} and {highest}, got {value!r}")


def check_count(name: str, value: Any, lowest: int = 1, otherwise: str = "") -> None:
    """Raise InputError unless ``value`` is a whole number of at least ``lowest``; ``otherwise`` names alternatives.

    Examples
    --------
    >>> check_count("max_iter", 2.5)
    Traceback (most recent call last):
    apexrank.errors.InputError: `max_iter` must be a whole number of at least 1, got 2.5
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < lowest:
        raise InputError(f"`{name}` must be a whole number of at least {lowest}{otherwise}, got {value!r}")


def check_choice(name: str, value: Any, choices: Any) -> None:
    """Raise InputError unless ``value`` is one of ``choices``, an iterable of names or a ``Literal`` type.

    Examples
    --------
    >>> from typing import Literal
    >>> check_choice("test", "z", Literal["permutation", "t"])
    Traceback (most recent call last):
    apexrank.errors.InputError: unknown `test` 'z': use one of permutation, t
    """
    names = get_args(choices) or tuple(choices)
    if value not in names:
        raise unknown(f"`{name}`", value, names)


def check_two_classes(classes: Sequence[Any], kind: str = "") -> None:
    """Raise InputError unless the target has two values; ``kind`` is added to the message about more values.

    Examples
    --------
    >>> check_two_classes(["a"])
    Traceback (most recent call last):
    apexrank.errors.InputError: ranking needs positives and negatives, but the target has only one class: 'a'
    """
    if len(classes) > 2:
        raise InputError(
            f"Only binary classification is supported: the target has {len(classes)} values{kind}; "
            "mark the wanted class as positive first"
        )
    if len(classes) < 2:
        raise InputError(
            f"ranking needs positives and negatives, but the target has only one class: {classes[0]!r}"
        )


def check_folds(folds: int, y: ArrayLike, groups: ArrayLike | None) -> None:
    """Raise InputError if there are fewer groups, or rows of either class, than folds.

    Examples
    --------
    >>> check_folds(3, [0, 1, 0, 1], None)
    Traceback (most recent call last):
    apexrank.errors.InputError: 3 folds need at least 3 rows of each class, got 2: give more rows, or lower `cv`
    """
    counts = np.unique(np.asarray(y), return_counts=True)[1]
    what, most = (
        ("rows of each class", counts.min()) if groups is None else ("groups", len(np.unique(groups)))
    )
    if most < folds:
        raise InputError(
            f"{folds} folds need at least {folds} {what}, got {most}: give more rows, or lower `cv`"
        )


# squares of numbers beyond these, and sums of the squares, overflow or underflow
LARGEST, SMALLEST = 1e120, 1e-140
# tighter limits for weights, which are raised to higher powers
HEAVIEST, LIGHTEST = 1e60, 1e-60
POWERS = 150  # largest ratio of non-zero weights, as a power of ten
_BLOCK = 2**19  # numbers copied at a time


def check_weights(weight: np.ndarray) -> None:
    """Raise InputError for weights too large, too small or too far apart for floating-point sums; 0 is allowed.

    Examples
    --------
    >>> check_weights(np.exp(-2.0 * np.arange(120)))
    >>> check_weights(np.array([0.0, 1e300]))
    Traceback (most recent call last):
    apexrank.errors.InputError: the largest `sample_weight` is 1e+300, not between 1e-60 and 1e+60: divide all by ...
    """
    check_weight_range(*weight_range(weight))


def weight_range(weight: ArrayLike | None) -> tuple[float, float]:
    """Return the smallest weight above 0 and the largest weight; infinity and 0 if all are 0.

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
    """Apply the checks of :func:`check_weights` to the smallest and largest weight."""
    if largest > 0 and not LIGHTEST <= largest <= HEAVIEST:
        raise InputError(
            f"the largest `sample_weight` is {largest:.3g}, not between {LIGHTEST} and {HEAVIEST}: "
            "divide all by their mean"
        )
    if smallest < 10.0**-POWERS * largest:
        raise InputError(
            f"`sample_weight` spans more than {POWERS} powers of ten ({smallest:.3g} to {largest:.3g}): "
            "set the smallest to 0"
        )


def canonical(X: Any) -> Any:
    """Return a CSR matrix with sorted columns and no duplicate entries, which are summed; X itself if it has none.

    Examples
    --------
    >>> from scipy import sparse
    >>> canonical(sparse.csr_array(([1.0, 2.0], [0, 0], [0, 2]))).data.tolist()
    [3.0]
    """
    if not X.has_canonical_format:
        X = X.copy()  # it may be the user's
        X.sum_duplicates()
    return X


def check_not_huge(name: str, values: Any) -> None:
    """Raise InputError for numbers whose squares overflow, in an array or a CSR matrix.

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
    # the sum of squares needs one pass and no copy; the numbers themselves are inspected only if it is large
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
    # not np.vdot, which passes unaligned arrays (Dask sends such) to BLAS, where they may crash
    with np.errstate(over="ignore", invalid="ignore"):
        if values.flags.forc:
            flat = values.ravel(order="K")
            return float(flat @ flat)
        rows = max(1, _BLOCK // max(1, values[:1].size))  # a non-contiguous view is copied in blocks
        flats = (values[start : start + rows].ravel() for start in range(0, len(values), rows))
        return sum(float(flat @ flat) for flat in flats)


class Segments(NamedTuple):
    """Rows sorted by group: group ``q`` has the rows ``order[indptr[q]:indptr[q + 1]]``.

    Rows keep their input order within a group.
    """

    order: np.ndarray
    indptr: np.ndarray
    names: np.ndarray

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def rows(self, q: int) -> np.ndarray:
        """Row numbers of group ``q``, in input order."""
        return self.order[self.indptr[q] : self.indptr[q + 1]]

    def of_rows(self) -> np.ndarray:
        """Number of the group of each row."""
        index = np.empty(len(self.order), dtype=np.intp)
        index[self.order] = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        return index


def segment(groups: ArrayLike | None, n: int) -> Segments:
    """Sort ``n`` rows by their group id (any type, any order); ``None`` makes one group of all rows.

    Examples
    --------
    >>> segments = segment(["b", "a", "b"], 3)
    >>> segments.order.tolist(), segments.indptr.tolist(), segments.names.tolist()
    ([1, 0, 2], [0, 1, 3], ['a', 'b'])
    """
    if groups is None:
        return Segments(np.arange(n), np.array([0, n]), np.array([0]))
    ids = np.asarray(groups)
    if ids.shape != (n,):
        raise InputError(f"`groups` needs one id per row: expected {n} ids, got shape {ids.shape}")
    missing = np.array([is_missing(id_) for id_ in ids]) if ids.dtype.kind == "O" else ids != ids
    if np.any(missing):
        raise InputError(f"`groups` has a missing id in row {int(np.argmax(missing))}: fill or drop it")
    try:
        names, index, counts = np.unique(ids, return_inverse=True, return_counts=True)
    except TypeError:
        raise InputError(
            "`groups` mixes ids of several types, such as text and numbers: use one type"
        ) from None
    return Segments(np.argsort(index, kind="stable"), np.concatenate([[0], np.cumsum(counts)]), names)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, nan, NaT or pandas' NA.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), np.datetime64("NaT"), "", 0)]
    [True, True, True, False, False]
    """
    try:
        return value is None or bool(value != value)  # nan and NaT differ from themselves
    except TypeError:  # pandas' NA is neither true nor false
        return True


class Registry(Generic[Atom]):
    """Registry of a family of atoms by name, so that ``loss="hinge"`` and ``loss=Hinge()`` are equivalent."""

    def __init__(
        self, kind: str, base: type[Atom], members: Iterable[type[Any]], unlisted: Sequence[str] = ()
    ) -> None:
        self.kind, self.base, self.unlisted = kind, base, unlisted  # names that messages do not suggest
        self.members: dict[str, type[Any]] = {member.name: member for member in members}

    def get(self, spec: str | Atom, **arguments: Any) -> Atom:
        """Return ``spec`` itself if it is an atom, or create the atom it names with the arguments it accepts."""
        if isinstance(spec, self.base):
            return spec
        if not isinstance(spec, str) or spec not in self.members:
            raise unknown(self.kind, spec, [name for name in self.members if name not in self.unlisted])
        member = self.members[spec]
        known = getattr(member, "__dataclass_fields__", {})
        return member(**{name: value for name, value in arguments.items() if name in known})


def is_tensor(X: Any) -> bool:
    """Return whether X is a PyTorch tensor."""
    torch = sys.modules.get("torch")  # a tensor exists only if torch has been imported
    return torch is not None and isinstance(X, torch.Tensor)


def is_device_array(X: Any) -> bool:
    """Return whether X is an array of another library than NumPy, to be processed on its device.

    Examples
    --------
    >>> is_device_array(np.zeros(3)), is_device_array([[1.0]])
    (False, False)
    """
    # CuPy has only the second attribute
    foreign = hasattr(X, "__array_namespace__") or hasattr(X, "__cuda_array_interface__")
    return is_tensor(X) or (foreign and not isinstance(X, np.ndarray | np.generic))


def on_host(values: Any) -> Any:
    """Copy a PyTorch or CuPy array to a NumPy array on the host; return everything else as it is.

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
    """Return whether polars can use its threads in this process.

    A process forked after polars has started its threads does not have them, and polars would deadlock there: callers
    check first (:func:`check_polars_threads`) or do without polars. A process forked earlier starts its own threads.

    Examples
    --------
    >>> has_polars_threads()
    True
    """
    return not _forks.lost_threads


def check_polars_threads(what: str) -> None:
    """Raise InputError with the operation ``what`` in a process where polars would deadlock.

    Examples
    --------
    >>> check_polars_threads("tables are read")
    """
    if _forks.lost_threads:
        raise InputError(
            f"{what} by polars, whose threads did not survive the fork of this process: "
            "start workers with multiprocessing's method 'spawn' or 'forkserver', or with joblib"
        )


def check_frame(X: Any) -> None:
    """Raise InputError for a polars frame if converting it would deadlock in this process.

    Examples
    --------
    >>> check_frame(np.eye(2))
    """
    if type(X).__module__.startswith("polars") and type(X).__name__.endswith("Frame"):
        check_polars_threads("a frame as X is converted")


class _Forks:
    """State of polars' threads across a fork, recorded in the parent and inherited by the child."""

    def __init__(self) -> None:
        self.has_threads = self.lost_threads = False

    def before(self) -> None:
        self.has_threads = "polars" in sys.modules and _polars_works()

    def in_child(self) -> None:
        self.lost_threads = self.lost_threads or self.has_threads


def _polars_works() -> bool:
    """Return whether polars has started its threads; assume so if the system does not name threads."""
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
