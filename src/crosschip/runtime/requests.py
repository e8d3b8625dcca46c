"""Asynchronous runs: requests, and the queue in which they wait."""

from __future__ import annotations

import gc
import logging
import math
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Future, InvalidStateError
from functools import partial
from heapq import heapify, heappop, heappush
from numbers import Real
from queue import SimpleQueue
from typing import Any
from weakref import ref

from crosschip.hal import urgency
from crosschip.ir import DeadlineError, DeviceError, InputError, QueueFullError
from crosschip.runtime.priority import Priority as Priority
from crosschip.runtime.programs import Awaited

Work = Callable[[Awaited], dict[str, Any]]
"""Computes a result; may stop when the argument returns that no caller waits for it."""

logger = logging.getLogger("crosschip")


class Request(Future[dict[str, Any]]):
    """A requested run: a future of the standard library that can also be awaited.

    `result` raises the errors of `CompiledModel.run`, `DeadlineError` after the deadline, and
    `concurrent.futures.CancelledError` after `cancel`. If the deadline or `cancel` comes while it
    runs, the request fails at once; the run itself ends with its current segment, because engines
    cannot be interrupted, and may read inputs and write output targets until then.

    A thread that waits in `result` or `exception` for the next request, without a timeout or
    deadline, runs it itself: switching threads twice costs more than many runs.

    Attributes:
        priority: its priority among waiting requests.
        deadline: when it must have ended, on the clock of `time.monotonic`; `None` for no limit.
    """

    def __init__(
        self, queue: RequestQueue, work: Work, priority: Priority, deadline: float | None
    ) -> None:
        super().__init__()
        self.priority = priority
        self.deadline = deadline
        self._queue = queue
        self._work: Work | None = work

    @property
    def is_late(self) -> bool:
        """Return whether the deadline has passed."""
        return self.deadline is not None and time.monotonic() > self.deadline

    def is_awaited(self) -> bool:
        """Return whether the request has no result yet."""
        return not self.done()

    def cancel(self) -> bool:
        """End a waiting or running request; return `False` if it has ended otherwise."""
        if super().cancel():
            self._queue.discard(self)
        else:
            _set_result(self.set_exception, CancelledError())
        return self.cancelled()

    def cancelled(self) -> bool:
        """Return whether the request was ended by `cancel`."""
        # One that ran has ended with an exception, as far as the base class knows.
        return super().cancelled() or (
            self.done() and isinstance(super().exception(), CancelledError)
        )

    def result(self, timeout: float | None = None) -> dict[str, Any]:
        """Wait for the outputs; see `concurrent.futures.Future.result`."""
        if timeout is None:
            self._queue.run_in_caller(self)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end of the run and return its error; see `Future.exception`."""
        if timeout is None:
            self._queue.run_in_caller(self)
        error = super().exception(timeout)
        if isinstance(error, CancelledError):
            raise error
        return error

    def add_done_callback(self, fn: Callable[[Any], object]) -> None:
        """Call a function with the request when it has ended, in any way.

        It is called in the thread that ends the request, or at once if it has ended. Errors of the
        function are logged. Within it, `CompiledModel.submit` does not wait for a full queue,
        because the waiting thread would be the one that has to empty it.
        """
        super().add_done_callback(partial(_call_safely, fn))

    def __await__(self) -> Generator[Any, None, dict[str, Any]]:
        # Imported late: the import takes long.
        import asyncio

        return asyncio.wrap_future(self).__await__()


class RequestQueue:
    """A bounded queue of requests, and the threads that run them.

    Threads are started on demand. Accepted requests are answered even after `close`.

    Args:
        name: the prefix of the threads' names.
        workers: the number of requests that run at once.
        capacity: the number of waiting requests, at least 1.
    """

    def __init__(self, name: str, workers: int, capacity: int) -> None:
        self._name = name
        self._workers = workers
        self._capacity = capacity
        self._reset()

    def _reset(self) -> None:
        # Reentrant, because garbage collection may end a model at any moment.
        self._lock = threading.RLock()
        # Wakes an idle worker; cheaper than a condition.
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._not_full = threading.Condition(self._lock)
        self._deadlines_changed = threading.Condition(self._lock)
        self._heap: list[tuple[int, int, Request]] = []
        # Weak references: other objects hold waiting and running requests; ended ones may go.
        self._deadlines: list[tuple[float, int, ref[Request]]] = []
        self._waiting = 0
        self._running = 0
        # The callers' threads that wait for a request and run it.
        self._caller_threads: list[threading.Thread] = []
        self._callers_done = threading.Condition(self._lock)
        self._blocked = 0
        self._idle = 0
        self._count = 0
        self._closed = False
        self._threads: list[threading.Thread] = []
        self._watch: threading.Thread | None = None

    @property
    def running(self) -> int:
        """The number of running requests."""
        return self._running

    def after_fork(self) -> None:
        """Reset the queue in a forked process, which has none of the threads."""
        error = DeviceError(
            "this request was taken on in the process that this one has been forked from, and is "
            "answered there alone; submit it again"
        )
        for request in [each for each in gc.get_objects() if type(each) is Request]:
            if request._queue is self and not request.done():
                request._condition = threading.Condition()  # another thread may have held it
                request._done_callbacks = []  # type: ignore[attr-defined]  # they are the parent's
                _set_result(request.set_exception, error)
        self._reset()

    def put(self, work: Work, priority: Priority, seconds: float | None, *, wait: bool) -> Request:
        """Accept a request.

        Args:
            work: computes the result.
            priority: its priority among waiting requests.
            seconds: the time after which it fails; `None` for no limit.
            wait: whether to wait while the queue is full, at most until the deadline.

        Raises:
            QueueFullError: the queue is full, and waiting was not allowed or did not help, or the
                caller is a callback in a thread of the queue.
            InputError: the queue has been closed, or `seconds` is no number.
        """
        seconds = _parse_seconds(seconds)
        deadline = None if seconds is None else time.monotonic() + seconds
        request = Request(self, work, priority, deadline)
        with self._lock:
            if self._waiting >= self._capacity and not self._closed:
                self._await_space(wait, seconds)
            if self._closed:
                raise InputError("this compiled model has been closed; compile it again to run it")
            # Threads first: if none can be started, the request is not accepted.
            if self._idle == 0 and len(self._threads) < self._workers:
                self._start_worker()
            if deadline is not None and self._watch is None:
                self._start_watch()
            self._count += 1
            self._waiting += 1
            heappush(self._heap, (-priority, self._count, request))
            if deadline is not None:
                self._watch_deadline(deadline, request)
            wake = self._is_woken()
        if wake:
            self._wakes.put(None)
        return request

    def run_in_caller(self, request: Request) -> None:
        """Run a request in the waiting thread if it is the next one."""
        with self._lock:
            if request.deadline is not None or self._next() is not request:
                return
            entry = self._begin()
            if entry is None:
                return
            self._caller_threads.append(threading.current_thread())
        try:
            _answer(*entry)
        finally:
            with self._lock:
                self._caller_threads.remove(threading.current_thread())
                self._running -= 1
                wake = self._is_woken()
                if self._closed:
                    self._callers_done.notify_all()
                    self._wake_all()
            if wake:
                self._wakes.put(None)

    def discard(self, request: Request) -> None:
        """Free the slot of a request that will not run."""
        with self._lock:
            self._drop(request)

    def close(self, timeout: float | None = None) -> None:
        """Accept no more requests, and wait until all accepted ones are answered.

        Args:
            timeout: the maximum number of seconds to wait for each thread.
        """
        self.release()
        current = threading.current_thread()
        for thread in self._threads:
            if thread is not current:
                thread.join(timeout)
        with self._lock:
            self._callers_done.wait_for(lambda: set(self._caller_threads) <= {current}, timeout)

    def release(self) -> None:
        """Accept no more requests, and let the threads end when all accepted ones are answered."""
        with self._lock:
            self._closed = True
            self._not_full.notify_all()
            self._deadlines_changed.notify_all()
            self._wake_all()

    def _is_full(self) -> bool:
        return self._waiting >= self._capacity and not self._closed

    def _await_space(self, wait: bool, seconds: float | None) -> None:
        in_callback = threading.current_thread() in (*self._threads, *self._caller_threads)
        self._blocked += 1
        has_space = (
            wait
            and not in_callback
            and self._not_full.wait_for(lambda: not self._is_full(), seconds)
        )
        self._blocked -= 1
        if not has_space:
            first = "submit less in callbacks" if in_callback else "wait for results first"
            raise QueueFullError(
                f"{self._waiting} requests wait already, and no more may (queue_size="
                f"{self._capacity}); {first}, or compile with a longer queue"
            )

    def _start_worker(self) -> None:
        name = f"{self._name}-{len(self._threads)}"
        thread = threading.Thread(target=self._serve, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _start_watch(self) -> None:
        name = f"{self._name}-deadlines"
        watch = threading.Thread(target=self._expire, name=name, daemon=True)
        watch.start()
        self._watch = watch

    def _watch_deadline(self, deadline: float, request: Request) -> None:
        if len(self._deadlines) > 2 * (self._capacity + self._workers):
            self._deadlines = [entry for entry in self._deadlines if _is_open(entry[2]())]
            heapify(self._deadlines)
        heappush(self._deadlines, (deadline, self._count, ref(request)))
        if self._deadlines[0][1] == self._count:
            self._deadlines_changed.notify()

    def _drop(self, request: Request) -> bool:
        """Remove a request from the queue; return whether no worker had it. Needs the lock."""
        if request._work is None:
            return False
        request._work = None
        self._waiting -= 1
        if self._blocked:
            self._not_full.notify()
        if len(self._heap) > 2 * (self._capacity + self._workers):
            self._heap = [entry for entry in self._heap if entry[2]._work is not None]
            heapify(self._heap)
        return True

    def _serve(self) -> None:
        """Run requests in a worker thread until the queue is closed."""
        entry = self._take(done=0)
        while entry:
            request, work = entry
            if request.is_late:
                _set_result(request.set_exception, _deadline_error(began=False))
            else:
                _answer(request, work)
            del request, work, entry
            entry = self._take(done=1)

    def _take(self, *, done: int) -> tuple[Request, Work] | None:
        """Wait for the next request and mark it as running; `None` if there will be no more.

        Args:
            done: the number of requests that the thread has ended since the last call.
        """
        while True:
            with self._lock:
                self._running -= done
                done = 0
                while self._next():
                    if entry := self._begin():
                        return entry
                if self._closed and not self._heap:
                    return None
                # Also after `close`: callers' threads run the rest and wake this one at the end.
                self._idle += 1
            self._wakes.get()

    def _next(self) -> Request | None:
        """Return the next request to run; `None` if none waits or enough are running."""
        while self._heap and self._heap[0][2]._work is None:
            heappop(self._heap)
        return self._heap[0][2] if self._heap and self._running < self._workers else None

    def _begin(self) -> tuple[Request, Work] | None:
        """Start the next request; return it with its work, or `None` if it has been cancelled."""
        request = heappop(self._heap)[2]
        work = request._work
        assert work is not None
        self._drop(request)
        if not request.set_running_or_notify_cancel():
            return None
        self._running += 1
        return request, work

    def _is_woken(self) -> bool:
        """Count an idle worker as busy if there is a request to run; return whether there is."""
        if not self._idle or not self._next():
            return False
        self._idle -= 1
        return True

    def _wake_all(self) -> None:
        idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._wakes.put(None)

    def _expire(self) -> None:
        """Fail requests at their deadlines; runs in a separate thread."""
        while True:
            with self._lock:
                while self._deadlines and not _is_open(self._deadlines[0][2]()):
                    heappop(self._deadlines)
                if not self._deadlines:
                    if self._closed:
                        return
                    self._deadlines_changed.wait()
                    continue
                remaining = self._deadlines[0][0] - time.monotonic()
                if remaining > 0:
                    self._deadlines_changed.wait(remaining)
                    continue
                request = heappop(self._deadlines)[2]()
                waited = request is not None and self._drop(request)
            if request is not None:
                _set_result(request.set_exception, _deadline_error(began=not waited))
            del request


def _answer(request: Request, work: Work) -> None:
    """Run a request and set its result, or fail it if it is late."""
    try:
        if request.priority is Priority.MEDIUM:
            result = work(request.is_awaited)
        else:
            result = _run_with_priority(request, work)
    except BaseException as error:  # the caller gets any exception
        _set_result(request.set_exception, error)
    else:
        if request.is_late:
            _set_result(request.set_exception, _deadline_error(began=True))
        else:
            _set_result(request.set_result, result)


def _run_with_priority(request: Request, work: Work) -> dict[str, Any]:
    """Run a request whose priority is passed to devices with queues."""
    before = urgency.set(request.priority)
    try:
        return work(request.is_awaited)
    finally:
        urgency.reset(before)


def _deadline_error(*, began: bool) -> DeadlineError:
    state = "its run ends with the segment that it is in" if began else "it was still waiting"
    return DeadlineError(f"the deadline has passed; {state}")


def _is_open(request: Request | None) -> bool:
    """Return whether the caller still holds the request and it has not ended."""
    return request is not None and not request.done()


def _call_safely(fn: Callable[[Any], object], request: Request) -> None:
    """Call a callback and log its error, so that the thread can serve other requests."""
    try:
        fn(request)
    except BaseException:  # any exception of foreign code is its failure
        logger.exception("a callback of a request failed")


def _parse_seconds(seconds: object) -> float | None:
    """Return a number of seconds to wait; `None` if no system can wait that long."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or math.isnan(seconds):
        raise InputError(f"a deadline is {seconds!r}, but must be a number of seconds, or None")
    return float(seconds) if seconds <= threading.TIMEOUT_MAX else None


def _set_result(set_: Callable[[Any], None], value: Any) -> None:
    """Set the result of a request, unless it was cancelled or failed by its deadline."""
    try:
        set_(value)
    except InvalidStateError:
        return
