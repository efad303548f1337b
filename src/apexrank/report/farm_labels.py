"""Labels of spam by names, of which a graph may not have all: lists of spam are longer than most crawls."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from apexrank.errors import InputError
from apexrank.graph.base import seed_vector
from apexrank.graph.graph import Graph


def spam_vertices(graph: Graph, spam: Any) -> tuple[np.ndarray, int]:
    """Which vertices are labelled, and how many labels name none; an error where all of them do.

    Examples
    --------
    >>> graph = Graph.from_edges([0, 1], [1, 0], names=["page", "shop"])
    >>> labels, strangers = spam_vertices(graph, ["shop", "casino"])
    >>> labels.tolist(), strangers
    ([False, True], 1)
    """
    try:
        return seed_vector(graph, spam, "spam") > 0, 0
    except InputError:
        pairs = _pairs(spam)
        known = known_names(graph, [name for name, _ in pairs])
        if not any(known) or all(known):
            raise
    kept = {name: weight for (name, weight), is_known in zip(pairs, known, strict=True) if is_known}
    return seed_vector(graph, kept, "spam") > 0, known.count(False)


def known_names(graph: Graph, names: Sequence[Any]) -> list[bool]:
    """Which of some names are those of vertices.

    Examples
    --------
    >>> known_names(Graph.from_edges([0], [1]), [1, 2, "1"])
    [True, False, False]
    """
    if graph.names is None:
        whole = [isinstance(name, int | np.integer) and not isinstance(name, bool) for name in names]
        return [is_whole and 0 <= name < graph.n for name, is_whole in zip(names, whole, strict=True)]
    known = set(graph.names.tolist())
    return [isinstance(name, Hashable) and name in known for name in names]


def _pairs(spam: Any) -> list[tuple[Any, Any]]:
    """Names with their weights."""
    weighted = getattr(getattr(spam, "dtype", None), "kind", "O") in "fb" and hasattr(spam, "items")
    if isinstance(spam, Mapping) or weighted:
        return list(spam.items())
    if isinstance(spam, str) or not isinstance(spam, Iterable) or hasattr(spam, "columns"):
        return []
    return [(name, 1.0) for name in spam]
