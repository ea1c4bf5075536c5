/* What a server sends as CSV, and text for a terminal: any bytes, cut anywhere, end in a status or in
 * cells; what is printed of them has no byte that a terminal obeys. */
#include "base/base.h"

#include "cli/csv.h"
#include "cli/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tarn_status *cell(void *arg, struct tarn_slice text, TARN_UNUSED bool quoted)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    ++*(size_t *)arg;
    tarn_cli_escape(text, &out);
    tarn_assert(tarn_cli_width(tarn_buf_slice(&out)) <= 2 * out.size);
    tarn_assert(tarn_utf8_valid(tarn_buf_slice(&out)));
    for (size_t i = 0; i < out.size; i++)
        tarn_assert(out.data[i] >= 0x20 && out.data[i] != 0x7f);
    return TARN_OK;
}

static struct tarn_status *row(TARN_UNUSED void *arg)
{
    return TARN_OK;
}

static bool parse(const uint8_t *data, size_t size, size_t piece, size_t *cell_count)
{
    TARN_OWN(tarn_cli_csv_drop) struct tarn_cli_csv csv = {
        .cell = cell, .row = row, .arg = cell_count};
    TARN_OWN(tarn_status_drop) struct tarn_status *status = NULL;
    for (size_t i = 0; i < size && status == NULL; i += piece)
        status = tarn_cli_csv_feed(&csv, tarn_slice_of(data + i, TARN_MIN(piece, size - i)));
    if (status == NULL)
        status = tarn_cli_csv_end(&csv);
    return status == NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t whole_count = 0, pieces_count = 0;
    bool whole = parse(data, size, size + 1, &whole_count);
    bool pieces = parse(data, size, 3, &pieces_count);
    tarn_assert(whole == pieces && whole_count == pieces_count);
    return 0;
}
