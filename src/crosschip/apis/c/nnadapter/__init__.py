"""Bindings of `libnnadapter.so`: conversion of C's arguments and results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crosschip.apis import nnadapter as api
from crosschip.apis.c.bindings import Bindings
from crosschip.apis.c.handles import HANDLES
from crosschip.apis.c.nnadapter.access import Access
from crosschip.apis.c.nnadapter.types import Types
from crosschip.apis.nnadapter import NNAdapterResultCode as Code
from crosschip.apis.nnadapter.results import RESULTS

__all__ = ["NNAdapterBindings"]


class NNAdapterBindings(Bindings[Code]):
    """The functions of NNAdapter."""

    def __init__(self, ffi: Any, lib: Any) -> None:
        super().__init__(ffi, lib, RESULTS)
        self._types = Types(ffi)

    # NNAdapter and its devices.

    def NNAdapter_getVersion(self, version: Any) -> Code:
        self.check_not_null(version=version)
        return self.store(version, api.NNAdapter_getVersion())

    def NNAdapter_getDeviceCount(self, count: Any) -> Code:
        self.check_not_null(numDevices=count)
        return self.store(count, api.NNAdapter_getDeviceCount())

    def NNAdapterDevice_acquire(self, name: Any, device: Any) -> Code:
        self.check_not_null(name=name, device=device)
        return self.store_handle(device, api.NNAdapterDevice_acquire(self.text(name) or ""))

    def NNAdapterDevice_release(self, device: int) -> None:
        self.destroy(device, api.NNAdapterDevice_release)

    def NNAdapterDevice_getName(self, device: int, name: Any) -> Code:
        self.check_not_null(name=name)
        return self._store_text(name, device, api.NNAdapterDevice_getName)

    def NNAdapterDevice_getVendor(self, device: int, vendor: Any) -> Code:
        self.check_not_null(vendor=vendor)
        return self._store_text(vendor, device, api.NNAdapterDevice_getVendor)

    def NNAdapterDevice_getType(self, device: int, type_: Any) -> Code:
        self.check_not_null(type=type_)
        return self.store(type_, api.NNAdapterDevice_getType(HANDLES.get(device)))

    def NNAdapterDevice_getVersion(self, device: int, version: Any) -> Code:
        self.check_not_null(version=version)
        return self.store(version, api.NNAdapterDevice_getVersion(HANDLES.get(device)))

    def _store_text(
        self, pointer: Any, device: int, get: Callable[[Any], tuple[Code, Any]]
    ) -> Code:
        code, text = get(HANDLES.get(device))
        if text is not None:
            pointer[0] = self.store_text(device, text)
        return code

    # Contexts.

    def NNAdapterContext_create(
        self, devices: Any, count: int, properties: Any, callback: Any, context: Any
    ) -> Code:
        self.check_not_null(context=context)
        device_objects = self.objects("devices", devices, count)
        result = api.NNAdapterContext_create(
            device_objects, self.text(properties), callback or None
        )
        return self.store_handle(context, result)

    def NNAdapterContext_destroy(self, context: int) -> None:
        self.destroy(context, api.NNAdapterContext_destroy)

    # Models.

    def NNAdapterModel_create(self, model: Any) -> Code:
        self.check_not_null(model=model)
        return self.store_handle(model, api.NNAdapterModel_create())

    def NNAdapterModel_destroy(self, model: int) -> None:
        self.destroy(model, api.NNAdapterModel_destroy)

    def NNAdapterModel_finish(self, model: int) -> Code:
        return api.NNAdapterModel_finish(HANDLES.get(model))

    def NNAdapterModel_addOperand(self, model: int, type_: Any, operand: Any) -> Code:
        self.check_not_null(type=type_, operand=operand)
        result = api.NNAdapterModel_addOperand(HANDLES.get(model), self._types.read(type_))
        return self.store_handle(operand, result, parent=model)

    def NNAdapterModel_setOperandValue(
        self, operand: int, buffer: Any, length: int, copy: bool
    ) -> Code:
        memory = self.memory("buffer", buffer, length)
        return api.NNAdapterModel_setOperandValue(HANDLES.get(operand), memory, copy)

    def NNAdapterModel_getOperandType(self, operand: int, type_: Any) -> Code:
        self.check_not_null(type=type_)
        code, operand_type = api.NNAdapterModel_getOperandType(HANDLES.get(operand))
        if operand_type is not None:
            memory = HANDLES.buffers_of(operand)
            if "type" not in memory:
                memory["type"] = self._types.new()
            memory["scales"] = self._types.write(memory["type"], operand_type)
            type_[0] = memory["type"]
        return code

    def NNAdapterModel_addOperation(
        self,
        model: int,
        type_: int,
        input_count: int,
        inputs: Any,
        output_count: int,
        outputs: Any,
        operation: Any,
    ) -> Code:
        self.check_not_null(operation=operation)
        result = api.NNAdapterModel_addOperation(
            HANDLES.get(model),
            type_,
            self.objects("input_operands", inputs, input_count),
            self.objects("output_operands", outputs, output_count),
        )
        return self.store_handle(operation, result, parent=model)

    def NNAdapterModel_identifyInputsAndOutputs(
        self, model: int, input_count: int, inputs: Any, output_count: int, outputs: Any
    ) -> Code:
        return api.NNAdapterModel_identifyInputsAndOutputs(
            HANDLES.get(model),
            self.objects("input_operands", inputs, input_count),
            self.objects("output_operands", outputs, output_count),
        )

    def NNAdapterModel_getSupportedOperations(
        self, model: int, context: int, supported: Any
    ) -> Code:
        self.check_not_null(supported_operations=supported)
        code, support = api.NNAdapterModel_getSupportedOperations(
            HANDLES.get(model), HANDLES.get(context)
        )
        for index, runs in enumerate(support or ()):
            supported[index] = runs
        self.end_runs_first()
        return code

    # Compilations.

    def NNAdapterCompilation_create(
        self,
        model: int,
        token: Any,
        buffer: Any,
        length: int,
        folder: Any,
        context: int,
        compilation: Any,
    ) -> Code:
        self.check_not_null(compilation=compilation)
        result = api.NNAdapterCompilation_create(
            HANDLES.get(model),
            self.text(token),
            self.memory("cache_buffer", buffer, length) if buffer or length else None,
            self.text(folder),
            HANDLES.get(context),
        )
        return self.store_handle(compilation, result)

    def NNAdapterCompilation_destroy(self, compilation: int) -> None:
        self.destroy(compilation, api.NNAdapterCompilation_destroy)

    def NNAdapterCompilation_finish(self, compilation: int) -> Code:
        code = api.NNAdapterCompilation_finish(HANDLES.get(compilation))
        self.end_runs_first()
        return code

    def NNAdapterCompilation_queryInputsAndOutputs(
        self,
        compilation: int,
        input_count: Any,
        input_types: Any,
        output_count: Any,
        output_types: Any,
    ) -> Code:
        self.check_not_null(input_count=input_count, output_count=output_count)
        object_ = HANDLES.get(compilation)
        code, counts = api.NNAdapterCompilation_queryInputsAndOutputs(object_)
        if counts is None:
            return code
        input_count[0], output_count[0] = counts
        arrays = (input_types, output_types)
        if any(arrays):
            memory = HANDLES.buffers_of(compilation)
            if "types" not in memory:
                memory["types"] = self._all_types(object_, counts)
            for array, types in zip(arrays, memory["types"], strict=True):
                for index, type_ in enumerate(types if array else ()):
                    array[index] = type_.pointer
        return code

    def _all_types(self, compilation: Any, counts: tuple[int, int]) -> Any:
        """Return the types of all inputs and of all outputs."""
        types_by_kind: tuple[list[Any], list[Any]] = ([None] * counts[0], [None] * counts[1])
        api.NNAdapterCompilation_queryInputsAndOutputs(compilation, *types_by_kind)
        return [[self._types.new_from(type_) for type_ in types] for types in types_by_kind]

    # Executions.

    def NNAdapterExecution_create(self, compilation: int, execution: Any) -> Code:
        self.check_not_null(execution=execution)
        result = api.NNAdapterExecution_create(HANDLES.get(compilation))
        return self.store_handle(execution, result)

    def NNAdapterExecution_destroy(self, execution: int) -> None:
        self.destroy(execution, api.NNAdapterExecution_destroy)

    def NNAdapterExecution_setInput(
        self, execution: int, index: int, memory: Any, access: Any
    ) -> Code:
        self.check_not_null(access=access)
        reader = Access(self.ffi, self._types, access, is_input=True)
        return api.NNAdapterExecution_setInput(HANDLES.get(execution), index, memory, reader)

    def NNAdapterExecution_setOutput(
        self, execution: int, index: int, memory: Any, access: Any
    ) -> Code:
        self.check_not_null(access=access)
        writer = Access(self.ffi, self._types, access, is_input=False)
        return api.NNAdapterExecution_setOutput(HANDLES.get(execution), index, memory, writer)

    def NNAdapterExecution_compute(self, execution: int) -> Code:
        return api.NNAdapterExecution_compute(HANDLES.get(execution))
