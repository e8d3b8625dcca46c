"""Packages of operators: who wins where names meet, and what of them is in cache keys."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.opdef.custom.documents import LIKE_X, made, package_of, setting, taken

import crosschip as cc
from crosschip import opdef
from crosschip.ir import Array, InputError, ModelFileError, UnsupportedError
from crosschip.ops import packages


class Doubled(opdef.CustomOperator):
    """Twice its input, which no built-in operator of these names computes."""

    def reference(self, X: Array) -> Array:
        return X * 2


@pytest.fixture
def install(tmp_path: Path) -> Iterator[Callable[..., opdef.Package]]:
    """Makes the package of one operator known to this process."""
    known: list[opdef.Package] = []

    def make(
        *tensors: Any, base: type[opdef.CustomOperator] = Doubled, **more: Any
    ) -> opdef.Package:
        folder = Path(mkdtemp(dir=tmp_path))
        package = package_of(folder, *(tensors or (taken(), LIKE_X)), **more)
        package.defines(more.get("name", "Try"))(type("Try", (base,), {"__module__": __name__}))
        package.register()
        known.append(package)
        return package

    yield make
    for package in known:
        package.unregister()


def model(operator: str, domain: str = "", outputs: int = 1, **attributes: Any) -> onnx.ModelProto:
    names = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(operator, ["x"], names, domain=domain, **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("example", 1)]
    graph = helper.make_graph([node], "one", [x], made)
    return helper.make_model(graph, opset_imports=opsets)


def types(source: Any) -> list[str]:
    return [operation.type for operation in cc.load(source).operations]


def test_an_operator_is_imported_from_its_domain(install: Any) -> None:
    install(name="Relu")
    assert types(model("Relu", "example")) == ["example.Relu"]
    assert types(model("Relu")) == ["RELU"]


def test_one_that_overrides_takes_the_place_of_the_frameworks(install: Any) -> None:
    install(name="Relu", overrides=True)
    assert types(model("Relu")) == ["example.Relu"]


def test_one_of_the_name_of_a_standard_operator_takes_its_place(install: Any) -> None:
    install(taken("input"), made("Out", "shape(Out) == shape(input)"), base=Standard,
            name="RELU", overrides=True)  # fmt: skip
    loaded = cc.load(model("Relu"))
    assert [operation.type for operation in loaded.operations] == ["example.RELU"]
    assert [o.name for o in loaded.outputs.values()] == ["y0"]
    loaded.verify()
    x = np.array([-1, 0, 2], np.float32)
    assert cc.compile(loaded, ["reference"], cache=False)(x).tolist() == [-2, 0, 4]


class Standard(opdef.CustomOperator):
    def reference(self, input: Array) -> Array:
        return input * 2


def test_one_that_cannot_say_what_the_standard_operator_does_is_refused(install: Any) -> None:
    install(taken("input"), made("Out", "shape(Out) == shape(input)"), base=Standard,
            name="LEAKY_RELU", overrides=True)  # fmt: skip
    with pytest.raises(UnsupportedError, match=r"LEAKY_RELU .*takes its place, but has no 'alpha'"):
        cc.load(model("LeakyRelu", alpha=0.3))


def test_a_function_of_the_model_gives_way_to_a_package(install: Any) -> None:
    """As an engine prefers its own kernel to the body that a model brings along."""
    proto = model("Try", "example")
    body = helper.make_node("Neg", ["x"], ["y"])
    opsets = [helper.make_opsetid("", 17)]
    proto.functions.append(helper.make_function("example", "Try", ["x"], ["y"], [body], opsets, []))
    assert types(proto) == ["NEG"]
    install()
    assert types(proto) == ["example.Try"]


@pytest.mark.parametrize(
    ("tensors", "attributes", "message"),
    [
        ((taken(), LIKE_X), {"more": 1}, "attribute 'more' is not known"),
        ((taken(), LIKE_X, setting("p")), {}, "p: is required"),
        ((taken(), LIKE_X, setting("p")), {"p": 0.5}, "p: 0.5 is not of int32"),
        ((taken(), LIKE_X, setting("p", "p > 3")), {"p": 2}, "breaks the constraint 'p > 3'"),
        ((taken("X", "rank(X) == 2"), LIKE_X), {}, "breaks the constraint"),
    ],
)
def test_a_node_that_breaks_the_definition_is_refused(
    tensors: Any, attributes: Any, message: str, install: Any
) -> None:
    install(*tensors)
    with pytest.raises((ModelFileError, UnsupportedError), match=message):
        cc.load(model("Try", "example", **attributes))


def test_a_node_with_more_outputs_than_the_definition_is_refused(install: Any) -> None:
    install()
    with pytest.raises(ModelFileError, match=r"names 2 outputs"):
        cc.load(model("Try", "example", outputs=2))


@pytest.mark.parametrize(("count", "many", "has_last"), [(1, 1, False), (2, 1, True), (4, 3, True)])
def test_many_inputs_before_one_that_may_be_left_out(
    count: int, many: int, has_last: bool, install: Any
) -> None:
    class Mixed(opdef.CustomOperator):
        def reference(self, parts: list[Array], last: Array | None) -> Array:
            return np.sum(parts, axis=0) if last is None else last

    parts, last = taken("parts", repeated=True), taken("last", mandatory=False)
    install(parts, last, made("Out", "shape(Out) == shape(parts)"), base=Mixed)
    proto = model("Try", "example")
    proto.graph.node[0].input[:] = ["x"] * count
    (operation,) = cc.load(proto).operations
    filled = [slot.name for slot, _ in operation.filled()]  # type: ignore[attr-defined]
    assert filled == ["parts"] * many + ["last"] * has_last


def test_two_packages_with_one_operator_are_refused(install: Any) -> None:
    install()
    with pytest.raises(InputError, match=r"two operators 'example\.Try', from the packages"):
        install(package="Others")
    install(package="More", domain="other")
    assert set(packages.packages()) >= {"More", "Tries"}
    with pytest.raises(InputError, match="two operators called 'Try', in the packages More and"):
        packages.operator_titled("Try")


def test_a_package_that_is_registered_again_is_replaced(install: Any) -> None:
    first, second = install(), install()
    assert packages.packages()["Tries"] is second
    assert first is not second


def test_an_operator_that_comes_later_is_known_too(tmp_path: Path) -> None:
    package = package_of(tmp_path, taken(), LIKE_X)
    package.register()
    try:
        assert packages.operator_titled("Try") is None
        operator = package.defines("Try")(Doubled)
        assert packages.operator_titled("Try") is operator
        assert types(model("Try", "example")) == ["example.Try"]
    finally:
        package.unregister()
    assert packages.operator_titled("Try") is None


def test_the_code_is_in_the_cache_key(install: Any, tmp_path: Path) -> None:
    class Tripled(opdef.CustomOperator):
        def reference(self, X: Array) -> Array:
            return X * 3

    x = np.ones(3, np.float32)
    found = []
    for base in (Doubled, Tripled, Doubled):
        install(base=base)
        compiled = cc.compile(model("Try", "example"), ["reference"], cache=tmp_path / "cache")
        found.append((compiled.report.cache, compiled(x)[0]))
    assert found == [("miss", 2), ("miss", 3), ("hit", 2)]


def test_an_operator_derived_from_another_has_a_code_of_its_own(
    install: Any, tmp_path: Path
) -> None:
    first = install().operators["example.Try"]
    assert first.code()
    second = install(base=first, package="Others", domain="other").operators["other.Try"]
    assert second.code() != first.code()


def test_a_function_for_a_device_is_in_the_code(tmp_path: Path) -> None:
    """Also one that stands in no file, which comes after the code has been asked for."""
    package = package_of(tmp_path, taken(), LIKE_X)
    written = type("Try", (Doubled,), {"__module__": "nowhere"})
    operator: type[opdef.CustomOperator] = package.defines("Try")(written)
    codes = [operator.code()]
    for factor in ("2", "3", "2"):
        scope: dict[str, Any] = {}
        exec(f"def convert(g, op): return g.add('Mul', g[op.X], {factor})", scope)
        package.converts("nochip", operator)(scope["convert"])
        codes.append(operator.code())
    none, two, three, again = codes
    assert two == again
    assert len({none, two, three}) == 3


def test_a_change_of_the_definition_is_another_operator_to_the_cache(install: Any) -> None:
    plain = install().operators["example.Try"].code()
    described = install(taken("X", "rank(X) >= 1"), LIKE_X).operators["example.Try"].code()
    assert plain != described


def test_a_compiled_model_names_what_it_lacks(install: Any, tmp_path: Path) -> None:
    package = install()
    compiled = cc.compile(model("Try", "example"), ["reference"], cache=False)
    saved = compiled.to_bytes()
    with cc.load_compiled(saved) as loaded:
        assert loaded(np.ones(3, np.float32)).tolist() == [2, 2, 2]
    package.unregister()
    with pytest.raises(cc.Error, match=r"example\.Try"):
        cc.load_compiled(saved)


def test_a_package_that_fails_to_load_is_a_warning(tmp_path: Path) -> None:
    """What is broken says so; what does not need it goes on."""
    site = tmp_path / "broken-1.0.dist-info"
    site.mkdir()
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (site / "entry_points.txt").write_text("[crosschip.opdefs]\nbroken = broken:package\n")
    (tmp_path / "broken.py").write_text("raise RuntimeError('no licence')\n")
    onnx.save(model("Relu"), tmp_path / "relu.onnx")
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))

    def crosschip(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "crosschip", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        )

    told = "'broken' failed to load: RuntimeError: no licence"
    ran = crosschip("explain", "relu.onnx", "--devices", "reference")
    assert told in ran.stderr
    assert "package broken: not loaded: RuntimeError: no licence" in crosschip("ops").stdout
