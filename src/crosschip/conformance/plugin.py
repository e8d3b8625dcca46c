"""The pytest plug-in: one line of configuration turns the kit's cases into tests.

    [tool.pytest.ini_options]
    crosschip_conformance = "my_npu"

Each operator is a test, which fails if one of its cases fails and names it. `--conformance-quick`
selects fewer cases. Without the line nothing happens. `crosschip_conformance_config` names a
configuration file (docs/options.md) with compile options.

pytest imports this module in every environment that has crosschip installed, so other modules are
imported only if the line is present.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_INI = "crosschip_conformance"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(_INI, "the device that the conformance kit runs on, none if empty", default="")
    parser.addini(
        f"{_INI}_timeout",
        "after how many seconds a case hangs, besides compiling; by default as the command's",
        default="",
    )
    parser.addini(
        f"{_INI}_compile_timeout",
        "after how many seconds compiling hangs; by default as the command's",
        default="",
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
        from crosschip.conformance.collection import Kit

        kit: Kit = Kit.from_parent(
            session,
            name=f"conformance[{device}]",
            device=device,
            timeout=config.getini(f"{_INI}_timeout"),
            compile_timeout=config.getini(f"{_INI}_compile_timeout"),
            together=int(config.getini(f"{_INI}_together")),
            configuration=config.getini(f"{_INI}_config"),
            quick=config.getoption("--conformance-quick"),
        )
        items.extend(kit.collect())
