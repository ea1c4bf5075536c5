/*
 * standard_files - a program that was started without standard input, output or error. What it opens first, a socket or a table's file, would
 * have their numbers, and get its log lines or results.
 */
#ifndef TARN_BASE_STANDARD_FILES_H
#define TARN_BASE_STANDARD_FILES_H

/* Takes the numbers that are free; reading and writing there fails. Before main (.preinit_array), as libraries open files when they are loaded. */
void tarn_hold_standard_files(void);

#endif
