/*
 * standard_files - a program that was started without standard input, output or error. What it opens first, a socket or a table's file, would
 * have their numbers, and get its log lines or results.
 */
#ifndef TARN_BASE_STANDARD_FILES_H
#define TARN_BASE_STANDARD_FILES_H

/* Takes the numbers that are free; reading and writing there fails. */
void tarn_hold_standard_files(void);

/* Once beside main: it is called before all else, as libraries open files when they are loaded. */
#define TARN_HOLD_STANDARD_FILES                                                                   \
    __attribute__((section(".preinit_array"), used)) static void (*hold_standard_files)(void) =    \
        tarn_hold_standard_files

#endif
