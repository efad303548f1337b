"""Reports to files."""

from __future__ import annotations

from pathlib import Path

from apexrank.cli.output import refuse_overwriting
from apexrank.errors import InputError


def check_report(report: Path | None, *inputs: Path | None) -> None:
    """Say early why a report could not be written."""
    from apexrank.atomic import check_writable
    from apexrank.report.page import check_extra

    if report is None:
        return
    if report.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"a report is an HTML file: call it {report.with_suffix('.html').name!r}")
    check_writable(report)
    refuse_overwriting(report, *(path for path in inputs if path is not None))
    check_extra()
