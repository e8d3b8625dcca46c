"""`crosschip ops`."""

from __future__ import annotations

from tests.cli.conftest import Crosschip

from crosschip.ops import operators


def test_the_list_as_a_document(crosschip: Crosschip) -> None:
    outcome = crosschip("ops", "--json", "--devices", "reference")
    assert (outcome.status, outcome.err) == (0, "")
    described = outcome.document
    assert [op["name"] for op in described] == list(operators())
    for op in described:
        assert op["devices"]["reference"] == "yes"
        assert all(op["devices"].values())
        assert op["core"] or op["decomposes"], op["name"]


def test_one_operator_as_a_document(crosschip: Crosschip) -> None:
    (op,) = crosschip("ops", "leaky_relu", "--json").document
    assert (op["name"], op["nnadapter"], op["nnrt"]) == ("LEAKY_RELU", "LEAKY_RELU", ["LEAKY_RELU"])
    assert (op["hdi"], op["onnx"]) == (["ACTIVATION"], ["LeakyRelu"])
    assert op["opsets"]["nnadapter"]["code"] == 40
    assert op["opsets"]["nnrt"][0]["code"] == 74
    assert [slot["name"] for slot in op["slots"]] == ["input", "alpha"]
    assert op["slots"][1]["default"] == 0.01


def test_the_list_in_a_table(crosschip: Crosschip) -> None:
    outcome = crosschip("ops")
    assert outcome.status == 0
    assert "LEAKY_RELU" in outcome.out


def test_one_operator_in_tables(crosschip: Crosschip) -> None:
    outcome = crosschip("ops", "LEAKY_RELU", "--devices", "onnxruntime")
    assert outcome.status == 0
    for text in ("alpha * input", "alpha", "NNRt", "onnxruntime"):
        assert text in outcome.out


def test_an_unknown_operator_is_an_error(crosschip: Crosschip) -> None:
    outcome = crosschip("ops", "LEAKY")
    assert outcome.status == 1
    assert "no operator 'LEAKY'" in outcome.err
