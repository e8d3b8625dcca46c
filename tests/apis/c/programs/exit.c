/*
 * Uses the library, looks whether what belongs to the program is as it was, has a child process that
 * ends, and ends.
 */
#include <locale.h>
#include <nnadapter.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    NNAdapterDevice *device;
    int status = -1;

    char locale[64], variable[64];
    struct sigaction interrupt, broken;

    strcpy(locale, setlocale(LC_ALL, NULL));
    strcpy(variable, getenv("LC_CTYPE"));
    if (NNAdapterDevice_acquire("builtin_device", &device))
        return 1;
    if (strcmp(locale, setlocale(LC_ALL, NULL)) || strcmp(variable, getenv("LC_CTYPE")))
        return 3;
    sigaction(SIGINT, NULL, &interrupt);
    sigaction(SIGPIPE, NULL, &broken);
    if (interrupt.sa_handler != SIG_DFL || broken.sa_handler != SIG_DFL)
        return 4;
    pid_t child = fork();
    if (!child)
        exit(0);
    if (waitpid(child, &status, 0) != child || status)
        return 2;
    return 0;
}
