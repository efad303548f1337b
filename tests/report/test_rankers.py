"""The report on a comparison of rankers: its figures equal those of the comparison, its list that of the table."""

import base64
import io
import re
from dataclasses import replace
from html import escape

import numpy as np
import polars as pl
import pytest
from scipy.special import expit
from sklearn.naive_bayes import GaussianNB

from apexrank.comparison import Estimator, LinearPush, Logistic, Trees, compare_rankers, compare_table
from apexrank.comparison.trials import SHARES
from apexrank.datasets import make_push_example
from apexrank.errors import InputError
from apexrank.io import Recipe, Table
from apexrank.rankers import AdditiveRanker
from apexrank.report import build
from apexrank.report.page import number

QUICK = [Logistic(alphas=(1e-2,)), LinearPush(ps=(4,), alphas=(1e-3,))]


@pytest.fixture(scope="module")
def example():
    return make_push_example(600, return_X_y=True)


@pytest.fixture(scope="module")
def found(example):
    return compare_rankers(*example, candidates=QUICK, repeats=2)


def frame(n=400, seed=0, **more):
    rng = np.random.default_rng(seed)
    x, z = rng.standard_normal((2, n)).round(3)
    shop = rng.choice(["a", "b", "<i>c"], n)
    y = (x + 2 * (shop == "b") + rng.standard_normal(n) > 2).astype(int)
    gaps = pl.Series([None if i % 8 == 0 else str(value) for i, value in enumerate(z)], dtype=pl.String)
    return pl.DataFrame({"x": x, "gaps": gaps, "shop": shop, "one": 1, **more, "fraud": y})


@pytest.fixture(scope="module")
def of_table():
    return compare_table(
        Table(frame(case=[f"C{i}" for i in range(400)])), RECIPE, candidates=QUICK, repeats=1
    )


RECIPE = Recipe(target="fraud", id="case")


def text_of(html):
    """Visible text of a page, without charts."""
    body = html.split("<body>")[1].split("<script>")[0]
    body = re.sub(r"<svg.*?</svg>", "", body, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def download_of(html):
    data = re.search(r'href="data:text/csv;charset=utf-8;base64,([^"]*)"', html)[1]
    return pl.read_csv(io.BytesIO(base64.b64decode(data)), infer_schema_length=None)


def test_first_screen_has_verdict_rankers_and_gains(found):
    text = text_of(build(found))
    assert found.verdict.text in text
    assert found.verdict.costs in text
    for i, name in enumerate(found.names):
        value = found.value(i)
        shown = f"{100 * value.value:.1f} % {100 * max(value.low, 0):.1f} to {100 * min(value.high, 1):.1f}"
        chosen = " recommended" if i == found.recommended else ""
        assert f"{name}{chosen} {shown}" in text
    gap = found.difference(1, 0)
    assert f"{100 * gap.value:+.1f} points".replace("-", "−") in text
    recall = np.interp(found.top.share, SHARES, [gain.value for gain in found.gain(found.recommended)])
    assert f"finds {100 * recall:.0f} % of the positives" in text
    assert text.index("Gains at the top") < text.index("The whole list")


def test_how_it_was_measured(found, example):
    X, y = example
    assert found.measured == "5 folds, 2 times: trained on 480 rows, evaluated on 120 each time."
    tested = compare_rankers(X[:400], y[:400], X_test=X[400:], y_test=y[400:], candidates=QUICK, repeats=1)
    assert tested.measured == "Trained on 400 rows, evaluated on 200."
    assert tested.measured in text_of(build(tested))
    at = tested.gain(0)[10]
    assert at.low < at.value < at.high


def test_no_interval_leaves_no_trace(found):
    """Missing intervals appear neither as a dash nor as NaN."""
    html = build(replace(found, values=found.values[:, :1], gains=found.gains[:, :1]))
    assert f"{100 * found.values[0, 0, 0]:.1f} % </td>" in re.sub(r"\s*</td>", " </td>", html)
    assert not re.search(r"\bnan\b|\binf\b|∞|e\+\d|>[–\s]*–[–\s]*<", text_of(html))


def test_parts_of_the_list_count_weights_as_repetitions(found):
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, len(found.y))
    again = np.repeat(np.arange(len(found.y)), weight)
    weighted = replace(found, weight=weight.astype(float))
    repeated = replace(found, y=found.y[again], scores=found.scores[:, again])
    assert weighted.base_rate == pytest.approx(repeated.base_rate)
    (part,) = weighted.parts(0, 1)
    (other,) = repeated.parts(0, 1)
    assert (part.positive, part.predicted) == pytest.approx((other.positive, other.predicted))
    assert part.predicted == pytest.approx(np.average(expit(found.scores[0]), weights=weight))


def test_probabilities_only_where_scores_are_log_odds(found):
    assert [part.predicted is None for part in (found.parts(0)[0], found.parts(1)[0])] == [False, True]
    tops = [part.positive for part in found.parts(0)]
    assert tops[0] > tops[-1]
    assert sum(part.rows for part in found.parts(0)) == len(found.y)
    html = build(found)
    assert ("Mean predicted probability" in html) == (found.recommended == 0)
    pushed = replace(
        found, candidates=found.candidates[1:], settings=found.settings[1:], scores=found.scores[1:]
    )
    pushed = replace(pushed, values=found.values[1:], gains=found.gains[1:], sizes=found.sizes[1:])
    assert "the dotted line is the base rate" in build(pushed)


def test_drivers_add_up_to_the_score_above_that_of_an_average_row(of_table):
    model, first = of_table.model, of_table.first
    table = Table(frame(case=[f"C{i}" for i in range(400)]))
    scores = model.score(table)
    above = scores[of_table.rows[first.rows]] - scores.mean()
    assert first.parts.sum(axis=1) == pytest.approx(above)
    for place in range(5):
        drivers = first.drivers(place)
        lifts = np.maximum(first.parts[place], 0)
        assert [share for _, _, share in drivers] == pytest.approx(
            sorted(lifts / lifts.sum())[::-1][: len(drivers)]
        )
        assert [value for _, value, _ in drivers] == [first.values[name][place] for name, _, _ in drivers]


def test_drivers_of_arrays(found, example):
    X, _ = example
    scaler, ranker = found.model
    parts = (scaler.transform(X) * ranker.coef_)[found.standing(found.recommended)]
    assert found.first.parts == pytest.approx(parts[:1000])
    assert "Main drivers relative to an average row" in build(found)


def test_drivers_of_trees(example):
    pytest.importorskip("lightgbm")
    of_trees = compare_rankers(*example, candidates=[Trees(rounds=20)], repeats=1)
    scores = of_trees.model.decision_function(example[0])[of_trees.first.rows]
    sums = of_trees.first.parts.sum(axis=1)
    assert np.ptp(scores - sums) == pytest.approx(0, abs=1e-9)
    assert "Effects of the values" in build(of_trees)


@pytest.fixture(scope="module")
def additive():
    ranker = Estimator("curves", AdditiveRanker(n_pairs=2))
    table = Table(frame(case=[f"C{i}" for i in range(400)]))
    return compare_table(table, RECIPE, candidates=[ranker], repeats=1)


def effect_section(html):
    return html.split('<section aria-labelledby="effects">')[1].split("</section>")[0]


def test_effects_of_an_additive_ranker_are_those_of_its_functions(additive):
    section = effect_section(build(additive))
    assert "Effects of the columns in curves" in section
    assert re.findall(r"<h3><bdi>(.*?)</bdi>", section) == [
        effect.name for effect in additive.effects().columns
    ]
    for effect in additive.effects().columns:
        chart = re.search(rf'<svg[^>]*aria-label="Effect of {effect.name}\..*?</svg>', section, re.DOTALL)[0]
        shown = re.findall(r"<title>([^<]*): ([^<]*)</title>", chart)
        if effect.levels:
            assert dict(shown) == {
                escape(level): number(size)
                for level, size in zip(effect.levels, effect.effect[0], strict=True)
            }
        else:
            at_knots = np.interp(effect.knots, effect.x, effect.effect[0])
            last = [number(effect.missing[0])] if effect.missing is not None else []
            assert [size for _, size in shown] == [*map(number, at_knots), *last]


def test_joint_effects_are_heat_maps_around_zero(additive):
    section = effect_section(build(additive))
    pairs = additive.effects().pairs
    assert section.count("Joint effect of") >= len(pairs) == 2
    assert f"the most intense colour is {number(additive.effects().strongest)}" in section
    chart = re.findall(r'<svg[^>]*aria-label="Joint effect.*?</svg>', section, re.DOTALL)[0]
    cells = re.findall(r'class="bar (s[01]) heat"[^>]*fill-opacity="([\d.]+)"', chart)
    values = pairs[0].cells(3)[1]
    assert [series == "s1" for series, _ in cells] == (values.ravel() > 0).tolist()
    assert [float(size) for _, size in cells] == pytest.approx(
        np.abs(values.ravel()) / additive.effects().strongest, abs=0.006
    )


def test_drivers_of_an_additive_ranker_are_exact(additive):
    table = Table(frame(case=[f"C{i}" for i in range(400)]))
    scores = additive.model.score(table)[additive.rows[additive.first.rows]]
    assert np.ptp(scores - additive.first.parts.sum(axis=1)) == pytest.approx(0, abs=1e-9)
    text = text_of(build(additive))
    assert "they are exact, because scores are sums over columns" in text
    assert "Effects of the values" not in text  # the functions themselves are shown


def test_an_additive_ranker_that_is_not_recommended_shows_its_effects_too(example):
    rankers = [QUICK[0], Estimator("curves", AdditiveRanker(alpha=1e-2))]
    names = list("abcdef")
    both = compare_rankers(*example, candidates=rankers, repeats=1, feature_names=names)
    both = replace(both, values=both.values[[0, 0]], gains=both.gains[[0, 0]])  # of equals the first
    assert (both.recommended, both.additive) == (0, 1)
    html = build(both)
    assert "Effects of the columns in curves" in html
    assert set(re.findall(r"<h3><bdi>(.*?)</bdi>", effect_section(html))) == set(names)
    assert "Effects of the values" in html
    assert "they are exact" not in html


def test_no_additive_ranker_no_effects(found):
    assert found.additive is None
    assert "Effects of the columns" not in build(found)


def test_a_ranker_that_cannot_tell_its_drivers(example):
    of_other = compare_rankers(*example, candidates=[GaussianNB()], repeats=1)
    html = build(of_other)
    assert of_other.first.parts is None
    assert "drivers" not in text_of(html)
    assert download_of(html).columns == ["place", "row", "score", "positive", *of_other.feature_names]
    assert "The first 20 rows of the list" in html


def test_the_list_is_that_of_the_table(of_table):
    html, table = build(of_table), frame(case=[f"C{i}" for i in range(400)])
    saved = download_of(html)
    assert saved["place"].to_list() == list(range(1, 401))
    assert saved["score"].is_sorted(descending=True)
    joined = saved.join(table, left_on="row", right_on="case", maintain_order="left")
    for name in ("x", "shop"):
        assert saved[name].equals(joined[f"{name}_right"])
    assert saved["positive"].equals(joined["fraud"])
    text = text_of(html)
    name, value, _ = of_table.first.drivers(0)[0]
    assert f"{name} = {value}" in text.replace("&lt;", "<")
    assert "<i>c" not in html
    assert "Download the list with column values as CSV" in text


def test_columns_of_the_table_may_have_any_name():
    columns = {"row": np.arange(400) % 7, "score": np.arange(400) % 5}
    saved = download_of(
        build(compare_table(Table(frame(**columns)), Recipe(target="fraud"), candidates=QUICK[:1]))
    )
    assert {"place", "row_", "score_", "positive", "row", "score"} <= set(saved.columns)
    assert set(saved["row"]) == set(range(7))


def test_columns_used_and_left_out(of_table):
    profile = {column.name: column for column in of_table.columns}
    assert list(profile) == ["x", "gaps", "shop"]
    assert (profile["shop"].kind, profile["shop"].values) == ("category", 3)
    assert (profile["gaps"].kind, profile["gaps"].missing) == ("number", 1 / 8)
    text = text_of(build(of_table))
    assert "gaps number 12.5 %" in text
    reasons = dict(of_table.left_out)
    assert f"one {reasons['one']}" in text


def test_rows_of_a_test_table():
    new = frame(200, seed=1, case=[f"N{i}" for i in range(200)])
    tested = compare_table(
        Table(frame(case=[f"C{i}" for i in range(400)])),
        RECIPE,
        test_table=Table(new),
        candidates=QUICK,
        repeats=1,
    )
    saved = download_of(build(tested))
    assert len(saved) == 200
    joined = saved.join(new, left_on="row", right_on="case", maintain_order="left")
    assert saved["x"].equals(joined["x_right"])


def test_other_measures_of_the_top(example):
    at_rate = compare_rankers(*example, candidates=QUICK, fpr=0.02, repeats=1)
    text = text_of(build(at_rate))
    assert f"At 2 % false alarms, {at_rate.names[at_rate.recommended]} finds" in text
    weighted = compare_rankers(*example, candidates=QUICK, sample_weight=np.linspace(0.5, 2, 600), repeats=1)
    assert "average precision" not in text_of(build(weighted))


def test_large_lists_are_cut(of_table):
    values = of_table.first.values.with_columns(shop=pl.lit("x" * 5000))
    cut = replace(of_table, first=replace(of_table.first, values=values))
    html = build(cut)
    assert 20 <= len(download_of(html)) <= 200
    assert f"Download the first {len(download_of(html)):,} rows" in text_of(html)


def test_what_is_no_comparison():
    with pytest.raises(InputError, match="no report of a dict: give a result of compare_rankers"):
        build({})


def test_wide_tables_have_a_page_of_bearable_size():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 3000))
    y = X[:, 1234] + 0.3 * rng.standard_normal(90) > 0.3
    wide = compare_rankers(X, y, candidates=QUICK[:1], repeats=1)
    html = build(wide)
    assert "3,000 columns used; the first 200 are shown" in html
    assert len(html) < 2_000_000
    assert "feature 1235" in download_of(html).columns
