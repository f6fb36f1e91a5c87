#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringbolt::link {

/// One socket of the processes that share a UDP port.
struct UdpMember {
  uint32_t slot = 0;
  pid_t pid = 0;
  uint64_t inode = 0;
  bool is_sure = true;  ///< its place is known, not guessed
  friend bool operator==(const UdpMember&, const UdpMember&) = default;
};

/// The sockets of one family in the order in which the kernel holds them (SO_REUSEPORT): the selecting program answers
/// with a place in this order. A new socket comes last; when one is closed, the kernel moves the last one into its
/// place. Pure. Not thread-safe.
/// The kernel's order is an implementation detail of reuseport_add_sock() and reuseport_detach_sock()
/// (net/core/sock_reuseport.c), which is why it is proved by probes where there is doubt.
class UdpOrder {
 public:
  const std::vector<UdpMember>& members() const { return members_; }
  void append(const UdpMember& member) { members_.push_back(member); }

  /// Whether a socket is not in `living`.
  bool has_others_than(const std::vector<uint64_t>& living) const;

  /// Takes the sockets out that are not in `living`, as the kernel did when they were closed. Of several at a time the
  /// sequence is unknown: whoever may have been moved to more than one place is put at one of them and is not sure.
  /// True if anything changed.
  bool keep(const std::vector<uint64_t>& living);

  /// `inode` is at `place`, as a probe has shown. The one that was thought to be there changes places with it. False if
  /// there is no such socket or place, or it is known already.
  bool prove(uint64_t inode, size_t place);

  bool is_sure() const;
  /// Nothing if it has none.
  std::optional<size_t> place_of(uint64_t inode) const;

  friend bool operator==(const UdpOrder&, const UdpOrder&) = default;

 private:
  void settle_last_doubt();
  std::vector<UdpMember> members_;
};

/// What lies in the order file (docs/formats/udp-sharing.md).
struct UdpOrderFile {
  uint64_t generation = 0;           ///< grows with every change
  std::array<UdpOrder, 2> families;  ///< IPv4, IPv6

  std::string emit() const;
  /// Nothing if the text is not what emit() writes.
  static std::optional<UdpOrderFile> parse(std::string_view text);
  friend bool operator==(const UdpOrderFile&, const UdpOrderFile&) = default;
};

}  // namespace ringbolt::link
