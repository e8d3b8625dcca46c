/* The median of each element and its neighbours on the last axis. */
#include <crosschip_kernel.h>

const int32_t crosschip_kernel_version = CROSSCHIP_KERNEL_VERSION;

static double real(const crosschip_tensor *tensor, const char *place) {
    if (tensor->type == CROSSCHIP_ELEMENT_FLOAT32)
        return *(const float *)place;
    const crosschip_quantization *q = &tensor->quantization;
    return (*(const uint8_t *)place - (double)q->zero_points[0]) * (double)q->scales[0];
}

static void put(const crosschip_tensor *tensor, char *place, double value) {
    if (tensor->type == CROSSCHIP_ELEMENT_FLOAT32) {
        *(float *)place = (float)value;
        return;
    }
    const crosschip_quantization *q = &tensor->quantization;
    double whole = value / (double)q->scales[0] + (double)q->zero_points[0] + 0.5;
    *(uint8_t *)place = (uint8_t)(whole < 0 ? 0 : whole > 255 ? 255 : whole);
}

static double middle(double a, double b, double c) {
    double low = a < b ? a : b, high = a < b ? b : a;
    double inner = high < c ? high : c;
    return low > inner ? low : inner;
}

static void rows(const crosschip_tensor *x, const crosschip_tensor *y, int axis, const char *from,
                 char *to) {
    int64_t size = x->shape[axis], step = x->strides[axis];
    if (axis + 1 < x->rank) {
        for (int64_t i = 0; i < size; i++)
            rows(x, y, axis + 1, from + i * step, to + i * y->strides[axis]);
        return;
    }
    for (int64_t i = 0; i < size; i++) {
        double left = real(x, from + (i > 0 ? i - 1 : 0) * step);
        double right = real(x, from + (i + 1 < size ? i + 1 : i) * step);
        put(y, to + i * y->strides[axis], middle(left, real(x, from + i * step), right));
    }
}

int median_of_three(const crosschip_call *call) {
    const crosschip_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    rows(x, y, 0, x->data, y->data);
    return CROSSCHIP_KERNEL_OK;
}
