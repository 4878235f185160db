//! The eBPF programs of `tracer`. They capture and filter; user space draws every conclusion.
//!
//! Each probe family has one file, named as in the other crates. `maps.rs` contains what they share with user space.
#![no_std]
#![no_main]
// For `atomic.rs`.
#![feature(asm_experimental_arch)]

#[macro_use]
mod diagnostics;

mod api;
mod atomic;
mod code_object;
mod cost;
mod doorbell;
mod driver;
mod driver_event;
mod first_use;
mod hsa_queue;
mod ioctl;
mod kernel;
mod mapping;
mod maps;
mod pause;
mod process;
mod progress;
mod proxy;
mod reserve;
mod ring;
mod sdma;
mod signals;
mod stacks;
mod stops;
mod task;
mod user;

#[cfg(not(test))]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    // The verifier rejects any program in which this is reachable.
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
