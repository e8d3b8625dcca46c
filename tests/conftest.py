"""The settings of all tests: hypothesis', where the real models are, and what is quick."""

from __future__ import annotations

import gc
import os
import signal
import zlib
from collections.abc import Generator, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings
from tests.limits import ending_where_declined

from crosschip.devices.onnxruntime import quiet as onnxruntime
from crosschip.devices.openvino import quiet as openvino

WITHOUT_ENGINES = ("ir", "ops", "passes", "drawing", "runtime", "opdef", "mapping")
"""The folders that `--quick` takes tests from where no engine is installed."""

NOT_QUICK = (
    *("accuracy", "apis/c", "benchmarks", "conformance", "corpus", "demo"),
    *("devices/kits/native", "docs", "fake_npu", "scaffold", "tuning"),
)
"""The folders that `--quick` leaves out: whole programs, C compilers, and what measures."""

CHIPS = ("tests", "chips")
"""The folder of tests that need the compilers of chips: run only where it is named."""

HIDING = ("tests", "without_engines")
"""The folder on the path of processes that are to find no engine; it has no tests."""

ENGINES = {
    "iree": "iree.runtime",
    "litert": "ai_edge_litert",
    "onnxruntime": "onnxruntime",
    "openvino": "openvino",
    "torch": "torch",
    "xla": "jax",
}
"""The engines in the box, and their packages. A test needs those that a parameter names."""

WIDE = ("apis", "bisect", "cli", "devices", "drivers", "importers", "opdef")
"""The folders whose tests start engines or processes: `--quick` runs one of `SHARE` of them."""

SHARE = 8
"""Of how many tests of the folders in `WIDE` `--quick` runs one, the same in every run."""

CASES = 24
"""Of how many further cases of a test `--quick` runs one, besides the first on each engine."""

SAMPLED = ("devices/operators", "devices/xla", "importers/onnx", "importers/paddle", "ops")
"""The folders with the most cases: of the further ones, those that are not nightly run a part."""

SAMPLED_CASES = 2
"""Of how many further cases in the folders of `SAMPLED` one runs, besides the nightly lane."""

os.environ["CROSSCHIP_VERIFY"] = "1"  # also in the processes that tests start

# How long an example takes says nothing about whether it is right.
settings.register_profile("crosschip", deadline=None, derandomize=True)
settings.register_profile("quick", deadline=None, max_examples=20, derandomize=True)
# The other lanes end alike on every machine; this one draws anew in each run.
settings.register_profile("nightly", deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-oracle", action="store_true", help="write tests/ops/recorded/")
    parser.addoption(
        "--quick",
        action="store_true",
        help="some cases of each test without models that is quick",
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
    # Before any test imports an engine by itself, and the engine tells its maker.
    for module in (onnxruntime, openvino):
        if not quick or _is_installed(module.__name__.split(".")[-2]):
            module.import_engine()


def _is_installed(engine: str) -> bool:
    try:
        return find_spec(ENGINES[engine]) is not None
    except ModuleNotFoundError:
        return False


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    parts = collection_path.relative_to(config.rootpath).parts
    folder = parts[:2]
    if folder == HIDING or (folder == CHIPS and not _names_chips(config)):
        return True
    if not config.getoption("--quick") or folder == ("tests",):
        return None
    return None if _is_in_quick_folder(parts[1:]) else True


def _is_in_quick_folder(parts: tuple[str, ...]) -> bool:
    """Tell whether `--quick` takes tests from a path below the folder of tests."""
    if not (_is_installed("onnxruntime") and _is_installed("openvino")):
        return parts[0] in WITHOUT_ENGINES
    missing = [f"devices/{engine}" for engine in ENGINES if not _is_installed(engine)]
    left_out = (*NOT_QUICK, *missing)
    return all(parts[: name.count("/") + 1] != tuple(name.split("/")) for name in left_out)


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
    is_quick = config.getoption("--quick")
    chosen = [item for item in items if (_is_quick(item) if is_quick else _is_daily(item))]
    named = any("::" in argument for argument in config.args)
    sample = _quick_sample if is_quick else iter if named else _daily_sample
    kept = dict.fromkeys(sample(chosen))
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = list(kept)


def pytest_collection_finish() -> None:
    """Keep the collected items out of garbage collection, which tests of memory call often."""
    gc.collect()
    gc.freeze()


def _is_daily(item: pytest.Item) -> bool:
    return item.get_closest_marker("nightly") is None


def _is_quick(item: pytest.Item) -> bool:
    if not (isinstance(item, pytest.Function) and _is_daily(item)):
        return False
    if item.get_closest_marker("slow") or "models" in item.fixturenames:
        return False
    return all(map(_is_installed, _engines_of(item)))


def _engines_of(item: pytest.Item) -> set[str]:
    """The engines that the parameters of a test name."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return set().union(*map(_engines, parameters))


def _engines(parameter: object) -> set[str]:
    """The engines that a parameter of a test names."""
    if isinstance(parameter, list):
        return set().union(*map(_engines, parameter))
    return set(ENGINES).intersection(parameter.split(",")) if isinstance(parameter, str) else set()


def _quick_sample(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """The first case of each test on each engine and a few others; fewer tests of wide folders."""
    begun: set[tuple[str, frozenset[str]]] = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if test.split("/")[1] in WIDE and zlib.crc32(test.encode()) % SHARE:
            continue
        if _is_first(item, begun) or _is_drawn(item, CASES):
            yield item


def _daily_sample(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """All tests, and in the folders of `SAMPLED` a part of their further cases."""
    begun: set[tuple[str, frozenset[str]]] = set()
    folders = tuple(f"tests/{folder}/" for folder in SAMPLED)
    for item in items:
        is_sampled = item.nodeid.startswith(folders)
        if not is_sampled or _is_first(item, begun) or _is_drawn(item, SAMPLED_CASES):
            yield item


def _is_first(item: pytest.Item, begun: set[tuple[str, frozenset[str]]]) -> bool:
    """Tell whether an item is the first of its test on its engines, and note that it has begun."""
    first = item.nodeid.partition("[")[0], frozenset(_engines_of(item))
    is_new = first not in begun
    begun.add(first)
    return is_new


def _is_drawn(item: pytest.Item, share: int) -> bool:
    """Tell whether a case is one of a share, the same in every run."""
    return zlib.crc32(item.nodeid.partition("[")[2].encode()) % share == 0


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
