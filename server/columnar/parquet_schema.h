/* parquet_schema - internal: the schema of a written Parquet file. */
#ifndef TARN_COLUMNAR_PARQUET_SCHEMA_H
#define TARN_COLUMNAR_PARQUET_SCHEMA_H

#include "columnar/internal.h"

#include <parquet/schema.h>

namespace tarn
{

std::shared_ptr<parquet::schema::GroupNode> parquet_schema(const struct tarn_column_write *columns,
                                                           size_t count);

} // namespace tarn

#endif
