//! Memory that is set as one likes.

use std::ptr;

/// An address at which nothing is.
pub const NOWHERE: u64 = 8;
/// One that no processor has.
pub const IMPOSSIBLE: u64 = 0x8000_0000_0000_0000;
/// One of the kernel's.
pub const KERNEL: u64 = 0xffff_8880_0000_0000;
/// Bytes of a page.
pub const PAGE: usize = 4096;

/// Sets a number at an address of this process, whoever else uses it.
pub fn poke<T>(address: u64, value: T) {
    // SAFETY: memory of the runtime's, or of this program, that is mapped writable. Who else reads it is what this is about.
    unsafe { ptr::with_exposed_provenance_mut::<T>(address as usize).write_volatile(value) };
}

/// The number at an address.
pub fn peek<T: Copy>(address: u64) -> T {
    // SAFETY: as above; mapped memory of plain numbers.
    unsafe { ptr::with_exposed_provenance::<T>(address as usize).read_volatile() }
}

/// The address of what stays until the end.
pub fn keep<T>(value: T) -> u64 {
    Box::into_raw(Box::new(value)).expose_provenance() as u64
}

/// The address of bytes that stay until the end.
pub fn keep_bytes(bytes: Vec<u8>) -> u64 {
    Vec::leak(bytes).as_mut_ptr().expose_provenance() as u64
}

/// These bytes at the end of a page, behind which nothing can be read.
pub fn at_the_end(bytes: &[u8]) -> u64 {
    // SAFETY: a new mapping of two pages, of which the second is made unreadable; the bytes fit into the first.
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
