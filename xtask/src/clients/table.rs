//! The programs of others that tracer is compared on.

use super::roots::{CUPY, EXPERIMENTAL, HIPCUB, LIBRARIES, RCCL, ROCBLAS, ROCRTST, Root, SID};

/// What a program must show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The trace equals the truth log.
    Equal,
    /// The program stores to doorbells itself: the trace counts its dispatches by path `unseen`, and rule `coverage` fails.
    Unseen,
    /// The program stores to doorbells itself, on a queue of PM4 commands, which tracer does not read: the trace says that its
    /// dispatches are unknown, and rule `coverage` fails.
    Opaque,
}

/// A program and the places where it runs.
pub struct Client {
    /// The name in the document, and on the command line.
    pub name: &'static str,
    /// The package or wheel whose version is the program's.
    pub package: &'static str,
    /// Where it runs: the folder, and the simulated GPU.
    pub on: &'static [(&'static Root, &'static str)],
    /// The number of GPUs.
    pub gpus: u8,
    /// Variables beside those that each program has.
    pub environment: &'static [(&'static str, &'static str)],
    /// The program and its arguments. The folder `tests/e2e/clients` is `/clients` there.
    pub command: &'static [&'static str],
    /// `--api` of the recording.
    pub api: &'static str,
    /// The outcome of rule `coverage` of `tracer verify` that suffices.
    pub coverage: &'static str,
    /// Seconds that the recording may take.
    pub limit: u64,
    /// Whether it must exit with 0. Programs that check their results fail where kernels have no effect.
    pub succeeds: bool,
    /// At least so many dispatches: a program that gives up early shows nothing.
    pub at_least: u64,
    /// What it must show.
    pub expect: Expect,
    /// Whether it is part of `cargo xtask test`.
    pub quick: bool,
    /// Why it cannot be compared yet. It runs only if it is named.
    pub waits: Option<&'static str>,
}

/// The places of what is in every folder above, so that each runtime meets each class of GPU.
const BOTH: &[(&Root, &str)] = &[(&SID, "gfx942"), (&EXPERIMENTAL, "gfx1100")];
const BOTH_TURNED: &[(&Root, &str)] = &[(&SID, "gfx1100"), (&EXPERIMENTAL, "gfx942")];

const SIMPLE: Client = Client {
    name: "",
    package: "",
    on: BOTH,
    gpus: 1,
    environment: &[],
    command: &[],
    api: "all",
    coverage: "pass",
    limit: 120,
    succeeds: true,
    at_least: 0,
    expect: Expect::Equal,
    quick: false,
    waits: None,
};

/// The programs.
pub const CLIENTS: &[Client] = &[
    Client {
        name: "rocminfo",
        package: "rocminfo",
        on: &[(&SID, "gfx942"), (&EXPERIMENTAL, "gfx1100")],
        command: &["/usr/bin/rocminfo"],
        ..SIMPLE
    },
    Client {
        name: "clinfo",
        package: "clinfo",
        command: &["/usr/bin/clinfo"],
        on: BOTH_TURNED,
        quick: true,
        ..SIMPLE
    },
    Client {
        name: "pyopencl",
        package: "python3-pyopencl",
        command: &["/usr/bin/python3", "/clients/opencl.py"],
        at_least: 400,
        quick: true,
        ..SIMPLE
    },
    Client {
        name: "clpeak",
        package: "clpeak",
        command: &[
            "/usr/bin/clpeak",
            "--compute-sp",
            "--global-bandwidth",
            "--kernel-latency",
        ],
        on: BOTH_TURNED,
        at_least: 1000,
        ..SIMPLE
    },
    Client {
        name: "hip-processes",
        package: "libamdhip64-dev",
        command: &["/usr/bin/python3", "/clients/hip.py"],
        at_least: 100,
        quick: true,
        ..SIMPLE
    },
    Client {
        name: "tinygrad DEV=HIP",
        package: "tinygrad",
        command: &["/usr/bin/python3", "/clients/tiny.py"],
        environment: &[("DEV", "HIP"), ("HIP_PATH", "/usr/lib/x86_64-linux-gnu/libamdhip64.so")],
        at_least: 20,
        ..SIMPLE
    },
    Client {
        name: "llama-bench",
        package: "libggml0-backend-hip",
        on: &[(&ROCBLAS, "gfx90a"), (&ROCBLAS, "gfx1100")],
        command: &[
            "/usr/bin/python3",
            "/clients/llama.py",
            "-p",
            "16",
            "-n",
            "8",
            "-r",
            "1",
            "-ngl",
            "99",
        ],
        at_least: 500,
        limit: 300,
        ..SIMPLE
    },
    Client {
        name: "rocblas-bench",
        package: "librocblas4-bench",
        on: &[(&ROCBLAS, "gfx90a"), (&ROCBLAS, "gfx1100")],
        command: &[
            "/usr/libexec/rocm/librocblas4-bench/rocblas-bench",
            "-f",
            "gemm",
            "-r",
            "f32_r",
            "-m",
            "128",
            "-n",
            "128",
            "-k",
            "128",
            "-i",
            "100",
        ],
        // The runtime asks for 22,623 kernels, each in many calls: only HIP's calls are recorded.
        api: "hip",
        at_least: 100,
        limit: 300,
        ..SIMPLE
    },
    Client {
        name: "rocrand tests",
        package: "librocrand1-tests",
        on: &[(&LIBRARIES, "gfx90a"), (&LIBRARIES, "gfx1100")],
        command: &["/usr/libexec/rocm/librocrand1-tests/test_rocrand_generate_uniform"],
        succeeds: false,
        at_least: 20,
        ..SIMPLE
    },
    Client {
        name: "hiprand tests",
        package: "libhiprand1-tests",
        on: &[(&LIBRARIES, "gfx90a"), (&LIBRARIES, "gfx1100")],
        command: &["/usr/libexec/rocm/libhiprand1-tests/test_hiprand_kernel"],
        succeeds: false,
        at_least: 20,
        limit: 300,
        ..SIMPLE
    },
    Client {
        name: "hipcub tests",
        package: "libhipcub-tests",
        on: &[(&HIPCUB, "gfx90a"), (&HIPCUB, "gfx1100")],
        command: &["/usr/libexec/rocm/libhipcub-tests/test_hipcub_device_copy"],
        succeeds: false,
        at_least: 20,
        limit: 300,
        ..SIMPLE
    },
    Client {
        name: "rocfft-test",
        package: "librocfft0-tests",
        on: &[(&LIBRARIES, "gfx90a"), (&LIBRARIES, "gfx1100")],
        command: &[
            "/usr/libexec/rocm/librocfft0-tests/rocfft-test",
            "--gtest_filter=*pow2_1D/accuracy_test.vs_fftw/*len_64_*",
        ],
        succeeds: false,
        at_least: 10,
        limit: 300,
        ..SIMPLE
    },
    Client {
        name: "rocrtst",
        package: "libhsa-runtime64-tests",
        on: &[(&ROCRTST, "gfx942"), (&ROCRTST, "gfx1100")],
        environment: &[("ROCRTST_KERNELS_PATH", "/usr/libexec/rocm/libhsa-runtime64-tests")],
        // One test calls hsa_init two thousand million times, and others allocate all memory.
        command: &[
            "/usr/libexec/rocm/libhsa-runtime64-tests/rocrtst64",
            "--gtest_filter=rocrtst.*:rocrtstFunc.Memory*:rocrtstFunc.Group*:rocrtstFunc.Concurrent_*:rocrtstFunc.Reference_Count\
             :rocrtstNeg.Queue_*:rocrtstPerf.AQL_*-*Max*:*Available*",
        ],
        // A test rings for a packet that it never writes.
        coverage: "inconclusive",
        succeeds: false,
        at_least: 10,
        limit: 300,
        ..SIMPLE
    },
    Client {
        name: "CuPy",
        package: "cupy-rocm-7-0",
        on: &[(&CUPY, "gfx90a"), (&CUPY, "gfx1100")],
        command: &["/usr/bin/python3", "/clients/arrays.py"],
        // Debian has no folder of ROCm's own: the compiler finds its headers below this one.
        environment: &[("ROCM_HOME", "/usr"), ("CUPY_CACHE_IN_MEMORY", "1")],
        at_least: 50,
        limit: 300,
        ..SIMPLE
    },
    Client {
        name: "RCCL tests",
        package: "librccl1-tests",
        on: &[(&RCCL, "gfx90a"), (&RCCL, "gfx1100")],
        command: &[
            "/usr/libexec/rocm/librccl1-tests/rccl-UnitTests",
            "--gtest_filter=AllReduce.OutOfPlace:AllReduce.InPlace:Broadcast.OutOfPlace",
        ],
        succeeds: false,
        at_least: 100,
        limit: 600,
        ..SIMPLE
    },
    Client {
        name: "RCCL tests, two GPUs",
        package: "librccl1-tests",
        on: &[(&RCCL, "gfx90a"), (&RCCL, "gfx942")],
        gpus: 2,
        command: &[
            "/usr/libexec/rocm/librccl1-tests/rccl-UnitTests",
            "--gtest_filter=AllReduce.*",
        ],
        // RCCL refuses gfx942 with the firmware version of the simulated device otherwise.
        environment: &[("HSA_NO_SCRATCH_RECLAIM", "1")],
        succeeds: false,
        at_least: 10,
        limit: 600,
        ..SIMPLE
    },
    Client {
        name: "tinygrad DEV=AMD",
        package: "tinygrad",
        on: &[(&SID, "gfx942")],
        command: &["/usr/bin/python3", "/clients/tiny.py"],
        environment: &[("DEV", "AMD")],
        at_least: 20,
        expect: Expect::Unseen,
        ..SIMPLE
    },
    Client {
        name: "tinygrad DEV=AMD, PM4",
        package: "tinygrad",
        on: &[(&SID, "gfx1100")],
        command: &["/usr/bin/python3", "/clients/tiny.py"],
        environment: &[("DEV", "AMD")],
        at_least: 20,
        expect: Expect::Opaque,
        ..SIMPLE
    },
];
