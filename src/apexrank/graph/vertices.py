"""Vertices of a graph: names and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from apexrank.errors import InputError, near_name
from apexrank.graph.edges import label_of, object_array

_MOST_COMPARED = 20_000  # names looked at for one that was meant


class Vertices:
    """The vertices 0 to n − 1 with their names (None: the numbers) and the sums of their out-links' weights."""

    names: Any
    out_weight: Any
    text_names: Any = None  # a polars Series where names are text in a file

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.out_weight)

    @cached_property
    def dangling(self) -> np.ndarray:
        """Mask of the vertices without out-links."""
        dangling = self.out_weight == 0
        dangling.flags.writeable = False
        return dangling

    def label(self, vertex: int) -> Any:
        """Name of a vertex number."""
        return label_of(self.names, vertex)

    def labels(self, vertices: Any = None) -> np.ndarray:
        """Names of vertex numbers, in their order; of all vertices by default."""
        if vertices is None:
            return np.arange(self.n) if self.names is None else self.names
        numbers = np.asarray(vertices, dtype=np.int64)
        return numbers if self.names is None else self.names[numbers]

    def number(self, name: Any) -> int:
        """Vertex number of a name; an unknown one is an error that names a close match.

        Examples
        --------
        >>> from apexrank.graph import Graph
        >>> Graph.from_edges([0], [1], names=["page", "site"]).number("sites")
        Traceback (most recent call last):
        apexrank.errors.InputError: vertex 'sites' is not in the graph; did you mean 'site'?
        """
        return int(self.numbers(object_array([name]))[0])

    def numbers(self, names: Any, what: str = "vertex") -> np.ndarray:
        """Vertex numbers of many names, int64; ``what`` says in an error whose names they are.

        Examples
        --------
        >>> from apexrank.graph import Graph
        >>> Graph.from_edges([0], [1], names=["page", "site"]).numbers(["site", "page"]).tolist()
        [1, 0]
        """
        listed = [names] if np.isscalar(names) else names
        array = listed if isinstance(listed, np.ndarray) else np.asarray(object_array(listed))
        found = self._find(array)
        if (found < 0).any():
            unknown = array[found < 0].tolist()
            are = "is" if len(unknown) == 1 else f"and {len(unknown) - 1} more are"
            name = "vertex" if what == "vertex" else f"{what} vertex"
            raise InputError(f"{name} {unknown[0]!r} {are} not in the graph{self._hint(unknown[0])}")
        return found

    def has(self, names: Sequence[Any]) -> np.ndarray:
        """Mask of the names that are vertices.

        Examples
        --------
        >>> from apexrank.graph import Graph
        >>> Graph.from_edges([0], [1]).has([1, 2, "1"]).tolist()
        [True, False, False]
        """
        return self._find(object_array(names)) >= 0

    def _find(self, array: np.ndarray) -> np.ndarray:
        """Vertex numbers, -1 for names that are none."""
        if self.names is None or self.names.dtype.kind in "iu":
            return self._find_whole(array)
        return np.array([_get(self._number_of, name) for name in array.tolist()], dtype=np.int64)

    def _find_whole(self, array: np.ndarray) -> np.ndarray:
        if array.dtype.kind not in "iu":
            # no vertex has the lowest number there is, so it stands for what is no number at all
            lowest = np.iinfo(np.int64).min
            fitting = [x if is_whole(x) and abs(int(x)) < 2**63 else lowest for x in array.tolist()]
            array = np.array(fitting, dtype=np.int64)
        array = array.astype(np.int64)
        if self.names is None:
            return np.where((array >= 0) & (array < self.n), array, -1)
        order, ascending = self._ascending
        at = np.minimum(np.searchsorted(ascending, array), self.n - 1)
        return np.where(ascending[at] == array, order[at], -1)

    @cached_property
    def _ascending(self) -> tuple[np.ndarray, np.ndarray]:
        names = np.asarray(self.names)
        order = np.argsort(names, kind="stable")
        return order, names[order]

    @cached_property
    def _number_of(self) -> dict[Any, int]:
        return {name: i for i, name in enumerate(np.asarray(self.names).tolist())}

    def _hint(self, name: Any) -> str:
        if self.names is None:
            return f"; its vertices are 0 to {self.n - 1}"
        text = str(name)
        likely = [each for each in self.names.tolist() if abs(len(str(each)) - len(text)) <= 2]
        if len(likely) > _MOST_COMPARED:
            likely = [each for each in likely if str(each)[:1] == text[:1] or str(each)[-2:] == text[-2:]]
        written = {str(each): each for each in likely[:_MOST_COMPARED]}
        near = near_name(text, written)
        return "" if near is None else f"; did you mean {written[near]!r}?"


def is_whole(name: Any) -> bool:
    """Whether a name is a whole number."""
    return isinstance(name, int | np.integer) and not isinstance(name, bool)


def _get(known: dict[Any, int], name: Any) -> int:
    try:
        return known.get(name, -1)
    except TypeError:  # what cannot be hashed is no name
        return -1
