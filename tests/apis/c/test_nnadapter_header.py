"""NNAdapter's header: its structures as compilers lay them out, its values and its functions.

What is asserted holds of NNAdapter's own header, too: `CROSSCHIP_NNADAPTER_HEADER=…/nnadapter.h`
has it compiled against that one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.apis.c.conftest import LANGUAGES
from tests.apis.c.declared import Declared

from crosschip.apis import nnadapter
from crosschip.apis.c.header import FOLDER

# Where gcc puts the members of NNAdapter's own header on a machine of 64 bits: offset and size.
OFFSETS = {
    "NNAdapterSymmPerLayerQuantParams": {"scale": (0, 4)},
    "NNAdapterSymmPerChannelQuantParams": {
        "channel_dim": (0, 4),
        "scale_count": (4, 4),
        "scales": (8, 8),
    },
    "NNAdapterAsymmPerLayerQuantParams": {"scale": (0, 4), "zero_point": (4, 4)},
    "NNAdapterOperandDimensionType": {
        "count": (0, 4),
        "data": (4, 32),
        "dynamic_count": (36, 4),
        "dynamic_data": (40, 256),
    },
    "NNAdapterOperandType": {
        "precision": (0, 4),
        "layout": (4, 4),
        "lifetime": (8, 4),
        "dimensions": (12, 296),
        "symm_per_layer_params": (312, 4),
        "symm_per_channel_params": (312, 16),
        "asymm_per_layer_params": (312, 8),
    },
}
SIZES = {
    "NNAdapterSymmPerLayerQuantParams": 4,
    "NNAdapterSymmPerChannelQuantParams": 16,
    "NNAdapterAsymmPerLayerQuantParams": 8,
    "NNAdapterOperandDimensionType": 296,
    "NNAdapterOperandType": 328,
}


DECLARED = Declared(["nnadapter.h"], nnadapter, OFFSETS, SIZES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_our_header(language: str, tmp_path: Path) -> None:
    DECLARED.compile(FOLDER / "nnadapter.h", language, tmp_path)


@pytest.mark.parametrize("language", LANGUAGES)
def test_their_header(language: str, tmp_path: Path) -> None:
    path = os.environ.get("CROSSCHIP_NNADAPTER_HEADER")
    if path is None:
        pytest.skip("CROSSCHIP_NNADAPTER_HEADER does not name NNAdapter's own header")
    DECLARED.compile(Path(path), language, tmp_path)


def test_no_structure_and_no_member_has_been_left_out() -> None:
    assert DECLARED.members() == {name: set(members) for name, members in OFFSETS.items()}
