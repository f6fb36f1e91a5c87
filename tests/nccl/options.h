#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ringbolt::test {

/// What the command line says.
struct Options {
  std::string plugin;
  int api = 0;  ///< 0: the newest table
  int ranks = 2;
  int nodes = 0;             ///< with `cluster`: rank % nodes is the node of a rank
  std::string cluster;       ///< an emulated cluster's name
  std::string netns_prefix;  ///< followed by the rank: the name of a network namespace
  std::vector<std::string> cases;
  double seconds = 3;  ///< of the cases `stream` and `bandwidth`, and how long `severed` waits for its cut
  std::optional<std::pair<int, int>> pair;  ///< these two alone exchange messages, in cases that heed it
  int channels = 4;                         ///< of the cases that connect
  int cycles = 20;
  int messages = 100'000;  ///< of the case `order`, of each rank to each other
  int bytes = 4 << 20;  ///< of a message of the case `relay_memory`
  bool is_slow = false;  ///< machines that can't keep the bounds on time
  bool is_json = false;
  bool lists_cases = false;
  bool is_verbose = false;  ///< shows what the plugin logs
  bool makes_scratch = false;
};

}  // namespace ringbolt::test
