#!/bin/sh
# First program of a virtual machine: shows it the host's root file system, with a layer in memory on top that takes
# all writes, and hands over to the agent (src/bin/vm-agent.rs), whose path is on the kernel's command line.
export PATH=/bin
fail() {
    echo "init: $1" >/dev/console
    # The kernel panics when its first program ends, and the virtual machine is started with panic=-1: it ends.
    exit 1
}
busybox mount -t devtmpfs devtmpfs /dev
exec </dev/console >/dev/console 2>&1
busybox mount -t proc proc /proc
agent=
for word in $(busybox cat /proc/cmdline); do
    case $word in tracer.agent=*) agent=${word#*=} ;; esac
done
while read -r module; do
    busybox insmod "/modules/$module" || fail "cannot load $module"
done </modules/order
# The host's files do not change while a command runs, so both caches may be trusted.
busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose host /lower || fail "no host"
busybox mount -t tmpfs -o mode=755 tmpfs /upper || fail "no memory"
busybox mkdir /upper/data /upper/work
busybox mount -t overlay -o lowerdir=/lower,upperdir=/upper/data,workdir=/upper/work overlay /new || fail "no overlay"
busybox umount /proc
busybox mount --move /dev /new/dev
[ -x "/new$agent" ] || fail "no agent $agent on the host"
exec busybox switch_root /new "$agent"
