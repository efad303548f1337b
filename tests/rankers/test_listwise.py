import numpy as np
import pytest
import sklearn
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold

from apexrank.errors import InputError
from apexrank.metrics import dcg, ndcg
from apexrank.objectives.listwise import (
    CosineTargets,
    SoftmaxTargets,
    SquaredTargets,
    ideal_dcg,
    softmax_of_lists,
)
from apexrank.rankers.listwise import ListwiseRanker
from apexrank_papers.retargeting.published import PublishedRetargeting
from tests.oracles import numerical_gradient

KINDS = [SquaredTargets, SoftmaxTargets, CosineTargets]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(240, 4)), rng.integers(0, 20, 240)
    y = np.digitize(X @ [1.0, -0.5, 0.3, 0.0] + 0.6 * rng.normal(size=240), [0.0, 1.0])
    y[groups == 3] = 0
    return X, y, groups


@pytest.fixture
def lists():
    rng = np.random.default_rng(1)
    groups = rng.permutation(np.repeat([5, 2, 8], [6, 4, 5]))
    targets, weight = rng.uniform(0, 2, 15), rng.uniform(0.3, 2, 15)
    targets[groups == 2] = 0
    targets[0] = weight[1] = 0
    weight[groups == 8] = 0
    return targets, groups, weight, rng.normal(size=15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("one_list", [False, True])
def test_gradients_and_hessians_by_finite_differences(lists, kind, one_list):
    targets, groups, weight, scores = lists
    objective = kind(targets, groups=None if one_list else groups, weight=weight)
    expected = numerical_gradient(lambda s: objective.value_and_grad(s)[0], scores, step=1e-3)
    np.testing.assert_allclose(objective.value_and_grad(scores)[1], expected, atol=1e-9)
    if objective.has_hessian:
        [(factor, diagonal, U, S)] = objective.hessian(scores)
        hessian = factor * (np.diag(diagonal) + (U @ S @ U.T).toarray())
        rows = [
            numerical_gradient(lambda s, i=i: objective.value_and_grad(s)[1][i], scores) for i in range(15)
        ]
        np.testing.assert_allclose(hessian, rows, atol=1e-8)
        assert np.linalg.eigvalsh(hessian)[0] > -1e-12


@pytest.mark.parametrize("kind", [SquaredTargets, SoftmaxTargets])
def test_offsets_are_the_best(lists, kind):
    """Value with the offset of each list found by a search over the divergence as defined."""
    targets, groups, weight, scores = lists

    def cost(beta):
        fit = scores + beta[np.searchsorted([2, 5, 8], groups)]
        if kind is SquaredTargets:
            return 0.5 * float((weight * (fit - targets) ** 2).sum())
        positive = targets > 0
        entropy = (weight * targets)[positive] @ (np.log(targets[positive]) - fit[positive])
        return float(entropy + (weight * (np.exp(fit) - targets)).sum())

    # the list of targets 0 has its best offset at −∞
    start = np.array([-60.0 if kind is SoftmaxTargets else 0.0, 0.0, 0.0])
    found = minimize(cost, start, method="BFGS", options={"gtol": 1e-9}).fun
    assert kind(targets, groups=groups, weight=weight).value_and_grad(scores)[0] == pytest.approx(
        found, abs=1e-9
    )


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repetitions(lists, kind):
    targets, groups, _, scores = lists
    times = np.random.default_rng(2).integers(0, 4, 15)
    again = np.repeat(np.arange(15), times)
    value, grad = kind(targets, groups=groups, weight=times).value_and_grad(scores)
    expected, slopes = kind(targets[again], groups=groups[again]).value_and_grad(scores[again])
    assert value == pytest.approx(expected)
    np.testing.assert_allclose(grad, np.bincount(again, slopes, 15), atol=1e-12)


@pytest.mark.parametrize("kind", [SquaredTargets, SoftmaxTargets])
def test_shifts_of_a_list_are_not_seen(lists, kind):
    targets, groups, weight, scores = lists
    objective = kind(targets, groups=groups, weight=weight)
    value, grad = objective.value_and_grad(scores)
    moved, slopes = objective.value_and_grad(scores + 7.0 * groups)
    assert objective.shift_invariant
    assert moved == pytest.approx(value)
    np.testing.assert_allclose(slopes, grad, atol=1e-12)


def test_cosine_is_the_cosine_of_long_scores():
    rng = np.random.default_rng(0)
    relevance, scores = rng.integers(0, 3, 8).astype(float), rng.normal(size=8)
    cosine = relevance @ scores / np.linalg.norm(relevance) / np.linalg.norm(scores)
    value, _ = CosineTargets(relevance).value_and_grad(1e6 * scores)
    assert value == pytest.approx(0.5 * (1 - cosine))
    assert not CosineTargets.shift_invariant


def test_ideal_dcg_is_the_dcg_of_the_best_order():
    rng = np.random.default_rng(0)
    y, groups, times = rng.integers(0, 4, 30), rng.integers(0, 3, 30), rng.integers(1, 4, 30)
    found = ideal_dcg(2.0**y - 1, groups, times.astype(float))
    for q in range(3):
        rows = groups == q
        expected = dcg(np.repeat(y[rows], times[rows]), np.repeat(y[rows], times[rows]))
        np.testing.assert_allclose(found[rows], expected)
    between = ideal_dcg(np.array([1.0]), None, np.array([1.5]))[0]
    assert between == pytest.approx(1 + 0.5 / np.log2(3))


def test_softmax_of_lists(data):
    _, y, groups = data
    found = softmax_of_lists(y.astype(float), groups, None)
    for q in np.unique(groups):
        np.testing.assert_allclose(found[groups == q], softmax(y[groups == q]))
    weighted = softmax_of_lists(np.array([800.0, 1.0, 2.0]), None, np.array([0.0, 1.0, 2.0]))
    np.testing.assert_allclose(weighted, [0, *np.exp([1, 2]) / (np.e + 2 * np.e**2)])


def test_pointwise_is_ridge(data):
    X, y, groups = data
    ours = ListwiseRanker("pointwise", alpha=2.0 / len(y)).fit(X, y, groups=groups)
    np.testing.assert_allclose(ours.coef_, Ridge(alpha=2.0).fit(X, y).coef_, rtol=1e-8)
    alpha = 2.0 / len(y)
    poisson = ListwiseRanker("pointwise", divergence="i-divergence", alpha=alpha, tol=1e-9).fit(X, y)
    theirs = PoissonRegressor(alpha=alpha, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(poisson.coef_, theirs.coef_, rtol=1e-5)


def test_listnet_is_its_cross_entropy(data):
    X, y, groups = data
    alpha = 0.5 / len(np.unique(groups))
    ranker = ListwiseRanker("listnet", alpha=alpha, tol=1e-9).fit(X, y, groups=groups)

    def cross_entropy(w):
        total = 0.25 * w @ w
        for q in np.unique(groups):
            rows = groups == q
            total -= softmax(y[rows].astype(float)) @ np.log(softmax(X[rows] @ w))
        return total

    found = minimize(cross_entropy, np.zeros(4), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(ranker.coef_, found.x, atol=1e-5)
    assert ranker.converged_
    assert ranker.dual_gap_ < 1e-9


def test_listnet_is_the_first_step_of_retargeting(data):
    X, y, groups = data
    some = groups != 3  # a list with one relevance matters only in ListNet
    alpha = 1 / len(np.unique(groups[some]))
    listnet = ListwiseRanker("listnet", alpha=alpha, tol=1e-9).fit(X[some], y[some], groups=groups[some])
    first = PublishedRetargeting("kl", max_alternations=1, start=np.exp(y), tol=1e-9)
    first.fit(X, y, groups=groups)
    np.testing.assert_allclose(first.coef_, listnet.coef_, rtol=1e-6)


def test_ndcg_consistent_targets(data):
    X, y, groups = data
    alpha = 0.5 / len(np.unique(groups))
    ranker = ListwiseRanker("ndcg_consistent", alpha=alpha).fit(X, y, groups=groups)
    target, centred = np.zeros(len(y)), X.copy()
    for q in np.unique(groups):
        rows = groups == q
        best = dcg(y[rows], y[rows], empty="zero")
        target[rows] = (2.0 ** y[rows] - 1) / best if best else 0.0
        target[rows] -= target[rows].mean()
        centred[rows] -= X[rows].mean(axis=0)
    expected = np.linalg.solve(centred.T @ centred + 0.5 * np.eye(4), centred.T @ target)
    np.testing.assert_allclose(ranker.coef_, expected, rtol=1e-8)


def test_rank_cosine_reaches_a_stationary_point(data):
    X, y, groups = data
    n = len(np.unique(groups))
    ranker = ListwiseRanker("rank_cosine", alpha=1e-3 / n, tol=1e-8).fit(X, y, groups=groups)

    def cost(w):
        total = 5e-4 * w @ w
        for q in np.unique(groups[y > 0]):
            rows = groups == q
            s, g = X[rows] @ w, y[rows]
            total += 0.5 * (1 - g @ s / np.linalg.norm(g) / np.sqrt(s @ s + 1))
        return total

    assert n * ranker.objective_ == pytest.approx(cost(ranker.coef_))
    assert np.abs(numerical_gradient(cost, ranker.coef_, step=1e-3)).max() < 1e-6
    assert np.isnan(ranker.dual_gap_)


@pytest.mark.parametrize("loss", ["pointwise", "listnet", "rank_cosine", "ndcg_consistent"])
@pytest.mark.parametrize("normalize", [False, True])
def test_every_loss_ranks(data, loss, normalize):
    X, y, groups = data
    alpha = 0.1 / (len(y) if loss == "pointwise" and not normalize else len(np.unique(groups)))
    ranker = ListwiseRanker(loss, alpha=alpha, normalize=normalize).fit(X, y, groups=groups)
    assert ranker.converged_
    assert ranker.score(X, y, groups=groups) > 0.9
    assert ranker.score(X, y, groups=groups) == pytest.approx(ndcg(y, ranker.predict(X), groups=groups))
    thin = ListwiseRanker(loss, alpha=alpha, normalize=normalize).fit(sparse.csr_array(X), y, groups=groups)
    np.testing.assert_allclose(thin.predict(X), ranker.predict(X), atol=1e-4)


def test_normalised_losses_weigh_groups_alike(data):
    X, y, groups = data
    weight = 1 / np.bincount(groups)[groups]
    alpha = 0.1 / len(np.unique(groups))
    ranker = ListwiseRanker("pointwise", normalize=True, alpha=alpha).fit(X, y, groups=groups)
    np.testing.assert_allclose(
        ranker.coef_, Ridge(alpha=0.1).fit(X, y, sample_weight=weight).coef_, rtol=1e-8
    )


def test_warm_start_and_routing(data):
    X, y, groups = data
    ranker = ListwiseRanker(warm_start=True).fit(X, y, groups=groups)
    cold = ranker.n_iter_
    assert ranker.fit(X, y, groups=groups).n_iter_ == 1 < cold
    with sklearn.config_context(enable_metadata_routing=True):
        request = ListwiseRanker().set_fit_request(groups=True).set_score_request(groups=True)
        search = GridSearchCV(request, {"alpha": [0.01, 1.0]}, cv=GroupKFold(3)).fit(X, y, groups=groups)
        assert search.score(X, y, groups=groups) > 0.9


@pytest.mark.parametrize("loss", ["pointwise", "listnet", "rank_cosine"])
def test_not_converging_is_said(data, loss):
    X, y, groups = data
    ranker = ListwiseRanker(loss, alpha=0.1, max_iter=1, solver="lbfgs")
    with pytest.warns(ConvergenceWarning, match="not converged after 1 iterations"):
        ranker.fit(X, y, groups=groups)
    assert not ranker.converged_


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"loss": "ndcg_consistent"}, [0, -1, 2], "Negative values"),
        ({"loss": "ndcg_consistent"}, [0, 1, 2000], "smaller grades"),
        ({"loss": "pointwise", "divergence": "i-divergence"}, [0, -1, 2], "must not be negative"),
        ({"loss": "rank_cosine"}, [0, 0, 0], "relevance other than 0"),
        (
            {"loss": "rank_cosine", "solver": "newton"},
            [0, 1, 2],
            "needs a Hessian, which this objective does not have",
        ),
        ({}, [0, np.nan, 2], "NaN"),
        ({}, None, "requires y"),
    ],
)
def test_bad_input(options, y, message):
    with pytest.raises(ValueError, match=message):
        ListwiseRanker(**options).fit([[0.0, 1.0], [1.0, 0.5], [2.0, 2.0]], y)


def test_bad_weights():
    with pytest.raises(InputError, match="weight 0"):
        SquaredTargets([1.0, 2.0], weight=[0.0, 0.0])
    with pytest.raises(InputError, match="one finite number >= 0 for each"):
        SquaredTargets([1.0, 2.0], weight=[1.0, -1.0])
