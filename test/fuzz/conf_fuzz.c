/* Promise: any file, variable and --set is taken or refused by name, and nothing else happens. */
#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TARN_OWN(tarn_conf_drop) struct tarn_conf *conf = tarn_conf_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf printed = {0};
    TARN_OWN(tarn_free_drop) char *text = tarn_slice_dup(tarn_slice_of(data, size));
    TARN_OWN(tarn_free_drop) char *variable = tarn_format("TARN_%s", text);
    char *environment[] = {variable, NULL};

    struct tarn_status *s = tarn_conf_load_text(conf, "fuzz", tarn_slice_of(data, size));
    tarn_assert(s == NULL || tarn_status_reason(s) == TARN_CONFIG_INVALID);
    tarn_status_free(s);
    s = tarn_conf_load_environment(conf, environment);
    tarn_assert(s == NULL || tarn_status_reason(s) == TARN_CONFIG_INVALID);
    tarn_status_free(s);
    s = tarn_conf_set(conf, text);
    tarn_assert(s == NULL || tarn_status_reason(s) == TARN_CONFIG_INVALID);
    tarn_status_free(s);
    tarn_conf_print(conf, &printed);
    return 0;
}
