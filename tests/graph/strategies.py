"""Small random graphs and layers for hypothesis, and transformations that do not change their meaning."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from apexrank.graph import Graph

WEIGHTS = (0.25, 0.5, 1.0, 2.0, 3.0)  # exact in single precision, as are their halves


class Links(NamedTuple):
    """Links as given, possibly repeated. A label is 1 for trusted, −1 for distrusted, 0 for neither."""

    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    labels: np.ndarray

    @property
    def n(self):
        return len(self.labels)

    @property
    def graph(self):
        return Graph.from_edges(self.sources, self.targets, self.weights, n=self.n)

    @property
    def matrix(self):
        """Adjacency matrix with summed weights of parallel links."""
        A = np.zeros((self.n, self.n))
        np.add.at(A, (self.sources, self.targets), self.weights)
        return A

    @property
    def trusted(self):
        return (self.labels > 0).astype(float)

    @property
    def distrusted(self):
        return (self.labels < 0).astype(float)

    def relabelled(self, place):
        """Rename vertex i to ``place[i]``."""
        return Links(place[self.sources], place[self.targets], self.weights, self.labels[np.argsort(place)])

    def reordered(self, order):
        """The same links in another order."""
        return Links(self.sources[order], self.targets[order], self.weights[order], self.labels)

    def halved(self):
        """Replace each link by two parallel links of half the weight."""
        return Links(*(np.tile(end, 2) for end in self[:2]), np.tile(self.weights / 2, 2), self.labels)

    def scaled(self, factor):
        """Multiply weights by a number, or by one number per source."""
        factor = np.broadcast_to(factor, self.n)
        return self._replace(weights=self.weights * factor[self.sources])

    def with_link(self, source, target, weight):
        ends = np.append(self.sources, source), np.append(self.targets, target)
        return Links(*ends, np.append(self.weights, weight), self.labels)

    def beside(self, other):
        """Both graphs, without links between them."""
        ends = (
            np.concatenate(pair)
            for pair in ((self.sources, other.sources + self.n), (self.targets, other.targets + self.n))
        )
        weights, labels = (
            np.concatenate([getattr(each, name) for each in (self, other)]) for name in ("weights", "labels")
        )
        return Links(*ends, weights, labels)

    def everywhere(self):
        """Add a link between any two vertices, together as heavy as the others."""
        ends = (pair.ravel() for pair in np.indices((self.n, self.n)))
        weights = np.full(self.n**2, self.weights.sum() / self.n**2)
        ends = (np.append(own, more) for own, more in zip(self[:2], ends, strict=True))
        return Links(*ends, np.append(self.weights, weights), self.labels)

    def without_dangling(self):
        """Add self-loops to vertices without out-links."""
        links = self
        for vertex in np.flatnonzero(self.matrix.sum(axis=1) == 0):
            links = links.with_link(vertex, vertex, 1.0)
        return links

    def without_isolated(self):
        """Remove isolated vertices and renumber the others."""
        there, ends = np.unique(np.concatenate(self[:2]), return_inverse=True)
        return Links(*np.split(ends, 2), self.weights, self.labels[there])


@st.composite
def links(draw, most=6):
    """At least one link, a trusted and a distrusted vertex; dangling and isolated ones, self-loops, parallel links."""
    n = draw(st.integers(2, most))
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex, st.sampled_from(WEIGHTS)), min_size=1, max_size=2 * n))
    sources, targets, weights = zip(*edges, strict=True)
    others = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=n - 2, max_size=n - 2))
    return Links(np.array(sources), np.array(targets), np.array(weights), np.array([1, -1, *others]))


@st.composite
def layers(draw, most=5):
    """Two or three graphs over the same vertices."""
    first = draw(links(most))
    vertex = st.integers(0, first.n - 1)
    edge = st.tuples(vertex, vertex, st.sampled_from(WEIGHTS))
    more = draw(st.lists(st.lists(edge, min_size=1, max_size=2 * first.n), min_size=1, max_size=2))
    return [first, *(Links(*map(np.array, zip(*edges, strict=True)), first.labels) for edges in more)]


def permutations_of(n):
    return st.permutations(range(n)).map(np.array)
