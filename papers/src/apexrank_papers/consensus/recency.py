"""Value of older layers for predicting who receives the links of the next layer in time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import spearmanr

from apexrank.errors import InputError
from apexrank.graph import ConsensusRank, Layers, PageRank, as_layers
from apexrank_papers.consensus.data import common_top
from apexrank_papers.data.networks import load_bitcoin_otc
from apexrank_papers.result import Result, Verdict, question, text_view, tidy
from apexrank_papers.splits import mean_verdict, spread

TOP = 50
LAST, UNION, RECENT = "last layer alone", "union", "union, half-life {:g}"
MEASURES = (f"first {TOP} in common", f"share of links to the first {TOP}", "Spearman's ρ")


def consensus_recency(*, half: int = 2, slices: int = 16, half_lives: tuple[float, ...] = (0.5,)) -> Result:
    """Compare ranks of the positive ratings of bitcoin-otc so far with the ratings of the next time slice.

    Parameters
    ----------
    half : {1, 2}
        Half of the ratings in time; half-lives were chosen on the first.
    slices : int
        Number of layers in that half, with equally many ratings; those of its later half are predicted in turn.
    half_lives : tuple of float
        Half-lives of the union, in layers.
    """
    if half not in (1, 2) or slices < 4:
        raise InputError(f"`half` must be 1 or 2 and `slices` at least 4, got {half!r} and {slices!r}")
    layers = _slices(half, slices)
    found: dict[str, list[tuple[float, float, float]]] = {}
    for now in range(slices // 2, slices):
        past = as_layers(layers[:now])
        known = sum(abs(layer) for layer in layers[:now])
        seen = (known.sum(axis=0) + known.sum(axis=1)) > 0
        received = (layers[now] != 0).sum(axis=0)
        for way, scores in _ranks(past, half_lives):
            found.setdefault(way, []).append(_foretold(scores, received, seen))
    values = {way: np.array(each) for way, each in found.items()}
    numbers = spread(np.stack(list(values.values()), axis=1))
    table = tidy({"method": values, "measure": MEASURES}, numbers).drop("standard_deviation")
    view = text_view(table, "{mean:.3f} ± {standard_error:.3f}", on="measure", index="method")
    verdicts = [_better(values, RECENT.format(half_lives[0]), other) for other in (UNION, LAST)]
    notes = [
        f"bitcoin-otc, {('first', 'second')[half - 1]} half of the ratings in time, {slices} layers; mean ± standard "
        f"error over {slices - slices // 2} predicted layers. Spearman's ρ is over all vertices seen so far.",
    ]
    return Result(table, view, verdicts, notes=notes)


def _slices(half: int, slices: int) -> list[csr_array]:
    network = load_bitcoin_otc()
    ratings, times = network.adjacency.tocoo(), network.times
    first = times <= np.median(times)
    kept = (first if half == 1 else ~first) & (ratings.data > 0)
    source, target, rating = ratings.row[kept], ratings.col[kept], ratings.data[kept].astype(float)
    parts = np.array_split(np.argsort(times[kept], kind="stable"), slices)
    return [csr_array((rating[p], (source[p], target[p])), shape=ratings.shape) for p in parts]


def _ranks(layers: Layers, half_lives: tuple[float, ...]) -> Iterator[tuple[str, np.ndarray]]:
    yield LAST, PageRank().fit(layers.graphs[-1]).scores_
    yield UNION, ConsensusRank().fit(layers).scores_
    for half_life in half_lives:
        yield RECENT.format(half_life), ConsensusRank(half_life=half_life).fit(layers).scores_
    for method in ("mean", "median", "corroborate"):
        yield method, ConsensusRank(method, tol=1e-5).fit(layers).scores_


def _foretold(scores: np.ndarray, received: np.ndarray, seen: np.ndarray) -> tuple[float, float, float]:
    first = np.argsort(-scores, kind="stable")[:TOP]
    order = float(spearmanr(scores[seen], received[seen]).statistic)
    return common_top(scores, received, TOP), float(received[first].sum() / received.sum()), order


def _better(values: dict[str, np.ndarray], method: str, other: str) -> Verdict:
    gaps = values[method][:, 0] - values[other][:, 0]
    return mean_verdict(f"{method} is better than {other}", gaps, f"{MEASURES[0]}: {{}}", judge=question)
