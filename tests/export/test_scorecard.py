"""Scorecards: integer points chosen by the objective, and the cost of rounding."""

import itertools
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize_scalar
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from apexrank import (
    CrucialPairsPush,
    IRPush,
    LinearRanker,
    ListwiseRanker,
    MonotoneRetargeting,
    PNormPush,
    PNormPushCV,
    RankBoost,
    metrics,
)
from apexrank.datasets import make_push_example
from apexrank.errors import InputError
from apexrank.export import rounding, to_sql
from apexrank.export.rounding import CardObjective, Rounded, search_points
from apexrank.export.scorecard import add_up, nice_unit, round_scorecard
from apexrank.io import Recipe, Table, TableRanker
from apexrank.penalties import Bounded, Ridge
from apexrank.rankers import CollapsedWarning
from apexrank_papers.retargeting.published import PublishedRetargeting


def push_objective(w, X, y, p, alpha):
    """``LSE(−f) + LSE(p·g)/p + alpha/2·|w|²``, from its formula."""
    s = X @ w
    up, down = np.exp(-s[y == 1]).sum(), np.exp(p * s[y == 0]).sum()
    return np.log(up) + np.log(down) / p + alpha / 2 * w @ w


def small_problem(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3)) * [1.0, 20.0, 0.3] + [0.0, 50.0, 2.0]
    y = (X @ [1.0, 0.04, 2.0] + rng.normal(size=60) > 7).astype(int)
    return X, y


@pytest.fixture(scope="module")
def cancer():
    data = load_breast_cancer(as_frame=True)
    model = make_pipeline(StandardScaler(), PNormPush(p=8, alpha=1e-2))
    return model.fit(data.data, data.target), data.data, data.target


@pytest.fixture(scope="module")
def payments():
    """Table with missing values, text and a switch, and its ranker."""
    rng = np.random.default_rng(5)
    n = 400
    amount = rng.normal(100, 30, n).round()
    city = rng.choice(["Oslo", "Rome", "Bern"], n)
    night = rng.integers(0, 2, n)
    risk = (amount - 100) / 30 + 2 * (city == "Oslo") + night + rng.normal(size=n)
    frame = pl.DataFrame(
        {"amount": amount, "city": city, "night": night, "same": 4, "fraud": (risk > 2).astype(int)}
    )
    frame = frame.with_columns(
        pl.when(pl.int_range(n) % 13 == 5).then(None).otherwise("amount").alias("amount")
    )
    recipe = Recipe("fraud", categorical=["city"], impute="median")
    return TableRanker.fit(Table(frame), recipe, PNormPush(p=4, alpha=1e-2)), frame


class TestPoints:
    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_the_best_of_all_cards(self, seed):
        """Every card of up to two points, each at its best scale, by the formula."""
        X, y = small_problem(seed)
        model = make_pipeline(StandardScaler(), PNormPush(p=4, alpha=0.01)).fit(X, y)
        card = round_scorecard(model, X, y, max_points=2)
        Z, sd = model[0].transform(X), model[0].scale_
        units = np.array([nice_unit(s) for s in sd])

        def best_scale(points):
            w = np.array(points) / units * sd
            found = minimize_scalar(
                lambda s: push_objective(np.exp(s) * w, Z, y, 4, 0.01), bounds=(-8, 8), method="bounded"
            )
            return found.fun

        values = {b: best_scale(b) for b in itertools.product(range(-2, 3), repeat=3) if any(b)}
        assert card.objective.card == pytest.approx(min(values.values()), abs=1e-6)
        naive = tuple(
            np.round(2 * model[-1].coef_[0] / sd * units / np.abs(model[-1].coef_[0] / sd * units).max())
        )
        assert card.objective.naive == pytest.approx(values[naive], abs=1e-6)
        assert card.objective.model == pytest.approx(model[-1].objective_, rel=1e-9)

    @pytest.mark.slow
    @given(seed=st.integers(0, 10_000), max_points=st.integers(1, 12))
    @settings(max_examples=15)
    def test_between_the_model_and_simple_rounding(self, seed, max_points):
        X, y = small_problem(seed)
        model = make_pipeline(MinMaxScaler(), PNormPush(p=2, alpha=0.1)).fit(X, y)
        card = round_scorecard(model, X, y, max_points=max_points)
        assert card.objective.model - 1e-7 <= card.objective.card <= card.objective.naive
        assert 1 <= np.abs(card.points).max() <= max_points
        assert card.points.dtype.kind == "i"
        assert np.gcd.reduce(card.points) == 1

    def test_no_single_point_would_help(self):
        """Change each point by one, at the best scale for it, by the formula."""
        data = load_breast_cancer()
        X, y, max_points = data.data[:300, :5], data.target[:300], 4
        model = make_pipeline(StandardScaler(), PNormPush(p=4, alpha=0.05)).fit(X, y)
        card = round_scorecard(model, X, y, max_points=max_points)
        Z, sd = model[0].transform(X), model[0].scale_
        units = np.array([nice_unit(s) for s in sd])
        points = np.zeros(5)
        points[[int(name[1:]) for name in card.features]] = card.points
        assert np.abs(points).max() > max_points / 2  # otherwise it was halved, and has other neighbours

        def best_scale(b):
            w = b / units * sd
            search = minimize_scalar(
                lambda s: push_objective(np.exp(s) * w, Z, y, 4, 0.05), bounds=(-8, 6), method="bounded"
            )
            return search.fun

        assert card.objective.card == pytest.approx(best_scale(points), abs=1e-6)
        for j, step in itertools.product(range(5), (1, -1)):
            moved = points.copy()
            moved[j] += step
            if abs(moved[j]) <= max_points:
                assert best_scale(moved) >= card.objective.card - 1e-6

    @pytest.mark.slow
    @pytest.mark.parametrize("part", ["_SCALES", "_PASSES"])
    def test_both_halves_of_the_search_help(self, monkeypatch, part):
        data = load_breast_cancer()
        rows = np.random.default_rng(0).permutation(569)[:300]
        X, y = data.data[rows], data.target[rows]
        model = make_pipeline(StandardScaler(), PNormPush(p=8, alpha=1e-2)).fit(X, y)
        whole = round_scorecard(model, X, y, max_points=2)
        monkeypatch.setattr(rounding, part, {"_SCALES": 1, "_PASSES": 0}[part])
        assert whole.objective.card < round_scorecard(model, X, y, max_points=2).objective.card

    def test_a_common_divisor_is_taken_out(self):
        class Distance(CardObjective):
            """Minimum at the points 4 and 2, whatever the scale."""

            V, signs = np.zeros((1, 2)), None

            def __init__(self):
                pass

            def at(self, scores, points, s):
                return float(np.abs(points - [4, 2]).sum())

            def best(self, points):
                return Rounded(points, 1.0, self.at(None, points, 1.0))

        best = search_points(Distance(), np.array([2.0, 1.0]), 5)
        assert (best.points.tolist(), best.scale, best.value) == ([2, 1], 2.0, 0.0)

    @pytest.mark.slow
    def test_beats_simple_rounding(self, cancer):
        model, X, y = cancer
        cards = [round_scorecard(model, X, y, max_points=k) for k in (3, 5, 10)]
        assert all(card.objective.card < card.objective.naive for card in cards)
        assert cards[0].objective.model == pytest.approx(model[-1].objective_, rel=1e-9)

    @pytest.mark.parametrize(
        "ranker",
        [
            PNormPush(p=8, alpha=0.05, l1_ratio=0.9),
            PNormPush(p=4, alpha=0.05, l1_ratio=1.0),
            PNormPush(p=np.inf, alpha=0.1),
            PNormPush(p=2, alpha=0.1, loss="logistic"),
            IRPush(alpha=0.1),
            LinearRanker("push", Bounded(Ridge(0.1), high=0.0)),
        ],
        ids=["elastic", "lasso", "infinite", "logistic", "ir", "composed"],
    )
    def test_the_objective_is_the_rankers_own(self, cancer, ranker):
        _, X, y = cancer
        model = make_pipeline(StandardScaler(), ranker).fit(X.iloc[:, :6], y)
        card = round_scorecard(model, X.iloc[:, :6], y, max_points=4)
        assert card.objective.model == pytest.approx(model[-1].objective_, rel=1e-6)
        assert card.objective.model * (1 - 1e-6) <= card.objective.card <= card.objective.naive
        dropped = np.array(X.columns[:6])[model[-1].coef_[0] == 0]
        assert not set(dropped) & set(card.features)

    @pytest.mark.parametrize(
        "ranker", [RankBoost(t_max=20), PNormPushCV(ps=[1, 4], alphas=[0.1], cv=2)], ids=["boost", "cv"]
    )
    def test_other_rankers(self, ranker):
        X, y = make_push_example(600, return_X_y=True)
        card = round_scorecard(ranker.fit(X, y), X, y, max_points=5)
        assert metrics.auc(y, card.score(X)) > 0.85
        assert set(card.features) <= {f"x{j}" for j in range(6)}

    @pytest.mark.parametrize(
        "ranker",
        [
            CrucialPairsPush(p=2, alpha=0.1),
            ListwiseRanker(alpha=0.1),
            MonotoneRetargeting(alpha=0.1),
            LinearRanker("retarget", Ridge(0.1)),
        ],
        ids=lambda r: type(r).__name__,
    )
    def test_grades(self, ranker):
        rng = np.random.default_rng(0)
        X, groups = rng.normal(size=(120, 3)), np.repeat(np.arange(12), 10)
        y = np.digitize(X @ [1.0, -0.5, 0.1] + 0.3 * rng.normal(size=120), [0.0, 1.0])
        ranker.fit(X, y, groups=groups)
        card = round_scorecard(ranker, X, y, groups=groups, max_points=3)
        assert card.objective.model == pytest.approx(ranker.objective_, rel=1e-6)
        assert card.objective.card <= card.objective.naive
        loss = card.loss(X, y, groups)
        assert loss["measure"].to_list() == ["ndcg", "ndcg_at_10", "average_precision"]
        assert loss["scorecard"][0] == pytest.approx(metrics.ndcg(y, card.score(X), groups=groups))

    def test_weights_count_as_repetitions(self):
        X, y = small_problem(3)
        weight = np.arange(60) % 3
        model = make_pipeline(StandardScaler(), PNormPush(p=4, alpha=0.1)).fit(X, y)
        weighted = round_scorecard(model, X, y, sample_weight=weight, max_points=4)
        repeated = np.repeat(np.arange(60), weight)
        plain = round_scorecard(model, X[repeated], y[repeated], max_points=4)
        assert weighted.objective.model == pytest.approx(plain.objective.model, rel=1e-9)

    def test_features(self, cancer):
        model, X, y = cancer
        two = round_scorecard(model, X, y, features=2)
        sizes = np.abs(model[-1].coef_[0])
        assert set(two.features) <= set(X.columns[np.argsort(-sizes)[:2]])
        named = round_scorecard(model, X, y, features=["worst area", "mean radius"])
        assert set(named.features) <= {"worst area", "mean radius"}

    @pytest.mark.parametrize("most", [1, 2, np.int64(2)], ids=str)
    def test_so_many_features_even_where_they_are_tied(self, most):
        X, y = small_problem(0)
        X = np.column_stack([X[:, 0]] * 4)
        model = PNormPush(p=2, alpha=0.1).fit(X, y)
        card = round_scorecard(model, X, y, features=most)
        assert card.features == ["x0", "x1"][: int(most)]

    def test_the_collapsed_have_nothing_to_round_by(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(150, 3)), rng.integers(0, 2, 150)
        with pytest.warns(CollapsedWarning):
            model = PNormPush(p=np.inf, alpha=0.1).fit(X, y)
        with pytest.raises(InputError, match="with p=inf equal scores for all these rows are as good"):
            round_scorecard(model, X, y)


class TestWeights:
    @pytest.fixture
    def weighted(self):
        X, y = small_problem(1)
        frame = pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(
            y=pl.Series(y), w=pl.Series(np.arange(60) % 3 + 0.5)
        )
        model = TableRanker.fit(Table(frame), Recipe("y", weight="w"), PNormPush(p=4, alpha=0.1))
        return model, frame

    def test_those_of_the_fit_are_missed(self, weighted):
        model, frame = weighted
        with pytest.warns(
            UserWarning, match=r"if the model was fitted with weights, give them here too"
        ) as caught:
            round_scorecard(model, frame)
        assert "\n" not in str(caught[0].message)

    def test_those_of_the_fit_are_taken(self, weighted):
        model, frame = weighted
        card = round_scorecard(model, frame, sample_weight=frame["w"].to_numpy())
        assert card.objective.model == pytest.approx(model.training["objective"], rel=1e-9)

    def test_other_rows_have_another_objective(self, weighted):
        model, frame = weighted
        assert len(round_scorecard(model, frame[:50]).points)


class TestCard:
    def test_says_what_to_add_up(self, payments):
        model, frame = payments
        card = round_scorecard(model, Table(frame), max_points=5)
        text = str(card)
        assert text.startswith("Add up the points")
        for words in ("of amount (missing: ", "if city is Oslo", "if night"):
            assert words in text
        assert "same" not in text

    def test_scores_follow_the_words(self, payments):
        model, frame = payments
        card = round_scorecard(model, frame, max_points=5)
        points, units = (
            dict(zip(card.features, values.tolist(), strict=True)) for values in (card.points, card.units)
        )
        fill = frame["amount"].median()
        by_hand = [
            points["amount"] * (fill if row["amount"] is None else row["amount"]) / units["amount"]
            + points["night"] * row["night"]
            + points.get(f"city={row['city']}", 0)
            + points.get("amount=missing", 0) * (row["amount"] is None)
            for row in frame.iter_rows(named=True)
        ]
        np.testing.assert_allclose(card.score(Table(frame)), by_hand, rtol=1e-12)
        assert units["amount"] == nice_unit(frame["amount"].fill_null(fill).std())

    def test_equal_points_are_ties(self):
        """Sums of fifths and tenths are exactly tied although their floating-point sums differ."""
        rng = np.random.default_rng(0)
        X = rng.integers(0, 40, size=(300, 3)) * np.array([1.0, 1.0, 1.0])
        y = (X @ [1.0, 1.0, 0.5] + rng.normal(0, 9, 300) > 55).astype(int)
        card = round_scorecard(PNormPush(p=2, alpha=0.01).fit(X, y), X, y, max_points=3)
        exact = sum(
            int(p) * X[:, int(name[1:])].astype(int) * (1000 // int(u))
            for p, u, name in zip(card.points, card.units, card.features, strict=True)
        )
        assert len(np.unique(card.score(X))) == len(np.unique(exact)) < 300

    def test_frame_and_markdown(self, payments):
        model, frame = payments
        card = round_scorecard(model, frame, max_points=5)
        table = card.to_frame()
        assert table.columns == ["feature", "points", "unit", "rule"]
        assert table.filter(pl.col("feature") == "night")["unit"].to_list() == [None]
        lines = card.to_markdown().splitlines()
        assert len(lines) == 2 + len(card.points)
        assert lines[2].startswith(f"| {card.points[0]:+d} | ")

    def test_names_of_two_lines_stay_on_one(self):
        X, y = small_problem(0)
        model = PNormPush(p=2, alpha=0.1).fit(X, y)
        card = round_scorecard(model, X, y, feature_names=["a\nb", "c\r\nd", "e"])
        assert len(card.to_markdown().splitlines()) == 2 + len(card.points)
        assert len(str(card).splitlines()) == 1 + len(card.points)
        assert "of a b" in str(card)

    def test_sql(self, payments):
        model, frame = payments
        card = round_scorecard(model, frame, max_points=5)
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE TABLE t (n INTEGER, amount REAL, city TEXT, night INTEGER)")
            rows = frame.with_row_index("n").select("n", "amount", "city", "night").rows()
            connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
            found = connection.execute(f"SELECT {card.to_sql()} FROM t ORDER BY n").fetchall()
            ranked = connection.execute(card.to_sql(table="t", id="n", dialect="sqlite")).fetchall()
        connection.close()
        scores = card.score(frame)
        np.testing.assert_allclose(np.ravel(found), scores, rtol=1e-9)
        np.testing.assert_allclose([row[1] for row in ranked], np.sort(scores)[::-1], rtol=1e-9)
        assert to_sql(card, table="t", id="n") == card.to_sql(table="t", id="n")

    def test_pipeline_with_columns(self, payments):
        frame = payments[1].to_pandas()
        numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        encode = ColumnTransformer([("n", numbers, ["amount", "night"]), ("c", OneHotEncoder(), ["city"])])
        model = make_pipeline(encode, PNormPush(p=4, alpha=1e-2)).fit(frame, frame["fraud"])
        card = round_scorecard(model, frame, frame["fraud"], max_points=5)
        same = round_scorecard(model, frame, frame["fraud"].map({0: 0, 1: 1}).to_list(), max_points=5)
        assert str(card) == str(same)
        assert card.objective.model == pytest.approx(model[-1].objective_, rel=1e-9)
        np.testing.assert_array_equal(card.score(frame), card.score(pl.DataFrame(frame)))
        assert "if city is Oslo" in str(card)


class TestLoss:
    def test_before_and_after_on_other_rows(self, cancer):
        _, X, y = cancer
        model = make_pipeline(StandardScaler(), PNormPush(p=8, alpha=1e-2)).fit(X[::2], y[::2])
        card = round_scorecard(model, X[::2], y[::2], max_points=3)
        table = card.loss(X[1::2], y[1::2], n_resamples=200)
        assert table.columns == ["measure", "model", "scorecard", "difference", "low", "high"]
        before, after = model.decision_function(X[1::2]), card.score(X[1::2])
        assert table["measure"].to_list() == [
            "auc",
            "partial_auc_0.1",
            "precision_at_50",
            "average_precision",
        ]
        for row in table.iter_rows(named=True):
            values = [metrics.evaluate(y[1::2], s, row["measure"])[row["measure"]] for s in (before, after)]
            assert [row["model"], row["scorecard"]] == pytest.approx(values)
            assert row["difference"] == pytest.approx(values[1] - values[0])
            assert row["low"] <= row["high"]
        assert (table["low"] < table["high"]).any()

    def test_without_rows_those_of_rounding(self, payments):
        model, frame = payments
        card = round_scorecard(model, Table(frame), max_points=5, measures=["auc"])
        inside, given = card.loss(n_resamples=50), card.loss(Table(frame), n_resamples=50)
        assert inside.equals(given)
        assert inside["measure"].to_list() == ["auc"]
        assert inside["model"][0] == pytest.approx(
            metrics.auc(frame["fraud"].to_numpy(), model.score(Table(frame)))
        )

    def test_one_measure_by_its_name(self):
        X, y = small_problem(0)
        card = round_scorecard(PNormPush(p=2, alpha=0.1).fit(X, y), X, y, measures="auc")
        assert card.loss(n_resamples=20)["measure"].to_list() == ["auc"]

    @pytest.mark.parametrize("given", ["y", "groups", "sample_weight"])
    def test_answers_without_rows(self, given):
        X, y = small_problem(0)
        card = round_scorecard(PNormPush(p=2, alpha=0.1).fit(X, y), X, y)
        with pytest.raises(InputError, match="give X too"):
            card.loss(**{given: y})

    @pytest.mark.slow
    def test_few_rows_have_no_precision_at_50(self):
        X, y = small_problem(0)
        model = PNormPush(p=2, alpha=0.1).fit(X[:40], y[:40])
        assert "precision_at_50" not in round_scorecard(model, X[:40], y[:40]).loss()["measure"]

    def test_sparse_rows(self):
        X, y = small_problem(0)
        model = PNormPush(p=2, alpha=0.1).fit(X, y)
        card, same = (round_scorecard(model, rows, y, measures=["auc"]) for rows in (X, sparse.csr_array(X)))
        assert str(card) == str(same)
        assert card.loss(n_resamples=20).equals(same.loss(sparse.csr_array(X), y, n_resamples=20))

    def test_labels_by_name(self):
        X, y = small_problem(0)
        words = np.where(y == 1, "yes", "no")
        model = PNormPush(p=2, alpha=0.1).fit(X, words)
        card = round_scorecard(model, X, words, measures=["auc"])
        assert card.loss(n_resamples=20)["scorecard"][0] == pytest.approx(metrics.auc(y, card.score(X)))


@pytest.mark.parametrize("spread", np.geomspace(1e-7, 1e7, 40), ids=lambda s: f"{s:.3g}")
def test_units_are_near_and_nice(spread):
    unit = nice_unit(spread)
    digits = f"{unit:.15e}".split("e")[0].rstrip("0").rstrip(".")
    assert digits in ("1", "2", "5")
    assert 1 / np.sqrt(2.5) <= unit / spread <= np.sqrt(2.5)


class TestFaults:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"max_points": 0}, "`max_points` must be a whole number"),
            ({"max_points": 2.5}, "`max_points` must be a whole number"),
            ({"features": 0}, "`features` must be a whole number of at least 1"),
            ({"features": True}, "`features` must be a whole number of at least 1, got True"),
            ({"max_points": True}, "`max_points` must be a whole number of at least 1, got True"),
            ({"features": ["height"]}, "has no feature 'height'"),
            ({"measures": ["accuracy"]}, "unknown measure 'accuracy'"),
        ],
    )
    def test_options(self, options, words):
        X, y = small_problem(0)
        model = PNormPush(p=2, alpha=0.1).fit(X, y)
        with pytest.raises(InputError, match=words):
            round_scorecard(model, X, y, **options)

    def test_rows(self):
        X, y = small_problem(0)
        model = PNormPush(p=2, alpha=0.1).fit(X, y)
        with pytest.raises(InputError, match="y is missing"):
            round_scorecard(model, X)
        with pytest.raises(InputError, match="X has 60 rows, y 59"):
            round_scorecard(model, X, y[:-1])
        with pytest.raises(InputError, match="does not know: it knows"):
            round_scorecard(model, X, y + 1)
        with pytest.raises(InputError, match="nothing to round"):
            round_scorecard(model, np.ones((60, 3)), y)
        with pytest.raises(InputError, match="column 'x1' has no value in row 3"):
            round_scorecard(model, np.where(np.arange(180).reshape(60, 3) == 7, np.nan, X), y)

    def test_no_objective_of_labels(self):
        rng = np.random.default_rng(0)
        X, groups = rng.normal(size=(40, 2)), np.repeat(np.arange(4), 10)
        y = (X[:, 0] > 0) + 0
        ranker = PublishedRetargeting(max_alternations=2, alpha=0.1).fit(X, y, groups=groups)
        with pytest.raises(
            InputError, match="PublishedRetargeting cannot become a scorecard: it has no objective of labels"
        ):
            round_scorecard(ranker, X, y, groups=groups)

    def test_frames_lack_columns(self, cancer):
        model, X, y = cancer
        card = round_scorecard(model, X, y, max_points=2)
        with pytest.raises(InputError, match="the table has no column"):
            card.score(pd.DataFrame({"other": [1.0]}))


def test_rows_with_equal_points_on_paper_are_tied():
    """Decimal fractions reach the same points in many ways, which floating-point rounding would distinguish."""
    rng = np.random.default_rng(0)
    U = rng.integers(-3000, 3000, size=(4000, 3)) / 1000
    whole = np.rint(1000 * U).astype(int) @ np.array([3, 2, -7])
    points = add_up(U, np.array([3, 2, -7]), np.ones(3))
    assert len(np.unique(points)) == len(np.unique(whole))
    np.testing.assert_array_equal(points, whole / 1000)
