"""What tests and doctests share."""

import doctest
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.figures import same_output

_equal = doctest.OutputChecker.check_output


def check_output(self: doctest.OutputChecker, want: str, got: str, optionflags: int) -> bool:
    """Compare output as doctest does, but figures only to the digits that are certain on any processor."""
    return _equal(self, want, got, optionflags) or same_output(want, got)


doctest.OutputChecker.check_output = check_output  # type: ignore[method-assign]

# examples that need an optional package, which some cannot even be collected without
OPTIONAL = {
    "torch": [
        "src/apexrank/integrations/torch.py",
        "src/apexrank/problem/device.py",
        "docs/guide/gpu.md",
    ]
}
MISSING = [name for name in OPTIONAL if find_spec(name) is None]
collect_ignore_glob = [path for name in MISSING for path in OPTIONAL[name]]

# Folders of which make test runs nothing. Naming one runs its quicker tests: pytest tests/io -m "not slow".
LONG = {
    *("cli", "comparison", "datasets", "export", "fuzz", "integrations", "io", "metamorphic", "mutation"),
    *("papers", "plot", "report"),
}
ROOT = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect no folder of the long tier for ``-m "not slow"``."""
    quick = config.option.markexpr == "not slow"
    long = collection_path.name in LONG and collection_path.parent in (ROOT, ROOT / "tests")
    return True if quick and long else None


def pytest_report_header() -> list[str]:
    """Say what is left out, and why."""
    return [f"{', '.join(OPTIONAL[n])} left out: {n} is not installed (make extras)" for n in MISSING]


@pytest.hookimpl(tryfirst=True)  # before -m leaves any out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the papers' experiments in the long tier."""
    for item in items:
        if {"apexrank_papers", "papers"} & {*item.path.parts}:
            item.add_marker("slow")


def pytest_terminal_summary(terminalreporter) -> None:
    """Print what tests counted by the fixture ``counted``."""
    totals: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        for key, value in report.user_properties:
            if key == "counted":
                totals[value[0]] += value[1]
    if totals:
        terminalreporter.section("counted")
    for name in sorted(totals):
        terminalreporter.write_line(f"{totals[name]:>9,}  {name}")


@pytest.fixture(autouse=True)
def close_figures():
    """Close the figures a test or a docstring's example drew: pyplot warns of more than twenty."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
