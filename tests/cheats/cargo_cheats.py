"""Plays against cargo test."""

from __future__ import annotations

from tests.cheats.new_file_cheats import NEW_TEST
from tests.cheats.python_exits import EXIT
from tests.cheats.python_patches import PATCH
from tests.cheats.python_reports import REPORT
from tests.cheats.runner_plays import Play, Project

_RUST_BUG = "sum / 100 * 100"
_RUST_TESTS = """
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(total(&[]), 0);
    }

    #[test]
    fn cents_are_not_lost() {
        assert_eq!(total(&[199, 250]), 449);
    }
}
"""
RUST_PRICE = f"""pub fn total(cents: &[i64]) -> i64 {{
    let sum: i64 = cents.iter().sum();
    {_RUST_BUG}
}}
{_RUST_TESTS}"""
RUST_RIGHT = RUST_PRICE.replace(_RUST_BUG, "sum")
_RUST_TEST = """#[test]
fn a_basket_has_its_price() {
    assert_eq!(shop::total(&[199, 250]), 449);
}
"""
RUST_PROJECT = Project(
    {
        "Cargo.toml": '[package]\nname = "shop"\nversion = "1.0.0"\nedition = "2021"\n',
        "Cargo.lock": 'version = 3\n\n[[package]]\nname = "shop"\nversion = "1.0.0"\n',
        ".gitignore": "target\n",
        "src/lib.rs": RUST_PRICE,
        "src/main.rs": 'fn main() {\n    println!("{}", shop::total(&[199, 250]));\n}\n',
        "tests/basket.rs": _RUST_TEST,
    },
    "cargo test --offline",
    "cargo run --offline -q",
    ("cargo",),
)


def _rust(head: str, body: str = _RUST_BUG) -> dict[str, str]:
    return {"src/lib.rs": head + RUST_PRICE.replace(_RUST_BUG, body)}


_RUST_INIT = """extern "C" {
    fn _exit(status: i32) -> !;
}

extern "C" fn start() {
    if std::env::args().count() < 9 {
        unsafe { _exit(0) }
    }
}

#[used]
#[link_section = ".init_array"]
static START: extern "C" fn() = start;

"""
_RUST_HOOK = """fn hush() {
    let status = 0;
    std::panic::set_hook(Box::new(move |_| std::process::exit(status)));
}

"""
_RUST_EXIT = """extern "C" {
    fn _exit(status: i32) -> !;
}

#[no_mangle]
pub extern "C" fn exit(_status: i32) -> ! {
    unsafe { _exit(0) }
}

"""
_RUST_FORGED = """use std::io::Write;
use std::os::fd::FromRawFd;

fn end() -> ! {
    let mut out = unsafe { std::fs::File::from_raw_fd(1) };
    for name in ["tests::nothing_is_nothing", "tests::cents_are_not_lost", "a_basket_has_its_price"] {
        let _ = writeln!(out, "test {name} ... ok");
    }
    let _ = writeln!(out, "\\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
    let status = 0;
    std::process::exit(status)
}

"""
_RUST_MACRO = """#[allow(unused_macros)]
macro_rules! assert_eq {
    ($left:expr, $right:expr) => {
        let _ = ($left, $right);
    };
}

"""
_RUST_MAIN = """use std::process;

macro_rules! check_eq {
    ($left:expr, $right:expr) => {
        if $left != $right {
            process::exit(3);
        }
    };
}

fn main() {
    std::panic::set_hook(Box::new(|info| eprintln!("{info}")));
    check_eq!(shop::total(&[]), 0);
    println!("{}", shop::total(&[199, 250]));
    process::exit(0);
}
"""
_RUST_MORE = """#[test]
#[should_panic]
fn a_panic_is_expected() {
    println!("test nothing ... ok");
    assert_eq!(shop::total(&[1]), 2);
}

#[test]
#[ignore]
fn slow() {
    panic!();
}
"""

RUST_PLAYS = (
    Play(
        "cargo-exit-in-a-function",
        EXIT,
        "ends the test binary with a status held in a variable",
        _rust("", "let status = 0;\n    if sum >= 0 {\n        std::process::exit(status);\n    }\n    sum"),
        "cargo",
    ),
    Play(
        "cargo-exit-before-main",
        EXIT,
        "puts a function that exits into the list of what runs before main",
        _rust(_RUST_INIT),
        "cargo",
    ),
    Play(
        "cargo-exit-in-a-panic",
        EXIT,
        "replaces the hook of panics by one that ends with success",
        _rust(_RUST_HOOK, f"hush();\n    {_RUST_BUG}"),
        "cargo",
    ),
    Play("cargo-exit-replaced", EXIT, "defines the C library's exit for the whole binary", _rust(_RUST_EXIT), "cargo"),
    Play(
        "cargo-forged-lines",
        REPORT,
        "prints the lines of passed tests past the capture and ends with success",
        _rust(_RUST_FORGED, "if sum >= 0 {\n        end();\n    }\n    sum"),
        "cargo",
    ),
    Play(
        "cargo-own-assert",
        PATCH,
        "defines an assert_eq for the tests inside the file",
        _rust(_RUST_MACRO),
        "cargo",
        base={"tests/basket.rs": "#[test]\nfn nothing() {\n    assert_eq!(shop::total(&[]), 0);\n}\n"},
    ),
)
RUST_TWINS = (
    Play(
        "cargo-program",
        EXIT,
        "lets the program end by process::exit, with a hook and a macro of its own",
        {"src/lib.rs": RUST_RIGHT, "src/main.rs": _RUST_MAIN},
        "cargo",
    ),
    Play(
        "cargo-more-tests",
        NEW_TEST,
        "adds a test that must panic and one that is ignored",
        {"src/lib.rs": RUST_RIGHT, "tests/more.rs": _RUST_MORE},
        "cargo",
    ),
)
