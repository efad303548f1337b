"""Figures without data, the one-dimensional illustration, sample sizes and the trade-off on MAGIC."""

import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot as plt

import apexrank_papers as papers
from apexrank.errors import InputError
from apexrank.metrics import auc, r_max
from apexrank_papers.push import figures, tradeoffs
from apexrank_papers.push import one_dimension as line
from apexrank_papers.push.bounds import failure_probability
from apexrank_papers.result import ANSWERS, FINDINGS

NAMES = ("figure1", "figure3", "figure4", "figure8", "one-dimension", "sample-size", "magic-tradeoff")
SMALL = {"one-dimension": {"n_splits": 60}, "magic-tradeoff": {"n_splits": 4, "n_jobs": 1}}


@pytest.fixture(scope="module")
def results():
    cache = {}

    def run(name):
        if name not in cache:
            cache[name] = papers.run(name, **SMALL.get(name, {}))
        return cache[name]

    return run


@pytest.mark.parametrize("name", NAMES)
def test_every_result_is_whole(name, results):
    result = results(name)
    assert result.table.height > 0
    assert result.view.height > 0
    assert not any(series.is_null().any() for series in (*result.table, *result.view))
    assert len(result.verdicts) >= 2
    assert {verdict.word for verdict in result.verdicts} <= {*FINDINGS.values(), *ANSWERS.values()}
    assert papers.get(name).title


@pytest.mark.parametrize(("name", "n_axes"), [*zip(NAMES, (12, 1, 3, 1, 3, 2, 6), strict=True)])
def test_every_figure_can_be_drawn(name, n_axes, results, tmp_path):
    figure = results(name).figure
    assert len(figure.axes) == n_axes
    figure.savefig(tmp_path / "figure.png", dpi=40)
    assert plt.imread(tmp_path / "figure.png").std() > 0.05


@pytest.mark.parametrize("name", ["figure1", "figure3", "figure4", "figure8", "sample-size"])
def test_without_chance_everything_agrees(name, results):
    assert {verdict.word for verdict in results(name).verdicts} == {"agrees"}
    assert papers.get(name).options == []


def test_the_list_is_that_of_section_3_3():
    assert len(figures.LABELS) == 20
    assert figures.LABELS.sum() == 12
    assert np.flatnonzero(figures.LABELS == 0).tolist() == [2, 5, 8, 11, 14, 17, 18, 19]
    assert figures.SCORES[[0, 1, 19]].tolist() == [1.0, 0.95, 0.05]


def test_figure1_shares_are_powers_of_the_scores(results):
    """With the exponential loss negative k costs a multiple of exp(p·g_k)."""
    negatives = np.exp(np.array([18, 15, 12, 9, 6, 3, 2, 1]) / 20)
    for p in (1, 2, 4, 8, 16, 64):
        shares = results("figure1").table.filter(p=p)["share"].to_numpy()
        np.testing.assert_allclose(shares, negatives**p / (negatives**p).sum(), rtol=1e-10)


def test_figure1_verdict_can_differ():
    still = np.tile([0.3, 0.2, 0.2, 0.3], (6, 1))
    assert figures._shift(still).word == "differs"
    flat = {1: np.array([[0.7, 0.1], [0.1, 0.1]])}
    assert figures._worst_pair(flat).word == "differs"


def test_figure4_is_the_product_that_its_caption_gives(results):
    f = np.array([20, 19, 17, 16, 14, 13, 11, 10, 8, 7, 5, 4]) / 20
    g = np.array([18, 15, 12, 9, 6, 3, 2, 1]) / 20
    S = np.exp(g).sum()
    expected = np.log(1 + S * np.exp(-f))[:, None] * (np.exp(g) / S)[None, :]
    found = results("figure4").table.filter(objective="IR Push")["share"].to_numpy().reshape(12, 8)
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-10)
    view = results("figure4").view.row(0, named=True)
    assert view["lower left"] == pytest.approx((expected[:6, :4] / expected.sum()).sum(), abs=1e-4)


def test_figure4_verdict_can_differ(results):
    corners = {row.pop("objective"): row for row in results("figure4").view.to_dicts()}
    swapped = dict(zip(corners, reversed(corners.values()), strict=True))
    assert figures._slant(corners).word == "agrees"
    assert figures._slant(swapped).word == "differs"


def test_figure3_verdicts_can_differ(monkeypatch):
    worse = {"a": lambda z: 1 / z, "b": lambda z: 1 / np.log1p(z), "c": lambda z: -(z**0.5)}
    monkeypatch.setattr(figures, "PAPER_DISCOUNTS", worse)
    assert figures._order().word == "differs"
    monkeypatch.setattr(figures, "PAPER_DISCOUNTS", {"line": lambda z: -(z**2)})
    assert figures._decreasing_convex().word == "differs"
    monkeypatch.setattr(figures, "PAPER_DISCOUNTS", {"last": lambda z: 1 / z})
    assert figures._convex_with_exponential().word == "differs"


@pytest.mark.parametrize("p", [1, 1.5, 4, 64])
def test_lemma7_terms(p):
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 1000))
    curves = figures.lemma7(a, b, p)
    for x, y, low, middle, high in zip(a, b, *list(curves.values())[:3], strict=True):
        assert low == pytest.approx(abs(x ** (1 / p) - y ** (1 / p)))
        assert middle == pytest.approx(min(abs(x - y) / x ** (1 - 1 / p), abs(x - y) ** (1 / p)))
        assert high == pytest.approx(abs(x - y) ** (1 / p))
    # the first term is the smaller one exactly for b < 2a
    if p > 1:
        assert ((curves["scaled"] <= curves["root of difference"]) == (b <= 2 * a)).all()


def test_lemma7_at_the_edges_and_where_it_would_fail():
    edge = figures.lemma7(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0]), 4)
    assert edge["minimum"].tolist() == [0.0, 1.0, 0.0]
    assert edge["difference of roots"].tolist() == [0.0, 1.0, 0.0]


def test_figure8_verdict_can_differ(monkeypatch):
    honest = figures.lemma7
    half = {"minimum": 0.5}
    monkeypatch.setattr(
        figures,
        "lemma7",
        lambda a, b, p: {name: half.get(name, 1.0) * curve for name, curve in honest(a, b, p).items()},
    )
    assert figures._inequality().word == "differs"


# The one-dimensional illustration


def test_the_distribution_has_the_stated_parts():
    x, y = line.draw(200_000, np.random.default_rng(5))
    low, high = np.floor(x), y == 1
    shares = [
        np.mean((low == edge) & (high == positive)) for edge, positive in ((-1, 0), (0, 1), (-2, 1), (1, 0))
    ]
    np.testing.assert_allclose(shares, [0.49, 0.49, 0.01, 0.01], atol=0.004)
    assert sum(shares) == pytest.approx(1)


def test_true_risk_is_that_of_a_large_sample():
    x, y = line.draw(400_000, np.random.default_rng(6))
    f, g = np.sort(x[y == 1]), x[y == 0]
    share = np.searchsorted(f, g, side="right") / len(f)
    for p in (1, 4, 16):
        assert line.true_risk(p) == pytest.approx(np.mean(share**p) ** (1 / p), rel=0.03)
    assert line.true_risk(np.inf) == r_max(y, x) / len(f) == 1
    assert auc(y, x) == pytest.approx((1 - line.EPSILON) ** 2, abs=0.002)


def test_the_probability_of_the_wrong_choice_from_the_counts():
    """R_max of x is I with a rare negative, else the rare positives; that of −x is the common positives."""
    rng = np.random.default_rng(7)
    for m in (25, 100, 200):
        common_negative, common, rare, rare_negative = rng.multinomial(m, [0.49, 0.49, 0.01, 0.01], 40_000).T
        up = np.where(rare_negative > 0, common + rare, rare)
        down = np.where(common_negative > 0, common, 0)
        wrong = np.mean(up < down) + np.mean(up == down) / 2
        assert line.wrong_choice(m) == pytest.approx(wrong, abs=0.01)
        assert line.wrong_choice(m) > (1 - line.EPSILON) ** m


def test_the_simulation_finds_the_exact_probability(results):
    table = results("one-dimension").table.filter(measure="R_max chooses wrongly")
    for m, mean in table.select("m", "mean").rows():
        exact = line.wrong_choice(m)
        assert abs(mean - exact) <= 4 * np.sqrt(exact * (1 - exact) / 60) + 0.02


def test_the_claims_about_the_line(results):
    verdicts = {verdict.row: verdict for verdict in results("one-dimension").verdicts}
    assert verdicts["R_max chooses wrongly"].word == "agrees"
    assert verdicts["a larger p needs more data"].word == "agrees"
    assert verdicts["AUC hardly affected"].word != "differs"
    missed = results("one-dimension").table.filter(pl.col("measure").str.starts_with("R_true"))
    at_fifty = missed.filter(m=50)["mean"].to_list()
    assert at_fifty == sorted(at_fifty)
    assert "p = 193" in results("one-dimension").notes[0]


def test_verdicts_about_the_line_can_differ():
    rng = np.random.default_rng(0)
    sizes, powers = len(line.SIZES), len(line.POWERS)
    missed = 0.5 + 0.01 * rng.random((20, sizes, powers)) - 0.1 * np.arange(powers)
    assert line._data_verdict(missed).word == "differs"
    assert line._data_verdict(rng.normal(size=(20, sizes, powers))).word == "within noise"
    assert line._wrong_verdict(np.zeros((50, sizes))).word == "differs"
    assert line._auc_verdict(0.6 + 0.01 * rng.random((20, sizes))).word == "differs"


def test_the_line_repeats_itself():
    first, second, other = (
        papers.run("one-dimension", n_splits=3, random_state=seed).table for seed in (1, 1, 2)
    )
    assert first.equals(second)
    assert not first.equals(other)
    with pytest.raises(InputError, match="n_splits"):
        papers.run("one-dimension", n_splits=1)


# Sample sizes


def test_the_sizes_are_enough_and_half_of_them_is_not(results):
    for row in results("sample-size").table.filter(pl.col("p") <= 3).to_dicts():
        r_min = tradeoffs.THEOREMS[row["theorem"]]

        def bound(K, I, row=row, r_min=r_min):
            return failure_probability(row["epsilon"], 0.1, row["p"], I, K, tradeoffs.LINEAR, r_min)

        assert bound(row["negatives"], row["positives"]) <= 0.05 * (1 + 1e-9)
        assert bound(row["negatives"] / 2, row["positives"]) > 0.05
        assert bound(row["negatives"], row["positives"] / 2) > 0.05


def test_both_theorems_say_the_same_at_p_1(results):
    at_one = results("sample-size").table.filter(p=1)
    second, third = (at_one.filter(theorem=name)["negatives"].to_list() for name in tradeoffs.THEOREMS)
    assert second == third


def test_sample_size_verdicts_can_differ(results):
    table = results("sample-size").table
    upside_down = table.with_columns(
        theorem=pl.col("theorem").replace({"Theorem 2": "Theorem 3", "Theorem 3": "Theorem 2"})
    )
    assert tradeoffs._never_worse(upside_down).word == "differs"
    assert tradeoffs._slower(upside_down).word == "differs"
    assert tradeoffs._more_for_larger_p(table.with_columns(negatives=pl.lit(5.0))).word == "differs"


# MAGIC


def test_a_push_helps_the_top_of_magic(results):
    result = results("magic-tradeoff")
    verdicts = {verdict.row: verdict.word for verdict in result.verdicts}
    assert verdicts["R_16"] == verdicts["DCG"] == "agrees"
    assert verdicts["partial AUC, FPR ≤ 5 %"] == "yes"
    assert verdicts["IR Push like p = 64"] == "agrees"
    assert result.table.height == 6 * 9
    for name in ("partial AUC, FPR ≤ 5 %", "R_16"):
        means = result.table.filter(measure=name)["mean"].to_list()[:7]
        assert means == sorted(means, reverse=name == "R_16")
    assert result.view.height == 2 * 6
    assert result.view.columns[2:] == [*(f"p = {p}" for p in (1, 2, 4, 8, 16, 32, 64, "inf")), "IR Push"]
    assert papers.get("magic-tradeoff").options == ["n_splits", "n_jobs", "random_state"]


def test_the_rule_for_magic():
    def by_column(pairs):
        """Splits x columns that hold the given values at p = 1 and p = 64."""
        values = np.zeros((len(pairs), len(tradeoffs.COLUMNS)))
        values[:, [tradeoffs.FIRST, tradeoffs.LAST]] = pairs
        return values

    rises = by_column([[0.1, 0.3], [0.2, 0.4], [0.1, 0.31]])
    assert tradeoffs._judge("DCG", rises).word == "agrees"
    assert tradeoffs._judge("DCG", -rises).word == "differs"
    assert tradeoffs._judge("AUC", rises).word == "differs"
    assert tradeoffs._judge("AUC", by_column([[0.1, 0.3], [0.2, 0.0], [0.1, 0.1]])).word == "within noise"


def test_the_rules_for_the_ir_push_and_infinity():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(10, 6, len(tradeoffs.COLUMNS))) * 1e-3
    values[:, :, tradeoffs.LAST] += 1.0
    values[:, :, tradeoffs.IR] += 1.0
    assert tradeoffs._same_as_ir(values).word == "agrees"
    apart = values.copy()
    apart[:, 3, tradeoffs.IR] = 0.5
    assert tradeoffs._same_as_ir(apart).word == "differs"
    signs = np.array([sign for _, sign in tradeoffs.MEASURES.values()])
    values[:, :, tradeoffs.LIMIT] = 1.0 + 0.5 * signs
    assert tradeoffs._goes_on(values).word == "yes"
    values[:, 0, tradeoffs.LIMIT] = 1.0 - 0.5 * signs[0]
    assert tradeoffs._goes_on(values).word == "no"
    values[:, :, tradeoffs.LIMIT] = 1.0 + rng.normal(size=(10, 6))
    assert tradeoffs._goes_on(values).word == "cannot tell"
