"""Compilation of kernels, and cumulative sums that restart in every segment."""

from itertools import pairwise

import numpy as np
import pytest

from apexrank.kernels import jit
from apexrank.kernels.jit import kernel
from apexrank.kernels.pav import running_sums


def test_kernels_work_where_nothing_can_be_kept(monkeypatch):
    """Read-only installation without a home: numba cannot cache."""
    compile_now = jit.njit

    def refuse(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return compile_now(**options)

    monkeypatch.setattr(jit, "njit", refuse)

    @jit.kernel()
    def double(x):
        return 2 * x

    assert double(21) == 42


@pytest.mark.parametrize("sizes", [[5], [1, 3, 2], [0, 2, 0], [4, 0]])
def test_running_sums(sizes):
    rng = np.random.default_rng(0)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    values = rng.normal(size=indptr[-1])
    before, through = running_sums(values, indptr)
    for a, b in pairwise(indptr):
        np.testing.assert_allclose(through[a:b], np.cumsum(values[a:b]), rtol=1e-15)
        np.testing.assert_allclose(before[a:b], np.concatenate([[0.0], np.cumsum(values[a:b])[:-1]])[: b - a])


def test_a_full_disk_does_not_keep_a_kernel_from_running(monkeypatch):
    from numba.core.caching import IndexDataCacheFile

    def full(*_):
        raise OSError(28, "No space left on device")

    @kernel()
    def add(x, y):
        return x + y

    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    assert add(1, 2) == 3
