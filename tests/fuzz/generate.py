"""Fuzz inputs by seed and number: valid documents with injected faults, and files with changed bytes."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from random import Random

from tests.fuzz import documents
from tests.fuzz.binary import crawl_file, model_file, parquet_file
from tests.fuzz.documents import Document

NASTY = (
    *(
        "",
        " ",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "1e400",
        "-1e400",
        "1e-400",
        "-1",
        "0",
        "-0.0",
        "1e5",
        "2.5",
        "1,5",
        "50%",
    ),
    *(
        "0x10",
        "1_000",
        "１２",
        "٣",
        "²",
        "+",
        ".",
        "1e",
        "1 2",
        "--1",
        "99999999999999999999",
        "1000000000000000000",
    ),
    *(
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "2147483648",
        "999999999",
        "4294967296",
    ),
    *(
        "9" * 400,
        "9" * 5000,
        "0" * 400 + "1",
        "1e" + "9" * 30,
        "A" * 5000,
        "é" * 70000,
        "x y",
        "NA",
        "NULL",
        "null",
    ),
    *(
        '"',
        '"a',
        'a"',
        '""',
        '"a\nb"',
        '"a,b"',
        "'",
        "#",
        "%",
        "%%MatrixMarket",
        "{",
        "}",
        "{{",
        "{}",
        "{1",
        "1}",
    ),
    *(":", ",", ";", "\t", "\v", "\f", "|", "\\", "qid:", "qid:7", "1:2", "1:2:3", "-1:5", "0:1", "1:", ":1"),
    *(
        "\0",
        "\ufeff",
        "\u2028",
        "\x85",
        "\x1b[31m",
        "\xa0",
        "\u200b",
        "\n",
        "\r",
        "\r\n",
        "\n\n\n",
        "\U0001f600",
    ),
    *("source", "target", "weight", "vertex", "score", "id", "true", "false", "yes", "0.5", "-2", "3"),
    *(
        "->",
        "0 -> 1",
        "# DATA TYPE: soc",
        "# NUMBER ALTERNATIVES: 1000000000",
        "# ALTERNATIVE NAME 1: x",
        "1: 1",
    ),
)
BYTES = (
    b"\xff",
    b"\xe9",
    b"\xed\xa0\x80",
    b"\x80",
    b"\0",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\r",
    b"\n",
    b'"',
    b"\x1a",
)

FORMATS: dict[str, Callable[[Random], Document]] = {
    "LETOR": documents.letor,
    "CSV": documents.table,
    "edge list": documents.edges,
    "PrefLib": documents.preflib,
    "TREC run": documents.trec_run,
    "TREC qrels": documents.trec_qrels,
    "ballots": documents.ballots,
    "seeds": documents.seeds,
    "host graph": documents.host_graph,
    "host labels": documents.host_labels,
    "ratings": documents.ratings,
}
FILES: dict[str, Callable[[Random], bytes]] = {
    "Parquet": parquet_file,
    "model": model_file,
    "crawl": crawl_file,
}
# seeds and model files are never unpacked
_NEVER_PACKED = ("seeds", *FILES)


def generate(target: str, seed: int, index: int) -> bytes:
    """The input of a number; the same on every machine.

    Examples
    --------
    >>> generate("CSV", 0, 3) == generate("CSV", 0, 3) != generate("CSV", 1, 3)
    True
    """
    rng = Random(f"{target} {seed} {index}")
    if target in FILES:
        content = FILES[target](rng)
        return content if rng.random() < 0.2 else mutated(content, rng)
    document = FORMATS[target](rng)
    style = rng.random()
    if style < 0.55:
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            document = _with_fault(document, rng)
    content = _text(document, rng)
    if style > 0.6:
        content = mutated(content, rng)
    if target not in _NEVER_PACKED and rng.random() < 0.08:
        content = gzip.compress(content, 1, mtime=0)
        content = mutated(content, rng) if rng.random() < 0.5 else content
    return content


def _text(document: Document, rng: Random) -> bytes:
    end = "\r\n" if rng.random() < 0.05 else "\n"
    text = end.join(document.separator.join(fields) for fields in document.lines)
    text += "" if rng.random() < 0.1 else end
    mark = "\ufeff" if rng.random() < 0.03 else ""
    return (mark + text).encode()


def _with_fault(document: Document, rng: Random) -> Document:
    """The document with one injected fault."""
    lines = [fields.copy() for fields in document.lines]
    line = rng.randrange(len(lines)) if lines else 0
    fields = lines[line] if lines else []
    field = rng.randrange(len(fields)) if fields else 0
    separator = document.separator
    fault = rng.randrange(14)
    if not fields or fault == 0:
        lines.insert(line, [rng.choice(NASTY)])
    elif fault <= 5:
        fields[field] = rng.choice(NASTY)
    elif fault == 6:
        fields[field] += rng.choice(NASTY)
    elif fault == 7:
        del fields[field]
    elif fault == 8:
        fields.insert(field, fields[field])
    elif fault == 9:
        lines.append(fields)
    elif fault == 10:
        lines = lines[line + 1 :]
    elif fault == 11:
        lines.insert(line, [rng.choice(("", " ", "\t", "# note", "%", separator * 3))])
    elif fault == 12:
        separator = rng.choice(" ,;\t|") + rng.choice(("", "", " "))
    else:
        fields *= rng.choice((2, 3, 200))
    return Document(lines, separator)


def mutated(content: bytes, rng: Random) -> bytes:
    """The bytes with some of them changed, removed, duplicated or moved."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        if not data:
            return bytes(data)
        at = rng.randrange(len(data))
        size = min(rng.choice((1, 1, 2, 4, 8, 50)), len(data) - at)
        kind = rng.randrange(7)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at : at + size] = rng.randbytes(size)
        elif kind == 2:
            data[at:at] = rng.choice(BYTES)
        elif kind == 3:
            del data[at : at + size]
        elif kind == 4:
            data[at:at] = data[at : at + size] * rng.choice((1, 2, 30))
        elif kind == 5:
            data[at : at + size] = rng.choice((b"\0", b"\xff", b"\x7f", b"9", b" ")) * size
        elif rng.random() < 0.3:
            del data[at:]
        else:
            there = rng.randrange(len(data))
            data[there:there] = data[at : at + size]
    return bytes(data)
