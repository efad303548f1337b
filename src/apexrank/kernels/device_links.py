"""Sums, maxima and norms over the in-links of every vertex, for PyTorch tensors on a device.

On a CUDA device with Triton the links are stored in slices (SELL-C-σ, Kreutzer et al. 2014). Rows are sorted by length;
a slice has 128 of them side by side, so that a warp reads consecutive indices and every thread sums its own row. Rows
of more than 64 links are divided into pieces whose sums are rows of the next level, so that threads have equal work and
few terms are added sequentially. On other devices the links stay in compressed rows.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from apexrank.kernels.csr import LinkSums
from apexrank.kernels.triton import jit, power_of_two, tl, triton

Tensor = Any

SLICE = 128  # rows per slice
LONGEST = 64  # largest number of links of a row or piece
WIDEST = 8  # columns of x per program
LAUNCH = {
    1: (8, 4),
    2: (4, 8),
    4: (4, 8),
    8: (4, 8),
}  # links of a row loaded at once, and warps, by number of columns
PACKED_AT_ONCE = 2**25  # entries of slices filled at once, which needs about 50 bytes each
MODES = {"sums": 0, "largest": 1, "powers": 2}


class Level(NamedTuple):
    """Slices of rows that read the vector (first level) or the sums of pieces (later levels)."""

    starts: Tensor  # start of each slice in the arrays of links, and their end
    rows: Tensor  # position of each row's sum; -1 pads the last slice
    owners: Tensor  # vertex of the row or piece
    indices: Tensor  # -1 pads rows shorter than the longest of their slice
    weights: Tensor | None


class DeviceLinks(LinkSums):
    """Links on a device, for vectors that are tensors.

    Parameters
    ----------
    indptr, indices : integer tensors
        Pattern, on the device.
    weights : tensor, optional
        Weight of each link; 1 by default.
    dtype : torch.dtype
        Type of vectors, float64 or float32. Sums are accumulated in double precision.
    sliced : bool, optional
        Whether to store the links in slices; by default on CUDA devices if Triton is installed.

    Attributes
    ----------
    weights : tensor
        Weights in storage order, with slices padded by zeros; empty without weights.
    """

    def __init__(
        self, indptr: Tensor, indices: Tensor, weights: Tensor | None, dtype: Any, sliced: bool | None = None
    ) -> None:
        import torch

        self.n, self.dtype, self.device = len(indptr) - 1, dtype, indices.device
        self.indptr, self.indices = indptr, indices
        lengths = torch.diff(indptr)
        self.most_links = int(lengths.max()) if self.n else 0
        self.weighted = weights is not None
        self.weights = indices.new_empty(0, dtype=dtype) if weights is None else weights.to(dtype)
        if sliced is None:
            sliced = triton is not None and indices.is_cuda
        self.levels: list[Level] = []
        self.n_slots = self.n
        if sliced and self.n:
            self._slice(lengths, None if weights is None else self.weights)
            self.indptr = self.indices = None  # no longer needed, as the slices contain everything
            self.weights = self.weights if weights is None else self.levels[0].weights
        self._powers = {1.0: self.weights}

    def _slice(self, lengths: Tensor, weights: Tensor | None) -> None:
        import torch

        slots = torch.arange(self.n, device=self.device)
        begins, source, owners = self.indptr[:-1], self.indices, slots
        while len(slots):
            long = lengths > LONGEST
            cuts = (lengths[long] + LONGEST - 1) // LONGEST
            ends = torch.cumsum(cuts, 0)
            first = torch.repeat_interleave(ends - cuts, cuts)
            number = torch.arange(len(first), device=self.device)
            inside = LONGEST * (number - first)  # start of a piece in its row
            rest = torch.repeat_interleave(lengths[long], cuts) - inside
            pieces = number + self.n_slots
            level = _pack(
                torch.cat([slots[~long], pieces]),
                torch.cat([owners[~long], torch.repeat_interleave(owners[long], cuts)]),
                torch.cat([begins[~long], torch.repeat_interleave(begins[long], cuts) + inside]),
                torch.cat([lengths[~long], rest.clamp(max=LONGEST)]),
                source,
                weights,
            )
            self.levels.append(level)
            self.n_slots += len(pieces)
            source, weights = pieces, None
            slots, owners, begins, lengths = slots[long], owners[long], ends - cuts, cuts

    @property
    def rounding(self) -> float:
        """Bound on the rounding error of a step of a walk, relative to each score.

        Products, powers, quotients and stored values are rounded to the precision of vectors, about two dozen times
        plus once per level; sums over in-links and over vertices (:func:`blocked_sum`) to double precision.
        """
        import torch

        links = LONGEST * len(self.levels) if self.levels else self.most_links
        sums = 0.5 * float(np.finfo(float).eps) * (links + 2 * (3 * math.isqrt(self.n) + 4))
        return sums + 0.5 * torch.finfo(self.dtype).eps * (24 + len(self.levels))

    def put(self, values: np.ndarray) -> Tensor:
        """Copy a NumPy array to the device, floats in the precision of vectors."""
        import torch

        there = torch.from_numpy(np.array(values)).to(self.device)
        return there.to(self.dtype) if there.is_floating_point() else there

    @property
    def weight_range(self) -> tuple[float, float]:  # type: ignore[override]
        if not self.weights.numel():
            return 1.0, 1.0
        lowest = float(self.weights[self.weights > 0].min())  # zeros pad slices
        return lowest, float(self.weights.max())

    def norms(self, x: Tensor, p: float) -> Tensor:
        import torch

        top = self.largest(x)
        unit = torch.where(top > 0, top, 1.0)
        return top * self._each("powers", x, 1.0, p, own=unit) ** (1.0 / p)

    def _each(
        self, name: str, x: Tensor, power: float = 1.0, *args: Any, own: Tensor | None = None
    ) -> Tensor:
        """Run a kernel; "powers" sums shares of ``own`` raised to a power, the argument after that of the weights."""
        import torch

        x, p = x.contiguous(), args[0] if args else 1.0
        if power not in self._powers:
            self._powers[power] = self.weights**power
        weights = self._powers[power]
        if not self.levels:
            return self._by_segments(name, x, weights, own, p)
        columns = 1 if x.ndim == 1 else x.shape[1]
        width = min(WIDEST, power_of_two(columns))
        unrolled, warps = LAUNCH[width]
        out = x.new_empty((self.n_slots, *x.shape[1:]))
        # a Python float would be passed in single precision
        exponent = torch.full((1,), p, dtype=torch.float64, device=x.device)
        for number, level in enumerate(self.levels):
            first = number == 0
            _reduce_slices[(len(level.starts) - 1, -(-columns // width))](
                level.starts,
                level.rows,
                level.owners,
                level.indices,
                weights if first else x,
                x if first else out,
                x if own is None else own,
                out,
                exponent,
                COLUMNS=columns,
                C=SLICE,
                V=width,
                UNROLL=unrolled,
                WEIGHTED=first and weights.numel() > 0,
                MODE=MODES[name if first or name == "largest" else "sums"],
                num_warps=warps,
            )
        return out[: self.n]

    def _by_segments(self, name: str, x: Tensor, weights: Tensor, unit: Tensor | None, p: float) -> Tensor:
        import torch

        terms = x[self.indices.long()].double()
        if weights.numel():
            terms *= weights if x.ndim == 1 else weights[:, None]
        if unit is not None:
            terms = (terms / torch.repeat_interleave(unit, torch.diff(self.indptr), dim=0)) ** p
        kind, options = "max" if name == "largest" else "sum", {"axis": 0, "initial": 0.0, "unsafe": True}
        found = torch.segment_reduce(terms, kind, offsets=self.indptr, **options)
        return found.to(x.dtype)


def _pack(
    slots: Tensor, owners: Tensor, begins: Tensor, lengths: Tensor, source: Tensor, weights: Tensor | None
) -> Level:
    """Pack the rows ``source[begins:begins + lengths]`` into slices, longest first."""
    import torch

    order = torch.argsort(lengths, descending=True, stable=True)
    n_slices = -(-len(order) // SLICE)
    spare = n_slices * SLICE - len(order)

    def grid(values: Tensor, fill: int) -> Tensor:
        return torch.cat([values[order], values.new_full((spare,), fill)]).reshape(n_slices, SLICE)

    rows, owned, begin, length = grid(slots, -1), grid(owners, 0), grid(begins, 0), grid(lengths, 0)
    sizes = length.amax(1) * SLICE
    starts = torch.cat([sizes.new_zeros(1), torch.cumsum(sizes, 0)])
    bounds = starts.cpu()
    total = int(bounds[-1])
    indices = torch.empty(total, dtype=torch.int32, device=source.device)
    packed = None if weights is None else torch.zeros(total, dtype=weights.dtype, device=source.device)
    first = 0
    while first < n_slices:
        last = int(torch.searchsorted(bounds, bounds[first] + PACKED_AT_ONCE, right=True)) - 1
        last = min(max(last, first + 1), n_slices)
        a, b = int(bounds[first]), int(bounds[last])
        slice_of = torch.repeat_interleave(torch.arange(first, last, device=source.device), sizes[first:last])
        place = torch.arange(a, b, device=source.device) - starts[slice_of]
        link, lane = place // SLICE, place % SLICE
        there = link < length[slice_of, lane]
        at = torch.where(there, begin[slice_of, lane] + link, 0)
        indices[a:b] = torch.where(there, source[at] if len(source) else -1, -1).int()
        if weights is not None and packed is not None:
            packed[a:b] = torch.where(there, weights[at], 0.0)
        first = last
    return Level(starts, rows.int().flatten(), owned.int().flatten(), indices, packed)


def blocked_sum(x: Tensor) -> Tensor:
    """Sum over the first axis in double precision, with at most 3·√n + 3 rounding errors in any order of a block."""
    import torch

    size = max(1, math.isqrt(len(x)))
    cut = len(x) // size * size
    parts = x[:cut].reshape(-1, size, *x.shape[1:]).sum(1, dtype=torch.float64)
    return (parts.sum(0) + x[cut:].sum(0, dtype=torch.float64)).to(x.dtype)


@jit
def _reduce_slices(  # type: ignore[no-untyped-def]
    starts,
    rows,
    owners,
    indices,
    weights,
    x,
    unit,
    out,
    power,
    COLUMNS: tl.constexpr,
    C: tl.constexpr,
    V: tl.constexpr,
    UNROLL: tl.constexpr,
    WEIGHTED: tl.constexpr,
    MODE: tl.constexpr,
):
    number = tl.program_id(0)
    lane = tl.arange(0, C)
    column = tl.program_id(1) * V + tl.arange(0, V)
    inside = column < COLUMNS
    first = tl.load(starts + number)
    width = (tl.load(starts + number + 1) - first) // C
    row = tl.load(rows + number * C + lane).to(tl.int64)
    real = (row >= 0)[:, None] & inside[None, :]
    total = tl.zeros([C, V], tl.float64)
    scale = total + 1.0
    if MODE == 2:
        owner = tl.load(owners + number * C + lane).to(tl.int64)
        p = tl.load(power)
        scale = tl.load(unit + owner[:, None] * COLUMNS + column[None, :], mask=real, other=1.0).to(
            tl.float64
        )
    for k in range(0, width, UNROLL):
        for u in tl.static_range(UNROLL):
            at = first + (k + u) * C + lane
            source = tl.load(indices + at, mask=(lane >= 0) & (k + u < width), other=-1).to(tl.int64)
            there = (source >= 0)[:, None] & inside[None, :]
            term = tl.load(x + source[:, None] * COLUMNS + column[None, :], mask=there, other=0.0).to(
                tl.float64
            )
            if WEIGHTED:
                weight = tl.load(weights + at, mask=source >= 0, other=0.0).to(tl.float64)
                term = term * weight[:, None]
            if MODE == 0:
                total += term
            if MODE == 1:
                total = tl.maximum(total, term)
            if MODE == 2:
                share = term / scale
                total += tl.where(share > 0, tl.exp(p * tl.log(tl.where(share > 0, share, 1.0))), 0.0)
    kind = out.dtype.element_ty
    tl.store(out + row[:, None] * COLUMNS + column[None, :], total.to(kind), mask=real)
