"""Exporter to ONNX, in any version of its standard operators from 17; dynamic sizes stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from crosschip.ir import Array, ControlFlow, DeviceError, ElementType, InputError, Model, Operation
from crosschip.ir.errors import install_command

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

    from crosschip.devices.kits.onnx.standalone import Dialect
    from crosschip.hal import Support

suffix = ".onnx"
engine = "ONNX Runtime"
static = False
properties: Mapping[str, str] = {
    "opset": "the version of the standard operators, 17 to 25 (21)",
    "domain": "com.microsoft: write ONNX Runtime's own operators, too, instead of replacing them",
}


def lower(model: Model, properties: Mapping[str, str]) -> Model:
    """Decompose operations that the version of ONNX lacks."""
    from crosschip.devices.kits.onnx import control
    from crosschip.lowering.legalization import Target, legalize
    from crosschip.ops.definition.registry import operators

    dialect = _dialect(properties)
    names = {*operators(), *control.operators(), "IF", "LOOP", "SCAN"}
    target = Target(
        name="ONNX", operators=names, supports=lambda operation: _supports(operation, dialect)
    )
    return legalize(model, target)


def write(model: Model, properties: Mapping[str, str]) -> bytes:
    """Return the model as a serialized `ModelProto` that holds all constants."""
    from crosschip.devices.kits.onnx.standalone import write as write_model

    def name_values(proto: ModelProto) -> None:
        inputs = [value.name for value in proto.graph.input]
        outputs = [value.name for value in proto.graph.output]
        _rename(
            proto.graph,
            {
                **dict(zip(inputs, model.inputs, strict=True)),
                **dict(zip(outputs, model.outputs, strict=True)),
            },
        )
        proto.graph.name = model.name
        proto.producer_name = "crosschip"

    written = write_model(model, _dialect(properties), name_values)
    return written.model.to_bytes()


def run(content: bytes, model: Model, inputs: Sequence[Array]) -> Sequence[Array]:
    """Run a file with ONNX Runtime on the processor."""
    try:
        import onnxruntime
    except ImportError as error:
        raise DeviceError(
            f"ONNX Runtime is not installed; {install_command('onnxruntime')}"
        ) from error
    try:
        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        feeds = dict(zip(model.inputs, inputs, strict=True))
        results: Sequence[Array] = session.run(list(model.outputs), feeds)
    except Exception as error:  # its errors have no common class
        raise DeviceError(f"ONNX Runtime: {error}") from error
    declared = [operand.type.element_type.dtype for operand in model.outputs.values()]
    # Its arrays of types that NumPy lacks are of unsigned integers.
    return [
        array.view(dtype) if array.dtype.kind == "u" and array.dtype != dtype else array
        for array, dtype in zip(results, declared, strict=True)
    ]


def _supports(operation: Operation, dialect: Dialect) -> Support:
    """Return whether an operation can be written in a dialect, with the reason if not."""
    from crosschip.devices.kits.onnx import control
    from crosschip.devices.kits.onnx.standalone import on_reals, unwritable
    from crosschip.hal import Rule, Support
    from crosschip.hal.device import single_operation_model

    answer = control.supports(on_reals(operation))
    if not answer or isinstance(operation, ControlFlow):
        return answer
    missing = unwritable(single_operation_model(operation), dialect)
    return Support.no(operation, "", missing, Rule.OPERATOR) if missing else answer


def _dialect(properties: Mapping[str, str]) -> Dialect:
    """Return the version and the domains of ONNX that the settings name.

    Raises:
        InputError: there is no such version or domain.
    """
    from crosschip.devices.kits.onnx.graph import CONTRIBUTED, OPSET
    from crosschip.devices.kits.onnx.standalone import NEWEST_OPSET, OLDEST_OPSET, Dialect

    text = properties.get("opset", str(OPSET))
    if not text.isdecimal() or not OLDEST_OPSET <= int(text) <= NEWEST_OPSET:
        raise InputError(f"opset is {text!r}, not a number from {OLDEST_OPSET} to {NEWEST_OPSET}")
    domain = properties.get("domain", "")
    if domain not in ("", CONTRIBUTED):
        raise InputError(f"domain is {domain!r}, but can only be {CONTRIBUTED}")
    return Dialect(
        opset=int(text),
        types=frozenset(ElementType),
        contributed=bool(domain),
        workarounds=False,
    )


def _rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Rename values in a graph and its subgraphs; values that have a new name get another one."""
    used_names = {value for node in graph.node for value in node.output}
    used_names |= {value.name for value in graph.input} | {
        value.name for value in graph.initializer
    }
    clashes = used_names & set(names.values()) - names.keys()
    _apply(graph, {**{name: f"{name}.value" for name in clashes}, **names})


def _apply(graph: GraphProto, names: Mapping[str, str]) -> None:
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _apply(attribute.g, names)
    for value in (*graph.input, *graph.output):
        value.name = names.get(value.name, value.name)
    for tensor in graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
