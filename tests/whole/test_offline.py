"""Nothing at run time asks the network: every module is imported and every verb runs while a hook listens for sockets.

The hook hears what Python does. It runs in a process of its own (this file, started as a program), as a hook stays for
good.
"""

import json
import os
import shlex
import socket
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

EVENTS = {
    *("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"),
    *("socket.getnameinfo", "socket.gethostbyaddr", "urllib.Request", "http.client.connect"),
    *("ftplib.connect", "smtplib.connect"),
}
VERBS = [
    "demo --out demo --json",
    "fit train.csv --target fraud --id case -o model.apex",
    "rank model.apex new.csv -o ranked.csv",
    "evaluate model.apex new.csv --json",
    "compare train.csv --target fraud --id case --report push.html --models push,trees -p 1,8 --folds 2 --repeats 1",
    "export model.apex -o model.sql",
    "aggregate ballots.csv --report votes.html",
    "cluster ballots.csv -k 2 -o camps.csv",
    "graph inspect edges.csv",
    "graph rank edges.csv -o pages.csv",
    "graph pack edges.csv -o edges.shards",
    "graph compare edges.csv --report farms.html",
    "graph attack edges.csv --attacks farm:2 --report attack.html",
    "graph consensus edges.csv other.csv -o agreed.csv",
    "reproduce table1 --out figures",
]
OPTIONAL = (
    "torch",
    "triton",
    "dask",
    "distributed",
    "lightgbm",
    "xgboost",
    "onnx",
    "skl2onnx",
    "networkx",
)


def listen():
    """Record and reject every connection that would leave the machine; local sockets are allowed."""
    tried = []

    def hook(event, arguments):
        if event in EVENTS and getattr(arguments[0], "family", None) != getattr(socket, "AF_UNIX", -1):
            tried.append([event, repr(arguments[1:])])
            raise PermissionError(f"{event} while offline")

    sys.addaudithook(hook)
    return tried


def import_everything():
    """Import all modules of both packages, except those whose optional package is not installed."""
    import apexrank
    import apexrank_papers

    roots = [Path(package.__file__).parent for package in (apexrank, apexrank_papers)]
    names, left_out = [], []
    for path in sorted(path for root in roots for path in root.rglob("*.py")):
        parts = path.with_suffix("").parts[path.parts.index("src") + 1 :]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        try:
            import_module(name)
            names.append(name)
        except ImportError as error:
            if not any(find_spec(package) is None and package in str(error) for package in OPTIONAL):
                raise
            left_out.append(name)
    return names, left_out


def write_tables():
    """Small tables of payments, ballots and links."""
    import numpy as np
    import polars as pl

    from apexrank.datasets import make_push_example

    example = make_push_example(400, random_state=0)
    columns = {name: example.data[:, j].round(3) for j, name in enumerate(example.feature_names)}
    frame = pl.DataFrame({"case": [f"c{i}" for i in range(400)], **columns, "fraud": example.target})
    frame[:300].write_csv("train.csv")
    frame[300:].write_csv("new.csv")
    rng = np.random.default_rng(0)
    pl.DataFrame(rng.random((20, 4)), schema=list("abcd"), orient="row").write_csv("ballots.csv")
    for name in ("edges.csv", "other.csv"):
        links = rng.integers(0, 60, (300, 2))
        frame = pl.DataFrame({"source": links[:, 0], "target": links[:, 1]})
        frame.filter(pl.col("source") != pl.col("target")).unique(maintain_order=True).write_csv(name)


def run_verbs():
    """Exit code and output of every verb."""
    from typer.testing import CliRunner

    from apexrank.cli.app import app

    results = {verb: CliRunner().invoke(app, shlex.split(verb)) for verb in VERBS}
    return {verb: [result.exit_code, result.output] for verb, result in results.items()}


def program():
    """Program of the child process; with "connect" it opens a connection, which must be detected."""
    tried = listen()
    found = {}
    if sys.argv[1:] == ["connect"]:
        from urllib.request import urlopen

        for attempt in (
            lambda: socket.create_connection(("127.0.0.1", 9)),
            lambda: socket.socket().connect(("127.0.0.1", 9)),
            lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"", ("127.0.0.1", 9)),
            lambda: urlopen("http://127.0.0.1:9/"),
        ):
            try:
                attempt()
            except PermissionError:
                continue
    else:
        write_tables()
        found["modules"], found["left out"] = import_everything()
        found["verbs"] = run_verbs()
    print(json.dumps(found | {"tried": tried}))


def start(folder, *arguments):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    command = [sys.executable, str(Path(__file__).resolve()), *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_importing_everything_and_running_every_verb_never_asks_the_network(tmp_path, counted):
    found = start(tmp_path)
    assert {verb: answer for verb, answer in found["verbs"].items() if answer[0] != 0} == {}
    assert {"apexrank.cli.app", "apexrank.rankers", "apexrank_papers.push.tables"} <= set(found["modules"])
    assert len(found["modules"]) > 150
    assert found["tried"] == []
    counted("verbs run without a network", len(found["verbs"]))
    counted("modules imported without a network", len(found["modules"]))
    for name in ("push.html", "votes.html", "farms.html", "model.sql", "figures/table1.csv"):
        assert (tmp_path / name).stat().st_size > 100


def test_every_verb_of_the_command_line_is_run():
    from apexrank.cli.app import app

    groups = {
        "": app,
        **{group.typer_instance.info.name: group.typer_instance for group in app.registered_groups},
    }
    names = {
        " ".join([group, command.name or command.callback.__name__]).strip()
        for group, verbs in groups.items()
        for command in verbs.registered_commands
    }
    missing = {name for name in names if not any(verb.startswith(name) for verb in VERBS)}
    assert missing == set()


def test_the_hook_hears_what_it_should(tmp_path):
    heard = [event for event, _ in start(tmp_path, "connect")["tried"]]
    assert heard == ["socket.getaddrinfo", "socket.connect", "socket.sendto", "urllib.Request"]


if __name__ == "__main__":
    program()
