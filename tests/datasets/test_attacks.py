"""Attacks add exactly the links that they document, to existing pages."""

from __future__ import annotations

from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

from apexrank.datasets import attack, make_crawl
from apexrank.datasets.attacks import KINDS
from apexrank.errors import InputError
from apexrank.graph import as_graph

SIZES = {kind: 8 for kind, about in KINDS.items() if about.size == "pages"}
FIXED = {"cycle-2": 1, "cycle-3": 2, "hijacked": 0, "expired": 0}
# pages made for the target t; each farm has its own page names
FARM = [(f"b{i}", "t") for i in range(8)]
MADE = {
    "farm": FARM,
    "linked-back": FARM + [(b, a) for a, b in FARM],
    "site": list(permutations(["t", *"abcdefgh"], 2)),  # each of eight pages links to all others
    "funnel": [*((f"b{i}", "c0") for i in range(6)), ("c0", "c1"), ("c1", "t")],
    "deep-funnel": [("b0", "c0"), ("b1", "c0"), *((f"c{i}", f"c{i + 1}") for i in range(5)), ("c5", "t")],
    "whirl": [*((f"b{i}", "c0") for i in range(6)), ("c0", "c1"), ("c1", "t"), ("t", "c0")],
    "triangles": [link for i in range(4) for link in (("t", f"b{i}"), (f"b{i}", f"h{i}"), (f"h{i}", "t"))],
    "cycle-2": [("t", "a"), ("a", "t")],
    "cycle-3": [("t", "a"), ("a", "b"), ("b", "t")],
    "chain": [*((f"c{i}", f"c{i + 1}") for i in range(7)), ("c7", "t")],
    "clique": list(permutations(["t", *"abcdefgh"], 2)),
}
OWN_LINKS_DROPPED = {
    "linked-back",
    "site",
    "whirl",
    "triangles",
    "cycle-2",
    "cycle-3",
    "clique",
    "hijacked-farm",
    "exchange",
}


@pytest.fixture(scope="module")
def web():
    return make_crawl(300, mean_degree=6, random_state=1).adjacency


def made(web, kind, n_targets=3, **options):
    if kind in SIZES:
        options.setdefault("pages", SIZES[kind])
    return attack(web, kind, n_targets=n_targets, hijacked=4, **options)


def links(matrix):
    entries = matrix.tocoo()
    return set(zip(entries.row.tolist(), entries.col.tolist(), strict=True))


def roles(graph, targets):
    nx.set_node_attributes(graph, {node: node in targets for node in graph}, "target")
    return graph


@pytest.mark.parametrize("kind", MADE)
def test_what_is_made_for_each_target(web, kind):
    spammed = made(web, kind)
    targets = set(spammed.target_vertices.tolist())
    expected = [((f, a), (f, b)) for f in range(3) for a, b in MADE[kind]]
    expected_graph = roles(nx.DiGraph(expected), {(f, "t") for f in range(3)})
    found = roles(nx.DiGraph(list(links(spammed.adjacency) - links(web))), targets)
    assert nx.is_isomorphic(found, expected_graph, node_match=lambda a, b: a["target"] == b["target"])


@pytest.mark.parametrize("kind", KINDS)
def test_what_every_attack_has_in_common(web, kind):
    before = web.copy()
    spammed = made(web, kind)
    assert (web != before).nnz == 0
    n, targets = web.shape[0], spammed.target_vertices
    A = spammed.adjacency
    assert A.format == "csr"
    assert A.has_canonical_format
    assert (A.data == 1).all()
    assert len(set(targets.tolist())) == 3
    assert (targets < n).all()
    others = web.toarray() - np.diag(web.diagonal())
    assert others[:, targets].any(axis=0).all()
    # the cost is what was added, and only the attacker's own pages lose links
    old, new = links(web), links(A)
    owned = set(np.flatnonzero(spammed.spam[:n]).tolist())
    assert set(targets.tolist()) <= owned
    assert spammed.spam[n:].all()
    assert spammed.cost["pages"] == A.shape[0] - n == 3 * SIZES.get(kind, FIXED.get(kind))
    assert spammed.cost["hijacked"] == (12 if kind in ("hijacked", "hijacked-farm", "expired") else 0)
    dropped = {(a, b) for a, b in old if a in owned} if kind == "expired" else set()
    if kind in OWN_LINKS_DROPPED:
        dropped = {(a, b) for a, b in old if a in targets}
    if kind == "expired":
        dropped = {(a, b) for a, b in dropped if a not in targets}
        # an expired page may have linked to its target before
        assert old - new <= dropped
        assert all(len([b for a, b in new if a == page]) == 1 for page in owned - set(targets.tolist()))
    else:
        assert old - new == dropped
        assert spammed.cost["links"] == len(new) - len(old) + len(dropped)


def test_all_kinds_have_the_same_targets_and_others_with_another_seed(web):
    drawn = {tuple(made(web, kind).target_vertices.tolist()) for kind in KINDS}
    assert len(drawn) == 1
    assert tuple(made(web, "farm", random_state=1).target_vertices.tolist()) not in drawn


def test_shared_boosters_link_to_all_targets(web):
    spammed = made(web, "shared")
    rows = spammed.adjacency[300:]
    assert rows.shape[0] == 24
    assert all(set(rows[[i]].indices) == set(spammed.target_vertices) for i in range(24))


def test_pages_of_a_site_have_thirty_links(web):
    spammed = attack(web, "site", n_targets=2, pages=50)
    rows = spammed.adjacency[300:]
    assert (np.diff(rows.indptr) == 30).all()
    assert (rows.toarray()[:50, 350:] == 0).all()  # farms do not mix
    assert spammed.cost["links"] == 2 * (50 * 30 + 50)


def test_exchange_is_a_ring_of_targets(web):
    spammed = made(web, "exchange", n_targets=5)
    rows = spammed.adjacency[spammed.target_vertices]
    assert (np.diff(rows.indptr) == 1).all()
    ring = nx.DiGraph(zip(spammed.target_vertices.tolist(), rows.indices.tolist(), strict=True))
    assert nx.is_isomorphic(ring, nx.cycle_graph(5, create_using=nx.DiGraph))


def test_hijacked_pages_are_honest_linked_and_new_to_their_target(web):
    spammed = made(web, "hijacked")
    added = links(spammed.adjacency) - links(web)
    assert len(added) == 12
    for target in spammed.target_vertices.tolist():
        sources = [a for a, b in added if b == target]
        assert len(sources) == 4
        assert not spammed.spam[sources].any()
        assert (np.diff(web.indptr)[sources] > 0).all()


def test_expired_pages_keep_their_in_links(web):
    spammed = made(web, "expired")
    bought = np.setdiff1d(np.flatnonzero(spammed.spam), spammed.target_vertices)
    assert len(bought) == 12
    kept = np.setdiff1d(np.arange(300), bought)
    assert (spammed.adjacency[kept][:, bought] != web[kept][:, bought]).nnz == 0
    assert np.bincount(spammed.adjacency[bought].indices)[spammed.target_vertices].tolist() == [4, 4, 4]


def test_new_links_have_the_usual_weight(web):
    weighted = web.astype(float) * 3
    weighted.data[0] = 1000
    spammed = attack(weighted, "hijacked", n_targets=2)
    added = spammed.adjacency - csr_array(weighted)
    assert set(added.data[added.data != 0]) == {3.0}


def test_a_graph_is_read_as_its_matrix_is(web):
    found, expected = (attack(each, "whirl", n_targets=3) for each in (as_graph(web), web))
    assert (found.adjacency != expected.adjacency).nnz == 0


def test_repeated_entries_and_zeros_are_no_links():
    web = csr_array(([1, 1, 0, 1], ([0, 0, 1, 2], [1, 1, 0, 2])), shape=(3, 3))
    # only 1 is linked by another page: 0 by a zero weight, 2 by itself
    assert attack(web, "cycle-2", n_targets=1).target_vertices.tolist() == [1]


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("farms", {}, r"unknown `attack` 'farms': did you mean 'farm'\? Use one of farm, linked-back"),
        ("farm", {"n_targets": 0}, "`n_targets` must be a whole number of at least 1"),
        ("farm", {"n_targets": 400}, "400 pages are needed, but only .* suitable: lower `n_targets`"),
        ("farm", {"pages": 0}, "`pages` must be a whole number of at least 1"),
        ("deep-funnel", {"pages": 6}, "`pages` must be a whole number of at least 7"),
        ("cycle-2", {"pages": 3}, "the number of new pages of cycle-2 is fixed: leave out pages"),
        ("hijacked", {"hijacked": 299}, "299 pages are needed, but only .* suitable: hijack fewer"),
        ("expired", {"hijacked": 299}, "hijack fewer"),
        ("exchange", {"n_targets": 1}, "`n_targets` must be a whole number of at least 2"),
        ("farm", {"n_targets": 3, "pages": 2**30}, "more than 2\\*\\*31: lower `n_targets` or `pages`"),
    ],
)
def test_bad_input(web, kind, options, message):
    with pytest.raises(InputError, match=message):
        attack(web, kind, **{"n_targets": 3} | options)


@pytest.mark.parametrize("graph", ["edges.csv", nx.path_graph(3)])
def test_other_graphs_are_named_with_the_way_to_read_them(graph):
    with pytest.raises(
        InputError, match=r"got .*: read files and other graphs with apexrank.graph.as_graph first"
    ):
        attack(graph, "farm")


def test_the_documentation_lists_all_kinds():
    assert all(f"- ``{kind}``: {about.about}" in attack.__doc__ for kind, about in KINDS.items())
