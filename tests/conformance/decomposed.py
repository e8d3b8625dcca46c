"""Devices that have the core operators only, to see what others are decomposed into."""

from __future__ import annotations

from crosschip.devices.reference import ReferenceDevice, ReferenceProgram
from crosschip.hal import YES, Options, Program, Support
from crosschip.ir import Model, Operation, UnsupportedError
from crosschip.ops import Operator
from crosschip.ops.definition.slots import Fuse
from crosschip.runtime.placement.placement import place


class CoreDevice(ReferenceDevice):
    """The reference, on nothing but the core operators, of plain numbers."""

    vendor = "tests"

    def supports(self, operation: Operation, options: Options) -> Support:
        assert isinstance(operation, Operator)
        plain = not operation.quantized_inputs() and operation.fused is Fuse.NONE
        core = operation.core and plain
        return YES if core else Support.no(operation, "", "is not plain core")


class DecomposedDevice(CoreDevice):
    """The same for all operators that decompose into those, as a device of its own.

    With it, the conformance kit holds decompositions to the operators' references.
    """

    def supports(self, operation: Operation, options: Options) -> Support:
        read = {o.name: o for o in operation.inputs if o is not None and o.value is None}
        outputs = {output.name: output for output in operation.outputs}
        try:
            _decomposed(Model("one", read, [operation], outputs))
        except UnsupportedError as error:
            return Support.no(operation, "", str(error))
        return YES

    def compile(self, model: Model, options: Options) -> Program:
        return ReferenceProgram(_decomposed(model))

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return super().load(saved, _decomposed(model), options)


def _decomposed(model: Model) -> Model:
    """The model with the parts of each operation that is not in the core in its place."""
    core = CoreDevice()
    return place(model, {"core": lambda asked: core.query(asked, Options())}).model
