.PHONY: build test lint types bench fuzz soak

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

# Thousands of streams at once; an hour by hand: make soak MINUTES=60
MINUTES = 1
soak:
	python -m tools.soak --minutes $(MINUTES)
