/* The running of tests: registration, the fixture, expectations, the closing line. */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef TARN_TEST_ROOT
#define TARN_TEST_ROOT "."
#endif

static struct tarn_test_entry *entries;
static size_t skipped_count;
static uint64_t seed;

void tarn_test_register(struct tarn_test_entry *entry)
{
    entry->next = entries;
    entries = entry;
}

/* --- expectations --- */

__attribute__((noreturn)) static void end_failed(const char *file, int line)
{
    _fail(file, line); /* longjmps */
    abort();
}

void tarn_test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("    ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    end_failed(file, line);
}

void tarn_expect_true(bool holds, const char *what, const char *file, int line)
{
    if (!holds)
        tarn_test_fail(file, line, "does not hold: %s", what);
}

void tarn_expect_ok(struct tarn_status *consumed, const char *what, const char *file, int line)
{
    if (consumed == NULL)
        return;
    fprintf(stderr, "    %s\n    failed: %s: %s\n", what,
            tarn_reason_name(tarn_status_reason(consumed)), tarn_status_message(consumed));
    tarn_status_free(consumed);
    end_failed(file, line);
}

void tarn_expect_status(struct tarn_status *consumed, enum tarn_reason reason, const char *part,
                        const char *file, int line)
{
    enum tarn_reason got = tarn_status_reason(consumed);
    bool found = part == NULL || strstr(tarn_status_message(consumed), part) != NULL;

    if (got == reason && found) {
        tarn_status_free(consumed);
        return;
    }
    fprintf(stderr, "    expected %s with \"%s\", got %s: %s\n", tarn_reason_name(reason),
            part == NULL ? "" : part, consumed == NULL ? "success" : tarn_reason_name(got),
            tarn_status_message(consumed));
    tarn_status_free(consumed);
    end_failed(file, line);
}

void tarn_expect_int(int64_t got, int64_t want, const char *what, const char *file, int line)
{
    if (got != want)
        tarn_test_fail(file, line, "%s is %" PRId64 ", expected %" PRId64, what, got, want);
}

void tarn_expect_uint(uint64_t got, uint64_t want, const char *what, const char *file, int line)
{
    if (got != want)
        tarn_test_fail(file, line,
                       "%s is %" PRIu64 " (0x%" PRIx64 "), expected %" PRIu64 " (0x%" PRIx64 ")",
                       what, got, got, want, want);
}

/* Bitwise, but any NaN equals any other. */
void tarn_expect_double(double got, double want, const char *what, const char *file, int line)
{
    bool same = isnan(want) ? isnan(got) : memcmp(&got, &want, sizeof got) == 0;
    if (!same)
        tarn_test_fail(file, line, "%s is %.17g, expected %.17g", what, got, want);
}

void tarn_expect_str(const char *got, const char *want, const char *what, const char *file,
                     int line)
{
    if (got == want || (got != NULL && want != NULL && strcmp(got, want) == 0))
        return;
    tarn_test_fail(file, line, "%s is\n      \"%s\"\n    expected\n      \"%s\"", what,
                   got == NULL ? "(NULL)" : got, want == NULL ? "(NULL)" : want);
}

void tarn_expect_contains(const char *got, const char *part, const char *what, const char *file,
                          int line)
{
    if (got == NULL || strstr(got, part) == NULL)
        tarn_test_fail(file, line, "%s lacks \"%s\":\n      \"%s\"", what, part,
                       got == NULL ? "(NULL)" : got);
}

/* Sixteen bytes around the first difference: enough to see it in a golden file. */
static void print_window(const char *label, struct tarn_slice s, size_t at)
{
    size_t from = at < 8 ? 0 : at - 8;
    fprintf(stderr, "      %s [%zu..]:", label, from);
    for (size_t i = from; i < s.size && i < from + 16; i++)
        fprintf(stderr, i == at ? " [%02x]" : " %02x", s.data[i]);
    fputs("  ", stderr);
    for (size_t i = from; i < s.size && i < from + 16; i++)
        fputc(s.data[i] >= 32 && s.data[i] < 127 ? s.data[i] : '.', stderr);
    fputc('\n', stderr);
}

void tarn_expect_slice(struct tarn_slice got, struct tarn_slice want, const char *what,
                       const char *file, int line)
{
    size_t at = 0;

    if (tarn_slice_equal(got, want))
        return;
    while (at < got.size && at < want.size && got.data[at] == want.data[at])
        at++;
    fprintf(stderr, "    %s: %zu bytes, expected %zu; first difference at %zu\n", what, got.size,
            want.size, at);
    print_window("got ", got, at);
    print_window("want", want, at);
    end_failed(file, line);
}

void tarn_test_skip_at(struct tarn_test *t, const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "SKIPPED %s: ", t->name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    skipped_count++;
    _skip(file, line);
}

/* --- files --- */

static const char *source_root(void)
{
    const char *root = getenv("TARN_SOURCE");
    return root != NULL && root[0] != '\0' ? root : TARN_TEST_ROOT;
}

const char *tarn_test_path(struct tarn_test *t, const char *name)
{
    return tarn_arena_printf(t->arena, "%s/test/%s", source_root(), name);
}

void tarn_test_read_file(const char *path, struct tarn_buf *out)
{
    char block[16384];
    size_t got;
    FILE *file = fopen(path, "rb");

    if (file == NULL)
        tarn_test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
    tarn_buf_clear(out);
    while ((got = fread(block, 1, sizeof block, file)) > 0)
        tarn_buf_add(out, block, got);
    bool failed = ferror(file) != 0;
    fclose(file);
    if (failed)
        tarn_test_fail(__FILE__, __LINE__, "%s: cannot be read", path);
}

void tarn_test_write_file(const char *path, struct tarn_slice body)
{
    FILE *file = fopen(path, "wb");

    if (file == NULL)
        tarn_test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
    bool whole = body.size == 0 || fwrite(body.data, 1, body.size, file) == body.size;
    if (fclose(file) != 0 || !whole)
        tarn_test_fail(__FILE__, __LINE__, "%s: cannot be written", path);
}

void tarn_test_golden(const char *name, struct tarn_buf *out)
{
    char *path = tarn_format("%s/test/golden/%s", source_root(), name);
    tarn_test_read_file(path, out);
    free(path);
}

bool tarn_test_has_golden(const char *name)
{
    char *path = tarn_format("%s/test/golden/%s", source_root(), name);
    bool there = access(path, R_OK) == 0;
    free(path);
    return there;
}

const char *tarn_test_dir(struct tarn_test *t)
{
    const char *parent = getenv("TMPDIR");
    char *path = tarn_format("%s/tarn-test-XXXXXX", parent == NULL ? "/tmp" : parent);

    if (mkdtemp(path) == NULL)
        tarn_test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
    TARN_GROW(t->dirs, t->dir_count, t->dir_capacity);
    t->dirs[t->dir_count++] = path;
    return path;
}

static int remove_entry(const char *path, const struct stat *info TARN_UNUSED, int type TARN_UNUSED,
                        struct FTW *where TARN_UNUSED)
{
    return remove(path);
}

static int open_folder(const char *path, const struct stat *info TARN_UNUSED, int type,
                       struct FTW *where TARN_UNUSED)
{
    if (type == FTW_D || type == FTW_DNR)
        chmod(path, 0700); /* tests of permissions close folders */
    return 0;
}

static void remove_dirs(struct tarn_test *t)
{
    bool keep = getenv("TARN_KEEP") != NULL;

    for (size_t i = 0; i < t->dir_count; i++) {
        if (keep) {
            fprintf(stderr, "kept %s\n", t->dirs[i]);
        } else {
            nftw(t->dirs[i], open_folder, 16, FTW_PHYS);
            nftw(t->dirs[i], remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        }
        free(t->dirs[i]);
    }
    free(t->dirs);
}

/* --- numbers --- */

uint64_t tarn_test_seed(void)
{
    return seed;
}

/* splitmix64: small, and any state is a good one. */
uint64_t tarn_test_random(struct tarn_test *t)
{
    uint64_t z = (t->random_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t tarn_test_random_below(struct tarn_test *t, uint64_t bound)
{
    tarn_assert(bound > 0);
    return tarn_test_random(t) % bound;
}

int64_t tarn_test_random_between(struct tarn_test *t, int64_t low, int64_t high)
{
    uint64_t span = (uint64_t)high - (uint64_t)low + 1; /* 0: all of 64 bits */
    uint64_t offset = span == 0 ? tarn_test_random(t) : tarn_test_random(t) % span;
    return (int64_t)((uint64_t)low + offset);
}

bool tarn_test_random_one_in(struct tarn_test *t, uint64_t n)
{
    return tarn_test_random_below(t, n) == 0;
}

struct tarn_slice tarn_test_random_bytes(struct tarn_test *t, size_t size)
{
    uint8_t *bytes = tarn_arena_alloc(t->arena, size == 0 ? 1 : size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)tarn_test_random(t);
    return tarn_slice_of(bytes, size);
}

int tarn_test_rounds(int usual)
{
    const char *effort = getenv("TARN_EFFORT");
    int times = effort == NULL ? 1 : atoi(effort);
    return times > 1 ? usual * times : usual;
}

/* --- running --- */

static uint64_t name_hash(const char *name)
{
    uint64_t h = 1469598103934665603u; /* FNV-1a */
    for (; *name != '\0'; name++)
        h = (h ^ (uint8_t)*name) * 1099511628211u;
    return h;
}

static int set_up(void **state)
{
    const struct tarn_test_entry *entry = *state;
    struct tarn_test *t = calloc(1, sizeof *t);

    if (t == NULL)
        return -1;
    t->entry = entry;
    t->name = entry->name;
    t->random_state = seed ^ name_hash(entry->name);
    tarn_op_init(&t->op_storage);
    t->op = &t->op_storage;
    t->arena = t->op->arena;
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct tarn_test *t = *state;

    tarn_clock_fake(-1);
    remove_dirs(t);
    tarn_op_fini(t->op);
    free(t);
    *state = NULL;
    return 0;
}

static void run_entry(void **state)
{
    struct tarn_test *t = *state;
    t->entry->run(t);
}

static int by_line(const void *a, const void *b)
{
    const struct tarn_test_entry *left = *(const struct tarn_test_entry *const *)a;
    const struct tarn_test_entry *right = *(const struct tarn_test_entry *const *)b;
    return left->line - right->line;
}

/* The tests whose name matches, in the order of the file. *order is the caller's to free. */
static size_t choose_tests(const char *pattern, const struct tarn_test_entry ***out)
{
    const struct tarn_test_entry **order = NULL;
    size_t count = 0;
    size_t capacity = 0;

    for (struct tarn_test_entry *e = entries; e != NULL; e = e->next) {
        if (pattern != NULL && fnmatch(pattern, e->name, 0) != 0)
            continue;
        TARN_GROW(order, count, capacity);
        order[count++] = e;
    }
    if (count > 1)
        qsort(order, count, sizeof *order, by_line);
    *out = order;
    return count;
}

static void choose_seed(void)
{
    const char *text = getenv("TARN_SEED");
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    seed = text != NULL && text[0] != '\0'
               ? strtoull(text, NULL, 0)
               : (uint64_t)now.tv_sec * 1000003u ^ (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
    bool list = argc > 1 && strcmp(argv[1], "-l") == 0;
    const struct tarn_test_entry **order;
    size_t count = choose_tests(argc > 1 && !list ? argv[1] : NULL, &order);

    choose_seed();
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (list) {
        for (size_t i = 0; i < count; i++)
            puts(order[i]->name);
        return 0;
    }
    struct CMUnitTest *tests = tarn_calloc(count + 1, sizeof *tests);
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){order[i]->name, run_entry, set_up, tear_down,
                                       (void *)(uintptr_t)order[i]};
    size_t failed =
        count == 0 ? 0 : (size_t)_cmocka_run_group_tests(argv[0], tests, count, NULL, NULL);
    if (failed > 0)
        fprintf(stderr, "to see the same random numbers: TARN_SEED=%" PRIu64 "\n", seed);
    free(tests);
    free(order);
    printf("%zu passed, %zu failed, %zu skipped\n", count - failed - skipped_count, failed,
           skipped_count);
    return failed == 0 ? 0 : 1;
}
