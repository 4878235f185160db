//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Parser;

use crate::asic::Asic;
use crate::ioctl::failure::Failure;
use crate::topology::MAX_GPUS;

/// Runs a program with simulated AMD GPUs: AMD's unmodified runtime works on them, in a private mount namespace.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Options {
    /// Run the program in this root: a folder with its own libraries
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,

    /// Show a file or folder of the host in the root, at the same path or another one
    #[arg(long, value_name = "SRC[:DST]", value_parser = parse_bind, requires = "root")]
    pub bind: Vec<(PathBuf, PathBuf)>,

    /// The kind of GPU: gfx942, gfx90a, gfx950 (HWS), gfx1100, gfx1201 (MES), or gfx1250 (its topology only)
    #[arg(long, default_value = "gfx942", value_parser = parse_asic)]
    pub asic: &'static Asic,

    /// How many GPUs
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=MAX_GPUS as i64))]
    pub gpus: u8,

    /// Give the kernels in this folder's code objects (*.co, *.elf) their effect
    #[arg(long, value_name = "DIR")]
    pub kernels: Vec<PathBuf>,

    /// Log everything the device sees, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,

    /// The shortest time that a dispatch takes, in microseconds
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub dispatch_us: u64,

    /// Let the K-th call of a KFD ioctl fail, as in CREATE_QUEUE:1:ENOMEM
    #[arg(long, value_name = "IOCTL:K:ERRNO")]
    pub fail: Vec<Failure>,

    /// Share memory through the kernel's cache of the device files, as where FUSE has no passthrough (before Linux 6.9)
    #[arg(long)]
    pub no_passthrough: bool,

    /// Keep the memory of the render nodes in the mock kernel module (tests/drm-sched-mock): mapped as a driver maps it, so that
    /// process_vm_readv refuses it. Needs FUSE passthrough
    #[arg(long, conflicts_with = "no_passthrough")]
    pub vram: bool,

    /// Print more (ioctls; twice for everything)
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,

    /// The program and its arguments
    #[arg(required = true, last = true)]
    pub command: Vec<OsString>,
}

fn parse_asic(name: &str) -> Result<&'static Asic, String> {
    let known = || Asic::ALL.map(|asic| asic.name).join(", ");
    Asic::by_name(name).ok_or_else(|| format!("the GPUs are {}", known()))
}

fn parse_bind(text: &str) -> Result<(PathBuf, PathBuf), String> {
    let (source, target) = text.split_once(':').unwrap_or((text, text));
    let source = Path::new(source)
        .canonicalize()
        .map_err(|error| format!("{source}: {error}"))?;
    let target = if target == text {
        source.clone()
    } else {
        PathBuf::from(target)
    };
    if target.is_absolute() {
        Ok((source, target))
    } else {
        Err(format!("{} is not absolute", target.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_line() {
        let line = "kfd-sim --asic gfx1100 --gpus 2 --fail SVM:1:EIO --root / --bind /tmp:/x -v -- prog --gpus 3";
        let options = Options::try_parse_from(line.split(' ')).unwrap();
        assert_eq!((options.asic.name, options.gpus, options.fail.len()), ("gfx1100", 2, 1));
        assert_eq!(options.bind, [("/tmp".into(), "/x".into())]);
        assert_eq!(options.command, ["prog", "--gpus", "3"]);
    }

    #[test]
    fn what_is_refused() {
        for line in [
            "kfd-sim",
            "kfd-sim --gpus 9 -- x",
            "kfd-sim --asic gfx803 -- x",
            "kfd-sim --bind /tmp -- x",
        ] {
            assert!(Options::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
