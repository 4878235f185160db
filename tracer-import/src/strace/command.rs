//! The command of an ioctl, as strace writes it.

use std::borrow::Cow;

use tracer_common::kfd;

/// A command of a KFD or DRM device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// `kfd` or `drm`.
    pub device: &'static str,
    /// The whole command; 0 if strace wrote only its name.
    pub number: u32,
    /// Its name, as tracer writes it.
    pub name: Cow<'static, str>,
}

/// Parses what follows the file in the arguments; `None` if it is a command of another device.
///
/// strace writes the name of a command that it knows with exactly this size of its argument (`AMDKFD_IOC_GET_VERSION`,
/// `DRM_IOCTL_AMDGPU_INFO or DRM_IOCTL_SIS_FB_FREE`), and otherwise `_IOC(_IOC_READ|_IOC_WRITE, 0x4b, 0x2, 0x60)`.
pub fn parse(arguments: &str) -> Option<Command> {
    match arguments.strip_prefix("_IOC(") {
        Some(parts) => by_number(parts.split(')').next()?),
        None => by_name(arguments.split(", ").next()?),
    }
}

fn by_name(text: &str) -> Option<Command> {
    let named = |device, name: Option<&'static str>, text: &str| Command {
        device,
        number: 0,
        name: name.map_or_else(|| Cow::Owned(text.to_owned()), Cow::Borrowed),
    };
    if let Some(name) = text.strip_prefix("AMDKFD_IOC_") {
        let known = (0..=u8::MAX).filter_map(kfd::ioctl_name).find(|known| *known == name);
        return Some(named("kfd", known, name));
    }
    // Drivers share the numbers of their commands.
    let mut names = text.split(" or ").filter_map(|name| name.strip_prefix("DRM_IOCTL_"));
    let first = names.clone().next()?;
    let name = names.find(|name| name.starts_with("AMDGPU_")).unwrap_or(first);
    let own = format!("DRM_{name}");
    let known = (0..=u8::MAX).filter_map(kfd::drm_ioctl_name);
    let known = known.into_iter().find(|known| *known == name || *known == own);
    Some(named("drm", known, &own))
}

fn by_number(parts: &str) -> Option<Command> {
    let mut parts = parts.split(", ");
    let direction = parts.next()?.split('|').try_fold(0, |bits, word| match word {
        "_IOC_NONE" => Some(bits),
        "_IOC_WRITE" => Some(bits | 1),
        "_IOC_READ" => Some(bits | 2),
        _ => None,
    })?;
    let mut number = || u32::from_str_radix(parts.next()?.strip_prefix("0x")?, 16).ok();
    let (kind, nr, size) = (number()?, number()?, number()?);
    if kind > 0xff || nr > 0xff || size > 0x3fff {
        return None;
    }
    let command: u32 = direction << 30 | size << 16 | kind << 8 | nr;
    let nr = kfd::ioc_nr(command);
    let (device, name) = match kfd::ioc_type(command) {
        kfd::IOC_TYPE_KFD => ("kfd", kfd::ioctl_name(nr)),
        kfd::IOC_TYPE_DRM => ("drm", kfd::drm_ioctl_name(nr)),
        _ => return None,
    };
    Some(Command {
        device,
        number: command,
        name: name.map_or_else(|| Cow::Owned(format!("nr-{nr:#04x}")), Cow::Borrowed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_names_of_a_recording() {
        let parsed =
            |text: &str| parse(text).map(|command| (command.device, command.number, command.name.into_owned()));
        let is = |device, number, name: &str| Some((device, number, name.to_owned()));
        assert_eq!(parsed("AMDKFD_IOC_CREATE_QUEUE, 0x7ffd"), is("kfd", 0, "CREATE_QUEUE"));
        assert_eq!(parsed("AMDKFD_IOC_OF_TOMORROW, 0x7ffd"), is("kfd", 0, "OF_TOMORROW"));
        assert_eq!(parsed("DRM_IOCTL_VERSION, 0x5558"), is("drm", 0, "DRM_VERSION"));
        assert_eq!(
            parsed("DRM_IOCTL_AMDGPU_INFO or DRM_IOCTL_SIS_FB_FREE, 0x7"),
            is("drm", 0, "AMDGPU_INFO")
        );
        assert_eq!(parsed("DRM_IOCTL_OF_TOMORROW, 0x5558"), is("drm", 0, "DRM_OF_TOMORROW"));
        assert_eq!(
            parsed("_IOC(_IOC_READ|_IOC_WRITE, 0x4b, 0x2, 0x60), 0x7f"),
            is("kfd", 0xc060_4b02, "CREATE_QUEUE")
        );
        assert_eq!(
            parsed("_IOC(_IOC_READ, 0x4b, 0x7f, 0x8), 0x7f"),
            is("kfd", 0x8008_4b7f, "nr-0x7f")
        );
        for other in [
            "TCGETS, {c_iflag=0}",
            "_IOC(_IOC_WRITE, 0xe5, 0x1, 0x8), 0x7",
            "_IOC(X, 0x4b, 0x2, 0x60)",
            "",
        ] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }
}
