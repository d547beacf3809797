"""The terminal's screen: known sequences give the text a person would see, and nothing makes it raise."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ganger.agents.pty.screen import TerminalScreen, joined, width_of


def shown(data: bytes, columns: int = 20, rows: int = 6) -> str:
    screen = TerminalScreen(columns, rows)
    screen.feed(data)
    return screen.text()


def everything(screen: TerminalScreen) -> list[str]:
    return [line for _, line in joined([*screen.take_gone(), *screen.visible()])]


SEQUENCES = [
    (b"plain\r\ntwo", "plain\ntwo"),
    (b"\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mx\x1b[m", "red x"),
    (b"\x1b]0;a title\x07text\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "textlink"),
    (b"abc\rX", "Xbc"),
    (b"abc\b\bX", "aXc"),
    (b"a\tb", "a       b"),
    (b"\x1b[3;5Hx", "\n\n    x"),
    (b"one\r\ntwo\x1b[Ax", "onex\ntwo"),
    (b"abcdef\x1b[3D\x1b[K", "abc"),
    (b"abcdef\x1b[3D\x1b[1K", "    ef"),
    (b"abcdef\x1b[2K\rz", "z"),
    (b"one\r\ntwo\x1b[2J\x1b[Hthree", "three"),
    (b"one\r\ntwo\x1b[H\x1b[J", ""),
    (b"abcd\x1b[1G\x1b[2P", "cd"),
    (b"abcd\x1b[2G\x1b[2@", "a  bcd"),
    (b"abcd\x1b[2G\x1b[2X", "a  d"),
    (b"a\x1b[4bz", "aaaaaz"),
    (b"1\r\n2\r\n3\x1b[2;1H\x1b[M", "1\n3"),
    (b"1\r\n2\r\n3\x1b[2;1H\x1b[Lnew", "1\nnew\n2\n3"),
    (b"1\r\n2\r\n3\x1b[1;1H\x1bM0", "0\n1\n2\n3"),
    (b"1\r\n2\r\n3\x1b[S", "2\n3"),
    (b"1\r\n2\x1b[T", "\n1\n2"),
    (b"\x1b(0lqk\x1b(B q", "┌─┐ q"),
    (b"ab\x1b7cd\x1b8X", "abXd"),
    (b"\x1b[?25l\x1b[?2026h\x1b[>4;1m\x1b[=1uok\x1b[?2026l", "ok"),
    (b"\x1bP1$r0m\x1b\\ok\x1b_app\x1b\\", "ok"),
    ("日本x".encode(), "日本x"),
    ("日本\rA".encode(), "A 本"),
    ("e\u0301a".encode(), "e\u0301a"),
    (b"\xff\xfeok", "\ufffd\ufffdok"),
    (b"first\x1b[?1049hinner", "inner"),
    (b"first\x1b[?1049hinner\x1b[?1049l more", "first more"),
    (b"\x1b[?7labcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrsz"),
    (b"old\x1bcnew", "new"),
]


@pytest.mark.parametrize(("data", "text"), SEQUENCES)
def test_a_sequence_shows_what_a_terminal_shows(data: bytes, text: str) -> None:
    """T25: movement, erasing, inserting, the other screen, wide characters."""
    assert shown(data) == text


@pytest.mark.parametrize(("data", "text"), SEQUENCES)
def test_it_is_the_same_byte_by_byte(data: bytes, text: str) -> None:
    """T25: output comes in pieces that end anywhere."""
    screen = TerminalScreen(20, 6)
    for n in range(len(data)):
        screen.feed(data[n : n + 1])
    assert screen.text() == text


def test_rows_that_the_terminal_wrapped_are_one_line() -> None:
    """T25: a long JSON line is read as it was written; one that just fills its row is not joined to the next."""
    assert shown(b"a" * 45 + b"\r\nnext") == "a" * 45 + "\nnext"
    assert shown(b"a" * 20 + b"\r\nnext") == "a" * 20 + "\nnext"
    assert shown(("a" * 19 + "日本").encode()) == "a" * 19 + "日本"
    assert shown(b"a" * 45 + b"\x1b[H" + b"b" * 20 + b"\x1b[2;1Hc\x1b[K") == "b" * 20 + "\nc\naaaaa"


def test_what_scrolls_off_is_kept_once_and_in_order() -> None:
    """T25: nothing of a long output is lost, also where lines are wrapped across the screen's edge."""
    lines = [f"line {n} " + "x" * (n % 40) for n in range(50)]
    screen = TerminalScreen(20, 6)
    gone = []
    for line in lines:
        screen.feed(line.encode() + b"\r\n")
        gone += screen.take_gone()
    assert [line for _, line in joined([*gone, *screen.visible()])] == [line.rstrip() for line in lines]


def test_a_scroll_region_leaves_its_surroundings_alone() -> None:
    """T25: a head and a foot stay while the middle moves."""
    screen = TerminalScreen(20, 6)
    screen.feed(b"head\x1b[6;1Hfoot\x1b[2;5r\x1b[2;1H" + b"\r\n".join(b"%d" % n for n in range(9)))
    assert screen.text() == "head\n5\n6\n7\n8\nfoot"
    assert [row.text() for row in screen.take_gone()] == ["0", "1", "2", "3", "4"]
    assert screen.first == 0


def test_a_program_that_asks_its_terminal_gets_an_answer() -> None:
    """T25: some wait for it before they draw anything."""
    screen = TerminalScreen(20, 6)
    screen.feed(b"ab\x1b[6n\x1b[c\x1b]11;?\x1b\\\x1b[?2026$p\x1b[5n")
    assert screen.take_replies() == b"\x1b[1;3R\x1b[?62;22c\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?2026;0$y\x1b[0n"
    assert screen.take_replies() == b""


def test_bracketed_paste_is_known_while_it_is_on() -> None:
    """T25: it decides how a prompt is typed."""
    screen = TerminalScreen()
    screen.feed(b"\x1b[?2004h\x1b[?1049h")
    assert (screen.pastes, screen.alternate) == (True, True)
    screen.feed(b"\x1b[?2004;1049l")
    assert (screen.pastes, screen.alternate) == (False, False)


def test_a_string_without_end_does_not_swallow_everything() -> None:
    """T25: a broken program must not blind the reader."""
    screen = TerminalScreen(20, 6)
    screen.feed(b"\x1b]0;" + b"x" * 70_000 + b"\r\n\x1b[2J\x1b[Hseen")
    assert "seen" in screen.text()


PRINTABLE = st.text(st.characters(categories=("L", "N", "P", "S"), max_codepoint=0x2FFFF), max_size=60)


@given(st.lists(PRINTABLE, max_size=30))
def test_text_without_escapes_passes_unchanged(lines: list[str]) -> None:
    """T25: whatever its length and width, joined where the terminal wrapped it."""
    lines = [line for line in lines if line and width_of(line[0])]
    screen = TerminalScreen(20, 6)
    screen.feed("\r\n".join(lines).encode())
    assert everything(screen) == lines


_SOUP = st.lists(
    st.one_of(
        st.sampled_from([b"\x1b[", b"\x1b", b"\x1b]", b"\x1bP", b";", b"?", b"\x07", b"\x1b\\", b"\x9b", b"\xe6\x97"]),
        st.builds(
            lambda numbers, final: b"\x1b[" + ";".join(map(str, numbers)).encode() + final.encode(),
            st.lists(st.integers(0, 10**10), max_size=3),
            st.sampled_from("@ABCDEFGHJKLMPSTXabcdefhlmnqrsu`"),
        ),
        st.sampled_from([b"\x1b[?%d%s" % (n, f) for n in (6, 7, 47, 1049, 2004) for f in (b"h", b"l")]),
        st.binary(max_size=8),
        st.sampled_from(["日本".encode(), b"words ", b"\n", b"\r", b"\t", b"\b", b"\x1bM", b"\x1bD", b"\x1bc"]),
    ),
    max_size=60,
)


@given(_SOUP, st.integers(2, 12), st.integers(2, 5))
def test_no_bytes_make_it_raise_or_lose_its_shape(pieces: list[bytes], columns: int, rows: int) -> None:
    """T25: what a program prints is untrusted."""
    screen = TerminalScreen(columns, rows)
    for piece in pieces:
        screen.feed(piece)
        screen.text()
    assert len(screen._now.rows) == rows
    assert all(len(row.cells) == columns for row in [*screen._main.rows, *screen._other.rows])
    assert 0 <= screen.cursor[0] < columns and 0 <= screen.cursor[1] < rows
