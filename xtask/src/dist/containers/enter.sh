# Runs a command in the folder of the engines as its root: enter.sh ENGINES FOLDER TARGET COMMAND...
#
# This shell has mount and network namespaces of its own, so that nothing outside changes. All that is written is below FOLDER.
engines=$1 folder=$2 target=$3
shift 3
root=$folder/root
mkdir -p "$root" "$folder/upper" "$folder/work" "$folder/storage"
mount -t overlay -o "lowerdir=$engines,upperdir=$folder/upper,workdir=$folder/work" overlay "$root"
for place in dev proc sys; do mount --rbind "/$place" "$root/$place"; done
for place in run tmp; do mount -t tmpfs tmpfs "$root/$place"; done
# Images and containers: the engines stack overlays themselves, which an overlay cannot be the top of.
mount --bind "$folder/storage" "$root/var/lib"
mkdir -p "$root/var/tmp" "$root/etc/containers" "$root$target"
mount --bind "$target" "$root$target"
# Where a recorder lists paused processes. systemd mounts it on most machines.
mount -t bpf bpf "$root/sys/fs/bpf"
# With the controllers of cgroup v1, the engines want v1 alone.
if [ -e "$root/sys/fs/cgroup/unified" ]; then umount "$root/sys/fs/cgroup/unified"; fi
echo root:x:0:0::/root:/bin/sh > "$root/etc/passwd"
echo root:x:0: > "$root/etc/group"
# The defaults are higher. A machine may lack the capability to raise the limits that it has.
cat > "$root/etc/containers/containers.conf" <<end
[containers]
default_ulimits = ["nofile=4096:16384", "nproc=4096:8192"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
end
cd "$root"
pivot_root . mnt
export PATH=/usr/sbin:/usr/bin
umount -l /mnt
cd /
exec "$@"
