"""Title, description and picture of every page for search engines and link previews (Open Graph)."""

from __future__ import annotations

from html import escape
from textwrap import shorten
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from docutils import nodes
from markupsafe import Markup

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DEFAULT = "Ranking by convex optimisation that gets the top of the list right."
PICTURE = "_static/card.png"
ALT = "apexrank: frauds found among the first false alarms, more with a push than without"


def description(doctree: nodes.document | None) -> str:
    """First paragraph of a page outside admonitions, shortened for previews."""
    paragraphs = doctree.findall(nodes.paragraph) if doctree else ()
    texts = (p.astext() for p in paragraphs if not isinstance(p.parent, nodes.Admonition))
    return shorten(next(texts, DEFAULT), 200, placeholder=" …")


def describe(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Add the tags to the head of a page; URLs are absolute if ``html_baseurl`` is set."""
    text, site = description(doctree), app.config.html_baseurl
    tags = {
        "og:type": "website",
        "og:site_name": app.config.project,
        "og:title": Markup(context.get("title") or app.config.project).striptags(),
        "og:description": text,
        "og:image": urljoin(site, PICTURE) if site else context["pathto"](PICTURE, resource=True),
        "og:image:alt": ALT,
        "og:image:width": "1200",
        "og:image:height": "630",
    }
    if site:
        tags["og:url"] = urljoin(site, app.builder.get_target_uri(pagename))
    lines = [f'<meta property="{name}" content="{escape(value)}" />' for name, value in tags.items()]
    lines += [f'<meta name="description" content="{escape(text)}" />']
    lines += ['<meta name="twitter:card" content="summary_large_image" />']
    context["metatags"] = "\n".join([context.get("metatags", ""), *lines])


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to pages."""
    app.connect("html-page-context", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
