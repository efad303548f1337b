"""Votes as PrefLib stores them: strict or tied, complete or incomplete orders with how many voters gave each.

The four kinds of file are ``.soc`` (strict orders, complete), ``.soi`` (strict, incomplete), ``.toc`` (with ties,
complete) and ``.toi`` (with ties, incomplete); in the current format or the one before 2022, plain or as ``.gz``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from apexrank.datasets.preflib_lines import MOST, OLD_TOTALS, Order, VoteFile, parse_order, parse_whole, shown
from apexrank.datasets.sources import DATA_VARIABLE, data_path
from apexrank.errors import InputError, MissingDataError

KINDS = ("soc", "soi", "toc", "toi")


@dataclass(frozen=True, eq=False)
class PreferenceProfile:
    """Orders of the same items by many voters, equal orders counted.

    Attributes
    ----------
    items : tuple of str
        Names of the alternatives; everywhere else an item is its number in this list, from 0.
    orders : list of tuples of tuples of int
        Each order lists its groups of tied items, best first; an item that stands alone is a group of one.
    counts : array of int
        How many voters gave each order.
    title : str
        What the file says it holds.
    metadata : dict of str to str
        Lines of the file's header that name no alternative.
    source : str
        The file.

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
        """Sum of the counts."""
        return int(self.counts.sum())

    @property
    def ties(self) -> bool:
        """Whether any order has a group of several items."""
        return any(len(group) > 1 for order in self.orders for group in order)

    @property
    def incomplete(self) -> bool:
        """Whether any order leaves items out."""
        return any(sum(map(len, order)) < len(self.items) for order in self.orders)

    def ranks(self) -> np.ndarray:
        """Position of each item in each order, 1 for the best: an array of shape (orders, items).

        Tied items share the mean of their positions; an item that an order leaves out is NaN.
        """
        ranks = np.full((len(self.orders), len(self.items)), np.nan)
        for row, order in zip(ranks, self.orders, strict=True):
            before = 0
            for group in order:
                row[list(group)] = before + (len(group) + 1) / 2
                before += len(group)
        return ranks


def read_preflib(path: str | Path) -> PreferenceProfile:
    r"""Read a PrefLib file of orders; its extension says what it may hold.

    Parameters
    ----------
    path : str or Path
        A file ``.soc``, ``.soi``, ``.toc`` or ``.toi``, also with ``.gz``. In the current format the header has
        lines ``# ALTERNATIVE NAME 1: tea``, and an order is ``3: 1,{2,4}``. In the older one the first line has the
        number of alternatives, then come lines ``1,tea``, a line of totals and orders ``3,1,{2,4}``.

    Returns
    -------
    PreferenceProfile

    Raises
    ------
    InputError
        Naming file and line, for what cannot be read, for totals that are not those of the orders, and for ties or
        left-out items in a file whose extension rules them out.

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
    kind = _kind(path)
    return _profile(VoteFile(path), kind)


def load_preflib(name: str, folder: str | Path | None = None) -> PreferenceProfile:
    r"""Read one of the PrefLib files of a folder by its name, with or without extension.

    Parameters
    ----------
    name : str
        Such as ``"00006-00000029"`` or ``"00006-00000029.soc"``; :func:`preflib_names` lists them.
    folder : str or Path, optional
        Where the files are; default: ``aggregation/preflib`` below the folder that the environment variable
        ``APEXRANK_DATA`` names.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank.datasets.preflib import load_preflib, preflib_names
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "00001-00000001.soc").write_text("2\n1,tea\n2,milk\n4,4,1\n4,2,1\n")
    ...     preflib_names(folder), load_preflib("00001-00000001", folder)
    (['00001-00000001.soc'], PreferenceProfile('', 2 items, 1 orders, 4 voters))
    """
    where, names = _folder(folder), preflib_names(folder)
    found = [file for file in names if name in (file, file.removesuffix(".gz"), file.split(".")[0])]
    if len(found) > 1:
        raise InputError(f"{name!r} is the name of several files: give one of {', '.join(found)}")
    if not found:
        raise InputError(
            f"{where} holds no PrefLib file {name!r}: preflib_names() lists the {len(names)} it has"
        )
    return read_preflib(where / found[0])


def preflib_names(folder: str | Path | None = None) -> list[str]:
    """Names of the PrefLib files of a folder, sorted; see :func:`load_preflib`.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank.datasets.preflib import preflib_names
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     preflib_names(folder)
    []
    """
    files = _folder(folder).iterdir()
    return sorted(file.name for file in files if _extension(file) in KINDS)


def _folder(folder: str | Path | None) -> Path:
    found = data_path("aggregation", "preflib") if folder is None else Path(folder)
    if found is None or not found.is_dir():
        raise MissingDataError(
            "the PrefLib files are not there: put them into a folder aggregation/preflib below "
            f"{DATA_VARIABLE}, or name their folder"
        )
    return found


def _extension(path: str | Path) -> str:
    return Path(str(path).lower().removesuffix(".gz")).suffix.removeprefix(".")


def _kind(path: str | Path) -> str:
    kind = _extension(path)
    if kind not in KINDS:
        raise InputError(
            f"{str(path)!r} is not a file of orders by its name: it must end in .soc, .soi, .toc or .toi "
            "(strict or tied, complete or incomplete), or one of them and .gz"
        )
    return kind


def _profile(file: VoteFile, kind: str) -> PreferenceProfile:
    if not file.names:
        raise InputError(f"{file.path} names no alternative: write '# ALTERNATIVE NAME 1: ...' for each")
    if not file.votes:
        raise InputError(f"{file.path} holds no orders: write a line such as '3: 1,2' for each")
    declared_at, declared = file.claims.get("DATA TYPE", (0, kind))
    if declared != kind:
        raise file.error(declared_at, f"the data type is {declared!r}, but the file is a .{kind}: rename it")
    index = {item: i for i, item in enumerate(sorted(file.names))}
    orders, counts, total = [], [], 0
    for number, count, text in file.votes:
        voters = _voters(file, number, count)
        try:
            orders.append(parse_order(text, index, kind))
        except ValueError as error:
            raise file.error(number, str(error)) from None
        total += voters
        if total > MOST:
            raise file.error(number, f"with this one the counts add up to more than {MOST}; divide them all")
        counts.append(voters)
    file.check("NUMBER ALTERNATIVES", len(index), "have a name")
    for key in OLD_TOTALS[:2]:
        file.check(key, total, "is the sum of the counts")
    distinct = {tuple(frozenset(group) for group in order) for order in orders}
    file.check("NUMBER UNIQUE ORDERS", len(distinct), "different orders follow")
    metadata = {key: value for key, (_, value) in file.claims.items()}
    return PreferenceProfile(
        items=tuple(file.names[item] for item in index),
        orders=orders,
        counts=np.array(counts),
        title=metadata.get("TITLE", ""),
        metadata=metadata,
        source=str(file.path),
    )


def _voters(file: VoteFile, number: int, count: str) -> int:
    voters = parse_whole(count)
    if re.fullmatch(r"\s*[0-9]{19,}\s*", count) and (voters is None or voters > MOST):
        raise file.error(number, f"the count {shown(count)} is above {MOST}, the largest that is read")
    if not voters:
        raise file.error(number, f"the count {shown(count)} is not a whole number of at least 1")
    return voters
