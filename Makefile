# Tarn. `make` builds all programs into build/bin/; `make help` lists the targets.
#
# Rooms are folders of server/: their .c files are found by wildcard. Variants (asan, cover, …) build
# into build/<variant>/ with the same rules.

VARIANT ?= release
ifeq ($(VARIANT),release)
B := build
else
B := build/$(VARIANT)
endif

CC       := gcc
CXX      := g++
# ccache speeds up rebuilds where it is installed.
CCACHE   := $(shell command -v ccache 2>/dev/null)

TARN_CACHE ?= $(HOME)/.cache/tarn
ARROW      := $(TARN_CACHE)/arrow-26.0.1/pyarrow

OPT      := -O2 -g
HARDEN   := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fstack-clash-protection -fcf-protection
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
            -Wno-unused-parameter -Werror
CPPFLAGS := -D_GNU_SOURCE -Iserver -Iclient -Iclient/c -I$(B)/gen -MMD -MP
CFLAGS    = -std=gnu11 -fPIE -pthread $(OPT) $(HARDEN) $(WARN) $(SANITIZE)
CXXFLAGS  = -std=c++20 -fPIC -pthread $(OPT) $(HARDEN) -Wall -Wextra -Wno-unused-parameter -Werror $(SANITIZE)
LDFLAGS   = -pthread -pie -Wl,-z,relro,-z,now $(SANITIZE)

ifeq ($(VARIANT),asan)
SANITIZE := -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
OPT      := -O1 -g
HARDEN   :=
endif
ifeq ($(VARIANT),cover)
SANITIZE := --coverage
OPT      := -O0 -g
HARDEN   :=
endif

# The order matters: OpenSSL before anything that might bring its own (docs/dependencies.md).
BASE_LIBS := -Wl,--no-as-needed -lssl -lcrypto -Wl,--as-needed -lzstd -lz -lsnappy -ljansson -linih -lxxhash
EXEC_LIBS := -levent_core -levent_pthreads
WIRE_LIBS := -lgrpc -lgpr -lprotobuf-c
STATE_LIBS := -lrocksdb

objects = $(patsubst %.c,$(B)/obj/%.o,$(wildcard $(addsuffix /*.c,$(1))))

CORE_ROOMS   := server/base server/exec
DAEMON_ROOMS := $(CORE_ROOMS) server/format server/store server/state server/wire server/table server/access \
                server/catalog server/maintain server/service server/rpc server/http
WORKER_ROOMS := $(CORE_ROOMS) server/format server/store server/columnar server/merge server/wire server/flight server/work
CLIENT_ROOMS := $(CORE_ROOMS) server/wire client/c

PROTOS  := $(wildcard proto/tarn/v1/*.proto) $(wildcard proto/google/rpc/*.proto)
GEN_C   := $(patsubst proto/%.proto,$(B)/gen/%.pb-c.c,$(PROTOS))
GEN_O   := $(patsubst $(B)/gen/%.c,$(B)/obj/gen/%.o,$(GEN_C))
DESCRIPTORS_O := $(B)/obj/gen/descriptors.o

.PHONY: all
all: $(B)/bin/tarnd $(B)/bin/tarn-worker $(B)/bin/tarn

$(B)/bin/tarnd: $(B)/obj/server/tarnd.o $(call objects,$(DAEMON_ROOMS)) $(GEN_O) $(DESCRIPTORS_O)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(BASE_LIBS) $(EXEC_LIBS) -levent_extra $(WIRE_LIBS) $(STATE_LIBS)

$(B)/bin/tarn-worker: $(B)/obj/server/worker.o $(call objects,$(WORKER_ROOMS)) $(GEN_O) $(DESCRIPTORS_O) $(B)/lib/libcolumnar.so
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/../lib' -Wl,-rpath,'$$ORIGIN/../lib/tarn' -o $@ $(filter %.o,$^) $(BASE_LIBS) $(EXEC_LIBS) $(WIRE_LIBS) \
		-L$(B)/lib -lcolumnar -Wl,-rpath-link,$(B)/lib

$(B)/bin/tarn: $(call objects,client/cli $(CLIENT_ROOMS)) $(GEN_O)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(BASE_LIBS) $(EXEC_LIBS) $(WIRE_LIBS)

# ---- columnar: the one C++ room, a shared library of its own that hides Arrow behind C
COLUMNAR_CC := $(wildcard server/columnar/*.cc)
$(B)/lib/libcolumnar.so: $(patsubst %.cc,$(B)/obj/%.o,$(COLUMNAR_CC)) $(B)/lib/libarrow.so.2600 $(B)/lib/libparquet.so.2600
	$(CXX) -shared $(SANITIZE) -o $@ $(filter %.o,$^) -L$(B)/lib -l:libparquet.so.2600 -l:libarrow.so.2600 \
		-Wl,-rpath,'$$ORIGIN' -Wl,--no-undefined -Wl,--exclude-libs,ALL
$(B)/lib/lib%.so.2600: $(ARROW)/lib%.so.2600
	@mkdir -p $(@D)
	ln -sf $< $@

# ---- rules
$(B)/obj/%.o: %.c | proto
	@mkdir -p $(@D)
	$(CCACHE) $(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
$(B)/obj/%.o: %.cc
	@mkdir -p $(@D)
	$(CCACHE) $(CXX) $(CPPFLAGS) $(CXXFLAGS) -isystem $(ARROW)/include -isystem $(ARROW)/../rapidjson -c -o $@ $<
$(B)/obj/gen/%.o: $(B)/gen/%.c
	@mkdir -p $(@D)
	$(CCACHE) $(CC) $(CPPFLAGS) -std=gnu11 -fPIE $(OPT) $(SANITIZE) -c -o $@ $<

.PHONY: proto
proto: $(GEN_C)
$(B)/gen/%.pb-c.c: proto/%.proto
	@mkdir -p $(B)/gen
	protoc-c -I proto -I /usr/include --c_out=$(B)/gen $<
# The descriptor sets that reflection serves, embedded as bytes.
$(B)/gen/descriptors.c: $(PROTOS) scripts/embed-descriptors
	@mkdir -p $(@D)
	scripts/embed-descriptors $@ $(PROTOS)

.PHONY: clean help
clean: ## remove everything that was built
	rm -rf build
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ -/' | sort

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
