import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from apexrank.aggregation.kmeans import (
    Cost,
    LovaszBregmanKMeans,
    ScoreVectors,
    draw_centres,
    elbow,
    lloyd,
    refill,
    silhouette,
)
from apexrank.aggregation.lovasz_bregman import LovaszBregman
from apexrank.errors import InputError
from apexrank.kernels import assign as kernels
from apexrank.submodular import Cut

# ---------------------------------------------------------------- against brute force

SIZES = {"sqrt": np.sqrt, "log": np.log1p, "product": None}


def gains(name, n):
    size = np.arange(n + 1)
    return np.diff(size * (n - size) if name == "product" else SIZES[name](size))


def plain_divergence(x, order, name="sqrt"):
    """f̂(x) − <x, h_σ> for a function of the set size, by definition."""
    g = gains(name, len(x))
    return float(np.sort(x)[::-1] @ g - np.asarray(x)[list(order)] @ g)


def objective(X, weight, labels, orders, euclidean, name="sqrt"):
    """Objective of an assignment, with the mean of each cluster in the Euclidean part."""
    total = 0.0
    for c in np.unique(labels):
        rows = np.flatnonzero(labels == c)
        mean = np.average(X[rows], axis=0, weights=weight[rows])
        for i in rows:
            part = plain_divergence(X[i], orders[c], name) + euclidean / 2 * np.sum((X[i] - mean) ** 2)
            total += weight[i] * part
    return total


def best_partition(X, weight, k, euclidean, name):
    """Lowest objective over all partitions into at most k clusters and all orders of each."""
    orders = list(itertools.permutations(range(X.shape[1])))
    table = np.array([[plain_divergence(x, order, name) for order in orders] for x in X]) * weight[:, None]

    @functools.cache
    def cost(*members):
        rows = list(members)
        mean = np.average(X[rows], axis=0, weights=weight[rows])
        spread = weight[rows] @ np.sum((X[rows] - mean) ** 2, axis=1)
        return table[rows].sum(axis=0).min() + euclidean / 2 * spread

    lowest = np.inf
    for others in itertools.product(range(k), repeat=len(X) - 1):
        labels = (0, *others)
        clusters = [[i for i, label in enumerate(labels) if label == c] for c in set(labels)]
        lowest = min(lowest, sum(cost(*members) for members in clusters))
    return lowest


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(("name", "euclidean"), [("sqrt", 0.0), ("product", 0.0), ("log", 0.5)])
def test_restarts_reach_the_best_of_all_partitions(name, euclidean, k, seed):
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(7, 4)), rng.uniform(0.5, 2, size=7)
    model = LovaszBregmanKMeans(k, f=name, euclidean=euclidean, n_init=30, tol=0, random_state=seed)
    model.fit(X, sample_weight=weight)
    assert model.inertia_ == pytest.approx(best_partition(X, weight, k, euclidean, name), rel=1e-12)


@pytest.mark.parametrize("euclidean", [0.0, 0.7])
def test_results_fit_together(euclidean):
    rng = np.random.default_rng(1)
    X, weight = rng.normal(size=(150, 6)), rng.uniform(0.1, 3, size=150)
    model = LovaszBregmanKMeans(5, euclidean=euclidean, tol=0, random_state=0).fit(X, sample_weight=weight)
    assert model.converged_
    for c in range(5):
        rows = model.labels_ == c
        mean = np.average(X[rows], axis=0, weights=weight[rows])
        np.testing.assert_allclose(model.cluster_centers_[c], mean, rtol=0, atol=1e-14)
        assert (np.diff(mean[model.orders_[c]]) <= 0).all()
    expected = objective(X, weight, model.labels_, model.orders_, euclidean)
    assert model.inertia_ == pytest.approx(expected, rel=1e-12)
    assert model.score(X, sample_weight=weight) == -model.inertia_
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_transform_gives_divergences_from_all_centres(dtype):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 5)).astype(dtype)
    model = LovaszBregmanKMeans(3, euclidean=0.3, random_state=0).fit(X)
    expected = [
        [
            plain_divergence(x, order) + 0.15 * np.sum((x - mean) ** 2)
            for order, mean in zip(model.orders_, model.cluster_centers_, strict=True)
        ]
        for x in X.astype(np.float64)
    ]
    found = model.transform(X)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12 if dtype is np.float64 else 1e-6, atol=1e-13)
    np.testing.assert_array_equal(found.argmin(axis=1), model.predict(X))
    assert model.get_feature_names_out().tolist() == [f"lovaszbregmankmeans{c}" for c in range(3)]


def test_any_set_function_can_be_used():
    rng = np.random.default_rng(3)
    W = rng.random((5, 5))
    f = Cut(np.triu(W, 1) + np.triu(W, 1).T)
    X = rng.normal(size=(60, 5))
    model = LovaszBregmanKMeans(3, f=f, random_state=0, tol=0).fit(X)
    table = LovaszBregman(f).divergence(X, model.orders_)
    np.testing.assert_allclose(model.transform(X), table, rtol=0, atol=1e-13)
    assert model.inertia_ == pytest.approx(table.min(axis=1).sum(), rel=1e-12)


def test_a_large_euclidean_part_gives_the_clusters_of_kmeans():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(90, 4)) + 8 * rng.integers(0, 2, size=(90, 4))
    start_at = X[:4]
    ours = LovaszBregmanKMeans(4, euclidean=1e6, init=start_at, tol=0).fit(X)
    theirs = KMeans(4, init=start_at, n_init=1, tol=0, algorithm="lloyd").fit(X)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-12)
    assert ours.inertia_ == pytest.approx(5e5 * theirs.inertia_, rel=1e-5)


# ---------------------------------------------------------------- descent and starts


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(1, 9),
    st.sampled_from([0.0, 0.2]),
    st.sampled_from(["sqrt", "product"]),
)
def test_the_objective_never_rises(seed, k, euclidean, name):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, size=(30, 4)).astype(float)  # ties, equal rows and empty clusters
    weight = rng.integers(0, 3, size=30).astype(float) + (np.arange(30) < k)
    rows = ScoreVectors(X, weight, Cost(LovaszBregman(name), euclidean))
    first = rows.cost.centres(rng.normal(size=(k, 4)))
    run = lloyd(rows, first, max_iter=50, tol=0.0)
    assert (np.diff(run.history) <= rows.noise * weight.sum()).all()
    assert run.converged
    table = LovaszBregman(name).divergence(X, run.centres.orders)
    table += euclidean / 2 * ((X[:, None, :] - run.centres.means) ** 2).sum(axis=2)
    assert run.history[-1] == pytest.approx(
        weight @ table.min(axis=1), rel=1e-12, abs=rows.noise * weight.sum()
    )


def test_history_starts_at_the_first_centres():
    X = np.random.default_rng(5).normal(size=(50, 4))
    model = LovaszBregmanKMeans(3, init=X[:3], tol=0).fit(X)
    orders = np.argsort(-X[:3], axis=1)
    first = sum(min(plain_divergence(x, order) for order in orders) for x in X)
    assert model.history_[0] == pytest.approx(first, rel=1e-12)
    assert model.history_[-1] == model.inertia_ < first
    assert len(model.history_) == model.n_iter_ + 1


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_weights_are_repetitions(init):
    rng = np.random.default_rng(6)
    X, counts = rng.normal(size=(40, 5)), rng.integers(0, 4, size=40)
    model = LovaszBregmanKMeans(4, init=init, n_init=3, random_state=0, tol=0)
    weighted = clone(model).fit(X, sample_weight=counts)
    repeated = clone(model).fit(np.repeat(X, counts, axis=0)[::-1])
    np.testing.assert_array_equal(weighted.orders_, repeated.orders_)
    np.testing.assert_allclose(weighted.history_, repeated.history_, rtol=1e-12)
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=0, atol=1e-13)


@pytest.mark.slow
def test_starts_are_drawn_by_weight_times_divergence():
    """Frequencies of pairs of centres and their probabilities, with the better of two trials kept for each centre."""
    X = np.array([[3.0, 2.0, 0.0], [0.0, 1.0, 2.0], [1.0, 5.0, 0.0]])
    weight = np.array([1.0, 2.0, 0.5])
    costs = np.array(
        [[w * plain_divergence(x, np.argsort(-c)) for x, w in zip(X, weight, strict=True)] for c in X]
    )
    expected = {True: np.zeros((3, 3)), False: np.zeros((3, 3))}
    for a in range(3):
        others = np.where(np.arange(3) == a, 0, weight)
        expected[False][a] = weight[a] / weight.sum() * others / others.sum()
    for trials in itertools.product(range(3), repeat=2):
        a = min(trials, key=lambda c: costs[c].sum())
        share = costs[a] / costs[a].sum()
        for following in itertools.product(range(3), repeat=2):
            b = min(following, key=lambda c: np.minimum(costs[a], costs[c]).sum())
            chance = np.prod(weight[list(trials)]) / weight.sum() ** 2
            expected[True][a, b] += chance * np.prod(share[list(following)])
    rows, rng = ScoreVectors(X, weight, Cost(LovaszBregman("sqrt"), 0.0)), np.random.RandomState(0)
    for spread, probability in expected.items():
        assert probability.sum() == pytest.approx(1)
        drawn = np.zeros((3, 3))
        for _ in range(1500):
            first, second = draw_centres(rows, 2, rng, spread=spread).means
            drawn[np.flatnonzero((first == X).all(axis=1)), np.flatnonzero((second == X).all(axis=1))] += 1
        assert (drawn[probability == 0] == 0).all()
        np.testing.assert_allclose(
            drawn / 1500, probability, rtol=0, atol=0.035
        )  # 2.7 standard errors or more


@pytest.mark.parametrize("spread", [True, False])
def test_rounding_is_no_reason_to_draw_an_order_twice(spread):
    rng = np.random.default_rng(20)
    orders = np.array([rng.permutation(7) for _ in range(3)])
    X = np.empty((60, 7))
    np.put_along_axis(X, np.repeat(orders, 20, axis=0), -np.sort(-rng.random((60, 7)), axis=1), axis=1)
    rows = ScoreVectors(X, np.ones(60), Cost(LovaszBregman("sqrt"), 0.0))
    for seed in range(20):
        first = draw_centres(rows, 3, np.random.RandomState(seed), spread=spread)
        assert len(np.unique(first.orders, axis=0)) == 3


def test_an_empty_cluster_gets_the_farthest_row():
    X = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0], [0.0, 5.0, 9.0], [0.0, 5.0, 9.0], [0.0, 90.0, 80.0]])
    weight = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    rows = ScoreVectors(X, weight, Cost(LovaszBregman("sqrt"), 0.0))
    centres = rows.cost.centres(np.array([[2.0, 1.0, 0.0], [2.0, 1.0, 0.0]]))
    found = rows.assign(centres)
    assert found.labels.tolist() == [0, 0, 0, 0, 0]
    refilled = refill(rows, found)
    # both copies of the farthest row move; the row of weight 0 is farther but does not count
    assert refilled.labels.tolist() == [0, 0, 1, 1, 0]
    assert refilled.mass.tolist() == [2.0, 2.0]
    assert refilled.sums.tolist() == [[2.0, 2.0, 2.0], [0.0, 10.0, 18.0]]
    model = LovaszBregmanKMeans(2, init=centres.means).fit(X, sample_weight=weight)
    assert sorted(np.unique(model.labels_, return_counts=True)[1].tolist()) == [1, 4]
    assert model.inertia_ == 0.0


def test_a_cluster_is_not_emptied_to_fill_another():
    """The farthest row is alone in its cluster, so the next one moves."""
    X = np.array([[0.0, 10.0, 20.0], [2.0, 1.0, 0.0], [2.0, 0.0, 1.0]])
    rows = ScoreVectors(X, np.ones(3), Cost(LovaszBregman("sqrt"), 0.0))
    centres = rows.cost.centres(np.array([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [2.0, 1.0, 0.0]]))
    found = rows.assign(centres)
    assert found.labels.tolist() == [1, 0, 0]
    assert found.costs[0] > found.costs[2] > found.costs[1] == 0
    assert refill(rows, found).labels.tolist() == [1, 0, 2]


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_more_clusters_than_orders_warn(init):
    rng = np.random.default_rng(7)
    X = np.sort(rng.random((20, 3)), axis=1)
    X[10:] = X[10:, ::-1]
    with pytest.warns(ConvergenceWarning, match="only 2 of 4 clusters have rows"):
        model = LovaszBregmanKMeans(4, init=init, random_state=0).fit(X)
    assert len(set(model.labels_[:10])) == len(set(model.labels_[10:])) == 1
    assert model.inertia_ == pytest.approx(0.0, abs=1e-14)


def test_too_few_steps_warn():
    X = np.random.default_rng(8).normal(size=(200, 6))
    with pytest.warns(ConvergenceWarning, match="not converged after 1 steps"):
        model = LovaszBregmanKMeans(5, max_iter=1, random_state=0).fit(X)
    assert not model.converged_
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.score(X) == -model.inertia_


def test_a_coarse_tol_ends_early():
    X = np.random.default_rng(9).normal(size=(400, 8))
    fine, coarse = (LovaszBregmanKMeans(6, init=X[:6], tol=tol).fit(X) for tol in (0.0, 0.02))
    assert coarse.n_iter_ < fine.n_iter_
    falls = -np.diff(coarse.history_) / coarse.history_[1:]
    assert falls[-1] <= 0.02 < falls[:-1].min()


# ---------------------------------------------------------------- symmetries


def test_renaming_items_renames_orders():
    rng = np.random.default_rng(10)
    X, renamed = rng.normal(size=(80, 6)), rng.permutation(6)
    model = LovaszBregmanKMeans(4, init=X[:4], tol=0)
    plain, other = model.fit(X), clone(model).set_params(init=X[:4, renamed]).fit(X[:, renamed])
    np.testing.assert_array_equal(other.labels_, plain.labels_)
    np.testing.assert_array_equal(renamed[other.orders_], plain.orders_)
    assert other.inertia_ == pytest.approx(plain.inertia_, rel=1e-12)


def test_tied_means_are_ordered_by_column():
    X = np.array([[2.0, 5.0, 2.0, 5.0], [4.0, 1.0, 4.0, 1.0]])
    model = LovaszBregmanKMeans(1).fit(X)
    assert model.cluster_centers_.tolist() == [[3.0, 3.0, 3.0, 3.0]]
    assert model.orders_.tolist() == [[0, 1, 2, 3]]


# ---------------------------------------------------------------- planted clusters


def planted(seed, noise, n_items=10, k=4, voters=60):
    """Voters around k orders; neighbours in an order differ by 1, and each voter has a generosity and a spread."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(k), voters)
    quality = np.array([rng.permutation(n_items) for _ in range(k)])
    X = quality[truth] + noise * rng.normal(size=(len(truth), n_items))
    spread, generosity = rng.lognormal(0, 0.5, len(truth)), 20 * rng.normal(size=len(truth))
    return generosity[:, None] + spread[:, None] * X, truth


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("name", "noise"), [("sqrt", 0.5), ("product", 1.5)])
def test_planted_orders_are_found(name, noise, seed):
    """The function "sqrt" emphasises the top and has less noise there; on raw scores KMeans separates by generosity.

    On standardised rows, KMeans finds the orders as well.
    """
    X, truth = planted(seed, noise)
    ours = LovaszBregmanKMeans(4, f=name, random_state=seed).fit(X)
    theirs = KMeans(4, n_init=10, random_state=seed)
    found = adjusted_rand_score(truth, ours.labels_)
    assert found >= 0.95
    assert adjusted_rand_score(truth, theirs.fit_predict(X)) < 0.2
    standardised = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    assert adjusted_rand_score(truth, theirs.fit_predict(standardised)) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_elbow_and_silhouette_point_to_the_planted_number(seed):
    X, _ = planted(seed, 1.5)
    values = elbow(X, range(2, 7), f="product", random_state=0)
    assert list(values) == [2, 3, 4, 5, 6]
    assert values[3] > 1.5 * values[4]
    assert values[4] < 1.1 * values[5] < 1.1**2 * values[6]
    found = {k: silhouette(LovaszBregmanKMeans(k, f="product", random_state=0).fit(X), X) for k in values}
    assert max(found, key=found.get) == 4


def test_silhouette_by_its_definition():
    rng = np.random.default_rng(12)
    X, weight = rng.normal(size=(30, 4)), rng.uniform(0.5, 2, size=30)
    X[0] = 1.0  # not ordered: equally near to all centres
    model = LovaszBregmanKMeans(3, random_state=0).fit(X)
    values = []
    for x, label in zip(X, model.labels_, strict=True):
        others = [plain_divergence(x, order) for c, order in enumerate(model.orders_) if c != label]
        a, b = plain_divergence(x, model.orders_[label]), min(others)
        values.append((b - a) / max(a, b) if max(a, b) > 1e-14 else 0.0)
    assert silhouette(model, X) == pytest.approx(np.mean(values), rel=1e-12)
    assert silhouette(model, X, weight) == pytest.approx(np.average(values, weights=weight), rel=1e-12)
    with pytest.raises(InputError, match="at least two clusters"):
        silhouette(LovaszBregmanKMeans(1).fit(X), X)


# ---------------------------------------------------------------- the estimator


def test_threads_do_not_change_a_bit(monkeypatch):
    X = np.random.default_rng(14).normal(size=(9000, 7))
    monkeypatch.setattr(kernels, "SMALL", 0)
    results = []
    for threads in (1, 3):
        monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", threads)
        model = LovaszBregmanKMeans(9, init=X[:9], max_iter=3, euclidean=0.1)
        with pytest.warns(ConvergenceWarning, match="not converged"):
            model.fit(X)
        results.append((model.inertia_, model.cluster_centers_.tobytes(), model.transform(X).tobytes()))
    assert results[0] == results[1]


def test_float32_is_clustered_as_its_float64_copy():
    X = np.random.default_rng(15).normal(size=(200, 5)).astype(np.float32)
    single = LovaszBregmanKMeans(4, init=X[:4], tol=0).fit(X)
    double = LovaszBregmanKMeans(4, init=X[:4], tol=0).fit(X.astype(np.float64))
    np.testing.assert_array_equal(single.labels_, double.labels_)
    assert single.inertia_ == double.inertia_


def test_start_by_a_callable():
    X = np.random.default_rng(17).normal(size=(50, 4))
    by_array = LovaszBregmanKMeans(3, init=X[:3]).fit(X)
    by_call = LovaszBregmanKMeans(3, init=lambda rows, k, random_state: rows[:k], n_init=2).fit(X)
    np.testing.assert_array_equal(by_call.labels_, by_array.labels_)


def test_verbose_prints_a_line_per_step(capsys):
    X = np.random.default_rng(18).normal(size=(50, 4))
    model = LovaszBregmanKMeans(3, init=X[:3], verbose=1).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert lines[-1] == f"step {model.n_iter_}: objective {model.inertia_:.6g}"


GOOD = np.random.default_rng(19).normal(size=(10, 3))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "'n_clusters' parameter"),
        ({"n_clusters": 2.0}, "'n_clusters' parameter"),
        ({"n_clusters": 11}, "n_samples=10 should be >= `n_clusters=11`"),
        ({"max_iter": 0}, "'max_iter' parameter"),
        ({"n_init": "many"}, "'n_init' parameter"),
        ({"euclidean": -1}, "'euclidean' parameter"),
        ({"tol": np.nan}, "'tol' parameter"),
        ({"init": "best"}, "'init' parameter"),
        ({"init": GOOD[:2]}, r"`init` must be finite scores of shape \(3, 3\), got shape \(2, 3\)"),
        ({"init": np.full((3, 3), np.nan)}, "`init` must be finite scores"),
        ({"init": [["a", "b", "c"]] * 3}, r"`init` must be finite scores of shape \(3, 3\)"),
        ({"init": [[1.0, 2.0], [3.0], [4.0]]}, r"`init` must be finite scores of shape \(3, 3\)"),
        ({"init": lambda X, k, random_state: "best"}, r"`init` must be finite scores of shape \(3, 3\)"),
        ({"f": "cube"}, "cube"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        LovaszBregmanKMeans(**{"n_clusters": 3, **parameters}).fit(GOOD)


def test_bad_data():
    model = LovaszBregmanKMeans(2)
    with pytest.raises(InputError, match="at least two items"):
        model.fit(GOOD[:, :1])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(GOOD > 1, np.nan, GOOD))
    with pytest.raises((TypeError, ValueError), match="Sparse"):
        model.fit(sparse.csr_array(GOOD))
    with pytest.raises(ValueError, match=r"all rows have weight 0|must contain at least one non-zero"):
        model.fit(GOOD, sample_weight=np.zeros(10))
    with pytest.raises(ValueError, match="egative values"):
        model.fit(GOOD, sample_weight=-np.ones(10))
