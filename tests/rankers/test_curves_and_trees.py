import numpy as np
import pandas as pd
import polars as pl
import pytest

import apexrank
from apexrank import io
from apexrank.rankers import AdditiveRanker, CurvesAndTrees, TreeRanker, trees


@pytest.fixture(scope="module")
def table():
    """A smooth effect, a level, an interaction that no curve shows, and gaps."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=[*"abc"])
    frame["city"] = rng.choice([*"uvw"], 400)
    score = np.sin(2 * frame["a"]) + (frame["city"] == "v") + 2 * (frame["b"] > 0) * (frame["c"] > 0)
    y = (score + rng.logistic(size=400) / 3 > 1.2).to_numpy()
    return frame.mask(rng.random(frame.shape) < 0.1), y


@pytest.fixture(scope="module")
def ranker(table):
    return CurvesAndTrees(rounds=80).fit(*table)


def test_scores_are_the_mean_of_three_log_odds(table, ranker):
    X, y = table
    parts = [AdditiveRanker(), TreeRanker(rounds=80), TreeRanker(rounds=80, extra=True)]
    expected = np.mean([part.fit(X, y).decision_function(X) for part in parts], axis=0)
    np.testing.assert_allclose(ranker.decision_function(X), expected, rtol=1e-12)
    assert (ranker.predict(X) == (expected > 0)).all()


def test_contributions_are_those_of_the_columns_and_of_all_trees(table, ranker):
    X, _ = table
    parts, scores = ranker.contributions(X), ranker.decision_function(X)
    np.testing.assert_allclose(parts[:, :4], ranker.curves_.contributions(X) / 3)
    assert parts.shape == (400, 5)
    assert np.ptp(parts.sum(axis=1) - scores) < 1e-12


def test_the_readable_share_is_that_of_the_variance(table, ranker):
    X, _ = table
    curves = ranker.curves_.decision_function(X)
    scores = curves + ranker.trees_.oof_scores_ + ranker.extra_trees_.oof_scores_
    share = np.mean((curves - curves.mean()) * (scores - scores.mean())) / scores.var()
    assert ranker.readable_share_ == pytest.approx(share)
    constant = CurvesAndTrees(rounds=5).fit(np.ones((40, 1)), np.arange(40) % 2)
    assert constant.readable_share_ == 1
    assert np.ptp(constant.decision_function([[0.0], [2.0]])) == 0


def test_weights_are_repetitions(table):
    X, y = table
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    taken = np.repeat(np.arange(len(y)), weight)
    weighted = CurvesAndTrees(rounds=20).fit(X, y, sample_weight=weight)
    repeated = CurvesAndTrees(rounds=20).fit(X.iloc[taken], y[taken])
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-5)
    assert weighted.readable_share_ == pytest.approx(repeated.readable_share_, abs=1e-5)


def test_scikit_learn_grows_the_trees_where_lightgbm_is_missing(table, monkeypatch):
    monkeypatch.setattr(trees, "find_spec", lambda name: None)
    X, y = table
    ranker = CurvesAndTrees(rounds=80).fit(X, y)
    assert apexrank.metrics.auc(y, ranker.trees_.oof_scores_) > 0.75
    assert (ranker.trees_.decision_function(X) != ranker.extra_trees_.decision_function(X)).any()


def test_a_table_explains_each_row_by_its_columns_and_the_trees(table, tmp_path):
    X, y = table
    frame = X.assign(y=y)
    ranker = io.TableRanker.fit(frame, io.Recipe("y"), CurvesAndTrees(rounds=80))
    apexrank.save(ranker, tmp_path / "m.apex")
    loaded = apexrank.load(tmp_path / "m.apex")
    np.testing.assert_array_equal(loaded.score(frame), ranker.score(frame))
    assert loaded.part_names == ["a", "b", "c", "city", "(trees)"]
    rest = loaded.contributions(frame).sum(axis=1) - loaded.score(frame)
    assert np.ptp(rest) < 1e-12
    parts = loaded.contributions(frame)
    first = [row[0].split("=")[0] if row else None for row in loaded.explain(frame)]
    largest = [loaded.part_names[row.argmax()] if row.max() > 0 else None for row in parts]
    assert first == largest
    assert "(trees)" in first
    assert [*loaded.effects(io.Table(pl.from_pandas(frame)))] == loaded.part_names
