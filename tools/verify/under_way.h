#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "verify/finding.h"

namespace ringbolt::tools::verify {

/// The operations of one queue pair: each completes once, in the order in which they were posted. Pure: knows no verbs.
/// Not thread-safe.
class UnderWay {
 public:
  /// For messages: `name` of the queue pair, and `kind` "send".
  UnderWay(std::string name, const char* kind) : name_(std::move(name)), kind_(kind) {}

  uint64_t posted() const { return posted_; }
  uint64_t completed() const { return completed_; }
  uint64_t count() const { return posted_ - completed_; }

  /// What the completion of the next operation must bear.
  uint32_t next_id() const { return static_cast<uint32_t>(posted_); }
  void note_posted() { ++posted_; }

  /// A completion has come that bears `id`. Returns how many operations are over by it, those that came before their
  /// time included; 0 if it is such a one itself, or none of ours, which `tally` is told. Allocates only if something
  /// is wrong.
  uint64_t complete(uint32_t id, Tally& tally);

 private:
  std::string name_;
  const char* kind_;
  uint64_t posted_ = 0;
  uint64_t completed_ = 0;
  std::set<uint64_t> early_;  // completed before completed_
};

}  // namespace ringbolt::tools::verify
