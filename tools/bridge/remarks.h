#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace ringbolt::tools::bridge {

/// When a bridge may say something again: each kind at most once a second, since a peer must not fill a disk. Not
/// thread-safe.
class Remarks {
 public:
  /// `kind`: what the remark is of, without anything that a peer chooses, as its port: there are few of them, and each
  /// is kept. `now_ns`: of base::now_ns(), never 0.
  bool may_say(const std::string& kind, uint64_t now_ns) {
    constexpr uint64_t kBetweenNs = 1'000'000'000;
    uint64_t& last = said_[kind];
    if (last != 0 && now_ns - last < kBetweenNs) {
      return false;
    }
    last = now_ns;
    return true;
  }

 private:
  std::map<std::string, uint64_t> said_;
};

}  // namespace ringbolt::tools::bridge
