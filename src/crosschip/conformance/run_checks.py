"""Checks of runs: events, sessions, runs in flight, batches, saved constants."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from crosschip.conformance.checks import alike, check, inputs_of, saved_and_loaded, simple
from crosschip.conformance.invocation import submits
from crosschip.conformance.sized import support_of
from crosschip.conformance.trial import Declined, Failed
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Carried, Device, HostBuffer, HostEvent, Options
from crosschip.ir import Array, Builder, ElementType, Model, TensorType
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.serialization import many_from_bytes, many_to_bytes
from crosschip.ops.standard.arithmetic import Add, Mul, Sub
from crosschip.runtime.artifact.placements import MIN_OMITTED_NBYTES

_MANY_RUNS = 300
_SECONDS_UNTIL_READ = 0.2


@check("submit/after")
def after(device: Device, options: Options) -> None:
    """Check that a submitted run reads its inputs only after the events that it waits for."""
    model, inputs = simple(device, options)
    expected = ReferenceProgram(model).run(inputs)
    program = device.compile(model, options)
    try:
        if not submits(program):
            raise Declined("DEVICE: programs take on no runs; they only block")
        event = HostEvent()
        arrays = [np.zeros_like(array) for array in inputs]
        buffers = [HostBuffer(array, event) for array in arrays]
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(program.submit, buffers, (), [event])
            # A program that does not wait for the event has read zeros by then.
            threading.Event().wait(_SECONDS_UNTIL_READ)
            for array, value in zip(arrays, inputs, strict=True):
                array[...] = value
            event.set()
            submission = future.result()
            submission.event.wait()
        outputs = [buffer.array() for buffer in submission.outputs]
        alike(options, model, inputs, outputs, expected, "submitted behind an event")
    finally:
        program.close()


@check("submit/many")
def many(device: Device, options: Options) -> None:
    """Check sixteen simultaneous runs on different inputs."""
    model, _ = simple(device, options)
    program = device.compile(model, options)
    try:
        if not submits(program):
            raise Declined("DEVICE: programs take on no runs; they only block")
        tries = [inputs_of(model, seed) for seed in range(16)]
        submissions = [program.submit([HostBuffer(a) for a in inputs], (), ()) for inputs in tries]
        for inputs, submission in reversed(list(zip(tries, submissions, strict=True))):
            submission.event.wait()
            outputs = [buffer.array() for buffer in submission.outputs]
            expected = ReferenceProgram(model).run(inputs)
            alike(options, model, inputs, outputs, expected, "one of sixteen under way")
    finally:
        program.close()


@check("session/carried")
def carried(device: Device, options: Options) -> None:
    """Check that two sessions of one program carry separate states from run to run."""
    model = _accumulating_model(device, options)
    program = device.compile(model, options)
    try:
        sessions = [program.session([Carried(output=1, input=1)]) for _ in range(2)]
        states = [np.full((2, 3), start, np.float32) for start in (1, -5)]
        for session, state in zip(sessions, states, strict=True):
            if session is None:
                raise Declined("DEVICE: programs have no sessions of their own")
            session.write(0, state)
        for step in range(4):
            for place, session in enumerate(sessions):
                assert session is not None, "the device has sessions"
                x = inputs_of(model, step + 10 * place)[0]
                expected = ReferenceProgram(model).run([x, states[place]])
                first, second = session.run([x, None])
                if first is None or second is not None:
                    raise Failed("a session returns what is carried, or not what is not")
                _expect_close(first, expected[0], f"step {step + 1} of a session")
                state = session.read(0)
                _expect_close(state, states[place], "a state before `advance`")
                session.advance()
                _expect_close(state, states[place], "a state that was read before `advance`")
                states[place] = np.asarray(expected[1])
                _expect_close(session.read(0), states[place], "a state after `advance`")
                if session.shape(0) != (2, 3):
                    raise Failed(f"a session says the shape {session.shape(0)}, not (2, 3)")
        for session in sessions:
            assert session is not None, "the device has sessions"
            session.close()
    finally:
        program.close()


@check("models/same-operand-twice")
def same_operand_twice(device: Device, options: Options) -> None:
    """Check an operation that reads one operand in both of its slots."""
    b = Builder("twice")
    x = b.input("x", TensorType(ElementType.FLOAT32, (2, 3)))
    for operator in (Add, Sub, Mul):
        b.output(operator.type, b.add(operator, x, x))
    model = _require_support(device, b.build(), options)
    inputs = inputs_of(model, 0)
    program = device.compile(model, options)
    try:
        expected = ReferenceProgram(model).run(inputs)
        alike(options, model, inputs, program.run(inputs), expected, "of one operand twice")
    finally:
        program.close()


@check("runs/many")
def many_runs(device: Device, options: Options) -> None:
    """Check that all of a long sequence of runs on changing inputs are right."""
    model, _ = simple(device, options)
    program, right = device.compile(model, options), ReferenceProgram(model)
    try:
        for seed in range(_MANY_RUNS):
            inputs = inputs_of(model, seed % 7)
            outputs = program.run(inputs)
            alike(options, model, inputs, outputs, right.run(inputs), f"run {seed + 1}")
    finally:
        program.close()


@check("runs/close-beside")
def close_beside(device: Device, options: Options) -> None:
    """Check that a program still runs after other programs of the same model are closed."""
    try:
        model = _model_with_constants(device, options, 5)
        inputs = inputs_of(model, 0)
    except Declined:
        model, inputs = simple(device, options)
    expected = ReferenceProgram(model).run(inputs)
    first, second = device.compile(model, options), device.compile(model, options)
    try:
        with ThreadPoolExecutor(2) as pool:
            results = [pool.submit(first.run, inputs) for _ in range(16)]
            second.run(inputs)
            second.close()
            for result in results:
                alike(options, model, inputs, result.result(), expected, "beside a closed one")
        alike(options, model, inputs, first.run(inputs), expected, "after another was closed")
    finally:
        first.close()


@check("runs/other-constants")
def other_constants(device: Device, options: Options) -> None:
    """Check that models that differ only in their constants have different programs."""
    models = [_model_with_constants(device, options, factor) for factor in (1, 2)]
    programs = [device.compile(model, options) for model in models]
    try:
        for model, program in zip(models, programs, strict=True):
            inputs = inputs_of(model, 0)
            expected = ReferenceProgram(model).run(inputs)
            alike(options, model, inputs, program.run(inputs), expected, "with other constants")
    finally:
        for program in programs:
            program.close()


@check("saved/constants")
def saved_constants(device: Device, options: Options) -> None:
    """Check that a saved program holds its constants of each element type and several sizes.

    If the device declares that its saved programs hold the weights, the program is loaded with a
    model without the large constants, as the runtime does.
    """
    model = _model_with_constants(device, options, 3)
    inputs = inputs_of(model, 0)
    expected = ReferenceProgram(model).run(inputs)
    holds_weights = device.capabilities().holds_weights
    source = _without_large_reals(model) if holds_weights else model
    program = saved_and_loaded(device, options, model, source)
    try:
        alike(options, model, inputs, program.run(inputs), expected, "a loaded program")
    finally:
        program.close()


def _expect_close(actual: Array, expected: Array, what: str) -> None:
    if not np.allclose(actual, expected, rtol=1e-2, atol=1e-2):
        raise Failed(f"{what}: {actual.tolist()} instead of {expected.tolist()}")


def _accumulating_model(device: Device, options: Options) -> Model:
    """Return a model of x and a state that computes x * state and x + state."""
    b = Builder("accumulating")
    x, state = (b.input(name, TensorType(ElementType.FLOAT32, (2, 3))) for name in ("x", "state"))
    b.output("y", b.add(Mul, x, state))
    b.output("state", b.add(Add, x, state))
    return _require_support(device, b.build(), options)


def _without_large_reals(model: Model) -> Model:
    """Return the model as the runtime saves it beside programs that hold their weights."""
    left_out = {
        id(constant.content)
        for constant in model.constants
        if constant.type.element_type in FLOATS
        and constant.content is not None
        and constant.content.nbytes >= MIN_OMITTED_NBYTES
    }
    (source,) = many_from_bytes(many_to_bytes([model], left_out))
    return source


_TYPES: Sequence[ElementType] = (
    *(ElementType.FLOAT32, ElementType.INT64, ElementType.INT32, ElementType.FLOAT16),
    *(ElementType.UINT8, ElementType.INT8, ElementType.FLOAT64, ElementType.BFLOAT16),
    *(ElementType.INT16, ElementType.UINT16, ElementType.UINT32, ElementType.UINT64),
)


def _model_with_constants(device: Device, options: Options, factor: int) -> Model:
    """Return a model with three constants of each type that the device supports.

    The added ones have the same elements, as a row and as a column; the third is a matrix of up to
    12,800 bytes.

    Args:
        device: the device.
        options: the compile options.
        factor: multiplies the elements of the constants.
    """
    b = Builder("constants")
    is_empty = True
    for element_type in _TYPES:
        for count in (1, 3, 40):
            x_type = TensorType(element_type, (count, count))
            values = [(np.arange(count) + n) % 11 * factor for n in (1, 1, 3)]
            held: list[Array] = [value.astype(element_type.dtype) for value in values]
            # The same elements in another shape.
            held[1] = held[1].reshape(count, 1)
            held[2] = np.tile(held[2], (count, 1))
            if all(_takes(device, options, operator, x_type, held[0]) for operator in (Add, Sub)):
                x = b.input(f"{element_type}_{count}", x_type)
                y = b.add(Sub, b.add(Add, b.add(Add, x, held[0]), held[1]), held[2])
                b.output(f"{element_type}_{count}_sum", y)
                is_empty = False
    if is_empty:
        raise Declined("DEVICE: adds no constants")
    return b.build()


def _takes(
    device: Device,
    options: Options,
    operator: type[Add] | type[Sub],
    type_: TensorType,
    constant: Array,
) -> bool:
    b = Builder("one")
    b.output("y", b.add(operator, b.input("x", type_), constant))
    return bool(support_of(device, b.build(), options))


def _require_support(device: Device, model: Model, options: Options) -> Model:
    for operation in model.operations:
        answer = device.supports(operation, options)
        if not answer:
            raise Declined(answer.reason)
    return model
