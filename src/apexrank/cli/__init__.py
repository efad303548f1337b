"""The ``apexrank`` command line."""


def main() -> None:
    """Run the command line: the entry point of the ``apexrank`` script."""
    from apexrank.cli.app import app

    app(prog_name="apexrank")
