import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from apexrank import (
    CrucialPairsPush,
    InputError,
    IRPush,
    PNormPush,
    PNormPushCV,
    RankBoost,
    metrics,
    push_path,
)
from apexrank.prices import Custom
from apexrank.rankers import CollapsedWarning, LetorRanker, SeparableWarning
from apexrank.rankers.base import balanced_threshold, p_classification_intercept
from apexrank.solvers import LBFGS
from tests.oracles import push_objective


@pytest.fixture(scope="module")
def wdbc():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:, :6], y


def test_fitted_objective_is_the_oracle_plus_penalty(wdbc):
    X, y = wdbc
    ranker = PNormPush(p=3, alpha=0.01).fit(X, y)
    scores = ranker.decision_function(X)
    penalty = 0.005 * (ranker.coef_**2).sum()
    assert ranker.objective_ == pytest.approx(push_objective(scores, y == 1, p=3) + penalty, rel=1e-12)
    assert ranker.converged_
    assert 0 <= ranker.dual_gap_ < 1e-6
    assert ranker.coef_.shape == (1, 6)
    assert ranker.intercept_.shape == (1,)


def test_a_push_trades_the_whole_list_for_its_top(wdbc):
    X, y = wdbc
    soft, hard = (PNormPush(p=p).fit(X, y).decision_function(X) for p in (1, 64))
    # on the training data each has the lowest objective of its own, and the top improves
    assert push_objective(soft, y == 1, p=1) < push_objective(hard, y == 1, p=1)
    assert push_objective(hard, y == 1, p=64) < push_objective(soft, y == 1, p=64)
    assert metrics.r_max(y, hard) <= metrics.r_max(y, soft)


def test_named_members(wdbc):
    X, y = wdbc
    same = PNormPush(price="log1p", side="bottom").fit(X, y)
    np.testing.assert_array_equal(IRPush().fit(X, y).coef_, same.coef_)
    unit = MinMaxScaler().fit_transform(X)
    boost = RankBoost(t_max=50).fit(unit, y)
    with pytest.warns(ConvergenceWarning, match="not converged after 50"):
        papers = PNormPush(p=1, alpha=0, solver="coordinate", max_iter=50).fit(unit, y)
    np.testing.assert_array_equal(boost.coef_, papers.coef_)
    assert boost.n_iter_ == 50
    assert not boost.converged_


def test_solvers_agree_on_the_scores(wdbc):
    X, y = wdbc
    unit = MinMaxScaler().fit_transform(X)[:, [1, 2, 4]]
    scores = [
        PNormPush(p=4, alpha=0.0, solver=solver, max_iter=5000, tol=5e-8).fit(unit, y).decision_function(unit)
        for solver in ("lbfgs", "newton", "coordinate", LBFGS(tol=5e-8))
    ]
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], atol=1e-6 * np.abs(scores[0]).max())


def test_groups_are_ranked_inside_themselves():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 25)
    quality = rng.normal(size=1000)
    X = np.column_stack([quality + 0.3 * rng.normal(size=1000), rng.normal(size=1000)])
    # a query-specific level moves all its documents, which hides the signal without groups
    level = 10 * rng.normal(size=40)[groups]
    y = quality + level > np.array([np.median((quality + level)[groups == q]) for q in range(40)])[groups]
    X[:, 0] += level
    grouped = PNormPush(alpha=1e-3).fit(X, y, groups=groups)
    plain = PNormPush(alpha=1e-3).fit(X, y)
    order = rng.permutation(1000)
    shuffled = PNormPush(alpha=1e-3).fit(X[order], y[order], groups=groups[order].astype(str))
    np.testing.assert_allclose(shuffled.coef_, grouped.coef_, rtol=1e-4)
    inside = [metrics.auc(y, r.decision_function(X), groups=groups) for r in (grouped, plain)]
    assert inside[0] > 0.95
    assert grouped.coef_[0, 0] > 10 * plain.coef_[0, 0]


def test_separable_data_without_penalty_warn_and_still_rank(wdbc):
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(SeparableWarning, match="Set `alpha` above 0"):
        ranker = PNormPush(alpha=0).fit(X, y)
    assert np.isnan(ranker.dual_gap_)
    assert not ranker.converged_
    assert metrics.r_max(y, ranker.decision_function(X)) == 0


def test_defaults_converge_on_unscaled_separable_data():
    X, y = load_breast_cancer(return_X_y=True)
    assert PNormPush().fit(X, y).converged_


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_keep_their_names(wdbc, frame):
    X, y = wdbc
    table = frame({name: X[name].to_numpy() for name in X})
    ranker = PNormPush().fit(table, y.to_numpy())
    assert ranker.feature_names_in_.tolist() == list(X)
    np.testing.assert_allclose(ranker.coef_, PNormPush().fit(X.to_numpy(), y).coef_, rtol=1e-7)
    with pytest.raises(ValueError, match="feature names should match"):
        ranker.decision_function(table[list(X)[::-1]])


def test_sparse_equals_dense(wdbc):
    X, y = wdbc
    dense = X.to_numpy() * (X.median() < X).to_numpy()
    for convert in (sparse.csr_array, sparse.csc_matrix):
        np.testing.assert_allclose(
            PNormPush(alpha=1e-3).fit(convert(dense), y).coef_,
            PNormPush(alpha=1e-3).fit(dense, y).coef_,
            rtol=1e-6,
        )


def test_single_precision(wdbc):
    X, y = wdbc
    single = X.to_numpy().astype(np.float32)
    coef = PNormPush(alpha=1e-2).fit(single, y).coef_
    np.testing.assert_allclose(coef, PNormPush(alpha=1e-2).fit(single.astype(float), y).coef_, rtol=1e-6)


def test_in_the_scikit_learn_world(wdbc):
    X, y = wdbc
    pipeline = make_pipeline(StandardScaler(), PNormPush()).set_output(transform="pandas")
    search = GridSearchCV(pipeline, {"pnormpush__p": [1, 8]}, scoring="roc_auc", cv=3, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.9
    fitted = clone(pipeline).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    scores = joblib.Parallel(n_jobs=2)(joblib.delayed(fitted.decision_function)(X) for _ in range(2))
    np.testing.assert_array_equal(scores[0], scores[1])
    probability = CalibratedClassifierCV(pipeline, cv=3).fit(X, y).predict_proba(X)
    assert ((probability >= 0) & (probability <= 1)).all()


def test_groups_by_metadata_routing(wdbc):
    X, y = wdbc
    groups = np.arange(len(X)) % 10
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = PNormPush().set_fit_request(groups=True)
        scorer = metrics.get_scorer("auc").set_score_request(groups=True)
        scores = cross_val_score(
            ranker, X, y, cv=GroupKFold(5), scoring=scorer, params={"groups": groups}, error_score="raise"
        )
    assert scores.min() > 0.8


def test_warm_start_needs_fewer_steps(wdbc):
    X, y = wdbc
    ranker = PNormPush(p=8, warm_start=True, solver="lbfgs").fit(X, y)
    cold = PNormPush(p=9, solver="lbfgs").fit(X, y)
    ranker.set_params(p=9).fit(X, y)
    assert ranker.n_iter_ < cold.n_iter_
    np.testing.assert_allclose(ranker.coef_, cold.coef_, rtol=1e-3)


def test_path_over_p(wdbc):
    X, y = wdbc
    path = push_path(X, y, [1, 4, 16], alpha=1e-4)
    for ranker in path:
        np.testing.assert_allclose(ranker.coef_, PNormPush(p=ranker.p, alpha=1e-4).fit(X, y).coef_, rtol=1e-4)


def test_choice_of_p_and_alpha(wdbc):
    X, y = wdbc
    search = PNormPushCV(ps=[1, 16], alphas=[1e-4, 1e3], scoring="tpr_at_fpr_0.05", cv=3).fit(X, y)
    table = search.cv_results_
    assert table["p"].tolist() == [1, 16, 1, 16]
    assert table["alpha"].tolist() == [1e-4, 1e-4, 1e3, 1e3]
    assert search.best_score_ == table["mean_test_score"].max()
    best = table["mean_test_score"].argmax()
    assert (search.p_, search.alpha_) == (table["p"][best], table["alpha"][best])
    np.testing.assert_array_equal(search.coef_, PNormPush(search.p_, alpha=search.alpha_).fit(X, y).coef_)
    grouped = PNormPushCV(ps=[4], alphas=[1e-3], cv=3).fit(X, y, groups=np.arange(len(X)) // 30)
    assert 0 < grouped.best_score_ <= 1


def test_choice_of_p_and_alpha_weighs_the_held_out_rows(wdbc):
    """Weights are repetitions in the scores of the folds too: rows of weight 0 have no effect."""
    X, y = wdbc[0].to_numpy(), wdbc[1].to_numpy()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    halves = np.arange(len(y)) % 2

    def folds(half):
        return [(np.flatnonzero(half != k), np.flatnonzero(half == k)) for k in (0, 1)]

    options = {"ps": [1, 4], "alphas": [1e-2], "scoring": "partial_auc"}
    weighted = PNormPushCV(cv=folds(halves), **options).fit(X, y, sample_weight=weight)
    repeated = PNormPushCV(cv=folds(halves[rows]), **options).fit(X[rows], y[rows])
    for name in ("split0_test_score", "split1_test_score"):
        np.testing.assert_allclose(weighted.cv_results_[name], repeated.cv_results_[name], atol=1e-10)
    plain = PNormPushCV(cv=folds(halves), **options).fit(X, y)
    assert not np.allclose(weighted.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])


def grouped_rows(noise, n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = (X[:, 0] - X[:, 1] + noise * rng.normal(size=n) > 0.3).astype(int)
    return X, y, np.repeat(np.arange(n // 5), 5)


@pytest.mark.parametrize("ranker", [PNormPush, CrucialPairsPush])
def test_groups_that_only_the_penalty_holds_warn(ranker):
    """Groups are separated on average but not individually: the coefficients are of the order of 1/alpha."""
    X, y, groups = grouped_rows(noise=0.3)
    sizes = []
    for alpha in (1e-4, 1e-2):
        with pytest.warns(SeparableWarning, match="set a larger alpha"):
            fitted = ranker(alpha=alpha).fit(X, y, groups=groups)
        sizes.append(alpha * np.abs(fitted.coef_).max())
        scores = X @ np.ravel(fitted.coef_)
        lists = [(scores[(groups == q) & (y == 1)], scores[(groups == q) & (y == 0)]) for q in range(40)]
        margins = np.array([up.min() - down.max() for up, down in lists if len(up) and len(down)])
        assert margins.min() < 0 < margins.mean()
    assert sizes[0] == pytest.approx(sizes[1], rel=0.02)
    with pytest.warns(SeparableWarning, match="alpha=0"):
        ranker(alpha=0).fit(X, y, groups=groups)
    ranker(alpha=1.0).fit(X, y, groups=groups)  # an alpha that is large enough
    X, y, groups = grouped_rows(noise=3.0)
    ranker(alpha=1e-6).fit(X, y, groups=groups)  # and data that overlap


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("in_groups", [False, True])
def test_the_hinge_is_certified_at_its_kinks(p, in_groups):
    X, y, groups = grouped_rows(noise=1.0, n=100)
    chosen = groups if in_groups else None
    for alpha in (1e-6, 1e-3, 1e-1):
        ranker = PNormPush(p, loss="hinge", alpha=alpha).fit(X, y, groups=chosen)
        assert ranker.converged_
        objective = ranker._objective(y == 1, None, chosen)

        def value(w, objective=objective, alpha=alpha):
            return objective.value_and_grad(X @ w)[0] / objective.count + alpha / 2 * w @ w

        w = ranker.coef_[0]
        assert ranker.objective_ == pytest.approx(value(w))
        rng = np.random.default_rng(1)
        around = [value(w + size * rng.normal(size=5)) for size in np.repeat([1e-6, 1e-4, 1e-2], 30)]
        assert min(around) >= ranker.objective_ - min(ranker.dual_gap_, 1e-6)


def test_p_classification_intercept_minimises_its_objective():
    rng = np.random.default_rng(0)
    scores, positive, weight, p = rng.normal(size=50), rng.random(50) < 0.4, rng.random(50), 5.0

    def cost(b):
        up = weight[positive] @ np.exp(-(scores[positive] + b))
        return up + weight[~positive] @ np.exp(p * (scores[~positive] + b)) / p

    b = p_classification_intercept(scores, positive, weight, p)
    assert cost(b) <= min(cost(b - 1e-4), cost(b + 1e-4))


def test_balanced_threshold_against_all_thresholds():
    rng = np.random.default_rng(1)
    scores, positive = rng.integers(0, 20, 60).astype(float), rng.random(60) < 0.4
    weight = rng.integers(0, 3, 60).astype(float)

    def error(t):
        above = scores > t
        return weight[positive & ~above].sum() / weight[positive].sum() + (
            weight[~positive & above].sum() / weight[~positive].sum()
        )

    best = min(error(t) for t in np.arange(-0.5, 20))
    assert error(balanced_threshold(scores, positive, weight)) == pytest.approx(best)
    assert balanced_threshold(np.ones(4), np.array([True, False, True, False]), None) == 1.0


def test_a_million_rows_large_p_large_scores():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000_000, 3)) * 1e4
    y = X[:, 0] + X[:, 1] + 2e4 * rng.normal(size=len(X)) > 0
    ranker = PNormPush(p=1024, max_iter=200).fit(X, y)
    assert np.isfinite(ranker.coef_).all()
    assert np.isfinite([ranker.objective_, ranker.dual_gap_, ranker.grad_norm_]).all()
    assert ranker.converged_


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.0], [1.0]], [1, 1], "only one class: 1$"),
        ([[0.0], [1.0]], ["a", "a"], "only one class: 'a'$"),
        ([[0.0], [1.0], [2.0]], [0, 1, 2], "Only binary classification is supported"),
        ([[np.nan], [1.0]], [0, 1], "NaN"),
        ([[np.inf], [1.0]], [0, 1], "infinity"),
        (np.empty((0, 1)), [], "0 sample"),
        ([[0.0], [1.0]], [0, 1, 1], r"\[2, 3\]"),
    ],
)
def test_bad_data(X, y, message):
    with pytest.raises(ValueError, match=message):
        PNormPush().fit(X, y)


def test_custom_price_is_taken(wdbc):
    X, y = wdbc
    cubic = Custom(lambda r: r**3, lambda r: 3 * r**2)
    direction = (
        PNormPush(price=cubic, alpha=0, max_iter=3000).fit(StandardScaler().fit_transform(X), y).coef_[0]
    )
    named = PNormPush(p=3, alpha=0).fit(StandardScaler().fit_transform(X), y).coef_[0]
    # R and (1/3)·log R have the same minimiser without a penalty
    np.testing.assert_allclose(direction, named, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("options", [{"loss": "hinge"}, {"groups": True}], ids=["hinge", "groups"])
def test_newton_without_a_hessian_is_refused(wdbc, options):
    X, y = wdbc
    groups = np.arange(len(X)) % 5 if options.pop("groups", False) else None
    with pytest.raises(InputError, match="Newton needs a Hessian"):
        PNormPush(solver="newton", **options).fit(X, y, groups=groups)


@pytest.mark.parametrize("offset", [1e6, 1e8])
@pytest.mark.parametrize("p", [4, np.inf])
def test_columns_far_from_zero(wdbc, offset, p):
    X, y = wdbc
    X = StandardScaler().fit_transform(X)
    near, far = (PNormPush(p=p, alpha=1e-2).fit(rows, y) for rows in (X, X + offset))
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-4, atol=1e-4)
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-7)


@pytest.mark.parametrize("solver", ["auto", "lbfgs"])
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e10 / 3])
def test_a_constant_column_does_no_harm(wdbc, solver, value):
    X, y = wdbc
    X = StandardScaler().fit_transform(X)
    plain = PNormPush(alpha=0, solver=solver).fit(X, y)
    more = PNormPush(alpha=0, solver=solver).fit(np.column_stack([X, np.full(len(X), value)]), y)
    np.testing.assert_allclose(more.coef_[:, :-1], plain.coef_, rtol=1e-3, atol=1e-3)


def test_two_separable_rows():
    with pytest.warns(SeparableWarning):
        ranker = PNormPush(alpha=0).fit([[0.0], [1.0]], [0, 1])
    assert ranker.coef_[0, 0] > 0


def test_small_units_still_rank(wdbc):
    X, y = wdbc
    X = StandardScaler().fit_transform(X)
    scores = PNormPush().fit(X * 1e-10, y).decision_function(X * 1e-10)
    assert metrics.auc(y, scores) > 0.9


def test_warm_start_with_other_features_starts_anew(wdbc):
    X, y = wdbc
    ranker = PNormPush(warm_start=True).fit(X, y).fit(X.iloc[:, :2], y)
    assert ranker.coef_.shape == (1, 2)


def test_groups_are_kept_whole_for_every_kind_of_cv(wdbc):
    X, y = wdbc
    for cv in (None, np.int64(3)):
        PNormPushCV(ps=[4], alphas=[1e-3], cv=cv).fit(X, y, groups=np.arange(len(X)) // 30)


def far_groups():
    """Two columns; the first orders most pairs of every group, with large differences."""
    rng = np.random.default_rng(0)
    y = np.tile([1, 0, 0, 0], 60)
    X = rng.normal(size=(len(y), 2)) + np.outer(y, [6.0, 0.0])
    return X, y, np.repeat(np.arange(60), 4)


def test_the_penalty_of_an_infinite_push_in_groups_sets_the_scale_alone():
    X, y, groups = far_groups()
    small, large = (PNormPush(p=np.inf, alpha=a).fit(X, y, groups=groups).coef_ for a in (1.0, 10.0))
    np.testing.assert_allclose(small, 10 * large, rtol=1e-4)


def test_a_search_in_groups_warns_once():
    X, y, groups = far_groups()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PNormPushCV(ps=[1, 4], alphas=[1e-6, 1e-4]).fit(X, y, groups=groups)
    assert [each.category for each in caught] == [SeparableWarning]


def test_an_infinite_push_of_a_lasso_says_that_its_coefficients_are_zero():
    rng = np.random.default_rng(0)
    with pytest.warns(CollapsedWarning, match="all coefficients are 0"):
        ranker = PNormPush(p=np.inf, alpha=1e-6, l1_ratio=0.5).fit(
            rng.normal(size=(200, 2)), np.arange(200) % 2
        )
    assert not ranker.coef_.any()


@pytest.mark.parametrize("ranker", [PNormPush(), LetorRanker(n_folds=2)], ids=str)
def test_columns_of_text_are_refused(ranker):
    X = pd.DataFrame({"amount": np.arange(20.0), "city": ["Rome", "Oslo"] * 10})
    with pytest.raises(ValueError, match="'Rome'"):
        ranker.fit(X, np.arange(20) % 2)
