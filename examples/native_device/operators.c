/* The operators of the chip, each with its limits. Reading starts at the table at the end. */
#include "chip.h"

#include <math.h>
#include <stdio.h>

typedef const crosschip_model model_t;
typedef const crosschip_operation operation_t;

/* ---- reading parameters ------------------------------------------------------------------ */

static int64_t integer_at(const crosschip_operand *operand, int64_t index)
{
    if (operand->type == CROSSCHIP_INT64)
        return ((const int64_t *)operand->data)[index];
    if (operand->type == CROSSCHIP_INT32)
        return ((const int32_t *)operand->data)[index];
    return ((const uint8_t *)operand->data)[index];
}

static int64_t integer(model_t *model, operation_t *operation, const char *slot)
{
    return integer_at(crosschip_input(model, operation, slot), 0);
}

static void integers(model_t *model, operation_t *operation, const char *slot, int64_t *into,
                     int64_t number)
{
    const crosschip_operand *operand = crosschip_input(model, operation, slot);
    int64_t index;
    for (index = 0; index < number; index++)
        into[index] = integer_at(operand, index);
}

static float real(model_t *model, operation_t *operation, const char *slot)
{
    return *(const float *)crosschip_input(model, operation, slot)->data;
}

/* The bounds of the activation that an operation ends with. */
static void read_fuse(model_t *model, operation_t *operation, parameters *into)
{
    static const float lows[] = {-INFINITY, 0, -1, 0}, highs[] = {INFINITY, INFINITY, 1, 6};
    int64_t code = integer(model, operation, "fuse_code");
    into->low = lows[code];
    into->high = highs[code];
}

static void read_nothing(model_t *model, operation_t *operation, parameters *into)
{
    (void)model, (void)operation, (void)into;
}

/* ---- limits ------------------------------------------------------------------------------ */

int refuse(crosschip_answer *answer, int32_t rule, const char *slot, const char *detail)
{
    answer->supported = 0;
    answer->rule = rule;
    snprintf(answer->slot, sizeof answer->slot, "%s", slot);
    snprintf(answer->detail, sizeof answer->detail, "%s", detail);
    return 0;
}

static int no_limit(model_t *model, operation_t *operation, crosschip_answer *answer)
{
    (void)model, (void)operation, (void)answer;
    return 1;
}

static int is(model_t *model, operation_t *operation, crosschip_answer *answer, const char *slot,
              int64_t wanted, const char *detail)
{
    if (integer(model, operation, slot) == wanted)
        return 1;
    return refuse(answer, CROSSCHIP_RULE_VALUE, slot, detail);
}

static int limit_convolution(model_t *model, operation_t *operation, crosschip_answer *answer)
{
    return is(model, operation, answer, "auto_pad", 0, "only NONE is computed");
}

static int limit_pool(model_t *model, operation_t *operation, crosschip_answer *answer)
{
    return is(model, operation, answer, "auto_pad", 0, "only NONE is computed") &&
           is(model, operation, answer, "ceil_mode", 0, "windows beyond the image are not computed");
}

static int limit_average(model_t *model, operation_t *operation, crosschip_answer *answer)
{
    return limit_pool(model, operation, answer) &&
           is(model, operation, answer, "count_include_pad", 0, "padding is not counted");
}

static int limit_maximum(model_t *model, operation_t *operation, crosschip_answer *answer)
{
    return limit_pool(model, operation, answer) &&
           is(model, operation, answer, "return_indices", 0, "indices are not made");
}

/* ---- elements ---------------------------------------------------------------------------- */

int64_t count(const tensor *of)
{
    int64_t total = 1;
    int32_t axis;
    for (axis = 0; axis < of->rank; axis++)
        total *= of->shape[axis];
    return total;
}

static float clipped(float value, const parameters *given)
{
    if (value < given->low)
        return given->low;
    return value > given->high ? given->high : value;
}

#define UNARY(name, expression)                                                                  \
    static void name(const tensor *inputs, const parameters *given, tensor *output)              \
    {                                                                                            \
        int64_t index, total = count(output);                                                    \
        (void)given;                                                                             \
        for (index = 0; index < total; index++) {                                                \
            float x = inputs[0].data[index];                                                     \
            output->data[index] = (expression);                                                  \
        }                                                                                        \
    }

UNARY(relu, x < 0 ? 0 : x)
UNARY(relu6, x < 0 ? 0 : x > 6 ? 6 : x)
UNARY(leaky_relu, x < 0 ? given->alpha * x : x)
UNARY(sigmoid, 1 / (1 + expf(-x)))
UNARY(hyperbolic_tangent, tanhf(x))
UNARY(absolute, fabsf(x))

static void read_alpha(model_t *model, operation_t *operation, parameters *into)
{
    into->alpha = real(model, operation, "alpha");
}

/* Where an element of the output comes from, in an input that is repeated to its shape. */
static int64_t place_in(const tensor *input, const tensor *output, int64_t index)
{
    int64_t place = 0, step = 1;
    int32_t axis, missing = output->rank - input->rank;
    for (axis = output->rank - 1; axis >= missing; axis--) {
        int64_t size = input->shape[axis - missing];
        if (size > 1)
            place += step * (index % output->shape[axis]);
        step *= size;
        index /= output->shape[axis];
    }
    return place;
}

#define BINARY(name, expression)                                                                 \
    static void name(const tensor *inputs, const parameters *given, tensor *output)              \
    {                                                                                            \
        int64_t index, total = count(output);                                                    \
        for (index = 0; index < total; index++) {                                                \
            float x = inputs[0].data[place_in(&inputs[0], output, index)];                       \
            float y = inputs[1].data[place_in(&inputs[1], output, index)];                       \
            output->data[index] = clipped(expression, given);                                    \
        }                                                                                        \
    }

BINARY(sum, x + y)
BINARY(difference, x - y)
BINARY(product, x * y)
BINARY(quotient, x / y)

/* ---- windows ----------------------------------------------------------------------------- */

static void read_windows(model_t *model, operation_t *operation, parameters *into)
{
    integers(model, operation, "pads", into->pads, 4);
    integers(model, operation, "strides", into->strides, 2);
    integers(model, operation, "dilations", into->dilations, 2);
    read_fuse(model, operation, into);
}

static void read_convolution(model_t *model, operation_t *operation, parameters *into)
{
    read_windows(model, operation, into);
    into->group = integer(model, operation, "group");
}

static void read_pool(model_t *model, operation_t *operation, parameters *into)
{
    read_windows(model, operation, into);
    integers(model, operation, "kernel_shape", into->kernel, 2);
}

/* The row or column of the image at a place of a window. */
static int64_t image_at(const parameters *given, int axis, int64_t output, int64_t window)
{
    return output * given->strides[axis] - given->pads[2 * axis] + window * given->dilations[axis];
}

static float convolved(const tensor *inputs, const parameters *given, const int64_t *at,
                       int64_t channels_out)
{
    const tensor *image = &inputs[0], *filter = &inputs[1], *bias = &inputs[2];
    int64_t height = image->shape[2], width = image->shape[3], depth = filter->shape[1];
    int64_t group = at[1] / (channels_out / given->group), c, i, j;
    float total = bias->data ? bias->data[at[1]] : 0;
    for (c = 0; c < depth; c++) {
        int64_t channel = at[0] * image->shape[1] + group * depth + c;
        const float *plane = image->data + channel * height * width;
        const float *weights =
            filter->data + (at[1] * depth + c) * filter->shape[2] * filter->shape[3];
        for (i = 0; i < filter->shape[2]; i++) {
            int64_t row = image_at(given, 0, at[2], i);
            if (row < 0 || row >= height)
                continue;
            for (j = 0; j < filter->shape[3]; j++) {
                int64_t column = image_at(given, 1, at[3], j);
                if (column >= 0 && column < width)
                    total += plane[row * width + column] * weights[i * filter->shape[3] + j];
            }
        }
    }
    return total;
}

static void convolution(const tensor *inputs, const parameters *given, tensor *output)
{
    const int64_t *shape = output->shape;
    int64_t at[4], index = 0;
    for (at[0] = 0; at[0] < shape[0]; at[0]++)
        for (at[1] = 0; at[1] < shape[1]; at[1]++)
            for (at[2] = 0; at[2] < shape[2]; at[2]++)
                for (at[3] = 0; at[3] < shape[3]; at[3]++)
                    output->data[index++] =
                        clipped(convolved(inputs, given, at, shape[1]), given);
}

/* The greatest of a window's pixels, their sum, and how many there are. */
static void look(const tensor *image, const parameters *given, const float *plane, int64_t y,
                 int64_t x, float *greatest, float *total, int64_t *pixels)
{
    int64_t i, j;
    *greatest = -INFINITY;
    *total = 0;
    *pixels = 0;
    for (i = 0; i < given->kernel[0]; i++) {
        int64_t row = image_at(given, 0, y, i);
        if (row < 0 || row >= image->shape[2])
            continue;
        for (j = 0; j < given->kernel[1]; j++) {
            int64_t column = image_at(given, 1, x, j);
            float pixel;
            if (column < 0 || column >= image->shape[3])
                continue;
            pixel = plane[row * image->shape[3] + column];
            if (pixel > *greatest || isnan(pixel))
                *greatest = pixel;
            *total += pixel;
            ++*pixels;
        }
    }
}

static void pool(const tensor *image, const parameters *given, tensor *output, int average)
{
    int64_t planes = output->shape[0] * output->shape[1], plane, y, x, index = 0;
    for (plane = 0; plane < planes; plane++) {
        const float *pixels_of = image->data + plane * image->shape[2] * image->shape[3];
        for (y = 0; y < output->shape[2]; y++)
            for (x = 0; x < output->shape[3]; x++) {
                float greatest, total;
                int64_t pixels;
                look(image, given, pixels_of, y, x, &greatest, &total, &pixels);
                output->data[index++] =
                    clipped(average ? total / (float)pixels : greatest, given);
            }
    }
}

static void average_pool(const tensor *inputs, const parameters *given, tensor *output)
{
    pool(inputs, given, output, 1);
}

static void max_pool(const tensor *inputs, const parameters *given, tensor *output)
{
    pool(inputs, given, output, 0);
}

/* ---- axes -------------------------------------------------------------------------------- */

static void read_axis(model_t *model, operation_t *operation, parameters *into)
{
    into->axis = integer(model, operation, "axis");
}

static void softmax(const tensor *inputs, const parameters *given, tensor *output)
{
    int32_t axis = (int32_t)(given->axis < 0 ? given->axis + output->rank : given->axis), other;
    int64_t size = output->shape[axis], step = 1, lines, line, index;
    for (other = axis + 1; other < output->rank; other++)
        step *= output->shape[other];
    lines = size ? count(output) / size : 0;
    for (line = 0; line < lines; line++) {
        int64_t first = line / step * step * size + line % step;
        float greatest = -INFINITY, total = 0;
        for (index = 0; index < size; index++) {
            float x = inputs[0].data[first + index * step];
            if (x > greatest || isnan(x))
                greatest = x;
        }
        for (index = 0; index < size; index++)
            total += expf(inputs[0].data[first + index * step] - greatest);
        for (index = 0; index < size; index++)
            output->data[first + index * step] =
                expf(inputs[0].data[first + index * step] - greatest) / total;
    }
}

static void read_epsilon(model_t *model, operation_t *operation, parameters *into)
{
    into->alpha = real(model, operation, "epsilon");
}

static void batch_normalization(const tensor *inputs, const parameters *given, tensor *output)
{
    int64_t index, total = count(output), channels = output->shape[1], step = 1;
    int32_t axis;
    for (axis = 2; axis < output->rank; axis++)
        step *= output->shape[axis];
    for (index = 0; index < total; index++) {
        int64_t channel = index / step % channels;
        float factor = inputs[1].data[channel] / sqrtf(inputs[4].data[channel] + given->alpha);
        output->data[index] =
            (inputs[0].data[index] - inputs[3].data[channel]) * factor + inputs[2].data[channel];
    }
}

/* ---- the table --------------------------------------------------------------------------- */

static const kernel kernels[] = {
    {"ABS", {"input"}, no_limit, read_nothing, absolute},
    {"RELU", {"input"}, no_limit, read_nothing, relu},
    {"RELU6", {"input"}, no_limit, read_nothing, relu6},
    {"LEAKY_RELU", {"input"}, no_limit, read_alpha, leaky_relu},
    {"SIGMOID", {"input"}, no_limit, read_nothing, sigmoid},
    {"TANH", {"input"}, no_limit, read_nothing, hyperbolic_tangent},
    {"ADD", {"input0", "input1"}, no_limit, read_fuse, sum},
    {"SUB", {"input0", "input1"}, no_limit, read_fuse, difference},
    {"MUL", {"input0", "input1"}, no_limit, read_fuse, product},
    {"DIV", {"input0", "input1"}, no_limit, read_fuse, quotient},
    {"CONV_2D", {"input", "filter", "bias"}, limit_convolution, read_convolution, convolution},
    {"AVERAGE_POOL_2D", {"input"}, limit_average, read_pool, average_pool},
    {"MAX_POOL_2D", {"input"}, limit_maximum, read_pool, max_pool},
    {"SOFTMAX", {"input"}, no_limit, read_axis, softmax},
    {"BATCH_NORMALIZATION",
     {"input", "scale", "bias", "mean", "variance"},
     no_limit,
     read_epsilon,
     batch_normalization},
};

const kernel *kernel_named(const char *name)
{
    size_t index;
    for (index = 0; index < sizeof kernels / sizeof *kernels; index++)
        if (strcmp(kernels[index].name, name) == 0)
            return &kernels[index];
    return NULL;
}
