"""PageRank compared with ranks that resist link farms: suspected farms, and the report about them."""

import json
import re
from html.parser import HTMLParser

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from apexrank.datasets import attack
from apexrank.datasets.crawl import make_crawl, plant_farms
from apexrank.errors import InputError
from apexrank.graph import Graph, GuardedPageRank, InDegree, LpqRank, NonBacktrackingRank, PageRank, as_graph
from apexrank.graph.neighbourhood import (
    closed_share,
    has_links,
    origin_share,
    self_loops,
    support,
    unsupported_share,
)
from apexrank.graph.trust import TrustRank
from apexrank.report import build, compare_ranks
from apexrank.report.charts import FONT, width_of
from apexrank.report.graph import page as graph_page
from apexrank.report.graph.compare import SUSPECTS_GUARD

FARMS = {
    "50 boosters": {"boosters": 50},
    "20 boosters": {"boosters": 20},
    "no links back": {"boosters": 50, "return_links": False},
    "hijacked": {"boosters": 50, "hijacked": 5},
    "alliance": {"boosters": 50, "interlinked": True},
}


def crawl_with_farms(seed=0, farms=10, n=3000, **options):
    web = make_crawl(n, random_state=seed).adjacency
    return plant_farms(web, farms=farms, random_state=seed, **options)


@pytest.fixture(scope="module")
def crawl():
    return crawl_with_farms(boosters=50)


@pytest.fixture(scope="module")
def found(crawl):
    return compare_ranks(crawl.adjacency, spam=crawl.spam)


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 8))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    links = sorted(draw(st.sets(pairs, max_size=20)))
    weights = draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(links), max_size=len(links)))
    scores = np.array(draw(st.lists(st.sampled_from([0.1, 0.2, 0.7]), min_size=n, max_size=n)))
    G = nx.DiGraph()
    G.add_nodes_from(range(n))
    G.add_weighted_edges_from((a, b, w) for (a, b), w in zip(links, weights, strict=True))
    sources, targets = (np.array([link[end] for link in links], dtype=np.int64) for end in (0, 1))
    return G, Graph.from_edges(sources, targets, weights, n=n), scores


class TestEvidence:
    @settings(deadline=None, max_examples=60)
    @given(graphs())
    def test_support_is_that_of_networkx(self, made):
        G, graph, scores = made
        found = support(graph, scores, np.arange(graph.n))
        for v in G:
            sources = [j for j in G.predecessors(v) if j != v]
            flow = {j: scores[j] * G[j][v]["weight"] / G.out_degree(j, weight="weight") for j in sources}
            lone = [j for j in sources if not set(G.predecessors(j)) - {v, j}]
            assert found.sources[v] == len(sources)
            assert found.unsupported[v] == len(lone)
            assert found.back[v] == sum(G.has_edge(v, j) for j in sources)
            share = sum(flow[j] for j in lone) / sum(flow.values()) if sources else 0.0
            assert found.share[v] == pytest.approx(share)

    @settings(deadline=None, max_examples=60)
    @given(graphs())
    def test_groups_and_loops(self, made):
        G, graph, scores = made
        assert self_loops(graph).tolist() == [G.has_edge(v, v) for v in G]
        flow = {
            (u, v): scores[u] * w / G.out_degree(u, weight="weight")
            for u, v, w in G.edges(data="weight")
            if u != v
        }
        alone = sum(amount for (u, _), amount in flow.items() if not set(G.predecessors(u)) - {u})
        usual = alone / sum(flow.values()) if flow else 0.0
        assert unsupported_share(graph, scores) == pytest.approx(usual)
        assert has_links(graph) == bool(flow)
        for v in G:
            sources = set(G.predecessors(v)) - {v}
            closed = [j for j in sources if set(G.predecessors(j)) <= sources | {v}]
            assert closed_share(graph, v) == pytest.approx(len(closed) / max(1, len(sources)))

    @settings(deadline=None, max_examples=60)
    @given(graphs(), st.randoms(use_true_random=False))
    def test_origin_share_is_that_of_a_dense_solve(self, made, rng):
        G, graph, _ = made
        starts = np.array([rng.random() < 0.5 for _ in G])
        links = nx.to_numpy_array(G, nodelist=sorted(G))
        shares = links / np.maximum(links.sum(axis=1, keepdims=True), 1e-300)
        walks = np.linalg.inv(np.eye(graph.n) - 0.85 * shares.T)
        expected = walks @ starts / walks.sum(axis=1)
        assert origin_share(PageRank(tol=1e-13).fit(graph), starts) == pytest.approx(expected, abs=1e-9)


class TestRanks:
    def test_scores_are_those_of_the_estimators(self, crawl, found):
        assert found.names == ["PageRank", "GuardedPageRank", "NonBacktrackingRank"]
        for i, rank in enumerate((PageRank, GuardedPageRank, NonBacktrackingRank)):
            exact = rank(tol=1e-11).fit(crawl.adjacency).scores_
            bound = found.certificates[i].error_bound
            assert found.certificates[i].rank == found.names[i]
            assert bound <= 1e-7
            assert np.abs(found.scores[i] - exact).sum() <= bound + 1e-10
            assert found.certificates[i].converged

    def test_ranks_are_those_of_scipy(self, found):
        for scores, ranks in zip(found.scores, found.ranks, strict=True):
            assert np.array_equal(ranks, rankdata(-scores, method="min"))

    def test_lists(self, found):
        for i in range(3):
            items = found.top_items(i)
            best = np.argsort(-found.scores[i], kind="stable")[:30]
            assert [item.name for item in items] == best.tolist()
            assert [item.change for item in items] == (found.ranks[0] - found.ranks[i])[best].tolist()
            flagged = set(found.flagged.tolist())
            assert [item.suspect for item in items] == [v in flagged for v in best.tolist()]
            left = {item.name for item in found.fallen(i)}
            assert left == {item.name for item in found.top_items(0)} - {item.name for item in items}
        assert found.fallen(0) == []
        assert len(found.top_items(2, 5)) == 5

    def test_other_ranks_do_not_change_the_suspects(self, crawl, found):
        ranks = {"L_pq": LpqRank(4, tol=1e-7), "in-degree": InDegree()}
        other = compare_ranks(crawl.adjacency, ranks=ranks)
        assert other.names == ["PageRank", "L_pq", "in-degree"]
        assert np.array_equal(other.scores[1], LpqRank(4, tol=1e-7).fit(crawl.adjacency).scores_)
        assert np.isnan(other.certificates[2].error_bound)
        assert other.flagged.tolist() == found.flagged.tolist()
        assert not hasattr(ranks["L_pq"], "scores_")  # a copy is fitted

    def test_names_do_not_change_the_answer(self, crawl, found):
        links = crawl.adjacency.tocoo()
        named = compare_ranks(
            ([f"v{i:05}" for i in links.row.tolist()], [f"v{i:05}" for i in links.col.tolist()])
        )
        assert [each.name for each in named.suspects] == [f"v{each.name:05}" for each in found.suspects]
        assert named.verdict == found.verdict

    def test_stages_are_told(self):
        told = []
        compare_ranks((["a", "b"], ["b", "a"]), progress=told.append)
        assert told[0] == "reading the graph"
        assert "ranking 2 vertices, GuardedPageRank" in told

    def test_not_converged_is_a_note(self):
        found = compare_ranks(make_crawl(200, random_state=0).adjacency, max_iter=3)
        assert [each.converged for each in found.certificates] == [False, False, False]
        assert sum("has not converged after " in note for note in found.notes) == 3


class TestSuspects:
    @pytest.mark.parametrize("seed", [0, 1])
    @pytest.mark.parametrize("options", FARMS.values(), ids=FARMS)
    def test_planted_farms_are_found_and_nobody_else(self, options, seed):
        crawl = crawl_with_farms(seed, **options)
        found = compare_ranks(crawl.adjacency, tol=1e-6)
        assert set(found.flagged.tolist()) == set(crawl.target_vertices.tolist())
        assert found.verdict.kind == "suspects"

    @pytest.mark.parametrize("kind", ["linked-back", "triangles", "funnel", "whirl", "exchange"])
    def test_farms_of_other_shapes_are_found(self, kind):
        web = make_crawl(5000, mean_degree=20, random_state=0).adjacency
        spammed = attack(web, kind, n_targets=10, pages=100)
        found = compare_ranks(spammed.adjacency, tol=1e-6)
        assert set(spammed.target_vertices.tolist()) <= set(found.flagged.tolist())
        assert spammed.spam[found.flagged].mean() >= 0.9

    @pytest.mark.parametrize("mean_degree", [3, 10])
    def test_plain_crawls_raise_no_alarm(self, mean_degree):
        for seed in range(6):
            web = make_crawl(2000, mean_degree=mean_degree, random_state=seed).adjacency
            found = compare_ranks(web, tol=1e-6)
            assert found.verdict.kind == "nothing found"
            assert found.verdict.text.startswith("Nothing suspicious found")
            assert not len(found.flagged)
            assert found.table().is_empty()

    def test_suspicion_is_its_formula(self, crawl, found):
        graph = as_graph(crawl.adjacency)
        guard = GuardedPageRank(**SUSPECTS_GUARD, tol=1e-11).fit(graph)
        excess = guard.pagerank_ / (guard.limit_ * guard.guard_)
        cheap = origin_share(PageRank(tol=1e-12).fit(graph), np.diff(graph.indptr) - self_loops(graph) <= 1)
        for each in found.suspects:
            assert each.excess == pytest.approx(excess[each.name], rel=1e-3)
            assert each.cheap_share == pytest.approx(cheap[each.name], rel=1e-3)
            assert each.suspicion == pytest.approx(
                np.log(each.excess) * (1 + each.unsupported_share) * each.cheap_share
            )
            assert each.reason == "excess and unsupported"
        values = [each.suspicion for each in found.suspects]
        assert values == sorted(values, reverse=True)

    def test_each_rule_is_named(self):
        # a star of boosters in a small graph, whose excess is too small; a funnel, whose boosters are not its in-links
        web = make_crawl(1000, random_state=0).adjacency
        boosted = nx.DiGraph([(i, (i + 1) % 30) for i in range(30)] + [(f"b{i}", 0) for i in range(40)])
        assert [each.reason for each in compare_ranks(boosted).suspects] == ["unsupported"]
        funnel = attack(web, "funnel", n_targets=1, pages=100)
        target = funnel.target_vertices[0]
        reasons = {each.name: each.reason for each in compare_ranks(funnel.adjacency).suspects}
        assert reasons[target] == "excess"

    def test_what_is_told_of_a_target(self, crawl, found):
        for each in found.suspects:
            assert (each.in_links, each.unsupported, each.unsupported_share) == (50, 50, 1.0)
            assert (each.linked_back, each.closed, each.self_loop) == (1.0, 1.0, False)
            assert each.base_rank == found.ranks[0][each.name]

    def test_the_verdict_says_where_they_go(self, found):
        before, after = (np.median(found.ranks[i][found.flagged]) for i in (0, 1))
        assert found.verdict.text == (
            "PageRank's first 30 contain 10 vertices that look like targets of link farms: most of their rank comes "
            "from vertices without other in-links, or it is much more than many independent links allow. With "
            f"GuardedPageRank their median place changes from {before:,.0f} to {after:,.0f}."
        )

    def test_fewer_are_listed_than_found(self, crawl):
        found = compare_ranks(crawl.adjacency, suspects=3)
        assert len(found.suspects) == 3
        assert len(found.flagged) == 10
        assert any("the 3 most suspicious are listed" in note for note in found.notes)

    @pytest.mark.parametrize(
        ("links", "text"),
        [
            (([0], [0]), "There are no links except self-loops, so there is nothing to examine."),
            (([0, 1], [0, 1]), "There are no links except self-loops, so there is nothing to examine."),
            (([0, 1], [1, 2], [0.0, 0.0]), "There are no links, so there is nothing to examine."),
        ],
        ids=["one loop", "two loops", "weights of zero"],
    )
    def test_without_links_there_is_nothing_to_look_at(self, links, text):
        found = compare_ranks(links)
        assert found.verdict == ("no links", text)
        assert found.usual == 0
        assert not any("is suspected" in note for note in found.notes)
        assert "good" not in re.search('class="verdict([^"]*)"', build(found))[1]

    def test_ranks_that_have_not_converged_are_in_the_verdict(self):
        web = make_crawl(200, random_state=0).adjacency
        doubt = (
            " The ranks have not converged (PageRank, GuardedPageRank and NonBacktrackingRank), so this may change: "
            "raise `max_iter` or `tol`."
        )
        found = compare_ranks(web, max_iter=3)
        assert found.verdict.text.endswith(doubt)
        settled = compare_ranks(web)
        assert "converged" not in settled.verdict.text
        classes = [re.search('class="verdict([^"]*)"', build(each))[1] for each in (found, settled)]
        assert ["good" in each for each in classes] == [False, True]

    def test_votes_of_many_for_few_cannot_be_told(self):
        rng = np.random.default_rng(0)
        voters = np.repeat(np.arange(10, 500), 3)
        found = compare_ranks((voters, rng.integers(0, 10, len(voters))))
        assert found.usual == pytest.approx(1.0)
        assert found.verdict.kind == "cannot tell"
        assert not len(found.flagged)

    def test_farms_like_honest_sites_are_missed(self):
        # documented: the page says so, too
        web = make_crawl(2000, random_state=0).adjacency
        spammed = attack(web, "clique", n_targets=1, pages=60)
        found = compare_ranks(spammed.adjacency)
        assert found.ranks[0][spammed.target_vertices[0]] <= found.head
        assert spammed.target_vertices[0] not in found.flagged
        assert "Farms built like honest sites are not found" in found.notes[0]

    def test_closed_cycles_on_top_are_in_the_verdict(self):
        web = make_crawl(2000, random_state=0).adjacency.tocoo()
        pairs = np.arange(2000, 2040)
        links = np.r_[web.row, pairs], np.r_[web.col, pairs ^ 1]
        found = compare_ranks(links, ranks={"GuardedPageRank": GuardedPageRank(), "L_2": LpqRank(2)})
        assert found.closed[2] > found.closed[1] + 3
        assert (
            f" {found.closed[2]} of the first 30 with L_2 are not honest pages but parts of closed cycles, which "
            f"retain their rank ({found.closed[0]} with PageRank)."
        ) in found.verdict.text
        assert "closed cycles" not in compare_ranks(links).verdict.text


class TestLabels:
    def test_measures(self, crawl, found):
        for i, measured in enumerate(found.measures):
            first = np.argsort(-found.scores[i], kind="stable")[:30]
            assert measured["spam_mass"] == pytest.approx(found.scores[i][crawl.spam].sum())
            assert measured["spam_met"] == pytest.approx(crawl.spam[first].sum())
        assert any(note.endswith("; 10 of 10 suspects are among them.") for note in found.notes)

    def test_labels_only_measure(self, crawl, found):
        plain = compare_ranks(crawl.adjacency)
        assert plain.measures == []
        assert [each.name for each in plain.suspects] == [each.name for each in found.suspects]
        assert np.array_equal(plain.scores[2], found.scores[2])

    def test_labels_that_the_graph_does_not_have_are_a_note(self, crawl):
        target = int(crawl.target_vertices[0])
        known = compare_ranks(crawl.adjacency, spam=[target])
        for spam in ([target, 10**9, "x"], {target: 1, 10**9: 1.0, "x": 2.0}):
            found = compare_ranks(crawl.adjacency, spam=spam)
            assert found.spam.tolist() == known.spam.tolist()
            assert "2 spam labels match no vertex of this graph and are ignored." in found.notes
            assert any(note.startswith("The spam label was used only for evaluation") for note in found.notes)
        named = compare_ranks((["a", "b", "c"], ["b", "c", "a"]), spam=np.array(["a", "z"], dtype=object))
        assert "1 spam label matches no vertex of this graph and is ignored." in named.notes
        with pytest.raises(InputError, match="spam vertex 'y' and 1 more are not in the graph"):
            compare_ranks((["a", "b"], ["b", "a"]), spam=["y", "z"])

    def test_trusted_are_not_suspected(self, crawl):
        target = int(crawl.target_vertices[0])
        found = compare_ranks(crawl.adjacency, trusted=[0, target])
        assert {each.name for each in found.suspects} == set(crawl.target_vertices.tolist()) - {target}
        expected = TrustRank(tol=1e-7).fit(crawl.adjacency, trusted=[0, target]).scores_
        assert found.names[-1] == "TrustRank"
        assert np.array_equal(found.scores[-1], expected)
        assert np.array_equal(found.scores[0], PageRank(tol=1e-7).fit(crawl.adjacency).scores_)
        assert found.notes[-1].startswith("2 trusted vertices")


class TestResult:
    def test_table(self, found):
        table = found.table()
        assert table.height == 10
        assert table["vertex"].to_list() == [each.name for each in found.suspects]
        assert table["reason"].to_list() == [each.reason for each in found.suspects]
        assert table["pagerank_rank"].to_list() == [each.base_rank for each in found.suspects]

    def test_dict_is_json(self, found):
        told = json.loads(json.dumps(found.to_dict()))
        assert told["verdict"]["kind"] == "suspects"
        assert [each["certificate"]["rank"] for each in told["ranks"]] == found.names
        assert len(told["suspects"]) == told["flagged"] == 10

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"ranks": {}}, "ranks needs at least one rank to compare PageRank with"),
            ({"ranks": {"PageRank": InDegree()}}, "and none named PageRank"),
            ({"top": 0}, "`top` must be a whole number of at least 1, got 0"),
            ({"suspects": 1.5}, "`suspects` must be a whole number of at least 1"),
            ({"damping": 1}, "'damping' parameter"),
            ({"spam": ["z"]}, "spam vertex 'z' is not in the graph"),
            ({"spam": ["a", "b"]}, "spam must be some of the vertices"),
            ({"spam": []}, "spam must be some of the vertices"),
            ({"trusted": ["z"]}, "trusted vertex 'z' is not in the graph"),
        ],
        ids=str,
    )
    def test_bad_input(self, options, message):
        with pytest.raises(ValueError, match=message.replace("(", r"\(")) as error:
            compare_ranks((["a", "b"], ["b", "a"]), **options)
        assert "\n" not in str(error.value)

    def test_signed_graphs_are_refused(self):
        with pytest.raises(InputError, match="takes no signed graph"):
            compare_ranks(as_graph((["a", "b"], ["b", "a"], [1, -1]), signed=True))


class Reader(HTMLParser):
    """Text and tags of a page, and whether its tags are closed."""

    VOID = ("meta", "input")

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.text = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


class TestPage:
    def test_what_it_shows(self, found):
        html = build(found)
        page = Reader(html)
        text = "".join(page.text)
        assert page.open == []
        assert found.verdict.text in text
        for note in found.notes:
            assert note in text
        for heading in (
            "Suspected link farms",
            "The first 30 vertices",
            "Labelled spam",
            "Accuracy of the ranks",
        ):
            assert heading in text
        assert text.count("excess and unsupported") == len(found.suspects)
        frames = {attrs["data-frame"] for _, attrs in page.tags if "data-frame" in attrs}
        assert frames == {"0", "1", "2"}
        slider = next(attrs for tag, attrs in page.tags if tag == "input")
        assert json.loads(slider["data-labels"]) == found.names
        assert slider["value"] == "1"
        on = [attrs for _, attrs in page.tags if "frame on" in attrs.get("class", "")]
        assert {attrs["data-frame"] for attrs in on} == {"1"}
        assert len(html) < 6e6

    def test_loads_nothing(self, found):
        loading = {"src", "href", "action", "data", "srcset"}
        given = [
            (tag, name, value) for tag, attrs in Reader(build(found)).tags for name, value in attrs.items()
        ]
        assert [each for each in given if each[1] in loading] == [("a", "href", "#content")]

    def test_names_are_escaped(self):
        evil = "<script>alert(1)</script>"
        boosters = [f'<b>"{i}"&amp;</b>' for i in range(40)]
        ring = [f"page {i}" for i in range(60)]
        sources = [*boosters, *[evil] * 40, *ring, *ring]
        targets = [*[evil] * 40, *boosters, *ring[1:], ring[0], *ring[7:], *ring[:7]]
        found = compare_ranks((sources, targets), spam=[evil])
        assert [each.name for each in found.suspects] == [evil]
        html = build(found, title=evil)
        assert html.count("<script>") == 1  # the page's own
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
        assert "<b>" not in html
        assert evil in "".join(Reader(html).text)

    def test_names_fit_beside_the_slopes_and_suspects_come_first(self):
        target, rest = "FARM " + "W" * 100, [f"page {'m' * 40} {i}" for i in range(60)]
        boosters = [f"b{i}" for i in range(40)]
        sources = [*boosters, *[target] * 40, *rest, *rest]
        targets = [*[target] * 40, *boosters, *rest[1:], rest[0], *rest[7:], *rest[:7]]
        found = compare_ranks((sources, targets))
        assert [each.name for each in found.suspects] == [target]
        chart = graph_page._slopes(found).render(1)
        labels = re.findall(
            r'<text class="label ?(\w*)" x="([\d.]+)"[^>]*text-anchor="(\w+)">([^<]*)<', chart
        )
        strong = [text for kind, _, _, text in labels if kind == "strong"]
        assert len(strong) == 2 * len(
            found.names
        )  # at both ends of each frame, though other names have better places
        assert all(text.startswith("FARM W") and "…" in text for text in strong)
        for kind, x, anchor, text in labels:
            room = float(x) if anchor == "end" else 540 - float(x)
            assert FONT * width_of(text, bold=kind == "strong") <= room
        assert 'class="name"' not in chart  # no title of an axis for names to run over

    @pytest.mark.parametrize(
        "links", [([0], [0]), ([0, 1], [1, 0]), ([0, 1, 2], [1, 1, 1])], ids=["one", "two", "star"]
    )
    def test_smallest_graphs(self, links):
        found = compare_ranks(links)
        page = Reader(build(found))
        assert page.open == []
        assert found.suspects == []
        assert "None." in " ".join(page.text)

    def test_many_vertices_make_no_larger_page(self, found):
        crawl = crawl_with_farms(n=20_000, boosters=50)
        large = build(compare_ranks(crawl.adjacency, spam=crawl.spam, tol=1e-6))
        assert len(large) < 1.5 * len(build(found))
