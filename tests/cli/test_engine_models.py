"""``fit``, ``evaluate`` and ``rank`` on data on disk: every linear model, LETOR folders, errors during a run."""

import json
import re

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import apexrank
from apexrank.cli.app import app
from apexrank.datasets.letor import write_letor
from apexrank.errors import InputError
from apexrank.io import Recipe, stream
from apexrank.io.stream import TableBlocks, fit_table_blocks, read_blocks
from apexrank.rankers import MonotoneRetargeting, PNormPush, PNormPushCV

TWO_CLASSES = {
    "push": [],
    "push, p = inf": ["-p", "inf"],
    "push, elastic net": ["--l1-ratio", "0.5"],
    "push, lasso": ["--l1-ratio", "1"],
    "push, hinge": ["--loss", "squared_hinge"],
    "push in groups": ["--groups", "q"],
    "logistic": ["--model", "logistic"],
    "ir": ["--model", "ir"],
    "rankboost": ["--model", "rankboost", "--max-iter", "20"],
}
GRADED = {
    "retarget": ["--model", "retarget", "--divergence", "kl"],
    "listwise": ["--model", "listwise", "--loss", "ndcg_consistent"],
    "listwise, unknown link": ["--model", "listwise", "--loss", "unknown_link"],
    "pairs": ["--model", "pairs"],
}


def run(*args):
    result = CliRunner().invoke(app, list(map(str, args)))
    return result.exit_code, result.stdout + result.stderr


def rows(n_groups=60, seed=0):
    rng = np.random.default_rng(seed)
    q = np.repeat(np.arange(n_groups), rng.integers(4, 15, n_groups))
    x = rng.normal(size=(len(q), 2)) * [1.0, 100.0]
    quality = x[:, 0] - x[:, 1] / 100 + rng.normal(size=len(q))
    clear = x[:, 0] - x[:, 1] / 100 + 0.2 * rng.normal(size=len(q)) > 1.0
    return pl.DataFrame(
        {
            "doc": np.arange(len(q)),
            "q": q,
            "a": x[:, 0],
            "b": x[:, 1],
            "times": rng.integers(1, 3, len(q)),
            "stars": np.digitize(quality, [-1.0, 0.5, 2.0]),
            "good": np.where(clear, "yes", "no"),
        }
    )


@pytest.fixture
def folder(tmp_path):
    """Two files that split a group, and the same rows as one file beside the folder."""
    frame, data = rows(), tmp_path / "data"
    data.mkdir()
    frame[:301].write_parquet(data / "a.parquet")
    frame[301:].write_parquet(data / "b.parquet")
    frame.write_parquet(tmp_path / "rows.parquet")
    return data


def same_fit(folder, tmp_path, options, engine, rtol):
    for data, more, name in ((folder, engine, "there"), (tmp_path / "rows.parquet", [], "here")):
        code, text = run("fit", data, *options, *more, "--json", "-o", tmp_path / f"{name}.apex")
        assert code == 0, text
    found, expected = apexrank.load(tmp_path / "there.apex"), apexrank.load(tmp_path / "here.apex")
    np.testing.assert_allclose(found.coef, expected.coef, rtol=rtol, atol=rtol * np.abs(expected.coef).max())
    assert found.training["rows"] == expected.training["rows"]
    gap = found.training.get("dual_gap")
    assert gap is None or gap != gap or gap < 1e-5


def asked(model):
    options = [*(GRADED | TWO_CLASSES)[model], "--weight", "times", "--id", "doc"]
    options += [] if model in ("rankboost", "ir", "push, lasso") else ["--alpha", "0.05"]
    if model in GRADED:
        return [*options, "--target", "stars", "--groups", "q", "--drop", "good"]
    return [*options, "--target", "good", "--drop", "stars" if "--groups" in options else "stars,q"]


@pytest.mark.slow
@pytest.mark.parametrize("model", [*TWO_CLASSES, *GRADED])
def test_every_linear_model_in_blocks(folder, tmp_path, model):
    same_fit(folder, tmp_path, asked(model), [], rtol=1e-3 if "inf" in model else 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["push in groups", "retarget", "logistic"])
def test_models_on_dask_workers(folder, tmp_path, model):
    same_fit(folder, tmp_path, asked(model), ["--engine", "dask", "--workers", "2"], rtol=1e-5)


# ---------------------------------------------------------------- LETOR


@pytest.fixture
def letor(tmp_path):
    """A folder of two LETOR files, and all rows in one file beside it."""
    frame, data = rows(), tmp_path / "letor"
    data.mkdir()
    X, y, groups = frame.select("a", "b").to_numpy(), frame["stars"].to_numpy(), frame["q"].to_numpy()
    cut = int((groups < 30).sum())
    write_letor(data / "part1.txt", X[:cut], y[:cut], groups[:cut], np.arange(cut))
    write_letor(data / "part2.txt.gz", X[cut:], y[cut:], groups[cut:], np.arange(cut, len(y)))
    write_letor(tmp_path / "rows.txt", X, y, groups, np.arange(len(y)))
    return data


@pytest.mark.parametrize("scale", ["standard", "query"])
def test_letor_folders_are_fitted_evaluated_and_ranked(letor, tmp_path, scale):
    whole = tmp_path / "rows.txt"
    for data, engine, name in (
        (letor, [], "there"),
        (whole, ["--engine", "blocks"], "blocks"),
        (whole, [], "here"),
    ):
        asked = ["--model", "retarget", "--scale", scale, *engine, "-o", tmp_path / f"{name}.apex"]
        code, text = run("fit", data, *asked)
        assert code == 0, text
    models = [apexrank.load(tmp_path / f"{name}.apex") for name in ("there", "blocks", "here")]
    for model in models[:2]:
        np.testing.assert_allclose(model.coef, models[2].coef, rtol=1e-6)
        assert (model.target, model.groups, model.id) == ("relevance", "qid", "docid")
    reports, lists = [], []
    for data in (letor, whole):
        code, text = run("evaluate", tmp_path / "here.apex", data, "--json")
        assert code == 0, text
        reports.append(json.loads(text))
        code, text = run("rank", tmp_path / "here.apex", data, "--top", "2", "-o", tmp_path / "best.csv")
        assert code == 0, text
        lists.append((tmp_path / "best.csv").read_text())
    assert reports[0] == reports[1]
    assert lists[0] == lists[1]


def test_a_fold_is_not_taken_for_training_rows(letor, tmp_path):
    for old, new in (("part1.txt", "train.txt"), ("part2.txt.gz", "test.txt.gz")):
        (letor / old).rename(letor / new)
    code, text = run("fit", letor, "--model", "retarget", "-o", tmp_path / "m.apex")
    assert (code, (tmp_path / "m.apex").exists()) == (2, False)
    assert re.search(
        r"'test.txt.gz', 'train.txt', a fold of training and test rows: give .*train.txt'$", text.strip()
    )


def test_evaluate_and_rank_of_folders(folder, tmp_path):
    """Rows without a target, weights and two classes give the same result as in memory."""
    options = ["--target", "good", "--drop", "stars,q", "--id", "doc", "--weight", "times"]
    assert run("fit", tmp_path / "rows.parquet", *options, "-o", tmp_path / "m.apex")[0] == 0
    missing = rows().with_columns(pl.when(pl.col("doc") % 50 == 7).then(None).otherwise("good").alias("good"))
    missing[:100].write_parquet(folder / "a.parquet")
    missing[100:].write_parquet(folder / "b.parquet")
    missing.write_parquet(tmp_path / "rows.parquet")
    told = []
    for data in (folder, tmp_path / "rows.parquet"):
        code, text = run("evaluate", tmp_path / "m.apex", data, "--json")
        assert code == 0, text
        told.append(text.replace(str(data), "DATA"))
    assert told[0] == told[1]
    assert "left out" in told[0]
    for more in ([], ["--top", "5%"], ["--fpr", "0.1"], ["--format", "trec"]):
        lists = []
        for data in (folder, tmp_path / "rows.parquet"):
            output = tmp_path / ("best.run" if "trec" in more else "best.csv")
            code, text = run("rank", tmp_path / "m.apex", data, *more, "-o", output)
            assert code == 0, text
            lists.append(output.read_text())
        assert lists[0] == lists[1]
    for more in (["--explain"], ["--keep"], ["--sep", ";"]):
        code, text = run("rank", tmp_path / "m.apex", folder, *more)
        assert code == 2
        assert re.search(r"leave (out|them out)", text)
    missing[100:].cast({"doc": pl.String}).write_parquet(folder / "b.parquet")
    code, text = run("rank", tmp_path / "m.apex", folder)
    assert code == 2
    assert "differ in their columns" in text


# ---------------------------------------------------------------- faults


def refused(folder, tmp_path, *options):
    code, text = run("fit", folder, *options, "-o", tmp_path / "m.apex")
    assert (code, (tmp_path / "m.apex").exists()) == (2, False), text
    (line,) = [line for line in text.strip().splitlines() if not line.startswith("note:")]
    return line


PUSH = ["--target", "good", "--drop", "stars", "--id", "doc"]


def test_a_broken_part(folder, tmp_path):
    content = (folder / "b.parquet").read_bytes()
    (folder / "b.parquet").write_bytes(content[: len(content) // 2])
    assert "b.parquet" in refused(folder, tmp_path, *PUSH)
    middle = len(content) // 2
    (folder / "b.parquet").write_bytes(content[: middle - 900] + bytes(900) + content[middle:])
    assert "b.parquet" in refused(folder, tmp_path, *PUSH)


@pytest.mark.parametrize("fault", ["missing", "shorter", "other rows"])
@pytest.mark.parametrize("data", ["folder", "letor"])
def test_a_file_that_changes_between_passes(folder, letor, tmp_path, monkeypatch, data, fault):
    """Remove or rewrite the last file when the second pass begins."""
    path = letor / "part2.txt.gz" if data == "letor" else folder / "b.parquet"
    plain, done = stream._stats, []

    def meddling(table, *args):
        if not done:
            done.append(path.stat())
            path.unlink()
            other = rows(seed=1)[301 : 400 if fault == "shorter" else None]
            if fault != "missing" and data == "letor":
                write_letor(path, other.select("a", "b"), other["stars"], other["q"])
            elif fault != "missing":
                other.write_parquet(path)
        return plain(table, *args)

    monkeypatch.setattr(stream, "_stats", meddling)
    options = ["--model", "retarget"] if data == "letor" else PUSH
    line = refused(letor if data == "letor" else folder, tmp_path, *options)
    assert path.name in line
    assert "changed while it was being read" in line or "cannot read" in line


def test_files_with_other_columns_or_types(folder, tmp_path):
    frame = rows()
    frame[301:].drop("b").write_parquet(folder / "b.parquet")
    assert "b.parquet has no column 'b'" in refused(folder, tmp_path, *PUSH)
    named = [*PUSH, "--features", "a,b"]
    for values in (pl.lit("high"), pl.Series(["high", "low"] * 200)[: len(frame) - 301]):
        frame[301:].with_columns(b=values).write_parquet(folder / "b.parquet")
        line = refused(folder, tmp_path, *named)
        assert "column 'b' cannot be used (number values in some files and text in others)" in line
    frame[301:].with_columns(b=pl.struct("a")).write_parquet(folder / "b.parquet")
    assert "column 'b' cannot be used (Struct" in refused(folder, tmp_path, *named)
    # unless requested, such a column is dropped with a note, as in memory
    frame[301:].with_columns(b=pl.lit("high")).write_parquet(folder / "b.parquet")
    code, text = run("fit", folder, *PUSH, "-o", tmp_path / "m.apex")
    assert code == 0
    assert "left out: 'b' (number values in some files and text in others)" in text
    frame[301:].cast({"b": pl.String}).write_parquet(folder / "b.parquet")  # numbers written as text
    same_fit(folder, tmp_path, PUSH, [], rtol=1e-8)


@pytest.mark.parametrize(
    "end", [b"1 qid:59 1:0.5 2", b"1 qid:59 1:0.5 2:", b"1 qid:", b"1 q", b"1 qid:59 1:0.5 2:1e"]
)
def test_a_letor_file_that_ends_inside_a_line(letor, tmp_path, end):
    path = letor / "part1.txt"
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines, end]))
    assert f"part1.txt line {len(lines) + 1}: " in refused(letor, tmp_path, "--model", "retarget")
    packed = letor / "part2.txt.gz"
    path.write_bytes(b"\n".join(lines))
    packed.write_bytes(packed.read_bytes()[:-40])
    assert "gzip data end early" in refused(letor, tmp_path, "--model", "retarget")


def test_a_group_in_far_apart_blocks(tmp_path):
    """A fit without groups is one group; scaling within groups then raises an error."""
    frame = rows()
    far = pl.concat([frame[3:], frame[:3]])
    far.write_parquet(tmp_path / "rows.parquet")
    ranker = MonotoneRetargeting(tol=1e-9)
    blocks = read_blocks(tmp_path, "stars", features=["a", "b"], groups="q", rows=50)
    found = ranker.fit(blocks, None).coef_
    expected = MonotoneRetargeting(tol=1e-9).fit(
        frame.select("a", "b").to_numpy(), frame["stars"].to_numpy(), groups=frame["q"].to_numpy()
    )
    np.testing.assert_allclose(found, expected.coef_, rtol=1e-8)
    recipe = Recipe(target="stars", graded=True, groups="q", scale="query", drop=["good", "doc", "times"])
    with pytest.raises(InputError, match="group 0 has rows in block 0 and in block"):
        fit_table_blocks(tmp_path, recipe, MonotoneRetargeting(), rows=50)


def test_blocks_of_letor_text_keep_queries_whole(letor):
    blocks = TableBlocks(letor, rows=50, groups="qid")
    seen = [table.column("qid").unique().to_list() for table in blocks.tables()]
    assert len(seen) > 5
    assert sum(map(len, seen)) == 60
    assert sum(map(len, blocks.tables())) == len(rows())


def test_memory_of_gathered_scores_is_noted(folder, monkeypatch):
    monkeypatch.setattr(stream, "MANY_ROWS", 100)
    monkeypatch.setattr(stream, "BYTES_A_ROW", 10_000_000)
    recipe = Recipe(target="good", drop=["stars", "q", "doc"])
    n = len(rows())
    told = f"labels and scores of all {n} rows were kept in memory: about {n / 100:.1f} GB"
    for options, expected in (({}, False), ({"loss": "logistic"}, True), ({"p": np.inf}, True)):
        _, judged = fit_table_blocks(folder, recipe, PNormPush(alpha=0.1, **options))
        assert (told in judged.notes) == expected
    _, judged = fit_table_blocks(folder, recipe, PNormPushCV([4], cv=2))
    assert told in judged.notes
