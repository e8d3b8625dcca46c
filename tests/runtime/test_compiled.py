"""Compiled models: results, who owns them, threads, and the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import DelegatingDevice, close, float32, model_of, outputs_of
from tests.random_models import Example, examples

from crosschip import compile
from crosschip.hal import Options, Program
from crosschip.ir import Array, Builder, InputError, Model, Operand, symbol
from crosschip.ops.standard.activation import Relu, Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.runtime.compiled import CompiledModel

N = symbol("N")


def f(*values: float) -> Array:
    return np.array(values, np.float32)


def compiled(model: Model, **more: Any) -> CompiledModel:
    """Compiled for the reference device, without a cache."""
    return compile(model, "reference", cache=False, **more)


def on_two(model: Model, *declined: str) -> CompiledModel:
    """Compiled for a device that declines some operators, and one that runs them."""
    devices = [DelegatingDevice(name="a", declines=declined), DelegatingDevice(name="b")]
    return compile(model, devices, cache=False)


def scaled(b: Builder, x: Operand) -> tuple[Operand, ...]:
    y = b.add(Mul, x, 2.0)
    return b.add(Add, y, 1.0), y


x = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_results_by_name() -> None:
    with compiled(model_of(scaled, float32(2, 3))) as model:
        outputs = model.run({"x0": x})
    assert list(outputs) == ["y0", "y1"]
    np.testing.assert_array_equal(outputs["y0"], 2 * x + 1)
    np.testing.assert_array_equal(outputs["y1"], 2 * x)


def test_results_in_order() -> None:
    def make(b: Builder, x: Operand, y: Operand) -> Operand:
        return b.add(Concat, [x, y], 0)

    with compiled(model_of(make, float32(1), float32(2))) as model:
        result = model(f(1), f(2, 3))
        assert isinstance(result, np.ndarray)
        assert result.tolist() == [1, 2, 3]
        with pytest.raises(InputError, match="takes 2 inputs, not 1"):
            model(f(1))
    with compiled(model_of(scaled, float32(2, 3))) as model:
        results = model(x)
        assert isinstance(results, tuple)
        assert [array.tolist() for array in results] == [(2 * x + 1).tolist(), (2 * x).tolist()]


def test_what_a_compiled_model_says_of_itself() -> None:
    model = compiled(model_of(scaled, float32(2, 3)))
    assert {name: o.type for name, o in model.inputs.items()} == {"x0": float32(2, 3)}
    assert {name: o.type for name, o in model.outputs.items()} == dict.fromkeys(
        ("y0", "y1"), float32(2, 3)
    )
    assert repr(model) == "<CompiledModel model: 2 operations in 1 segments: reference runs 2>"
    assert model.report.cache == "off"
    assert model.report.milliseconds > 0


@given(examples(), st.sets(st.sampled_from(["CONV_2D", "ADD", "RELU", "TRANSPOSE", "RESHAPE"])))
def test_two_devices_compute_what_one_does(example: Example, declined: set[str]) -> None:
    expected = outputs_of(example.model, example.inputs)
    with on_two(example.model, *declined) as model:
        for _ in range(2):
            results = model.run(example.inputs)
            assert list(results) == list(expected)
            for name, array in results.items():
                close(array, expected[name])


SHARING: dict[str, Callable[[Builder, Operand], Operand | tuple[Operand, ...]]] = {
    "an input as output": lambda b, x: x,
    "an input as two outputs": lambda b, x: (x, x),
    "an input beside what is made of it": lambda b, x: (x, b.add(Relu, x)),
    "one operand under two names": lambda b, x: (y := b.add(Relu, x), y),
    "a constant": lambda b, x: b.constant(np.ones((2, 3), np.float32)),
    "a constant under two names": lambda b, x: (c := b.constant(np.ones(3, np.float32)), c),
    "views of an input": lambda b, x: (b.add(Reshape, x, (-1,)), b.add(Transpose, x, (1, 0))),
    "views of a result": lambda b, x: (
        y := b.add(Relu, x),
        b.add(Reshape, y, (-1,)),
        b.add(Reshape, y, (3, 2)),
    ),
    "parts of a result": lambda b, x: b.add_all(Split, b.add(Tanh, x), 0, (1, 1)),
    "parts of an input": lambda b, x: b.add_all(Split, x, 1, (1, 2)),
    "a transposed constant": lambda b, x: b.add(
        Transpose, b.constant(np.ones((300, 300), np.float32)), (1, 0)
    ),
    "results of two devices": lambda b, x: (y := b.add(Relu, x), b.add(Sigmoid, y), y, x),
}


@pytest.mark.parametrize("devices", ["one", "two"])
@pytest.mark.parametrize("kind", SHARING)
def test_the_caller_owns_what_comes_out(kind: str, devices: str) -> None:
    """Whatever is written into outputs and inputs later, nothing else changes."""
    source = model_of(SHARING[kind], float32(2, 3))
    given = x.copy()
    expected = {name: array.copy() for name, array in outputs_of(source, {"x0": x.copy()}).items()}
    with compiled(source) if devices == "one" else on_two(source, "SIGMOID", "TANH") as model:
        first = model.run({"x0": given})
        for name, array in first.items():
            array[...] = -7
            np.testing.assert_array_equal(given, x)
            for other, result in first.items():
                if other > name:
                    np.testing.assert_array_equal(result, expected[other])
        second = model.run({"x0": given})
        given[...] = -8
        for name, array in second.items():
            np.testing.assert_array_equal(array, expected[name])


def test_an_input_that_must_not_be_written_to_is_not() -> None:
    fixed = x.copy()
    fixed.flags.writeable = False
    with on_two(model_of(SHARING["results of two devices"], float32(2, 3)), "SIGMOID") as model:
        for array in model.run({"x0": fixed}).values():
            assert array.flags.writeable


class Strict(DelegatingDevice):
    """Insists on what the contract promises to programs."""

    def compile(self, model: Model, options: Options) -> Program:
        return StrictProgram(super().compile(model, options), model)


class StrictProgram(Program):
    def __init__(self, program: Program, model: Model) -> None:
        self.program = program
        self.types = [operand.type for operand in model.inputs.values()]

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        for array, type_ in zip(inputs, self.types, strict=True):
            assert array.flags.c_contiguous
            assert array.dtype == type_.element_type.dtype
            assert array.shape == type_.static_shape
        return self.program.run(inputs)


def test_every_program_gets_what_the_contract_promises() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Tanh, b.add(Relu, b.add(Transpose, x, (1, 0))))

    devices = [DelegatingDevice(name="a", declines=["TANH"]), Strict(name="b")]
    with compile(model_of(make, float32(2, 3)), devices, cache=False) as model:
        assert len(model.placement.segments) == 2
        assert model.run({"x0": x})["y0"].shape == (3, 2)


def test_results_can_be_fed_to_another_model() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Relu, b.add(Transpose, x, (1, 0)))

    with compiled(model_of(make, float32(N, symbol("M")))) as model:
        once = model(x)
        assert isinstance(once, np.ndarray)
        np.testing.assert_array_equal(model(once), x)


def test_operands_that_are_read_twice() -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        y = b.add(Add, x, x)
        return b.add(Mul, y, y), b.add(Concat, [y, y, x], 0)

    with on_two(model_of(make, float32(2)), "MUL") as model:
        square, joined = model(f(1, 2))
    assert square.tolist() == [4, 16]
    assert joined.tolist() == [2, 4, 2, 4, 1, 2]


def test_a_model_without_operations_or_outputs() -> None:
    with compiled(model_of(lambda b, x, y: (y, x), float32(2, 3), float32(1))) as model:
        assert model.placement.segments == ()
        outputs = model.run({"x0": x, "x1": f(5)})
        assert outputs["y0"].tolist() == [5]
        np.testing.assert_array_equal(outputs["y1"], x)
    with compiled(model_of(lambda b, x: (), float32(1))) as model:
        assert model.run({"x0": f(1)}) == {}
        assert model(f(1)) == ()
    with compiled(model_of(lambda b: b.constant(np.arange(3)))) as model:
        assert model.run({})["y0"].tolist() == [0, 1, 2]


def test_inputs_that_nothing_reads() -> None:
    with compiled(model_of(lambda b, x, unused: b.add(Relu, x), float32(2), float32(3))) as model:
        outputs = model.run({"x0": f(-1, 1), "x1": np.zeros(3, np.float32)})
        assert outputs["y0"].tolist() == [0, 1]


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_arrays_without_elements(shape: tuple[int, int]) -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        return b.add(Tanh, b.add(Relu, x)), b.add(Transpose, x, (1, 0)), x

    with on_two(model_of(make, float32(N, symbol("M"))), "TANH") as model:
        outputs = model.run({"x0": np.zeros(shape, np.float32)})
    assert [array.shape for array in outputs.values()] == [shape, shape[::-1], shape]


def test_scalars() -> None:
    with on_two(model_of(lambda b, x: b.add(Tanh, b.add(Relu, x)), float32()), "TANH") as model:
        result = model(np.float32(0))
        assert isinstance(result, np.ndarray)
        assert result.shape == ()


def test_open_sizes_may_change_from_call_to_call() -> None:
    with on_two(model_of(lambda b, x: b.add(Tanh, b.add(Relu, x)), float32(N, 3)), "TANH") as model:
        for n in (1, 4, 1, 0):
            assert model.run({"x0": np.ones((n, 3), np.float32)})["y0"].shape == (n, 3)


def test_fixed_shapes() -> None:
    with compiled(model_of(scaled, float32(N, 3)), shapes={"x0": (2, 3)}) as model:
        assert model.inputs["x0"].type == float32(2, 3)
        assert model.outputs["y0"].type == float32(2, 3)
        with pytest.raises(InputError, match=r"has shape \[1, 3\], but the model takes"):
            model(x[:1])


def test_many_threads_get_each_their_own_results() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        for _ in range(5):
            x = b.add(Tanh, b.add(Add, b.add(Relu, x), 1.0))
        return x

    source = model_of(make, float32(N, 4))
    count = 8
    start = threading.Barrier(count)
    inputs = [np.full((1 + i % 3, 4), i, np.float32) for i in range(count)]
    expected = [outputs_of(source, {"x0": array})["y0"] for array in inputs]

    with on_two(source, "TANH") as model:

        def call(i: int) -> None:
            start.wait()
            for _ in range(50):
                np.testing.assert_array_equal(model.run({"x0": inputs[i]})["y0"], expected[i])

        with ThreadPoolExecutor(count) as pool:
            for done in [pool.submit(call, i) for i in range(count)]:
                done.result()


def test_a_closed_model_does_not_run() -> None:
    model = compiled(model_of(scaled, float32(2, 3)))
    model.close()
    model.close()
    for call in (lambda: model.run({"x0": x}), lambda: model(x)):
        with pytest.raises(InputError, match="has been closed; compile it again"):
            call()


class Counting(Program):
    """Counts how often it has been closed."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.closed = 0

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        assert not self.closed
        return self.program.run(inputs)

    def close(self) -> None:
        self.closed += 1


class Keeping(DelegatingDevice):
    """Keeps the programs that it compiled."""

    def compile(self, model: Model, options: Options) -> Program:
        program = Counting(super().compile(model, options))
        self.programs = [*getattr(self, "programs", []), program]
        return program


def test_programs_are_closed_and_the_callers_devices_are_not() -> None:
    device = Keeping()
    with compile(model_of(scaled, float32(2, 3)), [device], cache=False) as model:
        model(x)
        assert [program.closed for program in device.programs] == [0]
    assert [program.closed for program in device.programs] == [1]
    assert device.closed == 0


def test_leaving_by_an_error_closes_too() -> None:
    device = Keeping()
    with (
        pytest.raises(InputError),
        compile(model_of(scaled, float32(2, 3)), [device], cache=False) as model,
    ):
        model.run({})
    assert [program.closed for program in device.programs] == [1]
