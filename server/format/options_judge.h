/*
 * options_judge - the table of options, and what a table may not use to be written or read here; the
 * half of options.c that knows what isn't implemented.
 */
#ifndef TARN_FORMAT_OPTIONS_JUDGE_H
#define TARN_FORMAT_OPTIONS_JUDGE_H

#include "format/options.h"

/* The default of a key that options.def has; "" where there is none. */
const char *tarn_format__option_default(const char *key);
bool tarn_format__is_column_stats(struct tarn_slice key); /* fields.COLUMN.stats-mode */
/* fields.COLUMN.aggregate-function and its like, fields.default-aggregate-function; options_engine.c */
bool tarn_format__is_engine_option(struct tarn_slice key);
/* Rules, groups and what deletes do, of a table whose merge engine is known. */
TARN_MUST struct tarn_status *tarn_format__parse_engine(const struct tarn_schema *schema,
                                                        struct tarn_arena *arena,
                                                        struct tarn_options *o);
/* Java takes words of an enum without case, and _ for -. */
bool tarn_format__is_word(struct tarn_slice value, const char *word);
struct tarn_slice tarn_format__trim(struct tarn_slice s); /* without blanks around */
/* Notes why the table isn't written and, with merge, not read either; the first reason stays. */
void tarn_format__refuse(struct tarn_options *o, bool merge, const char *reason);
/* Notes why nothing is committed to the table; the first reason stays. */
void tarn_format__refuse_commit(struct tarn_options *o, const char *reason);
/* Notes formats that aren't written, and columns that the chosen ones don't hold; file_format.c. */
void tarn_format__judge_formats(const struct tarn_schema *schema, struct tarn_arena *arena,
                                struct tarn_options *o);
/* The indexes that file-index.TYPE.columns asks for; notes those that aren't written. options_index.c */
void tarn_format__parse_indexes(const struct tarn_schema *schema, struct tarn_arena *arena,
                                struct tarn_options *o);
/* Is a partition column no part of the primary key, so that a key may move between partitions? */
bool tarn_format__crosses_partitions(const struct tarn_schema *schema);
/* Sets refuse_write, refuse_merge and refuse_commit of options that are parsed otherwise. */
void tarn_format__judge(const struct tarn_schema *schema, struct tarn_arena *arena,
                        struct tarn_options *o);

/* What a schema must keep when it is made, beside what tarn_options_parse asks of any; options_rules.c. SCHEMA_INVALID. */
TARN_MUST struct tarn_status *tarn_format__check_rules(const struct tarn_schema *schema,
                                                       const struct tarn_options *options);

#endif
