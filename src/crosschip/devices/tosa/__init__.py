"""The device that runs models on Arm's reference model of TOSA, in a process per run.

The reference model defines TOSA's results: integers bit by bit. So it is an oracle for integer
arithmetic that is independent of the operators' definitions. `auto` does not choose it, as it
simulates a chip.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from crosschip.devices.kits.tosa import reference_model
from crosschip.hal import (
    SCHEDULING,
    Capabilities,
    CompileError,
    Device,
    Forking,
    Instance,
    Kind,
    Offer,
    Options,
    Program,
    Sizing,
)
from crosschip.ir import Array, DeviceError, ElementType, Model

_IDENTIFIER = slice(4, 8), b"TOSA"
"""The place of the identifier in a FlatBuffers file, and TOSA's."""


class TosaDevice(Device):
    """Arm's reference model of TOSA 1.0, with the profiles PRO-INT and PRO-FP.

    Raises:
        DeviceError: the program is not installed.
    """

    vendor = "Arm"
    kind = Kind.ACCELERATOR

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        super().__init__(properties, instance)
        path = self.properties.get("model")
        self._program = reference_model.required_path() if path is None else Path(path)
        if not self._program.is_file():
            raise DeviceError(f"property model: there is no program {str(self._program)!r}")

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        problem = "" if reference_model.path_of() else reference_model.missing()
        return [
            Instance(
                kind=cls.kind,
                description="Arm's TOSA reference model",
                simulated=True,
                problem=problem,
            )
        ]

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {
            "model": "the path of the program tosa_reference_model (by default that of the package "
            f"tosa-tools, or of the folder that {reference_model.TOOLS_VARIABLE} names)"
        }

    @property
    def version(self) -> str:
        return reference_model.version_of(self._program)

    @property
    def compile_properties(self) -> Mapping[str, str]:
        return {}

    def capabilities(self) -> Capabilities:
        from crosschip.devices.kits.tosa.converters.table import STORED
        from crosschip.devices.kits.tosa.lowering import MAX_RANK

        return Capabilities(
            types=STORED,
            narrowed={ElementType.INT64: ElementType.INT32},
            sizing=Sizing.FIXED,
            threads=True,
            max_rank=MAX_RANK,
            tied_to=(),
            holds_weights=True,
            settable_at_load=SCHEDULING,
            forking=Forking.IDLE,
        )

    def query(self, model: Model, options: Options) -> Offer:
        from crosschip.devices.kits.tosa.lowering import query

        return query(model)

    def operators(self) -> Collection[str]:
        from crosschip.devices.kits.tosa.lowering import TARGET

        return TARGET.operators

    def compile(self, model: Model, options: Options) -> Program:
        from crosschip.devices.kits.tosa.file import to_bytes
        from crosschip.devices.kits.tosa.lowering import lower
        from crosschip.devices.kits.tosa.model import build

        content = to_bytes(build(lower(model), checks_indices=True), "main")
        try:
            reference_model.validate(content, model.inputs, model.outputs, self._program)
        except DeviceError as error:
            raise CompileError(str(error)) from error
        return TosaProgram(content, model, self._program)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        place, identifier = _IDENTIFIER
        if saved[place] != identifier:
            raise DeviceError("the saved program is no TOSA file")
        return TosaProgram(saved, model, self._program)


class TosaProgram(Program):
    """A TOSA file, which any number of threads run, each in a process.

    Args:
        content: the content of the file.
        model: the compiled model.
        program: the path of the reference model.
    """

    def __init__(self, content: bytes, model: Model, program: Path) -> None:
        self._content = content
        self._inputs = model.inputs
        self._outputs = model.outputs
        self._program = program

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return reference_model.run(
            self._content, self._inputs, self._outputs, inputs, self._program
        )

    def save(self) -> bytes:
        return self._content
