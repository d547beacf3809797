"""Places named in the lines of a log: a project file and a line, as tools and languages write them."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FILE = r"(?<![\w@.+~/\\-])(?:file://)?(?P<{0}file>(?:[A-Za-z]:)?[\w@.+~/\\-]*[\w+-]\.[A-Za-z]\w{{0,7}})"
# A place: a file name with an extension and a line, as written by most tools, Python, and compilers in brackets.
PLACE = re.compile(
    rf'File "(?P<pfile>[^"\n]+)", line (?P<pline>\d+)'
    rf"|{_FILE.format('c')}:(?:line )?(?P<cline>\d+)(?::\d+)?"
    rf"|{_FILE.format('b')}\((?P<bline>\d+)(?:,\d+)?\)"
)
_FOREIGN = re.compile(
    r"site-packages|dist-packages|node_modules|node:|/usr/(?:lib|include|local/go)|/rustc/|\.cargo/registry"
    r"|/lib/python3|<frozen |/go/src/|/go/pkg/mod/|/usr/lib/go"
    r"|\binternal/(?:main|modules|process|timers|bootstrap|deps|per_context|streams|test_runner)/"
    r"|\bat (?:[\w.]+/)?(?:java|javax|jdk|sun|kotlin|scala|groovy|org\.(?:junit|gradle|apache\.maven|opentest4j))\."
)
_FRAME_OF_JAVA = re.compile(r"at (?:[\w.-]+/)?(?P<package>(?:\w+\.)*)[A-Z][\w$]*\.[\w$<>]+\((?P<file>\w+\.\w+):\d+\)")
_TOPS = frozenset(
    {"src", "tests", "test", "include", "pkg", "cmd", "internal", "packages", "crates", "spec", "scripts"}
)


def is_foreign(line: str) -> bool:
    """Whether it is in other people's code: a library, or the language itself."""
    return _FOREIGN.search(line) is not None


def places(line: str) -> Iterator[str]:
    """Each `file:line` of the project that it names."""
    if is_foreign(line):
        return
    for match in PLACE.finditer(line):
        kind = next(kind for kind in "pcb" if match[f"{kind}file"])
        yield f"{match[f'{kind}file'].removeprefix('./')}:{match[f'{kind}line']}"


def files(line: str) -> Iterator[str]:
    """The files of those places, with the package's folders for a Java class."""
    java = _FRAME_OF_JAVA.search(line)
    if java is not None and not is_foreign(line):
        yield f"{java['package'].replace('.', '/')}{java['file']}"
        return
    yield from (plain_path(place.rpartition(":")[0]) for place in places(line))


def plain_path(text: str) -> str:
    """Relative to the repository as far as that is known; of a place elsewhere, only what projects commonly contain."""
    path = text.removeprefix("file://").replace("\\", "/").removeprefix("./")
    if not path.startswith(("/", "~")) and path[1:2] != ":":
        return path
    parts = path.split("/")
    top = next((at for at, part in enumerate(parts[:-1]) if part in _TOPS), len(parts) - 1)
    return "/".join(parts[top:])
