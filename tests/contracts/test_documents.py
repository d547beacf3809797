"""Files people write: every bad one is refused with a code and a sentence, YAML and TOML are read without surprises."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ganger.contracts.codes import CODES
from ganger.contracts.faults import load_manifest
from ganger.contracts.reading import documents
from ganger.contracts.reading.documents import read_document
from ganger.errors import InputError
from tests.contracts.contract_samples import MANIFEST

BAD_FILES = [
    ("x.json", b"", "FILE_EMPTY", "empty"),
    ("x.json", b" \n\t", "FILE_EMPTY", "empty"),
    ("x.json", b"\xef\xbb\xbf", "FILE_EMPTY", "empty"),
    ("x.json", b"\xff\xfe{\0}\0", "NOT_UTF8", "UTF-16"),
    ("x.json", b"\xfe\xff\0{\0}", "NOT_UTF8", "UTF-16"),
    ("x.json", b'{"a":"\xe9"}', "NOT_UTF8", "offset 6"),
    ("x.json", b'{"a":\0}', "BINARY_FILE", "offset 5"),
    ("x.json", b"\x89PNG\r\n\x1a\n\0", "BINARY_FILE", "NUL"),
    ("x.json", b"{", "INVALID_JSON", "line 1, column 2"),
    ("x.json", b'{\n "a": 1\n "b": 2}', "INVALID_JSON", "line 3, column 2"),
    ("x.json", b"{'a': 1}", "INVALID_JSON", "line 1"),
    ("x.json", b'{"a": 1} {', "INVALID_JSON", "column 10"),
    ("x.json", b'{"a": NaN}', "INVALID_JSON", "column 7"),
    ("x.json", b'{"a":\n -Infinity}', "INVALID_JSON", "line 2, column 2"),
    ("x.json", b'{"a": 1e999}', "INVALID_JSON", "finite"),
    ("x.json", b'{"a": ' + b"9" * 5000 + b"}", "INVALID_JSON", "4300"),
    ("x.json", b'{"a": "\\ud800"}', "INVALID_JSON", "surrogate"),
    ("x.json", b'{"a": 1,\n"a": 2}', "DUPLICATE_KEY", "line 2, column 1"),
    ("x.json", b'{"a": ' * 101 + b"1" + b"}" * 101, "NESTED_TOO_DEEP", "100"),
    ("x.json", b"[" * 200_000, "NESTED_TOO_DEEP", "deep"),
    ("x.json", b"[1]", "NOT_AN_OBJECT", "object"),
    ("x.json", b'"text"', "NOT_AN_OBJECT", "object"),
    ("x.txt", b"a: 1", "INVALID_JSON", "line 1"),
    ("x.yaml", b"", "FILE_EMPTY", "empty"),
    ("x.yaml", b"a: [", "INVALID_YAML", "line 2"),
    ("x.yaml", b"a: b: c", "INVALID_YAML", "column 5"),
    ("x.yaml", b"a:\n\t- b", "INVALID_YAML", "line 2, column 1"),
    ("x.yaml", b"a: \x01", "INVALID_YAML", "column 4"),
    ("x.yaml", b"a: &x 1", "INVALID_YAML", "anchors"),
    ("x.yaml", b"a: *x", "INVALID_YAML", "aliases"),
    ("x.yaml", b"a: &a [x]\nb: [*a, *a]", "INVALID_YAML", "anchors"),
    ("x.yaml", b"a: !!python/object:os.system x", "INVALID_YAML", "tags"),
    ("x.yaml", b"a: !!str 1", "INVALID_YAML", "tags"),
    ("x.yaml", b"a: 1\nb: 2\na: 3", "DUPLICATE_KEY", "line 3, column 1"),
    ("x.yaml", b"a: {b: 1, 'b': 2}", "DUPLICATE_KEY", "twice"),
    ("x.yaml", b"--- {a: 1}\n--- {b: 2}", "INVALID_YAML", "second document"),
    ("x.yaml", b"1: a", "INVALID_YAML", "key must be a string"),
    ("x.yaml", b"true: a", "INVALID_YAML", "key must be a string"),
    ("x.yaml", b"? [a]\n: b", "INVALID_YAML", "key must be a string"),
    ("x.yaml", b"a: .nan", "INVALID_YAML", "finite"),
    ("x.yaml", b"a: -.inf", "INVALID_YAML", "finite"),
    ("x.yaml", b"a: 1e999", "INVALID_YAML", "finite"),
    ("x.yaml", b"a: " + b"9" * 5000, "INVALID_YAML", "digits"),
    ("x.yaml", b"a: " + b"[" * 101 + b"]" * 101, "NESTED_TOO_DEEP", "100"),
    ("x.yaml", b"- a", "NOT_AN_OBJECT", "object"),
    ("x.yml", b"just text", "NOT_AN_OBJECT", "object"),
    ("x.toml", b"a = ", "INVALID_TOML", "line 1"),
    ("x.toml", b"a = 1\na = 2", "INVALID_TOML", "line 2"),
    ("x.toml", b"[t]\n[t]", "INVALID_TOML", "line 2"),
    ("x.toml", b"[t]\na = [1, {when = 2026-01-01}]", "INVALID_TOML", "t.a.1.when"),
    ("x.toml", b"a = inf", "INVALID_TOML", "finite"),
    ("x.toml", b"a = " + b"[" * 5000 + b"]" * 5000, "NESTED_TOO_DEEP", "deep"),
    ("x.toml", b"a" + b".a" * 200 + b" = 1", "NESTED_TOO_DEEP", "deep"),
]


@pytest.mark.parametrize(
    ("name", "content", "code", "word"), BAD_FILES, ids=[f"{c}-{i}" for i, (_, _, c, _) in enumerate(BAD_FILES)]
)
def test_a_bad_file_is_refused_with_code_and_place(
    name: str, content: bytes, code: str, word: str, tmp_path: Path
) -> None:
    """T01: the error names the file, the code and where to look; nothing else is ever raised."""
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_document(file)
    assert (caught.value.code, caught.value.source) == (code, str(file))
    assert code in CODES and word in caught.value.faults[0].message


@pytest.mark.parametrize(
    ("name", "code"),
    [("none.json", "FILE_NOT_FOUND"), ("", "NOT_A_FILE"), ("a\0b", "FILE_NOT_FOUND"), ("file/below", "FILE_NOT_FOUND"),
     ("pipe", "NOT_A_FILE"), ("loop", "FILE_UNREADABLE"), ("n" * 300, "FILE_UNREADABLE")],
)  # fmt: skip
def test_a_path_that_is_no_readable_file_is_refused(name: str, code: str, tmp_path: Path) -> None:
    """T01: missing, directory, pipe, link loop, impossible name: refused at once, never hanging."""
    (tmp_path / "file").write_text("{}")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InputError) as caught:
        read_document(tmp_path / name if name else tmp_path)
    assert caught.value.code == code


def test_a_file_beyond_the_limit_is_refused_unread(tmp_path: Path) -> None:
    """T01: 256 MB is the end; the file is not loaded to find out."""
    file = tmp_path / "huge.json"
    with file.open("wb") as handle:
        handle.truncate(documents.LARGEST_FILE + 1)
    with pytest.raises(InputError) as caught:
        read_document(file)
    assert caught.value.code == "FILE_TOO_LARGE"


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    """T01: no traceback for a file without permission (root may read everything)."""
    file = tmp_path / "secret.json"
    file.write_text("{}")
    file.chmod(0)
    if os.geteuid() == 0:
        assert read_document(file) == {}
        return
    with pytest.raises(InputError) as caught:
        read_document(file)
    assert caught.value.code == "FILE_UNREADABLE"


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    """T01: editors that write one do no harm."""
    for name, text in (("x.json", '{"a": 1}'), ("x.yaml", "a: 1"), ("x.toml", "a = 1")):
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
        assert read_document(tmp_path / name) == {"a": 1}


YAML_VALUES = [
    ("on", "on"), ("off", "off"), ("yes", "yes"), ("no", "no"), ("y", "y"), ("NO", "NO"),
    ("true", True), ("false", False), ("True", "True"), ("TRUE", "TRUE"), ("null", None), ("~", None), ("", None),
    ("12", 12), ("-3", -3), ("+3", 3), ("1.5", 1.5), ("1e3", 1000.0), ("0", 0),
    ("010", "010"), ("0o10", "0o10"), ("0x1F", "0x1F"), ("1_000", "1_000"), ("1:30", "1:30"), ("12:30:45", "12:30:45"),
    ("2026-01-01", "2026-01-01"), ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"), ("2.0.1", "2.0.1"),
    ("'2.0'", "2.0"), ('"true"', "true"), ("|\n  a\n  b\n", "a\nb\n"), (">\n  a\n  b\n", "a b\n"),
    ("[on, 1, {off: no}]", ["on", 1, {"off": "no"}]), ("=", "="), (".5", ".5"), ("1.", "1."), ("é ✓ 😀", "é ✓ 😀"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), YAML_VALUES)
def test_yaml_values_have_no_surprises(text: str, value: object, tmp_path: Path) -> None:
    """T01: true and false are the only booleans; dates, times, versions and odd numbers stay strings."""
    file = tmp_path / "x.yaml"
    file.write_text(f"key: {text}", encoding="utf-8")
    assert read_document(file) == {"key": value}


def test_yaml_keys_that_look_like_booleans_stay_strings(tmp_path: Path) -> None:
    """T01: `on:` is a key named on."""
    file = tmp_path / "x.yaml"
    file.write_text("on: 1\nno: 2\n'3': 4\n<<: 5\n")
    assert read_document(file) == {"on": 1, "no": 2, "3": 4, "<<": 5}


YAML = """
manifest_version: "2.0"
run_id: r
tasks:
  - {id: a, prompt_ref: a.md, depends_on: [], timeout_sec: 900, verify_profile: build}
"""
TOML = """
manifest_version = "2.0"
run_id = "r"
[[tasks]]
id = "a"
prompt_ref = "a.md"
depends_on = []
timeout_sec = 900
verify_profile = "build"
"""


def test_one_manifest_in_three_languages_is_one_manifest(tmp_path: Path) -> None:
    """T01: JSON, YAML and TOML give equal records."""
    (tmp_path / "m.yaml").write_text(YAML)
    (tmp_path / "m.toml").write_text(TOML)
    yaml, toml = load_manifest(tmp_path / "m.yaml"), load_manifest(tmp_path / "m.toml")
    assert yaml == toml and yaml.tasks[0].id == MANIFEST["tasks"][0]["id"]


def test_a_version_written_as_a_yaml_number_is_explained(tmp_path: Path) -> None:
    """T01: an unquoted 2.0 is a number in YAML; the fault says what was expected and found."""
    (tmp_path / "m.yaml").write_text(YAML.replace('"2.0"', "2.0"))
    with pytest.raises(InputError) as caught:
        load_manifest(tmp_path / "m.yaml")
    assert caught.value.code == "UNSUPPORTED_VERSION" and 'expected "2.0", found 2.0' in str(caught.value)
