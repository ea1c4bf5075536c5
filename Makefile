# Tarn. `make` builds all programs into build/bin/; `make help` lists the targets.
#
# Rooms are folders of server/: their .c files are found by wildcard. Variants (asan, tsan, cover,
# fuzz) build into build/<variant>/ with the same rules: `make VARIANT=asan`.

VERSION := 0.1.0
VARIANT ?= release
ifeq ($(VARIANT),release)
B := build
else
B := build/$(VARIANT)
endif

CC       := gcc
CXX      := g++
PYTHON   ?= python3
# ccache speeds up rebuilds where it is installed; another checkout's objects serve as well.
CCACHE   := $(shell command -v ccache 2>/dev/null)
export CCACHE_NOHASHDIR := 1

TARN_CACHE ?= $(HOME)/.cache/tarn
export TARN_CACHE
ARROW      := $(TARN_CACHE)/arrow-26.0.1/pyarrow

OPT      := -O2 -g
HARDEN   := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fstack-clash-protection
ifeq ($(shell uname -m),x86_64)
HARDEN   += -fcf-protection
endif
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
            -Wno-unused-parameter -Werror
CXXWARN  := -Wall -Wextra -Wno-unused-parameter -Werror
CPPFLAGS := -D_GNU_SOURCE -DTARN_VERSION='"$(VERSION)"' -Iserver -Iclient -Iclient/c -I$(B)/gen -MMD -MP
CFLAGS    = -std=gnu11 -fPIE -pthread $(OPT) $(HARDEN) $(WARN) $(SANITIZE)
CXXFLAGS  = -std=c++20 -fPIC -pthread $(OPT) $(HARDEN) $(CXXWARN) $(SANITIZE)
LDFLAGS   = -pthread -pie -Wl,-z,relro,-z,now,-z,noexecstack $(SANITIZE)
LD        = $(CC)
# V=1 shows whole commands.
ifeq ($(V),)
Q   := @
say  = @echo '  $(1) $(patsubst $(B)/%,%,$@)'
endif

ifeq ($(VARIANT),asan)
SANITIZE := -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
OPT      := -O1 -g
HARDEN   :=
endif
ifeq ($(VARIANT),tsan)
SANITIZE := -fsanitize=thread -fno-omit-frame-pointer
OPT      := -O1 -g
HARDEN   :=
endif
ifeq ($(VARIANT),cover)
SANITIZE := --coverage
OPT      := -O0 -g
HARDEN   :=
endif
ifeq ($(VARIANT),fuzz)
CC       := clang-16
CXX      := clang++-16
LD        = $(CXX)
# pointer-overflow: RapidJSON's stack counts from a null pointer; what is really out of bounds, address finds.
SANITIZE := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=vptr,function,pointer-overflow \
            -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPT      := -O1 -g
HARDEN   :=
WARN     := -w
CXXWARN  := -w -std=c++2b # clang finds C++'s own stdatomic.h from there on
endif

# The order matters: OpenSSL before anything that might bring its own (docs/dependencies.md).
BASE_LIBS  := -Wl,--no-as-needed -lssl -lcrypto -Wl,--as-needed -lzstd -lz -lsnappy -ljansson -linih -lxxhash
EXEC_LIBS  := -levent_core -levent_pthreads $(if $(wildcard server/exec/fetch.c),-lcurl)
WIRE_LIBS  := -lgrpc -lgpr -lprotobuf-c
STATE_LIBS := -lrocksdb
ALL_LIBS    = $(BASE_LIBS) $(EXEC_LIBS) -levent_openssl $(WIRE_LIBS) $(STATE_LIBS) -lm

room_name = $(subst /,_,$(patsubst server/%,%,$(1)))
# The lists change when a file comes or goes; scripts/test-rules writes them.
lists     = $(foreach room,$(1),$(B)/rooms/$(call room_name,$(room)).list)
objects   = $(patsubst %.c,$(B)/obj/%.o,$(wildcard $(addsuffix /*.c,$(1))))

CORE_ROOMS   := server/base server/exec
DAEMON_ROOMS := $(CORE_ROOMS) server/format server/store server/state server/wire server/table server/access \
                server/catalog server/maintain server/hms server/service server/rpc server/http server/rest
WORKER_ROOMS := $(CORE_ROOMS) server/format server/store server/columnar server/merge server/wire server/flight server/work
CLIENT_ROOMS := $(CORE_ROOMS) server/wire client/c
ALL_ROOMS    := $(sort $(DAEMON_ROOMS) $(WORKER_ROOMS) $(CLIENT_ROOMS) client/cli)

# The well-known types that our protos import are generated too; the package brings only their text.
PROTOS  := $(shell find proto -name '*.proto' 2>/dev/null | sort)
KNOWN   := $(sort $(shell cat /dev/null $(PROTOS) | grep -oE '^import "google/protobuf/[a-z_]+' | cut -d'"' -f2))
GEN_C   := $(patsubst proto/%.proto,$(B)/gen/%.pb-c.c,$(PROTOS)) $(KNOWN:%=$(B)/gen/%.pb-c.c)
GEN_O   := $(patsubst $(B)/gen/%.c,$(B)/obj/gen/%.o,$(GEN_C))
DESCRIPTORS_O := $(B)/obj/gen/descriptors.o

PROGRAMS := $(B)/bin/tarnd $(B)/bin/tarn-worker $(B)/bin/tarn

.PHONY: all
all: $(PROGRAMS) $(addprefix $(B)/lib/,libarrow.so.2600 libparquet.so.2600) ## build all programs into build/bin/ (the default)

$(B)/bin/tarnd: $(B)/obj/server/tarnd.o $(call objects,$(DAEMON_ROOMS)) $(GEN_O) $(DESCRIPTORS_O) $(call lists,$(DAEMON_ROOMS))
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(LD) $(LDFLAGS) -o $@ $(filter %.o,$^) $(ALL_LIBS)

$(B)/bin/tarn-worker: $(B)/obj/server/worker.o $(call objects,$(WORKER_ROOMS)) $(GEN_O) $(DESCRIPTORS_O) $(B)/lib/libcolumnar.so $(call lists,$(WORKER_ROOMS))
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(LD) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/../lib' -Wl,-rpath,'$$ORIGIN/../lib/tarn' -o $@ $(filter %.o,$^) $(BASE_LIBS) $(EXEC_LIBS) $(WIRE_LIBS) -lm \
		-L$(B)/lib -lcolumnar -Wl,-rpath-link,$(B)/lib

$(B)/bin/tarn: $(call objects,client/cli $(CLIENT_ROOMS)) $(GEN_O) $(call lists,client/cli $(CLIENT_ROOMS))
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(LD) $(LDFLAGS) -o $@ $(filter %.o,$^) $(BASE_LIBS) $(EXEC_LIBS) $(WIRE_LIBS) -lm

# ---- columnar: the one C++ room, a shared library of its own that hides Arrow behind C. What it uses of
# base, format and store it finds in the program, so that there is one copy of each; the program's
# link fails where it doesn't.
COLUMNAR_CC := $(wildcard server/columnar/*.cc)
$(B)/lib/libcolumnar.so: $(patsubst %.cc,$(B)/obj/%.o,$(COLUMNAR_CC)) $(addprefix $(B)/lib/,libarrow.so.2600 libparquet.so.2600)
	$(call say,LINK)
	$(Q)$(CXX) -shared -pthread -Wl,-z,relro,-z,now,-z,noexecstack $(SANITIZE) -o $@ $(filter %.o,$^) \
		-L$(B)/lib -l:libparquet.so.2600 -l:libarrow.so.2600 \
		-Wl,-rpath,'$$ORIGIN' -Wl,--exclude-libs,ALL
# A hard link or copy, no symbolic link: the daemon may run as a user who can't enter the home where the cache is.
ARROW_LIBS := $(addprefix $(B)/lib/,libarrow.so.2600 libparquet.so.2600)
$(ARROW_LIBS): $(B)/lib/%: $(ARROW)/%
	@mkdir -p $(@D)
	$(Q)ln -f $< $@ 2>/dev/null || cp -f $< $@
$(ARROW)/lib%.so.2600:
	@echo "Arrow's libraries are not in $(ARROW): run scripts/setup" >&2; exit 1

# ---- rules
.SECONDARY:
.DELETE_ON_ERROR:
$(B)/obj/%.o: %.c | proto
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CCACHE) $(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
$(B)/obj/%.o: %.cc
	@mkdir -p $(@D)
	$(call say,CXX )
	$(Q)$(CCACHE) $(CXX) $(CPPFLAGS) $(CXXFLAGS) -isystem $(ARROW)/include -c -o $@ $<
$(B)/obj/gen/%.o: $(B)/gen/%.c | proto
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CCACHE) $(CC) $(CPPFLAGS) -std=gnu11 -fPIE $(OPT) $(SANITIZE) -c -o $@ $<
$(B)/obj/test/%.o: test/%.c | proto
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CCACHE) $(CC) $(CPPFLAGS) -I. -Itest -Itest/lib -I$(<D) -DTARN_TEST_ROOT='"$(CURDIR)"' $(CFLAGS) \
		-Wno-missing-prototypes -c -o $@ $<

.PHONY: proto
proto: $(GEN_C) ## generate the C of proto/
$(B)/gen/%.pb-c.c: proto/%.proto
	@mkdir -p $(B)/gen
	$(call say,GEN )
	$(Q)protoc-c -I proto -I /usr/include --c_out=$(B)/gen $<
	$(Q)sed -i 's/(\*register)/(*register_)/' $(B)/gen/$*.pb-c.h # a method's name, and a word of C
$(B)/gen/google/protobuf/%.pb-c.c: /usr/include/google/protobuf/%.proto
	@mkdir -p $(B)/gen
	$(call say,GEN )
	$(Q)protoc-c -I /usr/include --c_out=$(B)/gen $<
# The descriptor sets that reflection serves, embedded as bytes.
$(B)/gen/descriptors.c: $(PROTOS) scripts/embed-descriptors
	@mkdir -p $(@D)
	$(call say,GEN )
	$(Q)scripts/embed-descriptors $@ $(PROTOS)

# ---- tests: one program a file; scripts/test-rules says which rooms each one links
define room_archive
$$(B)/rooms/$(call room_name,$(1)).a: $$(call objects,$(1)) $$(B)/rooms/$(call room_name,$(1)).list
endef
$(foreach room,$(ALL_ROOMS),$(eval $(call room_archive,$(room))))
$(B)/rooms/gen.a: $(GEN_O) $(DESCRIPTORS_O)
$(B)/rooms/testlib.a: $(filter-out %/test.o %/fuzz_main.o,$(call objects,test/lib))
$(B)/rooms/%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)

COLUMNAR_LINK := -L$(B)/lib -lcolumnar -Wl,-rpath,$(CURDIR)/$(B)/lib -Wl,-rpath-link,$(B)/lib
COMMA := ,
ifeq ($(VARIANT),fuzz)
FUZZ_LINK := -fsanitize=fuzzer
else
FUZZ_MAIN := $(B)/obj/test/lib/fuzz_main.o
endif
ifeq ($(filter clean help format conf,$(MAKECMDGOALS)),)
$(shell scripts/test-rules $(B))
include $(B)/tests.mk
endif
$(B)/test/%:
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(LD) $(LDFLAGS) $(if $(findstring _fuzz,$@),$(FUZZ_LINK)) -o $@ $(filter %.o,$^) \
		-Wl,--as-needed -Wl,--start-group $(if $(filter %.so,$^),$(COLUMNAR_LINK)) $(filter %.a,$^) -Wl,--end-group \
		$(ALL_LIBS) -lcmocka

# The history checker schedules threads and time itself: calls of these go to test/history/.
HISTORY_WRAPS := pthread_create pthread_join pthread_mutex_lock pthread_mutex_unlock pthread_cond_wait \
	pthread_cond_timedwait pthread_cond_signal pthread_cond_broadcast pthread_rwlock_rdlock pthread_rwlock_wrlock \
	pthread_rwlock_unlock nanosleep clock_gettime getrandom tarn_exec__loop_start tarn_exec__loop_stop \
	tarn_exec__loop_free tarn_timer_new tarn_timer_cancel \
	$(shell grep -owE 'tarn_state_[a-z_]+' server/state/state.h | sort -u)
$(B)/test/history/%: LDFLAGS += $(addprefix -Wl$(COMMA)--wrap=,$(HISTORY_WRAPS))

# ROOM=table: only that room's; T=name: only the program of that name
ROOM ?= *
T    ?= *
some = $(sort $(foreach p,$(1),$(if $(shell case '$(p)' in ($(B)/test/*/$(ROOM)/$(T)_test|$(B)/test/*/$(ROOM)/$(T)|$(B)/test/fuzz/$(T)_fuzz) echo y;; esac),$(p))))
ifneq ($(ROOM)$(T),**)
CHOSEN := $(call some,$(UNIT_TESTS) $(PROPERTY_TESTS) $(if $(filter *,$(ROOM)),$(FUZZ_TESTS)))
else
CHOSEN := $(UNIT_TESTS) $(PROPERTY_TESTS) $(FUZZ_TESTS)
endif

export ASAN_OPTIONS  ?= detect_leaks=1:allow_user_segv_handler=0:detect_stack_use_after_return=1
export UBSAN_OPTIONS ?= print_stacktrace=1
export TSAN_OPTIONS  ?= ignore_noninstrumented_modules=1:suppressions=$(CURDIR)/test/lib/tsan.supp
export TARN_BIN      := $(CURDIR)/$(B)/bin
export LAB           ?= $(TARN_CACHE)/lab
RUN_TESTS = $(PYTHON) scripts/run-tests -l $(B)/test-logs
SUBMAKE   = +$(MAKE) --no-print-directory

.PHONY: check check-asan check-tsan check-crash check-torture check-history check-interop check-long
check: $(CHOSEN) ## unit, property and golden tests; ROOM=table, T=name choose some
	@$(RUN_TESTS) $(CHOSEN)
check-asan: ## the same under AddressSanitizer and UndefinedBehaviorSanitizer
	$(SUBMAKE) VARIANT=asan check
check-tsan: ## the same under ThreadSanitizer
	$(SUBMAKE) VARIANT=tsan check
check-crash: all $(CRASH_TESTS) ## kill, restart, check the invariants: test/crash/
	@$(RUN_TESTS) -j 1 -t 1800 $(CRASH_TESTS) $(sort $(wildcard test/crash/*.sh test/crash/*.py))
check-torture: $(TORTURE_TESTS) ## each allocation and store call fails once, in turn
	@$(RUN_TESTS) -t 1800 $(TORTURE_TESTS)
SEEDS ?= 40
FIRST ?= 1
check-history: all $(HISTORY_TESTS) ## SEEDS=n FIRST=seed: simulated histories of one table, held against a model: test/history/
	@mkdir -p $(B)/history
	@TARN_SEEDS=$(SEEDS) TARN_FIRST=$(FIRST) TARN_HISTORY_LOGS=$(CURDIR)/$(B)/history $(RUN_TESTS) -j 1 -t 14400 $(HISTORY_TESTS) \
		$(sort $(wildcard test/history/*.py))
check-interop: all ## real engines read what we wrote, and we theirs: test/interop/
	@$(RUN_TESTS) -j 1 -t 3600 $(sort $(wildcard test/interop/*.sh test/interop/*.py))
check-long: ## all that is slow, an hour of it: scripts/check long
	@scripts/check long

# ---- fuzzing: clang's libFuzzer, seeded from the golden files and the target's own corpus
S ?= 60
.PHONY: fuzz fuzz-short fuzz-run
fuzz: ## fuzz one decoder: T=name S=seconds
	$(SUBMAKE) VARIANT=fuzz T='$(T)' S=$(S) fuzz-run
fuzz-short: ## fuzz each decoder for a few seconds
	$(SUBMAKE) VARIANT=fuzz S=$(if $(filter command\ line environment,$(origin S)),$(S),4) fuzz-run
ifeq ($(VARIANT),fuzz)
fuzz-run: $(filter %_fuzz,$(call some,$(FUZZ_TESTS)))
	@$(PYTHON) scripts/run-fuzz $(S) $^
endif

# ---- the house
LINT_HEADERS = $(shell find server client -name '*.h' 2>/dev/null)
SOURCES      = $(shell find server client test/lib test/unit test/property test/fuzz test/crash test/torture test/history test/bench \
                 \( -name '*.c' -o -name '*.h' -o -name '*.cc' \) 2>/dev/null)
CLANG_FORMAT ?= clang-format-16
.PHONY: lint format format-check analyze cover bench demo docs conf
lint: proto ## layers, banned calls, headers that compile alone, the sample configuration, symbols
	@CPPFLAGS="$(filter-out -MMD -MP,$(subst '",\",$(subst "',\",$(CPPFLAGS))))" ARROW=$(ARROW) $(PYTHON) scripts/lint $(B)
format: ## rewrite the layout of every source file
	$(CLANG_FORMAT) -i $(SOURCES)
format-check: ## name the files that `make format` would change
	@scripts/format-check $(CLANG_FORMAT) $(SOURCES)
analyze: proto ## print what clang's static analyser thinks of the rooms; each finding is a place to look
	@for f in $(wildcard $(addsuffix /*.c,$(ALL_ROOMS))); do \
		clang-16 --analyze --analyzer-output text $(filter-out -MMD -MP,$(CPPFLAGS)) -std=gnu11 $$f; done
conf: ## write conf/tarnd.conf from server/base/keys.def
	@mkdir -p conf
	scripts/make-conf server/base/keys.def > conf/tarnd.conf.new && mv conf/tarnd.conf.new conf/tarnd.conf
docs: ## write the references that are made from .def tables (docs/reference/)
	scripts/make-reference docs/reference
cover: ## line coverage of the unit and property tests
	@find build/cover -name '*.gcda' -delete 2>/dev/null || true
	$(SUBMAKE) VARIANT=cover check
	@scripts/cover build/cover
bench: all $(BENCH) ## measure against the kept numbers and the peers: test/bench/run
	@test -x test/bench/run || { echo "test/bench/run is not there" >&2; exit 1; }
	test/bench/run
demo: all ## a daemon, a table, a commit, a read: the first minute
	scripts/demo

# ---- install
PREFIX     ?= /usr/local
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
UNITDIR    ?= $(PREFIX)/lib/systemd/system
.PHONY: install
install: all ## install into $(DESTDIR)$(PREFIX)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/tarn $(DESTDIR)$(PREFIX)/share/doc/tarn \
		$(DESTDIR)$(SYSCONFDIR)/tarn $(DESTDIR)$(UNITDIR)
	install -m 755 $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin/
	install -m 644 $(addprefix $(B)/lib/,libcolumnar.so libarrow.so.2600 libparquet.so.2600) $(DESTDIR)$(PREFIX)/lib/tarn/
	cp -R LICENSE CHANGELOG.md $(wildcard README.md) docs/. $(DESTDIR)$(PREFIX)/share/doc/tarn/
	test -e $(DESTDIR)$(SYSCONFDIR)/tarn/tarnd.conf || install -m 644 conf/tarnd.conf $(DESTDIR)$(SYSCONFDIR)/tarn/tarnd.conf
	sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' conf/tarnd.service > $(DESTDIR)$(UNITDIR)/tarnd.service

.PHONY: clean help
clean: ## remove everything that was built
	rm -rf build
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1|/' | sort | awk -F'|' '{printf "  %-14s %s\n", $$1, $$2}'

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
