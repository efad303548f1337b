"""Single-pass sums over the rows of a CUDA matrix: score, weight and weighted sum while a tile is in registers.

Persistent programs share the tiles of rows. For both classes and each row of a tile, a program keeps a running maximum
of the exponents, the sum of ``exp(exponent − maximum)`` and the weighted sum of rows, so that no step waits for a
reduction over the tile. They are reduced at the end, and a second, small kernel combines the programs in double
precision; the running sums, about a thousand terms each, use the precision of the matrix. The assignment of tiles to
programs is fixed, so the result is bit-identical on every run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from apexrank.kernels.rows import RowSums
from apexrank.kernels.triton import jit, power_of_two, tl, triton
from apexrank.problem.device import Array, DeviceRows, namespace
from apexrank.validation import is_tensor

WIDEST = 1024  # maximum number of columns
MOST_ROWS = 2**31 - 2**16
SMALL = 2**20  # entries below which kernel launches cost more than passes over X
LARGEST_EXPONENT = 64.0  # beyond this, the error in single precision exceeds 4e-6
TILE_BYTES = 2**13


class Config(NamedTuple):
    """Launch parameters: rows per tile, warps and pipeline stages per program, programs per multiprocessor."""

    rows: int
    warps: int = 8
    stages: int = 1
    programs: int = 8


def default_config(n_columns: int, item_bytes: int) -> Config:
    """Configuration with tiles of 8 KiB, so that several programs fit on a multiprocessor.

    Examples
    --------
    >>> default_config(128, 4).rows, default_config(100, 8).rows
    (16, 8)
    """
    width = _width(n_columns)
    return Config(rows=min(256, max(4, TILE_BYTES // (width * item_bytes))))


def _width(n_columns: int) -> int:
    """Number of columns of a tile; the kernel masks those beyond X."""
    return max(16, power_of_two(n_columns))


def fused_rows(X: Array, positive: Array, weight: Array | None) -> FusedRows | None:
    """Single-pass sums, or None if there is no kernel for X: no Triton, not row-major, too wide or too small."""
    if triton is None or X.shape[1] > WIDEST or X.shape[0] > MOST_ROWS or X.shape[0] * X.shape[1] < SMALL:
        return None
    tensors = _tensors(X, positive, weight)
    return FusedRows(*tensors) if tensors is not None and tensors[0].stride(1) == 1 else None


def _tensors(X: Array, positive: Array, weight: Array | None) -> tuple[Any, Any, Any] | None:
    """PyTorch views of the same memory, with labels as bytes."""
    xp = namespace(X)
    label = xp.astype(positive, xp.uint8)
    if is_tensor(X):
        return X, label, weight
    try:
        import torch
    except ImportError:
        return None
    return (*map(torch.from_dlpack, (X, label)), None if weight is None else torch.from_dlpack(weight))


class FusedRows:
    """Single-pass sums of both classes over a row-major CUDA tensor; see :class:`DeviceRows`.

    Parameters
    ----------
    X : tensor of float32 or float64, of shape (n, d)
    label : tensor of uint8
        1 for positives.
    weight : tensor of float64, optional
    config : Config, optional
    """

    def __init__(self, X: Any, label: Any, weight: Any = None, config: Config | None = None) -> None:
        import torch

        self.X, self.label = X, label.contiguous()
        self.log_weight = None if weight is None else torch.log(weight).contiguous()
        self.is_rough = X.dtype == torch.float32
        self._exact = DeviceRows(X, label != 0, weight)
        d = X.shape[1]
        self.config = config or default_config(d, X.element_size())
        processors = torch.cuda.get_device_properties(X.device).multi_processor_count
        self.programs = min(processors * self.config.programs, -(-len(X) // self.config.rows))
        double: dict[str, Any] = {"dtype": torch.float64, "device": X.device}
        self._partial = torch.empty((self.programs, 2, d + 2), **double)
        self._result = torch.empty((2, d + 1), **double)

    def log_sum_exp(self, w: np.ndarray, slope: tuple[float, float]) -> RowSums:
        """Sums of both classes, negatives first; two exact passes if single precision is too coarse."""
        import torch

        self.launch(torch.from_numpy(np.concatenate([w, slope])).to(self.X.device))
        result = self._result.cpu().numpy()
        if self.is_rough and not np.all(np.abs(result[:, 0]) <= LARGEST_EXPONENT):
            return self._exact.log_sum_exp(w, slope)
        return RowSums(result[:, 0].copy(), np.ones(2), result[:, 1:].copy())

    def launch(self, parameters: Any) -> None:
        """Launch both kernels for ``w`` followed by the two slopes, a float64 tensor on the device."""
        import torch

        (n, d), config = self.X.shape, self.config
        weighted = self.log_weight is not None
        with torch.cuda.device(self.X.device):
            _sum_tiles[(self.programs,)](
                self.X,
                parameters,
                self.label,
                self.log_weight if weighted else parameters,
                self._partial,
                n,
                d,
                self.X.stride(0),
                ROWS=config.rows,
                D=_width(d),
                WEIGHTED=weighted,
                STAGES=config.stages,
                num_warps=config.warps,
            )
            P = power_of_two(self.programs)
            C = min(power_of_two(d), max(1, 8192 // P))
            _merge_programs[(2, -(-d // C))](self._partial, self._result, self.programs, d, P=P, C=C)


@jit
def _sum_tiles(  # type: ignore[no-untyped-def]
    X,
    parameters,
    label,
    log_weight,
    partial,
    n,
    d,
    stride,
    ROWS: tl.constexpr,
    D: tl.constexpr,
    WEIGHTED: tl.constexpr,
    STAGES: tl.constexpr,
):
    # Every row of a tile is a slot with its own maxima and sums, so nothing in the loop waits for another slot.
    kind = X.dtype.element_ty
    low = float("-inf")
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    column = tl.arange(0, D)
    inside = column < d
    w = tl.load(parameters + column, mask=inside, other=0.0).to(kind)
    slope0 = tl.load(parameters + d).to(kind)
    slope1 = tl.load(parameters + d + 1).to(kind)
    top0 = tl.full([ROWS], low, kind)
    top1 = tl.full([ROWS], low, kind)
    mass0 = tl.zeros([ROWS], kind)
    mass1 = tl.zeros([ROWS], kind)
    rows0 = tl.zeros([ROWS, D], kind)
    rows1 = tl.zeros([ROWS, D], kind)
    for tile in tl.range(program, tl.cdiv(n, ROWS), programs, num_stages=STAGES):
        row = tl.arange(0, ROWS).to(tl.int64) + tile * ROWS
        real = row < n
        x = tl.load(
            X + row[:, None] * stride + column[None, :],
            mask=real[:, None] & inside[None, :],
            other=0.0,
            eviction_policy="evict_first",
        )
        positive = tl.load(label + row, mask=real, other=0) != 0
        t = tl.where(positive, slope1, slope0) * tl.sum(x * w[None, :], axis=1)
        if WEIGHTED:
            t += tl.load(log_weight + row, mask=real, other=0.0).to(kind)
        t = tl.where(real, t, low)
        top = tl.where(positive, top1, top0)
        new = tl.maximum(top, t)
        # a slot without rows of this class so far has nothing to rescale
        base = tl.where(new > low, new, 0.0)
        q = tl.exp(t - base)
        shrink = tl.exp(top - base)
        q0 = tl.where(positive, 0.0, q)
        q1 = tl.where(positive, q, 0.0)
        shrink0 = tl.where(positive, 1.0, shrink)
        shrink1 = tl.where(positive, shrink, 1.0)
        mass0 = mass0 * shrink0 + q0
        mass1 = mass1 * shrink1 + q1
        rows0 = rows0 * shrink0[:, None] + q0[:, None] * x
        rows1 = rows1 * shrink1[:, None] + q1[:, None] * x
        top0 = tl.where(positive, top0, new)
        top1 = tl.where(positive, new, top1)
    start = partial + program * 2 * (d + 2)
    highest = tl.max(top0, axis=0)
    scale = tl.exp(top0 - tl.where(highest > low, highest, 0.0)).to(tl.float64)
    tl.store(start, highest.to(tl.float64))
    tl.store(start + 1, tl.sum(mass0.to(tl.float64) * scale, axis=0))
    tl.store(start + 2 + column, tl.sum(rows0.to(tl.float64) * scale[:, None], axis=0), mask=inside)
    start += d + 2
    highest = tl.max(top1, axis=0)
    scale = tl.exp(top1 - tl.where(highest > low, highest, 0.0)).to(tl.float64)
    tl.store(start, highest.to(tl.float64))
    tl.store(start + 1, tl.sum(mass1.to(tl.float64) * scale, axis=0))
    tl.store(start + 2 + column, tl.sum(rows1.to(tl.float64) * scale[:, None], axis=0), mask=inside)


@jit
def _merge_programs(  # type: ignore[no-untyped-def]
    partial, result, programs, d, P: tl.constexpr, C: tl.constexpr
):
    label = tl.program_id(0)
    column = tl.program_id(1) * C + tl.arange(0, C)
    inside = column < d
    program = tl.arange(0, P)
    there = program < programs
    start = partial + (program * 2 + label) * (d + 2)
    top = tl.load(start, mask=there, other=float("-inf"))
    mass = tl.load(start + 1, mask=there, other=0.0)
    highest = tl.max(top, axis=0)
    rescale = tl.exp(top - highest)
    total = tl.sum(mass * rescale, axis=0)
    rows = tl.load(start[:, None] + 2 + column[None, :], mask=there[:, None] & inside[None, :], other=0.0)
    mean = tl.sum(rows * rescale[:, None], axis=0) / total
    target = result + label * (d + 1)
    tl.store(target + 1 + column, mean, mask=inside)
    if tl.program_id(1) == 0:
        tl.store(target, highest + tl.log(total))
