"""Compilations, executors and tensors, called in every order up to four as a document says."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.apis.nnrt.programs import Code, device, done, tensor
from tests.apis.nnrt.test_running import X, compilation

from crosschip.apis import nnrt
from crosschip.apis.nnrt import (
    Conformance,
    NN_Tensor,
    NN_TensorDesc,
    OH_NN_DataType,
    OH_NN_PerformanceMode,
    OH_NN_Tensor,
    OH_NNCompilation,
    OH_NNExecutor,
    set_conformance,
)

OK, FAILED, WRONG, FORBIDDEN, OPEN = (
    Code.OH_NN_SUCCESS,
    Code.OH_NN_FAILED,
    Code.OH_NN_INVALID_PARAMETER,
    Code.OH_NN_OPERATION_FORBIDDEN,
    Code.OH_NN_DYNAMIC_SHAPE,
)
LENGTH = 4
LONG = 60.0


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """The log of thousands of refusals is of no use."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(params=Conformance, ids=lambda conformance: conformance.value)
def source(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether the source's behaviour holds."""
    set_conformance(request.param)
    yield request.param is Conformance.REFERENCE
    set_conformance(None)


def orders(steps: Mapping[str, Any], first: str) -> Iterator[tuple[str, ...]]:
    """The orders of calls that begin with one; shorter ones are what they begin with."""
    for rest in itertools.product(steps, repeat=LENGTH - 1):
        yield (first, *rest)


# Compilations.


@dataclass
class Compiling:
    """What is known of a compilation."""

    source: bool
    built: bool = False
    nowhere: bool = False
    mode: int = 0

    def setting(self) -> Code:
        return OK if self.source or not self.built else FORBIDDEN

    def device(self) -> Code:
        self.nowhere = self.nowhere and self.built
        return self.setting()

    def lost(self) -> Code:
        self.nowhere = self.nowhere or not self.built
        return self.setting()

    def strange(self) -> Code:
        if self.built and self.source:
            return WRONG
        self.mode = self.mode if self.built else 9
        return self.setting()

    def build(self) -> Code:
        if self.built:
            return WRONG if self.source else FORBIDDEN
        if self.mode:
            return WRONG
        if self.nowhere:
            return FAILED
        self.built = True
        return OK

    def export(self) -> Code:
        if not self.built:
            return WRONG
        return Code.OH_NN_UNSUPPORTED if self.source else OK

    def executor(self) -> Code:
        return OK if self.built else WRONG


def runs(made: OH_NNCompilation) -> Code:
    runner = nnrt.OH_NNExecutor_Construct(made)
    nnrt.OH_NNExecutor_Destroy(runner)
    return WRONG if runner is None else OK


MODE = OH_NN_PerformanceMode
COMPILING: dict[str, Callable[[OH_NNCompilation], Code]] = {
    "device": lambda c: nnrt.OH_NNCompilation_SetDevice(c, device()),
    "lost": lambda c: nnrt.OH_NNCompilation_SetDevice(c, 5),
    "strange": lambda c: nnrt.OH_NNCompilation_SetPerformanceMode(c, 9),  # type: ignore[arg-type]
    "build": nnrt.OH_NNCompilation_Build,
    "export": lambda c: nnrt.OH_NNCompilation_ExportCacheToBuffer(c)[0],
    "executor": runs,
}


@pytest.mark.parametrize("first", COMPILING)
def test_compilations(first: str, source: bool) -> None:
    for order in orders(COMPILING, first):
        made, known = compilation(2, 3), Compiling(source)
        for name in order:
            assert COMPILING[name](made) is getattr(known, name)(), f"{name} in {order}"
        nnrt.OH_NNCompilation_Destroy(made)
        assert COMPILING[order[-1]](made) is WRONG


# Executors.


@dataclass
class Executing:
    """What is known of an executor."""

    source: bool
    ended: bool = False
    has_run: bool = False
    told: bool = False
    given: set[str] = field(default_factory=set)

    def run(self) -> Code:
        self.has_run = True
        return OK

    def short(self) -> Code:
        return WRONG

    def done(self) -> Code:
        if self.source:
            return FORBIDDEN
        self.told = True
        return OK

    def later(self) -> Code:
        if self.source or not self.told:
            return FORBIDDEN
        self.has_run = True
        return OK

    def shape(self) -> Code:
        return OK

    def input(self) -> Code:
        self.given.add("input")
        return OK

    def output(self) -> Code:
        self.given.add("output")
        return OK

    def single(self) -> Code:
        if len(self.given) < 2:
            return WRONG
        self.has_run = True
        return OK

    def end(self) -> Code:
        self.ended = True
        return OK


Y = np.zeros((2, 3), np.float32)
TYPE = OH_NN_Tensor(OH_NN_DataType.OH_NN_FLOAT32, (2, 3))


class Runner:
    """An executor with tensors for its runs."""

    def __init__(self, made: OH_NNExecutor, x: NN_Tensor, y: NN_Tensor) -> None:
        self.made, self.x, self.y = made, x, y
        self.ended = threading.Event()

    def run(self) -> Code:
        return nnrt.OH_NNExecutor_RunSync(self.made, [self.x], [self.y])

    def short(self) -> Code:
        return nnrt.OH_NNExecutor_RunSync(self.made, [self.x], [])

    def done(self) -> Code:
        return nnrt.OH_NNExecutor_SetOnRunDone(self.made, lambda *told: self.ended.set())

    def later(self) -> Code:
        self.ended.clear()
        code = nnrt.OH_NNExecutor_RunAsync(self.made, [self.x], [self.y], 60000, "it")
        assert code or self.ended.wait(LONG)
        return code

    def shape(self) -> Code:
        return nnrt.OH_NNExecutor_GetOutputShape(self.made, 0)[0]

    def input(self) -> Code:
        return nnrt.OH_NNExecutor_SetInput(self.made, 0, TYPE, X)

    def output(self) -> Code:
        return nnrt.OH_NNExecutor_SetOutput(self.made, 0, Y)

    def single(self) -> Code:
        return nnrt.OH_NNExecutor_Run(self.made)

    def end(self) -> Code:
        nnrt.OH_NNExecutor_Destroy(self.made)
        return OK


EXECUTING = dict.fromkeys(
    ["run", "short", "done", "later", "shape", "input", "output", "single", "end"]
)


@pytest.mark.parametrize("first", EXECUTING)
def test_executors(first: str, source: bool) -> None:
    compiled = compilation(2, 3)
    done(nnrt.OH_NNCompilation_Build(compiled))
    x, y = tensor(X), tensor(Y)
    for order in orders(EXECUTING, first):
        made = nnrt.OH_NNExecutor_Construct(compiled)
        assert made is not None
        runner, known = Runner(made, x, y), Executing(source)
        for name in order:
            gone = known.ended and name != "end"
            expected = WRONG if gone else getattr(known, name)()
            assert getattr(runner, name)() is expected, f"{name} in {order}"
        runner.end()
    nnrt.OH_NNCompilation_Destroy(compiled)


# Descriptions, and tensors.


@dataclass
class Describing:
    """What is known of a description."""

    source: bool
    ended: bool = False
    typed: bool = False
    shape: tuple[int, ...] | None = None

    def type(self) -> Code:
        self.typed = True
        return OK

    def sized(self) -> Code:
        self.shape = (2, 3)
        return OK

    def open(self) -> Code:
        self.shape = (-1, 3)
        return OK

    def none(self) -> Code:
        return WRONG

    def count(self) -> Code:
        if self.shape is None:
            return WRONG
        return OPEN if -1 in self.shape else OK

    def bytes(self) -> Code:
        if self.source and self.shape is not None and -1 in self.shape:
            return OK
        return self.count() or (OK if self.typed else WRONG)

    def tensor(self) -> Code:
        return OK if self.typed and -1 not in (self.shape or ()) else WRONG

    def end(self) -> Code:
        self.ended = True
        return OK


def held(desc: NN_TensorDesc) -> Code:
    made = nnrt.OH_NNTensor_Create(device(), desc)
    return WRONG if made is None else nnrt.OH_NNTensor_Destroy(made)


DESCRIBING: dict[str, Callable[[NN_TensorDesc], Code]] = {
    "type": lambda d: nnrt.OH_NNTensorDesc_SetDataType(d, OH_NN_DataType.OH_NN_INT8),
    "sized": lambda d: nnrt.OH_NNTensorDesc_SetShape(d, (2, 3)),
    "open": lambda d: nnrt.OH_NNTensorDesc_SetShape(d, (-1, 3)),
    "none": lambda d: nnrt.OH_NNTensorDesc_SetShape(d, ()),
    "count": lambda d: nnrt.OH_NNTensorDesc_GetElementCount(d)[0],
    "bytes": lambda d: nnrt.OH_NNTensorDesc_GetByteSize(d)[0],
    "tensor": held,
    "end": nnrt.OH_NNTensorDesc_Destroy,
}


@pytest.mark.parametrize("first", DESCRIBING)
def test_descriptions(first: str, source: bool) -> None:
    for order in orders(DESCRIBING, first):
        made, known = nnrt.OH_NNTensorDesc_Create(), Describing(source)
        assert made is not None
        for name in order:
            expected = WRONG if known.ended else getattr(known, name)()
            assert DESCRIBING[name](made) is expected, f"{name} in {order}"


TENSOR: dict[str, Callable[[NN_Tensor], Code]] = {
    "size": lambda t: nnrt.OH_NNTensor_GetSize(t)[0],
    "offset": lambda t: nnrt.OH_NNTensor_GetOffset(t)[0],
    "file": lambda t: nnrt.OH_NNTensor_GetFd(t)[0],
    "buffer": lambda t: WRONG if nnrt.OH_NNTensor_GetDataBuffer(t) is None else OK,
    "described": lambda t: WRONG if nnrt.OH_NNTensor_GetTensorDesc(t) is None else OK,
    "end": nnrt.OH_NNTensor_Destroy,
}


@pytest.mark.parametrize("first", TENSOR)
def test_tensors(first: str) -> None:
    for order in orders(TENSOR, first):
        made = tensor(X)
        for place, name in enumerate(order):
            expected = WRONG if "end" in order[:place] else OK
            assert TENSOR[name](made) is expected, f"{name} in {order}"
        nnrt.OH_NNTensor_Destroy(made)
