//! The folders that programs of others run in: what comes from where.

/// A folder with programs and their libraries.
pub struct Root {
    /// The folder's name.
    pub name: &'static str,
    /// Debian's suite.
    pub suite: &'static str,
    /// Packages, which come with all their dependencies.
    pub packages: &'static [&'static str],
    /// Packages whose dependencies are not all in Debian: they come without them.
    pub alone: &'static [&'static str],
    /// Python packages without their dependencies, as `NAME==VERSION`.
    pub wheels: &'static [&'static str],
    /// Files to leave out, as patterns of tar: most libraries have code for GPUs that are not simulated.
    pub leave_out: &'static [&'static str],
    /// Libraries that programs link to and that are not in Debian, or ask more of the device than it simulates.
    pub stand_ins: &'static [StandIn],
}

/// A library whose functions do little.
#[derive(Debug)]
pub struct StandIn {
    /// The library's name.
    pub library: &'static str,
    /// The version of its functions; may be empty.
    pub version: &'static str,
    /// Its source in C.
    pub source: &'static str,
}

const NOTHING: Root = Root {
    name: "",
    suite: "",
    packages: &[],
    alone: &[],
    wheels: &[],
    leave_out: &[],
    stand_ins: &[],
};

const COMMON: &[&str] = &[
    "rocminfo",
    "clinfo",
    "clpeak",
    "rocm-opencl-icd",
    "python3-pyopencl",
    "libamdhip64-dev",
    "python3",
    "python3-numpy",
];

/// ROCr and HIP 6.4.3 (when this was written).
pub static SID: Root = Root {
    name: "sid",
    suite: "sid",
    packages: COMMON,
    wheels: &["tinygrad==0.14.0"],
    ..NOTHING
};

/// ROCr and HIP 7.2.4.
pub static EXPERIMENTAL: Root = Root {
    name: "experimental",
    suite: "experimental",
    packages: COMMON,
    wheels: &["tinygrad==0.14.0"],
    ..NOTHING
};

/// Files with code for GPUs that are not simulated, in the folders of libraries.
const OTHER_GPUS: &[&str] = &[
    "*gfx8[0-9]*",
    "*gfx900*",
    "*gfx906*",
    "*gfx908*",
    "*gfx94[0-1]*",
    "*gfx95*",
    "*gfx10*",
    "*gfx110[1-9]*",
    "*gfx115*",
    "*gfx12*",
];

/// Programs that stand on rocBLAS, which is the largest part of this folder.
pub static ROCBLAS: Root = Root {
    name: "rocblas",
    suite: "sid",
    packages: &[
        "librocblas4-bench",
        "llama.cpp-tools",
        "libggml0-backend-hip",
        "python3",
    ],
    leave_out: OTHER_GPUS,
    stand_ins: &[StandIn {
        library: "librocm_smi64.so.1",
        version: "",
        source: include_str!("../../../tests/e2e/clients/rocm_smi.c"),
    }],
    ..NOTHING
};

pub static LIBRARIES: Root = Root {
    name: "libraries",
    suite: "sid",
    packages: &["librocrand1-tests", "libhiprand1-tests", "librocfft0-tests"],
    ..NOTHING
};

/// With a choice of the tests, which take 2 GB.
pub static HIPCUB: Root = Root {
    name: "hipcub",
    suite: "sid",
    packages: &["libhipcub-tests"],
    leave_out: &[
        "*_block_*",
        "*_radix_sort",
        "*_device_re*",
        "*_segmented_*",
        "*_merge_sort",
        "*_histogram",
        "*_partition",
    ],
    ..NOTHING
};

pub static RCCL: Root = Root {
    name: "rccl",
    suite: "experimental",
    packages: &["librccl1-tests"],
    ..NOTHING
};

/// Without libamd-smi26, which is not in Debian, and only prints what the board reports.
pub static ROCRTST: Root = Root {
    name: "rocrtst",
    suite: "experimental",
    packages: &["libhsa-runtime64-1", "libhwloc15"],
    alone: &["libhsa-runtime64-tests"],
    leave_out: OTHER_GPUS,
    stand_ins: &[StandIn {
        library: "libamd_smi.so.26",
        version: "",
        source: include_str!("../../../tests/e2e/clients/amd_smi.c"),
    }],
    ..NOTHING
};

/// Without libroctracer64, which is not in Debian, and is called only to profile.
pub static CUPY: Root = Root {
    name: "cupy",
    suite: "experimental",
    packages: &[
        "python3",
        "python3-numpy",
        "libamdhip64-dev",
        "libhipblas3",
        "libhipfft0",
        "libhiprand1",
        "libhipsparse4",
        "librocsolver0",
        "librocblas5",
        "librocfft0",
        "libroctx64-4",
        // CuPy compiles its kernels against these headers, and asks this compiler where more are, which needs a shell.
        "hipcc",
        "dash",
        "librocthrust-dev",
    ],
    wheels: &["cupy-rocm-7-0==14.2.0"],
    leave_out: OTHER_GPUS,
    stand_ins: &[StandIn {
        library: "libroctracer64.so.4",
        version: "ROCTRACER_4.0",
        source: include_str!("../../../tests/e2e/clients/roctracer.c"),
    }],
    ..NOTHING
};
