"""Prose linter: its rules find their phrases in the right line, but not in code."""

from pathlib import Path

import pytest

from tests import words

RULES = {
    "prose": words.compiled({"so many": "say how many"}),
    "heading": words.compiled({"^(What|How)": "noun phrase"}),
    "summary": words.compiled({"^(What|How)": "noun phrase"}),
}
PAGE = "# How\n\nRun `so many`\nso\nmany. What?\n\n```python\nso many\n```\n\n>>> 'so many'\n"
CODE = '''"""What it is.

Read in so
many words ``so many``.
"""
so, many = 1, "so_many"  # so many
f"{so} so many {many}"
def f():
    """Read the file."""
'''


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.md", PAGE, {1: "How", 4: "so many"}),
        ("a.py", CODE, {1: "What", 3: "so many", 6: "so many", 7: "so many"}),
        ("b.py", '"""Read."""\n', {}),
    ],
    ids=["page", "code", "clean"],
)
def test_phrases_are_found_with_their_lines(monkeypatch, name, text, expected):
    monkeypatch.setattr(words, "RULES", RULES)
    advice = {"What": "noun phrase", "How": "noun phrase", "so many": "say how many"}
    lines = [f'{name}:{line}: "{phrase}": {advice[phrase]}' for line, phrase in expected.items()]
    assert words.findings(Path(name), text) == lines
