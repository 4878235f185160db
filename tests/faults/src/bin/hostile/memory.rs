//! Direct access to the process's own memory.

use std::ptr;

/// An address at which nothing is mapped.
pub const NOWHERE: u64 = 8;
/// An address that no processor has.
pub const IMPOSSIBLE: u64 = 0x8000_0000_0000_0000;
/// An address in the kernel.
pub const KERNEL: u64 = 0xffff_8880_0000_0000;
/// The size of a page.
pub const PAGE: usize = 4096;

/// Stores a number at an address of this process, even if other code uses the memory.
pub fn poke<T>(address: u64, value: T) {
    // SAFETY: the memory belongs to the runtime or to this program and is mapped writable. Other readers of it are the purpose of
    // this program.
    unsafe { ptr::with_exposed_provenance_mut::<T>(address as usize).write_volatile(value) };
}

/// Returns the number at an address.
pub fn peek<T: Copy>(address: u64) -> T {
    // SAFETY: as above; the memory is mapped and holds plain numbers.
    unsafe { ptr::with_exposed_provenance::<T>(address as usize).read_volatile() }
}

/// Leaks a value and returns its address.
pub fn keep<T>(value: T) -> u64 {
    Box::into_raw(Box::new(value)).expose_provenance() as u64
}

/// Leaks bytes and returns their address.
pub fn keep_bytes(bytes: Vec<u8>) -> u64 {
    Vec::leak(bytes).as_mut_ptr().expose_provenance() as u64
}

/// Places these bytes at the end of a page whose successor cannot be read. Returns their address.
pub fn at_the_end(bytes: &[u8]) -> u64 {
    // SAFETY: a new mapping of two pages, the second of which becomes unreadable; the bytes fit into the first.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let pages = libc::mmap(ptr::null_mut(), 2 * PAGE, protection, flags, -1, 0).cast::<u8>();
        libc::mprotect(pages.add(PAGE).cast(), PAGE, libc::PROT_NONE);
        let place = pages.add(PAGE - bytes.len());
        ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
        place.expose_provenance() as u64
    }
}
