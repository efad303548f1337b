"""Named submodular functions: functions of the size of a set, and graph cuts (Iyer and Bilmes 2013).

* Functions of the number of items, ``f(X) = g(|X|)`` with g concave: the gains are ``δ(j) = g(j) − g(j − 1)`` for every
  order (eq. 18 to 20 and all rows of Table 1 except the fifth).
* Cuts of weighted graphs, ``f(X) = Σ_{i in X, j outside} d_ij`` (eq. 17 and Table 1, row 5). The extension is
  ``f̂(x) = Σ_ij d_ij·max(0, x_i − x_j)``, so a link i → j adds d_ij to i and subtracts it from j if i is above j, and
  half of it if they are tied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from apexrank.errors import InputError
from apexrank.kernels.inversions import mean_over_ties, sort_rows
from apexrank.kernels.jit import kernel
from apexrank.submodular.base import ROUNDING, SetFunction, by_item, check_scores, terms_of
from apexrank.validation import Registry, check_count

# ---------------------------------------------------------------- functions of the size

# differences of g, computed without cancellation
NAMED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sqrt": lambda j: 1 / (np.sqrt(j) + np.sqrt(j - 1)),
    "log": lambda j: np.log1p(1 / j),
    "linear": np.ones_like,
}


@dataclass(frozen=True)
class BySize(SetFunction):
    """Base class of functions of ``|X|``, which define ``deltas(n)``."""

    def deltas(self, n: int) -> np.ndarray:
        """Gains ``δ(1) ≥ δ(2) ≥ … ≥ δ(n)`` on n items."""
        raise NotImplementedError

    def last_gains(self, n: int) -> np.ndarray:
        return np.full(n, self.deltas(n)[-1])

    def _gains(self, orders: np.ndarray) -> np.ndarray:
        return np.broadcast_to(self.deltas(orders.shape[-1]), orders.shape).copy()

    def _extension(self, x: np.ndarray) -> np.ndarray:
        return np.sort(x, axis=-1)[..., ::-1] @ self.deltas(x.shape[-1])

    def _values(self, masks: np.ndarray) -> np.ndarray:
        return np.r_[0.0, np.cumsum(self.deltas(masks.shape[1]))][masks.sum(axis=1)]

    def _subgradient(self, y: np.ndarray) -> np.ndarray:
        """Average δ within each block of tied items."""
        rows = y.reshape(-1, y.shape[-1])
        return mean_over_ties(sort_rows(-rows), self.deltas(y.shape[-1])).reshape(y.shape)


def is_by_size(f: SetFunction) -> bool:
    """Return whether f is a function of the size or a sum of such, with the same gains along all orders.

    Examples
    --------
    >>> from apexrank.submodular import Chain
    >>> is_by_size(2 * Sqrt() + Top(1)), is_by_size(Sqrt() + Chain())
    (True, False)
    """
    return all(isinstance(term, BySize) for _, term in terms_of(f))


@dataclass(frozen=True)
class Cardinality(BySize):
    """Function ``f(X) = g(|X|)`` of a concave g, or ``min{g(|X|), g(m)}``, where only the first m ranks count (eq. 19).

    Parameters
    ----------
    g : {"sqrt", "log", "linear"}, callable or array-like
        ``√|X|``, ``log(1 + |X|)``, ``|X|``, a concave function of an array of sizes 0, 1, …, n, or the gains
        ``δ(1) ≥ δ(2) ≥ …`` themselves. Gains fix the number of items, unless m is given and later gains are 0.
    m : int, optional
        Gains after rank m are 0. Earlier gains must not be negative.

    Examples
    --------
    >>> Cardinality([3.0, 1.0, 0.0]).gains([2, 0, 1]).tolist()
    [3.0, 1.0, 0.0]
    >>> Cardinality([1.0, 3.0])
    Traceback (most recent call last):
    apexrank.errors.InputError: gains must not increase: 1.0 at rank 1, 3.0 at rank 2
    """

    name: ClassVar[str] = "cardinality"
    g: Any = "sqrt"
    m: int | None = None

    def __post_init__(self) -> None:
        if self.m is not None:
            check_count("m", self.m)
        if isinstance(self.g, str):
            if self.g not in NAMED:
                raise InputError(
                    f"unknown `g` {self.g!r}: use one of {', '.join(NAMED)}, a function, or gains"
                )
        elif not callable(self.g):
            self._take_gains()

    def _take_gains(self) -> None:
        gains = check_scores(self.g, None, "gains")
        if gains.ndim != 1 or (self.m is not None and self.m > len(gains)):
            raise InputError(f"gains must be a list of numbers, at least m of them, got shape {gains.shape}")
        _check_falling(gains, 0.0)
        object.__setattr__(self, "g", tuple(gains.tolist()))

    @property
    def n(self) -> int | None:
        return len(self.g) if isinstance(self.g, tuple) and self.m is None else None

    @property
    def monotone(self) -> bool:
        """True for a named g or if m is given; for other functions it is unknown without n."""
        return isinstance(self.g, str) or self.m is not None or super().monotone

    def deltas(self, n: int) -> np.ndarray:
        count = n if self.m is None else min(n, int(self.m))
        deltas = np.zeros(n)
        deltas[:count] = self._first(count)
        if count < n and deltas[count - 1] < 0:
            raise InputError(
                f"with m = {self.m} the first gains must not be negative, got {deltas[count - 1]}"
            )
        return deltas

    def _first(self, count: int) -> np.ndarray:
        if isinstance(self.g, str):
            return NAMED[self.g](np.arange(1.0, count + 1))
        if isinstance(self.g, tuple):
            return np.array(self.g[:count])
        values = np.asarray(self.g(np.arange(count + 1.0)), dtype=float)
        if values.shape != (count + 1,) or not np.isfinite(values).all():
            raise InputError("`g` must give a finite number for each of an array of sizes 0, 1, …, n")
        deltas = np.diff(values)
        _check_falling(deltas, ROUNDING * float(np.abs(values).max()))
        return np.minimum.accumulate(deltas)


@dataclass(frozen=True)
class Sqrt(Cardinality):
    """Square root ``f(X) = √|X|``, as in the figures of Iyer and Bilmes (2013); with m, only the first m ranks count.

    Examples
    --------
    >>> Sqrt().gains([0, 1, 2, 3]).round(3).tolist()
    [1.0, 0.414, 0.318, 0.268]
    """

    name: ClassVar[str] = "sqrt"
    g: Any = field(default="sqrt", init=False, repr=False)


@dataclass(frozen=True)
class Log(Cardinality):
    """Logarithm ``f(X) = log(1 + |X|)``; with m, only the first m ranks count.

    Examples
    --------
    >>> Log(m=2).gains([0, 1, 2]).round(3).tolist()
    [0.693, 0.405, 0.0]
    """

    name: ClassVar[str] = "log"
    g: Any = field(default="log", init=False, repr=False)


@dataclass(frozen=True)
class Top(Cardinality):
    """Truncation ``f(X) = min(|X|, m)``; its divergence compares the sums of the first m scores (eq. 20).

    Examples
    --------
    >>> Top(m=2)([True, True, True, False])
    2.0
    """

    name: ClassVar[str] = "top"
    g: Any = field(default="linear", init=False, repr=False)

    def __post_init__(self) -> None:
        if self.m is None:
            raise InputError("the set function 'top' needs `m=`: how many ranks count")
        super().__post_init__()


@dataclass(frozen=True)
class Product(BySize):
    """Cut of the complete graph ``f(X) = |X||V∖X|``, with ``f̂(x) = Σ_{i<j} |x_i − x_j|``.

    Examples
    --------
    >>> Product().gains([0, 1, 2]).tolist()
    [2.0, 0.0, -2.0]
    """

    name: ClassVar[str] = "product"

    def deltas(self, n: int) -> np.ndarray:
        return n + 1.0 - 2.0 * np.arange(1, n + 1)


@dataclass(frozen=True)
class Indicator(BySize):
    """Indicator ``f(X) = 1`` for ``1 ≤ |X| ≤ n − 1`` and 0 otherwise, with ``f̂(x) = max x − min x``.

    Examples
    --------
    >>> Indicator().gains([0, 1, 2]).tolist()
    [1.0, 0.0, -1.0]
    """

    name: ClassVar[str] = "indicator"

    def deltas(self, n: int) -> np.ndarray:
        deltas = np.zeros(n)
        np.add.at(deltas, [0, -1], [1.0, -1.0])
        return deltas


def _check_falling(gains: np.ndarray, slack: float) -> None:
    rises = np.flatnonzero(np.diff(gains) > slack)
    if rises.size:
        j = int(rises[0])
        raise InputError(
            f"gains must not increase: {float(gains[j])!r} at rank {j + 1}, {float(gains[j + 1])!r} at rank {j + 2}"
        )


# ---------------------------------------------------------------- cuts


@dataclass(frozen=True)
class ByPairs(SetFunction):
    """Base class of functions whose subgradient is a sum over pairs; gains are the subgradient at the ranks."""

    def _gains(self, orders: np.ndarray) -> np.ndarray:
        n = orders.shape[-1]
        height = by_item(np.broadcast_to(np.arange(n, 0.0, -1), orders.shape), orders)
        return np.take_along_axis(self._subgradient(height), orders, axis=-1)

    def _extension(self, x: np.ndarray) -> np.ndarray:
        return np.einsum("...i,...i->...", x, self._subgradient(x))

    def _values(self, masks: np.ndarray) -> np.ndarray:
        return self._extension(masks.astype(float))


@dataclass(frozen=True, eq=False)
class Cut(ByPairs):
    """Graph cut ``f(X) = Σ_{i in X, j outside} d_ij``, evaluated in one pass over the links for each order.

    The divergence is the sum of ``d_ij·|x_i − x_j|`` over all i and j in opposite order in x and σ. With symmetric
    weights a pair counts twice, which eq. 17 omits. Directed weights give partial orders and AUC.

    Parameters
    ----------
    weights : array-like or scipy sparse matrix of shape (n, n)
        ``d_ij ≥ 0`` from i to j, symmetric or not. The diagonal has no effect and is ignored.

    Examples
    --------
    >>> f = Cut([[0, 2, 0], [2, 0, 1], [0, 1, 0]])
    >>> f.gains([1, 0, 2]).tolist(), f([0, 1])
    ([3.0, -2.0, -1.0], 1.0)
    """

    name: ClassVar[str] = "cut"
    weights: Any = field(repr=False)

    def __post_init__(self) -> None:
        try:
            given = self.weights if sparse.issparse(self.weights) else np.asarray(self.weights, dtype=float)
        except (TypeError, ValueError):
            raise InputError("weights must be a square matrix of numbers") from None
        if given.ndim != 2 or given.shape[0] != given.shape[1] or given.shape[0] == 0:
            raise InputError(f"weights must be a square matrix of items × items, got shape {given.shape}")
        links = sparse.coo_array(given).astype(float)
        keep = (links.row != links.col) & (links.data != 0)
        links = sparse.csr_array((links.data[keep], (links.row[keep], links.col[keep])), shape=given.shape)
        links.sum_duplicates()
        if links.nnz and not (links.data.min() >= 0 and links.data.max() < np.inf):  # nan fails both
            worst = links.data[~(links.data >= 0) | np.isinf(links.data)][0]
            raise InputError(f"weights must be finite and not negative, got {worst}, for a submodular cut")
        object.__setattr__(self, "weights", links)

    @property
    def n(self) -> int:
        return int(self.weights.shape[0])

    def last_gains(self, n: int) -> np.ndarray:
        return -np.asarray(self.weights.sum(axis=0), dtype=float)

    def _subgradient(self, y: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(y.reshape(-1, self.n))
        out = np.zeros(rows.shape)
        _cut_subgradients(self.weights.indptr, self.weights.indices, self.weights.data, rows, out)
        return out.reshape(y.shape)


@dataclass(frozen=True)
class Chain(ByPairs):
    """Cut of a path ``f(X) = Σ_i |1[i in X] − 1[i + 1 in X]|``.

    ``f̂(x) = Σ_i |x_i − x_{i+1}|`` is the total variation. The items have a natural order, such as time, and neighbours
    are compared.

    Examples
    --------
    >>> Chain().gains([1, 0, 2]).tolist()
    [2.0, -1.0, -1.0]
    """

    name: ClassVar[str] = "chain"

    def last_gains(self, n: int) -> np.ndarray:
        last = np.full(n, -2.0)
        np.add.at(last, [0, -1], 1.0)  # a single item is at both ends
        return last

    def _subgradient(self, y: np.ndarray) -> np.ndarray:
        step = np.subtract(y[..., :-1] > y[..., 1:], y[..., :-1] < y[..., 1:], dtype=float)
        out = np.zeros(y.shape)
        out[..., :-1] += step
        out[..., 1:] -= step
        return out


@kernel()
def _cut_subgradients(indptr, indices, data, keys, out):
    for r in range(keys.shape[0]):
        key, h = keys[r], out[r]
        for i in range(indptr.size - 1):
            total = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                d = data[e] * 0.5 * ((key[i] > key[j]) + (key[i] >= key[j]))
                total += d
                h[j] -= d
            h[i] += total


# ---------------------------------------------------------------- names

SET_FUNCTIONS: Registry[SetFunction] = Registry(
    "set function", SetFunction, (Sqrt, Log, Top, Cardinality, Product, Indicator, Chain, Cut)
)


def set_function(f: str | SetFunction = "sqrt", **arguments: Any) -> SetFunction:
    """Return the set function ``f`` itself, or create the one it names with the given arguments.

    Parameters
    ----------
    f : {"sqrt", "log", "top", "cardinality", "product", "indicator", "chain", "cut"} or SetFunction
        A name or an atom.
    **arguments
        Arguments of the named atom: ``m`` for ``"top"``, ``"sqrt"``, ``"log"`` and ``"cardinality"``, ``g`` for
        ``"cardinality"``, ``weights`` for ``"cut"``. Unknown arguments raise an error.

    Examples
    --------
    >>> set_function("top", m=2).gains([2, 0, 1]).tolist()
    [1.0, 1.0, 0.0]
    """
    if isinstance(f, SetFunction) and arguments:
        raise InputError(
            f"`{next(iter(arguments))}=` is for a set function given by its name: give it when creating this one"
        )
    if not isinstance(f, str) or f not in SET_FUNCTIONS.members:
        return SET_FUNCTIONS.get(f)
    taken = [field for field in fields(SET_FUNCTIONS.members[f]) if field.init]
    missing = [field.name for field in taken if field.default is MISSING and field.name not in arguments]
    known = [field.name for field in taken]
    there = ", ".join(known) or "nothing"
    for name in arguments:
        if name not in known:
            raise InputError(f"the set function {f!r} takes no {name!r}: it takes {there}")
    if missing:
        raise InputError(f"the set function {f!r} needs `{missing[0]}=`")
    return SET_FUNCTIONS.get(f, **arguments)
