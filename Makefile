.PHONY: build test lint types bench fuzz

build:
	LLMSTREAM_EXTENSIONS=require python -m pip install -e '.[test,dev]'

test:
	python -m pytest

lint:
	ruff check .
	ruff format --check .
	cython-lint src

types:
	mypy
	pyright
	lint-imports

bench:
	LLMSTREAM_EXTENSIONS=require python -m pip install -e '.[test,bench]'
	python -m benchmarks

# Seconds for each target; by hand: make fuzz SECONDS=3600
SECONDS = 10
fuzz:
	python -m fuzz all --seconds $(SECONDS)
	HYPOTHESIS_PROFILE=fuzz python -m pytest -m hypothesis
