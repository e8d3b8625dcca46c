"""One client of a service: its requests, the memory that it shares, and its programs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crosschip.hal import CompileError, Program
from crosschip.hdi.service.limits import Exceeded
from crosschip.hdi.service.memories import Memories
from crosschip.hdi.service.programs import Prepared
from crosschip.hdi.wire import memory, messages, values
from crosschip.hdi.wire.board import Board, size_of
from crosschip.hdi.wire.channel import Broken, Channel, close_all
from crosschip.hdi.wire.messages import Answer, Request, Run, SharedBuffer, Tensor
from crosschip.ir import Array, DeviceError, Error, Model, TensorType
from crosschip.ir.types import PYTHONS_TYPES
from crosschip.ops.definition.serialization import from_bytes

if TYPE_CHECKING:
    from crosschip.hdi.service.server import Service

_DESCRIPTORS: Mapping[type[Request], tuple[int, ...]] = {
    messages.Query: (1,),
    messages.Prepare: (1, 2),
}
"""How many descriptors come along with a request; none with others."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run that waits.

    Attributes:
        session: whose it is.
        request: what came.
        prepared: the program.
        inputs: what it reads.
        places: where outputs go, in memory of the client's.
        taken: when it was taken on, on the clock of `time.monotonic`.
    """

    session: Session
    request: Run
    prepared: Prepared
    inputs: Sequence[Any]
    places: Sequence[Array | None]
    taken: float


class Session:
    """The service's end of a connection. One thread at a time receives; any may answer.

    Args:
        service: what it is a client of.
        channel: the connection.
        process: the client's process.
    """

    def __init__(self, service: Service, channel: Channel, process: int) -> None:
        self.service = service
        self.channel = channel
        self.process = process
        self.name = ""
        self.watches = False
        self.memories = Memories(service.limits)
        self.programs: dict[int, Prepared] = {}
        self.waiting = 0
        self.runs = 0
        self._count = 0
        self._apart_now = 0
        self._sending = threading.Lock()
        self._board: Board | None = None
        self.ended = False
        self._handlers: dict[type[Request], Callable[[Any], None]] = {
            messages.Allocate: self._allocate,
            messages.Release: self._release,
            messages.Save: self._take_save,
            messages.Discard: self._discard,
            messages.Settings: self._settings,
            messages.Ping: lambda request: self.answer(messages.Pong(request.number)),
            messages.Watch: self._watch,
            messages.Stop: self._stop,
        }

    def receive(self) -> Job | None:
        """Take the next message; the run that it asks for, if that is what it does.

        Raises:
            EOFError, OSError: the client is not there any more.
            Broken: it does not keep to the messages.
        """
        view, descriptors = self.channel.receive()
        try:
            request = messages.decode_request(view)
            if len(descriptors) not in _DESCRIPTORS.get(type(request), (0,)):
                raise Broken(f"{type(request).__name__} came with {len(descriptors)} descriptors")
            if isinstance(request, Run):
                return self._taken(request)
            if isinstance(request, messages.Hello):
                self._hello(request)
            elif isinstance(request, messages.Query):
                self._guarded(request, lambda: self._take_query(request, descriptors))
            elif isinstance(request, messages.Prepare):
                self._guarded(request, lambda: self._take_prepare(request, descriptors))
            else:
                self._guarded(request, lambda: self._handlers[type(request)](request))
            return None
        except msgspec.MsgspecError as error:
            raise Broken(f"a message is not laid out as one: {error}") from None
        finally:
            close_all(descriptors)

    def run(self, job: Job) -> None:
        """Run a program, and answer."""
        number = job.request.number
        assert self._board is not None, "nothing is taken on before a greeting"
        place = self._board.enter(number)
        fresh: list[int] = []
        try:
            made = job.prepared.run(job.inputs, job.places)
            outputs = tuple(self._outputs(job, made, fresh))
        except Exception as error:  # foreign code: whatever it raises is its failure
            self._fail(number, error)
            self.service.measures.add(job.taken, failed=True)
        else:
            self.answer(messages.Ran(number, outputs), fresh)
            self.service.measures.add(job.taken, failed=False)
        finally:
            close_all(fresh)
            self._board.leave(place)
            self.waiting -= 1
            self.runs += 1
            job.prepared.leave()

    @property
    def is_client(self) -> bool:
        """Whether it has greeted, and may ask for more than how the service is."""
        return self._board is not None and not self.watches

    def answer(self, answer: Answer, descriptors: Sequence[int] = ()) -> None:
        """Send an answer; a client that does not read its answers is cut off."""
        try:
            with self._sending:
                self.channel.send(messages.encode(answer), descriptors)
        except OSError:
            self.channel.cut_off()

    def end(self) -> None:
        """Release all that the client held; runs that are under way end first."""
        if self.ended:
            return
        self.ended = True
        with self._sending:
            self.channel.close()
        for prepared in list(self.programs.values()):
            prepared.leave()
        self.programs.clear()
        self.memories.clear()

    def figures(self) -> messages.ClientStatus:
        """The client at this moment."""
        return messages.ClientStatus(
            self.name,
            self.process,
            len(self.programs),
            self.memories.bytes,
            self.runs,
            self.waiting,
        )

    def _check_greeted(self, request: Request) -> None:
        if self._board is None:
            raise Broken("the first message must be Hello")
        if self.watches and not isinstance(request, _OF_WATCHERS):
            raise Broken(f"{type(request).__name__} came from one who only wanted to watch")

    def _guarded(self, request: Request, handle: Callable[[], None]) -> None:
        """Do what is asked for; an error that is no breach of the messages is the answer."""
        self._check_greeted(request)
        try:
            handle()
        except Broken:
            raise
        except Exception as error:  # foreign code: whatever it raises is its failure
            self._fail(request.number, error)

    def _fail(self, number: int, error: Exception) -> None:
        own = isinstance(error, Error)
        told = str(error).strip()[:_LONGEST_MESSAGE]
        operations = tuple(error.operations) if isinstance(error, CompileError) else ()
        kind = type(error).__name__
        if own and not isinstance(error, CompileError):
            kind = DeviceError.__name__
        self.answer(messages.Failure(number, told, kind, operations))

    def _hello(self, request: messages.Hello) -> None:
        if self._board is not None:
            raise Broken("Hello came twice")
        if request.protocol != messages.PROTOCOL:
            self._fail(
                request.number,
                DeviceError(
                    f"the client speaks version {request.protocol} of the messages, and this "
                    f"service {messages.PROTOCOL}; use the same version of crosschip for both"
                ),
            )
            return
        self.name = request.client[:_LONGEST_NAME]
        self.watches = request.watches
        size = size_of(self.service.queue.workers)
        descriptor = memory.allocate(size)
        try:
            self._board = Board(memory.mapped(descriptor, writable=True))
            self.answer(self.service.description(request.number, size), [descriptor])
        finally:
            os.close(descriptor)

    def _allocate(self, request: messages.Allocate) -> None:
        buffer, descriptor = self.memories.allocate(request.size)
        try:
            self.answer(messages.Memory(request.number, buffer), [descriptor])
        finally:
            os.close(descriptor)

    def _release(self, request: messages.Release) -> None:
        self.memories.release(request.fd)
        self.answer(messages.Done(request.number))

    def _discard(self, request: messages.Discard) -> None:
        prepared = self.programs.pop(request.program, None)
        if prepared is None:
            raise Broken(f"there is no program {request.program}")
        self.memories.give_back(prepared.memory)
        prepared.leave()
        self.answer(messages.Done(request.number))

    def _settings(self, request: messages.Settings) -> None:
        told = self.service.device.engine_settings(request.options)
        self.answer(messages.EngineSettings(request.number, dict(told)))

    def _watch(self, request: messages.Watch) -> None:
        self.answer(messages.Status(request.number, self.service.figures()))

    def _stop(self, request: messages.Stop) -> None:
        self.answer(messages.Done(request.number))
        self.service.stop()

    def _take_query(self, request: messages.Query, descriptors: Sequence[int]) -> None:
        content = self.memories.take(descriptors[0])
        self._apart(request, lambda: self._query(request, content))

    def _take_prepare(self, request: messages.Prepare, descriptors: Sequence[int]) -> None:
        if len(self.programs) >= self.service.limits.programs:
            raise Exceeded(f"a client may have {self.service.limits.programs} programs")
        content, *saved = [self.memories.take(descriptor) for descriptor in descriptors]
        self._apart(request, lambda: self._prepare(request, content, *saved))

    def _take_save(self, request: messages.Save) -> None:
        prepared = self._program(request.program)
        self._apart(request, lambda: self._save(request, prepared))

    def _apart(self, request: Request, work: Callable[[], None]) -> None:
        """Do what takes long in a thread of its own."""
        if self._apart_now >= self.service.limits.preparing:
            raise Exceeded(f"a client may have {self._apart_now} models prepared at once")
        self._apart_now += 1
        self.service.apart(lambda: self._ended(request, work))

    def _ended(self, request: Request, work: Callable[[], None]) -> None:
        try:
            self._guarded(request, work)
        except Broken:
            self.channel.cut_off()
        finally:
            self._apart_now -= 1

    def _query(self, request: messages.Query, content: Array) -> None:
        try:
            offer = self.service.device.query(_model(content), request.options)
        finally:
            self.memories.give_back(content.nbytes)
        written = messages.encode_offer(offer)
        self._answer_with(written, messages.Answers(request.number, len(written)))

    def _prepare(
        self, request: messages.Prepare, content: Array, saved: Array | None = None
    ) -> None:
        used = content.nbytes + (0 if saved is None else saved.nbytes)
        try:
            prepared = self._made(request, content, saved)
        except BaseException:
            self.memories.give_back(used)
            raise
        prepared.memory = used
        with self._sending:
            if not self.ended:
                self._count += 1
                number = self._count
                self.programs[number] = prepared
        if self.ended:
            prepared.leave()
        else:
            self.answer(messages.Prepared(request.number, number))

    def _made(self, request: messages.Prepare, content: Array, saved: Array | None) -> Prepared:
        model, device = _model(content), self.service.device
        if saved is None:
            program = device.compile(model, request.options)
        else:
            program = device.load(saved.tobytes(), model, request.options)
        if not isinstance(program, Program):
            raise DeviceError(f"returned an object of type {type(program).__name__}, not a Program")
        return Prepared(program, model)

    def _save(self, request: messages.Save, prepared: Prepared) -> None:
        saved = prepared.program.save()
        if saved is None:
            self.answer(messages.Saved(request.number, None))
            return
        self._answer_with(saved, messages.Saved(request.number, len(saved)))

    def _answer_with(self, content: bytes, answer: Answer) -> None:
        sealed = memory.Sealed.of(content)
        try:
            self.answer(answer, [sealed.descriptor])
        finally:
            sealed.close()

    def _program(self, number: int) -> Prepared:
        prepared = self.programs.get(number)
        if prepared is None:
            raise Broken(f"there is no program {number}")
        return prepared

    def _taken(self, request: Run) -> Job | None:
        """A run that is taken on, once all that it names has been found."""
        self._check_greeted(request)
        if self.waiting >= self.service.limits.waiting:
            self._fail(request.number, Exceeded(f"{self.waiting} runs of this client wait already"))
            return None
        prepared = self._program(request.program)
        prepared.check_shapes([tensor.shape for tensor in request.inputs])
        if len(request.outputs) != len(prepared.outputs):
            raise Broken(f"{len(request.outputs)} places came for {len(prepared.outputs)} outputs")
        inputs = [
            self._value(type_, tensor)
            for type_, tensor in zip(prepared.inputs, request.inputs, strict=True)
        ]
        places = [
            self._place(prepared, index, buffer) for index, buffer in enumerate(request.outputs)
        ]
        prepared.enter()
        self.waiting += 1
        return Job(self, request, prepared, inputs, places, monotonic())

    def _value(self, type_: TensorType, tensor: Tensor) -> Any:
        if tensor.shape is None:
            return values.from_bytes(self.memories.bytes_in(tensor.data).tobytes())
        return self.memories.array(tensor.data, type_.element_type, tensor.shape)

    def _place(self, prepared: Prepared, index: int, buffer: SharedBuffer | None) -> Array | None:
        """Memory that an output is to be written to; `None` if it is copied there in the end."""
        size = prepared.rooms[index]
        if size is None or buffer is None or size > buffer.dataSize:
            return None
        type_ = prepared.outputs[index]
        part = SharedBuffer(buffer.fd, buffer.bufferSize, buffer.offset, size)
        return self.memories.array(part, type_.element_type, type_.static_shape or ())

    def _outputs(self, job: Job, made: Sequence[Any], fresh: list[int]) -> Iterator[Tensor]:
        """Where the outputs are, once they are where the client reads them.

        Args:
            job: the run.
            made: its outputs.
            fresh: where descriptors of new memory are put.
        """
        for index, type_ in enumerate(job.prepared.outputs):
            value, place, room = made[index], job.places[index], job.request.outputs[index]
            if type_.element_type in PYTHONS_TYPES:
                written = values.to_bytes(value)
                value, shape = np.frombuffer(written, np.uint8), None
            else:
                shape = value.shape
            if place is not None and value is place and room is not None:
                data = SharedBuffer(room.fd, room.bufferSize, room.offset, value.nbytes)
            else:
                data = self._filled(value, room, fresh)
            yield Tensor(shape, data)
        for rule, kept in zip(job.prepared.rules, made[len(job.prepared.outputs) :], strict=True):
            if not np.all(kept):
                raise DeviceError(rule)

    def _filled(self, value: Array, room: SharedBuffer | None, fresh: list[int]) -> SharedBuffer:
        """Copy an output into the client's memory, or into new memory where that does not do."""
        if room is None or room.dataSize < value.nbytes:
            room, descriptor = self.memories.allocate(memory.rounded(max(1, value.nbytes)))
            fresh.append(descriptor)
        part = SharedBuffer(room.fd, room.bufferSize, room.offset, value.nbytes)
        target = self.memories.bytes_in(part)
        target[:] = value.reshape(-1).view(np.uint8)
        self.service.measures.copied += 1
        return part


_LONGEST_MESSAGE, _LONGEST_NAME = 8000, 100
_OF_WATCHERS = messages.Watch, messages.Ping, messages.Stop


def _model(content: Array) -> Model:
    return from_bytes(content.data, "the model")
