"""Objectives and measures inside LightGBM and XGBoost: derivatives, interfaces, groups, weights, early stopping."""

import pickle
import re
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from apexrank import InputError, datasets, metrics
from apexrank.datasets import letor_folds, make_letor_example, write_letor
from apexrank.integrations.boosting import (
    BoosterMetric,
    LinkObjective,
    ListwiseObjective,
    PairsObjective,
    PClassificationObjective,
    PushObjective,
    RetargetObjective,
)
from apexrank.losses import Loss
from apexrank_papers.retargeting import boosting as boosted_letor

TWO_CLASSES = {
    "push-1": PushObjective(p=1),
    "push-4": PushObjective(p=4),
    "push-inf": PushObjective(p=np.inf, beta=8),
    "push-logistic": PushObjective(p=3, loss="logistic"),
    "push-inf-logistic": PushObjective(p=np.inf, beta=8, loss="logistic"),
    "push-bottom": PushObjective(p=4, side="bottom"),
    "push-both": PushObjective(p=4, side="both", balance=0.5),
    "push-log1p": PushObjective(price="log1p"),
    "p-classification": PClassificationObjective(p=4),
}
HINGES = {name: PushObjective(p=2, loss=name) for name in ("hinge", "squared_hinge")}
GRADED = {
    "pairs-1": PairsObjective(p=1),
    "pairs-4": PairsObjective(p=4),
    "pairs-logistic": PairsObjective(p=3, loss="logistic"),
    "retarget": RetargetObjective(),
    "retarget-normalised": RetargetObjective(offsets="linear", normalize=True, order="blocks"),
    "retarget-bounded": RetargetObjective(bounds=(-1.0, 2.0)),
    "retarget-kl": RetargetObjective("kl"),
    "retarget-i": RetargetObjective("i-divergence", joint_convexity=(3.0, 0.2)),
    "link": LinkObjective(strong_convexity=0.5),
    "listnet": ListwiseObjective("listnet"),
    "ndcg-consistent": ListwiseObjective("ndcg_consistent"),
    "pointwise": ListwiseObjective("pointwise"),
    "rank-cosine": ListwiseObjective("rank_cosine"),
}
SMOOTH = TWO_CLASSES | GRADED
ALL = SMOOTH | HINGES
SIZES = np.array([5, 3, 1, 4])


class Cubic(Loss):
    """User-defined loss."""

    name = "cubic"
    least_elasticity = 1.0


def rows(seed=0):
    """Labels 0 to 2, scores and weights of four lists, one of them without a pair."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, SIZES.sum()).astype(float)
    starts = np.cumsum(SIZES) - SIZES
    y[starts], y[starts[SIZES > 1] + 1] = 2.0, 0.0  # of both classes
    return y, rng.normal(size=len(y)), rng.uniform(0.5, 2.0, len(y))


def derivatives(function, scores, h=1e-5):
    return np.array(
        [(function(scores + h * e) - function(scores - h * e)) / (2 * h) for e in np.eye(len(scores))]
    )


def scale_of(objective, y, weight, sizes):
    """Scale factor of the objective, from its slope in the steepest direction."""
    scores = np.random.default_rng(9).normal(size=len(y))
    slope = objective(y, scores, weight, sizes)[0]
    plain = derivatives(lambda s: objective.value(y, s, weight, sizes), scores)
    return slope @ plain / (plain @ plain)


def package(name):
    return pytest.importorskip(name, reason=f"{name} is not installed")


def two_classes(n=600):
    return datasets.make_push_example(n, return_X_y=True)


def queries(n=40, seed=0):
    """Rows sorted by query, and the sizes of the queries."""
    made = datasets.make_letor_example(n, random_state=seed, noise=1.0)
    order = np.argsort(made.groups, kind="stable")
    return made.data[order], made.target[order], np.unique(made.groups, return_counts=True)[1]


def ids_of(sizes):
    return np.repeat(np.arange(len(sizes)), sizes)


LGB = {
    "verbosity": -1,
    "num_threads": 1,
    "metric": "None",
    "min_data_in_leaf": 5,
    "deterministic": True,
    "seed": 0,
}
XGB = {"nthread": 1, "disable_default_eval_metric": 1, "max_depth": 3, "seed": 0, "learning_rate": 0.1}


# ---- derivatives -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", SMOOTH)
def test_the_slope_is_the_gradient_of_the_value(name, weighted):
    y, scores, weight = rows()
    objective, weight = SMOOTH[name], weight if weighted else None
    plain = derivatives(lambda s: objective.value(y, s, weight, SIZES), scores)
    slope = objective(y, scores, weight, SIZES)[0]
    np.testing.assert_allclose(slope, scale_of(objective, y, weight, SIZES) * plain, rtol=1e-5, atol=1e-7)
    assert np.abs(slope).max() > 0.05


@pytest.mark.parametrize("name", SMOOTH)
@given(seed=st.integers(0, 10_000), spread=st.sampled_from([0.1, 1.0, 3.0]))
@settings(max_examples=8)
def test_the_curvature_bounds_the_hessian(name, seed, spread):
    """The diagonal is at least the Hessian's, and twice it is at least the Hessian."""
    y, scores, weight = rows(seed)
    objective, scores = SMOOTH[name], spread * scores
    bound = objective(y, scores, weight, SIZES)[1]
    hessian = derivatives(lambda s: objective(y, s, weight, SIZES)[0], scores)
    assert np.all(bound >= np.diag(hessian) - 1e-4)
    assert np.linalg.eigvalsh(2 * np.diag(bound) - (hessian + hessian.T) / 2).min() > -1e-4


@pytest.mark.parametrize(
    "name", ["push-1", "push-4", "push-inf", "push-bottom", "p-classification", "listnet"]
)
def test_the_bound_of_a_softmax_is_the_hessian_less_a_product(name):
    """For one list diag(a) − a·aᵀ: what the diagonal leaves out is of rank 2 and negative."""
    y, scores, weight = rows(3)
    objective = SMOOTH[name]
    bound = objective(y, scores, weight)[1]
    hessian = derivatives(lambda s: objective(y, s, weight)[0], scores)
    rest = np.linalg.eigvalsh((hessian + hessian.T) / 2 - np.diag(bound))
    assert rest.max() < 0.02  # the least curvature, 0.001 a row, and differences
    assert np.sum(np.abs(rest) > 0.02) <= 2


@pytest.mark.parametrize("name", ALL)
def test_the_mean_row_has_curvature_1_at_equal_scores_whatever_the_weights(name):
    y, _, weight = rows()
    for factor in (1.0, 1000.0):
        curvature = ALL[name](y, np.zeros(len(y)), factor * weight, SIZES)[1]
        assert curvature[curvature > 1e-3].mean() == pytest.approx(1.0)
        assert curvature.min() >= 1e-3


# ---- groups and weights ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_ids_in_any_order_are_the_same_as_sizes(name):
    y, scores, weight = rows()
    order = np.random.default_rng(1).permutation(len(y))
    names = np.array(["q7", "q1", "q9", "q3"])[ids_of(SIZES)]
    theirs = ALL[name](y, scores, weight, SIZES)
    shuffled = deepcopy(ALL[name])
    object.__setattr__(shuffled, "groups", names[order])
    ours = shuffled(y[order], scores[order], weight[order], None)
    for a, b in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(a[order], b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in ALL if n != "rank-cosine"])
def test_groups_matter(name):
    y, scores, _ = rows()
    one, several = ALL[name](y, scores)[0], ALL[name](y, scores, None, SIZES)[0]
    assert np.abs(one - several).max() > 1e-3 or name == "pointwise"


@pytest.mark.parametrize(
    "name", [n for n in ALL if "push-inf" not in n]
)  # weights of negatives have no effect there
def test_a_row_of_weight_2_is_two_rows(name):
    y, scores, _ = rows()
    count = np.random.default_rng(2).integers(1, 3, len(y))
    again = np.repeat(np.arange(len(y)), count)
    sizes = np.add.reduceat(count, np.cumsum(SIZES) - SIZES)
    weighted = ALL[name].value(y, scores, count, SIZES)
    assert weighted == pytest.approx(ALL[name].value(y[again], scores[again], None, sizes), rel=1e-9)


@pytest.mark.parametrize("name", ["push-4", "pairs-1", "retarget", "listnet"])
def test_weights_of_queries_in_xgboost(name):
    xgb = package("xgboost")
    y, scores, _ = rows()
    data = xgb.DMatrix(np.zeros((len(y), 1)), y, group=SIZES)
    plain = ALL[name](scores, data)
    data.set_weight([1.0, 5.0, 1.0, 0.0])
    slope, curvature = ALL[name](scores, data)
    factor = np.repeat([1.0, 5.0, 1.0, 0.0], SIZES)
    np.testing.assert_allclose(slope, factor * plain[0])
    np.testing.assert_allclose(curvature, np.maximum(factor * plain[1], 1e-3))


# ---- inside the packages ---------------------------------------------------------------------------------------------


def lightgbm_path(objective, X, y, sizes, rounds=12):
    lgb, found = package("lightgbm"), {}
    data = lgb.Dataset(X, y, group=sizes)
    record = lgb.record_evaluation(found)
    metric = BoosterMetric(objective)
    lgb.train(
        LGB | {"objective": objective}, data, rounds, valid_sets=[data], feval=metric, callbacks=[record]
    )
    return found["training"][metric.__name__]


def xgboost_path(objective, X, y, sizes, rounds=12):
    xgb, found = package("xgboost"), {}
    data = xgb.DMatrix(X, y, group=sizes)
    metric = BoosterMetric(objective)
    options = {"obj": objective, "custom_metric": metric, "evals": [(data, "rows")], "verbose_eval": False}
    xgb.train(XGB, data, rounds, evals_result=found, **options)
    return found["rows"][metric.__name__]


@pytest.mark.parametrize("path", [lightgbm_path, xgboost_path], ids=["lightgbm", "xgboost"])
@pytest.mark.parametrize("name", ALL)
def test_the_objective_falls_in_each_of_the_first_rounds(name, path):
    X, y, sizes = (*two_classes(), None) if name in TWO_CLASSES | HINGES else queries()
    values = path(ALL[name], X, y, sizes)
    assert np.all(np.diff(values) < 0)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_lightgbm_both_interfaces():
    lgb = package("lightgbm")
    X, y, sizes = queries()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    objective = RetargetObjective(offsets="linear")
    booster = lgb.train(LGB | {"objective": objective}, lgb.Dataset(X, y, group=sizes, weight=weight), 20)
    options = {
        "n_estimators": 20,
        "min_child_samples": 5,
        "verbosity": -1,
        "n_jobs": 1,
        "deterministic": True,
    }
    ranker = lgb.LGBMRanker(objective=objective, random_state=0, **options)
    ranker.fit(X, y, group=sizes, sample_weight=weight)
    by_ids = lgb.LGBMRegressor(
        objective=RetargetObjective(offsets="linear", groups=ids_of(sizes)), random_state=0, **options
    ).fit(X, y, sample_weight=weight)
    assert metrics.ndcg(y, booster.predict(X), groups=ids_of(sizes)) > 0.8
    np.testing.assert_allclose(ranker.predict(X), booster.predict(X))
    np.testing.assert_allclose(by_ids.predict(X), booster.predict(X))


def test_xgboost_both_interfaces():
    xgb = package("xgboost")
    X, y, sizes = queries()
    weight = np.random.default_rng(0).integers(1, 5, len(y)) / 2
    ids = ids_of(sizes)
    objective = RetargetObjective(offsets="linear", groups=ids)
    data = xgb.DMatrix(X, y, weight=weight)
    booster = xgb.train(XGB | {"base_score": 0.0}, data, 20, obj=objective)
    scores = booster.predict(data, output_margin=True)
    model = xgb.XGBRegressor(
        objective=objective, n_estimators=20, max_depth=3, learning_rate=0.1, base_score=0.0, n_jobs=1
    )
    model.fit(X, y, sample_weight=weight)
    assert metrics.ndcg(y, scores, groups=ids) > 0.8
    np.testing.assert_allclose(model.predict(X), scores, rtol=1e-5, atol=1e-6)
    slope = objective(np.zeros(len(y)), data)[0]
    np.testing.assert_allclose(
        slope, RetargetObjective(offsets="linear")(y, np.zeros(len(y)), weight, sizes)[0]
    )


def test_one_list_that_lambdarank_refuses():
    lgb = package("lightgbm")
    X, y = two_classes(12_000)
    y = y.astype(int)
    with pytest.raises(lgb.basic.LightGBMError, match="10000"):
        lgb.train(LGB | {"objective": "lambdarank"}, lgb.Dataset(X, y, group=[len(y)]), 1)
    booster = lgb.train(LGB | {"objective": PushObjective(p=4)}, lgb.Dataset(X, y), 10)
    assert metrics.auc(y, booster.predict(X)) > 0.95


# ---- measures --------------------------------------------------------------------------------------------------------


def lightgbm_early_estimator(X, y, sizes, held_out):
    lgb = package("lightgbm")
    ranker = lgb.LGBMRanker(
        objective=PairsObjective(),
        learning_rate=0.5,
        metric="None",
        min_child_samples=5,
        verbosity=-1,
        n_jobs=1,
        n_estimators=100,
    )
    ranker.fit(
        X,
        y,
        group=sizes,
        eval_set=[held_out[:2]],
        eval_group=[held_out[2]],
        eval_metric=BoosterMetric("ndcg@5"),
        callbacks=[lgb.early_stopping(5, verbose=False)],
    )
    return ranker.predict(held_out[0]), ranker.best_iteration_, ranker.evals_result_["valid_0"]["ndcg@5"]


def xgboost_early_estimator(X, y, sizes, held_out):
    xgb = package("xgboost")
    model = xgb.XGBRegressor(
        objective=PairsObjective(groups=ids_of(sizes)),
        eval_metric=BoosterMetric("ndcg@5", groups=ids_of(held_out[2])),
        learning_rate=0.5,
        n_estimators=100,
        max_depth=3,
        n_jobs=1,
        early_stopping_rounds=5,
    )
    model.fit(X, y, eval_set=[held_out[:2]], verbose=False)
    found = model.evals_result()["validation_0"]
    return model.predict(held_out[0]), model.best_iteration + 1, found["ndcg@5"]


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")  # its successor is new in 4.7
@pytest.mark.parametrize(
    "fit", [lightgbm_early_estimator, xgboost_early_estimator], ids=lambda fit: fit.__name__
)
def test_early_stopping_by_our_measure(fit):
    held_out = queries(seed=1)
    scores, best, path = fit(*queries(), held_out)
    assert best == np.argmax(path) + 1
    assert len(path) == best + 5 < 100
    expected = metrics.ndcg(held_out[1], scores, k=5, groups=ids_of(held_out[2]))
    assert path[best - 1] == pytest.approx(expected, abs=1e-6)


def test_measures_know_their_direction_and_options():
    y, scores, weight = [2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], np.array([1.0, 3.0, 1.0, 1.0])
    assert BoosterMetric("r_max")(y, scores, None, None)[0::2] == ("r_max", False)
    assert BoosterMetric("auc").greater_is_better
    relevant = BoosterMetric("auc", {"relevant": 2})(y, scores)
    assert relevant == metrics.auc([1, 0, 0, 0], scores)
    plain, counted = BoosterMetric("auc"), BoosterMetric("auc", weighted=True)
    assert plain(y, scores, weight, None)[1] == metrics.auc([1, 0, 1, 0], scores)
    assert counted(y, scores, weight, None)[1] == metrics.auc([1, 0, 1, 0], scores, sample_weight=weight)
    value = BoosterMetric(PushObjective(p=1))(y, scores, None, None)
    assert value == ("PushObjective", PushObjective(p=1).value(y, scores), False)


# ---- objects ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_pickle_and_copies(name):
    y, scores, weight = rows()
    before = ALL[name](y, scores, weight, SIZES)
    for copy in (pickle.loads(pickle.dumps(ALL[name])), deepcopy(ALL[name]), clone(ALL[name], safe=False)):
        assert repr(copy) == repr(ALL[name])
        assert copy._built is None  # the rows of a fit do not travel with it
        for a, b in zip(before, copy(y, scores, weight, SIZES), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("module", ["lightgbm.LGBMRegressor", "xgboost.XGBRegressor"])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_estimators_are_cloned_and_searched(module):
    name, _, kind = module.partition(".")
    X, y = two_classes(300)
    options = {"verbosity": -1} if name == "lightgbm" else {}
    model = getattr(package(name), kind)(n_estimators=5, n_jobs=1, **options)
    search = GridSearchCV(
        model,
        {"objective": [PushObjective(p=1), PushObjective(p=8)]},
        scoring=metrics.get_scorer("auc"),
        cv=2,
    )
    search.fit(X, y.astype(int))
    assert search.best_score_ > 0.8
    assert clone(search.best_estimator_).objective.p == search.best_params_["objective"].p
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(X), search.best_estimator_.predict(X))


def test_an_objective_serves_several_data_in_turn():
    y, scores, _ = rows()
    objective = RetargetObjective()
    first = objective(y, scores)[0]
    objective(y[:5], scores[:5])
    np.testing.assert_array_equal(objective(y, scores)[0], first)
    assert np.abs(objective(2 - y, scores)[0] - first).max() > 0.1


@pytest.mark.slow
def test_nothing_is_imported_before_it_is_needed():
    code = (
        "import sys, apexrank.integrations.boosting as b; b.PushObjective()([1, 0], [0.0, 0.0]); "
        "print([m for m in ('lightgbm', 'xgboost', 'polars') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PushObjective(p=0.5), "`p` must be a finite number"),
        (
            lambda: PushObjective(price="exponential"),
            "unknown `price` 'exponential': boosted trees take power or log1p",
        ),
        (lambda: PairsObjective(loss="hinge"), "exponential or logistic"),
        (lambda: ListwiseObjective("listmle"), "unknown `loss` 'listmle'"),
        (lambda: LinkObjective(strong_convexity=0.0), "`strong_convexity` must be"),
        (lambda: RetargetObjective(margin=0.0)([1, 0], [0.0, 0.0]), "set margin > 0"),
        (lambda: ListwiseObjective("ndcg_consistent")([1, -1], [0.0, 0.0]), "add a constant"),
        (lambda: PushObjective()([1, 1], [0.0, 0.0]), "rows of both classes"),
        (lambda: PushObjective(groups=["a"])([1, 0], [0.0, 0.0]), "expected 2 ids"),
        (lambda: PushObjective()([1, 0], [0.0, 0.0], None, [3]), "sum to 3, but there are 2 rows"),
        (lambda: PushObjective()([1, 0], [0.0, 0.0], [1.0, 1.0, 1.0]), "3 weights for 2 rows"),
        (lambda: PushObjective()([1, 0], np.zeros((2, 3))), "6 scores for 2 labels"),
        (lambda: BoosterMetric("ndgc"), "unknown measure 'ndgc'"),
        (lambda: BoosterMetric(PushObjective(), {"ties": "given"}), "options apply only to a measure"),
        (lambda: PushObjective().value([1, 0], [0.0, 0.0], [2.0], [2]), "no weights of queries"),
        (lambda: PushObjective(side="left"), "unknown `side` 'left'"),
        (lambda: PushObjective(loss="cubic"), "unknown `loss` 'cubic'"),
        (lambda: PushObjective(loss="zero_one"), "cannot fit them"),
        (lambda: PushObjective(balance=-1.0), "`balance` must be a finite number of at least 0"),
        (lambda: PushObjective(price="log1p", loss="logistic"), "not convex in the scores"),
        (lambda: PushObjective(p=np.inf, loss=Cubic()), "p = inf cannot be fitted with the cubic loss"),
        (lambda: RetargetObjective("manhattan"), "unknown `divergence` 'manhattan'"),
        (lambda: RetargetObjective("logistic"), "retargeting cannot use logistic"),
        (lambda: RetargetObjective(order="random"), "order must be 'hidden' or 'blocks'"),
        (lambda: RetargetObjective(margin=-1.0), "`margin` must be"),
        (lambda: RetargetObjective(margin=0.0), "set margin > 0"),
        (lambda: RetargetObjective(offsets="cubic"), "unknown `offsets` 'cubic'"),
        (lambda: RetargetObjective(offsets=[2.0, 1.0]), "`offsets` must not fall"),
        (lambda: RetargetObjective(joint_convexity=(1.0,)), "`joint_convexity` must be"),
    ],
    ids=range(29),
)
def test_mistakes_are_named(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf], ids=["missing", "infinite"])
@pytest.mark.parametrize("name", ALL)
def test_labels_that_are_no_numbers_are_refused(name, bad):
    y, scores, weight = rows()
    y[1] = bad
    for call in (ALL[name], ALL[name].value):
        with pytest.raises(InputError, match="label is missing or infinite in row 1: fill or drop it"):
            call(y, scores, weight, SIZES)


def test_offsets_are_tried_on_no_grade_that_the_data_have_not():
    y, scores, _ = rows()
    by_grade = RetargetObjective(offsets=lambda grade: np.log(grade))  # relevance 0 would have none
    plateau = RetargetObjective(offsets=[0.0, 0.0, 1.0])  # grades 0 and 1 alike, 2 above them
    wide = RetargetObjective("kl", margin=400.0, offsets=lambda grade: grade / 1000)
    for objective, labels in ((by_grade, y + 1), (plateau, y), (wide, y)):
        assert np.abs(objective(labels, scores)[0]).max() > 0.1


# ---- the page and the experiment -------------------------------------------------------------------------------------

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "boosting.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
@pytest.mark.filterwarnings("ignore")  # theirs
def test_blocks_of_the_guide_run(number, capsys):
    code = BLOCKS[number].replace("500,", "20,").replace("n_estimators=300", "n_estimators=5, verbosity=-1")
    for name in ("lightgbm", "xgboost"):
        if f"import {name}" in code:
            package(name)
    if "sizes" in code or "ids" in code:
        X, y, sizes = queries()
        names = {"X": X, "y": y, "sizes": sizes, "ids": ids_of(sizes)}
    else:
        X, y = two_classes()
        names = {"X": X[:300], "y": y[:300].astype(int), "X_valid": X[300:], "y_valid": y[300:].astype(int)}
    with threadpool_limits(1):
        exec(code, names)
    if "ranker" in names or "model" in names:
        fitted = names.get("ranker", names.get("model"))
        assert metrics.ndcg(y, fitted.predict(X), groups=ids_of(sizes)) > 0.7
    if "booster" in names:
        found = names["booster"].best_score["valid_0"]
        assert found["partial_auc_0.05"] > 0.5


def test_the_guide_shows_code_for_both_packages():
    assert len(BLOCKS) == 4
    assert all(any(f"import {name}" in block for block in BLOCKS) for name in ("lightgbm", "xgboost"))


@pytest.fixture
def folds(tmp_path, monkeypatch):
    """Five files of a few queries, and a short search."""
    for k in range(5):
        made = make_letor_example(n_queries=12, random_state=k)
        groups = [f"{k}-{group}" for group in made.groups]
        write_letor(tmp_path / f"S{k + 1}.txt", made.data, made.target, groups, made.docids)
    monkeypatch.setattr(boosted_letor, "LEAVES", (4,))
    monkeypatch.setattr(boosted_letor, "MARGINS", {"offsets": ("linear",), "top": (0.0, 1.0), "size": (0.5,)})
    monkeypatch.setattr(boosted_letor, "ROUNDS", (5, 20))
    return list(letor_folds(tmp_path))[:2]


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_the_experiment(folds, library):
    package(library)
    result = boosted_letor.run_folds(folds, library)
    names = [boosted_letor.THEIRS[library], *boosted_letor.TASKS]
    assert result.view["objective"].to_list() == names
    ndcg = result.table.filter(result.table["measure"] == "ndcg")
    assert ndcg["value"].min() > 0.7
    assert ndcg["difference"].null_count() == 1
    assert [v.row for v in result.verdicts] == ["retargeting", "retargeting beside theirs"]
    assert re.search(
        r"retargeting, chosen on validation: offsets=linear, top=\d, size=0.5, num_leaves=4, trees=",
        result.notes[2],
    )


def test_the_experiment_says_what_is_missing(monkeypatch):
    with pytest.raises(InputError, match="unknown `library` 'ebm'"):
        boosted_letor.boosted_letor(library="ebm")
    monkeypatch.delenv("APEXRANK_DATA", raising=False)
    with pytest.raises(InputError, match="MQ2008 is missing"):
        boosted_letor.boosted_letor()


def test_weights_of_rows_and_queries():
    queries = boosted_letor.Queries(np.zeros((5, 1)), np.array([2, 0, 1, 0, 0]), np.array([1, 4]))
    task = boosted_letor.Task("", RetargetObjective(), top=1.0, size=0.5)
    assert task.weights(queries).tolist() == [3.0, 0.5, 1.0, 0.5, 0.5]
    assert boosted_letor.Task("", "lambdarank").weights(queries) is None
