/*
 * format - Paimon's bytes to structs and back. Pure: no I/O, no clock, no globals.
 *
 * Every part has a header of its own; other rooms include this one.
 */
#ifndef TARN_FORMAT_H
#define TARN_FORMAT_H

#include "base/base.h"
#include "format/type.h"
#include "format/schema.h"
#include "format/value.h"
#include "format/row.h"
#include "format/partition.h"
#include "format/options.h"
#include "format/snapshot.h"
#include "format/manifest.h"
#include "format/stats.h"
#include "format/predicate.h"
#include "format/commit_message.h"
#include "format/file_index.h"
#include "format/file_index_write.h"
#include "format/deletion_vector.h"

#endif
