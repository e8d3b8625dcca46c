"""Backends that a project is generated for: their devices, and the operators that they have."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from crosschip.ir import InputError
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.text import legible
from crosschip.opdef.custom.restrictions import device_of, restrictions_of
from crosschip.opdef.definitions import OpDef, OpDefCollection

_OF_ONNX = frozenset({"qualcomm", "rockchip"})
"""Devices whose compilers read ONNX."""


@dataclass(frozen=True)
class Backend:
    """A backend that a project is generated for.

    Attributes:
        name: its name, as it was asked for.
        device: the device's; `None` if there is no device for it.
        operators: the names of the operators that it has.
    """

    name: str
    device: str | None
    operators: Collection[str]

    @property
    def converter(self) -> str:
        """The name under which functions for its device are registered."""
        return "onnxruntime" if self.device in _OF_ONNX else self.device or ""


def backends_in(
    collection: OpDefCollection, names: Iterable[str], devices: Collection[str]
) -> list[Backend]:
    """Return the backends of some names.

    One of which the document does not speak has all operators: it must be a device.

    Args:
        collection: the document.
        names: a backend's name in it, or a device's.
        devices: the devices that there are.

    Raises:
        InputError: nothing is called so, or a backend has no operator.
    """
    return [_backend(collection, name, devices) for name in dict.fromkeys(names)]


def _backend(collection: OpDefCollection, name: str, devices: Collection[str]) -> Backend:
    device = device_of(name)
    op_defs = collection.definitions.op_defs
    named = [op_def for op_def in op_defs if device in map(device_of, _named(collection, op_def))]
    restrictions_by_name = {
        op_def.name: restrictions_of(collection, op_def).get(device) for op_def in op_defs
    }
    if not named and not any(restrictions_by_name.values()) and device not in devices:
        written = {b: None for op_def in op_defs for b in _named(collection, op_def)}
        near = did_you_mean(name, [*written, *devices])
        raise InputError(
            f"{collection.package_name}: there is no backend or device {legible(name)!r}{near}"
        )
    has = [
        op_def.name
        for op_def in named or op_defs
        if (restrictions := restrictions_by_name[op_def.name]) is None or restrictions.supported
    ]
    if not has:
        raise InputError(
            f"{collection.package_name}: {legible(name)} supports none of its operators"
        )
    return Backend(name, device if device in devices else None, has)


def _named(collection: OpDefCollection, op_def: OpDef) -> Iterable[str]:
    """Yield the backends that are said to have an operator, or that supplement it."""
    yield from collection.backends_of(op_def)
    for supplement in collection.supplements:
        if any(own.name == op_def.name for own in supplement.op_defs):
            yield supplement.backend
