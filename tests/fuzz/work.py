"""Read many inputs in worker processes, and report the number of any input that crashes, hangs or takes a gigabyte.

A worker records the number of each input before it reads it. If the worker dies or is stopped, its parent finds the
input in that record and starts another worker after it. Workers are spawned, never forked, because of polars.
"""

from __future__ import annotations

import faulthandler
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.generate import generate

MOST_SECONDS = 10
MOST_BYTES = 1 << 30  # above the memory of the worker at its start
_SPARE_BYTES = 6 << 30  # of address space, which libraries reserve freely; a limit protects the machine
_CHUNK = 10_000


@dataclass
class Share:
    """Inputs of one target, and their outcomes."""

    target: str
    seed: int
    start: int
    stop: int
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[int, str]] = field(default_factory=list)
    seconds: float = 0.0


def peak_bytes() -> int:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def limit_memory() -> None:
    """Make allocations fail before the machine runs out of memory."""
    import resource

    if sys.platform == "linux":
        addresses = 4096 * int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (addresses + _SPARE_BYTES, addresses + _SPARE_BYTES))


def work(share: Share, note: Path) -> None:
    """Read the inputs of a share in this process, which they may crash; print the outcomes."""
    from tests.fuzz.runner import Fault, outcome

    limit_memory()
    faulthandler.enable()
    before = 0
    with tempfile.TemporaryDirectory() as folder, note.open("r+") as noted:
        for index in range(share.start, share.stop):
            noted.seek(0)
            noted.write(f"{index:12d}")
            noted.flush()
            data = generate(share.target, share.seed, index)
            faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
            try:
                share.counts[outcome(share.target, data, Path(folder))] += 1
                fault = None
            except Fault as error:
                share.counts["fault"] += 1
                fault = str(error)
            faulthandler.cancel_dump_traceback_later()
            before = before or peak_bytes()  # the first input has loaded the libraries
            if fault is None and peak_bytes() - before > MOST_BYTES:
                fault, before = f"it took {(peak_bytes() - before) >> 20} MB", peak_bytes()
            if fault is not None:
                print(json.dumps([index, fault]), flush=True)
    print(json.dumps(share.counts), flush=True)


def _watch(share: Share) -> Share:
    """Process a share with as many workers as necessary."""
    began, start = time.perf_counter(), share.start
    with tempfile.TemporaryDirectory() as folder:
        note, log = Path(folder, "note"), Path(folder, "log")
        while start < share.stop:
            note.write_text(f"{start:12d}")
            place = [share.target, str(share.seed), str(start), str(share.stop), str(note)]
            command = [sys.executable, "-m", "tests.fuzz", "--work", *place]
            with log.open("w") as errors:
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, check=False)
            for line in done.stdout.splitlines():
                told = json.loads(line)
                if isinstance(told, dict):
                    share.counts.update(told)
                else:
                    share.faults.append((told[0], told[1]))
            if done.returncode == 0:
                break
            last = int(note.read_text())
            told = log.read_text(errors="replace")
            # polars ends the process if a page of a damaged file claims more memory than there is
            is_of_polars = share.target == "Parquet" and "memory allocation of" in told
            share.counts.update({"not told": last - start, "ended by polars" if is_of_polars else "fault": 1})
            if not is_of_polars:
                share.faults.append((last, f"the worker ended with {done.returncode}: {told[-2000:]}"))
            start = last + 1
    share.seconds = time.perf_counter() - began
    return share


def run(targets: list[str], inputs: int, seed: int, jobs: int) -> list[Share]:
    """Process ``inputs`` inputs over all targets; returns one share of outcomes per target."""
    each = -(-inputs // len(targets))
    shares = [
        Share(target, seed, start, min(start + _CHUNK, each))
        for target in targets
        for start in range(0, each, _CHUNK)
    ]
    with ThreadPoolExecutor(jobs) as pool:
        done = list(pool.map(_watch, shares))
    found = {target: Share(target, seed, 0, each) for target in targets}
    for share in done:
        whole = found[share.target]
        whole.counts.update(share.counts)
        whole.faults += share.faults
        whole.seconds += share.seconds
    return list(found.values())
