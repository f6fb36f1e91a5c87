#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/unique_fd.h"

namespace ringbolt::link {

/// One numbered slot of a folder: `<slot>.lock`, held with flock while the owner lives, and the listening socket
/// `<slot>.sock`. What a crashed owner left is taken over. Not thread-safe.
/// Owned by the rendezvous. That the lock can be had is what says that an owner is dead: no process number is looked
/// at.
class Slot {
 public:
  /// Makes the folder (0700) if absent and claims a free slot below `slot_limit`, searching from `start` on.
  /// Throws base::Error: the folder is not ours alone, no slot is free, a system call failed.
  static Slot claim(const std::string& directory, uint32_t slot_limit, uint32_t start);

  Slot(Slot&&) noexcept = default;
  Slot& operator=(Slot&&) = delete;
  ~Slot();

  uint32_t number() const { return number_; }
  int listening_fd() const { return listening_.get(); }
  const std::string& directory() const { return directory_; }
  int directory_fd() const { return directory_fd_.get(); }

  /// Refuses further connections, removes the files, gives the lock back. Descriptors stay open until destruction:
  /// another thread may be asleep on them.
  void release();

  /// In a forked child: closes the descriptors, touches no file and keeps the lock with the parent.
  void abandon_after_fork();

 private:
  Slot(std::string directory, base::UniqueFd directory_fd);
  bool try_claim(uint32_t number);
  void listen_on(uint32_t number);
  /// Removes the files that killed processes left in their slots.
  void sweep() const;

  std::string directory_;
  base::UniqueFd directory_fd_;
  base::UniqueFd lock_;
  base::UniqueFd listening_;
  uint32_t number_ = 0;
  pid_t owner_ = 0;  // a forked child must not remove the files of its parent
};

/// "<slot>.sock"
std::string slot_socket_name(uint32_t slot);

}  // namespace ringbolt::link
