/*
 * Who asks: mode none trusts everybody, mode token those of the file; tokens that are wrong, short or readable by
 * everybody are refused; workers of other hosts join by the token of principal tarn-worker.
 */
#include "access/access.h"
#include "test/lib/test.h"

#include <sys/stat.h>

static struct tarn_status *open_with(struct tarn_test *t, const char *mode, const char *tokens,
                                     struct tarn_access **out)
{
    TARN_OWN(tarn_conf_drop) struct tarn_conf *conf = tarn_conf_new();
    const char *path = tarn_arena_printf(t->arena, "%s/tokens", tarn_test_dir(t));
    tarn_test_write_file(path, tarn_slice_str(tokens));
    chmod(path, 0600);
    expect_ok(tarn_conf_set(conf, tarn_arena_printf(t->arena, "auth.mode=%s", mode)));
    expect_ok(tarn_conf_set(conf, tarn_arena_printf(t->arena, "auth.token_file=%s", path)));
    return tarn_access_open(conf, out);
}

static const char *who(struct tarn_test *t, struct tarn_access *access, const char *token)
{
    struct tarn_status *s = tarn_access_authenticate(access, t->op, tarn_slice_str(token));
    const char *name = s == TARN_OK ? t->op->principal : tarn_reason_name(tarn_status_reason(s));
    tarn_status_free(s);
    return name;
}

TARN_TEST(access, mode_none_trusts_everybody)
{
    struct tarn_access *access;
    expect_ok(open_with(t, "none", "", &access));
    expect_str(who(t, access, ""), "anonymous");
    expect_str(who(t, access, tarn_access_worker_secret(access)), "tarn-worker");
    expect_ok(tarn_access_check(access, t->op, TARN_ACTION_WORK, NULL, NULL));
    tarn_access_close(access);
}

TARN_TEST(access, mode_token_wants_a_token_of_the_file)
{
    struct tarn_access *access;
    expect_ok(open_with(t, "token", "# people\nada:secret-of-ada\n\nbare-token-here\r\n", &access));
    expect_str(who(t, access, ""), "UNAUTHENTICATED");
    expect_str(who(t, access, "secret-of-bob"), "UNAUTHENTICATED");
    expect_str(who(t, access, "secret-of-ada"), "ada");
    expect_str(who(t, access, "bare-token-here"), "token-4");
    expect_status(tarn_access_check(access, t->op, TARN_ACTION_WORK, NULL, NULL),
                  TARN_PERMISSION_DENIED, "token-4");
    expect_ok(tarn_access_check(access, t->op, TARN_ACTION_READ, "db", "t"));
    tarn_access_close(access);
}

TARN_TEST(access, workers_of_other_hosts_join_by_the_token_of_their_name)
{
    struct tarn_access *access;
    expect_ok(open_with(t, "token", "tarn-worker:of-all-workers\n", &access));
    expect_str(tarn_access_worker_secret(access), "of-all-workers");
    expect_str(who(t, access, "of-all-workers"), "tarn-worker");
    expect_ok(tarn_access_check(access, t->op, TARN_ACTION_WORK, NULL, NULL));
    tarn_access_close(access);
}

TARN_TEST(access, principals_are_those_of_the_file_each_once)
{
    struct tarn_access *access;
    const struct tarn_slice *list;
    size_t count;
    expect_ok(open_with(t, "token",
                        "tarn-worker:of-all-workers\nzoe:secret-of-zoe\nada:secret-of-ada\n"
                        "ada:another-of-ada\n",
                        &access));
    tarn_access_principals(access, t->op, &list, &count);
    expect_int((int64_t)count, 2);
    expect_slice(list[0], "ada");
    expect_slice(list[1], "zoe");
    tarn_access_close(access);
}

TARN_TEST(access, refuses_files_and_modes_that_are_no_good)
{
    struct tarn_access *access;
    expect_status(open_with(t, "token", "", &access), TARN_CONFIG_INVALID, "no token");
    expect_status(open_with(t, "token", "ada:short\n", &access), TARN_CONFIG_INVALID, ":1:");
    expect_status(open_with(t, "password", "", &access), TARN_CONFIG_INVALID, "none or token");
    expect_status(open_with(t, "oidc", "", &access), TARN_UNIMPLEMENTED, "oidc");
}
