"""Recurrent networks, compared with PyTorch and with scalar formulas."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.ops.oracle import torch

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import (
    Array,
    Builder,
    DeviceError,
    ElementType,
    ModelError,
    Operand,
    TensorType,
    symbol,
)
from crosschip.ops.numerics.cells import CellFunction
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, Direction, Recurrent

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 4, 2
# Which of PyTorch's gates each of ours is.
PYTORCH_GATES: dict[type[Recurrent], list[int]] = {RNN: [0], GRU: [1, 0, 2], LSTM: [0, 3, 1, 2]}


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def weights(operator: type[Recurrent], passes: int = 1) -> tuple[Array, ...]:
    """Return input, weight, recurrence weight and bias."""
    rows = operator.gates * HIDDEN
    return (
        drawn(STEPS, BATCH, INPUTS),
        drawn(passes, rows, INPUTS, seed=1),
        drawn(passes, rows, HIDDEN, seed=2),
        drawn(passes, 2 * rows, seed=3),
    )


def states(operator: type[Recurrent], passes: int = 1) -> list[Array]:
    return [drawn(passes, BATCH, HIDDEN, seed=4 + i) for i, _ in enumerate(operator.states)]


def of_pytorch(operator: type[Recurrent], backwards: Sequence[bool]) -> Callable[..., Any]:
    """Return PyTorch's layer with the same weights; a single backward pass reverses the input."""

    def call(x: Array, w: Array, r: Array, bias: Array, *start: Array) -> list[Array]:
        layer = {RNN: torch.nn.RNN, GRU: torch.nn.GRU, LSTM: torch.nn.LSTM}[operator](
            INPUTS, HIDDEN, bidirectional=len(backwards) == 2
        )
        for index, suffix in enumerate(("", "_reverse")[: len(backwards)]):
            halves = np.split(bias[index], 2)
            for name, rows in zip(
                ("weight_ih", "weight_hh", "bias_ih", "bias_hh"),
                (w[index], r[index], *halves),
                strict=True,
            ):
                parts = np.split(rows, operator.gates)
                # Where each of PyTorch's gates is among ours.
                ours = np.argsort(PYTORCH_GATES[operator])
                value = np.concatenate([parts[gate] for gate in ours])
                getattr(layer, f"{name}_l0{suffix}").data = torch.from_numpy(value)
        alone = tuple(backwards) == (True,)
        first = tuple(map(torch.from_numpy, start)) or None
        given = torch.from_numpy(x[::-1].copy() if alone else x)
        with torch.no_grad():
            hidden, last = layer(given, first if operator is LSTM else first and first[0])
        found = hidden.numpy().reshape(STEPS, BATCH, len(backwards), HIDDEN).transpose(0, 2, 1, 3)
        ends = last if isinstance(last, tuple) else (last,)
        return [found[::-1] if alone else found, *(end.numpy() for end in ends)]

    return call


@pytest.mark.parametrize("direction", Direction, ids=lambda d: d.name)
@pytest.mark.parametrize("operator", [RNN, GRU, LSTM], ids=lambda o: o.type)
def test_like_pytorch(check: Checker, operator: type[Recurrent], direction: Direction) -> None:
    more: dict[str, Any] = {"linear_before_reset": True} if operator is GRU else {}
    passes = len(direction.passes)
    like = of_pytorch(operator, direction.passes)

    def build(b: Builder, x: Any, w: Any, r: Any, bias: Any, *start: Any) -> Any:
        named = dict(zip(operator.states, start, strict=False))
        return b.add_all(operator, x, w, r, bias, direction=direction, **named, **more)

    check(build, like, *weights(operator, passes))
    check(build, like, *weights(operator, passes), *states(operator, passes))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


class Numbers:
    """A pass over one sequence, computed with scalars."""

    def __init__(self, w: Array, r: Array, bias: Array, clip: float = math.inf) -> None:
        self.w, self.r, self.bias, self.clip = w.tolist(), r.tolist(), bias.tolist(), clip

    def total(
        self, gate: int, unit: int, x: Sequence[float], h: Sequence[float], more: float = 0
    ) -> float:
        """Return the argument of a gate's function for one hidden unit."""
        row = gate * HIDDEN + unit
        value = self.bias[row] + self.bias[len(self.w) + row] + more
        value += sum(a * b for a, b in zip(self.w[row], x, strict=True))
        value += sum(a * b for a, b in zip(self.r[row], h, strict=True))
        return self.clipped(value)

    def clipped(self, value: float) -> float:
        return max(-self.clip, min(self.clip, value))


def lstm_by_numbers(
    x: Array, numbers: Numbers, p: Sequence[float], f: Callable[[float], float], couple: bool
) -> tuple[list[list[float]], list[float], list[float]]:
    """Return hidden states after each step, and the last hidden and cell states, of a sequence."""
    h, c, outputs = [0.0] * HIDDEN, [0.0] * HIDDEN, []
    for row in x.tolist():
        new_h, new_c = [], []
        for unit in range(HIDDEN):
            i = f(numbers.total(0, unit, row, h, p[unit] * c[unit]))
            forget = f(numbers.total(2, unit, row, h, p[2 * HIDDEN + unit] * c[unit]))
            cell = math.tanh(numbers.total(3, unit, row, h))
            new_c.append((1 - i if couple else forget) * c[unit] + i * cell)
            o = f(numbers.total(1, unit, row, h, p[HIDDEN + unit] * new_c[unit]))
            new_h.append(o * math.tanh(numbers.clipped(new_c[unit])))
        h, c = new_h, new_c
        outputs.append(h)
    return outputs, h, c


def in_batch(each: Callable[[Array], tuple[Any, ...]]) -> Callable[..., list[Array]]:
    """Return the outputs of a batch, computed sequence by sequence."""

    def call(x: Array, *_: Array) -> list[Array]:
        found = [each(x[:, index]) for index in range(x.shape[1])]
        hidden = np.array([outputs for outputs, *_ in found], np.float32)
        last = [np.array(part, np.float32)[None] for part in zip(*found, strict=True)][1:]
        return [hidden.transpose(1, 0, 2)[:, None], *last]

    return call


@pytest.mark.parametrize("couple", [False, True])
@pytest.mark.parametrize("clip", [math.inf, 0.3])
def test_lstm_with_peepholes(check: Checker, clip: float, couple: bool) -> None:
    x, w, r, bias = weights(LSTM)
    p = drawn(1, 3 * HIDDEN, seed=9)
    numbers = Numbers(w[0], r[0], bias[0], float(np.float32(clip)))

    def build(b: Builder, *tensors: Any) -> Any:
        *given, peephole = tensors
        return b.add_all(LSTM, *given, peephole=peephole, clip=clip, input_forget=couple)

    like = in_batch(lambda x: lstm_by_numbers(x, numbers, p[0].tolist(), sigmoid, couple))
    check(build, like, x, w, r, bias, p)


def gru_by_numbers(x: Array, numbers: Numbers) -> tuple[list[list[float]], list[float]]:
    h, outputs = [0.0] * HIDDEN, []
    for row in x.tolist():
        z = [sigmoid(numbers.total(0, unit, row, h)) for unit in range(HIDDEN)]
        reset = [sigmoid(numbers.total(1, unit, row, h)) * h[unit] for unit in range(HIDDEN)]
        new = [math.tanh(numbers.total(2, unit, row, reset)) for unit in range(HIDDEN)]
        h = [(1 - a) * b + a * old for a, b, old in zip(z, new, h, strict=True)]
        outputs.append(h)
    return outputs, h


@pytest.mark.parametrize("clip", [math.inf, 0.3])
def test_gru_that_resets_before_the_product(check: Checker, clip: float) -> None:
    x, w, r, bias = weights(GRU)
    numbers = Numbers(w[0], r[0], bias[0], float(np.float32(clip)))
    check(
        lambda b, *tensors: b.add_all(GRU, *tensors, clip=clip),
        in_batch(lambda x: gru_by_numbers(x, numbers)),
        *(x, w, r, bias),
    )


ALPHA, BETA = 0.375, 0.25
FUNCTIONS: dict[CellFunction, Callable[[float, float, float], float]] = {
    CellFunction.SIGMOID: lambda x, alpha, beta: sigmoid(x),
    CellFunction.TANH: lambda x, alpha, beta: math.tanh(x),
    CellFunction.RELU: lambda x, alpha, beta: max(x, 0.0),
    CellFunction.AFFINE: lambda x, alpha, beta: alpha * x + beta,
    CellFunction.LEAKY_RELU: lambda x, alpha, beta: x if x >= 0 else alpha * x,
    CellFunction.THRESHOLDED_RELU: lambda x, alpha, beta: x if x > alpha else 0.0,
    CellFunction.SCALED_TANH: lambda x, alpha, beta: alpha * math.tanh(beta * x),
    CellFunction.HARD_SIGMOID: lambda x, alpha, beta: max(0.0, min(1.0, alpha * x + beta)),
    CellFunction.ELU: lambda x, alpha, beta: x if x >= 0 else alpha * math.expm1(x),
    CellFunction.SOFTSIGN: lambda x, alpha, beta: x / (1 + abs(x)),
    CellFunction.SOFTPLUS: lambda x, alpha, beta: math.log1p(math.exp(x)),
}
STANDARD = {
    CellFunction.LEAKY_RELU: (0.01, 0.0),
    CellFunction.HARD_SIGMOID: (0.2, 0.5),
    CellFunction.SCALED_TANH: (1.0, 1.0),
}


@pytest.mark.parametrize("function", CellFunction, ids=lambda f: f.name)
def test_functions(function: CellFunction) -> None:
    x, w, r, bias = weights(RNN)
    numbers = Numbers(w[0], r[0], bias[0])
    for given, (alpha, beta) in (
        ({"activation_alpha": [ALPHA], "activation_beta": [BETA]}, (ALPHA, BETA)),
        ({}, STANDARD.get(function, (1.0, 0.0))),
    ):

        def by_numbers(x: Array, alpha: float = alpha, beta: float = beta) -> tuple[Any, Any]:
            h, outputs = [0.0] * HIDDEN, []
            for row in x.tolist():
                totals = [numbers.total(0, unit, row, h) for unit in range(HIDDEN)]
                h = [FUNCTIONS[function](total, alpha, beta) for total in totals]
                outputs.append(h)
            return outputs, h

        expected = in_batch(by_numbers)(x)
        b = Builder()
        operands = [
            b.input(str(i), TensorType(ElementType.FLOAT32, a.shape))
            for i, a in enumerate((x, w, r, bias))
        ]
        operation = RNN("rnn", RNN.bind("rnn", operands, {"activations": [function], **given}))
        for found in both_ways(operation, b, [x, w, r, bias]):
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def both_ways(operation: Recurrent, b: Builder, arrays: Sequence[Array]) -> list[Sequence[Array]]:
    """Return the outputs of the reference and of the decomposition."""
    outputs = (Operand(f"output{index}", type_) for index, type_ in enumerate(operation.infer()))
    operation = operation.with_outputs(tuple(outputs))
    parts = operation.decomposition(b)
    assert parts
    b.append(operation)
    for prefix, operands in (("whole", operation.outputs), ("parts", parts)):
        for index, operand in enumerate(operands):
            b.output(f"{prefix}{index}", operand)
    found = ReferenceDevice().compile(b.build(), Options()).run(arrays)
    half = len(operation.outputs)
    return [found[:half], found[half:]]


@pytest.mark.parametrize("operator", [RNN, GRU, LSTM], ids=lambda o: o.type)
def test_weights_whose_sizes_are_open(operator: type[Recurrent]) -> None:
    """One tensor suffices to determine the hidden size."""
    x, weight, recurrence_weight, bias = weights(operator)
    b = Builder()
    operands = [
        b.input("x", TensorType(ElementType.FLOAT32, x.shape)),
        b.input("weight", TensorType(ElementType.FLOAT32, (1, symbol("R"), symbol("C")))),
        b.input("recurrence", TensorType(ElementType.FLOAT32, (1, symbol("Q"), HIDDEN))),
        b.input("bias", TensorType(ElementType.FLOAT32, (1, symbol("B")))),
    ]
    operation = operator("example", operator.bind("example", operands, {}))
    arrays = [x, weight, recurrence_weight, bias]
    whole, parts = both_ways(operation, b, arrays)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("direction", Direction, ids=lambda d: d.name)
@pytest.mark.parametrize("operator", [RNN, GRU, LSTM], ids=lambda o: o.type)
def test_sequences_of_several_lengths(
    check: Checker, operator: type[Recurrent], direction: Direction
) -> None:
    """Each sequence gives the same as alone, and 0 after its end."""
    lengths = np.array([STEPS, 2, 0])
    passes = len(direction.passes)
    tensors, start = weights(operator, passes), states(operator, passes)

    def alone(index: int) -> list[Array]:
        """Return one sequence, truncated; without steps, its initial state."""
        length = int(lengths[index])
        own = [state[:, index : index + 1] for state in start]
        hidden = np.zeros((STEPS, passes, 1, HIDDEN), np.float32)
        if not length:
            return [hidden, *own]
        b = Builder()
        x = b.input("x", TensorType(ElementType.FLOAT32, (length, 1, INPUTS)))
        named: dict[str, Any] = {
            "direction": direction,
            **dict(zip(operator.states, own, strict=True)),
        }
        made = b.add_all(operator, x, *tensors[1:], **named)
        for number, operand in enumerate(made):
            b.output(str(number), operand)
        piece = tensors[0][:length, index : index + 1]
        first, *last = ReferenceDevice().compile(b.build(), Options()).run([piece])
        hidden[:length] = first
        return [hidden, *last]

    def like(*_: Array) -> list[Array]:
        each = [alone(index) for index in range(BATCH)]
        return [np.concatenate(part, axis=-2) for part in zip(*each, strict=True)]

    def build(b: Builder, *given: Any) -> Any:
        *four, sequence_lengths = given[:5]
        named = dict(zip(operator.states, given[5:], strict=True))
        return b.add_all(
            operator, *four, sequence_lengths=sequence_lengths, direction=direction, **named
        )

    check(build, like, *tensors, lengths, *start)


@pytest.mark.parametrize("length", [-1, STEPS + 1])
def test_lengths_beyond_the_input_are_refused(length: int) -> None:
    b = Builder()
    lengths = b.input("lengths", TensorType(ElementType.INT64, (BATCH,)))
    output, _ = b.add_all(RNN, *weights(RNN), sequence_lengths=lengths)
    b.output("output", output)
    program = ReferenceDevice().compile(b.build(), Options())
    with pytest.raises(DeviceError, match=r"sequence_lengths: .* are not all in \[0, 5\]"):
        program.run([np.array([1, length, 2])])


def one(*shape: int) -> Array:
    return np.ones(shape, np.float32)


TWO = np.array([1, 1])

BROKEN: list[tuple[Callable[[Builder, Any], Any], str]] = [
    (lambda b, x: b.add_all(LSTM, x, one(1, 8, 4)), "LSTM.recurrence_weight: is required"),
    (
        lambda b, x: b.add_all(LSTM, x, one(1, 6, 4), one(1, 8, 2)),
        "LSTM.weight: its size on axis 1, .*: 6 and 8 differ",
    ),
    (
        lambda b, x: b.add_all(LSTM, x, one(1, 8, 5), one(1, 8, 2)),
        "LSTM.weight: its size on axis 2, .*: 5 and 4 differ",
    ),
    (
        lambda b, x: b.add_all(LSTM, x, one(8, 4), one(1, 8, 2)),
        "LSTM.weight: has 2 axes, but must have 3",
    ),
    (
        lambda b, x: b.add_all(GRU, x, one(1, 6, 4), one(1, 6, 2), direction=2),
        "GRU.weight: its size on axis 0, .*: 1 and 2 differ",
    ),
    (
        lambda b, x: b.add_all(GRU, x, one(1, 6, 4), one(1, 6, 2), one(1, 6)),
        "GRU.bias: its size on axis 1, .*: 6 and 12 differ",
    ),
    (
        lambda b, x: b.add_all(
            RNN, x, one(1, 2, 4), one(1, 2, 2), sequence_lengths=np.ones(2, int)
        ),
        "RNN.sequence_lengths: its size on axis 0, .*: 2 and 3 differ",
    ),
    (
        lambda b, x: b.add_all(LSTM, x, one(1, 8, 4), one(1, 8, 2), initial_cell=one(1, 3, 3)),
        "LSTM.initial_cell: its size on axis 2, .*: 3 and 2 differ",
    ),
    (
        lambda b, x: b.add_all(LSTM, x, one(1, 8, 4), one(1, 8, 2), peephole=one(1, 8)),
        "LSTM.peephole: its size on axis 1, .*: 8 and 6 differ",
    ),
    (
        lambda b, x: b.add_all(LSTM, x, one(1, 8, 4), one(1, 8, 2), activations=[1, 1]),
        "LSTM.activations: has 2 entries, but must have 3 or none",
    ),
    (
        lambda b, x: b.add_all(RNN, x, one(1, 2, 4), one(1, 2, 2), activations=[11]),
        "RNN.activations: 11 is not a valid CellFunction",
    ),
    (
        lambda b, x: b.add_all(RNN, one(0, 3, 4), one(1, 2, 4), one(1, 2, 2)),
        "RNN.input: has no time steps",
    ),
    (
        lambda b, x: b.add_all(RNN, x, one(1, 2, 4), one(1, 2, 2), clip=-1.0),
        "RNN.clip: -1 is not at least 0",
    ),
]


@pytest.mark.parametrize(("build", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_broken_rules(build: Callable[[Builder, Any], Any], message: str) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (STEPS, BATCH, INPUTS)))
    with pytest.raises(ModelError, match=message):
        build(b, x)
