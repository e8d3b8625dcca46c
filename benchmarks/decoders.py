"""A decoder of text with random weights, as exporters write one that keeps keys and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, WIDTH, HEADS, WORDS, LONGEST = 4, 384, 6, 2000, 256
DEPTH = WIDTH // HEADS
_LOWEST = float(np.finfo(np.float32).min)


def decoder() -> onnx.ModelProto:
    """A decoder, [batch, sequence] tokens of int64 and what it kept of those before.

    It makes the scores of the words after each token as `logits`, the best word after the last one
    as `next`, and of each layer `present.N.key` and `present.N.value`, which the next call reads as
    `past_key_values.N.key` and `past_key_values.N.value`.
    """
    g = _Graph()
    ids = g.input("input_ids", TensorProto.INT64, ["batch", "sequence"])
    mask = g.input("attention_mask", TensorProto.INT64, ["batch", "total"])
    held: list[str | int] = ["batch", HEADS, "past", DEPTH]
    past = [
        [g.input(f"past_key_values.{n}.{of}", TensorProto.FLOAT, held) for of in ("key", "value")]
        for n in range(LAYERS)
    ]
    before = g("Gather", g("Shape", past[0][0]), g.whole(2))
    total = g("Add", before, g("Gather", g("Shape", ids), g.whole(1)))
    places = g("Range", before, total, g.whole(1))
    words = g("Gather", g.weight(WORDS, WIDTH), ids)
    where = g("Gather", g.weight(LONGEST, WIDTH), g("Unsqueeze", places, g.whole([0])))
    value = g("Add", words, where)
    rows = g("Unsqueeze", places, g.whole([1]))
    columns = g("Unsqueeze", g("Range", g.whole(0), total, g.whole(1)), g.whole([0]))
    seen = g("Unsqueeze", g("LessOrEqual", columns, rows), g.whole([0, 1]))
    some = g("Cast", g("Unsqueeze", mask, g.whole([1, 2])), to=TensorProto.BOOL)
    bias = g("Where", g("And", seen, some), g.real(0), g.real(_LOWEST))
    for number, (keys, values) in enumerate(past):
        value = g.layer(value, keys, values, bias, number)
    logits = g("MatMul", g.normal(value), g.weight(WIDTH, WORDS))
    best = g("ArgMax", g("Gather", logits, g.whole(-1), axis=1), axis=-1, keepdims=1)
    g.output("logits", logits, TensorProto.FLOAT, ["batch", "sequence", WORDS])
    g.output("next", best, TensorProto.INT64, ["batch", 1])
    return g.model()


class _Graph:
    """An ONNX graph in the making."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output."""
        made = f"{operator.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [made], made, **attributes))
        return made

    def input(self, name: str, type_: int, shape: list[str | int]) -> str:
        """Add an input."""
        self._inputs.append(helper.make_tensor_value_info(name, type_, shape))
        return name

    def output(self, name: str, value: str, type_: int, shape: list[str | int]) -> None:
        """Hand out a value."""
        self._nodes.append(helper.make_node("Identity", [value], [name], f"out.{name}"))
        self._outputs.append(helper.make_tensor_value_info(name, type_, shape))

    def whole(self, value: Any) -> str:
        """Add a constant of int64."""
        return self._constant(np.array(value, np.int64))

    def real(self, value: Any) -> str:
        """Add a constant of float32."""
        return self._constant(np.array(value, np.float32))

    def weight(self, *shape: int) -> str:
        """Add weights of a usual size."""
        return self.real(self._random.standard_normal(shape) / np.sqrt(shape[0]))

    def normal(self, value: str) -> str:
        """A layer normalization."""
        factors = self.real(np.ones(WIDTH))
        return self("LayerNormalization", value, factors, self.real(np.zeros(WIDTH)), axis=-1)

    def layer(self, value: str, keys: str, values: str, bias: str, number: int) -> str:
        """A layer, normalized before, which hands out its keys and values."""
        normal = self.normal(value)
        queries, new_keys, new_values = (self._heads(self._linear(normal)) for _ in range(3))
        keys = self("Concat", keys, new_keys, axis=2)
        values = self("Concat", values, new_values, axis=2)
        for of, kept in (("key", keys), ("value", values)):
            shape: list[str | int] = ["batch", HEADS, "past + sequence", DEPTH]
            self.output(f"present.{number}.{of}", kept, TensorProto.FLOAT, shape)
        scores = self("MatMul", queries, self("Transpose", keys, perm=[0, 1, 3, 2]))
        scaled = self("Div", scores, self.real(np.sqrt(DEPTH)))
        chances = self("Softmax", self("Add", scaled, bias), axis=-1)
        mixed = self("Transpose", self("MatMul", chances, values), perm=[0, 2, 1, 3])
        joined = self("Reshape", mixed, self.whole([0, 0, WIDTH]))
        value = self("Add", value, self._linear(joined))
        inner = self("Relu", self._linear(self.normal(value), 4 * WIDTH))
        return self("Add", value, self._linear(inner, WIDTH, 4 * WIDTH))

    def model(self) -> onnx.ModelProto:
        """The model."""
        graph = helper.make_graph(
            self._nodes, "decoder", self._inputs, self._outputs, self._constants
        )
        opset = helper.make_opsetid("", 17)
        return helper.make_model(graph, opset_imports=[opset], ir_version=8)

    def _constant(self, value: Any) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(value, name))
        return name

    def _linear(self, value: str, width: int = WIDTH, wide: int = WIDTH) -> str:
        return self("Add", self("MatMul", value, self.weight(wide, width)), self.weight(width))

    def _heads(self, value: str) -> str:
        """[batch, sequence, width] as [batch, heads, sequence, depth]."""
        split = self("Reshape", value, self.whole([0, 0, HEADS, DEPTH]))
        return self("Transpose", split, perm=[0, 2, 1, 3])
