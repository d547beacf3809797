"""What the engine needs from outside: one file per port.

Only the names that an agent adapter of another package imports are here as well.
"""

from ganger.ports.agents import (
    Agent as Agent,
    AgentHealth as AgentHealth,
    AttemptContext as AttemptContext,
    Capabilities as Capabilities,
    Reader as Reader,
)
from ganger.ports.processes import Launch as Launch, Launcher as Launcher, Running as Running
