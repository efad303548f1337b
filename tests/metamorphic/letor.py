"""LETOR files and TREC runs: fit, evaluate and aggregate on judged lists."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st

from tests.metamorphic.engine import FOLDER, SEEDS, Found, Relation, Subject, apexrank, named, renamed

MODEL = FOLDER / "letor.apex"


@dataclass(frozen=True)
class Lists:
    """Documents of some queries: columns ``relevance``, ``qid``, ``docid`` and ``feature_1`` to ``feature_3``."""

    rows: pl.DataFrame
    format: str = "text"
    names: dict[str, str] = field(default_factory=dict)  # the original names of queries and documents

    def but(self, **changes: Any) -> Lists:
        return replace(self, **changes)

    def old(self, name: Any) -> str:
        return self.names.get(str(name), str(name))

    def write(self, name: str = "lists") -> Path:
        return WRITERS[self.format](self.rows, FOLDER / name)


@st.composite
def lists(draw: st.DrawFn) -> Lists:
    n_queries, size = draw(st.integers(2, 4)), draw(st.integers(4, 9))
    rng = np.random.default_rng(draw(SEEDS))
    n = n_queries * size
    X = rng.choice(np.arange(-99, 99), (3, n)) / 16
    X[rng.random(X.shape) < 0.2] = 0.0
    X[0] += np.arange(n) / 1024  # no two rows are equal
    grades = np.digitize(X[0] / 3 + rng.normal(size=n), [-0.5, 0.7])
    grades[::size], grades[1::size] = 0, 2
    names = {"relevance": grades, "qid": np.repeat(np.arange(n_queries) + 10, size).astype(str)}
    docs = [f"D{k}" for k in rng.permutation(1000)[:n]]
    features = {f"feature_{j + 1}": X[j] for j in range(3)}
    return Lists(pl.DataFrame({**names, "docid": docs, **features}))


def _text(row: dict[str, Any], zeros: bool = True, comment: str = "#docid = {}") -> str:
    features = [(j, row[f"feature_{j}"]) for j in (1, 2, 3) if zeros or row[f"feature_{j}"]]
    written = " ".join(f"{j}:{value!r}" for j, value in features)
    return f"{row['relevance']} qid:{row['qid']} {written} {comment.format(row['docid'])}\n"


def _letor(suffix: str = ".txt", **options: Any) -> Callable[[pl.DataFrame, Path], Path]:
    def write(rows: pl.DataFrame, path: Path) -> Path:
        path = path.with_suffix(suffix)
        content = "".join(_text(row, **options) for row in rows.to_dicts()).encode()
        path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
        return path

    return write


def _table(suffix: str) -> Callable[[pl.DataFrame, Path], Path]:
    def write(rows: pl.DataFrame, path: Path) -> Path:
        path = path.with_suffix(suffix)
        (rows.write_csv if suffix == ".csv" else rows.write_parquet)(path)
        return path

    return write


def _folder(rows: pl.DataFrame, path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for number, part in enumerate(rows.partition_by("qid", maintain_order=True)):
        _letor()(part, path / f"part{number}")
    return path


WRITERS: dict[str, Callable[[pl.DataFrame, Path], Path]] = {
    "text": _letor(),
    "text without zeros": _letor(zeros=False),
    "text with scores in comments": _letor(comment="#docid = {} inc = 0.1 prob = 0.2"),
    "gzip": _letor(".txt.gz"),
    "SVMlight": _letor(".svm"),
    "CSV": _table(".csv"),
    "Parquet": _table(".parquet"),
    "a folder of files": _folder,
}
_ROLES = ["--target", "relevance", "--groups", "qid", "--id", "docid"]


def fit(model: str) -> Callable[[Lists], Found]:
    """Fit on lists, rank them, and evaluate."""

    def run(case: Lists) -> Found:
        path = case.write()
        words = ["--alpha", 0.1, "--tol", 1e-10, "--model", model, "-o", MODEL, "--json"]
        report = apexrank("fit", path, *_ROLES, *words)
        ranking = apexrank("rank", MODEL, path, "--json")["ranking"]
        scores = {case.old(row["docid"]): row["score"] for row in ranking}
        found = named(scores, "score") | named(report["measures"], "measure")
        found |= named(apexrank("evaluate", MODEL, path, "--json")["measures"], "evaluated")
        gap = float(
            max(report["dual_gap"], 0.0)
        )  # a row has a norm of at most the root of rows times features
        slack = float(np.sqrt(2 * gap / 0.1 * len(case.rows) * 3))
        gaps = np.diff(np.sort([*scores.values()]))
        near = bool(((gaps > 0) & (gaps <= 4 * slack + 1e-8)).any())
        facts = {"rows": report["rows"], "positives": report["positives"], "features": report["features"]}
        return Found(found, slack, facts, ("measure *", "evaluated *") if near else ())

    return run


def judged(case: Lists) -> Found:
    """Merge rankers with weights learnt from judged lists."""
    path = case.write()
    found = apexrank("aggregate", path, "--judged", path, "--json")
    scores = {f"{case.old(row['qid'])} {case.old(row['docid'])}": row["score"] for row in found["ranking"]}
    # the verb stops at a scaled gradient of 1e-6 and prints no certificate; scores are of the order of 1
    return Found(named(scores, "score"), 1e-5)


def run_and_qrels(case: Lists) -> Found:
    """Measures of a TREC run ranked by the first feature, with some unjudged documents."""
    run, qrels = FOLDER / "run.txt", FOLDER / "qrels.txt"
    rows = case.rows.to_dicts()
    run.write_text("".join(f"{r['qid']} Q0 {r['docid']} 1 {r['feature_1']!r} tag\n" for r in rows))
    known = [r for r in rows if case.old(r["docid"])[-1] not in "37"]
    qrels.write_text("".join(f"{r['qid']} 0 {r['docid']} {r['relevance']}\n" for r in known))
    names = "ndcg,ndcg@5,map,mrr,p@3,recall@4,err"
    words = ["evaluate", run, "--qrels", qrels, "--measures", names, "--json"]
    found = apexrank(*words)
    numbers = named(found["measures"], "measure")
    for row in apexrank(*words, "--per-query")["table"]:
        query = case.old(row.pop("group"))
        numbers |= {f"{query} {name}": value for name, value in row.items() if value is not None}
    return Found(numbers, facts={key: found[key] for key in ("rows", "positives", "groups")})


SUBJECTS = [
    *(
        Subject(f"fit {model} on LETOR", "lists", fit(model), frozenset(), 60)
        for model in ("retarget", "listwise", "pairs")
    ),
    Subject("aggregate --judged", "lists", judged, frozenset({"text only"}), 40),
    Subject("evaluate --qrels", "lists", run_and_qrels, frozenset({"text only", "run"}), 20),
]


def _rename(case: Lists, rng: np.random.Generator) -> Lists:
    docs, queries = renamed(case.rows["docid"].to_list(), rng), renamed(sorted({*case.rows["qid"]}), rng)
    queries = {old: str(900 + int(name[1:])) for old, name in queries.items()}
    rows = case.rows.with_columns(pl.col("docid").replace_strict(docs), pl.col("qid").replace_strict(queries))
    return case.but(rows=rows, names={name: old for old, name in (docs | queries).items()})


def _shuffle(case: Lists, rng: np.random.Generator) -> Lists:
    parts = case.rows.partition_by("qid")
    parts = [parts[k][rng.permutation(len(parts[k]))] for k in rng.permutation(len(parts))]
    return case.but(rows=pl.concat(parts))


RELATIONS = [
    Relation("documents and queries shuffled", "lists", "the order of the lines does not matter", _shuffle),
    Relation("documents and queries renamed", "lists", "documents and queries are names", _rename),
    *(
        Relation(
            f"as {format}",
            "lists",
            "the format of a file says nothing about the lists",
            lambda case, rng, format=format: case.but(format=format),
            (
                {
                    "text only": "reads LETOR text",
                }
                if format
                not in (
                    "text without zeros",
                    "text with scores in comments",
                    "gzip",
                    "SVMlight",
                )
                else {}
            )
            | {"run": "reads runs and judgements"},
        )
        for format in WRITERS
        if format != "text"
    ),
]
STRATEGIES = {"lists": lists()}
