/* Runs Python itself, calls the library from it and from C, ends Python, and calls it again. */
#include <Python.h>

#include <crosschip.h>
#include <nnadapter.h>

int main(void)
{
    NNAdapterModel *model;
    uint32_t version = 0;

    Py_Initialize();
    if (NNAdapterModel_create(&model) || NNAdapter_getVersion(&version) || version != 1)
        return 1;
    if (PyRun_SimpleString("from crosschip.apis.nnadapter import NNAdapter_getVersion\n"
                           "assert NNAdapter_getVersion()[1] == 1\n"))
        return 2;
    if (Py_FinalizeEx())
        return 3;
    if (NNAdapter_getVersion(&version) != NNADAPTER_DEVICE_INTERNAL_ERROR)
        return 4;
    NNAdapterModel_destroy(model);
    puts(crosschip_last_error());
    return 0;
}
