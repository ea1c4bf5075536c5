/*
 * tarnd - the daemon: reads its configuration, builds the rooms from the bottom up, serves until it
 * is told to stop, and takes them down again in the reverse order.
 *
 *   tarnd [-c FILE] [--set KEY=VALUE]... [--check-config] [--version] [--help]
 *
 * SIGTERM, SIGINT  drain: workers end their tasks, running calls may go on for server.drain_timeout
 * SIGHUP           reads log.level, the tokens and TLS' certificates again
 * Exit codes       0 fine, 1 it failed (one line says why), 2 wrong usage
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/access.h"
#include "catalog/entries.h"
#include "exec/exec.h"
#include "hms/hms.h"
#include "http/http.h"
#include "maintain/maintain.h"
#include "rest/rest.h"
#include "rpc/rpc.h"
#include "service/subscribe.h"
#include "state/state.h"
#include "store/store.h"
#include "wire/wire.h"
#include "base/standard_files.h"

#define CALLS_MAX 480    /* carried out at once */
#define THREADS_SPARE 64 /* beside those and HTTP's: mailboxes, timers */
#define WORKERS_MAX 256
#define WORKER_START_MAX_MS ((int64_t)30000) /* one not registered by then, or again, hangs */

extern char **environ;
extern const unsigned char tarn_descriptors[];
extern const size_t tarn_descriptors_size;

struct arguments {
    const char *config;
    const char **sets;
    int set_count;
    bool check_config;
};

struct daemon {
    struct arguments arguments;
    struct tarn_conf *conf;
    char *data_dir, *scratch_dir;
    struct tarn_gate *stop;
    pthread_mutex_t reload_lock; /* one reload at a time */

    struct tarn_exec *exec;
    struct tarn_state *state;
    struct tarn_store *store;
    struct tarn_access *access;
    struct tarn_table_env env;
    struct tarn_catalog *catalog;
    /* Made after the catalog, which notices commits; gone before it. Who tells them of a commit holds hooks_lock shared. */
    pthread_rwlock_t hooks_lock;
    _Atomic(struct tarn_maintain *) maintain;
    _Atomic(struct tarn_subscriptions *) subscriptions;
    _Atomic(struct tarn_hms *) hms; /* NULL: no Hive metastore is mirrored */
    struct tarn_service service;
    struct tarn_rpc *rpc;
    struct tarn_rest *rest;
    struct tarn_wire_server *server;
    struct tarn_http *http;
    struct tarn_supervisor *supervisor;
};

/* --- arguments --- */

static const char usage[] =
    "usage: tarnd [options]\n"
    "\n"
    "  -c, --config FILE  configuration; conf/tarnd.conf lists every key\n"
    "  --set KEY=VALUE    one key (server.grpc_listen=127.0.0.1:0), over file and environment\n"
    "  --check-config     print the effective configuration and end\n"
    "  --version, --help\n"
    "\n"
    "Without any: data in ./tarn-data, gRPC at 127.0.0.1:7420, HTTP at 127.0.0.1:7421, one local\n"
    "worker per core.\n";

/* -1: go on; else the exit code. */
static int parse_arguments(int argc, char **argv, struct arguments *out)
{
    enum { SET = 256, CHECK, VERSION, HELP };
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},   {"set", required_argument, NULL, SET},
        {"check-config", no_argument, NULL, CHECK}, {"version", no_argument, NULL, VERSION},
        {"help", no_argument, NULL, HELP},          {NULL, 0, NULL, 0},
    };
    int option;
    out->sets = tarn_calloc((size_t)argc + 1, sizeof *out->sets);
    while ((option = getopt_long(argc, argv, "c:", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            out->config = optarg;
            break;
        case SET:
            out->sets[out->set_count++] = optarg;
            break;
        case CHECK:
            out->check_config = true;
            break;
        case VERSION:
            printf("tarnd %s\n", TARN_VERSION);
            return 0;
        case HELP:
            fputs(usage, stdout);
            return 0;
        default:
            fputs("Try tarnd --help.\n", stderr);
            return 2;
        }
    }
    if (optind == argc)
        return -1;
    fprintf(stderr, "tarnd: there are no arguments but options\nTry tarnd --help.\n");
    return 2;
}

/* --- configuration --- */

static struct tarn_status *load_conf(const struct arguments *arguments, struct tarn_conf *conf)
{
    if (arguments->config != NULL)
        TARN_TRY(tarn_conf_load_file(conf, arguments->config));
    TARN_TRY(tarn_conf_load_environment(conf, environ));
    for (int i = 0; i < arguments->set_count; i++)
        TARN_TRY(tarn_conf_set(conf, arguments->sets[i]));
    return TARN_OK;
}

static struct tarn_catalog_options catalog_options(const struct tarn_conf *conf)
{
    return (struct tarn_catalog_options){
        .folders_by_uuid =
            strcmp(tarn_conf_text(conf, TARN_CONF_warehouse_table_folders), "uuid") == 0,
        .external_paths = tarn_conf_text(conf, TARN_CONF_warehouse_external_paths),
    };
}

static struct tarn_status *check_places(const struct tarn_conf *conf)
{
    const char *folders = tarn_conf_text(conf, TARN_CONF_warehouse_table_folders);
    struct tarn_catalog_options options = catalog_options(conf);
    if (strcmp(folders, "name") != 0 && strcmp(folders, "uuid") != 0)
        return tarn_status_new(TARN_CONFIG_INVALID,
                               "warehouse.table_folders = %s; want name or uuid", folders);
    return tarn_catalog_check_options(&options);
}

static struct tarn_status *check_range(const struct tarn_conf *conf, enum tarn_conf_key key,
                                       int64_t low, int64_t high)
{
    int64_t value = tarn_conf_int(conf, key);
    if (value >= low && value <= high)
        return TARN_OK;
    return tarn_status_new(TARN_CONFIG_INVALID, "%s = %" PRId64 "; want %" PRId64 " to %" PRId64,
                           tarn_conf_key_name(key), value, low, high);
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "localhost:", 10) == 0 ||
           strncmp(address, "[::1]:", 6) == 0;
}

static struct tarn_status *check_address(const struct tarn_conf *conf, enum tarn_conf_key key)
{
    const char *address = tarn_conf_text(conf, key);
    const char *colon = strrchr(address, ':');
    int64_t port = -1;
    if (colon != NULL && colon != address)
        tarn_status_free(tarn_parse_i64(tarn_slice_str(colon + 1), &port));
    if (port < 0 || port > 65535)
        return tarn_status_new(TARN_CONFIG_INVALID, "%s = %s; want HOST:PORT",
                               tarn_conf_key_name(key), address);
    if (strcmp(tarn_conf_text(conf, TARN_CONF_auth_mode), "none") == 0 && !is_loopback(address) &&
        !tarn_conf_bool(conf, TARN_CONF_auth_allow_insecure))
        return tarn_status_new(TARN_CONFIG_INVALID,
                               "%s = %s is open to other hosts while auth.mode = none; set "
                               "auth.mode = token, or auth.allow_insecure = true",
                               tarn_conf_key_name(key), address);
    return TARN_OK;
}

static struct tarn_status *check_warehouse_name(const char *name)
{
    bool good = name[0] != '\0' && strlen(name) <= 128;
    for (const char *c = name; good && *c != '\0'; c++)
        good = isalnum((unsigned char)*c) || strchr("._-", *c) != NULL;
    return good ? TARN_OK
                : tarn_status_new(TARN_CONFIG_INVALID, "warehouse.name = %s; want [A-Za-z0-9._-]+",
                                  name);
}

static struct tarn_status *apply_log_level(const struct tarn_conf *conf)
{
    enum tarn_log_level level;
    TARN_TRY(tarn_log_level_parse(tarn_conf_text(conf, TARN_CONF_log_level), &level));
    tarn_log_set_level(level);
    return TARN_OK;
}

/* Beside our own program, unless worker.program says otherwise. */
static char *worker_program(const struct tarn_conf *conf)
{
    const char *given = tarn_conf_text(conf, TARN_CONF_worker_program);
    if (given[0] != '\0')
        return tarn_strdup(given);
    char self[4096];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size < 0 ? 0 : size] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL)
        *slash = '\0';
    return tarn_format("%s/tarn-worker", self);
}

static struct tarn_status *check_hms(const struct tarn_conf *conf)
{
    const char *uri = tarn_conf_text(conf, TARN_CONF_hms_uri);
    if (uri[0] != '\0')
        TARN_TRY(tarn_hms_check_uri(uri));
    TARN_TRY(check_range(conf, TARN_CONF_hms_check_interval, 100, 86400000));
    TARN_TRY(check_range(conf, TARN_CONF_hms_connect_timeout, 1, 600000));
    return check_range(conf, TARN_CONF_hms_timeout, 1, 3600000);
}

static struct tarn_status *check_warehouse_uri(const char *uri)
{
    TARN_OWN(tarn_status_drop)
    struct tarn_status *s = uri[0] == '\0' ? TARN_OK : tarn_store_check_uri(uri);
    if (s == TARN_OK)
        return TARN_OK;
    return tarn_status_new(tarn_status_reason(s) == TARN_UNIMPLEMENTED ? TARN_UNIMPLEMENTED
                                                                       : TARN_CONFIG_INVALID,
                           "warehouse.uri: %s", tarn_status_message(s));
}

/* Opening it reads the token file. */
static struct tarn_status *check_auth(const struct tarn_conf *conf)
{
    struct tarn_access *access = NULL;
    TARN_TRY(tarn_access_open(conf, &access));
    tarn_access_close(access);
    return TARN_OK;
}

static struct tarn_status *check_worker_program(const struct tarn_conf *conf)
{
    TARN_OWN(tarn_free_drop) char *program = worker_program(conf);
    return tarn_conf_int(conf, TARN_CONF_worker_count) == 0
               ? TARN_OK
               : tarn_supervisor_check_program(program);
}

static void fill_tls(const struct tarn_conf *conf, struct tarn_http_options *out)
{
    out->cert_file = tarn_conf_text(conf, TARN_CONF_tls_cert);
    out->key_file = tarn_conf_text(conf, TARN_CONF_tls_key);
    out->client_ca_file = tarn_conf_text(conf, TARN_CONF_tls_client_ca);
}

static struct tarn_status *check_tls(const struct tarn_conf *conf)
{
    struct tarn_http_options options = {0};
    fill_tls(conf, &options);
    return tarn_http_check_tls(&options);
}

static struct tarn_status *check_compaction(const struct tarn_conf *conf)
{
    struct tarn_window window;
    struct tarn_status *s = tarn_window_parse(
        tarn_slice_str(tarn_conf_text(conf, TARN_CONF_compaction_window)), &window);
    if (s != TARN_OK) {
        struct tarn_status *told =
            tarn_status_new(TARN_CONFIG_INVALID, "compaction.window: %s", tarn_status_message(s));
        tarn_status_free(s);
        return told;
    }
    TARN_TRY(check_range(conf, TARN_CONF_compaction_freshness, 1, 86400000));
    TARN_TRY(check_range(conf, TARN_CONF_compaction_cpu_percent, 0, 100000));
    TARN_TRY(check_range(conf, TARN_CONF_compaction_database_cpu_percent, 0, 100000));
    TARN_TRY(check_range(conf, TARN_CONF_compaction_table_cpu_percent, 0, 100000));
    TARN_TRY(check_range(conf, TARN_CONF_compaction_database_tasks, 0, 100000));
    return check_range(conf, TARN_CONF_compaction_table_tasks, 0, 100000);
}

/* All that can be said without changing anything; a start asks the same. */
static struct tarn_status *check_conf(const struct tarn_conf *conf)
{
    const char *format = tarn_conf_text(conf, TARN_CONF_log_format);
    const char *log_level = tarn_conf_text(conf, TARN_CONF_log_level);
    enum tarn_log_level level;
    if (strcmp(format, "text") != 0 && strcmp(format, "json") != 0)
        return tarn_status_new(TARN_CONFIG_INVALID, "log.format = %s; want text or json", format);
    TARN_OWN(tarn_status_drop) struct tarn_status *s = tarn_log_level_parse(log_level, &level);
    if (s != TARN_OK)
        return tarn_status_new(TARN_CONFIG_INVALID,
                               "log.level = %s; want debug, info, warn or error", log_level);
    if (tarn_conf_text(conf, TARN_CONF_server_data_dir)[0] == '\0')
        return tarn_status_new(TARN_CONFIG_INVALID, "server.data_dir is empty; want a folder");
    TARN_TRY(check_auth(conf));
    TARN_TRY(check_tls(conf));
    TARN_TRY(check_warehouse_uri(tarn_conf_text(conf, TARN_CONF_warehouse_uri)));
    TARN_TRY(check_worker_program(conf));
    TARN_TRY(check_hms(conf));
    TARN_TRY(check_compaction(conf));
    TARN_TRY(check_address(conf, TARN_CONF_server_grpc_listen));
    TARN_TRY(check_address(conf, TARN_CONF_server_http_listen));
    TARN_TRY(check_warehouse_name(tarn_conf_text(conf, TARN_CONF_warehouse_name)));
    TARN_TRY(check_places(conf));
    TARN_TRY(check_range(conf, TARN_CONF_server_threads, 0, 1024));
    TARN_TRY(check_range(conf, TARN_CONF_server_drain_timeout, 0, 86400000));
    TARN_TRY(check_range(conf, TARN_CONF_worker_count, -1, WORKERS_MAX));
    TARN_TRY(check_range(conf, TARN_CONF_worker_memory, 64 << 20, INT64_MAX));
    TARN_TRY(check_range(conf, TARN_CONF_worker_write_buffer, 1 << 20, INT64_MAX));
    TARN_TRY(check_range(conf, TARN_CONF_worker_lease, 1000, 86400000));
    TARN_TRY(check_range(conf, TARN_CONF_commit_foreign_check, 0, 86400000));
    TARN_TRY(check_range(conf, TARN_CONF_commit_retries, 0, 1000));
    TARN_TRY(check_range(conf, TARN_CONF_commit_receipts_retain, 0, INT64_C(36500) * 86400000));
    TARN_TRY(check_range(conf, TARN_CONF_commit_min_interval, 0, 60000));
    TARN_TRY(check_range(conf, TARN_CONF_subscribe_max, 0, 1000000));
    TARN_TRY(check_range(conf, TARN_CONF_subscribe_slow_after, 100, 86400000));
    TARN_TRY(check_range(conf, TARN_CONF_compaction_undone_rest, 0, 86400000));
    return check_range(conf, TARN_CONF_compaction_check_interval, 10, 86400000);
}

/* --- folders --- */

/* Makes a folder and those above it. */
static struct tarn_status *make_folders(const char *folder)
{
    TARN_OWN(tarn_free_drop) char *path = tarn_strdup(folder);
    for (char *at = path + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char end = *at;
        *at = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return tarn_status_errno(errno, "make folder %s", path);
        *at = end;
        if (end == '\0')
            return TARN_OK;
    }
}

static struct tarn_status *make_data_dir(struct daemon *d)
{
    const char *configured = tarn_conf_text(d->conf, TARN_CONF_server_data_dir);
    TARN_TRY(make_folders(configured));
    d->data_dir = realpath(configured, NULL);
    if (d->data_dir == NULL)
        return tarn_status_errno(errno, "server.data_dir = %s", configured);
    const char *scratch = tarn_conf_text(d->conf, TARN_CONF_worker_scratch_dir);
    d->scratch_dir =
        scratch[0] != '\0' ? tarn_strdup(scratch) : tarn_format("%s/scratch", d->data_dir);
    return make_folders(d->scratch_dir);
}

/* --- signals --- */

static void on_stop(void *arg)
{
    struct daemon *d = arg;
    tarn_gate_open(d->stop);
}

static struct tarn_status *reload(struct daemon *d)
{
    struct tarn_conf *conf = tarn_conf_new();
    struct tarn_status *s = load_conf(&d->arguments, conf);
    if (s == TARN_OK)
        s = apply_log_level(conf);
    tarn_conf_free(conf);
    if (s == TARN_OK && d->server != NULL)
        s = tarn_wire_server_reload_tls(d->server);
    if (s == TARN_OK && d->http != NULL)
        s = tarn_http_reload_tls(d->http);
    TARN_TRY(s);
    return tarn_access_reload(d->access);
}

static void on_reload(void *arg)
{
    struct daemon *d = arg;
    pthread_mutex_lock(&d->reload_lock);
    struct tarn_status *s = reload(d);
    if (s == TARN_OK)
        tarn_log(NULL, TARN_INFO, "server.reloaded", "config=%s",
                 tarn_log_quote(NULL, d->arguments.config == NULL ? "" : d->arguments.config));
    tarn_log_status(NULL, TARN_ERROR, "server.reload_failed", s);
    pthread_mutex_unlock(&d->reload_lock);
}

/* --- building the rooms, from the bottom up --- */

static int core_count(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : (int)TARN_MIN(count, 1024L);
}

static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static struct tarn_status *open_store(struct daemon *d)
{
    const char *uri = tarn_conf_text(d->conf, TARN_CONF_warehouse_uri);
    TARN_OWN(tarn_free_drop)
    char *own = uri[0] != '\0' ? tarn_strdup(uri) : tarn_format("file://%s/warehouse", d->data_dir);
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    TARN_TRY(tarn_store_open(own, &d->store));
    return tarn_store_probe(d->store, &op);
}

static void on_committed(void *arg, struct tarn_table *table, int64_t snapshot_id TARN_UNUSED)
{
    struct daemon *d = arg;
    pthread_rwlock_rdlock(&d->hooks_lock);
    struct tarn_maintain *maintain = atomic_load(&d->maintain);
    struct tarn_subscriptions *subscriptions = atomic_load(&d->subscriptions);
    if (maintain != NULL)
        tarn_maintain_notice(maintain, table);
    if (subscriptions != NULL)
        tarn_subscriptions_notice(subscriptions, table);
    struct tarn_hms *hms = atomic_load(&d->hms);
    if (hms != NULL)
        tarn_hms_notice(hms, table);
    pthread_rwlock_unlock(&d->hooks_lock);
}

static void on_catalog_changed(void *arg)
{
    struct daemon *d = arg;
    pthread_rwlock_rdlock(&d->hooks_lock);
    struct tarn_hms *hms = atomic_load(&d->hms);
    if (hms != NULL)
        tarn_hms_catalog_changed(hms);
    pthread_rwlock_unlock(&d->hooks_lock);
}

static struct tarn_status *open_catalog(struct daemon *d)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    d->env = (struct tarn_table_env){
        .store = d->store,
        .state = d->state,
        .exec = d->exec,
        .foreign_check_ms = tarn_conf_int(d->conf, TARN_CONF_commit_foreign_check),
        .receipts_retain_ms = tarn_conf_int(d->conf, TARN_CONF_commit_receipts_retain),
        .min_interval_ms = tarn_conf_int(d->conf, TARN_CONF_commit_min_interval),
        .commit_retries = (int)tarn_conf_int(d->conf, TARN_CONF_commit_retries),
        .committed = on_committed,
        .committed_arg = d,
        .catalog_changed = on_catalog_changed,
        .catalog_changed_arg = d,
    };
    struct tarn_catalog_options options = catalog_options(d->conf);
    return tarn_catalog_open_with(&op, &d->env, tarn_conf_text(d->conf, TARN_CONF_warehouse_name),
                                  d->data_dir, &options, &d->catalog);
}

/* What was committed while nobody looked may need compaction. */
static struct tarn_status *notice_all(struct daemon *d)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_database_info *databases;
    size_t database_count;
    TARN_TRY(tarn_database_list(&op, d->catalog, &databases, &database_count));
    for (size_t i = 0; i < database_count; i++) {
        struct tarn_table_info *tables;
        size_t count;
        TARN_TRY(tarn_catalog_tables(&op, d->catalog, databases[i].name, &tables, &count));
        for (size_t t = 0; t < count; t++) {
            TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
            struct tarn_status *s = tarn_catalog_table(
                &op, d->catalog, tables[t].database, tables[t].name, tarn_slice_str(NULL), &table);
            if (s == TARN_OK)
                tarn_maintain_notice(atomic_load(&d->maintain), table);
            tarn_status_free(s); /* logged where the catalog opened it */
        }
    }
    return TARN_OK;
}

static struct tarn_status *start_maintain(struct daemon *d)
{
    struct tarn_maintain_options options = {
        .catalog = d->catalog,
        .exec = d->exec,
        .state = d->state,
        .automatic = tarn_conf_bool(d->conf, TARN_CONF_compaction_auto),
        .check_interval_ms = tarn_conf_int(d->conf, TARN_CONF_compaction_check_interval),
        .lease_ms = tarn_conf_int(d->conf, TARN_CONF_worker_lease),
        .undone_rest_ms = tarn_conf_int(d->conf, TARN_CONF_compaction_undone_rest),
        .freshness_ms = tarn_conf_int(d->conf, TARN_CONF_compaction_freshness),
        .bytes_per_second = tarn_conf_int(d->conf, TARN_CONF_compaction_bytes_per_second),
        .database_bytes_per_second =
            tarn_conf_int(d->conf, TARN_CONF_compaction_database_bytes_per_second),
        .table_bytes_per_second =
            tarn_conf_int(d->conf, TARN_CONF_compaction_table_bytes_per_second),
        .cpu_percent = (int)tarn_conf_int(d->conf, TARN_CONF_compaction_cpu_percent),
        .memory_max_bytes = tarn_conf_int(d->conf, TARN_CONF_compaction_memory),
        .database_cpu_percent =
            (int)tarn_conf_int(d->conf, TARN_CONF_compaction_database_cpu_percent),
        .table_cpu_percent = (int)tarn_conf_int(d->conf, TARN_CONF_compaction_table_cpu_percent),
        .database_memory_max_bytes = tarn_conf_int(d->conf, TARN_CONF_compaction_database_memory),
        .table_memory_max_bytes = tarn_conf_int(d->conf, TARN_CONF_compaction_table_memory),
        .database_tasks = (int)tarn_conf_int(d->conf, TARN_CONF_compaction_database_tasks),
        .table_tasks = (int)tarn_conf_int(d->conf, TARN_CONF_compaction_table_tasks),
        .expire_automatic = tarn_conf_bool(d->conf, TARN_CONF_expiry_auto),
        .expire_interval_ms = tarn_conf_int(d->conf, TARN_CONF_expiry_check_interval),
    };
    TARN_TRY(tarn_window_parse(tarn_slice_str(tarn_conf_text(d->conf, TARN_CONF_compaction_window)),
                               &options.window));
    atomic_store(&d->maintain, tarn_maintain_new(&options));
    return notice_all(d);
}

static void start_subscriptions(struct daemon *d)
{
    struct tarn_subscriptions_options options = {
        .exec = d->exec,
        .catalog = d->catalog,
        .foreign_check_ms = tarn_conf_int(d->conf, TARN_CONF_commit_foreign_check),
        .slow_after_ms = tarn_conf_int(d->conf, TARN_CONF_subscribe_slow_after),
        .subscriber_max = (int)tarn_conf_int(d->conf, TARN_CONF_subscribe_max),
    };
    atomic_store(&d->subscriptions, tarn_subscriptions_new(&options));
}

static void start_hms(struct daemon *d)
{
    const char *uri = tarn_conf_text(d->conf, TARN_CONF_hms_uri);
    struct tarn_hms_options options = {
        .exec = d->exec,
        .catalog = d->catalog,
        .store = d->store,
        .uri = uri,
        .user = tarn_conf_text(d->conf, TARN_CONF_hms_user),
        .check_ms = tarn_conf_int(d->conf, TARN_CONF_hms_check_interval),
        .connect_timeout_ms = tarn_conf_int(d->conf, TARN_CONF_hms_connect_timeout),
        .timeout_ms = tarn_conf_int(d->conf, TARN_CONF_hms_timeout),
    };
    if (uri[0] != '\0')
        atomic_store(&d->hms, tarn_hms_new(&options));
}

static int worker_count(const struct daemon *d)
{
    int64_t count = tarn_conf_int(d->conf, TARN_CONF_worker_count);
    return count < 0 ? TARN_MIN(core_count(), WORKERS_MAX) : (int)count;
}

static void fill_service(struct daemon *d)
{
    struct tarn_service *s = &d->service;
    s->catalog = d->catalog;
    s->maintain = atomic_load(&d->maintain);
    s->subscriptions = atomic_load(&d->subscriptions);
    s->hms = atomic_load(&d->hms);
    s->access = d->access;
    s->exec = d->exec;
    s->store = d->store;
    s->state = d->state;
    s->answers = tarn_answers_new();
    s->intents = tarn_intents_new(s);
    s->warehouse_name = tarn_conf_text(d->conf, TARN_CONF_warehouse_name);
    s->started_ms = tarn_clock_wall_ms();
    s->lease_ms = tarn_conf_int(d->conf, TARN_CONF_worker_lease);
    s->wants_worker = worker_count(d) != 0;
    atomic_store(&s->grpc_address, "");
    atomic_store(&s->http_address, "");
}

/* Before a client can ask what became of one. */
static struct tarn_status *recover_commits(struct daemon *d)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    return tarn_service_recover(&op, &d->service);
}

static struct tarn_status *admit(void *self, struct tarn_op *op, const char *path TARN_UNUSED,
                                 struct tarn_slice bearer_token)
{
    return tarn_access_authenticate(self, op, bearer_token);
}

static struct tarn_status *start_doors(struct daemon *d)
{
    size_t method_count;
    d->rpc = tarn_rpc_new(&d->service, CALLS_MAX);
    const struct tarn_wire_method *methods = tarn_rpc_methods(d->rpc, &method_count);
    struct tarn_wire_server_options wire = {
        .listen = tarn_conf_text(d->conf, TARN_CONF_server_grpc_listen),
        .exec = d->exec,
        .admit = admit,
        .admit_self = d->access,
        .descriptors = tarn_slice_of(tarn_descriptors, tarn_descriptors_size),
        .services = tarn_rpc_services,
    };
    TARN_TRY(tarn_wire_server_start(&wire, methods, method_count, &d->server));
    atomic_store(&d->service.grpc_address, tarn_wire_server_address(d->server));
    d->rest = tarn_rest_new(&d->service);
    struct tarn_http_options http = {
        .listen = tarn_conf_text(d->conf, TARN_CONF_server_http_listen),
        .exec = d->exec,
        .service = &d->service,
        .metrics = tarn_conf_bool(d->conf, TARN_CONF_metrics_enabled),
        .quiet = !tarn_conf_bool(d->conf, TARN_CONF_log_access),
        .admit = admit,
        .admit_self = d->access,
        .print_error = tarn_rest_print_error,
    };
    http.routes = tarn_rest_routes(d->rest, &http.route_count);
    fill_tls(d->conf, &http);
    TARN_TRY(tarn_http_start(&http, &d->http));
    atomic_store(&d->service.http_address, tarn_http_address(d->http));
    return TARN_OK;
}

/* What a child can dial: a wildcard address is none. */
static char *dialled_address(const char *address)
{
    const char *colon = strrchr(address, ':');
    if (strncmp(address, "0.0.0.0:", 8) == 0)
        return tarn_format("127.0.0.1%s", colon);
    if (strncmp(address, "[::]:", 5) == 0)
        return tarn_format("[::1]%s", colon);
    return tarn_strdup(address);
}

static struct tarn_status *start_workers(struct daemon *d)
{
    if (worker_count(d) == 0)
        return TARN_OK;
    TARN_OWN(tarn_free_drop) char *program = worker_program(d->conf);
    TARN_OWN(tarn_free_drop) char *address = dialled_address(tarn_wire_server_address(d->server));
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_supervisor_options options = {
        .exec = d->exec,
        .maintain = atomic_load(&d->maintain),
        .program = program,
        .server_address = address,
        .secret = tarn_access_worker_secret(d->access),
        .scratch_dir = d->scratch_dir,
        .count = worker_count(d),
        .memory_max_bytes = tarn_conf_int(d->conf, TARN_CONF_worker_memory),
        .write_buffer_bytes = tarn_conf_int(d->conf, TARN_CONF_worker_write_buffer),
        .log_level = tarn_conf_text(d->conf, TARN_CONF_log_level),
        .log_format = tarn_conf_text(d->conf, TARN_CONF_log_format),
        .variables = tarn_store_environment(arena),
        .hung_ms = TARN_MAX(tarn_conf_int(d->conf, TARN_CONF_worker_lease), WORKER_START_MAX_MS),
    };
    TARN_TRY(tarn_supervisor_start(&options, &d->supervisor));
    atomic_store(&d->service.supervisor, d->supervisor);
    return TARN_OK;
}

static struct tarn_status *start(struct daemon *d)
{
    int threads = (int)tarn_conf_int(d->conf, TARN_CONF_server_threads);
    int cores = threads > 0 ? threads : TARN_MAX(core_count(), 2);
    bool fresh;
    TARN_TRY(make_data_dir(d));
    d->exec = tarn_exec_new(cores, cores + CALLS_MAX + TARN_HTTP_JOBS_MAX + THREADS_SPARE);
    tarn_exec_on_signal(d->exec, SIGTERM, on_stop, d);
    tarn_exec_on_signal(d->exec, SIGINT, on_stop, d);
    TARN_OWN(tarn_free_drop) char *state = tarn_format("%s/state", d->data_dir);
    TARN_TRY(tarn_state_open(state, &fresh, &d->state));
    TARN_TRY(open_store(d));
    TARN_TRY(tarn_access_open(d->conf, &d->access));
    TARN_TRY(open_catalog(d));
    if (fresh && tarn_catalog_epoch(d->catalog) > 1)
        TARN_TRY(tarn_table_pins_lost(d->state));
    TARN_TRY(start_maintain(d));
    start_subscriptions(d);
    start_hms(d);
    fill_service(d);
    TARN_TRY(recover_commits(d));
    TARN_TRY(start_doors(d));
    TARN_TRY(start_workers(d));
    tarn_exec_on_signal(d->exec, SIGHUP, on_reload, d);
    tarn_wire_server_set_serving(d->server, true);
    tarn_log(NULL, TARN_INFO, "server.ready",
             "grpc=%s http=%s version=%s pid=%d warehouse=%s epoch=%" PRId64 " workers=%d",
             tarn_wire_server_address(d->server), tarn_http_address(d->http), TARN_VERSION,
             (int)getpid(), tarn_log_quote(NULL, tarn_store_uri(d->store)),
             tarn_catalog_epoch(d->catalog), worker_count(d));
    return TARN_OK;
}

/* --- and down again; what start didn't reach is NULL --- */

static void drain(struct daemon *d)
{
    int64_t grace_ms = tarn_conf_int(d->conf, TARN_CONF_server_drain_timeout);
    int64_t until = tarn_clock_mono_ms() + grace_ms;
    tarn_log(NULL, TARN_INFO, "server.draining", "grace_ms=%" PRId64, grace_ms);
    atomic_store(&d->service.draining, true);
    tarn_wire_server_set_serving(d->server, false);
    tarn_http_drain(d->http, 0);
    /* Workers first: while the doors are open they can report what they have done. */
    tarn_supervisor_stop(d->supervisor, grace_ms);
    tarn_wire_server_drain(d->server, TARN_MAX(until - tarn_clock_mono_ms(), (int64_t)0));
    tarn_http_drain(d->http, TARN_MAX(until - tarn_clock_mono_ms(), (int64_t)0));
}

/* Commits are answered before they are told of: some may still be telling when the doors are closed. */
static void free_hooks(struct daemon *d)
{
    pthread_rwlock_wrlock(&d->hooks_lock);
    struct tarn_subscriptions *subscriptions = atomic_exchange(&d->subscriptions, NULL);
    struct tarn_maintain *maintain = atomic_exchange(&d->maintain, NULL);
    struct tarn_hms *hms = atomic_exchange(&d->hms, NULL);
    pthread_rwlock_unlock(&d->hooks_lock);
    tarn_hms_free(hms);
    tarn_subscriptions_free(subscriptions);
    tarn_maintain_free(maintain);
}

static void take_down(struct daemon *d)
{
    tarn_supervisor_stop(d->supervisor, 0);
    tarn_wire_server_free(d->server);
    tarn_http_stop(d->http);
    tarn_rpc_free(d->rpc);
    tarn_rest_free(d->rest);
    tarn_supervisor_free(d->supervisor);
    tarn_intents_free(d->service.intents);
    free_hooks(d);
    tarn_catalog_close(d->catalog);
    tarn_answers_free(d->service.answers);
    if (d->exec != NULL)
        tarn_exec_free(d->exec); /* runs what was posted; the rooms below outlive it */
    tarn_access_close(d->access);
    tarn_store_unref(d->store);
    tarn_state_close(d->state);
    free(d->data_dir);
    free(d->scratch_dir);
}

static int report_failure(struct tarn_status *s)
{
    const char *advice = tarn_status_advice(s);
    fprintf(stderr, "tarnd: %s%s%s\n", tarn_status_message(s), advice[0] == '\0' ? "" : "; ",
            advice);
    tarn_status_free(s);
    return 1;
}

static int run(struct daemon *d)
{
    struct tarn_status *s = start(d);
    if (s == TARN_OK) {
        tarn_gate_wait(d->stop, NULL);
        drain(d);
    }
    take_down(d);
    if (s != TARN_OK)
        return report_failure(s);
    tarn_log(NULL, TARN_INFO, "server.stopped", "pid=%d", (int)getpid());
    return 0;
}

static int configure_and_run(struct daemon *d)
{
    struct tarn_status *s = load_conf(&d->arguments, d->conf);
    tarn_store_configure(d->conf); /* before any thread */
    if (s == TARN_OK)
        s = check_conf(d->conf);
    if (s == TARN_OK)
        s = apply_log_level(d->conf);
    if (s != TARN_OK)
        return report_failure(s);
    if (d->arguments.check_config) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
        tarn_conf_print(d->conf, &text);
        fputs(tarn_buf_cstr(&text), stdout);
        return 0;
    }
    tarn_log_set_json(strcmp(tarn_conf_text(d->conf, TARN_CONF_log_format), "json") == 0);
    raise_file_limit();
    tarn_wire_init();
    d->stop = tarn_gate_new();
    int code = run(d);
    tarn_gate_free(d->stop);
    return code;
}

/* One large plan must not set the size of an idle daemon: what operations took in large blocks goes back to the
 * system with them, and the pool's threads share few heaps. */
static void give_memory_back(void)
{
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 8 << 20);
    mallopt(M_ARENA_MAX, 4);
}

TARN_HOLD_STANDARD_FILES;

int main(int argc, char **argv)
{
    struct daemon d = {0};
    give_memory_back();
    int code = parse_arguments(argc, argv, &d.arguments);
    if (code < 0) {
        tarn_signals_block(); /* before any thread */
        pthread_mutex_init(&d.reload_lock, NULL);
        pthread_rwlock_init(&d.hooks_lock, NULL);
        d.conf = tarn_conf_new();
        code = configure_and_run(&d);
        tarn_conf_free(d.conf);
        pthread_rwlock_destroy(&d.hooks_lock);
        pthread_mutex_destroy(&d.reload_lock);
    }
    free(d.arguments.sets);
    return code;
}
