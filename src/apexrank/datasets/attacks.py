"""Link spam against existing pages of a graph: link farms, cycles, funnels, hijacked and expired pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from inspect import cleandoc
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import Bunch, check_random_state

from apexrank.datasets.crawl import _checked_graph, _with_links
from apexrank.errors import InputError
from apexrank.validation import check_choice, check_count

FARM_PAGES = 200  # default number of boosters of a farm
SITE_LINKS = 30  # out-degree of a booster that looks like an honest page


def attack(
    graph: Any,
    kind: str,
    *,
    n_targets: int = 50,
    pages: int | None = None,
    hijacked: int = 10,
    targets: Any = None,
    random_state: int | np.random.RandomState | None = 0,
) -> Bunch:
    """Attack random pages of a graph with link spam, all at once.

    The targets are pages of the graph with at least one in-link from another page, so that their ranks before and after
    the attack can be compared; :func:`plant_farms` adds new targets instead. With the same ``random_state`` every kind
    of attack has the same targets. The kinds are:

    KINDS

    Parameters
    ----------
    graph : sparse matrix or array of shape (n, n), or Graph
        ``A[i, j]`` is the weight of the link from i to j.
    kind : str
        One of the kinds above.
    n_targets : int, default=50
        Number of targets.
    pages : int, optional
        Number of new pages per target; default: 200, 20 for ``clique``, 5 for ``chain``. Cycles always take 1 and 2
        pages, ``hijacked`` and ``expired`` none.
    hijacked : int, default=10
        Number of old pages that are hijacked or taken over per target, in attacks that do so.
    targets : array of int, optional
        Vertices to attack; default: ``n_targets`` random ones.
    random_state : int, RandomState or None, default=0
        Seed for drawing the targets, then the hijacked pages.

    Returns
    -------
    Bunch
        With ``adjacency`` (CSR, old vertices first), ``target_vertices``, ``spam`` (mask of the attacker's vertices:
        targets, new pages, and pages taken over), ``cost`` (total numbers of ``pages``, ``links`` and ``hijacked``
        pages) and ``DESCR``. New links have the median weight of the old ones.

    Examples
    --------
    >>> from apexrank.datasets import attack, make_crawl
    >>> web = make_crawl(1000, random_state=0).adjacency
    >>> spammed = attack(web, "linked-back", n_targets=5, pages=20)
    >>> spammed.adjacency.shape, int(spammed.spam.sum()), spammed.cost
    ((1100, 1100), 105, {'pages': 100, 'links': 200, 'hijacked': 0})
    """
    check_choice("attack", kind, KINDS)
    chosen = KINDS[kind]
    check_count("n_targets", n_targets if targets is None else len(targets), chosen.targets)
    check_count("hijacked", hijacked, 1)
    if pages is None:
        pages = chosen.pages
    elif chosen.size != "pages":
        raise InputError(f"the number of new pages of {kind} is fixed: leave out pages")
    check_count("pages", pages, chosen.least)
    old = csr_array(_checked_graph(graph), copy=True)
    old.sum_duplicates()
    old.eliminate_zeros()
    rng, linked = check_random_state(random_state), linked_pages(old)
    if targets is None:
        targets = draw_pages(linked, n_targets, rng, "lower `n_targets`")
    web = _Web(old, linked, np.asarray(targets), int(pages), int(hijacked), rng)
    chosen.make(web)
    return web.finish()


def linked_pages(adjacency: csr_array) -> np.ndarray:
    """Indices of the pages with at least one in-link from another page.

    Examples
    --------
    >>> linked_pages(csr_array([[1, 1, 0], [0, 0, 0], [0, 0, 0]])).tolist()
    [1]
    """
    into = np.bincount(adjacency.indices, minlength=adjacency.shape[0])
    return np.flatnonzero(into > (adjacency.diagonal() != 0))


def draw_pages(pages: np.ndarray, count: int, rng: np.random.RandomState, advice: str) -> np.ndarray:
    """Draw pages without replacement; ``advice`` completes the error message if there are too few."""
    if len(pages) < count:
        raise InputError(f"{count} pages are needed, but only {len(pages)} are suitable: {advice}")
    return rng.choice(pages, count, replace=False)


@dataclass(eq=False)
class _Web:
    """A graph and an attacker's additions to it; arrays of pages have one row per target."""

    old: csr_array
    linked: np.ndarray
    targets: np.ndarray
    pages: int
    hijacked: int
    rng: np.random.RandomState
    n_hijacked: int = 0
    links: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.size, self.owned = self.old.shape[0], self.targets
        self.targets = self.targets[:, None]

    def draw(self, pages: np.ndarray, count: int) -> np.ndarray:
        return draw_pages(pages, count, self.rng, "hijack fewer")

    def new(self, count: int) -> np.ndarray:
        """Indices of new pages, ``count`` per target."""
        farms = len(self.targets)
        first, self.size = self.size, self.size + farms * count
        if self.size >= 2**31:
            raise InputError(f"{self.size} vertices are more than 2**31: lower `n_targets` or `pages`")
        return np.arange(first, self.size).reshape(farms, count)

    def columns(self, count: int) -> list[np.ndarray]:
        """Indices of new pages as ``count`` separate columns."""
        return np.hsplit(self.new(count), count)

    def link(self, *pages: np.ndarray) -> None:
        """Link each array of pages to the next, row by row, broadcasting single columns to all pairs."""
        for ends in pairwise(pages):
            sources, targets = np.broadcast_arrays(*ends)
            self.links.append((sources.ravel(), targets.ravel()))

    def drop_links(self, pages: np.ndarray) -> None:
        """Remove the out-links of old pages."""
        rows = np.zeros(self.old.shape[0], dtype=bool)
        rows[pages.ravel()] = True
        self.old.data[np.repeat(rows, np.diff(self.old.indptr))] = 0

    def finish(self) -> Bunch:
        weights = self.old.data[self.old.data > 0]
        # an attacker's links look like any others: they have the typical weight
        weight = np.median(weights) if len(weights) else 1
        self.old.eliminate_zeros()
        spam = np.arange(self.size) >= self.old.shape[0]
        spam[self.owned] = True
        pages, links = self.size - self.old.shape[0], sum(len(sources) for sources, _ in self.links)
        return Bunch(
            adjacency=_with_links(self.old, self.size, self.links, weight),
            target_vertices=self.targets.ravel().astype(np.int32),
            spam=spam,
            cost={"pages": pages, "links": links, "hijacked": self.n_hijacked},
            DESCR=cleandoc(attack.__doc__ or ""),
        )


def _farm(web: _Web) -> np.ndarray:
    boosters = web.new(web.pages)
    web.link(boosters, web.targets)
    return boosters


def _linked_back(web: _Web) -> np.ndarray:
    boosters = _farm(web)
    web.drop_links(web.targets)
    web.link(web.targets, boosters)
    return boosters


def _site(web: _Web) -> None:
    boosters = _linked_back(web)
    for shift in range(1, min(SITE_LINKS, web.pages)):
        web.link(boosters, np.roll(boosters, shift, axis=1))


def _shared(web: _Web) -> None:
    web.link(web.new(web.pages).reshape(1, -1), web.targets)


def _funnel(web: _Web, depth: int) -> np.ndarray:
    chain = web.columns(depth)
    web.link(web.new(web.pages - depth), *chain, web.targets)
    return chain[0]


def _whirl(web: _Web) -> None:
    web.drop_links(web.targets)
    web.link(web.targets, _funnel(web, 2))


def _triangles(web: _Web) -> None:
    half = web.pages // 2
    web.drop_links(web.targets)
    web.link(web.targets, web.new(half), web.new(half), web.targets)


def _cycle(web: _Web, length: int) -> None:
    web.drop_links(web.targets)
    web.link(web.targets, *web.columns(length - 1), web.targets)


def _chain(web: _Web) -> None:
    web.link(*web.columns(web.pages), web.targets)


def _clique(web: _Web) -> None:
    web.drop_links(web.targets)
    members = np.hstack([web.targets, web.new(web.pages)])
    for shift in range(1, members.shape[1]):
        web.link(members, np.roll(members, shift, axis=1))


def _hijacked(web: _Web) -> None:
    able = np.diff(web.old.indptr) > 0
    able[web.owned] = False
    links = web.old.tocsc()
    for target in web.targets[:, 0]:
        free = able.copy()
        free[links.indices[links.indptr[target] : links.indptr[target + 1]]] = False
        honest = web.draw(np.flatnonzero(free), web.hijacked)
        web.link(honest, target)
    web.n_hijacked = web.hijacked * len(web.targets)


def _hijacked_farm(web: _Web) -> None:
    _hijacked(web)
    _linked_back(web)


def _exchange(web: _Web) -> None:
    _farm(web)
    web.drop_links(web.targets)
    web.link(web.targets, np.roll(web.targets, -1, axis=0))


def _expired(web: _Web) -> None:
    web.n_hijacked = web.hijacked * len(web.targets)
    bought = web.draw(np.setdiff1d(web.linked, web.owned), web.n_hijacked)
    web.drop_links(bought)
    web.link(bought.reshape(-1, web.hijacked), web.targets)
    web.owned = np.append(web.owned, bought)


class AttackKind(NamedTuple):
    """An attack: its function, description, size parameter, default and minimum numbers of pages, minimum targets."""

    make: Callable[[_Web], Any]
    about: str
    size: str | None = "pages"
    pages: int = FARM_PAGES
    least: int = 1
    targets: int = 1


KINDS = {
    "farm": AttackKind(_farm, "boosters, each of which links only to the target"),
    "linked-back": AttackKind(_linked_back, "a farm whose target links to its boosters and to nobody else"),
    "site": AttackKind(_site, "linked-back boosters that also link to the next 29, as honest pages do"),
    "shared": AttackKind(_shared, "all farms share their boosters, each of which links to all targets"),
    "funnel": AttackKind(
        partial(_funnel, depth=2),
        "boosters link to the first of a chain of two pages, the last of which links to the target",
        least=3,
    ),
    "deep-funnel": AttackKind(partial(_funnel, depth=6), "a funnel with a chain of six pages", least=7),
    "whirl": AttackKind(_whirl, "a funnel whose target links only to the chain: a cycle of three", least=3),
    "triangles": AttackKind(
        _triangles,
        "the target links to boosters, each of them to a helper of its own, helpers to the target",
        least=2,
    ),
    "cycle-2": AttackKind(partial(_cycle, length=2), "the target and one page link only to each other", None),
    "cycle-3": AttackKind(partial(_cycle, length=3), "the target and two pages form a cycle", None),
    "chain": AttackKind(_chain, "pages in a line that ends in the target", pages=5),
    "clique": AttackKind(_clique, "target and pages link to one another and to nobody else", pages=20),
    "hijacked": AttackKind(_hijacked, "honest pages that are made to link to the target as well", "hijacked"),
    "hijacked-farm": AttackKind(_hijacked_farm, "hijacked and linked-back together"),
    "exchange": AttackKind(_exchange, "farms whose targets link only to the next one, in a ring", targets=2),
    "expired": AttackKind(
        _expired, "old pages taken over with their in-links link only to the target", "hijacked"
    ),
}
if attack.__doc__:  # removed by python -OO
    _ABOUT = "\n    ".join(f"- ``{name}``: {kind.about};" for name, kind in KINDS.items())
    attack.__doc__ = attack.__doc__.replace("KINDS", f"{_ABOUT[:-1]}.")
