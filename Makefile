# `make` or `make help` lists the targets. CI calls the same ones (.ci/run).

PYTHON ?= python3
FUZZ_SECONDS ?= 60
CARGO_FLAGS ?=

.DEFAULT_GOAL := help
.PHONY: help build test test-rust test-thorough test-tiers lint format types mutants fuzz bench goldens docs docs-check

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build:  ## install the package, with all that the other targets need, into the active environment
	$(PYTHON) -m pip install '.[test,lint,docs]'

test: test-rust  ## run the Rust tests, then the Python tests on the installed package
	$(PYTHON) -m pytest

test-rust:  ## run the tests of the core, which need no Python
	cargo test --profile checked -p bpe-core $(CARGO_FLAGS)
	cargo run --quiet --profile checked -p bpe-core $(CARGO_FLAGS) --example generate_char_table -- --check

test-thorough:  ## run the Rust and Python tests that take minutes and are left out otherwise
	cargo test --profile checked -p bpe-core $(CARGO_FLAGS) --lib -- --ignored
	$(PYTHON) -m pytest -m thorough

# Those that compare ids with tiktoken's, and those that change caches while others encode.
EXACTNESS = tests/engine/test_differential.py tests/engine/test_goldens.py \
    tests/engine/test_exact_bytes.py tests/engine/test_new_text.py tests/engine/test_strings.py
CACHES = tests/engine/test_caching.py tests/engine/test_batches.py

# The highest tier with caches is what all other tests run.
test-tiers:  ## compare ids on each instruction set, with caches and without
	for tier in portable avx2 avx512; do \
	    if [ $$tier != avx512 ]; then \
	        echo "$$tier, with caches"; \
	        BPE_ENGINE_TIER=$$tier $(PYTHON) -m pytest -q -n 2 $(EXACTNESS) $(CACHES) || exit 1; \
	    fi; \
	    echo "$$tier, without caches"; \
	    BPE_ENGINE_TIER=$$tier BPE_ENGINE_CACHE=off $(PYTHON) -m pytest -q -n 2 $(EXACTNESS) || exit 1; \
	done

lint:  ## check formatting, lints and types of Rust and Python
	cargo fmt --all -- --check
	cargo clippy --profile checked --all-targets $(CARGO_FLAGS) -- -D warnings
	cargo clippy --profile checked -p bpe-core --features ablation --examples $(CARGO_FLAGS) -- -D warnings
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(MAKE) --no-print-directory types

types:  ## check types (the stub of the native module is checked by a test)
	$(PYTHON) -m mypy

format:  ## format Rust and Python
	cargo fmt --all
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

# What `make mutants` changes, a little at a time, to see whether a test fails (docs/mutants.md).
MUTATED = merge/*.rs split/*.rs vocabulary/*.rs cache/*.rs rule.rs rank_file.rs special_tokens.rs \
    normalize.rs truncate/*.rs train/extend.rs

mutants:  ## look for changes of the core that no Rust test notices (needs cargo-mutants; hours)
	cargo mutants --package bpe-core --profile checked $(patsubst %,--file 'core/src/%',$(MUTATED)) $(CARGO_FLAGS)

fuzz:  ## fuzz each target for FUZZ_SECONDS (default 60)
	FUZZ_SECONDS=$(FUZZ_SECONDS) cargo test --profile checked -p bpe-core --test fuzz $(CARGO_FLAGS)
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(PYTHON) -m pytest tests/prompt/test_fuzz_templates.py

bench:  ## measure against the tokenizers that are installed, and write the tables of the manual
	$(PYTHON) -m benchmarks.run --quick --render docs/benchmarks.md README.md

goldens:  ## record tiktoken's ids again (tests/engine/goldens)
	$(PYTHON) tests/engine/goldens/record.py

docs:  ## build the manual as a site in docs/_build/html; a broken link is an error
	$(PYTHON) -m sphinx -b html --fail-on-warning --keep-going -q docs docs/_build/html

docs-check:  ## run the examples of the manual and of the docstrings
	$(PYTHON) -m pytest tests/docs tests/engine/test_api.py
	cargo test --doc -p bpe-core $(CARGO_FLAGS)
