#pragma once

#include <vector>

#include "rank.h"

namespace ringbolt::test {

/// What no call may take, but those that happen once: a millisecond, for NCCL's service thread serves all its peers in
/// turn, and what one call keeps it, all wait.
enum class CallLimit {
  none,
  clock,      ///< by the clock, without what the thread waited for a processor; `processor` where what polls outnumbers those
  processor,  ///< what the call itself uses of one; and it does not sleep
};

/// What every rank does in one case; a Failure ends it for all.
struct Case {
  const char* name;
  const char* asserts;
  void (*run)(Rank&);
  CallLimit limit = CallLimit::none;
  double limit_s = 30;  ///< when hung ranks are killed
  int rounds = 1;       ///< each with fresh processes
  bool loads_itself = false;
  bool takes_seconds = false;  ///< --seconds more than `limit_s`
};

std::vector<Case> abuse_cases();
std::vector<Case> close_cases();
std::vector<Case> connect_cases();
std::vector<Case> cut_cases();
std::vector<Case> cycle_cases();
std::vector<Case> data_cases();
std::vector<Case> death_cases();
std::vector<Case> memory_cases();
std::vector<Case> poller_cases();
std::vector<Case> properties_cases();
std::vector<Case> relay_cases();
std::vector<Case> stream_cases();

}  // namespace ringbolt::test
