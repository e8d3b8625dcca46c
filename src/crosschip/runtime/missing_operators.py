"""The operators that a device lacks for given models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from crosschip.hal import Sizes
from crosschip.ir import Dimension, Model
from crosschip.ir.shape_binding import shapes_and_sizes
from crosschip.passes import Specialize, simplify
from crosschip.runtime.compile.devices import open_devices
from crosschip.runtime.configuration import Configuration
from crosschip.runtime.placement.missing_operators import MissingOperator, rank_missing_operators
from crosschip.runtime.placement.queries import device_query


def missing_operators(
    models: Sequence[Model],
    device: str,
    shapes: Mapping[str, Sequence[int | None] | int] | None = None,
    configuration: Configuration | None = None,
) -> list[MissingOperator]:
    """List the operators that a device lacks for models, in the order in which to add them.

    Args:
        models: the models.
        device: the name of the device.
        shapes: shapes of inputs and sizes, by name; each model uses those that it has.
        configuration: the compile options.

    Raises:
        InputError: an argument is invalid.
        DeviceError: there is no such device, or it cannot be opened.
    """
    settings = configuration or Configuration()
    prepared = [simplify(_specialize(model, shapes or {})) for model in models]
    with ExitStack() as owned:
        (opened,) = open_devices([device], settings.properties, {}, owned, isolate=False).values()
        return rank_missing_operators(prepared, device_query(opened, settings.options(Sizes())))


def _specialize(model: Model, shapes: Mapping[str, Sequence[int | None] | int]) -> Model:
    types = {name: operand.type for name, operand in model.inputs.items()}
    open_sizes = (size for type_ in types.values() for size in type_.shape or ())
    sizes = {name for size in open_sizes if isinstance(size, Dimension) for name in size.names}
    used = {name: shape for name, shape in shapes.items() if name in types or name in sizes}
    return Specialize(*shapes_and_sizes(types, used))(model) if used else model
