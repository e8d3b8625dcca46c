/* A program for NNAdapter in C, in so far as the benchmark needs one: what it calls in a run. */
#include <string.h>

#include <nnadapter.h>

typedef struct {
    uint32_t count;
    int32_t sizes[NNADAPTER_MAX_SIZE_OF_DIMENSIONS];
    void *elements;
} Tensor;

void *read_input(void *memory, NNAdapterOperandType *type, void *device_buffer);
void *place_output(void *memory, NNAdapterOperandType *type, void *device_buffer);

void *read_input(void *memory, NNAdapterOperandType *type, void *device_buffer)
{
    Tensor *tensor = memory;
    (void)device_buffer;
    type->dimensions.count = tensor->count;
    memcpy(type->dimensions.data, tensor->sizes, sizeof tensor->sizes);
    return tensor->elements;
}

void *place_output(void *memory, NNAdapterOperandType *type, void *device_buffer)
{
    Tensor *tensor = memory;
    (void)device_buffer;
    tensor->count = type->dimensions.count;
    memcpy(tensor->sizes, type->dimensions.data, sizeof tensor->sizes);
    return tensor->elements;
}
