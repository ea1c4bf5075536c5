/*
 * commit_message_internal - the rows of a commit message, for the file that reads and the one that writes.
 */
#ifndef TARN_FORMAT_COMMIT_MESSAGE_INTERNAL_H
#define TARN_FORMAT_COMMIT_MESSAGE_INTERNAL_H

#include "format/commit_message.h"

enum tarn_commit_message__file { /* fields of a data file's row, in order */
                                 TARN_CM_FILE_NAME,
                                 TARN_CM_FILE_SIZE,
                                 TARN_CM_ROW_COUNT,
                                 TARN_CM_MIN_KEY,
                                 TARN_CM_MAX_KEY,
                                 TARN_CM_KEY_STATS,
                                 TARN_CM_VALUE_STATS,
                                 TARN_CM_MIN_SEQUENCE,
                                 TARN_CM_MAX_SEQUENCE,
                                 TARN_CM_SCHEMA_ID,
                                 TARN_CM_LEVEL,
                                 TARN_CM_EXTRA_FILES,
                                 TARN_CM_CREATION_TIME,
                                 TARN_CM_DELETE_ROW_COUNT,
                                 TARN_CM_EMBEDDED_INDEX,
                                 TARN_CM_FILE_SOURCE,
                                 TARN_CM_VALUE_STATS_COLS,
                                 TARN_CM_EXTERNAL_PATH,
                                 TARN_CM_FIRST_ROW_ID,
                                 TARN_CM_WRITE_COLS,
                                 TARN_CM_WRITE_COLS_SEQUENCES,
};
#define TARN_CM_FILE_FIELDS 21
extern const char *const tarn_commit_message__file_fields[TARN_CM_FILE_FIELDS];

enum tarn_commit_message__index { /* of an index file's */
                                  TARN_CM_INDEX_TYPE,
                                  TARN_CM_INDEX_NAME,
                                  TARN_CM_INDEX_SIZE,
                                  TARN_CM_INDEX_ROW_COUNT,
                                  TARN_CM_INDEX_VECTORS,
                                  TARN_CM_INDEX_EXTERNAL_PATH,
                                  TARN_CM_INDEX_GLOBAL,
};
#define TARN_CM_INDEX_FIELDS 7
extern const char *const tarn_commit_message__index_fields[TARN_CM_INDEX_FIELDS];

struct tarn_commit_message__shape { /* how many fields the rows of a version have */
    size_t file_fields, index_fields, global_fields;
    bool has_check; /* a snapshot id at the end */
};
struct tarn_commit_message__shape tarn_commit_message__shape(int32_t version);
TARN_MUST struct tarn_status *tarn_commit_message__check_version(int32_t version);

#endif
