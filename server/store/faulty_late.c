/*
 * Puts that reach the store below after their caller was told that nobody knows, and the memory of
 * what was created lately, for lists that miss it.
 *
 * A late put goes through put_if_absent, so that it is conditional to the end. It is taken off the list
 * first and carried out without the mutex, by whoever finds that it is due: the next call, or the
 * timekeeper, a thread that lives from the first put that is late by time until the store closes.
 */
#include <time.h>

#include "store/faulty_internal.h"

static int64_t real_mono_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void late_fini(struct late_put *late)
{
    free(late->key);
    tarn_buf_drop(&late->body);
}

/* The outcome is nobody's business any more. */
static void carry_out(struct faulty *f, struct late_put *late)
{
    bool created;
    struct tarn_op op;
    tarn_op_init(&op);
    tarn_status_free(
        tarn_store_put_if_absent(f->inner, &op, late->key, tarn_buf_slice(&late->body), &created));
    tarn_op_fini(&op);
    late_fini(late);
}

/* Under the mutex, which it leaves meanwhile. False: nothing is due. */
static bool carry_out_one(struct faulty *f, int64_t number, int64_t now_ms)
{
    for (size_t i = 0; i < f->late_count; i++) {
        if (f->lates[i].due_call > number && f->lates[i].due_mono_ms > now_ms)
            continue;
        struct late_put late = f->lates[i];
        f->late_count--;
        memmove(&f->lates[i], &f->lates[i + 1], (f->late_count - i) * sizeof late);
        pthread_mutex_unlock(&f->mutex);
        carry_out(f, &late);
        pthread_mutex_lock(&f->mutex);
        return true;
    }
    return false;
}

void tarn_store__faulty_land(struct faulty *f, int64_t number)
{
    int64_t now_ms = number == INT64_MAX ? INT64_MAX : -1; /* time is the timekeeper's */
    pthread_mutex_lock(&f->mutex);
    while (carry_out_one(f, number, now_ms)) {}
    pthread_mutex_unlock(&f->mutex);
}

/* Under the mutex. */
static void sleep_until_due(struct faulty *f)
{
    int64_t due_ms = INT64_MAX;
    for (size_t i = 0; i < f->late_count; i++)
        due_ms = TARN_MIN(due_ms, f->lates[i].due_mono_ms);
    if (due_ms == INT64_MAX) {
        pthread_cond_wait(&f->changed, &f->mutex);
        return;
    }
    struct timespec until = {due_ms / 1000, due_ms % 1000 * 1000000};
    pthread_cond_timedwait(&f->changed, &f->mutex, &until);
}

static void *keep_time(void *arg)
{
    struct faulty *f = arg;
    pthread_mutex_lock(&f->mutex);
    while (!f->stop) {
        if (!carry_out_one(f, -1, real_mono_ms()))
            sleep_until_due(f);
    }
    pthread_mutex_unlock(&f->mutex);
    return NULL;
}

/* Under the mutex. */
static void start_timekeeper(struct faulty *f)
{
    if (f->has_timekeeper)
        return;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&f->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    tarn_assert(pthread_create(&f->timekeeper, NULL, keep_time, f) == 0);
    f->has_timekeeper = true;
}

void tarn_store__faulty_put_late(struct faulty *f, const struct strike *strike, const char *key,
                                 struct tarn_slice body)
{
    struct late_put late = {
        .key = tarn_strdup(key),
        .due_call = strike->calls > 0 ? strike->number + 1 + strike->calls : INT64_MAX,
        .due_mono_ms = strike->delay_ms > 0 ? real_mono_ms() + strike->delay_ms : INT64_MAX,
    };
    tarn_buf_add(&late.body, body.data, body.size);
    pthread_mutex_lock(&f->mutex);
    TARN_GROW(f->lates, f->late_count, f->late_capacity);
    f->lates[f->late_count++] = late;
    if (late.due_mono_ms != INT64_MAX) {
        start_timekeeper(f);
        pthread_cond_signal(&f->changed);
    }
    pthread_mutex_unlock(&f->mutex);
}

void tarn_store__faulty_late_fini(struct faulty *f)
{
    pthread_mutex_lock(&f->mutex);
    bool had_timekeeper = f->has_timekeeper;
    f->stop = true;
    if (had_timekeeper)
        pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->mutex);
    if (had_timekeeper) {
        pthread_join(f->timekeeper, NULL);
        pthread_cond_destroy(&f->changed);
    }
    for (size_t i = 0; i < f->late_count; i++)
        late_fini(&f->lates[i]);
    free(f->lates);
    for (size_t i = 0; i < TARN_STORE_BIRTHS_MAX; i++)
        free(f->births[i].key);
}

/* ---- what was created lately ---- */

void tarn_store__faulty_born(struct faulty *f, int64_t number, const char *key)
{
    pthread_mutex_lock(&f->mutex);
    struct birth *birth = &f->births[f->birth_count++ % TARN_STORE_BIRTHS_MAX];
    free(birth->key);
    *birth = (struct birth){tarn_strdup(key), number};
    pthread_mutex_unlock(&f->mutex);
}

bool tarn_store__faulty_is_young(struct faulty *f, const char *key, int64_t number, int calls)
{
    bool young = false;
    pthread_mutex_lock(&f->mutex);
    size_t known = TARN_MIN(f->birth_count, (size_t)TARN_STORE_BIRTHS_MAX);
    for (size_t i = 1; i <= known && !young; i++) {
        const struct birth *birth = &f->births[(f->birth_count - i) % TARN_STORE_BIRTHS_MAX];
        if (birth->call < number - calls)
            break; /* the ring is in order, but for calls that ran side by side */
        young = strcmp(birth->key, key) == 0;
    }
    pthread_mutex_unlock(&f->mutex);
    return young;
}
