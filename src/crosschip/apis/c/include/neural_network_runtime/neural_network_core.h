/*
 * NNRt's functions to compile and run models on crosschip's devices. Link with -lneural_network_core.
 *
 * On failure, functions return another OH_NN_ReturnCode than OH_NN_SUCCESS, or NULL instead of a
 * handle; crosschip_last_error, in crosschip.h, returns the error message. A function that fails
 * stores nothing through its pointers. A handle that is NULL, destroyed or of another kind yields
 * OH_NN_INVALID_PARAMETER. A pointer to a pointer to store must point to NULL.
 *
 * Arguments may be freed or changed after the call, unless stated otherwise. Functions may be called
 * from any thread; a model, a compilation or an executor may be used by one thread at a time.
 */
#ifndef NEURAL_NETWORK_CORE_H
#define NEURAL_NETWORK_CORE_H

#include "neural_network_runtime_type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Create a compilation of a finished model, which may be destroyed afterwards. */
OH_NNCompilation *OH_NNCompilation_Construct(const OH_NNModel *model);

/* Create a compilation from a compiled model in a file that crosschip has written. */
OH_NNCompilation *OH_NNCompilation_ConstructWithOfflineModelFile(const char *modelPath);

/* Create a compilation from the content of such a file, which is copied. */
OH_NNCompilation *OH_NNCompilation_ConstructWithOfflineModelBuffer(const void *modelBuffer,
                                                                   size_t modelSize);

/* Create a compilation for a model that the cache or a buffer will supply. */
OH_NNCompilation *OH_NNCompilation_ConstructForCache(void);

/*
 * Write the compiled model to a buffer, to be imported later.
 *
 * length: the size of the buffer in bytes.
 * modelSize: receives the size of the model in bytes, also if it exceeds length, which yields
 *     OH_NN_INVALID_PARAMETER.
 */
OH_NN_ReturnCode OH_NNCompilation_ExportCacheToBuffer(OH_NNCompilation *compilation,
                                                      const void *buffer, size_t length,
                                                      size_t *modelSize);

/* Set the compiled model from exported bytes, which are copied. */
OH_NN_ReturnCode OH_NNCompilation_ImportCacheFromBuffer(OH_NNCompilation *compilation,
                                                        const void *buffer, size_t modelSize);

/* Add a device setting; values with the same name are joined by "|". */
OH_NN_ReturnCode OH_NNCompilation_AddExtensionConfig(OH_NNCompilation *compilation,
                                                     const char *configName,
                                                     const void *configValue,
                                                     const size_t configValueSize);

/* Set the device, 0 for the first; it is looked up when the compilation is built. */
OH_NN_ReturnCode OH_NNCompilation_SetDevice(OH_NNCompilation *compilation, size_t deviceID);

/*
 * Cache the compiled model in a folder, under a version that the program increases. A relative path
 * is resolved now.
 */
OH_NN_ReturnCode OH_NNCompilation_SetCache(OH_NNCompilation *compilation, const char *cachePath,
                                           uint32_t version);

/* Set the performance mode. */
OH_NN_ReturnCode OH_NNCompilation_SetPerformanceMode(OH_NNCompilation *compilation,
                                                     OH_NN_PerformanceMode performanceMode);

/* Set the priority of runs. */
OH_NN_ReturnCode OH_NNCompilation_SetPriority(OH_NNCompilation *compilation,
                                              OH_NN_Priority priority);

/* Set whether float32 operations may compute in float16. */
OH_NN_ReturnCode OH_NNCompilation_EnableFloat16(OH_NNCompilation *compilation, bool enableFloat16);

/* Compile or load the model; may be called once. */
OH_NN_ReturnCode OH_NNCompilation_Build(OH_NNCompilation *compilation);

/* Release a compilation and store NULL; its executors remain valid. */
void OH_NNCompilation_Destroy(OH_NNCompilation **compilation);

/* Create an empty description. */
NN_TensorDesc *OH_NNTensorDesc_Create(void);

/* Release a description, and store NULL. */
OH_NN_ReturnCode OH_NNTensorDesc_Destroy(NN_TensorDesc **tensorDesc);

/* Set the name. */
OH_NN_ReturnCode OH_NNTensorDesc_SetName(NN_TensorDesc *tensorDesc, const char *name);

/* Return the name, or ""; valid until the description is destroyed. */
OH_NN_ReturnCode OH_NNTensorDesc_GetName(const NN_TensorDesc *tensorDesc, const char **name);

/* Set the element type. */
OH_NN_ReturnCode OH_NNTensorDesc_SetDataType(NN_TensorDesc *tensorDesc, OH_NN_DataType dataType);

/* Return the element type. */
OH_NN_ReturnCode OH_NNTensorDesc_GetDataType(const NN_TensorDesc *tensorDesc,
                                             OH_NN_DataType *dataType);

/* Set the shape, of rank 1 to 10; a description without a shape has rank 0. */
OH_NN_ReturnCode OH_NNTensorDesc_SetShape(NN_TensorDesc *tensorDesc, const int32_t *shape,
                                          size_t shapeLength);

/*
 * Return the shape, NULL before it is set; valid until the next call, or until the description is
 * destroyed.
 */
OH_NN_ReturnCode OH_NNTensorDesc_GetShape(const NN_TensorDesc *tensorDesc, int32_t **shape,
                                          size_t *shapeLength);

/* Set the memory layout of an image. */
OH_NN_ReturnCode OH_NNTensorDesc_SetFormat(NN_TensorDesc *tensorDesc, OH_NN_Format format);

/* Return the memory layout of an image. */
OH_NN_ReturnCode OH_NNTensorDesc_GetFormat(const NN_TensorDesc *tensorDesc, OH_NN_Format *format);

/* Return the number of elements; store 0 and return OH_NN_DYNAMIC_SHAPE if it is unknown. */
OH_NN_ReturnCode OH_NNTensorDesc_GetElementCount(const NN_TensorDesc *tensorDesc,
                                                 size_t *elementCount);

/* Return the elements' bytes; store 0 and return OH_NN_DYNAMIC_SHAPE if unknown. */
OH_NN_ReturnCode OH_NNTensorDesc_GetByteSize(const NN_TensorDesc *tensorDesc, size_t *byteSize);

/* Create a tensor with memory for its elements; the description is copied. */
NN_Tensor *OH_NNTensor_Create(size_t deviceID, NN_TensorDesc *tensorDesc);

/* Create a tensor with `size` bytes of memory, at least as many as its elements take. */
NN_Tensor *OH_NNTensor_CreateWithSize(size_t deviceID, NN_TensorDesc *tensorDesc, size_t size);

/*
 * Create a tensor in the program's file, whose descriptor is duplicated.
 *
 * size: the number of bytes of the file to use, from its beginning.
 * offset: the byte offset of the elements.
 */
NN_Tensor *OH_NNTensor_CreateWithFd(size_t deviceID, NN_TensorDesc *tensorDesc, int fd, size_t size,
                                    size_t offset);

/* Release a tensor with its memory and store NULL. */
OH_NN_ReturnCode OH_NNTensor_Destroy(NN_Tensor **tensor);

/* Return the tensor's own description, which is valid until the tensor is destroyed. */
NN_TensorDesc *OH_NNTensor_GetTensorDesc(const NN_Tensor *tensor);

/* Return the tensor's writable memory, which is valid until the tensor is destroyed. */
void *OH_NNTensor_GetDataBuffer(const NN_Tensor *tensor);

/* Return the memory's file descriptor. */
OH_NN_ReturnCode OH_NNTensor_GetFd(const NN_Tensor *tensor, int *fd);

/* Return the number of usable bytes of the file. */
OH_NN_ReturnCode OH_NNTensor_GetSize(const NN_Tensor *tensor, size_t *size);

/* Return the byte offset of the elements in the file. */
OH_NN_ReturnCode OH_NNTensor_GetOffset(const NN_Tensor *tensor, size_t *offset);

/* Create an executor of a built compilation, which may be destroyed afterwards. */
OH_NNExecutor *OH_NNExecutor_Construct(OH_NNCompilation *compilation);

/*
 * Return an output's shape in the last run, or before a run the declared one with -1 for dynamic
 * dimensions; valid until the next call for the output, or until the executor is destroyed.
 */
OH_NN_ReturnCode OH_NNExecutor_GetOutputShape(OH_NNExecutor *executor, uint32_t outputIndex,
                                              int32_t **shape, uint32_t *shapeLength);

/* Release an executor, and store NULL. */
void OH_NNExecutor_Destroy(OH_NNExecutor **executor);

/* Return the number of inputs. */
OH_NN_ReturnCode OH_NNExecutor_GetInputCount(const OH_NNExecutor *executor, size_t *inputCount);

/* Return the number of outputs. */
OH_NN_ReturnCode OH_NNExecutor_GetOutputCount(const OH_NNExecutor *executor, size_t *outputCount);

/* Return a new description of an input, with -1 for dynamic dimensions. */
NN_TensorDesc *OH_NNExecutor_CreateInputTensorDesc(const OH_NNExecutor *executor, size_t index);

/* Return a new description of an output, with the shape of the last run if any. */
NN_TensorDesc *OH_NNExecutor_CreateOutputTensorDesc(const OH_NNExecutor *executor, size_t index);

/*
 * Return the minimum and maximum sizes of an input's axes; valid until the next call for the input, or
 * until the executor is destroyed.
 */
OH_NN_ReturnCode OH_NNExecutor_GetInputDimRange(const OH_NNExecutor *executor, size_t index,
                                                size_t **minInputDims, size_t **maxInputDims,
                                                size_t *shapeLength);

/* Set the callback at the end of each OH_NNExecutor_RunAsync. */
OH_NN_ReturnCode OH_NNExecutor_SetOnRunDone(OH_NNExecutor *executor, NN_OnRunDone onRunDone);

/* Set the callback for a device that fails during such a run. */
OH_NN_ReturnCode OH_NNExecutor_SetOnServiceDied(OH_NNExecutor *executor,
                                                NN_OnServiceDied onServiceDied);

/* Run the model; return after outputs and output shapes have been written. */
OH_NN_ReturnCode OH_NNExecutor_RunSync(OH_NNExecutor *executor, NN_Tensor *inputTensor[],
                                       size_t inputCount, NN_Tensor *outputTensor[],
                                       size_t outputCount);

/*
 * Start a run and return.
 *
 * inputTensor: the inputs, which must not change before the end.
 * outputTensor: the outputs, which must not be read before the end.
 * timeout: the milliseconds after which the run fails with OH_NN_TIMEOUT.
 * userData: the argument of the callbacks, which identifies the run.
 */
OH_NN_ReturnCode OH_NNExecutor_RunAsync(OH_NNExecutor *executor, NN_Tensor *inputTensor[],
                                        size_t inputCount, NN_Tensor *outputTensor[],
                                        size_t outputCount, int32_t timeout, void *userData);

/* Return the numbers of all usable devices; valid until the process ends. */
OH_NN_ReturnCode OH_NNDevice_GetAllDevicesID(const size_t **allDevicesID, uint32_t *deviceCount);

/* Return a device's name; valid until the process ends. */
OH_NN_ReturnCode OH_NNDevice_GetName(size_t deviceID, const char **name);

/* Return a device's kind of hardware. */
OH_NN_ReturnCode OH_NNDevice_GetType(size_t deviceID, OH_NN_DeviceType *deviceType);

#ifdef __cplusplus
}
#endif

#endif
