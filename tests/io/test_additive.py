"""Additive rankers of tables: contributions of columns, monotone columns by name, values not seen in training."""

import numpy as np
import polars as pl
import pytest

import apexrank
from apexrank import AdditiveRanker, AdditiveRetargeting
from apexrank.errors import InputError
from apexrank.io import Recipe, Table, TableRanker


def frame(n=400, seed=0):
    rng = np.random.default_rng(seed)
    amount, hour = rng.gamma(2.0, 50.0, n).round(2), rng.integers(0, 24, n).astype(float)
    city = rng.choice(["Lima", "Oslo", "Rome"], n)
    risk = np.abs(hour - 12) / 6 + np.log1p(amount) / 2 + (city == "Oslo") + rng.logistic(size=n)
    hour = np.where(rng.random(n) < 0.1, np.nan, hour)
    since = np.datetime64("2024-01-01") + rng.integers(0, 90, n)
    columns = {"amount": amount, "hour": hour, "city": city, "since": since}
    columns["fraud"] = (risk > np.quantile(risk, 0.8)).astype(int)
    return pl.DataFrame(columns).with_columns(pl.col("hour").fill_nan(None))


def fit(table, **options):
    weight = options.pop("weight", None)
    return TableRanker.fit(
        table, Recipe(target="fraud", weight=weight), AdditiveRanker(alpha=0.01, **options)
    )


@pytest.fixture(scope="module")
def table():
    return Table(frame())


def test_what_columns_add_is_exact(table):
    ranker = fit(table, n_pairs=3)
    parts, scores = ranker.contributions(table), ranker.score(table)
    assert parts.shape == (400, 4)
    np.testing.assert_allclose(parts.sum(axis=1) + ranker.estimator.intercept_[0], scores, atol=1e-12)
    assert not ranker.is_linear
    with pytest.raises(InputError, match="AdditiveRanker has no coefficients: this needs a linear model"):
        _ = ranker.coef
    best = int(parts[0].argmax())
    assert ranker.explain(table)[0][0].startswith(ranker.encoder.columns[best].name)


def test_effects_are_deviations_of_what_columns_add(table):
    ranker = fit(table)
    expected = ranker.contributions(table).std(axis=0)
    effects = ranker.effects(table)
    assert list(effects) == ["amount", "hour", "city", "since"]
    np.testing.assert_allclose(list(effects.values()), expected, rtol=1e-12)
    paired = fit(table, n_pairs=4)
    names = list(paired.effects(table))[4:]
    assert names
    columns = [column.name for column in paired.encoder.columns]
    for name in names:
        first, second = name.split(" × ")
        assert columns.index(first) < columns.index(second)


def test_weights_of_effects_are_repetitions(table):
    times = np.arange(400) % 3
    weighted = Table(table.frame.with_columns(w=pl.Series(times)))
    repeated = Table(table.frame[np.repeat(np.arange(400), times)])
    one, other = fit(weighted, weight="w").effects(weighted), fit(repeated).effects(repeated)
    assert list(one) == list(other)
    np.testing.assert_allclose(list(one.values()), list(other.values()), rtol=1e-3)


@pytest.mark.parametrize("sign", [1, -1])
def test_monotone_columns_are_those_of_the_table(table, sign):
    ranker = fit(table, monotonic_cst={"hour": sign, "amount": 1})
    assert ranker.estimator.monotonic_cst == {"hour": sign, "amount": 1}
    hours = pl.Series(np.linspace(-5, 30, 80))
    row = table.frame[:1].select(pl.exclude("hour"))
    scores = ranker.score(Table(pl.concat([row] * 80).with_columns(hour=hours)))
    assert (sign * np.diff(scores) >= -1e-12).all()
    free = fit(table).score(Table(pl.concat([row] * 80).with_columns(hour=hours)))
    assert np.diff(free).min() < 0 < np.diff(free).max()  # night and day


@pytest.mark.parametrize("name", ["city", "nope", "fraud"])
def test_other_columns_cannot_be_monotone(table, name):
    estimator = AdditiveRanker(alpha=0.1, monotonic_cst={name: 1})
    with pytest.raises(InputError, match=f"`monotonic_cst` .* column '{name}'"):
        TableRanker.fit(table, Recipe(target="fraud"), estimator)


def test_dates_may_be_monotone(table):
    ranker = fit(table, monotonic_cst={"since": 1})
    assert (np.diff(ranker.estimator.shapes_[3].values) >= 0).all()


def test_values_that_training_had_not(table):
    ranker = fit(table, n_pairs=2)
    rows = table.frame[:1]
    rows = pl.concat([rows] * 5).with_columns(
        city=pl.Series(["Lima", "Oslo", "Rome", "Paris", None]), amount=pl.Series([1e9] * 5)
    )
    found = ranker.contributions(Table(rows))
    # an unknown city is an average one, and beyond the last knot the curve is flat
    assert found[3, 2] == found[4, 2] == 0
    largest = table.frame["amount"].max()
    again = ranker.contributions(Table(rows.with_columns(amount=pl.lit(largest))))
    np.testing.assert_allclose(found, again, atol=1e-12)


def test_grades():
    """Numbers are scaled within queries, categories and missing values are taken as they are."""
    table = frame().with_columns(query=pl.int_range(400) // 20).drop("since")
    recipe = Recipe(target="fraud", graded=True, groups="query", scale="query", categorical=["city"])
    estimator = AdditiveRetargeting(alpha=0.1, monotonic_cst={"amount": 1})
    ranker = TableRanker.fit(Table(table), recipe, estimator)
    parts, scores = ranker.contributions(table), ranker.score(table)
    assert np.ptp(parts.sum(axis=1) - scores) < 1e-9
    assert list(ranker.effects(Table(table))) == ["amount", "hour", "city"]
    assert ranker.estimator.shapes_[0].knots[[0, -1]].tolist() == [0.0, 1.0]
    assert ranker.estimator.shapes_[1].missing_count == table["hour"].null_count()
    low, high = (pl.col("amount").min().over("query"), pl.col("amount").max().over("query"))
    unit = table.with_columns(amount=(pl.col("amount") - low) / (high - low))
    np.testing.assert_allclose(ranker.score(unit), scores, atol=1e-12)
    strict = Recipe(target="fraud", graded=True, groups="query", categorical=["city"], impute="none")
    with pytest.raises(InputError, match="column 'hour': the value is missing"):
        TableRanker.fit(Table(table), strict, estimator)


@pytest.mark.parametrize("option", [{"scale": "minmax"}, {"impute": "median"}, {"impute": "mean"}], ids=str)
def test_columns_are_taken_as_they_are(table, option):
    with pytest.raises(InputError, match="`scale` and `impute`"):
        TableRanker.fit(table, Recipe(target="fraud", **option), AdditiveRanker(alpha=0.1))


def test_rare_levels_share_an_effect_with_unknown_ones(table):
    words = pl.when(pl.int_range(400) < 12).then(pl.format("rare {}", pl.int_range(400))).otherwise("city")
    given = table.frame.with_columns(city=words)
    ranker = fit(Table(given))
    rows = pl.concat([given[:1]] * 3).with_columns(city=pl.Series(["rare 7", "Paris", None]))
    known, unknown, missing = ranker.contributions(rows)[:, 2]
    assert known == unknown != 0
    assert missing == 0


def test_a_category_without_values(table, tmp_path):
    """As in the early part of a table whose column came later; all other text counts as missing."""
    given = table.frame.with_columns(query=pl.int_range(400) // 20, void=pl.lit(None, pl.String))
    recipe = Recipe(target="fraud", graded=True, groups="query", categorical=["city", "void"], drop=["since"])
    ranker = TableRanker.fit(given, recipe, AdditiveRetargeting(alpha=0.1))
    apexrank.save(ranker, tmp_path / "model.apex")
    later = given.with_columns(void=pl.lit("a"))
    assert (apexrank.load(tmp_path / "model.apex").score(later) == ranker.score(given)).all()
    own = AdditiveRanker(alpha=0.1).fit(given[["amount", "void"]], given["fraud"])
    assert np.ptp(own.shapes_[1](np.array([0.0, np.nan]))) == 0
