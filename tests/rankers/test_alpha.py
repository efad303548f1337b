"""The penalty of ``alpha="auto"``, and the alphas of searches."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from apexrank import IRPush, PNormPush, PNormPushCV
from apexrank.problem import ArrayBlocks


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = StandardScaler().fit_transform(rng.normal(size=(200, 5)))
    return X, (X[:, 0] + rng.normal(size=200) > 0.5).astype(int), rng.integers(0, 4, 200)


@pytest.mark.parametrize("ranker", [PNormPush(), PNormPush(np.inf), PNormPush(loss="logistic"), IRPush()])
@pytest.mark.filterwarnings("ignore::apexrank.rankers.base.CollapsedWarning")
def test_the_formula(rows, ranker):
    X, y, _ = rows
    up = y.sum()
    assert ranker.fit(X, y).alpha_ == pytest.approx(5 * (1 / up + 1 / (200 - up)))
    assert ranker.alpha == "auto"


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("grouped", [False, True])
def test_weights_are_repetitions_and_every_layout_has_the_same(rows, grouped, l1_ratio):
    X, y, weight = rows
    groups = np.arange(200) // 50 if grouped else None
    ranker, again = PNormPush(l1_ratio=l1_ratio), np.repeat(np.arange(200), weight)
    expected = ranker.fit(X[again], y[again], groups=groups[again] if grouped else None).alpha_
    found = [
        ranker.fit(convert(X), y, sample_weight=weight, groups=groups).alpha_
        for convert in (np.array, sparse.csr_array)
    ]
    found.append(ranker.fit(ArrayBlocks(X, y, weight, groups, rows=30), None).alpha_)
    assert found == pytest.approx([expected] * 3, rel=1e-9)


def test_groups_without_a_pair_do_not_count(rows):
    X, y, _ = rows
    groups = np.arange(200) // 50
    up = [y[groups == q].sum() for q in range(3)]
    noise = sum(1 / count + 1 / (50 - count) for count in up) / 9
    assert PNormPush().fit(X, np.where(groups == 3, 0, y), groups=groups).alpha_ == pytest.approx(5 * noise)


def test_a_common_unit_of_the_columns_does_not_matter(rows):
    X, y, _ = rows
    one, other = PNormPush().fit(X, y), PNormPush().fit(1000 * X + 7, y)
    np.testing.assert_allclose(1000 * other.coef_, one.coef_, rtol=1e-4)


def test_a_column_of_large_numbers_does_not_crush_the_others(rows):
    X, y, _ = rows
    scaled = PNormPush().fit(X * [1, 1, 1, 1, 1e4], y)
    assert scaled.coef_[0, 0] == pytest.approx(PNormPush().fit(X, y).coef_[0, 0], rel=0.1)


def test_constant_columns_do_not_count(rows):
    X, y, _ = rows
    padded = np.column_stack([X, np.full(200, 0.1), np.zeros(200)])
    alpha = PNormPush().fit(X, y).alpha_
    assert PNormPush().fit(padded, y).alpha_ == pytest.approx(alpha)
    assert PNormPush().fit(padded[:, 5:], y).alpha_ == 1.0


def test_a_given_alpha_is_kept_and_other_words_are_refused(rows):
    X, y, _ = rows
    assert PNormPush(alpha=0.25).fit(X, y).alpha_ == 0.25
    with pytest.raises(ValueError, match="'alpha'"):
        PNormPush(alpha="aut").fit(X, y)


def test_a_fit_that_rounding_ends_does_not_ask_for_more_iterations(rows):
    X, y, _ = rows
    stiff = PNormPush(price="exponential", loss="logistic", alpha=1e-6, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match=r"rounding hides all progress.*Raise `tol` or `alpha`"):
        stiff.fit(X, y)
    with pytest.warns(
        ConvergenceWarning, match=r"not converged after 2 iterations: .*Raise `max_iter`, `tol` or `alpha`"
    ):
        stiff.set_params(max_iter=2).fit(X, y)


def test_searches_try_multiples_of_it_and_take_the_strongest_of_equals(rows):
    X, y, _ = rows
    search = PNormPushCV([1, 4], cv=2, scoring=lambda *_: 1.0).fit(X, y)
    factors = search.cv_results_["alpha"] / PNormPush().fit(X, y).alpha_
    np.testing.assert_allclose(factors, np.repeat([10, 1, 0.1], 2))
    assert (search.alpha_, search.p_) == (search.cv_results_["alpha"][0], 1)
    given = PNormPushCV([1], [0.01, 1.0, 0.1], cv=2, scoring=lambda *_: 1.0).fit(X, y)
    assert given.alpha_ == 1.0
    with pytest.raises(ValueError, match="'alphas'"):
        PNormPushCV(alphas="none").fit(X, y)
