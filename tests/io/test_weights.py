"""Weights are repetitions: integer weights equal repeated rows, in cases that tests/metamorphic does not cover."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from apexrank import metrics, rankers
from apexrank.cli.app import app
from apexrank.export import round_scorecard
from apexrank.io import Recipe, Table
from apexrank.io.judge import Judged, default_measures, judge_table, measure
from apexrank.io.table_ranker import Thresholds, fit_table
from apexrank.io.types import Category, Number
from apexrank.metrics.evaluation import FAMILIES
from tests.io.encoders import linear_features

CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def claims(seed=0, n=120):
    """Rows with missing values and categories; a third of them have weight 0, 1, 2 or 3."""
    rng = np.random.default_rng(seed)
    amount, age, city = rng.lognormal(size=n), rng.normal(40, 10, n), rng.choice(["Oslo", "Rome", "Lima"], n)
    fraud = amount + (city == "Lima") + rng.normal(size=n) > 2.0
    return pl.DataFrame(
        {
            "id": [f"r{i}" for i in range(n)],
            "q": [f"q{i % 8}" for i in range(n)],
            "amount": pl.Series(np.where(rng.random(n) < 0.1, np.nan, amount)).fill_nan(None),
            "age": age,
            "city": city,
            "stars": np.digitize(amount + rng.normal(size=n), [0.5, 1.5, 3.0]),
            "fraud": np.where(fraud, "yes", "no"),
            "times": np.where(np.arange(n) < 8, 1, rng.integers(0, 4, n)),
        }
    )


def repeated(frame):
    rows = np.repeat(np.arange(len(frame)), frame["times"].to_numpy())
    return frame[rows].drop("times")


@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from(["standard", "minmax"]),
    impute=st.sampled_from(["median", "mean"]),
)
@settings(max_examples=40, deadline=None)
def test_the_encoding(seed, scale, impute):
    frame = claims(seed, 30)
    columns = [Number("amount"), Number("age"), Category("city", tuple(sorted(set(frame["city"]))))]
    options = {"impute": impute, "scale": scale}
    weight = frame["times"].to_numpy()
    weighted, _ = linear_features(Table(frame), columns, sample_weight=weight, **options)
    again, _ = linear_features(Table(repeated(frame)), columns, **options)
    assert weighted.features == again.features
    np.testing.assert_allclose(weighted.center, again.center, **CLOSE)
    np.testing.assert_allclose(weighted.scale, again.scale, **CLOSE)
    assert weighted.columns[0].fill == pytest.approx(again.columns[0].fill, rel=1e-12)


@given(
    values=st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3)), min_size=1, max_size=900),
    fpr=st.floats(0, 0.999),
)
def test_thresholds(values, fpr):
    scores, weight = (np.array(column, dtype=float) for column in zip(*values, strict=True))
    weight[0] = 1
    again = Thresholds.learn(np.repeat(scores, weight.astype(int)))
    weighted = Thresholds.learn(scores, weight)
    assert weighted.at(fpr) == again.at(fpr)
    assert weighted.counts.tolist() == again.counts.tolist()
    halved = Thresholds.learn(scores, weight / 2)
    assert (weight[scores > halved.at(fpr)]).sum() <= fpr * weight.sum() * (1 + 1e-12)


@given(seed=st.integers(0, 10**6), grouped=st.booleans())
@settings(max_examples=60, deadline=None)
def test_all_measures(seed, grouped):
    rng = np.random.default_rng(seed)
    n = 25
    y, scores, weight = rng.integers(0, 3, n), rng.integers(0, 9, n) / 2, rng.integers(0, 4, n)
    groups = rng.integers(0, 3, n) if grouped else None
    y[:2], weight[:2] = (0, 2), 1
    rows = np.repeat(np.arange(n), weight)
    if grouped:
        groups[:2] = 0
        keep = np.isin(groups, groups[rows])  # a group of weight 0 does not count
        y, scores, weight, groups = y[keep], scores[keep], weight[keep], groups[keep]
        rows = np.repeat(np.arange(len(y)), weight)
    for name in FAMILIES:
        options = {"relevant": 1.0}
        once = metrics.evaluate(y, scores, [name], groups=groups, sample_weight=weight, **options)
        again = metrics.evaluate(
            y[rows], scores[rows], [name], groups=None if groups is None else groups[rows], **options
        )
        assert once == pytest.approx(again, rel=1e-10, abs=1e-12), name


def test_measures_of_fractions_leave_out_those_of_ranks():
    y, scores, weight = np.array([1, 0, 1, 0]), np.arange(4.0), np.array([0.5, 1.5, 4.0, 6.0])
    judged = Judged(y, scores, None, weight=weight)
    names = default_measures(judged)
    assert "auc" in names
    assert "push_dcg" not in names
    assert list(measure(judged)[0]) == names
    assert list(measure(judged._replace(groups=np.zeros(4)), brief=True)[0]) == ["precision_at_5", "auc"]


class TestCommands:
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for name, seed in (("train", 0), ("test", 5)):
            frame = claims(seed, 200)
            frame.write_csv(f"{name}_weighted.csv")
            repeated(frame).write_csv(f"{name}_repeated.csv")
        claims(9, 100).drop("times").write_csv("new.csv")

    def run(self, line):
        result = CliRunner().invoke(app, line.split(), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    def both(self, line):
        """Output of a command for weighted and for repeated rows."""
        return [
            self.run(line.format(kind=kind, weight=weight))
            for kind, weight in (("weighted", "--weight times"), ("repeated", ""))
        ]

    def fitted(self):
        options = "--categorical city --impute median --alpha 0.01 --tol 1e-12 --drop id,q,stars"
        line = f"fit train_{{kind}}.csv --target fraud {options} {{weight}} --json -o {{kind}}.apex"
        return map(json.loads, self.both(line))

    @pytest.mark.slow
    def test_scorecards(self):
        self.fitted()
        card = "export {kind}.apex -o card.csv --data train_{kind}.csv --test test_{kind}.csv --json"
        one, other = map(json.loads, self.both(card))
        assert [row["rule"] for row in one["points"]] == [row["rule"] for row in other["points"]]
        assert [row["points"] for row in one["points"]] == [row["points"] for row in other["points"]]
        assert one["objective"] == pytest.approx(other["objective"], rel=1e-9)
        for mine, theirs in zip(one["loss"], other["loss"], strict=True):
            assert mine["measure"] == theirs["measure"]
            for name in ("model", "scorecard", "difference"):
                assert mine[name] == pytest.approx(theirs[name], rel=1e-10, abs=1e-12)

    def test_fractions_are_weights_as_well(self):
        pl.read_csv("train_weighted.csv").with_columns(pl.col("times") / 4).write_csv("train_weighted.csv")
        options = "--target fraud --features age,amount --impute mean --weight times --json"
        report = json.loads(self.run(f"fit train_weighted.csv {options}"))
        assert "auc" in report["measures"]
        assert "average_precision" not in report["measures"]


def test_scorecards_of_arrays():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(80, 3)), rng.integers(0, 4, 80)
    y = X @ [1.0, -1.0, 0.2] + rng.normal(size=80) > 0.5
    rows = np.repeat(np.arange(80), weight)
    model = rankers.PNormPush(alpha=1e-2, tol=1e-12).fit(X[rows], y[rows])
    one = round_scorecard(model, X, y, sample_weight=weight)
    other = round_scorecard(model, X[rows], y[rows])
    assert (one.points.tolist(), one.units.tolist()) == (other.points.tolist(), other.units.tolist())
    assert one.objective == pytest.approx(other.objective, rel=1e-10)


def test_rows_of_weight_0_do_not_scale_the_queries_that_are_judged():
    rng = np.random.default_rng(2)
    n = 80
    frame = pl.DataFrame({"q": np.repeat(np.arange(8), 10), "a": rng.normal(size=n), "b": rng.normal(size=n)})
    stars = (frame["a"] + frame["b"] + rng.normal(size=n) > 0).cast(pl.Int64)
    frame = frame.with_columns(stars=stars, times=pl.Series(rng.integers(0, 3, n)))
    recipe = Recipe(target="stars", graded=True, groups="q", scale="query", weight="times")
    ranker, fitted = fit_table(Table(frame), recipe, rankers.MonotoneRetargeting(alpha=0.1))
    judged = judge_table(ranker, Table(frame))
    counted = judged.weight > 0
    again = judge_table(ranker, Table(repeated(frame)))
    np.testing.assert_array_equal(judged.scores[counted], fitted.scores[counted])
    np.testing.assert_allclose(np.repeat(judged.scores, frame["times"]), again.scores, rtol=1e-12)
