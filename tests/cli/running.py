"""Run a command line, or one of a verb, in this process."""

import shlex

from typer.testing import CliRunner

from apexrank.cli.app import app


def run(command, code=0):
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == code, result.output
    return result


def of_verb(verb):
    """Runner of the verb's command lines."""
    return lambda command, code=0: run(f"{verb} {command}", code)
