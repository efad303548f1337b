"""``apexrank graph compare``: options, output and errors."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from apexrank.datasets.crawl import make_crawl, plant_farms
from apexrank.graph import InDegree, LpqRank, TopMeanRank
from apexrank.report.graph.compare import compare_ranks
from tests.cli.running import of_verb

HONEST, BOOSTERS = 600, 40


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A crawl with two farms, a plain one, and labels, as files."""
    folder = tmp_path_factory.mktemp("crawl")
    web = make_crawl(HONEST, random_state=0).adjacency
    crawl = plant_farms(web, farms=2, boosters=BOOSTERS)
    names = np.array([f"spam{i}" if bad else f"page{i}" for i, bad in enumerate(crawl.spam)])
    for name, matrix in (("edges", crawl.adjacency), ("plain", web)):
        links = matrix.tocoo()
        frame = pl.DataFrame({"source": names[links.row].tolist(), "target": names[links.col].tolist()})
        frame.write_csv(folder / f"{name}.csv")
    (folder / "bad.csv").write_text("vertex\n" + "".join(f"{name}\n" for name in names[crawl.spam]))
    (folder / "good.txt").write_text("page1\nspam600\n")
    return folder


@pytest.fixture
def folder(written, tmp_path, monkeypatch):
    for file in written.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


run = of_verb("graph compare")


def told(command):
    return json.loads(run(f"{command} --json").stdout)


TARGETS = {"spam600", "spam641"}


def test_suspects_and_verdict_on_screen(folder):
    shown = run("edges.csv")
    assert "edges.csv: 682 vertices" in shown.stdout
    for target in TARGETS:
        assert target in shown.stdout
    assert shown.stdout.count("excess and unsupported") == 2
    assert "2 of 2 suspects, the most suspicious first" in shown.stdout
    assert "PageRank's first 30 contain 2 vertices that look like targets of link farms" in shown.stdout
    assert shown.stderr.startswith("note: A vertex is suspected if its PageRank is more than")
    assert "written" not in shown.stdout


def test_nothing_found_is_said(folder):
    shown = run("plain.csv -o none.parquet")
    assert "Nothing suspicious found" in shown.stdout
    assert "0 suspects" in shown.stdout
    run("edges.csv -o some.parquet")
    none, some = (pl.read_parquet(f"{name}.parquet").drop("vertex") for name in ("none", "some"))
    assert none.is_empty()
    assert none.schema == some.schema


@pytest.mark.parametrize("name", ["suspects.csv", "suspects.parquet"])
def test_files(folder, name):
    shown = run(f"edges.csv -o {name} --report farms.html --title 'Our crawl'").stdout
    frame = pl.read_csv(name) if name.endswith("csv") else pl.read_parquet(name)
    assert set(frame["vertex"]) == TARGETS
    assert frame["unsupported"].to_list() == [BOOSTERS] * 2
    assert f"written: {name}, 2 suspects, the most suspicious first" in shown
    assert "written: farms.html (" in shown
    html = Path("farms.html").read_text(encoding="utf-8")
    assert "<title>Our crawl</title>" in html
    assert "<bdi>spam600</bdi>" in html


def test_json_is_what_the_library_says(folder):
    answer = told(
        "edges.csv --ranks indegree,top-mean -p 2,inf --ratio 1.5 --damping 0.8 --top 5 --suspects 1"
    )
    options = {"damping": 0.8, "tol": 1e-7}
    ranks = {"InDegree": InDegree(), "TopMeanRank": TopMeanRank(**options)}
    ranks |= {f"L_pq, p = {p:g}": LpqRank(p, 1.5, **options) for p in (2, np.inf)}
    library = compare_ranks("edges.csv", ranks=ranks, damping=0.8, top=5, suspects=1)
    expected = json.loads(json.dumps(library.to_dict()))
    for part in ("verdict", "suspects"):
        assert answer[part] == expected[part]
    assert [each["certificate"]["rank"] for each in answer["ranks"]] == ["PageRank", *ranks]
    assert [each["top"] for each in answer["ranks"]] == [each["top"] for each in expected["ranks"]]
    assert (answer["report"], answer["output"]) == (None, None)
    assert len(answer["ranks"][0]["top"]) == 5
    assert len(answer["suspects"]) == 1


def test_labels(folder):
    answer = told("edges.csv --spam bad.csv")
    mass = [each["measures"]["spam_mass"] for each in answer["ranks"]]
    assert mass[0] > mass[1] + 0.05
    assert "spam holds" in run("edges.csv --spam bad.csv").stdout
    trusting = told("edges.csv --trusted good.txt")
    assert [each["name"] for each in trusting["suspects"]] == ["spam641"]
    assert trusting["ranks"][-1]["certificate"]["rank"] == "TrustRank"
    alone = told("edges.csv --trusted good.txt --ranks trustrank")
    assert alone["ranks"][1]["top"] == trusting["ranks"][-1]["top"]


def test_spam_that_is_not_in_the_graph_is_left_out(folder):
    Path("more.csv").write_text(Path("bad.csv").read_text() + "casino\nlottery\n")
    answer, known = told("edges.csv --spam more.csv"), told("edges.csv --spam bad.csv")
    assert [each["measures"] for each in answer["ranks"]] == [each["measures"] for each in known["ranks"]]
    assert "2 spam labels match no vertex of this graph and are ignored." in answer["notes"]


def test_advice_names_the_options(folder):
    shown = run("edges.csv --max-iter 3")
    assert "so this may change: raise --max-iter or --tol." in shown.stdout
    assert "note: PageRank has not converged after 3 steps: raise --max-iter or --tol." in shown.stderr
    found = told("edges.csv --max-iter 3 --report r.html")
    assert "raise --max-iter or --tol" in found["verdict"]["text"]
    assert any("raise --max-iter or --tol" in note for note in found["notes"])
    assert "raise --max-iter or --tol" in Path("r.html").read_text()


def test_no_links(folder):
    Path("loop.csv").write_text("source,target\na,a\n")
    Path("zero.csv").write_text("source,target,weight\na,b,0\nb,c,0\n")
    shown = run("loop.csv --report loop.html").stdout
    assert "loop.csv: 1 vertex, 1 link; PageRank against GuardedPageRank" in shown
    assert "There are no links except self-loops" in shown
    assert "There are no links, so there is nothing to examine." in run("zero.csv").stdout


def test_reading_options(folder):
    frame = pl.read_csv("edges.csv").rename({"source": "from page", "target": "to page"})
    frame.with_columns(pl.lit(2.0).alias("n")).write_csv("other.csv")
    other = told("other.csv --source 'from page' --target 'to page' --weight n --no-self-loops")
    same = told("edges.csv --no-self-loops")
    assert [each["name"] for each in other["ranks"][1]["top"]] == [
        each["name"] for each in same["ranks"][1]["top"]
    ]
    assert told("edges.csv")["links"] > same["links"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("nothing.csv", "nothing.csv"),
        ("edges.csv --ranks page", "unknown --ranks 'page': use some of lpq, indegree"),
        ("edges.csv --ranks trustrank", "unknown --ranks 'trustrank': use some of"),
        ("edges.csv --ranks pagerank", "unknown --ranks 'pagerank': use some of"),
        ("edges.csv -p two", "-p takes numbers separated by commas, such as 2,8, got 'two'"),
        ("edges.csv -p 0.5", "p must be"),
        ("edges.csv -p 2 --ratio 0.9", "--ratio must be"),
        ("edges.csv --damping 1", "--damping must be"),
        ("edges.csv --top 0", "--top"),
        ("edges.csv --report farms.pdf", "farms.html"),
        ("edges.csv --report none/farms.html", "there is no folder"),
        ("edges.csv -o edges.csv", "is also an input"),
        ("edges.csv -o suspects.txt", "cannot tell the format of 'suspects.txt'"),
        ("edges.csv --spam none.csv", "cannot read 'none.csv'"),
        ("edges.csv --spam wrong.csv", "wrong.csv line 2: spam vertex 'spam9' is not in the graph"),
        (
            "negative.csv",
            "remove it, or read the graph with graph rank --signed if negative weights are distrust",
        ),
    ],
)
def test_errors_are_one_line(folder, command, message):
    Path("wrong.csv").write_text("vertex\nspam9\n")
    Path("negative.csv").write_text("source,target,weight\na,b,1\nb,a,-1\n")
    result = run(command, code=2)
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert not result.stdout
