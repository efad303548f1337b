"""Tables of reproduced experiments, from ``docs/_data/reproduce.json``.

``{reproduced} PART`` inserts the ``summary``, the ``differing`` claims, all ``verdicts`` on claims of the papers, or
the answers to our own ``questions``. After ``apexrank reproduce all --out DIR``,
``python docs/_ext/reproduced.py DIR`` updates the data of the page.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import apexrank_papers as papers
from apexrank_papers import record
from apexrank_papers.result import FINDINGS
from apexrank_papers.summary import experiment_table, markdown_table, origin, totals

DATA = Path(__file__).parent.parent / "_data" / "reproduce.json"
KEPT = ("name", "title", "status", "why", "seconds", "date", "machine", "verdicts")
MARKUP = re.compile(r"([\\*_<>$\[\]])")


def take_over(folder: Path, data: Path = DATA) -> int:
    """Store the verdicts of a run without its tables; return the number of experiments."""
    found = json.loads((folder / "reproduce.json").read_text(encoding="utf-8"))
    entries = [{key: entry[key] for key in KEPT if key in entry} for entry in found["experiments"]]
    kept = {key: found[key] for key in ("date", "versions", "machine")} | {"experiments": entries}
    data.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return len(entries)


def plain(text: str) -> str:
    """Escape text so that it contains no markup."""
    return MARKUP.sub(r"\\\1", text)


def summary_lines(found: dict[str, Any]) -> list[str]:
    """Table of experiments, and a line about the machine they ran on."""
    entries = [entry | {"title": plain(entry["title"])} for entry in found["experiments"]]
    there = {entry["name"] for entry in entries}
    absent = [f"`{name}`" for name in papers.names() if name not in there]
    lines = [f"{totals(entries)}.", "", *experiment_table(entries), ""]
    lines += [f"Not run: {', '.join(absent)}.", ""] if absent else []
    return [*lines, f"*{plain(origin(found))}*", ""]


def differing_lines(found: dict[str, Any]) -> list[str]:
    """Table of the claims that differ, with the reason and the observation."""
    rows = []
    for entry in found["experiments"]:
        for verdict in entry["verdicts"]:
            if verdict["word"] == "differs":
                known = record.recorded()[entry["name"]][verdict["row"]]
                why = f"{plain(known.reason)} ([notes]({record.NOTES}#{known.anchor}))"
                rows.append((f"`{entry['name']}`", plain(verdict["row"]), why, plain(verdict["why"])))
    return markdown_table(("experiment", "claim", "why it differs", "what was seen"), rows)


def _table(found: dict[str, Any], header: tuple[str, str], paper: bool) -> list[str]:
    rows = [
        (f"`{entry['name']}`", plain(verdict["row"]), verdict["word"], plain(verdict["why"]))
        for entry in found["experiments"]
        for verdict in entry["verdicts"]
        if (verdict["word"] in FINDINGS.values()) == paper
    ]
    return markdown_table(("experiment", *header, "what was seen"), rows)


def verdict_lines(found: dict[str, Any]) -> list[str]:
    """Table of the verdicts on claims of the papers."""
    return _table(found, ("row or claim", "verdict"), paper=True)


def question_lines(found: dict[str, Any]) -> list[str]:
    """Table of our own questions and their answers."""
    return _table(found, ("question", "answer"), paper=False)


PARTS = {
    "summary": summary_lines,
    "differing": differing_lines,
    "verdicts": verdict_lines,
    "questions": question_lines,
}


def setup(app: Any) -> dict[str, bool]:
    """Register the directive ``reproduced``."""
    from docutils import nodes
    from docutils.statemachine import StringList
    from sphinx.util.docutils import SphinxDirective

    class Reproduced(SphinxDirective):
        """One part of the page."""

        required_arguments = 1

        def run(self) -> list[nodes.Node]:
            self.env.note_dependency(str(DATA))
            lines = PARTS[self.arguments[0]](json.loads(DATA.read_text(encoding="utf-8")))
            box = nodes.container(classes=["benchmark"])
            self.state.nested_parse(StringList(lines, source=str(DATA)), self.content_offset, box)
            return [box]

    app.add_directive("reproduced", Reproduced)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    print(f"taken over: {take_over(Path(sys.argv[1]))} experiments")
