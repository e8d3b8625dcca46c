"""Reads a Paddle 3 program: the intermediate representation PIR as JSON, in `.json`.

Keys are short: `#` what it is, `%` the number of a value (0: none), `I` inputs, `O` outputs, `TT`
the type of a value, `A` attributes, `N` the name and `AT` the typed value of one, `D` its data.
Names begin with the number of a dialect.

Source: paddle/fluid/pir/serialize_deserialize/include/schema.h of Paddle 3.3.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from crosschip.importers.paddle import tensor_types
from crosschip.importers.paddle.dialect import COUNTERPARTS, Counterpart
from crosschip.importers.paddle.json_access import checked, field, item_at, only, real
from crosschip.importers.paddle.json_stream import JsonStream
from crosschip.importers.paddle.program import (
    MAX_DEPTH,
    Attributes,
    Block,
    Numbering,
    Operator,
    Program,
    Scalar,
    Value,
    Variable,
    within,
)
from crosschip.ir import ModelError, UnsupportedError
from crosschip.ops.packages import operator_titled

_DIALECTS = {"0": "builtin", "1": "pd_op", "2": "cf", "3": "custom_op", "4": "dist"}
_OPERATORS_PATH = ("program", "regions", "blocks", "ops")
"""The fields that lead to the operators; the lists on the way are of one item."""
_ANY_TYPE = "Undefined"
_NOT_FINITE = {"NAN": float("nan"), "INF": float("inf"), "-INF": float("-inf")}


def read(data: bytes) -> Program:
    """Read a program from the bytes of the file.

    Raises:
        ModelError: the file is damaged.
        UnsupportedError: the program has values that are not tensors.
    """
    stream, reader = JsonStream(data), _Reader()
    reader.read_all(_operators(stream, _OPERATORS_PATH))
    stream.end()
    if not reader.outputs:
        raise ModelError("is no inference model: no operator 'fetch' hands out a result")
    return Program(reader.inputs, reader.parameters, deque(reader.operators), reader.outputs)


class _Reader:
    """The program as read so far.

    A value of PIR is one tensor or a list of them; here it is the names of these variables.
    """

    def __init__(self) -> None:
        self.inputs: list[Variable] = []
        self.parameters: dict[str, Variable] = {}
        self.operators: list[Operator] = []
        self.outputs: dict[str, str] = {}
        self._values: dict[int, tuple[str, ...]] = {}
        self._numbering = Numbering()
        self._names: set[str] = set()
        self._yielded: list[str] | None = None
        self._depth = 0

    def read_all(self, ops: Iterable[object]) -> None:
        """Read operators in order."""
        for number, op in enumerate(ops):
            try:
                self.read(number, op)
            except (ModelError, UnsupportedError) as error:
                raise within(f"operator {number}", error) from None

    def read(self, number: int, op: object) -> None:
        """Read an operator, given its place in the file."""
        name = field(op, "#", str)
        if name == "p":
            self._parameter(op)
            return
        label = _in_words(name)
        attributes = Attributes(_attributes(op), _value)
        read = [self._value(operand) for operand in field(op, "I", list)]
        results = field(op, "O", list)
        match label:
            case "pd_op.data" | "pd_op.feed":
                name = checked(attributes.get("name"), str)
                self.inputs.append(self._declare(name, only(results)))
            case "pd_op.fetch":
                self._output(checked(attributes.get("name"), str), only(only(read)))
            case "builtin.shadow_output":
                self._output(checked(attributes.get("output_name"), str), only(only(read)))
            case "builtin.combine":
                self._define(only(results), [name for names in read for name in names])
            case "builtin.split":
                for value, name in zip(results, only(read), strict=False):
                    self._define(value, [name])
            case "builtin.slice":
                self._define(only(results), [item_at(only(read), attributes.get("index"))])
            case "cf.yield":
                self._yielded = [name for names in read for name in names]
            case _:
                regions = checked(op, dict).get("regions", [])
                blocks = tuple(map(self._block, checked(regions, list)))
                renewed = self._operator(number, label, read, results, attributes, blocks)
                if renewed is not None:
                    # Whoever reads the first input from here on reads what took its place.
                    self._values[field(item_at(field(op, "I", list), 0), "%", int)] = renewed

    def _block(self, region: object) -> Block:
        """A block that an operator runs; it sees the values around it, and hands on its yields."""
        if self._depth >= MAX_DEPTH:
            raise UnsupportedError(f"control flow is nested over {MAX_DEPTH} deep")
        block = only(field(region, "blocks", list))
        operators, yielded = self.operators, self._yielded
        self.operators, self._yielded = [], None
        self._depth += 1
        inputs = []
        for argument in field(block, "args", list):
            (name,) = self._result_names("argument", argument)
            self._values[field(argument, "#", int)] = (name,)
            inputs.append(name)
        self.read_all(field(block, "ops", list))
        if self._yielded is None:
            raise ModelError("a block of control flow hands nothing back")
        read = Block(inputs, self.operators, self._yielded)
        self._depth -= 1
        self.operators, self._yielded = operators, yielded
        return read

    def _parameter(self, op: object) -> None:
        name = checked(item_at(field(op, "A", list), 3), str)
        variable = self._declare(name, field(op, "O", dict))
        output_attributes = checked(checked(op, dict).get("OA", []), list)
        # One that does not persist, such as what a network keeps of training, has no value.
        if not output_attributes or output_attributes[0] != 0:
            self.parameters[name] = variable

    def _declare(self, name: str, value: object) -> Variable:
        if name in self._names:
            raise ModelError(f"there are two variables called {name!r}")
        self._names.add(name)
        self._define(value, [name])
        return _tensor(name, field(value, "TT", dict))

    def _output(self, name: str, variable: str) -> None:
        if name in self.outputs:
            raise ModelError(f"there are two outputs called {name!r}")
        self.outputs[name] = variable

    def _operator(
        self,
        number: int,
        label: str,
        read: Sequence[tuple[str, ...]],
        results: Sequence[object],
        attributes: Attributes,
        blocks: Sequence[Block],
    ) -> tuple[str, ...] | None:
        """Add an operator; returns what its first input has become, if it writes over that."""
        plain = label.removesuffix("_")
        writes_over = label not in COUNTERPARTS and plain != label and plain in COUNTERPARTS
        counterpart = COUNTERPARTS.get(plain if writes_over else label)
        counterpart = counterpart or _packaged(label) or Counterpart(label)
        name = self._numbering.next(label.partition(".")[2].rstrip("_"))
        outputs = [
            self._define(value, self._result_names(f"{name}.{place}" if place else name, value))
            for place, value in enumerate(results)
        ]
        self.operators.append(
            Operator(
                number=number,
                label=label,
                type=counterpart.type,
                name=name,
                inputs=_in_slots(counterpart.inputs, read),
                outputs=_in_slots(counterpart.outputs, outputs),
                attributes=attributes.renamed(counterpart.attributes),
                blocks=blocks,
            )
        )
        return outputs[0] if writes_over and outputs else None

    def _result_names(self, name: str, value: object) -> Sequence[str]:
        """Names for the variables of a value that an operation called `name` makes."""
        type = field(value, "TT", dict)
        if type.get("#") != "0.t_vec":
            return [self._new_name(name)]
        return [self._new_name(f"{name}.{i}") for i in range(len(field(type, "D", list)))]

    def _new_name(self, name: str) -> str:
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name

    def _define(self, value: object, names: Iterable[str]) -> tuple[str, ...]:
        defined = self._values[field(value, "%", int)] = tuple(names)
        return defined

    def _value(self, operand: object) -> tuple[str, ...]:
        number = field(operand, "%", int)
        if number == 0:
            return ()
        if number not in self._values:
            raise ModelError(f"value {number} is read, but nothing before makes it")
        return self._values[number]


def _packaged(label: str) -> Counterpart | None:
    """An operator of a package, whose slots are called as in its definition."""
    operator = operator_titled(label.partition(".")[2].rstrip("_"))
    if operator is None:
        return None
    slots = ((name, getattr(operator, slot)) for name, slot in operator.tensors.items())
    counterpart = Counterpart(operator.title)
    counterpart.inputs = tuple(
        f"{n}*" if slot.variadic else n for n, slot in slots if not slot.parameter
    )
    counterpart.outputs = tuple(operator.results)
    return counterpart


def _in_slots(slots: Sequence[str], values: Sequence[Sequence[str]]) -> dict[str, Sequence[str]]:
    """The variables by slot; one whose name ends in `*` takes all that are left."""
    variables: dict[str, Sequence[str]] = {}
    for place, slot in enumerate(slots[: len(values)]):
        if slot.endswith("*"):
            variables[slot[:-1]] = tuple(name for names in values[place:] for name in names)
        else:
            variables[slot] = values[place]
    return variables


def _operators(stream: JsonStream, path: Sequence[str]) -> Iterator[object]:
    """The operators, each parsed when it is its turn.

    Args:
        stream: at an object.
        path: what is left of `_OPERATORS_PATH`.
    """
    fields = stream.fields()
    if fields is None:
        stream.value()
        raise ModelError(f"holds no object with {path[0]!r}")
    count = 0
    for name in fields:
        if name != path[0]:
            stream.value()
            continue
        count += 1
        yield from _operators_in(stream, name, path[1:])
    if count != 1:
        raise ModelError(f"{path[0]!r} is missing or there more than once")


def _operators_in(stream: JsonStream, name: str, path: Sequence[str]) -> Iterator[object]:
    """The same at the value of a field."""
    items = stream.items()
    if items is None:
        if not path:
            raise ModelError(f"{name!r} is not a list")
        yield from _operators(stream, path)
        return
    count = 0
    for count, _ in enumerate(items, 1):
        if not path:
            yield stream.value()
        elif count == 1:
            yield from _operators(stream, path)
        else:
            stream.value()
    if path and count > 1:
        raise UnsupportedError(f"{count} {name}: only one can be expressed")
    if path and not count:
        raise ModelError(f"{name!r}: there must be one value, not 0")


def _in_words(name: str) -> str:
    """The name with its dialect in words: `1.conv2d` is `pd_op.conv2d`."""
    dialect, _, rest = name.partition(".")
    return f"{_DIALECTS.get(dialect, dialect)}.{rest}"


def _attributes(op: object) -> dict[str, Mapping[str, Any]]:
    return {field(a, "N", str): field(a, "AT", dict) for a in field(op, "A", list)}


def _value(typed: Mapping[str, Any]) -> Value:
    match _kind(typed):
        case "a_array":
            return tuple(_scalar(checked(entry, dict)) for entry in field(typed, "D", list))
        case "a_intarray":
            return tuple(checked(entry, int) for entry in field(typed, "D", list))
        case "a_dtype" if field(typed, "D", str).startswith(_ANY_TYPE):
            return None
        case _:
            return _scalar(typed)


def _scalar(typed: Mapping[str, Any]) -> Scalar:
    match _kind(typed):
        case "a_bool":
            return field(typed, "D", bool)
        case "a_i32" | "a_i64" | "a_index":
            return field(typed, "D", int)
        case "a_f32" | "a_f64":
            return _NOT_FINITE[typed["VD"]] if _is_not_finite(typed) else real(typed.get("D"))
        case "a_str":
            return field(typed, "D", str)
        case "a_dtype":
            return tensor_types.from_name(field(typed, "D", str))
        case "a_scalar":
            value = item_at(field(typed, "D", list), 1)
            return value if isinstance(value, bool) else real(value)
        case kind:
            raise UnsupportedError(f"attributes of type {kind!r} cannot be expressed")


def _is_not_finite(typed: Mapping[str, Any]) -> bool:
    return "VD" in typed and field(typed, "VD", str) in _NOT_FINITE


def _tensor(name: str, type: Mapping[str, Any]) -> Variable:
    if type.get("#") != "0.t_dtensor":
        raise UnsupportedError(f"{name!r} is of type {type.get('#')!r}, not a dense tensor")
    element, sizes = (item_at(field(type, "D", list), place) for place in range(2))
    return Variable(
        name,
        tensor_types.from_type_name(_kind(element)),
        tensor_types.shape(checked(size, int) for size in checked(sizes, list)),
    )


def _kind(typed: object) -> str:
    """The name of a type, without its dialect."""
    return field(typed, "#", str).partition(".")[2]
