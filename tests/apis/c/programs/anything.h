/*
 * Numbers and handles of any kind, the same ones for a seed. Who includes it has said before what
 * KINDS of handles there are, how many of each are KEPT, and how large SCRATCH is, and defined
 * `scratch`, memory for pointers to lead to.
 */
#include <stddef.h>
#include <stdint.h>

static void *pools[KINDS][KEPT];
static unsigned long long state;

static uint32_t any(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static int rarely(void)
{
    return any(24) == 0;
}

/* A place of a pool; what was there is forgotten, and not destroyed. */
static void **place(int kind);

static void *handle(int kind)
{
    switch (any(40)) {
    case 0:
        return NULL;
    case 1:
        return *place((int)any(KINDS));
    case 2:
        return (char *)*place(kind) + any(64);
    case 3:
        return (void *)(uintptr_t)(((unsigned long long)any(1u << 31) << 32) | any(1u << 31));
    case 4:
        return scratch.octets + any(SCRATCH);
    default:
        return *place(kind);
    }
}

static void *memory(void)
{
    return rarely() ? NULL : &scratch;
}
