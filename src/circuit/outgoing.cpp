#include "circuit/outgoing.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/lock_guard.h"
#include "circuit/clearing.h"

namespace ringbolt::circuit {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
// An Open that was sent before a connection between the two members broke may be lost; the receiver takes a second
// one for the first.
constexpr uint64_t kCallAgainNs = 300 * kMillisecond;
// All hops have to make and connect their queue pairs meanwhile, one after the other.
constexpr uint64_t kMakingNs = 3'000 * kMillisecond;
// For what the network's version does not tell, as a rail that was refused.
constexpr uint64_t kPlanAgainNs = 500 * kMillisecond;
/// Words are due after this; nothing is given up: a peer may be minutes late.
constexpr uint64_t kWarnAfterNs = 10'000 * kMillisecond;
/// Without any way to a peer that lives: cables are plugged in again, but nobody waits for ever.
constexpr uint64_t kMostPathlessNs = 10'000 * kMillisecond;
/// A refusal that lasts so long is worth a warning: others belong to peers and cables that come and go.
constexpr uint64_t kRefusedNs = 2'000 * kMillisecond;
// For what was sent to be taken; as long as the endpoint's own end (kMostEndingNs).
constexpr uint64_t kMostClosingNs = 2'000 * kMillisecond;
/// Receives for answers: hello_ack, one for each frame of the window at most, and clearances.
constexpr uint32_t kAnswerReceives = 2 * kWindow;
static_assert(1 + kWindow + Clearing::kMostFrames <= kAnswerReceives);
// 4 MiB of memory for one circuit at most: with four rails each has its window full, with more they share.
constexpr uint32_t kMostSlots = 64;

}  // namespace

void Outgoing::hear(const Opened& opened, uint64_t now_ns, Surroundings& in) {
  // Both ends' wishes are met: the longer of the two.
  if (!std::exchange(is_opened_, true) && in.ways.is_direct && opened.least_written_bytes != 0) {
    least_written_bytes_ = std::max(opened.least_written_bytes, in.ways.least_written_bytes);
  }
  next_plan_ns_ = now_ns;
}

void Outgoing::hear(const Refused& refused) {
  // A refusal that comes after is one of a repetition of the Open.
  if (!is_opened_) {
    failure_text_ = refused.why;
    is_refused_.store(true, std::memory_order_release);
  }
}

void Outgoing::call(uint64_t now_ns, Surroundings& in) {
  if (begun_ns_ == 0) {
    begun_ns_ = now_ns;
  }
  const bool is_known = in.network.find(peer_) != nullptr;
  if (is_known) {
    in.send(peer_, Open{id_, listener_, has_checksums_, in.ways.is_direct});
    has_asked_ = true;
  }
  if (now_ns - begun_ns_ > kWarnAfterNs && !std::exchange(has_warned_, true)) {
    in.log(Level::warning,
           fmt::format("still waiting for {}: {}", in.name_of(peer_),
                       !is_known
                           ? "nothing has been heard of it, neither directly nor over other machines (is its program "
                             "alive? may TCP connections reach it?)"
                           : "its program has not answered"));
  }
  next_call_ns_ = is_known ? now_ns + kCallAgainNs : now_ns;  // the endpoint looks often enough
}

bool Outgoing::step(uint64_t now_ns, bool is_tick, Surroundings& in) {
  if (is_closing_ && closing_ns_ == 0) {
    closing_ns_ = now_ns;
  }
  // There is no rail, or the program never gets one.
  if (is_refused_ || (is_closing_ && circuit_ == nullptr)) {
    // All who may have heard of it, or they keep their ends: the receiver of an Open that has not been answered, too.
    const std::string why = is_refused_ ? failure_text_ : "the connection was given up";
    end_rails(why, in);
    if (has_asked_) {
      in.send(peer_, Close{id_, CloseReason::orderly, why});
    }
    return true;
  }
  if (!is_opened_) {
    if (now_ns >= next_call_ns_) {
      call(now_ns, in);
    }
    return false;
  }
  for (auto making = making_.begin(); making != making_.end();) {
    const uint16_t number = making->first;
    const bool is_late = now_ns > making->second.deadline_ns;
    // Before give_up_making(), which erases it.
    ++making;
    if (is_late) {
      give_up_making(number, "no answer within 3 s", now_ns, in);
    }
  }
  const bool has_failed = circuit_ != nullptr && circuit_->failure() != FailureKind::none;
  // A circuit that ends gets no new rails.
  if (!has_failed && !is_closing_ && (planned_version_ != in.network.version() || now_ns >= next_plan_ns_)) {
    plan(now_ns, in);
  }
  // Only tried: a program that holds it moves the circuit on itself.
  if (circuit_ != nullptr && (is_tick || is_restless()) && circuit_->lock.try_lock()) {
    const base::LockGuard guard(circuit_->lock, base::kAdoptLock);
    circuit_->progress_idle();
  }
  if (circuit_ != nullptr) {
    wind_up(in);
    if (!is_ready_ && circuit_->is_open()) {
      is_ready_.store(true, std::memory_order_release);
    } else if (!is_ready_ && circuit_->failure() != FailureKind::none) {
      failure_text_ = circuit_->failure_text();
      is_refused_.store(true, std::memory_order_release);
    }
  }
  if (is_closing_ && is_over(now_ns)) {
    end_rails("the circuit has been closed", in);
    in.send(peer_, Close{id_, CloseReason::orderly, "the sender has closed the connection"});
    return true;
  }
  return false;
}

/// Which rails there should be: those over the paths that the network has now.
void Outgoing::plan(uint64_t now_ns, Surroundings& in) {
  planned_version_ = in.network.version();
  next_plan_ns_ = now_ns + kPlanAgainNs;
  std::vector<PlannedPath> wanted = in.network.paths_to(peer_);
  // Of rails that carry new frames; retiring ones make room for others over the same links.
  std::vector<Path> standing;
  size_t n_live_wanted = 0;
  std::vector<uint16_t> unwanted;
  std::vector<std::pair<uint16_t, std::string>> broken;
  if (circuit_ != nullptr) {
    const base::LockGuard guard(circuit_->lock);
    for (const SendCircuit::RailView& rail : circuit_->rails()) {
      if (std::string why = in.network.objection_to(*rail.path); !why.empty()) {
        broken.emplace_back(rail.number, std::move(why));
        continue;
      }
      const bool is_wanted =
          std::ranges::any_of(wanted, [&](const PlannedPath& one) { return one.path == *rail.path; });
      // A rail that has not been greeted yet does not make another one superfluous.
      n_live_wanted += is_wanted && rail.is_live ? 1 : 0;
      if (!is_wanted && !rail.is_retiring) {
        unwanted.push_back(rail.number);
      }
      if (!rail.is_retiring) {
        standing.push_back(*rail.path);
      }
    }
    for (const auto& [number, why] : broken) {
      circuit_->fail_rail(number, why);
    }
    // A detour serves until a cable is back that makes it one.
    for (const uint16_t number : unwanted) {
      if (n_live_wanted > 0) {
        circuit_->retire_rail(number);
      }
    }
  }
  for (const auto& [number, why] : broken) {
    in.log(Level::warning, fmt::format("to {}: {}; what was under way goes another way", in.name_of(peer_), why));
  }
  for (const PlannedPath& one : wanted) {
    const bool is_there = std::ranges::find(standing, one.path) != standing.end() ||
                          std::ranges::any_of(making_, [&](const auto& made) { return made.second.path == one.path; });
    // No more rails than clearances have places for.
    if (!is_there && standing.size() + making_.size() < kMostRails) {
      if (circuit_ == nullptr) {
        make_circuit(wanted.size(), one.path.front().exit.port, in);
      }
      make_rail(one, now_ns, in);
    }
  }
  const bool is_pathless = standing.empty() && making_.empty();
  // Rails that are being made count as a way: each has its own deadline.
  pathless_ns_ = !is_pathless ? 0 : pathless_ns_ == 0 ? now_ns : pathless_ns_;
  if (!is_pathless || now_ns - pathless_ns_ < kMostPathlessNs) {
    return;
  }
  const std::string text = fmt::format(
      "no cable leads to {} any more, directly or over other machines; this machine's "
      "links: {}",
      in.name_of(peer_), in.network.text_of_links());
  if (is_ready_) {
    in.send(peer_, Close{id_, CloseReason::no_way, text});  // who only receives would wait for ever
    const base::LockGuard guard(circuit_->lock);
    circuit_->fail(FailureKind::no_way, text);
  } else if (!std::exchange(has_warned_, true)) {
    in.log(Level::warning, "still waiting: " + text);
  }
}

void Outgoing::make_circuit(size_t n_paths, uint16_t port, Surroundings& in) {
  const auto n_slots = static_cast<uint32_t>(std::min<size_t>(kMostSlots, kWindow * std::max<size_t>(n_paths, 1)));
  try {
    circuit_ = std::make_shared<SendCircuit>(id_, peer_, in.name_of(peer_), has_checksums_, in.devices, port, n_slots,
                                             least_written_bytes_);
  } catch (const base::Error& error) {
    failure_text_ = error.what();
    is_refused_.store(true, std::memory_order_release);
  }
}

void Outgoing::make_rail(const PlannedPath& planned, uint64_t now_ns, Surroundings& in) {
  if (circuit_ == nullptr) {
    return;
  }
  const Network::HopKind kind = in.network.kind_of_hop(planned.path, 0);
  RailPlan plan;
  plan.type = kind.type;
  plan.counts_frames = kind.counts_frames;
  plan.port = planned.path.front().exit.port;
  plan.gid_index = planned.path.front().exit.gid_index;
  // The receiver never has more answers under way, so none meets no receive.
  plan.n_receives = kAnswerReceives;
  plan.receive_bytes = kFrameHeaderBytes;
  plan.peer_receive_bytes = kSlotBytes;
  plan.send_depth = 2 * kWindow;
  plan.sends = circuit_->slots();
  plan.is_direct = least_written_bytes_ != 0 && planned.path.size() == 2 && plan.type == IBV_QPT_RC;
  if (plan.is_direct) {
    // Clearances come by direct rails alone.
    plan.receive_bytes = kClearToSendBytes;
    plan.send_depth = 4 * kWindow;  // a WRITE and a frame each, and those whose completion is late
    in.registrations->use(in.devices->device_of(plan.port));
  }
  // Unique for 65,536 rails of a circuit; the receiver tells apart by it what is left of an older one.
  const uint16_t number = next_rail_++;
  try {
    auto rail = std::make_unique<Rail>(*in.devices, plan);
    // The path has two hops at least (plan_paths()).
    in.send(planned.path[1].member, RailOpen{id_, number, 1, planned.path, rail->address()});
    making_[number] = {std::move(rail), planned.path, planned.rate_mbps, now_ns + kMakingNs,
                       in.network.may_lose(planned.path)};
  } catch (const base::Error& error) {
    const std::string why =
        fmt::format("to {} by {}: {}", in.name_of(peer_), in.network.text_of(planned.path), error.what());
    in.say_once(why);
    note_refused(why, now_ns, in);
  }
}

/// A rail can't be had: a device has no more queue pairs, say, which may change, and is not awaited for ever.
void Outgoing::note_refused(const std::string& why, uint64_t now_ns, Surroundings& in) {
  refused_ns_ = refused_ns_ == 0 ? now_ns : refused_ns_;
  // say_once() says the same words as a warning once, then for those who want to know all.
  if (now_ns - refused_ns_ > kRefusedNs) {
    in.say_once(why);
  }
  if (!is_ready_ && now_ns - refused_ns_ > kMostPathlessNs) {
    fail(FailureKind::no_way, "no connection comes about: " + why, in);
  }
}

void Outgoing::hear(MemberId from, const RailReady& ready, Surroundings& in) {
  const auto found = making_.find(ready.rail);
  if (found == making_.end() || found->second.path[1].member != from) {
    return;  // it took too long, or somebody else says so
  }
  Making made = std::move(found->second);
  making_.erase(found);
  try {
    // Without the circuit's lock, since it may block; a program goes on meanwhile with the rails that it has.
    made.rail->connect(ready.to);
  } catch (const base::Error& error) {
    in.log(Level::warning,
           fmt::format("to {} by {}: {}", in.name_of(peer_), in.network.text_of(made.path), error.what()));
    in.send_along(made.path, RailDown{id_, ready.rail, error.what()});
    return;
  }
  in.say_once(fmt::format("to {} by {}: {}", in.name_of(peer_), in.network.text_of(made.path), text_of_way(made, in)));
  refused_ns_ = 0;
  const base::LockGuard guard(circuit_->lock);
  circuit_->add_rail(ready.rail, std::move(made.rail), std::move(made.path), made.rate_mbps, made.may_lose);
}

/// Of which type a rail is, which way messages take by it, and why.
std::string Outgoing::text_of_way(const Making& made, const Surroundings& in) const {
  if (made.rail->is_direct()) {
    return fmt::format("RC, messages of {} bytes and more from registered memory go straight into the receiver's ({})",
                       least_written_bytes_, in.ways.why);
  }
  if (made.may_lose) {
    return fmt::format(
        "{}, all messages go by frames, which are sent again if they do not come (no RC at an end of a "
        "cable)",
        made.rail->type() == IBV_QPT_UC ? "UC" : "RC and UC");
  }
  return fmt::format("RC, all messages go by frames ({})", !in.ways.is_direct          ? in.ways.why
                                                           : least_written_bytes_ == 0 ? "the other end wants that"
                                                                                       : "another machine relays them");
}

void Outgoing::give_up_making(uint16_t number, const std::string& why, uint64_t now_ns, Surroundings& in) {
  const auto found = making_.find(number);
  if (found == making_.end()) {
    return;
  }
  in.log(Level::info, fmt::format("to {} by {}: {}", in.name_of(peer_), in.network.text_of(found->second.path), why));
  in.send_along(found->second.path, RailDown{id_, number, why});
  making_.erase(found);
  next_plan_ns_ = now_ns + kPlanAgainNs;
}

void Outgoing::hear(const RailDown& down, uint64_t now_ns, Surroundings& in) {
  if (making_.contains(down.rail)) {
    give_up_making(down.rail, down.why, now_ns, in);
    note_refused(fmt::format("to {}: {}", in.name_of(peer_), down.why), now_ns, in);
  } else if (circuit_ != nullptr) {
    const base::LockGuard guard(circuit_->lock);
    circuit_->fail_rail(down.rail, down.why);
    // Soon, and not at once: the network may hear of the cable in a moment.
    next_plan_ns_ = std::min(next_plan_ns_, now_ns + kPlanAgainNs / 10);
  }
}

void Outgoing::hear(const Close& close, Surroundings& in) {
  fail(close.reason == CloseReason::usage      ? FailureKind::usage
       : close.reason == CloseReason::protocol ? FailureKind::protocol
                                               : FailureKind::peer,
       fmt::format("{}: {}", in.name_of(peer_), close.why), in);
}

void Outgoing::hear_gone(MemberId member, const std::string& name, const std::string& why, Surroundings& in) {
  if (member == peer_) {
    fail(FailureKind::peer, fmt::format("{} is gone: {}{}", name, why, text_of_ways(in)), in);
  }
  next_plan_ns_ = 0;  // a relay may be gone
}

/// "; it was reached by own rocep1s0f0 to n1's rocep1s0f1": for whoever has to look at that cable.
std::string Outgoing::text_of_ways(const Surroundings& in) const {
  std::string ways;
  if (circuit_ != nullptr) {
    const base::LockGuard guard(circuit_->lock);
    for (const SendCircuit::RailView& rail : circuit_->rails()) {
      ways += (ways.empty() ? "; it was reached by " : "; ") + in.network.text_of(*rail.path);
    }
  }
  return ways;
}

/// Before the program has it, it is refused.
void Outgoing::fail(FailureKind kind, const std::string& why, Surroundings& in) {
  if (!is_ready_ && !is_refused_) {
    failure_text_ = why;
    is_refused_.store(true, std::memory_order_release);
  }
  if (circuit_ != nullptr) {
    {
      const base::LockGuard guard(circuit_->lock);
      circuit_->fail(kind, why);
    }
    end_rails(why, in);
  }
}

void Outgoing::end_rails(const std::string& why, Surroundings& in) {
  for (const auto& [number, making] : making_) {
    in.send_along(making.path, RailDown{id_, number, why});
  }
  making_.clear();
  if (circuit_ != nullptr) {
    const base::LockGuard guard(circuit_->lock);
    for (const SendCircuit::RailView& rail : circuit_->rails()) {
      circuit_->fail_rail(rail.number, why);
    }
  }
  wind_up(in);
}

/// Rails that have ended go, and all others on their paths are told.
void Outgoing::wind_up(Surroundings& in) {
  if (circuit_ == nullptr) {
    return;
  }
  std::vector<SendCircuit::Ended> ended;
  {
    const base::LockGuard guard(circuit_->lock);
    ended = circuit_->take_ended();
  }
  for (SendCircuit::Ended& one : ended) {
    const std::string why = one.rail->has_failed() ? one.rail->failure() : "another way has taken its place";
    // For words; the path itself is told to all on it.
    const std::string path = in.network.text_of(one.path);
    const std::string repeated =
        one.n_repeated == 0 ? "" : fmt::format("; {} frames had been sent again", one.n_repeated);
    in.log(Level::info,
           fmt::format("to {}: rail {} by {} has ended: {}{}", in.name_of(peer_), one.number, path, why, repeated));
    if (one.was_silent) {
      in.say_once(
          fmt::format("to {} by {}: frames that are sent again and again do not come, though their ports work; what "
                      "was under way goes another way if there is one",
                      in.name_of(peer_), path));
    }
    in.send_along(one.path, RailDown{id_, one.number, why});
    next_plan_ns_ = 0;
    if (one.rail->type() == IBV_QPT_UC) {
      // The lambda holds the circuit, since what the device reads until then lies there.
      in.endings.end(std::move(one.rail), [circuit = circuit_, number = one.number] {
        const base::LockGuard guard(circuit->lock);
        circuit->forget_rail(number);
      });
    }
  }
}

bool Outgoing::is_over(uint64_t now_ns) {
  if (circuit_->failure() != FailureKind::none || now_ns - closing_ns_ > kMostClosingNs) {
    return true;
  }
  const base::LockGuard guard(circuit_->lock);
  return !circuit_->has_unfinished();
}

}  // namespace ringbolt::circuit
