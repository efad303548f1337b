"""``apexrank graph compare`` and ``graph attack``: gains from link farms, and from fake links to a page."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import apexrank
from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import unknown

if TYPE_CHECKING:
    from apexrank.graph import Graph, GraphRank
    from apexrank.report import RankComparison

_ROWS_SHOWN = 10
_WIDTH = 9  # marks of a place in the table
_MARKS = {"holds": " ", "fails": "*", "no gain to prevent": "-"}
_SHOWN = {
    "vertex": "vertex",
    "pagerank_rank": "in PageRank",
    "rank": "now",
    "reason": "flagged by",
    "suspicion": "suspicion",
    "excess": "excess",
    "in_links": "in-links",
    "unsupported": "unsupported",
    "unsupported_share": "of the flow",
    "linked_back": "linked back",
}


@dataclass(frozen=True)
class CompareOptions:
    """Parameters of `apexrank.report.compare_ranks`."""

    ranks: list[str] | None = opt.method(
        "Ranks to compare PageRank with: methods of graph rank that need no labels (default: guarded,nonbacktracking; "
        "with --trusted also trustrank)."
    )
    p: str | None = opt.method("Powers of L_pq ranks to compare as well, up to inf, such as 2,8.")
    ratio: float = opt.method("q/p of the L_pq ranks; above 1 further links add less.", default=1.2)
    damping: float = opt.method("Probability of following a link instead of restarting.", default=0.85)
    tol: float = opt.method("Largest error of the scores, in L1 norm.", default=1e-7)
    max_iter: int = opt.method("Maximum number of steps.", default=1000)
    top: int = opt.method("Length of the lists shown.", metavar="N", min=1, default=30)
    suspects: int = opt.method("Maximum number of suspects to list.", metavar="N", min=1, default=30)


@dataclass(frozen=True)
class LabelFiles:
    """Vertices known to be spam, or trusted."""

    spam: Path | None = opt.label(
        "File of vertices known to be spam, one per line, or CSV with the column vertex. They are used to measure "
        "only; no rank depends on them. Vertices that are not in the graph are skipped."
    )
    trusted: Path | None = opt.label(
        "File of trusted vertices, in the same form, for ranks that use trust. They are never suspects."
    )


@opt.option_groups
def graph_compare(
    edges: opt.EdgePath,
    *,
    shown: opt.GraphStudyOutputs,
    options: CompareOptions,
    labels: LabelFiles,
    reading: opt.EdgeOptions,
    json: opt.Json = False,
) -> None:
    """Compare PageRank with ranks that resist link farms, and list likely targets of farms."""
    shown.check(edges, labels.spam, labels.trusted)

    parameters = asdict(options)
    parameters["ranks"] = _ranks(options, labels.trusted is not None)
    del parameters["p"], parameters["ratio"]
    began = time.perf_counter()
    graph = reading.read(edges)
    if labels.spam is not None:
        parameters["spam"] = _spam_labels(labels.spam, graph)
    if labels.trusted is not None:
        parameters["trusted"] = opt.read_seeds(labels.trusted, graph, "trusted")
    read = time.perf_counter() - began
    with out.working(f"comparing ranks of {graph.n} vertices") as status:
        tell = None if status is None else status.update
        found = apexrank.report.compare_ranks(graph, progress=tell, **parameters)
        found.seconds.update(reading=read, total=time.perf_counter() - began)
        found.notes[:] = map(out.in_options, found.notes)
        if shown.report is not None:
            apexrank.report.build(found, shown.report, title=shown.title or f"Link farms? {edges.name}")
    found.seconds["total"] = time.perf_counter() - began
    out.write_frame(found.table(), shown.output)
    if json:
        written = {"report": shown.report, "output": shown.output}
        out.print_json({"edges_file": edges} | found.to_dict() | written)
    else:
        _print(found, edges, shown)


def _ranks(options: CompareOptions, trusting: bool) -> dict[str, GraphRank] | None:
    """The ranks by name; None stands for the default of the library."""
    from apexrank.cli.graph import METHODS, build_method

    given = {name: getattr(options, name) for name in ("damping", "tol", "max_iter")}
    build_method("lpq", set(), ratio=options.ratio, **given)  # checks them
    if options.ranks is None and options.p is None:
        return None
    found: dict[str, GraphRank] = {}
    labels = {"trusted"} if trusting else set()
    known = [name for name, method in METHODS.items() if labels >= {*method.needs} and name != "pagerank"]
    for name in opt.split_names(options.ranks):
        if name not in known:
            raise unknown("--ranks", name, known, "some of")
        rank = build_method(name, labels & {*METHODS[name].needs})
        taken = rank.get_params()
        found[METHODS[name].estimator] = rank.set_params(**{key: given[key] for key in given if key in taken})
    for p in opt.split_powers(options.p, "2,8") if options.p else []:
        found[f"L_pq, p = {p:g}"] = build_method("lpq", set(), p=p, ratio=options.ratio, **given)
    return found


def _spam_labels(path: Path, graph: Graph) -> dict[Any, float]:
    """Read the weights of all vertices in a file, since the report counts those that are not in the graph."""
    from apexrank.graph.vertex_files import named_vertex, read_seeds, seed_weights

    seed_weights(path, graph, "spam")  # an error if the graph lacks all of them
    return {named_vertex(graph, name): weight for _, name, weight in read_seeds(path)}


def _print(found: RankComparison, edges: Path, shown: opt.GraphStudyOutputs) -> None:
    from apexrank.report.page import counted

    other = found.names[1]
    vertices, links = counted(found.graph.n, "vertex", "vertices"), counted(found.graph.n_edges, "link")
    typer.echo(f"{edges}: {vertices}, {links}; PageRank against {other}")
    table = found.table()
    if table.height:
        out.print_table(list(_SHOWN.values()), table.head(_ROWS_SHOWN).select(list(_SHOWN)).rows())
        listed, of = min(_ROWS_SHOWN, table.height), len(found.flagged)
        typer.echo(
            f"{listed:,} of {counted(of, 'suspect')}, the most suspicious first; now: by {other}; excess: PageRank "
            "over what many independent links allow; unsupported: in-links from vertices that nobody else links to"
        )
    if found.measures:
        base, now = (found.measures[i]["spam_mass"] for i in (0, 1))
        typer.echo(f"spam holds {base:.1%} of PageRank's score, {now:.1%} of that of {other}")
    out.note(*found.notes)
    typer.echo(out.in_options(found.verdict.text))
    seconds = found.seconds
    read, ranked, total = (f"{seconds[stage]:.1f} s" for stage in ("reading", "ranking", "total"))
    typer.echo(f"read in {read}, ranked in {ranked}, {total} in all")
    suspects = f"{counted(table.height, 'suspect')}, the most suspicious first"
    out.print_written(shown.output, f", {suspects}")
    if shown.report is not None:
        out.print_written(shown.report, f" ({out.size(shown.report.stat().st_size)})")


@dataclass(frozen=True)
class AttackOptions:
    """Parameters of `apexrank.graph.attack_ranks`."""

    attacks: list[str] | None = opt.method(
        "Attacks, such as farm,farm:20,cycle-2; the number is that of pages made or hijacked per target. Default: all "
        "kinds, farm, linked-back, site, shared, funnel, deep-funnel, whirl, triangles, cycle-2, cycle-3, chain, "
        "clique, hijacked, hijacked-farm, exchange, expired."
    )
    targets: int | None = opt.method(
        "Number of random pages to attack (default: 50, fewer in a small graph).", metavar="N", min=1
    )
    pages: int = opt.method("Pages of a farm whose size is not given.", metavar="N", min=1, default=200)
    seed: int = opt.method("Random seed for targets and hijacked pages.", min=0, default=0)


@opt.option_groups
def attack(
    edges: opt.EdgePath,
    *,
    shown: opt.GraphStudyOutputs,
    options: AttackOptions,
    reading: opt.EdgeOptions,
    json: opt.Json = False,
) -> None:
    """Simulate link spam attacks: which ranks resist them, and at what cost to the attacker."""
    shown.check(edges)
    from apexrank.graph.robustness import ATTACKS, attack_options

    attacks = opt.split_names(options.attacks) or ATTACKS
    for name in attacks:
        attack_options(name, options.pages)
    graph = reading.read(edges)
    with out.working(f"attacking {graph.n} vertices") as status:
        study = apexrank.graph.attack_ranks(
            graph,
            attacks=attacks,
            n_targets=options.targets,
            pages=options.pages,
            random_state=options.seed,
            progress=None if status is None else status.update,
        )
        if shown.report is not None:
            apexrank.report.build(study, shown.report, title=shown.title or f"Under attack: {edges.name}")
    out.write_frame(study.table(), shown.output)
    if json:
        written = {"report": shown.report, "output": shown.output}
        out.print_json({"edges_file": edges} | study.to_dict() | written)
        return
    size = f"{out.plural(study.vertices, 'vertex', 'vertices')}, {out.plural(study.edges, 'link')}"
    typer.echo(f"{edges}: {size}; median places of {out.plural(study.n_targets, 'target')}")
    names = [row.rank for row in study.agreement]
    befores = [f"{study.of_rank(name)[0].before:,.0f} ".rjust(_WIDTH) for name in names]
    rows = [["none", 0, 0, *befores]]
    for name in study.attacks:
        found = [each for each in study.results if each.attack == name]
        places = [f"{each.after:,.0f}{_MARKS[study.outcome(each)]}".rjust(_WIDTH) for each in found]
        rows.append([name, found[0].pages, found[0].hijacked, *places])
    out.print_table(["attack", "pages", "hijacked", *names], rows)
    typer.echo(
        "* the rank fails: its targets are less than 10 times further down than with PageRank, and not within a factor "
        "of 2 of their place before the attack; - no gain to prevent"
    )
    out.note(*study.notes)
    for sentence in (*study.verdicts.values(), study.verdict):
        typer.echo(sentence)
    out.print_written(shown.output)
    out.print_written(shown.report)
