/* Tokens of strict JSON. Each function takes the position of a token in a text that ends in NUL, and returns the
 * position behind it, or NULL where the text is anything but plain JSON. What is refused here is left to another reader,
 * so refusing what is valid costs time only: whole numbers of more than 18 digits, lone halves of surrogate pairs, deep nesting.
 */
#ifndef JSON_H
#define JSON_H

#include <stdint.h>
#include <string.h>

typedef const unsigned char *Text;

enum { MOST_NESTED = 64, MOST_DIGITS = 18, LONGEST_NUMBER = 32 };

static inline Text after_blanks(Text p)
{
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')
        p++;
    return p;
}

static inline int is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

static inline int hex_digit(unsigned char c)
{
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Behind the escape that begins with the backslash at p. */
static Text after_escape(Text p)
{
    p++;
    if (*p != 'u')
        return *p && strchr("\"\\/bfnrt", *p) ? p + 1 : NULL;
    int code = 0;
    for (int i = 1; i <= 4; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0)
            return NULL;
        code = 16 * code + digit;
    }
    return code >= 0xD800 && code < 0xE000 ? NULL : p + 5;
}

static inline int continues(unsigned char c) { return (c & 0xC0) == 0x80; }

/* Behind the UTF-8 character at p, which is of several bytes. */
static Text after_character(Text p)
{
    unsigned char a = p[0], b = p[1];
    if (a >= 0xC2 && a < 0xE0)
        return continues(b) ? p + 2 : NULL;
    if (!continues(b))
        return NULL;
    if (a == 0xE0 ? b >= 0xA0 : a == 0xED ? b < 0xA0 : a > 0xE0 && a < 0xF0)
        return continues(p[2]) ? p + 3 : NULL;
    if (a == 0xF0 ? b >= 0x90 : a == 0xF4 ? b < 0x90 : a > 0xF0 && a < 0xF4)
        return continues(p[2]) && continues(p[3]) ? p + 4 : NULL;
    return NULL;
}

/* How many of the 8 bytes at p are neither a quote, a backslash, a control character nor outside ASCII. */
static inline int plain_bytes(Text p)
{
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = 0x0101010101010101u;
    uint64_t word, quote, slash, special;
    memcpy(&word, p, 8);
    quote = word ^ ones * '"';
    slash = word ^ ones * '\\';
    special = (((quote - ones) & ~quote) | ((slash - ones) & ~slash) | (word - ones * 0x20) | word) & ones << 7;
    return special ? __builtin_ctzll(special) >> 3 : 8;
#else
    int n = 0;
    while (n < 8 && p[n] >= 0x20 && p[n] < 0x80 && p[n] != '"' && p[n] != '\\')
        n++;
    return n;
#endif
}

/* At the closing quote of the string whose first character is at p. */
static inline Text string_end(Text p, Text end)
{
    for (;;) {
        while (end - p >= 8) {
            int plain = plain_bytes(p);
            p += plain;
            if (plain < 8)
                break;
        }
        if (*p == '"')
            return p;
        if (*p < 0x20)
            return NULL;
        p = *p == '\\' ? after_escape(p) : *p < 0x80 ? p + 1 : after_character(p);
        if (!p)
            return NULL;
    }
}

static inline Text after_digits(Text p)
{
    while (is_digit(*p))
        p++;
    return p;
}

static Text after_number(Text p)
{
    Text begin = p, digits;
    p += *p == '-';
    digits = p;
    p = after_digits(p);
    if (p == digits || (*digits == '0' && p - digits > 1))
        return NULL;
    if (*p == '.') {
        digits = ++p;
        p = after_digits(p);
        if (p == digits)
            return NULL;
    }
    if (p - begin > LONGEST_NUMBER)
        return NULL;
    if (*p == 'e' || *p == 'E') {
        p += p[1] == '-' || p[1] == '+' ? 2 : 1;
        digits = p;
        p = after_digits(p);
        if (p == digits || p - digits > 2)
            return NULL;
    }
    return p;
}

/* The whole number at p, of 1 to 18 digits. */
static inline Text after_integer(Text p, int64_t *value)
{
    int negative = *p == '-';
    Text digits = p += negative;
    int64_t n = 0;
    while (is_digit(*p) && p - digits < MOST_DIGITS)
        n = 10 * n + (*p++ - '0');
    if (p == digits || (*digits == '0' && (p - digits > 1 || negative)))
        return NULL;
    if (is_digit(*p) || *p == '.' || *p == 'e' || *p == 'E')
        return NULL;
    *value = negative ? -n : n;
    return p;
}

/* The microseconds at p, with at most three decimals and below 2**bits, in nanoseconds. */
static inline Text after_microseconds(Text p, int bits, int64_t *ns)
{
    Text digits = p;
    int64_t us = 0, fraction = 0;
    int scale = 1000;
    while (is_digit(*p) && p - digits < MOST_DIGITS)
        us = 10 * us + (*p++ - '0');
    if (p == digits || (*digits == '0' && p - digits > 1) || us >= (int64_t)1 << bits)
        return NULL;
    if (*p == '.') {
        p++;
        if (!is_digit(*p))
            return NULL;
        for (; is_digit(*p); p++) {
            scale /= 10;
            if (!scale)
                return NULL;
            fraction += scale * (*p - '0');
        }
    }
    if (is_digit(*p) || *p == 'e' || *p == 'E')
        return NULL;
    *ns = 1000 * us + fraction;
    return p;
}

static inline Text after_literal(Text p, const char *literal)
{
    size_t n = strlen(literal);
    return strncmp((const char *)p, literal, n) ? NULL : p + n;
}

/* At the value of the key whose closing quote is at p. */
static inline Text at_value(Text p)
{
    p = after_blanks(p + 1);
    return *p == ':' ? after_blanks(p + 1) : NULL;
}

/* Of what follows an item that ends at p: at the next item, or at the bracket that closes all of them. */
static inline Text at_next(Text p, unsigned char close)
{
    p = after_blanks(p);
    if (*p == close)
        return p;
    if (*p != ',')
        return NULL;
    p = after_blanks(p + 1);
    return *p == close ? NULL : p;
}

/* Behind the value at p, whatever it is. */
static Text after_value(Text p, Text end, int depth)
{
    unsigned char close;
    switch (*p) {
    case '"':
        p = string_end(p + 1, end);
        return p ? p + 1 : NULL;
    case 't':
        return after_literal(p, "true");
    case 'f':
        return after_literal(p, "false");
    case 'n':
        return after_literal(p, "null");
    case '{':
    case '[':
        break;
    default:
        return after_number(p);
    }
    if (depth == MOST_NESTED)
        return NULL;
    close = *p == '{' ? '}' : ']';
    p = after_blanks(p + 1);
    if (*p == close)
        return p + 1;
    for (;;) {
        if (close == '}') {
            if (*p != '"' || !(p = string_end(p + 1, end)) || !(p = at_value(p)))
                return NULL;
        }
        p = after_value(p, end, depth + 1);
        if (!p || !(p = at_next(p, close)))
            return NULL;
        if (*p == close)
            return p + 1;
    }
}

#endif
