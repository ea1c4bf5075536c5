#include "fake_s3.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define ARGUMENTS_MAX 30

static void split(struct tarn_test *t, const char *arguments, const char **argv, size_t *argc)
{
    char *text = tarn_arena_str(t->arena, tarn_slice_str(arguments)), *state = NULL;
    for (char *word = strtok_r(text, " ", &state); word != NULL;
         word = strtok_r(NULL, " ", &state)) {
        tarn_assert(*argc < ARGUMENTS_MAX);
        argv[(*argc)++] = word;
    }
}

void fake_s3_start(struct tarn_test *t, struct fake_s3 *fake, const char *arguments)
{
    int to[2], from[2];
    size_t argc = 2;
    const char *argv[ARGUMENTS_MAX + 1] = {"python3", tarn_test_path(t, "lib/fake_s3.py")};
    posix_spawn_file_actions_t actions;
    split(t, arguments, argv, &argc);
    expect_int(pipe2(to, O_CLOEXEC), 0);
    expect_int(pipe2(from, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    int error = posix_spawnp(&fake->pid, "python3", &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    if (error != 0) {
        close(to[1]);
        close(from[0]);
        tarn_test_skip(t, "there is no python3");
    }
    fake->in = fdopen(to[1], "w");
    fake->out = fdopen(from[0], "r");
    signal(SIGPIPE, SIG_IGN);
    char line[64] = "";
    expect_not_null(fgets(line, sizeof line, fake->out));
    expect_int(sscanf(line, "port %d", &fake->port), 1);
}

void fake_s3_stop(struct fake_s3 *fake)
{
    fclose(fake->in); /* the end of its input ends it */
    fclose(fake->out);
    waitpid(fake->pid, NULL, 0);
    *fake = (struct fake_s3){0};
}

const char *fake_s3_ask(struct tarn_test *t, struct fake_s3 *fake, const char *line)
{
    char *answer = NULL;
    size_t capacity = 0;
    fprintf(fake->in, "%s\n", line);
    fflush(fake->in);
    ssize_t size = getline(&answer, &capacity, fake->out);
    const char *kept =
        tarn_arena_str(t->arena, tarn_slice_of(answer, size > 0 ? (size_t)size - 1 : 0));
    free(answer);
    expect_true(size > 0);
    return kept;
}

int fake_s3_count(struct tarn_test *t, struct fake_s3 *fake, const char *method, const char *part)
{
    int count = 0;
    struct tarn_json *log = NULL;
    expect_ok(tarn_json_parse(tarn_slice_str(fake_s3_ask(t, fake, "log")), &log));
    for (size_t i = 0; i < tarn_json_count(log); i++) {
        const struct tarn_json *entry = tarn_json_at(log, i);
        const char *path = tarn_arena_str(t->arena, tarn_json_text(tarn_json_at(entry, 1)));
        count += tarn_slice_is(tarn_json_text(tarn_json_at(entry, 0)), method) &&
                 strstr(path, part) != NULL;
    }
    tarn_json_free(log);
    return count;
}
