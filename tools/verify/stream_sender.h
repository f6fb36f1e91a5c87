#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verify/batch.h"
#include "verify/context.h"
#include "verify/pace.h"
#include "verify/rig.h"

namespace ringbolt::tools::verify {

/// Sends stamped messages over all queue pairs of a rig, never more than the receiver has room for. Each buffer is
/// written anew as soon as its send has completed, as a program may. Acknowledgements come beside the verbs, so that
/// they don't depend on what is verified. Not thread-safe.
class StreamSender {
 public:
  StreamSender(const Context& context, const Rig& rig);

  /// Does what can be done without waiting. True if that was something. Throws ProbeFailure.
  bool advance();
  bool is_done() const { return is_done_; }
  uint64_t duration_ns() const { return settled_ns_ - begin_ns_; }
  /// "queue pair 0: 512 posted, 500 completed, 480 acknowledged".
  std::string where() const;

 private:
  struct Lane {
    uint64_t settled = 0;  // the receiver awaits no more of these
    bool wants_more = true;
  };

  bool post(uint32_t index);
  bool take_credits();
  void look_for_end();

  const Context& context_;
  const Rig& rig_;
  Batch batch_;
  Pace pace_;
  uint32_t window_;
  uint64_t seed_;
  std::vector<Lane> lanes_;
  uint64_t begin_ns_;
  uint64_t settled_ns_;
  uint32_t turns_ = 0;
  uint32_t fruitless_ = 0;
  bool has_asked_ = false;
  bool is_done_ = false;
};

}  // namespace ringbolt::tools::verify
