#include "state/internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/exec.h"

/*
 * What RocksDB would pass over in silence. An end of its MANIFEST that it can't read counts as never written, which it is after
 * a loss of power. Where it was durable and got lost otherwise, families would come back from different moments, or all
 * without a piece of the past whose log is gone.
 *
 * So none of RocksDB's files is removed (they are collected meanwhile) before the file MARK says how long the MANIFEST was that
 * doesn't need it, and the hash of that much. A MANIFEST that lacks some of it is damage. One that lacks only what
 * came behind loses nothing: the logs that are needed then are all there.
 */

#define MARK_FILE "MARK"
#define MARK_SIZE 128 /* one sector holds it: it is replaced whole */
#define NAME_SIZE 32
#define MARK_EVERY_SIZE ((size_t)8 << 20) /* of batches … */
#define MARK_EVERY_MS 10000 /* … or of time: what isn't needed any more waits for it */
/* The whole MANIFEST is hashed each time: it is 16 MiB at most, 2 ms, and mostly a few KiB. */

struct mark {
    char manifest[NAME_SIZE];
    size_t size;
    uint64_t hash;
};

/* ---- files ---- */

/* A file's bytes, borrowed from the system. */
struct mapped {
    void *data;
    size_t size;
};

static void mapped_drop(struct mapped *m)
{
    if (m->size > 0)
        munmap(m->data, m->size);
}

static struct tarn_status *map_file(const char *folder, const char *name, bool *found,
                                    struct mapped *out)
{
    TARN_OWN(tarn_free_drop) char *path = tarn_format("%s/%s", folder, name);
    struct stat st = {0};
    int error = 0, fd = open(path, O_RDONLY | O_CLOEXEC);
    *found = fd >= 0;
    *out = (struct mapped){NULL, 0};
    if (fd < 0)
        return errno == ENOENT ? TARN_OK : tarn_status_errno(errno, "open %s", path);
    if (fstat(fd, &st) != 0)
        error = errno;
    if (error == 0 && st.st_size > 0) {
        out->data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        error = out->data == MAP_FAILED ? errno : 0;
        out->size = error == 0 ? (size_t)st.st_size : 0;
    }
    close(fd);
    return error == 0 ? TARN_OK : tarn_status_errno(error, "read %s", path);
}

static struct tarn_slice slice_of(const struct mapped *m)
{
    return tarn_slice_of(m->data, m->size);
}

static bool all_zero(struct tarn_slice bytes)
{
    return bytes.size == 0 ||
           (bytes.data[0] == 0 && memcmp(bytes.data, bytes.data + 1, bytes.size - 1) == 0);
}

/* ---- the mark ---- */

/* The manifest that RocksDB would begin with; empty: CURRENT names none, and it will say so. */
static struct tarn_status *current_manifest(const char *folder, char out[NAME_SIZE])
{
    TARN_OWN(mapped_drop) struct mapped current = {0};
    bool found;
    out[0] = '\0';
    TARN_TRY(map_file(folder, "CURRENT", &found, &current));
    struct tarn_slice name = slice_of(&current);
    if (name.size < 2 || name.size > NAME_SIZE || name.data[name.size - 1] != '\n' ||
        memchr(name.data, '/', name.size) != NULL)
        return TARN_OK;
    memcpy(out, name.data, name.size - 1);
    out[name.size - 1] = '\0';
    return TARN_OK;
}

static struct tarn_status *damaged(const char *folder, const char *name, const char *what)
{
    return tarn_status_new(TARN_STATE_DAMAGED, "the state in %s: file %s %s", folder, name, what);
}

/* name | size | hash, and nothing but zeros behind. A mark that was never written is none. */
static struct tarn_status *read_mark(const char *folder, bool *found, struct mark *out)
{
    TARN_OWN(mapped_drop) struct mapped file = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
    uint64_t size;
    TARN_TRY(map_file(folder, MARK_FILE, found, &file));
    struct tarn_slice text = slice_of(&file);
    if (!*found || all_zero(text)) {
        *found = false;
        return TARN_OK;
    }
    if (!tarn_key_take_bytes(&text, &name) || name.size >= NAME_SIZE ||
        !tarn_key_take_u64(&text, &size) || !tarn_key_take_u64(&text, &out->hash))
        return damaged(folder, MARK_FILE, "is not readable");
    memcpy(out->manifest, name.data, name.size);
    out->manifest[name.size] = '\0';
    out->size = (size_t)size;
    return TARN_OK;
}

static struct tarn_status *check_mark(const char *folder)
{
    struct mark mark;
    char current[NAME_SIZE];
    bool found;
    TARN_OWN(mapped_drop) struct mapped manifest = {0};
    TARN_TRY(read_mark(folder, &found, &mark));
    TARN_TRY(current_manifest(folder, current));
    if (found && current[0] == '\0')
        return damaged(folder, "CURRENT", "names no manifest");
    if (!found || strcmp(current, mark.manifest) != 0)
        return TARN_OK; /* of an older program, or cut off between a new manifest and its mark */
    TARN_TRY(map_file(folder, current, &found, &manifest));
    struct tarn_slice known = tarn_slice_of(manifest.data, TARN_MIN(mark.size, manifest.size));
    if (manifest.size < mark.size || tarn_xxh64(known, 0) != mark.hash)
        return damaged(folder, current, "has lost a part");
    return TARN_OK;
}

static struct tarn_status *write_mark(const char *folder, const struct mark *mark)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_OWN(tarn_free_drop) char *path = tarn_format("%s/" MARK_FILE, folder);
    tarn_key_add_bytes(&text, tarn_slice_str(mark->manifest));
    tarn_key_add_u64(&text, mark->size);
    tarn_key_add_u64(&text, mark->hash);
    tarn_buf_add_zeros(&text, MARK_SIZE - text.size);
    int error = 0, fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return tarn_status_errno(errno, "open %s", path);
    if (pwrite(fd, text.data, MARK_SIZE, 0) != MARK_SIZE || fdatasync(fd) != 0)
        error = errno;
    close(fd);
    return error == 0 ? TARN_OK : tarn_status_errno(error, "write %s", path);
}

/* What RocksDB has written of it may not be on the disk yet; a mark that is ahead of that would call it lost. */
static struct tarn_status *sync_file(const char *folder, const char *name)
{
    TARN_OWN(tarn_free_drop) char *path = tarn_format("%s/%s", folder, name);
    int error, fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tarn_status_errno(errno, "open %s", path);
    error = fdatasync(fd) == 0 ? 0 : errno;
    close(fd);
    return error == 0 ? TARN_OK : tarn_status_errno(error, "sync %s", path);
}

/* The files that it collected go; from now on it collects again. Not by force: where it couldn't write its MANIFEST it
 * keeps them itself. */
static struct tarn_status *remove_files(struct tarn_state *state)
{
    char *error = NULL;
    rocksdb_enable_file_deletions(state->db, 0, &error);
    TARN_TRY(tarn_state__error(state, error, "clean up"));
    rocksdb_disable_file_deletions(state->db, &error);
    return tarn_state__error(state, error, "clean up");
}

static struct tarn_status *mark_locked(struct tarn_state *state)
{
    struct mark mark;
    bool found;
    TARN_OWN(mapped_drop) struct mapped manifest = {0};
    atomic_store(&state->unmarked_size, 0);
    atomic_store(&state->marked_ms, tarn_clock_mono_ms());
    TARN_TRY(current_manifest(state->folder, mark.manifest));
    TARN_TRY(map_file(state->folder, mark.manifest, &found, &manifest));
    TARN_TRY(sync_file(state->folder, mark.manifest));
    mark.size = manifest.size;
    mark.hash = tarn_xxh64(slice_of(&manifest), 0);
    TARN_TRY(write_mark(state->folder, &mark));
    atomic_store(&state->marked_size, mark.size);
    return remove_files(state);
}

struct tarn_status *tarn_state__mark(struct tarn_state *state)
{
    pthread_mutex_lock(&state->marking);
    struct tarn_status *s = mark_locked(state);
    pthread_mutex_unlock(&state->marking);
    return s;
}

void tarn_state__mark_sometimes(struct tarn_state *state, size_t written_size)
{
    size_t size = atomic_fetch_add(&state->unmarked_size, written_size) + written_size;
    if (size < MARK_EVERY_SIZE &&
        tarn_clock_mono_ms() - atomic_load(&state->marked_ms) < MARK_EVERY_MS)
        return;
    if (pthread_mutex_trylock(&state->marking) != 0)
        return; /* another thread does */
    struct tarn_status *s = mark_locked(state);
    pthread_mutex_unlock(&state->marking);
    if (s !=
        TARN_OK) /* what was written is; files that aren't needed any more stay until the next one */
        tarn_log_status(NULL, TARN_WARN, "state.mark_failed", s);
}

/* Compactions go on after the last write, and what they leave would wait for the next. Each adds to the MANIFEST. */
void tarn_state_tidy(struct tarn_state *state)
{
    char name[NAME_SIZE];
    struct stat st;
    if (tarn_clock_mono_ms() - atomic_load(&state->marked_ms) < MARK_EVERY_MS)
        return;
    tarn_state__enter(state);
    struct tarn_status *s = current_manifest(state->folder, name);
    TARN_OWN(tarn_free_drop) char *path = tarn_format("%s/%s", state->folder, name);
    if (s == TARN_OK && state->db != NULL && !atomic_load(&state->stopped) &&
        stat(path, &st) == 0 && (size_t)st.st_size != atomic_load(&state->marked_size))
        tarn_state__mark_sometimes(state, 0);
    tarn_state__leave(state);
    tarn_status_free(s); /* the next mark says so */
}

/* ---- the log ---- */

#define LOG_BLOCK 32768 /* records don't cross blocks: a long one is several */
#define LOG_HEADER 7    /* checksum (4), size (2), kind (1) */

/* Where its records end: at the end, at an empty header, or where RocksDB, too, notices that something is wrong. */
static size_t records_end(struct tarn_slice log)
{
    size_t at = 0;
    for (size_t size, left; at + LOG_HEADER <= log.size; at += size) {
        const uint8_t *h = log.data + at;
        left = LOG_BLOCK - at % LOG_BLOCK;
        size = LOG_HEADER + (size_t)(h[4] | h[5] << 8);
        if (left < LOG_HEADER) /* too small for one */
            size = left;
        else if (size > left || (size == LOG_HEADER && h[6] == 0) || size > log.size - at)
            return at;
    }
    return TARN_MIN(at, log.size);
}

/* A record whose checksum is wrong: there RocksDB ends, and looks whether its tables are ahead of that. */
static struct tarn_status *spoil(const char *folder, const char *name, size_t at)
{
    static const uint8_t record[LOG_HEADER + 1] = {0, 0, 0, 0, 1, 0, 1, 0xff};
    TARN_OWN(tarn_free_drop) char *path = tarn_format("%s/%s", folder, name);
    int error = 0, fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return tarn_status_errno(errno, "open %s", path);
    if (pwrite(fd, record, sizeof record, (off_t)at) != (ssize_t)sizeof record)
        error = errno;
    close(fd);
    if (error != 0)
        return tarn_status_errno(error, "write %s", path);
    tarn_log(NULL, TARN_WARN, "state.log_ends_early", "file=%s at=%zu", path, at);
    return TARN_OK;
}

static bool is_log(const char *name)
{
    const char *dot = strrchr(name, '.');
    return isdigit((unsigned char)name[0]) && dot != NULL && strcmp(dot, ".log") == 0;
}

/* The newest log's name (their numbers are of one width); empty: there is none. */
static void newest_log(DIR *entries, char out[NAME_SIZE])
{
    out[0] = '\0';
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        if (is_log(entry->d_name) && strlen(entry->d_name) < NAME_SIZE &&
            strcmp(entry->d_name, out) > 0)
            memcpy(out, entry->d_name, strlen(entry->d_name) + 1);
    rewinddir(entries);
}

/* A page that a loss of power kept from the disk is zeros. RocksDB takes them for room that was made for records: it goes on
 * with the next block, or the next log, and what lay between is gone. Room only follows the last record of the newest log. */
static struct tarn_status *check_log(const char *folder, const char *name, bool is_newest)
{
    TARN_OWN(mapped_drop) struct mapped log = {0};
    bool found;
    TARN_TRY(map_file(folder, name, &found, &log));
    size_t end = records_end(slice_of(&log));
    struct tarn_slice rest =
        tarn_slice_of(log.size == 0 ? NULL : (const uint8_t *)log.data + end, log.size - end);
    if (rest.size == 0 || (is_newest && all_zero(rest)))
        return TARN_OK;
    return spoil(folder, name, end);
}

static struct tarn_status *check_logs(const char *folder)
{
    char newest[NAME_SIZE];
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return tarn_status_errno(errno, "open the folder %s", folder);
    newest_log(entries, newest);
    struct tarn_status *s = TARN_OK;
    for (const struct dirent *entry; s == TARN_OK && (entry = readdir(entries)) != NULL;)
        if (is_log(entry->d_name))
            s = check_log(folder, entry->d_name, strcmp(entry->d_name, newest) == 0);
    closedir(entries);
    return s;
}

struct tarn_status *tarn_state__check_intact(const char *folder)
{
    TARN_TRY(check_mark(folder));
    return check_logs(folder);
}
