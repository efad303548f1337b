"""Tables, encodings, labels, table rankers and atomic writes."""

import csv
import datetime
import gzip
import io
import os
import re
import sys
import tracemalloc
from contextlib import suppress
from dataclasses import asdict, replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apexrank import InputError, PNormPush
from apexrank.files import check_writable, replacing, write_bytes
from apexrank.io import Recipe, Table, TableRanker, rank_table, read_table, write_table
from apexrank.io.columns import feature_columns, is_text, numbers, read_target, texts
from apexrank.io.encode import MOST_DENSE
from apexrank.io.judge import Judged, default_measures, judge_table
from apexrank.io.read import Dialect, as_table
from apexrank.io.stream import fit_table_blocks
from apexrank.io.table_ranker import Thresholds
from apexrank.io.types import Facts, Number, table_columns
from apexrank.rankers import MonotoneRetargeting
from apexrank.validation import segment
from tests.io.encoders import linear_features


def table(**columns):
    return Table(pl.DataFrame(columns))


def learn(data, names, categorical=(), **options):
    required, weight = options.get("impute") == "none", options.get("sample_weight")
    columns = [
        Facts.of(data, name, weight).category(name) if name in categorical else Number(name) for name in names
    ]
    columns = [replace(column, required=required) for column in columns]
    return linear_features(data, columns, **options)[0]


def written(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


class TestReading:
    def test_fields_stay_text(self, tmp_path):
        read = read_table(written(tmp_path, "id,x\n007,1.50\n"))
        assert read.frame.rows() == [("007", "1.50")]

    @pytest.mark.parametrize("separator", [",", ";", "\t"])
    def test_separator_of_the_header(self, tmp_path, separator):
        text = "a,b\n1,2\n".replace(",", separator)
        assert read_table(written(tmp_path, text)).names == ["a", "b"]

    def test_gzip_and_byte_order_mark(self, tmp_path):
        path = written(tmp_path, gzip.compress("\ufeffa,b\n1,2\n".encode()), "t.csv.gz")
        assert read_table(path).frame.rows() == [("1", "2")]

    def test_blank_lines_are_skipped_and_lines_still_counted(self, tmp_path):
        read = read_table(written(tmp_path, 'a,b\n"x\ny",1\n\nz,2\n\n'))
        assert read.frame["b"].to_list() == ["1", "2"]
        assert "line 5, column 'b'" in read.where(1, "b")

    @given(
        rows=st.lists(
            st.lists(st.sampled_from(["", "1", "x y", '"']), min_size=3, max_size=3) | st.just([]), min_size=1
        ),
        end=st.sampled_from(["\n", "\r\n"]),
        name=st.sampled_from(["t.csv", "t.csv.gz"]),
    )
    @settings(deadline=None)
    def test_rows_without_values_are_rows(self, rows, end, name, tmp_path_factory):
        text = io.StringIO()
        csv.writer(text, lineterminator=end).writerows([["a", "b", "c"], *rows])
        content, wanted = text.getvalue().encode(), [row for row in rows if row]
        packed = gzip.compress(content) if name.endswith(".gz") else content
        path = written(tmp_path_factory.mktemp("rows"), packed, name)
        if not wanted:
            with pytest.raises(InputError, match="no rows"):
                read_table(path)
            return
        read = read_table(path)
        assert [[value or "" for value in row] for row in read.frame.rows()] == wanted
        lines = [line for line, row in enumerate(rows, start=2) if row]
        assert read.where(len(wanted) - 1, "a") == f"{path} line {lines[-1]}, column 'a'"

    def test_rows_between_stray_quotes_are_told(self, tmp_path):
        """Two quotes among rows without any make a value of several lines, unless the file is refused."""
        rng = np.random.default_rng(0)
        swallowed = 0
        for _ in range(1000):
            width = int(rng.integers(1, 5))
            rows = [rng.choice(["7", "oslo", "a b"], width).tolist() for _ in range(8)]
            text = "".join(",".join(row) + "\n" for row in [[f"c{j}" for j in range(width)], *rows])
            head = text.index("\n") + 1
            for place in rng.integers(head, len(text) + 1, 2):
                text = f'{text[:place]}"{text[place:]}'
            try:
                read = read_table(written(tmp_path, text))
            except InputError:
                continue
            if len(read) < len(rows):
                swallowed += 1
                (note,) = read.guesses
                assert re.search(r"line \d+, column 'c\d'", note)
        assert swallowed > 20

    def test_rows_between_stray_quotes_are_told_in_blocks(self, tmp_path):
        rows = [f"{'abc'[x % 3]},{x},{x % 7 > 3}\n" for x in range(400)]
        rows[300] = '"a,300,False\n'
        rows[310] = 'b",310,False\n'
        path = written(tmp_path, "kind,x,y\n" + "".join(rows))
        judged = fit_table_blocks(path, Recipe("y"), PNormPush(alpha=0.1), rows=100)[1]
        assert any("line 302" in note for note in judged.notes)

    @pytest.mark.parametrize(
        ("head", "name"), [(",a,b", "row"), ('"",row,b', "row_"), (",row,row_", "row__")]
    )
    def test_a_first_column_without_a_name_is_the_index_where_one_is_asked_for(self, tmp_path, head, name):
        path = written(tmp_path, f"{head}\nx,1,2\ny,3,4\n")
        table = read_table(path, index="row")
        assert table.roles == {"id": name}
        assert table.column(name).to_list() == ["x", "y"]
        assert table.where(1, name) == f"{path} line 3, column {name!r}"
        assert not read_table(written(tmp_path, "c,a,b\nx,1,2\n"), index="row").roles

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is empty"),
            ("a,b\n", "no rows"),
            ("a,b\n1,2\n3\n", "line 3: the row has 1 field, the header 2"),
            ("a,b\n1,2\n3,4,5\n", "line 3: the row has 3 fields, the header 2"),
            ("a,b\n1,2\n3,4\n,5,\n", "line 4: the row has 3 fields"),
            ("a,b,a\n1,2,3\n", "two columns are named 'a'"),
            (",a\n1,2\n", "column 1 has no name"),
            ("a,b\n1,é\n".encode("latin1"), "UTF-8"),
            ('a,b\n1,"x\n', "line 2"),
            ('a,b\n1,2\n3,"x"y\n5,"\n', "line 3"),
        ],
    )
    def test_bad_csv(self, tmp_path, text, message):
        path = written(tmp_path, text)
        with pytest.raises(InputError, match=message) as caught:
            read_table(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("name", ["gone.csv", "t.xlsx", "folder.csv", "text.parquet", "cut.parquet"])
    def test_bad_files(self, tmp_path, name):
        (tmp_path / "folder.csv").mkdir()
        written(tmp_path, "a,b\n1,2\n", "text.parquet")
        written(tmp_path, b"PAR1 and no more", "cut.parquet")
        with pytest.raises(InputError) as caught:
            read_table(tmp_path / name)
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("mark", ["", "\ufeff", "\n \n"])
    def test_rows_without_a_header(self, tmp_path, mark):
        path = written(tmp_path, f'{mark}007,"a\nb"\n\n3,c\n')
        read = read_table(path, header=False, index="index")
        assert read.frame.to_dict(as_series=False) == {"column_1": ["007", "3"], "column_2": ["a\nb", "c"]}
        line = 4 + mark.count("\n")
        assert read.where(1, "column_2") == f"{path} line {line}, column 'column_2'"
        with pytest.raises(InputError, match="line 3: the row has 1 field"):
            read_table(written(tmp_path, "1,2\n3,4\n5\n"), header=False)

    def test_decimal_commas(self, tmp_path):
        text = "id;x;y\n007;1,5;a,5\n1.234.567; -1.234,5e3 ;1.2.2024\n12;3;,5\n3;x;4\n"
        path = written(tmp_path, text)
        read = read_table(path, decimal=",")
        assert read.frame["id"].to_list() == ["007", "1234567", "12", "3"]
        assert read.frame["y"].to_list() == ["a,5", "1.2.2024", ".5", "4"]
        assert numbers(read.take(np.arange(3)), "x").tolist() == [1.5, -1234500, 3]
        with pytest.raises(InputError, match="line 5, column 'x': 'x' is not a number"):
            numbers(read, "x")
        assert read_table(written(tmp_path, "007;1,5\n"), header=False, decimal=",").frame.rows() == [
            ("007", "1.5")
        ]
        assert read_table(written(tmp_path, 'a,b\n1,"1,5"\n'), decimal=",").frame.rows() == [("1", "1.5")]
        with pytest.raises(InputError, match="`decimal` must be a point or a comma"):
            read_table(path, decimal=";")

    @pytest.mark.parametrize(
        ("decimal", "cells", "values", "told"),
        [
            # a comma somewhere: points separate thousands, and a number that has them otherwise is refused
            (",", "28,11 1,5 ,5 -3 2e3", [28.11, 1.5, 0.5, -3, 2000], ""),
            (",", "9.904 28,11", [9904, 28.11], "'9.904' is read as 9904"),
            (",", "9.904 1.234,5", [9904, 1234.5], ""),
            (",", "9.904 28,11 28.11", "line 4, column 'x': '28.11' has a decimal point", ""),
            (",", "28,11 0.904", "line 3, column 'x': '0.904' has a decimal point", ""),
            (",", "1234.567 28,11", "line 2, column 'x': '1234.567' has a decimal point", ""),
            (",", "1.234,5 1,234.5", "line 3, column 'x': '1,234.5' has a decimal point", ""),
            (",", "1,234 28.11", "line 3, column 'x': '28.11' has a decimal point", ""),
            # no comma: points are thousands only if all numbers could be
            (",", "9.904 7.112", [9904, 7112], "'9.904' is read as 9904"),
            (",", "9.904 1.234.567", [9904, 1234567], ""),
            (",", "9.904 28.11", [9.904, 28.11], "'28.11' is read with a decimal point"),
            (",", "0.904 7.112", [0.904, 7.112], "'0.904' is read with a decimal point"),
            (",", "1.234.567 28.11", "line 3, column 'x': '28.11' has a decimal point", ""),
            (",", "1.5e3 7", [1500, 7], "'1.5e3' is read with a decimal point"),
            # without the option
            (".", "9.904 28.11", [9.904, 28.11], ""),
            (".", "28,11 28.11", "line 3, column 'x': '28.11' has a decimal point", ""),
            (".", "1,234.5 7 28,11", "line 2, column 'x': '1,234.5' has a decimal point", ""),
            (".", "1.234,5 28.11", "line 3, column 'x': '28.11' has a decimal point", ""),
            (".", "28.11 0,904", "line 2, column 'x': '28.11' has a decimal point", ""),
            (".", "1,234,567 28,11", "line 2, column 'x': '1,234,567' has a decimal point", ""),
            (".", "9,904 28.11", "line 2, column 'x': '9,904' is not a number", ""),
            (".", "28,11 9.904", "line 2, column 'x': '28,11' is not a number", ""),
        ],
    )
    @pytest.mark.parametrize("separator", [";", ","])
    def test_decimal_marks_of_a_column(self, tmp_path, decimal, cells, values, told, separator):
        rows = "".join(f'a{separator}"{cell}"\n' for cell in cells.split())
        path = written(tmp_path, f"key{separator}x\n{rows}")
        if isinstance(values, str):
            with pytest.raises(InputError, match=re.escape(f"{path} {values}")):
                numbers(read_table(path, decimal=decimal, separator=separator), "x")
            return
        read = read_table(path, decimal=decimal, separator=separator)
        assert numbers(read, "x").tolist() == values
        assert [told in note for note in read.guesses] == [True] * bool(told)

    @pytest.mark.parametrize("decimal", [",", "."])
    def test_decimal_marks_in_text_are_text(self, tmp_path, decimal):
        cells = ["1.2.2024", "192.168.100.200", "No. 28,11", "28.11", "28,11", "10.0.0.1", "3 cm", "v2"]
        path = written(tmp_path, "x;y\n" + "".join(f"{cell};1\n" for cell in cells))
        assert read_table(path, decimal=decimal, separator=";").frame["x"].to_list() == cells

    def test_lines_of_decimal_marks_behind_blank_lines_and_quotes(self, tmp_path):
        path = written(tmp_path, 'x;y\n1,5;"a\nb"\n\n2.5;c\n')
        with pytest.raises(InputError, match=r"line 5, column 'x': '2\.5' has .* '1,5' in line 2 a"):
            read_table(path, decimal=",")

    def test_the_dialect_reads_another_file_alike(self, tmp_path):
        path = written(tmp_path, "1,5|?\n")
        dialect = read_table(path, separator="|", header=False, decimal=",", missing="?").dialect
        assert dialect == Dialect("|", header=False, decimal=",", missing=("?",))
        assert read_table(path, **asdict(dialect)).frame.rows() == [("1.5", None)]
        assert Table(pl.DataFrame({"x": [1]})).dialect is None

    def test_missing_marks(self, tmp_path):
        path = written(tmp_path, 'a,b\n?,1\n" NA ",2\n"x,y",-9\n,\n\nNA,?\n')
        read = read_table(path, missing=["NA", "?", "-9", "x,y"])
        assert read.frame.rows() == [(None, "1"), (None, "2"), (None, None), (None, None), (None, None)]
        assert "line 7," in read.where(4, "a")
        assert read_table(path, missing="NA").frame["a"].to_list() == ["?", None, "x,y", None, None]
        with pytest.raises(InputError, match="line 3: the row has 1 field"):
            read_table(written(tmp_path, 'a,b\n"x,y",1\n2\n'), missing=["x,y"])

    def test_a_text_of_carriage_returns_inside_values(self, tmp_path):
        read = read_table(path := written(tmp_path, "a,b\r\n1,x\ry\r\n2,\r\n\r\n3,z\r\n"))
        assert read.frame.rows() == [("1", "x\ry"), ("2", None), ("3", "z")]
        assert read.where(2, "a") == f"{path} line 5, column 'a'"

    def test_unknown_column_suggests_a_name(self):
        with pytest.raises(InputError, match="did you mean 'amount'"):
            table(amount=[1.0]).column("amuont")
        with pytest.raises(InputError, match="it has 'a', 'b'"):
            table(a=[1.0], b=[1.0]).column("zzzzz")

    @given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
    @settings(max_examples=30, deadline=None)
    def test_csv_and_parquet_keep_every_bit(self, values, tmp_path_factory):
        folder = tmp_path_factory.mktemp("bits")
        frame = pl.DataFrame({"x": values, "one": 1})
        for name in ("t.csv", "t.parquet"):
            write_table(frame, folder / name)
            assert numbers(read_table(folder / name), "x").tolist() == values


class TestColumns:
    def test_words_for_missing_and_booleans(self):
        assert np.isnan(numbers(table(x=["NA", " ", "nan", None, "NULL"]), "x")).all()
        assert numbers(table(x=["True", "false", " TRUE "]), "x").tolist() == [1, 0, 1]
        assert numbers(table(x=[True, False]), "x").tolist() == [1, 0]
        assert np.isnan(numbers(table(x=["true", "NA"]), "x")[1])

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (["1", "abc"], "row 2, column 'x': 'abc' is not a number"),
            (["1", "inf"], "row 2, column 'x': the value is infinite"),
            ([1.0, -np.inf], "row 2, column 'x': the value is infinite"),
            (["true", "2"], "row 1, column 'x': 'true' is not a number"),
            ([[1], [2]], "holds List"),
        ],
    )
    def test_not_numbers(self, values, message):
        with pytest.raises(InputError, match=message):
            numbers(table(x=values), "x")

    def test_text_of_numbers_has_one_spelling(self):
        assert texts(table(x=[1.0, 2.5]), "x").to_list() == texts(table(x=["1", "2.5"]), "x").to_list()
        assert texts(table(x=["1.00", " a "]), "x").to_list() == ["1", "a"]

    def test_missing_is_an_error_unless_imputed(self):
        gaps = table(x=["1", "", "3"], city=["a", None, "b"])
        with pytest.raises(InputError, match="row 2, column 'x': the value is missing"):
            learn(gaps, ["x"], impute="none")
        with pytest.raises(InputError, match="row 2, column 'city': the value is missing"):
            learn(gaps, ["city"], categorical=["city"], impute="none")
        encoder = learn(gaps, ["x", "city"], categorical=["city"])
        assert encoder.features == ["x", "x missing", "city=a", "city=b", "city missing"]
        assert encoder.raw(gaps).tolist() == [[1, 0, 1, 0, 0], [2, 1, 0, 0, 1], [3, 0, 0, 1, 0]]
        assert learn(gaps, ["x"], sample_weight=np.array([3, 5, 2])).columns[0].fill == (1,)

    def test_column_without_values(self):
        for gaps in (["", "NA"], [None, None]):
            data = table(x=gaps, a=[1.0, 2.0], y=[0, 1])
            assert table_columns(data, Recipe("y")).left_out == [("x", "no values")]
            with pytest.raises(InputError, match=r"column 'x' cannot be used \(no values\)"):
                table_columns(data, Recipe("y", features=["x", "a"]))
        # in a fold of the rows it is no error
        assert learn(table(x=[None, None]), ["x"], scale="minmax").encode(table(x=[3.0])).tolist() == [[3, 0]]

    def test_numbers_with_a_slip_are_not_text(self):
        assert not is_text(table(x=["1", "2", "3x"]), "x")
        assert is_text(table(x=["a", "b", "3"]), "x")
        assert not is_text(table(x=[1.0, 2.0]), "x")


class TestEncoder:
    def test_unknown_value_is_an_average_row(self):
        encoder = learn(table(city=["a", "b", "b", "b"]), ["city"], categorical=["city"])
        new = table(city=["b", "c", None])
        assert encoder.encode(new).tolist() == [[0, 1], [0.25, 0.75], [0.25, 0.75]]
        assert "'c'" in encoder.notes(new)[0]

    @pytest.mark.parametrize("scale", ["standard", "minmax", "none"])
    def test_scaling(self, scale):
        x = np.array([1.0, 2.0, 6.0])
        data = table(x=x, one=[5.0] * 3)
        X = learn(data, ["x", "one"], scale=scale).encode(data)
        expected = {"standard": (x - x.mean()) / x.std(), "minmax": (x - 1) / 5, "none": x}
        np.testing.assert_allclose(X[:, 0], expected[scale], rtol=1e-15)
        assert np.ptp(X[:, 1]) == 0

    def test_all_text_columns(self):
        data = table(x=[1.0, 2.0], city=["a", "b"], kind=["u", "v"], y=[0, 1])
        encoder, _ = linear_features(data, table_columns(data, Recipe("y", categorical=["all"])).columns)
        assert encoder.features == ["x", "city=a", "city=b", "kind=u", "kind=v"]
        assert encoder.starts.tolist() == [0, 1, 3]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"scale": "robust"}, "unknown `scale` 'robust': use one of standard"),
            ({"impute": "zero"}, "unknown `impute` 'zero': use one of median"),
            ({"categorical": ["citty"]}, "no column 'citty'"),
            ({"categorical": ["y"]}, "not among the features"),
        ],
    )
    def test_bad_options(self, options, message):
        with pytest.raises(InputError, match=message):
            TableRanker.fit(table(x=[1.0, 2.0], y=[0, 1]), Recipe("y", **options), PNormPush())

    def test_values_too_large_to_scale(self):
        for values in ([1e300, -1e300], [1e-200, 2e-200]):
            with pytest.raises(InputError, match="too large or too small to scale"):
                learn(table(x=values), ["x"])


class TestLabels:
    @pytest.mark.parametrize(
        ("values", "positive"),
        [
            ([0, 1], "1"),
            ([0.0, 1.0], "1"),
            ([-1, 1], "1"),
            ([True, False], "true"),
            (["False", "True"], "true"),
            (["No", "Yes"], "Yes"),
            (["n", "y"], "y"),
            (["negative", "positive"], "positive"),
        ],
    )
    def test_obvious_positive(self, values, positive):
        assert read_target(table(y=values), "y")[1] == positive

    @pytest.mark.parametrize("values", [["cat", "dog"], [1, 2], [0, 1, 2], ["yes", "no", "maybe"]])
    def test_not_obvious(self, values):
        with pytest.raises(InputError, match="name the positive one with `positive=`"):
            read_target(table(y=values), "y")

    def test_one_against_the_rest(self):
        grades = table(y=["a", "b", "c", "a"])
        assert read_target(grades, "y", "b")[0].tolist() == [0, 1, 0, 0]
        assert read_target(table(y=[1, 2, 3]), "y", "2.0")[0].tolist() == [0, 1, 0]

    @pytest.mark.parametrize(
        ("values", "positive", "message"),
        [
            (["a", "a"], None, "only one value"),
            (["a", "b"], "c", r"no value 'c'; it has 'a' \(1 row\), 'b' \(1 row\)"),
            (["a", None], None, "row 2, column 'y': the target is missing"),
        ],
    )
    def test_bad_target(self, values, positive, message):
        with pytest.raises(InputError, match=message):
            read_target(table(y=values), "y", positive)


@pytest.fixture
def payments():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 3))
    y = (X @ [1.0, -0.5, 0.2] + rng.normal(size=200) > 1).astype(int)
    city = np.array(["Oslo", "Rome", "Lima"])[rng.integers(3, size=200)]
    frame = pl.DataFrame(
        {"case": [f"{i:04d}" for i in range(200)], "city": city, "query": 5 + np.arange(200) // 20}
    )
    return Table(frame.with_columns(a=X[:, 0], b=X[:, 1], c=X[:, 2], fraud=y))


def fitted(data, p=4.0, **recipe):
    options = {"target": "fraud", "id": "case", "drop": ["query"], "categorical": ["city"]} | recipe
    return TableRanker.fit(data, Recipe(**options), PNormPush(p, alpha=1e-3))


class TestTableRanker:
    def test_scores_are_those_of_the_estimator_by_hand(self, payments):
        ranker = fitted(payments, drop=["query", "city"], categorical=[])
        X = payments.frame.select("a", "b", "c").to_numpy()
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        expected = PNormPush(4.0, alpha=1e-3).fit(Z, payments.frame["fraud"].to_numpy()).decision_function(Z)
        np.testing.assert_allclose(ranker.score(payments), expected, rtol=1e-9)

    def test_contributions_add_up_to_the_score(self, payments):
        ranker = fitted(payments)
        scores = ranker.score(payments)
        total = ranker.contributions(payments).sum(axis=1)
        np.testing.assert_allclose(total, scores - scores.mean(), atol=1e-10)
        assert ranker.contributions(payments).shape == (200, 4)

    def test_explanations_name_what_lifts(self, payments):
        ranker = fitted(payments)
        for row, reasons in zip(ranker.contributions(payments), ranker.explain(payments), strict=True):
            assert len(reasons) == min(3, (row > 0).sum())
            assert all("=+" in reason for reason in reasons)

    def test_column_order_and_extra_columns_do_not_matter(self, payments):
        ranker = fitted(payments)
        shuffled = Table(payments.frame.select(reversed(payments.names)).with_columns(extra=1))
        np.testing.assert_array_equal(ranker.score(shuffled), ranker.score(payments))
        assert "'extra'" in ranker.check(shuffled)[0]
        assert not ranker.check(payments)
        assert not ranker.check(shuffled, known=["extra"])

    def test_missing_column_is_named(self, payments):
        with pytest.raises(InputError, match="no column 'b'"):
            fitted(payments).score(Table(payments.frame.drop("b")))

    def test_weights_are_repetitions(self, payments):
        weight = np.arange(200) % 3
        once = Table(payments.frame.with_columns(w=weight))
        again = Table(payments.frame[np.repeat(np.arange(200), weight)])
        weighted, repeated = fitted(once, weight="w"), fitted(again)
        np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=1e-5, atol=1e-7)

    @pytest.mark.parametrize(
        ("recipe", "message"),
        [
            ({"features": ["a", "fraud"]}, "'fraud' is the target"),
            ({"features": ["a"], "drop": ["a"]}, "no column left"),
            ({"weight": "b"}, "a weight must be a number of at least 0"),
            ({"weight": "zero"}, "column 'zero': all weights are 0"),
            ({"drop": ["nothing"]}, "no column 'nothing'"),
            ({"id": "nothing"}, "no column 'nothing'"),
        ],
    )
    def test_bad_recipes(self, payments, recipe, message):
        with pytest.raises(InputError, match=message):
            fitted(Table(payments.frame.with_columns(zero=0)), **recipe)

    def test_values_too_large_to_score(self, payments):
        huge = Table(payments.frame.with_columns(a=pl.lit(1e308), b=pl.lit(-1e308)))
        ranker = fitted(payments)
        ranker.estimator.coef_ = ranker.estimator.coef_ * 1e3
        with pytest.raises(InputError, match="too large to score"):
            ranker.score(huge)


class TestManyLevels:
    def peak(self, levels):
        """Peak of the memory for the indicators of 20,000 rows, as a multiple of a dense matrix of them."""
        words = [f"w{k % levels}" for k in range(20_000)]
        encoder = learn(table(c=words), ["c"], categorical=["c"])
        assert len(encoder.features) == levels
        tracemalloc.start()
        encoder.encode(table(c=words))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak / (20_000 * levels * 8)

    def test_few_indicators_are_in_memory_once(self):
        assert self.peak(MOST_DENSE) < 1.5

    def test_indicators_are_sparse(self):
        assert self.peak(400) < 0.1


class TestThresholds:
    @given(st.lists(st.integers(-5, 5), min_size=1, max_size=60), st.floats(0, 0.999))
    @settings(deadline=None)
    def test_never_more_than_asked(self, scores, fpr):
        negatives = np.array(scores, dtype=float)
        threshold = Thresholds.learn(negatives).at(fpr)
        assert (negatives > threshold).mean() <= fpr

    def test_as_many_as_asked_when_scores_differ(self):
        negatives = np.random.default_rng(0).permutation(100.0 * np.arange(100))
        thresholds = Thresholds.learn(negatives)
        assert [int((negatives > thresholds.at(k / 100)).sum()) for k in range(60)] == list(range(60))

    def test_stays_small(self):
        thresholds = Thresholds.learn(np.arange(1e5))
        assert len(thresholds.counts) <= 513
        assert thresholds.at(0.01) >= 98_900

    @pytest.mark.parametrize("fpr", [-0.1, 1.0, np.nan])
    def test_bad_rate(self, fpr):
        with pytest.raises(InputError, match="`fpr` must be at least 0 and below 1"):
            Thresholds.learn(np.arange(3.0)).at(fpr)


class TestRanking:
    def test_best_first_with_ids(self, payments):
        ranker = fitted(payments)
        ranked = rank_table(ranker, payments, top=7, explain=True)
        assert ranked.columns == ["case", "rank", "score", "why_1", "why_2", "why_3"]
        best = np.argsort(-ranker.score(payments), kind="stable")[:7]
        assert ranked["case"].to_list() == [f"{i:04d}" for i in best]
        assert ranked["rank"].to_list() == list(range(1, 8))

    def test_inside_groups(self, payments):
        ranker = fitted(payments, groups="query", drop=[])
        ranked = rank_table(ranker, payments, top=3)
        assert ranked.columns == ["query", "case", "rank", "score"]
        assert ranked["rank"].to_list() == [1, 2, 3] * 10
        assert ranked["query"].unique(maintain_order=True).to_list() == list(range(5, 15))
        scores, groups = ranker.score(payments), segment(payments.frame["query"].to_numpy(), 200)
        for q, part in enumerate(ranked.partition_by("query", maintain_order=True)):
            assert part["score"].to_list() == sorted(scores[groups.rows(q)], reverse=True)[:3]

    def test_false_positive_rate(self, payments):
        ranker = fitted(payments)
        ranked = rank_table(ranker, payments, fpr=0.05, keep=True)
        negatives = (payments.frame["fraud"] == 0).sum()
        assert 0.04 < (ranked["fraud"] == 0).sum() / negatives <= 0.05

    def test_without_ids_rows_are_numbered(self, payments):
        ranked = rank_table(fitted(payments), Table(payments.frame.drop("case")), top=1)
        assert ranked.columns == ["row", "rank", "score"]
        assert ranked["row"][0] == np.argmax(fitted(payments).score(payments)) + 1

    def test_keep_takes_every_column_once(self, payments):
        ranked = rank_table(fitted(payments), payments, keep=True, id="city")
        assert ranked.columns == ["city", "rank", "score", "case", "query", "a", "b", "c", "fraud"]

    @pytest.mark.parametrize("name", ["row", "rank", "score", "probability", "why_1", "why_3"])
    def test_keep_loses_no_column(self, payments, name):
        ranker = fitted(payments)
        frame = payments.frame.drop("case").with_columns(pl.Series(name, [f"own {i}" for i in range(200)]))
        if name == "probability":  # the ranker has none
            ranked = rank_table(ranker, Table(frame), keep=True, explain=True)
        else:
            with pytest.raises(InputError, match=f"'{name}'"):
                rank_table(ranker, Table(frame), keep=True, explain=True)
            if name in ("rank", "score"):
                return
            ranked = rank_table(ranker, Table(frame), keep=True, id=name)
        assert ranked[name].sort().to_list() == sorted(frame[name])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"top": 1, "fpr": 0.1}, "give one of them"),
            ({"top": 0}, "at least 1"),
            ({"id": "nobody"}, "no column 'nobody'"),
            ({"keep": True}, "'score'"),
        ],
    )
    def test_bad_options(self, payments, options, message):
        own = Table(payments.frame.with_columns(score=pl.lit(1.0)))
        with pytest.raises(InputError, match=message):
            rank_table(fitted(payments), own, **options)

    def test_rate_needs_one_list(self, payments):
        with pytest.raises(InputError, match="use `top`"):
            rank_table(fitted(payments, groups="query", drop=[]), payments, fpr=0.1)

    def test_measures_fit_the_length_of_the_list(self, payments):
        judged = Judged(payments.frame["fraud"].to_numpy(), fitted(payments).score(payments), None)
        assert "precision_at_100" in default_measures(judged)
        assert "precision_at_100" not in default_measures(judged._replace(weight=np.full(200, 0.25)))
        grouped = default_measures(judged._replace(groups=payments.frame["query"].to_numpy()))
        assert "precision_at_10" in grouped
        assert "precision_at_50" not in grouped


class TestAtomic:
    def test_failing_write_leaves_the_old_file(self, tmp_path):
        path = written(tmp_path, "old", "a.txt")
        with suppress(RuntimeError), replacing(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_keeps_mode_and_link(self, tmp_path):
        path = written(tmp_path, "old", "a.txt")
        path.chmod(0o640)
        link = tmp_path / "link.txt"
        link.symlink_to(path)
        write_bytes(link, b"new")
        assert link.is_symlink()
        assert path.read_text() == "new"
        assert path.stat().st_mode & 0o777 == 0o640

    def test_refusals(self, tmp_path):
        for path in (tmp_path, tmp_path / "no" / "a.txt", os.devnull):
            with pytest.raises(InputError, match="cannot write"):
                check_writable(path)
        with pytest.raises(InputError, match="cannot tell the format"):
            write_table(pl.DataFrame({"a": [1]}), tmp_path / "a.docx")
        assert not list(tmp_path.iterdir())


def test_reasons_are_those_of_the_whole_group():
    """Rows that are filtered out still scale the features of those that are kept."""
    rng = np.random.default_rng(0)
    data = pl.DataFrame(
        {"q": np.repeat(np.arange(6), 10), "a": rng.normal(size=60), "b": rng.normal(size=60)}
    )
    rows = Table(data.with_columns(stars=(data["a"] * 2 + data["b"] > 0.5).cast(pl.Int64)))
    recipe = Recipe(target="stars", graded=True, groups="q", scale="query")
    ranker = TableRanker.fit(rows, recipe, MonotoneRetargeting(alpha=0.1))
    best = rank_table(ranker, rows, explain=True).filter(pl.col("rank") == 1)
    assert best["why_1"].str.contains("=").all()
    assert rank_table(ranker, rows, top=1, explain=True).equals(best)


def test_reasons_of_a_letor_file_without_the_last_feature(tmp_path):
    lines = [f"{i % 3} qid:{i // 5} 1:{i % 4} 2:{i % 3}" for i in range(30)]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    (tmp_path / "new.txt").write_text("\n".join(line.partition(" 2:")[0] for line in lines))
    recipe = Recipe(target="relevance", graded=True, groups="qid", id="docid")
    ranker = TableRanker.fit(read_table(tmp_path / "train.txt"), recipe, MonotoneRetargeting(alpha=0.1))
    new = read_table(tmp_path / "new.txt")
    ranked = rank_table(ranker, new, top=1, explain=True)
    assert ranked.select("qid", "docid", "rank", "score").equals(rank_table(ranker, new, top=1))


def test_the_index_of_pandas_is_no_feature():
    table = Table(pl.DataFrame({"__index_level_0__": [3, 1, 2], "x": [1.0, 2.0, 3.0], "y": [0, 1, 1]}))
    assert feature_columns(table, {"target": "y"}) == ["x"]
    assert feature_columns(table, {"target": "y"}, ["__index_level_0__"]) == ["__index_level_0__"]


def test_a_model_scores_and_ranks_data_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [0.0, 1.0, 2.0, 1.5], "kind": ["a", "b", "b", "a"], "fraud": [0, 0, 1, 0]})
    ranker = TableRanker.fit(frame, Recipe("fraud"), PNormPush())
    expected = ranker.score(Table(pl.from_pandas(frame)))
    for table in (frame, Table(frame), pl.from_pandas(frame)):
        np.testing.assert_array_equal(ranker.score(table), expected)
        assert rank_table(ranker, table, explain=True)["row"][0] == 3
    with pytest.raises(InputError, match="a table is a data frame or the path of a file, not list"):
        ranker.score([[1.0, "a"]])
    with pytest.raises(InputError, match="'x' has more than one"):
        ranker.score(pandas.DataFrame([[1.0, 2.0]], columns=["x", "x"]))


def test_columns_of_pandas_are_those_of_polars(monkeypatch):
    """Of every type, and without pyarrow, which polars takes for text."""
    pandas = pytest.importorskip("pandas")
    day = datetime.datetime(2024, 5, 17)
    columns = {
        "whole": np.array([1, 2, 3]),
        "number": np.array([1.5, np.nan, 2.0], dtype=np.float32),
        "flag": np.array([True, False, True]),
        "text": ["x", None, "z"],
        "level": pandas.Categorical(["u", "v", None]),
        "day": pandas.to_datetime([day, None, day]),
        "instant": pandas.to_datetime([day, None, day], utc=True),
        "maybe": pandas.array([1, None, 3], dtype="Int64"),
        "perhaps": pandas.array([True, None, False], dtype="boolean"),
    }
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = as_table(pandas.DataFrame(columns)).frame
    assert frame.rows() == [
        (1, 1.5, True, "x", "u", day.date(), day.replace(tzinfo=datetime.UTC), 1, True),
        (2, None, False, None, "v", None, None, None, None),
        (3, 2.0, True, "z", None, day.date(), day.replace(tzinfo=datetime.UTC), 3, False),
    ]


def test_labels_that_training_had_not_are_told():
    rows = {"x": [0.0, 1.0, 2.0, 1.5] * 5}
    ranker = TableRanker.fit(pl.DataFrame(rows | {"y": [0, 0, 1, 0] * 5}), Recipe("y"), PNormPush())
    assert ranker.negatives == ("0",)
    known = judge_table(ranker, Table(pl.DataFrame(rows | {"y": [0, 0, 1, 0] * 5})))
    other = judge_table(ranker, Table(pl.DataFrame(rows | {"y": [1, 1, 2, 1] * 5})))
    assert known.notes == ()
    assert "unknown to the model: '2' (5 rows)" in other.notes[0]


def test_names_of_columns_are_a_list():
    with pytest.raises(InputError, match=r"`drop` must be a list of column names: use \['fraud'\]"):
        Recipe("y", drop="fraud")
