"""``apexrank compare``: from a table to a report, and its errors."""

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from apexrank.datasets import make_push_example
from apexrank.report import page
from tests.cli.running import run

QUICK = "--models logistic,trees --folds 2 --repeats 1"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder with a realistic table: text, missing values, an id, a constant."""
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


def test_one_command_from_an_ordinary_table_to_a_model(folder):
    result = run(f"compare train.csv --target fraud --id case --save m.apex {QUICK}")
    assert "train.csv: 2 folds, once, in all on 600 rows, " in result.stdout
    assert "of them positive (fraud = 1); " in result.stdout
    assert "logistic regression" in result.stdout
    assert "boosted trees" in result.stdout
    assert "* recommended: " in result.stdout
    assert "With " in result.stdout
    assert "written: m.apex" in result.stdout
    assert "columns left out: 'comment' (almost every value is unique" in result.stdout
    assert result.stderr.startswith("note: differences of up to about ")
    assert "note: categories: 'shop' (3 values)" in result.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["m.apex", "new.csv", "train.csv"]


_SCALED = "curves --impute mean --scale minmax"  # for the others, as curves take columns as they are


@pytest.mark.parametrize("models", ["logistic", "push", "curves", _SCALED, "trees", "curves-and-trees"])
def test_the_fit_command_gives_the_same_model(folder, models):
    options = "--target fraud --id case --drop comment --models"
    found = json.loads(
        run(f"compare train.csv {options} {models} --folds 2 --repeats 1 --save m.apex --json").stdout
    )
    assert found["fit"].startswith("apexrank fit train.csv --target fraud --id case --drop comment --model ")
    run(found["fit"].removeprefix("apexrank ").replace("m.apex", "again.apex"))
    assert Path("m.apex").read_bytes() == Path("again.apex").read_bytes()
    ranked = run("rank m.apex new.csv --top 3 --explain --json").stdout
    assert len(json.loads(ranked)["ranking"]) == 3


def test_the_costs_of_every_ranker_are_told(folder):
    options = "--models push,curves,logistic --folds 2 --repeats 1"
    result = run(f"compare train.csv --target fraud --id case {options}")
    (line,) = (
        line for line in result.stdout.splitlines() if line.startswith("Costs (AUC below the best, num")
    )
    assert line.count(" 0.000, ") >= 1  # the best AUC
    assert line.count("one coefficient per feature") == 2
    found = json.loads(run(f"compare train.csv --target fraud --id case --json {options}").stdout)
    sizes = {ranker["ranker"]: ranker["numbers"] for ranker in found["rankers"]}
    assert list(sizes) == ["logistic regression", "linear push", "curves"]  # the most readable first
    assert sizes["linear push"] < sizes["curves"]
    aucs = {row["ranker"]: row["value"] for row in found["measures"] if row["measure"] == "auc"}
    short, size = max(aucs.values()) - aucs["curves"], sizes["curves"]
    assert f"; curves {short:.3f}, {size}, one curve per column." in found["verdict"]["costs"]
    assert found["verdict"]["costs"] == line


def test_the_fit_command_leaves_out_what_splits_the_rows(folder):
    pl.read_csv("train.csv").write_csv("semi.csv", separator="|")
    options = "--target fraud --id case --drop comment --group-split hour --sep '|' --models logistic"
    found = json.loads(run(f"compare semi.csv {options} --folds 2 --repeats 1 --save m.apex --json").stdout)
    run(found["fit"].removeprefix("apexrank ").replace("m.apex", "again.apex"))
    assert Path("m.apex").read_bytes() == Path("again.apex").read_bytes()


def test_without_a_report_it_prints_only(folder):
    result = run(f"compare train.csv --target fraud --id case {QUICK}")
    assert "written" not in result.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["new.csv", "train.csv"]


def test_rows_of_another_table_are_measured_on(folder):
    found = json.loads(
        run(f"compare train.csv --test new.csv --target fraud --id case --json --top 30 {QUICK}").stdout
    )
    assert found["rows"] == 300
    assert found["top"]["share"] == pytest.approx(0.1)
    assert found["report"] is None
    assert {row["ranker"] for row in found["measures"]} == {"logistic regression", "boosted trees"}


def test_test_rows_unlike_the_training_rows_are_told(folder):
    frame = pl.read_csv("new.csv").with_columns(shop=pl.lit("Z"), amount=1000 * pl.col("amount"))
    frame.write_csv("far.csv")
    command = f"compare train.csv --test far.csv --target fraud --id case --drop comment,year {QUICK}"
    told = run(command).stderr
    assert "note: test rows: column 'amount': " in told
    assert "values are far outside the training range" in told
    assert "note: test rows: column 'shop'" in told
    assert "test rows: " not in run(command.replace("far.csv", "new.csv")).stderr
    strict = f"{command} --categorical shop --strict --save m.apex"
    assert "error: test rows: column 'amount'" in run(strict, code=2).stderr
    assert not Path("m.apex").exists()
    run(strict.replace("far.csv", "new.csv"))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers(folder):
    first, second, other = (
        json.loads(run(f"compare train.csv --target fraud --id case --json --seed {seed} {QUICK}").stdout)
        for seed in (1, 1, 2)
    )
    assert first["measures"] == second["measures"] != other["measures"]
    assert first["verdict"] == second["verdict"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--report r.txt", "a report is an HTML file: call it 'r.html'"),
        ("--report no/r.html", "there is no folder"),
        ("--save no/m.apex", "there is no folder"),
        ("--save train.csv", "train.csv"),
        ("-p 1,two", "-p takes numbers separated by commas, such as 1,4,16, got '1,two'"),
        ("-p 0.5", "-p takes numbers of at least 1, got 0.5"),
        ("-p nan", "-p takes numbers of at least 1, got nan"),
        ("--models best", "unknown --models 'best'"),
        ("--folds 1", "--folds must"),
        ("--folds 4000", "--folds is 4,000, but one class has"),
        ("--folds 4000 --time hour", "use at most 300 folds"),
        ("--repeats 0", "--repeats must"),
        ("--top 0", "--top must be above 0 and at most a third of the rows, got '0'"),
        ("--top many", "--top must be a number of rows such as 100 or a share such as 1%, got 'many'"),
        ("--top 10 --fpr 0.1", "are alternatives: give one of them"),
        ("--fpr 2", "--fpr must be a share between 0 and 1, got 2.0"),
        ("--seed -1", "--seed must"),
        ("--confidence 2", "--confidence must be between 0.5 and 0.9999, got 2"),
        ("--time nope", "nope"),
        ("--group-split nope", "nope"),
        ("--time comment", "write times as numbers or dates such as 2024-12-31"),
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
    result = run(f"compare train.csv --test train.csv --target fraud --id case {QUICK}")
    assert "The test rows are training rows, so these results say nothing about new rows." in result.stdout


def test_too_few_rows_are_told_before_the_work(folder):
    frame = pl.read_csv("train.csv")
    pl.concat([frame.filter(fraud=0), frame.filter(fraud=1)[:8]]).write_csv("few.csv")
    result = run(f"compare few.csv --target fraud --id case {QUICK}")
    assert result.stderr.startswith("note: too few to tell rankers apart (only 8 positive rows")
    assert "Too few to tell (only 8 positive rows" in result.stdout
    assert "nan" not in result.stdout


def test_a_report_is_not_written_over_the_data(folder):
    Path("train.csv").rename("train.html")
    assert "error" in run("compare train.html --target fraud --report train.html", code=2).stderr
    assert Path("train.html").read_text().startswith("case,")


def test_the_missing_extra_is_named_before_any_work(folder, monkeypatch):
    page._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = run("compare train.csv --target fraud --report r.html", code=2)
    assert result.stderr == 'error: reports need Jinja2: pip install "apexrank[report]"\n'


@pytest.fixture
def parts(folder):
    """The training table as a folder of two Parquet files."""
    frame = pl.read_csv("train.csv")
    (folder / "parts").mkdir()
    frame[:200].write_parquet("parts/1.parquet")
    frame[200:].write_parquet("parts/2.parquet")
    return folder


def test_a_folder_and_blocks_of_a_file_are_compared_on_as_the_table_is(parts):
    options = "--target fraud --models logistic,push --folds 2 --repeats 1 --json"
    whole, folder, blocks = (
        json.loads(run(f"compare {rows} {options}").stdout)
        for rows in ("train.csv", "parts", "train.csv --engine blocks")
    )
    assert whole["measures"] == folder["measures"] == blocks["measures"]
    assert whole["notes"] == folder["notes"] == blocks["notes"]


def test_of_a_folder_with_too_many_rows_some_are_drawn(parts, monkeypatch):
    monkeypatch.setattr("apexrank.comparison.compare.MOST_ROWS", 450)
    for rows in ("parts", "train.csv --engine blocks"):
        printed = run(
            f"compare {rows} --target fraud --models push --folds 2 --repeats 1 --save m.apex"
        ).output
        note = "compared on 450 of the 600 rows, drawn at random; the model learns from these"
        assert sum(note in line for line in printed.splitlines()) == 1
        assert "in all on 450 rows" in printed
        (command,) = [line for line in printed.splitlines() if line.startswith("a model of all rows: ")]
        run(command.removeprefix("a model of all rows: apexrank "))


def test_a_folder_has_a_fit_command_only_for_what_is_fitted_in_blocks(parts):
    printed = run("compare parts --target fraud --models logistic --folds 2 --repeats 1").output
    assert "* recommended" in printed
    assert "the same model" not in printed


def test_a_file_of_a_folder_that_lacks_columns_is_named(parts):
    pl.DataFrame({"x": [1.0]}).write_parquet("parts/3.parquet")
    assert "3.parquet has no column" in run("compare parts --target fraud --models logistic", code=2).output
    assert "--sep" in run("compare parts --target fraud --models logistic --sep ,", code=2).output
