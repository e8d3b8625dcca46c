"""Running a measured program in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks.models import ROOT


def run(child: str, *arguments: object) -> Any:
    """Run a module of `benchmarks.children` in a new interpreter.

    Returns:
        The JSON document that it prints.

    Raises:
        subprocess.CalledProcessError: it fails.
    """
    command = [sys.executable, "-m", f"benchmarks.children.{child}", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)
