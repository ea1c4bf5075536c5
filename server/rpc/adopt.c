#include "rpc/objects.h"

/* CatalogService.Adopt: reports of folders, one after the other. */

Tarn__V1__CompactionOwner tarn_rpc__compaction_owner(bool is_compacted)
{
    return is_compacted ? TARN__V1__COMPACTION_OWNER__COMPACTION_OWNER_TARN
                        : TARN__V1__COMPACTION_OWNER__COMPACTION_OWNER_WRITERS;
}

static ProtobufCBinaryData text(const char *text)
{
    return tarn_rpc__bytes(tarn_slice_str(text == NULL ? "" : text));
}

static Tarn__V1__Finding **put_findings(struct tarn_op *op, const struct tarn_inspection *found)
{
    static const Tarn__V1__Finding__Kind kinds[] = {
        [TARN_FINDING_DAMAGE] = TARN__V1__FINDING__KIND__KIND_DAMAGE,
        [TARN_FINDING_LIMIT] = TARN__V1__FINDING__KIND__KIND_LIMIT,
        [TARN_FINDING_NOTE] = TARN__V1__FINDING__KIND__KIND_NOTE,
    };
    Tarn__V1__Finding **out = TARN_RPC_ARRAY(op, found->finding_count, *out);
    for (size_t i = 0; i < found->finding_count; i++) {
        const struct tarn_finding *f = &found->findings[i];
        out[i] = TARN_RPC_NEW(op, Tarn__V1__Finding, finding);
        out[i]->kind = kinds[f->kind];
        out[i]->where = text(f->where);
        out[i]->what = text(f->what);
        out[i]->advice = text(f->advice);
    }
    return out;
}

static void put_found(struct tarn_op *op, const struct tarn_inspection *found,
                      Tarn__V1__AdoptReport *r)
{
    r->schemas = found->schema_count;
    r->snapshots = found->snapshot_count;
    r->earliest_snapshot = found->earliest_id;
    r->latest_snapshot = found->latest_id;
    r->tags = found->tag_count;
    r->branches = found->branch_count;
    r->consumers = found->consumer_count;
    r->manifests = found->manifest_count;
    r->files = found->file_count;
    r->files_looked = found->looked_count;
    r->findings = put_findings(op, found);
    r->n_findings = found->finding_count;
    r->damages = found->damage_count;
    r->limits = found->limit_count;
    r->findings_left_off = found->left_off_count;
}

static struct tarn_status *tell(void *arg, struct tarn_op *op,
                                const struct tarn_adopt_report *report)
{
    static const Tarn__V1__AdoptReport__Outcome outcomes[] = {
        [TARN_ADOPT_ADOPTED] = TARN__V1__ADOPT_REPORT__OUTCOME__OUTCOME_ADOPTED,
        [TARN_ADOPT_KNOWN] = TARN__V1__ADOPT_REPORT__OUTCOME__OUTCOME_KNOWN,
        [TARN_ADOPT_CHECKED] = TARN__V1__ADOPT_REPORT__OUTCOME__OUTCOME_CHECKED,
        [TARN_ADOPT_NO_TABLE] = TARN__V1__ADOPT_REPORT__OUTCOME__OUTCOME_NO_TABLE,
        [TARN_ADOPT_FAILED] = TARN__V1__ADOPT_REPORT__OUTCOME__OUTCOME_FAILED,
    };
    Tarn__V1__AdoptReport *r = TARN_RPC_NEW(op, Tarn__V1__AdoptReport, adopt_report);
    r->database = tarn_rpc__bytes(report->database);
    r->name = tarn_rpc__bytes(report->name);
    r->path = text(report->path);
    r->uuid = tarn_rpc__str(report->uuid);
    r->outcome = outcomes[report->outcome];
    r->failure = text(report->failure);
    r->advice = text(report->advice);
    r->compaction = tarn_rpc__compaction_owner(report->is_compacted);
    put_found(op, &report->found, r);
    return tarn_rpc__write(arg, &r->base);
}

/* Values of this version; a caller that means another one must not get what it didn't ask for. */
static struct tarn_status *take_choices(const Tarn__V1__AdoptRequest *q,
                                        struct tarn_adopt_request *out)
{
    static const enum tarn_inspect_files files[] = {
        [TARN__V1__ADOPT_REQUEST__FILES__FILES_SAMPLE] = TARN_INSPECT_SAMPLE,
        [TARN__V1__ADOPT_REQUEST__FILES__FILES_ALL] = TARN_INSPECT_ALL,
        [TARN__V1__ADOPT_REQUEST__FILES__FILES_NONE] = TARN_INSPECT_NONE,
    };
    static const enum tarn_compaction_owner owners[] = {
        [TARN__V1__COMPACTION_OWNER__COMPACTION_OWNER_UNSPECIFIED] = TARN_COMPACTION_KEEP,
        [TARN__V1__COMPACTION_OWNER__COMPACTION_OWNER_TARN] = TARN_COMPACTION_TARN,
        [TARN__V1__COMPACTION_OWNER__COMPACTION_OWNER_WRITERS] = TARN_COMPACTION_WRITERS,
    };
    if ((size_t)q->files >= TARN_COUNT_OF(files))
        return tarn_status_new(TARN_INVALID_ARGUMENT, "files: %d isn't known here", (int)q->files);
    if ((size_t)q->compaction >= TARN_COUNT_OF(owners))
        return tarn_status_new(TARN_INVALID_ARGUMENT, "compaction: %d isn't known here",
                               (int)q->compaction);
    out->files = files[q->files];
    out->compaction = owners[q->compaction];
    return TARN_OK;
}

struct tarn_status *tarn_rpc__adopt(struct tarn_op *op, struct tarn_rpc *rpc,
                                    struct tarn_call *call)
{
    void *request;
    TARN_TRY(tarn_rpc__read(op, call, &tarn__v1__adopt_request__descriptor, &request));
    const Tarn__V1__AdoptRequest *q = request;
    struct tarn_adopt_request r = {
        .targets = tarn_rpc__slices(op, q->targets, q->n_targets),
        .target_count = q->n_targets,
        .check_only = q->check_only,
    };
    TARN_TRY(take_choices(q, &r));
    return tarn_service_adopt(op, tarn_rpc__service(rpc), &r, tell, call);
}
