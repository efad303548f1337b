"""Fast parser of plain LETOR lines; unusual lines are left to the complete parser in Python."""

from __future__ import annotations

import numpy as np

from apexrank.kernels.jit import kernel

ROW, ENTRY, LINE, HARD = range(4)  # indices of the counts in `state`
_BLANK, _NEWLINE, _HASH, _COLON, _POINT, _PLUS, _MINUS, _E, _UPPER_E = map(ord, " \n#:.+-eE")
_TEN = 10.0 ** np.arange(23)  # exact powers of ten
_DIGITS = 10**15  # limit of a mantissa
_EXACT = 2**53  # integers up to this are exact in double precision


@kernel()
def parse_lines(
    text: np.ndarray,
    at: int,
    state: np.ndarray,
    relevance: np.ndarray,
    lines: np.ndarray,
    spans: np.ndarray,
    ends: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    hard: np.ndarray,
) -> int:
    """Parse lines from byte ``at`` until one needs the Python parser or the arrays are full; return the position.

    Every line of ``text`` must end in a newline. A line is parsed if it is empty, a comment, or has a relevance, a
    query id and features without duplicates. A mantissa up to 2^53 times or over a power of ten up to 10^22 is rounded
    correctly by one operation (Clinger 1990); the positions of other values are stored in ``hard``.

    Parameters
    ----------
    text : ndarray of uint8
        Complete lines.
    at : int
        Position of the first line.
    state : ndarray of 4 int64
        Number of rows, entries and lines so far, and of values in ``hard``; all are incremented.
    relevance, lines : ndarray
        Relevance and line number of each row.
    spans : ndarray of shape (rows, 4)
        Start and end of a row's query id and of its comment, which may be empty.
    ends : ndarray of int64
        Number of entries up to the end of each row, from ``ends[1]`` on.
    columns, values : ndarray
        Feature number minus 1 and value of each entry.
    hard : ndarray of shape (entries, 3)
        Entry, start and end of values to be parsed by Python.
    """
    n = len(text)
    while at < n and state[ROW] < len(relevance):
        i = _after_blanks(text, at)
        if text[i] != _HASH and text[i] != _NEWLINE:
            row, entry, n_hard = state[ROW], state[ENTRY], state[HARD]
            i, grade, is_plain = _number(text, i)
            j = _after_blanks(text, i)
            is_plain = is_plain and j > i and grade >= 0 and j + 4 < n
            if not (is_plain and text[j] == 113 and text[j + 1] == 105 and text[j + 2] == 100):  # qid
                return at
            i = _after_token(text, j)
            if text[j + 3] != _COLON or i <= j + 4:
                return at
            relevance[row], spans[row, 0], spans[row, 1] = grade, j + 4, i
            last, first, ascending = np.int64(0), entry, True
            while True:
                j = _after_blanks(text, i)
                if text[j] == _HASH or text[j] == _NEWLINE:
                    break
                name = np.int64(0)
                i = j
                while 48 <= text[i] <= 57 and name < 2**31:
                    name = 10 * name + text[i] - 48
                    i += 1
                if text[i] != _COLON or not 1 <= name < 2**31:
                    return at
                if name <= last:
                    ascending = False
                last, columns[entry], j = name, name - 1, i + 1
                i, values[entry], is_plain = _number(text, j)
                if not is_plain:
                    i = _after_token(text, j)
                    if _is_null(text, j, i):
                        values[entry] = np.nan
                    else:
                        hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2] = entry, j, i
                        n_hard += 1
                entry += 1
            if not ascending:
                names = np.sort(columns[first:entry])
                if (names[1:] == names[:-1]).any():
                    return at
            i = _line_end(text, j)
            spans[row, 2], spans[row, 3] = min(j + 1, i), i  # without the #
            lines[row], ends[row + 1] = state[LINE] + 1, entry
            state[ROW], state[ENTRY], state[HARD] = row + 1, entry, n_hard
        state[LINE] += 1
        at = _line_end(text, i) + 1
    return at


@kernel()
def _line_end(text: np.ndarray, i: int) -> int:
    while text[i] != _NEWLINE:
        i += 1
    return i


@kernel()
def _after_blanks(text: np.ndarray, i: int) -> int:
    while text[i] == _BLANK or (9 <= text[i] <= 13 and text[i] != _NEWLINE):
        i += 1
    return i


@kernel()
def _after_token(text: np.ndarray, i: int) -> int:
    while text[i] != _BLANK and not 9 <= text[i] <= 13 and text[i] != _HASH:
        i += 1
    return i


@kernel()
def _is_null(text: np.ndarray, start: int, stop: int) -> bool:
    return (
        stop - start == 4
        and text[start] == 78
        and text[start + 1] == 85
        and text[stop - 2] == text[stop - 1] == 76
    )


@kernel()
def _number(text: np.ndarray, i: int) -> tuple[int, float, bool]:
    """Return the end of a number, its value, and whether it is a complete token with a correctly rounded value."""
    negative = text[i] == _MINUS
    if negative or text[i] == _PLUS:
        i += 1
    mantissa, power, digits, point = np.int64(0), 0, 0, False
    while (48 <= text[i] <= 57 and mantissa < _DIGITS) or (text[i] == _POINT and not point):
        if text[i] == _POINT:
            point = True
        else:
            mantissa = 10 * mantissa + text[i] - 48
            digits += 1
            power -= 1 if point else 0
        i += 1
    if digits and (text[i] == _E or text[i] == _UPPER_E):
        i += 1
        sign = -1 if text[i] == _MINUS else 1
        if text[i] == _MINUS or text[i] == _PLUS:
            i += 1
        exponent, digits = 0, 0
        while 48 <= text[i] <= 57 and exponent < 1000:
            exponent = 10 * exponent + text[i] - 48
            digits += 1
            i += 1
        power += sign * exponent
    ended = text[i] == _BLANK or 9 <= text[i] <= 13 or text[i] == _HASH
    if not (ended and digits and mantissa <= _EXACT and -22 <= power <= 22):
        return i, 0.0, False
    value = mantissa * _TEN[power] if power >= 0 else mantissa / _TEN[-power]
    return i, -value if negative else value, True
