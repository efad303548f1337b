"""Accessible names for the toggle buttons of the sidebar, which the theme leaves unnamed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

BUTTON = re.compile(r"(<a [^>]*>([^<]*)</a>\s*<details[^>]*>\s*<summary)>")


def labelled(html: str) -> str:
    """Label each toggle button with the title of its page."""
    return BUTTON.sub(r'\1 aria-label="Pages in \2">', html)


def label_sidebar(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Wrap the theme's function that writes the sidebar."""
    write = context["generate_toctree_html"]
    context["generate_toctree_html"] = lambda kind, **options: (
        labelled(str(write(kind, **options))) if kind == "sidebar" else write(kind, **options)
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to pages, after the theme."""
    app.connect("html-page-context", label_sidebar, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
