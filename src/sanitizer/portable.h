#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace ringbolt::sanitizer {

/// Judges what the program asks for by all profiles at once. Each answer is "NAME: why; NAME: why", empty where nothing
/// is wrong with it. Pure but for the making. Thread-safe.
class Portability {
 public:
  Portability();

  /// Counts, bytes and addresses are as the verbs have them; pointers in `wanted` are compared with null, not
  /// followed.
  std::string of_queue_pair(const ibv_qp_init_attr& wanted) const;
  std::string of_queue(uint32_t entries, bool has_channel) const;
  std::string of_region(uint64_t address, uint64_t iova, uint32_t access) const;
  std::string of_change(const ibv_qp_attr& attributes, int mask) const;
  /// Of a message: what is done, and how long it is.
  std::string of_request(ibv_wr_opcode opcode, uint64_t length_bytes) const;
  std::string of_srq() const;
  std::string of_window() const;

 private:
  std::vector<profile::Profile> profiles_;
};

}  // namespace ringbolt::sanitizer
