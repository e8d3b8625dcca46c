"""Sessions of a compiled model: consecutive runs with state."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crosschip.hal import Buffer, DeviceLost
from crosschip.hal.conditions import InputGuard
from crosschip.hal.device import OutOfRange
from crosschip.ir import Array, Dim, Dimension, InputError, Operand
from crosschip.ir.closing import Closing
from crosschip.ir.dataclass import dataclass
from crosschip.ir.size_reader import SizeReader
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.types import TensorType
from crosschip.runtime.arrays import as_array
from crosschip.runtime.executable import Executable
from crosschip.runtime.guard.programs import shapes_of, tensors_among
from crosschip.runtime.sessions.pairs import pair_state
from crosschip.runtime.sessions.program_series import Series
from crosschip.runtime.signature import Signature, check_ranges

if TYPE_CHECKING:
    from crosschip.runtime.compiled import CompiledModel

_Inputs = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Runner:
    """The parts of a compiled model that its sessions use.

    Attributes:
        compiled: the compiled model.
        executable: its executable when the session was opened, which the session stays with.
        counted: calls a function with inputs as a run of the model, which is counted and which
            closing the model waits for; raises `InputError` if the model is closed.
    """

    compiled: CompiledModel
    executable: Executable
    counted: Callable[[Callable[[_Inputs], dict[str, Any]], _Inputs], dict[str, Any]]


class Session(Closing):
    """Runs of a compiled model in which some outputs are inputs of the next run: its state.

    The state stays on the device that computed it, if possible. Several threads may use a session;
    their runs are serialized. Sessions of one model are independent, and their runs may overlap. A
    failed run does not change the state.

    Attributes:
        state_outputs: the name of the output for each state input, by name.
    """

    def __init__(self, runner: Runner, state: object, start: object) -> None:
        """Prepare the session.

        Args:
            runner: the compiled model.
            state: as for `CompiledModel.session`.
            start: as for `CompiledModel.session`.

        Raises:
            InputError: an argument does not fit the model.
        """
        executable = runner.executable
        model = executable.outline.model
        self.state_outputs: Mapping[str, str] = pair_state(model.outputs, model.inputs, state)
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
        self._set_start(check_start(self._operands, start))
        self._signature = Signature(free_inputs, copies=executable.copies)
        self._all = Signature(model.inputs, executable.options.sizes)
        types = [operand.type for operand in model.inputs.values()]
        self._reader = SizeReader(types)
        self._tensors = tensors_among(types)
        guard = InputGuard(model, executable.outline.conditions)
        self._guard = guard or None
        checked = {names[index] for index in guard.checked}
        self._series = Series(
            executable.outline,
            executable.programs,
            executable.copies,
            self.state_outputs,
            checked,
        )
        self._begun = False
        self._closed = False
        self._lock = threading.Lock()

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Compute the outputs and the state of the next run.

        Args:
            inputs: an array for each input that is not state, by name; as for `CompiledModel.run`.

        Returns:
            An array for each output that is not state, by name; the caller owns them.

        Raises:
            InputError: the inputs do not fit the model or the state, or the session or its model is
                closed.
            DeviceError: a device failed.
        """
        with self._lock:
            return self._runner.counted(self._run, inputs)

    def after_fork(self) -> None:
        """Reset the lock in a forked process, which may lack the thread that held it."""
        self._lock = threading.Lock()

    def state(self) -> dict[str, Array]:
        """Return a copy of the state, by the names of inputs.

        Another session continues from it: `compiled.session(start=session.state())`.

        Raises:
            InputError: the session is closed, or has not run yet and `start` lacked an input.
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
        """Reset the state to its start.

        Args:
            start: arrays for state inputs, by name, which replace the session's `start`.

        Raises:
            InputError: an array does not fit the model, or the session is closed.
        """
        with self._lock:
            self._check_open()
            checked = check_start(self._operands, start)
            if start is not None:
                self._set_start({**self._start, **checked})
            self._begun = False

    def close(self) -> None:
        """Release the state; the session cannot be run afterwards."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._series.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the compiled model and the state.

        Raises:
            InputError: the session is closed.
            InputError, UnsupportedError, DeviceError, ModelFileError: the model cannot be pickled,
                or the state cannot be read.
        """
        with self._lock:
            self._check_open()
            pairs = {output: input for input, output in self.state_outputs.items()}
            state = None
            if self._begun:
                state = {name: self._series.read(index) for index, name in self._states}
            return _open_pickled, (self._runner.compiled, pairs, self._start), state

    def __setstate__(self, state: Mapping[str, Array]) -> None:
        """Restore a pickled state."""
        for index, name in self._states:
            self._series.write(index, state[name])
        self._begun = True

    def __repr__(self) -> str:
        states = ", ".join(self.state_outputs)
        return f"<Session of {self._runner.executable.outline.model.name}: keeps {states}>"

    def _run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        self._check_open()
        try:
            # After the first run, `_check_shapes` checks the shapes together with the state's.
            arrays = (self._signature.take if self._begun else self._signature.arrange)(inputs)
        except InputError as error:
            raise self._state_input_error(inputs) or error from error.__cause__
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
            return self._run_on_substitute(self._runner.executable.substitutes.after(error), arrays)
        series.advance()
        return {name: outputs[index] for name, index in self._outputs}

    def _state_input_error(self, inputs: object) -> InputError | None:
        """Return the error about inputs that contain a state input; `None` if they contain none."""
        names = inputs if isinstance(inputs, Mapping) else {}
        state = next((name for name in self.state_outputs if name in names), None)
        if state is None:
            return None
        return InputError(f"input {state!r} is kept by the session; reset(start=…) sets it")

    def _begin(self, arrays: Sequence[Array]) -> None:
        """Initialize the state for the first run's inputs."""
        sizes = self._sizes_of(arrays)
        for index, name in self._states:
            start = self._start.get(name)
            value = default_start(name, self._types[name], sizes) if start is None else start.copy()
            self._series.write(index, value)
        self._begun = True

    def _set_start(self, start: dict[str, Array]) -> None:
        """Set the arrays that the first run reads for state inputs, by name."""
        self._start = start
        self._first = SizeReader([self._types[name] for name in (*self._input_names, *start)])

    def _sizes_of(self, arrays: Sequence[Array]) -> dict[str, Dim]:
        """Return the named sizes in the shapes of the first run's inputs and of `start`."""
        shapes = [getattr(array, "shape", ()) for array in (*arrays, *self._start.values())]
        return self._first.read(shapes)

    def _check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> None:
        sizes, bounds = self._reader.read_checked(shapes), self._runner.executable.options.sizes
        if sizes is None:  # raises the error that names the mismatch
            self._all.sizes(dict(zip(self._names, shapes, strict=True)))
        elif bounds.ranges:
            check_ranges(sizes, bounds)

    def _run_on_substitute(self, model: Any, arrays: Sequence[Array]) -> dict[str, Any]:
        """Run once on a substitute model, with the state passed to it and back."""
        inputs = {name: self._series.read(index) for index, name in self._states}
        inputs.update(zip(self._input_names, arrays, strict=True))
        outputs = model.run(inputs)
        for index, name in self._states:
            self._series.write(index, outputs[self.state_outputs[name]])
        return {name: outputs[name] for name, _ in self._outputs}

    def _check_open(self) -> None:
        if self._closed:
            raise InputError("this session has been closed; open another with compiled.session()")


def _open_pickled(
    compiled: CompiledModel, state: Mapping[str, str], start: Mapping[str, Array]
) -> Session:
    """Open a session for unpickling."""
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


def check_start(operands: Mapping[str, Operand], start: object) -> dict[str, Array]:
    """Return a caller's start values as arrays, by the names of inputs.

    Args:
        operands: the state inputs, by name.
        start: arrays for some or all of them, by name; `None` for none.

    Raises:
        InputError: a name is no state input, or an array does not fit its input.
    """
    if start is None:
        return {}
    if not isinstance(start, Mapping):
        raise InputError(f"start is {start!r}, but must be arrays by the names of inputs")
    arrays: dict[str, Array] = {}
    for name, value in start.items():
        if name not in operands:
            names = ", ".join(operands)
            near = did_you_mean(str(name), operands)
            raise InputError(f"the session does not keep an input {name!r}{near}; it keeps {names}")
        type_ = operands[name].type
        try:
            array = as_array(value, type_)
        except InputError as error:
            raise InputError(f"start of {name!r} {error}") from error.__cause__
        if not type_.admits(array):
            raise InputError(
                f"start of {name!r} has shape {list(array.shape)}, but the model takes {type_}"
            )
        arrays[name] = array
    return arrays


def default_start(name: str, type_: TensorType, sizes: Mapping[str, Dim]) -> Array:
    """Return the default start of a state input: zeros, with size 0 for unknown named sizes.

    A quantized one has its zero point, which represents 0.

    Args:
        name: the name of the input.
        type_: the type of the input.
        sizes: the named sizes that the other inputs determine.

    Raises:
        InputError: the rank is dynamic, or a dynamic size has no name.
    """
    if type_.shape is None:
        raise InputError(f"the shape of {name!r} is unknown; pass its first value as start")
    shape = tuple(_size(name, type_, size, sizes) for size in type_.shape)
    return np.full(shape, type_.zero, type_.element_type.dtype)


def _size(name: str, type_: TensorType, size: Dim, sizes: Mapping[str, Dim]) -> int:
    if not isinstance(size, Dimension):
        return size
    value = None if size.name is None else sizes.get(size.name, 0)
    if not isinstance(value, int) or size.name is None or size.name.startswith("?"):
        raise InputError(
            f"the first value of {name!r} ({type_}) is unknown: size {size} has no name; pass "
            f"start={{{name!r}: …}}"
        )
    return value
