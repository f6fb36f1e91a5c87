#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "bootstrap/sockets.h"
#include "membership/announcement.h"

namespace ringbolt::membership {

/// Finds members of whom nobody has told: those at the other ends of this machine's cables, by IPv6 multicast that
/// leaves no link (ff12::5242:4d, UDP port kPort), and those of an emulated cluster, by files in a folder of it. What
/// is found is where somebody may listen; who it is, and whether it belongs here, is for the handshake to say. Where
/// there is no such network, or no folder, it finds nothing, which is no error. Not thread-safe. Of the membership's
/// thread. Blocks for no network; the folder is a local one.
class Discovery {
 public:
  static constexpr uint16_t kPort = 47'938;

  struct Plan {
    MemberId self = 0;
    uint64_t machine = 0;
    uint16_t port = 0;  ///< at which this member listens
    std::string group = {};
    std::string folder = {};                   ///< empty: none
    std::vector<std::string> interfaces = {};  ///< of the cables
  };
  struct Found {
    MemberId member = 0;
    bootstrap::Address at;
  };

  /// Leaves a file in the folder. What can't be opened, joined or written is left out, without a word.
  explicit Discovery(Plan plan);
  /// Takes it away.
  ~Discovery();
  Discovery(const Discovery&) = delete;
  Discovery& operator=(const Discovery&) = delete;

  /// Becomes readable when somebody is heard; -1: there is no such network.
  int fd() const { return socket_.get(); }
  /// Who has been heard since. 64 at most; more are there at the next call.
  std::vector<Found> receive();
  /// Calls out on the cables.
  void call_out();
  /// These are cables, too. Whether any is new here. Interfaces are never forgotten: one that has gone takes no
  /// calls.
  bool watch(const std::vector<std::string>& interfaces);
  /// Who has a file in the folder. Files of processes that have ended are removed. Those of this machine alone: the
  /// files name loopback ports.
  std::vector<Found> look() const;

 private:
  bool open_socket();
  bool join(unsigned link) const;
  void write_file();
  std::string file_of(MemberId member) const;

  const Plan plan_;
  std::vector<unsigned> links_;  ///< indices of interfaces on which it hears
  base::UniqueFd socket_;
};

}  // namespace ringbolt::membership
