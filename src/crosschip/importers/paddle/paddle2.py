"""Reader of Paddle 2 programs: the protobuf message `ProgramDesc` in `.pdmodel` and `__model__`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from crosschip.importers.paddle import messages, tensor_types
from crosschip.importers.paddle.messages import (
    Attr,
    BlockDesc,
    OpDesc,
    OpVar,
    ProgramDesc,
    VarDesc,
    Variant,
)
from crosschip.importers.paddle.program import (
    MAX_DEPTH,
    MAX_LEVELS,
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

_LOD_TENSOR, _FEED_LIST, _FETCH_LIST, _RAW = 7, 9, 10, 17
_NOT_SAVED = (_FEED_LIST, _FETCH_LIST, _RAW)

_BLOCK, _VAR, _VARS = 8, 13, 14
_FIELDS = {0: "i", 1: "f", 2: "s", 6: "b", 9: "l", 15: "float64", 16: "scalar"}
_LIST_FIELDS = {
    3: "ints",
    4: "floats",
    5: "strings",
    7: "bools",
    11: "longs",
    12: "float64s",
    17: "scalars",
}
_VARIANT_FIELDS = {1: "b", 2: "i", 3: "r"}


def metadata(data: bytes) -> dict[str, str]:
    """Return the version of a `ProgramDesc`.

    Raises:
        ModelError: the file is damaged.
    """
    number = messages.parse(ProgramDesc, data).version.version
    release = f", written by Paddle {_release(number)}" if number else ""
    return {"format": f"Paddle 2 (ProgramDesc){release}"}


def _release(number: int) -> str:
    """Return a version that Paddle encodes as `major * 1000000 + minor * 1000 + patch`."""
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"


def read(data: bytes) -> Program:
    """Read a program from the bytes of the file.

    Raises:
        ModelError: the file is damaged.
        UnsupportedError: the program has inputs that are not tensors.
    """
    return from_message(messages.parse(ProgramDesc, data))


def from_message(program: ProgramDesc) -> Program:
    """Convert a message to a program; raises as `read`."""
    if not program.blocks:
        raise ModelError("holds no program")
    block = program.blocks[0]
    variables = {_text(variable.name): variable for variable in block.vars}
    feeds: list[tuple[int, str]] = []
    fetches: list[tuple[int, str]] = []
    operators: list[Operator] = []
    blocks = _Blocks(program.blocks)
    for number, op in enumerate(block.ops):
        match op.type:
            case b"feed":
                feeds.append((_column(op), _only(op.outputs, "Out", number)))
            case b"fetch":
                fetches.append((_column(op), _only(op.inputs, "X", number)))
            case _:
                operators.append(blocks.operator(number, op))
    if not fetches:
        raise ModelError("is no inference model: it has no operator 'fetch'")
    return Program(
        inputs=[_input(name, variables) for name in _unique_names("inputs", feeds)],
        parameters={
            name: _tensor(name, variable)
            for name, variable in variables.items()
            if variable.persistable and variable.type.type not in _NOT_SAVED
        },
        operators=deque(operators),
        outputs={name: name for name in _unique_names("outputs", fetches)},
    )


def _column(op: OpDesc) -> int:
    """Return the index of a feed or fetch operator's variable in the model's signature."""
    return next((attribute.i for attribute in op.attrs if attribute.name == b"col"), 0)


def _only(slots: Iterable[OpVar], name: str, number: int) -> str:
    names = _slots(slots).get(name, ())
    if len(names) != 1:
        raise ModelError(f"operator {number}: {name} must be one variable, not {len(names)}")
    return names[0]


def _unique_names(what: str, columns: Iterable[tuple[int, str]]) -> list[str]:
    """Return the names in the order of their columns; raise ModelError for duplicates."""
    names = [name for _, name in sorted(columns)]
    for name, count in Counter(names).items():
        if count > 1:
            raise ModelError(f"there are two {what} called {name!r}")
    return names


class _Blocks:
    """The blocks of a program; each block but the first belongs to one operator."""

    def __init__(self, blocks: Sequence[BlockDesc]) -> None:
        self._blocks = blocks
        self._free = set(range(1, len(blocks)))
        self._numbering = NameCounter()
        self._depth = 0

    def operator(self, number: int, op: OpDesc) -> Operator:
        """Convert an operator and its blocks."""
        type = _keyword(op.type)
        attributes = {_keyword(attribute.name): attribute for attribute in op.attrs}
        return Operator(
            number=number,
            label=type,
            type=type,
            name=self._numbering.next(type),
            inputs=_slots(op.inputs) | _variable_attributes(attributes),
            outputs=_slots(op.outputs),
            attributes=Attributes(attributes, _value),
            blocks=tuple(self._block(a.block_idx) for a in op.attrs if a.type == _BLOCK),
        )

    def _block(self, index: int) -> Block:
        if index not in self._free:
            raise ModelError(f"block {index} is not there, or is run by two operators")
        if self._depth >= MAX_DEPTH:
            raise UnsupportedError(f"control flow is nested over {MAX_DEPTH} deep")
        self._free.discard(index)
        self._depth += 1
        ops = enumerate(self._blocks[index].ops)
        block = Block((), [self.operator(number, op) for number, op in ops], ())
        self._depth -= 1
        return block


def _slots(slots: Iterable[OpVar]) -> dict[str, Sequence[str]]:
    return {_keyword(slot.parameter): tuple(map(_text, slot.arguments)) for slot in slots}


def _variable_attributes(attributes: Mapping[str, Attr]) -> dict[str, Sequence[str]]:
    """Return the variables of the attributes whose values are variables."""
    variables: dict[str, Sequence[str]] = {}
    for name, attribute in attributes.items():
        if attribute.type == _VAR:
            variables[name] = (_text(attribute.var_name),)
        elif attribute.type == _VARS:
            variables[name] = tuple(map(_text, attribute.vars_name))
    return variables


def _value(attribute: Attr) -> Value:
    if name := _LIST_FIELDS.get(attribute.type):
        return tuple(map(_scalar, getattr(attribute, name)))
    if name := _FIELDS.get(attribute.type):
        return _scalar(getattr(attribute, name))
    raise ModelError(f"an attribute cannot be of type {attribute.type}")


def _scalar(value: bool | int | float | bytes | Variant) -> Scalar:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, bytes):
        return _text(value)
    if name := _VARIANT_FIELDS.get(value.type):
        return _scalar(getattr(value, name))
    raise ModelError(f"a number cannot be of type {value.type}")


def _input(name: str, variables: Mapping[str, VarDesc]) -> Variable:
    if name not in variables:
        raise ModelError(f"the input {name!r} is not declared")
    return _tensor(name, variables[name])


def _tensor(name: str, variable: VarDesc) -> Variable:
    if variable.type.type != _LOD_TENSOR:
        raise UnsupportedError(f"{name!r} is of type {variable.type.type}, not a dense tensor")
    try:
        described = variable.type.lod_tensor
        element_type, shape = tensor_types.from_desc(described.tensor)
        if not 0 <= described.lod_level <= MAX_LEVELS:
            raise ModelError(f"has {described.lod_level} levels of sequences (LoD)")
        return Variable(name, element_type, shape, levels=described.lod_level)
    except (ModelError, UnsupportedError) as error:
        raise prefix_error(f"variable {name!r}", error) from None


@lru_cache(maxsize=4096)
def _keyword(raw: bytes) -> str:
    """Decode the name of an operator type, slot or attribute; these repeat often."""
    return _text(raw)


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ModelError(f"{raw!r:.40} is not text") from None
