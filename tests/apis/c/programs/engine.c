/*
 * Loads the engine of the device that its argument names, and ends.
 */
#include <nnadapter.h>
#include <stddef.h>

int main(int argc, char **argv)
{
    NNAdapterDevice *device = NULL;

    return argc != 2 || NNAdapterDevice_acquire(argv[1], &device);
}
