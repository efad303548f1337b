"""``apexrank reproduce all``: a failing experiment does not stop the others, and finished results are kept."""

import importlib.util
import json
import re
import shlex
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import apexrank_papers as papers
from apexrank.cli.app import app
from apexrank.errors import InputError, MissingExtraError
from apexrank_papers import Experiment, Result, Verdict, batch, record, summary
from apexrank_papers.data.sources import MissingDataError
from apexrank_papers.result import ANSWERS, FINDINGS

DOCS = Path(__file__).parents[2] / "docs"
AGREES = Verdict("row 1", "agrees", "every digit")
NOISE = Verdict("row 2", "within noise", "0.1 ± 0.2")
DIFFERS = Verdict("row 3", "differs", "it falls | it should rise")
YES = Verdict("row 4", "yes", "+0.3 ± 0.1")
NO = Verdict("row 5", "no", "-0.3 ± 0.1")


@pytest.fixture
def runs(monkeypatch, tmp_path):
    """A registry of small experiments in an empty folder, and the names of those that ran."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(papers, "REGISTRY", {})
    return []


@pytest.fixture
def register(runs, monkeypatch):
    """Add an experiment, and by default its verdicts to the record."""
    known = {}
    monkeypatch.setattr(record, "recorded", lambda: known)

    def add(name, *verdicts, error=None, draw=False, recorded=True, usual_data=True):
        if recorded:
            paper = [verdict for verdict in verdicts if verdict.kind == "paper"]
            known[name] = {row: record.Recorded(word, "One split.", "splits") for row, word, _ in paper}

        def run(*, n_splits=30):
            runs.append(name)
            if error is not None:
                raise error
            table = pl.DataFrame({"splits": [n_splits], "value": [float("nan")]})
            figure = picture() if draw else None
            return Result(table, table, list(verdicts), figure, ["made up"], usual_data)

        papers.REGISTRY[name] = Experiment(name, f"Title of {name}", run)

    return add


def picture():
    from matplotlib import pyplot as plt

    return plt.subplots()[0]


def run(command="", code=0):
    result = CliRunner().invoke(app, shlex.split(f"reproduce all --out out {command}"))
    assert result.exit_code == code, result.output
    return result


def written(path):
    return json.loads((path / "out" / "reproduce.json").read_text(encoding="utf-8"))


def test_one_json_one_page_and_the_files_of_each(register, tmp_path):
    register("one", AGREES, NOISE)
    register("two", AGREES, draw=True)
    result = run()
    found = written(tmp_path)
    assert list(found["versions"]) == [
        *("apexrank", "python", "numpy", "scipy", "scikit-learn", "numba", "polars")
    ]
    assert found["machine"]["cores"] >= 1
    one, two = found["experiments"]
    assert one["status"] == "within noise"
    assert one["verdicts"] == [AGREES._asdict(), NOISE._asdict()]
    assert one["table"] == [{"splits": 30, "value": None}]
    assert one["seconds"] >= 0
    assert (one["date"], one["machine"]) == (found["date"], found["machine"])
    assert (two["status"], two["files"]) == ("agrees", ["two.csv", "two.png"])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("one.csv", "reproduce.json", "reproduce.md", "two.csv", "two.png")
    ]
    assert "[1/2] one: 1 agrees, 1 within noise" in result.stderr
    assert "2 experiments: 1 agrees, 1 within noise; 3 verdicts: 2 agrees, 1 within noise" in result.stdout


def test_the_page_has_a_row_for_each_and_the_reasons_of_what_differs(register, tmp_path):
    register("good", AGREES)
    register("bad|name", AGREES, DIFFERS, DIFFERS)
    register("broken", error=ZeroDivisionError("by\nzero"))
    run(code=1)
    page = (tmp_path / "out" / "reproduce.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows[0].startswith("| `good` | Title of good | 1 agrees | ")
    assert rows[1].startswith(r"| `bad\|name` | Title of bad\|name | 1 agrees, 2 differ | ")
    assert rows[2].startswith("| `broken` | Title of broken | failed: ZeroDivisionError: by zero | ")
    reason = "One split. (notes-on-the-papers.md#splits)"
    assert page.count(f"- `bad|name`: row 3: it falls | it should rise. {reason}") == 2
    assert page.count("- `broken`: failed: ZeroDivisionError: by zero") == 1


def test_what_differs_as_recorded_is_no_error(register, tmp_path):
    register("one", AGREES, DIFFERS, NO)
    assert "row 3: it falls | it should rise. One split." in run().stdout
    assert "## Failed or changed\n\nNone.\n" in (tmp_path / "out" / "reproduce.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ([DIFFERS], [DIFFERS._replace(word="agrees")], "row 3: agrees, recorded as differs"),
        ([AGREES], [AGREES._replace(word="differs")], "row 1: differs, recorded as agrees"),
        ([AGREES], [AGREES, NOISE], "row 2: within noise, recorded as no verdict"),
        ([AGREES, NOISE], [AGREES], "row 2: no verdict, recorded as within noise"),
    ],
    ids=["better", "worse", "new", "gone"],
)
def test_a_verdict_that_changes_is_an_error(register, tmp_path, before, after, words):
    register("one", *before)
    register("one", *after, recorded=False)
    assert f"changed: one: {words}\n" in run(code=1).stdout
    assert f"- `one`: {words}\n" in (tmp_path / "out" / "reproduce.md").read_text(encoding="utf-8")
    assert run("--resume", code=1)


def test_answers_are_not_recorded(register):
    register("one", AGREES, YES)
    register("one", AGREES, YES._replace(word="no"), recorded=False)
    run()


def test_other_options_or_data_are_not_compared_with_the_record(register):
    register("one", AGREES)
    register("one", DIFFERS, recorded=False)
    run("--n-splits 4")
    run("--n-jobs 2", code=1)
    register("one", DIFFERS, recorded=False, usual_data=False)
    run()


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (MissingDataError("cnr-2000 is not here"), "skipped", 0),
        (MissingExtraError("lightgbm is not installed"), "skipped", 0),
        (InputError("labels must be finite"), "failed", 1),
        (MemoryError("1 PiB"), "failed", 1),
    ],
    ids=["data", "package", "input", "memory"],
)
def test_what_one_raises_does_not_stop_the_others(register, tmp_path, error, status, code):
    register("first", error=error)
    register("second", AGREES)
    run(code=code)
    first, second = written(tmp_path)["experiments"]
    assert first["status"] == status
    assert first["why"].endswith(str(error))
    assert second["status"] == "agrees"


def test_one_that_cannot_be_written_does_not_stop_the_others(register, tmp_path, monkeypatch):
    register("first", AGREES)
    register("second", AGREES)

    def fails_once(result, name, out, write=batch.write_files):
        if name == "first":
            raise InputError("cannot write a nested column")
        return write(result, name, out)

    monkeypatch.setattr(batch, "write_files", fails_once)
    run(code=1)
    assert [entry["status"] for entry in written(tmp_path)["experiments"]] == ["failed", "agrees"]


def test_resume_runs_only_what_did_not_come_to_its_end(register, runs, tmp_path):
    register("done", AGREES)
    register("broken", error=ZeroDivisionError("once"))
    register("absent", error=MissingDataError("not here"))
    register("late", DIFFERS)
    run(code=1)
    runs.clear()
    register("broken", AGREES)  # mended
    result = run("--resume")
    assert runs == ["broken", "absent"]
    assert "done: 1 agrees (kept)" in result.stderr
    assert [entry["name"] for entry in written(tmp_path)["experiments"]] == [
        "done",
        "broken",
        "absent",
        "late",
    ]


def test_an_interrupted_run_keeps_what_it_had_and_what_it_had_not_reached(register, runs, tmp_path):
    register("a", AGREES)
    register("b", error=ZeroDivisionError("once"))
    register("c", AGREES)
    run(code=1)
    register("b", error=KeyboardInterrupt())
    result = CliRunner().invoke(app, shlex.split("reproduce all --out out --resume"))
    assert result.exit_code != 0
    assert [entry["name"] for entry in written(tmp_path)["experiments"]] == ["a", "c"]
    register("b", AGREES)
    runs.clear()
    run("--resume")
    assert runs == ["b"]


def test_without_resume_everything_is_run_again(register, runs):
    register("one", AGREES)
    run()
    run()
    assert runs == ["one", "one"]


@pytest.mark.parametrize("change", ["versions", "options"])
def test_resume_takes_nothing_from_other_versions_or_options(register, runs, tmp_path, change):
    register("one", AGREES)
    run()
    before = written(tmp_path)
    before[change] = {"apexrank": "0.0.1"}
    (tmp_path / "out" / "reproduce.json").write_text(json.dumps(before))
    assert "other versions or options: everything is run again" in run("--resume").stderr
    assert runs == ["one", "one"]


def test_resume_does_not_mind_the_number_of_processes(register, runs):
    register("one", AGREES)
    run("--n-jobs 1")
    run("--n-jobs 2 --resume")
    run("--resume")
    assert runs == ["one"]
    run("--n-splits 4 --resume")
    assert runs == ["one", "one"]


@pytest.mark.parametrize("gone", ["two.csv", "two.png"])
def test_resume_runs_again_what_has_lost_a_file(register, runs, tmp_path, gone):
    register("one", AGREES)
    register("two", AGREES, draw=True)
    run()
    runs.clear()
    (tmp_path / "out" / gone).unlink()
    run("--resume")
    assert runs == ["two"]
    assert (tmp_path / "out" / gone).is_file()


def test_files_of_an_earlier_run_do_not_outlive_it(register, tmp_path):
    register("draws no more", AGREES, draw=True)
    register("fails now", AGREES, draw=True)
    run()
    register("draws no more", AGREES)
    register("fails now", error=ZeroDivisionError("now"))
    run(code=1)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("draws no more.csv", "reproduce.json", "reproduce.md")
    ]


def change_entries(path, **new):
    """Set keys of all entries of the previous run; ``None`` removes one."""
    before = written(path)
    for entry in before["experiments"]:
        entry.update(new)
        for key in [key for key, value in new.items() if value is None]:
            del entry[key]
    (path / "out" / "reproduce.json").write_text(json.dumps(before))


ELSEWHERE = {"system": "Linux riscv64", "processor": "Abacus", "cores": 10, "memory (GiB)": None}


def test_what_is_kept_has_the_date_and_machine_of_its_own_run(register, tmp_path):
    register("old", AGREES)
    run()
    change_entries(tmp_path, date="2020-02-02", machine=ELSEWHERE)
    register("new", AGREES)
    run("--resume")
    found = written(tmp_path)
    old, new = found["experiments"]
    assert (old["date"], old["machine"]) == ("2020-02-02", ELSEWHERE)
    assert (new["date"], new["machine"]) == (found["date"], found["machine"])
    line = summary.origin(found)
    assert line.startswith(f"{found['date']}, from 2020-02-02; {found['machine']['processor']}, ")
    assert "; Abacus, 10 cores; apexrank " in line
    assert line in (tmp_path / "out" / "reproduce.md").read_text(encoding="utf-8")


def test_entries_without_a_date_have_that_of_their_file(register, runs, tmp_path):
    register("one", AGREES)
    run()
    before = written(tmp_path) | {"date": "2020-02-02", "machine": ELSEWHERE}
    (tmp_path / "out" / "reproduce.json").write_text(json.dumps(before))
    change_entries(tmp_path, date=None, machine=None)
    run("--resume")
    (entry,) = written(tmp_path)["experiments"]
    assert (entry["date"], entry["machine"]) == ("2020-02-02", ELSEWHERE)
    assert summary.origin(written(tmp_path)).startswith("2020-02-02; Abacus, 10 cores; apexrank ")
    assert runs == ["one"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, None) for key in ("name", "title", "status", "seconds", "verdicts", "files")),
        *(("name", []), ("title", 3), ("seconds", "long"), ("status", "splendid"), ("files", [3])),
        *(("verdicts", [3]), ("verdicts", [{"word": "agrees"}]), ("date", 3), ("machine", {"cores": 2})),
    ],
    ids=str,
)
def test_resume_refuses_an_entry_with_a_part_missing_or_of_another_kind(register, runs, tmp_path, key, value):
    register("one", AGREES)
    run()
    change_entries(tmp_path, **{key: value})
    result = run("--resume", code=2)
    assert "was not written by an earlier run" in result.stderr
    assert result.stderr.count("\n") == 1
    assert runs == ["one"]


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "{}", '{"versions": {}, "options": {}, "experiments": [3]}', "[" * 100_000],
    ids=["cut", "list", "empty", "no entry", "deep"],
)
def test_resume_refuses_a_file_of_something_else(register, runs, tmp_path, text):
    register("one", AGREES)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "reproduce.json").write_text(text)
    assert "was not written by an earlier run" in run("--resume", code=2).stderr
    assert (tmp_path / "out" / "reproduce.json").read_text() == text
    assert not runs


def test_options_go_to_those_that_have_them(register, tmp_path):
    register("one", AGREES)
    register("two", AGREES)
    papers.REGISTRY["two"] = Experiment("two", "No options", lambda: papers.REGISTRY["one"].run())
    run("--n-splits 4")
    assert [entry["table"][0]["splits"] for entry in written(tmp_path)["experiments"]] == [4, 30]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("reproduce all", "name a folder for them with --out DIR"),
        ("reproduce all --out out --data letor", "--data applies to one experiment"),
        ("reproduce one --resume", "--resume needs 'apexrank reproduce all'"),
    ],
    ids=["no folder", "data", "resume"],
)
def test_wrong_options_are_one_line(register, runs, command, words):
    register("one", AGREES)
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert not runs


def test_a_bad_folder_is_found_before_the_work(register, runs, tmp_path):
    register("one", AGREES)
    (tmp_path / "out" / "reproduce.md").mkdir(parents=True)
    assert "it is a folder" in run(code=2).stderr
    assert not runs


def test_json_on_stdout_is_the_file(register, tmp_path):
    register("one", NOISE)
    assert json.loads(run("--json").stdout) == written(tmp_path)


def test_no_experiment_is_called_all():
    assert "all" not in papers.names()


@pytest.mark.parametrize(
    ("words", "status", "counts"),
    [
        ([], "no verdict", "no verdict"),
        (["agrees"], "agrees", "1 agrees"),
        (["agrees", "within noise", "agrees"], "within noise", "2 agree, 1 within noise"),
        (["within noise", "differs"], "differs", "1 within noise, 1 differs"),
        (["no", "agrees", "no", "yes"], "agrees", "1 agrees, 1 yes, 2 no"),
        (["no", "cannot tell"], "answered", "1 cannot tell, 1 no"),
    ],
    ids=["none", "one", "noise", "differs", "both", "questions"],
)
def test_an_experiment_is_as_good_as_its_worst_verdict(words, status, counts):
    table = pl.DataFrame({"x": [1]})
    result = Result(table, table, [Verdict("r", word, "why") for word in words])
    entry = summary.finished(Experiment("e", "E", lambda: result), 1.0, result, [])
    assert entry["status"] == status
    assert summary.counts(entry) == counts


@pytest.fixture(scope="module")
def page():
    """Module of docs/_ext that builds the page of the site."""
    spec = importlib.util.spec_from_file_location("docs_reproduced", DOCS / "_ext" / "reproduced.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_site_takes_over_the_words_and_not_the_tables(register, tmp_path, page):
    register("one", AGREES, DIFFERS, NO)
    register("two", error=MissingDataError("set $DATA"))
    run()
    assert page.take_over(tmp_path / "out", tmp_path / "kept.json") == 2
    found = json.loads((tmp_path / "kept.json").read_text(encoding="utf-8"))
    assert sorted(found) == ["date", "experiments", "machine", "versions"]
    assert sorted(found["experiments"][0]) == [
        *("date", "machine", "name", "seconds", "status", "title", "verdicts")
    ]
    assert found["experiments"][1]["why"] == "set $DATA"
    register("three", AGREES)
    found["experiments"][0]["date"] = "2020-02-02"
    lines = page.summary_lines(found)
    assert lines[-2].startswith(f"*{found['date']}, from 2020-02-02; ")
    assert (
        lines[0] == "2 experiments: 1 differs, 1 skipped; 2 verdicts: 1 agrees, 1 differs; 1 question: 1 no."
    )
    assert "Not run: `three`." in lines
    seen, why = r"it falls \| it should rise", "One split. ([notes](notes-on-the-papers.md#splits))"
    assert page.differing_lines(found)[2:] == [f"| `one` | row 3 | {why} | {seen} |"]
    assert page.verdict_lines(found)[-1] == f"| `one` | row 3 | differs | {seen} |"
    assert page.question_lines(found)[2:] == ["| `one` | row 5 | no | -0.3 ± 0.1 |"]


def test_nothing_of_a_reason_is_markup(page):
    assert page.plain("R_1 < 2 * x") == r"R\_1 \< 2 \* x"


def test_the_site_shows_every_experiment_or_says_that_it_was_not_run(page):
    found = json.loads(page.DATA.read_text(encoding="utf-8"))
    shown = [entry["name"] for entry in found["experiments"]]
    assert shown == [name for name in papers.names() if name in shown]
    text = "\n".join(page.summary_lines(found))
    assert [name for name in papers.names() if f"`{name}`" not in text] == []
    words = {v["word"] for entry in found["experiments"] for v in entry["verdicts"]}
    assert words <= {*FINDINGS.values(), *ANSWERS.values()}
    assert page.DATA.stat().st_size < 150_000


def test_the_site_shows_the_recorded_verdicts(page):
    found = json.loads(page.DATA.read_text(encoding="utf-8"))
    ran = [entry for entry in found["experiments"] if entry["verdicts"]]
    assert [text for entry in ran for text in record.changes(entry["name"], entry["verdicts"])] == []


def test_every_recorded_experiment_exists_and_every_difference_is_explained():
    notes = (DOCS / record.NOTES).read_text(encoding="utf-8")
    titles = re.findall(r"^#+ +(.*)$", notes, flags=re.M)
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}
    assert set(record.recorded()) <= set(papers.names())
    for rows in record.recorded().values():
        for row, (word, reason, anchor) in rows.items():
            assert word in FINDINGS.values(), row
            assert bool(reason) == bool(anchor) == (word == "differs"), row
            assert not reason or (reason.endswith(".") and anchor in anchors), row
