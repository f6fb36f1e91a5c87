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
#include "group/asked.h"
#include "group/state.h"

namespace ringbolt::group {
namespace {

using collective::Operation;

constexpr uint64_t kMillisecond = 1'000'000;
/// Of fewer ranks schedules are made in milliseconds.
/// From so many on, choosing a schedule may take longer than peers wait for a heartbeat.
constexpr uint32_t kRanksToPlanAhead = 17;

collective::Type of(Type type) { return static_cast<collective::Type>(type); }
collective::Reduction of(Reduction reduction) { return static_cast<collective::Reduction>(reduction); }

ShortKey key_of(Operation operation, size_t count, Type type, uint32_t root = 0) {
  return {count, operation, of(type), collective::Reduction::sum, true, root};
}

ShortKey key_of(Operation operation, size_t count, Type type, Reduction reduction, const CallOptions& options,
                uint32_t root = 0) {
  return {count, operation, of(type), of(reduction), options.is_reproducible, root};
}

}  // namespace

/// UINT64_MAX, never, where the sum would wrap.
uint64_t Group::State::deadline_ns(const CallOptions& call, uint64_t now_ns) const {
  const uint64_t timeout_ms = call.timeout_ms > 0 ? call.timeout_ms : options.timeout_ms;
  return timeout_ms < (UINT64_MAX - now_ns) / kMillisecond ? now_ns + timeout_ms * kMillisecond : UINT64_MAX;
}

Status Group::State::check(Asked& asked, const CallOptions& call) const {
  if (communicator == nullptr) {
    return {EINVAL, "this group has no ranks: its color was negative, or its ranks have met anew"};
  }
  if (std::string words = objection(asked, communicator->rank()); !words.empty()) {
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
  request.state_->groups = groups;
  request.state_->communicator = communicator;
  return request;
}

Request Group::State::refuse(Status status) {
  // The number is taken under the lock, as it would be by a call that makes sense: ranks count alike.
  Request refused = request();
  if (communicator != nullptr) {
    const base::LockGuard guard(groups->lock());
    communicator->refuse_collective(status);
  }
  refused.state_->refused = std::move(status);
  return refused;
}

bool Group::State::plan_ahead(const Asked& asked) const {
  if (communicator->n_ranks() < kRanksToPlanAhead) {
    return false;
  }
  const std::shared_ptr<Communicator> within = communicator;
  {
    const base::LockGuard guard(groups->lock());
    if (!within->broken().is_ok() || within->knows(asked)) {
      return false;
    }
  }
  // Without the lock: the topology keeps what it finds out in a thread-safe way (collective/topology_lazy.h).
  (void)collective::choose(asked.what.whole_problem(), within->topology(), {});  // what it has found out stays
  return true;
}

/// Does not block, but for the lock and for plan_ahead(). The deadline counts from here.
Request Group::State::begin(Asked asked, const CallOptions& call) {
  if (Status refused = check(asked, call); !refused.is_ok()) {
    return refuse(std::move(refused));
  }
  Request begun = request();
  const uint64_t deadline = deadline_ns(call, base::now_ns());
  plan_ahead(asked);
  const base::LockGuard guard(groups->lock());
  begun.state_->call = communicator->begin(asked, deadline);
  if (begun.state_->call->wants_turn()) {
    groups->see_to(*begun.state_->call);
  }
  return begun;
}

[[gnu::always_inline]] inline bool Group::State::run_short(ShortKey key, const void* in, void* out,
                                                           const CallOptions& call, Status& status) {
  if (communicator == nullptr || !call.algorithm.empty()) {
    return false;
  }
  // It holds the mesh, too: another thread may have the group's ranks meet anew while this one waits.
  const std::shared_ptr<Communicator> within = communicator;
  mesh::Mesh* const joined = &groups->mesh();
  engine::Engine* engine = nullptr;
  std::span<std::byte> slot;
  {
    const base::LockGuard guard(joined->lock);
    ShortCall* const begun = within->begin_short(key, in, out);
    if (begun == nullptr) {
      return false;
    }
    if (!begun->is_over() && !joined->wait_briefly(*begun)) {
      const uint64_t now_ns = base::now_ns();  // it takes a while: better once the call has sent
      begun->call->set_deadline(deadline_ns(call, now_ns));
      joined->wait_locked([begun] { return begun->is_over(); }, now_ns);
    }
    within->end_short(*begun, status);
    engine = joined->engine();
    if (status.is_ok()) [[likely]] {
      slot = engine->set_slot_aside();
    }
  }
  // `within` still holds the mesh, and so the slab that this writes to.
  if (!slot.empty()) {
    engine->own(slot);
  }
  if (!status.is_ok()) [[unlikely]] {
    status = joined->explained(std::move(status));
  }
  return true;
}

Status Group::State::run(ShortKey key, const void* in, void* out, const CallOptions& call) {
  Status status;
  if (!run_short(key, in, out, call, status)) [[unlikely]] {
    status = run(ask(key, n_ranks(), in, out), call, key);
  }
  return status;
}

Request Group::State::begin(const ShortKey& key, const void* in, void* out, const CallOptions& call) {
  return begin(ask(key, n_ranks(), in, out), call);
}

Status Group::State::run(Asked asked, const CallOptions& call, const ShortKey& key) {
  if (Status refused = check(asked, call); !refused.is_ok()) {
    return refuse(std::move(refused)).wait();
  }
  plan_ahead(asked);
  // It holds the mesh, too: another thread may have the group's ranks meet anew while this one waits.
  const std::shared_ptr<Communicator> within = communicator;
  mesh::Mesh* const joined = &groups->mesh();
  Status status;
  engine::Engine* engine = nullptr;
  std::span<std::byte> slot;
  {
    const base::LockGuard guard(joined->lock);
    Call* const begun = within->begin_waited(asked, status);
    if (begun != nullptr) {
      if (call.algorithm.empty()) {
        within->prepare_short(key, asked);
      }
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
      slot = engine->set_slot_aside();
    }
  }
  if (!status.is_ok()) [[unlikely]] {
    status = joined->explained(std::move(status));
  }
  // While `within` still holds the mesh: the engine's end waits for own(), and may be on this thread.
  if (!slot.empty()) {
    engine->own(slot);
  }
  return status;
}

/// A peer that there is not gets no number: no rank could count alike. All else that is wrong does.
Request Group::State::begin_message(bool is_send, void* data, size_t count, Type type, uint32_t peer,
                                    const CallOptions& call) {
  Request begun = request();
  if (communicator == nullptr || peer >= communicator->n_ranks()) {
    begun.state_->refused = {EINVAL,
                             fmt::format("a message {} rank {}: there is no such rank", is_send ? "to" : "from", peer)};
    return begun;
  }
  const uint64_t bytes = bytes_of(count, element_bytes(of(type)));
  const uint64_t deadline = deadline_ns(call, base::now_ns());
  const base::LockGuard guard(groups->lock());
  if (std::string words = objection(data, bytes, of(type)); !words.empty()) {
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
  return state_->begin(key_of(Operation::all_reduce, count, type, reduction, options), in, out, options);
}

Request Group::reduce_scatter_async(const void* in, void* out, size_t count, Type type, Reduction reduction,
                                    const CallOptions& options) {
  return state_->begin(key_of(Operation::reduce_scatter, count, type, reduction, options), in, out, options);
}

Request Group::all_gather_async(const void* in, void* out, size_t count, Type type, const CallOptions& options) {
  return state_->begin(key_of(Operation::all_gather, count, type), in, out, options);
}

Request Group::all_gatherv_async(const void* in, void* out, std::span<const size_t> counts, Type type,
                                 const CallOptions& options) {
  if (counts.size() != size()) {
    return state_->refuse({EINVAL, fmt::format("all_gatherv: {} counts for {} ranks", counts.size(), size())});
  }
  return state_->begin(ask_all_gatherv(counts, in, out, of(type)), options);
}

Request Group::broadcast_async(void* data, size_t count, Type type, uint32_t root, const CallOptions& options) {
  return state_->begin(key_of(Operation::broadcast, count, type, root), data, data, options);
}

Request Group::reduce_async(const void* in, void* out, size_t count, Type type, Reduction reduction, uint32_t root,
                            const CallOptions& options) {
  return state_->begin(key_of(Operation::reduce, count, type, reduction, options, root), in, out, options);
}

Request Group::gather_async(const void* in, void* out, size_t count, Type type, uint32_t root,
                            const CallOptions& options) {
  return state_->begin(key_of(Operation::gather, count, type, root), in, out, options);
}

Request Group::scatter_async(const void* in, void* out, size_t count, Type type, uint32_t root,
                             const CallOptions& options) {
  return state_->begin(key_of(Operation::scatter, count, type, root), in, out, options);
}

Request Group::all_to_all_async(const void* in, void* out, size_t count, Type type, const CallOptions& options) {
  return state_->begin(key_of(Operation::all_to_all, count, type), in, out, options);
}

Request Group::all_to_allv_async(const void* in, std::span<const size_t> sent, void* out,
                                 std::span<const size_t> received, Type type, const CallOptions& options) {
  const size_t n = size();
  if (sent.size() != n || received.size() != n) {
    return state_->refuse(
        {EINVAL, fmt::format("all_to_allv: {} and {} counts for {} ranks", sent.size(), received.size(), n)});
  }
  Asked asked = ask_all_to_allv(rank(), sent, received, in, out, of(type));
  if (Status refused = state_->check(asked, options); !refused.is_ok()) {
    return state_->refuse(std::move(refused));
  }
  if (state_->plan_ahead(counting_of(size()))) {
    // What schedules of this operation depend on, whatever its shares will be.
    state_->plan_ahead(ask(key_of(Operation::all_to_all, 1, type), size(), in, out));
  }
  Request begun = state_->request();
  const uint64_t deadline = state_->deadline_ns(options, base::now_ns());
  const base::LockGuard guard(state_->groups->lock());
  begun.state_->call = state_->communicator->begin_uneven(std::move(asked), sent, received, deadline);
  if (begun.state_->call->wants_turn()) {
    state_->groups->see_to(*begun.state_->call);
  }
  return begun;
}

Request Group::barrier_async(const CallOptions& options) {
  return state_->begin(key_of(Operation::barrier, 0, Type::uint8), nullptr, nullptr, options);
}

Request Group::send_async(const void* data, size_t count, Type type, uint32_t peer, const CallOptions& options) {
  return state_->begin_message(true, const_cast<void*>(data), count, type, peer, options);  // only read
}

Request Group::recv_async(void* data, size_t count, Type type, uint32_t peer, const CallOptions& options) {
  return state_->begin_message(false, data, count, type, peer, options);
}

Status Group::all_reduce(const void* in, void* out, size_t count, Type type, Reduction reduction,
                         const CallOptions& options) {
  return state_->run(key_of(Operation::all_reduce, count, type, reduction, options), in, out, options);
}

Status Group::reduce_scatter(const void* in, void* out, size_t count, Type type, Reduction reduction,
                             const CallOptions& options) {
  return state_->run(key_of(Operation::reduce_scatter, count, type, reduction, options), in, out, options);
}

Status Group::all_gather(const void* in, void* out, size_t count, Type type, const CallOptions& options) {
  return state_->run(key_of(Operation::all_gather, count, type), in, out, options);
}

Status Group::all_gatherv(const void* in, void* out, std::span<const size_t> counts, Type type,
                          const CallOptions& options) {
  return all_gatherv_async(in, out, counts, type, options).wait();
}

Status Group::broadcast(void* data, size_t count, Type type, uint32_t root, const CallOptions& options) {
  return state_->run(key_of(Operation::broadcast, count, type, root), data, data, options);
}

Status Group::reduce(const void* in, void* out, size_t count, Type type, Reduction reduction, uint32_t root,
                     const CallOptions& options) {
  return state_->run(key_of(Operation::reduce, count, type, reduction, options, root), in, out, options);
}

Status Group::gather(const void* in, void* out, size_t count, Type type, uint32_t root, const CallOptions& options) {
  return state_->run(key_of(Operation::gather, count, type, root), in, out, options);
}

Status Group::scatter(const void* in, void* out, size_t count, Type type, uint32_t root, const CallOptions& options) {
  return state_->run(key_of(Operation::scatter, count, type, root), in, out, options);
}

Status Group::all_to_all(const void* in, void* out, size_t count, Type type, const CallOptions& options) {
  return state_->run(key_of(Operation::all_to_all, count, type), in, out, options);
}

Status Group::all_to_allv(const void* in, std::span<const size_t> sent, void* out, std::span<const size_t> received,
                          Type type, const CallOptions& options) {
  return all_to_allv_async(in, sent, out, received, type, options).wait();
}

Status Group::barrier(const CallOptions& options) {
  return state_->run(key_of(Operation::barrier, 0, Type::uint8), nullptr, nullptr, options);
}

Status Group::send(const void* data, size_t count, Type type, uint32_t peer, const CallOptions& options) {
  return send_async(data, count, type, peer, options).wait();
}

Status Group::recv(void* data, size_t count, Type type, uint32_t peer, const CallOptions& options) {
  return recv_async(data, count, type, peer, options).wait();
}

}  // namespace ringbolt::group
