"""Models in ONNX Script, which looks at functions of modules; imported where it is installed."""

import numpy as np
import onnx
import onnxscript
from onnxscript import FLOAT, INT64, STRING
from onnxscript import opset18 as op
from onnxscript import opset20 as strings


def _weights(name: str, *shape: int) -> onnx.TensorProto:
    random = np.random.default_rng(len(name))
    return onnx.numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name)


TABLE = _weights("table", 30, 16)
INNER = _weights("inner", 32, 16)
OUTER = _weights("outer", 16, 30)


@onnxscript.script(default_opset=op)
def greedy_search(state: FLOAT[1, 16]) -> tuple[INT64[None], FLOAT[1, 16]]:
    """Words one after the other until one ends the text, 20 at most."""
    table = op.Constant(value=TABLE)
    inner = op.Constant(value=INNER)
    outer = op.Constant(value=OUTER)
    word = op.Constant(value_ints=[1])
    made = op.SequenceEmpty(dtype=7)
    for _ in range(20):
        joined = op.Concat(op.Gather(table, word), state, axis=1)
        state = op.Tanh(op.MatMul(joined, inner))
        word = op.ArgMax(op.MatMul(state, outer), axis=1, keepdims=0)
        made = op.SequenceInsert(made, word)
        ends = op.Squeeze(op.Equal(word, op.Constant(value_ints=[0])))
        if ends:
            break
    words = op.ConcatFromSequence(made, axis=0)
    return words, state


@onnxscript.script(default_opset=strings)
def divided_words(text: STRING[None]) -> tuple[STRING[None, None], INT64[None]]:
    """Texts with a stop, divided into words."""
    stop = strings.Constant(value_string=" .")
    words, counts = strings.StringSplit(strings.StringConcat(text, stop))
    return words, counts


@onnxscript.script(default_opset=op)
def sums_of_a_sequence(x: FLOAT[None, 4]) -> tuple[FLOAT[4], FLOAT[4]]:
    """Rows that are added to one of two sums, by their sign."""
    rows = op.SplitToSequence(x, axis=0, keepdims=0)
    count = op.SequenceLength(rows)
    zero = op.Constant(value_float=0.0)
    above = op.Mul(op.ReduceSum(x, op.Constant(value_ints=[0]), keepdims=0), zero)
    below = op.Identity(above)
    for place in range(count):
        row = op.SequenceAt(rows, place)
        is_above = op.Greater(op.ReduceSum(row, keepdims=0), zero)
        if is_above:
            above = op.Add(above, row)
            below = op.Identity(below)
        else:
            above = op.Identity(above)
            below = op.Sub(below, row)
    return above, below
