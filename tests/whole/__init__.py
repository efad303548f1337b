"""Tests of the library as a whole."""

from importlib.util import find_spec

NEEDS = {"apexrank.integrations.torch": "torch", "apexrank.problem.triton_rows": "triton"}


def can_import(module: str) -> bool:
    """Whether the optional package of a module is installed."""
    return module not in NEEDS or find_spec(NEEDS[module]) is not None
