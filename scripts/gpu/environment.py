"""An environment with packed wheels on top of the packages of the running Python."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]


def is_complete() -> bool:
    """Return whether crosschip is installed with its packages, so that no environment is needed."""
    return find_spec("crosschip") is not None and find_spec("typer") is not None


def make(folder: Path, wheels: Path) -> Path:
    """Make an environment that has all packages of the running Python, and install the wheels.

    Packages that are there already in a version that crosschip accepts are not installed.

    Returns:
        The interpreter of the environment.

    Raises:
        subprocess.CalledProcessError: pip fails.
    """
    # pip is one of the packages of the running Python, which need not have `ensurepip`.
    venv.create(folder, with_pip=False, clear=True)
    [packages] = folder.glob("lib/python*/site-packages")
    outer = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    (packages / "outer.pth").write_text("\n".join(outer) + "\n", encoding="utf-8")
    python = folder / "bin" / "python"
    options = ("--quiet", "--no-index", "--no-cache-dir", "--disable-pip-version-check")
    names = ("crosschip", "onnxscript")
    command = [str(python), "-m", "pip", "install", *options, f"--find-links={wheels}", *names]
    subprocess.run(command, check=True)
    return python


def variables() -> Mapping[str, str]:
    """Return the environment variables of processes that run parts."""
    paths = [str(ROOT / "src"), str(ROOT), str(ROOT / "scripts"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        # Else JAX takes three quarters of the memory for itself, and PyTorch has too little.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
