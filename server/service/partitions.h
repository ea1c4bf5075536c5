/* partitions - all that is known of a table's partitions, for the files of room `service` that list and change them. */
#ifndef TARN_SERVICE_PARTITIONS_H
#define TARN_SERVICE_PARTITIONS_H

#include "catalog/partition_notes.h"
#include "service/internal.h"

struct tarn_partitions {
    const struct tarn_table_view *view; /* owned: the snapshot that this is of */
    struct tarn_partition_facts *list;  /* in the op's arena, in no order */
    size_t count;
    struct tarn_map *by_path; /* owned: path -> one of the list, which isn't moved meanwhile */
};
TARN_MUST struct tarn_status *tarn_service__partitions(struct tarn_op *op,
                                                       struct tarn_service *service,
                                                       struct tarn_table *table,
                                                       struct tarn_partitions *out);
void tarn_partitions_fini(struct tarn_partitions *partitions);
/* "dt=a%3Ab/hour=3/" -> its parts, unescaped, and "dt=a:b/hour=3". */
void tarn_service__name_partition(struct tarn_op *op, const struct tarn_schema *schema,
                                  struct tarn_slice path, struct tarn_partition_name *out);
/* Values as text, in the schema's order of partition columns, as the row of a partition. A null is one that says so, or is the table's
 * partition.default-name. VALUE_INVALID. */
TARN_MUST struct tarn_status *tarn_service__partition_row(struct tarn_op *op,
                                                          const struct tarn_table_view *view,
                                                          const struct tarn_partition_value *values,
                                                          struct tarn_slice *out);
/* And back, as tarn_value_print has them. */
TARN_MUST struct tarn_status *tarn_service__partition_values(
    struct tarn_op *op, const struct tarn_schema *schema, struct tarn_slice row,
    const struct tarn_partition_value **out, size_t *count);

#endif
