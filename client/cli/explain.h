/*
 * explain - decisions of the scheduler, for people and for programs.
 */
#ifndef TARN_CLI_EXPLAIN_H
#define TARN_CLI_EXPLAIN_H

#include "cli.h"
#include "tarn/v1/maintenance.pb-c.h"

/* All of a message of numbers, texts and messages, under its fields' names. Owned. */
struct tarn_json *tarn_cli_message_json(const ProtobufCMessage *message);
/* Some lines: the score and what it is made of, who was next, the budgets, what the pick was made from. Nothing where output is for
 * programs, and of a job without a decision. */
void tarn_cli_say_decision(struct tarn_cli *cli, const Tarn__V1__Job *job);

#endif
