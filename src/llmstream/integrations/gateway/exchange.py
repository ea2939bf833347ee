"""One request at a gateway and what came of it, for records, metrics and logs."""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...observer import Observation
    from ...translation import Loss
    from .upstream import Upstream

__all__ = ["Exchange"]


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request that was sent to an upstream.

    ``upstream``     the one that was asked
    ``format``       what the client got: "standard" or "vendor"
    ``model``        the model that was asked for; None where the request was not read for it
    ``request_id``   that of a standard request's metadata (section 4.6)
    ``status``       of the response to the client; None where it left before there was one
    ``lost``         what the upstream has no place for, each with its path and without content
    ``gone``         whether the client left before the end
    ``error``        why there is no whole answer, as a word; None where there is one, as far as the gateway knows
    ``observation``  what the upstream's stream said and when; None where there was none

    It holds neither keys nor, by default, content (section 8.1).
    """

    upstream: Upstream
    format: str = ""
    model: str | None = None
    request_id: str | None = None
    status: int | None = None
    lost: list[Loss] = field(default_factory=list)
    gone: bool = False
    error: str | None = None
    observation: Observation | None = None
