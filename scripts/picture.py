"""The picture of the README: the real demo on a real terminal of 100 columns, drawn as docs/demo.svg."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "demo.svg"
SHOWN_FOLDER = "/tmp/ganger-demo"
COLUMNS, ROWS = 100, 60
SCENES = (("demo", "--keep", SHOWN_FOLDER), ("why", "rounding"))
LEFT_OUT_FROM = "Next steps:"
LONGEST_SEC = 120

DARK, LIGHT, RED, GREEN = (22, 24, 29), (214, 218, 224), (229, 105, 107), (126, 200, 120)
YELLOW, BLUE, MAGENTA, CYAN = (224, 182, 92), (103, 160, 232), (198, 133, 219), (96, 190, 200)
THEME = TerminalTheme(DARK, LIGHT, [DARK, RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN, LIGHT])

FRAME = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<title>ganger demo</title>
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; font-weight: bold; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""

MOVE = re.compile(r"\x1b\[(?P<count>\d*)(?P<kind>[A-HJKfhlsu])|\x1b\[\?\d+[hl]|(?P<plain>[\r\n])")


def on_a_terminal(arguments: Sequence[str], folder: Path) -> str:
    """What `ganger ARGUMENTS` prints on a terminal, in `folder`."""
    lead, follow = pty.openpty()
    termios.tcsetwinsize(follow, (ROWS, COLUMNS))
    home = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "LANG": "C.UTF-8", "TERM": "xterm-256color"}
    ganger = str(Path(sys.executable).with_name("ganger"))
    with subprocess.Popen(
        [ganger, *arguments], stdin=follow, stdout=follow, stderr=follow, env=home, cwd=folder
    ) as run:
        os.close(follow)
        said = b"".join(chunks(lead))
    os.close(lead)
    if run.returncode != 0:
        raise SystemExit(f"ganger {' '.join(arguments)} ended with {run.returncode}:\n{said.decode(errors='replace')}")
    return said.decode()


def chunks(descriptor: int) -> Iterator[bytes]:
    """Until the other side is closed, which Linux tells as an error."""
    while select.select([descriptor], [], [], LONGEST_SEC)[0]:
        try:
            data = os.read(descriptor, 1 << 16)
        except OSError:
            return
        if not data:
            return
        yield data


def last_screen(said: str) -> list[str]:
    """The lines that stay once everything drawn over has been drawn over; colours are kept as they came."""
    lines, row, at = [""], 0, 0
    for move in MOVE.finditer(said):
        lines[row] += said[at : move.start()]
        at = move.end()
        if move["plain"] == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif move["kind"] == "A":
            row = max(0, row - int(move["count"] or 1))
        elif move["kind"] == "K":
            lines[row] = ""
    return [*lines[:row], lines[row] + said[at:]]


def scene(arguments: Sequence[str], said: str, folder: Path) -> list[Text]:
    prompt = Text.assemble(("$ ", "green"), (f"ganger {' '.join(arguments)}", "bold"))
    shown = last_screen(said.partition(LEFT_OUT_FROM)[0].replace(str(folder), SHOWN_FOLDER))
    while shown and not shown[-1].strip():
        shown.pop()
    return [prompt, *(Text.from_ansi(line) for line in shown), Text()]


def draw(lines: Sequence[Text]) -> str:
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        line.truncate(COLUMNS, overflow="ellipsis")
        console.print(line, soft_wrap=True, highlight=False)
    return console.export_svg(title="ganger demo", theme=THEME, code_format=FRAME, unique_id="ganger")


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "demo"
        folder.mkdir()
        lines: list[Text] = []
        for arguments in SCENES:
            real = [str(folder) if word == SHOWN_FOLDER else word for word in arguments]
            lines += scene(arguments, on_a_terminal(real, folder), folder)
    PICTURE.write_text(draw(lines[:-1]), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}: {len(lines) - 1} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
