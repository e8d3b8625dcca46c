/*
 * The driver contract of crosschip, version 1, in C.
 *
 * A driver is a shared library lib<name>.so that exports one variable:
 *
 *     const crosschip_device __nnadapter_device__<name> = {
 *         .size = sizeof(crosschip_device), .contract = CROSSCHIP_CONTRACT, ...
 *     };
 *
 * Dashes of a name are written as underscores. A member that is left out is NULL or 0. Those that
 * must be there are marked so; all others have the default that is named with them. Every function
 * that returns int returns CROSSCHIP_OK, or the code of what went wrong; last_error may say more.
 *
 * Structures only grow at their end, and begin with their size where they can: read a member that
 * came with a later revision only if the size says that it is there. Strings are UTF-8. Memory that
 * crosschip passes belongs to crosschip, and is there until the function returns, unless it is said
 * otherwise.
 */
#ifndef CROSSCHIP_HAL_H
#define CROSSCHIP_HAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CROSSCHIP_CONTRACT 1
#define CROSSCHIP_SLOT_LENGTH 64
#define CROSSCHIP_DETAIL_LENGTH 192

/* What functions return: NNAdapter's codes. */
typedef enum crosschip_result {
    CROSSCHIP_OK = 0,
    CROSSCHIP_OUT_OF_MEMORY = 1,
    CROSSCHIP_INVALID_DIMENSIONS = 2,
    CROSSCHIP_INVALID_PARAMETER = 3,
    CROSSCHIP_DEVICE_NOT_FOUND = 4,
    CROSSCHIP_DEVICE_INTERNAL_ERROR = 5,
    CROSSCHIP_FEATURE_NOT_SUPPORTED = 6
} crosschip_result;

/* The sort of hardware: NNAdapter's device types. */
typedef enum crosschip_kind {
    CROSSCHIP_KIND_CPU = 0,
    CROSSCHIP_KIND_GPU = 1,
    CROSSCHIP_KIND_ACCELERATOR = 2
} crosschip_kind;

/* Element types: NNAdapter's precisions, and from 12 on what NNAdapter does not have. */
typedef enum crosschip_type {
    CROSSCHIP_BOOL = 0,
    CROSSCHIP_INT8 = 1,
    CROSSCHIP_UINT8 = 2,
    CROSSCHIP_INT16 = 3,
    CROSSCHIP_UINT16 = 4,
    CROSSCHIP_INT32 = 5,
    CROSSCHIP_UINT32 = 6,
    CROSSCHIP_INT64 = 7,
    CROSSCHIP_UINT64 = 8,
    CROSSCHIP_FLOAT16 = 9,
    CROSSCHIP_FLOAT32 = 10,
    CROSSCHIP_FLOAT64 = 11,
    CROSSCHIP_BFLOAT16 = 12
} crosschip_type;

/* The sort of rule that an operation breaks. */
typedef enum crosschip_rule {
    CROSSCHIP_RULE_OPERATOR = 0,
    CROSSCHIP_RULE_ELEMENT_TYPE = 1,
    CROSSCHIP_RULE_QUANTIZATION = 2,
    CROSSCHIP_RULE_COMPUTED = 3,
    CROSSCHIP_RULE_SHAPE = 4,
    CROSSCHIP_RULE_VALUE = 5,
    CROSSCHIP_RULE_FUSION = 6,
    CROSSCHIP_RULE_OPTION = 7,
    CROSSCHIP_RULE_CAPACITY = 8
} crosschip_rule;

/* The arithmetic for float32 operations. */
typedef enum crosschip_precision {
    CROSSCHIP_PRECISION_FLOAT32 = 0,
    CROSSCHIP_PRECISION_BFLOAT16 = 1,
    CROSSCHIP_PRECISION_FLOAT16 = 2
} crosschip_precision;

/* The open sizes that a device compiles. */
typedef enum crosschip_sizing {
    CROSSCHIP_SIZING_FIXED = 0,
    CROSSCHIP_SIZING_BOUNDED = 1,
    CROSSCHIP_SIZING_FREE = 2
} crosschip_sizing;

/* A value in a model. Integers with scales stand for reals: scale * (integer - zero point). */
typedef struct crosschip_operand {
    const char *name;
    int32_t type;               /* a crosschip_type */
    int32_t rank;               /* the number of axes; -1 if even that is unknown */
    const int64_t *shape;       /* the sizes; -1 where one is open */
    const void *data;           /* the elements of a constant, C-contiguous; NULL if it is none */
    uint64_t length;            /* of the data, in bytes */
    uint32_t scale_count;       /* 0 if it is not quantized */
    int32_t scale_axis;         /* the axis with a scale for each index; -1 if there is one scale */
    const double *scales;
    const int64_t *zero_points; /* as many as scales */
} crosschip_operand;

/* One use of a standard operator. A parameter is an operand like any other, mostly a constant. */
typedef struct crosschip_operation {
    const char *operator_name;  /* as in CONV_2D */
    const char *name;           /* of this use, unique in the model */
    uint32_t input_count;
    uint32_t output_count;
    const char *const *slots;   /* the name of the slot that each input fills, as in "strides" */
    const int32_t *inputs;      /* operands, by index; -1 where an optional one is left out */
    const int32_t *outputs;
} crosschip_operation;

/*
 * A model: operations, each after those whose outputs it reads. Parameters that the model leaves at
 * their defaults are spelled out. Reach operands and operations by crosschip_operand_at and
 * crosschip_operation_at, which know how far apart they are.
 */
typedef struct crosschip_model {
    uint32_t size;
    uint32_t contract;
    uint32_t operand_size;
    uint32_t operation_size;
    uint32_t operand_count;
    uint32_t operation_count;
    uint32_t input_count;
    uint32_t output_count;
    const char *name;
    const crosschip_operand *operands;
    const crosschip_operation *operations;
    const int32_t *inputs;      /* operands, by index */
    const int32_t *outputs;
} crosschip_model;

/* The caller's wishes. */
typedef struct crosschip_options {
    uint32_t size;
    int32_t precision;          /* a crosschip_precision */
    uint32_t threads;           /* 0 leaves it to the device */
} crosschip_options;

/* The facts about an open device; crosschip has filled in the defaults. */
typedef struct crosschip_capabilities {
    uint32_t size;
    uint32_t precisions;        /* a bit, 1 << crosschip_precision, for each; default: float32 */
    int32_t sizing;             /* a crosschip_sizing; default: free */
    int32_t threads;            /* not 0 if options.threads can be kept; default: 0 */
    uint32_t max_rank;          /* the maximum rank of a tensor; default: 0, any rank */
    uint32_t alignment;         /* of inputs' memory, in bytes; default: 1 */
    uint32_t concurrency;       /* runs of a program at once; default: 0, it does not matter */
    uint64_t types;             /* a bit, 1 << crosschip_type, for each; default: all */
    uint32_t int64_bits;        /* 32 if it computes int64 in int32: it gets values that are shown
                                   to fit; and if types lacks int64, tensors of int32 in place of
                                   such; default: 64 */
    int32_t serial_compile;     /* not 0 if create_program may not be called by several threads at
                                   once; default: 0 */
} crosschip_capabilities;

/* Yes, or no and why, about one operation. All is 0 before: no. */
typedef struct crosschip_answer {
    int32_t supported;
    int32_t rule;                           /* a crosschip_rule, where the answer is no */
    char slot[CROSSCHIP_SLOT_LENGTH];       /* the slot at fault; empty if it is the whole */
    char detail[CROSSCHIP_DETAIL_LENGTH];   /* as in "2 on a depthwise filter" */
    double seconds;                         /* of one run, if it can tell; else 0 */
    uint64_t bytes;                         /* of constants and results, if it can tell; else 0 */
} crosschip_answer;

/*
 * A tensor in a run. An output whose sizes are not all known beforehand has neither data nor memory:
 * once they are known, access allocates it, sets shape, data and length, and returns the data; NULL
 * if there is no memory. It may be called for other outputs, too, with the shape that they have.
 */
typedef struct crosschip_argument {
    uint32_t size;
    int32_t type;               /* a crosschip_type */
    int32_t rank;
    const int64_t *shape;
    void *data;                 /* on the host; NULL if it is in the device's memory */
    void *memory;               /* of this device, from allocate_memory; NULL if it is on the host */
    uint64_t length;            /* in bytes */
    void *(*access)(struct crosschip_argument *argument, int32_t rank, const int64_t *shape);
    void *owner;                /* crosschip's own */
} crosschip_argument;

/* A chip's driver. */
typedef struct crosschip_device {
    uint32_t size;              /* sizeof(crosschip_device) */
    uint32_t contract;          /* CROSSCHIP_CONTRACT */
    const char *name;           /* required: as in the library's own name */
    const char *vendor;         /* required */
    int32_t type;               /* a crosschip_kind */
    int32_t simulated;          /* not 0 if software plays the chip */
    const char *version;        /* required: of what does the work; ties saved programs to it */

    /* Required. Once for a process and device; close_device when nothing uses it any more. */
    int (*open_device)(void **device);
    void (*close_device)(void *device);

    /* Required. The settings are "key=value;key=value", without a value for a key being an error. */
    int (*create_context)(void *device, const char *properties, void **context);
    void (*destroy_context)(void *context);

    /* Required. Answers about each operation of the model, in order. */
    int (*validate_program)(void *context, const crosschip_model *model,
                            const crosschip_options *options, crosschip_answer *answers);

    /*
     * Required. The model's operations are ones that were answered with yes. The description is
     * there until this returns, the data of constants until the program is destroyed. Where it
     * fails, at_fault[i] = 1 names the operations to place on other devices. It may be called by
     * several threads at once, unless crosschip_capabilities says serial_compile.
     */
    int (*create_program)(void *context, const crosschip_model *model,
                          const crosschip_options *options, uint8_t *at_fault, void **program);
    void (*destroy_program)(void *program);

    /*
     * Required. Runs overlap, from several threads. Inputs are C-contiguous and not written to.
     */
    int (*execute_program)(void *program, uint32_t input_count, const crosschip_argument *inputs,
                           uint32_t output_count, crosschip_argument *outputs);

    /* The text of the last failure on this thread. Default: the code's name. */
    const char *(*last_error)(void);

    /* Default: those that crosschip_capabilities names. */
    int (*get_capabilities)(void *context, crosschip_capabilities *capabilities);

    /*
     * The bytes of a program, which belong to it and are there until it is destroyed, and a program
     * from these bytes: the same ones, with the same version, settings and options. Default: there
     * are none, and programs are compiled each time.
     */
    int (*save_program)(void *program, const void **saved, uint64_t *length);
    int (*load_program)(void *context, const void *saved, uint64_t length,
                        const crosschip_model *model, const crosschip_options *options,
                        void **program);

    /*
     * Memory of the device, and copies between it and the host. All four or none. Default: the
     * host's memory is the device's.
     */
    int (*allocate_memory)(void *context, uint64_t length, void **memory);
    void (*free_memory)(void *context, void *memory);
    int (*write_memory)(void *context, void *memory, const void *data, uint64_t length);
    int (*read_memory)(void *context, const void *memory, void *data, uint64_t length);

    /*
     * Take on a run and return. The arguments stay until done(token, result) is called, once, from
     * any thread; not called if this fails. Default: execute_program is waited for.
     */
    int (*submit_program)(void *program, uint32_t input_count, const crosschip_argument *inputs,
                          uint32_t output_count, crosschip_argument *outputs,
                          void (*done)(void *token, int result), void *token);
} crosschip_device;

#ifdef __cplusplus
}
#endif

#ifndef CROSSCHIP_NO_HELPERS
#include <string.h>

static inline const crosschip_operand *crosschip_operand_at(const crosschip_model *model,
                                                            int32_t index)
{
    const char *first = (const char *)model->operands;
    if (index < 0 || (uint32_t)index >= model->operand_count)
        return NULL;
    return (const crosschip_operand *)(const void *)(first +
                                                     (size_t)index * model->operand_size);
}

static inline const crosschip_operation *crosschip_operation_at(const crosschip_model *model,
                                                                uint32_t index)
{
    const char *first = (const char *)model->operations;
    if (index >= model->operation_count)
        return NULL;
    return (const crosschip_operation *)(const void *)(first +
                                                       (size_t)index * model->operation_size);
}

/* The operand that fills a slot; NULL if it is left out. */
static inline const crosschip_operand *crosschip_input(const crosschip_model *model,
                                                       const crosschip_operation *operation,
                                                       const char *slot)
{
    uint32_t index;
    for (index = 0; index < operation->input_count; index++)
        if (strcmp(operation->slots[index], slot) == 0)
            return crosschip_operand_at(model, operation->inputs[index]);
    return NULL;
}
#endif

#endif
