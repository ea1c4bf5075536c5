/*
 * conf - the configuration: an INI file, TARN_* variables and --set, the later winning.
 *
 * Shape    what exists is one table, keys.def: K(section, key, kind, default, meaning). Unknown keys
 *          are errors that name the nearest known one. conf/tarnd.conf is made from the table.
 * Limits   a file of TARN_CONF_FILE_SIZE_MAX bytes; lines of TARN_CONF_LINE_SIZE_MAX. A value can't
 *          hold " ;", which begins a comment.
 * Errors   CONFIG_INVALID with file and line, variable, or --set, the value and what was expected.
 */
#ifndef TARN_BASE_CONF_H
#define TARN_BASE_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

#define TARN_CONF_FILE_SIZE_MAX (1u << 20)
#define TARN_CONF_LINE_SIZE_MAX 197

enum tarn_conf_kind {
    TARN_CONF_TEXT,
    TARN_CONF_BOOL,
    TARN_CONF_INT,
    TARN_CONF_SIZE,
    TARN_CONF_DURATION
};

enum tarn_conf_key {
#define K(section, key, kind, default_text, meaning) TARN_CONF_##section##_##key,
#include "base/keys.def"
#undef K
    TARN_CONF_KEY_COUNT
};

struct tarn_conf;
struct tarn_conf *tarn_conf_new(void); /* defaults */
void tarn_conf_free(struct tarn_conf *conf);
void tarn_conf_drop(struct tarn_conf **conf);
TARN_MUST struct tarn_status *tarn_conf_load_file(struct tarn_conf *conf, const char *path);
/* The same from bytes; `path` is for messages. */
TARN_MUST struct tarn_status *tarn_conf_load_text(struct tarn_conf *conf, const char *path,
                                                  struct tarn_slice text);
/* environ-style array; looks at TARN_SECTION_KEY only where SECTION is a section of keys.def. */
TARN_MUST struct tarn_status *tarn_conf_load_environment(struct tarn_conf *conf,
                                                         char *const *environment);
TARN_MUST struct tarn_status *tarn_conf_set(struct tarn_conf *conf,
                                            const char *section_dot_key_equals_value);

const char *tarn_conf_text(const struct tarn_conf *conf, enum tarn_conf_key key); /* borrowed */
bool tarn_conf_bool(const struct tarn_conf *conf, enum tarn_conf_key key);
int64_t tarn_conf_int(const struct tarn_conf *conf,
                      enum tarn_conf_key key); /* number, bytes or ms */
/* The effective configuration as INI text; secrets are not keys, only files that hold them. */
void tarn_conf_print(const struct tarn_conf *conf, struct tarn_buf *out);
const char *tarn_conf_key_name(enum tarn_conf_key key); /* "commit.retries" */

#endif
