"""The learning-to-rank study: its data sets, cells and verdicts."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from apexrank.cli.app import app
from apexrank.datasets import make_letor_example, write_letor
from apexrank.errors import InputError
from apexrank_papers.data.sources import MissingDataError
from apexrank_papers.letor import sets, study
from apexrank_papers.letor.study import BASE, MEASURES, OURS

ROUNDS = (5, 10)


def cell(name, fold, ranker, values, queries=None):
    queries = queries or [f"{fold}-{i}" for i in range(len(values))]
    measures = {measure: list(values) for measure in MEASURES}
    return {"set": name, "fold": fold, "ranker": ranker, "queries": queries, **measures, "seconds": 1.0}


def write(path, cells):
    path.write_text("".join(json.dumps(one) + "\n" for one in cells))
    return str(path)


@pytest.fixture
def folder(tmp_path):
    made = make_letor_example(n_queries=25, random_state=0)
    write_letor(tmp_path / "made.txt.gz", made.data, made.target, made.groups)
    return tmp_path


def test_roles_are_disjoint():
    roles = [*sets.CHOOSE, *sets.CLAIM, *sets.APART]
    assert len({*roles}) == len(roles) == 47


def test_a_table_is_ranked_inside_its_queries():
    frame = pl.DataFrame(
        {
            "school": ["a b"] * 6 + ["c"] * 14 + ["d"] * 4,
            "class": [1] * 24,
            "score": [*range(23), None],
            "text": ["x", "y"] * 12,
            "number": [1.0, None, 3.0] * 8,
            "same": [1] * 24,
            "later": [*range(24)],
        }
    )
    X, y, queries = sets.ranked(frame, ("school", "class"), "score", ("later",), 1)
    assert dict(zip(*np.unique(queries, return_counts=True), strict=True)) == {"a_b:1": 6, "c:1": 12}
    assert X.shape == (18, 3)  # two indicators and a number
    known = X[:, -1][np.isin(X[:, -1], [1, 3])]
    assert X[:, -1].mean() == pytest.approx(known.mean())
    assert len(known) < 18
    assert np.bincount(y.astype(int)).tolist() == [4, 3, 4, 3, 4]
    assert y[queries == "a_b:1"].max() <= 1  # the lower fifths
    graded = sets.ranked(frame.with_columns(score=pl.col("score") % 3), ("school",), "score").y
    assert set(graded) == {0, 1, 2}
    long = frame.with_columns(chosen=pl.int_range(24) % 3 == 0, case=pl.int_range(24) // 3)
    X, y, queries = sets.alternatives(long, "case", "chosen", ("score", "later", "class"), "school")
    assert y.sum() == 8
    assert queries[0] == "a b:0"


def test_every_query_is_tested_once_and_persons_stay_together(tmp_path):
    queries = np.repeat([f"{person}:{i}" for person in range(20) for i in range(3)], 2)
    X = np.arange(len(queries), dtype=float)[:, None]
    write_letor(tmp_path / "made.txt", X, np.tile([0, 1], 60), queries)
    folds = sets.folds_of("made", str(tmp_path))
    assert sorted(np.concatenate([fold.test.groups for fold in folds])) == sorted(queries)
    for fold in folds:
        persons = [{query.split(":")[0] for query in part.groups} for part in fold[1:]]
        assert not persons[0] & persons[1]
        assert not persons[2] & (persons[0] | persons[1])
    with pytest.raises(MissingDataError, match="the set other is not in"):
        sets.folds_of("other", str(tmp_path))


def test_some_persons_have_all_of_their_choices():
    queries = np.array([f"{person}:{i}" for person in range(900) for i in range(2)])
    rows = sets.some_persons(sets.Rows(np.zeros((1800, 1)), np.zeros(1800), queries))
    assert len(rows.queries) == sets.MOST_QUERIES
    persons, counts = np.unique([query.split(":")[0] for query in rows.queries], return_counts=True)
    assert set(counts) == {2}
    assert len(persons) == 750


def test_a_run_keeps_its_cells_and_goes_on_from_them(folder, monkeypatch):
    pytest.importorskip("lightgbm")
    monkeypatch.setattr(study, "ROUNDS", ROUNDS)
    monkeypatch.setattr(study, "SHAPES", {"num_leaves": (4,)})
    monkeypatch.setattr(study, "DRAWS", 200)
    given = {"data": str(folder), "sets": ["made"], "methods": [OURS, BASE, "ridge"], "n_jobs": 1}
    cells = folder / "cells.jsonl"
    first = study.letor_study(**given, cells=str(cells))
    kept = cells.read_text().splitlines()
    assert len(kept) == 15
    ours = first.table.filter(ranker=OURS)
    assert ours["sets"].unique(maintain_order=True).to_list() == ["all", "other lists", "made"]
    assert (ours["difference"] == 0).all()
    cells.write_text("\n".join(kept[:-1]) + "\n")
    ran = []
    monkeypatch.setattr(study, "run_cell", lambda *key: ran.append(key) or json.loads(kept[-1]))
    again = study.letor_study(**given, cells=str(cells))
    assert len(ran) == 1
    assert again.table.equals(first.table)
    assert study.letor_study(cells=str(cells)).table.equals(first.table)


def test_differences_and_intervals_from_cells(tmp_path):
    rng = np.random.default_rng(0)
    base, gain = rng.uniform(0.3, 0.7, (5, 40)), rng.normal(0.05, 0.02, (5, 40))
    cells = [cell("Mode", fold, BASE, base[fold]) for fold in range(5)]
    cells += [cell("Mode", fold, OURS, base[fold] + gain[fold]) for fold in range(5)]
    cells += [cell("Mode", fold, "ridge", base[fold] + 2 * gain[fold]) for fold in range(5)]
    result = study.letor_study(cells=write(tmp_path / "cells.jsonl", cells))
    row = result.table.filter(sets="all", ranker=BASE, measure="MAP").row(0, named=True)
    assert row["difference"] == pytest.approx(gain.mean())
    half = 1.96 * gain.std() / np.sqrt(gain.size)
    assert [row["low"], row["high"]] == pytest.approx([gain.mean() - half, gain.mean() + half], abs=half / 10)
    assert row["mean"] == pytest.approx(base.mean())
    ridge = result.table.filter(sets="all", ranker="ridge", measure="MAP").row(0, named=True)
    assert ridge["difference"] == pytest.approx(-gain.mean())
    assert {verdict.word for verdict in result.verdicts} == {"yes"}
    assert result.figure is not None


def test_intervals_draw_persons():
    values, person = np.repeat([[0.0], [1.0]], 50, axis=0), np.repeat([0, 1], 50)
    low, high = study.bootstrap(values, person)
    assert (low[0], high[0]) == (0, 1)
    low, high = study.bootstrap(values, np.arange(100))
    assert 0.3 < low[0] < high[0] < 0.7


def test_a_ranker_that_lacks_cells_of_a_set_is_left_out_of_its_pools(tmp_path):
    cells = [
        cell(name, fold, ranker, [0.5, 0.6])
        for name in ("Mode", "MQ2008")
        for fold in range(5)
        for ranker in (OURS, BASE, "ridge")
        if (name, ranker) != ("MQ2008", "ridge")
    ]
    table = study.letor_study(cells=write(tmp_path / "cells.jsonl", cells)).table
    assert table.filter(ranker="ridge")["sets"].unique().sort().to_list() == ["Mode", "choices"]
    assert table.filter(ranker=BASE)["sets"].unique(maintain_order=True).to_list() == [
        "all",
        "choices",
        "other lists",
        "Mode",
        "MQ2008",
    ]


def test_cells_that_are_missing_or_broken_are_named(tmp_path, folder):
    path = tmp_path / "cells.jsonl"
    with pytest.raises(MissingDataError, match="--data DIR"):
        study.letor_study()
    write(path, [cell("Mode", 0, OURS, [0.5]), cell("Mode", 0, BASE, [0.5])])
    with pytest.raises(InputError, match="no set is complete: run the missing cells"):
        study.letor_study(cells=str(path))
    write(path, [cell("Mode", fold, OURS, [0.5]) for fold in range(5)])
    with pytest.raises(InputError, match="one of them is missing"):
        study.letor_study(cells=str(path))
    path.write_text("{}\n")
    found = CliRunner().invoke(app, ["reproduce", "letor-study", "--cells", str(path)])
    assert found.exit_code == 2
    assert "cells.jsonl line 1 is not a cell" in found.stderr
    with pytest.raises(InputError, match="'ridg' is not an installed ranker"):
        study.letor_study(data=str(folder), methods=["ridg"])


def test_the_command_line_prints_the_table(tmp_path):
    cells = [cell("Mode", fold, one, [0.5, 0.25 * fold]) for fold in range(5) for one in (OURS, BASE)]
    out = tmp_path / "out"
    command = [
        "reproduce",
        "letor-study",
        "--cells",
        write(tmp_path / "cells.jsonl", cells),
        "--out",
        str(out),
    ]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.stderr
    assert "cannot tell: +0.0000" in found.stdout
    assert len(pl.read_csv(out / "letor-study.csv")) == 18
    assert (out / "letor-study.png").stat().st_size > 1000
