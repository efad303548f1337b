"""``apexrank graph``: options, output and errors."""

import json
import re
import shlex
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from apexrank import LpqRank
from apexrank.cli.app import app
from apexrank.cli.graph import METHODS
from apexrank.graph import FairnessGoodness, InDegree, as_graph
from apexrank.graph.vertex_files import read_seeds
from tests.cli.running import run

# three honest pages in a ring, and a farm of eight boosters
LINKS = [("hub", "a"), ("a", "b"), ("b", "hub"), *((booster, "farm") for booster in "stuvwxyz")]
EDGES = "source,target\n" + "".join(f"{a},{b}\n" for a, b in LINKS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text(EDGES)
    Path("good.txt").write_text("# checked by hand\n\nhub\n")
    Path("bad.txt").write_text("farm\n")
    return tmp_path


def ranked(command):
    return json.loads(run(f"graph rank {command} --json").stdout)


def scores(answer):
    return {row["vertex"]: row["score"] for row in answer["ranking"]}


class TestRank:
    def test_a_farm_wins_pagerank_and_loses_lpq(self, folder):
        assert ranked("edges.csv --method pagerank --top 1")["ranking"][0]["vertex"] == "farm"
        assert [row["vertex"] for row in ranked("edges.csv -p 2 --top 4")["ranking"]] == [
            "a",
            "b",
            "hub",
            "farm",
        ]
        assert ranked("edges.csv")["estimator"] == "GuardedPageRank"

    def test_scores_are_those_of_networkx(self, folder):
        answer = ranked("edges.csv --method pagerank --damping 0.7 --tol 1e-12")
        expected = nx.pagerank(nx.DiGraph(LINKS), alpha=0.7, tol=1e-15, max_iter=1000)
        assert scores(answer) == pytest.approx(expected, abs=1e-11)
        assert answer["error_bound"] <= 1e-12
        assert answer["converged"]
        assert [row["rank"] for row in answer["ranking"]] == list(range(1, 13))

    def test_csv_for_programs_and_nothing_else(self, folder):
        result = run("graph rank edges.csv -p 2 --top 2")
        lines = result.stdout.splitlines()
        assert lines[0] == "rank,vertex,score"
        assert [line.split(",")[:2] for line in lines[1:]] == [["1", "a"], ["2", "b"]]
        assert not result.stderr

    @pytest.mark.parametrize("name", ["ranks.csv", "ranks.parquet"])
    def test_files(self, folder, name):
        shown = run(f"graph rank edges.csv -p 2 --top 3 -o {name}").stdout
        assert (
            "edges.csv: 12 vertices, 11 edges; LpqRank(p=2, ratio=1.2, damping=0.85): converged after"
            in shown
        )
        assert "(L1); read in" in shown
        assert f"written: {name}, 3 of 12 vertices, best first\n" in shown
        frame = pl.read_csv(name) if name.endswith("csv") else pl.read_parquet(name)
        assert frame.columns == ["rank", "vertex", "score"]
        assert frame["vertex"].to_list() == ["a", "b", "hub"]
        assert frame["score"].to_list() == [
            row["score"] for row in ranked("edges.csv -p 2 --top 3")["ranking"]
        ]

    def test_equals_keep_the_order_of_the_vertices(self, folder):
        last = [row["vertex"] for row in ranked("edges.csv")["ranking"]][4:]
        assert last == list("stuvwxyz")

    def test_json_with_a_file_has_no_ranking(self, folder):
        answer = ranked("edges.csv -p inf -o ranks.csv")
        assert (answer["rows"], answer["output"], answer["params"]["p"]) == (12, "ranks.csv", "inf")
        assert "ranking" not in answer

    def test_person_sees_a_table_and_the_certificate(self, folder, monkeypatch):
        monkeypatch.setattr("apexrank.cli.output.is_terminal", lambda: True)
        shown = run("graph rank edges.csv").stdout
        assert "rank   vertex" in shown
        assert "error at most" in shown.splitlines()[-1]

    def test_in_degree_counts(self, folder):
        answer = ranked("edges.csv --method indegree")
        assert scores(answer)["farm"] == pytest.approx(8 / 11)
        assert answer["steps"] is None
        shown = run("graph rank edges.csv --method indegree -o r.csv").stdout
        assert "InDegree(); read in" in shown

    def test_not_converging_is_a_note(self, folder):
        result = run("graph rank edges.csv -p 2 --max-iter 2 -o r.csv")
        assert result.stderr.startswith("note: not converged after 2 steps")
        assert "stopped after 2 steps" in result.stdout
        assert Path("r.csv").exists()

    def test_explain(self, folder):
        answer = ranked("edges.csv --method pagerank --explain farm --explain a")
        links = answer["explain"]["farm"]
        assert sum(link["share"] for link in links) == pytest.approx(1)
        assert {link["source"] for link in links} == {None, *"stuvwxyz"}
        total = sum(link["flow"] for link in answer["explain"]["a"])
        assert total == pytest.approx(scores(answer)["a"], abs=1e-8)
        shown = run("graph rank edges.csv --explain a").stdout
        assert "into a from" in shown
        assert "(teleport)" in shown
        assert "error at most" in shown
        told = ranked("edges.csv --keep 0 --explain farm --explain a")["explained"]
        assert told["farm"].startswith("the guard ")
        shown = run("graph rank edges.csv --keep 0 --explain farm").stdout
        assert f"farm: links that make up {told['farm']}\n" in shown
        assert "(teleport and first 2 steps)" in shown

    def test_scores_of_spam_mass_are_told(self, folder):
        shown = run("graph rank edges.csv --method spam-mass --trusted good.txt -o r.csv").stdout
        assert "so -1 points to spam, 0 and above to good vertices" in shown

    @pytest.mark.parametrize("method", METHODS)
    def test_every_method(self, folder, method):
        file = {"trusted": " good.txt", "distrusted": " bad.txt", "signed": ""}
        needs = " ".join(f"--{what}{file[what]}" for what in METHODS[method].needs)
        edges = "rated.csv" if "--signed" in needs else "edges.csv"
        Path("rated.csv").write_text(
            "source,target,rating\n" + "".join(f"{a},{b},{1 - 2 * (b == 'farm')}\n" for a, b in LINKS)
        )
        answer = ranked(f"{edges} --method {method} {needs}")
        assert answer["method"] == method
        assert len(answer["ranking"]) == 12
        assert answer["estimator"] in run(f"graph rank {edges} --method {method} {needs} -o r.csv").stdout

    def test_spam_mass_is_a_column(self, folder):
        rows = {
            row["vertex"]: row for row in ranked("edges.csv --method spam-mass --trusted good.txt")["ranking"]
        }
        assert rows["farm"]["absolute_mass"] == pytest.approx(rows["farm"]["pagerank"])
        assert rows["farm"]["score"] == -1
        assert rows["hub"]["absolute_mass"] < 0

    def test_parameters_of_the_peers(self, folder):
        assert ranked("edges.csv --method nonbacktracking --truncate 3")["params"]["truncate"] == 3
        assert ranked("edges.csv --method robust --cap 0.5 --tol 1e-6")["error_bound"] <= 1e-6


class TestLabels:
    def test_trust_and_distrust_are_columns(self, folder):
        answer = ranked("edges.csv --trusted good.txt --distrusted bad.txt --gamma 0.5 --neutral 0.25")
        row = {row["vertex"]: row for row in answer["ranking"]}
        assert row["farm"]["distrust"] > 0
        assert row["farm"]["score"] == 0
        assert [row[name]["trust"] for name in ("hub", "a", "b")] == pytest.approx(
            [8 / 7, 4 / 7, 2 / 7], abs=1e-8
        )
        # a page that links to spam shares its distrust with seven others
        assert row["s"]["distrust"] == pytest.approx(0.5 / 8)
        assert answer["params"]["gamma"] == 0.5

    def test_the_certificate_is_that_of_the_links(self, folder):
        command = "graph rank edges.csv --trusted good.txt --distrusted bad.txt"
        assert "(L1) before labels; read" in run(f"{command} -o r.csv").stdout
        assert "(L1); read" in run("graph rank edges.csv -o r.csv").stdout
        assert json.loads(run(f"{command} --json").stdout)["error_bound_is_before_labels"]

    def test_with_distrust_alone_the_others_are_trusted(self, folder):
        done = run("graph rank edges.csv --distrusted bad.txt --json")
        assert not done.stderr
        answer = json.loads(done.stdout)["ranking"]
        bad = {line for line in Path("bad.txt").read_text().split() if line}
        assert {row["vertex"] for row in answer if row["distrust"] >= 1} == bad
        assert all(row["trust"] > 0 for row in answer if row["vertex"] not in bad)

    def test_direction_of_distrust(self, folder):
        row = {
            row["vertex"]: row for row in ranked("edges.csv --distrusted bad.txt --distrust along")["ranking"]
        }
        assert row["s"]["distrust"] == 0
        command = "edges.csv --method anti-trustrank --distrusted bad.txt"
        assert ranked(f"{command} --distrust along")["params"]["direction"] == "along"
        assert scores(ranked(command))["s"] < 0

    def test_weights_of_seeds(self, folder):
        Path("seeds.csv").write_text('vertex,weight\n"hub",3\n# not this one\na,1\n')
        found = scores(ranked("edges.csv --method trustrank --trusted seeds.csv --damping 0.5"))
        seeds = {"hub": 0.75, "a": 0.25}
        expected = nx.pagerank(nx.DiGraph(LINKS), alpha=0.5, personalization=seeds, tol=1e-14, max_iter=1000)
        assert found == pytest.approx(expected, abs=1e-8)

    def test_teleport(self, folder):
        found = scores(ranked("edges.csv --method pagerank --teleport bad.txt"))
        assert found["farm"] == pytest.approx(1)

    @pytest.mark.parametrize("place", ["inside", "outside", "weak-links"])
    def test_place_of_the_teleport(self, folder, place):
        answer = ranked(f"edges.csv -p 3 --teleport-as {place} --teleport good.txt")
        assert answer["params"]["teleport"] == place
        expected = LpqRank(3, teleport=place).fit(tuple(zip(*LINKS, strict=True)), teleport=["hub"])
        assert scores(answer) == pytest.approx(dict(zip(expected.names_, expected.scores_, strict=True)))

    def test_the_place_of_the_teleport_is_said_if_chosen(self, folder):
        said = run("graph rank edges.csv --output out.csv --teleport-as weak-links").stdout
        assert "LpqRank(p=2, ratio=1.2, damping=0.85, teleport=weak-links): converged" in said
        assert "teleport=" not in run("graph rank edges.csv --output out.csv").stdout

    def test_seed_files(self, folder):
        Path("names.txt").write_text("\ufeffa page, with commas\n  b \r\n#c\n\n", encoding="utf-8")
        assert read_seeds(Path("names.txt")) == [(1, "a page, with commas", 1.0), (2, "b", 1.0)]
        Path("names.csv").write_text('Vertex\n"x, y"\n')
        assert read_seeds(Path("names.csv")) == [(2, "x, y", 1.0)]

    def test_seeds_of_numbered_vertices(self, folder):
        Path("votes.txt").write_text("# votes\n30\t1412\n1412\t7\n7\t30\n")
        Path("seeds.txt").write_text("1412\n1412\n")
        answer = ranked("votes.txt --method trustrank --trusted seeds.txt --explain 7")
        assert answer["ranking"][0]["vertex"] == 1412
        assert answer["explain"]["7"][0]["source"] == 1412

    def test_signed(self, folder):
        Path("votes.csv").write_text("source,target,rating\na,b,2\nb,a,1\nc,b,1\na,c,-3\n")
        answer = ranked("votes.csv --signed --negative seeds")
        assert (answer["edges"], answer["negative_edges"]) == (3, 1)
        row = {row["vertex"]: row for row in answer["ranking"]}
        assert row["c"]["distrust"] >= 3
        assert row["b"]["distrust"] == 0
        by_rank = {row["vertex"]: row for row in ranked("votes.csv --signed --method lpq")["ranking"]}
        assert 0 < by_rank["c"]["distrust"] != row["c"]["distrust"]
        assert "3 edges and 1 negative ones" in run("graph rank votes.csv --signed -o r.csv").stdout
        ratings = pl.read_csv("votes.csv").rows()
        for method, rank in {
            "fairness-goodness --smoothing 1": FairnessGoodness(1),
            "indegree": InDegree(),
        }.items():
            found = scores(ranked(f"votes.csv --signed --method {method}"))
            exact = rank.fit(as_graph(tuple(zip(*ratings, strict=True)), signed=True))
            assert found == pytest.approx(dict(zip(exact.names_, exact.scores_, strict=True)))
        shown = run("graph rank votes.csv --signed --method fairness-goodness --explain c -o r.csv").stdout
        assert "into c from" in shown
        assert "FairnessGoodness(smoothing=2): converged after" in shown
        assert "(maximum norm); read in" in shown


class TestReading:
    def test_columns_by_name_and_by_position(self, folder):
        Path("t.csv").write_text("when,who,whom,stars\n1,a,b,5\n2,b,a,1\n3,a,c,2\n")
        named = ranked("t.csv --source who --target whom --weight stars --method indegree")
        assert scores(named) == {"b": 5 / 8, "c": 2 / 8, "a": 1 / 8}
        Path("t.txt").write_text("1 4 5 5\n2 5 4 1\n3 4 6 2\n")
        placed = ranked("t.txt --source 1 --target 2 --weight 3 --method indegree")
        assert scores(placed) == {5: 5 / 8, 6: 2 / 8, 4: 1 / 8}

    def test_undirected_and_self_loops(self, folder):
        Path("u.csv").write_text("source,target\na,b\na,c\na,a\n")
        assert ranked("u.csv")["edges"] == 3
        assert ranked("u.csv --undirected")["edges"] == 5
        assert ranked("u.csv --no-self-loops")["edges"] == 2

    def test_repeated(self, folder):
        Path("r.csv").write_text("source,target\na,b\na,b\na,c\n")
        assert scores(ranked("r.csv --method indegree"))["b"] == pytest.approx(2 / 3)
        assert scores(ranked("r.csv --method indegree --repeated once"))["b"] == pytest.approx(1 / 2)


class TestSources:
    """Sources of edges: standard input, folders, patterns and other formats."""

    @pytest.mark.parametrize("verb", ["rank", "inspect", "compare"])
    def test_standard_input(self, folder, verb):
        answers = []
        for edges, given in (("edges.csv", None), ("-", EDGES)):
            result = CliRunner().invoke(app, ["graph", verb, edges, "--json"], input=given)
            assert result.exit_code == 0, result.output
            answers.append(json.loads(result.stdout))
            assert answers[-1].pop("edges_file") == edges
            answers[-1].pop("seconds", None)
            for compared in answers[-1].get("ranks", ()):
                compared["certificate"].pop("seconds")
        assert answers[0] == answers[1]

    def test_folders_and_patterns(self, folder):
        head, *lines = EDGES.splitlines(keepends=True)
        Path("parts").mkdir()
        Path("parts/1.csv").write_text(head + "".join(lines[:5]))
        Path("parts/2.csv").write_text(head + "".join(lines[5:]))
        expected = scores(ranked("edges.csv"))
        assert scores(ranked("parts")) == scores(ranked("'parts/*.csv'")) == expected
        assert "parts/3*.csv" in run("graph rank 'parts/3*.csv'", 2).stderr

    def test_layers_from_standard_input_and_a_folder(self, folder):
        Path("parts").mkdir()
        Path("parts/1.csv").write_text(EDGES)
        command = ["graph", "consensus", "-", "parts", "--method", "mean", "--json"]
        result = CliRunner().invoke(app, command, input=EDGES)
        assert result.exit_code == 0, result.output
        assert [layer["layer"] for layer in json.loads(result.stdout)["layers"]] == ["-", "parts"]

    def test_formats(self, folder):
        expected = scores(ranked("edges.csv"))
        nx.write_graphml(nx.DiGraph(LINKS), "edges.graphml")
        nx.write_adjlist(nx.DiGraph(LINKS), "edges.lists")
        assert scores(ranked("edges.graphml")) == scores(ranked("edges.lists --format adjacency")) == expected
        assert (
            "unknown --format 'xls': use one of text, jsonl"
            in run("graph rank edges.csv --format xls", 2).stderr
        )
        nx.write_graphml(nx.Graph(LINKS), "both.graphml")
        assert run("graph inspect both.graphml").stdout.startswith(
            "both.graphml: undirected, unweighted, 0 repeated"
        )
        assert scores(ranked("both.graphml")) == scores(ranked("edges.csv --undirected --repeated once"))


class TestUnknownVertices:
    """Seeds and labels that name vertices missing from the graph."""

    @pytest.mark.parametrize("option", ["--trusted", "--distrusted", "--teleport"])
    def test_are_left_out_with_a_note(self, folder, option):
        Path("known.txt").write_text("hub\n")
        Path("more.txt").write_text("# a list\nhubb\nhub\nnobody\n")
        told = run(f"graph rank edges.csv {option} more.txt --json")
        assert json.loads(told.stdout)["ranking"] == ranked(f"edges.csv {option} known.txt")["ranking"]
        what = option.removeprefix("--")
        assert (
            "note: 2 of 3 vertices that more.txt names are not in the graph and left out; "
            f"more.txt line 2: {what} vertex 'hubb' is not in the graph; did you mean 'hub'?"
        ) in told.stderr

    def test_compare(self, folder):
        Path("more.txt").write_text("hubb\nhub\n")
        assert "1 of 2 vertices" in run("graph compare edges.csv --trusted more.txt").stderr


class TestStart:
    def test_fewer_steps_and_the_same_answer(self, folder):
        run("graph rank edges.csv -p 2 -o ranks.csv")
        Path("more.csv").write_text(EDGES + "new,a\n")
        cold, warm = ranked("more.csv -p 2"), ranked("more.csv -p 2 --start ranks.csv")
        assert warm["steps"] < cold["steps"]
        assert scores(warm) == pytest.approx(scores(cold), abs=1e-8)

    def test_numbered_vertices_and_parquet(self, folder):
        Path("n.txt").write_text("5 3\n3 5\n3 8\n")
        cold = ranked("n.txt")["steps"]
        run("graph rank n.txt -o ranks.parquet")
        assert ranked("n.txt --start ranks.parquet")["steps"] < cold


class TestInspect:
    TABLE = "source,target,weight\na,b,1\nb,a,2\nb,c,1\nb,c,1\nd,d,1\n"

    def test_counts(self, folder):
        Path("t.csv").write_text(self.TABLE)
        answer = json.loads(run("graph inspect t.csv --json").stdout)
        expected = {"vertices": 4, "edges": 4, "repeated": 1, "weighted": True, "dangling": 1, "isolated": 0}
        expected |= {"self_loops": 1, "weak_components": 2, "strong_components": 3}
        expected |= {"largest_weak_component": 3, "largest_strong_component": 2}
        expected |= {"largest_in_degree": 1, "largest_out_degree": 2}
        assert {key: answer[key] for key in expected} == expected
        assert answer["bytes"] > 0

    def test_text(self, folder):
        Path("t.csv").write_text(self.TABLE)
        shown = run("graph inspect t.csv").stdout
        assert shown.startswith("t.csv: directed, weighted, 1 repeated link summed\n")
        rows = dict(line.strip().rsplit("  ", 1) for line in shown.splitlines() if "components" in line)
        assert {key.strip(): int(value) for key, value in rows.items()} == {
            "weak components": 2,
            "strong components": 3,
        }
        assert "undirected" in run("graph inspect t.csv --undirected --repeated once").stdout

    def test_edges_links_and_memory(self, folder):
        Path("t.csv").write_text("source,target\na,b\na,b\nb,c\nd,d\n")
        answer = json.loads(run("graph inspect t.csv --undirected --json").stdout)
        assert (answer["edges"], answer["links"]) == (3, 5)
        assert json.loads(run("graph inspect t.csv --json").stdout)["links"] == 3
        shown = run("graph inspect t.csv --undirected").stdout
        assert shown.startswith("t.csv: undirected, unweighted, 2 repeated links summed\n")
        rows = dict(line.strip().split("  ", 1) for line in shown.splitlines() if "  " in line.strip())
        assert {key: rows[key].strip() for key in ("edges", "links")} == {"edges": "3", "links": "5"}
        assert rows["memory"].endswith(" bytes")
        assert "links" not in run("graph inspect t.csv").stdout.split("\n", 1)[1]

    def test_signed(self, folder):
        Path("s.csv").write_text("source,target,weight\na,b,1\nb,a,-2\nb,c,-1\n")
        answer = json.loads(run("graph inspect s.csv --signed --json").stdout)
        assert (answer["positive links"]["edges"], answer["negative links"]["edges"]) == (1, 2)
        assert "negative links" in run("graph inspect s.csv --signed").stdout


FILES = {
    "edges.csv": EDGES,
    "good.txt": "hub\n",
    "bad.txt": "farm\n",
    "unknown.txt": "# a list\n\nhubb\nhubs\n",
    "blank.txt": "# nobody\n",
    "weights.csv": "vertex,weight\nhub,-1\n",
    "words.csv": "vertex,weight\nhub,much\n",
    "wide.csv": "vertex,weight\nhub,1,2\n",
    "twice.csv": "vertex,weight\nhub,1\nhub,2\n",
    "latin.txt": b"caf\xe9\n",
    "negative.csv": "source,target,weight\na,b,1\nb,c,-2\n",
    "nan.csv": "source,target,weight\na,b,1\nb,c,nan\n",
    "inf.csv": "source,target,weight\na,b,1\nb,c,inf\n",
    "text.csv": "source,target,weight\na,b,1\nb,c,many\n",
    "gap.csv": "source,target\na,b\n,c\n",
    "repeated.csv": "source,target\na,b\na,b\n",
    "empty.csv": "",
    "header.csv": "source,target\n",
    "ranks.csv": "rank,vertex,score\n1,hub,0.5\n2,hub,0.5\n",
    "others.csv": "rank,vertex,score\n1,nobody,0.5\n",
    "scores.csv": "rank,vertex,score\n1,hub,high\n",
    "columns.csv": "vertex,vertex\nhub,a\n",
    "nameless.csv": ",weight\nhub,1\n",
    "out.csv": "as it was\n",
}
RANK = "graph rank edges.csv"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "graph rank negative.csv",
            "negative.csv line 3: the link from 'b' to 'c' has the negative weight -2; "
            "remove it, or read the graph with --signed if negative weights are distrust",
        ),
        ("graph rank nan.csv", "nan.csv line 3"),
        ("graph rank inf.csv", "inf.csv line 3"),
        ("graph rank text.csv", "text.csv line 3: the weight 'many' is not a number"),
        ("graph rank gap.csv", "gap.csv line 3: the source of the edge is missing"),
        (
            "graph rank repeated.csv --repeated error",
            "'a' to 'b' occurs already (repeated.csv line 2); remove one, or use --repeated sum",
        ),
        ("graph rank empty.csv", "empty.csv has no edges"),
        ("graph rank header.csv", "header.csv has column names but no edges"),
        ("graph rank gone.csv", "cannot read 'gone.csv': no such file"),
        ("graph rank folder", "it is a folder"),
        (f"{RANK} --source from", "edges.csv has no column 'from'"),
        (f"{RANK} --weight 7", "edges.csv has no column 7"),
        (f"{RANK} --repeated twice", "unknown --repeated 'twice': use one of sum, once, error"),
        (f"{RANK} --trusted unknown.txt", "unknown.txt line 3: trusted vertex 'hubb' is not in the graph"),
        (f"{RANK} --trusted unknown.txt", "nor is any other that the file names"),
        (f"{RANK} --teleport unknown.txt", "unknown.txt line 3: teleport vertex 'hubb' is not in the graph"),
        (f"{RANK} --trusted gone.txt", "cannot read 'gone.txt': no such file"),
        (f"{RANK} --trusted folder", "it is a folder"),
        (f"{RANK} --trusted blank.txt", "blank.txt names no vertex"),
        (f"{RANK} --trusted latin.txt", "latin.txt line 1: this is not UTF-8 text"),
        (f"{RANK} --trusted weights.csv", "weights.csv line 2: '-1' is not a weight"),
        (f"{RANK} --trusted words.csv", "words.csv line 2: 'much' is not a weight"),
        (f"{RANK} --trusted columns.csv", "columns.csv line 1: two columns have the same name"),
        (f"{RANK} --trusted nameless.csv", "nameless.csv line 1: trusted vertex ',weight'"),
        (f"{RANK} --trusted wide.csv", "wide.csv line 2: the row has 3 fields, the header 2"),
        (f"{RANK} --trusted twice.csv", "twice.csv line 3: 'hub' has another weight further up"),
        (f"{RANK} --trusted good.txt --distrusted good.txt", "'hub' is both trusted and distrusted"),
        (f"{RANK} --explain hubb", "'hubb' is not in the graph; did you mean 'hub'?"),
        (f"{RANK} --method luck", "unknown --method 'luck': use one of lpq, pagerank"),
        (f"{RANK} --method pagerank -p 3", "--method pagerank has no -p: leave it out"),
        (
            f"{RANK} --teleport-as weak",
            "unknown --teleport-as 'weak': use one of inside, outside, weak-links",
        ),
        (
            f"{RANK} --method pagerank --teleport-as inside",
            "--method pagerank has no --teleport-as: leave it out",
        ),
        (f"{RANK} --teleport-as outside --ratio 1", "outside the norm needs --ratio above 1"),
        (
            f"{RANK} --teleport-as outside --explain hub",
            "outside the norm is not a link and cannot be explained",
        ),
        (f"{RANK} --method indegree --max-iter 3", "--method indegree has no --max-iter"),
        (f"{RANK} --method indegree --explain hub", "--method indegree has no --explain"),
        (f"{RANK} --method pagerank --trusted good.txt", "--method pagerank has no --trusted"),
        (f"{RANK} --method pagerank --signed", "--method pagerank has no --signed"),
        (
            f"{RANK} --method fairness-goodness",
            "--method fairness-goodness ranks ratings, some of them negative: add --signed",
        ),
        (f"{RANK} --method trustrank", "add --trusted FILE"),
        (f"{RANK} --method trustrank --trusted good.txt --start ranks.csv", "has no --start"),
        (f"{RANK} --method demoted --trusted good.txt", "add --distrusted FILE"),
        ("graph rank negative.csv --method fairness-goodness --signed --smoothing -1", "--smoothing must be"),
        (f"{RANK} -k 3", "--method guarded has no -k"),
        (f"{RANK} --gamma 0.5", "--gamma applies to labels"),
        (f"{RANK} --negative edges", "--negative applies to negative edges: add --signed"),
        (
            f"{RANK} --signed",
            "--signed needs weights, some negative: name their column with --weight",
        ),
        (f"{RANK} -p 0.5", "p must be"),
        (f"{RANK} --ratio 0.5", "ratio must be"),
        (f"{RANK} -p inf --ratio 1", "set --ratio above 1"),
        (f"{RANK} --damping 1", "--damping must be"),
        (
            f"{RANK} --trusted good.txt --trust fast",
            "--trust must be a str among {'linear', 'same'}, got 'fast'",
        ),
        (f"{RANK} --trusted good.txt --gamma 1", "--gamma must be"),
        (f"{RANK} --top 0", "--top must be at least 1"),
        (f"{RANK} --start ranks.csv", "ranks.csv has more than one row of vertex 'hub'"),
        (f"{RANK} --start others.csv", "others.csv has no positive score for any vertex of this graph"),
        (f"{RANK} --start scores.csv", "scores.csv line 2, column 'score': 'high' is not a number"),
        (f"{RANK} --start edges.csv", "edges.csv has no column 'vertex'"),
        (f"{RANK} --colour red", "No such option"),
        ("graph fly", "No such command 'fly'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_the_output_as_it_was(tmp_path, monkeypatch, command, words):
    monkeypatch.chdir(tmp_path)
    _write_all(FILES)
    before = _contents(tmp_path)
    result = run(f"{command} -o out.csv" if command.startswith("graph rank") else command, code=2)
    _assert_one_line(result.stdout, result.stderr, words)
    assert _contents(tmp_path) == before


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("ranks.docx", "cannot tell the format of 'ranks.docx'"),
        ("no/ranks.csv", "there is no folder"),
        ("edges.csv", "is also an input"),
        ("good.txt", "cannot tell the format"),
        ("seeds.csv", "is also an input"),
    ],
)
def test_outputs_that_cannot_be(folder, output, words):
    Path("seeds.csv").write_text("vertex\nhub\n")
    before = _contents(folder)
    result = run(f"graph rank edges.csv --trusted seeds.csv -o {output}", code=2)
    _assert_one_line(result.stdout, result.stderr, words)
    assert _contents(folder) == before


def test_inspect_refuses_what_rank_refuses(folder):
    Path("negative.csv").write_text(FILES["negative.csv"])
    result = run("graph inspect negative.csv", code=2)
    _assert_one_line(result.stdout, result.stderr, "negative.csv line 3")


def _write_all(files):
    for name, content in files.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    Path("folder").mkdir()


def _contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _assert_one_line(stdout, stderr, words):
    assert words in stderr
    assert stderr.startswith("error: ")
    assert stderr.count("\n") == 1
    assert not stdout


@pytest.mark.slow
def test_a_broken_line_far_down(folder):
    ends = np.random.default_rng(0).integers(0, 5000, size=(1_000_000, 2))
    pl.DataFrame(ends).write_csv("large.txt", separator=" ", include_header=False)
    with Path("large.txt").open("a") as file:
        file.write("17 what 3\n")
    Path("out.csv").write_text("as it was\n")
    result = run("graph rank large.txt -o out.csv", code=2)
    _assert_one_line(result.stdout, result.stderr, "large.txt line 1000001: the row has 3 fields")
    assert Path("out.csv").read_text() == "as it was\n"
    assert {path.name for path in folder.iterdir()} == {
        "bad.txt",
        "edges.csv",
        "good.txt",
        "large.txt",
        "out.csv",
    }


class TestProgress:
    class Screen:
        """Replacement for the spinner on stderr."""

        def __init__(self):
            self.lines = []

        def __call__(self, message):
            self.update(message)
            return nullcontext(self)

        def update(self, message):
            self.lines.append(message)

    def test_person_sees_each_step(self, folder, monkeypatch):
        screen = self.Screen()
        monkeypatch.setattr("apexrank.cli.output.working", screen)
        steps = ranked("edges.csv -p 2")["steps"]
        assert screen.lines[:2] == ["reading edges.csv", "ranking 12 vertices"]
        assert len(screen.lines) == 2 + steps
        assert re.fullmatch(
            rf"ranking 12 vertices: step {steps}, error at most \d.\de-\d\d", screen.lines[-1]
        )

    def test_program_sees_nothing(self, folder):
        assert not run("graph rank edges.csv -o ranks.csv").stderr


class TestProcess:
    """Run in a separate process, as a shell does."""

    COMMAND = (sys.executable, "-c", "from apexrank.cli import main; main()", "graph")

    def shell(self, command):
        return subprocess.run(
            [*self.COMMAND, *shlex.split(command)], capture_output=True, text=True, timeout=120, check=False
        )

    @pytest.mark.slow
    def test_help_loads_nothing_heavy(self):
        heavy = "numpy", "scipy", "sklearn", "polars", "numba", "apexrank.graph"
        code = (
            "import sys; from apexrank.cli.app import app\n"
            "try: app(['graph', 'rank', '--help'])\n"
            f"except SystemExit: print('loaded', [m for m in {heavy} if m in sys.modules])"
        )
        shown = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        assert "loaded []" in shown
        assert "--distrusted" in shown

    def test_no_arguments(self):
        result = self.shell("")
        assert result.returncode == 0
        assert "inspect" in result.stdout


def test_labels_from_a_table_with_more_columns(folder):
    run("graph rank edges.csv -o ranks.csv")
    seeds = read_seeds(Path("ranks.csv"))
    assert seeds[0][0] == 2
    assert {name for _, name, _ in seeds} == {row["vertex"] for row in ranked("edges.csv")["ranking"]}
    Path("quoted.txt").write_text('"hub"\n')
    assert read_seeds(Path("quoted.txt")) == [(1, "hub", 1.0)]
    Path("labels.csv").write_text("account,label\nhub,1\n")
    assert (
        "a CSV file needs a column named vertex" in run("graph rank edges.csv --trusted labels.csv", 2).stderr
    )


def test_columns_that_were_guessed_are_told(folder):
    Path("rated.csv").write_text("trustor,trustee,score\na,b,-5\nb,c,3\n")
    told = run("graph inspect rated.csv").stderr
    assert "links go from 'trustor' to 'trustee'; not used: 'score'" in told
    Path("plain.txt").write_text("1 2 5\n2 3 4\n")
    assert (
        "not used: 'column 2' (--source, --target and --weight choose, such as --weight 2)"
        in run("graph inspect plain.txt").stderr
    )
    assert run("graph inspect plain.txt --weight 2").stdout.startswith("plain.txt: directed, weighted")
    assert not run("graph inspect rated.csv --source trustor --target trustee --weight score --signed").stderr
    assert not run("graph inspect edges.csv").stderr


class TestShards:
    """Graphs written by ``graph pack``."""

    @pytest.fixture
    def packed(self, folder):
        run("graph pack edges.csv -o edges.shards")
        return folder

    def test_the_ranking_is_that_of_the_edges(self, packed):
        for options in ("", "--method pagerank --top 3", "-p 2", "--method trustrank --trusted good.txt"):
            found, expected = ranked(f"edges.shards {options}"), ranked(f"edges.csv {options}")
            for report in (found, expected):
                del report["seconds"], report["edges_file"]
            assert found == expected

    def test_a_vertex_is_explained(self, packed):
        found, expected = (ranked(f"{edges} --explain farm") for edges in ("edges.shards/", "edges.csv"))
        assert found["explain"] == expected["explain"]

    def test_a_file_is_written(self, packed):
        run("graph rank edges.shards --engine blocks -o found.csv")
        run("graph rank edges.csv -o expected.csv")
        assert Path("found.csv").read_text() == Path("expected.csv").read_text()

    @pytest.mark.slow
    def test_processes_give_the_same_ranking(self, packed):
        found, expected = ranked("edges.shards --engine dask --workers 2 -p 2"), ranked("edges.csv -p 2")
        assert found["ranking"] == expected["ranking"]

    @pytest.mark.parametrize(
        ("command", "message"),
        [
            (
                "rank edges.csv --engine blocks",
                "--engine is for graphs in shards: write one with apexrank graph pack",
            ),
            ("rank edges.shards --workers 2", "--workers must be at least 1 and needs --engine dask"),
            (
                "rank edges.shards --engine dask --workers 0",
                "--workers must be at least 1 and needs --engine dask",
            ),
            ("rank edges.shards --method robust", "use one of guarded, pagerank,"),
            ("rank edges.shards --undirected", "give columns and rules when packing it"),
            ("rank edges.shards --distrusted bad.txt", "distrust along the links only"),
            ("inspect edges.shards", "which only graph rank reads"),
            ("compare edges.shards", "which only graph rank reads|takes a graph in memory"),
        ],
    )
    def test_what_shards_cannot_do_is_one_line(self, packed, command, message):
        error = run(f"graph {command}", code=2).stderr.strip()
        assert re.search(message, error)
        assert "\n" not in error
