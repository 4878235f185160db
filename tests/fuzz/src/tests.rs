use std::collections::BTreeSet;

use tracer_capture::runtime::code_object::parse;
use tracer_capture::runtime::resolver::{
    Confidence, DoorbellRole, Outcome, QueueRole, Resolution, ResolverStep, resolve,
};

use crate::ALL;
use crate::elf::{File, Kind, kind};
use crate::hold::hold;
use crate::names;
use crate::runtime::{Recipe, runtime};

/// The miniature is useful as a seed only if the resolver processes it completely.
#[test]
fn the_miniature_is_resolved_whole() {
    for recipe in Recipe::all() {
        let elf = runtime(recipe);
        // As the target does it: a debug file names functions, at the addresses in the file's last words.
        let by_target = names::resolve(&elf).expect("a runtime");
        let resolution = if recipe.named {
            by_target.clone()
        } else {
            resolve(&elf).expect("a runtime")
        };
        let account = &resolution.account;
        // The miniature has no list of code objects.
        assert_eq!(resolution.notes.len(), 1, "{:?}", resolution.notes);
        assert!(
            resolution.notes[0].contains("_amdgpu_r_debug"),
            "{:?}",
            resolution.notes
        );
        assert_eq!(resolution.build_id.as_deref(), Some("0123456789abcdef"));
        assert_eq!(resolution.soname.as_deref(), Some("soname.so.1"));
        let how = match recipe {
            Recipe { symbols: true, .. } => (ResolverStep::Symtab, Confidence::High),
            Recipe { named: true, .. } => (ResolverStep::DebugFile, Confidence::High),
            _ => (ResolverStep::VtableShape, Confidence::Medium),
        };
        for resolution in [&resolution, &by_target] {
            assert_eq!(places(resolution), expected(recipe), "{recipe:?}: {account:?}");
            let flags = resolution.thunk_flags();
            let flags = flags.map(|found| (found.hops.as_slice(), found.flags.as_slice()));
            let all_of_them = (&[0x5a8][..], &[0x368, 0x369][..]);
            assert_eq!(flags, recipe.hands_over.then_some(all_of_them), "{recipe:?}");
            let functions = resolution.queue_functions.iter();
            let functions: Vec<_> = functions.map(|found| (found.role, found.queue_offset)).collect();
            let [relaxed, release, execute] = QueueRole::ALL;
            let all_of_them = [(relaxed, Some(0x18)), (release, Some(0x18)), (execute, None)];
            assert_eq!(functions, all_of_them, "{recipe:?}: {account:?}");
        }
        for site in &resolution.doorbells {
            assert_eq!((site.step, site.confidence), how, "{recipe:?}: {account:?}");
        }
        assert_eq!(resolution.functions.len(), 4, "{account:?}");
        assert!(
            resolution.own_reserve.is_some() && resolution.sdma.len() == 1,
            "{account:?}"
        );
        assert_eq!(resolution.exports.signal_stores.len(), 2);
        let described = resolution.exports.queue_create_described.as_ref().expect("exported");
        assert_eq!(described.names, ["hsa_amd_queue_create"]);
        assert!(account.iter().any(|decision| decision.outcome == Outcome::Used));
    }
}

/// Returns the functions that ring, with the offset of the signal.
fn places(resolution: &Resolution) -> Vec<(DoorbellRole, i16)> {
    let sites = resolution.doorbells.iter();
    sites.map(|site| (site.role, site.signal_offset)).collect()
}

fn expected(recipe: Recipe) -> Vec<(DoorbellRole, i16)> {
    let mut expected = vec![(DoorbellRole::Main, 0x40)];
    if recipe.hands_over {
        expected.push((DoorbellRole::SignalThunkRelaxed, 0x08));
        expected.push((DoorbellRole::ReleaseMain, 0x40));
    }
    expected
}

/// Found by fuzzing: a symbol that consists only of the suffix of kernel descriptors became a kernel without a name.
#[test]
fn a_descriptor_without_a_name_is_no_kernel() {
    let mut file = File::new(0);
    let mut table = vec![0; 24];
    for (name, at) in [(1u32, 0x40u64), (5, 0x80)] {
        table.extend(name.to_le_bytes());
        table.extend([0x11, 0, 1, 0]); // global object in section 1
        table.extend(at.to_le_bytes());
        table.extend(64u64.to_le_bytes());
    }
    let symbols = Kind {
        number: kind::DYNSYM,
        link: file.next_index() + 1,
        info: 1,
        entry: 24,
    };
    file.section(".dynsym", symbols, &table);
    let strings = Kind {
        number: kind::STRTAB,
        ..Kind::default()
    };
    file.section(".dynstr", strings, b"\0.kd\0k.kd\0");
    let mut object = file.finish();
    object[7] = 64; // ELFOSABI_AMDGPU_HSA
    object[8] = 3; // version 5
    object[18] = 224; // EM_AMDGPU
    let contents = parse(&object).expect("a code object");
    let symbols: Vec<&str> = contents.kernels.iter().map(|kernel| &*kernel.symbol).collect();
    assert_eq!(symbols, ["k"]);
}

/// A segment without code may overlap one with code. The probe must be at the code that was examined.
#[test]
fn a_probe_is_where_the_code_was_read() {
    let elf = runtime(Recipe::default());
    let sound = resolve(&elf).expect("a runtime");
    // The second header is not needed and becomes the only code segment. The first becomes data that ends behind the probe and is
    // elsewhere in the file.
    let end = sound.doorbells[0].probe.vaddr + 1;
    let mut covered = elf.clone();
    let [first, second] = [64, 64 + 56];
    covered.copy_within(first..first + 56, second);
    covered[first + 4] = 6; // readable, writable
    covered[first + 8..first + 16].copy_from_slice(&8u64.to_le_bytes());
    covered[first + 32..first + 40].copy_from_slice(&end.to_le_bytes());
    let found = resolve(&covered).expect("a runtime");
    assert_eq!(found.doorbells, sound.doorbells);
    assert_eq!(found.queue_functions, sound.queue_functions);
    hold(&covered, &found);
}

/// A named function is decoded only up to the length limit of functions. One as long as the file would take all memory.
#[test]
fn a_function_of_any_length_is_not_decoded() {
    let elf = runtime(Recipe {
        symbols: true,
        longer: 8 << 20,
        ..Recipe::default()
    });
    let resolution = resolve(&elf).expect("a runtime");
    let roles: Vec<_> = resolution.queue_functions.iter().map(|found| found.role).collect();
    assert_eq!(
        roles,
        [QueueRole::StoreWriteIndexRelaxed, QueueRole::StoreWriteIndexRelease]
    );
    hold(&elf, &resolution);
}

/// Runs every target over its seeds, with each byte changed, and with each length shortened: a few thousand inputs.
#[test]
fn seeds_and_damages_of_them() {
    for target in &ALL {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty());
        for seed in seeds {
            (target.run)(&seed);
            let lengths: BTreeSet<usize> = (0..seed.len()).step_by(37).collect();
            for len in lengths {
                (target.run)(&seed[..len]);
            }
            let mut damaged = seed.clone();
            for at in (0..damaged.len()).step_by(3) {
                let whole = damaged[at];
                for value in [0, 0xff, whole ^ 0x10] {
                    damaged[at] = value;
                    (target.run)(&damaged);
                }
                damaged[at] = whole;
            }
        }
    }
}
