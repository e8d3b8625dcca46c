"""The chip: memory by handles, a queue, and programs that do not disturb each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.fake_npu.graphs import MADE, POOLED, SOURCE, picture, ran, small

from fake_npu_ddk import Chip, DataType, NpuError, Status, Tensor, compile
from fake_npu_ddk.compiler.tiling import best_rows, traffic

MEMORY = 1 << 20


def test_memory_is_limited_and_comes_back(chip: Chip) -> None:
    whole = chip.memory.size
    first = chip.memory.allocate(whole - 64)
    assert chip.memory.free == 64
    with pytest.raises(NpuError) as caught:
        chip.memory.allocate(65)
    assert caught.value.status is Status.OUT_OF_MEMORY
    chip.memory.release(first)
    chip.memory.release(chip.memory.allocate(whole))
    assert chip.memory.free == whole


def test_handles_that_are_none(chip: Chip) -> None:
    block = chip.memory.allocate(64)
    chip.memory.release(block)
    for function in (chip.memory.release, chip.memory.block, chip.unload):
        with pytest.raises(NpuError) as caught:
            function(block)
        assert caught.value.status is Status.INVALID_HANDLE


@pytest.mark.parametrize("shape", [(1,), (17,), (3, 5), (2, 4, 16), (1, 3, 2, 33)])
def test_what_is_copied_in_comes_out(chip: Chip, shape: tuple[int, ...]) -> None:
    for type_ in DataType:
        tensor = Tensor(type_, shape, 1.0)
        assert tensor.aligned_shape[-1] % 16 == 0
        elements = np.random.default_rng(0).integers(0, 99, shape).astype(type_.dtype)
        block = chip.memory.allocate(tensor.size)
        chip.memory.copy_in(block, tensor, elements)
        np.testing.assert_array_equal(chip.memory.copy_out(block, tensor), elements)


def test_a_tensor_larger_than_its_block(chip: Chip) -> None:
    block = chip.memory.allocate(64)
    with pytest.raises(NpuError) as caught:
        chip.memory.copy_out(block, Tensor(DataType.UINT8, (65,), 1.0))
    assert caught.value.status is Status.INVALID_ARGUMENT


def test_a_program_takes_memory_until_it_is_unloaded(chip: Chip) -> None:
    free = chip.memory.free
    program = chip.load(compile(small(), MEMORY))
    assert chip.memory.free < free
    chip.unload(program)
    assert chip.memory.free == free


def test_a_program_that_does_not_fit() -> None:
    saved = compile(small(), MEMORY)
    with pytest.raises(NpuError) as caught:
        compile(small(), 1024)
    assert caught.value.status is Status.PROGRAM_TOO_LARGE
    chip = Chip(512)
    with pytest.raises(NpuError) as caught:
        chip.load(saved)
    assert caught.value.status is Status.OUT_OF_MEMORY
    assert chip.memory.free == 512
    chip.close()


def test_runs_are_taken_on_and_done_in_order(chip: Chip) -> None:
    program = chip.load(compile(small(), MEMORY))
    read = chip.memory.allocate(SOURCE.size)
    chip.memory.copy_in(read, SOURCE, picture())
    made = [chip.memory.allocate(tensor.size) for tensor in (MADE, POOLED)]
    fences = [chip.submit(program, [read], made) for _ in range(20)]
    assert fences[-1].wait()
    assert all(fence.passed for fence in fences)


def test_blocks_that_a_program_does_not_take(chip: Chip) -> None:
    program = chip.load(compile(small(), MEMORY))
    small_block = chip.memory.allocate(64)
    for inputs, outputs, status in (
        ([], [], Status.INVALID_ARGUMENT),
        ([small_block], [small_block, small_block], Status.INVALID_ARGUMENT),
        ([999], [small_block, small_block], Status.INVALID_HANDLE),
    ):
        with pytest.raises(NpuError) as caught:
            chip.submit(program, inputs, outputs)
        assert caught.value.status is status


def test_a_chip_that_is_closed_ends_what_it_has_taken_on() -> None:
    chip = Chip()
    program = chip.load(compile(small(), MEMORY))
    blocks = [chip.memory.allocate(tensor.size) for tensor in (SOURCE, MADE, POOLED)]
    fences = [chip.submit(program, blocks[:1], blocks[1:]) for _ in range(5)]
    chip.close()
    chip.close()
    assert all(fence.passed for fence in fences)
    with pytest.raises(NpuError) as caught:
        chip.submit(program, blocks[:1], blocks[1:])
    assert caught.value.status is Status.CHIP_CLOSED


def test_two_programs_from_several_threads(chip: Chip) -> None:
    saved = compile(small(), MEMORY)
    programs = [chip.load(saved), chip.load(compile(small(), MEMORY, effort=3))]
    expected = [ran(chip, programs[0], picture(seed), MADE, POOLED) for seed in range(8)]

    def work(number: int) -> None:
        made = ran(chip, programs[number % 2], picture(number % 8), MADE, POOLED)
        for one, other in zip(made, expected[number % 8], strict=True):
            np.testing.assert_array_equal(one, other)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(40)))


def test_more_effort_computes_the_same_and_moves_no_more() -> None:
    graph = small()
    node = graph.nodes[0]
    rows = [best_rows(graph, node, effort) for effort in (1, 2)]
    assert traffic(graph, node, rows[1], 1) <= traffic(graph, node, rows[0], 1)
