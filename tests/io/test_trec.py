"""TREC run and qrels files: reading, writing, and the join with judgements against trec_eval itself."""

import gzip
import math
import os

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apexrank import InputError
from apexrank.io.trec import judged, read_qrels, read_run, write_qrels, write_run

RUN = "q1 Q0 d1 1 2.5 me\nq1 Q0 d2 2 1.5 me\nq2 Q0 d1 1 -3 me\n"
RUN_ROWS = [("q1", "d1", 2.5, 1, "me"), ("q1", "d2", 1.5, 2, "me"), ("q2", "d1", -3.0, 1, "me")]
QRELS = "q1 0 d1 1\nq1 0 d3 -2\nq2 Q0 d1 0\n"
QRELS_ROWS = [("q1", "d1", 1.0), ("q1", "d3", -2.0), ("q2", "d1", 0.0)]


def written(folder, text, name="t.txt"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def message_of(call, *args, **kwargs):
    with pytest.raises(InputError) as caught:
        call(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    return message


class TestReading:
    def test_run(self, tmp_path):
        frame = read_run(written(tmp_path, RUN))
        assert frame.rows() == RUN_ROWS
        assert frame.columns == ["query", "document", "score", "rank", "tag"]

    def test_qrels_keep_negative_judgements(self, tmp_path):
        frame = read_qrels(written(tmp_path, QRELS))
        assert frame.rows() == QRELS_ROWS
        assert frame.columns == ["query", "document", "relevance"]

    @pytest.mark.parametrize(
        "change",
        [
            lambda text: text.replace(" ", "\t"),
            lambda text: text.replace(" ", " \t   "),
            lambda text: text.replace("\n", "\r\n"),
            lambda text: text.replace("\n", " \t\r\n"),
            lambda text: text.replace("\n", "\n\n  \n\t\r\n"),
            lambda text: "\n \n  " + text.replace("\n", "\n   "),
            lambda text: text.rstrip("\n"),
            lambda text: "\ufeff" + text,
            lambda text: gzip.compress(text.encode()),
            lambda text: gzip.compress(("\ufeff" + text.replace("\n", "\r\n")).encode()),
        ],
    )
    def test_white_space_marks_and_gzip(self, tmp_path, change):
        assert read_run(written(tmp_path, change(RUN))).rows() == RUN_ROWS
        assert read_qrels(written(tmp_path, change(QRELS))).rows() == QRELS_ROWS

    def test_ids_are_text_with_any_punctuation(self, tmp_path):
        text = '007 Q0 "a,b 1 1 #x\n#7 Q0 NA 2 .5 null\n1.0 Q0 d\u00a0é 3 +1e-3 "\n'
        assert read_run(written(tmp_path, text)).rows() == [
            ("007", '"a,b', 1.0, 1, "#x"),
            ("#7", "NA", 0.5, 2, "null"),
            ("1.0", "d\u00a0é", 1e-3, 3, '"'),
        ]

    def test_a_rank_nobody_uses_may_be_anything(self, tmp_path):
        text = "q Q0 a 0 1 t\nq Q0 b - 1 t\nq Q0 c 1.5 1 t\n"
        assert read_run(written(tmp_path, text))["rank"].to_list() == [0, None, None]

    def test_queries_need_not_be_together(self, tmp_path):
        text = "q1 Q0 a 1 1 t\nq2 Q0 a 1 1 t\nq1 Q0 b 2 1 t\n"
        assert read_run(written(tmp_path, text))["query"].to_list() == ["q1", "q2", "q1"]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (RUN + "q3 Q0 d1 1 2\n", " line 4: the row has 5 fields, a run file 6"),
            (RUN + "\n\r\nq3 Q0 d1 1 2 my tag\nx\n", " line 6: the row has 7 fields, a run file 6"),
            ("\n" + RUN + "x\n", " line 5: the row has 1 field, a run file 6"),
            ("a b c d e\n", " line 1: the row has 5 fields, a run file 6"),
            (RUN + QRELS, " line 4: the row has 4 fields, a run file 6"),
            (
                "\n" + QRELS,
                " line 2: has 4 columns like a qrels file, not run: exchange the two files",
            ),
            (RUN + "q3 Q0 d1 1 high t\n", " line 4: score 'high' is not a finite number"),
            (RUN + "q3 Q0 d1 1 nan t\n", " line 4: score 'nan' is not a finite number"),
            (RUN + "q3 Q0 d1 1 -inf t\n", " line 4: score '-inf' is not a finite number"),
            (RUN + "q3 Q0 d1 1 1e999 t\n", " line 4: score '1e999' is not a finite number"),
            (RUN + "q3 Q0 d1 1 1_0 t\n", " line 4: score '1_0' is not a finite number"),
            (RUN + "q3 Q0 d1 1 １ t\n", " line 4: score '１' is not a finite number"),
            (
                "\n" + RUN + "q1 Q0 d1 3 0.5 me\n",
                " line 5: document 'd1' occurs twice in its query",
            ),
            (RUN + "q3 Q0 d1 1 x t\nq1 Q0 d1 3 0.5 me\n", " line 4: score 'x'"),
        ],
    )
    def test_faults_of_a_run_name_the_line(self, tmp_path, text, message):
        path = written(tmp_path, text)
        assert message_of(read_run, path).startswith(f"{path}{message}")
        packed = written(tmp_path, gzip.compress(text.encode()), "t.gz")
        assert message_of(read_run, packed).startswith(f"{packed}{message}")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (QRELS + "q3 0 d1\n", " line 4: the row has 3 fields, a qrels file 4"),
            (QRELS + "q3 0 d1 1 1\n", " line 4: the row has 5 fields, a qrels file 4"),
            (
                RUN,
                " line 1: has 6 columns like a run file, not qrels: exchange the two files",
            ),
            (QRELS + "q3 0 d1 yes\n", " line 4: relevance 'yes' is not a finite number"),
            (QRELS + "q3 0 d1 NaN\n", " line 4: relevance 'NaN' is not a finite number"),
            (QRELS + "q1 0 d3 1\n", " line 4: document 'd3' occurs twice in its query"),
        ],
    )
    def test_faults_of_qrels_name_the_line(self, tmp_path, text, message):
        path = written(tmp_path, text)
        assert message_of(read_qrels, path).startswith(f"{path}{message}")

    @pytest.mark.parametrize("read", [read_run, read_qrels])
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", " is empty"),
            (b"\xef\xbb\xbf \r\n\t\n", " is empty"),
            (gzip.compress(b"\n", mtime=0), " is empty"),
            (RUN.encode() + "q9 Q0 é 1 1 t\n".encode("latin1"), " line 4: this is not UTF-8 text"),
            (RUN.encode("utf-16"), " is UTF-16 or UTF-32 text"),
            (b"\n" + RUN.encode("utf-16-le"), " is a binary file"),
        ],
    )
    def test_files_that_hold_no_rows(self, tmp_path, read, content, message):
        path = written(tmp_path, content)
        assert message_of(read, path).startswith(f"{path}{message}")

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("gone", "no such file"),
            ("folder", "it is a folder"),
            ("cut.gz", "ended before the end"),
            ("garbage.gz", "compression method"),
            ("flipped.gz", "error -3"),
        ],
    )
    def test_files_that_cannot_be_read(self, tmp_path, name, message):
        (tmp_path / "folder").mkdir()
        packed = gzip.compress(RUN.encode(), mtime=0)
        written(tmp_path, packed[:-12], "cut.gz")
        written(tmp_path, packed[:2] + b"garbage" * 5, "garbage.gz")
        written(tmp_path, packed[:10] + b"\xff" * 20, "flipped.gz")
        found = message_of(read_run, tmp_path / name)
        assert found.startswith(f"cannot read {str(tmp_path / name)!r}: ")
        assert message in found


ids = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Z"], exclude_characters="\ufeff"), min_size=1, max_size=5
)
odd_ids = ids | st.sampled_from(
    ['"', "'", "#", ",", "007", "1.0", "NA", "null", "nan", "\u200b", "\U0001f600", "\\n"]
)
finite = st.floats(allow_nan=False, allow_infinity=False)
values = finite | st.sampled_from([0.0, -0.0, 1.0, 5e-324, 1.7976931348623157e308, 0.1 + 0.2])
tables = st.lists(st.tuples(odd_ids, odd_ids, values), min_size=1, max_size=30, unique_by=lambda row: row[:2])


def in_run_order(rows):
    """Queries by first appearance, then by descending score; equal scores in the given order."""
    order = list(dict.fromkeys(query for query, _, _ in rows))
    return sorted(rows, key=lambda row: (order.index(row[0]), -row[2]))


class TestWriting:
    @given(rows=tables, packed=st.booleans())
    @settings(max_examples=60, deadline=None)
    def test_run_round_trip(self, rows, packed, tmp_path_factory):
        path = tmp_path_factory.mktemp("run") / ("r.run.gz" if packed else "r.run")
        write_run(tuple(zip(*rows, strict=True)), path, tag="t-1")
        frame = read_run(path)
        back = frame.select("query", "document", "score").rows()
        assert back == in_run_order(rows)
        assert [math.copysign(1, s) for _, _, s in back] == [
            math.copysign(1, s) for _, _, s in in_run_order(rows)
        ]
        assert set(frame["tag"]) == {"t-1"}
        for _, ranks in frame.group_by("query", maintain_order=True).agg("rank").rows():
            assert ranks == list(range(1, len(ranks) + 1))

    @given(rows=tables, packed=st.booleans())
    @settings(max_examples=60, deadline=None)
    def test_qrels_round_trip(self, rows, packed, tmp_path_factory):
        path = tmp_path_factory.mktemp("qrels") / ("q.txt.GZ" if packed else "q.txt")
        write_qrels(pl.DataFrame(rows, schema=["query", "document", "relevance"], orient="row"), path)
        assert read_qrels(path).rows() == rows

    def test_other_readers_understand_them(self, tmp_path):
        other = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed: no second reader")
        rows = (["b", "a", "b"], ["é", 'x"', "#"], [0.1 + 0.2, -1e-17, 1e300])
        write_run(rows, tmp_path / "r")
        with (tmp_path / "r").open(encoding="utf-8") as file:
            assert other.parse_run(file) == {"b": {"#": 1e300, "é": 0.1 + 0.2}, "a": {'x"': -1e-17}}
        write_qrels((*rows[:2], [2.0, -1.0, 0.0]), tmp_path / "q")
        with (tmp_path / "q").open(encoding="utf-8") as file:
            assert other.parse_qrel(file) == {"b": {"é": 2, "#": 0}, "a": {'x"': -1}}

    def test_ties_keep_the_order_of_rows(self, tmp_path):
        n = 200
        documents = [f"d{i}" for i in np.random.default_rng(0).permutation(n)]
        write_run((["q"] * n, documents, [i % 2 for i in range(n)]), tmp_path / "r")
        frame = read_run(tmp_path / "r")
        assert frame["document"].to_list() == documents[1::2] + documents[0::2]
        assert frame["rank"].to_list() == list(range(1, n + 1))

    def test_fractions_and_whole_grades(self, tmp_path):
        write_qrels((["q"] * 5, list("abcde"), [1.0, 0.5, -2.0, 1e300, -0.0]), tmp_path / "q")
        assert [line.split()[3] for line in (tmp_path / "q").read_text().splitlines()] == [
            "1",
            "0.5",
            "-2",
            "1e+300",
            "0",
        ]

    @pytest.mark.parametrize(
        "make",
        [
            lambda columns: columns,
            lambda columns: [np.array(values) for values in columns.values()],
            lambda columns: [np.array(values, dtype=object) for values in columns.values()],
            lambda columns: tuple(pl.Series("other", values) for values in columns.values()),
            pl.DataFrame,
            lambda columns: pl.DataFrame(columns).with_columns(pl.col("document").cast(pl.Categorical)),
            pd.DataFrame,
            lambda columns: pd.DataFrame(columns, index=[7, 7, 7]).assign(extra=1),
        ],
    )
    def test_what_rows_may_come_in(self, tmp_path, make):
        write_run(
            make({"query": [2, 10, 2], "document": ["a", "a", "b"], "score": [0, 1, 5]}), tmp_path / "r"
        )
        assert (tmp_path / "r").read_text() == (
            "2 Q0 b 1 5.0 apexrank\n2 Q0 a 2 0.0 apexrank\n10 Q0 a 1 1.0 apexrank\n"
        )

    def test_whole_and_other_scores_may_mix(self, tmp_path):
        write_run((["q", "q"], ["a", "b"], [1, 2.5]), tmp_path / "r")
        assert read_run(tmp_path / "r")["score"].to_list() == [2.5, 1.0]

    def test_single_precision_scores_keep_their_bits(self, tmp_path):
        score = np.float32(0.1)
        write_run(
            pl.DataFrame({"query": ["q"], "document": ["d"], "score": pl.Series([score], dtype=pl.Float32)}),
            tmp_path / "r",
        )
        assert read_run(tmp_path / "r")["score"][0] == float(score) != 0.1

    def test_the_same_rows_make_the_same_bytes(self, tmp_path):
        for name in ("a.gz", "b.gz"):
            write_run((["q"], ["d"], [1.0]), tmp_path / name)
        assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
        assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"q Q0 d 1 1.0 apexrank\n"

    @pytest.mark.parametrize(
        "bad", ["", " ", "a b", "a\t", "\na", "a\u00a0b", "a\u2028", "\x00", "a\x1c", "\ufeffa"]
    )
    def test_ids_that_would_break_a_line(self, tmp_path, bad):
        told = f"{bad!r} is empty or has white space in it, which the format cannot hold"
        path = tmp_path / "r"
        assert message_of(write_run, (["q", bad], ["a", "b"], [1, 2]), path).startswith(
            f"run row 2: query {told}"
        )
        assert message_of(write_run, (["q", "q"], ["a", bad], [1, 2]), path).startswith(
            f"run row 2: document {told}"
        )
        assert message_of(write_qrels, ([bad], ["a"], [1]), path).startswith(f"qrels row 1: query {told}")
        assert message_of(write_run, (["q"], ["a"], [1]), path, tag=bad).startswith(f"tag {told}")
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize(
        ("run", "message"),
        [
            ((["q"], ["a"]), "the run needs columns query, document, score"),
            ((["q"], ["a"], [1, 2]), "of one length"),
            (([], [], []), "the run has no rows"),
            ({"query": ["q"], "doc": ["a"], "score": [1]}, "needs columns query, document"),
            (pl.DataFrame({"query": ["q"]}), "needs columns query, document"),
            (pd.DataFrame({"query": ["q"]}), "needs columns query, document"),
            (np.zeros((3, 3)), "the run needs columns query"),
            ("some.run", "the run needs columns query"),
            ((["q", "q"], ["a", None], [1, 2]), "run row 2: document None is missing"),
            ((["q", "q"], ["a", "b"], [1, math.nan]), "run row 2: score nan is not a finite number"),
            ((["q", "q"], ["a", "b"], [-math.inf, 1]), "run row 1: score -inf is not a finite number"),
            ((["q", "q"], ["a", "b"], [1, None]), "run row 2: score None is not a finite number"),
            ((["q"], ["a"], ["1"]), "run column 'score' holds String values"),
            (([1.0], ["a"], [1]), "run column 'query' holds Float64 values: ids are text"),
            (([["q"]], ["a"], [1]), "run column 'query' holds List(String) values: ids are text"),
            (
                pd.DataFrame({"query": ["q", np.nan], "document": 1, "score": 1}),
                "each of one kind",
            ),
            ((["q"], ["a"], [True]), "run column 'score' holds Boolean values"),
            ((["q", "q"], ["a", "b"], [1, "2"]), "run column 'score' holds String values"),
            ((["q", 1], ["a", "b"], [1, 2]), "each of one kind"),
            ((["q"], ["\ud800"], [1]), "each of one kind"),
            ((["q"], ["a"], 1), "each of one kind"),
            (
                (["q", "p", "q"], ["a", "a", "a"], [1, 2, 3]),
                "run row 3: document 'a' occurs twice in its query",
            ),
        ],
    )
    def test_rows_that_cannot_be_written(self, tmp_path, run, message):
        path = written(tmp_path, "old")
        assert message in message_of(write_run, run, path)
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == [path.name]

    def test_a_folder_that_is_not_there(self, tmp_path):
        assert "create it first" in message_of(write_run, (["q"], ["a"], [1]), tmp_path / "gone" / "r")


def as_dict(rows):
    nested = {}
    for query, document, value in rows:
        nested.setdefault(query, {})[document] = value
    return nested


def as_rows(nested):
    return tuple(zip(*((q, d, v) for q, inner in nested.items() for d, v in inner.items()), strict=True))


def average_precisions(joined):
    """Average precision of each query from the joined rows, taken in the order given."""
    found = {}
    for query, rows in as_dict([(q, d, (s, r)) for q, d, s, r in joined.rows()]).items():
        listed = [relevance > 0 for score, relevance in rows.values() if score > -math.inf]
        hits = np.cumsum(listed)
        relevant = sum(relevance > 0 for _, relevance in rows.values())
        total = sum(hits[i] / (i + 1) for i in np.flatnonzero(listed))
        found[query] = total / relevant if relevant else 0.0
    return found


def trec_eval(run, qrels):
    pytrec_eval = pytest.importorskip(
        "pytrec_eval", reason="pytrec_eval is not installed: no trec_eval to compare"
    )
    measured = pytrec_eval.RelevanceEvaluator(qrels, {"map", "num_rel", "num_ret"}).evaluate(run)
    return {query: measures["map"] for query, measures in measured.items()}


few_queries = st.sampled_from(["q1", "q2", "q10", "é"])
few_documents = st.sampled_from([f"d{i}" for i in range(12)] + ["D1", "é1", "\U0001f600", "\uffee"])
coarse = st.integers(-3, 3).map(lambda n: n / 2)
runs = st.dictionaries(few_queries, st.dictionaries(few_documents, coarse, min_size=1), min_size=1)
# Queries whose judgements are all negative have a test of their own below: each query here has one that is not.
grades = st.builds(
    lambda some, document, grade: some | {document: grade},
    st.dictionaries(few_documents, st.integers(-2, 3)),
    few_documents,
    st.integers(0, 3),
)
judgements = st.dictionaries(few_queries, grades, min_size=1)


class TestJudged:
    def test_every_kind_of_row(self):
        run = (["q2", "q1", "q2", "q2", "unjudged"], ["a", "x", "b", "c", "a"], [1.0, 1.0, 1.0, 3.0, 9.0])
        qrels = (
            ["q1", "q2", "q2", "q2", "q2", "q2", "lost", "lost", "void", "void"],
            ["x", "a", "b", "missed", "skipped", "junk", "m", "n", "m", "n"],
            [0, 2, -1, 1, 0, -2, 1, 0, 0, -1],
        )
        rows = [
            ("q2", "c", 3.0, 0.0),
            ("q2", "b", 1.0, 0.0),
            ("q2", "a", 1.0, 2.0),
            ("q2", "missed", -math.inf, 1.0),
            ("q1", "x", 1.0, 0.0),
        ]
        joined = judged(run, qrels)
        assert joined.columns == ["query", "document", "score", "relevance"]
        assert joined.rows() == rows
        assert judged(run, qrels, complete=True).rows() == [
            *rows,
            ("lost", "m", -math.inf, 1.0),
            ("void", "n", -math.inf, 0.0),
            ("void", "m", -math.inf, 0.0),
        ]

    @given(run=runs, qrels=judgements)
    @settings(max_examples=200, deadline=None)
    def test_agrees_with_trec_eval(self, run, qrels):
        expected = trec_eval(run, qrels)
        if not expected:
            assert "no query of the run is judged" in message_of(judged, as_rows(run), as_rows(qrels))
            return
        joined = judged(as_rows(run), as_rows(qrels))
        assert average_precisions(joined) == pytest.approx(expected, abs=1e-12)
        assert list(dict.fromkeys(joined["query"])) == [query for query in run if query in qrels]

    @given(run=runs, qrels=judgements)
    @settings(max_examples=100, deadline=None)
    def test_complete_counts_every_judged_query(self, run, qrels):
        joined = judged(as_rows(run), as_rows(qrels), complete=True)
        expected = dict.fromkeys(qrels, 0.0) | trec_eval(run, qrels)
        assert average_precisions(joined) == pytest.approx(expected, abs=1e-12)
        for query, rows in as_dict([(q, d, r) for q, d, _, r in joined.rows()]).items():
            wanted = sum(relevance > 0 for relevance in qrels[query].values())
            assert sum(relevance > 0 for relevance in rows.values()) == wanted

    def test_larger_runs_through_files(self, tmp_path):
        rng = np.random.default_rng(3)
        run, qrels = {}, {}
        for query in range(40):
            documents = [f"doc-{i}" for i in rng.permutation(400)]
            run[f"{query}"] = {
                d: float(s) for d, s in zip(documents[:200], rng.integers(0, 60, 200), strict=True)
            }
            grades = rng.integers(-2, 4, 80).tolist()
            qrels[f"{query}"] = dict(zip(rng.permutation(documents)[:80].tolist(), grades, strict=True))
        write_run(as_rows(run), tmp_path / "r.gz")
        write_qrels(as_rows(qrels), tmp_path / "q.gz")
        joined = judged(read_run(tmp_path / "r.gz"), read_qrels(tmp_path / "q.gz"))
        expected = trec_eval(run, qrels)
        assert len(expected) == 40
        assert average_precisions(joined) == pytest.approx(expected, abs=1e-12)

    def test_trec_eval_compares_single_precision(self):
        run = {"q": {"a": 1.0 + 1e-12, "b": 1.0}}
        expected = trec_eval(run, {"q": {"a": 1}})
        frame = pl.DataFrame({"query": "q", "document": ["a", "b"], "score": [1.0 + 1e-12, 1.0]})
        qrels = (["q"], ["a"], [1])
        rounded = frame.with_columns(pl.col("score").cast(pl.Float32))
        assert average_precisions(judged(frame, qrels)) == {"q": 1.0}
        assert average_precisions(judged(rounded, qrels)) == expected == {"q": 0.5}

    def test_a_query_with_negative_judgements_only_has_nothing_relevant(self):
        joined = judged((["q", "q"], ["a", "b"], [1, 2]), (["q", "q"], ["a", "c"], [-1, -2]))
        assert joined.rows() == [("q", "b", 2.0, 0.0), ("q", "a", 1.0, 0.0)]

    def test_order_of_the_given_rows_does_not_matter_inside_a_query(self):
        run = pl.DataFrame({"query": "q", "document": list("abcdef"), "score": [1, 2, 1, 2, 1, 0]})
        qrels = pl.DataFrame({"query": "q", "document": list("aez"), "relevance": [1, 2, 3]})
        expected = judged(run, qrels).rows()
        assert judged(run[::-1], qrels[::-1]).rows() == expected

    def test_refusals(self):
        good = (["q"], ["a"], [1])
        twice = (["q", "q"], ["a", "a"], [1, 2])
        assert "run row 2: document 'a' occurs twice" in message_of(judged, twice, good)
        assert "qrels row 2: document 'a' occurs twice" in message_of(judged, good, twice)
        assert "run row 1: score nan" in message_of(judged, (["q"], ["a"], [math.nan]), good)
        assert "qrels row 1: relevance inf" in message_of(judged, good, (["q"], ["a"], [math.inf]))
        assert "no query of the run is judged" in message_of(judged, good, (["other"], ["a"], [1]))
        assert judged(([], [], []), good, complete=True).rows() == [("q", "a", -math.inf, 1.0)]
