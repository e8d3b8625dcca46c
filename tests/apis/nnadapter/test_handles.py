"""The answers of NNAdapter's functions to handles that are none, and how they tell it."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest
from tests.apis.nnadapter.programs import (
    FLOAT32,
    Code,
    Op,
    Type,
    add,
    compilation,
    context,
    done,
    float32,
    given,
    new,
    read,
    relu,
    written,
    wrong,
)

from crosschip.apis import nnadapter
from crosschip.apis.nnadapter import (
    NNAdapterCompilation_destroy,
    NNAdapterCompilation_queryInputsAndOutputs,
    NNAdapterDevice_acquire,
    NNAdapterExecution_create,
    NNAdapterModel,
    NNAdapterModel_finish,
    NNAdapterModel_identifyInputsAndOutputs,
    last_error,
)


def test_the_last_error_is_the_threads_own() -> None:
    wrong(NNAdapterModel_finish(None), Code.NNADAPTER_INVALID_PARAMETER, "NNAdapterModel_finish")  # type: ignore[arg-type]
    texts: list[str] = []
    thread = threading.Thread(target=lambda: texts.append(last_error()))
    thread.start()
    thread.join()
    assert texts == [""]
    done(NNAdapterModel_finish(relu_unfinished()))
    assert "NNAdapterModel_finish" in last_error()


def relu_unfinished() -> NNAdapterModel:
    model = new()
    x, y = float32(model, 2), float32(model)
    add(model, Op.NNADAPTER_RELU, [x], y)
    done(NNAdapterModel_identifyInputsAndOutputs(model, [x], [y]))
    return model


HANDLES = {
    "NNAdapterDevice_getName": (),
    "NNAdapterDevice_getVendor": (),
    "NNAdapterDevice_getType": (),
    "NNAdapterDevice_getVersion": (),
    "NNAdapterModel_finish": (),
    "NNAdapterModel_addOperand": (Type(FLOAT32),),
    "NNAdapterModel_setOperandValue": (bytes(4), True),
    "NNAdapterModel_getOperandType": (),
    "NNAdapterModel_addOperation": (0, [], [None]),
    "NNAdapterModel_identifyInputsAndOutputs": ([], [None]),
    "NNAdapterModel_getSupportedOperations": (None,),
    "NNAdapterCompilation_finish": (),
    "NNAdapterCompilation_queryInputsAndOutputs": (),
    "NNAdapterExecution_create": (),
    "NNAdapterExecution_setInput": (0, None, read),
    "NNAdapterExecution_setOutput": (0, None, written),
    "NNAdapterExecution_compute": (),
}
"""Functions by name, with what follows their first argument, a handle."""


def foreign() -> dict[str, Any]:
    """Things that are no handle of a kind: nothing, other handles, other objects."""
    return {"nothing": None, "a number": 7, "text": "model", "the other kind": new()}


@pytest.mark.parametrize(("name", "kind"), list(itertools.product(HANDLES, foreign())))
def test_what_is_no_handle_is_refused(name: str, kind: str) -> None:
    handle = foreign()[kind]
    if kind == "the other kind" and name.startswith("NNAdapterModel_"):
        handle = given(NNAdapterDevice_acquire("builtin_device"))
    answer = getattr(nnadapter, name)(handle, *HANDLES[name])
    wrong(answer, Code.NNADAPTER_INVALID_PARAMETER, "is none")


@pytest.mark.parametrize(
    "name",
    [
        *("NNAdapterDevice_release", "NNAdapterContext_destroy", "NNAdapterModel_destroy"),
        *("NNAdapterCompilation_destroy", "NNAdapterExecution_destroy"),
    ],
)
def test_nothing_can_be_destroyed_and_nothing_twice(name: str) -> None:
    destroy = getattr(nnadapter, name)
    assert destroy(None) is None
    execution = given(NNAdapterExecution_create(compilation(relu(2), "builtin_device")))
    handles = {
        "NNAdapterDevice_release": given(NNAdapterDevice_acquire("builtin_device")),
        "NNAdapterContext_destroy": context("builtin_device"),
        "NNAdapterModel_destroy": new(),
        "NNAdapterCompilation_destroy": execution.compilation,
        "NNAdapterExecution_destroy": execution,
    }
    for _ in range(2):
        assert destroy(handles[name]) is None
    assert "has been destroyed" in last_error()
    assert destroy("nothing of the kind") is None


def test_places_for_types_are_counted() -> None:
    compiled = compilation(relu(2), "builtin_device")
    places = [Type(FLOAT32)] * 2
    answer = NNAdapterCompilation_queryInputsAndOutputs(compiled, places, places)
    wrong(answer, Code.NNADAPTER_INVALID_PARAMETER, "2 places for 1 types")
    NNAdapterCompilation_destroy(compiled)
