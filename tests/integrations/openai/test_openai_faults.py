"""The accelerated OpenAI SDK over connections that fail, and cancelled anywhere."""

from __future__ import annotations

import pytest

from sdk_connections import *  # noqa: F403

pytest.importorskip("openai")
