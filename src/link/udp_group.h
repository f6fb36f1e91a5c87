#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "link/udp_forwarder.h"
#include "link/udp_order.h"
#include "link/udp_order_lock.h"
#include "link/udp_selector.h"
#include "link/udp_watch.h"

namespace ringbolt::link {

/// Our membership of the processes that share a UDP port: keeps the kernel's selecting program in step with the order
/// of the sockets while members come, go and are killed (docs/formats/udp-sharing.md). Not thread-safe.
/// Owned by the endpoint, and used under its lock for receiving, or before and after others know of the endpoint.
class UdpGroup {
 public:
  struct Options {
    uint32_t slot = 0;
    uint32_t slot_shift = 0;
    uint16_t port = 0;
  };
  using Sockets = std::array<base::UniqueFd, 2>;

  /// Opens the sockets and joins. Both references must outlive the group. Throws base::Error: the port belongs to
  /// somebody else, a member was stopped while it held the order file, a system call failed.
  UdpGroup(const Options& options, Sockets& sockets, UdpForwarder& forwarder);

  /// Takes our slot out of the program, calls `drain` so that what has come in for others is passed on, and closes the
  /// sockets.
  void leave(const std::function<void()>& drain);

  /// Readable when settle_if_needed() has work.
  int descriptor() const { return watch_.descriptor(); }
  /// A packet went astray, or another member says that something changed.
  void suspect() { is_suspicious_ = true; }
  /// Looks whether members have died. Puts order file and program right if there is reason to. True if it changed the
  /// program. A system call, and when there is reason some dozens.
  bool settle_if_needed();

  /// Some member other than us; nothing if we are alone.
  std::optional<uint32_t> another() const;
  /// A probe came back to our socket of this family. False if it is none of ours.
  bool take_probe(size_t family, std::span<const std::byte> packet);
  /// A packet for `slot` came to us: if that one's place is guessed, it is asked to find out.
  void report_stray(uint32_t slot);

  /// In a forked child: closes the descriptors.
  void abandon_after_fork();

 private:
  struct Proof {
    uint64_t generation = 0;
    size_t place = 0;
  };

  void join();
  /// Out of the order, the sockets still open for what is on its way to them. False if the others have to find out.
  bool take_us_out(const std::function<void()>& drain);
  void refuse_strangers(const UdpOrderFile& file, const UdpOrderLock& lock) const;
  /// Brings the order in line with the living sockets. True if it was not.
  bool remove_dead(UdpOrderFile& file) const;
  /// The program for `file`, without our own slot if `is_leaving`. An errno or 0.
  int attach(const UdpOrderFile& file, bool is_leaving) const;
  bool apply_proofs(UdpOrderFile& file);
  void learn(const UdpOrderFile& file);
  void send_probes();
  /// Tells the other members of seen_ to look at the order file.
  void announce() const;

  const Options options_;
  Sockets& sockets_;
  UdpForwarder& forwarder_;
  uint64_t namespace_;
  uint64_t nonce_ = 0;
  std::array<uint64_t, 2> inodes_{};
  UdpWatch watch_;
  UdpOrderFile seen_;
  std::array<std::optional<Proof>, 2> proofs_;
  bool is_suspicious_ = false;
  uint64_t next_report_ns_ = 0;
};

}  // namespace ringbolt::link
