/*
 * Kernels of custom operators, in C: version 1.
 *
 * A kernel is a function of a shared library that computes the outputs of one operation:
 *
 *     int Blur(const crosschip_call *call) {
 *         const crosschip_tensor *image = &call->inputs[0];
 *         ...
 *         return CROSSCHIP_KERNEL_OK;
 *     }
 *
 * Several threads may call a kernel at once. It writes to the outputs only, and must not keep
 * pointers after it returns. Arguments have been checked against the operator's definition:
 * element types, ranks and machine-readable constraints. Each structure begins with its size;
 * later versions only append members.
 */
#ifndef CROSSCHIP_KERNEL_H
#define CROSSCHIP_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A library exports `const int32_t crosschip_kernel_version = CROSSCHIP_KERNEL_VERSION;`. */
#define CROSSCHIP_KERNEL_VERSION 1

/* The result of a kernel; any other number means failure. */
typedef enum crosschip_kernel_result {
    CROSSCHIP_KERNEL_OK = 0,
    CROSSCHIP_KERNEL_FAILED = 1,
    CROSSCHIP_KERNEL_NOT_SUPPORTED = 2
} crosschip_kernel_result;

/* Element types, numbered as in crosschip_hal.h. */
typedef enum crosschip_element {
    CROSSCHIP_ELEMENT_BOOL = 0,
    CROSSCHIP_ELEMENT_INT8 = 1,
    CROSSCHIP_ELEMENT_UINT8 = 2,
    CROSSCHIP_ELEMENT_INT16 = 3,
    CROSSCHIP_ELEMENT_UINT16 = 4,
    CROSSCHIP_ELEMENT_INT32 = 5,
    CROSSCHIP_ELEMENT_UINT32 = 6,
    CROSSCHIP_ELEMENT_INT64 = 7,
    CROSSCHIP_ELEMENT_UINT64 = 8,
    CROSSCHIP_ELEMENT_FLOAT16 = 9,
    CROSSCHIP_ELEMENT_FLOAT32 = 10,
    CROSSCHIP_ELEMENT_FLOAT64 = 11,
    CROSSCHIP_ELEMENT_INT4 = 70, /* in the low half of a byte; the high half is undefined */
    CROSSCHIP_ELEMENT_UINT4 = 71
} crosschip_element;

/* Affine quantization: real = (integer - zero_points[i]) * scales[i]. */
typedef struct crosschip_quantization {
    int64_t count;              /* 1, or the size of the axis; 0 if not quantized */
    int32_t axis;               /* the axis of the scales; -1 if per tensor */
    const float *scales;        /* `count` elements */
    const int64_t *zero_points; /* `count` elements */
} crosschip_quantization;

/* A tensor. */
typedef struct crosschip_tensor {
    size_t size;            /* sizeof this structure */
    const char *name;       /* as in the definition; shared by all of a repeated tensor */
    int32_t type;           /* a crosschip_element */
    int32_t rank;           /* -1 if the tensor is omitted */
    const int64_t *shape;   /* `rank` sizes */
    const int64_t *strides; /* `rank` strides in bytes; may be 0 or negative for inputs */
    void *data;             /* the first element; NULL if omitted */
    crosschip_quantization quantization;
} crosschip_tensor;

/* Arguments of one call. */
typedef struct crosschip_call {
    size_t size;                        /* sizeof this structure */
    int32_t input_count;
    const crosschip_tensor *inputs;     /* in the definition's order */
    int32_t parameter_count;
    const crosschip_tensor *parameters; /* in the definition's order, with defaults */
    int32_t output_count;
    const crosschip_tensor *outputs;    /* to be written; contiguous */
    char *message;                      /* buffer for an error message, UTF-8, null-terminated */
    size_t message_length;              /* size of the buffer in bytes */
} crosschip_call;

typedef int (*crosschip_kernel)(const crosschip_call *call);

#ifdef __cplusplus
}
#endif

#endif
