import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.optimize import minimize, nnls
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from apexrank.errors import InputError
from apexrank.metrics import ndcg
from apexrank.objectives.listwise import SoftmaxTargets
from apexrank.objectives.margins import level_offsets
from apexrank.objectives.retarget import Retarget
from apexrank.problem import ArrayBlocks
from apexrank.rankers import AdditiveRetargeting, CrucialPairsPush, ListwiseRanker
from apexrank.rankers.base import CollapsedWarning
from apexrank.rankers.kernel import KernelFeatures
from apexrank.rankers.retarget import MonotoneRetargeting
from apexrank_papers.retargeting.published import PublishedRetargeting


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(240, 4)), rng.integers(0, 20, 240)
    quality = X @ [1.0, -0.5, 0.3, 0.0] + 0.6 * rng.normal(size=240)
    y = np.digitize(quality, [0.0, 1.0])
    y[groups == 3] = 1  # nothing to learn there
    return X, y, groups


def n_lists(y, groups):
    """Number of groups with different relevances, over which the objective is a mean."""
    return sum(np.ptp(y[groups == q]) > 0 for q in np.unique(groups))


def fit_by_nnls(X, y, groups, offset, alpha):
    """``min ½|Xw − z|² + α/2|w|²`` over w and z, every pair of rows of a group a constraint, by the dual of the QP.

    w is eliminated: ``½zᵀMz`` with ``M = I − X(XᵀX + α)⁻¹Xᵀ = LLᵀ``, and λ ≥ 0 minimises ``|L⁻¹Dᵀλ − Lᵀo|``.
    """
    above = (y[:, None] > y[None, :]) & (groups[:, None] == groups[None, :])
    i, j = np.nonzero(above)
    D = np.zeros((len(i), len(y)))
    D[np.arange(len(i)), i], D[np.arange(len(i)), j] = 1, -1
    ridge = np.linalg.solve(X.T @ X + alpha * np.eye(X.shape[1]), X.T)
    L = np.linalg.cholesky(np.eye(len(y)) - X @ ridge)
    multipliers, _ = nnls(solve_triangular(L, D.T, lower=True), L.T @ offset, maxiter=100_000)
    z = solve_triangular(L.T, solve_triangular(L, D.T @ multipliers, lower=True))
    w = ridge @ z
    return w, 0.5 * float(((X @ w - z) ** 2).sum() + alpha * w @ w)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("offsets", ["sqrt", "linear"])
def test_squared_fit_is_the_joint_qp(data, solver, offsets):
    X, y, groups = (part[:60] for part in data)
    n = n_lists(y, groups)
    ranker = MonotoneRetargeting(offsets=offsets, alpha=0.3 / n, solver=solver, tol=1e-9)
    ranker.fit(X, y, groups=groups)
    w, value = fit_by_nnls(X, y, groups, level_offsets(y.astype(float), offsets), 0.3)
    np.testing.assert_allclose(ranker.coef_, w, atol=1e-6)
    assert n * ranker.objective_ == pytest.approx(value, rel=1e-9)
    assert ranker.converged_


def fit_bounded_by_cvxpy(X, y, groups, offset, alpha, low, high):
    """``min ½|Xw − z|² + α/2|w|²`` over w and z between the bounds, every pair of rows of a group a constraint."""
    cp = pytest.importorskip("cvxpy", reason="cvxpy solves the quadratic programme")
    i, j = np.nonzero((y[:, None] > y[None, :]) & (groups[:, None] == groups[None, :]))
    told = np.array([np.ptp(y[groups == q]) > 0 for q in groups])
    w, z = cp.Variable(X.shape[1]), cp.Variable(len(y))
    cost = 0.5 * cp.sum_squares((X @ w - z)[told]) + 0.5 * alpha * cp.sum_squares(w)
    held = [z[i] - z[j] >= offset[i] - offset[j], z[told] >= low, z[told] <= high]
    value = cp.Problem(cp.Minimize(cost), held).solve(solver="CLARABEL")
    return w.value, value


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("far", [0.0, 30.0])
def test_bounded_fit_is_the_joint_qp(data, solver, far):
    """Rows far from zero, and a column of ones, are not shifted: with bounds a shift of the scores matters."""
    X, y, groups = (part[:60] for part in data)
    X, n = np.column_stack([X + far, np.ones(60)]), n_lists(y, groups)
    options = {"offsets": "linear", "alpha": 0.3 / n, "bounds": (1.0, 3.5)}
    ranker = MonotoneRetargeting(solver=solver, tol=1e-9, max_iter=5000, **options)
    ranker.fit(X, y, groups=groups)
    w, value = fit_bounded_by_cvxpy(X, y, groups, y, 0.3, 1.0, 3.5)
    np.testing.assert_allclose(ranker.predict(X), X @ w, atol=1e-4)
    assert n * ranker.objective_ == pytest.approx(value, rel=1e-7)
    assert 0 <= ranker.dual_gap_ < 1e-6
    told = np.array([np.ptp(y[groups == q]) > 0 for q in groups])
    assert ranker.targets_[told].min() >= 1.0
    assert ranker.targets_[told].max() <= 3.5


@pytest.mark.parametrize("max_iter", [1, 2])
def test_the_gap_bounds_the_distance_to_a_bounded_minimum(data, max_iter):
    X, y, groups = data
    options = {"bounds": (0.5, 2.5), "alpha": 0.01}
    best = MonotoneRetargeting(tol=1e-8, solver="newton", **options).fit(X, y, groups=groups).objective_
    with pytest.warns(ConvergenceWarning):
        early = MonotoneRetargeting(max_iter=max_iter, solver="lbfgs", **options).fit(X, y, groups=groups)
    assert 0 < early.objective_ - best <= early.dual_gap_


def test_bounds_on_every_kind_of_rows(data):
    X, y, groups = data
    X = X.round(2) * (np.abs(X) > 0.5) + 3
    options = {"bounds": (1.0, 2.5), "alpha": 0.05, "tol": 1e-9}
    expected = MonotoneRetargeting(**options).fit(X, y, groups=groups)
    for rows in (sparse.csr_array(X), np.asfortranarray(X), ArrayBlocks(X, y, groups=groups, rows=50)):
        again = MonotoneRetargeting(**options)
        again = again.fit(rows, None) if isinstance(rows, ArrayBlocks) else again.fit(rows, y, groups=groups)
        np.testing.assert_allclose(again.coef_, expected.coef_, atol=1e-6)
    kernel = MonotoneRetargeting(kernel="linear", **options).fit(X, y, groups=groups)
    np.testing.assert_allclose(kernel.predict(X), expected.predict(X), atol=1e-6)
    wide = np.column_stack([X, np.zeros((len(X), 300))])  # fewer rows than columns: solved in their span
    np.testing.assert_allclose(
        MonotoneRetargeting(**options).fit(wide, y, groups=groups).coef_[:4], expected.coef_, atol=1e-6
    )
    online = MonotoneRetargeting(**options)
    for _ in range(300):
        online.partial_fit(X, y, groups=groups)
    np.testing.assert_allclose(online.predict(X), expected.predict(X), atol=0.02)
    with pytest.raises(InputError, match="set `bounds=None`"):
        AdditiveRetargeting(bounds=(0, 3)).fit(X, y, groups=groups)


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_the_gap_bounds_the_distance_to_the_minimum(data, max_iter):
    X, y, groups = data
    best = MonotoneRetargeting(tol=1e-10).fit(X, y, groups=groups).objective_
    ranker = MonotoneRetargeting(max_iter=max_iter, solver="lbfgs")
    with pytest.warns(ConvergenceWarning, match="not converged"):
        ranker.fit(X, y, groups=groups)
    assert not ranker.converged_
    assert 0 < ranker.objective_ - best <= ranker.dual_gap_


@pytest.mark.parametrize("divergence", ["kl", "i-divergence", "shifted-i-divergence"])
@pytest.mark.parametrize("joint", [True, False])
def test_other_divergences_reach_a_minimum(data, divergence, joint):
    X, y, groups = data
    options = {"divergence": divergence, "joint_convexity": joint}
    alpha = 0.3 / n_lists(y, groups)
    ranker = MonotoneRetargeting(alpha=alpha, tol=1e-9, **options).fit(X, y, groups=groups)
    objective = Retarget(y, groups=groups, offsets="sqrt", **options)

    def cost(w):
        value, slope = objective.value_and_grad(X @ w)
        return value + 0.15 * w @ w, X.T @ slope + 0.3 * w

    found = minimize(cost, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(ranker.coef_, found.x, atol=1e-6)
    assert np.isnan(ranker.dual_gap_) == (not joint)
    assert ranker.score(X, y, groups=groups) > 0.9


def test_targets_are_ordered_and_near(data):
    X, y, groups = data
    n = n_lists(y, groups)
    ranker = MonotoneRetargeting(alpha=1.0 / n, offsets="linear").fit(X, y, groups=groups)
    expected = Retarget(y, groups=groups).targets(ranker.predict(X)).natural
    np.testing.assert_allclose(ranker.targets_, expected, atol=1e-10)
    above = (y[:, None] > y[None, :]) & (groups[:, None] == groups[None, :])
    i, j = np.nonzero(above)
    assert (ranker.targets_[i] - ranker.targets_[j] - (y[i] - y[j])).min() > -1e-9
    cost = 0.5 * ((ranker.predict(X) - ranker.targets_) ** 2).sum() + 0.5 * ranker.coef_ @ ranker.coef_
    assert n * ranker.objective_ == pytest.approx(cost)


def test_score_is_ndcg(data):
    X, y, groups = data
    ranker = MonotoneRetargeting().fit(X, y, groups=groups)
    assert ranker.score(X, y, groups=groups) == pytest.approx(ndcg(y, ranker.predict(X), groups=groups))
    with pytest.warns(UserWarning, match="all rows as one list"):
        assert ranker.score(X, y) == pytest.approx(ndcg(y, ranker.predict(X)))
    assert ranker.score(X, y - 5, groups=groups) == pytest.approx(
        ndcg(y - y.min(), ranker.predict(X), groups=groups)
    )


def test_kinds_of_input_agree(data):
    X, y, groups = data
    X = X.round(2) * (np.abs(X) > 0.5)
    expected = MonotoneRetargeting().fit(X, y, groups=groups).predict(X)
    names = [f"f{j}" for j in range(4)]
    text = np.array([f"query {q}" for q in groups])
    for rows in (
        sparse.csr_array(X),
        sparse.csc_matrix(X),
        np.asfortranarray(X),
        pl.DataFrame(X, schema=names),
    ):
        np.testing.assert_allclose(
            MonotoneRetargeting().fit(rows, y, groups=text).predict(rows), expected, atol=1e-8
        )
    frame = pd.DataFrame(X, columns=names)
    ranker = MonotoneRetargeting().fit(frame, pd.Series(y), groups=pd.Series(groups))
    np.testing.assert_allclose(ranker.predict(frame), expected, atol=1e-8)
    assert ranker.feature_names_in_.tolist() == names
    single = X.astype(np.float32)
    np.testing.assert_allclose(
        MonotoneRetargeting().fit(single, y, groups=groups).predict(single), expected, atol=1e-4
    )


def test_columns_far_from_zero(data):
    X, y, groups = data
    near = MonotoneRetargeting(alpha=0.1).fit(X, y, groups=groups)
    far = MonotoneRetargeting(alpha=0.1).fit(X + 1e7, y, groups=groups)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    "ranker", [MonotoneRetargeting(), MonotoneRetargeting("kl"), ListwiseRanker(), CrucialPairsPush()]
)
def test_columns_constant_in_every_list_get_exactly_zero(data, ranker):
    X, y, groups = data
    flat = np.random.default_rng(1).normal(size=20)[groups]
    found = clone(ranker).fit(np.column_stack([X, 50 * flat, 1e-4 * X[:, 0]]), y, groups=groups).coef_
    assert found[4] == 0
    assert (found[[0, 1, 2, 3, 5]] != 0).all()


def test_groups_in_any_order_and_groups_that_say_nothing(data):
    X, y, groups = data
    order = np.random.default_rng(1).permutation(len(y))
    expected = MonotoneRetargeting().fit(X, y, groups=groups)
    np.testing.assert_allclose(
        MonotoneRetargeting().fit(X[order], y[order], groups=groups[order]).coef_, expected.coef_, rtol=1e-8
    )
    some = groups != 3
    without = MonotoneRetargeting().fit(X[some], y[some], groups=groups[some])
    np.testing.assert_allclose(without.coef_, expected.coef_, rtol=1e-8)
    assert expected.n_groups_ == len(np.unique(groups)) - 1
    alone = np.arange(1000, 1005)  # one-row groups
    more = MonotoneRetargeting().fit(
        np.vstack([X, X[:5]]), np.append(y, y[:5]), groups=np.append(groups, alone)
    )
    np.testing.assert_allclose(more.coef_, expected.coef_, rtol=1e-8)


def test_group_weights(data):
    X, y, groups = data
    heavy = np.where(groups < 10, 3.0, 1.0)
    low = groups < 10
    again = [np.concatenate([part, part[low], part[low]]) for part in (X, y)]
    names = np.concatenate([groups, groups[low] + 100, groups[low] + 200])
    one = MonotoneRetargeting("kl").fit(X, y, groups=groups, group_weight=heavy)
    two = MonotoneRetargeting("kl").fit(*again, groups=names)
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-6)


def test_one_list_by_default(data):
    X, y, _ = data
    np.testing.assert_allclose(
        MonotoneRetargeting().fit(X, y).coef_, MonotoneRetargeting().fit(X, y, groups=np.zeros(len(y))).coef_
    )


def test_warm_start(data):
    X, y, groups = data
    ranker = MonotoneRetargeting(warm_start=True).fit(X, y, groups=groups)
    cold, coef = ranker.n_iter_, ranker.coef_
    ranker.fit(X, y, groups=groups)
    assert ranker.n_iter_ == 1 < cold
    np.testing.assert_allclose(ranker.coef_, coef, rtol=1e-9)


def test_routing_in_a_grid_search(data):
    X, y, groups = data
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = MonotoneRetargeting().set_fit_request(groups=True).set_score_request(groups=True)
        search = GridSearchCV(ranker, {"alpha": [0.1, 1e5]}, cv=GroupKFold(4)).fit(X, y, groups=groups)
        fold_scores = []
        for train, test in GroupKFold(4).split(X, y, groups):
            model = MonotoneRetargeting(alpha=0.1).fit(X[train], y[train], groups=groups[train])
            fold_scores.append(ndcg(y[test], model.predict(X[test]), groups=groups[test]))
        np.testing.assert_allclose(search.cv_results_["mean_test_score"][0], np.mean(fold_scores))
        pipe = make_pipeline(StandardScaler(), ranker)
        assert pipe.fit(X, y, groups=groups).score(X, y, groups=groups) > 0.9


# ---------------------------------------------------------------- kernels


def test_linear_kernel_is_the_linear_fit(data):
    X, y, groups = data
    linear = MonotoneRetargeting(alpha=0.5).fit(X, y, groups=groups)
    ranker = MonotoneRetargeting(alpha=0.5, kernel="linear").fit(X, y, groups=groups)
    new = np.random.default_rng(3).normal(size=(7, 4))
    np.testing.assert_allclose(ranker.predict(new), linear.predict(new), atol=1e-7)
    np.testing.assert_allclose(X.T @ ranker.dual_coef_, linear.coef_, atol=1e-7)
    assert ranker.objective_ == pytest.approx(linear.objective_, rel=1e-10)
    assert (ranker.dual_coef_ != 0).sum() == 4  # the rank of the kernel matrix
    assert not hasattr(ranker, "coef_")


@pytest.mark.parametrize("divergence", ["squared", "kl"])
def test_rbf_kernel_minimises_over_all_coefficients(data, divergence):
    X, y, groups = (part[:80] for part in data)
    alpha = 0.5 / n_lists(y, groups)
    ranker = MonotoneRetargeting(divergence, alpha=alpha, kernel="rbf", gamma=0.7, tol=1e-8).fit(
        X, y, groups=groups
    )
    K = rbf_kernel(X, gamma=0.7)
    objective = Retarget(y, groups=groups, divergence=divergence, offsets="sqrt", joint_convexity=True)
    np.testing.assert_allclose(K @ ranker.dual_coef_, ranker.predict(X), atol=1e-8)
    _, slope = objective.value_and_grad(K @ ranker.dual_coef_)
    # the gradient K·(slope + α·a) vanishes, so that the minimum over all a is reached
    assert np.abs(K @ (slope + 0.5 * ranker.dual_coef_)).max() < 1e-6


def test_ways_to_give_a_kernel(data):
    X, y, groups = data
    train, test = np.arange(200), np.arange(200, 240)
    named = MonotoneRetargeting(kernel="rbf", gamma=0.5).fit(X[train], y[train], groups=groups[train])
    expected = named.predict(X[test])
    K = rbf_kernel(X, X[train], gamma=0.5)
    given = MonotoneRetargeting(kernel="precomputed").fit(K[train], y[train], groups=groups[train])
    np.testing.assert_allclose(given.predict(K[test]), expected, atol=1e-8)

    def kernel(a, b, gamma):
        return np.exp(-gamma * ((a - b) ** 2).sum())

    called = MonotoneRetargeting(kernel=kernel, kernel_params={"gamma": 0.5})
    called.fit(X[:60], y[:60], groups=groups[:60])
    same = clone(named).fit(X[:60], y[:60], groups=groups[:60])
    np.testing.assert_allclose(called.predict(X[test]), same.predict(X[test]), atol=1e-8)
    rows = sparse.csr_array(X)
    np.testing.assert_allclose(
        clone(named).fit(rows[:200], y[train], groups=groups[train]).predict(rows[200:]), expected, atol=1e-6
    )


def test_kernel_features():
    rng = np.random.default_rng(0)
    low_rank = rng.normal(size=(30, 3))
    features = KernelFeatures(low_rank @ low_rank.T)
    assert features.Z.shape == (30, 3)
    np.testing.assert_allclose(features.Z @ features.Z.T, low_rank @ low_rank.T, atol=1e-12)
    w = rng.normal(size=3)
    np.testing.assert_allclose(low_rank @ low_rank.T @ features.dual(w), features.Z @ w, atol=1e-10)
    for bad, message in [
        (np.zeros((3, 3)), "zero for all rows"),
        (np.diag([1.0, -1.0]), "positive semi-definite"),
        (np.ones((2, 3)), "must be square"),
    ]:
        with pytest.raises(InputError, match=message):
            KernelFeatures(bad)


# ---------------------------------------------------------------- as published


@pytest.mark.parametrize("divergence", ["squared", "kl", "i-divergence"])
@pytest.mark.parametrize("order", ["hidden", "blocks"])
def test_alternations_lower_the_cost(data, divergence, order):
    X, y, groups = data
    ranker = PublishedRetargeting(divergence, order=order, max_alternations=12, alpha=0.1, tol=1e-9)
    ranker.fit(X, y, groups=groups)
    assert ranker.coef_path_.shape == (12, 4)
    np.testing.assert_array_equal(ranker.coef_path_[-1], ranker.coef_)
    assert (np.diff(ranker.history_) < 0).all()
    assert ranker.n_iter_ == 12
    assert ndcg(y, X @ ranker.coef_path_[2], groups=groups) > 0.9
    for q in np.unique(groups[groups != 3]):
        rows = groups == q
        targets, level = ranker.targets_[rows], y[rows]
        assert targets.sum() == pytest.approx(1)
        assert all(
            targets[level == l].max() <= targets[level == l + 1].min(initial=1) + 1e-12 for l in (0, 1)
        )
        if order == "blocks":
            assert all(np.ptp(targets[level == l]) < 1e-12 for l in np.unique(level))


@pytest.mark.parametrize("divergence", ["squared", "kl"])
def test_alternations_collapse(data, divergence):
    """The cost has the trivial minimum of equal targets and w = 0, and the path ends there."""
    X, y, groups = data
    ranker = PublishedRetargeting(divergence, max_alternations=400, alpha=1.0)
    with pytest.warns(CollapsedWarning, match="without margins they vanish"):
        ranker.fit(X, y, groups=groups)
    size = np.abs(ranker.coef_path_).max(axis=1)
    assert size[-1] < 1e-5 * size[0]
    assert ranker.objective_ < 1e-9 * ranker.history_[0]
    sizes = np.bincount(groups)[groups]
    np.testing.assert_allclose(ranker.targets_[groups != 3], 1 / sizes[groups != 3], rtol=1e-4)


def test_it_is_not_the_ridge_that_collapses(data):
    """With almost no penalty the scores shrink as well, because the targets do."""
    X, y, groups = data
    ranker = PublishedRetargeting(max_alternations=60, alpha=1e-12).fit(X, y, groups=groups)
    size = np.abs(ranker.coef_path_).max(axis=1)
    assert (np.diff(size) < 0).all()
    assert size[-1] < 0.2 * size[0]


def test_first_alternations_are_the_likelihoods(data):
    X, y, groups = data
    some = groups != 3
    X, y, groups = X[some], y[some], groups[some]
    share = y / np.bincount(groups, y)[groups]

    def fitted(divergence):
        return PublishedRetargeting(divergence, max_alternations=1, alpha=0.1, tol=1e-9).fit(
            X, y, groups=groups
        )

    def least(objective):
        def cost(w):
            value, slope = objective.value_and_grad(X @ w)
            return value + 0.05 * w @ w, X.T @ slope + 0.1 * w

        return minimize(cost, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-9}).x

    np.testing.assert_allclose(fitted("kl").coef_, least(SoftmaxTargets(share, groups=groups)), atol=1e-6)
    np.testing.assert_allclose(fitted("i-divergence").coef_, least(SoftmaxTargets(share)), atol=1e-6)
    means = (
        np.array([np.bincount(groups, column) for column in X.T]).T
        / np.maximum(np.bincount(groups), 1)[:, None]
    )
    centred = X - means[groups]
    ridge = np.linalg.solve(centred.T @ centred + 0.1 * np.eye(4), centred.T @ share)
    np.testing.assert_allclose(fitted("squared").coef_, ridge, atol=1e-8)


def test_i_divergence_is_kl_for_one_list(data):
    X, y, _ = data
    one, two = (
        PublishedRetargeting(d, max_alternations=4, tol=1e-9).fit(X, y) for d in ("kl", "i-divergence")
    )
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-6)


def test_starts(data):
    X, y, groups = data
    options = {"max_alternations": 1}
    named = PublishedRetargeting(start="gain", **options).fit(X, y, groups=groups)
    array = PublishedRetargeting(start=2.0**y - 1, **options).fit(X, y, groups=groups)
    function = PublishedRetargeting(start=lambda r: 2.0**r - 1, **options).fit(X, y, groups=groups)
    np.testing.assert_allclose(array.coef_, named.coef_)
    np.testing.assert_allclose(function.coef_, named.coef_)
    other = PublishedRetargeting(start="softmax", **options).fit(X, y, groups=groups)
    assert np.abs(other.coef_ - named.coef_).max() > 1e-3


# ---------------------------------------------------------------- online


def test_partial_fit_takes_groups_in_their_order(data):
    X, y, groups = data
    whole = MonotoneRetargeting(alpha=0.05).partial_fit(X, y, groups=groups)
    parts = MonotoneRetargeting(alpha=0.05)
    for q in dict.fromkeys(groups.tolist()):
        parts.partial_fit(X[groups == q], y[groups == q])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-10)
    assert whole.online_.rounds == len(np.unique(groups)) - 1
    rows = sparse.csr_array(X)
    thin = MonotoneRetargeting(alpha=0.05).partial_fit(rows, y, groups=groups)
    assert ndcg(y, thin.predict(X), groups=groups) > 0.85


@pytest.mark.parametrize("divergence", ["squared", "kl"])
def test_many_passes_approach_the_batch_fit(data, divergence):
    X, y, groups = data
    ranker = MonotoneRetargeting(divergence, alpha=0.5)
    for _ in range(30):
        ranker.partial_fit(X, y, groups=groups)
    batch = MonotoneRetargeting(divergence, alpha=0.5).fit(X, y, groups=groups)
    first = MonotoneRetargeting(divergence, alpha=0.5).partial_fit(X, y, groups=groups)
    error = np.linalg.norm(ranker.coef_ - batch.coef_)
    assert error < 0.01 * np.linalg.norm(batch.coef_)
    assert error < 0.2 * np.linalg.norm(first.coef_ - batch.coef_)


def test_partial_fit_goes_on_after_fit(data):
    X, y, groups = data
    ranker = MonotoneRetargeting(alpha=1.0).fit(X, y, groups=groups)
    coef, n = ranker.coef_.copy(), ranker.n_groups_
    ranker.partial_fit(X[:12], y[:12])
    assert ranker.online_.rounds == n + 1
    assert 0 < np.abs(ranker.coef_ - coef).max() < 0.2 * np.abs(coef).max()
    ranker.fit(X, y, groups=groups)
    assert not hasattr(ranker, "online_")


def test_partial_fit_of_nothing_to_learn():
    ranker = MonotoneRetargeting().partial_fit([[1.0, 2.0], [3.0, 4.0]], [1, 1])
    np.testing.assert_array_equal(ranker.coef_, 0)
    assert ranker.online_.rounds == 0
    weighted = MonotoneRetargeting().partial_fit([[1.0], [3.0]], [0, 1], sample_weight=[1, 0])
    assert weighted.online_.rounds == 0


def test_partial_fit_of_a_list_without_a_margin(data):
    """Levels with equal offsets still have to be ordered, and other lists have margins."""
    X, y, groups = data
    ranker = MonotoneRetargeting(offsets="binary").partial_fit(X, y, groups=groups)
    w = ranker.online_.w
    lists = 1 + (X[:30] @ w < 0).astype(int)  # the wrong way round
    ranker.partial_fit(X[:30], lists)
    assert np.abs(ranker.online_.w - w).max() > 1e-3


def test_partial_fit_leaves_out_what_has_no_weight(data):
    X, y, groups = data
    weight = np.where(groups < 10, 0.0, 2.0)
    some = groups >= 10
    one = MonotoneRetargeting().partial_fit(X, y, groups=groups, group_weight=weight)
    two = MonotoneRetargeting().partial_fit(X[some], y[some], groups=groups[some], group_weight=weight[some])
    np.testing.assert_allclose(one.coef_, two.coef_)
    three = MonotoneRetargeting().partial_fit(X, y, groups=groups, sample_weight=weight)
    np.testing.assert_allclose(three.coef_, two.coef_)


def test_no_partial_fit_with_a_kernel():
    ranker = MonotoneRetargeting(kernel="rbf")
    assert not hasattr(ranker, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit"):
        ranker.partial_fit([[0.0], [1.0]], [0, 1])


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({}, [1, 1, 1], "no pair to rank"),
        ({}, [0, np.nan, 1], "NaN"),
        ({}, None, "requires y"),
        ({"offsets": "binary"}, [1, 2, 3], "`offsets` that differ between levels"),
        ({"kernel": "precomputed"}, [0, 1, 2], "must be square"),
    ],
)
def test_bad_input(options, y, message):
    with pytest.raises(ValueError, match=message):
        MonotoneRetargeting(**options).fit([[0.0, 1.0], [1.0, 0.5], [2.0, 2.0]], y)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"max_alternations": 0}, [0, 1, 2], "max_alternations"),
        ({}, [0, -1, 2], "start='softmax'"),
        ({"start": "middle"}, [0, 1, 2], "unknown `start`"),
        ({"start": [1, 2]}, [0, 1, 2], "one number per row"),
    ],
)
def test_bad_input_of_alternations(options, y, message):
    with pytest.raises(ValueError, match=message):
        PublishedRetargeting(**options).fit([[0.0, 1.0], [1.0, 0.5], [2.0, 2.0]], y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "`alpha`"),
        ({"margin": 0.0}, "`margin`"),
        ({"alpha": "1"}, "'alpha'"),
    ],
)
def test_bad_input_of_partial_fit(options, message):
    with pytest.raises(ValueError, match=message):
        MonotoneRetargeting(**options).partial_fit([[0.0], [1.0]], [0, 1])


def test_kernels_have_a_largest_size(data, monkeypatch):
    X, y, groups = data
    monkeypatch.setattr("apexrank.rankers.kernel.MOST_ROWS_FOR_KERNEL", 100)
    with pytest.raises(InputError, match="240 x 240 rows is too large: fit at most 100"):
        MonotoneRetargeting(kernel="rbf").fit(X, y, groups=groups)


def test_without_a_penalty(data):
    X, y, groups = data
    ranker = MonotoneRetargeting(alpha=0.0).fit(X, y, groups=groups)
    assert ranker.converged_
    assert np.isnan(ranker.dual_gap_)
    small = MonotoneRetargeting(alpha=1e-9).fit(X, y, groups=groups)
    np.testing.assert_allclose(ranker.coef_, small.coef_, rtol=1e-5)


# Units, weights and streams that a fit must not depend on


@pytest.fixture(scope="module")
def lists():
    """Forty lists of ten rows."""
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(400, 5)), np.repeat(np.arange(40), 10)
    y = np.digitize(X @ [1, -0.5, 0.3, 0, 0] + rng.normal(size=400), [0, 1])
    return X, y, groups


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton"])
@pytest.mark.parametrize("margin", [1e-10, 1e-6, 1e6, 1e10])
def test_the_margin_is_a_unit_of_the_scores(lists, solver, margin):
    X, y, groups = lists
    unit = MonotoneRetargeting(solver="newton").fit(X, y, groups=groups).coef_
    ranker = MonotoneRetargeting(margin=margin, solver=solver).fit(X, y, groups=groups)
    assert ranker.converged_
    np.testing.assert_allclose(ranker.coef_ / margin, unit, rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-8, 1e4, 1e9])
def test_regression_on_targets_of_any_size(lists, scale):
    from sklearn.linear_model import Ridge

    from apexrank.rankers.listwise import ListwiseRanker

    X, y, groups = lists
    ranker = ListwiseRanker("pointwise", alpha=1 / len(y), solver="lbfgs").fit(X, scale * y, groups=groups)
    np.testing.assert_allclose(ranker.coef_, Ridge(alpha=1.0).fit(X, scale * y).coef_, rtol=1e-4)


def test_what_lists_have_in_common_is_no_unit(lists):
    X, y, groups = lists
    expected = MonotoneRetargeting(solver="newton").fit(X, y, groups=groups).coef_
    far = X + 1e4 * np.random.default_rng(1).normal(size=(40, 5))[groups]
    for solver in ("newton", "lbfgs"):
        found = MonotoneRetargeting(solver=solver).fit(far, y, groups=groups).coef_
        np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("divergence", ["kl", "i-divergence"])
def test_a_row_of_little_weight_has_little_say(lists, divergence):
    X, y, groups = lists
    ranker = MonotoneRetargeting(divergence, alpha=0.1)
    whole = ranker.fit(X, y, groups=groups).coef_.copy()
    little = np.ones(400)
    little[3] = 1e-4
    np.testing.assert_allclose(
        ranker.fit(X, y, groups=groups, sample_weight=little).coef_, whole, rtol=0.05, atol=0.005
    )
    if divergence == "kl":  # a common factor of a list's weights does not change a distribution
        tenth = np.where(groups == 0, 0.1, 1.0)
        np.testing.assert_allclose(
            ranker.fit(X, y, groups=groups, sample_weight=tenth).coef_, whole, rtol=1e-6
        )


def test_streams_far_from_zero_and_sparse_ones(lists):
    X, y, groups = lists
    near = MonotoneRetargeting().partial_fit(X, y, groups=groups).coef_
    far = MonotoneRetargeting().partial_fit(X + 1e6, y, groups=groups).coef_
    np.testing.assert_allclose(far, near, rtol=1e-6)
    thin = np.where(np.abs(X) > 1, X, 0.0)
    dense = MonotoneRetargeting().partial_fit(thin, y, groups=groups).coef_
    found = MonotoneRetargeting().partial_fit(sparse.csr_array(thin), y, groups=groups).coef_
    np.testing.assert_allclose(found, dense, rtol=1e-9)


def test_a_stream_drops_what_fit_certified(lists):
    X, y, groups = lists
    ranker = MonotoneRetargeting().fit(X, y, groups=groups)
    ranker.partial_fit(X[:10], y[:10])
    for name in ("dual_gap_", "objective_", "converged_", "targets_", "history_"):
        assert not hasattr(ranker, name)
    assert ranker.online_.rounds == 41
    ranker.partial_fit(X[10:20], y[10:20])
    assert ranker.online_.rounds == 42


def test_a_fault_in_one_group_leaves_no_steps_behind(lists):
    X, y, groups = lists
    ranker = MonotoneRetargeting().partial_fit(X[:50], y[:50], groups=groups[:50])
    before, weight = ranker.coef_.copy(), np.ones(50)
    weight[45] = 2.0
    with pytest.raises(InputError, match="the same for all rows of a group"):
        ranker.partial_fit(X[50:100], y[50:100], groups=groups[50:100], group_weight=weight)
    np.testing.assert_array_equal(ranker.coef_, before)
    assert ranker.online_.rounds == 5
    fresh = MonotoneRetargeting(order="bad")
    with pytest.raises(ValueError, match="order"):
        fresh.partial_fit(X, y, groups=groups)
    assert not hasattr(fresh, "online_")


def test_streams_need_offsets_that_differ(lists):
    X, y, groups = lists
    with pytest.raises(InputError, match="equal scores of all rows"):
        MonotoneRetargeting(offsets=[0.0, 0.0, 0.0]).partial_fit(X, y, groups=groups)


def test_softmax_starts_are_per_group(lists):
    X, y, groups = lists
    ranker = PublishedRetargeting("kl", max_alternations=1, start="softmax")
    base = ranker.fit(X, y, groups=groups).coef_.copy()
    shifted = y + np.where(groups % 2, 2000, 0)
    np.testing.assert_allclose(ranker.fit(X, shifted, groups=groups).coef_, base, rtol=1e-6)


def test_a_fitted_kernel_stays_until_the_next_fit(lists):
    X, y, groups = lists
    ranker = MonotoneRetargeting(kernel="rbf").fit(X, y, groups=groups)
    before = ranker.predict(X[:5])
    np.testing.assert_array_equal(ranker.set_params(kernel=None).predict(X[:5]), before)
    linear = MonotoneRetargeting().partial_fit(X, y, groups=groups)
    np.testing.assert_array_equal(ranker.partial_fit(X, y, groups=groups).coef_, linear.coef_)
    assert not hasattr(ranker, "dual_coef_")


@pytest.mark.parametrize("ranker", [MonotoneRetargeting(), ListwiseRanker()])
def test_a_score_without_the_groups_of_fit_warns(data, ranker):
    X, y, groups = data
    ranker.fit(X, y, groups=groups)
    with pytest.warns(UserWarning, match="ranks all rows as one list: pass groups"):
        pooled = ranker.score(X, y)
    assert pooled == ndcg(y, ranker.predict(X))
    assert ranker.score(X, y, groups=groups) != pooled
    assert ranker.fit(X, y).score(X, y) > 0  # one list in both: nothing to warn about
