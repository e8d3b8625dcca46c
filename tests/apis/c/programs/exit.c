/* Uses the library, has a child process that ends, and ends. */
#include <nnadapter.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    NNAdapterDevice *device;
    int status = -1;

    if (NNAdapterDevice_acquire("builtin_device", &device))
        return 1;
    pid_t child = fork();
    if (!child)
        exit(0);
    if (waitpid(child, &status, 0) != child || status)
        return 2;
    return 0;
}
