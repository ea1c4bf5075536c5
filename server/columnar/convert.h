/* convert - internal: the parts of conversion, shared by convert.cc and convert_nested.cc. */
#ifndef TARN_COLUMNAR_CONVERT_H
#define TARN_COLUMNAR_CONVERT_H

#include "columnar/internal.h"

#include <arrow/array.h>

namespace tarn
{

/* The types don't go together. */
[[noreturn]] void convert_mismatch(const arrow::Array &in, const struct tarn_type *to,
                                   const ConvertRules &rules);
/* The same buffers under the canonical type. */
ArrayPtr convert_relabel(const ArrayPtr &in, const struct tarn_type *to);
ArrayPtr convert_lists(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
                       BadValues &bad);
ArrayPtr convert_maps(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
                      BadValues &bad);
ArrayPtr convert_structs(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
                         BadValues &bad);
ArrayPtr convert_variants(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
                          BadValues &bad);

} // namespace tarn

#endif
