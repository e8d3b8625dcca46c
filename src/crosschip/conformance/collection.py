"""The kit as pytest tests: one collector for a device, one item per operator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pytest

from crosschip.conformance.batching import BatchRunner
from crosschip.conformance.cases import DEVICE, all_cases
from crosschip.conformance.judge import Verdict
from crosschip.conformance.runner import COMPILE_TIMEOUT, TIMEOUT, Runner, Timeouts
from crosschip.hal import Sizes
from crosschip.ir import InputError
from crosschip.ops.packages import all_operators
from crosschip.runtime.configuration import Configuration


class Kit(pytest.Collector):
    """Collects a test for each operator; all share one worker process.

    Args:
        device: the name of the tested device.
        timeout: seconds after which a run counts as hanging; empty for the default.
        compile_timeout: seconds after which a compilation counts as hanging; empty for the default.
        together: the maximum number of operations of one program.
        configuration: the path of a TOML file with compile options, relative to pytest's
            configuration file; empty for none.
        quick: whether only a small selection of cases runs.

    Raises:
        pytest.UsageError: the file is no configuration.
    """

    def __init__(
        self,
        *,
        device: str,
        timeout: str,
        compile_timeout: str,
        together: int,
        configuration: str,
        quick: bool,
        **named: Any,
    ) -> None:
        super().__init__(**named)
        self._device = device
        self._timeouts = Timeouts(
            float(timeout or TIMEOUT), float(compile_timeout or COMPILE_TIMEOUT)
        )
        self._together = together
        self._configuration = _read_configuration(self.config, configuration)
        self._quick = quick

    @cached_property
    def runner(self) -> Runner:
        """The worker process that runs the cases."""
        return Runner(
            self._device,
            timeouts=self._timeouts,
            options=self._configuration.options(Sizes()),
            properties=self._configuration.properties.get(self._device),
        )

    @cached_property
    def batch_runner(self) -> BatchRunner:
        """Runs cases in programs of as many operations as configured."""
        return BatchRunner(self.runner, self._together, self.runner.run)

    def collect(self) -> Iterator[OperatorTest]:
        for operator in (*all_operators(), DEVICE):
            yield OperatorTest.from_parent(self, name=operator, quick=self._quick)

    def teardown(self) -> None:
        self.runner.close()


class OperatorTest(pytest.Item):
    """Runs the cases of one operator, which are generated when the test runs."""

    parent: Kit

    def __init__(self, *, quick: bool, **named: Any) -> None:
        super().__init__(**named)
        self._quick = quick

    def runtest(self) -> None:
        cases = list(all_cases(self.name, quick=self._quick))
        by_id = {r.id: r for r in self.parent.batch_runner.results([case.id for case in cases])}
        results = [by_id[case.id] for case in cases]
        bad = [r for r in results if r.verdict in (Verdict.FAIL, Verdict.NOT_RUN)]
        if bad:
            pytest.fail("\n".join(f"{r.id}: {r.detail}" for r in bad), pytrace=False)
        valid = [r for case, r in zip(cases, results, strict=True) if not case.invalid]
        if all(result.verdict is not Verdict.PASS for result in valid):
            pytest.skip(valid[0].detail)

    def reportinfo(self) -> tuple[str, None, str]:
        return self.parent.name, None, self.name


def _read_configuration(config: pytest.Config, path: str) -> Configuration:
    folder = config.inipath.parent if config.inipath else config.rootpath
    try:
        return Configuration.of(folder / path if path else None)
    except InputError as error:
        raise pytest.UsageError(f"crosschip_conformance_config: {error}") from None
