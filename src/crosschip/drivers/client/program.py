"""A program that runs in a driver's process."""

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
    """A program in a driver's process, prepared again in the next one if that dies.

    Args:
        driver: the process, and those that replace it.
        model: what it is made from.
        options: how.
        saved: what it was saved as; `None` if it is to be compiled.

    Attributes:
        copied: how many tensors were copied, into shared memory or out of it.

    Raises:
        CompileError, DeviceError: the device fails to compile or to load it.
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
        """The bytes of each output; of one of open sizes, as it was last."""
        self._prepared: tuple[Link, int] | None = None
        self._places: list[tuple[Link, int]] = []
        finalize(self, _forget, self._places)
        driver.attempt("compiling" if saved is None else "loading a program", self.prepare)
        driver.programs.add(self)

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return self._driver.run(self, inputs, ())

    def run_into(self, inputs: Sequence[Array], places: Sequence[Array | None]) -> Sequence[Array]:
        return self._driver.run(self, inputs, places)

    def prepare(self, link: Link) -> int:
        """Return the program's number in a process; it is prepared there if it has not been."""
        prepared = self._prepared
        if prepared is not None and prepared[0] is link:
            return prepared[1]
        with self._lock:
            prepared = self._prepared
            if prepared is None or prepared[0] is not link:
                number = link.prepare(self.model, self.options, self.saved)
                self._prepared = prepared = link, number
                self._places[:] = [prepared]
            return prepared[1]

    def run_on(
        self,
        link: Link,
        inputs: Sequence[Array],
        places: Sequence[Array | None],
        priority: int,
        *,
        alone: bool,
    ) -> Sequence[Array]:
        """Return the outputs, computed in one process.

        Args:
            link: to the process.
            inputs: as for `run`.
            places: as for `run_into`; none if there is no place for any.
            priority: NNRt's.
            alone: whether nothing else is to run there meanwhile.

        Raises:
            Died: the process is gone.
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
                self._room(link, size, places[index] if places else None, leases)
                for index, size in enumerate(self._sizes)
            ]
            parts = tuple(None if room is None else room.buffer for room in leases_of_outputs)
            ran, descriptors = link.connection.ask_for(
                messages.Ran,
                lambda n: messages.Run(n, number, input_tensors, parts, priority, alone),
            )
        except DeviceError:
            raise
        except BaseException:  # interrupted: the run goes on, and writes where it was to write
            for lease in leases:
                lease.lost = True
            raise
        return self._results(link, ran.outputs, leases_of_outputs, places, descriptors)

    def save(self) -> bytes | None:
        if self.saved is None:
            self.saved = self._driver.attempt(
                "saving a program", lambda link: link.save(self.prepare(link))
            )
        return None if self.saved is None else self.saved.read()

    def close(self) -> None:
        self._driver.programs.discard(self)
        prepared, self._prepared = self._prepared, None
        self._places.clear()
        if prepared is not None:
            prepared[0].discard(prepared[1])
        if self.saved is not None:
            self.saved.close()

    def _input_tensor(
        self, link: Link, type_: TensorType, value: Any, leases: list[Lease]
    ) -> Tensor:
        """Return an input in shared memory; one that lies there already is not copied."""
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
        np.copyto(lease.holding(value.shape, value.dtype), value)
        self.copied += 1
        return Tensor(shape, lease.part(value.nbytes))

    def _room(
        self, link: Link, size: int | None, place: Array | None, leases: list[Lease]
    ) -> Lease | None:
        """Memory for an output; `None` if nothing is known of its size."""
        if size is None:
            return None
        lease = None if place is None else lease_of(place)
        if lease is None or lease.owner is not link.regions:
            lease = link.regions.take(size)
            leases.append(lease)
        return lease

    def _results(
        self,
        link: Link,
        outputs: Sequence[Tensor],
        leases: Sequence[Lease | None],
        places: Sequence[Array | None],
        descriptors: list[int],
    ) -> list[Any]:
        """Return the outputs as arrays in the memory that they came in, or in the caller's places."""
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
            array = lease.holding(tensor.shape, type_.element_type.dtype)
            place = places[index] if places else None
            if place is not None and place.shape == array.shape:
                if lease_of(place) is not lease:
                    np.copyto(place, array)
                    self.copied += 1
                array = place
            arrays.append(array)
        return arrays


def _forget(places: list[tuple[Link, int]]) -> None:
    """A program is garbage: it is discarded when its driver is next asked for something."""
    for link, number in places:
        link.forgotten.append(number)


def _bytes_of(type_: TensorType) -> int | None:
    """Return the bytes of a tensor, at least one; `None` if that is open."""
    if type_.static_shape is None or type_.element_type in PYTHONS_TYPES:
        return None
    return max(1, prod(type_.static_shape) * type_.element_type.dtype.itemsize)
