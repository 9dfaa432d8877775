# SPDX-License-Identifier: BSD-3-Clause
# hixl_info: usable devices, and devices that are not: why, and what to do. The
# emulated device is the device; what it cannot play is played by a shim between
# hixl_info and libibverbs.
set -u

. "$HIXL_TOP/test/support/lib.sh"

unset UCX_TLS UCX_NET_DEVICES UCX_HIXL_REG UCX_HIXL_MAX_REGS LD_PRELOAD
out=$tmp/out
shim=$tmp/shim.so
why=

# info STATUS ARG...: runs hixl_info below hixl-run; its output in $out
info() {
    local wanted=$1 rc=0

    shift
    why=
    timeout 60 "$HIXL_RUN" "$@" >"$out" 2>"$tmp/err" || rc=$?
    [ $rc -eq "$wanted" ] || why="status $rc, expected $wanted"
}

# has KEY REGEX: there is a line of this key with such a value
has() {
    grep -qE "^  $1 +.*$2" "$out" ||
        why=${why:-"no line '$1' with '$2'"}
}

hasnt() {
    ! grep -qE "^  $1 +.*$2" "$out" ||
        why=${why:-"a line '$1' with '$2'"}
}

quiet() {
    [ ! -s "$tmp/err" ] || why=${why:-"it wrote to stderr"}
}

# next REGEX: the last line says so
next() {
    tail -n 1 "$out" | grep -qE "^  next +.*$1" ||
        why=${why:-"the last line is no 'next' with '$1'"}
}

result() {
    if [ -z "$why" ]; then
        passed "$1"
    else
        cat "$out" "$tmp/err"
        failed "$1" "$why"
    fi
}

refused() {
    has usable 'no$'
    has usable-devices '0 of 1$'
    quiet
}

# ---- usable ----

roce__status_0() {
    info 0 --vhca hixl_info
    has usable 'yes$'
    has part 'ConnectX-5'
    has firmware '[0-9]+\.[0-9]+'
    has cap-umems '2\^[0-9]+'
    has port-1 'active, RoCE, .*gid [0-9]+ RoCE v2'
    has registration 'umem .*passed the self-test'
    has registrations '256 a process'
    has locked-memory RLIMIT_MEMLOCK
    has open-files '[0-9]+ used'
    has mappings vm.max_map_count
    has huge-pages 'free$'
    has emulated-device /libvhca.so
    has loader '(/libhixl_load.so|no)$'
    has version '[0-9]+\.[0-9]+\.[0-9]+ \(.*libucp'
    has transport 'would be loaded: .*libuct_hixl.so'
    has usable-devices '1 of 1$'
    quiet
    next 'UCX_TLS=hixl hixl-run'
}

infiniband__two_devices__status_0() {
    VHCA_LINK=ib VHCA_DEVICES=2 info 0 --vhca hixl_info
    has port-1 'active, InfiniBand, .*lid [0-9]+, gid 0'
    has usable-devices '2 of 2$'
    quiet
}

umem_keys_refused__auto__uses_mr_and_says_why() {
    VHCA_FAULT=mkey_umem=refuse info 0 --vhca hixl_info
    has registration 'mr \(UCX_HIXL_REG=auto\): .*CREATE_MKEY failed'
    has usable 'yes$'
    quiet
}

umem_keys_refused__mr__usable() {
    VHCA_FAULT=mkey_umem=refuse UCX_HIXL_REG=mr info 0 --vhca hixl_info
    has registration 'mr \(UCX_HIXL_REG=mr\): asked for'
    quiet
}

below_vhca__vhca_stat__goes_by_name() {
    info 0 --vhca vhca-stat objects.qp
    grep -q '^0$' "$out" || why=${why:-"it printed no number"}
}

# ---- not usable ----

umem_keys_refused__umem__names_the_setting() {
    VHCA_FAULT=mkey_umem=refuse UCX_HIXL_REG=umem info 1 --vhca hixl_info
    refused
    has why 'UCX_HIXL_REG=umem, and keys over umems.*CREATE_MKEY failed'
    next 'unset UCX_HIXL_REG'
}

umems_refused__queues__names_the_call() {
    VHCA_FAULT=umem=refuse info 1 --vhca hixl_info
    refused
    has why 'queues cannot be made: .*as a umem failed'
    next troubleshooting
}

umems_refused__low_memlock__names_the_limit() {
    local drop=()

    [ "$(id -u)" -ne 0 ] || drop=(setpriv --bounding-set=-ipc_lock)
    why=
    (ulimit -l 64
     VHCA_FAULT=umem=refuse timeout 60 ${drop[@]+"${drop[@]}"} "$HIXL_RUN" \
        --vhca hixl_info >"$out" 2>"$tmp/err")
    [ $? -eq 1 ] || why="status is not 1"
    refused
    has locked-memory '64 KiB .*LOW'
    next 'locked memory, which is 64 KiB: ulimit -l'
}

memory_refused__mr__names_the_call() {
    VHCA_FAULT=mkeys=0 UCX_HIXL_REG=mr info 1 --vhca hixl_info
    refused
    has why 'memory cannot be registered: .*as an MR'
}

caps_refused__query__names_status() {
    VHCA_FAULT='cmd=QUERY_HCA_CAP,count=all' info 1 --vhca hixl_info
    refused
    has why 'does not tell what it can do: .*QUERY_HCA_CAP failed.*status'
}

wrong_fault__emulated_device__points_to_its_message() {
    VHCA_FAULT=nonsense info 1 --vhca hixl_info
    has why 'uverbs0 cannot be opened'
    next 'begins with vhca:'
    grep -q '^vhca: VHCA_FAULT' "$tmp/err" || why=${why:-"vhca is silent"}
}

gid_index__not_there__names_the_setting() {
    UCX_HIXL_GID_INDEX=200 info 1 --vhca hixl_info
    refused
    has why 'no GID at index 200'
    next 'unset UCX_HIXL_GID_INDEX'
}

# A machine that has a real one is no place for this.
no_device__no_vhca__says_what_to_type() {
    local dev=/sys/class/infiniband

    info 1 hixl_info
    if compgen -G "$dev/*" >/dev/null || grep -qs 0x15b3 \
           /sys/bus/pci/devices/*/vendor; then
        [ "$why" = "status 0, expected 1" ] && why=
        has usable-devices '[0-9]+ of [0-9]+'
        return
    fi
    has why 'no RDMA device'
    has usable-devices '0 of 0$'
    quiet
    next '^?hixl-run --vhca hixl_info$'
}

shim() {
    HXT_SHIM=$1 LD_PRELOAD=$shim info 1 --vhca hixl_info
    refused
}

node__no_permission__names_it() {
    shim no-access
    has why '/dev/infiniband/uverbs0 cannot be opened: Permission denied'
}

node__missing__says_so() {
    shim no-node
    has why '/dev/infiniband/uverbs0 cannot be opened: No such file'
}

devx__not_in_kernel__says_so() {
    shim no-devx-kernel
    has part ConnectX-5
    has why 'does not open with DevX: Operation not supported'
    next CONFIG_INFINIBAND_USER_ACCESS
}

devx__not_in_firmware__says_so() {
    shim no-devx-firmware
    has why 'does not open with DevX: Invalid argument'
    next UCTX_EN
}

device__not_mlx5__says_so() {
    shim not-mlx5
    has why 'not an mlx5 device'
    next 'ConnectX-5 or later'
}

device__too_old__names_it_and_what_it_lacks() {
    shim old
    has part 'ConnectX-4'
    has why 'a ConnectX-4 is too old: it lacks DevX umems'
    next 'ConnectX-5 or later'
}

device__lacks_something__names_it() {
    shim no-umems
    has cap-umems '2\^0'
    has why 'it lacks DevX umems'
    next firmware
}

port__down_roce__says_ip_link() {
    shim port-down
    has port-1 'init, RoCE'
    has why 'no port is up \(init\)'
    hasnt registration .
    next 'ip link set'
}

port__down_infiniband__says_subnet_manager() {
    VHCA_LINK=ib shim port-down
    has why 'no port is up \(init\)'
    next 'subnet manager'
}

device__not_listed__says_so() {
    shim not-listed
    has why 'libibverbs does not list it'
    next '(ib_uverbs|ibverbs-providers)'
}

# ---- limits, environment, options ----

environment__what_excludes_hixl__is_remarked() {
    UCX_TLS=rc,self UCX_NET_DEVICES=eth0 OMPI_MCA_pml=ob1 \
        UCX_HIXL_MAX_REGS=5000 UCX_HIXL_REG=key info 0 --vhca hixl_info
    has UCX_TLS 'rc,self .*leaves hixl out'
    has UCX_NET_DEVICES 'eth0 .*none of the ports'
    has OMPI_MCA_pml 'ob1 .*does not use UCX'
    has UCX_HIXL_REG 'key .*none of auto, umem, mr'
    has registrations 'WRONG: UCX_HIXL_MAX_REGS=5000'
    quiet
}

environment__what_includes_hixl__is_not() {
    UCX_TLS=self,hixl UCX_NET_DEVICES=mlx5_0:1 OMPI_MCA_pml=^ob1 \
        UCX_HIXL_MAX_REGS=64 info 0 --vhca hixl_info
    has UCX_TLS 'self,hixl$'
    has UCX_NET_DEVICES 'mlx5_0:1$'
    has OMPI_MCA_pml '\^ob1$'
    has registrations '64 a process'
    UCX_TLS=^hixl info 0 --vhca hixl_info
    has UCX_TLS '\^hixl .*leaves hixl out'
    UCX_TLS=all info 0 --vhca hixl_info
    has UCX_TLS 'all$'
}

maps_vhca() { grep -qs libvhca /proc/"$1"/maps; }

pid__of_another_process__shows_its_own() {
    UCX_TLS=tcp "$HIXL_RUN" --vhca cat <"$tmp/never" >"$tmp/cat" 2>&1 &
    pids=($!)
    wait_until 20 maps_vhca "${pids[0]}"
    UCX_TLS=hixl info 0 --vhca hixl_info --pid "${pids[0]}"
    grep -q "^limits of process ${pids[0]}$" "$out" ||
        why=${why:-"the process is not named"}
    has UCX_TLS 'tcp .*leaves hixl out'
    has emulated-device /libvhca.so
    kill "${pids[0]}"
    wait "${pids[0]}" 2>/dev/null
    pids=()
    info 2 --vhca hixl_info --pid nobody
    grep -q 'not a process number' "$tmp/err" || why=${why:-"no message"}
}

without_hixl_run__transport__says_to_use_it() {
    [ ! -e "$HIXL_BUILD/.libs/libhixl_load.so" ] && return
    LD_PRELOAD=$("$HIXL_RUN" --vhca printenv LD_PRELOAD)
    LD_PRELOAD=${LD_PRELOAD%:*}
    why=
    ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$LD_PRELOAD timeout 60 \
        "$HIXL_BUILD/hixl_info" >"$out" 2>"$tmp/err" || why="status $?"
    unset LD_PRELOAD
    has transport 'would not be loaded: '
    next '^?hixl-run hixl_info$'
}

help__options__are_named() {
    info 0 hixl_info --help
    grep -q -- '--pid' "$out" || why=${why:-"no --pid in it"}
    info 2 hixl_info --nonsense
    grep -q '^usage:' "$tmp/err" || why=${why:-"no usage for a wrong option"}
}

verbose__devices_messages__on_stderr() {
    VHCA_FAULT=mkey_umem=refuse info 0 --vhca hixl_info -v
    grep -q 'CREATE_MKEY failed' "$tmp/err" || why=${why:-"no message"}
}

if ! ${CC:-gcc} -shared -fPIC -o "$shim" "$HIXL_TOP/test/apps/hixl_info_shim.c"
then
    failed shim "it does not compile"
fi

fabric_begin info
for t in $(sed -n 's/^\([a-z_0-9]*__[a-z_0-9]*\)() {$/\1/p' "$0"); do
    $t
    result "$t"
done
verdict
