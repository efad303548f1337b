"""The comparison of printed figures that README and doctests rely on."""

import pytest

from tests.figures import same_output

SAME = [
    ("AUC 0.892", "AUC   0.892"),
    ("AUC 0.892 after ... s", "AUC 0.893 after 12 s"),
    ("0.6", "0.5999"),
    ("1.5e-03", "1.6e-03"),
    ("score 0.366461..., next", "score 0.36646199, next"),
    ("+0.10", "+0.11"),
]
DIFFERENT = [
    ("AUC 0.892", "AUC 0.894"),
    ("0.6", "0.62"),
    ("30 of 50", "31 of 50"),
    ("AUC 0.892", "auc 0.892"),
    ("AUC 0.892", "AUC 0.892 and more"),
    ("0.366461...", "0.366463"),
    ("-0.01", "0.01"),
]


@pytest.mark.parametrize(("want", "got"), SAME)
def test_certain_digits_agree(want, got):
    assert same_output(want, got)


@pytest.mark.parametrize(("want", "got"), DIFFERENT)
def test_anything_else_differs(want, got):
    assert not same_output(want, got)
