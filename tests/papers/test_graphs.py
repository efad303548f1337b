"""The graph experiments at small scale: toy graphs, planted farms, few labels, distrust in signed networks."""

import os
from itertools import permutations, product
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot as plt
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score
from sklearn.utils import Bunch
from sklearn.utils._param_validation import InvalidParameterError

import apexrank_papers as papers
from apexrank import datasets
from apexrank.errors import InputError
from apexrank.graph import LpqRank, PageRank, as_graph
from apexrank.graph.power import Walk, hilbert_distance
from apexrank.metrics import spearman_footrule
from apexrank_papers.data import networks
from apexrank_papers.graphs import linkfarm, rank_dependent, spam_labels, toys, trust
from apexrank_papers.graphs import ratings as hidden
from apexrank_papers.graphs.farms import RATIO, TOL, farmed_crawl, labelled_sample, webspam
from apexrank_papers.graphs.linkfarm import (
    CRAWLED,
    GUARDED,
    NO_LOOPS,
    PAIRS,
    PLAIN,
    RELATIVES,
    Found,
    Trial,
    footrules,
    measured,
    measures,
    name_of,
    ranked,
)
from apexrank_papers.printed import printed_table
from apexrank_papers.result import ANSWERS, FINDINGS
from tests.graph.oracles import dense_rank

DATA = Path(os.environ.get("APEXRANK_DATA") or Path(__file__).parents[3] / "shared" / "data")
SMALL = {"data": "synthetic", "n": 1500, "boosters": 20}
FARM = {**SMALL, "farms": 3, "ps": (1, 2, np.inf), "ratios": (1, 1.05, 2)}
WORDS = {*FINDINGS.values(), *ANSWERS.values()}


def use_data(monkeypatch, name):
    if not (DATA / "graphs" / name).exists():
        pytest.skip(f"{name} is not in {DATA / 'graphs'}: set APEXRANK_DATA")
    monkeypatch.setenv("APEXRANK_DATA", str(DATA))


def ratings(seed=0, n=300):
    """Synthetic signed network in which a third of the people are mostly distrusted."""
    rng = np.random.default_rng(seed)
    bad = rng.random(n) < 0.3
    links = rng.random((n, n)) < 0.03
    sign = np.where(rng.random((n, n)) < np.where(bad, 0.25, 0.9)[None, :], 1, -1)
    return csr_array((links * sign * rng.integers(1, 11, (n, n))).astype(np.int8))


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Folder in the format of WEBSPAM-UK: a synthetic crawl with farms and self-loops, 300 of 600 hosts judged."""
    folder = tmp_path_factory.mktemp("hosts")
    crawl = datasets.make_crawl(600, spam_share=0.2, random_state=0)
    links = crawl.adjacency.tolil()
    links[0, :] = 0
    links[0, 0] = 1
    rows = [" ".join(f"{target}:2" for target in row) for row in links.rows]
    (folder / "uk.hostgraph.txt").write_text("\n".join(["600", *rows]) + "\n")
    judged = np.random.default_rng(0).permutation(600)[:300]
    lines = [f"{host} {'spam' if crawl.spam[host] else 'nonspam'} 1.0" for host in judged]
    (folder / "SET1-labels.txt").write_text("\n".join(lines) + "\n")
    return folder, crawl.spam, np.sort(judged)


@pytest.fixture(scope="module")
def results():
    cache = {}

    def run(name):
        if name not in cache:
            cache[name] = {
                "toy-graphs": toys.toy_graphs,
                "linkfarm": lambda: linkfarm.linkfarm(**FARM),
                "spam-labels": lambda: spam_labels.spam_labels(**SMALL, labels=(0.05, 0.2), repeats=3),
            }[name]()
        return cache[name]

    return run


@pytest.mark.parametrize(
    ("name", "n_axes"),
    [("toy-graphs", 3), pytest.param("linkfarm", 6, marks=pytest.mark.slow), ("spam-labels", 3)],
)
def test_every_result_is_whole(name, n_axes, results, tmp_path):
    before = plt.get_fignums()
    result = results(name)
    assert result.table.height > 0
    assert not any(series.is_null().any() for series in result.view)
    assert len(result.verdicts) >= 3
    assert {verdict.word for verdict in result.verdicts} <= WORDS
    assert result.notes
    assert len(result.figure.axes) == n_axes
    result.figure.savefig(tmp_path / "figure.png", dpi=40)
    assert plt.imread(tmp_path / "figure.png").std() > 0.05
    assert plt.get_fignums() == before


# Toy graphs


def test_toy_scores_are_those_of_plain_steps(results):
    table = results("toy-graphs").table
    assert table.height == 5 * (7 + 9 + 7)
    settings = {"PageRank": (1, 1), "L_2": (2, 1), "L_2,2.4": (2, 1.2), "L_∞ at q/p = 1.2": (np.inf, 1.2)}
    for figure, toy in toys.GRAPHS.items():
        A = toy().adjacency.toarray().astype(float)
        for rank, (p, ratio) in settings.items():
            scores = table.filter(figure=figure, rank=rank)["score"].to_numpy()
            np.testing.assert_allclose(scores, dense_rank(A, p, ratio).astype(float), atol=1e-9)


def test_the_text_about_the_toys_holds_and_two_pages_beat_it(results):
    assert [verdict.word for verdict in results("toy-graphs").verdicts] == ["agrees", "agrees", "differs"]
    table = results("toy-graphs").table
    place = {
        figure: dict(table.filter(figure=figure, vertex=6).select("rank", "position").rows())
        for figure in list(toys.GRAPHS)[1:]
    }
    assert place["Figure 6.3"] == {"PageRank": 1, "L_2": 6, "L_∞": 6, "L_2,2.4": 4, "L_∞ at q/p = 1.2": 6}
    assert place["6.3 with a pair"].pop("PageRank") == 4
    assert set(place["6.3 with a pair"].values()) == {1}


def test_toy_verdicts_can_be_both(results):
    table = results("toy-graphs").table
    first, second, third = (toys._scores(table, figure) for figure in toys.GRAPHS)
    swapped = {rank: {1: s[2], 2: s[1]} for rank, s in first.items()}
    assert toys._few_good_links(swapped).word == "differs"
    assert toys._few_good_links(first | {"PageRank": {1: 0.3, 2: 0.2}}).word == "differs"
    for verdict, scores, word in ((toys._farm_falls, second, "agrees"), (toys._pair_gains, third, "differs")):
        turned = {
            rank: {v: -score for v, score in s.items()} if rank != "PageRank" else s
            for rank, s in scores.items()
        }
        assert verdict(scores).word == word
        assert {verdict(turned).word, word} == {"agrees", "differs"}


# Link farms


def test_linkfarm_has_every_ranking_once(results):
    table = results("linkfarm").table
    assert table.select("graph", "method", "p", "ratio", "measure").is_unique().all()
    for graph in (CRAWLED, NO_LOOPS, PAIRS):
        part = table.filter(graph=graph).unique(["method", "p", "ratio"])
        count = dict(part["method"].value_counts().rows())
        # p = 1, 2, 4, inf; ratios 1, 1.05, 1.2, 2, of which L_p has two powers; elsewhere p > 1 and 1.2 alone
        lpq = {"L_p": 2, "L_pq": 4 * 3} if graph == CRAWLED else {"L_pq": 3}
        alone = ("in-degree", PLAIN[0], *(key[0] for key in RELATIVES))
        assert count == dict.fromkeys(alone, 1) | lpq
    bound = table.filter(pl.col("method") != "L_p", measure="error bound")
    assert (bound["value"] <= TOL).all()


def test_linkfarm_graphs_differ_in_loops_and_boosters(results):
    webs = [
        farmed_crawl("synthetic", 1500, 3, k, 0, 0, self_loops=loops)
        for k, loops in ((20, "keep"), (20, "drop"))
    ]
    pairs = farmed_crawl("synthetic", 1500, 3, 1, 0, 0, self_loops="drop")
    assert webs[0].graph.to_scipy().diagonal().any()
    assert not webs[1].graph.to_scipy().diagonal().any()
    assert pairs.cycles[pairs.spam].all()
    found = Found(results("linkfarm").table)
    for graph, web in zip((CRAWLED, NO_LOOPS, PAIRS), (*webs, pairs), strict=True):
        scores = PageRank(tol=1e-10).fit(web.graph).scores_
        assert found("spam mass", *PLAIN, graph) == pytest.approx(scores[web.spam].sum(), abs=1e-6)


def test_linkfarm_numbers_from_the_links_and_from_networkx(results):
    found = Found(results("linkfarm").table)
    farmed = farmed_crawl("synthetic", 1500, 3, 20, 0, 0)
    A = farmed.graph.to_scipy()
    assert found("spam mass", *linkfarm.IN_DEGREE) == pytest.approx(2 * 3 * 20 / A.nnz)
    ranks = nx.pagerank(nx.from_scipy_sparse_array(A, create_using=nx.DiGraph), tol=1e-12, max_iter=500)
    scores = np.array([ranks[i] for i in range(farmed.graph.n)])
    assert found("spam mass", "PageRank", 1.0, 1.0) == pytest.approx(scores[farmed.spam].sum(), abs=1e-6)
    # the three targets tie, so they share the mean of their positions
    better = (scores > scores[farmed.targets].max() + 1e-9).sum()
    assert (
        found("median target", "PageRank", 1.0, 1.0)
        == found("best target", "PageRank", 1.0, 1.0)
        == better + 2
    )
    top = np.argsort(-scores)[:100]
    assert found("spam in the first 100", "PageRank", 1.0, 1.0) == farmed.spam[top].sum()


def test_footrule_between_all_pairs():
    web = farmed_crawl("synthetic", 300, 1, 10, 0, 0)
    trials = list(ranked(web.graph, [2.0], [RATIO]))
    rows = list(footrules(CRAWLED, web, trials))
    assert len(rows) == len(trials) * (len(trials) - 1)
    for row in rows:
        one, other = (
            next(t.scores for t in trials if name_of(*t.key) == name)[~web.spam]
            for name in (
                name_of(row["method"], row["p"], row["ratio"]),
                row["measure"].removeprefix("footrule to "),
            )
        )
        assert row["value"] == pytest.approx(spearman_footrule(scores=(one, other)) / 300**2)


def changed(table, value, **where):
    """The table with other values in some rows."""
    chosen = pl.all_horizontal(*(pl.col(name).eq_missing(pl.lit(to)) for name, to in where.items()))
    return Found(
        table.with_columns(pl.when(chosen).then(pl.lit(float(value))).otherwise("value").alias("value"))
    )


def test_linkfarm_verdicts_can_be_both(results):
    table = results("linkfarm").table
    found, mass, above = Found(table), {"measure": "spam mass"}, {"measure": "ordinary pages above"}
    plain = {2.0: np.full(200, 1e-3)}
    cases = [
        (
            linkfarm.in_degree,
            changed(table, 0.9, method="in-degree", **mass),
            changed(table, 0, method="in-degree", **mass),
        ),
        (linkfarm.falls, found, changed(table, 0.9, p=np.inf, **mass)),
        (
            linkfarm.best_ratio,
            changed(table, 1e-9, method="L_pq", p=2.0, ratio=1.05, **mass),
            changed(table, 1e-9, method="L_pq", p=2.0, ratio=2.0, **mass),
        ),
        (
            linkfarm.honest_order,
            changed(table, 0.49, method="in-degree", measure="footrule to PageRank"),
            changed(table, 0, method="in-degree", measure="footrule to PageRank"),
        ),
        *(
            (
                lambda given, graph=graph: linkfarm.resists(given, graph),
                changed(table, -1, method="PageRank", graph=graph, **above),
                changed(table, -1, method="L_pq", graph=graph, p=2.0, **above),
            )
            for graph in (CRAWLED, NO_LOOPS, PAIRS)
        ),
    ]
    for verdict, good, bad in cases:
        assert verdict(good).word in ("agrees", "yes"), verdict
        assert verdict(bad).word in ("differs", "no"), verdict
    assert linkfarm.faster(found, plain).word == "agrees"
    assert linkfarm.faster(found, {2.0: np.array([1e-2, 1e-8])}).word == "differs"
    assert [verdict.kind for verdict in linkfarm.verdicts(found, plain)] == ["paper"] * 6 + ["question"] * 4


def test_verdicts_on_our_own_ranks_can_be_both():
    found = Found(pl.DataFrame({name: [] for name in ("measure", "method", "p", "ratio", "graph", "value")}))
    found.graphs = [CRAWLED, PAIRS]
    for above, mass, word in ((9, 0.1, "yes"), (9, 0.3, "no"), (4, 0.1, "no")):
        # the last graph decides: the claim has to hold on all
        for graph, key, pages, share in (
            (CRAWLED, PLAIN, 5, 0.2),
            (PAIRS, PLAIN, 5, 0.2),
            (CRAWLED, GUARDED, 9, 0.1),
            (PAIRS, GUARDED, above, mass),
        ):
            found.values["ordinary pages above", *key, graph] = pages
            found.values["spam mass", *key, graph] = share
        assert linkfarm.ours(found, GUARDED).word == word


def test_scores_without_a_certificate_are_not_measured():
    farmed = farmed_crawl("synthetic", 300, 1, 10, 0, 0)
    scores = np.full(farmed.graph.n, 1 / farmed.graph.n)
    trial = Trial("L_p", 2.0, 1.0, scores, 200, np.inf)
    rows = list(measured(CRAWLED, farmed, trial))
    assert {row["measure"] for row in rows} == {"steps", "error bound"}
    sure = list(measured(CRAWLED, farmed, trial._replace(bound=1e-7)))
    assert "spam mass" in {row["measure"] for row in sure}
    found = Found(pl.DataFrame(rows))
    assert found.ps("L_p") == []
    assert "inf at p = 2" in linkfarm._notes({CRAWLED: farmed}, found)[2]


def test_honest_pages_above_are_on_cycles_or_ordinary():
    farmed = farmed_crawl("synthetic", 300, 2, 5, 0, 0)
    rng = np.random.default_rng(0)
    farmed = farmed._replace(cycles=rng.permutation(farmed.graph.n) < 40)
    scores = rng.permutation(farmed.graph.n).astype(float)
    above = {
        closed: np.median(
            [
                sum(
                    scores[v] > scores[t] and not farmed.spam[v] and farmed.cycles[v] == closed
                    for v in range(farmed.graph.n)
                )
                for t in farmed.targets
            ]
        )
        for closed in (False, True)
    }
    assert above[True] > 0
    found = measures(farmed, scores)
    assert (found["ordinary pages above"], found["closed cycles above"]) == (above[False], above[True])
    first = np.argsort(-scores)[:100]
    assert found["closed cycles in the first 100"] == farmed.cycles[first].sum() > 0
    farmed = farmed._replace(cycles=~farmed.spam)
    assert measures(farmed, scores)["ordinary pages above"] == 0


def test_measures_look_at_judged_vertices_alone():
    web = farmed_crawl("synthetic", 300, 2, 5, 0, 0)
    rng = np.random.default_rng(0)
    judged = web.spam | (rng.random(web.graph.n) < 0.5)
    part = web._replace(judged=judged)
    scores = rng.random(web.graph.n)
    found = measures(part, scores)
    assert found["spam mass"] == pytest.approx(scores[web.spam].sum() / scores[judged].sum())
    places = [1 + (scores[judged] > scores[t]).sum() for t in web.targets]
    assert found["median target"] == np.median(places)
    others = np.where(judged, scores, rng.random(web.graph.n) * scores.max())
    for name, value in measures(part, others).items():
        if "closed" not in name:
            assert value == pytest.approx(found[name]), name


# Hosts that people have judged


def test_a_webspam_folder_is_read_as_judged_hosts(hosts):
    folder, spam, judged = hosts
    web = webspam(str(folder))
    assert np.flatnonzero(web.judged).tolist() == judged.tolist()
    np.testing.assert_array_equal(web.spam, spam & web.judged)
    assert web.targets.tolist() == np.flatnonzero(web.spam).tolist()
    assert web.graph.to_scipy()[0, 0] == 2
    assert webspam(str(folder), "drop").graph.to_scipy()[0, 0] == 0
    trusted, distrusted = labelled_sample(web.spam, 0.2, np.random.default_rng(0), web.judged)
    assert (trusted | distrusted).sum() == 60
    assert not ((trusted | distrusted) & ~web.judged).any()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("linkfarm", {"ps": (2,), "ratios": (1.2,)}),
        ("spam-labels", {"labels": (0.2,), "repeats": 2}),
        ("trust", {"repeats": 2}),
    ],
)
def test_a_webspam_folder_is_data(name, options, hosts):
    result = papers.run(name, data=str(hosts[0]), **options)
    assert result.verdicts
    assert "300 judged vertices" in result.notes[0]
    if name == "linkfarm":
        assert result.table["graph"].unique().sort().to_list() == [CRAWLED, NO_LOOPS]
        loops = result.table.filter(method="PageRank", measure="mass of closed cycles")["value"].to_list()
        assert loops[0] > 0 == loops[1]
    if name == "trust":
        assert not any(method.startswith("signed") for method in result.table["method"])


def test_a_webspam_folder_needs_both_kinds_of_labels(hosts, tmp_path):
    (tmp_path / "uk.hostgraph.txt").write_text("2\n1:1\n0:1\n")
    (tmp_path / "labels.txt").write_text("0 spam\n")
    with pytest.raises(InputError, match="labelled spam and others nonspam"):
        webspam(str(tmp_path))


def test_hijacked_links_let_trust_in():
    closed, open_ = (farmed_crawl("synthetic", 500, 1, 10, hijacked, 0) for hijacked in (0, 5))
    assert open_.graph.n_edges == closed.graph.n_edges + 5
    assert "5 honest pages" in open_.name


def test_linkfarm_repeats_itself_and_hears_its_seed():
    small = {**FARM, "n": 400, "farms": 2, "ps": (2,), "ratios": (1.2,)}
    first, second, other = (linkfarm.linkfarm(**small, random_state=seed).table for seed in (1, 1, 2))
    assert first.equals(second)
    assert not first.equals(other)


def test_unknown_data_is_refused():
    for experiment in (linkfarm.linkfarm, spam_labels.spam_labels):
        with pytest.raises(InputError, match="synthetic or a folder of WEBSPAM-UK, got 'uk-2007'"):
            experiment(data="uk-2007")


def test_cnr_2000_has_to_be_there():
    with pytest.raises(InputError, match="APEXRANK_DATA"):
        linkfarm.linkfarm(data="cnr-2000")
    assert farmed_crawl("auto", 200, 1, 5, 0, 0).name.startswith("a synthetic crawl")


def test_a_sample_of_one_kind_is_refused():
    with pytest.raises(InputError, match="all of one kind"):
        labelled_sample(np.zeros(50, dtype=bool), 0.1, np.random.default_rng(0))
    with pytest.raises(InputError, match="below 1"):
        labelled_sample(np.arange(50) < 9, 1.5, np.random.default_rng(0))
    # one of 500 is spam: a sample without it is drawn again
    assert labelled_sample(np.arange(500) == 7, 0.1, np.random.default_rng(0))[1].tolist()[7]


def test_farms_in_cnr_2000(monkeypatch):
    use_data(monkeypatch, "cnr-2000.csr.npz")
    farmed = farmed_crawl("auto", 0, 50, 200, 0, 0)
    plain, lpq = (rank.fit(farmed.graph).scores_ for rank in (PageRank(tol=1e-6), LpqRank(2, 1.2, tol=1e-6)))
    before, after = (measures(farmed, scores) for scores in (plain, lpq))
    assert before["median target"] == pytest.approx(140, abs=5)
    assert 9000 < after["median target"] < 10_000
    # nearly all pages above the farms are on closed cycles
    assert after["closed cycles above"] == farmed.cycles.sum() == 9351
    assert after["ordinary pages above"] < 40 < 100 < before["ordinary pages above"]
    assert before["spam mass"] == pytest.approx(0.0426, abs=1e-4)
    assert after["spam mass"] == pytest.approx(0.0188, abs=1e-4)


# Few labels


def test_the_printed_table_is_beside_ours(results):
    table = results("spam-labels").table
    # 15 rankings with errors, 4 of them with non-linear trust and most labels alone; 2 have no mass
    assert table.filter(measure="error").height == 2 * 12 + 4
    assert table.filter(measure="spam mass").height == 2 * 10 + 4
    assert printed_table("spam_labels")["10%"].to_list() == ["2.712", "14.57"]
    # 5 % is printed, 20 % is not
    assert table.drop_nulls("printed").select("labels", "ranking", "printed").sort("printed").rows() == [
        (0.05, "Lin-L_2,2.4, along", 3.167),
        (0.05, "Lin-PageRank, along", 15.576),
    ]
    assert "20.1 % of 1,878" in results("spam-labels").notes[0]


@pytest.mark.parametrize("trust", ["linear", "same"])
@pytest.mark.parametrize("way", ["along", "against"])
def test_ranks_with_labels_are_those_of_the_estimator(trust, way):
    web = farmed_crawl("synthetic", 400, 3, 20, 5, 0)
    trusted, distrusted = labelled_sample(web.spam, 0.2, np.random.default_rng(0))
    bases = {name: spam_labels._base(web.graph, p) for name, p in spam_labels.BASES.items()}
    found = dict(spam_labels.rankings(web.graph, bases, trusted, distrusted, non_linear=True))
    rank = LpqRank(2, RATIO, distrust=way, trust=trust).fit(web.graph, trusted=trusted, distrusted=distrusted)
    name = f"Lin-L_2,2.4, {way}" if trust == "linear" else f"L_2,2.4, trust alike, {way}"
    np.testing.assert_allclose(found[name], rank.scores_, atol=1e-6)
    if trust == "linear":
        plain = LpqRank(1, 1, distrust=way).fit(web.graph, trusted=trusted, distrusted=distrusted)
        np.testing.assert_allclose(found[f"Lin-PageRank, {way}"], plain.scores_, atol=1e-6)


def test_errors_are_counted_on_unlabelled_judged_vertices_only():
    spam = np.array([True, True, False, False, True, False, False, False])
    scores = np.array([0.1, 0.2, 0.5, 0.6, 0.2, 0.2, 0.9, 0.0])
    known = np.array([True, True, True, True, False, False, False, False])
    web = farmed_crawl("synthetic", 100, 1, 5, 0, 0)._replace(spam=spam, judged=np.arange(8) < 7)
    # cut at 0.2: of the last three judged ones the honest one at 0.2 is called spam
    found = spam_labels._measures(web, scores, known)
    assert found == pytest.approx({"error": 1 / 3, "spam mass": 0.5 / 2.7})
    assert set(spam_labels._measures(web, -scores, known)) == {"error"}


def test_spam_labels_verdicts_can_be_all_three():
    rng = np.random.default_rng(0)
    shares = [0.01, 0.1]
    lin = [f"Lin-{name}, {way}" for name in spam_labels.BASES for way in spam_labels.WAYS]
    alike = [f"{name}, trust alike, {way}" for name in spam_labels.BASES for way in spam_labels.WAYS]

    def words(ours, theirs, few=None):
        """Verdicts if Lin-L_pq has ``ours``, ``few`` with the first share, and all others have ``theirs``."""
        values = {}
        for measure in ("error", "spam mass"):
            for name in (*lin, *alike, "TrustRank", "L_4,4.8"):
                for share in shares:
                    best = name.startswith("Lin-L")
                    level = (few if few is not None and share == 0.01 else ours) if best else theirs
                    values[measure, name, share] = level + rng.random(5)
        return [verdict.word for verdict in spam_labels._verdicts(spam_labels.Draws(values, shares), 20)]

    good, bad, even = words(3, 65, 7), words(65, 3), words(5, 5)
    assert good[:-1] == ["agrees"] * 7
    assert bad[:3] + bad[4:7] == ["differs"] * 6
    assert set(even[:3] + even[4:7]) == {"within noise"}
    assert (good[3], bad[3]) == ("agrees", "differs")  # TrustRank's errors against 20 % of spam


def test_labels_against_no_labels():
    levels = {"L_4,4.8": 2, "Lin-PageRank, against": 3}
    values = {("spam mass", name, 0.1): np.array([level]) for name, level in levels.items()}
    assert spam_labels.without_labels(spam_labels.Draws(values, [0.1])).word == "agrees"
    values["spam mass", "L_4,4.8", 0.1] = np.array([4])
    assert spam_labels.without_labels(spam_labels.Draws(values, [0.1])).word == "differs"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeats": 1}, "repeats"),
        ({"spam_share": 1.0}, "spam_share"),
        ({"labels": ()}, "at least one share"),
        ({"labels": (1.5,)}, "below 1"),
    ],
)
def test_spam_labels_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        spam_labels.spam_labels(**{**SMALL, **options})


# Distrust in signed networks


def test_distrusted_is_who_received_more_negative_ratings():
    A = ratings()
    found = trust.judged(A)
    dense = A.toarray()
    for i in range(len(dense)):
        good, bad = (dense[:, i] > 0).sum(), (dense[:, i] < 0).sum()
        assert found.rated[i] == (good + bad > 0)
        assert found.distrusted[i] == (bad > good)
    np.testing.assert_array_equal(found.positive.to_scipy().toarray(), np.maximum(dense, 0))
    np.testing.assert_array_equal(found.negative.toarray(), np.maximum(-dense.astype(int), 0))


def test_negative_ratings_of_held_out_vertices_are_not_used():
    network = trust.judged(ratings())
    rng = np.random.default_rng(1)
    trusted, distrusted = labelled_sample(network.distrusted, 0.2, rng)
    known = trusted | distrusted
    blank = csr_array(np.where(known[None, :], network.negative.toarray(), 0.0))
    assert blank.nnz < network.negative.nnz
    seen, unseen = (
        dict(trust._with_labels(n, trusted, distrusted)) for n in (network, network._replace(negative=blank))
    )
    assert len(seen) == 11
    for name, scores in seen.items():
        np.testing.assert_array_equal(scores, unseen[name], err_msg=name)
    # and those of labelled ones are
    none = csr_array(np.where(known[None, :], 0.0, network.negative.toarray()))
    without = dict(trust._with_labels(network._replace(negative=none), trusted, distrusted))
    changed_by_them = {name for name in seen if not np.array_equal(seen[name], without[name])}
    assert changed_by_them == {name for name in seen if name.startswith("signed")}


def test_aucs_are_those_of_scikit_learn():
    network = trust.judged(ratings())
    found = trust._aucs(network, 0.2, 2, 3)
    rng = np.random.default_rng(3)
    for draw in range(2):
        trusted, distrusted = labelled_sample(network.distrusted, 0.2, rng, network.rated)
        rest = network.rated & ~trusted & ~distrusted
        scores = PageRank(tol=1e-7).fit(network.positive).scores_
        assert found["PageRank"][draw] == pytest.approx(
            roc_auc_score(network.distrusted[rest], -scores[rest])
        )


def test_trust_on_made_up_ratings(monkeypatch, tmp_path):
    class Made:
        adjacency = ratings(5)

    monkeypatch.setattr(trust, "LOADERS", {"bitcoin-otc": Made, "epinions": Made})
    result = trust.trust(labels=0.2, repeats=3)
    assert result.table.height == 2 * 14
    assert result.view.shape == (14, 3)
    assert result.table["auc"].is_between(0, 1).all()
    assert len(result.verdicts) == 8
    assert len(result.figure.axes) == 2
    result.figure.savefig(tmp_path / "figure.png", dpi=40)
    one = trust.trust(data="epinions", labels=0.2, repeats=3)
    assert one.table["auc"].to_list() == result.table.filter(data="epinions")["auc"].to_list()
    assert len(one.figure.axes) == 1


def test_hidden_ratings_on_made_up_ratings(monkeypatch):
    A = ratings(5)
    # the split hides exactly the last ratings in time
    monkeypatch.setattr(hidden, "LOADERS", {"made": lambda: Bunch(adjacency=A, times=np.arange(A.nnz) * 1.0)})
    result = hidden.hidden_ratings(repeats=3)
    assert result.table.height == 2 * 2 * 9
    assert result.view.columns == ["users", "method", "made", "made (last 30%)"]
    assert len(result.verdicts) == 6
    last = np.arange(A.nnz) > 0.7 * (A.nnz - 1)
    coo = A.tocoo()
    seen, rest = (csr_array((coo.data[m], (coo.row[m], coo.col[m])), shape=A.shape) for m in (~last, last))
    asked = (rest != 0).sum(axis=0) > 0
    mean = seen.sum(axis=0) / np.maximum((seen != 0).sum(axis=0), 1)
    found = result.table.filter(data="made (last 30%)", users="all", method="mean rating, smoothing 0")["auc"]
    assert found.item() == pytest.approx(roc_auc_score(rest.sum(axis=0)[asked] < 0, -mean[asked]))


def test_pairs_who_rate_only_each_other_are_counted():
    links = as_graph((["a", "b", "c", "c", "d"], ["b", "a", "a", "d", "d"], [1, 1, 1, 1, 1]), signed=True)
    assert hidden._closed_pairs(links).startswith("2 of the first 20")


def test_trust_verdicts_can_be_all_three():
    rng = np.random.default_rng(0)

    def words(lpq, plain, lin, trustrank):
        levels = {
            "L_2,2.4": lpq,
            "PageRank": plain,
            "Lin-L_2,2.4": lin,
            "TrustRank": trustrank,
            "Lin-PageRank": plain,
        }
        found = {name: level + 1e-3 * rng.normal(size=6) for name, level in levels.items()}
        return [verdict.word for verdict in trust._verdicts("made up", found)]

    assert words(0.8, 0.7, 0.9, 0.85) == ["yes"] * 4
    assert words(0.7, 0.8, 0.6, 0.85) == ["no"] * 4
    level = dict.fromkeys(
        ("L_2,2.4", "PageRank", "Lin-L_2,2.4", "TrustRank", "Lin-PageRank"), np.array([0.4, 0.6, 0.5])
    )
    shaken = {name: np.roll(values, i) for i, (name, values) in enumerate(level.items())}
    assert {v.word for v in trust._verdicts("made up", shaken)} == {"cannot tell"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "APEXRANK_DATA"),
        ({"data": "epinions"}, "soc-sign-epinions"),
        ({"data": "otc"}, "`data` must be"),
        ({"repeats": 1}, "repeats"),
    ],
)
def test_trust_says_what_it_needs(options, message):
    with pytest.raises(InputError, match=message):
        trust.trust(**options)


def test_bitcoin_otc_as_it_comes_out(monkeypatch):
    use_data(monkeypatch, "soc-sign-bitcoinotc.csv.gz")
    assert networks.load_bitcoin_otc().adjacency.shape == (5881, 5881)
    found = dict(trust.trust(data="bitcoin-otc", repeats=3).table.select("method", "auc").rows())
    assert found["TrustRank"] > found["Lin-PageRank"] > found["PageRank"] > found["L_2,2.4"] > 0.7


class TestRankDependentPowers:
    @pytest.fixture
    def graph(self):
        return as_graph(datasets.make_crawl(400, mean_degree=5, random_state=3).adjacency)

    def test_the_map_is_its_formula(self, graph):
        rng = np.random.default_rng(0)
        p, n = rng.choice([1.0, 2.0, 4.0], graph.n), graph.n
        start = rng.dirichlet(np.ones(n))
        teleport = np.full(n, 1 / n)
        with Walk(graph, rank_dependent.VertexLpq(p, 1.2), 0.85, teleport) as walk:
            found = walk.step(start)
        A = graph.to_scipy().toarray()
        d = A.sum(axis=1)
        flow = 0.85 * A * (start / np.maximum(d, 1))[:, None]
        fresh = (0.15 + 0.85 * start[d == 0].sum()) / n
        expected = ((flow**p).sum(axis=0) + fresh**p) ** (1 / (1.2 * p))
        np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-12)

    @pytest.mark.parametrize("ratios", [[1.3], [1.3, 2.0, 5.0]], ids=["one ratio", "several"])
    def test_contraction_and_certificate(self, graph, ratios):
        """Hilbert's metric shrinks by the largest p/q in every step, whatever powers the vertices have."""
        rng, n = np.random.default_rng(1), graph.n
        p, ratio = rng.choice([1.5, 2.0, 8.0], n), rng.choice(ratios, n)
        with Walk(graph, rank_dependent.VertexLpq(p, ratio), 0.85, np.full(n, 1 / n)) as walk:
            for _ in range(10):
                x, y = np.exp(3 * rng.normal(size=(2, n)))
                x, y = x / x.sum(), y / y.sum()
                assert hilbert_distance(walk.step(x), walk.step(y)) <= hilbert_distance(x, y) / 1.3 + 1e-12
            exact = walk.solve(np.full(n, 1 / n), 1e-13, 1000, None).scores
            rough = walk.solve(rng.dirichlet(np.ones(n)), 1e-3, 1000, None)
        assert np.abs(rough.scores - exact).sum() <= rough.error_bound <= 1e-3

    def test_equal_powers_are_lpq(self, graph):
        same = rank_dependent.RankDependentLpq(2.0, rest=2.0, share=0.1).fit(graph)
        np.testing.assert_allclose(same.scores_, LpqRank(2.0).fit(graph).scores_, atol=1e-9)
        mixed = rank_dependent.RankDependentLpq(2.0, rest=4.0, share=0.1).fit(graph)
        assert 0 < (mixed.powers_ == 2).sum() <= 40
        first = np.flatnonzero(mixed.powers_ == 2)
        assert same.scores_[first].min() > np.delete(same.scores_, first).max()
        with pytest.raises(InvalidParameterError, match="ratio"):
            rank_dependent.RankDependentLpq(2.0, ratio=1.0).fit(graph)
        with pytest.raises(InputError, match="cannot be explained"):
            mixed.explain(0)

    def test_experiment(self):
        result = rank_dependent.rank_dependent_p(data="synthetic", n=2000, boosters=20, repeats=2)
        assert result.view.shape == (5, 6)
        assert [verdict.kind for verdict in result.verdicts] == ["paper", *["question"] * 3]
        assert rank_dependent.rank_dependent_p(data="synthetic", n=2000, boosters=20, repeats=2).table.equals(
            result.table, null_equal=True
        )

    def test_splice(self):
        rng = np.random.default_rng(0)
        a, b = rng.random((2, 50))
        order = np.argsort(-rank_dependent.spliced(a, b, 0.2))
        assert order[:10].tolist() == np.argsort(-a)[:10].tolist()
        rest = [v for v in np.argsort(-b) if v not in set(order[:10])]
        assert order[10:].tolist() == rest


class TestFigure63:
    """The links of vertices 2 to 5, which the text leaves open: 15 ways for each, 50,625 in all."""

    @pytest.mark.parametrize(("ratio", "count"), [(1.2, 3444), (1.1, 11_428), (1.05, 12_364)])
    def test_ways_in_which_the_spammed_vertex_is_below_all(self, ratio, count):
        ways = np.array(list(product(range(1, 16), repeat=4)), dtype=np.int64)
        A = np.zeros((len(ways), 9, 9))
        A[:, 0, 1:5] = A[:, 5, 6:9] = A[:, 6:9, 5] = 1.0
        for v in range(1, 5):
            others = [u for u in range(5) if u != v]
            A[:, v, others] = ways[:, v - 1, None] >> np.arange(4) & 1
        # ways that differ in the names of the four vertices alone are computed once
        places = 2.0 ** np.arange(20)
        named = [
            A[:, p][:, :, [0, *p]].reshape(-1, 20) @ places for p in map(list, permutations(range(1, 5)))
        ]
        _, first, times = np.unique(np.min(named, axis=0), return_index=True, return_counts=True)
        A = A[first]
        share = 0.85 * A / A.sum(axis=2, keepdims=True)
        r = np.full((len(A), 9), 1 / 9)
        # Hilbert's metric shrinks by 1/ratio a step, from at most log(9)·ratio/(ratio − 1) or so
        for _ in range(int(25 / np.log(ratio)) + 1):
            r = np.maximum((r[:, :, None] * share).max(axis=1), 0.15 / 9) ** (1 / ratio)
            r /= r.sum(axis=1, keepdims=True)
        assert times[r[:, :5].min(axis=1) > r[:, 5] + 1e-9].sum() == count
