"""Check the versions pinned in ``constraints.txt`` for known vulnerabilities: ``python tests/audit.py [FILE]``.

pip-audit queries PyPI, so this needs the network. If PyPI cannot be reached or does not know the packages, one line
says that nothing was audited (exit code 2). Exit code 1 means that a vulnerability was found.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [
    *(sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off", "--timeout", "15"),
    *("--no-deps", "--disable-pip", "--requirement"),  # every package is in the file with its version
]


def answer(output: str) -> tuple[int, list[str]]:
    """Exit code and output lines for the JSON of pip-audit, which is empty if it could not reach PyPI."""
    try:
        packages = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return 2, [
            "audit: the database of vulnerabilities cannot be reached, nothing was audited: try again online"
        ]
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    if len(unknown) == len(packages):
        return 2, ["audit: the database knows none of the packages, nothing was audited: try again online"]
    lines = [
        f"audit: {package['name']} {package['version']}: {found['id']}, fixed in {_fixed(found)}"
        for package in packages
        for found in package.get("vulns", [])
    ]
    code = 1 if lines else 2 if unknown else 0
    if unknown:
        lines.append(f"audit: not known to the database, not audited: {', '.join(unknown)}")
    return code, lines or [f"audit: no known vulnerability in {len(packages)} packages"]


def _fixed(found: dict) -> str:
    return ", ".join(found.get("fix_versions", [])) or "no version yet"


def main(arguments: list[str]) -> int:
    """Run pip-audit and print the result."""
    path = arguments[0] if arguments else str(ROOT / "constraints.txt")
    done = subprocess.run([*COMMAND, path], capture_output=True, text=True)
    if "No module named pip_audit" in done.stderr:
        print("audit: pip-audit is not installed: pip install pip-audit")
        return 2
    code, lines = answer(done.stdout)
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
