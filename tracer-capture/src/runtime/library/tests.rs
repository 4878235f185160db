use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;
use crate::{
    confined::{Parsers, Readers},
    target::proc_maps,
};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// Claims and examines a file of this process. Returns `None` if the file needs no examination.
fn examined(libraries: &Libraries, examine: &Examine<'_>, mapping: &Mapping) -> Option<Examined> {
    let Turn::Own(claim) = libraries.claim(&mapping.file, soon()) else {
        return None;
    };
    let examined = libraries.examine(examine, std::process::id(), mapping);
    if let Examined::Nothing(key) = &examined {
        claim.settle(*key, None);
    }
    Some(examined)
}

#[test]
fn a_file_that_cannot_be_opened_now_is_examined_later() {
    // SAFETY: the child process makes only plain calls; the other threads of this test program only wait.
    let readers = unsafe { Readers::start() }.unwrap();
    let parsers = Parsers::new(&readers);
    let examine = Examine::new(&readers, &parsers, std::process::id(), soon()).unwrap();
    let mapping = proc_maps::executable(std::process::id()).unwrap().remove(0);
    let libraries = Libraries::new(false, Api::NONE, 0);
    let before = getrlimit(Resource::Nofile);
    let none = Rlimit {
        current: Some(0),
        maximum: before.maximum,
    };
    setrlimit(Resource::Nofile, none).unwrap();
    let refused = examined(&libraries, &examine, &mapping);
    setrlimit(Resource::Nofile, before).unwrap();
    assert!(matches!(refused, Some(Examined::Unopened(_))));
    assert!(!libraries.is_examined(&mapping.file));
    match examined(&libraries, &examine, &mapping) {
        Some(Examined::Nothing(Some(_))) => {}
        Some(Examined::Unopened(error)) => panic!("{error}"),
        Some(Examined::Broken(_, why)) => panic!("{why}"),
        _ => panic!("something was found"),
    }
    assert!(libraries.is_examined(&mapping.file));
    assert!(examined(&libraries, &examine, &mapping).is_none());
    // A mapping that is gone is not a loss, and says nothing about the file.
    let mut gone = mapping;
    (gone.start, gone.file.inode) = (1, 1);
    assert!(matches!(examined(&libraries, &examine, &gone), Some(Examined::Gone)));
    assert!(!libraries.is_examined(&gone.file));
}

#[test]
fn one_thread_examines_a_file_and_others_wait_for_it() {
    let file = FileId {
        device: "00:01".to_owned(),
        inode: 7,
    };
    let libraries = Libraries::new(false, Api::NONE, 0);
    let Turn::Own(claim) = libraries.claim(&file, soon()) else {
        panic!("somebody else is at it");
    };
    assert!(matches!(libraries.claim(&file, Instant::now()), Turn::Late));
    std::thread::scope(|scope| {
        let second = scope.spawn(|| matches!(libraries.claim(&file, soon()), Turn::Done));
        claim.settle(None, None);
        assert!(second.join().unwrap());
    });
    // Without a result, the next thread gets its turn.
    libraries.seen().clear();
    let Turn::Own(first) = libraries.claim(&file, soon()) else {
        panic!("somebody else is at it");
    };
    drop(first);
    assert!(matches!(libraries.claim(&file, soon()), Turn::Own(_)));
}
