"""Adapt the Markdown pages of the repository to the site.

Examples with prompts stand in the pages as plain paragraphs, which the tests run; here they become code. Links to the
files of examples become links to their pages in the gallery, and links to the README go to the front page.
The comment ``<!-- index: TERM -->`` becomes a main entry of the index, which the search ranks first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import relpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FENCE = re.compile(r"\s*(```|~~~|:::)")
EXAMPLE = re.compile(r"\]\((?:\.\./)+examples/(\w+)/(\w+)\.py\)")
GALLERY = re.compile(r"\]\((?:\.\./)+examples/?\)")
INDEX = re.compile(r"^<!-- index: (.*) -->$", flags=re.M)
README = re.compile(r"\]\((?:\.\./)+README\.md(#[\w-]+)?\)")


def fence_examples(lines: list[str]) -> Iterator[str]:
    """Put paragraphs that begin with a prompt into code blocks."""
    fenced = prompt = False
    indent = ""
    for line in lines:
        if FENCE.match(line) and not prompt:
            fenced = not fenced
        elif not fenced and not prompt and line.lstrip().startswith(">>> "):
            prompt, indent = True, line[: len(line) - len(line.lstrip())]
            yield f"{indent}```pycon"
        elif prompt and not line.strip():
            prompt = False
            yield f"{indent}```"
        yield line
    if prompt:
        yield f"{indent}```"


def link_to_gallery(text: str, docname: str) -> str:
    """Point links that leave ``docs/`` to pages of the site."""
    here = docname.rpartition("/")[0] or "."
    text = EXAMPLE.sub(lambda m: f"]({relpath(f'auto_examples/{m[1]}/{m[2]}.rst', here)})", text)
    text = GALLERY.sub(f"]({relpath('auto_examples/index.rst', here)})", text)
    text = INDEX.sub(r"```{index} ! \1\n```", text)
    return README.sub(f"]({relpath('index.md', here)})", text)


def prepare(app: Sphinx, docname: str, source: list[str]) -> None:
    """Change the source of a Markdown page before it is parsed."""
    if str(app.env.doc2path(docname)).endswith(".md"):
        source[0] = link_to_gallery("\n".join(fence_examples(source[0].split("\n"))), docname)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the event after a page is read."""
    app.connect("source-read", prepare)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
