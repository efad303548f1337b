"""Record which tests run which lines, and their times without compiled kernels; cached in a file.

A test file is measured twice in forks of its own: with coverage, whose context is the test, and without, for the times.
Only tests that pass both times, quickly, are kept. A file is measured again when it or a measured module changes.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

import pytest

from tests.mutation.mutants import all_modules, source_path
from tests.mutation.processes import Task, run_all
from tests.mutation.session import Chosen, in_rounds, run_pytest

SLOWEST = 1.5  # seconds of a test
FILE_SECONDS = 15.0  # and of all tests in a file
# these start other programs, load slow libraries, or only repeat smaller tests at length
# fmt: off
LEFT_OUT = ["dist*", "docs*", "estimator_checks*", "letor*", "readme*"]
ROOMS_LEFT_OUT = {
    "cli", "datasets", "export", "integrations", "mutation", "papers", "plot", "project", "report",
}
# fmt: on


def files_of_tests(root: Path, names: list[str]) -> list[str]:
    """Files whose tests may kill mutants: those of tests/, and the modules under test for their doctests.

    With names, only files whose name contains one of them.
    """
    tests = [path for path in sorted((root / "tests").rglob("test_*.py")) if not _is_left_out(path)]
    sources = [source_path(root, module) for module in all_modules(root)]
    files = [path.relative_to(root).as_posix() for path in tests + sources]
    return [file for file in files if not names or any(name in file for name in names)]


def _is_left_out(path: Path) -> bool:
    return path.parent.name in ROOMS_LEFT_OUT or any(
        fnmatch(path.name, f"test_{pattern}") for pattern in LEFT_OUT
    )


def record(root: Path, cache: Path, jobs: int, files: list[str]) -> dict[str, dict]:
    """For each test of these files its ``seconds``, and its ``lines`` in every module under test."""
    modules = all_modules(root)
    sources = _digest(source_path(root, module) for module in modules)
    known = json.loads(cache.read_text()) if cache.exists() else {}
    current = {name: sources + _digest([root / name]) for name in files_of_tests(root, [])}
    kept = {name: known[name] for name in current if known.get(name, {}).get("digest") == current[name]}
    missing = [name for name in files if name not in kept]
    tasks = (Task(name, partial(_measure_twice, root, name, modules), 4 * FILE_SECONDS) for name in missing)
    cache.parent.mkdir(parents=True, exist_ok=True)
    for name, outcome, tests in run_all(tasks, jobs):
        if outcome != "done":
            print(f"{name} is left out, it {outcome}: {tests}", file=sys.stderr)
            tests = {}
        kept[name] = {"digest": current[name], "tests": tests}
        cache.write_text(json.dumps(kept))
        print(f"{name}: {len(tests)} tests", file=sys.stderr)
    return {test: found for name in files for test, found in kept[name]["tests"].items()}


def _digest(paths) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def _measure_twice(root: Path, name: str, modules: list[str]) -> dict[str, dict]:
    traced = Task(name, partial(_measure_lines, root, name, modules), 3 * FILE_SECONDS)
    for _, outcome, lines in run_all([traced], 1):
        if outcome != "done":
            raise RuntimeError(f"{outcome}: {lines}")
        watch = Stopwatch(FILE_SECONDS)
        run_pytest(root, [name], [Chosen(dict.fromkeys(lines, SLOWEST)), watch])
    return {test: {"seconds": seconds, "lines": lines[test]} for test, seconds in watch.passed().items()}


def _measure_lines(root: Path, name: str, modules: list[str]) -> dict[str, dict[str, list[int]]]:
    from coverage import Coverage

    paths = {module: str(source_path(root, module)) for module in modules}
    coverage = Coverage(data_file=None, include=list(paths.values()), config_file=False, messages=False)
    watch = Stopwatch(2 * FILE_SECONDS, coverage)  # twice: coverage makes plain kernels slower
    coverage.start()
    run_pytest(root, [name], [Chosen(None, 2 * SLOWEST), watch])
    coverage.stop()
    lines: dict[str, dict[str, list[int]]] = {test: {} for test in watch.passed()}
    for module, path in paths.items():
        for line, contexts in coverage.get_data().contexts_by_lineno(path).items():
            for test in set(contexts) & set(lines):
                lines[test].setdefault(module, []).append(line)
    return {test: ran for test, ran in lines.items() if ran}


class Stopwatch:
    """Times every test, stops after a total time and, with coverage, records the lines that a test runs."""

    def __init__(self, total: float, coverage=None) -> None:
        self.total, self.coverage = total, coverage
        self.seconds: dict[str, float] = {}
        self.dropped: set[str] = set()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        if self.coverage is not None:
            self.coverage.switch_context(item.nodeid)
        start = time.process_time()
        yield
        self.seconds[item.nodeid] = round(time.process_time() - start, 4)
        if sum(self.seconds.values()) > self.total:
            item.session.shouldstop = "the other tests of this file would take too long"

    def pytest_runtest_logreport(self, report):
        if not report.passed:
            self.dropped.add(report.nodeid)

    def passed(self) -> dict[str, float]:
        """The seconds of the tests that passed."""
        return {test: seconds for test, seconds in self.seconds.items() if test not in self.dropped}


def choose(tests: dict[str, dict], module: str, lines: list[range], budget: float) -> dict[str, float]:
    """Tests that run one of the lines, quick and varied ones first, within a budget of seconds; with their times."""
    ran: list[str] = []
    for some in lines:
        ran = ran or [
            t for t, found in tests.items() if any(n in some for n in found["lines"].get(module, ()))
        ]
    chosen: dict[str, float] = {}
    for test in in_rounds(sorted(ran, key=lambda t: (tests[t]["seconds"], t))):
        if sum(chosen.values()) + tests[test]["seconds"] <= budget:
            chosen[test] = tests[test]["seconds"]
    return chosen
