"""``apexrank aggregate`` and ``cluster`` on folders and with ``--engine blocks``: the same results as in memory."""

import json
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from apexrank.cli.app import app


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    scores = rng.integers(1, 6, (60, 4)) + rng.permuted(np.tile([0, 2, 4, 6], (60, 1)), axis=1)
    frame = pl.DataFrame(scores, schema=["tea", "rum", "ale", "gin"])
    names = pl.Series("voter", [f"v{number}" for number in range(60)])
    frame = frame.insert_column(0, names).with_columns(count=pl.Series(rng.integers(1, 4, 60)))
    frame.write_csv("votes.csv")
    Path("votes").mkdir()
    for number, part in enumerate(frame.iter_slices(25)):
        part.write_parquet(f"votes/{number}.parquet")
    long = frame.unpivot(index=["voter", "count"], variable_name="drink", value_name="stars")
    long.sort("voter", maintain_order=True).write_csv("long.csv")
    long.write_csv("apart.csv")
    return tmp_path


def run(command, code=0):
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == code, result.output
    return result


def told(command):
    return json.loads(run(f"{command} --json").stdout)


FORMS = ["votes", "votes.csv --engine blocks", "long.csv --engine blocks --long voter,drink,stars"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "rest", ["--method kemeny", "--compare all", "--normalize zscore", "--min-support 2"]
)
def test_a_ranking_is_that_in_memory(form, rest):
    here, there = (told(f"aggregate {each} --weights count {rest}") for each in ("votes.csv", form))
    name = "ranking" if "ranking" in here else "ranks"
    here, there = ({row.pop("item"): row for row in each[name]} for each in (here, there))
    assert there.keys() == here.keys()
    assert all(there[item] == pytest.approx(here[item], rel=1e-12) for item in here)


def test_what_is_told_of_ballots_in_blocks():
    here, there = (told(f"aggregate {each} --weights count") for each in ("votes.csv", "votes"))
    for name in ("ballots", "voters", "items", "missing", "confidence", "ties"):
        assert there[name] == pytest.approx(here[name]), name
    assert there["agreement"] is None  # which would take another pass
    run("aggregate votes --weights count --pairwise a.csv -o ranks.csv")
    run("aggregate votes.csv --weights count --pairwise b.csv")
    assert Path("a.csv").read_text() == Path("b.csv").read_text()


def test_intervals_of_a_folder():
    found = told("aggregate votes --weights count --bootstrap 50 --seed 3")
    assert all(1 <= row["low"] <= row["high"] <= 4 for row in found["ranking"])
    assert found == told("aggregate votes --weights count --bootstrap 50 --seed 3") | {
        "seconds": found["seconds"]
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_clusters_are_those_in_memory(form, suffix):
    one = run(f"cluster votes.csv --weights count -k 3 -o here.{suffix} --orders a.csv").stdout
    two = run(f"cluster {form} --weights count -k 3 -o there.{suffix} --orders b.csv").stdout
    assert one.partition("votes.csv:")[0] == two.partition(f"{form.split()[0]}:")[0]
    read = pl.read_parquet if suffix == "parquet" else pl.read_csv
    here, there = (read(f"{name}.{suffix}").sort("voter") for name in ("here", "there"))
    assert there["cluster"].to_list() == here["cluster"].to_list()
    np.testing.assert_allclose(there["divergence"], here["divergence"], rtol=1e-12)
    a, b = pl.read_csv("a.csv"), pl.read_csv("b.csv")
    assert a["item"].to_list() == b["item"].to_list()
    np.testing.assert_allclose(b["score"], a["score"], rtol=1e-12)


def test_clusters_on_the_screen_and_an_elbow():
    here, there = (told(f"cluster {each} --weights count -k 2") for each in ("votes.csv", "votes"))
    assert [row["cluster"] for row in there["voters_clusters"]] == [
        r["cluster"] for r in here["voters_clusters"]
    ]
    assert there["silhouette"] == pytest.approx(here["silhouette"])
    printed = [
        run(f"cluster {each} --weights count -k 2").stdout.splitlines() for each in ("votes.csv", "votes")
    ]
    assert len(printed[1]) == len(printed[0]) == 61
    elbows = [told(f"cluster {each} --weights count --elbow 1-3")["elbow"] for each in ("votes.csv", "votes")]
    for one, two in zip(*elbows, strict=True):
        assert two == pytest.approx(one)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("aggregate votes --report page.html", "--report shows individual voters, which blocks do not keep"),
        ("aggregate votes --figure a.png", "--figure shows individual voters, which blocks do not keep"),
        (
            "aggregate votes --method median --bootstrap 9",
            "--bootstrap of medians needs all ballots in memory",
        ),
        (
            "aggregate votes.csv --engine blocks --sep ;",
            "--engine reads UTF-8 files only: leave out --encoding and --sep",
        ),
        ("aggregate votes.csv --engine dask", "unknown --engine 'dask': use one of blocks"),
        (
            "aggregate votes --items-in rows",
            "blocks of voters need one row per voter: leave out --items-in rows",
        ),
        ("aggregate votes --weights cuont", "has no column 'cuont'; did you mean 'count'?"),
        ("aggregate votes -o votes/0.parquet", "the output 'votes/0.parquet' is also an input"),
        (
            "aggregate apart.csv --engine blocks --long voter,drink,stars",
            "line 62: voter 'v0' has rows further up",
        ),
        ("aggregate some.soc --engine blocks", "cannot read 'some.soc' in blocks"),
        ("cluster votes -k 61", "61 clusters are more than the 60 voters of votes"),
        (
            "cluster gaps --weights count -k 2",
            "gaps/0.parquet row 2, column 'rum': the score of 'rum' is missing",
        ),
    ],
)
def test_what_blocks_cannot_do(command, message):
    Path("some.soc").write_text("# TITLE: x\n")
    Path("gaps").mkdir()
    gap = pl.when(pl.col("voter") == "v1").then(None).otherwise(pl.col("rum")).alias("rum")
    pl.read_parquet("votes/0.parquet").with_columns(gap).write_parquet("gaps/0.parquet")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    result = run(command, 2)
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
