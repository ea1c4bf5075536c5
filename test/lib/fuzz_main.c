/*
 * Runs a fuzz target over files and folders without libFuzzer: in `make check` every seed, and every
 * input that ever crashed, is a case for each build we make. With no arguments: the golden files
 * and the target's own corpus.
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifndef TARN_TEST_ROOT
#define TARN_TEST_ROOT "."
#endif

#define FILE_SIZE_MAX (16 << 20) /* larger seeds are left to the tests that know them */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t input_count;

static int run_file(const char *path, const struct stat *info, int type,
                    struct FTW *where __attribute__((unused)))
{
    if (type != FTW_F || info->st_size > FILE_SIZE_MAX)
        return 0;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return 0;
    size_t size = (size_t)info->st_size;
    uint8_t *data = malloc(size == 0 ? 1 : size); /* exact, so that ASan sees a read past the end */
    if (data != NULL && fread(data, 1, size, file) == size) {
        fprintf(stderr, "input %s\n", path);
        LLVMFuzzerTestOneInput(data, size);
        input_count++;
    }
    free(data);
    fclose(file);
    return 0;
}

/* build/test/fuzz/avro_fuzz -> test/fuzz/corpus/avro */
static void run_own_corpus(const char *program)
{
    char path[4096];
    const char *base = strrchr(program, '/');
    size_t length;

    base = base == NULL ? program : base + 1;
    length = strlen(base);
    if (length > 5 && strcmp(base + length - 5, "_fuzz") == 0)
        length -= 5;
    snprintf(path, sizeof path, "%s/test/fuzz/corpus/%.*s", TARN_TEST_ROOT, (int)length, base);
    nftw(path, run_file, 16, FTW_PHYS);
}

int main(int argc, char **argv)
{
    static const uint8_t nothing[1];

    LLVMFuzzerTestOneInput(nothing, 0);
    for (int i = 1; i < argc; i++)
        nftw(argv[i], run_file, 16, FTW_PHYS);
    if (argc == 1) {
        nftw(TARN_TEST_ROOT "/test/golden", run_file, 16, FTW_PHYS);
        run_own_corpus(argv[0]);
    }
    printf("%zu inputs\n1 passed, 0 failed, 0 skipped\n", input_count + 1);
    return 0;
}
