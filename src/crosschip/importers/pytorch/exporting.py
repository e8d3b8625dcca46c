"""Export of modules and exported programs of PyTorch to ONNX in memory, and import of that."""

from __future__ import annotations

import inspect
import logging
import re
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from crosschip.importers.onnx.graph import load_model
from crosschip.importers.pytorch.attention import decompositions, scaled_dot_product
from crosschip.importers.pytorch.recurrence import dynamic_steps, replaced
from crosschip.ir import InputError, Model, UnsupportedError
from crosschip.ir.errors import install_command

_EXTERNAL_BYTES = 2**10
"""Larger weights are handed over beside the ONNX model, which cannot exceed two gigabytes."""

_LOGGERS = ("onnx_ir", "onnxscript", "torch.export", "torch.onnx")
_REASON_CHARACTERS = 500
_exports = threading.RLock()
"""PyTorch's exporters, and the changes to them here, are for one thread at a time."""

_COLOR = re.compile(r"\x1b\[[0-9;]*m")


def import_object(
    source: Any, example_inputs: Sequence[Any] | Mapping[str, Any] | None, dynamic_shapes: Any
) -> Model:
    """Import a module or an exported program; see `crosschip.importers.pytorch.load_object`."""
    import torch

    if isinstance(source, torch.export.ExportedProgram):
        if example_inputs is not None or dynamic_shapes is not None:
            raise InputError(
                "example_inputs and dynamic_shapes are for modules; a program was exported with its"
            )
        return import_program(source, "model", "the exported program")
    name = type(source).__name__
    where = f"the {name} that was given"
    if example_inputs is None:
        raise InputError(
            f"{where} is a module of PyTorch, which is exported with example inputs; pass its "
            f"arguments: crosschip.load(model, example_inputs=(x,))"
        )
    args, kwargs = _arguments(source, example_inputs, where)
    with _in_evaluation_mode(source):
        exported = export_module(source, where, args, kwargs, dynamic_shapes)
    return import_exported(exported, name, where)


def import_program(program: Any, name: str, where: str) -> Model:
    """Import an exported program.

    Args:
        program: a `torch.export.ExportedProgram`.
        name: the name of the model.
        where: names the program in errors.

    Raises:
        UnsupportedError: the program uses operators that cannot be expressed, or changes its inputs
            or buffers.
    """
    return import_exported(export_program(program, where), name, where)


def _arguments(
    module: Any, example_inputs: Sequence[Any] | Mapping[str, Any], where: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the example inputs as positional and named arguments of `forward`.

    Raises:
        InputError: `forward` does not take them.
    """
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if isinstance(example_inputs, Mapping):
        kwargs = dict(example_inputs)
    elif isinstance(example_inputs, tuple | list):
        args = tuple(example_inputs)
    else:
        args = (example_inputs,)
    try:
        inspect.signature(module.forward).bind(*args, **kwargs)
    except TypeError as error:
        raise InputError(f"{where}: example_inputs do not fit its forward: {error}") from None
    return args, kwargs


@contextmanager
def _in_evaluation_mode(module: Any) -> Iterator[None]:
    """Switch a module to evaluation mode, and each of its modules back at the end."""
    training = [each for each in module.modules() if each.training]
    module.eval()
    try:
        yield
    finally:
        for each in training:
            each.training = True


def export_module(
    module: Any,
    where: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
) -> Any:
    """Return a module as a `torch.onnx.ONNXProgram`.

    Args:
        module: in evaluation mode.
        where: names the module in errors.
        args: positional arguments of its `forward`.
        kwargs: further arguments by name.
        dynamic_shapes: as for `crosschip.load`.

    Raises:
        UnsupportedError: PyTorch cannot export it, or `onnxscript` is not installed.
    """
    shapes = _without_names(dynamic_shapes)
    with _exporting(where):
        program = _capture(module, args, dict(kwargs), shapes)
        return _translate(program, dynamic_shapes)


def export_program(program: Any, where: str) -> Any:
    """Return a `torch.export.ExportedProgram` as a `torch.onnx.ONNXProgram`.

    Raises:
        UnsupportedError: PyTorch cannot export it, or `onnxscript` is not installed.
    """
    with _exporting(where):
        return _translate(program, None)


def _without_names(dynamic_shapes: Any) -> Any:
    """Return dynamic shapes as `torch.export.export` takes them, without names of dimensions."""
    import torch

    if isinstance(dynamic_shapes, str):
        return torch.export.Dim.DYNAMIC
    if isinstance(dynamic_shapes, Mapping):
        return {key: _without_names(value) for key, value in dynamic_shapes.items()}
    if isinstance(dynamic_shapes, tuple | list):
        return type(dynamic_shapes)(map(_without_names, dynamic_shapes))
    return dynamic_shapes


def _capture(module: Any, args: tuple[Any, ...], kwargs: Any, dynamic_shapes: Any) -> Any:
    """Return a module as a `torch.export.ExportedProgram`."""
    import torch

    options = {"kwargs": kwargs, "dynamic_shapes": dynamic_shapes}
    # The tracer that interprets Python's bytecode takes some modules that the usual one does not.
    try:
        return torch.export.export(module, args, strict=False, **options)
    except Exception as error:
        try:
            return torch.export.export(module, args, strict=True, **options)
        except Exception:
            raise error from None


def _translate(program: Any, dynamic_shapes: Any) -> Any:
    """Return an exported program as a `torch.onnx.ONNXProgram` with names of dimensions."""
    import torch

    options = {"dynamic_shapes": dynamic_shapes, "dynamo": True, "verbose": False}
    fused = decompositions()
    if any(node.target in fused for node in program.graph.nodes):
        program = program.run_decompositions(dict(fused))
    attention = torch.ops.aten.scaled_dot_product_attention.default
    try:
        return torch.onnx.export(program, **options)
    except Exception:
        if not program.graph.find_nodes(op="call_function", target=attention):
            raise
    program = program.run_decompositions({attention: scaled_dot_product})
    return torch.onnx.export(program, **options)


@contextmanager
def _exporting(where: str) -> Iterator[None]:
    """Prepare PyTorch for an export, and translate its errors.

    Raises:
        UnsupportedError: the export failed.
    """
    import torch

    try:
        # Dimensions may have the size 0 or 1 unless the module tells them apart.
        sizes = torch.fx.experimental._config.patch(backed_size_oblivious=True)
        with _exports, quiet(), sizes, dynamic_steps(), _functions_parsed_once():
            yield
    except ImportError as error:
        raise UnsupportedError(
            f"{where}: PyTorch's exporter to ONNX needs {error.name}: {install_command('torch')}"
        ) from None
    # PyTorch's exporters raise errors of all types, those of the module's own code among them.
    except Exception as error:
        raise UnsupportedError(f"{where}: PyTorch cannot export it: {_reason(error)}") from error


@contextmanager
def _functions_parsed_once() -> Iterator[None]:
    """Have the exporter parse its library of ONNX functions once per process, not per export.

    That takes most of the time of small exports.
    """
    from torch.onnx._internal.exporter import _registration

    # Another release of PyTorch may lack these names: it parses the library as usual.
    name = getattr(getattr(_registration, "onnxscript_apis", None), "_name", None)
    library = None if name is None else import_module(name)
    if not hasattr(library, "get_torchlib_ops"):
        yield
        return
    functions = _parsed_functions(library)
    with replaced(vars(library), "get_torchlib_ops", lambda: functions):
        yield


@cache
def _parsed_functions(library: Any) -> Sequence[Any]:
    functions: Sequence[Any] = library.get_torchlib_ops()
    return functions


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the warnings and log messages of PyTorch's exporters, which are for their makers."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _reason(error: BaseException) -> str:
    """Return the first cause of an exporter's error in a line."""
    while (cause := error.__cause__) is not None:
        error = cause
    lines = _COLOR.sub("", str(error)).strip().splitlines() or [""]
    return f"{type(error).__name__}: {' '.join(map(str.strip, lines))}"[:_REASON_CHARACTERS]


def import_exported(exported: Any, name: str, where: str) -> Model:
    """Import a `torch.onnx.ONNXProgram`."""
    import onnx_ir

    _check_mutations(exported.exported_program.graph_signature, where)
    _check_recurrence(exported.exported_program.graph, where)
    graph = exported.model.graph
    graph.name = name
    _rename_outputs(graph, exported.exported_program)
    _rename_transposed(graph, exported.exported_program.state_dict)
    external = {}
    for key, value in graph.initializers.items():
        tensor = value.const_value
        if tensor.nbytes > _EXTERNAL_BYTES:
            external[key] = tensor.tobytes()
            value.const_value = onnx_ir.ExternalTensor(
                key, 0, len(external[key]), tensor.dtype, shape=tensor.shape, name=key
            )
    content = onnx_ir.to_proto(exported.model).SerializeToString()
    return load_model(content, where, external)


def _check_mutations(signature: Any, where: str) -> None:
    """Raise an `UnsupportedError` if a program changes its inputs or buffers."""
    changed = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
    if changed:
        raise UnsupportedError(
            f"{where}: its forward changes {', '.join(map(repr, changed))} in place, which would "
            f"be lost; return the new values as outputs"
        )


def _check_recurrence(graph: Any, where: str) -> None:
    """Raise an `UnsupportedError` if the shapes of a recurrent operator took its place."""
    import torch

    if graph.find_nodes(op="call_function", target=torch.ops.aten.new_empty.default):
        raise UnsupportedError(f"{where}: has elements that are not initialized")


def _rename_transposed(graph: Any, weights: Mapping[str, Any]) -> None:
    """Name matrices after the weights of float32 that PyTorch's exporter transposed."""
    import torch

    by_shape: dict[tuple[int, ...], dict[str, Any]] = {}
    for name, weight in weights.items():
        is_matrix = weight.ndim == 2 and weight.dtype == torch.float32
        if is_matrix and name not in graph.initializers:
            transposed = by_shape.setdefault(tuple(weight.shape[::-1]), {})
            transposed[name] = weight.detach().cpu().numpy().T
    for value in list(graph.initializers.values()):
        tensor = value.const_value
        candidates = by_shape.get(tuple(tensor.shape), {})
        if not candidates or value.name in weights or tensor.dtype.name != "FLOAT":
            continue
        matrix = tensor.numpy()
        for name, candidate in candidates.items():
            # Comparing a row first is faster: most matrices differ in it.
            if (candidate[:1] == matrix[:1]).all() and (candidate == matrix).all():
                value.name = f"{name}.transposed"
                del candidates[name]
                break


def _rename_outputs(graph: Any, program: Any) -> None:
    """Name the outputs of a module that returns a dictionary by its keys."""
    specification = program.call_spec.out_spec
    structure = specification.unflatten(range(specification.num_leaves))
    if not isinstance(structure, Mapping) or len(graph.outputs) != specification.num_leaves:
        return
    names = {index: str(key) for key, index in structure.items() if isinstance(index, int)}
    used = {value.name for value in graph.inputs} | set(graph.initializers)
    for index, output in enumerate(graph.outputs):
        if index in names and names[index] not in used:
            output.name = names[index]
