"""Runs of a compiled model that keep state for each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crosschip.hal import Buffer, DeviceLost, Sizes
from crosschip.hal.conditions import InputGuard
from crosschip.hal.device import OutOfRange
from crosschip.ir import Array, Dim, InputError
from crosschip.ir.closing import Closing
from crosschip.ir.dataclass import dataclass
from crosschip.ir.sizing import SizeReader
from crosschip.runtime.copies import Copies
from crosschip.runtime.guard.programs import shapes_of, tensors_among
from crosschip.runtime.outline import Outline
from crosschip.runtime.programs import SegmentProgram
from crosschip.runtime.sessions.pairs import paired
from crosschip.runtime.sessions.series import Series
from crosschip.runtime.sessions.starts import checked_start, empty_start
from crosschip.runtime.signature import Signature, check_ranges
from crosschip.runtime.substitutes import Substitutes

if TYPE_CHECKING:
    from crosschip.runtime.compiled import CompiledModel

_Inputs = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Runner:
    """A compiled model as its sessions know it.

    Attributes:
        compiled: the model itself.
        placement: the outline of what its programs were compiled from.
        programs: one for each segment, in order.
        sizes: the ranges that open sizes must keep to.
        copies: where it is counted what has to be copied.
        substitutes: take its place where it cannot run.
        counted: calls a function with inputs as a run of the model, which is counted, and which
            closing the model waits for; an `InputError` if it is closed.
    """

    compiled: CompiledModel
    placement: Outline
    programs: Sequence[SegmentProgram]
    sizes: Sizes
    copies: Copies
    substitutes: Substitutes
    counted: Callable[[Callable[[_Inputs], dict[str, Any]], _Inputs], dict[str, Any]]


class Session(Closing):
    """Runs of a compiled model in which some outputs are inputs of the next run: its state.

    The state stays where it was made, on the device if that can keep it. A session may be used from
    several threads, whose runs come one after the other; sessions of one model are independent of
    each other, and their runs may overlap. A run that fails leaves the state as it was.

    Attributes:
        state_outputs: for the name of each input that makes up the state, the name of the output
            from which it is read.
    """

    def __init__(self, runner: Runner, state: object, start: object) -> None:
        """Begin.

        Args:
            runner: the compiled model.
            state: as for `CompiledModel.session`.
            start: as for `CompiledModel.session`.

        Raises:
            InputError: they do not fit the model.
        """
        model = runner.placement.model
        self.state_outputs: Mapping[str, str] = paired(model.outputs, model.inputs, state)
        self._runner = runner
        self._operands = {name: model.inputs[name] for name in self.state_outputs}
        free_inputs = {
            name: o for name, o in model.inputs.items() if name not in self.state_outputs
        }
        state_outputs = set(self.state_outputs.values())
        names = list(model.inputs)
        self._names = names
        self._outputs = [
            (name, index) for index, name in enumerate(model.outputs) if name not in state_outputs
        ]
        self._input_names = list(free_inputs)
        self._states = [(names.index(name), name) for name in self.state_outputs]
        self._types = {name: operand.type for name, operand in model.inputs.items()}
        self._begin_with(checked_start(self._operands, start))
        self._signature = Signature(free_inputs, copies=runner.copies)
        self._all = Signature(model.inputs, runner.sizes)
        types = [operand.type for operand in model.inputs.values()]
        self._reader = SizeReader(types)
        self._tensors = tensors_among(types)
        guard = InputGuard(model, runner.placement.conditions)
        self._guard = guard or None
        checked = {names[index] for index in guard.checked}
        self._series = Series(
            runner.placement, runner.programs, runner.copies, self.state_outputs, checked
        )
        self._begun = False
        self._closed = False
        self._lock = threading.Lock()

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Compute the outputs that are not kept, and let the next run read those that are.

        Args:
            inputs: an array for each input that is not kept, by name; as for `CompiledModel.run`.

        Returns:
            An array for each output that is not kept, by name; the caller owns them.

        Raises:
            InputError: the inputs do not fit the model or the state, or the session or its model is
                closed.
            DeviceError: a device failed.
        """
        with self._lock:
            return self._runner.counted(self._run, inputs)

    def after_fork(self) -> None:
        """Begin anew in a forked process, in which the thread that held the lock may not be."""
        self._lock = threading.Lock()

    def state(self) -> dict[str, Array]:
        """What the next run reads for the inputs that are kept, by their names; a copy.

        It starts another session where this one is: `compiled.session(start=session.state())`.

        Raises:
            InputError: nothing has been run and not all of it was given to start with, or the
                session is closed.
            DeviceError: a device failed.
        """
        with self._lock:
            self._check_open()
            if not self._begun:
                missing = [name for name in self.state_outputs if name not in self._start]
                if missing:
                    raise InputError(
                        f"what {missing[0]!r} begins with shows in the first run; run the session "
                        f"before, or say it with start"
                    )
                return {name: self._start[name].copy() for name in self.state_outputs}
            return {name: self._series.read(index) for index, name in self._states}

    def reset(self, start: Mapping[str, Any] | None = None) -> None:
        """Let the next run be the first one.

        Args:
            start: what it reads for inputs that are kept, by name, in place of what the session was
                made with.

        Raises:
            InputError: it does not fit the model, or the session is closed.
        """
        with self._lock:
            self._check_open()
            checked = checked_start(self._operands, start)
            if start is not None:
                self._begin_with({**self._start, **checked})
            self._begun = False

    def close(self) -> None:
        """Release the state; the session cannot be run afterwards."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._series.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the compiled model and the state, from which the session goes on.

        Raises:
            InputError: the session is closed.
            InputError, UnsupportedError, DeviceError, ModelFileError: the model cannot be pickled,
                or the state not be read.
        """
        with self._lock:
            self._check_open()
            pairs = {output: input for input, output in self.state_outputs.items()}
            state = None
            if self._begun:
                state = {name: self._series.read(index) for index, name in self._states}
            return _opened, (self._runner.compiled, pairs, self._start), state

    def __setstate__(self, state: Mapping[str, Array]) -> None:
        """Go on from a state that was pickled."""
        for index, name in self._states:
            self._series.write(index, state[name])
        self._begun = True

    def __repr__(self) -> str:
        states = ", ".join(self.state_outputs)
        return f"<Session of {self._runner.placement.model.name}: keeps {states}>"

    def _run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        self._check_open()
        try:
            # Later, sizes are checked with those of the state.
            arrays = (self._signature.take if self._begun else self._signature.arrange)(inputs)
        except InputError as error:
            raise self._misnamed(inputs) or error from error.__cause__
        if not self._begun:
            self._begin(arrays)
        series = self._series
        values = series.inputs(arrays)
        shapes = shapes_of(self._tensors, values)
        self._check_shapes(shapes)
        try:
            if self._guard is not None:
                _check_guard(self._guard, values, shapes)
            outputs = series.run(values)
        except (DeviceLost, OutOfRange) as error:
            return self._run_on_substitute(self._runner.substitutes.after(error), arrays)
        series.advance()
        return {name: outputs[index] for name, index in self._outputs}

    def _misnamed(self, inputs: object) -> InputError | None:
        """What is wrong with inputs one of which is kept."""
        names = inputs if isinstance(inputs, Mapping) else {}
        state = next((name for name in self.state_outputs if name in names), None)
        if state is None:
            return None
        return InputError(f"input {state!r} is kept by the session; reset(start=…) sets it")

    def _begin(self, arrays: Sequence[Array]) -> None:
        """Have the state be what it begins with, for inputs of these shapes."""
        sizes = self._sizes_of(arrays)
        for index, name in self._states:
            start = self._start.get(name)
            own = empty_start(name, self._types[name], sizes) if start is None else start.copy()
            self._series.write(index, own)
        self._begun = True

    def _begin_with(self, start: dict[str, Array]) -> None:
        """Have the first run read these arrays by the names of inputs, as far as they go."""
        self._start = start
        self._first = SizeReader([self._types[name] for name in (*self._input_names, *start)])

    def _sizes_of(self, arrays: Sequence[Array]) -> dict[str, Dim]:
        """The named sizes that the first run's inputs show, and what was given to start with."""
        shapes = [getattr(array, "shape", ()) for array in (*arrays, *self._start.values())]
        return self._first.read(shapes)

    def _check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> None:
        sizes = self._reader.agreeing(shapes)
        if sizes is None:  # this says what does not fit
            self._all.sizes(dict(zip(self._names, shapes, strict=True)))
        elif self._runner.sizes.ranges:
            check_ranges(sizes, self._runner.sizes)

    def _run_on_substitute(self, model: Any, arrays: Sequence[Array]) -> dict[str, Any]:
        """One run on a model that takes the place of the session's; the state comes back."""
        inputs = {name: self._series.read(index) for index, name in self._states}
        inputs.update(zip(self._input_names, arrays, strict=True))
        outputs = model.run(inputs)
        for index, name in self._states:
            self._series.write(index, outputs[self.state_outputs[name]])
        return {name: outputs[name] for name, _ in self._outputs}

    def _check_open(self) -> None:
        if self._closed:
            raise InputError("this session has been closed; open another with compiled.session()")


def _opened(
    compiled: CompiledModel, state: Mapping[str, str], start: Mapping[str, Array]
) -> Session:
    """A session that was pickled, before its first run."""
    return compiled.session(state, start)


def _check_guard(
    guard: InputGuard, values: Sequence[Any], shapes: Sequence[tuple[int, ...]]
) -> None:
    """Raise an `OutOfRange` if arrays or buffers for inputs do not meet a condition."""
    elements = list(values)
    for index in guard.checked:
        value = elements[index]
        if isinstance(value, Buffer):
            elements[index] = value.array()
    guard.check_elements(elements)
    guard.check_shapes(shapes)
