#include "group/world.h"

#include <fmt/core.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/lock_guard.h"
#include "fabric/among.h"
#include "group/failure.h"

namespace ringbolt::group {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
/// Calls go on when something has arrived; otherwise only their deadlines pass, which are looked at so often.
constexpr uint64_t kAdvanceNs = kMillisecond / 10;
constexpr uint32_t kMostUnadvanced = 4;

std::vector<fabric::WatchedCable> watched(const BroughtUp& made) {
  std::vector<fabric::WatchedCable> cables;
  for (uint32_t i = 0; made.station && i < made.station->n_cables(); ++i) {
    const CableWords& words = made.cables[made.station->fabric_cable(i)];
    const uint32_t peer = made.station->cable(i).plan().peer;
    cables.push_back({peer, peer == words.b ? words.device_a : words.device_b});
  }
  return cables;
}

uint64_t random_incarnation() {
  std::random_device random;
  return (uint64_t{random()} << 32 | random()) | 1;
}

fabric::Graph without(const fabric::Graph& graph, const std::vector<bool>& avoided) {
  fabric::Graph left{graph.n_nodes, {}};
  for (uint32_t i = 0; i < graph.cables.size(); ++i) {
    if (i >= avoided.size() || !avoided[i]) {
      left.cables.push_back(graph.cables[i]);
    }
  }
  return left;
}

/// Groups that this rank has not made yet, of which something is kept. How much that is, those who send it know: they
/// are at most 64 calls ahead, and wait for windows in each. It has been acknowledged and would never come again.
constexpr size_t kMostEarlyGroups = 256;

}  // namespace

std::shared_ptr<World> World::join(const WorldPlan& plan) {
  if (plan.meeting.n_ranks > fabric::kMaxWatchedRanks) {
    throw JoinError(fmt::format("{} ranks ({}): groups have {} ranks at most; take fewer processes",
                                plan.meeting.n_ranks, plan.meeting.source, fabric::kMaxWatchedRanks),
                    EINVAL);
  }
  const uint64_t deadline_ns = base::now_ns() + plan.meeting.timeout_ms * kMillisecond;
  bootstrap::Circle circle = bootstrap::Circle::join(plan.meeting);
  BroughtUp made;
  if (circle.n_ranks() > 1) {
    BringUpPlan bring_up_plan;
    bring_up_plan.verbs = plan.verbs;
    bring_up_plan.checksums = plan.checksums;
    bring_up_plan.deadline_ns = deadline_ns;
    bring_up_plan.matrix = plan.matrix;
    bring_up_plan.is_measured = plan.is_measured;
    made = bring_up(circle, bring_up_plan);
  } else {
    made.graph.n_nodes = 1;
  }
  return std::shared_ptr<World>(new World(plan, std::move(circle), std::move(made)));
}

World::World(const WorldPlan& plan, bootstrap::Circle circle, BroughtUp made)
    : circle_(std::move(circle)),
      made_(std::move(made)),
      knobs_(plan.liveness),
      is_leaving_(circle_.n_ranks()),
      down_cables_(made_.cables.size()),
      cable_versions_(made_.cables.size()),
      mendings_(made_.station ? made_.station->n_cables() : 0),
      reconnections_(mendings_.size()),
      received_bytes_(mendings_.size()),
      has_lost_port_(mendings_.size()),
      incarnation_(random_incarnation()),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      relay_timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!made_.station) {
    return;
  }
  now_ns_ = base::now_ns();
  if (n_ranks() <= fabric::kMaxWatchedRanks) {
    liveness_.emplace(rank(), n_ranks(), watched(made_), knobs_, now_ns_);
  }
  engine()->set_receiver(*this);
  for (uint32_t cable = 0; cable < made_.station->n_cables(); ++cable) {
    if (!made_.station->cable(cable).is_alive()) {  // it has failed while it was measured
      on_cable_failed(cable);
    }
  }
  thread_ = std::thread([this] { run(); });
}

bool World::are_joined(const std::vector<uint32_t>& ranks, const std::vector<bool>& avoided) const {
  const auto hops = fabric::hops_from(fabric::neighbours(without(made_.graph, avoided)), ranks.front());
  return std::none_of(ranks.begin(), ranks.end(), [&](uint32_t rank) { return hops[rank] == fabric::kUnreachable; });
}

std::vector<bool> World::down_cables() const {
  std::vector<bool> down(down_cables_.size());
  std::transform(down_cables_.begin(), down_cables_.end(), down.begin(),
                 [](const std::string& why) { return !why.empty(); });
  return down;
}

std::shared_ptr<Communicator> World::make_communicator(uint16_t id, std::vector<uint32_t> members, uint32_t self,
                                                       std::vector<bool> avoided, uint16_t origin) {
  if (!numbers_.may_make(id)) {
    throw JoinError(
        fmt::format("group {} was made by another thread at the same time: shrink one group after the other", id));
  }
  const fabric::Graph graph = fabric::graph_among(without(made_.graph, avoided), members);
  std::shared_ptr<Communicator> made(
      new Communicator(engine(), id, std::move(members), self, graph, made_.model, std::move(avoided), origin),
      [world = shared_from_this()](Communicator* ended) { world->end(ended); });
  communicators_[id] = made.get();
  numbers_.make(id);
  for (const auto& [failed, status] : failed_) {
    if (made->has(failed)) {
      tell_failure(*made, status);  // the others may know nothing of it
      made->break_off(status);
    }
  }
  if (auto early = early_.find(id); early != early_.end()) {
    const std::vector<Early> arrived = std::move(early->second);
    early_.erase(early);
    for (const Early& one : arrived) {
      if (one.word.empty()) {
        on_chunk(one.header, one.receipt);
      } else {
        on_word(one.header, one.word);
      }
    }
  }
  return made;
}

void World::unreserve(std::span<const uint16_t> ids) {
  for (const uint16_t id : ids) {
    numbers_.unreserve(id);
    const auto early = early_.find(id);
    if (early == early_.end()) {
      continue;
    }
    for (const Early& arrived : early->second) {
      if (arrived.word.empty()) {
        engine()->release(arrived.receipt.id);
      }
    }
    early_.erase(early);
  }
}

std::vector<bool> World::groups_under_way() const {
  std::vector<bool> groups(size_t{UINT16_MAX} + 1);
  if (made_.station) {
    made_.station->engine().note_groups_under_way(groups);
  }
  return groups;
}

Courier* World::start_courier(Courier::Sink& sink) {
  if (engine() == nullptr) {
    return nullptr;
  }
  courier_ = std::make_unique<Courier>(*engine(), rank(), n_ranks(), sink);
  for (const auto& [failed, status] : failed_) {
    courier_->give_up(failed);
  }
  const std::vector<Early> arrived = std::move(early_[kCourierGroup]);
  early_.erase(kCourierGroup);
  for (const Early& one : arrived) {
    if (one.word.empty()) {  // this rank has sent nothing yet that a word could be about
      courier_->on_chunk(one.header, one.receipt);
    }
  }
  return courier_.get();
}

void World::end(const Communicator* communicator) {
  const base::LockGuard guard(lock_);
  const auto known = communicators_.find(communicator->id());
  if (known != communicators_.end() && known->second == communicator) {
    communicators_.erase(known);
    numbers_.end(communicator->id());
  }
  delete communicator;
}

/// Null if there is none. It stays while the lock is held.
Communicator* World::communicator(uint16_t group) const {
  const auto found = communicators_.find(group & static_cast<uint16_t>(~kMessageGroup));
  return found == communicators_.end() ? nullptr : found->second;
}

/// Whether to keep what comes for a group that is not there: not if it is gone, or of measuring cables, and not without
/// end.
bool World::may_come(uint16_t group) const {
  if (!numbers_.may_come(group & static_cast<uint16_t>(~kMessageGroup)) || group == Measuring::kGroup) {
    return false;
  }
  return early_.count(group) > 0 || early_.size() < kMostEarlyGroups;
}

void World::on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) {
  if (courier_ != nullptr && header.group == kCourierGroup) {
    courier_->on_chunk(header, receipt);
    return;
  }
  if (Communicator* const to = communicator(header.group); to != nullptr && to->has(header.source)) {
    to->on_chunk(header, receipt);
    return;
  }
  const auto id = static_cast<uint16_t>(header.group & ~kMessageGroup);
  if (!may_come(id)) {
    engine()->release(receipt.id);
    return;
  }
  early_[id].push_back({header, engine()->settle(receipt), {}});
}

void World::on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) {
  if (!bytes.empty() && bytes[0] == static_cast<std::byte>(WordKind::shrinking)) {
    hear_shrinking(header.source, header.group, bytes.subspan(1));
    return;
  }
  if (!bytes.empty() && bytes[0] == static_cast<std::byte>(WordKind::mending)) {
    hear_mending(header.source, bytes.subspan(1));
    return;
  }
  const auto word = parse_word(bytes);
  if (!word) {
    return;
  }
  if (courier_ != nullptr && header.group == kCourierGroup) {
    courier_->on_word(header);
    return;
  }
  if (Communicator* const to = communicator(header.group); to != nullptr && to->has(header.source)) {
    to->on_word(header, *word);
    return;
  }
  const auto id = static_cast<uint16_t>(header.group & ~kMessageGroup);
  if (may_come(id)) {
    early_[id].push_back({header, {}, {bytes.begin(), bytes.end()}});
  }
}

void World::break_off(const Status& status) {
  for (const auto& [id, communicator] : communicators_) {
    communicator->break_off(status);
  }
}

bool World::progress(uint64_t now_ns) {
  now_ns = now_ns_ = std::max(now_ns, now_ns_);  // another thread may have looked at the clock since
  const bool has_done = engine() != nullptr && engine()->progress(now_ns);
  // A call goes on as its chunks arrive; whatever else has changed for it is looked at when nothing arrives.
  n_unadvanced_ += has_done ? 1 : 0;
  const bool is_quiet = n_unadvanced_ > 0 && !has_done;
  if (is_quiet || n_unadvanced_ >= kMostUnadvanced || now_ns >= next_advance_ns_) {
    n_unadvanced_ = 0;
    wants_turn_.store(advance_calls(now_ns), std::memory_order_relaxed);
    next_advance_ns_ = wants_turn_ ? now_ns : now_ns + kAdvanceNs;
  }
  if (courier_ != nullptr) {
    courier_->end_turn();
  }
  return has_done || wants_turn_.load(std::memory_order_relaxed);
}

bool World::advance_calls(uint64_t now_ns) {
  bool wants_turn = false;
  for (const auto& [id, communicator] : communicators_) {
    wants_turn = communicator->advance(now_ns) || wants_turn;
  }
  return wants_turn;
}

void World::see_to(Call& call) {
  if (engine() != nullptr) {
    wants_turn_.store(true, std::memory_order_relaxed);
    next_advance_ns_ = 0;
    (void)eventfd_write(wake_.get(), 1);
    return;
  }
  while (call.wants_turn()) {  // nobody else is there
    call.advance();
  }
}

}  // namespace ringbolt::group
