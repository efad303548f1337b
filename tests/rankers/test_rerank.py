import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from apexrank import InputError, PNormPush, TwoStagePush, datasets, metrics
from apexrank.rankers.rerank import above_zero, heads


@pytest.fixture(scope="module")
def payments():
    X, y = datasets.make_push_example(2000, return_X_y=True)
    return X[:1000], y[:1000], X[1000:], y[1000:]


@pytest.fixture(scope="module")
def fitted(payments):
    return TwoStagePush(keep=0.2).fit(*payments[:2])


def test_the_head_stands_above_the_rest_and_each_keeps_its_order(payments, fitted):
    test = payments[2]
    scores, first, second = (r.decision_function(test) for r in (fitted, fitted.first_, fitted.second_))
    head = first > fitted.cut_
    assert 0 < head.sum() < len(test)
    assert scores[head].min() > scores[~head].max()
    np.testing.assert_array_equal(np.argsort(scores[head]), np.argsort(second[head]))
    np.testing.assert_array_equal(np.argsort(scores[~head]), np.argsort(first[~head]))


def test_the_stages_are_the_rankers_fitted_one_after_the_other(payments, fitted):
    X, y = payments[:2]
    first = PNormPush(p=1).fit(X, y)
    best = np.argsort(-first.decision_function(X))[:200]
    second = PNormPush(p=16).fit(X[best], y[best])
    np.testing.assert_allclose(fitted.first_.coef_, first.coef_)
    np.testing.assert_allclose(fitted.second_.coef_, second.coef_, rtol=1e-4)
    assert fitted.n_kept_ == 200
    assert (fitted.first_.decision_function(X) > fitted.cut_).sum() == 200


def test_the_second_stage_helps_at_the_top(payments, fitted):
    X, y = payments[2:]
    two, one = (metrics.precision_at(y, r.decision_function(X), k=30) for r in (fitted, fitted.first_))
    assert two > one + 0.1


def test_rows_are_scored_one_by_one(payments, fitted):
    test = payments[2][:50]
    singly = [fitted.decision_function(row[None, :])[0] for row in test]
    np.testing.assert_allclose(singly, fitted.decision_function(test), rtol=1e-10)


def test_keeping_all_ranks_as_the_second_ranker_does(payments):
    X, y, test, _ = payments
    ranker = TwoStagePush(keep=1.0).fit(X, y)
    alone = PNormPush(p=16).fit(X, y).decision_function(test)
    np.testing.assert_array_equal(np.argsort(ranker.decision_function(test)), np.argsort(alone))
    assert ranker.cut_ == -np.inf


def test_any_estimators(payments):
    X, y, test, y_test = payments
    first = make_pipeline(StandardScaler(), LogisticRegression())
    ranker = TwoStagePush(first, PNormPush(p=64), keep=100).fit(X, y)
    assert ranker.n_kept_ == 100
    assert metrics.auc(y_test, ranker.decision_function(test)) > 0.85
    thin = sparse.csr_array(X * (X > 0))
    dense = TwoStagePush().fit(thin.toarray(), y).decision_function(thin.toarray())
    np.testing.assert_allclose(
        TwoStagePush().fit(thin, y).decision_function(thin), dense, rtol=1e-4, atol=1e-4
    )


def test_predict_has_the_least_balanced_error(payments, fitted):
    X, y = payments[:2]
    scores = fitted.decision_function(X)
    errors = [np.mean(scores[y == 1] <= t) + np.mean(scores[y == 0] > t) for t in [0.0, *scores]]
    assert errors[0] == pytest.approx(min(errors))
    np.testing.assert_array_equal(fitted.predict(X), (scores > 0).astype(int))


def test_groups_have_heads_of_their_own(payments):
    X, y = payments[:2]
    groups = np.arange(1000) % 4
    X = X + 5.0 * groups[:, None]  # a level of its own for each group
    ranker = TwoStagePush(keep=30).fit(X, y, groups=groups)
    kept = heads(ranker.first_.decision_function(X), y == 1, 30, groups=groups)
    assert np.bincount(groups[kept]).tolist() == [30, 30, 30, 30]
    assert ranker.n_kept_ == 120
    second = PNormPush(p=16).fit(X[kept], y[kept], groups=groups[kept])
    np.testing.assert_allclose(ranker.second_.coef_, second.coef_, rtol=1e-6)
    assert (ranker.first_.decision_function(X) > ranker.cut_).sum() == 120


def test_heads_grow_until_they_have_both_classes():
    scores, positive = np.array([6.0, 5.0, 4.0, 3.0, 2.0, 1.0]), np.array([1, 1, 1, 0, 1, 0]) == 1
    assert heads(scores, positive, 2).tolist() == [True] * 4 + [False] * 2
    assert heads(scores, positive, 0.9).tolist() == [True] * 6
    assert heads(scores, ~positive, 1).sum() == 4
    assert heads(scores, positive, 100).all()
    groups = np.array([0, 1, 0, 1, 0, 1])
    assert heads(scores, positive, 1, groups=groups).tolist() == [True, True, False, True, False, False]


def test_heads_keep_ties_together_and_count_weights_as_repetitions():
    scores, positive = np.array([3.0, 2.0, 2.0, 1.0]), np.array([1, 0, 1, 0]) == 1
    assert heads(scores, positive, 2).tolist() == [True, True, True, False]
    weight = np.array([1, 0, 1, 3])
    assert heads(scores, positive, 2, weight).tolist() == [True, False, True, True]
    repeated = np.repeat(np.arange(4), weight)
    assert heads(scores[repeated], positive[repeated], 2).all()


def test_above_zero_is_increasing():
    t = np.concatenate([-np.logspace(30, -6, 50), [0.0], np.logspace(-6, 30, 50)])
    assert (np.diff(above_zero(t)) > 0).all()
    assert above_zero(t).min() > 0


@pytest.mark.parametrize("keep", [0, -1, 1.5, 0.0])
def test_bad_keep(keep):
    with pytest.raises(ValueError, match="keep"):
        TwoStagePush(keep=keep).fit([[0.0], [1.0]], [0, 1])


def test_groups_without_pairs():
    with pytest.raises(InputError, match="both classes"):
        TwoStagePush().fit([[0.0], [1.0]], [0, 1], groups=[0, 1])
