#include "fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS 20 /* between two looks at `stop` */

struct request {
    char name[64];
    int32_t sequence;
    struct tarn_slice texts[5]; /* by id of the argument */
    struct tarn_slice *list;
    size_t list_count;
    struct tarn_hms__table table;
    struct tarn_hms__database database;
};

struct peer {
    struct fake *fake;
    int fd;
};

static bool wait_for(struct fake *fake, int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    while (!atomic_load(&fake->stop))
        if (poll(&wait, 1, WAIT_MS) > 0)
            return true;
    return false;
}

static struct tarn_status *fetch(void *self, uint8_t *into, size_t room, size_t *got)
{
    struct peer *peer = self;
    ssize_t some = wait_for(peer->fake, peer->fd) ? recv(peer->fd, into, room, 0) : 0;
    *got = some < 0 ? 0 : (size_t)some;
    return TARN_OK;
}

/* --- reading a call --- */

/* GetTablesRequest and AddPartitionsRequest: 1 dbName, 2 a name or names, 3 partitions (their values, joined) */
static void get_wrapped(struct tarn_hms__reader *r, struct request *q);

static void get_partition(struct tarn_hms__reader *r, struct request *q)
{
    enum tarn_hms__type type;
    int16_t id;
    while (tarn_hms__next_field(r, &type, &id))
        if (id == 1 && type == HMS_LIST) {
            TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
            struct tarn_slice *values;
            size_t count;
            tarn_hms__get_texts(r, &values, &count);
            for (size_t i = 0; i < count; i++)
                tarn_buf_printf(&text, "%s%.*s", i == 0 ? "" : ",", TARN_SLICE_ARG(values[i]));
            q->list[q->list_count++] = tarn_arena_copy(r->arena, tarn_buf_slice(&text));
        } else {
            tarn_hms__skip(r, type);
        }
}

static void get_wrapped(struct tarn_hms__reader *r, struct request *q)
{
    enum tarn_hms__type type;
    int16_t id;
    while (tarn_hms__next_field(r, &type, &id))
        if (type == HMS_STRING)
            q->texts[id] = tarn_hms__get_text(r);
        else if (id == 2 && type == HMS_LIST)
            tarn_hms__get_texts(r, &q->list, &q->list_count);
        else if (id == 3 && type == HMS_LIST) {
            size_t count = tarn_hms__get_list(r, HMS_STRUCT);
            q->list = tarn_arena_calloc(r->arena, count + 1, sizeof *q->list);
            while (q->list_count < count && r->status == TARN_OK)
                get_partition(r, q);
        } else {
            tarn_hms__skip(r, type);
        }
}

static bool is_wrapped(const struct request *q)
{
    return strstr(q->name, "_req") != NULL;
}

static bool get_request(struct tarn_hms__reader *r, struct request *q)
{
    enum tarn_hms__type type;
    int16_t id;
    if (tarn_hms__get_i32(r) != (int32_t)0x80010001)
        return false;
    snprintf(q->name, sizeof q->name, "%s", tarn_arena_str(r->arena, tarn_hms__get_text(r)));
    q->sequence = tarn_hms__get_i32(r);
    while (tarn_hms__next_field(r, &type, &id))
        if (type == HMS_STRING && id < 5)
            q->texts[id] = tarn_hms__get_text(r);
        else if (type == HMS_LIST)
            tarn_hms__get_texts(r, &q->list, &q->list_count);
        else if (type == HMS_STRUCT && is_wrapped(q))
            get_wrapped(r, q);
        else if (type == HMS_STRUCT && id <= 3 && strstr(q->name, "database") != NULL)
            tarn_hms__get_database(r, &q->database);
        else if (type == HMS_STRUCT && strstr(q->name, "table") != NULL &&
                 q->table.name.data == NULL)
            tarn_hms__get_table(r, &q->table);
        else
            tarn_hms__skip(r, type);
    return r->status == TARN_OK;
}

/* --- carrying it out; with the lock --- */

static const char *key_of(struct fake *fake, struct tarn_slice database, struct tarn_slice name)
{
    return tarn_arena_printf(fake->arena, "%.*s.%.*s", TARN_SLICE_ARG(database),
                             TARN_SLICE_ARG(name));
}

static struct tarn_slice copy(struct fake *fake, struct tarn_slice s)
{
    return s.data == NULL ? s : tarn_arena_copy(fake->arena, s);
}

/* By way of its bytes: what it says lies in the fake's arena then. */
struct bytes {
    struct tarn_slice left;
};
static struct tarn_status *from_bytes(void *self, uint8_t *into, size_t room, size_t *got)
{
    struct bytes *bytes = self;
    *got = TARN_MIN(room, bytes->left.size);
    memcpy(into, bytes->left.data, *got);
    bytes->left = tarn_slice_of(bytes->left.data + *got, bytes->left.size - *got);
    return TARN_OK;
}

static struct tarn_hms__table *copy_table(struct tarn_arena *arena,
                                          const struct tarn_hms__table *table)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf buf = {0};
    struct tarn_hms__table *out = tarn_arena_calloc(arena, 1, sizeof *out);
    struct tarn_hms__reader *r = tarn_arena_calloc(arena, 1, sizeof *r);
    tarn_hms__put_table(&buf, table, 1);
    struct bytes bytes = {tarn_buf_slice(&buf)};
    tarn_hms__reader_init(r, arena);
    r->fetch = from_bytes;
    r->self = &bytes;
    tarn_hms__get_table(r, out);
    tarn_assert(r->status == TARN_OK);
    return out;
}

static void keep_database(struct fake *fake, const struct tarn_hms__database *database)
{
    struct tarn_hms__database *kept = tarn_arena_calloc(fake->arena, 1, sizeof *kept);
    *kept = *database;
    kept->name = copy(fake, database->name);
    kept->comment = copy(fake, database->comment);
    kept->location = copy(fake, database->location);
    kept->owner = copy(fake, database->owner);
    kept->parameters =
        tarn_arena_calloc(fake->arena, database->parameter_count + 1, sizeof *kept->parameters);
    for (size_t i = 0; i < database->parameter_count; i++)
        kept->parameters[i] = (struct tarn_pair){copy(fake, database->parameters[i].key),
                                                 copy(fake, database->parameters[i].value)};
    tarn_map_set(fake->databases, kept->name, kept);
}

static void keep_table(struct fake *fake, const struct tarn_hms__table *table)
{
    struct tarn_hms__table *kept = copy_table(fake->arena, table);
    tarn_map_set(fake->tables, S(key_of(fake, kept->database, kept->name)), kept);
}

static void put_names(struct fake *fake, const struct tarn_map *map, const char *prefix,
                      struct tarn_buf *out)
{
    struct tarn_slice *names =
        tarn_arena_calloc(fake->arena, tarn_map_count(map) + 1, sizeof *names);
    size_t cursor = 0, count = 0, skip = strlen(prefix);
    struct tarn_slice key;
    void *value;
    while (tarn_map_next(map, &cursor, &key, &value))
        if (tarn_slice_starts_with(key, S(prefix)))
            names[count++] = tarn_slice_of(key.data + skip, key.size - skip);
    tarn_hms__put_texts(out, 0, names, count);
}

/* "t/a,b" -> "k0=a/k1=b" */
static void put_partition_names(struct fake *fake, const char *table, struct tarn_buf *out)
{
    struct tarn_buf names = {0};
    size_t cursor = 0, count = 0;
    const char *prefix = tarn_arena_printf(fake->arena, "%s/", table);
    struct tarn_slice key, list[64];
    void *value;
    while (tarn_map_next(fake->partitions, &cursor, &key, &value) && count < 64) {
        if (!tarn_slice_starts_with(key, S(prefix)))
            continue;
        tarn_buf_clear(&names);
        tarn_buf_add_str(&names, "k0=");
        for (size_t i = strlen(prefix), k = 1; i < key.size; i++)
            if (key.data[i] == ',')
                tarn_buf_printf(&names, "/k%zu=", k++);
            else
                tarn_buf_add_byte(&names, key.data[i]);
        list[count++] = tarn_arena_copy(fake->arena, tarn_buf_slice(&names));
    }
    tarn_buf_drop(&names);
    tarn_hms__put_texts(out, 0, list, count);
}

static void put_failure(struct tarn_buf *out, int16_t id, const char *message)
{
    tarn_hms__put_field(out, HMS_STRUCT, id);
    tarn_hms__put_text(out, 1, S(message));
    tarn_hms__put_stop(out);
}

/* With a field that nobody here knows, as a newer metastore has some. */
static void put_tables(struct fake *fake, const struct request *q, struct tarn_buf *out)
{
    const struct tarn_hms__table *found[64];
    size_t count = 0;
    for (size_t i = 0; i < q->list_count && count < 64; i++) {
        const struct tarn_hms__table *table =
            tarn_map_find(fake->tables, S(key_of(fake, q->texts[1], q->list[i])));
        if (table != NULL)
            found[count++] = table;
    }
    tarn_hms__put_field(out, HMS_STRUCT, 0);
    tarn_hms__put_list(out, 1, HMS_STRUCT, count);
    for (size_t i = 0; i < count; i++) {
        tarn_hms__put_table(out, found[i], 1);
        out->size--; /* its stop */
        tarn_hms__put_field(out, HMS_STRUCT, 99);
        tarn_hms__put_pairs(out, 7, found[i]->parameters, found[i]->parameter_count);
        tarn_hms__put_stop(out);
        tarn_hms__put_stop(out);
    }
    tarn_hms__put_stop(out);
}

static bool is(const struct request *q, const char *name)
{
    return strcmp(q->name, name) == 0;
}

/* A call that changes nothing; false: it is another one. */
static bool look(struct fake *fake, const struct request *q, struct tarn_buf *out)
{
    const char *key = key_of(fake, q->texts[1], q->texts[2]);
    if (is(q, "set_ugi"))
        tarn_hms__put_texts(out, 0, NULL, 0);
    else if (is(q, "get_all_databases"))
        put_names(fake, fake->databases, "", out);
    else if (is(q, "get_all_tables"))
        put_names(fake, fake->tables, key_of(fake, q->texts[1], S("")), out);
    else if (is(q, "get_partition_names"))
        put_partition_names(fake, key, out);
    else if (is(q, "get_table_objects_by_name_req"))
        put_tables(fake, q, out);
    else if (is(q, "get_database") && tarn_map_find(fake->databases, q->texts[1]) == NULL)
        put_failure(out, 1, "no such database");
    else if (is(q, "get_database")) {
        tarn_hms__put_field(out, HMS_STRUCT, 0);
        tarn_hms__put_database(out, tarn_map_find(fake->databases, q->texts[1]));
    } else
        return false;
    return true;
}

static void change(struct fake *fake, const struct request *q, struct tarn_buf *out)
{
    const char *key = key_of(fake, q->texts[1], q->texts[2]);
    fake->changes++;
    if (is(q, "create_database") || is(q, "alter_database"))
        keep_database(fake, &q->database);
    else if (is(q, "drop_database"))
        tarn_map_remove(fake->databases, q->texts[1]);
    else if (is(q, "create_table_with_environment_context") ||
             is(q, "alter_table_with_environment_context"))
        keep_table(fake, &q->table);
    else if (is(q, "drop_table"))
        tarn_map_remove(fake->tables, S(key));
    else if (is(q, "add_partitions_req"))
        for (size_t i = 0; i < q->list_count; i++)
            tarn_map_set(
                fake->partitions,
                S(tarn_arena_printf(fake->arena, "%s/%.*s", key, TARN_SLICE_ARG(q->list[i]))),
                fake);
    else if (is(q, "drop_partition"))
        tarn_map_remove(fake->partitions, S(tarn_arena_printf(fake->arena, "%s/%.*s,%.*s", key,
                                                              TARN_SLICE_ARG(q->list[0]),
                                                              TARN_SLICE_ARG(q->list[1]))));
    else
        put_failure(out, 1, "the fake doesn't know this call");
}

static void answer(struct fake *fake, const struct request *q, struct tarn_buf *out)
{
    tarn_hms__put_call(out, q->name, q->sequence);
    out->data[3] = 2; /* a reply */
    pthread_mutex_lock(&fake->lock);
    fake->calls++;
    if (!look(fake, q, out)) {
        if (atomic_load(&fake->manner) == FAKE_REFUSES)
            put_failure(out, 3, "not today");
        else
            change(fake, q, out);
    }
    pthread_mutex_unlock(&fake->lock);
    tarn_hms__put_stop(out);
}

/* False: hang up. */
static bool respond(struct peer *peer, const struct request *q)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    int manner = atomic_load(&peer->fake->manner);
    if (manner == FAKE_SILENT)
        while (!atomic_load(&peer->fake->stop) && atomic_load(&peer->fake->manner) == FAKE_SILENT)
            usleep(WAIT_MS * 1000);
    if (manner == FAKE_SILENT || manner == FAKE_CLOSES)
        return false;
    answer(peer->fake, q, &out);
    if (manner == FAKE_HALF)
        out.size /= 2;
    if (manner == FAKE_GARBAGE)
        memcpy(out.data, "HTTP/1.1 400", 12);
    if (manner == FAKE_DEEP) {
        out.size--;
        for (int i = 0; i < 1000000; i++)
            tarn_hms__put_field(&out, HMS_STRUCT, 99);
    }
    for (size_t at = 0; at < out.size;) {
        ssize_t sent = send(peer->fd, out.data + at, out.size - at, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += (size_t)sent;
    }
    return manner != FAKE_HALF;
}

static void serve(struct peer *peer)
{
    bool open = true;
    while (open && !atomic_load(&peer->fake->stop)) {
        TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
        struct tarn_hms__reader *r = tarn_arena_calloc(arena, 1, sizeof *r);
        struct request *q = tarn_arena_calloc(arena, 1, sizeof *q);
        tarn_hms__reader_init(r, arena);
        r->fetch = fetch;
        r->self = peer;
        open = get_request(r, q) && respond(peer, q);
        tarn_hms__reader_fini(r);
    }
}

static void *run(void *arg)
{
    struct fake *fake = arg;
    while (wait_for(fake, fake->listen_fd)) {
        struct peer peer = {fake, accept(fake->listen_fd, NULL, NULL)};
        if (peer.fd >= 0) {
            serve(&peer);
            close(peer.fd);
        }
    }
    return NULL;
}

void fake_start(struct fake *fake)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    fake->arena = tarn_arena_new();
    fake->databases = tarn_map_new();
    fake->tables = tarn_map_new();
    fake->partitions = tarn_map_new();
    pthread_mutex_init(&fake->lock, NULL);
    fake->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    expect_int(bind(fake->listen_fd, (struct sockaddr *)&at, sizeof at), 0);
    expect_int(listen(fake->listen_fd, 16), 0);
    expect_int(getsockname(fake->listen_fd, (struct sockaddr *)&at, &size), 0);
    fake->port = ntohs(at.sin_port);
    expect_int(pthread_create(&fake->thread, NULL, run, fake), 0);
}

void fake_stop(struct fake *fake)
{
    atomic_store(&fake->stop, true);
    pthread_join(fake->thread, NULL);
    close(fake->listen_fd);
    tarn_map_free(fake->databases);
    tarn_map_free(fake->tables);
    tarn_map_free(fake->partitions);
    tarn_arena_free(fake->arena);
    pthread_mutex_destroy(&fake->lock);
}

void fake_add_table(struct fake *fake, const char *database, const char *name)
{
    struct tarn_hms__database theirs = {.name = S(database)};
    struct tarn_hms__table table = {.database = S(database), .name = S(name), .kind = S("x")};
    pthread_mutex_lock(&fake->lock);
    if (tarn_map_find(fake->databases, S(database)) == NULL)
        keep_database(fake, &theirs);
    keep_table(fake, &table);
    pthread_mutex_unlock(&fake->lock);
}

struct tarn_hms__table *fake_table(struct fake *fake, struct tarn_test *t, const char *name)
{
    pthread_mutex_lock(&fake->lock);
    const struct tarn_hms__table *found = tarn_map_find(fake->tables, S(name));
    struct tarn_hms__table *table = found == NULL ? NULL : copy_table(t->arena, found);
    pthread_mutex_unlock(&fake->lock);
    return table;
}

static bool has(struct fake *fake, const struct tarn_map *map, const char *name)
{
    pthread_mutex_lock(&fake->lock);
    bool found = tarn_map_find(map, S(name)) != NULL;
    pthread_mutex_unlock(&fake->lock);
    return found;
}

bool fake_has_database(struct fake *fake, const char *name)
{
    return has(fake, fake->databases, name);
}

bool fake_has_partition(struct fake *fake, const char *name)
{
    return has(fake, fake->partitions, name);
}

void fake_drop(struct fake *fake, const char *name)
{
    pthread_mutex_lock(&fake->lock);
    tarn_map_remove(fake->tables, S(name));
    pthread_mutex_unlock(&fake->lock);
}

void fake_set_location(struct fake *fake, const char *name, const char *location)
{
    pthread_mutex_lock(&fake->lock);
    struct tarn_hms__table *table = tarn_map_find(fake->tables, S(name));
    if (table != NULL)
        table->location = tarn_arena_copy(fake->arena, S(location));
    pthread_mutex_unlock(&fake->lock);
}

int64_t fake_changes(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    int64_t changes = fake->changes;
    pthread_mutex_unlock(&fake->lock);
    return changes;
}
