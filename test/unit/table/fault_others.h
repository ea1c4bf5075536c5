/* fault_others - what other programs do to a table's folder, also in the midst of a call of ours. */
#ifndef TARN_TEST_TABLE_FAULT_OTHERS_H
#define TARN_TEST_TABLE_FAULT_OTHERS_H

#include "fixture.h"

/* Called once, right before (or after) a call of the table reaches the store: another program is faster, or we are paused. */
struct moment {
    const char *call;     /* "put_if_absent", "get", "stat", "put_many", "list", "remove" */
    const char *key_part; /* in the key */
    atomic_int skip;      /* lets so many such calls through first */
    bool afterwards;
    void (*act)(void *arg);
    void *arg;
    atomic_int happened;
};
/* From here on f->env.store goes by way of this; until fixture_restart, which has to be followed by another call. */
void moment_init(struct fixture *f, struct moment *m);

/* Both clocks stand still from here on; the table sees no time pass. */
void pause_init(void);
/* So much time passes, as for a process that isn't run. */
void pause_for(int64_t ms);

/* --- other programs, straight to the store --- */
/* A snapshot behind the newest in the folder, made by `user`: its id. Other ids may be missing. */
int64_t others_commit(struct fixture *f, const char *user,
                      const struct tarn_manifest_entry *entries, size_t count);
/* The same of one file (fixture_file), by "others". */
int64_t others_append(struct fixture *f, const char *name);
/* As the first, but it becomes snapshot `id`, standing on what `base` names (its bytes). */
void others_put(struct fixture *f, int64_t id, struct tarn_slice base, const char *user,
                const struct tarn_manifest_entry *entries, size_t count);
/* Truncates the history, newest first, hint first, as Paimon does; manifests that only those need go, too. */
void others_roll_back(struct fixture *f, int64_t to);
/* Snapshots below `keep` go, oldest last, and the manifests that only they need. */
void others_expire(struct fixture *f, int64_t keep);
int64_t others_newest(struct fixture *f);
/* As Paimon's readers find it: by the hint, where no snapshot follows the one that it names; else as above. */
int64_t others_hinted(struct fixture *f);
int64_t others_oldest(struct fixture *f);
/* Another text of schema `id`: one with the column `column` INT, id 2, behind the others. */
void others_put_schema(struct fixture *f, int64_t id, const char *column);

bool folder_has(struct fixture *f, const char *name); /* "snapshot/snapshot-3" */
struct tarn_slice folder_get(struct fixture *f, const char *name);
void folder_put(struct fixture *f, const char *name, struct tarn_slice body);
void folder_remove(struct fixture *f, const char *name);
/* What a reader without an index sees: names of live files by the manifests of snapshot `id`, sorted. Fails the test where
 * anything that it needs is missing. */
const char *folder_files(struct fixture *f, int64_t id);
/* The folder as a whole is sound: ids without gaps, each stands on the one before, and each can be read. */
void folder_check(struct fixture *f);

#endif
