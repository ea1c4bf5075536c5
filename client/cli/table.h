/* table - what the commands that make or change a table share: how one is shown. */
#ifndef TARN_CLI_TABLE_H
#define TARN_CLI_TABLE_H

#include "ask.h"

#include "tarn/v1/catalog.pb-c.h"

/* All of it. */
TARN_MUST struct tarn_status *tarn_cli_show_table(struct tarn_cli *cli,
                                                  const Tarn__V1__Table *table);
/* After a mutation: for people a line ("created table a.b, ..."), for programs the object. */
TARN_MUST struct tarn_status *tarn_cli_show_made(struct tarn_cli *cli, const char *did,
                                                 const Tarn__V1__Table *table);
/* adopt.c: "tarn", "writers"; NULL: not said. */
const char *tarn_cli_compaction_word(Tarn__V1__CompactionOwner owner);

#endif
