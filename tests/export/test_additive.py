"""Additive rankers as SQL and ONNX: SQLite, DuckDB and onnxruntime reproduce the ranker's scores."""

import numpy as np
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler

from apexrank import AdditiveRanker, AdditiveRetargeting
from apexrank.errors import InputError
from apexrank.export import to_onnx, to_sql
from apexrank.io import Recipe, Table, TableRanker

from .test_onnx import run
from .test_sql import in_database, scores_in

SAME = 1e-9


def real_table():
    """Breast cancer data with missing values, a text column, and a column far from zero."""
    data = load_breast_cancer(as_frame=True)
    frame = pl.DataFrame(data.data.iloc[:, :6]).rename(lambda name: name.replace("mean ", ""))
    rng = np.random.default_rng(0)
    texture = frame["texture"]
    kind = np.where(texture < 17, "fine", np.where(texture < 21, "it's 50:50", "coarse"))
    return frame.with_columns(
        pl.Series("area", np.where(rng.random(len(frame)) < 0.1, np.nan, frame["area"])).fill_nan(None),
        pl.Series("kind", np.where(rng.random(len(frame)) < 0.08, None, kind).tolist(), dtype=pl.String),
        pl.Series("serial", 1e12 + 50 * frame["radius"].to_numpy()),
        pl.Series("benign", data.target),
    )


def odd(frame):
    """Rows beyond the knots, with missing values and a word not seen in training."""
    row = pl.int_range(pl.len())
    return frame.with_columns(
        pl.col("radius") * 2 - 14,
        pl.when(row % 7 == 3).then(None).otherwise("perimeter").alias("perimeter"),
        pl.when(row % 11 == 5).then(pl.lit("new")).otherwise("kind").alias("kind"),
    )


def fitted(frame, impute=None, **options):
    recipe = Recipe("benign", categorical=["kind"], impute=impute)
    return TableRanker.fit(Table(frame), recipe, AdditiveRanker(p=4, alpha=1e-2, **options))


def in_onnx(graph, frame):
    feed = {}
    for one in graph.graph.input:
        column = frame[one.name]
        if column.dtype == pl.String:
            feed[one.name] = np.array(column.fill_null("").to_list(), object)[:, None]
        else:
            feed[one.name] = column.cast(pl.Float64).fill_null(np.nan).to_numpy()[:, None]
    return run(graph, feed)


@pytest.fixture(params=["sqlite", "duckdb"])
def database(request):
    return request.param


@pytest.fixture(params=["standard", "own"])
def dialect(request, database):
    return database if request.param == "own" else None


@pytest.fixture(scope="module", params=[0, 6], ids=["single", "pairs"])
def table_model(request):
    frame = real_table()
    return fitted(frame, n_pairs=request.param), frame


class TestTables:
    def test_sql(self, table_model, database, dialect):
        model, frame = table_model
        new = odd(frame)
        found = scores_in(database, model, new.to_dict(as_series=False), dialect=dialect)
        np.testing.assert_allclose(found, model.score(Table(new)), rtol=0, atol=SAME)

    def test_onnx(self, table_model):
        model, frame = table_model
        new = odd(frame)
        found = in_onnx(to_onnx(model), new)
        np.testing.assert_allclose(found["score"], model.score(Table(new)), rtol=0, atol=1e-12)
        np.testing.assert_array_equal(found["label"], model.score(Table(new)) > 0)

    @pytest.mark.parametrize("rare", [2, 12], ids=["no other level", "other level"])
    def test_pairs_of_all_kinds_with_rare_words(self, rare):
        """The words of the first rows have no level of their own; of twelve they have one together."""
        frame, row = real_table(), pl.int_range(pl.len())
        sized = pl.when(row % 13 > 0).then((pl.col("area") // 1 % 3 + 1).cast(pl.Int64).cast(pl.String))
        frame = frame.with_columns(
            kind=pl.when(row < rare).then(pl.format("rare {}", row)).otherwise("kind"), size=sized
        )
        recipe = Recipe("benign", categorical=["kind", "size"])
        model = TableRanker.fit(Table(frame), recipe, AdditiveRanker(p=4, alpha=1e-2, n_pairs=100, n_knots=4))
        levels = model.estimator.levels_
        assert (" other" in levels[model.encoder.features.index("kind")]) == (rare == 12)
        kinds = [tuple(j in levels for j in pair.features) for pair in model.estimator.pairs_]
        assert {tuple(sorted(kind)) for kind in kinds} == {(False, False), (False, True), (True, True)}
        new = odd(frame).with_columns(size=pl.when(row % 17 > 0).then("size").otherwise(pl.lit("9")))
        wanted = model.score(Table(new))
        as_numbers = new.with_columns(pl.col("size").cast(pl.Float64))
        np.testing.assert_allclose(model.score(Table(as_numbers)), wanted, rtol=0, atol=SAME)
        for database in ("sqlite", "duckdb"):
            for rows in (new, as_numbers):
                found = scores_in(database, model, rows.to_dict(as_series=False), dialect=database)
                np.testing.assert_allclose(found, wanted, rtol=0, atol=SAME)
        np.testing.assert_allclose(in_onnx(to_onnx(model), new)["score"], wanted, rtol=0, atol=1e-12)

    def test_knots_are_numbers_of_the_table(self):
        frame = real_table()
        sql = to_sql(fitted(frame, n_knots=17))
        radius = set(frame["radius"].to_list())
        bounds = [
            line.split("<")[1].split()[0] for line in sql.splitlines() if '"radius"' in line and "<" in line
        ]
        assert len(bounds) == 17
        assert {float(bound) for bound in bounds} <= radius

    def test_infinite_and_nan(self, database):
        frame = real_table()
        model = fitted(frame)
        with in_database(database, frame[:3].to_dict(as_series=False)) as connection:
            infinite = "9e999" if database == "sqlite" else "CAST('-Infinity' AS DOUBLE)"
            connection.execute(f"UPDATE t SET radius = {infinite} WHERE row_number = 0")
            if database == "duckdb":
                connection.execute("UPDATE t SET area = CAST('NaN' AS DOUBLE) WHERE row_number = 1")
            rows = connection.execute(
                f"SELECT {to_sql(model, dialect=database)} FROM t ORDER BY row_number"
            ).fetchall()
        assert rows[0][0] is None
        new = frame[:3].with_columns(
            pl.when(pl.int_range(3) == (1 if database == "duckdb" else 9))
            .then(None)
            .otherwise("area")
            .alias("area")
        )
        np.testing.assert_allclose([row[0] for row in rows[1:]], model.score(Table(new))[1:], atol=SAME)
        frame = frame.with_columns(
            radius=pl.when(pl.int_range(pl.len()) == 0).then(np.inf).otherwise("radius")
        )
        assert np.isnan(in_onnx(to_onnx(model), frame)["score"]).tolist() == [True] + [False] * (
            len(frame) - 1
        )

    def test_what_the_table_refuses_is_null(self, database):
        frame = real_table().drop_nulls()
        model = fitted(frame, impute="none")
        columns = frame[:4].to_dict(as_series=False)
        columns["area"][0] = None
        columns["kind"][1] = None
        found = scores_in(database, model, columns)
        assert np.isnan(found).tolist() == [True, True, False, False]
        assert (
            np.isnan(in_onnx(to_onnx(model), pl.DataFrame(columns))["score"]).tolist()
            == np.isnan(found).tolist()
        )

    def test_lines_inside_names_and_values(self, database):
        rng = np.random.default_rng(0)
        word = np.array(["a\nb", "a", "x\r\n'  \"y", "u\u2028\x0bv"], object)[rng.integers(0, 4, 300)]
        x = rng.normal(size=300)
        y = rng.random(300) < 1 / (1 + np.exp(-x * np.where(word == "a\nb", 2, -2)))
        frame = pl.DataFrame({"benign": y, "a\n name": x, "kind": word.tolist()})
        model = fitted(frame, n_pairs=1)
        assert len(model.estimator.pairs_) == 1
        found = scores_in(database, model, frame.drop("benign").to_dict(as_series=False))
        np.testing.assert_allclose(found, model.score(Table(frame)), rtol=0, atol=SAME)

    @pytest.mark.parametrize("sigma", [2, 8, 20])
    @pytest.mark.parametrize("n_pairs", [0, 3])
    def test_log_normal_columns(self, sigma, n_pairs):
        """After standardising, most values and knots are a few roundings apart.

        SQLite 3.40 reads about one literal in 5,000 with another last digit, so that it cannot be compared.
        """
        rng = np.random.default_rng(0)
        logs = rng.normal(size=(400, 3))
        y = rng.random(400) < 1 / (1 + np.exp(-logs @ [1, -1, 0.5]))
        frame = pl.DataFrame(np.exp(sigma * logs), schema=["a", "b", "c"]).with_columns(
            pl.when(pl.int_range(pl.len()) % 9 == 4).then(None).otherwise("c").alias("c"), benign=y
        )
        model = TableRanker.fit(Table(frame), Recipe("benign"), AdditiveRanker(alpha=1e-2, n_pairs=n_pairs))
        wanted = model.score(Table(frame))
        found = scores_in("duckdb", model, frame.drop("benign").to_dict(as_series=False))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=SAME)
        np.testing.assert_allclose(in_onnx(to_onnx(model), frame)["score"], wanted, rtol=0, atol=1e-12)

    def test_dates_are_refused(self):
        days = pl.date_range(pl.date(2020, 1, 1), pl.date(2021, 7, 22), eager=True).alias("day")
        frame = real_table().with_columns(days)
        with pytest.raises(InputError, match="column 'day' holds dates"):
            to_sql(fitted(frame))


class TestPipelines:
    def frame(self):
        frame = real_table().drop("serial").to_pandas()
        frame["empty"], frame["same"] = np.nan, 4.0
        frame["kind"] = frame["kind"].astype(object)
        return frame.drop(columns="benign"), frame["benign"]

    def test_frame_with_text_and_gaps(self, database, dialect):
        X, y = self.frame()
        model = AdditiveRanker(p=2, alpha=1e-2, n_pairs=100).fit(X, y)
        assert any(model.shapes_[j].levels for pair in model.pairs_ for j in pair.features)
        new = odd(pl.DataFrame(X))
        wanted = model.decision_function(new.to_pandas())
        found = scores_in(database, model, new.to_dict(as_series=False), dialect=dialect)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=SAME)
        np.testing.assert_allclose(in_onnx(to_onnx(model, X), new)["score"], wanted, rtol=0, atol=1e-12)

    @pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((-1, 3)), RobustScaler()], ids=str)
    def test_scalers(self, database, scaler):
        X, y = load_breast_cancer(as_frame=True, return_X_y=True)
        X, new = X.iloc[:, :5], X.iloc[:, :5] * 1.7 - 5
        model = make_pipeline(scaler, AdditiveRanker(alpha=1e-2, n_pairs=2)).fit(X, y)
        found = scores_in(database, model, new.to_dict("list"))
        np.testing.assert_allclose(found, model.decision_function(new), rtol=0, atol=SAME)
        (score,) = (run(to_onnx(model, X), {n: new[[n]].to_numpy() for n in X.columns})[k] for k in ["score"])
        np.testing.assert_allclose(score, model.decision_function(new), rtol=0, atol=1e-12)

    def test_imputed_and_encoded(self, database):
        X, y = self.frame()
        numbers = make_pipeline(StandardScaler(), SimpleImputer(strategy="mean"))
        words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        encode = ColumnTransformer(
            [("n", numbers, ["radius", "area"]), ("w", words, ["kind"]), ("s", "passthrough", ["area"])]
        )
        model = make_pipeline(encode, AdditiveRanker(alpha=1e-2, n_pairs=3)).fit(X, y)
        new = odd(pl.DataFrame(X)).to_pandas()
        new["kind"] = new["kind"].astype(object).where(new["kind"].notna(), None)
        found = scores_in(database, model, new.to_dict("list"))
        np.testing.assert_allclose(found, model.decision_function(new), rtol=0, atol=SAME)

    def test_array_with_names(self, database):
        X, y = load_diabetes(return_X_y=True)
        grades = np.digitize(y, [100, 200])
        model = AdditiveRetargeting(alpha=0.1).fit(X, grades)
        names = [f"c{j}" for j in range(X.shape[1])]
        found = scores_in(database, model, dict(zip(names, X.T, strict=True)), feature_names=names)
        np.testing.assert_allclose(found, model.predict(X), rtol=0, atol=SAME)
        out = run(to_onnx(model, X), {"X": X})
        assert list(out) == ["score"]
        np.testing.assert_allclose(out["score"], model.predict(X), rtol=0, atol=1e-12)
        with pytest.raises(InputError, match="give them as `feature_names`"):
            to_sql(model)

    def test_close_knots_keep_their_digits(self, database):
        """The function jumps inside an interval of 1e-4 far from zero, and is scaled."""
        rng = np.random.default_rng(0)
        X = 500 + 1e-4 * rng.integers(0, 3, size=(300, 1)) + 40.0 * rng.integers(0, 5, size=(300, 1))
        y = (X[:, 0] % 40 > 20.00005).astype(int) ^ (rng.random(300) < 0.1)
        model = make_pipeline(StandardScaler(), AdditiveRanker(alpha=1e-3)).fit(X, y)
        found = scores_in(database, model, {"x": X[:, 0]}, feature_names=["x"])
        np.testing.assert_allclose(found, model.decision_function(X), rtol=0, atol=SAME)
