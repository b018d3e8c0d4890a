/* corpus.c -- a missing file is told before anything is planned. */
#include "session/corpus.h"

#include "base/mem.h"
#include "base/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

hp_err hp_session_corpus(const char *asked, char **path, hp_errmsg *e)
{
    char *data = NULL;
    struct stat st;
    if (asked) {
        if (access(asked, R_OK) != 0 || stat(asked, &st) != 0)
            return hp_fail(e, HP_EUSAGE, "--data %s: %s", asked, strerror(errno));
        if (S_ISDIR(st.st_mode))
            return hp_fail(e, HP_EUSAGE, "--data %s: a folder, not a file", asked);
        *path = hp_xstrdup(asked);
        return HP_OK;
    }
    hp_err err = hp_paths_data(&data, e);
    if (!err)
        *path = hp_paths_join(data, "share/data/kjv.txt");
    free(data);
    return err;
}
