"""The lines of a LETOR file, plain or gzip-compressed, taken apart into relevance, query, features and comment."""

from __future__ import annotations

import codecs
import math
import re
from array import array
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from apexrank.datasets.letor.faults import fault
from apexrank.datasets.unpacking import DAMAGED, GZIP_MARK, check_unpacked, unpacking
from apexrank.errors import InputError

_DOCID = re.compile(rb"\bdocid\s*=\s*(\S+)")


class Rows(NamedTuple):
    """What a file says, row by row; the features of row i are the entries from ``ends[i]`` to ``ends[i + 1]``."""

    lines: array
    relevance: array
    qids: list[str]
    docids: list[str]
    ends: array
    columns: array
    values: array


def read_rows(path: str | Path) -> Rows:
    """Rows of the file in their order; the first line that cannot be read is an error."""
    rows = Rows(array("q"), array("d"), [], [], array("q", [0]), array("i"), array("d"))
    names: tuple[bytes, ...] = ()
    columns = array("i")
    for number, line in numbered_lines(path):
        content, _, comment = line.partition(b"#")
        fields = content.split(None, 2)
        if not fields:
            continue
        try:
            relevance, query, *rest = fields
            rows.relevance.append(_relevance(relevance))
            rows.qids.append(_qid(query))
            if rest:
                new_names, values = _pairs(rest[0])
                # in most files every line names the same features
                if new_names != names:
                    names, columns = new_names, _columns(new_names)
                rows.values.extend(map(float, values))
                rows.columns.extend(columns)
            rows.lines.append(number)
            rows.docids.append(_docid(comment, len(rows.lines)))
            rows.ends.append(len(rows.values))
        except (ValueError, OverflowError):
            raise InputError(f"{path} line {number}: {fault(line)}") from None
    return rows


def numbered_lines(path: str | Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        with ExitStack() as stack:
            file: Any = stack.enter_context(Path(path).open("rb"))
            if file.peek(2)[:2] == GZIP_MARK:
                check_unpacked(path, file)
                file = stack.enter_context(unpacking(path, file))
            for number, line in enumerate(file, 1):
                yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
    except DAMAGED:
        raise InputError(
            f"{path} line {number + 1}: the gzip data end early or are damaged; copy the file again"
        ) from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(f"cannot read {str(path)!r}: {reason}; give a text file, plain or .gz") from None


def _relevance(text: bytes) -> float:
    value = float(text)
    if not 0 <= value < math.inf or b"_" in text:
        raise ValueError
    return value


def _qid(text: bytes) -> str:
    if not text.startswith(b"qid:") or len(text) == 4:
        raise ValueError
    return text[4:].decode()


def _pairs(text: bytes) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    if b"_" in text:  # Python would read 1_000 as a number
        raise ValueError
    names, values = zip(*[pair.split(b":") for pair in text.replace(b"NULL", b"nan").split()], strict=True)
    return names, values


def _columns(names: tuple[bytes, ...]) -> array:
    columns = array("i", map(int, names))
    if min(columns) < 1 or len(set(columns)) < len(columns):
        raise ValueError
    return columns


def _docid(comment: bytes, row: int) -> str:
    named = _DOCID.search(comment)
    if named:
        return named[1].decode()
    words = comment.split(None, 1)
    return words[0].decode() if words else str(row)
