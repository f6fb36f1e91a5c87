// The collectives of the public API: from arguments to problems.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "collective/element.h"
#include "group/state.h"

namespace ringbolt {
namespace {

using collective::Operation;
using group::Asked;

constexpr uint64_t kMillisecond = 1'000'000;

collective::Type of(Type type) { return static_cast<collective::Type>(type); }
collective::Reduction of(Reduction reduction) { return static_cast<collective::Reduction>(reduction); }

/// 0 of a type that there is not: objection() says so.
uint32_t element_bytes(Type type) {
  return static_cast<uint32_t>(type) < collective::kTypes ? collective::bytes_of(of(type)) : 0;
}

Asked ask(Operation operation, uint32_t n_ranks, const void* in, void* out, Type type) {
  Asked asked;
  asked.what.problem.operation = operation;
  asked.what.problem.n_ranks = n_ranks;
  asked.what.problem.element_bytes = element_bytes(type);
  asked.type = of(type);
  asked.input = in;
  asked.output = out;
  return asked;
}

Asked ask_equal(Operation operation, uint32_t n_ranks, size_t n_shares, const void* in, void* out, size_t count,
                Type type) {
  Asked asked = ask(operation, n_ranks, in, out, type);
  asked.what.n_equal_shares = n_shares;
  asked.what.equal_share_bytes = uint64_t{count} * element_bytes(type);
  return asked;
}

void reduce_by(Asked& asked, Reduction reduction, const CallOptions& options) {
  asked.reduction = of(reduction);
  collective::Problem& problem = asked.what.problem;
  problem.needs_rank_order = options.is_reproducible && collective::depends_on_order(asked.type, asked.reduction);
  problem.rounds_partials = asked.type == collective::Type::float16 || asked.type == collective::Type::bfloat16;
}

/// Of those that reduce.
Asked ask_reduced(Operation operation, uint32_t n_ranks, size_t n_shares, const void* in, void* out, size_t count,
                  Type type, Reduction reduction, const CallOptions& options) {
  Asked asked = ask_equal(operation, n_ranks, n_shares, in, out, count, type);
  reduce_by(asked, reduction, options);
  return asked;
}

}  // namespace

uint64_t Group::State::deadline_ns(const CallOptions& call, uint64_t now_ns) const {
  return now_ns + (call.timeout_ms > 0 ? call.timeout_ms : options.timeout_ms) * kMillisecond;
}

/// What is wrong with a type; empty if nothing.
static std::string objection(collective::Type type) {
  return static_cast<uint32_t>(type) < collective::kTypes
             ? std::string()
             : fmt::format("type {}: there are {}", static_cast<uint32_t>(type), collective::kTypes);
}

/// What is wrong with a call by itself; empty if nothing.
static std::string objection(const Asked& asked) {
  if (asked.what.problem.root >= asked.what.problem.n_ranks) {
    return fmt::format("root {} of a group of {} ranks", asked.what.problem.root, asked.what.problem.n_ranks);
  }
  if (std::string words = objection(asked.type); !words.empty()) {
    return words;
  }
  if (static_cast<uint32_t>(asked.reduction) >= collective::kReductions) {
    return fmt::format("reduction {}: there are {}", static_cast<uint32_t>(asked.reduction), collective::kReductions);
  }
  if (!collective::can_reduce(asked.type, asked.reduction)) {
    return fmt::format("{} of {}: there is no such thing", collective::text(asked.reduction),
                       collective::text(asked.type));
  }
  return {};
}

Status Group::State::check(Asked& asked, const CallOptions& call) const {
  if (communicator == nullptr) {
    return {EINVAL, "this group has no ranks: its color was negative, or its ranks have met anew"};
  }
  if (std::string words = objection(asked); !words.empty()) {
    return {EINVAL, std::move(words)};
  }
  asked.what.algorithm = call.algorithm;
  return {};
}

Request Group::State::begin(Asked asked, const CallOptions& call) {
  Request request;
  request.state_ = std::make_unique<Request::State>();
  request.state_->world = world;
  request.state_->communicator = communicator;
  request.state_->refused = check(asked, call);
  if (request.state_->refused.is_ok()) {
    const uint64_t deadline = deadline_ns(call, base::now_ns());
    const std::lock_guard<std::mutex> guard(world->lock());
    request.state_->call = communicator->begin(asked, deadline);
  }
  return request;
}

Status Group::State::run(Asked asked, const CallOptions& call) {
  if (Status refused = check(asked, call); !refused.is_ok()) {
    return refused;
  }
  // It holds the world, too: another thread may have the group's ranks meet anew while this one waits.
  const std::shared_ptr<group::Communicator> within = communicator;
  group::World* const joined = world.get();
  std::unique_lock<std::mutex> guard(joined->lock());
  Status status;
  group::Call* const begun = within->begin_waited(asked, status);
  if (begun != nullptr) {
    if (!begun->is_done()) {
      const uint64_t now_ns = base::now_ns();  // it takes a while: better once the call has sent
      begun->set_deadline(deadline_ns(call, now_ns));
      joined->wait(guard, [begun] { return begun->is_done(); }, now_ns);
    }
    status = begun->status();
    within->end_waited(*begun);
  }
  guard.unlock();
  return joined->explained(std::move(status));
}

Request Group::State::begin_message(bool is_send, void* data, size_t count, Type type, uint32_t peer,
                                    const CallOptions& call) {
  Request request;
  request.state_ = std::make_unique<Request::State>();
  request.state_->world = world;
  request.state_->communicator = communicator;
  if (communicator == nullptr || peer >= communicator->n_ranks() || peer == communicator->rank()) {
    request.state_->refused = {
        EINVAL, fmt::format("a message {} rank {}: there is no such other rank", is_send ? "to" : "from", peer)};
    return request;
  }
  if (std::string words = objection(of(type)); !words.empty()) {
    request.state_->refused = {EINVAL, std::move(words)};
    return request;
  }
  const uint64_t bytes = uint64_t{count} * element_bytes(type);
  const uint64_t deadline = deadline_ns(call, base::now_ns());
  const std::lock_guard<std::mutex> guard(world->lock());
  request.state_->call = is_send ? communicator->begin_send(data, bytes, of(type), peer, deadline)
                                 : communicator->begin_receive(data, bytes, of(type), peer, deadline);
  return request;
}

Request Group::all_reduce_async(const void* in, void* out, size_t count, Type type, Reduction reduction,
                                const CallOptions& options) {
  return state_->begin(ask_reduced(Operation::all_reduce, size(), 1, in, out, count, type, reduction, options), options);
}

Request Group::reduce_scatter_async(const void* in, void* out, size_t count, Type type, Reduction reduction,
                                    const CallOptions& options) {
  return state_->begin(
      ask_reduced(Operation::reduce_scatter, size(), size(), in, out, count, type, reduction, options), options);
}

Request Group::all_gather_async(const void* in, void* out, size_t count, Type type, const CallOptions& options) {
  return state_->begin(ask_equal(Operation::all_gather, size(), size(), in, out, count, type), options);
}

Request Group::all_gatherv_async(const void* in, void* out, const std::vector<size_t>& counts, Type type,
                                 const CallOptions& options) {
  Asked asked = ask(Operation::all_gather, size(), in, out, type);
  for (uint32_t rank = 0; rank < size(); ++rank) {
    asked.what.problem.shares.push_back(rank < counts.size() ? counts[rank] * element_bytes(type) : 0);
  }
  return state_->begin(std::move(asked), options);
}

Request Group::broadcast_async(void* data, size_t count, Type type, uint32_t root, const CallOptions& options) {
  Asked asked = ask_equal(Operation::broadcast, size(), 1, data, data, count, type);
  asked.what.problem.root = root;
  return state_->begin(std::move(asked), options);
}

Request Group::reduce_async(const void* in, void* out, size_t count, Type type, Reduction reduction, uint32_t root,
                            const CallOptions& options) {
  Asked asked = ask_equal(Operation::reduce, size(), 1, in, out, count, type);
  asked.what.problem.root = root;
  reduce_by(asked, reduction, options);
  return state_->begin(std::move(asked), options);
}

Request Group::gather_async(const void* in, void* out, size_t count, Type type, uint32_t root,
                            const CallOptions& options) {
  Asked asked = ask_equal(Operation::gather, size(), size(), in, out, count, type);
  asked.what.problem.root = root;
  return state_->begin(std::move(asked), options);
}

Request Group::scatter_async(const void* in, void* out, size_t count, Type type, uint32_t root,
                             const CallOptions& options) {
  Asked asked = ask_equal(Operation::scatter, size(), size(), in, out, count, type);
  asked.what.problem.root = root;
  return state_->begin(std::move(asked), options);
}

Request Group::all_to_all_async(const void* in, void* out, size_t count, Type type, const CallOptions& options) {
  return state_->begin(ask_equal(Operation::all_to_all, size(), size_t{size()} * size(), in, out, count, type),
                       options);
}

Request Group::barrier_async(const CallOptions& options) {
  return state_->begin(ask(Operation::barrier, size(), nullptr, nullptr, Type::uint8), options);
}

Request Group::send_async(const void* data, size_t count, Type type, uint32_t peer, const CallOptions& options) {
  return state_->begin_message(true, const_cast<void*>(data), count, type, peer, options);  // only read
}

Request Group::recv_async(void* data, size_t count, Type type, uint32_t peer, const CallOptions& options) {
  return state_->begin_message(false, data, count, type, peer, options);
}

Status Group::all_reduce(const void* in, void* out, size_t count, Type type, Reduction reduction,
                         const CallOptions& options) {
  return state_->run(ask_reduced(Operation::all_reduce, size(), 1, in, out, count, type, reduction, options), options);
}

Status Group::reduce_scatter(const void* in, void* out, size_t count, Type type, Reduction reduction,
                             const CallOptions& options) {
  return state_->run(ask_reduced(Operation::reduce_scatter, size(), size(), in, out, count, type, reduction, options),
                     options);
}

Status Group::all_gather(const void* in, void* out, size_t count, Type type, const CallOptions& options) {
  return state_->run(ask_equal(Operation::all_gather, size(), size(), in, out, count, type), options);
}

Status Group::all_gatherv(const void* in, void* out, const std::vector<size_t>& counts, Type type,
                          const CallOptions& options) {
  if (counts.size() != size()) {
    return {EINVAL, fmt::format("all_gatherv: {} counts for {} ranks", counts.size(), size())};
  }
  return all_gatherv_async(in, out, counts, type, options).wait();
}

Status Group::broadcast(void* data, size_t count, Type type, uint32_t root, const CallOptions& options) {
  return broadcast_async(data, count, type, root, options).wait();
}

Status Group::reduce(const void* in, void* out, size_t count, Type type, Reduction reduction, uint32_t root,
                     const CallOptions& options) {
  return reduce_async(in, out, count, type, reduction, root, options).wait();
}

Status Group::gather(const void* in, void* out, size_t count, Type type, uint32_t root, const CallOptions& options) {
  return gather_async(in, out, count, type, root, options).wait();
}

Status Group::scatter(const void* in, void* out, size_t count, Type type, uint32_t root, const CallOptions& options) {
  return scatter_async(in, out, count, type, root, options).wait();
}

Status Group::all_to_all(const void* in, void* out, size_t count, Type type, const CallOptions& options) {
  return all_to_all_async(in, out, count, type, options).wait();
}

Status Group::all_to_allv(const void* in, const std::vector<size_t>& sent, void* out,
                          const std::vector<size_t>& received, Type type, const CallOptions& options) {
  const size_t n = size();
  if (sent.size() != n || received.size() != n) {
    return {EINVAL, fmt::format("all_to_allv: {} and {} counts for {} ranks", sent.size(), received.size(), n)};
  }
  std::vector<uint64_t> mine(2 * n);
  std::copy(received.begin(), received.end(), std::copy(sent.begin(), sent.end(), mine.begin()));
  std::vector<uint64_t> all(2 * n * n);
  CallOptions exchange = options;
  exchange.algorithm.clear();
  if (Status status = all_gather(mine.data(), all.data(), 2 * n, Type::uint64, exchange); !status.is_ok()) {
    return status;
  }
  Asked asked = ask(Operation::all_to_all, static_cast<uint32_t>(n), in, out, type);
  for (size_t from = 0; from < n; ++from) {
    for (size_t to = 0; to < n; ++to) {
      const uint64_t sends = all[from * 2 * n + to];
      const uint64_t awaits = all[to * 2 * n + n + from];
      if (sends != awaits) {
        return {EPROTO, fmt::format("all_to_allv: rank {} sends {} elements to rank {}, which awaits {}", from, sends,
                                    to, awaits)};
      }
      asked.what.problem.shares.push_back(sends * element_bytes(type));
    }
  }
  return state_->run(std::move(asked), options);
}

Status Group::barrier(const CallOptions& options) {
  return state_->run(ask(Operation::barrier, size(), nullptr, nullptr, Type::uint8), options);
}

Status Group::send(const void* data, size_t count, Type type, uint32_t peer, const CallOptions& options) {
  return send_async(data, count, type, peer, options).wait();
}

Status Group::recv(void* data, size_t count, Type type, uint32_t peer, const CallOptions& options) {
  return recv_async(data, count, type, peer, options).wait();
}

}  // namespace ringbolt
