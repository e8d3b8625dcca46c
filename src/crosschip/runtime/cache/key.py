"""Keys of cache entries: digests of everything that a program, choice or model depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from crosschip.hal import Options
from crosschip.ir import ControlFlow, Extension, Model, Operand, Operation
from crosschip.ir.bodies import walk_operations
from crosschip.ir.version import VERSION
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.runtime.artifact.container import FORMAT_VERSION
from crosschip.runtime.cache.canonical import canonical
from crosschip.runtime.cache.fingerprints import Fingerprints
from crosschip.runtime.guard.devices import GuardedDevice


def cache_key(
    model: Model,
    device: GuardedDevice,
    options: Options,
    fingerprints: Fingerprints | None = None,
    *,
    by_code: bool = True,
) -> str:
    """Return the key of a program: a SHA-256, in hexadecimal, of the model, device and options.

    Order, types and values of operands count, but not names. The device's code counts if `by_code`.
    """
    content = _Content(fingerprints)
    content.add("crosschip", VERSION, FORMAT_VERSION)
    content.add_device(device, by_code=by_code)
    content.add(canonical(options))
    content.add_model(model)
    return content.digest.hexdigest()


def automatic_key(
    model: Model,
    devices: Sequence[GuardedDevice],
    options: Options,
    processors: int,
    fingerprints: Fingerprints | None = None,
    placement: object = (),
) -> str:
    """Return the key of the choice of the fastest placement of a model.

    Args:
        model: the model.
        devices: the candidate devices.
        options: the compile options.
        processors: the number of processors.
        fingerprints: the fingerprints of the model's constants.
        placement: further options that affect the placement.
    """
    content = _Content(fingerprints)
    content.add("auto", VERSION, FORMAT_VERSION, processors)
    for device in devices:
        content.add_device(device)
    content.add(canonical(options), canonical(placement))
    content.add_model(model)
    return content.digest.hexdigest()


def costs_key(device: GuardedDevice, options: Options, machine: str) -> str:
    """Return the key of what blocks cost on a device, with some options, on a machine."""
    content = _Content()
    content.add("costs", VERSION, FORMAT_VERSION, machine)
    content.add_device(device)
    content.add(canonical(options))
    return content.digest.hexdigest()


def model_key(model: Model, fingerprints: Fingerprints | None = None) -> str:
    """Return a SHA-256, in hexadecimal, of a model with its weights and all names in it."""
    content = _Content(fingerprints)
    content.add("model", model.name, *model.inputs, "outputs", *model.outputs)
    content.add(*(operation.name for operation in walk_operations(model)))
    content.add_model(model)
    return content.digest.hexdigest()


def request_key(
    model: str, devices: Sequence[GuardedDevice], options: Options, key_options: object
) -> str:
    """Return a SHA-256, in hexadecimal, of all arguments of one call of `compile`.

    Args:
        model: the key of the model.
        devices: the candidate devices, in the order of preference.
        options: the compile options.
        key_options: further options that affect the placement.
    """
    content = _Content()
    content.add("request", VERSION, model)
    for device in devices:
        content.add_device(device)
    content.add(canonical(options), canonical(key_options))
    return content.digest.hexdigest()


class _Content:
    """A SHA-256 over parts, each with its length."""

    def __init__(self, fingerprints: Fingerprints | None = None) -> None:
        self.digest = hashlib.sha256()
        self._fingerprints = fingerprints or Fingerprints()

    def add(self, *parts: object) -> None:
        """Add parts as their texts."""
        for part in parts:
            text = str(part).encode(errors="surrogatepass")
            self.digest.update(len(text).to_bytes(8, "little") + text)

    def add_device(self, device: GuardedDevice, *, by_code: bool = True) -> None:
        """Add a device: its name, version, code, machine and properties.

        A device compiles the same in this process and in a driver process, so that does not count.
        """
        name = device.name.partition("@")[0]
        code = device.code if by_code else ""
        self.add(name, device.version, code, *device.capabilities.tied_to)
        self.add(sorted(device.compile_properties.items()))

    def add_type(self, operand: Operand) -> None:
        """Add an operand's type; the text form of its quantization rounds scales."""
        self.add(operand.type, repr(operand.type.quantization))

    def add_model(self, model: Model) -> None:
        """Add a model with its constants and bodies."""
        number = {operand: i for i, operand in enumerate(model.inputs.values())}
        for operand in model.inputs.values():
            self.add_type(operand)
        for operand in model.constants:
            number[operand] = len(number)
            self.add("constant")
            self.add_type(operand)
            self.digest.update(self._fingerprints.of(operand))
        for operation in model.operations:
            self._add_operation(operation, number)
            for output in operation.outputs:
                number[output] = len(number)
                self.add_type(output)
        self.add("outputs", *_references(tuple(model.outputs.values()), number))

    def _add_operation(self, operation: Operation, number: Mapping[Operand, int]) -> None:
        self.add(operation.type, *_references(operation.inputs, number))
        if isinstance(operation, Extension):
            self.add(operation.payload.hex())
        if isinstance(operation, PackagedOperator):
            self.add(operation.code())
        if isinstance(operation, ControlFlow):
            self.add(sorted(operation.attributes.items()))
            for body in operation.bodies:
                self.add("body")
                self.add_model(body)


def _references(
    operands: tuple[Operand | None, ...], number: Mapping[Operand, int]
) -> list[int | None]:
    return [None if operand is None else number[operand] for operand in operands]
