#include "mesh/mesh.h"

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
#include "base/start_thread.h"
#include "mesh/failure.h"
#include "mesh/word.h"

namespace ringbolt::mesh {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
/// Clients go on when something has arrived; otherwise only deadlines pass, which are looked at so often.
constexpr uint64_t kAdvanceNs = kMillisecond / 10;
/// Turns in a row in which something arrived, after which clients get theirs all the same.
constexpr uint32_t kMostUnadvanced = 4;

uint64_t random_incarnation() {
  std::random_device random;
  // Never 0. It tells the processes of one rank apart that came one after the other.
  return (uint64_t{random()} << 32 | random()) | 1;
}

}  // namespace

std::unique_ptr<Mesh> Mesh::join(const MeshPlan& plan) {
  if (plan.meeting.n_ranks > fabric::kMaxWatchedRanks) {
    throw JoinError(fmt::format("{} ranks ({}): groups have {} ranks at most; take fewer processes",
                                plan.meeting.n_ranks, plan.meeting.source, fabric::kMaxWatchedRanks),
                    EINVAL);
  }
  // Taken first, so that bring-up has what the meeting leaves of the time.
  const uint64_t deadline_ns = base::now_ns() + plan.meeting.timeout_ms * kMillisecond;
  bootstrap::SideChannel side_channel = bootstrap::SideChannel::join(plan.meeting);
  BroughtUp made;
  if (side_channel.n_ranks() > 1) {
    BringUpPlan bring_up_plan;
    bring_up_plan.verbs = plan.verbs;
    bring_up_plan.checksums = plan.checksums;
    bring_up_plan.deadline_ns = deadline_ns;
    bring_up_plan.matrix = plan.matrix;
    bring_up_plan.is_measured = plan.is_measured;
    made = bring_up(side_channel, bring_up_plan);
  } else {
    made.graph.n_nodes = 1;
  }
  return std::unique_ptr<Mesh>(new Mesh(plan, std::move(side_channel), std::move(made)));
}

Mesh::Mesh(const MeshPlan& plan, bootstrap::SideChannel side_channel, BroughtUp made)
    : side_channel_(std::move(side_channel)),
      made_(std::move(made)),
      watch_(*this, made_, side_channel_.rank(), side_channel_.n_ranks(), plan.liveness, random_incarnation(),
             base::now_ns()),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      relay_timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  // One rank: no engine, no thread, and nobody whose life is to be watched. wait() alone makes deadlines pass.
  if (!made_.station) {
    return;
  }
  now_ns_ = base::now_ns();
  engine()->set_receiver(*this);
  for (uint32_t cable = 0; cable < made_.station->n_cables(); ++cable) {
    if (!made_.station->cable(cable).is_alive()) {  // it has failed while it was measured
      on_cable_failed(cable);
    }
  }
  // The last thing: all that it looks at is there. Should this throw (std::system_error), the members clean up.
  thread_ = base::start_thread([this] { run(); });
}

/// One of three must happen to the receipt before this returns: a client has it, it is settled and kept, or released.
void Mesh::on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) {
  if (Client* const client = clients_.find(header.group)) {
    client->on_chunk(header, receipt);
  } else if (clients_.may_keep(header.group)) {
    clients_.keep_chunk(header, engine()->settle(receipt));
  } else {
    engine()->release(receipt.id);
  }
}

void Mesh::on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) {
  if (!bytes.empty() && bytes[0] == static_cast<std::byte>(WordKind::mending)) {
    watch_.hear_mending(header.source, bytes.subspan(1));
  } else if (Client* const client = clients_.find(header.group)) {
    client->on_word(header, bytes);
  } else if (clients_.may_keep(header.group)) {
    clients_.keep_word(header, bytes);
  }
}

void Mesh::on_beat(uint32_t cable, std::span<const std::byte> bytes) { watch_.hear_beat(cable, bytes, now_ns_); }

void Mesh::on_cable_failed(uint32_t cable) { watch_.on_cable_failed(cable, now_ns_); }

void Mesh::on_message(uint32_t from, uint16_t kind, std::span<const std::byte> bytes) {
  clients_.each([&](Client& client) { client.on_message(from, kind, bytes); });
}

void Mesh::on_rank_failed(uint32_t rank, const Status& status) {
  clients_.each([&](Client& client) { client.on_rank_failed(rank, status); });
}

void Mesh::on_rank_given_up(uint32_t rank, bool is_certain) {
  clients_.each([&](Client& client) { client.on_rank_given_up(rank, is_certain); });
}

/// By the thread, and by callers that wait long, whoever comes first when it is due.
void Mesh::watch(uint64_t now_ns) {
  now_ns = now_ns_ = std::max(now_ns, now_ns_);
  for (const bootstrap::Event& event : side_channel_.poll()) {
    watch_.hear(event, now_ns);
  }
  watch_.progress(now_ns);
}

bool Mesh::progress(uint64_t now_ns) {
  // So the time that clients and liveness are told never goes back.
  now_ns = now_ns_ = std::max(now_ns, now_ns_);  // another thread may have looked at the clock since
  const bool has_done = engine() != nullptr && engine()->progress(now_ns);
  // What a client does goes on as its chunks arrive; whatever else has changed for it is looked at when nothing
  // arrives.
  n_unadvanced_ += has_done ? 1 : 0;
  const bool is_quiet = n_unadvanced_ > 0 && !has_done;
  if (is_quiet || n_unadvanced_ >= kMostUnadvanced || now_ns >= next_advance_ns_) {
    n_unadvanced_ = 0;
    // Relaxed: written under the lock; whoever reads it without only decides by it how long to sleep.
    wants_turn_.store(advance_clients(now_ns), std::memory_order_relaxed);
    next_advance_ns_ = wants_turn_ ? now_ns : now_ns + kAdvanceNs;
  }
  clients_.end_turn();
  return has_done || wants_turn_.load(std::memory_order_relaxed);
}

bool Mesh::advance_clients(uint64_t now_ns) {
  bool wants_turn = false;
  clients_.each([&](Client& client) { wants_turn = client.advance(now_ns) || wants_turn; });
  return wants_turn;
}

/// Stored before the descriptor is written: the thread that it wakes sees it, since the kernel orders write and read.
void Mesh::want_turn() {
  wants_turn_.store(true, std::memory_order_relaxed);
  next_advance_ns_ = 0;
  (void)eventfd_write(wake_.get(), 1);
}

}  // namespace ringbolt::mesh
