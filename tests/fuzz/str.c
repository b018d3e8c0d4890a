/* Any bytes are a glob, a name and a size to base/str.h: none may crash, hang or match itself wrongly. */
#include "base/str.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1);
    if (!text)
        return 0;
    if (n)
        memcpy(text, data, n);
    text[n] = '\0';
    const char *half = text + strlen(text) / 2;
    hp_glob_match(half, text);
    if (!strpbrk(text, "*[") && !hp_glob_match(text, text))
        abort();
    if (!hp_glob_match("**", text))
        abort();

    long long bytes = -1;
    if (hp_parse_bytes(text, &bytes, NULL) == HP_OK ? bytes < 0 : bytes != -1)
        abort();
    const char *const names[] = {half, text};
    if (hp_near(text, names, 2) == NULL)
        abort();
    free(text);
    return 0;
}
