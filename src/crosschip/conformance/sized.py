"""Programs of models with dynamic sizes, on devices that compile static shapes only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crosschip.hal import CompileError, Device, Offer, Options, Program, Rule, Support
from crosschip.hal.conditions import ConditionalOffer, InputGuard
from crosschip.ir import Array, DeviceError, Model
from crosschip.lowering.static_shapes import fix_sizes
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.queries import device_query
from crosschip.runtime.shapes.policy import strategy_for
from crosschip.runtime.shapes.strategy import DynamicShapeStrategy

Compile = Callable[[Model], Program]


class DeclinedSizes(Exception):
    """The device declines the sizes of a run; the runtime would use another device."""


def support_of(device: Device, model: Model, options: Options) -> Support:
    """Query the support of a model of one operation as the runtime does.

    Raises:
        DeviceError: the device fails to answer.
    """
    answer = _offer(device, model, options).answers[0]
    if answer.rule is Rule.FAILURE:
        raise DeviceError(answer.reason)
    return answer


def guard_of(device: Device, model: Model, options: Options) -> InputGuard:
    """Return the checks of inputs that the runtime makes before it runs a program."""
    offer = _offer(device, model, options)
    conditions = offer.conditions if isinstance(offer, ConditionalOffer) else ()
    return InputGuard(model, conditions)


def _offer(device: Device, model: Model, options: Options) -> Offer:
    return device_query(GuardedDevice(device, device.name), options)(model)


def program_of(device: Device, model: Model, options: Options, compile: Compile) -> Program:
    """Compile a model, or return a program that compiles it for the sizes of each run.

    Args:
        device: the device, whose capabilities decide.
        model: the model.
        options: the compile options.
        compile: compiles a model on the device.
    """
    way = strategy_for(device.capabilities(), model, model, options.sizes)
    if way is DynamicShapeStrategy.PROGRAM_PER_SHAPE:
        return _SpecializedProgram(device, model, options, compile)
    return compile(model)


def is_specialized(program: Program) -> bool:
    """Return whether a program compiles for each run."""
    return isinstance(program, _SpecializedProgram)


class _SpecializedProgram(Program):
    """Compiles a model for the sizes of each run, if the device supports them."""

    def __init__(self, device: Device, model: Model, options: Options, compile: Compile) -> None:
        self._device = device
        self._model = model
        self._options = options
        self._compile = compile

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compute the outputs.

        Raises:
            DeclinedSizes: the device does not support the operation with these sizes.
        """
        held = {
            operand: array
            for operand, array in zip(self._model.inputs.values(), inputs, strict=True)
            if operand.type.shape_value is not None
        }
        sized = fix_sizes(self._model, [array.shape for array in inputs], held, self._device.name)
        outputs: Sequence[Array] = ()
        if sized.model.operations:
            program = self._compile_if_supported(sized.model)
            try:
                outputs = program.run([inputs[index] for index in sized.reads])
            finally:
                program.close()
        return [outputs[m] if isinstance(m, int) else m.copy() for m in sized.makes]

    def _compile_if_supported(self, model: Model) -> Program:
        refuses = self._device.capabilities().compile_names_unsupported
        if not refuses:
            answer = support_of(self._device, model, self._options)
            if not answer:
                raise DeclinedSizes(answer.reason)
        try:
            return self._compile(model)
        except CompileError as error:
            if refuses and error.operations:
                raise DeclinedSizes(str(error)) from error
            raise
