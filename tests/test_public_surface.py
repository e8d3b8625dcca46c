"""The public surface is what a file lists, and what type checkers see of the operators."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from crosschip import ops
from crosschip.ops import standard

ROOT = Path(__file__).parents[1]


def test_the_public_surface_is_the_one_that_is_written_down() -> None:
    """Where it has to change: `python scripts/write_public_surface.py`."""
    script = runpy.run_path(str(ROOT / "scripts" / "write_public_surface.py"))
    assert script["surface"]() == script["FILE"].read_text("utf-8")


def test_type_checkers_see_the_operators_of_every_family() -> None:
    starred = re.findall(r"standard\.(\w+) import \*", Path(ops.__file__).read_text())
    folder = Path(str(standard.__file__)).parent
    assert starred == sorted({path.stem for path in folder.glob("*.py")} - {"__init__"})


def test_operators_are_public_by_their_classes_names() -> None:
    for operator in ops.operators().values():
        assert getattr(ops, operator.__name__) is operator
        assert operator.__name__ in ops.__all__
