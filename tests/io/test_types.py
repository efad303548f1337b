"""Raw tables: column types, levels for missing and rare values, row counters, leakage."""

import contextlib
import sqlite3
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import apexrank
from apexrank import InputError, PNormPush
from apexrank.export import round_scorecard, to_sql
from apexrank.io import Recipe, Table, TableRanker, read_table
from apexrank.io.delimited import Csv
from apexrank.io.encode import LinearFeatures, cell_stats
from apexrank.io.read import as_table
from apexrank.io.stream import fit_table_blocks
from apexrank.io.table_ranker import fit_table
from apexrank.io.types import (
    Category,
    Date,
    Facts,
    Number,
    choose_columns,
    deciding_columns,
    parse_columns,
    row_groups,
    row_notes,
    table_columns,
    table_facts,
    take_rows,
)
from tests.io.encoders import linear_features


def read_with(separator, frame):
    return Table(frame, layout=separator and Csv(Path("t.csv"), frame.columns, separator, 2))


def chosen(separator=None, recipe=None, **columns):
    """Columns of a table with these texts, a number and a target."""
    n = len(next(iter(columns.values())))
    frame = pl.DataFrame({**columns, "y": np.arange(n) % 2})
    prepared = table_columns(read_with(separator, frame), recipe or Recipe("y"))
    return prepared.columns[0] if len(columns) == 1 else prepared


def messy(n=300, seed=0):
    """Rows with every type of column; few of them lack a job, many lack an age."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    age = rng.integers(20, 70, n).astype(object)
    age[rng.random(n) < 0.2] = None
    job = rng.choice(["clerk", "cook", "nurse"], n).astype(object)
    job[[3, 7]] = None
    town = np.array([f"t{k}" for k in rng.zipf(1.4, n)])
    day = pl.date_range(pl.date(2021, 1, 1), pl.date(2024, 12, 31), eager=True).sample(n, seed=seed)
    return pl.DataFrame(
        {
            "rownames": np.arange(1, n + 1),
            "x": x,
            "price": [f"${value:,.2f}" for value in rng.lognormal(7, 1, n)],
            "age": pl.Series(age.tolist(), dtype=pl.Int64),
            "job": pl.Series(job.tolist(), dtype=pl.String),
            "town": town,
            "day": day,
            "note": [f"note {k}" for k in range(n)],
            "y": np.where(x + rng.normal(size=n) > 1, "yes", "no"),
        }
    )


class TestKinds:
    @pytest.mark.parametrize(
        ("values", "separator", "column", "numbers"),
        [
            (["1", "2.5", " 3 "], None, Number("v"), [1, 2.5, 3]),
            (["1", "?", "-", "N/A", "4"], None, Number("v"), [1, np.nan, np.nan, np.nan, 4]),
            (["$1,234.50", "($3)", "17"], None, Number("v", decimal=".", unit="$"), [1234.5, -3, 17]),
            (["12%", "5.5 %", "-3%"], None, Number("v", decimal=".", unit="%"), [12, 5.5, -3]),
            (["1,234,567", "12", "3,000"], None, Number("v", decimal="."), [1234567, 12, 3000]),
            (["1,5", "2", "1.000,25"], ";", Number("v", decimal=","), [1.5, 2, 1000.25]),
            (["7,00 €", "1.250,10 €"], "\t", Number("v", decimal=",", unit="€"), [7, 1250.1]),
            (["1 234", "12 500.5"], None, Number("v", decimal="."), [1234, 12500.5]),
            (["True", "false", ""], None, Number("v"), [1, 0, np.nan]),
        ],
    )
    def test_numbers_as_people_write_them(self, values, separator, column, numbers):
        found = chosen(separator, v=values)
        assert found == column
        np.testing.assert_array_equal(found.parse(Table(pl.DataFrame({"v": values}))), numbers)

    @pytest.mark.parametrize(
        ("values", "separator", "reason"),
        [
            (["1,234", "2,500"] * 5, ";", "may be numbers"),  # thousands or thousandths
            (["1,5", "2,5", "3,25"] * 4, ",", "may be numbers"),
            ([f"1/{k}/2023" for k in range(1, 11)], None, "day and month are ambiguous"),
            ([f"person {k}" for k in range(60)], None, "almost every value is unique"),
            ([None] * 10, None, "no values"),
            (["same"] * 10, None, "one value only"),
            ([[1, 2]] * 10, None, "List(Int64) values, not numbers"),
        ],
    )
    def test_what_cannot_be_told_is_left_out_with_the_reason(self, values, separator, reason):
        found = chosen(separator, v=values, other=np.arange(len(values)) % 3)
        ((name, why),) = found.left_out
        assert (name, [column.name for column in found.columns]) == ("v", ["other"])
        assert reason in why
        assert any(reason in note and "'v'" in note for note in found.notes)

    def test_amounts_in_two_currencies_are_no_numbers(self):
        assert chosen(v=["$5", "€5"] * 5).values == ("$5", "€5")
        with pytest.raises(InputError, match=r"row 2, column 'v': '€7' is not a number such as 1,234.5\$"):
            Number("v", decimal=".", unit="$").parse(Table(pl.DataFrame({"v": ["$5", "€7"]})))

    @pytest.mark.parametrize(
        ("values", "format", "first"),
        [
            (["2024-02-29", "2023-01-01"], "%Y-%m-%d", [19782, 2, 4]),
            (["29.02.2024", "01.01.2023"], "%d.%m.%Y", [19782, 2, 4]),
            (["2/29/2024", "1/1/2023"], "%m/%d/%Y", [19782, 2, 4]),
            (["29/02/24", "01/01/23"], "%d/%m/%y", [19782, 2, 4]),
            (["29-Feb-2024", "1-Jan-2023"], "%d-%B-%Y", [19782, 2, 4]),
            (["Feb 29, 2024", "March 1, 2023"], "%B %d, %Y", [19782, 2, 4]),
            (
                ["2024-02-29T18:30:00Z", "2023-01-01T00:00:00Z"],
                "%Y-%m-%d %H:%M:%S%z",
                [19782 + 18.5 / 24, 2, 4, 18.5],
            ),
            (
                ["2024-03-01T04:00+09:30", "2023-01-01T00:00-05"],
                "%Y-%m-%d %H:%M%z",
                [19782 + 18.5 / 24, 2, 4, 18.5],
            ),
            (
                ["2/29/2024 6:30 PM", "1/31/2023 1:00 AM"],
                "%m/%d/%Y %I:%M %p",
                [19782 + 18.5 / 24, 2, 4, 18.5],
            ),
        ],
    )
    def test_dates_become_numbers(self, values, format, first):
        column = chosen(v=values)
        assert column == Date("v", format)
        parts = column.split(column.parse(Table(pl.DataFrame({"v": values}))))
        np.testing.assert_allclose([part[0] for part in parts], first, rtol=1e-14)

    def test_dates_of_parquet_and_of_text_are_the_same(self):
        days = pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 3, 1), eager=True)
        times = days.cast(pl.Datetime("ms")).dt.offset_by("90m")
        zoned = times.dt.replace_time_zone("Europe/Rome")
        assert chosen(v=days) == Date("v") == chosen(v=days.cast(pl.String))
        for values, zone, hour in ((times, "", 1.5), (zoned, "%z", 0.5)):
            format = f"%Y-%m-%d %H:%M:%S{zone}"
            assert chosen(v=values) == Date("v", format) == chosen(v=values.cast(pl.String))
            column = chosen(v=values)
            read = [
                column.parse(Table(pl.DataFrame({"v": kind}))) for kind in (values, values.cast(pl.String))
            ]
            np.testing.assert_array_equal(*read)
            assert column.split(read[0])[3][0] == hour
        with pytest.raises(
            InputError, match="row 2, column 'v': '2020-13-01' is not a date such as 2024-12-31"
        ):
            Date("v").parse(Table(pl.DataFrame({"v": ["2020-01-01", "2020-13-01"]})))

    def test_an_instant_has_one_score_wherever_it_is_written(self, tmp_path):
        """Instants in UTC, with other offsets, and in frames of polars and pandas, in training and in new rows."""
        rng = np.random.default_rng(0)
        utc = pl.Series("v", rng.integers(1_500_000_000, 1_700_000_000, 60) * 1_000_000).cast(
            pl.Datetime("us", "UTC")
        )
        y = pl.Series("y", (utc.dt.hour() + rng.integers(0, 12, 60) > 14).cast(pl.Int64))
        tokyo = utc.dt.convert_time_zone("Asia/Tokyo")
        files = {}
        for name, values in (
            ("utc", utc.dt.strftime("%Y-%m-%dT%H:%M:%SZ")),
            ("tokyo", tokyo.cast(pl.String)),
        ):
            files[name] = tmp_path / f"{name}.csv"
            pl.DataFrame([values.alias("v"), y]).write_csv(files[name])
        polars = pl.DataFrame([tokyo.dt.cast_time_unit("ms"), y])
        tables = [*files.values(), polars, polars.to_pandas(), pl.DataFrame([utc, y])]
        scores = [
            TableRanker.fit(train, Recipe("y"), PNormPush(alpha=0.1)).score(new)
            for train in tables
            for new in tables
        ]
        assert len(np.unique(scores[0])) > 50
        np.testing.assert_array_equal(scores, [scores[0]] * len(scores))

    def test_midnight_in_a_time_zone_is_an_instant(self):
        pandas = pytest.importorskip("pandas")
        days = pandas.date_range("2024-01-01", periods=4, tz="Asia/Tokyo")
        table = as_table(pandas.DataFrame({"v": days}))
        column = Date("v", "%Y-%m-%d %H:%M:%S%z")
        assert column.split(column.parse(table))[3].tolist() == [15.0] * 4

    def test_times_with_and_without_an_offset_do_not_mix(self):
        plain = [f"2024-03-{day:02} 10:00" for day in range(1, 31)]
        zoned = [f"{time}Z" for time in plain]
        found = chosen(v=plain[:15] + zoned[15:], x=np.arange(30) % 7)
        assert [column.name for column in found.columns] == ["x"]
        assert found.left_out[0][0] == "v"
        assert "offset" in found.left_out[0][1]
        for train, new in ((plain, zoned), (zoned, plain)):
            column = chosen(v=train)
            frame = pl.DataFrame({"v": train[:-1] + new[-1:]})
            with pytest.raises(InputError, match=r"row 30, column 'v'"):
                column.parse(Table(frame))
            typed = pl.Series("v", plain).str.to_datetime(time_zone="UTC" if new is zoned else None)
            with pytest.raises(InputError, match=r"column 'v' has .* time zone"):
                column.parse(Table(typed.to_frame()))

    def test_files_with_and_without_a_time_zone_do_not_mix(self):
        x = pl.Series("x", np.arange(30) % 7)
        times = pl.datetime_range(pl.datetime(2024, 1, 1), pl.datetime(2024, 1, 30), "1d", eager=True).alias(
            "v"
        )
        tables = [Table(pl.DataFrame([times.dt.replace_time_zone(zone), x])) for zone in (None, "UTC")]
        first, second = (table_facts(table, ["v", "x"], Recipe("y")) for table in tables)
        facts = {name: first[name] | second[name] for name in first}
        found = choose_columns(["v", "x"], facts, Recipe("y"), None, "folder")
        assert [column.name for column in found.columns] == ["x"]
        assert "time zone" in found.left_out[0][1]

    def test_a_slip_among_numbers_is_an_error_that_names_its_line(self, tmp_path):
        lines = [f"{k},{k % 2}" for k in range(3, 10_003)]
        lines[4321] = "4O,1"
        (tmp_path / "t.csv").write_text("x,y\n" + "\n".join(lines) + "\n")
        with pytest.raises(InputError, match=r"t.csv line 4323, column 'x': '4O' is not a number"):
            TableRanker.fit(read_table(tmp_path / "t.csv"), Recipe("y"), PNormPush())

    @pytest.mark.parametrize("name", ["rownames", "Unnamed: 0", "CustomerID", "key"])
    def test_numbers_that_name_rows_are_left_out(self, name):
        rng = np.random.default_rng(0)
        own = 100 + rng.permutation(200)
        frame = pl.DataFrame({name: own, "x": rng.normal(size=200), "y": rng.integers(0, 2, 200)})
        assert [column.name for column in table_columns(Table(frame), Recipe("y")).columns] == ["x"]
        for features in (["all", name], [name, "x"]):
            kept = table_columns(Table(frame), Recipe("y", features=features))
            assert [column.name for column in kept.columns] == [name, "x"]
        repeated = table_columns(Table(frame.with_columns(pl.Series(name, own // 2))), Recipe("y"))
        whose = name in ("CustomerID", "key")  # other columns may be counts
        assert [column.name for column in repeated.columns] == (["x"] if whose else [name, "x"])
        assert ("an id that repeats" in dict(repeated.left_out).get(name, "")) == whose

    @pytest.mark.parametrize("kind", [pl.Int64, pl.Float64, pl.String])
    def test_row_counters_are_left_out_under_any_name(self, kind):
        for start in (0, 1):
            counter = pl.Series(np.arange(start, start + 50)).cast(kind)
            found = chosen(v=counter, x=np.arange(50) % 7)
            assert found.left_out == [("v", "counts the rows; `features=['all', 'NAME']` keeps it")]
        assert len(chosen(v=np.arange(2, 52), x=np.arange(50) % 7).columns) == 2

    def test_frequent_values_make_a_text_a_category(self):
        rng = np.random.default_rng(0)
        assert len(chosen(v=rng.choice([f"c{k}" for k in range(50)], 1000)).values) == 50
        codes = ["80+" if k > 15 else str(k) for k in rng.integers(0, 20, 200)]
        assert "80+" in chosen(v=codes).values
        assert chosen(v=["9", "10", "11", "12"] * 50 + ["other"] * 6).values == (
            "10",
            "11",
            "12",
            "9",
            "other",
        )
        assert chosen(v=["9", "10", "11", "12"] * 50 + ["O"]) == Number("v")  # a typo, which parse rejects
        names = [f"name {k // 2}" for k in range(1000)]
        assert chosen(v=names, x=np.arange(1000) % 7).left_out[0][0] == "v"
        for recipe in (Recipe("y", categorical=["v"]), Recipe("y", features=["v"])):
            with pytest.raises(
                InputError, match=r"column 'v' cannot be used \(almost every value is unique\)"
            ):
                chosen(v=names, recipe=recipe)
        half = [f"name {k}" if k % 3 else "none" for k in range(999)]
        assert "`categorical=['NAME']` keeps" in chosen(v=half, x=np.arange(999) % 7).left_out[0][1]
        found = chosen(v=half, recipe=Recipe("y", categorical=["v"]))
        assert (found.values, found.other) == (("none",), True)

    def test_graded_recipes_take_numbers_as_they_are(self):
        frame = pl.DataFrame(
            {
                "row": np.arange(20),
                "a": np.arange(20.0) ** 2,
                "same": 1.0,
                "city": ["u", "v"] * 10,
                "stars": np.arange(20) % 3,
            }
        )
        recipe = Recipe("stars", graded=True, categorical=["all"])
        a, same, city = (
            Number("a", required=True),
            Number("same", required=True),
            Category("city", ("u", "v")),
        )
        assert table_columns(Table(frame), recipe).columns == [a, same, replace(city, required=True)]
        named = Recipe("stars", graded=True, drop=["city"])
        found = table_columns(Table(frame), named)
        assert found.columns == [a, same]
        assert found.left_out == [("row", "counts the rows; `features=['all', 'NAME']` keeps it")]
        assert (recipe.imputation, Recipe("y").imputation) == ("none", "median")

    @given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 120), max_size=4))
    @settings(max_examples=25, deadline=None)
    def test_facts_of_parts_merge_to_those_of_the_table(self, seed, cuts):
        frame = messy(120, seed)
        names = [name for name in frame.columns if name != "y"]
        weight = np.random.default_rng(seed).integers(0, 4, 120).astype(float)
        bounds = [0, *sorted(cuts), 120]
        parts = [table_facts(Table(frame[a:b]), names, Recipe("y"), weight[a:b]) for a, b in pairwise(bounds)]
        merged = parts[0]
        for part in parts[1:]:
            merged = {name: facts | part[name] for name, facts in merged.items()}
        for name, facts in table_facts(Table(frame), names, Recipe("y"), weight).items():
            assert merged[name][:-1] == facts[:-1]
            assert merged[name].words.equals(facts.words)


def test_codes_that_begin_with_zeros_are_noted():
    found = chosen(zip=["01007", "02139", "90210"] * 50, x=["0", "0.5", "10"] * 50)
    assert [type(column) for column in found.columns] == [Number, Number]
    assert [note for note in found.notes if "zip" in note] == [
        "read as numbers: '01007' in 'zip' (codes? `categorical=['zip']`)"
    ]


def test_notes_name_five_columns_and_count_the_rest():
    (note,) = chosen(**{f"c{k}": list("abcd") * 50 for k in range(7)}).notes
    assert note.startswith("categories: 'c0' (4 values), 'c1' (4 values), ")
    assert note.endswith("'c4' (4 values), ... (7 in all)")


class TestLevels:
    def fitted(self, values, **options):
        table = Table(pl.DataFrame({"c": values}))
        return linear_features(table, [Facts.of(table, "c").category("c")], **options)

    def test_rare_values_share_a_level_that_unknown_ones_get(self):
        values = ["a"] * 50 + ["b"] * 42 + ["r1"] * 4 + ["r2"] * 3 + [None]
        encoder, X = self.fitted(values)
        assert encoder.features == ["c=a", "c=b", "c other"]
        assert X[[0, 50, 92, 98, 99]].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]
        assert encoder.encode(Table(pl.DataFrame({"c": ["new", None]}))).tolist() == [[0, 0, 1]] * 2
        assert not encoder.notes(Table(pl.DataFrame({"c": ["new", None]})))

    def test_missing_values_are_a_level_where_there_are_enough(self):
        for gaps, features in ((4, ["c=a", "c=b"]), (5, ["c=a", "c=b", "c missing"])):
            encoder, X = self.fitted(["a"] * 60 + ["b"] * 40 + [None] * gaps)
            assert encoder.features == features
        assert X[-1].tolist() == [0, 0, 1]
        encoder, X = self.fitted(["a"] * 60 + ["b"] * 40 + [None] * 4)
        assert X[-1].tolist() == [0.6, 0.4]

    def test_missing_numbers_have_a_feature_where_there_are_enough(self):
        x = np.arange(100.0)
        for gaps, features in ((4, ["x"]), (5, ["x", "x missing"])):
            data = Table(pl.DataFrame({"x": [*x, *[None] * gaps]}))
            encoder, _ = linear_features(data, [Number("x")])
            assert encoder.features == features
            assert encoder.raw(data)[-1].tolist() == [49.5, 1][: len(features)]
        note = "column 'x' has 1 missing value, but training had few or none: filled with 49.5"
        plain, _ = linear_features(Table(pl.DataFrame({"x": x})), [Number("x")])
        assert plain.notes(Table(pl.DataFrame({"x": ["?", "3"]}))) == [note]

    @given(seed=st.integers(0, 10**6), impute=st.sampled_from(["median", "mean"]))
    @settings(max_examples=30, deadline=None)
    def test_weights_are_repetitions_fractions_too(self, seed, impute):
        frame = messy(150, seed)
        rng = np.random.default_rng(seed)
        times = rng.integers(0, 4, 150)
        columns = [Number("x"), Number("age"), Category("job"), Category("town"), Date("day")]
        once, _ = linear_features(Table(frame), columns, impute=impute, sample_weight=times.astype(float))
        again, _ = linear_features(Table(frame[np.repeat(np.arange(150), times)]), columns, impute=impute)
        share = rng.random(150)
        split = Table(pl.concat([frame, frame]))
        halves = np.concatenate([times * share, times * (1 - share)])
        parts, _ = linear_features(split, columns, impute=impute, sample_weight=halves)
        for other in (again, parts):
            assert other.features == once.features
            np.testing.assert_allclose(other.center, once.center, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(other.scale, once.scale, rtol=1e-9)
            np.testing.assert_allclose(
                other.encode(Table(frame)), once.encode(Table(frame)), rtol=1e-8, atol=1e-9
            )

    def test_folds_learn_from_parsed_rows(self):
        data = Table(messy())
        columns = table_columns(data, Recipe("y")).columns
        cells = parse_columns(data, columns)
        rows = np.arange(0, 300, 3)
        stats = cell_stats(take_rows(cells, rows), columns, "median")
        encoder = LinearFeatures.learn(stats, columns, Recipe("y"), "fold")
        expected, X = linear_features(data.take(rows), columns)
        assert encoder.columns == expected.columns
        np.testing.assert_array_equal(encoder.transform(take_rows(cells, rows)), X)
        np.testing.assert_array_equal(encoder.transform(dict(cells)), expected.encode(data))


class TestFit:
    def test_two_rows_with_a_blank_category_do_not_decide(self):
        """The only two rows without a job are positive; the other rows are ranked by x."""
        rng = np.random.default_rng(1)
        n = 400
        x = rng.normal(size=n)
        y = x + rng.normal(size=n) > 1.5
        job = rng.choice(["clerk", "cook", "nurse"], n).astype(object)
        job[[0, 1]], y[[0, 1]], x[[0, 1]] = None, True, -2.0
        frame = pl.DataFrame({"x": x, "job": pl.Series(job.tolist(), dtype=pl.String), "y": y.astype(int)})
        for alpha in (1e-6, 1e-3):
            ranker = TableRanker.fit(Table(frame), Recipe("y"), PNormPush(p=4, alpha=alpha))
            assert ranker.encoder.features == ["x", "job=clerk", "job=cook", "job=nurse"]
            new = Table(
                pl.DataFrame(
                    {"x": [0.0, 0.0, 0.0, 0.0, 3.0], "job": ["clerk", "cook", "nurse", None, "cook"]}
                )
            )
            scores = ranker.score(new)
            assert scores[:3].min() < scores[3] < scores[:3].max()
            assert scores.argmax() == 4

    def test_a_row_counter_of_a_sorted_table_is_no_feature(self):
        rng = np.random.default_rng(2)
        frame = pl.DataFrame(
            {"rownames": np.arange(1, 201), "x": rng.normal(size=200), "y": np.repeat([0, 1], 100)}
        )
        ranker, judged = fit_table(Table(frame), Recipe("y"), PNormPush(alpha=0.1))
        assert ranker.encoder.features == ["x"]
        assert ranker.ignored == ["rownames", "y"]
        assert any("'rownames'" in note for note in judged.notes)

    def test_rows_without_a_target_are_left_out(self, tmp_path):
        frame = messy().with_columns(y=pl.when(pl.int_range(pl.len()) % 10 == 4).then(None).otherwise("y"))
        ranker, judged = fit_table(Table(frame), Recipe("y"), PNormPush(alpha=0.1))
        expected = TableRanker.fit(Table(frame.drop_nulls("y")), Recipe("y"), PNormPush(alpha=0.1))
        np.testing.assert_array_equal(ranker.coef, expected.coef)
        assert judged.notes[0] == "left out: 30 of 300 rows of table, because the target 'y' is missing"
        lines = "x,y\n" + "".join(f"{k},{k % 2}\n" if k % 3 else f"{k},\n" for k in range(3, 99)) + "O,1\n"
        (tmp_path / "t.csv").write_text(lines)
        with pytest.raises(InputError, match=r"t.csv line 98, column 'x': 'O'"):
            fit_table(read_table(tmp_path / "t.csv"), Recipe("y"), PNormPush())
        with pytest.raises(InputError, match="column 'y' has no values"):
            fit_table(Table(frame.with_columns(y=pl.lit(None, pl.String))), Recipe("y"), PNormPush())

    def test_pandas_index_is_no_feature(self, tmp_path):
        frame = messy().rename({"rownames": "index_"}).sample(fraction=1, shuffle=True, seed=0)
        text = frame.write_csv().replace("index_", "", 1)
        (tmp_path / "t.csv").write_text(text)
        table = read_table(tmp_path / "t.csv", index="index")
        ranker = TableRanker.fit(table, Recipe("y"), PNormPush(alpha=0.1))
        assert "index" in ranker.ignored
        in_blocks, _ = fit_table_blocks(tmp_path / "t.csv", Recipe("y"), PNormPush(alpha=0.1), rows=100)
        assert in_blocks.encoder.features == ranker.encoder.features

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_a_fit_in_blocks_reads_the_same(self, tmp_path, suffix):
        frame = messy().with_columns(y=pl.when(pl.int_range(pl.len()) % 50 == 4).then(None).otherwise("y"))
        frame = frame.with_columns(times=pl.int_range(pl.len()) % 3)
        path, recipe = tmp_path / f"rows.{suffix}", Recipe("y", weight="times")
        getattr(frame, f"write_{suffix}")(path)
        ranker, judged = fit_table_blocks(path, recipe, PNormPush(alpha=0.1, tol=1e-10), rows=70)
        expected, whole = fit_table(read_table(path), recipe, PNormPush(alpha=0.1, tol=1e-10))
        assert ranker.encoder.features == expected.encoder.features
        assert judged.notes == whole.notes
        np.testing.assert_allclose(judged.scores, whole.scores, rtol=1e-6, atol=1e-8)
        np.testing.assert_array_equal(judged.y, whole.y)

    def test_model_files_keep_every_kind_of_column(self, tmp_path):
        data = Table(messy())
        ranker = TableRanker.fit(data, Recipe("y"), PNormPush(alpha=0.1))
        kinds = {type(column) for column in ranker.encoder.columns}
        assert kinds == {Number, Category, Date}
        apexrank.save(ranker, tmp_path / "m.apex")
        loaded = apexrank.load(tmp_path / "m.apex")
        assert loaded.encoder.columns == ranker.encoder.columns
        new = messy(60, seed=9).with_columns(job=pl.lit("diver"), x=pl.lit(None, pl.Float64))
        np.testing.assert_array_equal(loaded.score(Table(new)), ranker.score(Table(new)))
        text = Table(new.cast(dict.fromkeys(["x", "age", "day"], pl.String)))
        np.testing.assert_array_equal(loaded.score(text), ranker.score(Table(new)))


class TestExports:
    def model(self):
        frame = messy().drop("day")
        return TableRanker.fit(Table(frame), Recipe("y"), PNormPush(alpha=0.01)), frame

    def new(self):
        rows = messy(40, seed=5).with_row_index("n")
        return rows.with_columns(
            price=pl.col("n").cast(pl.Float64) * 100,
            job=pl.when(pl.col("n") < 5).then(pl.lit("diver")).otherwise("job"),
            x=pl.when(pl.col("n") == 7).then(None).otherwise("x"),
            town=pl.when(pl.col("n") == 9).then(pl.lit("")).otherwise("town"),
        )

    def in_sqlite(self, sql, frame):
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            kinds = [
                f'"{name}" {"TEXT" if kind == pl.String else "REAL"}' for name, kind in frame.schema.items()
            ]
            connection.execute(f"CREATE TABLE t ({', '.join(kinds)})")
            connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * frame.width)})", frame.rows())
            return np.array([row[0] for row in connection.execute(f"SELECT {sql} FROM t ORDER BY n")])

    def test_sql_has_the_same_scores(self):
        model, _ = self.model()
        features = model.encoder.features
        assert {"age missing", "town other"} <= set(features)
        frame = self.new().drop("day")
        for dialect in ("standard", "sqlite"):
            found = self.in_sqlite(to_sql(model, dialect=dialect), frame)
            np.testing.assert_allclose(found, model.score(Table(frame)), rtol=1e-9)
        # if only one level has a coefficient, unknown values and the other levels are still distinguished
        model.estimator.coef_ = np.where(np.array(features) == "town other", 1.0, 0.0)[None, :]
        np.testing.assert_allclose(
            self.in_sqlite(to_sql(model), frame), model.score(Table(frame)), rtol=1e-9, atol=1e-12
        )

    def test_scorecards_have_the_same_points_in_sql(self):
        model, frame = self.model()
        card = round_scorecard(model, Table(frame), max_points=40)
        new = self.new().drop("day")
        np.testing.assert_allclose(self.in_sqlite(card.to_sql(), new), card.score(Table(new)), rtol=1e-9)
        assert card.objective.model == pytest.approx(model.training["objective"], rel=1e-9)
        assert any(name.endswith(("missing", "other")) for name in card.features)

    def test_onnx_has_the_same_scores(self):
        pytest.importorskip("skl2onnx")
        runtime = pytest.importorskip("onnxruntime")
        from apexrank.export import to_onnx

        model, _ = self.model()
        frame = self.new()
        session = runtime.InferenceSession(to_onnx(model).SerializeToString())
        inputs = {}
        for one in session.get_inputs():
            column = frame[one.name]
            text = column.dtype == pl.String
            values = column.fill_null("").to_list() if text else column.cast(pl.Float64).to_numpy()
            inputs[one.name] = np.array(values, dtype=object if text else np.float64)[:, None]
        found = dict(zip(["label", "score"], session.run(["label", "score"], inputs), strict=True))
        np.testing.assert_allclose(found["score"], model.score(Table(frame)), rtol=1e-9)

    def test_dates_are_refused_by_name(self):
        model = TableRanker.fit(Table(messy()), Recipe("y"), PNormPush(alpha=0.1))
        with pytest.raises(InputError, match="column 'day' holds dates, and SQL models take numbers"):
            to_sql(model)
        pytest.importorskip("skl2onnx")
        from apexrank.export import to_onnx

        with pytest.raises(InputError, match="column 'day' holds dates, and ONNX models take numbers"):
            to_onnx(model)


class TestAccidents:
    def found(self, frame, y, **options):
        columns = table_columns(Table(frame.with_columns(y=y)), Recipe("y")).columns
        return [
            name for name, _ in deciding_columns(parse_columns(Table(frame), columns), columns, y, **options)
        ]

    def test_columns_that_give_the_target_away_are_named_first(self):
        rng = np.random.default_rng(0)
        n = 1000
        y = (rng.random(n) < 0.2).astype(int)
        paid = np.where(rng.random(n) < 0.01, 1 - y, y)
        stage = np.where(y == 1, rng.choice(["c", "a"], n), rng.choice(["b", "d"], n))
        closed = [None if label else 3.5 + k % 2 for k, label in enumerate(y)]
        frame = pl.DataFrame({"x": y + rng.normal(size=n), "paid": paid, "stage": stage, "closed": closed})
        assert self.found(frame, y) == ["stage", "closed", "paid"]
        _, judged = fit_table(Table(frame.with_columns(y=y)), Recipe("y"), PNormPush(alpha=0.1))
        assert judged.notes[0].startswith("column 'stage' alone ranks the rows almost perfectly (AUC 1.000)")
        assert self.found(frame[: 2 * 8], y[:16]) == []  # too few rows to tell

    def test_chance_is_not_taken_for_a_leak(self):
        rng = np.random.default_rng(0)
        y = np.repeat([1, 0], [6, 94])
        frame = pl.DataFrame({f"g{k}": rng.normal(size=100) for k in range(2000)})
        assert self.found(frame, y) == []

    def test_areas_are_weighted(self):
        x = np.arange(100.0)
        y = (x >= 50).astype(int)
        frame = pl.DataFrame({"x": np.where(x < 10, 100.0, x) + 2})
        assert self.found(frame, y) == []
        assert self.found(frame, y, sample_weight=(x >= 10).astype(float)) == ["x"]

    def test_repeated_rows_and_sorted_tables(self):
        frame = pl.DataFrame({"a": [1, 1, None, 2, None], "b": ["x", "x", "y", "x", "y"], "c": range(5)})
        groups = row_groups(Table(frame), ["a", "b"])
        assert groups.tolist() == [0, 0, 2, 3, 2]
        assert row_notes(np.array([0, 1, 0, 1, 0]), groups) == [
            "2 of 5 rows repeat an earlier row in all columns used"
        ]
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 300)
        for labels, count in ((y, 0), (np.sort(y), 1), (np.sort(y)[::-1], 1), (np.sort(y)[:3], 0)):
            assert len(row_notes(labels, np.arange(len(labels)))) == count


WORDS = st.one_of(
    st.sampled_from(
        ["", " ", "?", "-", "NA", "true", "False", "1", "2.5", "-3e5", "1,5", "1,234", "$5", "5 %", "(7)"]
    ),
    st.sampled_from(
        ["2024-01-31", "31/01/2024", "1/2/03", "2024-01-31T10:00:00Z", "Jan 3, 2024", "inf", "1e400"]
    ),
    st.text(max_size=4),
)
CELLS = st.one_of(
    st.lists(WORDS | st.none(), min_size=12, max_size=12),
    st.lists(st.sampled_from(["a", "b", "", None]), min_size=12, max_size=12),
    st.lists(st.floats() | st.none(), min_size=12, max_size=12),
    st.lists(st.integers(-5, 2**40) | st.none(), min_size=12, max_size=12),
    st.lists(st.dates() | st.none(), min_size=12, max_size=12),
    st.lists(st.datetimes() | st.none(), min_size=12, max_size=12),
)


@given(
    first=CELLS, second=CELLS, separator=st.sampled_from([None, ";"]), weight=st.none() | st.integers(0, 11)
)
@settings(max_examples=150, deadline=None)
def test_any_table_is_encoded_or_refused_in_one_line(first, second, separator, weight):
    columns = [pl.Series("c", first, strict=False), pl.Series("d", second, strict=False)]
    frame = pl.DataFrame([*columns, pl.Series("y", [0, 1] * 6)])
    sample_weight = None if weight is None else (np.arange(12) != weight).astype(float)
    # without a file there are no line numbers
    table = Table(frame)
    try:
        prepared = table_columns(read_with(separator, frame), Recipe("y"), sample_weight)
        encoder, X = linear_features(table, prepared.columns, sample_weight=sample_weight)
    except InputError as error:
        message = str(error)
        if "\n" in message:
            raise
        return
    assert X.shape == (12, len(encoder.features))
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(encoder.encode(table), X)
    assert {name for name, _ in prepared.left_out} | {column.name for column in encoder.columns} == {"c", "d"}
