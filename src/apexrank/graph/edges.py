"""Edge lists with vertex numbers and names, from arrays, data frames, matrices, networkx and igraph graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from apexrank.errors import InputError, near_name, quoted
from apexrank.kernels.edges import index_type, looked_up, seen_ids
from apexrank.validation import has_polars_threads, is_missing

Column = str | int | None
Place = Callable[[int], str]  # description of the location of an edge

KNOWN_COLUMNS = {
    "source": ("source", "src", "from"),
    "target": ("target", "dst", "to"),
    "weight": ("weight", "rating", "value"),
}


def _nowhere(row: int) -> str:
    return ""


@dataclass(frozen=True)
class Edges:
    """Edge list as given, with vertices as numbers.

    Parameters
    ----------
    sources, targets : ndarray
        Vertex numbers from 0 to n − 1.
    weights : ndarray of float64, optional
        Weights as given, not yet validated.
    n : int
        Number of vertices.
    names : ndarray, optional
        Names of the vertices; None if they are 0 to n − 1.
    place : callable
        Describes the location of an edge (counted from 0); may be empty.
    directed : bool
        Whether edges are directed.
    is_matrix : bool
        Whether the edges are the entries of a matrix, which may hold both directions of every edge.
    origin : str
        Source file.
    assumed : str, optional
        Assumption about the file, for a note to the user.
    """

    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    n: int
    names: np.ndarray | None = None
    place: Place = _nowhere
    directed: bool = True
    is_matrix: bool = False
    origin: str = ""
    assumed: str | None = None

    def ends(self, row: int) -> tuple[Any, Any]:
        """Names of the source and the target of an edge."""
        return label_of(self.names, self.sources[row]), label_of(self.names, self.targets[row])

    def link(self, row: int) -> str:
        """Describe an edge by its location and its names."""
        source, target = self.ends(row)
        return f"{_at(self.place, row)}the link from {source!r} to {target!r}"

    def of_rows(self, rows: np.ndarray) -> Edges:
        """Return a selection of the edges, over the same vertices."""
        return replace(
            self,
            sources=self.sources[rows],
            targets=self.targets[rows],
            weights=None if self.weights is None else self.weights[rows],
            place=lambda row: self.place(int(rows[row])),
        )


def label_of(names: np.ndarray | None, vertex: int) -> Any:
    """Name of a vertex number."""
    return int(vertex) if names is None else names[vertex : vertex + 1].tolist()[0]


def _at(place: Place, row: int) -> str:
    """Return the location of an edge as the prefix of a message."""
    where = place(row)
    return f"{where}: " if where else ""


def edges_of_arrays(
    sources: Any, targets: Any, weights: Any = None, place: Place = "position {}".format
) -> Edges:
    """Number the vertices of an edge list with ids of any type.

    Examples
    --------
    >>> edges = edges_of_arrays(["b", "a"], ["c", "b"])
    >>> edges.names.tolist(), edges.sources.tolist(), edges.targets.tolist()
    (['a', 'b', 'c'], [1, 0], [2, 1])
    """
    sources, targets = plain_ids(sources, "source", place), plain_ids(targets, "target", place)
    m = len(sources)
    if m != len(targets):
        raise InputError(f"there are {m} sources but {len(targets)} targets: give one of each per edge")
    weights = None if weights is None else as_weights(weights, m, place)
    if not m:
        raise InputError("there are no edges: give at least one")
    sources, targets, names = _numbers(sources, targets)
    return Edges(sources, targets, weights, len(names), None if isinstance(names, range) else names, place)


def edges_of_frame(
    frame: Any, source: Column = None, target: Column = None, weight: Column = None, what: str = "edge table"
) -> Edges:
    """Number the vertices of a pandas or polars data frame of edges; columns as in :func:`edges_of_file`."""
    names = [str(name) for name in frame.columns]
    pick = frame.to_series if hasattr(frame, "to_series") else lambda i: frame.iloc[:, i]
    i, j, k = choose_columns(names, source, target, weight, what)
    weights = None if k is None else pick(k)
    return edges_of_arrays(pick(i), pick(j), weights, lambda row: f"{what} row {row + 1}")


def choose_columns(
    names: list[str], source: Column, target: Column, weight: Column, what: str
) -> tuple[int, int, int | None]:
    """Return the positions of the source, target and weight columns (None without weights).

    Examples
    --------
    >>> choose_columns(["time", "From", "To"], None, None, "time", "table")
    (1, 2, 0)
    """
    at: dict[str, int | None] = {}
    lower = [name.strip().lower() for name in names]
    for role, given in (("source", source), ("target", target), ("weight", weight)):
        if given is None:
            at[role] = next((lower.index(known) for known in KNOWN_COLUMNS[role] if known in lower), None)
        else:
            at[role] = None if given is False else column_position(given, names, what)
    if at["source"] is None and at["target"] is None:
        free = [i for i in range(len(names)) if i != at["weight"]]
        at["source"], at["target"] = [*free, None, None][:2]
    for place, (role, other) in enumerate((("source", target), ("target", source))):
        if at[role] is None and other is not None and place < len(names) and place not in at.values():
            at[role] = place
        if at[role] is None:
            raise InputError(f"{what} has no column for the {role} of an edge: name it with `{role}=`")
    if len(set(at.values())) < len(at):
        raise InputError(f"{what}: source, target and weight must be three columns; name others")
    return at["source"], at["target"], at["weight"]  # type: ignore[return-value]


def column_position(given: str | int, names: list[str], what: str) -> int:
    """Return the position of a column given by name, or by position as a number or text."""
    if isinstance(given, str):
        if given in names:
            return names.index(given)
        if given.isdecimal():
            return column_position(int(given), names, what)
        near = near_name(given, names)
        hint = f"it has {quoted(names, 8)}" if near is None else f"did you mean {near!r}?"
        raise InputError(f"{what} has no column {given!r}; {hint}")
    if not isinstance(given, int | np.integer) or not 0 <= given < len(names):
        raise InputError(f"{what} has no column {given} counted from 0; it has {len(names)} columns")
    return int(given)


def as_weights(values: Any, m: int, place: Place = _nowhere) -> np.ndarray:
    """Convert weights to m floats, with NaN for missing ones.

    Examples
    --------
    >>> as_weights([1, 2.5, None], 3).tolist()
    [1.0, 2.5, nan]
    """
    array = object_array(values) if isinstance(values, list | tuple) else np.asarray(values)
    if array.shape != (m,):
        raise InputError(f"weights must be one number for each of {m} edges, got shape {array.shape}")
    if array.dtype.kind == "O":
        array = np.fromiter(
            (_weight(value, row, place) for row, value in enumerate(array.tolist())), float, m
        )
    if array.dtype.kind not in "biuf":
        raise InputError(f"weights must be numbers, got {array.dtype} values such as {array.tolist()[0]!r}")
    return np.ascontiguousarray(array, dtype=np.float64)


def _weight(value: Any, row: int, place: Place) -> float:
    if is_blank(value):
        return np.nan
    try:
        if isinstance(value, str):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{_at(place, row)}the weight {value!r} is not a number; correct it") from None


def is_blank(value: Any) -> bool:
    """Return whether a table cell is empty: missing or blank text."""
    return is_missing(value) or value == ""


def plain_ids(values: Any, role: str, place: Place) -> Any:
    """Convert ids to an array of integers, a polars series of text, or a list of objects; none may be missing."""
    import polars as pl

    if isinstance(values, pl.Series):
        if values.dtype in (pl.String, pl.Categorical, pl.Enum):
            text = values.cast(pl.String)
            _refuse_missing((text.is_null() | (text == "")).to_numpy(), role, place)
            return text
        _refuse_missing(values.is_null().to_numpy(), role, place)
    array = object_array(values) if isinstance(values, list | tuple) else np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{role}s must be one id for each edge, got shape {array.shape}")
    if array.dtype.kind == "f":
        _refuse_missing(np.isnan(array), role, place)
        whole = array == np.floor(array)
        usable = whole & (np.abs(array) < 2.0**53)
        if not usable.all():
            row = int(usable.argmin())
            odd = "beyond 2**53" if whole[row] else array[row].item()
            raise InputError(f"{_at(place, row)}{role}s hold the number {odd}: ids are text or whole numbers")
        return array.astype(np.int64)
    if array.dtype.kind == "u" and array.size and array.max() >= 2**63:
        return array.tolist()
    if array.dtype.kind in "iu":
        narrow = array.dtype in (np.int32, np.int64)
        return np.ascontiguousarray(array) if narrow else array.astype(np.int64)
    if array.dtype.kind == "U":
        return plain_ids(pl.Series(array), role, place)
    return _plain_objects(array.tolist(), role, place)


def _plain_objects(ids: list[Any], role: str, place: Place) -> Any:
    import polars as pl

    kinds = set(map(type, ids))
    if kinds == {str}:
        return plain_ids(pl.Series(ids, dtype=pl.String), role, place)
    _refuse_missing(np.fromiter(map(is_blank, ids), bool, len(ids)), role, place)
    if kinds and all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        try:
            return np.array(ids, dtype=np.int64)
        except OverflowError:
            return ids
    return ids if ids else np.empty(0, dtype=np.int64)


def _refuse_missing(missing: np.ndarray, role: str, place: Place) -> None:
    if missing.any():
        raise InputError(
            f"{place(int(missing.argmax()))}: the {role} of the edge is missing; fill it in or drop the edge"
        )


def _numbers(sources: Any, targets: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | range]:
    """Number vertices by sorted id; also return the sorted ids (a range if they are 0 to n − 1)."""
    import polars as pl

    are_whole = isinstance(sources, np.ndarray) and isinstance(targets, np.ndarray)
    if are_whole:
        lowest, highest = min(sources.min(), targets.min()), max(sources.max(), targets.max())
        # a table of all possible ids is the fastest lookup as long as it is not larger than the edges
        if lowest >= 0 and highest < 4 * len(sources) + 1024:
            return _dense_numbers(sources, targets, int(highest) + 1)
    are_objects = isinstance(sources, list) or isinstance(targets, list)
    ends = [sources, targets]
    if not are_objects:
        ends = [pl.Series(ids).cast(pl.Int64 if are_whole else pl.String) for ids in ends]
    # after a fork polars may have no threads: a dictionary gives the same result, more slowly
    if are_objects or not has_polars_threads():
        listed = [ids.tolist() if isinstance(ids, np.ndarray) else list(ids) for ids in ends]
        sources, targets, names = _object_numbers(*listed)
        return sources, targets, names.astype(np.int64) if are_whole else names
    ids = pl.concat([each.unique() for each in ends]).unique().sort()
    number = pl.Series(np.arange(len(ids), dtype=index_type(len(ids))))
    sources, targets = (
        each.replace_strict(ids, number, return_dtype=number.dtype).to_numpy() for each in ends
    )
    return sources, targets, ids.to_numpy() if are_whole else object_array(ids.to_list())


def _dense_numbers(
    sources: np.ndarray, targets: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | range]:
    sources, targets = alike(sources, targets, size)
    seen = seen_ids(sources, targets, size)
    if seen.all():
        return sources, targets, range(size)
    names = np.flatnonzero(seen)
    numbers = np.cumsum(seen, dtype=index_type(len(names)))
    numbers -= 1
    return looked_up(sources, numbers), looked_up(targets, numbers), names


def _object_numbers(sources: list[Any], targets: list[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    try:
        names = sorted_if_alike(list(dict.fromkeys(sources) | dict.fromkeys(targets)))
    except TypeError:
        raise InputError("ids must be text, numbers or other hashable objects") from None
    number, index = {name: i for i, name in enumerate(names)}, index_type(len(names))
    numbers = (np.array([number[name] for name in ids], dtype=index) for ids in (sources, targets))
    return *numbers, object_array(names)  # type: ignore[return-value]


def sorted_if_alike(names: list[Any]) -> list[Any]:
    """Sort the names, or return them unchanged if they cannot be compared."""
    try:
        return sorted(names)
    except TypeError:
        return names


def alike(sources: np.ndarray, targets: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Convert vertex numbers to the type that kernels expect, copying only if needed."""
    kinds = {sources.dtype, targets.dtype}
    ready = len(kinds) == 1 and kinds <= {np.dtype(np.int32), np.dtype(np.int64)}
    kind = None if ready else index_type(n)
    return np.ascontiguousarray(sources, dtype=kind), np.ascontiguousarray(targets, dtype=kind)


def object_array(values: Iterable[Any]) -> np.ndarray:
    """Make an object array without converting its elements."""
    listed = list(values)
    array = np.empty(len(listed), dtype=object)
    for i, value in enumerate(listed):  # assigning all at once would unpack tuples
        array[i] = value
    return array


def refuse_columns(kind: str, **columns: Column) -> None:
    """Raise InputError for column options with a kind of graph that has no columns."""
    for name, given in columns.items():
        if given is not None:
            raise InputError(f"`{name}={given!r}` names a column, but a {kind} graph has none: leave it out")


def is_matrix(data: Any) -> bool:
    """Return whether data is a sparse or dense matrix."""
    return sparse.issparse(data) or isinstance(data, np.ndarray)


def _as_numbers(matrix: Any) -> Any:
    """Convert a matrix of Python objects to floats; other tables raise the messages that scikit-learn expects."""
    if matrix.dtype.kind == "O":
        try:
            return matrix.astype(np.float64)
        except ValueError:
            return matrix  # rejected later because of its type
    if len(matrix.shape) == 2 and matrix.shape[0] != matrix.shape[1]:
        try:
            check_array(matrix, accept_sparse=True)
        except ValueError as error:
            raise InputError(str(error).splitlines()[0]) from None
    return matrix


def edges_of_matrix(matrix: Any, use_weights: bool) -> Edges:
    """Read the non-zero entries of a square matrix."""
    matrix = _as_numbers(matrix)
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        advice = (
            "; for a list of edges give (edges[:, 0], edges[:, 1])"
            if matrix.shape[1:] in ((2,), (3,))
            else ""
        )
        raise InputError(f"an adjacency matrix must be square, got shape {matrix.shape}{advice}")
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"an adjacency matrix must hold numbers, got {matrix.dtype} values")
    n = matrix.shape[0]
    if sparse.issparse(matrix):
        entries = matrix.tocoo()
        sources, targets, weights = entries.row, entries.col, entries.data
    else:
        matrix = np.asarray(matrix)
        sources, targets = np.nonzero(matrix)
        weights = matrix[sources, targets]
    if not use_weights:
        weights = weights != 0
    if weights.dtype.kind == "b" and weights.all():
        weights = None
    sources, targets = alike(sources, targets, n)
    given = None if weights is None else as_weights(weights, len(sources))
    return Edges(sources, targets, given, n, is_matrix=True)


def edges_of_networkx(graph: Any, weight: Any) -> Edges:
    """Read a networkx graph with an edge attribute as weights."""
    names = sorted_if_alike(list(graph))
    number = {name: i for i, name in enumerate(names)}
    m, index = graph.number_of_edges(), index_type(len(names))
    sources, targets = (
        np.fromiter((number[edge[end]] for edge in graph.edges()), index, m) for end in (0, 1)
    )
    edges = Edges(
        sources, targets, None, len(names), as_names(names, len(names)), directed=graph.is_directed()
    )

    def attribute(key: Any) -> list[Any]:
        return [value for *_, value in graph.edges(data=key, default=None)]

    return _with_attribute(edges, attribute, weight)


def edges_of_igraph(graph: Any, weight: Any) -> Edges:
    """Read an igraph graph with an edge attribute as weights."""
    n, m = graph.vcount(), graph.ecount()
    ends = np.fromiter((end for edge in graph.get_edgelist() for end in edge), np.int32, 2 * m)
    names = graph.vs["name"] if "name" in graph.vs.attributes() else None
    ends_of = ends[::2].copy(), ends[1::2].copy()
    edges = Edges(*ends_of, None, n, as_names(names, n), directed=graph.is_directed())

    def attribute(key: Any) -> list[Any]:
        return graph.es[key] if key in graph.es.attributes() else [None] * m

    return _with_attribute(edges, attribute, weight)


def _with_attribute(edges: Edges, attribute: Callable[[Any], list[Any]], weight: Any) -> Edges:
    """Use an edge attribute as weights, 1 for edges without it."""
    if weight is False:
        return edges
    values = attribute("weight" if weight is None else weight)
    if all(value is None for value in values):
        if weight is not None and values:
            raise InputError(f"no edge has the attribute {weight!r}: name another with `weight=`")
        return edges
    given = object_array(1.0 if value is None else value for value in values)
    weights = as_weights(given, len(values), lambda row: "edge {!r} to {!r}".format(*edges.ends(row)))
    return replace(edges, weights=weights)


def as_names(names: Any, n: int) -> np.ndarray | None:
    """Convert names to an array, None if they are 0 to n − 1; duplicate names raise InputError."""
    if names is None:
        return None
    listed = names.tolist() if isinstance(names, np.ndarray) else list(names)
    if len(listed) != n:
        raise InputError(f"there are {len(listed)} names for {n} vertices: give one for each")
    seen: set[Any] = set()
    for name in listed:
        if name in seen:
            raise InputError(f"two vertices are named {name!r}: rename one")
        seen.add(name)
    if all(map(is_whole, listed)):
        if listed == list(range(n)):
            return None
        if all(abs(name) < 2**63 for name in listed):
            return np.array(listed, dtype=np.int64)
    return object_array(listed)


def is_whole(name: Any) -> bool:
    """Return whether a name is a whole number."""
    return isinstance(name, int | np.integer) and not isinstance(name, bool)
