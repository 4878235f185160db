use std::collections::BTreeSet;

use tracer_capture::code_object::parse;
use tracer_capture::resolver::{Confidence, Outcome, ResolverStep, resolve};

use crate::ALL;
use crate::elf::{File, Kind, kind};
use crate::runtime::{Recipe, runtime};

/// The miniature is worth something as a seed only if the resolver gets all the way through it.
#[test]
fn the_miniature_is_resolved_whole() {
    let forms = (0..8u8).map(|bits| Recipe {
        symbols: bits & 1 != 0,
        link: bits & 2 != 0,
        packed: bits & 4 != 0,
    });
    for recipe in forms {
        let resolution = resolve(&runtime(recipe)).expect("a runtime");
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
        let (step, confidence) = if recipe.symbols {
            (ResolverStep::Symtab, Confidence::High)
        } else {
            (ResolverStep::VtableShape, Confidence::Medium)
        };
        let [site] = resolution.doorbells.as_slice() else {
            panic!("{account:?}");
        };
        assert_eq!(
            (site.step, site.confidence, site.signal_offset),
            (step, confidence, 0x40)
        );
        assert_eq!(resolution.functions.len(), 4, "{account:?}");
        assert!(
            resolution.own_reserve.is_some() && resolution.sdma.len() == 1,
            "{account:?}"
        );
        assert_eq!(resolution.exports.signal_stores.len(), 2);
        assert!(account.iter().any(|decision| decision.outcome == Outcome::Used));
    }
}

/// Found by fuzzing: a symbol that is nothing but the suffix of kernel descriptors became a kernel without a name.
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

/// Every target over its seeds, each of their bytes changed, and each shortened: a few thousand inputs.
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
