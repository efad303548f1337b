"""HTML reports: one self-contained file per result.

`apexrank.comparison` compares rankers by the positives they put at the top of a list (``rankers``); `compare_ranks`
finds vertices of a graph that gain by artificial links, and `apexrank.graph.attack_ranks` measures how far such links
lift them (``graph``); `summarise_votes` shows how settled an aggregation is (``votes``); a scorecard has a printable
page (``card``). `build` creates the page of any of them, using the shared modules ``page`` and ``charts``. It needs
``pip install "apexrank[report]"``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.report.graph.compare import compare_ranks as compare_ranks
    from apexrank.report.graph.result import RankComparison as RankComparison
    from apexrank.report.votes.summary import VoteSummary as VoteSummary
    from apexrank.report.votes.summary import summarise_votes as summarise_votes
else:
    __getattr__, __dir__, __all__ = attach(__name__)

_PAGES = {  # module and function that create the page of a result
    "Comparison": ("rankers", "page"),
    "RankComparison": ("graph.page", "page"),
    "AttackStudy": ("graph.page", "attack_page"),
    "VoteSummary": ("votes.page", "page"),
    "Scorecard": ("card", "page"),
    "BinnedScorecard": ("card", "page"),
}


def build(result: Any, path: str | Path | None = None, *, title: str | None = None) -> str:
    """Create the HTML page of a result: one file without external resources.

    Parameters
    ----------
    result : Comparison, RankComparison, AttackStudy, VoteSummary, Aggregation, Scorecard or BinnedScorecard
        The result to show.
    path : path, optional
        HTML file to write, atomically.
    title : str, optional
        Title of the page.

    Returns
    -------
    str
        The HTML text.

    Examples
    --------
    >>> from apexrank import datasets, report
    >>> from apexrank.comparison import LinearPush, Logistic, compare_rankers
    >>> X, y = datasets.make_push_example(600, return_X_y=True)
    >>> html = report.build(compare_rankers(X, y, candidates=[Logistic(), LinearPush(ps=(1, 4))], repeats=1))
    >>> html.startswith("<!doctype html>")
    True
    """
    from apexrank.aggregation.rank_aggregation import Aggregation
    from apexrank.errors import InputError
    from apexrank.files import write_bytes
    from apexrank.report.votes.summary import summarise_votes

    if isinstance(result, Aggregation):
        result = summarise_votes(result)
    kind = type(result).__name__
    if kind not in _PAGES:
        raise InputError(
            f"there is no report of a {kind}: give a result of compare_rankers, compare_table, "
            "compare_ranks, attack_ranks, summarise_votes, aggregate or round_scorecard"
        )
    module, make = _PAGES[kind]
    html = getattr(import_module(f"apexrank.report.{module}"), make)(result, title=title)
    if path is not None:
        write_bytes(path, html.encode())
    return html
