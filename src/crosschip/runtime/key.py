"""Keys of cache entries: everything that the compiled program depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib.metadata import version

import numpy as np

from crosschip.hal import Options
from crosschip.ir import Array, ControlFlow, Extension, Model, Operand
from crosschip.runtime.entry import FORMAT_VERSION
from crosschip.runtime.guard import GuardedDevice
from crosschip.runtime.hashing import block_digests


def cache_key(model: Model, device: GuardedDevice, options: Options) -> str:
    """SHA-256, in hexadecimal, over the model with its weights and all that compiles it.

    Names of operands and operations do not count; order, types and values do.
    """
    digest = hashlib.sha256()

    def add(*parts: object) -> None:
        for part in parts:
            text = str(part).encode(errors="surrogatepass")
            digest.update(len(text).to_bytes(8, "little") + text)

    def add_type(operand: Operand) -> None:
        add(operand.type, repr(operand.type.quantization))  # the text form rounds scales

    add("crosschip", version("crosschip"), FORMAT_VERSION)
    add(device.name, device.version, *device.capabilities.tied_to)
    add(sorted(device.properties.items()))
    add(canonical(options))

    def add_model(model: Model) -> None:
        number = {operand: i for i, operand in enumerate(model.inputs.values())}
        for operand in model.inputs.values():
            add_type(operand)
        for operand in model.constants:
            number[operand] = len(number)
            add("constant")
            add_type(operand)
            elements = operand.value  # once: it may be read from a file each time
            assert elements is not None, "constants have values"
            for block in block_digests(_bytes(elements)):
                digest.update(block)
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


def canonical(value: object) -> str:
    """A text that two values share only if they are equal; a dataclass counts with all its fields.

    Raises:
        TypeError: a value is of a type that has no such text.
    """
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if is_dataclass(value) and not isinstance(value, type):
        return canonical({field.name: getattr(value, field.name) for field in fields(value)})
    if isinstance(value, Mapping):
        items = sorted((canonical(key), canonical(each)) for key, each in value.items())
        return f"{{{', '.join(f'{key}: {each}' for key, each in items)}}}"
    if isinstance(value, Set):
        return f"{{{', '.join(sorted(map(canonical, value)))}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(canonical, value))}]"
    raise TypeError(f"no cache key can be made of a {type(value).__name__}")


def _bytes(array: Array) -> memoryview:
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _references(
    operands: tuple[Operand | None, ...], number: Mapping[Operand, int]
) -> list[int | None]:
    return [None if operand is None else number[operand] for operand in operands]
