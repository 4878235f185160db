"""Uses HIP through ctypes in six threads, and in child processes of every kind.

The children of fork do not use HIP in two cases: HIP refuses there what began in the parent. Those of spawn and forkserver are new
programs.
"""

import ctypes
import glob
import multiprocessing
import os
import threading

LIBRARY = sorted(glob.glob("/usr/lib/x86_64-linux-gnu/libamdhip64.so.?"))[0]
BYTES = 1 << 20
ROUNDS = 8
H2D, D2H, D2D = 1, 2, 3


def check(code):
    """Fails if a HIP call failed."""
    assert code == 0, f"HIP error {code}"


def work(hip):
    """Copies there and back, and fills and copies on the GPU by HIP's kernels, on a stream."""
    stream, one, two = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    sent, received = ctypes.create_string_buffer(os.urandom(BYTES), BYTES), ctypes.create_string_buffer(BYTES)
    check(hip.hipStreamCreate(ctypes.byref(stream)))
    check(hip.hipMalloc(ctypes.byref(one), ctypes.c_size_t(BYTES)))
    check(hip.hipMalloc(ctypes.byref(two), ctypes.c_size_t(BYTES)))
    for _ in range(ROUNDS):
        check(hip.hipMemsetAsync(two, 0, ctypes.c_size_t(BYTES), stream))
        check(hip.hipMemcpyAsync(one, sent, ctypes.c_size_t(BYTES), H2D, stream))
        check(hip.hipMemcpyAsync(two, one, ctypes.c_size_t(BYTES), D2D, stream))
        check(hip.hipMemcpyAsync(received, two, ctypes.c_size_t(BYTES), D2H, stream))
        check(hip.hipStreamSynchronize(stream))
    assert received.raw == sent.raw, "copies change the bytes"
    check(hip.hipFree(one))
    check(hip.hipFree(two))
    check(hip.hipStreamDestroy(stream))


def child():
    """What a child process does that has no HIP yet."""
    work(ctypes.CDLL(LIBRARY))


def after_use():
    """What a child process does whose parent used HIP before the fork: the call fails, and must not hang."""
    count = ctypes.c_int()
    ctypes.CDLL(LIBRARY).hipGetDeviceCount(ctypes.byref(count))
    os._exit(0)


def run(kind, target):
    """Runs a function in two processes of a kind at once."""
    start = multiprocessing.get_context(kind)
    children = [start.Process(target=target) for _ in range(2)]
    for process in children:
        process.start()
    for process in children:
        process.join()
        assert process.exitcode == 0, f"{kind}: {process.exitcode}"


def main():
    """Runs each case."""
    # Before this process uses HIP: fork of a program with HIP in it breaks.
    for kind in ("fork", "spawn", "forkserver"):
        run(kind, child)
    hip = ctypes.CDLL(LIBRARY)
    failures = []

    def thread():
        try:
            work(hip)
        except AssertionError as error:
            failures.append(error)

    threads = [threading.Thread(target=thread) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failures, failures
    run("fork", after_use)
    run("spawn", child)


if __name__ == "__main__":
    main()
