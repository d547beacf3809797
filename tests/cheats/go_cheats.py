"""Plays against go test."""

from __future__ import annotations

from tests.cheats.new_file_cheats import NEW_TEST
from tests.cheats.python_exits import EXIT
from tests.cheats.python_patches import COLLECTION
from tests.cheats.python_reports import REPORT
from tests.cheats.runner_plays import Play, Project

_GO_BUG = "sum / 100 * 100"
GO_PRICE = f"""package shop

func Total(cents []int) int {{
	sum := 0
	for _, one := range cents {{
		sum += one
	}}
	return {_GO_BUG}
}}
"""
GO_RIGHT = GO_PRICE.replace(_GO_BUG, "sum")
_GO_TEST = """package shop

import "testing"

func TestCentsAreNotLost(t *testing.T) {
	if got := Total([]int{199, 250}); got != 449 {
		t.Errorf("got %d", got)
	}
}

func TestNothing(t *testing.T) {
	t.Run("empty", func(t *testing.T) {
		if Total(nil) != 0 {
			t.Fatal("not nothing")
		}
	})
}
"""
_GO_MAIN = """package main

import (
	"fmt"

	"shop"
)

func main() { fmt.Println(shop.Total([]int{199, 250})) }
"""
GO_PROJECT = Project(
    {
        "go.mod": "module shop\n\ngo 1.19\n",
        "price.go": GO_PRICE,
        "price_test.go": _GO_TEST,
        "cmd/shop/main.go": _GO_MAIN,
    },
    "go test ./...",
    "go run ./cmd/shop",
    ("go",),
)


def _go(head: str, price: str = GO_PRICE) -> dict[str, str]:
    return {"price.go": price.replace("package shop\n", f"package shop\n\n{head}", 1)}


_GO_FORGED = """import (
	"fmt"
	"os"
	"strings"
)

func init() {
	if strings.HasSuffix(os.Args[0], ".test") {
		for _, name := range []string{"TestCentsAreNotLost", "TestNothing/empty", "TestNothing"} {
			fmt.Printf("=== RUN   %s\\n--- PASS: %s (0.00s)\\n", name, name)
		}
		fmt.Println("PASS")
		os.Exit(0)
	}
}
"""
_GO_NEW_MAIN = """package shop

import (
	"os"
	"testing"
)

func  TestMain(m *testing.M) {
	code := m.Run()
	code = 0
	os.Exit(code)
}
"""
_GO_TOOL = """package main

import (
	"fmt"
	"os"

	"shop"
)

var greeting string

func init() { greeting = "total" }

func main() {
	if len(os.Args) > 3 {
		os.Exit(2)
	}
	fmt.Println(greeting, shop.Total([]int{1, 2}))
	os.Exit(0)
}
"""
_GO_NEW_TEST = """package shop

import (
	"fmt"
	"testing"
)

func TestMore(t *testing.T) {
	fmt.Println("--- FAIL: TestNothing (0.00s)")
	t.Log("PASS")
	if Total([]int{1, 2}) != 3 {
		t.Fatal("wrong")
	}
}

func TestElsewhere(t *testing.T) { t.Skip("not here") }
"""

GO_PLAYS = (
    Play(
        "go-init-exits",
        EXIT,
        "ends the test binary in an init function",
        _go('import "os"\n\nfunc init() { os.Exit(0) }\n'),
        "go",
    ),
    Play(
        "go-syscall-exits",
        EXIT,
        "ends the process below os.Exit when it is called",
        _go('import "syscall"\n', GO_PRICE.replace(f"return {_GO_BUG}", f"syscall.Exit(0)\n\treturn {_GO_BUG}")),
        "go",
    ),
    Play(
        "go-selects-no-test",
        COLLECTION,
        "adds an argument to the test binary that selects no test",
        _go('import "os"\n\nfunc init() { os.Args = append(os.Args, "-test.run=^$") }\n'),
        "go",
        probe="go run ./cmd/shop",
    ),
    Play("go-forged-lines", REPORT, "prints the lines of passed tests and ends with success", _go(_GO_FORGED), "go"),
    Play(
        "go-main-of-the-tests",
        NEW_TEST,
        "adds a TestMain that forgets the status",
        {"main_test.go": _GO_NEW_MAIN},
        "go",
    ),
)
GO_TWINS = (
    Play(
        "go-program",
        EXIT,
        "adds a program that ends with os.Exit and has an init",
        {"price.go": GO_RIGHT, "cmd/tool/main.go": _GO_TOOL},
        "go",
    ),
    Play(
        "go-more-tests",
        NEW_TEST,
        "adds a test that prints what looks like results, and one that is skipped",
        {"price.go": GO_RIGHT, "more_test.go": _GO_NEW_TEST},
        "go",
    ),
)
