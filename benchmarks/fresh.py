"""Running a measured program in a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from benchmarks.models import ROOT

_UNCOMPILED = "PYTHONDONTWRITEBYTECODE"


def run(child: str, *arguments: object) -> Any:
    """Run a module of `benchmarks.children` in a new interpreter.

    Returns:
        The JSON document that it prints.

    Raises:
        subprocess.CalledProcessError: it fails.
    """
    # An installed package is compiled; so is what is measured, from the second run on.
    written = {name: text for name, text in os.environ.items() if name != _UNCOMPILED}
    command = [sys.executable, "-m", f"benchmarks.children.{child}", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=written, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)
