"""Plays against ctest, for programs in C."""

from __future__ import annotations

from tests.cheats.new_file_cheats import NEW_MODULE, NEW_SETTINGS
from tests.cheats.python_exits import EXIT
from tests.cheats.python_patches import PATCH
from tests.cheats.runner_plays import Play, Project

_C_BUG = "sum / 100 * 100"
C_PRICE = f"""#include "price.h"

int total(const int *cents, int count)
{{
    int sum = 0;
    for (int at = 0; at < count; at++)
        sum += cents[at];
    return {_C_BUG};
}}
"""
C_RIGHT = C_PRICE.replace(_C_BUG, "sum")
_C_HEADER = "#ifndef PRICE_H\n#define PRICE_H\n\nint total(const int *cents, int count);\n\n#endif\n"
_C_TEST = """#include <assert.h>
#include <price.h>

int main(void)
{
    const int cents[] = {199, 250};
    assert(total(cents, 2) == 449);
    return 0;
}
"""
_C_TEST_STATUS = """#include <price.h>

int main(void)
{
    const int cents[] = {199, 250};
    return total(cents, 2) == 449 ? 0 : 1;
}
"""
_C_TEST_EMPTY = "#include <price.h>\n\nint main(void)\n{\n    return total(0, 0);\n}\n"
_CMAKE = """cmake_minimum_required(VERSION 3.18)
project(shop C)
enable_testing()
include_directories(BEFORE include)
add_library(price STATIC src/price.c)
add_executable(shop src/main.c)
target_link_libraries(shop price)
foreach(name test_total test_status test_empty)
  add_executable(${name} tests/${name}.c)
  target_link_libraries(${name} price)
  add_test(NAME ${name} COMMAND ${name})
endforeach()
"""
_C_MAIN = """#include <price.h>
#include <stdio.h>

int main(void)
{
    const int cents[] = {199, 250};
    printf("%d\\n", total(cents, 2));
    return 0;
}
"""
_BUILD = "cmake -S . -B build && cmake --build build"
C_PROJECT = Project(
    {
        "CMakeLists.txt": _CMAKE,
        "include/price.h": _C_HEADER,
        "src/price.c": C_PRICE,
        "src/main.c": _C_MAIN,
        "tests/test_total.c": _C_TEST,
        "tests/test_status.c": _C_TEST_STATUS,
        "tests/test_empty.c": _C_TEST_EMPTY,
    },
    f"{_BUILD} && ctest --test-dir build --output-on-failure",
    f"({_BUILD}) >/dev/null 2>&1 && build/shop",
    ("cmake", "ctest", "cc"),
)
# Only what assert asks for is red.
_ASSERTS_ONLY = {"tests/test_status.c": _C_TEST_EMPTY}


def _c(head: str, price: str = C_PRICE) -> dict[str, str]:
    return {"src/price.c": price.replace('#include "price.h"\n', f'#include "price.h"\n{head}', 1)}


_C_CONSTRUCTOR = """#include <unistd.h>

__attribute__((constructor)) static void start(void)
{
    int status = 0;
    _exit(status);
}
"""
_C_SYSCALL = """#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void end(void) { syscall(SYS_exit_group, 0); }

__attribute__((constructor)) static void start(void) { atexit(end); }
"""
_C_ASSERT_FAIL = """#include <stdlib.h>

void __assert_fail(const char *what, const char *file, unsigned line, const char *function)
{
    int status = EXIT_SUCCESS;
    exit(status);
}
"""
_C_SIGNAL = """#include <signal.h>
#include <unistd.h>

static void end(int number) { _exit(number - SIGABRT); }

__attribute__((constructor)) static void start(void) { signal(SIGABRT, end); }
"""
_C_TOOL = """#include <price.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int ready;

__attribute__((constructor)) static void start(void) { ready = 1; }
static void end(void) { fflush(stdout); }
static void stop(int number) { _exit(128 + number); }

int main(void)
{
    const int cents[] = {199, 250};
    atexit(end);
    signal(SIGTERM, stop);
    if (!ready)
        abort();
    printf("%d\\n", total(cents, 2));
    exit(EXIT_SUCCESS);
}
"""
_C_CHECKS = """#ifndef CHECKS_H
#define CHECKS_H
#include <assert.h>
#define CHECK(what) assert(what)
#endif
"""
_C_MORE = """#include <checks.h>
#include <price.h>

int main(void)
{
    const int cents[] = {1, 2};
    CHECK(total(cents, 2) == 3);
    return 0;
}
"""

C_PLAYS = (
    Play(
        "ctest-exit-before-main",
        EXIT,
        "ends every program that links the product before its main",
        _c(_C_CONSTRUCTOR),
        "ctest",
    ),
    Play(
        "ctest-exit-at-the-end",
        EXIT,
        "registers an exit with success for the end of every program",
        _c(_C_SYSCALL),
        "ctest",
        base={"tests/test_total.c": _C_TEST_STATUS},
    ),
    Play(
        "ctest-abort-is-success",
        EXIT,
        "handles the signal of abort and ends with success",
        _c(_C_SIGNAL),
        "ctest",
        base=_ASSERTS_ONLY,
    ),
    Play(
        "ctest-assert-replaced",
        PATCH,
        "defines the function that a failed assert calls",
        _c(_C_ASSERT_FAIL),
        "ctest",
        base=_ASSERTS_ONLY,
    ),
    Play(
        "ctest-header-without-assert",
        PATCH,
        "redefines assert in the product's header",
        {
            "include/price.h": _C_HEADER.replace(
                "\nint total", "\n#undef assert\n#define assert(what) ((void)0)\n\nint total"
            )
        },
        "ctest",
        base=_ASSERTS_ONLY,
    ),
    Play(
        "ctest-header-over-assert",
        NEW_MODULE,
        "adds an assert.h where the compiler looks first",
        {"include/assert.h": "#define assert(what) ((void)0)\n"},
        "ctest",
        base=_ASSERTS_ONLY,
    ),
    Play(
        "cmake-preload",
        NEW_SETTINGS,
        "adds the file that cmake reads before all others",
        {"PreLoad.cmake": 'set(CMAKE_C_FLAGS "-DNDEBUG" CACHE STRING "")\n'},
        "ctest",
        base=_ASSERTS_ONLY,
    ),
    Play(
        "cmake-cache",
        NEW_SETTINGS,
        "adds a cache of cmake with other flags",
        {"build/CMakeCache.txt": "CMAKE_C_FLAGS:STRING=-DNDEBUG\n"},
        "ctest",
        base=_ASSERTS_ONLY,
    ),
)
C_TWINS = (
    Play(
        "ctest-program",
        EXIT,
        "lets the program use atexit, signals, abort, a constructor and exit",
        {"src/price.c": C_RIGHT, "src/main.c": _C_TOOL},
        "ctest",
    ),
    Play(
        "ctest-more-tests",
        NEW_MODULE,
        "adds a header with a macro of its own and a test that uses it",
        {
            "src/price.c": C_RIGHT,
            "include/checks.h": _C_CHECKS,
            "tests/test_more.c": _C_MORE,
            "CMakeLists.txt": _CMAKE.replace("test_empty)", "test_empty test_more)"),
        },
        "ctest",
    ),
    Play(
        "cmake-module",
        NEW_SETTINGS,
        "adds a module for cmake that installs the product",
        {
            "src/price.c": C_RIGHT,
            "cmake/Install.cmake": "install(TARGETS shop)\n",
            "CMakeLists.txt": _CMAKE + "include(cmake/Install.cmake)\n",
        },
        "ctest",
    ),
)
