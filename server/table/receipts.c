#include "table/receipts.h"

/*
 * Receipts: which identity landed in which snapshot. They follow history: what a roll-back took away is void, and
 * said to be so; what lies below the horizon is not known any more (server/table/README.md, "Receipts").
 *
 * In the family RECEIPTS, each key behind the table's uuid; an identity is user | identifier | content:
 *
 *   'r' | identity | kind -> snapshot id, time      landed; content 0 but for batches
 *   'o' | snapshot id | identity | kind -> time     the same in order of history, to void and to forget by
 *   'v' | identity | kind -> snapshot id, time      landed there and was rolled back; one in 'r' is newer
 *   'd' | identity | kind -> snapshot id, time      landed there, and may have been rolled back since
 *   'l' | user -> identifier, snapshot id           the last one that landed, of those that aren't batches
 *   'g' -> snapshot id                              below it lies a gap: history that nobody here has seen
 *   'm' | user -> identifier                        the last one whose receipt was forgotten
 *   'b' | user -> content                           the last batch
 *   'f' | identity -> number, time, reason, message refused
 *   'q' | slot -> number, key of its refusal        the refusals as a ring, to forget the oldest by; 'n' -> next number
 *   'z' -> snapshot id                              the horizon: from here on every identity is known
 *   'w' -> late_notes.c
 *   'a' -> snapshot id, hash of its JSON            while the index is built anew: the last one that history before and after have
 */

void tarn_receipt__add_identity(struct tarn_buf *key, const struct tarn_identity *who)
{
    tarn_key_add_bytes(key, who->user);
    tarn_key_add_i64(key, who->identifier);
    tarn_key_add_u64(key, who->content);
}

void tarn_receipt__user_key(const struct tarn_table *table, char tag, struct tarn_slice user,
                            struct tarn_buf *key)
{
    tarn_table__tagged_key(table->uuid, tag, key);
    tarn_key_add_bytes(key, user);
}

struct tarn_status *tarn_receipt__damaged(const struct tarn_table *table)
{
    return tarn_status_new(TARN_STATE_DAMAGED, "table %s: a receipt is damaged",
                           tarn_table_name(table));
}

void tarn_receipt__put(struct tarn_state_batch *batch, struct tarn_table *table,
                       const struct tarn_buf *key, const struct tarn_buf *value)
{
    tarn_state_batch_put(batch, table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(key),
                         tarn_buf_slice(value));
}

void tarn_receipt__put_number(struct tarn_state_batch *batch, struct tarn_table *table, char tag,
                              int64_t number)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_table__tagged_key(table->uuid, tag, &key);
    tarn_key_add_i64(&value, number);
    tarn_receipt__put(batch, table, &key, &value);
}

/* Takes an identity and a kind off the rest of a key. user: owns the bytes that out->user points to. */
bool tarn_receipt__take_identity(struct tarn_slice *rest, struct tarn_buf *user,
                                 struct tarn_identity *out)
{
    tarn_buf_clear(user);
    if (!tarn_key_take_bytes(rest, user) || !tarn_key_take_i64(rest, &out->identifier) ||
        !tarn_key_take_u64(rest, &out->content))
        return false;
    out->user = tarn_buf_slice(user);
    return true;
}

struct tarn_slice tarn_receipt__behind(struct tarn_slice key, size_t size)
{
    return tarn_slice_of(key.data + size, key.size - size);
}

struct tarn_status *tarn_receipt__find_number(struct tarn_table *table, const struct tarn_buf *key,
                                              bool *found, int64_t *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(key), found,
                            &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    return *found && !tarn_key_take_i64(&rest, out) ? tarn_receipt__damaged(table) : TARN_OK;
}

/* --- what makes a batch the one it is --- */

static uint64_t name_hash(char role, struct tarn_slice name)
{
    return tarn_xxh64(name, (uint64_t)(uint8_t)role);
}

/* A sum: the order in which files are named doesn't matter. */
static uint64_t entries_content(const struct tarn_manifest_entry *entries, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += name_hash(entries[i].kind == TARN_ENTRY_ADD ? 'a' : 'd', entries[i].file.name);
    return sum;
}

static uint64_t changelog_content(const struct tarn_manifest_entry *entries, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += name_hash('c', entries[i].file.name);
    return sum;
}

static uint64_t part_content(const struct tarn_commit_part *part)
{
    uint64_t sum = entries_content(part->entries, part->count) +
                   changelog_content(part->changelog, part->changelog_count);
    for (size_t i = 0; i < part->index_count; i++)
        sum += name_hash(part->index[i].kind == TARN_ENTRY_ADD ? 'i' : 'j', part->index[i].name);
    return sum;
}

uint64_t tarn_commit_content(const struct tarn_commit *commit)
{
    uint64_t sum = part_content(&commit->append) + part_content(&commit->compact);
    if (commit->statistics.data != NULL)
        sum += name_hash('s', commit->statistics);
    return sum != 0 ? sum : 1;
}

uint64_t tarn_table__delta_content(const struct tarn_delta *delta)
{
    uint64_t sum = delta->content + entries_content(delta->entries, delta->count) +
                   changelog_content(delta->changelog, delta->changelog_count);
    return sum != 0 ? sum : 1;
}

void tarn_table__delta_let_go(struct tarn_delta *delta)
{
    delta->content += entries_content(delta->entries, delta->count) +
                      changelog_content(delta->changelog, delta->changelog_count);
    delta->entries = delta->changelog = NULL;
    delta->count = delta->changelog_count = 0;
}

/* --- landing --- */

static void add_receipt(struct tarn_state_batch *batch, struct tarn_table *table,
                        const struct tarn_snapshot *snapshot, const struct tarn_identity *who)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf order = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf last = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf landed = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf time = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf number = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf doubt = {0};
    bool is_batch = who->identifier == TARN_COMMIT_IDENTIFIER_BATCH;
    tarn_table__tagged_key(table->uuid, 'r', &key);
    tarn_receipt__add_identity(&key, who);
    tarn_buf_add_byte(&key, (uint8_t)snapshot->kind);
    tarn_table__tagged_key(table->uuid, 'd', &doubt);
    tarn_receipt__add_identity(&doubt, who);
    tarn_buf_add_byte(&doubt, (uint8_t)snapshot->kind);
    tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&doubt));
    tarn_table__tagged_key(table->uuid, 'o', &order);
    tarn_key_add_i64(&order, snapshot->id);
    tarn_receipt__add_identity(&order, who);
    tarn_buf_add_byte(&order, (uint8_t)snapshot->kind);
    tarn_key_add_i64(&landed, snapshot->id);
    tarn_key_add_i64(&landed, snapshot->time_ms);
    tarn_key_add_i64(&time, snapshot->time_ms);
    tarn_receipt__user_key(table, is_batch ? 'b' : 'l', who->user, &last);
    if (is_batch)
        tarn_key_add_u64(&number, who->content);
    else {
        tarn_key_add_i64(&number, who->identifier);
        tarn_key_add_i64(&number, snapshot->id);
    }
    tarn_receipt__put(batch, table, &key, &landed);
    tarn_receipt__put(batch, table, &order, &time);
    tarn_receipt__put(batch, table, &last, &number);
}

/* The property's value, or absent. */
static struct tarn_slice receipts_of(const struct tarn_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->property_count; i++)
        if (tarn_slice_is(snapshot->properties[i].key, TARN_RECEIPTS_PROPERTY))
            return snapshot->properties[i].value;
    return tarn_slice_str(NULL);
}

static bool parse_hex(struct tarn_slice text, uint64_t *out)
{
    if (text.size != 16)
        return false;
    *out = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if ((c < '0' || c > '9') && (c < 'a' || c > 'f'))
            return false;
        *out = *out << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

/* One element of the property: [user, identifier] or [user, batch identifier, content]. */
static bool parse_receipt(const struct tarn_json *json, struct tarn_identity *out)
{
    const struct tarn_json *user = tarn_json_at(json, 0), *identifier = tarn_json_at(json, 1);
    size_t count = tarn_json_count(json);
    if (tarn_json_kind(json) != TARN_JSON_ARRAY || (count != 2 && count != 3) ||
        tarn_json_kind(user) != TARN_JSON_STRING || tarn_json_kind(identifier) != TARN_JSON_INTEGER)
        return false;
    *out = (struct tarn_identity){tarn_json_text(user), tarn_json_int(identifier), 0};
    bool is_batch = out->identifier == TARN_COMMIT_IDENTIFIER_BATCH;
    if (is_batch != (count == 3) || out->user.size == 0)
        return false;
    return !is_batch || parse_hex(tarn_json_text(tarn_json_at(json, 2)), &out->content);
}

/* What isn't a receipt is left out: a table stays readable whatever somebody wrote into a property. */
static void add_hidden(struct tarn_state_batch *batch, struct tarn_table *table,
                       const struct tarn_snapshot *snapshot, struct tarn_slice text)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *list = NULL;
    struct tarn_status *s = tarn_json_parse(text, &list);
    if (s != TARN_OK) {
        tarn_log_status(NULL, TARN_WARN, "table.receipts_unreadable",
                        tarn_status_wrap(s, "table %s, snapshot %" PRId64, tarn_table_name(table),
                                         snapshot->id));
        return;
    }
    size_t count = tarn_json_kind(list) == TARN_JSON_ARRAY ? tarn_json_count(list) : 0;
    for (size_t i = 0; i < count; i++) {
        struct tarn_identity who;
        if (parse_receipt(tarn_json_at(list, i), &who))
            add_receipt(batch, table, snapshot, &who);
    }
}

/* content: of a batch; NULL: it is not known. */
static void add_all(struct tarn_state_batch *batch, struct tarn_table *table,
                    const struct tarn_snapshot *snapshot, const uint64_t *content)
{
    struct tarn_slice hidden = receipts_of(snapshot);
    if (hidden.data != NULL)
        add_hidden(batch, table, snapshot, hidden);
    struct tarn_identity who = {snapshot->commit_user, snapshot->commit_identifier, 0};
    if (who.identifier == TARN_COMMIT_IDENTIFIER_BATCH) {
        if (hidden.data != NULL || content == NULL)
            return; /* its own identity is among the hidden ones */
        who.content = *content;
    } else if (tarn_slice_is(who.user, TARN_COMMIT_OWN_USER)) {
        return; /* a group's: nobody asks for it */
    }
    add_receipt(batch, table, snapshot, &who);
}

void tarn_table__receipts_add(struct tarn_state_batch *batch, struct tarn_table *table,
                              const struct tarn_snapshot *snapshot, const struct tarn_delta *delta)
{
    uint64_t content = delta == NULL ? 0 : tarn_table__delta_content(delta);
    add_all(batch, table, snapshot, delta == NULL ? NULL : &content);
}

struct tarn_status *tarn_table__receipts_note(struct tarn_table *table,
                                              const struct tarn_snapshot *snapshot,
                                              uint64_t content)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    add_all(batch, table, snapshot, &content);
    return tarn_state_write(table->env->state, batch, false);
}

/* --- asking --- */

struct tarn_status *tarn_table__receipt_find(struct tarn_table *table, struct tarn_slice user,
                                             int64_t identifier, uint64_t content,
                                             enum tarn_commit_kind kind, int64_t *snapshot_id)
{
    struct tarn_identity who = {user, identifier,
                                identifier == TARN_COMMIT_IDENTIFIER_BATCH ? content : 0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_table__tagged_key(table->uuid, 'r', &key);
    tarn_receipt__add_identity(&key, &who);
    tarn_buf_add_byte(&key, (uint8_t)kind);
    bool found;
    *snapshot_id = 0;
    return tarn_receipt__find_number(table, &key, &found, snapshot_id);
}

struct tarn_status *tarn_table__last_identifier(struct tarn_table *table, struct tarn_slice user,
                                                int64_t *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_receipt__user_key(table, 'l', user, &key);
    bool found;
    *out = TARN_SNAPSHOT_NONE;
    return tarn_receipt__find_number(table, &key, &found, out);
}

struct tarn_status *tarn_table__voided_find(struct tarn_table *table,
                                            const struct tarn_identity *who,
                                            enum tarn_commit_kind kind, int64_t *snapshot_id,
                                            int64_t *time_ms)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_table__tagged_key(table->uuid, 'v', &key);
    tarn_receipt__add_identity(&key, who);
    tarn_buf_add_byte(&key, (uint8_t)kind);
    bool found;
    *snapshot_id = 0;
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&key), &found,
                            &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    if (found && (!tarn_key_take_i64(&rest, snapshot_id) || !tarn_key_take_i64(&rest, time_ms)))
        return tarn_receipt__damaged(table);
    return TARN_OK;
}

struct tarn_status *tarn_table__is_in_doubt(struct tarn_table *table,
                                            const struct tarn_identity *who,
                                            enum tarn_commit_kind kind, int64_t *snapshot_id)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_table__tagged_key(table->uuid, 'd', &key);
    tarn_receipt__add_identity(&key, who);
    tarn_buf_add_byte(&key, (uint8_t)kind);
    bool found;
    *snapshot_id = 0;
    return tarn_receipt__find_number(table, &key, &found, snapshot_id);
}

struct tarn_status *tarn_table__last_batch(struct tarn_table *table, struct tarn_slice user,
                                           uint64_t *content)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_receipt__user_key(table, 'b', user, &key);
    bool found;
    *content = 0;
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&key), &found,
                            &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    return found && !tarn_key_take_u64(&rest, content) ? tarn_receipt__damaged(table) : TARN_OK;
}
