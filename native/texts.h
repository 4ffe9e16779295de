/* Distinct pieces of text, numbered in order of first appearance. */
#ifndef TEXTS_H
#define TEXTS_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "json.h"

typedef struct {
    uint64_t hash;
    int32_t number; /* -1: free */
} Slot;

enum { LIKELY = 1024 };

typedef struct {
    const char *data; /* inside of the bytes object in the list */
    Py_ssize_t size;
} Piece;

typedef struct {
    Slot *slots; /* a power of two, at most half of them taken */
    uint32_t mask;
    int32_t count;
    int32_t likely[LIKELY]; /* the piece that was looked up last, by what it begins and ends with */
    Piece *pieces;          /* room for as many as half of the slots */
    PyObject *list;         /* of bytes: the text of each number */
} Texts;

static int texts_init(Texts *texts)
{
    texts->mask = 255;
    texts->count = 0;
    texts->slots = PyMem_Malloc(256 * sizeof(Slot));
    texts->pieces = PyMem_Malloc(129 * sizeof(Piece));
    texts->list = PyList_New(0);
    if (!texts->slots || !texts->pieces || !texts->list)
        return -1;
    memset(texts->slots, 0xff, 256 * sizeof(Slot));
    return 0;
}

static void texts_free(Texts *texts)
{
    PyMem_Free(texts->slots);
    PyMem_Free(texts->pieces);
    texts->slots = NULL;
    texts->pieces = NULL;
    Py_CLEAR(texts->list);
}

static inline uint64_t hash_of(Text p, Py_ssize_t size, uint64_t seed)
{
    uint64_t hash = seed ^ (uint64_t)size * 0x9E3779B97F4A7C15u, word;
    for (; size >= 8; size -= 8, p += 8) {
        memcpy(&word, p, 8);
        hash = (hash ^ word) * 0xFF51AFD7ED558CCDu;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, p, (size_t)size);
    hash = (hash ^ word) * 0xFF51AFD7ED558CCDu;
    return hash ^ hash >> 29;
}

/* Twice as much room; -1 with an error set, since without it the next piece would not fit. */
static int texts_grow(Texts *texts)
{
    uint32_t mask = 2 * texts->mask + 1;
    Piece *pieces = PyMem_Realloc(texts->pieces, ((size_t)mask / 2 + 2) * sizeof(Piece));
    if (!pieces)
        return PyErr_NoMemory(), -1;
    texts->pieces = pieces;
    Slot *slots = PyMem_Malloc(((size_t)mask + 1) * sizeof(Slot));
    if (!slots)
        return PyErr_NoMemory(), -1;
    memset(slots, 0xff, ((size_t)mask + 1) * sizeof(Slot));
    for (uint32_t i = 0; i <= texts->mask; i++) {
        if (texts->slots[i].number < 0)
            continue;
        uint32_t at = (uint32_t)texts->slots[i].hash & mask;
        while (slots[at].number >= 0)
            at = (at + 1) & mask;
        slots[at] = texts->slots[i];
    }
    PyMem_Free(texts->slots);
    texts->slots = slots;
    texts->mask = mask;
    return 0;
}

static inline int is_piece(Texts *texts, int32_t number, Text p, Py_ssize_t size)
{
    const Piece *piece = &texts->pieces[number];
    return piece->size == size && !memcmp(piece->data, p, (size_t)size);
}

/* A place among the likely ones; what is not found there costs a search, so that it need not be hard to meet. */
static inline uint32_t ends_of(Text p, Py_ssize_t size)
{
    uint64_t begin = 0, end = 0;
    if (size >= 8) {
        memcpy(&begin, p, 8);
        memcpy(&end, p + size - 8, 8);
    } else {
        memcpy(&begin, p, (size_t)size);
    }
    return (uint32_t)(((begin ^ end * 3 ^ (uint64_t)size) * 0x9E3779B97F4A7C15u) >> 54);
}

/* The number of a piece of text; -2 without memory. */
static int32_t texts_number(Texts *texts, Text p, Py_ssize_t size, uint64_t seed)
{
    int32_t *likely = &texts->likely[ends_of(p, size)];
    if (*likely < texts->count && is_piece(texts, *likely, p, size))
        return *likely;
    uint64_t hash = hash_of(p, size, seed);
    uint32_t at = (uint32_t)hash & texts->mask;
    for (; texts->slots[at].number >= 0; at = (at + 1) & texts->mask)
        if (texts->slots[at].hash == hash && is_piece(texts, texts->slots[at].number, p, size))
            return *likely = texts->slots[at].number;
    PyObject *piece = PyBytes_FromStringAndSize((const char *)p, size);
    if (!piece)
        return -2;
    texts->pieces[texts->count].data = PyBytes_AsString(piece);
    texts->pieces[texts->count].size = size;
    int failed = PyList_Append(texts->list, piece);
    Py_DECREF(piece);
    if (failed || texts->count == INT32_MAX)
        return -2;
    texts->slots[at].hash = hash;
    texts->slots[at].number = texts->count++;
    if ((uint32_t)texts->count * 2 > texts->mask && texts_grow(texts))
        return -2;
    return texts->count - 1;
}

#endif
