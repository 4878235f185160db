use super::*;

/// Returns a BTF blob with these types, given as words, and these strings.
fn blob(types: &[&[u32]], strings: &[u8]) -> Vec<u8> {
    let words: Vec<u32> = types.iter().flat_map(|words| words.iter().copied()).collect();
    let types_len = words.len() as u32 * 4;
    let mut bytes = vec![0x9f, 0xeb, 1, 0];
    for word in [24, 0, types_len, types_len, strings.len() as u32] {
        bytes.extend_from_slice(&u32::to_le_bytes(word));
    }
    words
        .iter()
        .for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes.extend_from_slice(strings);
    bytes
}

fn info(kind: BtfKind, members: u32) -> u32 {
    (kind as u32) << 24 | members
}

/// Creates `struct fence { u64 context; u64 seqno; }` in the kernel, and `struct job { u32 x; union { struct fence done; u64 y; };
/// }` in a module, which refers to `struct fence` by a typedef.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let base = blob(
        &[
            &[1, info(BtfKind::Int, 0), 8, 64],
            &[5, info(BtfKind::Struct, 2), 16, 11, 1, 0, 19, 1, 64],
        ],
        b"\0u64\0fence\0context\0seqno\0",
    );
    // The module's strings start at 25, its types at 3.
    let at = |own: u32| 25 + own;
    let module = blob(
        &[
            &[at(1), info(BtfKind::Struct, 2), 24, at(5), 1, 0, 0, 4, 64],
            &[0, info(BtfKind::Union, 2), 16, at(7), 5, 0, at(12), 1, 0],
            &[at(14), info(BtfKind::Typedef, 0), 2],
            &[at(22), info(BtfKind::Enum, 2), 4, at(27), 0, at(29), 4],
        ],
        b"\0job\0x\0done\0y\0fence_t\0type\0A\0B\0",
    );
    fs::write(dir.path().join("vmlinux"), base).unwrap();
    fs::write(dir.path().join("amd_sched"), module).unwrap();
    dir
}

#[test]
fn members_are_found_through_anonymous_unions_and_typedefs_in_either_part() {
    let dir = folder();
    let btf = Btf::read(dir.path(), &["gpu_sched", "amd_sched"]).unwrap();
    assert_eq!(btf.offset("fence", &["seqno"]), Some(8));
    assert_eq!(btf.offset("job", &["x"]), Some(0));
    assert_eq!(btf.offset("job", &["done"]), Some(8));
    assert_eq!(btf.offset("job", &["done", "seqno"]), Some(16));
    assert_eq!(btf.offset("job", &["y"]), Some(8));
    assert_eq!(btf.offset("job", &["gone"]), None);
    assert_eq!(btf.offset("job", &["x", "inside"]), None);
    assert_eq!(btf.offset("nothing", &["x"]), None);
    assert_eq!(btf.offset("job", &[]), None);
}

#[test]
fn members_of_enumerations_have_their_values() {
    let dir = folder();
    let btf = Btf::read(dir.path(), &["amd_sched"]).unwrap();
    assert_eq!(
        [btf.enumerator("type", "A"), btf.enumerator("type", "B")],
        [Some(0), Some(4)]
    );
    assert_eq!(btf.enumerator("type", "C"), None);
    assert_eq!(btf.enumerator("job", "x"), None, "a structure");
    assert_eq!(btf.offset("type", &["A"]), None);
}

#[test]
fn the_kernel_alone_is_enough() {
    let dir = folder();
    let btf = Btf::read(dir.path(), &[]).unwrap();
    assert_eq!(btf.offset("fence", &["context"]), Some(0));
    assert_eq!(btf.offset("job", &["x"]), None);
}

#[test]
fn damaged_types_are_no_types() {
    let dir = folder();
    let path = dir.path().join("vmlinux");
    let whole = fs::read(&path).unwrap();
    for end in 0..whole.len() {
        fs::write(&path, &whole[..end]).unwrap();
        assert!(Btf::read(dir.path(), &[]).is_none(), "{end} bytes");
    }
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 0xff;
        fs::write(&path, &flipped).unwrap();
        // Any result is fine, except a panic or an endless loop.
        if let Some(btf) = Btf::read(dir.path(), &["amd_sched"]) {
            let _ = (btf.offset("job", &["done", "seqno"]), btf.enumerator("type", "B"));
        }
    }
}

#[test]
fn this_kernel() {
    let folder = Path::new("/sys/kernel/btf");
    if !folder.join("vmlinux").exists() {
        println!("skipped: this kernel has no BTF");
        return;
    }
    let btf = Btf::read(folder, &[]).unwrap();
    // include/linux/device.h, include/linux/kobject.h: both members come first in their structures.
    assert_eq!(btf.offset("device", &["kobj", "name"]), Some(0));
    assert!(btf.offset("task_struct", &["thread", "fsbase"]).is_some());
}
