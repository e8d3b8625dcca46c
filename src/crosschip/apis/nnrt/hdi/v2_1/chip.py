"""A crosschip device as a device of versions 2.0 and 2.1, for programs that speak them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property

from crosschip.apis.nnrt.hdi.v1_0.chip import AnyChip
from crosschip.apis.nnrt.hdi.v1_0.failures import lacking, with_codes, wrong
from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError
from crosschip.apis.nnrt.hdi.v1_0.prepared import AnyPrepared
from crosschip.apis.nnrt.hdi.v1_0.types import IOTensor, SharedBuffer
from crosschip.apis.nnrt.hdi.v2_1.failures import Failing
from crosschip.apis.nnrt.hdi.v2_1.interface import INnrtDevice, IPreparedModel
from crosschip.apis.nnrt.hdi.v2_1.nodes import V2_0, V2_1
from crosschip.apis.nnrt.hdi.v2_1.ranges import Bounds, Range, open_ranges
from crosschip.apis.nnrt.hdi.v2_1.types import ModelConfig, NNRT_ReturnCode
from crosschip.hal import Options, Program
from crosschip.ir import Dim, Model
from crosschip.ir.dimension import name_of

logger = logging.getLogger("crosschip")

_FARTHEST = 2**31 - 1
"""The greatest size of a tensor of the interface."""


class Chip(Failing, AnyChip[ModelConfig, IPreparedModel], INnrtDevice):
    """A crosschip device as an `INnrtDevice` of version 2.1; most is said at `AnyChip`.

    An offline model is what `IPreparedModel.ExportModelCache` gave. Of extensions, `ModelName` is
    what the device calls the model; the others are logged. Open sizes are called `tensor_0_1` and
    so on, by the place of the tensor in the model and the axis: of these are the ranges in the
    options.
    """

    nodes = V2_1

    @with_codes
    def PrepareModelFromModelCache(
        self, modelCache: Sequence[SharedBuffer], config: ModelConfig
    ) -> IPreparedModel:
        return self._loaded(modelCache, config, NNRT_ReturnCode.NNRT_INVALID_MODEL_CACHE)

    @with_codes
    def PrepareOfflineModel(
        self, modelCache: Sequence[SharedBuffer], config: ModelConfig
    ) -> IPreparedModel:
        if not self.IsModelCacheSupported():
            raise lacking(f"{self.GetDeviceName()} takes no offline models")
        return self._loaded(modelCache, config, NNRT_ReturnCode.NNRT_INVALID_MODEL)

    def _loaded(
        self, saved: Sequence[SharedBuffer], config: ModelConfig, damaged: NNRT_ReturnCode
    ) -> IPreparedModel:
        """`AnyChip.PrepareModelFromModelCache`, with a code for what is not what a chip saved."""
        _heeded(config.extensions)
        try:
            return super().PrepareModelFromModelCache(saved, config)
        except HdiError as error:
            if error.code not in _UNSOUND:
                raise
            raise HdiError(damaged, str(error)) from error

    def _called(self, model: Model, config: ModelConfig) -> Model:
        name = _heeded(config.extensions)
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


class PreparedModel(Failing, AnyPrepared, IPreparedModel):
    """A program of a crosschip device as an `IPreparedModel`."""

    @with_codes
    def Run(
        self, inputs: Sequence[IOTensor], outputs: Sequence[IOTensor]
    ) -> Sequence[Sequence[int]]:
        for one in self._open_ranges:
            if one.place < len(inputs) and one.axis < len(inputs[one.place].dimensions):
                one.check(inputs[one.place].dimensions[one.axis])
        sizes, enough = self.run(inputs, outputs)
        for tensor, shape, was_written in zip(outputs, sizes, enough, strict=True):
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
        known = {one.name: (one.least, one.most) for one in self._options.sizes.ranges}
        ranges = [[_range(size, known) for size in type_.shape or ()] for type_ in self._inputs]
        least, most = ([[pair[end] for pair in pairs] for pairs in ranges] for end in (0, 1))
        return least, most

    @cached_property
    def _open_ranges(self) -> Sequence[Range]:
        return open_ranges(self._model.inputs, *self._ranges)


_UNSOUND = (NNRT_ReturnCode.NNRT_INVALID_PARAMETER, NNRT_ReturnCode.NNRT_INVALID_MODEL_CACHE)
"""The codes about saved models that are damaged, or of another device."""


def _heeded(extensions: Mapping[str, bytes]) -> str | None:
    """Return the name that extensions give a model.

    Raises:
        HdiError: it is no text.
    """
    ignored = sorted(extensions.keys() - {"ModelName"})
    if ignored:
        logger.info("extensions that mean nothing to the device: %s", ", ".join(ignored))
    try:
        return extensions["ModelName"].decode() if "ModelName" in extensions else None
    except UnicodeDecodeError:
        raise wrong("the extension ModelName is not text in UTF-8") from None


def _range(size: Dim, known: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Return the smallest and the greatest value of a size."""
    if isinstance(size, int):
        return size, size
    return known.get(name_of(size) or "", (0, _FARTHEST))
