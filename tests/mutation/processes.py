"""Run jobs in forks of this process, a few at a time; each reports its result in a file."""

from __future__ import annotations

import ast
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

MEMORY = 3 * 2**30  # additional memory of a fork in bytes: a mutant may allocate any amount
STARTS_THREADS = {
    "dask",
    "distributed",
    "duckdb",
    "lightgbm",
    "onnxruntime",
    "playwright",
    "polars",
    "pyarrow",
}
STARTS_THREADS |= {"skl2onnx", "onnx", "tests", "torch", "xgboost", "apexrank", "conftest"}


@dataclass(frozen=True)
class Task:
    """Task of a fork, and its limit in seconds of processor time."""

    key: Any
    work: Callable[[], Any]
    seconds: float


def warm_up(files: Iterable[Path]) -> None:
    """Import what these files import, except the package itself and libraries whose threads do not survive a fork."""
    statements = set()
    for path in files:
        for node in ast.parse(path.read_text()).body:
            names = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [a.name for a in getattr(node, "names", [])]
            )
            if (
                isinstance(node, ast.Import | ast.ImportFrom)
                and not {n.split(".")[0] for n in names} & STARTS_THREADS
            ):
                statements.add(ast.unparse(node))
    for statement in sorted(statements - {"from __future__ import annotations"}):
        try:
            exec(statement, {})
        except ImportError as error:
            print(f"not there before forking: {error}", file=sys.stderr)
    for name in [name for name in sys.modules if name.split(".")[0] == "apexrank"]:
        del sys.modules[name]  # networkx has imported its backends


def run_all(tasks: Iterable[Task], jobs: int) -> Iterator[tuple[Any, str, Any]]:
    """Key, outcome and result of each task as it ends; the outcome is done, crashed or timed out."""
    waiting, running = iter(tasks), {}
    with TemporaryDirectory() as folder:
        try:
            while True:
                while len(running) < jobs and (task := next(waiting, None)) is not None:
                    answer = Path(folder) / f"{id(task)}.json"
                    # processor time is limited, but a sleeping fork would never use it up
                    running[_fork(task, answer)] = (task, answer, time.monotonic() + 60 + 10 * task.seconds)
                if not running:
                    return
                for pid, status in _ended(running):
                    task, answer, _ = running.pop(pid)
                    yield task.key, *_read(status, answer)
        finally:
            for pid in running:
                _kill(pid)


def _fork(task: Task, answer: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        memory = MEMORY + int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limits = {
            resource.RLIMIT_AS: memory,
            resource.RLIMIT_CPU: int(task.seconds) + 1,
            resource.RLIMIT_CORE: 0,
        }
        for what, limit in limits.items():
            resource.setrlimit(what, (limit, resource.getrlimit(what)[1]))
        answer.write_text(json.dumps(task.work()))
    except BaseException:  # whatever happens, this fork must not continue as its parent
        answer.with_suffix(".error").write_text(traceback.format_exc())
        os._exit(1)
    os._exit(0)


def _ended(running: dict) -> list[tuple[int, int]]:
    ended = [pair for pid in running if (pair := os.waitpid(pid, os.WNOHANG))[0]]
    for pid, (_, _, deadline) in running.items():
        if time.monotonic() > deadline and pid not in dict(ended):
            _kill(pid)
            ended.append((pid, signal.SIGXCPU))
    if not ended:
        time.sleep(0.005)
    return ended


def _kill(pid: int) -> None:
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _read(status: int, answer: Path) -> tuple[str, Any]:
    if os.WIFSIGNALED(status):
        slow = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        return ("timed out" if slow else "crashed"), f"signal {os.WTERMSIG(status)}"
    if os.WEXITSTATUS(status) == 0 and answer.exists():
        return "done", json.loads(answer.read_text())
    error = answer.with_suffix(".error")
    return "crashed", error.read_text() if error.exists() else f"exit {os.WEXITSTATUS(status)}"
