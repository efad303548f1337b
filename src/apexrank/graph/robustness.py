"""Robustness study of graph ranks: how far link spam lifts pages, for several ranks and kinds of attack."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from apexrank.datasets.attacks import FARM_PAGES, KINDS, attack, draw_pages, linked_pages
from apexrank.errors import InputError, unknown
from apexrank.graph.base import GraphRank, IteratedRank, plain_graph
from apexrank.graph.graph import Graph
from apexrank.graph.lpq import LpqRank
from apexrank.graph.neighbourhood import on_closed_cycle
from apexrank.graph.nonbacktracking import NonBacktrackingRank
from apexrank.graph.pagerank import GuardedPageRank, InDegree, PageRank
from apexrank.graph.reading import as_graph
from apexrank.metrics.permutation import spearman_footrule
from apexrank.metrics.precision import spam_mass, spam_met
from apexrank.validation import check_count

if TYPE_CHECKING:
    import polars as pl

BASELINE = "PageRank"
SMALLER = {"farm": ("farm:20", "farm:1"), "hijacked": ("hijacked:1",)}  # attacks with fewer pages
ATTACKS = tuple(name for kind in KINDS for name in (kind, *SMALLER.get(kind, ())))
MOST_TARGETS, TARGET_SHARE = (
    50,
    20,
)  # default number of targets, and smallest number of linked pages per target
SPAM_SHARE = 20  # a round adds at most one page per this many pages of the graph, or those of one target
LEAST_SPEARMAN, LEAST_OVERLAP = 0.97, 0.85  # thresholds from which a rank agrees with PageRank
# a rank holds if targets are FAR times below their PageRank place, or within NEAR times their place before
FAR, NEAR = 10, 2


def default_ranks() -> dict[str, GraphRank]:
    """Return the ranks that need no labels, by name."""
    return {
        "InDegree": InDegree(),
        BASELINE: PageRank(tol=1e-7),
        "L_2,2.4": LpqRank(2, tol=1e-7),
        "non-backtracking": NonBacktrackingRank(tol=1e-7),
        "guarded": GuardedPageRank(tol=1e-7),
    }


@dataclass(frozen=True)
class AttackResult:
    """Result of one attack on one rank.

    ``before`` and ``after`` are median places of the targets among the vertices that existed before the attack; ties
    have the mean of their places. ``factor`` is ``after`` divided by that of PageRank. ``holds`` tells whether the
    targets are at least 10 times further down than with PageRank, or within a factor 2 of their place before.
    ``pages``, ``links`` and ``hijacked`` are costs per target, ``gain_per_page`` the places gained per page, new or
    hijacked. ``spam_share`` is the share of the score held by the attacker's vertices, targets included, ``spam_100``
    and ``spam_1000`` their numbers among the top 100 and 1,000 of all vertices.
    """

    attack: str
    rank: str
    before: float
    after: float
    factor: float
    holds: bool
    gain_per_page: float
    spam_share: float
    spam_100: float
    spam_1000: float
    pages: float
    links: float
    hijacked: float


@dataclass(frozen=True)
class RankAgreement:
    """Agreement of a rank with PageRank before any attack: Spearman's ρ, vertices in common, footrule from 0 to 1.

    ``closed_100`` is the number of vertices on closed cycles, where rank returns undivided, among the top 100.
    ``agrees`` tells whether Spearman's ρ is at least 0.97 and at least 85 % of PageRank's top 100 are in common.
    """

    rank: str
    spearman: float
    overlap_100: int
    overlap_1000: int
    footrule: float
    closed_100: int
    agrees: bool


@dataclass(frozen=True, eq=False)
class AttackStudy:
    """Results of `attack_ranks`.

    Attributes
    ----------
    results : list of AttackResult
        One for each attack and rank.
    agreement : list of RankAgreement
        One for each rank.
    vertices, edges, n_targets : int
    notes : list of str
        Attacks and ranks that were skipped.
    seconds : dict of str to float
    """

    results: list[AttackResult]
    agreement: list[RankAgreement]
    vertices: int
    edges: int
    n_targets: int
    notes: list[str]
    seconds: dict[str, float]
    title: str = "Ranks under attack"

    @property
    def attacks(self) -> list[str]:
        """Names of the attacks, in order."""
        return list(dict.fromkeys(each.attack for each in self.results))

    def of_rank(self, rank: str) -> list[AttackResult]:
        """Results of one rank."""
        return [each for each in self.results if each.rank == rank]

    @property
    def harmless(self) -> list[str]:
        """Attacks that do not lift the targets with PageRank, so that there is no gain to prevent."""
        return [each.attack for each in self.of_rank(BASELINE) if each.after >= each.before]

    def outcome(self, result: AttackResult) -> str:
        """Return the outcome of an attack: "holds", "fails" or "no gain to prevent"."""
        if not result.holds:
            return "fails"
        return "no gain to prevent" if result.attack in self.harmless else "holds"

    def held(self, rank: str) -> int:
        """Number of attacks in which a rank holds, not counting those without a gain to prevent."""
        return sum(self.outcome(each) == "holds" for each in self.of_rank(rank))

    def lost(self, rank: str) -> list[AttackResult]:
        """Attacks in which a rank fails."""
        return [each for each in self.of_rank(rank) if not each.holds]

    def _holds(self, rank: str) -> str:
        held = self.held(rank)
        return f"{rank} holds in {held} of {held + len(self.lost(rank))} attacks"

    @property
    def best(self) -> str:
        """Name of the rank that fails in the fewest attacks, among those that agree with PageRank."""
        agreeing = [each for each in self.agreement if each.agrees]
        return min(agreeing, key=lambda each: (len(self.lost(each.rank)), -each.spearman)).rank

    @property
    def verdict(self) -> str:
        """Summary of the study in one sentence."""
        if len(self.harmless) == len(self.attacks):
            return "No gain to prevent: the targets rise in no attack with PageRank."
        text = f"{self._holds(self.best)}; no other rank with about the same order as PageRank holds in more."
        if self.harmless:
            text += (
                f" Not counted, because the targets do not rise with PageRank: {', '.join(self.harmless)}."
            )
        return text

    @property
    def verdicts(self) -> dict[str, str]:
        """Summary of each rank in one or two sentences."""
        return {row.rank: self._sentence(row) for row in self.agreement}

    def _sentence(self, row: RankAgreement) -> str:
        text = self._holds(row.rank)
        lost = self.lost(row.rank)
        if lost:
            cheapest = min(lost, key=lambda each: (each.pages + each.hijacked, each.after))
            used = {"new": cheapest.pages, "hijacked": cheapest.hijacked}
            cost = " and ".join(f"{number:g} {what}" for what, number in used.items() if number)
            lift = "page lifts" if cheapest.pages + cheapest.hijacked == 1 else "pages lift"
            text += (
                f"; of those in which it fails the cheapest is {cheapest.attack}: {cost} {lift} a target from "
                f"{cheapest.before:,.0f} to {cheapest.after:,.0f}"
            )
        if row.rank == BASELINE:
            return f"{text}."
        top = min(100, self.vertices)
        text += f". Before any attack it shares {row.overlap_100} of the first {top} with PageRank"
        closed = f"; {row.closed_100} of its own are on closed cycles" if row.closed_100 else ""
        return f"{text} (Spearman {row.spearman:.3f}){closed}."

    def table(self) -> pl.DataFrame:
        """Return the results as a polars frame, one row for each attack and rank."""
        return _frame(self.results)

    def agreement_table(self) -> pl.DataFrame:
        """Return the agreement with PageRank as a polars frame, one row for each rank."""
        return _frame(self.agreement)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as a dict of plain values."""
        return asdict(self) | {"best": self.best, "verdict": self.verdict, "verdicts": self.verdicts}


def _frame(rows: Sequence[Any]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame({field.name: [getattr(row, field.name) for row in rows] for field in fields(rows[0])})


def attack_ranks(
    graph: Any,
    ranks: Mapping[str, GraphRank] | None = None,
    *,
    attacks: Sequence[str] = ATTACKS,
    n_targets: int | None = None,
    pages: int = FARM_PAGES,
    random_state: int | None = 0,
    progress: Callable[[str], None] | None = None,
) -> AttackStudy:
    """Attack random pages of a graph and measure how far they rise in each rank.

    Each attack is an `apexrank.datasets.attack` on the same targets: on all of them at once, or in rounds if the new
    pages would be more than a twentieth of the graph. The original graph is ranked once; ranks of attacked graphs start
    from its scores.

    Parameters
    ----------
    graph : anything :func:`apexrank.graph.as_graph` reads
        Graph before any attack.
    ranks : mapping of names to unfitted ranks, optional
        Default: those that need no labels. "PageRank", the baseline, is always included.
    attacks : sequence of str
        Kinds of `apexrank.datasets.attack`, each with an optional size, such as "farm:20" or "hijacked:100": the number
        of new or hijacked pages per target. Attacks that are too large for the graph are skipped, with a note.
    n_targets : int, optional
        Number of targets; default: 50, in small graphs a twentieth of the pages with in-links.
    pages : int, default=200
        New pages per target, for attacks given without a size that add 200 pages by default.
    random_state : int or None, default=0
        Seed for drawing targets and hijacked pages.
    progress : callable, optional
        Called with a line for each result.

    Returns
    -------
    AttackStudy

    Examples
    --------
    >>> from apexrank.datasets import make_crawl
    >>> from apexrank.graph import attack_ranks
    >>> web = make_crawl(2000, random_state=0).adjacency
    >>> study = attack_ranks(web, attacks=["farm", "cycle-2"], n_targets=10)
    >>> [(each.attack, each.holds) for each in study.of_rank("PageRank")]
    [('farm', False), ('cycle-2', False)]
    """
    began = time.perf_counter()
    sizes = {name: attack_options(name, pages) for name in attacks}
    seed = random_state
    if seed is None:
        seed = int(check_random_state(None).randint(2**31 - 2**20))
    if not sizes:
        raise InputError("`attacks` needs at least one kind, such as farm")
    read = plain_graph(graph)
    adjacency = read.to_scipy()
    linked = len(linked_pages(adjacency))
    if n_targets is None:
        n_targets = max(1, min(MOST_TARGETS, linked // TARGET_SHARE))
    check_count("n_targets", n_targets)
    if n_targets > linked:
        raise InputError(f"only {linked} vertices have in-links: lower `n_targets`, or give more links")
    targets = draw_pages(linked_pages(adjacency), n_targets, check_random_state(seed), "lower `n_targets`")
    notes: list[str] = []
    estimators = {BASELINE: PageRank(tol=1e-7)} | dict(default_ranks() if ranks is None else ranks)
    tell = progress or (lambda line: None)
    clean = {name: _fit(rank, read, name, notes) for name, rank in estimators.items()}
    places = {name: rankdata(-scores) for name, scores in clean.items()}
    closed = on_closed_cycle(read)
    agreement = [_agreement(name, closed, clean, places) for name in clean]
    results: list[AttackResult] = []
    too_large: list[str] = []
    for name, options in sizes.items():
        kind = KINDS[options["kind"]]
        if n_targets < kind.targets:
            notes.append(f"{name} is left out: it needs two targets, and there is only one (`n_targets`).")
            continue
        each = options.get("pages", kind.pages) if kind.size == "pages" else 2  # cycles and hijacked pages
        together = max(1, read.n // (SPAM_SHARE * each))
        n_rounds = min(-(-n_targets // together), max(1, n_targets // kind.targets))
        rounds = np.array_split(targets, n_rounds)
        trials: dict[str, list[_Trial]] = {rank: [] for rank in estimators}
        try:
            for number, part in enumerate(rounds):
                which = {"n_targets": n_targets} if n_rounds == 1 else {"targets": part}
                spammed = attack(adjacency, random_state=seed + number, **which, **options)
                now = as_graph(spammed.adjacency)
                for rank, estimator in estimators.items():
                    scores = _fit(estimator, now, f"{rank} ({name})", notes, clean[rank])
                    trials[rank].append(_Trial.of(spammed, scores, places[rank]))
        except InputError as error:
            notes.append(f"{name} is left out: {error}.")
            continue
        if each > read.n:
            too_large.append(name)
        baseline = None
        for rank, several in trials.items():  # PageRank comes first
            results.append(_measure(name, rank, several, baseline))
            baseline = results[-1].after if baseline is None else baseline
            tell(f"{name}, {rank}: place {results[-1].before:,.0f} to {results[-1].after:,.0f}")
    if too_large:
        notes.append(
            f"The graph is too small for {', '.join(too_large)}: for each target more pages are added than it has "
            f"vertices ({read.n}), and the places say little. Use fewer pages (`pages`)."
        )
    if not results:
        raise InputError(f"no attack can be made: {notes[-1]}")
    total = time.perf_counter() - began
    return AttackStudy(results, agreement, read.n, read.n_edges, n_targets, notes, {"total": total})


def attack_options(name: str, pages: int) -> dict[str, Any]:
    """Parse the name of an attack into its options."""
    kind, colon, size = name.partition(":")
    if kind not in KINDS:
        raise unknown("attack", kind, KINDS, "some of")
    known = KINDS[kind]
    if not colon:
        is_farm = known.size == "pages" and known.pages == FARM_PAGES
        return {"kind": kind, **({"pages": pages} if is_farm else {})}
    if known.size is None:
        raise InputError(f"the number of pages of {kind} is fixed: write {kind}")
    if not (size.isdecimal() and int(size)):
        raise InputError(f"attack {name!r} must end in a number of pages, such as {kind}:20")
    return {"kind": kind, known.size: int(size)}


def _fit(
    rank: GraphRank, graph: Graph, name: str, notes: list[str], start: np.ndarray | None = None
) -> np.ndarray:
    """Fit a copy of a rank, starting from the scores of the old vertices if possible, and return its scores."""
    options = {}
    if start is not None and isinstance(rank, IteratedRank):
        options["start"] = np.pad(start, (0, graph.n - len(start)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # reported by a note
        fitted = clone(rank).fit(graph, **options)
    if not getattr(fitted, "converged_", True):
        notes.append(f"{name} has not converged after {fitted.n_iter_} steps.")
    return fitted.scores_


def _agreement(
    name: str, closed: np.ndarray, scores: Mapping[str, np.ndarray], places: Mapping[str, np.ndarray]
) -> RankAgreement:
    own, base = places[name], places[BASELINE]
    first, base_first = (np.argsort(-scores[rank], kind="stable") for rank in (name, BASELINE))
    common = [len(np.intersect1d(first[:k], base_first[:k])) for k in (100, 1000)]
    x, y = own - own.mean(), base - base.mean()
    norm = np.sqrt((x @ x) * (y @ y))
    spearman = float(x @ y / norm) if norm else float(name == BASELINE)
    return RankAgreement(
        rank=name,
        spearman=spearman,
        overlap_100=common[0],
        overlap_1000=common[1],
        footrule=float(spearman_footrule(rankings=(own, base), normalize=True)),
        closed_100=int(closed[first[:100]].sum()),
        agrees=spearman >= LEAST_SPEARMAN and common[0] >= LEAST_OVERLAP * min(100, len(own)),
    )


class _Trial(NamedTuple):
    """Places of the targets before and after an attack, costs per target, and the spam share of the scores."""

    before: np.ndarray
    after: np.ndarray
    cost: dict[str, float]
    spam: dict[str, float]

    @classmethod
    def of(cls, spammed: Any, scores: np.ndarray, places: np.ndarray) -> _Trial:
        targets, n = spammed.target_vertices, len(scores)
        now = rankdata(-scores[: len(places)])
        spam = {"spam_share": spam_mass(spammed.spam, scores)}
        spam |= {f"spam_{k}": float(spam_met(spammed.spam, scores, min(k, n))) for k in (100, 1000)}
        cost = {what: count / len(targets) for what, count in spammed.cost.items()}
        return cls(places[targets], now[targets], cost, spam)


def _measure(name: str, rank: str, trials: list[_Trial], baseline: float | None) -> AttackResult:
    """Summarise an attack on a rank; ``baseline`` is the targets' place with PageRank, by default that of this rank."""
    was, now = (float(np.median(np.concatenate(each))) for each in zip(*(t[:2] for t in trials), strict=True))
    baseline = now if baseline is None else baseline
    cost = trials[0].cost
    return AttackResult(
        attack=name,
        rank=rank,
        before=was,
        after=now,
        factor=now / baseline,
        holds=now >= FAR * baseline or NEAR * now >= was,
        gain_per_page=(was - now) / (cost["pages"] + cost["hijacked"]),
        **{what: float(np.mean([trial.spam[what] for trial in trials])) for what in trials[0].spam},
        **cost,
    )
