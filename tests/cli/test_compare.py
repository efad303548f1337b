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


@pytest.mark.slow
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
        ("-p 0.5", "-p takes numbers from 1 to 10,000, or inf, got 0.5"),
        ("-p 1,1e300", "-p takes numbers from 1 to 10,000, or inf, got 1e+300"),
        ("-p nan", "-p takes numbers from 1 to 10,000, or inf, got nan"),
        ("--holdout 1.5", "--holdout must be a share between 0 and 1"),
        ("--folds 1", "'--folds'"),
        ("--top 0", "'--top'"),
        ("--seed -1", "'--seed'"),
        ("--confidence 2", "--confidence must be between 0 and 1, got 2"),
        ("--confidence 0.9999", "--confidence 0.9999 is more than 1,000 draws can tell: at most 0.998"),
        ("--scoring best", "--scoring 'best' is no measure of the top of a list: use top, or one such as"),
        ("--scoring accuracy", "--scoring 'accuracy' is no measure"),
        ("--scoring neg_log_loss", "--scoring 'neg_log_loss' is no measure"),
        ("--scoring precision_at_0", "--scoring 'precision_at_0' needs a number of rows"),
        ("--scoring precision_at_500", "the scoring 'precision_at_500' looks at 500 rows"),
        ("--id fraud", "column 'fraud' is the target: it cannot be the id as well"),
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


def test_weights_that_are_all_0_are_named(folder):
    pl.read_csv("train.csv").with_columns(w=0).write_csv("w.csv")
    result = run("compare w.csv --target fraud --id case --weight w", code=2)
    assert result.stderr == "error: w.csv column 'w': all weights are 0; give some rows a weight above 0\n"


def test_what_speaks_against_the_verdict_is_beside_it(folder):
    frame = pl.read_csv("train.csv").with_columns(price=pl.format("${}", pl.int_range(600)))
    frame.write_csv("money.csv")
    last = run(f"compare money.csv --test money.csv --target fraud --id case {QUICK}").stdout.splitlines()[
        -3:
    ]
    assert last == [
        "The test rows are training rows, so nothing here says how new rows are ranked.",
        "Left out although it looks like numbers written as text: 'price'.",
        "3 of 10 columns were left out; the notes say why.",
    ]


def test_too_few_rows_have_no_intervals(folder):
    frame = pl.read_csv("new.csv")
    pl.concat([frame.filter(fraud=0), frame.filter(fraud=1)[:4]]).write_csv("few.csv")
    result = run(f"compare train.csv --test few.csv --target fraud --id case {QUICK}")
    assert "Too few to tell (only 4 held-out rows are positive): " in result.stdout
    assert "nan" not in result.stdout


def test_a_measure_by_scikit_learns_name(folder):
    result = run(f"compare train.csv --target fraud --id case --scoring roc_auc {QUICK}")
    assert "* chosen by cross-validation (roc_auc)" in result.stdout


def test_p_inf_without_a_minimum_is_marked(folder):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(400)
    y = (x + 2 * rng.standard_normal(400) > 1).astype(int)
    pl.DataFrame({"x": x, "y": y}).write_csv("overlap.csv")
    result = run("compare overlap.csv --target y --folds 2 -p 1,inf")
    assert "inf (no minimum but 0)" in result.stdout
    assert "1 *" in result.stdout
    assert "1 feature\n" in result.stdout


def test_a_report_is_not_written_over_the_data(folder):
    Path("train.csv").rename("train.html")
    assert "error" in run("compare train.html --target fraud --report train.html", code=2).stderr
    assert Path("train.html").read_text().startswith("case,")


def test_the_missing_extra_is_named_before_any_work(folder, monkeypatch):
    page._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = run("compare train.csv --target fraud --report r.html", code=2)
    assert result.stderr == 'error: reports need Jinja2: pip install "apexrank[report]"\n'
