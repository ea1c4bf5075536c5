/* Numbers as text: the shortest digits of a real, and decimal numbers of any size kept exact. */
#include "format/value_internal.h"

#include <math.h>
#include <stdio.h>

#define EXACT_DIGITS 800       /* no double has more than 767 significant digits */
#define EXPONENT_LIMIT 1000000 /* beyond any type; further digits of an exponent change nothing */

static double read_real(const char *text, bool is_float)
{
    return is_float ? (double)strtof(text, NULL) : strtod(text, NULL);
}

/* The number after e, as %e makes it: a sign and two or three digits. */
static int read_exponent(const char *p)
{
    bool negative = *p == '-';
    int value = 0;

    for (p += *p == '-' || *p == '+'; *p >= '0' && *p <= '9' && value < EXPONENT_LIMIT; p++)
        value = value * 10 + (*p - '0');
    return negative ? -value : value;
}

/* "d.ddde±x" as made by %e: digits without the point, and x. */
static void split_scientific(const char *text, char *digits, int *exponent)
{
    size_t count = 0;
    const char *p = text;

    for (; *p != '\0' && *p != 'e'; p++) {
        if (*p >= '0' && *p <= '9')
            digits[count++] = *p;
    }
    digits[count] = '\0';
    *exponent = *p == 'e' ? read_exponent(p + 1) : 0;
}

static int strip_zeros(char *digits)
{
    size_t count = strlen(digits);
    while (count > 1 && digits[count - 1] == '0')
        digits[--count] = '\0';
    return (int)count;
}

/* Adds one to the last digit; false where that would need another digit in front. */
static bool digits_increment(char *digits)
{
    for (size_t i = strlen(digits); i-- > 0;) {
        if (digits[i] != '9') {
            digits[i]++;
            return true;
        }
        digits[i] = '0';
    }
    return false;
}

int tarn_format__real_digits(double v, bool is_float, int least, char digits[32], int *exponent)
{
    char text[64];
    int most = is_float ? 9 : 17;

    v = fabs(v);
    for (int count = least; count < most; count++) {
        snprintf(text, sizeof text, "%.*e", count - 1, v);
        split_scientific(text, digits, exponent);
        if (read_real(text, is_float) == v)
            return strip_zeros(digits);
        /* At a power of two the gap below is half the gap above: the second nearest may do. */
        if (digits_increment(digits)) {
            snprintf(text, sizeof text, "%c.%se%d", digits[0], digits + 1, *exponent);
            if (read_real(text, is_float) == v)
                return strip_zeros(digits);
        }
    }
    snprintf(text, sizeof text, "%.*e", most - 1, v);
    split_scientific(text, digits, exponent);
    return strip_zeros(digits);
}

/* NaN, the infinities and the sign; true where digits are to follow. */
static bool print_special(double v, struct tarn_buf *out)
{
    if (isnan(v)) {
        tarn_buf_add_str(out, "NaN");
        return false;
    }
    if (signbit(v))
        tarn_buf_add_byte(out, '-');
    if (isinf(v)) {
        tarn_buf_add_str(out, "Infinity");
        return false;
    }
    return true;
}

/* Plain digits with the point where it belongs; whole numbers get no point. */
static void print_plain(const char *digits, int count, int exponent, struct tarn_buf *out)
{
    if (exponent < 0) {
        tarn_buf_add_str(out, "0.");
        for (int i = -1; i > exponent; i--)
            tarn_buf_add_byte(out, '0');
        tarn_buf_add(out, digits, (size_t)count);
        return;
    }
    for (int i = 0; i <= exponent || i < count; i++) {
        if (i == exponent + 1)
            tarn_buf_add_byte(out, '.');
        tarn_buf_add_byte(out, i < count ? (uint8_t)digits[i] : '0');
    }
}

void tarn_format__print_java_real(double v, bool is_float, struct tarn_buf *out)
{
    char digits[32];
    int exponent;

    if (!print_special(v, out))
        return;
    if (v == 0) {
        tarn_buf_add_str(out, "0.0");
        return;
    }
    /* Java takes the nearest of one or two digits where one would do: 4.9E-324. */
    int count = tarn_format__real_digits(v, is_float, 2, digits, &exponent);
    if (exponent >= -3 && exponent < 7) {
        print_plain(digits, count, exponent, out);
        if (count <= exponent + 1)
            tarn_buf_add_str(out, ".0");
        return;
    }
    tarn_buf_printf(out, "%c.%sE%d", digits[0], count > 1 ? digits + 1 : "0", exponent);
}

void tarn_format__print_real(double v, bool is_float, struct tarn_buf *out)
{
    char digits[32];
    int exponent;

    if (!print_special(v, out))
        return;
    if (v == 0) {
        tarn_buf_add_byte(out, '0');
        return;
    }
    int count = tarn_format__real_digits(v, is_float, 1, digits, &exponent);
    if (exponent >= -5 && exponent < 16) {
        print_plain(digits, count, exponent, out);
        return;
    }
    tarn_buf_add_byte(out, (uint8_t)digits[0]);
    if (count > 1)
        tarn_buf_printf(out, ".%s", digits + 1);
    tarn_buf_printf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
}

/* ---- exact numbers */

/* The digits around an optional point; false where there is none. */
static bool scan_digits(const uint8_t **p, const uint8_t *end, char *digits, size_t *count,
                        int64_t *point)
{
    bool seen = false;
    bool after_point = false;

    for (; *p < end; (*p)++) {
        uint8_t c = **p;
        if (c == '.' && !after_point) {
            after_point = true;
            continue;
        }
        if (c < '0' || c > '9')
            break;
        seen = true;
        if (after_point)
            (*point)--;
        if (*count > 0 || c != '0')
            digits[(*count)++] = (char)c;
    }
    return seen;
}

static bool scan_exponent(const uint8_t **p, const uint8_t *end, int64_t *exponent)
{
    bool negative = false;
    int64_t value = 0;

    if (*p == end || (**p != 'e' && **p != 'E'))
        return true;
    (*p)++;
    if (*p < end && (**p == '+' || **p == '-'))
        negative = *(*p)++ == '-';
    if (*p == end)
        return false;
    for (; *p < end; (*p)++) {
        if (**p < '0' || **p > '9')
            return false;
        if (value < EXPONENT_LIMIT)
            value = value * 10 + (**p - '0');
    }
    *exponent += negative ? -value : value;
    return true;
}

bool tarn_format__scan_number(struct tarn_slice text, struct tarn_arena *arena,
                              struct tarn_number *out)
{
    const uint8_t *p = text.data;
    const uint8_t *end = text.data + text.size;
    int64_t exponent = 0;
    size_t count = 0;
    bool negative = false;

    if (text.size == 0 || text.size > TARN_NUMBER_TEXT_MAX)
        return false;
    char *digits = tarn_arena_alloc(arena, text.size);
    if (*p == '+' || *p == '-')
        negative = *p++ == '-';
    if (!scan_digits(&p, end, digits, &count, &exponent) || !scan_exponent(&p, end, &exponent) ||
        p != end)
        return false;
    while (count > 0 && digits[count - 1] == '0') {
        count--;
        exponent++;
    }
    *out = (struct tarn_number){negative && count > 0, digits, count, count == 0 ? 0 : exponent};
    return true;
}

/* Compares 0.ddd * 10^exponent of two digit strings; trailing zeros do not matter. */
static int compare_magnitude(const char *a, size_t a_count, int64_t a_exponent, const char *b,
                             size_t b_count, int64_t b_exponent)
{
    if (a_count == 0 || b_count == 0)
        return (a_count > 0) - (b_count > 0);
    if (a_exponent != b_exponent)
        return a_exponent < b_exponent ? -1 : 1;
    for (size_t i = 0; i < a_count || i < b_count; i++) {
        char x = i < a_count ? a[i] : '0';
        char y = i < b_count ? b[i] : '0';
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

int tarn_format__number_compare(const struct tarn_number *a, const struct tarn_number *b)
{
    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    int c = compare_magnitude(a->digits, a->digit_count, a->exponent + (int64_t)a->digit_count,
                              b->digits, b->digit_count, b->exponent + (int64_t)b->digit_count);
    return a->negative ? -c : c;
}

enum tarn_fit tarn_format__number_to_integer(const struct tarn_number *n, int scale, __int128 low,
                                             __int128 high, __int128 *floor)
{
    int64_t shift = n->exponent + scale;
    int64_t whole_count = (int64_t)n->digit_count + shift; /* digits before the point */
    __int128 value = 0;

    if (n->digit_count > 0 && whole_count > 38)
        return n->negative ? TARN_FIT_BELOW : TARN_FIT_ABOVE;
    for (int64_t i = 0; n->digit_count > 0 && i < whole_count; i++)
        value = value * 10 + (i < (int64_t)n->digit_count ? n->digits[i] - '0' : 0);
    bool exact = shift >= 0 || n->digit_count == 0;
    if (n->negative)
        value = exact ? -value : -value - 1;
    if (value < low)
        return TARN_FIT_BELOW;
    if (value > high)
        return TARN_FIT_ABOVE;
    *floor = value;
    return exact ? TARN_FIT_EXACT : TARN_FIT_BETWEEN;
}

/* The sign of |v| - |n|, exactly; v finite. */
static int compare_real(double v, const struct tarn_number *n)
{
    char text[EXACT_DIGITS + 32], digits[EXACT_DIGITS + 32];
    int exponent;

    v = fabs(v);
    if (v == 0)
        return n->digit_count == 0 ? 0 : -1;
    snprintf(text, sizeof text, "%.*e", EXACT_DIGITS - 1, v);
    split_scientific(text, digits, &exponent);
    return compare_magnitude(digits, EXACT_DIGITS, (int64_t)exponent + 1, n->digits, n->digit_count,
                             n->exponent + (int64_t)n->digit_count);
}

/* Is n what v gives when rounded to as many digits as n has? */
static bool names_real(double v, const struct tarn_number *n)
{
    char text[EXACT_DIGITS + 32], digits[EXACT_DIGITS + 32];
    int exponent;

    if (v == 0 || isinf(v) || n->digit_count == 0 || n->digit_count >= EXACT_DIGITS)
        return false;
    snprintf(text, sizeof text, "%.*e", (int)n->digit_count - 1, fabs(v));
    split_scientific(text, digits, &exponent);
    return exponent + 1 == n->exponent + (int64_t)n->digit_count &&
           memcmp(digits, n->digits, n->digit_count) == 0;
}

enum tarn_fit tarn_format__number_to_real(const struct tarn_number *n, bool is_float, double *floor)
{
    char text[TARN_NUMBER_TEXT_MAX + 32];

    if (n->digit_count == 0) {
        *floor = 0.0;
        return TARN_FIT_EXACT;
    }
    snprintf(text, sizeof text, "%s%.*se%" PRId64, n->negative ? "-" : "", (int)n->digit_count,
             n->digits, n->exponent);
    double v = read_real(text, is_float);
    int c = isinf(v) ? 1 : compare_real(v, n);
    *floor = v;
    if (c == 0 || names_real(v, n))
        return TARN_FIT_EXACT;
    if ((n->negative ? -c : c) > 0) /* v lies above n: step down */
        *floor = is_float ? (double)nextafterf((float)v, -INFINITY) : nextafter(v, -INFINITY);
    return TARN_FIT_BETWEEN;
}

void tarn_format__type_range(const struct tarn_type *type, __int128 *low, __int128 *high)
{
    int bits = 64;
    switch (type->id) {
    case TARN_TYPE_DECIMAL: {
        __int128 limit = 1;
        for (int i = 0; i < type->precision && i < 38; i++)
            limit *= 10;
        *low = 1 - limit;
        *high = limit - 1;
        return;
    }
    case TARN_TYPE_BOOLEAN:
        *low = 0;
        *high = 1;
        return;
    case TARN_TYPE_TINYINT:
        bits = 8;
        break;
    case TARN_TYPE_SMALLINT:
        bits = 16;
        break;
    case TARN_TYPE_INT:
    case TARN_TYPE_DATE:
        bits = 32;
        break;
    case TARN_TYPE_TIME:
        *low = 0;
        *high = TARN_MS_PER_DAY - 1;
        return;
    default:
        break;
    }
    *high = ((__int128)1 << (bits - 1)) - 1;
    *low = -*high - 1;
}

void tarn_format__print_decimal(__int128 unscaled, int scale, struct tarn_buf *out)
{
    char digits[48];
    int count = 0;
    unsigned __int128 rest =
        unscaled < 0 ? -(unsigned __int128)unscaled : (unsigned __int128)unscaled;

    while (rest > 0 || count <= scale) { /* at least one digit before the point */
        if (count == (int)sizeof digits)
            break;
        digits[count++] = (char)('0' + (int)(rest % 10));
        rest /= 10;
    }
    if (unscaled < 0)
        tarn_buf_add_byte(out, '-');
    while (count > 0) {
        if (count == scale)
            tarn_buf_add_byte(out, '.');
        tarn_buf_add_byte(out, (uint8_t)digits[--count]);
    }
}
