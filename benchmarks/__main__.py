"""``python -m benchmarks [NAME ...]`` runs all benchmarks, or the named ones."""

from __future__ import annotations

import sys
from importlib import import_module

NAMES = (
    "push_linear",
    "score_space",
    "growth",
    "solvers",
    "measures",
    "retarget",
    "link",
    "graph",
    "consensus",
    "aggregation",
    "kmeans",
    "boosting",
    "blocks",
    "scaling",
    "peers",
)

if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        import_module(f"benchmarks.{name}").main()
