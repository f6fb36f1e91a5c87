#include "group/asked.h"

#include "group/arguments.h"

namespace ringbolt::group {
namespace {

using collective::Operation;

/// Without shares.
Asked ask_without_shares(Operation operation, size_t n_ranks, const void* in, void* out, collective::Type type) {
  Asked asked;
  asked.what.problem.operation = operation;
  asked.what.problem.n_ranks = static_cast<uint32_t>(n_ranks);
  asked.what.problem.element_bytes = element_bytes(type);
  asked.type = type;
  asked.input = in;
  asked.output = out;
  return asked;
}

}  // namespace

uint32_t element_bytes(collective::Type type) {
  return static_cast<uint32_t>(type) < collective::kTypes ? collective::bytes_of(type) : 0;
}

uint64_t n_shares(Operation operation, uint64_t n_ranks) {
  switch (operation) {
    case Operation::all_reduce:
    case Operation::broadcast:
    case Operation::reduce:
      return 1;
    case Operation::reduce_scatter:
    case Operation::all_gather:
    case Operation::gather:
    case Operation::scatter:
      return n_ranks;
    case Operation::all_to_all:
      return n_ranks * n_ranks;
    case Operation::barrier:
      break;
  }
  return 0;
}

Asked ask(const ShortKey& key, uint32_t n_ranks, const void* in, void* out) {
  Asked asked = ask_without_shares(key.operation(), n_ranks, in, out, key.type());
  collective::Problem& problem = asked.what.problem;
  problem.root = key.root();
  asked.what.n_equal_shares = n_shares(key.operation(), n_ranks);
  asked.what.equal_share_bytes = bytes_of(key.count(), problem.element_bytes);
  if (reduces(key.operation())) {
    asked.reduction = key.reduction();
    problem.needs_rank_order = key.is_reproducible() && collective::depends_on_order(asked.type, asked.reduction);
    // Sixteen bits hold no sum of many numbers: partial ones are rounded on their way (collective/problem.h).
    problem.rounds_partials = asked.type == collective::Type::float16 || asked.type == collective::Type::bfloat16;
  }
  return asked;
}

Asked ask_all_gatherv(std::span<const size_t> counts, const void* in, void* out, collective::Type type) {
  Asked asked = ask_without_shares(Operation::all_gather, counts.size(), in, out, type);
  for (const size_t count : counts) {
    asked.what.problem.shares.push_back(bytes_of(count, element_bytes(type)));
  }
  return asked;
}

Asked ask_all_to_allv(uint32_t rank, std::span<const size_t> sent, std::span<const size_t> received, const void* in,
                      void* out, collective::Type type) {
  // This rank's row and column; the shares of others are not known yet.
  const size_t n = sent.size();
  Asked asked = ask_without_shares(Operation::all_to_all, n, in, out, type);
  asked.what.problem.shares.resize(n * n);
  for (size_t other = 0; other < n; ++other) {
    asked.what.problem.shares[other * n + rank] = bytes_of(received[other], element_bytes(type));
    asked.what.problem.shares[rank * n + other] = bytes_of(sent[other], element_bytes(type));
  }
  return asked;
}

Asked counting_of(uint32_t n_ranks) {
  Asked exchange;
  exchange.phase = Phase::counting;
  exchange.what.problem.operation = Operation::all_gather;
  exchange.what.problem.n_ranks = n_ranks;
  exchange.what.problem.element_bytes = sizeof(uint64_t);
  exchange.what.n_equal_shares = n_ranks;
  exchange.what.equal_share_bytes = size_t{2} * n_ranks * sizeof(uint64_t);
  exchange.type = collective::Type::uint64;
  return exchange;
}

}  // namespace ringbolt::group
