"""``apexrank graph attack``: attack a graph with link spam, and see which rank resists."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from apexrank.cli import options as opt
from apexrank.cli import output as out

_WIDTH = 9  # of a place in the table
_MARKS = {"holds": " ", "fails": "*", "no gain to prevent": "-"}


@dataclass(frozen=True)
class AttackOptions:
    """Parameters of `apexrank.graph.attack_ranks`."""

    attacks: list[str] | None = opt.method(
        "Attacks, such as farm,farm:20,cycle-2; a number is the pages made or hijacked for each target. By default "
        "all kinds: farm, linked-back, site, shared, funnel, deep-funnel, whirl, triangles, cycle-2, cycle-3, chain, "
        "clique, hijacked, hijacked-farm, exchange, expired."
    )
    targets: int | None = opt.method(
        "Pages that are attacked, drawn at random; 50 by default, fewer in a small graph.", metavar="N", min=1
    )
    pages: int = opt.method("Pages of a farm where its size is not given.", metavar="N", min=1, default=200)
    seed: int = opt.method("Draws targets and hijacked pages.", default=0)


@opt.option_groups
def attack(
    edges: opt.EdgePath,
    *,
    shown: opt.GraphStudyOutputs,
    options: AttackOptions,
    reading: opt.EdgeOptions,
    json: opt.Json = False,
) -> None:
    """Attack a graph with link spam: which rank resists which attack, and what it costs the attacker."""
    shown.check(edges)
    from apexrank.graph.robustness import ATTACKS, attack_ranks
    from apexrank.report import build

    attacks = opt.split_names(options.attacks) or ATTACKS
    graph = reading.read(edges)
    with out.working(f"attacking {graph.n} vertices") as status:
        study = attack_ranks(
            graph,
            attacks=attacks,
            n_targets=options.targets,
            pages=options.pages,
            random_state=options.seed,
            progress=None if status is None else status.update,
        )
        if shown.report is not None:
            build(study, shown.report, title=shown.title or f"Under attack: {edges.name}")
    out.write_frame(study.table(), shown.output)
    if json:
        out.print_json(
            {"edges_file": edges} | study.to_dict() | {"report": shown.report, "output": shown.output}
        )
        return
    size = f"{out.plural(study.vertices, 'vertex', 'vertices')}, {out.plural(study.edges, 'link')}"
    typer.echo(
        f"{edges}: {size}; median places of {out.plural(study.n_targets, 'target')}, * where a rank fails, - where "
        "there is no gain to prevent"
    )
    names = [row.rank for row in study.agreement]
    befores = [f"{study.of_rank(name)[0].before:,.0f} ".rjust(_WIDTH) for name in names]
    rows = [["none", 0, 0, *befores]]
    for name in study.attacks:
        found = [each for each in study.results if each.attack == name]
        places = [f"{each.after:,.0f}{_MARKS[study.outcome(each)]}".rjust(_WIDTH) for each in found]
        rows.append([name, found[0].pages, found[0].hijacked, *places])
    out.print_table(["attack", "pages", "hijacked", *names], rows)
    for sentence in study.notes:
        out.note(out.in_options(sentence))
    for sentence in (*study.verdicts.values(), study.verdict):
        typer.echo(sentence)
    out.print_written(shown.output)
    out.print_written(shown.report)
