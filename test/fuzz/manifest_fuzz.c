/* Promise: any bytes are a manifest, a list, an index manifest, a packed entry, or a status; what is read
 * is written to what reads the same, and work and memory stay in proportion to the input. */
#include "format/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t sync_mark[16] = "fuzz-fuzz-fuzz-f";

static void fuzz_manifest(struct tarn_slice in, struct tarn_arena *arena)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf first = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf second = {0};
    struct tarn_manifest_entry *entries = NULL;
    struct tarn_manifest_file file;
    size_t count = 0;
    struct tarn_status *s = tarn_manifest_decode(in, arena, &entries, &count);
    if (s == NULL) {
        s = tarn_manifest_encode(entries, count, tarn_slice_str("none"), 0, sync_mark, &first);
        tarn_assert(s == NULL);
        s = tarn_manifest_decode(tarn_buf_slice(&first), arena, &entries, &count);
        tarn_assert(s == NULL);
        s = tarn_manifest_encode(entries, count, tarn_slice_str("none"), 0, sync_mark, &second);
        tarn_assert(s == NULL);
        tarn_assert(tarn_slice_equal(tarn_buf_slice(&first), tarn_buf_slice(&second)));
        s = tarn_manifest_summarize(entries, count, NULL, 0, 0, arena, &file);
    }
    tarn_status_free(s);
}

/* Block by block, with each one's memory gone before the next: the same entries, or the same refusal. */
static void fuzz_blocks(struct tarn_slice in, struct tarn_arena *arena)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf whole = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf parts = {0};
    struct tarn_manifest_entry *entries = NULL;
    struct tarn_manifest_reader *reader = NULL;
    struct tarn_manifest_writer *writer = NULL;
    size_t count = 0;
    struct tarn_status *expected = tarn_manifest_decode(in, arena, &entries, &count);
    struct tarn_status *s =
        expected != NULL
            ? NULL
            : tarn_manifest_encode(entries, count, tarn_slice_str("none"), 0, sync_mark, &whole);
    tarn_assert(s == NULL);
    s = tarn_manifest_writer_new(tarn_slice_str("none"), 0, sync_mark, &parts, &writer);
    tarn_assert(s == NULL);
    s = tarn_manifest_open(in, arena, &reader);
    for (count = 1; s == NULL && count > 0;) {
        TARN_OWN(tarn_arena_drop) struct tarn_arena *block = tarn_arena_new();
        s = tarn_manifest_next(reader, block, &entries, &count);
        if (s == NULL) {
            struct tarn_status *w = tarn_manifest_writer_add(writer, entries, count);
            tarn_assert(w == NULL);
        }
    }
    tarn_assert((s == NULL) == (expected == NULL));
    tarn_status_free(s);
    tarn_status_free(expected);
    s = tarn_manifest_writer_end(writer);
    tarn_assert(s == NULL);
    tarn_manifest_writer_free(writer);
    tarn_assert(whole.size == 0 ||
                tarn_slice_equal(tarn_buf_slice(&whole), tarn_buf_slice(&parts)));
}

static void fuzz_list(struct tarn_slice in, struct tarn_arena *arena)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_manifest_file *files = NULL;
    size_t count = 0, again = 0;
    struct tarn_status *s = tarn_manifest_list_decode(in, arena, &files, &count);
    if (s == NULL) {
        s = tarn_manifest_list_encode(files, count, tarn_slice_str("zstd"), 1, sync_mark, &out);
        tarn_assert(s == NULL);
        s = tarn_manifest_list_decode(tarn_buf_slice(&out), arena, &files, &again);
        tarn_assert(s == NULL && again == count);
    }
    tarn_status_free(s);
}

static void fuzz_packed(struct tarn_slice in, struct tarn_arena *arena)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_manifest_entry entry;
    struct tarn_status *s = tarn_manifest_entry_unpack(in, arena, &entry);
    if (s == NULL) {
        tarn_manifest_entry_pack(&entry, true, &out);
        s = tarn_manifest_entry_unpack(tarn_buf_slice(&out), arena, &entry);
        tarn_assert(s == NULL);
    }
    tarn_status_free(s);
}

static void fuzz_index(struct tarn_slice in, struct tarn_arena *arena)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_index_file *files = NULL, *live = NULL;
    size_t count = 0, again = 0;
    bool unknown = false;
    struct tarn_status *s = tarn_index_manifest_decode(in, arena, &files, &count);
    for (size_t i = 0; s == NULL && i < count; i++)
        unknown = unknown || files[i].unknown;
    if (s == NULL) {
        s = tarn_index_manifest_encode(files, count, tarn_slice_str("none"), 0, sync_mark, &out);
        tarn_assert((s != NULL) == unknown);
    }
    if (s == NULL) {
        s = tarn_index_manifest_decode(tarn_buf_slice(&out), arena, &files, &again);
        tarn_assert(s == NULL && again == count);
        s = tarn_index_combine(files, count / 2, files + count / 2, count - count / 2,
                               (in.size & 1) != 0, arena, &live, &again);
    }
    tarn_status_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_slice in = tarn_slice_of(data, size);
    fuzz_manifest(in, arena);
    fuzz_blocks(in, arena);
    fuzz_list(in, arena);
    fuzz_packed(in, arena);
    fuzz_index(in, arena);
    return 0;
}
