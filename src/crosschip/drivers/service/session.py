"""One client of a service: its requests, the memory that it shares, and its programs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crosschip.drivers.protocol import memory, messages, values
from crosschip.drivers.protocol.board import Board, size_of
from crosschip.drivers.protocol.channel import Channel, ProtocolError, close_all
from crosschip.drivers.protocol.messages import Answer, Request, Run, SharedBuffer, Tensor
from crosschip.drivers.service.limits import Accounts, Exceeded
from crosschip.drivers.service.memories import Memories
from crosschip.drivers.service.programs import Prepared
from crosschip.drivers.service.sharing import Shared, key_of
from crosschip.hal import CompileError, Options, Program
from crosschip.ir import Array, DeviceError, Error, Model
from crosschip.ir.types import PYTHONS_TYPES
from crosschip.ops.definition.serialization import from_bytes

if TYPE_CHECKING:
    from crosschip.drivers.service.server import Service

_DESCRIPTORS: Mapping[type[Request], tuple[int, ...]] = {
    messages.Query: (1,),
    messages.Prepare: (1, 2),
}
"""How many descriptors come along with a request; none with others."""

_MOST_THREADS, _MOST_IN_FLIGHT = 1024, 4096
"""Options beyond these, which engines would try to keep, are nobody's wish."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run that waits.

    Attributes:
        session: whose it is.
        request: what came.
        prepared: the program.
        inputs: what it reads.
        places: where outputs go, in memory of the client's.
        started: when it was accepted, on the clock of `time.monotonic`.
    """

    session: Session
    request: Run
    prepared: Prepared
    inputs: Sequence[Any]
    places: Sequence[Array | None]
    started: float


class Session:
    """The service's end of a connection. One thread at a time receives; any may answer.

    Args:
        service: what it is a client of.
        channel: the connection.
        process: the client's process.
        accounts: what that has, with all its connections.
    """

    def __init__(
        self, service: Service, channel: Channel, process: int, accounts: Accounts
    ) -> None:
        self.service = service
        self.channel = channel
        self.process = process
        self.accounts = accounts
        self.name = ""
        self.watches = False
        self.memories = Memories(accounts)
        self.programs: dict[int, Prepared] = {}
        self.runs = 0
        self.ended = False
        self._count = 0
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._board: Board | None = None

    def receive(self) -> Job | None:
        """Take the next message; the run that it asks for, if that is what it does.

        Raises:
            EOFError, OSError: the client is not there any more.
            Broken: it does not keep to the messages.
        """
        view, descriptors = self.channel.receive()
        try:
            request = _decoded(view)
            if len(descriptors) not in _DESCRIPTORS.get(type(request), (0,)):
                raise ProtocolError(
                    f"{type(request).__name__} came with {len(descriptors)} descriptors"
                )
            if self._board is None and not isinstance(request, messages.Hello):
                raise ProtocolError("the first message must be Hello")
            if self.watches and not isinstance(request, _OF_WATCHERS):
                raise ProtocolError(f"{type(request).__name__} came from one who only watches")
            if isinstance(request, Run):
                return self._accept_run(request)
            if isinstance(request, messages.Query):
                self._guarded(request, lambda: self._take_query(request, descriptors))
            elif isinstance(request, messages.Prepare):
                self._guarded(request, lambda: self._take_prepare(request, descriptors))
            else:
                self._guarded(request, lambda: _HANDLERS[type(request)](self, request))
            return None
        finally:
            close_all(descriptors)

    def run(self, job: Job, place: int) -> None:
        """Run a program, and answer.

        Args:
            job: the run.
            place: of the thread, on the board.
        """
        try:
            if not self.ended:
                self._run(job, place)
        finally:
            self.accounts.waiting.release()
            job.prepared.leave()

    def _run(self, job: Job, place: int) -> None:
        board = self._board
        assert board is not None, "nothing is taken on before a greeting"
        board.enter(place, job.request.number)
        fresh: list[int] = []
        copied = 0
        failed = True
        try:
            results = job.prepared.run(job.inputs, job.places)
            outputs = []
            for output, copy in self._outputs(job, results, fresh):
                outputs.append(output)
                copied += copy
            self.answer(messages.Ran(job.request.number, tuple(outputs)), fresh)
            failed = False
        except Exception as error:  # foreign code: whatever it raises is its failure
            self._fail(job.request.number, error)
        finally:
            close_all(fresh)
            board.leave(place)
            self.runs += 1
            self.service.measures.add(job.started, failed=failed, copied=copied)

    @property
    def is_client(self) -> bool:
        """Whether it has greeted, and may ask for more than how the service is."""
        return self._board is not None and not self.watches

    def answer(self, answer: Answer, descriptors: Sequence[int] = ()) -> None:
        """Send an answer; a client that does not read its answers is cut off.

        Raises:
            DeviceError: it is larger than a message may be.
        """
        try:
            with self._sending:
                self.channel.send(messages.encode(answer), descriptors)
        except OSError:
            self.channel.cut_off()

    def end(self) -> None:
        """Release all that the client held; runs that are under way end first."""
        with self._lock:
            if self.ended:
                return
            self.ended = True
            programs = list(self.programs.values())
            self.programs.clear()
        with self._sending:
            self.channel.close()
        for prepared in programs:
            prepared.leave()
        self.memories.clear()
        self.accounts.connections.release()

    def _guarded(self, request: Request, handle: Callable[[], None]) -> None:
        """Do what is asked for; an error that is no breach of the messages is the answer."""
        try:
            handle()
        except ProtocolError:
            raise
        except Exception as error:  # foreign code: whatever it raises is its failure
            self._fail(request.number, error)

    def _fail(self, number: int, error: Exception) -> None:
        own = isinstance(error, Error)
        message = str(error).strip()[:_LONGEST_MESSAGE].encode(errors="replace").decode()
        operations = tuple(error.operations) if isinstance(error, CompileError) else ()
        if sum(len(name.encode()) for name in operations) > _LONGEST_MESSAGE:
            operations = ()  # too many to name, so they are looked for
        kind = type(error).__name__
        if own and not isinstance(error, CompileError):
            kind = DeviceError.__name__
        self.answer(messages.Failure(number, message, kind, operations))

    def _hello(self, request: messages.Hello) -> None:
        if self._board is not None:
            raise ProtocolError("Hello came twice")
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
        size = size_of(self.service.threads)
        descriptor = memory.allocate(size)
        try:
            self._board = Board(memory.mapped(descriptor, writable=True))
            self.answer(self.service.description(request.number), [descriptor])
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
        with self._lock:
            prepared = self.programs.pop(request.program, None)
        if prepared is None:
            raise ProtocolError(f"there is no program {request.program}")
        prepared.leave()
        self.answer(messages.Done(request.number))

    def _ping(self, request: messages.Ping) -> None:
        self.answer(messages.Pong(request.number))

    def _watch(self, request: messages.Watch) -> None:
        self.answer(messages.Status(request.number, self.service.figures()))

    def _stop(self, request: messages.Stop) -> None:
        self.answer(messages.Done(request.number))
        self.service.stop()

    def _take_settings(self, request: messages.Settings) -> None:
        _check_options(request.options)
        self._run_in_thread(request, ExitStack(), lambda: self._settings(request))

    def _take_query(self, request: messages.Query, descriptors: Sequence[int]) -> None:
        _check_options(request.options)
        with ExitStack() as taking:
            (content,) = self.memories.take(descriptors, taking)
            held = taking.pop_all()
        self._run_in_thread(request, held, lambda: self._query(request, content, held))

    def _take_prepare(self, request: messages.Prepare, descriptors: Sequence[int]) -> None:
        _check_options(request.options)
        with ExitStack() as taking:
            self.accounts.programs.take()
            taking.callback(self.accounts.programs.release)
            contents = self.memories.take(descriptors, taking)
            held = taking.pop_all()
        self._run_in_thread(request, held, lambda: self._prepare(request, contents, held))

    def _take_save(self, request: messages.Save) -> None:
        prepared = self._program(request.program)
        with ExitStack() as taking:
            prepared.enter()
            taking.callback(prepared.leave)
            held = taking.pop_all()
        self._run_in_thread(request, held, lambda: self._save(request, prepared, held))

    def _run_in_thread(self, request: Request, held: ExitStack, work: Callable[[], None]) -> None:
        """Do what takes long in a thread of its own, and close what is held if there is none."""
        with ExitStack() as unless_it_starts:
            unless_it_starts.push(held)
            self.accounts.preparing.take()
            unless_it_starts.callback(self.accounts.preparing.release)
            self.service.run_in_thread(lambda: self._ended(request, work))
            unless_it_starts.pop_all()

    def _ended(self, request: Request, work: Callable[[], None]) -> None:
        try:
            self._guarded(request, work)
        except ProtocolError:
            self.channel.cut_off()
        finally:
            self.accounts.preparing.release()

    def _settings(self, request: messages.Settings) -> None:
        settings = self.service.device.engine_settings(request.options)
        self.answer(messages.EngineSettings(request.number, dict(settings)))

    def _query(self, request: messages.Query, content: Array, held: ExitStack) -> None:
        with held, self.service.asking:
            offer = self.service.device.query(_model(content), request.options)
        written = messages.encode_offer(offer)
        with memory.Sealed.of(written) as sealed:
            self.answer(messages.Answers(request.number, len(written)), [sealed.descriptor])

    def _prepare(
        self, request: messages.Prepare, contents: Sequence[Array], held: ExitStack
    ) -> None:
        with held:
            prepared = self._compile(request, held, *contents)
        with self._lock:
            late = self.ended
            if not late:
                self._count += 1
                number = self._count
                self.programs[number] = prepared
        if late:
            prepared.leave()
        else:
            self.answer(messages.Prepared(request.number, number))

    def _compile(
        self,
        request: messages.Prepare,
        held: ExitStack,
        content: Array,
        saved: Array | None = None,
    ) -> Prepared:
        key, sharing = key_of(request.options, content, saved), self.service.sharing

        def make() -> Shared:
            model, device = _model(content), self.service.device
            if saved is None:
                program = device.compile(model, request.options)
            else:
                program = device.load(saved.tobytes(), model, request.options)
            if not isinstance(program, Program):
                kind = type(program).__name__
                raise DeviceError(f"returned an object of type {kind}, not a Program")
            return Shared(program, model)

        with self.service.asking:
            shared = sharing.take(key, make)
        held.callback(sharing.leave, key)
        return Prepared(shared, held.pop_all())

    def _save(self, request: messages.Save, prepared: Prepared, held: ExitStack) -> None:
        with held:
            saved = prepared.shared.save()
            if saved is None:
                self.answer(messages.Saved(request.number, None))
            else:
                self.answer(messages.Saved(request.number, saved.size), [saved.descriptor])

    def _program(self, number: int) -> Prepared:
        prepared = self.programs.get(number)
        if prepared is None:
            raise ProtocolError(f"there is no program {number}")
        return prepared

    def _accept_run(self, request: Run) -> Job | None:
        """Return a run that is taken on, once all that it names has been found."""
        prepared = self._program(request.program)
        prepared.check_shapes([tensor.shape for tensor in request.inputs])
        if len(request.outputs) != len(prepared.outputs):
            raise ProtocolError(
                f"{len(request.outputs)} places came for {len(prepared.outputs)} outputs"
            )
        inputs = [
            self._value(prepared, index, tensor) for index, tensor in enumerate(request.inputs)
        ]
        places = [
            self._place(prepared, index, buffer) for index, buffer in enumerate(request.outputs)
        ]
        try:
            self.accounts.waiting.take()
        except Exceeded as error:
            self._fail(request.number, error)
            return None
        prepared.enter()
        return Job(self, request, prepared, inputs, places, monotonic())

    def _value(self, prepared: Prepared, index: int, tensor: Tensor) -> Any:
        if tensor.shape is not None:
            element_type = prepared.inputs[index].element_type
            return self.memories.array(tensor.data, element_type, tensor.shape)
        written = self.memories.bytes_in(tensor.data).tobytes()
        try:
            value = values.from_bytes(written)
        except DeviceError as error:
            raise ProtocolError(f"input {index}: {error}") from None
        return prepared.check_value(index, value)

    def _place(self, prepared: Prepared, index: int, buffer: SharedBuffer | None) -> Array | None:
        """Memory that an output is to be written to; `None` if it is copied there in the end."""
        if buffer is None:
            return None
        self.memories.bytes_in(buffer)
        size = prepared.output_nbytes[index]
        if size is None or size > buffer.dataSize:
            return None
        type_ = prepared.outputs[index]
        part = SharedBuffer(buffer.fd, buffer.bufferSize, buffer.offset, size)
        return self.memories.array(part, type_.element_type, type_.static_shape or ())

    def _outputs(
        self, job: Job, results: Sequence[Any], fresh: list[int]
    ) -> Iterator[tuple[Tensor, bool]]:
        """Where the outputs are, once they are where the client reads them; and if by a copy.

        Args:
            job: the run.
            results: its outputs.
            fresh: where descriptors of new memory are put.
        """
        for index, type_ in enumerate(job.prepared.outputs):
            value, place, room = results[index], job.places[index], job.request.outputs[index]
            if type_.element_type in PYTHONS_TYPES:
                written = values.to_bytes(value)
                value, shape = np.frombuffer(written, np.uint8), None
            else:
                shape = value.shape
            in_place = place is not None and value is place
            if in_place and room is not None:
                data = SharedBuffer(room.fd, room.bufferSize, room.offset, value.nbytes)
            else:
                data = self._filled(value, room, fresh)
            yield Tensor(shape, data), not in_place
        for rule, holds in zip(
            job.prepared.rules, results[len(job.prepared.outputs) :], strict=True
        ):
            if not np.all(holds):
                raise DeviceError(rule)

    def _filled(self, value: Array, room: SharedBuffer | None, fresh: list[int]) -> SharedBuffer:
        """Copy an output into the client's memory, or into new memory where that does not do."""
        if room is None or room.dataSize < value.nbytes:
            room, descriptor = self.memories.allocate(memory.rounded(max(1, value.nbytes)))
            fresh.append(descriptor)
        part = SharedBuffer(room.fd, room.bufferSize, room.offset, value.nbytes)
        target = self.memories.bytes_in(part)
        target[:] = value.reshape(-1).view(np.uint8)
        return part


_LONGEST_MESSAGE, _LONGEST_NAME = 8000, 100
_OF_WATCHERS = messages.Watch, messages.Ping, messages.Stop


def _model(content: Array) -> Model:
    return from_bytes(content.data, "the model")


def _decoded(view: memoryview) -> Request:
    try:
        request: Request = messages.decode_request(view)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ProtocolError(f"a message is not laid out as one: {error}") from None
    return request


def _check_options(options: Options) -> None:
    """Make sure that nobody asks an engine for what it cannot but fail of.

    Raises:
        Broken: somebody does.
    """
    if options.threads is not None and not 0 < options.threads <= _MOST_THREADS:
        raise ProtocolError(f"{options.threads} threads are asked for")
    if not 0 < options.in_flight <= _MOST_IN_FLIGHT:
        raise ProtocolError(f"{options.in_flight} runs at once are asked for")


_HANDLERS: Mapping[type[Request], Callable[[Session, Any], None]] = {
    messages.Hello: Session._hello,
    messages.Allocate: Session._allocate,
    messages.Release: Session._release,
    messages.Save: Session._take_save,
    messages.Discard: Session._discard,
    messages.Settings: Session._take_settings,
    messages.Ping: Session._ping,
    messages.Watch: Session._watch,
    messages.Stop: Session._stop,
}
