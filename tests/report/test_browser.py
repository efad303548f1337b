"""Reports in a real browser: appearance, interaction, printing and accessibility."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from apexrank import aggregate, datasets, report
from apexrank.comparison import Estimator, LinearPush, Logistic, compare_table
from apexrank.graph import attack_ranks
from apexrank.io import Recipe, Table
from apexrank.rankers import AdditiveRanker

pytestmark = pytest.mark.slow

ARTEFACTS = Path(__file__).parents[2] / "artefacts"  # screenshots, kept for whoever wants to look
DESKTOP, PHONE = {"width": 1200, "height": 900}, {"width": 360, "height": 740}


def ranker_report():
    example = datasets.make_push_example(1500, random_state=0)
    columns = dict(zip(example.feature_names, example.data.T, strict=True))
    shops = [None if row % 9 == 0 else f"shop {row % 4}" for row in range(1500)]
    names = [f"C{row:04d}" for row in range(1500)]
    frame = pl.DataFrame({"case": names, **columns, "shop": shops, "constant": 1, "fraud": example.target})
    additive = Estimator("curves", AdditiveRanker(alpha=1e-3, n_pairs=3))
    rankers = [Logistic(), LinearPush(ps=(1, 16), alphas=(1e-3,)), additive]
    return compare_table(
        Table(frame), Recipe(target="fraud", id="case"), candidates=rankers, top=100, repeats=2
    )


def graph_report():
    web = datasets.make_crawl(3000, random_state=0).adjacency
    crawl = datasets.plant_farms(web, farms=5, boosters=40, random_state=0)
    return report.compare_ranks(crawl.adjacency)


def attack_report():
    web = datasets.make_crawl(1000, random_state=0).adjacency
    return attack_ranks(web, attacks=["farm", "cycle-2", "hijacked"], n_targets=10)


def vote_report():
    rng = np.random.default_rng(0)
    plans = ["park", "pool", "library", "tram", "bridge", "market", "stage", "clinic"]
    scores = rng.normal(size=(200, 8)) + np.linspace(1.5, 0, 8)
    return report.summarise_votes(aggregate(scores, items=plans), bootstrap=100)


REPORTS = {"rankers": ranker_report, "graph": graph_report, "attack": attack_report, "votes": vote_report}
NO_SLIDER = ("rankers", "attack")


@pytest.fixture(scope="module", params=list(REPORTS))
def built(request, tmp_path_factory):
    """One report as a file, by name."""
    path = tmp_path_factory.mktemp("reports") / f"{request.param}.html"
    report.build(REPORTS[request.param](), path)
    return request.param, path


class Visit:
    """An open page, and everything it did that it should not have done."""

    def __init__(self, browser, path, *, viewport=None, scheme="light"):
        self.context = browser.new_context(viewport=viewport or DESKTOP, color_scheme=scheme, offline=True)
        self.page = self.context.new_page()
        self.faults, self.requests, self.blocked = [], [], []
        self.page.on(
            "console", lambda m: self.faults.append(m.text) if m.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("requestfailed", lambda request: self.blocked.append((request.url, request.failure)))
        self.page.goto(path.as_uri())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def shown(self, selector):
        """Texts (or drawings) of the visible elements."""
        return self.page.eval_on_selector_all(
            selector,
            "all => all.filter(e => e.getClientRects().length).map(e => e.getAttribute('points') || e.textContent)",
        )


def test_opens_from_disk_without_a_fault_or_a_request(browser, built):
    name, path = built
    with Visit(browser, path) as visit:
        visit.page.wait_for_load_state("networkidle")
        ARTEFACTS.mkdir(exist_ok=True)
        visit.page.screenshot(path=ARTEFACTS / f"report-{name}.png", full_page=True)
        assert visit.faults == []
        assert visit.requests == [path.as_uri()]
        assert visit.page.title()


def test_its_policy_stops_what_data_might_smuggle_in(browser, built):
    _, path = built
    with Visit(browser, path) as visit:
        image = "document.body.append(Object.assign(new Image(), {src: 'https://example.org/x.png'}))"
        script = (
            "document.body.append(Object.assign(document.createElement('script'), {textContent: 'ran = 1'}))"
        )
        visit.page.evaluate(image)
        visit.page.evaluate(script)
        visit.page.wait_for_timeout(50)
        assert visit.blocked == [("https://example.org/x.png", "csp")]
        assert visit.page.evaluate("typeof ran") == "undefined"
        assert sum("Content Security Policy" in fault for fault in visit.faults) == 2


def test_the_slider_moves_the_picture_and_the_list(browser, built):
    name, path = built
    if name in NO_SLIDER:
        pytest.skip("it has no slider")
    with Visit(browser, path) as visit:
        page = visit.page
        slider = page.locator("#frames")
        slider.focus()
        seen = {}
        page.keyboard.press("Home")
        for step in range(int(slider.get_attribute("max")) + 1):
            assert slider.input_value() == str(step)
            label = page.locator("#frames-shown").inner_text()
            assert slider.get_attribute("aria-valuetext") == label
            on = visit.shown("[data-frame]")
            assert on
            hidden = page.locator(f"[data-frame]:not([data-frame='{step}'])")
            assert not any(hidden.nth(i).is_visible() for i in range(min(hidden.count(), 40)))
            seen[label] = (
                visit.shown("svg.chart [data-frame] > *"),
                visit.shown("table.top-items td, table.top-items th"),
            )
            page.keyboard.press("ArrowRight")
        pictures, lists = (len({tuple(part) for part in parts}) for parts in zip(*seen.values(), strict=True))
        assert len(seen) == step + 1 > 1
        assert pictures > 1
        assert lists > 1
        assert visit.faults == []


# colours depend on the scheme alone, and places on the size alone
@pytest.mark.parametrize(("scheme", "viewport"), [("light", DESKTOP), ("dark", PHONE)], ids=["light", "dark"])
def test_can_be_read_by_everybody(browser, built, scheme, viewport):
    """No rule of axe-core is broken: contrast, names, roles, headings, scrolling by keyboard."""
    from axe_playwright_python.sync_playwright import Axe

    name, path = built
    with Visit(browser, path, viewport=viewport, scheme=scheme) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        found = Axe().run(visit.page)
        assert found.violations_count == 0, found.generate_report()
        wide = visit.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, "the page is wider than the screen"
        visit.page.screenshot(path=ARTEFACTS / f"report-{name}-{scheme}-{viewport['width']}.png")


def test_prints_on_paper(browser, built):
    name, path = built
    with Visit(browser, path, scheme="dark") as visit:
        visit.page.emulate_media(media="print")
        assert not visit.page.locator("#frames").is_visible()
        assert visit.page.locator("#frames-shown").is_visible() == (name not in NO_SLIDER)
        ground = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(255, 255, 255)"
        assert visit.page.pdf(format="A4").startswith(b"%PDF")


def test_text_in_charts_can_be_read_on_a_phone(browser, built):
    name, path = built
    if name == "attack":
        pytest.skip("it has no charts")
    with Visit(browser, path, viewport=PHONE) as visit:
        heights = visit.page.eval_on_selector_all(
            "svg.chart text", "all => all.map(t => t.getBoundingClientRect().height).filter(h => h > 0)"
        )
        assert min(heights) >= 9


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_ticks_do_not_overlap(browser, built, viewport):
    _, path = built
    with Visit(browser, path, viewport=viewport) as visit:
        overlaps = visit.page.eval_on_selector_all(
            "svg.chart",
            """charts => charts.flatMap(chart => ['middle', 'end'].flatMap(axis => {
                 const ticks = [...chart.querySelectorAll(`.tick[text-anchor=${axis}]`)];
                 const boxes = ticks.map(t => t.getBoundingClientRect()).filter(b => b.width);
                 return boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b => a.left < b.right && b.left < a.right
                   && a.top < b.bottom && b.top < a.bottom).map(() => chart.getAttribute('aria-label')));
               }))""",
        )
        assert overlaps == []


def test_the_list_can_be_saved_without_a_network(browser, built, tmp_path):
    name, path = built
    if name != "rankers":
        pytest.skip("it has no list to save")
    with Visit(browser, path) as visit:
        with visit.page.expect_download() as download:
            visit.page.get_by_text("Download the").click()
        download.value.save_as(tmp_path / "list.csv")
        saved = pl.read_csv(tmp_path / "list.csv")
        first = visit.shown("table.top-items tbody th")
        assert saved["row"].to_list()[: len(first)] == first
        assert {"place", "score", "positive", "main drivers", "shop"} <= set(saved.columns)
        assert visit.faults == []
