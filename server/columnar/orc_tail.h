/*
 * orc_tail - internal: what an ORC file says of itself at its end, read before Arrow's reader believes it.
 *
 * Source   ORC specification v1, "File Tail": the last byte is the postscript's length; postscript and
 *          (compressed) footer are Protocol Buffers messages.
 */
#ifndef TARN_COLUMNAR_ORC_TAIL_H
#define TARN_COLUMNAR_ORC_TAIL_H

#include "columnar/internal.h"

#include <vector>

namespace tarn
{

struct OrcColumn { /* a node of the tree of types; node 0 is the row */
    std::vector<size_t> children;
    bool has_times = false; /* min_ms and max_ms hold */
    int64_t min_ms = 0, max_ms = 0;
};
struct OrcTail {
    bool known = false; /* false: compressed with what is not read here (lz4, lzo) */
    std::vector<OrcColumn> columns;
    int64_t row_count = 0;
};
/* DATA_FILE_MALFORMED: sizes beyond the file or the limits, a tree of types that is none or too deep. */
OrcTail orc_tail(arrow::io::RandomAccessFile &file, const std::string &what);

} // namespace tarn

#endif
