#include "ask.h"
#include "print.h"

#include "tarn/v1/table.pb-c.h"

/* Where readers stand whose positions a table keeps: files that every engine knows, and that expiry respects. */

const struct tarn_cli_option tarn_cli_consumer_set_options[] = {
    {"next", 0, "SNAPSHOT", "the snapshot to be read next; else what comes after the latest",
     false},
    {0},
};

static const struct tarn_cli_column consumer_columns[] = {
    {"id", "CONSUMER", TARN_CLI_TEXT},
    {"next_snapshot", "NEXT SNAPSHOT", TARN_CLI_INT},
    {"time", "MOVED", TARN_CLI_TIME},
};

static void add_consumer(struct tarn_cli_list *list, const Tarn__V1__Consumer *consumer)
{
    tarn_cli_list_text(list, consumer->id);
    tarn_cli_list_int(list, consumer->next_snapshot);
    tarn_cli_list_int(list, consumer->time_ms);
}

struct tarn_status *tarn_cli_consumer_list(struct tarn_cli *cli)
{
    Tarn__V1__ListConsumersRequest request = TARN__V1__LIST_CONSUMERS_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__ListConsumersResponse *answer = NULL;
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list = NULL;
    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(tarn_cli_ask(cli, "TableService/ListConsumers", &request.base,
                          &tarn__v1__list_consumers_response__descriptor, &answer));
    list = tarn_cli_list_new(cli, consumer_columns, TARN_COUNT_OF(consumer_columns));
    for (size_t i = 0; i < answer->n_consumers; i++)
        add_consumer(list, answer->consumers[i]);
    return tarn_cli_list_end(list);
}

struct tarn_status *tarn_cli_consumer_set(struct tarn_cli *cli)
{
    Tarn__V1__SetConsumerRequest request = TARN__V1__SET_CONSUMER_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__SetConsumerResponse *answer = NULL;
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *record = NULL;
    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(
        tarn_cli_misused(cli, tarn_cli_args_int(&cli->args, "next", 1, &request.next_snapshot)));
    request.id = (char *)(uintptr_t)cli->args.words[1];
    TARN_TRY(tarn_cli_ask(cli, "TableService/SetConsumer", &request.base,
                          &tarn__v1__set_consumer_response__descriptor, &answer));
    if (cli->format == TARN_CLI_TABLE) {
        tarn_cli_say(cli, "consumer %s reads snapshot %" PRId64 " next", request.id,
                     answer->consumer->next_snapshot);
        return TARN_OK;
    }
    record = tarn_cli_record_new(cli);
    tarn_cli_record_text(record, "id", NULL, answer->consumer->id);
    tarn_cli_record_int(record, "next_snapshot", NULL, TARN_CLI_INT,
                        answer->consumer->next_snapshot);
    return tarn_cli_record_end(record);
}

struct tarn_status *tarn_cli_consumer_drop(struct tarn_cli *cli)
{
    Tarn__V1__DropConsumerRequest request = TARN__V1__DROP_CONSUMER_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__DropConsumerResponse *answer = NULL;
    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    request.id = (char *)(uintptr_t)cli->args.words[1];
    TARN_TRY(tarn_cli_ask(cli, "TableService/DropConsumer", &request.base,
                          &tarn__v1__drop_consumer_response__descriptor, &answer));
    return tarn_cli_dropped(cli, "consumer", request.id);
}
