"""Prose linter: find the phrases of ``tests/words.toml`` in pages, docstrings, messages and comments.

``python -m tests.words [FILE ...]`` prints ``file:line: phrase: suggestion`` for each and fails if there are any.
"""

import ast
import io
import re
import sys
import tokenize
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = (
    "*.md",
    "docs/**/*.md",
    "docs/**/*.rst",
    "docs/**/*.py",
    "examples/**/*.*",
    "src/**/*.py",
    "papers/**/*.py",
    "papers/*.md",
)
BUILT = {"_build", "auto_examples", "generated", "__pycache__"}


def compiled(rules):
    return [
        (re.compile(rf"\b(?:{p})\b".replace(" ", r"[\s#]+"), re.I), advice) for p, advice in rules.items()
    ]


RULES = {
    kind: compiled(rules)
    for kind, rules in tomllib.loads(Path(__file__).with_suffix(".toml").read_text()).items()
}


def blank(match):
    """Replace the letters of a match by spaces, so that line numbers are unchanged."""
    return re.sub(r"\S", " ", match[0])


def without_code(text):
    text = re.sub(r"^( *)(```|~~~).*?^\1\2|^ *(>>>|\.\.\.) .*?$", blank, text, flags=re.M | re.S)
    return re.sub(r"(`+)[^`]+\1", blank, text)


def passages(path, text):
    """Triples (kind, line, prose) of a file."""
    if path.suffix != ".py":
        text = without_code(text)
        yield "prose", 1, text
        for match in re.finditer(r"^#+ (.*)", text, flags=re.M):
            yield "heading", 1 + text.count("\n", 0, match.start()), match[1]
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield "prose", node.lineno, without_code(node.value)
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            yield "summary", node.body[0].lineno, ast.get_docstring(node).partition("\n")[0]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield "prose", token.start[0], without_code(token.string)


def findings(path, text):
    """Lines of advice for the text of a file, in the order of its lines."""
    found = []
    for kind, first, prose in passages(path, text):
        for pattern, advice in RULES[kind]:
            for match in pattern.finditer(prose):
                line = first + prose.count("\n", 0, match.start())
                found.append((line, f'"{" ".join(match[0].split())}": {advice}'))
    return [f"{path}:{line}: {advice}" for line, advice in sorted(found)]


def checked():
    """Paths of the project's files that people read."""
    found = (path.relative_to(ROOT) for pattern in FILES for path in sorted(ROOT.glob(pattern)))
    return [path for path in found if not BUILT & set(path.parts)]


if __name__ == "__main__":
    paths = [Path(name) for name in sys.argv[1:]] or checked()
    lines = [line for path in paths for line in findings(path, (ROOT / path).read_text(encoding="utf-8"))]
    print("\n".join(lines) if lines else f"words: {len(paths)} files, no findings")
    sys.exit(bool(lines))
