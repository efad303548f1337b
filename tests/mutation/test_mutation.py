"""Tests of the mutation testing itself, on a package of one module."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="mutants come from cosmic-ray: pip install cosmic-ray")
from scipy.stats import binomtest

from tests.mutation.mutants import Mutant, lines_of, module_mutants, mutated_source
from tests.mutation.recording import choose
from tests.mutation.report import wilson

ROOT = Path(__file__).parents[2]

MODULE = """
from __future__ import annotations

from typing import TYPE_CHECKING

from apexrank.jit import kernel

if TYPE_CHECKING:
    WIDTH = 1 + 2


@kernel(inline=1 + 2)
def tested(x: list[1 + 2], *, y: int | None = None) -> 1 + 2:
    z: 1 + 2 = x and y
    return z


def untested():
    return True


def endless():
    while True:
        break
    return "left"
"""
JIT = """
def kernel(**options):
    return lambda function: function
"""
TESTS = """
from apexrank.losses import endless, tested

def test_tested():
    assert tested(0, y=3) == 0

def test_endless():
    assert endless() == "left"
"""


@pytest.fixture
def toy(tmp_path):
    package = tmp_path / "src" / "apexrank"
    package.mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]")
    (tmp_path / "tests" / "test_toy.py").write_text(TESTS)
    for name, text in {"__init__": "", "losses": MODULE, "jit": JIT}.items():
        (package / f"{name}.py").write_text(text)
    return tmp_path


def line_of(part):
    return next(number for number, line in enumerate(MODULE.splitlines(), 1) if part in line)


def test_only_what_runs_is_mutated(toy):
    found = {(m.line, m.operator) for m in module_mutants(toy, "losses")}
    assert found == {
        (line_of("x and y"), "ReplaceAndWithOr"),
        (line_of("return True"), "ReplaceTrueWithFalse"),
        (line_of("while True"), "ReplaceTrueWithFalse"),
        (line_of("while True"), "AddNot"),
        (line_of("break"), "ReplaceBreakWithContinue"),
    }


@pytest.mark.slow
def test_a_mutant_changes_one_place(toy):
    swapped = next(m for m in module_mutants(toy, "losses") if m.operator == "ReplaceAndWithOr")
    assert mutated_source(toy, swapped) == MODULE.replace("x and y", "x or y")


@pytest.mark.slow
def test_mutants_die_where_tests_run_them(toy):
    scores, alive = toy / "scores.json", toy / "alive.md"
    options = [
        "--root",
        toy,
        "--tests",
        "test_toy",
        "--output",
        scores,
        "--survivors",
        alive,
        "--patience",
        "1",
    ]
    command = [sys.executable, "-m", "tests.mutation", *map(str, options)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    ended = {(m["line"], m["operator"]): m["outcome"] for m in json.loads(scores.read_text())["mutants"]}
    assert ended == {
        (line_of("x and y"), "ReplaceAndWithOr"): "killed",
        (line_of("return True"), "ReplaceTrueWithFalse"): "not covered",
        (line_of("while True"), "ReplaceTrueWithFalse"): "survived",
        (line_of("while True"), "AddNot"): "survived",
        (line_of("break"), "ReplaceBreakWithContinue"): "timed out",
    }
    assert (
        f"losses.py:{line_of('return True')} column 12, ReplaceTrueWithFalse (no test runs it)"
        in alive.read_text()
    )


def test_what_runs_at_import_is_tested_by_what_it_defines():
    text = "A = 1\n\nclass B:\n    c = 2\n\n    @property\n    def d(self, e=3):\n        if e:\n            return 4\n"

    def lines(number):
        return [list(some) for some in lines_of(text, Mutant("", "", 0, number, 0))]

    whole = list(range(1, 10))
    assert lines(1) == [whole]
    assert lines(4) == [list(range(3, 10)), whole]
    assert lines(6) == lines(7) == [list(range(6, 10)), list(range(3, 10)), whole]
    assert lines(8) == [[8]]
    assert lines(9) == [[9]]


def test_every_function_comes_before_further_parameters():
    seconds = {"a::f[1]": 0.1, "a::f[2]": 0.2, "a::g": 0.5, "a::slow": 9.0, "a::other": 0.1}
    tests = {t: {"seconds": s, "lines": {"m": [7 if t == "a::other" else 3]}} for t, s in seconds.items()}
    assert choose(tests, "m", [range(3, 4)], 5.0) == {"a::f[1]": 0.1, "a::g": 0.5, "a::f[2]": 0.2}
    assert choose(tests, "m", [range(8, 9), range(7, 8)], 5.0) == {"a::other": 0.1}
    assert choose(tests, "m", [range(8, 9)], 5.0) == {}


def test_the_interval_is_wilsons():
    expected = binomtest(83, 120).proportion_ci(0.95, method="wilson")
    assert wilson(83, 120) == pytest.approx((expected.low, expected.high), abs=1e-7)
