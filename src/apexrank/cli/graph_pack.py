"""``apexrank graph pack``: turn edge files of any size into a graph in shards."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import InputError

_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


@opt.option_groups
def pack(
    edges: Annotated[
        list[Path],
        opt.argument(
            "Files of edges: CSV, TSV or a plain list, JSON lines (also .gz), Parquet; folders or quoted patterns of "
            "such files; - for standard input."
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder to write, such as edges.shards.", show_default=False),
    ],
    memory: Annotated[
        str,
        typer.Option(
            help="Memory for edges and names, such as 500MB; about 40 bytes a vertex come on top.",
            metavar="SIZE",
        ),
    ] = "2GB",
    reading: opt.EdgeOptions,
    json: opt.Json = False,
) -> None:
    """Turn edge files of any size into shards on disk, with bounded memory.

    Links are sorted by target, and ids of vertices, numbers or text, are replaced by numbers:

        apexrank graph pack 'crawl/*.csv.gz' -o crawl.shards --memory 4GB
    """
    out.check_inputs(*edges)
    size = parse_size(memory)
    from apexrank.graph.pack import pack_graph

    watch = out.Stopwatch()
    with out.working(f"packing {edges[0]}") as status:
        tell = None if status is None else status.update
        graph = pack_graph(edges, output, **reading.rules(), memory=size, progress=tell)
    watch.end("packing")
    size_on_disk = sum(path.stat().st_size for path in output.iterdir())
    if json:
        sizes = {"vertices": graph.n, "edges": graph.n_edges, "weighted": graph.weighted}
        shards = {"shards": len(graph.shards), "bytes": size_on_disk}
        out.print_json({"output": output, **sizes, **shards, "seconds": watch})
        return
    counts = f"{out.plural(graph.n, 'vertex', 'vertices')}, {out.plural(graph.n_edges, 'edge')}"
    shards_found = f"{out.plural(len(graph.shards), 'shard')} of {out.size(size_on_disk)} in all"
    typer.echo(f"{output}: {counts}, {'un' * (not graph.weighted)}weighted, in {shards_found}; {watch}")


def parse_size(text: str) -> float:
    """Parse a size with its unit.

    Examples
    --------
    >>> parse_size("2GB"), parse_size("1.5 mb")
    (2000000000.0, 1500000.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt])i?b?", text.strip().lower())
    if found is None or not float(found[1]):  # 10 may be meant as gigabytes, and would fill the disk as bytes
        raise InputError(f"--memory is a number with a unit, such as 500MB or 2GB, got {text!r}")
    return float(found[1]) * _UNITS[found[2]]
