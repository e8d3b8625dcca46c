"""`crosschip opdef`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Crosschip

from crosschip.opdef.documents import parse, read
from crosschip.ops import operators

CORPUS = Path(__file__).parents[1] / "opdef" / "corpus"
PLAIN = CORPUS / "right" / "plain.xml"
RANK = CORPUS / "wrong" / "rank.xml"
VENDOR = CORPUS / "vendor" / "lists_of_any_length.xml"
TWO = CORPUS / "right" / "two_operators.xml"


def test_validate_names_what_is_wrong(crosschip: Crosschip) -> None:
    outcome = crosschip("opdef", "validate", PLAIN, RANK)
    assert (outcome.status, outcome.err) == (1, "")
    assert f"{PLAIN}: package Filters, 1 operators\n" in outcome.out
    assert f"{RANK}:11:21: Rank: '5D' is not SCALAR, 1D, 2D, 3D, 4D or ND\n" in outcome.out


def test_validate_as_a_document(crosschip: Crosschip) -> None:
    outcome = crosschip("opdef", "validate", PLAIN, RANK, "--json")
    assert outcome.status == 1
    assert outcome.document == {
        "files": [{"file": str(PLAIN), "package": "Filters", "operators": ["Blur"]}],
        "problems": [
            {
                "file": str(RANK),
                "line": 11,
                "column": 21,
                "message": "Rank: '5D' is not SCALAR, 1D, 2D, 3D, 4D or ND",
            }
        ],
        "warnings": [],
    }
    assert crosschip("opdef", "validate", PLAIN, "--json").status == 0


def test_validate_together(crosschip: Crosschip, tmp_path: Path) -> None:
    other = tmp_path / "other.xml"
    other.write_text(PLAIN.read_text("utf-8").replace('Domain="example"', 'Domain="b"'), "utf-8")
    assert crosschip("opdef", "validate", PLAIN, other).status == 0
    outcome = crosschip("opdef", "validate", "--together", PLAIN, other)
    assert outcome.status == 1
    assert f"{other}:2:1: the package 'Filters' has Domain 'b' here, but 'exa" in outcome.out


def test_show(crosschip: Crosschip) -> None:
    outcome = crosschip("opdef", "show", TWO)
    assert outcome.status == 0
    for text in ("Filters 1.0, domain 'example'", "Blur", "[radius]", "Sharpen", "HTP", "CPU"):
        assert text in outcome.out
    (package,) = crosschip("opdef", "show", TWO, "--json").document
    assert [op["name"] for op in package["definitions"]["op_defs"]] == ["Blur", "Sharpen"]
    assert package["supplements"][0]["op_defs"][0]["parameters"] == [
        {"name": "radius", "only_default": True}
    ]


def test_show_one_operator(crosschip: Crosschip) -> None:
    outcome = crosschip(
        "opdef", "show", CORPUS / "right" / "all_elements.xml", "--operator", "Blur"
    )
    assert outcome.status == 0
    for text in ("as far as <radius>", "dtype(out[0]) == dtype(in[0])", "only its default", "HTP"):
        assert text in outcome.out
    (one,) = crosschip("opdef", "show", PLAIN, "--operator", "Blur", "--json").document
    assert (one["package"], one["backends"]) == ("Filters", ["HTP"])
    assert list(one["supplements"]) == ["HTP"]
    wrong = crosschip("opdef", "show", PLAIN, "--operator", "Blue")
    assert wrong.status == 1
    assert "no operator 'Blue' (did you mean 'Blur'?)" in wrong.err


def test_show_refuses_what_is_wrong(crosschip: Crosschip) -> None:
    outcome = crosschip("opdef", "show", RANK)
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith(f"error: {RANK}:11:21: Rank")


def test_diff(crosschip: Crosschip) -> None:
    outcome = crosschip("opdef", "diff", PLAIN, TWO)
    assert outcome.status == 1
    assert "OpDef Sharpen" in outcome.out
    (one,) = crosschip("opdef", "diff", TWO, PLAIN, "--json").document
    assert (one["path"], one["how"], one["before"]["name"]) == (
        "OpDef Sharpen",
        "removed",
        "Sharpen",
    )
    same = crosschip("opdef", "diff", PLAIN, CORPUS / "right" / "crlf.xml")
    assert (same.status, same.out) == (0, "no differences\n")


def test_export(crosschip: Crosschip, tmp_path: Path) -> None:
    path = tmp_path / "standard.xml"
    outcome = crosschip("opdef", "export", "--device", "reference", "--output", path, "--json")
    assert outcome.status == 0
    count = len(operators())
    assert outcome.document == {
        "operators": count,
        "devices": {"reference": count},
        "file": str(path),
    }
    assert list(read(path).collection.op_defs) == list(operators())


@pytest.mark.slow
def test_export_to_standard_output(crosschip: Crosschip) -> None:
    plain = crosschip("opdef", "export")
    assert plain.status == 0
    assert parse(plain.out.encode()).collection.supplements == ()
    assert crosschip("opdef", "export", "--json").document["document"] == plain.out


def test_export_says_what_it_cannot(crosschip: Crosschip, tmp_path: Path) -> None:
    assert "no device" in crosschip("opdef", "export", "--device", "nothing").err
    outcome = crosschip("opdef", "export", "--output", tmp_path / "no" / "standard.xml")
    assert outcome.status == 1
    assert "standard.xml: cannot be written: No such file or directory" in outcome.err


def test_validate_documents_that_vendors_write(crosschip: Crosschip) -> None:
    outcome = crosschip("opdef", "validate", VENDOR)
    assert outcome.status == 0
    assert f"{VENDOR}: package Filters, 1 operators\n" in outcome.out
    document = crosschip("opdef", "validate", VENDOR, "--json").document
    assert not document["problems"]
    assert [warning["line"] for warning in document["warnings"]] == [15, 32, 41]
    strict = crosschip("opdef", "validate", "--strict", VENDOR)
    assert strict.status == 1
    assert f"{VENDOR}:41:13: Sharpen.stride: its default has 1 axes, but its r" in strict.out
