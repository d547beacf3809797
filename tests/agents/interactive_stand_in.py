"""A scripted interactive program: talks only to a terminal, and plays one step after another once it has a task.

    interactive_stand_in.py [--look tui|screen|line] [--trust] [--deaf] [--lost N] [--style NAME] [--journal FILE] STEP…

`--deaf`: ignores /exit, SIGTERM and SIGHUP. `--lost`: does not hear the first N times Enter is pressed.

Steps: say:TEXT  spin:SECONDS  mute  ask[:COMMAND]  yn[:COMMAND]  ask-forever  answer  child  crash  exit
`mute` and `hang` (with a spinner) go on when it is spoken to again.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import termios
import time
import tty
from pathlib import Path

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧"
FRAME_SEC = 0.03
START, END = "<<<TASK_RESULT_V2>>>", "<<<END_TASK_RESULT_V2>>>"


class Gone(Exception):
    """It was asked to leave."""


def block(style: str, width: int) -> list[str]:
    result = {
        "contract_version": "2.0",
        "task_id": os.environ.get("GANGER_TASK_ID", "a"),
        "status": "DONE",
        "summary": "the real answer " + ("with a long text " * 12).strip(),
    }
    if style == "framed":
        lines = [START, *json.dumps(result, indent=1).splitlines(), END]
        cut = [line[n : n + width - 6] for line in lines for n in range(0, len(line), width - 6)]
        edge = "─" * (width - 4)
        return [f"╭{edge}╮", *(f"│ {line.ljust(width - 6)} │" for line in cut), f"╰{edge}╯"]
    if style == "bullet":
        return [f"● {START}", f"  {json.dumps(result)}", f"  {END}"]
    return [START, json.dumps(result), END]


class Tui:
    """Draws everything anew for every frame, in raw mode, with bracketed paste."""

    def __init__(self, journal: Path | None, *, alternate: bool, deaf: bool, lost: int = 0) -> None:
        self.journal, self.alternate, self.deaf, self.lost = journal, alternate, deaf, lost
        self.lines: list[str] = ["Stand-in 1.0"]
        self.input, self.status = "", ""
        self.dialog: list[str] = []
        self.keys = ""
        self.size = os.get_terminal_size()
        self.frame = 0
        tty.setraw(0)
        sys.stdout.write(("\x1b[?1049h" if alternate else "") + "\x1b[?2004h\x1b[?25l\x1b[6n")
        self.draw()

    def draw(self) -> None:
        self.frame += 1
        spin = [f"{SPINNER[self.frame % 8]} {self.status} ({self.frame}s)"] if self.status else []
        box = self.dialog or ["╭──", f"│ > {self.input[-150:]}", "╰── type a task"]
        shown = [*self.lines, *spin, *box][-self.size.lines :]
        sys.stdout.write("\x1b[2J\x1b[H" + "\r\n".join(shown))
        sys.stdout.flush()

    def note(self, what: str, text: str) -> None:
        if self.journal is not None:
            with self.journal.open("a", encoding="utf-8") as file:
                file.write(json.dumps([what, text]) + "\n")

    def get(self, wait: float) -> str:
        if not self.keys and select.select([0], [], [], wait)[0]:
            self.keys += os.read(0, 65536).decode(errors="replace")
        one, self.keys = self.keys[:1], self.keys[1:]
        if one == "\x1b" and self.keys[:1] == "[":
            sequence = one
            while not sequence[-1:].isalpha() and not sequence.endswith("~"):
                sequence += self.get(1) if not self.keys else self.keys[:1]
                self.keys = self.keys[1:]
            return sequence
        return one

    def submission(self, seconds: float | None = None) -> str | None:
        """A whole task; None when the time is over. Enter inside a paste is a part of it."""
        last = None if seconds is None else time.monotonic() + seconds
        pasting = False
        while last is None or time.monotonic() < last:
            one = self.get(FRAME_SEC)
            if one in ("\x1b[200~", "\x1b[201~"):
                pasting = one == "\x1b[200~"
            elif one == "\r" and not pasting and self.lost:
                self.lost -= 1
            elif one == "\r" and not pasting:
                text, self.input = self.input, ""
                return self.submitted(text)
            elif one and not one.startswith("\x1b"):
                self.input += one
            if not self.keys and (one or self.status):
                self.draw()
        return None

    def submitted(self, text: str) -> str:
        self.note("task", text)
        if text.strip() == "/exit" and not self.deaf:
            raise Gone
        self.lines += [f"> {line}" for line in text.replace("\r", "\n").split("\n")]
        self.draw()
        return text

    def ask(self, lines: list[str]) -> bool:
        self.dialog = [*lines, "❯ 1. Yes", "  2. No (esc)"]
        self.draw()
        while not (one := self.get(FRAME_SEC)) or one.startswith("\x1b["):
            pass
        self.note("key", one)
        self.dialog = []
        self.say("allowed" if one in "1\ry" else "refused")
        return one in "1\ry"

    def yes_no(self, question: str) -> bool:
        return self.ask([f"{question} [y/N]"])

    def say(self, text: str) -> None:
        self.lines += text.split("\n")
        self.draw()

    def spin(self, text: str) -> None:
        self.status = text

    def close(self) -> None:
        sys.stdout.write("\x1b[?2004l\x1b[?25h" + ("\x1b[?1049l" if self.alternate else "\r\n"))
        sys.stdout.flush()


class Lines(Tui):
    """Prints and reads lines; the terminal itself shows what is typed. A task ends with a line that is a dot."""

    def __init__(self, journal: Path | None, *, deaf: bool) -> None:
        self.journal, self.deaf, self.status = journal, deaf, ""
        print("Stand-in 1.0, lines only")

    def submission(self, seconds: float | None = None) -> str | None:
        if seconds is not None:
            time.sleep(seconds)
            return None
        print("task> ", end="", flush=True)
        text: list[str] = []
        while (line := sys.stdin.readline().rstrip("\n")) != ".":
            if line == "/exit" and not self.deaf:
                raise Gone
            text.append(line)
        self.note("task", "\n".join(text))
        return "\n".join(text)

    def yes_no(self, question: str) -> bool:
        print(f"{question} [y/N] ", end="", flush=True)
        line = sys.stdin.readline().strip()
        self.note("key", line)
        self.say("allowed" if line == "y" else "refused")
        return line == "y"

    def ask(self, lines: list[str]) -> bool:
        return self.yes_no(" ".join(lines))

    def say(self, text: str) -> None:
        print(text, flush=True)

    def close(self) -> None:
        print("bye", flush=True)


def play(ui: Tui, step: str, style: str) -> None:
    kind, _, about = step.partition(":")
    if kind == "say":
        ui.say(about)
    elif kind == "spin":
        ui.spin("Thinking")
        ui.submission(float(about))
        ui.spin("")
    elif kind in ("mute", "hang"):
        ui.spin("Thinking" if kind == "hang" else "")
        ui.submission()
        ui.spin("")
    elif kind in ("ask", "yn"):
        (ui.yes_no if kind == "yn" else lambda text: ui.ask([text]))(f"Run the command {about or 'make'}?")
    elif kind == "ask-forever":
        for n in range(10_000):
            ui.yes_no(f"Run the command number {n}?")
    elif kind == "answer":
        ui.say("\n".join(block(style, os.get_terminal_size().columns)))
    elif kind == "child":
        code = "import signal,time;[signal.signal(n,signal.SIG_IGN) for n in (1,15)];print(flush=True);time.sleep(600)"
        child = subprocess.Popen(
            [sys.executable, "-c", code], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        child.stdout.readline()
        ui.note("child", str(child.pid))
    elif kind == "crash":
        os._exit(3)
    elif kind == "exit":
        raise Gone


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--look", default="tui")
    parser.add_argument("--trust", action="store_true")
    parser.add_argument("--deaf", action="store_true")
    parser.add_argument("--lost", type=int, default=0)
    parser.add_argument("--style", default="plain")
    parser.add_argument("--journal", type=Path)
    parser.add_argument("steps", nargs="*")
    given = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP) if given.deaf else ():
        signal.signal(number, signal.SIG_IGN)
    saved = termios.tcgetattr(0)
    if given.look == "line":
        ui: Tui = Lines(given.journal, deaf=given.deaf)
    else:
        ui = Tui(given.journal, alternate=given.look == "screen", deaf=given.deaf, lost=given.lost)
    try:
        ui.note("pid", str(os.getpid()))
        if given.trust and not ui.ask(["Do you trust the files in this folder?"]):
            raise Gone
        ui.submission()
        for step in given.steps:
            play(ui, step, given.style)
        while True:
            ui.submission()
    except Gone:
        ui.close()
    finally:
        termios.tcsetattr(0, termios.TCSANOW, saved)


if __name__ == "__main__":
    main()
