import numpy as np
import pytest
from scipy import sparse
from scipy.stats import kendalltau

from apexrank import CrucialPairsPush, InputError, PNormPush
from apexrank.losses import LOSSES
from tests.objectives.test_pairs import brute_force


@pytest.fixture(scope="module")
def graded():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    groups = rng.integers(0, 20, 400)
    quality = X @ [1.0, -0.5, 0.3, 0.0] + 0.5 * rng.normal(size=400)
    return X, np.digitize(quality, [-1, 0, 1, 2]), groups


# the gradient jumps at the kinks of the hinge loss, by about 1e-3 for this few rows
@pytest.mark.parametrize(
    ("loss", "tol"), [("exponential", 1e-6), ("logistic", 1e-6), ("squared_hinge", 1e-6), ("hinge", 3e-3)]
)
def test_graded_relevance(graded, loss, tol):
    X, y, groups = graded
    pi = ((y[:, None] > y[None, :]) & (groups[:, None] == groups[None, :])).astype(float)
    tied = brute_force(np.zeros(400), pi, groups, loss, "power", 2.0, np.ones(400))
    n = 1.0 if loss == "exponential" else tied / LOSSES.get(loss).value(np.zeros(1))[0]
    ranker = CrucialPairsPush(p=2, loss=loss, alpha=1e-3 / n, tol=tol).fit(X, y, groups=groups)
    assert ranker.converged_
    value = brute_force(ranker.predict(X), pi, groups, loss, "power", 2.0, np.ones(400))
    assert n * ranker.objective_ == pytest.approx(value + 5e-4 * (ranker.coef_**2).sum(), rel=1e-9)
    assert kendalltau(ranker.predict(X), y).statistic > 0.5


def test_two_grades_are_the_p_norm_push(graded):
    X, y, groups = graded
    pairs = CrucialPairsPush(p=8, alpha=1e-3).fit(X, y > 2, groups=groups)
    push = PNormPush(p=8, alpha=1e-3).fit(X, y > 2, groups=groups)
    np.testing.assert_allclose(pairs.coef_, push.coef_[0], rtol=1e-4)


def test_pairs_and_truth_say_the_same(graded):
    X, y, _ = graded
    X, y = X[:60], y[:60]
    X = np.column_stack([X, y])  # the truth function sees the grade in the last column

    def truth(A, B):
        return A[:, -1] > B[:, -1]

    by_truth = CrucialPairsPush(truth=truth, alpha=1e-2).fit(X)
    upper, lower = np.nonzero(y[:, None] > y[None, :])
    by_pairs = CrucialPairsPush(alpha=1e-2).fit(X, pairs=(upper, lower))
    by_grade = CrucialPairsPush(alpha=1e-2).fit(X, y)
    np.testing.assert_allclose(by_truth.coef_, by_pairs.coef_, rtol=1e-6)
    np.testing.assert_allclose(by_pairs.coef_, by_grade.coef_, rtol=1e-4)
    np.testing.assert_allclose(
        CrucialPairsPush(truth=truth, alpha=1e-2).fit(sparse.csr_array(X)).coef_, by_truth.coef_, rtol=1e-4
    )


def test_weights_of_pairs_matter(graded):
    X, _, _ = graded
    pairs = np.array([0, 1]), np.array([1, 0])  # a contradiction that only weights resolve
    one = CrucialPairsPush(p=1, alpha=0.1).fit(X[:2], pairs=(*pairs, np.array([3.0, 1.0]))).predict(X[:2])
    other = CrucialPairsPush(p=1, alpha=0.1).fit(X[:2], pairs=(*pairs, np.array([1.0, 3.0]))).predict(X[:2])
    assert one[0] > one[1]
    assert other[0] < other[1]


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({}, {}, "give relevance y, pairs, or a truth function"),
        ({"loss": "hinge", "price": "log1p"}, {"y": [0, 1]}, "not convex"),
        ({}, {"y": [1, 1]}, "no pair to rank"),
        ({}, {"pairs": ([0], [7])}, "rows are 0 to 1"),
        ({}, {"pairs": ([0], [1]), "sample_weight": [1, 1]}, "third array"),
    ],
)
def test_bad_input(options, arguments, message):
    with pytest.raises(InputError, match=message):
        CrucialPairsPush(**options).fit([[0.0], [1.0]], **arguments)


def test_truth_is_for_small_data():
    with pytest.raises(InputError, match="at most 3000 rows"):
        CrucialPairsPush(truth=lambda A, B: A[:, 0] > B[:, 0]).fit(np.zeros((3001, 1)))
