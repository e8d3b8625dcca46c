"""The DDK of the fake NPU: what a vendor gives to those who write software for a chip.

It knows nothing of crosschip. A program comes about like this:

    graph = Graph()
    image = graph.input(Tensor(DataType.UINT8, (1, 224, 224, 3), scale=0.02, zero_point=128))
    ...                                     # graph.constant, graph.add
    graph.output(result)
    saved = compile(graph.finish(), memory=MEMORY)

    chip = Chip()
    program = chip.load(saved)
    blocks = [chip.memory.allocate(tensor.size) for tensor in (source, result)]
    chip.memory.copy_in(blocks[0], source, pixels)
    chip.submit(program, blocks[:1], blocks[1:]).wait()
    chip.memory.copy_out(blocks[1], result)
"""

from fake_npu_ddk.chip import MEMORY, Chip, Fence
from fake_npu_ddk.compiler import compile
from fake_npu_ddk.graph import Graph, Node
from fake_npu_ddk.operators import Operator, Settings
from fake_npu_ddk.status import NpuError, Status, text
from fake_npu_ddk.tensors import DataType, Tensor

VERSION = "1.0"
"""The version of the compiler, and of the programs that it makes."""

__all__ = [
    "MEMORY",
    "VERSION",
    "Chip",
    "DataType",
    "Fence",
    "Graph",
    "Node",
    "NpuError",
    "Operator",
    "Settings",
    "Status",
    "Tensor",
    "compile",
    "text",
]
