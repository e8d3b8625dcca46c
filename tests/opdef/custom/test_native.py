"""Kernels in C: what they get, whatever it is, and what becomes of their failures."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.opdef.custom.conftest import STRICT
from tests.opdef.custom.documents import FLOAT, LIKE_X, made, package_of, setting, taken

from crosschip import opdef
from crosschip.ir import Array, Builder, ElementType, InputError, Quantization, TensorType
from crosschip.opdef.custom.native import HEADER, load_kernel
from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.definitions import Rank
from crosschip.ops.definition.operator import Operator

INT64 = (Datatype.INT_64,)
TOLD = made("Out", "dim(Out, 0) == 64", datatypes=INT64, rank=Rank.ONE)

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler, cc")

    def make(*flags: str) -> Path:
        library = tmp_path_factory.mktemp("probe") / "libprobe.so"
        command = [compiler, *STRICT, "-fPIC", "-shared", f"-I{HEADER.parent}", *flags]
        source = Path(__file__).with_name("probe.c")
        subprocess.run([*command, "-o", library, source], check=True, capture_output=True)
        return library

    return make


@pytest.fixture(scope="session")
def probe(build: Compile) -> Path:
    return build()


def operator(
    folder: Path, library: Path, function: str, *tensors: Any
) -> type[opdef.NativeOperator]:
    kind = type("Try", (opdef.NativeOperator,), {"library": library, "function": function})
    return package_of(folder, *tensors).defines("Try")(kind)


def ran(
    operator: type[Operator], values: Sequence[tuple[TensorType, Array] | None], **named: Any
) -> Array:
    """Return what the kernel makes of inputs."""
    b = Builder("use")
    inputs = [v and b.input(f"x{i}", v[0]) for i, v in enumerate(values)]
    b.add(operator, *inputs, **named)
    (operation,) = b.operations
    assert isinstance(operation, Operator)
    filled = [value and value[1] for value in values]
    rest = [None if o is None else o.value for o in operation.inputs[len(values) :]]
    (result,) = operation.kernel()([*filled, *rest])
    return result


def floats(array: Array) -> tuple[TensorType, Array]:
    return TensorType(ElementType.FLOAT32, array.shape), array


def test_a_kernel_sees_its_tensors_and_parameters(tmp_path: Path, probe: Path) -> None:
    told = operator(
        tmp_path,
        probe,
        "probe",
        taken("in[0]"),
        taken("more", mandatory=False),
        TOLD,
        setting("given"),
        setting("default", default="5"),
        setting("open", datatypes=FLOAT, default="N-1"),
    )
    x = np.zeros((4, 6), np.float32)[::-1, ::2]
    found = ran(told, [floats(x), None], given=9).tolist()
    float32, int32 = ElementType.FLOAT32.code, ElementType.INT32.code
    inputs = [5, float32, 2, 4, 3, -24, 8, 0, -1, 4, 0, -1, 0, -1]
    settings = [5, int32, 0, 0, -1, 9, 7, int32, 0, 0, -1, 5, 4, 0, -1, 0, -1, -77]
    assert found[: len(inputs + settings)] == inputs + settings
    assert set(found[len(inputs + settings) :]) == {-1}


def test_a_kernel_sees_integers_and_their_scales(tmp_path: Path, probe: Path) -> None:
    quantized = (Datatype.UFIXED_POINT_8,)
    told = operator(tmp_path, probe, "probe", taken("X", datatypes=quantized), TOLD)
    scales = Quantization((0.5, 0.25, 2.0), (1, 2, 3), axis=1)
    type_ = TensorType(ElementType.UINT8, (2, 3), scales)
    found = ran(told, [(type_, np.zeros((2, 3), np.uint8))]).tolist()
    expected = [1, ElementType.UINT8.code, 2, 2, 3, 3, 1, 3, 1, 1, 500, 2, 250, 3, 2000]
    assert found[: len(expected)] == expected


@given(
    values=arrays.arrays(np.float32, arrays.array_shapes(max_dims=4, max_side=5, min_side=0)),
    steps=st.lists(st.sampled_from([1, 2, -1, -3]), min_size=4, max_size=4),
    order=st.randoms(use_true_random=False),
)
def test_a_kernel_finds_elements_however_they_lie(
    tmp_path_factory: pytest.TempPathFactory,
    probe: Path,
    values: Array,
    steps: list[int],
    order: Any,
) -> None:
    copied = operator(tmp_path_factory.mktemp("op"), probe, "copied", taken(), LIKE_X)
    axes = list(range(values.ndim))
    order.shuffle(axes)
    view = values.transpose(axes)[tuple(slice(None, None, s) for s in steps[: values.ndim])]
    np.testing.assert_array_equal(ran(copied, [floats(view)]), view)


def test_a_kernel_runs_in_many_threads(tmp_path: Path, probe: Path) -> None:
    copied = operator(tmp_path, probe, "copied", taken(), LIKE_X)
    b = Builder("use")
    b.add(copied, b.input("x", TensorType(ElementType.FLOAT32, None)))
    (operation,) = b.operations
    assert isinstance(operation, Operator)
    kernel = operation.kernel()

    def run(size: int) -> bool:
        x = np.full((size % 7, size), size, np.float32)
        return all(np.array_equal(kernel([x])[0], x) for _ in range(50))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(run, range(40)))


def test_a_kernel_that_fails_says_why(tmp_path: Path, probe: Path) -> None:
    failing = operator(tmp_path, probe, "failing", taken(), LIKE_X)
    with pytest.raises(RuntimeError, match=r"returned 2: the kettle is out"):
        ran(failing, [floats(np.zeros(3, np.float32))])


def test_what_is_not_there_is_said(tmp_path: Path, probe: Path, build: Compile) -> None:
    with pytest.raises(InputError, match=r"libprobe\.so: does not export nothing"):
        load_kernel(probe, "nothing")
    with pytest.raises(InputError, match=r"cannot be loaded: .*; build it first"):
        load_kernel(tmp_path / "none.so", "probe")
    with pytest.raises(InputError, match=r"is made for version 7 of crosschip_kernel\.h; this"):
        load_kernel(build("-DVERSION=7"), "probe")
    missing = operator(tmp_path, tmp_path / "none.so", "probe", taken(), LIKE_X)
    with pytest.raises(InputError, match=r"example\.Try: .*none\.so cannot be read: .*; build it"):
        missing.code()


def test_another_library_is_another_operator_to_the_cache(
    tmp_path: Path, probe: Path, build: Compile
) -> None:
    first, again, second = (
        operator(tmp_path, library, "copied", taken(), LIKE_X).code()
        for library in (probe, probe, build("-O0"))
    )
    assert first == again != second
