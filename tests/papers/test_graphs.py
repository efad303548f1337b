"""The graph experiments in small: toy graphs, planted farms, few labels, distrust in signed networks."""

import os
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot as plt
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score
from sklearn.utils import Bunch

import apexrank_papers as papers
from apexrank.datasets import networks
from apexrank.errors import InputError
from apexrank.graph import LpqRank, PageRank, as_graph
from apexrank_papers.graphs import EXPERIMENTS, linkfarm, spam_labels, toys, trust
from apexrank_papers.graphs import ratings as hidden
from apexrank_papers.graphs.farms import RATIO, TOL, closed_cycles, farmed_crawl, labelled_sample
from apexrank_papers.graphs.rankings import (
    ANTITRUST,
    TRUSTRANK,
    Found,
    Trial,
    honest_above,
    measured,
    measures,
    name_of,
)
from apexrank_papers.printed import printed_table
from tests.graph.oracles import dense_rank

DATA = Path(os.environ.get("APEXRANK_DATA") or Path(__file__).parents[3] / "shared" / "data")
SMALL = {"crawl": "synthetic", "n": 1500, "boosters": 20}
FARM = {**SMALL, "farms": 3, "ps": (1, 2, np.inf), "ratios": (1, 1.05, 2), "labels": (0.05, 0.2)}
WORDS = {"agrees", "within noise", "differs"}


def use_data(monkeypatch, name):
    if not (DATA / "graphs" / name).exists():
        pytest.skip(f"{name} is not in {DATA / 'graphs'}: set APEXRANK_DATA")
    monkeypatch.setenv("APEXRANK_DATA", str(DATA))


def ratings(seed=0, n=300):
    """A made-up signed network in which a third of the people is mostly distrusted."""
    rng = np.random.default_rng(seed)
    bad = rng.random(n) < 0.3
    links = rng.random((n, n)) < 0.03
    sign = np.where(rng.random((n, n)) < np.where(bad, 0.25, 0.9)[None, :], 1, -1)
    return csr_array((links * sign * rng.integers(1, 11, (n, n))).astype(np.int8))


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
    [("toy-graphs", 2), pytest.param("linkfarm", 6, marks=pytest.mark.slow), ("spam-labels", 2)],
)
def test_every_result_is_whole(name, n_axes, results, tmp_path):
    before = plt.get_fignums()
    result = results(name)
    assert result.table.height > 0
    assert not any(series.is_null().any() for series in result.view)
    assert len(result.verdicts) >= 5
    assert {verdict.word for verdict in result.verdicts} <= WORDS
    assert result.notes
    assert len(result.figure.axes) == n_axes
    result.figure.savefig(tmp_path / "figure.png", dpi=40)
    assert plt.imread(tmp_path / "figure.png").std() > 0.05
    assert plt.get_fignums() == before


def test_every_view_fits_a_terminal(results):
    for name in ("toy-graphs", "linkfarm", "spam-labels"):
        view = results(name).view
        widths = [max(len(column), *(len(str(cell)) for cell in view[column])) for column in view.columns]
        assert sum(widths) + 3 * len(widths) + 1 <= 120, name


def test_they_are_registered():
    assert {"toy-graphs", "linkfarm", "spam-labels", "trust"} <= set(papers.names())
    assert papers.run("toy-graphs").verdicts == toys.toy_graphs().verdicts


def test_names_and_options():
    found = {experiment.name: experiment for experiment in EXPERIMENTS}
    assert list(found) == ["toy-graphs", "linkfarm", "spam-labels", "trust", "hidden-ratings"]
    assert found["toy-graphs"].options == []
    assert {"crawl", "farms", "boosters", "ps", "ratios", "labels", "random_state", "n"} <= set(
        found["linkfarm"].options
    )
    assert found["trust"].options == ["data", "labels", "repeats", "random_state"]


# Toy graphs


def test_toy_scores_are_those_of_plain_steps(results):
    table = results("toy-graphs").table
    assert table.height == 5 * (7 + 9)
    settings = {"PageRank": (1, 1), "L_2": (2, 1), "L_2,2.4": (2, 1.2), "L_∞ at q/p = 1.2": (np.inf, 1.2)}
    for figure, toy in toys.GRAPHS.items():
        A = toy().adjacency.toarray().astype(float)
        for rank, (p, ratio) in settings.items():
            scores = table.filter(figure=figure, rank=rank)["score"].to_numpy()
            np.testing.assert_allclose(scores, dense_rank(A, p, ratio).astype(float), atol=1e-9)


def test_the_text_about_the_toys_holds(results):
    assert {verdict.word for verdict in results("toy-graphs").verdicts} == {"agrees"}
    place = (
        results("toy-graphs").table.filter(figure="Figure 6.3", vertex=6).select("rank", "position").rows()
    )
    assert dict(place) == {"PageRank": 1, "L_2": 6, "L_∞": 6, "L_2,2.4": 4, "L_∞ at q/p = 1.2": 6}


def test_toy_verdicts_can_differ(results):
    table = results("toy-graphs").table
    first, second = (toys._scores(table, figure) for figure in toys.GRAPHS)
    swapped = {rank: {1: s[2], 2: s[1]} for rank, s in first.items()}
    uneven = {"PageRank": {1: 0.2, 2: 0.3}}
    assert toys._few_good_links(swapped).word == "differs"
    assert toys._equal_flow(uneven).word == "differs"
    turned = {rank: {v: -s for v, s in scores.items()} for rank, scores in second.items()}
    for verdict in (toys._farm_first, toys._demoted, toys._below):
        assert verdict(second).word == "agrees"
        assert verdict(turned).word == "differs"


# Link farms


def test_linkfarm_has_every_ranking_once(results):
    table = results("linkfarm").table
    assert table.select("method", "p", "ratio", "labels", "measure").is_unique().all()
    count = dict(table.unique(["method", "p", "ratio", "labels"])["method"].value_counts().rows())
    # p = 1, 2, 4, inf; ratios 1, 1.05, 1.2, 2, of which L_p has two powers
    assert count["in-degree"] == count["PageRank"] == 1
    assert count["L_p"] == 2
    assert count["L_pq"] == 4 * 3
    assert count["Lin-L_pq"] == 2 * 4
    for name in (TRUSTRANK, ANTITRUST, "TrustRank", "anti-TrustRank", "demoted rank"):
        assert count[name] == 2
    signed = table.filter(pl.col("method").is_in(["anti-TrustRank", "demoted rank"]))
    assert not (signed["measure"] == "spam mass").any()
    bound = table.filter(pl.col("method").is_in(["PageRank", "L_pq"]), measure="error bound")
    assert (bound["value"] <= TOL).all()


def test_linkfarm_numbers_from_the_links_and_from_networkx(results):
    found = Found(results("linkfarm").table)
    farmed = farmed_crawl("synthetic", 1500, 3, 20, 0, 0)
    A = farmed.graph.to_scipy()
    assert found("spam mass", "in-degree") == pytest.approx(2 * 3 * 20 / A.nnz)
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
    assert found("footrule to PageRank", "PageRank", 1.0, 1.0) == 0


@pytest.mark.parametrize(
    ("p", "ratio", "way", "method"),
    [(2.0, RATIO, "against", "Lin-L_pq"), (1.0, 1.0, "along", TRUSTRANK)],
)
def test_lin_ranks_are_those_of_the_estimator(results, p, ratio, way, method):
    farmed = farmed_crawl("synthetic", 1500, 3, 20, 0, 0)
    trusted, distrusted = labelled_sample(farmed.spam, 0.05, np.random.default_rng(0))
    rank = LpqRank(p, ratio, distrust=way).fit(farmed.graph, trusted=trusted, distrusted=distrusted)
    mass = Found(results("linkfarm").table)("spam mass", method, p, ratio, 0.05)
    assert mass == pytest.approx(rank.scores_[farmed.spam].sum(), abs=1e-6)
    assert 0 < mass < 0.05


def changed(table, value, **where):
    """The table with other values in some rows."""
    chosen = pl.all_horizontal(*(pl.col(name).eq_missing(pl.lit(to)) for name, to in where.items()))
    return Found(
        table.with_columns(pl.when(chosen).then(pl.lit(float(value))).otherwise("value").alias("value"))
    )


def test_linkfarm_verdicts_can_be_both(results):
    table = results("linkfarm").table
    found, mass = Found(table), {"measure": "spam mass"}
    plain = {2.0: np.full(200, 1e-3)}
    cases = [
        (
            linkfarm.in_degree,
            changed(table, 0.9, method="in-degree", **mass),
            changed(table, 0, method="in-degree", **mass),
        ),
        (
            linkfarm.below_lp,
            changed(table, 0.9, method="L_p", **mass),
            changed(table, 0, method="L_p", **mass),
        ),
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
        (
            linkfarm.as_good_without_labels,
            changed(table, 0, method="L_pq", p=4.0, **mass),
            changed(table, 0.9, method="L_pq", p=4.0, **mass),
        ),
        (
            linkfarm.first_ranks,
            changed(table, 99, method="in-degree"),
            changed(table, 0, method="in-degree"),
        ),
    ]
    for verdict, good, bad in cases:
        assert verdict(good).word == "agrees", verdict
        assert verdict(bad).word == "differs", verdict
    assert linkfarm.faster(found, plain).word == "agrees"
    assert linkfarm.faster(found, {2.0: np.array([1e-2, 1e-8])}).word == "differs"
    assert linkfarm.falls(found, RATIO, "row").word == "agrees"
    assert linkfarm.falls(changed(table, 0.9, p=np.inf, **mass), RATIO, "row").word == "differs"


def test_verdict_on_labels_has_three_words(results):
    table = results("linkfarm").table.filter(pl.col("labels").is_not_null(), measure="spam mass")
    ours = {"method": "Lin-L_pq"}
    for method in (TRUSTRANK, "TrustRank"):
        theirs = table.with_columns(
            pl.when(pl.col("method") == method).then(0.5).otherwise("value").alias("value")
        )
        assert linkfarm.below_established(changed(theirs, 0.1, **ours), method).word == "agrees"
        assert linkfarm.below_established(changed(theirs, 0.9, **ours), method).word == "differs"
        nothing = changed(table.with_columns(value=pl.lit(0.0)), 0, **ours)
        assert linkfarm.below_established(nothing, method).word == "within noise"


def test_verdicts_on_the_farms(results):
    table, farmed = results("linkfarm").table, farmed_crawl("synthetic", 1500, 3, 20, 0, 0)
    lpq = {"method": "L_pq", "p": 2.0, "ratio": RATIO}

    def words(place, mass):
        part = changed(table, place, measure="median target", **lpq)
        part.values["spam mass", "L_pq", 2.0, RATIO, None] = mass
        part.values["ordinary pages above", "L_pq", 2.0, RATIO, None] = place
        return [verdict.word for verdict in linkfarm.farm_verdicts(part, farmed)]

    assert words(1000, 1e-4) == ["agrees"] * 3
    assert words(0, 0.99) == ["differs"] * 3
    known = farmed._replace(crawl="cnr-2000", boosters=200, targets=np.arange(50))
    assert known.name.endswith(" links) with 50 farms of 200 boosters")
    assert [v.word for v in linkfarm.farm_verdicts(Found(table), known)][::2] == ["differs"] * 2


def test_scores_without_a_certificate_are_not_measured():
    farmed = farmed_crawl("synthetic", 300, 1, 10, 0, 0)
    scores = np.full(farmed.graph.n, 1 / farmed.graph.n)
    trial = Trial("L_p", 2.0, 1.0, None, scores, 200, np.inf)
    rows = list(measured(farmed, trial, scores))
    assert {row["measure"] for row in rows} == {"steps", "error bound"}
    sure = list(measured(farmed, trial._replace(bound=1e-7), scores))
    assert "spam mass" in {row["measure"] for row in sure}
    found = Found(pl.DataFrame(rows, schema_overrides={"labels": pl.Float64}))
    assert found.ps("L_p") == []
    assert "inf at p = 2" in linkfarm._notes(farmed, found)[2]


def test_honest_pages_above_are_on_cycles_or_ordinary():
    farmed = farmed_crawl("synthetic", 300, 2, 5, 0, 0)
    rng = np.random.default_rng(0)
    farmed = farmed._replace(cycles=np.sort(rng.choice(farmed.graph.n, 40, replace=False)))
    scores = rng.permutation(farmed.graph.n).astype(float)
    above = {
        closed: np.median(
            [
                sum(
                    scores[v] > scores[t] and not farmed.spam[v] and (v in farmed.cycles) == closed
                    for v in range(farmed.graph.n)
                )
                for t in farmed.targets
            ]
        )
        for closed in (False, True)
    }
    assert above[True] > 0
    assert honest_above(farmed, scores) == {
        "ordinary pages above": above[False],
        "closed cycles above": above[True],
    }
    farmed = farmed._replace(cycles=np.flatnonzero(~farmed.spam))
    assert honest_above(farmed, scores)["ordinary pages above"] == 0


def test_the_notes_say_who_stands_above_the_farms(results):
    table, farmed = results("linkfarm").table, farmed_crawl("synthetic", 1500, 3, 20, 0, 0)
    lpq = {"method": "L_pq", "p": 2.0, "ratio": RATIO}
    behind_cycles = changed(table, 9351, measure="closed cycles above", **lpq)
    behind_cycles.values["ordinary pages above", "L_pq", 2.0, RATIO, None] = 31.0
    notes = " ".join(linkfarm._notes(farmed, behind_cycles))
    assert "9,351 honest pages on closed cycles and 31 others" in notes
    assert "nearly all pages above the farms" in notes
    notes = " ".join(linkfarm._notes(farmed, changed(table, 0, measure="closed cycles above")))
    assert "stand 0 honest pages on closed cycles" in notes
    assert "nearly all" not in notes


@pytest.mark.parametrize("seed", range(5))
def test_closed_cycles_are_those_networkx_finds(seed):
    rng = np.random.default_rng(seed)
    n = 60
    A = (rng.random((n, n)) < np.where(rng.random(n) < 0.5, 1.2, 0.1)[:, None] / n).astype(float)
    A[np.arange(0, n, 9), np.arange(0, n, 9)] = 1
    graph = nx.from_numpy_array(A, create_using=nx.DiGraph)
    lonely = graph.subgraph([v for v in graph if graph.out_degree(v) == 1])
    expected = sorted(v for cycle in nx.simple_cycles(lonely) for v in cycle)
    assert closed_cycles(as_graph(A)).tolist() == expected
    assert expected


def test_hijacked_links_let_trust_in():
    closed, open_ = (farmed_crawl("synthetic", 500, 1, 10, hijacked, 0) for hijacked in (0, 5))
    assert open_.graph.n_edges == closed.graph.n_edges + 5
    assert "5 honest pages" in open_.name


def test_linkfarm_repeats_itself_and_hears_its_seed():
    small = {**FARM, "n": 400, "farms": 2, "ps": (2,), "ratios": (1.2,), "labels": (0.2,)}
    first, second, other = (linkfarm.linkfarm(**small, random_state=seed).table for seed in (1, 1, 2))
    assert first.equals(second)
    assert not first.equals(other)


def test_names_people_write():
    assert name_of("L_pq", 4.0, 1.05) == "L_4,4.2"
    assert name_of("TrustRank", None, None, 0.00625) == "TrustRank, 0.625 % labels"
    assert name_of("Lin-PageRank", 1.0, 1.0, 0.1) == "Lin-PageRank, 10 % labels"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"crawl": "uk-2007"}, "crawl must be"),
        ({"labels": ()}, "at least one share"),
        ({"labels": (1.5,)}, "below 1"),
    ],
)
def test_linkfarm_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        linkfarm.linkfarm(**{**FARM, "n": 100, "ps": (2,), "ratios": (1.2,), **options})


def test_cnr_2000_has_to_be_there():
    with pytest.raises(InputError, match="APEXRANK_DATA"):
        linkfarm.linkfarm(crawl="cnr-2000")
    assert farmed_crawl("auto", 200, 1, 5, 0, 0).name.startswith("a made-up crawl")


def test_a_sample_of_one_kind_is_refused():
    with pytest.raises(InputError, match="all of one kind"):
        labelled_sample(np.zeros(50, dtype=bool), 0.1, np.random.default_rng(0))


def test_farms_in_cnr_2000(monkeypatch):
    use_data(monkeypatch, "cnr-2000.csr.npz")
    farmed = farmed_crawl("auto", 0, 50, 200, 0, 0)
    plain, lpq = (rank.fit(farmed.graph).scores_ for rank in (PageRank(tol=1e-6), LpqRank(2, 1.2, tol=1e-6)))
    before, after = (measures(farmed, scores, plain) for scores in (plain, lpq))
    assert before["median target"] == pytest.approx(140, abs=5)
    assert 9000 < after["median target"] < 10_000
    # nearly all that stand above the farms are on closed cycles
    assert after["closed cycles above"] == len(farmed.cycles) == 9351
    assert after["ordinary pages above"] < 40 < 100 < before["ordinary pages above"]
    assert before["spam mass"] == pytest.approx(0.0426, abs=1e-4)
    assert after["spam mass"] == pytest.approx(0.0188, abs=1e-4)


# Few labels


def test_the_printed_table_is_beside_ours(results):
    table = results("spam-labels").table
    assert table.height == 2 * 3 * 3
    assert printed_table("spam_labels")["10%"].to_list() == ["2.712", "14.57"]
    printed = table.filter(pl.col("printed").is_not_null())
    # 5 % is printed, 20 % is not
    assert printed.select("labels", "classifier", "printed").rows() == [
        (0.05, "Lin-L_2,2.4", 3.167),
        (0.05, "TrustRank", 15.576),
        (0.05, "Lin-PageRank, along", 15.576),
    ]
    best = table.filter(measure="error, best cut")["mean"].to_numpy()
    assert (best <= table.filter(measure="error")["mean"].to_numpy() + 1e-9).all()
    assert "20.1 % of 1,878" in results("spam-labels").notes[0]


def test_errors_are_counted_on_unlabelled_vertices_only():
    spam = np.array([True, True, False, False, True, False, False])
    scores = np.array([0.1, 0.2, 0.5, 0.6, 0.2, 0.2, 0.9])
    known = np.array([True, True, True, True, False, False, False])
    # cut at 0.2: of the last three the honest one at 0.2 is called spam; calling none spam makes one error as well
    assert spam_labels._errors(scores, spam, known) == pytest.approx([1 / 3, 1 / 4, 1 / 3])


def test_spam_labels_verdicts_can_be_all_three():
    rng = np.random.default_rng(0)
    shares = [0.01, 0.1]
    farmed = farmed_crawl("synthetic", 300, 1, 30, 0, 0)

    def values(ours, theirs):
        """Draws x shares x classifiers x errors."""
        levels = np.array([[[o], [t], [t]] for o, t in zip(ours, theirs, strict=True)])
        return np.broadcast_to(levels, (5, 2, 3, 3)) + rng.random((5, 1, 1, 1))

    as_printed, reverse, even = values((7, 3), (65, 15)), values((40, 60), (3, 5)), values((5, 5), (5, 5))
    for verdicts, expected in ((as_printed, "agrees"), (reverse, "differs"), (even, "within noise")):
        words = [
            v.word
            for v in (
                *spam_labels._fewer_errors(verdicts, shares),
                *spam_labels._more_labels(verdicts, shares),
            )
        ]
        words += [spam_labels._few_are_enough(verdicts, shares).word]
        assert words == [expected] * 5
    assert spam_labels._useless(as_printed, shares, farmed).word == "agrees"
    assert spam_labels._useless(reverse, shares, farmed).word == "differs"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeats": 1}, "repeats"),
        ({"spam_share": 1.0}, "spam_share"),
        ({"labels": ()}, "at least one share"),
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
    none = csr_array(np.zeros(blank.shape))
    without = dict(trust._with_labels(network._replace(negative=none), trusted, distrusted))
    changed_by_them = {name for name in seen if not np.array_equal(seen[name], without[name])}
    assert changed_by_them == {name for name in seen if name.startswith("signed")}


def test_aucs_are_those_of_scikit_learn():
    network = trust.judged(ratings())
    found = trust._aucs(network, 0.2, 2, 3)
    rng = np.random.default_rng(3)
    rated = np.flatnonzero(network.rated)
    for draw in range(2):
        known = np.zeros(network.positive.n, dtype=bool)
        for part in labelled_sample(network.distrusted[rated], 0.2, rng):
            known[rated[part]] = True
        rest = network.rated & ~known
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
    # the last ratings in time are those that the split hides, and nothing else
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
    found = result.table.filter(data="made (last 30%)", users="all", method="MeanRating, smoothing 0")["auc"]
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

    assert words(0.8, 0.7, 0.9, 0.85) == ["agrees"] * 4
    assert words(0.7, 0.8, 0.6, 0.85) == ["differs"] * 4
    level = dict.fromkeys(
        ("L_2,2.4", "PageRank", "Lin-L_2,2.4", "TrustRank", "Lin-PageRank"), np.array([0.4, 0.6, 0.5])
    )
    shaken = {name: np.roll(values, i) for i, (name, values) in enumerate(level.items())}
    assert {v.word for v in trust._verdicts("made up", shaken)} == {"within noise"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "APEXRANK_DATA"),
        ({"data": "epinions"}, "soc-sign-epinions"),
        ({"data": "otc"}, "data must be"),
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
