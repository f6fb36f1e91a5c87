// Cables that have failed are connected anew as soon as they work again.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "mesh/mesh.h"
#include "mesh/word.h"

namespace ringbolt::mesh {
namespace {

/// What is told of a cable is told so often, and what has failed is tried again so often.
constexpr uint64_t kMendIntervalNs = 100'000'000;

}  // namespace

/// From watch(). A step that waits for nobody is taken at once; a reset, which starts all over, once an interval.
void Mesh::mend(uint64_t now_ns) {
  const bool is_due = now_ns >= next_mend_ns_;
  for (uint32_t cable = 0; cable < mendings_.size(); ++cable) {
    if (made_.station->cable(cable).is_alive() || failed_.count(made_.station->cable(cable).plan().peer) > 0) {
      continue;
    }
    if (is_due || mendings_[cable].next() != Mending::Step::reset) {
      mend_one(cable, now_ns);
    }
    if (is_due && mendings_[cable].stage() != Mending::Stage::failed) {
      tell_mending(cable);
    }
  }
  if (is_due) {
    next_mend_ns_ = now_ns + kMendIntervalNs;
  }
}

void Mesh::mend_one(uint32_t cable, uint64_t now_ns) {
  if (reconnections_[cable] != nullptr) {
    end_reconnecting(cable);
    return;
  }
  Mending& mending = mendings_[cable];
  const Mending::Step step = mending.next();
  if (step == Mending::Step::nothing || !made_.station->is_port_active(cable)) {
    // The lock is held here, so that a blocking call would stop the whole mesh.
    return;  // nothing would come of it, and some devices block in it
  }
  try {
    switch (step) {
      case Mending::Step::reset:
        engine()->reset_cable(cable, mending.next_incarnation());
        break;
      case Mending::Step::connect:
        // In a thread of its own, which alone has the queue pairs meanwhile: connecting may block for good.
        reconnections_[cable] = std::make_unique<Reconnection>(made_.station, cable, mending.peer());
        return;  // end_reconnecting() follows
      case Mending::Step::start:
        if (!made_.station->cable(cable).failure().empty()) {  // it has failed again before it could begin
          mending.fail(mending.incarnation());
          return;
        }
        engine()->start_cable(cable);
        if (liveness_) {
          liveness_->cable_mended(cable, now_ns);
        }
        break;
      case Mending::Step::nothing:
        break;
    }
  } catch (const base::Error&) {
    mending.fail(mending.incarnation());  // from the beginning, with the next turn
    return;
  }
  mending.done(step);
  tell_mending(cable);
}

/// As long as the device is stuck the cable stays failed, and nobody waits for it.
void Mesh::end_reconnecting(uint32_t cable) {
  if (!reconnections_[cable]->is_over()) {
    return;
  }
  const std::unique_ptr<Reconnection> reconnection = std::exchange(reconnections_[cable], nullptr);
  Mending& mending = mendings_[cable];
  try {
    reconnection->finish();
  } catch (const base::Error&) {
    mending.fail(mending.incarnation());  // from the beginning, with the next turn
    return;
  }
  if (mending.stage() == Mending::Stage::reset) {  // else it has failed meanwhile, as the other end has said
    mending.done(Mending::Step::connect);
    tell_mending(cable);
  }
}

void Mesh::tell_mending(uint32_t cable) {
  const engine::Cable& end = made_.station->cable(cable);
  MendingWord word;
  word.fabric_cable = made_.station->fabric_cable(cable);
  word.incarnation = mendings_[cable].incarnation();
  word.stage = mendings_[cable].stage();
  try {
    word.address = made_.station->address(cable);
  } catch (const base::Error&) {
    return;  // the port has no address just now
  }
  // Sent again each interval until the peer has come as far: either way may lose it.
  std::vector<std::byte> bytes = emit(word);
  if (side_channel_.send(end.plan().peer, kMendingMessage, bytes)) {
    return;
  }
  // Without rank 0: another way over cables, if there is one.
  if (engine()->paths().is_reachable(end.plan().peer)) {
    bytes.insert(bytes.begin(), static_cast<std::byte>(WordKind::mending));
    engine::Address address;
    address.destination = end.plan().peer;
    engine()->send_word(bytes, address);
  }
}

/// `bytes` and `from` are a peer's: a cable that does not lead to it is none of its business.
void Mesh::hear_mending(uint32_t from, std::span<const std::byte> bytes) {
  const auto word = parse_mending(bytes);
  for (uint32_t cable = 0; word && cable < mendings_.size(); ++cable) {
    if (made_.station->fabric_cable(cable) != word->fabric_cable || made_.station->cable(cable).plan().peer != from) {
      continue;
    }
    if (mendings_[cable].owes_answer(*word)) {
      tell_mending(cable);
    }
    if (mendings_[cable].hear(*word)) {
      engine()->fail_cable(cable, made_.station->cable(cable).plan().name + ": the other end has failed");
      mendings_[cable].fail(made_.station->cable(cable).incarnation());
      next_mend_ns_ = 0;
    }
    next_watch_ns_ = 0;
  }
}

}  // namespace ringbolt::mesh
