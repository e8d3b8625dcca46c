"""The guide's package: generated, filled in as it says, and run; its messages come."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from textwrap import indent

import numpy as np
import pytest
from scipy.ndimage import uniform_filter
from tests.opdef.generation.projects import build, generated, with_body

from crosschip.ir import Array, Builder, ElementType, TensorType
from crosschip.ops.definition.operator import Operator

GUIDE = (Path(__file__).parents[3] / "docs" / "opdef.md").read_text("utf-8")
SECTION = GUIDE.partition("## A package of operators")[2].partition("\n## ")[0]


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "filters.xml"
    (text,) = re.findall(r"```xml\n(.*?)```", GUIDE, re.DOTALL)
    path.write_text(text, "utf-8")
    return path


def blurred(project: Path, x: Array, monkeypatch: pytest.MonkeyPatch) -> Array:
    """Return what the operator of the project makes of an image."""
    others = [name for name in sys.modules if name.partition(".")[0] == "filters"]
    for name in others:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(project / "src")
    b = Builder("blur")
    image = b.input("x", TensorType(ElementType.FLOAT32, x.shape))
    b.add(import_module("filters").Blur, image, radius=2)
    (operation,) = b.operations
    assert isinstance(operation, Operator)
    (y,) = operation.kernel()([x, np.array(2, np.uint32)])
    for name in [name for name in sys.modules if name.partition(".")[0] == "filters"]:
        monkeypatch.delitem(sys.modules, name)
    return y


def with_functions(project: Path) -> Path:
    """Return the operator's file with the guide's functions in place of the stubs."""
    (functions,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    file = project / "src" / "filters" / "blur.py"
    text = file.read_text("utf-8").replace(
        "from crosschip import", "import numpy as np\nfrom crosschip import"
    )
    for function in functions.split("\n\n\n"):
        (name,) = re.findall(r"^def (\w+)", function)
        body = indent(function.strip(), " " * 4) + "\n"
        stub = rf'    def {name}\(.*?"write Blur\.{name}"\)\n'
        text = re.sub(stub, body, text, flags=re.DOTALL)
    file.write_text(text, "utf-8")
    return file


def test_its_operator_blurs(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = generated(tmp_path, "python", document, backends=["openvino"]).folder
    named = set(re.findall(r"^\| `(.*?)` \|", SECTION.partition("A stub is")[0], re.MULTILINE))
    assert named == {
        str(path.relative_to(project))
        for path in project.rglob("*")
        if path.is_file() and path.name not in ("__init__.py", "_package.py", "README.md")
    }
    assert "NotImplementedError" not in with_functions(project).read_text("utf-8")
    x = np.random.default_rng(0).random((2, 5, 6, 3), np.float32)
    y = blurred(project, x, monkeypatch)
    np.testing.assert_allclose(y, uniform_filter(x, (1, 5, 5, 1), mode="nearest"), rtol=1e-5)


def test_its_loop_in_c_is_one(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = generated(tmp_path, "native", document).folder
    with_functions(project)
    (loop,) = re.findall(r"```c\n(.*?)```", SECTION, re.DOTALL)
    kernel = project / "native" / "blur.c"
    body = f"\n(void)radius;\n{loop}return CROSSCHIP_KERNEL_OK;"
    kernel.write_text(with_body(kernel.read_text("utf-8"), body), "utf-8")
    build(project)
    x = np.ones((1, 2, 2, 1), np.float32)
    np.testing.assert_array_equal(blurred(project, x, monkeypatch), 2 * x)


def test_what_it_says_of_a_change(document: Path, tmp_path: Path) -> None:
    project = generated(tmp_path, "python", document).folder
    with_functions(project)
    sigma = re.findall(r" *<Parameter>.*?</Parameter>\n", document.read_text("utf-8"), re.DOTALL)[0]
    text = document.read_text("utf-8").replace(sigma, sigma + sigma.replace("radius", "sigma"), 1)
    document.write_text(text, "utf-8")
    report = generated(tmp_path, "python", document)
    lines = [f"  {state:8} {path}" for path, state in report.files.items() if state != "same"]
    for line in ["Filters in filters: Blur", *sorted(lines), *map(str, report.changes)]:
        assert f"    {line}\n" in SECTION
