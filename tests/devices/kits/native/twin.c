/* The device of twin.py in C, with every optional part of the contract. */
#define _POSIX_C_SOURCE 200809L
#include "crosschip_hal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME_LENGTH 64

typedef struct context {
    int scale; /* the property: what NEG multiplies by, as a positive number */
    int blocks; /* how many blocks of memory are allocated */
} context;

typedef struct program {
    context *owner;
    int is_square;
    int inputs_open;
    char saved[8];
} program;

typedef struct request {
    program *own;
    const crosschip_argument *input;
    crosschip_argument *output;
    void (*done)(void *, int);
    void *token;
} request;

static _Thread_local char message[128];
static int opened;

static const char *last_error(void)
{
    return message;
}

static int failed(int code, const char *told)
{
    snprintf(message, sizeof message, "%s", told);
    return code;
}

static int open_device(void **device)
{
    if (opened++)
        return failed(CROSSCHIP_DEVICE_INTERNAL_ERROR, "is open already");
    *device = &opened;
    return CROSSCHIP_OK;
}

static void close_device(void *device)
{
    --*(int *)device;
}

static int create_context(void *device, const char *properties, void **made)
{
    context *own = calloc(1, sizeof *own);
    (void)device;
    own->scale = 1;
    *made = own;
    if (*properties == '\0' || sscanf(properties, "scale=%d", &own->scale) == 1)
        return CROSSCHIP_OK;
    free(own);
    return failed(CROSSCHIP_INVALID_PARAMETER, "the only property is scale");
}

static void destroy_context(void *own)
{
    free(own);
}

static int get_capabilities(void *own, crosschip_capabilities *told)
{
    (void)own;
    told->threads = 1;
    told->max_rank = 4;
    told->alignment = 64;
    told->concurrency = 2;
    told->types = 1u << CROSSCHIP_FLOAT32;
    told->int64_bits = 32;
    told->serial_compile = 1;
    told->precisions = 1u << CROSSCHIP_PRECISION_FLOAT32 | 1u << CROSSCHIP_PRECISION_FLOAT16;
    return CROSSCHIP_OK;
}

static int validate_program(void *own, const crosschip_model *model,
                            const crosschip_options *options, crosschip_answer *answers)
{
    uint32_t index;
    (void)own;
    for (index = 0; index < model->operation_count; index++) {
        const char *name = crosschip_operation_at(model, index)->operator_name;
        crosschip_answer *answer = &answers[index];
        if (options->threads == 13) {
            answer->rule = CROSSCHIP_RULE_OPTION;
            snprintf(answer->detail, sizeof answer->detail, "13 threads bring bad luck");
        } else if (strcmp(name, "NEG") == 0 || strcmp(name, "SQUARE") == 0) {
            answer->supported = 1;
            answer->seconds = 0.5;
            answer->bytes = 16;
        } else {
            answer->rule = CROSSCHIP_RULE_VALUE;
            snprintf(answer->slot, sizeof answer->slot, "input");
            snprintf(answer->detail, sizeof answer->detail, "%s is not for us", name);
        }
    }
    return CROSSCHIP_OK;
}

static int create_program(void *own, const crosschip_model *model,
                          const crosschip_options *options, uint8_t *at_fault, void **made)
{
    const crosschip_operation *first = crosschip_operation_at(model, 0);
    program *compiled;
    uint32_t index;
    (void)options;
    for (index = 0; index < model->operation_count; index++)
        if (strstr(crosschip_operation_at(model, index)->name, "bad")) {
            at_fault[index] = 1;
            return failed(CROSSCHIP_INVALID_DIMENSIONS, "bad things do not compile");
        }
    if (model->operation_count != 1)
        return failed(CROSSCHIP_FEATURE_NOT_SUPPORTED, "one at a time");
    compiled = calloc(1, sizeof *compiled);
    compiled->owner = own;
    compiled->is_square = strcmp(first->operator_name, "SQUARE") == 0;
    snprintf(compiled->saved, sizeof compiled->saved, "%s", compiled->is_square ? "square" : "neg");
    *made = compiled;
    return CROSSCHIP_OK;
}

static void destroy_program(void *compiled)
{
    free(compiled);
}

static int save_program(void *compiled, const void **saved, uint64_t *length)
{
    program *own = compiled;
    *saved = own->saved;
    *length = strlen(own->saved);
    return CROSSCHIP_OK;
}

static int load_program(void *own, const void *saved, uint64_t length,
                        const crosschip_model *model, const crosschip_options *options,
                        void **made)
{
    uint8_t at_fault[1];
    int code;
    if (length > 6)
        return failed(CROSSCHIP_INVALID_PARAMETER, "that is not what was saved");
    code = create_program(own, model, options, at_fault, made);
    if (code == CROSSCHIP_OK)
        ((program *)*made)->is_square = memcmp(saved, "square", length) == 0;
    return code;
}

static int compute(program *own, const crosschip_argument *input, crosschip_argument *output)
{
    const float *from = input->memory ? input->memory : input->data;
    float *to = output->memory ? output->memory : output->data;
    uint64_t index;
    if (input->length && from[0] == 666)
        return failed(CROSSCHIP_DEVICE_INTERNAL_ERROR, "the number of the beast");
    if (!to && !(to = output->access(output, input->rank, input->shape)))
        return failed(CROSSCHIP_OUT_OF_MEMORY, "no memory for the output");
    for (index = 0; index < input->length / sizeof *from; index++)
        to[index] =
            own->is_square ? from[index] * from[index] : -from[index] * (float)own->owner->scale;
    return CROSSCHIP_OK;
}

static int execute_program(void *compiled, uint32_t input_count, const crosschip_argument *inputs,
                           uint32_t output_count, crosschip_argument *outputs)
{
    (void)input_count, (void)output_count;
    return compute(compiled, inputs, outputs);
}

static void *work(void *given)
{
    request *own = given;
    int code = compute(own->own, own->input, own->output);
    own->done(own->token, code);
    free(own);
    return NULL;
}

static int submit_program(void *compiled, uint32_t input_count, const crosschip_argument *inputs,
                          uint32_t output_count, crosschip_argument *outputs,
                          void (*done)(void *, int), void *token)
{
    request *own = malloc(sizeof *own);
    pthread_t thread;
    (void)input_count, (void)output_count;
    *own = (request){compiled, inputs, outputs, done, token};
    if (pthread_create(&thread, NULL, work, own))
        return failed(CROSSCHIP_OUT_OF_MEMORY, "no thread");
    pthread_detach(thread);
    return CROSSCHIP_OK;
}

static int allocate_memory(void *own, uint64_t length, void **memory)
{
    if (length > 1 << 20)
        return failed(CROSSCHIP_OUT_OF_MEMORY, "a megabyte is all there is");
    *memory = malloc(length);
    ((context *)own)->blocks++;
    return CROSSCHIP_OK;
}

static void free_memory(void *own, void *memory)
{
    ((context *)own)->blocks--;
    free(memory);
}

static int write_memory(void *own, void *memory, const void *data, uint64_t length)
{
    (void)own;
    memcpy(memory, data, length);
    return CROSSCHIP_OK;
}

static int read_memory(void *own, const void *memory, void *data, uint64_t length)
{
    (void)own;
    memcpy(data, memory, length);
    return CROSSCHIP_OK;
}

#ifndef CHANGES
#define CHANGES
#endif

#ifndef SYMBOL
#define SYMBOL __nnadapter_device__twin
#endif

const crosschip_device SYMBOL = {
    .size = sizeof(crosschip_device),
    .contract = CROSSCHIP_CONTRACT,
    .name = "twin",
    .vendor = "Gemini",
    .type = CROSSCHIP_KIND_GPU,
    .simulated = 1,
    .version = "2.5",
    .open_device = open_device,
    .close_device = close_device,
    .create_context = create_context,
    .destroy_context = destroy_context,
    .validate_program = validate_program,
    .create_program = create_program,
    .destroy_program = destroy_program,
    .execute_program = execute_program,
    .last_error = last_error,
    .get_capabilities = get_capabilities,
    .save_program = save_program,
    .load_program = load_program,
    .allocate_memory = allocate_memory,
    .free_memory = free_memory,
    .write_memory = write_memory,
    .read_memory = read_memory,
    .submit_program = submit_program,
    CHANGES
};
