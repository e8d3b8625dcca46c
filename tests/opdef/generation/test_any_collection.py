"""Projects of random definitions: clean, formatted, of a form that Python and a C compiler read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from tests.opdef.generation.projects import linted
from tests.opdef.strategies import collections

from crosschip.ir import InputError
from crosschip.opdef.definitions import OpDef, OpDefCollection
from crosschip.opdef.documents import write
from crosschip.opdef.generation.generator import generate
from crosschip.opdef.generation.project import Target

DEVICES = ("openvino", "onnxruntime")
SYNTAX = ("cc", "-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-pedantic")


def usable(collection: OpDefCollection) -> OpDefCollection:
    """Return the collection changed to satisfy the rules of operators, which documents lack."""

    def mended(op_def: OpDef) -> OpDef:
        first, *others = op_def.inputs
        *before, last = op_def.outputs
        return replace(
            op_def,
            inputs=(replace(first, mandatory=True, repeated=False), *others),
            outputs=(*(replace(output, repeated=False) for output in before), last),
        )

    op_defs = tuple(map(mended, collection.definitions.op_defs))
    return replace(collection, definitions=replace(collection.definitions, op_defs=op_defs))


# An example takes a while; to look for the least that fails would take too long.
@settings(max_examples=20, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(collections().map(usable), st.sampled_from(Target), st.sets(st.sampled_from(DEVICES)))
def test_any(collection: OpDefCollection, target: Target, backends: set[str]) -> None:
    try:
        document = write(collection)
    except InputError:
        assume(False)
    with TemporaryDirectory() as name:
        file, output = Path(name) / "a.xml", Path(name) / "out"
        file.write_bytes(document)
        try:
            (report,) = generate([file], target, output, backends=sorted(backends), devices=DEVICES)
        except InputError:
            assert not output.exists()
            return
        linted(report.folder)
        imported(report.folder, report.operators)
        sources = sorted(map(str, report.folder.glob("native/*.c")))
        if sources:
            subprocess.run([*SYNTAX, *sources], check=True)


def imported(project: Path, operators: Sequence[str]) -> None:
    """Import the package, which must have its operators."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.syspath_prepend(project / "src")
        package = import_module(project.name).package
    assert {operator.title for operator in package.operators.values()} == set(operators)
    for module in set(sys.modules) - before:
        if module.partition(".")[0] == project.name:
            del sys.modules[module]
