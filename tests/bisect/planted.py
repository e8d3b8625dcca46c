"""A device with converters that are wrong on purpose, over one that is right.

A fault is an operation more behind the one that it spoils, so the engine below computes all of it.
Devices in processes of their own are told their faults by a property.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.modelling import python_path

from crosschip.hal import Capabilities, CompileError, Device, Kind, Offer, Options, Program
from crosschip.ir import Model, Operand, Operation, TensorType
from crosschip.ir.types import Array
from crosschip.ops import Operator
from crosschip.ops.standard.arithmetic import Add
from crosschip.runtime.discovery import open_device

MOST_OUTPUTS = 4


@dataclass(frozen=True)
class Fault:
    """One error of a device.

    Attributes:
        operations: the names of the operations; where there are several, each is wrong only in a
            program that has all of them.
        kind: `shift` adds to one channel, `nan` spoils one element, `crash` and `hang` do so in a
            run, `compile crash` and `compile hang` before, and `compile slow` takes its time there.
        size: what is added.
        type: instead of names, the type of the operations.
        slot: of these, only those whose parameter has a value.
        value: the value.
    """

    operations: tuple[str, ...] = ()
    kind: str = "shift"
    size: float = 1e-3
    type: str = ""
    slot: str = ""
    value: float = 0

    def spoils(self, operation: Operation) -> bool:
        """Tell whether it is about an operation."""
        if not self.type:
            return operation.name in self.operations
        return operation.type == self.type and bool(getattr(operation, self.slot) == self.value)

    def is_there(self, model: Model) -> bool:
        """Tell whether a program has all that it takes."""
        return {o.name for o in model.operations}.issuperset(self.operations)


class Planted(Device):
    """A device over another one, with faults.

    Args:
        properties: `base`, the device below; `faults`, as JSON; `hides`, which is `outputs` where
            it takes few outputs, and `fusions` where a fault shows only if its result is read in
            the same program.
        faults: the faults.
        hides: as the property.
    """

    vendor = "tests"
    kind = Kind.CPU

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        base: str = "reference",
        faults: Sequence[Fault] = (),
        hides: str = "",
    ) -> None:
        super().__init__(properties)
        self.name = "planted"
        given = json.loads(self.properties.get("faults", "[]"))
        told = [Fault(**{**one, "operations": tuple(one["operations"])}) for one in given]
        self.faults = [*faults, *told]
        self.hides = self.properties.get("hides", hides)
        self.compiled = 0
        self._base = open_device(self.properties.get("base", base)).device

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {"base": "the device below", "faults": "as JSON", "hides": "outputs or fusions"}

    @property
    def version(self) -> str:
        return "1.0"

    def capabilities(self) -> Capabilities:
        return self._base.capabilities()

    def query(self, model: Model, options: Options) -> Offer:
        return self._base.query(model, options)

    def compile(self, model: Model, options: Options) -> Program:
        self.compiled += 1
        if self.hides == "outputs" and len(model.outputs) > MOST_OUTPUTS:
            raise CompileError(f"{len(model.outputs)} outputs are too many")
        kinds = {fault.kind for fault in self._faults(model)}
        _fail([kind.removeprefix("compile ") for kind in kinds if kind.startswith("compile ")])
        return _Program(self._base.compile(self._spoiled(model), options), kinds)

    def close(self) -> None:
        self._base.close()

    def _faults(self, model: Model) -> list[Fault]:
        there = [fault for fault in self.faults if fault.is_there(model)]
        return [f for f in there if any(map(f.spoils, model.operations))]

    def _spoiled(self, model: Model) -> Model:
        shown = set(model.outputs.values()) if self.hides == "fusions" else set()
        faults = [f for f in self._faults(model) if f.kind in ("shift", "nan")]
        operations: list[Operation] = []
        for operation in model.operations:
            own = [fault for fault in faults if fault.spoils(operation)]
            if not own or shown.intersection(operation.outputs):
                operations.append(operation)
                continue
            first, *others = operation.outputs
            for index, fault in enumerate(own):
                right = Operand(f"{first.name}.right", first.type)
                makes = right if not index else first
                operations.append(operation.with_outputs((makes, *others)))
                operations.append(_adding(f"{operation.name}.fault", right, first, fault))
                break
        return Model(model.name, model.inputs, operations, model.outputs)


class _Program(Program):
    """A program that runs another one, or fails to."""

    def __init__(self, program: Program, kinds: set[str]) -> None:
        self._program = program
        self._kinds = kinds
        self.rules = program.rules

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        _fail(self._kinds)
        return self._program.run(inputs)

    def close(self) -> None:
        self._program.close()


def _fail(kinds: Sequence[str] | set[str]) -> None:
    if "crash" in kinds:
        os.abort()
    if "hang" in kinds:
        time.sleep(1e6)
    if "slow" in kinds:
        time.sleep(1.5)


def _adding(name: str, right: Operand, wrong: Operand, fault: Fault) -> Operator:
    shape = wrong.type.static_shape
    assert shape is not None, "sizes are known where faults are planted"
    if fault.kind == "nan":
        value = np.zeros(shape, wrong.type.element_type.dtype)
        value.reshape(-1)[value.size // 2] = np.nan
    else:
        axis = 1 if len(shape) > 1 else 0
        channels = tuple(size if a == axis else 1 for a, size in enumerate(shape))
        value = np.zeros(channels, wrong.type.element_type.dtype)
        value.reshape(-1)[value.size // 2] = fault.size
    constant = Operand(f"{name}.value", TensorType(wrong.type.element_type, value.shape), value)
    return Add(name, Add.bind(name, (right, constant), {}), (wrong,))


def properties_of(base: str, faults: Sequence[Fault], hides: str = "") -> dict[str, str]:
    """The properties of a planted device in a process of its own."""
    return {"base": base, "faults": json.dumps([asdict(f) for f in faults]), "hides": hides}


def install(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Install the device `planted` for the processes that are started from now on, and this one."""
    about = folder / "planted-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    entry = "[crosschip.devices]\nplanted = tests.bisect.planted:Planted\n"
    (about / "entry_points.txt").write_text(entry)
    patch.setenv("PYTHONPATH", os.pathsep.join((str(folder), python_path())))
    patch.syspath_prepend(str(folder))
