"""Run the tests with the arithmetic of other machines: ``python -m tests.processors [SETTING ...] [-- PYTEST ARGS]``.

The processor determines how sums are split in OpenBLAS, in NumPy's loops and in compiled kernels, and hence how they
are rounded. Each setting makes this machine compute like another one, so a test that depends on the last bits fails.
Settings that this processor cannot run are listed and skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
OLDEST = ROOT / ".venv-oldest" / "bin" / "python"


def numpy_features() -> list[str]:
    """Names of the optional instruction sets of this processor, as this version of NumPy calls them."""
    from numpy._core import _multiarray_umath as core

    return [name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)]


def threads(number: int) -> dict[str, str]:
    """Environment with the same number of threads everywhere, without the tests' own limit."""
    names = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "APEXRANK_TEST_THREADS"
    return dict.fromkeys(names, str(number))


def settings() -> dict[str, dict[str, str]]:
    """Name and environment of each setting."""
    features = numpy_features()
    wide = [name for name in features if "512" in name or name == "X86_V4"]
    narrow = {"NPY_DISABLE_CPU_FEATURES": " ".join(wide)} if wide else {}
    return {
        "haswell": {"OPENBLAS_CORETYPE": "Haswell", "NUMBA_CPU_NAME": "haswell", **narrow},
        "skylakex": {"OPENBLAS_CORETYPE": "SkylakeX", "NUMBA_CPU_NAME": "skylake-avx512"},
        "zen": {"OPENBLAS_CORETYPE": "Zen", "NUMBA_CPU_NAME": "znver2", **narrow, **threads(2)},
        "plain": {
            "OPENBLAS_CORETYPE": "Prescott",
            "NUMBA_CPU_NAME": "generic",
            "NPY_DISABLE_CPU_FEATURES": " ".join(features),
        },
        "one-thread": {"OPENBLAS_CORETYPE": "Nehalem", **threads(1)},
        "four-threads": threads(4),
        "oldest": {},
    }


def missing(name: str) -> str | None:
    """Reason why a setting cannot run here, or None."""
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    if name == "skylakex" and "avx512f" not in flags:
        return "this processor has no AVX-512"
    if name == "oldest" and not OLDEST.exists():
        return f"{OLDEST.parent.parent.name} is not there (python -m tests.nightly makes it)"
    return None


def run(name: str, environment: dict[str, str], options: list[str]) -> int:
    """Run pytest under a setting; returns its exit code."""
    python = str(OLDEST) if name == "oldest" else sys.executable
    shown = " ".join(f"{key}={value!r}" for key, value in environment.items()) or "oldest versions"
    print(f"== {name}: {shown}", flush=True)
    command = [python, "-m", "pytest", "-q", "-n", "2", *options]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=False).returncode


def demo(name: str, environment: dict[str, str]) -> str:
    """Output of ``apexrank demo`` under a setting."""
    python = Path(OLDEST if name == "oldest" else sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        command = [str(python.with_name("apexrank")), "demo"]
        return subprocess.run(
            command, cwd=folder, env=os.environ | environment, check=True, capture_output=True, text=True
        ).stdout


def main(arguments: list[str]) -> int:
    """Run the requested settings (default: all), print a line for each, and compare the output of the demo."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    known, options = settings(), arguments[cut + 1 :]
    wanted = arguments[:cut] or list(known)
    if unknown := [name for name in wanted if name not in known]:
        print(f"unknown setting {unknown[0]!r}: use {', '.join(known)}")
        return 2
    outcome = {}
    for name in wanted:
        began = time.monotonic()
        reason = missing(name)
        code = 0 if reason else run(name, known[name], options)
        state = f"left out: {reason}" if reason else "green" if code == 0 else f"red (exit code {code})"
        outcome[name] = (code, f"{name:13} {state}, {time.monotonic() - began:.0f} s")
    print("\n".join(["", "tests under other processors:", *(line for _, line in outcome.values())]))
    possible = [name for name in wanted if missing(name) is None]
    shown = {demo(name, known[name]) for name in possible}
    print(
        f"apexrank demo under {', '.join(possible)}: {'equal' if len(shown) == 1 else 'NOT equal'} as printed"
    )
    return max(*(code for code, _ in outcome.values()), int(len(shown) > 1))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
