/*
 * tarn-worker - the process that opens data files: it serves DataService to the daemon and compacts.
 *
 *   tarn-worker --server HOST:PORT [-c FILE] [--set KEY=VALUE]... [--name N] [--listen HOST:PORT] [--slots N]
 *
 * TARN_TOKEN is the secret it shares with the daemon: what it shows there, and what it wants to be shown.
 * SIGTERM and SIGINT: no new tasks, those that run may end within server.drain_timeout, exit 0.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/exec.h"
#include "flight/flight.h"
#include "work/work.h"
#include "base/standard_files.h"

#define THREAD_MAX 128 /* streams that run or wait at a time, and the work beside them */
#define THREAD_STACK_SIZE ((size_t)1 << 20)
#define CANCELLED_MS 5000 /* what a cancelled stream may take to notice */

extern char **environ;

struct arguments {
    const char *server, *config, *name, *listen;
    const char **sets;
    int set_count, slots;
};

struct worker {
    struct arguments arguments;
    struct tarn_conf *conf;
    const char *token;
    char *name, *scratch_dir, *address;
    struct tarn_exec *exec;
    struct tarn_gate *stop;
    struct tarn_channel *daemon;
    struct tarn_flight_tables *tables;
    struct tarn_flight *flight;
    struct tarn_wire_server *server;
    struct tarn_work *work;
};

/* --- arguments and configuration --- */

static const char usage[] =
    "usage: tarn-worker --server HOST:PORT [options]\n"
    "\n"
    "  --server HOST:PORT  the daemon's gRPC address\n"
    "  -c, --config FILE   configuration; worker.*, log.*, s3.*, hdfs.* are read\n"
    "  --set KEY=VALUE     one key, over the file's\n"
    "  --name NAME         how tarn status calls this worker (host and process id)\n"
    "  --listen HOST:PORT  where the daemon reaches this worker (127.0.0.1:0, a free port)\n"
    "  --slots N           compactions at a time (1)\n"
    "  --version, --help\n"
    "\n"
    "TARN_TOKEN in the environment is the secret shared with the daemon.\n";

static int wrong_usage(const char *what)
{
    fprintf(stderr, "tarn-worker: %s\nTry tarn-worker --help.\n", what);
    return 2;
}

/* -1: go on; else the exit code. */
static int parse_arguments(int argc, char **argv, struct arguments *out)
{
    enum { SERVER = 256, SET, NAME, LISTEN, SLOTS, VERSION, HELP };
    static const struct option options[] = {
        {"server", required_argument, NULL, SERVER},
        {"config", required_argument, NULL, 'c'},
        {"set", required_argument, NULL, SET},
        {"name", required_argument, NULL, NAME},
        {"listen", required_argument, NULL, LISTEN},
        {"slots", required_argument, NULL, SLOTS},
        {"version", no_argument, NULL, VERSION},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    int option;

    *out = (struct arguments){.listen = "127.0.0.1:0",
                              .slots = 1,
                              .sets = tarn_calloc((size_t)argc, sizeof(const char *))};
    while ((option = getopt_long(argc, argv, "c:", options, NULL)) != -1) {
        int64_t n = 0;
        switch (option) {
        case SERVER:
            out->server = optarg;
            break;
        case 'c':
            out->config = optarg;
            break;
        case SET:
            out->sets[out->set_count++] = optarg;
            break;
        case NAME:
            out->name = optarg;
            break;
        case LISTEN:
            out->listen = optarg;
            break;
        case SLOTS: {
            struct tarn_status *s = tarn_parse_i64(tarn_slice_str(optarg), &n);
            bool good = s == TARN_OK && n >= 1 && n <= 1000;
            tarn_status_free(s);
            if (!good)
                return wrong_usage("--slots: expected a number from 1 to 1000");
            out->slots = (int)n;
            break;
        }
        case VERSION:
            printf("tarn-worker %s\n", TARN_VERSION);
            return 0;
        case HELP:
            fputs(usage, stdout);
            return 0;
        default:
            fputs("Try tarn-worker --help.\n", stderr);
            return 2;
        }
    }
    if (optind < argc)
        return wrong_usage("there are no arguments but options");
    if (out->server == NULL)
        return wrong_usage("--server HOST:PORT is missing");
    return -1;
}

static struct tarn_status *load_conf(struct worker *worker)
{
    const struct arguments *arguments = &worker->arguments;
    enum tarn_log_level level;

    if (arguments->config != NULL)
        TARN_TRY(tarn_conf_load_file(worker->conf, arguments->config));
    TARN_TRY(tarn_conf_load_environment(worker->conf, environ));
    for (int i = 0; i < arguments->set_count; i++)
        TARN_TRY(tarn_conf_set(worker->conf, arguments->sets[i]));
    TARN_TRY(tarn_log_level_parse(tarn_conf_text(worker->conf, TARN_CONF_log_level), &level));
    tarn_log_set_level(level);
    tarn_log_set_json(strcmp(tarn_conf_text(worker->conf, TARN_CONF_log_format), "json") == 0);
    return TARN_OK;
}

/* Makes a folder and those above it. */
static struct tarn_status *make_folders(char *path)
{
    for (char *at = path + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char end = *at;
        *at = '\0';
        int failed = mkdir(path, 0700);
        int error = errno;
        *at = end;
        if (failed != 0 && error != EEXIST)
            return tarn_status_errno(error, "make folder %s", path);
        if (end == '\0')
            return TARN_OK;
    }
}

static struct tarn_status *choose_scratch(struct worker *worker)
{
    const char *dir = tarn_conf_text(worker->conf, TARN_CONF_worker_scratch_dir);

    worker->scratch_dir =
        dir[0] != '\0'
            ? tarn_strdup(dir)
            : tarn_format("%s/scratch", tarn_conf_text(worker->conf, TARN_CONF_server_data_dir));
    return make_folders(worker->scratch_dir);
}

static char *default_name(void)
{
    char host[256] = "";

    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    return tarn_format("%s-%ld", host[0] == '\0' ? "worker" : host, (long)getpid());
}

/* --- running --- */

static struct tarn_status *admit(void *self, struct tarn_op *op, const char *path TARN_UNUSED,
                                 struct tarn_slice bearer_token)
{
    const struct worker *worker = self;

    if (!tarn_secret_equal(bearer_token, tarn_slice_str(worker->token)))
        return tarn_status_new(TARN_UNAUTHENTICATED, "workers are spoken to by their daemon alone");
    op->principal = "daemon";
    return TARN_OK;
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "localhost:", 10) == 0 ||
           strncmp(address, "[::1]:", 6) == 0;
}

/* Where the daemon reaches this worker. An address of all interfaces is none to call: then the host's
 * name stands for it. */
static char *reachable_address(const char *address)
{
    const char *port = strrchr(address, ':');
    char host[256] = "";

    if (strncmp(address, "0.0.0.0:", 8) != 0 && strncmp(address, "[::]:", 5) != 0)
        return tarn_strdup(address);
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
        return tarn_strdup(address);
    return tarn_format("%s%s", host, port);
}

static struct tarn_status *serve(struct worker *worker)
{
    struct tarn_wire_method methods[TARN_FLIGHT_METHOD_COUNT];
    struct tarn_wire_server_options options = {
        .listen = worker->arguments.listen,
        .exec = worker->exec,
        .message_max_bytes = TARN_FLIGHT_MESSAGE_MAX,
        .admit = worker->token == NULL ? NULL : admit,
        .admit_self = worker,
    };

    if (worker->token == NULL && !is_loopback(options.listen))
        return tarn_status_new(
            TARN_CONFIG_INVALID,
            "--listen %s: only with a secret, in TARN_TOKEN, on an address that is not loopback",
            options.listen);
    tarn_flight_methods(worker->flight, methods);
    return tarn_wire_server_start(&options, methods, TARN_FLIGHT_METHOD_COUNT, &worker->server);
}

/* Rows that are sorted are needed again as columns and as pages: a quarter of the memory at most, or
 * loads that should spill would meet the limit instead. */
static int64_t write_buffer_size(const struct tarn_conf *conf)
{
    int64_t memory = tarn_conf_int(conf, TARN_CONF_worker_memory);
    int64_t buffer = tarn_conf_int(conf, TARN_CONF_worker_write_buffer);

    return memory > 0 ? TARN_MIN(buffer, memory / 4) : buffer;
}

static struct tarn_status *start(struct worker *worker)
{
    struct tarn_channel_options channel = {.address = worker->arguments.server,
                                           .token = worker->token,
                                           .message_max_bytes = TARN_FLIGHT_MESSAGE_MAX};

    TARN_TRY(choose_scratch(worker));
    TARN_TRY(tarn_channel_open(&channel, &worker->daemon));
    worker->tables = tarn_flight_tables_new();
    struct tarn_flight_options flight = {
        .daemon = worker->daemon,
        .tables = worker->tables,
        .scratch_dir = worker->scratch_dir,
        .write_buffer_size = write_buffer_size(worker->conf),
    };
    worker->flight = tarn_flight_new(&flight);
    TARN_TRY(serve(worker));
    worker->address = reachable_address(tarn_wire_server_address(worker->server));
    struct tarn_work_options work = {
        .exec = worker->exec,
        .daemon = worker->daemon,
        .tables = worker->tables,
        .name = worker->name,
        .address = worker->address,
        .version = TARN_VERSION,
        .slots = worker->arguments.slots,
        .memory_max_bytes = tarn_conf_int(worker->conf, TARN_CONF_worker_memory),
        .write_buffer_size = write_buffer_size(worker->conf),
        .scratch_dir = worker->scratch_dir,
    };
    worker->work = tarn_work_start(&work);
    tarn_log(NULL, TARN_INFO, "worker.ready", "name=%s address=%s server=%s",
             tarn_log_quote(NULL, worker->name), work.address, worker->arguments.server);
    return TARN_OK;
}

static void stop_asked(void *arg)
{
    tarn_gate_open(arg);
}

static void end(struct worker *worker)
{
    int64_t until =
        tarn_clock_mono_ms() + tarn_conf_int(worker->conf, TARN_CONF_server_drain_timeout);

    if (worker->work != NULL)
        tarn_work_stop(worker->work, TARN_MAX(until - tarn_clock_mono_ms(), INT64_C(0)));
    if (worker->server != NULL)
        tarn_wire_server_drain(worker->server,
                               TARN_MAX(until - tarn_clock_mono_ms(), (int64_t)CANCELLED_MS));
    tarn_wire_server_free(worker->server);
    tarn_work_free(worker->work);
    tarn_exec_free(worker->exec);
    tarn_flight_free(worker->flight);
    tarn_flight_tables_free(worker->tables);
    tarn_channel_drop(&worker->daemon);
    tarn_gate_free(worker->stop);
    tarn_conf_free(worker->conf);
    free(worker->name);
    free(worker->scratch_dir);
    free(worker->address);
    free(worker->arguments.sets);
}

/* A thread's stack counts as memory from the start, used or not: 8 MiB each would be most of a worker's. */
static void use_small_stacks(void)
{
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, THREAD_STACK_SIZE) == 0)
        pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
}

static int core_count(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 2 ? 2 : n > 64 ? 64 : (int)n;
}

TARN_HOLD_STANDARD_FILES;

int main(int argc, char **argv)
{
    struct worker worker = {0};

    tarn_die_with_parent();
    struct tarn_status *s = tarn_limit_memory();
    int code = parse_arguments(argc, argv, &worker.arguments);
    if (code >= 0) {
        tarn_status_free(s);
        free(worker.arguments.sets);
        return code;
    }
    worker.conf = tarn_conf_new();
    if (s == TARN_OK)
        s = load_conf(&worker);
    worker.token = getenv("TARN_TOKEN");
    if (worker.token != NULL && worker.token[0] == '\0')
        worker.token = NULL;
    worker.name =
        worker.arguments.name != NULL ? tarn_strdup(worker.arguments.name) : default_name();

    use_small_stacks();
    tarn_signals_block();
    tarn_store_configure(worker.conf);
    tarn_wire_init();
    worker.exec = tarn_exec_new(core_count(), THREAD_MAX);
    worker.stop = tarn_gate_new();
    tarn_exec_on_signal(worker.exec, SIGTERM, stop_asked, worker.stop);
    tarn_exec_on_signal(worker.exec, SIGINT, stop_asked, worker.stop);
    if (s == TARN_OK)
        s = start(&worker);
    code = s == TARN_OK ? 0 : 1;
    if (s == TARN_OK)
        tarn_gate_wait(worker.stop, NULL);
    else
        tarn_log_status(NULL, TARN_ERROR, "worker.failed", s);
    end(&worker);
    return code;
}
