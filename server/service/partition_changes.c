#include "service/partitions.h"

/*
 * Partitions are made, marked and dropped as catalogs do it. What a request names is looked for among those that are there; what is noted of
 * them changes in one step, with what else was noted: notes of partitions that went by commits of others go with the next change.
 */

struct spec { /* one of a request */
    struct tarn_partition_name name;
    struct tarn_slice path;
    const bool *is_set; /* of the columns */
    bool full;          /* all of them */
    bool met;           /* something that is there fits */
};

struct change {
    const struct tarn_partition_request *request;
    struct tarn_table *table;
    struct tarn_partitions all; /* before it */
    struct spec *specs;
    struct tarn_map *full;                     /* path -> spec */
    const struct tarn_partition_facts **found; /* that fit some spec */
    size_t found_count;
    int64_t now_ms;
    enum { MAKE, MARK, UNMARK, DROP } kind;
};

static void change_fini(struct change *c)
{
    tarn_map_drop(&c->full);
    tarn_partitions_fini(&c->all);
    tarn_table_drop_ref(&c->table);
}

/* --- what is meant --- */

static size_t find_column(const struct tarn_schema *schema, struct tarn_slice name)
{
    size_t i = 0;
    while (i < schema->partition_key_count && !tarn_slice_equal(schema->partition_keys[i], name))
        i++;
    return i;
}

/* In the schema's order; a column that isn't named is null. */
static struct tarn_status *order_values(struct tarn_op *op, const struct tarn_schema *schema,
                                        const struct tarn_partition_match *from,
                                        struct tarn_partition_value **out, bool **is_set)
{
    size_t count = schema->partition_key_count;
    *out = tarn_arena_calloc(op->arena, count + 1, sizeof **out);
    *is_set = tarn_arena_calloc(op->arena, count + 1, sizeof **is_set);
    for (size_t i = 0; i < count; i++)
        (*out)[i].is_null = true;
    for (size_t i = 0; i < from->value_count; i++) {
        size_t at = find_column(schema, from->values[i].column);
        if (at == count)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "\"%.*s\" is no partition column",
                                   TARN_SLICE_ARG(from->values[i].column));
        if ((*is_set)[at])
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "partition column \"%.*s\" is named twice",
                                   TARN_SLICE_ARG(from->values[i].column));
        (*out)[at] = from->values[i];
        (*is_set)[at] = true;
    }
    return TARN_OK;
}

static struct tarn_status *path_of(struct tarn_op *op, const struct tarn_table_view *view,
                                   const struct tarn_partition_value *values,
                                   struct tarn_slice *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};
    struct tarn_slice row;
    TARN_TRY(tarn_service__partition_row(op, view, values, &row));
    TARN_TRY(tarn_partition_path(&view->schema, &view->options, row, &path));
    *out = tarn_arena_copy(op->arena, tarn_buf_slice(&path));
    return TARN_OK;
}

static struct tarn_status *take_spec(struct tarn_op *op, const struct tarn_table_view *view,
                                     const struct tarn_partition_match *from, struct spec *out)
{
    struct tarn_partition_value *values;
    bool *is_set;
    TARN_TRY(order_values(op, &view->schema, from, &values, &is_set));
    TARN_TRY(path_of(op, view, values, &out->path));
    tarn_service__name_partition(op, &view->schema, out->path, &out->name);
    out->is_set = is_set;
    out->full = from->value_count == view->schema.partition_key_count;
    return from->value_count > 0
               ? TARN_OK
               : tarn_status_new(TARN_INVALID_ARGUMENT, "a partition is named by no column");
}

/* Of one that is to be made its name must tell its values: nothing else will. */
static struct tarn_status *check_makeable(struct tarn_op *op, const struct tarn_table_view *view,
                                          const struct spec *spec)
{
    struct tarn_partition_value *values =
        tarn_arena_calloc(op->arena, spec->name.spec_count + 1, sizeof *values);
    struct tarn_slice again = {0};
    if (!spec->full)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "a partition is made by all %zu of its columns",
                               view->schema.partition_key_count);
    for (size_t i = 0; i < spec->name.spec_count; i++)
        values[i].value = spec->name.spec[i].value;
    struct tarn_status *s = path_of(op, view, values, &again);
    if (s == TARN_OK && tarn_slice_equal(again, spec->path))
        return TARN_OK;
    tarn_status_free(s);
    return tarn_status_new(TARN_INVALID_ARGUMENT,
                           "partition %.*s can't be there without files: its name doesn't tell its "
                           "value",
                           TARN_SLICE_ARG(spec->name.text));
}

static struct tarn_status *take_specs(struct tarn_op *op, struct change *c)
{
    size_t count = c->request->spec_count;
    const struct tarn_table_view *view = c->all.view;
    if (view->schema.partition_key_count == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "table %s has no partitions",
                               tarn_table_name(c->table));
    if (count > TARN_PARTITIONS_CHANGED_MAX)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "%zu partitions, at most %d at once", count,
                               TARN_PARTITIONS_CHANGED_MAX);
    c->specs = tarn_arena_calloc(op->arena, count + 1, sizeof *c->specs);
    c->full = tarn_map_new();
    for (size_t i = 0; i < count; i++) {
        TARN_TRY(take_spec(op, view, &c->request->specs[i], &c->specs[i]));
        if (c->kind == MAKE)
            TARN_TRY(check_makeable(op, view, &c->specs[i]));
        if (c->specs[i].full)
            tarn_map_set(c->full, c->specs[i].path, &c->specs[i]);
    }
    return TARN_OK;
}

static bool fits(const struct spec *spec, const struct tarn_partition_facts *facts)
{
    for (size_t k = 0; k < facts->name.spec_count; k++)
        if (spec->is_set[k] &&
            !tarn_slice_equal(spec->name.spec[k].value, facts->name.spec[k].value))
            return false;
    return true;
}

static bool is_meant(struct change *c, const struct tarn_partition_facts *facts)
{
    struct spec *spec = tarn_map_find(c->full, facts->path);
    bool is = spec != NULL;
    if (is)
        spec->met = true;
    for (size_t i = 0; i < c->request->spec_count; i++)
        if (!c->specs[i].full && fits(&c->specs[i], facts))
            is = c->specs[i].met = true;
    return is;
}

static struct tarn_status *begin(struct tarn_op *op, struct tarn_service *service, struct change *c)
{
    TARN_TRY(tarn_service__table(op, service, c->request->ref, TARN_ACTION_WRITE, &c->table));
    TARN_TRY(tarn_service__partitions(op, service, c->table, &c->all));
    TARN_TRY(take_specs(op, c));
    c->now_ms = tarn_clock_wall_ms();
    c->found = tarn_arena_calloc(op->arena, c->all.count + 1, sizeof *c->found);
    for (size_t i = 0; i < c->all.count; i++)
        if (is_meant(c, &c->all.list[i]))
            c->found[c->found_count++] = &c->all.list[i];
    for (size_t i = 0; i < c->request->spec_count; i++) {
        /* Of specs that say the same the last one is in the map. */
        const struct spec *same =
            c->specs[i].full ? tarn_map_find(c->full, c->specs[i].path) : &c->specs[i];
        c->specs[i].met |= same->met;
    }
    return TARN_OK;
}

/* --- notes --- */

/* The note of `path`, which may be new: there is room for one more of each spec and partition. */
static struct tarn_partition_note *note_of(struct tarn_partition_note *notes, size_t *count,
                                           struct tarn_map *by_path, struct tarn_slice path)
{
    struct tarn_partition_note *note = tarn_map_find(by_path, path);
    if (note == NULL) {
        note = &notes[(*count)++];
        *note = (struct tarn_partition_note){.path = path};
        tarn_map_set(by_path, path, note);
    }
    return note;
}

static void change_notes(struct change *c, struct tarn_partition_note *notes, size_t *count,
                         struct tarn_map *by_path)
{
    int64_t snapshot_id = c->all.view->has_snapshot ? c->all.view->snapshot.id : 0;
    for (size_t i = 0; c->kind == MAKE && i < c->request->spec_count; i++)
        if (!c->specs[i].met)
            note_of(notes, count, by_path, c->specs[i].path)->created_ms = c->now_ms;
    for (size_t i = 0; c->kind != MAKE && i < c->found_count; i++) {
        struct tarn_partition_note *note = note_of(notes, count, by_path, c->found[i]->path);
        note->done_ms = c->kind == MARK ? c->now_ms : 0;
        note->done_at = c->kind == MARK ? snapshot_id : 0;
        if (c->kind == DROP)
            note->created_ms = 0;
    }
}

/* What this note says of a partition as it is: nothing where that went and came again. */
static void refresh_note(const struct change *c, struct tarn_partition_note *note)
{
    const struct tarn_partition_facts *facts = tarn_map_find(c->all.by_path, note->path);
    if (facts == NULL || (facts->totals.file_count > 0 && note->done_at < facts->totals.since_id))
        note->done_ms = 0;
    if (facts != NULL && facts->totals.file_count > 0)
        note->created_ms = 0; /* it is there as long as it has files */
}

static struct tarn_status *renew_notes(void *arg, struct tarn_op *op,
                                       struct tarn_partition_note **notes, size_t *count)
{
    struct change *c = arg;
    TARN_OWN(tarn_map_drop) struct tarn_map *by_path = tarn_map_new();
    size_t most = *count + c->request->spec_count + c->found_count, n = *count, kept = 0;
    struct tarn_partition_note *list = tarn_arena_calloc(op->arena, most + 1, sizeof *list);
    for (size_t i = 0; i < n; i++) {
        list[i] = (*notes)[i];
        refresh_note(c, &list[i]);
        tarn_map_set(by_path, list[i].path, &list[i]);
    }
    change_notes(c, list, &n, by_path);
    for (size_t i = 0; i < n; i++)
        if (list[i].created_ms != 0 || list[i].done_ms != 0)
            list[kept++] = list[i];
    *notes = list;
    *count = kept;
    return TARN_OK;
}

/* --- the three --- */

/* Only the columns that it names. */
static struct tarn_partition_name name_as_asked(struct tarn_op *op, const struct spec *spec)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_pair *parts =
        tarn_arena_calloc(op->arena, spec->name.spec_count + 1, sizeof *parts);
    size_t n = 0;
    for (size_t k = 0; k < spec->name.spec_count; k++) {
        if (!spec->is_set[k])
            continue;
        parts[n] = spec->name.spec[k];
        tarn_buf_printf(&text, "%s%.*s=", n == 0 ? "" : "/", TARN_SLICE_ARG(parts[n].key));
        tarn_buf_add_slice(&text, parts[n++].value);
    }
    return (struct tarn_partition_name){tarn_arena_copy(op->arena, tarn_buf_slice(&text)), parts,
                                        n};
}

static struct tarn_status *refuse_all(struct tarn_op *op, const struct change *c,
                                      enum tarn_reason reason, const struct spec *spec)
{
    struct tarn_partition_name name = name_as_asked(op, spec);
    return tarn_status_new(reason,
                           reason == TARN_PARTITION_EXISTS
                               ? "table %s has partition %.*s already; nothing was made"
                               : "table %s has no partition %.*s; nothing was changed",
                           tarn_table_name(c->table), TARN_SLICE_ARG(name.text));
}

/* met: those that are there already, or aren't, are in the way. */
static struct tarn_status *check_specs(struct tarn_op *op, const struct change *c, bool met,
                                       enum tarn_reason reason)
{
    for (size_t i = 0; !c->request->lenient && i < c->request->spec_count; i++)
        if (c->specs[i].met == met)
            return refuse_all(op, c, reason, &c->specs[i]);
    return TARN_OK;
}

/* The specs that met something, or nothing, each once. */
static void list_specs(struct tarn_op *op, const struct change *c, bool met,
                       struct tarn_partition_name **out, size_t *count)
{
    *out = tarn_arena_calloc(op->arena, c->request->spec_count + 1, sizeof **out);
    *count = 0;
    for (size_t i = 0; i < c->request->spec_count; i++) {
        const struct spec *s = &c->specs[i];
        bool again = s->full && tarn_map_find(c->full, s->path) != s;
        if (s->met == met && !again)
            (*out)[(*count)++] = name_as_asked(op, s);
    }
}

static void list_found(struct tarn_op *op, const struct change *c,
                       struct tarn_partition_answer *out)
{
    out->changed = tarn_arena_calloc(op->arena, c->found_count + 1, sizeof *out->changed);
    out->changed_count = c->found_count;
    for (size_t i = 0; i < c->found_count; i++)
        out->changed[i] = c->found[i]->name;
    list_specs(op, c, false, &out->others, &out->other_count);
}

struct tarn_status *tarn_service_create_partitions(struct tarn_op *op, struct tarn_service *service,
                                                   const struct tarn_partition_request *request,
                                                   struct tarn_partition_answer *out)
{
    TARN_OWN(change_fini) struct change c = {.request = request, .kind = MAKE};
    *out = (struct tarn_partition_answer){0};
    TARN_TRY(begin(op, service, &c));
    TARN_TRY(check_specs(op, &c, true, TARN_PARTITION_EXISTS));
    list_specs(op, &c, false, &out->changed, &out->changed_count);
    list_specs(op, &c, true, &out->others, &out->other_count);
    return out->changed_count == 0 ? TARN_OK
                                   : tarn_catalog_change_partition_notes(op, service->catalog,
                                                                         c.table, renew_notes, &c);
}

struct tarn_status *tarn_service_mark_partitions(struct tarn_op *op, struct tarn_service *service,
                                                 const struct tarn_partition_request *request,
                                                 bool done, struct tarn_partition_answer *out)
{
    TARN_OWN(change_fini) struct change c = {.request = request, .kind = done ? MARK : UNMARK};
    *out = (struct tarn_partition_answer){0};
    TARN_TRY(begin(op, service, &c));
    TARN_TRY(check_specs(op, &c, false, TARN_PARTITION_NOT_FOUND));
    list_found(op, &c, out);
    return c.found_count == 0 ? TARN_OK
                              : tarn_catalog_change_partition_notes(op, service->catalog, c.table,
                                                                    renew_notes, &c);
}

/* One commit for all that have files. */
static struct tarn_status *drop_files(struct tarn_op *op, struct change *c, int64_t *snapshot_id)
{
    struct tarn_commit_result result = {0};
    struct tarn_partition_match *matches =
        tarn_arena_calloc(op->arena, c->found_count + 1, sizeof *matches);
    struct tarn_commit_request request = {.matches = matches,
                                          .commit = {.identifier = TARN_COMMIT_IDENTIFIER_BATCH,
                                                     .watermark = TARN_SNAPSHOT_NONE,
                                                     .overwrite = TARN_OVERWRITE_PARTITIONS,
                                                     .base_snapshot_id = TARN_SNAPSHOT_NONE}};
    for (size_t i = 0; i < c->found_count; i++) {
        struct tarn_partition_match *m = &matches[request.match_count];
        if (c->found[i]->totals.file_count == 0)
            continue;
        TARN_TRY(tarn_service__partition_values(op, &c->all.view->schema, c->found[i]->row,
                                                &m->values, &m->value_count));
        request.match_count++;
    }
    if (request.match_count == 0)
        return TARN_OK;
    TARN_TRY(tarn_service__check_commit(op, c->table, c->all.view, &request));
    TARN_TRY(tarn_table_commit(op, c->table, &request.commit, &result));
    *snapshot_id = result.append_snapshot_id;
    return TARN_OK;
}

struct tarn_status *tarn_service_drop_partitions(struct tarn_op *op, struct tarn_service *service,
                                                 const struct tarn_partition_request *request,
                                                 struct tarn_partition_answer *out)
{
    TARN_OWN(change_fini) struct change c = {.request = request, .kind = DROP};
    *out = (struct tarn_partition_answer){0};
    TARN_TRY(begin(op, service, &c));
    TARN_TRY(check_specs(op, &c, false, TARN_PARTITION_NOT_FOUND));
    list_found(op, &c, out);
    if (c.found_count == 0)
        return TARN_OK;
    TARN_TRY(drop_files(op, &c, &out->snapshot_id));
    return tarn_catalog_change_partition_notes(op, service->catalog, c.table, renew_notes, &c);
}
