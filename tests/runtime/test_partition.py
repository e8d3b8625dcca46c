"""Partition configurations: the operators of a file that they name, to the operation."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import DelegatingDevice, chain, close, float32, model_of, outputs_of

import crosschip
from crosschip.hal import Kind
from crosschip.ir import Builder, InputError, Model, Operand, UnsupportedError
from crosschip.ops.standard.activation import Relu, Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add
from crosschip.runtime.placement.partition import parse
from crosschip.runtime.placement.placement import Placement
from crosschip.runtime.placement.subgraphs import subgraph_operators, subgraph_text

Warnings = Callable[[], list[str]]

NET = "paddle2/mobilenet_v1"
DETECTION = "ocr-paddle/ch_PP-OCRv4_det_infer"
RECOGNITION = "ocr-paddle/ch_PP-OCRv4_rec_infer"


def numbered(type_: str, count: int) -> set[str]:
    return {f"{type_}_{number}" for number in range(count)}


CONVOLUTIONS = numbered("conv2d", 14) | numbered("depthwise_conv2d", 13)

LOG = """\
subgraph clusters: 1
digraph G {
node_1150[label="batch_norm_0.tmp_3"]
node_1154[label="batch_norm_1.tmp_3"]
node_1426->node_1427
} // end G
subgraph operators:
feed:feed:x
relu:batch_norm_0.tmp_2:relu_0.tmp_0
pool2d:relu_26.tmp_0:pool2d_0.tmp_0
fetch:linear_0.tmp_1:fetch
"""

RIGHT: list[tuple[str, str, str | bytes, set[str]]] = [
    # The four forms of NNAdapter's document.
    ("all-names", NET, "relu:batch_norm_2.tmp_2:relu_2.tmp_0", {"relu_2"}),
    ("any-input", NET, "relu::relu_3.tmp_0", {"relu_3"}),
    ("any-output", NET, "relu:batch_norm_4.tmp_2", {"relu_4"}),
    ("any-names", NET, "relu", numbered("relu", 27)),
    # Its example, with the names that transposes have in this model.
    (
        "two-outputs",
        RECOGNITION,
        "transpose2:squeeze_0.tmp_0:transpose_51.tmp_0,transpose_51.tmp_1",
        {"transpose2_8"},
    ),
    ("one-of-two-outputs", RECOGNITION, "transpose2::transpose_51.tmp_1", {"transpose2_8"}),
    # Of its log, the list.
    ("whole-log", NET, LOG, {"relu_0", "pool2d_0"}),
    ("whole-log-crlf", NET, LOG.replace("\n", "\r\n").encode(), {"relu_0", "pool2d_0"}),
    ("ends-of-the-model", NET, "feed:feed:x\nfetch:linear_0.tmp_1:fetch", set()),
    ("crlf", NET, b"relu:batch_norm_2.tmp_2\r\npool2d\r\n", {"relu_2", "pool2d_0"}),
    ("cr", NET, b"relu:batch_norm_2.tmp_2\rpool2d\r", {"relu_2", "pool2d_0"}),
    ("blank-lines", NET, "\n\n  \t\npool2d\n\n", {"pool2d_0"}),
    ("comments", NET, "# all\n  # of them\npool2d\n#relu\n", {"pool2d_0"}),
    ("comment-behind", NET, "pool2d # crashes\n", {"pool2d_0"}),
    ("byte-order-mark", NET, b"\xef\xbb\xbfpool2d\n", {"pool2d_0"}),
    ("spaces", NET, "  relu : batch_norm_2.tmp_2 : relu_2.tmp_0 \n", {"relu_2"}),
    ("colon-behind", NET, "relu:batch_norm_2.tmp_2:\n", {"relu_2"}),
    ("colons-behind", NET, "pool2d::\n", {"pool2d_0"}),
    ("some-of-the-names", NET, "conv2d:x\n", {"conv2d_0"}),
    ("any-order", NET, "conv2d:x,conv2d_0.w_0", {"conv2d_0"}),
    ("comma-behind", NET, "conv2d:x,conv2d_0.w_0,:", {"conv2d_0"}),
    ("twice", NET, "pool2d\npool2d::pool2d_0.tmp_0\n", {"pool2d_0"}),
    ("nothing", NET, "", set()),
    # Operators that passes join, as the file has them, and joined as in the document's log.
    ("before-passes", NET, "conv2d:x,conv2d_0.w_0:conv2d_0.tmp_0", {"conv2d_0"}),
    ("after-passes", NET, "conv2d:x,batch_norm2d_0.b_0:batch_norm_0.tmp_2", {"conv2d_0"}),
    ("joined-to-another", NET, "batch_norm::batch_norm_1.tmp_2", {"depthwise_conv2d_0"}),
    ("type-joined-to-others", NET, "batch_norm", CONVOLUTIONS),
    ("addend", NET, "elementwise_add", {"matmul_v2_0"}),
    # One operator that is several operations.
    (
        "several-operations",
        RECOGNITION,
        "slice:transpose_44.tmp_0:transpose_44.tmp_0_slice_1",
        {"slice_3.slice_0", "slice_3"},
    ),
    ("of-one-type", DETECTION, "hard_swish\n", numbered("hard_swish", 24)),
    ("of-four-inputs", DETECTION, "concat:tmp_122,nearest_interp_v2_3.tmp_0", {"concat_0"}),
    ("one-reader-of-two", DETECTION, "elementwise_mul:conv2d_494.tmp_0", {"elementwise_mul_61"}),
]

WARNED: list[tuple[str, str, str, list[str]]] = [
    ("no-such-type", NET, "conv2", ["no operator of type 'conv2'; the nearest is 'conv2d'"]),
    ("case", NET, "Pool2D", ["of type 'Pool2D'; the nearest is 'pool2d'"]),
    ("our-name", NET, "DEPTHWISE_CONV_2D", ["the nearest is 'depthwise_conv2d'"]),
    ("far-off", NET, "yolo_box_head", ["there are conv2d, batch_norm, relu"]),
    ("hyphen", NET, "pool2d-", ["the nearest is 'pool2d'"]),
    (
        "no-such-output",
        NET,
        "relu::relu_99.tmp_0",
        ["no operator is 'relu::relu_99.tmp_0'; the nearest is 'relu:batch_norm_9.tmp_2:relu_9."],
    ),
    (
        "swapped",
        NET,
        "relu:relu_2.tmp_0:batch_norm_2.tmp_2",
        ["the nearest is 'relu:batch_norm_2.tmp_2:relu_2.tmp_0'"],
    ),
    (
        "of-another",
        NET,
        "relu:batch_norm_2.tmp_2:relu_3.tmp_0",
        ["the nearest is 'relu:batch_norm_"],
    ),
    ("three-lists", NET, "relu:a:b:c", ["has more than two lists of names"]),
    ("joined-by-space", NET, "conv2d:x conv2d_0.w_0", ["the nearest is 'conv2d:"]),
    (
        "the-document's-own",
        RECOGNITION,
        "transpose2:conv2d_22.tmp_1:transpose_0.tmp_0,transpose_0.tmp_1\n"
        "transpose2:conv2d_23.tmp_1:transpose_1.tmp_0,transpose_1.tmp_1\n",
        ["line 1: no operator is 'transpose2:conv2d_22", "line 2: no operator is 'transpose2:conv"],
    ),
]


@cache
def loaded(path: Path) -> Model:
    return crosschip.load(path)


def placed(model: Model, partition: Any, shapes: Any = None, **more: Any) -> Placement:
    devices = [DelegatingDevice(name="npu"), DelegatingDevice(name="cpu")]
    return crosschip.explain(
        model,
        devices,
        shapes=shapes,
        placement=crosschip.PlacementOptions(partition=partition, **more),
    )


def on(device: str, placement: Placement) -> set[str]:
    return {decision.name for decision in placement.decisions if decision.device == device}


@pytest.mark.parametrize(
    ("net", "partition", "expected"), [c[1:] for c in RIGHT], ids=[c[0] for c in RIGHT]
)
def test_operators_that_are_named_run_elsewhere_and_no_others(
    models: Path, net: str, partition: str | bytes, expected: set[str], warnings: Warnings
) -> None:
    placement = placed(loaded(models / net), partition)
    assert on("cpu", placement) == expected
    assert len(on("npu", placement)) == len(placement.decisions) - len(expected)
    assert warnings() == []


@pytest.mark.parametrize(
    ("net", "partition", "told"), [c[1:] for c in WARNED], ids=[c[0] for c in WARNED]
)
def test_a_line_that_names_nothing_is_warned_of_and_changes_nothing(
    models: Path, net: str, partition: str, told: list[str], warnings: Warnings
) -> None:
    assert on("cpu", placed(loaded(models / net), partition)) == set()
    assert len(warnings()) == len(told)
    for warning, text in zip(warnings(), told, strict=True):
        assert text in warning


def test_a_line_about_what_needs_not_run_says_so(models: Path, warnings: Warnings) -> None:
    """What is flattened keeps its first size, open or not: nothing computes its shape."""
    model = loaded(models / "onnx/mobilenet_v1.onnx")
    placement = placed(model, "Shape\nSlice", shapes={"x": (1, 3, 224, 224)})
    assert on("cpu", placement) == set()
    assert [warning.split(":")[0] for warning in warnings()] == [
        "partition, line 1",
        "partition, line 2",
    ]
    assert all("names what needs not run" in warning for warning in warnings())
    assert on("cpu", placed(model, "Shape\nSlice\nConv")) <= {
        o.name for o in model.operations if o.type == "CONV_2D"
    }


@pytest.mark.parametrize(
    ("partition", "told"),
    [
        (":x:y", "partition, line 1: ':x:y' has no operator type before the colon"),
        ("relu\n\n relu x", "partition, line 3: 'relu x' is no operator type"),
        ("relu,tanh", "partition, line 1: 'relu,tanh' is no operator type"),
        (b"relu\n\xff\xfe", "partition, line 2: is not text in UTF-8"),
        ("no/such/file", "partition: there is no file 'no/such/file'"),
        ("partition.txt", "partition: there is no file 'partition.txt'"),
        (Path("no-such-file"), "no-such-file: cannot be read: No such file or directory"),
        (7, "partition is 7, but must be a path, a text or bytes"),
    ],
)
def test_what_is_no_configuration_is_refused(partition: str | bytes | Path, told: str) -> None:
    with pytest.raises(InputError) as caught:
        placed(chain(Relu), partition)
    assert str(caught.value).startswith(told)


def test_a_configuration_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "partition"
    path.write_bytes(b"TANH\r\n")
    for named in (path, str(path)):
        assert on("cpu", placed(chain(Relu, Tanh), named)) == {"tanh_0"}
    path.write_bytes(b"TANH\n:\n")
    with pytest.raises(InputError, match="partition, line 2: ':' has no operator type"):
        placed(chain(Relu, Tanh), path)


ODD = ["a-b", "a,b", "a:b", "a:b,c", "a", "b", "a#b", "a b", ",", "a::b"]


def oddly_named(first: str, second: str, third: str) -> Model:
    b = Builder("odd")
    x = b.add(Relu, b.input(first, float32(2)), outputs=[second])
    b.output("y", b.add(Relu, x, outputs=[third]))
    return b.build()


@given(st.lists(st.sampled_from(ODD), min_size=3, max_size=3, unique=True))
def test_names_may_have_hyphens_commas_and_colons(names: list[str]) -> None:
    first, second, third = names
    model = oddly_named(first, second, third)
    for partition, expected in (
        (f"RELU:{first}:{second}", "relu_0"),
        (f"RELU:{second}:{third}\n", "relu_1"),
    ):
        assert expected in on("cpu", placed(model, partition))
    assert on("cpu", placed(model, f"RELU:{first}:{third}x")) == set()


@given(st.text(), st.sampled_from(["\n", "\r\n"]))
def test_any_text_is_read_or_refused(text: str, end: str) -> None:
    try:
        entries = parse(f"{text}{end}")
    except InputError:
        return
    for entry in entries:
        (again,) = parse(f"{entry.text}\n")
        assert (again.type, again.inputs, again.outputs) == (
            entry.type,
            entry.inputs,
            entry.outputs,
        )


@pytest.mark.parametrize("net", [NET, DETECTION, RECOGNITION, "onnx/mobilenet_v1.onnx"])
def test_each_line_of_the_printed_list_names_its_operator(models: Path, net: str) -> None:
    """One line at a time in a few places, and all of them at once."""
    model = loaded(models / net)
    whole = placed(model, None)
    lines = subgraph_operators(whole)
    assert on("npu", placed(model, subgraph_text(whole))) == set()
    moved = [on("cpu", placed(model, line)) for line in lines[:: max(1, len(lines) // 7)]]
    assert all(moved)
    assert sum(map(len, moved)) == len(set().union(*moved))


def test_processors_behind_the_first_device_run_what_is_listed() -> None:
    class Accelerator(DelegatingDevice):
        kind = Kind.ACCELERATOR

    npus = [Accelerator(name="npu"), Accelerator(name="other")]
    first, second = DelegatingDevice(name="cpu", declines=["TANH"]), DelegatingDevice(name="last")
    model = chain(Relu, Tanh, Sigmoid)
    placement = crosschip.explain(
        model,
        [*npus, first, second],
        placement=crosschip.PlacementOptions(partition="RELU\nTANH\n"),
    )
    assert [d.device for d in placement.decisions] == ["cpu", "last", "npu"]
    assert placement.decisions[0].reasons["other"] == (
        "RELU: kept off by line 1 of the partition, 'RELU'"
    )
    with pytest.raises(InputError, match="there is no processor behind it"):
        crosschip.explain(model, npus, placement=crosschip.PlacementOptions(partition="RELU\n"))


def test_a_partition_that_no_processor_can_run_is_an_error() -> None:
    devices = [DelegatingDevice(name="npu"), DelegatingDevice(name="cpu", declines=["TANH"])]
    placement = crosschip.explain(
        chain(Relu, Tanh), devices, placement=crosschip.PlacementOptions(partition="TANH\n")
    )
    with pytest.raises(UnsupportedError, match="kept off by line 1 of the partition"):
        placement.check()


def test_a_model_computes_the_same_however_it_is_partitioned() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Sigmoid, b.add(Tanh, b.add(Relu, x)))

    model = model_of(make, float32(2))
    x = {"x0": np.array([1, -2], np.float32)}
    devices = [DelegatingDevice(name="npu"), DelegatingDevice(name="cpu")]
    with crosschip.compile(
        model, devices, placement=crosschip.PlacementOptions(partition="TANH\n"), cache=False
    ) as compiled:
        assert [s.device for s in compiled.placement.segments] == ["npu", "cpu", "npu"]
        close(compiled.run(x)["y0"], outputs_of(model, x)["y0"])


PINS: list[tuple[dict[str, str], list[str]]] = [
    ({"TANH": "c"}, ["a", "c", "a", "c"]),
    ({"tanh_1": "b"}, ["a", "a", "a", "b"]),
    ({"TANH": "c", "tanh_1": "b"}, ["a", "c", "a", "b"]),
    ({"tanh_1": "b", "TANH": "c"}, ["a", "c", "a", "c"]),
    ({"*": "c", "RELU": "a"}, ["a", "c", "c", "c"]),
    ({"T*": "b"}, ["a", "b", "a", "b"]),
    ({"RELU:x0": "b"}, ["b", "a", "a", "a"]),
    ({"TANH::y": "b", "SIGMOID": "c"}, ["a", "a", "c", "b"]),
]


def pinned_model() -> Model:
    b = Builder("net")
    x = b.add(Tanh, b.add(Relu, b.input("x0", float32(2))))
    b.output("y", b.add(Tanh, b.add(Sigmoid, x), outputs=["y"]))
    return b.build()


@pytest.mark.parametrize(("pin", "expected"), PINS)
def test_what_is_pinned_runs_there_and_nowhere_else(
    pin: dict[str, str], expected: list[str]
) -> None:
    devices = [DelegatingDevice(name=name) for name in "abc"]
    placement = crosschip.explain(
        pinned_model(), devices, placement=crosschip.PlacementOptions(pin=pin)
    )
    assert [decision.device for decision in placement.decisions] == expected


def test_a_pin_names_a_device_in_a_process_without_it_where_it_is_the_only_one() -> None:
    devices = [DelegatingDevice(name=name) for name in ("a@driver", "b", "b@driver", "c/x@driver")]
    pins = {"tanh_0": "a", "tanh_1": "b"}
    placement = crosschip.explain(
        pinned_model(), devices, placement=crosschip.PlacementOptions(pin=pins)
    )
    assert {d.operation.name: d.device for d in placement.decisions}.items() >= {
        ("tanh_0", "a@driver"),
        ("tanh_1", "b"),
    }
    with pytest.raises(InputError, match="'c', which is not among the devices"):
        crosschip.explain(
            pinned_model(), devices, placement=crosschip.PlacementOptions(pin={"TANH": "c"})
        )
    twice = [DelegatingDevice(name=name) for name in ("a@driver", "a@unix:/a")]
    with pytest.raises(InputError, match="'a', which is not among the devices"):
        crosschip.explain(
            pinned_model(), twice, placement=crosschip.PlacementOptions(pin={"TANH": "a"})
        )


def test_a_pin_holds_before_a_configuration() -> None:
    placement = placed(pinned_model(), "TANH\n", pin={"tanh_0": "npu"})
    assert on("cpu", placement) == {"tanh_1"}


@pytest.mark.parametrize(
    ("pin", "told"),
    [
        ({"TANH": "gpu"}, "pin sends 'TANH' to 'gpu', which is not among the devices: npu, cpu"),
        ({"TAN": "cpu"}, "pin: the model has no operator of type 'TAN'; the nearest is 'TANH'"),
        ({"TANH::q": "cpu"}, "pin: no operator is 'TANH::q'; the nearest is 'TANH:"),
        ({"": "cpu"}, "pin, line 1: '' has no operator type"),
        ({"TANH": 1}, "pin is {'TANH': 1}, but must be devices by pattern"),
        (["TANH"], "pin is ['TANH'], but must be devices by pattern"),
    ],
)
def test_a_pin_that_pins_nothing_is_refused(pin: dict[str, str], told: str) -> None:
    with pytest.raises(InputError) as caught:
        placed(pinned_model(), None, pin=pin)
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    "limits", [{"min_segment": 0}, {"max_segments": 0}, {"min_segment": True}, {"min_segment": "2"}]
)
def test_limits_that_are_none_are_refused(limits: dict[str, int]) -> None:
    (name,) = limits
    with pytest.raises(InputError, match=f"{name} is .*, but must be an integer of at least 1"):
        placed(chain(Relu), None, **limits)


def sum_of(*names: str) -> Model:
    b = Builder("sum")
    total, *others = (b.input(name, float32(2)) for name in names)
    for number, other in enumerate(others):
        total = b.add(Add, total, other, outputs=[f"y{number}"])
    b.output("out", total)
    return b.build()


@pytest.mark.parametrize("count", [30, 400, 50_000])
def test_a_list_of_names_with_commas_is_matched_in_linear_time(count: int) -> None:
    """30 times `a` is a list of `a` and `a,a` in 1,346,269 ways."""
    model = sum_of("a", "a,a")
    names = ",".join("a" * count)
    assert on("cpu", placed(model, f"ADD:{names}:y0")) == {"add_0"}
    assert on("cpu", placed(model, f"ADD:{names}:y1")) == set()
    assert on("cpu", placed(model, f"ADD:{names},z:y0")) == set()
    assert on("cpu", placed(model, f"ADD:a:{':' * count}")) == set()


def test_a_configuration_is_a_regular_file_of_a_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises(InputError, match=f"{path}: cannot be read: .*(regular|directory)"):
            parse(path)
    monkeypatch.setattr("crosschip.runtime.placement.partition._MAX_BYTES", 8)
    large = tmp_path / "large.txt"
    large.write_text("relu\ntanh\n")
    for source in (large, "relu\ntanh\n", b"relu\ntanh\n"):
        with pytest.raises(InputError, match="is larger than 8 bytes"):
            parse(source)


def test_long_lines_are_quoted_by_their_beginning(warnings: Warnings) -> None:
    long = "x" * 100_000
    for line in (f"{long}\nRELU", f"RELU:{long}:y\n", f"RELU:{long}:y:z\n"):
        placed(chain(Relu, Tanh), line)
    for line in (f":{long}\n", f"a b{long}\n", "RELU:" + 3 * long):
        with pytest.raises(InputError) as refusal:
            parse(f"{line}\n")
        assert len(str(refusal.value)) < 500
    with pytest.raises(InputError) as refusal:
        crosschip.explain(
            chain(Relu, Tanh),
            "reference",
            placement=crosschip.PlacementOptions(pin={f"RELU:{long}": "reference"}),
        )
    assert len(str(refusal.value)) < 500
    told = warnings()
    assert len(told) == 3
    assert all(len(text) < 500 for text in told)
