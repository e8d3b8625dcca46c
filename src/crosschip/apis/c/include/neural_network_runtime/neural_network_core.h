/*
 * NNRt's functions to compile and run models, as crosschip has them. Link with -lneural_network_core.
 *
 * Functions that return OH_NN_ReturnCode return OH_NN_SUCCESS, or a code that tells what went wrong;
 * those that return a handle return NULL then. crosschip_last_error, in crosschip.h, has it in words.
 * Where a function fails, nothing is stored through its pointers. A handle that is NULL, has been
 * destroyed or is of another kind is OH_NN_INVALID_PARAMETER. Pointers through which a pointer is
 * stored must lead to NULL.
 *
 * What a function is passed may be freed or changed as soon as it returns, unless it is said
 * otherwise. Functions may be called from any thread; a model, a compilation and an executor are each
 * for one thread at a time.
 */
#ifndef NEURAL_NETWORK_CORE_H
#define NEURAL_NETWORK_CORE_H

#include "neural_network_runtime_type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Take on a finished model to compile; it may be destroyed right after. */
OH_NNCompilation *OH_NNCompilation_Construct(const OH_NNModel *model);

/* Take on what was compiled earlier, in a file that crosschip has written. */
OH_NNCompilation *OH_NNCompilation_ConstructWithOfflineModelFile(const char *modelPath);

/* Take on what was compiled earlier, the content of such a file; it is copied. */
OH_NNCompilation *OH_NNCompilation_ConstructWithOfflineModelBuffer(const void *modelBuffer,
                                                                   size_t modelSize);

/* Take on what was compiled earlier, which a cache or a buffer is to hold. */
OH_NNCompilation *OH_NNCompilation_ConstructForCache(void);

/*
 * Write what has been compiled to a buffer, to be imported later.
 *
 * length: the bytes of the buffer.
 * modelSize: where the bytes that it takes are stored, also if these are more than length, which is
 *     OH_NN_INVALID_PARAMETER.
 */
OH_NN_ReturnCode OH_NNCompilation_ExportCacheToBuffer(OH_NNCompilation *compilation,
                                                      const void *buffer, size_t length,
                                                      size_t *modelSize);

/* Give what was exported; it is copied. */
OH_NN_ReturnCode OH_NNCompilation_ImportCacheFromBuffer(OH_NNCompilation *compilation,
                                                        const void *buffer, size_t modelSize);

/* Give a setting for the device; values of one name are joined by "|". */
OH_NN_ReturnCode OH_NNCompilation_AddExtensionConfig(OH_NNCompilation *compilation,
                                                     const char *configName,
                                                     const void *configValue,
                                                     const size_t configValueSize);

/* Choose the device, 0 for the first; whether there is one is found when it is built. */
OH_NN_ReturnCode OH_NNCompilation_SetDevice(OH_NNCompilation *compilation, size_t deviceID);

/*
 * Keep what is compiled in a folder, under a version that programs count up. A relative path is
 * relative to the current directory of this call.
 */
OH_NN_ReturnCode OH_NNCompilation_SetCache(OH_NNCompilation *compilation, const char *cachePath,
                                           uint32_t version);

/* Say how much the device is to give for speed. */
OH_NN_ReturnCode OH_NNCompilation_SetPerformanceMode(OH_NNCompilation *compilation,
                                                     OH_NN_PerformanceMode performanceMode);

/* Set the place of runs among those that wait. */
OH_NN_ReturnCode OH_NNCompilation_SetPriority(OH_NNCompilation *compilation,
                                              OH_NN_Priority priority);

/* Say whether float32 operations may compute in float16. */
OH_NN_ReturnCode OH_NNCompilation_EnableFloat16(OH_NNCompilation *compilation, bool enableFloat16);

/* Compile; can be done once. */
OH_NN_ReturnCode OH_NNCompilation_Build(OH_NNCompilation *compilation);

/* Release a compilation, and store NULL; executors made of it stay. */
void OH_NNCompilation_Destroy(OH_NNCompilation **compilation);

/* Make an empty description. */
NN_TensorDesc *OH_NNTensorDesc_Create(void);

/* Release a description, and store NULL. */
OH_NN_ReturnCode OH_NNTensorDesc_Destroy(NN_TensorDesc **tensorDesc);

/* Give a description a name. */
OH_NN_ReturnCode OH_NNTensorDesc_SetName(NN_TensorDesc *tensorDesc, const char *name);

/* The name, empty if there is none; it is there until the description is destroyed. */
OH_NN_ReturnCode OH_NNTensorDesc_GetName(const NN_TensorDesc *tensorDesc, const char **name);

/* Set the type of the elements. */
OH_NN_ReturnCode OH_NNTensorDesc_SetDataType(NN_TensorDesc *tensorDesc, OH_NN_DataType dataType);

/* The type of the elements. */
OH_NN_ReturnCode OH_NNTensorDesc_GetDataType(const NN_TensorDesc *tensorDesc,
                                             OH_NN_DataType *dataType);

/* Set the sizes, of which there are from 1 to 10; what has no axes is never given any. */
OH_NN_ReturnCode OH_NNTensorDesc_SetShape(NN_TensorDesc *tensorDesc, const int32_t *shape,
                                          size_t shapeLength);

/*
 * The sizes, NULL if they have never been set; they are there until this is called again, or the
 * description is destroyed.
 */
OH_NN_ReturnCode OH_NNTensorDesc_GetShape(const NN_TensorDesc *tensorDesc, int32_t **shape,
                                          size_t *shapeLength);

/* Set the order in which the axes of an image are stored. */
OH_NN_ReturnCode OH_NNTensorDesc_SetFormat(NN_TensorDesc *tensorDesc, OH_NN_Format format);

/* The order in which the axes of an image are stored. */
OH_NN_ReturnCode OH_NNTensorDesc_GetFormat(const NN_TensorDesc *tensorDesc, OH_NN_Format *format);

/* How many elements there are; OH_NN_DYNAMIC_SHAPE, and 0 is stored, if that is open. */
OH_NN_ReturnCode OH_NNTensorDesc_GetElementCount(const NN_TensorDesc *tensorDesc,
                                                 size_t *elementCount);

/* How many bytes the elements take; OH_NN_DYNAMIC_SHAPE, and 0 is stored, if that is open. */
OH_NN_ReturnCode OH_NNTensorDesc_GetByteSize(const NN_TensorDesc *tensorDesc, size_t *byteSize);

/* Make a tensor with memory for its elements; the description is copied. */
NN_Tensor *OH_NNTensor_Create(size_t deviceID, NN_TensorDesc *tensorDesc);

/* Make a tensor with memory of some size, which is enough for its elements. */
NN_Tensor *OH_NNTensor_CreateWithSize(size_t deviceID, NN_TensorDesc *tensorDesc, size_t size);

/*
 * Make a tensor in a file of the program's, which it may close.
 *
 * size: how many bytes of it are used, from its beginning.
 * offset: where in it the elements begin.
 */
NN_Tensor *OH_NNTensor_CreateWithFd(size_t deviceID, NN_TensorDesc *tensorDesc, int fd, size_t size,
                                    size_t offset);

/* Release a tensor with its memory, and store NULL. */
OH_NN_ReturnCode OH_NNTensor_Destroy(NN_Tensor **tensor);

/* The description of a tensor, which is the tensor's own, and ends with it. */
NN_TensorDesc *OH_NNTensor_GetTensorDesc(const NN_Tensor *tensor);

/* The memory of a tensor, to be read and written until it is destroyed. */
void *OH_NNTensor_GetDataBuffer(const NN_Tensor *tensor);

/* The file that the memory is. */
OH_NN_ReturnCode OH_NNTensor_GetFd(const NN_Tensor *tensor, int *fd);

/* How many bytes of the file may be used. */
OH_NN_ReturnCode OH_NNTensor_GetSize(const NN_Tensor *tensor, size_t *size);

/* Where in the file the elements begin. */
OH_NN_ReturnCode OH_NNTensor_GetOffset(const NN_Tensor *tensor, size_t *offset);

/* Make what runs what has been compiled; the compilation may be destroyed right after. */
OH_NNExecutor *OH_NNExecutor_Construct(OH_NNCompilation *compilation);

/*
 * The shape that an output had in the last run, and before it the declared one, with -1 for open
 * sizes; it is there until this is called again for the output, or the executor is destroyed.
 */
OH_NN_ReturnCode OH_NNExecutor_GetOutputShape(OH_NNExecutor *executor, uint32_t outputIndex,
                                              int32_t **shape, uint32_t *shapeLength);

/* Release an executor, and store NULL. */
void OH_NNExecutor_Destroy(OH_NNExecutor **executor);

/* The number of inputs. */
OH_NN_ReturnCode OH_NNExecutor_GetInputCount(const OH_NNExecutor *executor, size_t *inputCount);

/* The number of outputs. */
OH_NN_ReturnCode OH_NNExecutor_GetOutputCount(const OH_NNExecutor *executor, size_t *outputCount);

/* A description of an input, for the program to destroy; -1 stands for open sizes. */
NN_TensorDesc *OH_NNExecutor_CreateInputTensorDesc(const OH_NNExecutor *executor, size_t index);

/* A description of an output, for the program to destroy; after a run, of what it made. */
NN_TensorDesc *OH_NNExecutor_CreateOutputTensorDesc(const OH_NNExecutor *executor, size_t index);

/*
 * The least and the greatest size of each axis of an input; they are there until this is called
 * again for the input, or the executor is destroyed.
 */
OH_NN_ReturnCode OH_NNExecutor_GetInputDimRange(const OH_NNExecutor *executor, size_t index,
                                                size_t **minInputDims, size_t **maxInputDims,
                                                size_t *shapeLength);

/* Set what is called at the end of each run that is asked for with OH_NNExecutor_RunAsync. */
OH_NN_ReturnCode OH_NNExecutor_SetOnRunDone(OH_NNExecutor *executor, NN_OnRunDone onRunDone);

/* Set what is called when the device fails in such a run. */
OH_NN_ReturnCode OH_NNExecutor_SetOnServiceDied(OH_NNExecutor *executor,
                                                NN_OnServiceDied onServiceDied);

/* Run, and return when the outputs have been written, with their shapes. */
OH_NN_ReturnCode OH_NNExecutor_RunSync(OH_NNExecutor *executor, NN_Tensor *inputTensor[],
                                       size_t inputCount, NN_Tensor *outputTensor[],
                                       size_t outputCount);

/*
 * Take on a run, and return at once.
 *
 * inputTensor: the inputs, which stay as they are until the end.
 * outputTensor: the outputs, of which nothing is read before the end.
 * timeout: milliseconds from now after which the run has failed, with OH_NN_TIMEOUT.
 * userData: what tells this run from others where functions are called.
 */
OH_NN_ReturnCode OH_NNExecutor_RunAsync(OH_NNExecutor *executor, NN_Tensor *inputTensor[],
                                        size_t inputCount, NN_Tensor *outputTensor[],
                                        size_t outputCount, int32_t timeout, void *userData);

/* The numbers of all devices that can be used; they are there until the process ends. */
OH_NN_ReturnCode OH_NNDevice_GetAllDevicesID(const size_t **allDevicesID, uint32_t *deviceCount);

/* The name of a device; it is there until the process ends. */
OH_NN_ReturnCode OH_NNDevice_GetName(size_t deviceID, const char **name);

/* The sort of hardware that a device is. */
OH_NN_ReturnCode OH_NNDevice_GetType(size_t deviceID, OH_NN_DeviceType *deviceType);

#ifdef __cplusplus
}
#endif

#endif
