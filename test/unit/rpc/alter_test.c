/* Changes of a schema come from the wire as they were meant: one message may be several, what is not set stays, what is empty goes. */
#include "test.h"

#include "rpc/alter.h"

static ProtobufCBinaryData b(const char *text)
{
    return tarn_rpc__bytes(tarn_slice_str(text));
}

static struct tarn_status *convert(struct tarn_test *t, Tarn__V1__SchemaChange *message,
                                   struct tarn_schema_change **out, size_t *count)
{
    return tarn_rpc__changes(t->op, &message, 1, out, count);
}

TARN_TEST(alter, a_column_is_altered_part_by_part)
{
    Tarn__V1__SchemaChange message = TARN__V1__SCHEMA_CHANGE__INIT;
    Tarn__V1__AlterColumn alter;
    ProtobufCBinaryData parent[] = {b("r"), b("element")};
    struct tarn_schema_change *got;
    size_t count;
    tarn__v1__alter_column__init(&alter);
    message.change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_ALTER_COLUMN;
    message.alter_column = &alter;
    alter.name = b("x");
    alter.parent = parent;
    alter.n_parent = 2;
    expect_ok(convert(t, &message, &got, &count));
    expect_int(count, 0);

    alter.type = (char *)(uintptr_t) "BIGINT NOT NULL";
    alter._nullable_case = TARN__V1__ALTER_COLUMN___NULLABLE_NULLABLE;
    alter.nullable = true;
    alter._description_case = TARN__V1__ALTER_COLUMN___DESCRIPTION_DESCRIPTION;
    alter._default_case = TARN__V1__ALTER_COLUMN___DEFAULT_DEFAULT_VALUE;
    expect_ok(convert(t, &message, &got, &count));
    expect_int(count, 4);
    expect_int(got[0].kind, TARN_CHANGE_COLUMN_TYPE);
    expect_int(got[0].path_count, 3);
    expect_slice(got[0].path[1], "element");
    expect_slice(got[0].path[2], "x");
    expect_false(got[0].keep_nullable); /* it says NOT NULL */
    expect_int(got[1].kind, TARN_CHANGE_COLUMN_NULLABILITY);
    expect_true(got[1].nullable);
    expect_int(got[2].kind, TARN_CHANGE_COLUMN_COMMENT);
    expect_null(got[2].value.data); /* empty: none */
    expect_int(got[3].kind, TARN_CHANGE_COLUMN_DEFAULT);
    expect_int(got[3].value.size, 0); /* empty text is a default */
    assert_non_null(got[3].value.data);

    alter.drop_default = true;
    expect_status(convert(t, &message, &got, &count), TARN_INVALID_ARGUMENT, "set and dropped");
    alter._default_case = TARN__V1__ALTER_COLUMN___DEFAULT__NOT_SET;
    alter.type = (char *)(uintptr_t) "BIGINT";
    expect_ok(convert(t, &message, &got, &count));
    expect_int(count, 4);
    expect_true(got[0].keep_nullable);
    expect_null(got[3].value.data);
    alter.type = (char *)(uintptr_t) "BIGIN";
    expect_status(convert(t, &message, &got, &count), TARN_SCHEMA_INVALID, "type of column x");
}

TARN_TEST(alter, a_column_is_added_with_its_default)
{
    Tarn__V1__SchemaChange message = TARN__V1__SCHEMA_CHANGE__INIT;
    Tarn__V1__AddColumn add = TARN__V1__ADD_COLUMN__INIT;
    Tarn__V1__Field field = TARN__V1__FIELD__INIT;
    struct tarn_schema_change *got;
    size_t count;
    message.change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_ADD_COLUMN;
    message.add_column = &add;
    expect_status(convert(t, &message, &got, &count), TARN_INVALID_ARGUMENT, "no field");
    add.field = &field;
    field.name = b("n");
    field.type = (char *)(uintptr_t) "INT";
    field.description = b("why");
    field.default_value = b("7");
    add.after = b("k");
    expect_ok(convert(t, &message, &got, &count));
    expect_int(count, 2);
    expect_int(got[0].kind, TARN_CHANGE_ADD_COLUMN);
    expect_slice(got[0].value, "why");
    expect_int(got[0].move, TARN_MOVE_AFTER);
    expect_slice(got[0].reference, "k");
    expect_int(got[1].kind, TARN_CHANGE_COLUMN_DEFAULT);
    expect_slice(got[1].value, "7");
    add.last = true;
    expect_status(convert(t, &message, &got, &count), TARN_INVALID_ARGUMENT, "only one of");
}

TARN_TEST(alter, an_empty_change_is_refused)
{
    Tarn__V1__SchemaChange message = TARN__V1__SCHEMA_CHANGE__INIT;
    struct tarn_schema_change *got;
    size_t count;
    expect_status(convert(t, &message, &got, &count), TARN_INVALID_ARGUMENT, "empty or not known");
}
