/* What the two parts of the driver share: the driver's side of the contract, and the operators. */
#ifndef CHIP_H
#define CHIP_H

#include "crosschip_hal.h"

#define CHIP_DEVICE __nnadapter_device__my_npu
#define CHIP_NAME "my_npu"
#define CHIP_VENDOR "the vendor of my_npu"
#define CHIP_VERSION "0.1.0"

#define MAX_RANK 8

/* A tensor of float32 as the kernels see it. */
typedef struct tensor {
    int32_t rank;
    int64_t shape[MAX_RANK];
    float *data;
} tensor;

/* The parameters of one operation, read once when a program is made. */
typedef struct parameters {
    int64_t pads[4];
    int64_t strides[2];
    int64_t dilations[2];
    int64_t kernel[2];
    int64_t group;
    int64_t axis;
    float low;  /* of the activation behind it */
    float high;
    float alpha;
} parameters;

/*
 * An operator: the slots of its tensors, in the order in which compute gets them; what it does not
 * do; its parameters; and how it is computed. A tensor that is left out has no data.
 */
typedef struct kernel {
    const char *name;
    const char *tensors[5];
    int (*limit)(const crosschip_model *, const crosschip_operation *, crosschip_answer *);
    void (*read)(const crosschip_model *, const crosschip_operation *, parameters *);
    void (*compute)(const tensor *inputs, const parameters *given, tensor *output);
} kernel;

/* The operator of this name; NULL if there is none. */
const kernel *kernel_named(const char *name);

/* How many elements a tensor has. */
int64_t count(const tensor *of);

/* Say no, and why; 0, which is what a limit returns then. */
int refuse(crosschip_answer *answer, int32_t rule, const char *slot, const char *detail);

#endif
