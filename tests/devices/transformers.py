"""Small transformers as ONNX files, as common exporters write them.

Each is a model of the form that its namesake has when it is exported: which operators compute
masks, positions and sizes, and of which element types, is what matters here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WORDS, WIDTH, HEADS, LONGEST = 50, 16, 2, 64
_LOWEST = float(np.finfo(np.float32).min)


class File:
    """An ONNX graph under construction."""

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._count = 0

    def __call__(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node and return its output, or the list of its outputs."""
        made = [self._name(operator.lower()) for _ in range(outputs)]
        self._nodes.append(helper.make_node(operator, inputs, made, made[0], **attributes))
        return made[0] if outputs == 1 else made

    def input(self, name: str, type_: int, shape: Sequence[str | int]) -> str:
        """Add an input."""
        self._inputs.append(helper.make_tensor_value_info(name, type_, shape))
        return name

    def output(self, name: str, value: str, type_: int, rank: int) -> None:
        """Declare an output with dynamic dimensions."""
        self._nodes.append(helper.make_node("Identity", [value], [name], f"out.{name}"))
        sizes = [f"{name}.{axis}" for axis in range(rank)]
        self._outputs.append(helper.make_tensor_value_info(name, type_, sizes))

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """Add a constant."""
        name = self._name("constant")
        self._constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def real(self, value: Any) -> str:
        """Add a constant of float32."""
        return self.constant(value, np.float32)

    def weight(self, *shape: int) -> str:
        """Add weights of a usual size."""
        return self.real(self._random.standard_normal(shape) / np.sqrt(shape[0]))

    def model(self, opset: int = 17) -> onnx.ModelProto:
        """Return the model."""
        graph = helper.make_graph(
            self._nodes, "transformer", self._inputs, self._outputs, self._constants
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        return model

    def _name(self, of: str) -> str:
        self._count += 1
        return f"{of}_{self._count}"

    # What all transformers are made of

    def size(self, value: str, axis: int) -> str:
        """Return the size of an axis as a scalar."""
        return str(self("Gather", self("Shape", value), self.constant(axis), axis=0))

    def listed(self, *sizes: str | int) -> str:
        """Return a list of sizes."""
        parts = [
            self.constant([size])
            if isinstance(size, int)
            else self("Unsqueeze", size, self.constant([0]))
            for size in sizes
        ]
        return str(self("Concat", *parts, axis=0))

    def linear(self, value: str, width: int = WIDTH, wide: int = WIDTH) -> str:
        """Add a linear layer."""
        return str(self("Add", self("MatMul", value, self.weight(wide, width)), self.weight(width)))

    def normal(self, value: str) -> str:
        """Add a layer normalization, decomposed as before opset 17."""
        shifted = self("Sub", value, self("ReduceMean", value, axes=[-1]))
        squares = self("Pow", shifted, self.real(2))
        spread = self("Add", self("ReduceMean", squares, axes=[-1]), self.real(1e-5))
        scaled = self("Div", shifted, self("Sqrt", spread))
        return str(self("Add", self("Mul", scaled, self.weight(WIDTH)), self.weight(WIDTH)))

    def gelu(self, value: str) -> str:
        """Add GELU by the error function."""
        error = self("Erf", self("Div", value, self.real(np.sqrt(2))))
        return str(
            self("Mul", self("Mul", value, self("Add", error, self.real(1))), self.real(0.5))
        )

    def heads(self, value: str) -> str:
        """Reshape [batch, sequence, width] to [batch, heads, sequence, depth]."""
        batch, sequence = self.size(value, 0), self.size(value, 1)
        shape = self.listed(batch, sequence, HEADS, WIDTH // HEADS)
        return str(self("Transpose", self("Reshape", value, shape), perm=[0, 2, 1, 3]))

    def attention(self, value: str, keys: str, values: str, bias: str) -> str:
        """Add attention of a value's queries on keys and values, split into heads."""
        queries = self.heads(self.linear(value))
        scores = self("MatMul", queries, self("Transpose", keys, perm=[0, 1, 3, 2]))
        scaled = self("Div", scores, self.real(np.sqrt(WIDTH // HEADS)))
        chances = self("Softmax", self("Add", scaled, bias), axis=-1)
        mixed = self("Transpose", self("MatMul", chances, values), perm=[0, 2, 1, 3])
        batch, sequence = self.size(mixed, 0), self.size(mixed, 1)
        return self.linear(self("Reshape", mixed, self.listed(batch, sequence, WIDTH)))

    def layer(self, value: str, bias: str) -> str:
        """Add an encoder layer."""
        keys, values = self.heads(self.linear(value)), self.heads(self.linear(value))
        attended = self.normal(self("Add", value, self.attention(value, keys, values, bias)))
        inner = self.gelu(self.linear(attended, 2 * WIDTH))
        return self.normal(self("Add", attended, self.linear(inner, WIDTH, 2 * WIDTH)))

    def bias_of(self, mask: str) -> str:
        """Compute the bias of a mask [batch, sequence] of int64, by subtraction in float32."""
        wide = self("Unsqueeze", self("Unsqueeze", mask, self.constant([1])), self.constant([2]))
        real = self("Cast", wide, to=TensorProto.FLOAT)
        return str(self("Mul", self("Sub", self.real(1), real), self.real(_LOWEST)))


def bert() -> onnx.ModelProto:
    """Return an encoder with token types, whose positions are a slice of a constant."""
    f = File()
    of = TensorProto.INT64, ["batch", "sequence"]
    ids, mask, kinds = (
        f.input(name, *of) for name in ("input_ids", "attention_mask", "token_type_ids")
    )
    words = f("Gather", f.weight(WORDS, WIDTH), ids)
    types = f("Gather", f.weight(2, WIDTH), kinds)
    end = f("Unsqueeze", f.size(ids, 1), f.constant([0]))
    every = f.constant([list(range(LONGEST))])
    places = f("Slice", every, f.constant([0]), end, f.constant([1]))
    positions = f("Gather", f.weight(LONGEST, WIDTH), places)
    value = f.normal(f("Add", f("Add", words, types), positions))
    bias = f.bias_of(mask)
    for _ in range(2):
        value = f.layer(value, bias)
    first = f("Gather", value, f.constant(0), axis=1)
    f.output("last_hidden_state", value, TensorProto.FLOAT, 3)
    f.output("pooler_output", f("Tanh", f.linear(first)), TensorProto.FLOAT, 2)
    return f.model(13)


def roberta() -> onnx.ModelProto:
    """Return an encoder whose positions count tokens without padding, with a mean."""
    f = File(1)
    of = TensorProto.INT64, ["batch", "sequence"]
    ids, mask = (f.input(name, *of) for name in ("input_ids", "attention_mask"))
    is_padding = f("Equal", ids, f.constant(1))
    some = f("Cast", f("Not", is_padding), to=TensorProto.INT32)
    counted = f("Mul", f("CumSum", some, f.constant(1)), some)
    places = f("Add", f("Cast", counted, to=TensorProto.INT64), f.constant(1))
    words = f("Gather", f.weight(WORDS, WIDTH), ids)
    positions = f("Gather", f.weight(LONGEST, WIDTH), places)
    value = f.normal(f("Add", words, positions))
    # The mask as newer exports expand it: to [batch, 1, sequence, sequence], then chosen by.
    batch, sequence = f.size(mask, 0), f.size(mask, 1)
    wide = f("Unsqueeze", mask, f.constant([1, 2]))
    whole = f("Expand", wide, f.listed(batch, 1, sequence, sequence))
    inverted = f("Sub", f.real(1), f("Cast", whole, to=TensorProto.FLOAT))
    hidden = f("Cast", inverted, to=TensorProto.BOOL)
    bias = f("Where", hidden, f.real(_LOWEST), inverted)
    value = f.layer(value, bias)
    # The mean over tokens, as sentence transformers take it.
    kept = f("Expand", f("Unsqueeze", mask, f.constant([-1])), f("Shape", value))
    real = f("Cast", kept, to=TensorProto.FLOAT)
    total = f("ReduceSum", f("Mul", value, real), f.constant([1]), keepdims=0)
    count = f("Clip", f("ReduceSum", real, f.constant([1]), keepdims=0), f.real(1e-9))
    f.output("sentence_embedding", f("Div", total, count), TensorProto.FLOAT, 2)
    return f.model()


def decoder(*, counted: bool = False) -> onnx.ModelProto:
    """A decoder with keys and values of earlier runs, and the next token at the end.

    Args:
        counted: whether positions are counted by the mask, as in OPT, or by the past's length.
    """
    f = File(2)
    ids = f.input("input_ids", TensorProto.INT64, ["batch", "sequence"])
    mask = f.input("attention_mask", TensorProto.INT64, ["batch", "total"])
    held: list[str | int] = ["batch", HEADS, "past", WIDTH // HEADS]
    past = [f.input(f"past_key_values.0.{of}", TensorProto.FLOAT, held) for of in ("key", "value")]
    before, length = f.size(past[0], 2), f.size(ids, 1)
    total = f("Add", before, length)
    if counted:
        sums = f("CumSum", mask, f.constant(1))
        every = f("Sub", f("Mul", sums, mask), f.constant(1))
        start = f("Unsqueeze", before, f.constant([0]))
        end = f.constant([np.iinfo(np.int64).max])
        places = f("Add", f("Slice", every, start, end, f.constant([1])), f.constant(2))
    else:
        steps = f("Range", before, total, f.constant(1))
        places = f("Unsqueeze", steps, f.constant([0]))
    words = f("Gather", f.weight(WORDS, WIDTH), ids)
    value = f("Add", words, f("Gather", f.weight(LONGEST, WIDTH), places))
    # A token sees itself and those before it, if they are no padding.
    rows = f("Unsqueeze", f("Range", before, total, f.constant(1)), f.constant([1]))
    columns = f("Unsqueeze", f("Range", f.constant(0), total, f.constant(1)), f.constant([0]))
    seen = f("Unsqueeze", f("LessOrEqual", columns, rows), f.constant([0, 1]))
    some = f("Cast", f("Unsqueeze", mask, f.constant([1, 2])), to=TensorProto.BOOL)
    bias = f("Where", f("And", seen, some), f.real(0), f.real(_LOWEST))
    keys, values = (f("Concat", old, f.heads(f.linear(value)), axis=2) for old in past)
    attended = f.normal(f("Add", value, f.attention(value, keys, values, bias)))
    inner = f.gelu(f.linear(attended, 2 * WIDTH))
    value = f.normal(f("Add", attended, f.linear(inner, WIDTH, 2 * WIDTH)))
    logits = f("MatMul", value, f.weight(WIDTH, WORDS))
    last = f("Gather", logits, f.constant(-1), axis=1)
    f.output("logits", logits, TensorProto.FLOAT, 3)
    f.output("next", f("ArgMax", last, axis=-1, keepdims=1), TensorProto.INT64, 2)
    f.output("present.0.key", keys, TensorProto.FLOAT, 4)
    f.output("present.0.value", values, TensorProto.FLOAT, 4)
    return f.model()


def gpt() -> onnx.ModelProto:
    """Return a decoder with a triangular causal mask and positions as an input."""
    f = File(3)
    of = TensorProto.INT64, ["batch", "sequence"]
    ids, places = (f.input(name, *of) for name in ("input_ids", "position_ids"))
    words = f("Gather", f.weight(WORDS, WIDTH), ids)
    value = f("Add", words, f("Gather", f.weight(LONGEST, WIDTH), places))
    sequence = f.size(ids, 1)
    full = f("ConstantOfShape", f.listed(sequence, sequence), value=_tensor(_LOWEST))
    bias = f("Unsqueeze", f("Trilu", full, f.constant(1), upper=1), f.constant([0, 1]))
    value = f.layer(value, bias)
    logits = f("MatMul", value, f.weight(WIDTH, WORDS))
    best, where = f("TopK", logits, f.constant([3]), outputs=2)
    f.output("best", best, TensorProto.FLOAT, 3)
    f.output("where", where, TensorProto.INT64, 3)
    return f.model()


def t5() -> onnx.ModelProto:
    """Return an encoder with buckets of relative positions, computed by a logarithm."""
    f = File(4)
    of = TensorProto.INT64, ["batch", "sequence"]
    ids, mask = (f.input(name, *of) for name in ("input_ids", "attention_mask"))
    value = f("Gather", f.weight(WORDS, WIDTH), ids)
    steps = f("Range", f.constant(0), f.size(ids, 1), f.constant(1))
    apart = f("Sub", f("Unsqueeze", steps, f.constant([0])), f("Unsqueeze", steps, f.constant([1])))
    buckets, exact, furthest = 8, 4, 32
    after = f("Cast", f("Greater", apart, f.constant(0)), to=TensorProto.INT64)
    side = f("Mul", after, f.constant(buckets))
    far = f("Abs", apart)
    ratio = f("Div", f("Cast", far, to=TensorProto.FLOAT), f.real(exact))
    logarithm = f("Div", f("Log", ratio), f.real(np.log(furthest / exact)))
    grown = f("Cast", f("Mul", logarithm, f.real(buckets - exact)), to=TensorProto.INT64)
    large = f("Min", f("Add", grown, f.constant(exact)), f.constant(buckets - 1))
    chosen = f("Where", f("Less", far, f.constant(exact)), far, large)
    table = f("Gather", f.weight(2 * buckets, HEADS), f("Add", side, chosen))
    relative = f("Unsqueeze", f("Transpose", table, perm=[2, 0, 1]), f.constant([0]))
    value = f.layer(value, f("Add", relative, f.bias_of(mask)))
    f.output("last_hidden_state", value, TensorProto.FLOAT, 3)
    return f.model()


def _tensor(value: float) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array([value], np.float32))


MODELS = {
    "bert": bert,
    "roberta": roberta,
    "decoder": decoder,
    "opt": lambda: decoder(counted=True),
    "gpt": gpt,
    "t5": t5,
}


def inputs_for(
    model: onnx.ModelProto, batch: int, length: int, past: int = 0, seed: int = 0
) -> dict[str, np.ndarray]:
    """Return inputs of these sizes; half of the last sequence is padding on the left."""
    random = np.random.default_rng(seed)
    if not any(value.name.startswith("past") for value in model.graph.input):
        past = 0
    mask = np.ones((batch, past + length), np.int64)
    mask[-1, : (past + length) // 2] = 0
    every = {
        "input_ids": random.integers(2, WORDS, (batch, length)),
        "attention_mask": mask,
        "token_type_ids": random.integers(0, 2, (batch, length)),
        "position_ids": np.tile(np.arange(length), (batch, 1)),
    }
    for of in ("key", "value"):
        shape = batch, HEADS, past, WIDTH // HEADS
        every[f"past_key_values.0.{of}"] = random.standard_normal(shape).astype(np.float32)
    return {value.name: every[value.name] for value in model.graph.input}
