"""The device of twin.c in Python: what the two do is compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crosschip.hal import (
    Capabilities,
    CompileError,
    Device,
    Estimate,
    Kind,
    Options,
    Precision,
    Program,
    Rule,
    Support,
)
from crosschip.ir import Array, DeviceError, ElementType, Model, Operation

OPERATORS = ("NEG", "SQUARE")


class TwinProgram(Program):
    def __init__(self, operator: str, scale: int) -> None:
        self.operator, self.scale = operator, scale

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        (x,) = inputs
        if x.size and x.flat[0] == 666:
            raise DeviceError("the number of the beast")
        return [x * x if self.operator == "SQUARE" else -x * np.float32(self.scale)]

    def save(self) -> bytes:
        return self.operator.lower().encode()


class Twin(Device):
    vendor = "Gemini"
    kind = Kind.GPU
    version = "2.5"

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties)
        self.scale = int(self.properties.get("scale", 1))

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {"scale": "what NEG multiplies by"}

    def capabilities(self) -> Capabilities:
        return Capabilities(
            threads=True,
            max_rank=4,
            alignment=64,
            concurrency=2,
            parallel_compile=False,
            types=frozenset({ElementType.FLOAT32}),
            narrowed={ElementType.INT64: ElementType.INT32},
            precisions=frozenset({Precision.FLOAT32, Precision.FLOAT16}),
        )

    def supports(self, operation: Operation, options: Options) -> Support:
        if options.threads == 13:
            return Support.no(operation, "", "13 threads bring bad luck", Rule.OPTION)
        if operation.type in OPERATORS:
            return Support(True, estimate=Estimate(0.5, 16))
        return Support.no(operation, "input", f"{operation.type} is not for us")

    def compile(self, model: Model, options: Options) -> Program:
        bad = [operation for operation in model.operations if "bad" in operation.name]
        if bad:
            raise CompileError("bad things do not compile", bad[:1])
        if len(model.operations) != 1:
            raise CompileError("one at a time")
        return TwinProgram(model.operations[0].type, self.scale)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        if len(saved) > 6:
            raise DeviceError("that is not what was saved")
        return TwinProgram(saved.decode().upper(), self.scale)
