#include "table/pages_internal.h"

/* The directories of pages: what is there, what changes it, and what plans see of it. */

/* --- bounds --- */

struct tarn_page_bounds *tarn_page_bounds_new(void)
{
    struct tarn_page_bounds *bounds = tarn_calloc(1, sizeof *bounds);
    atomic_init(&bounds->ref_count, 1);
    bounds->arena = tarn_arena_new();
    return bounds;
}

struct tarn_page_bounds *tarn_page_bounds_ref(struct tarn_page_bounds *bounds)
{
    if (bounds != NULL)
        atomic_fetch_add(&bounds->ref_count, 1);
    return bounds;
}

void tarn_page_bounds_unref(struct tarn_page_bounds *bounds)
{
    if (bounds == NULL || atomic_fetch_sub(&bounds->ref_count, 1) != 1)
        return;
    tarn_arena_free(bounds->arena);
    free(bounds);
}

/* --- pages of a directory; index_lock is held --- */

struct tarn_page *tarn_table__page_new(struct tarn_slice first, size_t bucket_size)
{
    struct tarn_page *page = tarn_calloc(1, sizeof *page + first.size);
    page->first = (uint8_t *)(page + 1);
    memcpy(page->first, first.data, first.size);
    page->first_size = (uint32_t)first.size;
    page->recorded = true; /* until it is said that it changed */
    page->bucket_size = (uint32_t)bucket_size;
    return page;
}

static void page_clear(struct tarn_page *page)
{
    tarn_table__page_let_go(page);
    tarn_page_bounds_unref(tarn_move(page->bounds));
}

void tarn_table__page_free(struct tarn_page *page)
{
    page_clear(page);
    free(page);
}

/* How many pages begin at or before `key`: the last of them is the one that holds it, if it is of the same bucket. */
static size_t pages_up_to(const struct tarn_pages *pages, struct tarn_slice key)
{
    size_t low = 0, high = pages->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tarn_slice_compare(tarn_page_first(pages->list[middle]), key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert_page(struct tarn_pages *pages, size_t at, struct tarn_page *page)
{
    page->version = ++pages->next_version;
    TARN_GROW(pages->list, pages->count, pages->capacity);
    memmove(pages->list + at + 1, pages->list + at, (pages->count - at) * sizeof *pages->list);
    pages->list[at] = page;
    pages->count++;
}

/* The page that `key` belongs to; made where its bucket is new. */
static struct tarn_page *page_for(struct tarn_pages *pages, struct tarn_slice key,
                                  size_t bucket_size)
{
    size_t n = pages_up_to(pages, key);
    struct tarn_slice bucket = tarn_slice_of(key.data, bucket_size);
    if (n > 0 && tarn_slice_equal(tarn_page_bucket_key(pages->list[n - 1]), bucket))
        return pages->list[n - 1];
    struct tarn_page *page = tarn_table__page_new(bucket, bucket_size);
    insert_page(pages, n, page);
    return page;
}

struct tarn_pages *tarn_table__pages_new(void)
{
    struct tarn_pages *pages = tarn_calloc(1, sizeof *pages);
    pthread_mutex_init(&pages->build_lock, NULL);
    pages->touched = tarn_map_new();
    pages->touched_all = true;
    return pages;
}

static void drop_directory(struct tarn_pages *pages)
{
    for (size_t i = 0; i < pages->count; i++)
        tarn_table__page_free(pages->list[i]);
    free(pages->list);
    pages->list = NULL;
    pages->count = pages->capacity = 0;
    pages->known = false;
}

void tarn_table__pages_free(struct tarn_pages *pages)
{
    if (pages == NULL)
        return;
    drop_directory(pages);
    tarn_table__touched_free(pages->touched);
    tarn_buf_drop(&pages->missed);
    pthread_mutex_destroy(&pages->build_lock);
    free(pages);
}

/* --- changes --- */

static void change(struct tarn_pages *pages, struct tarn_slice key, size_t bucket_size, int count,
                   bool written)
{
    struct tarn_page *page = page_for(pages, key, bucket_size);
    page->recorded |= !written;
    page->version = ++pages->next_version;
    page->count += count;
    page->total_buckets = 0;
    page_clear(page);
}

static struct tarn_slice rest_of(struct tarn_slice key)
{
    return tarn_slice_of(key.data + TARN_INDEX_UUID_SIZE, key.size - TARN_INDEX_UUID_SIZE);
}

void tarn_table__pages_changing(struct tarn_table *table, struct tarn_state_batch *batch,
                                struct tarn_slice key)
{
    struct tarn_pages *pages = table->pages;
    if (!pages->known)
        return; /* the state has no directory either */
    struct tarn_slice rest = rest_of(key);
    struct tarn_page *page = page_for(pages, rest, tarn_table__bucket_size(rest));
    if (page->recorded)
        tarn_table__record_put_changed(batch, table, tarn_page_first(page));
    page->recorded = false;
}

void tarn_table__pages_changed(struct tarn_table *table, struct tarn_slice key, int count,
                               const struct tarn_file_change *change_made, bool written)
{
    struct tarn_pages *pages = table->pages;
    struct tarn_slice rest = rest_of(key);
    size_t bucket_size = tarn_table__bucket_size(rest);
    tarn_table__touch_bucket(pages, tarn_slice_of(rest.data, bucket_size),
                             written ? change_made : NULL);
    if (pages->building) {
        uint64_t head[2] = {rest.size, (uint64_t)(int64_t)count};
        tarn_buf_add(&pages->missed, head, sizeof head);
        tarn_buf_add_slice(&pages->missed, rest);
    } else if (pages->known) {
        change(pages, rest, bucket_size, count, written);
    }
}

int64_t tarn_table__pages_stamp(struct tarn_table *table)
{
    return ++table->pages->change_stamp;
}

static void write_records(struct tarn_table *table, struct tarn_state_batch *batch)
{
    tarn_status_free(tarn_state_write(table->env->state, batch, false)); /* else it is read again */
}

void tarn_table__pages_forget(struct tarn_table *table)
{
    struct tarn_pages *pages = table->pages;
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    drop_directory(pages);
    pages->epoch++;
    pages->earliest = pages->latest = 0;
    pages->touched_all = true;
    tarn_table__records_remove(batch, table);
    write_records(table, batch);
}

void tarn_table__pages_reached(struct tarn_table *table, int64_t snapshot_id)
{
    table->pages->latest = TARN_MAX(table->pages->latest, snapshot_id);
}

void tarn_table__pages_expire(struct tarn_table *table, int64_t earliest)
{
    table->pages->earliest = TARN_MAX(table->pages->earliest, earliest);
}

int64_t tarn_table__pages_epoch(struct tarn_table *table)
{
    pthread_mutex_lock(&table->index_lock);
    int64_t epoch = table->pages->epoch;
    pthread_mutex_unlock(&table->index_lock);
    return epoch;
}

bool tarn_table__pages_is_past(struct tarn_table *table, int64_t snapshot_id)
{
    pthread_mutex_lock(&table->index_lock);
    bool past = table->pages->latest > snapshot_id;
    pthread_mutex_unlock(&table->index_lock);
    return past;
}

/* --- the directory --- */

static void apply_missed(struct tarn_pages *pages)
{
    struct tarn_slice rest = tarn_buf_slice(&pages->missed);
    while (rest.size > 0) {
        uint64_t head[2];
        memcpy(head, rest.data, sizeof head);
        struct tarn_slice key = tarn_slice_of(rest.data + sizeof head, (size_t)head[0]);
        change(pages, key, tarn_table__bucket_size(key), (int)(int64_t)head[1], true);
        rest = tarn_slice_of(key.data + key.size, rest.size - sizeof head - key.size);
    }
    tarn_buf_drop(&pages->missed);
}

/* Pages that nothing is in any more go. */
static void take_directory(struct tarn_table *table, struct tarn_page_reader *r)
{
    struct tarn_pages *pages = table->pages;
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    tarn_page_reader_hold(r);
    for (size_t i = 0; i < r->count; i++) {
        struct tarn_page *page = r->list[i].page;
        if (page->count > 0)
            insert_page(pages, pages->count, page);
        else
            tarn_table__page_free(page);
    }
    r->count = 0;
    pages->known = true;
    apply_missed(pages);
    tarn_table__records_remove(batch, table);
    for (size_t i = 0; i < pages->count; i++)
        tarn_table__record_put(batch, table, pages->list[i]);
    tarn_table__records_mark(batch, table);
    write_records(table, batch);
}

/* From the records, or by a walk over LIVE; commits go on meanwhile and say what they changed. */
static struct tarn_status *build(struct tarn_op *op, struct tarn_table *table)
{
    struct tarn_pages *pages = table->pages;
    TARN_OWN(tarn_page_reader_fini) struct tarn_page_reader r = {0};
    TARN_OWN(tarn_state_view_drop) struct tarn_state_view *view = NULL;
    pthread_mutex_lock(&table->index_lock);
    int64_t epoch = pages->epoch;
    pages->building = true;
    view = tarn_state_view_new(table->env->state);
    pthread_mutex_unlock(&table->index_lock);
    bool found;
    struct tarn_status *s = tarn_table__read_records(op, table, view, &found, &r);
    if (s == TARN_OK && !found) {
        tarn_page_reader_fini(&r);
        r = (struct tarn_page_reader){0};
        s = tarn_table__read_all(op, table, view, &r);
    }
    pthread_mutex_lock(&table->index_lock);
    pages->building = false;
    if (s == TARN_OK && epoch == pages->epoch)
        take_directory(table, &r);
    tarn_buf_drop(&pages->missed);
    pthread_mutex_unlock(&table->index_lock);
    return s;
}

static bool is_known(struct tarn_table *table)
{
    pthread_mutex_lock(&table->index_lock);
    bool known = table->pages->known;
    pthread_mutex_unlock(&table->index_lock);
    return known;
}

static struct tarn_status *need_directory(struct tarn_op *op, struct tarn_table *table)
{
    while (!is_known(table)) { /* again where the index was rebuilt meanwhile */
        pthread_mutex_lock(&table->pages->build_lock);
        struct tarn_status *s = is_known(table) ? TARN_OK : build(op, table);
        pthread_mutex_unlock(&table->pages->build_lock);
        TARN_TRY(s);
    }
    return TARN_OK;
}

struct tarn_status *tarn_table__pages_need(struct tarn_table *table)
{
    struct tarn_op op;
    bool has_records = false;
    TARN_OWN(tarn_buf_drop) struct tarn_buf mark = {0};
    if (is_known(table))
        return TARN_OK;
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_PAGES,
                            tarn_slice_of((const uint8_t *)table->uuid, TARN_INDEX_UUID_SIZE),
                            &has_records, &mark));
    if (!has_records)
        return TARN_OK;
    tarn_op_init(&op);
    struct tarn_status *s = need_directory(&op, table);
    tarn_op_fini(&op);
    return s;
}

/* --- plans --- */

void tarn_page_bucket_fini(struct tarn_page_bucket *bucket)
{
    tarn_buf_drop(&bucket->key);
}

/* The pages of the bucket that begins at `i`; false: it has no files. */
static bool sum_bucket(const struct tarn_pages *pages, size_t i, size_t *end,
                       struct tarn_page_bucket *out)
{
    struct tarn_slice bucket = tarn_page_bucket_key(pages->list[i]);
    out->total_buckets = pages->list[i]->total_buckets;
    out->file_count = 0;
    for (*end = i; *end < pages->count; (*end)++) {
        const struct tarn_page *page = pages->list[*end];
        if (!tarn_slice_equal(tarn_page_bucket_key(page), bucket))
            break;
        out->file_count += page->count;
        if (page->total_buckets != out->total_buckets)
            out->total_buckets = 0;
    }
    return out->file_count > 0;
}

/* Where the bucket begins that follows the bucket `after`. */
static size_t after_bucket(const struct tarn_pages *pages, struct tarn_slice after)
{
    size_t n = pages_up_to(pages, after);
    while (n < pages->count && after.size > 0 &&
           tarn_slice_equal(tarn_page_bucket_key(pages->list[n]), after))
        n++;
    return n;
}

struct tarn_status *tarn_table__pages_next(struct tarn_op *op, struct tarn_table *table,
                                           struct tarn_slice after, bool *found,
                                           struct tarn_page_bucket *out)
{
    TARN_TRY(need_directory(op, table));
    struct tarn_pages *pages = table->pages;
    *found = false;
    pthread_mutex_lock(&table->index_lock);
    size_t i = after_bucket(pages, after), end;
    for (; i < pages->count && !*found; i = end)
        if (sum_bucket(pages, i, &end, out)) {
            *found = true;
            tarn_buf_clear(&out->key);
            tarn_buf_add_slice(&out->key, tarn_page_bucket_key(pages->list[i]));
        }
    pthread_mutex_unlock(&table->index_lock);
    return TARN_OK;
}

void tarn_page_set_fini(struct tarn_page_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        tarn_table__content_unref(set->pages[i].content);
        tarn_page_bounds_unref(set->pages[i].bounds);
    }
    free(set->pages);
    tarn_state_view_drop(&set->view);
    tarn_arena_drop(&set->arena);
    *set = (struct tarn_page_set){0};
}

struct loading {
    struct tarn_op *op;
    struct tarn_table *table;
    struct tarn_slice bucket;
    struct tarn_page_set *set;
    size_t capacity;
    bool *missing; /* of the set's pages: to be read */
    size_t missing_capacity;
};

static struct tarn_slice whole_key(struct loading *l, struct tarn_slice key)
{
    uint8_t *bytes = tarn_arena_alloc(l->set->arena, TARN_INDEX_UUID_SIZE + key.size);
    memcpy(bytes, l->table->uuid, TARN_INDEX_UUID_SIZE);
    memcpy(bytes + TARN_INDEX_UUID_SIZE, key.data, key.size);
    return tarn_slice_of(bytes, TARN_INDEX_UUID_SIZE + key.size);
}

/* One moment: which pages the bucket has, what they hold, and a view of the state where that isn't all. index_lock
 * is held. */
static void look_at_pages(struct loading *l, bool with_view,
                          bool (*wanted)(void *, const struct tarn_page_bounds *), void *arg)
{
    struct tarn_pages *pages = l->table->pages;
    struct tarn_page_set *set = l->set;
    bool any_missing = with_view || set->is_past;
    size_t i = pages_up_to(pages, l->bucket);
    i = i > 0 && tarn_slice_equal(tarn_page_bucket_key(pages->list[i - 1]), l->bucket) ? i - 1 : i;
    for (; i < pages->count && tarn_slice_equal(tarn_page_bucket_key(pages->list[i]), l->bucket);
         i++) {
        struct tarn_page *page = pages->list[i];
        bool want = wanted == NULL || wanted(arg, page->bounds);
        TARN_GROW(set->pages, set->count, l->capacity);
        l->missing = tarn_realloc(l->missing, l->capacity * sizeof *l->missing);
        struct tarn_page_ref *ref = &set->pages[set->count];
        *ref = (struct tarn_page_ref){.content = want ? tarn_table__page_use(page) : NULL,
                                      .bounds = tarn_page_bounds_ref(page->bounds),
                                      .file_count = page->count,
                                      .from = whole_key(l, tarn_page_first(page)),
                                      .version = page->version};
        l->missing[set->count] = want && ref->content == NULL;
        any_missing |= l->missing[set->count];
        if (set->count > 0)
            set->pages[set->count - 1].to = ref->from;
        set->count++;
    }
    if (any_missing)
        set->view = tarn_state_view_new(l->table->env->state);
}

/* What was read becomes what the page holds, unless it has changed since: then it is right for this plan alone. */
static void install(struct loading *l, struct tarn_page_ref *ref, const struct tarn_read_page *read,
                    size_t count)
{
    struct tarn_pages *pages = l->table->pages;
    struct tarn_slice first =
        tarn_slice_of(ref->from.data + TARN_INDEX_UUID_SIZE, ref->from.size - TARN_INDEX_UUID_SIZE);
    pthread_mutex_lock(&l->table->index_lock);
    size_t n = pages_up_to(pages, first);
    struct tarn_page *page = n == 0 ? NULL : pages->list[n - 1];
    if (page != NULL && page->version == ref->version &&
        tarn_slice_equal(tarn_page_first(page), first)) {
        TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
        for (size_t i = 0; i < count; i++) {
            if (i > 0) {
                page =
                    tarn_table__page_new(tarn_page_first(read[i].page), read[i].page->bucket_size);
                insert_page(pages, n + i - 1, page);
            }
            page->count = read[i].page->count;
            page->total_buckets = read[i].page->total_buckets;
            atomic_fetch_add(&read[i].content->ref_count, 1);
            tarn_table__page_hold(page, read[i].content);
            if (!page->recorded || count > 1)
                tarn_table__record_put(batch, l->table, page);
        }
        write_records(l->table, batch);
    }
    pthread_mutex_unlock(&l->table->index_lock);
}

static struct tarn_status *read_missing(struct loading *l)
{
    struct tarn_page_set old = *l->set,
                         made = {.view = old.view, .is_past = old.is_past, .arena = old.arena};
    size_t capacity = 0;
    struct tarn_status *s = TARN_OK;
    for (size_t i = 0; i < old.count; i++) {
        if (s != TARN_OK || !l->missing[i]) {
            TARN_GROW(made.pages, made.count, capacity);
            made.pages[made.count++] = old.pages[i];
            continue;
        }
        TARN_OWN(tarn_page_reader_fini) struct tarn_page_reader r = {0};
        s = tarn_table__read_interval(l->table, l->set->view, old.pages[i].from, old.pages[i].to,
                                      l->bucket.size, &r);
        if (s == TARN_OK)
            install(l, &old.pages[i], r.list, r.count);
        for (size_t n = 0; n < r.count && s == TARN_OK; n++) {
            struct tarn_page_ref ref = {.content = tarn_move(r.list[n].content),
                                        .file_count = r.list[n].page->count,
                                        .from = whole_key(l, tarn_page_first(r.list[n].page)),
                                        .version = r.count == 1 ? old.pages[i].version : 0};
            if (r.count == 1)
                ref.bounds = tarn_move(old.pages[i].bounds);
            ref.to = n + 1 < r.count ? whole_key(l, tarn_page_first(r.list[n + 1].page))
                                     : old.pages[i].to;
            TARN_GROW(made.pages, made.count, capacity);
            made.pages[made.count++] = ref;
        }
        tarn_page_bounds_unref(old.pages[i].bounds);
    }
    free(old.pages);
    *l->set = made;
    return s;
}

static struct tarn_status *check_alive(struct tarn_table *table, int64_t epoch, int64_t snapshot_id)
{
    if (table->pages->epoch != epoch)
        return tarn_status_new(TARN_SNAPSHOT_EXPIRED,
                               "the history of table %s was rewritten while it was planned",
                               tarn_table_name(table));
    if (snapshot_id != INT64_MAX && snapshot_id > table->pages->latest)
        return tarn_status_new(TARN_BUSY, "the index of table %s is being built anew",
                               tarn_table_name(table));
    if (snapshot_id < table->pages->earliest)
        return tarn_status_new(
            TARN_SNAPSHOT_EXPIRED,
            "snapshot %" PRId64
            " of table %s expired while it was planned; the earliest is %" PRId64,
            snapshot_id, tarn_table_name(table), table->pages->earliest);
    return TARN_OK;
}

struct tarn_status *tarn_table__pages_check(struct tarn_table *table, int64_t epoch,
                                            int64_t snapshot_id)
{
    pthread_mutex_lock(&table->index_lock);
    struct tarn_status *s = check_alive(table, epoch, snapshot_id);
    pthread_mutex_unlock(&table->index_lock);
    return s;
}

struct tarn_status *tarn_table__pages_load(struct tarn_op *op, struct tarn_table *table,
                                           struct tarn_slice bucket_key, int64_t epoch,
                                           int64_t snapshot_id, bool with_view,
                                           bool (*wanted)(void *, const struct tarn_page_bounds *),
                                           void *arg, struct tarn_page_set *out)
{
    TARN_TRY(need_directory(op, table));
    TARN_OWN(tarn_page_set_fini) struct tarn_page_set set = {.arena = tarn_arena_new()};
    TARN_OWN(tarn_free_drop) bool *missing = NULL;
    struct loading l = {.op = op, .table = table, .bucket = bucket_key, .set = &set};
    pthread_mutex_lock(&table->index_lock);
    struct tarn_status *s = check_alive(table, epoch, snapshot_id);
    if (s == TARN_OK) {
        set.is_past = table->pages->latest > snapshot_id;
        look_at_pages(&l, with_view, wanted, arg);
    }
    pthread_mutex_unlock(&table->index_lock);
    missing = l.missing;
    TARN_TRY(s);
    TARN_OWN(tarn_buf_drop) struct tarn_buf end = {0};
    tarn_table__range_end(table->uuid, bucket_key, &end);
    if (set.count > 0)
        set.pages[set.count - 1].to = tarn_arena_copy(set.arena, tarn_buf_slice(&end));
    bool any = false;
    for (size_t i = 0; i < set.count; i++)
        any |= missing[i];
    if (any)
        TARN_TRY(read_missing(&l));
    *out = set;
    set = (struct tarn_page_set){0};
    return TARN_OK;
}

void tarn_table__pages_keep_bounds(struct tarn_table *table, const struct tarn_page_ref *ref,
                                   struct tarn_page_bounds *bounds)
{
    struct tarn_pages *pages = table->pages;
    struct tarn_slice first =
        tarn_slice_of(ref->from.data + TARN_INDEX_UUID_SIZE, ref->from.size - TARN_INDEX_UUID_SIZE);
    struct tarn_page_bounds *old = bounds;
    pthread_mutex_lock(&table->index_lock);
    size_t n = pages_up_to(pages, first);
    struct tarn_page *page = n == 0 ? NULL : pages->list[n - 1];
    if (ref->version != 0 && page != NULL && page->version == ref->version &&
        tarn_slice_equal(tarn_page_first(page), first)) {
        TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
        old = page->bounds;
        page->bounds = bounds;
        tarn_table__record_put(batch, table, page);
        write_records(table, batch);
    }
    pthread_mutex_unlock(&table->index_lock);
    tarn_page_bounds_unref(old);
}
