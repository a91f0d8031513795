# Set-up and daily commands of the course; `make` alone lists them. Needs GNU make on Linux x86-64, no root.
# A recipe is one shell script (.ONESHELL) that stops at its first error.
.ONESHELL:
.SHELLFLAGS := -ec
.DEFAULT_GOAL := help
.PHONY: help lab setup horovod jax missing kernel cluster cluster-stop test test-more test-versions \
  notebooks check format student benchmarks gpu-proof gpu-pack site clean

# A home folder that cannot be written, as on some compute nodes: one in the course's folder takes its place.
ifneq ($(shell [ -w "$$HOME" ] && echo yes),yes)
export HOME := $(CURDIR)/.tools/home
$(shell mkdir -p "$(HOME)")
endif

# The environment: one that is active and complete (conda's, a site's), else a folder that the set-up fills.
ACTIVE := $(or $(VIRTUAL_ENV),$(CONDA_PREFIX))
OWN := $(or $(UV_PROJECT_ENVIRONMENT),$(if $(filter 1,$(GPU)),.venv-gpu,.venv))
ifneq ($(ACTIVE),)
LACKS := $(shell [ "$(ACTIVE)" -ef "$(OWN)" ] && echo own || "$(ACTIVE)/bin/python" setup/lacks.py 2>&1)
ifeq ($(LACKS)$(GPU)$(UV_PROJECT_ENVIRONMENT),)
COMPLETE := yes
endif
endif
ENV := $(if $(COMPLETE),$(ACTIVE),$(OWN))
BIN := $(if $(filter /%,$(ENV)),,$(CURDIR)/)$(ENV)/bin
STAMP := $(OWN)/.synced
LOG := build/horovod.log
# JAX=1 adds JAX, for the CPU; where it is installed, every later set-up keeps it.
HAS_JAX := $(wildcard $(OWN)/lib/python*/site-packages/jax/version.py)
UV_MIN := $(shell sed -n 's/^required-version = ">=\([0-9.]*\).*/\1/p' pyproject.toml)

# The environment's programs first; `uv run` takes the environment as it is and never changes or downloads anything.
ACTIVATE := export PATH="$(BIN):$$PATH" UV_NO_SYNC=1

AFFECTED := notebooks 07 and 08 and the Horovod parts of later ones do not run, everything on MirroredStrategy does
COMPILER := install a C++ compiler (Debian, Ubuntu: build-essential; conda: cxx-compiler make), then run `make horovod`
OFFLINE := Failed to (fetch|download|resolve)|error sending request|dns error|network was disabled|timed out

help: ## List the targets
	@{ echo "make TARGET, where TARGET is one of"
	sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r target text; do
	  printf '  %-12s %s\n' "$$target" "$$text"
	done; } || [ "$$?" = 141 ] # `make help | head`: who reads has enough

lab: setup ## Open JupyterLab at the first notebook, after the set-up; options: make lab ARGS="--no-browser --port=8890"
	@$(ACTIVATE)
	export JUPYTER_PREFER_ENV_PATH=1 JUPYTER_CONFIG_PATH="$(CURDIR)/.jupyter$${JUPYTER_CONFIG_PATH:+:$$JUPYTER_CONFIG_PATH}"
	echo "JupyterLab starts; Ctrl-C in this terminal stops it."
	exec jupyter lab --ServerApp.root_dir="$(CURDIR)" $(if $(filter 0,$(shell id -u)),--allow-root) \
	  $(ARGS) $(wildcard notebooks/00_start_here.ipynb)

setup: $(if $(COMPLETE),,$(STAMP)) ## Install or update the environment, and nothing else; make setup GPU=1: for NVIDIA GPUs; JAX=1: with JAX
	@$(if $(COMPLETE),echo "The active environment has all that the course needs: nothing is installed.",cat "$(STAMP)")

# The stamp is empty, or holds the line that says why Horovod is missing; it is shown at every start.
$(STAMP): pyproject.toml uv.lock $(wildcard setup/horovod/*.* setup/horovod/patches/*) \
  $(if $(HAS_JAX),,$(if $(filter 1,$(JAX)),missing))
	@say() { printf '%s\n' "$$*"; }
	$(if $(filter-out own,$(LACKS)),say "The active environment is left alone ($(LACKS)): the set-up makes $(OWN) instead.")
	say "Set-up. The first one, on 2 cores:"
	say "  packages: downloads about $(SIZE), one to five minutes"
	say "  Horovod:  compiled, about 3 minutes"
	$(if $(HAS_JAX),,$(if $(filter 1,$(JAX)),say "  JAX:      downloads about 90 MB (400 MB on disk)"))
	say "Later starts take a few seconds."
	find_uv() {
	  for uv in uv .tools/bin/uv "$$HOME/.local/bin/uv"; do
	    version=$$("$$uv" --version 2>/dev/null | cut -d ' ' -f 2)
	    if [ -n "$$version" ] && printf '%s\n' "$(UV_MIN)" "$$version" | sort -VC; then return 0; fi
	  done
	  return 1
	}
	if ! find_uv; then
	  say "uv, the installer: no version $(UV_MIN) or newer here, so pip puts one into .tools (about 20 MB)."
	  for python in python3 python3.11 python; do
	    PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 "$$python" -m pip install --quiet --disable-pip-version-check \
	      --root-user-action=ignore --upgrade --target .tools "uv>=$(UV_MIN)" && break
	  done || true
	  if ! find_uv; then
	    say "Set-up stopped: pip could not install uv (see above); with a network and Python's pip, or with uv from" \
	      "https://docs.astral.sh/uv on the PATH, run make again." >&2
	    exit 1
	  fi
	fi
	mkdir -p build
	export UV_PROJECT_ENVIRONMENT="$(OWN)" UV_COMPILE_BYTECODE="$${UV_COMPILE_BYTECODE:-1}"  # or each first import compiles
	sync() { "$$uv" sync --locked $(GROUPS) $(if $(HAS_JAX)$(filter 1,$(JAX)),--extra jax) "$$@"; }
	logged() { { "$$@" 2>&1 && rm -f build/failed || touch build/failed; } | tee "$(LOG)"; [ ! -e build/failed ]; }
	compiler() { command -v "$${CXX:-c++}" || command -v g++ || command -v clang++; } >/dev/null
	( seconds=0; while sleep 30 >/dev/null 2>&1 && kill -0 $$$$ 2>/dev/null; do
	    seconds=$$((seconds + 30)) left=$$(((480 - seconds + 59) / 60))
	    if [ "$$left" -gt 0 ]; then left="up to $$left minutes left"; else left="longer than usual, see above for what is done"; fi
	    say "    working, $$seconds s: $$left"; done ) & clock=$$!
	trap 'kill $$clock 2>/dev/null || true' EXIT
	missing= synced=
	$(HOROVOD)
	if [ -z "$$synced" ] && ! sync; then
	  say "Set-up stopped: the packages could not be installed; uv says why above (no network, no disk space, no Python 3.11: install it, or let uv fetch it, ...)." \
	    "This part needs no compiler. Run make again when it is solved." >&2
	  exit 1
	fi
	$(HOROVOD_GPU)
	missing="$${missing:+Horovod is missing ($$missing; log: $(LOG)}"
	ln -sfn "$$(readlink -f "$$(command -v "$$uv")")" "$(OWN)/bin/uv"
	printf '%s' "$${missing:+$$missing
	}" >"$(STAMP)"

# Why Horovod could not be installed, from its log, as the end of a line.
define WHY
if grep -Eq '$(OFFLINE)' "$(LOG)"; then
  missing='its parts could not be downloaded): $(AFFECTED); check the network, then run `make horovod`'
elif grep -q 'No space left on device' "$(LOG)"; then
  missing='the disk is full): $(AFFECTED); free 2 GB, then run `make horovod`'
else
  missing='it could not be compiled): $(AFFECTED); $(HINT)'
fi
endef

ifneq ($(GPU),1)
SIZE := 500 MB (2.5 GB on disk)
GROUPS :=
HINT := if the log names no other cause, $(COMPILER)
# Packages and Horovod in one step where a compiler is there.
define HOROVOD
if ! compiler; then
  missing='no C++ compiler here): $(AFFECTED); $(COMPILER)'
  echo "No C++ compiler: Horovod was not tried." >"$(LOG)"
elif logged sync --extra horovod; then
  synced=yes
else
  $(WHY)
fi
endef
else
SIZE := 3.5 GB (7 GB on disk)
GROUPS := --no-group cpu --group gpu
HINT := the log says why; CUDA_PATH names the folder of CUDA, HOROVOD_NCCL_HOME that of NCCL, if they are not found
# Compiled against what the environment holds, with NCCL from its wheel; CUDA's compiler comes from the system or a module.
define HOROVOD_GPU
if ! compiler; then
  missing='no C++ compiler here): $(AFFECTED); $(COMPILER)'
elif ! command -v nvcc >/dev/null; then
  missing='no nvcc here): $(AFFECTED); load a module of CUDA 12 or newer, then run `make horovod GPU=1`'
elif ! HOROVOD_GPU_OPERATIONS=NCCL logged "$$uv" pip install --no-config --python "$(OWN)" --no-build-isolation --no-deps \
    ./setup/horovod; then
  $(WHY)
fi
endef
endif

horovod: ## Try again to compile Horovod, for example after installing a compiler
	@rm -f "$(STAMP)"
	make --no-print-directory setup GPU=$(GPU) # as a plain command: `make -n` runs no line that names make by its variable
	if [ -s "$(STAMP)" ]; then tail -n 20 "$(LOG)"; exit 1; fi
	echo "Horovod is installed."

jax: ## Install JAX for notebook 27: 90 MB to download, 400 MB on disk, for the CPU only
	@$(if $(COMPLETE),echo "The active environment is yours: install JAX into it yourself: pip install 'jax>=0.10.2'" >&2; exit 1)
	make --no-print-directory setup JAX=1 GPU=$(GPU)

# The kernel finds the environment's programs (labs, horovodrun, mpiexec); Jupyter replaces $${PATH} when it starts one.
kernel: setup ## Register the environment as the Jupyter kernel "labs", for a site's JupyterHub and for editors; ARGS="--prefix=DIR"
	@$(ACTIVATE)
	python -m ipykernel install $(or $(ARGS),--user) --name labs --display-name "Python (labs)" \
	  --env PATH "$(BIN):"'$${PATH}'

cluster: setup ## Start a small SLURM on this machine to practise on, and say how to use it; needs root and Debian's SLURM
	@$(ACTIVATE)
	python -m setup.cluster start $(ARGS)

cluster-stop: setup ## Stop it, with its jobs
	@$(ACTIVATE)
	python -m setup.cluster stop $(ARGS)

test: setup ## Tell whether a change is right: tests, notebooks 00 to 11; make test ROOM=jobs, ROOM=05: all of one room, of one notebook
	@$(TESTING)
	python -m pytest $(TESTS) $(SOLUTIONS) $(if $(ROOM),,-m "not more") $(PYTEST)

test-more: setup ## Run what is too dear for `make test`, or needs SLURM, a browser or JAX
	@$(TESTING)
	python -m pytest $(TESTS) $(SOLUTIONS) -m more $(PYTEST)
	WHOLE=1 python -m pytest tests/warm $(wildcard solutions/05_*.ipynb solutions/09_*.ipynb) $(PYTEST) # with all blocks

# Both ends of what the course runs on: the TensorFlow of sites' older containers with the Keras of its time, and the newest.
# Throw-away environments in build/versions; Horovod is not part of them, so CI's demand for it is switched off.
# tests/versions/tested holds the checksum of what they passed with: CI runs them again when the lock or labs/compat.py is
# another one.
VERSIONS := tensorflow-cpu==2.16.2,keras==3.3.3 tensorflow-cpu,keras
test-versions: setup ## Run the parts without Horovod on the oldest TensorFlow that the README names, and on the newest
	@$(ACTIVATE)
	for versions in $(VERSIONS); do
	  folder="build/versions/$$versions"
	  uv venv --quiet --clear --python "$(BIN)/python" "$$folder"
	  uv pip install --quiet --python "$$folder" $$(echo "$$versions" | tr , ' ') $$(python tests/versions/needed.py)
	  CI= "$$folder/bin/python" -m pytest -q tests/versions tests/test_compat.py $(ARGS)
	done
	cat uv.lock labs/compat.py | sha256sum >tests/versions/tested

# What ROOM names: a folder or a file of tests; a notebook's number: the tests of all lessons, and both of its forms.
ROOM :=
LESSON := $(if $(wildcard solutions/$(ROOM)_*.py),$(ROOM))
ifneq ($(LESSON),)
TESTS = tests/lessons tests/notebooks -k "lessons or $(LESSON)_"
SOLUTIONS = $(wildcard solutions/$(LESSON)_*.ipynb)
else ifdef ROOM
TESTS = $(or $(wildcard tests/$(ROOM) tests/test_$(ROOM).py),$(error There are no tests of "$(ROOM)": $(ROOMS)))
ROOMS = name one of $(sort $(patsubst tests/%/,%,$(filter-out tests/programs/,$(wildcard tests/*/))) $(patsubst tests/test_%.py,%,$(wildcard tests/test_*.py))), or a notebook's number
else
TESTS = tests
SOLUTIONS = $(wildcard solutions/[0-9]*.ipynb)
endif
# The notebooks' cells are tests among the others (tests/notebook_cells.py). One process more than cores, since many tests
# wait; what shares a browser, a cluster or ranks is in one of them (tests/conftest.py).
TESTING = $(ACTIVATE); export WARM=$${WARM:-1}
PYTEST = --nbval-lax --nbval-current-env --nbval-kernel-startup-timeout=60 --nbval-cell-timeout=600 --dist=loadgroup \
  --no-loadscope-reorder --numprocesses=$(shell cores=$$(nproc); echo $$((cores < 7 ? cores + 1 : 8))) $(ARGS)

notebooks: setup ## Build notebooks/ from solutions/; what did not change is not executed again
	@$(ACTIVATE)
	teach build $(ARGS)

check: setup ## Check the code's style and types, which room imports which, and that notebooks/ agrees with solutions/
	@$(ACTIVATE)
	$(if $(COMPLETE),,uv sync --quiet --locked --inexact --group types)
	ruff check .
	ruff format --check .
	lint-imports
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 pyright --pythonpath "$$(command -v python)"
	teach build --check

format: setup ## Correct the style of the code: ruff check --fix, ruff format
	@$(ACTIVATE)
	ruff check --fix .
	ruff format .

student: setup ## Write the tree that students get, without solutions, to build/student/course
	@$(ACTIVATE)
	rm -rf build/student
	teach release --out build/course.zip
	python -m zipfile -e build/course.zip build/student

site: setup ## Write the course as web pages to build/site, an edition for students and one for instructors
	@$(ACTIVATE)
	$(if $(COMPLETE),,uv sync --quiet --locked --inexact --group site)
	teach site build/site

benchmarks: setup ## Run the benchmarks behind docs/measured.md
	@$(ACTIVATE)
	for file in benchmarks/*.py; do echo "python $$file"; python "$$file"; done
	for strategy in mirrored horovod; do
	  study="labs study --models ResNet50V2 ResNet152V2 --workers 1 2 --preset laptop --strategy $$strategy --out build/study --fresh"
	  echo "$$study"; $$study
	done
	python -m pytest -q -s tests/results/test_drift.py

gpu-proof: setup ## Measure on one GPU, part by part, for at most 8 minutes a call; ARGS="--preset test" rehearses on the CPU
	@$(ACTIVATE)
	python benchmarks/gpu_proof $(ARGS)

gpu-pack: setup ## Pack what a machine with a GPU, Python 3.12 and JAX lacks for it, into build/gpu-pack
	@$(ACTIVATE)
	python benchmarks/gpu_proof/pack.py

clean: ## Remove what can be made again: .venv, .tools, build, caches; your runs stay
	@rm -rf .venv .venv-gpu .tools build .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
