#include "verbs/errno_meaning.h"

#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "base/tcp_meaning.h"

namespace ringbolt::verbs {
namespace {

/// Both in each build: what a Mac reported is also read on Linux.
struct Symbol {
  std::string_view name;
  int on_linux;
  int on_darwin;
};

// Linux: asm-generic/errno.h; Darwin: bsd/sys/errno.h. Of a number that stands twice the first counts: EOPNOTSUPP has
// two on Darwin (ENOTSUP is 45).
constexpr std::array kSymbols = {
    Symbol{"EPERM", 1, 1},           Symbol{"ENOENT", 2, 2},        Symbol{"ENXIO", 6, 6},
    Symbol{"ENOMEM", 12, 12},        Symbol{"EACCES", 13, 13},      Symbol{"EFAULT", 14, 14},
    Symbol{"EBUSY", 16, 16},         Symbol{"ENODEV", 19, 19},      Symbol{"EINVAL", 22, 22},
    Symbol{"EMFILE", 24, 24},        Symbol{"ENOSYS", 38, 78},      Symbol{"ENODATA", 61, 96},
    Symbol{"EMSGSIZE", 90, 40},      Symbol{"EOPNOTSUPP", 95, 102}, Symbol{"EADDRNOTAVAIL", 99, 49},
    Symbol{"ENETUNREACH", 101, 51},  Symbol{"ETIMEDOUT", 110, 60},  Symbol{"ECONNREFUSED", 111, 61},
    Symbol{"EHOSTUNREACH", 113, 65}, Symbol{"EOPNOTSUPP", 95, 45},
};

struct Entry {
  Step step;
  std::string_view symbol;
  std::string_view cause;
  std::string_view remedy;
};

constexpr std::string_view kOneSlab = "register one large region and cut buffers from it";

// In the order of the steps; each step and symbol once. A first cause that is likely, not all that are possible: what
// machines were seen to say rather than what man pages promise.
constexpr std::array kEntries = {
    Entry{Step::kGetDeviceList, "ENOSYS", "this kernel has no RDMA",
          "load ib_uverbs, or take Ringbolt's own device with RINGBOLT_VERBS=soft"},
    Entry{Step::kGetDeviceList, "ENOENT", "the kernel's RDMA module is not loaded",
          "modprobe ib_uverbs, or take Ringbolt's own device with RINGBOLT_VERBS=soft"},
    Entry{Step::kOpenDevice, "EACCES", "this user may not open the device",
          "give it read and write access to /dev/infiniband/uverbs*"},
    Entry{Step::kOpenDevice, "ENODEV", "the device has gone",
          "list the devices anew; did an interface get another name?"},
    Entry{Step::kAllocPd, "ENOMEM",
          "the port is down, or all protection domains are taken or were leaked (a Mac has 11)",
          "check that the cable is in and RDMA enabled at both ends; end other programs on the device; reboot if none "
          "runs"},
    Entry{Step::kAllocPd, "ENODATA", "the port died after a long idle time, or protection domains were leaked",
          "end the programs that use the device; if that does not help, reboot"},
    Entry{Step::kCreateChannel, "EOPNOTSUPP", "the device has no completion channels", "poll the completion queue"},
    Entry{Step::kCreateCq, "EINVAL", "more entries than the device gives a completion queue", "ask for fewer entries"},
    Entry{Step::kCreateCq, "ENOMEM", "all completion queues of the device are taken (a Mac has 11)",
          "share one completion queue between queue pairs; end other programs on the device"},
    Entry{Step::kRegMr, "ENOMEM", "the limit of locked memory, or all regions of the device are taken (a Mac has 100)",
          "raise ulimit -l; register one large region and cut buffers from it"},
    Entry{Step::kRegMr, "EINVAL", "the memory does not begin on a page of the device",
          "align it to 16 KiB, and register it with LOCAL_WRITE"},
    Entry{Step::kRegMr, "EOPNOTSUPP", "the device does not know one of the access flags", "ask for LOCAL_WRITE alone"},
    Entry{Step::kRegMr, "EFAULT", "the memory is not mapped, or the pool that regions come from is drained", kOneSlab},
    Entry{Step::kCreateQp, "EBUSY", "all queue pairs of the device are taken, of all programs together (a Mac has 10)",
          "use fewer queue pairs for a link, or end other programs on the device; to try again does not help"},
    Entry{Step::kCreateQp, "EOPNOTSUPP", "the device has no queue pairs of this type",
          "take UC, which devices over Thunderbolt have"},
    Entry{Step::kCreateQp, "EINVAL", "a depth, a count of pieces or inline bytes beyond the device's limits",
          "ask for fewer; a Mac gives 4095 requests of one piece and no inline data"},
    Entry{Step::kCreateQp, "ENOMEM", "queues of this depth do not fit, or all queue pairs are taken",
          "ask for less depth, or for fewer queue pairs"},
    Entry{Step::kToInit, "EINVAL", "the port number or an access flag is not one of the device's",
          "use a port that ibv_devinfo lists, and LOCAL_WRITE alone"},
    Entry{Step::kToInit, "EOPNOTSUPP", "the device has no queue pairs of this type, and says so only now",
          "take UC, which devices over Thunderbolt have"},
    Entry{Step::kToRtr, "EINVAL",
          "the GID is empty or wrong, its index is wrong, or the interface has no IPv4 address or is in a bridge",
          "choose a GID that stands for the interface's IPv4 address; take the interface out of its bridge and give it "
          "an "
          "address of its own"},
    Entry{
        Step::kToRtr, "ETIMEDOUT",
        "the peer's GID is not at the other end of this cable, its address is not resolved yet, or the route is wrong",
        "compare the cables with the plan; ping the peer's address of this cable; take the interface down and up"},
    Entry{Step::kToRtr, "EBUSY", "objects of a crashed program are still there, or receive queues ran short",
          "end the programs that use the device; if none runs, reboot"},
    Entry{Step::kToRtr, "ENODATA",
          "the GID table is empty, protection domains or queue pairs ran out, or the port died after a long idle time",
          "take the interface out of its bridge; end the programs that use the device; if that does not help, reboot"},
    Entry{Step::kToRtr, "EFAULT", "the pool that regions come from is drained until the next boot",
          "register fewer and smaller regions, then reboot"},
    Entry{Step::kToRtr, "EOPNOTSUPP", "the device has no queue pairs of this type, and says so only now",
          "take UC, which devices over Thunderbolt have"},
    Entry{Step::kToRtr, "ENETUNREACH", "there is no route from this GID to the peer's",
          "choose GIDs of one subnet; give both ends of the cable addresses"},
    Entry{Step::kToRtr, "EHOSTUNREACH", "the peer's address is not answered on this cable",
          "check the address at the other end of the cable"},
    Entry{Step::kPostSend, "ENOMEM", "the send queue is full; devices over Thunderbolt count it in frames of 4 KiB",
          "keep depth times frames of a message within what was granted"},
    Entry{Step::kPostSend, "EINVAL", "the queue pair is not ready to send, or the request is beyond its limits",
          "connect it first; check pieces, inline bytes and flags"},
    Entry{Step::kPostSend, "EOPNOTSUPP", "the device does not know this operation", "send with SEND"},
    Entry{Step::kPostSend, "EMSGSIZE", "the message is longer, or shorter, than the device sends",
          "cut it to what was granted; send no empty message to a Mac"},
    Entry{Step::kPostRecv, "ENOMEM", "the receive queue is full; devices over Thunderbolt count it in frames of 4 KiB",
          "keep depth times frames of a buffer within what was granted"},
    Entry{Step::kPostRecv, "EINVAL", "the queue pair does not take receives in this state, or the request is malformed",
          "bring it to INIT first, on some devices to RTR or RTS; check the number of pieces"},
};

// "" for a number that is none of these: meaning_of() then has neither cause nor remedy.
std::string_view symbol_of(Platform platform, int number) {
  for (const Symbol& symbol : kSymbols) {
    if (number == (platform == Platform::kLinux ? symbol.on_linux : symbol.on_darwin)) {
      return symbol.name;
    }
  }
  return {};
}

}  // namespace

std::string_view name_of(Step step) {
  switch (step) {
    case Step::kGetDeviceList:
      return "ibv_get_device_list";
    case Step::kOpenDevice:
      return "ibv_open_device";
    case Step::kQueryDevice:
      return "ibv_query_device";
    case Step::kQueryPort:
      return "ibv_query_port";
    case Step::kQueryGid:
      return "ibv_query_gid";
    case Step::kAllocPd:
      return "ibv_alloc_pd";
    case Step::kCreateChannel:
      return "ibv_create_comp_channel";
    case Step::kCreateCq:
      return "ibv_create_cq";
    case Step::kRegMr:
      return "ibv_reg_mr";
    case Step::kCreateQp:
      return "ibv_create_qp";
    case Step::kQueryQp:
      return "ibv_query_qp";
    case Step::kToInit:
      return "ibv_modify_qp to INIT";
    case Step::kToRtr:
      return "ibv_modify_qp to RTR";
    case Step::kToRts:
      return "ibv_modify_qp to RTS";
    case Step::kToReset:
      return "ibv_modify_qp to RESET";
    case Step::kPostSend:
      return "ibv_post_send";
    case Step::kPostRecv:
      return "ibv_post_recv";
    case Step::kConnectTcp:
      return "connect";
  }
  return "?";
}

Meaning meaning_of(Platform platform, Step step, int error) {
  // Some providers return errors negative, as kernels do.
  const std::string_view symbol = symbol_of(platform, std::abs(error));
  for (const base::TcpMeaning& meaning : base::kTcpMeanings) {
    if (step == Step::kConnectTcp && meaning.symbol == symbol) {
      return {symbol, meaning.cause, meaning.remedy};
    }
  }
  for (const Entry& entry : kEntries) {
    if (entry.step == step && entry.symbol == symbol) {
      return {symbol, entry.cause, entry.remedy};
    }
  }
  return {symbol, {}, {}};
}

std::string advice(Platform platform, Step step, int error) {
  const Meaning meaning = meaning_of(platform, step, error);
  if (meaning.cause.empty()) {
    return fmt::format("{} is not known to fail with {} ({}); look into the kernel's log", name_of(step),
                       meaning.symbol.empty() ? "this number" : meaning.symbol, std::abs(error));
  }
  return fmt::format("{}: {}", meaning.cause, meaning.remedy);
}

std::string_view advice_if_stuck(std::optional<Step> step) {
  // A Mac may wait here for its peer without a limit of time.
  if (step == Step::kToRtr) {
    return "is the other end there, awake, and RDMA enabled at it? look at the cable; if all is well, reboot both "
           "machines: nothing ends this call, and a program that is killed in it keeps the port";
  }
  if (step == Step::kQueryDevice) {
    return "the driver has fallen asleep, as after an idle night: reboot this machine";
  }
  return "the driver is stuck: end the programs that use the device; if that does not help, reboot this machine";
}

}  // namespace ringbolt::verbs
