# Reads what `ringbolt doctor` judges, and prints it as a recording (docs/doctor.md). Changes nothing, makes no file, and
# gives no command longer than LIMIT seconds. `sh look.sh` reads all; `sh look.sh devices environment` these parts. The
# only thing that it sends is one echo to each directly cabled neighbour, to learn who is there (part `neighbours`).
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
LIMIT=5
parts=" ${*:-all} "

if command -v timeout > /dev/null 2>&1; then within() { timeout -k 1 "$LIMIT" "$@"; }
elif command -v perl > /dev/null 2>&1; then within() { perl -e 'alarm shift; exec @ARGV or exit 127' "$LIMIT" "$@"; }
else within() { "$@"; }
fi
wants() { case "$parts" in *" all "* | *" $1 "*) ;; *) return 1 ;; esac; }
# A line that looks like a header of ours gets a space in front.
body() { sed 's/^[=!][=!] / &/'; }
failed() { printf '!! . %s: %s\n' "$1" "$2"; }
section() { printf '== . %s\n' "$1"; printf '%s\n' "$2" | body; }

# NAME, a command line: what it prints, or why it can't be had.
ask_as() {
  name=$1
  shift
  command -v "$1" > /dev/null 2>&1 || { failed "$name" "$1 is not installed"; return; }
  said=$(within "$@" 2>&1 < /dev/null)
  code=$?
  case $code in
    0) section "$name" "$said" ;;
    124 | 137 | 142) failed "$name" "no answer within $LIMIT s" ;;
    *) failed "$name" "$(printf '%s' "$said" | tr '\n' ' ' | cut -c1-160) (exit status $code)" ;;
  esac
}
ask() { ask_as "$*" "$@"; }

# Many small files: PATH:LINE. What may not be read is told; what is not there, or has no value now, is not.
files() {
  name=$1
  shift
  said=$(within grep -H '' "$@" 2>&1 < /dev/null)
  case $? in 124 | 137 | 142) failed "$name" "no answer within $LIMIT s" ;; esac
  section "$name" "$(printf '%s\n' "$said" | grep -v -e '^grep: ' -e '/gids/[0-9]*:0000:0000:0000:0000:0000:0000:0000:0000$')"
  printf '%s\n' "$said" | sed -n 's/^grep: \(.*\): Permission denied$/!! . \1: permission denied/p'
}
link() { [ ! -L "$1" ] || printf '%s -> %s\n' "$1" "$(readlink "$1")"; }

look_at_interfaces() {
  list=
  for one in /sys/class/net/*; do
    for file in mtu flags carrier carrier_changes speed address type statistics/rx_packets statistics/rx_errors \
      statistics/rx_crc_errors statistics/rx_dropped statistics/rx_missed_errors statistics/tx_errors \
      device/current_link_speed device/current_link_width device/max_link_speed device/max_link_width \
      device/iommu_group/type device/local_cpulist; do
      list="$list $one/$file"
    done
  done
  files interfaces $list /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/conf/*/rp_filter
  printf '== . links\n'
  for one in /sys/class/net/*; do
    for file in master device device/driver; do link "$one/$file"; done
  done
  for one in /sys/class/infiniband/*; do
    link "$one/device"
    for file in "$one"/device/net/*; do [ ! -e "$file" ] || printf '%s -> %s\n' "$file" "${file##*/}"; done
  done
  ask ip -o address
  ask ip route
  ask_as 'ip -6 route' ip -6 route show default
  ask tc qdisc show
  command -v ethtool > /dev/null 2>&1 && for one in /sys/class/net/*; do
    case $(readlink "$one/device/driver") in */mlx5_core | */mlx4_core | */ice | */bnxt_en) ask ethtool -a "${one##*/}" ;; esac
  done
}

look_at_devices() {
  list=
  for one in /sys/class/infiniband/*; do
    list="$list $one/fw_ver $one/hca_type $one/board_id $one/node_guid"
    for port in "$one"/ports/*; do
      for file in state phys_state rate link_layer gids/* gid_attrs/types/* gid_attrs/ndevs/* counters/symbol_error \
        counters/link_downed counters/link_error_recovery counters/port_rcv_errors counters/port_rcv_data \
        hw_counters/out_of_buffer hw_counters/packet_seq_err hw_counters/local_ack_timeout_err; do
        list="$list $port/$file"
      done
    done
  done
  files devices $list /sys/kernel/config/rdma_cm/*/ports/*/default_roce_mode
  printf '== . device nodes\n'
  for one in /dev/infiniband/uverbs* /dev/infiniband/rdma_cm; do
    [ -e "$one" ] || continue
    { [ -r "$one" ] && [ -w "$one" ] && echo "$one may be opened"; } || echo "$one may not be opened"
  done
}

look_at_buses() {
  printf '== . pci\n'
  for one in /sys/bus/pci/devices/*; do
    case $(cat "$one/vendor" 2> /dev/null) in
      0x15b3)
        words=$(cat "$one/class" "$one/vendor" "$one/device" 2> /dev/null | tr '\n' ' ')
        echo "${one##*/} $words$(cd "$one" && echo infiniband/*)"
        ;;
    esac
  done
  list=
  for one in /sys/bus/thunderbolt/devices/*; do
    for file in unique_id device_name vendor_name authorized security iommu_dma_protection rx_speed tx_speed rx_lanes \
      tx_lanes key uevent; do
      list="$list $one/$file"
    done
  done
  files thunderbolt $list
}

look_at_system() {
  ask uname -srm
  files system /proc/cmdline /proc/meminfo /proc/sys/vm/max_map_count /sys/module/pcie_aspm/parameters/policy /etc/nccl.conf \
    "$HOME/.nccl.conf" /etc/systemd/logind.conf /etc/systemd/logind.conf.d/*.conf /sys/class/dmi/id/product_name
  section modules "$(cut -d' ' -f1 /proc/modules 2> /dev/null)"
  section 'ulimit -l' "$(ulimit -l)"
  section 'ulimit -n' "$(ulimit -n)"
  ask df -k /dev/shm
  section sleep "$(link /etc/systemd/system/sleep.target)"
  printf '== . container\n'
  for one in /.dockerenv /run/.containerenv; do [ ! -e "$one" ] || echo "$one"; done
}

look_at_firewall() {
  ask iptables -S
  ask nft list ruleset
}

# Of every folder in which the loader looks, what decides how a program of verbs runs.
look_at_software() {
  printf '== . libraries\n'
  found=$(
    for folder in $(echo "$LD_LIBRARY_PATH" | tr : ' '); do
      for one in libibverbs.so.1 librdmacm.so.1 libmlx5.so.1 libnccl.so.2; do
        [ ! -e "$folder/$one" ] || echo "$folder/$one"
      done
      for one in "$folder"/libnccl-net*.so; do [ ! -e "$one" ] || echo "$one"; done
    done
    within ldconfig -p 2> /dev/null | sed -n 's/^.*\(libibverbs\|librdmacm\|libmlx5\|libnccl[a-z_-]*\)\.so[.0-9]* .* => //p'
  )
  echo "$found"
  verbs=$(echo "$found" | grep -m1 'libibverbs\.so\.1')
  if [ -n "$verbs" ]; then
    section 'verbs library' "$verbs $(within grep -aom1 'IBVERBS_PRIVATE_[0-9]*' "$verbs" 2> /dev/null)"
    section providers "$(ls "${verbs%/*}/libibverbs" 2> /dev/null)"
  fi
  ask_as packages dpkg-query -W -f '${Package} ${Version}\n' libibverbs1 ibverbs-providers librdmacm1
  ask ringbolt --version
}

look_at_environment() {
  names='^(NCCL|UCX|GLOO|TP|VLLM|OMPI|MC|GGML|MLX|JACCL|RINGBOLT|RAY|FI)_|^LD_(LIBRARY_PATH|PRELOAD)='
  secrets='s/^([A-Z_]*(SECRET|TOKEN|KEY|PASS)[A-Z_]*)=.*/\1=(hidden)/'
  section environment "$(env | grep -E "$names" | sed -E "$secrets")"
  printf '== . named files\n'
  for one in "$MLX_IBV_DEVICES" "$JACCL_IBV_DEVICES" "$MLX_HOSTFILE"; do
    [ -z "$one" ] || { [ -r "$one" ] && echo "$one may be read"; } || echo "$one may not be read"
  done
}

# Whoever answers on a port without a default route is at the other end of its cable.
look_at_neighbours() {
  command -v ping > /dev/null 2>&1 || { failed 'ping ff02::1' 'ping is not installed'; return; }
  away=" $(ip route show default 2> /dev/null | tr '\n' ' ') "
  said=$(
    for one in /sys/class/net/*; do
      port=${one##*/}
      case $port in lo | docker* | br-* | virbr* | tailscale* | wg* | cni* | mgmt*) continue ;; esac
      case "$away" in *" dev $port "*) continue ;; esac
      [ "$(cat "$one/carrier" 2> /dev/null)" = 1 ] || continue
      within ping -6 -n -L -c 1 -w 1 "ff02::1%$port" 2> /dev/null | grep -m1 'bytes from' &
    done
    wait
  )
  section 'ping ff02::1' "$said"
}

look_at_mac() {
  ask sw_vers
  ask sysctl -n machdep.cpu.brand_string
  ask system_profiler SPThunderboltDataType
  ask ifconfig -a
  ask ibv_devinfo -v
  ask networksetup -listallhardwareports
  ask rdma_ctl status
  ask pmset -g
  ask_as 'socketfilterfw --getblockall' /usr/libexec/ApplicationFirewall/socketfilterfw --getblockall
  section 'ulimit -n' "$(ulimit -n)"
}

echo 'ringbolt-recording 1'
section 'uname' "$(uname -s)"
case $(uname -s) in
  Darwin) look_at_mac; look_at_environment ;;
  *)
    for part in interfaces devices buses system firewall software environment neighbours; do
      ! wants "$part" || "look_at_$part"
    done
    ;;
esac
echo '== . end'
