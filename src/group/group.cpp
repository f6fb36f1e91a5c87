#include "group/group.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/lock_guard.h"
#include "collective/element.h"
#include "group/explain.h"
#include "group/failure.h"
#include "group/makers.h"
#include "group/meeting.h"
#include "group/report.h"
#include "group/state.h"

namespace ringbolt::group {
namespace {

static_assert(static_cast<uint32_t>(Type::complex64) + 1 == collective::kTypes);
static_assert(static_cast<uint32_t>(Reduction::avg) + 1 == collective::kReductions);

/// Those that this rank's groups have, under the mesh's lock.
class Numbers final : public NumberSource {
 public:
  explicit Numbers(Groups& groups) : groups_(groups) {}
  uint16_t next() override {
    const base::LockGuard guard(groups_.lock());
    return groups_.next_group_id();
  }
  std::vector<bool> free() override {
    const base::LockGuard guard(groups_.lock());
    return groups_.free_group_ids();
  }
  bool reserve(std::span<const uint16_t> numbers) override {
    const base::LockGuard guard(groups_.lock());
    return groups_.reserve(numbers);
  }
  void release(std::span<const uint16_t> numbers) override {
    const base::LockGuard guard(groups_.lock());
    groups_.unreserve(numbers);
  }

 private:
  Groups& groups_;
};

/// The cables that this rank takes to be down; its groups do without those that any of their ranks does: news of one
/// that is cut or healed right now has not come to all, and with other cables a rank would make other schedules.
std::vector<bool> down_cables(Groups& groups) {
  mesh::Mesh& mesh = groups.mesh();
  const base::LockGuard guard(mesh.lock);
  return mesh.down_cables();
}

}  // namespace

Group::Group(std::unique_ptr<State> state) : state_(std::move(state)) {}
Group::~Group() = default;
Group::Group(Group&&) noexcept = default;
Group& Group::operator=(Group&&) noexcept = default;

Group Group::join(const JoinOptions& options) {
  // In CallOptions 0 stands for this one: it can't stand for something else itself.
  if (options.timeout_ms == 0) {
    throw JoinError("the timeout of calls is 0 ms: none could end within it; give milliseconds, such as 300000",
                    EINVAL);
  }
  const bootstrap::Environment environment = variables_of(options);
  const Meeting meeting = meeting_of(options, environment);
  auto state = std::make_unique<State>();
  state->options = options;
  state->groups = Groups::join(plan_of(environment, meeting.config));
  std::vector<uint32_t> members(state->groups->n_ranks());
  for (uint32_t rank = 0; rank < members.size(); ++rank) {
    members[rank] = rank;
  }
  // The mesh's thread runs already, and chunks of faster ranks may be there.
  const base::LockGuard guard(state->groups->lock());
  state->communicator = state->groups->make_communicator(0, std::move(members), state->groups->rank(), {});
  return Group(std::move(state));
}

uint32_t Group::rank() const { return state_->communicator ? state_->communicator->rank() : 0; }
uint32_t Group::size() const { return state_->communicator ? state_->communicator->n_ranks() : 0; }

Group Group::rejoin() {
  if (state_->groups != nullptr) {
    {
      const base::LockGuard guard(state_->groups->lock());
      state_->groups->break_off({ECANCELED, "the ranks meet anew"});
    }
    state_->communicator.reset();
    // Other handles, such as requests, may hold the mesh still: then it leaves with the last of them.
    state_->groups.reset();  // leaves; a device may have no queue pairs to spare for both
  }
  return join(state_->options);
}

Group Group::split(int color, int key) {
  if (!state_->communicator) {
    throw JoinError("split: this group has no ranks", EINVAL);
  }
  const Makers makers("split", size(), [this](const void* mine, void* all, size_t bytes) {
    return all_gather(mine, all, bytes, Type::uint8, {});
  });
  Numbers numbers(*state_->groups);
  const Agreed agreed = makers.agree(numbers, state_->communicator->id(), {color, key, 0, 0});
  std::vector<bool> avoided = makers.any_of(down_cables(*state_->groups));
  if (color < 0) {
    return made_of({}, 0, {});
  }
  return made_of(agreed.makers_of(color), agreed.number_of(color), std::move(avoided));
}

Group Group::subgroup(const std::vector<uint32_t>& ranks, const Exchange& exchange) {
  if (!state_->communicator || exchange.call == nullptr) {
    throw JoinError(exchange.call == nullptr ? "subgroup: there is no exchange" : "subgroup: this group has no ranks",
                    EINVAL);
  }
  std::vector<uint32_t> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (ranks.empty() || sorted.back() >= size() || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end() ||
      !std::binary_search(sorted.begin(), sorted.end(), rank())) {
    throw JoinError(fmt::format("subgroup: ranks {} are no different ones of {}, with rank {}, who calls, among them",
                                fmt::join(ranks, ", "), size(), rank()),
                    EINVAL);
  }
  const Makers makers("subgroup", ranks.size(), [&](const void* mine, void* all, size_t bytes) -> Status {
    const int code = exchange.call(exchange.context, mine, all, bytes);
    return code == 0 ? Status() : Status{code, fmt::format("the exchange failed with {}", code)};
  });
  Numbers numbers(*state_->groups);
  const Agreed agreed = makers.agree(numbers, state_->communicator->id(), {0, 0, 0, hash_of(ranks)});
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (agreed.wishes[i].ranks != hash_of(ranks)) {
      throw JoinError(fmt::format("subgroup: rank {} names other ranks than {}", ranks[i], fmt::join(ranks, ", ")),
                      EPROTO);
    }
  }
  return made_of(ranks, agreed.number_of(0), makers.any_of(down_cables(*state_->groups)));
}

/// The group of these ranks of this one; none: of no rank.
Group Group::made_of(std::vector<uint32_t> ranks, uint16_t number, std::vector<bool> avoided) {
  Groups& groups = *state_->groups;
  auto made = std::make_unique<State>();
  made->options = state_->options;
  made->groups = state_->groups;
  if (!ranks.empty()) {
    const auto self = static_cast<uint32_t>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
    std::transform(ranks.begin(), ranks.end(), ranks.begin(),
                   [&](uint32_t rank) { return state_->communicator->member(rank); });
    const base::LockGuard guard(groups.lock());
    if (!groups.are_joined(ranks, avoided)) {
      avoided.clear();  // old news of one cable, and news of another
    }
    made->communicator = groups.make_communicator(number, std::move(ranks), self, std::move(avoided));
  }
  return Group(std::move(made));
}

Group Group::shrink() {
  if (!state_->communicator) {
    throw JoinError("shrink: this group has no ranks", EINVAL);
  }
  auto made = std::make_unique<State>();
  made->options = state_->options;
  made->groups = state_->groups;
  made->communicator = state_->groups->shrink(state_->communicator, state_->deadline_ns({}, base::now_ns()));
  return Group(std::move(made));
}

int Group::progress_fd() {
  if (!state_->communicator) {
    throw JoinError("progress_fd: this group has no ranks", EINVAL);
  }
  const base::LockGuard guard(state_->groups->lock());
  return state_->communicator->progress_fd();
}

/// Does not wait for the others to hear of it.
void Group::abort(const std::string& reason) {
  if (!state_->communicator) {
    return;
  }
  const base::LockGuard guard(state_->groups->lock());
  state_->communicator->abort(reason);
}

/// Takes the lock for as long as the words are made.
std::string Group::report() const {
  if (!state_->communicator) {
    return "a group without ranks\n";
  }
  mesh::Mesh& mesh = state_->groups->mesh();
  const base::LockGuard guard(mesh.lock);
  return group::report({rank(), size(), mesh.rank(), mesh.n_ranks()}, mesh.made());
}

std::vector<uint32_t> Group::relays(uint32_t peer) const {
  if (peer >= size()) {
    throw std::out_of_range(fmt::format("relays of rank {}: of {} ranks", peer, size()));
  }
  mesh::Mesh& mesh = state_->groups->mesh();
  const base::LockGuard guard(mesh.lock);
  engine::Engine* engine = mesh.engine();
  if (engine == nullptr || peer == rank()) {
    return {};
  }
  const uint32_t member = state_->communicator->member(peer);
  if (!engine->paths().is_reachable(member)) {
    throw JoinError(
        fmt::format("rank {}: no cables lead to rank {} any more; ringbolt status says which are cut", rank(), peer));
  }
  const auto& via = engine->paths().via(member);
  return {via.begin(), via.end()};
}

std::string Group::explain(const std::string& operation, size_t count, Type type) const {
  if (state_->communicator == nullptr) {
    return "this group has no ranks\n";
  }
  // Without the lock: nothing of a call is touched, and what the mesh has made does not change.
  return group::explain(operation, count, type, state_->communicator->topology(),
                        state_->groups->mesh().made().n_measured_links);
}

Request::Request() = default;
Request::Request(Request&&) noexcept = default;
Request& Request::operator=(Request&& other) noexcept {
  if (this != &other) {
    cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}
Request::~Request() { cancel(); }

bool Request::is_done() const {
  if (state_ == nullptr || state_->call == nullptr || state_->call->is_done()) {
    return true;
  }
  if (state_->groups->n_ranks() == 1) {  // a mesh of one rank has no thread, by which deadlines pass
    const base::LockGuard guard(state_->groups->lock());
    state_->communicator->advance(base::now_ns());
  }
  return state_->call->is_done();
}

Status Request::wait() {
  if (state_ == nullptr) {
    return {EINVAL, "this request stands for no call"};
  }
  if (state_->call == nullptr) {
    return state_->refused;
  }
  if (!state_->call->is_done()) {
    state_->groups->mesh().wait([&] { return state_->call->is_done(); });
  }
  return state_->groups->mesh().explained(state_->call->status());
}

bool Request::wait_for(uint64_t timeout_ms) {
  constexpr uint64_t kMostMs = 1'000'000'000;  // what is longer is for ever, and its nanoseconds still fit
  if (!is_done()) {
    const uint64_t until_ns = base::now_ns() + std::min(timeout_ms, kMostMs) * 1'000'000;
    // The call itself goes on after that.
    state_->groups->mesh().wait([&] { return state_->call->is_done() || base::now_ns() >= until_ns; });
  }
  return is_done();
}

void Request::cancel() {
  if (is_done()) {
    return;
  }
  const base::LockGuard guard(state_->groups->lock());
  // It may have ended since it was looked at: then nothing happens.
  state_->communicator->fail(*state_->call, {ECANCELED, "the call has been cancelled"});
}

}  // namespace ringbolt::group
