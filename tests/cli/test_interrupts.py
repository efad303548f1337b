"""Ctrl-C during every long verb: exit code 130, one line of output and no new file.

A child process reports when its work begins, and is interrupted once it has used processor time, so the tests do not
depend on the speed of the machine. The time to exit is counted, not tested.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processor time is read from /proc"),
]
_CHILD = """
import signal, sys
from contextlib import contextmanager

signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a shell, whoever started the tests
from apexrank.cli import output

working = output.working

@contextmanager
def told(message, *more, **options):
    with working(message, *more, **options) as shown:
        print("working:", message, file=sys.stderr, flush=True)
        yield shown

output.working = told
from apexrank.cli.app import app
app(sys.argv[1:])
"""
VERBS = {
    "fit": "fit t.parquet --target y -o o.apex --model trees --rounds 100000 --learning-rate 1e-5",
    "fit of a linear model": "fit t.parquet --target y -o o.apex -p 64 --tol 1e-300 --max-iter 1000000",
    "compare": "compare t.parquet --target y --save o.apex --report o.html",
    "graph rank": "graph rank edges.txt -o o.csv --method lpq --tol 1e-15 --max-iter 1000000",
    "graph pack": "graph pack edges.txt -o shards",
    "aggregate": "aggregate votes.csv --method kemeny --bootstrap 100000 -o o.csv",
    "reproduce": "reproduce consensus-study --out repeated",
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("long"), np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20))
    y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=20_000) > 1.5).astype(int)
    pl.DataFrame({**{f"x{j}": X[:, j] for j in range(20)}, "y": y}).write_parquet(folder / "t.parquet")
    edges = pl.DataFrame(rng.integers(0, 200_000, (1_000_000, 2)))
    edges.write_csv(folder / "edges.txt", include_header=False, separator=" ")
    pl.DataFrame(rng.normal(size=(3000, 40)), schema=[f"i{j}" for j in range(40)]).write_csv(
        folder / "votes.csv"
    )
    return folder


def spent(process) -> float:
    """Seconds of processor time."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("verb", VERBS)
def test_interrupted_in_the_middle(inputs, verb, record_property):
    before = sorted(path.name for path in inputs.iterdir())
    command = [sys.executable, "-c", _CHILD, *VERBS[verb].split()]
    with subprocess.Popen(
        command, cwd=inputs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as child:
        said = next(
            (line for line in child.stderr if line.startswith("working:") and "reading" not in line), ""
        )
        assert said, "the command ended before its work began"
        start = spent(child)
        while child.poll() is None and spent(child) - start < 0.5:
            time.sleep(0.02)
        assert child.poll() is None, "the work is too short to be interrupted"
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        rest = child.stderr.read()
        assert child.wait() == 130, rest
    record_property("seconds", round(time.monotonic() - began, 2))
    assert rest.splitlines()[-1] == "error: interrupted"
    assert "Traceback" not in rest
    left = sorted(path.name for path in inputs.iterdir())
    assert left == before or (verb == "reproduce" and not any((inputs / "repeated").iterdir()))
