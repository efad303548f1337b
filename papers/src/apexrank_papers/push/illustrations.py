"""Objective R_{p,ℓ} of lists small enough to check by hand (JMLR 2009, sec. 3, Tables 1 and 2).

The printed exponential and logistic columns belong to **halved** scores: i/2 instead of i in Table 1, and half of
f_1 and f_2 in Table 2. The 0-1 columns do not depend on the scale. With halved scores every printed digit agrees. One
cell is truncated where all others are rounded: R_{5,exp}(f_1) is 156638.35, and Table 2 prints 1.56e5.
"""

from __future__ import annotations

from decimal import ROUND_DOWN

import numpy as np
import polars as pl

from apexrank.losses import Exponential, Logistic, Loss, ZeroOne
from apexrank.prices import Power
from apexrank_papers.printed import like_printed, printed_table
from apexrank_papers.result import Result, Verdict, claim

_NOTE = (
    "The scores are halved: the printed exponential and logistic columns belong to i/2 and f/2, not to the scores in "
    "the text; the 0-1 columns do not depend on the scale."
)
_LABELS_1 = np.array([0, 1, 0, 1, 0, 0, 1, 1])
_SCORES_1 = {
    "orig": np.array([1, 2, 3, 4, 5, 6, 7, 8]),
    "swap_on_bottom": np.array([2, 1, 3, 4, 5, 6, 7, 8]),
    "swap_on_top": np.array([1, 2, 3, 4, 5, 7, 6, 8]),
}
_LABELS_2 = np.array([1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0])
_SCORES_2 = {"f1": np.arange(14, 0, -1) / 14, "f2": -np.arange(14, 0, -1) / 14}
_LOSSES: dict[str, Loss] = {"01": ZeroOne(), "exp": Exponential(), "log": Logistic(), "logistic": Logistic()}


def push_risk(y: np.ndarray, scores: np.ndarray, loss: Loss, p: float) -> float:
    """R_{p,ℓ} = Σ_k (Σ_i ℓ(f_i − g_k))^p over all pairs (JMLR 2009, sec. 2).

    Examples
    --------
    >>> round(push_risk(_LABELS_1, _SCORES_1["orig"], ZeroOne(), p=4), 9)
    33.0
    """
    margins = scores[y == 1][:, None] - scores[y == 0][None, :]
    return float(Power(p).value(loss.value(margins).sum(axis=0)).sum())


def table1() -> Result:
    r"""Compute R_4 of three lists that differ by one swap, which costs much more at the top than at the bottom.

    Examples
    --------
    >>> print(*table1().verdicts, sep="\n")
    orig: agrees: every printed digit
    swap_on_bottom: agrees: every printed digit
    swap_on_top: agrees: every printed digit
    """
    rows = []
    for line in printed_table("table1").to_dicts():
        name = line.pop("labels_ordered_by")
        for column, printed in line.items():
            loss = _LOSSES[column.removeprefix("R4_")]
            value = push_risk(_LABELS_1, _SCORES_1[name] / 2, loss, p=4)
            rows.append(_compared(name, column, value, printed))
    return _digit_result(rows)


def table2() -> Result:
    """Compute R_p of a list and of its reversal: a larger p favours the list that is right at the top.

    Examples
    --------
    >>> print(table2().verdicts[4])
    p = 5: agrees: every printed digit; Rexp_f1 is 1.57e5 when rounded, the printed 1.56e5 is cut off
    """
    rows = []
    for line in printed_table("table2").to_dicts():
        p = int(line.pop("p"))
        for column, printed in line.items():
            loss, scoring = column.removeprefix("R").split("_")
            value = push_risk(_LABELS_2, _SCORES_2[scoring] / 2, _LOSSES[loss], p)
            rows.append(_compared(f"p = {p}", column, value, printed))
    return _digit_result(rows)


def _compared(row: str, column: str, value: float, printed: str) -> dict[str, object]:
    ours, cut = like_printed(value, printed), like_printed(value, printed, rounding=ROUND_DOWN)
    how = "rounded" if printed == ours else "cut off" if printed == cut else "differs"
    return {"row": row, "column": column, "ours": ours, "printed": printed, "printed_digits": how}


def _digit_result(rows: list[dict[str, object]]) -> Result:
    table = pl.DataFrame(rows)
    parts = table.partition_by("row", maintain_order=True)
    same = pl.col("ours") == pl.col("printed")
    both = pl.when(same).then("ours").otherwise(pl.format("{} (printed {})", "ours", "printed"))
    view = table.with_columns(both=both).pivot("column", index="row", values="both")
    return Result(table, view, [_digit_verdict(part) for part in parts], notes=[_NOTE])


def _digit_verdict(part: pl.DataFrame) -> Verdict:
    def told(how: str, form: str) -> list[str]:
        return [form.format(**cell) for cell in part.filter(printed_digits=how).to_dicts()]

    wrong = told("differs", "{column} is {ours}, printed {printed}")
    cut = told("cut off", "; {column} is {ours} when rounded, the printed {printed} is cut off")
    why = "; ".join(wrong) or "every printed digit" + "".join(cut)
    return claim(str(part["row"][0]), not wrong, why)
