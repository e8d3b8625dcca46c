/*
 * Makes and destroys NNRt's handles of each kind, as often as its argument says, and prints by how
 * many bytes the process has grown for each.
 */
#include <crosschip.h>
#include <neural_network_runtime/neural_network_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resident.h"

static OH_NNModel *finished;
static OH_NNCompilation *compilation;
static OH_NNExecutor *executor;
static NN_TensorDesc *matrix;
static NN_Tensor *given, *made;

static void check(OH_NN_ReturnCode code)
{
    if (code) {
        puts(crosschip_last_error());
        exit(1);
    }
}

static void there(const void *handle)
{
    if (!handle) {
        puts(crosschip_last_error());
        exit(1);
    }
}

static NN_TensorDesc *described(void)
{
    const int32_t sizes[] = {2, 2};
    NN_TensorDesc *desc = OH_NNTensorDesc_Create();
    there(desc);
    check(OH_NNTensorDesc_SetDataType(desc, OH_NN_FLOAT32));
    check(OH_NNTensorDesc_SetShape(desc, sizes, 2));
    return desc;
}

static void a_description(void)
{
    NN_TensorDesc *desc = described();
    const char *name = NULL;
    int32_t *shape = NULL;
    size_t axes;
    check(OH_NNTensorDesc_SetName(desc, "x"));
    check(OH_NNTensorDesc_GetName(desc, &name));
    check(OH_NNTensorDesc_GetShape(desc, &shape, &axes));
    check(OH_NNTensorDesc_Destroy(&desc));
}

static void a_tensor(void)
{
    NN_Tensor *tensor = OH_NNTensor_Create(0, matrix);
    there(tensor);
    there(OH_NNTensor_GetTensorDesc(tensor));
    memset(OH_NNTensor_GetDataBuffer(tensor), 1, 16);
    check(OH_NNTensor_Destroy(&tensor));
}

static void quantization(void)
{
    const double scale = 0.5;
    NN_QuantParam *params = OH_NNQuantParam_Create();
    check(OH_NNQuantParam_SetScales(params, &scale, 1));
    check(OH_NNQuantParam_Destroy(&params));
}

static OH_NNModel *model_of(void)
{
    uint32_t places[] = {0, 1};
    OH_NN_UInt32Array none = {NULL, 0}, from = {places, 1}, to = {places + 1, 1};
    OH_NNModel *model = OH_NNModel_Construct();
    there(model);
    check(OH_NNModel_AddTensorToModel(model, matrix));
    check(OH_NNModel_AddTensorToModel(model, matrix));
    check(OH_NNModel_AddOperation(model, OH_NN_OPS_RELU, &none, &from, &to));
    check(OH_NNModel_SpecifyInputsAndOutputs(model, &from, &to));
    return model;
}

static void a_model(void)
{
    OH_NNModel *model = model_of();
    OH_NNModel_Destroy(&model);
}

static void a_compilation(void)
{
    OH_NNCompilation *other = OH_NNCompilation_Construct(finished);
    there(other);
    OH_NNCompilation_Destroy(&other);
}

static void an_executor(void)
{
    OH_NNExecutor *other = OH_NNExecutor_Construct(compilation);
    OH_NN_Memory *memory;
    there(other);
    memory = OH_NNExecutor_AllocateInputMemory(other, 0, 16);
    there(memory);
    there(OH_NNExecutor_AllocateOutputMemory(other, 0, 16));
    OH_NNExecutor_DestroyInputMemory(other, 0, &memory);
    OH_NNExecutor_Destroy(&other);
}

static void a_run(void)
{
    int32_t *shape = NULL;
    uint32_t axes;
    check(OH_NNExecutor_RunSync(executor, &given, 1, &made, 1));
    check(OH_NNExecutor_GetOutputShape(executor, 0, &shape, &axes));
}

static void an_error(void)
{
    if (OH_NNModel_Finish(NULL) != OH_NN_INVALID_PARAMETER || !*crosschip_last_error())
        exit(3);
}

static const struct {
    const char *name;
    void (*cycle)(void);
} kinds[] = {{"description", a_description}, {"tensor", a_tensor},
             {"quantization", quantization}, {"model", a_model},
             {"compilation", a_compilation}, {"executor", an_executor},
             {"run", a_run},                 {"error", an_error}};

int main(int count, char **arguments)
{
    long cycles = count == 2 ? atol(arguments[1]) : 0;

    matrix = described();
    finished = model_of();
    check(OH_NNModel_Finish(finished));
    compilation = OH_NNCompilation_Construct(finished);
    check(OH_NNCompilation_Build(compilation));
    executor = OH_NNExecutor_Construct(compilation);
    given = OH_NNTensor_Create(0, matrix);
    made = OH_NNTensor_Create(0, matrix);
    there(given);
    there(made);
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        for (long cycle = 0; cycle < cycles / 10; cycle++)
            kinds[kind].cycle();
        long before = resident();
        for (long cycle = 0; cycle < cycles; cycle++)
            kinds[kind].cycle();
        printf("%s %ld\n", kinds[kind].name, resident() - before);
        fflush(stdout);
    }
    return 0;
}
