"""The baseline that counts links."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from apexrank.graph.base import GraphRank, plain_graph


class InDegree(GraphRank):
    """Weight of the links into each vertex, as a share of all; defenceless against farms.

    Parameters
    ----------
    weighted : bool
        False counts links whatever they weigh.

    Examples
    --------
    >>> from apexrank.graph.indegree import InDegree
    >>> InDegree().fit((["a", "b", "c"], ["b", "c", "b"])).scores_.round(3).tolist()
    [0.0, 0.667, 0.333]
    """

    def __init__(self, weighted: bool = True) -> None:
        self.weighted = weighted

    def fit(self, graph: Any, y: None = None) -> Self:
        """Count the links of a graph, which may be anything :func:`apexrank.graph.as_graph` reads."""
        read = plain_graph(graph)
        if self.weighted and read.weights is not None:
            degree = read.reversed().out_weight
        else:
            degree = np.diff(read.indptr).astype(float)
        self.graph_, self.scores_ = read, degree / (degree.sum() or 1.0)
        return self
