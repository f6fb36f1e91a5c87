#pragma once

#include <map>
#include <string>
#include <vector>

#include "cases.h"
#include "options.h"

namespace ringbolt::test {

struct Outcome {
  std::string failure;   ///< empty: none
  bool is_late = false;  ///< the first failure is a Late
  /// By kind of call: how it took longer than the case's CallLimit; from kCalls on: how it slept.
  std::map<size_t, std::string> excesses;
  std::vector<std::string> notes;
  std::vector<std::string> rows;
  double seconds = 0;
};

/// Plays one case: forks its ranks, carries their mail, and kills what hangs. Leaves no process behind.
Outcome play(const Case& played, const Options& options);

}  // namespace ringbolt::test
