#include "progress.h"

#define BAR_WIDTH 30

void tarn_cli_progress_start(struct tarn_cli_progress *progress, struct tarn_cli *cli,
                             const char *what, bool bytes, int64_t total)
{
    *progress =
        (struct tarn_cli_progress){.cli = cli, .what = what, .bytes = bytes, .total = total};
    progress->start_ms = progress->shown_ms = tarn_clock_mono_ms();
}

static void add_count(const struct tarn_cli_progress *progress, int64_t count, struct tarn_buf *out)
{
    if (progress->bytes)
        tarn_format_size(count, out);
    else
        tarn_buf_printf(out, "%" PRId64, count);
}

static void add_numbers(const struct tarn_cli_progress *progress, int64_t done, int64_t now_ms,
                        struct tarn_buf *out)
{
    add_count(progress, done, out);
    if (progress->total > 0) {
        tarn_buf_add_str(out, " of ");
        add_count(progress, progress->total, out);
    }
    if (!progress->bytes)
        tarn_buf_add_str(out, progress->total == 1 ? " task" : " tasks");
    else if (now_ms - progress->start_ms > 500) {
        tarn_buf_add_str(out, ", ");
        tarn_format_size((int64_t)((double)done * 1000.0 / (double)(now_ms - progress->start_ms)),
                         out);
        tarn_buf_add_str(out, "/s");
    }
}

static void show_bar(struct tarn_cli_progress *progress, int64_t done, const char *numbers)
{
    char bar[BAR_WIDTH + 1] = {0};
    double part = progress->total > 0 ? (double)done / (double)progress->total : 0;
    int filled = (int)(TARN_MIN(part, 1.0) * BAR_WIDTH);

    progress->bar_there = true;
    if (progress->total <= 0) {
        fprintf(progress->cli->err, "\r\033[K%s %s", progress->what, numbers);
        return;
    }
    memset(bar, '=', (size_t)filled);
    memset(bar + filled, ' ', (size_t)(BAR_WIDTH - filled));
    if (filled < BAR_WIDTH)
        bar[filled] = '>';
    fprintf(progress->cli->err, "\r\033[K%s [%s] %3d%% %s", progress->what, bar,
            (int)(TARN_MIN(part, 1.0) * 100), numbers);
}

void tarn_cli_progress_step(struct tarn_cli_progress *progress, int64_t done)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf numbers = {0};
    bool terminal = progress->cli->err_is_terminal;
    int64_t now_ms = tarn_clock_mono_ms();
    int64_t every_ms = terminal ? TARN_CLI_PROGRESS_BAR_MS : TARN_CLI_PROGRESS_LINE_MS;

    if (now_ms - progress->shown_ms < every_ms)
        return;
    progress->shown_ms = now_ms;
    add_numbers(progress, done, now_ms, &numbers);
    if (terminal)
        show_bar(progress, done, tarn_buf_cstr(&numbers));
    else
        fprintf(progress->cli->err, "tarn: %s: %s\n", progress->what, tarn_buf_cstr(&numbers));
    fflush(progress->cli->err);
}

void tarn_cli_progress_note(struct tarn_cli_progress *progress, const char *note)
{
    if (!progress->cli->err_is_terminal)
        return;
    progress->bar_there = true;
    fprintf(progress->cli->err, "\r\033[K%s: %s", progress->what, note);
    fflush(progress->cli->err);
}

void tarn_cli_progress_end(struct tarn_cli_progress *progress)
{
    if (progress->bar_there)
        fprintf(progress->cli->err, "\r\033[K");
    progress->bar_there = false;
    fflush(progress->cli->err);
}
