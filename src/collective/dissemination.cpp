#include "collective/assignment.h"

namespace ringbolt::collective {

/// barrier: in round k every rank tells the one 2^k further on, once it has heard of all rounds before. After ceil(log2
/// N) rounds it has heard of all. Source: Hensgen, Finkel and Manber 1988, "Two algorithms for barrier
/// synchronization".
Program build_dissemination(const Assignment& assignment) {
  const uint32_t n = assignment.n_ranks();
  const uint32_t chunk_bytes = assignment.problem.element_bytes;
  Program program;
  const auto waiting_step = [&](uint32_t last_distance) {
    Step step = Assignment::step({}, chunk_bytes);
    if (program.steps.empty()) {
      step.sources.push_back(from_local(Buffer::input, 0));
    } else {
      step.sources.push_back(
          // Of no bytes: it only orders the step behind the one before.
          from_local(Buffer::input, 0, static_cast<uint32_t>(program.steps.size() - 1), /*after_all=*/true));
      step.sources.push_back(from_transfer((assignment.rank + n - last_distance) % n, 0));
    }
    return step;
  };
  uint32_t last_distance = 0;
  for (uint32_t distance = 1; distance < n; distance *= 2) {
    Step step = waiting_step(last_distance);
    step.targets.push_back(assignment.send_to((assignment.rank + distance) % n, 0));
    add_step(program, std::move(step));
    last_distance = distance;
  }
  if (n > 1) {
    Step step = waiting_step(last_distance);
    step.targets.push_back(to_local(Buffer::output, 0));
    add_step(program, std::move(step));
  }
  return program;
}

}  // namespace ringbolt::collective
