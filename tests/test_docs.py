"""The site: every public name has a page, links resolve, every page is in a table of contents."""

import importlib
import importlib.util
import inspect
import re
import struct
from collections import Counter
from pathlib import Path

import pytest

import apexrank

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BUILT = ("_build", "auto_examples", "generated")
PAGES = sorted(p for p in DOCS.rglob("*.md") if not set(BUILT) & set(p.relative_to(DOCS).parts))
MARKDOWN = [*(ROOT / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md")), *PAGES]
PACKAGES = sorted(
    {"rankers", "io", *(name for name in dir(apexrank) if inspect.ismodule(getattr(apexrank, name)))}
)


def relative(path):
    return path.relative_to(ROOT).as_posix()


def extension(name):
    """Module of docs/_ext, which is not a package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prose(path):
    """Text of a page without its code."""
    text = re.sub(r"^( *)(```|~~~).*?^\1\2", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path):
    """Anchors of a page's headings, as GitHub and MyST make them."""
    text = re.sub(r"^( *)(```|~~~).*?^\1\2", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ +(.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def api_entries():
    """Full names listed in the tables of the API pages."""
    names = []
    for path in sorted((DOCS / "api").glob("*.rst")):
        module, in_table = None, False
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. "):
                in_table = line == ".. autosummary::"
                module = line.split()[-1] if line.startswith(".. currentmodule::") else module
            elif in_table and re.fullmatch(r"   \w+", line):
                names.append(f"{module}.{line.strip()}")
            elif line and not line.startswith(" "):
                in_table = False
    return names


def toctree_entries(path):
    """Documents in the tables of contents of a page, with resolved patterns and without generated pages."""
    text = path.read_text(encoding="utf-8")
    found = []
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text, flags=re.M | re.S):
        for line in block.splitlines():
            entry = re.sub(r".*<(.*)>", r"\1", line).strip()
            if entry and not entry.startswith((":", "auto_examples")):
                matched = [p for p in path.parent.glob(f"{entry}.*") if p.suffix in (".md", ".rst")]
                assert matched or "*" in entry, f"{relative(path)}: no page {entry}"
                found += matched
    return found


@pytest.mark.parametrize("name", dir(apexrank))
def test_every_name_of_the_package_is_in_the_api_pages(name):
    text = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.rst"))
    if inspect.ismodule(getattr(apexrank, name)):
        assert re.search(rf"^\.\. py:module:: apexrank\.{name}$", text, flags=re.M)
    else:
        assert f"apexrank.{name}" in api_entries()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_class_and_function_of_a_package_is_in_the_api_pages(package):
    module = importlib.import_module(f"apexrank.{package}")
    public = getattr(module, "__all__", None)
    if public is None:  # a module of atoms or functions: its classes, and the functions that have an example
        own = [(n, o) for n, o in vars(module).items() if getattr(o, "__module__", "") == module.__name__]
        public = [
            n for n, o in own if n[0] != "_" and (inspect.isclass(o) or "Examples" in (o.__doc__ or ""))
        ]
    entries = set(api_entries())
    for name in public:
        found = getattr(module, name)
        if callable(found):  # registries are tables of names, described with what makes atoms of them
            top = f"apexrank.{name}" in entries and getattr(apexrank, name, None) is found
            assert top or f"apexrank.{package}.{name}" in entries, name


def test_api_pages_name_everything_once():
    entries = api_entries()
    assert sorted(set(entries)) == sorted(entries)


@pytest.mark.parametrize("module", sorted({entry.rpartition(".")[0] for entry in api_entries()}))
def test_api_pages_name_nothing_that_is_gone(module):
    if module == "apexrank.integrations.torch":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    here = importlib.import_module(module)
    names = [entry.rpartition(".")[2] for entry in api_entries() if entry.rpartition(".")[0] == module]
    assert names
    assert not [name for name in names if not hasattr(here, name)]


@pytest.mark.parametrize("path", MARKDOWN, ids=relative)
def test_links_lead_to_files_and_headings(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"[a-z]+:", target):
            assert re.fullmatch(r"https://[\w.-]+\.[a-z]{2,}(/[^\s]*)?", target), target
            continue
        name, _, anchor = target.partition("#")
        to = (path.parent / name).resolve() if name else path
        assert to.exists(), target
        if anchor:
            assert anchor in anchors(to), target


def test_the_notes_count_their_statements():
    """The table at the top of the notes on the papers counts the rows below it."""
    text = (DOCS / "notes-on-the-papers.md").read_text(encoding="utf-8")
    words = ("holds", "holds with a correction", "fails", "not checked")
    rows = re.findall(r"^\| ([^|]+) \| (?:[^|]|\\\|)+ \| ([a-z ]+) \| .*\|$", text, flags=re.M)
    found = Counter(row for row in rows if row[1] in words)
    documents = list(dict.fromkeys(document for document, _ in found))
    assert sorted(documents) == [
        "Acharyya 2013",
        "COLT 2006",
        "Iyer and Bilmes 2013",
        "JMLR 2009",
        "Talk 2006",
    ]
    numbers = {document: [found[document, word] for word in words] for document in documents}
    numbers["all"] = [sum(column) for column in zip(*numbers.values(), strict=True)]
    for document, own in numbers.items():
        assert f"| {document} | {sum(own)} | {' | '.join(map(str, own))} |\n" in text
    # every row of a table of statements has one of these statuses
    tables = re.findall(r"^\| document \| statement \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, flags=re.M)
    assert sum(table.count("\n") for table in tables) == found.total()


def test_every_page_is_in_a_table_of_contents():
    seen, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen:
            seen.add(page)
            waiting += toctree_entries(page) if page.suffix == ".md" else []
    assert not {relative(p) for p in [*PAGES, *(DOCS / "api").glob("*.rst")]} - {relative(p) for p in seen}


def test_pages_and_styles_load_nothing_from_elsewhere():
    for path in [*(DOCS / "_static").iterdir(), DOCS / "conf.py", *(DOCS / "_templates").rglob("*.*")]:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//cdn|@import", text), relative(path)


def test_prompts_become_code_and_code_stays():
    fenced = extension("github_markdown").fence_examples
    text = "text\n\n  >>> f(1)\n  2\n\n```pycon\n>>> g()\n\n```\n\n>>> h()"
    expected = (
        "text\n\n  ```pycon\n  >>> f(1)\n  2\n  ```\n\n```pycon\n>>> g()\n\n```\n\n```pycon\n>>> h()\n```"
    )
    assert "\n".join(fenced(text.split("\n"))) == expected


def test_links_to_examples_go_to_the_gallery():
    link = extension("github_markdown").link_to_gallery
    assert link("[a](../../examples/push/x.py)", "guide/push") == "[a](../auto_examples/push/x.rst)"
    assert link("[a](../examples/push/x.py)", "consensus") == "[a](auto_examples/push/x.rst)"
    assert link("<!-- index: a b -->\nc", "consensus") == "```{index} ! a b\n```\nc"
    assert link("[a](../README.md#try-it) [b](push.md)", "consensus") == "[a](index.md) [b](push.md)"


def test_bars_and_names_are_escaped_outside_code():
    lines = ["|w|² of coef_, ``|w| coef_`` and :attr:`a_`", "", ">>> x.coef_ | y_", "1", "", "so n_iter_."]
    expected = [r"\|w\|² of coef\_, ``|w| coef_`` and :attr:`a_`", *lines[1:5], r"so n_iter\_."]
    assert list(extension("plain_docstrings").escaped_lines(lines)) == expected


def test_formulas_become_mathml():
    pytest.importorskip("latex2mathml", reason='needs pip install "apexrank[docs]"')
    pytest.importorskip("sphinx", reason='needs pip install "apexrank[docs]"')
    markup = extension("mathml").markup
    assert re.search(r"<mfrac>.*<mi>a</mi>.*<mn>2</mn>", markup(r"\frac{a}{2}", block=True))
    assert 'display="inline"' in markup("x", block=False)


def test_buttons_of_the_sidebar_have_names():
    html = '<li><a class="a" href="x.html">Rankers</a><details><summary><span></span></summary>'
    expected = html.replace("<summary>", '<summary aria-label="Pages in Rankers">')
    assert extension("sidebar_labels").labelled(html) == expected


def test_pages_are_described_by_their_first_paragraph():
    core = pytest.importorskip("docutils.core", reason='needs pip install "apexrank[docs]"')
    card = extension("social_card")
    page = core.publish_doctree("Title\n=====\n\n.. note:: Skip this.\n\nOne ``word``.\n\nTwo.")
    assert card.description(page) == "One word."
    assert len(card.description(core.publish_doctree("long " * 100))) <= 200
    assert card.description(None) == card.DEFAULT


def test_the_picture_of_previews_has_the_size_that_the_pages_state():
    header = (DOCS / "images/card.png").read_bytes()[16:24]
    assert struct.unpack(">II", header) == (1200, 630)


def test_front_page_prints_what_it_says(capsys):
    [code] = re.findall(
        r"^```python\n(.*?)^```", (DOCS / "index.md").read_text(encoding="utf-8"), flags=re.M | re.S
    )
    exec(compile(code, "index.md", "exec"), {})
    assert capsys.readouterr().out == "1 0.6\n16 0.88\n"
