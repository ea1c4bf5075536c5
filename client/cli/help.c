#include "cli.h"

/* Help is made from the tables of commands and options, so that it says what the parser takes. */

#define SUMMARY_COLUMN 22

static void print_summary(FILE *out, const struct tarn_cli_command *command)
{
    fprintf(out, "  %-*s %s\n", SUMMARY_COLUMN, command->name, command->summary);
}

/* In lines of less than 80 columns. */
static void print_unbuilt(FILE *out)
{
    int column = fprintf(out, "\nNot in this version yet:");
    for (const struct tarn_cli_command *c = tarn_cli_commands; c->name != NULL; c++) {
        if (c->run != NULL)
            continue;
        if (column + 1 + (int)strlen(c->name) >= 80)
            column = fprintf(out, "\n ") - 1;
        column += fprintf(out, " %s", c->name);
    }
    fprintf(out, "\n");
}

static bool is_of(const struct tarn_cli_command *command, const char *group)
{
    size_t size = strlen(group);
    return strncmp(command->name, group, size) == 0 && command->name[size] == ' ';
}

void tarn_cli_help(FILE *out, const char *group)
{
    fprintf(out, "usage: tarn [OPTIONS] %s%sCOMMAND [ARGUMENTS]\n\n", group == NULL ? "" : group,
            group == NULL ? "" : " ");
    for (const struct tarn_cli_command *c = tarn_cli_commands; c->name != NULL; c++)
        if (c->run != NULL && (group == NULL || is_of(c, group)))
            print_summary(out, c);
    fprintf(out, "\ntarn COMMAND --help says more about one. Tables are DATABASE.TABLE.\n");
    if (group != NULL)
        return;
    print_unbuilt(out);
}

static void print_option(FILE *out, const struct tarn_cli_option *option)
{
    char name[80];
    int used = snprintf(name, sizeof name, "%c%c%c --%s%s%s", option->letter ? '-' : ' ',
                        option->letter ? option->letter : ' ', option->letter ? ',' : ' ',
                        option->name, option->value ? " " : "", option->value ? option->value : "");
    if (used > 30)
        fprintf(out, "  %s\n  %-30s %s", name, "", option->help);
    else
        fprintf(out, "  %-30s %s", name, option->help);
    fprintf(out, "%s\n", option->many ? " (may be repeated)" : "");
}

/* Those that begin with a command's name. */
static void print_more_commands(FILE *out, const char *group)
{
    const char *title = "\nMore commands:\n";
    for (const struct tarn_cli_command *c = tarn_cli_commands; c->name != NULL; c++)
        if (c->run != NULL && is_of(c, group)) {
            fputs(title, out);
            print_summary(out, c);
            title = "";
        }
}

void tarn_cli_help_command(FILE *out, const struct tarn_cli_command *command)
{
    fprintf(out, "%s\n\nusage: tarn %s%s%s%s\n", command->summary, command->name,
            command->words[0] != '\0' ? " " : "", command->words,
            command->options != NULL ? " [OPTIONS]" : "");
    if (command->more != NULL)
        fprintf(out, "\n%s\n", command->more);
    print_more_commands(out, command->name);
    if (command->options != NULL)
        fprintf(out, "\nOptions:\n");
    for (const struct tarn_cli_option *o = command->options; o != NULL && o->name != NULL; o++)
        print_option(out, o);
    fprintf(out, "\nOptions of every command:\n");
    for (const struct tarn_cli_option *o = tarn_cli_global_options; o->name != NULL; o++)
        print_option(out, o);
}
