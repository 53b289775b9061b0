# The front door: `make`, `make demo`, `make check`. Each target fetches what it lacks (scripts/bootstrap), then calls CMake.
#   SAN=address,undefined    build with sanitizers, in a build directory of its own
#   PREFIX=... DESTDIR=...   where `make install` puts things, and `make uninstall` finds them
#   FUZZ_SECONDS=60          how long `make fuzz` runs each reader and all strategies, and `make fuzz-threads` the latter
MAKEFLAGS += --no-print-directory
SAN ?=
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
comma := ,
BUILD ?= build/$(if $(SAN),$(subst $(comma),-,$(SAN)),plain)
# Recursive on purpose: looked up after bootstrap had its chance to install it.
CMAKE = $(shell cmake --version >/dev/null 2>&1 && echo cmake || echo .venv/bin/cmake)
PYTHON = $(CURDIR)/.venv/bin/python
# The solver behind checkmate: yours, or the one in .venv. Recursive for the same reason.
HIGHS = $(or $(REMAT_HIGHS),$(shell ls $(CURDIR)/.venv/lib/python3*/site-packages/highsbox/highs_dist/lib/libhighs.so 2>/dev/null | head -1))
configure = $(CMAKE) -S . -B $(BUILD) -DREMAT_SANITIZE=$(SAN) -DREMAT_WERROR=$(if $(filter true,$(CI)),ON,OFF)

.PHONY: all demo check check-web check-tools check-torch-versions bench bench-mincut bench-torch reproduce reproduce-long python-library build-tests fuzz fuzz-threads install uninstall format layers clean have-build have-check have-fuzz have-web
all: have-build
	@$(configure) >/dev/null
	@$(CMAKE) --build $(BUILD) -j $(JOBS)

demo: all .venv/solver
	@REMAT_HIGHS="$(HIGHS)" scripts/demo $(BUILD)/remat

# Nice to have: without it the demo says so and goes on.
.venv/solver: tests/requirements.txt
	@[ -x .venv/bin/python ] || python3 -m venv .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check "$$(grep ^highsbox tests/requirements.txt)" && touch $@ || true

check: build-tests
	@CTEST_OUTPUT_ON_FAILURE=1 CTEST_PARALLEL_LEVEL=$(JOBS) $(CMAKE) --build $(BUILD) --target test

# Pages of `remat report` in a real browser: about 200 MB to fetch, so not a part of `make check`. REMAT_BROWSER: another Chromium than the system's.
check-web: all .venv-web/ready
	@REMAT=$(abspath $(BUILD)/remat) PYTHONDONTWRITEBYTECODE=1 .venv-web/bin/python -m pytest -q -rs -p no:cacheprovider web/tests

.venv-web/ready: web/tests/requirements.txt | have-web
	python3 -m venv .venv-web
	.venv-web/bin/python -m pip install --quiet --disable-pip-version-check -r web/tests/requirements.txt
	@touch $@

bench: build-tests
	@bench/run $(BUILD)

# torch's own flow problems against networkx; its Python packages go to a place of their own.
bench-mincut: build-tests build/bench-venv/ready
	@build/bench-venv/bin/python bench/mincut_torch.py $(BUILD)/remat build/mincut-networks bench/results/mincut-torch.md
	@cat bench/results/mincut-torch.md

# The numbers of docs/papers.md: examples of the papers and what takes minutes. It prints; bench/results is not touched.
reproduce: all
	$(BUILD)/remat plan chain:toy --budget 9000 --strategy rotor --slots 0
	$(BUILD)/remat compare chain:figure4 --budget 15 --strategy rotor,rotor-float --slots 0
	@for example in f f1 f2 gelu; do $(BUILD)/remat compare zoo:$$example --saved; done
	$(BUILD)/remat fuse zoo:fig4
	bench/mincut-graphs $(BUILD)/remat
	bench/strategies $(BUILD)/remat 50% periodic,chen-sqrt,chen-greedy,ap-sqrt,ap-greedy,lin-sqrt,lin-greedy,revolve,rotor,rotor-float
	@for budget in 90% 80% 70% 60% 50%; do $(BUILD)/remat plan tests/data/graphs/resnet18.json.gz --budget $$budget --strategy exact \
	    --cost-model node --dce --fold-identity --no-alias; done

# Hours on one core. bench/checkmate needs HiGHS: `make demo` fetches it. bench-mincut writes bench/results/mincut-torch.md.
reproduce-long: all bench-mincut
	bench/auto $(BUILD)/remat 1 5
	bench/exact $(BUILD)/remat 6
	bench/fastsa $(BUILD)/remat 3 5
	bench/maxbatch $(BUILD)/remat
	bench/chain-strategies $(BUILD)/remat
	REMAT_HIGHS="$(HIGHS)" bench/checkmate $(BUILD)/remat 300

# libremat next to the Python package, with a C compiler alone: for a machine without CMake. zlib is linked in if libz.a is there.
python-library:
	cc -std=c11 -O3 -D_POSIX_C_SOURCE=200809L -DREMAT_EXPERIMENTAL -ffp-contract=off -fPIC -shared -pthread -Iinclude -Isrc -Wl,--version-script=cmake/remat.map \
	    $$(find src -name "*.c") $(or $(wildcard /usr/lib/*/libz.a /usr/lib64/libz.a),-lz) -lm -o python/remat/libremat.so

# Exactness of the PyTorch front end: 16 models x 4 budgets, about half an hour.
bench-torch: all build/bench-venv/ready
	@PYTHONPATH=python:bench REMAT_LIBRARY=$(BUILD)/lib/libremat.so build/bench-venv/bin/python bench/torch_exact.py bench/results/torch-exact.md
	@cat bench/results/torch-exact.md

build/bench-venv/ready: bench/requirements.txt
	python3 -m venv build/bench-venv
	build/bench-venv/bin/python -m pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	@touch $@

# Hugging Face's Trainer, accelerate and Lightning. Downloads them and what they need into build/tools-venv: about 100 MB, and torch (200 MB and more, by platform).
check-tools: all
	@echo "check-tools: transformers, accelerate, lightning and torch are fetched into build/tools-venv if they are not there"
	@[ -x build/tools-venv/bin/python ] || python3 -m venv build/tools-venv
	@build/tools-venv/bin/python -m pip install --quiet --disable-pip-version-check -r tests/tools/requirements.txt
	@PYTHONPATH=python REMAT_LIBRARY=$(BUILD)/lib/libremat.so build/tools-venv/bin/python -m pytest -q -p no:cacheprovider tests/tools

# The tests of the PyTorch front end with every version of torch that it is used with (fails where one cannot be had). Downloads each into build/torch-VERSION:
# on Linux, PyPI's builds come with CUDA, 3 GB to download and 5.5 GB on the disk. Ten minutes a version on one core.
TORCH_VERSIONS = 2.11 2.12 2.13 2.14 2.15
check-torch-versions: all
	@missing=""; for version in $(TORCH_VERSIONS); do \
	    echo "check-torch-versions: torch $$version is fetched into build/torch-$$version if it is not there (with CUDA: 3 GB, 5.5 GB on the disk)"; \
	    [ -x build/torch-$$version/bin/python ] || python3 -m venv build/torch-$$version || exit 1; \
	    build/torch-$$version/bin/python -m pip install --quiet --disable-pip-version-check "torch==$$version.*" numpy "$$(grep ^pytest tests/requirements.txt)" \
	        || { missing="$$missing $$version"; continue; }; \
	    PYTHONPATH=python REMAT_LIBRARY=$(BUILD)/lib/libremat.so build/torch-$$version/bin/python -m pytest -q -p no:cacheprovider \
	        tests/python/test_torch*.py tests/python/test_random_models.py tests/python/test_checkpointable.py || exit 1; \
	done; [ -z "$$missing" ] || { echo "check-torch-versions: could not be fetched, so not tried:$$missing (TORCH_VERSIONS=... names others)"; exit 1; }

build-tests: .venv/ready
	@$(configure) -DBUILD_TESTING=ON -DREMAT_PYTHON=$(PYTHON) -DREMAT_HIGHS="$(HIGHS)" >/dev/null
	@$(CMAKE) --build $(BUILD) -j $(JOBS)

fuzz: have-fuzz
	@CC=clang $(CMAKE) -S . -B build/fuzz -DREMAT_FUZZ=ON -DREMAT_SANITIZE=address$(comma)undefined >/dev/null
	@$(CMAKE) --build build/fuzz -j $(JOBS) --target fuzz_input fuzz_plan
	@scripts/fuzz -j $(JOBS) build/fuzz $(FUZZ_SECONDS) graph chain plan networkx dot dimacs spans strategies

# Every strategy with several threads, under the sanitizer of data races, which does not get along with libFuzzer's counters.
fuzz-threads: have-check
	@$(CMAKE) -S . -B build/thread -DBUILD_TESTING=ON -DREMAT_SANITIZE=thread >/dev/null
	@$(CMAKE) --build build/thread -j $(JOBS) --target fuzz_plan_replay
	@TSAN_OPTIONS=halt_on_error=1 build/thread/tests/fuzz_plan_replay tests/fuzz/corpus/strategies $(FUZZ_SECONDS) 1 >build/thread/strategies.log || \
	    { tail -n 1 build/thread/strategies.log; exit 1; }
	@echo "fuzz-threads: $$(tail -n 1 build/thread/strategies.log), no fault found"

install: all
	@DESTDIR=$(DESTDIR) $(CMAKE) --install $(BUILD) --prefix $(abspath $(PREFIX))

uninstall: all
	@DESTDIR=$(DESTDIR) scripts/uninstall $(CMAKE) $(BUILD) $(abspath $(PREFIX))

# One version of clang-format for everybody, from .venv: `make check` fails on a file that this would change.
format: .venv/ready
	@scripts/format

layers:
	@python3 tests/layers.py

clean:
	rm -rf build

# Prerequisites rather than recipe lines: make expands a whole recipe, $(CMAKE) too, before it runs the first line.
have-build have-check have-fuzz have-web:
	@scripts/bootstrap $(@:have-%=%)

# The Python that runs the tests; nothing is fetched again until the list of requirements changes.
.venv/ready: tests/requirements.txt | have-check
	python3 -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt
	@touch $@
