"""The parts of ``llmstream audit``: its inputs, the work on them in processes, its outputs, and their verification."""
