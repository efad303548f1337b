"""The model file: bit-identical round trips of every estimator, and refusal of malformed or malicious files."""

import functools
import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier, ExtraTreeRegressor

import apexrank
from apexrank import (
    AdditivePush,
    CrucialPairsPush,
    InputError,
    LpqRank,
    MonotoneRetargeting,
    PageRank,
    PNormPush,
    PNormPushCV,
    PushBoost,
    RankBoost,
    TreeRanker,
    TwoStagePush,
    UnknownLinkRegressor,
)
from apexrank.export import round_scorecard, to_sql
from apexrank.graph import Graph, as_graph
from apexrank.io import ModelFileError, Recipe, Table, TableRanker, rank_table
from apexrank.io.fitted import CLASSES, state_of
from apexrank.preprocessing import QueryNormalizer
from apexrank.prices import Power
from apexrank.rankers import AdditiveRetargeting, LetorRanker, LinearRanker, ListwiseRanker
from tests.io.model_files import DELETED, at, edited, npy, pack, places, unpack
from tests.whole.test_estimator_checks import ESTIMATORS, is_ours

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=60) > 0).astype(int)
LINKS = (RNG.random((12, 12)) < 0.3).astype(float)
LABELS = {
    "TrustRank": {"trusted": [0]},
    "SpamMassRank": {"trusted": [0]},
    "AntiTrustRank": {"distrusted": [0]},
    "DemotedRank": {"trusted": [0], "distrusted": [0]},
}


UNEXPLAINED = ("InDegree", "SpamMassRank", "AntiTrustRank", "DemotedRank", "ConsensusRank")


def kind_of(estimator):
    """The class of the package; the checks of scikit-learn use some subclasses."""
    return next(filter(is_ours, type(estimator).__mro__))


KEPT = {
    kind_of(each).__name__: each for each in ESTIMATORS if kind_of(each).__module__.startswith("apexrank.")
}
KEPT |= {
    "PushBoost of rankers": PushBoost(PNormPush(p=1), n_estimators=3),
    "PushBoost of deep trees": PushBoost(ExtraTreeRegressor(max_depth=4), n_estimators=3, random_state=0),
    "UnknownLinkRegressor, least squares": UnknownLinkRegressor(
        2.0, alpha=0.1, link="least_squares", output_range=(-1.0, np.inf)
    ),
    "LinearRanker, graded": LinearRanker("listnet"),
    "MonotoneRetargeting, kernel": MonotoneRetargeting(kernel="rbf"),
    "MonotoneRetargeting, precomputed": MonotoneRetargeting(kernel="precomputed"),
    "PNormPush, infinite p": PNormPush(np.inf),
    "PNormPush, price": PNormPush(price=Power(2.0)),
    "PNormPush with a scaler": make_pipeline(StandardScaler(), PNormPush()),
    "PNormPush, filled": make_pipeline(SimpleImputer(), MinMaxScaler(), PNormPush()),
    "PNormPush of levels": make_pipeline(OneHotEncoder(handle_unknown="ignore"), PNormPush()),
    "CrucialPairsPush with scalers": make_pipeline(RobustScaler(), MaxAbsScaler(), CrucialPairsPush()),
    "TwoStagePush of pipelines": TwoStagePush(make_pipeline(StandardScaler(), PNormPush(p=1)), RankBoost()),
}


@functools.cache
def fitted(name):
    estimator = KEPT[name]
    kind = type(estimator) if "," in name or " " in name else kind_of(estimator)
    estimator = clone(estimator) if kind is type(estimator) else kind(**estimator.get_params(deep=False))
    if name == "ConsensusRank":
        return estimator.fit([LINKS])
    if ".graph." in kind.__module__:
        return estimator.fit(LINKS, **LABELS.get(name, {}))
    return estimator.fit(rows_for(name), Y)


def rows_for(name):
    return {"MonotoneRetargeting, precomputed": X @ X.T, "PNormPush of levels": np.round(X)}.get(name, X)


def results(model, name):
    """All that a model computes, as arrays."""
    if hasattr(model, "graph_"):
        entries = [model.scores_, model.ranking_]
        if type(model).__name__ not in UNEXPLAINED:
            entries.append([link.flow for link in model.explain(model.top(1)[0][0])])
        return [np.asarray(each) for each in entries]
    methods = ("decision_function", "predict", "transform", "contributions", "predict_interval")
    computed = [getattr(model, method)(rows_for(name)) for method in methods if hasattr(model, method)]
    return [np.asarray(each) for one in computed for each in (one if isinstance(one, tuple) else (one,))]


def saved(model, path):
    apexrank.save(model, path)
    return path.read_bytes()


def same(one, other):
    """Raise unless two values are equal, bit for bit, with all they hold."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(one, BaseEstimator):
        same(one.get_params(deep=False), other.get_params(deep=False))
        same(*({name: state_of(each)[name] for name in sorted(state_of(each))} for each in (one, other)))
    elif hasattr(one, "__dict__") and is_ours(type(one)):
        names = [name for name in vars(one) if name in vars(other)]  # the others are cached
        same({name: vars(one)[name] for name in names}, {name: vars(other)[name] for name in names})
    elif hasattr(one, "__getstate__") and type(one).__name__ == "Tree":
        same(one.__getstate__(), other.__getstate__())
    elif isinstance(one, float):
        np.testing.assert_equal(one, other)
        assert np.signbit(one) == np.signbit(other)
    else:
        assert one == other or one is other


@pytest.mark.parametrize("name", KEPT)
def test_every_estimator_comes_back(name, tmp_path, counted):
    model = fitted(name)
    data = saved(model, tmp_path / "m.apex")
    assert saved(model, tmp_path / "again.apex") == data
    again = apexrank.load(tmp_path / "m.apex")
    same(again, model)
    for one, other in zip(results(again, name), results(model, name), strict=True):
        assert one.tobytes() == other.tobytes()
    assert saved(again, tmp_path / "again.apex") == data
    counted("estimators kept in a model file", 1)


def test_every_estimator_of_the_package_is_listed():
    listed = {name.rpartition(".")[2] for name in CLASSES}
    assert {
        kind_of(each).__name__ for each in ESTIMATORS if kind_of(each).__module__[:9] == "apexrank."
    } <= listed


@pytest.mark.parametrize(
    "name",
    [name for name, each in KEPT.items() if "," not in name and hasattr(each, "decision_function")],
)
@pytest.mark.parametrize("scale", ["standard", "query"])
def test_every_ranker_in_a_table(name, scale, rows, tmp_path):
    grouped = {"groups": "city", "drop": ["when"]} if scale == "query" else {"categorical": ["city"]}
    try:
        before = TableRanker.fit(rows, Recipe(target="y", id="id", scale=scale, **grouped), clone(KEPT[name]))
    except (TypeError, InputError) as error:  # an estimator without groups
        assert "groups" in str(error)  # noqa: PT017
        return
    data = saved(before, tmp_path / "m.apex")
    after = apexrank.load(tmp_path / "m.apex")
    assert after.score(rows).tobytes() == before.score(rows).tobytes()
    if hasattr(before.estimator, "coef_") or hasattr(before.estimator, "contributions"):
        assert after.contributions(rows).tobytes() == before.contributions(rows).tobytes()
    assert after.thresholds.at(0.1) == before.thresholds.at(0.1)
    assert after.encoder.columns == before.encoder.columns
    for part in ("target", "positive", "id", "groups", "weight", "ignored", "training"):
        same(getattr(after, part), getattr(before, part))
    same(after.estimator, before.estimator)
    assert saved(after, tmp_path / "m.apex") == data


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    numbers = rng.normal(size=(120, 2)) * [1e-3, 1e5]
    return Table(
        pl.DataFrame(
            {
                "id": np.arange(120),
                "a": numbers[:, 0],
                "b": [None if i % 9 == 0 else value for i, value in enumerate(numbers[:, 1])],
                "city": np.array(["São Paulo", "a,b", 'q"uote'])[rng.integers(3, size=120)],
                "when": [f"2024-01-{1 + i % 28:02d}" for i in range(120)],
                "y": np.where(numbers[:, 0] * 1e3 + rng.normal(size=120) > 0.5, "yes", "no"),
            }
        )
    )


def fit(rows, estimator, **options):
    recipe = {"target": "y", "id": "id", "categorical": ["city"], **options}
    return TableRanker.fit(rows, Recipe(**recipe), estimator)


@pytest.fixture(scope="module")
def model(rows):
    return fit(rows, PNormPush(8.0, alpha=1e-3))


@pytest.fixture
def file(model, tmp_path):
    apexrank.save(model, tmp_path / "m.apex")
    return tmp_path / "m.apex"


@pytest.mark.parametrize(
    "estimator",
    [
        MonotoneRetargeting(bounds=(0, None)),
        AdditiveRetargeting(alpha=1.0, n_pairs=1, n_knots=5, monotonic_cst={"b": -1}),
        AdditiveRetargeting(n_knots=5, monotonic_cst={0: 1}),
        ListwiseRanker(alpha=1.0),
        CrucialPairsPush(alpha=0.1),
        UnknownLinkRegressor(alpha=0.1),
        LetorRanker(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_rankers_of_grades_in_a_table(tmp_path, rows, estimator):
    stars = pl.Series(np.arange(120) % 4 + (rows.frame["y"] == "yes").to_numpy())
    graded = Table(rows.frame.with_columns(stars=stars, b=pl.col("b").fill_null(0.0)))
    before = fit(graded, estimator, target="stars", graded=True, drop=["y", "when"])
    apexrank.save(before, tmp_path / "m.apex")
    after = apexrank.load(tmp_path / "m.apex")
    assert after.score(graded).tobytes() == before.score(graded).tobytes()
    assert after.contributions(graded).tobytes() == before.contributions(graded).tobytes()
    same(after.estimator, before.estimator)


def test_a_pipeline_passes_groups_on(tmp_path):
    groups = np.arange(60) % 4
    with config_context(enable_metadata_routing=True):
        before = make_pipeline(QueryNormalizer("rank"), CrucialPairsPush().set_fit_request(groups=True))
        apexrank.save(before.fit(X, Y, groups=groups), tmp_path / "m.apex")
        after = apexrank.load(tmp_path / "m.apex")
        assert after.predict(X, groups=groups).tobytes() == before.predict(X, groups=groups).tobytes()


def test_frames_keep_their_columns(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(city=np.where(Y, "Oslo", "Rome"), d=X[:, 0] ** 2)
    for estimator in (AdditivePush(n_knots=5), TreeRanker(rounds=3)):
        before = estimator.fit(frame, np.where(Y, "yes", "no"))
        apexrank.save(before, tmp_path / "m.apex")
        after = apexrank.load(tmp_path / "m.apex")
        same(after, before)
        assert after.predict(frame).tolist() == before.predict(frame).tolist()
        with pytest.raises(ValueError, match="feature names"):
            after.decision_function(frame.rename(columns={"a": "x"}))


def test_sparse_rows_of_a_kernel(tmp_path):
    before = MonotoneRetargeting(kernel="linear").fit(sparse.csr_array(np.maximum(X, 0)), Y)
    apexrank.save(before, tmp_path / "m.apex")
    after = apexrank.load(tmp_path / "m.apex")
    assert type(after.X_fit_) is type(before.X_fit_)
    assert after.predict(X).tobytes() == before.predict(X).tobytes()


def test_a_stream_goes_on_after_a_file(tmp_path):
    one = MonotoneRetargeting().partial_fit(X[:30], Y[:30])
    apexrank.save(one, tmp_path / "m.apex")
    other = apexrank.load(tmp_path / "m.apex")
    for ranker in (one, other):
        ranker.partial_fit(X[30:], Y[30:])
    assert one.coef_.tobytes() == other.coef_.tobytes()


@pytest.mark.parametrize("names", [["a", "b", "c"], [7, 5, 3], np.array(["a", 1, None], dtype=object)])
def test_graphs_keep_weights_names_and_teleports(tmp_path, names):
    graph = Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 1], [1.0, 2.0, 0.5, 4.0], names=names)
    before = PageRank().fit(graph, teleport=np.eye(3))
    apexrank.save(before, tmp_path / "m.apex")
    after = apexrank.load(tmp_path / "m.apex")
    same(after, before)
    assert after.top(3, column=1) == before.top(3, column=1)
    assert after.fit(LINKS).scores_.tobytes() == PageRank().fit(LINKS).scores_.tobytes()


def test_trust_and_distrust_of_a_signed_graph(tmp_path):
    graph = as_graph((["a", "b", "c"], ["b", "c", "a"], [1.0, -1.0, 2.0]), signed=True)
    before = LpqRank().fit(graph)
    apexrank.save(before, tmp_path / "m.apex")
    same(apexrank.load(tmp_path / "m.apex"), before)


class Doubled(TransformerMixin, BaseEstimator):
    """A transformer of a user."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return 2 * X


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (PushBoost(GaussianNB(), n_estimators=2), "GaussianNB.*`estimator`.*lists"),
        (MonotoneRetargeting(kernel=lambda a, b: float(a @ b)), "function.*`kernel"),
        (PNormPushCV(ps=[1], alphas=[0.1], cv=2, scoring=lambda *columns: 1.0), "`scoring`"),
        (PNormPushCV(ps=[1], alphas=[0.1], cv=pytest), "module"),
        (make_pipeline(Doubled(), PNormPush()), "Doubled"),
        (make_pipeline(FunctionTransformer(np.abs), PNormPush()), "FunctionTransformer"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "LogisticRegression"),
        (make_pipeline(SimpleImputer(add_indicator=True), PNormPush()), "`indicator_`"),
        (LogisticRegression(), "LogisticRegression"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_data_is_refused_by_name(tmp_path, model, named):
    if getattr(model, "cv", None) is pytest:
        model = PNormPushCV(ps=[1], alphas=[0.1], cv=2).fit(X, Y).set_params(cv=pytest)
    else:
        model = model.fit(np.where(X > 2, np.nan, X) if named == "`indicator_`" else X, Y)
    with pytest.raises(InputError, match=named) as caught:
        apexrank.save(model, tmp_path / "m.apex")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_other_attributes_are_refused_by_name(tmp_path):
    model = PNormPush().fit(X, Y)
    model.extra_ = X
    with pytest.raises(InputError, match="extra_"):
        apexrank.save(model, tmp_path / "m.apex")


def test_only_fitted_models(tmp_path):
    for model in (PNormPush(), PageRank(), make_pipeline(StandardScaler(), PNormPush())):
        with pytest.raises(NotFittedError):
            apexrank.save(model, tmp_path / "m.apex")
    for model in (X, None, "model", PNormPush):
        with pytest.raises(InputError, match="fitted estimator"):
            apexrank.save(model, tmp_path / "m.apex")


def test_names_are_never_paths(tmp_path, rows, monkeypatch):
    """Columns and categories named in a model file are never opened as files."""
    monkeypatch.chdir(tmp_path)
    odd = Table(rows.frame.rename({"a": "../../a", "b": "/etc/passwd", "id": "C:\\id"}))
    apexrank.save(fit(odd, PNormPush(alpha=1e-3), id="C:\\id"), "m.apex")
    assert apexrank.load("m.apex").score(odd).shape == (120,)
    assert [path.name for path in tmp_path.iterdir()] == ["m.apex"]


def test_a_failed_save_keeps_the_old_file(file):
    before = file.read_bytes()
    with pytest.raises(InputError):
        apexrank.save(LogisticRegression().fit(X, Y), file)
    assert file.read_bytes() == before
    assert len(list(file.parent.iterdir())) == 1


def test_anyone_can_read_it(file):
    with zipfile.ZipFile(file) as archive:
        tree = json.loads(archive.read("model.json"))
        assert tree["format"] == 6
        ranker = tree["model"]["apexrank.io.TableRanker"]["estimator"]["apexrank.rankers.PNormPush"]
        with archive.open(f"{ranker['coef_']['array']}.npy") as entry:
            assert np.load(entry).shape == (1, ranker["n_features_in_"])


# ---------------------------------------------------------------- files that are not model files


def refused(path, data, named=None):
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=named) as caught:
        apexrank.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_truncation_is_refused(file):
    data = file.read_bytes()
    for end in range(0, len(data) - 1, 97):
        refused(file, data[:end])


def test_bytes_after_the_end_are_refused(file):
    data = file.read_bytes()
    for more in (b"\0", b"PK\5\6" + bytes(18), bytes(70_000)):
        refused(file, data + more)
    refused(file, data[:-2] + b"\5\0hello")  # a comment


def test_every_changed_byte_is_refused_or_without_effect(file, model, rows):
    data, before = file.read_bytes(), model.score(rows).tobytes()
    for position in range(0, len(data), 61):
        changed = bytearray(data)
        changed[position] ^= 0xFF
        file.write_bytes(changed)
        try:
            assert apexrank.load(file).score(rows).tobytes() == before
        except ModelFileError as error:
            assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"", "not an apexrank model file"),
        (pickle.dumps(print), "not an apexrank model file"),
        (b"apexrank model 5\nsha256 0\n", "fit the model again"),
        (b"PK\x03\x04" + b"\0" * 60, "damaged"),
        (pack({"format": 7, "model": None}, []), "format 7"),
        (pack({"format": 6, "model": None}, []), "no fitted model"),
        (pack({"format": 6}, []), "model"),
        (pack([], []), None),
        (pack("NaN", []), "NaN"),
        (pack("9" * 5000, []), "digits"),
        (pack("[" * 100_000, []), "recursion"),
        (pack('{"a": [' * 500 + "]}" * 500, []), None),
        (pack(r'{"format": 6, "model": "\ud800"}', []), "surrogates"),
        (pack(b'{"format": 6, "model": "\xff"}', []), "utf-8"),
    ],
    ids=range(14),
)
def test_other_files_are_refused(tmp_path, data, named):
    refused(tmp_path / "m.apex", data, named)


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "gone.apex", tmp_path, "/dev/zero"):
        with pytest.raises(InputError, match=r"no such file|folder|device"):
            apexrank.load(path)


def test_compressed_entries_are_refused(file):
    tree, arrays = unpack(file.read_bytes())
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", json.dumps(tree))
        for i, array in enumerate(arrays):
            archive.writestr(f"{i}.npy", npy(array))
    refused(file, file.read_bytes(), "compressed")


def header(dtype, shape, by_column=False):
    text = f"{{'descr': {dtype!r}, 'fortran_order': {by_column}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "array",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x02\x00\x00\x00\x00\x00",
        header("<f8", (10**15,)),
        header("<f8", (1, 10**15)) + bytes(40),
        header("<f8", (-5,)) + bytes(24),
        header("<f8", "(1, 4)") + bytes(40),
        header("|O", (1, 5)) + pickle.dumps([None] * 5),
        header(">f8", (1, 5)) + bytes(40),
        header("<c16", (1, 5)) + bytes(80),
        header([("a", "<f8")], (1, 5)) + bytes(40),
        header("<f8", "__import__('os').getcwd()") + bytes(40),
        header("<f8", "(" * 300) + bytes(40),
        header("<f8", "-" * 60_000) + bytes(40),
        header("<U1", (1, 5)) + b"\xff" * 20,
        header("<U1,<f8", (1, 5)) + bytes(60),
    ],
    ids=range(16),
)
def test_arrays_that_are_none_are_refused(file, array):
    tree, arrays = unpack(file.read_bytes())
    ranker = at(tree, ("model", "apexrank.io.TableRanker", "estimator", "apexrank.rankers.PNormPush"))
    arrays[ranker["coef_"]["array"]] = array
    refused(file, pack(tree, arrays))


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("coef_",), DELETED, "coef_"),
        (("coef_",), [0.0] * 5, "coef_"),
        (("coef_",), {"array": 0}, None),  # of another attribute
        (("coef_",), {"array": 99}, "99"),
        (("coef_",), {"array": "../m"}, None),
        (("coef_",), {"pickle": {"data": "gASVCw=="}}, "pickle"),
        (("coef_",), {"apexrank.io.read.Table": {}}, "unknown class"),
        (("coef_",), {"subprocess.Popen": {"args": "true"}}, "unknown class"),
        (("coef_",), {"apexrank.rankers.push_path": {}}, "unknown class"),
        (("coef_",), {"apexrank.rankers.PNormPush": []}, None),
        (("coef_",), {"apexrank.rankers.PNormPush": {"p": 2}}, "PNormPush"),
        (("coef_",), {"numpy": "load"}, "load"),
        (("coef_",), {"float": "1"}, None),
        (("_had_groups",), {}, "has 0 keys"),
        (("predict",), 1, "predict"),
        (("__class__",), 1, "__class__"),
        (("__dict__",), {"dict": []}, "__dict__"),
        (("shell",), True, "shell"),
        (("n_features_in_",), 4, "size"),
        (("n_features_in_",), True, "n_features_in_"),
        (("classes_",), DELETED, "classes_"),
        (("intercept_",), {"float": "nan"}, "intercept_"),
        (("p",), DELETED, "`p`"),
        (("alpha",), -1, "alpha"),
        (("alpha",), "x", "alpha"),
        (("p",), [1], "'p'"),
        (("l1_ratio",), 7.0, "l1_ratio"),
        (("loss",), "hings", "loss"),
        (("solver",), 3, "solver"),
        (("price",), {"apexrank.prices.Power": {"p": -1.0}}, "p"),
        (("price",), {"apexrank.prices.Custom": {"g": 1, "dg": 1}}, "Custom"),
    ],
    ids=range(31),
)
def test_edited_estimators_are_refused(file, path, value, named):
    tree, arrays = unpack(file.read_bytes())
    place = ("model", "apexrank.io.TableRanker", "estimator", "apexrank.rankers.PNormPush", *path)
    refused(file, pack(edited(tree, place, value), arrays), named)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("target",), None),
        (("thresholds",), None),
        (("thresholds", "apexrank.io.table_ranker.Thresholds", "total"), 1),
        (("thresholds", "apexrank.io.table_ranker.Thresholds", "total"), 10**400),
        (("positive",), None),
        (("ignored",), [3]),
        (("mean",), None),
        (("training",), {"dict": []}),
        (("training",), {"dict": [["scale", "none"], ["rows", [1]]]}),
        (("training",), {"dict": [["scale", "none"], ["objective", "inf"]]}),
        (("training",), {"dict": [[[], 1]]}),
        (("calibration",), {"apexrank.io.Calibration": {"scores": [], "probabilities": []}}),
        (("estimator",), None),
        (("encoder", "columns"), {"tuple": []}),
        (("encoder", "columns"), [3]),
        (("encoder", "columns", "tuple", 0, "name"), "b"),
        (("encoder", "columns", "tuple", 0, "fill"), "1"),
        (("encoder", "columns", "tuple", 0, "fill"), {"float": "inf"}),
        (("encoder", "columns", "tuple", 0, "decimal"), ";"),
        (("encoder", "columns", "tuple", 0, "unit"), "dollars"),
        (("encoder", "columns", "tuple", 0, "missing"), True),
        (("encoder", "columns", "tuple", 0, "kind"), "code"),
        (("encoder", "columns", "tuple", 2, "values"), {"tuple": ["u", "u", "v"]}),
        (("encoder", "columns", "tuple", 2, "fill"), {"tuple": [1.0, 0.0]}),
        (("encoder", "columns", "tuple", 2, "fill"), {"tuple": [1.0, 0.0, True]}),
        (("encoder", "columns", "tuple", 2, "other"), True),
        (("encoder", "columns", "tuple", 2, "required"), None),
        (("encoder", "columns", "tuple", 3, "format"), "%c"),
        (("encoder", "columns", "tuple", 3, "fill"), {"tuple": [1.0]}),
        (("weight",), DELETED),
    ],
    ids=range(30),
)
def test_edited_tables_are_refused(file, path, value):
    tree, arrays = unpack(file.read_bytes())
    place, part = ("model",), tree["model"]
    for key in path:  # the names of classes are left out
        while isinstance(part, dict) and key not in part and len(part) == 1:
            place, part = (*place, *part), part[next(iter(part))]
        place, part = (*place, key), part[key] if isinstance(part, list) else part.get(key)
    refused(file, pack(edited(tree, place, value), arrays))


def test_arrays_belong_to_one_place_each(file):
    tree, arrays = unpack(file.read_bytes())
    refused(file, pack(tree, [*arrays, arrays[0]]), "belong to nothing")
    refused(file, pack(tree, arrays[:-1]), "npy")
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("0.npy", npy(arrays[0]))
    refused(file, file.read_bytes(), "larger|belong")


def test_trees_that_do_not_end_in_leaves_are_refused(tmp_path):
    tree, arrays = unpack(saved(TreeRanker(rounds=3).fit(X, Y), tmp_path / "m.apex"))
    forest = tree["model"]["apexrank.rankers.TreeRanker"]["forest_"]["apexrank.rankers.forest.Forest"]
    for name, value in (("left", 0), ("feature", 9), ("value", np.nan)):
        changed = arrays[number := forest[name]["array"]].copy()
        changed[0] = value
        refused(tmp_path / "m.apex", pack(tree, [*arrays[:number], changed, *arrays[number + 1 :]]), "trees")


def test_trees_of_scikit_learn_that_do_not_end_in_leaves_are_refused(tmp_path):
    model = DecisionTreeClassifier(max_depth=2).fit(X, Y)
    tree, [classes, n_classes, nodes] = unpack(saved(model, tmp_path / "m.apex"))
    left, right, feature = range(3)
    for node, column, value in (
        (0, left, 0),
        (0, left, 2.5),
        (0, right, 99),
        (0, right, -1),
        (1, feature, 3),
        (1, feature, -1),
        (0, 3, np.nan),
        (-1, -1, np.inf),
    ):
        changed = nodes.copy()
        changed[node, column] = value
        refused(tmp_path / "m.apex", pack(tree, [classes, n_classes, changed]), "tree")
    for other in (nodes[:, :-1], nodes[:, :8], np.column_stack([nodes, nodes[:, -1]]), nodes[:0]):
        refused(tmp_path / "m.apex", pack(tree, [classes, n_classes, other]))
    for n_features in (1, 4, -1, 10**30, 3.0, True, "3"):
        path = ("model", "sklearn.tree.DecisionTreeClassifier", "tree_", "tree", 0)
        refused(tmp_path / "m.apex", pack(edited(tree, path, n_features), [classes, n_classes, nodes]))


# ---------------------------------------------------------------- systematic edits


def forms_of(array):
    """The array in other sizes, types and with other values."""
    if array.ndim:
        yield from (array[:-1], np.concatenate([array, array[-1:]]), array[:0], array[::-1], array.ravel())
    yield from (array[None], array[..., None], array[..., :-1] if array.ndim > 1 else array[None, None])
    yield from (array.astype(kind) for kind in ("i8", "f8", "f4", "?", "U3") if array.dtype != np.dtype(kind))
    if array.dtype.kind == "f":
        yield from (array * np.nan, array + np.inf, -array - 1)
    if array.dtype.kind == "i":
        yield from (-array - 1, array + np.iinfo(array.dtype).max // 2)


QUICK = ("PNormPush", "TreeRanker", "LpqRank", "MonotoneRetargeting, kernel", "PNormPush with a scaler")


def attempts(name, tmp_path, files):
    """Load each file; ``used`` holds the models that it gives."""
    used, path = 0, tmp_path / "edited.apex"
    for data in files:
        path.write_bytes(data)
        try:
            model = apexrank.load(path)
        except ModelFileError as error:
            assert "\n" not in str(error)  # noqa: PT017
            continue
        try:
            results(model, name)
        except ValueError:  # such as labels of another type
            continue
        except TypeError as error:  # scikit-learn's own, for numbers in place of text
            assert "isnan" in str(error)  # noqa: PT017
        used += 1
    return used


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in KEPT]
)
def test_edited_arrays_are_refused_or_can_be_used(name, tmp_path):
    """Other sizes, types and values of each array: one line, or a model that computes something."""
    tree, arrays = unpack(saved(fitted(name), tmp_path / "m.apex"))
    edits = ((i, form) for i, array in enumerate(arrays) for form in forms_of(array))
    files = (pack(tree, [*arrays[:i], form, *arrays[i + 1 :]]) for i, form in edits)
    with np.errstate(all="ignore"):
        attempts(name, tmp_path, files)


AWKWARD = (
    DELETED,
    None,
    True,
    -1,
    10**30,
    -1e308,
    "x",
    "auto",
    [],
    {"float": "nan"},
    {"tuple": []},
    {"a": 1},
)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in KEPT]
)
def test_edited_json_is_refused_or_can_be_used(name, tmp_path):
    """Each part of the JSON is deleted or replaced: one line, or a model that computes something."""
    tree, arrays = unpack(saved(fitted(name), tmp_path / "m.apex"))
    edits = ((place, value) for place in places(tree["model"]) for value in AWKWARD)
    files = (pack({**tree, "model": edited(tree["model"], *edit)}, arrays) for edit in edits)
    with np.errstate(all="ignore"):
        attempts(name, tmp_path, files)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [PNormPush(8.0), TreeRanker(rounds=2), AdditivePush(n_knots=4, n_pairs=1)]
)
def test_edited_tables_are_refused_or_can_be_used(estimator, rows, tmp_path):
    ranker = fit(rows, estimator)
    tree, arrays = unpack(saved(ranker, tmp_path / "m.apex"))
    path, used = tmp_path / "edited.apex", 0
    for place in places(tree["model"]):
        for value in AWKWARD:
            path.write_bytes(pack({**tree, "model": edited(tree["model"], place, value)}, arrays))
            try:
                ranker = apexrank.load(path)
                used += 1
                rank_table(ranker, rows, explain=True)
                ranker.check(rows)
                ranker.drift(rows, ranker.score(rows))
                to_sql(ranker)
            except InputError as error:
                assert "\n" not in str(error)  # noqa: PT017
    assert used > 50


@pytest.mark.filterwarnings("ignore:the model's objective")
def test_a_card_of_huge_coefficients(file, rows):
    tree, arrays = unpack(file.read_bytes())
    ranker = at(tree, ("model", "apexrank.io.TableRanker", "estimator", "apexrank.rankers.PNormPush"))
    for size in (1e100, 1e154):
        arrays[ranker["coef_"]["array"]][0, 1] = size
        file.write_bytes(pack(tree, arrays))
        card = round_scorecard(apexrank.load(file), rows)
        assert all(np.isfinite(weight) for weight in np.ravel(card.points))
