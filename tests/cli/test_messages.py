"""Messages use the terms of the interface: parameters in Python, options on the command line."""

import ast
import pickle
import re
from pathlib import Path

import pytest
from typer.main import get_command

import apexrank
from apexrank.cli.app import Verb, app
from apexrank.cli.output import OPTIONS, in_options
from apexrank.errors import InputError

SOURCE = Path(apexrank.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
CALLS = re.compile(r"(Error|Warning|warn|refuse|note|append|broken)$")
# scikit-learn's tests of estimators look for it
CONTRACT = re.compile(r"\bn_samples=")


def texts(tree):
    """String literals other than docstrings; f-strings with {} for their values."""
    nodes = list(ast.walk(tree))
    apart = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            apart |= {id(part) for part in node.values}
            yield (
                node.lineno,
                "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
            yield node.lineno, node.value


def messages(tree):
    """Texts of errors, warnings and notes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and CALLS.search(ast.unparse(node.func)):
            yield from texts(ast.Module([ast.Assign([], each) for each in node.args], []))


def offences(found, wrong):
    return [
        f"{path.relative_to(SOURCE)}:{line}: {text}" for path, line, text in found if re.search(wrong, text)
    ]


def test_the_library_knows_no_flags():
    library = [path for path in FILES if SOURCE / "cli" not in path.parents]
    found = [(path, *each) for path in library for each in texts(ast.parse(path.read_text()))]
    assert offences(found, r"(?<!\S)--[a-z]") == []


def test_the_library_marks_keyword_arguments():
    library = [path for path in FILES if SOURCE / "cli" not in path.parents]
    found = [(path, *each) for path in library for each in messages(ast.parse(path.read_text()))]
    assert len(found) > 1000
    bare = [(path, line, CONTRACT.sub("", re.sub(r"`[^`]*`", "", text))) for path, line, text in found]
    assert offences(bare, r"(?<![\w.({'\"])[a-z]\w*=(True|False|None|\{|\d|'|\"|\W*$|[\s,;:)])") == []


def test_the_command_line_knows_no_keyword_arguments():
    command_line = [path for path in FILES if SOURCE / "cli" in path.parents]
    found = [(path, *each) for path in command_line for each in messages(ast.parse(path.read_text()))]
    assert len(found) > 50
    assert offences(found, r"\b[a-z]\w*=(True|False|None|'|\")|`") == []


@pytest.fixture
def verb():
    """Render messages as a verb does."""
    root = get_command(app)

    def render(path, message):
        group, command = root, root
        for name in path.split():
            group, command = command, command.commands[name]
        seen = []
        command.callback = lambda **_: seen.append(in_options(message))
        parent = command.context_class(group, info_name="apexrank")
        context = command.context_class(command, info_name=path, parent=parent)
        context.params = {}
        command.invoke(context)
        return seen[0]

    before = OPTIONS.get({})
    yield render
    OPTIONS.set(before)


@pytest.mark.parametrize(
    ("path", "message", "told"),
    [
        ("aggregate", 'leave it out (`drop="it\'s"`)', "leave it out (--drop 'it'\"'\"'s')"),
        ("aggregate", "such as s=2, got 'id=2'", "such as s=2, got 'id=2'"),
        ("aggregate", "unknown `normalize` 'loud'", "unknown --normalize 'loud'"),
        (
            "aggregate",
            "`min_support` 5 is more than any item has",
            "--min-support 5 is more than any item has",
        ),
        ("aggregate", "points.csv: the column 'max_iter or tol'", "points.csv: the column 'max_iter or tol'"),
        ("cluster", "Lower `n_clusters`", "Lower -k"),
        ("compare", "give them here (`sample_weight`)", "give them here (--weight)"),
        ("evaluate", "say `relevant=1` if they are grades", "say --relevant 1 if they are grades"),
        ("evaluate", "or use `ties='threshold'`", "or use --ties threshold"),
        ("fit", "Raise `max_iter`, `tol` or `alpha`.", "Raise --max-iter, --tol or --alpha."),
        ("fit", "`p` must be at least 1; `verbose` is 2", "-p must be at least 1; verbose is 2"),
        ("fit", "leave it out (`drop=['a b', 'c']`)", "leave it out (--drop 'a b,c')"),
        ("fit", "lower `cv`", "lower --folds"),
        ("rank", "fill it in, or use `impute='median'`", "fill it in, or use fit --impute median"),
        ("graph rank", "use `repeated='sum'` with `weight=`", "use --repeated sum with --weight"),
        ("graph rank", "read it with `signed=True`", "read it with --signed"),
        ("graph pack", "read it with `signed=True`", "read it with graph rank --signed"),
        (
            "graph consensus",
            "`layer_prior` must be positive: raise `n_restarts`",
            "--prior must be positive: raise --restarts",
        ),
    ],
)
def test_parameters_become_options(verb, path, message, told):
    assert verb(path, message) == told


def test_every_command_renders_messages():
    def walk(command):
        inner = getattr(command, "commands", {}).values()
        return [each for one in inner for each in walk(one)] if inner else [command]

    assert all(isinstance(command, Verb) for command in walk(get_command(app)))


def test_errors_keep_their_parameters_across_processes():
    error = InputError("use `signed=True`")
    assert str(pickle.loads(pickle.dumps(error))) == str(error) == "use `signed=True`"
