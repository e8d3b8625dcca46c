"""Compiled models: sessions, and how they run, are saved and loaded.

What a program must know of the model that it was compiled from is saved with it (`saved.Facts`), so
that loading one looks at no operation, and imports no operators.
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
from crosschip.devices.onnxruntime.failures import failure
from crosschip.devices.onnxruntime.provided import require
from crosschip.devices.onnxruntime.saved import Facts
from crosschip.devices.onnxruntime.session import Settings, ortvalues
from crosschip.devices.onnxruntime.values import (
    all_known,
    array_of,
    is_tensor,
    ortvalue,
    renamed,
)
from crosschip.hal import Options, Profiler, Program
from crosschip.ir import Array, DeviceError, Model, TensorType

if TYPE_CHECKING:
    from crosschip.devices.kits.size_checks import Sizes
    from crosschip.devices.onnxruntime.providers import Provider

Check = Callable[[Sequence[Array]], list[Array] | None]
"""Checks the sizes of inputs; the outputs, if it is known that they have no elements."""

__all__ = ["VERSION", "OnnxRuntimeProgram", "load", "require"]

VERSION: str = onnxruntime.__version__


class OnnxRuntimeProgram(Program):
    """A session, or several if runs that overlap have several threads each.

    A session may be run from many threads at once, but they share what threads it has besides.

    Args:
        model: what it runs.
        settings: how the session is made.
        source: what it was compiled from.
        facts: what it must know of that.

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
        self._places = [index for index, *_ in self._declared]
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
        # What ONNX infers may differ from what its kernels make, which then refuse the memory.
        self._inferred = [tuple(value.shape) for value in outputs]
        self._is_plain = all_known([*inputs, *outputs])
        self._tensors_in = [is_tensor(value) for value in inputs]
        self._tensors_out = [is_tensor(value) for value in outputs]
        self._all_tensors = all(self._tensors_in) and all(self._tensors_out)
        self._check: Check | None = None
        if sizes is not None:
            self._check = sizes.check if all(self._tensors_in) else partial(self._checked, sizes)
        straight = self._is_plain and self._idle is None and len(outputs) == self._count
        self._straight = _engine(session) if straight else None
        self._renamed = renamed(outputs)

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        if self._straight is None:
            return self.run_into(inputs, ())
        # What `run_into` would come to: small models run for less time than it takes to get there.
        if self._check is not None and (nothing := self._check(inputs)) is not None:
            return nothing
        try:
            feed = dict(zip(self._inputs, inputs, strict=True))
            outputs: list[Array] = self._straight.run(self._outputs, feed, None)
        except Exception as error:
            raise failure("failed while running", error) from error
        for index, dtype in self._renamed:
            outputs[index] = outputs[index].view(dtype)
        if self._declared:
            self._check_declared(outputs)
        return outputs

    def run_into(self, inputs: Sequence[Array], places: Sequence[Array | None]) -> Sequence[Array]:
        if self._check is not None and (nothing := self._check(inputs)) is not None:
            return nothing
        if self._idle is None:
            outputs = self._run(self._session, inputs, places)
        else:
            outputs = self._run_on_idle(self._idle, inputs, places)
        if self._declared:
            self._check_declared(outputs)
        return outputs if len(outputs) == self._count else outputs[: self._count]

    def _checked(self, sizes: Checks, inputs: Sequence[Array]) -> list[Array] | None:
        """`Checks.check` of inputs of which some are no tensors."""
        pairs = zip(self._tensors_in, inputs, strict=True)
        return sizes.check_shapes([value.shape if tensor else () for tensor, value in pairs])

    def _check_declared(self, outputs: Sequence[Array]) -> None:
        """Refuse outputs that are not what the model declares.

        An output is of one element type in all runs.
        """
        shapes = [outputs[place].shape for place in self._places]
        if shapes != self._accepted:
            for index, name, declared in self._declared:
                _check(name, declared, outputs[index])
            self._accepted = shapes

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
        outputs: Sequence[Array] = _engine(session).run(self._outputs, feed, None)
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
        places = [
            None if place is None or place.shape != inferred else place
            for place, inferred in zip(places, self._inferred, strict=False)
        ]
        for name, place in zip_longest(self._outputs, places):
            if place is None:
                binding.bind_output(name)
            else:
                binding.bind_ortvalue_output(name, ortvalue(place))
        session.run_with_iobinding(binding)
        pairs = zip_longest(binding.get_outputs(), places)
        return [array_of(value) if place is None else place for value, place in pairs]

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
        # Seldom needed: loading a program is to take no longer for it.
        from crosschip.devices.onnxruntime.compiling import profiler

        def make(record: str) -> OnnxRuntimeProgram:
            settings = replace(self._settings, record=record, sessions=1)
            return OnnxRuntimeProgram(self._model, settings, self._source, self._facts)

        return profiler(self._source, self._model, make)

    def end_recording(self) -> str:
        """End the recording of its nodes' times; the path of the record."""
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
    """Make a program again from what it was saved as; the bytes are used where they are.

    Raises:
        DeviceError: they are not what `save` returns, or ONNX Runtime failed.
    """
    try:
        compiled, facts = layout.read(saved)
    except Exception as error:
        raise failure("has not saved this program", error) from error
    settings = Settings.of(options, spinning, facts, provider)
    return OnnxRuntimeProgram(compiled, settings, model, facts)


def _engine(session: InferenceSession) -> Any:
    """What a session calls once it has asked whether there is an array for each name."""
    return getattr(session, "_sess", session)


def _sizes(source: Model) -> Sizes:
    # They look at operations: where all sizes are known, nobody asks.
    from crosschip.devices.onnxruntime.unchecked import sizes

    return sizes(source)


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
