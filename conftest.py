"""What tests and doctests share."""

import sys
from importlib.util import find_spec

import pytest

# modules that import an optional package when they are imported: their examples cannot even be collected without it
OPTIONAL = {"torch": "src/apexrank/models/torch*.py"}
MISSING = [name for name in OPTIONAL if find_spec(name) is None]
collect_ignore_glob = [OPTIONAL[name] for name in MISSING]


def pytest_report_header() -> list[str]:
    """Say what is left out, and why."""
    return [f"{OPTIONAL[name]} is left out: {name} is not installed (make extras)" for name in MISSING]


@pytest.fixture(autouse=True)
def close_figures():
    """Close the figures a test or a docstring's example drew: pyplot warns of more than twenty."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
