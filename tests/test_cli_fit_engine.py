"""``apexrank fit --engine``: model files from tables that are read some rows at a time."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from apexrank.cli.app import app
from apexrank.errors import InputError
from apexrank.io import Recipe, TableRanker, load_model, read_table
from apexrank.io.encode import Encoder
from apexrank.io.stream import Span, read_blocks
from apexrank.io.stream_encode import NumberStats
from apexrank.io.stream_fit import fit_table_blocks
from apexrank.rankers.blocks import fit_blocks
from apexrank.rankers.push import PNormPush
from apexrank.rankers.retarget import MonotoneRetargeting


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


def same_model(found, expected, rtol=1e-8):
    np.testing.assert_allclose(found.coef, expected.coef, rtol=rtol, atol=1e-10)
    assert found.encoder.features == expected.encoder.features
    for own, other in zip(found.encoder.columns, expected.encoder.columns, strict=True):
        assert own.fill == (None if other.fill is None else pytest.approx(other.fill, rel=1e-12))
    np.testing.assert_allclose(found.encoder.center, expected.encoder.center, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.encoder.scale, expected.encoder.scale, rtol=1e-12)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-9, atol=1e-12)
    for name in ("target", "positive", "id", "groups", "ignored"):
        assert getattr(found, name) == getattr(expected, name)
    assert found.training["rows"] == expected.training["rows"]
    assert found.training["positives"] == expected.training["positives"]


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
def test_groups_stay_whole(tmp_path, suffix, scale):
    path = tmp_path / f"rows.{suffix}"
    getattr(queries(), f"write_{suffix}")(path)
    recipe = Recipe(target="stars", graded=True, groups="q", scale=scale)
    ranker, judged = fit_table_blocks(path, recipe, MonotoneRetargeting(tol=1e-10), rows=25)
    table = read_table(path)
    expected = TableRanker.fit(table, recipe, MonotoneRetargeting(tol=1e-10))
    same_model(ranker, expected)
    np.testing.assert_array_equal(judged.groups, expected.group_ids(table))


def test_groups_apart_are_refused(tmp_path):
    queries().sample(fraction=1, shuffle=True, seed=0).write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="sort the rows by group"):
        fit_blocks(MonotoneRetargeting(), read_blocks(tmp_path, "stars", groups="q", rows=25))


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
    assert [piece.rows for piece in Span("x", 5, 40_000).pieces(8)] == [5000] * 8
    assert [piece[1:] for piece in Span("x", 5, 5000).pieces(8)] == [(5, 4096), (4101, 904)]
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
    with pytest.raises(InputError, match="line 3: the row has 1 fields"):
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
        whole = whole.merge(NumberStats.of(column[a:b]))
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
        stats = stats.merge(NumberStats.of(part))
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
    found, expected = load_model(tmp_path / "blocks.apex"), load_model(tmp_path / "memory.apex")
    same_model(found, expected, rtol=1e-5)
    result = CliRunner().invoke(app, ["rank", str(tmp_path / "blocks.apex"), str(tmp_path / "claims.csv")])
    assert result.exit_code == 0, result.output


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
    same_model(load_model(tmp_path / "dask.apex"), load_model(tmp_path / "blocks.apex"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "spark"], "unknown engine"),
        (["--engine", "blocks", "--workers", "2"], "--engine dask"),
        (["--cv"], "--cv needs the table in memory"),
        (["--model", "rankboost"], "push, ir and retarget"),
        (["--groups", "city"], "one list"),
        (["-p", "inf"], "not over pairs"),
        (["--loss", "logistic"], "not over pairs"),
        (["--model", "retarget"], "--groups"),
        (["--categorical", "town"], "no column 'town'|not among the features"),
        (["--scale", "query"], "name the column with --groups"),
        (["--scale", "odd"], "unknown scale"),
        (["--impute", "odd"], "unknown imputation"),
        (["--features", "agee"], "did you mean 'age'"),
        (["--positive", "maybe"], "no value 'maybe'"),
        (["--impute", "mean"], "not a number"),
        (["--categorical", "all"], "the value is missing"),
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
        (tmp_path / "empty", "no Parquet file"),
        (tmp_path / "fake.parquet", "not a Parquet file"),
        (tmp_path / "none.parquet", "no rows"),
        (tmp_path / "model.txt", "in blocks"),
    ):
        with pytest.raises(InputError, match=message):
            read_blocks(path, "y")
    code, text = run(tmp_path / "claims.csv", "--target", "fraud", "--engine", "dask")
    assert code == 2
    assert "--engine blocks" in text


def test_the_encoder_is_what_the_table_says(folder):
    table = read_table(folder.parent / "claims.csv")
    names = ["amount", "age", "city"]
    expected = Encoder.learn(table, names, categorical=["all"], impute="median")
    found, _ = fit_table_blocks(folder, RECIPE, PNormPush(alpha=0.1), rows=90)
    assert found.encoder.features == expected.features
