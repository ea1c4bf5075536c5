/*
 * text_input - any text through an input of room columnar and out again, for the fuzz targets of CSV and JSON lines.
 *
 * Promise: any bytes are rows or a reason, whole or one byte at a time, and both ways give the same.
 */
#ifndef TARN_TEST_LIB_TEXT_INPUT_H
#define TARN_TEST_LIB_TEXT_INPUT_H

#include "columnar/columnar.h"

void tarn_test_text_input(enum tarn_data_format format, const char *columns,
                          struct tarn_slice text);

#endif
