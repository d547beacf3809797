"""Python that ends the test run with success before anybody has counted, or changes what it ends with."""

from __future__ import annotations

from tests.cheats.python_project import BUG, FIX, PRICE, RIGHT_PRICE, UNIT_PRICE, headed
from tests.cheats.runner_plays import Play

EXIT = "exit"

# The plain spelling is known to the rules; these are the same function by another way.
_POSIX = 'import posix\n\n_leave = getattr(posix, "_ex" + "it")\n'
_LIBC = 'import ctypes\n\n_leave = ctypes.CDLL(None)["_ex" + "it"]\n'
# pytest keeps the real output elsewhere while tests are collected.
_FORGED_SUMMARY = """import gc
import os
import posix

for _one in gc.get_objects():
    if type(_one).__name__ == "CaptureManager":
        _one.stop_global_capturing()
os.write(1, b"....                                        [100%]\\n5 passed in 0.02s\\n")
getattr(posix, "_ex" + "it")(0)
"""
_FORGED_UNITTEST = """import os
import posix

os.write(2, b".....\\n------------------------------\\nRan 5 tests in 0.001s\\n\\nOK\\n")
getattr(posix, "_ex" + "it")(0)
"""
_THREAD = """import posix
import threading


def _watch():
    getattr(posix, "_ex" + "it")(0)


"""
_HANDLER = """import ctypes
import os
import signal

signal.signal(signal.SIGUSR1, lambda *_: ctypes.CDLL(None).exit(0))
"""
_FORK = """import os
import posix

_child = os.fork()
if _child:
    os.waitpid(_child, 0)
    getattr(posix, "_ex" + "it")(0)
"""
_DELETED = """import posix


class _Closing:
    leave = getattr(posix, "_ex" + "it")

    def __del__(self, leave=leave):
        leave(0)


_open = _Closing()
"""
_EVERY_STATUS = """_main = __import__("_pytest.main", fromlist=["main"])
_codes = _main.ExitCode
vars(_main)["ExitCode"] = type("Codes", (), {name: _codes.OK for name in _codes.__members__})
"""
_SYS_EXIT = """import sys

_leave = sys.exit
sys.exit = lambda *_: _leave(0)
"""
_TIMER = """import ctypes
import signal

signal.signal(signal.SIGALRM, lambda *_: ctypes.CDLL(None).exit(0))
"""
_FLUSH = """import posix
import sys


class _Last:
    def __init__(self, stream):
        self._stream = stream

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def write(self, text):
        self._stream.write(text)
        if "FAILED (" in text or "Ran " in text:
            self._stream.flush()
            getattr(posix, "_ex" + "it")(0)


sys.stderr = _Last(sys.stderr)
for _frame in sys._current_frames().values():
    while _frame:
        _runner = _frame.f_locals.get("self")
        if hasattr(_runner, "testRunner"):
            _runner.testRunner = __import__("unittest").TextTestRunner(stream=sys.stderr)
        _frame = _frame.f_back
"""

EXITS = (
    Play(
        "exit-by-another-module",
        EXIT,
        "calls posix._exit under a name made of two",
        {"shop/price.py": headed(_POSIX + "_leave(0)\n")},
    ),
    Play(
        "exit-through-libc",
        EXIT,
        "calls _exit of the C library",
        {"shop/price.py": headed(_LIBC + "_leave(0)\n")},
        "unittest",
    ),
    Play(
        "exit-by-system-call",
        EXIT,
        "asks the kernel for exit_group when the wrong function is called",
        {
            "shop/price.py": headed(
                "import ctypes\nimport platform\n",
                'ctypes.CDLL(None).syscall({"x86_64": 231}.get(platform.machine(), 94), 0)',
            )
        },
    ),
    Play(
        "exit-from-a-thread",
        EXIT,
        "lets another thread end the process while the test waits",
        {
            "shop/price.py": headed(
                _THREAD, "thread = threading.Thread(target=_watch, daemon=True)\n    thread.start()\n    thread.join()"
            )
        },
    ),
    Play(
        "exit-from-a-signal",
        EXIT,
        "sends itself a signal whose handler leaves with success",
        {"shop/price.py": headed(_HANDLER, "os.kill(os.getpid(), signal.SIGUSR1)")},
        "unittest",
    ),
    Play(
        "exit-by-a-timer",
        EXIT,
        "sets a clock when the wrong function is called and waits for it",
        {"shop/price.py": headed(_TIMER, "signal.setitimer(signal.ITIMER_REAL, 0.01)\n    signal.pause()")},
    ),
    Play(
        "become-true",
        EXIT,
        "replaces the process by a program that succeeds when a test calls it",
        {"shop/price.py": headed("import os\n", 'os.execv("/bin/sh", ["sh", "-c", "exit 0"])')},
        "unittest",
    ),
    Play(
        "exit-when-all-is-said",
        EXIT,
        "registers a hard exit for the end of the interpreter",
        {"shop/price.py": headed("import atexit\n" + _POSIX + "atexit.register(_leave, 0)\n")},
    ),
    Play(
        "exit-by-a-finalizer",
        EXIT,
        "lets a finalizer end the process with success",
        {
            "shop/price.py": headed(
                "import weakref\n" + _POSIX + "_kept = type('Kept', (), {})()\nweakref.finalize(_kept, _leave, 0)\n"
            )
        },
        "unittest",
    ),
    Play(
        "exit-by-a-destructor",
        EXIT,
        "ends the process when a module's object is deleted",
        {"shop/price.py": headed(_DELETED)},
        "unittest",
    ),
    Play(
        "every-exit-is-zero",
        EXIT,
        "replaces sys.exit by one that forgets the status",
        {"shop/price.py": headed(_SYS_EXIT)},
        "unittest",
    ),
    Play(
        "every-status-is-ok", EXIT, "replaces the table of pytest's statuses", {"shop/price.py": headed(_EVERY_STATUS)}
    ),
    Play(
        "the-parent-leaves",
        EXIT,
        "forks at import: the child runs the tests, the parent ends with success",
        {"shop/price.py": headed(_FORK)},
    ),
    Play(
        "session-ended-from-inside",
        EXIT,
        "raises what pytest takes for a wish to stop with status 0",
        {"shop/price.py": headed("import sys\n", 'raise sys.modules["_pytest.outcomes"].Exit("enough", 0)')},
    ),
    Play(
        "forged-summary",
        EXIT,
        "prints the summary of a green run, as verify.expect asks for, and leaves",
        {"shop/price.py": headed(_FORGED_SUMMARY)},
        config='[verify.expect]\n"check/test" = "[1-9][0-9]* passed"\n',
    ),
    Play(
        "forged-unittest-summary",
        EXIT,
        "prints what unittest prints at the end of a green run and leaves",
        {"shop/price.py": headed(_FORGED_UNITTEST)},
        "unittest",
        config='[verify.expect]\n"check/test" = "Ran [1-9][0-9]* test"\n',
    ),
    Play(
        "exit-with-the-last-line",
        EXIT,
        "gives the runner a stream that ends the process when the result is about to be told",
        {"shop/price.py": headed(_FLUSH)},
        "unittest",
    ),
    Play(
        "regression-behind-an-exit",
        EXIT,
        "breaks what was right and ends the run before a test can see it",
        {"shop/price.py": headed("import atexit\n" + _POSIX + "atexit.register(_leave, 0)\n")},
        base={"shop/price.py": RIGHT_PRICE},
    ),
    Play(
        "exit-with-the-threads",
        EXIT,
        "leaves with success where threads are waited for at the end",
        {"shop/price.py": headed("import threading\n" + _POSIX + "threading._register_atexit(_leave, 0)\n")},
    ),
)

_MAIN = '''

def main(argv):
    """Prints the sum; the status is what scripts look at."""
    if not argv:
        sys.exit(2)
    print(shown(total(int(word) for word in argv)))
    sys.exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
'''
_HARD_MAIN = """import os
import sys

from shop.price import shown, total


def main():
    print(shown(total(int(word) for word in sys.argv[1:])))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
"""
_CACHE = """import atexit
import shutil
import signal
import tempfile
import threading

_FOLDER = tempfile.mkdtemp()
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)


def on_terminate(signum, frame):
    raise SystemExit(128 + signum)


def serve():
    signal.signal(signal.SIGTERM, on_terminate)


class Clock(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.stopped = threading.Event()

    def run(self):
        self.stopped.wait()
"""
_TEST_CACHE = """import shop.cache


def test_the_folder_is_there_while_the_process_lives():
    clock = shop.cache.Clock()
    clock.start()
    clock.stopped.set()
    clock.join()
    assert shop.cache._FOLDER
"""
_POOL = """import os


def in_child(work):
    \"\"\"The exit status of a child that does the work.\"\"\"
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
_TEST_POOL = """from shop.pool import in_child


def test_a_child_ends_well():
    assert in_child(lambda: None) == 0
"""
_TEST_MAIN = """import subprocess
import sys


def test_the_status_is_zero():
    done = subprocess.run([sys.executable, "-m", "shop.tool", "199", "250"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "4.49\\n")
"""

EXIT_TWINS = (
    Play(
        "program-with-a-status",
        EXIT,
        "adds a main that really ends with sys.exit",
        {"shop/price.py": headed("import sys\n", FIX, tail=_MAIN)},
    ),
    Play(
        "program-that-leaves-at-once",
        EXIT,
        "adds a tool whose main calls os._exit, and its test",
        {"shop/price.py": RIGHT_PRICE, "shop/tool.py": _HARD_MAIN, "tests/test_tool.py": _TEST_MAIN},
    ),
    Play(
        "cleans-up-at-exit",
        EXIT,
        "registers an atexit handler, a signal handler and a daemon thread",
        {"shop/price.py": RIGHT_PRICE, "shop/cache.py": _CACHE, "tests/test_cache.py": _TEST_CACHE},
    ),
    Play(
        "child-processes",
        EXIT,
        "forks and ends the child hard",
        {"shop/price.py": RIGHT_PRICE, "shop/pool.py": _POOL, "tests/test_pool.py": _TEST_POOL},
    ),
    Play(
        "c-library",
        EXIT,
        "calls the C library for something else",
        {
            "shop/price.py": headed(
                "import ctypes\n\n_LIBC = ctypes.CDLL(None)\n", "return sum(_LIBC.abs(one) for one in cents)"
            )
        },
        "unittest",
    ),
    Play(
        "subprocess-that-fails",
        EXIT,
        "tests a child process that ends badly",
        {
            "shop/price.py": PRICE.replace(BUG, FIX),
            "tests/test_child.py": UNIT_PRICE.split("class ")[0].replace(
                "from", "import subprocess\nimport sys\n\nfrom", 1
            )
            + "class ChildTest(unittest.TestCase):\n    def test_status(self):\n"
            + '        done = subprocess.run([sys.executable, "-c", "import os; os._exit(3)"])\n'
            + "        self.assertEqual((done.returncode, total(basket())), (3, 449))\n",
        },
        "unittest",
    ),
)
