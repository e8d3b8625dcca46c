"""Verification finds the pass that broke a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field

import numpy as np
import pytest
from tests.modelling import asks, float32, model_of

from crosschip.hal import YES
from crosschip.ir import (
    Builder,
    ElementType,
    InputError,
    Model,
    ModelError,
    Operand,
    Quantization,
    TensorType,
    constant,
    symbol,
)
from crosschip.ops.standard.activation import Relu, Sigmoid
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.conversion import Assign
from crosschip.ops.standard.layout import Transpose
from crosschip.passes import (
    DEFAULT,
    Pass,
    RemoveUnused,
    Specialize,
    run,
    simplify,
    verified,
    verifying,
)
from crosschip.passes.rewriter import Rewriter
from crosschip.runtime.placement.placement import place

HALVES = Quantization((0.5,))
QUANTIZED = TensorType(ElementType.INT8, (2, 3), HALVES)


@dataclass(frozen=True)
class Breaking(Pass):
    """A pass that applies a given function."""

    what: str
    rewriting: Callable[[Model], Model] = field(repr=False)

    def rewrite(self, model: Model) -> Model:
        return self.rewriting(model)


def network() -> Model:
    def make(b: Builder, x: Operand, q: Operand) -> tuple[Operand, ...]:
        return b.add(Sigmoid, b.add(Relu, x, name="first"), name="last"), b.add(Assign, q)

    return model_of(make, float32(symbol("N"), 3), QUANTIZED, name="net")


def changed(
    model: Model,
    *,
    inputs: dict[str, Operand] | None = None,
    operations: slice = slice(None),
    outputs: dict[str, Operand] | None = None,
) -> Model:
    return Model(
        model.name,
        model.inputs if inputs is None else inputs,
        model.operations[operations],
        model.outputs if outputs is None else outputs,
    )


def named_alike(model: Model) -> Model:
    first, last, *rest = model.operations
    again = Sigmoid(first.name, last.inputs, last.outputs)
    return Model(model.name, model.inputs, [first, again, *rest], model.outputs)


def retyped(model: Model, type_: TensorType) -> Model:
    """Return the model with another declared type of the last operation's output."""
    *rest, last = model.operations
    made = Operand("retyped", type_)
    operations = [*rest, last.with_outputs((made,))]
    return Model(model.name, model.inputs, operations, {**model.outputs, "y1": made})


def requantized(model: Model) -> Model:
    """Return the model with a valid last operation that computes other integers."""
    *rest, last = model.operations
    other = Quantization((0.7,))
    made = Operand("q", TensorType(ElementType.INT8, (2, 3), other))
    operation = Assign(last.name, last.inputs, (made,), (other,))
    return Model(model.name, model.inputs, [*rest, operation], {**model.outputs, "y1": made})


BREAKING: dict[str, tuple[Callable[[Model], Model], str]] = {
    "an order that cannot run": (
        lambda m: Model(m.name, m.inputs, reversed(m.operations), m.outputs),
        "SIGMOID 'last': input reads 'first', which nothing before it makes",
    ),
    "an operation too few": (
        lambda m: changed(m, operations=slice(1, None)),
        "SIGMOID 'last': input reads 'first', which nothing before it makes",
    ),
    "two of one name": (named_alike, "SIGMOID 'first': RELU before it has the same name"),
    "another type": (
        lambda m: retyped(m, TensorType(ElementType.INT8, (2, 3))),
        r"ASSIGN 'assign_0': 'retyped' is declared as int8\[2, 3\], but the operator makes",
    ),
    "an output too few": (
        lambda m: changed(m, outputs={"y0": m.outputs["y0"]}),
        r"the outputs are \['y0'\], but were \['y0', 'y1'\]",
    ),
    "another order of outputs": (
        lambda m: changed(m, outputs=dict(reversed(list(m.outputs.items())))),
        r"the outputs are \['y1', 'y0'\], but were \['y0', 'y1'\]",
    ),
    "an input too many": (
        lambda m: changed(m, inputs={**m.inputs, "more": Operand("more", QUANTIZED)}),
        r"the inputs are \['x0', 'x1', 'more'\], but were \['x0', 'x1'\]",
    ),
    "another quantization of an output": (
        requantized,
        r"output 'y1' is int8\[2, 3\] quantized\(scale 0.7\), but was int8\[2, 3\] quantized\(",
    ),
    "another element type of an output": (
        lambda m: changed(m, outputs={**m.outputs, "y1": m.outputs["y0"]}),
        r"output 'y1' is float32\[N, 3\], but was int8\[2, 3\] quantized\(scale 0.5\)",
    ),
    "an output of less known sizes": (
        lambda m: retyped(m, TensorType(ElementType.INT8, (symbol("K"), 3), HALVES)),
        r"output 'y1' is int8\[K, 3\] quantized\(scale 0.5\), but was int8\[2, 3\] quantized\(",
    ),
}


@pytest.mark.parametrize("kind", BREAKING)
def test_a_pass_that_breaks_its_promise_is_named(kind: str) -> None:
    rewriting, message = BREAKING[kind]
    step = Breaking("it", rewriting)
    with verified(), pytest.raises(ModelError, match=message) as raised:
        run(network(), [*DEFAULT[:1], step])
    assert str(raised.value).startswith("Breaking(what='it') broke 'net': ")


@pytest.mark.parametrize("kind", BREAKING)
def test_nothing_is_checked_unless_it_is_asked_for(kind: str) -> None:
    with verified(on=False):
        run(network(), [Breaking("it", BREAKING[kind][0])])


def test_the_promise_of_one_pass_is_checked_too() -> None:
    @dataclass(frozen=True)
    class Lazy(RemoveUnused):
        """A pass that removes nothing."""

        def rewrite(self, model: Model) -> Model:
            return changed(model)

    def make(b: Builder, x: Operand) -> Operand:
        b.add(Relu, x, name="dead")
        return b.add(Sigmoid, x)

    with verified(), pytest.raises(ModelError, match=r"Lazy\(\) broke 'model': RELU 'dead' is not"):
        run(model_of(make, float32(2)), [Lazy()])


def test_what_a_placement_makes_is_checked_too() -> None:
    with verified(), pytest.raises(ModelError, match="has the same name"):
        place(named_alike(network()), {"any": asks(lambda _: YES)})


@pytest.mark.parametrize(
    ("value", "wanted"), [("1", True), ("0", False), ("", False), (None, False)]
)
def test_the_environment_says_whether_to_verify(
    value: str | None, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CROSSCHIP_VERIFY")
    if value is not None:
        monkeypatch.setenv("CROSSCHIP_VERIFY", value)
    assert verifying() is wanted
    with verified():
        assert verifying()
        with verified(on=False):
            assert not verifying()
        assert verifying()
    assert verifying() is wanted


def test_what_a_pass_requires_is_checked_before_it_runs() -> None:
    with verified(on=False), pytest.raises(InputError, match="the model has no input 'z'"):
        run(network(), [Specialize({"z": (1,)})])


def test_a_pass_is_frozen_data_that_can_be_printed() -> None:
    assert str([*DEFAULT[:2], Specialize({"x": [1, 3]})]) == (
        "[FoldConstants(), ResolveControlFlow(), Specialize(shapes={'x': (1, 3)}, sizes={})]"
    )
    assert Specialize({"x": [1, 3]}) == Specialize({"x": (1, 3)}) != Specialize({})
    assert len({DEFAULT[0], type(DEFAULT[0])(), Specialize({})}) == 2
    with pytest.raises(FrozenInstanceError):
        Specialize({}).shapes = {}  # type: ignore[misc]  # that is the point


def test_a_model_with_nothing_to_do_is_the_same_afterwards() -> None:
    model = model_of(lambda b, x: b.add(Relu, x), float32(symbol("N")))
    assert simplify(model) is model


def test_types_of_what_a_rewrite_makes_are_inferred() -> None:
    model = model_of(lambda b, x: b.add(Mul, x, x), TensorType(ElementType.FLOAT32, None))
    (operation,) = model.operations
    rewriter = Rewriter(model)
    value = constant(np.ones((2, 3), np.float32), "ones")
    rewriter.emit(operation.with_inputs((value, value, None)))
    after = rewriter.finish()
    assert after.outputs["y0"].type == float32(2, 3)
    after.verify()


def test_a_rewrite_cannot_make_something_else() -> None:
    model = model_of(lambda b, x: b.add(Add, x, x), float32(2, 3))
    (operation,) = model.operations
    rewriter = Rewriter(model)
    value = constant(np.ones((2, 3), np.float64), "wide")
    with pytest.raises(ModelError, match=r"'add_0' is float32\[2, 3\], but was to become float64"):
        rewriter.emit(operation.with_inputs((value, value, None)))
    with pytest.raises(ModelError, match=r"'add_0': ADD\.input1: is required"):
        rewriter.emit(operation.with_inputs((value, None, None)))


def test_what_took_the_place_of_others_is_used_as_often_as_they() -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        once = b.add(Relu, x)
        same = b.add(Assign, once)
        return b.add(Transpose, same, (1, 0)), b.add(Sigmoid, same)

    model = model_of(make, float32(2, 3))
    rewriter = Rewriter(model)
    relu, assign, *_ = model.operations
    rewriter.keep(relu)
    assert rewriter.used_once(relu.outputs[0])
    rewriter.replace(assign.outputs[0], relu.outputs[0])
    assert not rewriter.used_once(relu.outputs[0])
