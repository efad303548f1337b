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
    for wrong in ("0", "many"):
        result, seen = given("e.csv", "--size", wrong)
        assert result.exit_code == 2
        assert "--size" in result.output
        assert not seen


def test_every_option_has_a_help_text():
    found = list(commands(get_command(app)))
    assert len(found) == 16
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
    choices = {each.name: each.metadata["choices"] for each in fields(opt.BallotOptions)}
    assert choices["kind"] == get_args(Kind)
    assert {each.name: each.metadata["choices"] for each in fields(opt.PointOptions)}["missing"] == get_args(
        Missing
    )


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
