// Who is alive: heartbeats through cables and the side channel, and what follows from their absence.
#include <fmt/core.h>

#include <cerrno>
#include <utility>

#include "fabric/heartbeat.h"
#include "group/world.h"

namespace ringbolt::group {
namespace {

/// Kinds of messages in the side channel.
constexpr uint16_t kHeartbeatMessage = 1;
constexpr uint16_t kGoodbyeMessage = 2;

}  // namespace

void World::on_beat(uint32_t cable, std::span<const std::byte> bytes) { hear_beat(bytes, cable); }

void World::hear_beat(std::span<const std::byte> bytes, std::optional<uint32_t> cable) {
  const size_t length = fabric::heartbeat_bytes(n_ranks());
  if (!liveness_ || bytes.size() != length + 2 * cable_versions_.size()) {
    return;
  }
  const auto heartbeat = fabric::parse_heartbeat(bytes.first(length));
  if (!heartbeat) {
    return;
  }
  if (cable) {
    liveness_->heard_through(*cable, *heartbeat, now_ns_);
  } else {
    liveness_->heard(*heartbeat, now_ns_);
  }
  for (uint32_t i = 0; i < cable_versions_.size(); ++i) {
    const std::byte* at = bytes.data() + length + size_t{2} * i;
    const auto version = static_cast<uint16_t>(static_cast<uint16_t>(at[0]) | static_cast<uint16_t>(at[1]) << 8);
    if (static_cast<int16_t>(version - cable_versions_[i]) > 0) {
      cable_versions_[i] = version;
      next_beat_ns_ = 0;  // news travel on at once
      set_cable(i, version % 2 == 0, fmt::format("rank {} says that it is down", heartbeat->rank));
    }
  }
}

void World::on_cable_failed(uint32_t cable) {
  if (liveness_) {
    liveness_->cable_error(cable, made_.station->cable(cable).failure(), now_ns_);
  }
  change_cable(made_.station->fabric_cable(cable), false, made_.station->cable(cable).failure());
}

void World::change_cable(uint32_t fabric_cable, bool is_up, const std::string& why) {
  if ((cable_versions_[fabric_cable] % 2 == 0) != is_up) {
    ++cable_versions_[fabric_cable];
    next_beat_ns_ = 0;
  }
  set_cable(fabric_cable, is_up, why);
}

void World::watch(uint64_t now_ns) {
  now_ns_ = now_ns;
  watched_ns_ = now_ns;
  hear_side_channel(now_ns);
  if (!liveness_) {
    return;
  }
  if (now_ns >= next_beat_ns_) {
    next_beat_ns_ = now_ns + knobs_.interval_ns;
    beat(now_ns);
  }
  for (const fabric::LivenessChange& change : liveness_->check(now_ns)) {
    apply(change);
  }
}

std::vector<std::byte> World::beat_bytes(uint64_t now_ns) {
  const fabric::Heartbeat heartbeat = liveness_->heartbeat(0, incarnation_, ++turn_, now_ns);
  std::vector<std::byte> bytes(fabric::heartbeat_bytes(n_ranks()));
  fabric::emit(heartbeat, bytes);
  for (const uint16_t version : cable_versions_) {
    bytes.push_back(static_cast<std::byte>(version));
    bytes.push_back(static_cast<std::byte>(version >> 8));
  }
  return bytes;
}

void World::beat(uint64_t now_ns) {
  const std::vector<std::byte> bytes = beat_bytes(now_ns);
  for (uint32_t cable = 0; cable < made_.station->n_cables(); ++cable) {
    (void)engine()->send_beat(cable, bytes);  // without credit the peer is behind: it will miss beats
  }
  (void)circle_.send(bootstrap::kEveryone, kHeartbeatMessage, bytes, true);
}

void World::hear_side_channel(uint64_t now_ns) {
  for (const bootstrap::Event& event : circle_.poll()) {
    switch (event.kind) {
      case bootstrap::Event::Kind::message:
        if (event.message_kind == kHeartbeatMessage) {
          hear_beat(event.bytes, std::nullopt);
        } else if (event.message_kind == kGoodbyeMessage) {
          leaving_.insert(event.rank);
        }
        break;
      case bootstrap::Event::Kind::lost:
        if (liveness_) {
          liveness_->side_channel_closed(event.rank, event.errno_value, now_ns);
        } else {
          fail_rank(event.rank, {ECONNRESET, fmt::format("rank {} is lost: its process has ended", event.rank)});
        }
        break;
      case bootstrap::Event::Kind::left:
        if (liveness_) {
          liveness_->left(event.rank, now_ns);
        } else {
          fail_rank(event.rank, {ECONNRESET, fmt::format("rank {} has left", event.rank)});
        }
        break;
    }
  }
}

void World::apply(const fabric::LivenessChange& change) {
  using Kind = fabric::LivenessChange::Kind;
  switch (change.kind) {
    case Kind::cable_down:
      change_cable(made_.station->fabric_cable(change.cable), false, change.text);
      break;
    case Kind::cable_up:
      change_cable(made_.station->fabric_cable(change.cable), true, {});
      break;
    case Kind::rank_frozen:
      // It may wake up again, but nobody waits for that: what is under way fails, and so the group can go on without
      // it.
      fail_rank(change.rank, {EHOSTDOWN, change.text});
      break;
    case Kind::rank_failed:
      fail_rank(change.rank, {ECONNRESET, change.text});
      break;
    case Kind::partition:
    case Kind::rank_suspect:
    case Kind::rank_back:
    case Kind::self_paused:
      break;
  }
}

void World::set_cable(uint32_t fabric_cable, bool is_up, const std::string& why) {
  down_cables_[fabric_cable] = is_up ? std::string() : why;
  if (engine()->set_cable_up(fabric_cable, is_up) && !is_up) {
    fail_unreachable();
  }
}

void World::fail_unreachable() {
  for (uint32_t other = 0; other < n_ranks(); ++other) {
    if (other == rank() || engine()->paths().is_reachable(other) || failed_.count(other) > 0) {
      continue;
    }
    std::string text = fmt::format("rank {} can't be reached any more", other);
    for (uint32_t cable = 0; cable < down_cables_.size(); ++cable) {
      if (!down_cables_[cable].empty()) {
        text += fmt::format("; {}: {}", made_.cables[cable].text(), down_cables_[cable]);
      }
    }
    fail_rank(other, {ECONNRESET, text});
  }
}

void World::fail_rank(uint32_t rank, const Status& status) {
  if (!failed_.insert({rank, status}).second) {
    return;
  }
  for (const auto& [id, weak] : communicators_) {
    if (const auto communicator = weak.lock(); communicator != nullptr && communicator->rank_of(rank)) {
      communicator->break_off(status);
    }
  }
  engine()->give_up(rank);
}

void World::say_goodbye() { (void)circle_.send(bootstrap::kEveryone, kGoodbyeMessage, {}); }

bool World::have_all_said_goodbye() const {
  for (uint32_t other = 0; other < circle_.n_ranks(); ++other) {
    if (other != circle_.rank() && leaving_.count(other) == 0 && failed_.count(other) == 0) {
      return false;
    }
  }
  return true;
}

}  // namespace ringbolt::group
