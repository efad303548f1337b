"""A plugin that runs kernels as plain Python: ``pytest -p tests.uncompiled``.

Coverage sees their lines then, and a fault planted in one is not hidden by numba's cache on disk, which does not notice
that a callee in another file has changed.
"""

import functools

import numba
import numpy as np


def pytest_configure() -> None:
    """Before any module of the library is imported."""
    numba.njit = plain_kernel


def plain_kernel(**_options):
    """What ``numba.njit`` is then: the function itself, as silent about overflow and 0 / 0 as compiled code."""

    def keep(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            with np.errstate(all="ignore"):
                return function(*args, **kwargs)

        return call

    return keep
