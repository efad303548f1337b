"""``apexrank graph attack``: options, output and errors."""

import json

import polars as pl
import pytest

from apexrank.datasets import make_crawl
from apexrank.graph import as_graph, attack_ranks
from tests.cli.running import of_verb


@pytest.fixture
def edges(tmp_path, monkeypatch):
    links = make_crawl(400, random_state=0).adjacency.tocoo()
    names = [f"page{i}" for i in range(400)]
    frame = pl.DataFrame({"source": [names[i] for i in links.row], "target": [names[i] for i in links.col]})
    frame.write_csv(tmp_path / "edges.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


run = of_verb("graph attack")


def test_table_and_sentences_on_screen(edges):
    shown = run("edges.csv --attacks farm,cycle-2 --attacks hijacked:2 --targets 5 --pages 30").stdout
    study = attack_ranks("edges.csv", attacks=["farm", "cycle-2", "hijacked:2"], n_targets=5, pages=30)
    assert "median places of 5 targets" in shown
    for sentence in (study.verdict, *study.verdicts.values()):
        assert sentence in shown
    row = next(line.split() for line in shown.splitlines() if line.split()[:1] == ["cycle-2"])
    places = [
        f"{each.after:,.0f}{'' if each.holds else '*'}" for each in study.results if each.attack == "cycle-2"
    ]
    assert row == ["cycle-2", "1", "0", *places]


def test_files_json_and_reading_options(edges):
    command = (
        "edges.csv --attacks farm:5 --targets 3 --seed 4 --no-self-loops -o all.csv --report page.html --json"
    )
    told = json.loads(run(command).stdout)
    graph = as_graph("edges.csv", self_loops="drop")
    study = attack_ranks(graph, attacks=["farm:5"], n_targets=3, random_state=4)
    assert told["results"] == study.to_dict()["results"]
    assert told["edges"] == graph.n_edges
    assert pl.read_csv("all.csv").equals(study.table())
    assert "Under attack: edges.csv" in (edges / "page.html").read_text(encoding="utf-8")
    assert told["report"] == "page.html"


def test_attacks_without_a_gain_to_prevent_are_marked(edges):
    (edges / "star.csv").write_text("source,target\n" + "".join(f"p{i},hub\n" for i in range(300)))
    answer = run("star.csv --attacks farm:1,farm:400")
    row = next(line.split() for line in answer.stdout.splitlines() if line.split()[:1] == ["farm:1"])
    assert row[3:] == ["1-"] * 5
    assert "No gain to prevent: the targets rise in no attack with PageRank." in answer.stdout
    assert (
        "too small for farm:400: for each target more pages are added than it has vertices (301)"
        in answer.stderr
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("edges.csv --attacks farn", "unknown attack 'farn': did you mean 'farm'? Use some of farm"),
        (
            "edges.csv --targets 4000",
            "only 400 vertices have in-links: lower --targets",
        ),
        ("missing.csv", "missing.csv"),
        ("edges.csv -o all.txt", "all.txt"),
        ("edges.csv --report edges.csv", "a report is an HTML file"),
    ],
)
def test_faults(edges, command, message):
    before = sorted(path.name for path in edges.iterdir())
    result = run(command, code=2)
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert sorted(path.name for path in edges.iterdir()) == before
