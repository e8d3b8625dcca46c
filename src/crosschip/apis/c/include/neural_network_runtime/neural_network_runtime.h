/*
 * NNRt's functions to build models, as crosschip has them. Link with -lneural_network_runtime and
 * -lneural_network_core. What neural_network_core.h says of all functions holds of these, too.
 */
#ifndef NEURAL_NETWORK_RUNTIME_H
#define NEURAL_NETWORK_RUNTIME_H

#include "neural_network_core.h"
#include "neural_network_runtime_type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Make empty quantization parameters. */
NN_QuantParam *OH_NNQuantParam_Create(void);

/* Set the scales: one, or one for each channel. */
OH_NN_ReturnCode OH_NNQuantParam_SetScales(NN_QuantParam *quantParams, const double *scales,
                                           size_t quantCount);

/* Set the integers that stand for 0; there are as many as scales. */
OH_NN_ReturnCode OH_NNQuantParam_SetZeroPoints(NN_QuantParam *quantParams,
                                               const int32_t *zeroPoints, size_t quantCount);

/* Set how many bits the integers have, all 8; there are as many of these as scales. */
OH_NN_ReturnCode OH_NNQuantParam_SetNumBits(NN_QuantParam *quantParams, const uint32_t *numBits,
                                            size_t quantCount);

/* Release quantization parameters, and store NULL; tensors that have been given them keep them. */
OH_NN_ReturnCode OH_NNQuantParam_Destroy(NN_QuantParam **quantParams);

/* Make an empty model. */
OH_NNModel *OH_NNModel_Construct(void);

/* Add a tensor; its place is how many there were. Name and format are not looked at. */
OH_NN_ReturnCode OH_NNModel_AddTensorToModel(OH_NNModel *model, const NN_TensorDesc *tensorDesc);

/* Make a tensor a constant, once; length is its bytes. */
OH_NN_ReturnCode OH_NNModel_SetTensorData(OH_NNModel *model, uint32_t index, const void *dataBuffer,
                                          size_t length);

/* Say how the integers of a tensor stand for reals. */
OH_NN_ReturnCode OH_NNModel_SetTensorQuantParams(OH_NNModel *model, uint32_t index,
                                                 NN_QuantParam *quantParam);

/* Say what a tensor is for. */
OH_NN_ReturnCode OH_NNModel_SetTensorType(OH_NNModel *model, uint32_t index,
                                          OH_NN_TensorType tensorType);

/*
 * Add an operation.
 *
 * paramIndices: the places of the tensors that are its parameters, in any order; their elements have
 *     been set.
 * inputIndices: those of the tensors that it reads, in the operator's order.
 * outputIndices: those of the tensors that it makes.
 */
OH_NN_ReturnCode OH_NNModel_AddOperation(OH_NNModel *model, OH_NN_OperationType op,
                                         const OH_NN_UInt32Array *paramIndices,
                                         const OH_NN_UInt32Array *inputIndices,
                                         const OH_NN_UInt32Array *outputIndices);

/* Say, once, which tensors are the model's inputs and outputs, in this order. */
OH_NN_ReturnCode OH_NNModel_SpecifyInputsAndOutputs(OH_NNModel *model,
                                                    const OH_NN_UInt32Array *inputIndices,
                                                    const OH_NN_UInt32Array *outputIndices);

/* Check the whole model and end building it; can be done once. */
OH_NN_ReturnCode OH_NNModel_Finish(OH_NNModel *model);

/* Release a model, and store NULL; what is compiled of it stays. */
void OH_NNModel_Destroy(OH_NNModel **model);

/*
 * Whether a device runs an operation, for each as they were added; it is there until this is called
 * again for the model, or it is destroyed.
 */
OH_NN_ReturnCode OH_NNModel_GetAvailableOperations(OH_NNModel *model, size_t deviceID,
                                                   const bool **isSupported, uint32_t *opCount);

/* Deprecated: add a tensor with its purpose and quantization. */
OH_NN_ReturnCode OH_NNModel_AddTensor(OH_NNModel *model, const OH_NN_Tensor *tensor);

/* Deprecated: set an input, which is copied. */
OH_NN_ReturnCode OH_NNExecutor_SetInput(OH_NNExecutor *executor, uint32_t inputIndex,
                                        const OH_NN_Tensor *tensor, const void *dataBuffer,
                                        size_t length);

/* Deprecated: set the memory that an output is written to; it must be there when the model runs. */
OH_NN_ReturnCode OH_NNExecutor_SetOutput(OH_NNExecutor *executor, uint32_t outputIndex,
                                         void *dataBuffer, size_t length);

/* Deprecated: run with the inputs and outputs that have been set. */
OH_NN_ReturnCode OH_NNExecutor_Run(OH_NNExecutor *executor);

/* Deprecated: memory for an input; it is there until it or the executor is destroyed. */
OH_NN_Memory *OH_NNExecutor_AllocateInputMemory(OH_NNExecutor *executor, uint32_t inputIndex,
                                                size_t length);

/* Deprecated: memory for an output; it is there until it or the executor is destroyed. */
OH_NN_Memory *OH_NNExecutor_AllocateOutputMemory(OH_NNExecutor *executor, uint32_t outputIndex,
                                                 size_t length);

/* Deprecated: release memory of an input, and store NULL; that of another stays. */
void OH_NNExecutor_DestroyInputMemory(OH_NNExecutor *executor, uint32_t inputIndex,
                                      OH_NN_Memory **memory);

/* Deprecated: release memory of an output, and store NULL; that of another stays. */
void OH_NNExecutor_DestroyOutputMemory(OH_NNExecutor *executor, uint32_t outputIndex,
                                       OH_NN_Memory **memory);

/* Deprecated: set an input to memory of it, which is read when the model runs. */
OH_NN_ReturnCode OH_NNExecutor_SetInputWithMemory(OH_NNExecutor *executor, uint32_t inputIndex,
                                                  const OH_NN_Tensor *tensor,
                                                  const OH_NN_Memory *memory);

/* Deprecated: set an output to memory of it. */
OH_NN_ReturnCode OH_NNExecutor_SetOutputWithMemory(OH_NNExecutor *executor, uint32_t outputIndex,
                                                   const OH_NN_Memory *memory);

#ifdef __cplusplus
}
#endif

#endif
