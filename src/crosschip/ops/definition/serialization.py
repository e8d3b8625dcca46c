"""Serialization of models: the structure as JSON, then the elements of constants.

The format is specified in docs/formats.md. Types that can be inferred are not stored; reading
infers them again, and so validates the model.
"""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import xxhash

from crosschip.ir import (
    ControlFlow,
    Extension,
    If,
    Loop,
    Model,
    ModelError,
    ModelFileError,
    Operand,
    Operation,
    Scan,
    TensorType,
)
from crosschip.ir.budget import spend
from crosschip.ir.encoding import decode_quantization, decode_type, encode_quantization, encode_type
from crosschip.ir.files import Absent
from crosschip.ops.definition.registry import operator_named

T = TypeVar("T")

FORMAT_VERSION = 4
MAGIC = b"\x93CHIPM\r\n"

_PREAMBLE = struct.Struct("<8sIIQQ")
_ALIGNMENT = 64
_CONTROL_FLOW: Mapping[str, type[ControlFlow]] = {kind.type: kind for kind in (If, Loop, Scan)}


class SerializedModel:
    """Serialized model that refers to the model's constants until it is written.

    Args:
        model: the model.

    Attributes:
        size: the size in bytes.
    """

    def __init__(self, model: Model) -> None:
        writer = _Writer()
        self._pieces = _pieces(writer.model(model), writer)
        self.size = sum(map(len, self._pieces))

    def write(self, memory: memoryview) -> None:
        """Write the bytes to the start of a large enough memory block."""
        end = 0
        for piece in self._pieces:
            begin, end = end, end + len(piece)
            memory[begin:end] = piece


def to_bytes(model: Model) -> bytes:
    """Return a model as bytes."""
    writer = _Writer()
    return b"".join(_pieces(writer.model(model), writer))


def from_bytes(saved: bytes | memoryview, where: str = "saved model") -> Model:
    """Return the model that bytes contain; its constants are views of the bytes.

    Args:
        saved: the result of `to_bytes`.
        where: the name of the model in messages.

    Raises:
        ModelFileError: the bytes are not a saved model, or are damaged.
    """
    return _read(saved, where, lambda header, data: _Reader(header, data).model())


def many_to_bytes(models: Sequence[Model], omitted: Collection[int] = ()) -> bytes:
    """Return models as bytes; constants that they share are saved once.

    Args:
        models: the models, in order.
        omitted: the `id`s of the contents of constants whose elements are omitted.
    """
    writer = _Writer(omitted)
    return b"".join(_pieces([writer.model(model) for model in models], writer))


def many_from_bytes(saved: bytes | memoryview, where: str = "saved models") -> list[Model]:
    """Return the models that bytes contain; reading omitted elements raises an error.

    The arguments are those of `from_bytes`.

    Raises:
        ModelFileError: the bytes are not saved models, or are damaged.
    """

    def models(headers: Any, data: memoryview) -> list[Model]:
        if not isinstance(headers, list):
            raise TypeError("it is one model, not several")
        return [_Reader(header, data).model() for header in headers]

    return _read(saved, where, models)


def _pieces(header: object, writer: _Writer) -> list[bytes | memoryview]:
    """Return the parts of the serialized form, in order."""
    described = json.dumps(header, separators=(",", ":")).encode()
    start = _PREAMBLE.size + len(described)
    body = [described, bytes(-start % _ALIGNMENT), *writer.data]
    digest = xxhash.xxh3_64()
    for piece in body:
        digest.update(piece)
    size = sum(map(len, writer.data))
    preamble = _PREAMBLE.pack(MAGIC, FORMAT_VERSION, len(described), size, digest.intdigest())
    return [preamble, *body]


def _read(saved: bytes | memoryview, where: str, read: Callable[[Any, memoryview], T]) -> T:
    try:
        return read(*_sections(memoryview(saved)))
    except ModelError as error:
        raise ModelFileError(f"{where}: {error}") from None
    except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        # The checksum is valid, so another program with the same format signature wrote the file.
        raise ModelFileError(f"{where}: is not laid out as a saved model: {error!r}") from None


def _sections(view: memoryview) -> tuple[Any, memoryview]:
    if len(view) < _PREAMBLE.size:
        raise ModelError("is cut off in its first bytes")
    magic, version, header_size, data_size, digest = _PREAMBLE.unpack_from(view)
    if magic != MAGIC:
        raise ModelError("is not a saved model")
    if version != FORMAT_VERSION:
        raise ModelError(f"has format version {version}, not {FORMAT_VERSION}; save it again")
    body = view[_PREAMBLE.size :]
    padding = -(_PREAMBLE.size + header_size) % _ALIGNMENT
    if len(body) != header_size + padding + data_size:
        raise ModelError(f"has {len(view)} bytes, which differs from the size in its header")
    if xxhash.xxh3_64_intdigest(body) != digest:
        raise ModelError("has damaged bytes: its checksum does not hold")
    return json.loads(bytes(body[:header_size])), body[header_size + padding :]


class _Writer:
    """Encoder of models, which collects the elements of constants, each array once.

    Attributes:
        data: the elements of constants and the padding between them, in order.
    """

    def __init__(self, omitted: Collection[int] = ()) -> None:
        self.data: list[bytes | memoryview] = []
        self._size = 0
        self._omitted = omitted
        self._offsets: dict[int, int] = {}

    def model(self, model: Model) -> dict[str, object]:
        """Encode a model, or the body of an operation."""
        number: dict[Operand, int] = {}
        inputs = []
        for name, operand in model.inputs.items():
            number[operand] = len(number)
            inputs.append([name, operand.name, encode_type(operand.type)])
        constants = []
        for operand in model.constants:
            number[operand] = len(number)
            constants.append([operand.name, encode_type(operand.type), self._add(operand)])
        operations = []
        for operation in model.operations:
            reads = [None if o is None else number[o] for o in operation.inputs]
            for output in operation.outputs:
                number[output] = len(number)
            names = [output.name for output in operation.outputs]
            declared = list(map(encode_quantization, operation.output_quantization))
            entry = [operation.type, operation.name, reads, names, declared]
            operations.append([*entry, *self._extra_fields(operation)])
        return {
            "name": model.name,
            "inputs": inputs,
            "constants": constants,
            "operations": operations,
            "outputs": [[name, number[operand]] for name, operand in model.outputs.items()],
        }

    def _extra_fields(self, operation: Operation) -> list[object]:
        """Encode the additional fields of an operation outside the standard set."""
        if isinstance(operation, Extension):
            types = [encode_type(type_) for type_ in operation.declared]
            return [[b64encode(operation.payload).decode("ascii"), types, operation.reason]]
        if isinstance(operation, ControlFlow):
            bodies = [self.model(body) for body in operation.bodies]
            return [[bodies, dict(operation.attributes)]]
        return []

    def _add(self, constant: Operand) -> int | None:
        """Return the offset of a constant's elements; `None` if they are omitted."""
        key = id(constant.content)  # the model references it, so the id stays unique
        if key in self._omitted:
            return None
        if key not in self._offsets:
            gap = bytes(-self._size % _ALIGNMENT)
            elements = np.ascontiguousarray(constant.value).reshape(-1).view(np.uint8).data
            self._offsets[key] = self._size + len(gap)
            self._size += len(gap) + len(elements)
            self.data += [gap, elements]
        return self._offsets[key]


class _Reader:
    """Decoder of a model; operands are numbered in order of appearance."""

    def __init__(self, header: Mapping[str, Any], data: memoryview) -> None:
        self.header = header
        self.data = data
        self.operands: list[Operand] = []

    def model(self) -> Model:
        inputs = {}
        for name, operand_name, type_ in self.header["inputs"]:
            inputs[name] = self._append(Operand(operand_name, decode_type(type_)))
        for name, type_, offset in self.header["constants"]:
            self._append(self._constant(name, decode_type(type_), offset))
        operations = [self._operation(*entry) for entry in self.header["operations"]]
        outputs = {name: self.operands[index] for name, index in self.header["outputs"]}
        return Model(self.header["name"], inputs, operations, outputs)

    def _constant(self, name: str, type_: TensorType, offset: int | None) -> Operand:
        shape = type_.static_shape
        if shape is None:
            raise ModelError(f"constant {name!r} has no fixed shape")
        dtype = type_.element_type.dtype
        if offset is None:
            return Operand(name, type_, Absent(name, dtype, shape))
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if offset < 0 or offset + size > len(self.data):
            raise ModelError(f"constant {name!r} lies outside the data")
        value = np.frombuffer(self.data[offset : offset + size], dtype).reshape(shape)
        return Operand(name, type_, value)

    def _operation(
        self,
        type_: str,
        name: str,
        reads: Sequence[int | None],
        outputs: Sequence[str],
        declared: Sequence[Any],
        extra_fields: Sequence[Any] | None = None,
    ) -> Operation:
        spend()
        inputs = tuple(None if index is None else self.operands[index] for index in reads)
        operation: Operation
        if type_ in _CONTROL_FLOW and extra_fields:
            bodies, attributes = extra_fields
            body_models = [_Reader(body, self.data).model() for body in bodies]
            operation = _CONTROL_FLOW[type_](name, inputs, bodies=body_models, **attributes)
            operation = operation.with_bodies(operation.infer_bodies(widening=False))
        elif extra_fields:
            payload, types, reason = extra_fields
            operation = Extension(
                name,
                inputs,
                type=type_,
                payload=b64decode(payload, validate=True),
                declared=tuple(map(decode_type, types)),
                reason=reason,
            )
        else:
            quantization = tuple(map(decode_quantization, declared))
            operation = operator_named(type_)(name, inputs, (), quantization)
        types = operation.infer()
        results = tuple(
            Operand(output, type_) for output, type_ in zip(outputs, types, strict=True)
        )
        for operand in results:
            self._append(operand)
        return operation.with_outputs(results)

    def _append(self, operand: Operand) -> Operand:
        self.operands.append(operand)
        return operand
