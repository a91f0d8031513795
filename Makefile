# Set-up and daily commands of the course; `make` alone lists them. Needs GNU make and Python on Linux x86-64, no root.
# A recipe is one shell script (.ONESHELL) that stops at its first error.
.ONESHELL:
.SHELLFLAGS := -ec
.DEFAULT_GOAL := help
.PHONY: help lab setup horovod wheel jax missing kernel cluster cluster-stop test test-more test-versions \
  notebooks check format student benchmarks gpu-proof gpu-pack site clean

# A home folder that cannot be written, as on some compute nodes: one in the course's folder takes its place.
ifneq ($(shell [ -w "$$HOME" ] && echo yes),yes)
export HOME := $(CURDIR)/.tools/home
$(shell mkdir -p "$(HOME)")
endif

# The environment: one that is active and lacks nothing (conda's, a site's), else a folder that setup/install.py fills.
OWN := $(or $(UV_PROJECT_ENVIRONMENT),$(if $(filter 1,$(GPU)),.venv-gpu,.venv))
ACTIVE := $(if $(filter 1,$(GPU))$(UV_PROJECT_ENVIRONMENT),,$(or $(VIRTUAL_ENV),$(CONDA_PREFIX)))
ACTIVE := $(if $(ACTIVE),$(shell [ "$(ACTIVE)" -ef "$(OWN)" ] || echo "$(ACTIVE)"))
LACKS := $(if $(ACTIVE),$(shell "$(ACTIVE)/bin/python" setup/lacks.py 2>&1))
COMPLETE := $(if $(ACTIVE),$(if $(LACKS),,yes))
ENV := $(if $(COMPLETE),$(ACTIVE),$(OWN))
BIN := $(if $(filter /%,$(ENV)),,$(CURDIR)/)$(ENV)/bin
STAMP := $(OWN)/.synced
HAS_JAX := $(wildcard $(OWN)/lib/python*/site-packages/jax/version.py)
INSTALL := python3 setup/install.py --into "$(OWN)" $(if $(filter 1,$(GPU)),--gpu) $(if $(HAS_JAX)$(filter 1,$(JAX)),--jax)
# The environment's programs first; `uv run` takes the environment as it is and never changes or downloads anything.
ACTIVATE := export PATH="$(BIN):$$PATH" UV_NO_SYNC=1

help: ## List the targets
	@{ echo "make TARGET, where TARGET is one of"
	sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r target text; do
	  printf '  %-12s %s\n' "$$target" "$$text"
	done; } || [ "$$?" = 141 ] # `make help | head`: who reads has enough

lab: setup ## Open JupyterLab at the first notebook, after the set-up; options: make lab ARGS="--no-browser --port=8890"
	@$(ACTIVATE)
	echo "JupyterLab starts; Ctrl-C in this terminal stops it."
	exec jupyter lab $(ARGS)

setup: $(if $(COMPLETE),,$(STAMP)) ## Install or update the environment, and nothing else; make setup GPU=1: for NVIDIA GPUs; JAX=1: with JAX
	@$(if $(COMPLETE),echo "The active environment has all that the course needs: nothing is installed.",cat "$(STAMP)")

# The stamp is empty, or holds the line that says why Horovod is missing; it is shown at every start.
$(STAMP): pyproject.toml uv.lock $(wildcard setup/horovod/*.* setup/horovod/patches/*) \
  $(if $(HAS_JAX),,$(if $(filter 1,$(JAX)),missing))
	@$(if $(LACKS),echo "The active environment is left alone ($(LACKS)): the set-up fills $(OWN) instead.")
	$(INSTALL)

horovod: ## Compile Horovod here, for example after installing a compiler
	@$(INSTALL) --compile

# As a plain command: `make -n` runs no line that names make by its variable.
jax: ## Install JAX for notebook 27: 90 MB to download, 400 MB on disk, for the CPU only
	@$(if $(COMPLETE),echo "The active environment is yours: install JAX into it yourself: pip install 'jax>=0.10.2'" >&2; exit 1)
	make --no-print-directory setup JAX=1 GPU=$(GPU)

# The kernel finds the environment's programs (labs, horovodrun, mpiexec); Jupyter replaces $${PATH} when it starts one.
kernel: setup ## Register the environment as the Jupyter kernel "labs", for a site's JupyterHub and for editors; ARGS="--prefix=DIR"
	@$(ACTIVATE)
	python -m ipykernel install $(or $(ARGS),--user) --name labs --display-name "Python (labs)" \
	  --env PATH "$(BIN):"'$${PATH}'

cluster: setup ## Start a small SLURM on this machine to practise on, and say how to use it; needs root and Debian's SLURM
	@$(ACTIVATE); python -m setup.cluster start $(ARGS)

cluster-stop: setup ## Stop it, with its jobs
	@$(ACTIVATE); python -m setup.cluster stop $(ARGS)

test: setup ## Tell whether a change is right: tests, notebooks 00 to 11; make test ROOM=jobs, ROOM=05: all of one room, of one notebook
	@$(TESTING)
	python -m pytest $(TESTS) $(SOLUTIONS) $(if $(ROOM),,-m "not more") $(PYTEST)

test-more: BESIDE = 2# more of its tests wait: for SLURM, a browser, ranks
test-more: setup ## Run what is too dear for `make test`, or needs SLURM, a browser or JAX
	@$(TESTING)
	export WHOLE=09 # notebooks that `make test` runs with a few of their networks' blocks, and this with all
	python -m pytest $(TESTS) $(SOLUTIONS) -m more $(PYTEST)

# Both ends of what the course runs on: the TensorFlow of sites' older containers with the Keras of its time, and the newest.
# Throw-away environments in build/versions; Horovod is not part of them, so CI's demand for it is switched off.
# tests/versions/tested holds the checksum of what they passed with: CI runs them again when the lock or labs/compat.py is
# another one.
test-versions: setup ## Run the parts without Horovod on the oldest TensorFlow that the README names, and on the newest
	@$(ACTIVATE)
	for versions in tensorflow-cpu==2.16.2,keras==3.3.3 tensorflow-cpu,keras; do
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
TESTS = $(or $(wildcard tests/$(ROOM) tests/test_$(ROOM).py),$(error There is neither tests/$(ROOM), tests/test_$(ROOM).py nor a notebook $(ROOM)))
else
TESTS = tests
SOLUTIONS = $(wildcard solutions/[0-9]*.ipynb)
endif
# The notebooks' cells are tests among the others (tests/notebook_cells.py). One process more than cores, since many tests
# wait; what shares a browser, a cluster or ranks is in one of them (tests/conftest.py).
TESTING = $(ACTIVATE); export WARM=$${WARM:-1}
PYTEST = --nbval-lax --nbval-current-env --nbval-kernel-startup-timeout=60 --nbval-cell-timeout=600 --dist=loadgroup \
  --no-loadscope-reorder --numprocesses=$(shell cores=$$(nproc); echo $$((cores < 7 ? cores + $(or $(BESIDE),1) : 8))) $(ARGS)

notebooks: setup ## Build notebooks/ from solutions/; what did not change is not executed again
	@$(ACTIVATE); teach build $(ARGS)

check: setup ## Check the code's style and types, which room imports which, and that notebooks/ agrees with solutions/
	@$(ACTIVATE)
	$(if $(COMPLETE),,uv sync --quiet --locked --inexact --group types)
	ruff check .
	ruff format --check .
	lint-imports
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 pyright --pythonpath "$$(command -v python)"
	teach build --check

format: setup ## Correct the style of the code: ruff check --fix, ruff format
	@$(ACTIVATE); ruff check --fix .; ruff format .

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
	  labs study --models ResNet50V2 ResNet152V2 --workers 1 2 --preset laptop --strategy $$strategy --out build/study --fresh
	done
	python -m pytest -q -s tests/results/test_drift.py

gpu-proof: setup ## Measure on one GPU, part by part, for at most 8 minutes a call; ARGS="--preset test" rehearses on the CPU
	@$(ACTIVATE); python benchmarks/gpu_proof $(ARGS)

gpu-pack: setup ## Pack what a machine with a GPU, Python 3.12 and JAX lacks for it, into build/gpu-pack
	@$(ACTIVATE); python benchmarks/gpu_proof/pack.py

clean: ## Remove what can be made again: .venv, .tools, build, caches; your runs stay
	@rm -rf .venv .venv-gpu .tools build .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
