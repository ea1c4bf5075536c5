/* survivors - what a table's folder names, found the long way: by every snapshot, tag and branch, from their manifests alone. */
#ifndef TARN_TEST_TABLE_SURVIVORS_H
#define TARN_TEST_TABLE_SURVIVORS_H

#include "fixture.h"

/* Keys in the store of all that is named (owned, tarn_map_free): lists, manifests, index files, statistics, live data files and changelogs. Changelogs
 * count for snapshots, not for tags. Fails the test where something that names files isn't there. */
struct tarn_map *survivors_named(struct fixture *f);
/* Keys of the files that are there, but for schemas, hints, tags, consumers and what branches have of their own (owned). */
struct tarn_map *survivors_there(struct fixture *f);
/* All that is named is there; and what is there and isn't named was not named `before` either (NULL: nothing is). */
void survivors_check(struct fixture *f, const struct tarn_map *there_before,
                     const struct tarn_map *named_before);
/* Puts the files that these entries add, where they aren't there. */
void survivors_put(struct fixture *f, const struct tarn_manifest_entry *entries, size_t count);
void survivors_put_key(struct fixture *f, const char *folder, struct tarn_slice name);

#endif
