#include "mesh/mender.h"

#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "mesh/word.h"

namespace ringbolt::mesh {
namespace {

/// What is told of a cable is told so often, and what has failed is tried again so often.
constexpr uint64_t kMendIntervalNs = 100'000'000;

}  // namespace

Mender::Mender(std::shared_ptr<engine::Station> station, Surroundings& around)
    : station_(std::move(station)), around_(around), ends_(station_ ? station_->n_cables() : 0) {}

void Mender::fail(uint32_t cable) { ends_[cable].mending.fail(station_->cable(cable).incarnation()); }

void Mender::give_up(uint32_t rank) {
  for (uint32_t cable = 0; cable < ends_.size(); ++cable) {
    ends_[cable].is_given_up = ends_[cable].is_given_up || station_->cable(cable).plan().peer == rank;
  }
}

void Mender::wait_for_each(uint64_t time_ns) {
  for (const End& end : ends_) {
    if (end.reconnection != nullptr) {
      (void)end.reconnection->wait_until(base::now_ns() + time_ns);
    }
  }
}

void Mender::progress(uint64_t now_ns) {
  const bool is_due = now_ns >= next_interval_ns_;
  for (uint32_t cable = 0; cable < ends_.size(); ++cable) {
    if (station_->cable(cable).is_alive() || ends_[cable].is_given_up) {
      continue;
    }
    if (is_due || ends_[cable].mending.next() != Mending::Step::reset) {
      go_on(cable, now_ns);
    }
    if (is_due && ends_[cable].mending.stage() != Mending::Stage::failed) {
      tell(cable);
    }
  }
  if (is_due) {
    next_interval_ns_ = now_ns + kMendIntervalNs;
  }
}

void Mender::go_on(uint32_t cable, uint64_t now_ns) {
  if (ends_[cable].reconnection != nullptr) {
    end_reconnecting(cable);
    return;
  }
  Mending& mending = ends_[cable].mending;
  const Mending::Step step = mending.next();
  if (step == Mending::Step::nothing || !station_->is_port_active(cable)) {
    // The lock is held here, so that a blocking call would stop the whole mesh.
    return;  // nothing would come of it, and some devices block in it
  }
  try {
    switch (step) {
      case Mending::Step::reset:
        station_->engine().reset_cable(cable, mending.next_incarnation());
        break;
      case Mending::Step::connect:
        // In a thread of its own, which alone has the queue pairs meanwhile: connecting may block for good.
        ends_[cable].reconnection = std::make_unique<Reconnection>(station_, cable, mending.peer());
        return;  // end_reconnecting() follows
      case Mending::Step::start:
        if (!station_->cable(cable).failure().empty()) {  // it has failed again before it could begin
          mending.fail(mending.incarnation());
          return;
        }
        station_->engine().start_cable(cable);
        around_.on_mended(cable, now_ns);
        break;
      case Mending::Step::nothing:
        break;
    }
  } catch (const base::Error&) {
    mending.fail(mending.incarnation());  // from the beginning, with the next turn
    return;
  }
  mending.done(step);
  tell(cable);
}

/// As long as the device is stuck the cable stays failed, and nobody waits for it.
void Mender::end_reconnecting(uint32_t cable) {
  if (!ends_[cable].reconnection->is_over()) {
    return;
  }
  const std::unique_ptr<Reconnection> reconnection = std::exchange(ends_[cable].reconnection, nullptr);
  Mending& mending = ends_[cable].mending;
  try {
    reconnection->finish();
  } catch (const base::Error&) {
    mending.fail(mending.incarnation());  // from the beginning, with the next turn
    return;
  }
  if (mending.stage() == Mending::Stage::reset) {  // else it has failed meanwhile, as the other end has said
    mending.done(Mending::Step::connect);
    tell(cable);
  }
}

void Mender::tell(uint32_t cable) {
  const engine::Cable& end = station_->cable(cable);
  MendingWord word;
  word.fabric_cable = station_->fabric_cable(cable);
  word.incarnation = ends_[cable].mending.incarnation();
  word.stage = ends_[cable].mending.stage();
  try {
    word.address = station_->address(cable);
  } catch (const base::Error&) {
    return;  // the port has no address just now
  }
  // Sent again each interval until the peer has come as far: either way may lose it.
  std::vector<std::byte> bytes = emit(word);
  if (around_.send_mending(end.plan().peer, bytes)) {
    return;
  }
  // Without rank 0: another way over cables, if there is one.
  if (station_->engine().paths().is_reachable(end.plan().peer)) {
    bytes.insert(bytes.begin(), static_cast<std::byte>(WordKind::mending));
    engine::Address address;
    address.destination = end.plan().peer;
    station_->engine().send_word(bytes, address);
  }
}

bool Mender::hear(uint32_t from, std::span<const std::byte> bytes) {
  const auto word = parse_mending(bytes);
  bool is_ours = false;
  for (uint32_t cable = 0; word && cable < ends_.size(); ++cable) {
    if (station_->fabric_cable(cable) != word->fabric_cable || station_->cable(cable).plan().peer != from) {
      continue;
    }
    is_ours = true;
    if (ends_[cable].mending.owes_answer(*word)) {
      tell(cable);
    }
    if (ends_[cable].mending.hear(*word)) {
      station_->engine().fail_cable(cable, station_->cable(cable).plan().name + ": the other end has failed");
      fail(cable);
      next_interval_ns_ = 0;
    }
  }
  return is_ours;
}

}  // namespace ringbolt::mesh
