"""The example of docs/devices.md, installed as its users install it, in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "toy-npu"

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


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the example has been installed into by pip."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"),
            *("--disable-pip-version-check", "--target", str(folder), str(EXAMPLE)),
        ],
        check=True,
    )
    return folder


def test_a_complete_device_is_at_most_100_lines() -> None:
    files = [path for path in EXAMPLE.iterdir() if path.suffix in (".py", ".toml")]
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
