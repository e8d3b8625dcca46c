"""The metadata schema of TensorFlow Lite: what a model says about its inputs and outputs.

Source: metadata_schema.fbs of MediaPipe 0.10.
"""

from __future__ import annotations

from crosschip.flatbuffer import (
    FLOAT32,
    INT8,
    INT32,
    UINT8,
    UINT32,
    Table,
    scalar,
    string,
    strings,
    table,
    tables,
    union,
    vector,
)

IDENTIFIER = b"M001"
"""The identifier of metadata."""


class AssociatedFile(Table):
    __slots__ = ()
    name = string()
    description = string()
    type = scalar(INT8)
    locale = string()
    version = string()


class FeatureProperties(Table):
    __slots__ = ()


class ImageSize(Table):
    __slots__ = ()
    width = scalar(UINT32)
    height = scalar(UINT32)


class ImageProperties(Table):
    __slots__ = ()
    color_space = scalar(INT8)
    default_size = table(ImageSize)


class BoundingBoxProperties(Table):
    __slots__ = ()
    index = vector(UINT32)
    type = scalar(INT8)
    coordinate_type = scalar(INT8)


class AudioProperties(Table):
    __slots__ = ()
    sample_rate = scalar(UINT32)
    channels = scalar(UINT32)


class ValueRange(Table):
    __slots__ = ()
    min = scalar(INT32)
    max = scalar(INT32)


class Content(Table):
    __slots__ = ()
    content_properties = union(
        {1: FeatureProperties, 2: ImageProperties, 3: BoundingBoxProperties, 4: AudioProperties}
    )
    range = table(ValueRange)


class NormalizationOptions(Table):
    __slots__ = ()
    mean = vector(FLOAT32)
    std = vector(FLOAT32)


class ScoreCalibrationOptions(Table):
    __slots__ = ()
    score_transformation = scalar(INT8)
    default_score = scalar(FLOAT32)


class ScoreThresholdingOptions(Table):
    __slots__ = ()
    global_score_threshold = scalar(FLOAT32)


class BertTokenizerOptions(Table):
    __slots__ = ()
    vocab_file = tables(AssociatedFile)


class SentencePieceTokenizerOptions(Table):
    __slots__ = ()
    sentence_piece_model = tables(AssociatedFile)
    vocab_file = tables(AssociatedFile)


class RegexTokenizerOptions(Table):
    __slots__ = ()
    delim_regex_pattern = string()
    vocab_file = tables(AssociatedFile)


class ProcessUnit(Table):
    __slots__ = ()
    options = union(
        {
            1: NormalizationOptions,
            2: ScoreCalibrationOptions,
            3: ScoreThresholdingOptions,
            4: BertTokenizerOptions,
            5: SentencePieceTokenizerOptions,
            6: RegexTokenizerOptions,
        }
    )


class Stats(Table):
    __slots__ = ()
    max = vector(FLOAT32)
    min = vector(FLOAT32)


class TensorGroup(Table):
    __slots__ = ()
    name = string()
    tensor_names = strings()


class TensorMetadata(Table):
    __slots__ = ()
    name = string()
    description = string()
    dimension_names = strings()
    content = table(Content)
    process_units = tables(ProcessUnit)
    stats = table(Stats)
    associated_files = tables(AssociatedFile)


class CustomMetadata(Table):
    __slots__ = ()
    name = string()
    data = vector(UINT8, 16)


class SubGraphMetadata(Table):
    __slots__ = ()
    name = string()
    description = string()
    input_tensor_metadata = tables(TensorMetadata)
    output_tensor_metadata = tables(TensorMetadata)
    associated_files = tables(AssociatedFile)
    input_process_units = tables(ProcessUnit)
    output_process_units = tables(ProcessUnit)
    input_tensor_groups = tables(TensorGroup)
    output_tensor_groups = tables(TensorGroup)
    custom_metadata = tables(CustomMetadata)


class ModelMetadata(Table):
    __slots__ = ()
    name = string()
    description = string()
    version = string()
    subgraph_metadata = tables(SubGraphMetadata)
    author = string()
    license = string()
    associated_files = tables(AssociatedFile)
    min_parser_version = string()
