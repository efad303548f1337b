"""Scores as SQL: SQLite and DuckDB reproduce the ranker's scores."""

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
from apexrank.rankers import LogisticRanker, TreeRanker

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
    def test_logistic_regression_is_linear_and_trees_are_not(self, database, cancer):
        X, y = cancer
        ranker = LogisticRanker(alpha=0.1).fit(X, y)
        assert_close(scores_in(database, ranker, X.to_dict("list")), ranker.decision_function(X))
        with pytest.raises(InputError, match="TreeRanker cannot be exported: its scores are sums over trees"):
            to_sql(TreeRanker(rounds=3).fit(X, y))

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

    @pytest.mark.slow
    def test_very_many_columns(self, database):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(6, 1500))
        ranker = PNormPush(alpha=1.0).fit(X, [0, 1, 0, 1, 0, 1])
        names = [f"c{j}" for j in range(1500)]
        found = scores_in(database, ranker, dict(zip(names, X.T, strict=True)), feature_names=names)
        assert_close(found, ranker.decision_function(X))

    @pytest.mark.slow
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
    @pytest.mark.slow
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

    @pytest.mark.slow
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

    def test_pandas_own_gap(self, database, cancer):
        X = cancer[0].copy()
        X.iloc[::5, 2] = np.nan
        model = make_pipeline(SimpleImputer(missing_values=pd.NA), PNormPush(alpha=0.1)).fit(X, cancer[1])
        assert_close(scores_in(database, model, X.to_dict("list")), model.decision_function(X))

    def test_two_kinds_of_gaps_are_refused(self):
        frame = pd.DataFrame({"kind": ["a", None, np.nan, "a", None, "b"]}, dtype=object)
        model = make_pipeline(OneHotEncoder(), PNormPush(alpha=0.1)).fit(frame, [1, 0, 1, 1, 0, 0])
        with pytest.raises(
            InputError, match="OneHotEncoder cannot be exported: it treats None and NaN as different"
        ):
            to_sql(model)

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
            (PolynomialFeatures(), "^PolynomialFeatures cannot be exported: use StandardScaler"),
            (QueryNormalizer(), "^QueryNormalizer cannot be exported: it scales inside each group"),
            (MinMaxScaler(clip=True), "^MinMaxScaler cannot be exported: `clip=True`"),
            (FunctionTransformer(np.log1p), "^FunctionTransformer cannot be exported: its function is code"),
            (SimpleImputer(add_indicator=True), "^SimpleImputer cannot be exported: `add_indicator"),
            (SimpleImputer(missing_values=-1), "^SimpleImputer cannot be exported: missing_values=-1"),
            (OneHotEncoder(max_categories=3), "^OneHotEncoder cannot be exported: min_frequency"),
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

    @pytest.mark.slow
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
        model = self.fitted(frame, impute="none")
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
        model = self.fitted(frame, impute="none")
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
        assert_close(np.array([row[0] for row in rows]), np.sort(ranker.decision_function(X))[::-1])
        assert [row[1] for row in rows] == np.argsort(-ranker.decision_function(X), kind="stable").tolist()

    @pytest.mark.parametrize("name", ["score", "SCORE"])
    def test_a_column_called_score_does_not_decide_the_order(self, database, dialect, name):
        ranker = PNormPush(alpha=0.1).fit([[0.0], [1.0], [2.0]], [0, 0, 1])
        columns = {"x": [2.0, 0.0, 1.0], name: [1.0, 3.0, 2.0]}
        for id in (None, "x"):
            with in_database(database, columns) as connection:
                sql = to_sql(ranker, feature_names=["x"], table="t", id=id, dialect=dialect)
                cursor = connection.execute(sql)
                place = [column[0] for column in cursor.description].index("x")
                assert [row[place] for row in cursor.fetchall()] == [2.0, 1.0, 0.0]

    def test_a_column_left_out_of_the_model_may_be_called_score(self, database):
        table = Table(pl.DataFrame({"x": [0.0, 1.0, 2.0, 1.5], "Score": [1, 2, 3, 4], "fraud": [0, 0, 1, 0]}))
        model = TableRanker.fit(table, Recipe("fraud", drop=["Score"]), PNormPush(alpha=0.1))
        with pytest.raises(InputError, match="has a column 'score' already"):
            to_sql(model, table="t")
        with in_database(database, table.frame.to_dict(as_series=False)) as connection:
            rows = connection.execute(to_sql(model, table="t", id="x")).fetchall()
        assert [row[0] for row in rows] == [2.0, 1.5, 1.0, 0.0]

    def test_a_misspelt_column_is_an_error_in_sqlite(self):
        ranker = PNormPush(alpha=0.1).fit([[0.0], [1.0], [2.0]], [0, 0, 1])
        with in_database("sqlite", {"x": [1.0]}) as connection:
            with pytest.raises(sqlite3.OperationalError, match="no such column"):
                connection.execute(f"SELECT {to_sql(ranker, feature_names=['y'], dialect='sqlite')} FROM t")
            with pytest.raises(sqlite3.OperationalError, match="no such column"):
                connection.execute(to_sql(ranker, feature_names=["y"], table="t"))


class TestNotFinite:
    """NaN and infinities, which the model rejects, have no score and come last."""

    @pytest.fixture
    def ranker(self):
        return PNormPush(alpha=0.1).fit([[0.0, 1.0], [1.0, 2.0], [2.0, 1.0]], [0, 0, 1])

    def test_in_duckdb(self, ranker):
        with duckdb.connect(":memory:") as connection:
            connection.execute("CREATE TABLE t (a DOUBLE, b DOUBLE)")
            values = ["'NaN'", "'inf'", "'-inf'", "NULL", "1"]
            connection.execute(f"INSERT INTO t VALUES {', '.join(f'({value}, 0.5)' for value in values)}")
            sql = to_sql(ranker, feature_names=["a", "b"], table="t", id=["a"], dialect="duckdb")
            rows = connection.execute(sql).fetchall()
        assert [row[0] for row in rows[:1]] == [1.0]
        assert [row[1] for row in rows[1:]] == [None] * 4

    def test_in_sqlite(self, ranker):
        with in_database("sqlite", {"a": [np.inf, -np.inf, None, 1.0], "b": [0.5] * 4}) as connection:
            sql = to_sql(ranker, feature_names=["a", "b"], table="t", id=["a"], dialect="sqlite")
            rows = connection.execute(sql).fetchall()
        assert [row[0] for row in rows[:1]] == [1.0]
        assert [row[1] for row in rows[1:]] == [None] * 3

    def test_infinity_is_no_gap(self):
        frame = pl.DataFrame({"x": [0.0, 1.0, 2.0, None], "fraud": [0, 0, 1, 0]})
        model = TableRanker.fit(Table(frame), Recipe("fraud", impute="mean"), PNormPush(alpha=0.1))
        with duckdb.connect(":memory:") as connection:
            connection.execute("CREATE TABLE t AS SELECT UNNEST(['inf', 'NaN'])::DOUBLE AS x")
            found = connection.execute(f"SELECT {to_sql(model, dialect='duckdb')} FROM t").fetchall()
        assert found[0][0] is None
        assert found[1][0] == pytest.approx(model.score(Table(frame))[3], rel=TOLERANCE)

    @pytest.mark.parametrize("fills", [False, True], ids=["a category", "filled"])
    def test_nan_in_a_column_of_numeric_categories(self, fills):
        values = np.array([0.0, 1.0, np.nan, 1.0, 0.0, np.nan, 1.0, 1.0])
        frame = pd.DataFrame({"floor": values})
        steps = [SimpleImputer(strategy="most_frequent")] if fills else []
        encode = ColumnTransformer([("c", make_pipeline(*steps, OneHotEncoder()), ["floor"])])
        model = make_pipeline(encode, PNormPush(alpha=0.1)).fit(frame, [0, 1, 1, 0, 0, 1, 1, 0])
        with duckdb.connect(":memory:") as connection:
            connection.execute("CREATE TABLE t (floor DOUBLE)")
            connection.execute("INSERT INTO t VALUES ('NaN'), (NULL), (1)")
            found = connection.execute(f"SELECT {to_sql(model, dialect='duckdb')} FROM t").fetchall()
        wanted = model.decision_function(pd.DataFrame({"floor": [np.nan, np.nan, 1.0]}))
        assert_close(np.ravel(found).astype(float), wanted)

    def test_nan_in_a_column_of_a_models_categories(self):
        frame = pl.DataFrame({"x": [1.0, 2.0, 1.0, 2.5], "fraud": [0, 0, 1, 1]})
        model = TableRanker.fit(
            Table(frame), Recipe("fraud", categorical=["x"], impute="none"), PNormPush(alpha=0.1)
        )
        with duckdb.connect(":memory:") as connection:
            connection.execute("CREATE TABLE t AS SELECT UNNEST(['NaN', '9'])::DOUBLE AS x")
            found = connection.execute(f"SELECT {to_sql(model, dialect='duckdb')} FROM t").fetchall()
        assert [row[0] is None for row in found] == [True, False]

    @pytest.mark.parametrize("words", [["NaN", "a"], ["nan", "a"], ["NaN", "nan", "a"], ["a", "b"]], ids=str)
    def test_the_text_nan_is_a_category(self, database, words):
        rng = np.random.default_rng(1)
        frame = pl.DataFrame({"c": [*words, None] * 40, "fraud": rng.random(40 * len([*words, None])) < 0.4})
        model = TableRanker.fit(Table(frame), Recipe("fraud", categorical=["c"]), PNormPush(alpha=0.1))
        values = ["NaN", "nan", "NAN", "a", "", None]
        found = scores_in(database, model, {"c": values}, dialect=database)
        assert_close(found, model.score(Table(pl.DataFrame({"c": values}))))

    def test_the_text_nan_of_an_enum_is_a_category(self):
        frame = pl.DataFrame({"c": ["NaN", "007", "a", None] * 10, "fraud": [1, 0, 0, 0, 1, 1, 0, 0] * 5})
        model = TableRanker.fit(Table(frame), Recipe("fraud", categorical=["c"]), PNormPush(alpha=0.1))
        values = ["NaN", "007", "7", "a"]
        with duckdb.connect(":memory:") as connection:
            connection.execute("CREATE TYPE words AS ENUM ('NaN', '007', '7', 'a')")
            connection.execute(f"CREATE TABLE t AS SELECT UNNEST({values})::words AS c")
            found = connection.execute(f"SELECT {to_sql(model, dialect='duckdb')} FROM t").fetchall()
        assert_close(np.ravel(found), model.score(Table(pl.DataFrame({"c": values}))))


class TestSpellings:
    """Categories of a model file, in any type of the database."""

    def fitted(self, values):
        y = np.arange(len(values)) % 3 == 0
        frame = pl.DataFrame({"c": values, "fraud": y})
        return TableRanker.fit(Table(frame), Recipe("fraud", categorical=["c"]), PNormPush(alpha=0.1))

    def in_type(self, database, model, kind, values, dialect):
        connection = sqlite3.connect(":memory:") if database == "sqlite" else duckdb.connect(":memory:")
        with contextlib.closing(connection):
            connection.execute(f"CREATE TABLE t (n INTEGER, c {kind})")
            connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(values)))
            rows = connection.execute(f"SELECT {to_sql(model, dialect=dialect)} FROM t ORDER BY n").fetchall()
        return np.array([row[0] for row in rows])

    def scores(self, model, values):
        return model.score(Table(pl.DataFrame({"c": values})))

    @pytest.mark.parametrize("kind", ["DECIMAL(10,2)", "DOUBLE PRECISION", "INTEGER", "VARCHAR"])
    def test_whole_numbers(self, database, dialect, kind):
        model = self.fitted([1, 2, 30, 4, 30, 2, 1, 4])
        values = [1, 2, 30, 4, 300]
        found = self.in_type(database, model, kind, values, dialect)
        assert_close(found, self.scores(model, values))

    def test_texts_of_numbers(self, database, dialect):
        known = ["3", "007", "1.50", "-0", "0", "5", "30", "1.5"]
        model = self.fitted(known)
        values = [*known, "3.00", "5.", "30.0", "-0.0", "7", "1.500", "3.01", "300"]
        found = self.in_type(database, model, "VARCHAR", values, dialect)
        assert_close(found, self.scores(model, values))

    def test_fractions_and_powers(self, database):
        known = [0.1, 0.30000000000000004, 1e16, 1e-5, 3.0, 1e15, 123456789.5, -2.5]
        model = self.fitted(known)
        values = [*known, 0.3, 2.5]
        found = self.in_type(database, model, "DOUBLE PRECISION", values, database)
        assert_close(found, self.scores(model, values))

    def test_fractions_in_a_decimal(self):
        model = self.fitted([1.5, 2.25, 3.0, 1.5, 2.25, 3.0])
        found = self.in_type("duckdb", model, "DECIMAL(10,4)", [1.5, 2.25, 3.0, 4.0], "duckdb")
        assert_close(found, self.scores(model, [1.5, 2.25, 3.0, 4.0]))

    def test_long_numbers_are_not_rounded(self, database, dialect):
        known = [2**60, 2**60 + 1, 2**60, 2**60 + 1, 7, 8]
        model = self.fitted(known)
        assert_close(self.in_type(database, model, "BIGINT", known, dialect), self.scores(model, known))

    def test_booleans(self, database, dialect):
        known = [True, False, False, True, True]
        model = self.fitted(known)
        assert_close(self.in_type(database, model, "BOOLEAN", known, dialect), self.scores(model, known))
        numbers = [int(value) for value in known]
        assert_close(self.in_type(database, model, "INTEGER", numbers, dialect), self.scores(model, known))

    def test_dates(self, dialect, database):
        known = ["2024-01-01", "2024-01-02", "7", "2024-01-02"]
        model = self.fitted(known)
        assert_close(self.in_type(database, model, "VARCHAR", known, dialect), self.scores(model, known))
        if database == "duckdb":
            wanted = self.scores(model, known[:2])
            assert_close(self.in_type(database, model, "DATE", known[:2], dialect), wanted)

    def test_postgresql_compares_numbers_too(self):
        sql = to_sql(self.fitted([1.5, 2.5, 1.5]), dialect="postgresql")
        assert 'PG_TYPEOF("c")' in sql
        assert "= 1.5e0" in sql


class TestFaults:
    @pytest.fixture
    def ranker(self):
        return PNormPush(alpha=0.1).fit([[0.0, 1.0], [1.0, 2.0], [2.0, 1.0]], [0, 0, 1])

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({}, "give them as `feature_names`"),
            ({"feature_names": ["a"]}, "has 1 names, the model 2 columns"),
            ({"feature_names": ["a", "a"]}, "has 'a' twice"),
            ({"feature_names": ["a", "b\0"]}, "cannot name anything in SQL"),
            (
                {"feature_names": ["a", "b"], "dialect": "cobol"},
                "unknown `dialect` 'cobol': use one of standard",
            ),
            ({"feature_names": ["a", "b"], "digits": 0}, "`digits` must be a whole number between 1 and 17"),
            (
                {"feature_names": ["a", "b"], "digits": 3.5},
                "`digits` must be a whole number between 1 and 17",
            ),
            (
                {"feature_names": ["a", "b"], "digits": True},
                "`digits` must be a whole number between 1 and 17",
            ),
            ({"feature_names": "ab"}, "`feature_names` must be a list of names"),
            ({"feature_names": ["a", ""]}, "'' cannot name anything in SQL"),
            ({"feature_names": ["a", "A"]}, "'a' and 'A' differ only by case"),
            ({"feature_names": ["a", "Score"], "table": "t"}, "has a column 'score' already"),
            ({"feature_names": ["a", "b"], "table": "t", "id": "SCORE"}, "has a column 'score' already"),
            ({"feature_names": ["a", "score"], "table": "t"}, "has a column 'score' already"),
            ({"feature_names": ["a", "b"], "table": "t", "id": "score"}, "has a column 'score' already"),
        ],
    )
    def test_options(self, ranker, options, words):
        with pytest.raises(InputError, match=words):
            to_sql(ranker, **options)

    def test_names_that_differ_by_case_are_two_in_postgresql(self, ranker):
        sql = to_sql(ranker, feature_names=["a", "A"], dialect="postgresql")
        assert '"a"' in sql
        assert '"A"' in sql

    def test_too_few_digits_for_a_coefficient(self, ranker):
        ranker.coef_ = np.array([[1.79e308, 1.0]])
        assert "1.79e+308" in to_sql(ranker, feature_names=["a", "b"])
        with pytest.raises(InputError, match="cannot be written with `digits=1`: use more"):
            to_sql(ranker, feature_names=["a", "b"], digits=1)

    def test_coefficients_that_are_not_finite(self, ranker):
        ranker.coef_ = np.array([[np.inf, 1.0]])
        with pytest.raises(InputError, match="a coefficient is inf"):
            to_sql(ranker, feature_names=["a", "b"])

    def test_names_of_a_table_are_its_own(self):
        table = Table(pl.DataFrame({"x": [0.0, 1.0, 2.0, 1.5], "fraud": [0, 0, 1, 0]}))
        model = TableRanker.fit(table, Recipe("fraud"), PNormPush(alpha=0.1))
        with pytest.raises(InputError, match="leave out `feature_names`"):
            to_sql(model, feature_names=["x"])

    def test_scaling_inside_groups(self):
        frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "stars": [0, 2, 1, 3], "query": [1, 1, 2, 2]})
        recipe = Recipe("stars", graded=True, groups="query", scale="query")
        model = TableRanker.fit(Table(frame), recipe, ListwiseRanker(alpha=0.1))
        with pytest.raises(InputError, match="`scale='query'` cannot be exported"):
            to_sql(model)
