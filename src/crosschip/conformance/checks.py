"""Checks of the whole device: models, saved programs, threads, properties, memory.

A check is a function of the device and the compile options. It raises `Failed` if the device is
wrong, and `Declined` if the device lacks what is checked. Checks use whatever operators the device
supports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from crosschip.accuracy.epsilon import arithmetic_type
from crosschip.conformance.sized import support_of
from crosschip.conformance.tolerance import difference, tolerance
from crosschip.conformance.trial import Declined, Failed, attempt, build, reloaded, runs_of
from crosschip.conformance.variations import variations
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Device, Options, Program
from crosschip.ir import Array, Builder, DeviceError, ElementType, Model, Operand, TensorType
from crosschip.ir.types import FLOATS
from crosschip.ops import Operator, operators
from crosschip.ops.definition.examples import examples_of, model_of, samples
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.indexing import ScatterElements, ScatterND
from crosschip.ops.standard.layout import Expand, Reshape
from crosschip.ops.standard.matrix import MatMul

Check = Callable[[Device, Options], None]

CHECKS: dict[str, Check] = {}
"""The checks by name."""


def check(name: str) -> Callable[[Check], Check]:
    """Decorator that registers a check under a name."""

    def register(function: Check) -> Check:
        CHECKS[name] = function
        return function

    return register


@check("models/chain")
def chain(device: Device, options: Options) -> None:
    """Check twenty operations in sequence."""

    def build(b: Builder, x: Operand, step: Callable[[Operand], Operand]) -> list[Operand]:
        for _ in range(20):
            x = step(x)
        return [x]

    _compare(device, options, build)


@check("models/branches")
def branches(device: Device, options: Options) -> None:
    """Check an operand that two operations read, with an output on each branch."""

    def build(b: Builder, x: Operand, step: Callable[[Operand], Operand]) -> list[Operand]:
        trunk = step(x)
        return [step(trunk), step(step(trunk))]

    _compare(device, options, build)


@check("models/product-of-vectors")
def product_of_vectors(device: Device, options: Options) -> None:
    """Check the product of two vectors as matrices, reshaped to a scalar."""
    b = Builder("product")
    x, y = (b.input(name, TensorType(ElementType.FLOAT32, (3,))) for name in ("x", "y"))
    product = b.add(MatMul, b.add(Reshape, x, (1, 3)), b.add(Reshape, y, (3, 1)))
    b.output("z", b.add(Reshape, product, ()))
    model = b.build()
    for operation in model.operations:
        answer = device.supports(operation, options)
        if not answer:
            raise Declined(answer.reason)
    inputs = inputs_of(model, 0)
    expected = ReferenceProgram(model).run(inputs)
    actual = _run(device.compile(model, options), inputs)
    alike(options, model, inputs, actual, expected, "a product of vectors")


@check("models/intermediate-output")
def intermediate_output(device: Device, options: Options) -> None:
    """Check an output that other operations read, too."""

    def build(b: Builder, x: Operand, step: Callable[[Operand], Operand]) -> list[Operand]:
        first = step(x)
        return [first, step(first)]

    _compare(device, options, build)


@check("models/output-twice")
def output_twice(device: Device, options: Options) -> None:
    """Check one operand under two output names."""

    def build(b: Builder, x: Operand, step: Callable[[Operand], Operand]) -> list[Operand]:
        output = step(x)
        return [output, output]

    _compare(device, options, build)


@check("models/outputs-in-another-order")
def outputs_in_another_order(device: Device, options: Options) -> None:
    """Check two outputs of one type, in another order than the operations that compute them."""

    def build(b: Builder, x: Operand, step: Callable[[Operand], Operand]) -> list[Operand]:
        first, second = step(x), step(b.input("z", x.type))
        return [second, first]

    _compare(device, options, build)


@check("models/input-is-output")
def input_is_output(device: Device, options: Options) -> None:
    """Check an input that is also an output."""

    def build(b: Builder, x: Operand, step: Callable[[Operand], Operand]) -> list[Operand]:
        return [x, step(x)]

    _compare(device, options, build)


@check("models/constant-is-output")
def constant_is_output(device: Device, options: Options) -> None:
    """Check a constant that is an output."""

    def build(b: Builder, x: Operand, step: Callable[[Operand], Operand]) -> list[Operand]:
        return [step(x), b.constant(np.arange(6, dtype=np.float32).reshape(2, 3))]

    _compare(device, options, build)


@check("models/unused-input")
def unused_input(device: Device, options: Options) -> None:
    """Check an input that no operation reads."""

    def build(b: Builder, x: Operand, step: Callable[[Operand], Operand]) -> list[Operand]:
        b.input("unused", TensorType(ElementType.FLOAT32, (3,)))
        return [step(x)]

    _compare(device, options, build)


@check("saved/round-trip")
def round_trip(device: Device, options: Options) -> None:
    """Check that a saved and loaded program computes the same."""
    model, inputs = _model_with_weights(device, options)
    saved, expected = _save_and_run(device, options, model, inputs)
    _expect(_run(device.load(saved, model, options), inputs), expected, "a loaded program")


@check("saved/two-programs")
def two_programs(device: Device, options: Options) -> None:
    """Check that saved programs of two models are not confused."""
    pairs = [simple(device, options, skip) for skip in (0, 1)]
    saved_programs = [_save_and_run(device, options, model, inputs) for model, inputs in pairs]
    for (model, inputs), (saved, expected) in zip(pairs, saved_programs, strict=True):
        actual = _run(device.load(saved, model, options), inputs)
        _expect(actual, expected, "a loaded program, with another one saved beside it,")


@check("threads/one-program")
def one_program(device: Device, options: Options) -> None:
    """Check that eight threads can run one program at once on different inputs."""
    model, _ = simple(device, options)
    tries = [inputs_of(model, seed) for seed in range(64)]
    expected = [ReferenceProgram(model).run(inputs) for inputs in tries]
    program = device.compile(model, options)
    try:
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(program.run, tries))
    finally:
        program.close()
    for inputs, actual, wanted in zip(tries, results, expected, strict=True):
        alike(options, model, inputs, actual, wanted, "in one of eight threads")


@check("threads/compiling")
def compiling(device: Device, options: Options) -> None:
    """Check that eight threads can compile and run at once."""
    if not device.capabilities().parallel_compile:
        raise Declined("DEVICE: compiles one model at a time (Capabilities.parallel_compile)")
    model, inputs = simple(device, options)
    expected = ReferenceProgram(model).run(inputs)

    def attempt(_: int) -> Sequence[Array]:
        return _run(device.compile(model, options), inputs)

    with ThreadPoolExecutor(8) as pool:
        for actual in pool.map(attempt, range(16)):
            alike(options, model, inputs, actual, expected, "compiled in one of eight threads")


@check("device/second-context")
def second_context(device: Device, options: Options) -> None:
    """Check that a second instance works, and that closing it does not affect the first."""
    model, inputs = simple(device, options)
    expected = ReferenceProgram(model).run(inputs)
    program = device.compile(model, options)
    with _another(device) as second:
        actual = _run(second.compile(model, options), inputs)
        alike(options, model, inputs, actual, expected, "second")
    actual = _run(program, inputs)
    alike(options, model, inputs, actual, expected, "after another instance was closed")


@check("device/close-and-reopen")
def close_and_reopen(device: Device, options: Options) -> None:
    """Check that an instance works that is opened after another was closed."""
    model, inputs = simple(device, options)
    expected = ReferenceProgram(model).run(inputs)
    for _ in range(3):
        with _another(device) as again:
            actual = _run(again.compile(model, options), inputs)
        alike(options, model, inputs, actual, expected, "after closing and opening again")


@check("device/threads")
def set_threads(device: Device, options: Options) -> None:
    """Check that the device computes the same with another number of threads."""
    if not device.capabilities().threads:
        raise Declined("DEVICE: says that it cannot set threads")
    model, inputs = simple(device, options)
    expected = ReferenceProgram(model).run(inputs)
    for threads in (1, 2):
        actual = _run(device.compile(model, replace(options, threads=threads)), inputs)
        alike(options, model, inputs, actual, expected, f"with {threads} threads")


@check("device/one-thread")
def one_thread(device: Device, options: Options) -> None:
    """Check that with one thread a bad run is refused and the next run is right."""
    if not device.capabilities().threads:
        raise Declined("DEVICE: says that it cannot set threads")
    options = replace(options, threads=1)
    for operator in (Conv2D, Expand, Reshape, ScatterElements, ScatterND):
        for arguments in examples_of(operator):
            for variation in variations(operator, arguments):
                if variation.words.endswith(("resized", "-far")):
                    model = build(operator, variation)
                    if support_of(device, model, options):
                        attempt(device, model, runs_of(model, variation, 0, options), options)


@check("device/unknown-property")
def unknown_property(device: Device, options: Options) -> None:
    """Check that an unknown property is refused."""
    try:
        device.another({"no such property": "1"}).close()
    except DeviceError:
        return
    raise Failed("the property 'no such property' is not refused")


@check("device/known-properties")
def known_properties(device: Device, options: Options) -> None:
    """Check that each known property has a description."""
    silent = [name for name, line in device.known_properties().items() if not line.strip()]
    if silent:
        raise Failed(f"the property {silent[0]!r} has no line that says what it does")


@check("device/answers")
def answers(device: Device, options: Options) -> None:
    """Check that `supports` answers the same twice, and gives a reason for each refusal."""
    for operator in operators().values():
        for arguments in examples_of(operator)[:2]:
            (operation,) = model_of(operator, arguments).operations
            first, second = (
                device.supports(operation, options),
                device.supports(operation, options),
            )
            if first != second:
                raise Failed(f"{operator.type}: first says {first}, then {second}")
            if not first and not first.reason.strip():
                raise Failed(f"{operator.type}: says no without a reason")


@check("memory/read-only-inputs")
def read_only_inputs(device: Device, options: Options) -> None:
    """Check that read-only inputs are not written to."""
    model, inputs = simple(device, options)
    expected = ReferenceProgram(model).run(inputs)
    for array in inputs:
        array.flags.writeable = False
    alike(
        options, model, inputs, _run(device.compile(model, options), inputs), expected, "read-only"
    )


@check("memory/inputs-not-kept")
def inputs_not_kept(device: Device, options: Options) -> None:
    """Check that outputs do not change when the caller overwrites inputs after the run."""
    model, inputs = simple(device, options)
    expected = ReferenceProgram(model).run(inputs)
    actual = _run(device.compile(model, options), inputs)
    copies = [array.copy() for array in inputs]
    for array in inputs:
        array[...] = 0
    alike(options, model, copies, actual, expected, "after its inputs were overwritten")


@check("memory/outputs-are-the-callers")
def outputs_are_the_callers(device: Device, options: Options) -> None:
    """Check that outputs are writable and do not change when the program runs again."""
    model, inputs = simple(device, options)
    program = device.compile(model, options)
    try:
        first = program.run(inputs)
        copies = [array.copy() for array in first]
        others = inputs_of(model, 99)
        second = program.run(others)
        _expect(first, copies, "an output after the next run")
        for array in first:
            array[...] = 0
        wanted = ReferenceProgram(model).run(others)
        alike(options, model, others, second, wanted, "after other outputs were overwritten")
    except ValueError as error:
        raise Failed(f"an output cannot be written to: {error}") from None
    finally:
        program.close()


def _another(device: Device) -> Device:
    """Open a second instance for the same chip, with the same properties."""
    return device.another(device.properties)


Build = Callable[[Builder, Operand, Callable[[Operand], Operand]], list[Operand]]


def _compare(device: Device, options: Options, build: Build) -> None:
    """Run a model of one repeated operator, compiled and loaded, and compare the outputs."""
    operator, arguments = _repeatable(device, options)
    ((name, sample),) = samples(arguments)
    others = {slot: value for slot, value in arguments.items() if slot != name}
    b = Builder("whole")
    x = b.input("x", sample.type)
    results = build(b, x, lambda operand: b.add(operator, **{name: operand, **others}))
    for index, operand in enumerate(results):
        b.output(f"y{index}", operand)
    model = b.build()
    inputs = [
        sample.array(np.random.default_rng(seed))
        if operand.type == x.type
        else np.zeros(operand.type.static_shape or (), operand.type.element_type.dtype)
        for seed, operand in enumerate(model.inputs.values())
    ]
    expected = ReferenceProgram(model).run(inputs)
    actual = _run(device.compile(model, options), inputs)
    alike(options, model, inputs, actual, expected, f"a model of {operator.type}")
    with suppress(Declined):
        loaded = _run(saved_and_loaded(device, options, model), inputs)
        alike(options, model, inputs, loaded, expected, f"a loaded model of {operator.type}")


def _repeatable(device: Device, options: Options) -> tuple[type[Operator], dict[str, Any]]:
    """Return a supported operator of one tensor whose output has the input's type."""
    for operator, arguments, model in _supported_examples(device, options):
        if len(model.inputs) == len(model.outputs) == 1:
            (x,), (output,) = model.inputs.values(), model.outputs.values()
            if x.type == output.type and x.type.element_type is ElementType.FLOAT32:
                return operator, dict(arguments)
    raise Declined("DEVICE: supports no operator of one float32 tensor that keeps its type")


def simple(device: Device, options: Options, skip: int = 0) -> tuple[Model, list[Array]]:
    """Return a model of one supported operation, of the first supported operator or a later one."""
    types: set[str] = set()
    for operator, arguments, model in _supported_examples(device, options):
        only_random = all(sample.value is None for _, sample in samples(arguments))
        floats = all(o.type.element_type is ElementType.FLOAT32 for o in model.inputs.values())
        if model.inputs and only_random and floats:
            types.add(operator.type)
            if len(types) > skip:
                return model, inputs_of(model, 0)
    raise Declined("DEVICE: supports too few operators on float32 tensors")


def _model_with_weights(device: Device, options: Options) -> tuple[Model, list[Array]]:
    """Return a model with a constant of a kilobyte, or a simple one if no operator supports it."""
    weights = np.linspace(0.5, 1.5, 512, dtype=np.float32).reshape(16, 32)
    for operator in (Mul, Add, MatMul):
        b = Builder("weighted")
        x = b.input("x", TensorType(ElementType.FLOAT32, (16, 16 if operator is MatMul else 32)))
        b.output("y", b.add(operator, x, weights))
        model = b.build()
        if support_of(device, model, options):
            return model, inputs_of(model, 0)
    return simple(device, options)


def _supported_examples(
    device: Device, options: Options
) -> Iterator[tuple[type[Operator], dict[str, Any], Model]]:
    for operator in operators().values():
        for arguments in examples_of(operator):
            model = model_of(operator, arguments)
            if support_of(device, model, options):
                yield operator, dict(arguments), model


def inputs_of(model: Model, seed: int) -> list[Array]:
    """Draw inputs of a model: floats from 0.25 to 1, integers from 0 to 9."""
    generator = np.random.default_rng(seed)
    arrays = []
    for operand in model.inputs.values():
        least, most = (0.25, 1) if operand.type.element_type in FLOATS else (0, 10)
        drawn = generator.uniform(least, most, operand.type.static_shape)
        arrays.append(drawn.astype(operand.type.element_type.dtype))
    return arrays


def _run(program: Program, inputs: Sequence[Array]) -> Sequence[Array]:
    try:
        return program.run(inputs)
    finally:
        program.close()


def _save_and_run(
    device: Device, options: Options, model: Model, inputs: list[Array]
) -> tuple[bytes, Sequence[Array]]:
    """Return a program's saved form and its outputs."""
    program = device.compile(model, options)
    try:
        saved = program.save()
        if saved is None:
            raise Declined("DEVICE: does not save programs")
        return bytes(saved), program.run(inputs)
    finally:
        program.close()


def saved_and_loaded(
    device: Device, options: Options, model: Model, source: Model | None = None
) -> Program:
    """Compile a model, save the program and load it.

    Args:
        device: the device.
        options: the options of compiling and loading.
        model: the model to compile.
        source: the model that `load` receives, if it is another one.
    """
    return reloaded(device.compile(model, options), device, source or model, options)


def _expect(actual: Sequence[Array], expected: Sequence[Array], what: str) -> None:
    for array, wanted in zip(actual, expected, strict=True):
        if not np.array_equal(array, wanted, equal_nan=True):
            raise Failed(f"{what} does not compute the same")


def alike(
    options: Options,
    model: Model,
    inputs: Sequence[Array],
    actual: Sequence[Array],
    expected: Sequence[Array],
    what: str,
) -> None:
    """Raise `Failed` if outputs differ from the reference's; the message begins with `what`."""
    for operand, array, wanted in zip(model.outputs.values(), actual, expected, strict=True):
        counted = arithmetic_type(operand.type, options.precision)
        wrong = difference(array, wanted, operand.type, 10 * tolerance(counted, inputs))
        if wrong:
            raise Failed(f"{what}: {wrong}")
