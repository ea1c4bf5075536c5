/*
 * cast - which type may become which.
 *
 * Shape    implicit casts lose nothing (INT to BIGINT), explicit ones may (STRING to INT). Asked of the types alone: whether a
 *          value can be cast is seen when it is read.
 * Source   docs/format.md, "Schema evolution"; org.apache.paimon.types.DataTypeCasts and casting.CastExecutors, both of which must
 *          know the cast.
 *          Proof: test/golden/evolve/casts.json (every pair, as Java 2.0.0 answered).
 */
#ifndef TARN_FORMAT_CAST_H
#define TARN_FORMAT_CAST_H

#include "format/type.h"

/* May a column of type `from` become `to`? Not even itself, for types that Paimon has no cast of (BOOLEAN, DATE, TIME, nested ones). */
bool tarn_cast_allowed(const struct tarn_type *from, const struct tarn_type *to, bool explicit_too);

#endif
