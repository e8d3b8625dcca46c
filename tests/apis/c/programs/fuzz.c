/*
 * Calls NNAdapter's functions in any order with any arguments, as often as its first argument
 * says; its second is the seed. Handles are live ones of the right kind, of another kind,
 * destroyed ones, null and numbers that never were any; pointers lead to memory, or are null; what
 * is in structures and arrays is random, within their bounds. Prints how often each code came.
 */
#include <crosschip.h>
#include <nnadapter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { DEVICE, CONTEXT, MODEL, OPERAND, OPERATION, COMPILATION, EXECUTION, KINDS };
enum { KEPT = 16, MOST = 4, SCRATCH = 1 << 16, CODES = 7 };

static union {
    int32_t numbers[SCRATCH / 4];
    char octets[SCRATCH];
    NNAdapterOperandType types[SCRATCH / sizeof(NNAdapterOperandType)];
} scratch;
static unsigned long counts[CODES + 1];

#include "anything.h"

/* A place of a pool; what was there is forgotten, and not destroyed. The first is often meant. */
static void **place(int kind)
{
    return &pools[kind][kind == OPERAND || any(2) ? any(KEPT) : 0];
}

static void **stored(int kind)
{
    return rarely() ? NULL : place(kind);
}

/* Few operands, most of them one model's. */
static NNAdapterOperand **operands(uint32_t *count)
{
    static void *found[MOST];
    *count = any(MOST + 1);
    for (uint32_t index = 0; index < *count; index++)
        found[index] = handle(OPERAND);
    return rarely() ? NULL : (NNAdapterOperand **)found;
}

static int32_t size(void)
{
    static const int32_t odd[] = {NNADAPTER_UNKNOWN, -1, 0, 1, 2, 3, 64, 2147483647};
    return rarely() ? odd[any(8)] : (int32_t)any(4);
}

static void fill(NNAdapterOperandType *type)
{
    static float scales[64];
    static const int precisions[] = {NNADAPTER_FLOAT32, NNADAPTER_INT32, NNADAPTER_BOOL8,
                                     NNADAPTER_QUANT_INT8_SYMM_PER_LAYER,
                                     NNADAPTER_QUANT_INT8_SYMM_PER_CHANNEL};
    memset(type, 0, sizeof *type);
    type->precision = (NNAdapterOperandPrecisionCode)(any(3) ? precisions[any(any(2) ? 2 : 5)]
                                                             : (int)any(40) - 2);
    type->layout = (NNAdapterOperandLayoutCode)(rarely() ? any(9) : 0);
    type->dimensions.count = rarely() ? any(1u << 31) : any(5);
    type->dimensions.dynamic_count = rarely() ? any(1u << 31) : rarely() ? any(9) : 0;
    for (int axis = 0; axis < 8; axis++)
        type->dimensions.data[axis] = size();
    for (int shape = 0; shape < 8; shape++)
        for (int axis = 0; axis < 8; axis++)
            type->dimensions.dynamic_data[shape][axis] = (int32_t)any(4);
    for (int index = 0; index < 64; index++)
        scales[index] = rarely() ? (float)any(100) - 50 : 0.5f;
    if (any(2)) {
        type->symm_per_channel_params.channel_dim = any(5);
        type->symm_per_channel_params.scale_count = any(65);
        type->symm_per_channel_params.scales = rarely() ? NULL : scales;
    } else {
        type->asymm_per_layer_params.scale = 0.5f;
        type->asymm_per_layer_params.zero_point = (int32_t)any(9);
    }
}

static void *access_memory(void *given, NNAdapterOperandType *type, void *device_buffer)
{
    size_t length = 8;
    (void)device_buffer;
    if (rarely())
        fill(type);
    for (uint32_t axis = 0; axis < type->dimensions.count && axis < 8; axis++) {
        if (type->dimensions.data[axis] < 0)
            type->dimensions.data[axis] = rarely() ? size() : 2;
        if (type->dimensions.data[axis] < 0)
            return NULL;
        length *= (size_t)type->dimensions.data[axis];
        if (length > SCRATCH)
            return NULL;
    }
    return given;
}

static int event(int number, void *data)
{
    (void)data;
    return number;
}

static const char *name(void)
{
    static const char *const names[] = {"builtin_device", "reference", "fake_device", "",
                                        "no_such_chip", "A=1;B", "BUILTIN_DEVICE_NUM_THREADS=2",
                                        "token", "../x", "\xff\xfe\x80", "/dev/null"};
    return rarely() ? NULL : names[any(any(2) ? 2 : sizeof names / sizeof *names)];
}

static int random_call(void)
{
    uint32_t read, made;
    NNAdapterOperand *reads[MOST], **inputs = operands(&read), **outputs;
    memcpy(reads, inputs ? (void *)inputs : (void *)&scratch, read * sizeof *reads);
    if (inputs)
        inputs = reads;
    outputs = operands(&made);
    switch (any(64)) {
    case 0:
        return NNAdapter_getVersion(memory());
    case 1:
        return any(50) ? 0 : NNAdapter_getDeviceCount(memory());
    case 2: case 3:
        return NNAdapterDevice_acquire(name(), (NNAdapterDevice **)stored(DEVICE));
    case 4:
        if (rarely())
            NNAdapterDevice_release(handle(DEVICE));
        return 0;
    case 5:
        return NNAdapterDevice_getName(handle(DEVICE), memory());
    case 6:
        return NNAdapterDevice_getVendor(handle(DEVICE), memory());
    case 7:
        return NNAdapterDevice_getType(handle(DEVICE), memory());
    case 8:
        return NNAdapterDevice_getVersion(handle(DEVICE), memory());
    case 9: case 10: {
        NNAdapterDevice *devices[2] = {handle(DEVICE), handle(DEVICE)};
        return NNAdapterContext_create(rarely() ? NULL : devices, any(3), any(2) ? NULL : name(),
                                       any(2) ? NULL : event,
                                       (NNAdapterContext **)stored(CONTEXT));
    }
    case 11:
        if (rarely())
            NNAdapterContext_destroy(handle(CONTEXT));
        return 0;
    case 12:
        return NNAdapterModel_create((NNAdapterModel **)stored(MODEL));
    case 13:
        if (rarely())
            NNAdapterModel_destroy(handle(MODEL));
        return 0;
    case 14: case 15:
        return NNAdapterModel_finish(handle(MODEL));
    case 16: case 17:
        return NNAdapterModel_getSupportedOperations(handle(MODEL), handle(CONTEXT), memory());
    case 18: case 19: case 20: {
        static const char *const tokens[] = {NULL, "token", "", "../x"};
        const char *token = rarely() ? tokens[any(4)] : NULL;
        return NNAdapterCompilation_create(
            handle(MODEL), token, rarely() ? memory() : NULL, rarely() ? any(SCRATCH) : 0,
            rarely() ? "/dev/null" : NULL, handle(CONTEXT),
            (NNAdapterCompilation **)stored(COMPILATION));
    }
    case 21:
        if (rarely())
            NNAdapterCompilation_destroy(handle(COMPILATION));
        return 0;
    case 22: case 23: case 24:
        return NNAdapterCompilation_finish(handle(COMPILATION));
    case 25: case 26:
        return NNAdapterCompilation_queryInputsAndOutputs(handle(COMPILATION), memory(), memory(),
                                                          memory(), memory());
    case 27: case 28:
        return NNAdapterExecution_create(handle(COMPILATION),
                                         (NNAdapterExecution **)stored(EXECUTION));
    case 29:
        if (rarely())
            NNAdapterExecution_destroy(handle(EXECUTION));
        return 0;
    case 30: case 31: case 32:
        return NNAdapterExecution_setInput(handle(EXECUTION), (int32_t)any(4) - rarely(), memory(),
                                           rarely() ? NULL : access_memory);
    case 33: case 34: case 35:
        return NNAdapterExecution_setOutput(handle(EXECUTION), (int32_t)any(3) - rarely(),
                                            memory(), rarely() ? NULL : access_memory);
    case 36: case 37: case 38: case 39:
        return NNAdapterExecution_compute(handle(EXECUTION));
    case 40: case 41: case 42:
        return NNAdapterModel_setOperandValue(handle(OPERAND), memory(),
                                              any(3) ? 4 * any(9) : any(SCRATCH), any(2));
    case 43: {
        NNAdapterOperandType *type;
        return NNAdapterModel_getOperandType(handle(OPERAND), rarely() ? NULL : &type);
    }
    case 44: case 45: case 46: case 47:
        return NNAdapterModel_identifyInputsAndOutputs(handle(MODEL), read, inputs, made, outputs);
    case 48: case 49: case 50: case 51: case 52: case 53:
        return NNAdapterModel_addOperation(
            handle(MODEL), (int32_t)any(any(9) ? 96 : 200) - rarely(), read, inputs, made, outputs,
            (NNAdapterOperation **)stored(OPERATION));
    default: {
        NNAdapterOperandType type;
        fill(&type);
        return NNAdapterModel_addOperand(handle(MODEL), rarely() ? NULL : &type,
                                         (NNAdapterOperand **)stored(OPERAND));
    }
    }
}

static void must(int code)
{
    if (code) {
        puts(crosschip_last_error());
        exit(1);
    }
}

/* A model that can be run, so that the last stages are reached. */
static void whole(void)
{
    static const int codes[] = {NNADAPTER_RELU, NNADAPTER_ABS, NNADAPTER_EXP, NNADAPTER_TANH};
    NNAdapterOperandType type;
    NNAdapterOperand *ends[2];
    NNAdapterDevice **device = (NNAdapterDevice **)place(DEVICE);
    NNAdapterContext **context = (NNAdapterContext **)place(CONTEXT);
    NNAdapterModel **model = (NNAdapterModel **)place(MODEL);
    NNAdapterCompilation **compilation = (NNAdapterCompilation **)place(COMPILATION);
    NNAdapterExecution **execution = (NNAdapterExecution **)place(EXECUTION);
    NNAdapterOperation *operation;

    memset(&type, 0, sizeof type);
    type.precision = NNADAPTER_FLOAT32;
    type.dimensions.count = any(4);
    for (int axis = 0; axis < 4; axis++)
        type.dimensions.data[axis] = any(3) ? 2 : NNADAPTER_UNKNOWN;
    must(NNAdapterDevice_acquire("builtin_device", device));
    must(NNAdapterContext_create(device, 1, NULL, NULL, context));
    must(NNAdapterModel_create(model));
    must(NNAdapterModel_addOperand(*model, &type, &ends[0]));
    must(NNAdapterModel_addOperand(*model, &type, &ends[1]));
    must(NNAdapterModel_addOperation(*model, codes[any(4)], 1, ends, 1, ends + 1, &operation));
    must(NNAdapterModel_identifyInputsAndOutputs(*model, 1, ends, 1, ends + 1));
    must(NNAdapterModel_finish(*model));
    must(NNAdapterCompilation_create(*model, NULL, NULL, 0, NULL, *context, compilation));
    must(NNAdapterCompilation_finish(*compilation));
    must(NNAdapterExecution_create(*compilation, execution));
    must(NNAdapterExecution_setInput(*execution, 0, &scratch, access_memory));
    must(NNAdapterExecution_setOutput(*execution, 0, &scratch, access_memory));
}

/* A model to be built, with operands, half of which are constants. */
static void begun(void)
{
    NNAdapterModel **model = (NNAdapterModel **)&pools[MODEL][0];
    NNAdapterOperandType type;

    must(NNAdapterModel_create(model));
    memset(&type, 0, sizeof type);
    for (int index = 0; index < KEPT; index++) {
        NNAdapterOperand **operand = (NNAdapterOperand **)&pools[OPERAND][index];
        int constant = index % 2;
        type.precision = constant ? NNADAPTER_INT32 : NNADAPTER_FLOAT32;
        type.dimensions.count = constant ? 1 : any(5);
        for (int axis = 0; axis < 4; axis++)
            type.dimensions.data[axis] = constant ? 1 + (int32_t)any(3) : (int32_t)any(4);
        must(NNAdapterModel_addOperand(*model, &type, operand));
        if (constant)
            must(NNAdapterModel_setOperandValue(
                *operand, scratch.octets, 4 * (uint32_t)type.dimensions.data[0], any(2)));
    }
}

static void destroy_all(void)
{
    for (int index = 0; index < KEPT; index++) {
        NNAdapterExecution_destroy(pools[EXECUTION][index]);
        NNAdapterCompilation_destroy(pools[COMPILATION][index]);
        NNAdapterModel_destroy(pools[MODEL][index]);
        NNAdapterContext_destroy(pools[CONTEXT][index]);
        NNAdapterDevice_release(pools[DEVICE][index]);
    }
}

int main(int count, char **arguments)
{
    struct rlimit most = {8ul << 30, 8ul << 30};
    unsigned long calls = count > 1 ? strtoul(arguments[1], NULL, 10) : 1;

    setrlimit(RLIMIT_AS, &most);
    state = count > 2 ? strtoull(arguments[2], NULL, 10) : 0;
    for (unsigned long turn = 0; turn < calls; turn++) {
        if (turn % 2000 == 0) {
            destroy_all();
            for (size_t index = 0; index < SCRATCH / 4; index++)
                scratch.numbers[index] = rarely() ? (int32_t)any(1u << 31) : (int32_t)any(4);
        }
        if (turn % 100 == 0)
            whole();
        if (turn % 50 == 0)
            begun();
        int code = random_call();
        counts[code >= 0 && code < CODES ? code : CODES]++;
    }
    for (int code = 0; code <= CODES; code++)
        printf("%lu ", counts[code]);
    puts("");
    return counts[CODES] != 0;
}
