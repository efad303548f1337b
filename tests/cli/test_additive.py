"""``--model curves`` on the command line: output and errors."""

import json
import shlex

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import apexrank
from apexrank.cli.app import app

FIT = "fit train.csv --target fraud --model curves --alpha 0.01"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Payments with gaps, text, a constant and an empty column."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    amount, age, city = (
        rng.gamma(2, 50, 300).round(2),
        rng.integers(18, 80, 300),
        rng.choice(["Oslo", "Rome"], 300),
    )
    risk = np.log1p(amount) + np.abs(age - 45) / 15 + (city == "Oslo") + rng.logistic(size=300)
    frame = pl.DataFrame(
        {"amount": amount, "age": age, "city": city, "constant": 7, "empty": ""}
    ).with_columns(
        amount=pl.when(pl.int_range(300) % 9 > 0).then("amount"),
        query=pl.int_range(300) // 30,
        fraud=pl.Series((risk > np.quantile(risk, 0.7)).astype(int)),
    )
    frame[:200].write_csv("train.csv")
    frame[200:].write_csv("new.csv")
    return tmp_path


def run(command, code=0):
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == code, result.output
    return result


def test_the_effect_of_each_column_is_printed(folder):
    result = run(f"{FIT} --drop query --knots 8 --pairs 1 --monotone amount=+ -o m.apex")
    assert (
        "AdditiveRanker(alpha=0.01, n_knots=8, n_pairs=1, monotonic_cst={'amount': 1}): conv" in result.stdout
    )
    assert "an effect is the standard deviation of what a column adds to the scores" in result.stdout
    assert " × " in result.stdout  # the pair
    for name in ("amount", "age", "city"):
        assert f"\n  {name} " in result.stdout
    estimator = apexrank.load("m.apex").estimator
    assert (estimator.n_knots, estimator.n_pairs, estimator.monotonic_cst) == (8, 1, {"amount": 1})
    report = json.loads(run(f"{FIT} --drop query --json").stdout)
    assert list(report["effects"]) == ["amount", "age", "city"]
    assert report["effects"]["age"] > 0
    assert "coefficients" not in report


def test_rank_evaluate_and_probabilities(folder):
    run(f"{FIT} --drop query --pairs 1 --calibrate -o m.apex")
    rows = json.loads(run("rank m.apex new.csv --top 5 --explain --json").stdout)["ranking"]
    assert len(rows) == 5
    assert all(0 < row["probability"] < 1 for row in rows)
    assert rows[0]["why_1"].partition("=")[0] in ("amount", "age", "city")
    assert "AUC" in run("evaluate m.apex new.csv").stdout


def test_without_alpha_every_curve_has_its_strength(folder):
    options = "--drop query --model curves --knots 5 --monotone amount=+ --json"
    report = json.loads(run(f"fit train.csv --target fraud {options}").stdout)
    assert report["estimator"] == "AdditiveRanker"
    assert report["params"]["monotonic_cst"] == {"amount": 1}
    ranker = apexrank.load("model.apex").estimator
    assert len(ranker.strength_) == len(ranker.shapes_) + len(ranker.pairs_)
    assert len(ranker.shapes_[0].knots) == 5
    assert (np.diff(ranker.shapes_[0].values) >= 0).all()


def test_grades(folder):
    command = "fit train.csv --target fraud --groups query --drop city,empty,constant"
    report = json.loads(run(f"{command} --model curves-retarget --knots 5 --monotone amount=+ --json").stdout)
    assert report["estimator"] == "AdditiveRetargeting"
    assert list(report["effects"]) == ["amount", "age"]
    chosen = json.loads(run(f"{command} --model curves-retarget --cv --folds 2 --json").stdout)
    assert chosen["cv"]["chosen"] == "alpha"


def test_columns_of_no_use_are_named(folder):
    result = run(f"{FIT} --drop query")
    assert "'constant' (one value only)" in result.stderr
    assert "'empty' (no values)" in result.stderr
    refused = run(f"{FIT} --drop query --features all,empty", code=2).stderr
    assert (
        refused == "error: train.csv column 'empty' cannot be used (no values): leave it out (--drop empty)\n"
    )
    refused = run(f"{FIT} --features constant", code=2).stderr
    assert "no column left to use as a feature" in refused
    refused = run(f"{FIT} --drop query --monotone constant=+", code=2).stderr
    assert "--monotone names the column 'constant'" in refused


def test_infinite_numbers_are_refused(folder):
    text = (folder / "train.csv").read_text().splitlines()
    text[3] = "inf" + text[3][text[3].index(",") :]
    (folder / "inf.csv").write_text("\n".join(text) + "\n")
    result = run(FIT.replace("train.csv", "inf.csv"), code=2)
    assert result.stderr.startswith("error: inf.csv line 4, column 'amount'")
    assert result.stderr.count("\n") == 1
    run(f"{FIT} --drop query -o m.apex")
    assert "inf.csv line 4, column 'amount'" in run("rank m.apex inf.csv", code=2).stderr


def test_values_that_training_had_not(folder):
    run(f"{FIT} --drop query -o m.apex")
    (folder / "odd.csv").write_text("amount,age,city\n1e12,30,Oslo\n7,,\n5,-3,Atlantis\n")
    result = run("rank m.apex odd.csv --explain --json")
    ranking = json.loads(result.stdout)["ranking"]
    assert sorted(row["row"] for row in ranking) == [1, 2, 3]
    assert "'age' has 1 missing value, but training had few or none" in result.stderr
    assert "'Atlantis'" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            "--model curves --monotone amount",
            "--monotone takes each column once, with + or -, such as a=+,b=-",
        ),
        ("--model curves --monotone amount=up", "got 'amount=up'"),
        ("--model curves --monotone =+", "got '=+'"),
        ("--model curves --monotone age=+,age=-", "got 'age=-'"),
        ("--model curves --monotone city=+", "column 'city'"),
        ("--model curves --monotone nope=+", "column 'nope'"),
        ("--model curves --monotone fraud=+", "column 'fraud'"),
        (
            "--model curves --engine blocks",
            "--engine fits linear models only: other models need the table in memory",
        ),
        ("--model curves-retarget --engine blocks", "--engine fits linear models only"),
        ("--model curves-retarget --positive 1", "takes grades of relevance"),
        ("--model push --knots 5", "--model push has no --knots: leave it out"),
        ("--model trees --pairs 5", "--model trees has no --pairs: leave it out"),
        ("--model logistic --monotone age=+", "--model logistic has no --monotone: leave it out"),
        (
            "--model ir --cv",
            "listwise, pairs, not for ir: leave it out, or use compare",
        ),
        ("--model curves --cv", "pairs, not for curves: leave it out, or use compare"),
        ("--model curves-retarget --cv --alpha 0.1", "--cv chooses alpha"),
        ("--model curves --l1-ratio 0.5", "--model curves has no --l1-ratio: leave it out"),
        ("--model curves --leaves 5", "--model curves has no --leaves: leave it out"),
        ("--model curves --knots 1", "--knots"),
        ("--model curves --pairs -1", "--pairs"),
        ("--model curves --impute none", "column 'amount': the value is missing"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(folder, options, words):
    result = run(f"fit train.csv --target fraud {options}", code=2)
    assert words in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert not (folder / "model.apex").exists()
