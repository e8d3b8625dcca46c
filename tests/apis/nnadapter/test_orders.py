"""Calls in every order up to four, each held to a small account of what the document says.

A program calls functions on what it got last of each kind, `None` where it got nothing yet, and
what it has destroyed stays what it got last. The account knows of each thing only whether it is
there, and how far it is.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.apis.nnadapter.programs import FLOAT32, read, written

from crosschip.apis.nnadapter import (
    NNAdapterCompilation_create,
    NNAdapterCompilation_destroy,
    NNAdapterCompilation_finish,
    NNAdapterCompilation_queryInputsAndOutputs,
    NNAdapterContext_create,
    NNAdapterContext_destroy,
    NNAdapterDevice_acquire,
    NNAdapterDevice_getName,
    NNAdapterDevice_getType,
    NNAdapterDevice_getVendor,
    NNAdapterDevice_getVersion,
    NNAdapterDevice_release,
    NNAdapterExecution_compute,
    NNAdapterExecution_create,
    NNAdapterExecution_destroy,
    NNAdapterExecution_setInput,
    NNAdapterExecution_setOutput,
    NNAdapterModel_addOperand,
    NNAdapterModel_addOperation,
    NNAdapterModel_create,
    NNAdapterModel_destroy,
    NNAdapterModel_finish,
    NNAdapterModel_getOperandType,
    NNAdapterModel_getSupportedOperations,
    NNAdapterModel_identifyInputsAndOutputs,
    NNAdapterModel_setOperandValue,
    NNAdapterOperandType,
    NNAdapterOperationCode,
    NNAdapterResultCode,
)

OK = NNAdapterResultCode.NNADAPTER_NO_ERROR
WRONG = NNAdapterResultCode.NNADAPTER_INVALID_PARAMETER
MISSING = NNAdapterResultCode.NNADAPTER_DEVICE_NOT_FOUND
MISSHAPEN = NNAdapterResultCode.NNADAPTER_INVALID_DIMENSIONS

RELU = NNAdapterOperationCode.NNADAPTER_RELU
TYPE = NNAdapterOperandType.of(FLOAT32, (2, 3))
ONES = np.ones((2, 3), np.float32)

Answer = NNAdapterResultCode | None
"""A code, or `None` of a function that answers none."""


@dataclass
class Program:
    """The things that a program has got.

    Attributes:
        got: the last handle of each kind.
        operands: the operands of the last model.
    """

    got: dict[str, Any] = field(default_factory=dict)
    operands: list[Any] = field(default_factory=list)

    def keep(self, kind: str, answer: tuple[NNAdapterResultCode, Any]) -> NNAdapterResultCode:
        """Keep a handle if there is one."""
        code, value = answer
        if code is OK:
            self.got[kind] = value
        return code

    def last(self, kind: str) -> Any:
        """The last handle of a kind."""
        return self.got.get(kind)

    def operand(self, index: int) -> Any:
        """The first operand or the last."""
        return self.operands[index] if self.operands else None


@dataclass
class Account:
    """The things that are there, according to the document.

    Attributes:
        counts: how many things of each kind there have been; the last has this number.
        live: the kinds and numbers of those that have not been destroyed.
        finished: whether the last thing of a kind is finished.
        operands: for each operand of the model, whether it is a constant.
        relus: the operands that each operation reads and makes.
        ends: the operands that are the model's input and output.
        model_of: the number of the compilation's model.
        context_of: that of its context.
        compilation_of: the number of the execution's compilation.
        places: whether the input and the output of the execution are set.
    """

    counts: dict[str, int] = field(default_factory=dict)
    live: set[tuple[str, int]] = field(default_factory=set)
    finished: dict[str, bool] = field(default_factory=dict)
    operands: list[bool] = field(default_factory=list)
    relus: list[tuple[int, int]] = field(default_factory=list)
    ends: tuple[int, int] | None = None
    model_of: int = 0
    context_of: int = 0
    compilation_of: int = 0
    places: set[str] = field(default_factory=set)

    def made(self, kind: str) -> None:
        """There is a new thing."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.live.add((kind, self.counts[kind]))
        self.finished[kind] = False

    def has(self, kind: str) -> bool:
        """Tell whether the last thing of a kind is there."""
        return (kind, self.counts.get(kind, 0)) in self.live

    def drop(self, kind: str) -> None:
        """The last thing of a kind is destroyed."""
        self.live.discard((kind, self.counts.get(kind, 0)))

    @property
    def open(self) -> bool:
        """Tell whether the model can change."""
        return self.has("model") and not self.finished["model"]

    @property
    def sound(self) -> bool:
        """Tell whether the model is complete and keeps to every rule."""
        if self.ends is None:
            return False
        made = [output for _, output in self.relus]
        known = {self.ends[0], *made, *(i for i, c in enumerate(self.operands) if c)}
        free = all(not self.operands[output] and output != self.ends[0] for output in made)
        return (
            free
            and len(set(made)) == len(made)
            and all(source in known for source, _ in self.relus)
            and all(source != output for source, output in self.relus)
            and self.ends[1] in made
        )


@dataclass(frozen=True)
class Step:
    """A call, and what is to come of it.

    Attributes:
        call: makes it.
        expect: the code that the account says, which it then keeps up.
    """

    call: Callable[[Program], Answer]
    expect: Callable[[Account], Answer]


def needs(kind: str) -> Callable[[Account], Answer]:
    """A question about a thing, which must be there."""
    return lambda account: OK if account.has(kind) else WRONG


def drops(kind: str) -> Callable[[Account], Answer]:
    """A destruction, which answers nothing."""
    return lambda account: account.drop(kind)


# ---------------------------------------------------------------- devices and contexts


def acquired(account: Account) -> Answer:
    account.made("device")
    return OK


def connected(account: Account) -> Answer:
    if not account.has("device"):
        return WRONG
    account.made("context")
    return OK


def connect(program: Program) -> Answer:
    return program.keep("context", NNAdapterContext_create([program.last("device")], None, None))


DEVICES = {
    "acquire": Step(
        lambda p: p.keep("device", NNAdapterDevice_acquire("builtin_device")), acquired
    ),
    "acquire another": Step(
        lambda p: p.keep("device", NNAdapterDevice_acquire("huawei_kirin_npu")), lambda a: MISSING
    ),
    "acquire nothing": Step(
        lambda p: p.keep("device", NNAdapterDevice_acquire(None)),  # type: ignore[arg-type]
        lambda a: WRONG,
    ),
    "name": Step(lambda p: NNAdapterDevice_getName(p.last("device"))[0], needs("device")),
    "vendor": Step(lambda p: NNAdapterDevice_getVendor(p.last("device"))[0], needs("device")),
    "type": Step(lambda p: NNAdapterDevice_getType(p.last("device"))[0], needs("device")),
    "version": Step(lambda p: NNAdapterDevice_getVersion(p.last("device"))[0], needs("device")),
    "release": Step(lambda p: NNAdapterDevice_release(p.last("device")), drops("device")),
    "connect": Step(connect, connected),
    "connect nothing": Step(
        lambda p: p.keep("context", NNAdapterContext_create([], None, None)), lambda a: WRONG
    ),
    "disconnect": Step(lambda p: NNAdapterContext_destroy(p.last("context")), drops("context")),
}

# ---------------------------------------------------------------- models


def create(program: Program) -> Answer:
    program.operands.clear()
    return program.keep("model", NNAdapterModel_create())


def created(account: Account) -> Answer:
    account.made("model")
    account.operands, account.relus, account.ends = [], [], None
    return OK


def add(program: Program) -> Answer:
    code, operand = NNAdapterModel_addOperand(program.last("model"), TYPE)
    program.operands += [operand] if code is OK else []
    return code


def added(account: Account) -> Answer:
    if not account.open:
        return WRONG
    account.operands.append(False)
    return OK


def valued(account: Account) -> Answer:
    first_is_end = account.ends is not None and 0 in account.ends
    if not account.open or not account.operands or first_is_end:
        return WRONG
    account.operands[0] = True
    return OK


def operate(program: Program) -> Answer:
    ends = program.operand(0), program.operand(-1)
    return NNAdapterModel_addOperation(program.last("model"), RELU, ends[:1], ends[1:])[0]


def operated(account: Account) -> Answer:
    if not account.open or not account.operands:
        return WRONG
    account.relus.append((0, len(account.operands) - 1))
    return OK


def identify(program: Program) -> Answer:
    ends = [program.operand(0)], [program.operand(-1)]
    return NNAdapterModel_identifyInputsAndOutputs(program.last("model"), *ends)


def identified(account: Account) -> Answer:
    last = len(account.operands) - 1
    if not account.open or last < 1 or account.operands[0] or account.operands[last]:
        return WRONG
    account.ends = (0, last)
    return OK


def completed(account: Account) -> Answer:
    if not account.open or not account.sound:
        return WRONG
    account.finished["model"] = True
    return OK


def typed(account: Account) -> Answer:
    return OK if account.has("model") and account.operands else WRONG


def asked(account: Account) -> Answer:
    ready = account.has("model") and account.finished["model"] and account.has("context")
    return OK if ready else WRONG


MODELS = {
    "create": Step(create, created),
    "add": Step(add, added),
    "add nothing": Step(
        lambda p: NNAdapterModel_addOperand(p.last("model"), None)[0],  # type: ignore[arg-type]
        lambda a: WRONG,
    ),
    "value": Step(lambda p: NNAdapterModel_setOperandValue(p.operand(0), ONES, True), valued),
    "type of": Step(lambda p: NNAdapterModel_getOperandType(p.operand(-1))[0], typed),
    "operate": Step(operate, operated),
    "identify": Step(identify, identified),
    "finish": Step(lambda p: NNAdapterModel_finish(p.last("model")), completed),
    "destroy": Step(lambda p: NNAdapterModel_destroy(p.last("model")), drops("model")),
}

# ---------------------------------------------------------------- compilations


def compiling(program: Program) -> Answer:
    ends = program.last("model"), None, None, None, program.last("context")
    return program.keep("compilation", NNAdapterCompilation_create(*ends))


def begun(account: Account) -> Answer:
    if not account.has("context") or not account.has("model") or not account.finished["model"]:
        return WRONG
    account.made("compilation")
    account.model_of, account.context_of = account.counts["model"], account.counts["context"]
    return OK


def compiled(account: Account) -> Answer:
    sources = {("model", account.model_of), ("context", account.context_of)}
    if not account.has("compilation") or account.finished["compilation"]:
        return WRONG
    if not sources <= account.live:
        return WRONG
    account.finished["compilation"] = True
    return OK


def is_compiled(account: Account) -> Answer:
    return OK if account.has("compilation") and account.finished["compilation"] else WRONG


COMPILATIONS = {
    "create": Step(compiling, begun),
    "finish": Step(lambda p: NNAdapterCompilation_finish(p.last("compilation")), compiled),
    "query": Step(
        lambda p: NNAdapterCompilation_queryInputsAndOutputs(p.last("compilation"))[0], is_compiled
    ),
    "query too much": Step(
        lambda p: NNAdapterCompilation_queryInputsAndOutputs(
            p.last("compilation"), [TYPE, TYPE], [TYPE]
        )[0],
        lambda a: WRONG,
    ),
    "supported": Step(
        lambda p: NNAdapterModel_getSupportedOperations(p.last("model"), p.last("context"))[0],
        asked,
    ),
    "destroy": Step(
        lambda p: NNAdapterCompilation_destroy(p.last("compilation")), drops("compilation")
    ),
    "destroy the model": Step(lambda p: NNAdapterModel_destroy(p.last("model")), drops("model")),
    "disconnect": DEVICES["disconnect"],
}

# ---------------------------------------------------------------- executions


def executing(program: Program) -> Answer:
    return program.keep("execution", NNAdapterExecution_create(program.last("compilation")))


def planned(account: Account) -> Answer:
    if is_compiled(account) is not OK:
        return WRONG
    account.made("execution")
    account.compilation_of = account.counts["compilation"]
    account.places = set()
    return OK


def runs(account: Account) -> bool:
    return account.has("execution") and ("compilation", account.compilation_of) in account.live


def placing(place: str) -> Callable[[Account], Answer]:
    def placed(account: Account) -> Answer:
        if not runs(account):
            return WRONG
        account.places.add(place)
        account.places -= {"misshapen"} if place == "input" else set()
        return OK

    return placed


def misplaced(account: Account) -> Answer:
    if not runs(account):
        return WRONG
    account.places |= {"input", "misshapen"}
    return OK


def computed(account: Account) -> Answer:
    if not runs(account) or not {"input", "output"} <= account.places:
        return WRONG
    return MISSHAPEN if "misshapen" in account.places else OK


def set_input(array: Any) -> Callable[[Program], Answer]:
    return lambda p: NNAdapterExecution_setInput(p.last("execution"), 0, array, read)


EXECUTIONS = {
    "create": Step(executing, planned),
    "input": Step(set_input(ONES), placing("input")),
    "input of another shape": Step(set_input(np.ones((3, 2), np.float32)), misplaced),
    "input 1": Step(
        lambda p: NNAdapterExecution_setInput(p.last("execution"), 1, ONES, read), lambda a: WRONG
    ),
    "output": Step(
        lambda p: NNAdapterExecution_setOutput(p.last("execution"), 0, [], written),
        placing("output"),
    ),
    "output nowhere": Step(
        lambda p: NNAdapterExecution_setOutput(
            p.last("execution"),
            0,
            [],
            None,  # type: ignore[arg-type]
        ),
        lambda a: WRONG,
    ),
    "compute": Step(lambda p: NNAdapterExecution_compute(p.last("execution")), computed),
    "destroy": Step(lambda p: NNAdapterExecution_destroy(p.last("execution")), drops("execution")),
    "destroy the compilation": COMPILATIONS["destroy"],
}

# ---------------------------------------------------------------- all of them

BUILDING = ("create", "add", "add", "operate", "identify")
EVERY: Mapping[str, Step] = {
    f"{kind}: {name}": step
    for kind, steps in (
        ("devices", DEVICES),
        ("models", MODELS),
        ("compilations", COMPILATIONS),
        ("executions", EXECUTIONS),
    )
    for name, step in steps.items()
}
CONNECTED = ("devices: acquire", "devices: connect")
FINISHED = (*CONNECTED, *(f"models: {name}" for name in (*BUILDING, "finish")))
COMPILED = (*FINISHED, "compilations: create", "compilations: finish")
# What makes what was called first unfit for another order.
SPENT = {
    "compilations: destroy the model",
    "compilations: disconnect",
    "executions: destroy the compilation",
}
# What is called once, what is called before each order, and what is called in every order.
MACHINES: Mapping[str, tuple[Sequence[str], Sequence[str], str]] = {
    "devices": ((), (), "devices"),
    "models": ((), (), "models"),
    "models that are built": ((), [f"models: {name}" for name in BUILDING], "models"),
    "compilations": (FINISHED, (), "compilations"),
    "executions": (COMPILED, (), "executions"),
    "executions that are there": (
        *(COMPILED, ("executions: create", "executions: input")),
        "executions",
    ),
}


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """The log of tens of thousands of refusals is of no use."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "first"),
    [
        (one, name)
        for one, (*_, kind) in MACHINES.items()
        for name in EVERY
        if name.startswith(kind)
    ],
)
def test_every_order_answers_as_documented(machine: str, first: str) -> None:
    before, lead, kind = MACHINES[machine]
    names = [name for name in EVERY if name.startswith(kind)]
    start = None
    for rest in itertools.product(names, repeat=3):
        order = (*lead, first, *rest)
        start = start or follow(before, (Program(), Account()), before)
        follow(order, deepcopied(start), (*before, *order))
        if not SPENT.isdisjoint(order):
            start = None


Start = tuple[Program, Account]


def follow(names: Sequence[str], start: Start, told: Sequence[str]) -> Start:
    """Make calls, and hold each code against the account; shorter orders are their beginnings."""
    program, account = start
    for name in names:
        step = EVERY[name]
        found, wanted = step.call(program), step.expect(account)
        assert found is wanted, f"{name} in: {', then '.join(told)}"
    return start


def deepcopied(start: Start) -> Start:
    """The same handles, and an account of its own."""
    program, account = start
    return Program(dict(program.got), list(program.operands)), deepcopy(account)


@pytest.mark.parametrize("first", EVERY)
def test_any_two_functions_in_any_order(first: str) -> None:
    """From nothing, for functions of all kinds."""
    for second in EVERY:
        follow((first, second), (Program(), Account()), (first, second))
