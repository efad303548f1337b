"""PageRank beside L_pq ranks: suspected link farms, and the page about them."""

import json
import re
from html.parser import HTMLParser

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from apexrank.datasets.crawl import make_crawl, plant_farms
from apexrank.errors import InputError
from apexrank.graph import Graph, LpqRank, PageRank, as_graph
from apexrank.report import build, compare_ranks
from apexrank.report.charts import FONT, width_of
from apexrank.report.graph import page as graph_page
from apexrank.report.graph.farms import (
    closed_share,
    cycle_length,
    has_links,
    links_among,
    self_loops,
    support,
    unsupported_share,
)

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
    def test_groups_cycles_and_loops(self, made):
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
            single = G.subgraph([u for u in G if G.out_degree(u) == 1])
            round_trip = next((c for c in nx.simple_cycles(single) if v in c), [])
            assert cycle_length(graph, v) == len(round_trip)

    @settings(deadline=None, max_examples=40)
    @given(graphs(), st.randoms(use_true_random=False))
    def test_links_among(self, made, rng):
        G, graph, _ = made
        some = rng.sample(range(graph.n), rng.randint(1, graph.n))
        expected = [
            (a, b) for a, u in enumerate(some) for b, v in enumerate(some) if a != b and G.has_edge(u, v)
        ]
        assert links_among(graph, some) == expected


class TestRanks:
    def test_scores_are_those_of_the_estimators(self, crawl, found):
        assert found.ps == (1, 2, 4, 8)
        for i, p in enumerate(found.ps):
            rank = PageRank(tol=1e-12) if p == 1 else LpqRank(p, 1.2, tol=1e-12)
            exact = rank.fit(crawl.adjacency).scores_
            bound = found.certificates[i].error_bound
            assert bound <= 1e-7
            assert np.abs(found.scores[i] - exact).sum() <= bound + 1e-11
            assert found.certificates[i].converged

    def test_ranks_are_those_of_scipy(self, found):
        for scores, ranks in zip(found.scores, found.ranks, strict=True):
            assert np.array_equal(ranks, rankdata(-scores, method="min"))

    def test_lists(self, found):
        for i in range(4):
            items = found.top_items(i)
            best = np.argsort(-found.scores[i], kind="stable")[:30]
            assert [item.name for item in items] == best.tolist()
            assert [item.change for item in items] == (found.ranks[0] - found.ranks[i])[best].tolist()
            flagged = set(found.flagged[i].tolist())
            assert [item.suspect for item in items] == [v in flagged for v in best.tolist()]
            left = {item.name for item in found.fallen(i)}
            assert left == {item.name for item in found.top_items(0)} - {item.name for item in items}
        assert found.fallen(0) == []
        assert len(found.top_items(2, 5)) == 5

    def test_one_is_always_among_the_powers(self):
        links = (["a", "b", "c"], ["b", "c", "b"])
        assert compare_ranks(links, ps=(np.inf, 3)).ps == (1, 3, np.inf)
        assert compare_ranks(links, ps=3).ps == (1, 3)

    def test_names_do_not_change_the_answer(self, crawl, found):
        links = crawl.adjacency.tocoo()
        named = compare_ranks(
            ([f"v{i:05}" for i in links.row.tolist()], [f"v{i:05}" for i in links.col.tolist()])
        )
        assert [each.name for each in named.suspects()] == [f"v{each.name:05}" for each in found.suspects()]
        assert named.verdict == found.verdict

    def test_stages_are_told(self):
        told = []
        compare_ranks((["a", "b"], ["b", "a"]), ps=2, progress=told.append)
        assert told[0] == "reading the graph"
        assert "ranking 2 vertices, p = 2" in told

    def test_not_converged_is_a_note(self):
        found = compare_ranks(make_crawl(200, random_state=0).adjacency, ps=(2,), max_iter=3)
        assert [each.converged for each in found.certificates] == [False, False]
        assert sum(note.startswith("Not converged at ") for note in found.notes) == 2


class TestSuspects:
    @pytest.mark.parametrize("seed", [0, 1])
    @pytest.mark.parametrize("options", FARMS.values(), ids=FARMS)
    def test_planted_farms_are_found_and_nobody_else(self, options, seed):
        crawl = crawl_with_farms(seed, **options)
        found = compare_ranks(crawl.adjacency, tol=1e-6)
        targets = set(crawl.target_vertices.tolist())
        assert set(found.flagged[3].tolist()) == targets
        for i in (1, 2):
            assert set(found.flagged[i].tolist()) <= targets
        assert not len(found.unmoved)
        assert found.verdict.kind == "suspects"

    @pytest.mark.parametrize("mean_degree", [3, 10])
    def test_plain_crawls_raise_no_alarm(self, mean_degree):
        for seed in range(6):
            web = make_crawl(2000, mean_degree=mean_degree, random_state=seed).adjacency
            found = compare_ranks(web, ps=(2, 8), tol=1e-6)
            assert found.verdict.kind == "nothing found"
            assert found.verdict.text.startswith("Nothing suspicious found")
            assert not any(map(len, found.flagged))
            assert found.table().is_empty()

    def test_suspicion_is_its_formula(self, crawl, found):
        graph = as_graph(crawl.adjacency)
        base = PageRank(tol=1e-12).fit(graph).scores_
        for i, p in enumerate(found.ps[1:], start=1):
            now = LpqRank(p, 1.2, tol=1e-12).fit(graph).scores_
            values = []
            for each in found.suspects(i):
                v = each.name
                assert each.fall == pytest.approx(np.log(base[v] / now[v]), abs=1e-3)
                assert each.suspicion == pytest.approx(each.fall * each.unsupported_share)
                values.append(each.suspicion)
            assert values == sorted(values, reverse=True)

    def test_what_is_told_of_a_target(self, crawl, found):
        for each in found.suspects():
            assert (each.in_links, each.unsupported, each.unsupported_share) == (50, 50, 1.0)
            assert (each.linked_back, each.closed, each.self_loop) == (1.0, 1.0, False)
            assert len(each.links) == 8
            assert all(each.name < link.source <= each.name + 50 for link in each.links)
            assert set(each.among) == {(0, k) for k in range(1, 9)} | {(k, 0) for k in range(1, 9)}
            assert each.base_rank == found.ranks[0][each.name]

    def test_links_are_those_of_explain(self, crawl, found):
        rank = PageRank(tol=1e-7).fit(crawl.adjacency)
        suspect = found.suspects()[0]
        explained = [link for link in rank.explain(suspect.name) if link.source is not None]
        assert suspect.links == explained[:8]

    def test_none_at_p_one(self, found):
        assert found.suspects(0) == []
        assert found.risers(0) == []

    def test_the_chosen_p_puts_them_furthest_down(self, found):
        depth = [np.median(found.ranks[i][found.flagged[i]]) for i in (1, 2, 3)]
        assert found.chosen == 1 + int(np.argmax(depth))
        before = np.median(found.ranks[0][found.flagged[found.chosen]])
        assert found.verdict.text == (
            "PageRank's first 30 contain 10 vertices that look like targets of link farms: most of their rank comes "
            f"from vertices nobody else links to. At p = {found.ps[found.chosen]:g}, of the p tried the one "
            "that moves them furthest, their median place goes from "
            f"{before:,.0f} to {max(depth):,.0f}."
        )

    def test_verdict_on_one_and_on_those_below_the_top(self):
        crawl = crawl_with_farms(farms=1, boosters=50)
        assert "contain 1 vertex that looks like the target of a link farm: most of its rank comes" in (
            compare_ranks(crawl.adjacency, ps=8).verdict.text
        )
        small = crawl_with_farms(farms=4, boosters=15, return_links=False)
        below = compare_ranks(small.adjacency, ps=8, top=1).verdict.text
        assert below.startswith(
            "PageRank's first vertex does not look like the target of a link farm, but 4 of its first 100 do: "
        )
        below = compare_ranks(small.adjacency, ps=8, top=2).verdict.text
        assert below.startswith(
            "None of PageRank's first 2 vertices looks like the target of a link farm, but 4 of its first 100 do: "
        )
        alone = compare_ranks(crawl.adjacency, ps=8, top=1).verdict.text
        assert alone.startswith(
            "PageRank's first vertex looks like the target of a link farm: most of its rank"
        )
        assert "of the p tried the one that moves it furthest, its place goes from 1 to " in alone

    def test_fewer_are_listed_than_found(self, crawl):
        found = compare_ranks(crawl.adjacency, ps=8, suspects=3, neighbours=0)
        assert len(found.suspects()) == 3
        assert len(found.flagged[1]) == 10
        assert any("the 3 most suspicious are listed" in note for note in found.notes)
        assert found.suspects()[0].links == []

    def test_all_of_them_fall_in_score_and_place(self, found):
        for i in (1, 2, 3):
            for each in found.suspects(i):
                assert each.fall > 0
                assert each.change < 0

    def test_who_keeps_its_place_is_no_suspect(self):
        # so large a ratio makes all scores alike but where many links come in: the target rises to the first place
        crawl = crawl_with_farms(farms=1, boosters=50, n=500)
        target = int(crawl.target_vertices[0])
        found = compare_ranks(crawl.adjacency, ratio=1000)
        assert all(scores[target] < found.scores[0][target] for scores in found.scores[1:])
        assert all(ranks[target] <= found.ranks[0][target] for ranks in found.ranks)
        assert not any(map(len, found.flagged))
        assert found.unmoved.tolist() == [target]
        assert found.verdict == (
            "nothing falls",
            "No suspects: 1 of PageRank's first 100 vertices gets most of its rank from vertices nobody else links to, "
            "but it does not fall in both score and place at a p tried. A larger p or a smaller ratio may tell more.",
        )
        assert any(note.startswith(f"1 vertex ({target}) gets most of its rank") for note in found.notes)
        assert found.to_dict()["unmoved"] == [target]

    @pytest.mark.parametrize(
        ("links", "text"),
        [
            (([0], [0]), "There are no links but those of vertices to themselves: nothing to look at."),
            (([0, 1], [0, 1]), "There are no links but those of vertices to themselves: nothing to look at."),
            (([0, 1], [1, 2], [0.0, 0.0]), "There are no links: nothing to look at."),
        ],
        ids=["one loop", "two loops", "weights of zero"],
    )
    def test_without_links_there_is_nothing_to_look_at(self, links, text):
        found = compare_ranks(links)
        assert found.verdict == ("no links", text)
        assert found.usual == 0
        assert not any("Suspected is" in note for note in found.notes)
        assert "good" not in re.search('class="verdict([^"]*)"', build(found))[1]

    def test_ranks_that_have_not_converged_are_in_the_verdict(self):
        web = make_crawl(200, random_state=0).adjacency
        doubt = " The ranks have not converged (PageRank, p = 2 and p = 4), so this may change: raise max_iter or tol."
        found = compare_ranks(web, ps=(2, 4), max_iter=3)
        assert found.verdict.text.endswith(doubt)
        settled = compare_ranks(web, ps=(2, 4))
        assert "converged" not in settled.verdict.text
        classes = [re.search('class="verdict([^"]*)"', build(each))[1] for each in (found, settled)]
        assert ["good" in each for each in classes] == [False, True]

    def test_votes_of_many_for_few_cannot_be_told(self):
        rng = np.random.default_rng(0)
        voters = np.repeat(np.arange(10, 500), 3)
        found = compare_ranks((voters, rng.integers(0, 10, len(voters))), ps=4)
        assert found.usual == pytest.approx(1.0)
        assert found.verdict.kind == "cannot tell"
        assert not len(found.flagged[1])

    def test_boosters_that_link_to_one_another_are_missed(self):
        # documented: the page says so, too
        ring = nx.DiGraph((f"b{i:02}", f"b{(i + 1) % 50:02}") for i in range(50))
        ring.add_edges_from((f"b{i:02}", "target") for i in range(50))
        web = nx.from_scipy_sparse_array(make_crawl(2000, random_state=0).adjacency, create_using=nx.DiGraph)
        found = compare_ranks(nx.compose(nx.relabel_nodes(web, str), ring), ps=8)
        assert "target" in [item.name for item in found.top_items(0)]
        assert found.suspects() == []
        assert "Boosters that link to one another are not found" in found.notes[0]


class TestRisers:
    def test_closed_cycles_are_named(self):
        web = make_crawl(2000, random_state=0).adjacency.tocoo()
        sources = [*web.row.tolist(), 2000, 2001, 2002]
        found = compare_ranks((sources, [*web.col.tolist(), 2000, 2002, 2001]), ps=2)
        told = {each.name: (each.note, each.strongest) for each in found.risers()}
        assert told[2000] == ("links to nobody but itself", 2000)
        assert told[2001] == ("on a closed cycle of 2 vertices", 2002)
        assert told[2002] == ("on a closed cycle of 2 vertices", 2001)
        assert any("link to nobody but themselves or round a closed cycle" in note for note in found.notes)

    def test_they_gain_most_of_the_new_head(self, found):
        for i in (1, 2, 3):
            inside = np.flatnonzero(found.ranks[i] <= found.head)
            gains = np.log(found.ranks[0][inside] / found.ranks[i][inside])
            told = [np.log(each.base_rank / each.rank) for each in found.risers(i)]
            assert told == pytest.approx(np.sort(gains)[::-1][: len(told)])


class TestLabels:
    def test_measures(self, crawl, found):
        for i, measured in enumerate(found.measures):
            first = np.argsort(-found.scores[i], kind="stable")[:30]
            assert measured["spam_mass"] == pytest.approx(found.scores[i][crawl.spam].sum())
            assert measured["spam_met"] == pytest.approx(crawl.spam[first].sum())
        assert found.measures[3]["spam_among_suspects"] == 1.0
        assert np.isnan(found.measures[0]["spam_among_suspects"])

    def test_labels_only_measure(self, crawl, found):
        plain = compare_ranks(crawl.adjacency)
        assert plain.measures == []
        assert [each.name for each in plain.suspects()] == [each.name for each in found.suspects()]
        assert np.array_equal(plain.scores[2], found.scores[2])

    def test_labels_that_the_graph_does_not_have_are_a_note(self, crawl):
        target = int(crawl.target_vertices[0])
        known = compare_ranks(crawl.adjacency, ps=8, spam=[target])
        for spam in ([target, 10**9, "x"], {target: 1, 10**9: 1.0, "x": 2.0}):
            found = compare_ranks(crawl.adjacency, ps=8, spam=spam)
            assert found.spam.tolist() == known.spam.tolist()
            assert "2 spam labels name no vertex of this graph and are left out." in found.notes
            assert "The spam label was used to measure, for nothing else." in found.notes
        named = compare_ranks(
            (["a", "b", "c"], ["b", "c", "a"]), ps=8, spam=np.array(["a", "z"], dtype=object)
        )
        assert "1 spam label names no vertex of this graph and is left out." in named.notes
        with pytest.raises(InputError, match="spam vertex 'y' and 1 more are not in the graph"):
            compare_ranks((["a", "b"], ["b", "a"]), spam=["y", "z"])

    def test_trusted_are_not_suspected(self, crawl):
        target = int(crawl.target_vertices[0])
        found = compare_ranks(crawl.adjacency, ps=8, trusted=[0, target])
        assert {each.name for each in found.suspects()} == set(crawl.target_vertices.tolist()) - {target}
        expected = LpqRank(8, tol=1e-7).fit(crawl.adjacency, trusted=[0, target]).scores_
        assert np.array_equal(found.scores[1], expected)
        assert np.array_equal(found.scores[0], PageRank(tol=1e-7).fit(crawl.adjacency).scores_)
        assert found.notes[-1].startswith("2 trusted vertices")


class TestResult:
    def test_table(self, found):
        table = found.table()
        assert table.height == 10
        assert table["vertex"].to_list() == [each.name for each in found.suspects()]
        assert table["pagerank_rank"].to_list() == [each.base_rank for each in found.suspects()]
        assert found.table(0).is_empty()

    def test_dict_is_json(self, found):
        told = json.loads(json.dumps(found.to_dict()))
        assert told["verdict"]["kind"] == "suspects"
        assert [each["certificate"]["p"] for each in told["ranks"]] == [1, 2, 4, 8]
        assert len(told["ranks"][3]["suspects"]) == told["ranks"][3]["flagged"] == 10
        assert compare_ranks((["a"], ["b"]), ps=np.inf).to_dict()["chosen_p"] == "inf"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"ps": ()}, "ps needs a power above 1"),
            ({"ps": (1,)}, "ps needs a power above 1"),
            ({"ps": (0.5,)}, "each p must be a number of at least 1, or inf, got 0.5"),
            ({"ps": ("x",)}, "each p must be a number"),
            ({"ps": (float("nan"),)}, "each p must be a number"),
            ({"top": 0}, "top must be a whole number of at least 1, got 0"),
            ({"suspects": 1.5}, "suspects must be a whole number of at least 1"),
            ({"neighbours": -1}, "neighbours must be a whole number of at least 0"),
            ({"ratio": 0.5}, "ratio must be a finite number of at least 1"),
            ({"damping": 1}, "damping is the share that follows links"),
            ({"ratio": 1, "ps": np.inf}, "p = inf with ratio 1"),
            ({"spam": ["z"]}, "spam vertex 'z' is not in the graph"),
            ({"spam": ["a", "b"]}, "spam must be some of the vertices"),
            ({"spam": []}, "spam must be some of the vertices"),
            ({"trusted": ["z"]}, "trusted vertex 'z' is not in the graph"),
        ],
        ids=str,
    )
    def test_bad_input(self, options, message):
        with pytest.raises(InputError, match=message.replace("(", r"\(")) as error:
            compare_ranks((["a", "b"], ["b", "a"]), **options)
        assert "\n" not in str(error.value)

    def test_signed_graphs_are_refused(self):
        with pytest.raises(InputError, match="takes no signed graph"):
            compare_ranks(as_graph((["a", "b"], ["b", "a"], [1, -1]), signed=True))


class Reader(HTMLParser):
    """Text and tags of a page, and whether its tags close."""

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
            "Who gains",
            "Labelled spam",
            "How exact",
        ):
            assert heading in text
        for each in found.suspects():
            assert f"Who links to {each.name}" in text
        frames = {attrs["data-frame"] for _, attrs in page.tags if "data-frame" in attrs}
        assert frames == {"0", "1", "2", "3"}
        slider = next(attrs for tag, attrs in page.tags if tag == "input")
        assert json.loads(slider["data-labels"]) == ["PageRank", "p = 2", "p = 4", "p = 8"]
        assert slider["value"] == str(found.chosen)
        on = [attrs for _, attrs in page.tags if "frame on" in attrs.get("class", "")]
        assert {attrs["data-frame"] for attrs in on} == {str(found.chosen)}
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
        found = compare_ranks((sources, targets), ps=8, spam=[evil])
        assert [each.name for each in found.suspects()] == [evil]
        html = build(found, title=evil)
        assert html.count("<script>") == 1  # the page's own
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
        assert "<b>" not in html
        assert evil in "".join(Reader(html).text)

    def test_one_is_written_as_one(self):
        web = make_crawl(300, random_state=0).adjacency.tocoo()
        ends = [np.r_[web.row, 300, np.arange(302, 312)], np.r_[web.col, 300, np.full(10, 301)]]
        found = compare_ranks(tuple(ends), ps=(8, np.inf), spam=[301], trusted=[5], suspects=1, top=1)
        small = compare_ranks(([0], [1]), ps=2)
        told = [*found.notes, *small.notes, found.verdict.text, small.verdict.text]
        told += ["".join(Reader(build(each)).text) for each in (found, small)]
        for text in told:
            wrong = re.search(
                r"\b1 (trusted |weighted |spam )?(vertices|links|steps|suspects|labels|in-links)\b.{30}", text
            )
            assert wrong is None, wrong
            assert not re.search(r"\b1 vertex (link|get) ", text)
        assert "1 trusted vertex: the L_pq scores" in found.notes[-1]
        assert any(note.startswith("1 vertex links to nobody; what it holds") for note in small.notes)
        assert "2 vertices, 1 link;" in told[-1]

    def test_names_fit_beside_the_slopes_and_suspects_come_first(self):
        target, rest = "FARM " + "W" * 100, [f"page {'m' * 40} {i}" for i in range(60)]
        boosters = [f"b{i}" for i in range(40)]
        sources = [*boosters, *[target] * 40, *rest, *rest]
        targets = [*[target] * 40, *boosters, *rest[1:], rest[0], *rest[7:], *rest[:7]]
        found = compare_ranks((sources, targets), ps=8)
        assert [each.name for each in found.suspects()] == [target]
        chart = graph_page._slopes(found).render(1)
        labels = re.findall(
            r'<text class="label ?(\w*)" x="([\d.]+)"[^>]*text-anchor="(\w+)">([^<]*)<', chart
        )
        strong = [text for kind, _, _, text in labels if kind == "strong"]
        assert len(strong) == 2  # at both ends, though other names have better places
        assert all(text.startswith("FARM W") and "…" in text for text in strong)
        for kind, x, anchor, text in labels:
            room = float(x) if anchor == "end" else 540 - float(x)
            assert FONT * width_of(text, bold=kind == "strong") <= room
        assert 'class="name"' not in chart  # no title of an axis for names to run over

    @pytest.mark.parametrize(
        "links", [([0], [0]), ([0, 1], [1, 0]), ([0, 1, 2], [1, 1, 1])], ids=["one", "two", "star"]
    )
    def test_smallest_graphs(self, links):
        found = compare_ranks(links, ps=(2, np.inf))
        page = Reader(build(found))
        assert page.open == []
        assert found.suspects() == []
        assert "None at p = ∞." in " ".join(page.text)

    def test_many_vertices_make_no_larger_page(self, found):
        crawl = crawl_with_farms(n=20_000, boosters=50)
        large = build(compare_ranks(crawl.adjacency, spam=crawl.spam, tol=1e-6))
        assert len(large) < 1.5 * len(build(found))
