/*
 * Schemas and changes in, next schemas out, for evolve.py: a line {"schema": {...}, "changes": [...], "snapshot": true} is answered by
 * "ok SCHEMA" or "REASON what is wrong".
 */
#include <stdio.h>
#include <stdlib.h>

#include "schema_changes.h"

static struct tarn_status *answer(struct tarn_slice line, struct tarn_arena *arena,
                                  struct tarn_buf *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    TARN_OWN(tarn_json_drop) struct tarn_json *doc = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_schema schema, next;
    struct tarn_schema_change *changes;
    size_t count;
    TARN_TRY(tarn_json_parse(line, &json));
    tarn_json_print(tarn_json_find(json, "schema"), 0, &text);
    TARN_TRY(tarn_schema_decode(tarn_buf_slice(&text), arena, &schema));
    TARN_TRY(tarn_test_schema_changes(tarn_json_find(json, "changes"), arena, &changes, &count));
    TARN_TRY(tarn_schema_evolve(&schema, changes, count,
                                tarn_json_is_true(tarn_json_find(json, "snapshot")), 0, arena,
                                &next));
    tarn_buf_clear(&text);
    tarn_schema_encode(&next, &text);
    TARN_TRY(tarn_json_parse(tarn_buf_slice(&text), &doc));
    tarn_json_print(doc, 0, out);
    return TARN_OK;
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    while ((size = getline(&line, &room, stdin)) > 0) {
        TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
        TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
        TARN_OWN(tarn_status_drop) struct tarn_status *s =
            answer(tarn_slice_of(line, (size_t)size), arena, &out);
        printf("%s %s\n", s == NULL ? "ok" : tarn_reason_name(tarn_status_reason(s)),
               s == NULL ? tarn_buf_cstr(&out) : tarn_status_message(s));
    }
    free(line);
    return 0;
}
