#include "fake_server.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define ARGUMENTS_MAX 30

static const char **split(struct tarn_test *t, const char *script, const char *arguments)
{
    size_t argc = 2;
    char *text = tarn_arena_str(t->arena, tarn_slice_str(arguments)), *state = NULL;
    const char **argv = tarn_arena_calloc(t->arena, ARGUMENTS_MAX + 1, sizeof *argv);
    argv[0] = "python3";
    argv[1] = tarn_test_path(t, tarn_arena_printf(t->arena, "lib/%s", script));
    for (char *word = strtok_r(text, " ", &state); word != NULL;
         word = strtok_r(NULL, " ", &state)) {
        tarn_assert(argc < ARGUMENTS_MAX);
        argv[argc++] = word;
    }
    return argv;
}

void fake_server_start(struct tarn_test *t, struct fake_server *fake, const char *script,
                       const char *arguments)
{
    int to[2], from[2];
    char line[64] = "";
    posix_spawn_file_actions_t actions;
    const char **argv = split(t, script, arguments);
    expect_int(pipe2(to, O_CLOEXEC), 0);
    expect_int(pipe2(from, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    int error = posix_spawnp(&fake->pid, argv[0], &actions, NULL, (char *const *)argv, environ);
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
    expect_not_null(fgets(line, sizeof line, fake->out));
    expect_true(sscanf(line, "port %d %d", &fake->ports[0], &fake->ports[1]) >= 1);
}

void fake_server_stop(struct fake_server *fake)
{
    fclose(fake->in); /* the end of its input ends it */
    fclose(fake->out);
    waitpid(fake->pid, NULL, 0);
    *fake = (struct fake_server){0};
}

const char *fake_server_ask(struct tarn_test *t, struct fake_server *fake, const char *line)
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

int fake_server_count(struct tarn_test *t, struct fake_server *fake, const char *kind,
                      const char *part)
{
    int count = 0;
    struct tarn_json *log = NULL;
    expect_ok(tarn_json_parse(tarn_slice_str(fake_server_ask(t, fake, "log")), &log));
    for (size_t i = 0; i < tarn_json_count(log); i++) {
        const struct tarn_json *entry = tarn_json_at(log, i);
        const char *path = tarn_arena_str(t->arena, tarn_json_text(tarn_json_at(entry, 1)));
        count += tarn_slice_is(tarn_json_text(tarn_json_at(entry, 0)), kind) &&
                 strstr(path, part) != NULL;
    }
    tarn_json_free(log);
    return count;
}
