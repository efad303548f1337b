"""X on a device gives the same results as on the host; the fused kernel is emulated in NumPy."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.exceptions import DataConversionWarning

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")

from apexrank import MonotoneRetargeting, PNormPush, PushBoost, metrics  # noqa: E402
from apexrank.errors import InputError  # noqa: E402
from apexrank.kernels.rows import RowSums  # noqa: E402
from apexrank.objectives import Push  # noqa: E402
from apexrank.prices import Power  # noqa: E402
from apexrank.problem import Problem, triton_rows  # noqa: E402
from apexrank.problem.design import column_units as host_units  # noqa: E402
from apexrank.problem.device import DeviceDesign, DeviceRows, column_units, to_host  # noqa: E402
from apexrank.rankers.base import SeparableWarning  # noqa: E402
from apexrank.solvers import LBFGS, Newton  # noqa: E402
from apexrank.validation import is_device_array  # noqa: E402
from tests.triton_in_numpy import emulate  # noqa: E402

ROOT = Path(__file__).parent.parent.parent
SIDES = pytest.mark.parametrize("side", ["top", "bottom", "both"])
WEIGHTS = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 5)) + np.array([0.0, 1.0, -2.0, 0.5, 3.0])
    y = (X @ rng.standard_normal(5) + rng.gumbel(size=1500) > 1.5).astype(int)
    return X, y, rng.integers(0, 3, 1500).astype(float)


def run_python(code, **environment):
    """Words that a program prints in a separate process."""
    options = {"capture_output": True, "text": True, "check": True, "cwd": ROOT}
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, **options)
    return done.stdout.split()


def assert_near(coefficients, wanted, share=1e-8):
    """Equal up to a fraction of the largest coefficient."""
    np.testing.assert_allclose(coefficients, wanted, rtol=0, atol=share * np.abs(wanted).max())


def fitted(X, y, weight=None, **options):
    return PNormPush(**{"p": 3.3, "tol": 1e-8, "alpha": 1e-6, **options}).fit(X, y, sample_weight=weight)


@SIDES
@WEIGHTS
@pytest.mark.parametrize("solver", ["auto", "lbfgs"])
def test_same_answer_as_on_the_host(data, side, weighted, solver):
    X, y, weight = data
    weight = weight if weighted else None
    options = {"side": side, "solver": solver, "balance": 0.4}
    host = fitted(X, y, weight, **options)
    there = fitted(
        *map(torch.from_numpy, (X, y)), None if weight is None else torch.from_numpy(weight), **options
    )
    assert_near(there.coef_, host.coef_)
    largest = np.abs(X @ host.coef_[0]).max()  # the intercept is a score
    np.testing.assert_allclose(there.intercept_, host.intercept_, rtol=0, atol=1e-8 * largest)
    assert there.objective_ == pytest.approx(host.objective_, rel=1e-12)
    assert there.converged_
    assert isinstance(there.coef_, np.ndarray)
    assert there.n_features_in_ == 5
    assert there.classes_.tolist() == [0, 1]


@WEIGHTS
def test_the_default_penalty_is_that_of_the_host(data, weighted):
    X, y, weight = data
    host = fitted(X, y, weight if weighted else None, alpha="auto", tol=1e-6)
    given = torch.from_numpy(weight) if weighted else None
    there = fitted(*map(torch.from_numpy, (X, y)), given, alpha="auto", tol=1e-6)
    assert there.alpha_ == pytest.approx(host.alpha_, rel=1e-12)


def test_single_precision_is_that_of_the_host(data):
    X, y, _ = data
    narrow = X.astype(np.float32)
    host, there = fitted(narrow, y), fitted(torch.from_numpy(narrow), y)
    assert_near(there.coef_, host.coef_)
    np.testing.assert_allclose(there.coef_, fitted(X, y).coef_, rtol=1e-5)


def test_identity_price_has_the_balanced_threshold(data):
    X, y, weight = data
    host = fitted(X, y, weight, price="identity")
    there = fitted(torch.from_numpy(X), y, weight, price="identity")
    assert_near(there.intercept_, host.intercept_)


def test_scores_and_predictions_are_of_the_same_kind(data):
    X, y, _ = data
    tensor = torch.from_numpy(X)
    host, there = fitted(X, y), fitted(tensor, torch.from_numpy(y))
    scores, classes = there.decision_function(tensor), there.predict(tensor)
    assert isinstance(scores, torch.Tensor)
    assert isinstance(classes, torch.Tensor)
    np.testing.assert_allclose(scores.numpy(), host.decision_function(X), rtol=1e-8, atol=1e-10)
    assert classes.tolist() == host.predict(X).tolist()
    assert isinstance(there.decision_function(X), np.ndarray)
    assert there.score(tensor, y) == host.score(X, y)


@pytest.mark.slow
def test_works_where_scikit_learn_dispatches_arrays():
    code = """
import torch
from sklearn import config_context
from apexrank import PNormPush
X = torch.sin(torch.arange(60.0, dtype=torch.float64)).reshape(-1, 2)
y = (X[:, 0] + 0.5 * torch.cos(torch.arange(30.0)) > 0.2).to(torch.int64)
plain = PNormPush().fit(X, y)
with config_context(array_api_dispatch=True):
    ranker = PNormPush().fit(X, y)
    classes, host = ranker.predict(X), PNormPush().fit(X.numpy(), y.numpy())
print((ranker.coef_ == plain.coef_).all(), type(classes).__name__, type(host.predict(X.numpy())).__name__)
"""
    assert run_python(code, SCIPY_ARRAY_API="1") == ["True", "Tensor", "ndarray"]


def test_labels_of_any_kind(data):
    X, y, _ = data
    tensor, wanted = torch.from_numpy(X), fitted(X, y)
    names = np.array(["bad", "worse"])[y]
    for labels, classes in (
        (torch.from_numpy(y).bool(), [False, True]),
        (torch.from_numpy(y).to(torch.uint8), [0, 1]),
        (torch.from_numpy(2.0 * y - 1), [-1.0, 1.0]),
        (y.tolist(), [0, 1]),
        (names, ["bad", "worse"]),
    ):
        ranker = fitted(tensor, labels)
        assert ranker.classes_.tolist() == classes
        assert_near(ranker.coef_, wanted.coef_)
        assert np.asarray(ranker.predict(tensor)).tolist() == np.array(classes)[wanted.predict(X)].tolist()


def test_classes_are_of_the_type_of_the_labels(data):
    X, y, _ = data
    names = np.array(["bad", "worse"])[y]
    for labels in (names, names.astype(object), y.astype(np.int8), y.astype(np.float32)):
        there, host = fitted(torch.from_numpy(X), labels), fitted(X, labels)
        assert there.classes_.dtype == host.classes_.dtype
        assert there.classes_.tolist() == host.classes_.tolist()


def test_numbers_as_objects_are_refused_as_on_the_host(data):
    X, y, _ = data
    words = []
    for rows in (X, torch.from_numpy(X)):
        with pytest.raises(ValueError, match="Unknown label type: unknown") as caught:
            fitted(rows, y.astype(object))
        words.append(str(caught.value))
    assert words[0] == words[1]


@pytest.mark.parametrize("kind", [torch.from_numpy, np.asarray], ids=["tensor", "numpy"])
def test_a_column_of_labels_is_taken_with_a_warning(data, kind):
    X, y, _ = data
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        there = fitted(torch.from_numpy(X), kind(y[:, None]))
    np.testing.assert_array_equal(there.coef_, fitted(torch.from_numpy(X), y).coef_)


@pytest.mark.parametrize("scalar", [2.0, 3, np.float32(0.5), torch.tensor(2.0)], ids=repr)
def test_one_weight_for_all_rows(data, scalar):
    X, y, _ = data
    number = float(scalar)
    there, host = fitted(torch.from_numpy(X), y, scalar), fitted(X, y, number)
    assert_near(there.coef_, host.coef_)
    assert there.objective_ == pytest.approx(host.objective_, rel=1e-10)
    assert there.objective_ != pytest.approx(fitted(X, y).objective_, rel=1e-3)


def test_weights_of_any_kind(data):
    X, y, weight = data
    wanted = fitted(torch.from_numpy(X), y, weight).coef_
    frozen = weight.copy()
    frozen.flags.writeable = False
    kinds = (
        torch.tensor(weight, requires_grad=True),
        torch.from_numpy(weight).to(torch.int32),
        frozen,
        weight.astype(object),
        weight.tolist(),
        weight[::-1].copy()[::-1],
    )
    for given in kinds:
        np.testing.assert_array_equal(fitted(torch.from_numpy(X), y, given).coef_, wanted)


def test_warm_start(data):
    X, y, _ = data
    ranker = PNormPush(solver="lbfgs", warm_start=True)
    first = ranker.fit(torch.from_numpy(X), y).n_iter_
    assert ranker.fit(torch.from_numpy(X), y).n_iter_ < first


def test_columns_far_from_zero(data):
    X, y, _ = data
    far = X + 1e7
    np.testing.assert_allclose(fitted(torch.from_numpy(far), y).coef_, fitted(far, y).coef_, rtol=1e-6)
    ranker = fitted(torch.from_numpy(far), y)
    host = fitted(far, y)
    np.testing.assert_allclose(ranker.intercept_, host.intercept_, rtol=1e-6)


def test_separated_rows_warn_as_on_the_host():
    X = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
    with pytest.warns(SeparableWarning):
        PNormPush(alpha=0.0).fit(X, [0, 0, 1, 1])


def test_strides_and_gradients_do_not_matter(data):
    X, y, _ = data
    wanted = fitted(X, y).coef_
    by_column = torch.from_numpy(np.asfortranarray(X))
    wanting = torch.from_numpy(X).clone().requires_grad_()
    for tensor in (by_column, wanting):
        assert_near(fitted(tensor, y).coef_, wanted)


def test_rows_in_blocks(data, monkeypatch):
    X, y, weight = data
    wanted = fitted(torch.from_numpy(X), y, weight).coef_
    monkeypatch.setattr("apexrank.problem.device.BLOCK_BYTES", 8 * 5 * 64)
    np.testing.assert_allclose(fitted(torch.from_numpy(X), y, weight).coef_, wanted, rtol=1e-10)


@WEIGHTS
def test_units_of_columns_are_those_of_the_host(weighted):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20_000, 4)) * [1.0, 1e-3, 1e200, 1.0]
    X[:, 3] = 7.0
    X[5, 3] = 8.0
    weight = rng.integers(0, 3, 20_000).astype(float) if weighted else None
    found = column_units(torch.from_numpy(X), None if weight is None else torch.from_numpy(weight))
    for ours, theirs in zip(found, host_units(X, weight), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


@SIDES
@WEIGHTS
def test_gradient_and_hessian_by_the_host(data, side, weighted):
    X, y, weight = data
    weight = weight if weighted else None
    push = Push(y == 1, price=Power(2.5), side=side, balance=0.7, sample_weight=weight)
    host = Problem(X, push, 1e-3, weight)
    labels, weights = torch.from_numpy(y == 1), None if weight is None else torch.from_numpy(weight)
    total = np.ones(len(y)) if weight is None else weight
    totals = np.array([total[y == 1].sum(), total[y == 0].sum()])
    two = Push(np.array([True, False]), price=Power(2.5), side=side, balance=0.7, sample_weight=totals)
    there = Problem(DeviceDesign(torch.from_numpy(X), labels, weights), two, 1e-3, weights)
    w = np.random.default_rng(0).standard_normal(5)
    for ours, theirs in zip(there.value_and_grad(w), host.value_and_grad(w), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    np.testing.assert_allclose(there.hessian(w), host.hessian(w), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(there.scale, host.scale, rtol=1e-12)
    np.testing.assert_allclose(to_host(there.scores(w)), host.scores(w), rtol=1e-10)


def test_measures_take_scores_of_a_tensor(data):
    X, y, _ = data
    tensor = torch.from_numpy(X)
    ranker = fitted(tensor, y)
    scores, host = ranker.decision_function(tensor), ranker.decision_function(X)
    for measure in (
        metrics.auc,
        lambda y, s: metrics.partial_auc(y, s, max_fpr=0.1),
        lambda y, s: metrics.precision_at(y, s, k=50),
        lambda y, s: metrics.tpr_at_fpr(y, s, 0.1),
    ):
        assert measure(torch.from_numpy(y), scores) == pytest.approx(measure(y, host), abs=1e-9)


def test_faults_of_the_data_are_refused(data):
    X, y, _ = data
    tensor, hole = torch.from_numpy(X), torch.from_numpy(X).clone()
    hole[3, 1] = float("nan")
    short = torch.ones(3)
    three = torch.arange(len(y)) % 3
    for rows, labels, weight, words in (
        (hole, y, None, "NaN or infinity"),
        (tensor.int(), y, None, "must be float32 or float64"),
        (tensor[:, 0], y, None, "X needs shape"),
        (tensor.to_sparse(), y, None, "sparse tensor"),
        (tensor, short, None, "y needs one label for each of the 1500 rows"),
        (tensor, three, None, "Only binary classification"),
        (tensor, torch.ones(len(y)), None, "only one class"),
        (tensor, y, -torch.ones(len(y)), "finite number >= 0"),
        (tensor, y, short, "sample_weight needs one number for each"),
        (tensor, y, ["heavy"] * len(y), "sample_weight needs one number for each"),
        (tensor, y, -2.0, "finite number >= 0"),
        (tensor, y, np.nan, "finite number >= 0"),
        (
            tensor,
            torch.from_numpy(y)[:, None].repeat(1, 2),
            None,
            "y needs one label for each of the 1500 rows",
        ),
        (tensor, y, y.astype(float), "both classes"),
    ):
        with pytest.raises(InputError, match=words):
            fitted(rows, labels, weight)
    with pytest.raises(ValueError, match="X has 2 features, but PNormPush is expecting 5"):
        fitted(tensor, y).decision_function(tensor[:, :2])
    ranker = PNormPush(l1_ratio=0.5)
    assert ranker.alpha_max(tensor, y) == pytest.approx(ranker.alpha_max(X, y), rel=1e-10)


def test_huge_entries_are_not_taken_for_infinity():
    X = torch.tensor([[3e38], [3e38], [2e38], [1e38]])
    assert PNormPush().fit(X, [1, 0, 1, 0]).coef_.shape == (1, 1)


def test_which_arrays_are_on_a_device():
    pandas = pytest.importorskip("pandas")
    host = (
        np.zeros(2),
        np.float64(1),
        [1],
        sparse.csr_array((2, 2)),
        pandas.DataFrame({"a": [1]}),
        "text",
        None,
    )
    assert not any(map(is_device_array, host))
    assert is_device_array(torch.zeros(2))


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "hinge", "tol": 1e-2},
        {"loss": "logistic"},
        {"price": "log1p"},
        {"price": "log1p", "side": "both"},
        {"p": np.inf, "alpha": 0.1},
        {"l1_ratio": 0.5, "alpha": 0.01},
        {"l1_ratio": 1.0, "alpha": 0.01},
        {"solver": "coordinate", "max_iter": 20},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_push_on_a_device(data, options):
    X, y, weight = data
    rows = slice(0, 400)
    host = fitted(X[rows], y[rows], weight[rows], **options)
    there = fitted(torch.from_numpy(X[rows]), y[rows], weight[rows], **options)
    assert_near(there.coef_, host.coef_, 1e-5 if options.get("p") == np.inf else 1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_retargeting_on_a_device(data, dtype):
    X, groups = data[0].astype(dtype), np.arange(len(data[1])) % 7
    grades = np.digitize(X @ np.ones(5), [0.0, 2.0, 4.0])
    options = {"alpha": 0.1, "tol": 1e-9}
    host = MonotoneRetargeting(**options).fit(X, grades, groups=groups)
    there = MonotoneRetargeting(**options).fit(torch.from_numpy(X), torch.from_numpy(grades), groups=groups)
    assert_near(there.coef_, host.coef_)
    assert there.objective_ == pytest.approx(host.objective_, rel=1e-10)


def test_groups_on_a_device(data):
    X, y, _ = data
    groups = np.arange(len(y)) % 7
    options = {"p": 2, "alpha": 0.1, "tol": 1e-9}
    host = PNormPush(**options).fit(X, y, groups=groups)
    for given in (groups, torch.from_numpy(groups)):
        assert_near(PNormPush(**options).fit(torch.from_numpy(X), y, groups=given).coef_, host.coef_, 1e-7)


def test_rankers_of_trees_take_tensors_as_numpy_does(data):
    X, y, _ = data
    ranker = PushBoost(n_estimators=2).fit(torch.from_numpy(X), y)
    assert isinstance(ranker.decision_function(torch.from_numpy(X)), np.ndarray)


@pytest.mark.slow
def test_pytorch_is_not_imported_for_host_arrays():
    code = (
        "import sys; from apexrank import PNormPush; PNormPush().fit([[0.0], [1.0], [2.0]], [0, 1, 1]);"
        "print('torch' in sys.modules, 'triton' in sys.modules, 'array_api_compat' in sys.modules)"
    )
    assert run_python(code) == ["False", "False", "False"]


@pytest.mark.slow
def test_device_path_needs_no_numba_and_no_command_line():
    code = """
import sys
for name in ("numba", "polars", "typer", "rich", "pandas", "matplotlib"):
    sys.modules[name] = None
from benchmarks.gpu import stand_in_for_numba
assert stand_in_for_numba()
import torch
from apexrank import PNormPush
X = torch.arange(40.0).reshape(-1, 1)
print(PNormPush().fit(X, X[:, 0] % 7 > 4).converged_)
"""
    assert run_python(code) == ["True"]


class SinglePrecisionRows(DeviceRows):
    """Sums as inaccurate as those of a kernel in single precision."""

    is_rough = True

    def log_sum_exp(self, w, slope):
        X, positive = self.X.numpy(), self.positive.numpy()
        s = X @ w.astype(np.float32)
        value, rows = [], []
        for factor, mask in zip(slope, (~positive, positive), strict=True):
            t = np.float32(factor) * s[mask]
            q = np.exp(t - t.max())
            value.append(float(t.max()) + np.log(q.sum(dtype=np.float64)))
            rows.append((q @ X[mask]).astype(np.float64) / q.sum(dtype=np.float64))
        return RowSums(np.array(value), np.ones(2), np.array(rows))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("solver", [LBFGS, Newton])
def test_single_precision_sums_still_converge(seed, solver):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((5000, 10)).astype(np.float32)
    score = 2 * X @ rng.standard_normal(10) / np.sqrt(10) + rng.gumbel(size=5000)
    y = score > np.quantile(score, 0.9)
    exact = LBFGS(tol=1e-8).solve(Problem(X, Push(y, price=Power(4)), 1e-6), np.zeros(10))
    tensor, labels = torch.from_numpy(X), torch.from_numpy(y)
    push = Push(np.array([True, False]), price=Power(4), sample_weight=np.array([y.sum(), (~y).sum()]))
    problem = Problem(DeviceDesign(tensor, labels), push, 1e-6)
    problem.design.rows = SinglePrecisionRows(tensor, labels, None)
    found = solver(tol=1e-6).solve(problem, np.zeros(10))
    assert found.converged
    np.testing.assert_allclose(found.w, exact.w, atol=1e-5 * np.abs(exact.w).max())


@WEIGHTS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("n", "d", "programs"), [(203, 5, 3), (64, 8, 1), (17, 1, 5)], ids=["203x5", "64x8", "17x1"]
)
def test_arithmetic_of_the_kernels(monkeypatch, weighted, dtype, n, d, programs):
    rng = np.random.default_rng(0)
    ROWS, D, stride = 16, 8, d + 3
    X = np.full((n, stride), np.nan, dtype)
    X[:, :d] = rng.standard_normal((n, d))
    label = (np.arange(n) > n // 2).astype(np.uint8)  # the first programs meet one class only
    weight = rng.integers(0, 3, n).astype(float) if weighted else np.ones(n)
    weight[[0, -1]] = 1.0
    w, slope = rng.standard_normal(d), (3.5, -1.0)
    partial, result = np.full(programs * 2 * (d + 2), np.nan), np.full(2 * (d + 1), np.nan)
    with np.errstate(divide="ignore"):
        log_weight = np.log(weight)
    emulate(monkeypatch, triton_rows)
    arrays = (X.ravel(), np.concatenate([w, slope]), label, log_weight, partial)
    triton_rows._sum_tiles[programs,](
        *map(torch.from_numpy, arrays), n, d, stride, ROWS=ROWS, D=D, WEIGHTED=weighted, STAGES=1
    )
    C = 4
    partial, result = torch.from_numpy(partial), torch.from_numpy(result)
    triton_rows._merge_programs[2, -(-d // C)](partial, result, programs, d, P=8, C=C)
    result = result.numpy()
    found = result.reshape(2, d + 1)
    tolerance = 2e-5 if dtype == "float32" else 1e-12
    rows = X[:, :d].astype(np.float64)
    for c in (0, 1):
        mine = (label == c) & (weight > 0)
        t = slope[c] * rows[mine] @ w
        total = logsumexp(t, b=weight[mine])
        mean = (weight[mine] * np.exp(t - total)) @ rows[mine]
        np.testing.assert_allclose(found[c, 0], total, rtol=tolerance)
        np.testing.assert_allclose(found[c, 1:], mean, rtol=tolerance, atol=tolerance)


def test_there_is_no_kernel_for_small_wide_or_foreign_matrices():
    X, y = torch.zeros(10, 3), torch.zeros(10, dtype=torch.bool)
    assert triton_rows.fused_rows(X, y, None) is None
    assert isinstance(DeviceDesign(torch.eye(2), torch.tensor([True, False])).rows, DeviceRows)
