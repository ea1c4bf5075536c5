#include "maintain/maintain.h"

/* Whose the maintenance of a table is: docs/decisions/015-write-only-where-the-daemon-has-all.md. */

#define KEEP_ALL "2147483647" /* snapshot.num-retained.min: none ever expires */

/* What writers of a table do beside compaction unless it is write-only, and the daemon doesn't yet. A table asks for it by an option that
 * has another value than the one that switches it off. */
static const struct {
    const char *option, *off, *what;
} asked[] = {
    {"tag.automatic-creation", "none", "makes tags by itself"},
    {"tag.default-time-retained", NULL, "has tags that expire"},
    {"tag.num-retained-max", NULL, "has tags that expire"},
    {"partition.expiration-time", NULL, "has partitions that expire"},
    {"consumer.expiration-time", NULL, "has consumers that expire"},
    {"snapshot.time-retained", NULL, "has snapshots that expire"},
    {"snapshot.num-retained.max", NULL, "has snapshots that expire"},
    {"snapshot.num-retained.min", KEEP_ALL, "has snapshots that expire"},
};

static bool keeps_all(const struct tarn_schema *schema)
{
    return tarn_slice_is(tarn_schema_option(schema, "snapshot.num-retained.min"), KEEP_ALL);
}

/* NULL: for nothing. */
static const char *find_asked(const struct tarn_schema *schema)
{
    for (size_t i = 0; i < TARN_COUNT_OF(asked); i++) {
        struct tarn_slice value = tarn_schema_option(schema, asked[i].option);
        bool off = value.data == NULL ||
                   (asked[i].off != NULL && tarn_slice_is(value, asked[i].off)) ||
                   (keeps_all(schema) && strncmp(asked[i].option, "snapshot.", 9) == 0);
        if (!off)
            return asked[i].what;
    }
    return NULL;
}

const char *tarn_maintain_lacks(const struct tarn_schema *schema,
                                const struct tarn_options *options)
{
    if (options->refuse_merge.data != NULL || options->refuse_write.data != NULL)
        return "isn't compacted by this version";
    const char *what = find_asked(schema);
    /* Paimon's default: writers expire what is older than an hour. */
    return what == NULL && !keeps_all(schema) ? "has snapshots that expire" : what;
}

bool tarn_maintain_is_of_writers(const struct tarn_schema *schema,
                                 const struct tarn_options *options)
{
    if (options->write_only)
        return false;
    return tarn_schema_option(schema, "write-only").data != NULL || find_asked(schema) != NULL;
}
