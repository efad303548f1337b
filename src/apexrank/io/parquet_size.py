"""How much a Parquet file holds, by what its end says: a few bytes can stand for gigabytes of equal values.

The end of a file is a structure in Thrift's compact protocol (parquet.thrift: FileMetaData, RowGroup, ColumnChunk,
ColumnMetaData); only the number, type and depth of the values of each column are taken from it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

from apexrank.errors import InputError

_MOST_TIMES = 500  # flags of which one in a hundred is set shrink to a 300th
_ALWAYS = 1 << 28
_BYTES = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8, 6: 16, 7: 16}  # of a value in memory, by its physical type
_MARK = b"PAR1"
_DEEPEST = 32
_LONGEST_HEAD = 1 << 16  # of a page, with the least and the largest of its values
_BROKEN = (IndexError, KeyError, TypeError, StopIteration)


def check_size(path: Path) -> None:
    """Refuse a damaged file, and one that holds far more values than its size lets expect."""
    check_pages(path)
    size = path.stat().st_size
    needed = _needed(path, size)
    if needed > max(_ALWAYS, _MOST_TIMES * size):
        raise InputError(
            f"{path} of {size:,} bytes holds {needed / 1e9:.1f} GB of values, more than {_MOST_TIMES} times its size; "
            "if that is as it should be, divide it into several files"
        )


def check_pages(path: Path) -> None:
    """Refuse a file whose pages have other numbers of values than its end says.

    The fast reader believes a page, and ends the whole process where the page asks for memory without end.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        for column in _columns(path, size):
            try:
                _check_pages(file, column, size)
            except _BROKEN:
                raise InputError(
                    f"cannot read {path} as Parquet: a page of column {_name(column)!r} is damaged; copy the file again"
                ) from None


def _columns(path: Path, size: int) -> list[dict[int, Any]]:
    """What the end of the file says of each column in each group of rows."""
    try:
        columns = [chunk[3] for group in _footer(path, size)[4] for chunk in group[1]]
        for column in columns:
            _BYTES[column[1]], _name(column), column[5] + column[7] + column[9] + column.get(11, 0)
        return columns
    except _BROKEN:
        raise InputError(f"cannot read {path} as Parquet: its end is damaged; copy the file again") from None


def _name(column: dict[int, Any]) -> str:
    return b".".join(column[3]).decode(errors="replace")


def _needed(path: Path, size: int) -> int:
    """Bytes of all values in memory, about; of a list or struct twice those, for what says where it begins and ends."""
    return sum(_BYTES[column[1]] * column[5] * min(len(column[3]), 2) for column in _columns(path, size))


def _check_pages(file: BinaryIO, column: dict[int, Any], size: int) -> None:
    """Go from page to page; PageHeader has its packed size in field 3, and the header of its kind in 5, 7 or 8."""
    values, left = column[5], column[7]
    at = min((offset for offset in (column[9], column.get(11, 0)) if offset > 0), default=0)
    if left and not 4 <= at <= at + left <= size:  # a column without rows may have no place
        raise IndexError
    while left > 0:
        file.seek(at)
        head = _Compact(file.read(min(left, _LONGEST_HEAD)))
        page = head.struct()
        number = next(page[kind][1] for kind in (5, 8, 7) if kind in page)
        if not (0 <= number <= column[5] and page[2] >= 0 and page[3] >= 0):
            raise IndexError
        values -= 0 if 7 in page else number
        at, left = at + head.at + page[3], left - head.at - page[3]
    if left or values:
        raise IndexError


def _footer(path: Path, size: int) -> Any:
    with path.open("rb") as file:
        if file.read(4) != _MARK:
            raise InputError(f"{path} is not a Parquet file: if it is text, name it .csv")
        file.seek(max(size - 8, 4))
        end = file.read(8)
        length = int.from_bytes(end[:4], "little")
        if end[4:] != _MARK or length > size - 12:
            raise InputError(f"cannot read {path} as Parquet: it is cut short; copy the file again")
        file.seek(size - 8 - length)
        return _Compact(file.read(length)).struct()


class _Compact:
    """Values in Thrift's compact protocol; what is broken raises one of the errors of lists and dictionaries."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.depth = data, 0, 0

    def struct(self) -> dict[int, Any]:
        """Fields by their numbers."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise IndexError
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            fields[number] = self._value(head & 15, in_struct=True)
        self.depth -= 1
        return fields

    def _value(self, kind: int, in_struct: bool = False) -> Any:
        if kind in (1, 2):  # a flag of a structure has no byte of its own
            return kind == 1 if in_struct else self._byte() == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._zigzag()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._varint())
        if kind in (9, 10):
            return self._list()
        if kind == 12:
            return self.struct()
        raise KeyError(kind)

    def _list(self) -> list[Any]:
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._varint()
        if size > len(self.data) - self.at:  # no value is shorter than a byte
            raise IndexError
        return [self._value(head & 15) for _ in range(size)]

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _bytes(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise IndexError
        self.at += size
        return self.data[self.at - size : self.at]

    def _varint(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise IndexError

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
