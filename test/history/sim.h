/*
 * sim - one thread at a time, chosen by a seed, under a clock that only moves when everybody waits.
 *
 * Between sim_start and sim_stop every pthread of this program is simulated: the link replaces
 * pthread_mutex_lock, pthread_cond_wait, nanosleep, clock_gettime and their like by those of sim.c
 * (--wrap, in the Makefile). Real threads, but only the one with the token runs; it passes it on where it
 * waits, and now and then where it takes a lock. Who gets it is drawn from the seed. Time is virtual: when
 * nobody can run, it jumps to the nearest deadline. So a run depends on its seed alone, hours of time-outs
 * pass in no time, and a state in which everybody waits for ever is found and told.
 *
 * Threads that the libraries make (RocksDB's) are not simulated and see the real calls.
 */
#ifndef TARN_TEST_HISTORY_SIM_H
#define TARN_TEST_HISTORY_SIM_H

#include <stdbool.h>
#include <stdint.h>

/* The caller becomes the first simulated thread. preempt_per_mille: at how many of its locks a thread is held
 * up for another. stuck: called where everybody waits for ever, or time has gone past limit_ms. */
void sim_start(uint64_t seed, int preempt_per_mille, int64_t limit_ms,
               void (*stuck)(const char *why));
void sim_stop(void); /* the others have been joined */

/* Drawn from the seed; each purpose has numbers of its own, so that more of one doesn't shift the others. */
enum sim_dice { SIM_SCHEDULE, SIM_WORK, SIM_STORE, SIM_NAMES, SIM_DICE_COUNT };
uint64_t sim_random(enum sim_dice dice);
int64_t sim_between(enum sim_dice dice, int64_t low, int64_t high); /* both included */
bool sim_chance(enum sim_dice dice, int per_mille);

int64_t sim_now_ms(void); /* since sim_start */
void sim_sleep_ms(int64_t ms);
/* Nobody else runs until it is unpinned, and nothing in between may wait.
 *   TARN_OWN(sim_unpin) TARN_UNUSED bool pinned = sim_pin(); */
bool sim_pin(void);
void sim_unpin(bool *before);
int sim_thread_number(void); /* 0 is the first */

#endif
