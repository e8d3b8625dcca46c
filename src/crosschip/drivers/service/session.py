"""A client's session: its requests, memory and programs."""

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
from crosschip.drivers.service.program_cache import SharedProgram, key_of
from crosschip.drivers.service.programs import Prepared
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
"""The allowed numbers of descriptors by request; 0 for all others."""

_MAX_THREADS, _MAX_IN_FLIGHT = 1024, 4096
"""The accepted maximums of options that an engine would try to honour."""


@dataclass(frozen=True, slots=True)
class Job:
    """A queued run.

    Attributes:
        session: the session.
        request: the request.
        prepared: the program.
        inputs: the inputs.
        views: the views of client memory to write outputs to; `None` for outputs to copy.
        started: the time of its acceptance, on the clock of `time.monotonic`.
    """

    session: Session
    request: Run
    prepared: Prepared
    inputs: Sequence[Any]
    views: Sequence[Array | None]
    started: float


class Session:
    """The service's end of a connection. One thread at a time receives; any may answer.

    Args:
        service: the service.
        channel: the connection.
        process: the client's process id.
        accounts: the client's accounts, shared by its connections.
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
        """Handle the next message; if it requests a run, return the job.

        Raises:
            EOFError, OSError: the client has disconnected.
            ProtocolError: it violated the protocol.
        """
        view, descriptors = self.channel.receive()
        try:
            request = _decode(view)
            if len(descriptors) not in _DESCRIPTORS.get(type(request), (0,)):
                raise ProtocolError(
                    f"{type(request).__name__} came with {len(descriptors)} descriptors"
                )
            if self._board is None and not isinstance(request, messages.Hello):
                raise ProtocolError("the first message must be Hello")
            if self.watches and not isinstance(request, _MONITOR_REQUESTS):
                raise ProtocolError(f"{type(request).__name__} came from one who only watches")
            if isinstance(request, Run):
                return self._accept_run(request)
            if isinstance(request, messages.Query):
                self._handle(request, lambda: self._take_query(request, descriptors))
            elif isinstance(request, messages.Prepare):
                self._handle(request, lambda: self._take_prepare(request, descriptors))
            else:
                self._handle(request, lambda: _HANDLERS[type(request)](self, request))
            return None
        finally:
            close_all(descriptors)

    def run(self, job: Job, slot: int) -> None:
        """Execute a job and answer.

        Args:
            job: the job.
            slot: the thread's slot on the board.
        """
        try:
            if not self.ended:
                self._run(job, slot)
        finally:
            self.accounts.waiting.release()
            job.prepared.leave()

    def _run(self, job: Job, slot: int) -> None:
        board = self._board
        assert board is not None, "the first request is Hello"
        board.enter(slot, job.request.number)
        new_descriptors: list[int] = []
        copied = 0
        failed = True
        try:
            results = job.prepared.run(job.inputs, job.views)
            outputs = []
            for output, copy in self._outputs(job, results, new_descriptors):
                outputs.append(output)
                copied += copy
            self.answer(messages.Ran(job.request.number, tuple(outputs)), new_descriptors)
            failed = False
        except Exception as error:  # device code may raise anything
            self._fail(job.request.number, error)
        finally:
            close_all(new_descriptors)
            board.leave(slot)
            self.runs += 1
            self.service.measures.add(job.started, failed=failed, copied=copied)

    @property
    def is_client(self) -> bool:
        """Whether the peer has sent `Hello` and is not a monitor."""
        return self._board is not None and not self.watches

    def answer(self, answer: Answer, descriptors: Sequence[int] = ()) -> None:
        """Send an answer; disconnect a client that does not read its answers.

        Raises:
            DeviceError: the message is too large.
        """
        try:
            with self._sending:
                self.channel.send(messages.encode(answer), descriptors)
        except OSError:
            self.channel.shut_down()

    def end(self) -> None:
        """Release the client's resources; runs in progress end first."""
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

    def _handle(self, request: Request, handle: Callable[[], None]) -> None:
        """Call a handler; answer with a `Failure` if it raises anything but `ProtocolError`."""
        try:
            handle()
        except ProtocolError:
            raise
        except Exception as error:  # device code may raise anything
            self._fail(request.number, error)

    def _fail(self, number: int, error: Exception) -> None:
        is_ours = isinstance(error, Error)
        message = str(error).strip()[:_MAX_MESSAGE].encode(errors="replace").decode()
        operations = tuple(error.operations) if isinstance(error, CompileError) else ()
        if sum(len(name.encode()) for name in operations) > _MAX_MESSAGE:
            operations = ()  # too long: the client bisects the model instead
        kind = type(error).__name__
        if is_ours and not isinstance(error, CompileError):
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
        self.name = request.client[:_MAX_NAME]
        self.watches = request.watches
        size = size_of(self.service.threads)
        descriptor = memory.allocate(size)
        try:
            self._board = Board(memory.map_shared(descriptor, writable=True))
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
        with ExitStack() as stack:
            (content,) = self.memories.take(descriptors, stack)
            resources = stack.pop_all()
        self._run_in_thread(request, resources, lambda: self._query(request, content, resources))

    def _take_prepare(self, request: messages.Prepare, descriptors: Sequence[int]) -> None:
        _check_options(request.options)
        with ExitStack() as stack:
            self.accounts.programs.take()
            stack.callback(self.accounts.programs.release)
            contents = self.memories.take(descriptors, stack)
            resources = stack.pop_all()
        self._run_in_thread(request, resources, lambda: self._prepare(request, contents, resources))

    def _take_save(self, request: messages.Save) -> None:
        prepared = self._program(request.program)
        with ExitStack() as stack:
            prepared.enter()
            stack.callback(prepared.leave)
            resources = stack.pop_all()
        self._run_in_thread(request, resources, lambda: self._save(request, prepared, resources))

    def _run_in_thread(
        self, request: Request, resources: ExitStack, function: Callable[[], None]
    ) -> None:
        """Handle a long request in its own thread; release its resources if none starts."""
        with ExitStack() as on_failure:
            on_failure.push(resources)
            self.accounts.preparing.take()
            on_failure.callback(self.accounts.preparing.release)
            self.service.run_in_thread(lambda: self._finish(request, function))
            on_failure.pop_all()

    def _finish(self, request: Request, function: Callable[[], None]) -> None:
        try:
            self._handle(request, function)
        except ProtocolError:
            self.channel.shut_down()
        finally:
            self.accounts.preparing.release()

    def _settings(self, request: messages.Settings) -> None:
        settings = self.service.device.engine_settings(request.options)
        self.answer(messages.EngineSettings(request.number, dict(settings)))

    def _query(self, request: messages.Query, content: Array, resources: ExitStack) -> None:
        with resources, self.service.device_lock:
            offer = self.service.device.query(_model(content), request.options)
        encoded = messages.encode_offer(offer)
        with memory.Sealed.of(encoded) as sealed:
            self.answer(messages.Answers(request.number, len(encoded)), [sealed.descriptor])

    def _prepare(
        self, request: messages.Prepare, contents: Sequence[Array], resources: ExitStack
    ) -> None:
        with resources:
            prepared = self._compile(request, resources, *contents)
        with self._lock:
            has_ended = self.ended
            if not has_ended:
                self._count += 1
                number = self._count
                self.programs[number] = prepared
        if has_ended:
            prepared.leave()
        else:
            self.answer(messages.Prepared(request.number, number))

    def _compile(
        self,
        request: messages.Prepare,
        resources: ExitStack,
        content: Array,
        saved: Array | None = None,
    ) -> Prepared:
        key, cache = key_of(request.options, content, saved), self.service.program_cache

        def make() -> SharedProgram:
            model, device = _model(content), self.service.device
            if saved is None:
                program = device.compile(model, request.options)
            else:
                program = device.load(saved.tobytes(), model, request.options)
            if not isinstance(program, Program):
                kind = type(program).__name__
                raise DeviceError(f"returned an object of type {kind}, not a Program")
            return SharedProgram(program, model)

        with self.service.device_lock:
            shared = cache.take(key, make)
        resources.callback(cache.leave, key)
        return Prepared(shared, resources.pop_all())

    def _save(self, request: messages.Save, prepared: Prepared, resources: ExitStack) -> None:
        with resources:
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
        """Validate a run request and return its job; `None` if a limit is exceeded."""
        prepared = self._program(request.program)
        prepared.check_shapes([tensor.shape for tensor in request.inputs])
        if len(request.outputs) != len(prepared.outputs):
            raise ProtocolError(
                f"{len(request.outputs)} output locations for {len(prepared.outputs)} outputs"
            )
        inputs = [
            self._value(prepared, index, tensor) for index, tensor in enumerate(request.inputs)
        ]
        views = [
            self._output_view(prepared, index, buffer)
            for index, buffer in enumerate(request.outputs)
        ]
        try:
            self.accounts.waiting.take()
        except Exceeded as error:
            self._fail(request.number, error)
            return None
        prepared.enter()
        return Job(self, request, prepared, inputs, views, monotonic())

    def _value(self, prepared: Prepared, index: int, tensor: Tensor) -> Any:
        if tensor.shape is not None:
            element_type = prepared.inputs[index].element_type
            return self.memories.array(tensor.data, element_type, tensor.shape)
        encoded = self.memories.bytes_in(tensor.data).tobytes()
        try:
            value = values.from_bytes(encoded)
        except DeviceError as error:
            raise ProtocolError(f"input {index}: {error}") from None
        return prepared.check_value(index, value)

    def _output_view(
        self, prepared: Prepared, index: int, buffer: SharedBuffer | None
    ) -> Array | None:
        """Return the view of client memory for an output; `None` if it is to be copied."""
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
        self, job: Job, results: Sequence[Any], new_descriptors: list[int]
    ) -> Iterator[tuple[Tensor, bool]]:
        """Yield each output, placed in shared memory, and whether it was copied.

        Args:
            job: the job.
            results: the program's results.
            new_descriptors: the list to which descriptors of new memory are appended.
        """
        for index, type_ in enumerate(job.prepared.outputs):
            value, view, buffer = results[index], job.views[index], job.request.outputs[index]
            if type_.element_type in PYTHONS_TYPES:
                encoded = values.to_bytes(value)
                value, shape = np.frombuffer(encoded, np.uint8), None
            else:
                shape = value.shape
            in_place = view is not None and value is view
            if in_place and buffer is not None:
                data = SharedBuffer(buffer.fd, buffer.bufferSize, buffer.offset, value.nbytes)
            else:
                data = self._copy_output(value, buffer, new_descriptors)
            yield Tensor(shape, data), not in_place
        for rule, holds in zip(
            job.prepared.rules, results[len(job.prepared.outputs) :], strict=True
        ):
            if not np.all(holds):
                raise DeviceError(rule)

    def _copy_output(
        self, value: Array, buffer: SharedBuffer | None, new_descriptors: list[int]
    ) -> SharedBuffer:
        """Copy an output to client memory, or to new memory if that is missing or too small."""
        if buffer is None or buffer.dataSize < value.nbytes:
            buffer, descriptor = self.memories.allocate(memory.round_size(max(1, value.nbytes)))
            new_descriptors.append(descriptor)
        part = SharedBuffer(buffer.fd, buffer.bufferSize, buffer.offset, value.nbytes)
        target = self.memories.bytes_in(part)
        target[:] = value.reshape(-1).view(np.uint8)
        return part


_MAX_MESSAGE, _MAX_NAME = 8000, 100
_MONITOR_REQUESTS = messages.Watch, messages.Ping, messages.Stop


def _model(content: Array) -> Model:
    return from_bytes(content.data, "the model")


def _decode(view: memoryview) -> Request:
    try:
        request: Request = messages.decode_request(view)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ProtocolError(f"a message is not laid out as one: {error}") from None
    return request


def _check_options(options: Options) -> None:
    """Check options that an engine would fail to honour.

    Raises:
        ProtocolError: an option exceeds its maximum.
    """
    if options.threads is not None and not 0 < options.threads <= _MAX_THREADS:
        raise ProtocolError(f"{options.threads} threads are asked for")
    if not 0 < options.in_flight <= _MAX_IN_FLIGHT:
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
