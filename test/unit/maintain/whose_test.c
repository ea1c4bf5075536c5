/*
 * Promise: the daemon has a table's whole maintenance only where it does all that Paimon's writers would do; a table whose options ask for
 * what it doesn't do, or that isn't write-only on purpose, is left to its writers; one that is write-only never is.
 */
#include "maintain/maintain.h"
#include "test/lib/test.h"

#define S(text) tarn_slice_str(text)

struct rule {
    const char *options[4]; /* key, value, ... */
    const char *lacks;      /* part of what is lacking; NULL: nothing */
    bool of_writers;
    bool expires; /* its snapshots, by themselves */
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
    expect_int(tarn_maintain_expires(&schema, &options), rule->expires);
}

TARN_TEST(whose, is_said_by_the_options)
{
    static const struct rule rules[] = {
        {{NULL}, NULL, false, true},
        {{"snapshot.num-retained.min", "20", "snapshot.time-retained", "1 d"}, NULL, false, true},
        {{"tag.automatic-creation", "none"}, NULL, false, true},
        {{"tag.automatic-creation", "process-time"}, "tags", true, false},
        {{"partition.expiration-time", "1 d"}, "partitions", true, false},
        {{"consumer.expiration-time", "1 d"}, "consumers", true, false},
        {{"changelog.time-retained", "1 d"}, "changelogs", true, false},
        {{"record-level.expire-time", "1 d"}, "isn't compacted", false, false},
        {{"write-only", "true"}, NULL, false, true},
        {{"write-only", "true", "partition.expiration-time", "1 d"}, "partitions", false, true},
        {{"write-only", "true", "record-level.expire-time", "1 d"}, "isn't compacted", false, true},
        {{"write-only", "false"}, NULL, true, false},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(rules); i++)
        judge(t, &rules[i]);
}
