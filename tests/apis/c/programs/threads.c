/*
 * Threads that all make the first call of the process, and then fail, each in its own way, and run
 * models of their own.
 */
#include <crosschip.h>
#include <nnadapter.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 8, TURNS = 50, RUNS = 5 };

static pthread_barrier_t all_there;

static void *in_place(void *memory, NNAdapterOperandType *type, void *device_buffer)
{
    (void)type;
    (void)device_buffer;
    return memory;
}

/* Doubles a number in a model that is made for it. */
static int doubled(float *number)
{
    NNAdapterDevice *device;
    NNAdapterContext *context;
    NNAdapterModel *model;
    NNAdapterOperand *ends[3], *sum;
    NNAdapterOperation *operation;
    NNAdapterCompilation *compilation;
    NNAdapterExecution *execution;
    NNAdapterOperandType type;
    int32_t none = NNADAPTER_FUSED_NONE;
    int failed;

    memset(&type, 0, sizeof type);
    type.dimensions.count = type.dimensions.data[0] = 1;
    type.precision = NNADAPTER_FLOAT32;
    failed = NNAdapterDevice_acquire("builtin_device", &device) ||
             NNAdapterContext_create(&device, 1, NULL, NULL, &context) ||
             NNAdapterModel_create(&model) || NNAdapterModel_addOperand(model, &type, &ends[0]) ||
             NNAdapterModel_addOperand(model, &type, &sum);
    type.precision = NNADAPTER_INT32;
    ends[1] = ends[0];
    if (failed || NNAdapterModel_addOperand(model, &type, &ends[2]) ||
        NNAdapterModel_setOperandValue(ends[2], &none, sizeof none, true) ||
        NNAdapterModel_addOperation(model, NNADAPTER_ADD, 3, ends, 1, &sum, &operation) ||
        NNAdapterModel_identifyInputsAndOutputs(model, 1, ends, 1, &sum) ||
        NNAdapterModel_finish(model) ||
        NNAdapterCompilation_create(model, NULL, NULL, 0, NULL, context, &compilation) ||
        NNAdapterCompilation_finish(compilation) ||
        NNAdapterExecution_create(compilation, &execution) ||
        NNAdapterExecution_setInput(execution, 0, number, in_place) ||
        NNAdapterExecution_setOutput(execution, 0, number, in_place) ||
        NNAdapterExecution_compute(execution))
        return -1;
    NNAdapterExecution_destroy(execution);
    NNAdapterCompilation_destroy(compilation);
    NNAdapterModel_destroy(model);
    NNAdapterContext_destroy(context);
    NNAdapterDevice_release(device);
    return 0;
}

static void *work(void *given)
{
    char name[32], *wrong = NULL;
    float number = (float)*(int *)given;
    NNAdapterDevice *device;
    NNAdapterModel *model;

    snprintf(name, sizeof name, "device_%d", *(int *)given);
    pthread_barrier_wait(&all_there);
    if (*crosschip_last_error())
        wrong = "there was an error before the first";
    for (int turn = 0; turn < TURNS && !wrong; turn++) {
        if (NNAdapterDevice_acquire(name, &device) != NNADAPTER_DEVICE_NOT_FOUND)
            wrong = "there is such a device";
        else if (!strstr(crosschip_last_error(), name))
            wrong = "the error is another thread's";
        else if (NNAdapterModel_create(&model) || NNAdapterModel_finish(model) == 0)
            wrong = "an empty model was finished";
        else if (turn < RUNS && (doubled(&number) || number != (float)(*(int *)given << (turn + 1))))
            wrong = "a number was not doubled";
        else
            NNAdapterModel_destroy(model);
    }
    return wrong;
}

int main(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    int failed = 0;

    pthread_barrier_init(&all_there, NULL, THREADS);
    for (int index = 0; index < THREADS; index++) {
        numbers[index] = index;
        pthread_create(&threads[index], NULL, work, &numbers[index]);
    }
    for (int index = 0; index < THREADS; index++) {
        void *wrong;
        pthread_join(threads[index], &wrong);
        if (wrong) {
            puts((char *)wrong);
            failed = 1;
        }
    }
    return failed;
}
