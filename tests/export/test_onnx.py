"""Rankers as ONNX graphs: onnxruntime reproduces the ranker's scores."""

import builtins

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import polars as pl
import pytest
import skl2onnx
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from apexrank import (
    CrucialPairsPush,
    IRPush,
    LinearRanker,
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
from apexrank.penalties import Ridge
from apexrank.preprocessing import QueryNormalizer

DOUBLE, SINGLE = (
    1e-12,
    1e-6,
)  # relative to the scale of the scores: sums in double precision, input or scaled values rounded to single


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
    LinearRanker("push", Ridge(1e-2)),
]
GRADED = [
    CrucialPairsPush(p=2, alpha=1.0),
    ListwiseRanker(loss="listnet", alpha=1e-2),
    MonotoneRetargeting(alpha=0.1),
    LinearRanker("retarget", Ridge(0.1)),
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

    @pytest.mark.parametrize("labels", [["bad", "fine"], [-1, 1], [False, True], [3.0, 7.0]], ids=str)
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
        with pytest.raises(InputError, match="SimpleImputer cannot be exported: `add_indicator"):
            to_onnx(model)

    def test_the_best_of_a_search(self, cancer):
        X, y = cancer
        pipeline = make_pipeline(StandardScaler(), PNormPush(alpha=1e-2))
        search = GridSearchCV(pipeline, {"pnormpush__p": [1, 4]}, cv=2).fit(X, y)
        assert_close(run(to_onnx(search, X), {"X": X})["score"], search.decision_function(X), DOUBLE)


def feed(graph, frame):
    """Columns of a frame in the form of the graph's inputs."""
    made = {}
    for one in graph.graph.input:
        values, kind = frame[one.doc_string], one.type.tensor_type.elem_type
        if kind == onnx.TensorProto.STRING:
            words = ["" if pd.isna(value) else str(value) for value in values]
            made[one.name] = np.array(words, object)[:, None]
        else:
            number = np.float64 if kind == onnx.TensorProto.DOUBLE else np.float32
            made[one.name] = values.to_numpy(dtype=number, na_value=np.nan)[:, None]
    return made


STEPS = [
    [],
    [StandardScaler()],
    [MinMaxScaler()],
    [RobustScaler()],
    [MaxAbsScaler()],
    [SimpleImputer(), StandardScaler()],
    ["passthrough", StandardScaler(), None],
    [make_pipeline(StandardScaler(), MinMaxScaler())],
    [StandardScaler(), PolynomialFeatures(2, include_bias=False)],
    [FeatureUnion([("a", StandardScaler()), ("b", MinMaxScaler())])],
    [ColumnTransformer([("a", StandardScaler(), ["b", "a"])], remainder="passthrough")],
    [ColumnTransformer([("a", StandardScaler(), ["k", "a"])])],
    [ColumnTransformer([("a", StandardScaler(), slice(0, 2))], remainder="drop")],
    [ColumnTransformer([("c", OneHotEncoder(), ["k"]), ("a", StandardScaler(), [0, 1])])],
]


class TestFrames:
    """One input per column; sums are in double precision, whatever the steps."""

    def far(self, n=120):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            {"a": 1e6 + rng.normal(size=n), "b": rng.normal(size=n), "k": rng.integers(0, 5, n)}
        )
        return frame, (frame["a"] - 1e6 + frame["k"] + rng.normal(size=n) > 2).to_numpy().astype(int)

    def fitted(self, steps, frame, y):
        model = make_pipeline(*steps, PNormPush(p=3, alpha=0.1)) if steps else PNormPush(p=3, alpha=1e9)
        return model.fit(frame, y)

    @pytest.mark.parametrize("steps", STEPS, ids=[str(j) for j in range(len(STEPS))])
    @pytest.mark.parametrize("single", [(), ("b",)], ids=["doubles", "one of singles"])
    def test_columns_far_from_zero(self, steps, single):
        frame, y = self.far()
        frame = frame.astype(dict.fromkeys(single, np.float32))
        model = self.fitted(steps, frame, y)
        graph = to_onnx(model, frame[:3])
        assert [one.doc_string for one in graph.graph.input] == ["a", "b", "k"]
        out = run(graph, feed(graph, frame))
        assert_close(out["score"], model.decision_function(frame), DOUBLE)
        np.testing.assert_array_equal(out["label"], model.predict(frame))

    @pytest.mark.parametrize("steps", STEPS, ids=[str(j) for j in range(len(STEPS))])
    @pytest.mark.parametrize("rows", [0, 1])
    def test_few_rows(self, steps, rows):
        frame, y = self.far()
        model = self.fitted(steps, frame, y)
        graph = to_onnx(model, frame)
        out = run(graph, feed(graph, frame[:rows]))
        assert (out["score"].shape, out["label"].shape) == ((rows,), (rows,))

    @pytest.mark.parametrize("kind", [np.float64, np.float32])
    def test_no_rows_of_an_array(self, cancer, kind):
        X = cancer[0].astype(kind)
        for model in (PNormPush(alpha=1e-2), make_pipeline(StandardScaler(), PNormPush(alpha=1e-2))):
            graph = to_onnx(model.fit(X, cancer[1]), X)
            assert run(graph, {"X": X[:0]})["score"].shape == (0,)

    @pytest.mark.parametrize("steps", STEPS, ids=[str(j) for j in range(len(STEPS))])
    def test_the_order_of_columns_is_that_of_fit(self, steps):
        frame, y = self.far()
        model = self.fitted(steps, frame, y)
        graph = to_onnx(model, frame[["k", "b", "a"]])
        assert_close(run(graph, feed(graph, frame))["score"], model.decision_function(frame), DOUBLE)

    def test_other_columns_are_refused_by_name(self):
        frame, y = self.far()
        model = self.fitted([StandardScaler()], frame, y)
        with pytest.raises(InputError, match="X has no column 'b', which the model was fitted on"):
            to_onnx(model, frame[["a", "k"]])
        with pytest.raises(InputError, match="X has a column 'z', which the model was not fitted on"):
            to_onnx(model, frame.assign(z=1.0))

    @pytest.mark.parametrize(
        "names",
        [
            ["score", "a b;c", "label"],
            ["X", "model_X", "coef"],
            ["score", "score_input", "add"],
            ["a b", "a_b", "a-b"],
        ],
        ids=lambda names: names[0],
    )
    def test_odd_names(self, names):
        frame, y = self.far()
        frame.columns = names
        for steps in ([], [StandardScaler()], [ColumnTransformer([("a", StandardScaler(), names)])]):
            model = self.fitted(steps, frame, y)
            graph = to_onnx(model, frame)
            out = run(graph, feed(graph, frame))
            assert list(out) == ["label", "score"]
            assert_close(out["score"], model.decision_function(frame), DOUBLE)

    def test_an_empty_name_is_refused(self):
        frame, y = self.far()
        frame.columns = ["a", "", "k"]
        with pytest.raises(InputError, match="a column has an empty name"):
            to_onnx(self.fitted([], frame, y), frame)

    def test_a_frame_for_a_model_of_arrays(self):
        frame, y = self.far()
        model = self.fitted([StandardScaler()], frame.to_numpy(), y)
        graph = to_onnx(model, frame)
        assert_close(
            run(graph, feed(graph, frame))["score"], model.decision_function(frame.to_numpy()), DOUBLE
        )
        with pytest.raises(InputError, match="must have 3 columns"):
            to_onnx(model, frame[["a", "b"]])

    def test_bare_rankers_by_skl2onnx_itself(self):
        register_onnx()
        frame, y = self.far()
        model = self.fitted([], frame, y)
        graph = skl2onnx.to_onnx(model, frame.astype(float)[:1])
        inputs = {name: frame[[name]].to_numpy(dtype=float) for name in frame}
        assert_close(run(graph, inputs)["score"], model.decision_function(frame), DOUBLE)

    def test_nullable_numbers(self):
        frame, y = self.far()
        frame["k"] = frame["k"].astype("Int64")
        frame.loc[::7, "k"] = pd.NA
        model = self.fitted([SimpleImputer(missing_values=pd.NA), StandardScaler()], frame, y)
        graph = to_onnx(model, frame)
        assert_close(run(graph, feed(graph, frame))["score"], model.decision_function(frame), DOUBLE)

    def test_a_column_transformer_in_a_union_is_refused(self):
        frame, y = self.far()
        union = FeatureUnion([("a", ColumnTransformer([("a", StandardScaler(), ["a"])]))])
        with pytest.raises(InputError, match="a ColumnTransformer inside a FeatureUnion"):
            to_onnx(self.fitted([union], frame, y), frame)

    def test_columns_by_name_need_a_frame(self):
        frame, y = self.far()
        model = self.fitted([ColumnTransformer([("a", StandardScaler(), ["a", "k"])])], frame, y)
        for X in (None, frame.to_numpy()):
            with pytest.raises(InputError, match="takes columns by their names: give some rows of a frame"):
                to_onnx(model, X)

    def test_columns_by_place_do_not(self):
        frame, y = self.far()
        step = ColumnTransformer([("a", StandardScaler(), [2, 0])], remainder="passthrough")
        model = self.fitted([step], frame.to_numpy(), y)
        out = run(to_onnx(model), {"X": frame.to_numpy()})
        assert_close(out["score"], model.decision_function(frame.to_numpy()), DOUBLE)

    def test_a_slice_of_names_is_refused(self):
        frame, y = self.far()
        model = self.fitted([ColumnTransformer([("a", StandardScaler(), slice("a", "b"))])], frame, y)
        with pytest.raises(InputError, match="a slice of names cannot be exported"):
            to_onnx(model, frame)

    def test_a_passthrough_inside_a_step_is_refused(self):
        frame, y = self.far()
        inner = make_pipeline("passthrough", StandardScaler())
        model = self.fitted([ColumnTransformer([("a", inner, ["a", "b"])])], frame, y)
        with pytest.raises(InputError, match="a passthrough step inside another step"):
            to_onnx(model, frame)


class TestCategories:
    def fitted(self, values, step=None, dtype=object):
        frame = pd.DataFrame({"c": pd.Series(values, dtype=dtype), "x": np.arange(float(len(values)))})
        y = np.arange(len(values)) % 3 == 0
        encode = ColumnTransformer([("c", step or OneHotEncoder(), ["c"]), ("x", StandardScaler(), ["x"])])
        return make_pipeline(encode, PNormPush(alpha=0.1)).fit(frame, y), frame

    @pytest.mark.parametrize(
        ("values", "dtype"),
        [
            (["a", None, "b", "a", None, "b", "a"], object),
            (["a", np.nan, "b", "a", np.nan, "b", "a"], object),
            ([0.5, np.nan, 2.25, 0.5, np.nan, 2.25, 3.0], float),
            ([1, 2, 3, 2, 1, 3, 2], int),
            ([True, False, True, True, False, False, True], bool),
        ],
        ids=["none", "nan in text", "nan", "whole", "booleans"],
    )
    @pytest.mark.parametrize("drop", [None, "first"])
    def test_values(self, values, dtype, drop):
        model, frame = self.fitted(values, OneHotEncoder(drop=drop), dtype)
        graph = to_onnx(model, frame)
        assert_close(run(graph, feed(graph, frame))["score"], model.decision_function(frame), DOUBLE)

    def test_several_columns_of_numbers_and_text(self):
        rng = np.random.default_rng(2)
        frame = pd.DataFrame(
            {"k": rng.integers(0, 3, 60), "c": rng.choice(["a", "b"], 60), "h": rng.integers(0, 2, 60) / 2}
        )
        frame["c"] = frame["c"].astype(object)
        y = rng.integers(0, 2, 60)
        for columns in (["k", "c", "h"], ["h", "k"]):
            model = make_pipeline(OneHotEncoder(), PNormPush(alpha=0.1)).fit(frame[columns], y)
            graph = to_onnx(model, frame[columns])
            wanted = model.decision_function(frame[columns])
            assert_close(run(graph, feed(graph, frame))["score"], wanted, DOUBLE)

    def test_what_the_encoder_does_not_know(self):
        model, frame = self.fitted(["a", "b", "c", "b", "a", "c"])
        new = frame.assign(c=["a", "z", "", "b", "a", "c"])
        graph = to_onnx(model, frame)
        scores = run(graph, feed(graph, new))["score"]
        assert np.isnan(scores).tolist() == [False, True, True, False, False, False]
        assert_close(scores[3:], model.decision_function(frame)[3:], DOUBLE)
        model, frame = self.fitted(["a", "b", "c", "b", "a", "c"], OneHotEncoder(handle_unknown="ignore"))
        graph = to_onnx(model, frame)
        assert_close(run(graph, feed(graph, new))["score"], model.decision_function(new), DOUBLE)

    def test_what_onnx_cannot_tell_apart_is_refused(self):
        model, frame = self.fitted(["a", "", None, "a", "", None])
        with pytest.raises(
            InputError, match="OneHotEncoder cannot be exported: it knows both a missing and an"
        ):
            to_onnx(model, frame)
        model, frame = self.fitted(["a", np.nan, None, "a", np.nan, None])
        with pytest.raises(
            InputError, match="OneHotEncoder cannot be exported: it treats None and NaN as different"
        ):
            to_onnx(model, frame)
        model, frame = self.fitted(["a", "a", "b", "a", "c"], OneHotEncoder(max_categories=2))
        with pytest.raises(InputError, match="OneHotEncoder cannot be exported: min_frequency"):
            to_onnx(model, frame)


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
        made["score_input"] = made.pop("score")
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
        assert list(out) == ["label", "score"]
        wanted = model.score(Table(new))
        assert_close(out["score"], wanted, DOUBLE)
        np.testing.assert_array_equal(out["label"], wanted > 0)

    def test_single_precision(self):
        frame = self.table().with_columns(pl.col("score") - 1e6, pl.col("visits").cast(pl.Float32))
        frame = frame.with_columns(pl.col("score").cast(pl.Float32))
        model = self.fitted(frame)
        out = run(to_onnx(model, frame), self.inputs(frame, np.float32))
        # Both get the same single-precision values, and all sums are in double precision.
        assert_close(out["score"], model.score(Table(frame)), DOUBLE)

    def test_what_the_table_would_refuse_is_nan(self):
        frame = self.table().drop_nulls()
        model = self.fitted(frame, impute="none")
        inputs = self.inputs(frame)
        inputs["visits"][0] = np.nan
        inputs["city"][1] = ""
        scores = run(to_onnx(model), inputs)["score"]
        assert np.isnan(scores).nonzero()[0].tolist() == [0, 1]

    def test_infinite_values_have_no_score(self):
        model = self.fitted(self.table())
        inputs = self.inputs(self.table()[:4])
        inputs["visits"][:2, 0] = [np.inf, -np.inf]
        inputs["score_input"][2] = np.inf
        out = run(to_onnx(model), inputs)
        assert np.isnan(out["score"]).tolist() == [True, True, True, False]
        assert out["label"][:3].tolist() == [0, 0, 0]

    def test_inputs_give_way_to_outputs_and_say_their_column(self):
        rng = np.random.default_rng(0)
        names = ["score", "label", "score_input", "add", "weight", "intercept"]
        frame = pl.DataFrame({name: rng.normal(size=40) for name in names} | {"y": rng.integers(0, 2, 40)})
        model = TableRanker.fit(Table(frame), Recipe("y"), PNormPush(alpha=0.1))
        graph = to_onnx(model)
        own = {one.doc_string: one.name for one in graph.graph.input}
        assert own == {name: name for name in names} | {"score": "score_input_", "label": "label_input"}
        out = run(graph, {own[name]: frame[name].to_numpy()[:, None] for name in names})
        assert list(out) == ["label", "score"]
        assert_close(out["score"], model.score(Table(frame)), DOUBLE)

    @pytest.mark.parametrize(
        ("known", "written"),
        [
            ([True, False, True, False], ["True", "false", "1", "0"]),
            ([3, 5, 30, 3], ["3.0", "5.", "30.00", "3"]),
            ([1e16, 1e-5, 2.5, 0.1], ["1e+16", "1e-05", "2.5", "0.1"]),
        ],
        ids=["booleans", "whole", "fractions"],
    )
    def test_spellings_of_categories(self, known, written):
        frame = pl.DataFrame({"c": known, "y": [0, 1, 1, 0]})
        model = TableRanker.fit(Table(frame), Recipe("y", categorical=["c"]), PNormPush(alpha=0.1))
        out = run(to_onnx(model), {"c": np.array(written, object)[:, None]})
        assert_close(out["score"], model.score(Table(frame)), DOUBLE)

    def test_an_empty_name_is_refused(self):
        frame = pl.DataFrame({"": [0.0, 1.0, 2.0, 1.5], "y": [0, 1, 1, 0]})
        model = TableRanker.fit(Table(frame), Recipe("y"), PNormPush(alpha=0.1))
        with pytest.raises(InputError, match="a column has an empty name"):
            to_onnx(model)

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
        with pytest.raises(InputError, match="`scale='query'` cannot be exported"):
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

    def test_sparse_rows_have_a_shape(self, cancer):
        X, y = cancer
        model = PNormPush(alpha=1e-2).fit(sparse.csr_array(X), y)
        out = run(to_onnx(model, sparse.csr_array(X)), {"X": X})
        assert_close(out["score"], model.decision_function(X), DOUBLE)
        with pytest.raises(InputError, match="rows of 8 columns"):
            to_onnx(model, sparse.csr_array(X[:, :3]))

    def test_infinite_values_have_no_score(self, cancer):
        X = cancer[0][:4].copy()
        X[:2, 3] = [np.inf, -np.inf]
        graph = to_onnx(PNormPush(alpha=1e-2).fit(*cancer))
        assert np.isnan(run(graph, {"X": X})["score"]).tolist() == [True, True, False, False]

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
