/*
 * Sections hold exactly the files that overlap, directly or through others; runs of a section are as
 * few as can be and none of their files overlap; age of files is a fixed order.
 */
#include "test.h"

#include "merge/internal.h"

static const struct tarn_type int_type = {.id = TARN_TYPE_INT};
static const struct tarn_type *const key_types[] = {&int_type};

static struct tarn_slice key_row(struct tarn_test *t, int64_t key)
{
    struct tarn_buf row = {0};
    struct tarn_value value = {.integer = key};
    tarn_row_serialize(key_types, &value, 1, &row);
    struct tarn_slice out = tarn_arena_copy(t->arena, tarn_buf_slice(&row));
    tarn_buf_drop(&row);
    return out;
}

static struct tarn_manifest_entry file(struct tarn_test *t, const char *name, int64_t min,
                                       int64_t max)
{
    return (struct tarn_manifest_entry){.file = {.name = tarn_slice_str(name),
                                                 .min_key = key_row(t, min),
                                                 .max_key = key_row(t, max)}};
}

static int64_t key_of(struct tarn_slice row)
{
    struct tarn_value value;
    expect_ok(tarn_row_deserialize(row, key_types, 1, &value));
    return value.integer;
}

TARN_TEST(section, separates_what_does_not_overlap)
{
    struct tarn_manifest_entry files[] = {
        file(t, "c", 10, 12), file(t, "a", 1, 5),   file(t, "b", 5, 8),
        file(t, "d", 12, 20), file(t, "e", 13, 14),
    };
    struct tarn_merge_section *sections;
    size_t count;

    expect_ok(tarn_merge__sections(key_types, 1, files, 5, t->arena, &sections, &count));
    expect_int(count, 2);
    expect_int(sections[0].run_count, 2); /* 5 is in both a and b */
    expect_slice(sections[0].runs[0].files[0]->file.name, "a");
    expect_slice(sections[0].runs[1].files[0]->file.name, "b");
    expect_int(sections[1].run_count, 2); /* c then e; d */
    expect_int(sections[1].runs[0].file_count, 2);
    expect_slice(sections[1].runs[0].files[0]->file.name, "c");
    expect_slice(sections[1].runs[0].files[1]->file.name, "e");
    expect_slice(sections[1].runs[1].files[0]->file.name, "d");
}

TARN_TEST(section, none_of_none)
{
    struct tarn_merge_section *sections;
    size_t count = 7;
    expect_ok(tarn_merge__sections(key_types, 1, NULL, 0, t->arena, &sections, &count));
    expect_int(count, 0);
}

TARN_TEST(section, names_the_file_with_a_broken_bound)
{
    struct tarn_manifest_entry files[] = {file(t, "good", 1, 2), file(t, "bad", 3, 4)};
    struct tarn_merge_section *sections;
    size_t count;

    files[1].file.max_key.size--;
    expect_status(tarn_merge__sections(key_types, 1, files, 2, t->arena, &sections, &count),
                  TARN_ROW_MALFORMED, "bad");
    files[1] = file(t, "bad", 4, 3);
    expect_status(tarn_merge__sections(key_types, 1, files, 2, t->arena, &sections, &count),
                  TARN_ROW_MALFORMED, "bad");
}

TARN_TEST(section, runs_are_as_few_as_the_deepest_overlap)
{
    for (int round = 0; round < tarn_test_rounds(300); round++) {
        struct tarn_manifest_entry files[30];
        struct tarn_merge_section *sections;
        size_t n = 1 + tarn_test_random_below(t, 30), count, seen = 0;
        int64_t last_max = INT64_MIN;

        for (size_t i = 0; i < n; i++) {
            int64_t min = (int64_t)tarn_test_random_below(t, 100);
            files[i] = file(t, tarn_arena_printf(t->arena, "f%zu", i), min,
                            min + (int64_t)tarn_test_random_below(t, 10));
        }
        expect_ok(tarn_merge__sections(key_types, 1, files, n, t->arena, &sections, &count));
        for (size_t s = 0; s < count; s++) {
            int64_t section_min = INT64_MAX, section_max = INT64_MIN;
            size_t deepest = 0;
            for (size_t r = 0; r < sections[s].run_count; r++) {
                struct tarn_merge_run *run = &sections[s].runs[r];
                for (size_t f = 0; f < run->file_count; f++, seen++) {
                    int64_t min = key_of(run->files[f]->file.min_key),
                            max = key_of(run->files[f]->file.max_key);
                    if (f > 0)
                        expect_true(key_of(run->files[f - 1]->file.max_key) < min);
                    section_min = TARN_MIN(section_min, min);
                    section_max = TARN_MAX(section_max, max);
                }
            }
            for (int64_t k = section_min; k <= section_max; k++) {
                size_t depth = 0;
                for (size_t i = 0; i < n; i++)
                    depth +=
                        key_of(files[i].file.min_key) <= k && k <= key_of(files[i].file.max_key);
                expect_true(depth > 0); /* else it were two sections */
                deepest = TARN_MAX(deepest, depth);
            }
            expect_int(sections[s].run_count, deepest);
            expect_true(section_min > last_max);
            last_max = section_max;
        }
        expect_int(seen, n);
    }
}

TARN_TEST(section, the_lower_level_is_newer_then_sequence_then_time)
{
    struct tarn_manifest_entry a = file(t, "a", 1, 1), b = file(t, "b", 1, 1);

    expect_true(tarn_merge__file_age_compare(&a, &b) < 0); /* at last the name */
    a.file.creation_time_ms = 1;
    expect_true(tarn_merge__file_age_compare(&a, &b) > 0);
    b.file.max_sequence = 1;
    expect_true(tarn_merge__file_age_compare(&a, &b) < 0);
    b.file.level = 1;
    expect_true(tarn_merge__file_age_compare(&a, &b) > 0);
    a.file.level = 2; /* known-traps K23 */
    expect_true(tarn_merge__file_age_compare(&a, &b) < 0);
}
