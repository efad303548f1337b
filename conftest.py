"""What tests and doctests share."""

import sys

import pytest


@pytest.fixture(autouse=True)
def close_figures():
    """Close the figures a test or a docstring's example drew: pyplot warns of more than twenty."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
