"""What a run needs of PyTorch's state, which belongs to the process that it runs in.

A run has no gradients, no automatic casts, products of float32 in float32, and the number of
threads that was asked for. What PyTorch has for each thread is set for the run; what it has for the
whole process is set only where it differs, and set back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

_ROUNDED = frozenset({"tf32", "bf16"})
"""What products of float32 may be rounded to, by PyTorch's settings of each library."""

_BACKENDS = torch.backends
_PRODUCTS: Mapping[str, tuple[Any, ...]] = {
    "cpu": (_BACKENDS.mkldnn.matmul, _BACKENDS.mkldnn.conv),
    "cuda": (_BACKENDS.cuda.matmul, _BACKENDS.cudnn.conv),
    "xpu": (_BACKENDS.mkldnn.matmul, _BACKENDS.mkldnn.conv),
}
"""The settings of products and convolutions, by the kind of chip."""

_NARROW_SUMS = (
    "allow_fp16_reduced_precision_reduction",
    "allow_bf16_reduced_precision_reduction",
)
"""The settings that let products of 16-bit floats be summed in their type, on CUDA."""


class State:
    """The state of the runs of a program.

    Args:
        device: the chip.
        threads: the number of processor threads; `None` for PyTorch's own.
    """

    def __init__(self, device: torch.device, threads: int | None) -> None:
        self._kind = device.type
        self._threads = threads
        self._products = _PRODUCTS.get(device.type, ())

    def call(self, function: Any, *arguments: Any) -> Any:
        """Call a function in this state."""
        if self._is_usual():
            with torch.inference_mode():
                return function(*arguments)
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            if torch.is_autocast_enabled(self._kind):  # PyTorch has it for some kinds only
                stack.enter_context(torch.autocast(self._kind, enabled=False))
            for settings in self._products:
                if settings.fp32_precision in _ROUNDED:
                    stack.enter_context(_set(settings, "fp32_precision", "ieee"))
            for name in _NARROW_SUMS if self._kind == "cuda" else ():
                stack.enter_context(_set(_BACKENDS.cuda.matmul, name, False))
            if self._threads is not None:
                stack.enter_context(_THREADS.limited(self._threads))
            return function(*arguments)

    def _is_usual(self) -> bool:
        """Return whether the process' state is already as a run needs it."""
        return (
            self._threads is None
            and self._kind != "cuda"
            and not torch.is_autocast_enabled(self._kind)
            and not any(settings.fp32_precision in _ROUNDED for settings in self._products)
        )


@contextmanager
def _set(settings: Any, name: str, value: Any) -> Iterator[None]:
    """Change a setting of PyTorch, and set it back."""
    before = getattr(settings, name)
    setattr(settings, name, value)
    try:
        yield
    finally:
        setattr(settings, name, before)


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
