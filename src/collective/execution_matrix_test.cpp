// Every schedule on every graph, run with numbers instead of symbols, in random orders of arrival.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "collective/builder.h"
#include "collective/played_ranks_test_support.h"
#include "collective/problems_test_support.h"

namespace ringbolt::collective {
namespace {

using Numbers = std::vector<float>;

/// Inputs and right outputs of all ranks. Empty outputs are not looked at.
struct Case {
  std::vector<Numbers> inputs;
  std::vector<Numbers> outputs;
};

float number(uint32_t rank, uint64_t i, bool is_exact) {
  const auto whole = static_cast<float>((i * 31 + rank * 1009) % 4093) - 2000;
  return is_exact ? whole : whole * (rank % 2 == 0 ? 1.1e6F : 0.37F);
}

uint64_t elements(uint64_t bytes) { return bytes / sizeof(float); }

uint64_t sum_of(const std::vector<uint64_t>& shares) {
  return std::accumulate(shares.begin(), shares.end(), uint64_t{0});
}

Numbers part(const Numbers& of, uint64_t begin, uint64_t length) {
  return {of.begin() + static_cast<int64_t>(begin), of.begin() + static_cast<int64_t>(begin + length)};
}

Numbers left_fold(const std::vector<Numbers>& inputs) {
  Numbers sum = inputs[0];
  for (size_t rank = 1; rank < inputs.size(); ++rank) {
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i] += inputs[rank][i];
    }
  }
  return sum;
}

Case case_of(const Problem& problem, bool is_exact) {
  const uint32_t n = problem.n_ranks;
  const std::vector<uint64_t>& shares = problem.shares;
  const bool is_one = problem.operation == Operation::all_reduce || problem.operation == Operation::broadcast ||
                      problem.operation == Operation::reduce;
  const uint64_t all = elements(is_one ? shares[0] : sum_of(shares));
  Case made;
  made.outputs.resize(n);
  std::vector<uint64_t> begins = {0};
  for (const uint64_t share : shares) {
    begins.push_back(begins.back() + elements(share));
  }
  for (uint32_t rank = 0; rank < n; ++rank) {
    uint64_t length = all;
    if (problem.operation == Operation::all_gather || problem.operation == Operation::gather) {
      length = elements(shares[rank]);
    } else if (problem.operation == Operation::all_to_all) {
      length = begins[size_t{rank + 1} * n] - begins[size_t{rank} * n];
    }
    Numbers input(length);
    for (uint64_t i = 0; i < length; ++i) {
      input[i] = number(rank, i, is_exact);
    }
    made.inputs.push_back(std::move(input));
  }
  for (uint32_t rank = 0; rank < n; ++rank) {
    Numbers& out = made.outputs[rank];
    switch (problem.operation) {
      case Operation::all_reduce:
        out = left_fold(made.inputs);
        break;
      case Operation::reduce:
        out = rank == problem.root ? left_fold(made.inputs) : Numbers();
        break;
      case Operation::reduce_scatter:
        out = part(left_fold(made.inputs), begins[rank], elements(shares[rank]));
        break;
      case Operation::broadcast:
        out = made.inputs[problem.root];
        break;
      case Operation::scatter:
        out = part(made.inputs[problem.root], begins[rank], elements(shares[rank]));
        break;
      case Operation::all_gather:
      case Operation::gather:
        for (uint32_t from = 0; from < n && (problem.operation == Operation::all_gather || rank == problem.root);
             ++from) {
          out.insert(out.end(), made.inputs[from].begin(), made.inputs[from].end());
        }
        break;
      case Operation::all_to_all:
        for (uint32_t from = 0; from < n; ++from) {
          const uint64_t row = begins[size_t{from} * n];
          const Numbers piece =
              part(made.inputs[from], begins[size_t{from} * n + rank] - row, elements(shares[size_t{from} * n + rank]));
          out.insert(out.end(), piece.begin(), piece.end());
        }
        break;
      case Operation::barrier:
        break;
    }
  }
  return made;
}

void run(const std::string& graph, const std::string& name, const Problem& problem, const Topology& topology) {
  SCOPED_TRACE(graph + ", " + name + ", " + std::to_string(sum_of(problem.shares)) + " bytes, root " +
               std::to_string(problem.root));
  const Schedule schedule = build(name, problem, topology, {});
  const Case made = case_of(problem, !schedule.is_rank_ordered);
  test::PlayedRanks ranks(schedule, problem.root + 7, problem.n_ranks);
  for (uint32_t call = 0; call < 2; ++call) {
    std::vector<Numbers> outputs = made.outputs;
    std::vector<Operands> operands;
    for (uint32_t rank = 0; rank < problem.n_ranks; ++rank) {
      std::fill(outputs[rank].begin(), outputs[rank].end(), -7.5F);
      operands.push_back({reinterpret_cast<const std::byte*>(made.inputs[rank].data()),
                          reinterpret_cast<std::byte*>(outputs[rank].data()), Type::float32, Reduction::sum, 0});
    }
    ASSERT_TRUE(ranks.run(call, operands));
    for (uint32_t rank = 0; rank < problem.n_ranks; ++rank) {
      const size_t length = outputs[rank].size() * sizeof(float);
      ASSERT_TRUE(length == 0 || std::memcmp(outputs[rank].data(), made.outputs[rank].data(), length) == 0)
          << "rank " << rank;
    }
  }
}

TEST(ExecutionMatrix, every_schedule_gives_what_a_serial_sum_gives) {
  for (const NamedGraph& graph : usual_graphs()) {
    const Topology topology(graph.graph);
    for (const Operation operation : kOperations) {
      for (const uint64_t n_elements : {uint64_t{0}, uint64_t{1}, uint64_t{997}, uint64_t{12'000}}) {
        const Problem problem = problem_of(operation, graph.graph.n_nodes, n_elements, sizeof(float),
                                           static_cast<uint32_t>(n_elements) % graph.graph.n_nodes);
        for (const std::string& name : candidates(problem, topology)) {
          run(graph.name, name, problem, topology);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ringbolt::collective
