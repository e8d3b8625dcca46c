"""Models as C structures: flat arrays of operands and operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from crosschip.devices.kits.native.interface import codes, foreign
from crosschip.hal.capabilities import Precision
from crosschip.hal.device import CONTRACT_VERSION
from crosschip.hal.options import Options
from crosschip.ir import Array, ElementType, Model, Operand, Operation, constant
from crosschip.ops import Operator
from crosschip.ops.definition.slots import Parameter


class Description:
    """A model as a `crosschip_model`.

    Attributes:
        pointer: the `crosschip_model *`, valid while this object exists.
        constants: the arrays that it points to.
    """

    def __init__(self, model: Model) -> None:
        self._ffi = foreign()
        self._keep_alive: list[Any] = []
        self.constants: list[Array] = []
        self._operands: dict[Operand, int] = {}
        for operand in model.inputs.values():
            self._index(operand)
        operations = [self._operation(operation) for operation in model.operations]
        outputs = [self._index(operand) for operand in model.outputs.values()]
        operands = [self._operand(operand) for operand in self._operands]
        self.pointer = self._new(
            "crosschip_model *",
            {
                "size": self._ffi.sizeof("crosschip_model"),
                "contract": CONTRACT_VERSION,
                "operand_size": self._ffi.sizeof("crosschip_operand"),
                "operation_size": self._ffi.sizeof("crosschip_operation"),
                "operand_count": len(operands),
                "operation_count": len(operations),
                "input_count": len(model.inputs),
                "output_count": len(outputs),
                "name": self._text(model.name),
                "operands": self._new("crosschip_operand[]", operands),
                "operations": self._new("crosschip_operation[]", operations),
                "inputs": self._new("int32_t[]", list(range(len(model.inputs)))),
                "outputs": self._new("int32_t[]", outputs),
            },
        )

    def _operation(self, operation: Operation) -> dict[str, Any]:
        filled = list(_slots(operation))
        inputs = [-1 if operand is None else self._index(operand) for _, operand in filled]
        outputs = [self._index(operand) for operand in operation.outputs]
        return {
            "operator_name": self._text(operation.type),
            "name": self._text(operation.name),
            "input_count": len(inputs),
            "output_count": len(outputs),
            "slots": self._new("char *[]", [self._text(slot) for slot, _ in filled]),
            "inputs": self._new("int32_t[]", inputs),
            "outputs": self._new("int32_t[]", outputs),
        }

    def _operand(self, operand: Operand) -> dict[str, Any]:
        type_ = operand.type
        shape = (
            None if type_.shape is None else [s if isinstance(s, int) else -1 for s in type_.shape]
        )
        scales = type_.quantization
        described = {
            "name": self._text(operand.name),
            "type": codes(ElementType).get(type_.element_type, -1),
            "rank": -1 if shape is None else len(shape),
            "shape": self._new("int64_t[]", shape or []),
            "scale_axis": -1,
        }
        if scales is not None:
            described["scale_count"] = len(scales.scale)
            described["scale_axis"] = -1 if scales.axis is None else scales.axis
            described["scales"] = self._new("double[]", list(scales.scale))
            described["zero_points"] = self._new("int64_t[]", list(scales.zero_point))
        if operand.is_constant and operand.value is not None:
            array = np.ascontiguousarray(operand.value)
            self.constants.append(array)
            described["data"] = self._ffi.cast("void *", array.ctypes.data)
            described["length"] = array.nbytes
        return described

    def _index(self, operand: Operand) -> int:
        return self._operands.setdefault(operand, len(self._operands))

    def _text(self, text: str) -> Any:
        return self._new("char[]", text.encode())

    def _new(self, kind: str, value: Any) -> Any:
        memory = self._ffi.new(kind, value)
        self._keep_alive.append(memory)
        return memory


def options_in_c(options: Options) -> Any:
    """Return options as a `crosschip_options *`."""
    ffi = foreign()
    return ffi.new(
        "crosschip_options *",
        {
            "size": ffi.sizeof("crosschip_options"),
            "precision": codes(Precision)[options.precision],
            "threads": options.threads_each or 0,
        },
    )


def _slots(operation: Operation) -> Iterator[tuple[str, Operand | None]]:
    """Yield each slot's name and operand; defaults become constants."""
    assert isinstance(operation, Operator), "devices written in C support standard operators only"
    for slot in operation.slots:
        operands: Sequence[Operand | None] = [o for s, o in operation.filled() if s is slot] or [
            None
        ]
        for operand in operands:
            if operand is None and isinstance(slot, Parameter) and slot.default is not None:
                yield slot.name, constant(slot.encode(slot.default), slot.name)
            else:
                yield slot.name, operand
