"""A command that is killed at any moment leaves its old output or the complete new one."""

import os
import random
import shlex
import signal
import time
from collections import Counter
from itertools import count, cycle

import pytest

from tests.cli.warm import FIT, OUTPUTS, WRITE, WarmCli, write_inputs

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "sigtimedwait"), reason="no sigtimedwait: this system cannot wait for signals so"
)

OLD = b"old content, which is precious\n"
# Slow commands are killed only at the lines of the writer, which all commands share.
SLOW = (
    "compare.html",
    "demo/train.csv",
    "repeated/figure1.csv",
    "card.md",
    "roc.png",
    "votes.svg",
    "farms.html",
)
QUICK = {name: command for name, command in OUTPUTS.items() if name not in SLOW}
# One for each way of writing: our own bytes, and those of polars.
BOTH_WAYS = {name: OUTPUTS[name] for name in ("model.sql", "rank.csv")}
KILLED = 60
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with the input files of the verbs."""
    folder = tmp_path_factory.mktemp("killed")
    write_inputs(folder)
    return folder


@pytest.fixture(scope="module")
def cli(folder):
    """Runner of command lines in the folder, which contains a model."""
    warm = WarmCli(folder)
    assert warm.run(*shlex.split(FIT)).code == 0
    yield warm
    warm.close()


@pytest.fixture(scope="module")
def complete(cli, folder):
    """The complete new content of every output, and the seconds it takes to write."""
    found = {}
    for name, command in QUICK.items():
        ended = cli.run(*shlex.split(command))
        assert ended.code == 0, ended.stderr
        found[name] = (folder / name).read_bytes(), ended.seconds
        (folder / name).unlink()
    return found


@pytest.fixture(autouse=True)
def nothing_left(folder):
    yield
    clear(folder)
    for name in QUICK:
        (folder / name).unlink(missing_ok=True)


def temporaries(folder):
    return sorted(folder.glob(".*.tmp"))


def clear(folder):
    for path in temporaries(folder):
        path.unlink()


def outcome(cli, folder, name, command, new, **faults):
    """Run a command over an old output; if it was killed, return the stage of writing at which it ended."""
    (folder / name).write_bytes(OLD)
    before = set(folder.iterdir())
    ended = cli.run(*shlex.split(command), **faults)
    content, created = (folder / name).read_bytes(), set(folder.iterdir()) - before
    assert content in (OLD, new)
    assert created <= set(temporaries(folder))
    if ended.code != -signal.SIGKILL:
        assert (ended.code, content, created) == (0, new, set()), ended.stderr
        return None
    return "after" if content == new else "during" if created else "before"


def test_killed_at_random_moments(cli, folder, complete, counted):
    """Kill times over the whole run, half of them after writing has begun, which is a small part of it."""
    rng = random.Random(0)
    stages, killed_late = Counter(), 0
    for (name, command), since in zip(cycle(QUICK.items()), cycle(["start", "write"]), strict=False):
        new, seconds = complete[name]
        # A write takes microseconds or much longer, depending on the disk and its load, so all time scales are covered.
        after = rng.uniform(0, seconds) if since == "start" else 10 ** rng.uniform(-5, -2)
        stage = outcome(cli, folder, name, command, new, kill={"after": after, "since": since})
        clear(folder)
        stages[stage] += 1
        killed_late += stage is not None and since == "write"
        if stages.total() - stages[None] == KILLED:
            break
        assert stages.total() < 3 * KILLED, f"too few runs could be killed: {stages}"
    assert stages["before"] >= KILLED // 10
    assert stages["during"] + stages["after"] > 0
    assert killed_late >= KILLED // 10
    counted("command lines killed by SIGKILL", KILLED)
    for stage in ("before", "during", "after"):
        counted(f"command lines killed by SIGKILL {stage} the write", stages[stage])


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_killed_on_every_line_of_the_write(cli, folder, complete, counted, name):
    """Half of the bytes are in the temporary file, as if the process had been killed while writing them."""
    stages = []
    for line in count(1):
        at = {"signal": signal.SIGKILL, "functions": WRITE, "line": line, "halve": True}
        stage = outcome(cli, folder, name, OUTPUTS[name], complete[name][0], at=at)
        clear(folder)
        if stage is None:
            break
        stages.append(stage)
    # Each of these, in this order: open the temporary file, flush it, rename it, and the last line.
    assert stages == sorted(stages, key=["before", "during", "after"].index)
    assert set(stages) == {"before", "during", "after"}
    counted("command lines killed by SIGKILL", len(stages))


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_what_a_kill_leaves_disturbs_no_later_run_and_goes_after_a_day(cli, folder, complete, name):
    command, new = OUTPUTS[name], complete[name][0]
    at = {"signal": signal.SIGKILL, "functions": ["_flush"]}
    assert outcome(cli, folder, name, command, new, at=at) == "during"
    (left,) = temporaries(folder)
    # It may belong to another process that is writing at the moment.
    assert outcome(cli, folder, name, command, new) is None
    assert temporaries(folder) == [left]
    of_another_file = folder / ".other.csv.0123abcd.tmp"
    of_another_file.write_text("")
    for path in (left, of_another_file):
        os.utime(path, (time.time() - 25 * 3600,) * 2)
    assert cli.run(*shlex.split(command)).code == 0
    assert temporaries(folder) == [of_another_file]
