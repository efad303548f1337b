"""Small random graphs and slow, plain ranks to test against."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def random_adjacency(
    seed: int, n: int | None = None, *, weighted: bool = False, density: float = 0.15
) -> np.ndarray:
    """A dense adjacency matrix with dangling and isolated vertices, self-loops and cycles."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 40)) if n is None else n
    A = (rng.random((n, n)) < density).astype(float)
    if weighted:
        A *= rng.gamma(0.5, size=(n, n)) + 1e-3
    A[rng.random(n) < 0.2] = 0.0
    lonely = rng.random(n) < 0.1
    A[lonely], A[:, lonely] = 0.0, 0.0
    if not A.any():
        A[0, -1] = 1.0
    return A


def sparse_of(A: np.ndarray) -> sparse.csr_array:
    return sparse.csr_array(A)


def dense_step(A, r, p, ratio, damping=0.85, teleport=None, place="inside"):
    """One step of eq. (6.1), link by link, with the teleport in its corrected place; not normalised."""
    n = len(A)
    v = np.full(n, 1 / n, dtype=r.dtype) if teleport is None else np.asarray(teleport, dtype=r.dtype)
    d = A.sum(axis=1)
    share = np.divide(A, d[:, None], out=np.zeros_like(A), where=d[:, None] > 0).astype(r.dtype)
    flow = r[:, None] * share
    held = r[d == 0].sum()
    extra = v * ((1 - damping) + damping * held)
    if place == "weak-links":
        weak = np.where(d == 0, 1, 1 - damping) * r
        return _norm(damping * flow + weak[:, None] * v, p) ** (1 / ratio)
    if place == "outside":
        return damping * _norm(flow, p) ** (1 / ratio) + v * ((1 - damping) + damping * held ** (1 / ratio))
    return _norm(np.vstack([damping * flow, extra]), p) ** (1 / ratio)


def _norm(flow, p):
    top = flow.max(axis=0)
    if np.isinf(p):
        return top
    unit = np.where(top > 0, top, 1)
    return top * ((flow / unit) ** p).sum(axis=0) ** (1 / p)


def dense_rank(A, p, ratio, damping=0.85, teleport=None, place="inside", steps=30_000):
    """The rank after very many plain steps in extended precision."""
    v = None if teleport is None else np.asarray(teleport) / np.sum(teleport)
    r = np.full(len(A), 1 / len(A), dtype=np.longdouble) if v is None else reach(A, v).astype(np.longdouble)
    r /= r.sum()
    for _ in range(steps):
        new = dense_step(A, r, p, ratio, damping, v, place)
        new /= new.sum()
        if np.abs(new - r).max() < 1e-17:
            return new
        r = new
    raise AssertionError("the slow iteration has not converged")


def reach(A, v):
    """Vertices reachable from those with positive weight."""
    found = np.asarray(v) > 0
    for _ in range(len(A)):
        found = found | (found @ (A > 0))
    return found


def dense_pagerank(A, damping=0.85, teleport=None):
    """PageRank as the eigenvector of a dense matrix."""
    n = len(A)
    v = np.full(n, 1 / n) if teleport is None else np.asarray(teleport) / np.sum(teleport)
    d = A.sum(axis=1)
    P = np.where(d[:, None] > 0, A / np.where(d > 0, d, 1)[:, None], v)
    r = np.linalg.solve(np.eye(n) - damping * P.T, (1 - damping) * v)
    return r / r.sum()
