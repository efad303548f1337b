"""Sparse feature matrices of categories with many levels, beside dense ones."""

import sqlite3

import numpy as np
import polars as pl
import pytest
from scipy.sparse import issparse
from sklearn.base import clone

import apexrank
from apexrank import InputError, PNormPush
from apexrank.export import to_sql
from apexrank.io import Recipe, Table, TableRanker, encode, rank_table
from apexrank.io.table_ranker import fit_table
from apexrank.rankers import (
    AdditiveRanker,
    IRPush,
    ListwiseRanker,
    LogisticRanker,
    MonotoneRetargeting,
    PNormPushCV,
    RankBoost,
    TreeRanker,
)


@pytest.fixture(scope="module")
def rows():
    """Two categories of 80 levels, dates, numbers of which some are missing, weights and groups."""
    rng = np.random.default_rng(0)
    n = 1600
    a, b, x = rng.integers(0, 80, n), rng.integers(0, 80, n), rng.normal(size=n).round(3)
    y = (x + (a % 3 == 0) - (b % 5 == 0) + rng.logistic(size=n) > 1).astype(int)
    words = {"a": [f"a{k}" for k in a], "b": [f"b{k}" for k in b]}
    numbers = {"w": rng.integers(0, 3, n), "q": np.arange(n) // 16, "y": y}
    gaps = pl.Series("x", np.where(x < -1.2, np.nan, x)).fill_nan(None)
    return Table(
        pl.DataFrame({**words, "day": ["2024-01-05", "2024-02-17"] * (n // 2), "x": gaps, **numbers})
    )


def recipe(**options):
    return Recipe(
        **{"target": "y", "categorical": ["a", "b"], "impute": "mean", "drop": ["q", "w"], **options}
    )


def both(rows, monkeypatch, estimator, **options):
    """Models of the sparse and of the dense matrix."""
    models = [TableRanker.fit(rows, recipe(**options), clone(estimator))]
    assert models[0].encoder.is_sparse
    with monkeypatch.context() as patch:
        patch.setattr(encode, "MOST_DENSE", 1000)
        return [*models, TableRanker.fit(rows, recipe(**options), clone(estimator))]


IN_QUERIES = {"graded": True, "groups": "q", "drop": ["w", "day"]}


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (PNormPush(p=4, alpha=0.01, tol=1e-10), {"weight": "w", "drop": ["q"]}),
        (PNormPush(p=4, alpha=0.01, l1_ratio=0.5, tol=1e-10), {"scale": "minmax"}),
        (PNormPush(p=2, alpha=0.01, tol=1e-8), {"groups": "q", "drop": ["w"]}),
        (PNormPushCV(cv=2, tol=1e-10), {}),
        (LogisticRanker(alpha=0.01, tol=1e-10), {"scale": "none"}),
        (IRPush(alpha=0.1, tol=1e-8), {}),
        (RankBoost(t_max=30), {}),
        (MonotoneRetargeting(alpha=0.01), IN_QUERIES),
        (ListwiseRanker(loss="listnet", alpha=0.01), IN_QUERIES),
    ],
)
def test_linear_rankers_agree_with_dense_matrices(rows, monkeypatch, tmp_path, estimator, options):
    model, dense = both(rows, monkeypatch, estimator, **options)
    assert issparse(model.features(rows))
    np.testing.assert_allclose(model.coef, dense.coef, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(model.mean, dense.mean, rtol=1e-12, atol=1e-12)
    for some in (rows, Table(rows.frame[:200].with_columns(a=pl.lit("new")))):
        np.testing.assert_allclose(model.score(some), dense.score(some), rtol=1e-5, atol=1e-5)
        parts = (model.features(some).toarray() - model.mean) * model.coef
        expected = np.add.reduceat(parts, model.encoder.starts, axis=1)
        np.testing.assert_allclose(model.contributions(some), expected, rtol=1e-9, atol=1e-12)
    apexrank.save(model, tmp_path / "model.apex")
    ranked = [
        rank_table(m, rows, top=5, explain=True) for m in (model, apexrank.load(tmp_path / "model.apex"))
    ]
    assert ranked[0].equals(ranked[1])


def test_other_models_get_the_dense_matrix(rows, monkeypatch):
    model, dense = both(rows, monkeypatch, MonotoneRetargeting(alpha=0.01), **IN_QUERIES, scale="query")
    assert not issparse(model.features(rows))
    np.testing.assert_array_equal(model.score(rows), dense.score(rows))


@pytest.mark.parametrize("ranker", [TreeRanker(rounds=5), AdditiveRanker(alpha=0.1, n_pairs=3)], ids=str)
def test_columns_are_taken_one_by_one(rows, tmp_path, ranker):
    """Numbers with gaps, days, and levels, as the ranker itself takes them from a frame."""
    frame = rows.frame.with_columns(
        b=pl.when(pl.int_range(1600) % 40 == 0).then(None).otherwise("b"),
        day=pl.col("day").str.to_date().to_physical().cast(float),
    )
    model = TableRanker.fit(rows.frame.with_columns(b=frame["b"]), recipe(impute=None), clone(ranker))
    assert model.encoder.features == ["a", "b", "day", "x"]
    own = clone(ranker).fit(frame.select(model.encoder.features), frame["y"])
    unlike = frame.with_columns(a=pl.lit("new"), x=pl.lit(None, pl.Float64))
    apexrank.save(model, tmp_path / "model.apex")
    for some in (frame, unlike):
        table = some.with_columns(day=pl.col("day").cast(pl.Int32).cast(pl.Date))
        scores = own.decision_function(some.select(model.encoder.features))
        np.testing.assert_array_equal(model.score(table), scores)
        np.testing.assert_array_equal(apexrank.load(tmp_path / "model.apex").score(table), scores)
        parts = model.contributions(table)
        assert parts.shape == (1600, 4)
        assert np.ptp(parts.sum(axis=1) - scores) < 1e-9
    notes = " ".join(model.check(Table(table)))
    assert "'new'" in notes
    assert "column 'x'" in notes
    with pytest.raises(InputError, match=r"leave out `?groups"):
        TableRanker.fit(rows, recipe(impute=None, groups="q"), clone(ranker))
    for options in ({"impute": "mean"}, {"impute": None, "scale": "minmax"}):
        with pytest.raises(InputError, match="`scale` and `impute`"):
            TableRanker.fit(rows, recipe(**options), clone(ranker))


@pytest.mark.parametrize("ranker", [TreeRanker(rounds=2), AdditiveRanker(alpha=0.1)], ids=str)
def test_columns_may_have_many_levels_with_any_name(ranker):
    """As many levels as a category has, one of which names a date."""
    n = 7200
    words = [f"update {k % 1200}" for k in range(n)]
    frame = pl.DataFrame({"c": words, "y": [k % 1200 % 2 for k in range(n)]})
    model = TableRanker.fit(frame, Recipe("y", categorical=["c"]), ranker)
    assert len(model.encoder.columns[0].levels) == 1001
    assert model.score(frame)[:n:1200].tolist() == [model.score(frame)[0]] * 6


def test_the_exported_score(rows):
    model = TableRanker.fit(rows, recipe(drop=["q", "w", "day"]), PNormPush(alpha=0.01))
    connection = sqlite3.connect(":memory:")
    connection.execute("create table data (a, b, x)")
    connection.executemany("insert into data values (?, ?, ?)", rows.frame.select("a", "b", "x").rows())
    scores = [score for (score,) in connection.execute(f"select {to_sql(model)} from data order by rowid")]
    np.testing.assert_allclose(scores, model.score(rows), atol=1e-9)


def test_columns_that_decide_the_target(rows):
    frame = rows.frame.with_columns(
        a=pl.col("a") + pl.col("y").cast(str), leak=pl.col("y") + 0.01 * pl.col("x")
    )
    notes = fit_table(Table(frame.drop_nulls()), recipe(), PNormPush(alpha=0.01))[1].notes
    assert [name for name in ("a", "b", "x", "leak") if f"column {name!r} alone" in " ".join(notes)] == [
        "a",
        "leak",
    ]


def test_values_too_large_to_scale(rows):
    model = TableRanker.fit(rows, recipe(), PNormPush(alpha=0.01))
    large = Table(rows.frame[:3].with_columns(x=pl.Series([1.0, 1.79e308, 0.0])))
    with pytest.raises(InputError, match="row 2: its values are too large"):
        model.score(large)
