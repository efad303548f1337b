"""Groups (queries, lists) in one place: from one id per row to contiguous segments."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError


class Segments(NamedTuple):
    """Rows sorted by group: group ``q`` owns the rows ``order[indptr[q]:indptr[q + 1]]``.

    Rows keep their given order inside a group.
    """

    order: np.ndarray
    indptr: np.ndarray
    names: np.ndarray

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def rows(self, q: int) -> np.ndarray:
        """Row numbers of group ``q``, in the order they were given."""
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
        raise InputError(f"groups needs one id per row: expected {n} ids, got shape {ids.shape}")
    missing = np.array([is_missing(id_) for id_ in ids]) if ids.dtype.kind == "O" else ids != ids
    if np.any(missing):
        raise InputError(f"groups has a missing id in row {int(np.argmax(missing))}: fill or drop it")
    try:
        names, index, counts = np.unique(ids, return_inverse=True, return_counts=True)
    except TypeError:
        raise InputError("groups has ids of several kinds, such as text and numbers: use one") from None
    return Segments(np.argsort(index, kind="stable"), np.concatenate([[0], np.cumsum(counts)]), names)


def is_missing(id_: Any) -> bool:
    """None, nan and NaT, which differ from themselves, and pandas' NA, which compares with nothing."""
    try:
        return id_ is None or bool(id_ != id_)
    except TypeError:
        return True
