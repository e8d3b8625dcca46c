"""Plans: found again only if nothing has changed, and then as good as what was compiled anew."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import crosschip as cc
from crosschip.devices.reference import ReferenceDevice
from crosschip.ir import Array, Budget
from crosschip.runtime.artifact.origin import Origin
from crosschip.runtime.compile.request import CompileRequest
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.configuration import Configuration
from crosschip.runtime.outline import StoredOutline
from crosschip.runtime.placement.options import PlacementOptions
from crosschip.runtime.plans import environment
from crosschip.runtime.plans.plans import BackgroundTask

PLAN = b'"device": "plan"'
X = np.arange(6, dtype=np.float32).reshape(2, 3)
CONFIGURATION = Configuration


def write(path: Path, factor: float = 2.0, *, outside: bool = False, size: int | str = 2) -> Path:
    """An ONNX file that computes `relu(x * factor)`, its factors in the file or beside it."""
    factors = numpy_helper.from_array(np.full((40, 3), factor, np.float32)[:1], "factors")
    nodes = [
        helper.make_node("Mul", ["x", "factors"], ["y"]),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [size, 3]) for name in ("x", "z")
    ]
    graph = helper.make_graph(nodes, "scaled", ends[:1], ends[1:], [factors])
    opset = helper.make_opsetid("", 17)
    model = helper.make_model(graph, ir_version=9, opset_imports=[opset])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name("weights.bin").unlink(missing_ok=True)
    onnx.save(model, path, save_as_external_data=outside, location="weights.bin", size_threshold=0)
    return path


def expected(factor: float, x: Array = X) -> Array:
    return np.maximum(x * np.float32(factor), 0)


def is_planned(compiled: CompiledModel) -> bool:
    """Tell whether a model was found by its plan."""
    return isinstance(compiled.executable.outline, StoredOutline)


def compile(path: Path | bytes, cache: Path, **wishes: Any) -> CompiledModel:
    return cc.compile(path, wishes.pop("devices", ["reference"]), cache=cache, **wishes)


def test_what_is_found_by_its_plan_is_what_was_compiled(tmp_path: Path) -> None:
    path, cache = write(tmp_path / "model.onnx"), tmp_path / "cache"
    with compile(path, cache) as first, compile(path, cache) as second:
        assert [is_planned(one) for one in (first, second)] == [False, True]
        assert (first.report.cache, second.report.cache) == ("miss", "hit")
        np.testing.assert_array_equal(second(X), expected(2))
        assert repr(second) == repr(first)
        assert {n: str(o.type) for n, o in second.inputs.items()} == {"x": "float32[2, 3]"}
        assert [d.reasons for d in second.placement.decisions] == [
            d.reasons for d in first.placement.decisions
        ]
        assert second.placement.settings == first.placement.settings
        assert second.token == first.token
        assert second.options == first.options
        np.testing.assert_array_equal(cc.load_compiled(second.to_bytes())(X), expected(2))
        assert second.profile({"x": X}, runs=1, warm_up=0).segments
        assert second.statistics().segments[0].runs == 1


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_compiling_and_running_by_a_plan_import_only_what_they_need(
    engine: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "model.onnx", size="n")
    program = (
        "import sys, numpy, crosschip\n"
        f"compiled = crosschip.compile({str(path)!r}, [{engine!r}], cache={str(tmp_path)!r})\n"
        "print(compiled(numpy.ones((2, 3), numpy.float32)).sum(), compiled.report.cache)\n"
        "print(*(name for name in sys.modules))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answers = [
        subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True,
            check=True,
        ).stdout.splitlines()
        for _ in range(2)
    ]  # fmt: skip
    assert [answer[0] for answer in answers] == ["12.0 miss", "12.0 hit"]
    compiling, imported = (set(answer[1].split()) for answer in answers)
    seldom = {"artifact.loading", "placement.mixed_precision", "placement.partition"}
    assert compiling.isdisjoint({f"crosschip.runtime.{name}" for name in seldom})
    described = {f"crosschip.ops.definition.{name}" for name in ("examples", "faces")}
    assert compiling.isdisjoint({*described, f"crosschip.devices.{engine}.profiling"})
    rooms = {"crosschip.ops", "crosschip.passes", "crosschip.importers", "crosschip.opdef"}
    assert imported.isdisjoint({*rooms, "onnx", "google.protobuf"})
    assert imported.isdisjoint({"crosschip.runtime.compile.task", "ml_dtypes", "numpy.typing"})
    if engine == "onnxruntime":  # OpenVINO imports some of these itself
        assert imported.isdisjoint({"concurrent.futures", "pathlib", "tempfile"})
        assert f"crosschip.devices.{engine}.providers" not in imported


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_sizes_are_checked_without_operations_until_they_may_not_fit(
    engine: str, tmp_path: Path
) -> None:
    """Also after windows, steps and places, where engines do not look at sizes themselves."""
    path = tmp_path / "model.onnx"
    weights = numpy_helper.from_array(np.ones((2, 1, 3, 2), np.float32), "w")
    places = numpy_helper.from_array(np.array([[0], [1]]), "places")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], strides=[2, 1]),
        helper.make_node("Transpose", ["c"], ["t"], perm=[1, 0, 2, 3]),
        helper.make_node("GatherND", ["t", "places"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", ("n", 1, "h", "w")), ("y", (2, "n", None, None)))
    ]
    graph = helper.make_graph(nodes, "windows", ends[:1], ends[1:], [weights, places])
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[opset]), path)
    program = (
        "import sys, numpy, crosschip\n"
        f"compiled = crosschip.compile({str(path)!r}, [{engine!r}], cache={str(tmp_path)!r})\n"
        "for h, w in ((3, 2), (8, 5)):\n"
        "    print(compiled(numpy.ones((1, 1, h, w), numpy.float32)).shape)\n"
        "print('crosschip.ops' in sys.modules)\n"
        "try: compiled(numpy.ones((1, 1, 2, 2), numpy.float32))\n"
        "except Exception as error: print(error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for compiles in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        *shapes, imported, refused = done.stdout.splitlines()
        assert shapes == ["(2, 1, 1, 1)", "(2, 1, 3, 4)"]
        assert imported == str(compiles)
        assert refused.startswith(engine)


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_sizes_that_do_not_fit_are_refused_as_before(engine: str, tmp_path: Path) -> None:
    """Although the size that they depend on has no name, and the plan holds no operations."""
    ones = numpy_helper.from_array(np.ones((1, 3), np.float32), "ones")
    nodes = [
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Concat", ["y", "ones"], ["z"], axis=1),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, columns])
        for name, columns in (("x", 3), ("z", 6))
    ]
    graph = helper.make_graph(nodes, "joined", ends[:1], ends[1:], [ones])
    opset = helper.make_opsetid("", 17)
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[opset]), path)
    said = []
    for planned in (False, True):
        with compile(path, tmp_path / "cache", devices=[engine]) as compiled:
            assert is_planned(compiled) is planned
            assert compiled(X[:1]).shape == (1, 6)
            with pytest.raises(cc.Error) as caught:
                compiled(X)
            said.append(str(caught.value))
            assert compiled(X[:1]).shape == (1, 6)
    assert said[0] == said[1]


VARIED: Mapping[str, list[Any]] = {
    "devices": [["reference"], ["reference", "openvino"], "reference"],
    "shapes": [
        cc.ShapeOptions(),
        *(cc.ShapeOptions(shapes) for shapes in ({"x": [2, 3]}, {"x": [3, 3]}, {"n": 2})),
        *(cc.ShapeOptions(ranges=ranges) for ranges in ({"n": (1, 4)}, {"n": (1, 8)})),
        *(cc.ShapeOptions(profiles=[profile]) for profile in ({"n": 1}, {"n": 2})),
        cc.ShapeOptions(buckets={"n": [2, 4]}),
        cc.ShapeOptions(specializations=4),
    ],
    "settings": [
        CONFIGURATION(),
        *(CONFIGURATION(precision="bfloat16"), CONFIGURATION(threads=1)),
        *(CONFIGURATION(in_flight=2), CONFIGURATION(performance="high")),
        *(
            CONFIGURATION(properties={"onnxruntime": {"spinning": "0"}}),
            CONFIGURATION(queue_size=2),
        ),
    ],
    "required_properties": [{}, {"onnxruntime": {"spinning": "0"}}],
    "placement": [
        PlacementOptions(),
        *(PlacementOptions(partition=lines) for lines in ("relu", "mul")),
        *(PlacementOptions(mixed_precision=lines) for lines in ("relu", "mul")),
        *(PlacementOptions(pin={"relu": "reference"}), PlacementOptions(min_segment=2)),
        *(PlacementOptions(max_segments=1), PlacementOptions(strict=True)),
        PlacementOptions(isolate=True),
    ],
    "budget": [None, Budget(), Budget(seconds=7)],
}
"""Values of every field of `CompileRequest`, which all mean something else."""


def test_every_wish_is_varied() -> None:
    assert set(VARIED) == {field.name for field in fields(CompileRequest)}


wishes = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VARIED.items()})


@settings(max_examples=80, deadline=None)
@given(wishes, wishes)
def test_two_calls_have_one_text_only_if_they_want_the_same(
    one: Mapping[str, Any], other: Mapping[str, Any]
) -> None:
    same = all(one[name] is other[name] for name in VARIED)
    assert (CompileRequest(**one).words() == CompileRequest(**other).words()) is same


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_plan_holds_for_one_set_of_wishes(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Models are compiled in any order for shapes, and answer for those alone that they have."""
    folder = tmp_path_factory.mktemp("plans")
    path = write(folder / "model.onnx", size="n")
    seen: set[int | None] = set()
    for size in data.draw(st.lists(st.sampled_from([None, 1, 2]), min_size=2, max_size=6)):
        shapes = None if size is None else {"n": size}
        with compile(path, folder / "cache", shapes=shapes) as compiled:
            assert is_planned(compiled) is (size in seen)
            for rows in (1, 2):
                x = X[:rows]
                if size in (None, rows):
                    np.testing.assert_array_equal(compiled(x), expected(2, x))
                else:
                    with pytest.raises(cc.Error, match="has shape"):
                        compiled(x)
        seen.add(size)


@pytest.mark.parametrize("outside", [False, True])
def test_a_file_of_other_bytes_is_another_model(outside: bool, tmp_path: Path) -> None:
    """Although name, size and time of modification are the same."""
    path, cache = write(tmp_path / "model.onnx", 2, outside=outside), tmp_path / "cache"
    changed = path.with_name("weights.bin") if outside else path
    about = changed.stat()
    compile(path, cache).close()
    write(path, 3, outside=outside)
    assert changed.stat().st_size == about.st_size
    os.utime(changed, ns=(about.st_atime_ns, about.st_mtime_ns))
    with compile(path, cache) as compiled:
        assert not is_planned(compiled)
        np.testing.assert_array_equal(compiled(X), expected(3))
    with compile(path, cache) as compiled:
        assert is_planned(compiled)
        np.testing.assert_array_equal(compiled(X), expected(3))


def test_a_link_that_leads_elsewhere_leads_to_another_model(tmp_path: Path) -> None:
    for number in (2, 3):
        write(tmp_path / str(number) / "model.onnx", number, outside=True)
    link, cache = tmp_path / "link", tmp_path / "cache"
    for number in (2, 3, 2):
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / str(number), target_is_directory=True)
        with compile(link / "model.onnx", cache) as compiled:
            np.testing.assert_array_equal(compiled(X), expected(number))


def test_a_folder_with_another_model_is_refused_as_before(tmp_path: Path) -> None:
    write(tmp_path / "models" / "one.onnx")
    cache = tmp_path / "cache"
    compile(tmp_path / "models", cache).close()
    with compile(tmp_path / "models", cache) as compiled:
        assert is_planned(compiled)
    write(tmp_path / "models" / "two.onnx")
    with pytest.raises(cc.Error, match="has 2 ONNX models"):
        compile(tmp_path / "models", cache)


def test_a_file_that_is_gone_is_missed(tmp_path: Path) -> None:
    path, cache = write(tmp_path / "model.onnx"), tmp_path / "cache"
    compile(path, cache).close()
    path.unlink()
    with pytest.raises(cc.Error, match="there is no such file"):
        compile(path, cache)


def test_content_in_memory_has_a_plan_too(tmp_path: Path) -> None:
    contents = [write(tmp_path / "model.onnx", factor).read_bytes() for factor in (2, 3)]
    for content, factor, planned in zip(
        [*contents, *contents], (2, 3, 2, 3), (False, False, True, True), strict=True
    ):
        with compile(content, tmp_path / "cache") as compiled:
            assert is_planned(compiled) is planned
            np.testing.assert_array_equal(compiled(X), expected(factor))


@settings(max_examples=40, deadline=None)
@given(plan=st.booleans(), share=st.floats(0, 1, exclude_max=True), bit=st.integers(-1, 7))
def test_a_damaged_entry_is_never_followed(
    plan: bool, share: float, bit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    path, cache = write(folder / "model.onnx"), folder / "cache"
    compile(path, cache).close()
    entries = {PLAN in entry.read_bytes(): entry for entry in cache.glob("*.chip")}
    entry = entries[plan]
    content = bytearray(entry.read_bytes())
    place = int(share * len(content))
    if bit >= 0:
        content[place] ^= 1 << bit
    else:
        del content[place:]
    entry.write_bytes(content)
    with compile(path, cache) as compiled:
        assert not is_planned(compiled)
        np.testing.assert_array_equal(compiled(X), expected(2))
    with compile(path, cache) as compiled:
        assert is_planned(compiled)
        np.testing.assert_array_equal(compiled(X), expected(2))


def test_entries_in_each_others_places_are_not_followed(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    paths = [write(tmp_path / f"{factor}.onnx", factor) for factor in (2, 3)]
    found: list[set[Path]] = []
    for path in paths:
        compile(path, cache).close()
        found.append(set(cache.glob("*.chip")))
    plans = [
        next(e for e in entries if PLAN in e.read_bytes())
        for entries in (found[0], found[1] - found[0])
    ]
    contents = [plan.read_bytes() for plan in plans]
    for plan, content in zip(plans, reversed(contents), strict=True):
        plan.write_bytes(content)
    for path, factor in zip(paths, (2, 3), strict=True):
        with compile(path, cache) as compiled:
            assert not is_planned(compiled)
            np.testing.assert_array_equal(compiled(X), expected(factor))


def test_another_version_of_a_device_has_no_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = write(tmp_path / "model.onnx"), tmp_path / "cache"
    compile(path, cache).close()
    monkeypatch.setattr(ReferenceDevice, "version", "other")
    with compile(path, cache) as compiled:
        assert not is_planned(compiled)
        assert compiled.report.cache == "miss"


@pytest.mark.parametrize("name", ["CROSSCHIP_DEVICE_PATH", "ORT_SOMETHING", "OV_SOMETHING"])
def test_another_environment_has_no_plan(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = write(tmp_path / "model.onnx"), tmp_path / "cache"
    compile(path, cache).close()
    monkeypatch.setenv(name, str(tmp_path))
    with compile(path, cache) as compiled:
        assert not is_planned(compiled)


def test_what_is_installed_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "site"
    (place / "engine-1.0.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [*sys.path, str(place)])
    before = environment.environment()
    assert environment.environment() == before
    (place / "engine-1.0.dist-info").rename(place / "engine-1.1.dist-info")
    assert environment.environment() != before


def test_code_that_is_being_worked_on_counts(tmp_path: Path) -> None:
    from crosschip.ir.source_code import state_of_code

    (tmp_path / "part").mkdir()
    (file := tmp_path / "part" / "module.py").write_text("a = 1")
    before = state_of_code(str(tmp_path))
    assert state_of_code(str(tmp_path)) == before
    file.write_text("a = 21")
    assert state_of_code(str(tmp_path)) != before


@pytest.mark.slow
def test_a_compilation_that_warned_of_something_is_not_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, cache = write(tmp_path / "model.onnx"), tmp_path / "cache"
    for _ in range(2):
        caplog.clear()
        with compile(
            path,
            cache,
            devices=["openvino", "reference"],
            placement=PlacementOptions(partition="gelu"),
        ) as compiled:
            assert not is_planned(compiled)
        assert "gelu" in caplog.text


def test_what_fell_back_is_told_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, cache = write(tmp_path / "model.onnx"), tmp_path / "cache"
    said = []
    for planned in (False, True):
        caplog.clear()
        with (
            caplog.at_level(logging.INFO, "crosschip"),
            compile(path, cache) as compiled,
        ):
            assert is_planned(compiled) is planned
        said.append(caplog.messages)
    assert said[0] == said[1] != []


def test_devices_of_the_callers_have_no_plan(tmp_path: Path) -> None:
    path, cache = write(tmp_path / "model.onnx"), tmp_path / "cache"
    with ReferenceDevice() as device:
        for _ in range(2):
            with compile(path, cache, devices=[device]) as compiled:
                assert not is_planned(compiled)


def test_processes_that_write_at_once_leave_a_plan(tmp_path: Path) -> None:
    path, cache = write(tmp_path / "model.onnx"), tmp_path / "cache"
    program = (
        "import crosschip, numpy\n"
        f"made = crosschip.compile({str(path)!r}, ['reference'], cache={str(cache)!r})\n"
        "y = made(numpy.ones((2, 3), numpy.float32))\n"
        "print(y.sum(), type(made.executable.outline).__name__)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def started() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True
        )

    answers = [process.communicate()[0] for process in [started() for _ in range(3)]]
    assert all(answer.startswith("12.0 ") for answer in answers)
    assert started().communicate()[0] == "12.0 StoredOutline\n"


def test_what_needs_the_weights_of_a_model_that_has_changed_is_of_the_new_one_or_fails(
    tmp_path: Path,
) -> None:
    path, cache = write(tmp_path / "model.onnx"), tmp_path / "cache"
    compile(path, cache).close()
    with compile(path, cache) as compiled:
        shutil.copy(write(tmp_path / "other.onnx", 3), path)
        np.testing.assert_array_equal(compiled(X), expected(2))
        with pytest.raises(cc.Error, match="has changed since it was compiled"):
            compiled.profile({"x": X}, runs=1)


def test_whoever_waits_for_a_comparison_hears_that_it_failed() -> None:
    origin = Origin(0, (), (("unheard", os.getcwd(), ""),), ())
    with pytest.raises(KeyError, match="unheard"):
        BackgroundTask(lambda: origin.is_same).result()
