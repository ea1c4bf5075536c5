/*
 * Drafts that are written and synced before their put_if_absent comes: a put then waits for the sync of a folder, and
 * no more. Kept by key; what isn't foreseen any more goes, and what nobody says that of goes when others come, or with
 * the store.
 */
#include <unistd.h>

#include "store/local.h"

#define READY_COUNT_MAX                                                                            \
    64 /* each holds two files open; with more the oldest goes, and is written again if its put comes */

struct ready {
    struct ready *next;
    struct draft draft;
    struct tarn_buf body;
};

static void free_all(struct ready *list)
{
    while (list != NULL) {
        struct ready *one = list;
        list = one->next;
        tarn_store__draft_fini(&one->draft);
        tarn_buf_drop(&one->body);
        free(one);
    }
}

/* Under the mutex: takes the one of the key out of the list, or NULL. */
static struct ready *take(struct local *local, const char *key)
{
    struct ready **link = &local->ready;
    while (*link != NULL && strcmp((*link)->draft.key, key) != 0)
        link = &(*link)->next;
    struct ready *one = *link;
    if (one != NULL) {
        *link = one->next;
        one->next = NULL;
    }
    return one;
}

/* Under the mutex: those that are too many. */
static struct ready *take_oldest(struct local *local)
{
    struct ready **link = &local->ready;
    for (size_t i = 0; *link != NULL && i < READY_COUNT_MAX; i++)
        link = &(*link)->next;
    struct ready *rest = *link;
    *link = NULL;
    return rest;
}

void tarn_store__ready_keep(struct local *local, struct draft *draft, struct tarn_slice body)
{
    struct ready *one = tarn_calloc(1, sizeof *one);
    one->draft = *draft;
    *draft = (struct draft){.folder = -1, .file = -1};
    tarn_buf_add_slice(&one->body, body);
    pthread_mutex_lock(&local->mutex);
    struct ready *before = take(local, one->draft.key);
    one->next = local->ready;
    local->ready = one;
    struct ready *oldest = take_oldest(local);
    pthread_mutex_unlock(&local->mutex);
    free_all(before);
    free_all(oldest);
}

/* Folders are moved and made again. */
static bool leads_there(struct local *local, const char *key, int folder)
{
    const char *name;
    TARN_OWN(tarn_store__close_drop) int now = -1;
    struct tarn_status *status = tarn_store__local_open_parent(local, key, false, &now, &name);
    bool same = status == TARN_OK && tarn_store__is_same_folder(now, folder);
    tarn_status_free(status);
    return same;
}

struct tarn_status *tarn_store__ready_claim(struct local *local, const char *key,
                                            struct tarn_slice body, bool *found, bool *created)
{
    pthread_mutex_lock(&local->mutex);
    struct ready *one = take(local, key);
    pthread_mutex_unlock(&local->mutex);
    struct tarn_status *status = TARN_OK;
    *found = one != NULL && !atomic_load(&local->sync_lost) &&
             tarn_slice_equal(tarn_buf_slice(&one->body), body) &&
             leads_there(local, key, one->draft.folder);
    if (*found)
        status = tarn_store__draft_claim(&one->draft, created);
    free_all(one);
    if (tarn_status_reason(status) == TARN_OBJECT_NOT_FOUND) { /* somebody cleaned it away */
        tarn_status_drop(&status);
        *found = false;
    }
    return status;
}

void tarn_store__local_unforesee(void *self, const char *key)
{
    struct local *local = self;
    pthread_mutex_lock(&local->mutex);
    struct ready *one = take(local, key);
    pthread_mutex_unlock(&local->mutex);
    free_all(one);
}

void tarn_store__ready_forget(struct local *local)
{
    free_all(local->ready);
    local->ready = NULL;
}
