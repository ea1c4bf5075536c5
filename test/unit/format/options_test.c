/*
 * Options: defaults are Paimon's, values are understood as Java understands them, whatever would change
 * rows and isn't implemented is refused by name, and nothing else is.
 */
#include "test.h"

#include "format/options.h"

/* A table with the given columns, primary key ("" none) and one option. */
static struct tarn_schema table(struct tarn_test *t, const char *columns, const char *key,
                                const char *option, const char *value)
{
    struct tarn_schema s = {.version = 3};
    struct tarn_slice *primary = tarn_arena_calloc(t->arena, 1, sizeof *primary);
    struct tarn_pair *pairs = tarn_arena_calloc(t->arena, 2, sizeof *pairs);
    expect_ok(tarn_columns_parse(tarn_slice_str(columns), t->arena, &s.fields, &s.field_count));
    *primary = tarn_slice_str(key);
    s.primary_keys = primary;
    s.primary_key_count = key[0] != 0;
    s.options = pairs;
    if (key[0] != 0 && (option == NULL || strcmp(option, "bucket") != 0))
        pairs[s.option_count++] = (struct tarn_pair){tarn_slice_str("bucket"), tarn_slice_str("1")};
    if (option != NULL)
        pairs[s.option_count++] = (struct tarn_pair){tarn_slice_str(option), tarn_slice_str(value)};
    return s;
}

static struct tarn_options parse(struct tarn_test *t, const struct tarn_schema *s)
{
    struct tarn_options o = {0};
    expect_ok(tarn_options_parse(s, t->arena, &o));
    return o;
}

#define COLUMNS "k INT NOT NULL, v STRING, s INT"

static struct tarn_options with(struct tarn_test *t, const char *option, const char *value)
{
    struct tarn_schema s = table(t, COLUMNS, "k", option, value);
    return parse(t, &s);
}

TARN_TEST(options, defaults)
{
    struct tarn_options o = with(t, NULL, NULL);
    expect_null(o.refuse_write.data);
    expect_null(o.refuse_merge.data);
    expect_int(o.bucket, 1);
    expect_int(o.bucket_key_count, 1);
    expect_int(o.target_file_size, 128 << 20);
    expect_int(o.target_file_row_count, INT64_MAX);
    expect_int(o.write_buffer_size, 256 << 20);
    expect_int(o.run_trigger, 5);
    expect_int(o.run_stop_trigger, 8);
    expect_int(o.level_count, 6);
    expect_int(o.stats_mode, TARN_STATS_TRUNCATE);
    expect_int(o.stats_length, 16);
    expect_int(o.manifest_target_size, 8 << 20);
    expect_int(o.rowkind_column, -1);
    expect_int(o.optimization_interval_ms, -1);
    expect_int(o.total_size_threshold, -1);
    expect_true(o.partition_legacy_name);
    expect_slice(o.file_format, "parquet");
    expect_slice(o.data_file_prefix, "data-");
    expect_null(o.data_dir.data);
    struct tarn_schema append = table(t, COLUMNS, "", NULL, NULL);
    o = parse(t, &append);
    expect_int(o.bucket, -1);
    expect_int(o.target_file_size, 256 << 20);
    expect_null(o.refuse_write.data);
}

TARN_TEST(options, values_as_java_takes_them)
{
    expect_int(with(t, "target-file-size", "1 kb").target_file_size, 1024);
    expect_int(with(t, "sequence.field.sort-order", "DESCENDING").sequence_descending, 1);
    expect_int(with(t, "sequence.field", "s").sequence_columns[0], 2);
    expect_int(with(t, "compaction.optimization-interval", "1 min").optimization_interval_ms,
               60000);
    expect_int(with(t, "deduplicate.ignore-delete", "TRUE").ignore_delete, 1);
    expect_int(with(t, "rowkind.field", "v").rowkind_column, 1);
    expect_int(with(t, "metadata.stats-mode", "Truncate(8)").stats_length, 8);
    expect_slice(with(t, "data-file.path-directory", "a/b/").data_dir, "a/b");
    expect_slice(with(t, "manifest.compression", "lz4").manifest_compression, "zstd");
    expect_slice(with(t, "manifest.compression", "snappy").manifest_compression, "zstd");
    expect_int(with(t, "data-file.prefix", "").data_file_prefix.size, 0);
    expect_int(with(t, "tarn.group-commit", "all").group_commit, TARN_GROUP_ALL);
    expect_int(with(t, "write.compaction-skip", "true").write_only, 1);
    expect_int(with(t, "num-sorted-run.compaction-trigger", "3").level_count, 4);
}

TARN_TEST(options, bad_values_are_named)
{
    static const char *const bad[][2] = {
        {"bucket", "many"},
        {"bucket", "-3"},
        {"ignore-delete", "yes"},
        {"sequence.field", "k,k"},
        {"sequence.field", ""},
        {"rowkind.field", "s"},
        {"metadata.stats-mode", "truncate(0)"},
        {"fields.v.stats-mode", "some"},
        {"data-file.path-directory", "../x"},
        {"data-file.path-directory", "/x"},
        {"data-file.prefix", "a/b"},
        {"target-file-size", "-1"},
        {"compaction.small-file-ratio", "2"},
        {"bucket-function.type", "crc"},
        {"tarn.sequence-overlap", "maybe"},
        {"compaction.offpeak.start.hour", "24"},
        {"manifest.target-file-size", "9999999999999 tb"},
        {"bucket-key", "s"},
        {"bucket-key", "x"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        struct tarn_schema s = table(t, COLUMNS, "k", bad[i][0], bad[i][1]);
        struct tarn_options o;
        const char *name = strncmp(bad[i][0], "fields.", 7) == 0 ? "stats-mode" : bad[i][0];
        expect_status(tarn_options_parse(&s, t->arena, &o), TARN_SCHEMA_INVALID, name);
    }
}

TARN_TEST(options, what_is_not_implemented_is_refused)
{
    static const struct {
        const char *key, *value;
        bool merge;
    } refused[] = {
        {"merge-engine", "of-the-future", true},
        {"changelog-producer", "of-the-future", false},
        {"changelog-file.format", "csv", true},
        {"postpone.merge-on-read", "true", true},
        {"deletion-vectors.later", "x", true},
        {"data-evolution.enabled", "true", true},
        {"sequence.snapshot-ordering", "true", true},
        {"sequence.later", "x", true},
        {"record-level.expire-time", "1 d", true},
        {"pk-clustering-override", "true", true},
        {"chain-table.enabled", "true", true},
        {"type", "format-table", true},
        {"file.format", "csv", true},
        {"file.format", "lance", true},
        {"file.format", "blob", true},
        {"file.format.per.level", "0:avro,1:text", true},
        {"file.format.per.level", "avro", true},
        {"pk-btree.index.columns", "v", false},
        {"fields.v.map.storage-layout", "x", true},
        {"primary-key.nullable", "true", true},
        {"data-file.external-paths.strategy", "round-robin", false},
        {"write.sequence-number-init-mode", "snapshot", false},
        {"scan.fallback-branch", "b", true},
        {"blob-field", "v", true},
        {"aggregation.later", "true", true},
        {"partial-update.later", "true", true},
        {"file-index.bsi.columns", "v", false}, /* a text */
        {"file-index.range-bitmap.columns", "v", false},
        {"file-index.later.columns", "v", false},
        {"file-index.bitmap.columns", "v,nobody", false},
        {"file-index.bloom-filter.columns", "v[key]", false},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(refused); i++) {
        struct tarn_options o = with(t, refused[i].key, refused[i].value);
        const char *word = refused[i].key;
        expect_status(tarn_options_check_write(&o), TARN_UNSUPPORTED_FEATURE, word);
        if (refused[i].merge)
            expect_status(tarn_options_check_merge(&o), TARN_UNSUPPORTED_FEATURE, word);
        else
            expect_ok(tarn_options_check_merge(&o));
    }
}

TARN_TEST(options, formats_of_new_files)
{
    struct tarn_options o = with(t, "file.format", "ORC");
    expect_str(tarn_options_file_format(&o, 0), "orc");
    expect_ok(tarn_options_check_write(&o));
    expect_int(tarn_options_block_size(&o, 0), 0);
    o = with(t, "orc.stripe.size", "1000");
    expect_int(tarn_options_block_size(&o, 0), 0); /* it is Parquet */
    o = with(t, "file.format.per.level", "0:avro, 5 : Orc");
    expect_ok(tarn_options_check_write(&o));
    expect_ok(tarn_options_check_merge(&o));
    expect_str(tarn_options_file_format(&o, 0), "avro");
    expect_str(tarn_options_file_format(&o, 3), "parquet");
    expect_str(tarn_options_file_format(&o, 5), "orc");
    o = with(t, "file.compression.per.level", "0:lz4,2:none");
    expect_slice(tarn_options_file_compression(&o, 0), "lz4");
    expect_slice(tarn_options_file_compression(&o, 1), "zstd");
    expect_slice(tarn_options_file_compression(&o, 2), "none");
}

TARN_TEST(options, columns_that_a_format_does_not_hold)
{
    static const struct {
        const char *columns, *format;
        bool refused;
    } cases[] = {
        {"k INT NOT NULL, v BINARY(4)", "orc", true},
        {"k INT NOT NULL, v ROW<a ARRAY<VARBINARY(7)>>", "orc", true},
        {"k INT NOT NULL, v MULTISET<INT>", "orc", true},
        {"k INT NOT NULL, v BYTES, w TIMESTAMP(9)", "orc", false},
        {"k INT NOT NULL, v TIMESTAMP(7)", "avro", true},
        {"k INT NOT NULL, v MAP<STRING, TIMESTAMP_LTZ(9)>", "avro", true},
        {"k INT NOT NULL, v TIMESTAMP(6), w BINARY(4)", "avro", false},
        {"k INT NOT NULL, v TIMESTAMP(9), w BINARY(4)", "parquet", false},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        struct tarn_schema schema = table(t, cases[i].columns, "k", "file.format", cases[i].format);
        struct tarn_options o = parse(t, &schema);
        expect_ok(tarn_options_check_merge(&o));
        if (cases[i].refused)
            expect_status(tarn_options_check_write(&o), TARN_UNSUPPORTED_FEATURE, "with column v");
        else
            expect_ok(tarn_options_check_write(&o));
    }
}

TARN_TEST(options, all_that_is_refused_is_told)
{
    struct tarn_pair pairs[TARN_REFUSALS_MAX + 4] = {
        {tarn_slice_str("record-level.expire-time"), tarn_slice_str("1 d")},
        {tarn_slice_str("chain-table.enabled"), tarn_slice_str("true")},
        {tarn_slice_str("file.format"), tarn_slice_str("json")}};
    struct tarn_schema schema = table(t, COLUMNS, "", NULL, NULL);
    schema.options = pairs;
    schema.option_count = 3;
    struct tarn_options o = parse(t, &schema);
    expect_int(o.refusal_count, 3);
    for (size_t i = 0; i < 3; i++) {
        expect_true(tarn_slice_starts_with(o.refusals[i].reason, pairs[i].key));
        expect_true(o.refusals[i].write && o.refusals[i].merge);
        expect_int(o.refusals[i].commit, i == 1);
    }
    for (size_t i = 0; i < TARN_COUNT_OF(pairs); i++)
        pairs[i] = (struct tarn_pair){
            tarn_slice_str(tarn_arena_printf(t->arena, "sequence.unheard-of-%zu", i)),
            tarn_slice_str("1")};
    schema.option_count = TARN_COUNT_OF(pairs);
    o = parse(t, &schema);
    expect_int(o.refusal_count, TARN_REFUSALS_MAX);
}

TARN_TEST(options, columns_that_are_not_implemented_are_refused)
{
    static const char *const types[] = {"VARIANT", "BLOB", "VECTOR<FLOAT, 3>", "GEOMETRY",
                                        "ARRAY<ROW<x MAP<INT, GEOGRAPHY>>>"};
    for (size_t i = 0; i < TARN_COUNT_OF(types); i++) {
        const char *columns = tarn_arena_printf(t->arena, "k INT NOT NULL, odd %s", types[i]);
        struct tarn_schema s = table(t, columns, "k", NULL, NULL);
        struct tarn_options o = parse(t, &s);
        expect_status(tarn_options_check_write(&o), TARN_UNSUPPORTED_FEATURE, "column odd");
        expect_status(tarn_options_check_merge(&o), TARN_UNSUPPORTED_FEATURE, "column odd");
    }
}

TARN_TEST(options, default_values_stop_writes_only)
{
    struct tarn_schema s = table(t, "k INT NOT NULL, v STRING DEFAULT 'x'", "k", NULL, NULL);
    struct tarn_options o = parse(t, &s);
    expect_status(tarn_options_check_write(&o), TARN_UNSUPPORTED_FEATURE, "column v DEFAULT");
    expect_ok(tarn_options_check_merge(&o));
}

TARN_TEST(options, what_changes_no_row_is_not_refused)
{
    static const char *const passive[][2] = {
        {"owner", "me"},
        {"sink.parallelism", "4"},
        {"merge-engine", "DEDUPLICATE"},
        {"merge-engine", "first-row"},
        {"merge-engine", "partial_update"},
        {"merge-engine", "aggregation"},
        {"fields.v.aggregate-function", "sum"}, /* deduplicate doesn't ask */
        {"fields.default-aggregate-function", "sum"},
        {"aggregation.remove-record-on-delete", "true"},
        {"changelog-producer", "none"},
        {"changelog-producer", "INPUT"},
        {"changelog-file.format", "orc"},
        {"changelog-producer", "full-compaction"},
        {"changelog-producer", "lookup"},
        {"full-compaction.delta-commits", "3"},
        {"changelog-producer.compaction-interval", "1 min"},
        {"changelog-file.compression", "none"},
        {"changelog-file.stats-mode", "counts"},
        {"file.format", "parquet"},
        {"type", "table"},
        {"file.format.per.level", "0:parquet, 5:Parquet"},
        {"deletion-vectors.enabled", "false"},
        {"file-index.bloom-filter.columns", "v"},
        {"fields.v.stats-mode", "full"},
        {"changelog-producer.row-deduplicate", "true"},
        {"snapshot.time-retained", "1 h"},
        {"consumer.expiration-time", "1 d"},
        {"scan.mode", "latest"},
        {"parquet.page.size", "1"},
        {"local-merge-buffer-size", "64 mb"},
        {"data-file.external-paths", "s3://b/x"},
        {"record-level.time-field", "s"},
        {"row-tracking.enabled", "false"},
        {"rowkind.field", "v"},
        {"lookup-wait", "false"},
        {"write-only", "true"},
        {"metadata.stats-mode.per.level", "0:none"},
        {"tag.automatic-creation", "watermark"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(passive); i++) {
        struct tarn_options o = with(t, passive[i][0], passive[i][1]);
        expect_ok(tarn_options_check_write(&o));
        expect_ok(tarn_options_check_merge(&o));
    }
}

/* --- merge engines --- */

#define ENGINE_COLUMNS                                                                             \
    "k INT NOT NULL, n INT, s STRING, v VARCHAR(9), g INT, h INT, b BOOLEAN, l ARRAY<INT>, "       \
    "r ARRAY<ROW<x INT, y STRING>>, m MAP<STRING, ROW<x INT, t STRING>>, y BYTES"

/* The options of a table of those columns with key k: "key=value;key=value". */
static struct tarn_status *parse_engine(struct tarn_test *t, const char *text,
                                        struct tarn_options *out)
{
    struct tarn_pair *pairs = tarn_arena_calloc(t->arena, 16, sizeof *pairs);
    struct tarn_schema *schema = tarn_arena_calloc(t->arena, 1, sizeof *schema);
    char *at = (char *)(uintptr_t)tarn_arena_str(t->arena, tarn_slice_str(text)), *option;

    *schema = table(t, ENGINE_COLUMNS, "k", NULL, NULL);
    pairs[schema->option_count++] =
        (struct tarn_pair){tarn_slice_str("bucket"), tarn_slice_str("1")};
    while ((option = strsep(&at, ";")) != NULL) {
        char *value = strchr(option, '=');
        *value++ = 0;
        pairs[schema->option_count++] =
            (struct tarn_pair){tarn_slice_str(option), tarn_slice_str(value)};
    }
    schema->options = pairs;
    return tarn_options_parse(schema, t->arena, out);
}

TARN_TEST(options, rules_of_an_aggregation)
{
    struct tarn_options o;
    expect_ok(
        parse_engine(t,
                     "merge-engine=aggregation;sequence.field=g;fields.n.aggregate-function=sum;"
                     "fields.s.aggregate-function=listagg;fields.s.list-agg-delimiter=+;"
                     "fields.r.aggregate-function=nested_update;fields.r.nested-key= x ;"
                     "fields.r.nested-sequence-field=y;fields.r.count-limit=7;"
                     "fields.l.aggregate-function=collect;fields.l.distinct=true",
                     &o));
    static const enum tarn_aggregate want[] = {
        TARN_AGGREGATE_KEY,           TARN_AGGREGATE_SUM,           TARN_AGGREGATE_LISTAGG,
        TARN_AGGREGATE_LAST_NON_NULL, TARN_AGGREGATE_LAST,          TARN_AGGREGATE_LAST_NON_NULL,
        TARN_AGGREGATE_LAST_NON_NULL, TARN_AGGREGATE_COLLECT,       TARN_AGGREGATE_NESTED_UPDATE,
        TARN_AGGREGATE_LAST_NON_NULL, TARN_AGGREGATE_LAST_NON_NULL,
    };
    for (size_t i = 0; i < TARN_COUNT_OF(want); i++)
        expect_int(o.rules[i].aggregate, want[i]);
    expect_slice(o.rules[2].delimiter, "+");
    expect_true(o.rules[7].distinct);
    expect_int(o.rules[8].nested_key_count, 1);
    expect_int(o.rules[8].nested_keys[0], 0);
    expect_int(o.rules[8].nested_sequence[0], 1);
    expect_int(o.rules[8].count_limit, 7);
    expect_ok(tarn_options_check_write(&o));
}

TARN_TEST(options, groups_of_a_partial_update)
{
    struct tarn_options o;
    expect_ok(parse_engine(t,
                           "merge-engine=partial-update;fields.g.sequence-group=n,s;"
                           "fields.n.aggregate-function=sum;fields.h,v.sequence-group=b;"
                           "partial-update.remove-record-on-sequence-group=v",
                           &o));
    expect_int(o.group_count, 2);
    expect_int(o.groups[0].column_count, 1);
    expect_int(o.groups[1].column_count, 2);
    expect_true(!o.groups[0].removes_record && o.groups[1].removes_record);
    expect_int(o.rules[1].group, 0);
    expect_int(o.rules[1].aggregate, TARN_AGGREGATE_SUM);
    expect_int(o.rules[2].aggregate, TARN_AGGREGATE_NONE);
    expect_true(o.rules[4].orders && o.rules[4].group == 0);
    expect_int(o.rules[6].group, 1);
    expect_int(o.rules[7].group, -1);
    expect_ok(parse_engine(t, "merge-engine=first-row;ignore-delete=true", &o));
    expect_true(o.skip_level_0 && o.force_up_level_0 && o.rules == NULL);
}

TARN_TEST(options, what_an_engine_can_not_do_is_said)
{
    static const char *const wrong[][2] = {
        {"merge-engine=aggregation;fields.s.aggregate-function=sum", "numeric"},
        {"merge-engine=aggregation;fields.n.aggregate-function=summ", "a function of Paimon"},
        {"merge-engine=aggregation;fields.n.aggregate-function=bool_or", "BOOLEAN"},
        {"merge-engine=aggregation;fields.v.aggregate-function=listagg", "STRING"},
        {"merge-engine=aggregation;fields.l.aggregate-function=max", "compared"},
        {"merge-engine=aggregation;fields.l.aggregate-function=merge_map", "MAP"},
        {"merge-engine=aggregation;fields.l.aggregate-function=nested_update", "ARRAY<ROW>"},
        {"merge-engine=aggregation;fields.r.aggregate-function=nested_update;fields.r.nested-key=z",
         "fields of the column's rows"},
        {"merge-engine=aggregation;fields.r.aggregate-function=nested_update;"
         "fields.r.nested-sequence-field=x",
         "nested-key"},
        {"merge-engine=aggregation;fields.r.aggregate-function=nested_partial_update",
         "fields.r.nested-key"},
        {"merge-engine=aggregation;fields.m.aggregate-function=merge_map_with_keytime;"
         "fields.m.ts-field=x",
         "STRING"},
        {"merge-engine=aggregation;fields.n.aggregate-function=max;fields.n.ignore-retract=true;"
         "aggregation.remove-record-on-delete=true",
         "ignore-retract"},
        {"merge-engine=aggregation;fields.n.ignore-retract=maybe", "true or false"},
        {"merge-engine=partial-update;fields.n.aggregate-function=sum", "sequence group"},
        {"merge-engine=partial-update;fields.g.sequence-group=nobody", "no column"},
        {"merge-engine=partial-update;fields.g.sequence-group=k", "primary key"},
        {"merge-engine=partial-update;fields.l.sequence-group=n", "compared"},
        {"merge-engine=partial-update;fields.g.sequence-group=n;fields.h.sequence-group=n",
         "in a group already"},
        {"merge-engine=partial-update;partial-update.remove-record-on-sequence-group=g",
         "orders no sequence group"},
        {"merge-engine=partial-update;ignore-delete=true;"
         "partial-update.remove-record-on-delete=true",
         "ignore-delete"},
        {"merge-engine=partial-update;fields.g.sequence-group=n;"
         "partial-update.remove-record-on-delete=true",
         "sequence groups"},
    };
    struct tarn_options o;
    for (size_t i = 0; i < TARN_COUNT_OF(wrong); i++)
        expect_status(parse_engine(t, wrong[i][0], &o), TARN_SCHEMA_INVALID, wrong[i][1]);
    static const char *const lacking[] = {"rbm64", "hll_sketch", "theta_sketch"};
    for (size_t i = 0; i < TARN_COUNT_OF(lacking); i++) {
        expect_ok(parse_engine(t,
                               tarn_arena_printf(t->arena,
                                                 "merge-engine=aggregation;"
                                                 "fields.y.aggregate-function=%s",
                                                 lacking[i]),
                               &o));
        expect_status(tarn_options_check_merge(&o), TARN_UNSUPPORTED_FEATURE, lacking[i]);
    }
}

TARN_TEST(options, statistics_by_column)
{
    enum tarn_stats_mode mode;
    int32_t length;
    struct tarn_schema s = table(t, COLUMNS, "k", "fields.v.stats-mode", "counts");
    struct tarn_options o = parse(t, &s);
    tarn_options_stats_mode(&o, &s, 1, &mode, &length);
    expect_int(mode, TARN_STATS_COUNTS);
    tarn_options_stats_mode(&o, &s, 2, &mode, &length);
    expect_int(mode, TARN_STATS_TRUNCATE);
    s = table(t, COLUMNS, "k", "metadata.stats-keep-first-n-columns", "2");
    o = parse(t, &s);
    tarn_options_stats_mode(&o, &s, 1, &mode, &length);
    expect_int(mode, TARN_STATS_TRUNCATE);
    tarn_options_stats_mode(&o, &s, 2, &mode, &length);
    expect_int(mode, TARN_STATS_NONE);
    s = table(t, COLUMNS, "k", "data-file.thin-mode", "true");
    o = parse(t, &s);
    tarn_options_stats_mode(&o, &s, 0, &mode, &length);
    expect_int(length, 128);
}

/* --- commits of files that others wrote --- */

TARN_TEST(options, commits_are_refused_only_where_the_committer_lacks_something)
{
    static const char *const fine[][2] = {
        {"merge-engine", "partial-update"},
        {"merge-engine", "an engine of tomorrow"},
        {"changelog-producer", "lookup"},
        {"deletion-vectors.enabled", "true"},
        {"sequence.snapshot-ordering", "true"},
        {"write.sequence-number-init-mode", "snapshot"},
        {"row-tracking.enabled", "true"},
        {"row-tracking.partition-group-on-commit", "false"},
        {"pk-clustering-override", "true"},
        {"file.format", "orc"},
        {"bucket", "-2"},
        {"bucket", "-1"},
        {"fields.v.aggregate-function", "sum"},
        {"record-level.expire-time", "1 d"},
        {"scan.fallback-branch", "b"},
    };
    static const char *const refused[][2] = {
        {"data-evolution.enabled", "true"},
        {"chain-table.enabled", "true"},
        {"pk-btree.index.columns", "v"},
        {"type", "object-table"},
        {"blob-field", "v"},
        {"sequence.of-tomorrow", "x"},
        {"row-tracking.of-tomorrow", "x"},
        {"write.sequence-number-init-mode", "tomorrow"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(fine); i++) {
        struct tarn_options o = with(t, fine[i][0], fine[i][1]);
        expect_ok(tarn_options_check_commit(&o));
    }
    for (size_t i = 0; i < TARN_COUNT_OF(refused); i++) {
        struct tarn_options o = with(t, refused[i][0], refused[i][1]);
        expect_status(tarn_options_check_commit(&o), TARN_UNSUPPORTED_FEATURE, refused[i][0]);
        expect_status(tarn_options_check_write(&o), TARN_UNSUPPORTED_FEATURE, refused[i][0]);
    }
    struct tarn_schema later = table(t, COLUMNS, "k", NULL, NULL);
    later.version = 4;
    struct tarn_options o = parse(t, &later);
    expect_status(tarn_options_check_commit(&o), TARN_UNSUPPORTED_FEATURE, "schema version 4");
    struct tarn_schema blob = table(t, "k INT NOT NULL, v STRING, s INT, b BLOB", "k", NULL, NULL);
    o = parse(t, &blob);
    expect_status(tarn_options_check_commit(&o), TARN_UNSUPPORTED_FEATURE, "column b BLOB");
}

TARN_TEST(options, that_the_committer_obeys)
{
    struct tarn_options o = with(t, "snapshot.num-retained.min", "3");
    expect_true(o.overwrite_upgrade);
    expect_int(o.last_safe_snapshot, -1);
    expect_false(o.row_tracking);
    expect_true(o.row_tracking_by_partition);
    expect_false(o.deletion_vectors);
    expect_false(o.pk_clustering);
    expect_false(o.snapshot_ordering);
    expect_false(o.sequence_init_from_snapshot);
    o = with(t, "overwrite-upgrade", "false");
    expect_false(o.overwrite_upgrade);
    o = with(t, "commit.strict-mode.last-safe-snapshot", "17");
    expect_int(o.last_safe_snapshot, 17);
    o = with(t, "write.sequence-number-init-mode", "SNAPSHOT");
    expect_true(o.sequence_init_from_snapshot);
    o = with(t, "sequence.snapshot-ordering", "true");
    expect_true(o.snapshot_ordering);
    struct tarn_schema s =
        table(t, COLUMNS, "k", "commit.strict-mode.last-safe-snapshot", "yesterday");
    expect_status(tarn_options_parse(&s, t->arena, &o), TARN_SCHEMA_INVALID, "last-safe-snapshot");
}
