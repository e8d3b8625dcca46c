"""Branches and loops.

Paddle 3 has them as ONNX does. Paddle 2 writes a branch as two blocks that run or do not, and a
choice between what they made; a loop writes to variables outside of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from crosschip.importers.body import Body, Captures, import_widened_body
from crosschip.importers.paddle.arrays import Appended, Stacked, added, written_in
from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.program import Block
from crosschip.importers.paddle.run import run
from crosschip.importers.paddle.table import imports
from crosschip.importers.paddle.values import Values
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


@imports("if")
def if_(op: Context) -> None:
    """Paddle 3: two blocks that yield what they make."""
    then_block, else_block = _blocks(op, 2)
    bodies = [
        _body(op.values, block, (), (), block.outputs, f"{op.name}.{role}")
        for block, role in ((then_block, "then"), (else_block, "else"))
    ]
    results = op.results()
    _define(op.values, results, _branches(op, op.input("Cond"), bodies, results))


@imports("while")
def while_(op: Context) -> None:
    """Paddle 3 hands the state in and yields it; Paddle 2 reads and writes variables around it."""
    (block,) = _blocks(op, 1)
    (condition,) = op.variables("Condition")
    if block.outputs:
        names, yielded = block.inputs, block.outputs
        state = op.inputs("X")
        results = op.results()
    else:
        results = [name for name in op.results() if name != condition and name in op.values]
        names, yielded = results, [condition, *results]
        state = tuple(op.values[name] for name in results)

    arrays = [name for name in written_in(block) if _is_filled(op, name)]

    def import_body(types: Sequence[TensorType]) -> Body:
        body_types = (ITERATION, CONDITION, *types)
        unseen = (f"{op.name}.iteration", f"{op.name}.condition")
        inside = (*unseen, *names)
        return _body(op.values, block, inside, body_types, yielded, f"{op.name}.body", arrays)

    if not len(names) == len(yielded) - 1 == len(state) == len(results):
        raise ModelError(f"{len(state)} values go in, but {len(yielded) - 1} come back")
    state = _with_placeholders(state, import_body)
    types = [operand.type for operand in state]
    body = import_widened_body(import_body, types, (2, 1), op.values.open_axes, op.name)
    captured = list(body.captures.inside)
    inputs = (None, op.input("Condition"), *state, *captured)
    loop = Loop(op.name, inputs, bodies=[body.model(captured)], states=len(state))
    after = _inserted(op, loop, [*results, *arrays])
    _define(op.values, results, after[: len(results)])
    for name, tensors in zip(arrays, after[len(results) :], strict=True):
        op.values.arrays[name] = Stacked(tensors)
    if not block.outputs:
        # The loop has ended because it is false.
        op.values.define(condition, op.constant(np.zeros((1,), np.bool_), condition))


def _is_filled(op: Context, array: str) -> bool:
    """Tell whether a loop fills an array that is empty before; Paddle 2 does not say that it is."""
    return array in (*op.results(), *op.values.arrays) and not op.values.arrays.get(array)


def _with_placeholders(
    state: Sequence[Operand], import_body: Callable[[Sequence[TensorType]], Body]
) -> tuple[Operand, ...]:
    """The first state, with something of the right type where nothing has been assigned yet.

    Paddle 2 lets a float constant stand for a variable that only the body assigns.
    """
    if not any(operand.is_constant for operand in state):
        return tuple(state)
    body = import_body([operand.type for operand in state])
    read = {operand for operation in body.operations for operand in operation.inputs}
    pairs = zip(state, body.inputs[2:], body.outputs[1:][: len(state)], strict=True)
    return tuple(
        _anything(result)
        if first.is_constant
        and inside not in read
        and result.type.element_type is not first.type.element_type
        else first
        for first, inside, result in pairs
    )


@imports("conditional_block")
def conditional_block(op: Context) -> None:
    """Paddle 2: a block that runs or does not; where it does not, it leaves variables alone.

    What it makes anew is usually chosen from by a `select_input` and wanted nowhere else, so it is
    computed when it is asked for.
    """
    (block,) = _blocks(op, 1)
    if not op.flag("is_scalar_condition", False):
        raise UnsupportedError("is_scalar_condition False: blocks of such conditions are not run")
    branch = _Branch(op, block, op.input("Cond"))
    op.values.postpone(branch.results, branch.make)
    if branch.before:
        op.values.define_postponed(branch.make)
    else:
        op.values.branches.update(dict.fromkeys(branch.results, branch))


class _Branch:
    """A block that runs if a condition is true."""

    def __init__(self, op: Context, block: Block, condition: Operand) -> None:
        self.op = op
        self.condition = condition
        self.results = op.results()
        self.before = {name: op.values[name] for name in self.results if name in op.values}
        self.body = _body(op.values, block, (), (), self.results, f"{op.name}.then")

    def make(self) -> dict[str, Operand]:
        """Build what the variables stand for: what the block makes, or else what they were."""
        other = Values(Builder(f"{self.op.name}.else"), outer=self.op.values)
        outputs = [
            other.captures.of(self.before[name]) if name in self.before else _anything(operand)
            for name, operand in zip(self.results, self.body.outputs, strict=True)
        ]
        left = Body(other.builder.name, (), (), outputs, other.captures)
        values = _branches(self.op, self.condition, [self.body, left], self.results)
        return dict(zip(self.results, values, strict=True))

    def handing_out(self, names: Sequence[str]) -> Body:
        """The block with some of what it makes, in this order."""
        outputs = [self.body.outputs[self.results.index(name)] for name in names]
        return replace(self.body, outputs=outputs)

    def is_opposite(self, other: _Branch) -> bool:
        """Tell whether it runs just when the other one does not."""
        producer = _producer(self.op.values.builder, self.condition)
        return isinstance(producer, Not) and producer.input is other.condition


class _Choice:
    """Variables that are each what one of two opposite blocks makes.

    Every variable has its own `select_input`, so what has been gathered is built when the first of
    them is asked for.

    Attributes:
        names: of each variable, what the two blocks call it.
    """

    def __init__(self, op: Context, then: _Branch, otherwise: _Branch) -> None:
        self.op = op
        self.then = then
        self.otherwise = otherwise
        self.names: dict[str, tuple[str, str]] = {}

    def make(self) -> dict[str, Operand]:
        """Build the branch that the two blocks are."""
        del self.op.values.choices[self.then, self.otherwise]
        then, otherwise = zip(*self.names.values(), strict=True)
        bodies = [self.then.handing_out(then), self.otherwise.handing_out(otherwise)]
        values = _branches(self.op, self.then.condition, bodies, list(self.names))
        return dict(zip(self.names, values, strict=True))


@imports("select_input")
def select_input(op: Context) -> None:
    """Paddle 2: the value that the mask is the place of, of two if it chooses between blocks."""
    names = op.variables("X")
    mask, (result,) = op.input("Mask"), op.results()
    if mask.value is not None:
        op.values.define(result, op.values[names[int(mask.value.item())]])
    elif len(names) != 2:
        op.values.define(result, _one_of(op, mask, names))
    elif choice := _choice(op, mask, names):
        choice.names[result] = (names[1], names[0])
        op.values.postpone([result], choice.make)
    else:
        op.values.define(result, _copied(op, mask, names))


@imports("select_output")
def select_output(op: Context) -> None:
    """Paddle 2: hands a value to one of several variables; what reads the others is not run."""
    for name in op.results():
        op.values.define(name, op.input())


def _choice(op: Context, mask: Operand, names: Sequence[str]) -> _Choice | None:
    """The choice between two blocks that the same condition runs; `None` if they are not such."""
    values = op.values
    if not all(values.branches.get(name) and values.is_postponed(name) for name in names):
        return None
    otherwise, then = (values.branches[name] for name in names)
    producer = _producer(values.builder, mask)
    of_condition = isinstance(producer, Cast) and producer.input is then.condition
    if not (of_condition and otherwise.is_opposite(then)):
        return None
    choice: _Choice = values.choices.setdefault((then, otherwise), _Choice(op, then, otherwise))
    return choice


def _copied(op: Context, mask: Operand, names: Sequence[str]) -> Operand:
    """One of two values that have both been made."""
    condition = op.add(Cast, mask, CONDITION.element_type)
    bodies = []
    for name, role in zip(reversed(names), ("then", "else"), strict=True):
        inner = Values(Builder(f"{op.name}.{role}"), outer=op.values)
        bodies.append(Body(inner.builder.name, (), (), [inner[name]], inner.captures))
    return _branches(op, condition, bodies, op.results())[0]


def _one_of(op: Context, mask: Operand, names: Sequence[str]) -> Operand:
    """One of any number of values that have all been made."""
    value_so_far = op.values[names[0]]
    for place, name in enumerate(names[1:], 1):
        number = np.array(place, mask.type.element_type.dtype)
        condition = op.add(Equal, mask, number)
        bodies = []
        for value, role in ((op.values[name], "then"), (value_so_far, "else")):
            captures = Captures()
            bodies.append(Body(f"{op.name}.{role}", (), (), [captures.of(value)], captures))
        (value_so_far,) = _branches(op, condition, bodies, op.results(), several=True)
    return value_so_far


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
    """A block as a body that is given variables and hands others back.

    Where it is a loop's, it hands back besides what it adds to each of some arrays.
    """
    spend(operations=len(block.operators))
    inner = Values(Builder(name), outer=values)
    inputs = [Operand(variable, type_) for variable, type_ in zip(names, types, strict=True)]
    for variable, operand in zip(names, inputs, strict=True):
        inner.define(variable, operand)
    inner.arrays.update({array: Appended(inputs[0]) for array in arrays})
    run(block.operators, inner)
    outputs = [inner[variable] for variable in results]
    outputs += [added(inner.arrays[array], array) for array in arrays]
    return Body(name, inputs, inner.builder.operations, outputs, inner.captures)


def _branches(
    op: Context,
    condition: Operand,
    bodies: Sequence[Body],
    names: Sequence[str],
    *,
    several: bool = False,
) -> tuple[Operand, ...]:
    captured = list(dict.fromkeys(operand for body in bodies for operand in body.captures.inside))
    models = [body.model(captured) for body in bodies]
    name = op.values.builder.unique_name(op.name) if several else op.name
    return _inserted(op, If(name, (condition, *captured), bodies=models), names)


def _inserted(op: Context, operation: ControlFlow, names: Sequence[str]) -> tuple[Operand, ...]:
    new_name: Callable[[str], str] = op.values.new_name
    operation.coming_from([op.origin])  # it may be built when another one asks for it
    return op.values.builder.insert(operation, [new_name(name) for name in names])


def _define(values: Values, names: Sequence[str], operands: Sequence[Operand]) -> None:
    if len(names) != len(operands):
        raise ModelError(f"Out: is {len(names)} tensors, but must be {len(operands)}")
    for name, operand in zip(names, operands, strict=True):
        values.define(name, operand)


def _anything(operand: Operand) -> Operand:
    """A constant that may stand in for a value that nobody reads."""
    shape = [size if isinstance(size, int) else 0 for size in operand.type.shape or ()]
    builder = Builder()
    zeros = np.zeros(shape, operand.type.element_type.dtype)
    return builder.constant(zeros, f"{operand.name}.unset", operand.type.quantization)


def _producer(builder: Builder, operand: Operand) -> Operation | None:
    return next((o for o in reversed(builder.operations) if operand in o.outputs), None)
