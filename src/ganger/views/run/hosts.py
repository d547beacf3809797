"""Hosts of remotes and forges that are away or refuse the token: since when, what waits, when they are asked again."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ganger.core.model.run_state import RunState
from ganger.core.state.hosts import question_about_host, told, waiting
from ganger.core.times import stamp
from ganger.views.run.board import shown_duration


@dataclass(frozen=True, slots=True)
class HostRow:
    """`kind` is `away` or `denied`. `wait_sec` is how long until the next try; 0: it is due. Where nobody leads the
    run, there is none."""

    host: str
    kind: str
    why: str
    since: str
    tries: int
    next_try: str
    wait_sec: float
    tasks: tuple[str, ...]
    question: str
    said: str

    def as_json(self) -> dict[str, object]:
        found = asdict(self)
        del found["said"]
        return {
            **found,
            "tasks": list(self.tasks),
            "question": self.question or None,
            "next_try": self.next_try or None,
        }

    @property
    def line(self) -> str:
        count = len(self.tasks)
        waits = "1 task waits" if count == 1 else f"{count} tasks wait" if count else "nothing waits for it"
        if not self.next_try:
            then = "it is tried again when ganger run continues the run"
        elif self.wait_sec:
            then = f"next try in {shown_duration(self.wait_sec)}"
        else:
            then = "the next try is due"
        asked = f"; ganger inbox: {self.question}" if self.question else ""
        return f"{self.said}; {waits}; {then}{asked}"


def troubled_hosts(state: RunState, now: float, *, led: bool = True) -> list[HostRow]:
    """In the order they went away. Without a lead nobody tries."""
    rows = []
    for host, trouble in state.hosts.items():
        asked = question_about_host(state, host)
        tried = led and not state.finished
        rows.append(
            HostRow(
                host, trouble.kind, trouble.why, trouble.since, trouble.tries,
                stamp(max(trouble.next_at, now)) if tried else "",
                round(max(0.0, trouble.next_at - now), 1) if tried else 0.0,
                tuple(waiting(state, host)), asked.id if asked else "", told(host, trouble),
            )
        )  # fmt: skip
    return rows
