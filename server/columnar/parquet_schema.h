/* parquet_schema - internal: the schema of a written Parquet file. */
#ifndef TARN_COLUMNAR_PARQUET_SCHEMA_H
#define TARN_COLUMNAR_PARQUET_SCHEMA_H

#include "columnar/internal.h"

#include <parquet/schema.h>
#include <parquet/types.h>

namespace tarn
{

std::shared_ptr<parquet::schema::GroupNode> parquet_schema(const struct tarn_column_write *columns,
                                                           size_t count);
/* Of option file.compression. */
parquet::Compression::type parquet_codec(const char *name);
/* Bytes that a row group of a written file has at least, about, unless it is the last; of option parquet.block.size,
 * or 0. And how large row groups must be on average for their file to be copied rather than merged into
 * larger ones: half of that, so that copies have at most twice as many. */
int64_t parquet_group_bytes(int64_t option);
int64_t parquet_group_worth(int64_t option);

} // namespace tarn

#endif
