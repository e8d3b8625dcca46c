"""The settings of all tests: hypothesis', where the real models are, and what is quick."""

from __future__ import annotations

import os
import runpy
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.limits import ending_where_declined

from crosschip.devices.onnxruntime import quiet as onnxruntime
from crosschip.devices.openvino import quiet as openvino

QUICK = ("ir", "ops", "passes", "drawing", "runtime", "opdef")
"""The folders that `--quick` takes tests from: all that ask no engine and are not marked `slow`."""

CHIPS = ("tests", "chips")
"""The folder of tests that need the compilers of chips: run only where it is named."""

WITHOUT_ENGINES = ("tests", "without_engines")
"""The folder on the path of quick tests' processes; to import what is in it hides the engines."""

ENGINES = ("onnxruntime", "openvino", "xla")
"""The engines in the box, as devices and packages. A test asks those that a parameter names."""

os.environ["CROSSCHIP_VERIFY"] = "1"  # also in the processes that tests start

# How long an example takes says nothing about whether it is right.
settings.register_profile("crosschip", deadline=None, derandomize=True)
settings.register_profile("quick", deadline=None, max_examples=20, derandomize=True)
# The other lanes end alike on every machine; this one draws anew in each run.
settings.register_profile("nightly", deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-oracle", action="store_true", help="write tests/ops/recorded/")
    parser.addoption(
        "--quick", action="store_true", help="only what takes no engine, no real model and no time"
    )
    parser.addoption("--nightly", action="store_true", help="also what takes minutes")


def pytest_configure(config: pytest.Config) -> None:
    # What a shell runs in the background ignores interrupts, and so does what it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "slow: takes seconds; `--quick` leaves it out")
    config.addinivalue_line("markers", "nightly: takes long; only `--nightly` runs it")
    quick = config.getoption("--quick")
    nightly = config.getoption("--nightly")
    settings.load_profile("quick" if quick else "nightly" if nightly else "crosschip")
    if quick:
        _hide_engines()
    else:
        # Before any test imports an engine by itself, and the engine tells its maker.
        onnxruntime.import_engine()
        openvino.import_engine()


def _hide_engines() -> None:
    """Let a test that needs an engine fail where they are there, also in processes it starts."""
    folder = Path(__file__).with_name("without_engines")
    path = (str(folder), os.environ.get("PYTHONPATH"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    runpy.run_path(str(folder / "sitecustomize.py"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    folder = collection_path.relative_to(config.rootpath).parts[:2]
    if folder == WITHOUT_ENGINES or (folder == CHIPS and not _names_chips(config)):
        return True
    chosen = folder == ("tests",) or (folder[:1] == ("tests",) and folder[1] in QUICK)
    return True if config.getoption("--quick") and not chosen else None


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    with ending_where_declined():
        return (yield)
    return True


def _names_chips(config: pytest.Config) -> bool:
    """Tell whether the command line names the folder of tests of chips, or something in it."""
    chips = config.rootpath.joinpath(*CHIPS)
    named = [config.invocation_params.dir / one.partition("::")[0] for one in config.args]
    return any(path.is_relative_to(chips) for path in named)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--nightly"):
        return
    is_chosen = _is_quick if config.getoption("--quick") else _is_daily
    config.hook.pytest_deselected(items=[item for item in items if not is_chosen(item)])
    items[:] = [item for item in items if is_chosen(item)]


def _is_daily(item: pytest.Item) -> bool:
    return item.get_closest_marker("nightly") is None


def _is_quick(item: pytest.Item) -> bool:
    if not (isinstance(item, pytest.Function) and _is_daily(item)):
        return False
    if item.get_closest_marker("slow"):
        return False
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "models" not in item.fixturenames and not any(map(_is_engine, parameters))


def _is_engine(parameter: object) -> bool:
    if isinstance(parameter, list):
        return any(map(_is_engine, parameter))
    return isinstance(parameter, str) and not set(ENGINES).isdisjoint(parameter.split(","))


_LAID_OVER = "_hypothesis_internal_use_settings"


@pytest.fixture(autouse=True)
def _settings_as_they_were(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hypothesis lays settings over those of each parametrized run, and all before it.

    It reads them one below the other, so that some 300 runs of a test are too deep a recursion.
    """
    function = getattr(request.node, "obj", None)
    function = getattr(function, "__func__", function)
    before = getattr(function, _LAID_OVER, None)
    yield
    if before is not None:
        setattr(function, _LAID_OVER, before)


@pytest.fixture(scope="session", autouse=True)
def _secret(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Cache entries that tests write are authenticated with a secret of their own."""
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("secret") / "cache.secret"
        patch.setenv("CROSSCHIP_CACHE_SECRET", str(path))
        yield


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder with the real models and the oracles' outputs (`make models` writes it)."""
    default = Path(__file__).parents[1] / "build" / "models"
    return Path(os.environ.get("CROSSCHIP_MODELS", default))
