"""What is replaced in the Anthropic SDK, when, and how it comes back; and what is read otherwise, by the standard."""

from __future__ import annotations

import pytest

from sdk_faults import *  # noqa: F403
from sdk_seams import *  # noqa: F403

pytest.importorskip("anthropic")
