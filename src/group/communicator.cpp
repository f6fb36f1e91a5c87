#include "group/communicator.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/crc.h"
#include "base/error.h"

namespace ringbolt::group {
namespace {

CallShape shape_of(const Asked& asked) {
  const collective::Problem problem = asked.what.whole_problem();
  CallShape shape;
  shape.phase = asked.phase;
  shape.operation = problem.operation;
  shape.type = asked.type;
  shape.reduction = asked.reduction;
  shape.is_reduction = reduces(problem.operation);
  shape.root = problem.root;
  shape.needs_rank_order = problem.needs_rank_order;
  for (const uint64_t share : problem.shares) {
    shape.bytes += share;
  }
  shape.shares_crc = base::crc32c(0, std::as_bytes(std::span(problem.shares)));
  shape.algorithm_crc = base::crc32c(0, std::as_bytes(std::span(asked.what.algorithm)));
  return shape;
}

/// Ranks that know other cables make other schedules: by this number their calls don't match, and say so.
uint32_t crc_of(const fabric::Graph& graph, uint16_t origin) {
  std::vector<int64_t> words = {graph.n_nodes, origin};
  for (const fabric::Cable& cable : graph.cables) {
    words.insert(words.end(), {cable.a, cable.b, cable.capacity.numerator(), cable.capacity.denominator()});
  }
  return base::crc32c(0, std::as_bytes(std::span(words)));
}

/// So much may be kept twice, so that a call sends before those before it are tidied away.
/// In bytes, of a call's own memory for partial results.
constexpr uint64_t kLittleScratchBytes = 64 * 1024;

}  // namespace

Communicator::Communicator(engine::Engine* engine, uint16_t id, std::vector<uint32_t> members, uint32_t self,
                           const fabric::Graph& graph, const collective::CostModel& model, std::vector<bool> avoided,
                           uint16_t origin)
    : engine_(engine),
      id_(id),
      members_(std::move(members)),
      rank_(self),
      topology_(graph, model),
      origin_(origin),
      cables_crc_(crc_of(topology_.graph(), origin)),
      avoided_(std::move(avoided)),
      plans_(topology_, self),
      numbers_(self, n_ranks()),
      self_messages_(self) {}

Communicator::~Communicator() {
  if (engine_ != nullptr) {
    // The engine has a pointer to this while a short call is under way.
    engine_->await_no_more(*this);
  }
  for (const auto& call : active_) {
    call->finish({ECANCELED, "the group has been destroyed"});
  }
  // Settled receipts hold memory of the engine until they are released.
  for (const Early& early : early_.take_all()) {
    engine_->release(early.receipt.id);
  }
}

uint32_t Communicator::find_member(uint32_t world_rank) const {
  const auto found = std::find(members_.begin(), members_.end(), world_rank);
  return found == members_.end() ? kNoRank : static_cast<uint32_t>(found - members_.begin());
}

/// A call that is done already and takes no number.
std::shared_ptr<Call> Communicator::refuse(Status status) {
  auto call = std::make_shared<Call>(*this, CallId{}, CallShape{}, 0, 0);
  call->finish(std::move(status));
  return call;
}

std::shared_ptr<Call> Communicator::refuse_numbered(const CallId& id, const Status& status) {
  auto call = std::make_shared<Call>(*this, id, CallShape{}, 0, 0);
  activate(call);  // others count it among those that this rank has ended
  if (broken_.is_ok()) {
    tell(*call, {WordKind::failed, EPROTO,
                 fmt::format("call {}: rank {} refused its own: {}", id.number, rank_, status.text)});
  }
  call->finish(status);
  retire_done();
  return call;
}

void Communicator::refuse_collective(const Status& status) {
  refuse_numbered({false, 0, 0, numbers_.take_collective()}, status);
}

/// Good until the next plans_.find(). Null: `refused` says why.
PlanCache::Plan* Communicator::plan_of(const Asked& asked, Status& refused) {
  if (!broken_.is_ok()) {
    refused = broken_;
    return nullptr;
  }
  PlanCache::Plan* const plan = plans_.find(asked.what);
  if (plan == nullptr) {
    refused = {EINVAL, fmt::format("no algorithm \"{}\" does {} on these cables; ringbolt plan --explain lists them",
                                   asked.what.algorithm, shape_of(asked).text())};
    return nullptr;
  }
  if (plan->program->scratch_bytes() > kLittleScratchBytes) {
    retire_done();  // its execution's memory serves this call; small ones are retired when this call has sent
  }
  // One plan may serve several types and reductions; the signature is made anew where they change.
  if (plan->signature == 0 || plan->shape.type != asked.type || plan->shape.reduction != asked.reduction ||
      plan->shape.phase != asked.phase) {
    plan->shape = shape_of(asked);
    plan->shape.schedule_crc = base::crc32c(cables_crc_, std::as_bytes(std::span(plan->name)));
    plan->signature = plan->shape.signature();
  }
  return plan;
}

std::shared_ptr<Call> Communicator::begin(const Asked& asked, uint64_t deadline_ns) {
  return begin_numbered({false, 0, 0, numbers_.take_collective()}, asked, deadline_ns);
}

/// The number is taken whatever happens, as the other ranks count it.
std::shared_ptr<Call> Communicator::begin_numbered(const CallId& id, const Asked& asked, uint64_t deadline_ns) {
  Status refused;
  PlanCache::Plan* const plan = plan_of(asked, refused);
  if (plan == nullptr) {
    return refuse_numbered(id, refused);
  }
  auto call = std::make_shared<Call>(*this, id, plan->shape, plan->signature, deadline_ns);
  activate(call);
  begin_planned(*call, *plan, asked);
  return call;
}

Call* Communicator::begin_waited(const Asked& asked, Status& refused) {
  PlanCache::Plan* const plan = plan_of(asked, refused);
  if (plan == nullptr) {
    refuse_collective(refused);
    return nullptr;
  }
  const CallId id{false, 0, 0, numbers_.take_collective()};
  if (idle_.empty()) {
    activate(std::make_shared<Call>(*this, id, plan->shape, plan->signature, UINT64_MAX));
  } else {
    activate(std::move(idle_.back()));
    idle_.pop_back();
    active_.back()->become(plan->shape, plan->signature);
    active_.back()->renew(id);
  }
  Call* const call = active_.back().get();
  call->is_waited = true;
  call->is_reusable = true;
  begin_planned(*call, *plan, asked);
  return call;
}

void Communicator::begin_planned(Call& call, PlanCache::Plan& plan, const Asked& asked) {
  prepare(call, plans_.take(plan), operands_of(call.shape(), asked));
}

collective::Operands Communicator::operands_of(const CallShape& shape, const Asked& asked) const {
  collective::Operands operands;
  operands.input = static_cast<const std::byte*>(asked.input);
  operands.output = static_cast<std::byte*>(asked.output);
  operands.type = asked.type;
  operands.reduction = asked.reduction;
  operands.divisor = shape.is_reduction && asked.reduction == collective::Reduction::avg ? n_ranks() : 0;
  return operands;
}

std::shared_ptr<Call> Communicator::begin_send(const void* data, uint64_t bytes, collective::Type type, uint32_t peer,
                                               uint64_t deadline_ns) {
  // Only read: the program of a sender has no local target.
  return begin_message(true, static_cast<std::byte*>(const_cast<void*>(data)), bytes, type, peer, deadline_ns);
}

std::shared_ptr<Call> Communicator::begin_receive(void* data, uint64_t bytes, collective::Type type, uint32_t peer,
                                                  uint64_t deadline_ns) {
  return begin_message(false, static_cast<std::byte*>(data), bytes, type, peer, deadline_ns);
}

std::shared_ptr<Call> Communicator::begin_message(bool is_send, std::byte* data, uint64_t bytes, collective::Type type,
                                                  uint32_t peer, uint64_t deadline_ns) {
  if (!broken_.is_ok()) {
    return refuse(broken_);
  }
  const CallId id = numbers_.take_message(is_send, peer);
  CallShape shape;
  shape.is_message = true;
  shape.type = type;
  shape.bytes = bytes;
  shape.schedule_crc = origin_;
  auto call = std::make_shared<Call>(*this, id, shape, shape.signature(), deadline_ns);
  activate(call);
  if (peer == rank_) {
    self_messages_.meet(is_send, call, data, bytes);
    retire_done();
    return call;
  }
  auto execution = std::make_unique<collective::Execution>(std::make_shared<const collective::CompiledProgram>(
      message_program(is_send, bytes, collective::bytes_of(type), peer)));
  prepare(*call, std::move(execution), {data, data, type, collective::Reduction::sum, 0});
  return call;
}

void Communicator::refuse_message(bool is_send, uint32_t peer, const Status& status) {
  const auto call = refuse_numbered(numbers_.take_message(is_send, peer), status);
  if (peer == rank_) {
    self_messages_.meet(is_send, call, nullptr, 0);
  }
}

std::shared_ptr<Call> Communicator::begin_uneven(Asked asked, std::span<const size_t> sent,
                                                 std::span<const size_t> received, uint64_t deadline_ns) {
  if (!broken_.is_ok()) {
    return refuse(broken_);
  }
  auto uneven = std::make_shared<Uneven>();
  uneven->asked = std::move(asked);
  uneven->counts = std::make_shared<Counts>(sent, received);

  Asked exchange = counting_of(n_ranks());
  exchange.input = uneven->counts->mine.data();
  exchange.output = uneven->counts->all.data();

  const CallId id{false, 0, 0, numbers_.take_collective(), Phase::counted};
  CallShape shape;
  shape.phase = Phase::counted;
  shape.operation = collective::Operation::all_to_all;
  shape.type = uneven->asked.type;
  uneven->asked.phase = Phase::counted;
  // Its real signature follows from the counts (become()); until then only its phase is known.
  uneven->call = std::make_shared<Call>(*this, id, shape, signature_of(id.phase, 0), deadline_ns);
  activate(uneven->call);
  // Its end is that of the whole call, which has the deadline.
  uneven->counting = begin_numbered(id.in(Phase::counting), exchange, UINT64_MAX);
  // Its execution reads and writes them, also when the whole call has failed already.
  uneven->counting->memory = uneven->counts;
  uneven_.push_back(uneven);
  go_on_with_uneven();
  return uneven->call;
}

void Communicator::go_on_with_uneven() {
  for (size_t i = 0; i < uneven_.size();) {
    const std::shared_ptr<Uneven> uneven = uneven_[i];
    if (!uneven->call->is_done() && !uneven->counting->is_done()) {
      ++i;
      continue;
    }
    uneven_.erase(uneven_.begin() + static_cast<std::ptrdiff_t>(i));
    if (uneven->call->is_done()) {
      uneven->counting->finish(uneven->call->status());
    } else {
      begin_counted(*uneven);
    }
  }
}

void Communicator::begin_counted(Uneven& uneven) {
  if (const Status& counted = uneven.counting->status(); !counted.is_ok()) {
    uneven.call->finish(counted);  // all ranks have heard of it
    return;
  }
  collective::Problem& problem = uneven.asked.what.problem;
  if (Status found = shares_of(*uneven.counts, problem.element_bytes, problem.shares); !found.is_ok()) {
    uneven.call->finish(std::move(found));
    return;
  }
  Status refused;
  PlanCache::Plan* const plan = plan_of(uneven.asked, refused);
  if (plan == nullptr) {
    fail(*uneven.call, refused);
    return;
  }
  uneven.call->become(plan->shape, plan->signature);
  begin_planned(*uneven.call, *plan, uneven.asked);
}

Status Communicator::timed_out_uneven(const Call& call) const {
  for (const std::shared_ptr<Uneven>& uneven : uneven_) {
    if (uneven->call.get() == &call) {
      return timed_out(*uneven->counting);
    }
  }
  return {ETIMEDOUT, "all_to_allv: the deadline has passed"};
}

void Communicator::prepare(Call& call, std::unique_ptr<collective::Execution> execution,
                           const collective::Operands& operands) {
  call.prepare(std::move(execution), operands);
  if (may_go(call.id())) {
    let_go(call);
  }
  retire_done();
}

void Communicator::let_go(Call& call) {
  call.let_go();
  if (early_words_.empty() && early_.empty()) {
    call.advance();
    return;
  }
  if (const auto early = early_words_.find(call.id().in(Phase::only)); early != early_words_.end()) {
    const EarlyWord heard = std::move(early->second);
    early_words_.erase(early);
    hear_failure(*find_asked(call.id()), heard.peer, heard.word);
  }
  dispute_early(call.id());
  for (const Early& chunk : early_.take(call.id())) {
    take(call, chunk.header, chunk.receipt);
  }
  call.advance();
}

bool Communicator::advance(uint64_t now_ns) {
  if (short_ != nullptr && now_ns >= short_->call->deadline_ns()) [[unlikely]] {
    hand_over_short();
  }
  if (active_.empty()) {
    return false;
  }
  bool wants_turn = false;
  go_on_with_uneven();
  for (size_t i = 0; i < active_.size(); ++i) {
    if (active_[i]->is_held() && active_[i]->is_prepared() && !active_[i]->is_done() && may_go(active_[i]->id())) {
      let_go(*active_[i]);
    }
    active_[i]->advance();
    if (!active_[i]->is_done() && now_ns >= active_[i]->deadline_ns()) {
      fail(*active_[i], timed_out(*active_[i]));
    }
    wants_turn = wants_turn || active_[i]->wants_turn();
  }
  retire_done();
  return wants_turn;
}

void Communicator::retire_done() {
  const auto is_over = [](const std::shared_ptr<Call>& call) { return call->is_done() && !call->is_waited; };
  if (std::none_of(active_.begin(), active_.end(), is_over)) {
    return;
  }
  uint32_t n_retired = 0;
  std::erase_if(active_, [&](std::shared_ptr<Call>& call) {
    if (!is_over(call)) {
      return false;
    }
    ++n_retired;
    if (call->is_held()) {
      forget_early(call->id());
    }
    if (!call->status().is_ok() && !call->id().is_message) {
      // Bounded: for an older one a peer is at worst told again what it has been told (on_word()).
      failed_.push_back(call->id().number);
      if (failed_.size() > CallNumbers::kMostAhead) {
        failed_.pop_front();
      }
    }
    // Its memory serves the next call of its plan.
    if (auto execution = call->take_execution()) {
      plans_.give_back(std::move(execution));
    }
    if (call->is_reusable && idle_.size() < kMostIdle) {
      idle_.push_back(std::move(call));
    }
    return true;
  });
  note_retired(n_retired);
}

/// What has come for a call that will not take it any more.
void Communicator::forget_early(const CallId& id) {
  early_words_.erase(id.in(Phase::only));
  for (const Phase phase : {Phase::only, Phase::counting, Phase::counted}) {
    for (const Early& chunk : early_.take(id.in(phase))) {
      engine_->release(chunk.receipt.id);
    }
  }
}

Status Communicator::timed_out(const Call& call) const {
  if (!call.is_prepared()) {
    return call.id().is_message ? self_messages_.timed_out(call) : timed_out_uneven(call);
  }
  // Only asked, for words.
  auto& execution = const_cast<Call&>(call).execution();
  if (const uint32_t behind = numbers_.rank_behind(call.id()); call.is_held() && behind != kNoRank) {
    return {ETIMEDOUT, fmt::format("{}: the deadline has passed, and rank {} is {} calls behind this one, {}",
                                   call.shape().text(), behind, CallNumbers::kMostAhead, rank_)};
  }
  const uint32_t awaited = execution.awaited_peer();
  const uint32_t full = execution.full_peer();
  std::string text = fmt::format("{}: the deadline has passed with {} of {} chunks done", call.shape().text(),
                                 execution.chunks_done(), execution.chunks_total());
  if (awaited != collective::kNoStep) {
    text += fmt::format("; this rank, {}, waits for rank {}", rank_, awaited);
  } else if (full != collective::kNoStep) {
    text += fmt::format("; this rank, {}, waits for rank {} to take what it sends", rank_, full);
  } else {
    text += fmt::format("; this rank, {}, waits for memory that holds what others have not taken yet", rank_);
  }
  return {ETIMEDOUT, text};
}

void Communicator::break_off(const Status& status) {
  hand_over_short();
  if (broken_.is_ok()) {
    broken_ = status;
  }
  for (const auto& call : active_) {
    call->finish(status);
  }
  retire_done();
  for (const Early& early : early_.take_all()) {
    engine_->release(early.receipt.id);
  }
  tell_progress();
}

/// Owned by this: the program must not close it.
int Communicator::progress_fd() {
  if (!progress_.is_open()) {
    // Readable at first: calls may have ended before anybody asked.
    progress_ = base::UniqueFd(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!progress_.is_open()) {
      throw base::Error(errno, "eventfd", "a descriptor of the group's progress");
    }
  }
  return progress_.get();
}

void Communicator::abort(const std::string& reason) {
  const Status status{ECANCELED, fmt::format("rank {} aborted the group: {}", rank_, reason)};
  for (uint32_t peer = 0; peer < n_ranks(); ++peer) {
    if (peer != rank_) {
      tell_one(peer, {}, 0, {WordKind::aborted, status.code, status.text});
    }
  }
  break_off(status);
}

}  // namespace ringbolt::group
