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
 * It may be called from several threads at once, writes to the outputs only, and keeps no pointer
 * once it has returned. What it gets has been checked against the operator's definition: element
 * types, ranks, and the constraints that are enforced. Structures begin with their size, and only
 * grow at their end.
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

/* What a kernel returns: any other number is a failure, too. */
typedef enum crosschip_kernel_result {
    CROSSCHIP_KERNEL_OK = 0,
    CROSSCHIP_KERNEL_FAILED = 1,
    CROSSCHIP_KERNEL_NOT_SUPPORTED = 2
} crosschip_kernel_result;

/* Element types: the numbers of crosschip_hal.h. */
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
    CROSSCHIP_ELEMENT_INT4 = 70, /* the low half of a byte each; the rest of it is undefined */
    CROSSCHIP_ELEMENT_UINT4 = 71
} crosschip_element;

/* Integers that stand for reals: real = (integer - zero_points[i]) * scales[i]. */
typedef struct crosschip_quantization {
    int64_t count;              /* 1, or the size of the axis; 0 if it is not quantized */
    int32_t axis;               /* the axis that scales run along; -1 if there is one for all */
    const float *scales;        /* count of them */
    const int64_t *zero_points; /* count of them */
} crosschip_quantization;

/* A tensor. */
typedef struct crosschip_tensor {
    size_t size;            /* of this structure */
    const char *name;       /* as in the definition; the same for all of one that repeats */
    int32_t type;           /* a crosschip_element */
    int32_t rank;           /* the number of axes; -1 if it is left out */
    const int64_t *shape;   /* rank sizes */
    const int64_t *strides; /* rank distances, in bytes; may be 0 or negative for inputs */
    void *data;             /* the first element; NULL if it is left out */
    crosschip_quantization quantization;
} crosschip_tensor;

/* One use of an operator. */
typedef struct crosschip_call {
    size_t size;                        /* of this structure */
    int32_t input_count;
    const crosschip_tensor *inputs;     /* in the definition's order */
    int32_t parameter_count;
    const crosschip_tensor *parameters; /* in the definition's order, defaults filled in */
    int32_t output_count;
    const crosschip_tensor *outputs;    /* memory to write to, rows without gaps */
    char *message;                      /* room to say what went wrong, UTF-8, ends with 0 */
    size_t message_length;              /* its bytes */
} crosschip_call;

typedef int (*crosschip_kernel)(const crosschip_call *call);

#ifdef __cplusplus
}
#endif

#endif
