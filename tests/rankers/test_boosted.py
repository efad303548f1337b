"""Boosted trees for graded relevance, beside the libraries that grow them."""

from importlib.util import find_spec

import numpy as np
import pytest

from apexrank.integrations.boosting import RetargetObjective
from apexrank.rankers import BoostedRanker, boosted

LIBRARIES = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed"))
    for name in ("lightgbm", "xgboost", "catboost")
]
every_library = pytest.mark.parametrize("library", LIBRARIES)
with_lightgbm = pytest.mark.skipif(find_spec("lightgbm") is None, reason="LightGBM is not installed")
N = 1200


@pytest.fixture(scope="module")
def lists():
    """Rows with missing values and categories, of queries in no order."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 5))
    X[rng.random(N) < 0.2, 1] = np.nan
    X[:, 4] = rng.permutation([3.0, 7.0, 8.0, 9.0, 20.0])[rng.integers(0, 5, N)]
    latent = X[:, 0] + np.nan_to_num(X[:, 1], nan=1.0) + np.isin(X[:, 4], [3, 8]) + 0.5 * rng.normal(size=N)
    return X, np.digitize(latent, [0.5, 1.5, 2.5]).astype(float), rng.integers(0, 40, N)


@pytest.fixture
def booster_of(monkeypatch):
    """The booster of the library whose trees a ranker keeps."""
    found = []

    def kept(read):
        return lambda booster, *rest: found.append(booster) or read(booster, *rest)

    for name in ("lightgbm_trees", "xgboost_trees", "catboost_trees"):
        monkeypatch.setattr(boosted, name, kept(getattr(boosted, name)))
    return found


def predicted(library, booster, ranker, X):
    """Scores by the library itself."""
    X = ranker._coded(X)
    if library == "lightgbm":
        return booster.predict(X, raw_score=True)
    if library == "xgboost":
        import xgboost

        kinds = ["c" if j in ranker._categories else "q" for j in range(X.shape[1])]
        data = xgboost.DMatrix(X, feature_types=kinds, enable_categorical=True)
        return booster.predict(data, output_margin=True)
    columns = []
    for j in range(X.shape[1]):
        known = ranker._categories.get(j)
        columns += [X[:, j]] if known is None else [X[:, j] == code for code in range(len(known))]
    return booster.predict(np.column_stack(columns))


@every_library
@pytest.mark.parametrize("objective", ["retarget", "listnet", "lambdarank"])
@pytest.mark.parametrize("categorical", [None, [4]])
def test_scores_are_those_of_the_library(lists, library, objective, categorical, booster_of):
    X, y, groups = lists
    ranker = BoostedRanker(
        objective, library=library, n_estimators=15, max_leaves=8, categorical_features=categorical
    ).fit(X, y, groups=groups)
    other = np.random.default_rng(1).permutation(X.ravel()).reshape(X.shape)
    other[:, [0, 2, 3]] = np.nan_to_num(other[:, [0, 2, 3]])
    other[:, 4] = np.nan_to_num(X[::-1, 4])
    # XGBoost sums in single precision
    close = {"rtol": 1e-12, "atol": 1e-12} if library != "xgboost" else {"rtol": 1e-5, "atol": 1e-6}
    for rows in (X, other):
        theirs = predicted(library, booster_of[0], ranker, rows)
        np.testing.assert_allclose(ranker.predict(rows), theirs, **close)
    assert len(np.unique(ranker.predict(X))) > 50


@every_library
def test_thresholds_of_single_precision_are_exact(library, booster_of):
    """Values around thresholds that single precision rounds either way go where the library sends them."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 1))
    ranker = BoostedRanker("pointwise", library=library, n_estimators=5).fit(X, X[:, 0])
    base = np.unique(np.float32(ranker.forest_.threshold[ranker.forest_.left >= 0])).astype(float)
    near = [base]
    for step in (-np.inf, np.inf):
        single = np.nextafter(base.astype(np.float32), np.float32(step)).astype(float)
        middle = (base + single) / 2
        near += [single, middle, np.nextafter(middle, -np.inf), np.nextafter(middle, np.inf)]
    rows = np.concatenate(near)[:, None]
    theirs = predicted(library, booster_of[0], ranker, rows)
    np.testing.assert_allclose(ranker.predict(rows), theirs, rtol=1e-5, atol=1e-6)


@with_lightgbm
@pytest.mark.parametrize("objective", ["retarget", "lambdarank"])
def test_fit_is_that_of_the_library_called_directly(lists, objective):
    lightgbm = pytest.importorskip("lightgbm")
    X, y, groups = lists
    ranker = BoostedRanker(objective, n_estimators=20, max_leaves=8).fit(X, y, groups=groups)
    order = np.argsort(groups, kind="stable")
    options = {
        "objective": RetargetObjective() if objective == "retarget" else objective,
        "num_leaves": 8,
        "learning_rate": 0.1,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(X[order], y[order], group=np.unique(groups, return_counts=True)[1])
    booster = lightgbm.train(options, data, 20)
    np.testing.assert_allclose(ranker.predict(X), booster.predict(X, raw_score=True), rtol=1e-12)
