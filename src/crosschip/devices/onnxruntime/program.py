"""Compiled models.

Compiling is two steps: ONNX Runtime optimizes the model for this processor, and a session is made
of the result. The result is what is saved, and loading is the second step alone, so that a loaded
program computes what the compiled one did, bit for bit. ONNX Runtime does not read all that it
writes of models with graphs in nodes or constants of strings: such a model, which control flow or
extension operations may bring, is saved as it is, and optimized whenever a session is made of it.
So is one that another provider than the processor's runs: what is optimized is for that one alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest

import onnxruntime
from onnxruntime import InferenceSession

from crosschip.devices.onnxruntime import saved as layout
from crosschip.devices.onnxruntime.embedding import (
    Payloads,
    embed,
    is_precise,
    payloads_of,
    survives_writing,
    types_in,
)
from crosschip.devices.onnxruntime.extensions import opset_of
from crosschip.devices.onnxruntime.failures import failure
from crosschip.devices.onnxruntime.memory import give_back
from crosschip.devices.onnxruntime.precision import has_bytes, saturates
from crosschip.devices.onnxruntime.profiling import Nodes, OnnxRuntimeProfiler
from crosschip.devices.onnxruntime.provided import NotTaken, require
from crosschip.devices.onnxruntime.providers import Provider
from crosschip.devices.onnxruntime.session import Settings, ortvalues
from crosschip.devices.onnxruntime.state import OnnxRuntimeSession
from crosschip.devices.onnxruntime.unchecked import (
    FAILS_OF_NOTHING,
    UNCHECKED,
    UNWRITTEN_OF_NOTHING,
)
from crosschip.devices.onnxruntime.values import all_known, array_of, is_tensor, ortvalue
from crosschip.hal import Carried, CompileError, Options, Profiler, Program, ProgramSession
from crosschip.hal.onnx import control
from crosschip.hal.onnx.graph import Graph
from crosschip.hal.onnx.model import OnnxModel
from crosschip.hal.sizes import Sizes
from crosschip.ir import Array, DeviceError, ElementType, Extension, Model, Operand, TensorType
from crosschip.ir.types import PYTHONS_TYPES

__all__ = ["VERSION", "OnnxRuntimeProgram", "compile", "load", "require"]

VERSION: str = onnxruntime.__version__


class OnnxRuntimeProgram(Program):
    """A session, or several if runs that overlap have several threads each.

    A session may be run from many threads at once, but they share what threads it has besides.

    Args:
        model: what it runs.
        settings: how the session is made.
        source: what it was compiled from.
        optimize: whether the model has not been optimized yet.

    Raises:
        DeviceError: ONNX Runtime does not accept the model.
    """

    def __init__(
        self, model: OnnxModel, settings: Settings, source: Model, *, optimize: bool
    ) -> None:
        sizes = Sizes("onnxruntime", source, UNCHECKED, FAILS_OF_NOTHING, UNWRITTEN_OF_NOTHING)
        self._sizes = sizes if sizes else None
        self._model = model
        self._source = source
        self._settings = settings
        self._optimize = optimize
        self._count = len(source.outputs)
        self._declared = [
            (index, operand.name, operand.type)
            for index, operand in enumerate([*source.outputs.values(), *_unproven(source)])
            if isinstance(source.producers.get(operand), Extension)
            and operand.type.element_type is not ElementType.OBJECT
        ]
        self._places = [index for index, *_ in self._declared]
        self._accepted: object = None
        self._values = ortvalues(model)
        session, *others = (
            settings.session(model, self._values, optimize=optimize)
            for _ in range(settings.sessions)
        )
        self._session = session
        self._idle = [session, *others] if others else None
        inputs, made = session.get_inputs(), session.get_outputs()
        self._inputs = [value.name for value in inputs]
        self._outputs = [value.name for value in made]
        self._is_plain = all_known([*inputs, *made])
        self._tensors_in = [is_tensor(value) for value in inputs]
        self._tensors_out = [is_tensor(value) for value in made]
        self._all_tensors = all(self._tensors_in) and all(self._tensors_out)

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return self.run_into(inputs, ())

    def run_into(self, inputs: Sequence[Array], places: Sequence[Array | None]) -> Sequence[Array]:
        if self._sizes is not None:
            nothing = self._sizes.check(inputs)
            if nothing is not None:
                return nothing
        if self._idle is None:
            outputs = self._run(self._session, inputs, places)
        else:
            outputs = self._run_on_idle(self._idle, inputs, places)
        if self._declared:
            found = [(outputs[place].dtype, outputs[place].shape) for place in self._places]
            if found != self._accepted:
                for index, name, declared in self._declared:
                    _check(name, declared, outputs[index])
                self._accepted = found
        return outputs if len(outputs) == self._count else outputs[: self._count]

    def _run_on_idle(
        self,
        idle: list[InferenceSession],
        inputs: Sequence[Array],
        places: Sequence[Array | None],
    ) -> Sequence[Array]:
        try:
            session = idle.pop()
        except IndexError:  # there are more runs at once than there should be
            return self._run(self._session, inputs, places)
        try:
            return self._run(session, inputs, places)
        finally:
            idle.append(session)

    def _run(
        self,
        session: InferenceSession,
        inputs: Sequence[Array],
        places: Sequence[Array | None],
    ) -> Sequence[Array]:
        try:
            if places and self._is_plain and self._all_tensors:
                return self._run_into_places(session, inputs, places)
            if self._is_plain:
                return self._run_arrays(session, inputs)
            if self._all_tensors:
                return self._run_values(session, inputs)
            return self._run_objects(session, inputs)
        except Exception as error:
            raise failure("failed while running", error) from error

    def _run_arrays(self, session: InferenceSession, inputs: Sequence[Array]) -> Sequence[Array]:
        feed = dict(zip(self._inputs, inputs, strict=True))
        outputs: Sequence[Array] = session.run(self._outputs, feed)
        return outputs

    def _run_into_places(
        self,
        session: InferenceSession,
        inputs: Sequence[Array],
        places: Sequence[Array | None],
    ) -> Sequence[Array]:
        binding = session.io_binding()
        for name, array in zip(self._inputs, inputs, strict=True):
            binding.bind_ortvalue_input(name, ortvalue(array))
        for name, place in zip_longest(self._outputs, places):
            if place is None:
                binding.bind_output(name)
            else:
                binding.bind_ortvalue_output(name, ortvalue(place))
        session.run_with_iobinding(binding)
        made = zip_longest(binding.get_outputs(), places)
        return [array_of(value) if place is None else place for value, place in made]

    def _run_values(self, session: InferenceSession, inputs: Sequence[Array]) -> Sequence[Array]:
        feed = dict(zip(self._inputs, map(ortvalue, inputs), strict=True))
        return [array_of(v) for v in session.run_with_ort_values(self._outputs, feed)]

    def _run_objects(self, session: InferenceSession, inputs: Sequence[Array]) -> Sequence[Array]:
        feed = {
            name: ortvalue(value) if tensor and value.dtype != object else value
            for name, tensor, value in zip(self._inputs, self._tensors_in, inputs, strict=True)
        }
        outputs: Sequence[Array] = session.run(self._outputs, feed)
        return outputs

    def session(self, carried: Sequence[Carried]) -> ProgramSession | None:
        outputs = self._source.outputs.values()
        has_text = any(operand.type.element_type in PYTHONS_TYPES for operand in outputs)
        if not self._is_plain or not self._all_tensors or has_text:
            return None
        if self._settings.provider is not None:
            return None
        check = None if self._sizes is None else self._sizes.check_shapes
        declared = {i: partial(_check, name, type_) for i, name, type_ in self._declared}
        return OnnxRuntimeSession(self._session, self._source, carried, check, declared)

    def save(self) -> bytes:
        return layout.write(self._model)

    def profiler(self) -> Profiler:
        made: list[OnnxRuntimeProgram] = []

        def make(record: str) -> OnnxRuntimeProgram:
            settings = replace(self._settings, record=record, sessions=1)
            made.append(
                OnnxRuntimeProgram(self._model, settings, self._source, optimize=self._optimize)
            )
            return made[0]

        written = _onnx_model(self._source, payloads_of(self._source))
        nodes = Nodes(self._source, written.proto, self._model.proto)
        return OnnxRuntimeProfiler(make, lambda: made[0].end_recording(), nodes)

    def end_recording(self) -> str:
        """End the recording of its nodes' times; the path of the record."""
        path: str = self._session.end_profiling()
        return path

    def close(self) -> None:
        vars(self).clear()


def compile(
    model: Model, options: Options, *, spinning: bool, provider: Provider | None = None
) -> OnnxRuntimeProgram:
    """Compile a model of operations that there are converters for.

    Raises:
        CompileError: the provider leaves operations to the processor.
        DeviceError: ONNX Runtime failed.
    """
    payloads = payloads_of(model)
    precise = _is_precise(model, payloads)
    settings = Settings.of(options, spinning, precise, provider)
    optimize = provider is not None or not _survives_writing(model, payloads)
    give_back()
    onnx_model = _onnx_model(model, payloads)
    if not optimize:
        onnx_model = settings.optimized(onnx_model)
        give_back()
    try:
        return OnnxRuntimeProgram(onnx_model, settings, model, optimize=optimize)
    except NotTaken as error:
        labels = {node.rpartition(".")[0] for node in error.nodes}
        named = [operation for operation in model.operations if operation.name in labels]
        raise CompileError(str(error), named) from error
    finally:
        give_back()


def _is_precise(model: Model, payloads: Payloads) -> bool:
    """Tell whether ONNX Runtime must be asked for products of bytes that never saturate.

    They take it twice as long, and it can be asked only where it can compute them.
    """
    return has_bytes(model) and saturates() and all(map(is_precise, payloads.values()))


def _survives_writing(model: Model, payloads: Payloads) -> bool:
    holds_graphs = any(operation.bodies for operation in model.operations)
    return not holds_graphs and all(map(survives_writing, payloads.values()))


def _onnx_model(model: Model, payloads: Payloads) -> OnnxModel:
    opset, types = opset_of(payloads), types_in(payloads)
    graph = Graph(model.inputs.values(), opset=opset, types=types)
    for operation in model.operations:
        if isinstance(operation, Extension):
            graph.label = operation.name
            graph.define(operation, embed(graph, operation, payloads[operation]))
        else:
            control.add_operation(graph, operation)
    return graph.finish([*model.outputs.values(), *_unproven(model)])


def _unproven(model: Model) -> Sequence[Operand]:
    """The operands inside the model that extensions make and operations of other kinds read.

    Nothing but the model's file vouches for their shapes, on which the conversion of what reads
    them relies: they are outputs, too, so that they can be checked.
    """
    outputs = set(model.outputs.values())
    read = {
        operand
        for operation in model.operations
        if not isinstance(operation, Extension)
        for operand in operation.inputs
        if operand is not None and operand.type.shape is not None
    }
    return [
        operand
        for operation in model.operations
        if isinstance(operation, Extension)
        for operand in operation.outputs
        if operand in read and operand not in outputs
    ]


def load(
    saved: bytes,
    model: Model,
    options: Options,
    *,
    spinning: bool,
    provider: Provider | None = None,
) -> OnnxRuntimeProgram:
    """Make a program again from what it was saved as; the bytes are used where they are.

    Raises:
        DeviceError: they are not what `save` returns, or ONNX Runtime failed.
    """
    try:
        compiled = layout.read(saved)
    except Exception as error:
        raise failure("has not saved this program", error) from error
    payloads = payloads_of(model)
    precise = _is_precise(model, payloads)
    settings = Settings.of(options, spinning, precise, provider)
    optimize = provider is not None or not _survives_writing(model, payloads)
    try:
        return OnnxRuntimeProgram(compiled, settings, model, optimize=optimize)
    finally:
        give_back()


def _check(name: str, declared: TensorType, array: Array) -> None:
    """Refuse an output that is not what the model declares, and others rely on.

    Raises:
        DeviceError: it has another element type or shape.
    """
    if not declared.admits(array):
        raise DeviceError(
            f"onnxruntime: {name!r} is {array.dtype}{list(array.shape)}, but the model declares "
            f"{declared}; correct its declaration"
        )
