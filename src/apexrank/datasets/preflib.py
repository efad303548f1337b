"""Votes in PrefLib files: strict or tied, complete or incomplete orders with their numbers of voters.

The four kinds of file are ``.soc`` (strict orders, complete), ``.soi`` (strict, incomplete), ``.toc`` (with ties,
complete) and ``.toi`` (with ties, incomplete), in the current format or the one before 2022, plain or gzip-compressed.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import numpy as np

from apexrank.errors import InputError
from apexrank.files import read_text

Order = tuple[tuple[int, ...], ...]

OLD_TOTALS = ("NUMBER VOTERS", "SUM OF COUNTS", "NUMBER UNIQUE ORDERS")
MOST = 2**63 - 1  # maximum number of voters
_ITEM = r"\s*[0-9]{1,19}\s*"
_GROUP = rf"(?:{_ITEM}|\s*\{{{_ITEM}(?:,{_ITEM})*\}}\s*)"
_ORDER = re.compile(rf"{_GROUP}(?:,{_GROUP})*")
_GROUPS = re.compile(r"\{([^}]*)\}|([0-9]+)")
_NAME = re.compile(r"ALTERNATIVE NAME ([0-9]{1,19})")
KINDS = ("soc", "soi", "toc", "toi")


@dataclass(frozen=True, eq=False)
class PreferenceProfile:
    """Orders of the same items by many voters, with equal orders counted.

    Attributes
    ----------
    items : tuple of str
        Names of the alternatives; everywhere else an item is its index in this list, from 0.
    orders : list of tuples of tuples of int
        Each order lists its groups of tied items, best first; an untied item is a group of one.
    counts : array of int
        Number of voters of each order.
    title : str
        Title given in the file.
    metadata : dict of str to str
        Other lines of the file's header.
    source : str
        Path of the file.

    Examples
    --------
    >>> from apexrank.datasets.preflib import PreferenceProfile
    >>> profile = PreferenceProfile(("tea", "milk", "rum"), [((1,), (0, 2)), ((2,),)], [3, 1])
    >>> profile.n_voters, profile.ties, profile.incomplete
    (4, True, True)
    >>> profile.ranks().tolist()
    [[2.5, 1.0, 2.5], [nan, nan, 1.0]]
    """

    items: tuple[str, ...]
    orders: list[Order]
    counts: np.ndarray
    title: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    source: str = ""

    def __post_init__(self) -> None:
        if sum(int(count) for count in self.counts) > MOST:
            raise InputError(f"the counts add up to more than {MOST}: divide them all by the same number")
        object.__setattr__(self, "counts", np.asarray(self.counts, dtype=np.int64))

    def __repr__(self) -> str:
        return (
            f"PreferenceProfile({self.title!r}, {len(self.items)} items, {len(self.orders)} orders, "
            f"{self.n_voters} voters)"
        )

    @property
    def n_voters(self) -> int:
        """Total number of voters."""
        return int(self.counts.sum())

    @property
    def ties(self) -> bool:
        """Whether any order has tied items."""
        return any(len(group) > 1 for order in self.orders for group in order)

    @property
    def incomplete(self) -> bool:
        """Whether any order omits items."""
        return any(sum(map(len, order)) < len(self.items) for order in self.orders)

    def ranks(self) -> np.ndarray:
        """Position of each item in each order, 1 for the best, as an array of shape (orders, items).

        Tied items share the mean of their positions; an omitted item is NaN.
        """
        ranks = np.full((len(self.orders), len(self.items)), np.nan)
        for row, order in zip(ranks, self.orders, strict=True):
            before = 0
            for group in order:
                row[list(group)] = before + (len(group) + 1) / 2
                before += len(group)
        return ranks


def read_preflib(path: str | Path) -> PreferenceProfile:
    r"""Read a PrefLib file of orders; its extension determines what it may contain.

    Parameters
    ----------
    path : str or Path
        A file ``.soc``, ``.soi``, ``.toc`` or ``.toi``, also with ``.gz``. In the current format the header has lines
        ``# ALTERNATIVE NAME 1: tea``, and an order is ``3: 1,{2,4}``. In the older one the first line is the number of
        alternatives, followed by lines ``1,tea``, a line of totals and orders ``3,1,{2,4}``.

    Returns
    -------
    PreferenceProfile

    Raises
    ------
    InputError
        For lines that cannot be parsed, for totals that do not match the orders, and for ties or omitted items in a
        file whose extension excludes them, naming file and line.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank.datasets.preflib import read_preflib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "drinks.toi"
    ...     _ = file.write_text("3\n1,tea\n2,milk\n3,rum\n4,4,2\n3,2,{1,3}\n1,3\n")
    ...     profile = read_preflib(file)
    >>> profile.items, profile.orders, profile.counts.tolist()
    (('tea', 'milk', 'rum'), [((1,), (0, 2)), ((2,),)], [3, 1])
    """
    kind = _extension(path)
    if kind not in KINDS:
        raise InputError(
            f"{str(path)!r} is not a file of orders by its name: it must end in .soc, .soi, .toc or .toi "
            "(strict or tied, complete or incomplete), or one of them and .gz"
        )
    return _VoteFile(path).profile(kind)


def _extension(path: str | Path) -> str:
    return Path(str(path).lower().removesuffix(".gz")).suffix.removeprefix(".")


def is_preflib(path: str | Path) -> bool:
    """Whether a file has the extension of a PrefLib file.

    Examples
    --------
    >>> is_preflib("debian.soi.gz"), is_preflib("debian.csv")
    (True, False)
    """
    return _extension(path) in KINDS


class _VoteFile:
    r"""Content of a file of votes, in the current format or the one before 2022.

    Attributes
    ----------
    names : dict of int to str
        Names of the alternatives, by number.
    claims : dict of str to (int, str)
        Other header lines, with their line numbers.
    votes : list of (int, str, str)
        Line number, count and order of each vote, as text.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "drinks.soc"
    ...     _ = path.write_text("# TITLE: Drinks\n# ALTERNATIVE NAME 1: tea\n# ALTERNATIVE NAME 2: rum\n3: 2,1\n")
    ...     file = _VoteFile(path)
    >>> file.names, file.claims, file.votes
    ({1: 'tea', 2: 'rum'}, {'TITLE': (1, 'Drinks')}, [(4, '3', '2,1')])
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.names: dict[int, str] = {}
        self.claims: dict[str, tuple[int, str]] = {}
        self.votes: list[tuple[int, str, str]] = []
        numbered = enumerate(StringIO(read_text(path)), 1)
        lines = [(number, text) for number, line in numbered if (text := line.strip())]
        if not lines:
            raise InputError(f"{path} is empty: it needs names of alternatives and orders such as '3: 1,2'")
        is_current = lines[0][1].startswith("#")
        (self._read_current if is_current else self._read_old)(lines)

    def profile(self, kind: str) -> PreferenceProfile:
        """Validate the content of the file and return it; ``kind`` is its extension."""
        if not self.names:
            raise InputError(f"{self.path} names no alternative: write '# ALTERNATIVE NAME 1: ...' for each")
        if not self.votes:
            raise InputError(f"{self.path} holds no orders: write a line such as '3: 1,2' for each")
        declared_at, declared = self.claims.get("DATA TYPE", (0, kind))
        if declared != kind:
            told = f"the data type is {declared!r}, but the file is a .{kind}: rename it"
            raise self._error(declared_at, told)
        index = {item: i for i, item in enumerate(sorted(self.names))}
        orders, counts, total = [], [], 0
        for number, count, text in self.votes:
            try:
                counts.append(_parse_count(count))
                orders.append(parse_order(text, index, kind))
            except ValueError as error:
                raise self._error(number, str(error)) from None
            total += counts[-1]
            if total > MOST:
                told = f"with this one the counts add up to more than {MOST}; divide them all"
                raise self._error(number, told)
        distinct = {tuple(frozenset(group) for group in order) for order in orders}
        self._check("NUMBER ALTERNATIVES", len(index), "have a name")
        for key in OLD_TOTALS[:2]:
            self._check(key, total, "is the sum of the counts")
        self._check("NUMBER UNIQUE ORDERS", len(distinct), "different orders follow")
        metadata = {key: value for key, (_, value) in self.claims.items()}
        items = tuple(self.names[item] for item in index)
        title, source = metadata.get("TITLE", ""), str(self.path)
        return PreferenceProfile(items, orders, np.array(counts), title, metadata, source)

    def _error(self, number: int, what: str) -> InputError:
        return InputError(f"{self.path} line {number}: {what}")

    def _check(self, key: str, true: int, what: str) -> None:
        """Raise InputError if the header states a different total."""
        number, value = self.claims.get(key, (0, str(true)))
        if parse_whole(value) != true:
            told = f"{key.lower()} is {value!r}, but {true} {what}; the file is truncated or wrong"
            raise self._error(number, told)

    def _name(self, number: int, item: int, name: str) -> None:
        if item in self.names:
            raise self._error(number, f"alternative {item} occurs twice; number each one once")
        self.names[item] = name

    def _read_current(self, lines: list[tuple[int, str]]) -> None:
        for number, text in lines:
            before, colon, after = text.removeprefix("#").partition(":")
            key, value = before.strip(), after.strip()
            named = _NAME.fullmatch(key)
            if not text.startswith("#"):
                if not colon:
                    raise self._error(number, f"{shown(text)} is not a vote; write count: 1,2,{{3,4}}")
                self.votes.append((number, key, value))
            elif named:
                self._name(number, int(named[1]), value)
            else:
                self.claims[key] = number, value

    def _read_old(self, lines: list[tuple[int, str]]) -> None:
        number, text = lines[0]
        n = parse_whole(text)
        if n is None:
            raise self._error(
                number, f"{shown(text)} is neither a header '# ...' nor a number of alternatives"
            )
        for number, text in lines[1 : n + 1]:
            id_, comma, name = text.partition(",")
            item = parse_whole(id_)
            if item is None or not comma:
                told = f"{shown(text)} is not an alternative; write number,name for all {n}"
                raise self._error(number, told)
            self._name(number, item, name.strip())
        if len(lines) < n + 2:
            told = f"the file ends here; it needs {n} alternatives, their totals and orders"
            raise self._error(number, told)
        number, text = lines[n + 1]
        totals = text.split(",")
        if len(totals) != len(OLD_TOTALS):
            raise self._error(
                number, f"{shown(text)} is not a line of totals; write voters,sum of counts,orders"
            )
        self.claims.update(zip(OLD_TOTALS, ((number, total.strip()) for total in totals), strict=True))
        self.votes += [(number, *text.partition(",")[::2]) for number, text in lines[n + 2 :]]


def _parse_count(text: str) -> int:
    voters = parse_whole(text)
    if re.fullmatch(r"\s*[0-9]{19,}\s*", text) and (voters is None or voters > MOST):
        raise ValueError(f"the count {shown(text)} is above {MOST}, the largest that is read")
    if not voters:
        raise ValueError(f"the count {shown(text)} is not a whole number of at least 1")
    return voters


def parse_order(text: str, index: dict[int, int], kind: str) -> Order:
    """Parse an order into groups of tied items, best first, as indices; raise ValueError if it is malformed.

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
        raise ValueError(f"alternative {twice} occurs twice in the order; remove one of them")
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
    """Parse a whole number of at most 19 digits, or return None.

    Examples
    --------
    >>> parse_whole(" 12"), parse_whole("-3")
    (12, None)
    """
    return int(text) if re.fullmatch(_ITEM, text) else None


def shown(text: str) -> str:
    """Quote text for a message, truncated to 40 characters.

    Examples
    --------
    >>> shown(" tea ")
    "'tea'"
    """
    text = text.strip()
    return repr(text if len(text) <= 40 else text[:40] + "...")
