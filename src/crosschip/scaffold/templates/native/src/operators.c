/* The operators of the chip, each with its limits. Reading starts at the table at the end. */
#include "chip.h"

#include <stdio.h>
#include <string.h>

int refuse(crosschip_answer *answer, int32_t rule, const char *slot, const char *detail)
{
    answer->supported = 0;
    answer->rule = rule;
    snprintf(answer->slot, sizeof answer->slot, "%s", slot);
    snprintf(answer->detail, sizeof answer->detail, "%s", detail);
    return 0;
}

int64_t count(const tensor *of)
{
    int64_t total = 1;
    int32_t axis;
    for (axis = 0; axis < of->rank; axis++)
        total *= of->shape[axis];
    return total;
}

/* Whether an operation is one that the chip computes; where it is not, refuse() says why. */
static int no_limit(const crosschip_model *model, const crosschip_operation *operation,
                    crosschip_answer *answer)
{
    (void)model, (void)operation, (void)answer;
    return 1;
}

/* crosschip_input(model, operation, "strides") finds what a kernel needs besides its tensors. */
static void read_nothing(const crosschip_model *model, const crosschip_operation *operation,
                         parameters *into)
{
    (void)model, (void)operation, (void)into;
}

static void relu(const tensor *inputs, const parameters *given, tensor *output)
{
    int64_t index, total = count(output);
    (void)given;
    for (index = 0; index < total; index++) {
        float x = inputs[0].data[index];
        output->data[index] = x < 0 ? 0 : x;
    }
}

static const kernel kernels[] = {
    {"RELU", {"input"}, no_limit, read_nothing, relu},
};

const kernel *kernel_named(const char *name)
{
    size_t index;
    for (index = 0; index < sizeof kernels / sizeof *kernels; index++)
        if (strcmp(kernels[index].name, name) == 0)
            return &kernels[index];
    return NULL;
}
