"""Models of any number of operations, written in every format that is imported."""

from __future__ import annotations

import json
import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from crosschip.importers.paddle import messages
from crosschip.ir import Array

SHAPE = (1, 8)
"""Of every value."""


@dataclass(frozen=True, slots=True)
class Node:
    """An operation of a graph.

    Attributes:
        type: `relu`, `sigmoid`, `tanh` or `add`.
        inputs: the numbers of the values that it reads. Value 0 is the graph's input; the node at
            index i makes value i + 1; values below 0 are constants.
    """

    type: str
    inputs: tuple[int, ...]


Graph = list[Node]
"""The last node makes the graph's output."""


def chain(size: int) -> Graph:
    """Operations one after the other; a fifth of them only makes a constant for the next.

    Args:
        size: how many; a multiple of 5.
    """
    graph: Graph = []
    for start in range(0, size, 5):
        graph += [
            Node("relu", (start,)),
            Node("add", (start + 1, -start - 1)),
            Node("sigmoid", (-start - 2,)),
            Node("add", (start + 2, start + 3)),
            Node("tanh", (start + 4,)),
        ]
    return graph


def wide(size: int) -> Graph:
    """Half of the operations read the graph's input, the others add the results up in a tree.

    Args:
        size: how many; even.
    """
    leaves = size // 2
    graph = [
        Node("add", (0, -i - 1)) if i % 2 else Node("sigmoid", (-i - 1 if i % 10 == 8 else 0,))
        for i in range(leaves)
    ]
    values = deque(range(1, leaves + 1))
    while len(values) > 1:
        graph.append(Node("add", (values.popleft(), values.popleft())))
        values.append(len(graph))
    return [*graph, Node("tanh", (len(graph),))]


def constants_of(graph: Graph) -> dict[int, Array]:
    """The constants that a graph reads, by number."""
    numbers = [value for node in graph for value in node.inputs if value < 0]
    return {number: np.full(SHAPE, number % 7 / 7, np.float32) for number in numbers}


def write_onnx(graph: Graph, path: Path) -> None:
    """Write an `.onnx` file."""
    nodes = [
        helper.make_node(node.type.capitalize(), [_name(v) for v in node.inputs], [_name(i)])
        for i, node in enumerate(graph, 1)
    ]
    constants = [numpy_helper.from_array(c, _name(v)) for v, c in constants_of(graph).items()]
    ends = [
        helper.make_tensor_value_info(_name(value), TensorProto.FLOAT, SHAPE)
        for value in (0, len(graph))
    ]
    proto = helper.make_graph(nodes, "synthetic", ends[:1], ends[1:], constants)
    opset = helper.make_operatorsetid("", 17)
    onnx.save(helper.make_model(proto, opset_imports=[opset], ir_version=8), path)


def _name(value: int) -> str:
    return f"v{value}" if value >= 0 else f"c{-value}"


_FLOAT32, _LOD_TENSOR, _FEED, _FETCH = 5, 7, 9, 10
"""Numbers of types in Paddle's `framework.proto`."""


def write_pdmodel(graph: Graph, path: Path) -> None:
    """Write a `.pdmodel` file of Paddle 2, with its `.pdiparams` beside it."""
    constants = constants_of(graph)
    program: Any = messages.message_class(messages.ProgramDesc)()
    block = program.blocks.add()
    block.vars.add(name=b"feed").type.type = _FEED
    block.vars.add(name=b"fetch").type.type = _FETCH
    for value in (*range(len(graph) + 1), *constants):
        _declare(block, value)
    _operator(block, "feed", ["feed"], _name(0)).attrs.add(name=b"col", type=0, i=0)
    for index, node in enumerate(graph, 1):
        type = "elementwise_add" if node.type == "add" else node.type
        _operator(block, type, [_name(value) for value in node.inputs], _name(index))
    fetch = _operator(block, "fetch", [_name(len(graph))], "fetch")
    fetch.attrs.add(name=b"col", type=0, i=0)
    path.write_bytes(program.SerializeToString())
    _write_parameters(constants, path)


def _declare(block: Any, value: int) -> None:
    variable = block.vars.add(name=_name(value).encode(), persistable=value < 0)
    variable.type.type = _LOD_TENSOR
    variable.type.lod_tensor.tensor.data_type = _FLOAT32
    variable.type.lod_tensor.tensor.dims.extend(SHAPE)


def _operator(block: Any, type: str, inputs: Sequence[str], output: str) -> Any:
    operator = block.ops.add(type=type.encode())
    for slot, name in zip("XY", inputs, strict=False):
        operator.inputs.add(parameter=slot.encode()).arguments.append(name.encode())
    operator.outputs.add(parameter=b"Out").arguments.append(output.encode())
    return operator


def _write_parameters(constants: Mapping[int, Array], program: Path) -> None:
    """Write records of no level of detail, in the order of their names, beside a program."""
    tensor = messages.message_class(messages.TensorDesc)(data_type=_FLOAT32, dims=SHAPE)
    described = tensor.SerializeToString()
    head = struct.pack("<IQIi", 0, 0, 0, len(described)) + described
    records = [head + constants[value].tobytes() for value in sorted(constants, key=_name)]
    program.with_suffix(".pdiparams").write_bytes(b"".join(records))


def write_json(graph: Graph, path: Path) -> None:
    """Write a `.json` file of Paddle 3, with its `.pdiparams` beside it."""
    constants = constants_of(graph)
    numbers = {
        value: number for number, value in enumerate([*constants, *range(len(graph) + 1)], 1)
    }
    ops: list[dict[str, object]] = [
        {"#": "p", "A": [0, 0, 0, _name(value)], "O": _value(numbers[value])} for value in constants
    ]
    ops.append(_op("data", [], numbers[0], name=_name(0)))
    for index, node in enumerate(graph, 1):
        ops.append(_op(node.type, [numbers[value] for value in node.inputs], numbers[index]))
    last = numbers[len(graph)]
    ops.append(_op("fetch", [last], last + 1, name=_name(len(graph))))
    block = {"#": "block_0", "args": [], "ops": ops}
    program = {"regions": [{"#": "region_0", "blocks": [block]}]}
    code = {"magic": "pir", "trainable": False, "version": 1}
    path.write_text(json.dumps({"base_code": code, "program": program}))
    _write_parameters(constants, path)


def _op(type: str, inputs: list[int], output: int, **attributes: str) -> dict[str, object]:
    return {
        "#": f"1.{type}",
        "A": [{"N": n, "AT": {"#": "0.a_str", "D": text}} for n, text in attributes.items()],
        "I": [{"%": number} for number in inputs],
        "O": [_value(output)],
    }


def _value(number: int) -> dict[str, object]:
    tensor = [{"#": "0.t_f32"}, list(SHAPE), "NCHW", [], 0]
    return {"%": number, "TT": {"#": "0.t_dtensor", "D": tensor}}


GRAPHS: Mapping[str, Callable[[int], Graph]] = {"chain": chain, "wide": wide}
WRITERS: Mapping[str, Callable[[Graph, Path], None]] = {
    ".pdmodel": write_pdmodel,
    ".json": write_json,
    ".onnx": write_onnx,
}
