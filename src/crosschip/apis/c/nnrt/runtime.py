"""Bindings of `libneural_network_runtime.so`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crosschip.apis import nnrt as api
from crosschip.apis.c.handles import HANDLES
from crosschip.apis.c.nnrt.arguments import NNRtBindings
from crosschip.apis.nnrt import OH_NN_Memory, OH_NNExecutor
from crosschip.apis.nnrt import OH_NN_ReturnCode as Code

__all__ = ["RuntimeBindings"]


class RuntimeBindings(NNRtBindings):
    """The functions that build models, and the deprecated ones."""

    # Quantization parameters.

    def OH_NNQuantParam_Create(self) -> int:
        return self.handle(api.OH_NNQuantParam_Create())

    def OH_NNQuantParam_SetScales(self, params: int, scales: Any, count: int) -> Code:
        values = self.numbers("scales", scales, count)
        return api.OH_NNQuantParam_SetScales(HANDLES.get(params), values)

    def OH_NNQuantParam_SetZeroPoints(self, params: int, zeros: Any, count: int) -> Code:
        values = self.numbers("zeroPoints", zeros, count)
        return api.OH_NNQuantParam_SetZeroPoints(HANDLES.get(params), values)

    def OH_NNQuantParam_SetNumBits(self, params: int, bits: Any, count: int) -> Code:
        values = self.numbers("numBits", bits, count)
        return api.OH_NNQuantParam_SetNumBits(HANDLES.get(params), values)

    def OH_NNQuantParam_Destroy(self, params: Any) -> Any:
        return self.destroy_stored("quantParams", params, api.OH_NNQuantParam_Destroy)

    # Models.

    def OH_NNModel_Construct(self) -> int:
        return self.handle(api.OH_NNModel_Construct())

    def OH_NNModel_Destroy(self, model: Any) -> None:
        self.destroy_stored("model", model, api.OH_NNModel_Destroy)

    def OH_NNModel_AddTensorToModel(self, model: int, desc: int) -> Code:
        return api.OH_NNModel_AddTensorToModel(HANDLES.get(model), HANDLES.get(desc))

    def OH_NNModel_AddTensor(self, model: int, tensor: Any) -> Code:
        object_ = HANDLES.get(model)
        return api.OH_NNModel_AddTensor(object_, self.tensor(tensor))  # type: ignore[arg-type]

    def OH_NNModel_SetTensorData(self, model: int, index: int, buffer: Any, length: int) -> Code:
        self.check_not_null(dataBuffer=buffer)
        memory = self.memory("dataBuffer", buffer, length)
        return api.OH_NNModel_SetTensorData(HANDLES.get(model), index, memory)

    def OH_NNModel_SetTensorQuantParams(self, model: int, index: int, params: int) -> Code:
        object_ = HANDLES.get(model)
        return api.OH_NNModel_SetTensorQuantParams(object_, index, HANDLES.get(params))

    def OH_NNModel_SetTensorType(self, model: int, index: int, type_: Any) -> Code:
        return api.OH_NNModel_SetTensorType(HANDLES.get(model), index, type_)

    def OH_NNModel_AddOperation(
        self, model: int, code: Any, parameters: Any, inputs: Any, outputs: Any
    ) -> Code:
        return api.OH_NNModel_AddOperation(
            HANDLES.get(model),
            code,
            self.indices("paramIndices", parameters),  # type: ignore[arg-type]
            self.indices("inputIndices", inputs),  # type: ignore[arg-type]
            self.indices("outputIndices", outputs),  # type: ignore[arg-type]
        )

    def OH_NNModel_SpecifyInputsAndOutputs(self, model: int, inputs: Any, outputs: Any) -> Code:
        return api.OH_NNModel_SpecifyInputsAndOutputs(
            HANDLES.get(model),
            self.indices("inputIndices", inputs),  # type: ignore[arg-type]
            self.indices("outputIndices", outputs),  # type: ignore[arg-type]
        )

    def OH_NNModel_Finish(self, model: int) -> Code:
        return api.OH_NNModel_Finish(HANDLES.get(model))

    def OH_NNModel_GetAvailableOperations(
        self, model: int, device: int, supported: Any, count: Any
    ) -> Code:
        self.check_points_to_null(isSupported=supported)
        self.check_not_null(opCount=count)
        code, support = api.OH_NNModel_GetAvailableOperations(HANDLES.get(model), device)
        if support is not None:
            supported[0] = self.store_array(model, "supported", "bool[]", support)
            count[0] = len(support)
        self.end_runs_first()
        return code

    # Deprecated functions.

    def OH_NNExecutor_SetInput(
        self, executor: int, index: int, tensor: Any, buffer: Any, length: int
    ) -> Code:
        memory = self.memory("dataBuffer", buffer, length)
        object_ = HANDLES.get(executor)
        return api.OH_NNExecutor_SetInput(object_, index, self.tensor(tensor), memory)  # type: ignore[arg-type]

    def OH_NNExecutor_SetOutput(self, executor: int, index: int, buffer: Any, length: int) -> Code:
        memory = self.memory("dataBuffer", buffer, length)
        return api.OH_NNExecutor_SetOutput(HANDLES.get(executor), index, memory)

    def OH_NNExecutor_Run(self, executor: int) -> Code:
        return api.OH_NNExecutor_Run(HANDLES.get(executor))

    def OH_NNExecutor_AllocateInputMemory(self, executor: int, index: int, length: int) -> Any:
        return self._allocate(executor, index, length, api.OH_NNExecutor_AllocateInputMemory)

    def OH_NNExecutor_AllocateOutputMemory(self, executor: int, index: int, length: int) -> Any:
        return self._allocate(executor, index, length, api.OH_NNExecutor_AllocateOutputMemory)

    def OH_NNExecutor_DestroyInputMemory(self, executor: int, index: int, memory: Any) -> None:
        self._free(executor, index, memory, api.OH_NNExecutor_DestroyInputMemory)

    def OH_NNExecutor_DestroyOutputMemory(self, executor: int, index: int, memory: Any) -> None:
        self._free(executor, index, memory, api.OH_NNExecutor_DestroyOutputMemory)

    def OH_NNExecutor_SetInputWithMemory(
        self, executor: int, index: int, tensor: Any, memory: Any
    ) -> Code:
        return api.OH_NNExecutor_SetInputWithMemory(
            HANDLES.get(executor),
            index,
            self.tensor(tensor),  # type: ignore[arg-type]
            self._memory(executor, memory),  # type: ignore[arg-type]
        )

    def OH_NNExecutor_SetOutputWithMemory(self, executor: int, index: int, memory: Any) -> Code:
        allocated = self._memory(executor, memory)
        object_ = HANDLES.get(executor)
        return api.OH_NNExecutor_SetOutputWithMemory(object_, index, allocated)  # type: ignore[arg-type]

    def _allocate(
        self, executor: int, index: int, length: int, allocate: Callable[..., OH_NN_Memory | None]
    ) -> Any:
        memory = allocate(HANDLES.get(executor), index, length)
        if memory is None:
            return self.ffi.NULL
        elements = self.ffi.from_buffer(memory.data, require_writable=True)
        structure = self.ffi.new("OH_NN_Memory *", {"data": elements, "length": length})
        HANDLES.buffers_of(executor)[self._address(structure)] = (memory, structure, elements)
        return structure

    def _free(self, executor: int, index: int, pointer: Any, free: Callable[..., object]) -> None:
        self.check_not_null(memory=pointer)
        memory = self._memory(executor, pointer[0])
        object_ = HANDLES.get(executor)
        free(object_, index, memory)
        if memory is not None and not any(
            memory is other for memories in object_.memories.values() for other in memories
        ):
            del HANDLES.buffers_of(executor)[self._address(pointer[0])]
            pointer[0] = self.ffi.NULL

    def _memory(self, executor: int, pointer: Any) -> OH_NN_Memory | None:
        """Return the executor's memory at a pointer; `None` for any other pointer, unread."""
        if not isinstance(HANDLES.get(executor), OH_NNExecutor):
            return None
        objects = HANDLES.buffers_of(executor).get(self._address(pointer))
        return None if objects is None else objects[0]

    def _address(self, pointer: Any) -> int:
        return int(self.ffi.cast("uintptr_t", pointer))
