"""Table of hostile rewards: what each tries, how it ends, and whether the critic's reading stops
it.

Each source is a reward of the argument `actions`. If its attack works, it raises a `RuntimeError`
that begins with GOT, so a finding or a failure that holds this word shows a hole. Everything else
is checked from outside (canaries, a listener, processes, neighbours).
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

GOT = "GOT"
"""Word with which a source reports that its attack worked."""


@dataclass(frozen=True)
class Attack:
    """One hostile reward."""

    group: str
    name: str
    source: str
    ends: tuple[str, ...]
    """The dry run gives a finding with one of these codes; empty: it passes, and the attack
    achieved nothing."""
    said: str = ""
    """Part of the finding's message."""
    static: bool = True
    """True: the critic's reading rejects it. False: it passes, as it is harmless when it runs."""
    endless: bool = False
    """True: a time limit ends it."""
    failure: tuple[str, ...] = ("raised",)
    """The training fails with one of these codes; empty: it goes through."""


def body(code: str, top: str = "") -> str:
    """A reward with an attack in its call."""
    return (
        f"{textwrap.dedent(top)}\n"
        "def compute_reward(actions):\n"
        "    total = actions.sum(dim=-1)\n"
        f"{textwrap.indent(textwrap.dedent(code).strip(chr(10)), '    ')}\n"
        "    return total, {'total': total}\n"
    )


def _refused(
    group: str,
    name: str,
    code: str,
    said: str = "PermissionError",
    top: str = "import os",
    finding: str = "D302",
) -> Attack:
    """An attack that fails with a permission error, in the dry run as in a training."""
    code = f"{textwrap.dedent(code).strip(chr(10))}\nraise RuntimeError('{GOT} ' + str(x))"
    return Attack(group, name, body(code, top), (finding,), said)


def _own(
    group: str,
    name: str,
    source: str,
    failure: tuple[str, ...] = (),
    ends: tuple[str, ...] = (),
    **rest: bool,
) -> Attack:
    """An attack that is allowed, since it affects only itself."""
    return Attack(group, name, source, ends, failure=failure, **rest)


_DESCRIPTORS = """
import errno, os, struct, json
def kind(d):
    try:
        os.lseek(d, 0, os.SEEK_CUR)
    except OSError as error:
        return errno.errorcode[error.errno]
    return 'FILE'
ways = [d for d in range(3, 1024) if kind(d) == 'ESPIPE']
def say(data):
    for d in ways:
        try:
            unwritten = data
            while unwritten:
                unwritten = unwritten[os.write(d, unwritten):]
        except OSError:
            pass
def answer(text):
    # to a trainer: a message with its length; to a dry run: all there is
    say(struct.pack('!I', len(text)) + text)
"""
_CTYPES = "import ctypes, os, errno\nlibc = ctypes.CDLL(None, use_errno=True)\nlibc.syscall.restype = ctypes.c_long\n"
_CALL = """
x = libc.syscall({call})
if x == -1:
    raise OSError(ctypes.get_errno(), 'refused')
"""

FILES = (
    _refused("files", "reads a file of the person's", "x = open(CANARY).read()"),
    _refused("files", "writes a file of the person's", "x = open(CANARY, 'w').write('gone')"),
    _refused("files", "removes a file of the person's", "os.unlink(CANARY)\nx = 1"),
    _refused("files", "links to a file of the person's", "os.symlink(CANARY, CANARY + '.link')\nx = 1"),
    _refused("files", "lists the root", "x = os.listdir('/')"),
    _refused("files", "reads the scratch of others", "import tempfile\nx = os.listdir(tempfile.gettempdir())", "Error"),
    _refused("files", "writes to shared memory", "x = open('/dev/shm/left-behind', 'w').write('1')"),
    _refused("files", "saves with torch", "torch.save(total, CANARY)\nx = 1", "Error"),
    _refused("files", "loads with torch", "x = torch.load(CANARY, weights_only=False)", "Error"),
    _refused("files", "maps a file with torch", "x = torch.from_file(CANARY, False, 4, dtype=torch.uint8)", "Error"),
    _refused("files", "finds open through torch's own modules", "x = torch.os.open(CANARY, 0)"),
    _refused("files", "imports through a functional module", "x = torch.nn.functional.importlib.import_module('os').open(CANARY, 0)"),
    _refused("files", "reads the trainer's memory", "x = open(f'/proc/{os.getppid()}/mem', 'rb').read(1)"),
    _refused("files", "reopens a descriptor by its name", "x = os.open('/proc/self/fd/0', os.O_RDWR)"),
)  # fmt: skip

SECRETS = (
    _own("environment and secrets", "has no key of the driver's in its environment", body(
        "if any('HOSTILE' in name or 'canary-secret' in value for name, value in os.environ.items()):\n    raise RuntimeError('GOT')", "import os")),
    _refused("environment and secrets", "reads its environment in /proc", "x = open('/proc/self/environ').read()"),
    _refused("environment and secrets", "reads the driver's environment", "x = open(f'/proc/{DRIVER}/environ').read()"),
    _refused("environment and secrets", "reads the driver's memory by number", _CALL.format(call="310, DRIVER, 0, 0, 0, 0, 0"), "PermissionError", _CTYPES),
    _own("environment and secrets", "finds no key among all objects", body(
        "if any(isinstance(x, str) and 'canary' + '-secret' in x for d in gc.get_objects() if type(d) is dict for x in list(d.values())):\n    raise RuntimeError('GOT')",
        "import gc")),
)  # fmt: skip

NETWORK = (
    *(
        _refused("network and sockets", f"makes a socket of {family}", f"x = socket.socket({number}, {kind})", top="import socket")
        for family, number, kind in (
            ("AF_UNIX", 1, 1), ("AF_INET", 2, 1), ("AF_INET6", 10, 1), ("AF_NETLINK", 16, 3), ("AF_PACKET", 17, 3), ("AF_ALG", 38, 5), ("AF_VSOCK", 40, 1),
        )
    ),
    _refused("network and sockets", "connects to the person's machine", "x = socket.create_connection(('127.0.0.1', PORT), 1)", top="import socket"),
    _refused("network and sockets", "asks for a name", "x = socket.gethostbyname('localhost')", "error", "import socket"),
    _refused("network and sockets", "loads a page", "x = urllib.request.urlopen(f'http://127.0.0.1:{PORT}/').read()", "Error", "import urllib.request"),
    _refused("network and sockets", "connects with its way to the trainer", """
        s = socket.socket(fileno=ways[0])
        x = s.connect(('127.0.0.1', PORT))
    """, "Error", _DESCRIPTORS + "import socket\n"),
    _refused("network and sockets", "sends to another address over it", """
        x = [libc.syscall(44, d, b'x', 1, 0, b'\\x02\\0' + PORT.to_bytes(2, 'big') + b'\\x7f\\0\\0\\x01' + bytes(8), 16) for d in range(64)]
        if max(x) < 0:
            raise PermissionError(str(ctypes.get_errno()))
    """, "PermissionError", _CTYPES),
)  # fmt: skip

PROCESSES = (
    _refused("processes and signals", "forks", "x = os.fork()"),
    _refused("processes and signals", "forks by the bare call", _CALL.format(call="57"), "PermissionError", _CTYPES),
    _refused("processes and signals", "runs a program", "x = subprocess.run(['true'])", top="import subprocess"),
    _refused("processes and signals", "becomes a program", "os.execv('/bin/true', ['true'])\nx = 1"),
    _refused("processes and signals", "starts a thread", "threading.Thread(target=print).start()\nx = 1", "can't start new thread", "import threading"),
    _refused("processes and signals", "signals its parent", "os.kill(os.getppid(), 9)\nx = 1"),
    _refused("processes and signals", "signals the driver", "os.kill(DRIVER, 10)\nx = 1"),
    _refused("processes and signals", "signals everybody", "os.kill(-1, 9)\nx = 1"),
    _refused("processes and signals", "traces its parent", _CALL.format(call="101, 16, os.getppid(), 0, 0"), "PermissionError", _CTYPES),
    _refused("processes and signals", "takes a descriptor of its parent's", _CALL.format(call="434, os.getppid(), 0"), "PermissionError", _CTYPES),
    _refused("processes and signals", "becomes root", "os.setuid(0)\nx = 1"),
    _refused("processes and signals", "asks the kernel for io_uring", _CALL.format(call="425, 8, 0"), "PermissionError", _CTYPES),
    _refused("processes and signals", "loads a program into the kernel", _CALL.format(call="321, 0, 0, 0"), "PermissionError", _CTYPES),
    _refused("processes and signals", "makes namespaces", _CALL.format(call="272, 0x10000000"), "PermissionError", _CTYPES),
    Attack("processes and signals", "ends itself without a word", body("os._exit(0)", "import os"), ("D312",)),
    Attack("processes and signals", "ends itself by a signal that has no name", body("os.kill(os.getpid(), 40)", "import os"), ("D312",), "signal 40"),
    Attack("processes and signals", "crashes", body("ctypes.string_at(1)", "import ctypes"), ("D312",), "SIGSEGV"),
)  # fmt: skip

BOMBS = (
    Attack("bombs", "asks torch for 10 GB", body("torch.ones(10_000_000_000 // 4)"), ("D311",), "memory", static=False),
    Attack("bombs", "fills Python's memory", body("x = []\nwhile True:\n    x.append(bytearray(1 << 28))"), ("D311", "D302"), "MemoryError"),
    Attack("bombs", "fills memory that is shared and so no data", body(
        "m = mmap.mmap(-1, 3 << 30)\nfor i in range(0, 3 << 30, 4096):\n    m[i] = 1\nraise RuntimeError('GOT')", "import mmap"), ("D302", "D311"), "memory"),
    Attack("bombs", "fills memory that is a stack and so no data", body(
        "m = mmap.mmap(-1, 3 << 30, flags=0x122)\nraise RuntimeError('GOT')", "import mmap"), ("D302", "D311"), "memory"),
    Attack("bombs", "makes files in memory", body("x = os.memfd_create('x')\nraise RuntimeError('GOT')", "import os"), ("D302",), "PermissionError"),
    Attack("bombs", "recurses without end", "def f(x):\n    return f(x)\n" + body("f(total)"), ("D302",), "RecursionError", static=False),
    Attack("bombs", "raises 10 MB of words", body("raise ValueError('x' * 10_000_000)"), ("D302",), static=False),
    Attack("bombs", "prints 100 MB", body("for _ in range(100):\n    os.write(1, bytes(1 << 20))\n    os.write(2, bytes(1 << 20))", "import os"), (), failure=()),
    Attack("bombs", "opens descriptors without end", body("while True:\n    os.dup(0)", "import os"), ("D302",), "PermissionError"),
    Attack("bombs", "fills its way to the trainer", body("while True:\n    say(b'x' * 65536)", _DESCRIPTORS), ("D312", "D310"), failure=("raised", "contract", "timeout")),
)  # fmt: skip

ENDLESS = (
    Attack("endless work", "loops in Python", body("while True:\n    pass"), ("D310",), endless=True),
    Attack("endless work", "is within one call of torch", body("torch.eye(4000).matrix_power(2 ** 40)"), ("D310",), endless=True, static=False),
    Attack("endless work", "is within one number", body("10 ** (10 ** 9)"), ("D310", "D311", "D302"), endless=True, static=False),
    Attack("endless work", "ignores all signals", body("""
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        while True:
            pass
    """, "import signal"), ("D310",), endless=True),
    Attack("endless work", "swallows every exception", body("""
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass
    """), ("D310",), endless=True),
    Attack("endless work", "never ends its error", body("raise E()", "class E(Exception):\n    def __str__(self):\n        while True:\n            pass\n"), ("D310",), endless=True),
    Attack("endless work", "backtracks in a pattern", body("re.match('(a+)+$', 'a' * 60 + 'b')", "import re"), ("D310",), endless=True),
)  # fmt: skip

RESULTS = (
    Attack("results", "gives NaN", body("total = total / 0 * 0"), ("D305",), static=False, failure=("not-a-number",)),
    Attack("results", "gives infinity", body("total = total.abs() * math.inf + 1 / total.abs()", "import math"), ("D305",), static=False, failure=("not-a-number",)),
    Attack("results", "gives a view of 10 GB", body("total = torch.zeros(1).expand(10_000_000_000 // 4)"), ("D304", "D303"), static=False, failure=("contract",)),
    Attack("results", "lies about its shape", body("total = Liar(torch.zeros(7))", "class Liar(torch.Tensor):\n    shape = property(lambda self: (16384,))\n"), ("D302", "D304", "D303", "D301"), failure=("contract", "raised")),
    Attack("results", "commands the terminal in a component's name", "def compute_reward(actions):\n    t = actions.sum(dim=-1)\n    return t, {'\\x1b[2J': t}\n", ("D303",), "visible characters", static=False, failure=("contract",)),
    Attack("results", "commands the terminal in an error's words", body("raise ValueError('\\x1b[2J')"), ("D302",), "\\x1b[2J", static=False),
    Attack("results", "commands the terminal in an error's type", body("raise type('\\x1b[2J', (ValueError,), {})('x')"), ("D302",), "\\x1b[2J"),
    Attack("results", "commands the terminal in a type", body("return type('\\x1b[2J', (), {})()"), ("D303",), "\\x1b[2J", failure=("contract",)),
    Attack("results", "has a name for every step", body("return total, {f'{id(object())}-{i}': total for i in range(101)}"), ("D303",), failure=("contract",)),
    Attack("results", "has other components at every call", body("return total, {f'c{float(total.sum())}': total}"), ("D303",), "first call", static=False, failure=("contract",)),
    Attack("results", "gives something else as components", body("return total, E()", "class E(dict):\n    def items(self):\n        raise SystemExit(3)\n"), ("D302", "D312", "D303"), failure=("raised", "contract")),
)  # fmt: skip

PROTOCOL = (
    _own("imitation of the protocol", "says that nothing is wrong with it", body("say(b'[]')\nos._exit(0)", _DESCRIPTORS), ("raised", "contract")),
    Attack("imitation of the protocol", "gives findings with the terminal's commands", body(
        "say(json.dumps([{'code': 'D302', 'severity': 'error', 'message': '\\x1b[2J'}]).encode())\nos._exit(0)", _DESCRIPTORS), ("D302",), "\\x1b[2J", failure=("raised", "contract")),
    Attack("imitation of the protocol", "gives findings of invented codes", body(
        "say(json.dumps([{'code': '[/red]', 'severity': 'error', 'message': 'x'}]).encode())\nos._exit(0)", _DESCRIPTORS), ("D312",), failure=("raised", "contract")),
    Attack("imitation of the protocol", "gives 5000 findings", body(
        "say(json.dumps([{'code': 'D302', 'severity': 'error', 'message': 'x'}] * 3000).encode())\nos._exit(0)", _DESCRIPTORS), ("D312",), failure=("raised", "contract")),
    Attack("imitation of the protocol", "gives text of 100,000 brackets", body("say(b'[' * 100_000)\nos._exit(0)", _DESCRIPTORS), ("D312",), failure=("raised", "contract")),
    Attack("imitation of the protocol", "speaks as a worker does", body(
        """say(b'{"type": "trained", "job": "good"}\\n')\nos.write(1, b'{"type": "fault", "job": null, "message": "x"}\\n')\nos._exit(0)""", _DESCRIPTORS), ("D312",), failure=("raised", "contract")),
    Attack("imitation of the protocol", "fails with the terminal's commands", body(
        "answer(json.dumps({'type': 'failed', 'code': 'raised', 'message': '\\x1b[2J' * 5000, 'hint': '\\x1b[2J'}).encode())\nos._exit(0)", _DESCRIPTORS), ("D312",), failure=("raised", "contract")),
    Attack("imitation of the protocol", "answers before it is asked, without end, and reads nothing", body(
        """
        text = b'{"type":"called","components":[]}'
        while True:
            answer(text)
        """, _DESCRIPTORS), ("D312", "D310"), failure=("raised", "contract", "timeout")),
    Attack("imitation of the protocol", "names components that are not there", body(
        """answer(b'{"type":"called","components":' + json.dumps([f'c{i}' for i in range(100)]).encode() + b'}')""", _DESCRIPTORS), ("D302", "D312"), failure=("raised", "contract", "not-a-number", "timeout")),
)  # fmt: skip

_GARBAGE = """
import gc, mmap, os, signal
def scribble(*_):
    for value in gc.get_objects():
        if isinstance(value, mmap.mmap):
            value[:] = os.urandom(1 << 12) * (len(value) // (1 << 12)) + bytes(len(value) % (1 << 12))
signal.signal(signal.SIGALRM, scribble)
"""
CHANNEL = (
    _own("its way to the trainer", "floods it with bytes out of band", body(
        "for d in ways * 1000:\n    if libc.send(d, b'x', 1, 1) >= 0 or libc.send(d, b'x', 1, 0x4041) >= 0:\n        raise RuntimeError('GOT')", _DESCRIPTORS + _CTYPES)),
    Attack("its way to the trainer", "closes it", body("for d in ways:\n    os.close(d)", _DESCRIPTORS), ("D312",)),
    Attack("its way to the trainer", "begins an answer and sleeps", body("say(b'\\0\\0')\ntime.sleep(1000)", _DESCRIPTORS + "import time\n"), ("D310",), endless=True, failure=("timeout",)),
    Attack("its way to the trainer", "answers a byte at a time without end", body(
        "say(struct.pack('!I', 60_000))\nwhile True:\n    say(b'[')\n    time.sleep(0.01)", _DESCRIPTORS + "import time\n"), ("D310",), endless=True, failure=("timeout",)),
    Attack("its way to the trainer", "announces an answer of 4 GB", body(
        "say(struct.pack('!I', 0xFFFFFFFF))\nwhile True:\n    say(bytes(65536))", _DESCRIPTORS), ("D312", "D310"), failure=("raised", "contract", "timeout")),
    _own("its way to the trainer", "writes into the shared memory at all times", _GARBAGE + body("signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)"), ("not-a-number", "raised", "contract")),
)  # fmt: skip

REACHES = (
    _refused("ways around", "loads an operator's library", "torch.ops.load_library(CANARY)\nx = 1", "Error"),
    _refused("ways around", "makes memory executable", "x = mmap.mmap(-1, 4096, prot=7)", "machine code", "import mmap", "D312"),
    _refused("ways around", "loads a library of C", "x = ctypes.CDLL(CANARY)", "Error", "import ctypes"),
    _refused("ways around", "asks C to run a command", "x = libc.system(b'true')\nif x:\n    raise PermissionError(x)", "PermissionError", _CTYPES),
    _refused("ways around", "climbs a ladder of subclasses", """
        found = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close']
        x = found[0].__init__.__globals__['popen']('true').read() if found else open(CANARY)
    """),
    _refused("ways around", "climbs it by a format string", """
        x = '{0.__class__.__base__}'.format(total)
        x = '{0.f.__globals__[os].environ[HOME]}'.format(H)
        raise PermissionError(x)
    """, "PermissionError", "import os\nclass H:\n    def f(self):\n        pass\n"),
    _refused("ways around", "decorates with a built-in", """
        @exec
        @lambda f: "open(CANARY)"
        def f():
            pass
        x = 1
    """),
    _refused("ways around", "evaluates text", "x = eval('__imp' + 'ort__(\"os\").listdir(\"/\")')"),
    _refused("ways around", "unpickles", "x = pickle.loads(b\"cposix\\nlistdir\\n(V/\\ntR.\")", "PermissionError", "import pickle"),
    _refused("ways around", "imports what the worker has not loaded", "x = importlib.import_module('sqlite3')", "Error", "import importlib"),
    _own("ways around", "hides in an annotation", body("y: open(CANARY) = total"), static=False),
)  # fmt: skip

FRAMES = (
    _own("frames and patches", "writes into all that it finds in its callers' frames", body("""
        frame = sys._getframe()
        while frame is not None:
            for value in list(frame.f_locals.values()):
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    value.detach().fill_(7.0)
            frame = frame.f_back
    """, "import sys"), ends=("D307", "D313", "D317")),
    _own("frames and patches", "writes into every tensor there is", body("""
        for value in gc.get_objects():
            if type(value) is torch.Tensor and value.is_floating_point() and not value.is_inference():
                value.data.fill_(7.0)
    """, "import gc"), ends=("D307", "D313", "D317")),
    _own("frames and patches", "replaces functions of torch", "torch.Tensor.tanh = lambda self: self * 0\ntorch.exp = torch.cat = torch.stack = None\n" + body(""),
         ("raised", "contract"), ("D302", "D312")),
    _own("frames and patches", "changes torch's settings", body(
        "torch.set_default_dtype(torch.float64)\ntorch.set_grad_enabled(True)\ntorch.manual_seed(7)")),
    _own("frames and patches", "replaces what is built in", "import builtins\nbuiltins.len = lambda x: 0\nbuiltins.isinstance = lambda *x: True\n" + body(""), ("raised", "contract"), ("D302", "D312", "D303", "D304")),
    _own("frames and patches", "writes into its arguments", body("actions.data.fill_(7.0)\nactions.numpy()[:] = 7.0"), ends=("D317",)),
    _own("frames and patches", "counts on what it kept from the last call", "kept = []\n" + body("kept.append(total)\ntotal = total + len(kept)"), ends=("D307",)),
    _own("frames and patches", "leaves a tracer behind", body("sys.settrace(lambda *x: None)\nsys.setprofile(lambda *x: None)", "import sys")),
    _own("frames and patches", "replaces the program's own functions", """
import sys
for name, module in list(sys.modules.items()):
    if name.startswith('eureka_agent.training') or name.startswith('eureka_agent.worker'):
        for key, value in list(vars(module).items()):
            if callable(value) and not isinstance(value, type):
                setattr(module, key, lambda *x, **y: None)
""" + body(""), ("raised", "contract", "timeout"), ("D302", "D312", "D303")),
    _own("frames and patches", "writes over the shared memory of all variables", body("""
        for value in gc.get_objects():
            if isinstance(value, mmap.mmap):
                value[:] = bytes(len(value))
    """, "import gc, mmap"), ("not-a-number", "raised")),
)  # fmt: skip

ATTACKS = (
    *FILES,
    *SECRETS,
    *NETWORK,
    *PROCESSES,
    *BOMBS,
    *ENDLESS,
    *RESULTS,
    *PROTOCOL,
    *CHANNEL,
    *REACHES,
    *FRAMES,
)

_TRAINED = {
    "reads a file of the person's",
    "writes a file of the person's",
    "connects to the person's machine",
    "sends to another address over it",
    "forks",
    "signals its parent",
    "ends itself without a word",
    "ends itself by a signal that has no name",
    "asks torch for 10 GB",
    "fills memory that is shared and so no data",
    "raises 10 MB of words",
    "fills its way to the trainer",
    "gives NaN",
    "gives a view of 10 GB",
    "commands the terminal in an error's type",
    "has other components at every call",
}
TRAINED = tuple(
    attack
    for attack in ATTACKS
    if attack.name in _TRAINED
    or attack.group in ("imitation of the protocol", "its way to the trainer", "frames and patches")
)
"""Attacks that are also trained, beside a neighbour: those that could reach it."""

DEFENDED_BY_WALLS = (
    "files",
    "environment and secrets",
    "network and sockets",
    "processes and signals",
    "bombs",
)
"""Groups that a wall keeps out by itself, each wall in its own way."""


def filled_in(source: str, canary: str, port: int, driver: int) -> str:
    """A source after a line with this machine's canary, port and driver, otherwise unchanged."""
    return f"CANARY, PORT, DRIVER = {canary!r}, {port}, {driver}\n{source}"
