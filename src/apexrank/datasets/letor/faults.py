"""What is wrong with a line of a LETOR file, told once it could not be read."""

from __future__ import annotations

import math


def fault(line: bytes) -> str:
    """What is wrong with a line that could not be read, and what to do."""
    if b"\0" in line or not _decodes(line):
        return "this is not UTF-8 text; give a text file, plain or gzip-compressed"
    relevance, *fields = line.partition(b"#")[0].split()
    if not _is(float, relevance):
        return f"the relevance {_shown(relevance)} is not a number; start the line with one"
    if not 0 <= float(relevance) < math.inf:
        return f"the relevance is {_shown(relevance)}; it must be a finite number of at least 0"
    if not fields or not fields[0].startswith(b"qid:") or fields[0] == b"qid:":
        return "there is no query id after the relevance; write it as qid:ID"
    seen: set[int] = set()
    for field in fields[1:]:
        name, colon, value = field.partition(b":")
        if not colon or not _is(int, name):
            return f"{_shown(field)} is not a feature; write number:value"
        if not 1 <= int(name) < 2**31:
            return f"{_shown(field)} has feature number {_shown(name)}; number the features from 1"
        if not _is(float, value.replace(b"NULL", b"nan")):
            return f"the value of feature {int(name)} is {_shown(value)}; write a number or NULL"
        if int(name) in seen:
            return f"feature {int(name)} stands there twice; take one of them out"
        seen.add(int(name))
    return "it cannot be read; write relevance qid:ID number:value ..."


def _decodes(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is(kind: type, text: bytes) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return b"_" not in text


def _shown(text: bytes) -> str:
    return repr(text.decode() if len(text) <= 40 else text[:40].decode(errors="ignore") + "...")
