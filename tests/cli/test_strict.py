"""``--strict``, named positive classes, spreadsheet-safe CSV and control characters."""

import importlib
import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from .test_verbs import run


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    frame = pl.DataFrame(
        {
            "name": [f"r{i}" for i in range(60)],
            "x": x,
            "z": x**2,
            "y": (x + rng.normal(size=60) > 0.3).astype(int),
        }
    )
    frame.write_csv("t.csv")
    frame.write_csv("semi.csv", separator=";")
    frame.with_columns(x=100 * x).write_csv("far.csv")
    Path("odd.csv").write_text(frame.write_csv().replace("name,", ",", 1))
    run("fit t.csv --target y --id name -o model.apex")


FIT = "fit {} --target y --id {} -o new.apex"
GUESSES = [
    (FIT.format("semi.csv", "name"), "the columns are separated by ';' (--sep names another)", "--sep ;"),
    (FIT.format("odd.csv", "index"), "the first column has no name: it is used as an id", None),
    (FIT.format("semi.csv", "name") + " --engine blocks", "the columns are separated by ';'", None),
    ("rank model.apex semi.csv", "separated by ';'", "--sep ;"),
    ("rank model.apex far.csv", "values are far outside the training range", None),
    ("evaluate model.apex far.csv --measures auc", "values are far outside the training range", None),
    ("fit t.csv --target y -o new.apex", "left out: 'name'", "--id name"),
    ("graph rank links.csv", "line 1 is read as column names", "--source left --target right"),
    ("graph pack links.csv -o new.apex", "line 1 is read as", "--source left --target right"),
    ("aggregate votes.csv", "votes.csv: ", "--id voter"),
]


@pytest.mark.parametrize(("command", "words", "remedy"), GUESSES, ids=range(len(GUESSES)))
def test_guesses_are_notes_or_errors(command, words, remedy):
    Path("links.csv").write_text("left,right\na,b\nb,c\n")
    Path("votes.csv").write_text("voter,tea,rum\n1,3,2\n2,1,5\n")
    told = run(command).stderr
    if command.startswith("aggregate") and words not in told:
        pytest.skip("nothing was guessed")
    assert words in told
    shutil.rmtree("new.apex") if Path("new.apex").is_dir() else Path("new.apex").unlink(missing_ok=True)
    refused = run(f"{command} --strict", code=2).stderr
    assert words in refused
    assert refused.startswith("error: ")
    assert refused.count("\n") == 1
    assert not Path("new.apex").exists()
    if remedy is not None:
        run(f"{command} {remedy} --strict")


def test_weights_in_another_unit_are_noted():
    table = pl.read_csv("t.csv")
    for factor, noted in ((1, False), (5, False), (400, True), (0.001, True)):
        table.with_columns(w=pl.lit(float(factor))).write_csv("weighted.csv")
        for engine in ("", " --engine blocks"):
            told = run(f"fit weighted.csv --target y --id name --weight w{engine}").stderr
            assert (f"so these 60 rows stand for {60 * factor:,.6g}" in told) == noted


def test_strict_is_an_option_of_every_verb_that_reads():
    for verb in (
        "fit",
        "rank",
        "evaluate",
        "compare",
        "aggregate",
        "cluster",
        "export",
        "graph rank",
        "graph inspect",
    ):
        assert "--strict" in run(f"{verb} --help").stdout


def test_positive_class_is_named_by_every_verb():
    assert "(y = 1)" in run("fit t.csv --target y --id name").stdout
    assert "note: best first (y = 1)" in run("rank model.apex t.csv").stderr
    assert "best first (y = 1)" in run("rank model.apex t.csv -o r.csv").stdout
    assert "positive (y = 1)" in run("evaluate model.apex t.csv").stdout
    assert json.loads(run("evaluate model.apex t.csv --json").stdout)["positive"] == "y = 1"
    assert "higher scores mean y = 1" in run("export model.apex").stderr


def test_a_fit_that_ranks_backwards_says_so():
    # a penalty so strong that only the sign of one outlier remains
    x = np.array([10.0, *np.linspace(0, 1, 39)])
    y = np.array([1, *(np.linspace(0, 1, 39) < 0.3)]).astype(int)
    pl.DataFrame({"x": x, "y": y}).write_csv("b.csv")
    told = run("fit b.csv --target y --alpha 100 -p 1").stderr
    assert "the AUC on the training rows is 0." in told
    assert "below one half: is '1' the positive value of 'y'" in told


def test_drift_of_scores_and_columns(monkeypatch):
    shown = run("evaluate model.apex far.csv --drift --measures auc")
    assert "with less drift" not in shown.stdout
    monkeypatch.setattr(importlib.import_module("apexrank.cli.evaluate"), "_COLUMNS_SHOWN", 0)
    assert "more columns with less drift: --json" in run("evaluate model.apex far.csv --drift").stdout
    assert "PSI below 0.1: little drift" in shown.stdout
    found = json.loads(run("evaluate model.apex t.csv --drift --measures auc --json").stdout)["drift"]
    assert list(found) == ["score", "x", "z"]
    assert all(value == pytest.approx(0, abs=1e-9) for value in found.values())
    Path("s.csv").write_text("s,y\n1,0\n2,1\n3,0\n")
    assert (
        "--drift compares a table with a model"
        in run("evaluate s.csv --scores s --target y --drift", code=2).stderr
    )


def test_no_text_of_a_csv_file_is_a_formula():
    names = ["=HYPERLINK(1)", "+1+1", "-2", "@x", "\tx", "-x", "plain"]
    pl.DataFrame({"name": names, "x": range(7), "z": range(7)}).write_csv("n.csv")
    unsafe = pl.read_csv(run("rank model.apex n.csv").stdout.encode())
    assert set(unsafe["name"]) == set(names)
    safe = {"'=HYPERLINK(1)", "'+1+1", "-2", "'@x", "'\tx", "'-x", "plain"}
    assert set(pl.read_csv(run("--spreadsheet-safe rank model.apex n.csv").stdout.encode())["name"]) == safe
    for output in ("o.csv", "o.csv.gz"):
        run(f"--spreadsheet-safe rank model.apex n.csv -o {output}")
        assert set(pl.read_csv(output)["name"]) == safe
    run("--spreadsheet-safe rank model.apex n.csv -o o.parquet")
    assert set(pl.read_parquet("o.parquet")["name"]) == set(names)


def test_control_characters_of_files_are_escaped():
    Path("e.csv").write_text("source,target\na\x1b[2Jb,c\nc,d\x9b31m\n")
    shown = run("graph rank e.csv -o o.csv")
    assert "\x1b" not in shown.stdout
    assert "\x9b" not in shown.stdout
    assert "a\\x1b[2Jb" in shown.stdout
    Path("bad.csv").write_text("x\x1b]0;t,z,y\n1\x1b[31m,2,0\n2,1,1\n3,2,0\n4,4,1\n")
    told = run("fit bad.csv --target y", code=2).stderr
    assert "\x1b" not in told
    assert "\\x1b" in told
