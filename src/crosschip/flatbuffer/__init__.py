"""Files in the FlatBuffers format: tables declared once, from which reading and writing derive.

    class Tensor(Table):
        shape = vector(INT32)
        name = string()

    tensor = read(Tensor, data, "file.bin")
    data = write(Tensor(shape=[1, 3], name="x"))

Reading is lazy and checks each offset and length against the file, so that damaged files raise
`ModelFileError` and nothing else. Writing uses the flatbuffers package.
"""

from crosschip.flatbuffer.reading import read
from crosschip.flatbuffer.table import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Table,
    deprecated,
    scalar,
    string,
    strings,
    table,
    tables,
    union,
    vector,
)
from crosschip.flatbuffer.writing import write

__all__ = [
    "BOOL",
    "FLOAT32",
    "FLOAT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "Table",
    "deprecated",
    "read",
    "scalar",
    "string",
    "strings",
    "table",
    "tables",
    "union",
    "vector",
    "write",
]
