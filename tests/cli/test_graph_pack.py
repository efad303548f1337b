"""``apexrank graph pack``."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from apexrank.cli.app import app
from apexrank.graph import as_graph
from tests.graph.test_shards import assert_same, joined


def invoke(*arguments: object):
    return CliRunner().invoke(app, ["graph", "pack", *map(str, arguments)])


def test_files_are_packed_by_the_rules_of_the_other_commands(tmp_path):
    (tmp_path / "a.csv").write_text("who,whom,stars\nx,y,2\ny,y,1\n")
    (tmp_path / "b.csv").write_text("who,whom,stars\ny,x,3\nx,z,0\n")
    columns = ["--source", "who", "--target", "whom", "--weight", "stars"]
    found = invoke(tmp_path / "a.csv", tmp_path / "b.csv", "-o", tmp_path / "out", "--undirected", *columns)
    assert found.exit_code == 0, found.output
    assert re.search(
        r"3 vertices, 3 edges, weighted, in 1 shard of \S+ (bytes|kB) in all; packed in", found.stdout
    )
    expected = as_graph(
        (["x", "y", "y", "x"], ["y", "y", "x", "z"], [2, 1, 3, 0]), directed=False, repeated="sum"
    )
    assert_same(joined(tmp_path / "out"), expected)
    found = invoke(tmp_path / "[ab].csv", "-o", tmp_path / "out", *columns, "--no-self-loops", "--json")
    report = json.loads(found.stdout)
    assert (report["vertices"], report["edges"], report["weighted"]) == (3, 2, True)
    assert report["bytes"] == sum(path.stat().st_size for path in (tmp_path / "out").iterdir())


@pytest.mark.parametrize("size", ["", "much", "0GB", "-1", "10", "2 parsec"])
def test_a_size_that_is_none_is_refused(tmp_path, size):
    (tmp_path / "a.txt").write_text("1 2\n")
    found = invoke(tmp_path / "a.txt", "-o", tmp_path / "out", f"--memory={size}")
    assert found.exit_code != 0
    assert not (tmp_path / "out").exists()


def test_guessed_columns_are_a_note_in_the_words_of_the_command_line(tmp_path):
    (tmp_path / "a.csv").write_text("user,friend,time\n1,2,3\n")
    found = invoke(tmp_path / "a.csv", "-o", tmp_path / "out")
    assert "links go from 'user' to 'friend'; not used: 'time'" in found.stderr
    assert "--source" in found.stderr


def run_cli(*arguments: str, **more) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "apexrank", "graph", "pack", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path):
    resource = pytest.importorskip("resource")
    rng = np.random.default_rng(0)
    np.savetxt(tmp_path / "a.txt", rng.integers(0, 1000, (30_000, 2)), "%d")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    found = run_cli(str(tmp_path / "a.txt"), "-o", str(tmp_path / "out"), preexec_fn=limit)
    assert found.returncode == 2
    assert "file too large: raise the limit" in found.stderr
    assert found.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_nothing(tmp_path, number):
    rng = np.random.default_rng(0)
    np.savetxt(tmp_path / "a.txt", rng.integers(0, 100_000, (200_000, 2)), "%d")
    command = [sys.executable, "-m", "apexrank", "graph", "pack", str(tmp_path / "a.txt")]
    command += ["-o", str(tmp_path / "out"), "--memory", "20kB"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        while not list(tmp_path.glob(".out.*.tmp/scratch*/chunk2")):
            assert running.poll() is None, running.stderr.read()
            time.sleep(0.01)
        running.send_signal(number)
        assert running.wait() == 128 + number
        assert running.stderr.read().count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_standard_input_is_packed_without_being_held_in_memory(tmp_path):
    content = "".join(f"{i} {i * 7 % 100}\n" for i in range(100))
    (tmp_path / "a.txt").write_text(content)
    found = run_cli("-", "-o", str(tmp_path / "out"), "--memory", "1kB", input=content)
    assert found.returncode == 0, found.stderr
    assert_same(joined(tmp_path / "out"), as_graph(tmp_path / "a.txt"))
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "out"]
    found = run_cli("-", "-o", str(tmp_path / "out2"), input=content + "7\n")
    assert "standard input line 101: the row has 1 field" in found.stderr
