"""Adapter from a crosschip device to versions 2.0 and 2.1 of the driver interface."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property

from crosschip.apis.nnrt.hdi.v1_0.chip import AnyChip, AnyPrepared
from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError, invalid, unsupported, with_codes
from crosschip.apis.nnrt.hdi.v1_0.types import IOTensor, SharedBuffer
from crosschip.apis.nnrt.hdi.v2_1.interface import HdiErrors, INnrtDevice, IPreparedModel
from crosschip.apis.nnrt.hdi.v2_1.nodes import V2_0, V2_1
from crosschip.apis.nnrt.hdi.v2_1.ranges import Bounds, Range, dynamic_ranges
from crosschip.apis.nnrt.hdi.v2_1.types import ModelConfig, NNRT_ReturnCode
from crosschip.hal import Options, Program
from crosschip.ir import Dim, Model
from crosschip.ir.dimension import name_of

logger = logging.getLogger("crosschip")

_MAX_SIZE = 2**31 - 1
"""The interface's maximum size of an axis."""


class Chip(HdiErrors, AnyChip[ModelConfig, IPreparedModel], INnrtDevice):
    """A crosschip device as an `INnrtDevice` of version 2.1; see `AnyChip`.

    An offline model is a result of `IPreparedModel.ExportModelCache`. The extension `ModelName`
    sets the model's name; other extensions are logged. Dynamic dimensions are named `tensor_0_1`
    and so on, after the index of the tensor in the model and the axis; ranges in the options refer
    to these names.
    """

    nodes = V2_1

    @with_codes
    def PrepareModelFromModelCache(
        self, modelCache: Sequence[SharedBuffer], config: ModelConfig
    ) -> IPreparedModel:
        return self._load(modelCache, config, NNRT_ReturnCode.NNRT_INVALID_MODEL_CACHE)

    @with_codes
    def PrepareOfflineModel(
        self, modelCache: Sequence[SharedBuffer], config: ModelConfig
    ) -> IPreparedModel:
        if not self.IsModelCacheSupported():
            raise unsupported(f"{self.GetDeviceName()} takes no offline models")
        return self._load(modelCache, config, NNRT_ReturnCode.NNRT_INVALID_MODEL)

    def _load(
        self, saved: Sequence[SharedBuffer], config: ModelConfig, damaged: NNRT_ReturnCode
    ) -> IPreparedModel:
        """Load a saved model; raise `HdiError` with the code `damaged` if it is invalid."""
        _model_name(config.extensions)
        try:
            return super().PrepareModelFromModelCache(saved, config)
        except HdiError as error:
            if error.code not in _INVALID:
                raise
            raise HdiError(damaged, str(error)) from error

    def _renamed(self, model: Model, config: ModelConfig) -> Model:
        name = _model_name(config.extensions)
        if name is None:
            return model
        return Model(name, model.inputs, model.operations, model.outputs)

    def _prepared(
        self, program: Program, model: Model, options: Options, config: ModelConfig
    ) -> IPreparedModel:
        return PreparedModel(self, program, model, options, config.priority)


class ChipV2_0(Chip):
    """A crosschip device as an `INnrtDevice` of version 2.0."""

    nodes = V2_0


class PreparedModel(HdiErrors, AnyPrepared, IPreparedModel):
    """A program of a crosschip device as an `IPreparedModel`."""

    @with_codes
    def Run(
        self, inputs: Sequence[IOTensor], outputs: Sequence[IOTensor]
    ) -> Sequence[Sequence[int]]:
        for range_ in self._dynamic_ranges:
            index, axis = range_.position, range_.axis
            if index < len(inputs) and axis < len(inputs[index].dimensions):
                range_.check(inputs[index].dimensions[axis])
        sizes, written = self.run(inputs, outputs)
        for tensor, shape, was_written in zip(outputs, sizes, written, strict=True):
            if not was_written:
                raise HdiError(
                    NNRT_ReturnCode.NNRT_INSUFFICIENT_BUFFER,
                    f"output {tensor.name!r}: there are {tensor.data.dataSize} bytes for "
                    f"{list(shape)}",
                )
        return sizes

    def GetInputDimRanges(self) -> tuple[Bounds, Bounds]:
        return self._ranges

    @cached_property
    def _ranges(self) -> tuple[Bounds, Bounds]:
        bounds = {item.name: (item.least, item.most) for item in self._options.sizes.ranges}
        ranges = [[_range(size, bounds) for size in type_.shape or ()] for type_ in self._inputs]
        least, most = ([[pair[end] for pair in pairs] for pairs in ranges] for end in (0, 1))
        return least, most

    @cached_property
    def _dynamic_ranges(self) -> Sequence[Range]:
        return dynamic_ranges(self._model.inputs, *self._ranges)


_INVALID = (NNRT_ReturnCode.NNRT_INVALID_PARAMETER, NNRT_ReturnCode.NNRT_INVALID_MODEL_CACHE)
"""The codes for saved models that are damaged, or another device's."""


def _model_name(extensions: Mapping[str, bytes]) -> str | None:
    """Return the extension `ModelName`; log the others.

    Raises:
        HdiError: the name is not UTF-8.
    """
    ignored = sorted(extensions.keys() - {"ModelName"})
    if ignored:
        logger.info("extensions that mean nothing to the device: %s", ", ".join(ignored))
    try:
        return extensions["ModelName"].decode() if "ModelName" in extensions else None
    except UnicodeDecodeError:
        raise invalid("the extension ModelName is not text in UTF-8") from None


def _range(size: Dim, bounds: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Return a size's minimum and maximum."""
    if isinstance(size, int):
        return size, size
    return bounds.get(name_of(size) or "", (0, _MAX_SIZE))
