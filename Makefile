# Everything a developer runs. A fresh machine needs Python >= 3.11, git and make; the rest lands in .venv.

PYTHON ?= python3
EXAMPLES ?= 20000
SUITES ?= /var/tmp/ganger-suites
UPGRADE ?=

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq install --no-deps
COMPILE := pip compile --no-config --system-certs --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q $(UPGRADE)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test test-rest test-all test-busy harmless check bench suites fuzz picture generate lock format clean crash kills sweeps workers powercut faults planted sim evening forge-page agents

# An environment that was moved, or whose interpreter is gone, is set up again.
ifneq ($(wildcard .venv/.runtime .venv/.dev),)
ifneq ($(shell $(BIN)/python -c "" 2>/dev/null && cat .venv/.place 2>/dev/null),$(CURDIR))
$(shell rm -f .venv/.runtime .venv/.dev .venv/.made)
endif
endif

help: ## show these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: .venv/.runtime ## the whole system in about fifteen seconds; no key, no network once set up
	@$(BIN)/ganger demo

test: .venv/.dev ## the quick tests: a few minutes, at most 300 CPU seconds, a proof of every row
	@$(BIN)/python -m pytest --slice quick $(ARGS)

test-rest: .venv/.dev
	@$(BIN)/python tests/agents/installed.py cheap || true
	@$(BIN)/python -m pytest --slice rest $(ARGS)

test-all: test test-rest ## the quick tests, then the others (not slow, not agents_full); real agent programs are installed into .agents where there is npm

test-busy: .venv/.dev ## the quick tests beside LOOPS=4 busy loops: no test fails because the machine is busy
	@$(BIN)/python scripts/busy.py $(or $(LOOPS),4) $(BIN)/python -m pytest --slice quick $(ARGS)

harmless: .venv/.dev ## every test, and whether anything outside this clone is as it was (root: in namespaces of its own)
	@$(BIN)/python scripts/harmless.py $(if $(filter 0,$(shell id -u)),--apart --temporary "$(CURDIR)/..") -- $(BIN)/python -m pytest $(ARGS)

check: .venv/.dev ## format, lint, types, layers, public names, generated files
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m mypy
	@$(BIN)/python -m pytest -n 0 tests/test_layers.py tests/test_public_names.py
	@$(BIN)/python scripts/generate.py --check

bench: .venv/.dev ## speed and memory, as ratios against baselines of the same run
	@$(BIN)/python -m bench

suites: .venv/.dev ## unchanged suites of known packages in each sandbox, kept in SUITES=/var/tmp/ganger-suites
	@$(BIN)/python scripts/suites.py $(SUITES)

fuzz: .venv/.dev ## the contract properties with EXAMPLES=20000 examples each
	@GANGER_FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest --timeout 0 tests/contracts

crash: .venv/.dev ## kill the lead at POINTS=2000 points (a quarter in local-git mode), in 500 recoveries and at every step of deliveries; each run must continue unharmed
	@$(BIN)/python -m faults crash --points $(or $(POINTS),2000) --double $(or $(DOUBLE),500) $(ARGS)
	@$(BIN)/python -m faults crash --keeper --points $(or $(KEEPER),300) $(ARGS)
	@$(BIN)/python -m faults delivery --points $(or $(STEPS),0) --double $(or $(STEPS),40)
	@$(BIN)/python -m faults delivery --keeper --points $(or $(STEPS),60)

kills: .venv/.dev ## kill lead, keeper and both at KILLS=300 random moments each of fleets of 40, a quarter in local-git mode
	@$(BIN)/python -m faults kills --total $(or $(KILLS),300) $(ARGS)

workers: .venv/.dev ## WORKERS=100 sessions of every kind take TASKS=1000 tasks while leads are killed; then 20 that report all the time
	@$(BIN)/python -m faults workers --workers $(or $(WORKERS),100) --tasks $(or $(TASKS),1000) $(ARGS)
	@$(BIN)/python -m faults workers --mode direct --workers 20 --tasks 40 --reports 60 --restarts 15 $(ARGS)

powercut: .venv/.dev ## cut the power at POINTS=500 points, a quarter in local-git mode (root: mounts a small disk of its own)
	@$(BIN)/python -m faults powercut --points $(or $(POINTS),500) $(ARGS) || [ $$? = 77 ]

faults: .venv/.dev ## let POINTS=1200 system calls fail, a quarter in local-git mode: I/O errors, full disks, short writes, dead git
	@$(BIN)/python -m faults errors --points $(or $(POINTS),1200) $(ARGS)

sim: .venv/.dev ## play SEEDS=2000 simulated worlds full of faults; SEED=n repeats one
	@$(BIN)/python -m sim $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),2000)) $(ARGS)

evening: .venv/.dev ## play a maintainer's evening at a loopback forge and print what every screen says; ARGS=--real takes as long as a real one
	@$(BIN)/python -m tests.forges.evening $(ARGS)

forge-page: .venv/.dev ## play two runs at a loopback forge and write what a maintainer sees into docs/guide/what-the-forge-shows.md
	@$(BIN)/python -m tests.forges.shown

agents: .venv/.dev ## run every real agent program through every test and write docs/agents.md; AGENTS="claude codex" for some
	@$(BIN)/python scripts/agents.py $(AGENTS)

sweeps: .venv/.dev ## the slow tests, which make test-all leaves out
	@$(BIN)/python -m pytest -m slow $(ARGS)

planted: .venv/.dev ## plant every known bug; the harness named for it must catch it
	@$(BIN)/python -m faults planted $(ARGS)

picture: .venv/.dev ## record the demo for the README
	@$(BIN)/python scripts/picture.py

generate: .venv/.dev ## rewrite the generated files
	@$(BIN)/python scripts/generate.py

format: .venv/.dev ## format the code and fix what the linter can
	@$(BIN)/python -m ruff format .
	@$(BIN)/python -m ruff check --fix .

lock: .venv/.made ## write both lock files again (UPGRADE=--upgrade takes newer versions)
	@tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && \
	$(BIN)/python -m venv "$$tools" && "$$tools/bin/python" -m pip --disable-pip-version-check -qq install uv==0.13.7 && \
	"$$tools/bin/uv" $(COMPILE) pyproject.toml --group build -o requirements.lock && \
	"$$tools/bin/uv" $(COMPILE) pyproject.toml --group build --extra dev -c requirements.lock -o requirements-dev.lock

clean: ## remove .venv, caches and build output; the agent programs in .agents stay
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
	@find src checker tests scripts bench faults sim -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

.venv/.made:
	@$(find_python); \
	$(BIN)/python -c "" 2>/dev/null || "$$found" -m venv --clear .venv
	@touch $@

.venv/.runtime: requirements.lock pyproject.toml | .venv/.made
	$(call install,requirements.lock,what the program needs)

.venv/.dev: requirements-dev.lock pyproject.toml | .venv/.made
	$(call install,requirements-dev.lock,what the program and its tests need)
	@touch .venv/.runtime

# Leaves the first usable interpreter in $$found, or says what to do.
define find_python
found=; bare=; \
for name in $(PYTHON) python3.14 python3.13 python3.12 python3.11; do \
  "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
  if "$$name" -c 'import venv, ensurepip' 2>/dev/null; then found=$$name; break; fi; \
  bare=$${bare:-$$name}; \
done; \
if [ -z "$$found" ] && [ -n "$$bare" ]; then \
  echo "set-up: $$bare has no venv module. Install it (Debian, Ubuntu: apt-get install python3-venv), then run make again." >&2; exit 1; \
elif [ -z "$$found" ]; then \
  echo "set-up: Ganger needs Python 3.11 or newer; '$(PYTHON)' is older or missing." >&2; \
  echo "set-up: install one, or name it: make PYTHON=/path/to/python3.12 ..." >&2; exit 1; \
fi
endef

define install
@echo "set-up: installing $(2) into .venv (once)"
@$(PIP) --no-compile --require-hashes -r $(1)
@$(PIP) --no-build-isolation -e .
@echo "$(CURDIR)" > .venv/.place
@touch $@
endef
