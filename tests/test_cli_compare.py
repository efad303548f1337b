"""``apexrank compare``: from a table to a report, and what goes wrong on the way."""

import json
import shlex
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from apexrank.cli.app import app
from apexrank.datasets import make_push_example
from apexrank.report import page

QUICK = "--folds 2 -p 1,8"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a table as people have them: text, gaps, an id, a constant."""
    monkeypatch.chdir(tmp_path)
    example = make_push_example(900, random_state=0)
    rng = np.random.default_rng(0)
    features = {name: example.data[:, j].round(3) for j, name in enumerate(example.feature_names)}
    features["amount"] = [
        None if gap else value for gap, value in zip(rng.random(900) < 0.02, features["amount"], strict=True)
    ]
    extra = {
        "shop": rng.choice(["A", "B", "<b>C</b>"], 900),
        "comment": [f"text {i}" for i in range(900)],
        "year": 2026,
    }
    frame = pl.DataFrame(
        {"case": [f"<i>{i}" for i in range(900)], **features, **extra, "fraud": example.target}
    )
    frame[:600].write_csv("train.csv")
    frame[600:].write_csv("new.csv")
    return tmp_path


def run(command, code=0):
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == code, result.output
    return result


def test_one_command_from_an_ordinary_table_to_a_report(folder):
    result = run(f"compare train.csv --target fraud --id case --report r.html {QUICK}")
    assert "train.csv: learnt from 420 rows" in result.stdout
    assert "measured on 180 others" in result.stdout
    assert "* chosen by cross-validation (precision in the first 10 % of the rows)" in result.stdout
    assert "written: r.html" in result.stdout
    for words in ("left out: column 'comment'", "left out: column 'year'", "one-hot encoded: column 'shop'"):
        assert f"note: {words}" in result.stderr
    html = Path("r.html").read_text()
    assert html.startswith("<!doctype html>")
    assert "<title>Does a push help? train.csv</title>" in html
    assert "&lt;i&gt;" in html
    assert "<i>" not in html
    assert sorted(path.name for path in folder.iterdir()) == ["new.csv", "r.html", "train.csv"]


def test_every_part_of_the_question_is_on_the_page(folder):
    run(f"compare train.csv --target fraud --id case --report r.html --title 'My & mine' {QUICK}")
    html = Path("r.html").read_text()
    for heading in (
        "The list, drawn",
        "The first 18 held-out rows",
        "What it gives and what it costs",
        "What the ranker looks at",
        "How many examples a push needs",
        "What was skipped or assumed, and how long it took",
    ):
        assert heading in html
    assert "<title>My &amp; mine</title>" in html
    assert html.count("http") == html.count("http-equiv")  # no address of anything


def test_without_a_report_it_prints_only(folder):
    result = run(f"compare train.csv --target fraud --id case {QUICK}")
    assert "written" not in result.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["new.csv", "train.csv"]


def test_rows_of_another_table_are_measured_on(folder):
    found = json.loads(
        run(f"compare train.csv --test new.csv --target fraud --id case --json --top 7 {QUICK}").stdout
    )
    assert (found["n_train"], found["n_test"]) == (600, 300)
    assert found["report"] is None
    assert len(found["top"]) == 7
    assert {row["p"] for row in found["measures"]} == {1, 8}
    assert set(found["seconds"]) >= {"reading", "fit", "total"}


def test_the_same_seed_gives_the_same_numbers(folder):
    first, second, other = (
        json.loads(run(f"compare train.csv --target fraud --id case --json --seed {seed} {QUICK}").stdout)
        for seed in (1, 1, 2)
    )
    assert first["measures"] == second["measures"] != other["measures"]
    assert first["top"] == second["top"] != other["top"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--report r.txt", "a report is an HTML file: call it 'r.html'"),
        ("--report no/r.html", "there is no folder"),
        ("--report train.csv", "a report is an HTML file: call it 'train.html'"),
        ("-p 1,two", "-p takes numbers with commas between them, such as 1,4,16, got '1,two'"),
        ("-p 0.5", "ps must be numbers of at least 1"),
        ("--holdout 1.5", "holdout must be a share between 0 and 1"),
        ("--folds 1", "folds must be a whole number of at least 2"),
        ("--top 0", "top must be a whole number of at least 1"),
        ("--confidence 2", "confidence"),
        ("--scoring best", "unknown scorer 'best'"),
        ("--features nope", "nope"),
        ("--scale odd", "odd"),
        ("--test none.csv", "none.csv"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_and_nothing_is_written(folder, options, words):
    result = run(f"compare train.csv --target fraud --id case {options}", code=2)
    assert words in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == ["new.csv", "train.csv"]


def test_a_report_is_not_written_over_the_data(folder):
    Path("train.csv").rename("train.html")
    assert "error" in run("compare train.html --target fraud --report train.html", code=2).stderr
    assert Path("train.html").read_text().startswith("case,")


def test_the_missing_extra_is_named_before_any_work(folder, monkeypatch):
    page._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = run("compare train.csv --target fraud --report r.html", code=2)
    assert result.stderr == 'error: reports need Jinja2: pip install "apexrank[report]"\n'
