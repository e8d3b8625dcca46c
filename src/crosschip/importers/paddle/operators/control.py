"""Branches and loops.

Paddle 3 has `if` and `while` as in ONNX. In Paddle 2, a branch is two conditional blocks and a
selection between their outputs, and a loop writes to variables of the outer block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosschip.importers.body import Body, Captures, with_settled_state
from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.dispatch import import_operators
from crosschip.importers.paddle.program import Block
from crosschip.importers.paddle.values import LoopArray, StackedArray, Values
from crosschip.ir import (
    Builder,
    If,
    Loop,
    ModelError,
    Operand,
    Operation,
    TensorType,
    UnsupportedError,
)
from crosschip.ir.budget import spend
from crosschip.ir.control import ControlFlow
from crosschip.ir.loops import CONDITION, ITERATION
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.logical import Not

_WRITES: Mapping[str, tuple[str, str]] = {
    "write_to_array": ("outputs", "Out"),
    "pd_op.array_write_": ("inputs", "Array"),
}
"""The operators that write to tensor arrays, and the slot with the array."""


@imports("if")
def if_(op: Context) -> None:
    """Import a branch of Paddle 3: two blocks that yield the results."""
    then_block, else_block = _blocks(op, 2)
    bodies = [
        _body(op.values, block, (), (), block.outputs, f"{op.name}.{role}")
        for block, role in ((then_block, "then"), (else_block, "else"))
    ]
    results = op.output_names()
    _define(op.values, results, _branches(op, op.input("Cond"), bodies, results))


@imports("while")
def while_(op: Context) -> None:
    """Import a loop, whose state is passed and yielded (Paddle 3) or outer variables (Paddle 2)."""
    (block,) = _blocks(op, 1)
    (condition,) = op.variables("Condition")
    if block.outputs:
        names, yielded = block.inputs, block.outputs
        state = op.inputs("X")
        results = op.output_names()
    else:
        results = [name for name in op.output_names() if name != condition and name in op.values]
        names, yielded = results, [condition, *results]
        state = tuple(op.values[name] for name in results)

    # The loop fills arrays that are empty, or in Paddle 2 not declared, before it.
    arrays = [
        name
        for name in _written_arrays(block)
        if name in (*op.output_names(), *op.values.arrays) and not op.values.arrays.get(name)
    ]

    def import_body(types: Sequence[TensorType]) -> Body:
        body_types = (ITERATION, CONDITION, *types)
        inputs = (f"{op.name}.iteration", f"{op.name}.condition", *names)
        return _body(op.values, block, inputs, body_types, yielded, f"{op.name}.body", arrays)

    if not len(names) == len(yielded) - 1 == len(state) == len(results):
        raise ModelError(f"the loop has {len(state)} states, but yields {len(yielded) - 1}")
    state = _with_placeholders(state, import_body)
    types = [operand.type for operand in state]
    body = with_settled_state(import_body, types, (2, 1), op.values.open_axes, op.name)
    captured = list(body.captures.inside)
    inputs = (None, op.input("Condition"), *state, *captured)
    loop = Loop(op.name, inputs, bodies=[body.model(captured)], states=len(state))
    outputs = _insert(op, loop, [*results, *arrays])
    _define(op.values, results, outputs[: len(results)])
    for name, tensors in zip(arrays, outputs[len(results) :], strict=True):
        op.values.arrays[name] = StackedArray(tensors)
    if not block.outputs:
        # The condition is false after the loop.
        op.values.define(condition, op.constant(np.zeros((1,), np.bool_), condition))


def _written_arrays(block: Block) -> Sequence[str]:
    """Return the tensor arrays that the operators of a block write to."""
    names: dict[str, None] = {}
    for operator in block.operators:
        if operator.type in _WRITES:
            side, slot = _WRITES[operator.type]
            names.update(dict.fromkeys(getattr(operator, side).get(slot, ())))
    return list(names)


def _appended_tensor(array: object, name: str) -> Operand:
    """Return the tensor that a loop's body appends; raise UnsupportedError if there is none."""
    if not isinstance(array, LoopArray) or array.appended is None:
        raise UnsupportedError(f"{name!r} is an array that a loop does not write in each iteration")
    return array.appended


def _with_placeholders(
    state: Sequence[Operand], import_body: Callable[[Sequence[TensorType]], Body]
) -> tuple[Operand, ...]:
    """Replace constants of the wrong type in the initial state of a loop.

    Paddle 2 initializes variables that are assigned in the body only with a float constant.
    """
    if not any(operand.is_constant for operand in state):
        return tuple(state)
    body = import_body([operand.type for operand in state])
    read = {operand for operation in body.operations for operand in operation.inputs}
    pairs = zip(state, body.inputs[2:], body.outputs[1:][: len(state)], strict=True)
    return tuple(
        _placeholder(result)
        if first.is_constant
        and inner not in read
        and result.type.element_type is not first.type.element_type
        else first
        for first, inner, result in pairs
    )


@imports("conditional_block")
def conditional_block(op: Context) -> None:
    """Import a conditional block of Paddle 2; variables keep their values if it does not run.

    Variables that did not exist before are deferred: usually only a `select_input` reads them.
    """
    (block,) = _blocks(op, 1)
    if not op.flag("is_scalar_condition", False):
        raise UnsupportedError("is_scalar_condition False: blocks of such conditions are not run")
    branch = _Branch(op, block, op.input("Cond"))
    op.values.defer(branch.results, branch.make)
    if branch.previous:
        op.values.define_deferred(branch.make)
    else:
        op.values.branches.update(dict.fromkeys(branch.results, branch))


class _Branch:
    """A conditional block of Paddle 2."""

    def __init__(self, op: Context, block: Block, condition: Operand) -> None:
        self.op = op
        self.condition = condition
        self.results = op.output_names()
        self.previous = {name: op.values[name] for name in self.results if name in op.values}
        self.body = _body(op.values, block, (), (), self.results, f"{op.name}.then")

    def make(self) -> dict[str, Operand]:
        """Build an `If` that returns the block's outputs, or else the values before it."""
        else_values = Values(Builder(f"{self.op.name}.else"), outer=self.op.values)
        outputs = [
            else_values.captures.of(self.previous[name])
            if name in self.previous
            else _placeholder(operand)
            for name, operand in zip(self.results, self.body.outputs, strict=True)
        ]
        unchanged = Body(else_values.builder.name, (), (), outputs, else_values.captures)
        values = _branches(self.op, self.condition, [self.body, unchanged], self.results)
        return dict(zip(self.results, values, strict=True))

    def with_outputs(self, names: Sequence[str]) -> Body:
        """Return the body with some of its outputs, in this order."""
        outputs = [self.body.outputs[self.results.index(name)] for name in names]
        return replace(self.body, outputs=outputs)

    def is_opposite(self, other: _Branch) -> bool:
        """Return whether the condition is the negation of the other block's condition."""
        producer = _producer(self.op.values.builder, self.condition)
        return isinstance(producer, Not) and producer.input is other.condition


class _Selection:
    """Selections, with the same mask, between the outputs of two opposite conditional blocks.

    Each variable has its own `select_input`. They are collected until the first variable is read,
    and built as one `If`.

    Attributes:
        names: for each variable, the variables of the two blocks that it is selected from.
    """

    def __init__(self, op: Context, then: _Branch, otherwise: _Branch) -> None:
        self.op = op
        self.then = then
        self.otherwise = otherwise
        self.names: dict[str, tuple[str, str]] = {}

    def make(self) -> dict[str, Operand]:
        """Build the `If` of the two blocks."""
        del self.op.values.choices[self.then, self.otherwise]
        then, otherwise = zip(*self.names.values(), strict=True)
        bodies = [self.then.with_outputs(then), self.otherwise.with_outputs(otherwise)]
        values = _branches(self.op, self.then.condition, bodies, list(self.names))
        return dict(zip(self.names, values, strict=True))


@imports("select_input")
def select_input(op: Context) -> None:
    """Import the selection in Paddle 2 of the value whose index is the mask."""
    names = op.variables("X")
    mask, (result,) = op.input("Mask"), op.output_names()
    if mask.value is not None:
        op.values.define(result, op.values[names[int(mask.value.item())]])
    elif len(names) != 2:
        op.values.define(result, _select_one(op, mask, names))
    elif choice := _selection(op, mask, names):
        choice.names[result] = (names[1], names[0])
        op.values.defer([result], choice.make)
    else:
        op.values.define(result, _select_value(op, mask, names))


@imports("select_output")
def select_output(op: Context) -> None:
    """Import a demultiplexer of Paddle 2: readers of the variables not selected do not run."""
    for name in op.output_names():
        op.values.define(name, op.input())


def _selection(op: Context, mask: Operand, names: Sequence[str]) -> _Selection | None:
    """Return the selection between two opposite blocks; `None` if the values are others."""
    values = op.values
    if not all(values.branches.get(name) and values.is_deferred(name) for name in names):
        return None
    otherwise, then = (values.branches[name] for name in names)
    producer = _producer(values.builder, mask)
    of_condition = isinstance(producer, Cast) and producer.input is then.condition
    if not (of_condition and otherwise.is_opposite(then)):
        return None
    choice: _Selection = values.choices.setdefault(
        (then, otherwise), _Selection(op, then, otherwise)
    )
    return choice


def _select_value(op: Context, mask: Operand, names: Sequence[str]) -> Operand:
    """Build an `If` that selects one of two existing values."""
    condition = op.add(Cast, mask, CONDITION.element_type)
    bodies = []
    for name, role in zip(reversed(names), ("then", "else"), strict=True):
        inner = Values(Builder(f"{op.name}.{role}"), outer=op.values)
        bodies.append(Body(inner.builder.name, (), (), [inner[name]], inner.captures))
    return _branches(op, condition, bodies, op.output_names())[0]


def _select_one(op: Context, mask: Operand, names: Sequence[str]) -> Operand:
    """Build nested `If` operations that select one of several existing values."""
    result = op.values[names[0]]
    for index, name in enumerate(names[1:], 1):
        condition = op.add(Equal, mask, np.array(index, mask.type.element_type.dtype))
        bodies = []
        for value, role in ((op.values[name], "then"), (result, "else")):
            captures = Captures()
            bodies.append(Body(f"{op.name}.{role}", (), (), [captures.of(value)], captures))
        (result,) = _branches(op, condition, bodies, op.output_names(), unique=True)
    return result


def _blocks(op: Context, count: int) -> Sequence[Block]:
    if len(op.blocks) != count:
        raise ModelError(f"runs {len(op.blocks)} blocks, but must run {count}")
    return op.blocks


def _body(
    values: Values,
    block: Block,
    names: Sequence[str],
    types: Sequence[TensorType],
    results: Sequence[str],
    name: str,
    arrays: Sequence[str] = (),
) -> Body:
    """Import a block as a body with inputs `names` and outputs `results`.

    The tensors that a loop's body appends to `arrays` are further outputs.
    """
    spend(operations=len(block.operators))
    inner = Values(Builder(name), outer=values)
    inputs = [Operand(variable, type_) for variable, type_ in zip(names, types, strict=True)]
    for variable, operand in zip(names, inputs, strict=True):
        inner.define(variable, operand)
    inner.arrays.update({array: LoopArray(inputs[0]) for array in arrays})
    import_operators(block.operators, inner)
    outputs = [inner[variable] for variable in results]
    outputs += [_appended_tensor(inner.arrays[array], array) for array in arrays]
    return Body(name, inputs, inner.builder.operations, outputs, inner.captures)


def _branches(
    op: Context,
    condition: Operand,
    bodies: Sequence[Body],
    names: Sequence[str],
    *,
    unique: bool = False,
) -> tuple[Operand, ...]:
    captured = list(dict.fromkeys(operand for body in bodies for operand in body.captures.inside))
    models = [body.model(captured) for body in bodies]
    name = op.values.builder.unique_name(op.name) if unique else op.name
    return _insert(op, If(name, (condition, *captured), bodies=models), names)


def _insert(op: Context, operation: ControlFlow, names: Sequence[str]) -> tuple[Operand, ...]:
    new_name: Callable[[str], str] = op.values.new_name
    operation.coming_from([op.origin])  # a deferred one is built during another operator's import
    return op.values.builder.insert(operation, [new_name(name) for name in names])


def _define(values: Values, names: Sequence[str], operands: Sequence[Operand]) -> None:
    if len(names) != len(operands):
        raise ModelError(f"Out: is {len(names)} tensors, but must be {len(operands)}")
    for name, operand in zip(names, operands, strict=True):
        values.define(name, operand)


def _placeholder(operand: Operand) -> Operand:
    """Return a constant of the operand's type for a value that is never read."""
    shape = [size if isinstance(size, int) else 0 for size in operand.type.shape or ()]
    builder = Builder()
    zeros = np.zeros(shape, operand.type.element_type.dtype)
    return builder.constant(zeros, f"{operand.name}.unset", operand.type.quantization)


def _producer(builder: Builder, operand: Operand) -> Operation | None:
    return next((o for o in reversed(builder.operations) if operand in o.outputs), None)
