//! The HIP, HSA and OpenCL functions whose calls tracer records or counts, and the locations of their arguments.
//!
//! Signatures: `hip_runtime_api.h` of HIP 5.2 to 7.2, `hsa.h`, `hsa_ext_amd.h` and `hsa_ext_image.h` of ROCr 5.2 to 7.2, `cl.h`. The
//! functions named here have the same arguments in all of them. tracer does not probe a function that a library does not export.

mod catalog;
mod class;
pub mod stats;

pub use catalog::FUNCTIONS;
pub use class::{Class, Classes};

named! {
    /// The library that exports a function.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Layer {
        /// libamdhip64.
        Hip = "hip",
        /// libhsa-runtime64.
        Hsa = "hsa",
        /// libamdocl64.
        OpenCl = "opencl",
    }
}

/// The meaning of the return register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// `hipError_t`, `hsa_status_t` or a status of OpenCL.
    Status,
    /// A value; no value is an error.
    Value,
    /// Nothing.
    Nothing,
}

/// The location of an argument at a function's entry, by the System V x86-64 ABI (section 3.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(u8);

impl At {
    /// The function has no such argument.
    pub const NONE: Self = Self(0);

    /// Returns the location of the `n`th integer register, from 0 (`rdi`, `rsi`, `rdx`, `rcx`, `r8`, `r9`).
    #[must_use]
    pub const fn register(n: u8) -> Self {
        assert!(n < 6);
        Self(1 + n)
    }

    /// Returns the location of the `n`th word on the stack after the return address, from 0.
    #[must_use]
    pub const fn stack(n: u8) -> Self {
        assert!(n < 9);
        Self(7 + n)
    }
}

/// A function whose calls tracer records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// The exported name.
    pub name: &'static str,
    /// The library that exports it.
    pub layer: Layer,
    /// What a call of it is for.
    pub class: Class,
    /// The meaning of the return value.
    pub returns: Returns,
    /// The stream that the function works on.
    pub stream: At,
    /// The number of bytes that the call concerns.
    pub bytes: At,
    /// The object of the call: a kernel, a destination, a handle.
    pub object: At,
    /// Whether `object` is the location where the function stores the handle or address that it creates.
    pub makes: bool,
    /// Whether the function calls back its caller, who can call other functions of the library there.
    pub calls_back: bool,
}

impl Function {
    pub(crate) const fn new(layer: Layer, class: Class, name: &'static str) -> Self {
        Self {
            name,
            layer,
            class,
            returns: Returns::Status,
            stream: At::NONE,
            bytes: At::NONE,
            object: At::NONE,
            makes: false,
            calls_back: false,
        }
    }

    pub(crate) const fn on(self, stream: At) -> Self {
        Self { stream, ..self }
    }

    pub(crate) const fn bytes(self, bytes: At) -> Self {
        Self { bytes, ..self }
    }

    pub(crate) const fn of(self, object: At) -> Self {
        Self { object, ..self }
    }

    pub(crate) const fn makes(self, object: At) -> Self {
        Self {
            object,
            makes: true,
            ..self
        }
    }

    pub(crate) const fn value(self) -> Self {
        Self {
            returns: Returns::Value,
            ..self
        }
    }

    pub(crate) const fn nothing(self) -> Self {
        Self {
            returns: Returns::Nothing,
            ..self
        }
    }

    pub(crate) const fn calls_back(self) -> Self {
        Self {
            calls_back: true,
            ..self
        }
    }

    /// Returns whether a call that returned `ret` failed. Unfinished work (`hipErrorNotReady`) and a loop that was left early
    /// (`HSA_STATUS_INFO_BREAK`) are not failures.
    #[must_use]
    pub const fn failed(&self, ret: i64) -> bool {
        matches!(self.returns, Returns::Status) && failed(self.layer, ret)
    }
}

/// Returns whether a status is an error.
#[inline(always)]
const fn failed(layer: Layer, ret: i64) -> bool {
    const HIP_NOT_READY: u32 = 600;
    const HSA_INFO_BREAK: u32 = 1;
    let status = ret as u32;
    match layer {
        Layer::Hip => status != 0 && status != HIP_NOT_READY,
        Layer::Hsa => status > HSA_INFO_BREAK,
        Layer::OpenCl => (status as i32) < 0,
    }
}

/// Finds a function by its name and returns its number.
#[must_use]
pub fn find(layer: Layer, name: &str) -> Option<usize> {
    FUNCTIONS.iter().position(|f| f.layer == layer && f.name == name)
}

/// Returns the class of a function by the names of its layer and its own; `None` if the catalogue does not have it.
#[must_use]
pub fn class_of(layer: &str, name: &str) -> Option<Class> {
    let layer = Layer::ALL.into_iter().find(|known| known.name() == layer)?;
    find(layer, name).map(|number| FUNCTIONS[number].class)
}

/// Bytes of a page, the unit in which [`Cookie`] counts.
const PAGE: u64 = 4096;
/// Bits for each number of pages.
const PAGE_BITS: u32 = 19;
/// The lowest bit of the first of them.
const PAGES: u32 = 26;
const PAGE_MASK: u64 = (1 << PAGE_BITS) - 1;

/// Everything that the eBPF programs must know about a probed function, in the 64 bits of an attach cookie. The programs need no
/// lookup.
///
/// From the lowest bit: number of the function (10 bits), locations of stream, bytes and object (4 each), whether the function
/// creates its object (1), whether it returns no status (1), whether its calls are only counted (1), whether it calls back its caller
/// (1), pages from the first page of the library's code to the page of the probe (19), and pages of that code (19). Calls from that
/// code are the library's own. tracer does not record them, unless the code has no pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie(pub u64);

impl Cookie {
    /// Builds the cookie for function `number` of [`FUNCTIONS`]. `counted`: its calls are counted, without records. `code` is the range of the library's code whose own calls are left
    /// out, and `site` is the location of the probe; all are offsets of the same kind. Returns `None` if the library is too large
    /// (2 GiB).
    #[must_use]
    pub fn new(number: usize, counted: bool, code: core::ops::Range<u64>, site: u64) -> Option<Self> {
        let function = FUNCTIONS.get(number)?;
        let low = number as u64
            | u64::from(function.stream.0) << 10
            | u64::from(function.bytes.0) << 14
            | u64::from(function.object.0) << 18
            | u64::from(function.makes) << 22
            | u64::from(!matches!(function.returns, Returns::Status)) << 23
            | u64::from(counted) << 24
            | u64::from(function.calls_back) << 25;
        if code.is_empty() {
            return Some(Self(low));
        }
        let first = code.start / PAGE;
        let before = (site / PAGE).checked_sub(first)?;
        let pages = code.end.div_ceil(PAGE) - first;
        (before <= PAGE_MASK && pages <= PAGE_MASK)
            .then_some(Self(low | before << PAGES | pages << (PAGES + PAGE_BITS)))
    }

    /// Returns the number of the function.
    #[must_use]
    #[inline(always)]
    pub const fn function(self) -> u32 {
        (self.0 & 0x3ff) as u32
    }

    /// Returns the layer. The HIP functions come first, then those of HSA.
    #[must_use]
    #[inline(always)]
    pub const fn layer(self) -> Layer {
        let function = self.function();
        if function < catalog::HIP as u32 {
            Layer::Hip
        } else if function < catalog::HIP_HSA as u32 {
            Layer::Hsa
        } else {
            Layer::OpenCl
        }
    }

    /// Returns whether calls are only counted.
    #[must_use]
    #[inline(always)]
    pub const fn counted(self) -> bool {
        self.0 >> 24 & 1 != 0
    }

    /// Returns whether the function calls back its caller.
    #[must_use]
    #[inline(always)]
    pub const fn calls_back(self) -> bool {
        self.0 >> 25 & 1 != 0
    }

    /// Returns the location of the stream, as [`Cookie::register_of`] and [`Cookie::stack_of`] take it.
    #[must_use]
    #[inline(always)]
    pub const fn stream(self) -> u64 {
        self.0 >> 10 & 15
    }

    /// Returns the location of the number of bytes.
    #[must_use]
    #[inline(always)]
    pub const fn bytes(self) -> u64 {
        self.0 >> 14 & 15
    }

    /// Returns the location of the object.
    #[must_use]
    #[inline(always)]
    pub const fn object(self) -> u64 {
        self.0 >> 18 & 15
    }

    /// Returns whether the call creates the object.
    #[must_use]
    #[inline(always)]
    pub const fn makes(self) -> bool {
        self.0 >> 22 & 1 != 0
    }

    /// Returns whether a call failed; see [`Function::failed`].
    #[must_use]
    #[inline(always)]
    pub const fn failed(self, ret: i64) -> bool {
        self.0 >> 23 & 1 == 0 && failed(self.layer(), ret)
    }

    /// Returns whether a call from `caller`, seen by the probe at `site`, is the library's own. Both addresses are in the process.
    #[must_use]
    #[inline(always)]
    pub const fn is_own(self, site: u64, caller: u64) -> bool {
        let before = (self.0 >> PAGES & PAGE_MASK) * PAGE;
        let bytes = (self.0 >> (PAGES + PAGE_BITS)) * PAGE;
        let begin = (site & !(PAGE - 1)).wrapping_sub(before);
        caller.wrapping_sub(begin) < bytes
    }
}

/// Locations above this one are words on the stack. The first one is after the return address.
pub const LAST_REGISTER: u64 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_have_their_ranges_and_no_name_comes_twice() {
        for (at, function) in FUNCTIONS.iter().enumerate() {
            let cookie = Cookie::new(at, false, 0..0, 0).unwrap();
            assert_eq!(cookie.layer(), function.layer, "{}", function.name);
            assert_eq!(cookie.calls_back(), function.calls_back, "{}", function.name);
            assert_eq!(find(function.layer, function.name), Some(at), "{}", function.name);
            assert!(!function.makes || function.object != At::NONE, "{}", function.name);
        }
        assert!(FUNCTIONS.len() <= 1 << 10);
    }

    #[test]
    fn a_cookie_says_what_the_function_does() {
        let number = find(Layer::Hip, "hipModuleLaunchKernel").unwrap();
        let cookie = Cookie::new(number, false, 0..0, 0x1234).unwrap();
        assert_eq!(
            (
                cookie.function() as usize,
                cookie.layer(),
                cookie.makes(),
                cookie.counted()
            ),
            (number, Layer::Hip, false, false)
        );
        assert_eq!(
            (cookie.object(), cookie.bytes(), cookie.stream()),
            (1, 0, LAST_REGISTER + 3)
        );
        let number = find(Layer::Hsa, "hsa_amd_memory_pool_allocate").unwrap();
        let cookie = Cookie::new(number, true, 0x1_2000..0x8_3001, 0x2_4567).unwrap();
        assert_eq!(
            (cookie.layer(), cookie.makes(), cookie.counted()),
            (Layer::Hsa, true, true)
        );
        assert_eq!((cookie.object(), cookie.bytes(), cookie.stream()), (4, 2, 0));
        // Loaded at 0x7f00_0000_0000.
        let base = 0x7f00_0000_0000;
        let own = |caller: u64| cookie.is_own(base + 0x2_4567, base + caller);
        assert!(own(0x1_2000) && own(0x8_3000) && !own(0x1_1fff) && !own(0x8_4000));
        assert!(!Cookie::new(0, false, 0..0, 0).unwrap().is_own(base, base));
        assert_eq!(Cookie::new(0, false, 0..1 << 40, 0), None);
        assert_eq!(Cookie::new(FUNCTIONS.len(), false, 0..0, 0), None);
    }

    #[test]
    fn what_is_no_failure() {
        let of = |layer, name| FUNCTIONS[find(layer, name).unwrap()];
        let query = of(Layer::Hip, "hipStreamQuery");
        assert!(!query.failed(0) && !query.failed(600) && query.failed(1));
        let init = of(Layer::Hsa, "hsa_init");
        assert!(!init.failed(0) && !init.failed(1) && init.failed(0x1001));
        assert!(!of(Layer::Hsa, "hsa_signal_wait_scacquire").failed(-1));
        assert!(!of(Layer::Hsa, "hsa_signal_store_screlease").failed(0x1001));
        let enqueue = of(Layer::OpenCl, "clEnqueueNDRangeKernel");
        assert!(!enqueue.failed(0) && enqueue.failed(i64::from(-54_i32 as u32)));
        for (number, function) in FUNCTIONS.iter().enumerate() {
            let cookie = Cookie::new(number, false, 0..0, 0).unwrap();
            for ret in [0, 1, 600, 0x1001, -1] {
                assert_eq!(cookie.failed(ret), function.failed(ret), "{}: {ret}", function.name);
            }
        }
    }
}
