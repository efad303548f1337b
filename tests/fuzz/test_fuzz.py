"""Readers accept arbitrary bytes: they return a value or a one-line error with its place (``python -m tests.fuzz``)."""

import gzip
import io
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import numpy as np
import polars as pl
import pytest

import apexrank
from apexrank import files
from apexrank.aggregation.ballot_files import check_cells
from apexrank.cli.options import BallotOptions, EdgeOptions
from apexrank.datasets import letor, read_letor, read_preflib
from apexrank.errors import InputError, MissingExtraError
from apexrank.files import unpacked
from apexrank.graph.files import edges_of_file
from apexrank.graph.reading import as_graph
from apexrank.graph.vertex_files import named_vertex, read_seeds, seed_weights
from apexrank.io import read_qrels, read_run, read_table, stream, write_table
from apexrank.io.columns import read_target, texts
from apexrank.io.stream import read_blocks
from apexrank_papers.data.networks import load_cnr_2000
from apexrank_papers.data.webspam import load_webspam
from tests.fuzz import work
from tests.fuzz.binary import ROWS, _models
from tests.fuzz.generate import generate
from tests.fuzz.runner import Fault, check_message, outcome
from tests.fuzz.targets import GRAPH, NUMBERED, TARGETS
from tests.io.model_files import DELETED, at, edited, number, pack, places, unpack

SEED = 20_251
EACH = 360  # times 14 targets: more than 5,000 inputs


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_any_bytes_give_a_value_or_an_error_of_ours(target, tmp_path, counted):
    seen = set()
    for index in range(EACH):
        data = generate(target, SEED, index)
        try:
            seen.add(outcome(target, data, tmp_path))
        except Fault as fault:
            pytest.fail(f"input {index} of seed {SEED}: {fault}; it begins with {data[:200]!r}")
    assert seen == {"value", "error"}  # otherwise the inputs would reach little code
    counted(f"inputs of readers fuzzed: {target}", EACH)


@pytest.mark.skipif(
    find_spec("resource") is None, reason="this system does not tell what memory a process took"
)
@pytest.mark.slow
def test_small_files_take_no_gigabyte(counted):
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--bombs"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert max(told["bytes"].values()) < 1.6e6
    assert told["peak"] < work.MOST_BYTES, told
    for name, end in told["outcomes"].items():
        if "packed" in name:
            assert end != "value", name
    counted("files that would fill the memory, refused or read in it", len(told["outcomes"]))


class TestHarness:
    """A fuzzer that finds no fault proves nothing unless it would detect one."""

    @pytest.mark.parametrize(
        ("message", "found"),
        [
            ("input.csv line 2:\nno", "several lines"),
            ("input.csv line 2: " + "x" * 2100, "2118 characters"),
            ("line 2 is wrong", "no file"),
            ("the input is wrong in line 2", "no file"),
            ("input.csv is wrong", "no line"),
            ("input.csv: no memory", "no line"),
        ],
    )
    def test_bad_messages_are_faults(self, message, found):
        with pytest.raises(Fault, match=found):
            check_message(message, has_lines=True)

    def test_other_exceptions_are_faults(self, tmp_path, monkeypatch):
        monkeypatch.setitem(TARGETS, "LETOR", lambda data, folder, rng: 1 / 0)
        with pytest.raises(Fault, match="ZeroDivisionError"):
            outcome("LETOR", b"", tmp_path)

    def test_warnings_are_faults(self, tmp_path, monkeypatch):
        monkeypatch.setitem(TARGETS, "LETOR", lambda data, folder, rng: np.array([1e308]) * 10)
        with pytest.raises(Fault, match="overflow"):
            outcome("LETOR", b"", tmp_path)

    @pytest.mark.skipif(which("false") is None, reason="this system has no program that fails")
    def test_workers_that_die_are_told_with_their_inputs(self, monkeypatch):
        """Another worker starts after the input, so that one crash does not hide later faults."""
        monkeypatch.setattr(work.sys, "executable", which("false"))
        share = work._watch(work.Share("seeds", 0, 4, 7))
        assert [index for index, _ in share.faults] == [4, 5, 6]
        assert share.counts["fault"] == 3


def refused(read, path, data, *words):
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert path.name in message
    for word in words:
        assert word in message
    return message


class TestMessages:
    def test_one_line_whatever_is_quoted(self):
        assert str(InputError("column a\nb\x1b[31m: drop it")) == r"column a b\x1b[31m: drop it"

    def test_short_whatever_is_quoted(self):
        message = str(InputError(f"x.csv line 7: {'9' * 10_000} is no number; correct it"))
        assert len(message) < 2000
        assert message.startswith("x.csv line 7: 999")
        assert message.endswith("999 is no number; correct it")

    def test_lists_of_choices_are_whole(self):
        message = f"unknown name: use one of {', '.join(map(str, range(300)))}"
        assert str(InputError(message)) == message

    def test_other_errors_too(self):
        assert str(MissingExtraError("a\nb")) == "a b"
        assert MissingExtraError("a", name="igraph").name == "igraph"
        assert InputError("a", 3).args == ("a", 3)


class TestTables:
    def test_damaged_gzip_data(self, tmp_path):
        """Python's reader and the fast one raised errors of zlib and of the operating system."""
        whole = gzip.compress(b"a,b\n" + b"1,2\n" * 5000, mtime=0)
        for data in (
            whole[:-9],
            whole[:20] + b"\xff\xff\xff" + whole[23:],
            whole[:-8] + bytes(8),
            b"\x1f\x8b\x08",
        ):
            for read in (read_table, BallotOptions().read, lambda path: list(read_blocks(path, "a"))):
                refused(read, tmp_path / "t.csv.gz", data, "gzip data end early or are damaged")

    def test_carriage_return_inside_a_line(self, tmp_path):
        """Two readers split the header in two ways, and the second looked for a column of the first."""
        data = b"a,b\rc,y\n1,2,1\n"
        refused(read_table, tmp_path / "t.csv", data, "line 1 has carriage returns")
        refused(lambda path: list(read_blocks(path, "y")), tmp_path / "t.csv", data, "line 1")

    def test_carriage_returns_at_line_ends_are_fine(self, tmp_path):
        (tmp_path / "t.csv").write_bytes(b"a,b\r\n1,2\r\n")
        assert read_table(tmp_path / "t.csv").frame.to_dicts() == [{"a": "1", "b": "2"}]

    @pytest.mark.parametrize("names", [['a "b"', "c"], ['"', 'a""b'], ["x", 'y""']])
    def test_quotes_in_names_come_back(self, tmp_path, names):
        """The fast reader leaves quotes in names doubled."""
        path = tmp_path / "t.csv"
        write_table(pl.DataFrame({name: [1, 0] for name in names}), path)
        assert read_table(path).names == names
        assert read_blocks(path, names[1]).head().names == names

    def test_names_that_are_split_in_two_ways(self, tmp_path):
        for read in (read_table, lambda path: list(read_blocks(path, "b"))):
            refused(read, tmp_path / "t.csv", b'"a" ,b\n1,2\n', "line 1")
            refused(read, tmp_path / "t.csv", b"a,b\r\r\n1,2\r\r\n", "line 1 has carriage returns")

    def test_packed_zeros_and_ones_are_fine(self, tmp_path):
        """Indicator columns compress to a ninetieth of their text, which is not a bomb."""
        line = b",".join([b"0"] * 299 + [b"1"]) + b"\n"
        names = ",".join(f"d{j}" for j in range(300)).encode() + b"\n"
        path = tmp_path / "t.csv.gz"
        path.write_bytes(gzip.compress(names) + gzip.compress(line * 1_000) * 60)
        assert len(unpacked(path)) > 1 << 25
        assert len(read_table(path)) == 60_000

    def test_packed_text_that_is_streamed(self, tmp_path, monkeypatch):
        """Only one line at a time is in memory, never the whole file."""
        monkeypatch.setitem(files._LIMITS, "gzip", (60, 1 << 12))
        path = tmp_path / "t.csv.gz"
        path.write_bytes(gzip.compress(b"a,b\n" + b"1,0\n" * 400_000))
        refused(read_table, path, path.read_bytes(), "unpacks to more than 0 MB")
        assert sum(len(block.X) for block in read_blocks(path, "b")) == 400_000
        long = gzip.compress(b"a,b\n1,0\n" + b"1" * 4_000_000)
        refused(lambda path: list(read_blocks(path, "b")), path, long, "in one line")

    def test_plain_text_named_gz(self, tmp_path):
        (tmp_path / "t.csv.gz").write_bytes(b"a,b\n1,2\n")
        assert read_table(tmp_path / "t.csv.gz").frame.to_dicts() == [{"a": "1", "b": "2"}]
        assert len(list(read_blocks(tmp_path / "t.csv.gz", "b"))) == 1

    def test_long_field_beside_a_gap(self, tmp_path):
        """It was rejected only if the last column has a missing value."""
        (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"x" * 200_000 + b",\n1,2\n")
        assert len(read_table(tmp_path / "t.csv")) == 2

    def test_record_that_no_quote_closes(self, tmp_path, monkeypatch):
        monkeypatch.setattr(stream, "_MOST_TEXT", 1000)
        data = b'a,b\n1,"x\n' + b"1,0\n" * 1000
        refused(
            lambda path: list(read_blocks(path, "a")), tmp_path / "t.csv", data, "no quote closes the field"
        )

    def test_pieces_of_much_text_have_fewer_rows(self, tmp_path, monkeypatch):
        monkeypatch.setattr(stream, "_MOST_TEXT", 1000)
        (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"1,0\n" * 1000)
        chunks = list(stream._csv_tables(tmp_path / "t.csv", 5000))
        assert sum(map(len, chunks)) == 1000
        assert len(chunks) == 4

    def test_line_of_separators_that_is_too_long(self, tmp_path):
        refused(read_table, tmp_path / "t.csv", b"a,b\n1,2\n,,,\n", "line 3: the row has 4 fields")

    def test_quotes_that_do_not_match(self, tmp_path):
        for read in (read_table, lambda path: list(read_blocks(path, "a"))):
            refused(read, tmp_path / "t.csv", b'a;b\n1;2\n3;"x\n4;5\n', "line 3")

    def test_line_that_is_no_utf8(self, tmp_path):
        refused(read_table, tmp_path / "t.csv", b"a,b\n1,2\n\xe9,3\n", "line 3: this is not UTF-8 text")
        packed = gzip.compress(b"a,b\n1,2\n\xe9,3\n")
        refused(read_table, tmp_path / "t.csv.gz", packed, "line 3: this is not UTF-8 text")

    def test_line_that_is_no_utf8_in_damaged_gzip_data(self, tmp_path):
        data = gzip.compress(b"a,b\n1,2\n\xe9,3\n", mtime=0)
        refused(read_table, tmp_path / "t.csv.gz", data[:-8] + bytes(8), "gzip data end early or are damaged")

    def test_groups_behind_a_block_of_blank_lines(self, tmp_path):
        """The last group was requested although there are no rows."""
        (tmp_path / "t.csv").write_bytes(b"x,y,id\n\n\n1,1,a\n")
        blocks = list(read_blocks(tmp_path / "t.csv", "y", groups="id", rows=1))
        assert [block.groups.tolist() for block in blocks] == [["a"]]

    def test_blank_lines_only(self, tmp_path):
        refused(read_table, tmp_path / "t.csv", b"\n\n", "empty")

    def test_column_called_count(self):
        """The table of values also has a column of that name."""
        rows = read_rows("count", ["0", "1", "1"])
        assert read_target(rows, "count")[1] == "1"

    def test_dates_beyond_all_years(self):
        """They can be held in memory but not written: the library panics."""
        days = pl.Series([2**31 - 1], dtype=pl.Int32).cast(pl.Date)
        with pytest.raises(InputError, match="Date values cannot be used"):
            texts(read_rows("day", days), "day")

    def test_file_names_are_no_patterns(self, tmp_path):
        frame = pl.DataFrame({"a": [1], "b": [2]})
        for name in ("x[1].csv", "x[1].parquet"):
            path = tmp_path / name
            frame.write_csv(path) if name.endswith("csv") else frame.write_parquet(path)
            assert len(read_table(path)) == 1
        assert as_graph(tmp_path / "x[1].csv").n == 2

    def test_scores_of_features_that_overflow(self, tmp_path):
        """A scale near 0 caused a NumPy warning before the error."""
        tree, arrays = unpack(_models()[0])
        arrays[number(tree, "scale")][:] = 5e-324
        (tmp_path / "m.apex").write_bytes(pack(tree, arrays))
        with pytest.raises(InputError, match="input rows row 1: its values are too large to score"):
            apexrank.load(tmp_path / "m.apex").score(ROWS)

    def test_scores_inside_groups_of_features_that_overflow(self, tmp_path):
        """The error came from scikit-learn and did not name the row."""
        tree, arrays = unpack(_models()[1])
        arrays[number(tree, "scale")][:] = 5e-324
        (tmp_path / "m.apex").write_bytes(pack(tree, arrays))
        with pytest.raises(InputError, match="input rows row 2: its values are too large to score"):
            apexrank.load(tmp_path / "m.apex").score(ROWS)

    def test_reasons_that_overflow(self, tmp_path):
        tree, arrays = unpack(_models()[0])
        arrays[number(tree, "mean")][:] = -1e308
        arrays[number(tree, "coef_")][:] = 1e5
        (tmp_path / "m.apex").write_bytes(pack(tree, arrays))
        assert apexrank.load(tmp_path / "m.apex").explain(ROWS, n=1)[0] == ["x=+inf"]


def read_rows(name, values):
    from apexrank.io import Table

    return Table(pl.DataFrame({name: values}), "rows")


class TestParquet:
    def saved(self, **columns):
        buffer = io.BytesIO()
        pl.DataFrame(columns).write_parquet(buffer)
        return buffer.getvalue()

    def test_panics_of_the_reader_are_errors(self, tmp_path, monkeypatch):
        def panic(*_, **__):
            raise pl.exceptions.PanicException("index out of bounds")

        monkeypatch.setattr(pl, "read_parquet", panic)
        refused(read_table, tmp_path / "t.parquet", self.saved(a=[1]), "index out of bounds")
        monkeypatch.setattr(pl, "scan_parquet", panic)
        refused(lambda path: read_blocks(path, "a"), tmp_path / "t.parquet", self.saved(a=[1]), "index out")

    def test_end_of_the_file(self, tmp_path):
        data = self.saved(a=[1, 2])
        length = int.from_bytes(data[-8:-4], "little")
        wild = data[: -8 - length] + b"\xff" * length + data[-8:]
        for read in (read_table, lambda path: read_blocks(path, "a")):
            for damaged in (data[:-1], b"PAR1", b"PARE" + data[4:-4] + b"PARE", wild):
                refused(read, tmp_path / "t.parquet", damaged, "t.parquet as Parquet: ")


class TestGraphs:
    def test_messages_name_the_file(self, tmp_path):
        path = tmp_path / "e.txt"
        refused(lambda path: as_graph(path, signed=True), path, b"a b\n", "`signed=True` needs weights")
        pl.DataFrame({"source": [1.0, 2.5], "target": [1.0, 2.0]}).write_parquet(tmp_path / "e.parquet")
        with pytest.raises(InputError, match=r"e.parquet row 2: sources hold the number 2\.5"):
            as_graph(tmp_path / "e.parquet")

    def test_carriage_return_inside_a_line(self, tmp_path):
        refused(as_graph, tmp_path / "e.csv", b"a,b\nc\r,d,e\n", "line 2")
        refused(as_graph, tmp_path / "e.csv", b"a\rb,c\n", "column names but no edges")

    def test_only_lines_of_separators(self, tmp_path):
        refused(as_graph, tmp_path / "e.csv", b"source,target\n,\n,\n", "no edges")

    def test_note_of_many_columns_is_short(self, tmp_path):
        path = tmp_path / "e.txt"
        path.write_text(" ".join(["1"] * 500) + "\n")
        assert len(edges_of_file(path).assumed.removeprefix(str(path))) < 200

    def test_damaged_gzip_data_are_told_once(self, tmp_path):
        reading = EdgeOptions()
        message = refused(reading.read, tmp_path / "e.txt.gz", gzip.compress(b"1 2\n" * 99)[:-9], "gzip data")
        assert message.count("e.txt.gz") == 1

    def test_seeds(self, tmp_path):
        """A line feed inside a line, and a number that Python does not convert."""
        refused(read_seeds, tmp_path / "s.csv", b"vertex,weight\na\rb,1,2\n", "line 2")
        refused(read_seeds, tmp_path / "s.csv", b"a\n\xe9\n", "line 2: this is not UTF-8 text")
        digits = b"9" * 5000
        refused(lambda path: seed_weights(path, NUMBERED, "trusted"), tmp_path / "s.txt", digits, "line 1")
        assert named_vertex(NUMBERED, "-12") == -12
        assert named_vertex(GRAPH, "12") == "12"

    def test_hosts_beyond_reason(self, tmp_path):
        (tmp_path / "labels").write_text("0 spam\n")

        def read(path):
            return load_webspam(tmp_path, graph=path, labels="labels")

        refused(read, tmp_path / "graph", b"0 -> 2000000000:1\n", "goes up to host 2000000000")

    def test_arrays_of_no_graph(self, tmp_path):
        for arrays in ({"indptr": [0, 2 * 10**9, 3 * 10**9]}, {"indptr": [0, -1, 1]}, {"shape": [2**62, 1]}):
            good = {"indptr": [0, 1, 1], "indices": [1], "shape": [2, 2]}
            np.savez(tmp_path / "g.npz", **good | arrays)
            with pytest.raises(InputError, match="is not a graph"):
                load_cnr_2000(tmp_path / "g.npz")


class TestLists:
    def test_damaged_gzip_data(self, tmp_path):
        data = gzip.compress(b"q 0 d 1\n" * 99)[:-9]
        for read in (read_run, read_qrels, read_letor):
            refused(read, tmp_path / "r.gz", data, "gzip data end early or are damaged")

    def test_matrix_of_zeros_that_nobody_wrote(self, tmp_path):
        refused(
            read_letor, tmp_path / "q.txt", b"1 qid:1 999999999:1\n", "1 x 999,999,999 numbers", "sparse=True"
        )
        assert read_letor(tmp_path / "q.txt", sparse=True).data.shape == (1, 999_999_999)

    def test_matrix_of_half_a_gigabyte_is_read(self, monkeypatch):
        entries = np.ones(10), np.zeros(10, np.int32), np.append(np.arange(10), np.full(19_991, 10))
        made = []
        monkeypatch.setattr(letor.csr_array, "toarray", lambda matrix: made.append(matrix.shape))
        letor._dense("q.txt", letor.csr_array(entries, shape=(20_000, 3_500)))
        assert made == [(20_000, 3_500)]

    def test_item_that_is_twice_in_a_long_order(self, tmp_path):
        """Recounting every item took hours."""
        n = 20_000
        names = "".join(f"# ALTERNATIVE NAME {i}: x\n" for i in range(1, n + 1))
        order = ",".join(map(str, [*range(1, n + 1), n]))
        refused(
            read_preflib, tmp_path / "v.soi", f"{names}1: {order}\n".encode(), f"alternative {n} occurs twice"
        )

    def test_short_lists_of_many_voters_are_fine(self):
        check_cells("b.csv", 70_000, 1_000, 5 * 70_000)

    def test_more_voters_times_items_than_cells(self, tmp_path):
        rows = b"".join(b"%d,%d,1\n" % (i, i) for i in range(11_000))
        read = BallotOptions(long="u,f,s").read
        refused(
            read,
            tmp_path / "b.csv",
            b"u,f,s\n" + rows,
            "11,000 voters times 11,000 items are 121,000,000 cells of 1.0 GB, and 100,000,000 is the limit",
        )
        read = BallotOptions(kind="orders", id="u", drop=["s"]).read
        refused(read, tmp_path / "b.csv", b"u,f,s\n" + rows, "11,000 voters times 11,000 items")


class TestModels:
    @pytest.mark.parametrize("scale", [None, 3, "wild", ["none"]])
    def test_scale_of_no_kind(self, tmp_path, scale):
        """The file was read, and failed with a KeyError when it was used."""
        tree, arrays = unpack(_models()[0])
        path = next(path for path in places(tree) if at(tree, path) == ["scale", "standard"])
        tree = edited(tree, path, DELETED if scale is None else ["scale", scale])
        refused(apexrank.load, tmp_path / "m.apex", pack(tree, arrays), "not a valid model file")


@pytest.mark.slow
def test_the_nightly_run_counts_and_writes(tmp_path):
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.fuzz", "--inputs", "20", "--targets", "seeds", "--output"]
    done = subprocess.run(
        [*command, tmp_path / "o.json"], capture_output=True, text=True, cwd=root, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "o.json").read_text())["targets"]["seeds"]
    assert told["inputs"] == told["value"] + told["error"] == 20
