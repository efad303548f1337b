"""What ``apexrank cluster --elbow`` shows: how well several numbers of clusters fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from apexrank.cli.output import is_terminal, print_frame, print_json, print_table
from apexrank.cli.profile import Profile

if TYPE_CHECKING:
    import numpy as np

    from apexrank.aggregation.kmeans import LovaszBregmanKMeans


def show_elbow(
    profile: Profile,
    models: list[LovaszBregmanKMeans],
    scores: np.ndarray,
    report: dict[str, Any],
    output: Path | None,
    json: bool,
) -> None:
    """Write or print the objective and the silhouette for each number of clusters."""
    import polars as pl

    rows = [
        {
            "clusters": model.n_clusters,
            "inertia": model.inertia_,
            "silhouette": silhouette_of(profile, model, scores),
        }
        for model in models
    ]
    frame = pl.DataFrame(rows)
    if output is not None:
        from apexrank.io import write_table

        write_table(frame, output)
    if json:
        print_json(report | {"elbow": rows, "files": [str(output)] if output else []})
        return
    if output is None:
        print_frame(frame)
        if not is_terminal():
            profile.tell_gaps(report["missing"]["rule"])
            return
    else:
        print_table(frame.columns, frame.rows())
    typer.echo(
        f"{profile.sentence(report['missing']['rule'])}; inertia: look where it stops falling fast; "
        "silhouette: near 1 clusters are far apart, near 0 they touch"
    )
    if output is not None:
        typer.echo(f"written: {output}")


def silhouette_of(profile: Profile, model: LovaszBregmanKMeans, scores: np.ndarray) -> float | None:
    """Mean silhouette of the voters, which one cluster has not."""
    from apexrank.aggregation.kmeans import silhouette

    return None if model.n_clusters < 2 else silhouette(model, scores, profile.weights)
