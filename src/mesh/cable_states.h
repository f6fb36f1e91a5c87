#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/cable_news.h"

namespace ringbolt::mesh {

/// What one rank knows of each cable of the fabric: whether it is up, why not, and how often it has changed, by which
/// all ranks agree on the newest. A value. Not thread-safe. `cable` is a place in the fabric, below their number, but
/// in hear().
class CableStates {
 public:
  explicit CableStates(size_t n_cables) : versions_(n_cables), why_down_(n_cables) {}

  /// This rank has seen itself that the cable is up or down: whether that is news for all.
  bool change(uint32_t cable, bool is_up) {
    if ((versions_[cable] % 2 == 0) == is_up) {
      return false;
    }
    ++versions_[cable];
    return true;
  }
  /// Another rank's news, of any cable: whether they are newer than what is known here, and taken over.
  /// Versions wrap at 16 bits: the sign of the difference tells which one is newer (RFC 1982).
  bool hear(const fabric::CableNews& news) {
    if (news.cable >= versions_.size() || static_cast<int16_t>(news.version - versions_[news.cable]) <= 0) {
      return false;
    }
    versions_[news.cable] = news.version;
    return true;
  }
  /// What has just been heard is not so, as this rank sees it: says so with a newer version.
  void contradict(uint32_t cable) { ++versions_[cable]; }
  /// For heartbeats: fabric::emit_news(). An odd one is down.
  std::span<const uint16_t> versions() const { return versions_; }

  /// What this rank goes by. `why`, of one that is down: in words, not empty.
  void set(uint32_t cable, bool is_up, const std::string& why) { why_down_[cable] = is_up ? std::string() : why; }
  bool is_down(uint32_t cable) const { return !why_down_[cable].empty(); }
  const std::string& why_down(uint32_t cable) const { return why_down_[cable]; }  ///< empty while it is up
  /// [fabric cable]. A copy.
  std::vector<bool> down() const {
    std::vector<bool> down(why_down_.size());
    for (uint32_t cable = 0; cable < down.size(); ++cable) {
      down[cable] = is_down(cable);
    }
    return down;
  }

 private:
  std::vector<uint16_t> versions_;     // [fabric cable]: changes so far
  std::vector<std::string> why_down_;  // [fabric cable]
};

}  // namespace ringbolt::mesh
