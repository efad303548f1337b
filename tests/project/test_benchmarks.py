"""``benchmarks/run.py``: one JSON file and one page from all benchmarks, and the tables of the site."""

import json
import re
from pathlib import Path

import pytest
from benchmarks import run, size

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs" / "_data"
MACHINE = {"python": "3", "machine": "m", "threads": 2, "numpy": "2", "scikit-learn": "1"}
ROWS = [
    {"what": "a|b", "ratio": 1.23456789, "limit": 1.0},
    {"what": "c", "ratio": 0.5, "limit": "1 s"},
    {"what": "d", "ratio": 0.5, "limit": 2.0},
    {"what": "e", "ratio": 0.5, "limit": None},
]
BENCHMARK = """
from pathlib import Path
Path("benchmarks/results").mkdir(exist_ok=True)
Path("benchmarks/results/{name}_rows.json").write_text({text!r})
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Repository with three benchmarks, the second of which fails."""
    home = tmp_path / "benchmarks"
    home.mkdir()
    text = json.dumps({"date": "2026-01-02", "machine": MACHINE, "rows": ROWS, "machinery": "left out"})
    for name in ("first", "third"):
        (home / f"{name}.py").write_text(BENCHMARK.format(name=name, text=text))
    (home / "second.py").write_text("raise OSError('no disk left')")
    (tmp_path / run.DOCS).parent.mkdir(parents=True)
    monkeypatch.setattr(run, "NAMES", ("first", "second", "third"))
    return tmp_path


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_one_that_fails_does_not_stop_the_others(root, capfd):
    assert run.main([], root) == 1
    found = read(root / run.RESULTS / "benchmarks.json")
    assert {name: entry["status"] for name, entry in found["runs"].items()} == {
        "first": "ran",
        "second": "failed",
        "third": "ran",
    }
    assert list(found["benchmarks"]) == ["first_rows", "third_rows"]
    assert found["benchmarks"]["third_rows"] == {"date": "2026-01-02", "machine": MACHINE, "rows": ROWS}
    assert found["machine"]["cores"] >= 1
    assert {"apexrank", "python", "numba"} <= set(found["versions"])
    page = (root / run.RESULTS / "benchmarks.md").read_text(encoding="utf-8")
    assert "| first_rows | 2026-01-02 | 4 | 2 | 1 |" in page
    assert r"- first_rows, a\|b: ratio 1.23, limit 1." in page
    assert "- second failed: OSError: no disk left" in page
    assert "## third_rows" in page
    assert "second failed: OSError: no disk left" in capfd.readouterr().err
    assert not (root / run.DOCS).exists()


def test_only_those_that_are_named_are_run_and_older_figures_stay(root, capsys):
    assert run.main(["--only", "third"], root) == 0
    assert run.main(["--only", "first"], root) == 0
    found = read(root / run.RESULTS / "benchmarks.json")
    assert list(found["runs"]) == ["first"]
    assert list(found["benchmarks"]) == ["first_rows", "third_rows"]
    with pytest.raises(SystemExit, match="2"):
        run.main(["--only", "fourth"], root)
    assert "invalid choice: 'fourth'" in capsys.readouterr().err


def test_figures_for_the_site_are_rounded_and_those_measured_elsewhere_stay(root):
    elsewhere = {"date": "2025-01-01", "machine": MACHINE, "rows": [{"x": 1}]}
    (root / run.DOCS).write_text(json.dumps({"benchmarks": {"gpu": elsewhere}}))
    results = root / run.RESULTS
    results.mkdir()
    (results / "one.json").write_text(json.dumps({"machine": MACHINE, "rows": ROWS}))
    assert run.main(["--gather", "--docs"], root) == 0
    found = read(root / run.DOCS)
    assert sorted(found) == ["benchmarks", "date", "machine", "versions"]
    assert list(found["benchmarks"]) == ["gpu", "one"]
    assert found["benchmarks"]["gpu"] == elsewhere
    assert found["benchmarks"]["one"]["rows"][0] == {"what": "a|b", "ratio": 1.23, "limit": 1.0}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["benchmarks"]["one"]["date"])


BAD_FILES = {
    "cut": '{"machine": {"python": "3"',
    "empty": "",
    "not text": b"\xff\xfe",
    "deep": "[" * 100_000,
    "list": "[]",
    "no rows": json.dumps({"machine": MACHINE, "rows": []}),
    "empty rows": json.dumps({"machine": MACHINE, "rows": [{}]}),
    "rows that are none": json.dumps({"machine": MACHINE, "rows": ["a", "b"]}),
    "no machine": json.dumps({"rows": ROWS}),
    "half a machine": json.dumps({"machine": {"python": "3"}, "rows": ROWS}),
    "words for numbers": json.dumps({"machine": MACHINE, "rows": [{"ratio": "fast", "limit": 1.0}]}),
}


@pytest.mark.parametrize("text", BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_left_out_with_one_line(root, capsys, text):
    results = root / run.RESULTS
    results.mkdir()
    (results / "bad.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    (results / "good.json").write_text(json.dumps({"machine": MACHINE, "rows": ROWS}))
    assert run.main(["--gather", "--docs"], root) == 0
    assert list(read(root / run.DOCS)["benchmarks"]) == ["good"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("bad left out: not the figures of a benchmark (")
    assert line.endswith("; run it again or remove bad.json")
    assert f"- {line}" in (results / "benchmarks.md").read_text(encoding="utf-8").splitlines()


def test_a_bad_file_is_named_once_however_many_benchmarks_run(root, capfd):
    (root / run.RESULTS).mkdir()
    (root / run.RESULTS / "bad.json").write_text("{")
    assert run.main(["--only", "first", "third"], root) == 0
    assert capfd.readouterr().err.count("bad left out") == 1


def test_columns_are_those_of_all_rows(root):
    rows = [{"what": "a", "ratio": 3.0, "limit": 2.0}, {"what": "b", "seconds": 0.5}]
    (root / run.RESULTS).mkdir()
    (root / run.RESULTS / "one.json").write_text(json.dumps({"machine": MACHINE, "rows": rows}))
    assert run.main(["--gather", "--docs"], root) == 0
    assert read(root / run.DOCS)["benchmarks"]["one"]["rows"] == rows
    lines = run.table_lines({"date": "2026-01-02", "machine": MACHINE, "rows": rows})
    assert lines[0] == "| what | ratio | limit | seconds |"
    assert lines[2:4] == ["| a | **3** | 2 |  |", "| b |  |  | 0.5 |"]


def test_numbers_over_their_limit_are_bold():
    lines = run.table_lines({"date": "2026-01-02", "machine": MACHINE, "rows": ROWS})
    assert [run.over_limit(row) for row in ROWS] == ["ratio", None, None, None]
    assert lines[0] == "| what | ratio | limit |"
    assert lines[2] == r"| a\|b | **1.23** | 1 |"
    assert lines[4] == "| d | 0.5 | 2 |"
    assert lines[-2] == "*2026-01-02; m, 2 threads; python 3, numpy 2, scikit-learn 1.*"


def test_every_name_is_a_benchmark():
    for name in run.NAMES:
        assert "def main(" in (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")


def test_every_benchmark_is_on_the_page_and_its_rows_have_the_same_columns():
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    benchmarks = read(DATA / "benchmarks.json")["benchmarks"]
    assert sorted(re.findall(r"^```\{benchmark\} (\w+)$", page, flags=re.M)) == sorted(benchmarks)
    for found in benchmarks.values():
        assert {tuple(row) for row in found["rows"]} == {tuple(found["rows"][0])}
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])


def test_figures_of_the_site_name_no_folder_of_a_machine():
    for path in DATA.glob("*.json"):
        found = re.findall(
            r"(?<![\w.])(?:[A-Z]:\\|/)(?:home|root|tmp|work|mnt|Users)\b[^\"]*", path.read_text()
        )
        assert found == [], path.name


def test_lines_of_code_are_those_with_a_token():
    function = (
        'def f(x):\n    """It is\n    f.\n    """\n\n    # why\n    return (\n        x  # that\n    )\n'
    )
    source = function + '\n\nTEXT = """\n\n"""\n'
    assert size.code_lines(source) == 1 + 3 + 3


@pytest.mark.slow
def test_sizes_are_printed_for_both_packages(capsys):
    size.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == ["apexrank", "apexrank_papers"]
    files, code = size.sizes(ROOT / "papers" / "src" / "apexrank_papers")["push"]
    assert f"  {'push':22} {files:6} {code:7,}" in lines


def test_guide_to_graphs_has_the_figures_of_the_benchmark():
    names = {
        "NonBacktrackingRank": "non-backtracking",
        "LpqRank(2)": "L_2,2.4",
    }
    names |= {"PageRank": "PageRank", "GuardedPageRank": "guarded"}
    rows = read(DATA / "benchmarks.json")["benchmarks"]["attacks"]["rows"]
    held = {(row["graph"].rpartition(", ")[0], row["rank"]): row for row in rows if "drop" in row["graph"]}
    held |= {("wiki-Vote", row["rank"]): row for row in rows if row["graph"].startswith("wiki-Vote")}
    text = (DATA.parent / "guide" / "graphs.md").read_text(encoding="utf-8")
    table = re.search(r"^\| \| (wiki-Vote.*?)\n\n", text, flags=re.M | re.S)[1].splitlines()
    graphs = table[0].rstrip(" |").split(" | ")
    for line in table[2:-1]:
        name, *cells = line.strip("| ").split(" | ")
        shown = [cell.strip("*") + " of 21" for cell in cells]
        assert shown == [held[graph, names[name.strip("`")]]["holds"] for graph in graphs]
    guarded = [held[graph, "guarded"] for graph in graphs]
    shown = [f"{row['spearman']:.3f}".replace("0.", ".") + f"; {row['of 100']}" for row in guarded]
    assert table[-1].strip("| ").split(" | ")[1:] == shown
