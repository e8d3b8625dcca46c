"""What a cache entry is found by: everything that the compiled program depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import version

import numpy as np

from crosschip.hal import Device, Options
from crosschip.ir import ControlFlow, Extension, Model, Operand
from crosschip.ir.mapped import let_go
from crosschip.runtime.cache import FORMAT_VERSION


def cache_key(model: Model, device_name: str, device: Device, options: Options) -> str:
    """SHA-256, in hexadecimal, over the model with its weights and all that compiles it.

    Names of operands and operations do not count; order, types and values do.
    """
    digest = hashlib.sha256()

    def add(*parts: object) -> None:
        for part in parts:
            text = str(part).encode()
            digest.update(len(text).to_bytes(8, "little") + text)

    def add_type(operand: Operand) -> None:
        add(operand.type, repr(operand.type.quantization))  # the text form rounds scales

    add(
        "crosschip",
        version("crosschip"),
        FORMAT_VERSION,
        device_name,
        device.version,
        device.machine(),
    )
    add(sorted(device.properties.items()))
    add(options.precision.value, options.threads)

    def add_model(model: Model) -> None:
        number = {operand: i for i, operand in enumerate(model.inputs.values())}
        for operand in model.inputs.values():
            add_type(operand)
        for operand in model.constants:
            number[operand] = len(number)
            add("constant")
            add_type(operand)
            assert operand.value is not None, "constants have values"
            digest.update(np.ascontiguousarray(operand.value).reshape(-1).view(np.uint8).data)
            let_go(operand.value)
        for operation in model.operations:
            add(operation.type, *_references(operation.inputs, number))
            if isinstance(operation, Extension):
                add(operation.payload.hex())
            if isinstance(operation, ControlFlow):
                add(sorted(operation.attributes.items()))
                for body in operation.bodies:
                    add("body")
                    add_model(body)
            for output in operation.outputs:
                number[output] = len(number)
                add_type(output)
        add("outputs", *_references(tuple(model.outputs.values()), number))

    add_model(model)
    return digest.hexdigest()


def _references(
    operands: tuple[Operand | None, ...], number: Mapping[Operand, int]
) -> list[int | None]:
    return [None if operand is None else number[operand] for operand in operands]
