"""Pushes on a CUDA device beside the device's copy bandwidth, and whole fits.

``python -m benchmarks gpu``, or ``python benchmarks/gpu.py --json OUT`` on a machine without numba: the device path
calls no numba kernel, so a stand-in that compiles nothing is enough to import the package.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import traceback
import types
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


def stand_in_for_numba() -> bool:
    """A module in numba's place whose decorators return the function, if there is no numba."""
    if sys.modules.get("numba") is not None or ("numba" not in sys.modules and find_spec("numba")):
        return False
    numba = types.ModuleType("numba")
    numba.njit = lambda *args, **options: args[0] if args else lambda function: function  # type: ignore[attr-defined]
    numba.config = types.SimpleNamespace(NUMBA_NUM_THREADS=1)  # type: ignore[attr-defined]
    sys.modules["numba"] = numba
    return True


def device_seconds(work: Callable[[], object], repeats: int = 20) -> float:
    """Median time on the device of several runs, after three to warm up."""
    import torch

    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return float(np.median(times))


def wall_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    import torch

    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times)


def make_data(n: int, d: int, rate: float = 0.01, dtype: str = "float32", seed: int = 0):
    """Rows and labels drawn on the device: a direction, noise, and the highest ``rate`` of them positive."""
    import torch

    generator = torch.Generator("cuda").manual_seed(seed)
    X = torch.empty((n, d), dtype=getattr(torch, dtype), device="cuda").normal_(generator=generator)
    u = torch.randn(d, generator=generator, device="cuda", dtype=X.dtype) / d**0.5
    s = 2 * (X @ u) - torch.log(torch.empty_like(X[:, 0]).exponential_(generator=generator))
    sample = s[torch.randint(0, n, (min(n, 1_000_000),), generator=generator, device="cuda")]
    return X, (s > torch.quantile(sample, 1 - rate)).to(torch.uint8)


def copy_bandwidth(X) -> float:
    """Bytes read and written per second by a copy on the device."""
    import torch

    target = torch.empty_like(X)
    return 2 * X.numel() * X.element_size() / device_seconds(lambda: target.copy_(X))


def two_passes(X, y, w, p: float):
    """What anybody would write: scores, softmax of each class, and the weighted rows; everything in X's precision."""
    import torch

    s = X @ w
    t = torch.where(y, -s, p * s)
    columns = []
    for rows in (~y, y):
        masked = torch.where(rows, t, -torch.inf)
        columns.append(torch.softmax(masked, 0))
    return columns[0] @ X - columns[1] @ X


def kernel_rows(X, y, p: float, configs: bool) -> dict:
    """Time of one value and gradient, and its share of the copy bandwidth counting X once."""
    import torch

    from apexrank.problem.device import DeviceRows
    from apexrank.problem.triton_rows import Config, FusedRows, default_config

    bandwidth, size = copy_bandwidth(X), X.numel() * X.element_size()
    w = np.random.default_rng(0).standard_normal(X.shape[1]) / X.shape[1]
    slope = (p, -1.0)
    parameters = torch.from_numpy(np.concatenate([w, slope])).cuda()
    start = time.perf_counter()
    rows = FusedRows(X, y)
    ours = rows.log_sum_exp(w, slope)
    compile_time = time.perf_counter() - start
    exact = DeviceRows(X, y != 0, None)
    truth = exact.log_sum_exp(w, slope)
    time_of = {"default": device_seconds(lambda: rows.launch(parameters))}
    if configs:
        base = default_config(X.shape[1], X.element_size())
        for tile in (base.rows // 4, base.rows // 2, base.rows, base.rows * 2):
            for warps in (2, 4, 8):
                for stages in (1, 2):
                    for programs in (2, 3, 4, 8, 16):
                        config = Config(tile, warps, stages, programs)
                        try:
                            tried = FusedRows(X, y, config=config)
                            key = f"rows {tile}, warps {warps}, stages {stages}, programs {programs}"
                            time_of[key] = device_seconds(lambda tried=tried: tried.launch(parameters), 5)
                        except Exception as error:
                            print("no kernel for", config, type(error).__name__)
    best = min(time_of, key=time_of.get)  # type: ignore[arg-type]
    v = torch.from_numpy(w).to(X)
    return {
        "shape": list(X.shape),
        "dtype": str(X.dtype),
        "p": p,
        "copy bandwidth (TB/s)": bandwidth / 1e12,
        "fused (ms)": 1e3 * time_of["default"],
        "fused with transfers, wall (ms)": 1e3 * wall_seconds(lambda: rows.log_sum_exp(w, slope), 10),
        "share of copy bandwidth": size / time_of["default"] / bandwidth,
        "best configuration": best,
        "best (ms)": 1e3 * time_of[best],
        "best share of copy bandwidth": size / time_of[best] / bandwidth,
        "ten fastest (ms)": {k: 1e3 * time_of[k] for k in sorted(time_of, key=time_of.get)[:10]},  # type: ignore[arg-type]
        "two passes in X's precision (ms)": 1e3 * device_seconds(lambda: two_passes(X, y != 0, v, p), 5),
        "two passes in double precision (ms)": 1e3 * wall_seconds(lambda: exact.log_sum_exp(w, slope)),
        "first call with compilation (s)": compile_time,
        "largest error of the value": float(np.abs(ours.value - truth.value).max()),
        "largest error of the mean rows": float(np.abs(ours.rows - truth.rows).max()),
    }


def device_problem(X, positive, p: float = 4.0, alpha: float = 1e-6, fused: bool = True):
    """The push as a problem whose rows stay on the device."""
    from apexrank.objectives import Push
    from apexrank.prices import Power
    from apexrank.problem import Problem
    from apexrank.problem.device import DeviceDesign

    up = float(positive.sum())
    totals = np.array([up, len(positive) - up])
    push = Push(np.array([True, False]), price=Power(p), sample_weight=totals)
    return Problem(DeviceDesign(X, positive, fused=fused), push, alpha)


def fit_rows(X, y, p: float = 4.0, repeats: int = 3) -> dict:
    """Wall time of ``PNormPush(p).fit``, and what two passes in double precision say of the answer."""
    from apexrank import PNormPush

    first = wall_seconds(lambda: PNormPush(p=p).fit(X, y), 1)
    time_of_fit = wall_seconds(lambda: PNormPush(p=p).fit(X, y), repeats)
    ranker = PNormPush(p=p).fit(X, y)
    w = ranker.coef_[0]
    exact = device_problem(X, y != 0, p, ranker.alpha, fused=False)
    value, grad = exact.value_and_grad(w)
    some = slice(0, min(len(y), 200_000))
    small = {}
    for name, rows in (("device", X[some]), ("double precision", X[some].double())):
        small[name] = PNormPush(p=p).fit(rows, y[some])
    apart = np.abs(small["device"].coef_ - small["double precision"].coef_).max()
    return {
        "shape": list(X.shape),
        "dtype": str(X.dtype),
        "p": p,
        "fit (s)": time_of_fit,
        "first fit (s)": first,
        "iterations": int(ranker.n_iter_),
        "converged": bool(ranker.converged_),
        "objective": ranker.objective_,
        "objective − that in double precision": ranker.objective_ - value,
        "scaled gradient in double precision": exact.grad_norm(grad),
        "subsample: coefficients against float64, relative": float(
            apart / np.abs(small["double precision"].coef_).max()
        ),
        "subsample: objective against float64": small["device"].objective_
        - small["double precision"].objective_,
    }


def odd_shapes() -> list[dict]:
    """The fused kernel against two passes where shapes are awkward, with weights and in double precision."""
    import torch

    from apexrank.problem.device import DeviceRows
    from apexrank.problem.triton_rows import FusedRows

    rows = []
    for n, d, dtype, weighted in (
        (100_003, 1, "float32", False),
        (50_001, 3, "float64", True),
        (70_000, 100, "float32", True),
        (33_333, 129, "float64", False),
        (5_000, 1000, "float32", True),
        (2_000, 1024, "float64", False),
        (7, 5, "float32", True),
    ):
        X, y = make_data(n, d, 0.3, dtype)
        weight = torch.randint(0, 3, (n,), device="cuda").double() if weighted else None
        if weighted:
            y[0], y[1], weight[:2] = 1, 0, 1.0
        w = np.random.default_rng(1).standard_normal(d) / d
        a = FusedRows(X, y, weight).log_sum_exp(w, (3.3, -1.0))
        b = DeviceRows(X, y != 0, weight).log_sum_exp(w, (3.3, -1.0))
        wide = FusedRows(torch.cat([X, X], 1)[:, :d], y, weight).log_sum_exp(w, (3.3, -1.0))
        errors = [
            float(max(np.abs(c.value - b.value).max(), np.abs(c.rows - b.rows).max())) for c in (a, wide)
        ]
        limit = 1e-4 if dtype == "float32" else 1e-10
        rows.append(
            {
                "shape": [n, d],
                "dtype": dtype,
                "weighted": weighted,
                "errors": errors,
                "ok": max(errors) < limit,
            }
        )
    return rows


def cupy_row() -> dict:
    """The same fit from CuPy arrays and from PyTorch tensors."""
    try:
        import cupy
    except ImportError as error:
        return {"cupy": f"not there: {error}"}
    from apexrank import PNormPush, metrics

    X, y = make_data(200_000, 32)
    A, b = cupy.from_dlpack(X), cupy.from_dlpack(y)
    ours, theirs = PNormPush().fit(A, b), PNormPush().fit(X, y)
    plain = device_problem(A, b != 0, fused=False)
    scores = ours.decision_function(A)
    return {
        "cupy": cupy.__version__,
        "rows": type(device_problem(A, b != 0).design.rows).__name__,
        "coefficients apart": float(np.abs(ours.coef_ - theirs.coef_).max()),
        "scaled gradient in two passes of CuPy": plain.grad_norm(plain.value_and_grad(ours.coef_[0])[1]),
        "scores are": type(scores).__module__ + "." + type(scores).__name__,
        "predictions are": type(ours.predict(A)).__module__,
        "AUC from the device, less that from the host": metrics.auc(b, scores)
        - metrics.auc(b.get(), scores.get()),
    }


def torch_losses(has_numba: bool) -> list[dict]:
    """Losses on the device: gradcheck, and the value on the host."""
    import torch

    from apexrank.integrations import torch as losses

    cases: dict[str, tuple] = {
        "PushLoss()": (losses.PushLoss(), "binary"),
        "PushLoss(side='both')": (losses.PushLoss(p=2, side="both", balance=0.5), "binary"),
        "PClassificationLoss()": (losses.PClassificationLoss(), "binary"),
        **{f"ListwiseLoss({k!r})": (losses.ListwiseLoss(k), "graded") for k in ("listnet", "pointwise")},
        "ListwiseLoss('rank_cosine')": (losses.ListwiseLoss("rank_cosine"), "graded"),
        "InfinitePushLoss()": (losses.InfinitePushLoss(), "binary"),
    }
    if has_numba:
        cases["RetargetLoss()"] = (losses.RetargetLoss(), "graded")
        cases["UnknownLinkLoss()"] = (losses.UnknownLinkLoss(), "graded")
        cases["PushLoss(loss='logistic')"] = (losses.PushLoss(loss="logistic"), "binary")
    rng = np.random.default_rng(0)
    groups = torch.from_numpy(rng.integers(0, 3, 40))
    graded, rows = torch.from_numpy(rng.integers(0, 4, 40)), []
    for name, (loss, kind) in cases.items():
        scores = torch.from_numpy(rng.standard_normal(40))
        target = graded if kind == "graded" else (graded > 2).long()
        on_device = scores.cuda().requires_grad_()
        value = loss(on_device, target.cuda(), groups.cuda())
        checked = torch.autograd.gradcheck(
            lambda s, f=loss, t=target: f(s, t.cuda(), groups.cuda()), (on_device,)
        )
        apart = abs(value.item() - loss(scores, target, groups).item())
        rows.append({"loss": name, "gradcheck": checked, "apart": apart, "on": str(value.device)})
    return rows


def machine() -> dict:
    import sklearn
    import torch

    found = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    found |= {"torch": torch.__version__, "machine": torch.cuda.get_device_name(0), "threads": processors}
    try:
        import triton

        found["triton"] = triton.__version__
    except ImportError:
        found["triton"] = "not there"
    return found


def main(
    path: str | None = None, rows: int = 20_000_000, quick: bool = False, only: tuple[str, ...] = ()
) -> dict:
    """Measure everything, print it as JSON, and write it to a file if one is named."""
    sys.path[:0] = [str(ROOT / "src")] if find_spec("apexrank") is None else []
    stood_in = stand_in_for_numba()
    try:
        import torch

        available = torch.cuda.is_available()
    except ImportError:
        available = False
    if not available:
        print("gpu: no CUDA device, nothing measured")
        return {}
    warnings.simplefilter("always")
    found: dict = {"machine": {**machine(), "numba": "stand-in" if stood_in else "there"}}
    parts: dict[str, Callable[[], object]] = {
        "odd shapes": odd_shapes,
        "losses": lambda: torch_losses(not stood_in),
        "cupy": cupy_row,
    }
    sizes = [(1_000_000, 64, "float32"), (1_000_000, 64, "float64"), (rows, 128, "float32")]
    for n, d, dtype in sizes:
        parts[f"{n} x {d} {dtype}"] = lambda n=n, d=d, dtype=dtype: _of_size(
            n, d, dtype, tune=not quick and n == rows
        )
    chosen = {name: part for name, part in parts.items() if not only or any(word in name for word in only)}
    for name, part in chosen.items():
        try:
            found[name] = part()
        except Exception as error:  # one part that fails must not hide the figures of the others
            found[name] = {"failed": f"{type(error).__name__}: {error}"[:2000]}
            traceback.print_exc()
        print(json.dumps({name: found[name]}, indent=1, default=str), flush=True)
        torch.cuda.empty_cache()
    found["rows"] = [summary(found[name]) for name in chosen if "gradient" in (found[name] or {})]
    if path:
        Path(path).write_text(json.dumps(found, indent=1, default=str))
    return found


def summary(found: dict) -> dict:
    """What the page of benchmarks shows of one size."""
    gradient, fit = found["gradient"], found["fit"]
    n, d = gradient["shape"]
    return {
        "rows": n,
        "columns": d,
        "precision": gradient["dtype"].removeprefix("torch."),
        "copy (TB/s)": gradient["copy bandwidth (TB/s)"],
        "value and gradient (ms)": gradient["fused (ms)"],
        "share of copy bandwidth": gradient["share of copy bandwidth"],
        "two passes (ms)": gradient["two passes in X's precision (ms)"],
        "fit, p = 4 (s)": fit["fit (s)"],
        "iterations": fit["iterations"],
        "coefficients against float64": fit["subsample: coefficients against float64, relative"],
    }


def _of_size(n: int, d: int, dtype: str, tune: bool) -> dict:
    X, y = make_data(n, d, dtype=dtype)
    return {"gradient": kernel_rows(X, y, 4.0, tune), "fit": fit_rows(X, y)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="file to write the figures to")
    parser.add_argument(
        "--rows", type=int, default=20_000_000, help="rows of the largest matrix, of 128 columns"
    )
    parser.add_argument("--quick", action="store_true", help="no search for the best configuration")
    parser.add_argument("--only", nargs="*", default=(), help="parts whose name contains one of these words")
    chosen = parser.parse_args()
    main(chosen.json, chosen.rows, chosen.quick, tuple(chosen.only))
