//! Functions of the kernel driver: KFD handlers, queue life, MES and HWS. One pair of programs serves all of them; the address
//! identifies the function, and selects the plan by which facts are read from its arguments.

use core::ptr::addr_of_mut;

use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns, generated::bpf_get_func_ip},
    macros::{kprobe, kretprobe, map},
    maps::HashMap,
    programs::{ProbeContext, RetProbeContext},
};
use tracer_common::{
    driver_plan::{DriverPlan, FACTS, FactPlan, MAX_HOPS},
    record::{DriverCall, Header, LossSource, driver_flags as flag, kind},
};

use crate::{
    kernel,
    maps::{Current, EVENTS, NO_WAKEUP, lose},
};

/// A call in progress. A thread may be in several nested functions, but only once in each.
#[repr(C)]
#[derive(Clone, Copy)]
struct CallKey {
    thread: u64,
    function: u64,
}

/// Room for the arguments in registers: a power of two, so that every number of an argument can be bounded.
const ARGUMENTS: usize = 8;

/// What is known of a call in progress.
#[repr(C)]
#[derive(Clone, Copy)]
struct Call {
    enter_ns: u64,
    arguments: [u64; ARGUMENTS],
    facts: [u64; FACTS],
    /// A bit for each fact that was read.
    has: u32,
    pad: u32,
}

/// The calls in progress.
#[map]
static DRIVER_CALLS: HashMap<CallKey, Call> = HashMap::with_max_entries(4096, 0);

/// The plans of functions, by address.
#[map]
static DRIVER_PLANS: HashMap<u64, DriverPlan> = HashMap::with_max_entries(64, 0);

#[kprobe]
pub fn driver_enter(ctx: ProbeContext) -> u32 {
    let key = key(&ctx);
    // SAFETY: user space changes plans before it attaches this program.
    let plan = unsafe { DRIVER_PLANS.get(key.function) };
    let mut call = Call {
        // SAFETY: a helper without preconditions.
        enter_ns: unsafe { bpf_ktime_get_ns() },
        arguments: [0; ARGUMENTS],
        facts: [0; FACTS],
        has: 0,
        pad: 0,
    };
    if plan.is_some() {
        // SAFETY: fields of the program's context.
        call.arguments = unsafe {
            let regs = &*ctx.regs;
            [regs.rdi, regs.rsi, regs.rdx, regs.rcx, regs.r8, regs.r9, 0, 0]
        };
    }
    if DRIVER_CALLS.insert(key, call, 0).is_err() {
        lose(LossSource::DriverMap, 1);
    } else if let Some(plan) = plan
        && plan.at_return == 0
        && let Some(call) = DRIVER_CALLS.get_ptr_mut(key)
    {
        read_facts(plan, call);
    }
    0
}

#[kretprobe]
pub fn driver_return(ctx: RetProbeContext) -> u32 {
    let key = key(&ctx);
    let Some(call) = DRIVER_CALLS.get_ptr_mut(key) else {
        // The function was entered before the probe was attached.
        return 0;
    };
    let ret = ctx.ret::<u64>() as i64;
    // SAFETY: user space changes plans before it attaches this program.
    let plan = unsafe { DRIVER_PLANS.get(key.function) };
    // The arguments of a call that failed may be gone.
    if ret as i32 == 0
        && let Some(plan) = plan
        && plan.at_return != 0
    {
        read_facts(plan, call);
    }
    // SAFETY: only this thread changes the entry, and it is running here.
    let (enter_ns, facts, has) = unsafe { ((*call).enter_ns, (*call).facts, (*call).has) };
    let _ = DRIVER_CALLS.remove(key);
    let Some(mut entry) = EVENTS.reserve::<DriverCall>(0) else {
        lose(LossSource::DriverRing, 1);
        return 0;
    };
    let traced = if Current::traced().is_some() { flag::TRACED } else { 0 };
    entry.write(DriverCall {
        header: Header {
            kind: kind::DRIVER_CALL,
            flags: traced,
            site: 0,
            time_ns: enter_ns,
            tgid: (key.thread >> 32) as u32,
            tid: key.thread as u32,
        },
        // SAFETY: a helper without preconditions.
        exit_ns: unsafe { bpf_ktime_get_ns() },
        function: key.function,
        ret,
        facts,
        has,
        pad: 0,
    });
    entry.submit(NO_WAKEUP);
    0
}

/// Reads the facts to which the plan leads: at most `FACTS * MAX_HOPS` reads of kernel memory.
#[inline(always)]
fn read_facts(plan: &DriverPlan, call: *mut Call) {
    let mut has = 0;
    for number in 0..FACTS {
        if let Some(fact) = follow(&plan.facts[number], call) {
            // SAFETY: an entry of the map stays valid for the program's run; only this thread changes it.
            unsafe { addr_of_mut!((*call).facts[number]).write(fact) };
            has |= 1 << number;
        }
    }
    // SAFETY: as above.
    unsafe { addr_of_mut!((*call).has).write(has) };
}

/// Follows the way from an argument to a fact.
#[inline(always)]
fn follow(way: &FactPlan, call: *mut Call) -> Option<u64> {
    let hops = usize::from(way.hops);
    if hops == 0 {
        return None;
    }
    let argument = usize::from(way.argument) & (ARGUMENTS - 1);
    // SAFETY: the number is bounded, and an entry of the map stays valid for the program's run.
    let mut at = unsafe {
        let arguments: *mut u64 = addr_of_mut!((*call).arguments).cast();
        arguments.add(argument).read_volatile()
    };
    for hop in 0..MAX_HOPS {
        let offset = way.offsets[hop];
        // SAFETY: any bytes are a valid number.
        unsafe {
            if hop + 1 == hops {
                return match way.bytes {
                    2 => kernel::at::<u16>(at, offset).map(u64::from),
                    4 => kernel::at::<u32>(at, offset).map(u64::from),
                    _ => kernel::at::<u64>(at, offset),
                };
            }
            at = kernel::at::<u64>(at, offset)?;
        }
        if at == 0 {
            return None;
        }
    }
    None
}

#[inline(always)]
fn key<C: EbpfContext>(ctx: &C) -> CallKey {
    CallKey {
        thread: bpf_get_current_pid_tgid(),
        // SAFETY: the helper's only precondition is a valid context, and this is one.
        function: unsafe { bpf_get_func_ip(ctx.as_ptr()) },
    }
}
