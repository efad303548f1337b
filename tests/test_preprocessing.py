"""Scaling within queries and over all rows, against loops, pandas and scikit-learn's scalers; routing of groups."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.stats import rankdata
from sklearn.exceptions import NotFittedError
from sklearn.metrics import ndcg_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from apexrank.datasets import make_letor_example
from apexrank.errors import InputError
from apexrank.preprocessing import QueryNormalizer
from apexrank.rankers.pairs import CrucialPairsPush
from apexrank.rankers.push import PNormPush

METHODS = ["minmax", "standard", "max", "rank"]
SCALERS = [("minmax", MinMaxScaler()), ("standard", StandardScaler()), ("max", MaxAbsScaler())]


def _naive_column(x, method):
    """One feature of one query by definition; NaN stays NaN and is otherwise ignored."""
    out = np.full(len(x), np.nan)
    known = x[~np.isnan(x)]
    for i, value in enumerate(x):
        if np.isnan(value):
            continue
        above, below = {
            "minmax": lambda v: (v - known.min(), known.max() - known.min()),
            "standard": lambda v: (v - known.mean(), known.std()),
            "max": lambda v: (v, np.abs(known).max()),
            "rank": lambda v: (np.sum(known < v), len(known) - 1),
        }[method](value)
        constant = known.min() == known.max() and method != "max"
        out[i] = 0 if constant or below == 0 else above / below
    return out


def _naive(X, groups, method):
    out = np.empty(X.shape)
    for query in set(groups.tolist()):
        rows = groups == query
        for j in range(X.shape[1]):
            out[rows, j] = _naive_column(X[rows, j], method)
    return out


@st.composite
def queries(draw, elements):
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    X = draw(arrays(np.float64, (n, d), elements=elements))
    return X, draw(arrays(np.int64, n, elements=st.integers(0, 3)))


SIMPLE = st.one_of(st.sampled_from([0.0, 1.0, -2.5]), st.floats(-100, 100, width=16))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@given(table=queries(st.one_of(SIMPLE, st.just(np.nan))))
def test_against_a_loop(method, table):
    X, groups = table
    before = X.copy()
    scaled = QueryNormalizer(method, missing="keep").fit_transform(X, groups=groups)
    np.testing.assert_allclose(scaled, _naive(X, groups, method), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("method", METHODS)
def test_against_pandas(method):
    example = make_letor_example(n_queries=30, random_state=2)
    frame = pd.DataFrame(example.data)
    by_query = frame.groupby(example.groups)
    size = by_query.transform("size").to_numpy()[:, None]
    low, high = by_query.transform("min"), by_query.transform("max")
    expected = {
        "minmax": lambda: (frame - low) / (high - low),
        "standard": lambda: (frame - by_query.transform("mean")) / by_query.transform("std", ddof=0),
        "max": lambda: frame / np.maximum(low.abs(), high.abs()),
        "rank": lambda: (by_query.rank(method="min") - 1) / np.maximum(size - 1, 1),
    }[method]()
    scaled = QueryNormalizer(method).fit_transform(example.data, groups=example.groups)
    np.testing.assert_allclose(scaled, expected.fillna(0), rtol=1e-12, atol=1e-13)


def test_rank_against_scipy():
    X = np.random.default_rng(1).integers(0, 6, size=(25, 4)).astype(float)
    smaller = rankdata(X, method="min", axis=0) - 1
    np.testing.assert_array_equal(QueryNormalizer("rank").fit_transform(X, groups=["q"] * 25), smaller / 24)
    np.testing.assert_array_equal(QueryNormalizer("rank").fit_transform(X), smaller / 25)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@given(table=queries(SIMPLE), seed=st.integers(0, 99))
def test_order_of_rows_and_names_of_queries_do_not_matter(method, table, seed):
    X, groups = table
    normalizer = QueryNormalizer(method)
    scaled = normalizer.fit_transform(X, groups=groups)
    shuffled = np.random.default_rng(seed).permutation(len(X))
    names = np.array(["zebra", "ant", "fox", "bee"])[groups]
    np.testing.assert_allclose(
        normalizer.transform(X[shuffled], groups=names[shuffled]), scaled[shuffled], rtol=1e-12, atol=1e-15
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@given(table=queries(st.floats(-1e307, 1e307)))
def test_any_magnitude_gives_finite_values_in_range(method, table):
    X, groups = table
    scaled = QueryNormalizer(method).fit_transform(X, groups=groups)
    limit = {"standard": np.sqrt(len(X)) * (1 + 1e-12)}.get(method, 1.0)
    assert np.abs(scaled).max() <= limit
    if method in ("minmax", "rank"):
        assert scaled.min() == 0


def test_a_constant_becomes_exact_zero_at_any_size():
    # the mean of many copies of 0.1 is not 0.1: a difference divided by a spread of rounding errors must not appear
    X = np.column_stack([np.full(1000, 0.1), np.full(1000, 1e300), np.zeros(1000)])
    for method in ("minmax", "standard", "rank"):
        assert not QueryNormalizer(method).fit_transform(X, groups=np.arange(1000) % 3).any()
        assert not QueryNormalizer(method).fit_transform(X).any()
    assert QueryNormalizer("max").fit_transform(X)[0].tolist() == [1, 1, 0]


def test_span_beyond_floats_is_refused():
    X = [[-1.7e308], [1.7e308]]
    for method in ("minmax", "standard"):
        for groups in (None, ["q", "q"]):
            with pytest.raises(
                InputError, match="X spans more than the range of floating-point numbers: divide"
            ):
                QueryNormalizer(method).fit_transform(X, groups=groups)
    assert QueryNormalizer().fit_transform(X, groups=[0, 1]).tolist() == [[0], [0]]
    assert QueryNormalizer("rank").fit_transform(X, groups=["q", "q"]).tolist() == [[0], [1]]


@pytest.mark.parametrize("method", METHODS)
def test_missing_values(method):
    X = np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, 2.0], [2.0, 5.0]])
    groups = ["a", "a", "a", "b"]
    with pytest.raises(ValueError, match="contains NaN"):
        QueryNormalizer(method).fit(X)
    kept = QueryNormalizer(method, missing="keep").fit_transform(X, groups=groups)
    np.testing.assert_array_equal(np.isnan(kept), np.isnan(X))
    with pytest.raises(ValueError, match="contains infinity"):
        QueryNormalizer(method, missing="keep").fit(np.where(np.isnan(X), np.inf, X))


# learnt from all rows


@pytest.mark.parametrize(("method", "scaler"), SCALERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_learnt_scaling_equals_scikit_learn_on_new_rows(method, scaler, dtype):
    rng = np.random.default_rng(0)
    train, test = (rng.normal(3, spread, size=(30, 3)).astype(dtype) for spread in (1, 9))
    fitted = QueryNormalizer(method).fit(train)
    scaled, expected = fitted.transform(test), scaler.fit(train.astype(float)).transform(test.astype(float))
    assert scaled.dtype == dtype
    assert np.abs(scaled).max() > 2  # nothing is clipped
    np.testing.assert_allclose(scaled, expected, rtol=8 * np.finfo(dtype).eps, atol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize(("method", "scaler"), SCALERS)
def test_learnt_attributes(method, scaler):
    X = np.random.default_rng(0).normal(3, 5, size=(30, 2))
    fitted = QueryNormalizer(method).fit(X)
    scaler.fit(X)
    expected = {
        "minmax": lambda: (scaler.data_min_, scaler.data_range_),
        "standard": lambda: (scaler.mean_, scaler.scale_),
        "max": lambda: (np.zeros(2), scaler.max_abs_),
    }[method]()
    np.testing.assert_allclose((fitted.offset_, fitted.scale_), expected, rtol=1e-14)
    assert not hasattr(fitted, "values_")


def test_learnt_ranks_are_shares_of_the_training_rows():
    rng = np.random.default_rng(3)
    train, test = rng.integers(0, 9, (20, 3)).astype(float), rng.integers(-3, 12, (50, 3)).astype(float)
    fitted = QueryNormalizer("rank").fit(train)
    expected = [[np.mean(train[:, j] < row[j]) for j in range(3)] for row in test]
    np.testing.assert_allclose(fitted.transform(test), expected, rtol=1e-15)
    assert (fitted.transform(test).min(), fitted.transform(test).max()) == (0, 1)
    np.testing.assert_array_equal(fitted.values_, np.sort(train, axis=0))
    assert not hasattr(fitted, "scale_")


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@given(table=queries(st.one_of(SIMPLE, st.just(np.nan))))
def test_learnt_scaling_is_that_of_one_query(method, table):
    X, groups = table
    fitted = QueryNormalizer(method, missing="keep").fit(X)
    as_one = _naive(X, np.zeros(len(X)), method)
    if method == "rank":
        known = np.count_nonzero(~np.isnan(X), axis=0)
        as_one *= np.maximum(known - 1, 1) / np.maximum(known, 1)
    np.testing.assert_allclose(fitted.transform(X), as_one, rtol=1e-9, atol=1e-11)
    # with groups the same fit scales each query separately
    np.testing.assert_allclose(
        fitted.transform(X, groups=groups), _naive(X, groups, method), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("method", ["minmax", "standard", "max"])
def test_what_is_constant_in_training_becomes_zero(method):
    constant = 0.0 if method == "max" else 0.1
    train = np.array([[constant, np.nan, 1.0], [constant, np.nan, 2.0]])
    fitted = QueryNormalizer(method, missing="keep").fit(train)
    scaled = fitted.transform([[constant, 5.0, 1.0], [7.0, np.nan, 4.0]])
    np.testing.assert_array_equal(scaled[:, :2], [[0, 0], [0, np.nan]])
    assert scaled[1, 2] > scaled[0, 2]
    assert fitted.scale_.tolist()[:2] == [0, 0]


def test_learnt_ranks_without_a_training_value():
    fitted = QueryNormalizer("rank", missing="keep").fit([[np.nan, 4.0], [np.nan, np.nan], [np.nan, 6.0]])
    scaled = fitted.transform([[1.0, 5.0], [np.nan, np.nan], [0.0, 7.0]])
    np.testing.assert_array_equal(scaled, [[0, 0.5], [np.nan, np.nan], [0, 1]])


@pytest.mark.parametrize("method", ["minmax", "standard", "max"])
def test_new_rows_far_beyond_the_training_rows_are_refused(method):
    fitted = QueryNormalizer(method).fit([[0.0], [1e-10]])
    with pytest.raises(
        InputError, match="X is so far from the training rows that its scaled values overflow"
    ):
        fitted.transform([[1e300]])
    with pytest.raises(InputError, match="so far from the training rows"):
        fitted.transform(np.array([[1e30]], dtype=np.float32))
    assert np.isfinite(fitted.transform([[1e30]])).all()


@pytest.mark.parametrize("method", METHODS)
def test_forgotten_groups_are_an_error(method):
    X, groups = np.array([[1.0], [3.0], [9.0]]), ["a", "a", "b"]
    normalizer = QueryNormalizer(method).fit(X)
    learnt = vars(normalizer).keys() & {"offset_", "scale_", "values_"}
    assert learnt == ({"values_"} if method == "rank" else {"offset_", "scale_"})
    normalizer.fit(X, groups=groups)  # what an earlier fit learnt is gone
    assert not vars(normalizer).keys() & {"offset_", "scale_", "values_"}
    with pytest.raises(
        InputError, match=r"pass groups to transform too; a pipeline .*enable_metadata_routing=True"
    ) as e:
        normalizer.transform(X)
    assert "\n" not in str(e.value)
    np.testing.assert_array_equal(
        normalizer.transform(X, groups=groups), QueryNormalizer(method).fit_transform(X, groups=groups)
    )


@pytest.mark.parametrize("groups", [None, ["q"]])
def test_transform_needs_a_fit(groups):
    with pytest.raises(NotFittedError):
        QueryNormalizer().transform([[1.0]], groups=groups)


# sparse


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_equals_dense(container, dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.4)).astype(dtype)
    X[:, 5] = 0
    groups = rng.integers(0, 7, 40)
    normalizer = QueryNormalizer("max")
    scaled = normalizer.fit_transform(container(X), groups=groups)
    assert sparse.issparse(scaled)
    assert scaled.nnz == np.count_nonzero(X)
    assert scaled.dtype == dtype
    np.testing.assert_array_equal(scaled.toarray(), normalizer.transform(X, groups=groups))


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_learnt_sparse_equals_dense(container, dtype):
    rng = np.random.default_rng(0)
    train, test = ((rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.4)).astype(dtype) for _ in range(2))
    train[:, 5] = 0
    thin, dense = (QueryNormalizer("max").fit(X) for X in (container(train), train))
    np.testing.assert_array_equal(thin.scale_, dense.scale_)
    scaled = thin.transform(container(test))
    assert sparse.issparse(scaled)
    assert scaled.dtype == dtype
    np.testing.assert_array_equal(scaled.toarray(), dense.transform(test))
    assert not scaled.toarray()[:, 5].any()


def test_sparse_corner_cases():
    normalizer = QueryNormalizer("max", missing="keep")
    assert normalizer.fit_transform(sparse.csr_array((3, 2)), groups=[1, 1, 2]).nnz == 0
    twice = sparse.csr_array(
        (np.array([1.0, 3.0, 2.0]), np.array([0, 0, 0]), np.array([0, 2, 3])), shape=(2, 1)
    )
    assert normalizer.fit_transform(twice).toarray().tolist() == [[1], [0.5]]
    assert twice.nnz == 3  # the input is not modified
    holes = sparse.csr_array([[np.nan, 0.0], [4.0, np.nan], [-2.0, 0.0]])
    np.testing.assert_array_equal(
        normalizer.fit_transform(holes).toarray(), [[np.nan, 0], [1, np.nan], [-0.5, 0]]
    )
    np.testing.assert_array_equal(
        normalizer.transform(holes, groups=["q"] * 3).toarray(), [[np.nan, 0], [1, np.nan], [-0.5, 0]]
    )
    stored = sparse.csr_array((np.array([0.0]), ([0], [0])), shape=(1, 1))
    assert normalizer.fit_transform(stored).toarray().tolist() == [[0]]


@pytest.mark.parametrize("method", ["minmax", "standard", "rank"])
def test_sparse_is_refused_where_zeros_would_fill(method):
    with pytest.raises(
        InputError, match=r"would fill the zeros of a sparse X: use `method='max'`, or give X.toarray"
    ):
        QueryNormalizer(method).fit(sparse.csr_array(np.eye(2)))


# as an estimator


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (
            lambda: QueryNormalizer("median").fit([[1.0]]),
            "'method'",
        ),
        (
            lambda: QueryNormalizer().fit([[1.0]]).set_params(method="median").transform([[1.0]]),
            "'method'",
        ),
        (
            lambda: QueryNormalizer(missing="drop").fit([[1.0]]),
            "'missing'",
        ),
        (
            lambda: QueryNormalizer().fit([[1.0]], groups=[1, 2]),
            "`groups` needs one id per row: expected 1 ids",
        ),
        (
            lambda: QueryNormalizer().fit([[1.0]]).transform([[1.0]], groups=[1, 2]),
            "`groups` needs one id per row",
        ),
        (
            lambda: QueryNormalizer().fit_transform([[1.0]], groups=[None]),
            "`groups` has a missing id in row 0",
        ),
    ],
)
def test_bad_arguments(make, what):
    with pytest.raises(ValueError, match=what):
        make()


def test_frames_in_and_out():
    frame = pd.DataFrame({"bm25": [1.0, 3.0, 9.0], "length": [4.0, 2.0, 8.0]}, index=["x", "y", "z"])
    query = pd.Series(["a", "a", "b"], index=frame.index)
    normalizer = QueryNormalizer().set_output(transform="pandas")
    scaled = normalizer.fit_transform(frame, groups=query)
    pd.testing.assert_frame_equal(
        scaled, pd.DataFrame({"bm25": [0.0, 1.0, 0.0], "length": [1.0, 0.0, 0.0]}, index=frame.index)
    )
    assert normalizer.get_feature_names_out().tolist() == ["bm25", "length"]
    polars = pl.DataFrame({"bm25": [1.0, 3.0, 9.0], "length": [4.0, 2.0, 8.0]})
    np.testing.assert_array_equal(
        QueryNormalizer().fit_transform(polars, groups=pl.Series(["a", "a", "b"])), scaled
    )
    with pytest.raises(ValueError, match="feature names should match"):
        normalizer.transform(frame[["bm25"]])


def test_nothing_is_learnt_with_groups():
    train, test = np.array([[0.0], [100.0]]), np.array([[1.0], [3.0], [2.0]])
    for groups in (None, ["q", "q"]):
        fitted = QueryNormalizer().fit(train, groups=groups)
        assert fitted.transform(test, groups=["q"] * 3).tolist() == [[0], [1], [0.5]]


# groups through a pipeline


@pytest.mark.parametrize("method", METHODS)
def test_groups_are_routed_through_a_pipeline(method):
    train, test = (make_letor_example(random_state=seed) for seed in (0, 1))
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = CrucialPairsPush(p=1, alpha=0.1).set_fit_request(groups=True)
        pipe = make_pipeline(QueryNormalizer(method), ranker)
        pipe.fit(train.data, train.target, groups=train.groups)
        piped = pipe.predict(test.data, groups=test.groups)
        with pytest.raises(InputError, match="`groups` are missing"):
            pipe.predict(test.data)
    by_hand = CrucialPairsPush(p=1, alpha=0.1).fit(
        QueryNormalizer(method).fit_transform(train.data, groups=train.groups),
        train.target,
        groups=train.groups,
    )
    np.testing.assert_array_equal(
        piped, by_hand.predict(QueryNormalizer(method).fit_transform(test.data, groups=test.groups))
    )


def test_groups_are_routed_to_decision_function_and_transform():
    example = make_letor_example()
    relevant = (example.target > 0).astype(int)
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = PNormPush(alpha=0.1).set_fit_request(groups=True)
        pipe = make_pipeline(QueryNormalizer(), ranker).fit(example.data, relevant, groups=example.groups)
        scores = pipe.decision_function(example.data, groups=example.groups)
        scaled = pipe[:-1].transform(example.data, groups=example.groups)
        twice = make_pipeline(QueryNormalizer("rank"), QueryNormalizer())
        again = twice.fit_transform(example.data, groups=example.groups)
    np.testing.assert_array_equal(scores, pipe[-1].decision_function(scaled))
    ranks = QueryNormalizer("rank").fit_transform(example.data, groups=example.groups)
    np.testing.assert_array_equal(again, QueryNormalizer().fit_transform(ranks, groups=example.groups))


def test_requests_can_be_set():
    with sklearn.config_context(enable_metadata_routing=True):
        asked = QueryNormalizer().set_fit_request(groups=True).set_transform_request(groups=True)
        renamed = QueryNormalizer().set_fit_request(groups="query").set_transform_request(groups="query")
        X, query = np.array([[1.0], [3.0], [9.0]]), ["a", "a", "b"]
        for normalizer, name in ((QueryNormalizer(), "groups"), (asked, "groups"), (renamed, "query")):
            scaled = make_pipeline(normalizer).fit_transform(X, **{name: query})
            assert scaled.tolist() == [[0], [1], [0]]


def test_without_routing_fit_takes_groups_by_the_name_of_the_step():
    example = make_letor_example()
    pipe = make_pipeline(QueryNormalizer(), CrucialPairsPush(p=1, alpha=0.1))
    groups = {f"{step}__groups": example.groups for step in ("querynormalizer", "crucialpairspush")}
    pipe.fit(example.data, example.target, **groups)
    scaled = QueryNormalizer().fit_transform(example.data, groups=example.groups)
    by_hand = CrucialPairsPush(p=1, alpha=0.1).fit(scaled, example.target, groups=example.groups)
    np.testing.assert_array_equal(pipe[-1].coef_, by_hand.coef_)
    with pytest.raises(InputError, match="`groups` are missing"):
        pipe.predict(example.data)


def test_a_pipeline_without_groups_scales_as_learnt():
    train, test = (make_letor_example(random_state=seed) for seed in (0, 1))
    scores = [
        make_pipeline(scaler, CrucialPairsPush(p=1, alpha=0.1))
        .fit(train.data, train.target)
        .predict(test.data)
        for scaler in (QueryNormalizer(), MinMaxScaler())
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-6)


def _mean_ndcg(bunch, scores):
    rows = [np.flatnonzero(bunch.groups == query) for query in np.unique(bunch.groups)]
    return np.mean(
        [ndcg_score([bunch.target[r]], [scores[r]]) for r in rows if len(r) > 1 and bunch.target[r].any()]
    )


def test_scaling_inside_queries_helps_where_queries_differ():
    train, test = (make_letor_example(n_queries=100, random_state=seed) for seed in (0, 100))

    def quality(scale):
        ranker = CrucialPairsPush(p=1, alpha=0.1).fit(scale(train), train.target, groups=train.groups)
        return _mean_ndcg(test, ranker.predict(scale(test)))

    scaled = quality(lambda bunch: QueryNormalizer().fit_transform(bunch.data, groups=bunch.groups))
    assert scaled > quality(lambda bunch: bunch.data) + 0.02
