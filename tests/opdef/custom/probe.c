/* Kernels that tell what they get, for the tests of the interface. */
#include <crosschip_kernel.h>
#include <stdio.h>
#include <string.h>

#ifndef VERSION
#define VERSION CROSSCHIP_KERNEL_VERSION
#endif

const int32_t crosschip_kernel_version = VERSION;

static int64_t *tell(int64_t *to, const crosschip_tensor *tensor) {
    *to++ = (int64_t)strlen(tensor->name);
    *to++ = tensor->type;
    *to++ = tensor->rank;
    for (int axis = 0; axis < tensor->rank; axis++) *to++ = tensor->shape[axis];
    for (int axis = 0; axis < tensor->rank; axis++) *to++ = tensor->strides[axis];
    *to++ = tensor->quantization.count;
    *to++ = tensor->quantization.axis;
    for (int64_t i = 0; i < tensor->quantization.count; i++) {
        *to++ = tensor->quantization.zero_points[i];
        *to++ = (int64_t)(tensor->quantization.scales[i] * 1000);
    }
    return to;
}

/* Describes all inputs, then all parameters, with the first element of each of these. */
int probe(const crosschip_call *call) {
    int64_t *to = call->outputs[0].data;
    memset(to, 0xFF, 64 * sizeof(*to));
    for (int32_t i = 0; i < call->input_count; i++) to = tell(to, &call->inputs[i]);
    for (int32_t i = 0; i < call->parameter_count; i++) {
        to = tell(to, &call->parameters[i]);
        *to++ = call->parameters[i].data ? *(const int32_t *)call->parameters[i].data : -77;
    }
    return CROSSCHIP_KERNEL_OK;
}

static void copy(const crosschip_tensor *from, const crosschip_tensor *to, int axis, const char *source,
                 char *target) {
    if (axis == from->rank) {
        memcpy(target, source, 4);
        return;
    }
    for (int64_t i = 0; i < from->shape[axis]; i++)
        copy(from, to, axis + 1, source + i * from->strides[axis], target + i * to->strides[axis]);
}

/* Copies floats, however they lie in memory. */
int copied(const crosschip_call *call) {
    copy(&call->inputs[0], &call->outputs[0], 0, call->inputs[0].data, call->outputs[0].data);
    return CROSSCHIP_KERNEL_OK;
}

int failing(const crosschip_call *call) {
    snprintf(call->message, call->message_length, "the %s is out", "kettle");
    return CROSSCHIP_KERNEL_NOT_SUPPORTED;
}
