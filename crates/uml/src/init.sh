#!/bin/sh
# The first process of the guest. `exchange` is a directory of the host's, by the kernel's command line; what is to be done
# follows from there.
export PATH=/usr/sbin:/usr/bin:/usr/lib/applets
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t hostfs -o "$exchange" host /mnt
mkdir /run/netns

# Commands come and go on a serial line: the number of a script, and of its end with its status. Without a host there is none,
# and a script that does not end is no reason to stay: it has less time than the host waits.
stty -F /dev/ttyS0 raw -echo
exec 3<>/dev/ttyS0
echo ready >&3
while read -r number <&3; do
    timeout -s KILL 50 /usr/bin/dash -e "/mnt/$number.sh" </dev/null >"/mnt/$number.out" 2>"/mnt/$number.err" 3>&-
    echo "$number $?" >&3
done
poweroff -f
