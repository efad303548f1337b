"""Run what takes too long for every change: ``python -m tests.nightly [STEP ...]``; without steps, all but ``audit``
and ``links``, which need the network.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIP = ["-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
OURS = ["--editable", ".[test]", "--editable", "papers"]
# environments beside .venv: the version of Python, and what pip installs
ENVIRONMENTS = {
    "oldest": ("3.11", ["--constraint", "tests/oldest.txt", *OURS]),
    "newest": ("3.11", ["--upgrade", *OURS]),
    "3.12": ("3.12", ["--constraint", "constraints.txt", *OURS]),
    "3.13": ("3.13", ["--constraint", "constraints.txt", *OURS]),
}
ALL = "pytest -q -n 2"
QUICK = f"{ALL} -m 'not slow' --hypothesis-profile=quick"
STEPS = {  # name: what it does, and the arguments of each call of Python
    "fuzz": ("200,000 generated inputs for the readers", ["tests.fuzz --inputs 200000"]),
    "coverage": (
        "lines of src that the tests run; compiled kernels run none",
        ["coverage erase", f"{ALL} --cov --cov-report= --cov-fail-under=0", "coverage report"],
    ),
    "mutation": (
        "planted faults that the tests find",
        ["tests.mutation --sample 500 --seed 12", "tests.metamorphic.mutants"],
    ),
    "processors": (
        "all tests as other processors compute, and with the oldest versions",
        ["tests.processors"],
    ),
    "newest": ("all tests with the newest released dependencies", [ALL]),
    "3.12": ("the quick tests under Python 3.12", [QUICK]),
    "3.13": ("the quick tests under Python 3.13", [QUICK]),
    "busy": ("all tests beside a busy loop on every core, because none may depend on time", [ALL]),
    "explore": ("all tests with newly drawn examples", [f"{ALL} --hypothesis-profile=explore"]),
    "site": ("accessibility and search of the documentation site, in Chromium", ["tests.site"]),
    "release": (
        "build wheel and sdist, install the wheel elsewhere, run the README there",
        ["tests.release"],
    ),
    "audit": ("known vulnerabilities of the pinned dependencies", ["tests.audit"]),
    "links": (
        "links of the documentation to other sites",
        ["sphinx -E -n -q -D plot_gallery=0 -b linkcheck docs docs/_build/linkcheck"],
    ),
}
ONLINE = "audit", "links"


def interpreter(version: str) -> str | None:
    """Path of an installed Python of this version; pyenv's stand-ins exist for versions that do not run."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for path in (shutil.which(f"python{version}"), *pyenv.glob(f"{version}*/bin/python")):
        if path and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return str(path)
    return None


def environment(name: str) -> str | None:
    """Python of an environment, which is created if it is not there; None if its version is not installed."""
    folder = ROOT / f".venv-{name}"
    python = folder / "bin" / "python"
    version, packages = ENVIRONMENTS[name]
    if not python.exists():
        base = interpreter(version)
        if base is None:
            return None
        subprocess.run([base, "-m", "venv", folder], check=True)
        subprocess.run([python, *PIP, *packages], cwd=ROOT, check=True)
    return str(python)


def run(step: str) -> str:
    """Run a step; returns its outcome."""
    python: str | None = sys.executable
    if step == "processors":
        environment("oldest")
    elif step in ENVIRONMENTS:
        python = environment(step)
    elif step in ("site", "links"):
        subprocess.run(["make", "docs"], cwd=ROOT, check=True)
    if step == "links":
        python = str(ROOT / ".venv-docs" / "bin" / "python")
    if python is None:
        return f"left out: Python {ENVIRONMENTS[step][0]} is not installed"
    loops = range(os.cpu_count() or 1) if step == "busy" else ()
    beside = [subprocess.Popen([python, "-c", "while True: pass"]) for _ in loops]
    try:
        calls = [
            subprocess.run([python, "-m", *shlex.split(call)], cwd=ROOT, check=False)
            for call in STEPS[step][1]
        ]
    finally:
        for loop in beside:
            loop.kill()
    return "red" if any(call.returncode for call in calls) else "green"


def main(chosen: list[str]) -> int:
    """Run the chosen steps, then print one line for each."""
    if unknown := [step for step in chosen if step not in STEPS]:
        print(
            f"unknown step {unknown[0]!r}; steps:",
            *(f"{s:11} {what}" for s, (what, _) in STEPS.items()),
            sep="\n",
        )
        return 2
    outcomes = {}
    for step in chosen or [step for step in STEPS if step not in ONLINE]:
        began = time.monotonic()
        print(f"== {step}: {STEPS[step][0]}", flush=True)
        outcomes[step] = f"{run(step)}, {time.monotonic() - began:.0f} s"
    print("", *(f"{step:11} {outcome}" for step, outcome in outcomes.items()), sep="\n")
    return int(any(outcome.startswith("red") for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
