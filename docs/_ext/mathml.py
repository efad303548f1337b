"""Formulas as MathML, which browsers render without scripts or external fonts.

``$x$`` in Markdown, ``:math:`` and ``.. math::`` in docstrings; the LaTeX is converted while building.
"""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

log = logging.getLogger(__name__)


def markup(latex: str, *, block: bool, location: Any = None) -> str:
    """Convert a formula to MathML; if that fails, warn and show its LaTeX."""
    try:
        return convert(latex.strip(), display="block" if block else "inline")
    except Exception as error:
        log.warning("cannot convert the formula %r: %s", latex, error, location=location)
        return f"<code>{escape(latex)}</code>"


def visit_inline(self: Any, node: nodes.math) -> None:
    """Write an inline formula."""
    self.body.append(markup(node.astext(), block=False, location=node))
    raise nodes.SkipNode


def visit_block(self: Any, node: nodes.math_block) -> None:
    """Write a displayed formula, with its number and anchor if it has them."""
    ids = f' id="{node["ids"][0]}"' if node["ids"] else ""
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    self.body.append(
        f'<div class="math"{ids}>{markup(node.astext(), block=True, location=node)}{number}</div>\n'
    )
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer ``mathml``."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
