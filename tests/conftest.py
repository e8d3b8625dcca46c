"""What all tests share: where the real models are."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder with the real models and the oracles' outputs (`make models` writes it)."""
    default = Path(__file__).parents[1] / "build" / "models"
    return Path(os.environ.get("CROSSCHIP_MODELS", default))
