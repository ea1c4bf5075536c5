#include "maintain/maintain.h"

/* Whose the maintenance of a table is: docs/decisions/015-write-only-where-the-daemon-has-all.md. */

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
    {"changelog.time-retained", NULL, "has changelogs that outlive their snapshots"},
    {"changelog.num-retained.max", NULL, "has changelogs that outlive their snapshots"},
    {"changelog.num-retained.min", NULL, "has changelogs that outlive their snapshots"},
};

/* NULL: for nothing. */
static const char *find_asked(const struct tarn_schema *schema)
{
    for (size_t i = 0; i < TARN_COUNT_OF(asked); i++) {
        struct tarn_slice value = tarn_schema_option(schema, asked[i].option);
        if (value.data != NULL && (asked[i].off == NULL || !tarn_slice_is(value, asked[i].off)))
            return asked[i].what;
    }
    return NULL;
}

const char *tarn_maintain_lacks(const struct tarn_schema *schema,
                                const struct tarn_options *options)
{
    if (options->refuse_merge.data != NULL || options->refuse_write.data != NULL)
        return "isn't compacted by this version";
    return find_asked(schema);
}

bool tarn_maintain_is_waited_for(const struct tarn_schema *schema,
                                 const struct tarn_options *options)
{
    return !tarn_schema_is_append(schema) &&
           (options->deletion_vectors || options->merge_engine == TARN_MERGE_FIRST_ROW ||
            options->changelog_producer == TARN_CHANGELOG_LOOKUP ||
            (options->changelog_producer == TARN_CHANGELOG_FULL_COMPACTION &&
             options->full_compaction_commits == 1)); /* else options say when */
}

bool tarn_maintain_expires(const struct tarn_schema *schema, const struct tarn_options *options)
{
    if (options->write_only)
        return options->refuse_commit.data == NULL;
    return options->refuse_merge.data == NULL && options->refuse_write.data == NULL &&
           !tarn_maintain_is_of_writers(schema, options);
}

bool tarn_maintain_is_of_writers(const struct tarn_schema *schema,
                                 const struct tarn_options *options)
{
    if (options->write_only)
        return false;
    return tarn_schema_option(schema, "write-only").data != NULL || find_asked(schema) != NULL;
}
