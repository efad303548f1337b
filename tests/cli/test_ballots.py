"""Input tables of ``apexrank aggregate`` and ``cluster``, and the notes printed beside the results."""

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from apexrank.cli.app import app
from apexrank.io import columns
from tests.cli.running import run

LIKERT = ["5,5,4,3", "4,4,4,4", "2,5,5,1", "3,3,2,5", "1,5,4,4"]
MEANS = {"q2": 4.4, "q3": 3.8, "q4": 3.4, "q1": 3.0}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ranked(command):
    found = json.loads(run(f"aggregate {command} --json").stdout)
    return {row["item"]: row["score"] for row in found["ranking"]}


def notes(command):
    return run(command).stderr.splitlines()


def likert(head, ids=range(1, 6)):
    rows = "".join(f"{id},{row}\n" for id, row in zip(ids, LIKERT, strict=True))
    Path("likert.csv").write_text(f"{head},q1,q2,q3,q4\n{rows}")


class TestIds:
    @pytest.mark.parametrize(
        "head",
        ["respondent", "userid", "userId", "participant", "index", "Respondent ID", "VOTER", "case-id"],
    )
    def test_names_of_a_column_of_numbers_that_names_voters(self, head):
        likert(head)
        assert ranked("likert.csv") == pytest.approx(MEANS)
        assert notes("aggregate likert.csv") == [
            f"note: likert.csv: the first column, {head!r}, is read as the names of the voters (--id chooses)"
        ]

    @pytest.mark.parametrize("head", ["Madrid", "COVID", "film", "x"])
    def test_other_names_are_items_with_a_note_where_the_numbers_are_like_ids(self, head):
        likert(head, range(11, 16))
        assert ranked("likert.csv") == pytest.approx({head: 13, **MEANS})
        told = f"note: likert.csv: column {head!r} is read as an item (--id {head}, or --drop {head})"
        assert told in notes("aggregate likert.csv")
        assert told in notes("cluster likert.csv -k 2")
        likert(head, [1, 2, 3, 4, 4])
        assert not notes("aggregate likert.csv")

    @pytest.mark.parametrize(("b", "doubt"), [("3,3,2", True), ("3,5,2", False)])
    def test_numbers_that_do_not_rise_are_like_ids_where_those_of_no_other_column_are(self, b, doubt):
        rows = "".join(f"{x},{y},4\n" for x, y in zip((7, 1, 5), b.split(","), strict=True))
        Path("few.csv").write_text(f"x,b,c\n{rows}")
        assert bool(notes("aggregate few.csv --method borda --top 1")) is doubt

    def test_what_may_be_weights_is_told_once(self):
        Path("counts.csv").write_text("count,a,b\n1,2,2\n2,3,3\n6,2,3\n")
        (told,) = notes("aggregate counts.csv")
        assert "column 'count' is read as an item (--weights count, or --drop count)" in told

    def test_names_of_voters_before_orders(self):
        Path("orders.csv").write_text("v,1st,2nd\nann,tea,rum\nbob,rum,tea\ncy,tea,gin\n")
        told = "note: orders.csv: column 'v' is read as the first place (--id v, or --drop v)"
        assert told in notes("aggregate orders.csv --kind orders")
        assert told not in notes("aggregate orders.csv --kind orders --id v")
        Path("orders.csv").write_text("a,b\ntea,rum\nrum,tea\ngin,tea\n")
        assert not [one for one in notes("aggregate orders.csv --kind orders") if "first place" in one]

    @pytest.mark.parametrize("options", ["", "--strict"])
    def test_a_first_line_that_may_be_an_order(self, options):
        ballots = "ann,bob,cy\nann,cy,bob\nbob,cy,ann\n"
        Path("orders.csv").write_text(ballots)
        told = run(f"aggregate orders.csv --kind orders {options}", code=2).stderr
        assert told.startswith("error: orders.csv line 1 is read as the header")
        assert told.count("\n") == 1
        Path("orders.csv").write_text(f"1st,2nd,3rd\n{ballots}")
        assert ranked(f"orders.csv --kind orders --method borda {options}") == {"ann": 4, "bob": 3, "cy": 2}
        Path("orders.csv").write_text("voter,1,2\nx,1,2\ny,2,1\n")  # no ballot starts with "voter"
        assert ranked(f"orders.csv --kind orders --method borda {options}".replace("--strict", "")) == {
            "1": 1,
            "2": 1,
        }

    def test_a_number_of_each_row_before_orders(self):
        Path("orders.csv").write_text("no,1st,2nd\n1,tea,rum\n2,rum,tea\n3,tea,rum\n")
        told = "note: orders.csv: column 'no' is read as the first place (--id no, or --drop no)"
        assert told in notes("aggregate orders.csv --kind orders")
        assert not notes("aggregate orders.csv --kind orders --id no")

    @pytest.mark.parametrize("head", ["movieId", "page", "URL", "film", "index"])
    def test_names_of_items_in_rows(self, head):
        Path("films.csv").write_text(f"{head},u1,u2,u3\n10,1,2,3\n20,3,2,4\n30,4,4,1\n")
        assert ranked("films.csv --items-in rows") == {"20": 3, "30": 3, "10": 2}

    def test_items_in_rows_without_names_are_told(self):
        Path("rows.csv").write_text("x,u1,u2\n10,1,2\n20,3,2\n30,1,1\n")
        told = notes("aggregate rows.csv --items-in rows --normalize minmax")
        assert told[:2] == [
            "note: rows.csv: column 'x' is read as a voter (--id x, or --drop x)",
            "note: rows.csv: no column names the items, which are called row 1, row 2, ... (--id chooses one)",
        ]
        Path("plain.csv").write_text("bm25,dense\n1,2\n3,4\n")
        (only,) = notes("aggregate plain.csv --items-in rows")
        assert "no column names the items" in only

    def test_a_forgotten_long_is_told(self):
        Path("ml.csv").write_text(
            "userId,movieId,rating,timestamp\n1,10,5,9\n1,20,4,9\n2,10,3,9\n2,20,4.5,9\n"
        )
        told = "this looks like a long table: --long userId,movieId,rating"
        assert f"note: ml.csv: {told}" in notes("aggregate ml.csv --normalize minmax")
        assert not notes("aggregate ml.csv --long userId,movieId,rating")
        Path("films.csv").write_text("User name,film,stars\nann,Heat,5\nbob,Heat,4\n")
        shown = run("aggregate films.csv", code=2).output
        assert (
            "column 'film' holds text such as 'Heat'; this looks like a long table: --long 'User name,film,stars'"
            in shown
        )


class TestUnnamed:
    @pytest.mark.parametrize(
        ("head", "name"),
        [
            (",A,B,C", "index.csv"),
            ('"","A","B","C"', "index.csv.gz"),
            ("\ufeff;A;B;C", "index.csv"),
            ("\tA\tB\tC", "index.tsv"),
        ],
    )
    def test_a_first_column_without_a_name_names_the_voters(self, head, name):
        separator = next(mark for mark in ",;\t" if mark in head)
        text = f"{head}\n0,1,2,3\n1,3,2,1\n2,9,9,0\n".replace(",", separator).encode()
        Path(name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
        assert ranked(name) == pytest.approx({"A": 13 / 3, "B": 13 / 3, "C": 4 / 3})
        told = f"note: {name}: the first column, which has no name, is read as the names of the voters (--id chooses)"
        assert told in notes(f"aggregate {name}")
        table = pl.read_csv(run(f"cluster {name} -k 2").stdout.encode())
        assert table["row"].to_list() == [0, 1, 2]

    def test_it_is_left_out_where_another_column_has_the_names(self):
        Path("index.csv").write_text(",row,A,B\n0,x,1,2\n1,y,3,5\n")
        assert ranked("index.csv --id row") == {"B": 3.5, "A": 2}
        assert notes("aggregate index.csv --id row") == [
            "note: index.csv: the first column, which has no name, is left out"
        ]

    def test_long_tables_and_items_in_rows(self):
        Path("long.csv").write_text(",who,what,s\n0,x,a,1\n1,x,b,2\n2,y,b,4\n3,y,a,2\n")
        assert ranked("long.csv --long who,what,s") == {"b": 3, "a": 1.5}
        Path("rows.csv").write_text(",u1,u2\ntea,1,2\nrum,3,2\n")
        assert ranked("rows.csv --items-in rows") == {"rum": 2.5, "tea": 1.5}

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            (",A,B\n0,1,2\n1,x,3\n", "index.csv line 3, column 'A': 'x' is not a number"),
            (",A,\n0,1,2\n", "index.csv line 1: column 3 has no name"),
            (",A,B\n0,1,2,3\n", "index.csv line 2: the row has 4 fields, the header 3"),
            ("A,,B\n0,1,2\n", "index.csv line 1: column 2 has no name"),
        ],
    )
    def test_errors_name_the_file(self, text, told):
        Path("index.csv").write_text(text)
        assert run("aggregate index.csv", code=2).output.startswith(f"error: {told}")


class TestCells:
    def test_only_columns_that_are_not_plain_numbers_are_read_one_by_one(self, monkeypatch):
        frame = pl.DataFrame(
            {
                "plain": ["1", "2.5", None],
                "words": ["NA", " 3 ", "1e1"],
                "truth": ["true", "false", "true"],
                "whole": pl.Series([4, None, 6], dtype=pl.Int8),
                "yes": [True, False, None],
                "kinds": pl.Series(["7", "8", "9"], dtype=pl.Categorical),
            }
        )
        frame.write_parquet("mixed.parquet")
        looked, read = [], columns.numbers
        monkeypatch.setattr(
            columns, "numbers", lambda table, name, *more: looked.append(name) or read(table, name, *more)
        )
        expected = {"kinds": 8, "words": 6.5, "whole": 5, "plain": 1.75, "truth": 2 / 3, "yes": 0.5}
        assert ranked("mixed.parquet") == pytest.approx(expected)
        assert looked == ["words", "truth", "kinds"]

    @pytest.mark.parametrize("cell", ["1,5", "-1.234,5", "1,500", "1,500,000.5"])
    def test_cells_with_commas_may_be_numbers(self, cell):
        Path("odd.csv").write_text(f'voter,a,b\nx,1,"{cell}"\n')
        for options in ("", " --long voter,a,b"):
            error = run(f"aggregate odd.csv{options}", code=2).output
            assert (
                f"odd.csv line 2, column 'b': '{cell}' is not a number (decimal commas? --decimal-comma;"
                in error
            )

    def test_decimal_commas_of_scores(self):
        Path("comma.csv").write_text("voter;a;b\nx;1,5;2\ny;NN;,5\n")
        ranked = run("aggregate comma.csv --method combsum --decimal-comma --missing-marks NN --json").stdout
        assert {row["item"]: row["score"] for row in json.loads(ranked)["ranking"]} == {"a": 1.5, "b": 2.5}

    def test_other_cells_have_no_cause(self):
        Path("odd.csv").write_text("a,b\n1,2\n1,5-6\n")
        assert "'5-6' is not a number; correct it" in run("aggregate odd.csv", code=2).output

    def test_infinite_and_date_columns_are_refused(self):
        Path("inf.csv").write_text("a,b\n1,inf\n")
        assert "inf.csv line 2, column 'b': the value is infinite" in run("aggregate inf.csv", code=2).output
        pl.DataFrame({"a": [1, 2], "b": pl.Series([1, 2], dtype=pl.Date)}).write_parquet("day.parquet")
        assert "column 'b' holds Date values, not numbers" in run("aggregate day.parquet", code=2).output

    def test_a_column_whose_name_has_a_comma_can_be_dropped(self):
        Path("names.csv").write_text('voter,"Lee, Carl",b,c\nx,9,1,2\ny,9,1,3\n')
        for option in ("'Lee, Carl'", "'\"Lee, Carl\"'"):
            assert ranked(f"names.csv --drop {option}") == {"c": 2.5, "b": 1}
        assert "no column 'Lee'" in run("aggregate names.csv --drop 'Lee, Cy'", code=2).output


class TestAdvice:
    def test_an_item_that_nobody_scores_is_named(self):
        Path("wide.csv").write_text("a,b,c\n1,,3\n2,,1\n")
        Path("long.csv").write_text("v,i,s\nx,a,1\nx,b,\nx,c,3\n")
        Path("rows.csv").write_text("item,u,v\na,1,2\nb,,\nc,3,1\n")
        names = "".join(f"# ALTERNATIVE NAME {n}: {x}\n" for n, x in enumerate("acb", 1))
        Path("few.soi").write_text(f"{names}2: 1,2\n1: 2,1\n")
        layouts = (
            "wide.csv",
            "long.csv --long v,i,s",
            "rows.csv --items-in rows",
            "few.soi --missing ignore",
        )
        for command in layouts:
            told = "no voter has a score for 'b': remove the item, or use --missing last"
            assert told in run(f"aggregate {command}", code=2).output


GAPS = "a,b,c\n5,4,\n1,,3\n"


class TestNotesToPrograms:
    def test_missing_scores_and_ties(self):
        Path("gaps.csv").write_text(GAPS)
        assert notes("aggregate gaps.csv") == [
            "note: gaps.csv: 2 of 6 scores missing (no opinion)",
            "note: gaps.csv: tied: a = c",
        ]
        assert notes("aggregate gaps.csv --top 1") == ["note: gaps.csv: 2 of 6 scores missing (no opinion)"]
        sums = "note: gaps.csv: 2 of 6 scores missing (worth 0 in the sum, which counts against the item)"
        assert notes("aggregate gaps.csv --compare combsum,rrf") == [sums]
        assert sums in notes("aggregate gaps.csv --method rrf")
        told = "note: gaps.csv: 2 of 6 scores missing (taken as last)"
        assert notes("cluster gaps.csv -k 2 --missing last") == [told]
        assert notes("cluster gaps.csv --elbow 1-2 --missing last") == [told]
        for quiet in ("--json", "-o r.csv"):
            assert not notes(f"aggregate gaps.csv {quiet}")

    def test_an_order_that_is_not_proven(self):
        scores = np.random.default_rng(0).random((15, 16))
        pl.DataFrame(scores, schema=[f"i{n}" for n in range(16)]).write_csv("many.csv")
        for command in ("--method kemeny --top 2", "--compare borda,kemeny"):
            (told,) = notes(f"aggregate many.csv {command} --max-exact 0")
            assert told.startswith("note: many.csv: not proven best: the order contradicts ")
            assert told.endswith("(a proof takes --max-exact 15)")
            assert not notes(f"aggregate many.csv {command}")

    def test_missing_places_of_orders_that_were_cast_more_than_once(self):
        names = "".join(f"# ALTERNATIVE NAME {n}: {x}\n" for n, x in enumerate("abc", 1))
        Path("few.soi").write_text(f"{names}20: 1,2\n10: 1,3,2\n")
        told = "1 of 6 places missing, each order counted once (taken as last)"
        assert notes("aggregate few.soi") == [f"note: few.soi: {told}"]
        assert f"30 voters in 2 orders, 3 items, {told}" in run("aggregate few.soi -o r.csv").stdout


def test_confidence_is_not_shown_where_voters_ignore_items():
    Path("gaps.csv").write_text(GAPS)
    Path("full.csv").write_text("a,b,c\n5,4,1\n1,2,3\n")
    assert "confidence" not in run("aggregate gaps.csv -o r.csv").stdout
    assert json.loads(run("aggregate gaps.csv --json").stdout)["confidence"] is None
    compared = json.loads(run("aggregate gaps.csv --compare borda,combsum --json").stdout)
    assert [row["confidence"] for row in compared["methods"]] == [None, None]
    for command in ("gaps.csv --missing last", "full.csv"):
        assert "confidence 0." in run(f"aggregate {command} -o r.csv").stdout


def test_items_that_few_scored_come_last(tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("user,item,rating\nann,a,4\nann,z,5\nbob,a,5\nbob,b,3\ncy,a,4\ncy,b,2\n")

    def order(*options):
        answer = CliRunner().invoke(app, ["aggregate", str(path), "--long", "user,item,rating", *options])
        rows = [row.split(",") for row in answer.stdout.splitlines()[1:]]
        return answer, [row[1] for row in rows]

    assert order()[1] == ["z", "a", "b"]
    assert order("--min-support", "2")[1] == ["a", "b", "z"]
    refused, _ = order("--min-support", "9")
    assert refused.exit_code == 2
    assert "--min-support 9 is more than any item has: give at most 3" in refused.output
