"""``python -m benchmarks [NAME ...]`` runs all benchmarks, or the named ones; see ``benchmarks/run.py``."""

from __future__ import annotations

import sys

from benchmarks.run import main

if __name__ == "__main__":
    names = sys.argv[1:]
    sys.exit(main(["--only", *names] if names and not names[0].startswith("-") else names))
