"""Every code the contracts emit, with what it means and what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Explanation:
    title: str
    meaning: str
    next_step: str


CODES: dict[str, Explanation] = {
    "NO_SENTINEL": Explanation(
        "no complete answer block",
        "The log holds no complete fenced block of the wanted kind, or the block is blank. A block without its end "
        "does not count.",
        "Read the end of the log. The agent may have crashed, hit a limit, or answered in prose; tell it to end with "
        "the block between its two sentinels, each on its own line.",
    ),
    "INVALID_JSON": Explanation(
        "not valid JSON",
        "The text is not JSON, even after markdown fences, comments and trailing commas were removed from an answer. "
        "NaN, Infinity, raw line breaks inside strings and single quotes are not JSON.",
        "Go to the line and column in the message. An agent should build the block with a JSON encoder.",
    ),
    "SCHEMA_VIOLATION": Explanation(
        "a value breaks the format",
        "A field has the wrong type or a value outside its limits, a key is given twice, or the answer is for "
        "another task.",
        "Change the value at the path in the message; `ganger schema` prints the format.",
    ),
    "MISSING_REQUIRED_FIELD": Explanation(
        "a required field is missing",
        "The format requires a field that the document lacks.",
        "Add the field at the path in the message; `ganger schema` prints the format.",
    ),
    "UNSUPPORTED_VERSION": Explanation(
        "another version of the format",
        'The version field is missing or is not "2.0".',
        'Write "2.0" as the version, and check the rest against `ganger schema`.',
    ),
    "UNKNOWN_FIELD": Explanation(
        "a field the format does not have",
        "Unknown fields are refused, because a misspelt field would silently do nothing.",
        "Correct the name or remove the field. A task's own data belongs under its `metadata`.",
    ),
    "DUPLICATE_KEY": Explanation(
        "a key is given twice",
        "One object holds the same key twice, so one of the two values would be lost.",
        "Remove one of them.",
    ),
    "NESTED_TOO_DEEP": Explanation(
        "nested too deep",
        "Arrays and objects are nested deeper than any of the formats needs.",
        "Check how the file was made; flatten it.",
    ),
    "BAD_TASK_ID": Explanation(
        "a task id that cannot be a file name",
        "Task ids become file names. Slashes, control and invisible characters, leading and trailing spaces, `.`, `..` "
        "and more than 200 bytes are refused.",
        "Choose a short id of letters, digits, dots, dashes and underscores.",
    ),
    "BAD_RUN_ID": Explanation(
        "a run id that cannot be a folder name",
        "The run id becomes a folder name and follows the rules of task ids.",
        "Choose a short id of letters, digits, dots, dashes and underscores.",
    ),
    "CASE_TWIN": Explanation(
        "two ids that some file systems cannot tell apart",
        "Two task ids differ only in upper and lower case or in the Unicode form of a letter.",
        "Rename one of the two tasks.",
    ),
    "BAD_METADATA": Explanation(
        "a known metadata key with a wrong value",
        "Metadata is free, except for the keys Ganger itself reads: role, kind, repo, mode, files_create, "
        "files_modify, files_read, expected_files, stage, max_attempts, may_change_gates, may_break_interface, "
        "allow_shrinkage, review, expects_ci, component, complexity, critical_path, security, cross_repo.",
        "Correct the value, or use another key for your own data.",
    ),
    "MORE_FAULTS": Explanation(
        "more faults than are shown",
        "The document has too many faults for one list.",
        "Fix the faults that are shown, then check again.",
    ),
    "FILE_NOT_FOUND": Explanation("no such file", "There is no file at this path.", "Check the path and its spelling."),
    "FILE_UNREADABLE": Explanation(
        "the file cannot be read",
        "The system refused to open or read the file.",
        "Check its permissions and the disk.",
    ),
    "NOT_A_FILE": Explanation(
        "not a regular file",
        "The path names a directory, a pipe or a device.",
        "Name a regular file.",
    ),
    "FILE_EMPTY": Explanation("the file is empty", "The file holds nothing but white space.", "Write its content."),
    "FILE_TOO_LARGE": Explanation(
        "the file is too large",
        "The file is larger than 256 MB and is not read.",
        "Check that it is the right file; split a huge manifest into several runs.",
    ),
    "BINARY_FILE": Explanation(
        "not a text file",
        "The file holds NUL bytes, so it is not text.",
        "Check that it is the right file; save it as UTF-8.",
    ),
    "NOT_UTF8": Explanation("not UTF-8", "The file is not encoded in UTF-8.", "Save it as UTF-8."),
    "INVALID_YAML": Explanation(
        "not acceptable YAML",
        "The text is not YAML, or uses a part that is refused: tags, anchors, aliases, several documents, keys that "
        "are not strings, numbers that are not finite.",
        "Go to the line and column in the message; quote texts that look like something else.",
    ),
    "INVALID_TOML": Explanation(
        "not acceptable TOML",
        "The text is not TOML, or holds a date or a number that is not finite.",
        "Go to the line and column in the message; write dates as strings.",
    ),
    "NOT_AN_OBJECT": Explanation(
        "no object at the top level",
        "The document is an array or a single value, where named fields were expected.",
        "Wrap the content in an object; `ganger schema` prints the format.",
    ),
}
