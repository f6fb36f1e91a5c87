// The collectives of the public API: from arguments to problems.
#include <fmt/core.h>

#include <cerrno>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/lock_guard.h"
#include "collective/cost.h"
#include "collective/element.h"
#include "group/arguments.h"
#include "group/state.h"

namespace ringbolt {
namespace {

using collective::Operation;
using group::Asked;

constexpr uint64_t kMillisecond = 1'000'000;
/// Of fewer ranks schedules are made in milliseconds.
constexpr uint32_t kRanksToPlanAhead = 17;

collective::Type of(Type type) { return static_cast<collective::Type>(type); }
collective::Reduction of(Reduction reduction) { return static_cast<collective::Reduction>(reduction); }

/// 0 of a type that there is not: group::objection() says so.
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
  asked.what.equal_share_bytes = group::bytes_of(count, element_bytes(type));
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
  const uint64_t timeout_ms = call.timeout_ms > 0 ? call.timeout_ms : options.timeout_ms;
  return timeout_ms < (UINT64_MAX - now_ns) / kMillisecond ? now_ns + timeout_ms * kMillisecond : UINT64_MAX;
}

Status Group::State::check(Asked& asked, const CallOptions& call) const {
  if (communicator == nullptr) {
    return {EINVAL, "this group has no ranks: its color was negative, or its ranks have met anew"};
  }
  if (std::string words = group::objection(asked, communicator->rank()); !words.empty()) {
    return {EINVAL, std::move(words)};
  }
  if (!call.algorithm.empty()) {
    asked.what.algorithm = call.algorithm;
  }
  return {};
}

Request Group::State::request() const {
  Request request;
  request.state_ = std::make_unique<Request::State>();
  request.state_->world = world;
  request.state_->communicator = communicator;
  return request;
}

Request Group::State::refuse(Status status) {
  Request refused = request();
  if (communicator != nullptr) {
    const base::LockGuard guard(world->lock());
    communicator->refuse_collective(status);
  }
  refused.state_->refused = std::move(status);
  return refused;
}

bool Group::State::plan_ahead(const Asked& asked) const {
  if (communicator->n_ranks() < kRanksToPlanAhead) {
    return false;
  }
  const std::shared_ptr<group::Communicator> within = communicator;
  {
    const base::LockGuard guard(world->lock());
    if (!within->broken().is_ok() || within->knows(asked)) {
      return false;
    }
  }
  (void)collective::choose(asked.what.whole_problem(), within->topology(), {});  // what it has found out stays
  return true;
}

Request Group::State::begin(Asked asked, const CallOptions& call) {
  if (Status refused = check(asked, call); !refused.is_ok()) {
    return refuse(std::move(refused));
  }
  Request begun = request();
  const uint64_t deadline = deadline_ns(call, base::now_ns());
  plan_ahead(asked);
  const base::LockGuard guard(world->lock());
  begun.state_->call = communicator->begin(asked, deadline);
  if (begun.state_->call->wants_turn()) {
    world->see_to(*begun.state_->call);
  }
  return begun;
}

Status Group::State::run(Asked asked, const CallOptions& call) {
  if (Status refused = check(asked, call); !refused.is_ok()) {
    return refuse(std::move(refused)).wait();
  }
  plan_ahead(asked);
  // It holds the world, too: another thread may have the group's ranks meet anew while this one waits.
  std::shared_ptr<group::Communicator> within = communicator;
  group::World* const joined = world.get();
  Status status;
  engine::Engine* engine = nullptr;
  std::span<std::byte> room;
  {
    const base::LockGuard guard(joined->lock());
    group::Call* const begun = within->begin_waited(asked, status);
    if (begun != nullptr) {
      if (!begun->is_done()) {
        const uint64_t now_ns = base::now_ns();  // it takes a while: better once the call has sent
        begun->set_deadline(deadline_ns(call, now_ns));
        joined->wait_locked([begun] { return begun->is_done(); }, now_ns);
      }
      if (!begun->status().is_ok()) [[unlikely]] {
        status = begun->status();
      }
      within->end_waited(*begun);
    }
    engine = joined->engine();
    if (status.is_ok() && engine != nullptr) [[likely]] {
      room = engine->set_room_aside();
    }
  }
  if (!status.is_ok()) [[unlikely]] {
    status = joined->explained(std::move(status));
  }
  within.reset();
  if (!room.empty()) {
    engine->own(room);
  }
  return status;
}

Request Group::State::begin_message(bool is_send, void* data, size_t count, Type type, uint32_t peer,
                                    const CallOptions& call) {
  Request begun = request();
  if (communicator == nullptr || peer >= communicator->n_ranks()) {
    begun.state_->refused = {EINVAL,
                             fmt::format("a message {} rank {}: there is no such rank", is_send ? "to" : "from", peer)};
    return begun;
  }
  const uint64_t bytes = group::bytes_of(count, element_bytes(type));
  const uint64_t deadline = deadline_ns(call, base::now_ns());
  const base::LockGuard guard(world->lock());
  if (std::string words = group::objection(data, bytes, of(type)); !words.empty()) {
    begun.state_->refused = {EINVAL, std::move(words)};
    communicator->refuse_message(is_send, peer, begun.state_->refused);
  } else {
    begun.state_->call = is_send ? communicator->begin_send(data, bytes, of(type), peer, deadline)
                                 : communicator->begin_receive(data, bytes, of(type), peer, deadline);
  }
  return begun;
}

Request Group::all_reduce_async(const void* in, void* out, size_t count, Type type, Reduction reduction,
                                const CallOptions& options) {
  return state_->begin(ask_reduced(Operation::all_reduce, size(), 1, in, out, count, type, reduction, options),
                       options);
}

Request Group::reduce_scatter_async(const void* in, void* out, size_t count, Type type, Reduction reduction,
                                    const CallOptions& options) {
  return state_->begin(ask_reduced(Operation::reduce_scatter, size(), size(), in, out, count, type, reduction, options),
                       options);
}

Request Group::all_gather_async(const void* in, void* out, size_t count, Type type, const CallOptions& options) {
  return state_->begin(ask_equal(Operation::all_gather, size(), size(), in, out, count, type), options);
}

Request Group::all_gatherv_async(const void* in, void* out, const std::vector<size_t>& counts, Type type,
                                 const CallOptions& options) {
  if (counts.size() != size()) {
    return state_->refuse({EINVAL, fmt::format("all_gatherv: {} counts for {} ranks", counts.size(), size())});
  }
  Asked asked = ask(Operation::all_gather, size(), in, out, type);
  for (const size_t count : counts) {
    asked.what.problem.shares.push_back(group::bytes_of(count, element_bytes(type)));
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

Request Group::all_to_allv_async(const void* in, const std::vector<size_t>& sent, void* out,
                                 const std::vector<size_t>& received, Type type, const CallOptions& options) {
  const size_t n = size();
  if (sent.size() != n || received.size() != n) {
    return state_->refuse(
        {EINVAL, fmt::format("all_to_allv: {} and {} counts for {} ranks", sent.size(), received.size(), n)});
  }
  // This rank's row and column; the shares of others are not known yet.
  Asked asked = ask(Operation::all_to_all, static_cast<uint32_t>(n), in, out, type);
  asked.what.problem.shares.resize(n * n);
  for (size_t other = 0; other < n; ++other) {
    asked.what.problem.shares[other * n + rank()] = group::bytes_of(received[other], element_bytes(type));
    asked.what.problem.shares[rank() * n + other] = group::bytes_of(sent[other], element_bytes(type));
  }
  if (Status refused = state_->check(asked, options); !refused.is_ok()) {
    return state_->refuse(std::move(refused));
  }
  if (state_->plan_ahead(group::counting_of(size()))) {
    // What schedules of this operation depend on, whatever its shares will be.
    state_->plan_ahead(ask_equal(Operation::all_to_all, size(), n * n, in, out, 1, type));
  }
  Request begun = state_->request();
  const uint64_t deadline = state_->deadline_ns(options, base::now_ns());
  const base::LockGuard guard(state_->world->lock());
  begun.state_->call = state_->communicator->begin_uneven(std::move(asked), sent, received, deadline);
  if (begun.state_->call->wants_turn()) {
    state_->world->see_to(*begun.state_->call);
  }
  return begun;
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
  return all_to_allv_async(in, sent, out, received, type, options).wait();
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
