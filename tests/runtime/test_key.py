"""The key of a cache entry: everything that changes the program, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.modelling import DelegatingDevice, float32, model_of, python_path

from crosschip.hal import Capabilities, Kind, Options, Precision
from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    Model,
    Operand,
    Quantization,
    TensorType,
    symbol,
    unknown,
)
from crosschip.ops.standard.activation import LeakyRelu, Relu, Sigmoid
from crosschip.ops.standard.arithmetic import Add, Sub
from crosschip.ops.standard.quantization import Dequantize
from crosschip.runtime.cache.canonical import canonical
from crosschip.runtime.cache.key import cache_key
from crosschip.runtime.guard.devices import GuardedDevice

PLAIN = Options()
MATRIX = float32(2, 3)


class Adjustable(DelegatingDevice):
    """A device with settings, whose version and machine are whatever they are set to."""

    its_version = "1.0"
    its_machine = "a machine"

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return dict.fromkeys(("a", "b", "a=b", "a', 'b"), "a setting")

    @property
    def version(self) -> str:
        return self.its_version

    def capabilities(self) -> Capabilities:
        return Capabilities(tied_to=(self.its_machine,))


def key(
    model: Model, device: Adjustable | None = None, name: str = "npu", options: Options = PLAIN
) -> str:
    return cache_key(model, GuardedDevice(device or Adjustable(), name), options)


def weights() -> Array:
    return np.arange(6, dtype=np.float32).reshape(2, 3)


def network(
    type_: TensorType = MATRIX,
    *,
    array: Array | None = None,
    alpha: object = 0.1,
    names: str = "",
    flip: bool = False,
) -> Model:
    """The model that all others here differ from in one thing."""
    b = Builder(f"model{names}")
    x = b.input(f"x{names}", type_)
    kept = b.constant(weights() if array is None else array, f"w{names}")
    left = b.add(LeakyRelu, x, alpha, name=f"left{names}", outputs=[f"l{names}"])
    both = (kept, left) if flip else (left, kept)
    b.output(f"y{names}", b.add(Sub, *both, name=f"right{names}"))
    return b.build()


def test_a_key_is_the_same_each_time() -> None:
    assert key(network()) == key(network())
    assert len(key(network())) == 64
    assert set(key(network())) <= set("0123456789abcdef")


def test_a_key_is_the_same_in_another_process() -> None:
    program = (
        "from tests.runtime.test_key import key, network, open_ended\n"
        "print(key(network()), key(open_ended()))"
    )
    environment = {**os.environ, "PYTHONPATH": python_path(), "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [key(network()), key(open_ended())]


def open_ended() -> Model:
    return model_of(lambda b, x: b.add(Relu, x), float32(unknown(), symbol("N"), 3))


def test_names_do_not_count() -> None:
    assert key(network(names="!")) == key(network())


def test_how_weights_lie_in_memory_does_not_count() -> None:
    turned = np.asfortranarray(weights())
    view = np.repeat(weights(), 2, axis=1)[:, ::2]
    assert key(network(array=turned)) == key(network(array=view)) == key(network())


DIFFERENT: dict[str, Callable[[], Model]] = {
    "one weight": lambda: network(array=np.where(weights() == 5, np.float32(5.0000005), weights())),
    "the sign of a zero": lambda: network(array=np.where(weights() == 0, -weights(), weights())),
    "the shape of the weights": lambda: network(array=weights()[:1]),
    "a parameter": lambda: network(alpha=0.2),
    "a parameter, a little": lambda: network(alpha=np.nextafter(np.float32(0.1), np.float32(1))),
    "a parameter that is left out": lambda: network(alpha=None),
    "the order of inputs": lambda: network(flip=True),
    "the shape of an input": lambda: network(float32(1, 3)),
    "a size that is open": lambda: network(float32(symbol("N"), 3)),
    "another operator": lambda: model_of(
        lambda b, x: b.add(Add, b.add(LeakyRelu, x, 0.1), b.constant(weights())), float32(2, 3)
    ),
    "a weight that is an input": lambda: model_of(
        lambda b, x, w: b.add(Sub, b.add(LeakyRelu, x, 0.1), w), float32(2, 3), float32(2, 3)
    ),
    "one more output": lambda: model_of(
        lambda b, x: (y := b.add(Sub, b.add(LeakyRelu, x, 0.1), b.constant(weights())), y),
        float32(2, 3),
    ),
    "another output": lambda: model_of(
        lambda b, x: (y := b.add(LeakyRelu, x, 0.1), b.add(Sub, y, b.constant(weights())))[0],
        float32(2, 3),
    ),
}


@pytest.mark.parametrize("change", DIFFERENT)
def test_everything_else_about_the_model_counts(change: str) -> None:
    assert key(DIFFERENT[change]()) != key(network())


def test_every_change_gives_a_key_of_its_own() -> None:
    keys = {key(make()) for make in DIFFERENT.values()}
    assert len(keys) == len(DIFFERENT)


def test_the_element_type_counts_where_the_bytes_are_equal() -> None:
    models = [
        model_of(lambda b, t=t: b.constant(np.zeros(4, t.dtype)))
        for t in (ElementType.INT16, ElementType.UINT16, ElementType.FLOAT16, ElementType.BFLOAT16)
    ]
    assert len({key(model) for model in models}) == 4


def test_the_order_of_operations_counts() -> None:
    def make(swap: bool) -> Model:
        def build(b: Builder, x: Operand) -> tuple[Operand, ...]:
            pair = [Sigmoid, Relu] if swap else [Relu, Sigmoid]
            made = {operator: b.add(operator, x) for operator in pair}
            return made[Relu], made[Sigmoid]

        return model_of(build, float32(2))

    assert key(make(False)) != key(make(True))


def test_quantization_counts_to_the_last_digit() -> None:
    def make(scale: float, zero: int = 0) -> Model:
        type_ = TensorType(ElementType.INT8, (2,), Quantization((scale,), (zero,)))
        return model_of(lambda b, x: b.add(Dequantize, x), type_)

    next_scale = float(np.nextafter(np.float32(0.1), np.float32(1)))
    assert len({key(make(0.1)), key(make(next_scale)), key(make(0.1, 1))}) == 3


def test_quantization_of_every_channel_counts() -> None:
    def make(last: float) -> Model:
        scales = (0.1, 0.2, 0.3, 0.4, last)
        type_ = TensorType(ElementType.INT8, (5,), Quantization(scales, axis=0))
        return model_of(lambda b, x: b.add(Dequantize, x), type_)

    assert key(make(0.5)) != key(make(0.6))


def test_the_device_counts() -> None:
    keys = {key(network()), key(network(), name="gpu")}
    for attribute in ("its_version", "its_machine"):
        other = Adjustable()
        setattr(other, attribute, "another")
        keys.add(key(network(), other))
    assert len(keys) == 4


def test_the_settings_of_the_device_count() -> None:
    settings = [
        {},
        {"a": "1"},
        {"a": "2"},
        {"b": "1"},
        {"a": "1", "b": "1"},
        {"a": "b=c"},
        {"a=b": "c"},
        {"a": "1', 'b"},
    ]
    keys = {key(network(), Adjustable(properties)) for properties in settings}
    assert len(keys) == len(settings)
    order = Adjustable({"b": "1", "a": "1"})
    assert key(network(), order) == key(network(), Adjustable({"a": "1", "b": "1"}))


def test_the_options_count() -> None:
    options = [Options(p, t) for p in Precision for t in (None, 1, 2)]
    assert len({key(network(), options=each) for each in options}) == len(options)


@dataclass(frozen=True, slots=True)
class MoreOptions(Options):
    """Options as a later version may have them."""

    limits: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def test_an_option_that_is_new_counts() -> None:
    limits = [{}, {"x": (1, 2)}, {"x": (1, 3)}, {"y": (1, 2)}, {"x": (1, 2), "y": (1, 2)}]
    options = [PLAIN, *(MoreOptions(limits=each) for each in limits)]
    assert len({key(network(), options=each) for each in options}) == len(options)
    turned = MoreOptions(limits={"y": (1, 2), "x": (1, 2)})
    assert key(network(), options=turned) == key(network(), options=options[-1])


def test_different_values_have_different_texts() -> None:
    values: list[object] = [
        None, "None", "", b"", 0, False, "0", 0.0, -0.0, 1, True, 1.0, "1", float("inf"), [], [[]],
        [1, 2], [12], ["1, 2"], {}, {1: 2}, {"1": 2}, {1: [2]}, {1, 2}, Precision.FLOAT32,
        "Precision.FLOAT32", Kind.CPU, PLAIN, MoreOptions(), "a', 'b", ["a', 'b"], ["a", "b"],
    ]  # fmt: skip
    assert len({canonical(value) for value in values}) == len(values)


def test_the_order_of_what_has_none_does_not_count() -> None:
    assert canonical({"a": 1, "b": 2}) == canonical({"b": 2, "a": 1})
    assert canonical(set("abcdef")) == canonical(frozenset("fedcba"))


def test_a_value_without_a_text_has_no_key() -> None:
    with pytest.raises(TypeError, match="no cache key can be made of a object"):
        canonical({"x": [object()]})


def test_names_that_no_encoding_takes_have_keys() -> None:
    properties = [{"a": "\ud800"}, {"a": "\udc80"}, {"a": "\\ud800"}]
    assert len({key(network(), Adjustable(each)) for each in properties}) == 3


@pytest.mark.parametrize("place", [0, 2**20 - 1, 2**20, 5 * 2**20 + 3])
def test_every_block_of_large_weights_counts(place: int) -> None:
    array = np.zeros(5 * 2**20 + 4, np.uint8)
    before = key(model_of(lambda b: b.constant(array)))
    array[place] = 1
    assert key(model_of(lambda b: b.constant(array))) != before


def test_constants_without_elements_have_a_key() -> None:
    empty = model_of(lambda b: b.constant(np.zeros((0, 3), np.float32)))
    other = model_of(lambda b: b.constant(np.zeros((3, 0), np.float32)))
    assert key(empty) != key(other)
