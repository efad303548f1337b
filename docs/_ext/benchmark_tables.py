"""Tables of benchmarks from ``docs/_data/benchmarks.json``, which ``python benchmarks/run.py --docs`` writes.

A page asks for one by ``{benchmark} NAME``, and for the summary of all by ``{benchmark-summary}``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.run import summary_lines, table_lines

DATA = Path(__file__).parent.parent / "_data" / "benchmarks.json"


def setup(app: Any) -> dict[str, bool]:
    """Register the directives ``benchmark`` and ``benchmark-summary``."""
    from docutils import nodes
    from docutils.statemachine import StringList
    from sphinx.util.docutils import SphinxDirective

    class Benchmark(SphinxDirective):
        """The table of one benchmark, or the summary of all."""

        optional_arguments = 1

        def run(self) -> list[nodes.Node]:
            self.env.note_dependency(str(DATA))
            found = json.loads(DATA.read_text(encoding="utf-8"))["benchmarks"]
            lines = table_lines(found[self.arguments[0]]) if self.arguments else summary_lines(found)
            box = nodes.container(classes=["benchmark"])
            self.state.nested_parse(StringList(lines, source=str(DATA)), self.content_offset, box)
            return [box]

    app.add_directive("benchmark", Benchmark)
    app.add_directive("benchmark-summary", Benchmark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
