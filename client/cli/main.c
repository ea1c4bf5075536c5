/* The program `tarn`: words and streams of the process, and what a signal does. */
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <unistd.h>

#include "cli.h"
#include "base/standard_files.h"

static struct tarn_cli cli;
static volatile sig_atomic_t caught;

/* The first one cancels what runs, so that the daemon hears of it; the second ends us. */
static void interrupt(int signal_number)
{
    if (caught != 0)
        _exit(128 + signal_number);
    caught = signal_number;
    tarn_op_cancel(&cli.op);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = interrupt}; /* no SA_RESTART: a read comes back */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a write says so, and we end quietly */
}

TARN_HOLD_STANDARD_FILES;

int main(int argc, char **argv)
{
    /* Widths of characters come from the locale; names are UTF-8 whatever it is. */
    if (setlocale(LC_CTYPE, "") == NULL || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8");
    cli = (struct tarn_cli){
        .out = stdout,
        .err = stderr,
        .in_fd = STDIN_FILENO,
        .out_is_terminal = isatty(STDOUT_FILENO) == 1,
        .err_is_terminal = isatty(STDERR_FILENO) == 1,
    };
    tarn_op_init(&cli.op);
    catch_signals();
    int code = tarn_cli_run(&cli, argc, argv);
    /* The op stays as it is: a late signal may still touch it. */
    return caught != 0 && code != 0 ? 128 + caught : code;
}
