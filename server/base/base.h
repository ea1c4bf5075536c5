/*
 * base - the words everything in Tarn is spelled with. No threads, no I/O beyond logging.
 *
 * Other rooms include this header only; each part below explains itself in its own file.
 */
#ifndef TARN_BASE_H
#define TARN_BASE_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/slice.h"
#include "base/status.h"
#include "base/memory.h"
#include "base/clock.h"
#include "base/op.h"
#include "base/log.h"
#include "base/text.h"
#include "base/map.h"
#include "base/fields.h"
#include "base/json.h"
#include "base/zip.h"
#include "base/digest.h"
#include "base/metrics.h"
#include "base/conf.h"

#endif
