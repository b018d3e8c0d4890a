# One Makefile for the whole house; build/<flavour>/ holds everything that is made.
#
# A source is found by where it lies: src/<room>/*.c and tui/*.c make libhp.a, src/cli/main.c is the
# program, tests/unit/<room>/*.c, tests/prop/*.c, tests/cases/*.c and tests/fuzz/*.c are programs of their own. Adding
# a file needs no edit here. src/kern/*_simd.c is compiled once per instruction-set level.
#
#   make GEMM=onednn|openblas|plain     which matrix multiplication is linked
#   make FLAVOUR=asan tests             any target in any flavour
#   make V=1                            shows the commands

FLAVOUR ?= release
PREFIX ?= /usr/local
SECONDS_PER_FUZZER ?= 20

# --- what a flavour means -------------------------------------------------------------------------
ifeq ($(FLAVOUR),release)
  FLAVOUR_GEMM := onednn
  OPT := -O2 -g
else ifeq ($(FLAVOUR),asan)
  FLAVOUR_GEMM := plain
  OPT := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
else ifeq ($(FLAVOUR),tsan)
  FLAVOUR_GEMM := plain
  CC := clang
  OPT := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
else ifeq ($(FLAVOUR),cov)
  FLAVOUR_GEMM := plain
  OPT := -O1 -g --coverage
else ifeq ($(FLAVOUR),fuzz)
  FLAVOUR_GEMM := plain
  CC := clang
  OPT := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined
else ifeq ($(FLAVOUR),valgrind)
  FLAVOUR_GEMM := plain
  OPT := -O1 -g
else
  $(error FLAVOUR=$(FLAVOUR) is none of release asan tsan cov fuzz valgrind)
endif

GEMM ?= $(FLAVOUR_GEMM)
OUT := build/$(FLAVOUR)$(if $(filter-out $(FLAVOUR_GEMM),$(GEMM)),-$(GEMM))

ifeq ($(GEMM),onednn)
  GEMM_FLAGS := -DHP_GEMM_ONEDNN
  GEMM_LIBS := -ldnnl
else ifeq ($(GEMM),openblas)
  GEMM_FLAGS := -DHP_GEMM_OPENBLAS $(shell pkg-config --cflags openblas)
  GEMM_LIBS := $(shell pkg-config --libs openblas)
else ifeq ($(GEMM),plain)
  GEMM_FLAGS := -DHP_GEMM_PLAIN
else
  $(error GEMM=$(GEMM) is none of onednn openblas plain)
endif

# --- compiler and libraries -----------------------------------------------------------------------
ifeq ($(origin CC),default)
  CC := gcc
endif
PACKAGES := lua5.4 hwloc sqlite3 jansson yajl zlib ncursesw readline
ifeq ($(shell pkg-config --exists libcurl && echo yes),yes)
  PACKAGES += libcurl
  CURL_FLAGS := -DHP_HAVE_CURL
endif
LIB_FLAGS := $(patsubst -I%,-isystem %,$(filter -I%,$(shell pkg-config --cflags $(PACKAGES)))) $(CURL_FLAGS)
LIBS := $(GEMM_LIBS) $(shell pkg-config --libs $(PACKAGES)) -lm -lpthread -ldl

WARN := -Wall -Wextra -Wshadow -Wconversion -Wmissing-prototypes
ifeq ($(findstring clang,$(CC)),)
  WARN += -Wno-format-truncation # messages and labels are cut to fit on purpose
endif
HP_CFLAGS := -std=gnu11 $(OPT) $(WARN) -fopenmp -D_GNU_SOURCE= -Isrc -I. -Itests $(GEMM_FLAGS) $(LIB_FLAGS)

# --- sources --------------------------------------------------------------------------------------
MAIN := $(wildcard src/cli/main.c)
SIMD := $(wildcard src/kern/*_simd.c)
SRC := $(filter-out $(MAIN) $(SIMD),$(sort $(wildcard src/*/*.c tui/*.c)))
UNIT := $(sort $(wildcard tests/unit/*/*.c))
PROP := $(sort $(wildcard tests/prop/*.c))
CASES := $(sort $(wildcard tests/cases/*.c))
FUZZ := $(sort $(wildcard tests/fuzz/*.c))

ifneq ($(filter x86_64-%,$(shell $(CC) -dumpmachine)),)
  LEVELS := v2 v3 v4
else
  LEVELS := generic
endif
LEVEL_FLAGS_v2 := -march=x86-64-v2
LEVEL_FLAGS_v3 := -march=x86-64-v3
LEVEL_FLAGS_v4 := -march=x86-64-v4 -mprefer-vector-width=512

OBJ := $(SRC:%.c=$(OUT)/obj/%.o) $(foreach l,$(LEVELS),$(SIMD:%.c=$(OUT)/obj/%.$l.o))
MAIN_OBJ := $(MAIN:%.c=$(OUT)/obj/%.o)
LIB := $(OUT)/libhp.a
BIN := $(if $(MAIN),$(OUT)/hpbench)
TESTS := $(UNIT:%.c=$(OUT)/%) $(PROP:%.c=$(OUT)/%) $(CASES:%.c=$(OUT)/%)
FUZZERS := $(FUZZ:%.c=$(OUT)/%)

$(V).SILENT:
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all tests fuzzers run check check-long mutate layers print-libs asan tsan cov fuzz format install clean where print-libs help FORCE

all: $(LIB) $(BIN) $(if $(filter build/release,$(OUT)),$(if $(MAIN),hpbench)) ## the program (default)

tests: all $(TESTS) ## the unit, property and case test programs, not run

fuzzers: $(FUZZERS)

# --- rules ----------------------------------------------------------------------------------------
# $(call keep,TEXT): a recipe that rewrites its target only when TEXT differs from what it holds.
keep = mkdir -p $(@D) && echo '$1' | cmp -s - $@ || echo '$1' > $@

$(OUT)/objects: FORCE
	$(call keep,$(OBJ))
$(OUT)/prefix: FORCE
	$(call keep,$(PREFIX))

# compile TARGET SOURCE FLAGS
compile = mkdir -p $(@D) && echo "  CC    $(@:$(OUT)/obj/%=%)" && $(CC) $(HP_CFLAGS) $1 $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/obj/%.o: %.c Makefile
	$(call compile)
$(OUT)/obj/src/base/paths.o: HP_CFLAGS += -DHP_DATADIR='"$(PREFIX)/share/hpbench"'
$(OUT)/obj/src/base/paths.o: $(OUT)/prefix
define level_rule
$(OUT)/obj/src/kern/%_simd.$1.o: src/kern/%_simd.c Makefile
	$$(call compile,$(if $(filter release,$(FLAVOUR)),-O3) -fno-math-errno $(LEVEL_FLAGS_$1) -DHP_LEVEL=$1)
endef
$(foreach l,$(LEVELS),$(eval $(call level_rule,$l)))

$(LIB): $(OBJ) $(OUT)/objects
	rm -f $@ && $(AR) rcs $@ $(OBJ)

link = mkdir -p $(@D) && $(CC) $(HP_CFLAGS) $(CFLAGS) $1 $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIB) $(LIBS)

$(OUT)/hpbench: $(MAIN_OBJ) $(LIB)
	$(call link)
hpbench: $(OUT)/hpbench
	ln -sf $< $@ && touch -h $@
$(OUT)/tests/unit/%: $(OUT)/obj/tests/unit/%.o $(LIB)
	$(call link)
$(OUT)/tests/prop/%: $(OUT)/obj/tests/prop/%.o $(LIB)
	$(call link)
$(OUT)/tests/cases/%: $(OUT)/obj/tests/cases/%.o $(LIB)
	$(call link)
$(OUT)/tests/fuzz/%: $(OUT)/obj/tests/fuzz/%.o $(LIB)
	$(call link,-fsanitize=fuzzer)

-include $(OBJ:.o=.d) $(MAIN_OBJ:.o=.d) $(patsubst %.c,$(OUT)/obj/%.d,$(UNIT) $(PROP) $(CASES) $(FUZZ))

# --- what people call -----------------------------------------------------------------------------
run: all ## build and start the workbench (a short real run where there is no terminal)
	scripts/run --start $(ARGS)

check: ## build and run every test, with a budget for each part
	+tests/run
check-long: ## the same with many more draws of the property tests
	+HP_TEST_LONG=1 tests/run
mutate: ## break named lines of the sources one at a time: a test must notice each
	scripts/mutate $(ARGS)
layers: ## no include of a later room, no circle of modules
	scripts/layers

# What a program that links the library needs; for scripts/bench.
print-libs:
	@echo $(LIBS)

asan: ## build/asan: gcc with AddressSanitizer and UBSan
	+$(MAKE) --no-print-directory FLAVOUR=asan tests
tsan: ## build/tsan: clang with ThreadSanitizer and libomp
	+$(MAKE) --no-print-directory FLAVOUR=tsan tests
cov: ## line coverage of the unit and case tests, by room
	+$(MAKE) --no-print-directory FLAVOUR=cov tests
	scripts/coverage build/cov
fuzz: ## build the fuzzers and run each for SECONDS_PER_FUZZER
	+$(MAKE) --no-print-directory FLAVOUR=fuzz fuzzers
	for f in $(FUZZ:%.c=build/fuzz/%); do \
	  mkdir -p $$f.corpus && $$f -max_total_time=$(SECONDS_PER_FUZZER) $$f.corpus || exit 1; done

format: ## put every C file into the house's shape (clang-format)
	clang-format -i $(wildcard src/*/*.[ch] tui/*.[ch] tests/*.h tests/*/*.c tests/*/*/*.c)

DATA := $(DESTDIR)$(PREFIX)/share/hpbench
install: all ## copy program, data and man page under DESTDIR and PREFIX
	install -D $(OUT)/hpbench $(DESTDIR)$(PREFIX)/bin/hpbench
	install -D -m 644 share/doc/hpbench.1 $(DESTDIR)$(PREFIX)/share/man/man1/hpbench.1
	mkdir -p $(DATA) && cp -R lua models share $(DATA)/

where:
	echo $(OUT)

clean: ## remove everything that was made
	rm -rf build hpbench
help: ## this list
	sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 20
