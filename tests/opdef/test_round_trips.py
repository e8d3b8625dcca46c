"""Random collections are written and read again; random changes leave the rest of a file alone."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.opdef.strategies import OP_DEFS, collections

from crosschip.opdef.definitions import OpDef, OpDefCollection, OpDefList
from crosschip.opdef.differences import differences
from crosschip.opdef.documents import parse, write
from crosschip.opdef.merging import merge_collections


@settings(max_examples=30)
@given(collections())
def test_what_is_written_reads_the_same(collection: OpDefCollection) -> None:
    content = write(collection)
    document = parse(content)
    assert document.collection == collection
    assert document.write(collection) == content
    assert not list(differences(collection, document.collection))
    assert merge_collections([collection, document.collection]) == (collection,)


@settings(max_examples=30)
@given(collections(), collections(), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_a_document_with_another_content(
    first: OpDefCollection, second: OpDefCollection, newline: str, flat: bool
) -> None:
    """Whatever is edited into a document, in whatever layout, it then says."""
    text = write(first).decode()
    if flat:  # but for space between the tags of one element, which may be a text
        text = re.sub(r">\n *<(?!/)", "><", text)
    document = parse(text.replace("\n", newline).encode())
    assert document.collection == first
    made = document.write(second)
    assert parse(made).collection == second
    assert bool(list(differences(first, second))) == (first != second)


@settings(max_examples=20)
@given(collections(), OP_DEFS, st.data())
def test_an_operator_more_and_less_leaves_the_others(
    collection: OpDefCollection, op_def: OpDef, data: st.DataObject
) -> None:
    content = write(collection).replace(b"</Shape>", b"</Shape>  <!-- comment -->")
    op_defs = list(collection.definitions.op_defs)
    new = replace(op_def, name="longer_than_random_ones")
    op_defs.insert(data.draw(st.integers(0, len(op_defs))), new)
    longer = replace(collection, definitions=OpDefList(op_defs=tuple(op_defs)))
    made = parse(content).write(longer)
    assert parse(made).collection == longer
    assert made.count(b"<!-- comment -->") == content.count(b"<!-- comment -->")
    assert parse(made).write(collection) == content
