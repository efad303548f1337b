"""Read one input: a value or a one-line `InputError` that names the place is correct, anything else is a fault."""

from __future__ import annotations

import re
import shutil
import warnings
from pathlib import Path

from apexrank.errors import ApexrankError
from tests.fuzz.targets import read

MOST_CHARACTERS = 2000  # of a message: a line that somebody reads
LINES = (
    "LETOR",
    "CSV",
    "edge list",
    "PrefLib",
    "TREC run",
    "TREC qrels",
    "ballots",
    "seeds",
    "host graph",
    "host labels",
)
_PLACE = re.compile(r"\b(line|row|order) \d|column ['\"]")
_FILE = re.compile(r"\binput[.\w-]*/|\binput\.|\binput rows|labels\.txt")  # a path of the fuzzer's
_WHOLE = re.compile(  # errors about a file as a whole, which have no line
    "is empty|no rows|no edges|names no|holds no|no orders|no links|no column|no features?|no positive score|"
    "gzip data|unpacks to|needs weights|ends after|goes up to host|Matrix Market|cannot read [^ ]* as |"
    "not a text table|is UTF-16|is a Parquet|fit into memory|"
    "nearly all of them zeros|voters times|"
    "more than one row of|must be three columns|most of its"
)


class Fault(Exception):
    """A reader violated the rules for readers."""


def outcome(target: str, data: bytes, folder: Path) -> str:
    """``"value"`` or ``"error"``; raises `Fault` for everything else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(target, data, folder)
    except ApexrankError as error:
        check_message(str(error), has_lines=target in LINES)
        return "error"
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the Parquet reader is not an Exception
        raise Fault(f"{type(error).__name__}: {str(error)[:300]}") from error
    finally:
        for path in folder.iterdir():
            path.unlink() if path.is_file() else shutil.rmtree(path)
    return "value"


def check_message(message: str, *, has_lines: bool = False) -> None:
    """Reject a message with several lines, that is too long, or that does not name its file or line."""
    if len(message.splitlines()) != 1:
        raise Fault(f"a message of several lines: {message[:300]!r}")
    if len(message) > MOST_CHARACTERS:
        raise Fault(f"a message of {len(message)} characters: {message[:300]!r}")
    if not _FILE.search(message):
        raise Fault(f"a message that names no file: {message[:300]!r}")
    if has_lines and not _PLACE.search(message) and not _WHOLE.search(message):
        raise Fault(f"a message that names no line: {message[:300]!r}")
