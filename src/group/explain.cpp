#include <fmt/core.h>

#include <array>
#include <string_view>
#include <utility>

#include "collective/builder.h"
#include "collective/cost.h"
#include "group/arguments.h"
#include "group/state.h"

namespace ringbolt::group {
namespace {

using collective::Operation;

constexpr std::array<std::pair<std::string_view, Operation>, 8> kOperations = {{
    {"all_reduce", Operation::all_reduce},
    {"reduce_scatter", Operation::reduce_scatter},
    {"all_gather", Operation::all_gather},
    {"broadcast", Operation::broadcast},
    {"reduce", Operation::reduce},
    {"gather", Operation::gather},
    {"scatter", Operation::scatter},
    {"all_to_all", Operation::all_to_all},
}};

size_t n_shares(Operation operation, size_t n_ranks) {
  switch (operation) {
    case Operation::all_reduce:
    case Operation::broadcast:
    case Operation::reduce:
      return 1;
    case Operation::all_to_all:
      return n_ranks * n_ranks;
    default:
      return n_ranks;
  }
}

}  // namespace

std::string Group::explain(const std::string& operation, size_t count, Type type) const {
  if (state_->communicator == nullptr) {
    return "this group has no ranks\n";
  }
  if (static_cast<uint32_t>(type) >= collective::kTypes) {
    return fmt::format("type {}: there are {}\n", static_cast<uint32_t>(type), collective::kTypes);
  }
  for (const auto& [name, value] : kOperations) {
    if (name != operation) {
      continue;
    }
    collective::Problem problem;
    problem.operation = value;
    problem.n_ranks = size();
    problem.element_bytes = collective::bytes_of(static_cast<collective::Type>(type));
    problem.shares.assign(n_shares(value, size()), bytes_of(count, problem.element_bytes));
    problem.needs_rank_order = depends_on_order(static_cast<collective::Type>(type), collective::Reduction::sum);
    problem.rounds_partials = type == Type::float16 || type == Type::bfloat16;
    const collective::CostModel& model = state_->communicator->topology().model();
    const uint32_t n_links = state_->groups->mesh().made().n_measured_links;
    std::string text = fmt::format(
        "by {:.1f} us a hop and {:.0f} MB/s for a cable, {}\n", model.latency_us, model.bytes_per_us,
        n_links > 0 ? fmt::format("measured on {} link{} when the ranks met", n_links, n_links == 1 ? "" : "s")
                    : "which nobody has measured");
    // Without the lock: nothing of a call is touched, and the topology is thread-safe.
    for (const collective::Choice& choice : collective::choose(problem, state_->communicator->topology(), {})) {
      text += fmt::format("{:<14} {:10.1f} us  {}\n", choice.name, choice.predicted_us, choice.why);
    }
    return text;
  }
  return fmt::format("there is no collective \"{}\"\n", operation);
}

}  // namespace ringbolt::group
