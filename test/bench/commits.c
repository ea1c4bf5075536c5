/*
 * commits - what a daemon costs its callers: commits of made-up file entries, and plans over many.
 *
 *   commits batch|stream SERVER DB.TABLE FOLDER THREADS COMMITS BUCKETS   each thread commits one file COMMITS
 *                                         times: as so many batches, or as one streaming user a thread
 *   commits fill   SERVER DB.TABLE FOLDER FILES FILES_A_COMMIT BUCKETS   FOLDER: the table's
 *   commits plan   SERVER DB.TABLE REPEATS [WHERE]                  all splits received, as a reader does
 *
 * The same work as PaimonBase.java of ../shared/interop does for Paimon's Java library: the table has one
 * BIGINT key, a thread commits into bucket (thread % buckets), one file in twenty is at level 0. The files are
 * empty and made before the clock starts, since the daemon looks whether they are there: nothing may read or compact the
 * table. Prints one line "RESULT what key=value …".
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/format.h"
#include "tarn/client.h"
#include "tarn/v1/table.pb-c.h"

#define THREADS_MAX 256

struct place {
    const char *server, *folder;
    char database[256], table[256];
};

struct committer {
    struct place place;
    int number, commit_count, bucket_count;
    bool batch;
    double *latencies_ms; /* of this thread's commits */
    int64_t last_snapshot;
    pthread_t thread;
};

static const struct tarn_type key_type = {.id = TARN_TYPE_BIGINT};

static void check(struct tarn_status *s, const char *what)
{
    if (s == TARN_OK)
        return;
    fprintf(stderr, "commits: %s: %s\n", what, tarn_status_message(s));
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static ProtobufCBinaryData data_of(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

static ProtobufCBinaryData key_row(struct tarn_arena *arena, int64_t key)
{
    const struct tarn_type *types[] = {&key_type};
    struct tarn_value value = {.integer = key};
    struct tarn_buf bytes = {0};

    tarn_row_serialize(types, &value, 1, &bytes);
    struct tarn_slice kept = tarn_arena_copy(arena, tarn_buf_slice(&bytes));
    tarn_buf_drop(&bytes);
    return (ProtobufCBinaryData){kept.size, (uint8_t *)(uintptr_t)kept.data};
}

static Tarn__V1__Stats *stats_of(struct tarn_arena *arena, ProtobufCBinaryData min,
                                 ProtobufCBinaryData max, int64_t *null_count)
{
    Tarn__V1__Stats *stats = tarn_arena_alloc(arena, sizeof *stats);

    tarn__v1__stats__init(stats);
    stats->min = min;
    stats->max = max;
    stats->n_null_counts = null_count == NULL ? 0 : 1;
    stats->null_counts = null_count;
    return stats;
}

static const char *file_name(struct tarn_arena *arena, int64_t number)
{
    static char run[TARN_UUID_SIZE]; /* one name of all files of this run */
    if (run[0] == '\0')
        tarn_uuid_random(run);
    return tarn_arena_printf(arena, "data-%s-%" PRId64 ".parquet", run, number);
}

static void make_file(const struct place *place, int bucket, int64_t number)
{
    struct tarn_arena *arena = tarn_arena_new();
    const char *name = file_name(arena, number);
    const char *path = tarn_arena_printf(arena, "%s/bucket-%d/%s", place->folder, bucket, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0 && errno == ENOENT) {
        mkdir(tarn_arena_printf(arena, "%s/bucket-%d", place->folder, bucket), 0755);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    }
    if (fd < 0) {
        perror(path);
        exit(1);
    }
    close(fd);
    tarn_arena_free(arena);
}

/* File `number` of the table, with a thousand keys from `low` on. */
static Tarn__V1__FileEntry *make_entry(struct tarn_arena *arena, int64_t number, int bucket,
                                       int buckets, int64_t low, int level)
{
    static int64_t no_nulls;
    Tarn__V1__FileEntry *entry = tarn_arena_alloc(arena, sizeof *entry);
    Tarn__V1__DataFile *file = tarn_arena_alloc(arena, sizeof *file);
    struct tarn_slice empty = tarn_row_empty();
    ProtobufCBinaryData nothing = {empty.size, (uint8_t *)(uintptr_t)empty.data};
    tarn__v1__file_entry__init(entry);
    tarn__v1__data_file__init(file);
    file->name = data_of(file_name(arena, number));
    file->size = 100000000;
    file->row_count = 1000;
    file->min_key = key_row(arena, low);
    file->max_key = key_row(arena, low + 999);
    file->key_stats = stats_of(arena, file->min_key, file->max_key, &no_nulls);
    file->value_stats = stats_of(arena, nothing, nothing, NULL);
    file->has_value_stats_columns = true; /* of none */
    file->min_sequence = number * 1000;
    file->max_sequence = number * 1000 + 999;
    file->level = level;
    file->_creation_time_case = TARN__V1__DATA_FILE___CREATION_TIME_CREATION_TIME_MS;
    file->creation_time_ms = tarn_clock_wall_ms();
    file->_delete_row_count_case = TARN__V1__DATA_FILE___DELETE_ROW_COUNT_DELETE_ROW_COUNT;
    entry->partition = nothing;
    entry->bucket = bucket;
    entry->total_buckets = buckets;
    entry->file = file;
    return entry;
}

static void name_table(const struct place *place, Tarn__V1__TableRef *ref)
{
    tarn__v1__table_ref__init(ref);
    ref->database = data_of(place->database);
    ref->table = data_of(place->table);
}

static struct tarn_client *connect_to(const struct place *place)
{
    struct tarn_client_options options = {.server = place->server};
    struct tarn_client *client;

    check(tarn_client_open(&options, &client), place->server);
    return client;
}

static int64_t commit(struct tarn_client *client, const struct place *place, const char *user,
                      int64_t identifier, Tarn__V1__FileEntry **entries, size_t count)
{
    Tarn__V1__CommitRequest request = TARN__V1__COMMIT_REQUEST__INIT;
    Tarn__V1__TableRef table;
    ProtobufCMessage *answer;
    struct tarn_op op;

    name_table(place, &table);
    request.table = &table;
    request.commit_user = (char *)(uintptr_t)user;
    request.commit_identifier = identifier;
    request.append = entries;
    request.n_append = count;
    tarn_op_init(&op);
    check(tarn_client_call(client, &op, "TableService/Commit", &request.base,
                           &tarn__v1__commit_response__descriptor, &answer),
          "commit");
    tarn_op_fini(&op);
    int64_t snapshot = ((Tarn__V1__CommitResponse *)answer)->snapshot_id;
    protobuf_c_message_free_unpacked(answer, NULL);
    return snapshot;
}

/* --- commit --- */

static void *run_committer(void *arg)
{
    struct committer *c = arg;
    struct tarn_client *client = connect_to(&c->place);
    char user[64];

    snprintf(user, sizeof user, "bench-%d-%d", (int)getpid(), c->number);
    for (int i = 0; i < c->commit_count; i++) {
        struct tarn_arena *arena = tarn_arena_new();
        int64_t number = (int64_t)c->number * c->commit_count + i;
        Tarn__V1__FileEntry *entry =
            make_entry(arena, number, c->number % c->bucket_count, c->bucket_count, 1, 0);
        double begun = now_ms();
        c->last_snapshot = commit(client, &c->place, user, c->batch ? INT64_MAX : i, &entry, 1);
        c->latencies_ms[i] = now_ms() - begun;
        tarn_arena_free(arena);
    }
    tarn_client_close(client);
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_commits(const struct place *place, bool batch, int threads, int commits,
                        int buckets)
{
    struct committer *all = calloc((size_t)threads, sizeof *all);
    size_t count = (size_t)threads * (size_t)commits;
    double *latencies = calloc(count + 1, sizeof *latencies);

    for (size_t i = 0; i < count; i++)
        make_file(place, (int)(i / (size_t)commits) % buckets, (int64_t)i);
    /* What the kernel still holds of these, and of whatever ran before, would be written back beside the commits. */
    sync();
    double begun = now_ms();
    for (int i = 0; i < threads; i++) {
        all[i] = (struct committer){.place = *place,
                                    .number = i,
                                    .commit_count = commits,
                                    .bucket_count = buckets,
                                    .batch = batch,
                                    .latencies_ms = latencies + (size_t)i * (size_t)commits};
        if (pthread_create(&all[i].thread, NULL, run_committer, &all[i]) != 0) {
            fputs("commits: no thread\n", stderr);
            exit(1);
        }
    }
    int64_t last = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(all[i].thread, NULL);
        last = TARN_MAX(last, all[i].last_snapshot);
    }
    double wall_s = (now_ms() - begun) / 1e3;
    qsort(latencies, count, sizeof *latencies, by_size);
    printf(
        "RESULT commit identities=%s threads=%d ok=%zu wall_s=%.3f commits_per_s=%.1f p50_ms=%.2f p99_ms=%.2f"
        " max_ms=%.2f last_snapshot=%" PRId64 "\n",
        batch ? "batch" : "stream", threads, count, wall_s, (double)count / wall_s,
        latencies[count / 2], latencies[count * 99 / 100], latencies[count - 1], last);
    free(latencies);
    free(all);
}

/* --- fill --- */

static void run_fill(const struct place *place, int64_t files, int per_commit, int buckets)
{
    struct tarn_client *client = connect_to(place);
    Tarn__V1__FileEntry **entries = calloc((size_t)per_commit + 1, sizeof *entries);
    int64_t done = 0, identifier = 0;
    double begun = now_ms();

    while (done < files) {
        struct tarn_arena *arena = tarn_arena_new();
        size_t n = 0;
        for (; n < (size_t)per_commit && done < files;
             n++, done++) { /* disjoint ranges in each bucket */
            make_file(place, (int)(done % buckets), done);
            entries[n] = make_entry(arena, done, (int)(done % buckets), buckets,
                                    done / buckets * 1000, done % 20 == 19 ? 0 : 5);
        }
        commit(client, place, "bench-fill", identifier++, entries, n);
        tarn_arena_free(arena);
    }
    printf("RESULT fill files=%" PRId64 " commits=%" PRId64 " wall_s=%.3f\n", files, identifier,
           (now_ms() - begun) / 1e3);
    free(entries);
    tarn_client_close(client);
}

int main(int argc, char **argv)
{
    struct place place = {0};
    const char *what = argc > 1 ? argv[1] : "";
    long numbers[3] = {0};

    for (int i = 5, n = 0; i < argc && n < 3; i++, n++)
        numbers[n] = strtol(argv[i], NULL, 10);
    if (argc < 5 || sscanf(argv[3], "%255[^.].%255s", place.database, place.table) != 2 ||
        numbers[0] < 1)
        what = "";
    place.server = argc > 2 ? argv[2] : NULL;
    place.folder = argc > 4 ? argv[4] : NULL;
    bool counted = argc == 8 && numbers[1] > 0 && numbers[2] > 0;
    bool batch = strcmp(what, "batch") == 0;
    if ((batch || strcmp(what, "stream") == 0) && counted && numbers[0] <= THREADS_MAX)
        run_commits(&place, batch, (int)numbers[0], (int)numbers[1], (int)numbers[2]);
    else if (strcmp(what, "fill") == 0 && counted)
        run_fill(&place, numbers[0], (int)numbers[1], (int)numbers[2]);
    else {
        fputs("usage: commits batch|stream|fill SERVER DB.TABLE FOLDER N N BUCKETS\n", stderr);
        return 2;
    }
    return 0;
}
