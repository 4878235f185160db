//! The place for a probe in a function, in code of real builds and in misleading code.

use tracer_capture::runtime::resolver::{Argument, FunctionSite, InstructionKind, site_in_function};

const DOORBELL: [Argument; 2] = [Argument::Rdi, Argument::Rsi];
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

fn site(code: &[u8]) -> Option<(u64, InstructionKind)> {
    let site = site_in_function(code, 0x1000, &DOORBELL);
    site.map(|FunctionSite { offset, instruction }| (offset, instruction))
}

fn after_endbr64(code: &[u8]) -> Option<(u64, InstructionKind)> {
    site(&[&ENDBR64, code].concat())
}

#[test]
fn a_push_behind_endbr64() {
    assert_eq!(site(&[0x41, 0x54, 0x49, 0x89, 0xf4]), Some((0, InstructionKind::Push))); // push %r12; mov %rsi,%r12
    assert_eq!(
        after_endbr64(&[0x55, 0x48, 0x89, 0xf5]),
        Some((4, InstructionKind::Push))
    ); // push %rbp; mov %rsi,%rbp
}

/// `AqlQueue::StoreRelaxed` of 7.2.4.
#[test]
fn a_conditional_jump_ends_the_prefix_and_is_a_site() {
    let code = [
        0xf3, 0x0f, 0x1e, 0xfa, // endbr64
        0x48, 0x8d, 0x05, 0x45, 0x72, 0x3c, 0x00, // lea flags(%rip),%rax
        0x48, 0x8b, 0x00, // mov (%rax),%rax
        0x48, 0x8b, 0x80, 0xa8, 0x05, 0x00, 0x00, // mov 0x5a8(%rax),%rax
        0x80, 0xb8, 0x69, 0x03, 0x00, 0x00, 0x00, // cmpb $0,0x369(%rax)
        0x75, 0x09, // jne
    ];
    assert_eq!(site(&code), Some((0x1c, InstructionKind::Jcc)));
    let near = [&code[..0x1c], &[0x0f, 0x85, 0x09, 0, 0, 0]].concat();
    assert_eq!(site(&near), Some((0x1c, InstructionKind::Jcc)));
}

#[test]
fn calls_jumps_and_nops() {
    assert_eq!(after_endbr64(&[0xe8, 0, 1, 0, 0]), Some((4, InstructionKind::Call)));
    assert_eq!(after_endbr64(&[0xe9, 0, 1, 0, 0]), Some((4, InstructionKind::Jmp)));
    assert_eq!(after_endbr64(&[0xeb, 0x40]), Some((4, InstructionKind::Jmp)));
    assert_eq!(after_endbr64(&[0x90]), Some((4, InstructionKind::Nop)));
}

/// A fuzzer found this code: with its prefixes a short jump is as long as a near one.
#[test]
fn a_jump_with_prefixes_is_not_one_that_is_known_to_be_emulated() {
    assert_eq!(
        site(&[0xf3, 0x46, 0x4c, 0x45, 0x7f, 0x8d]),
        Some((0, InstructionKind::Other))
    );
}

#[test]
fn encodings_that_the_kernel_steps_are_passed_over() {
    let push_rbx = 0x53;
    assert_eq!(site(&[0x66, 0x90, push_rbx]), Some((2, InstructionKind::Push))); // xchg %ax,%ax
    assert_eq!(
        site(&[0x0f, 0x1f, 0x44, 0, 0, push_rbx]),
        Some((5, InstructionKind::Push))
    ); // nopl
    assert_eq!(site(&[0x48, 0x55, push_rbx]), Some((2, InstructionKind::Push))); // rex.W push %rbp
    assert_eq!(site(&[0x6a, 0x01, push_rbx]), Some((2, InstructionKind::Push))); // push $1
    assert_eq!(site(&[0xff, 0x36, push_rbx]), Some((2, InstructionKind::Push))); // push (%rsi)
}

#[test]
fn no_site_behind_an_overwritten_argument() {
    let other = Some((0, InstructionKind::Other));
    assert_eq!(after_endbr64(&[0x31, 0xf6, 0x55]), other); // xor %esi,%esi; push %rbp
    assert_eq!(after_endbr64(&[0x48, 0x83, 0xef, 0x38, 0xe9, 0, 1, 0, 0]), other); // sub $0x38,%rdi; jmp
    assert_eq!(after_endbr64(&[0x48, 0x87, 0xf0, 0x55]), other); // xchg %rsi,%rax; push %rbp
    let rsi_not_needed = site_in_function(&[0x31, 0xf6, 0x55], 0, &[Argument::Rdi]);
    assert_eq!(
        rsi_not_needed,
        Some(FunctionSite {
            offset: 2,
            instruction: InstructionKind::Push
        })
    );
}

#[test]
fn no_site_behind_other_control_flow() {
    let other = Some((0, InstructionKind::Other));
    assert_eq!(after_endbr64(&[0xc3, 0x55]), other); // ret; push %rbp
    assert_eq!(after_endbr64(&[0xff, 0xe0, 0x55]), other); // jmp *%rax; push %rbp
    assert_eq!(after_endbr64(&[0xff, 0x10, 0x55]), other); // call *(%rax); push %rbp
    assert_eq!(after_endbr64(&[0xe3, 0x10, 0x55]), other); // jrcxz: not among the jumps that the kernel emulates
}

#[test]
fn no_site_in_a_loop() {
    // endbr64; 4: push %rbp; jmp 4
    assert_eq!(after_endbr64(&[0x55, 0xeb, 0xfd]), Some((0, InstructionKind::Other)));
    // 0: push %rbp; jne 0: every instruction can be hit more than once per call.
    assert_eq!(site(&[0x55, 0x75, 0xfd]), None);
}

#[test]
fn no_site_in_what_is_not_code() {
    assert_eq!(site(&[]), None);
    assert_eq!(site(&[0x06]), None);
    assert_eq!(site(&ENDBR64[..3]), None);
    assert_eq!(
        site_in_function(&[0x55], u64::MAX, &DOORBELL).map(|site| site.offset),
        Some(0)
    );
}

/// The search for a place stops near the start of a function: a malicious function may be as long as its file.
#[test]
fn a_site_is_searched_near_the_start() {
    let nothing = [0x31, 0xc0]; // xor %eax,%eax
    let behind = |count: usize| [&nothing.repeat(count)[..], &[0x55]].concat();
    assert_eq!(site(&behind(30)), Some((60, InstructionKind::Push)));
    let other = Some((0, InstructionKind::Other));
    assert_eq!(site(&behind(100)), other);
    // Each place requires a check of every jump. Without a limit, the number of checks would be the square of this count.
    assert_eq!(site(&behind(400_000)), other);
}
