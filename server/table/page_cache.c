#include "table/pages_internal.h"
#include "table/plan.h"

/* What pages of all tables hold, in memory: the least recently used goes first. */

static struct {
    pthread_mutex_t lock;
    struct tarn_page *newest, *oldest;
    size_t size;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

void tarn_table__content_unref(struct tarn_page_content *content)
{
    if (content != NULL && atomic_fetch_sub(&content->ref_count, 1) == 1)
        free(content);
}

/* --- the lock is held --- */

static void unlink_page(struct tarn_page *page)
{
    *(page->newer == NULL ? &cache.newest : &page->newer->older) = page->older;
    *(page->older == NULL ? &cache.oldest : &page->older->newer) = page->newer;
    page->newer = page->older = NULL;
}

static void link_newest(struct tarn_page *page)
{
    page->older = cache.newest;
    *(cache.newest == NULL ? &cache.oldest : &cache.newest->newer) = page;
    cache.newest = page;
}

static void drop_content(struct tarn_page *page)
{
    if (page->content == NULL)
        return;
    cache.size -= page->content->size;
    unlink_page(page);
    tarn_table__content_unref(page->content);
    page->content = NULL;
}

/* --- the pages' own calls --- */

void tarn_table__page_hold(struct tarn_page *page, struct tarn_page_content *consumed)
{
    pthread_mutex_lock(&cache.lock);
    drop_content(page);
    page->content = consumed;
    cache.size += consumed->size;
    link_newest(page);
    while (cache.size > TARN_PAGES_SIZE_MAX && cache.oldest != NULL)
        drop_content(cache.oldest);
    pthread_mutex_unlock(&cache.lock);
}

void tarn_table__page_let_go(struct tarn_page *page)
{
    pthread_mutex_lock(&cache.lock);
    drop_content(page);
    pthread_mutex_unlock(&cache.lock);
}

struct tarn_page_content *tarn_table__page_use(struct tarn_page *page)
{
    pthread_mutex_lock(&cache.lock);
    struct tarn_page_content *content = page->content;
    if (content != NULL) {
        unlink_page(page);
        link_newest(page);
        atomic_fetch_add(&content->ref_count, 1);
    }
    pthread_mutex_unlock(&cache.lock);
    return content;
}

size_t tarn_plan_pages_size(void)
{
    pthread_mutex_lock(&cache.lock);
    size_t size = cache.size;
    pthread_mutex_unlock(&cache.lock);
    return size;
}
