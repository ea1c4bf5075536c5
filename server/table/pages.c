#include "table/internal.h"
#include "table/pages.h"

#include "table/index.h"

/* What pages hold is of the cache lock; what pages there are, of their table's index_lock. */
struct page {
    uint8_t *first; /* where its interval begins: LIVE's key without the uuid */
    uint32_t first_size, bucket_size;
    int32_t total_buckets;
    int64_t count; /* of live files, kept up by changes */
    int64_t version;
    struct tarn_page_content *content; /* of the cache lock, as all below; NULL: to be read */
    struct tarn_page_bounds *bounds;
    struct page *newer, *older;
};

struct tarn_pages {
    bool known; /* the directory stands */
    struct page **list;
    size_t count, capacity;
    int64_t epoch, earliest, latest, next_version;
    bool building;          /* somebody walks LIVE to make it */
    struct tarn_buf missed; /* keys that changed meanwhile, each behind its size and count */
    pthread_mutex_t build_lock;
    struct tarn_map *touched; /* bucket key -> anything */
    bool touched_all;
};

static struct {
    pthread_mutex_t lock;
    struct page *newest, *oldest;
    size_t size;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- what pages hold --- */

static void content_unref(struct tarn_page_content *content)
{
    if (content != NULL && atomic_fetch_sub(&content->ref_count, 1) == 1)
        free(content);
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

/* --- the cache; its lock is held --- */

static void unlink_page(struct page *page)
{
    *(page->newer == NULL ? &cache.newest : &page->newer->older) = page->older;
    *(page->older == NULL ? &cache.oldest : &page->older->newer) = page->newer;
    page->newer = page->older = NULL;
}

static void link_newest(struct page *page)
{
    page->older = cache.newest;
    *(cache.newest == NULL ? &cache.oldest : &cache.newest->newer) = page;
    cache.newest = page;
}

static void drop_content(struct page *page)
{
    if (page->content == NULL)
        return;
    cache.size -= page->content->size;
    unlink_page(page);
    content_unref(page->content);
    page->content = NULL;
}

static void set_content(struct page *page, struct tarn_page_content *content)
{
    drop_content(page);
    page->content = content;
    cache.size += content->size;
    link_newest(page);
    while (cache.size > TARN_PAGES_SIZE_MAX && cache.oldest != NULL)
        drop_content(cache.oldest);
}

static struct tarn_page_content *use_content(struct page *page)
{
    if (page->content == NULL)
        return NULL;
    unlink_page(page);
    link_newest(page);
    atomic_fetch_add(&page->content->ref_count, 1);
    return page->content;
}

/* --- pages of a directory; index_lock is held --- */

static struct page *page_new(struct tarn_slice first, size_t bucket_size)
{
    struct page *page = tarn_calloc(1, sizeof *page + first.size);
    page->first = (uint8_t *)(page + 1);
    memcpy(page->first, first.data, first.size);
    page->first_size = (uint32_t)first.size;
    page->bucket_size = (uint32_t)bucket_size;
    return page;
}

static void page_clear(struct page *page)
{
    pthread_mutex_lock(&cache.lock);
    drop_content(page);
    struct tarn_page_bounds *bounds = page->bounds;
    page->bounds = NULL;
    pthread_mutex_unlock(&cache.lock);
    tarn_page_bounds_unref(bounds);
}

static void page_free(struct page *page)
{
    page_clear(page);
    free(page);
}

static struct tarn_slice first_of(const struct page *page)
{
    return tarn_slice_of(page->first, page->first_size);
}

static struct tarn_slice bucket_of(const struct page *page)
{
    return tarn_slice_of(page->first, page->bucket_size);
}

/* How many pages begin at or before `key`: the last of them is the one that holds it, if it is of the same bucket. */
static size_t pages_up_to(const struct tarn_pages *pages, struct tarn_slice key)
{
    size_t low = 0, high = pages->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tarn_slice_compare(first_of(pages->list[middle]), key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert_page(struct tarn_pages *pages, size_t at, struct page *page)
{
    page->version = ++pages->next_version;
    TARN_GROW(pages->list, pages->count, pages->capacity);
    memmove(pages->list + at + 1, pages->list + at, (pages->count - at) * sizeof *pages->list);
    pages->list[at] = page;
    pages->count++;
}

/* The page that `key` belongs to; made where its bucket is new. */
static struct page *page_for(struct tarn_pages *pages, struct tarn_slice key, size_t bucket_size)
{
    size_t n = pages_up_to(pages, key);
    struct tarn_slice bucket = tarn_slice_of(key.data, bucket_size);
    if (n > 0 && tarn_slice_equal(bucket_of(pages->list[n - 1]), bucket))
        return pages->list[n - 1];
    struct page *page = page_new(bucket, bucket_size);
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
        page_free(pages->list[i]);
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
    tarn_map_free(pages->touched);
    tarn_buf_drop(&pages->missed);
    pthread_mutex_destroy(&pages->build_lock);
    free(pages);
}

/* --- changes --- */

static void touch_bucket(struct tarn_pages *pages, struct tarn_slice bucket)
{
    if (pages->touched_all)
        return;
    if (tarn_map_count(pages->touched) < TARN_TOUCHED_MAX)
        tarn_map_set(pages->touched, bucket, pages);
    else
        pages->touched_all = true;
}

static void change(struct tarn_pages *pages, struct tarn_slice key, size_t bucket_size, int count)
{
    struct page *page = page_for(pages, key, bucket_size);
    page->version = ++pages->next_version;
    page->count += count;
    page->total_buckets = 0;
    page_clear(page);
}

void tarn_table__pages_changed(struct tarn_table *table, struct tarn_slice key, int count)
{
    struct tarn_pages *pages = table->pages;
    struct tarn_slice rest =
        tarn_slice_of(key.data + TARN_INDEX_UUID_SIZE, key.size - TARN_INDEX_UUID_SIZE);
    size_t bucket_size = tarn_table__bucket_size(rest);
    touch_bucket(pages, tarn_slice_of(rest.data, bucket_size));
    if (pages->building) {
        uint64_t head[2] = {rest.size, (uint64_t)(int64_t)count};
        tarn_buf_add(&pages->missed, head, sizeof head);
        tarn_buf_add_slice(&pages->missed, rest);
    } else if (pages->known) {
        change(pages, rest, bucket_size, count);
    }
}

void tarn_table__pages_forget(struct tarn_table *table)
{
    struct tarn_pages *pages = table->pages;
    drop_directory(pages);
    pages->epoch++;
    pages->earliest = pages->latest = 0;
    pages->touched_all = true;
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

/* --- reading LIVE into pages --- */

struct read_page { /* one that was read */
    struct page *page;
    struct tarn_page_content *content;
};

/* Reads entries in order; a new page begins at each boundary that is given, at each bucket, and when one is full. */
struct reader {
    struct read_page *list;
    size_t count, capacity;
    struct tarn_buf bytes; /* of the page that is being filled */
    uint32_t at[TARN_PAGE_ENTRIES + 1];
    uint32_t filled;
    int32_t total_buckets;
};

static void reader_fini(struct reader *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->list[i].page != NULL)
            page_free(r->list[i].page);
        content_unref(r->list[i].content);
    }
    free(r->list);
    tarn_buf_drop(&r->bytes);
}

static struct tarn_page_content *make_content(const struct reader *r)
{
    size_t at_size = (r->filled + 1) * sizeof *r->at;
    size_t size = sizeof(struct tarn_page_content) + at_size + r->bytes.size;
    struct tarn_page_content *content = tarn_alloc(size);
    uint8_t *memory = (uint8_t *)(content + 1);
    *content = (struct tarn_page_content){.count = r->filled, .size = size};
    atomic_init(&content->ref_count, 1);
    memcpy(memory, r->at, at_size);
    if (r->bytes.size > 0)
        memcpy(memory + at_size, r->bytes.data, r->bytes.size);
    content->at = (const uint32_t *)(const void *)memory;
    content->bytes = memory + at_size;
    return content;
}

static void reader_end_page(struct reader *r)
{
    if (r->count == 0 || r->list[r->count - 1].content != NULL)
        return;
    r->at[r->filled] = (uint32_t)r->bytes.size;
    struct read_page *last = &r->list[r->count - 1];
    last->content = make_content(r);
    last->page->count = r->filled;
    last->page->total_buckets = TARN_MAX(r->total_buckets, 0);
    tarn_buf_clear(&r->bytes);
    r->filled = 0;
    r->total_buckets = 0;
}

static void reader_begin_page(struct reader *r, struct tarn_slice first, size_t bucket_size)
{
    reader_end_page(r);
    TARN_GROW(r->list, r->count, r->capacity);
    r->list[r->count++] = (struct read_page){.page = page_new(first, bucket_size)};
}

static bool reader_is_full(const struct reader *r)
{
    return r->filled == TARN_PAGE_ENTRIES || r->bytes.size > (1u << 30);
}

/* -1: files of the page don't agree. */
static void reader_note_total(struct reader *r, struct tarn_slice value)
{
    int32_t total = tarn_table__peek_total_buckets(value);
    if (r->filled == 0)
        r->total_buckets = total;
    else if (r->total_buckets != total)
        r->total_buckets = -1;
}

/* False: the key is damaged. */
static bool reader_add(struct reader *r, struct tarn_slice key, struct tarn_slice value)
{
    struct page *last = r->count == 0 ? NULL : r->list[r->count - 1].page;
    if (last == NULL || !tarn_slice_starts_with(key, bucket_of(last))) {
        size_t bucket_size = tarn_table__bucket_size(key);
        if (bucket_size == 0)
            return false;
        reader_begin_page(r, tarn_slice_of(key.data, bucket_size), bucket_size);
    } else if (reader_is_full(r)) {
        reader_begin_page(r, key, last->bucket_size);
    }
    reader_note_total(r, value);
    r->at[r->filled++] = (uint32_t)r->bytes.size;
    tarn_buf_add_slice(&r->bytes, value);
    return true;
}

static struct tarn_status *damaged_key(const struct tarn_table *table)
{
    return tarn_status_new(TARN_STATE_DAMAGED, "table %s: a key of the index is damaged",
                           tarn_table_name(table));
}

/* --- the directory --- */

static struct tarn_status *read_all(struct tarn_op *op, struct tarn_table *table,
                                    const struct tarn_state_view *view, struct reader *r)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    tarn_table__range_end(table->uuid, tarn_slice_str(NULL), &to);
    struct tarn_state_range range = {tarn_slice_str(table->uuid), tarn_buf_slice(&to), view, true};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_open(table->env->state, TARN_FAMILY_LIVE, &range);
    struct tarn_slice key, value;
    size_t steps = 0, published = 0;
    while (tarn_state_iterator_next(it, &key, &value)) {
        if ((++steps & 4095) == 0)
            TARN_TRY(tarn_op_check(op));
        key = tarn_slice_of(key.data + TARN_INDEX_UUID_SIZE, key.size - TARN_INDEX_UUID_SIZE);
        if (!reader_add(r, key, value))
            return damaged_key(table);
        for (; published + 1 < r->count; published++) { /* finished ones count, and may go */
            pthread_mutex_lock(&cache.lock);
            set_content(r->list[published].page, tarn_move(r->list[published].content));
            pthread_mutex_unlock(&cache.lock);
        }
    }
    reader_end_page(r);
    return tarn_state_iterator_error(it);
}

static void apply_missed(struct tarn_pages *pages)
{
    struct tarn_slice rest = tarn_buf_slice(&pages->missed);
    while (rest.size > 0) {
        uint64_t head[2];
        memcpy(head, rest.data, sizeof head);
        struct tarn_slice key = tarn_slice_of(rest.data + sizeof head, (size_t)head[0]);
        change(pages, key, tarn_table__bucket_size(key), (int)(int64_t)head[1]);
        rest = tarn_slice_of(key.data + key.size, rest.size - sizeof head - key.size);
    }
    tarn_buf_drop(&pages->missed);
}

static void take_directory(struct tarn_pages *pages, struct reader *r)
{
    for (size_t i = 0; i < r->count; i++) {
        struct page *page = r->list[i].page;
        if (r->list[i].content != NULL) {
            pthread_mutex_lock(&cache.lock);
            set_content(page, tarn_move(r->list[i].content));
            pthread_mutex_unlock(&cache.lock);
        }
        insert_page(pages, i, page);
    }
    r->count = 0;
    pages->known = true;
    apply_missed(pages);
}

/* Walks LIVE once; commits go on meanwhile and say what they changed. */
static struct tarn_status *build(struct tarn_op *op, struct tarn_table *table)
{
    struct tarn_pages *pages = table->pages;
    TARN_OWN(reader_fini) struct reader r = {0};
    TARN_OWN(tarn_state_view_drop) struct tarn_state_view *view = NULL;
    pthread_mutex_lock(&table->index_lock);
    int64_t epoch = pages->epoch;
    pages->building = true;
    view = tarn_state_view_new(table->env->state);
    pthread_mutex_unlock(&table->index_lock);
    struct tarn_status *s = read_all(op, table, view, &r);
    pthread_mutex_lock(&table->index_lock);
    pages->building = false;
    if (s == TARN_OK && epoch == pages->epoch)
        take_directory(pages, &r);
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

/* --- plans --- */

void tarn_page_bucket_fini(struct tarn_page_bucket *bucket)
{
    tarn_buf_drop(&bucket->key);
}

/* The pages of the bucket that begins at `i`; false: it has no files. */
static bool sum_bucket(const struct tarn_pages *pages, size_t i, size_t *end,
                       struct tarn_page_bucket *out)
{
    struct tarn_slice bucket = bucket_of(pages->list[i]);
    out->total_buckets = pages->list[i]->total_buckets;
    out->file_count = 0;
    for (*end = i; *end < pages->count; (*end)++) {
        const struct page *page = pages->list[*end];
        if (!tarn_slice_equal(bucket_of(page), bucket))
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
    while (n < pages->count && after.size > 0 && tarn_slice_equal(bucket_of(pages->list[n]), after))
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
            tarn_buf_add_slice(&out->key, bucket_of(pages->list[i]));
        }
    pthread_mutex_unlock(&table->index_lock);
    return TARN_OK;
}

void tarn_page_set_fini(struct tarn_page_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        content_unref(set->pages[i].content);
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
 * and cache lock are held. */
static void look_at_pages(struct loading *l, bool with_view,
                          bool (*wanted)(void *, const struct tarn_page_bounds *), void *arg)
{
    struct tarn_pages *pages = l->table->pages;
    struct tarn_page_set *set = l->set;
    bool any_missing = with_view || set->is_past;
    size_t i = pages_up_to(pages, l->bucket);
    i = i > 0 && tarn_slice_equal(bucket_of(pages->list[i - 1]), l->bucket) ? i - 1 : i;
    for (; i < pages->count && tarn_slice_equal(bucket_of(pages->list[i]), l->bucket); i++) {
        struct page *page = pages->list[i];
        bool want = wanted == NULL || wanted(arg, page->bounds);
        TARN_GROW(set->pages, set->count, l->capacity);
        l->missing = tarn_realloc(l->missing, l->capacity * sizeof *l->missing);
        struct tarn_page_ref *ref = &set->pages[set->count];
        *ref = (struct tarn_page_ref){.content = want ? use_content(page) : NULL,
                                      .bounds = tarn_page_bounds_ref(page->bounds),
                                      .file_count = page->count,
                                      .from = whole_key(l, first_of(page)),
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
static void install(struct loading *l, struct tarn_page_ref *ref, const struct read_page *read,
                    size_t count)
{
    struct tarn_pages *pages = l->table->pages;
    struct tarn_slice first =
        tarn_slice_of(ref->from.data + TARN_INDEX_UUID_SIZE, ref->from.size - TARN_INDEX_UUID_SIZE);
    pthread_mutex_lock(&l->table->index_lock);
    size_t n = pages_up_to(pages, first);
    struct page *page = n == 0 ? NULL : pages->list[n - 1];
    if (page != NULL && page->version == ref->version && tarn_slice_equal(first_of(page), first)) {
        for (size_t i = 0; i < count; i++) {
            if (i > 0) {
                page = page_new(first_of(read[i].page), read[i].page->bucket_size);
                insert_page(pages, n + i - 1, page);
            }
            page->count = read[i].page->count;
            page->total_buckets = read[i].page->total_buckets;
            atomic_fetch_add(&read[i].content->ref_count, 1);
            pthread_mutex_lock(&cache.lock);
            set_content(page, read[i].content);
            pthread_mutex_unlock(&cache.lock);
        }
    }
    pthread_mutex_unlock(&l->table->index_lock);
}

/* The pages of one page's interval; its set entry becomes one entry for each. */
static struct tarn_status *read_page(struct loading *l, const struct tarn_page_ref *page,
                                     struct reader *r)
{
    struct tarn_state_range range = {page->from, page->to, l->set->view, false};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_open(l->table->env->state, TARN_FAMILY_LIVE, &range);
    struct tarn_slice key, value;
    reader_begin_page(r,
                      tarn_slice_of(page->from.data + TARN_INDEX_UUID_SIZE,
                                    page->from.size - TARN_INDEX_UUID_SIZE),
                      l->bucket.size);
    while (tarn_state_iterator_next(it, &key, &value)) {
        key = tarn_slice_of(key.data + TARN_INDEX_UUID_SIZE, key.size - TARN_INDEX_UUID_SIZE);
        if (!reader_add(r, key, value))
            return damaged_key(l->table);
    }
    reader_end_page(r);
    return tarn_state_iterator_error(it);
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
        TARN_OWN(reader_fini) struct reader r = {0};
        s = read_page(l, &old.pages[i], &r);
        if (s == TARN_OK)
            install(l, &old.pages[i], r.list, r.count);
        for (size_t n = 0; n < r.count && s == TARN_OK; n++) {
            struct tarn_page_ref ref = {.content = tarn_move(r.list[n].content),
                                        .file_count = r.list[n].page->count,
                                        .from = whole_key(l, first_of(r.list[n].page)),
                                        .version = r.count == 1 ? old.pages[i].version : 0};
            ref.to = n + 1 < r.count ? whole_key(l, first_of(r.list[n + 1].page)) : old.pages[i].to;
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
        pthread_mutex_lock(&cache.lock);
        look_at_pages(&l, with_view, wanted, arg);
        pthread_mutex_unlock(&cache.lock);
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
    struct page *page = n == 0 ? NULL : pages->list[n - 1];
    if (ref->version != 0 && page != NULL && page->version == ref->version &&
        tarn_slice_equal(first_of(page), first)) {
        pthread_mutex_lock(&cache.lock);
        old = page->bounds;
        page->bounds = bounds;
        pthread_mutex_unlock(&cache.lock);
    }
    pthread_mutex_unlock(&table->index_lock);
    tarn_page_bounds_unref(old);
}

/* --- what was touched --- */

void tarn_table_take_touched(struct tarn_op *op, struct tarn_table *table, struct tarn_touched *out)
{
    struct tarn_map *fresh = tarn_map_new();
    pthread_mutex_lock(&table->index_lock);
    TARN_OWN(tarn_map_drop) struct tarn_map *touched = table->pages->touched;
    *out = (struct tarn_touched){.all = table->pages->touched_all};
    table->pages->touched = fresh;
    table->pages->touched_all = false;
    pthread_mutex_unlock(&table->index_lock);
    size_t n = tarn_map_count(touched), cursor = 0;
    struct tarn_touched_bucket *list = tarn_arena_calloc(op->arena, n + 1, sizeof *list);
    struct tarn_slice key;
    void *value;
    while (!out->all && tarn_map_next(touched, &cursor, &key, &value))
        if (tarn_table__parse_bucket(key, op->arena, &list[out->count].partition,
                                     &list[out->count].bucket))
            out->count++;
    out->buckets = list;
}

void tarn_table_touch_all(struct tarn_table *table)
{
    pthread_mutex_lock(&table->index_lock);
    table->pages->touched_all = true;
    pthread_mutex_unlock(&table->index_lock);
}

void tarn_table_touch(struct tarn_table *table, struct tarn_slice partition, int32_t bucket)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_key_add_bytes(&key, partition);
    tarn_key_add_i64(&key, bucket);
    pthread_mutex_lock(&table->index_lock);
    touch_bucket(table->pages, tarn_buf_slice(&key));
    pthread_mutex_unlock(&table->index_lock);
}
