"""Kernels compiled by many processes at once, and without a cache folder: same answers, no noise."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow
_SCRIPT = """
import numpy as np
from apexrank.metrics import kendall_tau

rng = np.random.default_rng(0)
print(kendall_tau(scores=(rng.normal(size=500), rng.normal(size=500))))
"""
_PLAIN = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}


def run(environment):
    command = [sys.executable, "-W", "error", "-c", _SCRIPT]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, **pipes)


def test_eight_processes_and_no_cache_at_all(tmp_path):
    (tmp_path / "file").touch()
    homeless = {name: value for name, value in _PLAIN.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    ways = [_PLAIN | {"NUMBA_CACHE_DIR": str(tmp_path / "cold")}] * 8
    ways += [
        _PLAIN | {"NUMBA_CACHE_DIR": str(tmp_path / "file" / "below")},
        homeless,
    ]  # no folder can be made there
    processes = [run(way) for way in ways]
    answers = {process.communicate() for process in processes}
    assert {process.returncode for process in processes} == {0}
    assert len(answers) == 1
    assert next(iter(answers))[1] == ""
