"""The lines of a PrefLib file: names of alternatives, what the header claims, and votes; errors name file and line."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from apexrank.datasets.letor.lines import numbered_lines
from apexrank.errors import InputError

Order = tuple[tuple[int, ...], ...]

OLD_TOTALS = ("NUMBER VOTERS", "SUM OF COUNTS", "NUMBER UNIQUE ORDERS")
MOST = 2**63 - 1  # voters that can be counted
_ITEM = r"\s*[0-9]{1,19}\s*"
_GROUP = rf"(?:{_ITEM}|\s*\{{{_ITEM}(?:,{_ITEM})*\}}\s*)"
_ORDER = re.compile(rf"{_GROUP}(?:,{_GROUP})*")
_GROUPS = re.compile(r"\{([^}]*)\}|([0-9]+)")
_NAME = re.compile(r"ALTERNATIVE NAME ([0-9]{1,19})")


class VoteFile:
    r"""What stands in a file of votes, in the current format or the one before 2022.

    Attributes
    ----------
    names : dict of int to str
        Names of the alternatives by their numbers.
    claims : dict of str to (int, str)
        Other lines of the header, with their line numbers.
    votes : list of (int, str, str)
        Line number, count and order of each vote, as text.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "drinks.soc"
    ...     _ = path.write_text("# TITLE: Drinks\n# ALTERNATIVE NAME 1: tea\n# ALTERNATIVE NAME 2: rum\n3: 2,1\n")
    ...     file = VoteFile(path)
    >>> file.names, file.claims, file.votes
    ({1: 'tea', 2: 'rum'}, {'TITLE': (1, 'Drinks')}, [(4, '3', '2,1')])
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.names: dict[int, str] = {}
        self.claims: dict[str, tuple[int, str]] = {}
        self.votes: list[tuple[int, str, str]] = []
        lines = [(number, self._decoded(number, line)) for number, line in numbered_lines(path)]
        lines = [(number, text) for number, text in lines if text]
        if not lines:
            raise InputError(
                f"{path} is empty: it needs the names of the alternatives and orders such as '3: 1,2'"
            )
        is_current = lines[0][1].startswith("#")
        (self._read_current if is_current else self._read_old)(lines)

    def error(self, number: int, what: str) -> InputError:
        """What is wrong in a line."""
        return InputError(f"{self.path} line {number}: {what}")

    def check(self, key: str, true: int, what: str) -> None:
        """Refuse a claim of another total than the true one."""
        if key not in self.claims:
            return
        number, value = self.claims[key]
        if parse_whole(value) != true:
            raise self.error(
                number, f"{key.lower()} is {value!r}, but {true} {what}; the file is cut off or wrong"
            )

    def _decoded(self, number: int, line: bytes) -> str:
        try:
            return line.decode().strip()
        except UnicodeDecodeError:
            raise self.error(number, "this is not UTF-8 text; save the file as UTF-8") from None

    def _name(self, number: int, item: int, name: str) -> None:
        if item in self.names:
            raise self.error(number, f"alternative {item} stands there twice; number each one once")
        self.names[item] = name

    def _read_current(self, lines: list[tuple[int, str]]) -> None:
        for number, text in lines:
            before, colon, after = text.removeprefix("#").partition(":")
            key, value = before.strip(), after.strip()
            named = _NAME.fullmatch(key)
            if not text.startswith("#"):
                if not colon:
                    raise self.error(number, f"{shown(text)} is not a vote; write count: 1,2,{{3,4}}")
                self.votes.append((number, key, value))
            elif named:
                self._name(number, int(named[1]), value)
            else:
                self.claims[key] = number, value

    def _read_old(self, lines: list[tuple[int, str]]) -> None:
        number, text = lines[0]
        n = parse_whole(text)
        if n is None:
            raise self.error(number, f"{shown(text)} is no header '# ...' and no number of alternatives")
        for number, text in lines[1 : n + 1]:
            id_, comma, name = text.partition(",")
            item = parse_whole(id_)
            if item is None or not comma:
                raise self.error(
                    number, f"{shown(text)} is not an alternative; write number,name for all {n}"
                )
            self._name(number, item, name.strip())
        if len(lines) < n + 2:
            raise self.error(
                number, f"the file ends here; it needs {n} alternatives, their totals and orders"
            )
        number, text = lines[n + 1]
        totals = text.split(",")
        if len(totals) != len(OLD_TOTALS):
            raise self.error(number, f"{shown(text)} is no line of totals; write voters,sum of counts,orders")
        self.claims.update(zip(OLD_TOTALS, ((number, total.strip()) for total in totals), strict=True))
        self.votes += [(number, *text.partition(",")[::2]) for number, text in lines[n + 2 :]]


def parse_order(text: str, index: dict[int, int], kind: str) -> Order:
    """Groups of tied items, best first, each item as ``index`` numbers it; a ValueError says what is wrong.

    Examples
    --------
    >>> parse_order("2,{1,4}", {1: 0, 2: 1, 4: 2}, "toc")
    ((1,), (0, 2))
    """
    if not _ORDER.fullmatch(text):
        raise ValueError(_fault(text))
    groups = [[int(item) for item in (tied or alone).split(",")] for tied, alone in _GROUPS.findall(text)]
    ids = [item for group in groups for item in group]
    if not index.keys() >= set(ids):
        unknown = next(item for item in ids if item not in index)
        raise ValueError(f"alternative {unknown} has no name in the header; name it or correct the order")
    if len(set(ids)) < len(ids):
        twice = next(item for item, count in Counter(ids).items() if count > 1)
        raise ValueError(f"alternative {twice} stands twice in the order; take one of them out")
    if kind[0] == "s" and len(groups) < len(ids):
        raise ValueError(f"a .{kind} file holds strict orders, but this one has ties; name it .to{kind[2]}")
    if kind[2] == "c" and len(ids) < len(index):
        raise ValueError(
            f"a .{kind} file holds complete orders, but this one has {len(ids)} of {len(index)} alternatives; "
            f"name it .{kind[:2]}i"
        )
    return tuple(tuple(index[item] for item in group) for group in groups)


def _fault(text: str) -> str:
    depth = 0
    for mark in re.findall(r"[{}]", text):
        depth += 1 if mark == "{" else -1
        if depth not in (0, 1):
            break
    if depth:
        return f"the braces of {shown(text)} are not balanced; write tied alternatives as {{3,4}}"
    return f"{shown(text)} is not an order; write the alternatives' numbers such as 1,2,{{3,4}}"


def parse_whole(text: str) -> int | None:
    """A whole number of at most 19 digits, or None.

    Examples
    --------
    >>> parse_whole(" 12"), parse_whole("-3")
    (12, None)
    """
    return int(text) if re.fullmatch(_ITEM, text) else None


def shown(text: str) -> str:
    """Text as messages quote it, at most 40 characters of it.

    Examples
    --------
    >>> shown(" tea ")
    "'tea'"
    """
    text = text.strip()
    return repr(text if len(text) <= 40 else text[:40] + "...")
