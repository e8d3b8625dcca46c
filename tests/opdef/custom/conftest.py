"""A package of three operators, installed where Python finds it, with its kernel compiled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from crosschip.opdef.custom.native import HEADER

SITE = Path(__file__).with_name("site")
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the kernel of `median_of_three`."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler, cc")
    made = tmp_path_factory.mktemp("filters") / "libfilters.so"
    source = SITE / "filters" / "median.c"
    command = [compiler, *STRICT, "-fPIC", "-shared", f"-I{HEADER.parent}", "-o", str(made)]
    subprocess.run([*command, str(source)], check=True, capture_output=True)
    return made


@pytest.fixture
def environment(library: Path) -> dict[str, str]:
    """The environment of a process in which the package is installed."""
    path = os.pathsep.join(filter(None, (str(SITE), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "FILTERS_LIBRARY": str(library)}


@pytest.fixture
def filters(library: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The package, known to this process."""
    monkeypatch.syspath_prepend(SITE)
    monkeypatch.setenv("FILTERS_LIBRARY", str(library))
    sys.modules.pop("filters", None)
    filters = import_module("filters")
    filters.package.register()
    yield filters
    filters.package.unregister()
    sys.modules.pop("filters", None)
