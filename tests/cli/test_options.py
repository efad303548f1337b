"""Option groups: dataclasses whose fields become Typer options of a command."""

import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import get_args

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from apexrank.aggregation.ballots import Kind, Missing
from apexrank.cli import options as opt
from apexrank.cli.app import EXAMPLES, app
from apexrank.errors import InputError


@dataclass(frozen=True)
class Base:
    size: int = opt.plain("How many.", min=1, default=3)


@dataclass(frozen=True)
class Group(Base):
    name: str | None = opt.method("What it is called.", "--name", "-n")
    loud: bool = opt.plain("Shout.", "--loud", default=False)


def commands(command, path=()):
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))
    if not hasattr(command, "commands"):
        yield " ".join(path), command


@pytest.fixture
def given():
    seen = []
    small = typer.Typer()

    @small.command()
    @opt.option_groups
    def verb(path: opt.EdgePath, *, group: Group, json: opt.Json = False) -> None:
        seen.append((path, group, json))

    def run(*args):
        return CliRunner().invoke(small, args), seen

    return run


def test_a_command_gets_the_group_as_one_object(given):
    result, seen = given("e.csv", "--size", "5", "-n", "x", "--loud", "--json")
    assert result.exit_code == 0, result.output
    assert seen == [(Path("e.csv"), Group(5, "x", True), True)]


def test_defaults_are_those_of_the_dataclass(given):
    assert given("e.csv")[1] == [(Path("e.csv"), Group(), False)]
    assert (Group().size, Group().name, Group().loud) == (3, None, False)


def test_limits_and_types_are_checked(given):
    result, seen = given("e.csv", "--size", "many")
    assert result.exit_code == 2
    assert "--size" in result.output
    assert not seen
    result, seen = given("e.csv", "--size", "0")
    assert isinstance(result.exception, InputError)  # reported by the application with exit code 2
    assert str(result.exception).startswith("--size must be at least")
    assert not seen


def test_every_option_has_a_help_text():
    found = list(commands(get_command(app)))
    assert len(found) == 15
    for name, command in found:
        for parameter in command.params:
            assert parameter.help, f"{name} {parameter.name}"


def test_choices_are_those_of_the_declaration():
    @dataclass(frozen=True)
    class Chosen:
        shape: str = opt.plain("Round or square.", default="round", choices=("round", "square"))

    small = typer.Typer()
    seen = []

    @small.command()
    @opt.option_groups
    def verb(*, chosen: Chosen) -> None:
        seen.append(chosen.shape)

    assert CliRunner().invoke(small, ["--shape", "square"]).exit_code == 0
    result = CliRunner().invoke(small, ["--shape", "oval"])
    assert str(result.exception) == "unknown --shape 'oval': use one of round, square"
    assert seen == ["square"]


def test_choices_about_ballots_are_those_of_the_library():
    choices = {each.name: each.metadata.get("choices") for each in fields(opt.BallotOptions)}
    assert choices["kind"] == get_args(Kind)
    assert {each.name: each.metadata.get("choices") for each in fields(opt.PointOptions)}[
        "missing"
    ] == get_args(Missing)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_help_page_ends_with_an_example_whose_options_exist(name):
    dict(commands(get_command(app)))[name].make_context(
        name, shlex.split(EXAMPLES[name])
    )  # refuses unknown ones
    shown = CliRunner().invoke(app, [*name.split(), "--help"]).stdout.split()
    example = ["Example:", "apexrank", *name.split(), *EXAMPLES[name].split()]
    assert shown[-len(example) :] == example


def test_every_verb_has_an_example():
    assert {*dict(commands(get_command(app)))} == {*EXAMPLES}


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("fit t.csv --target y --loss hings", "error: --loss must be a str among {'exponential', "),
        (
            "fit t.csv --target y --scale foo",
            "unknown --scale 'foo': use one of standard, minmax, query, none\n",
        ),
        ("fit t.csv --target y --model pus", "unknown --model 'pus': did you mean 'push'?"),
        ("fit t.csv --target y -p 0", "error: -p must be a float in the range [1.0, inf], got 0.0\n"),
        ("fit t.csv --target y --tol -1", "--tol must be"),
        ("fit t.csv --target y --cv --scoring foo", "unknown scorer 'foo'"),
        ("fit t.csv --target y --model curves --pairs 9 --tol -1", "--tol must be"),
        ("fit t.csv --target y --model retarget --offsets foo", "--offsets must be"),
        ("fit t.csv --target y --model retarget --cv --divergence foo", "--divergence must be"),
        ("fit t.csv --target y --model retarget --divergence kl --bounds 0,1", "--divergence squared"),
        ("compare t.csv --target y --confidence 2", "--confidence must be"),
        ("compare t.csv --target y --top 200%", "--top must be above 0 and at most a third of the rows"),
        ("rank m.apex t.csv --fpr 2", "--fpr must be"),
        ("rank m.apex t.csv --top many", "--top must be"),
        ("evaluate m.apex t.csv --measures ndgc", "unknown measure 'ndgc': did you mean 'ndcg'?"),
        ("evaluate m.apex t.csv --confidence 2", "--confidence must be"),
        ("export m.apex --dialect foo", "unknown --dialect 'foo'"),
        ("aggregate t.csv --method bordo", "unknown --method 'bordo': did you mean 'borda'?"),
        ("graph rank t.csv --damping 2", "--damping must be"),
        ("graph rank t.csv --method pagernk", "unknown --method 'pagernk': did you mean 'pagerank'?"),
        ("graph rank t.csv --trusted m.apex --gamma 3", "--gamma must be"),
        ("graph rank t.csv --signed --smoothing -1", "--smoothing must be"),
        ("graph compare t.csv --ratio 0", "--ratio must be"),
        ("graph attack t.csv --attacks foo", "unknown attack 'foo'"),
        ("graph consensus t.csv m.apex --method foo", "--method must be"),
        ("graph consensus t.csv m.apex --prior foo", "--prior must be"),
    ],
)
def test_options_are_checked_before_any_data_are_read(tmp_path, monkeypatch, command, told):
    monkeypatch.chdir(tmp_path)
    for name in ("t.csv", "m.apex"):  # reading them is another error
        Path(name).write_bytes(b"a,b\n\xff\x00,1\n")
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 2
    assert told in result.stderr
