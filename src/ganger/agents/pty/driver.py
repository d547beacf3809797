"""The process that operates an interactive program in place of a user.

Called as `python -m ganger.agents.pty.driver SETTINGS PROGRAM ARGUMENTS…`. The prompt comes on stdin. On stdout: what
the program shows, as plain lines, and signals in between.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ganger.agents.pty.child import PtyChild
from ganger.agents.pty.screen import TerminalScreen, joined
from ganger.agents.pty.transcript import Transcript, gist, unframed
from ganger.agents.settings import TerminalSettings
from ganger.agents.sign_lines import encode, harmless
from ganger.agents.words import meaning
from ganger.core.signs import Denied, How, Limited, LoginMissing, Over, Sign

# Questions as programs ask them: with their answers next to or below them.
ASKS = (
    r"[\[(](?:y|yes)/(?:n|no)(?:/\w{1,10})?[\])]|^\W{0,6}1[.)] (?:yes|allow|approve|trust)\b"
    r"|^\W{0,6}press \W?(?:enter|return|y)\W? to (?:allow|approve|confirm|continue)|^\W{0,6}do you (?:want to )?trust "
    r"|\benter to (?:confirm|select|approve|allow)\b"
)
_MOST_DENIED = 2
_QUIET_SEC = 0.05
_LONGEST_BLIND_SEC = 0.5
# Programs draw first and listen later.
_DRAWN_SEC = 0.3
_QUIT_SEC = 3.0
_GRACE_SEC = 0.7
# The largest distance between a question and its answers.
_DIALOG_LINES = 6
_ABOVE = 3
_LONGEST_LINE = 1000
_LAST_LINES = 12
# A program that only shows an error prints no more than this.
_COMPLAINT_LINES = 6
_UNTYPED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class DriverPhase(StrEnum):
    STARTING = "starting"
    TYPING = "typing"
    WORKING = "working"


@dataclass(frozen=True, slots=True)
class ScreenLook:
    """The screen at one moment: lines as they were written, each with the number of its row; `text` has no echoes.

    `still`: it has not changed for a while; `redrawn`: the whole screen was drawn again.
    """

    rows: tuple[int, ...]
    lines: tuple[str, ...]
    text: str
    first: int
    still: bool = True
    redrawn: bool = False

    def hits(self, pattern: re.Pattern[str]) -> list[int]:
        return sorted({self.rows[self.text.count("\n", 0, found.start())] for found in pattern.finditer(self.text)})

    def line(self, row: int) -> str:
        return self.lines[self.rows.index(row)].strip()

    def dialog(self, row: int) -> str:
        """A line and the few above it, without frames."""
        lines = [unframed(line).strip() for line in self.lines[: self.rows.index(row) + 1]]
        return " / ".join([line for line in lines if len(gist(line)) > 1][-_ABOVE - 1 :])


@dataclass(slots=True)
class PromptRule:
    """A question and its answer. `at`: the row of the last answered one, while it is still shown."""

    pattern: re.Pattern[str]
    keys: bytes
    at: int | None = None
    line: str = ""
    shown: tuple[str, ...] = ()
    repeated: bool = False

    def is_new(self, hits: Sequence[int], look: ScreenLook) -> bool:
        """Whether the newest of these is not answered yet."""
        if not hits:
            self.at = None
            return False
        if self.at is not None and not self._is_another(hits, self.at, look):
            return False
        self.at, self.line, self.shown, self.repeated = hits[-1], look.line(hits[-1]), _gists(look.lines), False
        return True

    def _is_another(self, hits: Sequence[int], last: int, look: ScreenLook) -> bool:
        """Whether this is a new question: below the old one, or in its place on a screen that has changed since."""
        newest = hits[-1]
        if newest > last and (last in hits or last < look.first):
            return True
        moved = newest != last or look.redrawn or not look.line(newest).startswith(self.line)
        return moved and look.still and _gists(look.lines) != self.shown

    def ask_again(self) -> bool:
        """Whether to answer again a question that is still shown long after its answer."""
        if self.at is None or self.repeated:
            return False
        self.repeated = True
        return True


class PtyDriver:
    """One conversation, from the program's first output to its end."""

    def __init__(self, given: TerminalSettings, prompt: str, child: PtyChild) -> None:
        self.given, self.prompt, self.child = given, prompt, child
        self.screen = TerminalScreen(given.columns, given.rows)
        self.transcript = Transcript(tell)
        self.rules = [PromptRule(_pattern(asked), keys.encode()) for asked, keys in given.answers.items()]
        self.asks = PromptRule(_pattern(given.asks or ASKS), given.deny.encode())
        self.phase = DriverPhase.STARTING
        self.started = self.changed = self.heard = self.looked = time.monotonic()
        self.gists: tuple[str, ...] = ()
        self.before: tuple[str, ...] = ()
        self.answered = self.denied = self.rescued = 0
        self.settled = True
        self.handed_over = False

    def run(self) -> Over:
        while True:
            data = self.child.read(_QUIET_SEC)
            if self.child.stopped:
                return self._give_up("aborted", "it was asked to end")
            if data:
                self.hear(data)
            now = time.monotonic()
            ended = data is None or (not data and self.child.code is not None)
            if not ended and now - self.heard < _QUIET_SEC and now - self.looked < _LONGEST_BLIND_SEC:
                continue
            over = self._ended() if ended else self._step(self._look(now), now)
            if over is not None:
                return over

    def hear(self, data: bytes) -> None:
        self.heard = time.monotonic()
        self.screen.feed(data)
        if self.transcript.gone(self.screen.take_gone()):
            self._move(self.heard)
        if replies := self.screen.take_replies():
            self.child.type(replies)

    def close(self, over: Over) -> None:
        """Asks the program to exit, then stops whatever is left of it.

        Nothing is typed to a program that gave no answer: it may be asking something, and the keys would say yes.
        """
        if over.how == "success" and self.child.code is None and self.given.quit:
            self.child.press(self.given.quit.encode())
            self.child.wait(self.hear, _QUIT_SEC)
        self.child.end(self.hear, grace_sec=_GRACE_SEC)
        self.transcript.settle(self._look(time.monotonic()).lines)

    # --- looking ------------------------------------------------------------------------------------------------------

    def _look(self, now: float) -> ScreenLook:
        self.looked = now
        rows: list[int] = []
        lines: list[str] = []
        for row, line in joined(self.screen.visible()):
            rows.append(self.screen.first + row)
            lines.append(line if lines else self.transcript.part + line)
        shown = ["" if self.transcript.is_echo(line) else line for line in lines]
        gists = _gists(lines)
        if gists != self.gists:
            self.gists = gists
            self._move(now)
        still = now - self.changed >= self.given.settle_sec
        return ScreenLook(tuple(rows), tuple(lines), "\n".join(shown), self.screen.first, still, self.screen.alternate)

    def _move(self, now: float) -> None:
        """Something happened: restarts the clocks that wait for quiet."""
        self.changed, self.settled = now, False

    def _step(self, look: ScreenLook, now: float) -> Over | None:
        quiet = now - self.changed
        if look.still and not self.settled:
            self.settled = True
            self.transcript.settle(look.lines)
        asked = self.answered + self.denied
        over = self._answer(look, now, idle=quiet >= self.given.idle_sec)
        if over is not None or self.answered + self.denied > asked:
            return over
        match self.phase:
            case DriverPhase.STARTING:
                return self._start(look, quiet, now)
            case DriverPhase.TYPING:
                return self._hand_over(look, quiet, now)
            case DriverPhase.WORKING:
                return self._watch(look, quiet, now)

    # --- questions ----------------------------------------------------------------------------------------------------

    def _answer(self, look: ScreenLook, now: float, *, idle: bool) -> Over | None:
        if now - self.changed < _DRAWN_SEC:
            return None
        known: list[int] = []
        for rule in self.rules:
            hits = look.hits(rule.pattern)
            known += hits
            stuck = idle and bool(hits) and hits[-1] >= look.rows[-1] - _DIALOG_LINES
            if rule.is_new(hits, look) or (stuck and rule.ask_again()):
                return self._type_answer(rule, look.line(hits[-1]), now)
        if self.phase is DriverPhase.TYPING or not look.still:
            return None
        far = 0 if idle else _DIALOG_LINES
        last = look.rows[-1] - 2 * _DIALOG_LINES if look.rows else 0
        asked = [n for n in look.hits(self.asks.pattern) if n > last and all(abs(n - row) > far for row in known)]
        new = self.asks.is_new(asked, look) or (idle and self.asks.ask_again())
        return self._deny(look.dialog(asked[-1]), now) if new else None

    def _type_answer(self, rule: PromptRule, question: str, now: float) -> Over | None:
        self.answered += 1
        if self.answered > self.given.most_answers:
            return self._give_up("error", f"it asks again and again: {question}")
        tell(f"[ganger] answered: {question}")
        self.child.press(rule.keys)
        self._move(now)
        return None

    def _deny(self, question: str, now: float) -> Over | None:
        self.denied += 1
        sign(Denied("question", question[:400]))
        if self.denied >= _MOST_DENIED:
            return self._give_up("error", f"it asked {self.denied} questions that no rule answers, last: {question}")
        self.child.press(self.asks.keys)
        self._move(now)
        return None

    # --- the task -----------------------------------------------------------------------------------------------------

    def _start(self, look: ScreenLook, quiet: float, now: float) -> Over | None:
        ready = self.given.ready
        drawn = quiet >= (_DRAWN_SEC if ready else self.given.idle_sec)
        if drawn and (not ready or _pattern(ready).search(look.text)):
            self._type("\n\n".join(filter(None, (self.prompt.rstrip(), self.given.note))), now)
        elif now - self.started >= self.given.ready_sec:
            return self._give_up("error", f"it was not ready for a task within {self.given.ready_sec:g} s", look)
        return None

    def _type(self, text: str, now: float) -> None:
        """Types a text; its last key is pressed once the text has arrived, as some take a paste for one key."""
        text = _UNTYPED.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip("\n")
        self.transcript.typed(text)
        if self.screen.pastes:
            self.child.type(b"\x1b[200~" + text.encode() + b"\x1b[201~")
        else:
            longest = _LONGEST_LINE if self.child.by_line else sys.maxsize
            keys = self.given.newline.join(part for line in text.split("\n") for part in _cut(line, longest))
            self.child.type(keys.encode())
        self.phase = DriverPhase.TYPING
        self._move(now)

    def _hand_over(self, look: ScreenLook, quiet: float, now: float) -> Over | None:
        stuck = quiet >= self.given.idle_sec
        if (quiet >= _DRAWN_SEC and not self.child.has_unread) or stuck:
            if not self.handed_over:
                self.transcript.begin(look.lines)
            self.handed_over = True
            self.before = _gists(look.lines)
            self._submit(now)
        return None

    def _submit(self, now: float) -> None:
        self.child.press(self.given.submit.encode())
        self.phase = DriverPhase.WORKING
        self._move(now)

    def _watch(self, look: ScreenLook, quiet: float, now: float) -> Over | None:
        if not look.still:
            return None
        if block := self.transcript.answer(look.lines):
            return Over("success", block)
        if self.given.busy and _pattern(self.given.busy).search(look.text):
            self.changed = now
        elif quiet >= self.given.idle_sec:
            return self._idle(look, now)
        return None

    def _idle(self, look: ScreenLook, now: float) -> Over | None:
        if self.given.done and _pattern(self.given.done).search(look.text):
            return Over("success", self.transcript.said(look.lines))
        if _gists(look.lines) == self.before:
            # The text is still there: the key after it was lost. It is pressed again, but only once.
            self.before = ()
            self._submit(now)
            return None
        if self.rescued >= self.given.rescues:
            calls = f", though it was called {self.rescued} times" if self.rescued else ""
            return self._give_up("error", f"it was quiet for {self.given.idle_sec:g} s without an answer{calls}", look)
        self.rescued += 1
        tell(f"[ganger] quiet for {self.given.idle_sec:g} s: call {self.rescued} of {self.given.rescues}")
        self._type(self.given.rescue_text, now)
        return None

    # --- the end ------------------------------------------------------------------------------------------------------

    def _ended(self) -> Over:
        while data := self.child.read(0):
            self.hear(data)
        look = self._look(time.monotonic())
        block = self.transcript.answer(look.lines) if self.handed_over else ""
        if block:
            return Over("success", block)
        self.child.wait(self.hear, _GRACE_SEC)
        code = self.child.code
        how = "closed its terminal" if code is None else f"ended by itself with exit code {code}"
        return self._give_up("error", f"the program {how} and gave no answer", look)

    def _give_up(self, how: How, reason: str, look: ScreenLook | None = None) -> Over:
        """Ends with what it showed last, which may say why: not logged in, a limit."""
        last = [line.strip() for line in (look.text.split("\n") if look else []) if len(gist(line)) > 1][-_LAST_LINES:]
        text = "\n".join(last)
        for found in meaning(text, now=time.time()):
            if isinstance(found, Limited) or (isinstance(found, LoginMissing) and self._has_only_complained(look)):
                sign(found)
        return Over(how, f"{reason}; it showed last:\n{text}" if text else reason)

    def _has_only_complained(self, look: ScreenLook | None) -> bool:
        """Whether it has not worked on its task: later, such words may come from its model or a tool."""
        return not self.handed_over or look is None or _told_lines(self.transcript.said(look.lines)) <= _COMPLAINT_LINES


def _told_lines(text: str) -> int:
    return sum(len(gist(line)) > 1 for line in text.split("\n"))


def _gists(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(gist, lines))


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.MULTILINE | re.IGNORECASE)


def _cut(line: str, longest: int) -> Iterator[str]:
    """The line in parts that a terminal accepts, cut at spaces if there are any."""
    while len(line.encode()) > longest:
        part = line.encode()[:longest].decode(errors="ignore")
        at = part.rfind(" ") + 1 or len(part)
        yield line[:at]
        line = line[at:]
    yield line


def tell(line: str) -> None:
    print(harmless(line), flush=True)


def sign(said: Sign) -> None:
    print(encode(said), flush=True)


def main(given: TerminalSettings, argv: list[str], prompt: str) -> int:
    try:
        child = PtyChild(argv, columns=given.columns, rows=given.rows)
    except OSError as error:
        sign(Over("usage", f"program {argv[0]!r} cannot be started: {error.strerror}"))
        return 127
    talk = PtyDriver(given, prompt, child)
    over = talk.run()
    sign(over)
    talk.close(over)
    return {"success": 0, "aborted": 143}.get(over.how, 1)


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    _prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    sys.exit(main(TerminalSettings(**json.loads(sys.argv[1])), sys.argv[2:], _prompt))
