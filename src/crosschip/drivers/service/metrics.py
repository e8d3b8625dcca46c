"""Statistics of a service's runs, and their export to Prometheus on a local port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crosschip.drivers.endpoint import deaths_at
from crosschip.ir import DeviceError, InputError
from crosschip.ir.errors import install_command

if TYPE_CHECKING:
    from prometheus_client import Metric

    from crosschip.drivers.service.server import Service
import os
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from time import monotonic

_MAX_RECENT = 2048
_RATE_SECONDS = 5.0
_PERCENTILES = (50, 90, 99)

BOUNDS = (*(step * 10.0**power for power in range(-5, 1) for step in (1, 2.5, 5)), 10.0)
"""The upper bounds of the histogram's buckets in seconds; one more bucket is unbounded."""


class Measures:
    """Statistics of a service; thread-safe.

    Attributes:
        runs: the number of ended runs.
        failures: the number of failed runs.
        copied: the number of outputs that were copied to client memory.
    """

    def __init__(self) -> None:
        self.begin = monotonic()
        self.runs = 0
        self.failures = 0
        self.copied = 0
        self._seconds = 0.0
        self._buckets = [0] * (len(BOUNDS) + 1)
        self._recent: deque[tuple[float, float]] = deque(maxlen=_MAX_RECENT)
        self._lock = threading.Lock()

    def add(self, started: float, *, failed: bool, copied: int) -> None:
        """Count a run that ends now.

        Args:
            started: the time of its acceptance, on the clock of `time.monotonic`.
            failed: whether it failed.
            copied: the number of its outputs that were copied.
        """
        now = monotonic()
        seconds = now - started
        bucket = bisect_left(BOUNDS, seconds)
        with self._lock:
            self.runs += 1
            self.failures += failed
            self.copied += copied
            self._seconds += seconds
            self._buckets[bucket] += 1
            self._recent.append((now, seconds))

    def histogram(self) -> tuple[Sequence[int], float]:
        """Return the cumulative histogram of run durations.

        Returns:
            The number of runs up to each of `BOUNDS` and in total, and all runs' seconds together.
        """
        with self._lock:
            return list(accumulate(self._buckets)), self._seconds

    def rate(self) -> float:
        """Return recent runs per second."""
        now = monotonic()
        recent = list(self._recent)
        begin = max(now - _RATE_SECONDS, recent[0][0] if len(recent) == _MAX_RECENT else self.begin)
        return sum(end >= begin for end, _ in recent) / max(now - begin, 1e-3)

    def latency(self) -> Mapping[str, float]:
        """Return seconds from acceptance to end of recent runs, by percentile."""
        durations = sorted(seconds for _, seconds in list(self._recent))
        if not durations:
            return {}
        return {
            str(p): durations[min(len(durations) - 1, len(durations) * p // 100)]
            for p in _PERCENTILES
        }


def resident() -> int:
    """Return the process's resident memory in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


_ADDRESS = "127.0.0.1"
_PREFIX = "crosschip_driver"


@contextmanager
def serve_metrics(service: Service, port: int | None) -> Iterator[str]:
    """Serve a service's metrics while the `with` block runs.

    Args:
        service: the service.
        port: the port, 0 for any free one; `None` to serve none.

    Yields:
        The metrics' address; empty if none are served.

    Raises:
        DeviceError: the port is in use.
    """
    if port is None:
        yield ""
        return
    from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

    registry = CollectorRegistry()
    registry.register(_Collector(service))
    ProcessCollector(registry=registry)
    try:
        server, thread = start_http_server(port, _ADDRESS, registry)
    except OSError as error:
        raise DeviceError(f"{_ADDRESS}:{port}: cannot be used: {error.strerror}") from None
    try:
        yield f"http://{_ADDRESS}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def require() -> None:
    """Raise `InputError` unless Prometheus' client library is installed.

    Raises:
        InputError: it is not installed.
    """
    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        raise InputError(
            f"metrics need Prometheus' client library; run: {install_command('metrics')}"
        ) from None


class _Collector:
    """Collector of a service's figures at the time of each request.

    Args:
        service: the service.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, except those of the process, which the library provides."""
        yield from self._counters()
        yield from self._gauges()
        yield self._histogram()

    def _counters(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily

        measures = self._service.measures
        for name, help_, value in (
            ("runs", "Runs that have ended.", measures.runs),
            ("failures", "Runs that have failed.", measures.failures),
            ("copied_outputs", "Outputs copied into memory of clients.", measures.copied),
            (
                "restarts",
                "Processes before this one that died.",
                len(deaths_at(self._service.path)),
            ),
        ):
            family = CounterMetricFamily(f"{_PREFIX}_{name}", help_, labels=["device"])
            family.add_metric([self._service.name], value)
            yield family

    def _gauges(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily

        figures = self._service.figures()
        info = InfoMetricFamily(_PREFIX, "The device that the driver runs.", labels=["device"])
        info.add_metric([figures.device], {"version": figures.version})
        yield info
        clients = figures.clients
        for name, help_, value in (
            ("clients", "Processes that are connected.", len(clients)),
            ("programs", "Programs that are prepared.", sum(c.programs for c in clients)),
            ("shared_memory_bytes", "Memory shared with clients.", sum(c.memory for c in clients)),
            ("waiting_runs", "Runs that wait.", figures.waiting),
            ("running_runs", "Runs that are under way.", figures.running),
            ("workers", "Runs that may be under way at once.", figures.workers),
        ):
            family = GaugeMetricFamily(f"{_PREFIX}_{name}", help_, labels=["device"])
            family.add_metric([figures.device], value)
            yield family

    def _histogram(self) -> Metric:
        from prometheus_client.core import HistogramMetricFamily

        counts, seconds = self._service.measures.histogram()
        bounds = [*map(str, BOUNDS), "+Inf"]
        family = HistogramMetricFamily(
            f"{_PREFIX}_run_duration_seconds",
            "How long runs took, waiting included.",
            labels=["device"],
        )
        family.add_metric([self._service.name], list(zip(bounds, counts, strict=True)), seconds)
        return family
