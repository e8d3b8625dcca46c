"""Blocks: they partition a model, depend on each other without cycles, and keep to their limits."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.modelling import chain, float32, model_of

from crosschip.ir import Builder, Model, Operand
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.reduction import ReduceMax
from crosschip.runtime.costs.blocks import LEAST_SECONDS, MOST_BLOCKS, Block, blocks_of

LARGE = float32(1 << 18)
"""A tensor that takes a nominal device longer than a block's least duration to read and write."""


@st.composite
def graphs(draw: st.DrawFn) -> Model:
    """Models of up to 30 operations on large and small tensors, with any connections."""
    b = Builder("graph")
    operands = {size: [b.input(f"x{size}", float32(size))] for size in (4, 1 << 16, 1 << 18)}
    for _ in range(draw(st.integers(0, 30))):
        known = operands[draw(st.sampled_from(sorted(operands)))]
        recent = known[-draw(st.sampled_from([1, 2, 9])) :]
        if draw(st.booleans()):
            known.append(b.add(Relu, draw(st.sampled_from(recent))))
        else:
            known.append(b.add(Add, recent[0], draw(st.sampled_from(known))))
    for index, operand in enumerate([known[-1] for known in operands.values()]):
        b.output(f"y{index}", operand)
    return b.build()


def check(model: Model, blocks: Sequence[Block]) -> dict[int, int]:
    """Assert that blocks partition a model in an executable order; return each operation's."""
    block_of: dict[int, int] = {}
    known: set[Operand] = set(model.inputs.values())
    readers: dict[Operand, set[int]] = {}
    for number, block in enumerate(blocks):
        assert list(block.operations) == sorted(block.operations)
        assert known.issuperset(block.inputs)
        known.update(block.outputs)
        for index in block.operations:
            assert block_of.setdefault(index, number) == number
            for operand in model.operations[index].inputs:
                if operand is not None and not operand.is_constant:
                    readers.setdefault(operand, set()).add(number)
    assert sorted(block_of) == list(range(len(model.operations)))
    shown = set(model.outputs.values())
    for index, operation in enumerate(model.operations):
        for output in operation.outputs:
            outside = readers.get(output, set()) - {block_of[index]}
            is_output = output in blocks[block_of[index]].outputs
            assert is_output == bool(outside or output in shown)
            for reader in outside:
                assert output in blocks[reader].inputs
    return block_of


@given(graphs(), st.data())
def test_blocks_partition_a_model_without_cycles(model: Model, data: st.DataObject) -> None:
    count = len(model.operations)
    keys = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    block_of = check(model, blocks_of(model, keys))
    for index, block in block_of.items():
        members = [other for other, number in block_of.items() if number == block]
        assert {keys[other] for other in members} == {keys[index]}
    check(model, blocks_of(model))


@given(graphs(), st.data())
def test_groups_stay_in_one_block(model: Model, data: st.DataObject) -> None:
    count = len(model.operations)
    first = data.draw(st.integers(0, max(0, count - 1)))
    group = range(first, min(count, first + data.draw(st.integers(2, 5))))
    block_of = check(model, blocks_of(model, groups=[group] if len(group) > 1 else []))
    # Consecutive operations are convex, so nothing prevents that they are in one block.
    assert len({block_of[index] for index in group}) <= 1


def test_a_chain_is_cut_between_its_operations() -> None:
    model = model_of(lambda b, x: b.add(Relu, b.add(Relu, b.add(Relu, x))), LARGE)
    assert [block.operations for block in blocks_of(model)] == [(0,), (1,), (2,)]


def test_small_operations_are_joined() -> None:
    assert [b.operations for b in blocks_of(chain(*[Relu] * 50))] == [tuple(range(50))]


def test_what_has_no_products_stays_with_the_product_before_it() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        for _ in range(3):
            weights = b.constant(np.ones((256, 256), np.float32))
            x = b.add(Relu, b.add(MatMul, x, weights))
        return x

    model = model_of(make, float32(256, 256))
    assert [block.operations for block in blocks_of(model)] == [(0, 1), (2, 3), (4, 5)]


def test_a_residual_connection_is_inside_a_block() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        x = b.add(Relu, x)
        for _ in range(2):
            x = b.add(Add, x, b.add(Tanh, b.add(Relu, x)))
        return x

    blocks = blocks_of(model_of(make, float32(1 << 16)))
    assert [block.operations for block in blocks] == [(0,), (1, 2, 3), (4, 5, 6)]


def test_large_branches_are_blocks() -> None:
    """As in an inception module, whose operations are listed in turns."""

    def make(b: Builder, x: Operand) -> Operand:
        branches = [x, x]
        for _ in range(4):
            branches = [b.add(Relu, branches[0]), b.add(Tanh, branches[1])]
        return b.add(Concat, branches, 0)

    blocks = blocks_of(model_of(make, LARGE))
    types = [{block.operations[0] % 2, block.operations[-1] % 2} for block in blocks[:-1]]
    assert sorted(map(min, types)) == [0] * (len(types) // 2) + [1] * (len(types) // 2)
    assert all(len(each) == 1 for each in types)
    assert blocks[-1].operations[-1] == 8


def test_a_large_part_that_nothing_separates_is_cut_where_few_bytes_cross() -> None:
    """A mask that all layers read, as in BERT, leaves no tensor that separates the model."""

    def layers(b: Builder, x: Operand, mask: Operand) -> Operand:
        mask = b.add(Relu, mask)
        for _ in range(8):
            wide = b.add(Concat, [x] * 8, 0)
            x = b.add(Add, b.add(ReduceMax, wide, np.array([0]), True), mask)
        return x

    model = model_of(layers, float32(1, 1 << 14), float32(1))
    blocks = blocks_of(model)
    check(model, blocks)
    concatenations = [
        [model.operations[index].type for index in block.operations].count("CONCAT")
        for block in blocks
    ]
    assert concatenations == [1] * 8
    assert len({block.signature for block in blocks[1:-1]}) == 1


def test_a_model_has_a_limited_number_of_blocks() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        for _ in range(1000):
            x = b.add(Relu, x)
        return x

    model = model_of(make, LARGE)
    blocks = blocks_of(model)
    check(model, blocks)
    assert MOST_BLOCKS / 2 <= len(blocks) <= MOST_BLOCKS
    assert all(block.work.nominal_seconds >= LEAST_SECONDS for block in blocks)


def test_a_model_without_operations_has_no_blocks() -> None:
    assert blocks_of(model_of(lambda b, x: x, LARGE)) == []


def test_the_cost_of_cutting_grows_with_the_operations_only() -> None:
    """Ten times the operations, also with long connections, take about ten times as long."""

    def graph(count: int) -> Model:
        def make(b: Builder, x: Operand) -> Operand:
            operands = [x]
            for index in range(count):
                far = operands[max(0, index - 37)] if index % 3 else operands[index // 2]
                operands.append(b.add(Add, operands[-1], far))
            return operands[-1]

        return model_of(make, float32(1 << 8))

    small, large = graph(1_000), graph(10_000)
    seconds = []
    for model in (small, large):
        begin = time.process_time()
        blocks_of(model)
        seconds.append(time.process_time() - begin)
    assert seconds[1] < 100 * seconds[0] + 0.5


@settings(max_examples=20)
@given(graphs())
def test_blocks_are_deterministic(model: Model) -> None:
    assert blocks_of(model) == blocks_of(model)
