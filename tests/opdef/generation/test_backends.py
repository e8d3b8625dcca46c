"""Backends that projects are generated for, and documents that belong together."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.opdef.generation.projects import SIGNALS, generated, linted

from crosschip.opdef.documents import read
from crosschip.opdef.generation.generator import generate
from crosschip.opdef.generation.project import Target

SUPPLEMENT = """    <SupplementalOpDefList Backend="GPU">
        <SupportedOps>
            <OpName>Widen</OpName>
        </SupportedOps>
    </SupplementalOpDefList>
</OpDefCollection>"""


def functions(folder: Path) -> set[str]:
    """Return the modules with a device's function, by the device's folder."""
    found = folder.glob("src/*/on_*/[!_]*.py")
    return {f"{path.parent.name}/{path.stem}" for path in found}


@pytest.mark.parametrize(
    ("backends", "operators", "expected"),
    [
        ([], ["SoftClip", "Widen", "Mix"], set()),
        (
            ["openvino"],
            ["SoftClip", "Widen", "Mix"],
            {"on_openvino/soft_clip", "on_openvino/widen", "on_openvino/mix"},
        ),
        (["HTP"], ["SoftClip"], {"on_onnxruntime/soft_clip"}),
        (["htp", "qualcomm"], ["SoftClip"], {"on_onnxruntime/soft_clip"}),
        (["CPU"], ["SoftClip", "Widen", "Mix"], set()),
        (["GPU"], ["Widen"], set()),
        (["GPU", "HTP"], ["SoftClip", "Widen"], {"on_onnxruntime/soft_clip"}),
    ],
)
def test_operators_and_functions(
    backends: list[str], operators: list[str], expected: set[str], tmp_path: Path
) -> None:
    """Those that one of the backends has; functions for those backends that are devices."""
    file = tmp_path / "a.xml"
    text = SIGNALS.read_text("utf-8").rstrip()
    file.write_text(text.replace("</OpDefCollection>", SUPPLEMENT), "utf-8")
    report = generated(tmp_path, "python", file, backends=backends)
    assert report.operators == operators
    assert functions(report.folder) == expected
    tests = {f"test_{name}.py" for name in ("soft_clip", "widen", "mix")}
    assert {p.name for p in report.folder.glob("tests/*.py")} <= tests
    assert len(list(report.folder.glob("tests/*.py"))) == len(operators)
    linted(report.folder)


def test_a_backend_without_a_device_is_named(tmp_path: Path) -> None:
    (note,) = generated(tmp_path, backends=["CPU", "openvino"]).notes
    assert note == "there is no device for CPU: no functions were written for it"


def test_files_of_one_package_make_one_project(tmp_path: Path) -> None:
    text = SIGNALS.read_text("utf-8")
    start, stop = (
        text.index("        <OpDef>\n            <Name>Widen"),
        text.index("        <OpDef>\n            <Name>Mix"),
    )
    files = [tmp_path / "one.xml", tmp_path / "two.xml", tmp_path / "other.xml"]
    files[0].write_text(text[:start] + text[stop:], "utf-8")
    files[1].write_text(text.replace(text[text.index("        <OpDef>") : start], ""), "utf-8")
    files[2].write_text(text.replace('"Signals"', '"Noise"'), "utf-8")
    first, second = generate(files, Target.PYTHON, tmp_path / "out")
    assert (first.package, second.package) == ("Signals", "Noise")
    assert first.operators == ["SoftClip", "Mix", "Widen"]
    merge_collections = read(first.folder / "src" / "signals" / "operators.xml").collection
    assert set(merge_collections.op_defs.values()) == set(read(SIGNALS).collection.op_defs.values())
    own = second.folder / "src" / "noise" / "operators.xml"
    assert own.read_bytes() == files[2].read_bytes()


def test_packages_called_as_modules_that_there_are(tmp_path: Path) -> None:
    """A package `Json` must not stand where Python finds `json`."""
    file = tmp_path / "a.xml"
    file.write_text(SIGNALS.read_text("utf-8").replace('"Signals"', '"Json"'), "utf-8")
    folder = generated(tmp_path, "native", file).folder
    assert folder.name == "json_operators"
    assert (folder / "src" / "json_operators" / "mix.py").exists()


@pytest.mark.parametrize("target", ["python", "native"])
def test_long_names_fit_their_lines(target: str, tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    text = SIGNALS.read_text("utf-8").replace('"Signals"', '"DetectionPostprocessing"')
    text = text.replace("Widen", "MultiClassNonMaximumSuppression")
    file.write_text(text.replace("rows", "a_tensor_with_a_name_that_is_long"), "utf-8")
    linted(generated(tmp_path, target, file, backends=["onnxruntime"]).folder)
