/*
 * NNRt's functions to build models for crosschip's devices. Link with -lneural_network_runtime and
 * -lneural_network_core. The conventions in neural_network_core.h apply.
 */
#ifndef NEURAL_NETWORK_RUNTIME_H
#define NEURAL_NETWORK_RUNTIME_H

#include "neural_network_core.h"
#include "neural_network_runtime_type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Create empty quantization parameters. */
NN_QuantParam *OH_NNQuantParam_Create(void);

/* Set the scales, one or one per channel. */
OH_NN_ReturnCode OH_NNQuantParam_SetScales(NN_QuantParam *quantParams, const double *scales,
                                           size_t quantCount);

/* Set the integers that represent 0, one per scale. */
OH_NN_ReturnCode OH_NNQuantParam_SetZeroPoints(NN_QuantParam *quantParams,
                                               const int32_t *zeroPoints, size_t quantCount);

/* Set the integers' numbers of bits, one per scale; all must be 8. */
OH_NN_ReturnCode OH_NNQuantParam_SetNumBits(NN_QuantParam *quantParams, const uint32_t *numBits,
                                            size_t quantCount);

/* Release quantization parameters and store NULL; tensors keep their copies. */
OH_NN_ReturnCode OH_NNQuantParam_Destroy(NN_QuantParam **quantParams);

/* Create an empty model. */
OH_NNModel *OH_NNModel_Construct(void);

/* Add a tensor; its index is the number of tensors added before. Name and format are ignored. */
OH_NN_ReturnCode OH_NNModel_AddTensorToModel(OH_NNModel *model, const NN_TensorDesc *tensorDesc);

/* Make a tensor a constant; may be called once. The length is in bytes. */
OH_NN_ReturnCode OH_NNModel_SetTensorData(OH_NNModel *model, uint32_t index, const void *dataBuffer,
                                          size_t length);

/* Set a tensor's quantization parameters. */
OH_NN_ReturnCode OH_NNModel_SetTensorQuantParams(OH_NNModel *model, uint32_t index,
                                                 NN_QuantParam *quantParam);

/* Set a tensor's type: data, or an operator's parameter. */
OH_NN_ReturnCode OH_NNModel_SetTensorType(OH_NNModel *model, uint32_t index,
                                          OH_NN_TensorType tensorType);

/*
 * Add an operation.
 *
 * paramIndices: the indices of the parameter tensors, in any order; their elements have been set.
 * inputIndices: the indices of the input tensors, in the operator's order.
 * outputIndices: the indices of the output tensors.
 */
OH_NN_ReturnCode OH_NNModel_AddOperation(OH_NNModel *model, OH_NN_OperationType op,
                                         const OH_NN_UInt32Array *paramIndices,
                                         const OH_NN_UInt32Array *inputIndices,
                                         const OH_NN_UInt32Array *outputIndices);

/* Set the model's inputs and outputs, in order; may be called once. */
OH_NN_ReturnCode OH_NNModel_SpecifyInputsAndOutputs(OH_NNModel *model,
                                                    const OH_NN_UInt32Array *inputIndices,
                                                    const OH_NN_UInt32Array *outputIndices);

/* Check the model and build it; may be called once. */
OH_NN_ReturnCode OH_NNModel_Finish(OH_NNModel *model);

/* Release a model and store NULL; compilations of it remain valid. */
void OH_NNModel_Destroy(OH_NNModel **model);

/*
 * Return for each operation, in the order added, whether a device supports it; valid until the next
 * call for the model, or until the model is destroyed.
 */
OH_NN_ReturnCode OH_NNModel_GetAvailableOperations(OH_NNModel *model, size_t deviceID,
                                                   const bool **isSupported, uint32_t *opCount);

/* Deprecated: add a tensor with its type and quantization. */
OH_NN_ReturnCode OH_NNModel_AddTensor(OH_NNModel *model, const OH_NN_Tensor *tensor);

/* Deprecated: set an input; its elements are copied. */
OH_NN_ReturnCode OH_NNExecutor_SetInput(OH_NNExecutor *executor, uint32_t inputIndex,
                                        const OH_NN_Tensor *tensor, const void *dataBuffer,
                                        size_t length);

/* Deprecated: set an output's buffer, which must be valid when the model runs. */
OH_NN_ReturnCode OH_NNExecutor_SetOutput(OH_NNExecutor *executor, uint32_t outputIndex,
                                         void *dataBuffer, size_t length);

/* Deprecated: run with the inputs and outputs that have been set. */
OH_NN_ReturnCode OH_NNExecutor_Run(OH_NNExecutor *executor);

/* Deprecated: allocate memory for an input; valid until it or the executor is destroyed. */
OH_NN_Memory *OH_NNExecutor_AllocateInputMemory(OH_NNExecutor *executor, uint32_t inputIndex,
                                                size_t length);

/* Deprecated: allocate memory for an output; valid until it or the executor is destroyed. */
OH_NN_Memory *OH_NNExecutor_AllocateOutputMemory(OH_NNExecutor *executor, uint32_t outputIndex,
                                                 size_t length);

/* Deprecated: release memory that was allocated for this input, and store NULL. */
void OH_NNExecutor_DestroyInputMemory(OH_NNExecutor *executor, uint32_t inputIndex,
                                      OH_NN_Memory **memory);

/* Deprecated: release memory that was allocated for this output, and store NULL. */
void OH_NNExecutor_DestroyOutputMemory(OH_NNExecutor *executor, uint32_t outputIndex,
                                       OH_NN_Memory **memory);

/* Deprecated: set an input to allocated memory, which is read when the model runs. */
OH_NN_ReturnCode OH_NNExecutor_SetInputWithMemory(OH_NNExecutor *executor, uint32_t inputIndex,
                                                  const OH_NN_Tensor *tensor,
                                                  const OH_NN_Memory *memory);

/* Deprecated: set an output to allocated memory. */
OH_NN_ReturnCode OH_NNExecutor_SetOutputWithMemory(OH_NNExecutor *executor, uint32_t outputIndex,
                                                   const OH_NN_Memory *memory);

#ifdef __cplusplus
}
#endif

#endif
