"""What is written of culprits, and what it can be used for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.bisect.networks import inputs, network
from tests.bisect.planted import Fault, Planted
from tests.drawing.pictures import SVG, check_picture
from tests.modelling import contents, outputs_of

import crosschip
from crosschip.accuracy.error import UNIT
from crosschip.bisect import Report, find_failing_operators
from crosschip.bisect.report_files import to_html
from crosschip.ir import InputError, ModelFileError
from crosschip.ops.definition.serialization import to_bytes

FAULTS = [Fault(("tanh_0",)), Fault(("mul_1", "mul_2"), "nan"), Fault(("relu_0",), "nan")]


@pytest.fixture(scope="module")
def report() -> Report:
    return find_failing_operators(network(), Planted(faults=FAULTS), inputs=inputs())


def test_a_culprit_is_a_model_with_inputs_that_shows_it(report: Report, tmp_path: Path) -> None:
    page, *folders = report.write(tmp_path / "found")
    assert page.name == "index.html"
    assert [folder.name for folder in folders] == [
        "1-TANH-tanh_0",
        "2-SWISH-mul_1-SWISH-mul_2",
        "3-RELU-relu_0",
    ]
    for folder, fault in zip(folders, FAULTS, strict=True):
        model = crosschip.load(folder / "model.chipm")
        assert {operation.name for operation in model.operations} == set(fault.operations)
        given = {n: np.load(folder / "inputs" / f"{n}.npy") for n in model.inputs}
        expected = {n: np.load(folder / "expected" / f"{n}.npy") for n in model.outputs}
        actual = {n: np.load(folder / "actual" / f"{n}.npy") for n in model.outputs}
        for name, array in outputs_of(model, given).items():
            np.testing.assert_allclose(expected[name], array, rtol=1e-6)
        with crosschip.compile(model, [Planted(faults=FAULTS)], cache=False) as compiled:
            for name, array in compiled.run(given).items():
                np.testing.assert_array_equal(actual[name], array)
                assert not np.allclose(array, expected[name], atol=1e-4)
        (culprit,) = find_failing_operators(
            model, Planted(faults=FAULTS), inputs=given
        ).failing_operators
        assert set(culprit.names) == set(fault.operations)
        assert (folder / "model.txt").read_text("utf-8") == f"{model}\n"


def test_the_document_is_the_reports(report: Report, tmp_path: Path) -> None:
    report.write(tmp_path)
    written = json.loads((tmp_path / "report.json").read_text("ascii"))
    replays = written.pop("replays")
    assert written == json.loads(json.dumps(report.document()))
    assert replays[0].startswith(f"crosschip run {tmp_path}/1-TANH-tanh_0/model.chipm --devices ")


def test_the_page_is_one_file_that_says_all(report: Report, tmp_path: Path) -> None:
    page = to_html(report, ["once <more>"])
    for culprit in report.failing_operators:
        assert all(name in page for name in culprit.names)
    assert "once &lt;more&gt;" in page
    assert "only together" in page
    assert "<script" not in page
    pictures = [part.partition("</svg>")[0] for part in page.split("<svg")[1:]]
    assert len(pictures) == 2
    chart, _ = (check_picture(f"<svg{picture}</svg>") for picture in pictures)
    texts = [text.text for text in chart.iter(f"{SVG}text")]
    assert {"≤ 1e-9", "≥ 10, none", "operation, by its position in the model"} <= set(texts)
    assert {"0", "2", "20"} <= set(texts)
    assert f"error: {UNIT}" in texts
    assert {"TANH tanh_0", "SWISH mul_1", "SWISH mul_2", "RELU relu_0"} <= set(texts)
    assert page.count("<circle") == len(report.model.operations)


def test_where_nothing_can_be_written(report: Report, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file: cannot be written to"):
        report.write(tmp_path / "file")


def test_a_saved_model_is_loaded_like_others(tmp_path: Path) -> None:
    saved = to_bytes(network())
    path = tmp_path / "any.name"
    path.write_bytes(saved)
    for source in (path, saved, str(path)):
        assert contents(crosschip.load(source)) == contents(network())
    damaged = saved[:-1] + bytes([saved[-1] ^ 1])
    path.write_bytes(damaged)
    with pytest.raises(ModelFileError, match=r"any\.name: "):
        crosschip.load(path)
    with pytest.raises(ModelFileError, match="the saved model: "):
        crosschip.load(damaged)
