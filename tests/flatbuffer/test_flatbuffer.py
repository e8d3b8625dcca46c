"""Tables in FlatBuffers: read back, as other libraries read them, and out of damaged files."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as litert
from hypothesis import given
from hypothesis import strategies as st

from crosschip.flatbuffer import Table, read, write
from crosschip.flatbuffer.schemas import tflite
from crosschip.flatbuffer.schemas.tflite import options, stablehlo_options
from crosschip.flatbuffer.table import Scalar, String, SubTable, SubTables, Union, Vector
from crosschip.ir import ModelFileError

_TABLES = [
    table
    for module in (tflite, options, stablehlo_options)
    for table in vars(module).values()
    if isinstance(table, type) and issubclass(table, Table) and table is not Table
]


def _values(table: type[Table], draw: random.Random, depth: int = 0) -> Any:
    """A table with random fields."""
    values: dict[str, Any] = {}
    for name, field in table._fields.items():
        if draw.random() < 0.3:
            continue
        if isinstance(field, Scalar):
            values[name] = draw.randrange(2) if field.type.size == 1 else draw.randrange(100)
        elif isinstance(field, String):
            values[name] = draw.choice(["", "x", "größer"])
        elif isinstance(field, Vector):
            values[name] = np.array([draw.randrange(2) for _ in range(draw.randrange(4))])
        elif depth < 4 and isinstance(field, SubTable):
            values[name] = _values(field.type, draw, depth + 1)
        elif depth < 4 and isinstance(field, SubTables):
            rows = range(draw.randrange(3))
            values[name] = [_values(field.type, draw, depth + 1) for _ in rows]
        elif depth < 4 and isinstance(field, Union):
            chosen = draw.choice(list(field.types.values()))
            values[name] = _values(chosen, draw, depth + 1)
    return table(**values)


def _plain(value: Any) -> Any:
    """A value without arrays, in which what is omitted is what is empty."""
    if isinstance(value, Table):
        fields = {name: _plain(getattr(value, name)) for name in value._fields}
        return type(value).__name__, fields
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    return [] if value == () else value


@pytest.mark.parametrize("table", _TABLES, ids=lambda table: table.__name__)
def test_tables_have_the_fields_that_litert_has(table: type[Table]) -> None:
    count = getattr(litert, f"{table.__name__}Start")
    builder = _Recorder()
    count(builder)
    assert builder.count == table._field_numbers


class _Recorder:
    count = 0

    def StartObject(self, count: int) -> None:
        self.count = count


@given(st.integers(0, 2**32))
def test_what_is_written_is_read_back_by_us_and_by_litert(seed: int) -> None:
    model = _values(tflite.Model, random.Random(seed))
    data = write(model, tflite.IDENTIFIER)
    assert _plain(read(tflite.Model, data, "x", (tflite.IDENTIFIER,))) == _plain(model)
    theirs = litert.ModelT.InitFromPackedBuf(data)
    assert len(theirs.subgraphs or ()) == len(model.subgraphs)
    for subgraph, other in zip(model.subgraphs, theirs.subgraphs or (), strict=True):
        for tensor, its in zip(subgraph.tensors, other.tensors or (), strict=True):
            assert (tensor.name or "") == (its.name or b"").decode()
            assert tensor.buffer == its.buffer
        for operator, its in zip(subgraph.operators, other.operators or (), strict=True):
            chosen = operator.builtin_options
            name = type(its.builtinOptions).__name__.removesuffix("T")
            assert name == ("None" if chosen is None else type(chosen).__name__) or chosen is None


@given(st.integers(0, 2**32))
def test_damaged_files_raise_our_error_only(seed: int) -> None:
    draw = random.Random(seed)
    data = bytearray(write(_values(tflite.Model, draw), tflite.IDENTIFIER))
    for _ in range(draw.randrange(1, 6)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    if draw.random() < 0.3:
        del data[draw.randrange(len(data)) :]
    with suppress(ModelFileError):
        repr(read(tflite.Model, bytes(data), "x"))


def test_a_table_that_is_referred_to_without_end_is_refused() -> None:
    """Each level of the file has two references to the next: 2**40 tables in some hundred bytes."""

    class Level(Table):
        pass

    fields = {"left": SubTable(Level), "right": SubTable(Level)}
    for name, field in fields.items():
        field.__set_name__(Level, name)
        setattr(Level, name, field)
    fields["right"].number = 1
    Level._fields, Level._field_numbers = fields, 2
    level = Level()
    for _ in range(40):
        level = Level(left=level, right=level)
    with pytest.raises(ModelFileError, match="used too often"):
        repr(read(Level, write(level), "x"))


def test_another_identifier_is_refused() -> None:
    with pytest.raises(ModelFileError, match="x: its identifier is not TFL3: it is no such file"):
        read(tflite.Model, write(tflite.Model()), "x", (tflite.IDENTIFIER,))


def test_an_unknown_field_is_an_error() -> None:
    with pytest.raises(TypeError, match="Model has no field verison"):
        tflite.Model(verison=3)
