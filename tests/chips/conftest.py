"""The compilers of chips, each in an environment of its own; `make test-chips` installs them.

Where a chip's interpreter is elsewhere, `CROSSCHIP_<CHIP>_PYTHON` names it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from benchmarks.chips import CHIPS, interpreter


@pytest.fixture(scope="session", params=CHIPS)
def chip(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a chip whose tools are installed."""
    name: str = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(f"CROSSCHIP_{name.upper()}_PYTHON", interpreter(name))
        yield name
