"""What all tests share: hypothesis' settings, and where the real models are."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from crosschip.devices.onnxruntime import quiet as onnxruntime
from crosschip.devices.openvino import quiet as openvino

os.environ["CROSSCHIP_VERIFY"] = "1"  # also in the processes that tests start

# Before any test imports an engine by itself, and the engine tells its maker.
onnxruntime.import_engine()
openvino.import_engine()

# How long an example takes says nothing about whether it is right.
settings.register_profile("crosschip", deadline=None)
settings.load_profile("crosschip")


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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-oracle", action="store_true", help="write tests/ops/recorded/")
