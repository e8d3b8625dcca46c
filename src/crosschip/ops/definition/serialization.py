"""A model as bytes: structure as JSON, weights as they are.

The format is specified in docs/formats.md. Only what cannot be inferred is stored; reading infers
all other types anew, so a model that is read has been validated like one that is built.
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


class Packed:
    """A model in the saved form, whose weights stay where they are until it is written.

    Args:
        model: the model.

    Attributes:
        size: how many bytes it takes.
    """

    def __init__(self, model: Model) -> None:
        writer = _Writer()
        self._pieces = _pieces(writer.model(model), writer)
        self.size = sum(map(len, self._pieces))

    def write(self, memory: memoryview) -> None:
        """Put it at the beginning of memory that has room for it."""
        end = 0
        for piece in self._pieces:
            begin, end = end, end + len(piece)
            memory[begin:end] = piece


def to_bytes(model: Model) -> bytes:
    """The model in the saved form."""
    writer = _Writer()
    return b"".join(_pieces(writer.model(model), writer))


def from_bytes(saved: bytes | memoryview, where: str = "saved model") -> Model:
    """The model that was saved; its constants are views of the bytes.

    Args:
        saved: what `to_bytes` returned.
        where: what messages call it.

    Raises:
        ModelFileError: the bytes are not a saved model, or are damaged.
    """
    return _read(saved, where, lambda header, data: _Reader(header, data).model())


def many_to_bytes(models: Sequence[Model], left_out: Collection[int] = ()) -> bytes:
    """Models in the saved form; constants that they share are saved once.

    Args:
        models: in order.
        left_out: constants whose elements are not saved, by the `id` of their content.
    """
    writer = _Writer(left_out)
    return b"".join(_pieces([writer.model(model) for model in models], writer))


def many_from_bytes(saved: bytes | memoryview, where: str = "saved models") -> list[Model]:
    """The models that were saved; asking for elements that were left out is an error.

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
    """The saved form, piece by piece."""
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
        # The checksum held, so this was written by something else that calls itself crosschip.
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
        raise ModelError(f"has {len(view)} bytes, which is not what its beginning says")
    if xxhash.xxh3_64_intdigest(body) != digest:
        raise ModelError("has damaged bytes: its checksum does not hold")
    return json.loads(bytes(body[:header_size])), body[header_size + padding :]


class _Writer:
    """Describes models; the elements of constants gather in one place, each array once.

    Attributes:
        data: the elements and what lies between them, in order.
    """

    def __init__(self, left_out: Collection[int] = ()) -> None:
        self.data: list[bytes | memoryview] = []
        self._size = 0
        self._left_out = left_out
        self._offsets: dict[int, int] = {}

    def model(self, model: Model) -> dict[str, object]:
        """The description of a model, or of the body of an operation."""
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
            operations.append([*entry, *self._particulars(operation)])
        return {
            "name": model.name,
            "inputs": inputs,
            "constants": constants,
            "operations": operations,
            "outputs": [[name, number[operand]] for name, operand in model.outputs.items()],
        }

    def _particulars(self, operation: Operation) -> list[object]:
        """The particulars of an operation that is not of the standard set."""
        if isinstance(operation, Extension):
            types = [encode_type(type_) for type_ in operation.declared]
            return [[b64encode(operation.payload).decode("ascii"), types, operation.reason]]
        if isinstance(operation, ControlFlow):
            bodies = [self.model(body) for body in operation.bodies]
            return [[bodies, dict(operation.attributes)]]
        return []

    def _add(self, constant: Operand) -> int | None:
        """The offset of the elements of a constant; `None` if they are left out."""
        key = id(constant.content)  # the model holds it, so no other gets its number meanwhile
        if key in self._left_out:
            return None
        if key not in self._offsets:
            gap = bytes(-self._size % _ALIGNMENT)
            elements = np.ascontiguousarray(constant.value).reshape(-1).view(np.uint8).data
            self._offsets[key] = self._size + len(gap)
            self._size += len(gap) + len(elements)
            self.data += [gap, elements]
        return self._offsets[key]


class _Reader:
    """Builds the model that a header describes; operands are numbered as they come."""

    def __init__(self, header: Mapping[str, Any], data: memoryview) -> None:
        self.header = header
        self.data = data
        self.operands: list[Operand] = []

    def model(self) -> Model:
        inputs = {}
        for name, operand_name, type_ in self.header["inputs"]:
            inputs[name] = self._number(Operand(operand_name, decode_type(type_)))
        for name, type_, offset in self.header["constants"]:
            self._number(self._constant(name, decode_type(type_), offset))
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
        particulars: Sequence[Any] | None = None,
    ) -> Operation:
        spend()
        inputs = tuple(None if index is None else self.operands[index] for index in reads)
        operation: Operation
        if type_ in _CONTROL_FLOW and particulars:
            bodies, attributes = particulars
            held = [_Reader(body, self.data).model() for body in bodies]
            operation = _CONTROL_FLOW[type_](name, inputs, bodies=held, **attributes)
            operation = operation.with_bodies(operation.infer_bodies(widening=False))
        elif particulars:
            payload, types, reason = particulars
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
            self._number(operand)
        return operation.with_outputs(results)

    def _number(self, operand: Operand) -> Operand:
        self.operands.append(operand)
        return operand
