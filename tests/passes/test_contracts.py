"""What every pass promises, on random models."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import Example, close, contents, examples, float32, model_of, outputs_of

from crosschip.ir import Model
from crosschip.passes import (
    DEFAULT,
    CancelTransposes,
    FoldConstants,
    FoldIntoWeights,
    Keeps,
    Pass,
    RemoveIdentities,
    RemoveUnused,
    Specialize,
    run,
    simplify,
)

PASSES = [*DEFAULT, Specialize({})]
each_pass = pytest.mark.parametrize("step", PASSES, ids=lambda step: type(step).__name__)


def assert_kept(example: Example, after: Model, keeps: Keeps) -> None:
    """Sound, with the same interface, and the same results."""
    before = example.model
    after.check()
    assert after.name == before.name
    for kept, was in ((after.inputs, before.inputs), (after.outputs, before.outputs)):
        assert list(kept) == list(was)
        for name, operand in was.items():
            assert kept[name].type.element_type is operand.type.element_type
    results = outputs_of(after, example.inputs)
    for name, array in outputs_of(before, example.inputs).items():
        if keeps is Keeps.VALUES:
            assert (results[name].dtype, results[name].shape) == (array.dtype, array.shape)
            assert results[name].tobytes() == array.tobytes()
        else:
            close(results[name], array, example)


@each_pass
@given(example=examples())
def test_a_pass_keeps_what_it_promises(step: Pass, example: Example) -> None:
    needed = run(example.model, [required() for required in step.requires])
    prepared = Example(needed, example.inputs, example.positive)
    assert_kept(prepared, step(needed), step.keeps)


@each_pass
@given(example=examples())
def test_a_pass_leaves_its_model_alone(step: Pass, example: Example) -> None:
    before = contents(example.model)
    step(example.model)
    assert contents(example.model) == before


@each_pass
@given(example=examples())
def test_a_pass_has_nothing_left_to_do_when_it_is_done(step: Pass, example: Example) -> None:
    once = step(example.model)
    assert contents(step(once)) == contents(once)


@given(
    examples(),
    st.permutations([p for p in DEFAULT if p.keeps is Keeps.VALUES and not p.requires]),
)
def test_passes_that_keep_values_do_so_in_any_order(example: Example, steps: list[Pass]) -> None:
    assert_kept(example, run(example.model, steps), Keeps.VALUES)


@given(examples())
def test_a_simplified_model_means_the_same(example: Example) -> None:
    simple = simplify(example.model)
    assert_kept(example, simple, Keeps.MEANING)
    assert len(simple.operations) <= len(example.model.operations)
    assert_kept(example, simplify(simple), Keeps.MEANING)


@given(examples())
def test_nothing_unused_is_left_after_simplifying(example: Example) -> None:
    simple = simplify(example.model)
    for operation in simple.operations:
        assert any(output in simple.uses for output in operation.outputs)


def test_every_pass_says_what_it_keeps_and_does() -> None:
    for step in PASSES:
        assert isinstance(step.keeps, Keeps)
        assert type(step).__doc__


def test_passes_run_in_order() -> None:
    seen: list[str] = []

    class Recorder(Pass):
        """Writes its name down."""

        keeps = Keeps.VALUES

        def __init__(self, name: str) -> None:
            self.name = name

        def __call__(self, model: Model) -> Model:
            seen.append(self.name)
            return model

    model = model_of(lambda b, x: x, float32(1))
    assert run(model, [Recorder("a"), Recorder("b"), Recorder("a")]) is model
    assert seen == ["a", "b", "a"]


def test_a_pass_must_come_after_what_it_requires() -> None:
    model = model_of(lambda b, x: x, float32(1))
    with pytest.raises(ValueError, match="FoldIntoWeights must come after FoldConstants"):
        run(model, [RemoveIdentities(), FoldIntoWeights(), FoldConstants()])
    run(model, [FoldConstants(), CancelTransposes(), FoldIntoWeights(), RemoveUnused()])


def test_the_usual_order_satisfies_what_each_pass_requires() -> None:
    done: set[type[Pass]] = set()
    for step in DEFAULT:
        assert set(step.requires) <= done
        done.add(type(step))
