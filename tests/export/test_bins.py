"""Binned scorecards: points minimise the ranker's objective and are the same in every export format."""

import itertools
from math import floor, log10

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from apexrank import AdditiveRanker, AdditiveRetargeting, metrics, report
from apexrank.errors import InputError
from apexrank.export import BinnedScorecard, round_scorecard, to_onnx
from apexrank.export.bins import best_edges, bin_text, candidate_edges, roundest
from apexrank.io import Table

from .test_additive import fitted, in_onnx, odd, real_table
from .test_sql import scores_in


@pytest.fixture(scope="module")
def card():
    """Card of half of a real table, with missing values and text."""
    frame = real_table().drop("serial")
    return round_scorecard(fitted(frame[::2]), frame[::2])


@pytest.fixture(scope="module")
def frame():
    return real_table().drop("serial")


def by_hand(card, frame):
    """Points of rows, computed from the printed lines."""
    total = np.zeros(len(frame))
    for line in card.to_frame().iter_rows(named=True):
        values = frame[line["feature"]].to_list()
        for i, value in enumerate(values):
            if isinstance(value, float | int):
                low = -np.inf if line["low"] is None else line["low"]
                high = np.inf if line["high"] is None else line["high"]
                hit = not line["bin"].startswith("missing") and low <= value < high
            elif value in (None, "new"):
                hit = line["bin"].startswith("missing")
            else:
                hit = line["bin"] == value
            total[i] += line["points"] * hit
    return total


class TestCard:
    def test_points_of_the_lines_add_up(self, card, frame):
        assert isinstance(card, BinnedScorecard)
        new = odd(frame)
        np.testing.assert_array_equal(card.score(new), by_hand(card, new))
        np.testing.assert_array_equal(card.score(frame[::2]), card.training[1])

    @pytest.mark.parametrize("database", ["sqlite", "duckdb"])
    @pytest.mark.parametrize("own", [False, True], ids=["standard", "own"])
    def test_sql(self, card, frame, database, own):
        new = odd(frame)
        found = scores_in(database, card, new.to_dict(as_series=False), dialect=database if own else None)
        np.testing.assert_allclose(found, card.score(new), rtol=0, atol=1e-9)

    def test_onnx(self, card, frame):
        new = odd(frame)
        found = in_onnx(to_onnx(card), new)
        assert list(found) == ["score"]
        np.testing.assert_array_equal(found["score"], card.score(new))

    def test_lines(self, card):
        lines = card.to_frame()
        assert lines.columns == ["feature", "bin", "points", "low", "high", "share", "rule"]
        assert lines["points"].dtype == pl.Int64
        numbers = lines.filter(pl.col("low").is_not_null() | pl.col("high").is_not_null())
        for (name,), block in numbers.group_by("feature", maintain_order=True):
            assert 2 <= len(block) <= 5, name
            assert block["high"][:-1].to_list() == block["low"][1:].to_list()
            assert (np.diff(block["points"].to_numpy()) != 0).all()
        edges = numbers["low"].drop_nulls().to_list()
        assert len(edges) > 10
        assert all(float(f"{edge:.3e}") == edge for edge in edges)  # four digits at most, of many three
        assert np.mean([float(f"{edge:.2e}") == edge for edge in edges]) > 0.8
        sums = lines.group_by("feature").agg(pl.col("share").sum())["share"]
        np.testing.assert_allclose(sums, 1.0)
        assert "area missing" in str(card)
        assert "kind is it's 50:50" in str(card)

    def test_points_differ_by_less_and_less(self, card):
        points = card.to_frame().group_by("feature", maintain_order=True).agg(pl.col("points"))["points"]
        spans = [max(own) - min(own) for own in points]
        assert spans == sorted(spans, reverse=True)

    def test_page(self, card, tmp_path):
        html = report.build(card, tmp_path / "card.html")
        assert html == (tmp_path / "card.html").read_text()
        assert "it&#39;s 50:50" in html
        assert "http" not in html.replace("http-equiv", "")
        for text in (card.cells[0].text, "Cost of rounding", "Positives by sum of points"):
            assert text in html

    def test_markdown_has_a_line_each(self, card):
        assert len(card.to_markdown().splitlines()) == 2 + len(card.points)


class TestPoints:
    def small(self, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 3, size=(150, 2)).astype(float)
        y = (X[:, 0] + (X[:, 1] == 1) + rng.normal(size=150) > 2).astype(int)
        return X, y

    def objective(self, levels, X, y, alpha=0.05):
        """``LSE(−f) + LSE(f) + alpha/2·Σ M·rises²`` of points for the values 0, 1 and 2 of two columns, best scaled."""
        f = levels[0][X[:, 0].astype(int)] + levels[1][X[:, 1].astype(int)]
        rises = np.concatenate([np.diff(own) for own in levels])

        def at(t):
            s = np.exp(t)
            loss = np.log(np.exp(-s * f[y == 1]).sum()) + np.log(np.exp(s * f[y == 0]).sum())
            return loss + alpha / 2 * 2 * s**2 * rises @ rises

        return minimize_scalar(at, bounds=(-9, 5), method="bounded", options={"xatol": 1e-8}).fun

    def levels(self, card):
        found = np.zeros((2, 3))
        for line in card.to_frame().iter_rows(named=True):
            low, high = int(line["low"] or 0), int(line["high"] or 3)
            found[int(line["feature"][1]), low:high] = line["points"]
        return found

    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_no_single_point_would_help(self, seed):
        X, y = self.small(seed)
        model = AdditiveRanker(p=1, alpha=0.05).fit(X, y)
        card = round_scorecard(model, X, y, max_points=6)
        points = self.levels(card)
        value = self.objective(points, X, y)
        assert card.objective.card == pytest.approx(value, abs=1e-6)
        assert card.objective.card <= card.objective.naive
        for j, k, step in itertools.product(range(2), range(3), (1, -1)):
            moved = points.copy()
            moved[j, k] += step
            rising = [(np.diff(model.shapes_[i].values) >= 0).all() for i in range(2)]
            if any(up and (np.diff(own) < 0).any() for up, own in zip(rising, moved, strict=True)):
                continue
            assert np.abs(moved).max() > 6 or self.objective(moved, X, y) >= value - 1e-6

    @pytest.mark.parametrize(
        "ranker",
        [
            AdditiveRanker(p=4, alpha=0.01),
            AdditiveRanker(alpha=0.01),
            AdditiveRanker(alpha=0.01, monotonic_cst={"radius": -1}),
        ],
        ids=["push", "log loss", "monotone"],
    )
    def test_the_objective_of_the_model_is_its_own(self, ranker):
        table = real_table().drop("serial")
        X, y = table.drop("benign").to_pandas(), table["benign"].to_numpy()
        X["kind"] = X["kind"].astype(object)
        card = round_scorecard(ranker.fit(X, y), X, y)
        assert card.objective.model == pytest.approx(ranker.objective_, rel=1e-9)
        assert card.objective.card <= card.objective.naive
        assert card.score(X).max() > card.score(X).min()

    def test_strengths_of_curves_are_no_penalty_of_points(self):
        X, y = load_breast_cancer(return_X_y=True)
        ranker = AdditiveRanker(n_pairs=0).fit(X[:, :4], y)
        card = round_scorecard(ranker, X[:, :4], y)
        loss = ranker.objective_ - np.sum(ranker.coef_**2) / 2 / len(y)
        assert card.objective.model == pytest.approx(loss, rel=1e-9)

    def test_monotone_models_have_monotone_points(self):
        X, y = load_breast_cancer(return_X_y=True)
        X, wanted = X[:, :4], [-1, -1, 1, -1]
        model = AdditiveRanker(p=2, alpha=1e-3, monotonic_cst=wanted).fit(X, y)
        lines = round_scorecard(model, X, y, max_points=12).to_frame()
        assert lines["feature"].n_unique() >= 3
        for (name,), block in lines.group_by("feature", maintain_order=True):
            rises = np.diff(block["points"].to_numpy()) * wanted[int(name[1:])]
            assert (rises > 0).all(), name

    def test_weights_are_repetitions(self, frame):
        weight = np.arange(len(frame)) % 3
        repeated = frame[np.repeat(np.arange(len(frame)), weight).tolist()]
        model = fitted(repeated)
        a = round_scorecard(model, repeated)
        b = round_scorecard(model, frame, sample_weight=weight)
        assert str(a) == str(b)
        assert a.objective == pytest.approx(b.objective, rel=1e-9)
        np.testing.assert_allclose(a.to_frame()["share"], b.to_frame()["share"], rtol=1e-9)

    def test_loss_on_other_rows(self, card, frame):
        rest = frame[1::2]
        table = card.loss(rest, n_resamples=100)
        y = rest["benign"].to_numpy()
        row = table.row(by_predicate=pl.col("measure") == "auc", named=True)
        assert row["model"] == pytest.approx(metrics.auc(y, card.model.score(Table(rest))))
        assert row["scorecard"] == pytest.approx(metrics.auc(y, card.score(rest)))
        assert row["scorecard"] > row["model"] - 0.01

    def test_grades_and_pipelines(self):
        X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        X = X.iloc[:, :3]
        grades = np.digitize(X.iloc[:, 0], [12, 15])
        groups = np.arange(len(X)) % 20
        ranker = AdditiveRetargeting(alpha=0.1).fit(X, grades, groups=groups)
        card = round_scorecard(ranker, X, grades, groups=groups)
        assert card.loss(n_resamples=20)["measure"].to_list() == ["ndcg", "ndcg_at_10", "average_precision"]
        model = make_pipeline(StandardScaler(), AdditiveRanker(alpha=0.01)).fit(X, y)
        card = round_scorecard(model, X, y, n_bins=3)
        assert card.features[0] in X.columns
        assert report.build(card).count("<figure>") == len(set(card.features))

    def test_columns_are_chosen(self, frame):
        model = fitted(frame)
        assert len(set(round_scorecard(model, frame, features=2).features)) == 2
        assert set(round_scorecard(model, frame, features=["kind"]).features) == {"kind"}

    def test_frame_with_gaps_and_text(self):
        """Without an encoder, a missing number has its own line and an unknown word has none."""
        table = real_table().drop("serial")
        X, y = table.drop("benign").to_pandas(), table["benign"].to_numpy()
        X["kind"] = X["kind"].astype(object)
        card = round_scorecard(AdditiveRanker(alpha=0.01).fit(X, y), X, y)
        assert {"area missing", "kind missing or unknown"} <= set(card.rules())
        new = pd.concat([X.iloc[[3, 3]], X.iloc[[3]].assign(kind="new"), X.iloc[[3]].assign(kind=None)])
        scores = card.score(new)
        assert scores[2] == scores[3] != scores[0]
        np.testing.assert_array_equal(in_onnx(to_onnx(card), pl.DataFrame(new))["score"], scores)

    @pytest.mark.parametrize("has_gaps", [True, False])
    def test_rare_words_of_a_table_have_a_line(self, frame, has_gaps):
        """Unknown words are rare ones, and missing values have no points if training had none."""
        row = pl.int_range(pl.len())
        frame = frame if has_gaps else frame.drop_nulls()
        frame = frame.with_columns(kind=pl.when(row < 12).then(pl.format("rare {}", row)).otherwise("kind"))
        card = round_scorecard(fitted(frame), frame)
        assert "kind other" in card.rules()
        assert ("kind missing" in card.rules()) == has_gaps
        rows = pl.concat([frame[:1]] * 3).with_columns(kind=pl.Series(["rare 5", "new", None]))
        rare, new, missing = card.score(rows)
        assert rare == new != missing
        for database in ("sqlite", "duckdb"):
            found = scores_in(database, card, rows.to_dict(as_series=False))
            np.testing.assert_array_equal(found, [rare, new, missing])
        np.testing.assert_array_equal(in_onnx(to_onnx(card), rows)["score"], [rare, new, missing])

    def test_dates_are_written_as_dates(self, frame):
        days = pl.date_range(pl.date(2020, 1, 1), pl.date(2021, 7, 22), eager=True).alias("day")
        late = pl.Series((np.arange(len(frame)) > 300).astype(int))
        card = round_scorecard(
            fitted(frame.with_columns(days, benign=late)), frame.with_columns(days, benign=late)
        )
        assert any(rule.startswith("day below 2020-") for rule in card.rules())


class TestFaults:
    def test_pairs_are_refused_by_name(self, frame):
        with pytest.raises(
            InputError, match=r"has pairs of them, such as \w+.* and .*: fit it without pairs"
        ):
            round_scorecard(fitted(frame, n_pairs=2), frame)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"n_bins": 0}, "`n_bins` must be a whole number of at least 1, got 0"),
            ({"max_points": 1.5}, "`max_points` must be a whole number"),
            ({"features": ["height"]}, "the model has no feature 'height'"),
            ({"features": 0}, "`features` must be a whole number of at least 1"),
            ({"measures": ["accuracy"]}, "unknown measure 'accuracy'"),
            ({"n_bins": 1, "features": ["radius"]}, "there is nothing to round"),
        ],
    )
    def test_options(self, frame, options, words):
        with pytest.raises(InputError, match=words):
            round_scorecard(fitted(frame), frame, **options)

    def test_rows(self):
        X, y = load_breast_cancer(return_X_y=True)
        model = AdditiveRanker(alpha=0.1).fit(X[:, :2], y)
        with pytest.raises(InputError, match="X has 569 rows, y 568"):
            round_scorecard(model, X[:, :2], y[:-1])


class TestEdges:
    @given(
        values=st.lists(st.integers(0, 6), min_size=3, max_size=12),
        heights=st.lists(st.floats(-3, 3), min_size=7, max_size=7),
        n_bins=st.integers(1, 4),
    )
    @settings(max_examples=60, deadline=None)
    def test_no_other_edges_vary_less(self, values, heights, n_bins):
        x = np.array(values, dtype=float)
        f = np.array(heights)[x.astype(int)]

        def cost(edges):
            bins = np.searchsorted(edges, x, side="right")
            return sum(((f[bins == b] - f[bins == b].mean()) ** 2).sum() for b in np.unique(bins))

        found = best_edges(x, f, np.ones(len(x)), n_bins)
        every = candidate_edges(x, np.ones(len(x)))
        assert len(found) == min(n_bins - 1, len(every))
        least = min(cost(np.array(some)) for some in itertools.combinations(every, len(found)))
        assert cost(found) == pytest.approx(least, abs=1e-9)

    @given(low=st.floats(-1e6, 1e6), width=st.floats(1e-3, 1e6))
    @settings(max_examples=200, deadline=None)
    def test_roundest(self, low, width):
        edge = roundest(low, low + width)
        assert low < edge <= low + width
        assert round(edge, -floor(log10(width) - 1e-9)) == edge  # such a number always lies between

    def test_a_heavy_value_has_a_bin(self):
        x = np.concatenate([np.zeros(900), np.linspace(0.5, 99.5, 100)])
        edges = candidate_edges(x, np.ones(1000))
        assert 0 < edges[0] <= 20
        assert len(edges) > 3

    def test_words(self):
        assert bin_text(1e-5, 0.25) == "1e-05 to 0.25"
        assert bin_text(1200.0, 45000.0, whole=True) == "1200 to 44,999"
        assert bin_text(2004.0, np.inf) == "2004 or more"
        assert bin_text(-np.inf, np.inf) == "any"
