"""One program on a device, run on several sets of inputs and compared with the reference.

If the reference rejects a run, the device must reject it, too, and run correctly afterwards. If an
operator does not enforce the broken rule, the device may compute anything instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from crosschip.accuracy.epsilon import arithmetic_type, epsilon
from crosschip.conformance.invocation import Invocation, Misbehaviour, invocations
from crosschip.conformance.latitude import (
    Latitude,
    counted_in,
    latitude,
    least_size,
)
from crosschip.conformance.memory import LARGEST_GROWTH, growth
from crosschip.conformance.sized import DeclinedSizes, guard_of, is_specialized, program_of
from crosschip.conformance.tolerance import (
    difference,
    in_steps,
    narrowed,
    rounds_exact_reals,
    sensitivity,
    signs_bind,
    tolerance,
    wrong_zeros,
)
from crosschip.conformance.variations import Variation
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Device, Options, Program
from crosschip.hal.conditions import InputGuard, OutOfRange
from crosschip.ir import Array, DeviceError, Model, TensorType
from crosschip.ir.types import FLOATS
from crosschip.ops import Operator
from crosschip.ops.definition.examples import Example, arrays_for, model_of, samples


class Failed(Exception):
    """The device is wrong; the message describes the fault."""


class Declined(Exception):
    """The device declines; the message is its reason."""


class Unsound(Exception):
    """The definition of an operator contradicts itself; the message describes the contradiction."""


@dataclass(frozen=True, slots=True)
class Run:
    """The inputs of a run and its expected result.

    Attributes:
        inputs: the arrays, in the order of the model's inputs.
        expected: the reference's outputs; `None` if it rejects the run.
        refusal: why it rejects the run.
        mandatory: whether the device must reject it, too.
        random: the names of the inputs and constants with random elements.
        latitude: the differences from `expected` that the definition allows.
        exact: whether quantized outputs are rounded from reals that any arithmetic computes
            exactly.
    """

    inputs: list[Array]
    expected: Sequence[Array] | None
    refusal: str
    mandatory: bool
    random: frozenset[str]
    latitude: Latitude = field(default_factory=Latitude)
    exact: bool = False


def build(operator: type[Operator], variation: Variation) -> Model:
    """Return the model of a variation.

    Raises:
        Unsound: inference raises another error than `ModelError`.
    """
    try:
        return model_of(operator, variation.arguments, named=variation.named)
    except Exception as error:
        raise Unsound(f"inference: {type(error).__name__}: {error}") from error


def runs_of(model: Model, variation: Variation, seed: int, options: Options) -> list[Run]:
    """Return the runs of a variation: on its own samples, then on those of its further runs.

    Random float32 elements are representable in the precision of the options.

    Raises:
        Unsound: the reference contradicts inference, or raises an unexpected error.
    """
    program = ReferenceProgram(model)
    own = variation.arguments
    return [
        _run(model, program, {**own, **later}, variation.drawn, seed + index, options)
        for index, later in enumerate(({}, *variation.runs))
    ]


def attempt(
    device: Device,
    model: Model,
    runs: Sequence[Run],
    options: Options,
    *,
    loaded: bool = False,
    claimed: float | None = None,
    watched: bool = False,
) -> None:
    """Compile a model on a device and compare each run with the reference.

    `Program.run` is called with the inputs of each run in turn. Every other call of the runtime is
    then made with the inputs of the first run.

    Args:
        device: the tested device.
        model: a model of one operation that the device supports.
        runs: the inputs and expected outputs.
        options: the compile options.
        loaded: whether to run the program from its saved form.
        claimed: the accuracy that the device claims; `None` for the kit's own.
        watched: whether to check that further runs do not grow memory.

    Raises:
        Failed: the device is wrong.
        Declined: the program must run from its saved form and the device does not save programs, or
            the device declines the sizes of all runs.
    """

    def compile(model: Model) -> Program:
        program = device.compile(model, options)
        return reloaded(program, device, model, options) if loaded else program

    try:
        program = program_of(device, model, options, compile)
    except DeviceError:
        if all(run.expected is None for run in runs):
            return
        raise
    guard = guard_of(device, model, options)
    trial = _Trial(device, model, program, options, claimed)
    try:
        for index, run in enumerate(runs):
            if not _is_refused(guard, run):
                trial.run(run, f"run {index + 1}: " if index else "")
        if trial.compared:
            trial.invoke(trial.compared[0])
        if trial.compared and watched:
            trial.watch(trial.compared[0])
    finally:
        program.close()
    trial.check_kept()
    if len(trial.declined) == len(runs):
        raise Declined(trial.declined[0])


class _Trial:
    """A program under test.

    Args:
        device: the device of the program.
        model: the compiled model.
        program: the program.
        options: the compile options.
        claimed: the accuracy that the device claims; `None` for the kit's own.

    Attributes:
        compared: the runs whose outputs were right.
        declined: the reasons why the device declined the sizes of runs.
    """

    def __init__(
        self,
        device: Device,
        model: Model,
        program: Program,
        options: Options,
        claimed: float | None,
    ) -> None:
        self.compared: list[Run] = []
        self.declined: list[str] = []
        self._device = device
        self._model = model
        self._program = program
        self._options = options
        self._claimed = claimed
        self._outputs: list[tuple[Sequence[Array], list[Array]]] = []

    def run(self, run: Run, where: str) -> None:
        """Run the program and compare, or expect it to reject the run as the reference does."""
        try:
            outputs = self._check_call(run, where, lambda inputs: [self._program.run(inputs)])
        except (DeclinedSizes, OutOfRange) as error:
            self.declined.append(str(error))
            return
        if outputs and run.expected is not None:
            self.compared.append(run)

    def invoke(self, run: Run) -> None:
        """Repeat a right run with each of the runtime's other calls."""
        assert run.expected is not None, "it was compared"
        for name, invocation in invocations(
            self._device, self._program, self._model, run.inputs, run.expected
        ):
            try:
                self._check_call(run, f"{name}: ", invocation)
            except Misbehaviour as error:
                raise Failed(f"{name}: {error}") from None

    def watch(self, run: Run) -> None:
        """Raise `Failed` if further runs allocate memory that is not released."""
        if is_specialized(self._program):
            return  # what is compiled for each run is kept by the compiler, not by runs
        grown = growth(lambda: self._program.run(run.inputs))
        if grown > LARGEST_GROWTH:
            raise Failed(f"memory grows by {grown} bytes with each run on the same inputs")
        self._check_call(run, "after many runs: ", lambda inputs: [self._program.run(inputs)])

    def check_kept(self) -> None:
        """Raise `Failed` if outputs have changed since they were returned."""
        for outputs, before in self._outputs:
            for name, output, copy in zip(self._model.outputs, outputs, before, strict=True):
                if output.tobytes() != copy.tobytes():
                    raise Failed(f"{name}: changed when the program ran again")

    def _check_call(self, run: Run, where: str, invocation: Invocation) -> bool:
        """Compare the results of a call; false if it rejects a run that it may reject."""
        before = [array.copy() for array in run.inputs]
        try:
            returned = [self._without_rules(outputs) for outputs in invocation(run.inputs)]
        except DeviceError as error:
            left = run.latitude
            if run.expected is None or left.everything or left.refusable:
                return False
            if isinstance(error, OutOfRange):
                raise
            raise Failed(f"{where}DeviceError: {error}") from None
        for name, array, copy in zip(self._model.inputs, run.inputs, before, strict=True):
            if array.tobytes() != copy.tobytes():
                raise Failed(f"{where}input {name}: was written to; inputs may only be read")
        for outputs in returned:
            self._compare(run, where, outputs)
        return True

    def _without_rules(self, outputs: Sequence[Array]) -> list[Array]:
        """Drop the further outputs that tell which rules were broken."""
        rules, count = self._program.rules, len(self._model.outputs)
        if len(outputs) == count + len(rules):
            for rule, holds in zip(rules, outputs[count:], strict=True):
                if not np.all(holds):
                    raise DeviceError(rule)
            outputs = outputs[:count]
        return list(outputs)

    def _compare(self, run: Run, where: str, outputs: list[Array]) -> None:
        if run.expected is None:
            if run.mandatory and not _is_of_nothing(self._model, run, outputs):
                shapes = ", ".join(str(list(np.shape(output))) for output in outputs)
                raise Failed(f"{where}is not refused, but makes {shapes}: {run.refusal}")
            return
        wrong = wrong_outputs(self._model, run, outputs, self._options, self._claimed)
        if wrong:
            raise Failed(where + wrong)
        self._outputs.append((outputs, [array.copy() for array in outputs]))


def _is_refused(guard: InputGuard, run: Run) -> bool:
    """Return whether the runtime rejects a run, so that the device does not receive it."""
    try:
        guard.check(run.inputs)
    except OutOfRange:
        return True
    return False


def wrong_outputs(
    model: Model,
    run: Run,
    outputs: Sequence[Array],
    options: Options,
    claimed: float | None = None,
) -> str:
    """Return the fault of the outputs of a run; empty if they are right."""
    precision = options.precision
    assert run.expected is not None, "it should succeed"
    if len(outputs) != len(run.expected):
        return f"makes {len(outputs)} outputs, not {len(run.expected)}"
    read = [*run.inputs, *(o.value for o in model.constants if o.value is not None)]
    if run.latitude.everything:
        return ""
    (operation,) = model.operations
    is_quantized = isinstance(operation, Operator) and bool(operation.quantized_inputs())
    exact = run.exact
    for index, (name, operand) in enumerate(model.outputs.items()):
        output, wanted = outputs[index], run.expected[index]
        if isinstance(output, np.ndarray) and output.shape == wanted.shape:
            output = run.latitude.specified(index, output, wanted)
        type_ = arithmetic_type(operand.type, precision)
        stored = counted_in(operation, type_)
        allowed = tolerance(stored, read) if claimed is None else claimed
        wrong = difference(output, wanted, operand.type, allowed, precision=precision, exact=exact)
        if wrong and is_quantized and np.shape(output) == wanted.shape:
            # The reals that integers stand for may be rounded to float32 first.
            output = np.where(output == in_steps(model, run.inputs)[index], wanted, output)
            wrong = difference(
                output, wanted, operand.type, allowed, precision=precision, exact=exact
            )
        if wrong and operand.type.element_type in FLOATS:
            least = run.latitude.spacings * epsilon(type_.element_type)
            moved = sensitivity(
                model, run.inputs, run.random, run.expected, precision, least_size(model)
            )[index]
            moved = max(moved, least)
            wrong = difference(output, wanted, operand.type, allowed, moved, precision)
        if not wrong and signs_bind(operation):
            wrong = wrong_zeros(output, wanted)
        if wrong:
            return f"{name}: {wrong}"
    return ""


def reloaded(program: Program, device: Device, model: Model, options: Options) -> Program:
    """Save a program and load it.

    Raises:
        Declined: the device does not save programs.
    """
    saved = program.save()
    program.close()
    if saved is None:
        raise Declined("DEVICE: does not save programs")
    return device.load(bytes(saved), model, options)


def _run(
    model: Model,
    program: ReferenceProgram,
    arguments: Example,
    drawn: frozenset[str],
    seed: int,
    options: Options,
) -> Run:
    arrays = arrays_for(arguments, seed)
    random = frozenset(name for name, sample in samples(arguments) if sample.value is None)
    arrays |= {name: narrowed(arrays[name], options.precision) for name in random}
    inputs, random = [arrays[name] for name in model.inputs], random | drawn
    try:
        expected = program.run(inputs)
    except DeviceError as error:
        refusal = str(error.__cause__)
        if not isinstance(error.__cause__, MemoryError) and not _names_slot(model, refusal):
            raise Unsound(f"reference: refuses without naming a slot: {refusal}") from error
        return Run(inputs, None, refusal, _is_mandatory(model, error), random)
    except Exception as error:
        raise Unsound(f"reference: {type(error).__name__}: {error}") from error
    for operand, array in zip(model.outputs.values(), expected, strict=True):
        wrong = _type_difference(operand.type, array)
        if wrong:
            raise Unsound(f"reference: {operand.name} {wrong}, but is inferred as {operand.type}")
    left = latitude(model, inputs, expected)
    exact = rounds_exact_reals(model, inputs)
    return Run(inputs, expected, "", False, random, left, exact)


def _is_mandatory(model: Model, error: DeviceError) -> bool:
    (operation,) = model.operations
    slot = str(error.__cause__).partition(":")[0]
    assert isinstance(operation, Operator), "cases are of standard operators"
    return not isinstance(error.__cause__, MemoryError) and slot not in operation.unenforced


def _names_slot(model: Model, refusal: str) -> bool:
    (operation,) = model.operations
    named = refusal.partition(":")[0]
    return isinstance(operation, Operator) and any(s.name == named for s in operation.slots)


def _type_difference(type_: TensorType, array: Array) -> str:
    """Return how the type or shape of an array differs from the inferred one; empty if equal."""
    if array.dtype != type_.element_type.dtype:
        return f"has elements of type {array.dtype}"
    if type_.shape is None:
        return ""
    fits = len(type_.shape) == array.ndim and all(
        size == own
        for size, own in zip(type_.shape, array.shape, strict=True)
        if isinstance(size, int)
    )
    return "" if fits else f"has shape {list(array.shape)}"


def _is_of_nothing(model: Model, run: Run, outputs: Sequence[Array]) -> bool:
    """Return whether a device returned empty outputs for a run with an empty tensor."""
    (operation,) = model.operations
    assert isinstance(operation, Operator), "cases are of standard operators"
    input_arrays = dict(zip(model.inputs.values(), run.inputs, strict=True))
    tensors = [o for slot, o in operation.filled() if not slot.parameter]
    read = [input_arrays.get(operand, operand.value) for operand in tensors]
    is_empty = any(array is not None and not array.size for array in read)
    return is_empty and not any(np.size(output) for output in outputs)
