"""What the readers cost, and whether they read the same: definitions (what), readers (who), streams (on what).

``python -m benchmarks`` measures everything and writes the record; ``README.md`` beside this file says the rest.
"""
