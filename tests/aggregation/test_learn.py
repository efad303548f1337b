"""Learnt ranker weights: likelihoods against all orders of a few documents, the minimum against other solvers."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import combinations, permutations

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils import Bunch

from apexrank.aggregation.learn import LovaszAggregator, list_points
from apexrank.aggregation.rank_aggregation import aggregate
from apexrank.datasets import Fold
from apexrank.errors import InputError
from apexrank.metrics import ndcg
from apexrank.objectives import SwapLikelihood
from apexrank.objectives.swaps import order_likelihood
from apexrank.submodular import Cardinality, Cut, Indicator, Log, Product, Sqrt, Top
from apexrank.validation import segment
from apexrank_papers.lovasz import aggregation as aggregation_letor

FUNCTIONS = {
    "sqrt": Sqrt(),
    "sqrt-2": Sqrt(m=2),
    "log": Log(),
    "top-2": Top(m=2),
    "product": Product(),
    "indicator": Indicator(),
}
RELEVANCE = {"strict": [3, 0, 2, 1, 4], "graded": [2, 0, 1, 0, 2], "binary": [1, 0, 0, 1, 0]}
NAN = np.nan


def divergence(x: np.ndarray, order: tuple[int, ...], gains: np.ndarray) -> float:
    """``<x, h_{σ_x} − h_σ>`` from the definition."""
    return float(np.sort(x)[::-1] @ gains - x[list(order)] @ gains)


def log_probabilities(X: np.ndarray, w: np.ndarray, gains: np.ndarray) -> dict[tuple[int, ...], float]:
    """``log p(σ | w, X)`` of all orders, from divergences and the full normaliser."""
    energy = {
        order: -sum(w[j] * divergence(X[:, j], order, gains) for j in range(len(w)))
        for order in permutations(range(len(X)))
    }
    log_z = logsumexp(list(energy.values()))
    return {order: value - log_z for order, value in energy.items()}


def consistent_orders(y: np.ndarray) -> list[tuple[int, ...]]:
    return [order for order in permutations(range(len(y))) if (np.diff(y[list(order)]) <= 0).all()]


def mean_gains(y: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """Gain of each document, averaged over all orders that agree with the relevance."""
    orders = consistent_orders(y)
    total = np.zeros(len(y))
    for order in orders:
        total[list(order)] += gains
    return total / len(orders)


def slopes(function, at: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Central differences."""
    moves = step * np.eye(len(at))
    return np.array([(function(at + move) - function(at - move)) / (2 * step) for move in moves])


@pytest.fixture
def rng():
    return np.random.default_rng(7)


# ---------------------------------------------------------------- the likelihoods


@pytest.mark.parametrize("y", RELEVANCE.values(), ids=list(RELEVANCE))
def test_softmax_is_the_likelihood_of_all_orders(rng, y):
    """Top one: the mean of −log p over the orders that agree with the relevance, up to a constant."""
    X, w, y = rng.normal(size=(5, 3)), np.array([0.7, -0.4, 1.3]), np.array(y, dtype=float)
    gains = np.array([1.0, 0, 0, 0, 0])
    log_p = log_probabilities(X, w, gains)
    exact = -np.mean([log_p[order] for order in consistent_orders(y)])
    shares = mean_gains(y, gains)
    entropy = -sum(h * np.log(h) for h in shares if h > 0)
    f = LovaszAggregator("top", normalize=None)._function()
    value, _ = order_likelihood(y, f, segment(None, 5)).value_and_grad(X @ w)
    assert value + entropy + np.log(24) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_swaps_are_odds_of_the_model(rng, f):
    """Strict relevance: −log of an order's share of itself and its swaps, from the full model."""
    X, w, y = rng.normal(size=(5, 2)), np.array([0.8, -1.1]), np.array(RELEVANCE["strict"], dtype=float)
    gains = f.deltas(5)
    log_p = log_probabilities(X, w, gains)
    (order,) = consistent_orders(y)
    losses = []
    for r, s in combinations(range(5), 2):
        swapped = list(order)
        swapped[r], swapped[s] = swapped[s], swapped[r]
        odds = log_p[order] - log_p[tuple(swapped)]
        if gains[r] > gains[s]:
            losses.append(np.logaddexp(0, -odds))
    value, _ = SwapLikelihood(y, f, segment(None, 5)).value_and_grad(X @ w)
    assert value == pytest.approx(sum(losses) / 10, abs=1e-12)


def brute_swaps(z: np.ndarray, y: np.ndarray, groups: np.ndarray, f) -> float:
    """The objective from its formula, pair by pair."""
    values = []
    for name in np.unique(groups):
        own, score = y[groups == name], z[groups == name]
        h = mean_gains(own, f.deltas(len(own)))
        pairs = [(a, b) for a, b in permutations(range(len(own)), 2) if own[a] > own[b]]
        losses = [np.logaddexp(0, -(h[a] - h[b]) * (score[a] - score[b])) * (h[a] > h[b]) for a, b in pairs]
        values.append(sum(losses) / len(pairs))
    return float(np.mean(values))


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=list(FUNCTIONS))
@pytest.mark.parametrize("y", [RELEVANCE["graded"], RELEVANCE["binary"]], ids=["graded", "binary"])
def test_swaps_of_tied_documents_in_several_lists(rng, f, y):
    groups = np.array(["b"] * 5 + ["a"] * 3)[rng.permutation(8)]
    relevance = np.empty(8)
    relevance[groups == "b"], relevance[groups == "a"] = y, [0, 3, 3]
    z = rng.normal(size=8) * 3
    objective = SwapLikelihood(relevance, f, segment(groups, 8))
    value, slope = objective.value_and_grad(z)
    assert value == pytest.approx(brute_swaps(z, relevance, groups, f), abs=1e-12)
    np.testing.assert_allclose(slope, slopes(lambda s: objective.value_and_grad(s)[0], z), atol=1e-8)


# ---------------------------------------------------------------- the minimum


@pytest.fixture
def judged(rng):
    """40 lists of 3 to 8 documents by four rankers, of which the first is good and the last is reversed."""
    sizes = rng.integers(3, 9, 40)
    groups = np.repeat([f"q{i}" for i in range(40)], sizes)
    truth = rng.normal(size=len(groups))
    noise = rng.normal(size=(len(groups), 4))
    X = truth[:, None] * [1.0, 0.3, 0.0, -0.5] + 0.7 * noise
    y = np.digitize(truth + 0.3 * rng.normal(size=len(groups)), [0.3, 1.2]).astype(float)
    shuffled = rng.permutation(len(groups))
    return X[shuffled], y[shuffled], groups[shuffled]


def told_lists(X: np.ndarray, y: np.ndarray, groups: np.ndarray, f: str) -> list[tuple[np.ndarray, ...]]:
    """Scores, relevance and mean gain of the documents, for each list with different relevances."""
    lists = []
    for q in np.unique(groups):
        own = y[groups == q]
        gains = Sqrt().deltas(len(own)) if f == "sqrt" else np.eye(len(own))[0]
        h = np.array([gains[np.sort(-own) == -value].mean() for value in own])
        if np.ptp(own) > 0:
            lists.append((X[groups == q], own, h))
    return lists


def penalised_cost(w: np.ndarray, lists: list[tuple[np.ndarray, ...]], f: str) -> float:
    """The complete objective with alpha = 0.02, list by list and pair by pair."""
    parts = []
    for scores, own, h in lists:
        z = scores @ w
        if f == "top":
            parts.append(np.log(np.exp(z).sum()) - h @ z + h[h > 0] @ np.log(h[h > 0]))
        else:
            margins = (h[:, None] - h[None, :]) * (z[:, None] - z[None, :])
            parts.append(np.logaddexp(0, -margins)[own[:, None] > own[None, :]].mean())
    return float(np.mean(parts) + 0.01 * w @ w)


@pytest.mark.parametrize("f", ["sqrt", "top"])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_minimum_by_another_solver(judged, f, nonnegative):
    X, y, groups = judged
    model = LovaszAggregator(f, normalize=None, alpha=0.02, nonnegative=nonnegative, tol=1e-9)
    model.fit(X, y, groups=groups)
    bounds = [(0, None)] * 4 if nonnegative else None
    options = {"bounds": bounds, "method": "SLSQP", "tol": 1e-13}
    found = minimize(penalised_cost, np.zeros(4), (told_lists(X, y, groups, f), f), jac="3-point", **options)
    assert model.objective_ == pytest.approx(found.fun, abs=1e-10)
    np.testing.assert_allclose(model.weights_, found.x, atol=1e-4)
    assert model.converged_
    assert model.dual_gap_ <= 1e-12
    assert (model.weights_ >= 0).all() == nonnegative
    assert model.weights_.argmax() == 0


def test_nonnegative_minimum_has_no_way_down(judged):
    X, y, groups = judged
    model = LovaszAggregator(alpha=0.01, nonnegative=True, missing="indicator").fit(X, y, groups=groups)
    points = model._points(X, segment(groups, len(y)))
    told = np.isin(groups, [q for q in np.unique(groups) if np.ptp(y[groups == q]) > 0])
    lists = segment(groups[told], told.sum())
    objective = SwapLikelihood(y[told], Sqrt(), lists)

    def cost(w):
        return objective.value_and_grad(points[told] @ w)[0] + 0.005 * w @ w

    slope = slopes(cost, model.coef_)
    free = model.coef_ > 0
    assert free.any()
    assert not free.all()
    np.testing.assert_allclose(slope[free], 0, atol=1e-5)
    assert (slope[~free] > -1e-5).all()


def test_weights_of_the_model_are_found_again(rng):
    """First documents drawn from the model itself: the estimate is within its standard errors."""
    true = np.array([1.5, 0.5, 0.0, -1.0])
    n_lists, size = 4000, 5
    X = rng.normal(size=(n_lists * size, 4))
    p = softmax((X @ true).reshape(n_lists, size), axis=1)
    first = (p.cumsum(axis=1) > rng.random((n_lists, 1))).argmax(axis=1)
    y = np.zeros((n_lists, size))
    y[np.arange(n_lists), first] = 1
    groups = np.repeat(np.arange(n_lists), size)
    model = LovaszAggregator("top", normalize=None, alpha=0).fit(X, y.ravel(), groups=groups)
    Z = X.reshape(n_lists, size, 4)
    centred = Z - np.einsum("qi,qij->qj", p, Z)[:, None]
    information = np.einsum("qi,qij,qik->jk", p, centred, centred)
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    assert (np.abs(model.weights_ - true) < 4 * errors).all()
    assert errors.max() < 0.05


def test_separable_lists_without_penalty_are_told():
    with pytest.warns(ConvergenceWarning, match="the scores separate"):
        LovaszAggregator(normalize=None, alpha=0).fit([[1.0], [2.0], [0.0]], [1, 2, 0])


def test_lists_of_one_relevance_change_nothing(judged):
    X, y, groups = judged
    equal = np.array(["none"] * 4)
    model = LovaszAggregator().fit(X, y, groups=groups)
    more = LovaszAggregator().fit(
        np.vstack([X, np.ones((4, 4))]), np.append(y, [1.0] * 4), groups=np.append(groups, equal)
    )
    np.testing.assert_allclose(model.weights_, more.weights_)
    assert (more.n_lists_, more.n_lists_skipped_) == (model.n_lists_, model.n_lists_skipped_ + 1)


def test_warm_start_is_at_the_minimum(judged):
    X, y, groups = judged
    model = LovaszAggregator(warm_start=True).fit(X, y, groups=groups)
    assert model.n_iter_ > 1
    assert model.fit(X, y, groups=groups).n_iter_ == 1


def test_warm_start_from_weights_below_zero(judged):
    """The slope of the unconstrained problem is already 0, which does not imply convergence with bounds."""
    X, y, groups = judged
    model = LovaszAggregator(alpha=0.01, warm_start=True, tol=1e-9).fit(X, y, groups=groups)
    assert model.weights_.min() < 0
    model.set_params(nonnegative=True).fit(X, y, groups=groups)
    assert model.weights_.min() == 0
    fresh = LovaszAggregator(alpha=0.01, nonnegative=True, tol=1e-9).fit(X, y, groups=groups)
    assert model.objective_ == pytest.approx(fresh.objective_, abs=1e-12)
    np.testing.assert_allclose(model.weights_, fresh.weights_, atol=1e-6)


# ---------------------------------------------------------------- points


def test_points_of_places():
    ranks = np.array([[2, 7], [1, NAN], [9, NAN], [2, NAN]])
    lists = segment(None, 4)
    borda = list_points(ranks, lists, kind="ranks")
    np.testing.assert_allclose(borda[:, 0], [2.5 / 4, 1, 1 / 4, 2.5 / 4])  # two share places 2 and 3
    np.testing.assert_array_equal(borda[:, 1], [1, NAN, NAN, NAN])
    reciprocal = list_points(ranks, lists, kind="ranks", normalize="reciprocal")
    np.testing.assert_allclose(reciprocal[:, 0], [61 / 62, 1, 61 / 69, 61 / 62])
    np.testing.assert_allclose(
        list_points(ranks, lists, kind="ranks", normalize="dcg")[0], [1 / np.log2(3), 1 / 3]
    )
    np.testing.assert_array_equal(list_points(ranks, lists, kind="ranks", normalize=None), -ranks)


def test_points_of_scores():
    scores = np.array([[0.2, 5.0], [0.9, NAN], [0.2, 1.0], [7.0, 3.0]])
    lists = segment(["a", "a", "a", "b"], 4)
    np.testing.assert_allclose(list_points(scores, lists)[:, 0], [0.5, 1, 0.5, 1])
    np.testing.assert_allclose(list_points(scores, lists, normalize="reciprocal")[:, 1], [1, NAN, 61 / 62, 1])
    np.testing.assert_allclose(list_points(scores, lists, normalize="minmax")[:, 1], [1, NAN, 0, 0])
    np.testing.assert_allclose(list_points(scores, lists, normalize="zscore")[:3, 1], [1, NAN, -1])


@given(
    arrays(np.float64, (7, 2), elements=st.integers(-5, 5).map(float) | st.just(NAN)),
    st.lists(st.sampled_from("ab"), min_size=7, max_size=7),
)
def test_only_the_order_counts_for_places(scores, groups):
    lists = segment(groups, 7)
    for normalize in ("borda", "reciprocal", "dcg"):
        points = list_points(scores, lists, normalize=normalize)
        np.testing.assert_array_equal(points, list_points(np.exp(scores), lists, normalize=normalize))
        np.testing.assert_array_equal(np.isnan(points), np.isnan(scores))
        assert np.nanmax(points, initial=0.5) <= 1
        assert np.nanmin(points, initial=0.5) > 0
    np.testing.assert_array_equal(list_points(-scores, lists, kind="ranks"), list_points(scores, lists))


def test_missing_documents_get_no_points_or_a_weight_of_their_own():
    X = np.array([[1.0, NAN], [NAN, 1.0], [NAN, 2.0], [NAN, 1.0], [1.0, NAN]])
    y, groups = [1, 0, 0, 0, 1], ["a", "a", "a", "b", "b"]
    plain = LovaszAggregator(kind="ranks").fit(X, y, groups=groups)
    points = list_points(X, segment(groups, 5), kind="ranks")
    np.testing.assert_allclose(plain.predict(X, groups), np.nan_to_num(points) @ plain.weights_)
    assert plain.listed_weights_.tolist() == [0, 0]
    both = LovaszAggregator(kind="ranks", missing="indicator").fit(X, y, groups=groups)
    expected = np.nan_to_num(points) @ both.weights_ + ~np.isnan(X) @ both.listed_weights_
    np.testing.assert_allclose(both.predict(X, groups), expected)
    assert both.listed_weights_[0] > 0 > both.listed_weights_[1]
    with pytest.raises(ValueError, match="NaN"):
        LovaszAggregator(kind="ranks", missing="raise").fit(X, y, groups=groups)


@pytest.mark.parametrize("kind", ["scores", "ranks"])
@pytest.mark.parametrize("normalize", ["borda", "reciprocal", "dcg", "minmax", "zscore"])
def test_unlisted_documents_are_not_above_listed_ones(normalize, kind):
    ranks = np.array([[1.0, 2], [2, NAN], [NAN, 1], [3, 3], [2, NAN], [1, 1], [NAN, NAN], [NAN, 1]])
    y, groups = [3, 2, 0, 1, 1, 2, 0, 0], list("aaaabbbc")
    X = ranks if kind == "ranks" else 10 - ranks**2
    points = LovaszAggregator(normalize=normalize, kind=kind, nonnegative=True).fit(X, y, groups=groups)
    points.coef_ = np.array([1.0, 0.0])  # the points of one ranker
    first, listed, lists = points.predict(X, groups), ~np.isnan(ranks[:, 0]), np.array(groups)
    for name in "ab":
        above, below = first[listed & (lists == name)], first[~listed & (lists == name)]
        assert below.max() <= above.min()
        assert (below.max() < above.min()) == (normalize not in ("minmax", "zscore"))
    assert first[lists == "c"] == 0  # this ranker lists no document of this query


def test_unlisted_documents_have_the_last_standard_score():
    X = np.array([[4.0], [NAN], [1.0], [NAN], [1.0], [NAN], [9.0]])
    y, groups = [1, 0, 0, 0, 0, 1, 0], list("aaaaabb")
    scores = np.array([np.sqrt(2), -np.sqrt(0.5), -np.sqrt(0.5), -np.sqrt(0.5), -np.sqrt(0.5), 0, 0])
    model = LovaszAggregator(normalize="zscore").fit(X, y, groups=groups)
    np.testing.assert_allclose(model.predict(X, groups), scores * model.weights_, rtol=1e-12)
    both = LovaszAggregator(normalize="zscore", missing="indicator").fit(X, y, groups=groups)
    given = ~np.isnan(X[:, 0])
    expected = np.where(given, scores * both.weights_ + both.listed_weights_, 0)
    np.testing.assert_allclose(both.predict(X, groups), expected, rtol=1e-12)


def test_plain_ranks_with_unlisted_documents_are_refused():
    """No points, 0, would rank above rank 1, which has −1."""
    X, y, groups = np.array([[1.0], [2], [NAN], [1], [2], [3]]), [2, 1, 0, 2, 1, 0], list("aaabbb")
    plain = LovaszAggregator(normalize=None, kind="ranks")
    message = "X contains NaN, and with `normalize=None` and `kind='ranks'`.*: use `missing='indicator'`"
    with pytest.raises(InputError, match=message):
        plain.fit(X, y, groups=groups)
    assert not plain.__sklearn_tags__().input_tags.allow_nan
    plain.fit(X[3:], y[3:], groups=groups[3:])
    assert plain.predict(X[3:]).argmax() == 0
    with pytest.raises(InputError, match=message):
        plain.predict(X)
    both = LovaszAggregator(normalize=None, kind="ranks", missing="indicator").fit(X, y, groups=groups)
    assert both.listed_weights_[0] > 0
    assert both.predict(X)[:3].argmin() == 2


SUMS = {
    "twice": (2 * Sqrt(), Cardinality(lambda k: 2 * np.sqrt(k))),
    "sqrt+log": (Sqrt() + Log(), Cardinality(lambda k: np.sqrt(k) + np.log1p(k))),
    "top-1+top-1": (0.5 * Top(1) + 0.5 * Top(1), Top(1)),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_functions_of_the_size(judged, name):
    X, y, groups = judged
    f, same = SUMS[name]
    found, expected = (
        LovaszAggregator(f).fit(X, y, groups=groups),
        LovaszAggregator(same).fit(X, y, groups=groups),
    )
    np.testing.assert_allclose(found.weights_, expected.weights_, rtol=1e-9)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-12)


def test_documents_missing_at_random_want_weights_of_their_own(rng):
    """Missing points mean "last"

    Where a missing entry carries no information, the second weight compensates for them.
    """
    truth = rng.normal(size=(200, 5))
    X = (truth + 0.3 * rng.normal(size=(200, 5))).reshape(-1, 1)
    X[rng.random(len(X)) < 0.3] = NAN
    y, groups = (truth > 0.5).ravel().astype(float), np.repeat(np.arange(200), 5)
    zero = LovaszAggregator(missing="zero").fit(X, y, groups=groups)
    both = LovaszAggregator(missing="indicator").fit(X, y, groups=groups)
    assert both.listed_weights_[0] < 0 < zero.weights_[0] < both.weights_[0]
    assert both.score(X, y, groups=groups) > zero.score(X, y, groups=groups)


def test_the_order_is_the_weighted_aggregate(judged):
    """The learnt scores equal those of the unsupervised method with these weights."""
    X, y, groups = judged
    model = LovaszAggregator(nonnegative=True).fit(X, y, groups=groups)
    rows = groups == "q3"
    merged = aggregate(X[rows].T, model.weights_, method="lovasz-bregman", normalize="borda")
    assert list(merged.order) == np.argsort(-model.predict(X[rows], groups[rows])).tolist()


def test_score_is_ndcg(judged):
    X, y, groups = judged
    model = LovaszAggregator().fit(X, y, groups=groups)
    expected = ndcg(y, model.predict(X, groups), groups=groups)
    assert model.score(X, y, groups=groups) == pytest.approx(expected)
    assert expected > 0.8


# ---------------------------------------------------------------- scikit-learn and bad input


def test_groups_travel_through_a_search(judged):
    X, y, groups = judged
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(LovaszAggregator(), {"alpha": [1e-3, 1.0]}, cv=GroupKFold(3))
        search.fit(X, y, groups=groups)
    direct = LovaszAggregator(**search.best_params_).fit(X, y, groups=groups)
    np.testing.assert_allclose(search.best_estimator_.weights_, direct.weights_)
    for fold in range(3):
        assert 0.5 < search.cv_results_[f"split{fold}_test_score"][0] < 1


BAD = {
    "f": ({"f": "cut"}, "needs `weights=`"),
    "cut": ({"f": Cut(np.ones((3, 3)) - np.eye(3))}, "learning needs a function of the size"),
    "gains": ({"f": Cardinality([2.0, 1.0])}, "gains for lists of 2 documents"),
    "flat": ({"f": Cardinality("linear")}, "the same gain for all ranks"),
    "sum": ({"f": Sqrt() + Cut(np.ones((3, 3)))}, "learning needs a function of the size"),
    "m": ({"f": Sqrt(), "m": 2}, "`m=` is for a set function given by its name"),
    "normalize": ({"normalize": "sum"}, "'normalize' parameter"),
    "one of several": ({"normalize": ("borda", "sum")}, "`normalize`"),
    "none of several": ({"normalize": ()}, "`normalize`"),
    "kind": ({"kind": "orders"}, "'kind' parameter"),
    "missing": ({"missing": "last"}, "'missing' parameter"),
    "alpha": ({"alpha": -1}, "'alpha' parameter"),
    "newton": ({"solver": "newton"}, "have no Hessian"),
    "ranks": ({"kind": "ranks"}, "ranks are numbers from 1"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_options(bad):
    options, message = BAD[bad]
    with pytest.raises(ValueError, match=message):
        LovaszAggregator(**options).fit([[0.0, 1.0], [1.0, 0.5], [2.0, 1.0]], [0, 1, 2])


def test_bad_rows(monkeypatch):
    X = [[0.0], [1.0]]
    with pytest.raises(InputError, match="no pair to rank"):
        LovaszAggregator().fit(X, [1, 1])
    with pytest.raises(InputError, match="one id per row"):
        LovaszAggregator().fit(X, [0, 1], groups=["a"])
    model = LovaszAggregator().fit(X, [0, 1], groups=["a", "a"])
    with pytest.raises(InputError, match="`groups` are missing"):
        model.predict(X)
    monkeypatch.setattr("apexrank.objectives.swaps.MOST_TERMS", 3)
    with pytest.raises(InputError, match="make 6 terms, too many"):
        LovaszAggregator().fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    assert LovaszAggregator("top").fit([[0.0], [1.0], [2.0]], [0, 1, 2]).converged_


# ---------------------------------------------------------------- the experiment


def made_up_lists(seed: int) -> Bunch:
    """30 queries with six documents: one ranker of eight is informative, and lists end after four documents."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=180)
    scores = truth[:, None] * np.r_[2.0, np.zeros(7)] + rng.normal(size=(180, 8))
    ranks = np.vstack([rankdata(-part, axis=0) for part in np.split(scores, 30)])
    ranks[ranks > 4] = NAN
    y = np.digitize(truth, [0.5, 1.5]).astype(float)
    groups = np.repeat([f"{seed}-{q}" for q in range(30)], 6)
    return Bunch(data=ranks, target=y, groups=groups, docids=np.arange(180))


@pytest.fixture(scope="module")
def comparison():
    parts = [made_up_lists(seed) for seed in range(3)]
    folds = [Fold(f"Fold{k}", *(parts[(k + i) % 3] for i in range(3))) for k in range(2)]
    return aggregation_letor.run_folds([aggregation_letor._told(fold) for fold in folds])


def test_experiment_finds_the_ranker_that_knows(comparison):
    words = {verdict.row: verdict.word for verdict in comparison.verdicts}
    better = "learnt, top 1, reciprocal, listed ranks better than LightGBM lambdarank"
    beside = {better: words.get(better)} if find_spec("lightgbm") else {}
    assert words == {
        "Lovász–Bregman, Borda points, orders as Borda": "agrees",
        "Lovász–Bregman, min-max, orders as CombSUM, min-max": "agrees",
        "Borda ranks better than the best single ranker": "no",
        "learnt weights rank better than Borda": "yes",
        **beside,
    }
    assert "best single ranker, chosen on training queries: 1, 1" in comparison.notes


def test_experiment_has_a_row_for_each_method(comparison):
    methods = [*aggregation_letor.FUSIONS, "best single ranker", *aggregation_letor.MODELS]
    if find_spec("lightgbm"):
        methods.append("LightGBM lambdarank")
    else:
        assert any("LightGBM is not installed" in note for note in comparison.notes)
    assert comparison.view["method"].to_list() == methods
    assert len(comparison.table) == 2 * len(methods)
    assert comparison.table["value"].is_between(0.4, 1).all()
    assert comparison.view["NDCG less Borda"][0] == ""


# ---------------------------------------------------------------- several kinds of points


@pytest.mark.parametrize("kind", ["scores", "ranks"])
@pytest.mark.parametrize("missing", ["zero", "indicator"])
def test_several_kinds_of_points_are_columns_with_weights_of_their_own(judged_ranks, kind, missing):
    X, y, groups = judged_ranks
    kinds = ("borda", "reciprocal")
    model = LovaszAggregator("top", normalize=kinds, kind=kind, missing=missing).fit(X, y, groups=groups)
    lists = segment(groups, len(y))
    points = [np.nan_to_num(list_points(X, lists, normalize=one, kind=kind)) for one in kinds]
    plain = LovaszAggregator("top", normalize=None).fit(
        np.column_stack([*points, ~np.isnan(X)] if missing == "indicator" else points), y, groups=groups
    )
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-5)
    assert model.weights_.shape == (2, X.shape[1])
    np.testing.assert_array_equal(model.weights_.ravel(), model.coef_[: model.weights_.size])
    if missing == "indicator":
        np.testing.assert_array_equal(model.listed_weights_, model.coef_[model.weights_.size :])
    one = LovaszAggregator("top", normalize=("borda",), kind=kind, missing=missing).fit(X, y, groups=groups)
    alone = LovaszAggregator("top", kind=kind, missing=missing).fit(X, y, groups=groups)
    np.testing.assert_array_equal(one.weights_, alone.weights_)


@pytest.fixture
def judged_ranks():
    lists = made_up_lists(7)
    return lists.data, lists.target, lists.groups


@pytest.mark.parametrize(
    "normalize", ["borda", "reciprocal", "dcg", "minmax", ("borda", "reciprocal", "dcg")]
)
def test_a_better_place_never_hurts_with_weights_of_at_least_0(judged_ranks, normalize):
    X, y, groups = judged_ranks
    options = {"normalize": normalize, "missing": "indicator", "nonnegative": True, "kind": "ranks"}
    model = LovaszAggregator("top", **options).fit(X, -y + 2, groups=groups)  # reversed: rankers mislead
    model.coef_ += 0.1  # some weights are 0
    before = model.predict(X, groups=groups)
    rng = np.random.default_rng(0)
    for row in rng.integers(0, len(y), 40):
        ranker = rng.integers(X.shape[1])
        better = X.copy()
        better[row, ranker] = 0.5 if np.isnan(X[row, ranker]) else X[row, ranker] / 2
        after = model.predict(better, groups=groups)
        others = (groups == groups[row]) & (np.arange(len(y)) != row)
        assert after[row] >= before[row] - 1e-12
        margins = [scores[row] - scores[others] for scores in (before, after)]
        assert (margins[1] >= margins[0] - 1e-12).all()


# ---------------------------------------------------------------- rows without groups


def place_by_hand(value, listed):
    """Place of a value in a list: the number of better values plus half of the tied ones, clipped to the list."""
    listed = listed[~np.isnan(listed)]
    return np.clip(np.sum(listed > value) + np.sum(listed == value) / 2 + 0.5, 1, len(listed))


@pytest.mark.parametrize("missing", ["zero", "indicator"])
@pytest.mark.parametrize("normalize", ["borda", "reciprocal", "dcg", "minmax", "zscore"])
@pytest.mark.parametrize("kind", ["scores", "ranks"])
def test_rows_of_one_list_have_the_points_of_that_list(normalize, kind, missing, rng):
    X, y = rng.integers(1, 8, (30, 3)).astype(float), rng.integers(0, 3, 30)
    X[rng.uniform(size=X.shape) < 0.2] = NAN
    model = LovaszAggregator(normalize=normalize, kind=kind, missing=missing).fit(X, y)
    in_one_list = model.predict(X, groups=np.zeros(30, dtype=int))
    np.testing.assert_allclose(model.predict(X), in_one_list, rtol=0, atol=1e-12)
    np.testing.assert_allclose([model.predict(row[None])[0] for row in X], in_one_list, rtol=0, atol=1e-12)


def test_new_rows_are_placed_in_the_list_of_fit(rng):
    X, y = rng.integers(0, 9, (25, 2)).astype(float), rng.integers(0, 3, 25)
    X[0, 0] = NAN
    model, new = LovaszAggregator().fit(X, y), rng.integers(-4, 26, (40, 2)) / 2
    points = [
        [(26 - place_by_hand(value, column)) / 25 for value, column in zip(row, X.T, strict=True)]
        for row in new
    ]
    np.testing.assert_allclose(model.predict(new), np.array(points) @ model.weights_, rtol=1e-12)


def test_the_list_of_fit_is_a_copy_and_goes_with_it(judged, rng):
    X, y = rng.normal(size=(20, 2)), rng.integers(0, 3, 20)
    model = LovaszAggregator().fit(X, y)
    rows, before = X.copy(), model.predict(X)
    X[:] = 0
    np.testing.assert_array_equal(model.predict(rows), before)
    X, y, groups = judged
    assert not hasattr(model.fit(X, y, groups=groups), "list_")


def test_rows_of_another_list_are_not_ranked_in_silence():
    rng = np.random.default_rng(0)
    X, y = rng.random((12, 2)), rng.integers(0, 3, 12)
    ranker = LovaszAggregator().fit(X, y)
    assert np.ptp(ranker.predict(X)) > 0
    with pytest.warns(UserWarning, match=r"give `groups=np.zeros\(len\(X\)\)`"):
        ranker.predict(X[:8] + 20)
    assert np.ptp(ranker.predict(X[:8] + 20, groups=np.zeros(8))) > 0


@pytest.mark.parametrize(
    "options", [{}, {"normalize": "zscore"}, {"f": "top", "missing": "indicator"}], ids=str
)
@pytest.mark.parametrize("grouped", [True, False])
def test_weights_are_repetitions_of_documents(options, grouped):
    rng = np.random.default_rng(3)
    X, y, times = rng.normal(size=(24, 3)), rng.integers(0, 3, 24), rng.integers(0, 4, 24)
    X[rng.random(X.shape) < 0.1] = NAN
    groups, again = np.arange(24) % 3 if grouped else None, np.repeat(np.arange(24), times)
    weighted = LovaszAggregator(**options).fit(X, y, sample_weight=times, groups=groups)
    repeated = LovaszAggregator(**options).fit(
        X[again], y[again], groups=None if groups is None else groups[again]
    )
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)
    np.testing.assert_array_equal(weighted.predict(X, groups), repeated.predict(X, groups))


@pytest.mark.parametrize("weight", [[1.5, 1, 1], [2e7, 1, 1], [0, 0, 0], [-1, 1, 1], [1, 1]], ids=str)
def test_weights_that_are_no_repetitions_are_refused(weight):
    with pytest.raises(ValueError, match="weight"):
        LovaszAggregator().fit([[1.0], [2.0], [3.0]], [0, 1, 2], sample_weight=weight)
