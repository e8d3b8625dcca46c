"""Every operator, in both formats, against what Paddle's documentation says it computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.importers.paddle import cases_of_images, cases_of_shapes, cases_of_values
from tests.importers.paddle.running import error, outputs

from crosschip.importers import paddle
from crosschip.importers.paddle import operators  # noqa: F401, fills the table
from crosschip.importers.paddle.dialect import COUNTERPARTS
from crosschip.importers.paddle.table import TABLE

CASES = cases_of_values.CASES | cases_of_shapes.CASES | cases_of_images.CASES


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("version", [2, 3])
def test_computes_what_paddle_does(name: str, version: int, tmp_path: Path) -> None:
    case = CASES[name]
    path = case.write_paddle2(tmp_path) if version == 2 else case.write_paddle3(tmp_path)
    found = outputs(paddle.load(path), case.inputs)
    assert len(found) == len(case.expected)
    for one, expected in zip(found, case.expected, strict=True):
        assert error(one, np.asarray(expected)) < 1e-6


def test_each_operator_of_the_dialect_is_imported() -> None:
    for counterpart in COUNTERPARTS.values():
        assert callable(TABLE[counterpart.type])


def test_each_operator_has_a_case() -> None:
    tested = {case.paddle3[0] for case in CASES.values()}
    constants = {"full", "full_int_array", "full_with_tensor", "shape64"}
    assert {name.removeprefix("pd_op.") for name in COUNTERPARTS} == tested | constants
