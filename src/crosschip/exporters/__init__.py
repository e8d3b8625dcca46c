"""Exporters: models written as files of other systems, and checked in an engine that reads them.

An exporter is an entry point of the group `crosschip.exporters`: a module with the attributes and
functions of `Exporter`. The name of the entry point is the name of the format.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from crosschip.exporters.verification import Verification, verify
from crosschip.importers import load
from crosschip.ir import Array, Budget, InputError, Model, UnsupportedError
from crosschip.ir.budget import spending
from crosschip.ir.dataclass import dataclass
from crosschip.ir.entry_points import entry_points
from crosschip.ir.shape_binding import shapes_and_sizes
from crosschip.ir.suggestion import did_you_mean
from crosschip.passes import simplify
from crosschip.passes.specialize import Specialize
from crosschip.progress import task
from crosschip.runtime.artifact.atomic_files import write_user_file
from crosschip.runtime.inputs import check_static
from crosschip.runtime.options import Shapes


class Exporter(Protocol):
    """Interface of an exporter's module. Importing the module must be cheap.

    Attributes:
        suffix: the suffix of files of the format, such as `.onnx`.
        engine: the name of the engine that runs them, for messages.
        static: whether all sizes must be known.
        properties: what the format's settings mean, by name.
    """

    suffix: str
    engine: str
    static: bool
    properties: Mapping[str, str]

    def lower(self, model: Model, properties: Mapping[str, str]) -> Model:
        """Rewrite a simplified model into operations that the format expresses.

        The names, order and types of inputs and outputs stay the same.

        Raises:
            CompileError: operations cannot be expressed; the message has the reasons.
            InputError: a setting has a value that does not exist.
        """

    def write(self, model: Model, properties: Mapping[str, str]) -> bytes:
        """Return a lowered model as the content of a file.

        Raises:
            CompileError: an operation cannot be written; the message has the reason.
        """

    def run(self, content: bytes, model: Model, inputs: Sequence[Array]) -> Sequence[Array]:
        """Run the content of a file once in the format's engine.

        Args:
            content: what `write` returned.
            model: the lowered model.
            inputs: arrays for the inputs, in order.

        Returns:
            The outputs, in order, with the element types and shapes of the model's outputs.

        Raises:
            DeviceError: the engine is not installed, or it rejects the file or the inputs.
        """


@dataclass(frozen=True, slots=True)
class Export:
    """A written file.

    Attributes:
        path: the file.
        format: the name of the format.
        size: the size of the file in bytes.
        operations: the number of operations of the lowered model.
        verification: the comparison of the engine's outputs with the reference; `None` if it was
            not requested.
    """

    path: Path
    format: str
    size: int
    operations: int
    verification: Verification | None


def exporters() -> dict[str, Exporter]:
    """Return the exporters by the names of their formats."""
    entries = sorted(entry_points("crosschip.exporters"), key=lambda entry: entry.name)
    return {entry.name: cast(Exporter, entry.load()) for entry in entries}


def export(
    model: Model | Any,
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    shapes: Shapes | None = None,
    properties: Mapping[str, str] | None = None,
    verification: bool = True,
    budget: Budget | None = None,
) -> Export:
    """Write a model to a file of another system, and check that its engine computes the same.

    The model is simplified and rewritten into what the format expresses. The file is written only
    if the check succeeds: an engine of the format runs it on random inputs, and the outputs are
    compared with those of the `reference` device for the original model.

    Args:
        model: the model, which is not changed; or an argument for `crosschip.load`.
        path: the file to write; an existing file is replaced.
        format: the name of the format; by the suffix of the path if `None`.
        shapes: fixed shapes for inputs with dynamic dimensions, or sizes of these by their names.
        properties: settings of the format, by name.
        verification: whether to check the file in the format's engine.
        budget: the largest cost of importing and rewriting; `None` for the default.

    Raises:
        DeviceError: the engine is not installed, rejects the file, or computes something else.
        InputError: there is no such format or setting, the format needs sizes that are open, or the
            file cannot be written.
        UnsupportedError: operations cannot be expressed in the format; the message has the reasons.
        Error: as for `crosschip.load`.
    """
    target = Path(path)
    name, exporter = _exporter(target, format)
    settings = dict(properties or {})
    _check_properties(name, exporter, settings)
    loaded = model if isinstance(model, Model) else load(model, budget=budget)
    if shapes:
        types = {name: operand.type for name, operand in loaded.inputs.items()}
        loaded = Specialize(*shapes_and_sizes(types, shapes))(loaded)
    if exporter.static:
        check_static(loaded)
    with spending(budget), task(f"writing {target}"):
        lowered, content = _convert(loaded, name, exporter, settings)
    checked = None
    if verification:
        with task(f"running {target} with {exporter.engine}"):
            checked = verify(loaded, lowered, content, exporter)
    write_user_file(target, [content])
    return Export(target, name, len(content), len(lowered.operations), checked)


def _convert(
    model: Model, name: str, exporter: Exporter, properties: Mapping[str, str]
) -> tuple[Model, bytes]:
    # Imported late, as devices do: only errors need it.
    from crosschip.hal import CompileError

    try:
        lowered = exporter.lower(simplify(model), properties)
        return lowered, exporter.write(lowered, properties)
    except CompileError as error:
        raise UnsupportedError(f"{model.name} cannot be written as {name}: {error}") from error


def _exporter(path: Path, format: str | None) -> tuple[str, Exporter]:
    """Return the name and the exporter of a format, or of a path's suffix."""
    available = exporters()
    if format is not None:
        if format not in available:
            near = did_you_mean(format, available)
            raise InputError(f"there is no format {format!r}{near}; there are {_listed(available)}")
        return format, available[format]
    for name, exporter in available.items():
        if path.suffix.lower() == exporter.suffix:
            return name, exporter
    suffixes = [exporter.suffix for exporter in available.values()]
    raise InputError(
        f"{path}: its suffix {path.suffix!r} is that of no format; end it with one of "
        f"{_listed(suffixes)}, or name the format"
    )


def _check_properties(name: str, exporter: Exporter, properties: Mapping[str, str]) -> None:
    for key in properties:
        if key not in exporter.properties:
            near = did_you_mean(key, exporter.properties)
            known = _listed(exporter.properties) or "none"
            raise InputError(f"{name} has no property {key!r}{near}; there are: {known}")


def _listed(names: Mapping[str, Any] | Sequence[str]) -> str:
    return ", ".join(names)


__all__ = ["Export", "Exporter", "Verification", "export", "exporters"]
