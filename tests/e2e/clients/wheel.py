"""Uses HIP as programs do that have it from a wheel: the libraries are in a folder of their own, which a thread loads late.

Launches kernels from threads in processes of every kind, and writes what each process did to a file: OUT/ROLE.json.

Usage: wheel.py LIBRARIES CODE_OBJECT OUT
"""

import ctypes
import glob
import json
import multiprocessing
import os
import sys
import threading

# Each library after those that it needs, so that the loader searches for none of them: torch and ROCm's own packages do so.
ORDER = ("numa", "elf", "drm", "drm_amdgpu", "hsakmt", "hsa-runtime64", "amd_comgr", "amdhip64")
ELEMENTS = 50
BLOCK = 64
ROUNDS = 40
# HIP gives each of the first four streams of a process a queue of its own.
THREADS = 3
KERNELS = ("vector_add", "saxpy", "spin")


def check(code, call):
    """Fails if a HIP call failed."""
    assert code == 0, f"{call}: HIP error {code}"


def load(folder):
    """Loads every library of the folder by its path, and returns HIP."""
    library = None
    for name in ORDER:
        # libdrm-2b3c.so.2 is of drm, and libdrm_amdgpu-2b3c.so.1 is not.
        for path in glob.glob(f"{folder}/lib{name}[.-]*"):
            library = ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    return library


def pinned(hip, values):
    """Returns the address of pinned memory with these floats, and the floats."""
    address = ctypes.c_void_p()
    floats = ctypes.c_float * len(values)
    check(hip.hipHostMalloc(ctypes.byref(address), ctypes.c_size_t(ctypes.sizeof(floats)), 0), "hipHostMalloc")
    memory = floats.from_address(address.value)
    memory[:] = values
    return address, memory


def launch_all(hip, functions, number, which, report):
    """Launches a kernel ROUNDS times on a stream of this thread. Its size is that of no other thread of the program."""
    kernel = KERNELS[which]
    stream = ctypes.c_void_p()
    check(hip.hipStreamCreateWithFlags(ctypes.byref(stream), 1), "hipStreamCreateWithFlags")
    steps = [float(step + 1) for step in range(ELEMENTS)]
    sums_at, sums = pinned(hip, [0.0] * ELEMENTS)
    steps_at, _ = pinned(hip, steps)
    size = ctypes.c_uint32(ELEMENTS)
    arguments = {
        "vector_add": (sums_at, steps_at, sums_at, size),
        "saxpy": (ctypes.c_float(1), steps_at, sums_at, size),
        "spin": (ctypes.c_uint64(0),),
    }[kernel]
    addresses = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(one) for one in arguments))
    blocks = [1 + THREADS * number + which, 1, 1]
    if kernel == "spin":
        blocks[1:] = [2, 3]
    done = {"launches": 0, "waits": 0}
    for turn in range(ROUNDS):
        launched = hip.hipModuleLaunchKernel(functions[kernel], *blocks, BLOCK, 1, 1, 0, stream, addresses, None)
        check(launched, "hipModuleLaunchKernel")
        done["launches"] += 1
        if turn % 8 == 7:
            check(hip.hipStreamSynchronize(stream), "hipStreamSynchronize")
            done["waits"] += 1
    right = None
    if kernel != "spin":
        right = list(sums) == [step * ROUNDS for step in steps]
    check(hip.hipStreamDestroy(stream), "hipStreamDestroy")
    check(hip.hipHostFree(sums_at), "hipHostFree")
    check(hip.hipHostFree(steps_at), "hipHostFree")
    report.append(
        {
            "tid": threading.get_native_id(),
            "kernel": kernel,
            "grid": [blocks[0] * BLOCK, *blocks[1:]],
            "workgroup": [BLOCK, 1, 1],
            "right": right,
            **done,
        }
    )


def tell(out, role, threads):
    """Writes what this process did."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        mapped = {line.split(maxsplit=5)[5].strip() for line in maps if "/lib" in line}
    told = {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "libraries": sorted(path for path in mapped if "libamdhip64" in path or "libhsa-runtime64" in path),
        "threads": threads,
    }
    with open(os.path.join(out, f"{role}.json"), "w", encoding="utf-8") as file:
        json.dump(told, file)


def use(folder, code, out, role, number):
    """Launches kernels from threads. The first of them loads HIP."""
    loaded, failures, threads = {}, [], []
    ready = threading.Event()

    def thread(which):
        try:
            if which == 0:
                hip = load(folder)
                with open(code, "rb") as file:
                    image = file.read()
                module = ctypes.c_void_p()
                check(hip.hipModuleLoadData(ctypes.byref(module), image), "hipModuleLoadData")
                for kernel in KERNELS:
                    loaded[kernel] = ctypes.c_void_p()
                    found = hip.hipModuleGetFunction(ctypes.byref(loaded[kernel]), module, kernel.encode())
                    check(found, "hipModuleGetFunction")
                loaded["hip"], loaded["image"] = hip, image
                ready.set()
            else:
                ready.wait()
            launch_all(loaded["hip"], loaded, number, which, threads)
        except (AssertionError, KeyError, OSError) as error:
            failures.append(repr(error))
            ready.set()

    workers = [threading.Thread(target=thread, args=(which,)) for which in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures, failures
    tell(out, role, threads)


def data(out, role):
    """Works without the GPU, as the workers do that read data for a training."""
    assert sum(range(100_000)) == 4_999_950_000
    tell(out, role, [])


def start(kind, target, words):
    """Starts a process of a kind."""
    process = multiprocessing.get_context(kind).Process(target=target, args=words)
    process.start()
    return process


def join(processes):
    """Waits for processes, which must succeed."""
    for process in processes:
        process.join()
        assert process.exitcode == 0, f"{process.name}: {process.exitcode}"


def main():
    """Runs each kind of process."""
    folder, code, out = sys.argv[1:]
    given = (folder, code, out)
    # The children of fork load HIP themselves.
    join([start("fork", use, (*given, f"fork-{one}", one)) for one in (1, 2)])
    # Fork after HIP is loaded, and before anything uses it: `import torch` and a fork.
    loader = threading.Thread(target=load, args=(folder,))
    loader.start()
    loader.join()
    children = [start("fork", use, (*given, f"loaded-{one}", one)) for one in (3, 4)]
    children += [start("spawn", use, (*given, f"spawn-{one}", one)) for one in (5, 6)]
    children += [start("forkserver", use, (*given, f"forkserver-{one}", one)) for one in (7, 8)]
    join(children)
    use(*given, "main", 0)
    # HIP does not work in a fork of a program that used it, and these do not use it.
    join([start("fork", data, (out, f"data-{one}")) for one in (9, 10)])


if __name__ == "__main__":
    main()
