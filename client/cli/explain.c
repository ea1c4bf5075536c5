#include "explain.h"

#include "print.h"

/* --- messages as JSON --- */

static const void *member(const ProtobufCMessage *m, unsigned offset)
{
    return (const uint8_t *)m + offset;
}

static struct tarn_json *value_json(const ProtobufCFieldDescriptor *f, const void *at)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
        return tarn_json_integer(*(const int32_t *)at);
    case PROTOBUF_C_TYPE_INT64:
        return tarn_json_integer(*(const int64_t *)at);
    case PROTOBUF_C_TYPE_DOUBLE:
        return tarn_json_real(*(const double *)at);
    case PROTOBUF_C_TYPE_BOOL:
        return tarn_json_bool(*(const protobuf_c_boolean *)at != 0);
    case PROTOBUF_C_TYPE_STRING:
        return tarn_json_string(tarn_slice_str(*(char *const *)at));
    case PROTOBUF_C_TYPE_MESSAGE:
        return *(ProtobufCMessage *const *)at == NULL
                   ? tarn_json_null()
                   : tarn_cli_message_json(*(ProtobufCMessage *const *)at);
    default:
        return tarn_json_null(); /* such messages have no others */
    }
}

static struct tarn_json *list_json(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    struct tarn_json *list = tarn_json_array();
    size_t count = *(const size_t *)member(m, f->quantifier_offset);
    ProtobufCMessage *const *items = *(ProtobufCMessage *const *const *)member(m, f->offset);
    for (size_t i = 0; i < count && f->type == PROTOBUF_C_TYPE_MESSAGE; i++)
        tarn_json_add(list, tarn_cli_message_json(items[i]));
    return list;
}

struct tarn_json *tarn_cli_message_json(const ProtobufCMessage *m)
{
    struct tarn_json *object = tarn_json_object();
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        tarn_json_set(object, f->name,
                      f->label == PROTOBUF_C_LABEL_REPEATED ? list_json(m, f)
                                                            : value_json(f, member(m, f->offset)));
    }
    return object;
}

/* --- for people --- */

static void say_score(struct tarn_cli *cli, const Tarn__V1__Decision *d)
{
    const Tarn__V1__ScoreInputs *in = d->inputs;
    const Tarn__V1__Score *s = d->score;
    tarn_cli_say(cli,
                 "  score %.3f = ordered %g + stopped %g + deadline %.3g + ((2 x read %.3g + "
                 "deletes %.3g + small %.3g + full %.3g) / cost %.3g + age %.3g) x fairness %.3g",
                 s->total, s->ordered, s->stopped, s->deadline, s->read, s->deletes, s->small,
                 s->full, s->cost, s->age, s->fairness);
    tarn_cli_say(cli,
                 "  from: %d runs, trigger %d, stop %d; %" PRId64 " of %" PRId64
                 " rows are deletes; %" PRId64 " of %" PRId64 " files are small; %" PRId64
                 " bytes picked, %" PRId64 " of them new; waiting for %.1f s",
                 in->sorted_runs, in->trigger, in->stop_trigger, in->delete_rows, in->rows,
                 in->small_files, in->files, in->pick_bytes, in->new_bytes,
                 (double)in->waiting_ms / 1000);
    if (in->freshness_ms > 0)
        tarn_cli_say(cli, "  deadline: %.1f s behind, freshness %.1f s", (double)in->lag_ms / 1000,
                     (double)in->freshness_ms / 1000);
}

static void say_budget(struct tarn_cli *cli, const char *of, const char *unit,
                       const Tarn__V1__Budget *b)
{
    if (b != NULL && b->per_second > 0)
        tarn_cli_say(cli, "  budget of the %s: %" PRId64 " %s a second, %" PRId64 " there", of,
                     b->per_second, unit, b->tokens);
}

static void say_memory(struct tarn_cli *cli, const char *of, int64_t used, int64_t most)
{
    if (most > 0)
        tarn_cli_say(cli, "  memory of the %s: %" PRId64 " of %" PRId64 " bytes in use", of, used,
                     most);
}

static void say_pick(struct tarn_cli *cli, const Tarn__V1__Pick *p)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf runs = {0};
    for (size_t i = 0; i < p->n_runs && i < 12; i++)
        tarn_buf_printf(&runs, "%sL%d %" PRId64, i == 0 ? "" : ", ", p->runs[i]->level,
                        p->runs[i]->bytes);
    int64_t more = (int64_t)p->n_runs - 12 + p->runs_left_out;
    if (more > 0)
        tarn_buf_printf(&runs, ", %" PRId64 " more", more);
    tarn_cli_say(cli, "  picked by the rules of %s from (level, bytes): %s", p->rules,
                 tarn_buf_cstr(&runs));
}

void tarn_cli_say_decision(struct tarn_cli *cli, const Tarn__V1__Job *job)
{
    const Tarn__V1__Decision *d = job->decision;
    if (d == NULL || d->inputs == NULL || d->score == NULL)
        return;
    if (job->id != 0)
        tarn_cli_say(cli, "job %" PRId64 ": %s, %s", job->id, job->state, job->why);
    else
        tarn_cli_say(cli, "bucket %d%s%s: %s", job->bucket, job->partition[0] == '\0' ? "" : " of ",
                     job->partition, job->why);
    say_score(cli, d);
    if (d->held_by[0] != '\0')
        tarn_cli_say(cli, "  held back by %s", d->held_by);
    if (d->queued > 0)
        tarn_cli_say(cli, "  the best of %" PRId64 " that waited", d->queued);
    for (size_t i = 0; i < d->n_alternatives; i++)
        tarn_cli_say(cli, "  next: job %" PRId64 " of %s, score %.3f", d->alternatives[i]->job,
                     d->alternatives[i]->table, d->alternatives[i]->score);
    say_budget(cli, "daemon", "bytes", d->daemon_bytes);
    say_budget(cli, "daemon", "ns of CPU", d->daemon_cpu);
    say_budget(cli, "database", "bytes", d->database_bytes);
    say_budget(cli, "table", "bytes", d->table_bytes);
    say_budget(cli, "database", "ns of CPU", d->database_cpu);
    say_budget(cli, "table", "ns of CPU", d->table_cpu);
    say_memory(cli, "daemon", d->memory_bytes, d->memory_max_bytes);
    say_memory(cli, "database", d->database_memory_bytes, d->database_memory_max_bytes);
    say_memory(cli, "table", d->table_memory_bytes, d->table_memory_max_bytes);
    if (d->pick != NULL)
        say_pick(cli, d->pick);
}
