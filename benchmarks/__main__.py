"""``python -m benchmarks [NAME ...]`` runs all benchmarks, or the named ones; see ``benchmarks/run.py``.

``python -m benchmarks size`` counts files and lines of code instead.
"""

from __future__ import annotations

import sys

from benchmarks import size
from benchmarks.run import main

if __name__ == "__main__":
    names = sys.argv[1:]
    if names == ["size"]:
        sys.exit(size.main())
    sys.exit(main(["--only", *names] if names and not names[0].startswith("-") else names))
