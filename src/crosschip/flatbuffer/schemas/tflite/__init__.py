"""TensorFlow Lite's schema: the tables of a `.tflite` file.

Source: schema.fbs of LiteRT 2.3.
"""

from __future__ import annotations

from crosschip.flatbuffer import (
    BOOL,
    FLOAT32,
    INT8,
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
    table,
    tables,
    union,
    vector,
)
from crosschip.flatbuffer.schemas.tflite.options import BUILTIN_OPTIONS
from crosschip.flatbuffer.schemas.tflite.stablehlo_options import BUILTIN_OPTIONS2

IDENTIFIER = b"TFL3"
"""The identifier of `.tflite` files."""


class CustomQuantization(Table):
    __slots__ = ()
    custom = vector(UINT8)


class BlockwiseQuantization(Table):
    __slots__ = ()
    scales = scalar(INT32)
    zero_points = scalar(INT32)
    block_size = scalar(INT32)
    block_shape = vector(INT32)


class MultiAxisQuantization(Table):
    __slots__ = ()
    scales = scalar(INT32)
    zero_points = scalar(INT32)
    block_size = scalar(INT32)
    quantized_dimensions = vector(INT32)


class Int32Vector(Table):
    __slots__ = ()
    values = vector(INT32)


class Uint16Vector(Table):
    __slots__ = ()
    values = vector(UINT16)


class Uint8Vector(Table):
    __slots__ = ()
    values = vector(UINT8)


QUANTIZATION_DETAILS: dict[int, type[Table]] = {
    1: CustomQuantization,
    2: BlockwiseQuantization,
    3: MultiAxisQuantization,
}


class QuantizationParameters(Table):
    __slots__ = ()
    min = vector(FLOAT32)
    max = vector(FLOAT32)
    scale = vector(FLOAT32)
    zero_point = vector(INT64)
    details = union(QUANTIZATION_DETAILS)
    quantized_dimension = scalar(INT32)


SPARSE_INDEX_VECTOR: dict[int, type[Table]] = {
    1: Int32Vector,
    2: Uint16Vector,
    3: Uint8Vector,
}


class DimensionMetadata(Table):
    __slots__ = ()
    format = scalar(INT8)
    dense_size = scalar(INT32)
    array_segments = union(SPARSE_INDEX_VECTOR)
    array_indices = union(SPARSE_INDEX_VECTOR)


class SparsityParameters(Table):
    __slots__ = ()
    traversal_order = vector(INT32)
    block_map = vector(INT32)
    dim_metadata = tables(DimensionMetadata)


class VariantSubType(Table):
    __slots__ = ()
    shape = vector(INT32)
    type = scalar(INT8)
    has_rank = scalar(BOOL, False)


class Tensor(Table):
    __slots__ = ()
    shape = vector(INT32)
    type = scalar(INT8)
    buffer = scalar(UINT32)
    name = string()
    quantization = table(QuantizationParameters)
    is_variable = scalar(BOOL, False)
    sparsity = table(SparsityParameters)
    shape_signature = vector(INT32)
    has_rank = scalar(BOOL, False)
    variant_tensors = tables(VariantSubType)
    external_buffer = scalar(UINT32)


class OperatorCode(Table):
    __slots__ = ()
    deprecated_builtin_code = scalar(INT8)
    custom_code = string()
    version = scalar(INT32, 1)
    builtin_code = scalar(INT32)


class Operator(Table):
    __slots__ = ()
    opcode_index = scalar(UINT32)
    inputs = vector(INT32)
    outputs = vector(INT32)
    builtin_options = union(BUILTIN_OPTIONS)
    custom_options = vector(UINT8)
    custom_options_format = scalar(INT8)
    mutating_variable_inputs = vector(BOOL)
    intermediates = vector(INT32)
    large_custom_options_offset = scalar(UINT64)
    large_custom_options_size = scalar(UINT64)
    builtin_options2 = union(BUILTIN_OPTIONS2)
    debug_metadata_index = scalar(INT32, -1)


class SubGraph(Table):
    __slots__ = ()
    tensors = tables(Tensor)
    inputs = vector(INT32)
    outputs = vector(INT32)
    operators = tables(Operator)
    name = string()
    debug_metadata_index = scalar(INT32, -1)


class Buffer(Table):
    __slots__ = ()
    data = vector(UINT8, 16)
    offset = scalar(UINT64)
    size = scalar(UINT64)


class ExternalBufferGroup(Table):
    __slots__ = ()
    name = string()


class ExternalBuffer(Table):
    __slots__ = ()
    id = scalar(UINT32)
    group = scalar(UINT32)
    offset = scalar(UINT64)
    length = scalar(UINT64)
    packing = string()


class Metadata(Table):
    __slots__ = ()
    name = string()
    buffer = scalar(UINT32)


class TensorMap(Table):
    __slots__ = ()
    name = string()
    tensor_index = scalar(UINT32)


class SignatureDef(Table):
    __slots__ = ()
    inputs = tables(TensorMap)
    outputs = tables(TensorMap)
    signature_key = string()
    unused_3 = deprecated()
    subgraph_index = scalar(UINT32)


class Model(Table):
    __slots__ = ()
    version = scalar(UINT32)
    operator_codes = tables(OperatorCode)
    subgraphs = tables(SubGraph)
    description = string()
    buffers = tables(Buffer)
    metadata_buffer = vector(INT32)
    metadata = tables(Metadata)
    signature_defs = tables(SignatureDef)
    external_buffer_groups = tables(ExternalBufferGroup)
    external_buffers = tables(ExternalBuffer)
