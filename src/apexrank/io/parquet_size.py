"""Size and integrity checks of Parquet files, in which a few bytes can encode gigabytes of equal values.

The footer of a file is a structure in Thrift's compact protocol (parquet.thrift: FileMetaData, RowGroup, ColumnChunk,
ColumnMetaData, SchemaElement); only the number, type and nesting depth of the values of each column are read.

This is hand-written because polars does not report the sizes of columns or pages before reading them, and aborts the
process on a page that requests too much memory; pyarrow, which reports the former, is not a dependency.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

from apexrank.errors import InputError
from apexrank.foreign import HEAD, seems
from apexrank.textfile import unpacked_limit

_BYTES = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8, 6: 16, 7: 16}  # bytes per value in memory, by physical type
_MARK, _ENCRYPTED = b"PAR1", b"PARE"
_DEEPEST = 32
_HEADS = (
    1 << 10,
    1 << 16,
    1 << 26,
)  # bytes to read for a page header; its minimum and maximum values may be long
_BROKEN = (IndexError, KeyError, TypeError, AttributeError, StopIteration)

Column = tuple[dict[int, Any], int]


def check_size(path: Path) -> None:
    """Raise InputError for a damaged file, or one that expands to far more than its size suggests."""
    size, needed = path.stat().st_size, _needed(check_pages(path))
    most = unpacked_limit(path, "parquet")
    if needed > most:
        raise InputError(
            f"{path} of {size:,} bytes holds {needed / 1e9:.2f} GB of values, and {most / 1e9:.2f} GB is the limit for "
            "its size; read fewer columns or rows into a new file"
        )


def check_pages(path: Path) -> list[Column]:
    """Raise InputError if the pages of a file do not hold the numbers of values stated in its footer.

    polars trusts the page headers and aborts the process if one requests too much memory.
    """
    size = path.stat().st_size
    columns = _columns(path, size)
    with path.open("rb") as file:
        for column, _ in columns:
            try:
                _check_pages(file, column, size)
            except _BROKEN:
                raise InputError(
                    f"cannot read {path} as Parquet: a page of column {_name(column)!r} is damaged; copy the file again"
                ) from None
    return columns


def _columns(path: Path, size: int) -> list[Column]:
    """Return the footer metadata of each column chunk, and the bytes per value."""
    try:
        end = _footer(path, size)
        widths = [_width(element) for element in end[2] if not element.get(5)]
        columns = [
            (chunk[3], width) for group in end[4] for chunk, width in zip(group[1], widths, strict=True)
        ]
        for column, _ in columns:
            _BYTES[column[1]], _name(column), column[5] + column[7] + column[9] + column.get(11, 0)
        return columns
    except (*_BROKEN, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot read {path} as Parquet: its end is damaged; copy the file again") from None


def _name(column: dict[int, Any]) -> str:
    return b".".join(column[3]).decode(errors="replace")


def _width(element: dict[int, Any]) -> int:
    """Bytes of a value in memory; for integers, field 10 (LogicalType INTEGER) gives the number of bits."""
    bits = element.get(10, {}).get(10, {}).get(1, 128)
    return min(_BYTES[element[1]], bits // 8 or 1)


def _needed(columns: list[Column]) -> int:
    """Approximate bytes of all values in memory, doubled for lists and structs because of their offsets."""
    return sum(width * column[5] * min(len(column[3]), 2) for column, width in columns)


def _check_pages(file: BinaryIO, column: dict[int, Any], size: int) -> None:
    """Walk over the pages; a PageHeader has its compressed size in field 3, and the header of its kind in 5, 7 or 8."""
    values, left = column[5], column[7]
    at = min((offset for offset in (column[9], column.get(11, 0)) if offset > 0), default=0)
    if left and not 4 <= at <= at + left <= size:  # a column without rows may have no offset
        raise IndexError
    while left > 0:
        page, length = _page(file, at, left)
        number = next(page[kind][1] for kind in (5, 8, 7) if kind in page)
        if not (0 <= number <= column[5] and page[2] >= 0 and page[3] >= 0):
            raise IndexError
        values -= 0 if 7 in page else number
        at, left = at + length + page[3], left - length - page[3]
    if left or values:
        raise IndexError


def _page(file: BinaryIO, at: int, left: int) -> tuple[dict[int, Any], int]:
    """Header of a page, and its length."""
    for most in _HEADS:
        file.seek(at)
        head = _Compact(file.read(min(left, most)))
        try:
            return head.struct(), head.at
        except IndexError:  # the header is longer
            if most >= min(left, _HEADS[-1]):
                raise
    raise AssertionError


def _footer(path: Path, size: int) -> Any:
    with path.open("rb") as file:
        mark = file.read(4)
        if mark == _ENCRYPTED:
            raise InputError(f"{path} is encrypted: write it without encryption")
        if mark != _MARK:
            file.seek(0)
            what = seems(file.read(HEAD), ours=True) or "text: name it .csv"
            raise InputError(f"{path} is not a Parquet file, it seems to be {what}")
        file.seek(max(size - 8, 4))
        end = file.read(8)
        length = int.from_bytes(end[:4], "little")
        if end[4:] != _MARK or length > size - 12:
            raise InputError(f"cannot read {path} as Parquet: it is cut short; copy the file again")
        file.seek(size - 8 - length)
        return _Compact(file.read(length)).struct()


class _Compact:
    """Parser for Thrift's compact protocol; malformed input raises one of the errors in ``_BROKEN``."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.depth = data, 0, 0

    def struct(self) -> dict[int, Any]:
        """Fields by number."""
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
        if kind in (1, 2):  # a boolean field of a struct has no byte of its own
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
        if size > len(self.data) - self.at:  # every value takes at least one byte
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
