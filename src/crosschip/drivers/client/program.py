"""A program in a driver's process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from crosschip.drivers.client.link import Link
from crosschip.drivers.client.regions import Lease, lease_of
from crosschip.drivers.protocol import memory, messages, values
from crosschip.drivers.protocol.messages import Tensor
from crosschip.hal import Options, Program
from crosschip.ir import Array, DeviceError, Model, TensorType
from crosschip.ir.types import PYTHONS_TYPES

if TYPE_CHECKING:
    from crosschip.drivers.client.driver import Driver


class RemoteProgram(Program):
    """A program in a driver's process, prepared again in a replacement process.

    Args:
        driver: the driver.
        model: the model.
        options: the compile options.
        saved: the saved program; `None` to compile the model.

    Attributes:
        copied: the number of tensors copied to or from shared memory.

    Raises:
        CompileError, DeviceError: the device fails to compile or load it.
    """

    def __init__(
        self, driver: Driver, model: Model, options: Options, saved: memory.Sealed | None
    ) -> None:
        self.model = model
        self.options = options
        self.saved = saved
        self.copied = 0
        self._driver = driver
        self._lock = threading.Lock()
        self._inputs = [operand.type for operand in model.inputs.values()]
        self._outputs = [operand.type for operand in model.outputs.values()]
        self._sizes = [_bytes_of(type_) for type_ in self._outputs]
        """The size in bytes of each output; for a dynamic shape, that of the last run."""
        self._prepared: tuple[Link, int] | None = None
        self._preparations: list[tuple[Link, int]] = []
        finalize(self, _mark_forgotten, self._preparations)
        driver.attempt("compiling" if saved is None else "loading a program", self.prepare)
        driver.programs.add(self)

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return self._driver.run(self, inputs, ())

    def run_into(self, inputs: Sequence[Array], places: Sequence[Array | None]) -> Sequence[Array]:
        return self._driver.run(self, inputs, places)

    def prepare(self, link: Link) -> int:
        """Return the program's number in a process, prepared there if needed."""
        prepared = self._prepared
        if prepared is not None and prepared[0] is link:
            return prepared[1]
        with self._lock:
            prepared = self._prepared
            if prepared is None or prepared[0] is not link:
                number = link.prepare(self.model, self.options, self.saved)
                self._prepared = prepared = link, number
                self._preparations[:] = [prepared]
            return prepared[1]

    def run_on(
        self,
        link: Link,
        inputs: Sequence[Array],
        targets: Sequence[Array | None],
        priority: int,
        *,
        alone: bool,
    ) -> Sequence[Array]:
        """Run the program in one process.

        Args:
            link: the link to the process.
            inputs: the inputs, as for `run`.
            targets: the arrays to write outputs to, as for `run_into`; empty for none.
            priority: NNRt's priority.
            alone: whether to execute no other run at the same time.

        Raises:
            Died: the process has died.
            DeviceError: the device failed.
        """
        number = self.prepare(link)
        leases: list[Lease] = []
        try:
            input_tensors = tuple(
                self._input_tensor(link, type_, value, leases)
                for type_, value in zip(self._inputs, inputs, strict=True)
            )
            leases_of_outputs = [
                self._output_lease(link, size, targets[index] if targets else None, leases)
                for index, size in enumerate(self._sizes)
            ]
            buffers = tuple(
                None if lease_ is None else lease_.buffer for lease_ in leases_of_outputs
            )
            result, descriptors = link.connection.ask_for(
                messages.Ran,
                lambda n: messages.Run(n, number, input_tensors, buffers, priority, alone),
            )
        except DeviceError:
            raise
        except BaseException:  # interrupted: the run continues, and writes to its memory
            for lease in leases:
                lease.lost = True
            raise
        return self._results(link, result.outputs, leases_of_outputs, targets, descriptors)

    def save(self) -> bytes | None:
        if self.saved is None:
            self.saved = self._driver.attempt(
                "saving a program", lambda link: link.save(self.prepare(link))
            )
        return None if self.saved is None else self.saved.read()

    def close(self) -> None:
        self._driver.programs.discard(self)
        prepared, self._prepared = self._prepared, None
        self._preparations.clear()
        if prepared is not None:
            prepared[0].discard(prepared[1])
        if self.saved is not None:
            self.saved.close()

    def _input_tensor(
        self, link: Link, type_: TensorType, value: Any, leases: list[Lease]
    ) -> Tensor:
        """Return an input in shared memory, copied unless it already lies there."""
        shape = None
        if type_.element_type in PYTHONS_TYPES:
            value = np.frombuffer(values.to_bytes(value), np.uint8)
        else:
            shape = value.shape
            lease = lease_of(value)
            if lease is not None and lease.owner is link.regions:
                return Tensor(shape, lease.part(value.nbytes))
        lease = link.regions.take(value.nbytes or 1)
        leases.append(lease)
        np.copyto(lease.array(value.shape, value.dtype), value)
        self.copied += 1
        return Tensor(shape, lease.part(value.nbytes))

    def _output_lease(
        self, link: Link, size: int | None, target: Array | None, leases: list[Lease]
    ) -> Lease | None:
        """Return memory for an output; `None` if its size is unknown."""
        if size is None:
            return None
        lease = None if target is None else lease_of(target)
        if lease is None or lease.owner is not link.regions:
            lease = link.regions.take(size)
            leases.append(lease)
        return lease

    def _results(
        self,
        link: Link,
        outputs: Sequence[Tensor],
        leases: Sequence[Lease | None],
        targets: Sequence[Array | None],
        descriptors: list[int],
    ) -> list[Any]:
        """Return the outputs as arrays in shared memory, or in the caller's arrays."""
        arrays: list[Any] = []
        for index, tensor in enumerate(outputs):
            lease, type_ = leases[index], self._outputs[index]
            if lease is None or tensor.data.fd != lease.buffer.fd:
                lease = link.regions.adopt(tensor.data, [descriptors.pop(0)] if descriptors else [])
            if type_.static_shape is None:
                self._sizes[index] = max(1, tensor.data.dataSize)
            if tensor.shape is None:
                arrays.append(values.from_bytes(lease[: tensor.data.dataSize].tobytes()))
                continue
            array = lease.array(tensor.shape, type_.element_type.dtype)
            target = targets[index] if targets else None
            if target is not None and target.shape == array.shape:
                if lease_of(target) is not lease:
                    np.copyto(target, array)
                    self.copied += 1
                array = target
            arrays.append(array)
        return arrays


def _mark_forgotten(preparations: list[tuple[Link, int]]) -> None:
    """Mark a garbage-collected program for discarding on its driver's next request."""
    for link, number in preparations:
        link.forgotten.append(number)


def _bytes_of(type_: TensorType) -> int | None:
    """Return a tensor's size in bytes, at least 1; `None` for a dynamic shape."""
    if type_.static_shape is None or type_.element_type in PYTHONS_TYPES:
        return None
    return max(1, prod(type_.static_shape) * type_.element_type.dtype.itemsize)
