"""``apexrank cluster``: the library's clusters from tables and PrefLib files, and one-line errors."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from apexrank.aggregation.kmeans import LovaszBregmanKMeans, elbow, silhouette
from apexrank.submodular import set_function
from tests.cli.running import of_verb

ITEMS = list("abcdef")
PREFLIB = """# TITLE: drinks
# ALTERNATIVE NAME 1: a
# ALTERNATIVE NAME 2: b
# ALTERNATIVE NAME 3: c
30: 1,2
20: 3,2,1
4: 1
1: 3
"""


def two_camps():
    """Seven voters near a > b > … > f, and five near the opposite."""
    rng = np.random.default_rng(2)
    best = np.arange(6.0)[::-1]
    return np.vstack([best + rng.normal(0, 0.6, (7, 6)), best[::-1] + rng.normal(0, 0.6, (5, 6))])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame(two_camps(), schema=ITEMS)
    names = pl.Series("voter", [f"v{n}" for n in range(12)])
    frame.insert_column(0, names).write_csv("scores.csv")
    Path("drinks.soi").write_text(PREFLIB)
    return tmp_path


run = of_verb("cluster")


def answer(command):
    return json.loads(run(f"{command} --json").stdout)


class TestClusters:
    def test_camps_are_found_and_voters_keep_their_names(self, folder):
        result = run("scores.csv -k 2")
        table = pl.read_csv(result.stdout.encode())
        assert table.columns == ["voter", "cluster", "divergence"]
        assert table["voter"].to_list() == [f"v{n}" for n in range(12)]
        assert table["cluster"].to_list() == [1] * 7 + [2] * 5  # the larger one is the first
        assert "the first column, 'voter', is read as the names of the voters" in result.stderr
        assert result.stderr.count("\n") == 1

    def test_options_reach_the_library(self, folder):
        found = answer("scores.csv -k 3 --f top:2 --euclidean 0.3 --n-init 2 --seed 5 --normalize zscore")
        scores = two_camps()
        scores = (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)
        model = LovaszBregmanKMeans(3, f=set_function("top", m=2), euclidean=0.3, n_init=2, random_state=5)
        model.fit(scores)
        assert found["inertia"] == pytest.approx(model.inertia_)
        assert found["silhouette"] == pytest.approx(silhouette(model, scores))
        own = model.transform(scores)[np.arange(12), model.labels_]
        assert [row["divergence"] for row in found["voters_clusters"]] == pytest.approx(own, abs=1e-12)

    def test_weights_are_repeated_rows(self, folder):
        frame = pl.read_csv("scores.csv").with_columns(n=pl.Series([2, 1, 0, 3] * 3))
        frame.write_csv("weighted.csv")
        frame.select(pl.exclude("n").repeat_by("n").explode()).write_csv("repeated.csv")
        weighted = answer("weighted.csv --weights n -k 2")
        repeated = answer("repeated.csv -k 2")
        assert weighted["inertia"] == pytest.approx(repeated["inertia"])
        assert weighted["silhouette"] == pytest.approx(repeated["silhouette"])
        for a, b in zip(weighted["clusters"], repeated["clusters"], strict=True):
            assert (a["voters"], a["order"]) == (b["voters"], b["order"])
        table = pl.read_csv(run("weighted.csv --weights n -k 2").stdout.encode())
        assert table.columns == ["voter", "n", "cluster", "divergence"]

    def test_items_in_rows(self, folder):
        turned = pl.read_csv("scores.csv").transpose(
            include_header=True, header_name="item", column_names="voter"
        )
        turned.write_csv("rows.csv")
        assert run("rows.csv -k 2 --items-in rows").stdout == run("scores.csv -k 2").stdout

    def test_long_table(self, folder):
        wide = pl.read_csv("scores.csv")
        wide.unpivot(index="voter", variable_name="doc", value_name="stars").write_csv("long.csv")
        assert run("long.csv -k 2 --long voter,doc,stars").stdout == run("scores.csv -k 2").stdout
        wide = wide.with_columns(n=pl.Series([2, 1, 0, 3] * 3))
        wide.write_csv("weighted.csv")
        wide.unpivot(index=["voter", "n"], variable_name="doc", value_name="stars").write_csv("long.csv")
        table = run("long.csv -k 2 --long voter,doc,stars --weights n").stdout
        assert table == run("weighted.csv -k 2 --weights n").stdout

    def test_preflib_orders_are_points_of_places(self, folder):
        found = answer("drinks.soi -k 2")
        assert (found["voters"], found["ballots"]) == (55, 4)
        assert [cluster["voters"] for cluster in found["clusters"]] == [34, 21]
        assert [cluster["order"] for cluster in found["clusters"]] == [list("abc"), list("cba")]
        # Borda points; items that a list leaves out share the points of the last places
        points = np.array([[2, 1, 0], [0, 1, 2], [2, 0.5, 0.5], [0.5, 0.5, 2]])
        centres = np.average(points[[0, 2]], axis=0, weights=[30, 4])
        assert found["clusters"][0]["scores"] == pytest.approx(centres)
        assert [row["count"] for row in found["voters_clusters"]] == [30, 20, 4, 1]

    def test_missing_scores_last(self, folder):
        Path("gaps.csv").write_text("a,b,c\n5,4,\n4,3,1\n1,,3\n")
        Path("full.csv").write_text("a,b,c\n5,4,4\n4,3,1\n1,1,3\n")
        assert run("gaps.csv -k 2 --missing last").stdout == run("full.csv -k 2").stdout

    def test_too_few_different_orders_is_a_note(self, folder):
        Path("two.csv").write_text("a,b\n2,1\n3,1\n1,5\n")
        result = run("two.csv -k 3")
        assert result.stderr.startswith("note: 3 clusters: only 2 of 3 clusters have rows: there are too few")
        assert "set --euclidean above 0" in result.stderr
        assert [row.split(",")[:2] for row in result.stdout.split()[1:]] == [
            ["1", "1"],
            ["2", "1"],
            ["3", "2"],
        ]


class TestOutput:
    @pytest.mark.parametrize("name", ["found.csv", "found.parquet"])
    def test_files(self, folder, name):
        shown = run(f"scores.csv -k 2 -o {name} --orders orders.csv").stdout
        frame = pl.read_csv(name) if name.endswith("csv") else pl.read_parquet(name)
        found = answer("scores.csv -k 2")
        assert frame.to_dicts() == found["voters_clusters"]
        orders = pl.read_csv("orders.csv")
        assert orders.columns == ["cluster", "rank", "item", "score"]
        for cluster in found["clusters"]:
            part = orders.filter(pl.col("cluster") == cluster["cluster"])
            assert part["rank"].to_list() == [1, 2, 3, 4, 5, 6]
            assert part["item"].to_list() == cluster["order"]
            assert part["score"].to_list() == pytest.approx(cluster["scores"])
        assert f"written: {name}, orders.csv" in shown
        assert " > ".join(found["clusters"][1]["order"][:5]) in shown
        assert "voters_clusters" not in answer(f"scores.csv -k 2 -o {name}")

    def test_person_sees_the_clusters(self, folder, monkeypatch):
        monkeypatch.setattr("apexrank.cli.output.is_terminal", lambda: True)
        shown = run("scores.csv -k 2").stdout
        assert "mean divergence" in shown
        assert "scores.csv: 12 voters, 6 items; inertia" in shown
        assert "-o FILE.csv" in shown
        assert "silhouette: near 1" in run("scores.csv --elbow 2-3").stdout

    def test_equal_means_are_ties(self, folder):
        Path("ties.csv").write_text("a,b,c\n3,1,1\n4,1,1\n")
        assert "a > b = c" in run("ties.csv -k 1 -o found.csv").stdout

    def test_a_column_of_names_may_be_called_cluster(self, folder):
        pl.read_csv("scores.csv").rename({"voter": "cluster"}).write_csv("odd.csv")
        table = pl.read_csv(run("odd.csv -k 2").stdout.encode())
        assert table.columns == ["cluster_given", "cluster", "divergence"]
        assert table["cluster_given"][3] == "v3"

    def test_elbow(self, folder):
        scores = two_camps()
        falls = elbow(scores, range(1, 5), n_init=10, random_state=0)
        found = answer("scores.csv --elbow 1-4")["elbow"]
        assert {row["clusters"]: row["inertia"] for row in found} == pytest.approx(falls)
        assert found[0]["silhouette"] is None
        assert found[1]["silhouette"] == max(row["silhouette"] for row in found[1:])
        lines = run("scores.csv --elbow 1-4").stdout.splitlines()
        assert lines[0] == "clusters,inertia,silhouette"
        run("scores.csv --elbow 1-4 -o elbow.csv")
        assert Path("elbow.csv").read_text().splitlines() == lines


BAD = {
    "none.csv -k 2": "cannot read 'none.csv'",
    "scores.xls -k 2": "cannot tell the format of 'scores.xls'",
    "scores.csv": "set the number of clusters with -k",
    "scores.csv -k 0": "-k must be at least 1",
    "scores.csv -k 13": "13 clusters are more than the 12 voters of scores.csv",
    "drinks.soi -k 5": "5 clusters are more than the 4 orders of drinks.soi",
    "scores.csv --elbow 2-13": "13 clusters are more than the 12 voters",
    "scores.csv --elbow 3": "--elbow must be a range such as 2-8, got '3'",
    "scores.csv --elbow 4-2": "--elbow must be a range",
    "scores.csv --elbow 2-4 -k 2": "leave out -k",
    "scores.csv --elbow 2-4 --orders orders.csv": "leave out --orders",
    "scores.csv -k 2 --f cut": "unknown function 'cut' for --f: use one of sqrt",
    "scores.csv -k 2 --f top": "top:3",
    "scores.csv -k 2 --f top:0": "m",
    "scores.csv -k 2 --f top:6": "--f top:6 cannot tell orders of 6 items apart",
    "scores.csv --elbow 2-3 --f top:9": "use top:5 or fewer",
    "scores.csv -k 2 --euclidean=-1": "--euclidean",
    "scores.csv -k 2 --n-init 0": "--n-init",
    "scores.csv -k 2 --id name": "no column 'name'",
    "scores.csv -k 2 --id a": "scores.csv column 'voter' holds text such as 'v0'",
    "gaps.csv -k 2": "gaps.csv line 3, column 'c': the score of 'c' is missing (2 scores in all)",
    "gaps.csv -k 2 --items-in rows --id voter --drop d": "gaps.csv line 4, column 'b': the score of '3' is missing",
    "long.csv -k 2 --long v,i,s": "long.csv, voter '2': the score of 'b' is missing (1 scores in all), and clusters",
    "long.csv -k 2 --long v,i,s --weights w --kind ranks": "add a row with it, or put it last (--missing last)",
    "again.csv -k 2 --long v,i,s": "again.csv line 3: voter '1' has a row for 'a' already",
    "drinks.soi -k 2 --missing ignore": "drinks.soi order 1: the score of 'c' is missing (5 scores in all)",
    "scores.csv -k 2 --missing first": "unknown --missing 'first': use one of ignore, last",
    "scores.csv -k 2 --normalize loud": "unknown --normalize 'loud'",
    "scores.csv -k 2 --points dcg": "--points are for --kind ranks and orders",
    "scores.csv -k 2 --drop b,c,d,e,f": "scores.csv: there is only one item",
    "zero.csv -k 2 --weights w": "zero.csv: weights are all zero",
    "scores.csv -k 2 -o scores.csv": "also an input",
    "scores.csv -k 2 --orders scores.csv": "also an input",
    "scores.csv -k 2 -o kept.csv --orders kept.csv": "two outputs have the same name 'kept.csv'",
    "scores.csv -k 2 --orders kept.xls": "cannot tell the format of 'kept.xls'",
}


@pytest.mark.parametrize("command", BAD)
def test_bad_input_is_one_line_and_writes_nothing(folder, command):
    Path("gaps.csv").write_text("voter,a,b,c,d\n1,1,5,2,3\n2,3,2,,1\n3,1,,3,4\n")
    Path("zero.csv").write_text("a,b,w\n1,2,0\n2,1,0\n")
    Path("kept.csv").write_text("voter,cluster\nold,1\n")
    Path("scores.xls").write_text("not read")
    Path("long.csv").write_text("v,i,s,w\n1,a,1,1\n1,b,2,1\n2,a,1,3\n3,a,1,1\n3,b,1,1\n")
    Path("again.csv").write_text("v,i,s\n1,a,1\n1,a,2\n2,b,1\n")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = run(command if "-o" in command.split() else f"{command} -o kept.csv", code=2)
    assert result.output.startswith("error: ")
    assert result.output.count("\n") == 1
    assert BAD[command] in result.output
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
