/*
 * state_sim - room `state` in memory, for simulated processes that are killed and lose power.
 *
 * The link replaces tarn_state_* by these while a simulation runs. A folder's name stands for what a disk
 * would hold: opening it again finds it. What a kill leaves is everything written until then; what a loss of
 * power leaves is everything up to some batch, none that was synced missing.
 */
#ifndef TARN_TEST_HISTORY_STATE_SIM_H
#define TARN_TEST_HISTORY_STATE_SIM_H

#include "state/state.h"

void state_sim_use(bool use); /* false: the real one; what it wrote is copied as it lies on disk */
/* A new folder with what `folder` holds now, less its last `lost` batches that weren't synced. */
void state_sim_copy(const char *folder, const char *to, size_t lost);
size_t state_sim_unsynced(const char *folder); /* batches that a loss of power could take */
void state_sim_remove_all(void);

#endif
