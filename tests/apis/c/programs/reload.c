/* Opens a library so that no one else sees its symbols, uses it, closes it, and does so again. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

typedef int (*create)(void **);
typedef void (*destroy)(void *);
typedef int (*acquire)(const char *, void **);

int main(int count, char **arguments)
{
    for (int turn = 0; turn < 3 && count == 2; turn++) {
        void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
        void *model = NULL, *device = NULL;
        if (!library) {
            puts(dlerror());
            return 1;
        }
        create make = (create)(uintptr_t)dlsym(library, "NNAdapterModel_create");
        destroy end = (destroy)(uintptr_t)dlsym(library, "NNAdapterModel_destroy");
        acquire get = (acquire)(uintptr_t)dlsym(library, "NNAdapterDevice_acquire");
        if (make(&model) || get("builtin_device", &device) || !model || !device)
            return 2;
        end(model);
        if (dlclose(library))
            return 3;
    }
    return 0;
}
