/*
 * Initialization of Python, once per process, and of one library's Python bindings.
 *
 * Compiled into every library, after these macros:
 *
 *     CROSSCHIP_PYTHON            the path of the library's Python interpreter
 *     CROSSCHIP_PATHS_CODE        Python code that finds the installation
 *     CROSSCHIP_INIT_BINDINGS     the function that creates the bindings' module
 *     CROSSCHIP_CONNECTING_CODE   Python code that connects the module, named "module"
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CROSSCHIP_NEW, CROSSCHIP_RUNNING, CROSSCHIP_FAILED };

static int crosschip_state = CROSSCHIP_NEW;
static char crosschip_problem[1024];
static pthread_mutex_t crosschip_one_starts = PTHREAD_MUTEX_INITIALIZER;

PyMODINIT_FUNC CROSSCHIP_INIT_BINDINGS(void);
static const char *crosschip_py_last_error(void);

static int crosschip_fail(const char *what, const char *why)
{
    snprintf(crosschip_problem, sizeof crosschip_problem, "%s: %s", what, why);
    fprintf(stderr, "%s\n", crosschip_problem);
    return -1;
}

/* Make Python's symbols global, where its extension modules look them up. */
static void crosschip_show_python(void)
{
    Dl_info about;
    if (dladdr((void *)(size_t)Py_IsInitialized, &about) && about.dli_fname)
        (void)dlopen(about.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

/* The attribute of sys that marks a Python started by one of crosschip's libraries. */
#define CROSSCHIP_MARK "_crosschip_started"

/* The process that such a library has started Python in; 0 for none. Forked children differ. */
static pid_t crosschip_process;

/* Python's exit functions run in a new thread: when a process ends, the thread-local state of the
   main thread is destroyed first, and functions of engines that read theirs (JAX's does) crash. */
static const char *const CROSSCHIP_EXIT =
    "import atexit, threading\n"
    "thread = threading.Thread(target=atexit._run_exitfuncs)\n"
    "thread.start()\n"
    "thread.join()\n";

/* Call Python's exit functions, which end runs, before the engines' libraries are finalized. */
static void crosschip_end_runs(void)
{
    if (crosschip_process != getpid() || !Py_IsInitialized())
        return;
    crosschip_process = 0;
    PyGILState_STATE state = PyGILState_Ensure();
    PyRun_SimpleString(CROSSCHIP_EXIT);
    PyGILState_Release(state);
}

/* Register again, so that runs end before libraries that were loaded since are finalized. */
static void crosschip_end_before(void)
{
    if (crosschip_process == getpid())
        atexit(crosschip_end_runs);
}

static int crosschip_initialize(void)
{
    PyPreConfig before;
    PyConfig config;
    PyStatus status;

    /* Leave the program's signals, locale, environment and streams unchanged. */
    PyPreConfig_InitPythonConfig(&before);
    before.configure_locale = before.coerce_c_locale = 0;
    before.utf8_mode = 1;
    before.parse_argv = 0;
    PyConfig_InitPythonConfig(&config);
    config.install_signal_handlers = 0;
    config.configure_c_stdio = 0;
    config.parse_argv = 0;
    status = Py_PreInitialize(&before);
    if (!PyStatus_Exception(status))
        status = PyConfig_SetBytesString(&config, &config.executable, CROSSCHIP_PYTHON);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status))
        return crosschip_fail("Python of " CROSSCHIP_PYTHON " does not start",
                              status.err_msg ? status.err_msg : "it ended");
    (void)PySys_SetObject(CROSSCHIP_MARK, Py_True);
    PyEval_SaveThread();
    return 0;
}

/*
 * Initialize Python, unless it is initialized. Two libraries may call this at once and share nothing
 * but Python itself: as in cffi, one of its pointers that is always NULL serves as the lock.
 */
static int crosschip_initialize_once(void)
{
    static PyBufferProcs locked;
    PyBufferProcs **lock = &PyCapsule_Type.tp_as_buffer;
    int failed = 0;

    if (access(CROSSCHIP_PYTHON, X_OK) && !Py_IsInitialized())
        return crosschip_fail("the Python that this library was built for is gone",
                              CROSSCHIP_PYTHON);
    while (!__sync_bool_compare_and_swap(lock, NULL, &locked))
        sched_yield();
    if (!Py_IsInitialized())
        failed = crosschip_initialize();
    (void)__sync_bool_compare_and_swap(lock, &locked, NULL);
    return failed;
}

/* Fail with the message of the current exception, which is cleared. */
static int crosschip_fail_by_exception(const char *what)
{
    PyObject *type, *value, *traceback, *text = NULL;
    const char *words = NULL;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value)
        text = PyUnicode_FromFormat("%s: %S", Py_TYPE(value)->tp_name, value);
    if (text)
        words = PyUnicode_AsUTF8(text);
    crosschip_fail(what, words ? words : "it cannot be told why");
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return -1;
}

static int crosschip_connect(void)
{
    const char *version = Py_STRINGIFY(PY_MAJOR_VERSION) "." Py_STRINGIFY(PY_MINOR_VERSION) ".";
    PyObject *names, *module = NULL, *done = NULL;
    PyGILState_STATE state;
    int failed;

    if (strncmp(Py_GetVersion(), version, strlen(version)))
        return crosschip_fail("this process runs another Python than the library was built for",
                              Py_GetVersion());
    state = PyGILState_Ensure();
    if (PySys_GetObject(CROSSCHIP_MARK))
        crosschip_process = getpid();
    names = Py_BuildValue("{s:O}", "__builtins__", PyEval_GetBuiltins());
    if (names)
        done = PyRun_String(CROSSCHIP_PATHS_CODE, Py_file_input, names, names);
    if (done)
        module = CROSSCHIP_INIT_BINDINGS();
    Py_CLEAR(done);
    if (module && !PyDict_SetItemString(names, "module", module))
        done = PyRun_String(CROSSCHIP_CONNECTING_CODE, Py_file_input, names, names);
    if (!done)
        crosschip_fail_by_exception("crosschip does not start");
    failed = !done;
    Py_XDECREF(done);
    Py_XDECREF(names);
    crosschip_end_before();
    PyGILState_Release(state);
    return failed ? -1 : 0;
}

static int crosschip_start_now(void)
{
    /* Release the GIL: the thread that initializes may need it. */
    int running = Py_IsInitialized();
    PyThreadState *held = running && PyGILState_Check() ? PyEval_SaveThread() : NULL;
    int failed;

    pthread_mutex_lock(&crosschip_one_starts);
    if (crosschip_state == CROSSCHIP_RUNNING && !Py_IsInitialized()) {
        snprintf(crosschip_problem, sizeof crosschip_problem, "Python has ended in this process");
        crosschip_state = CROSSCHIP_FAILED;
    }
    if (crosschip_state == CROSSCHIP_NEW) {
        crosschip_show_python();
        failed = crosschip_initialize_once() || crosschip_connect();
        __atomic_store_n(&crosschip_state, failed ? CROSSCHIP_FAILED : CROSSCHIP_RUNNING,
                         __ATOMIC_RELEASE);
    }
    failed = crosschip_state == CROSSCHIP_FAILED;
    pthread_mutex_unlock(&crosschip_one_starts);
    if (held)
        PyEval_RestoreThread(held);
    return failed;
}

/* Return whether functions must fail, because Python could not be started or has ended. */
static inline int crosschip_fails(void)
{
    if (__atomic_load_n(&crosschip_state, __ATOMIC_ACQUIRE) == CROSSCHIP_RUNNING &&
        Py_IsInitialized())
        return 0;
    return crosschip_start_now();
}

CROSSCHIP_EXPORTED const char *crosschip_last_error(void)
{
    return crosschip_fails() ? crosschip_problem : crosschip_py_last_error();
}
