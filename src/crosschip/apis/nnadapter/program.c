/*
 * @NAME@ as calls of NNAdapter.
 *
 *     @NAME@ DEVICE WEIGHTS INPUT… OUTPUT…
 *
 * DEVICE is NNAdapter's or crosschip's name of the device, WEIGHTS the weights file of this program.
 * An input is a file of its raw elements; if its shape is dynamic, the shape follows the name, as in
 * image.bin:1x3x48x192. An output is a file to write.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nnadapter.h>

#define SIZES(...) (const int32_t[]){__VA_ARGS__}
#define OPERANDS(...) (NNAdapterOperand *[]){__VA_ARGS__}
#define CALL(call) check(call, #call)

typedef struct {
    uint32_t count;
    int32_t sizes[NNADAPTER_MAX_SIZE_OF_DIMENSIONS];
    void *elements;
    size_t length;
} Tensor;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void check(int code, const char *call)
{
    if (code != NNADAPTER_NO_ERROR) {
        fprintf(stderr, "%s: NNAdapterResultCode %d\n", call, code);
        exit(1);
    }
}

static void *allocated(size_t length)
{
    void *memory = malloc(length ? length : 1);
    if (!memory)
        fail("memory", "there is none left");
    return memory;
}

/* The bytes of a file. */
static void *content(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    long end = -1;
    void *memory;

    if (file && !fseek(file, 0, SEEK_END))
        end = ftell(file);
    if (end < 0)
        fail(path, "cannot be read");
    rewind(file);
    memory = allocated((size_t)end);
    *length = fread(memory, 1, (size_t)end, file);
    if (*length != (size_t)end)
        fail(path, "cannot be read");
    fclose(file);
    return memory;
}

/* The number of bytes of an element. */
static size_t element_size(NNAdapterOperandPrecisionCode precision)
{
    switch (precision) {
    case NNADAPTER_BOOL8:
    case NNADAPTER_INT8:
    case NNADAPTER_UINT8:
    case NNADAPTER_QUANT_INT8_SYMM_PER_LAYER:
    case NNADAPTER_QUANT_INT8_SYMM_PER_CHANNEL:
    case NNADAPTER_QUANT_UINT8_ASYMM_PER_LAYER:
        return 1;
    case NNADAPTER_INT16:
    case NNADAPTER_UINT16:
    case NNADAPTER_FLOAT16:
    case NNADAPTER_QUANT_INT16_SYMM_PER_LAYER:
    case NNADAPTER_QUANT_INT16_SYMM_PER_CHANNEL:
    case NNADAPTER_QUANT_UINT16_ASYMM_PER_LAYER:
        return 2;
    case NNADAPTER_INT64:
    case NNADAPTER_UINT64:
    case NNADAPTER_FLOAT64:
        return 8;
    default:
        return 4;
    }
}

static NNAdapterOperandType type_of(NNAdapterOperandPrecisionCode precision, uint32_t count,
                                    const int32_t *sizes)
{
    NNAdapterOperandType type;
    memset(&type, 0, sizeof type);
    type.precision = precision;
    type.dimensions.count = count;
    memcpy(type.dimensions.data, sizes, count * sizeof *sizes);
    return type;
}

/* A type with listed shapes, which are consecutive. */
static inline NNAdapterOperandType among(NNAdapterOperandType type, uint32_t shapes,
                                         const int32_t *sizes)
{
    uint32_t count = type.dimensions.count;
    type.dimensions.dynamic_count = shapes;
    for (uint32_t shape = 0; shape < shapes; shape++)
        memcpy(type.dimensions.dynamic_data[shape], sizes + shape * count, count * sizeof *sizes);
    return type;
}

static inline NNAdapterOperandType per_layer(NNAdapterOperandType type, float scale)
{
    type.symm_per_layer_params.scale = scale;
    return type;
}

static inline NNAdapterOperandType per_channel(NNAdapterOperandType type, uint32_t axis,
                                               uint32_t count, float *scales)
{
    type.symm_per_channel_params.channel_dim = axis;
    type.symm_per_channel_params.scale_count = count;
    type.symm_per_channel_params.scales = scales;
    return type;
}

static inline NNAdapterOperandType asymmetric(NNAdapterOperandType type, float scale, int32_t zero)
{
    type.asymm_per_layer_params.scale = scale;
    type.asymm_per_layer_params.zero_point = zero;
    return type;
}

static NNAdapterOperand *variable(NNAdapterModel *model, NNAdapterOperandType type)
{
    NNAdapterOperand *made;
    CALL(NNAdapterModel_addOperand(model, &type, &made));
    return made;
}

static inline NNAdapterOperand *constant(NNAdapterModel *model, NNAdapterOperandType type,
                                         void *elements, uint32_t length)
{
    NNAdapterOperand *made = variable(model, type);
    CALL(NNAdapterModel_setOperandValue(made, elements, length, false));
    return made;
}

static void operation(NNAdapterModel *model, NNAdapterOperationType code, uint32_t input_count,
                      NNAdapterOperand **inputs, uint32_t output_count, NNAdapterOperand **outputs)
{
    NNAdapterOperation *made;
    CALL(NNAdapterModel_addOperation(model, code, input_count, inputs, output_count, outputs,
                                     &made));
}

@MODEL@

static void *read_input(void *memory, NNAdapterOperandType *type, void *device_buffer)
{
    Tensor *tensor = memory;
    size_t needed = element_size(type->precision);

    (void)device_buffer;
    if (tensor->count) {
        type->dimensions.count = tensor->count;
        memcpy(type->dimensions.data, tensor->sizes, sizeof tensor->sizes);
    }
    for (uint32_t axis = 0; axis < type->dimensions.count; axis++)
        if (type->dimensions.data[axis] >= 0)
            needed *= (size_t)type->dimensions.data[axis];
    return tensor->length == needed ? tensor->elements : NULL;
}

static void *place_output(void *memory, NNAdapterOperandType *type, void *device_buffer)
{
    Tensor *tensor = memory;

    (void)device_buffer;
    tensor->length = element_size(type->precision);
    for (uint32_t axis = 0; axis < type->dimensions.count; axis++)
        tensor->length *= (size_t)type->dimensions.data[axis];
    tensor->elements = allocated(tensor->length);
    return tensor->elements;
}

/* An input from a file, with the shape after its name, if any. */
static Tensor input_from(char *argument)
{
    Tensor tensor = {0, {0}, NULL, 0};
    char *sizes = strrchr(argument, ':');

    if (sizes) {
        *sizes++ = '\0';
        while (*sizes && tensor.count < NNADAPTER_MAX_SIZE_OF_DIMENSIONS) {
            tensor.sizes[tensor.count++] = (int32_t)strtol(sizes, &sizes, 10);
            if (*sizes)
                sizes++;
        }
    }
    tensor.elements = content(argument, &tensor.length);
    return tensor;
}

int main(int count, char **arguments)
{
    NNAdapterDevice *device;
    NNAdapterContext *context;
    NNAdapterCompilation *compilation;
    NNAdapterExecution *execution;
    Tensor inputs[INPUTS], outputs[OUTPUTS];
    size_t length;

    if (count != 3 + INPUTS + OUTPUTS)
        fail(arguments[0], "takes DEVICE WEIGHTS INPUT... OUTPUT...");
    unsigned char *weights = content(arguments[2], &length);
    if (length != WEIGHTS)
        fail(arguments[2], "is not the file that came with this program");

    CALL(NNAdapterDevice_acquire(arguments[1], &device));
    CALL(NNAdapterContext_create(&device, 1, NULL, NULL, &context));
    NNAdapterModel *model = build(weights);
    CALL(NNAdapterCompilation_create(model, NULL, NULL, 0, NULL, context, &compilation));
    CALL(NNAdapterCompilation_finish(compilation));
    CALL(NNAdapterExecution_create(compilation, &execution));
    for (int index = 0; index < INPUTS; index++) {
        inputs[index] = input_from(arguments[3 + index]);
        CALL(NNAdapterExecution_setInput(execution, index, &inputs[index], read_input));
    }
    for (int index = 0; index < OUTPUTS; index++)
        CALL(NNAdapterExecution_setOutput(execution, index, &outputs[index], place_output));
    CALL(NNAdapterExecution_compute(execution));
    for (int index = 0; index < OUTPUTS; index++) {
        char *path = arguments[3 + INPUTS + index];
        FILE *file = fopen(path, "wb");
        if (!file || fwrite(outputs[index].elements, 1, outputs[index].length, file) !=
                         outputs[index].length || fclose(file))
            fail(path, "cannot be written");
        free(outputs[index].elements);
    }
    for (int index = 0; index < INPUTS; index++)
        free(inputs[index].elements);

    NNAdapterExecution_destroy(execution);
    NNAdapterCompilation_destroy(compilation);
    NNAdapterModel_destroy(model);
    NNAdapterContext_destroy(context);
    NNAdapterDevice_release(device);
    free(weights);
    return 0;
}
