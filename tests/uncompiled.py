"""A plugin of pytest that runs kernels as plain Python.

A fault planted in one is not hidden then by numba's cache on disk, which does not notice that a callee in another file
has changed, and it can be seen which test runs which line.
"""

import functools

import numba
import numpy as np


def pytest_configure() -> None:
    """Disable compilation; call before any module of the library is imported."""
    numba.njit = plain_kernel


def plain_kernel(**_options):
    """Replacement of ``numba.njit``: the function itself, as silent about overflow and 0
    0 as compiled code.
    """

    def keep(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            with np.errstate(all="ignore"):
                return function(*args, **kwargs)

        return call

    return keep
