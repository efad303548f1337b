"""The page of a comparison of rankers: its figures are those of the comparison, and its list is that of the table."""

import base64
import io
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.special import expit
from sklearn.naive_bayes import GaussianNB

from apexrank.comparison import LinearPush, Logistic, Trees, compare_rankers, compare_table
from apexrank.comparison.engine import SHARES
from apexrank.datasets import make_push_example
from apexrank.errors import InputError
from apexrank.io import Recipe, Table
from apexrank.report import build

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
    """Text of a page as it is read, without charts."""
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
    """Neither a dash nor a NaN stands where there is no interval."""
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
    of_trees = compare_rankers(*example, candidates=[Trees(leaves=(4,), rounds=(20,))], repeats=1)
    scores = of_trees.model.decision_function(example[0])[of_trees.first.rows]
    sums = of_trees.first.parts.sum(axis=1)
    assert np.ptp(scores - sums) == pytest.approx(0, abs=1e-9)
    assert "Effects of the values" in build(of_trees)


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
    assert "Download the list with their values as CSV" in text


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
    assert "3,000 columns used, of which the first 200 are shown" in html
    assert len(html) < 2_000_000
    assert "feature 1235" in download_of(html).columns
