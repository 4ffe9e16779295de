/* The module: Scanner, which hands the columns of plain events to Python. */
#include "events.h"

static PyObject *copied(const void *column, size_t items, size_t size)
{
    return PyByteArray_FromStringAndSize(column, (Py_ssize_t)(items * size));
}

/* (rows, values) of each argument that an event has, by its number. */
static PyObject *taken_arguments(Scanner *self)
{
    PyObject *out = PyDict_New();
    for (int32_t i = 0; out && i < self->argument_count; i++) {
        Argument *argument = &self->arguments[i];
        size_t size = argument->kind == INTEGER ? sizeof(int64_t)
                      : argument->kind == DECIMAL ? sizeof(double)
                                                  : sizeof(int32_t);
        if (!argument->count)
            continue;
        PyObject *number = PyLong_FromLong(i);
        PyObject *columns = Py_BuildValue("NN", copied(argument->rows, argument->count, sizeof(int32_t)),
                                          copied(argument->values, argument->count, size));
        argument->count = 0;
        if (!number || !columns || PyDict_SetItem(out, number, columns))
            Py_CLEAR(out);
        Py_XDECREF(number);
        Py_XDECREF(columns);
    }
    return out;
}

static PyObject *scanner_scan(Scanner *self, PyObject *args)
{
    PyObject *text;
    Py_ssize_t start, size;
    char *data;
    int is_list;
    if (!PyArg_ParseTuple(args, "Snp", &text, &start, &is_list) || PyBytes_AsStringAndSize(text, &data, &size))
        return NULL;
    if (start < 0 || start > size) {
        PyErr_SetString(PyExc_ValueError, "start lies outside of the text");
        return NULL;
    }
    self->count = 0;
    Text begin = (Text)data, end = begin + size, stop = scan(self, after_blanks(begin + start), end, is_list);
    Text behind = is_list && *stop == '{' ? after_value(stop, end, 0) : NULL;
    if (PyErr_Occurred())
        return NULL;
    Columns *c = &self->columns;
    size_t n = self->count;
    PyObject *times = Py_BuildValue("NNN", copied(c->ts, n, 8), copied(c->dur, n, 8), copied(c->id, n, 8));
    PyObject *codes = Py_BuildValue("NNNNN", copied(c->name, n, 4), copied(c->pid, n, 4), copied(c->tid, n, 4),
                                    copied(c->phase, n, 4), copied(c->category, n, 4));
    PyObject *has = copied(c->has_arguments, n, 1), *arguments = taken_arguments(self);
    if (!times || !codes || !has || !arguments) {
        Py_XDECREF(times);
        Py_XDECREF(codes);
        Py_XDECREF(has);
        Py_XDECREF(arguments);
        return NULL;
    }
    return Py_BuildValue("nnnNNNN", (Py_ssize_t)n, (Py_ssize_t)(stop - begin),
                         behind ? (Py_ssize_t)(behind - begin) : (Py_ssize_t)-1, times, codes, has, arguments);
}

static PyObject *scanner_pieces(Scanner *self, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("OOOOO", self->names.list, self->ids.list, self->phases.list, self->categories.list,
                         self->texts.list);
}

static int scanner_init(Scanner *self, PyObject *args, PyObject *unused)
{
    Texts *texts[] = {&self->names, &self->ids, &self->phases, &self->categories, &self->texts};
    PyObject *kind_of, *is_call;
    unsigned long long seed;
    (void)unused;
    if (self->kind_of) {
        PyErr_SetString(PyExc_TypeError, "a scanner is made once");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "OOK", &kind_of, &is_call, &seed))
        return -1;
    Py_INCREF(kind_of);
    Py_INCREF(is_call);
    self->kind_of = kind_of;
    self->is_call = is_call;
    self->seed = seed;
    self->predicted = -1;
    for (int i = 0; i < 5; i++)
        if (texts_init(texts[i])) {
            PyErr_NoMemory();
            return -1;
        }
    return 0;
}

static void scanner_dealloc(Scanner *self)
{
    Texts *texts[] = {&self->names, &self->ids, &self->phases, &self->categories, &self->texts};
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    Columns *c = &self->columns;
    for (int i = 0; i < 5; i++)
        texts_free(texts[i]);
    void *columns[] = {c->ts, c->dur, c->id, c->name, c->pid, c->tid, c->phase, c->category, c->has_arguments};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        PyMem_Free(columns[i]);
    for (int32_t i = 0; i < self->argument_count; i++) {
        PyMem_Free(self->arguments[i].name);
        PyMem_Free(self->arguments[i].rows);
        PyMem_Free(self->arguments[i].values);
    }
    PyMem_Free(self->arguments);
    Py_CLEAR(self->kind_of);
    Py_CLEAR(self->is_call);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef METHODS[] = {
    {"scan", (PyCFunction)scanner_scan, METH_VARARGS,
     "scan(text: bytes, start: int, is_list: bool): the plain events from a position on.\n\n"
     "Returns (events, position, behind, times, codes, has_arguments, arguments). The position is the length of text\n"
     "if text is a JSON list and all of it was read, else that of the first event that was not: it is not plain, or no\n"
     "further one begins behind it. Behind it, or -1, the first position after that event of a list. times: int64\n"
     "(ts, dur, id), times in ns; codes: int32 (name, pid, tid, ph, cat), places in pieces(), -1 where absent;\n"
     "has_arguments: int8; arguments: number -> (int32 rows, values)."},
    {"pieces", (PyCFunction)scanner_pieces, METH_NOARGS,
     "Lists of the bytes that codes stand for: names, ids, phases, categories, text arguments. They grow."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, "Scanner(kind_of, is_call, seed): the plain events of one trace.\n\n"
                "kind_of(argument: bytes) -> int: 0 whole number, 1 decimal, 2 text, 3 text in calls and else a whole\n"
                "number; plus 4 if it is kept; -1 if it is not to be read here. is_call(category: bytes) -> bool.\n"
                "seed: of the hashes."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_init, scanner_init},
    {Py_tp_dealloc, scanner_dealloc},
    {Py_tp_methods, METHODS},
    {0, NULL},
};

static PyType_Spec SPEC = {"tracediff_native.Scanner", sizeof(Scanner), 0, Py_TPFLAGS_DEFAULT, SLOTS};

static int execute(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&SPEC);
    int failed = !type || PyModule_AddObjectRef(module, "Scanner", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot MODULE_SLOTS[] = {{Py_mod_exec, execute}, {0, NULL}};

static PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "tracediff_native", "Reads the plain events of Kineto traces.", 0, NULL, MODULE_SLOTS,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_tracediff_native(void) { return PyModuleDef_Init(&MODULE); }
