"""Searches whose fits share each pass over the rows equal separate fits, on every design."""

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

from apexrank import InputError, PNormPush, PNormPushCV, push_path
from apexrank.metrics import get_scorer, partial_auc, tpr_at_fpr
from apexrank.problem.blocks import ArrayBlocks
from apexrank.rankers import push as push_module
from apexrank.rankers import together
from apexrank.rankers.base import SeparableWarning, fit_blocks

RNG = np.random.default_rng(0)
N, D = 1500, 6
X = RNG.normal(size=(N, D)) @ np.diag([1.0, 5.0, 0.2, 1.0, 1.0, 1.0]) + np.array([0, 0, 0, 0, 0, 1e5])
Y = (X[:, 0] + 0.3 * X[:, 1] + 1.5 * RNG.normal(size=N) > 1.0).astype(int)
WEIGHT = RNG.integers(0, 4, N).astype(float)
GROUPS = np.repeat(np.arange(N // 10), 10)
GRID = {"ps": [1, 4, 16], "alphas": [1.0, 1e-2, 1e-4], "cv": 3}


@pytest.fixture
def joint(monkeypatch):
    """Use the code path of large data for small data."""
    monkeypatch.setattr(push_module, "SMALL", 0)


def one_by_one(X, y, sample_weight=None, **options):
    """Held-out scores and coefficients of fits on copies of the training rows."""
    options = GRID | options
    folds = StratifiedKFold(options["cv"]).split(X, y)
    scorer = get_scorer(options.get("scoring", "partial_auc"))
    scores, coefs = [], []
    for train, test in folds:
        for alpha in options["alphas"]:
            for p in options["ps"]:
                weight = None if sample_weight is None else sample_weight[train]
                ranker = PNormPush(p, alpha=alpha, l1_ratio=options.get("l1_ratio", 0.0), tol=1e-8)
                ranker.fit(X[train], y[train], sample_weight=weight)
                measured = {} if sample_weight is None else {"sample_weight": sample_weight[test]}
                score = scorer._score_func
                value = score(y[test], ranker.decision_function(X[test]), **measured, **scorer._kwargs)
                scores.append(scorer._sign * value)
                coefs.append(ranker.coef_[0])
    shape = options["cv"], len(options["alphas"]) * len(options["ps"])
    return np.reshape(scores, shape), np.reshape(coefs, (*shape, X.shape[1]))


def table_of(search):
    return np.array([search.cv_results_[f"split{k}_test_score"] for k in range(GRID["cv"])])


def in_torch(X, y, weight):
    torch = pytest.importorskip("torch")
    X, y = torch.from_numpy(X), torch.from_numpy(y)
    return (X, y), {} if weight is None else {"sample_weight": torch.from_numpy(weight)}


def in_dask(X, y, weight):
    da = pytest.importorskip("dask.array")
    X, y = da.from_array(X, chunks=(400, -1)), da.from_array(y, chunks=400)
    return (X, y), {} if weight is None else {"sample_weight": da.from_array(weight, chunks=400)}


DESIGNS = {
    "dense": lambda X, y, weight: ((X, y), {"sample_weight": weight}),
    "columns": lambda X, y, weight: ((np.asfortranarray(X), y), {"sample_weight": weight}),
    "single": lambda X, y, weight: ((X.astype(np.float32), y), {"sample_weight": weight}),
    "sparse": lambda X, y, weight: ((sparse.csr_matrix(X), y), {"sample_weight": weight}),
    "blocks": lambda X, y, weight: ((ArrayBlocks(X, y, weight, rows=400), None), {}),
    "dask": in_dask,
    "torch": in_torch,
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("design", DESIGNS)
def test_a_joint_search_is_that_of_fits_one_by_one(design, weighted, joint, monkeypatch):
    """Columns in different units, one of them far from zero, and weights of 0."""
    rows = X.copy()
    if design in ("sparse", "single"):  # the former is never moved, the latter has too few digits
        rows[:, -1] -= 1e5
    rows = rows.astype(np.float32).astype(float) if design == "single" else rows
    weight = WEIGHT if weighted else None
    fitted = {}
    keep = push_module.fit_folds
    monkeypatch.setattr(push_module, "fit_folds", lambda *args: fitted.setdefault("rankers", keep(*args)))
    given, more = DESIGNS[design](rows, Y, weight)
    search = PNormPushCV(**GRID, tol=1e-8).fit(*given, **more)
    scores, coefs = one_by_one(rows, Y, weight)
    np.testing.assert_allclose(table_of(search), scores, atol=1e-6)
    for own, expected in zip(fitted["rankers"], coefs, strict=True):
        for ranker, coef in zip(own, expected, strict=True):
            assert ranker.converged_
            spread = rows.std(axis=0)
            error = np.abs((ranker.coef_[0] - coef) * spread).max()
            assert error <= 1e-5 * max(1.0, np.abs(coef * spread).max())
    best = PNormPush(search.p_, alpha=search.alpha_, tol=1e-8).fit(rows, Y, sample_weight=weight)
    np.testing.assert_allclose(search.coef_, best.coef_, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(search.intercept_, best.intercept_, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("design", ["dense", "blocks", "torch"])
@pytest.mark.parametrize("alpha", ["auto", 1e-3])
def test_a_joint_path_is_that_of_fits_one_by_one(design, alpha, joint):
    given, more = DESIGNS[design](X, Y, WEIGHT)
    path = push_path(*given, [1, 4, 16], **more, alpha=alpha, tol=1e-8)
    for ranker, p in zip(path, [1, 4, 16], strict=True):
        alone = PNormPush(p, alpha=alpha, tol=1e-8).fit(X, Y, sample_weight=WEIGHT)
        assert ranker.p == p
        assert ranker.converged_
        np.testing.assert_allclose(ranker.alpha_, alone.alpha_, rtol=1e-6)
        np.testing.assert_allclose(ranker.coef_, alone.coef_, rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(ranker.objective_, alone.objective_, rtol=1e-8)
        np.testing.assert_array_equal(ranker.predict(X), alone.predict(X))


@pytest.mark.parametrize("design", ["dense", "blocks", "dask", "torch"])
def test_what_cannot_be_fitted_together_is_fitted_one_by_one(design, joint):
    """Infinite p, an L1 norm, and groups; for rows outside memory a fold is a weight of 0."""
    noise = np.random.default_rng(0).normal(size=300)  # of its own: the same rows whatever test ran before
    y = (X[:300, 0] + 0.3 * X[:300, 1] + 0.1 * noise > 1).astype(int)
    given, more = DESIGNS[design](X[:300], y, None)
    options = {"ps": [4, np.inf], "alphas": [0.1], "cv": 3, "l1_ratio": 0.5}
    search = PNormPushCV(**options).fit(*given, **more)
    np.testing.assert_allclose(table_of(search), one_by_one(X[:300], y, **options)[0], atol=1e-3)


@pytest.mark.parametrize("design", ["blocks", "torch"])
def test_groups_are_compared_inside_and_kept_whole(design):
    options = {"ps": [1, 4], "alphas": [1e-2], "cv": 3, "scoring": "auc"}
    apart = PNormPushCV(**options).fit(X, Y, groups=GROUPS)
    if design == "blocks":
        search = fit_blocks(PNormPushCV(**options), ArrayBlocks(X, Y, groups=GROUPS, rows=400))
    else:
        search = PNormPushCV(**options).fit(*in_torch(X, Y, None)[0], groups=GROUPS)
    np.testing.assert_allclose(table_of(search), table_of(apart), atol=1e-4)
    assert search.best_estimator_.p == apart.best_estimator_.p


def test_any_splitter_will_do(joint):
    """Rows that are neither in training nor held out, and rows that are drawn twice."""
    twice = [(np.r_[0:500, 0:300], np.arange(600, 900)), (np.arange(700, 1200), np.arange(100, 400))]
    for cv in (ShuffleSplit(3, train_size=0.5, test_size=0.2, random_state=0), twice):
        folds = list(cv.split(X)) if hasattr(cv, "split") else cv
        search = PNormPushCV([4], [1e-2], cv=cv, scoring="auc").fit(X, Y)
        for k, (train, test) in enumerate(folds):
            alone = PNormPush(4, alpha=1e-2).fit(X[train], Y[train])
            expected = get_scorer("auc")(alone, X[test], Y[test])
            np.testing.assert_allclose(search.cv_results_[f"split{k}_test_score"], expected, atol=1e-6)


def test_folds_with_many_different_rows(joint, monkeypatch):
    """Rows belong to different sets of folds, so folds are summed a few at a time."""
    monkeypatch.setattr("apexrank.problem.together.MOST_CELLS", 4)
    cv = ShuffleSplit(5, train_size=0.5, test_size=0.3, random_state=0)
    search = PNormPushCV([1, 8], [1e-2], cv=cv, tol=1e-8).fit(X, Y, sample_weight=WEIGHT)
    for k, (train, test) in enumerate(cv.split(X)):
        for number, p in enumerate([1, 8]):
            alone = PNormPush(p, alpha=1e-2, tol=1e-8).fit(X[train], Y[train], sample_weight=WEIGHT[train])
            measured = partial_auc(Y[test], alone.decision_function(X[test]), sample_weight=WEIGHT[test])
            np.testing.assert_allclose(
                search.cv_results_[f"split{k}_test_score"][number], measured, atol=1e-6
            )


@given(
    data=st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=30),
    fpr=st.sampled_from([0.01, 0.1, 0.25, 0.5, 0.75, 0.99]),
)
def test_a_list_cut_at_a_false_positive_rate_has_the_same_curve_up_to_there(data, fpr):
    scores, y = np.array([s for s, _ in data], dtype=float), np.array([c for _, c in data], dtype=int)
    assume(0 < y.sum() < len(y))
    top, labels, weight = together.top_of_list(scores, y, fpr)
    for measure in (lambda *of, **more: partial_auc(*of, max_fpr=fpr, **more), partial(tpr_at_fpr, fpr=fpr)):
        np.testing.assert_allclose(measure(labels, top, sample_weight=weight), measure(y, scores), rtol=1e-12)


def test_a_fold_of_one_class_has_no_measure(joint):
    folds = [(np.arange(N), np.flatnonzero(label == Y)) for label in (0, 1)]
    for fold in folds:
        with pytest.raises(InputError, match="the measure is not defined"):
            PNormPushCV([4], [1e-2], cv=[fold]).fit(X, Y)


@pytest.mark.parametrize("near", [0.0, np.inf])
def test_shared_hessians_cost_steps_not_accuracy(near, joint, monkeypatch):
    monkeypatch.setattr(together, "NEAR", near)
    search = PNormPushCV(**GRID, tol=1e-7).fit(X, Y)
    np.testing.assert_allclose(table_of(search), one_by_one(X, Y)[0], atol=1e-6)


@pytest.mark.parametrize("scoring", ["accuracy", "f1", "roc_auc", "r_max"])
def test_names_of_other_measures_are_taken_too(scoring, joint, monkeypatch):
    search = PNormPushCV(**GRID, scoring=scoring).fit(X, Y)
    monkeypatch.setattr(push_module, "SMALL", np.inf)
    apart = PNormPushCV(**GRID, scoring=scoring).fit(X, Y)
    np.testing.assert_allclose(table_of(search), table_of(apart), atol=3e-3)


def test_a_positive_class_that_sorts_first(joint):
    words = np.where(Y == 1, "fraud", "legit")
    search = PNormPushCV(**GRID, pos_label="fraud").fit(X, words)
    np.testing.assert_allclose(table_of(search), table_of(PNormPushCV(**GRID).fit(X, Y)), atol=1e-9)
    assert search.classes_.tolist() == ["legit", "fraud"]


def test_separated_classes_warn_once_for_the_fit_that_is_kept(joint):
    """The only regularisation is a small ridge, for which Newton's method needs many steps."""
    rows = X[:, :4].copy()
    rows[Y == 1, 0] += 8.0
    rows[Y == 0, 0] -= 8.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = PNormPushCV([1, 64], [1e-3, 1e-6], cv=3).fit(rows, Y)
    assert (search.cv_results_["mean_test_score"] == 1.0).all()
    with pytest.warns(SeparableWarning):  # without a ridge there is no minimum
        PNormPushCV([1], [0.0], cv=3).fit(rows, Y)


def test_the_number_of_threads_does_not_change_a_bit(joint, monkeypatch):
    found = []
    for threads in (1, 3):
        monkeypatch.setattr("apexrank.problem.together.n_threads", lambda n=threads: n)
        monkeypatch.setattr("apexrank.problem.together.SLICE_ROWS", 200)
        found.append(PNormPushCV(**GRID).fit(X, Y))
    for name, column in found[0].cv_results_.items():
        np.testing.assert_array_equal(column, found[1].cv_results_[name])


@pytest.mark.parametrize("rate", [100, 1000])
def test_hessians_of_few_rows_cost_steps_not_accuracy(rate, joint, monkeypatch):
    monkeypatch.setattr("apexrank.problem.together.SAMPLED", rate)
    monkeypatch.setattr(together, "SAMPLE_ROWS", 100)
    search = PNormPushCV(**GRID, tol=1e-7).fit(X, Y)
    np.testing.assert_allclose(table_of(search), one_by_one(X, Y)[0], atol=1e-6)


def test_wide_rows_do_without_hessians(joint, monkeypatch):
    monkeypatch.setattr("apexrank.problem.together.HESSIAN_BYTES", 0)
    search = PNormPushCV(**GRID, tol=1e-7).fit(X, Y)
    np.testing.assert_allclose(table_of(search), one_by_one(X, Y)[0], atol=1e-6)


def test_converged_fits_leave(joint, monkeypatch):
    """The last passes, for the hardest fit, cover only its own column."""
    sizes = []
    answer = together.joint_rows.__globals__["JointRows"].answer

    def noted(self, requests):
        sizes.append(len(requests))
        return answer(self, requests)

    monkeypatch.setattr("apexrank.problem.together.JointRows.answer", noted)
    PNormPushCV(**GRID).fit(X, Y)
    assert sizes[0] == 9  # on all rows, one for each pair
    assert max(sizes) == 27
    assert sizes[-1] < 27


def test_scorers_of_rows_need_them_in_memory():
    def mean_margin(ranker, rows, labels):
        return float(np.mean(ranker.predict(rows) == labels))

    with pytest.raises(InputError, match="needs the rows in memory: give the name of a measure"):
        PNormPushCV(**GRID, scoring=mean_margin).fit(ArrayBlocks(X, Y, rows=400), None)
    expected = PNormPushCV(**GRID, scoring=mean_margin).fit(X, Y)
    torch = pytest.importorskip("torch")

    def of_tensors(ranker, rows, labels):
        assert isinstance(rows, torch.Tensor)
        return float((ranker.predict(rows) == labels).double().mean())

    search = PNormPushCV(**GRID, scoring=of_tensors).fit(*in_torch(X, Y, None)[0])
    np.testing.assert_allclose(table_of(search), table_of(expected), atol=3e-3)


def test_sums_of_cells_that_are_not_kept_are_taken_again(joint, monkeypatch):
    whole = PNormPushCV(**GRID).fit(X, Y)
    monkeypatch.setattr("apexrank.problem.together.KNOWN_BYTES", 0)
    np.testing.assert_allclose(table_of(PNormPushCV(**GRID).fit(X, Y)), table_of(whole), atol=1e-9)
