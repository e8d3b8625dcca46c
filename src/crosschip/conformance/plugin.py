"""The pytest plug-in: with one line of configuration, the kit's cases are tests.

    [tool.pytest.ini_options]
    crosschip_conformance = "my_npu"

Each operator is a test, which fails if one of its cases does and says which. Options choose fewer:
`--conformance-quick`. Nothing happens where the line is not there. `crosschip_conformance_config`
is a configuration (docs/options.md) that says how the device is to compile.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pytest

from crosschip.conformance.cases import Case, all_cases
from crosschip.conformance.company import Company
from crosschip.conformance.judge import Verdict
from crosschip.conformance.runner import COMPILE_TIMEOUT, TIMEOUT, Runner, Timeouts
from crosschip.hal import Sizes
from crosschip.ir import InputError
from crosschip.runtime.configuration import Configuration

_INI = "crosschip_conformance"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(_INI, "the device that the conformance kit runs on, none if empty", default="")
    parser.addini(
        f"{_INI}_timeout",
        "after how many seconds a case hangs, besides compiling",
        default=f"{TIMEOUT:g}",
    )
    parser.addini(
        f"{_INI}_compile_timeout",
        "after how many seconds compiling hangs",
        default=f"{COMPILE_TIMEOUT:g}",
    )
    parser.addini(
        f"{_INI}_together",
        "how many operations of one operator's cases may be compiled as one program",
        default="1",
    )
    parser.addini(
        f"{_INI}_config",
        "a TOML file, beside this one, of how the device is to compile: precision, threads, "
        "performance and properties",
        default="",
    )
    parser.addoption(
        "--conformance-quick", action="store_true", help="only a few cases of each operator"
    )


def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    device: str = config.getini(_INI)
    if device:
        name = f"conformance[{device}]"
        kit: Kit = Kit.from_parent(session, name=name, configuration=_configuration(config))
        items.extend(kit.collect())


class Kit(pytest.Collector):
    """All operators' tests, which share a process that runs cases."""

    def __init__(self, *, configuration: Configuration, **named: Any) -> None:
        super().__init__(**named)
        self._configuration = configuration

    @cached_property
    def runner(self) -> Runner:
        """The processes that run the cases."""
        device: str = self.config.getini(_INI)
        return Runner(
            device,
            timeouts=Timeouts(self._seconds("timeout"), self._seconds("compile_timeout")),
            options=self._configuration.options(Sizes()),
            properties=self._configuration.properties.get(device),
        )

    @cached_property
    def company(self) -> Company:
        """Runs cases in programs of as many operations as the configuration says."""
        together = int(self.config.getini(f"{_INI}_together"))
        return Company(self.runner, together, self.runner.run)

    def _seconds(self, name: str) -> float:
        return float(self.config.getini(f"{_INI}_{name}"))

    def collect(self) -> Iterator[OperatorTest]:
        grouped: dict[str, list[Case]] = {}
        for case in all_cases(quick=self.config.getoption("--conformance-quick")):
            grouped.setdefault(case.operator, []).append(case)
        for operator, cases in grouped.items():
            yield OperatorTest.from_parent(self, name=operator, cases=cases)

    def teardown(self) -> None:
        self.runner.close()


class OperatorTest(pytest.Item):
    """The cases of one operator."""

    parent: Kit

    def __init__(self, *, cases: list[Case], **named: Any) -> None:
        super().__init__(**named)
        self.cases = cases

    def runtest(self) -> None:
        by_id = {r.id: r for r in self.parent.company.results([case.id for case in self.cases])}
        results = [by_id[case.id] for case in self.cases]
        bad = [r for r in results if r.verdict in (Verdict.FAIL, Verdict.NOT_RUN)]
        if bad:
            pytest.fail("\n".join(f"{r.id}: {r.detail}" for r in bad), pytrace=False)
        valid = [r for case, r in zip(self.cases, results, strict=True) if not case.invalid]
        if all(result.verdict is not Verdict.PASS for result in valid):
            pytest.skip(valid[0].detail)

    def reportinfo(self) -> tuple[str, None, str]:
        return self.parent.name, None, self.name


def _configuration(config: pytest.Config) -> Configuration:
    """How the device is to compile.

    Raises:
        pytest.UsageError: the file that says it is no configuration.
    """
    path: str = config.getini(f"{_INI}_config")
    folder = config.inipath.parent if config.inipath else config.rootpath
    try:
        return Configuration.of(folder / path if path else None)
    except InputError as error:
        raise pytest.UsageError(f"{_INI}_config: {error}") from None
