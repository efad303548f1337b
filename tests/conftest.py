import gc
import os

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings
from threadpoolctl import threadpool_limits

# The first call of a kernel compiles it, so deadlines would be meaningless. Every machine draws the same examples, make
# test fewer of them; the nightly step explore draws new ones.
settings.register_profile("apexrank", deadline=None, derandomize=True)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("explore", deadline=None)
settings.load_profile("apexrank")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Disable garbage collection during collection, where it would scan ever more modules and syntax trees in vain."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Collect no doctests here: ``--doctest-modules`` is for the sources."""
    return [found for found in (yield) if not isinstance(found, DoctestModule)]


@pytest.fixture(scope="session", autouse=True)
def one_thread_of_other_libraries():
    """Limit BLAS and OpenMP to one thread:

    Their threads busy-wait on small arrays, and tests run in several processes.
    """
    with threadpool_limits(int(os.environ.get("APEXRANK_TEST_THREADS", "1"))):
        yield


@pytest.fixture
def counted(request):
    """Report the number of cases of a test; the summary of the run adds them up by name."""

    def count(name, number):
        request.node.user_properties.append(("counted", [name, int(number)]))

    return count
