#include "base/standard_files.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/macros.h"

void tarn_hold_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        int held = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        tarn_assert(held < 0 || held == fd); /* the lowest that is free */
    }
}
