"""The ``apexrank`` command line."""


def main() -> None:
    """Run the command line: the entry point of the ``apexrank`` script."""
    try:
        from apexrank.cli.app import app

        app(prog_name="apexrank")
    except KeyboardInterrupt:  # before the command could handle it
        raise SystemExit(130) from None
