"""Run a command line in this process."""

import shlex

from typer.testing import CliRunner

from apexrank.cli.app import app


def run(command, code=0):
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == code, result.output
    return result
