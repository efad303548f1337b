"""Blocks of rows give the same sums, coefficients and certificates as rows in memory."""

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.base import clone

from apexrank.errors import InputError
from apexrank.objectives.push import Push
from apexrank.objectives.retarget import Retarget
from apexrank.problem import BlockDesign, Problem
from apexrank.problem.blocks import ArrayBlocks, Block, Blocks, column_moments, merge_moments, survey
from apexrank.rankers.base import SeparableWarning
from apexrank.rankers.boost import PushBoost
from apexrank.rankers.link import UnknownLinkRegressor
from apexrank.rankers.push import IRPush, PNormPush, RankBoost
from apexrank.rankers.retarget import MonotoneRetargeting

EXACT = {"rtol": 1e-8, "atol": 1e-10}


def two_classes(n=900, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 10.0, 0.1, 1.0]
    y = X[:, 0] + X[:, 1] / 10 + rng.normal(size=n) > 1
    return X, y.astype(int), rng.integers(0, 3, n).astype(float)


def lists(seed=0, n_groups=40):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 12, n_groups)
    groups = np.repeat(np.arange(n_groups), sizes)
    X = rng.normal(size=(len(groups), 3))
    y = np.digitize(X @ [1.0, -1.0, 0.3] + rng.normal(size=len(groups)), [-1.0, 0.5, 2.0])
    return X, y.astype(float), groups


class Counted(Blocks):
    """Blocks that count the passes over them."""

    def __init__(self, blocks):
        self.blocks, self.passes = blocks, 0

    def __iter__(self):
        self.passes += 1
        return iter(self.blocks)


@pytest.mark.parametrize("side", ["top", "bottom", "both"])
@pytest.mark.parametrize("price", ["power", "identity", "log1p"])
def test_value_gradient_and_hessian_are_those_in_memory(price, side):
    X, y, weight = two_classes()
    options = {"price": price, "side": side, "balance": 0.7}
    local = Problem(X, Push(y == 1, sample_weight=weight, **options), 0.3, weight)
    blocks = ArrayBlocks(X, y, weight, rows=130)
    found = survey(blocks, binary=True)
    push = Push([True, False], sample_weight=np.array([found.labels[1], found.labels[0]]), **options)
    problem = Problem(BlockDesign(blocks, found, 1), push, 0.3)
    w = np.array([0.3, -0.02, 1.0, 0.1])
    for at in (np.zeros(4), w):
        value, grad = problem.value_and_grad(at)
        expected, slope = local.value_and_grad(at)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(grad, slope, rtol=1e-9, atol=1e-10 * np.abs(slope).max())
        np.testing.assert_allclose(problem.hessian(at), local.hessian(at), rtol=1e-8, atol=1e-9)
    numeric = approx_fprime(w, lambda v: problem.value_and_grad(v)[0], 1e-7)
    np.testing.assert_allclose(problem.value_and_grad(w)[1], numeric, rtol=1e-4, atol=1e-4)
    for name in ("total", "curvature", "lower_bound", "grad_unit", "hessian_cost"):
        assert getattr(problem, name) == pytest.approx(getattr(local, name), rel=1e-12), name
    np.testing.assert_allclose(problem.scale, local.scale, rtol=1e-12)
    assert push.separable_below == pytest.approx(local.objective.separable_below, rel=1e-12)


@pytest.mark.parametrize(
    "params",
    [
        {"p": 4},
        {"p": 1, "side": "bottom"},
        {"p": 2, "side": "both", "balance": 0.5},
        {"price": "identity"},
        {"price": "log1p"},
        {"p": 3, "solver": "lbfgs", "tol": 1e-8},
    ],
    ids=str,
)
def test_a_push_in_blocks_has_the_coefficients_of_one_in_memory(params):
    X, y, weight = two_classes()
    options = {"alpha": 0.05, "tol": 1e-10, **params}
    local = PNormPush(**options).fit(X, y, sample_weight=weight)
    ranker = PNormPush(**options).fit(ArrayBlocks(X, y, weight, rows=250), None)
    np.testing.assert_allclose(ranker.coef_, local.coef_, **EXACT)
    np.testing.assert_allclose(ranker.intercept_, local.intercept_, **EXACT)
    assert ranker.objective_ == pytest.approx(local.objective_, rel=1e-12)
    assert ranker.converged_
    assert 0 <= ranker.dual_gap_ < 1e-12
    np.testing.assert_array_equal(ranker.predict(X), local.predict(X))
    assert ranker.coef_.shape == (1, 4)
    assert ranker.classes_.tolist() == [0, 1]


def test_an_ir_push_in_blocks():
    X, y, _ = two_classes()
    local = IRPush(alpha=0.1, tol=1e-10).fit(X, y)
    ranker = IRPush(alpha=0.1, tol=1e-10).fit(ArrayBlocks(X, y, rows=111), None)
    np.testing.assert_allclose(ranker.coef_, local.coef_, **EXACT)
    np.testing.assert_allclose(ranker.intercept_, local.intercept_, **EXACT)


@given(st.integers(1, 200), st.integers(0, 5))
def test_any_cut_into_blocks_gives_the_same_sums(rows, seed):
    X, y, weight = two_classes(150, seed=seed)
    push = Push(y == 1, sample_weight=weight)
    expected = Problem(X, push, 0.1, weight).value_and_grad(np.full(4, 0.2))
    blocks = ArrayBlocks(X, y, weight, rows=rows)
    found = survey(blocks, binary=True)
    totals = np.array([found.labels[1], found.labels[0]])
    push = Push([True, False], sample_weight=totals)
    value, grad = Problem(BlockDesign(blocks, found, 1), push, 0.1).value_and_grad(np.full(4, 0.2))
    assert value == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(grad, expected[1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        found.moments.mean, np.average(X, axis=0, weights=weight), rtol=1e-9, atol=1e-12
    )
    spread = np.sqrt(np.average((X - found.moments.mean) ** 2, axis=0, weights=weight))
    np.testing.assert_allclose(found.moments.spread, spread, rtol=1e-10)


def test_passes_over_the_blocks():
    X, y, _ = two_classes()
    for options, passes in (({}, 1), ({"side": "both"}, 1), ({"price": "log1p"}, 2)):
        blocks = Counted(ArrayBlocks(X, y, rows=300))
        found = survey(blocks, binary=True)
        assert blocks.passes == 1
        totals = np.array([found.labels[1], found.labels[0]])
        push = Push([True, False], sample_weight=totals, **options)
        problem = Problem(BlockDesign(blocks, found, 1), push, 0.1)
        problem.value_and_grad(np.ones(4))
        assert blocks.passes == 1 + passes, options
        problem.hessian(np.ones(4))
        assert blocks.passes == 2 + passes, options


def test_columns_far_from_zero_keep_their_digits():
    X, y, _ = two_classes()
    far = X + np.array([1e9, 0.0, 0.0, 0.0])
    near = PNormPush(p=2, alpha=0.1).fit(X, y)
    ranker = PNormPush(p=2, alpha=0.1).fit(ArrayBlocks(far, y, rows=100), None)
    local = PNormPush(p=2, alpha=0.1).fit(far, y)
    np.testing.assert_allclose(ranker.coef_, near.coef_, rtol=1e-5)
    np.testing.assert_allclose(ranker.intercept_, local.intercept_, rtol=1e-9)


def test_huge_values_do_not_overflow():
    moments = merge_moments(
        column_moments(np.array([[1e200], [3e200]]), None), column_moments(np.array([[5e200]]), None)
    )
    assert moments.mean[0] == pytest.approx(3e200)
    assert moments.spread[0] == pytest.approx(1e200 * np.sqrt(8 / 3))


def test_separated_data_without_a_penalty():
    X = np.linspace(-1, 1, 60)[:, None]
    y = X[:, 0] > 0.2
    with pytest.warns(SeparableWarning):
        ranker = PNormPush(p=2, alpha=0).fit(ArrayBlocks(X, y, rows=7), None)
    assert ranker.coef_[0, 0] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PNormPush(p=2, alpha=0.01).fit(ArrayBlocks(X, y, rows=7), None)


def test_single_precision_and_whole_numbers():
    X, y, _ = two_classes()
    for kind in (np.float32, np.int64):
        rows = (10 * X).astype(kind)
        local = PNormPush(alpha=0.1, tol=1e-10).fit(rows, y)
        ranker = PNormPush(alpha=0.1, tol=1e-10).fit(ArrayBlocks(np.asfortranarray(rows), y, rows=200), None)
        np.testing.assert_allclose(ranker.coef_, local.coef_, rtol=1e-6)


def test_labels_of_any_kind_and_a_warm_start():
    X, y, _ = two_classes()
    words = np.where(y == 1, "yes", "no")
    ranker = PNormPush(alpha=0.1, warm_start=True).fit(ArrayBlocks(X, words, rows=200), None)
    assert ranker.classes_.tolist() == ["no", "yes"]
    assert set(ranker.predict(X)) == {"no", "yes"}
    assert ranker.fit(ArrayBlocks(X, words, rows=200), None).n_iter_ == 1


@pytest.mark.parametrize("divergence", ["squared", "kl", "i-divergence"])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_retargeting_in_blocks_has_the_coefficients_of_one_in_memory(divergence, solver):
    X, y, groups = lists()
    options = {"divergence": divergence, "solver": solver, "tol": 1e-9 if solver == "newton" else 1e-7}
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    local = MonotoneRetargeting(**options).fit(X, y, groups=groups, sample_weight=weight)
    ranker = MonotoneRetargeting(**options).fit(ArrayBlocks(X, y, weight, groups, rows=50), None)
    np.testing.assert_allclose(ranker.coef_, local.coef_, **EXACT)
    assert ranker.n_groups_ == local.n_groups_
    assert ranker.objective_ == pytest.approx(local.objective_, rel=1e-12)
    assert ranker.dual_gap_ == pytest.approx(local.dual_gap_, abs=1e-12)


def test_units_of_lists_are_those_in_memory():
    X, y, groups = lists()
    local = Problem(X, Retarget(y, groups=groups, offsets="sqrt"), 1.0)
    blocks = ArrayBlocks(X, y, groups=groups, rows=30)
    problem = Problem(BlockDesign(blocks, survey(blocks, binary=False)), local.objective, 1.0)
    for name in ("total", "curvature", "lower_bound", "grad_unit"):
        assert getattr(problem, name) == pytest.approx(getattr(local, name), rel=1e-12), name
    np.testing.assert_allclose(problem.scale, local.scale, rtol=1e-12)
    w = np.array([0.5, -0.5, 0.1])
    np.testing.assert_allclose(problem.hessian(w), local.hessian(w), rtol=1e-10)


def test_blocks_without_a_pair_count_nothing():
    X, y, groups = lists()
    y[groups < 12] = 1.0
    local = MonotoneRetargeting(tol=1e-10).fit(X, y, groups=groups)
    ranker = MonotoneRetargeting(tol=1e-10).fit(ArrayBlocks(X, y, groups=groups, rows=20), None)
    np.testing.assert_allclose(ranker.coef_, local.coef_, **EXACT)
    with pytest.raises(InputError, match="no pair to rank"):
        MonotoneRetargeting().fit(ArrayBlocks(X, np.ones_like(y), groups=groups, rows=20), None)


@pytest.mark.parametrize(
    "ranker",
    [
        PNormPush(loss="logistic", alpha=0.05, tol=1e-9),
        PNormPush(p=np.inf, alpha=0.1),
        PNormPush(price="exponential", alpha=0.1, tol=1e-9),
        PNormPush(alpha=0.05, l1_ratio=0.5, tol=1e-9),
        PNormPush(alpha=0.05, l1_ratio=1.0, tol=1e-9),
        PNormPush(p=2, solver="coordinate", alpha=0.1, max_iter=30),
        RankBoost(t_max=10),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_no_sum_over_rows_is_fitted_on_the_scores(ranker):
    X, y, weight = two_classes(300)
    local = clone(ranker).fit(X, y, sample_weight=weight)
    found = ranker.fit(ArrayBlocks(X, y, weight, rows=70), None)
    np.testing.assert_allclose(found.coef_, local.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.intercept_, local.intercept_, rtol=1e-6, atol=1e-8)


def test_groups_may_lie_in_several_blocks():
    X, y, groups = lists()
    order = np.random.default_rng(0).permutation(len(y))
    mixed = Listed(*(Block(X[some], y[some], None, groups[some]) for some in np.array_split(order, 5)))
    local = MonotoneRetargeting(tol=1e-10).fit(X, y, groups=groups)
    np.testing.assert_allclose(MonotoneRetargeting(tol=1e-10).fit(mixed, None).coef_, local.coef_, **EXACT)
    push = PNormPush(p=2, alpha=0.3, tol=1e-8)
    labels = Listed(*(Block(X[some], y[some] > 1, None, groups[some]) for some in np.array_split(order, 5)))
    expected = clone(push).fit(X, y > 1, groups=groups)
    np.testing.assert_allclose(push.fit(labels, None).coef_, expected.coef_, rtol=1e-6, atol=1e-8)


def test_bounds_keep_groups_whole():
    groups = np.repeat(np.arange(10), 7)
    blocks = ArrayBlocks(np.zeros((70, 1)), np.zeros(70), groups=groups, rows=10)
    seen = [np.unique(block.groups) for block in blocks]
    assert np.concatenate(seen).tolist() == list(range(10))
    assert [len(block.y) for block in ArrayBlocks(np.zeros((9, 1)), np.zeros(9), rows=4)] == [4, 4, 1]


def test_a_memory_map_is_read_block_by_block(tmp_path):
    X, y, _ = two_classes(20_000)
    np.save(tmp_path / "X.npy", X)
    expected = PNormPush(alpha=0.1).fit(ArrayBlocks(X, y, rows=1000), None)
    PNormPush(alpha=0.1).fit(
        ArrayBlocks(tmp_path / "X.npy", y, rows=1000), None
    )  # compiles, which takes memory
    tracemalloc.start()
    ranker = PNormPush(alpha=0.1).fit(ArrayBlocks(tmp_path / "X.npy", y, rows=1000), None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(ranker.coef_, expected.coef_)
    assert peak < X.nbytes
    changed = np.load(tmp_path / "X.npy", mmap_mode="c")
    changed[:] *= 2.0  # lives in memory only, so no page may be given back
    twice = PNormPush(alpha=0.1).fit(ArrayBlocks(changed, y, rows=1000), None)
    np.testing.assert_array_equal(
        twice.coef_, PNormPush(alpha=0.1).fit(ArrayBlocks(2 * X, y, rows=1000), None).coef_
    )


def test_only_one_block_is_alive():
    import weakref

    alive, most = [], 0

    class Fresh(Blocks):
        def __iter__(self):
            nonlocal most
            for seed in range(6):
                X, y, _ = two_classes(100, seed=seed)
                alive.append(weakref.ref(X))
                most = max(most, sum(ref() is not None for ref in alive))
                block = Block(X, y)
                del X, y
                yield block
                del block

    PNormPush(alpha=0.1).fit(Fresh(), None)
    assert most == 1


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (MonotoneRetargeting(kernel="rbf"), "a kernel needs its rows in memory"),
        (UnknownLinkRegressor(), "one link is for all rows"),
        (PushBoost(), "needs its rows in memory"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_blocks_cannot_fit_is_refused(ranker, message):
    X, y, groups = lists()
    labels = y if isinstance(ranker, MonotoneRetargeting) else (y > 1).astype(int)
    with pytest.raises(InputError, match=message) as error:
        ranker.fit(ArrayBlocks(X, labels, groups=groups, rows=50), None)
    assert "\n" not in str(error.value)


def test_bad_rows_are_refused():
    X, y, groups = lists()
    labels = (y > 1).astype(int)
    hole = X.copy()
    hole[77, 2] = np.nan
    cases = [
        (
            PNormPush(),
            ArrayBlocks(hole, labels, rows=50),
            "row 27 of a block is missing or infinite in column 2",
        ),
        (PNormPush(), ArrayBlocks(X, y, rows=50), "4 values"),
        (PNormPush(), ArrayBlocks(X, 0 * labels, rows=50), "only one class"),
        (PNormPush(), ArrayBlocks(X, labels, -np.ones(len(y)), rows=50), "at least 0"),
        (
            PNormPush(),
            Listed(Block(X[:9], labels[:9]), Block(X[9:], labels[9:], None, groups[9:])),
            "some blocks have group ids",
        ),
    ]
    for ranker, blocks, message in cases:
        with pytest.raises(InputError, match=message):
            ranker.fit(blocks, None)
    for X_, y_, message in (
        (X[:, 0], labels, "two dimensions"),
        (X, labels[1:], "one value per row"),
        (X[:0], [], "no row"),
    ):
        with pytest.raises(InputError, match=message):
            ArrayBlocks(X_, y_)


def test_rows_without_labels_are_no_training_rows():
    with pytest.raises(InputError, match="a block has no y: give one label per row"):
        PNormPush().fit(ArrayBlocks(np.ones((3, 2)), None), None)


class Listed(Blocks):
    """Blocks that are passed on unchanged."""

    def __init__(self, *blocks):
        self.blocks = blocks

    def __iter__(self):
        return iter(self.blocks)


@pytest.mark.parametrize("side", ["top", "both"])
@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
def test_weights_in_some_blocks_only_are_ones_in_the_others(first, side):
    X, y, weight = two_classes()
    whole = weight.copy()
    own = slice(0, 400) if first else slice(400, None)
    whole[400:] = 1.0 if first else whole[400:]
    whole[:400] = whole[:400] if first else 1.0
    parts = [Block(X[a], y[a], weight[a] if a == own else None) for a in (slice(0, 400), slice(400, None))]
    options = {"p": 2, "alpha": 0.05, "tol": 1e-10, "side": side}
    local = PNormPush(**options).fit(X, y, sample_weight=whole)
    ranker = PNormPush(**options).fit(Listed(*parts), None)
    np.testing.assert_allclose(ranker.coef_, local.coef_, **EXACT)
    np.testing.assert_allclose(ranker.intercept_, local.intercept_, **EXACT)


def test_lists_with_weights_in_some_blocks_only():
    X, y, groups = lists()
    cut = int(np.searchsorted(groups, 20))
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    weight[cut:] = 1.0
    parts = Block(X[:cut], y[:cut], weight[:cut], groups[:cut]), Block(X[cut:], y[cut:], None, groups[cut:])
    local = MonotoneRetargeting(tol=1e-9).fit(X, y, groups=groups, sample_weight=weight)
    ranker = MonotoneRetargeting(tol=1e-9).fit(Listed(*parts), None)
    np.testing.assert_allclose(ranker.coef_, local.coef_, **EXACT)


@pytest.mark.parametrize("kind", ["bool", "int8", "float32", "U3", "object"])
def test_classes_have_the_type_they_have_in_memory(kind):
    X, y, _ = two_classes()
    labels = np.where(y == 1, "yes", "no").astype(kind) if kind in ("U3", "object") else y.astype(kind)
    local = PNormPush(alpha=0.1).fit(X, labels)
    ranker = PNormPush(alpha=0.1).fit(ArrayBlocks(X, labels, rows=200), None)
    assert ranker.classes_.dtype == local.classes_.dtype
    np.testing.assert_array_equal(ranker.classes_, local.classes_)
    np.testing.assert_array_equal(ranker.predict(X), local.predict(X))


def test_labels_that_are_no_classes_are_refused():
    X, y, _ = two_classes()
    hole, none = y.astype(float), y.astype(object)
    hole[321], none[321] = np.nan, None
    words = Block(X[300:], np.where(y[300:] == 1, "yes", "no"))
    cases = [
        (ArrayBlocks(X, y + 0.5, rows=200), "not classes"),
        (ArrayBlocks(X, hole, rows=200), "row 121 of a block has no y"),
        (ArrayBlocks(X, none, rows=200), "row 121 of a block has no y"),
        (Listed(Block(X[:300], y[:300]), words), "both words and numbers"),
        (
            ArrayBlocks(X, np.where(np.arange(len(y)) % 2, y.astype(object), "no"), rows=200),
            "both words and numbers",
        ),
    ]
    for blocks, message in cases:
        with pytest.raises(InputError, match=message) as error:
            PNormPush().fit(blocks, None)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("rows", [0, -5, 2.5, "7"])
def test_numbers_of_rows_that_make_no_block(rows):
    X, y, _ = two_classes()
    with pytest.raises(InputError, match="`rows` must be a whole number of at least 1"):
        ArrayBlocks(X, y, rows=rows)


def test_files_that_hold_no_array(tmp_path):
    (tmp_path / "text.npy").write_text("hello")
    (tmp_path / "empty.npy").write_bytes(b"")
    np.savez(tmp_path / "several.npz", a=np.zeros((3, 1)))
    for name, message in (
        ("text.npy", "cannot read"),
        ("empty.npy", "cannot read"),
        ("none.npy", "cannot read"),
        ("", "cannot read"),
        ("several.npz", "several arrays"),
    ):
        with pytest.raises(InputError, match=message) as error:
            ArrayBlocks(tmp_path / name, np.zeros(3))
        assert "\n" not in str(error.value)


def test_a_score_without_the_groups_of_a_fit_in_blocks_warns():
    X, y, groups = np.arange(12.0)[:, None], np.tile([0.0, 1.0, 2.0], 4), np.repeat([0, 1, 2, 3], 3)
    ranker = MonotoneRetargeting().fit(ArrayBlocks(X, y, groups=groups, rows=6), None)
    with pytest.warns(UserWarning, match="fit had groups"):
        ranker.score(X, y)
