"""Weights are repetitions: integer weights give what repeated rows give, from measures to the command line."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from typer.testing import CliRunner

from apexrank import aggregate, metrics, rankers
from apexrank.cli.app import app
from apexrank.export import round_scorecard
from apexrank.io import Recipe, Table, load_model
from apexrank.io.encode import Category, Encoder, Number
from apexrank.io.judging import default_measures, judge_table, top_measures
from apexrank.io.stream_fit import fit_table_blocks
from apexrank.io.table_ranker import Thresholds, fit_table
from apexrank.metrics.evaluation import FAMILIES

CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def close(estimator):
    """How near coefficients can be: L-BFGS, and Newton with an l1 penalty, stop at a gradient of about 1e-8."""
    return CLOSE if getattr(estimator, "tol", 0.0) < 1e-9 else {"rtol": 1e-6, "atol": 1e-7}


def claims(seed=0, n=120):
    """Rows with gaps and categories; a third of them have weight 0, 1, 2 or 3."""
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
    columns = [Number("amount"), Number("age"), Category("city")]
    options = {"impute": impute, "scale": scale}
    weight = frame["times"].to_numpy()
    weighted, _ = Encoder.fit_transform(Table(frame), columns, sample_weight=weight, **options)
    again, _ = Encoder.fit_transform(Table(repeated(frame)), columns, **options)
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


RECIPES = [
    (rankers.PNormPush(4.0, alpha=1e-2, tol=1e-12), {}),
    (rankers.PNormPush(2.0, alpha=1e-2, tol=1e-12, side="both"), {"scale": "minmax"}),
    (rankers.PNormPush(2.0, alpha=0.1, tol=1e-8), {"groups": "q", "scale": "query"}),
    (rankers.IRPush(alpha=1e-2, tol=1e-12), {}),
    # without indicators, whose sum is 1: a descent along coordinates may then choose among equals
    (rankers.RankBoost(t_max=20), {"scale": "minmax", "features": ["amount", "age"], "categorical": []}),
    (rankers.MonotoneRetargeting(alpha=1.0, tol=1e-12), {"target": "stars", "graded": True, "groups": "q"}),
    (rankers.ListwiseRanker(alpha=1.0, tol=1e-12), {"target": "stars", "graded": True, "groups": "q"}),
    (rankers.CrucialPairsPush(alpha=1e-2, tol=1e-12), {"target": "stars", "graded": True, "groups": "q"}),
    (rankers.UnknownLinkRegressor(alpha=1e-2, tol=1e-12), {"target": "stars", "graded": True}),
]


@pytest.mark.parametrize(
    ("estimator", "options"), RECIPES, ids=lambda part: type(part).__name__ if hasattr(part, "fit") else ""
)
@pytest.mark.parametrize("seed", [0, 1])
def test_fitted_tables(estimator, options, seed):
    frame = claims(seed)
    drop = ["id", *({"stars", "fraud", "q"} - {options.get("target", "fraud"), options.get("groups")})]
    recipe = {"target": "fraud", "drop": drop, "categorical": ["city"], "impute": "median"} | options
    one, judged = fit_table(Table(frame), Recipe(weight="times", **recipe), clone(estimator))
    other, again = fit_table(Table(repeated(frame)), Recipe(**recipe), clone(estimator))
    np.testing.assert_allclose(one.coef, other.coef, **close(estimator))
    np.testing.assert_allclose(one.mean, other.mean, **CLOSE)
    scores = np.repeat(judged.scores, frame["times"].to_numpy())
    np.testing.assert_allclose(scores, again.scores, **close(estimator))
    if one.thresholds is not None:
        assert one.thresholds.at(0.1) == pytest.approx(other.thresholds.at(0.1), rel=close(estimator)["rtol"])
    found = top_measures(judged.y, judged.scores.round(6), judged.groups, judged.weight)
    assert found == pytest.approx(top_measures(again.y, again.scores.round(6), again.groups), rel=1e-10)


TWO_CLASSES = [
    rankers.PNormPush(1.0, alpha=0.1, tol=1e-11),
    rankers.PNormPush(8.0, alpha=0.1, tol=1e-11, side="bottom"),
    rankers.PNormPush(2.0, alpha=0.1, tol=1e-8, loss="logistic"),
    rankers.PNormPush(4.0, alpha=0.1, tol=1e-8, l1_ratio=0.5),
    rankers.PNormPush(alpha=0.1, tol=1e-11, price="log1p"),
    rankers.IRPush(alpha=0.1, tol=1e-11),
    rankers.RankBoost(t_max=50),
    rankers.TwoStagePush(*(rankers.PNormPush(p, alpha=0.1, tol=1e-11) for p in (1.0, 8.0)), keep=0.3),
]
GRADES = [
    *(rankers.ListwiseRanker(loss, alpha=1.0, tol=1e-11) for loss in ("listnet", "pointwise")),
    rankers.ListwiseRanker("rank_cosine", alpha=1.0, tol=1e-8),
    *(rankers.MonotoneRetargeting(order=order, alpha=1.0, tol=1e-11) for order in ("hidden", "blocks")),
    rankers.MonotoneRetargeting("kl", alpha=1.0, tol=1e-10),
    rankers.CrucialPairsPush(alpha=0.1, tol=1e-11),
]
VALUES = [
    *(rankers.UnknownLinkRegressor(alpha=0.1, link=link, tol=1e-11) for link in ("isotonic", "cost")),
    rankers.Isotron(max_iter=50, tol=0.0),
]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("estimator", "kind"),
    [(one, kind) for kind, ones in enumerate((TWO_CLASSES, GRADES, VALUES)) for one in ones],
    ids=lambda part: type(part).__name__ if hasattr(part, "fit") else "",
)
def test_all_estimators(estimator, kind, seed):
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(90, 3)), rng.integers(0, 4, 90)
    value = X @ [1.0, -0.5, 0.2] + rng.normal(size=90)
    y = (value > 0.5, np.digitize(value, [-0.5, 0.5, 1.5]), value)[kind]
    groups = {"groups": np.arange(90) % 6} if kind == 1 else {}
    rows = np.repeat(np.arange(90), weight)
    one = clone(estimator).fit(X, y, sample_weight=weight, **groups)
    again = {name: ids[rows] for name, ids in groups.items()}
    other = clone(estimator).fit(X[rows], y[rows], **again)
    method = "predict" if kind else "decision_function"
    np.testing.assert_allclose(getattr(one, method)(X), getattr(other, method)(X), **close(estimator))


@pytest.mark.parametrize(
    "method", ["lovasz-bregman", "borda", "copeland", "kemeny", "median", "combsum", "combmnz", "rrf"]
)
def test_aggregation(method):
    rng = np.random.default_rng(0)
    ballots, weight = rng.normal(size=(9, 6)), rng.integers(0, 4, 9)
    one = aggregate(ballots, weights=weight, method=method)
    other = aggregate(np.repeat(ballots, weight, axis=0), method=method)
    np.testing.assert_allclose(one.scores, other.scores, **CLOSE)
    assert list(one.order) == list(other.order)


def test_tables_read_in_parts(tmp_path):
    frame = claims(2, 400)
    for name, rows in (("weighted", frame), ("repeated", repeated(frame))):
        (tmp_path / name).mkdir()
        rows[:150].write_parquet(tmp_path / name / "0.parquet")
        rows[150:].write_parquet(tmp_path / name / "1.parquet")
    recipe = {"target": "fraud", "drop": ["id", "q", "stars"], "categorical": ["city"], "impute": "median"}
    ranker = rankers.PNormPush(4.0, alpha=1e-2, tol=1e-12)
    one, judged = fit_table_blocks(tmp_path / "weighted", Recipe(weight="times", **recipe), ranker, rows=90)
    coef, mean, threshold = one.coef.copy(), one.mean, one.thresholds.at(0.2)
    other, again = fit_table_blocks(tmp_path / "repeated", Recipe(**recipe), ranker, rows=90)
    np.testing.assert_allclose(coef, other.coef, **CLOSE)
    np.testing.assert_allclose(mean, other.mean, **CLOSE)
    assert threshold == pytest.approx(other.thresholds.at(0.2), rel=1e-10)
    np.testing.assert_allclose(np.repeat(judged.scores, frame["times"].to_numpy()), again.scores, **CLOSE)


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
        keep = np.isin(groups, groups[rows])  # a group of weight 0 is no group
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
    names = default_measures(y, None, weight)
    assert "auc" in names
    assert "push_dcg" not in names
    assert set(top_measures(y, scores, None, weight)) == set(names)
    assert "ndcg" not in top_measures(y, scores, np.zeros(4), weight)


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
        """What a command says of weighted rows, and of repeated ones."""
        return [
            self.run(line.format(kind=kind, weight=weight))
            for kind, weight in (("weighted", "--weight times"), ("repeated", ""))
        ]

    def fitted(self):
        options = "--categorical city --impute median --alpha 0.01 --tol 1e-12 --drop id,q,stars"
        line = f"fit train_{{kind}}.csv --target fraud {options} {{weight}} --json -o {{kind}}.apex"
        return map(json.loads, self.both(line))

    def test_fit_evaluate_and_rank(self):
        one, other = self.fitted()
        for name in ("coefficients", "measures"):
            assert one[name] == pytest.approx(other[name], rel=1e-10, abs=1e-10)
        assert one["objective"] == pytest.approx(other["objective"], rel=1e-10)
        one, other = map(json.loads, self.both("evaluate {kind}.apex test_{kind}.csv --json"))
        assert one["measures"] == pytest.approx(other["measures"], rel=1e-10)
        unweighted = json.loads(self.run("evaluate repeated.apex test_weighted.csv --json"))
        assert unweighted["measures"] != pytest.approx(other["measures"], rel=1e-3)
        asked = json.loads(self.run("evaluate repeated.apex test_weighted.csv --weight times --json"))
        assert asked["measures"] == pytest.approx(other["measures"], rel=1e-10)
        for more in ("--fpr 0.1", "--explain"):
            one, other = (
                pl.read_csv(text.encode()) for text in self.both(f"rank {{kind}}.apex new.csv {more}")
            )
            assert one.drop("score").equals(other.drop("score"))
            np.testing.assert_allclose(one["score"], other["score"], **CLOSE)

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

    def test_scores_of_a_column(self):
        line = (
            "evaluate test_{kind}.csv --scores amount --target fraud {weight} --json --measures auc,map,p@5"
        )
        for kind in ("weighted", "repeated"):
            path = Path(f"test_{kind}.csv")
            pl.read_csv(path).with_columns(pl.col("amount").fill_null(0.0)).write_csv(path)
        one, other = map(json.loads, self.both(line))
        assert one["measures"] == pytest.approx(other["measures"], rel=1e-10)

    def test_grades_in_groups(self):
        options = "--target stars --model retarget --groups q --scale query --alpha 1 --tol 1e-12"
        options += " --features amount,age --impute mean"
        one, other = map(
            json.loads, self.both(f"fit train_{{kind}}.csv {options} {{weight}} --json -o {{kind}}.apex")
        )
        assert one["coefficients"] == pytest.approx(other["coefficients"], rel=1e-8, abs=1e-10)
        assert one["measures"] == pytest.approx(other["measures"], rel=1e-10)
        assert load_model("weighted.apex").weight == "times"

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
