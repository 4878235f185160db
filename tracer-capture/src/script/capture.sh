#!/bin/sh
# Captures which path each kernel takes to an AMD GPU while a command runs. It needs root, tracefs and these usual programs:
# cat, grep, id, mkdir, readlink, rmdir, sha256sum, sleep, tail, wc. `tracer import` makes a trace of what it writes.
#
# `tracer record --script` of tracer @VERSION@ printed it for the HSA runtime with this checksum.
set -u

library=@LIBRARY@
sha256=@SHA256@
# Where the runtime rings doorbells: offset in its file, and where the address of the signal is, from the address in rdi.
sites='@SITES@'

out=
kib=8192
me=${0##*/}

usage() {
    cat <<EOF
Usage: sh $me [-o FILE] [-l LIBRARY] [-b KIB] COMMAND [ARGUMENT...]

  -o FILE     write there; the file must not exist [default: COMMAND.ftrace]
  -l LIBRARY  the HSA runtime on this machine [default: $library]
  -b KIB      buffer of each processor [default: $kib]

Exit status: that of the command, or 125 if the capture failed.
Then: tracer import FILE
EOF
}

fail() {
    echo "$me: $*" >&2
    exit 125
}

while getopts o:l:b:h option; do
    case $option in
    o) out=$OPTARG ;;
    l) library=$OPTARG ;;
    b) kib=$OPTARG ;;
    h) usage && exit 0 ;;
    *) usage >&2 && exit 125 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { usage >&2 && exit 125; }
out=${out:-${1##*/}.ftrace}

[ "$(id -u)" = 0 ] || fail "it must run as root"
# tracefs takes whole paths only.
case $library in
/*) ;;
*) library=$PWD/$library ;;
esac
case $library in
*[!A-Za-z0-9_./+~@%,-]*) fail "$library: tracefs takes no path with such signs; copy or link the file elsewhere, and give -l" ;;
esac
sum=$(sha256sum <"$library") || fail "$library: it cannot be read; give the path of the HSA runtime with -l"
[ "${sum%% *}" = "$sha256" ] ||
    fail "$library is another file than this script was printed for; print one: tracer record --script --library FILE"

reader=
waker=
made=
mounted=
t=/sys/kernel/tracing
[ -e $t/dynamic_events ] || t=/sys/kernel/debug/tracing
if [ ! -e $t/dynamic_events ]; then
    t=/sys/kernel/tracing
    mount -t tracefs nodev $t || fail "tracefs cannot be mounted at $t"
    mounted=$t
fi
# Namespaces have processes of the same numbers.
space=$(readlink /proc/self/ns/pid)
space=${space#*[}
space=@GROUP@${space%]}
group=${space}_$$
i=$t/instances/$group

# Stops a group's events, triggers first.
stop() {
    for event in "$t/instances/$1/events/$1"/tracer_[ipw]*/enable; do
        [ ! -e "$event" ] || echo 0 >"$event"
    done
    for trigger in "$t/instances/$1/events/$1"/*/trigger "$t/instances/$1/events/synthetic/$1"*/trigger \
        "$t/instances/$1/events/syscalls/sys_exit_ioctl/trigger" "$t/instances/$1/events/syscalls/sys_enter_ioctl/trigger"; do
        [ ! -e "$trigger" ] || grep '^hist:' "$trigger" | while IFS= read -r line; do
            echo "!${line% \[*}" >"$trigger"
        done
    done
    echo 0 >"$t/instances/$1/events/enable"
} 2>/dev/null

# Removes a group, newest definitions first: later ones read those before them.
remove() {
    [ ! -d "$t/instances/$1" ] || {
        stop "$1"
        # Its reader may still be about to end.
        tries=0
        until rmdir "$t/instances/$1" || [ $tries -ge 10 ]; do
            sleep 1
            tries=$((tries + 1))
        done
    }
    for kind in e s p; do
        grep "^$kind:[a-z]*/*$1[/_]" "$t/dynamic_events" | while IFS= read -r line; do
            line=${line%%[ 	]*}
            echo "-${line#?}" >>"$t/dynamic_events"
        done
    done
} 2>/dev/null

# Returns whether a process is there, and is no zombie.
runs() {
    grep -q '^State:.[^XZ]' "/proc/$1/status" 2>/dev/null
}

# Ends the reader. Linux 7.2 can loop in its system call until there is another event, and no file of tracefs can be opened then.
# So descriptor 4 is there before.
end_reader() {
    kill -KILL "$reader"
    tries=0
    while runs "$reader" && [ $tries -lt 10 ]; do
        echo >&4
        ! runs "$reader" || sleep 1
        tries=$((tries + 1))
    done
} 2>/dev/null

end() {
    [ -z "$reader" ] || end_reader
    [ -z "$waker" ] || kill -KILL "$waker"
    # A group with an open file cannot be removed.
    exec 4>&-
    [ -z "$made" ] || remove "$group"
    [ -z "$mounted" ] || umount "$mounted"
}

trap end EXIT
# The command gets these signals, too, and decides. What it did before its end is written in any case.
trap : HUP INT QUIT TERM

# Opened once: another user who may write to the folder can put a link at its place.
[ ! -e "$out" ] || fail "$out: it exists; give another file with -o"
mask=$(umask)
umask 077
set -C
command exec 3>"$out" || fail "$out: it cannot be created; give another file with -o"
set +C
umask "$mask"

for old in "$t/instances/$space"_*; do
    [ ! -d "$old" ] || runs "${old##*_}" || remove "${old##*/}"
done
mkdir "$i" || fail "$i cannot be created"
made=1
exec 4>"$i/trace_marker"
(
    trap '' HUP INT QUIT TERM
    exec cat "$i/trace_pipe" >&3 4>&-
) &
reader=$!
# Another process removes everything if this one is killed.
script=$$
(
    trap '' HUP INT QUIT TERM
    trap - EXIT
    while runs $script; do sleep 1 4>&-; done
    [ ! -d "$i" ] || end
) </dev/null >/dev/null 2>&1 3>&- &
guardian=$!

# Every event that has a trigger is enabled before it: where the kernel discards an event, it forgets the time before it, and
# later ones have wrong times.
enable() {
    echo 1 >"$i/events/$1/enable"
}

add() {
    echo "$1" >>$t/dynamic_events
}

# Prints fetch arguments: eight words from each of some packets on, the last one first.
packets() {
    n=0
    while [ $n -lt @PACKETS@ ]; do
        w=0
        while [ $w -lt 8 ]; do
            at=$((w * 8 - n * 64))
            [ $at -ge 0 ] && at=+u$at || at=-u$((-at))
            printf ' p%d_%d=%s($%s):x64' $n $w "$at" "$1"
            w=$((w + 1))
        done
        n=$((n + 1))
    done
}

# Prints fetch arguments: the argument of an ioctl.
argument() {
    w=0
    while [ $w -lt 16 ]; do
        printf ' w%d=+u%d($arg):x64' $w $((w * 8))
        w=$((w + 1))
    done
}

echo mono >$i/trace_clock
echo 1 >$i/options/record-tgid
echo "$kib" >$i/buffer_size_kb || fail "a buffer of $kib KiB for each processor cannot be allocated; give fewer with -b"
captured='doorbells kernel_rings'

# The doorbells. rsi has the value: the index of the last packet.
n=0
while read -r offset signal; do
    queue="+@QUEUE@($signal(%di))"
    add "p:$group/@DOORBELL@$n $library:$offset value=%si:u64 queue=$queue:x64 base=+@BASE@($queue):u64 \
size=+@SIZE@($queue):u32 write=+@WRITE@($queue):u64 read=+@READ@($queue):u64" || fail "a uprobe cannot be defined in $library; its file system must support them, and its path must be whole"
    n=$((n + 1))
done <<EOF
$sites
EOF

# The packets: two histograms compute the address of the last packet's slot, and an event probe reads there.
slots() {
    ring=${group}_ring
    slot=${group}_slot
    add "s:$ring u64 queue; u64 value; u64 base; u64 end; u64 bytes; u64 skipped" &&
        add "s:$slot u64 queue; u64 value; u64 at; u64 slot; u64 wrapped" || return
    enable synthetic/$ring && enable synthetic/$slot && enable $group || return
    for event in $i/events/$group/@DOORBELL@*; do
        echo 'hist:keys=common_pid,queue:q=queue:v=value:base=base:end=base+size*64:bytes=value*64:skipped=value/size*size:'\
"t=common_timestamp:clock=mono:size=16384:onchange(\$t).trace($ring,\$q,\$v,\$base,\$end,\$bytes,\$skipped)" >$event/trigger || return
    done
    echo 'hist:keys=common_pid,queue:q=queue:v=value:at=base+bytes-skipped*64:slot=value-skipped:'\
"wrapped=end+bytes-skipped*64:t=common_timestamp:clock=mono:size=16384:onchange(\$t).trace($slot,\$q,\$v,\$at,\$slot,\$wrapped)" \
        >$i/events/synthetic/$ring/trigger || return
    add "e:$group/@PACKETS_EVENT@ synthetic.$slot queue=\$queue:x64 value=\$value:u64$(packets at) write=+u@WRITE@(\$queue):u64 read=+u@READ@(\$queue):u64" &&
        add "e:$group/@WRAPPED@ synthetic.$slot queue=\$queue:x64 value=\$value:u64$(packets wrapped) write=+u@WRITE@(\$queue):u64 read=+u@READ@(\$queue):u64 if slot < @LAST@"
}

# The ioctls of KFD and DRM devices, with their arguments before and after.
ioctls() {
    done=${group}_ioctl
    ours='(cmd & 0x4000) && !(cmd & 0x9000)'
    add "s:$done u64 cmd; u64 arg; s64 ret" || return
    enable synthetic/$done && enable syscalls/sys_enter_ioctl && enable syscalls/sys_exit_ioctl || return
    echo "hist:keys=common_pid:cmd=cmd:arg=arg:size=16384" >$i/events/syscalls/sys_enter_ioctl/trigger || return
    echo "hist:keys=common_pid:ret=ret:c=\$cmd:a=\$arg:size=16384:"\
"onmatch(syscalls.sys_enter_ioctl).trace($done,\$c,\$a,\$ret)" >$i/events/syscalls/sys_exit_ioctl/trigger || return
    add "e:$group/@IOCTL_ENTER@ syscalls.sys_enter_ioctl fd=\$fd:u32 cmd=\$cmd:x32 arg=\$arg:x64$(argument) if $ours" &&
        add "e:$group/@IOCTL_EXIT@ synthetic.$done cmd=\$cmd:x32 arg=\$arg:x64 ret=\$ret:s64$(argument) if $ours"
}

if slots; then
    captured="$captured packets"
else
    echo "$me: this kernel cannot compute addresses of packets (it needs Linux 5.17 with CONFIG_HIST_TRIGGERS, \
CONFIG_SYNTH_EVENTS and CONFIG_PROBE_EVENTS): packets are unread" >&2
fi
if ioctls; then
    captured="$captured ioctls"
else
    echo "$me: this kernel cannot read arguments of ioctls: ioctls are not captured" >&2
fi
[ -d $i/events/gpu_scheduler ] || captured=${captured%%kernel_rings*}${captured#*kernel_rings}

echo "@HEADER@@FORMAT@: $captured" >&3

# task_newtask shows which process a new thread belongs to.
for event in task/task_newtask gpu_scheduler "$group"; do
    [ ! -e "$i/events/$event/enable" ] || enable "$event" || fail "$event cannot be enabled"
done
for event in @DRIVER_EVENTS@; do
    [ ! -e "$i/events/amdgpu/$event/enable" ] || echo 1 >"$i/events/amdgpu/$event/enable"
done

# In a process of its own, in which no function of this script has the name of a program.
(exec "$@") 3>&- 4>&-
status=$?

# From now on events become rare: see end_reader.
(
    trap '' HUP INT QUIT TERM
    trap - EXIT
    while runs $script; do
        sleep 1 4>&-
        echo >&4
    done
) </dev/null >/dev/null 2>&1 3>&- &
waker=$!
stop "$group"
# Events come in the order of their times. So everything was read when the last one is there.
echo '@END@' >&4
written=0
tries=0
until tail -c 4096 /proc/$$/fd/3 | grep -q @END@; do
    before=$written
    written=$(wc -c </proc/$$/fd/3)
    [ "$written" = "$before" ] || tries=0
    [ $tries -lt 10 ] || fail "$out lacks the last events: is its disk full?"
    tries=$((tries + 1))
    sleep 1
done
end_reader
kill -KILL $guardian $waker
wait $guardian $waker 2>/dev/null
reader=
waker=
echo "$me: wrote $out; read it with: tracer import $out" >&2
exit $status
