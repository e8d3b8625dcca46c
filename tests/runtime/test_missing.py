"""What a device lacks for models, in the order in which to add it."""

from __future__ import annotations

import numpy as np
from tests.modelling import DelegatingDevice, chain, float32, model_of

from crosschip.hal import Offer, Options
from crosschip.ir import Builder, Model, Operand
from crosschip.ops.standard.activation import Relu, Sigmoid
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.unary import Cos, Exp, Sin
from crosschip.runtime.placement.missing_operators import rank_missing_operators


def product(width: int) -> Model:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Exp, b.add(MatMul, x, b.constant(np.ones((4, width), np.float32))))

    return model_of(make, float32(2, 4))


def order(device: DelegatingDevice, *models: Model) -> list[str]:
    def ask(model: Model) -> Offer:
        return device.query(model, Options())

    return [entry.operator for entry in rank_missing_operators(models, ask)]


def test_arithmetic_comes_first_then_what_stands_beside_what_is_there() -> None:
    device = DelegatingDevice(declines=("MAT_MUL", "SIN", "COS", "EXP"))
    net = chain(Relu, Sigmoid, Sin, Cos)
    assert order(device, net, product(3)) == ["", "MAT_MUL", "EXP", "SIN", "COS"]


def test_shares_rise_to_all() -> None:
    device = DelegatingDevice(declines=("MAT_MUL", "EXP"))

    def ask(model: Model) -> Offer:
        return device.query(model, Options())

    models = [product(3), chain(Relu, Exp)]
    there, first, last = rank_missing_operators(models, ask)
    assert (there.share, there.taken, there.segments) == (0, 0.25, 3)
    assert (first.operator, first.operations, first.share) == ("MAT_MUL", 1, 1)
    assert first.reasons == ("MAT_MUL: not implemented",)
    assert (last.operator, last.operations) == ("EXP", 2)
    assert (last.share, last.taken, last.segments) == (1, 1, 2)


def test_nothing_is_missing() -> None:
    (there,) = rank_missing_operators(
        [chain(Relu)], lambda model: DelegatingDevice().query(model, Options())
    )
    assert (there.operator, there.share, there.taken) == ("", 1, 1)
