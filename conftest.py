"""What tests and doctests share."""

import sys
from importlib.util import find_spec

import pytest

# examples that need an optional package, which some cannot even be collected without
OPTIONAL = {"torch": ["src/apexrank/models/torch*.py", "src/apexrank/models/device.py", "docs/guide/gpu.md"]}
MISSING = [name for name in OPTIONAL if find_spec(name) is None]
collect_ignore_glob = [path for name in MISSING for path in OPTIONAL[name]]


def pytest_report_header() -> list[str]:
    """Say what is left out, and why."""
    return [f"{', '.join(OPTIONAL[n])} left out: {n} is not installed (make extras)" for n in MISSING]


@pytest.fixture(autouse=True)
def close_figures():
    """Close the figures a test or a docstring's example drew: pyplot warns of more than twenty."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
