// What follows from news of ranks and cables: other paths are taken, and clients learn of ranks that are lost.
#include <fmt/core.h>

#include <cerrno>
#include <utility>

#include "fabric/graph.h"
#include "mesh/watch.h"
#include "mesh/word.h"

namespace ringbolt::mesh {

void Watch::on_cable_failed(uint32_t cable, uint64_t now_ns) {
  const engine::Cable& end = made_.station->cable(cable);
  mender_.fail(cable);
  if (liveness_) {
    liveness_->cable_error(cable, end.failure(), now_ns);
  }
  change_cable(made_.station->fabric_cable(cable), false, end.failure());
}

/// What this rank has seen itself: it becomes news for all, by the version. set_cable() alone is for what others find
/// out themselves, such as the cables of a rank that has failed.
void Watch::change_cable(uint32_t fabric_cable, bool is_up, const std::string& why) {
  if (cables_.change(fabric_cable, is_up)) {
    hurry();
  }
  set_cable(fabric_cable, is_up, why);
}

/// A rank that has failed does not come back in this mesh, so neither do its cables.
bool Watch::leads_to_failed(uint32_t fabric_cable) const {
  return ranks_.has_failed(made_.cables[fabric_cable].a) || ranks_.has_failed(made_.cables[fabric_cable].b);
}

/// Calls fail_rank() by way of fail_unreachable(), and is called by it: that ends, since each rank fails once and
/// each cable goes down once meanwhile.
void Watch::set_cable(uint32_t fabric_cable, bool is_up, const std::string& why) {
  if (is_up && leads_to_failed(fabric_cable)) {
    return;
  }
  cables_.set(fabric_cable, is_up, why);
  if (engine().set_cable_up(fabric_cable, is_up) && !is_up) {
    fail_unreachable();
  }
}

void Watch::apply(const fabric::LivenessChange& change) {
  using Kind = fabric::LivenessChange::Kind;
  using Reason = fabric::LivenessChange::Reason;
  switch (change.kind) {
    case Kind::cable_down:
      engine().fail_cable(change.cable,
                          change.text);  // its device would keep what was on its way, and what that relays
      change_cable(made_.station->fabric_cable(change.cable), false, change.text);
      break;
    case Kind::cable_up:
      change_cable(made_.station->fabric_cable(change.cable), true, {});
      break;
    case Kind::rank_failed: {
      // EHOSTDOWN: nothing is heard of it any more, and it may live; ECONNRESET: its connection has ended.
      const bool is_silent = change.reason == Reason::frozen || change.reason == Reason::unreachable;
      ranks_.note_back(change.rank);
      fail_rank(change.rank, {is_silent ? EHOSTDOWN : ECONNRESET, change.text + cables_of(change.rank)},
                change.is_certain);
      break;
    }
    case Kind::rank_suspect:
    case Kind::rank_frozen:
      ranks_.note_silent(change.rank, change.text);  // it may be back; calls with a deadline before that will say so
      break;
    case Kind::rank_back:
      ranks_.note_back(change.rank);
      break;
    case Kind::partition:
    case Kind::self_paused:
      break;
  }
}

/// For people who look for the machine.
std::string Watch::cables_of(uint32_t rank) const {
  std::string text;
  for (const CableWords& cable : made_.cables) {
    if (cable.a == rank || cable.b == rank) {
      text += (text.empty() ? "; it was at " : ", ") + cable.text();
    }
  }
  return text;
}

/// Which ranks no chunk reaches any more, although cables may lead there.
void Watch::fail_unreachable() {
  fabric::Graph up{n_ranks_, {}};
  for (uint32_t cable = 0; cable < made_.graph.cables.size(); ++cable) {
    if (engine().paths().is_up(cable)) {
      up.cables.push_back(made_.graph.cables[cable]);
    }
  }
  const auto hops = fabric::hops_from(fabric::neighbours(up), rank_);
  for (uint32_t other = 0; other < n_ranks_; ++other) {
    if (other == rank_ || engine().paths().is_reachable(other) || ranks_.has_failed(other)) {
      continue;
    }
    std::string text = hops[other] == fabric::kUnreachable
                           ? fmt::format("rank {} can't be reached any more", other)
                           : fmt::format("rank {} is {} hops away now, more than the {} that chunks can go", other,
                                         hops[other], engine::kMostVia + 1);
    for (uint32_t cable = 0; cable < made_.cables.size(); ++cable) {
      if (cables_.is_down(cable)) {
        text += fmt::format("; {}: {}", made_.cables[cable].text(), cables_.why_down(cable));
      }
    }
    fail_rank(other, {ECONNRESET, text}, false);
  }
}

void Watch::fail_rank(uint32_t rank, const Status& status, bool is_certain) {
  if (ranks_.fail(rank, status, is_certain)) {
    mender_.give_up(rank);
    around_.on_rank_failed(rank, status);
    engine().give_up(rank, is_certain);
    for (uint32_t cable = 0; cable < made_.station->n_cables(); ++cable) {
      if (made_.station->cable(cable).plan().peer == rank) {
        engine().fail_cable(cable, status.text);  // it may be stopped, and its device keep what is relayed to it
      }
    }
    // Should it be alive, it must not wait for what does not come any more.
    (void)around_.send(rank, kGivenUpMessage, std::as_bytes(std::span(status.text)), false);
  }
  around_.on_rank_given_up(rank, is_certain);
  // Nothing goes through a rank that is gone.
  for (uint32_t cable = 0; cable < made_.cables.size(); ++cable) {
    if ((made_.cables[cable].a == rank || made_.cables[cable].b == rank) && !cables_.is_down(cable)) {
      set_cable(cable, false, fmt::format("rank {} has failed", rank));
    }
  }
}

}  // namespace ringbolt::mesh
