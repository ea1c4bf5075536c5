/* Promise: any bytes are parsed or refused; what is parsed prints, and parses to the same again. */
#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    TARN_OWN(tarn_json_drop) struct tarn_json *again = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf first = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf second = {0};

    struct tarn_status *s = tarn_json_parse(tarn_slice_of(data, size), &json);
    if (s != NULL) {
        tarn_status_free(s);
        return 0;
    }
    tarn_json_print(json, 2, &first);
    tarn_assert(tarn_utf8_valid(tarn_buf_slice(&first)));
    s = tarn_json_parse(tarn_buf_slice(&first), &again);
    tarn_assert(s == NULL);
    tarn_json_print(again, 2, &second);
    tarn_assert(tarn_slice_equal(tarn_buf_slice(&first), tarn_buf_slice(&second)));
    return 0;
}
