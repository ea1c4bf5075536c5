/*
 * Opening a state: who may, how much memory it may take, and whether it is one we understand.
 */
#include "state/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/exec.h"

/* The bounds of memory: about the cache, the write buffers and a few MiB for the rest. */
#define CACHE_SIZE ((size_t)32 << 20)         /* data, index and filter blocks of all families */
#define WRITE_BUFFER_SIZE ((size_t)4 << 20)   /* one family's, before it is written out */
#define WRITE_BUFFERS_SIZE ((size_t)16 << 20) /* all families' together */
#define ARENA_BLOCK_SIZE ((size_t)64 << 10)   /* the step in which a write buffer grows */
#define LOG_SIZE_MAX ((uint64_t)32 << 20) /* of the write-ahead log, which an open reads again */
#define TABLE_FILE_SIZE ((uint64_t)8 << 20)
#define OPEN_FILES_MAX 256
#define BLOCK_SIZE ((size_t)8 << 10)
#define FILTER_BITS 10.0 /* a key: 1 % of the looks for what isn't there read a block */

#define INFO_LOG_NONE 5 /* above "fatal" */
#define NEVER_SO_MUCH ((size_t)1 << 62)

#define REMOVALS_WINDOW 1024 /* of so many keys in a row … */
#define REMOVALS_TRIGGER 512 /* … so many are removed */

#define HOLDER_FILE "HOLDER" /* locked by who has the state open; its text is for people */
#define FORMAT_KEY "format"

/* ---- options ---- */

static void set_table_options(rocksdb_options_t *options)
{
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_cache_t *cache = rocksdb_cache_create_lru(CACHE_SIZE);
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1);
    rocksdb_block_based_options_set_block_size(table, BLOCK_SIZE);
    rocksdb_block_based_options_set_filter_policy(
        table, rocksdb_filterpolicy_create_bloom_full(FILTER_BITS)); /* consumed */
    rocksdb_options_set_block_based_table_factory(options, table);   /* copied */
    rocksdb_block_based_options_destroy(table);
    rocksdb_cache_destroy(cache); /* our reference; the table factory has its own */
}

/* The C API has no calls for these. A log that another follows was synced, and its size then noted: shorter, it is damaged.
 * And no room is taken before there is something to write into it. */
static rocksdb_options_t *new_options(void)
{
    char *error = NULL;
    rocksdb_options_t *base = rocksdb_options_create(), *options = rocksdb_options_create();
    rocksdb_get_options_from_string(
        base, "track_and_verify_wals_in_manifest=true;allow_fallocate=false", options, &error);
    tarn_assert(error == NULL);
    rocksdb_options_destroy(base);
    return options;
}

rocksdb_options_t *tarn_state__options(void)
{
    rocksdb_options_t *options = new_options();
    set_table_options(options);
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_create_missing_column_families(options, 1);
    rocksdb_options_set_write_buffer_size(options, WRITE_BUFFER_SIZE);
    rocksdb_options_set_db_write_buffer_size(options, WRITE_BUFFERS_SIZE);
    rocksdb_options_set_arena_block_size(options, ARENA_BLOCK_SIZE);
    rocksdb_options_set_max_write_buffer_number(options, 2);
    rocksdb_options_set_max_total_wal_size(options, LOG_SIZE_MAX);
    rocksdb_options_set_max_open_files(options, OPEN_FILES_MAX);
    rocksdb_options_set_max_background_jobs(options, 2);
    rocksdb_options_set_max_bytes_for_level_base(options, TARN_STATE_LEVEL_SIZE);
    rocksdb_options_set_target_file_size_base(options, TABLE_FILE_SIZE);
    rocksdb_options_set_compression(options, rocksdb_lz4_compression);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
    /* What is removed often lies in a row, which a walk would have to step over: such a file is rewritten soon. */
    rocksdb_options_add_compact_on_deletion_collector_factory(options, REMOVALS_WINDOW,
                                                              REMOVALS_TRIGGER);
    /* Nothing is said in its file LOG: errors come back from calls, and where that file couldn't be written, the next
     * line would end the process by an assertion. */
    rocksdb_options_set_info_log_level(options, INFO_LOG_NONE);
    rocksdb_options_set_max_log_file_size(options,
                                          0); /* else what is said at start is said nevertheless */
    rocksdb_options_set_keep_log_file_num(options, 1);
    rocksdb_options_set_skip_stats_update_on_db_open(options, 1); /* a file read each, at open */
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    rocksdb_options_set_stats_persist_period_sec(options, 0);
    rocksdb_options_set_max_manifest_file_size(options, (size_t)16 << 20);
    return options;
}

/* RocksDB's own family has no keys, so its write buffer's size is only one thing: as much must be free before RocksDB
 * goes on by itself after a full disk. It must not: where nothing was buffered it would go on with the log that it
 * couldn't write, which ends the process by an assertion. door.c opens it again instead. */
static rocksdb_options_t *unnamed_options(void)
{
    rocksdb_options_t *options = tarn_state__options();
    rocksdb_options_set_write_buffer_size(options, NEVER_SO_MUCH);
    return options;
}

/* ---- the folder ---- */

static struct tarn_status *system_error(int error, const char *what, const char *path)
{
    return tarn_status_errno(error, "%s %s", what, path);
}

static struct tarn_status *make_folder(const char *folder)
{
    if (mkdir(folder, 0700) != 0) /* tokens lie in it: for nobody else */
        return errno == EEXIST ? TARN_OK : system_error(errno, "make the folder", folder);
    TARN_OWN(tarn_free_drop) char *above = tarn_format("%s/..", folder);
    int fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return system_error(errno, "open the folder above", folder);
    int error = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    return error == 0 ? TARN_OK : system_error(error, "sync the folder above", folder);
}

static struct tarn_status *held_by_another(int fd, const char *folder)
{
    char text[128] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n < 0 ? 0 : strcspn(text, "\n")] = '\0';
    return tarn_status_new(TARN_DATA_DIR_HELD, "the state in %s is in use by %s", folder,
                           text[0] == '\0' ? "another process" : text);
}

/* A lock of the open file: it ends with the process, however that ends, and it also keeps out a
 * second open in the same process, which RocksDB's own lock would not survive unharmed. */
struct tarn_status *tarn_state__hold(const char *folder, int *holder)
{
    char host[65] = "?", text[128];
    TARN_OWN(tarn_free_drop) char *path = tarn_format("%s/" HOLDER_FILE, folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return system_error(errno, "open", path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        struct tarn_status *status =
            errno == EWOULDBLOCK ? held_by_another(fd, folder) : system_error(errno, "lock", path);
        close(fd);
        return status;
    }
    gethostname(host, sizeof host - 1);
    int size = snprintf(text, sizeof text, "process %ld on host %s\n", (long)getpid(), host);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)size, 0) != size) {
        /* The lock counts; without the text the next one just can't name us. */
    }
    *holder = fd;
    return TARN_OK;
}

static bool ends_with(const char *name, const char *end)
{
    size_t size = strlen(name), end_size = strlen(end);
    return size >= end_size && strcmp(name + size - end_size, end) == 0;
}

/* CURRENT is where RocksDB begins. Without it but with its other files there, it would start anew
 * and delete them: that is damage, and not ours to clean up. */
static struct tarn_status *look_at_folder(const char *folder, bool *exists)
{
    bool remains = false;
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return system_error(errno, "open the folder", folder);
    *exists = false;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (strncmp(entry->d_name, TARN_STATE_LOAD_PREFIX, strlen(TARN_STATE_LOAD_PREFIX)) == 0)
            unlinkat(dirfd(entries), entry->d_name, 0); /* of a load that a crash cut short */
        *exists |= strcmp(entry->d_name, "CURRENT") == 0;
        remains |= ends_with(entry->d_name, ".sst");
    }
    closedir(entries);
    if (remains && !*exists)
        return tarn_status_new(TARN_STATE_DAMAGED, "the state in %s has lost its file CURRENT",
                               folder);
    return TARN_OK;
}

/* ---- families and format ---- */

static const char *const family_names[TARN_FAMILY_COUNT] = {
#define F(id, name, meaning) [TARN_FAMILY_##id] = name,
#include "state/families.def"
#undef F
};

static bool is_known_family(const char *name)
{
    for (int i = 0; i < TARN_FAMILY_COUNT; i++) {
        if (strcmp(family_names[i], name) == 0)
            return true;
    }
    return strcmp(name, "default") == 0;
}

static struct tarn_status *newer(const struct tarn_state *state, const char *what)
{
    return tarn_status_new(TARN_STATE_NEWER, "the state in %s was written by a newer Tarn: %s",
                           state->folder, what);
}

/* Before the open, which would fail with less clear words. */
static struct tarn_status *check_families(const struct tarn_state *state)
{
    char *error = NULL;
    size_t count = 0;
    char **names = rocksdb_list_column_families(state->options, state->folder, &count, &error);
    struct tarn_status *status = tarn_state__error(state, error, "look into");
    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        if (!is_known_family(names[i]))
            status = newer(state, names[i]);
    }
    rocksdb_list_column_families_destroy(names, count); /* there is one after an error, too */
    return status;
}

struct tarn_status *tarn_state__open_database(struct tarn_state *state)
{
    char *error = NULL;
    const char *names[TARN_FAMILY_COUNT + 1] = {"default"};
    const rocksdb_options_t *options[TARN_FAMILY_COUNT + 1] = {state->unnamed_options};
    rocksdb_column_family_handle_t *handles[TARN_FAMILY_COUNT + 1] = {NULL};
    for (int i = 0; i < TARN_FAMILY_COUNT; i++) {
        names[i + 1] = family_names[i];
        options[i + 1] = state->options;
    }
    state->db = rocksdb_open_column_families(state->options, state->folder, TARN_FAMILY_COUNT + 1,
                                             names, options, handles, &error);
    TARN_TRY(tarn_state__error(state, error, "open"));
    state->unnamed = handles[0];
    memcpy(state->families, handles + 1, sizeof state->families);
    return TARN_OK;
}

void tarn_state__close_database(struct tarn_state *state)
{
    for (int i = 0; i < TARN_FAMILY_COUNT; i++) {
        if (state->families[i] != NULL)
            rocksdb_column_family_handle_destroy(state->families[i]);
        state->families[i] = NULL;
    }
    if (state->unnamed != NULL)
        rocksdb_column_family_handle_destroy(state->unnamed);
    state->unnamed = NULL;
    if (state->db != NULL)
        rocksdb_close(state->db);
    state->db = NULL;
}

static struct tarn_status *is_empty(struct tarn_state *state, bool *empty)
{
    *empty = true;
    for (int i = 0; i < TARN_FAMILY_COUNT && *empty; i++) {
        struct tarn_slice key, value;
        TARN_OWN(tarn_state_iterator_drop) struct tarn_state_iterator *it =
            tarn_state_iterator_new(state, (enum tarn_family)i, (struct tarn_slice){NULL, 0});
        *empty = !tarn_state_iterator_next(it, &key, &value);
        TARN_TRY(tarn_state_iterator_error(it));
    }
    return TARN_OK;
}

/* A state without its format is one whose creation was cut short, or no state of ours. */
static struct tarn_status *write_format(struct tarn_state *state)
{
    bool empty;
    TARN_TRY(is_empty(state, &empty));
    if (!empty)
        return tarn_status_new(TARN_STATE_DAMAGED, "the state in %s does not say its format",
                               state->folder);
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    tarn_key_add_u64(&value, TARN_STATE_FORMAT);
    tarn_state_batch_put(batch, state, TARN_FAMILY_META, tarn_slice_str(FORMAT_KEY),
                         tarn_buf_slice(&value));
    return tarn_state_write(state, batch, true);
}

static struct tarn_status *check_format(struct tarn_state *state, bool *fresh)
{
    bool found;
    uint64_t format;
    char text[48];
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    TARN_TRY(tarn_state_get(state, TARN_FAMILY_META, tarn_slice_str(FORMAT_KEY), &found, &value));
    *fresh = !found;
    if (!found)
        return write_format(state);
    struct tarn_slice rest = tarn_buf_slice(&value);
    if (!tarn_key_take_u64(&rest, &format) || rest.size != 0 || format == 0)
        return tarn_status_new(TARN_STATE_DAMAGED, "the format of the state in %s is not readable",
                               state->folder);
    snprintf(text, sizeof text, "its format is %" PRIu64 ", ours %d", format, TARN_STATE_FORMAT);
    return format > TARN_STATE_FORMAT ? newer(state, text) : TARN_OK;
}

/* ---- life ---- */

static void state_drop(struct tarn_state **state)
{
    tarn_state_close(*state);
    *state = NULL;
}

static struct tarn_state *state_new(const char *folder)
{
    struct tarn_state *state = tarn_calloc(1, sizeof *state);
    state->folder = tarn_strdup(folder);
    state->holder = -1;
    pthread_rwlock_init(&state->door, NULL);
    pthread_mutex_init(&state->marking, NULL);
    pthread_mutex_init(&state->stopping, NULL);
    state->options = tarn_state__options();
    state->unnamed_options = unnamed_options();
    state->read = rocksdb_readoptions_create();
    state->write = rocksdb_writeoptions_create();
    state->write_synced = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(state->write_synced, 1);
    return state;
}

struct tarn_status *tarn_state_open(const char *folder, bool *fresh, struct tarn_state **out)
{
    bool exists = false, made = false;
    tarn_assert_may_wait();
    TARN_OWN(state_drop) struct tarn_state *state = state_new(folder);
    TARN_TRY(make_folder(folder));
    TARN_TRY(tarn_state__hold(folder, &state->holder));
    TARN_TRY(look_at_folder(folder, &exists));
    TARN_TRY(tarn_state__check_intact(folder));
    if (exists)
        TARN_TRY(check_families(state));
    TARN_TRY(tarn_state__open_database(state));
    TARN_TRY(check_format(state, &made));
    TARN_TRY(tarn_state__mark(state));
    *fresh = made;
    *out = tarn_move(state);
    return TARN_OK;
}

void tarn_state_close(struct tarn_state *state)
{
    if (state == NULL)
        return;
    tarn_assert(atomic_load(&state->iterator_count) == 0); /* they would read freed memory */
    tarn_state__close_database(state);
    rocksdb_writeoptions_destroy(state->write_synced);
    rocksdb_writeoptions_destroy(state->write);
    rocksdb_readoptions_destroy(state->read);
    rocksdb_options_destroy(state->unnamed_options);
    rocksdb_options_destroy(state->options);
    if (state->holder >= 0)
        close(state->holder);
    tarn_status_free(state->stopped_by);
    pthread_mutex_destroy(&state->stopping);
    pthread_mutex_destroy(&state->marking);
    pthread_rwlock_destroy(&state->door);
    free(state->folder);
    free(state);
}
