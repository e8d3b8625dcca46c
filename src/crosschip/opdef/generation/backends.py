"""Backends that a project is generated for: their devices and supported operators."""

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
    """Backend that a project is generated for.

    Attributes:
        name: the requested name.
        device: the name of the device; `None` if there is none.
        operators: the names of the supported operators.
    """

    name: str
    device: str | None
    operators: Collection[str]

    @property
    def converter(self) -> str:
        """The device name for registering converters."""
        return "onnxruntime" if self.device in _OF_ONNX else self.device or ""


def backends_in(
    collection: OpDefCollection, names: Iterable[str], devices: Collection[str]
) -> list[Backend]:
    """Return the backends for some names.

    A device that the document does not mention supports all operators.

    Args:
        collection: the document.
        names: names of backends in the document, or of devices.
        devices: the existing devices.

    Raises:
        InputError: a name is unknown, or a backend supports no operator.
    """
    return [_backend(collection, name, devices) for name in dict.fromkeys(names)]


def _backend(collection: OpDefCollection, name: str, devices: Collection[str]) -> Backend:
    device = device_of(name)
    op_defs = collection.definitions.op_defs
    named = [
        op_def
        for op_def in op_defs
        if device in map(device_of, _mentioned_backends(collection, op_def))
    ]
    restrictions_by_name = {
        op_def.name: restrictions_of(collection, op_def).get(device) for op_def in op_defs
    }
    if not named and not any(restrictions_by_name.values()) and device not in devices:
        mentioned = {b: None for op_def in op_defs for b in _mentioned_backends(collection, op_def)}
        near = did_you_mean(name, [*mentioned, *devices])
        raise InputError(
            f"{collection.package_name}: there is no backend or device {legible(name)!r}{near}"
        )
    supported = [
        op_def.name
        for op_def in named or op_defs
        if (restrictions := restrictions_by_name[op_def.name]) is None or restrictions.supported
    ]
    if not supported:
        raise InputError(
            f"{collection.package_name}: {legible(name)} supports none of its operators"
        )
    return Backend(name, device if device in devices else None, supported)


def _mentioned_backends(collection: OpDefCollection, op_def: OpDef) -> Iterable[str]:
    """Yield the backends that support or supplement an operator."""
    yield from collection.backends_of(op_def)
    for supplement in collection.supplements:
        if any(supplemental.name == op_def.name for supplemental in supplement.op_defs):
            yield supplement.backend
