"""Objectives evaluated on a device against the host

Kernels emulated in NumPy, and on a CUDA device if there is one.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from apexrank import MonotoneRetargeting, PNormPush  # noqa: E402
from apexrank.errors import InputError  # noqa: E402
from apexrank.objectives import Push, Retarget  # noqa: E402
from apexrank.prices import Power  # noqa: E402
from apexrank.problem import device, device_objectives, triton_rows  # noqa: E402
from apexrank.problem.device_objectives import DeviceLogisticPush, DeviceRetarget  # noqa: E402
from tests.triton_in_numpy import place_of  # noqa: E402

try:
    device.namespace(torch.zeros(1))
except InputError as error:
    pytest.skip(str(error), allow_module_level=True)

N = 120


@pytest.fixture(params=["numpy", "cuda"])
def place(request, monkeypatch):
    return place_of(request, monkeypatch, device_objectives, triton_rows)


def some_scores():
    rng = np.random.default_rng(0)
    return {
        "tied": np.zeros(N),
        "spread": rng.standard_normal(N),
        "far from zero": 1000 + 3 * rng.standard_normal(N),
        "whole numbers": rng.integers(-4, 4, N).astype(float),
    }


def assert_alike(moved, objective, place):
    for name, scores in some_scores().items():
        value, slope = objective.value_and_grad(scores)
        found, gradient = moved.value_and_grad(torch.from_numpy(scores).to(place))
        assert float(found) == pytest.approx(value, rel=1e-11), name
        np.testing.assert_allclose(
            gradient.cpu().numpy(), slope, rtol=0, atol=1e-11 * np.abs(slope).max(), err_msg=name
        )


RNG = np.random.default_rng(1)
GROUPS, GRADES = RNG.integers(0, 5, N), RNG.integers(0, 5, N)
WEIGHT = RNG.integers(0, 3, N).astype(float)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"groups": None},
        {"relevance": RNG.random(N)},  # as many levels as rows
        {"sample_weight": WEIGHT, "normalize": True, "offsets": "gain", "margin": 0.3},
        {"group_weight": GROUPS.astype(float)},
        {"divergence": "kl"},
        {"divergence": "kl", "joint_convexity": True, "sample_weight": WEIGHT},
        {"divergence": "i-divergence", "offsets": "sqrt"},
        {"divergence": "shifted-i-divergence", "joint_convexity": (0.5, 0.5)},
    ],
    ids=str,
)
def test_retargeting(place, options):
    objective = Retarget(**{"relevance": GRADES, "groups": GROUPS, **options})
    assert DeviceRetarget.takes(objective)
    assert_alike(DeviceRetarget(objective, place), objective, place)


def test_thresholds_do_not_go_round_in_circles(place):
    """The lower level is entirely above the upper one, where pure Newton steps would alternate forever."""
    objective = Retarget([0, 0, 1, 1, 1], margin=0.0)
    scores = np.array([1.0, 1.0, -1.0, -1.0, -1.0])
    found = DeviceRetarget(objective, place).value_and_grad(torch.from_numpy(scores).to(place))
    np.testing.assert_allclose(found[1].cpu(), scores + 0.2, atol=1e-14)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"price": "identity", "side": "bottom"},
        {"price": Power(40.0)},
        {"side": "both", "balance": 0.3, "sample_weight": WEIGHT},
    ],
    ids=str,
)
def test_logistic_push(place, options):
    objective = Push(GRADES > 3, loss="logistic", **options)
    assert DeviceLogisticPush.takes(objective)
    assert_alike(DeviceLogisticPush(objective, torch.device(place)), objective, place)


def test_scores_far_apart_are_left_to_the_host(place):
    moved = DeviceLogisticPush(Push(GRADES > 3, loss="logistic"), torch.device(place))
    scores = torch.linspace(0, device_objectives.MOST_PANELS + 1, N, dtype=torch.float64, device=place)
    assert moved.value_and_grad(scores) is None
    for extreme in (np.inf, np.nan, 1e30):
        assert moved.value_and_grad(torch.full_like(scores, extreme)) is None


@pytest.mark.parametrize(
    "objective",
    [
        Retarget(GRADES, groups=GROUPS, order="blocks"),
        Retarget(GRADES, groups=GROUPS, reward=0.1),
        Push(GRADES > 3, loss="logistic", groups=GROUPS),
        Push(GRADES > 3, loss="hinge"),
        Push(GRADES > 3, loss="logistic", price="exponential"),
    ],
    ids=["blocks", "reward", "groups", "hinge", "price"],
)
def test_what_the_host_has_to_do(objective):
    assert not DeviceRetarget.takes(objective)
    assert not DeviceLogisticPush.takes(objective)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "ranker", [MonotoneRetargeting(alpha=0.1), PNormPush(loss="logistic", alpha=0.1)], ids=str
)
def test_fits_are_those_of_the_host(place, monkeypatch, ranker, dtype):
    monkeypatch.setattr(triton_rows, "SMALL", 1)
    if place == "cpu":
        monkeypatch.setattr(device, "_row_kernels", lambda X: triton_rows)
        monkeypatch.setattr(device_objectives, "has_kernel", lambda X: True)
    X = np.random.default_rng(2).standard_normal((N, 4)).astype(dtype)
    y, groups = (
        (GRADES, GROUPS) if isinstance(ranker, MonotoneRetargeting) else ((GRADES > 3).astype(int), None)
    )
    seen = []
    for kind in (DeviceRetarget, DeviceLogisticPush):
        plain = kind.value_and_grad
        monkeypatch.setattr(
            kind, "value_and_grad", lambda self, s, plain=plain: (seen.append(len(s)), plain(self, s))[1]
        )
    ranker.set_params(tol=1e-7)
    host = ranker.fit(X, y, groups=groups).coef_.copy()
    assert not seen
    found = ranker.fit(torch.from_numpy(X).to(place), y, groups=groups).coef_
    assert seen
    np.testing.assert_allclose(found, host, rtol=0, atol=1e-8 * np.abs(host).max())


@pytest.mark.parametrize(("n", "d"), [(203, 5), (64, 8), (17, 1)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_passes_over_rows_are_in_double_precision(place, n, d, dtype):
    rng = np.random.default_rng(3)
    X, w, r = rng.standard_normal((n, d + 3)).astype(dtype), rng.standard_normal(d), rng.standard_normal(n)
    there = torch.from_numpy(X).to(place)[:, :d] if place == "cuda" else torch.from_numpy(X[:, :d].copy())
    vectors = [torch.from_numpy(each).to(place) for each in (w, r)]
    np.testing.assert_allclose(
        triton_rows.row_scores(there, vectors[0]).cpu(), X[:, :d].astype(float) @ w, atol=1e-12
    )
    np.testing.assert_allclose(
        triton_rows.row_sum(there, vectors[1]).cpu(), r @ X[:, :d].astype(float), atol=1e-12
    )
