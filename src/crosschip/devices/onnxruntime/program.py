"""Compiled models: sessions, running, saving and loading.

A saved program contains the `saved.Facts` of its model, so that loading needs no operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import onnxruntime
from onnxruntime import InferenceSession

from crosschip.devices.kits.input_checks import Checks
from crosschip.devices.kits.onnx.model import OnnxModel
from crosschip.devices.onnxruntime import saved as layout
from crosschip.devices.onnxruntime.saved import Facts
from crosschip.devices.onnxruntime.session import Settings, failure, ortvalues, require
from crosschip.devices.onnxruntime.values import (
    all_numpy_types,
    array_of,
    is_tensor,
    ortvalue,
    unusual_types,
)
from crosschip.hal import Options, Profiler, Program
from crosschip.ir import Array, DeviceError, Model, TensorType

if TYPE_CHECKING:
    from crosschip.devices.kits.size_checks import Sizes
    from crosschip.devices.onnxruntime.providers import Provider

Check = Callable[[Sequence[Array]], list[Array] | None]
"""Checks the sizes of inputs; returns the outputs if all are empty."""

__all__ = ["VERSION", "OnnxRuntimeProgram", "load", "require"]

VERSION: str = onnxruntime.__version__


class OnnxRuntimeProgram(Program):
    """A session; or several, if concurrent runs use several threads each.

    Several threads may run one session, but share its thread pool.

    Args:
        model: the ONNX model.
        settings: the settings of the session.
        source: the source model.
        facts: the facts about it that runs need.

    Raises:
        DeviceError: ONNX Runtime does not accept the model.
    """

    def __init__(self, model: OnnxModel, settings: Settings, source: Model, facts: Facts) -> None:
        sizes = Checks.of(facts.checks, lambda: _sizes(source))
        self._model = model
        self._source = source
        self._settings = settings
        self._facts = facts
        self._count = len(source.outputs)
        self._declared = facts.declared
        self._declared_indices = [index for index, *_ in self._declared]
        self._accepted: object = None
        self._values = ortvalues(model)
        session, *others = (
            settings.session(model, self._values, optimize=facts.optimize)
            for _ in range(settings.sessions)
        )
        self._session = session
        self._idle = [session, *others] if others else None
        inputs, outputs = session.get_inputs(), session.get_outputs()
        self._inputs = [value.name for value in inputs]
        self._outputs = [value.name for value in outputs]
        # Kernels refuse output memory whose shape differs from the inferred one.
        self._inferred = [tuple(value.shape) for value in outputs]
        self._is_plain = all_numpy_types([*inputs, *outputs])
        self._tensors_in = [is_tensor(value) for value in inputs]
        self._tensors_out = [is_tensor(value) for value in outputs]
        self._all_tensors = all(self._tensors_in) and all(self._tensors_out)
        self._check: Check | None = None
        if sizes is not None:
            self._check = sizes.check if all(self._tensors_in) else partial(self._checked, sizes)
        is_fast = self._is_plain and self._idle is None and len(outputs) == self._count
        self._fast_session = _engine(session) if is_fast else None
        self._unusual_types = unusual_types(outputs)

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        if self._fast_session is None:
            return self.run_into(inputs, ())
        # The fast path of `run_into`, whose calls take longer than a small model runs.
        if self._check is not None and (empty_outputs := self._check(inputs)) is not None:
            return empty_outputs
        try:
            feed = dict(zip(self._inputs, inputs, strict=True))
            outputs: list[Array] = self._fast_session.run(self._outputs, feed, None)
        except Exception as error:
            raise failure("failed while running", error) from error
        for index, dtype in self._unusual_types:
            outputs[index] = outputs[index].view(dtype)
        if self._declared:
            self._check_declared(outputs)
        return outputs

    def run_into(self, inputs: Sequence[Array], places: Sequence[Array | None]) -> Sequence[Array]:
        if self._check is not None and (empty_outputs := self._check(inputs)) is not None:
            return empty_outputs
        if self._idle is None:
            outputs = self._run(self._session, inputs, places)
        else:
            outputs = self._run_on_idle(self._idle, inputs, places)
        if self._declared:
            self._check_declared(outputs)
        return outputs if len(outputs) == self._count else outputs[: self._count]

    def _checked(self, sizes: Checks, inputs: Sequence[Array]) -> list[Array] | None:
        """Check sizes of inputs some of which are no tensors."""
        pairs = zip(self._tensors_in, inputs, strict=True)
        return sizes.check_shapes([value.shape if tensor else () for tensor, value in pairs])

    def _check_declared(self, outputs: Sequence[Array]) -> None:
        """Refuse outputs whose types differ from the model's declarations.

        The element type of an output is the same in all runs, so only shapes are compared with the
        last run's.
        """
        shapes = [outputs[index].shape for index in self._declared_indices]
        if shapes != self._accepted:
            for index, name, declared in self._declared:
                _check(name, declared, outputs[index])
            self._accepted = shapes

    def _run_on_idle(
        self,
        idle: list[InferenceSession],
        inputs: Sequence[Array],
        destinations: Sequence[Array | None],
    ) -> Sequence[Array]:
        try:
            session = idle.pop()
        except IndexError:  # more concurrent runs than requested
            return self._run(self._session, inputs, destinations)
        try:
            return self._run(session, inputs, destinations)
        finally:
            idle.append(session)

    def _run(
        self,
        session: InferenceSession,
        inputs: Sequence[Array],
        destinations: Sequence[Array | None],
    ) -> Sequence[Array]:
        try:
            if destinations and self._is_plain and self._all_tensors:
                return self._run_into_arrays(session, inputs, destinations)
            if self._is_plain:
                return self._run_arrays(session, inputs)
            if self._all_tensors:
                return self._run_values(session, inputs)
            return self._run_objects(session, inputs)
        except Exception as error:
            raise failure("failed while running", error) from error

    def _run_arrays(self, session: InferenceSession, inputs: Sequence[Array]) -> Sequence[Array]:
        feed = dict(zip(self._inputs, inputs, strict=True))
        outputs: Sequence[Array] = _engine(session).run(self._outputs, feed, None)
        return outputs

    def _run_into_arrays(
        self,
        session: InferenceSession,
        inputs: Sequence[Array],
        destinations: Sequence[Array | None],
    ) -> Sequence[Array]:
        binding = session.io_binding()
        for name, array in zip(self._inputs, inputs, strict=True):
            binding.bind_ortvalue_input(name, ortvalue(array))
        destinations = [
            None if destination is None or destination.shape != inferred else destination
            for destination, inferred in zip(destinations, self._inferred, strict=False)
        ]
        for name, destination in zip_longest(self._outputs, destinations):
            if destination is None:
                binding.bind_output(name)
            else:
                binding.bind_ortvalue_output(name, ortvalue(destination))
        session.run_with_iobinding(binding)
        pairs = zip_longest(binding.get_outputs(), destinations)
        return [
            array_of(value) if destination is None else destination for value, destination in pairs
        ]

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

    def save(self) -> bytes:
        return b"".join(layout.parts(self._model, self._facts))

    def saving(self) -> Callable[[], Sequence[bytes | memoryview]]:
        return partial(layout.parts, self._model, self._facts)

    def profiler(self) -> Profiler:
        # Imported late: rarely needed.
        from crosschip.devices.onnxruntime.compiling import profiler

        def make(record: str) -> OnnxRuntimeProgram:
            settings = replace(self._settings, record=record, sessions=1)
            return OnnxRuntimeProgram(self._model, settings, self._source, self._facts)

        return profiler(self._source, self._model, make)

    def end_recording(self) -> str:
        """End the recording of node times, and return its path."""
        path: str = self._session.end_profiling()
        return path

    def close(self) -> None:
        vars(self).clear()


def load(
    saved: bytes | memoryview,
    model: Model,
    options: Options,
    *,
    spinning: bool,
    provider: Provider | None = None,
) -> OnnxRuntimeProgram:
    """Load a saved program without copying its bytes.

    Raises:
        DeviceError: the data was not saved by `save`, or ONNX Runtime failed.
    """
    try:
        compiled, facts = layout.read(saved)
    except Exception as error:
        raise failure("has not saved this program", error) from error
    settings = Settings.of(options, spinning, facts, provider)
    return OnnxRuntimeProgram(compiled, settings, model, facts)


def _engine(session: InferenceSession) -> Any:
    """Return the inner session object, whose `run` skips the check of names."""
    return getattr(session, "_sess", session)


def _sizes(source: Model) -> Sizes:
    # Imported late: needed for dynamic dimensions only.
    from crosschip.devices.onnxruntime.unchecked import sizes

    return sizes(source)


def _check(name: str, declared: TensorType, array: Array) -> None:
    """Raise `DeviceError` if an output has another element type or shape than declared.

    Raises:
        DeviceError: it has another element type or shape.
    """
    if not declared.admits(array):
        raise DeviceError(
            f"onnxruntime: {name!r} is {array.dtype}{list(array.shape)}, but the model declares "
            f"{declared}; correct its declaration"
        )
