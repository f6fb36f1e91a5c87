#include "group/group.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/lock_guard.h"
#include "collective/element.h"
#include "group/failure.h"
#include "group/meeting.h"
#include "group/state.h"

namespace ringbolt::group {
namespace {

static_assert(static_cast<uint32_t>(Type::complex64) + 1 == collective::kTypes);
static_assert(static_cast<uint32_t>(Reduction::avg) + 1 == collective::kReductions);

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
