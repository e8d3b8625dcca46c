/*
 * NNAdapter's programming interface on crosschip's devices.
 *
 * A model is built operand by operand, compiled for the devices of a context, and run. Link with
 * -lnnadapter. Types, values and functions are NNAdapter's, so that programs compiled with its own
 * header run unchanged.
 *
 * Functions that return int return an NNAdapterResultCode; crosschip_last_error, in crosschip.h,
 * returns the error message. A function that fails stores nothing through its pointers. A handle that
 * is NULL, destroyed or of another kind yields NNADAPTER_INVALID_PARAMETER. Handles are not addresses
 * and must not be dereferenced. Destroying NULL does nothing.
 *
 * Arguments may be freed or changed after the call, unless stated otherwise. Functions may be called
 * from any thread; a model, a compilation or an execution may be used by one thread at a time.
 */
#ifndef NNADAPTER_H
#define NNADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { NNADAPTER_VERSION = 1 };
/* The size of a dynamic dimension. */
enum { NNADAPTER_UNKNOWN = -65535 };
enum { NNADAPTER_MAX_SIZE_OF_DIMENSIONS = 8 };
enum { NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS = 8 };

/* The result codes of functions. */
typedef enum {
    NNADAPTER_NO_ERROR = 0,
    NNADAPTER_OUT_OF_MEMORY = 1,
    NNADAPTER_INVALID_DIMENSIONS = 2,
    NNADAPTER_INVALID_PARAMETER = 3,
    NNADAPTER_DEVICE_NOT_FOUND = 4,
    NNADAPTER_DEVICE_INTERNAL_ERROR = 5,
    NNADAPTER_FEATURE_NOT_SUPPORTED = 6
} NNAdapterResultCode;

/* Element types; those from 24 on are quantized integers. */
typedef enum {
    NNADAPTER_BOOL8 = 0,
    NNADAPTER_INT8 = 1,
    NNADAPTER_UINT8 = 2,
    NNADAPTER_INT16 = 3,
    NNADAPTER_UINT16 = 4,
    NNADAPTER_INT32 = 5,
    NNADAPTER_UINT32 = 6,
    NNADAPTER_INT64 = 7,
    NNADAPTER_UINT64 = 8,
    NNADAPTER_FLOAT16 = 9,
    NNADAPTER_FLOAT32 = 10,
    NNADAPTER_FLOAT64 = 11,
    NNADAPTER_QUANT_INT8_SYMM_PER_LAYER = 24,
    NNADAPTER_QUANT_INT8_SYMM_PER_CHANNEL = 25,
    NNADAPTER_QUANT_UINT8_ASYMM_PER_LAYER = 26,
    NNADAPTER_QUANT_INT16_SYMM_PER_LAYER = 27,
    NNADAPTER_QUANT_INT16_SYMM_PER_CHANNEL = 28,
    NNADAPTER_QUANT_UINT16_ASYMM_PER_LAYER = 29,
    NNADAPTER_QUANT_INT32_SYMM_PER_LAYER = 30,
    NNADAPTER_QUANT_INT32_SYMM_PER_CHANNEL = 31,
    NNADAPTER_QUANT_UINT32_ASYMM_PER_LAYER = 32
} NNAdapterOperandPrecisionCode;

/* The memory layout of an image or a filter. */
typedef enum {
    NNADAPTER_NCHW = 0,
    NNADAPTER_NHWC = 1,
    NNADAPTER_HWCN = 2,
    NNADAPTER_HWNC = 3
} NNAdapterOperandLayoutCode;

/* The source of an operand's elements; set by the functions, not by the program. */
typedef enum {
    NNADAPTER_TEMPORARY_VARIABLE = 0,
    NNADAPTER_TEMPORARY_SHAPE = 1,
    NNADAPTER_CONSTANT_COPY = 2,
    NNADAPTER_CONSTANT_REFERENCE = 3,
    NNADAPTER_MODEL_INPUT = 4,
    NNADAPTER_MODEL_OUTPUT = 5
} NNAdapterOperandLifetimeCode;

/* The activation of an operation's result: an operand fuse_code. */
typedef enum {
    NNADAPTER_FUSED_NONE = 0,
    NNADAPTER_FUSED_RELU = 1,
    NNADAPTER_FUSED_RELU1 = 2,
    NNADAPTER_FUSED_RELU6 = 3
} NNAdapterFuseCode;

/* The rule that determines the padding: an operand auto_pad. */
typedef enum {
    NNADAPTER_AUTO_PAD_NONE = 0,
    NNADAPTER_AUTO_PAD_SAME = 1,
    NNADAPTER_AUTO_PAD_VALID = 2
} NNAdapterAutoPadCode;

/* The kind of a device. */
typedef enum {
    NNADAPTER_CPU = 0,
    NNADAPTER_GPU = 1,
    NNADAPTER_ACCELERATOR = 2
} NNAdapterDeviceCode;

/* The padding mode of PAD and GRID_SAMPLE. */
typedef enum {
    NNADAPTER_PAD_MODE_NONE = 0,
    NNADAPTER_PAD_MODE_CONSTANT = 1,
    NNADAPTER_PAD_MODE_REFLECT = 2,
    NNADAPTER_PAD_MODE_REPLICATE = 3,
    NNADAPTER_PAD_MODE_EDGE = 4
} NNAdapterPadModeCode;

/* The interpolation mode. */
typedef enum {
    NNADAPTER_INTERPOLATE_MODE_NONE = 0,
    NNADAPTER_INTERPOLATE_MODE_BILINEAR = 1,
    NNADAPTER_INTERPOLATE_MODE_NEAREST = 2
} NNAdapterInterpolateModeCode;

/*
 * The operators with their input operands, in order. An omitted optional operand is NULL; trailing
 * ones may be left out.
 */
typedef enum {
    /* input */
    NNADAPTER_ABS = 0,
    /* input, output_shape */
    NNADAPTER_ADAPTIVE_AVERAGE_POOL_2D = 1,
    /* input, output_shape, return_indices, return_indices_dtype */
    NNADAPTER_ADAPTIVE_MAX_POOL_2D = 2,
    /* input0, input1, fuse_code */
    NNADAPTER_ADD = 3,
    /* input0, input1 */
    NNADAPTER_AND = 4,
    /* input, axis, keepdim, dtype */
    NNADAPTER_ARG_MAX = 5,
    /* input, axis, keepdim, dtype */
    NNADAPTER_ARG_MIN = 6,
    /* input */
    NNADAPTER_ASSIGN = 7,
    /* input, auto_pad, pads, kernel_shape, strides, ceil_mode, count_include_pad, fuse_code */
    NNADAPTER_AVERAGE_POOL_2D = 8,
    /* input, scale, bias, mean, variance, epsilon */
    NNADAPTER_BATCH_NORMALIZATION = 9,
    /* input, dtype */
    NNADAPTER_CAST = 10,
    /* input, group */
    NNADAPTER_CHANNEL_SHUFFLE = 11,
    /* input, min, max */
    NNADAPTER_CLIP = 12,
    /* inputs, axis */
    NNADAPTER_CONCAT = 13,
    /* input, filter, bias, auto_pad, pads, strides, group, dilations, fuse_code */
    NNADAPTER_CONV_2D = 14,
    /*
     * input, filter, bias, auto_pad, pads, strides, group, dilations, output_padding,
     * output_shape, fuse_code
     */
    NNADAPTER_CONV_2D_TRANSPOSE = 15,
    /* input */
    NNADAPTER_COS = 16,
    /* input, axis, exclusive, reverse */
    NNADAPTER_CUM_SUM = 17,
    /*
     * input, offset, mask, filter, bias, pads, strides, group, deformable_group, dilations,
     * fuse_code
     */
    NNADAPTER_DEFORMABLE_CONV_2D = 18,
    /* input */
    NNADAPTER_DEQUANTIZE = 19,
    /* input0, input1, fuse_code */
    NNADAPTER_DIV = 20,
    /* input0, input1 */
    NNADAPTER_EQUAL = 21,
    /* input */
    NNADAPTER_EXP = 22,
    /* input, shape */
    NNADAPTER_EXPAND = 23,
    /* shape, value */
    NNADAPTER_FILL = 24,
    /* input, value */
    NNADAPTER_FILL_LIKE = 25,
    /* input, start_axis, end_axis */
    NNADAPTER_FLATTEN = 26,
    /* input */
    NNADAPTER_FLOOR = 27,
    /* input0, input1, fuse_code */
    NNADAPTER_FLOOR_DIV = 28,
    /* input, weight, bias, fuse_code */
    NNADAPTER_FULLY_CONNECTED = 29,
    /* input, indices, axis */
    NNADAPTER_GATHER = 30,
    /* input, approximate */
    NNADAPTER_GELU = 31,
    /* input0, input1 */
    NNADAPTER_GREATER = 32,
    /* input0, input1 */
    NNADAPTER_GREATER_EQUAL = 33,
    /* input, grid, align_corners, mode, pad_mode */
    NNADAPTER_GRID_SAMPLE = 34,
    /* input, scale, bias, epsilon, groups */
    NNADAPTER_GROUP_NORMALIZATION = 35,
    /* input, alpha, beta */
    NNADAPTER_HARD_SIGMOID = 36,
    /* input, alpha, beta */
    NNADAPTER_HARD_SWISH = 37,
    /* input, scale, bias, epsilon */
    NNADAPTER_INSTANCE_NORMALIZATION = 38,
    /* input, scale, bias, begin_norm_axis, epsilon */
    NNADAPTER_LAYER_NORMALIZATION = 39,
    /* input, alpha */
    NNADAPTER_LEAKY_RELU = 40,
    /* input0, input1 */
    NNADAPTER_LESS = 41,
    /* input0, input1 */
    NNADAPTER_LESS_EQUAL = 42,
    /* input */
    NNADAPTER_LOG = 43,
    /* input, axis */
    NNADAPTER_LOG_SOFTMAX = 44,
    /* input, axis, p, epsilon */
    NNADAPTER_LP_NORMALIZATION = 45,
    /* input, size, bias, alpha, beta */
    NNADAPTER_LRN = 46,
    /* x, y, transpose_x, transpose_y */
    NNADAPTER_MAT_MUL = 47,
    /* input0, input1, fuse_code */
    NNADAPTER_MAX = 48,
    /*
     * input, auto_pad, pads, kernel_shape, strides, ceil_mode, return_indices,
     * return_indices_dtype, fuse_code
     */
    NNADAPTER_MAX_POOL_2D = 49,
    /* inputs */
    NNADAPTER_MESHGRID = 50,
    /* input0, input1, fuse_code */
    NNADAPTER_MIN = 51,
    /* input0, input1, fuse_code */
    NNADAPTER_MUL = 52,
    /* input */
    NNADAPTER_NOT = 53,
    /* input0, input1 */
    NNADAPTER_NOT_EQUAL = 54,
    /* input0, input1 */
    NNADAPTER_OR = 55,
    /* input, pads, mode, value */
    NNADAPTER_PAD = 56,
    /* input0, input1, fuse_code */
    NNADAPTER_POW = 57,
    /*
     * input, image, min_sizes, max_sizes, aspect_ratios, variances, flip, clip, step_w, step_h,
     * offset, min_max_aspect_ratios_order
     */
    NNADAPTER_PRIOR_BOX = 58,
    /* input, slope */
    NNADAPTER_PRELU = 59,
    /* input, axis, scale, zero_point */
    NNADAPTER_QUANTIZE = 60,
    /* start, end, step */
    NNADAPTER_RANGE = 61,
    /* input, axes, keepdim */
    NNADAPTER_REDUCE_MEAN = 62,
    /* input, axes, keepdim */
    NNADAPTER_REDUCE_MAX = 63,
    /* input, axes, keepdim */
    NNADAPTER_REDUCE_SUM = 64,
    /* input */
    NNADAPTER_RELU = 65,
    /* input */
    NNADAPTER_RELU6 = 66,
    /* input, shape */
    NNADAPTER_RESHAPE = 67,
    /* input, shape, scales, align_corners */
    NNADAPTER_RESIZE_NEAREST = 68,
    /* input, shape, scales, align_corners, align_mode */
    NNADAPTER_RESIZE_LINEAR = 69,
    /*
     * input, rois, batch_indices, output_height, output_width, sampling_ratio, spatial_scale,
     * aligned
     */
    NNADAPTER_ROI_ALIGN = 70,
    /* input, shifts, axes */
    NNADAPTER_ROLL = 71,
    /* input */
    NNADAPTER_RSQRT = 72,
    /* input, dtype */
    NNADAPTER_SHAPE = 73,
    /* input */
    NNADAPTER_SIGMOID = 74,
    /* input */
    NNADAPTER_SIN = 75,
    /* input, axes, starts, ends, steps */
    NNADAPTER_SLICE = 76,
    /* input, axis */
    NNADAPTER_SOFTMAX = 77,
    /* input, beta, threshold */
    NNADAPTER_SOFTPLUS = 78,
    /* input, axis, split */
    NNADAPTER_SPLIT = 79,
    /* input */
    NNADAPTER_SQUARE = 80,
    /* input, axes */
    NNADAPTER_SQUEEZE = 81,
    /* inputs, axis */
    NNADAPTER_STACK = 82,
    /* input0, input1, fuse_code */
    NNADAPTER_SUB = 83,
    /* inputs */
    NNADAPTER_SUM = 84,
    /* input */
    NNADAPTER_SWISH = 85,
    /* input */
    NNADAPTER_TANH = 86,
    /* input, repeats */
    NNADAPTER_TILE = 87,
    /* input, k, axis, largest, sorted, return_indices_dtype */
    NNADAPTER_TOP_K = 88,
    /* input, perm */
    NNADAPTER_TRANSPOSE = 89,
    /* input, axes */
    NNADAPTER_UNSQUEEZE = 90,
    /* input, axis, num */
    NNADAPTER_UNSTACK = 91,
    /* condition, input0, input1 */
    NNADAPTER_WHERE = 92,
    /* input0, input1 */
    NNADAPTER_XOR = 93,
    /*
     * bboxes, scores, rois_num, background_label, score_threshold, nms_top_k, nms_threshold,
     * nms_eta, keep_top_k, normalized, return_index
     */
    NNADAPTER_NON_MAX_SUPPRESSION = 94,
    /*
     * input, imgsize, anchors, class_num, conf_thresh, downsample_ratio, clip_bbox, scale_x_y,
     * iou_aware, iou_aware_factor
     */
    NNADAPTER_YOLO_BOX = 95
} NNAdapterOperationCode;

typedef int32_t NNAdapterDeviceType;    /* an NNAdapterDeviceCode */
typedef int32_t NNAdapterOperationType; /* an NNAdapterOperationCode */

/* real = integer * scale */
typedef struct NNAdapterSymmPerLayerQuantParams {
    float scale;
} NNAdapterSymmPerLayerQuantParams;

/* real = integer * scales[channel] */
typedef struct NNAdapterSymmPerChannelQuantParams {
    uint32_t channel_dim; /* the channel axis, in the stored layout */
    uint32_t scale_count;
    float *scales;
} NNAdapterSymmPerChannelQuantParams;

/* real = (integer - zero_point) * scale */
typedef struct NNAdapterAsymmPerLayerQuantParams {
    float scale;
    int32_t zero_point;
} NNAdapterAsymmPerLayerQuantParams;

/* The shape of an operand, in the stored layout. */
typedef struct NNAdapterOperandDimensionType {
    uint32_t count;
    int32_t data[NNADAPTER_MAX_SIZE_OF_DIMENSIONS]; /* NNADAPTER_UNKNOWN for a dynamic dimension */
    uint32_t dynamic_count;                         /* 0 if any shape that fits is allowed */
    int32_t dynamic_data[NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS]
                        [NNADAPTER_MAX_SIZE_OF_DIMENSIONS]; /* the shapes that are */
} NNAdapterOperandDimensionType;

/* The type of an operand. The precision determines which quantization parameters are used. */
typedef struct NNAdapterOperandType {
    NNAdapterOperandPrecisionCode precision;
    NNAdapterOperandLayoutCode layout;
    NNAdapterOperandLifetimeCode lifetime;
    NNAdapterOperandDimensionType dimensions;
    union {
        NNAdapterSymmPerLayerQuantParams symm_per_layer_params;
        NNAdapterSymmPerChannelQuantParams symm_per_channel_params;
        NNAdapterAsymmPerLayerQuantParams asymm_per_layer_params;
    };
} NNAdapterOperandType;

typedef struct NNAdapterDevice NNAdapterDevice;
typedef struct NNAdapterContext NNAdapterContext;
typedef struct NNAdapterOperand NNAdapterOperand;
typedef struct NNAdapterOperation NNAdapterOperation;
typedef struct NNAdapterModel NNAdapterModel;
typedef struct NNAdapterCompilation NNAdapterCompilation;
typedef struct NNAdapterExecution NNAdapterExecution;

/* Return the version of this interface. */
int NNAdapter_getVersion(uint32_t *version);

/* Return the number of usable devices, which can be acquired by crosschip's names. */
int NNAdapter_getDeviceCount(uint32_t *numDevices);

/*
 * Acquire a device by NNAdapter's name (such as "intel_openvino") or crosschip's (such as
 * "openvino"). It is loaded on its first acquisition and stays loaded until the process ends.
 */
int NNAdapterDevice_acquire(const char *name, NNAdapterDevice **device);

/* Release a device; contexts created with it remain valid. */
void NNAdapterDevice_release(NNAdapterDevice *device);

/* Return the name under which a device was acquired; valid until its release. */
int NNAdapterDevice_getName(const NNAdapterDevice *device, const char **name);

/* Return a device's vendor; valid until its release. */
int NNAdapterDevice_getVendor(const NNAdapterDevice *device, const char **vendor);

/* Return a device's kind of hardware. */
int NNAdapterDevice_getType(const NNAdapterDevice *device, NNAdapterDeviceType *type);

/* Return the version of a device's engine: 20260401 for 2026.4.1. */
int NNAdapterDevice_getVersion(const NNAdapterDevice *device, int32_t *version);

/*
 * Create a context of several devices; an operation goes to the first that supports it.
 *
 * properties: settings as "KEY=VALUE;KEY=VALUE"; a key begins with a device's name, as in
 *     INTEL_OPENVINO_NUM_THREADS=4. May be NULL.
 * callback: a function that a device may call; may be NULL.
 */
int NNAdapterContext_create(NNAdapterDevice **devices, uint32_t num_devices, const char *properties,
                            int (*callback)(int event_id, void *user_data),
                            NNAdapterContext **context);

/* Release a context; models compiled with it still run. */
void NNAdapterContext_destroy(NNAdapterContext *context);

/* Create an empty model. */
int NNAdapterModel_create(NNAdapterModel **model);

/* Release a model with its operands and operations. */
void NNAdapterModel_destroy(NNAdapterModel *model);

/* Check the model and build it; may be called once. */
int NNAdapterModel_finish(NNAdapterModel *model);

/*
 * Add an operand. For a constant or a model input, no axes mean rank 0; for an operation's output,
 * the shape is inferred.
 */
int NNAdapterModel_addOperand(NNAdapterModel *model, const NNAdapterOperandType *type,
                              NNAdapterOperand **operand);

/*
 * Make an operand a constant.
 *
 * buffer: the elements.
 * length: the number of bytes, which must match the type.
 * copy: whether to copy the elements; if not, they must remain valid and unchanged while the model or
 *     a compilation of it is used.
 */
int NNAdapterModel_setOperandValue(NNAdapterOperand *operand, void *buffer, uint32_t length,
                                   bool copy);

/*
 * Return an operand's type, including what has been inferred so far. The structure is valid until the
 * model is destroyed; a later call for the operand updates it.
 */
int NNAdapterModel_getOperandType(NNAdapterOperand *operand, NNAdapterOperandType **type);

/*
 * Add an operation. The operator's rules are checked when the model is finished.
 *
 * input_operands: the inputs, in the operator's order; NULL for an omitted optional input.
 * output_operands: the outputs, in the operator's order.
 */
int NNAdapterModel_addOperation(NNAdapterModel *model, NNAdapterOperationType type,
                                uint32_t input_count, NNAdapterOperand **input_operands,
                                uint32_t output_count, NNAdapterOperand **output_operands,
                                NNAdapterOperation **operation);

/* Set the model's inputs and outputs, in order; replaces an earlier call's. */
int NNAdapterModel_identifyInputsAndOutputs(NNAdapterModel *model, uint32_t input_count,
                                            NNAdapterOperand **input_operands,
                                            uint32_t output_count,
                                            NNAdapterOperand **output_operands);

/*
 * Return for each operation of a finished model, in the order added, whether a context's device
 * supports it.
 */
int NNAdapterModel_getSupportedOperations(const NNAdapterModel *model, NNAdapterContext *context,
                                          bool *supported_operations);

/*
 * Create a compilation of a model, of a cached model, or of both:
 *
 * - with a token and a buffer, the cached model in the buffer is used;
 * - with a token and a folder, the file <token>.nnc is used if it exists; else the model is compiled
 *   and the file is written;
 * - otherwise the model is compiled without a cache.
 *
 * model: a finished model; NULL if a cached model is used.
 */
int NNAdapterCompilation_create(NNAdapterModel *model, const char *cache_token, void *cache_buffer,
                                uint32_t cache_length, const char *cache_dir,
                                NNAdapterContext *context, NNAdapterCompilation **compilation);

/* Release a compilation; its executions fail afterwards. */
void NNAdapterCompilation_destroy(NNAdapterCompilation *compilation);

/* Compile or load the model; may be called once. */
int NNAdapterCompilation_finish(NNAdapterCompilation *compilation);

/*
 * Return the numbers of inputs and outputs of a finished compilation, and their types. First call it
 * with NULL for the types to get the numbers, then with arrays of as many pointers. The types are
 * valid until the compilation is destroyed.
 */
int NNAdapterCompilation_queryInputsAndOutputs(NNAdapterCompilation *compilation,
                                               uint32_t *input_count,
                                               NNAdapterOperandType **input_types,
                                               uint32_t *output_count,
                                               NNAdapterOperandType **output_types);

/* Create a repeatable run of a finished compilation. */
int NNAdapterExecution_create(NNAdapterCompilation *compilation, NNAdapterExecution **execution);

/* Release a run. */
void NNAdapterExecution_destroy(NNAdapterExecution *execution);

/*
 * Set an input's memory and access function; replaces an earlier call's.
 *
 * memory: the first argument of access.
 * access: called when the model runs. It writes the input's shape into type->dimensions and returns
 *     the elements, which must not change until the run ends. device_buffer is NULL, as elements are
 *     in host memory.
 */
int NNAdapterExecution_setInput(NNAdapterExecution *execution, int32_t index, void *memory,
                                void *(*access)(void *memory, NNAdapterOperandType *type,
                                                void *device_buffer));

/*
 * Set an output's memory and access function; replaces an earlier call's.
 *
 * memory: the first argument of access.
 * access: called after the model has run, with the output's shape in type->dimensions. It returns the
 *     buffer to write the elements to, or NULL to fail the run.
 */
int NNAdapterExecution_setOutput(NNAdapterExecution *execution, int32_t index, void *memory,
                                 void *(*access)(void *memory, NNAdapterOperandType *type,
                                                 void *device_buffer));

/* Run the model; return after the outputs have been written. */
int NNAdapterExecution_compute(NNAdapterExecution *execution);

#ifdef __cplusplus
}
#endif

#endif
