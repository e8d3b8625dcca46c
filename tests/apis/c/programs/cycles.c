/*
 * Makes and destroys handles of each kind, as often as its argument says, and prints by how many
 * bytes the process has grown for each.
 */
#include <crosschip.h>
#include <nnadapter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resident.h"

static NNAdapterDevice *device;
static NNAdapterContext *context;
static NNAdapterModel *finished;
static NNAdapterCompilation *compilation;
static NNAdapterOperandType matrix;

static void check(int code)
{
    if (code) {
        puts(crosschip_last_error());
        exit(1);
    }
}

static void a_device(void)
{
    NNAdapterDevice *made;
    const char *name;
    check(NNAdapterDevice_acquire("fake_device", &made));
    check(NNAdapterDevice_getName(made, &name));
    NNAdapterDevice_release(made);
}

static void a_context(void)
{
    NNAdapterContext *made;
    check(NNAdapterContext_create(&device, 1, "REFERENCE_NUM_THREADS=2", NULL, &made));
    NNAdapterContext_destroy(made);
}

static NNAdapterModel *model_of(NNAdapterOperand **ends)
{
    NNAdapterModel *made;
    NNAdapterOperation *operation;
    NNAdapterOperandType *type;
    check(NNAdapterModel_create(&made));
    check(NNAdapterModel_addOperand(made, &matrix, &ends[0]));
    check(NNAdapterModel_addOperand(made, &matrix, &ends[1]));
    check(NNAdapterModel_getOperandType(ends[1], &type));
    check(NNAdapterModel_addOperation(made, NNADAPTER_RELU, 1, ends, 1, ends + 1, &operation));
    return made;
}

static void a_model(void)
{
    NNAdapterOperand *ends[2];
    NNAdapterModel_destroy(model_of(ends));
}

static void a_compilation(void)
{
    NNAdapterCompilation *made;
    check(NNAdapterCompilation_create(finished, NULL, NULL, 0, NULL, context, &made));
    NNAdapterCompilation_destroy(made);
}

static void *nowhere(void *memory, NNAdapterOperandType *type, void *device_buffer)
{
    (void)type;
    (void)device_buffer;
    return memory;
}

static void an_execution(void)
{
    NNAdapterExecution *made;
    check(NNAdapterExecution_create(compilation, &made));
    check(NNAdapterExecution_setInput(made, 0, NULL, nowhere));
    NNAdapterExecution_destroy(made);
}

static void an_error(void)
{
    if (NNAdapterModel_finish(NULL) != NNADAPTER_INVALID_PARAMETER || !*crosschip_last_error())
        exit(3);
}

static const struct {
    const char *name;
    void (*cycle)(void);
} kinds[] = {{"device", a_device},           {"context", a_context},
             {"model", a_model},             {"compilation", a_compilation},
             {"execution", an_execution},    {"error", an_error}};

int main(int count, char **arguments)
{
    long cycles = count == 2 ? atol(arguments[1]) : 0;
    NNAdapterOperand *ends[2];

    matrix.precision = NNADAPTER_FLOAT32;
    matrix.dimensions.count = 2;
    matrix.dimensions.data[0] = matrix.dimensions.data[1] = 2;
    check(NNAdapterDevice_acquire("builtin_device", &device));
    check(NNAdapterContext_create(&device, 1, NULL, NULL, &context));
    finished = model_of(ends);
    check(NNAdapterModel_identifyInputsAndOutputs(finished, 1, ends, 1, ends + 1));
    check(NNAdapterModel_finish(finished));
    check(NNAdapterCompilation_create(finished, NULL, NULL, 0, NULL, context, &compilation));
    check(NNAdapterCompilation_finish(compilation));
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
