//! Tests of the resolver with real HSA runtimes, changed copies of one, and files that are not HSA runtimes.

#[path = "resolver/changed.rs"]
mod changed;
#[path = "resolver/code_objects.rs"]
mod code_objects;
#[path = "resolver/damaged.rs"]
mod damaged;
#[path = "resolver/debug.rs"]
mod debug;
#[path = "resolver/known.rs"]
mod known;
#[path = "resolver/library.rs"]
mod library;
#[path = "resolver/names.rs"]
mod names;
#[path = "resolver/patch.rs"]
mod patch;
#[path = "resolver/shift.rs"]
mod shift;
#[path = "resolver/sites.rs"]
mod sites;
#[path = "resolver/steps.rs"]
mod steps;
#[path = "resolver/thunk.rs"]
mod thunk;

use known::{KNOWN, Known};
use tracer_capture::runtime::resolver::{
    Argument, Confidence, DoorbellRole, InstructionKind, QueueRole, ReserveOperation, Resolution, ResolverStep,
    ThunkFlags, looks_like_hsa_runtime, resolve,
};

#[test]
fn real_libraries_resolve() {
    for (suite, bytes) in library::all() {
        assert!(looks_like_hsa_runtime(&bytes), "{suite}");
        let resolution = resolve(&bytes).unwrap();
        assert_invariants(&suite, &resolution);
        let known = KNOWN
            .iter()
            .find(|known| resolution.build_id.as_deref() == Some(known.build_id));
        if let Some(known) = known {
            assert_known(known, &resolution);
            assert_known_queue(known, &resolution);
        } else {
            // Debian's released suites keep their builds; the others get new ones.
            let build_id = resolution.build_id.unwrap_or_default();
            assert!(
                !library::RELEASED.contains(&suite.as_str()),
                "a new build in {suite}, {build_id}: add it to tests/resolver/known.rs"
            );
            eprintln!("{suite}: build {build_id} is not in tests/resolver/known.rs");
        }
    }
}

/// Checks the properties of every build, including unknown ones.
fn assert_invariants(suite: &str, resolution: &Resolution) {
    assert_eq!(resolution.soname.as_deref(), Some("libhsa-runtime64.so.1"), "{suite}");
    assert!(resolution.build_id.is_some(), "{suite}");
    assert_eq!(resolution.notes, Vec::<String>::new(), "{suite}");
    let doorbells = &resolution.doorbells;
    let mains = doorbells.iter().filter(|site| site.role == DoorbellRole::Main);
    assert_eq!(mains.count(), 1, "{suite}");
    for site in doorbells {
        let before_store = site.doorbell_stores.iter().all(|store| site.probe.vaddr < *store);
        assert!(before_store && !site.doorbell_stores.is_empty(), "{suite}: {site:x?}");
        assert!(site.probe.instruction.is_emulated(), "{suite}: {site:x?}");
        assert_eq!(site.value_register, Argument::Rsi, "{suite}");
    }
    // All functions that may hand over check the same bytes.
    let may_hand_over = doorbells.iter().any(|site| site.thunk_bypass);
    assert_eq!(resolution.thunk_flags().is_some(), may_hand_over, "{suite}");
    assert!(!resolution.sdma.is_empty(), "{suite}");
    for site in &resolution.sdma {
        assert_eq!(site.wptr_ptr_offset, site.doorbell_ptr_offset + 8, "{suite}");
        assert!(
            site.probe.vaddr < site.doorbell_store && site.probe.instruction.is_emulated(),
            "{suite}: {site:x?}"
        );
    }
    let mut names: Vec<_> = resolution
        .exports
        .reserves
        .iter()
        .flat_map(|site| &site.export.names)
        .collect();
    names.sort();
    assert_eq!(
        names.len(),
        17,
        "add, store, cas with every order and its alias: {names:?}"
    );
    let operations = [
        (ReserveOperation::Add, 4),
        (ReserveOperation::Store, 2),
        (ReserveOperation::Cas, 4),
    ];
    for (operation, count) in operations {
        let sites = resolution
            .exports
            .reserves
            .iter()
            .filter(|site| site.operation == operation);
        assert_eq!(sites.count(), count, "{suite}: {operation:?}");
    }
    assert!(
        resolution
            .exports
            .reserves
            .iter()
            .all(|site| site.export.table.is_some()),
        "{suite}"
    );
}

fn assert_known(known: &Known, resolution: &Resolution) {
    let version = known.version;
    assert_eq!(resolution.doorbells.len(), known.doorbells.len(), "{version}");
    for (site, expected) in resolution.doorbells.iter().zip(known.doorbells) {
        assert_eq!(
            (site.role, site.probe.function),
            (expected.role, expected.function),
            "{version}"
        );
        assert_eq!(
            (site.probe.vaddr - site.probe.function, site.probe.instruction),
            expected.site,
            "{version}"
        );
        assert_eq!(site.probe.file_offset, site.probe.vaddr, "{version}");
        assert_eq!(site.signal_offset, expected.signal_offset, "{version}");
        assert_eq!(site.doorbell_stores, expected.stores, "{version}");
        assert_eq!(site.thunk_bypass, expected.thunk_bypass, "{version}");
        assert_eq!(site.thunk_flags, expected_flags(known), "{version}: {site:x?}");
        assert_eq!(site.step, ResolverStep::VtableShape, "{version}");
    }
    assert_eq!(resolution.thunk_flags(), expected_flags(known).as_ref(), "{version}");
    let sdma = resolution.sdma.iter().map(|site| {
        let probe = site.probe;
        (
            probe.function,
            probe.vaddr - probe.function,
            site.doorbell_store,
            site.width,
            site.doorbell_ptr_offset,
        )
    });
    assert_eq!(sdma.collect::<Vec<_>>(), known.sdma, "{version}");
    let exports = [
        ("hsa_queue_create", known.queue_create, 0x48),
        ("hsa_queue_destroy", known.queue_destroy, 0x58),
        ("hsa_queue_add_write_index_relaxed", known.add_write_index_relaxed, 0xc8),
        (
            "hsa_queue_add_write_index_screlease",
            known.add_write_index_screlease,
            0xd0,
        ),
        (
            "hsa_queue_add_write_index_release",
            known.add_write_index_screlease,
            0xd0,
        ),
        ("hsa_signal_store_relaxed", known.signal_store_relaxed, 0x158),
        ("hsa_signal_store_screlease", known.signal_store_screlease, 0x160),
    ];
    let all = &resolution.exports;
    let sites = all.reserves.iter().map(|site| &site.export).chain(&all.signal_stores);
    let sites: Vec<_> = sites.chain(&all.queue_create).chain(&all.queue_destroy).collect();
    for (name, vaddr, slot) in exports {
        let site = sites.iter().find(|site| site.names.iter().any(|known| known == name));
        let found = site.map(|site| {
            (
                site.probe.function,
                site.probe.file_offset,
                site.table.map(|table| table.slot_offset),
            )
        });
        assert_eq!(found, Some((vaddr, vaddr, Some(slot))), "{version}: {name}");
    }
}

fn expected_flags(known: &Known) -> Option<ThunkFlags> {
    known.thunk.as_ref().map(|thunk| ThunkFlags {
        pointer: thunk.pointer,
        hops: thunk.hops.to_vec(),
        flags: thunk.flags.to_vec(),
    })
}

/// Checks that every function that does not ring is found at its place, and no other function.
fn assert_known_queue(known: &Known, resolution: &Resolution) {
    let (version, queue) = (known.version, &known.queue);
    let own = resolution.own_reserve.expect("found");
    assert_eq!(
        (own.probe.function, own.queue_offset),
        (queue.add_write_index_acq_rel, queue.queue_offset),
        "{version}"
    );
    // The functions that work on the write index contain no instruction that the kernel emulates.
    let start = (0, InstructionKind::Other);
    let place = Some(queue.queue_offset);
    let expected = [
        (
            QueueRole::StoreWriteIndexRelaxed,
            queue.store_write_index_relaxed,
            start,
            place,
        ),
        (
            QueueRole::StoreWriteIndexRelease,
            queue.store_write_index_release,
            start,
            place,
        ),
        (
            QueueRole::ExecutePm4,
            queue.execute_pm4,
            (queue.execute_pm4_site, InstructionKind::Push),
            None,
        ),
    ];
    let found: Vec<_> = resolution
        .queue_functions
        .iter()
        .map(|function| {
            let probe = function.probe;
            assert_eq!(probe.file_offset, probe.vaddr, "{version}: {function:x?}");
            assert_eq!(
                (function.step, function.confidence),
                (ResolverStep::VtableShape, Confidence::Medium),
                "{version}: {function:x?}"
            );
            let site = (probe.vaddr - probe.function, probe.instruction);
            (function.role, probe.function, site, function.queue_offset)
        })
        .collect();
    assert_eq!(found, expected, "{version}: {found:x?}");
    let own_site = (own.probe.vaddr - own.probe.function, own.probe.instruction);
    assert_eq!(own_site, start, "{version}");
}
