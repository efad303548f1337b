"""What boosted trees know of the rows when they call an objective or a measure."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError


class Judged(NamedTuple):
    """Labels, weights and group ids of rows; ``list_weight`` has one weight per list, repeated for its rows."""

    y: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray | None
    list_weight: np.ndarray | None

    def same(self, other: Judged) -> bool:
        """Whether both are equal, number by number."""
        return all(
            a is b or (a is not None and b is not None and np.array_equal(a, b))
            for a, b in zip(self, other, strict=True)
        )


TWO_ROWS = Judged(np.array([1.0, 0.0]), None, None, None)  # the least data on which parameters can be tried


def judged_rows(
    first: Any, second: Any, sample_weight: Any, group: Any, ids: ArrayLike | None
) -> tuple[np.ndarray, Judged]:
    """Scores and rows of a call, which is either (scores, data) or (labels, scores, weights, sizes of the groups).

    ``ids`` are group ids of the user; they take the place of the sizes.

    Examples
    --------
    >>> scores, rows = judged_rows([1, 0, 1], [0.5, 0.2, 0.1], None, [2, 1], None)
    >>> scores.tolist(), rows.y.tolist(), rows.groups.tolist()
    ([0.5, 0.2, 0.1], [1.0, 0.0, 1.0], [0, 0, 1])
    """
    if hasattr(second, "get_label"):
        scores, y = first, second.get_label()
        sample_weight, group = second.get_weight(), second.get_group()
    else:
        y, scores = first, second
    scores, y = (np.asarray(values, dtype=float).ravel() for values in (scores, y))
    if len(scores) != len(y):
        raise InputError(
            f"there are {len(scores)} scores for {len(y)} labels: several scores a row are not ranked"
        )
    if not np.isfinite(y).all():
        raise InputError(
            f"the label is missing or infinite in row {int(np.argmin(np.isfinite(y)))}: fill or drop it"
        )
    sizes, weight = _given(group), _given(sample_weight)
    return scores, _with_weights(y, weight, sizes, _ids(ids, sizes, len(y)))


def _given(values: Any) -> np.ndarray | None:
    """XGBoost has empty arrays where LightGBM has None."""
    return None if values is None or len(values) == 0 else np.asarray(values)


def _ids(ids: ArrayLike | None, sizes: np.ndarray | None, n: int) -> np.ndarray | None:
    if ids is not None:
        given = np.asarray(ids)
        if given.shape != (n,):
            raise InputError(
                f"groups needs one id per row: expected {n} ids, got shape {given.shape}; "
                "rows held out need ids of their own"
            )
        return given
    if sizes is None:
        return None
    if sizes.sum() != n:
        raise InputError(f"the sizes of the groups sum to {int(sizes.sum())}, but there are {n} rows")
    return np.repeat(np.arange(len(sizes)), sizes)


def _with_weights(
    y: np.ndarray, weight: np.ndarray | None, sizes: np.ndarray | None, groups: np.ndarray | None
) -> Judged:
    if weight is None:
        return Judged(y, None, groups, None)
    if len(weight) == len(y):
        return Judged(y, weight.astype(float), groups, None)
    if sizes is not None and len(weight) == len(sizes):  # XGBoost weighs whole queries
        return Judged(y, None, groups, np.repeat(weight.astype(float), sizes))
    raise InputError(f"there are {len(weight)} weights for {len(y)} rows: give one per row, or one per group")
