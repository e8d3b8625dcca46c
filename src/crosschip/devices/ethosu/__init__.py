"""The device that compiles for Arm's Ethos-U processors, with Vela.

Vela takes TensorFlow Lite files of quantized operators, reports the cycles and the memory of each,
and leaves others to the processor that the chip is beside; these are refused. Programs are saved
for the chip and do not run here. Untried on a chip.

Source: https://pypi.org/project/ethos-u-vela, OPTIONS.md and PERFORMANCE.md
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from crosschip.devices.ethosu.tool import SOURCE
from crosschip.devices.kits.onnx.units import submodel
from crosschip.devices.kits.toolchain import FileToolchain
from crosschip.devices.kits.toolchain.program import OutputMap
from crosschip.hal import (
    Capabilities,
    CompileError,
    Instance,
    Kind,
    Offer,
    Options,
    Program,
    Rule,
    Sizing,
    Support,
)
from crosschip.hal.support import Estimate
from crosschip.ir import DeviceError, Model, Operation

CHIPS = (
    *("u55-32", "u55-64", "u55-128", "u55-256", "u65-256", "u65-512"),
    *("u85-128", "u85-256", "u85-512", "u85-1024", "u85-2048"),
)
"""The chips that Vela compiles for, each with its multiply-adds per cycle."""

_SETTINGS = {
    "system-config": "the section of Vela's configuration with clock and bandwidths (Vela's own)",
    "memory-mode": "the section with the places of weights and feature maps (Vela's own)",
    "optimise": "Performance or Size (Performance)",
}


class EthosUDevice(FileToolchain):
    """An Ethos-U processor that Vela compiles for; programs do not run here.

    Raises:
        DeviceError: Vela is not installed, or there is no such chip.
    """

    vendor = "Arm"
    kind = Kind.ACCELERATOR
    package = "ethos-u-vela"
    module = "ethosu"
    script = Path(__file__).with_name("tool.py")

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        self._chip = instance or CHIPS[0]
        if self._chip not in CHIPS:
            raise DeviceError(f"Ethos-U has no chip {instance!r}, only {', '.join(CHIPS)}")
        super().__init__(properties, instance)
        self._reports: dict[str, Mapping[str, Any]] = {}

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        problem = cls.missing()
        if problem:
            return [Instance(kind=cls.kind, simulated=True, problem=problem)]
        return [
            Instance(
                name=chip,
                kind=cls.kind,
                description=f"Ethos-{chip.upper()}, for which Vela compiles",
                simulated=True,
            )
            for chip in CHIPS
        ]

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {**super().known_properties(), **_SETTINGS}

    def capabilities(self) -> Capabilities:
        return Capabilities(
            precisions=frozenset(),
            pairs=True,
            sizing=Sizing.FIXED,
            concurrency=1,
            tied_to=(),
            holds_weights=True,
        )

    def operators(self) -> Collection[str]:
        from crosschip.devices.kits.tflite.lowering import TARGET

        return TARGET.operators

    def query(self, model: Model, options: Options) -> Offer:
        from crosschip.devices.kits.tflite.lowering import TARGET

        answers = list(TARGET.query(model).answers)
        index = {operation.name: at for at, operation in enumerate(model.operations)}
        while expressed := [o for o in model.operations if answers[index[o.name]]]:
            try:
                layers = self._layers(submodel(model, expressed), options)
            except CompileError as error:
                refused = [o for o in expressed if o.name in error.operations] or expressed
                for operation in refused:
                    no = Support.no(operation, "", str(error), Rule.OPERATOR)
                    answers[index[operation.name]] = no
            else:
                answers = [layers.get(o, a) for o, a in zip(model.operations, answers, strict=True)]
                break
        return Offer(answers)

    def write(self, model: Model, folder: Path) -> None:
        from crosschip.devices.kits.tflite.lowering import lower
        from crosschip.devices.kits.tflite.model import to_bytes

        (folder / SOURCE).write_bytes(to_bytes(lower(model)))

    def compile(self, model: Model, options: Options) -> Program:
        refused = {o: a for o, a in self._layers(model, options).items() if not a}
        if refused:
            raise CompileError("; ".join(a.reason for a in refused.values()), refused)
        return super().compile(model, options)

    def _settings(self, model: Model, options: Options) -> Mapping[str, Any]:
        chosen = {name: value for name, value in self.properties.items() if name in _SETTINGS}
        return {"accelerator-config": f"ethos-{self._chip}", **chosen}

    def _layers(self, model: Model, options: Options) -> Mapping[Operation, Support]:
        """Return Vela's answers about the operations of which it has layers.

        Raises:
            CompileError: the model cannot be written, or Vela fails.
        """
        requested = OutputMap(model).requested
        report = self._report(requested, options)
        answers: dict[Operation, Support] = {}
        figures: dict[Operation, tuple[int, int]] = {}
        for name, on_chip, layer_cycles, layer_memory in report["layers"]:
            operation = _operation_of(name, requested)
            if operation is None or not answers.get(operation, True):
                continue
            if not on_chip:
                why = report["reasons"].get(name, "Vela gives no reason")
                detail = f"stays on the processor: {why}"
                answers[operation] = Support.no(operation, "", detail, Rule.OPERATOR)
                continue
            cycles, memory = figures.get(operation, (0, 0))
            cycles, memory = cycles + layer_cycles, max(memory, layer_memory)
            figures[operation] = cycles, memory
            answers[operation] = Support(
                True,
                detail=f"{cycles} cycles, {memory / 1024:.1f} KiB of SRAM",
                estimate=Estimate(seconds=cycles / report["clock"]),
            )
        return answers

    def _report(self, model: Model, options: Options) -> Mapping[str, Any]:
        """Return Vela's report about a model; it is asked once for each file."""
        with tempfile.TemporaryDirectory(prefix="crosschip-") as folder:
            self.write(model, Path(folder))
            digest = hashlib.sha256(Path(folder, SOURCE).read_bytes()).hexdigest()
            if digest not in self._reports:
                settings = self._settings(model, options)
                try:
                    self._reports[digest] = self._ask_tool("report", folder, settings)
                except DeviceError as error:
                    raise CompileError(str(error)) from error
            return self._reports[digest]


def _operation_of(name: str, model: Model) -> Operation | None:
    """Return the operation that a layer belongs to, by the name of the layer's output."""
    if name in model.outputs:
        return model.producers.get(model.outputs[name])
    candidates = [o for o in model.operations if name == o.name or name.startswith(f"{o.name}.")]
    return max(candidates, key=lambda operation: len(operation.name), default=None)
