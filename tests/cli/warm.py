"""Run command lines in forks of one process that has imported everything, so that hundreds of runs take seconds.

Each run is a separate process, from its arguments to interpreter exit; only the imports are shared. The parent process
has not used polars, whose threads would be missing in the forks.
"""

import gc
import json
import os
import pkgutil
import resource
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

# threads of BLAS and OpenMP do not outlive a fork
ENVIRONMENT = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")} | {
    "POLARS_MAX_THREADS": "2"
}

WRITE = ["replacing", "_flush", "_flush_folder", "write_bytes"]  # functions of files.py
FIT = "fit train.csv --target fraud --id case -o model.apex"
OUTPUTS = {  # every verb that writes, and every way to produce the bytes, by output file; run after FIT
    "fit.apex": "fit train.csv --target fraud --id case -o fit.apex",
    "rank.csv": "rank model.apex train.csv -o rank.csv",
    "rank.parquet": "rank model.apex train.csv --keep -o rank.parquet",
    "run.txt": "rank model.apex train.csv --format trec -o run.txt",
    "model.onnx": "export model.apex -o model.onnx",
    "model.sql": "export model.apex -o model.sql",
    "card.md": "export model.apex --data train.csv -o card.md",
    "queries.csv": "evaluate train.csv --scores amount --target fraud --groups hour --per-query -o queries.csv",
    "roc.png": "evaluate model.apex train.csv --roc roc.png",
    "compare.html": (
        "compare train.csv --target fraud --id case --models logistic,push -p 1,2 --folds 2 --repeats 1 --json "
        "--report compare.html"
    ),
    "votes.csv": "aggregate ballots.csv -o votes.csv",
    "pairs.csv": "aggregate ballots.csv --pairwise pairs.csv",
    "votes.svg": "aggregate ballots.csv --figure votes.svg",
    "votes.html": "aggregate ballots.csv --report votes.html",
    "clusters.csv": "cluster ballots.csv -k 2 -o clusters.csv",
    "orders.csv": "cluster ballots.csv -k 2 --orders orders.csv",
    "graph.csv": "graph rank edges.txt -o graph.csv",
    "farms.html": "graph compare edges.txt --report farms.html",
    "attack.html": "graph attack edges.txt --attacks farm:2 --report attack.html",
    "consensus.csv": "graph consensus edges.txt others.txt -o consensus.csv",
    "demo/train.csv": "demo --out demo",
    "repeated/figure1.csv": "reproduce figure1 --out repeated",
}


def write_inputs(folder: Path) -> None:
    """Write the input files of these commands: payments, ballots and graphs."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(1)
    amount, hour = rng.normal(size=300).round(3), rng.integers(24, size=300)
    fraud = (amount + rng.normal(size=300) > 1).astype(int)
    cases = [f"C{number}" for number in range(300)]
    table = pl.DataFrame({"case": cases, "amount": amount, "hour": hour, "fraud": fraud})
    table.write_csv(folder / "train.csv")
    pl.DataFrame(rng.random((12, 9)).round(2), schema=list("abcdefghi")).write_csv(folder / "ballots.csv")
    for name in ("edges.txt", "others.txt"):
        (folder / name).write_text("".join(f"{a} {b}\n" for a, b in rng.integers(40, size=(200, 2))))


class Ended(NamedTuple):
    """Outcome of a run: its exit code, or the negated signal that killed it, and its output."""

    code: int
    stdout: str
    stderr: str
    seconds: float


class WarmCli:
    """Runner of ``apexrank ARGV`` in forks; :func:`_become` lists the faults that can be injected."""

    def __init__(self, folder: Path) -> None:
        """Start the process; ``folder`` is the working directory of runs."""
        self.folder = folder
        self._printed = TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | ENVIRONMENT,
            text=True,
        )

    def run(self, *argv: str, **faults) -> Ended:
        """Run a command line until it ends."""
        printed = {name: Path(self._printed.name, name) for name in ("stdout", "stderr")}
        for path in printed.values():
            path.write_text("")
        order = {"argv": argv, "cwd": str(self.folder)} | {k: str(p) for k, p in printed.items()} | faults
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the process that forks has ended with code {self._process.wait()}"
        ended = json.loads(answer)
        texts = [path.read_text(errors="surrogateescape") for path in printed.values()]
        return Ended(ended["code"], *texts, ended["seconds"])

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._printed.cleanup()


def _serve() -> None:
    """Fork a process for each request."""
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(**order)
        print(json.dumps(_watch(child, **order.get("kill", {}))), flush=True)


def _run(whole=False, **order):
    """Run the command; a complete interpreter exit takes longer than most runs and happens only if ``whole`` is set."""
    from apexrank.cli import main

    _become(**order)
    try:
        main()
    except SystemExit as end:
        if whole:
            raise
        os._exit(end.code)


def _watch(child: int, after: float | None = None, since: str = "start") -> dict:
    """Wait for a run, or kill it some seconds after its start or after it begins to write."""
    began = time.perf_counter()
    if since == "write":
        _wait({signal.SIGCHLD, signal.SIGUSR1}, None)
    if after is not None and _wait({signal.SIGCHLD}, after) is None:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _wait({signal.SIGCHLD}, 0)  # a message of this run must not be read by the next one
    _wait({signal.SIGUSR1}, 0)
    return {"code": code, "seconds": time.perf_counter() - began}


def _wait(signals, seconds):
    return signal.sigwaitinfo(signals) if seconds is None else signal.sigtimedwait(signals, seconds)


def _become(argv, cwd, stdin=os.devnull, stdout=None, stderr=None, kill=None, at=None, fsize=None, uid=None):
    """Set up the process as a shell would, with faults.

    ``stdin``, ``stdout`` and ``stderr`` are paths, None for closed, or "left" for a pipe whose reader has left;
    ``at`` gives the file, line and signal of an interruption; ``fsize`` is the maximum size of a file; ``uid`` is the
    user id.
    """
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD, signal.SIGUSR1})
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # as in a shell, whoever started the tests
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    _stop_clocks()
    os.chdir(cwd)
    sys.argv = ["apexrank", *argv]
    for number, name, path in ((0, "stdin", stdin), (1, "stdout", stdout), (2, "stderr", stderr)):
        _redirect(number, name, path)
    if fsize is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (fsize, fsize))
    if uid is not None:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    if kill is not None and kill.get("since") == "write":
        _tell_when_writing(os.getppid())
    if at is not None:
        sys.settrace(_Trap(**at))


def _stop_clocks():
    """Make reports reproducible byte for byte by fixing their time and duration."""
    from apexrank.report import page

    class Noon(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2000, 1, 1, 12, tzinfo=tz)

    page.datetime = Noon
    time.perf_counter = lambda: 0.0


def _tell_when_writing(process):
    """Send a signal when a temporary file is named, which is the last step before it is written."""
    token_hex = secrets.token_hex

    def tell(size):
        os.kill(process, signal.SIGUSR1)
        return token_hex(size)

    secrets.token_hex = tell


def _redirect(number, name, path):
    if path is None:
        os.close(number)
        setattr(sys, name, None)  # as the interpreter starts without it
        return
    if path == "left":
        reader, opened = os.pipe()
        os.close(reader)
    else:
        opened = os.open(path, os.O_RDWR | os.O_CREAT if number else os.O_RDONLY, 0o666)
    os.dup2(opened, number)
    os.close(opened)


class _Trap:
    """Send a signal on the n-th line executed in a file, or in some of its functions."""

    def __init__(self, signal, line=1, file="apexrank/files.py", functions=None, halve=False):
        self.file, self.functions, self.line = file, functions, line
        self.signal, self.halve = signal, halve

    def __call__(self, frame, event, arg):
        code = frame.f_code
        if self.file in code.co_filename and (self.functions is None or code.co_name in self.functions):
            return self._in_file
        return None

    def _in_file(self, frame, event, arg):
        if event == "line":
            self.line -= 1
            if self.line == 0:
                self._spring()
        return self._in_file

    def _spring(self):
        if self.halve:  # as if the signal had arrived while the bytes were being written
            for path in Path.cwd().glob(".*.tmp"):
                os.truncate(path, path.stat().st_size // 2)
        os.kill(os.getpid(), self.signal)


def _import_everything():
    import numpy as np
    from scipy.sparse import csr_array
    from typer.main import get_command

    import apexrank
    from apexrank import aggregation, cli, export, graph, io, report

    for package in (cli, io, report, export, graph, aggregation):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    for name in ("typer._adapters", "jinja2.ext", "onnx.checker", "matplotlib.pyplot", "scipy.stats"):
        with suppress(ImportError):
            import_module(name)
    cli.app.app = get_command(cli.app.app)  # which takes longer than some of the commands
    # a kernel is loaded when it is first called
    X = np.random.default_rng(0).normal(size=(60, 2))
    apexrank.PNormPush().fit(X, X[:, 0] > 0.5)
    aggregation.aggregate(X)
    graph.LpqRank().fit(csr_array(np.eye(3, k=1)))
    gc.freeze()


if __name__ == "__main__":
    # before the imports, because libraries start threads, which must not take them either
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGUSR1})
    _import_everything()
    _serve()
