"""Reads the documents people write: JSON, YAML or TOML by suffix; every bad file is refused with a sentence."""

from __future__ import annotations

import codecs
import math
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from ganger.contracts.reading import strict_json
from ganger.contracts.reading.strict_json import DocumentFault
from ganger.errors import Fault, InputError

LARGEST_FILE = 256 * 1024 * 1024

_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_document(path: Path) -> dict[str, object]:
    """The object a file holds; an InputError names what is wrong with the file."""
    try:
        value = _parse(path.suffix.lower(), _decode(_read(path)))
    except DocumentFault as fault:
        raise InputError(str(path), [Fault("", fault.code, str(fault))]) from None
    except RecursionError:
        raise InputError(str(path), [Fault("", "NESTED_TOO_DEEP", "values are nested too deep")]) from None
    if not isinstance(value, dict):
        message = "the file must hold an object (named fields) at its top level"
        raise InputError(str(path), [Fault("", "NOT_AN_OBJECT", message)])
    return value


_MOST_CUTS = 200


def readable_part(path: Path) -> tuple[dict[str, object], str]:
    """The values of a broken TOML file before its fault, and its whole text if it can be read.

    For readers that only search for something; no action is based on it.
    """
    try:
        text = _read(path).decode("utf-8", "replace")
    except DocumentFault:
        return {}, ""
    lines = text.splitlines(keepends=True)
    last = len(lines)
    for _ in range(_MOST_CUTS):
        try:
            value = _read_toml("".join(lines[:last]))
        except DocumentFault as fault:
            # A missing closing quote or bracket is noticed far below the place where the value begins.
            last = min(last, fault.line or last) - 1
        except RecursionError:
            break
        else:
            return (value, text) if isinstance(value, dict) else ({}, text)
        if last <= 0:
            break
    return {}, text


def _parse(suffix: str, text: str) -> object:
    if suffix in (".yaml", ".yml"):
        from ganger.contracts.reading.yaml_reader import read_yaml

        return read_yaml(text)
    if suffix == ".toml":
        return _read_toml(text)
    return strict_json.loads(text)


def _read(path: Path) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        raise DocumentFault("FILE_NOT_FOUND", "no such file; check the path") from None
    except ValueError:
        raise DocumentFault("FILE_NOT_FOUND", "the path holds a NUL character, so no such file can exist") from None
    except OSError as error:
        raise DocumentFault("FILE_UNREADABLE", f"the file cannot be opened: {error.strerror}") from None
    try:
        return _read_open(handle)
    except OSError as error:
        raise DocumentFault("FILE_UNREADABLE", f"the file cannot be read: {error.strerror}") from None
    finally:
        os.close(handle)


def _read_open(handle: int) -> bytes:
    found = os.fstat(handle)
    if stat.S_ISDIR(found.st_mode):
        raise DocumentFault("NOT_A_FILE", "this is a directory; name the file inside it")
    if not stat.S_ISREG(found.st_mode):
        raise DocumentFault("NOT_A_FILE", "this is not a regular file")
    if found.st_size > LARGEST_FILE:
        raise DocumentFault("FILE_TOO_LARGE", f"the file has {found.st_size} bytes; at most {LARGEST_FILE} are read")
    with os.fdopen(handle, "rb", closefd=False) as file:
        return file.read(LARGEST_FILE)


def _decode(raw: bytes) -> str:
    if raw.startswith(_UTF16):
        raise DocumentFault("NOT_UTF8", "the file is UTF-16; save it as UTF-8")
    raw = raw.removeprefix(codecs.BOM_UTF8)
    if not raw.strip():
        raise DocumentFault("FILE_EMPTY", "the file is empty")
    if (place := raw.find(b"\0")) >= 0:
        raise DocumentFault("BINARY_FILE", f"the file holds a NUL byte at offset {place}, so it is not text")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the file is not UTF-8: byte 0x{raw[error.start]:02x} at offset {error.start}; save it as UTF-8"
        raise DocumentFault("NOT_UTF8", message) from None


def _read_toml(text: str) -> object:
    import tomllib

    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _TOML_PLACE.search(message)
        line, column = (int(place[1]), int(place[2])) if place and place[1] else (text.count("\n") + 1, 1)
        raise DocumentFault("INVALID_TOML", _TOML_PLACE.sub("", message), line, column) from None
    except ValueError:
        raise DocumentFault("INVALID_TOML", "a number has too many digits") from None
    _check_toml(value)
    return value


def _check_toml(value: dict[str, object]) -> None:
    level: list[tuple[str, object]] = [("", value)]
    for _ in range(strict_json.MAX_DEPTH):
        level = [child for path, parent in level for child in _toml_children(path, parent)]
        if not level:
            return
    raise DocumentFault("NESTED_TOO_DEEP", f"values are nested more than {strict_json.MAX_DEPTH} deep")


def _toml_children(path: str, parent: object) -> Iterator[tuple[str, object]]:
    """The tables and arrays inside a value; leaf types that JSON lacks are refused."""
    items = parent.items() if isinstance(parent, dict) else enumerate(parent) if isinstance(parent, list) else ()
    for key, child in items:
        place = f"{path}.{key}" if path else str(key)
        if isinstance(child, dict | list):
            yield place, child
        elif isinstance(child, float) and not math.isfinite(child):
            raise DocumentFault("INVALID_TOML", f"{place}: {child} is not a finite number")
        elif not isinstance(child, str | bool | int | float):
            raise DocumentFault("INVALID_TOML", f"{place}: dates and times must be written as strings, in quotes")
