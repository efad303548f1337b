"""Input files of commands: encodings, separators, missing files, and hints about names."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import apexrank
from apexrank.errors import InputError, near_name
from apexrank.io import read_table

from .test_verbs import run

TEXT = "nom;âge;ville;fraude\nAnaïs;31;Orléans;oui\nZoé;25;Nîmes;non\nNoël;44;Orléans;oui\nLéa;19;Nîmes;non\n"
FIT = "fit t.csv --target fraude --positive oui --id nom --categorical ville --alpha 0.1"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("encoding", ["latin-1", "Windows-1252", "utf-16", "utf-16-le", "utf-8", "UTF-8-SIG"])
@pytest.mark.parametrize("packed", [False, True])
def test_encodings_give_the_table_of_utf8(encoding, packed):
    Path("plain.csv").write_text(TEXT, encoding="utf-8")
    bytes_ = TEXT.encode(encoding)
    bytes_ = (
        b"\xff\xfe" + bytes_ if encoding == "utf-16-le" else bytes_
    )  # a byte order mark that this codec does not remove
    Path("t.csv").write_bytes(gzip.compress(bytes_) if packed else bytes_)
    assert read_table("t.csv", encoding=encoding).frame.equals(read_table("plain.csv").frame)
    run(f"{FIT} --encoding {encoding}")
    assert [column.name for column in apexrank.load("model.apex").encoder.columns] == ["âge", "ville"]
    ranked = run(f"rank model.apex t.csv --encoding {encoding}").stdout
    assert {"Anaïs", "Noël"} == {line.split(",")[0] for line in ranked.splitlines()[1:3]}
    measured = run(f"evaluate model.apex t.csv --measures auc --json --encoding {encoding}").stdout
    assert json.loads(measured)["measures"]["auc"] == 1


@pytest.mark.parametrize("sep", ["|", ";", " ", "~", "\\t"])
def test_separators(sep):
    # Commas outnumber the separator in the header, so detection would fail.
    mark = "\t" if sep == "\\t" else sep
    rows = [["id", "a,b,c,d,e,f", "y"], *([str(i), str(i % 7), str(i % 2)] for i in range(20))]
    Path("t.csv").write_text("".join(mark.join(row) + "\n" for row in rows))
    report = json.loads(run("fit", "t.csv", "--target", "y", "--id", "id", "--json", "--sep", sep).stdout)
    assert list(report["coefficients"]) == ["a,b,c,d,e,f"]
    ranked = run("rank", "model.apex", "t.csv", "--sep", sep, "--json", "--top", 1).stdout
    assert json.loads(ranked)["ranking"][0]["rank"] == 1


def test_no_header_decimal_commas_and_missing_marks():
    rows = [f"{i};{i % 7},5;{'?' if i % 9 == 0 else 'abc'[i % 3]};{i % 2}" for i in range(40)]
    Path("t.csv").write_text("\n".join(rows))
    options = "--no-header --decimal-comma --missing-marks ?,NA"
    report = json.loads(run(f"fit t.csv --target column_4 --id column_1 --json {options}").stdout)
    assert [name for name in report["coefficients"] if name.startswith("column_2")] == ["column_2"]
    assert not any("?" in name for name in report["coefficients"])
    ranked = json.loads(run(f"rank model.apex t.csv --json {options}").stdout)["ranking"]
    assert len(ranked) == 40
    compared = run(f"compare t.csv --target column_4 --id column_1 --models logistic {options}").stdout
    assert "--no-header --decimal-comma --missing-marks" in compared


def test_ballots_of_another_encoding_and_separator():
    Path("v.csv").write_bytes("électeur|thé|café\nana|2|1\nbob|3|1\n".encode("cp1252"))
    result = run("aggregate v.csv --encoding cp1252 --sep | --json")
    assert [row["item"] for row in json.loads(result.stdout)["ranking"]] == ["thé", "café"]


def test_places_of_bad_cells_are_those_of_the_file():
    Path("t.csv").write_bytes(TEXT.replace("44", "quarante").encode("utf-16"))
    error = run(f"{FIT} --encoding utf-16", code=2).stderr
    assert "\nerror: t.csv line 4, column 'âge': 'quarante' is not a number" in error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--encoding klingon", "unknown --encoding 'klingon': use a name such as latin-1, cp1252 or utf-16"),
        ("--encoding hex", "unknown --encoding 'hex'"),
        ("--encoding ascii", "t.csv line 1: this is not ascii text; name another --encoding"),
        (
            "",
            "t.csv line 1: this is not UTF-8 text; save the file as UTF-8, or name its encoding, such as --encoding",
        ),
        ("--encoding latin-1 --sep ;;", "--sep must be one ASCII character such as ; or |, got ';;'"),
        ("--encoding latin-1 --sep é", "--sep must be one ASCII character"),
        ("--encoding latin-1 --sep ''", "--sep must be one ASCII character"),
        ("--encoding latin-1 --engine blocks", "leave out --encoding"),
        ("--no-header --decimal-comma --engine blocks", "leave out --no-header and --decimal-comma"),
    ],
)
def test_bad_reading_options(options, words):
    Path("t.csv").write_bytes(TEXT.encode("latin-1"))
    error = run(f"{FIT} {options}", code=2).stderr
    assert words in error
    assert error.count("\n") == 1
    assert not Path("model.apex").exists()


def test_the_likely_encoding_is_named():
    for encoding, likely in (("utf-16", "utf-16"), ("latin-1", "cp1252")):
        Path("t.csv").write_bytes(TEXT.encode(encoding))
        assert run(FIT, code=2).stderr.endswith(f"or name its encoding, such as --encoding {likely}\n")


def test_text_that_utf8_cannot_hold():
    Path("t.csv").write_text("x,y\n\\ud800,1\n")
    assert (
        "line 2: this is not unicode_escape text"
        in run("fit t.csv --target y --encoding unicode_escape", code=2).stderr
    )


def test_only_commands_with_the_option_name_it():
    Path("edges.csv").write_bytes("source,target\ncafé,bar\n".encode("latin-1"))
    assert run("graph rank edges.csv", code=2).stderr.endswith("save the file as UTF-8\n")


def test_scorecards_read_the_same_files():
    Path("t.csv").write_bytes((TEXT + "Eve;50;Nîmes;oui\n").encode("cp1252"))
    run(f"{FIT} --encoding cp1252")
    run("export model.apex -o card.csv --data t.csv --encoding cp1252 --sep ;")
    assert "âge" in pl.read_csv("card.csv")["feature"].to_list()
    assert "--sep is for --format scorecard" in run("export model.apex --sep ;", code=2).stderr


def test_other_formats_have_no_encoding():
    pl.DataFrame({"x": [1, 2], "y": [0, 1]}).write_parquet("t.parquet")
    words = "error: t.parquet is not a CSV file: leave out --encoding, --sep and other options of CSV files\n"
    assert run("fit t.parquet --target y --sep ;", code=2).stderr == words
    with pytest.raises(InputError, match="leave out `encoding=`, `separator=`"):
        read_table("t.parquet", encoding="latin-1")


def test_missing_files_are_reported_before_anything_slow_is_imported():
    Path("there.csv").write_text("x,y\n1,0\n2,1\n")
    commands = [
        *("fit gone.csv --target y", "rank gone.apex there.csv", "rank there.csv gone.csv"),
        *("evaluate there.csv gone.csv", "evaluate there.csv --qrels gone.txt"),
        *("export there.csv -o card.csv --data gone.csv", "aggregate gone.csv", "cluster gone.csv -k 2"),
        *("graph rank gone.csv", "graph compare gone.csv", "graph inspect gone.csv"),
        "graph consensus gone.csv there.csv",
    ]
    code = f"""
import sys
from apexrank.cli.app import app
for command in {commands}:
    try:
        app(command.split())
    except SystemExit as ended:
        print(ended.code, *(name for name in ("sklearn", "scipy", "numba", "pandas") if name in sys.modules))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    gone = [next(word for word in command.split() if "gone" in word) for command in commands]
    told = [f"error: cannot read '{name}': no such file or directory" for name in gone]
    assert found.stderr.splitlines() == told
    assert found.stdout.splitlines() == ["2"] * len(commands)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("amuont", "amount"),
        ("Amount", "amount"),
        ("AMOUNT", "amount"),
        ("frod", "fraud"),
        ("grade", None),
        ("x1", None),
        ("children", None),
        ("foo", None),
        ("", None),
    ],
)
def test_did_you_mean_only_what_is_near(name, near):
    assert near_name(name, ["fraud", "amount", "x2", "churn", "hour"]) == near


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("fit t.csv --target grade", "t.csv has no column 'grade'; it has 'fraud', 'hour'"),
        ("fit t.csv --target Fruad", "t.csv has no column 'Fruad'; did you mean 'fraud'?"),
        ("rank m.apex t.csv --tip 3", "No such option: --tip (Possible options: --top) (see --help)"),
        ("rank m.apex t.csv --fooo", "No such option: --fooo (see --help)"),
        (
            "evaluate t.csv --scores hour --target fraud --measures aucc",
            "unknown measure 'aucc': did you mean 'auc'?",
        ),
        (
            "evaluate t.csv --scores hour --target fraud --measures silly",
            "unknown measure 'silly': use one of auc,",
        ),
        (
            "fit prices.csv --target price",
            "prices.csv column 'price' has 9 distinct numbers, but this ranker learns",
        ),
        (
            "fit prices.csv --target late --weight carrier",
            "prices.csv column 'carrier' holds text such as 'UA'",
        ),
    ],
)
def test_hints_of_commands(command, told):
    Path("t.csv").write_text("fraud,hour\n1,2\n0,1\n")
    rows = [f"{'UA' if i % 2 else 'DL'},{i}.5,{i % 2}" for i in range(1, 10)]
    Path("prices.csv").write_text("\n".join(["carrier,price,late", *reversed(rows)]))
    assert run(command, code=2).stderr.startswith(f"error: {told}")


def test_hints_of_rank_and_evaluate_name_no_options_of_fit():
    Path("t.csv").write_text("x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(9)))
    Path("bad.csv").write_text("x,y\n1,0\nlow,1\n")
    run("fit t.csv --target y")
    told = "error: bad.csv line 3, column 'x': 'low' is not a number; correct it\n"
    for command in ("rank model.apex bad.csv", "evaluate model.apex bad.csv"):
        assert run(command, code=2).stderr == told
    assert "(--drop x)" in run("fit bad.csv --target y", code=2).stderr
    Path("words.csv").write_text("x,y\n1,good\n2,bad\n")
    assert "--model" not in run("evaluate model.apex words.csv --relevant 1", code=2).stderr
