"""Acharyya 2013, Figure 6.11: a spam classifier with one threshold, learnt on few labels.

The dissertation prints the errors of its L_pq TrustRank and of TrustRank on a crawl that is not public. Here the spam
is planted in farms (see `farms`), so only the shape can agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from apexrank.errors import InputError
from apexrank.graph import LpqRank, PageRank, TrustRank, best_threshold
from apexrank_papers.figure import new_figure
from apexrank_papers.graphs.farms import (
    DAMPING,
    RATIO,
    TOL,
    Farmed,
    farmed_crawl,
    labelled_sample,
    spread_labels,
    weighed,
)
from apexrank_papers.printed import printed_table
from apexrank_papers.result import Result, Verdict, claim, signed_verdict
from apexrank_papers.splits import check_repeated, mean_over_splits, standard_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The classifiers, and the row of the printed table that each belongs to. The dissertation's own TrustRank is PageRank
# weighed by trust and distrust along the links; the published one is PageRank from trusted vertices alone.
CLASSIFIERS = {
    "Lin-L_2,2.4": "L_pq TrustRank",
    "TrustRank": "TrustRank",
    "Lin-PageRank, along": "TrustRank",
}
OURS, PUBLISHED, THEIRS = CLASSIFIERS
ERRORS = ("error", "balanced error", "error, best cut")


def spam_labels(
    *,
    crawl: str = "auto",
    labels: Sequence[float] = (0.00625, 0.0125, 0.025, 0.05, 0.1),
    spam_share: float = 0.2,
    boosters: int = 200,
    hijacked: int = 10,
    repeats: int = 5,
    n: int = 100_000,
    random_state: int = 0,
) -> Result:
    """Figure 6.11: call spam what scores below one threshold, learnt on few labelled vertices.

    Parameters
    ----------
    crawl, boosters, hijacked, n
        As in ``linkfarm``. With ``hijacked=0`` no trust gets into farms, and TrustRank errs by construction only where
        it does not reach honest vertices.
    labels : sequence of float
        Shares of all vertices that are labelled.
    spam_share : float
        So many farms are planted that this share of all vertices is spam.
    repeats : int
        Random draws of the labelled vertices; at least 2.
    random_state : int
        Where crawl and draws come from.
    """
    check_repeated("repeats", repeats)
    if not labels:
        raise InputError("labels needs at least one share of labelled vertices, such as 0.1")
    if not 0 < spam_share < 1:
        raise InputError(f"spam_share must lie between 0 and 1, got {spam_share!r}")
    farmed = farmed_crawl(crawl, n, 0, boosters, hijacked, random_state, spam_share)
    ranks = (
        LpqRank(2, RATIO, DAMPING, tol=TOL).fit(farmed.graph).scores_,
        PageRank(DAMPING, tol=TOL).fit(farmed.graph).scores_,
    )
    rng = np.random.default_rng(random_state)
    shares = sorted(labels)
    # draws x shares x classifiers x errors, in percent
    values = 100 * np.array(
        [[_one_draw(farmed, *ranks, share, rng) for share in shares] for _ in range(repeats)]
    )
    table = _table(values, shares)
    verdicts = [
        *_fewer_errors(values, shares),
        *_more_labels(values, shares),
        _few_are_enough(values, shares),
        _useless(values, shares, farmed),
    ]
    return Result(table, _view(table), verdicts, _draw(table, shares, farmed.name), _notes(farmed, repeats))


def _one_draw(
    farmed: Farmed, lpq: np.ndarray, plain: np.ndarray, share: float, rng: np.random.Generator
) -> list[list[float]]:
    """Classifiers x errors for one draw of the labelled vertices."""
    trusted, distrusted = labelled_sample(farmed.spam, share, rng)
    trust, against, along = spread_labels(farmed.graph, trusted, distrusted)
    scores = {
        OURS: weighed(lpq, trust, against),
        PUBLISHED: TrustRank(DAMPING, tol=TOL).fit(farmed.graph, trusted=trusted).scores_,
        THEIRS: weighed(plain, trust, along),
    }
    return [_errors(scores[name], farmed.spam, trusted | distrusted) for name in CLASSIFIERS]


def _errors(scores: np.ndarray, spam: np.ndarray, known: np.ndarray) -> list[float]:
    """The `ERRORS` of a threshold learnt on the known vertices."""
    found = best_threshold(scores[known], spam[known]).is_spam(scores[~known])
    right = [measure(spam[~known], found) for measure in (accuracy_score, balanced_accuracy_score)]
    return [1 - right[0], 1 - right[1], best_threshold(scores[~known], spam[~known]).error]


def _table(values: np.ndarray, shares: list[float]) -> pl.DataFrame:
    printed = {row["algorithm"]: row for row in printed_table("spam_labels").to_dicts()}
    means, errors = values.mean(axis=0), standard_error(values)
    rows = []
    for s, share in enumerate(shares):
        for c, (name, algorithm) in enumerate(CLASSIFIERS.items()):
            for e, error in enumerate(ERRORS):
                there = printed[algorithm].get(f"{100 * share:g}%") if error == "error" else None
                rows.append(
                    {
                        "labels": share,
                        "classifier": name,
                        "measure": error,
                        "mean": float(means[s, c, e]),
                        "standard_error": float(errors[s, c, e]),
                        "printed": None if there is None else float(there),
                    }
                )
    return pl.DataFrame(rows, schema_overrides={"printed": pl.Float64})


def _view(table: pl.DataFrame) -> pl.DataFrame:
    ours = [f"{mean:.2f} ± {error:.2f}" for mean, error in table.select("mean", "standard_error").rows()]
    named = table.with_columns(pl.Series("labels", [f"{100 * share:g} %" for share in table["labels"]]))
    printed = named.filter(pl.col("measure") == "error", pl.col("classifier") != THEIRS).with_columns(
        pl.lit("error, printed").alias("measure"),
        pl.col("printed").cast(pl.String).fill_null("–").alias("cell"),
    )
    lines = pl.concat([named.with_columns(pl.Series("cell", ours)), printed])
    return lines.pivot("labels", index=["classifier", "measure"], values="cell").sort(
        "classifier", maintain_order=True
    )


def _fewer_errors(values: np.ndarray, shares: list[float]) -> Iterator[Verdict]:
    """Lin-L_pq makes fewer errors than either TrustRank at every share."""
    for number, name in ((1, "TrustRank"), (2, "the dissertation's TrustRank")):
        gaps = [mean_over_splits(values[:, s, 0, 0] - values[:, s, number, 0]) for s in range(len(shares))]
        words = [f"{gap} at {_percent(share)} labels" for gap, share in zip(gaps, shares, strict=True)]
        row, why = f"Lin-L_pq makes fewer errors than {name}", f"difference in percent {', '.join(words)}"
        yield signed_verdict(row, -max(gap.sign for gap in gaps), why)


def _more_labels(values: np.ndarray, shares: list[float]) -> Iterator[Verdict]:
    printed = printed_table("spam_labels")
    for number, name in enumerate((OURS, PUBLISHED)):
        fall = mean_over_splits(values[:, -1, number, 0] - values[:, 0, number, 0])
        row = printed.filter(algorithm=CLASSIFIERS[name])
        why = (
            f"the change from {_percent(shares[0])} to {_percent(shares[-1])} labels is {fall} percent; printed "
            f"{row['0.625%'][0]} to {row['10%'][0]}"
        )
        yield signed_verdict(f"{name} makes fewer errors with more labels", -fall.sign, why)


def _few_are_enough(values: np.ndarray, shares: list[float]) -> Verdict:
    """The fewest labels do more for Lin-L_pq than the most for TrustRank."""
    few, many = values[:, 0, 0, 0], values[:, -1, 1, 0]
    why = (
        f"Lin-L_pq with {_percent(shares[0])} labels has {few.mean():.2f} % errors, TrustRank with "
        f"{_percent(shares[-1])} {many.mean():.2f} %; printed 7.548, 14.57 %"
    )
    return signed_verdict("a fraction of the labels is enough", mean_over_splits(many - few).sign, why)


def _useless(values: np.ndarray, shares: list[float], farmed: Farmed) -> Verdict:
    """With few labels the printed TrustRank is far worse than calling nothing spam."""
    constant = 100 * farmed.spam.mean()
    few = values[:, 0, 1, 0].mean()
    why = (
        f"{few:.2f} % errors with {_percent(shares[0])} labels, {constant:.2f} % if nothing is called spam; printed "
        "65.103, about 20 %"
    )
    return claim("TrustRank with few labels is worse than no answer", few > constant, why)


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _notes(farmed: Farmed, repeats: int) -> list[str]:
    share = f"{100 * farmed.spam.mean():.1f} %"
    return [
        f"{farmed.name}: {share} of {farmed.graph.n:,} vertices are spam, all of it planted. The dissertation's crawl "
        "is not public: only the shape can agree, not the level.",
        f"Errors in percent of the unlabelled vertices, mean ± standard error over {repeats} draws. Always the same "
        f"answer has a balanced error of 50 %, and {share} errors. Best cut: the threshold that would have been best "
        "there.",
        "The labelled vertices are the seeds and also what the threshold is learnt on. A trusted seed has a share of "
        "the teleport by being one, so TrustRank's threshold may lie just below it and call nearly all others spam, "
        "which may explain the printed 65 %.",
        "Lin-PageRank, along: what the dissertation calls TrustRank (PageRank weighed by trust and distrust along the "
        "links).",
    ]


def _draw(table: pl.DataFrame, shares: list[float], title: str) -> Figure:
    from apexrank.plot.style import light, line_style

    figure = new_figure(10.5, 4.5)
    axes = figure.subplots(1, 2)
    for ax, measure in zip(axes, ERRORS[:2], strict=True):
        for number, name in enumerate(CLASSIFIERS):
            part = table.filter(classifier=name, measure=measure)
            style = line_style(number)
            ax.errorbar(
                part["labels"], part["mean"], yerr=part["standard_error"], label=name, capsize=2, **style
            )
            if part["printed"].is_not_null().any() and name != THEIRS:
                pale = style | {"alpha": 0.35, "marker": None}
                ax.plot(part["labels"], part["printed"], label=f"{CLASSIFIERS[name]}, printed", **pale)
        ax.set(
            xscale="log", xlabel="labelled vertices", ylabel=f"{measure}, percent", title=measure.capitalize()
        )
        ax.set_xticks(shares, [_percent(share) for share in shares])
        ax.minorticks_off()
        ax.set_ylim(bottom=0)
        light(ax)
    handles, names = axes[0].get_legend_handles_labels()
    ours_first = sorted(range(len(names)), key=lambda i: "printed" in names[i])
    axes[0].legend(
        [handles[i] for i in ours_first],
        [names[i] for i in ours_first],
        frameon=False,
        handlelength=3.2,
        fontsize="small",
    )
    figure.suptitle(title, fontsize="medium")
    return figure
