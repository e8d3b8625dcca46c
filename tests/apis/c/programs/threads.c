/* Threads that all make the first call of the process, and then fail, each in its own way. */
#include <crosschip.h>
#include <nnadapter.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 8, TURNS = 50 };

static pthread_barrier_t all_there;

static void *work(void *given)
{
    char name[32], *wrong = NULL;
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
