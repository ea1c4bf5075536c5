/*
 * Promise: the daemon has a table's whole maintenance only where it does all that Paimon's writers would do; a table whose options ask for
 * what it doesn't do, or that isn't write-only on purpose, is left to its writers; one that is write-only never is.
 */
#include "maintain/maintain.h"
#include "test/lib/test.h"

#define S(text) tarn_slice_str(text)
#define KEEP_ALL "2147483647"

struct rule {
    const char *options[4]; /* key, value, ... */
    const char *lacks;      /* part of what is lacking; NULL: nothing */
    bool of_writers;
};

static void judge(struct tarn_test *t, const struct rule *rule)
{
    struct tarn_pair pairs[3] = {{S("bucket"), S("1")}};
    struct tarn_schema draft = {.options = pairs, .option_count = 1}, schema;
    struct tarn_options options;
    struct tarn_slice key = S("id");
    for (size_t i = 0; i + 1 < 4 && rule->options[i] != NULL; i += 2)
        pairs[draft.option_count++] =
            (struct tarn_pair){S(rule->options[i]), S(rule->options[i + 1])};
    draft.primary_keys = &key;
    draft.primary_key_count = 1;
    expect_ok(
        tarn_columns_parse(S("id BIGINT NOT NULL"), t->arena, &draft.fields, &draft.field_count));
    expect_ok(tarn_schema_create(&draft, 0, t->arena, &schema));
    expect_ok(tarn_options_parse(&schema, t->arena, &options));
    const char *lacks = tarn_maintain_lacks(&schema, &options);
    if (rule->lacks == NULL)
        expect_null(lacks);
    else
        expect_contains(lacks == NULL ? "nothing" : lacks, rule->lacks);
    expect_int(tarn_maintain_is_of_writers(&schema, &options), rule->of_writers);
}

TARN_TEST(whose, is_said_by_the_options)
{
    static const struct rule rules[] = {
        /* Paimon's default: writers expire snapshots. Nobody asked for that, so the daemon compacts. */
        {{NULL}, "snapshots", false},
        {{"snapshot.num-retained.min", KEEP_ALL}, NULL, false},
        {{"snapshot.num-retained.min", "20"}, "snapshots", true},
        {{"snapshot.time-retained", "1 d"}, "snapshots", true},
        {{"snapshot.num-retained.max", "100"}, "snapshots", true},
        {{"snapshot.num-retained.min", KEEP_ALL, "snapshot.time-retained", "1 d"}, NULL, false},
        {{"snapshot.num-retained.min", KEEP_ALL, "tag.automatic-creation", "none"}, NULL, false},
        {{"snapshot.num-retained.min", KEEP_ALL, "tag.automatic-creation", "process-time"},
         "tags",
         true},
        {{"snapshot.num-retained.min", KEEP_ALL, "partition.expiration-time", "1 d"},
         "partitions",
         true},
        {{"snapshot.num-retained.min", KEEP_ALL, "consumer.expiration-time", "1 d"},
         "consumers",
         true},
        {{"snapshot.num-retained.min", KEEP_ALL, "merge-engine", "aggregation"},
         "isn't compacted",
         false},
        {{"write-only", "true"}, "snapshots", false},
        {{"write-only", "true", "snapshot.time-retained", "1 d"}, "snapshots", false},
        {{"write-only", "false"}, "snapshots", true},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(rules); i++)
        judge(t, &rules[i]);
}
