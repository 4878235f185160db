//! The catalog of functions, one per line.

mod hip;
mod hsa;
mod opencl;

use super::{At, Function};

const A0: At = At::register(0);
const A1: At = At::register(1);
const A2: At = At::register(2);
const A3: At = At::register(3);
const A4: At = At::register(4);
const A5: At = At::register(5);
const S0: At = At::stack(0);
const S1: At = At::stack(1);
const S2: At = At::stack(2);

/// The number of HIP functions.
pub(super) const HIP: usize = hip::ALL.len();
/// The number of HIP and HSA functions.
pub(super) const HIP_HSA: usize = HIP + hsa::ALL.len();

/// The functions. A function's number is an index into this table, and is valid within one build only.
pub static FUNCTIONS: [Function; HIP_HSA + opencl::ALL.len()] = {
    let mut all = [hsa::ALL[0]; HIP_HSA + opencl::ALL.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < HIP {
            hip::ALL[at]
        } else if at < HIP_HSA {
            hsa::ALL[at - HIP]
        } else {
            opencl::ALL[at - HIP_HSA]
        };
        at += 1;
    }
    all
};
