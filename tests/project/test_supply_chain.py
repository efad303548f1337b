"""Dependencies of apexrank, and constructs that its code must not use; checked without the network."""

import ast
import fnmatch
import json
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import nightly
from tests.audit import answer

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = [
    line.partition("#")[0].strip()
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line.partition("#")[0].strip()
]

RUN_TIME = {"numpy", "scipy", "scikit-learn", "numba", "polars", "typer", "rich"}
PERMISSIVE = {"BSD", "0BSD", "MIT", "ISC", "APACHE", "PSF", "ZLIB", "CC0", "PYTHON"}

# code from data, other programs and the network: a ranking needs none of them
FORBIDDEN_MODULES = {
    *("pickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml", "ctypes", "runpy"),
    *("subprocess", "pty", "webbrowser"),
    *("socket", "ssl", "urllib", "http", "requests", "httpx", "aiohttp", "ftplib", "smtplib", "xmlrpc"),
}
FORBIDDEN_NAMES = (
    *("eval", "exec", "compile", "pandas.eval", "joblib.load", "torch.load", "*.read_pickle"),
    *("os.system", "os.popen", "os.exec*", "os.spawn*", "os.posix_spawn*", "os.startfile"),
    *("asyncio.create_subprocess_*", "asyncio.subprocess*", "polars.read_database*"),
)
FORBIDDEN_OPTIONS = {"shell", "allow_pickle"}  # with any value but False
EXCEPTIONS = {"apexrank/files.py": ["ctypes"]}  # the system's call that exchanges two names in one step
IMPORTERS = {"__import__", "importlib.import_module", "importlib.__import__"}


def requirements(lines):
    return [Requirement(line) for line in lines]


def all_requirements():
    """Requirements of the package and its extras, except for the package itself, which extras use to combine others."""
    extras = PROJECT["optional-dependencies"].values()
    found = requirements([*PROJECT["dependencies"], *(line for extra in extras for line in extra)])
    return [requirement for requirement in found if requirement.name != PROJECT["name"]]


def installed_with(names):
    """Distributions installed for these, including transitive dependencies."""
    found, waiting = {}, list(names)
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name not in found:
            found[name] = metadata.distribution(name)
            needed = requirements(found[name].requires or [])
            waiting += [r.name for r in needed if r.marker is None or r.marker.evaluate({"extra": ""})]
    return found


def licences(about):
    """First words of the licences of a distribution: expression, else classifiers, else free text."""
    if about.get("License-Expression"):
        stated = re.split(r" (?:AND|OR) ", re.sub(r" WITH [\w.-]+|[()]", "", about["License-Expression"]))
    else:
        classified = [c for c in about.get_all("Classifier", []) if c.startswith("License ::")]
        stated = [c.rpartition(":: ")[2] for c in classified] or [about.get("License") or "none stated"]
    return {re.split(r"[- ]", text.strip())[0].upper() for text in stated}


is_forbidden_name = re.compile("|".join(map(fnmatch.translate, FORBIDDEN_NAMES))).match


def is_forbidden_module(name):
    return name.split(".")[0] in FORBIDDEN_MODULES


def imported(nodes):
    """Imports as pairs: the name used in the module, and the full name of the object."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((alias.asname or alias.name, f"{module}.{alias.name}") for alias in node.names)


def full_names(node, known):
    """All objects that an expression such as ``np.load`` may refer to, because functions may reuse import names."""
    if isinstance(node, ast.Name):
        return known.get(node.id, {node.id})
    if isinstance(node, ast.Attribute):
        return {f"{name}.{node.attr}".removeprefix("builtins.") for name in full_names(node.value, known)}
    return {"?"}


def findings(source):
    """Forbidden imports, names and options of a module's source."""
    nodes, known = list(ast.walk(ast.parse(source))), {}
    for used, full in imported(nodes):
        known.setdefault(used, set()).add(full.removeprefix("builtins."))
        if is_forbidden_module(full):
            yield full
    yield from (name for names in known.values() for name in names if is_forbidden_name(name))
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute):
            yield from filter(is_forbidden_name, full_names(node, known))
        elif isinstance(node, ast.Call):
            yield from forbidden_in_call(node, known)


def forbidden_in_call(call, known):
    """Forbidden options, and forbidden modules imported by a string."""
    values = [*call.args, *(option.value for option in call.keywords)]
    if IMPORTERS & full_names(call.func, known):
        texts = (v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str))
        yield from filter(is_forbidden_module, texts)
    for option in call.keywords:
        if option.arg in FORBIDDEN_OPTIONS and ast.unparse(option.value) != "False":
            yield ast.unparse(option)
    if "numpy.load" in full_names(call.func, known) and len(call.args) > 2:  # the third is allow_pickle
        yield ast.unparse(call)


def test_run_time_dependencies_are_the_few_that_are_known():
    assert {requirement.name for requirement in requirements(PROJECT["dependencies"])} == RUN_TIME


def test_everything_comes_from_the_index_by_name_and_version():
    assert not [str(r) for r in all_requirements() if r.url]
    assert not [line for line in PINS if not re.fullmatch(r"[\w.-]+==[\w.!+]+", line)]
    assert len(PINS) == len({canonicalize_name(line.partition("==")[0]) for line in PINS})


def test_every_dependency_is_pinned_within_its_range(counted):
    pinned = {canonicalize_name(name): version for name, _, version in (p.partition("==") for p in PINS)}
    for requirement in all_requirements():
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in constraints.txt"
        assert requirement.specifier.contains(version, prereleases=True), (
            f"{requirement}: pinned to {version}"
        )
    deep = installed_with(RUN_TIME)
    assert not set(deep) - set(pinned)
    counted("pinned packages", len(pinned))


def test_licences_of_what_is_installed_for_the_run_time_are_permissive(counted):
    found = installed_with(RUN_TIME)
    stated = {name: licences(distribution.metadata) for name, distribution in found.items()}
    assert not {name: words for name, words in stated.items() if not words or words - PERMISSIVE}
    counted("licences of run-time packages", len(found))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("License-Expression: BSD-3-Clause AND 0BSD", {"BSD", "0BSD"}),
        ("License-Expression: (MIT OR GPL-3.0-only)", {"MIT", "GPL"}),
        ("License-Expression: Apache-2.0 WITH LLVM-exception", {"APACHE"}),
        ("Classifier: License :: OSI Approved :: MIT License", {"MIT"}),
        ("License: GPL", {"GPL"}),
        ("Name: x", {"NONE"}),
    ],
    ids=["and", "or", "exception", "classifier", "text", "none"],
)
def test_licences_are_read(text, expected):
    from email import message_from_string

    assert licences(message_from_string(text)) == expected


@pytest.mark.slow
def test_the_code_runs_no_data_starts_no_program_and_opens_no_connection(counted):
    paths = sorted(SRC.rglob("*.py"))
    found = {str(path.relative_to(SRC)): list(findings(path.read_text(encoding="utf-8"))) for path in paths}
    assert {path: what for path, what in found.items() if what} == EXCEPTIONS
    counted("modules without pickle, eval, shell or network", len(paths))


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import urllib.request as u",
        "def f():\n    from http.client import HTTPSConnection",
        "from joblib import load",
        "import joblib; joblib.load(path)",
        "eval(text)",
        "exec(compile(text, '', 'exec'))",
        "run(command, shell=True)",
        "np.load(path, allow_pickle=True)",
        "import os; os.system('ls')",
        *(
            f"import os; os.{name}(path, words)"
            for name in ("execv", "execvpe", "execl", "spawnl", "spawnvp")
        ),
        *(f"import os; os.{name}(path, words, {{}})" for name in ("posix_spawn", "posix_spawnp")),
        "from os import execvp as start",
        "import os as o; o.popen('ls')",
        "import joblib as j; j.load(path)",
        "def f():\n    import joblib as j\n    j.load(path)\ndef g():\n    import json as j",
        "import pandas as pd; pd.read_pickle(path)",
        "from pandas import read_pickle as r",
        "frames.read_pickle(path)",
        "import torch as t; t.load(path)",
        "import asyncio; asyncio.create_subprocess_exec('ls')",
        "import asyncio as a; a.create_subprocess_shell('ls')",
        "from asyncio import create_subprocess_exec",
        "from asyncio import subprocess",
        "__import__('pickle')",
        "__import__('http.client')",
        "import builtins; builtins.__import__('pickle')",
        "import importlib; importlib.import_module('pickle')",
        "import importlib as i; i.import_module(name='pickle')",
        "from importlib import import_module as load; load('pickle')",
        "import builtins; builtins.eval(text)",
        "from builtins import eval as e",
        "import builtins as b; b.exec(text)",
        "list(map(eval, texts))",
        "np.load(path, allow_pickle=allowed)",
        "np.load(path, allow_pickle=not False)",
        "np.load(path, allow_pickle=1)",
        "import numpy as np; np.load(path, None, True)",
        "run(command, shell=wanted)",
        "import polars as pl; pl.read_database_uri(query, uri)",
    ],
)
def test_the_search_of_the_code_finds(source):
    assert list(findings(source))


@pytest.mark.parametrize(
    "source",
    [
        "re.compile('a')",
        "from re import compile\ncompile('a')",
        "np.load(path)",
        "np.load(path, allow_pickle=False)",
        "import numpy as np; np.load(path, 'r')",
        "from .socket import x",
        "from . import pickle",
        "a.load()",
        "network.eval()",
        "import os; os.path.exists(path)",
        "from importlib import import_module; import_module('json'); import_module(f'apexrank.{name}')",
    ],
)
def test_the_search_of_the_code_leaves_alone(source):
    assert not list(findings(source))


def test_the_steps_that_the_policy_names_run_in_the_night():
    policy = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    steps = re.findall(r"`make nightly STEPS='?([\w ]+)'?`", policy)
    named = {step for part in steps for step in part.split()}
    assert named >= {"audit", "coverage", "fuzz", "mutation"}
    assert named <= set(nightly.STEPS)


def audited(*packages):
    return json.dumps({"dependencies": list(packages), "fixes": []})


GOOD = {"name": "a", "version": "1", "vulns": []}
BAD = {"name": "b", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["2.1"]}]}
UNKNOWN = {"name": "c", "skip_reason": "Dependency not found on PyPI"}


@pytest.mark.parametrize(
    ("output", "code", "words"),
    [
        ("", 2, "cannot be reached, nothing was audited"),
        (audited(UNKNOWN), 2, "nothing was audited"),
        (audited(GOOD), 0, "no known vulnerability in 1 packages"),
        (audited(GOOD, BAD), 1, "b 2: CVE-1, fixed in 2.1"),
        (audited(GOOD, UNKNOWN), 2, "not audited: c"),
    ],
    ids=["no network", "no database", "good", "bad", "some unknown"],
)
def test_no_answer_of_the_audit_is_not_a_good_answer(output, code, words):
    found, lines = answer(output)
    assert found == code
    assert [words in line for line in lines] == [True]


def test_the_conda_recipe_follows_pyproject():
    from jinja2 import StrictUndefined, Template

    recipe = Template((ROOT / "conda/meta.yaml").read_text(encoding="utf-8"), undefined=StrictUndefined)
    lines = recipe.render(load_file_data=lambda name: tomllib.loads((ROOT / name).read_text())).splitlines()
    wanted = [
        *PROJECT["dependencies"],
        f"python {PROJECT['requires-python']}",
        "apexrank = apexrank.cli:main",
    ]
    assert [line for line in wanted if f"    - {line}" not in lines] == []
    assert f"  version: {PROJECT['version']}" in lines


def test_the_version_is_the_same_everywhere():
    import apexrank

    version = PROJECT["version"]
    assert apexrank.__version__ == version
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version}\n" in citation
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (\S+)(?: - (\d{4}-\d\d-\d\d))?$", changelog, flags=re.M)
    assert versions[0] == ("Unreleased", "")
    assert versions[1][0] == version
    assert f"\ndate-released: {versions[1][1]}\n" in citation
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", changelog, flags=re.M)) <= kinds
    assert f"| {'.'.join(version.split('.')[:2])}.x | yes |" in (ROOT / "SECURITY.md").read_text(
        encoding="utf-8"
    )
