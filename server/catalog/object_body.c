#include "catalog/internal.h"

/* What a view or a function is: members that must have their kinds, and changes of them. */

#define ANY TARN_JSON_NULL /* of what is in it */

struct member {
    const char *name;
    enum tarn_json_kind kind, inner;
    bool needed;
};

static const struct body {
    struct member members[6];
    const char *parts, *part; /* the member that has them; what one is called */
    enum tarn_reason no_part, part_exists;
} bodies[TARN_OBJECT_KIND_COUNT] = {
    [TARN_OBJECT_VIEW] = {{{"query", TARN_JSON_STRING, ANY, true},
                           {"fields", TARN_JSON_ARRAY, TARN_JSON_OBJECT, true},
                           {"dialects", TARN_JSON_OBJECT, TARN_JSON_STRING, false},
                           {"comment", TARN_JSON_STRING, ANY, false},
                           {"options", TARN_JSON_OBJECT, ANY, false}},
                          "dialects",
                          "dialect",
                          TARN_DIALECT_NOT_FOUND,
                          TARN_DIALECT_EXISTS},
    [TARN_OBJECT_FUNCTION] = {{{"inputParams", TARN_JSON_ARRAY, TARN_JSON_OBJECT, false},
                               {"returnParams", TARN_JSON_ARRAY, TARN_JSON_OBJECT, false},
                               {"deterministic", TARN_JSON_BOOL, ANY, false},
                               {"definitions", TARN_JSON_OBJECT, TARN_JSON_OBJECT, false},
                               {"comment", TARN_JSON_STRING, ANY, false},
                               {"options", TARN_JSON_OBJECT, ANY, false}},
                              "definitions",
                              "definition",
                              TARN_DEFINITION_NOT_FOUND,
                              TARN_DEFINITION_EXISTS},
};

static const char *const words[] = {
    [TARN_JSON_NULL] = "null",    [TARN_JSON_BOOL] = "boolean", [TARN_JSON_INTEGER] = "integer",
    [TARN_JSON_REAL] = "number",  [TARN_JSON_STRING] = "text",  [TARN_JSON_ARRAY] = "array",
    [TARN_JSON_OBJECT] = "object"};

/* --- checking --- */

static struct tarn_status *check_inner(const struct member *m, const struct tarn_json *value)
{
    void *cursor = NULL;
    struct tarn_slice key;
    const struct tarn_json *inner;
    bool fine = true;
    if (m->inner == ANY)
        return TARN_OK;
    if (m->kind == TARN_JSON_ARRAY)
        for (size_t i = 0; fine && i < tarn_json_count(value); i++)
            fine = tarn_json_kind(tarn_json_at(value, i)) == m->inner;
    else
        while (fine && tarn_json_next(value, &cursor, &key, &inner))
            fine = tarn_json_kind(inner) == m->inner;
    return fine ? TARN_OK
                : tarn_status_new(TARN_INVALID_ARGUMENT, "in \"%s\" is something that is no %s",
                                  m->name, words[m->inner]);
}

static struct tarn_status *check_member(const struct member *m, const struct tarn_json *body)
{
    const struct tarn_json *value = tarn_json_find(body, m->name);
    if (value == NULL || tarn_json_kind(value) == TARN_JSON_NULL)
        return m->needed ? tarn_status_new(TARN_INVALID_ARGUMENT, "\"%s\" is missing", m->name)
                         : TARN_OK;
    if (tarn_json_kind(value) != m->kind)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "\"%s\" is no %s", m->name, words[m->kind]);
    return check_inner(m, value);
}

struct tarn_status *tarn_catalog__check_body(enum tarn_object_kind kind,
                                             const struct tarn_json *body)
{
    const struct body *b = &bodies[kind];
    if (tarn_json_kind(body) != TARN_JSON_OBJECT)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a %s is a JSON object",
                               tarn_catalog__object_word(kind));
    for (size_t i = 0; i < TARN_COUNT_OF(b->members) && b->members[i].name != NULL; i++)
        TARN_TRY(tarn_status_wrap(check_member(&b->members[i], body), "%s",
                                  tarn_catalog__object_word(kind)));
    return TARN_OK;
}

/* --- changing --- */

/* Options and parts stand for themselves until all is well, so that many changes copy them once. */
struct draft {
    const struct body *kind;
    struct tarn_json *body, *options, *parts;
};

static void draft_fini(struct draft *d)
{
    tarn_json_free(d->options);
    tarn_json_free(d->parts);
}

static struct tarn_json *copy_member(const struct tarn_json *body, const char *name)
{
    const struct tarn_json *value = tarn_json_find(body, name);
    return value == NULL || tarn_json_kind(value) == TARN_JSON_NULL ? tarn_json_object()
                                                                    : tarn_json_copy(value);
}

static struct tarn_status *wrong_part(enum tarn_reason reason, const struct draft *d,
                                      const char *name)
{
    bool there = reason == d->kind->part_exists;
    struct tarn_status *s = tarn_status_new(reason, "%s%s %s%s", there ? "" : "there is no ",
                                            d->kind->part, name, there ? " exists" : "");
    tarn_status_set(s, "part", name);
    return s;
}

/* A dialect's text, a definition's object. */
static struct tarn_status *make_part(const struct draft *d, struct tarn_slice text,
                                     struct tarn_json **out)
{
    if (d->kind == &bodies[TARN_OBJECT_VIEW]) {
        *out = tarn_json_string(text);
        return TARN_OK;
    }
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    TARN_TRY(tarn_status_wrap(tarn_json_parse(text, &json), "the definition"));
    if (tarn_json_kind(json) != TARN_JSON_OBJECT)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the definition is no JSON object");
    *out = tarn_move(json);
    return TARN_OK;
}

static struct tarn_status *change_part(struct draft *d, const struct tarn_object_change *c,
                                       const char *name)
{
    struct tarn_json *part;
    bool there = tarn_json_find(d->parts, name) != NULL;
    if (c->kind == TARN_OBJECT_ADD_PART ? there : !there)
        return wrong_part(there ? d->kind->part_exists : d->kind->no_part, d, name);
    if (c->kind == TARN_OBJECT_DROP_PART) {
        tarn_json_remove(d->parts, name);
        return TARN_OK;
    }
    TARN_TRY(make_part(d, c->value, &part));
    tarn_json_set(d->parts, name, part);
    return TARN_OK;
}

static bool is_text(struct tarn_slice s)
{
    return s.size == 0 || (tarn_utf8_valid(s) && memchr(s.data, 0, s.size) == NULL);
}

static struct tarn_status *change(struct tarn_op *op, struct draft *d,
                                  const struct tarn_object_change *c)
{
    const char *key = tarn_arena_str(op->arena, c->key);
    if (!is_text(c->key) || !is_text(c->value))
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "a name or value in a change is not UTF-8, or has a NUL in it");
    if (c->kind != TARN_OBJECT_COMMENT && c->key.size == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a change names no option and no %s",
                               d->kind->part);
    switch (c->kind) {
    case TARN_OBJECT_SET_OPTION:
        tarn_json_set(d->options, key, tarn_json_string(c->value));
        return TARN_OK;
    case TARN_OBJECT_REMOVE_OPTION:
        tarn_json_remove(d->options, key);
        return TARN_OK;
    case TARN_OBJECT_COMMENT:
        tarn_json_set(d->body, "comment",
                      c->value.data == NULL ? tarn_json_null() : tarn_json_string(c->value));
        return TARN_OK;
    case TARN_OBJECT_ADD_PART:
    case TARN_OBJECT_UPDATE_PART:
    case TARN_OBJECT_DROP_PART:
        return change_part(d, c, key);
    }
    return tarn_status_new(TARN_INVALID_ARGUMENT, "there is no such change");
}

struct tarn_status *tarn_catalog__change_body(struct tarn_op *op, enum tarn_object_kind kind,
                                              struct tarn_json *body,
                                              const struct tarn_object_change *changes,
                                              size_t count)
{
    TARN_OWN(draft_fini)
    struct draft d = {.kind = &bodies[kind],
                      .body = body,
                      .options = copy_member(body, "options"),
                      .parts = copy_member(body, bodies[kind].parts)};
    for (size_t i = 0; i < count; i++)
        TARN_TRY(change(op, &d, &changes[i]));
    tarn_json_set(body, "options", tarn_move(d.options));
    tarn_json_set(body, bodies[kind].parts, tarn_move(d.parts));
    return TARN_OK;
}
