/*
 * conformance - what every store driver promises, as one list of cases.
 *
 *   #define CASE(name) TARN_TEST(memory, name) { ... conformance_##name(t, store); ... }
 *   CONFORMANCE(CASE)
 *
 * A new driver conforms when all of them pass for it: store_test.c runs them.
 */
#ifndef TARN_TEST_STORE_CONFORMANCE_H
#define TARN_TEST_STORE_CONFORMANCE_H

#include "store/store.h"
#include "test.h"

/* Flat stores (store.h) promise all but one. */
#define CONFORMANCE(X)                                                                             \
    CONFORMANCE_FLAT(X)                                                                            \
    X(objects_and_folders_exclude_each_other)

#define CONFORMANCE_FLAT(X)                                                                        \
    X(put_then_get_gives_the_same_bytes)                                                           \
    X(put_replaces)                                                                                \
    X(hints_are_replaced)                                                                          \
    X(put_many_puts_all)                                                                           \
    X(foreseen_is_put_only_by_its_put)                                                             \
    X(put_many_does_not_replace)                                                                   \
    X(get_of_nothing_is_not_found)                                                                 \
    X(stat_knows_size_and_time)                                                                    \
    X(folders_are_no_objects)                                                                      \
    X(put_if_absent_never_overwrites)                                                              \
    X(put_if_absent_has_one_winner)                                                                \
    X(writers_publish_whole_or_nothing)                                                            \
    X(abort_leaves_nothing)                                                                        \
    X(finish_does_not_replace)                                                                     \
    X(readers_see_nothing_half_written)                                                            \
    X(read_at_is_bounded_by_the_object)                                                            \
    X(an_open_reader_outlives_removal)                                                             \
    X(remove_of_nothing_is_fine)                                                                   \
    X(remove_many_removes_all)                                                                     \
    X(list_is_in_order_of_key)                                                                     \
    X(list_shows_hidden_names)                                                                     \
    X(list_of_nothing_is_empty)                                                                    \
    X(keys_that_are_none_are_refused)                                                              \
    X(longest_names_work)                                                                          \
    X(names_are_taken_as_they_are)                                                                 \
    X(move_folder_moves_all_or_refuses)                                                            \
    X(prune_keeps_what_holds_something)                                                            \
    X(a_cancelled_op_does_nothing)

#define DECLARE(name) void conformance_##name(struct tarn_test *t, struct tarn_store *store);
CONFORMANCE(DECLARE)
#undef DECLARE

#endif
