/* A script can compute and nothing else: every attack ends in one clear error, soon. */
#include "script/sandbox.h"

#include "tap.h"

#include <lua.h>
#include <time.h>
#include <unistd.h>

/* Processor seconds of this program: what an attack costs, however busy the machine is. */
static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static hp_err run(const char *text, hp_errmsg *e)
{
    hp_sandbox *sb;
    *e = (hp_errmsg){0};
    hp_err err = hp_sandbox_new(NULL, &sb, e);
    if (err)
        bail("no sandbox: %s", e->text);
    err = hp_sandbox_text(sb, "attack.lua", text, strlen(text), e);
    hp_sandbox_free(sb);
    return err;
}

static void attack(const char *text, const char *says, const char *name)
{
    hp_errmsg e;
    double before = processor_seconds();
    hp_err err = run(text, &e);
    double seconds = processor_seconds() - before;
    ok(err == HP_EINPUT && strstr(e.text, says), "%s is refused", name);
    if (err != HP_EINPUT || !strstr(e.text, says))
        diag("code %d: %s", err, e.text);
    ok(seconds < 6, "%s ends soon", name); /* the sanitizers' build takes thrice the time */
    note("%.2f s", seconds);
}

static void endless_work(void)
{
    attack("while true do end", "spent its instructions", "an endless loop");
    attack("while true do pcall(function() while true do end end) end", "spent",
           "an endless loop of pcalls");
    attack("local function f() return pcall(f) end while true do f() end", "spent",
           "pcall in itself");
    attack("for i = 1, 1e9 do setmetatable({}, {__gc = function() while true do end end}) end",
           "__gc is not allowed", "a finalizer bomb");
    attack("local t <close> = setmetatable({}, {__close = function() while true do end end})",
           "__close is not allowed", "a closing bomb");
    attack(
        "local m = {} local t = setmetatable({}, m) m.__close = function() while true do end end\n"
        "do local x <close> = t while true do end end",
        "spent", "a closing bomb in disguise");
    attack("return xpcall(function() while true do end end, function() while true do end end)",
           "unknown word 'xpcall'", "a message handler that never ends");
    attack("coroutine.wrap(function() end)()", "unknown word 'coroutine'", "a coroutine");
    attack("local function f() return f() end return f()", "spent", "an endless tail call");
    attack("local function f() return 1 + f() end return f()", "", "deep recursion");
    attack("local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) return t[1]",
           "C stack overflow", "deep metamethods");
    attack("table.sort(setmetatable({}, {__len = function() return 2^31 - 2 end}))", "",
           "sorting what claims to be long");
    attack("table.move({}, 1, 2^62, 2)", "spent", "moving what is not there");
    attack("local t = {} for i = 1, 3e5 do t[i] = i end while true do table.insert(t, 1, 0) end",
           "spent", "inserting in front");
    attack("local t = {} for i = 1, 3e5 do t[i] = -i end while true do table.sort(t) end", "spent",
           "sorting for ever");
}

static void patterns(void)
{
    attack("return ('a'):rep(50000):find(('a*'):rep(60) .. 'b')", "spent", "a pattern bomb");
    attack("return ('a'):rep(30000):match('.-.-.-.-.-.-b')", "spent", "a lazy pattern bomb");
    attack("return ('('):rep(2000000):gsub('%b()', '')", "spent", "a balanced pattern bomb");
    attack("return ('x'):rep(3000):find(('(x?)'):rep(31) .. 'y')", "spent", "a capture bomb");
    attack("for _ in ('a'):rep(20000):gmatch('a*a*a*a*b') do end", "spent",
           "a pattern bomb in gmatch");
    attack("return ('a'):rep(1000000):find(('a'):rep(500000) .. 'b', 1, true)", "spent",
           "a plain search bomb");
    attack("return ('x'):find(('x*'):rep(500))", "too complex", "a deep pattern");
    attack("return ('x'):find('[a')", "missing ']'", "a malformed pattern");
    attack("return ('x'):find('%')", "ends with '%'", "a pattern that ends in an escape");
}

static void memory(void)
{
    attack("return ('x'):rep(4 * 2^30 // 1 | 0)", "string.rep would make", "a string of 4 GiB");
    attack("local t = {} for i = 1, 1e9 do t[i] = i end", "", "a table of 4 GB");
    attack("local t = {} while true do t[#t + 1] = ('x'):rep(1000000) .. #t end", "",
           "many long strings");
    attack("local s = 'x' while true do s = s .. s end", "memory", "a string that doubles");
    attack("while true do pcall(string.rep, 'x', 30000000) end", "spent", "long strings in pcalls");
    attack("local s = ('x'):rep(30000000) while true do local t = s .. 'y' end", "spent",
           "copies for ever");
    attack("local s = ('0123456789abcdef'):rep(1800000) return table.concat({s, s})", "",
           "a concatenation of 58 MB");
}

static void escapes(void)
{
    attack("return io.open('/etc/passwd')", "unknown word 'io'", "reading a file");
    attack("return os.execute('true')", "unknown word 'os'", "a process");
    attack("return debug.getregistry()", "unknown word 'debug'", "the debug library");
    attack("return load('return 1')", "unknown word 'load'", "loading code");
    attack("return dofile('/etc/passwd')", "unknown word 'dofile'", "running a file");
    attack("return require('/etc/passwd')", "only modules of lua/", "requiring a path");
    attack("return require('../models/gpt2')", "only modules of lua/", "requiring from elsewhere");
    attack("return require('nosuch')", "require 'nosuch'", "requiring what is not there");
    attack("return package.loadlib('x', 'y')", "unknown word 'package'", "loading a library");
    attack("return string.dump(function() end)", "attempt to call a nil", "dumping code");
    attack("return getmetatable('').__index.dump(function() end)", "",
           "dumping code by the back door");
    attack("return math.random()", "attempt to call a nil", "random numbers");
    attack("\x1bLua", "compiled chunk", "a binary chunk");
    attack("return _G", "unknown word '_G'", "the table of globals");
    attack("setmetatable(_ENV, {})", "protected", "changing the environment's metatable");
    attack("fail('x')", "unknown word 'fail'", "the modules' own words");
}

static void messages(void)
{
    hp_errmsg e;
    run("\n\nreturn lenear(1)", &e);
    ok(strncmp(e.text, "attack.lua:3: unknown word 'lenear'; the nearest is '", 52) == 0,
       "an unknown word is named with file, line and the nearest");
    run("x = = 1", &e);
    ok(strncmp(e.text, "attack.lua:1: ", 14) == 0, "a syntax error names file and line");
    run("local t = {} \n t.a.b = 1", &e);
    ok(strncmp(e.text, "attack.lua:2: ", 14) == 0, "an error at run time names file and line");
    run("error({})", &e);
    ok(strstr(e.text, "error is a table"), "an error that is no text is said to be none");
    run("\ntable.insert(nil, 1)", &e);
    ok(strncmp(e.text, "attack.lua:2: ", 14) == 0,
       "an error in a library function names file and line");
    run("error('plain', 0)", &e);
    ok(strstr(e.text, "attack.lua") && strstr(e.text, "plain"),
       "an error without a place gets the file");
}

static void sticky(void)
{
    hp_sandbox *sb;
    hp_errmsg e = {0};
    hp_sandbox_limits small = {.instructions = 10000};
    if (hp_sandbox_new(&small, &sb, &e))
        bail("%s", e.text);
    hp_sandbox_text(sb, "first.lua", "while true do end", 17, &e);
    ok(strstr(e.text, "spent"), "a budget of 10,000 instructions is spent");
    is_int(hp_sandbox_text(sb, "second.lua", "return 1 + 1", 12, &e), HP_EINPUT,
           "and stays spent for the next script");
    hp_sandbox_free(sb);
}

static void harmless(void)
{
    static const char *const fine[] = {
        "return select('#', ('a,b,,c'):find('(%w),(%w)')) == 4",
        "return ('key = value'):match('^(%w+)%s*=%s*(%w+)$') == 'key'",
        "return ('hello world'):gsub('o', '0') == 'hell0 w0rld'",
        "return ('hello'):gsub('', '-') == '-h-e-l-l-o-'",
        "return ('abc'):gsub('%w', '%0%0') == 'aabbcc'",
        "return ('abc'):gsub('%w', { a = '1', b = true and '2' }) == '12c'",
        "return ('$name'):gsub('%$(%w+)', function(n) return n:upper() end) == 'NAME'",
        "local n = 0 for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do n = n + v end return n == 3",
        "return ('THE (quick) fox'):find('%((%a+)%)') == 5",
        "return ('x'):rep(3, '-') == 'x-x-x'",
        "return ('[[x]]'):match('%b[]') == '[[x]]'",
        "return ('THE (quick) fox'):gsub('%f[%a]%a+', 'w') == 'w (w) w'",
        "return ('a.b'):find('.', 1, true) == 2 and ('a.b'):find('b', -1) == 3",
        "return ('  trim '):match('^%s*(.-)%s*$') == 'trim'",
        "return ('abcabc'):match('(abc)%1') == 'abc'",
        "return ('a-z]'):match('[]-]') == '-' and ('x^'):match('[%^x]+$') == 'x^' and "
        "('q'):match('[^a-p]') == 'q'",
        "return ('abc'):match('()b()') == 2",
        "local t = {3, 1, 2} table.sort(t) table.insert(t, 1, 0) table.remove(t) return "
        "table.concat(t, ',') == '0,1,2'",
        "return bytes('2KiB') == 2048",
    };
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        hp_sandbox *sb;
        hp_errmsg e = {0};
        if (hp_sandbox_new(NULL, &sb, &e))
            bail("%s", e.text);
        hp_err err = hp_sandbox_text(sb, "fine.lua", fine[i], strlen(fine[i]), &e);
        ok(!err && lua_toboolean(hp_sandbox_lua(sb), -1), "%s", fine[i]);
        if (err)
            diag("%s", e.text);
        hp_sandbox_free(sb);
    }
}

static void files(void)
{
    hp_sandbox *sb;
    hp_errmsg e = {0};
    if (hp_sandbox_new(NULL, &sb, &e))
        bail("%s", e.text);
    is_int(hp_sandbox_file(sb, "/nosuch/x.lua", &e), HP_EINPUT, "a file that is not there");
    ok(strstr(e.text, "/nosuch/x.lua"), "is named");
    is_int(hp_sandbox_file(sb, "/tmp", &e), HP_EINPUT, "a folder is no script");
    is_int(hp_sandbox_file(sb, "/dev/zero", &e), HP_EINPUT, "a device is no script");
    char path[] = "/tmp/hp-long-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || ftruncate(fd, 2 << 20))
        bail("no temporary file");
    close(fd);
    is_int(hp_sandbox_file(sb, path, &e), HP_EINPUT, "a file of 2 MiB is no script");
    ok(strstr(e.text, "1 MiB"), "and is told the limit");
    unlink(path);
    hp_sandbox_free(sb);
}

int main(void)
{
    endless_work();
    patterns();
    memory();
    escapes();
    messages();
    sticky();
    harmless();
    files();
    return done_testing();
}
