"""Files and lines of code of every package: ``python -m benchmarks size``.

A line of code holds at least one token; docstrings, comments and blank lines are not counted.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("src/apexrank", "papers/src/apexrank_papers")
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """Number of lines with code.

    >>> code_lines('def f(x):\\n    "It is f."\\n\\n    # why\\n    return (\\n        x\\n    )\\n')
    4
    """
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in LAYOUT
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines - set(_docstring_lines(source)))


def _docstring_lines(source: str) -> Iterator[int]:
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            yield from range(text.lineno, (text.end_lineno or text.lineno) + 1)


def sizes(folder: Path) -> dict[str, tuple[int, int]]:
    """Files and lines of code by the module or package below ``folder``."""
    found: dict[str, tuple[int, int]] = {}
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).parts[0]
        files, lines = found.get(name, (0, 0))
        found[name] = files + 1, lines + code_lines(path.read_text(encoding="utf-8"))
    return found


def main() -> None:
    for package in PACKAGES:
        found = sizes(ROOT / package)
        total = tuple(map(sum, zip(*found.values(), strict=True)))
        print(f"{Path(package).name:24} {'files':>6} {'lines':>7}")
        for name, (files, lines) in [*found.items(), ("in all", total)]:
            print(f"  {name:22} {files:6} {lines:7,}")


if __name__ == "__main__":
    main()
