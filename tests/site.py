"""Check the built site in Chromium: ``make docs``, then ``python -m tests.site``.

Pages of every kind break no rule of axe-core, in light and in dark, and searches find their pages near the top.
"""

import sys
from pathlib import Path

from tests.report.conftest import FLAGS, find_browser

SITE = Path(__file__).parents[1] / "docs/_build/html"
PAGES = (
    *(
        "index",
        "choose",
        "user-guide",
        "guide/push",
        "benchmarks",
        "notes-on-the-papers",
        "search",
        "genindex",
    ),
    *("api/index", "api/metrics", "api/generated/apexrank.PNormPush", "api/generated/apexrank.metrics.ndcg"),
    *("auto_examples/index", "auto_examples/push/push_path"),
)
# a query, and pages of which one must be among the first three results
SEARCHES = {
    "pAUC": ("apexrank.metrics.partial_auc", "guide/measures"),
    "precision at k": ("apexrank.metrics.precision_at", "guide/measures"),
    "learning to rank": ("guide/relevance",),
    "PageRank": ("apexrank.PageRank", "guide/graphs"),
    "Kemeny": ("apexrank.aggregation.Kemeny", "aggregation"),
    "ONNX": ("guide/export", "api/export"),
}


def violations(page, name):
    """Violations of axe-core rules on a page, in both colour schemes."""
    from axe_playwright_python.sync_playwright import Axe

    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(f"{(SITE / name).as_uri()}.html")
        page.wait_for_timeout(300)  # colours change gradually
        for broken in Axe().run(page).response["violations"]:
            nodes = broken["nodes"]
            yield f"{name} ({scheme}): {broken['id']}, {len(nodes)} times, first {nodes[0]['html'][:200]}"


def results(page, query):
    """Addresses of the pages that a search finds, best first."""
    page.goto(f"{(SITE / 'search.html').as_uri()}?q={query}")
    page.wait_for_selector("#search-results li a, #search-results p.search-summary", state="attached")
    page.wait_for_timeout(1000)
    links = page.eval_on_selector_all("#search-results li > a", "all => all.map(a => a.href)")
    return [link.partition("/html/")[2].partition(".html")[0] for link in links]


def misses(page):
    """Queries whose first results do not include an expected page."""
    for query, wanted in SEARCHES.items():
        found = [name.removeprefix("api/generated/") for name in results(page, query)]
        print(f"{query}: {', '.join(found[:5])}")
        if not set(wanted) & set(found[:3]):
            yield f"search for {query!r}: none of {', '.join(wanted)} among {', '.join(found[:3])}"


if __name__ == "__main__":
    browser_path = find_browser()
    if browser_path is None:
        sys.exit("no Chromium found: install Debian's package chromium, or set APEXRANK_CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        page = browser.new_page()
        page.set_default_timeout(120_000)
        names = sys.argv[1:] or PAGES
        faults = [fault for name in names for fault in violations(page, name)]
        faults += [] if sys.argv[1:] else misses(page)
        browser.close()
    print("\n".join(faults) or f"site: {len(names)} pages and {len(SEARCHES)} searches, no faults")
    sys.exit(bool(faults))
