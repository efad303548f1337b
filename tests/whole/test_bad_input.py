"""Every estimator refuses bad input by a ValueError that names what is wrong: its own, or scikit-learn's."""

import inspect

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

from apexrank.errors import InputError
from tests.whole.test_estimator_checks import ESTIMATORS, OF_GRAPHS

TABLES = [estimator for estimator in ESTIMATORS if estimator not in OF_GRAPHS]
X = np.random.default_rng(0).random((12, 4))
y = np.arange(12) % 2
HOLED, ENDLESS = X.copy(), X.copy()
HOLED[1, 2], ENDLESS[1, 2] = np.nan, np.inf


def named(estimators):
    return pytest.mark.parametrize("estimator", estimators, ids=[type(each).__name__ for each in estimators])


def refused(estimator, message, X, *args, **columns):
    """Fit a clone and check that it is refused with this message; a sparse matrix is scikit-learn's TypeError."""
    with pytest.raises((ValueError, TypeError) if sparse.issparse(X) else ValueError, match=message) as error:
        clone(estimator).fit(X, *args, **columns)
    assert not isinstance(error.value, InputError) or "\n" not in str(error.value)


@named(TABLES)
def test_tables(estimator):
    tags, columns = get_tags(estimator), inspect.signature(estimator.fit).parameters
    labels = (y,) if tags.target_tags.required else ()
    refused(estimator, "infinit|got inf", ENDLESS, *labels)
    refused(estimator, "Reshape your data", X[0], *labels)
    refused(estimator, "inhomogeneous", [[1, 2], [3]] * 6, *labels)
    refused(estimator, "0 sample", X[:0], *(column[:0] for column in labels))
    refused(estimator, "Complex data not supported", X + 1j, *labels)
    if not tags.input_tags.allow_nan:
        refused(estimator, "NaN|missing", HOLED, *labels)
    if not tags.input_tags.sparse:
        refused(estimator, "sparse|toarray", sparse.csr_matrix(X), *labels)
    if labels:
        refused(estimator, r"\[12, 7\]", X, y[:7])
        refused(estimator, "y contains NaN", X, np.where(y, np.nan, 0.0))
        refused(estimator, "1d array|one number per row", X, np.column_stack([y, y]))
    if "sample_weight" in columns:
        refused(estimator, "[Nn]egative", X, *labels, sample_weight=-np.ones(12))
        refused(estimator, r"\(7,\)", X, *labels, sample_weight=np.ones(7))
    if "groups" in columns:
        refused(estimator, "group|link|inconsistent", X, *labels, groups=np.zeros(7))


@named([estimator for estimator in TABLES if get_tags(estimator).classifier_tags is not None])
def test_two_classes(estimator):
    refused(estimator, "binary classification is supported", X, np.arange(12) % 3)
    refused(estimator, "only one class", X, np.ones(12))
    refused(estimator, "Unknown label type: continuous", X, X[:, 0])
    with pytest.raises(ValueError, match="Negative"):
        clone(estimator).fit(X, y).score(X, y, sample_weight=-np.ones(12))


@named(
    [
        estimator
        for estimator in TABLES
        if hasattr(estimator, "n_clusters") or hasattr(estimator, "n_components")
    ]
)
def test_more_clusters_than_rows(estimator):
    name = "n_clusters" if hasattr(estimator, "n_clusters") else "n_components"
    refused(clone(estimator).set_params(**{name: 40}), f"{name}=40.*: lower", X)


@named(OF_GRAPHS)
def test_graphs(estimator):
    refused(estimator, "no vertices: give at least one", np.zeros((0, 0)))
    refused(estimator, "NaN|missing|finite", HOLED[:4])
    refused(estimator, "square", X)
    refused(estimator, "must hold numbers", np.array([["a", "b"], ["c", "d"]], dtype=object))
