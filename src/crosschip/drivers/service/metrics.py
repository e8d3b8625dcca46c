"""Prometheus metrics of a service, served on a local port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crosschip.drivers.endpoint import deaths_at
from crosschip.drivers.service.measures import BOUNDS
from crosschip.ir import DeviceError, InputError
from crosschip.ir.extras import install_command

if TYPE_CHECKING:
    from prometheus_client import Metric

    from crosschip.drivers.service.server import Service

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
            ("restarts", "Processes before this one that died.", self._deaths()),
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

    def _deaths(self) -> int:
        return len(deaths_at(self._service.path))
