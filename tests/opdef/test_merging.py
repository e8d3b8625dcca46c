"""Documents of one package become one collection; where they contradict, both places are named."""

from __future__ import annotations

import pytest
from tests.opdef.documents import CORPUS

from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.definitions import OpDefCollection
from crosschip.opdef.documents import parse
from crosschip.opdef.merging import merge_collections
from crosschip.opdef.problems import OpDefError

PLAIN = (CORPUS / "right" / "plain.xml").read_text("utf-8")


def changed(name: str, *replacements: tuple[str, str]) -> OpDefCollection:
    text = PLAIN
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return parse(text.encode(), name).collection


def no_htp(text: str) -> tuple[str, str]:
    """Return the whole supplement of HTP, to be replaced."""
    begin, end = text.index("    <SupplementalOpDefList"), text.index("</OpDefCollection>")
    return text[begin:end], ""


def test_the_same_twice_is_the_same() -> None:
    one = changed("a.xml")
    assert merge_collections([one, changed("b.xml")]) == (one,)


def test_packages_stay_apart() -> None:
    one, other = changed("a.xml"), changed("b.xml", ("Filters", "Edges"))
    assert [c.package_name for c in merge_collections([other, one, other])] == ["Edges", "Filters"]


def test_operators_and_backends_are_put_together() -> None:
    one = changed("htp.xml")
    cpu = changed("cpu.xml", ("<SupportedBackend>HTP", "<SupportedBackend>CPU"), no_htp(PLAIN))
    more = changed(
        "more.xml", (">Blur<", ">Sharpen<"), ("QNN_DATATYPE_FLOAT_16", "QNN_DATATYPE_INT_8")
    )
    (package,) = merge_collections([one, cpu, more])
    assert package.op_defs["Blur"].backends == ("HTP", "CPU")
    assert list(package.op_defs) == ["Blur", "Sharpen"]
    (htp,) = package.supplements
    assert htp.supported is not None
    assert htp.supported.names == ("Blur", "Sharpen")
    types = [supplement.inputs[0].datatypes for supplement in htp.op_defs]
    assert types == [(Datatype.FLOAT_16,), (Datatype.INT_8,)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'Domain="example"',
            'Domain="other"',
            "b.xml:2:1: the package 'Filters' has Domain 'other' here, but 'example' at a.xml:2:1",
        ),
        (
            "<Rank>4D",
            "<Rank>3D",
            "b.xml:4:9: the operator 'Blur' is defined otherwise at a.xml:4:9: Input in[0]/Shape/"
            "Rank is changed; what depends on the backend stands in SupplementalOpDefs",
        ),
        (
            "QNN_DATATYPE_FLOAT_16",
            "QNN_DATATYPE_INT_16",
            "b.xml:39:9: HTP's supplement to 'Blur' is defined otherwise at a.xml:39:9: "
            "Input in[0]/Datatype is removed; what depends on the backend stands in "
            "SupplementalOpDefs",
        ),
    ],
)
def test_a_contradiction_has_both_places(old: str, new: str, message: str) -> None:
    with pytest.raises(OpDefError) as caught:
        merge_collections([changed("a.xml"), changed("b.xml", (old, new))])
    assert str(caught.value) == message


def test_rules_hold_for_all_together() -> None:
    """A datatype is left to the backends, and another file has one that says nothing of it."""
    specific = PLAIN.replace("<Datatype>QNN_DATATYPE_FLOAT_32", "<Datatype>BACKEND_SPECIFIC", 1)
    dsp = specific.replace("HTP", "DSP")
    silent = specific.replace("HTP</S", "GPU</S").replace('Backend="HTP"', 'Backend="GPU"')
    one, other = (parse(text.encode(), "a.xml").collection for text in (specific, dsp))
    (package,) = merge_collections([one, other])
    assert package.op_defs["Blur"].backends == ("HTP", "DSP")
    with pytest.raises(OpDefError, match="for GPU says it"):
        parse(
            silent.replace("QNN_DATATYPE_FLOAT_16", "")
            .replace("                <Datatype></Datatype>\n", "")
            .encode()
        )
