"""The compiler: from a finished graph to a binary program."""

from __future__ import annotations

from fake_npu_ddk import binary
from fake_npu_ddk.compiler.memory import Plan
from fake_npu_ddk.compiler.tiling import best_rows
from fake_npu_ddk.compiler.weights import laid_out
from fake_npu_ddk.graph import Graph
from fake_npu_ddk.program import Program, Step
from fake_npu_ddk.status import NpuError, Status


def compile(graph: Graph, memory: int, effort: int = 1) -> bytes:
    """Compile a graph.

    Args:
        graph: what to compile, finished.
        memory: the bytes that the chip has.
        effort: 1 to 3: how many ways to divide the work are tried for each node. The best of more
            is never worse, and takes longer to find.

    Returns:
        The program, as `binary` has it.

    Raises:
        NpuError: the program does not fit the memory.
    """
    if effort not in (1, 2, 3):
        raise NpuError(Status.INVALID_ARGUMENT, f"an effort of {effort}, not 1 to 3")
    weights, offsets = laid_out(graph)
    plan = Plan(graph, offsets)
    steps = [
        Step(node.operator, node.inputs, node.output, node.settings, best_rows(graph, node, effort))
        for node in graph.nodes
    ]
    needed = len(weights) + plan.arena + plan.boundary
    if needed > memory:
        raise NpuError(Status.PROGRAM_TOO_LARGE, f"{needed} bytes of {memory}")
    return binary.write(Program(plan.located, steps, plan.arena, weights))
