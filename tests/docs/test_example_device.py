"""The examples of docs/devices.md, installed as users install them, in processes of their own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("toy-npu", "toy-compiler")
DOCUMENT = Path(__file__).parents[2] / "docs" / "devices.md"

PROGRAM = """
import json, sys
import numpy as np
import crosschip as cc
from crosschip.ir import Builder, ElementType, TensorType, symbol
from crosschip.ops.standard.activation import LeakyRelu
from crosschip.ops.standard.arithmetic import Add

b = Builder("mixed")
x = b.input("x", TensorType(ElementType.FLOAT32, (symbol("N"), 4)))
y = b.add(LeakyRelu, x, alpha=0.25)
z = b.add(LeakyRelu, b.add(Add, y, y), alpha=-1.0)
b.output("y", y)
b.output("z", z)
data = np.array([[-4, -1, 0, 2]], np.float32)
words = []
for _ in range(2):
    with cc.compile(b.build(), ["toy-npu", "reference"], cache=sys.argv[1]) as compiled:
        outputs = compiled.run({"x": data})
        words.append(compiled.report.cache)
print(json.dumps({
    "y": outputs["y"].tolist(),
    "z": outputs["z"].tolist(),
    "devices": [decision.device for decision in compiled.placement.decisions],
    "reason": compiled.placement.decisions[2].reasons["toy-npu"],
    "cache": words,
    "listed": {d.name: [d.vendor, d.kind, d.available] for d in cc.list_devices()}["toy-npu"],
}))
"""


COMPILED = """
import json, sys
import numpy as np
import crosschip as cc
from crosschip.ir import Builder, ElementType, TensorType
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.unary import Sin

b = Builder("mixed")
x = b.input("x", TensorType(ElementType.FLOAT32, (1, 4)))
y = b.add(Relu, b.add(Add, x, b.constant(np.full((1, 4), 0.1, np.float32))))
z = b.add(Sin, b.add(Mul, y, y))
b.output("y", y)
b.output("z", z)
data = np.array([[-4, -1, 0, 2]], np.float32)
found = []
for properties in ({}, {"precision": "float16"}, {"precision": "float16"}):
    with cc.compile(
        b.build(), ["toy-compiler", "reference"], cache=sys.argv[1],
        properties={"toy-compiler": properties},
    ) as compiled:
        outputs = compiled.run({"x": data})
        found.append({
            "y": outputs["y"].tolist(),
            "devices": [decision.device for decision in compiled.placement.decisions],
            "reasons": [d.reasons["toy-compiler"] for d in compiled.placement.decisions],
            "cache": compiled.report.cache,
        })
report = next(d for d in cc.list_devices() if d.name == "toy-compiler")
found.append([report.vendor, report.available, report.simulated])
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the examples have been installed into by pip."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"),
            *("--disable-pip-version-check", "--target", str(folder)),
            *(str(EXAMPLES / name) for name in NAMES),
        ],
        check=True,
    )
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_complete_device_is_at_most_100_lines(name: str) -> None:
    files = [path for path in (EXAMPLES / name).iterdir() if path.suffix in (".py", ".toml")]
    assert sum(len(path.read_text("utf-8").splitlines()) for path in files) <= 100


def test_it_runs_what_it_says_and_the_rest_goes_elsewhere(installed: Path, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env={"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["y"] == [[-1.0, -0.25, 0.0, 2.0]]
    assert found["z"] == [[2.0, 0.5, 0.0, 4.0]]
    assert found["devices"] == ["toy-npu", "reference", "reference"]
    assert found["reason"] == "LEAKY_RELU.alpha: is negative"
    assert found["cache"] == ["miss", "hit"]
    assert found["listed"] == ["Toy Semiconductors", "accelerator", True]
    assert "toy-npu runs 1" in result.stderr


def test_a_compiler_runs_what_it_takes_and_says_what_it_does_not(
    installed: Path, tmp_path: Path
) -> None:
    result = subprocess.run(
        [sys.executable, "-c", COMPILED, str(tmp_path / "programs")],
        env={"PYTHONPATH": str(installed), "CROSSCHIP_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    real, half, again, listed = json.loads(result.stdout)
    assert real["devices"] == ["reference"] * 4
    assert real["reasons"][0].startswith("ADD: is float32, which the chip does not compute")
    assert half["devices"] == ["toy-compiler"] * 3 + ["reference"]
    assert half["reasons"][3] == "SIN: the compiler does not have ONNX's Sin"
    assert half["y"] == [[0, 0, 0.0999755859375, 2.099609375]]
    assert (half["cache"], again["cache"]) == ("miss", "hit")
    assert again["y"] == half["y"]
    assert listed == ["Toy Semiconductors", True, True]


def test_the_document_shows_the_device_that_there_is() -> None:
    source = (EXAMPLES / "toy-compiler" / "toy_compiler.py").read_text("utf-8")
    assert source[source.index("class ToyCompiler") :] in DOCUMENT.read_text("utf-8")
