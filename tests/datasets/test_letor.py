"""LETOR files: parsing, errors with line numbers, exact round trips, folds in both layouts, synthetic queries."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from apexrank import files
from apexrank.datasets import letor, letor_folds, make_letor_example, read_letor, write_letor
from apexrank.errors import InputError

DATA = Path(os.environ.get("APEXRANK_DATA") or Path(__file__).parents[3] / "shared" / "data")
MQ2008, MQ2008_AGG = DATA / "letor" / "MQ2008", DATA / "aggregation" / "MQ2008-agg"
needs_mq2008 = pytest.mark.skipif(
    not (MQ2008.is_dir() and MQ2008_AGG.is_dir()),
    reason="LETOR's MQ2008 is not here: set APEXRANK_DATA to read it",
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
IDS = st.text(st.characters(exclude_categories=["Z", "C"], exclude_characters="#"), min_size=1, max_size=5)


@pytest.fixture
def file(tmp_path):
    """Write lines to a file and return its path."""

    def write(*lines: str, name: str = "queries.txt") -> Path:
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write


# reading


def test_one_file_in_full(file):
    path = file(
        "# a heading",
        "2 qid:b 3:1.5 1:-2e-3 # docid = GX008-86-4444840 inc = 1 prob = 0.086622",
        "",
        "  0.5\tqid:a  2:4 ",
        "1 qid:b#D7",
        "0 qid:a 1:0",
    )
    read = read_letor(path)
    assert read.data.tolist() == [[-2e-3, 0, 1.5], [0, 4, 0], [0, 0, 0], [0, 0, 0]]
    assert read.data.dtype == read.target.dtype == np.float64
    assert read.target.tolist() == [2, 0.5, 1, 0]
    assert read.groups.tolist() == ["b", "a", "b", "a"]
    assert read.docids.tolist() == ["GX008-86-4444840", "2", "D7", "4"]
    assert read.feature_names == ["feature_1", "feature_2", "feature_3"]
    assert read.source == str(path)


@pytest.mark.parametrize(
    ("comment", "docid"),
    [
        ("", "1"),
        ("#", "1"),
        ("#  ", "1"),
        ("#docid = G1 inc = 1", "G1"),
        ("# docid=G1", "G1"),
        ("# inc = 1 docid = G1", "G1"),
        ("# one", "one"),
        ("# several words here", "several"),
        ("# mydocid = G1", "mydocid"),
        ("# a#b", "a#b"),
        ("# docid = dé#1", "dé#1"),
    ],
)
def test_docids(file, comment, docid):
    assert read_letor(file(f"1 qid:1 1:1 {comment}")).docids.tolist() == [docid]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz", "x.gz.txt"])
def test_line_endings_marks_and_compression(tmp_path, ending, start, name):
    content = start + ending.join(["1 qid:1 1:1", "0 qid:1 1:2"]).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content, mtime=0) if "gz" in name else content)
    assert read_letor(path).data.tolist() == [[1], [2]]


def test_number_of_features(file):
    path = file("1 qid:1 1:1 3:2", "0 qid:1 2:5")
    wide = read_letor(path, n_features=5)
    assert wide.data.tolist() == [[1, 0, 2, 0, 0], [0, 5, 0, 0, 0]]
    assert len(wide.feature_names) == 5
    assert read_letor(file("1 qid:1", name="bare.txt"), n_features=2).data.tolist() == [[0, 0]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("thin", [False, True])
def test_forms(file, dtype, thin):
    path = file("1 qid:1 4:0.1 1:0.0 2:7", "0 qid:2 3:NULL")
    read = read_letor(path, sparse=thin, dtype=dtype, null="zero")
    expected = np.array([[0, 7, 0, 0.1], [0, 0, 0, 0]], dtype=dtype)
    assert read.data.dtype == dtype
    if thin:
        assert read.data.format == "csr"
        assert read.data.nnz == 2  # neither the 0 in the file nor NULL is stored
        assert read.data.has_sorted_indices
    np.testing.assert_array_equal(read.data.toarray() if thin else read.data, expected)


VALUES = st.one_of(
    FINITE.map(repr), st.sampled_from(["0", "1e-3", "-7", "+2.50", "00.1", "0.000000", "NULL"])
)
LINES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 3), st.dictionaries(st.integers(1, 6), VALUES, max_size=6)),
    min_size=1,
    max_size=8,
)


def _naive(lines, null):
    """Dense rows by definition, one value at a time."""
    X = np.zeros((len(lines), 6))
    for i, (_, query, features) in enumerate(lines):
        for j, text in features.items():
            if text != "NULL":
                X[i, j - 1] = float(text)
                continue
            in_query = [other for other in lines if other[1] == query]
            known = [float(f.get(j, "0")) for _, _, f in in_query if f.get(j) != "NULL"]
            X[i, j - 1] = {"nan": np.nan, "zero": 0, "min": min(known, default=0)}.get(null, null)
    return X


@settings(max_examples=60)
@given(
    lines=LINES, null=st.sampled_from(["nan", "zero", "min", -1.5]), thin=st.booleans(), shuffle=st.randoms()
)
def test_against_the_definition(tmp_path_factory, lines, null, thin, shuffle):
    path = tmp_path_factory.mktemp("letor") / "x.txt"
    texts = []
    for relevance, query, features in lines:
        pairs = [f"{j}:{text}" for j, text in features.items()]
        shuffle.shuffle(pairs)
        texts.append(" ".join([str(relevance), f"qid:{query}", *pairs]))
    path.write_text("\n".join(texts))
    read = read_letor(path, n_features=6, null=null, sparse=thin)
    np.testing.assert_array_equal(read.data.toarray() if thin else read.data, _naive(lines, null))
    assert read.target.tolist() == [relevance for relevance, _, _ in lines]
    assert read.groups.tolist() == [str(query) for _, query, _ in lines]


def test_nan_counts_as_null(file):
    path = file("1 qid:1 1:nan 2:3")
    assert np.isnan(read_letor(path, null="nan").data[0, 0])
    with pytest.raises(InputError, match="line 1: feature 1 is NULL; choose `null='nan'`"):
        read_letor(path)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("one qid:1 1:1", "the relevance 'one' is not a number; start the line with one"),
        ("1_0 qid:1 1:1", "the relevance '1_0' is not a number"),
        ("-1 qid:1 1:1", "the relevance is '-1'; it must be a finite number of at least 0"),
        ("nan qid:1 1:1", "the relevance is 'nan'; it must"),
        ("inf qid:1 1:1", "the relevance is 'inf'; it must"),
        ("1", "there is no query id after the relevance; write it as qid:ID"),
        ("1 1:1 2:2", "there is no query id"),
        ("1 qid: 1:1", "there is no query id"),
        ("1 qid:1 1", "'1' is not a feature; write number:value"),
        ("1 qid:1 1:2 a:1", "'a:1' is not a feature"),
        ("1 qid:1 1.5:1", "'1.5:1' is not a feature"),
        ("1 qid:1 1_0:1", "'1_0:1' is not a feature"),
        ("1 qid:1 1:2 :1", "':1' is not a feature"),
        ("1 qid:1 0:1", "'0:1' has feature number '0'; number the features from 1"),
        ("1 qid:1 -3:1", "'-3:1' has feature number '-3'; number"),
        ("1 qid:1 99999999999:1", "'99999999999:1' has feature number"),
        ("1 qid:1 1:x", "the value of feature 1 is 'x'; write a number or NULL"),
        ("1 qid:1 1:NULLX", "the value of feature 1 is 'NULLX'"),
        ("1 qid:1 1:", "the value of feature 1 is ''"),
        ("1 qid:1 1: 2", "the value of feature 1 is ''"),
        ("1 qid:1 1:2:3 4", "the value of feature 1 is '2:3'"),
        ("1 qid:1 1:2:3 2:5", "the value of feature 1 is '2:3'"),
        ("1 qid:1 1:1_000", "the value of feature 1 is '1_000'"),
        ("1 qid:1 1:" + "9" * 50 + "x", "the value of feature 1 is '9{40}...'"),
        ("1 qid:1 2:1 2:1", "feature 2 occurs twice; remove one of them"),
        ("1 qid:1 02:1 2:1", "feature 2 occurs twice"),
        ("1 qid:1 2:inf", "feature 2 is infinite; give a finite number"),
        ("1 qid:1 2:-1e999", "feature 2 is infinite"),
        ("1 qid:1 2:NULL", "feature 2 is NULL; choose `null="),
        ("1 qid:1 4:1", "feature 4 is beyond `n_features=3`; raise `n_features` or leave it out"),
    ],
)
def test_faults_are_named_with_their_line(file, line, what):
    path = file("# heading", "0 qid:1 1:1 2:2", "", line, "0 qid:1 3:3")
    with pytest.raises(InputError, match=what.replace("(", r"\(")) as caught:
        read_letor(path, n_features=3)
    assert str(caught.value).startswith(f"{path} line 4: ")
    assert "\n" not in str(caught.value)


def test_binary_data_is_no_letor_file(file):
    with pytest.raises(InputError, match="is a binary file, not a text table: give the text"):
        read_letor(file("0 qid:1 1:1 2:2", "1 qid:1 1:\x001"))


def test_unreadable_files(tmp_path):
    def refused(content: bytes, what: str, name: str = "x.txt") -> None:
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(InputError, match=what):
            read_letor(path)

    refused(b"", "x.txt has no rows: it needs lines such as '1 qid:7")
    refused(b"# only\n\n# comments", "has no rows")
    refused(gzip.compress(b"", mtime=0), "has no rows")
    refused(b"1 qid:1\n0 qid:1\n", "names no feature in any line: give `n_features`")
    refused(bytes(range(256)), "is a binary file")
    refused("1 qid:é 1:1".encode("latin-1"), "line 1: this is not UTF-8 text")
    refused("1 qid:1 1:1".encode("utf-16"), "is UTF-16")
    whole = gzip.compress(b"".join(b"1 qid:%d 1:%d\n" % (i, i**3) for i in range(500)))
    refused(whole[:-20], r"x.gz line \d+: the gzip data end early or are damaged; copy", "x.gz")
    refused(whole[:600] + b"\xff" * 40 + whole[640:], "the gzip data end early or are damaged", "x.gz")
    with pytest.raises(InputError, match=r"cannot read .*: it is a folder; give a file in it"):
        read_letor(tmp_path)
    with pytest.raises(InputError, match=r"cannot read .*nowhere.txt': no such file or directory"):
        read_letor(tmp_path / "nowhere.txt")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"null": "mean"}, "unknown `null` 'mean': use one of raise, nan, zero, min, or a finite number"),
        ({"null": float("nan")}, "unknown `null` nan"),
        ({"n_features": 0}, "`n_features` must be a whole number of at least 1, got 0"),
        ({"n_features": 2.5}, "`n_features` must be a whole number"),
        ({"dtype": int}, "`dtype` must be float32 or float64, got int64"),
    ],
)
def test_options(file, options, what):
    with pytest.raises(InputError, match=what):
        read_letor(file("1 qid:1 1:1"), **options)


def test_too_wide_for_memory(file):
    path = file("1 qid:1 2147483647:1", *["1 qid:1 1:1"] * 9999)
    with pytest.raises(
        InputError,
        match=r"10,000 x 2,147,483,647 numbers, nearly all of them zeros, .*; drop .* with `sparse=True`",
    ):
        read_letor(path)
    thin = read_letor(path, sparse=True)
    assert thin.data.shape == (10000, 2147483647)
    assert thin.feature_names is None


@pytest.mark.parametrize("thin", [False, True])
def test_peak_of_memory_is_hardly_above_the_matrix(tmp_path, thin):
    path = tmp_path / "x.txt"
    values = np.random.default_rng(0).random((2_000, 500)).round(3)
    write_letor(path, values, np.zeros(2_000), np.arange(2_000) // 10)
    blocks = 12 << 20  # the arrays of one block of text
    tracemalloc.start()
    try:
        data = read_letor(path, sparse=thin).data
        size = data.data.nbytes + data.indices.nbytes if thin else data.nbytes
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.3 * size + blocks


def _content(rows):
    return [rows.relevance, rows.qids, rows.docids, rows.columns, rows.values, np.signbit(rows.values)]


def _or_fault(parse):
    """Parsed values, or the message without the file name."""
    try:
        return _content(parse())
    except InputError as error:
        return str(error).partition("line 1: ")[2]


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"[+-]?[0-9]{0,18}\.?[0-9]{0,18}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(
        ["NULL", "nan", "-0", "1.7976931348623157E308", "9007199254740993", "1e23", "5e-324", ".", "e5"]
    ),
)


@settings(max_examples=300)
@given(
    numbers=st.lists(NUMBERS, max_size=6),
    grade=NUMBERS,
    shuffle=st.randoms(),
    end=st.sampled_from(["", "\r", " #x"]),
)
def test_compiled_and_python_parsers_agree_to_the_last_bit(tmp_path_factory, numbers, grade, shuffle, end):
    names = list(range(1, len(numbers) + 1))
    shuffle.shuffle(names)
    pairs = [f"{j}:{text}" for j, text in zip(names, numbers, strict=True)]
    line = f"{' '.join([grade, 'qid:7', *pairs])}{end}\n".encode()
    path = tmp_path_factory.mktemp("letor") / "x.txt"
    path.write_bytes(line)
    expected = _or_fault(lambda: letor._unusual_row(path, line, 1, 0))
    found = _or_fault(lambda: next(letor._parsed(path)))
    if isinstance(expected, str):
        assert found == expected
        return
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("rows", [1, 3, 7, 100])
@pytest.mark.parametrize("odd", [False, True])
def test_batches_and_blocks_make_no_difference(tmp_path, monkeypatch, rows, odd):
    path = tmp_path / "x.txt"
    lines = [f"{i % 3} qid:{i // 4} 1:{i} {'+3' if odd and i % 2 else 3}:{i / 7!r} # D{i}" for i in range(20)]
    path.write_text("\n# comment\n".join(lines))
    whole = read_letor(path)
    monkeypatch.setattr(files, "_STEP", 50)
    for parts in ([read_letor(path)], list(letor.letor_batches(path, rows, 3))):
        assert [len(part.target) for part in parts[:-1]] == [rows] * (len(parts) - 1)
        for key in ("data", "target", "groups", "docids"):
            np.testing.assert_array_equal(np.concatenate([part[key] for part in parts]), whole[key])
    assert letor.letor_width(path) == 3
    lines[13] = "1 qid:x 1:oops"
    path.write_text("\n# comment\n".join(lines))
    with pytest.raises(InputError, match="line 27: the value of feature 1 is 'oops'"):
        read_letor(path)


def test_only_the_last_line_can_be_cut_off(tmp_path):
    path = tmp_path / "x.txt"
    rows = ["0 qid:1 1:1 2:2"] * 12
    path.write_text("\n".join([*rows, "0 qid:1 1:1", "0 qid:1 +1:3 2:4", *rows]))  # a signed name ends a part
    assert read_letor(path).data[12:14].tolist() == [[1, 0], [3, 4]]
    path.write_text("\n".join([*rows, "0 qid:1 +1:3 2:4", "0 qid:1 1:1"]))
    with pytest.raises(InputError, match="line 14: the file ends in this line, after 1 of the 2 features"):
        read_letor(path)
    path.write_text("\n".join([*rows, "0 qid:1 1:1 # whole"]))
    assert read_letor(path).data.shape == (13, 2)


def test_width_that_grows(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_STEP", 1)
    path = tmp_path / "x.txt"
    path.write_text("0 qid:1\n1 qid:1 2:5\n0 qid:1 4:7 1:2\n0 qid:2 3:1\n")
    expected = [[0, 0, 0, 0], [0, 5, 0, 0], [2, 0, 0, 7], [0, 0, 1, 0]]
    for options in ({}, {"null": "min"}, {"dtype": np.float32}):
        assert read_letor(path, **options).data.tolist() == expected
    assert read_letor(path, sparse=True).data.toarray().tolist() == expected


def test_values_beyond_single_precision_are_refused(file):
    path = file("1 qid:1 1:1", "0 qid:1 1:1.79769313486231570E308")
    assert read_letor(path).data[1, 0] == np.finfo(float).max
    with pytest.raises(
        InputError, match="line 2: feature 1 is beyond float32; read the file with `dtype='float64'`"
    ):
        read_letor(path, dtype=np.float32)


# writing


@st.composite
def tables(draw):
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    few = st.sampled_from([0.0, 1.0, float("nan")])
    X = draw(arrays(np.float64, (n, d), elements=st.one_of(few, FINITE)))
    y = draw(st.lists(st.one_of(st.integers(0, 4), st.floats(0, 1e300)), min_size=n, max_size=n))
    ids = [draw(st.lists(IDS, min_size=n, max_size=n)) for _ in range(2)]
    return X, y, *ids


@settings(max_examples=60)
@given(
    table=tables(),
    thin=st.sampled_from([None, sparse.csr_array, sparse.csc_matrix, sparse.coo_array]),
    zeros=st.sampled_from([None, True, False]),
    name=st.sampled_from(["x.txt", "x.txt.gz"]),
)
def test_round_trip_is_exact(tmp_path_factory, table, thin, zeros, name):
    X, y, groups, docids = table
    path = tmp_path_factory.mktemp("letor") / name
    write_letor(path, X if thin is None else thin(X), y, groups, docids, zeros=zeros)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")
    read = read_letor(path, n_features=X.shape[1], null="nan")
    np.testing.assert_array_equal(read.data, X)
    assert read.target.tolist() == y
    assert read.groups.tolist() == groups
    assert read.docids.tolist() == docids


def test_what_is_written(tmp_path):
    path = tmp_path / "x.txt"
    X = np.array([[0.1, 0.0, np.nan], [0.0, 3.0, 0.0]])
    write_letor(path, X, [2, 0.5], [7, 8])
    assert path.read_text() == "2 qid:7 1:0.1 2:0.0 3:NULL\n0.5 qid:8 1:0.0 2:3.0 3:0.0\n"
    write_letor(path, sparse.csr_array(X), [2, 0.5], [7, 8], ["a", "b"])
    assert path.read_text() == "2 qid:7 1:0.1 3:NULL #docid = a\n0.5 qid:8 2:3.0 #docid = b\n"
    write_letor(path, X, [2, 0.5], [7, 8], zeros=False)
    assert path.read_text() == "2 qid:7 1:0.1 3:NULL\n0.5 qid:8 2:3.0\n"
    twice = sparse.csr_array((np.array([1.0, 2.0, 0.0]), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 3))
    write_letor(path, twice, [1], [1])
    assert path.read_text() == "1 qid:1 2:3.0\n"
    write_letor(path, twice, [1], [1], zeros=True)
    assert path.read_text() == "1 qid:1 1:0.0 2:3.0 3:0.0\n"
    write_letor(path, np.float32([[0.1]]), [1], [1])
    assert read_letor(path).data[0, 0] == np.float32(0.1)


def test_scikit_learn_reads_what_is_written(tmp_path):
    example = make_letor_example(random_state=3)
    query = np.array([int(q[1:]) for q in example.groups])
    path = tmp_path / "x.txt"
    write_letor(path, example.data, example.target, query, example.docids)
    X, y, groups = load_svmlight_file(str(path), query_id=True)
    np.testing.assert_array_equal(X.toarray(), example.data)
    np.testing.assert_array_equal(y, example.target)
    np.testing.assert_array_equal(groups, query)


def test_same_data_same_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_letor(tmp_path / name, [[1.5]], [1], ["q"])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert (tmp_path / "a.gz").read_bytes()[4:8] == bytes(4)  # where gzip keeps the time


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"X": [[1.0], [np.inf]]}, "X holds an infinite value"),
        ({"X": sparse.csr_array([[1.0], [-np.inf]])}, "X holds an infinite value"),
        ({"X": [1.0, 2.0]}, r"X needs one row per document: expected two dimensions, got shape \(2,\)"),
        ({"y": [1]}, r"y needs one relevance per row: expected 2 numbers, got shape \(1,\)"),
        ({"y": [1, -1]}, "y holds a relevance that is negative or not finite"),
        ({"y": [1, np.nan]}, "negative or not finite"),
        ({"groups": ["a"]}, r"`groups` needs one id per row: expected 2 ids, got shape \(1,\)"),
        (
            {"groups": ["a", "b c"]},
            "groups row 1: 'b c' cannot be written; an id is text without blanks or #",
        ),
        ({"groups": ["a#", "b"]}, "groups row 0: 'a#' cannot be written"),
        ({"groups": ["a", ""]}, "groups row 1: '' cannot be written"),
        ({"docids": ["a", "b\n"]}, r"docids row 1: 'b\\n' cannot be written; an id is text without blanks$"),
        ({"docids": ["a", "\ud800"]}, "docids row 1: .* cannot be written"),
        ({"docids": ["a"]}, "`docids` needs one id per row"),
    ],
)
def test_what_cannot_be_written(tmp_path, change, what):
    path = tmp_path / "x.txt"
    arguments = {"X": [[1.0], [2.0]], "y": [1, 0], "groups": ["a", "b"], "docids": ["c", "d"]}
    write_letor(path, **arguments)
    old = path.read_bytes()
    with pytest.raises(InputError, match=what):
        write_letor(path, **arguments | change)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.txt"
    write_letor(path, [[1.0]], [1], ["a"])

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match=r"cannot write .*: no space left on device"):
        write_letor(path, [[2.0]], [1], ["a"])
    assert path.read_text() == "1 qid:a 1:1.0\n"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match=r"cannot write .*: there is no folder .*; create it first"):
        write_letor(tmp_path / "none" / "x.txt", [[1.0]], [1], ["a"])


# folds


def _write_parts(folder, prefix="S", suffix=""):
    parts = [make_letor_example(n_queries=4, n_features=3, random_state=k) for k in range(5)]
    for k, part in enumerate(parts):
        part.groups = np.char.add(f"part{k + 1}-", part.groups)
        # only the last part names the third feature
        X = part.data if k == 4 else part.data[:, :2]
        write_letor(folder / f"{prefix}{k + 1}.txt{suffix}", X, part.target, part.groups, part.docids)
        part.data = np.where(np.arange(3) < X.shape[1], part.data, 0)
    return parts


def _write_folds(folder, parts, names):
    for k in range(5):
        (folder / f"Fold{k + 1}").mkdir()
        for name, shifts in zip(names, ([0, 1, 2], [3], [4]), strict=True):
            chosen = [parts[(k + i) % 5] for i in shifts]
            columns = [
                np.concatenate([part[key] for part in chosen])
                for key in ("data", "target", "groups", "docids")
            ]
            write_letor(folder / f"Fold{k + 1}" / name, *columns, zeros=False)


def _check_folds(folds, parts, thin):
    assert [fold.name for fold in folds] == [f"Fold{k}" for k in range(1, 6)]
    for k, fold in enumerate(folds):
        for bunch, shifts in ((fold.train, [0, 1, 2]), (fold.validation, [3]), (fold.test, [4])):
            chosen = [parts[(k + i) % 5] for i in shifts]
            assert sparse.issparse(bunch.data) == thin
            data = bunch.data.toarray() if thin else bunch.data
            np.testing.assert_array_equal(data, np.concatenate([part.data for part in chosen]))
            for key in ("target", "groups", "docids"):
                np.testing.assert_array_equal(bunch[key], np.concatenate([part[key] for part in chosen]))
            assert bunch.feature_names == ["feature_1", "feature_2", "feature_3"]


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize(("prefix", "suffix"), [("S", ""), ("S", ".gz"), ("A", ".gz")])
def test_folds_of_parts(tmp_path, prefix, suffix, thin):
    parts = _write_parts(tmp_path, prefix, suffix)
    folds = list(letor_folds(tmp_path, sparse=thin))
    _check_folds(folds, parts, thin)
    files = [f"{prefix}{k}.txt{suffix}" for k in (5, 1, 2)]
    assert folds[4].train.source == ", ".join(str(tmp_path / name) for name in files)


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize(
    "names",
    [("train.txt", "vali.txt", "test.txt.gz"), ("trainingset.txt", "validationset.txt", "testset.txt")],
)
def test_folds_of_folders(tmp_path, names, thin):
    (tmp_path / "set").mkdir()
    (tmp_path / "parts").mkdir()
    parts = _write_parts(tmp_path / "parts")
    _write_folds(tmp_path / "set", parts, names)
    _check_folds(list(letor_folds(tmp_path / "set", sparse=thin)), parts, thin)


def test_parts_are_read_once(tmp_path, monkeypatch):
    _write_parts(tmp_path)
    opened = []
    original = Path.open
    monkeypatch.setattr(
        Path, "open", lambda self, *a, **k: opened.append(self.name) or original(self, *a, **k)
    )
    assert len(list(letor_folds(tmp_path))) == 5
    assert opened == [f"S{k}.txt" for k in range(1, 6)]


def test_folds_pass_options_on(tmp_path):
    _write_parts(tmp_path)
    (tmp_path / "S1.txt").write_text("1 qid:1 1:NULL\n")
    with pytest.raises(InputError, match=r"S1.txt line 1: feature 1 is NULL"):
        next(letor_folds(tmp_path))
    fold = next(letor_folds(tmp_path, null=7.0, n_features=4, dtype=np.float32))
    assert fold.train.data[0].tolist() == [7, 0, 0, 0]
    assert {part.data.dtype for part in fold[1:]} == {np.dtype(np.float32)}
    assert {part.data.shape[1] for part in fold[1:]} == {4}


def test_a_later_fold_may_not_be_wider(tmp_path):
    for k, width in ((1, 2), (2, 3)):
        (tmp_path / f"Fold{k}").mkdir()
        for name in ("train.txt", "vali.txt", "test.txt"):
            write_letor(tmp_path / f"Fold{k}" / name, np.ones((1, width)), [1], ["q"])
    folds = letor_folds(tmp_path)
    assert next(folds).name == "Fold1"
    with pytest.raises(InputError, match=r"Fold2.train.txt line 1: feature 3 is beyond `n_features=2`"):
        next(folds)
    assert [fold.test.data.shape for fold in letor_folds(tmp_path, n_features=3)] == [(1, 3), (1, 3)]


def test_missing_files_are_named(tmp_path):
    looked = "holds no LETOR folds: looked for S1.txt to S5.txt, A1.txt to A5.txt and Fold1/train.txt, Fold1/vali.txt"
    with pytest.raises(InputError, match=looked):
        letor_folds(tmp_path)
    with pytest.raises(InputError, match=looked):
        letor_folds(tmp_path / "nowhere")
    (tmp_path / "Fold1").mkdir()
    (tmp_path / "Fold1" / "train.txt").touch()
    with pytest.raises(
        InputError, match=r"Fold1 is incomplete: looked for vali.txt or valid.txt or validationset.txt, each"
    ):
        letor_folds(tmp_path)
    for k in (1, 2, 4):
        (tmp_path / f"S{k}.txt").touch()
    with pytest.raises(
        InputError, match=r"lacks S3.txt, S5.txt \(or .gz\): the folds need all of S1.txt to S5.txt"
    ):
        letor_folds(tmp_path)


def test_yahoo_layout(tmp_path):
    widths = {
        "set1.train": 3,
        "set1.valid": 2,
        "set1.test": 3,
        "set2.train": 5,
        "set2.valid": 4,
        "set2.test": 4,
    }
    for name, width in widths.items():
        write_letor(tmp_path / f"{name}.txt", np.ones((2, width)), [1, 0], [name, name])
    folds = list(letor_folds(tmp_path))
    assert [fold.name for fold in folds] == ["set1", "set2"]
    assert [part.data.shape for fold in folds for part in fold[1:]] == [(2, 3)] * 3 + [(2, 5)] * 3
    assert [part.groups[0] for fold in folds for part in fold[1:]] == list(widths)
    assert {part.data.shape for fold in letor_folds(tmp_path, n_features=7) for part in fold[1:]} == {(2, 7)}
    (tmp_path / "set2.valid.txt").unlink()
    with pytest.raises(InputError, match=r"is incomplete: looked for set2.vali.txt or set2.valid.txt"):
        letor_folds(tmp_path)


@pytest.mark.parametrize("thin", [False, True])
def test_istella_layout(tmp_path, thin):
    folder = tmp_path / "full"
    folder.mkdir()
    largest = np.finfo(float).max
    write_letor(folder / "train.txt.gz", [[largest, 2.0], [0.0, 1.0]], [4, 0], ["1", "1"])
    write_letor(folder / "test.txt", [[1.0]], [0], ["2"])
    (fold,) = letor_folds(folder, sparse=thin)
    assert (fold.name, fold.validation.data.shape, fold.validation.groups.shape) == ("full", (0, 2), (0,))
    assert fold.train.data[0, 0] == largest
    assert fold.test.data.shape == (1, 2)
    write_letor(folder / "vali.txt", [[1.0]], [1], ["3"])
    assert next(letor_folds(folder)).validation.groups.tolist() == ["3"]
    (folder / "test.txt").unlink()
    with pytest.raises(InputError, match=r"full is incomplete: looked for test.txt or testset.txt"):
        letor_folds(folder)


# the real set


@needs_mq2008
def test_mq2008():
    folds = list(letor_folds(MQ2008))
    tests = [fold.test for fold in folds]
    assert {part.data.shape[1] for fold in folds for part in fold[1:]} == {46}
    assert sum(len(test.target) for test in tests) == 15211
    best = {q: test.target[test.groups == q].max() for test in tests for q in np.unique(test.groups)}
    assert len(best) == 784
    assert sum(grade == 0 for grade in best.values()) == 220
    for fold in folds:
        queries = [set(part.groups) for part in fold[1:]]
        assert set.union(*queries) == set(best)
        assert sum(map(len, queries)) == 784  # no query in two parts
    X, y, groups = load_svmlight_file(str(MQ2008 / "S5.txt.gz"), query_id=True)
    np.testing.assert_array_equal(folds[0].test.data, X.toarray())
    np.testing.assert_array_equal(folds[0].test.target, y)
    np.testing.assert_array_equal(folds[0].test.groups.astype(int), groups)


@needs_mq2008
def test_mq2008_for_aggregation():
    with pytest.raises(InputError, match=r"A1.txt.gz line 1: feature 5 is NULL"):
        next(letor_folds(MQ2008_AGG))
    ranks = read_letor(MQ2008_AGG / "A1.txt.gz", null="nan")
    features = read_letor(MQ2008 / "S1.txt.gz")
    assert ranks.data.shape == (2933, 25)
    assert ranks.data[0, :6].tolist()[:4] == [1, 30, 48, 133]
    for key in ("target", "groups", "docids"):
        np.testing.assert_array_equal(ranks[key], features[key])
    lowest = read_letor(MQ2008_AGG / "A1.txt.gz", null="min").data
    for query in np.unique(ranks.groups):
        rows = ranks.data[ranks.groups == query]
        known = np.where(np.isnan(rows), np.inf, rows).min(axis=0)
        filled = np.where(np.isnan(rows), np.where(np.isinf(known), 0, known), rows)
        np.testing.assert_array_equal(lowest[ranks.groups == query], filled)


# synthetic queries


def test_example_has_what_it_promises():
    example = make_letor_example(n_queries=200, n_features=5, random_state=1, max_documents=12)
    names, sizes = np.unique(example.groups, return_counts=True)
    size = dict(zip(names.tolist(), sizes.tolist(), strict=True))
    assert len(size) == 200
    assert size["q1"] == 1
    assert set(sizes[names != "q1"]) == set(range(2, 13))
    assert example.target[example.groups == "q2"].max() == 0
    assert set(example.target) == {0, 1, 2}
    share = [(example.target >= grade).mean() for grade in (1, 2)]
    np.testing.assert_allclose(share, [0.4, 0.15], atol=0.02)
    assert len(set(example.docids)) == len(example.docids) == len(example.data)
    assert "Generate queries" in example.DESCR


def test_example_is_linear_inside_a_query():
    example = make_letor_example(n_queries=300, n_features=4, random_state=0, noise=0, spread=0)
    score = example.data @ example.coef
    others = example.groups != "q2"
    highest = [score[others & (example.target == grade)].max() for grade in (0, 1)]
    lowest = [score[others & (example.target == grade)].min() for grade in (1, 2)]
    assert highest[0] < lowest[0]
    assert highest[1] < lowest[1]


def test_example_is_seeded():
    one, same, other = (make_letor_example(random_state=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.data, same.data)
    np.testing.assert_array_equal(one.target, same.target)
    assert one.data.shape != other.data.shape or (one.data != other.data).any()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (
            {"n_queries": 2},
            "needs `n_queries` >= 3, `n_features` >= 1 and `max_documents` >= 2, got 2, 8 and 20",
        ),
        ({"n_features": 0}, "got 40, 0 and 20"),
        ({"max_documents": 1}, "got 40, 8 and 1"),
        ({"noise": -1}, "`noise` and `spread` must be finite and at least 0, got -1 and 1.0"),
        ({"spread": float("nan")}, "`noise` and `spread` must be"),
    ],
)
def test_example_refuses(options, what):
    with pytest.raises(InputError, match=what):
        make_letor_example(**options)


@pytest.mark.parametrize("groups", [["a", None, "b"], [1.0, float("nan"), 2.0]])
def test_missing_ids_are_not_written_as_words(tmp_path, groups):
    with pytest.raises(InputError, match="groups row 1: the id is missing"):
        write_letor(tmp_path / "a.txt", np.zeros((3, 1)), [0, 1, 2], np.array(groups, dtype=object))


def test_a_file_that_ends_inside_its_last_line(tmp_path):
    """A line cut off between two features can be recognised only by comparison with the other lines."""
    path = tmp_path / "queries.txt"
    full = b"1 qid:1 1:0.5 2:3 3:4\n" * 12
    path.write_bytes(full + b"0 qid:1 1:0.5 2:3")
    with pytest.raises(InputError, match=r"line 13: the file ends in this line, after 2 of the 3 features"):
        read_letor(path)
    fine = (
        full + b"0 qid:1 1:0.5 2:3\n",  # a complete line with a feature of 0
        full + b"0 qid:1 1:0.5 2:3 # docid = D",
        full + b"0 qid:1 1:0.5 3:4",  # another feature is missing
        b"0 qid:1 1:2\n" + full + b"0 qid:1 1:0.5 2:3",  # lines differ anyway
    )
    for content in fine:
        path.write_bytes(content)
        assert read_letor(path).data[-1, 0] == 0.5
