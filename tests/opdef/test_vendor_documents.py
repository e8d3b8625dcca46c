"""Documents that break a rule as vendors' own do: read with a warning, refused if strict."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from tests.opdef.documents import CORPUS

from crosschip.ir import Array
from crosschip.opdef.custom.operator import CustomOperator
from crosschip.opdef.custom.package import Package
from crosschip.opdef.documents import parse, read, write
from crosschip.opdef.merging import merge_collections
from crosschip.opdef.problems import MOST, OpDefError

PATH = CORPUS / "vendor" / "lists_of_any_length.xml"
TEXT = PATH.read_text("utf-8")
PROBLEMS = [
    "15:13: Sharpen.shift: its default {0,..,0} leaves open how many values it has; write all of",
    "32:13: Sharpen.weights: its default [ 0.5, ..., 0.5 ] leaves open how many values it has; ",
    "41:13: Sharpen.stride: its default has 1 axes, but its rank is 2D",
]


def assert_are_those(problems: list[str]) -> None:
    assert len(problems) == len(PROBLEMS)
    for problem, expected in zip(problems, PROBLEMS, strict=True):
        assert problem.startswith(f"{PATH}:{expected}")


def test_it_is_read_with_warnings(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "crosschip"):
        document = read(PATH)
    assert_are_those([str(warning) for warning in document.warnings])
    assert_are_those([record.getMessage() for record in caplog.records])
    assert document.write(document.collection) == PATH.read_bytes()
    assert parse(write(document.collection)).collection == document.collection
    assert merge_collections([document.collection, document.collection]) == (document.collection,)


def test_it_is_refused_if_strict() -> None:
    with pytest.raises(OpDefError) as caught:
        read(PATH, strict=True)
    assert_are_those([str(problem) for problem in caught.value.problems])
    with pytest.raises(OpDefError, match="leaves open how many values"):
        Package.read(PATH, strict=True)


def test_the_numbers_must_fit_all_the_same() -> None:
    for default in ("{-1,..,-1}", "{0.5,..,0.5}"):
        text = TEXT.replace("{1, 1}", default)
        with pytest.raises(OpDefError, match=r"Sharpen\.stride: its default does not fit"):
            parse(text.encode())


@pytest.mark.parametrize("default", ["{0,..,1}", "{0,..,0]", "{0,.,0}", "{0,..}", "{a,..,a}"])
def test_another_list_with_dots_is_refused(default: str) -> None:
    text = TEXT.replace("{0,..,0}", default)
    with pytest.raises(OpDefError, match=r"Sharpen\.shift: its default does not fit"):
        parse(text.encode())


def test_a_scalar_has_no_list() -> None:
    for default in ("{1, 1}", "{1,..,1}"):
        text = TEXT.replace("<Rank>2D</Rank>", "<Rank>SCALAR</Rank>").replace("{1, 1}", default)
        with pytest.raises(OpDefError, match=r"Sharpen\.stride"):
            parse(text.encode())


def test_an_error_behind_many_warnings_is_found() -> None:
    begin = TEXT.index("            <Parameter>\n                <Name>stride")
    end = TEXT.index("            <SupportedBackend>")
    parameter = TEXT[begin:end]
    many = "".join(parameter.replace("stride", f"stride{n}") for n in range(2 * MOST))
    text = TEXT[:end] + many + TEXT[end:]
    assert len(parse(text.encode()).warnings) == MOST
    wrong = text[: text.rindex("{1, 1}")] + "{1, -1}" + text[text.rindex("{1, 1}") + 6 :]
    with pytest.raises(OpDefError, match="does not fit") as caught:
        parse(wrong.encode())
    assert len(caught.value.problems) == 1


def test_a_list_of_any_length_is_left_to_the_operator() -> None:
    package = Package.read(PATH)

    @package.defines("Sharpen")
    class Sharpen(CustomOperator):
        def reference(self, image: Array, shift: Array | None) -> Array:
            return image

        def infer_shape(self) -> Any:
            image: Any = self.operand("in[0]")
            return image.type.shape

    slots: dict[str, Any] = {slot.name: slot for slot in Sharpen.slots}
    assert slots["weights"].default is None
    assert slots["weights"].optional
    np.testing.assert_array_equal(slots["stride"].default, [1, 1])
