"""Compare printed output with shown figures, which are certain to one unit in their last digit.

Other processors sum in another order, so a figure close to a rounding boundary may be printed either way. Text, whole
numbers and the digits before the last must be equal.
"""

import re

NUMBER = r"[-+]?\d+\.\d+(?:e[-+]?\d+)?"
PARTS = re.compile(rf"(?P<cut>{NUMBER})\.\.\.|(?P<number>{NUMBER})|(?P<any>\.\.\.)|(?P<space>\s+)")


def same_output(want: str, got: str) -> bool:
    """Whether ``got`` is ``want``, with ``...`` for anything and decimal numbers equal to their last digit.

    A number followed by ``...`` is shown in part: what comes after is not compared.

    Examples
    --------
    >>> same_output("AUC 0.892 after ... s", "AUC  0.893 after 12 s")
    True
    >>> same_output("AUC 0.892", "AUC 0.894"), same_output("AUC 0.6", "AUC 0.5999"), same_output("0.6", "0.62")
    (False, True, False)
    """
    pattern, shown, end = [], [], 0
    for part in PARTS.finditer(want.strip()):
        pattern.append(re.escape(want.strip()[end : part.start()]))
        end = part.end()
        if part.lastgroup in ("cut", "number"):
            pattern.append(f"({NUMBER})" + (".*?" if part.lastgroup == "cut" else ""))
            shown.append((part[part.lastgroup], part.lastgroup == "cut"))
        else:
            pattern.append(".*?" if part.lastgroup == "any" else r"\s+")
    pattern.append(re.escape(want.strip()[end:]))
    found = re.fullmatch("".join(pattern), got.strip(), flags=re.DOTALL)
    return found is not None and all(
        _same_figure(one, other, cut) for (one, cut), other in zip(shown, found.groups(), strict=True)
    )


def _same_figure(shown: str, got: str, cut: bool) -> bool:
    unit = _last_digit(shown) if cut else min(_last_digit(shown), _last_digit(got))
    return abs(float(shown) - float(got)) <= 1.001 * unit  # decimal fractions are not exact


def _last_digit(number: str) -> float:
    mantissa, _, power = number.partition("e")
    return 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))
