"""What a run needs of PyTorch's state, which belongs to the process that it runs in.

A run has no gradients, no automatic casts, products of float32 in float32, and the number of
threads that was asked for. What PyTorch has for each thread is set for the run; what it has for the
whole process is set only where it differs, and set back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

_EXACT = "highest"


class State:
    """The state of the runs of a program.

    Args:
        device: the chip.
        threads: the number of processor threads; `None` for PyTorch's own.
    """

    def __init__(self, device: torch.device, threads: int | None) -> None:
        self._kind = device.type
        self._threads = threads
        self._rounds_in_convolutions = device.type == "cuda"

    def call(self, function: Any, *arguments: Any) -> Any:
        """Call a function in this state."""
        if self._is_usual():
            with torch.inference_mode():
                return function(*arguments)
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            stack.enter_context(torch.autocast(self._kind, enabled=False))
            stack.enter_context(_exact_products(self._rounds_in_convolutions))
            if self._threads is not None:
                stack.enter_context(_THREADS.limited(self._threads))
            return function(*arguments)

    def _is_usual(self) -> bool:
        """Return whether the process' state is already as a run needs it."""
        return (
            self._threads is None
            and not self._rounds_in_convolutions
            and not torch.is_autocast_enabled(self._kind)
            and torch.get_float32_matmul_precision() == _EXACT
        )


@contextmanager
def _exact_products(convolutions: bool) -> Iterator[None]:
    """Let products of float32 be computed in float32."""
    products = torch.get_float32_matmul_precision()
    allowed = convolutions and torch.backends.cudnn.allow_tf32
    try:
        if products != _EXACT:
            torch.set_float32_matmul_precision(_EXACT)
        if allowed:
            torch.backends.cudnn.allow_tf32 = False
        yield
    finally:
        if products != _EXACT:
            torch.set_float32_matmul_precision(products)
        if allowed:
            torch.backends.cudnn.allow_tf32 = True


class _Threads:
    """The number of PyTorch's threads, limited in runs.

    PyTorch has it for each thread, and for the process, from which new threads copy it. So the
    number of the process is read when no run is limited, and set back at the end of each.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limited = 0
        self._usual = 0

    @contextmanager
    def limited(self, count: int) -> Iterator[None]:
        """Limit the number of threads of this thread's calls."""
        with self._lock:
            if not self._limited:
                self._usual = torch.get_num_threads()
            self._limited += 1
            torch.set_num_threads(count)
        try:
            yield
        finally:
            with self._lock:
                self._limited -= 1
                torch.set_num_threads(self._usual)


_THREADS = _Threads()
