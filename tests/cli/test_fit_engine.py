"""``apexrank fit --engine``: model files from tables that are read in blocks of rows."""

import json
import subprocess
import sys
import weakref

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import apexrank
from apexrank.cli.app import app
from apexrank.errors import InputError
from apexrank.io import Recipe, TableRanker, read_table
from apexrank.io.drift import MOST_VALUES
from apexrank.io.encode import MOST_KEPT, NumberStats, cell_stats, merge_stats
from apexrank.io.stream import (
    Span,
    TableBlocks,
    fit_table_blocks,
    map_tables,
    read_blocks,
    sample_table,
)
from apexrank.io.types import Category, Number, parse_columns, table_columns
from apexrank.rankers.push import PNormPush
from apexrank.rankers.retarget import MonotoneRetargeting
from tests.io.encoders import linear_features


def claims(n=600, seed=0):
    rng = np.random.default_rng(seed)
    amount, age = rng.lognormal(size=n), rng.normal(40, 10, n)
    city = rng.choice(["Oslo", "Rome", "Lima"], n)
    fraud = amount + (city == "Lima") + rng.normal(size=n) > 2.5
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "amount": np.where(rng.random(n) < 0.05, None, amount).astype(float),
            "age": age,
            "city": city,
            "times": rng.integers(1, 3, n),
            "fraud": np.where(fraud, "yes", "no"),
        }
    ).with_columns(pl.col("amount").fill_nan(None))


def queries(n_groups=40, seed=0):
    rng = np.random.default_rng(seed)
    q = np.repeat(np.arange(n_groups), rng.integers(2, 15, n_groups))
    x = rng.normal(size=(len(q), 2)) * [1.0, 100.0]
    stars = np.digitize(x[:, 0] - x[:, 1] / 100 + rng.normal(size=len(q)), [-1.0, 0.5, 2.0])
    return pl.DataFrame({"q": [f"q{k:03d}" for k in q], "a": x[:, 0], "b": x[:, 1], "stars": stars})


@pytest.fixture
def folder(tmp_path):
    """A folder of three Parquet files, and the same rows as one CSV file beside it."""
    frame, data = claims(), tmp_path / "data"
    data.mkdir()
    for k in range(3):
        frame[200 * k : 200 * (k + 1)].write_parquet(data / f"{k}.parquet", row_group_size=64)
    frame.write_csv(tmp_path / "claims.csv")
    return data


RECIPE = Recipe(
    target="fraud", id="id", weight="times", categorical=["all"], impute="median", scale="standard"
)


def run(*args):
    result = CliRunner().invoke(app, ["fit", *map(str, args)])
    return result.exit_code, result.stdout + result.stderr


def stats(table, columns, impute):
    return cell_stats(parse_columns(table, columns), columns, impute)


def same_model(found, expected, rtol=1e-8):
    np.testing.assert_allclose(found.coef, expected.coef, rtol=rtol, atol=1e-10)
    assert found.encoder.features == expected.encoder.features
    for own, other in zip(found.encoder.columns, expected.encoder.columns, strict=True):
        assert own.fill == (other.fill if other.fill is None else pytest.approx(other.fill, rel=1e-12))
    np.testing.assert_allclose(found.encoder.center, expected.encoder.center, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.encoder.scale, expected.encoder.scale, rtol=1e-12)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-9, atol=1e-12)
    for name in ("target", "positive", "id", "groups", "ignored"):
        assert getattr(found, name) == getattr(expected, name)
    assert found.training["rows"] == expected.training["rows"]
    assert found.training["positives"] == expected.training["positives"]


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["standard", "minmax", "none"])
@pytest.mark.parametrize("impute", ["median", "mean"])
@pytest.mark.parametrize("kind", ["folder", "csv"])
def test_a_fit_in_blocks_has_the_model_of_one_in_memory(folder, kind, impute, scale):
    path = folder if kind == "folder" else folder.parent / "claims.csv"
    recipe = Recipe(**{**vars(RECIPE), "impute": impute, "scale": scale})
    ranker, judged = fit_table_blocks(path, recipe, PNormPush(p=2, alpha=0.1, tol=1e-10), rows=90)
    table = read_table(folder.parent / "claims.csv")
    expected = TableRanker.fit(table, recipe, PNormPush(p=2, alpha=0.1, tol=1e-10))
    same_model(ranker, expected)
    np.testing.assert_allclose(judged.scores, expected.score(table), rtol=1e-8)
    np.testing.assert_allclose(ranker.thresholds.scores, expected.thresholds.scores, rtol=1e-7)
    assert ranker.thresholds.total == expected.thresholds.total


@pytest.mark.parametrize("scale", ["standard", "query"])
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.slow
def test_groups_stay_whole(tmp_path, suffix, scale):
    path = tmp_path / f"rows.{suffix}"
    getattr(queries(), f"write_{suffix}")(path)
    recipe = Recipe(target="stars", graded=True, groups="q", scale=scale)
    ranker, judged = fit_table_blocks(path, recipe, MonotoneRetargeting(tol=1e-10), rows=25)
    table = read_table(path)
    expected = TableRanker.fit(table, recipe, MonotoneRetargeting(tol=1e-10))
    same_model(ranker, expected)
    np.testing.assert_array_equal(judged.groups, expected.group_ids(table))


@pytest.mark.slow
def test_groups_may_be_apart(tmp_path):
    shuffled = queries().sample(fraction=1, shuffle=True, seed=0)
    shuffled.write_parquet(tmp_path / "rows.parquet")
    found = (
        MonotoneRetargeting(tol=1e-10).fit(read_blocks(tmp_path, "stars", groups="q", rows=25), None).coef_
    )
    whole = tmp_path / "whole.csv"
    queries().write_csv(whole)
    expected = MonotoneRetargeting(tol=1e-10).fit(read_blocks(whole, "stars", groups="q"), None).coef_
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_a_group_in_two_small_files_is_refused_where_it_is_scaled_by_itself(tmp_path):
    queries()[::2].write_parquet(tmp_path / "a.parquet")
    queries()[1::2].write_parquet(tmp_path / "b.parquet")
    recipe = Recipe(target="stars", graded=True, groups="q", scale="query")
    with pytest.raises(InputError, match="has rows in block 0 and in block 1"):
        fit_table_blocks(tmp_path, recipe, MonotoneRetargeting())


@pytest.mark.parametrize(
    ("options", "groups"),
    [
        ({"loss": "logistic", "p": 2, "tol": 1e-8}, None),
        ({"p": 2, "l1_ratio": 0.5, "tol": 1e-9}, None),
        # L-BFGS, whose line search cannot see slopes under about 2e-8
        ({"p": 2, "tol": 1e-7}, "city"),
    ],
    ids=["logistic", "elastic net", "groups"],
)
def test_every_push_in_blocks(folder, options, groups):
    recipe = Recipe(**{**vars(RECIPE), "groups": groups, "drop": ["city"] if groups is None else []})
    ranker, _ = fit_table_blocks(folder, recipe, PNormPush(alpha=0.1, **options), rows=90)
    table = read_table(folder.parent / "claims.csv")
    same_model(ranker, TableRanker.fit(table, recipe, PNormPush(alpha=0.1, **options)), rtol=1e-5)


@pytest.mark.parametrize("rows", [7, 90, 10_000])
def test_blocks_are_the_rows_of_the_files(folder, rows):
    for path in (folder, folder.parent / "claims.csv"):
        blocks = read_blocks(path, "fraud", features=["age"], sample_weight="times", rows=rows)
        parts = list(blocks)
        np.testing.assert_array_equal(np.concatenate([part.X[:, 0] for part in parts]), claims()["age"])
        np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), claims()["fraud"])
        np.testing.assert_array_equal(np.concatenate([part.weight for part in parts]), claims()["times"])
        assert max(len(part.y) for part in parts) <= max(rows, 8)


def test_a_block_is_read_in_pieces(tmp_path):
    frame = claims(20_000)
    frame.write_parquet(tmp_path / "rows.parquet", row_group_size=1000)
    frame.write_csv(tmp_path / "rows.csv")
    for rows, sizes in (
        (16_000, [4096, 4096, 4096, 4096, 3616]),
        (40_000, [5000] * 4),
        (300, [300] * 66 + [200]),
    ):
        pieces = TableBlocks(tmp_path / "rows.parquet", rows=rows).pieces
        assert [piece.rows for piece in pieces] == sizes
        assert [piece.first for piece in pieces] == [0, *np.cumsum(sizes[:-1])]
    for suffix in ("parquet", "csv"):
        parts = list(read_blocks(tmp_path / f"rows.{suffix}", "fraud", features=["age"], rows=9000))
        assert len(parts) in (2, 3)
        np.testing.assert_array_equal(np.concatenate([part.X[:, 0] for part in parts]), frame["age"])


def test_csv_records_with_line_breaks_and_short_lines(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text('x,note,y\n1,"two\nlines, ""quoted""",0\n2,plain,1\n3,"a\n\nb",0\n\n4,z,1\n')
    parts = list(read_blocks(path, "y", features=["x"], rows=1))
    assert np.concatenate([part.X[:, 0] for part in parts]).tolist() == [1.0, 2.0, 3.0, 4.0]
    path.write_text("x,y\n1,0\n2\n3,1\n")
    with pytest.raises(InputError, match="line 3: the row has 1 field, "):
        list(read_blocks(path, "y", rows=1))


def test_an_error_names_the_place_in_the_file(folder):
    claims()[:50].with_columns(pl.lit("x").alias("age")).write_parquet(folder / "9.parquet")
    with pytest.raises(InputError, match=r"9\.parquet row 1, column 'age': 'x' is not a number"):
        list(read_blocks(folder, "fraud", features=["age"], rows=40))
    assert Span(str(folder / "0.parquet"), 150, 10).read().where(3, "age").endswith("row 154, column 'age'")


def test_statistics_of_parts_are_those_of_the_whole():
    rng = np.random.default_rng(0)
    column = np.where(rng.random(1000) < 0.1, np.nan, rng.normal(3, 2, 1000))
    whole = NumberStats.of(column[:1])
    for a, b in ((1, 10), (10, 400), (400, 1000)):
        whole |= NumberStats.of(column[a:b])
    filled = np.where(np.isnan(column), np.nanmedian(column), column)
    assert whole.fill("median") == pytest.approx(np.nanmedian(column), rel=1e-15)
    assert whole.fill("mean") == pytest.approx(np.nanmean(column), rel=1e-14)
    center, scale = whole.scaling(whole.fill("median"), "standard")
    assert (center, scale) == pytest.approx((filled.mean(), filled.std()), rel=1e-13)
    assert whole.scaling(0.0, "minmax") == pytest.approx((filled.min(), np.ptp(filled)), rel=1e-14)


def test_the_median_of_many_values_is_off_by_less_than_a_thousandth_of_the_rows():
    rng = np.random.default_rng(0)
    parts = [rng.exponential(size=150_000) + k for k in range(8)]
    stats = NumberStats.of(parts[0])
    for part in parts[1:]:
        stats |= NumberStats.of(part)
    rank = np.mean(np.concatenate(parts) < stats.fill("median"))
    assert abs(rank - 0.5) < 1e-3
    assert len(stats.values) <= 2**17


def test_the_command_writes_a_model_that_ranks(folder, tmp_path):
    options = [
        "--target",
        "fraud",
        "--id",
        "id",
        "--categorical",
        "all",
        "--impute",
        "mean",
        "--alpha",
        "0.1",
    ]
    code, text = run(folder, *options, "--json", "-o", tmp_path / "blocks.apex")
    assert code == 0, text
    report = json.loads(text)
    assert report["rows"] == 600
    code, text = run(tmp_path / "claims.csv", *options, "--json", "-o", tmp_path / "memory.apex")
    assert code == 0, text
    in_memory = json.loads(text)
    assert report["measures"] == pytest.approx(in_memory["measures"], rel=1e-9)
    found, expected = apexrank.load(tmp_path / "blocks.apex"), apexrank.load(tmp_path / "memory.apex")
    same_model(found, expected, rtol=1e-5)
    result = CliRunner().invoke(app, ["rank", str(tmp_path / "blocks.apex"), str(tmp_path / "claims.csv")])
    assert result.exit_code == 0, result.output


@pytest.mark.slow
def test_dask_workers_read_the_files(folder, tmp_path):
    options = [
        "--target",
        "fraud",
        "--id",
        "id",
        "--categorical",
        "city",
        "--impute",
        "median",
        "--alpha",
        "0.1",
    ]
    for engine in (["dask", "--workers", "1"], ["blocks"]):
        code, text = run(folder, *options, "--engine", *engine, "-o", tmp_path / f"{engine[0]}.apex")
        assert code == 0, text
    same_model(apexrank.load(tmp_path / "dask.apex"), apexrank.load(tmp_path / "blocks.apex"))


@pytest.mark.parametrize(
    "engine", ["blocks", pytest.param("dask", marks=pytest.mark.slow)], ids=["blocks", "dask"]
)
def test_parameters_are_chosen_as_in_memory(folder, tmp_path, engine):
    """All fits of a search share each pass over the blocks; folds and choice equal those of the table in memory."""
    options = [
        "--target",
        "fraud",
        "--id",
        "id",
        "--weight",
        "times",
        "--categorical",
        "all",
        "--impute",
        "mean",
    ]
    options += ["--cv", "--folds", "3", "--scoring", "auc", "--json"]
    workers = ["--workers", "1"] if engine == "dask" else []
    code, text = run(folder, *options, "--engine", engine, *workers, "-o", tmp_path / "blocks.apex")
    assert code == 0, text
    found = json.loads(text)
    code, text = run(tmp_path / "claims.csv", *options, "-o", tmp_path / "memory.apex")
    assert code == 0, text
    expected = json.loads(text)
    assert found["params"]["p"] == expected["params"]["p"]
    assert found["params"]["alpha"] == pytest.approx(expected["params"]["alpha"], rel=1e-6)
    assert found["cv"]["score"] == pytest.approx(expected["cv"]["score"], abs=1e-5)
    same_model(apexrank.load(tmp_path / "blocks.apex"), apexrank.load(tmp_path / "memory.apex"), rtol=1e-4)


@pytest.mark.parametrize("model", ["retarget", "listwise", "pairs"])
def test_alpha_of_grades_is_chosen_as_in_memory(tmp_path, model):
    """Folds are whole groups, which blocks may share."""
    (tmp_path / "data").mkdir()
    frame = queries().with_columns(pl.Series("times", np.arange(queries().height) % 3))
    frame.write_parquet(tmp_path / "data" / "rows.parquet")
    frame.write_csv(tmp_path / "rows.csv")
    options = [
        "--target",
        "stars",
        "--groups",
        "q",
        "--weight",
        "times",
        "--model",
        model,
        "--cv",
        "--folds",
        "3",
    ]
    reports = []
    for source in (tmp_path / "data", tmp_path / "rows.csv"):
        command = ["fit", source, *options, "--json", "-o", tmp_path / "model.apex"]
        result = CliRunner().invoke(app, [str(word) for word in command])
        assert result.exit_code == 0, result.output
        reports.append(json.loads(result.stdout))
    found, expected = reports
    assert found["params"]["alpha"] == expected["params"]["alpha"]
    assert found["cv"] == pytest.approx(expected["cv"], abs=1e-6)
    assert found["coefficients"] == pytest.approx(expected["coefficients"], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "spark"], "unknown --engine 'spark': use one of blocks, dask"),
        (["--engine", "blocks", "--workers", "2"], "--engine dask"),
        (
            ["--model", "retarget", "--cv", "--target", "times"],
            "holds out whole groups: name their column with --groups",
        ),
        (["--categorical", "town"], "no column 'town'|not among the features"),
        (["--scale", "query"], "name the column of groups with --groups"),
        (["--scale", "odd"], "unknown --scale"),
        (["--impute", "odd"], "unknown --impute"),
        (["--features", "agee"], "did you mean 'age'"),
        (["--positive", "maybe"], "no value 'maybe'"),
        (["--features", "age,amount", "--impute", "none"], "the value is missing"),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_refused_in_one_line(folder, tmp_path, options, message):
    code, text = run(folder, "--target", "fraud", *options, "-o", tmp_path / "model.apex")
    assert code == 2
    (line,) = text.strip().splitlines()
    assert any(part in line for part in message.split("|")), line


def test_files_that_cannot_be_read(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "fake.parquet").write_text("x,y\n")
    pl.DataFrame({"x": [], "y": []}).write_parquet(tmp_path / "none.parquet")
    for path, message in (
        (tmp_path / "empty", "no Parquet or LETOR file"),
        (tmp_path / "fake.parquet", "as Parquet"),
        (tmp_path / "none.parquet", "no rows"),
        (tmp_path / "model.json", "in blocks"),
        (tmp_path / "model.txt", "no such file"),
    ):
        with pytest.raises(InputError, match=message):
            read_blocks(path, "y")
    code, text = run(tmp_path / "claims.csv", "--target", "fraud", "--engine", "dask")
    assert code == 2
    assert "--engine blocks" in text


def test_the_encoder_is_what_the_table_says(folder):
    table = read_table(folder.parent / "claims.csv")
    expected, _ = linear_features(table, table_columns(table, RECIPE).columns)
    found, _ = fit_table_blocks(folder, RECIPE, PNormPush(alpha=0.1), rows=90)
    assert found.encoder.features == expected.features


def test_the_output_may_not_be_a_file_that_is_read(folder, tmp_path):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (tmp_path / "link.apex").symlink_to(folder / "1.parquet")
    for output in (
        folder / "1.parquet",
        tmp_path / "link.apex",
        tmp_path / "data" / ".." / "data" / "0.parquet",
    ):
        code, text = run(folder, "--target", "fraud", "--drop", "city,amount", "-o", output)
        assert code == 2
        assert "is also an input" in text
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    code, text = run(folder, "--target", "fraud", "--drop", "city,amount", "-o", folder / "model.apex")
    assert code == 0, text


@pytest.mark.parametrize(
    ("impute", "kept"), [("median", MOST_KEPT), ("mean", MOST_VALUES), ("none", MOST_VALUES)]
)
def test_the_encoding_pass_holds_a_bounded_sample(tmp_path, impute, kept):
    n, rows = 400_000, 40_000
    rng = np.random.default_rng(0)
    pl.DataFrame({"x": rng.normal(size=n), "y": np.arange(n) % 2}).write_parquet(tmp_path / "rows.parquet")
    tables = TableBlocks(tmp_path / "rows.parquet", None, rows=rows)
    alive, most = [], 0

    def watched(table, *args):
        nonlocal most
        part = stats(table, *args)
        (sample,) = part["x"]
        alive.extend(weakref.ref(array) for array in (sample.values, sample.weights))
        del sample
        most = max(most, sum(ref().nbytes for ref in alive if ref() is not None))
        return part

    whole = map_tables(tables, watched, [Number("x")], impute, merge=merge_stats)["x"][0]
    assert len(alive) >= 2 * n / rows
    assert whole.n == n
    assert kept // 4 <= len(whole.values) <= kept
    assert most <= 2 * 2 * 8 * min(rows, kept)  # of one part, and of the one before it at most


def test_dask_merges_where_the_rows_are(tmp_path, monkeypatch):
    import dask

    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"x": rng.normal(size=900), "t": rng.choice(["a", "b"], 900), "y": np.arange(900) % 2}
    )
    frame.write_parquet(tmp_path / "rows.parquet")
    tables = TableBlocks(tmp_path, None, rows=20)
    sent, compute = [], dask.compute

    def watched(*tasks, **options):
        found = compute(*tasks, **options)
        sent.append(len(found))
        return found

    monkeypatch.setattr(dask, "compute", watched)
    columns = [Number("x"), Category("t", ("a", "b"))]
    found = map_tables(tables, stats, columns, "median", merge=merge_stats, dask=True)
    assert sent == [1]
    (x,) = found["x"]
    assert (x.n, found["t"].tolist()) == (900, [*frame["t"].value_counts().sort("t")["count"], 0, 0])
    assert x.fill("median") == pytest.approx(np.median(frame["x"]), rel=1e-14)
    assert x.mean == pytest.approx(frame["x"].mean(), rel=1e-12)
    assert map_tables(tables, len, dask=True) == [20] * 45


@pytest.mark.slow
@pytest.mark.parametrize("position", ["first", "middle", "last"])
def test_empty_files_in_a_folder_count_nothing(tmp_path, position):
    frame = queries()
    cut = int((frame["q"] < "q020").sum())
    order = {"first": "abc", "middle": "bac", "last": "cab"}[position]
    for name, part in zip(order, (frame[:0], frame[:cut], frame[cut:]), strict=True):
        part.write_parquet(tmp_path / f"{name}.parquet")
    ranker = MonotoneRetargeting(tol=1e-10).fit(read_blocks(tmp_path, "stars", groups="q", rows=25), None)
    columns = frame.select("a", "b").to_numpy()
    expected = MonotoneRetargeting(tol=1e-10).fit(
        columns, frame["stars"].to_numpy(), groups=frame["q"].to_numpy()
    )
    np.testing.assert_allclose(ranker.coef_, expected.coef_, rtol=1e-8)
    options = ["--target", "stars", "--groups", "q", "--model", "retarget", "-o", tmp_path / "m.apex"]
    code, text = run(tmp_path, *options)
    assert code == 0, text


def test_small_files_share_a_block(tmp_path):
    frame = claims(600)
    for k in range(30):
        frame[20 * k : 20 * (k + 1)].write_parquet(tmp_path / f"{k:02d}.parquet")
    parts = list(read_blocks(tmp_path, "fraud", features=["age"], rows=100))
    assert [len(part.y) for part in parts] == [100] * 6
    np.testing.assert_array_equal(np.concatenate([part.X[:, 0] for part in parts]), frame["age"])
    assert [len(part.y) for part in read_blocks(tmp_path, "fraud", features=["age"], rows=30)] == [20] * 30
    assert [len(part.y) for part in read_blocks(tmp_path, "fraud", features=["age"], rows=15)] == [15, 5] * 30


@pytest.mark.slow
def test_dask_names_the_first_bad_row_and_nothing_else(folder, tmp_path):
    """Two files have a bad value; the later one has fewer rows, so its task ends first."""
    frame = claims().with_columns(pl.col("age").cast(pl.String), pl.col("times").cast(pl.Float64))
    bad = frame.with_columns(
        pl.when(pl.col("id") % 200 == 150).then(pl.lit("old")).otherwise(pl.col("age")).alias("age")
    )
    for k, rows in enumerate((bad[200:400], bad[350:351], bad[550:551])):
        rows.write_parquet(folder / f"{k}.parquet")
    options = ["--target", "fraud", "--drop", "amount,city", "-o", str(tmp_path / "m.apex"), "--engine"]
    command = [sys.executable, "-c", "from apexrank.cli.app import app; app()", "fit", str(folder), *options]
    done = subprocess.run(
        [*command, "dask", "--workers", "2"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "0.parquet row 151, column 'age': 'old' is not a number" in done.stderr
    assert done.stderr == run(folder, *options, "blocks")[1]


def test_bad_weights_and_grades_are_found_before_the_fit(tmp_path):
    frame = queries().with_columns(w=pl.lit(1.0))
    recipe = Recipe(target="stars", graded=True, groups="q", weight="w")
    for name, value, message in (
        ("w", -1.0, "row 31, column 'w': a weight"),
        ("stars", -1, "row 31, column 'stars'"),
    ):
        bad = frame.with_columns(
            pl.when(pl.int_range(pl.len()) == 30).then(value).otherwise(pl.col(name)).alias(name)
        )
        bad.write_parquet(tmp_path / "rows.parquet")
        for dask in (False, True):
            with pytest.raises(InputError, match=message):
                fit_table_blocks(tmp_path, recipe, None, rows=25, dask=dask)


@pytest.mark.slow
def test_what_a_target_is_is_decided_by_all_rows(tmp_path):
    x = np.random.default_rng(0).normal(size=200)
    none = np.where((np.arange(200) >= 100) & (x > 0), "wrong", "none")
    digits = np.where((np.arange(200) < 20) | (x > 0.8), "1", "B")
    for labels in (none, digits):
        frame = pl.DataFrame({"x": x, "y": labels})
        frame.write_parquet(tmp_path / "rows.parquet")
        frame.write_csv(tmp_path / "rows.csv")
        expected = PNormPush(alpha=0.1).fit(x[:, None], labels)
        for suffix in ("parquet", "csv"):
            for rows in (20, 200):
                blocks = read_blocks(tmp_path / f"rows.{suffix}", "y", rows=rows)
                ranker = PNormPush(alpha=0.1).fit(blocks, None)
                assert ranker.classes_.tolist() == expected.classes_.tolist()
                np.testing.assert_allclose(ranker.coef_, expected.coef_, rtol=1e-4)


def test_files_may_store_a_target_as_text_or_as_numbers(tmp_path):
    x = np.random.default_rng(0).normal(size=200)
    y = (x + np.random.default_rng(1).normal(size=200) > 0).astype(int)
    frame = pl.DataFrame({"x": x, "y": y})
    frame[:100].write_parquet(tmp_path / "a.parquet")
    frame[100:].cast({"y": pl.String}).write_parquet(tmp_path / "b.parquet")
    ranker = PNormPush(alpha=0.1).fit(read_blocks(tmp_path, "y", rows=30), None)
    assert ranker.classes_.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("kind", [pl.Float64, pl.String])
def test_a_missing_target_is_named(tmp_path, kind):
    frame = pl.DataFrame({"x": np.arange(60.0), "y": [None if k == 41 else k % 2 for k in range(60)]})
    words = frame.with_columns(pl.format("c{}", "y")) if kind is pl.String else frame
    words.write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="row 42, column 'y': the target is missing"):
        PNormPush().fit(read_blocks(tmp_path, "y", rows=25), None)


def test_columns_that_only_later_files_have_are_noted(folder, tmp_path):
    frame = claims()
    for k, names in enumerate((["extra"], ["extra", "more"])):
        added = frame[:50].with_columns(pl.lit(1.0).alias(name) for name in names)
        added.write_parquet(folder / f"{7 + k}.parquet")
    with pytest.warns(
        UserWarning, match=r"7\.parquet has columns that .*0\.parquet lacks; they are ignored: 'extra'$"
    ):
        read_blocks(folder, "fraud")
    read_blocks(folder, "fraud", features=["age"])  # no note, because they were requested
    code, text = run(folder, "--target", "fraud", "--drop", "amount,city", "-o", tmp_path / "m.apex")
    assert code == 0
    (note,) = [line for line in text.splitlines() if line.startswith("note:") and "left out" not in line]
    assert "they are ignored: 'extra'" in note
    code, text = run(folder, "--target", "fraud", "--features", "age", "-o", tmp_path / "m.apex")
    assert code == 0
    assert "note" not in text


def test_csv_files_without_rows_or_with_long_lines(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n")
    with pytest.raises(InputError) as in_memory:
        read_table(path)
    with pytest.raises(InputError) as in_blocks:
        read_blocks(path, "y")
    assert str(in_blocks.value) == str(in_memory.value)
    code, text = run(path, "--target", "y", "--engine", "blocks", "-o", tmp_path / "m.apex")
    assert code == 2
    assert "has column names but no rows" in text
    path.write_text("x,y\n" + "1,0\n2,1\n" * 150 + "3,1,9\n")
    with pytest.raises(InputError, match="line 302: the row has 3 fields, the header 2"):
        list(read_blocks(path, "y", rows=100))


def test_arguments_of_read_blocks(folder):
    for options, message in (
        ({"features": ["age", "fraud"]}, "column 'fraud' is the target: it cannot be a feature"),
        ({"features": ["times"], "sample_weight": "times"}, "column 'times' is the sample_weight"),
        ({"features": "age"}, "features"),
        ({"rows": 0}, "`rows` must be a whole number of at least 1"),
        ({"rows": -3}, "`rows` must be a whole number of at least 1"),
    ):
        with pytest.raises(InputError, match=message):
            read_blocks(folder, "fraud", **options)


@pytest.mark.parametrize("rows", [None, 90])
def test_a_sample_has_rows_of_all_files_in_their_order_each_as_likely(tmp_path, monkeypatch, rows):
    frame = pl.DataFrame({"x": np.arange(500), "word": [f"w{i}" for i in range(500)]})
    (tmp_path / "parts").mkdir()
    frame[:120].write_parquet(tmp_path / "parts" / "1.parquet")
    frame[120:].with_columns(pl.col("x").cast(float)).write_parquet(tmp_path / "parts" / "2.parquet")
    frame.write_csv(tmp_path / "rows.csv")
    monkeypatch.setattr(
        "apexrank.io.stream.LEAST_ROWS", 7
    )  # many small tables, so that some are taken out again
    monkeypatch.setattr("apexrank.io.stream.block_rows", lambda asked, n_features: rows or 10_000)
    counts = np.zeros(500)
    for seed in range(150):
        table, total = sample_table(tmp_path / "parts", 50, seed)
        assert total == 500
        assert (np.diff(table.places) > 0).all()
        assert table.frame["x"].to_list() == table.places.tolist()
        assert table.frame["word"].to_list() == [f"w{place}" for place in table.places]
        counts[table.places] += 1
    assert len(table) == 50
    # 15 times each on average, with a deviation of 3.7
    assert np.abs(counts - 15).max() < 5 * 3.7
    assert np.abs(counts.reshape(10, 50).sum(axis=1) - 750).max() < 5 * np.sqrt(50 * 13.5)
    of_csv, _ = sample_table(tmp_path / "rows.csv", 50, seed)
    np.testing.assert_array_equal(of_csv.places, table.places)  # the draw does not depend on the blocks
    everything, _ = sample_table(tmp_path / "parts", 501)
    assert everything.frame["x"].to_list() == list(range(500))


def test_a_sample_refuses_files_that_do_not_fit_together(tmp_path):
    pl.DataFrame({"x": [1, 2]}).write_parquet(tmp_path / "1.parquet")
    pl.DataFrame({"x": ["a", "b"]}).write_parquet(tmp_path / "2.parquet")
    with pytest.raises(InputError, match=r"2\.parquet column 'x' is String, in files before it Int64"):
        sample_table(tmp_path, 10)
