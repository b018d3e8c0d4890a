#include "base/err.h"

#include "tap.h"

int main(void)
{
    hp_errmsg e = {0};
    is_int(hp_fail(&e, HP_EINPUT, "line %d: bad value %s", 3, "x"), HP_EINPUT,
           "hp_fail returns its code");
    is_str(e.text, "line 3: bad value x", "hp_fail formats the sentence");
    is_int(hp_fail_at(&e, "%s", "a.lua"), HP_EINPUT, "hp_fail_at keeps the code");
    is_str(e.text, "a.lua: line 3: bad value x", "hp_fail_at puts where before what");
    is_int(hp_fail(NULL, HP_EUSAGE, "nobody listens"), HP_EUSAGE,
           "a caller may not want the message");

    char longer[3000];
    memset(longer, 'y', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    hp_fail_at(&e, "%s", longer);
    is_int((long long)strlen(e.text), (long long)sizeof e.text - 1,
           "a message that is too long is cut to fit");
    return done_testing();
}
