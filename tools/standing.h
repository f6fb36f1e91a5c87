#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/model.h"
#include "programs.h"

namespace ringbolt::tools {

/// A program of `ringbolt run` that has ended and failed.
struct Death {
  std::string node;
  pid_t pid = 0;
  std::string command;
  std::string how;      ///< "was killed by signal 11 (Segmentation fault)"
  uint64_t at_ns = 0;   ///< of the monotonic clock
  bool is_over = true;  ///< so is the run, and nobody waits for it any more

  /// "node n2's all_reduce (pid 71) was killed by signal 11 (Segmentation fault)".
  std::string text() const;
};

/// How a running program fares, as two looks at it tell.
struct Standing {
  enum class State {
    kActive,   ///< moved something between the looks, or has just begun
    kIdle,     ///< did not, and nothing is known to keep it from doing so
    kStalled,  ///< did not, and where its ports lead a cable is cut or a program has died
  };
  Program program;
  State state = State::kIdle;
  std::string cause;  ///< of a stall: "cable 1 (n1:rdma_en2 - n2:rdma_en3) is cut"
};

/// "active", "idle" or "stalled".
const char* state_text(Standing::State state);

/// "node n0's all_reduce (pid 70) moves nothing: cable 1 (n1:rdma_en2 - n2:rdma_en3) is cut". Of one that stalls or is
/// idle.
std::string standing_text(const Standing& standing);

/// Judges each program of `now`. A stalled one waits for what is nearest along the cables of the ports that it, and in
/// turn those that it reaches and that stand still too, have open: a cut cable, or the death of a run that goes on.
/// Shapes: is_up: [cables]. Pure. Thread-safe.
std::vector<Standing> standings(const cluster::Cluster& model, const std::vector<bool>& is_up,
                                const std::vector<Program>& before, const std::vector<Program>& now,
                                const std::vector<Death>& deaths);

}  // namespace ringbolt::tools
