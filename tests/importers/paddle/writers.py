"""Writers of Paddle models in both formats, operator by operator."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from crosschip.importers.paddle import messages
from crosschip.ir import Array, ElementType

CODES = {
    "bool": 0,
    "int16": 1,
    "int32": 2,
    "int64": 3,
    "float16": 4,
    "float32": 5,
    "float64": 6,
    "int8": 21,
}
TYPE_NAMES = {
    "bool": "t_bool",
    "int32": "t_i32",
    "int64": "t_i64",
    "float16": "t_f16",
    "float32": "t_f32",
    "float64": "t_f64",
}

Attributes = Mapping[str, Any]


class Paddle2Writer:
    """A program of Paddle 2, and its parameters.

    Attributes:
        program: the message, which tests may modify.
    """

    def __init__(self) -> None:
        self.program: Any = cast(Any, messages.message_class(messages.ProgramDesc)())
        self.block: Any = self.program.blocks.add()
        self.parameters: dict[str, Array] = {}
        self._fetched = 0

    def variable(self, name: str, dtype: str, shape: Sequence[int]) -> Any:
        """Declare a variable; return its message."""
        variable = self.block.vars.add(name=name.encode())
        variable.type.type = 7
        variable.type.lod_tensor.tensor.data_type = CODES[dtype]
        variable.type.lod_tensor.tensor.dims.extend(shape)
        return variable

    def input(self, name: str, dtype: str, shape: Sequence[int]) -> None:
        """Declare an input."""
        self.variable(name, dtype, shape)
        column = sum(op.type == b"feed" for op in self.block.ops)
        self.operator("feed", {"X": "feed"}, {"Out": name}, {"col": column})

    def parameter(self, name: str, array: Array) -> None:
        """Declare a parameter, with its value."""
        self.variable(name, str(array.dtype), array.shape).persistable = True
        self.parameters[name] = array

    def operator(
        self,
        type: str,
        inputs: Mapping[str, str | Sequence[str]],
        outputs: Mapping[str, str | Sequence[str]],
        attributes: Attributes | None = None,
    ) -> Any:
        """Append an operator; return its message."""
        op = self.block.ops.add(type=type.encode())
        for messages_, slots in ((op.inputs, inputs), (op.outputs, outputs)):
            for slot, names in slots.items():
                listed = [names] if isinstance(names, str) else names
                messages_.add(parameter=slot.encode(), arguments=[n.encode() for n in listed])
        for name, value in (attributes or {}).items():
            write_attribute(op.attrs.add(name=name.encode()), value)
        return op

    def output(self, name: str) -> None:
        """Make a variable an output of the program."""
        self.operator("fetch", {"X": name}, {"Out": "fetch"}, {"col": self._fetched})
        self._fetched += 1

    def save(self, folder: Path) -> Path:
        """Write `inference.pdmodel` and `inference.pdiparams`; return the first."""
        path = folder / "inference.pdmodel"
        path.write_bytes(self.program.SerializeToString())
        path.with_suffix(".pdiparams").write_bytes(combined(self.parameters))
        return path


class Paddle3Writer:
    """A program of Paddle 3, and its parameters.

    Attributes:
        operators: the operators as JSON, which tests may modify.
    """

    def __init__(self) -> None:
        self.operators: list[dict[str, Any]] = []
        self.parameters: dict[str, Array] = {}
        self._types: dict[int, dict[str, Any]] = {}

    def input(self, name: str, dtype: str, shape: Sequence[int]) -> int:
        """Declare an input; return its number."""
        attributes = {
            "name": name,
            "shape": IntArray(shape),
            "dtype": ElementType(dtype),
            "place": Place([0, 0, ""]),
        }
        return self.operator("1.data", [], attributes, [tensor_type(dtype, shape)])

    def parameter(self, name: str, array: Array) -> int:
        """Declare a parameter, with its value; return its number."""
        self.parameters[name] = array
        number = self._number(tensor_type(str(array.dtype), array.shape))
        value = {"%": number, "TT": self._types[number]}
        self.operators.append(
            {"#": "p", "A": [0, 1, 1, name], "DA": [], "O": value, "OA": [1, 0, 1], "QA": []}
        )
        return number

    def constant(self, value: float | Sequence[int]) -> int:
        """Make a constant: of a number, a tensor of one float32; of a list, one of int64."""
        if isinstance(value, int | float):
            attributes = {
                "shape": IntArray([1]),
                "value": Double(value),
                "dtype": ElementType.FLOAT32,
                "place": Place([1, 0, ""]),
            }
            return self.operator("1.full", [], attributes, [tensor_type("float32", [1])])
        attributes = {
            "value": Longs(value),
            "dtype": ElementType.INT64,
            "place": Place([1, 0, ""]),
        }
        made = tensor_type("int64", [len(value)])
        return self.operator("1.full_int_array", [], attributes, [made])

    def operator(
        self,
        name: str,
        inputs: Sequence[int],
        attributes: Attributes | None = None,
        types: Sequence[dict[str, Any]] | None = None,
    ) -> int:
        """Append an operator with results of these types; return the number of the first."""
        made = [tensor_type("float32", [])] if types is None else types
        numbers = [self._number(type) for type in made]
        self.operators.append(
            {
                "#": name,
                "A": [{"N": n, "AT": typed(v)} for n, v in (attributes or {}).items()],
                "I": [{"%": number} for number in inputs],
                "O": [{"%": n, "TT": self._types[n]} for n in numbers],
                "OA": [],
            }
        )
        return numbers[0] if numbers else 0

    def combine(self, numbers: Sequence[int]) -> int:
        """Make a list of values; return its number."""
        type = list_type(*(self._types[number] for number in numbers))
        return self.operator("0.combine", numbers, {}, [type])

    def output(self, number: int) -> None:
        """Make a value an output of the program."""
        column = sum(op["#"] == "1.fetch" for op in self.operators)
        self.operator("1.fetch", [number], {"name": f"fetch_name_{column}", "col": column})

    def _number(self, type: dict[str, Any]) -> int:
        number = len(self._types) + 1
        self._types[number] = type
        return number

    def document(self) -> dict[str, Any]:
        """The whole file, as JSON."""
        block = {"#": "block_0", "args": [], "ops": self.operators}
        return {
            "base_code": {"magic": "pir", "trainable": True, "version": 4},
            "program": {"regions": [{"#": "region_0", "blocks": [block]}]},
        }

    def save(self, folder: Path) -> Path:
        """Write `inference.json` and `inference.pdiparams`; return the first."""
        path = folder / "inference.json"
        path.write_text(json.dumps(self.document(), separators=(",", ":")))
        path.with_suffix(".pdiparams").write_bytes(combined(self.parameters))
        return path


class Double(float):
    """A 64-bit float attribute in Paddle 3."""


class Floats(list[float]):
    """A list of numbers, even if it is empty."""


class Longs(list[int]):
    """A list of integers that Paddle 3 writes with 64 bits."""


class IntArray(list[int]):
    """A list of integers that Paddle 3 writes as an `IntArray`."""


class Place(list[Any]):
    """A device, as Paddle 3 writes it."""


def tensor_type(dtype: str, shape: Sequence[int]) -> dict[str, Any]:
    """The type of a tensor, as Paddle 3 writes it."""
    element = {"#": f"0.{TYPE_NAMES[dtype]}"}
    return {"#": "0.t_dtensor", "D": [element, list(shape), "NCHW", [], 0]}


def list_type(*types: dict[str, Any]) -> dict[str, Any]:
    """The type of a list of tensors, as Paddle 3 writes it."""
    return {"#": "0.t_vec", "D": list(types)}


def typed(value: Any) -> dict[str, Any]:
    """An attribute's value, as Paddle 3 writes it."""
    match value:
        case bool():
            return {"#": "0.a_bool", "D": value}
        case int():
            return {"#": "0.a_i32", "D": value}
        case Double():
            return {"#": "0.a_f64", "D": float(value)}
        case float():
            return {"#": "0.a_f32", "D": value}
        case str():
            return {"#": "0.a_str", "D": value}
        case None:
            return {"#": "1.a_dtype", "D": "Undefined(ALL_DTYPE)"}
        case ElementType():
            return {"#": "1.a_dtype", "D": value.value}
        case IntArray():
            return {"#": "1.a_intarray", "D": list(value)}
        case Place():
            return {"#": "1.a_place", "D": list(value)}
        case Longs():
            return {"#": "0.a_array", "D": [{"#": "0.a_i64", "D": v} for v in value]}
        case _:
            return {"#": "0.a_array", "D": [typed(v) for v in value]}


def record(array: Array) -> bytes:
    """A parameter as both formats store it."""
    desc: Any = messages.message_class(messages.TensorDesc)()
    desc.data_type = CODES[str(array.dtype)]
    desc.dims.extend(array.shape)
    header: bytes = desc.SerializeToString()
    return struct.pack("<IQIi", 0, 0, 0, len(header)) + header + bytes(array.tobytes())


def combined(parameters: Mapping[str, Array]) -> bytes:
    """A file of all parameters."""
    return b"".join(record(array) for _, array in sorted(parameters.items()))


def write_attribute(attribute: Any, value: Any) -> None:
    """Set the type and value of an attribute's message."""
    match value:
        case bool():
            attribute.type, attribute.b = 6, value
        case int():
            attribute.type, attribute.i = 0, value
        case float():
            attribute.type, attribute.f = 1, value
        case str():
            attribute.type, attribute.s = 2, value.encode()
        case Floats():
            attribute.type = 4
            attribute.floats.extend(value)
        case _:
            attribute.type = 3
            attribute.ints.extend(value)
