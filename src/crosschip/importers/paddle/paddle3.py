"""Reader of Paddle 3 programs: the intermediate representation PIR as JSON, in `.json`.

Keys are short: `#` kind, `%` number of a value (0: none), `I` inputs, `O` outputs, `TT` type of a
value, `A` attributes, `N` name of an attribute, `AT` its typed value, `D` data. Names begin with
the number of a dialect.

Source: paddle/fluid/pir/serialize_deserialize/include/schema.h of Paddle 3.3.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from crosschip.importers.paddle import tensor_types
from crosschip.importers.paddle.dialect import COUNTERPARTS, Counterpart
from crosschip.importers.paddle.json_reader import JsonStream, check_kind, field, item, only, real
from crosschip.importers.paddle.program import (
    MAX_DEPTH,
    Attributes,
    Block,
    NameCounter,
    Operator,
    Program,
    Scalar,
    Value,
    Variable,
    prefix_error,
)
from crosschip.ir import ModelError, UnsupportedError
from crosschip.ops.packages import of_title

_DIALECTS = {"0": "builtin", "1": "pd_op", "2": "cf", "3": "custom_op", "4": "dist"}
_OPERATORS_PATH = ("program", "regions", "blocks", "ops")
"""The path of fields to the list of operators; lists on the path have one item."""
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
        raise ModelError("is no inference model: it has no operator 'fetch'")
    return Program(reader.inputs, reader.parameters, deque(reader.operators), reader.outputs)


class _Reader:
    """Builds a program from PIR operators.

    A value of PIR is a tensor or a list of tensors; it is represented by their variables' names.
    """

    def __init__(self) -> None:
        self.inputs: list[Variable] = []
        self.parameters: dict[str, Variable] = {}
        self.operators: list[Operator] = []
        self.outputs: dict[str, str] = {}
        self._values: dict[int, tuple[str, ...]] = {}
        self._numbering = NameCounter()
        self._names: set[str] = set()
        self._yielded: list[str] | None = None
        self._depth = 0

    def read_all(self, ops: Iterable[object]) -> None:
        """Read operators in order."""
        for number, op in enumerate(ops):
            try:
                self.read(number, op)
            except (ModelError, UnsupportedError) as error:
                raise prefix_error(f"operator {number}", error) from None

    def read(self, number: int, op: object) -> None:
        """Read an operator with its index in the file."""
        name = field(op, "#", str)
        if name == "p":
            self._parameter(op)
            return
        label = _expand_dialect(name)
        attributes = Attributes(_attributes(op), _value)
        read = [self._value(operand) for operand in field(op, "I", list)]
        results = field(op, "O", list)
        match label:
            case "pd_op.data" | "pd_op.feed":
                name = check_kind(attributes.get("name"), str)
                self.inputs.append(self._declare(name, only(results)))
            case "pd_op.fetch":
                self._output(check_kind(attributes.get("name"), str), only(only(read)))
            case "builtin.shadow_output":
                self._output(check_kind(attributes.get("output_name"), str), only(only(read)))
            case "builtin.combine":
                self._define(only(results), [name for names in read for name in names])
            case "builtin.split":
                for value, name in zip(results, only(read), strict=False):
                    self._define(value, [name])
            case "builtin.slice":
                self._define(only(results), [item(only(read), attributes.get("index"))])
            case "cf.yield":
                self._yielded = [name for names in read for name in names]
            case _:
                regions = check_kind(op, dict).get("regions", [])
                blocks = tuple(map(self._block, check_kind(regions, list)))
                replacement = self._operator(number, label, read, results, attributes, blocks)
                if replacement is not None:  # the operator overwrites its first input
                    self._values[field(item(field(op, "I", list), 0), "%", int)] = replacement

    def _block(self, region: object) -> Block:
        """Read a block of a control flow operator; it can read the values of outer blocks."""
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
            raise ModelError("a block of control flow does not yield")
        read = Block(inputs, self.operators, self._yielded)
        self._depth -= 1
        self.operators, self._yielded = operators, yielded
        return read

    def _parameter(self, op: object) -> None:
        name = check_kind(item(field(op, "A", list), 3), str)
        variable = self._declare(name, field(op, "O", dict))
        output_attributes = check_kind(check_kind(op, dict).get("OA", []), list)
        # Parameters that do not persist, such as training state, have no value in the file.
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
        """Add an operator; if it is in-place, return the new value of its first input."""
        base = label.removesuffix("_")
        in_place = label not in COUNTERPARTS and base != label and base in COUNTERPARTS
        counterpart = COUNTERPARTS.get(base if in_place else label)
        counterpart = counterpart or _custom_counterpart(label) or Counterpart(label)
        name = self._numbering.next(label.partition(".")[2].rstrip("_"))
        outputs = [
            self._define(value, self._result_names(f"{name}.{index}" if index else name, value))
            for index, value in enumerate(results)
        ]
        self.operators.append(
            Operator(
                number=number,
                label=label,
                type=counterpart.type,
                name=name,
                inputs=_assign_slots(counterpart.inputs, read),
                outputs=_assign_slots(counterpart.outputs, outputs),
                attributes=attributes.rename(counterpart.attributes),
                blocks=blocks,
            )
        )
        return outputs[0] if in_place and outputs else None

    def _result_names(self, name: str, value: object) -> Sequence[str]:
        """Create names for the variables of a result of operation `name`."""
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
            raise ModelError(f"value {number} is read before it is defined")
        return self._values[number]


def _custom_counterpart(label: str) -> Counterpart | None:
    """Return the counterpart of a custom operator, with the slot names of its definition."""
    operator = of_title(label.partition(".")[2].rstrip("_"))
    if operator is None:
        return None
    slots = ((name, getattr(operator, slot)) for name, slot in operator.tensors.items())
    counterpart = Counterpart(operator.title)
    counterpart.inputs = tuple(
        f"{n}*" if slot.variadic else n for n, slot in slots if not slot.parameter
    )
    counterpart.outputs = tuple(operator.results)
    return counterpart


def _assign_slots(
    slots: Sequence[str], values: Sequence[Sequence[str]]
) -> dict[str, Sequence[str]]:
    """Return the variables by slot; a slot whose name ends in `*` takes all remaining values."""
    variables: dict[str, Sequence[str]] = {}
    for index, slot in enumerate(slots[: len(values)]):
        if slot.endswith("*"):
            variables[slot[:-1]] = tuple(name for names in values[index:] for name in names)
        else:
            variables[slot] = values[index]
    return variables


def _operators(stream: JsonStream, path: Sequence[str]) -> Iterator[object]:
    """Parse the operators one by one.

    Args:
        stream: a stream at an object.
        path: the rest of `_OPERATORS_PATH`.
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
    """Parse the operators in the value of a field on the path."""
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


def _expand_dialect(name: str) -> str:
    """Replace the dialect's number by its name: `1.conv2d` becomes `pd_op.conv2d`."""
    dialect, _, rest = name.partition(".")
    return f"{_DIALECTS.get(dialect, dialect)}.{rest}"


def _attributes(op: object) -> dict[str, Mapping[str, Any]]:
    return {field(a, "N", str): field(a, "AT", dict) for a in field(op, "A", list)}


def _value(typed: Mapping[str, Any]) -> Value:
    match _kind(typed):
        case "a_array":
            return tuple(_scalar(check_kind(entry, dict)) for entry in field(typed, "D", list))
        case "a_intarray":
            return tuple(check_kind(entry, int) for entry in field(typed, "D", list))
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
            text = field(typed, "VD", str) if "VD" in typed else ""
            return _NOT_FINITE[text] if text in _NOT_FINITE else real(typed.get("D"))
        case "a_str":
            return field(typed, "D", str)
        case "a_dtype":
            return tensor_types.from_name(field(typed, "D", str))
        case "a_scalar":
            value = item(field(typed, "D", list), 1)
            return value if isinstance(value, bool) else real(value)
        case kind:
            raise UnsupportedError(f"attributes of type {kind!r} cannot be expressed")


def _tensor(name: str, type: Mapping[str, Any]) -> Variable:
    if type.get("#") != "0.t_dtensor":
        raise UnsupportedError(f"{name!r} is of type {type.get('#')!r}, not a dense tensor")
    element, sizes = (item(field(type, "D", list), index) for index in range(2))
    return Variable(
        name,
        tensor_types.from_type_name(_kind(element)),
        tensor_types.shape(check_kind(size, int) for size in check_kind(sizes, list)),
    )


def _kind(typed: object) -> str:
    """Return the kind of a type, without its dialect."""
    return field(typed, "#", str).partition(".")[2]
