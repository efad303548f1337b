"""Conversion between table formats: bit-identical LETOR–Parquet round trips, errors, and the verb ``convert``."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from apexrank.cli.app import app
from apexrank.datasets import make_letor_example, read_letor, write_letor
from apexrank.errors import InputError
from apexrank.io import convert_table, read_table


@pytest.fixture
def letor(tmp_path):
    example = make_letor_example(n_queries=5, random_state=0)
    data = example.data.copy()
    data[0, 0], data[1, 1] = np.nan, 1e300
    write_letor(tmp_path / "x.txt", data, example.target, example.groups, example.docids)
    return tmp_path / "x.txt"


@pytest.mark.parametrize("name", ["x.parquet", "x.csv.gz"])
def test_there_and_back(letor, name):
    there = letor.with_name(name)
    assert convert_table(letor, there).frame.height == read_table(there).frame.height
    back = letor.with_name("back.txt.gz")
    convert_table(there, back)
    for options in ({}, {"sparse": True}):
        ours, theirs = (read_letor(path, null="nan", **options) for path in (back, letor))
        found, expected = ((x.toarray() if options else x) for x in (ours.data, theirs.data))
        np.testing.assert_array_equal(found, expected)
        for key in ("target", "groups", "docids"):
            np.testing.assert_array_equal(ours[key], theirs[key])


def test_tables_of_other_origin(tmp_path):
    frame = pl.DataFrame({"b": [1.5, None], "qid": [7, 8], "new": [True, False], "relevance": [2, 0]})
    frame.write_parquet(tmp_path / "x.parquet")
    convert_table(tmp_path / "x.parquet", tmp_path / "x.svm")
    assert (tmp_path / "x.svm").read_text() == "2 qid:7 1:1.5 2:1.0\n0 qid:8 1:NULL 2:0.0\n"


@pytest.mark.parametrize(
    ("frame", "what"),
    [
        ({"qid": [1], "a": [1]}, "has no column 'relevance', which a LETOR file needs"),
        ({"relevance": [1], "a": [1]}, "has no column 'qid'"),
        (
            {"relevance": [1], "qid": [1], "city": ["Rome"]},
            "column 'city' of .* does not hold numbers: drop it",
        ),
    ],
)
def test_faults(tmp_path, frame, what):
    pl.DataFrame(frame).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match=what):
        convert_table(tmp_path / "x.parquet", tmp_path / "x.txt")
    assert not (tmp_path / "x.txt").exists()


def test_command_line(letor):
    there = letor.with_name("x.parquet")
    result = CliRunner().invoke(app, ["convert", str(letor), str(there)])
    assert result.exit_code == 0, result.output
    rows = read_table(there).frame
    assert f"{rows.height} rows, {rows.width} columns" in result.output
    result = CliRunner().invoke(app, ["convert", str(there), str(letor.with_name("y.csv")), "--json"])
    assert json.loads(result.output)["columns"] == rows.columns
    for wrong, what in ((letor.with_name("x.xlsx"), "by its name"), (letor, "is also an input")):
        result = CliRunner().invoke(app, ["convert", str(letor), str(wrong)])
        assert result.exit_code == 2
        assert what in result.output
