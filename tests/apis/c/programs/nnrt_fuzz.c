/*
 * Calls NNRt's functions in any order with any arguments, as often as its first argument says;
 * its second is the seed. Handles are live ones of the right kind, of another kind, destroyed
 * ones, null and numbers that never were any; pointers lead to memory, or are null; what is in
 * structures and arrays is random, within their bounds. Prints how often each code came.
 */
#include <crosschip.h>
#include <neural_network_runtime/neural_network_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MODEL, COMPILATION, EXECUTOR, DESC, TENSOR, QUANTIZATION, MEMORY, KINDS };
enum { KEPT = 16, MOST = 4, SCRATCH = 1 << 16, CODES = 15 };

static union {
    int32_t numbers[SCRATCH / 4];
    char octets[SCRATCH];
    double reals[SCRATCH / 8];
    uint32_t places[SCRATCH / 4];
} scratch;
static unsigned long counts[CODES + 1];

#include "anything.h"

/* A place of a pool; what was there is forgotten, and not destroyed. The first is often meant. */
static void **place(int kind)
{
    return &pools[kind][any(2) ? any(KEPT) : 0];
}

/* A place for something that is stored; what pointers are stored in leads to NULL, mostly. */
static void *result(void)
{
    static void *results[4][8];
    static int turn;
    void **found = results[turn++ % 4];
    if (!rarely())
        found[0] = NULL;
    return rarely() ? NULL : found;
}

/*
 * Keep a handle that has been made. What it takes the place of ends if it is an executor, or a
 * compilation that one was made of, which have threads, or a tensor, of whose memory a process has
 * only so many pieces.
 */
static OH_NN_ReturnCode keep(int kind, void *made)
{
    void **kept = place(kind);
    if (made && kind == EXECUTOR)
        OH_NNExecutor_Destroy((OH_NNExecutor **)kept);
    if (made && kind == COMPILATION)
        OH_NNCompilation_Destroy((OH_NNCompilation **)kept);
    if (made && kind == TENSOR)
        OH_NNTensor_Destroy((NN_Tensor **)kept);
    if (made)
        *kept = made;
    return made ? OH_NN_SUCCESS : OH_NN_INVALID_PARAMETER;
}

static const char *name(void)
{
    static const char *const names[] = {"x", "", "\xff\xfe\x80", "/dev/null", "/", "../x"};
    return rarely() ? NULL : names[any(sizeof names / sizeof *names)];
}

static OH_NN_UInt32Array *places(OH_NN_UInt32Array *array, uint32_t most)
{
    array->size = rarely() ? any(1u << 31) : any(most);
    array->data = rarely() ? NULL : scratch.places + any(64);
    return rarely() ? NULL : array;
}

static OH_NN_Tensor *tensor_type(OH_NN_Tensor *type)
{
    static OH_NN_QuantParam params;
    params.quantCount = any(4);
    params.numBits = rarely() ? NULL : scratch.places;
    params.scale = rarely() ? NULL : scratch.reals;
    params.zeroPoint = rarely() ? NULL : scratch.numbers;
    type->dataType = (OH_NN_DataType)(any(3) ? OH_NN_FLOAT32 : any(20));
    type->dimensionCount = rarely() ? any(1u << 31) : any(5);
    type->dimensions = rarely() ? NULL : scratch.numbers + any(64);
    type->quantParam = any(2) ? NULL : &params;
    type->type = (OH_NN_TensorType)(any(2) ? 0 : any(200));
    return rarely() ? NULL : type;
}

static void ended(void *data, OH_NN_ReturnCode code, void *outputs[], int32_t count)
{
    (void)data;
    (void)code;
    (void)outputs;
    (void)count;
}

static void died(void *data)
{
    (void)data;
}

static OH_NN_ReturnCode destroyed(void)
{
    if (!rarely())
        return OH_NN_SUCCESS;
    OH_NNModel *model = (OH_NNModel *)handle(MODEL);
    OH_NNCompilation *compilation = (OH_NNCompilation *)handle(COMPILATION);
    OH_NNExecutor *executor = (OH_NNExecutor *)handle(EXECUTOR);
    NN_TensorDesc *desc = (NN_TensorDesc *)handle(DESC);
    NN_Tensor *tensor = (NN_Tensor *)handle(TENSOR);
    NN_QuantParam *params = (NN_QuantParam *)handle(QUANTIZATION);
    OH_NN_Memory *held = (OH_NN_Memory *)handle(MEMORY);
    switch (any(8)) {
    case 0:
        OH_NNModel_Destroy(rarely() ? NULL : &model);
        return OH_NN_SUCCESS;
    case 1:
        OH_NNCompilation_Destroy(rarely() ? NULL : &compilation);
        return OH_NN_SUCCESS;
    case 2:
        OH_NNExecutor_Destroy(rarely() ? NULL : &executor);
        return OH_NN_SUCCESS;
    case 3:
        return OH_NNTensorDesc_Destroy(rarely() ? NULL : &desc);
    case 4:
        return OH_NNTensor_Destroy(rarely() ? NULL : &tensor);
    case 5:
        return OH_NNQuantParam_Destroy(rarely() ? NULL : &params);
    case 6:
        OH_NNExecutor_DestroyInputMemory(executor, any(2), rarely() ? NULL : &held);
        return OH_NN_SUCCESS;
    default:
        OH_NNExecutor_DestroyOutputMemory(executor, any(2), rarely() ? NULL : &held);
        return OH_NN_SUCCESS;
    }
}

static OH_NN_ReturnCode call_of_a_model(void)
{
    OH_NNModel *model = (OH_NNModel *)handle(MODEL);
    NN_QuantParam *params = (NN_QuantParam *)handle(QUANTIZATION);
    OH_NN_UInt32Array first, second, third;
    OH_NN_Tensor type;
    switch (any(16)) {
    case 0:
        return keep(MODEL, OH_NNModel_Construct());
    case 1:
        return keep(QUANTIZATION, OH_NNQuantParam_Create());
    case 2:
        return OH_NNQuantParam_SetScales(params, (double *)memory(), any(4));
    case 3:
        return OH_NNQuantParam_SetZeroPoints(params, (int32_t *)memory(), any(4));
    case 4:
        return OH_NNQuantParam_SetNumBits(params, (uint32_t *)memory(), any(4));
    case 5: case 6: case 7:
        return OH_NNModel_AddTensorToModel(model, (NN_TensorDesc *)handle(DESC));
    case 8:
        return OH_NNModel_AddTensor(model, tensor_type(&type));
    case 9:
        return OH_NNModel_SetTensorData(model, any(6), memory(), any(3) ? 4 * any(9) : any(SCRATCH));
    case 10:
        return OH_NNModel_SetTensorQuantParams(model, any(6), params);
    case 11:
        return OH_NNModel_SetTensorType(model, any(6), (OH_NN_TensorType)any(200));
    case 12: case 13:
        return OH_NNModel_AddOperation(model, (OH_NN_OperationType)any(120), places(&first, 3),
                                       places(&second, 4), places(&third, 3));
    case 14:
        if (any(2))
            return OH_NNModel_Finish(model);
        return OH_NNModel_SpecifyInputsAndOutputs(model, places(&first, 3), places(&second, 3));
    default:
        return OH_NNModel_GetAvailableOperations(model, any(2), (const bool **)result(),
                                                 (uint32_t *)memory());
    }
}

static OH_NN_ReturnCode call_of_a_compilation(void)
{
    OH_NNCompilation *own = (OH_NNCompilation *)handle(COMPILATION);
    switch (any(16)) {
    case 0: case 1:
        return keep(COMPILATION, OH_NNCompilation_Construct((OH_NNModel *)handle(MODEL)));
    case 2:
        return keep(COMPILATION, OH_NNCompilation_ConstructForCache());
    case 3:
        return keep(COMPILATION, OH_NNCompilation_ConstructWithOfflineModelFile(name()));
    case 4:
        return keep(COMPILATION,
                    OH_NNCompilation_ConstructWithOfflineModelBuffer(memory(), any(SCRATCH)));
    case 5:
        return OH_NNCompilation_ExportCacheToBuffer(own, memory(), any(SCRATCH),
                                                    (size_t *)result());
    case 6:
        return OH_NNCompilation_ImportCacheFromBuffer(own, memory(), any(SCRATCH));
    case 7:
        return OH_NNCompilation_AddExtensionConfig(own, name(), memory(), any(64));
    case 8:
        return OH_NNCompilation_SetDevice(own, any(2));
    case 9:
        return rarely() ? OH_NNCompilation_SetCache(own, name(), any(4)) : OH_NN_SUCCESS;
    case 10:
        return OH_NNCompilation_SetPerformanceMode(own, (OH_NN_PerformanceMode)any(6));
    case 11:
        return OH_NNCompilation_SetPriority(own, (OH_NN_Priority)any(5));
    case 12:
        return OH_NNCompilation_EnableFloat16(own, rarely());
    default:
        return OH_NNCompilation_Build(own);
    }
}

static OH_NN_ReturnCode call_of_an_executor(void)
{
    OH_NNExecutor *own = (OH_NNExecutor *)handle(EXECUTOR);
    NN_Tensor *inputs[MOST], *outputs[MOST];
    OH_NN_Tensor type;
    for (int index = 0; index < MOST; index++) {
        inputs[index] = (NN_Tensor *)handle(TENSOR);
        outputs[index] = (NN_Tensor *)handle(TENSOR);
    }
    switch (any(20)) {
    case 0: case 1:
        return keep(EXECUTOR,
                    OH_NNExecutor_Construct((OH_NNCompilation *)handle(COMPILATION)));
    case 2:
        return OH_NNExecutor_GetOutputShape(own, any(2), (int32_t **)result(),
                                            (uint32_t *)result());
    case 3:
        return OH_NNExecutor_GetInputCount(own, (size_t *)result());
    case 4:
        return OH_NNExecutor_GetOutputCount(own, (size_t *)result());
    case 5:
        return keep(DESC, OH_NNExecutor_CreateInputTensorDesc(own, any(2)));
    case 6:
        return keep(DESC, OH_NNExecutor_CreateOutputTensorDesc(own, any(2)));
    case 7: {
        size_t *least = NULL, *most = NULL, length;
        return OH_NNExecutor_GetInputDimRange(own, any(2), &least, rarely() ? NULL : &most, &length);
    }
    case 8:
        return OH_NNExecutor_SetOnRunDone(own, rarely() ? NULL : ended);
    case 9:
        return OH_NNExecutor_SetOnServiceDied(own, rarely() ? NULL : died);
    case 10: case 11: case 12:
        return OH_NNExecutor_RunSync(own, rarely() ? NULL : inputs, any(6) ? 1 : any(MOST),
                                     rarely() ? NULL : outputs, any(6) ? 1 : any(MOST));
    case 13: case 14:
        return OH_NNExecutor_RunAsync(own, inputs, any(6) ? 1 : any(MOST), outputs,
                                      any(6) ? 1 : any(MOST), (int32_t)any(100) - rarely(),
                                      memory());
    case 15:
        return OH_NNExecutor_SetInput(own, any(2), tensor_type(&type), memory(), any(64));
    case 16:
        return OH_NNExecutor_SetOutput(own, any(2), memory(), any(64));
    case 17:
        if (any(2))
            return OH_NNExecutor_Run(own);
        return keep(MEMORY, any(2) ? OH_NNExecutor_AllocateInputMemory(own, any(2), any(64))
                                   : OH_NNExecutor_AllocateOutputMemory(own, any(2), any(64)));
    case 18:
        return OH_NNExecutor_SetInputWithMemory(own, any(2), tensor_type(&type),
                                                (OH_NN_Memory *)handle(MEMORY));
    default:
        return OH_NNExecutor_SetOutputWithMemory(own, any(2), (OH_NN_Memory *)handle(MEMORY));
    }
}

static OH_NN_ReturnCode call_of_a_tensor(void)
{
    NN_TensorDesc *desc = (NN_TensorDesc *)handle(DESC);
    NN_Tensor *tensor = (NN_Tensor *)handle(TENSOR);
    size_t length = rarely() ? any(SCRATCH) : any(5);
    switch (any(20)) {
    case 0:
        return keep(DESC, OH_NNTensorDesc_Create());
    case 1:
        return OH_NNTensorDesc_SetName(desc, name());
    case 2:
        return OH_NNTensorDesc_GetName(desc, (const char **)result());
    case 3: case 4:
        return OH_NNTensorDesc_SetDataType(
            desc, (OH_NN_DataType)(any(3) ? OH_NN_FLOAT32 : any(20)));
    case 5:
        return OH_NNTensorDesc_GetDataType(desc, (OH_NN_DataType *)result());
    case 6: case 7:
        return OH_NNTensorDesc_SetShape(desc, rarely() ? NULL : scratch.numbers + any(64), length);
    case 8:
        return OH_NNTensorDesc_GetShape(desc, (int32_t **)result(), (size_t *)result());
    case 9:
        return OH_NNTensorDesc_SetFormat(desc, (OH_NN_Format)any(6));
    case 10:
        return OH_NNTensorDesc_GetFormat(desc, (OH_NN_Format *)result());
    case 11:
        return OH_NNTensorDesc_GetElementCount(desc, (size_t *)result());
    case 12:
        return OH_NNTensorDesc_GetByteSize(desc, (size_t *)result());
    case 13:
        return keep(TENSOR, OH_NNTensor_Create(any(2), desc));
    case 14:
        return keep(TENSOR, OH_NNTensor_CreateWithSize(any(2), desc, any(256)));
    case 15:
        return keep(TENSOR, OH_NNTensor_CreateWithFd(any(2), desc, (int)any(99) - 1 + 1000,
                                                     any(256), any(64)));
    case 16:
        return keep(DESC, OH_NNTensor_GetTensorDesc(tensor));
    case 17:
        return OH_NNTensor_GetDataBuffer(tensor) ? OH_NN_SUCCESS : OH_NN_INVALID_PARAMETER;
    case 18:
        return OH_NNTensor_GetFd(tensor, (int *)result());
    default:
        return any(2) ? OH_NNTensor_GetSize(tensor, (size_t *)result())
                      : OH_NNTensor_GetOffset(tensor, (size_t *)result());
    }
}

static OH_NN_ReturnCode call_of_a_device(void)
{
    if (any(20))
        return OH_NN_SUCCESS;
    switch (any(3)) {
    case 0:
        return OH_NNDevice_GetAllDevicesID((const size_t **)result(), (uint32_t *)result());
    case 1:
        return OH_NNDevice_GetName(any(2), (const char **)result());
    default:
        return OH_NNDevice_GetType(any(2), (OH_NN_DeviceType *)result());
    }
}

static OH_NN_ReturnCode random_call(void)
{
    switch (any(8)) {
    case 0: case 1:
        return call_of_a_model();
    case 2:
        return call_of_a_compilation();
    case 3: case 4:
        return call_of_an_executor();
    case 5: case 6:
        return call_of_a_tensor();
    default:
        return any(4) ? destroyed() : call_of_a_device();
    }
}

static void must(OH_NN_ReturnCode code)
{
    if (code) {
        puts(crosschip_last_error());
        exit(1);
    }
}

static size_t reference(void)
{
    const size_t *numbers = NULL;
    uint32_t count;
    must(OH_NNDevice_GetAllDevicesID(&numbers, &count));
    for (uint32_t index = 0; index < count; index++) {
        const char *found = NULL;
        must(OH_NNDevice_GetName(numbers[index], &found));
        if (!strcmp(found, "reference"))
            return numbers[index];
    }
    exit(2);
}

/* A model that can be run, so that the last stages are reached; then one to be built. */
static void whole(size_t device)
{
    static const OH_NN_OperationType codes[] = {OH_NN_OPS_RELU, OH_NN_OPS_ABS, OH_NN_OPS_EXP};
    uint32_t ends[] = {0, 1};
    OH_NN_UInt32Array none = {NULL, 0}, from = {ends, 1}, to = {ends + 1, 1};
    int32_t sizes[] = {2, any(3) ? 3 : -1};
    OH_NNModel *model = OH_NNModel_Construct();
    NN_TensorDesc *desc = OH_NNTensorDesc_Create();
    must(OH_NNTensorDesc_SetDataType(desc, OH_NN_FLOAT32));
    must(OH_NNTensorDesc_SetShape(desc, sizes, 2));
    must(OH_NNModel_AddTensorToModel(model, desc));
    must(OH_NNModel_AddTensorToModel(model, desc));
    must(OH_NNModel_AddOperation(model, codes[any(3)], &none, &from, &to));
    must(OH_NNModel_SpecifyInputsAndOutputs(model, &from, &to));
    must(OH_NNModel_Finish(model));
    OH_NNCompilation *compilation = OH_NNCompilation_Construct(model);
    must(OH_NNCompilation_SetDevice(compilation, device));
    must(OH_NNCompilation_Build(compilation));
    OH_NNExecutor *executor = OH_NNExecutor_Construct(compilation);
    sizes[1] = 3;
    must(OH_NNTensorDesc_SetShape(desc, sizes, 2));
    *place(MODEL) = model;
    *place(COMPILATION) = compilation;
    must(keep(EXECUTOR, executor));
    *place(DESC) = desc;
    for (int index = 0; index < 4; index++)
        must(keep(TENSOR, OH_NNTensor_Create(device, desc)));
    pools[MODEL][0] = OH_NNModel_Construct();
    for (int index = 0; index < 6; index++)
        must(OH_NNModel_AddTensorToModel((OH_NNModel *)pools[MODEL][0], desc));
}

static void destroy_all(void)
{
    for (int index = 0; index < KEPT; index++) {
        OH_NNExecutor_Destroy((OH_NNExecutor **)&pools[EXECUTOR][index]);
        OH_NNCompilation_Destroy((OH_NNCompilation **)&pools[COMPILATION][index]);
        OH_NNModel_Destroy((OH_NNModel **)&pools[MODEL][index]);
        (void)OH_NNTensorDesc_Destroy((NN_TensorDesc **)&pools[DESC][index]);
        (void)OH_NNTensor_Destroy((NN_Tensor **)&pools[TENSOR][index]);
        (void)OH_NNQuantParam_Destroy((NN_QuantParam **)&pools[QUANTIZATION][index]);
        pools[MEMORY][index] = NULL;
    }
}

int main(int count, char **arguments)
{
    struct rlimit most = {8ul << 30, 8ul << 30};
    unsigned long calls = count > 1 ? strtoul(arguments[1], NULL, 10) : 1;
    size_t device = reference();

    setrlimit(RLIMIT_AS, &most);
    state = count > 2 ? strtoull(arguments[2], NULL, 10) : 0;
    for (unsigned long turn = 0; turn < calls; turn++) {
        if (turn % 2000 == 0) {
            destroy_all();
            for (size_t index = 0; index < SCRATCH / 4; index++)
                scratch.numbers[index] = rarely() ? (int32_t)any(1u << 31) : (int32_t)any(6);
        }
        if (turn % 100 == 0)
            whole(device);
        int code = (int)random_call();
        counts[code >= 0 && code < CODES ? code : CODES]++;
    }
    for (int code = 0; code <= CODES; code++)
        printf("%lu ", counts[code]);
    puts("");
    return counts[CODES] != 0;
}
