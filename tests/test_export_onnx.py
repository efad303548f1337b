"""Rankers as ONNX graphs: what onnxruntime computes is what the ranker computes."""

import builtins

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import polars as pl
import pytest
import skl2onnx
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler

from apexrank import (
    CrucialPairsPush,
    IRPush,
    ListwiseRanker,
    MonotoneRetargeting,
    PNormPush,
    PNormPushCV,
    PushBoost,
    RankBoost,
    TwoStagePush,
    UnknownLinkRegressor,
)
from apexrank.errors import InputError, MissingExtraError
from apexrank.export.onnx import register_onnx, to_onnx
from apexrank.io import Recipe, Table, TableRanker
from apexrank.preprocessing import QueryNormalizer

DOUBLE, SINGLE = (
    1e-12,
    1e-6,
)  # of the scores' scale: sums in doubles; input or scaled values rounded to singles


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:, :8], y


def run(graph, inputs):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def assert_close(found, wanted, tolerance):
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= tolerance * np.abs(wanted).max()


BINARY = [
    PNormPush(p=8, alpha=1e-3),
    PNormPush(p=4, alpha=0.1, l1_ratio=0.9),
    PNormPushCV(ps=[1, 4], alphas=[1e-2], cv=2),
    IRPush(alpha=1e-2),
    RankBoost(t_max=20),
]
GRADED = [
    CrucialPairsPush(p=2, alpha=1e-2),
    ListwiseRanker(loss="listnet", alpha=1e-2),
    MonotoneRetargeting(alpha=0.1),
]


class TestRankers:
    @pytest.mark.parametrize("ranker", BINARY, ids=lambda r: type(r).__name__)
    @pytest.mark.parametrize("kind", [np.float64, np.float32])
    def test_two_classes(self, cancer, ranker, kind):
        X = (cancer[0] / cancer[0].max(axis=0)).astype(kind)
        ranker.fit(X, cancer[1])
        out = run(to_onnx(ranker, X), {"X": X})
        scores = ranker.decision_function(X)
        assert out["score"].dtype == np.float64
        assert_close(out["score"], scores, DOUBLE)  # of singles, too: both add up in doubles
        np.testing.assert_array_equal(out["label"], ranker.predict(X))

    @pytest.mark.parametrize("ranker", GRADED, ids=lambda r: type(r).__name__)
    def test_grades(self, cancer, ranker):
        X = StandardScaler().fit_transform(cancer[0])
        grades = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
        ranker.fit(X, grades, groups=np.arange(len(X)) // 40)
        out = run(to_onnx(ranker), {"X": X})
        assert list(out) == ["score"]
        assert_close(out["score"], ranker.predict(X), DOUBLE)

    @pytest.mark.parametrize("labels", [["bad", "good"], [-1, 1], [False, True], [3.0, 7.0]], ids=str)
    def test_labels(self, cancer, labels):
        X, y = StandardScaler().fit_transform(cancer[0]), np.array(labels)[cancer[1]]
        ranker = PNormPush(alpha=1e-2).fit(X, y)
        out = run(to_onnx(ranker, X), {"X": X})
        assert 0 < np.mean(ranker.predict(X) == y) < 1
        np.testing.assert_array_equal(out["label"], ranker.predict(X))


class TestPipelines:
    @pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()], ids=lambda s: type(s).__name__)
    @pytest.mark.parametrize("kind", [np.float64, np.float32])
    def test_scaled(self, cancer, scaler, kind):
        X = cancer[0].astype(kind)
        model = make_pipeline(scaler, PNormPush(p=8, alpha=1e-2)).fit(X, cancer[1])
        out = run(to_onnx(model, X), {"X": X})
        assert_close(out["score"], model.decision_function(X), DOUBLE if kind is np.float64 else SINGLE)

    def test_skl2onnx_itself_after_registering_twice(self, cancer):
        register_onnx()
        register_onnx()
        X, y = cancer
        model = make_pipeline(StandardScaler(), PNormPush(p=8, alpha=1e-2)).fit(X, y)
        out = run(skl2onnx.to_onnx(model, X[:1]), {"X": X})
        assert_close(out["score"], model.decision_function(X), DOUBLE)

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_columns(self, library):
        rng = np.random.default_rng(0)
        n = 200
        columns = {
            "amount": np.where(rng.random(n) < 0.1, np.nan, rng.normal(100, 30, n)),
            "visits": rng.integers(0, 9, n),
            "city": rng.choice(["Oslo", "Rome", "Bern"], n),
        }
        y = (columns["visits"] + 3 * (columns["city"] == "Oslo") + rng.normal(size=n) > 6).astype(int)
        frame = pd.DataFrame(columns)
        numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        encode = ColumnTransformer(
            [
                ("n", numbers, ["amount", "visits"]),
                ("c", OneHotEncoder(handle_unknown="ignore"), ["city"]),
            ]
        )
        model = make_pipeline(encode, PNormPush(p=4, alpha=1e-2)).fit(frame, y)
        new = frame.copy()
        new.loc[0, "city"] = "Paris"
        inputs = {name: new[[name]].to_numpy() for name in ("amount", "visits")}
        inputs["visits"] = inputs["visits"].astype(float)
        inputs["city"] = new[["city"]].to_numpy().astype(object)
        sample = frame if library == "pandas" else pl.DataFrame(columns)
        assert_close(run(to_onnx(model, sample), inputs)["score"], model.decision_function(new), DOUBLE)

    def test_gaps_in_text_are_filled(self):
        rng = np.random.default_rng(1)
        frame = pd.DataFrame(
            {"city": rng.choice(["Oslo", "Rome", "Bern"], 100, p=[0.6, 0.2, 0.2])}, dtype=object
        )
        y = (frame["city"] == "Oslo").to_numpy() ^ (rng.random(100) < 0.2)
        frame.loc[::7, "city"] = np.nan
        encode = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
        model = make_pipeline(ColumnTransformer([("c", encode, ["city"])]), PNormPush(alpha=0.1)).fit(
            frame, y
        )
        graph = to_onnx(model, frame.fillna(""))
        out = run(graph, {"city": frame.fillna("").to_numpy()})
        assert_close(out["score"], model.decision_function(frame), DOUBLE)

    @pytest.mark.parametrize("kind", [np.float64, np.float32])
    def test_a_number_may_stand_for_a_gap(self, cancer, kind):
        X = cancer[0].astype(kind)
        X[::5, 2] = -1
        imputer = SimpleImputer(missing_values=-1, strategy="mean")
        model = make_pipeline(imputer, StandardScaler(), PNormPush(alpha=1e-2)).fit(X, cancer[1])
        out = run(to_onnx(model, X), {"X": X})
        assert_close(out["score"], model.decision_function(X), DOUBLE if kind is np.float64 else SINGLE)

    def test_indicators_of_gaps_are_refused(self, cancer):
        model = make_pipeline(SimpleImputer(add_indicator=True), PNormPush(alpha=1e-2)).fit(*cancer)
        with pytest.raises(InputError, match="SimpleImputer cannot be exported: add_indicator"):
            to_onnx(model)

    def test_the_best_of_a_search(self, cancer):
        X, y = cancer
        pipeline = make_pipeline(StandardScaler(), PNormPush(alpha=1e-2))
        search = GridSearchCV(pipeline, {"pnormpush__p": [1, 4]}, cv=2).fit(X, y)
        assert_close(run(to_onnx(search, X), {"X": X})["score"], search.decision_function(X), DOUBLE)


class TestTables:
    def table(self):
        rng = np.random.default_rng(3)
        n = 300
        frame = pl.DataFrame(
            {
                "score": rng.normal(1e6, 3.0, n),  # a column of the same name as the output, far from zero
                "visits": rng.integers(0, 9, n),
                "city": rng.choice(["Oslo", "Rome", "Bern"], n),
                "code": rng.choice([1, 2, 30], n),
                "fraud": rng.integers(0, 2, n),
            }
        )
        gap = pl.when(pl.int_range(pl.len()) % 17 == 3).then(None)
        return frame.with_columns(gap.otherwise(pl.col("score")).alias("score"))

    def fitted(self, frame, impute="median"):
        recipe = Recipe("fraud", categorical=["city", "code"], impute=impute)
        return TableRanker.fit(Table(frame), recipe, PNormPush(p=4, alpha=1e-2))

    def inputs(self, frame, kind=np.float64):
        numbers = {name: frame[name].cast(pl.Float64).fill_null(np.nan) for name in ("score", "visits")}
        words = {name: frame[name].cast(pl.String).fill_null("") for name in ("city", "code")}
        made = {name: column.to_numpy().astype(kind)[:, None] for name, column in numbers.items()}
        return made | {name: np.array(column.to_list(), object)[:, None] for name, column in words.items()}

    def test_columns_are_filled_scaled_and_encoded(self):
        frame = self.table()
        model = self.fitted(frame)
        new = frame.with_columns(
            pl.when(pl.int_range(pl.len()) < 2).then(None).otherwise("city").alias("city")
        )
        new = new.with_columns(
            pl.when(pl.int_range(pl.len()) == 5).then(pl.lit("Paris")).otherwise("city").alias("city")
        )
        out = run(to_onnx(model), self.inputs(new))
        assert list(out) == ["label", "score_2"]
        wanted = model.score(Table(new))
        assert_close(out["score_2"], wanted, DOUBLE)
        np.testing.assert_array_equal(out["label"], wanted > 0)

    def test_single_precision(self):
        frame = self.table().with_columns(pl.col("score") - 1e6, pl.col("visits").cast(pl.Float32))
        frame = frame.with_columns(pl.col("score").cast(pl.Float32))
        model = self.fitted(frame)
        out = run(to_onnx(model, frame), self.inputs(frame, np.float32))
        # The same singles go into both, and all sums are in doubles.
        assert_close(out["score_2"], model.score(Table(frame)), DOUBLE)

    def test_what_the_table_would_refuse_is_nan(self):
        frame = self.table().drop_nulls()
        model = self.fitted(frame, impute=None)
        inputs = self.inputs(frame)
        inputs["visits"][0] = np.nan
        inputs["city"][1] = ""
        scores = run(to_onnx(model), inputs)["score_2"]
        assert np.isnan(scores).nonzero()[0].tolist() == [0, 1]

    def test_grades_have_no_label(self):
        frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "stars": [0, 2, 1, 3], "query": [1, 1, 2, 2]})
        recipe = Recipe("stars", graded=True, groups="query")
        model = TableRanker.fit(Table(frame), recipe, ListwiseRanker(alpha=0.1))
        out = run(to_onnx(model), {"x": frame["x"].to_numpy()[:, None]})
        assert list(out) == ["score"]
        assert_close(out["score"], model.score(Table(frame)), DOUBLE)

    def test_scaling_inside_groups_is_refused(self):
        frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "stars": [0, 2, 1, 3], "query": [1, 1, 2, 2]})
        recipe = Recipe("stars", graded=True, groups="query", scale="query")
        model = TableRanker.fit(Table(frame), recipe, ListwiseRanker(alpha=0.1))
        with pytest.raises(InputError, match="--scale query cannot be exported"):
            to_onnx(model)


class TestFilesAndFaults:
    def test_writes_a_file_that_the_checker_takes(self, cancer, tmp_path):
        model = PNormPush(alpha=1e-2).fit(*cancer)
        graph = to_onnx(model, path=tmp_path / "m.onnx", target_opset=15)
        read = onnx.load(tmp_path / "m.onnx")
        onnx.checker.check_model(read, full_check=True)
        assert read == graph
        assert {version.domain: version.version for version in read.opset_import}[""] <= 15

    def test_old_operators_of_tables_are_refused(self):
        table = Table(pl.DataFrame({"x": [0.0, 1.0, 2.0, 1.5], "fraud": [0, 0, 1, 0]}))
        model = TableRanker.fit(table, Recipe("fraud"), PNormPush(alpha=0.1))
        assert to_onnx(model, target_opset=13).opset_import[0].version == 13
        with pytest.raises(InputError, match="at least 13"):
            to_onnx(model, target_opset=9)

    @pytest.mark.parametrize(
        ("ranker", "words"),
        [
            (PushBoost(n_estimators=2), "PushBoost cannot be exported: its rounds"),
            (TwoStagePush(), "TwoStagePush cannot be exported: it ranks twice"),
            (UnknownLinkRegressor(), "UnknownLinkRegressor cannot be exported: its predictions pass"),
            (
                MonotoneRetargeting(kernel="rbf", alpha=0.1),
                "MonotoneRetargeting cannot be exported: with a kernel",
            ),
        ],
        ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
    )
    def test_what_is_not_linear_is_refused_by_name(self, cancer, ranker, words):
        X = StandardScaler().fit_transform(cancer[0])[:100]
        ranker.fit(X, cancer[1][:100])
        with pytest.raises(InputError, match=words):
            to_onnx(ranker)

    def test_steps_that_need_groups_are_refused_by_name(self, cancer):
        model = make_pipeline(QueryNormalizer(), PNormPush(alpha=1e-2)).fit(*cancer)
        with pytest.raises(
            InputError, match="QueryNormalizer cannot be exported: it scales inside each group"
        ):
            to_onnx(model)

    def test_steps_that_skl2onnx_does_not_know(self, cancer):
        class Mine(StandardScaler):
            pass

        model = make_pipeline(Mine(), PNormPush(alpha=1e-2)).fit(*cancer)
        with pytest.raises(InputError, match=r"the pipeline cannot be exported: .*Mine") as caught:
            to_onnx(model)
        assert "\n" not in str(caught.value)

    def test_other_steps_of_skl2onnx_are_taken(self, cancer):
        X, y = cancer
        products = PolynomialFeatures(2, include_bias=False)
        model = make_pipeline(StandardScaler(), products, PNormPush(p=2, alpha=0.1)).fit(X, y)
        assert_close(run(to_onnx(model, X), {"X": X})["score"], model.decision_function(X), DOUBLE)

    def test_rows_of_the_wrong_width(self, cancer):
        model = PNormPush(alpha=1e-2).fit(*cancer)
        with pytest.raises(InputError, match="rows of 8 columns"):
            to_onnx(model, cancer[0][:, :3])

    def test_dates_have_no_type(self, cancer):
        model = PNormPush(alpha=1e-2).fit(*cancer)
        with pytest.raises(InputError, match="no ONNX type"):
            to_onnx(model, np.zeros((2, 8), dtype="datetime64[s]"))

    def test_without_the_packages(self, cancer, monkeypatch):
        real = builtins.__import__

        def without(name, *args, **kwargs):
            if name.split(".")[0] == "skl2onnx":
                raise ImportError(name)
            return real(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", without)
        with pytest.raises(MissingExtraError, match=r"apexrank\[export\]"):
            to_onnx(PNormPush(alpha=1e-2).fit(*cancer))
