// What a port says once, of what its queue pairs came upon while they held locks.

#include <fmt/format.h>

#include "base/say.h"
#include "device/limits.h"
#include "device/netdev.h"
#include "device/port.h"
#include "device/packet_sizes.h"

namespace ringbolt::device {
namespace {

std::string text_of_overlong(const Port& port, const FirstSeen::Seen& seen) {
  const std::string what = fmt::format(
      "ringbolt: {}: queue pair {:#x}: a message of {} bytes ends in LOC_LEN_ERR: ", port.name, seen.qpn, seen.bytes);
  if (seen.bytes <= kMaxMessageBytes) {
    return what + fmt::format("datagrams of this port have {} at most, its path MTU; send it in parts\n",
                              port.is_on_network() ? mtu_bytes(port.mtu) : kDatagramBytes);
  }
  return what +
         fmt::format("messages of this port have {} at most, its max_msg_sz; send it in parts\n", kMaxMessageBytes);
}

std::string text_of_misfits(const Port& port, const FirstSeen::Seen& seen) {
  const std::string what = fmt::format("ringbolt: {}: queue pair {:#x}: packets of its path MTU of {} bytes are lost",
                                       port.name, seen.qpn, seen.bytes);
  const Netdev now = read_link(port.netdev_index);
  if (now.name.empty()) {
    return what + ": its network interface is gone; connect anew\n";
  }
  const uint32_t needed = interface_mtu_for(seen.bytes);
  if (now.mtu_bytes >= needed) {
    return what + fmt::format(
                      ": {} takes them, with an MTU of {}, but not all of the way to the peer; raise the MTU of "
                      "what lies between, or connect anew with a smaller path MTU\n",
                      now.name, now.mtu_bytes);
  }
  return what + fmt::format(
                    ": {} has an MTU of {} now, and they may need {}; ip link set {} mtu {}, or connect anew with "
                    "a path MTU of {}\n",
                    now.name, now.mtu_bytes, needed, now.name, needed, mtu_bytes(path_mtu_of(now.mtu_bytes)));
}

}  // namespace

void Port::tell_seen() const {
  if (const auto seen = live->overlong_messages.take()) {
    base::say(text_of_overlong(*this, *seen));
  }
  if (const auto seen = live->misfit_packets.take()) {
    base::say(text_of_misfits(*this, *seen));
  }
}

}  // namespace ringbolt::device
