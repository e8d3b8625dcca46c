"""Families of operators: all packages with one module per family have the same modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

import crosschip
from crosschip.mapping import standard as mappings
from crosschip.mapping.opsets import OpsetMapping, opset_mapping
from crosschip.ops import examples, examples_of, operators, standard
from crosschip.ops.definition.examples import example, random
from crosschip.ops.definition.examples import examples as give_examples
from crosschip.ops.definition.kinds import Elementwise

FAMILIES = {module.name for module in iter_modules(standard.__path__)}
SOURCES = Path(crosschip.__file__).parent

ROOMS = sorted(
    folder
    for name in ("operators", "converters")
    for folder in SOURCES.rglob(name)
    if folder.is_dir()
)
"""Packages of importers and devices with one function per operator."""

SHARED = {"boxes", "scanning", "table", "windows"}
"""Modules among converters without converters: the table and shared helpers."""


COMPOSED = {
    "importers/onnx": {"adopted", "quantized_transformers"},
    "importers/tflite": {
        *("audio", "fourier", "lookup", "mediapipe", "random_numbers", "stablehlo"),
        *("stablehlo_indexing", "unpooling", "variables", "windows"),
    },
    "importers/paddle": {"arrays", "decoding", "proposals", "sequences"},
}
"""Families of operators of a framework that are composed of standard operators."""

SPANNING = {"devices/kits/tosa": {"fixed_point", "quantized", "refused"}}
"""Modules of converters that concern several families: quantized ones, exact ones, refusals."""


def test_importing_operators_imports_no_examples_and_no_mappings() -> None:
    code = (
        "import sys, crosschip.ops as ops\n"
        "rooms = ('crosschip.ops.examples', 'crosschip.mapping.standard')\n"
        "assert not [name for name in sys.modules if name.startswith(rooms)]\n"
        "assert ops.examples_of(ops.operator_named('RELU'))\n"
        "assert 'crosschip.ops.examples.activation' in sys.modules\n"
        "assert 'crosschip.mapping.standard.activation' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("room", [examples, mappings], ids=["examples", "mappings"])
def test_every_family_has_a_file_in_every_room(room: ModuleType) -> None:
    found = {module.name for module in iter_modules(room.__path__)}
    machinery = {"common"} if room is examples else set()
    assert found == FAMILIES | machinery


def test_every_operator_is_in_a_family_and_no_family_is_empty() -> None:
    assert {operator.__module__.rpartition(".")[2] for operator in operators().values()} == FAMILIES


def test_rooms_are_found() -> None:
    found = {room.relative_to(SOURCES).parts[:2] for room in ROOMS}
    assert {("importers", "onnx"), ("importers", "paddle"), ("devices", "openvino")} <= found


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.relative_to(SOURCES).as_posix())
def test_importers_and_devices_have_files_of_the_families_names(room: Path) -> None:
    found = {file.stem for file in room.glob("*.py")} - {"__init__"}
    parent = room.parent.relative_to(SOURCES).as_posix()
    own = COMPOSED.get(parent, set()) | SPANNING.get(parent, set())
    assert found - FAMILIES <= own | (SHARED if room.name == "converters" else set())


def test_every_family_has_a_file_of_tests_and_nothing_else_is_among_them() -> None:
    files = Path(__file__).with_name("standard").glob("*.py")
    assert {file.stem.removeprefix("test_") for file in files} == FAMILIES


def test_tests_of_operators_on_the_engines_have_files_of_the_families_names() -> None:
    folder = Path(__file__).parents[1] / "devices" / "operators"
    files = {file.stem.removeprefix("test_") for file in folder.glob("*.py")}
    assert files
    assert files <= FAMILIES


def test_an_operator_of_others_has_what_is_registered_for_it() -> None:
    class Doubled(Elementwise):
        __slots__ = ()

    assert examples_of(Doubled) == ()
    assert opset_mapping(Doubled) == OpsetMapping()
    use = example(input=random(3))
    give_examples(Doubled, use)
    assert examples_of(Doubled) == (use,)
