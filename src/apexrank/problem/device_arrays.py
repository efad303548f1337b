"""Arrays that live on a device: PyTorch tensors, CuPy arrays, and others that follow the array API standard."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from apexrank.errors import InputError
from apexrank.problem.design import SCALE_ROWS
from apexrank.validation import on_host

Array = Any  # of any array library

BLOCK_BYTES = 2**28  # of rows in double precision that are worked on at once


def is_device_array(X: Any) -> bool:
    """Whether X is an array of another library than NumPy, to be worked on where it is.

    Examples
    --------
    >>> is_device_array(np.zeros(3)), is_device_array([[1.0]])
    (False, False)
    """
    torch = sys.modules.get("torch")  # a tensor can only come from a module that is there
    if torch is not None and isinstance(X, torch.Tensor):
        return True
    foreign = hasattr(X, "__array_namespace__") or hasattr(
        X, "__cuda_array_interface__"
    )  # CuPy has the second only
    return foreign and not isinstance(X, np.ndarray | np.generic)


def is_tensor(X: Any) -> bool:
    """Whether X is a PyTorch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def namespace(X: Array) -> Any:
    """The functions of the array API standard for arrays like X."""
    return _compat().array_namespace(X)


def _compat() -> Any:
    for name in ("array_api_compat", "sklearn.externals.array_api_compat"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise InputError("arrays on a device need array-api-compat: pip install array-api-compat")


def to_device(values: Any, like: Array, dtype: Any = None) -> Array:
    """Values as an array beside ``like``, on its device."""
    xp = namespace(like)
    if is_device_array(values) and namespace(values) is not xp:
        values = to_host(values)
    if is_tensor(values):
        values = values.detach()  # nothing is differentiated here
    moved = values if is_device_array(values) else xp.asarray(np.array(values, order="C"))
    moved = _compat().to_device(moved, _compat().device(like))
    return moved if dtype is None else xp.astype(moved, dtype)


def to_host(values: Any) -> np.ndarray:
    """A NumPy array of the values of an array of any library.

    Examples
    --------
    >>> to_host([1.0, 2.0])
    array([1., 2.])
    """
    return np.asarray(on_host(values))


def host_hint(X: Array) -> str:
    """How X comes to the host, for messages."""
    if is_tensor(X):
        return "X.cpu().numpy()"
    return "X.get()" if hasattr(X, "__cuda_array_interface__") else "numpy.asarray(X)"


def row_blocks(X: Array) -> Iterator[slice]:
    """Slices of rows of which a copy in double precision fits."""
    rows = max(1, BLOCK_BYTES // (8 * max(1, X.shape[1])))
    return (slice(a, min(a + rows, X.shape[0])) for a in range(0, X.shape[0], rows))


def checked_matrix(X: Array) -> Array:
    """X itself, without its gradient, if it is a dense matrix of finite floating point numbers."""
    if is_tensor(X):
        X = X.detach()
        if str(X.layout) != "torch.strided":
            raise InputError(
                "a sparse tensor cannot be fitted: use X.to_dense(), or a SciPy matrix on the host"
            )
    xp = namespace(X)
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(f"X needs shape (n_samples, n_features), both at least 1, got {tuple(X.shape)}")
    if X.dtype not in (xp.float32, xp.float64):
        raise InputError(f"X on a device must be float32 or float64, got {X.dtype}: convert it first")
    # the sum is one pass without a copy; only where it is not finite the entries are looked at
    if not bool(xp.isfinite(xp.sum(X))) and not all(bool(xp.all(xp.isfinite(X[b]))) for b in row_blocks(X)):
        raise InputError("Input X contains NaN or infinity: fill or drop those rows")
    return X


def checked_labels(y: Any, X: Array) -> tuple[np.ndarray, Array]:
    """The two classes, and which rows are of the second one, on the device of X."""
    n = X.shape[0]
    values = _one_column(y) if is_device_array(y) else column_or_1d(np.asarray(y), warn=True)
    if tuple(values.shape) != (n,):
        raise InputError(f"y needs one label for each of the {n} rows of X, got shape {tuple(values.shape)}")
    if is_device_array(values):
        values = to_device(values, X)
    elif values.dtype.kind == "O":
        check_classification_targets(values)  # text is one type of labels, numbers as objects are not
    xp = namespace(values)
    low, high = _ends(values, xp)
    if not bool(xp.all((values == low) | (values == high))):
        check_classification_targets(to_host(values))
        raise InputError(
            "Only binary classification is supported: the target has more than two values; mark the wanted class "
            "as positive first"
        )
    classes = (
        to_host(xp.stack([low, high])) if is_device_array(values) else np.array([low, high], values.dtype)
    )
    check_classification_targets(classes)
    if low == high:
        raise InputError(
            f"ranking needs positives and negatives, but the target has only one class: {classes.tolist()[0]!r}"
        )
    return classes, to_device(values == high, X)


def _one_column(y: Array) -> Array:
    """Labels of shape (n,), from a column too, with the warning that NumPy's arrays get from scikit-learn."""
    if y.ndim != 2 or y.shape[1] != 1:
        return y
    message = "a column-vector y was passed where a 1d array was expected: use y[:, 0]"
    warnings.warn(message, DataConversionWarning, stacklevel=2)
    return y[:, 0]


def _ends(values: Array, xp: Any) -> tuple[Any, Any]:
    """Lowest and highest label, of any type."""
    if isinstance(values, np.ndarray) and values.dtype.kind not in "biuf":
        found = np.unique(values)
        return found[0], found[-1]
    if "bool" in str(values.dtype):
        return xp.all(values), xp.any(values)
    low, high = xp.min(values), xp.max(values)
    if bool(low != low):
        raise InputError("Input y contains NaN: fill or drop those rows")
    return low, high


def checked_weights(sample_weight: Any, X: Array) -> Array:
    """Weights in double precision on the device of X: one finite number of at least 0 per row, or one for all."""
    xp, n = namespace(X), X.shape[0]
    needed = f"sample_weight needs one number for each of the {n} rows of X"
    if not is_device_array(sample_weight):
        try:
            sample_weight = np.asarray(sample_weight, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(needed) from None
    weight = to_device(sample_weight, X, xp.float64)
    if weight.ndim == 0:
        weight = xp.full((n,), float(weight), dtype=xp.float64, device=_compat().device(X))
    if tuple(weight.shape) != (n,):
        raise InputError(needed)
    if not bool(xp.all(xp.isfinite(weight))) or bool(xp.any(weight < 0)):
        raise InputError("sample_weight needs one finite number >= 0 per row")
    return weight


def scores_on_device(X: Array, w: np.ndarray) -> Array:
    """``X @ w`` in double precision, where X is."""
    xp, v = namespace(X), to_device(w, X)
    return xp.concat([xp.astype(X[block], xp.float64) @ v for block in row_blocks(X)])


def chosen_classes(classes: np.ndarray, above: Array) -> Any:
    """The second class where ``above``, as an array of the same library; NumPy's for classes that are no numbers."""
    if classes.dtype.kind not in "biuf":
        return classes[to_host(above).astype(int)]
    xp, pair = namespace(above), to_device(classes, above)
    return xp.where(above, pair[1], pair[0])


def column_units(X: Array, weight: Array | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column, as :func:`apexrank.problem.design.column_units`, on the device."""
    n = X.shape[0]
    if n <= SCALE_ROWS:
        return _moments(X, weight)[:2]
    some = to_device(np.random.default_rng(0).integers(0, n, SCALE_ROWS), X)
    mean, spread, constant = _moments(X[some, :], None if weight is None else weight[some])
    for j in np.flatnonzero(constant):
        mean[[j]], spread[[j]], _ = _moments(X[:, j : j + 1], weight)
    return mean, spread


def _moments(rows: Array, weight: Array | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and unit of each column, and whether it is constant."""
    xp = namespace(rows)
    rows = xp.astype(rows, xp.float64)
    constant = to_host(xp.max(rows, axis=0) == xp.min(rows, axis=0))
    share = xp.ones_like(rows[:, 0]) if weight is None or not bool(xp.any(weight > 0)) else weight
    counted = (share > 0)[:, None]
    size = xp.max(xp.where(counted, xp.abs(rows), xp.zeros_like(rows)), axis=0)
    largest = xp.where(size > 0, size, xp.ones_like(size))  # squares of huge numbers would overflow
    rows, share = rows / largest, share / xp.sum(share)
    mean = share @ rows
    variance = share @ (rows - mean) ** 2
    spread = np.sqrt(np.maximum(to_host(variance), 0.0))
    scale = to_host(largest)
    return to_host(mean) * scale, np.where(spread > 1e-12, spread, 1.0) * scale, constant
