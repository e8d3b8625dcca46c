"""The package as a vendor ships it: installed by pip, and run by crosschip's own commands."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from crosschip.scaffold.project import new_device

ROOT = Path(__file__).parents[2]
CHECKED = ("CONV_2D", "FULLY_CONNECTED", "ADD", "MAX_POOL_2D", "RELU", "SOFTMAX", "DEVICE")
EXAMPLE = ROOT / "examples" / "fake_npu"
GUIDE = (ROOT / "docs" / "tutorials" / "own-device.md").read_text("utf-8")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process for which the package, and the guide's first, are installed."""
    folder = tmp_path_factory.mktemp("site")
    new_device("acme_npu", folder / "sources")
    projects = [str(EXAMPLE), str(folder / "sources" / "acme_npu")]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", *projects]
    subprocess.run([*pip, "--disable-pip-version-check", "--target", str(folder)], check=True)
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    cache = tmp_path_factory.mktemp("cache")
    return {**os.environ, "PYTHONPATH": path, "CROSSCHIP_CACHE_DIR": str(cache)}


def said(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "crosschip", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_listed(environment: dict[str, str]) -> None:
    listed = {d["name"]: d for d in json.loads(said(environment, "devices", "--json"))}
    found = listed["fake_npu"]
    assert (found["available"], found["simulated"]) == (True, True)
    assert set(found["properties"]) == {"memory", "effort", "precision"}


@pytest.mark.parametrize(
    ("which", "least"),
    [
        (["--quick", *(word for name in CHECKED for word in ("--operator", name))], 50),
        pytest.param(["--quick"], 200, marks=pytest.mark.nightly),
        (["--precision", "float16", "--random", "200", "--operator", "ADD"], 20),
    ],
)
def test_nothing_of_the_conformance_kit_fails(
    environment: dict[str, str], which: list[str], least: int
) -> None:
    report = json.loads(said(environment, "conformance", "fake_npu", "--json", *which))
    assert report["fail"] == report["not_run"] == report["excluded"] == 0
    assert report["pass"] >= least


def test_it_runs_in_a_driver_of_its_own(environment: dict[str, str], network: Path) -> None:
    devices = ["--devices", "fake_npu@driver,reference"]
    told = said(environment, "run", str(network), *devices, "--json", "--no-cache")
    assert json.loads(told)


def test_the_ddk_knows_nothing_of_crosschip() -> None:
    allowed = {"numpy", "fake_npu_ddk", *sys.stdlib_module_names}
    files = list((EXAMPLE / "src" / "fake_npu_ddk").rglob("*.py"))
    assert len(files) > 10
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert {name.partition(".")[0] for name in names} <= allowed, file


def test_the_guide_shows_what_is_missing(
    environment: dict[str, str], models: Path, network: Path
) -> None:
    """Its tables are what the command prints, with the columns as far apart as on the page."""
    plain = [str(models / "onnx" / "mobilenet_v1.onnx"), "--shape", "x=1x3x224x224"]
    wide = {**environment, "COLUMNS": "400"}
    for name, arguments in {"acme_npu": plain, "fake_npu": [str(network)]}.items():
        printed = said(wide, "explain", *arguments, "--missing", name)
        for line in filter(None, map(str.rstrip, printed.splitlines())):
            assert f"    {line}\n" in GUIDE


def test_the_guide_shows_the_code_that_there_is() -> None:
    sources = "".join(path.read_text("utf-8") for path in sorted(EXAMPLE.rglob("*.py")))
    blocks = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
    assert len(blocks) >= 7
    for block in blocks:
        assert block in sources, block
