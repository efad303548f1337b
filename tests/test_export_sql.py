"""Scores as SQL: SQLite and DuckDB compute what the ranker computes."""

import contextlib
import sqlite3

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from apexrank import IRPush, ListwiseRanker, PNormPush, PNormPushCV
from apexrank.errors import InputError
from apexrank.export.sql import to_sql
from apexrank.io import Recipe, Table, TableRanker
from apexrank.preprocessing import QueryNormalizer

TOLERANCE = 1e-9
ODD_NAMES = [
    'say "hi"',
    "select",
    "größe (µm)",
    "a`b",
    "semi;colon -- no",
    "it's",
    "x.y",
    "order by",
    "  pad ",
]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def plain(value):
    value = value.item() if isinstance(value, np.generic) else value
    return None if value is None or value != value else value


def kind_of(values):
    kinds = {type(value) for value in values} - {type(None)}
    return "VARCHAR" if kinds == {str} else "BIGINT" if kinds == {int} else "DOUBLE PRECISION"


def in_database(database, columns, table="t"):
    """A connection with a table of the given columns, in row order."""
    connection = sqlite3.connect(":memory:") if database == "sqlite" else duckdb.connect(":memory:")
    columns = {name: [plain(value) for value in values] for name, values in columns.items()}
    spelt = ", ".join(f"{quoted(name)} {kind_of(values)}" for name, values in columns.items())
    connection.execute(f"CREATE TABLE {quoted(table)} (row_number BIGINT, {spelt})")
    rows = list(zip(range(len(next(iter(columns.values())))), *columns.values(), strict=True))
    connection.executemany(
        f"INSERT INTO {quoted(table)} VALUES ({', '.join('?' * (len(columns) + 1))})", rows
    )
    return contextlib.closing(connection)


def scores_in(database, model, columns, **options):
    """Scores in row order, NaN where they are NULL."""
    with in_database(database, columns) as connection:
        sql = to_sql(model, **options)
        rows = connection.execute(f"SELECT {sql} FROM t ORDER BY row_number").fetchall()
    return np.array([np.nan if row[0] is None else row[0] for row in rows])


def assert_close(found, wanted):
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= TOLERANCE * np.abs(wanted).max()


@pytest.fixture(params=["sqlite", "duckdb"])
def database(request):
    return request.param


@pytest.fixture(params=["standard", "own"])
def dialect(request, database):
    return database if request.param == "own" else None


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X = pd.DataFrame(X[:60, :9], columns=ODD_NAMES)
    X["select"] = X["select"].round().astype(int)
    return X, y[:60]


class TestRankers:
    def test_odd_names_and_whole_numbers(self, database, dialect, cancer):
        X, y = cancer
        ranker = PNormPush(p=4, alpha=1e-2).fit(X, y)
        found = scores_in(database, ranker, X.to_dict("list"), dialect=dialect)
        assert_close(found, ranker.decision_function(X))

    @pytest.mark.parametrize(
        "ranker", [IRPush(alpha=0.1), PNormPushCV(ps=[1, 4], alphas=[0.1], cv=2)], ids=["ir", "cv"]
    )
    def test_names_given(self, database, cancer, ranker):
        X, y = cancer
        ranker.fit(X.to_numpy(), y)
        found = scores_in(database, ranker, X.to_dict("list"), feature_names=ODD_NAMES)
        assert_close(found, ranker.decision_function(X.to_numpy()))

    def test_whole_numbers_do_not_divide_as_such(self, database):
        X, y = np.array([[1, 0], [2, 1], [5, 0], [3, 1]]), [0, 0, 1, 1]
        model = make_pipeline(StandardScaler(), PNormPush(alpha=0.5)).fit(X, y)
        found = scores_in(database, model, {"a": X[:, 0], "b": X[:, 1]}, feature_names=["a", "b"])
        assert_close(found, model.decision_function(X))

    def test_negative_zeros(self, database):
        ranker = PNormPush(alpha=0.1).fit([[0.0, 1.0], [1.0, 2.0], [2.0, 1.0]], [0, 0, 1])
        ranker.coef_, ranker.intercept_ = np.array([[-2.0, -0.0]]), np.array([-0.0])
        sql = to_sql(ranker, feature_names=["a", "b"])
        assert sql == '0e0 - 2e0 * CAST("a" AS DOUBLE PRECISION)'
        found = scores_in(database, ranker, {"a": [-0.0, 0.5], "b": [1.0, -0.0]}, feature_names=["a", "b"])
        assert found.tolist() == [0.0, -1.0]

    def test_digits(self, cancer):
        X, y = cancer
        ranker = PNormPush(alpha=1e-2).fit(X, y)
        full, short = (to_sql(ranker, digits=digits) for digits in (17, 3))
        assert len(short) < len(full)
        assert repr(ranker.coef_[0, 0].item()).removeprefix("-") in full

    def test_very_many_columns(self, database):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(6, 1500))
        ranker = PNormPush(alpha=1.0).fit(X, [0, 1, 0, 1, 0, 1])
        names = [f"c{j}" for j in range(1500)]
        found = scores_in(database, ranker, dict(zip(names, X.T, strict=True)), feature_names=names)
        assert_close(found, ranker.decision_function(X))

    @given(
        names=st.lists(
            st.text(
                st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8
            ),
            min_size=2,
            max_size=2,
            unique_by=str.casefold,
        ).filter(lambda names: "row_number" not in map(str.casefold, names)),
        weights=st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3),
    )
    @settings(max_examples=60)
    def test_any_name_and_any_number(self, names, weights):
        ranker = PNormPush(alpha=0.1).fit([[0.0, 1.0], [1.0, 2.0], [2.0, 1.0]], [0, 0, 1])
        ranker.coef_, ranker.intercept_ = np.array([weights[:2]]), np.array(weights[2:])
        X = np.array([[1.5, -2.0], [0.0, 3.0]])
        wanted = ranker.decision_function(X)
        size = np.abs(X) @ np.abs(weights[:2]) + abs(weights[2])
        for dialect in (None, "sqlite"):
            columns = dict(zip(names, X.T, strict=True))
            found = scores_in("sqlite", ranker, columns, feature_names=names, dialect=dialect)
            assert (np.abs(found - wanted) <= 1e-14 * size).all()


class TestPipelines:
    @pytest.mark.parametrize(
        "scaler",
        [
            StandardScaler(),
            StandardScaler(with_mean=False),
            StandardScaler(with_std=False),
            MinMaxScaler((-1, 3)),
            MaxAbsScaler(),
            RobustScaler(),
            RobustScaler(with_centering=False, with_scaling=False),
            "passthrough",
        ],
        ids=[
            "standard",
            "no mean",
            "no std",
            "minmax",
            "maxabs",
            "robust",
            "robust of nothing",
            "passthrough",
        ],
    )
    def test_scalers(self, database, cancer, scaler):
        X, y = cancer
        model = make_pipeline(scaler, PNormPush(p=4, alpha=1e-2)).fit(X, y)
        assert_close(scores_in(database, model, X.to_dict("list")), model.decision_function(X))

    def mixed(self):
        rng = np.random.default_rng(4)
        n = 80
        frame = pd.DataFrame(
            {
                "amount": np.where(rng.random(n) < 0.1, np.nan, rng.normal(100, 30, n)),
                "visits": rng.integers(0, 9, n),
                "floor": rng.integers(0, 4, n),
                'it\'s "where"': rng.choice(["O'slo", "Rome", "Bern"], n),
                "unused": rng.normal(size=n),
                "kind": np.where(rng.random(n) < 0.2, None, rng.choice(["a", "b"], n)),
            }
        )
        frame['it\'s "where"'] = frame['it\'s "where"'].astype(object)
        y = (frame["visits"] + 2 * (frame["floor"] == 2) + rng.normal(size=n) > 5).astype(int)
        return frame, y

    def test_columns(self, database, dialect):
        frame, y = self.mixed()
        encode = ColumnTransformer(
            [
                ("n", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), ["amount"]),
                (
                    "late",
                    make_pipeline(StandardScaler(), SimpleImputer(strategy="mean")),
                    ["visits", "amount"],
                ),
                ("number", OneHotEncoder(drop="first", handle_unknown="ignore", sparse_output=False), [2]),
                (
                    "text",
                    make_pipeline(OneHotEncoder(handle_unknown="ignore"), MaxAbsScaler()),
                    slice('it\'s "where"', 'it\'s "where"'),
                ),
                ("filled", make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["kind"]),
                ("gone", "drop", ["unused"]),
            ]
        )
        model = make_pipeline(encode, PNormPush(p=4, alpha=1e-2))
        frame["kind"] = frame["kind"].where(frame["kind"].notna(), np.nan)
        model.fit(frame, y)
        new = frame.copy()
        new.loc[0, 'it\'s "where"'] = "Paris"
        new.loc[1, "amount"] = np.nan
        found = scores_in(database, model, new.to_dict("list"), dialect=dialect)
        assert_close(found, model.decision_function(new))

    def test_columns_by_masks_selectors_and_remainder(self, database, cancer):
        X, y = cancer
        mask = [True] * 3 + [False] * 6
        encode = ColumnTransformer(
            [
                ("masked", StandardScaler(), mask),
                ("sliced", MinMaxScaler(), slice(3, 5)),
                ("none", StandardScaler(), []),
                ("chosen", RobustScaler(), make_column_selector("x.y")),
            ],
            remainder="passthrough",
        )
        model = make_pipeline(encode, StandardScaler(), PNormPush(p=4, alpha=1e-2)).fit(X, y)
        assert_close(scores_in(database, model, X.to_dict("list")), model.decision_function(X))

    def test_a_gap_may_be_a_category(self, database):
        frame = pd.DataFrame({"kind": ["a", None, "b", "a", None, "b", "a", "b"]}, dtype=object)
        model = make_pipeline(OneHotEncoder(), PNormPush(alpha=0.1)).fit(frame, [1, 0, 1, 1, 0, 0, 0, 1])
        assert_close(scores_in(database, model, frame.to_dict("list")), model.decision_function(frame))

    def test_what_the_model_refuses_is_null(self, database):
        frame = pd.DataFrame({"kind": ["a", "b", "c", "b"] * 3, "x": np.arange(12.0)})
        encode = ColumnTransformer([("c", OneHotEncoder(drop="first"), ["kind"])], remainder="passthrough")
        model = make_pipeline(encode, PNormPush(alpha=0.1)).fit(frame, [1, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 1])
        new = {"kind": ["a", "z", None, "b"], "x": [1.0, 1.0, 1.0, None]}
        found = scores_in(database, model, new)
        assert np.isnan(found).tolist() == [False, True, True, True]
        assert found[0] == pytest.approx(
            model.decision_function(pd.DataFrame({"kind": ["a"], "x": [1.0]}))[0]
        )

    def test_columns_far_from_zero_keep_their_digits(self, database):
        rng = np.random.default_rng(0)
        X = np.column_stack([1e12 + rng.normal(size=80), -1e12 + rng.normal(size=80)])
        y = (X[:, 0] + X[:, 1] + rng.normal(size=80) > 0).astype(int)
        model = make_pipeline(StandardScaler(), PNormPush(alpha=0.1)).fit(X, y)
        found = scores_in(database, model, {"a": X[:, 0], "b": X[:, 1]}, feature_names=["a", "b"])
        assert_close(found, model.decision_function(X))

    @pytest.mark.parametrize(
        ("step", "words"),
        [
            (PolynomialFeatures(), "a PolynomialFeatures cannot be exported: use StandardScaler"),
            (QueryNormalizer(), "a QueryNormalizer cannot be exported: it scales inside each group"),
            (MinMaxScaler(clip=True), "a MinMaxScaler cannot be exported: clip=True"),
            (FunctionTransformer(np.log1p), "a FunctionTransformer cannot be exported: its function is code"),
            (SimpleImputer(add_indicator=True), "a SimpleImputer cannot be exported: add_indicator"),
            (SimpleImputer(missing_values=-1), "a SimpleImputer cannot be exported: missing_values=-1"),
            (OneHotEncoder(max_categories=3), "a OneHotEncoder cannot be exported: min_frequency"),
            (make_pipeline(StandardScaler(), OneHotEncoder()), "is changed before it"),
        ],
        ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
    )
    def test_other_steps_are_refused_by_name(self, cancer, step, words):
        model = make_pipeline(step, PNormPush(alpha=0.1)).fit(cancer[0].abs(), cancer[1])
        with pytest.raises(InputError, match=words):
            to_sql(model)


class TestTables:
    def frame(self):
        rng = np.random.default_rng(3)
        n = 80
        gap = rng.random(n) < 0.1
        return pl.DataFrame(
            {
                "id": [f"{j:03d}" for j in range(n)],
                "amount": pl.Series(np.where(gap, np.nan, rng.normal(50, 9, n))).fill_nan(None),
                "city": rng.choice(["Oslo", "Rome", "Côte d'Or"], n),
                "code": rng.choice([1, 2, 30], n),
                "fraud": rng.integers(0, 2, n),
            }
        )

    def fitted(self, frame, impute="median"):
        recipe = Recipe("fraud", id="id", categorical=["city", "code"], impute=impute)
        return TableRanker.fit(Table(frame), recipe, PNormPush(p=4, alpha=1e-2))

    @pytest.mark.parametrize("codes", [pl.Int64, pl.Float64, pl.String], ids=str)
    def test_as_the_encoder_does(self, database, dialect, codes):
        frame = self.frame()
        model = self.fitted(frame)
        row = pl.int_range(pl.len())
        new = frame.with_columns(
            pl.col("code").cast(codes),
            pl.when(row == 0)
            .then(pl.lit("Paris"))
            .when(row == 1)
            .then(None)
            .when(row == 2)
            .then(pl.lit(" Rome "))
            .when(row == 3)
            .then(pl.lit(""))
            .otherwise("city")
            .alias("city"),
        )
        found = scores_in(database, model, new.to_dict(as_series=False), dialect=dialect)
        assert_close(found, model.score(Table(new)))

    def test_what_the_table_refuses_is_null(self, database):
        frame = self.frame().drop_nulls()
        model = self.fitted(frame, impute=None)
        columns = frame[:6].to_dict(as_series=False)
        columns["amount"][0] = None
        columns["city"][1] = None
        columns["city"][2] = "  "
        found = scores_in(database, model, columns)
        assert np.isnan(found).tolist() == [True, True, True, False, False, False]

    def test_nan_is_a_gap_where_a_database_has_it(self):
        model = self.fitted(self.frame())
        with duckdb.connect(":memory:") as connection:
            connection.execute(
                "CREATE TABLE t AS SELECT CAST('NaN' AS DOUBLE) AS amount, 'Rome' AS city, 2 AS code"
            )
            value = connection.execute(f"SELECT {to_sql(model, dialect='duckdb')} FROM t").fetchone()[0]
        row = Table(
            pl.DataFrame(
                {"amount": [None], "city": ["Rome"], "code": [2]}, schema_overrides={"amount": pl.Float64}
            )
        )
        assert value == pytest.approx(model.score(row)[0], rel=TOLERANCE)

    def test_a_statement_ranks_the_table(self, database, dialect):
        frame = self.frame()
        model = self.fitted(frame, impute="median")
        with in_database(database, frame.to_dict(as_series=False), 'pay "ments"') as connection:
            cursor = connection.execute(to_sql(model, table='pay "ments"', dialect=dialect))
            assert [column[0] for column in cursor.description] == ["id", "score"]
            ranked = cursor.fetchall()
        scores = model.score(Table(frame))
        assert_close(np.array([row[1] for row in ranked]), np.sort(scores)[::-1])
        own = dict(zip(frame["id"], scores, strict=True))
        assert_close(np.array([own[row[0]] for row in ranked]), np.sort(scores)[::-1])

    def test_rows_without_a_score_come_last(self, database):
        frame = self.frame().drop_nulls()
        model = self.fitted(frame, impute=None)
        columns = frame[:3].to_dict(as_series=False)
        columns["amount"][1] = None
        with in_database(database, columns) as connection:
            rows = connection.execute(to_sql(model, table="t", id=["id", "city"], score="points")).fetchall()
        assert [row[2] is None for row in rows] == [False, False, True]
        assert len(rows[0]) == 3

    def test_all_columns_where_there_is_no_id(self, database, cancer):
        X, y = cancer
        ranker = PNormPush(alpha=0.1).fit(X, y)
        with in_database(database, X.to_dict("list")) as connection:
            rows = connection.execute(to_sql(ranker, table="t")).fetchall()
        assert len(rows[0]) == 11
        assert [row[0] for row in rows] == np.argsort(-ranker.decision_function(X), kind="stable").tolist()

    def test_a_misspelt_column_is_an_error_in_sqlite(self):
        ranker = PNormPush(alpha=0.1).fit([[0.0], [1.0], [2.0]], [0, 0, 1])
        with in_database("sqlite", {"x": [1.0]}) as connection:
            with pytest.raises(sqlite3.OperationalError, match="no such column"):
                connection.execute(f"SELECT {to_sql(ranker, feature_names=['y'], dialect='sqlite')} FROM t")
            with pytest.raises(sqlite3.OperationalError, match="no such column"):
                connection.execute(to_sql(ranker, feature_names=["y"], table="t"))


class TestFaults:
    @pytest.fixture
    def ranker(self):
        return PNormPush(alpha=0.1).fit([[0.0, 1.0], [1.0, 2.0], [2.0, 1.0]], [0, 0, 1])

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({}, "give them as feature_names"),
            ({"feature_names": ["a"]}, "has 1 names, the model 2 columns"),
            ({"feature_names": ["a", "a"]}, "has 'a' twice"),
            ({"feature_names": ["a", "b\0"]}, "cannot name anything in SQL"),
            (
                {"feature_names": ["a", "b"], "dialect": "cobol"},
                "unknown dialect 'cobol': use one of standard",
            ),
            ({"feature_names": ["a", "b"], "digits": 0}, "digits must be between 1 and 17"),
            ({"feature_names": ["a", "score"], "table": "t"}, "has a column 'score' already"),
            ({"feature_names": ["a", "b"], "table": "t", "id": "score"}, "has a column 'score' already"),
        ],
    )
    def test_options(self, ranker, options, words):
        with pytest.raises(InputError, match=words):
            to_sql(ranker, **options)

    def test_coefficients_that_are_not_finite(self, ranker):
        ranker.coef_ = np.array([[np.inf, 1.0]])
        with pytest.raises(InputError, match="a coefficient is inf"):
            to_sql(ranker, feature_names=["a", "b"])

    def test_names_of_a_table_are_its_own(self):
        table = Table(pl.DataFrame({"x": [0.0, 1.0, 2.0, 1.5], "fraud": [0, 0, 1, 0]}))
        model = TableRanker.fit(table, Recipe("fraud"), PNormPush(alpha=0.1))
        with pytest.raises(InputError, match="leave out feature_names"):
            to_sql(model, feature_names=["x"])

    def test_scaling_inside_groups(self):
        frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "stars": [0, 2, 1, 3], "query": [1, 1, 2, 2]})
        recipe = Recipe("stars", graded=True, groups="query", scale="query")
        model = TableRanker.fit(Table(frame), recipe, ListwiseRanker(alpha=0.1))
        with pytest.raises(InputError, match="--scale query cannot be exported"):
            to_sql(model)
