/*
 * The driver: reads the models that it is given, and runs them step by step, in float32 with all
 * sizes known. What the chip is called is in chip.h, and what it computes in operators.c.
 */
#include "chip.h"

#include <stdio.h>
#include <stdlib.h>

#define TENSORS 5

/* One operation of a program; tensors by their index among the program's. */
typedef struct step {
    const kernel *kernel;
    parameters given;
    int32_t inputs[TENSORS];
    int32_t output;
} step;

/* A program: tensors, those with data being constants, and steps that fill the others. */
typedef struct program {
    uint32_t tensor_count, step_count, input_count, output_count;
    tensor *tensors;
    step *steps;
    int32_t *inputs, *outputs;
} program;

static _Thread_local char message[256];

static const char *last_error(void)
{
    return message;
}

static int failed(int code, const char *told)
{
    snprintf(message, sizeof message, "%s", told);
    return code;
}

/* ---- device and context ------------------------------------------------------------------ */

static int open_device(void **device)
{
    *device = NULL;
    return CROSSCHIP_OK;
}

static void close_device(void *device)
{
    (void)device;
}

static int create_context(void *device, const char *properties, void **context)
{
    (void)device;
    *context = NULL;
    if (*properties == '\0')
        return CROSSCHIP_OK;
    snprintf(message, sizeof message, "there are no properties, so not '%s'", properties);
    return CROSSCHIP_INVALID_PARAMETER;
}

static void destroy_context(void *context)
{
    (void)context;
}

static int get_capabilities(void *context, crosschip_capabilities *capabilities)
{
    (void)context;
    capabilities->sizing = CROSSCHIP_SIZING_FIXED;
    capabilities->max_rank = MAX_RANK;
    return CROSSCHIP_OK;
}

/* ---- asking ------------------------------------------------------------------------------ */

static int is_tensor(const kernel *of, const char *slot)
{
    int index;
    for (index = 0; index < TENSORS && of->tensors[index]; index++)
        if (strcmp(of->tensors[index], slot) == 0)
            return 1;
    return 0;
}

static int fits(const crosschip_operand *operand, int tensor_slot, const char *slot,
                crosschip_answer *answer)
{
    int32_t axis;
    if (operand->scale_count)
        return refuse(answer, CROSSCHIP_RULE_QUANTIZATION, slot, "quantized tensors are not computed");
    if (!tensor_slot) {
        if (!operand->data)
            return refuse(answer, CROSSCHIP_RULE_COMPUTED, slot, "is computed in the run");
        if (operand->type == CROSSCHIP_FLOAT32 || operand->type == CROSSCHIP_INT32 ||
            operand->type == CROSSCHIP_INT64 || operand->type == CROSSCHIP_BOOL)
            return 1;
        return refuse(answer, CROSSCHIP_RULE_ELEMENT_TYPE, slot, "is of another type");
    }
    if (operand->type != CROSSCHIP_FLOAT32)
        return refuse(answer, CROSSCHIP_RULE_ELEMENT_TYPE, slot, "only float32 is computed");
    if (operand->rank < 0 || operand->rank > MAX_RANK)
        return refuse(answer, CROSSCHIP_RULE_SHAPE, slot, "has too many axes, or an unknown number");
    for (axis = 0; axis < operand->rank; axis++)
        if (operand->shape[axis] < 0)
            return refuse(answer, CROSSCHIP_RULE_SHAPE, slot, "has an open size");
    return 1;
}

static void ask(const crosschip_model *model, const crosschip_operation *operation,
                crosschip_answer *answer)
{
    const kernel *found = kernel_named(operation->operator_name);
    uint32_t index;
    if (!found) {
        refuse(answer, CROSSCHIP_RULE_OPERATOR, "", "the chip does not have it");
        return;
    }
    for (index = 0; index < operation->input_count; index++) {
        const char *slot = operation->slots[index];
        const crosschip_operand *operand = crosschip_operand_at(model, operation->inputs[index]);
        if (operand && !fits(operand, is_tensor(found, slot), slot, answer))
            return;
    }
    for (index = 0; index < operation->output_count; index++)
        if (!fits(crosschip_operand_at(model, operation->outputs[index]), 1, "output", answer))
            return;
    answer->supported = found->limit(model, operation, answer);
}

static int validate_program(void *context, const crosschip_model *model,
                            const crosschip_options *options, crosschip_answer *answers)
{
    uint32_t index;
    (void)context, (void)options;
    for (index = 0; index < model->operation_count; index++)
        ask(model, crosschip_operation_at(model, index), &answers[index]);
    return CROSSCHIP_OK;
}

/* ---- programs ---------------------------------------------------------------------------- */

static void destroy_program(void *handle)
{
    program *own = handle;
    if (!own)
        return;
    free(own->tensors);
    free(own->steps);
    free(own->inputs);
    free(own->outputs);
    free(own);
}

static void describe(const crosschip_operand *operand, tensor *into)
{
    if (operand->type != CROSSCHIP_FLOAT32 || operand->rank > MAX_RANK)
        return; /* a parameter: the steps have read it */
    into->rank = operand->rank;
    memcpy(into->shape, operand->shape, (size_t)operand->rank * sizeof *operand->shape);
    into->data = (float *)(uintptr_t)operand->data;
}

static void plan(const crosschip_model *model, const crosschip_operation *operation, step *into)
{
    int index;
    uint32_t input;
    into->kernel = kernel_named(operation->operator_name);
    into->kernel->read(model, operation, &into->given);
    into->output = operation->outputs[0];
    for (index = 0; index < TENSORS; index++) {
        const char *slot = into->kernel->tensors[index];
        into->inputs[index] = -1;
        for (input = 0; slot && input < operation->input_count; input++)
            if (strcmp(operation->slots[input], slot) == 0)
                into->inputs[index] = operation->inputs[input];
    }
}

static int32_t *copied(const int32_t *indices, uint32_t number)
{
    int32_t *made = malloc((number + 1) * sizeof *made);
    if (made)
        memcpy(made, indices, number * sizeof *made);
    return made;
}

static int create_program(void *context, const crosschip_model *model,
                          const crosschip_options *options, uint8_t *at_fault, void **handle)
{
    program *made = calloc(1, sizeof *made);
    uint32_t index;
    (void)context, (void)options, (void)at_fault;
    *handle = made;
    if (made) {
        made->tensors = calloc(model->operand_count + 1, sizeof *made->tensors);
        made->steps = calloc(model->operation_count + 1, sizeof *made->steps);
        made->inputs = copied(model->inputs, model->input_count);
        made->outputs = copied(model->outputs, model->output_count);
    }
    if (!made || !made->tensors || !made->steps || !made->inputs || !made->outputs) {
        destroy_program(made);
        return failed(CROSSCHIP_OUT_OF_MEMORY, "no memory for the program");
    }
    made->tensor_count = model->operand_count;
    made->step_count = model->operation_count;
    made->input_count = model->input_count;
    made->output_count = model->output_count;
    for (index = 0; index < model->operand_count; index++)
        describe(crosschip_operand_at(model, (int32_t)index), &made->tensors[index]);
    for (index = 0; index < model->operation_count; index++)
        plan(model, crosschip_operation_at(model, index), &made->steps[index]);
    return CROSSCHIP_OK;
}

/* ---- running ----------------------------------------------------------------------------- */

/* Memory for what steps make, outputs of the program included; NULL if there is none. */
static float *scratch(const program *own, tensor *tensors)
{
    int64_t total = 0;
    float *memory, *next;
    uint32_t index;
    for (index = 0; index < own->step_count; index++)
        total += count(&tensors[own->steps[index].output]);
    next = memory = malloc((size_t)(total + 1) * sizeof *memory);
    for (index = 0; memory && index < own->step_count; index++) {
        tensor *made = &tensors[own->steps[index].output];
        made->data = next;
        next += count(made);
    }
    return memory;
}

static void execute_step(const step *own, tensor *tensors)
{
    tensor inputs[TENSORS];
    int index;
    memset(inputs, 0, sizeof inputs);
    for (index = 0; index < TENSORS; index++)
        if (own->inputs[index] >= 0)
            inputs[index] = tensors[own->inputs[index]];
    own->kernel->compute(inputs, &own->given, &tensors[own->output]);
}

static int execute_program(void *handle, uint32_t input_count, const crosschip_argument *inputs,
                           uint32_t output_count, crosschip_argument *outputs)
{
    const program *own = handle;
    size_t bytes = (own->tensor_count + 1) * sizeof(tensor);
    tensor *tensors = malloc(bytes);
    float *memory;
    uint32_t index;
    if (!tensors)
        return failed(CROSSCHIP_OUT_OF_MEMORY, "no memory for the run");
    memcpy(tensors, own->tensors, bytes);
    for (index = 0; index < input_count; index++)
        tensors[own->inputs[index]].data = inputs[index].data;
    memory = scratch(own, tensors);
    if (!memory) {
        free(tensors);
        return failed(CROSSCHIP_OUT_OF_MEMORY, "no memory for the run");
    }
    for (index = 0; index < own->step_count; index++)
        execute_step(&own->steps[index], tensors);
    for (index = 0; index < output_count; index++)
        memcpy(outputs[index].data, tensors[own->outputs[index]].data, outputs[index].length);
    free(memory);
    free(tensors);
    return CROSSCHIP_OK;
}

const crosschip_device CHIP_DEVICE = {
    .size = sizeof(crosschip_device),
    .contract = CROSSCHIP_CONTRACT,
    .name = CHIP_NAME,
    .vendor = CHIP_VENDOR,
    .type = CROSSCHIP_KIND_ACCELERATOR,
    .simulated = 1,
    .version = CHIP_VERSION,
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
};
