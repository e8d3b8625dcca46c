"""Recurrent networks of one layer (RNN, GRU, LSTM) in one or both directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Shape
from crosschip.ir.dimension import product
from crosschip.ir.types import FLOATS, INDICES
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import Sizes, check_lengths
from crosschip.ops.definition.shapes import unify
from crosschip.ops.definition.slots import (
    Parameter,
    choice,
    flag,
    optional_tensor,
    real,
    reals,
    tensor,
)
from crosschip.ops.numerics.cells import (
    Algebra,
    Arrays,
    Cell,
    CellFunction,
    Gate,
    GateAlgebra,
    ScanDirection,
    Term,
    Terms,
)
from crosschip.ops.standard.layout import Reshape

_SIGMOID, _TANH = CellFunction.SIGMOID, CellFunction.TANH


class Direction(IntEnum):
    """Order in which time steps are processed."""

    FORWARD = 0
    REVERSE = 1
    BIDIRECTIONAL = 2

    @property
    def passes(self) -> tuple[bool, ...]:
        """Return, for each pass over the time steps, whether it runs backwards."""
        return {0: (False,), 1: (True,), 2: (False, True)}[self]


def _functions() -> Parameter[tuple[CellFunction, ...]]:
    """Declare the activation functions of all passes; by default those of the cell."""
    return Parameter(
        INDICES,
        lambda array: tuple(map(CellFunction, array.ravel().tolist())),
        (),
        kind="list of choices",
        options=CellFunction,
        optional=True,
        rank=1,
    )


class Recurrent(Operator):
    """Base class of recurrent networks.

    The input is [T, N, input_size]: T time steps of a batch of N. There are D passes over it: one,
    forwards or backwards, or with BIDIRECTIONAL both, forwards first. For each pass, `weight` is
    [D, G * H, input_size], `recurrence_weight` [D, G * H, H] and `bias` [D, 2 * G * H]: consecutive
    weights of G gates for the hidden size H. The first half of the bias (`Wb` in the formulas) is
    added to the product with the input, the second (`Rb`) to that with the hidden state. The
    default bias is 0.

    The initial states are `initial_hidden` and `initial_cell` ([D, N, H]), by default 0. With
    `sequence_lengths` ([N]), a sequence ends after that many steps: its states keep their values in
    later steps, a backward pass starts at its last step, and its outputs after it are 0. Lengths
    must be from 0 to T.

    Outputs: 1. the hidden states after each step, [T, D, N, H], at the index of the step's input;
    2. the last hidden states, [D, N, H]; for LSTM 3. the last cell states, [D, N, H]. There must be
    at least one time step. A sequence is unspecified if its input or initial states contain NaN or
    an infinity; all outputs are if a weight or bias does.

    `activations` lists the functions (`f`, `g`, `h`) of each pass, one pass after the other, and
    `activation_alpha` and `activation_beta` their parameters, one per function; empty lists mean
    the cell's default functions, and the functions' default parameters. The argument of a function
    is clipped to `[-clip, clip]`; a negative `clip` is an error. AFFINE is `alpha * x + beta`,
    LEAKY_RELU `x < 0 ? alpha * x : x`, THRESHOLDED_RELU `x > alpha ? x : 0`, SCALED_TANH `alpha *
    tanh(beta * x)`, HARD_SIGMOID `max(0, min(1, alpha * x + beta))`, ELU `x < 0 ? alpha * (e ** x -
    1) : x`, SOFTSIGN `x / (1 + |x|)`, SOFTPLUS `log(1 + e ** x)`. The default `alpha` is 1, but
    0.01 for LEAKY_RELU and 0.2 for HARD_SIGMOID; the default `beta` is 0, but 1 for SCALED_TANH and
    0.5 for HARD_SIGMOID.
    """

    __slots__ = ()

    gates: ClassVar[int]
    functions: ClassVar[tuple[CellFunction, ...]]
    states: ClassVar[tuple[str, ...]] = ("initial_hidden",)

    input = tensor(FLOATS)
    weight = tensor(FLOATS, like="input")
    recurrence_weight = tensor(FLOATS, like="input")
    bias = optional_tensor(FLOATS, like="input")
    sequence_lengths = optional_tensor(INDICES)
    initial_hidden = optional_tensor(FLOATS, like="input")
    direction = choice(Direction, Direction.FORWARD)
    activations = _functions()
    activation_alpha = reals(())
    activation_beta = reals(())
    clip = real(np.inf, least=0)

    def output_count(self) -> int:
        return 1 + len(self.states)

    def multiply_adds(self) -> Dim:
        steps, batch, _ = shape_of(self.input)
        weights = (self.weight, self.recurrence_weight)
        return steps * batch * sum(product(shape_of(operand)) for operand in weights)

    def infer_shape(self) -> list[Shape]:
        self._check_functions()
        steps, batch, _ = _three("input", self.input)
        _, _, hidden = _three("recurrence_weight", self.recurrence_weight)
        if steps == 0:
            raise ValueError("input: has no time steps")
        for slot, expected in self.wanted_shapes().items():
            self._check_shape(slot, expected)
        last = (len(self.direction.passes), batch, hidden)
        return [(steps, *last), *(last for _ in self.states)]

    def reference(self, **tensors: Any) -> tuple[Array, ...]:
        input, lengths = tensors["input"], tensors["sequence_lengths"]
        steps, batch = input.shape[:2]
        if lengths is not None and ((lengths < 0) | (lengths > steps)).any():
            raise ValueError(f"sequence_lengths: {lengths.tolist()} are not all in [0, {steps}]")
        zero = np.zeros((batch, tensors["recurrence_weight"].shape[2]), input.dtype)
        return self._run(Arrays(), tensors, steps, zero)

    def decompose(self, b: Builder) -> Sequence[Operand] | None:
        steps, _, _ = shape_of(self.input)
        _, _, hidden = shape_of(self.recurrence_weight)
        if not isinstance(steps, int) or not isinstance(hidden, int):
            return None
        tensors = self._terms(b, hidden)
        lengths = tensors["sequence_lengths"]
        if lengths is not None:
            limit = np.array([steps], lengths.operand.type.element_type.dtype)
            tensors["sequence_lengths"] = Term(
                b, check_lengths(b, lengths.operand, b.constant(limit))
            )
        # It broadcasts to the batch, whose size may be unknown.
        zero = Term(b, b.constant(np.zeros((1, hidden), self.input.type.element_type.dtype)))
        return [output.operand for output in self._run(Terms(b, hidden), tensors, steps, zero)]

    def _terms(self, b: Builder, hidden: int) -> dict[str, Term | None]:
        """Build the operand of each slot, with a check of its shape that fails at run time."""
        _, batch, size = shape_of(self.input)
        sizes, passes = Sizes(b, self.input), len(self.direction.passes)
        inferred_shapes = self._shapes_for(batch, size, hidden, passes)
        _, own_batch, own_size = sizes.shape
        runtime_shapes = self._shapes_for(own_batch, own_size, hidden, passes)
        terms: dict[str, Term | None] = {"input": Term(b, self.input)}
        for slot, shape in runtime_shapes.items():
            operand = self.operand(slot)
            if operand is not None and operand.type.shape != inferred_shapes[slot]:
                operand = b.add(Reshape, operand, sizes(shape), allow_zero=True)
            terms[slot] = None if operand is None else Term(b, operand)
        return terms

    def step(self, p: Cell, x: Sequence[Any], *states: Any) -> tuple[Any, ...]:
        """Return the states after a time step, the hidden state first.

        Args:
            p: the weights and functions.
            x: for each gate, the product of its weights and the input, plus `Wb`.
            states: the previous states.
        """
        raise NotImplementedError(f"{self.type} has no formula")

    def _run(
        self, algebra: Algebra, tensors: Mapping[str, Any], steps: int, zero: Any
    ) -> tuple[Any, ...]:
        """Return the outputs, as values of an algebra."""
        hidden_of_passes, last_of_passes = [], []
        for index, backwards in enumerate(self.direction.passes):
            p = ScanDirection(
                algebra, tensors, index, self.gates, self.functions_of(algebra, index)
            )
            states = [
                zero if tensors[slot] is None else algebra.pick(tensors[slot], index)
                for slot in self.states
            ]
            hidden = [zero] * steps
            for step in reversed(range(steps)) if backwards else range(steps):
                x = [algebra.pick(part, step) for part in p.inputs]
                after = self.step(p, x, *states)
                hidden[step] = p.unless_over(step, after[0], zero)
                states = [p.unless_over(step, *pair) for pair in zip(after, states, strict=True)]
            hidden_of_passes.append(algebra.stack(hidden, 0))
            last_of_passes.append(states)
        last = (
            algebra.stack(states_of_passes, 0)
            for states_of_passes in zip(*last_of_passes, strict=True)
        )
        return (algebra.stack(hidden_of_passes, 1), *last)

    def functions_of(self, algebra: GateAlgebra, index: int) -> list[Gate]:
        """Return the activation functions of the pass with an index."""
        gates = []
        for position, default in enumerate(self.functions, index * len(self.functions)):
            function = self.activations[position] if self.activations else default
            alpha = self.activation_alpha[position] if self.activation_alpha else function.alpha
            beta = self.activation_beta[position] if self.activation_beta else function.beta
            gates.append(algebra.gate(function, alpha, beta, self.clip))
        return gates

    def _check_functions(self) -> None:
        expected = len(self.direction.passes) * len(self.functions)
        for slot in ("activations", "activation_alpha", "activation_beta"):
            count = len(getattr(self, slot))
            if count not in (0, expected):
                raise ValueError(f"{slot}: has {count} entries, but must have {expected} or none")

    def wanted_shapes(self) -> dict[str, Shape]:
        """Return the expected shapes of all tensors except the input, by slot.

        Raises:
            ValueError: the input or the recurrence weight has the wrong rank; the message starts
                with the slot.
            UnknownRank: a rank is unknown.
        """
        _, batch, size = _three("input", self.input)
        _, _, hidden = _three("recurrence_weight", self.recurrence_weight)
        return self._shapes_for(batch, size, hidden, len(self.direction.passes))

    def _shapes_for(self, batch: Dim, size: Dim, hidden: Dim, passes: int) -> dict[str, Shape]:
        rows = hidden * self.gates
        return {
            "weight": (passes, rows, size),
            "recurrence_weight": (passes, rows, hidden),
            "bias": (passes, rows * 2),
            "sequence_lengths": (batch,),
            **dict.fromkeys(self.states, (passes, batch, hidden)),
        }

    def _check_shape(self, slot: str, expected: Shape) -> None:
        operand = self.operand(slot)
        if operand is None or operand.type.shape is None:
            return
        if len(operand.type.shape) != len(expected):
            raise ValueError(
                f"{slot}: has {len(operand.type.shape)} axes, but must have {len(expected)}"
            )
        for axis, (actual, size) in enumerate(zip(operand.type.shape, expected, strict=True)):
            unify(actual, size, f"{slot}: its size on axis {axis}, and that which it must have")


def _three(slot: str, operand: Operand) -> Shape:
    shape = shape_of(operand)
    if len(shape) != 3:
        raise ValueError(f"{slot}: has {len(shape)} axes, but must have 3")
    return shape


@operator("RNN")
class RNN(Recurrent):
    """A simple recurrent network: `h = f(x @ W.T + Wb + h @ R.T + Rb)`; `f` is TANH.

    Source: Elman, "Finding Structure in Time", Cognitive Science 14, 1990.
    """

    __slots__ = ()
    gates = 1
    functions = (_TANH,)

    def step(self, p: Cell, x: Sequence[Any], *states: Any) -> tuple[Any, ...]:
        (h,) = states
        (f,) = p.functions
        return (f(x[0] + p.recurrent(0, h)),)


@operator("GRU")
class GRU(Recurrent):
    """Gated recurrent units. The order of gates is update (z), reset (r), hidden (h).

    - `z = f(x @ W_z.T + Wb_z + h @ R_z.T + Rb_z)`, `r` likewise; `f` is SIGMOID.
    - `c = g(x @ W_h.T + Wb_h + (r * h) @ R_h.T + Rb_h)`; `g` is TANH. With `linear_before_reset`,
      `c = g(x @ W_h.T + Wb_h + r * (h @ R_h.T + Rb_h))`.
    - `h = (1 - z) * c + z * h`.

    Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder",
    https://arxiv.org/abs/1406.1078.
    """

    __slots__ = ()
    gates = 3
    functions = (_SIGMOID, _TANH)
    linear_before_reset = flag(False)

    def step(self, p: Cell, x: Sequence[Any], *states: Any) -> tuple[Any, ...]:
        (h,) = states
        f, g = p.functions
        z, r = f(x[0] + p.recurrent(0, h)), f(x[1] + p.recurrent(1, h))
        if self.linear_before_reset:
            c = g(x[2] + r * p.recurrent(2, h))
        else:
            c = g(x[2] + p.recurrent(2, r * h))
        return ((1 - z) * c + z * h,)


@operator("LSTM")
class LSTM(Recurrent):
    """Long short-term memory. The order of gates is input, output, forget, cell (i, o, f, c).

    - `i = f(x @ W_i.T + Wb_i + h @ R_i.T + Rb_i + P_i * c)`, and `forget` with the weights of f;
      the function `f` is SIGMOID. With `input_forget`, `forget = 1 - i`.
    - `c = forget * c + i * g(x @ W_c.T + Wb_c + h @ R_c.T + Rb_c)`; `g` is TANH.
    - `o = f(x @ W_o.T + Wb_o + h @ R_o.T + Rb_o + P_o * c)`, with the new `c`.
    - `h = o * h(c)`; the function `h` is TANH.

    `peephole` is [D, 3 * H]: `P_i`, `P_o` and `P_f`; by default 0.

    Source: Hochreiter and Schmidhuber, "Long Short-Term Memory", Neural Computation 9, 1997; Gers
    and Schmidhuber, "Recurrent Nets that Time and Count", IJCNN 2000, for the peepholes.
    """

    __slots__ = ()
    gates = 4
    functions = (_SIGMOID, _TANH, _TANH)
    states = ("initial_hidden", "initial_cell")
    initial_cell = optional_tensor(FLOATS, like="input")
    peephole = optional_tensor(FLOATS, like="input")
    input_forget = flag(False)

    def step(self, p: Cell, x: Sequence[Any], *states: Any) -> tuple[Any, ...]:
        h, c = states
        f, g, squash = p.functions

        def gate(index: int, cell: Any) -> Any:
            total = x[index] + p.recurrent(index, h)
            return f(total + cell * p.peephole[index] if p.peephole else total)

        i = gate(0, c)
        forget = 1 - i if self.input_forget else gate(2, c)
        c = forget * c + i * g(x[3] + p.recurrent(3, h))
        return gate(1, c) * squash(c), c

    def _shapes_for(self, batch: Dim, size: Dim, hidden: Dim, passes: int) -> dict[str, Shape]:
        shapes = super()._shapes_for(batch, size, hidden, passes)
        return {**shapes, "peephole": (passes, hidden * 3)}


_BYTES = frozenset({ElementType.INT8, ElementType.UINT8})


@operator("DYNAMIC_QUANTIZE_LSTM")
class DynamicQuantizeLSTM(LSTM):
    """LSTM with 8-bit weights, which rounds the other factor to 8 bits before each product.

    The weights represent `(weight - weight_zero_point) * weight_scale`, the recurrence weights
    likewise, with a scale and a zero point per pass ([D]) or per row ([D, 4 * H]); the default zero
    points are 0. The whole input, and in each step the hidden states of the whole batch, are
    quantized like DYNAMIC_QUANTIZE and dequantized. A device may compute the scale for a part of
    the batch at a time.

    Source: ONNX Runtime's DynamicQuantizeLSTM.
    """

    __slots__ = ()
    input = tensor({ElementType.FLOAT32})
    weight = tensor(_BYTES)
    recurrence_weight = tensor(_BYTES, like="weight")
    weight_scale = tensor({ElementType.FLOAT32})
    weight_zero_point = optional_tensor(_BYTES, like="weight")
    recurrence_weight_scale = tensor({ElementType.FLOAT32})
    recurrence_weight_zero_point = optional_tensor(_BYTES, like="weight")

    def decompose(self, b: Builder) -> Sequence[Operand] | None:
        return None if 0 in shape_of(self.input) else super().decompose(b)

    def step(self, p: Cell, x: Sequence[Any], *states: Any) -> tuple[Any, ...]:
        h, c = states
        return super().step(p, x, p.round_to_bytes(h), c)

    def _run(
        self, algebra: Algebra, tensors: Mapping[str, Any], steps: int, zero: Any
    ) -> tuple[Any, ...]:
        return super()._run(algebra, self.dequantize_tensors(algebra, tensors), steps, zero)

    def dequantize_tensors(self, algebra: Algebra, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tensors by slot, with dequantized weights and a rounded input."""
        weights = {
            slot: algebra.reals(
                tensors[slot], tensors[f"{slot}_scale"], tensors[f"{slot}_zero_point"]
            )
            for slot in ("weight", "recurrence_weight")
        }
        return {**tensors, **weights, "input": algebra.round_to_bytes(tensors["input"])}

    def _shapes_for(self, batch: Dim, size: Dim, hidden: Dim, passes: int) -> dict[str, Shape]:
        shapes = super()._shapes_for(batch, size, hidden, passes)
        for slot in ("weight", "recurrence_weight"):
            for suffix in ("_scale", "_zero_point"):
                operand = self.operand(f"{slot}{suffix}")
                rank = 1 if operand is None else len(shape_of(operand))
                shapes[f"{slot}{suffix}"] = shapes[slot][: max(1, min(rank, 2))]
        return shapes
