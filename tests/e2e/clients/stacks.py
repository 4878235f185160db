"""Fills memory by HIP's kernel from functions with known names: `main` calls `outer`, which calls `inner`, once per round."""

import ctypes
import glob
import time

LIBRARY = sorted(glob.glob("/usr/lib/x86_64-linux-gnu/libamdhip64.so.?"))[0]
BYTES = 1 << 20
ROUNDS = 8


def check(code):
    """Fails if a HIP call failed."""
    assert code == 0, f"HIP error {code}"


def inner(hip, memory):
    """Launches the kernel."""
    check(hip.hipMemsetAsync(memory, 0, ctypes.c_size_t(BYTES), None))


def outer(hip, memory):
    """Calls inner."""
    inner(hip, memory)


def main():
    """Calls outer."""
    hip = ctypes.CDLL(LIBRARY)
    memory = ctypes.c_void_p()
    check(hip.hipMalloc(ctypes.byref(memory), ctypes.c_size_t(BYTES)))
    for _ in range(ROUNDS):
        outer(hip, memory)
    check(hip.hipDeviceSynchronize())
    check(hip.hipFree(memory))
    # tracer reads what a process has mapped while it lives: docs/stacks.md.
    time.sleep(2)


if __name__ == "__main__":
    main()
