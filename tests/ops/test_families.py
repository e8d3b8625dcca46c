"""Examples and faces: in files by the names of the families, imported when asked for."""

from __future__ import annotations

import subprocess
import sys
from pkgutil import iter_modules
from types import ModuleType

import pytest

from crosschip.ops import examples, examples_of, faces, faces_of, operators, standard
from crosschip.ops.definition.examples import example, random
from crosschip.ops.definition.examples import examples as give_examples
from crosschip.ops.definition.faces import Faces
from crosschip.ops.definition.kinds import Elementwise


def test_importing_operators_imports_no_examples_and_no_faces() -> None:
    code = (
        "import sys, crosschip.ops as ops\n"
        "rooms = ('crosschip.ops.examples', 'crosschip.ops.faces')\n"
        "assert not [name for name in sys.modules if name.startswith(rooms)]\n"
        "assert ops.examples_of(ops.operator_named('RELU'))\n"
        "assert 'crosschip.ops.examples.activation' in sys.modules\n"
        "assert 'crosschip.ops.faces.activation' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("room", [examples, faces], ids=["examples", "faces"])
def test_every_family_has_a_file_in_every_room(room: ModuleType) -> None:
    families = {operator.__module__.rpartition(".")[2] for operator in operators().values()}
    assert {module.name for module in iter_modules(standard.__path__)} == families
    found = {module.name for module in iter_modules(room.__path__)}
    assert found == families | {"common"}


def test_an_operator_of_others_has_what_is_registered_for_it() -> None:
    class Doubled(Elementwise):
        __slots__ = ()

    assert examples_of(Doubled) == ()
    assert faces_of(Doubled) == Faces()
    use = example(input=random(3))
    give_examples(Doubled, use)
    assert examples_of(Doubled) == (use,)
