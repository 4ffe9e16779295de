/* The plain events of a text -> columns. An event is plain if its fields have the types that Kineto writes, none of them
 * twice, and it is strict JSON. Nothing that is read depends on how often, or from where, reading was begun.
 */
#ifndef EVENTS_H
#define EVENTS_H

#include "texts.h"

#define MISSING INT64_MIN

enum { START_BITS = 52, DURATION_BITS = 42 }; /* of microseconds, as tracediff.ingest.times has them */
enum Kind { INTEGER, DECIMAL, TEXT, INTEGER_OR_TEXT, KINDS, KEPT = 4 };
enum Field { PH, CAT, NAME, PID, TID, TS, DUR, ID, ARGS, FIELDS };

typedef struct {
    char *name;
    Py_ssize_t size;
    enum Kind kind;
    int is_kept;
    int32_t next; /* the argument that followed it last */
    int64_t row;  /* the serial of the last event that has it */
    int32_t *rows;
    void *values;
    size_t count, capacity;
} Argument;

typedef struct {
    int64_t ts, dur, id;
    int32_t name, pid, tid, phase, category;
    int8_t has_arguments, is_call, is_complete;
} Event;

typedef struct {
    int64_t *ts, *dur, *id;
    int32_t *name, *pid, *tid, *phase, *category;
    int8_t *has_arguments;
} Columns;

enum { MOST_CATEGORIES = 1024 };

typedef struct {
    PyObject_HEAD
    PyObject *kind_of, *is_call;
    uint64_t seed;
    Texts names, ids, phases, categories, texts;
    int8_t calls[MOST_CATEGORIES]; /* of each category, whether its events are calls */
    Argument *arguments;
    int32_t argument_count, argument_capacity, predicted;
    Columns columns;
    size_t count, capacity;
    int64_t serial; /* of the last event, over all scans */
} Scanner;

/* Make room for as many items in the column that this points to; -1 with an error set. */
static int grow(void *column, size_t items, size_t size)
{
    void *data;
    memcpy(&data, column, sizeof data);
    data = PyMem_Realloc(data, items * size);
    if (!data) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(column, &data, sizeof data);
    return 0;
}

static int grow_events(Scanner *self)
{
    size_t n = self->capacity ? 2 * self->capacity : 4096;
    Columns *c = &self->columns;
    if (grow(&c->ts, n, 8) || grow(&c->dur, n, 8) || grow(&c->id, n, 8) || grow(&c->name, n, 4) ||
        grow(&c->pid, n, 4) || grow(&c->tid, n, 4) || grow(&c->phase, n, 4) || grow(&c->category, n, 4) ||
        grow(&c->has_arguments, n, 1))
        return -1;
    self->capacity = n;
    return 0;
}

static int grow_argument(Argument *argument, size_t size)
{
    size_t n = argument->capacity ? 2 * argument->capacity : 1024;
    if (grow(&argument->rows, n, sizeof(int32_t)) || grow(&argument->values, n, size))
        return -1;
    argument->capacity = n;
    return 0;
}

/* What a function of Python makes of a piece of text; -1 with an error set. */
static long asked(PyObject *function, Text p, Py_ssize_t size)
{
    PyObject *answer = PyObject_CallFunction(function, "y#", (const char *)p, size);
    long value = answer ? PyLong_AsLong(answer) : -1;
    Py_XDECREF(answer);
    return value;
}

/* The argument whose name is expected next, if it is at p, which is behind a quote. */
static inline Argument *argument_expected(Scanner *self, Text p, Text end)
{
    if (self->predicted < 0 || self->predicted >= self->argument_count)
        return NULL;
    Argument *likely = &self->arguments[self->predicted];
    return end - p > likely->size && p[likely->size] == '"' && !memcmp(likely->name, p, (size_t)likely->size) ? likely
                                                                                                              : NULL;
}

/* The argument of this name; NULL where it is not one to be read here, or with an error set. */
static Argument *argument_named(Scanner *self, Text p, Py_ssize_t size)
{
    for (int32_t i = 0; i < self->argument_count; i++)
        if (self->arguments[i].size == size && !memcmp(self->arguments[i].name, p, (size_t)size))
            return &self->arguments[i];
    long answer = asked(self->kind_of, p, size);
    if (answer < 0)
        return NULL;
    if (self->argument_count == self->argument_capacity) {
        int32_t capacity = self->argument_capacity ? 2 * self->argument_capacity : 64;
        Argument *grown = PyMem_Realloc(self->arguments, (size_t)capacity * sizeof(Argument));
        if (!grown) {
            PyErr_NoMemory();
            return NULL;
        }
        self->arguments = grown;
        self->argument_capacity = capacity;
    }
    Argument *new = &self->arguments[self->argument_count];
    memset(new, 0, sizeof(Argument));
    new->name = PyMem_Malloc((size_t)size + 1);
    if (!new->name) {
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(new->name, p, (size_t)size);
    new->size = size;
    new->kind = (enum Kind)(answer % KINDS);
    new->is_kept = answer >= KEPT;
    new->next = self->argument_count + 1;
    new->row = -1;
    self->argument_count++;
    return new;
}

static inline int keep_row(Scanner *self, Argument *argument, size_t size)
{
    if (argument->count == argument->capacity && grow_argument(argument, size))
        return -1;
    argument->rows[argument->count] = (int32_t)self->count;
    return 0;
}

static inline int keep_integer(Scanner *self, Argument *argument, int64_t value)
{
    if (keep_row(self, argument, sizeof value))
        return -1;
    ((int64_t *)argument->values)[argument->count++] = value;
    return 0;
}

static inline int keep_decimal(Scanner *self, Argument *argument, double value)
{
    if (keep_row(self, argument, sizeof value))
        return -1;
    ((double *)argument->values)[argument->count++] = value;
    return 0;
}

static inline int keep_text(Scanner *self, Argument *argument, int32_t value)
{
    if (keep_row(self, argument, sizeof value))
        return -1;
    ((int32_t *)argument->values)[argument->count++] = value;
    return 0;
}

static Text after_decimal(Text p, int is_kept, double *value)
{
    Text end = after_number(p);
    if (end && end - p > MOST_DIGITS && !memchr(p, '.', (size_t)(end - p)))
        return NULL;
    if (end && is_kept) {
        char digits[LONGEST_NUMBER + 8];
        memcpy(digits, p, (size_t)(end - p));
        digits[end - p] = 0;
        *value = PyOS_string_to_double(digits, NULL, NULL);
        if (*value == -1.0 && PyErr_Occurred())
            return NULL;
    }
    return end;
}

/* A whole number; true and false are 1 and 0, and null is missing. */
static Text after_integer_or_word(Text p, int64_t *value)
{
    if (is_digit(*p) || *p == '-')
        return after_integer(p, value);
    *value = *p == 't' ? 1 : *p == 'f' ? 0 : MISSING;
    return *p == 't' ? after_literal(p, "true") : after_literal(p, *p == 'f' ? "false" : "null");
}

static Text after_argument(Scanner *self, Event *event, Argument *argument, Text p, Text end)
{
    int is_kept = argument->is_kept || !event->is_complete;
    Text begin = p;
    int64_t integer = MISSING;
    double decimal;
    int32_t text;
    switch (argument->kind) {
    case INTEGER:
        p = after_integer_or_word(p, &integer);
        return p && is_kept && keep_integer(self, argument, integer) ? NULL : p;
    case DECIMAL:
        p = after_decimal(p, is_kept, &decimal);
        return p && is_kept && keep_decimal(self, argument, decimal) ? NULL : p;
    case INTEGER_OR_TEXT:
        p = event->is_call && event->is_complete ? after_value(p, end, 0) : after_integer(p, &integer);
        break;
    default:
        p = after_value(p, end, 0);
    }
    if (!p || !is_kept)
        return p;
    text = texts_number(&self->texts, begin, p - begin, self->seed);
    return text < 0 || keep_text(self, argument, text) ? NULL : p;
}

static Text after_arguments(Scanner *self, Event *event, Text p, Text end)
{
    int32_t before = -1;
    if (*p != '{')
        return NULL;
    event->has_arguments = 1;
    p = after_blanks(p + 1);
    if (*p == '}')
        return p + 1;
    for (;;) {
        Text key = p + 1;
        if (*p != '"')
            return NULL;
        Argument *argument = argument_expected(self, key, end);
        if (argument)
            p = key + argument->size;
        else if ((p = string_end(key, end)))
            argument = argument_named(self, key, p - key);
        if (!argument || argument->row == self->serial)
            return NULL; /* twice in one event */
        argument->row = self->serial;
        if (before >= 0)
            self->arguments[before].next = (int32_t)(argument - self->arguments);
        before = (int32_t)(argument - self->arguments);
        self->predicted = argument->next;
        p = at_value(p);
        if (!p || !(p = after_argument(self, event, argument, p, end)) || !(p = at_next(p, '}')))
            return NULL;
        if (*p == '}')
            return p + 1;
    }
}

static Text after_text(Scanner *self, Texts *texts, Text p, Text end, int32_t *number)
{
    Text begin = p + 1;
    if (*p != '"' || !(p = string_end(begin, end)))
        return NULL;
    *number = texts_number(texts, begin, p - begin, self->seed);
    return *number < 0 ? NULL : p + 1;
}

/* The id of a process or thread: a whole number, or a string with its quotes. */
static Text after_id(Scanner *self, Text p, Text end, int32_t *number)
{
    Text begin = p;
    int64_t value;
    p = *p == '"' ? after_value(p, end, 0) : after_integer(p, &value);
    if (!p)
        return NULL;
    *number = texts_number(&self->ids, begin, p - begin, self->seed);
    return *number < 0 ? NULL : p;
}

static Text after_category(Scanner *self, Event *event, Text p, Text end)
{
    int32_t known = self->categories.count;
    Text begin = p + 1;
    p = after_text(self, &self->categories, p, end, &event->category);
    if (!p)
        return NULL;
    if (event->category == known) { /* a new one */
        long answer = asked(self->is_call, begin, p - 1 - begin);
        if (answer < 0 || known >= MOST_CATEGORIES)
            return NULL;
        self->calls[known] = answer != 0;
    }
    event->is_call = event->category < MOST_CATEGORIES && self->calls[event->category];
    return p;
}

static enum Field field_of(Text p, Py_ssize_t size)
{
    switch (size) {
    case 2:
        return !memcmp(p, "ts", 2) ? TS : !memcmp(p, "ph", 2) ? PH : !memcmp(p, "id", 2) ? ID : FIELDS;
    case 3:
        return !memcmp(p, "dur", 3)   ? DUR
               : !memcmp(p, "cat", 3) ? CAT
               : !memcmp(p, "pid", 3) ? PID
               : !memcmp(p, "tid", 3) ? TID
                                      : FIELDS;
    case 4:
        return !memcmp(p, "name", 4) ? NAME : !memcmp(p, "args", 4) ? ARGS : FIELDS;
    default:
        return FIELDS;
    }
}

static Text after_field(Scanner *self, enum Field field, Event *event, Text p, Text end)
{
    Text begin = p;
    switch (field) {
    case PH:
        p = after_text(self, &self->phases, p, end, &event->phase);
        event->is_complete = p && p - begin == 3 && begin[1] == 'X';
        return p;
    case CAT:
        return after_category(self, event, p, end);
    case NAME:
        return after_text(self, &self->names, p, end, &event->name);
    case PID:
        return after_id(self, p, end, &event->pid);
    case TID:
        return after_id(self, p, end, &event->tid);
    case TS:
        return after_microseconds(p, START_BITS, &event->ts);
    case DUR:
        return after_microseconds(p, DURATION_BITS, &event->dur);
    case ID:
        return *p == '"' ? after_value(p, end, 0) : after_integer(p, &event->id);
    case ARGS:
        return after_arguments(self, event, p, end);
    default:
        return after_value(p, end, 0);
    }
}

/* Behind the event at p. */
static Text after_event(Scanner *self, Event *event, Text p, Text end)
{
    unsigned seen = 0;
    *event = (Event){MISSING, MISSING, MISSING, -1, -1, -1, -1, -1, 0, 0, 0};
    self->serial++;
    p = after_blanks(p + 1);
    if (*p == '}')
        return p + 1;
    for (;;) {
        Text key = p + 1;
        if (*p != '"' || !(p = string_end(key, end)))
            return NULL;
        if (memchr(key, '\\', (size_t)(p - key)))
            return NULL; /* may spell a field */
        enum Field field = field_of(key, p - key);
        if (field != FIELDS && seen & 1u << field)
            return NULL;
        seen |= 1u << field;
        p = at_value(p);
        if (!p || !(p = after_field(self, field, event, p, end)) || !(p = at_next(p, '}')))
            return NULL;
        if (*p == '}')
            return p + 1;
    }
}

static inline int add(Scanner *self, const Event *event)
{
    if (self->count == self->capacity && grow_events(self))
        return -1;
    Columns *c = &self->columns;
    size_t n = self->count++;
    c->ts[n] = event->ts;
    c->dur[n] = event->dur;
    c->id[n] = event->id;
    c->name[n] = event->name;
    c->pid[n] = event->pid;
    c->tid[n] = event->tid;
    c->phase[n] = event->phase;
    c->category[n] = event->category;
    c->has_arguments[n] = event->has_arguments;
    return 0;
}

/* Forget the arguments of the event that was not added. */
static void drop_event(Scanner *self)
{
    for (int32_t i = 0; i < self->argument_count; i++) {
        Argument *argument = &self->arguments[i];
        if (argument->count && argument->rows[argument->count - 1] == (int32_t)self->count)
            argument->count--;
    }
}

/* Read plain events from p on; the position of the first one that was not read. */
static Text scan(Scanner *self, Text p, Text end, int is_list)
{
    while (*p == '{' && self->count < INT32_MAX) {
        Event event;
        Text next = after_event(self, &event, p, end);
        next = next ? after_blanks(next) : NULL;
        int is_last = next && *next == ']' && is_list && after_blanks(next + 1) == end;
        if (next && *next == ',')
            next = after_blanks(next + 1);
        else if (!is_last)
            next = NULL;
        if (!next || (*next != '{' && !is_last) || add(self, &event)) {
            drop_event(self);
            return p;
        }
        p = is_last ? end : next;
    }
    return p;
}

#endif
