"""Strategies shared by the property tests: judged lists, points in the domain of a divergence, and set functions.

Sizes, shapes and scales are drawn by hypothesis, which shrinks them; the numbers themselves come from a drawn seed,
which is cheap enough to try every objective, projection and atom in one run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st
from scipy.special import expit, softmax

from apexrank.divergences import DIVERGENCES, KL, Divergence
from apexrank.submodular import (
    Cardinality,
    Chain,
    Custom,
    Cut,
    Indicator,
    Log,
    Modular,
    Product,
    SetFunction,
    Sqrt,
    Top,
)

SEEDS = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class JudgedLists:
    """Input of an objective, and unit scores at which to evaluate it. ``choice`` selects a variant of an objective."""

    relevance: np.ndarray
    groups: np.ndarray
    weight: np.ndarray | None
    scores: np.ndarray
    others: np.ndarray
    choice: int

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, rows: np.ndarray) -> JudgedLists:
        """The same lists restricted to these rows, which may repeat, in any order."""
        weight = None if self.weight is None else self.weight[rows]
        return JudgedLists(
            self.relevance[rows], self.groups[rows], weight, self.scores[rows], self.others[rows], self.choice
        )

    def but(self, **changes: object) -> JudgedLists:
        return replace(self, **changes)  # type: ignore[arg-type]

    def repeated(self) -> tuple[JudgedLists, np.ndarray]:
        """Every row repeated by its weight, without weights, and the original row of each."""
        assert self.weight is not None
        rows = np.repeat(np.arange(len(self)), self.weight.astype(int))
        return self.take(rows).but(weight=None), rows

    def shuffled(self, seed: int = 0) -> tuple[JudgedLists, np.ndarray]:
        rows = np.random.default_rng(seed).permutation(len(self))
        return self.take(rows), rows


@st.composite
def judged_lists(
    draw: st.DrawFn,
    *,
    weighted: bool | None = None,
    most_groups: int = 3,
    most_rows: int = 14,
    ties: bool | None = None,
) -> JudgedLists:
    """Rows of grades 0 to 3 in a few groups, the first of which has a pair to rank; weights are 0, 1, 2 or 3.

    ``weighted`` and ``ties`` (scores in whole numbers) are drawn where they are not given.
    """
    n, n_groups = draw(st.integers(2, most_rows)), draw(st.integers(1, most_groups))
    with_weights = draw(st.booleans()) if weighted is None else weighted
    tied = draw(st.booleans()) if ties is None else ties
    rng = np.random.default_rng(draw(SEEDS))
    relevance, groups = rng.integers(0, 4, n), rng.integers(0, n_groups, n)
    weight = rng.integers(0, 4, n).astype(float)
    relevance[:2], groups[:2], weight[:2] = (0, 2), 0, np.maximum(weight[:2], 1)
    scores, others = rng.normal(size=(2, n))
    if tied:
        scores, others = np.round(2 * scores), np.round(2 * others)
    return JudgedLists(
        relevance, groups, weight if with_weights else None, scores, others, draw(st.integers(0, 11))
    )


@dataclass(frozen=True)
class Draw:
    """A number of coordinates, and a generator of vectors; ``tied`` makes integers."""

    n: int
    tied: bool
    seed: int

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def vectors(self, count: int) -> np.ndarray:
        """Unit numbers, one row per vector."""
        numbers = np.random.default_rng(self.seed + 1).normal(size=(count, self.n))
        return np.round(2 * numbers) if self.tied else numbers


def draws(least: int = 2, most: int = 6) -> st.SearchStrategy[Draw]:
    return st.builds(Draw, st.integers(least, most), st.booleans(), SEEDS)


# ---------------------------------------------------------------- divergences

INTO_DOMAIN: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "squared": lambda u: u,
    "kl": lambda u: softmax(u, axis=-1),
    "i-divergence": np.exp,
    "shifted-i-divergence": lambda u: 1 + np.exp(u),
    "itakura-saito": np.exp,
    "logistic": expit,
}
DIVERGENCE_ATOMS: list[Divergence] = [DIVERGENCES.get(name) for name in DIVERGENCES.members]
SEPARABLE_ATOMS = [atom for atom in DIVERGENCE_ATOMS if not isinstance(atom, KL)]


def point_of(atom: Divergence, u: np.ndarray) -> np.ndarray:
    """A point inside the domain of the divergence for any vector u, increasing in u."""
    return INTO_DOMAIN[atom.name](u)


# ---------------------------------------------------------------- set functions


def _links(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.7)


def _cover(rng: np.random.Generator, n: int) -> Custom:
    """Number of topics covered by a set of items, with the first topic counted twice."""
    topics = rng.uniform(size=(n, 4)) < 0.4
    worth = np.array([2.0, 1.0, 1.0, 0.5])
    return Custom(lambda X: float(worth @ topics[sorted(X)].any(axis=0)) if X else 0.0, n)


SET_FUNCTION_MAKERS: dict[str, Callable[[np.random.Generator, int], SetFunction]] = {
    "sqrt": lambda rng, n: Sqrt(),
    "log": lambda rng, n: Log(m=2),
    "top": lambda rng, n: Top(m=int(rng.integers(1, n + 1))),
    "cardinality": lambda rng, n: Cardinality(np.sort(rng.normal(size=n))[::-1]),
    "product": lambda rng, n: Product(),
    "indicator": lambda rng, n: Indicator(),
    "chain": lambda rng, n: Chain(),
    "cut": lambda rng, n: Cut(_links(rng, n)),
    "modular": lambda rng, n: Modular(rng.normal(size=n)),
    "custom": _cover,
    "sum of sizes": lambda rng, n: 2 * Sqrt() + Modular(rng.normal(size=n)),
    "sum of chains": lambda rng, n: 0.5 * Chain() + 2 * Chain() + Modular(rng.normal(size=n)),
    "sum of all kinds": lambda rng, n: 2 * Sqrt() + 0.5 * Cut(_links(rng, n)) + Modular(rng.normal(size=n)),
}
