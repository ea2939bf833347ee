"""Ray and Spark have an environment each; what needs only pyarrow runs in both."""

from __future__ import annotations

import os

_OTHERS = {"ray": ["test_arrow_spark.py"], "spark": ["test_arrow_ray.py"]}

collect_ignore = _OTHERS.get(os.environ.get("LLMSTREAM_ENVIRONMENT", ""), [])
