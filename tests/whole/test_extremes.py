"""Numbers and tables at the ends of what can be given: a right answer, a documented warning, or one line of refusal."""

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from apexrank import (
    CrucialPairsPush,
    InDegree,
    IRPush,
    ListwiseRanker,
    LpqRank,
    MonotoneRetargeting,
    PageRank,
    PNormPush,
    PNormPushCV,
    PushBoost,
    RankBoost,
    TwoStagePush,
    UnknownLinkRegressor,
    aggregate,
    metrics,
)
from apexrank.errors import InputError
from apexrank.graph import (
    ConcaveConvexRank,
    FairnessGoodness,
    RobustPageRank,
    TopMeanRank,
)
from apexrank.problem.blocks import ArrayBlocks
from apexrank.validation import check_not_huge
from apexrank_papers.link.ordered import perfectly_ordered

# what the documentation promises: coefficients that run away, or stop short, come with one of these
DOCUMENTED = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RANKERS = {
    "push p=1": lambda: PNormPush(1),
    "push p=1+1e-12": lambda: PNormPush(1 + 1e-12),
    "push p=4": lambda: PNormPush(4),
    "push p=1e3": lambda: PNormPush(1e3),
    "push p=1e6": lambda: PNormPush(1e6, max_iter=30),
    "push p=inf": lambda: PNormPush(np.inf, max_iter=30),
    "push without penalty": lambda: PNormPush(4, alpha=0),
    "push elastic net": lambda: PNormPush(4, alpha=1e-2, l1_ratio=0.5),
    "push lasso": lambda: PNormPush(4, alpha=1e-2, l1_ratio=1),
    "push logistic": lambda: PNormPush(4, loss="logistic"),
    "push squared hinge": lambda: PNormPush(2, loss="squared_hinge"),
    "push both sides": lambda: PNormPush(4, side="both"),
    "push exponential price": lambda: PNormPush(price="exponential", alpha=1e-2, max_iter=30),
    "push coordinate": lambda: PNormPush(4, solver="coordinate", max_iter=30),
    "IRPush": IRPush,
    "RankBoost": lambda: RankBoost(t_max=20),
    "PushBoost": lambda: PushBoost(n_estimators=3, random_state=0),
    "PNormPushCV": lambda: PNormPushCV(ps=[1, 4], alphas=[1e-3], cv=2, max_iter=30),
    "TwoStagePush": lambda: TwoStagePush(PNormPush(1), PNormPush(16, max_iter=30)),
    "CrucialPairsPush": CrucialPairsPush,
    "MonotoneRetargeting": MonotoneRetargeting,
    "listnet": lambda: ListwiseRanker("listnet"),
    "rank_cosine": lambda: ListwiseRanker("rank_cosine"),
    "pointwise": lambda: ListwiseRanker("pointwise"),
    "ndcg_consistent": lambda: ListwiseRanker("ndcg_consistent"),
    "unknown_link": lambda: ListwiseRanker("unknown_link"),
    "UnknownLinkRegressor": UnknownLinkRegressor,
}
every_ranker = pytest.mark.parametrize("make", RANKERS.values(), ids=RANKERS.keys())


def table(n=16):
    """Two overlapping classes: the first column ranks them, the second is noise."""
    rng = np.random.default_rng(3)
    y = np.arange(n) % 2
    return np.column_stack([2 * y + rng.normal(size=n), rng.normal(size=n)]), y


def scores_of(ranker, X):
    for name in ("decision_function", "index", "predict"):
        if hasattr(ranker, name):
            return getattr(ranker, name)(X)
    raise AssertionError("a ranker without scores")


def fitted(make, X, y, **arguments):
    """Scores of the rows; all fitted values and scores must be finite."""
    ranker = make()
    scores = scores_of(ranker.fit(X, y, **arguments), X)
    assert np.isfinite(scores).all()
    for name in ("coef_", "intercept_", "objective_", "grad_norm_"):
        assert np.isfinite(getattr(ranker, name, 0.0)).all(), name
    return scores


# errors of scikit-learn's trees about numbers beyond single precision, and about long indices
TREES = "too large for dtype('float32')", "int64 index based sparse matrices"


def fitted_or_refused(make, X, y, **arguments):
    """Scores of the rows, or None after a one-line error, which must be an InputError unless trees raise it."""
    try:
        return fitted(make, X, y, **arguments)
    except ValueError as error:
        if not isinstance(error, InputError) and not any(line in str(error) for line in TREES):
            raise
        check_one_line(error)
        return None


def check_one_line(error):
    assert str(error)
    assert "\n" not in str(error)


def ranks_first_column(X, scores):
    """Whether scores increase with the first column more than by chance."""
    order = np.argsort(np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=float)[:, 0])
    return np.corrcoef(np.argsort(np.argsort(scores)), np.argsort(order))[0, 1] > 0.3


def is_by_trees(make):
    """Trees compute in single precision and reject values that overflow it or are constant in it."""
    return isinstance(make(), PushBoost)


LASSO_AND_NONE = [PNormPush, lambda: PNormPush(4, l1_ratio=1), lambda: PNormPush(4, alpha=0)]
# the penalty leaves nothing of features this small, or steps are too small to be seen, which is warned of
FLAT_IF_SMALL = [RANKERS[name] for name in ("push elastic net", "push lasso", "push coordinate")]
# the same of weights, where the objective grows with them and the penalty does not
FLAT_IF_LIGHT = [RANKERS[name] for name in ("push lasso", "push exponential price", "rank_cosine")]
# of each column
FIT = [(1e-90, 1e-90), (1e90, 1e90), (1e90, 1e-90), (1.0, 1e-120), (1.0, 0.0)]
MAY_REFUSE = [(size, size) for size in (5e-322, 1e-300, 1e150, 1e300)] + [(1e-150, 1e150), (1e-150, 0.0)]


@pytest.mark.slow
@DOCUMENTED
@every_ranker
def test_features_of_any_size(make, counted):
    """Dense and sparse, all columns alike or one against the other: ranked or rejected, never overflowing."""
    X, y = table()
    for size in FIT:
        for rows in (X / 4 * size, sparse.csr_array(X / 4 * size)):
            if is_by_trees(make) and size[0] != 1:
                assert fitted_or_refused(make, rows, y) is None
            else:
                scores = fitted(make, rows, y)
                assert ranks_first_column(X, scores) or (size[0] < 1 and make in FLAT_IF_SMALL), size
    for size in MAY_REFUSE:
        for rows in (X / 4 * size, sparse.csr_array(X / 4 * size)):
            scores = fitted_or_refused(make, rows, y)
            assert scores is None or ranks_first_column(X, scores), size
    counted("fits at extreme sizes", 2 * len(FIT + MAY_REFUSE))


@DOCUMENTED
def test_a_column_too_small_to_see_changes_nothing():
    """Likelihoods and kernels of distant rows: their coefficient is 0, whatever the other rows, with a warning."""
    X, y = table()
    tiny = np.random.default_rng(0).random((len(X), 2)) * 1e-160
    plain = PNormPush(4).fit(X, y)
    with pytest.warns(UserWarning, match="column 2 of X"):
        wide = PNormPush(4).fit(np.column_stack([X, tiny, np.full(len(X), 1e-160)]), y)
    assert wide.coef_[0, :2] == pytest.approx(plain.coef_[0], rel=1e-9)
    assert np.abs(wide.coef_[0, 2:]).max() < 1e-9
    for rows in (tiny, np.column_stack([np.ones(len(X)), tiny]), np.column_stack([0 * X, tiny])):
        with pytest.raises(InputError, match=r"^column \d of X differs by no more than .*: scale X first$"):
            PNormPush(4).fit(rows, y)


@DOCUMENTED
@pytest.mark.parametrize("size", [1e-100, 1e-139, 1e100])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array, "blocks"])
@pytest.mark.parametrize("make", [*LASSO_AND_NONE, lambda: PNormPushCV(ps=[1, 4], cv=2), IRPush])
def test_a_column_of_another_size_ranks_as_well(make, store, size):
    """Only its relative spread decides whether a column is constant, whatever the size of its neighbours."""
    X, y = table(60)

    def scores(rows):
        if isinstance(store, str):
            return scores_of(make().fit(ArrayBlocks(rows, y, rows=20), None), rows)
        return scores_of(make().fit(store(rows), y), rows)

    assert metrics.auc(y, scores(X * [size, 1])) > metrics.auc(y, scores(X)) - 0.03


@DOCUMENTED
@every_ranker
def test_repeated_entries_of_a_sparse_matrix_are_their_sum(make):
    """scikit-learn's variances of sparse columns count each entry, which misled ``alpha="auto"``."""
    X, y = table()
    whole = sparse.csr_array(X)
    parts = np.column_stack([0.25 * whole.data, 0.75 * whole.data]).ravel()
    repeated = sparse.csr_array((parts, np.repeat(whole.indices, 2), 2 * whole.indptr), shape=X.shape)
    ranker, other = make().fit(whole, y), make().fit(repeated, y)
    assert getattr(other, "alpha_", 0) == pytest.approx(getattr(ranker, "alpha_", 0), rel=1e-12)
    np.testing.assert_allclose(scores_of(other, repeated), scores_of(ranker, whole), rtol=1e-6, atol=1e-9)
    assert repeated.nnz == 2 * whole.nnz


@pytest.mark.parametrize("store", [np.asarray, np.asfortranarray, sparse.csr_array, lambda X: X[::2]])
def test_the_column_of_a_huge_number_is_named(store):
    X, y = table(32)
    X[4, 1] = -1e200
    X, y = (store(X), y) if store in (np.asarray, np.asfortranarray, sparse.csr_array) else (store(X), y[:16])
    with pytest.raises(InputError, match=r"^column 1 of X has numbers as large as 1e\+200, beyond 1e\+120"):
        PNormPush(4).fit(X, y)


def test_many_numbers_of_a_size_that_can_be_squared_are_not_huge():
    check_not_huge("X", np.full((400, 50), -0.9e120))
    check_not_huge("X", np.full((400, 50), -0.9e120)[:, ::2])
    for rows in (np.zeros((2000, 900)), np.zeros((2000, 1800))[:, ::2]):
        rows[-1, 7] = 1.1e120
        with pytest.raises(InputError, match="column 7 of X"):
            check_not_huge("X", rows)


@DOCUMENTED
@pytest.mark.parametrize("size", [1e-90, 1e-30, 1e30, 1e90])
@pytest.mark.parametrize("p", [1, 4, 1e3, np.inf])
def test_a_unit_of_the_features_does_not_change_the_ranking(p, size):
    X, y = table()
    plain, scaled = (PNormPush(p, alpha=0).fit(rows, y).decision_function(rows) for rows in (X, X * size))
    assert np.array_equal(np.argsort(plain), np.argsort(scaled))


@DOCUMENTED
@every_ranker
def test_an_offset_of_the_features_leaves_a_ranking(make):
    X, y = table()
    if is_by_trees(make):
        with pytest.raises(InputError, match="every column of X is constant in single precision"):
            make().fit(X + 1e12, y)
        return
    plain = metrics.auc(y, fitted(make, X, y))  # the minimum itself may be below 0.8
    assert metrics.auc(y, fitted(make, X + 1e12, y)) > min(0.8, plain - 1e-9)


N = 16
WEIGHTS = {
    "1e-50": np.full(N, 1e-50),
    "1e50": np.full(N, 1e50),
    "one of 1e50": np.r_[1e50, np.ones(N - 1)],
    "1e-50 to 1e50": 10.0 ** np.linspace(-50, 50, N),
    "decaying": np.exp(-15.0 * np.arange(N)),
    "four rows": np.where(np.arange(N) % 8 < 2, 1.0, 0.0),
}
ODD_WEIGHTS = [np.full(N, size) for size in (5e-324, 1e-300, 1e300)]
ODD_WEIGHTS += [
    np.r_[1e300, np.ones(N - 1)],
    np.r_[0, np.full(N - 1, 1e-320)],
    10.0 ** np.linspace(-110, 50, N),
]


@DOCUMENTED
@every_ranker
def test_weights_of_any_size(make, counted):
    X, y = table(N)
    for name, weight in WEIGHTS.items():
        if make is RANKERS["ndcg_consistent"] and weight.max() > 1:
            with pytest.raises(InputError, match="too many ranks"):  # which are sums of weights
                make().fit(X, y, sample_weight=weight)
            continue
        scores = fitted(make, X, y, sample_weight=weight)
        is_flat = weight.max() < 1 and make in FLAT_IF_LIGHT
        assert ranks_first_column(X, scores) or np.ptp(weight) > 0 or is_flat, name
    for weight in ODD_WEIGHTS:
        with pytest.raises(InputError, match=r"^(the largest )?`sample_weight` (is|spans) [^\n]*$"):
            make().fit(X, y, sample_weight=weight)
    counted("fits at extreme sizes", len(WEIGHTS) + len(ODD_WEIGHTS))


# whose minimum depends on sums of weights, not on which rows there are at all
SUMS = ["push p=1", "push p=4", "push logistic", "push both sides", "push coordinate", "RankBoost"]
SUMS += ["CrucialPairsPush", "MonotoneRetargeting", "listnet", "rank_cosine", "pointwise", "ndcg_consistent"]
SUMS += ["unknown_link", "UnknownLinkRegressor"]


@DOCUMENTED
@pytest.mark.parametrize("name", SUMS)
def test_weights_that_decay_are_as_good_as_zero(name):
    X, y = table(120)
    weight = np.exp(-2.0 * np.arange(120))
    scores, wanted = (
        fitted(RANKERS[name], X, y, sample_weight=w) for w in (weight, weight * (weight > 1e-50))
    )
    # a threshold in the middle between two rows depends on which there are
    assert scores - scores[0] == pytest.approx(wanted - wanted[0], rel=1e-9)


class Refuses(PNormPush):
    def fit(self, X, y, sample_weight=None):
        raise ValueError("no")


def test_a_ranker_that_always_refuses_would_be_seen():
    for test in (test_features_of_any_size, test_weights_of_any_size):
        with pytest.raises(ValueError, match="no"):
            test(Refuses, lambda *_: None)
    with pytest.raises(ValueError, match="no"):
        fitted_or_refused(Refuses, *table())
    with pytest.raises(ValueError, match="no"):
        test_nothing_to_rank_by_ties_all_rows(Refuses)


@DOCUMENTED
def test_rows_in_blocks_have_the_same_limits():
    X, y = table(24)
    decaying, groups = np.exp(-8.0 * np.arange(24)), np.arange(24) // 8

    def in_blocks(ranker, rows, weight=None):
        own = groups if isinstance(ranker, MonotoneRetargeting) else None
        return ranker.fit(ArrayBlocks(rows, y, weight, own, rows=8), None)

    tiny = np.column_stack([X, 1e-120 * X[:, 0]])
    for rows, weight in ((X, decaying), (X, decaying[::-1]), (tiny, None), (X * 1e90, None)):
        wanted = PNormPush(2, alpha=0.1).fit(rows, y, sample_weight=weight).coef_
        assert in_blocks(PNormPush(2, alpha=0.1), rows, weight).coef_ == pytest.approx(wanted, rel=1e-6)
    for make in (lambda: PNormPush(2), MonotoneRetargeting):
        for size in (1e-300, 1e300):
            with pytest.raises(InputError, match="the largest `sample_weight` is"):
                in_blocks(make(), X, np.full(24, size))
        with pytest.raises(InputError, match="`sample_weight` spans"):
            in_blocks(make(), X, 10.0 ** np.linspace(-110, 50, 24))
        with pytest.raises(InputError, match="column 0 of X has numbers as large as"):
            in_blocks(make(), X * [1e300, 1], np.r_[0, np.ones(23)])
        with pytest.raises(InputError, match="column 1 of X differs by no more than"):
            in_blocks(make(), np.column_stack([np.ones(24), 1e-200 * X]))


def test_rows_on_a_device_have_the_same_limits():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    X, y = table()

    def on_device(rows, weight=None):
        return PNormPush(2, alpha=0.1).fit(torch.tensor(rows), y, sample_weight=weight)

    decaying = np.exp(-15.0 * np.arange(len(X)))
    for rows, weight in ((X, decaying), (np.column_stack([X, 1e-120 * X[:, 0]]), None)):
        wanted = PNormPush(2, alpha=0.1).fit(rows, y, sample_weight=weight).coef_
        assert np.asarray(on_device(rows, weight).coef_) == pytest.approx(wanted, rel=1e-6, abs=1e-12)
    with pytest.raises(InputError, match=r"the largest `sample_weight` is 1e\+300"):
        on_device(X, np.full(len(X), 1e300))
    with pytest.raises(InputError, match="column 1 of X has numbers as large as"):
        on_device(X * [1, 1e300])
    with pytest.raises(InputError, match="column 0 of X differs by no more than"):
        on_device(X * 1e-200)


SHAPES = {
    "constant column": lambda X: np.column_stack([X[:, 0], np.full(len(X), 7.0)]),
    "single column": lambda X: X[:, :1],
    "collinear": lambda X: np.column_stack([X[:, 0], 2 * X[:, 0], X[:, 0] / 3]),
    "one-hot of one row": lambda X: np.column_stack([X, np.eye(len(X))[:, 5]]),
    "float16": lambda X: X.astype(np.float16),
    "float32": lambda X: X.astype(np.float32),
    "int64": lambda X: np.round(10 * X).astype(np.int64),
    "uint8": lambda X: np.clip(np.round(10 * X) + 60, 0, 255).astype(np.uint8),
    "bool": lambda X: X > 1,
    "Fortran order": np.asfortranarray,
    "every second": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda X: X[::-1].copy()[::-1],
    "read-only": lambda X: locked(X.copy()),
    "sparse": sparse.csr_array,
    "sparse by columns": sparse.csc_array,
    "sparse with int64 indices": lambda X: with_index(sparse.csr_array(X), np.int64),
    "sparse with int32 indices": lambda X: with_index(sparse.csr_array(X), np.int32),
    "sparse, entries in halves": lambda X: in_halves(X),
    "sparse, zeros written": lambda X: with_zeros(X),
    "sparse, read-only": lambda X: locked_sparse(X),
}


def locked(X):
    X.flags.writeable = False
    return X


def with_index(X, kind):
    X.indices, X.indptr = X.indices.astype(kind), X.indptr.astype(kind)
    return X


def in_halves(X):
    """Every entry stored as two halves, which must be added."""
    n, d = X.shape
    columns = np.tile(np.repeat(np.arange(d), 2), n)
    return sparse.csr_array(
        (np.repeat(X.ravel() / 2, 2), columns, np.arange(0, 2 * n * d + 1, 2 * d)), X.shape
    )


def with_zeros(X):
    """A third column of explicitly stored zeros."""
    wide = sparse.csr_array(np.column_stack([X, np.ones(len(X))]))
    wide.data[2::3] = 0.0
    return wide


def locked_sparse(X):
    rows = sparse.csr_array(X)
    for part in (rows.data, rows.indices, rows.indptr):
        part.flags.writeable = False
    return rows


@DOCUMENTED
@every_ranker
@pytest.mark.slow
def test_tables_of_any_make(make, counted):
    """All of them contain the informative column, so all are ranked by it."""
    X, y = table()
    for name, change in SHAPES.items():
        rows = change(X)
        before = rows.copy()
        scores = fitted_or_refused(make, rows, y)
        if scores is None:  # scikit-learn's trees accept only four-byte indices
            assert isinstance(make(), PushBoost)
            assert rows.indices.dtype == np.int64
        elif name != "bool":
            assert ranks_first_column(X, scores), name
        difference = rows != before
        assert not (difference.nnz if sparse.issparse(difference) else difference.any()), name
    counted("fits of odd tables", len(SHAPES))


@DOCUMENTED
@pytest.mark.parametrize(
    "kind", [name for name in SHAPES if name.startswith(("sparse", "Fortran", "every", "back"))]
)
def test_how_numbers_are_stored_does_not_change_the_answer(kind):
    X, y = table()
    plain, other = (PNormPush(4, alpha=1e-2, tol=1e-9).fit(rows, y) for rows in (X, SHAPES[kind](X)))
    assert other.coef_[0, :2] == pytest.approx(plain.coef_[0], rel=1e-6)


@DOCUMENTED
@every_ranker
def test_nothing_to_rank_by_ties_all_rows(make):
    _, y = table()
    for X in (np.zeros((len(y), 2)), np.full((len(y), 2), 3.0), sparse.csr_array((len(y), 2))):
        assert np.ptp(fitted(make, X, y)) == 0


@DOCUMENTED
@every_ranker
def test_more_features_than_rows(make):
    rng = np.random.default_rng(0)
    X, y = np.c_[np.arange(8.0), rng.normal(size=(8, 15)) / 4], np.arange(8) // 4
    scores = fitted_or_refused(make, X, y)
    assert scores is not None
    assert metrics.auc(y, scores) == 1


@DOCUMENTED
@every_ranker
@pytest.mark.parametrize("rare", [0, 1])
def test_one_row_of_a_class(make, rare):
    X = np.array([[-2.5], [-1.5], [-0.5], [0.5], [1.5], [2.5]]) * (1 if rare else -1)
    y = np.where(np.arange(6) == 5, rare, 1 - rare)
    if isinstance(make(), PNormPushCV):  # which needs a row of each class on both sides of a split
        return
    scores = fitted_or_refused(make, X, y)
    assert metrics.auc(y, scores) == 1


@DOCUMENTED
@pytest.mark.parametrize(
    "name", ["push p=1", "push p=4", "push p=1e3", "push logistic", "push both sides", "IRPush"]
)
def test_weights_are_repetitions_and_repeated_rows_are_tied(name):
    X, y = table(12)
    times = np.arange(12) % 3 + 1
    make = lambda: RANKERS[name]().set_params(alpha=1e-2, tol=1e-9)  # noqa: E731
    weighted = make().fit(X, y, sample_weight=times)
    repeated = make().fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert repeated.coef_ == pytest.approx(weighted.coef_, rel=1e-5)
    scores = repeated.decision_function(np.repeat(X, times, axis=0))
    assert all(np.ptp(part) <= 4e-16 * abs(part[0]) for part in np.split(scores, np.cumsum(times)[:-1]))


@pytest.mark.parametrize("p", [0.5, 0, -1, np.nan, -np.inf, "4", None])
@pytest.mark.parametrize(
    "make",
    [PNormPush, CrucialPairsPush, LpqRank, lambda p: PushBoost(p=p), lambda p: PNormPushCV(ps=[p], cv=2)],
    ids=["PNormPush", "CrucialPairsPush", "LpqRank", "PushBoost", "PNormPushCV"],
)
def test_an_impossible_p_is_refused_in_one_line(make, p):
    ranker = make(p)
    X, y = table()
    with pytest.raises(ValueError, match=r"^[^\n]*\bp\b[^\n]*$"):
        ranker.fit((["a", "b"], ["b", "a"])) if isinstance(ranker, LpqRank) else ranker.fit(X, y)


def slow_push(X, y, w, p, alpha):
    """Value and gradient of the P-Norm Push in extended precision, row by row."""
    X, w = X.astype(np.longdouble), w.astype(np.longdouble)
    up, down = -(X[y == 1] @ w), X[y == 0] @ w * p
    shares = [np.exp(part - part.max()) for part in (up, down)]
    value = sum(
        factor * (part.max() + np.log(share.sum()))
        for factor, part, share in zip((1, 1 / np.longdouble(p)), (up, down), shares, strict=True)
    )
    lifts = [share / share.sum() @ X[y == c] for share, c in zip(shares, (1, 0), strict=True)]
    return value + alpha / 2 * (w @ w), lifts[1] - lifts[0] + alpha * w


@pytest.mark.parametrize("p", [1, 1 + 1e-12, 4, 64, 1e3])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_certificates_agree_with_extended_precision(p, size):
    """The reported gap equals that of a slow computation, |gradient|²/(2·alpha), and is at most the requested one."""
    X, y = table()
    X, alpha = X * size, 1e-2 * size**2
    ranker = PNormPush(p, alpha=alpha).fit(X, y)
    value, slope = slow_push(X, y, ranker.coef_[0], p, alpha)
    assert ranker.objective_ == pytest.approx(float(value), rel=1e-12)
    spread = np.hypot(X.std(axis=0), np.sqrt(alpha))
    assert float(np.abs(slope / spread).max()) <= 1e-6
    assert ranker.grad_norm_ == pytest.approx(float(np.abs(slope / spread).max()), rel=1e-2, abs=1e-12)
    assert ranker.dual_gap_ == pytest.approx(float(slope @ slope / (2 * alpha)), rel=2e-2, abs=1e-20)


@DOCUMENTED
@pytest.mark.parametrize("p", [1e6, np.inf])
def test_the_limit_of_p_is_approached(p):
    """The objective differs from its limit by at most log(number of negatives)/p, also at the minimum."""
    X, y = table()
    ranker = PNormPush(p, alpha=1e-2, tol=1e-7).fit(X, y)
    limit = PNormPush(np.inf, alpha=1e-2, tol=1e-7).fit(X, y)
    assert 0 <= ranker.objective_ - limit.objective_ + 1e-6 <= 2e-6 + np.log(8) / p


def test_rows_too_large_to_score_are_refused():
    X, y = table()
    ranker = PNormPush(4).fit(X * 1e-3, y)
    with pytest.raises(InputError, match="row 1 of X has numbers too large to score"):
        ranker.decision_function([[0.0, 0.0], [1.7e308, 1.7e308]])


@pytest.mark.parametrize("size", [1e-90, 1e-30, 1e12, 1e90])
def test_perfect_order_at_any_size(size):
    X, _ = table()
    y = np.exp(X @ [0.6, 0.8])
    fit = perfectly_ordered(X * size, y)
    assert fit.converged
    assert np.array_equal(np.argsort(X @ (fit.coef * size)), np.argsort(y))
    with pytest.raises(InputError, match="X has numbers as large as"):
        perfectly_ordered(X * 1e200, y)


EDGES = ["a", "b", "c", "a", "d"], ["b", "c", "a", "c", "a"]
GRAPH_RANKS = [
    PageRank(),
    InDegree(),
    TopMeanRank(),
    ConcaveConvexRank(),
    RobustPageRank(),
    *(LpqRank(p) for p in (1, 1 + 1e-12, 2, 1e3, 1e6, np.inf)),
    LpqRank(8, 1.0),
    FairnessGoodness(),
    *(LpqRank(p, teleport="weak-links") for p in (1 + 1e-12, 2, 1e3, 1e6, np.inf)),
]


@pytest.mark.parametrize("rank", GRAPH_RANKS, ids=str)
@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-150, 1e150, 1e300])
def test_weights_of_links_of_any_size(rank, size):
    """Only shares of a vertex's weights count: the unit of all weights does not matter."""
    plain = rank.fit((*EDGES, np.ones(5))).scores_
    scaled = rank.fit((*EDGES, np.full(5, size))).scores_
    assert np.isfinite(scaled).all()
    assert scaled == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize("rank", GRAPH_RANKS, ids=str)
def test_links_of_very_different_weights(rank):
    for weights in ([1e300, 1e-300, 1, 1, 1], [1, 1, 1e-300, 1, 1e300]):
        try:
            scores = rank.fit((*EDGES, weights)).scores_
        except InputError as error:
            check_one_line(error)
        else:
            assert np.isfinite(scores).all()
    with pytest.raises(InputError, match="the sum of the weights overflows"):
        rank.fit((*EDGES, [1e308] * 5))


METHODS = ["lovasz-bregman", "borda", "copeland", "kemeny", "median", "combsum", "combmnz", "rrf"]


@pytest.mark.parametrize("size", [5e-322, 1e-300, 1e-150, 1e150, 1e300])
def test_ballots_of_any_size(size):
    """A single voter's order, given three times, is the result for any unit of the scores."""
    ballots = np.tile([3.0, 1.0, 2.0, 0.0], (3, 1)) * size
    for method in METHODS:
        result = aggregate(ballots, method=method)
        assert np.isfinite(result.scores).all()
        assert result.order == [0, 2, 1, 3], method
    shifted = aggregate(np.tile([3.0, 1.0, 2.0, 0.0], (3, 1)) + 1e12)
    assert shifted.order == [0, 2, 1, 3]


MEASURES = ["auc", "partial_auc", "average_precision", "precision_at_2", "ndcg@3", "mrr"]


@pytest.mark.parametrize("size", [5e-322, 1e-300, 1e150, 1e300])
def test_measures_see_the_order_of_scores_only(size):
    y, scores = [1, 0, 1, 0, 0], np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    assert metrics.evaluate(y, scores * size, MEASURES) == metrics.evaluate(y, scores, MEASURES)
    for weight in (1e-50, 1e50):  # places are counted in whole rows, shares in any unit
        weighted = metrics.evaluate(y, scores, MEASURES[:2], sample_weight=np.full(5, weight))
        assert weighted == pytest.approx(metrics.evaluate(y, scores, MEASURES[:2]), rel=1e-12)
    for weight in (5e-324, 1e-300, 1e300):  # products of two such weights are 0 or infinite
        with pytest.raises(InputError, match="the largest `sample_weight` is"):
            metrics.auc(y, scores, sample_weight=np.full(5, weight))


MANY = 10_000_000
RARE = np.float32([[1.25], [0.75], [0.5]])


@pytest.fixture(scope="module")
def lopsided():
    """Ten million rows of one class, in fifteen kinds, and three of the other class; with the count of each kind."""
    grid = np.float32(np.arange(15) / 14)[:, None]
    X = np.resize(grid, (MANY + 3, 1))
    X[MANY:] = RARE
    times = np.r_[np.bincount(np.arange(MANY) % 15), 1, 1, 1]
    return X, np.concatenate([grid, RARE]), times


@pytest.mark.parametrize(
    ("rare", "solver"), [(1, "auto"), (0, "lbfgs")], ids=["three positives", "three negatives"]
)
@pytest.mark.slow
def test_ten_million_rows_against_three(lopsided, rare, solver, counted):
    """Fit, threshold and measures equal those of the fifteen weighted kinds of rows, at little more than one pass."""
    X, kinds, times = lopsided
    y = np.full(len(X), 1 - rare, dtype=np.int8)
    y[MANY:] = rare
    answers = np.where(np.arange(18) < 15, 1 - rare, rare)
    small = PNormPush(4, alpha=1e-3).fit(kinds, answers, sample_weight=times)
    tracemalloc.start()
    large = PNormPush(4, alpha=1e-3, solver=solver).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 13 * 8 * MANY  # a handful of copies of a row with its answer, score and slope
    assert large.converged_
    assert large.coef_ == pytest.approx(small.coef_, rel=1e-5)
    assert large.intercept_ == pytest.approx(small.intercept_, rel=1e-6)
    scores = small.decision_function(X)
    found = metrics.evaluate(y, scores, ["auc", "partial_auc", "average_precision"])
    wanted = metrics.evaluate(
        answers, small.decision_function(kinds), list(found), sample_weight=times.astype(float)
    )
    assert found == pytest.approx(wanted, rel=1e-9)
    counted("rows of one class against three", MANY)


def test_overflow_is_an_error_here():
    """The tests above can fail: a numpy warning is an error in this suite, a documented one is allowed."""
    with pytest.raises(RuntimeWarning, match="overflow"):
        np.float64(1e308) * 10
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.raises(RuntimeWarning, match="overflow"):
            np.full(2, 1e308).sum()


def test_rows_at_an_odd_address():
    """Arrays as Dask sends them: some BLAS kernels crash unless they are aligned first."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + rng.normal(size=200) > 1
    odd = np.zeros(X.nbytes + 1, dtype=np.uint8)[1:].view(np.float64).reshape(X.shape)
    odd[:] = X
    assert not odd.flags.aligned
    np.testing.assert_array_equal(PNormPush().fit(odd, y).coef_, PNormPush().fit(X, y).coef_)
