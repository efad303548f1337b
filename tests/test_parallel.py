"""Threads of the kernels: a range is processed completely and once by any number of threads; errors are raised."""

import threading

import numpy as np
import pytest

from apexrank.kernels.csr import InLinks
from apexrank.kernels.rows import RowSummer
from apexrank.parallel import Threads, n_threads


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("size", [0, 1, 3, 100])
def test_a_range_is_shared_out_whole(n, size):
    done = np.zeros(size, int)

    def work(first, last):
        done[first:last] += 1

    with Threads(n) as threads:
        threads.share_range(work, size)
    assert (done == 1).all()


def test_results_keep_the_order_of_the_arguments():
    with Threads(3) as threads:
        assert threads.map(pow, range(20), [2] * 20) == [i**2 for i in range(20)]


def test_outside_of_a_block_the_caller_does_the_work():
    threads = Threads(4)
    assert threads.map(lambda _: threading.get_ident(), range(4)) == [threading.get_ident()] * 4


@pytest.mark.parametrize("n", [1, 3])
def test_errors_reach_the_caller(n):
    def work(first, last):
        raise ZeroDivisionError(first)

    with Threads(n) as threads, pytest.raises(ZeroDivisionError):
        threads.share_range(work, 12)


def test_all_kernels_obey_the_same_variable(monkeypatch):
    indptr, indices = np.arange(0, 2_000_001, 1000), np.zeros(2_000_000, np.int32)
    X, label = np.zeros((300_000, 2)), np.zeros(300_000, np.int8)
    for number in (1, 2):
        monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", number)
        assert n_threads() == InLinks(indptr, indices).threads.n == RowSummer(X, np.zeros(2), label).threads


def test_inside_a_pool_there_is_one_thread():
    with Threads(2) as threads:
        assert threads.map(lambda _: n_threads(), range(4)) == [1] * 4
    with Threads(1) as threads:
        assert threads.map(lambda _: n_threads(), range(2)) == [n_threads()] * 2
