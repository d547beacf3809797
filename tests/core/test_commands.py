"""Commands without a shell: which texts run, as which programs, where, and which are refused with which code."""

from __future__ import annotations

import shlex
import subprocess
import time

import pytest
from hypothesis import given, settings, strategies as st

from ganger.core.verify.commands import COMMAND_CODES, DEFAULT_DENY, CommandFault, CommandStep, Script, parse_command

GOOD: list[tuple[str, list[tuple[list[str], str]]]] = [
    ("pytest", [(["pytest"], ".")]),
    ("  python  -m\tunittest ", [(["python", "-m", "unittest"], ".")]),
    ("echo 'a b' c", [(["echo", "a b", "c"], ".")]),
    ('echo "a b" c', [(["echo", "a b", "c"], ".")]),
    ("echo a\\ b", [(["echo", "a b"], ".")]),
    ("echo a'b'\"c\"\\d", [(["echo", "abcd"], ".")]),
    ("echo '' \"\"", [(["echo", "", ""], ".")]),
    ("grep 'a|b' x", [(["grep", "a|b", "x"], ".")]),
    ('grep "a|b;c<d>e&f" x', [(["grep", "a|b;c<d>e&f", "x"], ".")]),
    ("echo '$(date)' \"`date`\"", [(["echo", "$(date)", "`date`"], ".")]),
    ('echo \'$HOME\' "${HOME}" "$HOME"', [(["echo", "$HOME", "${HOME}", "$HOME"], ".")]),
    ('echo "a && b"', [(["echo", "a && b"], ".")]),
    (
        "echo a\\|b \\; \\& \\< \\> \\( \\) \\# \\$x \\`",
        [(["echo", "a|b", ";", "&", "<", ">", "(", ")", "#", "$x", "`"], ".")],
    ),
    ('echo "\\$x \\" \\\\ \\n \\`"', [(["echo", '$x " \\ \\n `'], ".")]),
    ("echo 'it'\\''s'", [(["echo", "it's"], ".")]),
    ("python -c \"import a\nprint('b')\"", [(["python", "-c", "import a\nprint('b')"], ".")]),
    ("python -c 'a\tb'", [(["python", "-c", "a\tb"], ".")]),
    ("a && b", [(["a"], "."), (["b"], ".")]),
    ("a&&b&&c", [(["a"], "."), (["b"], "."), (["c"], ".")]),
    ("cd sub && make", [(["make"], "sub")]),
    ("cd a/b && x && y", [(["x"], "a/b"), (["y"], "a/b")]),
    ("cd a && cd b && x", [(["x"], "a/b")]),
    ("cd a && x && cd .. && y", [(["x"], "a"), (["y"], ".")]),
    ("cd ./a/../b && x", [(["x"], "b")]),
    ("cd 'a b' && x", [(["x"], "a b")]),
    ("cd . && x", [(["x"], ".")]),
    ("ls *.py ?x [a-z] {a,b} ~ ~/x", [(["ls", "*.py", "?x", "[a-z]", "{a,b}", "~", "~/x"], ".")]),
    ("echo a#b", [(["echo", "a#b"], ".")]),
    ("echo '#' b", [(["echo", "#", "b"], ".")]),
    ("echo 5$ $ a$", [(["echo", "5$", "$", "a$"], ".")]),
    ("env A=b pytest", [(["env", "A=b", "pytest"], ".")]),
    ("make CC=gcc", [(["make", "CC=gcc"], ".")]),
    ("./run.sh --flag=x", [(["./run.sh", "--flag=x"], ".")]),
    ("[ -f x ]", [(["[", "-f", "x", "]"], ".")]),
    ("echo \u00e9\u4e2d\u6587", [(["echo", "\u00e9\u4e2d\u6587"], ".")]),
    ("timeout 5 grep sudo notes", [(["timeout", "5", "grep", "sudo", "notes"], ".")]),
    ("rm -rf /tmp/x", [(["rm", "-rf", "/tmp/x"], ".")]),
    ("git commit -m push", [(["git", "commit", "-m", "push"], ".")]),
    ("sh -c 'a | b'", [(["sh", "-c", "a | b"], ".")]),
]

BAD: list[tuple[str, str, int]] = [
    ("a | b", "COMMAND_SHELL_OPERATOR", 2),
    ("a || b", "COMMAND_SHELL_OPERATOR", 2),
    ("a |& b", "COMMAND_SHELL_OPERATOR", 2),
    ("a ; b", "COMMAND_SHELL_OPERATOR", 2),
    ("a;", "COMMAND_SHELL_OPERATOR", 1),
    ("a < b", "COMMAND_SHELL_OPERATOR", 2),
    ("a > b", "COMMAND_SHELL_OPERATOR", 2),
    ("a >> b", "COMMAND_SHELL_OPERATOR", 2),
    ("a 2>&1", "COMMAND_SHELL_OPERATOR", 3),
    ("a &", "COMMAND_SHELL_OPERATOR", 2),
    ("a &&& b", "COMMAND_SHELL_OPERATOR", 4),
    ("a `b`", "COMMAND_SHELL_OPERATOR", 2),
    ("a $(b)", "COMMAND_SHELL_OPERATOR", 2),
    ("a x$(b)", "COMMAND_SHELL_OPERATOR", 3),
    ("(a)", "COMMAND_SHELL_OPERATOR", 0),
    ("a <(b)", "COMMAND_SHELL_OPERATOR", 2),
    ("a\nb", "COMMAND_SHELL_OPERATOR", 1),
    ("a \\\nb", "COMMAND_SHELL_OPERATOR", 2),
    ("a # note", "COMMAND_SHELL_OPERATOR", 2),
    ("echo $'a'", "COMMAND_SHELL_OPERATOR", 5),
    ("echo $HOME", "COMMAND_VARIABLE", 5),
    ("echo ${HOME}", "COMMAND_VARIABLE", 5),
    ("echo a$1", "COMMAND_VARIABLE", 6),
    ("echo $?", "COMMAND_VARIABLE", 5),
    ("source x", "COMMAND_BUILTIN", 0),
    (". x", "COMMAND_BUILTIN", 0),
    ("export A=b", "COMMAND_BUILTIN", 0),
    ("a && eval b", "COMMAND_BUILTIN", 5),
    ("exec a", "COMMAND_BUILTIN", 0),
    ("set -e && a", "COMMAND_BUILTIN", 0),
    ("! grep x y", "COMMAND_BUILTIN", 0),
    ("ulimit -n 5 && a", "COMMAND_BUILTIN", 0),
    ("if a", "COMMAND_BUILTIN", 0),
    ("A=b pytest", "COMMAND_ASSIGNMENT", 0),
    ("a && B=c", "COMMAND_ASSIGNMENT", 5),
    ("", "COMMAND_EMPTY", 0),
    ("  \t", "COMMAND_EMPTY", 0),
    ("&& a", "COMMAND_EMPTY", 0),
    ("a &&", "COMMAND_EMPTY", 4),
    ("a && && b", "COMMAND_EMPTY", 4),
    ("'' a", "COMMAND_EMPTY", 0),
    ("cd x", "COMMAND_EMPTY", 0),
    ("a && cd x", "COMMAND_EMPTY", 5),
    ("cd && a", "COMMAND_BAD_DIRECTORY", 0),
    ("cd /tmp && a", "COMMAND_BAD_DIRECTORY", 0),
    ("cd .. && a", "COMMAND_BAD_DIRECTORY", 0),
    ("cd a && cd ../.. && b", "COMMAND_BAD_DIRECTORY", 8),
    ("cd - && a", "COMMAND_BAD_DIRECTORY", 0),
    ("cd ~ && a", "COMMAND_BAD_DIRECTORY", 0),
    ("cd ~/x && a", "COMMAND_BAD_DIRECTORY", 0),
    ("cd a b && c", "COMMAND_BAD_DIRECTORY", 0),
    ("cd '' && c", "COMMAND_BAD_DIRECTORY", 0),
    (f"cd {'a/' * 600} && c", "COMMAND_BAD_DIRECTORY", 0),
    ("echo 'a", "COMMAND_QUOTE", 5),
    ('echo "a', "COMMAND_QUOTE", 5),
    ('echo "a\\"', "COMMAND_QUOTE", 5),
    ("echo a\\", "COMMAND_QUOTE", 6),
    ("echo a\0b", "COMMAND_BAD_CHARACTER", 6),
    ("echo 'a\x1b[0m'", "COMMAND_BAD_CHARACTER", 7),
    ("echo a\r\n", "COMMAND_BAD_CHARACTER", 6),
    ("echo \ud800", "COMMAND_BAD_CHARACTER", 5),
    ("echo \x85", "COMMAND_BAD_CHARACTER", 5),
]

DENIED = [
    *("sudo ls", "/usr/bin/sudo ls", "a && sudo ls", "a | sudo ls", "a; sudo ls", "echo $(sudo ls)", "`sudo ls`"),
    *("env sudo ls", "env -i -u X A=b sudo ls", "A=b sudo ls", "nice -n 5 sudo ls", "nohup sudo ls", "exec sudo ls"),
    *("timeout -k 5 10 sudo ls", "timeout --signal=KILL 10 sudo ls", "xargs -n 1 sudo", "nice timeout 5 env sudo ls"),
    *("sh -c 'sudo ls'", 'bash -lc "a && sudo ls"', "bash -o pipefail -c 'a | sudo ls'", "env bash -c 'sudo ls'"),
    *("sh -c 'sh -c \"sudo ls\"'", "env -S 'sudo ls'", "env -Ssudo", "env --split-string='sudo ls'", "s'ud'o ls"),
    *("git push", "git push origin main", "git -C x push", "git -c a=b push", "git --git-dir=x push", "sudo 'unclosed"),
    *("rm -rf /", "rm -fr /", "rm -r -f /", "rm -rf -- /", "rm / -rf", "rm -rfv /", "rm -rf / && a", "mkfs.ext4 x"),
    *("env " * 9 + "sudo ls", "sudo \0", "sudo |", "if sudo ls", "! sudo ls", "reboot", "sh -c 'cd x && reboot'"),
]


@pytest.mark.parametrize(("text", "steps"), GOOD)
def test_a_good_command_becomes_the_programs_it_names(text: str, steps: list[tuple[list[str], str]]) -> None:
    """W06: quotes make plain text, `&&` splits, `cd x &&` sets the directory."""
    expected = Script(tuple(CommandStep(tuple(argv), cwd) for argv, cwd in steps))
    assert parse_command(text, deny=DEFAULT_DENY) == expected


@pytest.mark.parametrize(("text", "code", "position"), BAD)
def test_a_bad_command_is_refused_with_its_code_and_place(text: str, code: str, position: int) -> None:
    """W06: shell operators, builtins, variables, bad directories and characters are format errors."""
    fault = parse_command(text, deny=DEFAULT_DENY)
    assert isinstance(fault, CommandFault)
    assert (fault.code, fault.position) == (code, position)
    assert fault.hint and str(position) in fault.message


@pytest.mark.parametrize("text", DENIED)
def test_a_denied_program_is_found_wherever_it_hides_and_before_any_other_fault(text: str) -> None:
    """W06: the deny list is checked first, also behind wrappers and inside the text of a shell."""
    fault = parse_command(text, deny=DEFAULT_DENY)
    assert isinstance(fault, CommandFault)
    assert fault.code == "COMMAND_DENIED"


@pytest.mark.parametrize("text", DENIED)
def test_without_its_entry_the_deny_list_stops_nothing(text: str) -> None:
    """W06: what is denied is denied by the list alone (9 wrappers in each other cannot be checked and stay refused)."""
    outcome = parse_command(text, deny=())
    assert isinstance(outcome, Script) or outcome.code != "COMMAND_DENIED" or text.startswith("env env")


@pytest.mark.parametrize(
    "text", ["visudo x", "echo sudo", "grep -r 'git push' .", "git log push", "rm -f /", "rm -r build"]
)
def test_the_deny_list_matches_programs_and_not_mere_words(text: str) -> None:
    """W06: a denied word as an argument, or as part of a name, is no denied program."""
    assert isinstance(parse_command(text, deny=DEFAULT_DENY), Script)


def test_more_nested_shells_than_can_be_checked_are_refused() -> None:
    """W06: a limit of the deny check closes the door, it does not open it."""
    text = "true"
    for _ in range(6):
        text = f"sh -c {shlex.quote(text)}"
    fault = parse_command(text, deny=DEFAULT_DENY)
    assert isinstance(fault, CommandFault) and fault.code == "COMMAND_DENIED"


def test_every_code_is_explained_and_every_explained_code_occurs() -> None:
    """W06: the table for `ganger explain` and the parser name the same codes."""
    assert {code for _, code, _ in BAD} | {"COMMAND_DENIED"} == set(COMMAND_CODES)
    assert all(text.strip() for entry in COMMAND_CODES.values() for text in entry)


SAFE_WORDS = st.text(st.sampled_from("ab-._/=:,'\" \\*~%@+"), max_size=30)
HOSTILE = st.text(st.sampled_from("ab cd/.&|;<>()$`'\"\\#=\n\t\0\ud800~-") | st.characters(), max_size=60)


@given(HOSTILE)
def test_no_text_makes_the_parser_raise(text: str) -> None:
    """W06: the answer is always a script or a fault whose code is known."""
    outcome = parse_command(text, deny=DEFAULT_DENY)
    if isinstance(outcome, CommandFault):
        assert outcome.code in COMMAND_CODES and 0 <= outcome.position <= len(text)
    else:
        assert outcome.steps and all(step.argv[0] for step in outcome.steps)


@given(st.lists(SAFE_WORDS, min_size=1, max_size=3))
def test_safe_texts_are_read_as_shlex_reads_them(parts: list[str]) -> None:
    """W06: word splitting is the well-known one, part by part."""
    parts = [f"prog {part}" for part in parts]
    outcome = parse_command(" && ".join(parts), deny=())
    try:
        expected = [tuple(shlex.split(part)) for part in parts]
    except ValueError:
        return
    assert isinstance(outcome, Script)
    assert [step.argv for step in outcome.steps] == expected


@settings(max_examples=40, deadline=None)
@given(
    st.text(st.sampled_from("ab-./=:,'\" \\%@+$`"), max_size=25).filter(
        lambda text: "$" not in text and "`" not in text
    )
)
def test_accepted_words_are_the_words_a_real_shell_sees(text: str) -> None:
    """W06: a command that runs here means what it means in sh."""
    outcome = parse_command(f"printf '%s\\0' {text}", deny=())
    if isinstance(outcome, Script):
        words = outcome.steps[0].argv[2:] or ("",)
        shell = subprocess.run(["sh", "-c", f"printf '%s\\0' {text}"], capture_output=True, check=True)
        assert shell.stdout.decode() == "".join(f"{word}\0" for word in words)


@pytest.mark.brief(6)
@pytest.mark.parametrize(
    "piece",
    [
        "a ",
        "a && ",
        "cd a && x && cd .. && ",
        "'",
        '"',
        '\\"',
        "\\",
        "$",
        "$(",
        "env ",
        "sh -c '",
        "a'b'",
        "#",
        "|",
        "A=b ",
        "-x ",
    ],
)
def test_reading_takes_time_in_proportion_to_the_text(piece: str) -> None:
    """W06: 200,000 characters of anything are read in a moment; a quadratic reader would take hours."""
    text = "env " + piece * (200_000 // len(piece))
    began = time.process_time()
    parse_command(text, deny=DEFAULT_DENY)
    assert time.process_time() - began < 8
