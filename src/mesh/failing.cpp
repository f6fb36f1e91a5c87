// What follows from news of ranks and cables: other paths are taken, and clients learn of ranks that are lost.
#include <fmt/core.h>

#include <cerrno>
#include <utility>

#include "base/lock_guard.h"
#include "fabric/graph.h"
#include "mesh/mesh.h"
#include "mesh/word.h"

namespace ringbolt::mesh {

/// The cable is dead to the engine already: what follows is for mending, for liveness and for the other ranks.
void Mesh::on_cable_failed(uint32_t cable) {
  const engine::Cable& end = made_.station->cable(cable);
  mendings_[cable].fail(end.incarnation());
  if (liveness_) {
    liveness_->cable_error(cable, end.failure(), now_ns_);
  }
  change_cable(made_.station->fabric_cable(cable), false, end.failure());
}

/// What this rank has seen itself: it becomes news for all, by the version. set_cable() alone is for what others find
/// out themselves, such as the cables of a rank that has failed.
void Mesh::change_cable(uint32_t fabric_cable, bool is_up, const std::string& why) {
  if ((cable_versions_[fabric_cable] % 2 == 0) != is_up) {
    ++cable_versions_[fabric_cable];
    hurry();
  }
  set_cable(fabric_cable, is_up, why);
}

/// A rank that has failed does not come back in this mesh, so neither do its cables.
bool Mesh::leads_to_failed(uint32_t fabric_cable) const {
  return failed_.count(made_.cables[fabric_cable].a) > 0 || failed_.count(made_.cables[fabric_cable].b) > 0;
}

/// Calls fail_rank() by way of fail_unreachable(), and is called by it: that ends, since each rank fails once and
/// each cable goes down once meanwhile.
void Mesh::set_cable(uint32_t fabric_cable, bool is_up, const std::string& why) {
  if (is_up && leads_to_failed(fabric_cable)) {
    return;
  }
  down_cables_[fabric_cable] = is_up ? std::string() : why;
  if (engine()->set_cable_up(fabric_cable, is_up) && !is_up) {
    fail_unreachable();
  }
}

void Mesh::apply(const fabric::LivenessChange& change) {
  using Kind = fabric::LivenessChange::Kind;
  using Reason = fabric::LivenessChange::Reason;
  switch (change.kind) {
    case Kind::cable_down:
      engine()->fail_cable(change.cable,
                           change.text);  // its device would keep what was on its way, and what that relays
      change_cable(made_.station->fabric_cable(change.cable), false, change.text);
      break;
    case Kind::cable_up:
      change_cable(made_.station->fabric_cable(change.cable), true, {});
      break;
    case Kind::rank_failed: {
      // EHOSTDOWN: nothing is heard of it any more, and it may live; ECONNRESET: its connection has ended.
      const bool is_silent = change.reason == Reason::frozen || change.reason == Reason::unreachable;
      silent_.erase(change.rank);
      fail_rank(change.rank, {is_silent ? EHOSTDOWN : ECONNRESET, change.text + cables_of(change.rank)},
                change.is_certain);
      break;
    }
    case Kind::rank_suspect:
    case Kind::rank_frozen:
      silent_[change.rank] = change.text;  // it may be back; calls with a deadline before that will say so
      break;
    case Kind::rank_back:
      silent_.erase(change.rank);
      break;
    case Kind::partition:
    case Kind::self_paused:
      break;
  }
}

/// For people who look for the machine.
std::string Mesh::cables_of(uint32_t rank) const {
  std::string text;
  for (const CableWords& cable : made_.cables) {
    if (cable.a == rank || cable.b == rank) {
      text += (text.empty() ? "; it was at " : ", ") + cable.text();
    }
  }
  return text;
}

/// Which ranks no chunk reaches any more, although cables may lead there.
void Mesh::fail_unreachable() {
  fabric::Graph up{n_ranks(), {}};
  for (uint32_t cable = 0; cable < made_.graph.cables.size(); ++cable) {
    if (engine()->paths().is_up(cable)) {
      up.cables.push_back(made_.graph.cables[cable]);
    }
  }
  const auto hops = fabric::hops_from(fabric::neighbours(up), rank());
  for (uint32_t other = 0; other < n_ranks(); ++other) {
    if (other == rank() || engine()->paths().is_reachable(other) || failed_.count(other) > 0) {
      continue;
    }
    std::string text = hops[other] == fabric::kUnreachable
                           ? fmt::format("rank {} can't be reached any more", other)
                           : fmt::format("rank {} is {} hops away now, more than the {} that chunks can go", other,
                                         hops[other], engine::kMostVia + 1);
    for (uint32_t cable = 0; cable < down_cables_.size(); ++cable) {
      if (!down_cables_[cable].empty()) {
        text += fmt::format("; {}: {}", made_.cables[cable].text(), down_cables_[cable]);
      }
    }
    fail_rank(other, {ECONNRESET, text}, false);
  }
}

void Mesh::fail_rank(uint32_t rank, const Status& status, bool is_certain) {
  // A set has one bit of 64 for a rank.
  if (is_certain && rank < fabric::kMaxAgreeingRanks) {
    ended_ |= fabric::set_of(rank);
  }
  // The first reason stays: what is said later follows from it, mostly.
  if (failed_.insert({rank, status}).second) {
    clients_.each([&](Client& client) { client.on_rank_failed(rank, status); });
    engine()->give_up(rank, is_certain);
    for (uint32_t cable = 0; cable < made_.station->n_cables(); ++cable) {
      if (made_.station->cable(cable).plan().peer == rank) {
        engine()->fail_cable(cable, status.text);  // it may be stopped, and its device keep what is relayed to it
      }
    }
    // Should it be alive, it must not wait for what does not come any more.
    (void)side_channel_.send(rank, kGivenUpMessage, std::as_bytes(std::span(status.text)));
  }
  clients_.each([&](Client& client) { client.on_rank_given_up(rank, is_certain); });
  // Nothing goes through a rank that is gone.
  for (uint32_t cable = 0; cable < made_.cables.size(); ++cable) {
    if ((made_.cables[cable].a == rank || made_.cables[cable].b == rank) && down_cables_[cable].empty()) {
      set_cable(cable, false, fmt::format("rank {} has failed", rank));
    }
  }
}

/// Only ETIMEDOUT is explained: other codes name their cause themselves.
Status Mesh::explained(Status status) {
  if (status.code == ETIMEDOUT) {
    const base::LockGuard guard(lock);
    for (const auto& [rank, text] : silent_) {
      status.text += "; " + text;
    }
  }
  return status;
}

}  // namespace ringbolt::mesh
