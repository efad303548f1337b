"""One pytest run inside a fork: kernels as plain Python, few examples, and at most one mutated module."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterable
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path

import pytest

from tests import uncompiled
from tests.mutation.mutants import PACKAGE, Mutant, mutated_source, source_path

PLUGINS_LEFT_OUT = ("randomly", "cacheprovider", "xdist", "cov")
OPTIONS = [
    "-q",
    "--tb=no",
    "--assert=plain",
    "--doctest-modules",
    *(f"-pno:{name}" for name in PLUGINS_LEFT_OUT),
]
EXAMPLES = 25


class MutatedLoader(SourceFileLoader):
    """Loader of a module from memory."""

    code = None

    def get_code(self, name):
        return self.code


class MutatedFinder:
    """Finder of the mutated module in place of the original."""

    def __init__(self, root: Path, mutant: Mutant) -> None:
        path = str(source_path(root, mutant.module))
        self.name = ".".join((PACKAGE, *mutant.module.split("/"))).removesuffix(".__init__")
        self.loader = MutatedLoader(self.name, path)
        with warnings.catch_warnings(action="ignore"):  # x is "name": pytest would make an error of it
            self.loader.code = compile(mutated_source(root, mutant), path, "exec", dont_inherit=True)

    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            return spec_from_file_location(name, self.loader.path, loader=self.loader)
        return None


class Chosen:
    """Run the chosen tests in their order (all by default), with few and fixed examples.

    A test that takes longer than its limit of seconds fails.
    """

    def __init__(self, limits: dict[str, float] | None, limit: float = 0.0) -> None:
        self.limits, self.limit = limits, limit
        self.failed, self.slow = "", False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        found = {item.nodeid: item for item in items}
        chosen = in_rounds(found) if self.limits is None else self.limits
        items[:] = [found[test] for test in chosen if test in found]
        methods = {getattr(item, "obj", None) for item in items}
        for function in {getattr(method, "__func__", method) for method in methods}:
            if getattr(function, "is_hypothesis_test", False):
                _give_few_examples(function)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_setup(self, item):
        yield from self._limited(item)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        yield from self._limited(item)

    def _limited(self, item):
        seconds = (self.limits or {}).get(item.nodeid, self.limit)
        signal.signal(signal.SIGPROF, self._stop)
        signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # and again each second, should something catch it
        yield
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _stop(self, *_):
        self.slow = True
        raise TooSlowError

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed = self.failed or report.nodeid


class TooSlowError(BaseException):
    """Stop a test that takes too long."""


def in_rounds(tests: Iterable[str]) -> list[str]:
    """Interleave parameters: every test function runs once before any runs with its second parameters."""
    rounds: Counter[str] = Counter()
    turn = {}
    for test in tests:
        function = test.split("[")[0]
        turn[test] = rounds[function]
        rounds[function] += 1
    return sorted(turn, key=turn.__getitem__)


def _give_few_examples(function) -> None:
    from hypothesis import HealthCheck, Phase, settings

    old = function._hypothesis_internal_use_settings
    function._hypothesis_internal_use_settings = settings(
        old,
        max_examples=min(EXAMPLES, old.max_examples),
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def run_pytest(root: Path, files: list[str], plugins: list, *options: str) -> int:
    """Exit status of pytest on these files."""
    os.chdir(root)
    sys.path[:0] = [str(root / "src"), str(root)]
    status = pytest.main([*OPTIONS, *options, *files], plugins=[uncompiled, *plugins])
    if status in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR):
        raise RuntimeError(f"pytest could not run {files}: {status!r}")
    return int(status)


def try_mutant(root: Path, mutant: Mutant | None, limits: dict[str, float]) -> tuple[str, str]:
    """Outcome, and the first failed test; an import error of the module also counts as a failure."""
    if mutant is not None:
        try:
            sys.meta_path.insert(0, MutatedFinder(root, mutant))
        except SyntaxError:
            return "not Python", ""
    chosen = Chosen(limits)
    status = run_pytest(root, sorted({test.split("::")[0] for test in limits}), [chosen], "-x")
    if status == 0:
        return "survived", ""
    return ("timed out" if chosen.slow else "killed"), chosen.failed or f"pytest ends with status {status}"
