/*
 * @NAME@ as calls of NNRt.
 *
 *     @NAME@ DEVICE WEIGHTS INPUT... OUTPUT...
 *
 * DEVICE is crosschip's name of the device, WEIGHTS the weights file of this program. An input is a
 * file of its raw elements; if its shape is dynamic, the shape follows the name, as in
 * image.bin:1x3x48x192. An output is a file to write, in the same form.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <neural_network_runtime/neural_network_runtime.h>

enum { MOST_AXES = 10 };

/* A tensor; the elements of a constant are in the weights file. */
typedef struct {
    OH_NN_DataType type;
    OH_NN_TensorType purpose;
    uint32_t axes;
    int32_t sizes[MOST_AXES];
    uint32_t scales, first_scale;
    size_t place, length;
} Tensor;

/* An operation; the indices of its parameters, inputs and outputs are consecutive in INDICES. */
typedef struct {
    OH_NN_OperationType code;
    uint32_t first, parameters, inputs, outputs;
} Operation;

@MODEL@

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void check(OH_NN_ReturnCode code, const char *call)
{
    if (code != OH_NN_SUCCESS) {
        fprintf(stderr, "%s: OH_NN_ReturnCode %d\n", call, (int)code);
        exit(1);
    }
}

#define CALL(call) check(call, #call)

/* The bytes of a file. */
static unsigned char *content(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    long end = -1;
    unsigned char *memory;

    if (file && !fseek(file, 0, SEEK_END))
        end = ftell(file);
    if (end < 0)
        fail(path, "cannot be read");
    rewind(file);
    memory = (unsigned char *)malloc((size_t)end + 1);
    *length = memory ? fread(memory, 1, (size_t)end, file) : 0;
    if (*length != (size_t)end)
        fail(path, "cannot be read");
    fclose(file);
    return memory;
}

static void quantize(OH_NNModel *model, uint32_t index, const Tensor *tensor)
{
    NN_QuantParam *params = OH_NNQuantParam_Create();
    uint32_t *bits = (uint32_t *)malloc(tensor->scales * sizeof *bits);

    if (!bits)
        fail("memory", "there is none left");
    for (uint32_t scale = 0; scale < tensor->scales; scale++)
        bits[scale] = 8;
    CALL(OH_NNQuantParam_SetScales(params, SCALES + tensor->first_scale, tensor->scales));
    CALL(OH_NNQuantParam_SetZeroPoints(params, ZEROS + tensor->first_scale, tensor->scales));
    CALL(OH_NNQuantParam_SetNumBits(params, bits, tensor->scales));
    CALL(OH_NNModel_SetTensorQuantParams(model, index, params));
    CALL(OH_NNQuantParam_Destroy(&params));
    free(bits);
}

static OH_NN_UInt32Array list(uint32_t first, uint32_t count)
{
    OH_NN_UInt32Array found = {count ? INDICES + first : NULL, count};
    return found;
}

static OH_NNModel *build(const unsigned char *weights)
{
    OH_NNModel *model = OH_NNModel_Construct();

    for (uint32_t index = 0; index < sizeof TENSORS / sizeof *TENSORS; index++) {
        const Tensor *tensor = &TENSORS[index];
        NN_TensorDesc *desc = OH_NNTensorDesc_Create();
        CALL(OH_NNTensorDesc_SetDataType(desc, tensor->type));
        if (tensor->axes)
            CALL(OH_NNTensorDesc_SetShape(desc, tensor->sizes, tensor->axes));
        CALL(OH_NNModel_AddTensorToModel(model, desc));
        CALL(OH_NNTensorDesc_Destroy(&desc));
        if (tensor->purpose != OH_NN_TENSOR)
            CALL(OH_NNModel_SetTensorType(model, index, tensor->purpose));
        if (tensor->scales)
            quantize(model, index, tensor);
        if (tensor->length)
            CALL(OH_NNModel_SetTensorData(model, index, weights + tensor->place, tensor->length));
    }
    for (size_t index = 0; index < sizeof OPERATIONS / sizeof *OPERATIONS; index++) {
        const Operation *own = &OPERATIONS[index];
        OH_NN_UInt32Array parameters = list(own->first, own->parameters);
        OH_NN_UInt32Array inputs = list(own->first + own->parameters, own->inputs);
        OH_NN_UInt32Array outputs =
            list(own->first + own->parameters + own->inputs, own->outputs);
        CALL(OH_NNModel_AddOperation(model, own->code, &parameters, &inputs, &outputs));
    }
    OH_NN_UInt32Array inputs = list(0, INPUTS), outputs = list(INPUTS, OUTPUTS);
    CALL(OH_NNModel_SpecifyInputsAndOutputs(model, &inputs, &outputs));
    CALL(OH_NNModel_Finish(model));
    return model;
}

static size_t device_of(const char *wanted)
{
    const size_t *numbers = NULL;
    uint32_t count = 0;

    CALL(OH_NNDevice_GetAllDevicesID(&numbers, &count));
    for (uint32_t index = 0; index < count; index++) {
        const char *name = NULL;
        CALL(OH_NNDevice_GetName(numbers[index], &name));
        if (!strcmp(name, wanted))
            return numbers[index];
    }
    fail(wanted, "there is no such device");
    return 0;
}

/* A tensor of a description, with the shape after its file's name, if any. */
static NN_Tensor *tensor_for(size_t device, NN_TensorDesc *desc, char *argument)
{
    int32_t sizes[MOST_AXES];
    size_t count = 0;
    char *written = strrchr(argument, ':');
    NN_Tensor *made;

    if (written) {
        *written++ = '\0';
        while (*written && count < MOST_AXES) {
            sizes[count++] = (int32_t)strtol(written, &written, 10);
            if (*written)
                written++;
        }
        CALL(OH_NNTensorDesc_SetShape(desc, sizes, count));
    }
    made = OH_NNTensor_Create(device, desc);
    if (!made)
        fail(argument, "its sizes are open");
    CALL(OH_NNTensorDesc_Destroy(&desc));
    return made;
}

static size_t size_of(const NN_Tensor *tensor)
{
    size_t size = 0;
    CALL(OH_NNTensorDesc_GetByteSize(OH_NNTensor_GetTensorDesc(tensor), &size));
    return size;
}

int main(int count, char **arguments)
{
    NN_Tensor *inputs[INPUTS], *outputs[OUTPUTS];
    size_t length;

    if (count != 3 + INPUTS + OUTPUTS)
        fail(arguments[0], "takes DEVICE WEIGHTS INPUT... OUTPUT...");
    unsigned char *weights = content(arguments[2], &length);
    if (length != WEIGHTS)
        fail(arguments[2], "is not the file that came with this program");

    size_t device = device_of(arguments[1]);
    OH_NNModel *model = build(weights);
    free(weights);
    OH_NNCompilation *compilation = OH_NNCompilation_Construct(model);
    OH_NNModel_Destroy(&model);
    CALL(OH_NNCompilation_SetDevice(compilation, device));
    CALL(OH_NNCompilation_Build(compilation));
    OH_NNExecutor *executor = OH_NNExecutor_Construct(compilation);
    OH_NNCompilation_Destroy(&compilation);

    for (int index = 0; index < INPUTS; index++) {
        char *path = arguments[3 + index];
        NN_TensorDesc *desc = OH_NNExecutor_CreateInputTensorDesc(executor, (size_t)index);
        inputs[index] = tensor_for(device, desc, path);
        unsigned char *elements = content(path, &length);
        if (length != size_of(inputs[index]))
            fail(path, "has another number of bytes than the input");
        memcpy(OH_NNTensor_GetDataBuffer(inputs[index]), elements, length);
        free(elements);
    }
    for (int index = 0; index < OUTPUTS; index++) {
        NN_TensorDesc *desc = OH_NNExecutor_CreateOutputTensorDesc(executor, (size_t)index);
        outputs[index] = tensor_for(device, desc, arguments[3 + INPUTS + index]);
    }
    CALL(OH_NNExecutor_RunSync(executor, inputs, INPUTS, outputs, OUTPUTS));
    for (int index = 0; index < OUTPUTS; index++) {
        char *path = arguments[3 + INPUTS + index];
        FILE *file = fopen(path, "wb");
        length = size_of(outputs[index]);
        if (!file || fwrite(OH_NNTensor_GetDataBuffer(outputs[index]), 1, length, file) != length ||
            fclose(file))
            fail(path, "cannot be written");
        CALL(OH_NNTensor_Destroy(&outputs[index]));
    }
    for (int index = 0; index < INPUTS; index++)
        CALL(OH_NNTensor_Destroy(&inputs[index]));
    OH_NNExecutor_Destroy(&executor);
    return 0;
}
