"""NNRt's functions that run a compiled model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from crosschip.apis.nnrt.compilation import OH_NNCompilation, Shared
from crosschip.apis.nnrt.conformance import as_reference
from crosschip.apis.nnrt.descriptions import NN_TensorDesc, data_type
from crosschip.apis.nnrt.enumerations import OH_NN_Format
from crosschip.apis.nnrt.enumerations import OH_NN_ReturnCode as Code
from crosschip.apis.nnrt.results import (
    Failure,
    Handle,
    failed,
    forbidden,
    invalid,
    live,
    returns_code,
    returns_handle,
    returns_nothing,
    returns_value,
)
from crosschip.apis.nnrt.tensor import NN_Tensor
from crosschip.apis.nnrt.types import OH_NN_Memory
from crosschip.ir import Array, DeviceError, ElementType, Operand
from crosschip.runtime.requests import Request

NN_OnRunDone = Callable[[Any, Code, Sequence[NN_Tensor], int], object]
NN_OnServiceDied = Callable[[Any], object]

_MAX_SIZE = 2**31 - 1


class OH_NNExecutor(Handle):
    """An executor of a compiled model.

    Attributes:
        built: the compiled model.
        shapes: the output shapes of the last run; `None` before the first.
        on_run_done: the callback at the end of an asynchronous run.
        on_service_died: the callback for a failed device or driver process during an
            asynchronous run.
        inputs: the inputs set by the deprecated functions, by index.
        outputs: the output buffers set by the deprecated functions, by index.
        memories: the memory allocated by the deprecated functions, by input or output.
    """

    def __init__(self, built: Shared) -> None:
        super().__init__()
        self.built = built
        self.shapes: list[tuple[int, ...]] | None = None
        self.on_run_done: NN_OnRunDone | None = None
        self.on_service_died: NN_OnServiceDied | None = None
        self.inputs: dict[int, Array] = {}
        self.outputs: dict[int, Array] = {}
        self.memories: dict[tuple[str, int], list[OH_NN_Memory]] = {}

    def destroy(self) -> None:
        super().destroy()
        self.built.release()


@returns_handle
def OH_NNExecutor_Construct(compilation: OH_NNCompilation) -> OH_NNExecutor:
    """Create an executor of a built compilation, which may be destroyed afterwards."""
    compilation = live(compilation, OH_NNCompilation)
    if compilation.built is None:
        raise invalid("the compilation has not been built")
    return OH_NNExecutor(compilation.built.hold())


@returns_nothing
def OH_NNExecutor_Destroy(executor: OH_NNExecutor | None) -> None:
    """Release an executor; `None` is ignored."""
    if executor is not None:
        live(executor, OH_NNExecutor).destroy()


@returns_value
def OH_NNExecutor_GetInputCount(executor: OH_NNExecutor) -> int:
    """Return the number of inputs."""
    return len(live(executor, OH_NNExecutor).built.model.inputs)


@returns_value
def OH_NNExecutor_GetOutputCount(executor: OH_NNExecutor) -> int:
    """Return the number of outputs."""
    return len(live(executor, OH_NNExecutor).built.model.outputs)


@returns_handle
def OH_NNExecutor_CreateInputTensorDesc(executor: OH_NNExecutor, index: int) -> NN_TensorDesc:
    """Return a new description of an input, with -1 for dynamic dimensions."""
    inputs = live(executor, OH_NNExecutor).built.model.inputs
    return _description(*at(inputs, index))


@returns_handle
def OH_NNExecutor_CreateOutputTensorDesc(executor: OH_NNExecutor, index: int) -> NN_TensorDesc:
    """Return a new description of an output, with the shape of the last run if any."""
    executor = live(executor, OH_NNExecutor)
    desc = _description(*at(executor.built.model.outputs, index))
    if executor.shapes is not None:
        desc.shape = executor.shapes[index]
    return desc


@returns_value
def OH_NNExecutor_GetOutputShape(executor: OH_NNExecutor, outputIndex: int) -> tuple[int, ...]:
    """Return an output's shape in the last run; before a run the declared one with -1."""
    executor = live(executor, OH_NNExecutor)
    name, operand = at(executor.built.model.outputs, outputIndex)
    if executor.shapes is None:
        return _description(name, operand).shape or ()
    return executor.shapes[outputIndex]


@returns_value
def OH_NNExecutor_GetInputDimRange(
    executor: OH_NNExecutor, index: int
) -> tuple[list[int], list[int]]:
    """Return the minimum and maximum sizes of an input's axes."""
    _, operand = at(live(executor, OH_NNExecutor).built.model.inputs, index)
    shape = operand.type.shape or ()
    return (
        [size if isinstance(size, int) else 1 for size in shape],
        [size if isinstance(size, int) else _MAX_SIZE for size in shape],
    )


@returns_code
def OH_NNExecutor_SetOnRunDone(executor: OH_NNExecutor, onRunDone: NN_OnRunDone) -> None:
    """Set the callback at the end of each asynchronous run, called in another thread."""
    _asynchronous(executor, onRunDone).on_run_done = onRunDone


@returns_code
def OH_NNExecutor_SetOnServiceDied(
    executor: OH_NNExecutor, onServiceDied: NN_OnServiceDied
) -> None:
    """Set the callback for a failed device or driver process during an asynchronous run.

    After a process died, the run continues in a new one.
    """
    _asynchronous(executor, onServiceDied).on_service_died = onServiceDied


@returns_code
def OH_NNExecutor_RunSync(
    executor: OH_NNExecutor,
    inputTensor: Sequence[NN_Tensor],
    outputTensor: Sequence[NN_Tensor],
) -> None:
    """Run the model; return after outputs and output shapes have been written."""
    executor = live(executor, OH_NNExecutor)
    inputs = _check_tensors(executor, inputTensor, outputTensor)
    _write(executor, executor.built.run(inputs), outputTensor)


@returns_code
def OH_NNExecutor_RunAsync(
    executor: OH_NNExecutor,
    inputTensor: Sequence[NN_Tensor],
    outputTensor: Sequence[NN_Tensor],
    timeout: int,
    userData: Any,
) -> None:
    """Start a run and return; the `SetOnRunDone` callback is called at its end.

    Args:
        executor: the executor.
        inputTensor: the inputs, which must not change before the end.
        outputTensor: the outputs, which must not be read before the end.
        timeout: the milliseconds after which the run fails with `OH_NN_TIMEOUT`.
        userData: the argument of the callbacks, which identifies the run.
    """
    if not inputTensor or not outputTensor:
        raise invalid(f"the inputs are {inputTensor!r} and the outputs {outputTensor!r}")
    executor = _asynchronous(executor, userData)
    inputs = _check_tensors(executor, inputTensor, outputTensor)
    if not isinstance(timeout, int) or timeout <= 0:
        raise invalid(f"the timeout is {timeout!r}, but must be positive")
    if executor.on_run_done is None:
        raise forbidden("nothing is called at the end of a run: SetOnRunDone has not been called")
    on_done, report_death = executor.on_run_done, _Once(executor.on_service_died, userData)
    unregister = executor.built.model.on_death(report_death)
    try:
        request = executor.built.model.submit(
            inputs, priority=executor.built.priority, deadline=timeout / 1000, wait=False
        )
    except BaseException:
        unregister()
        raise

    def finish(request_done: Request) -> None:
        code = Code.OH_NN_SUCCESS
        try:
            _write(executor, request_done.result(), outputTensor)
        except Exception as error:
            code = failed("OH_NNExecutor_RunAsync", error)
            if isinstance(error, DeviceError):
                report_death(str(error))
        unregister()
        on_done(userData, code, outputTensor, len(outputTensor))

    request.add_done_callback(finish)


class _Once:
    """A callback for a dead service that is called at most once per run.

    Args:
        function: the program's function; `None` for none.
        user_data: the function's argument.
    """

    def __init__(self, function: NN_OnServiceDied | None, user_data: Any) -> None:
        self._function = function
        self._user_data = user_data

    def __call__(self, reason: str) -> None:
        function, self._function = self._function, None
        if function is not None:
            function(self._user_data)


def _asynchronous(executor: OH_NNExecutor, callback: object) -> OH_NNExecutor:
    executor = live(executor, OH_NNExecutor)
    if callback is None:
        raise invalid("the function or the data of the program is none")
    if as_reference():
        raise forbidden("the source runs nothing asynchronously")
    return executor


def at(operands: Mapping[str, Operand], index: int) -> tuple[str, Operand]:
    """Return an input's or output's name and operand.

    Raises:
        Failure: the index is out of range.
    """
    if not isinstance(index, int) or not 0 <= index < len(operands):
        raise invalid(f"the index is {index!r}, but there are {len(operands)}")
    return list(operands.items())[index]


def _description(name: str, operand: Operand) -> NN_TensorDesc:
    sizes = [size if isinstance(size, int) else -1 for size in operand.type.shape or ()]
    shape = sizes or None
    type_ = data_type(operand.type.element_type)
    return NN_TensorDesc(name, type_, shape, OH_NN_Format.OH_NN_FORMAT_NHWC)


def _check_tensors(
    executor: OH_NNExecutor, inputs: Sequence[NN_Tensor], outputs: Sequence[NN_Tensor]
) -> dict[str, Array]:
    """Return the inputs by name, after checking inputs and outputs."""
    model = executor.built.model
    for tensors, operands in ((inputs, model.inputs), (outputs, model.outputs)):
        if tensors is None or len(tensors) != len(operands):
            raise invalid(f"the model has {len(operands)}, not {tensors!r}")
    live_tensors = [live(tensor, NN_Tensor) for tensor in (*inputs, *outputs)]
    arrays = {}
    for (name, operand), tensor in zip(model.inputs.items(), live_tensors, strict=False):
        expected = data_type(operand.type.element_type)
        if tensor.desc.data_type is not expected:
            raise invalid(f"{name}: is {tensor.desc.data_type.name}, but must be {expected.name}")
        arrays[name] = tensor.array
    return arrays


def _write(
    executor: OH_NNExecutor, outputs: Mapping[str, Array], tensors: Sequence[NN_Tensor]
) -> None:
    """Write a run's outputs and shapes to tensors."""
    for (name, array), tensor in zip(outputs.items(), tensors, strict=True):
        if array.nbytes > len(tensor.memory):
            raise Failure(
                Code.OH_NN_FAILED,
                f"{name}: takes {array.nbytes} bytes, but there are {len(tensor.memory)}",
            )
        buffer = np.frombuffer(tensor.memory, np.uint8, array.nbytes)
        buffer[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        tensor.desc.shape = array.shape or None
        tensor.desc.data_type = data_type(ElementType.of(array.dtype))
    executor.shapes = [array.shape for array in outputs.values()]
