# `make` or `make help` lists the targets. CI calls the same ones (.ci/run).

PYTHON ?= python3
FUZZ_CASES ?= 100000
FUZZ_SECONDS ?= 60
CARGO_FLAGS ?=

.DEFAULT_GOAL := help
.PHONY: help wheels check-wheels check-targets check-crates verify-types build test test-rust test-thorough test-tiers test-all-tiers test-transformers nightly budget workflows lint format types fuzz bench pictures docs docs-check

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build:  ## install the package, with all that the other targets need, into the active environment
	$(PYTHON) -m pip install '.[test,lint,docs]'

test: test-rust  ## run the Rust tests, then the Python tests on the installed package
	$(PYTHON) -m pytest

test-rust:  ## run the Rust tests, which need no Python
	cargo test --profile checked -p bpe-core $(CARGO_FLAGS)
	cargo run --quiet --profile checked -p bpe-core $(CARGO_FLAGS) --example generate_char_table -- --check

test-thorough:  ## run the Rust and Python tests that take minutes and are left out otherwise
	cargo test --profile checked -p bpe-core $(CARGO_FLAGS) --lib -- --ignored
	$(PYTHON) -m pytest -m thorough

# Those that compare ids with tiktoken's, and those that change caches while others encode.
EXACTNESS = tests/engine/test_differential.py tests/engine/test_exact_bytes.py \
    tests/engine/test_new_text.py tests/engine/test_strings.py
CACHES = tests/engine/test_caching.py tests/engine/test_batches.py

# The Rust tests compare the tiers with one another; all other Python tests run the highest one with caches.
test-tiers:  ## compare ids on the lowest instruction set without caches
	BPE_ENGINE_TIER=portable BPE_ENGINE_CACHE=off $(PYTHON) -m pytest -q -n 2 $(EXACTNESS)

test-all-tiers:
	for tier in portable avx2 avx512; do \
	    BPE_ENGINE_TIER=$$tier $(PYTHON) -m pytest -q -n 2 $(EXACTNESS) $(CACHES) || exit 1; \
	    BPE_ENGINE_TIER=$$tier BPE_ENGINE_CACHE=off $(PYTHON) -m pytest -q -n 2 $(EXACTNESS) || exit 1; \
	done

# The oldest version that pyproject.toml allows; the other tests run the newest. `make nightly` adds
# the one that vLLM pins. Each gets a folder of its own, with what it needs.
TRANSFORMERS = 5.0.0

test-transformers:  ## run the tests under transformers with older versions of it
	set -e; for version in $(TRANSFORMERS); do \
	    folder=$$(mktemp -d); \
	    trap "rm -rf $$folder" EXIT; \
	    $(PYTHON) -m pip install --quiet --target "$$folder" "transformers==$$version"; \
	    echo "transformers $$version"; \
	    PYTHONPATH="$$folder$${PYTHONPATH:+:$$PYTHONPATH}" $(PYTHON) -m pytest -q -n 2 \
	        tests/hf/test_transformers.py tests/hf/test_transformers_classes.py \
	        tests/frontend/test_transformers.py; \
	    rm -rf "$$folder"; \
	done

nightly: test-thorough test-all-tiers  ## run what takes too long for each change: an hour
	BPE_ENGINE_TEST_EXAMPLES=600 $(PYTHON) -m pytest -q -n 2
	$(MAKE) test-transformers TRANSFORMERS="5.0.0 5.19.0"
	$(MAKE) check-targets
	$(MAKE) fuzz

workflows:  ## check the workflows of the public forge
	actionlint
	zizmor --offline --quiet .github

budget:  ## check the lines of code of each folder against budget.txt
	$(PYTHON) tests/support/budget.py

lint: budget workflows  ## check formatting, lints, types, workflows and the lines of code
	cargo fmt --all -- --check
	cargo clippy --profile checked --all-targets $(CARGO_FLAGS) -- -D warnings
	cargo clippy --profile checked -p bpe-core --features ablation --examples $(CARGO_FLAGS) -- -D warnings
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(MAKE) --no-print-directory types

types:  ## check the types of the packages, and of the manual's examples
	$(PYTHON) -m mypy
	$(PYTHON) tests/support/check_manual_types.py

verify-types:  ## check that every public name of the installed package has a type (pyright)
	$(PYTHON) -m pyright --verifytypes bpe_engine --ignoreexternal
	$(PYTHON) -m pyright --verifytypes vocab_tools --ignoreexternal

PYTHONS ?= 3.11 3.13 3.14
ROOTS ?= target/roots

wheels:  ## build the sdist, and wheels of this system for PYTHONS, in dist/ (docs/releasing.md)
	$(PYTHON) release/wheels.py --python $(PYTHONS)

check-wheels:  ## check dist/, and install it in clean Debian roots (needs root; SUITE=1, RELEASE=1)
	release/roots.sh $(ROOTS)
	$(PYTHON) release/check.py --roots $(ROOTS) $(if $(SUITE),--suite) $(if $(RELEASE),--release)

check-targets:  ## check the types of both languages for other systems (needs root; TEST=1 tests the engine on Arm and Windows)
	for platform in win32 darwin; do $(PYTHON) -m mypy --platform $$platform || exit 1; done
	release/targets.sh $(ROOTS) $(if $(TEST),test)

check-crates:  ## pack the crates, run their examples, build their pages (VERIFY=1 builds what is packed)
	cargo package --workspace --exclude bpe-bindings --allow-dirty $(if $(VERIFY),,--no-verify) $(CARGO_FLAGS)
	cargo run --quiet --profile checked -p bpe-core $(CARGO_FLAGS) --example tokens
	RUSTDOCFLAGS="-D warnings" cargo doc --profile checked --no-deps -p bpe-core $(CARGO_FLAGS)

format:  ## format Rust and Python
	cargo fmt --all
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

fuzz:  ## fuzz FUZZ_CASES of each target (100000), a fifth as many damaged files, templates for FUZZ_SECONDS (60)
	FUZZ_CASES=$(FUZZ_CASES) cargo test --profile checked -p bpe-core --test fuzz --test hf_fuzz $(CARGO_FLAGS)
	FUZZ_CASES=$(shell expr $(FUZZ_CASES) / 5) $(PYTHON) -m pytest --timeout 0 tests/corpus/test_damaged_files.py
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(PYTHON) -m pytest --timeout 0 tests/prompt/test_fuzz_templates.py

bench:  ## measure against the tokenizers that are installed, and write the tables and charts of the manual
	$(PYTHON) -m benchmarks.run --quick --render docs/benchmarks.md docs/benchmarks.csv README.md
	$(PYTHON) docs/pictures.py speed
	$(PYTHON) -m benchmarks.run --cases sides --encodings qwen

pictures:  ## draw the pictures of the README and the manual again (needs Chromium)
	$(PYTHON) docs/pictures.py

docs:  ## build the manual as a site in docs/_build/html; a broken link is an error
	$(PYTHON) -m sphinx -b html --fresh-env --fail-on-warning --keep-going -q docs docs/_build/html

docs-check:  ## run the examples of the manual and of the docstrings
	$(PYTHON) -m pytest tests/docs tests/engine/test_api.py
	cargo test --doc -p bpe-core $(CARGO_FLAGS)
