#include "service/internal.h"

/* Taking what others made in the warehouse: which folders are meant, what is in them, and whose compaction is whose. */

struct adopt {
    struct tarn_service *service;
    const struct tarn_adopt_request *request;
    tarn_adopt_fn tell;
    void *arg;
};
struct target {
    struct tarn_slice database, name; /* name empty: all of the database */
};

/* --- which folders --- */

/* "db" where there is such a database, whatever dots it has; else "db.table", by its first dot. */
static struct tarn_status *parse_name(struct tarn_op *op, struct tarn_catalog *catalog,
                                      struct tarn_slice text, struct target *out)
{
    struct tarn_database_info *databases;
    size_t count;
    *out = (struct target){.database = text, .name = tarn_slice_str("")};
    TARN_TRY(tarn_database_list(op, catalog, &databases, &count));
    for (size_t i = 0; i < count; i++)
        if (tarn_slice_equal(databases[i].name, text))
            return TARN_OK;
    const uint8_t *dot = memchr(text.data, '.', text.size);
    if (dot == NULL)
        return tarn_status_new(TARN_DATABASE_NOT_FOUND, "there is no database %.*s",
                               TARN_SLICE_ARG(text));
    out->database = tarn_slice_of(text.data, (size_t)(dot - text.data));
    out->name = tarn_slice_of(dot + 1, text.size - out->database.size - 1);
    return TARN_OK;
}

static struct tarn_status *parse_target(struct tarn_op *op, struct tarn_service *service,
                                        struct tarn_slice text, struct target *out)
{
    TARN_TRY(tarn_service__check_name("target", text));
    if (text.size == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a target is empty");
    if (memchr(text.data, '/', text.size) == NULL)
        return parse_name(op, service->catalog, text, out);
    return tarn_catalog_locate(op, service->catalog, text, &out->database, &out->name);
}

static struct tarn_status *check_access(struct tarn_op *op, const struct adopt *a,
                                        const struct target *target)
{
    bool takes = a->request->compaction != TARN_COMPACTION_KEEP;
    enum tarn_action action = a->request->check_only ? TARN_ACTION_READ : TARN_ACTION_CREATE;
    TARN_TRY(tarn_service__check(op, a->service, action, target->database));
    return takes && !a->request->check_only
               ? tarn_service__check(op, a->service, TARN_ACTION_MAINTAIN, target->database)
               : TARN_OK;
}

/* --- one folder --- */

/* Consumes s. */
static void fail(struct tarn_op *op, struct tarn_status *s, struct tarn_adopt_report *report)
{
    report->outcome = TARN_ADOPT_FAILED;
    report->failure = tarn_arena_str(op->arena, tarn_slice_str(tarn_status_message(s)));
    report->advice = tarn_reason_advice(tarn_status_reason(s));
    tarn_status_free(s);
}

static void add_note(struct tarn_op *op, struct tarn_adopt_report *report, const char *what,
                     const char *advice)
{
    struct tarn_inspection *found = &report->found;
    struct tarn_finding *list =
        tarn_arena_calloc(op->arena, found->finding_count + 1, sizeof *list);
    if (found->finding_count > 0)
        memcpy(list, found->findings, found->finding_count * sizeof *list);
    list[found->finding_count++] = (struct tarn_finding){
        .kind = TARN_FINDING_NOTE, .where = report->path, .what = what, .advice = advice};
    found->findings = list;
}

static struct tarn_status *take_compaction(struct tarn_op *op, const struct adopt *a,
                                           struct tarn_table *table,
                                           struct tarn_adopt_report *report)
{
    bool wanted = a->request->compaction == TARN_COMPACTION_TARN;
    if (a->request->compaction == TARN_COMPACTION_KEEP)
        return TARN_OK;
    if (wanted && !report->found.can_compact) {
        add_note(op, report, "its compaction stays its writers': Tarn can't do it for this table",
                 "see what else was found");
        return TARN_OK;
    }
    TARN_TRY(tarn_catalog_set_compaction(op, a->service->catalog, table, wanted));
    if (wanted) { /* whatever was written while others minded it */
        tarn_table_touch_all(table);
        tarn_maintain_notice(a->service->maintain, table);
    }
    return TARN_OK;
}

/* of_writers: its options say so (maintain/whose.c). */
static void say_compaction(struct tarn_op *op, struct tarn_adopt_report *report, bool of_writers)
{
    if (report->is_compacted && of_writers)
        add_note(op, report,
                 "its compaction is the daemon's, which leaves it to its writers all the same: its "
                 "options ask for what only they do, or say write-only = false",
                 "tarn table alter --set write-only=true, once nobody needs what they do beside "
                 "compaction; tarn compact does it when it is told to");
    else if (report->is_compacted && !report->found.is_write_only)
        add_note(op, report,
                 "its compaction is the daemon's, and its writers compact, too: of two that meet "
                 "one fails, and is made again",
                 "tarn table alter --set write-only=true, once nobody needs what its writers then "
                 "leave to others as well: expiry and automatic tags");
    if (!report->is_compacted && report->found.is_write_only)
        add_note(op, report, "write-only is set, so that its writers don't compact, nor does Tarn",
                 "tarn adopt --compaction tarn, unless a job of yours compacts it");
}

static struct tarn_status *adopt(struct tarn_op *op, const struct adopt *a,
                                 struct tarn_adopt_report *report)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_catalog_table(op, a->service->catalog, report->database, report->name,
                                tarn_slice_str(NULL), &table));
    report->uuid = tarn_arena_str(op->arena, tarn_slice_str(tarn_table_uuid(table)));
    struct tarn_status *s = take_compaction(op, a, table, report);
    report->is_compacted = tarn_table_is_compacted(table);
    TARN_TRY(s);
    TARN_TRY(tarn_table_look(op, table, &view));
    say_compaction(op, report, tarn_maintain_is_of_writers(&view->schema, &view->options));
    return TARN_OK;
}

static struct tarn_status *look_and_adopt(struct tarn_op *op, const struct adopt *a,
                                          const struct tarn_folder *folder,
                                          struct tarn_adopt_report *report)
{
    report->outcome = a->request->check_only ? TARN_ADOPT_CHECKED
                      : folder->has_identity ? TARN_ADOPT_KNOWN
                                             : TARN_ADOPT_ADOPTED;
    report->is_compacted = folder->is_compacted;
    report->uuid = folder->uuid;
    TARN_TRY(tarn_table_inspect(op, tarn_catalog_env(a->service->catalog), folder->path,
                                tarn_arena_printf(op->arena, "%.*s.%.*s",
                                                  TARN_SLICE_ARG(report->database),
                                                  TARN_SLICE_ARG(report->name)),
                                a->request->files, &report->found));
    if (folder->damaged != NULL)
        return tarn_status_new(TARN_IDENTITY_DAMAGED, "%s", folder->damaged);
    return a->request->check_only ? TARN_OK : adopt(op, a, report);
}

static struct tarn_status *do_folder(struct tarn_op *op, const struct adopt *a,
                                     struct tarn_slice database, const struct tarn_folder *folder)
{
    TARN_OWN(tarn_op_fini) struct tarn_op part;
    tarn_op_init_child(&part, op);
    struct tarn_adopt_report report = {
        .database = database, .name = folder->name, .path = folder->path, .uuid = ""};
    TARN_TRY(tarn_op_check(op));
    if (!folder->is_table) {
        report.outcome = TARN_ADOPT_NO_TABLE;
        report.failure = folder->why_not;
        return a->tell(a->arg, &part, &report);
    }
    struct tarn_status *s = look_and_adopt(&part, a, folder, &report);
    if (s != TARN_OK)
        fail(&part, s, &report);
    return a->tell(a->arg, &part, &report);
}

static bool is_hidden(struct tarn_slice name) /* to every engine */
{
    return name.size > 0 && (name.data[0] == '.' || name.data[0] == '_');
}

static struct tarn_status *do_database(struct tarn_op *op, const struct adopt *a,
                                       struct tarn_slice database)
{
    struct tarn_folder *folders;
    size_t count;
    TARN_TRY(tarn_catalog_folders(op, a->service->catalog, database, &folders, &count));
    for (size_t i = 0; i < count; i++)
        if (!is_hidden(folders[i].name))
            TARN_TRY(do_folder(op, a, database, &folders[i]));
    return TARN_OK;
}

static struct tarn_status *do_target(struct tarn_op *op, const struct adopt *a,
                                     const struct target *target)
{
    struct tarn_folder folder;
    if (target->name.size == 0)
        return do_database(op, a, target->database);
    TARN_TRY(tarn_catalog_folder(op, a->service->catalog, target->database, target->name, &folder));
    return do_folder(op, a, target->database, &folder);
}

static struct tarn_status *list_targets(struct tarn_op *op, const struct adopt *a,
                                        struct target **out, size_t *count)
{
    const struct tarn_adopt_request *q = a->request;
    struct tarn_database_info *databases;
    struct tarn_folder folder;
    size_t database_count;
    TARN_TRY(tarn_database_list(op, a->service->catalog, &databases, &database_count));
    *out = tarn_arena_calloc(op->arena, q->target_count * (database_count + 1) + database_count + 1,
                             sizeof **out);
    *count = 0;
    for (size_t i = 0; i < TARN_MAX(q->target_count, (size_t)1); i++) {
        struct target target = {{0}, {0}};
        if (q->target_count > 0)
            TARN_TRY(parse_target(op, a->service, q->targets[i], &target));
        if (target.database.size > 0)
            (*out)[(*count)++] = target;
        for (size_t d = 0; d < database_count && target.database.size == 0; d++)
            (*out)[(*count)++] = (struct target){databases[d].name, tarn_slice_str("")};
    }
    for (size_t i = 0; i < *count; i++) {
        TARN_TRY(check_access(op, a, &(*out)[i]));
        if ((*out)[i].name.size > 0) /* named: then it must be there */
            TARN_TRY(tarn_catalog_folder(op, a->service->catalog, (*out)[i].database,
                                         (*out)[i].name, &folder));
    }
    return TARN_OK;
}

struct tarn_status *tarn_service_adopt(struct tarn_op *op, struct tarn_service *service,
                                       const struct tarn_adopt_request *request, tarn_adopt_fn tell,
                                       void *arg)
{
    const struct adopt a = {service, request, tell, arg};
    struct target *targets;
    size_t count;
    TARN_TRY(list_targets(op, &a, &targets, &count));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(do_target(op, &a, &targets[i]));
    return TARN_OK;
}
