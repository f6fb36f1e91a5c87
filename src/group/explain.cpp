#include "group/explain.h"

#include <fmt/core.h>

#include <array>
#include <string_view>
#include <utility>

#include "collective/builder.h"
#include "collective/cost.h"
#include "group/arguments.h"
#include "group/asked.h"

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

}  // namespace

std::string explain(const std::string& operation, size_t count, Type type, const collective::Topology& topology,
                    uint32_t n_measured_links) {
  const auto of = static_cast<collective::Type>(type);
  if (static_cast<uint32_t>(type) >= collective::kTypes) {
    return fmt::format("type {}: there are {}\n", static_cast<uint32_t>(type), collective::kTypes);
  }
  for (const auto& [name, value] : kOperations) {
    if (name != operation) {
      continue;
    }
    collective::Problem problem;
    problem.operation = value;
    problem.n_ranks = topology.n_ranks();
    problem.element_bytes = collective::bytes_of(of);
    problem.shares.assign(n_shares(value, topology.n_ranks()), bytes_of(count, problem.element_bytes));
    // As a call has it that asks for nothing special: a sum, the same on every run.
    problem.needs_rank_order = depends_on_order(of, collective::Reduction::sum);
    problem.rounds_partials = of == collective::Type::float16 || of == collective::Type::bfloat16;
    const collective::CostModel& model = topology.model();
    std::string text =
        fmt::format("by {:.1f} us a hop and {:.0f} MB/s for a cable, {}\n", model.latency_us, model.bytes_per_us,
                    n_measured_links > 0 ? fmt::format("measured on {} link{} when the ranks met", n_measured_links,
                                                       n_measured_links == 1 ? "" : "s")
                                         : "which nobody has measured");
    for (const collective::Choice& choice : collective::choose(problem, topology, {})) {
      text += fmt::format("{:<14} {:10.1f} us  {}\n", choice.name, choice.predicted_us, choice.why);
    }
    return text;
  }
  return fmt::format("there is no collective \"{}\"\n", operation);
}

}  // namespace ringbolt::group
