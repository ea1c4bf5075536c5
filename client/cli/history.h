/* history - how a snapshot is shown, by `tarn snapshots` and `tarn watch --events` alike. */
#ifndef TARN_CLI_HISTORY_H
#define TARN_CLI_HISTORY_H

#include "print.h"

#include "tarn/v1/table.pb-c.h"

#define TARN_CLI_SNAPSHOT_COLUMN_COUNT 15

extern const struct tarn_cli_column tarn_cli_snapshot_columns[TARN_CLI_SNAPSHOT_COLUMN_COUNT];
const char *tarn_cli_kind_name(Tarn__V1__CommitKind kind);
void tarn_cli_add_snapshot(struct tarn_cli_list *list, const Tarn__V1__Snapshot *snapshot,
                           bool for_people);

#endif
