"""The calls with which the runtime runs a program, other than `Program.run`.

The runtime passes read-only inputs at any aligned address, lets programs write outputs to the
caller's arrays, submits runs asynchronously, and keeps tensors in device buffers. The outputs must
be the same for every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from crosschip.hal import Buffer, Device, HostBuffer, Program
from crosschip.ir import Array, ElementType, Model

Invocation = Callable[[Sequence[Array]], Sequence[Sequence[Array]]]
"""Runs a program on inputs, once or several times; returns the outputs of each run."""

_GARBAGE = 0xA5


class Misbehaviour(Exception):
    """A violation of the driver contract other than wrong outputs."""


def submits(program: Program) -> bool:
    """Return whether the runtime submits runs to a program instead of calling `run`."""
    return type(program).submit is not Program.submit


def invocations(
    device: Device,
    program: Program,
    model: Model,
    inputs: Sequence[Array],
    expected: Sequence[Array],
) -> Iterator[tuple[str, Invocation]]:
    """Yield the calls that the runtime may make, each with its name in messages.

    Args:
        device: the device that compiled the program.
        program: the program to run.
        model: the model that was compiled.
        inputs: the inputs; nothing is yielded if one holds Python objects.
        expected: the right outputs, for the types and shapes of output arrays.
    """
    if any(array.dtype.hasobject for array in (*inputs, *expected)):
        return
    alignment = device.capabilities().alignment

    def run_into(inputs: Sequence[Array]) -> Sequence[Sequence[Array]]:
        places = [
            # The shapes of other outputs are unknown before the run.
            _with_other_bytes(array, alignment)
            if operand.type.static_shape == array.shape
            else None
            for operand, array in zip(model.outputs.values(), expected, strict=True)
        ]
        return [program.run_into(inputs, places)]

    def run_unaligned(inputs: Sequence[Array]) -> Sequence[Sequence[Array]]:
        return [program.run([_read_only(array, alignment) for array in inputs])]

    yield "run_into", run_into
    yield "run on read-only inputs that begin at an odd element", run_unaligned
    if submits(program):
        yield "submit", lambda inputs: _submit(program, inputs)
    if submits(program) or type(device).allocate is not Device.allocate:
        yield "buffers of the device", lambda inputs: _on_device(device, program, inputs, expected)


def _submit(program: Program, inputs: Sequence[Array]) -> Sequence[Sequence[Array]]:
    """Return the outputs of two submissions in flight at once."""
    first, second = (program.submit([HostBuffer(a) for a in inputs], (), ()) for _ in range(2))
    for submission in (second, first):
        submission.event.wait()
    outputs = [buffer.array() for buffer in first.outputs]
    others = [buffer.array() for buffer in second.outputs]
    for index, (array, other) in enumerate(zip(outputs, others, strict=True)):
        if array.size and np.shares_memory(array, other):
            raise Misbehaviour(f"output{index} of two submissions is in the same memory")
    return [outputs, others]


def _on_device(
    device: Device, program: Program, inputs: Sequence[Array], expected: Sequence[Array]
) -> Sequence[Sequence[Array]]:
    """Return outputs read from device buffers, after writing the input buffers twice."""
    buffers = [_buffer(device, array) for array in inputs]
    for index, (buffer, array) in enumerate(zip(buffers, inputs, strict=True)):
        _check(f"input buffer {index}, written for the first time,", buffer, _reverse(array))
        buffer.write(_make_strided(array))
        _check(f"input buffer {index}, written again with an array with strides,", buffer, array)
    if not submits(program):
        return [program.run([buffer.array() for buffer in buffers])]
    places = [_buffer(device, array) for array in expected]
    submission = program.submit(buffers, places, [b.ready for b in buffers if not b.ready.done])
    submission.event.wait()
    outputs = [buffer.array() for buffer in submission.outputs]
    for index, (place, array) in enumerate(zip(places, outputs, strict=False)):
        if place is not submission.outputs[index]:
            raise Misbehaviour(f"output{index} is not in the buffer that there is for it")
        _check(f"output buffer {index}, read again,", place, array)
    for index, (buffer, array) in enumerate(zip(buffers, inputs, strict=True)):
        _check(f"input buffer {index}, after the run,", buffer, array)
    return [outputs]


def _buffer(device: Device, array: Array) -> Buffer:
    """Return a device buffer filled with the elements of an array in reverse order."""
    buffer = device.allocate(ElementType.of(array.dtype), array.shape)
    if buffer.element_type.dtype != array.dtype or tuple(buffer.shape) != array.shape:
        raise Misbehaviour(
            f"allocate makes {buffer.element_type}{list(buffer.shape)}, "
            f"not {ElementType.of(array.dtype)}{list(array.shape)}"
        )
    buffer.write(_reverse(array))
    return buffer


def _check(what: str, buffer: Buffer, array: Array) -> None:
    held = buffer.array()
    if held.shape != array.shape or held.dtype != array.dtype:
        raise Misbehaviour(f"{what} holds {held.dtype}{list(held.shape)}")
    if held.tobytes() != array.tobytes():
        raise Misbehaviour(f"{what} does not hold what was written")


def _reverse(array: Array) -> Array:
    return array.reshape(-1)[::-1].reshape(array.shape).copy()


def _make_strided(array: Array) -> Array:
    """Return the same elements in an array that is not C-contiguous."""
    if array.ndim > 1:
        return np.asfortranarray(array)
    wide = np.zeros((array.size, 2), array.dtype)
    wide[:, 0] = array.reshape(-1)
    return wide[:, 0].reshape(array.shape)


def _with_other_bytes(array: Array, alignment: int) -> Array:
    """Return an array of the same type and shape with other bytes."""
    place = _misalign(array, alignment)
    place.reshape(-1).view(np.uint8)[...] = _GARBAGE
    return place


def _read_only(array: Array, alignment: int) -> Array:
    """Return a read-only copy with the smallest alignment that the element type allows."""
    copy = _misalign(array, alignment)
    copy[...] = array
    copy.flags.writeable = False
    return copy


def _misalign(array: Array, alignment: int) -> Array:
    """Return an uninitialized array of the same type and shape.

    Its address is a multiple of the alignment, but not of twice the alignment.
    """
    step = max(alignment, array.dtype.itemsize)
    room = np.empty(array.nbytes + 3 * step, np.uint8)
    start = -room.ctypes.data % step
    if (room.ctypes.data + start) // step % 2 == 0:
        start += step
    placed: Array = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    return placed
