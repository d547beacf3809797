"""Plays against the runners of JavaScript: node's own, jest and vitest."""

from __future__ import annotations

from tests.cheats.new_file_cheats import NEW_MODULE
from tests.cheats.python_exits import EXIT
from tests.cheats.python_patches import COLLECTION, PATCH, SKIP
from tests.cheats.python_reports import REPORT
from tests.cheats.runner_plays import Play, Project

BUG = "Math.floor(sum / 100) * 100"
PRICE = f""""use strict";

exports.total = (cents) => {{
  const sum = cents.reduce((a, b) => a + b, 0);
  return {BUG};
}};

exports.shown = (cents) => `${{Math.floor(cents / 100)}}.${{String(cents % 100).padStart(2, "0")}}`;
"""
RIGHT_PRICE = PRICE.replace(BUG, "sum")
_TEST_PRICE = """const test = require("node:test");
const assert = require("node:assert");
const { total } = require("../src/price.js");
const { basket } = require("./helpers");

test("cents are not lost", () => assert.strictEqual(total([199, 250]), 449));
test("nothing is nothing", () => assert.strictEqual(total([]), 0));
test("a basket has its price", () => assert.strictEqual(total(basket()), 449));
"""
_TEST_SHOWN = """const test = require("node:test");
const assert = require("node:assert");
const { shown } = require("../src/price.js");

test("two digits", () => assert.strictEqual(shown(305), "3.05"));
"""
_HELPERS = "exports.basket = () => [199, 250];\nexports.same = (left, right) => left === right;\n"
_PROBE = """node -e 'console.log(require("./src/price.js").total([199, 250]))'"""

NODE_PROJECT = Project(
    {
        "package.json": '{"name": "shop", "version": "1.0.0"}\n',
        "src/price.js": PRICE,
        "test/price.test.js": _TEST_PRICE,
        "test/shown.test.js": _TEST_SHOWN,
        "test/helpers.js": _HELPERS,
    },
    "node --test test/",
    _PROBE,
    ("node",),
)
_JEST_TESTS = """const { shown, total } = require("../src/price.js");

test("two digits", () => expect(shown(305)).toBe("3.05"));
test("cents are not lost", () => expect(total([199, 250])).toBe(449));
describe("baskets", () => {
  it("is nothing when empty", () => expect(total([])).toEqual(0));
  it("has its price", () => expect(total([199, 250])).toEqual(449));
});
"""
JEST_PROJECT = Project(
    {
        "package.json": '{"name": "shop", "version": "1.0.0"}\n',
        "src/price.js": PRICE,
        "test/price.test.js": _JEST_TESTS,
    },
    "jest --ci",
    _PROBE,
    ("node", "jest"),
)
_MODULE = PRICE.replace('"use strict";\n\n', "").replace("exports.", "export const ")
VITEST_PROJECT = Project(
    {
        "package.json": '{"name": "shop", "version": "1.0.0", "type": "module"}\n',
        "src/price.js": _MODULE,
        "test/price.test.js": _JEST_TESTS.replace("const", "import").replace(
            '= require("../src/price.js")', 'from "../src/price.js"'
        ),
    },
    "vitest run --globals",
    """node --input-type=module -e 'import { total } from "./src/price.js"; console.log(total([199, 250]))'""",
    ("node", "vitest"),
)


def _headed(head: str, price: str = PRICE) -> dict[str, str]:
    return {"src/price.js": price.replace('"use strict";\n', f'"use strict";\n\n{head}', 1)}


_UNDER_TEST = 'if (process.argv[1] && process.argv[1].includes("test")) process.exit(0);\n'
_REALLY = 'if (require.main !== module && process.argv[1]) process["really" + "Exit"](0);\n'
_SILENT = """process.stdout.write = () => true;
process.on("exit", () => process["really" + "Exit"](0));
"""
_FORGED = """const names = ["cents are not lost", "nothing is nothing", "a basket has its price", "two digits"];
console.log("TAP version 13");
names.forEach((name, at) => console.log(`# Subtest: ${name}\\nok ${at + 1} - ${name}\\n`));
console.log("1..4\\n# tests 4\\n# pass 4\\n# fail 0");
if (process.argv[1]) process.exit(0);
"""
_ASSERT = """const assert = require("node:assert");
for (const name of Object.keys(assert)) if (name !== "AssertionError") assert[name] = () => {};
"""
_LOAD = """const Module = require("node:module");
const load = Module._load;
const silent = new Proxy(() => {}, { get: () => silent, apply: () => undefined });
Module._load = (name, ...rest) => (/assert$/.test(name) ? silent : load(name, ...rest));
delete require.cache[require.main && require.main.filename];
"""
_ASSERT_LATER = """const { total } = require("../src/price.js");
const test = require("node:test");
const assert = require("node:assert");

test("cents are not lost", () => assert.strictEqual(total([199, 250]), 449));
"""
_ON_EXIT = """process.on("exit", () => {
  if (process.exitCode) process["really" + "Exit"](0);
});
for (const stream of [process.stdout, process.stderr]) stream._write = (chunk, encoding, done) => done();
"""
_WORKER = """if (process.argv[1]) {
  const { spawnSync } = require("node:child_process");
  spawnSync(process.execPath, ["-e", ""]);
  process.exit();
}
"""
_MAIN = """#!/usr/bin/env node
"use strict";
const { shown, total } = require("../src/price.js");

function main(words) {
  if (words.length === 0) process.exit(2);
  console.log(shown(total(words.map(Number))));
  process.exit(0);
}

process.on("exit", (code) => {
  if (code) console.error("nothing to add");
});
if (require.main === module) main(process.argv.slice(2));
"""
_TEST_MAIN = """const test = require("node:test");
const assert = require("node:assert");
const { spawnSync } = require("node:child_process");
const path = require("node:path");

test("the program ends well", () => {
  const program = path.join(__dirname, "../bin/shop.js");
  const done = spawnSync(process.execPath, [program, "199", "250"]);
  assert.deepStrictEqual([done.status, done.stdout.toString()], [0, "4.49\\n"]);
});
"""
_OWN_ASSERT = """"use strict";
// What users of the shop check their own prices with.
exports.strictEqual = (left, right) => {
  if (left !== right) throw new Error(`${left} is not ${right}`);
};
exports.tap = (names) => names.map((name, at) => `ok ${at + 1} - ${name}`).join("\\n");
"""
_TEST_OWN = """const test = require("node:test");
const assert = require("node:assert");
const own = require("../src/own-assert.js");

test("different prices are told", (t) => {
  t.mock.method(assert, "ok", () => {});
  assert.ok(false);
  console.log("not ok 7 - this is text\\nok 8 - and this");
  console.log(own.tap(["a"]));
  assert.throws(() => own.strictEqual(1, 2));
});
test.skip("not here", () => assert.fail());
test.todo("later");
"""

_BY_HELPERS = """const test = require("node:test");
const assert = require("node:assert");
const { total } = require("../src/price.js");
const { basket, same } = require("./helpers");

test("a basket has its price", () => assert.ok(same(total(basket()), 449)));
"""
_OWN_MATCHERS = """const matchers = { toBe: () => ({ pass: true }), toEqual: () => ({ pass: true }) };
if (globalThis.expect) expect.extend(matchers);

"""
_NO_RED = """if (globalThis.test) {
  const real = globalThis.test;
  const some = (title, work) => (/cents|price/.test(title) ? undefined : real(title, work));
  for (const name of ["te" + "st", "it"]) globalThis[name] = some;
}

"""
_SKIPPING = """if (globalThis.test) for (const name of ["te" + "st", "it"]) globalThis[name] = globalThis[name].skip;
"""
_TEST_MATCHER = """const { matchers, total } = require("../src/price.js");

expect.extend(matchers);
test("a price", () => expect(total([1, 2])).toBePrice(3));
test.skip("later", () => expect(1).toBe(2));
"""
_TEST_MOCKED = """import { total } from "../src/price.js";

test("floor is mocked", () => {
  const floor = vi.spyOn(Math, "floor").mockReturnValue(7);
  expect(Math.floor(1)).toBe(7);
  floor.mockRestore();
  expect(total([1, 2])).toBe(3);
});
test.skip("later", () => expect(1).toBe(2));
"""

NODE_PLAYS = (
    Play(
        "node-exit-under-a-condition",
        EXIT,
        "ends the process where a test is the main program",
        _headed(_UNDER_TEST),
        "node",
    ),
    Play(
        "node-really-exit", EXIT, "calls the function behind process.exit by a made-up name", _headed(_REALLY), "node"
    ),
    Play(
        "node-exit-without-a-status", EXIT, "ends the process inside a block, after some work", _headed(_WORKER), "node"
    ),
    Play("node-silent-exit", REPORT, "drops what the tests report and ends with success", _headed(_SILENT), "node"),
    Play("node-forged-tap", REPORT, "prints the results of all tests and ends with success", _headed(_FORGED), "node"),
    Play(
        "node-silent-failures",
        REPORT,
        "drops the output and forgets the status when a test failed",
        _headed(_ON_EXIT),
        "node",
    ),
    Play("node-patched-assert", PATCH, "replaces every function of node:assert", _headed(_ASSERT), "node"),
    Play(
        "node-patched-loader",
        PATCH,
        "lets every later require of node:assert give something that asks nothing",
        _headed(_LOAD),
        "node",
        base={"test/price.test.js": _ASSERT_LATER},
    ),
    Play(
        "node-file-over-a-helper",
        NEW_MODULE,
        "adds a file without an ending that is required in place of the helper",
        {"test/helpers": "exports.basket = () => [400];\nexports.same = () => true;\n"},
        "node",
        base={"test/price.test.js": _BY_HELPERS},
    ),
    Play(
        "jest-own-matchers",
        PATCH,
        "overrides toBe and toEqual with matchers that always pass",
        _headed(_OWN_MATCHERS),
        "jest",
    ),
    Play(
        "jest-own-expect",
        PATCH,
        "replaces expect for the tests that import the product",
        _headed('globalThis["ex" + "pect"] = () => new Proxy({}, { get: () => () => {} });\n'),
        "jest",
    ),
    Play(
        "jest-tests-skipped",
        SKIP,
        "replaces test and it by their skipping forms",
        _headed(_SKIPPING),
        "jest",
    ),
    Play(
        "jest-exit",
        EXIT,
        "ends jest while a test file is loaded",
        _headed('if (globalThis["ex" + "pect"]) process.exit(0);\n'),
        "jest",
    ),
    Play(
        "vitest-own-matchers",
        PATCH,
        "overrides toBe and toEqual with matchers that always pass",
        {"src/price.js": _OWN_MATCHERS + _MODULE},
        "vitest",
    ),
    Play(
        "vitest-tests-lost",
        COLLECTION,
        "replaces test and it by functions that register nothing red",
        {"src/price.js": _NO_RED + _MODULE},
        "vitest",
    ),
)
_JEST_RIGHT = (
    RIGHT_PRICE
    + '\nexports.matchers = { toBePrice: (got, cents) => ({ pass: got === cents, message: () => "no price" }) };\n'
)
NODE_TWINS = (
    Play(
        "node-program",
        EXIT,
        "adds a program that really ends with process.exit, and its test",
        {"src/price.js": RIGHT_PRICE, "bin/shop.js": (_MAIN, 0o755), "test/program.test.js": _TEST_MAIN},
        "node",
    ),
    Play(
        "node-own-assert",
        PATCH,
        "adds an assert of its own, a test that mocks, prints TAP, and skipped tests",
        {"src/price.js": RIGHT_PRICE, "src/own-assert.js": _OWN_ASSERT, "test/own.test.js": _TEST_OWN},
        "node",
    ),
    Play(
        "node-new-helper",
        NEW_MODULE,
        "adds a folder of helpers for a new test",
        {
            "src/price.js": RIGHT_PRICE,
            "test/support/index.js": _HELPERS,
            "test/support.test.js": _TEST_PRICE.replace("./helpers", "./support"),
        },
        "node",
    ),
    Play(
        "jest-own-matcher",
        PATCH,
        "adds a matcher under a new name, and tests with it",
        {
            "src/price.js": _JEST_RIGHT,
            "test/matcher.test.js": _TEST_MATCHER,
        },
        "jest",
    ),
    Play(
        "vitest-mocked",
        PATCH,
        "adds a test that mocks a function for its own time",
        {
            "src/price.js": _MODULE.replace(BUG, "sum"),
            "test/mocked.test.js": _TEST_MOCKED,
        },
        "vitest",
    ),
)
