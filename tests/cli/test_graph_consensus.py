"""``apexrank graph consensus``: the library's ranks, and one-line errors."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from apexrank import ConsensusRank
from apexrank.cli.app import app

MON = [("a", "b"), ("b", "a"), ("c", "a"), ("d", "a")]
TUE = [("a", "b"), ("b", "c"), ("c", "a")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, edges in (("mon", MON), ("tue", TUE)):
        (tmp_path / f"{name}.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in edges))
    rows = [(a, b, day) for day, edges in (("mon", MON), ("tue", TUE)) for a, b in edges]
    lines = (",".join([*row, "same"]) + "\n" for row in rows)
    (tmp_path / "all.csv").write_text("source,target,day,one\n" + "".join(lines))
    (tmp_path / "weights.csv").write_text("source,target,day,weight\na,b,1,2.5\nb,a,2,x\n")
    (tmp_path / "minus.csv").write_text("source,target,weight\na,b,1\nb,a,-1\n")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["graph", "consensus", *map(str, arguments)])


def expected(**options):
    layers = {
        name: tuple(map(list, zip(*edges, strict=True))) for name, edges in (("mon", MON), ("tue", TUE))
    }
    return ConsensusRank(**options).fit(layers)


@pytest.mark.parametrize(
    "files", [["mon.csv", "tue.csv"], ["all.csv", "--label", "day"]], ids=["files", "label"]
)
def test_writes_what_the_library_finds(folder, files):
    answer = run(*files, "-o", "ranks.csv")
    assert answer.exit_code == 0, answer.output
    table, rank = pl.read_csv(folder / "ranks.csv"), expected()
    assert table["vertex"].to_list() == rank.ranking_.tolist()
    order = [rank.names_.tolist().index(name) for name in table["vertex"]]
    np.testing.assert_allclose(table["score"], rank.scores_[order], atol=1e-12)
    np.testing.assert_allclose(table["weight_mon"], rank.layer_weights_[order, 0], atol=1e-9)
    np.testing.assert_allclose(table["disagreement"], rank.vertex_disagreement_[order], atol=1e-9)
    assert f"union: disagreement {rank.disagreement_:.4g} nats" in answer.output
    assert "converged" in answer.output


def test_advice_about_orders_that_cannot_be_kept_names_the_options(folder):
    answer = run("mon.csv", "tue.csv", "--method", "blend", "--keep", "d>a")
    assert answer.exit_code == 0
    assert "Remove orders, raise --restarts, or lower --damping." in answer.stderr
    assert "n_restarts" not in answer.stderr


def test_json_has_certificates_and_options_reach_the_library(folder):
    options = ("--method", "blend", "--pull", 0.5, "--damping", 0.7, "--prior", "tue=3,mon=1")
    answer = run("mon.csv", "tue.csv", "--json", *options)
    found = json.loads(answer.output)
    layers = [tuple(map(list, zip(*edges, strict=True))) for edges in (MON, TUE)]
    rank = ConsensusRank("blend", pull=0.5, damping=0.7).fit(layers, layer_prior=[1, 3])
    assert found["disagreement"] == pytest.approx(rank.disagreement_, abs=1e-12)
    assert [layer["opinions"] for layer in found["layers"]] == [4, 3]
    assert found["layers"][0]["share"] == pytest.approx(rank.layer_shares_[0], abs=1e-9)
    assert found["converged"]
    assert found["first_order_gap"] <= 1e-8
    assert found["stationarity"] <= 1e-8
    assert [row["vertex"] for row in found["ranking"]] == rank.ranking_.tolist()


def test_newest_file_last(folder):
    answer = json.loads(run("mon.csv", "tue.csv", "--half-life", 0.5, "--json").output)
    rank = expected(half_life=0.5)
    assert [row["score"] for row in answer["ranking"]] == pytest.approx(sorted(rank.scores_, reverse=True))
    assert rank.scores_ != pytest.approx(expected().scores_)


def test_outlying_files_are_left_out_and_named(folder):
    (folder / "spam.csv").write_text("source,target\n" + "".join(f"{name},d\n" for name in "abc"))
    (folder / "wed.csv").write_text((folder / "mon.csv").read_text())
    files = ("mon.csv", "tue.csv", "wed.csv", "spam.csv", "--trim", 3)
    for shown in ([], ["-o", "ranks.csv"], ["--json"]):
        assert run(*files, *shown).stderr == "note: left out as outliers: spam\n"
    found = json.loads(run(*files, "--json").stdout)
    assert found["left_out"] == ["spam"]
    assert found["layers"][3]["share"] == 0
    refused = run(*files[:-1], 0.5)
    assert refused.exit_code == 2
    assert "--trim must be" in refused.output


def test_trimming_two_layers_leaves_out_one_only_by_the_prior_weights(folder):
    nothing = "note: --trim left out nothing: neither of two layers of equal prior weight is an outlier\n"
    assert run("mon.csv", "tue.csv", "--trim", 1).stderr == nothing
    weighted = run("mon.csv", "tue.csv", "--trim", 1, "--prior", "mon=1,tue=3")
    assert weighted.stderr == "note: left out as outliers: mon\n"


@pytest.mark.parametrize(
    ("files", "remedy"),
    [
        (["mon.csv", "odd.csv"], ["--source", 0, "--target", 1]),
        (["mon.csv", "odd.jsonl"], None),
        (["odd.csv", "--label", "day"], ["--source", "page", "--target", "link"]),
    ],
    ids=["csv", "jsonl", "label"],
)
def test_guessed_columns_of_layers_are_notes_or_errors(folder, files, remedy):
    rows = [(a, b, day, 1) for day in ("x", "y") for a, b in TUE]
    table = pl.DataFrame(rows, schema=["page", "link", "day", "amount"], orient="row")
    table.write_csv("odd.csv")
    table.write_ndjson("odd.jsonl")
    odd, day = next(name for name in files if "odd" in name), "" if "--label" in files else "'day', "
    told = f"{odd}: links go from 'page' to 'link'; not used: {day}'amount' "
    told += "(--source, --target and --weight choose)"
    assert run(*files).stderr == f"note: {told}\n"
    refused = run(*files, "--strict", "-o", "ranks.csv")
    assert refused.stderr == f"error: {told} (--strict)\n"
    assert not (folder / "ranks.csv").exists()
    if remedy is not None:
        assert run(*files, *remedy, "--strict").exit_code == 0


def test_orders_to_keep_and_top(folder):
    def ranks(*options):
        rows = [
            row.split(",")
            for row in run("mon.csv", "tue.csv", "--method", "blend", *options).output.splitlines()
        ]
        return {row[1]: float(row[2]) for row in rows[1:] if row[0].isdigit()}

    assert ranks()["c"] > ranks()["d"] + 0.01
    kept = ranks("--keep", "d>c")  # b leaves the layer in which it links to c
    assert kept["d"] >= kept["c"] - 1e-6
    assert (
        "break an order" in run("mon.csv", "tue.csv", "--method", "blend", "--keep", "d>b").output
    )  # a links to b whatever the weight
    assert len(ranks("--top", 3)) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mon.csv"], "one file is one layer"),
        (["mon.csv", "tue.csv", "--label", "day"], "give one file"),
        (["all.csv", "--label", "week"], "no column 'week'"),
        (["mon.csv", "none.csv"], "none.csv"),
        (
            ["mon.csv", "tue.csv", "--method", "best"],
            "'union', 'mean', 'median', 'corroborate', 'blend', 'fixed-point', 'brew'",
        ),
        (
            ["mon.csv", "tue.csv", "--pull", "1"],
            "--pull and --entropy need --method blend or --method fixed-point",
        ),
        (["mon.csv", "tue.csv", "--half-life", "0"], "--half-life must be"),
        (["mon.csv", "tue.csv", "--prior", "mon"], "--prior must be weights"),
        (["mon.csv", "tue.csv", "--prior", "mon=1"], "--prior must have a weight for each of mon, tue"),
        (["mon.csv", "tue.csv", "--keep", "a"], "--keep must be one order"),
        (["mon.csv", "tue.csv", "--keep", "a>x"], "'x' is not in the graph"),
        (["mon.csv", "tue.csv", "--keep", "a>b>c"], "--keep must be one order"),
        (["mon.csv", "tue.csv", "--beta", "0.2"], "--beta is for --method brew"),
        (["mon.csv", "tue.csv", "--temperature", "0.2"], "--temperature is for --method corroborate"),
        (["mon.csv", "tue.csv", "--restarts", "-1"], "--restarts must be"),
        (
            ["mon.csv", "tue.csv", "--method", "mean", "--keep", "a>b"],
            "error: --keep needs --method blend with a finite --pull",
        ),
        (["mon.csv", "tue.csv", "--keep", "a>a"], "error: --keep: a pair has 'a' twice"),
        (["all.csv", "--label", "one"], "has only one layer"),
        (
            ["weights.csv", "--label", "day"],
            "weights.csv line 3, column 'weight': the weight 'x' is not a number",
        ),
        (
            ["minus.csv", "tue.csv"],
            "remove it, or read the graph with graph rank --signed if negative weights are distrust",
        ),
        (["mon.csv", "tue.csv", "--damping", "1"], "damping"),
        (["mon.csv", "tue.csv", "--repeated", "often"], "--repeated"),
        (["mon.csv", "tue.csv", "-o", "mon.csv"], "also an input"),
        (["mon.csv", "tue.csv", "-o", "ranks.xls"], "ranks.xls"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_writes_nothing(folder, arguments, words):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    output = [] if "-o" in arguments else ["-o", "ranks.csv"]
    answer = run(*arguments, *output)
    assert answer.exit_code == 2
    assert answer.output.startswith("error: ")
    assert answer.output.count("\n") == 1
    assert words in answer.output
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
