"""Progress bars: shown on a terminal, hidden from programs."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from apexrank.cli.output import working
from apexrank.progress import listening, steps

from .test_verbs import folder, run  # noqa: F401

FIT = "fit train.csv --target fraud --id case --drop note,query"


@pytest.mark.parametrize(
    ("command", "total"),
    [
        (f"{FIT} --cv --folds 3", None),  # alphas times folds
        (f"{FIT} --calibrate", 5),
        ("evaluate train.csv --scores amount --target fraud --measures auc --confidence 0.9", 2000),
    ],
)
def test_long_loops_are_counted(folder, command, total):  # noqa: F811
    told = []
    with listening(lambda done, all_: told.append((done, all_))):
        run(command)
    (found,) = {all_ for _, all_ in told}
    assert found == total or (total is None and found % 3 == 0)
    assert [done for done, _ in told] == list(range(found + 1))


def test_loops_inside_are_not_counted():
    told = []
    with listening(lambda *step: told.append(step)):
        inner = [list(steps([1, 2])) for _ in steps([1, 2, 3])]
        list(steps("x"))
    assert inner == [[1, 2]] * 3
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3), (0, 1), (1, 1)]
    assert steps([1]) == [1]


def test_programs_see_nothing(capsys):
    with working("at work") as shown:
        assert shown is None
        assert list(steps([1, 2])) == [1, 2]
    assert capsys.readouterr() == ("", "")


def screen_of(code, **extra):
    """Terminal output of a process on stderr, and its stdout."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm", **extra},
    )
    os.close(theirs)
    seen, end = b"", time.monotonic() + 120
    while time.monotonic() < end and select.select([ours], [], [], 60)[0]:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    out = process.communicate(timeout=60)[0]
    os.close(ours)
    return seen.decode(), out.decode()


def test_person_sees_percentage_and_time_left():
    code = """
import time
from apexrank.cli.output import working
from apexrank.progress import steps
with working("counting") as shown:
    time.sleep(0.3)
    shown.update("counting sheep")
    for _ in steps(range(10)):
        time.sleep(0.15)
print("done")
"""
    seen, out = screen_of(code, COLUMNS="100")
    assert out == "done\n"
    assert "counting sheep" in seen
    first = seen.index("%")
    assert "counting" in seen[:first]  # a spinner without a bar while the total is unknown
    shares = [int(share) for share in re.findall(r"(\d+)%", seen)]
    assert len(set(shares)) > 3
    assert all(a <= b for a, b in pairwise(shares))
    assert "0:00:0" in seen  # time left
