"""Bindings of `libneural_network_core.so`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from crosschip.apis import nnrt as api
from crosschip.apis.c.handles import HANDLES
from crosschip.apis.c.nnrt.arguments import MAX_LENGTH, NNRtBindings
from crosschip.apis.nnrt import OH_NN_ReturnCode as Code
from crosschip.apis.nnrt.conformance import as_reference
from crosschip.apis.nnrt.results import invalid

__all__ = ["CoreBindings"]

_MAX_RANK = 10


class _Run(NamedTuple):
    """The user data of an asynchronous run.

    Attributes:
        data: the program's pointer.
        outputs: the handles of the outputs.
    """

    data: Any
    outputs: list[int]


class CoreBindings(NNRtBindings):
    """The functions that compile and run models."""

    def __init__(self, ffi: Any, lib: Any) -> None:
        super().__init__(ffi, lib)
        self._names: dict[str, Any] = {}
        self._devices: dict[tuple[int, ...], Any] = {}

    # Devices.

    def OH_NNDevice_GetAllDevicesID(self, ids: Any, count: Any) -> Code:
        self.check_points_to_null(allDevicesID=ids)
        self.check_not_null(deviceCount=count)
        code, all_ids = api.OH_NNDevice_GetAllDevicesID()
        if all_ids is not None:
            key = tuple(all_ids)
            if key not in self._devices:
                self._devices[key] = self.ffi.new("size_t[]", all_ids)
            ids[0], count[0] = self._devices[key], len(all_ids)
        return code

    def OH_NNDevice_GetName(self, device: int, name: Any) -> Code:
        self.check_points_to_null(name=name)
        code, text = api.OH_NNDevice_GetName(device)
        if text is not None:
            if text not in self._names:
                self._names[text] = self.new_text(text)
            name[0] = self._names[text]
        return code

    def OH_NNDevice_GetType(self, device: int, type_: Any) -> Code:
        self.check_not_null(deviceType=type_)
        return self.store(type_, api.OH_NNDevice_GetType(device))

    # Compilations.

    def OH_NNCompilation_Construct(self, model: int) -> int:
        return self.handle(api.OH_NNCompilation_Construct(HANDLES.get(model)))

    def OH_NNCompilation_ConstructForCache(self) -> int:
        return self.handle(api.OH_NNCompilation_ConstructForCache())

    def OH_NNCompilation_ConstructWithOfflineModelFile(self, path: Any) -> int:
        self.check_not_null(modelPath=path)
        compilation = api.OH_NNCompilation_ConstructWithOfflineModelFile(self.text(path) or "")
        return self.handle(compilation)

    def OH_NNCompilation_ConstructWithOfflineModelBuffer(self, buffer: Any, size: int) -> int:
        content = self.memory("modelBuffer", buffer, size)
        return self.handle(api.OH_NNCompilation_ConstructWithOfflineModelBuffer(content))

    def OH_NNCompilation_ExportCacheToBuffer(
        self, compilation: int, buffer: Any, length: int, size: Any
    ) -> Code:
        self.check_not_null(buffer=buffer, modelSize=size)
        code, content = api.OH_NNCompilation_ExportCacheToBuffer(HANDLES.get(compilation))
        if content is not None:
            size[0] = len(content)
            if length < len(content):
                raise invalid(f"it takes {len(content)} bytes, but there are {length}")
            self.ffi.memmove(self.ffi.cast("void *", buffer), content, len(content))
        return code

    def OH_NNCompilation_ImportCacheFromBuffer(
        self, compilation: int, buffer: Any, size: int
    ) -> Code:
        content = self.memory("buffer", buffer, size)
        return api.OH_NNCompilation_ImportCacheFromBuffer(HANDLES.get(compilation), content)

    def OH_NNCompilation_AddExtensionConfig(
        self, compilation: int, name: Any, value: Any, size: int
    ) -> Code:
        self.check_not_null(configName=name)
        content = self.memory("configValue", value, size)
        object_ = HANDLES.get(compilation)
        return api.OH_NNCompilation_AddExtensionConfig(object_, self.text(name) or "", content)

    def OH_NNCompilation_SetDevice(self, compilation: int, device: int) -> Code:
        return api.OH_NNCompilation_SetDevice(HANDLES.get(compilation), device)

    def OH_NNCompilation_SetCache(self, compilation: int, path: Any, version: int) -> Code:
        self.check_not_null(cachePath=path)
        object_ = HANDLES.get(compilation)
        return api.OH_NNCompilation_SetCache(object_, self.text(path) or "", version)

    def OH_NNCompilation_SetPerformanceMode(self, compilation: int, mode: Any) -> Code:
        return api.OH_NNCompilation_SetPerformanceMode(HANDLES.get(compilation), mode)

    def OH_NNCompilation_SetPriority(self, compilation: int, priority: Any) -> Code:
        return api.OH_NNCompilation_SetPriority(HANDLES.get(compilation), priority)

    def OH_NNCompilation_EnableFloat16(self, compilation: int, enabled: bool) -> Code:
        return api.OH_NNCompilation_EnableFloat16(HANDLES.get(compilation), enabled)

    def OH_NNCompilation_Build(self, compilation: int) -> Code:
        code = api.OH_NNCompilation_Build(HANDLES.get(compilation))
        self.end_runs_first()
        return code

    def OH_NNCompilation_Destroy(self, compilation: Any) -> None:
        self.destroy_stored("compilation", compilation, api.OH_NNCompilation_Destroy)

    # Descriptions.

    def OH_NNTensorDesc_Create(self) -> int:
        return self.handle(api.OH_NNTensorDesc_Create())

    def OH_NNTensorDesc_Destroy(self, desc: Any) -> Any:
        return self.destroy_stored("tensorDesc", desc, api.OH_NNTensorDesc_Destroy)

    def OH_NNTensorDesc_SetName(self, desc: int, name: Any) -> Code:
        self.check_not_null(name=name)
        return api.OH_NNTensorDesc_SetName(HANDLES.get(desc), self.text(name) or "")

    def OH_NNTensorDesc_GetName(self, desc: int, name: Any) -> Code:
        self.check_points_to_null(name=name)
        code, text = api.OH_NNTensorDesc_GetName(HANDLES.get(desc))
        if text is not None:
            name[0] = self.store_text(desc, text)
        return code

    def OH_NNTensorDesc_SetDataType(self, desc: int, type_: Any) -> Code:
        return api.OH_NNTensorDesc_SetDataType(HANDLES.get(desc), type_)

    def OH_NNTensorDesc_GetDataType(self, desc: int, type_: Any) -> Code:
        self.check_not_null(dataType=type_)
        return self.store(type_, api.OH_NNTensorDesc_GetDataType(HANDLES.get(desc)))

    def OH_NNTensorDesc_SetShape(self, desc: int, shape: Any, length: int) -> Code:
        if length > _MAX_RANK:
            raise invalid(f"{length} axes are more than {_MAX_RANK}")
        sizes = self.numbers("shape", shape, length)
        return api.OH_NNTensorDesc_SetShape(HANDLES.get(desc), sizes)

    def OH_NNTensorDesc_GetShape(self, desc: int, shape: Any, length: Any) -> Code:
        self.check_points_to_null(shape=shape)
        self.check_not_null(shapeLength=length)
        code, sizes = api.OH_NNTensorDesc_GetShape(HANDLES.get(desc))
        if sizes is not None:
            length[0] = len(sizes)
            if sizes:
                shape[0] = self.store_array(desc, "shape", "int32_t[]", sizes)
        return code

    def OH_NNTensorDesc_SetFormat(self, desc: int, format: Any) -> Code:
        return api.OH_NNTensorDesc_SetFormat(HANDLES.get(desc), format)

    def OH_NNTensorDesc_GetFormat(self, desc: int, format: Any) -> Code:
        self.check_not_null(format=format)
        return self.store(format, api.OH_NNTensorDesc_GetFormat(HANDLES.get(desc)))

    def OH_NNTensorDesc_GetElementCount(self, desc: int, count: Any) -> Code:
        self.check_not_null(elementCount=count)
        count[0] = 0
        return self.store(count, api.OH_NNTensorDesc_GetElementCount(HANDLES.get(desc)))

    def OH_NNTensorDesc_GetByteSize(self, desc: int, size: Any) -> Code:
        self.check_not_null(byteSize=size)
        size[0] = 0
        return self.store(size, api.OH_NNTensorDesc_GetByteSize(HANDLES.get(desc)))

    # Tensors.

    def OH_NNTensor_Create(self, device: int, desc: int) -> int:
        return self.handle(api.OH_NNTensor_Create(device, HANDLES.get(desc)))

    def OH_NNTensor_CreateWithSize(self, device: int, desc: int, size: int) -> int:
        return self.handle(api.OH_NNTensor_CreateWithSize(device, HANDLES.get(desc), size))

    def OH_NNTensor_CreateWithFd(
        self, device: int, desc: int, fd: int, size: int, offset: int
    ) -> int:
        object_ = HANDLES.get(desc)
        return self.handle(api.OH_NNTensor_CreateWithFd(device, object_, fd, size, offset))

    def OH_NNTensor_Destroy(self, tensor: Any) -> Any:
        return self.destroy_stored("tensor", tensor, api.OH_NNTensor_Destroy)

    def OH_NNTensor_GetTensorDesc(self, tensor: int) -> int:
        description = api.OH_NNTensor_GetTensorDesc(HANDLES.get(tensor))
        if description is None:
            return 0
        objects = HANDLES.buffers_of(tensor)
        if "desc" not in objects:
            objects["desc"] = self.handle(description, parent=tensor)
        number: int = objects["desc"]
        return number

    def OH_NNTensor_GetDataBuffer(self, tensor: int) -> Any:
        memory = api.OH_NNTensor_GetDataBuffer(HANDLES.get(tensor))
        if memory is None:
            return self.ffi.NULL
        objects = HANDLES.buffers_of(tensor)
        if "memory" not in objects:
            objects["memory"] = self.ffi.from_buffer(memory, require_writable=True)
        return objects["memory"]

    def OH_NNTensor_GetFd(self, tensor: int, fd: Any) -> Code:
        self.check_not_null(fd=fd)
        return self.store(fd, api.OH_NNTensor_GetFd(HANDLES.get(tensor)))

    def OH_NNTensor_GetSize(self, tensor: int, size: Any) -> Code:
        self.check_not_null(size=size)
        return self.store(size, api.OH_NNTensor_GetSize(HANDLES.get(tensor)))

    def OH_NNTensor_GetOffset(self, tensor: int, offset: Any) -> Code:
        self.check_not_null(offset=offset)
        return self.store(offset, api.OH_NNTensor_GetOffset(HANDLES.get(tensor)))

    # Executors.

    def OH_NNExecutor_Construct(self, compilation: int) -> int:
        return self.handle(api.OH_NNExecutor_Construct(HANDLES.get(compilation)))

    def OH_NNExecutor_Destroy(self, executor: Any) -> None:
        self.destroy_stored("executor", executor, api.OH_NNExecutor_Destroy)

    def OH_NNExecutor_GetInputCount(self, executor: int, count: Any) -> Code:
        self.check_not_null(inputCount=count)
        return self.store(count, api.OH_NNExecutor_GetInputCount(HANDLES.get(executor)))

    def OH_NNExecutor_GetOutputCount(self, executor: int, count: Any) -> Code:
        self.check_not_null(outputCount=count)
        return self.store(count, api.OH_NNExecutor_GetOutputCount(HANDLES.get(executor)))

    def OH_NNExecutor_CreateInputTensorDesc(self, executor: int, index: int) -> int:
        return self.handle(api.OH_NNExecutor_CreateInputTensorDesc(HANDLES.get(executor), index))

    def OH_NNExecutor_CreateOutputTensorDesc(self, executor: int, index: int) -> int:
        return self.handle(api.OH_NNExecutor_CreateOutputTensorDesc(HANDLES.get(executor), index))

    def OH_NNExecutor_GetOutputShape(
        self, executor: int, index: int, shape: Any, length: Any
    ) -> Code:
        self.check_points_to_null(shape=shape)
        self.check_not_null(shapeLength=length)
        code, sizes = api.OH_NNExecutor_GetOutputShape(HANDLES.get(executor), index)
        if sizes is not None:
            length[0] = len(sizes)
            shape[0] = self.store_array(executor, ("output", index), "int32_t[]", sizes)
        return code

    def OH_NNExecutor_GetInputDimRange(
        self, executor: int, index: int, least: Any, most: Any, length: Any
    ) -> Code:
        check = self.check_not_null if as_reference() else self.check_points_to_null
        check(minInputDims=least, maxInputDims=most)
        self.check_not_null(shapeLength=length)
        code, bounds = api.OH_NNExecutor_GetInputDimRange(HANDLES.get(executor), index)
        if bounds is not None:
            length[0] = len(bounds[0])
            for pointer, name, sizes in zip((least, most), ("min", "max"), bounds, strict=True):
                pointer[0] = self.store_array(executor, (name, index), "size_t[]", sizes)
        return code

    def OH_NNExecutor_SetOnRunDone(self, executor: int, function: Any) -> Code:
        callback = self._run_done_callback(function) if function else None
        return api.OH_NNExecutor_SetOnRunDone(HANDLES.get(executor), callback)  # type: ignore[arg-type]

    def OH_NNExecutor_SetOnServiceDied(self, executor: int, function: Any) -> Code:
        callback = (lambda run: function(run.data)) if function else None
        return api.OH_NNExecutor_SetOnServiceDied(HANDLES.get(executor), callback)  # type: ignore[arg-type]

    def OH_NNExecutor_RunSync(
        self, executor: int, inputs: Any, input_count: int, outputs: Any, output_count: int
    ) -> Code:
        return api.OH_NNExecutor_RunSync(
            HANDLES.get(executor),
            self._tensors("inputTensor", inputs, input_count),
            self._tensors("outputTensor", outputs, output_count),
        )

    def OH_NNExecutor_RunAsync(
        self,
        executor: int,
        inputs: Any,
        input_count: int,
        outputs: Any,
        output_count: int,
        timeout: int,
        data: Any,
    ) -> Code:
        input_tensors = self._tensors("inputTensor", inputs, input_count)
        output_tensors = self._tensors("outputTensor", outputs, output_count)
        run = (
            _Run(data, self.ffi.unpack(outputs, output_count)) if data and output_tensors else None
        )
        return api.OH_NNExecutor_RunAsync(
            HANDLES.get(executor), input_tensors, output_tensors, timeout, run
        )

    def _tensors(self, name: str, numbers: Any, count: int) -> list[Any]:
        if count > MAX_LENGTH:
            raise invalid(f"{name} has {count} elements, but {MAX_LENGTH} at most")
        return self.objects(name, numbers, count)

    def _run_done_callback(self, function: Any) -> Callable[..., None]:
        def callback(run: _Run, code: Code, tensors: object, count: int) -> None:
            outputs = self.ffi.new("void *[]", [self.ffi.cast("void *", n) for n in run.outputs])
            function(run.data, code, outputs, count)

        return callback
