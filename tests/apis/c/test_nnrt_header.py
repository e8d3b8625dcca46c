"""NNRt's headers: their structures as compilers lay them out, their values and their functions.

What is asserted holds of NNRt's own headers, too: `CROSSCHIP_NNRT_HEADERS=…/neural_network_runtime`
has it compiled against those in that folder. They are C++, as an enumeration has a type.
"""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import pytest
from tests.apis.c.conftest import LANGUAGES
from tests.apis.c.declared import Declared

from crosschip.apis import nnrt
from crosschip.apis.c.header import FOLDER, Header

# Where gcc puts the members of the original headers on a machine of 64 bits: offset and size.
OFFSETS = {
    "OH_NN_UInt32Array": {"data": (0, 8), "size": (8, 4)},
    "OH_NN_QuantParam": {
        "quantCount": (0, 4),
        "numBits": (8, 8),
        "scale": (16, 8),
        "zeroPoint": (24, 8),
    },
    "OH_NN_Tensor": {
        "dataType": (0, 4),
        "dimensionCount": (4, 4),
        "dimensions": (8, 8),
        "quantParam": (16, 8),
        "type": (24, 4),
    },
    "OH_NN_Memory": {"data": (0, 8), "length": (8, 8)},
}
SIZES = {"OH_NN_UInt32Array": 16, "OH_NN_QuantParam": 32, "OH_NN_Tensor": 32, "OH_NN_Memory": 16}

PLACE = "neural_network_runtime"
NAMES = [f"{PLACE}/neural_network_{name}.h" for name in ("runtime_type", "core", "runtime")]
DECLARED = Declared(NAMES, nnrt, OFFSETS, SIZES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_our_headers(language: str, tmp_path: Path) -> None:
    DECLARED.compile(FOLDER / NAMES[-1], language, tmp_path)


@pytest.mark.parametrize("language", [name for name in LANGUAGES if "C++" in name])
def test_their_headers(language: str, tmp_path: Path) -> None:
    folder = os.environ.get("CROSSCHIP_NNRT_HEADERS")
    if folder is None:
        pytest.skip("CROSSCHIP_NNRT_HEADERS does not name the folder of NNRt's own headers")
    DECLARED.compile(Path(folder, "neural_network_runtime.h"), language, tmp_path)


def test_no_structure_and_no_member_has_been_left_out() -> None:
    assert DECLARED.members() == {name: set(members) for name, members in OFFSETS.items()}


def test_each_function_is_in_the_library_that_nnrt_has_it_in() -> None:
    core, runtime = (
        [function.name for function in Header(FOLDER / name).functions] for name in NAMES[1:]
    )
    assert (len(core), len(runtime)) == (50, 25)
    functions = {name for name in nnrt.__all__ if inspect.isfunction(getattr(nnrt, name))}
    assert {*core, *runtime} == {name for name in functions if name.startswith("OH_NN")}
