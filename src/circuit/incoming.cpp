#include "circuit/incoming.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/lock_guard.h"

namespace ringbolt::circuit {
namespace {

/// The window, the hello, and those that are posted together with others.
constexpr uint32_t kFrameReceives = kWindow + 8;

}  // namespace

Incoming::Incoming(const Open& open, MemberId sender, Surroundings& in)
    : listener_(open.listener),
      is_direct_(least_written_bytes(open, in) != 0),
      circuit_(std::make_shared<ReceiveCircuit>(open.circuit, sender, in.name_of(sender), open.has_checksums,
                                                in.devices, in.devices->first_port(), least_written_bytes(open, in))) {}

uint64_t Incoming::least_written_bytes(const Open& open, const Surroundings& in) {
  return open.may_write && in.ways.is_direct ? in.ways.least_written_bytes : 0;
}

void Incoming::close() {
  circuit_->abandon_soon();
  is_closing_ = true;
}

void Incoming::hear(const RailOpen& open, Surroundings& in) {
  const Hop& here = open.path.back();
  if (!in.devices->has_port(here.entry.port)) {
    in.send_along(open.path, RailDown{open.circuit, open.rail, "there is no such port"});
    return;
  }
  RailPlan plan;
  plan.type = open.from.is_uc ? IBV_QPT_UC : IBV_QPT_RC;
  plan.counts_frames = open.from.counts_frames;
  plan.port = here.entry.port;
  plan.gid_index = here.entry.gid_index;
  plan.n_receives = kFrameReceives;
  plan.receive_bytes = kSlotBytes;
  // Answers have short headers; a clearance, which is longer, goes only where the sender's receives have room
  // (kClearToSendBytes).
  plan.peer_receive_bytes = kFrameHeaderBytes;
  plan.send_depth = 2 * kWindow;
  plan.sends = circuit_->answers();
  // A relay keeps nothing for those who come after it.
  plan.may_read_in_place = open.path.size() == 2;
  // Nor can it write to those.
  plan.is_direct = plan.takes_writes = is_direct_ && open.path.size() == 2 && plan.type == IBV_QPT_RC;
  if (plan.is_direct) {
    // Before the rail is added: receives posted from then on have keys of its device.
    in.registrations->use(in.devices->device_of(plan.port));
  }
  try {
    auto rail = std::make_unique<Rail>(*in.devices, plan);
    rail->connect(open.from);
    const QueuePairAddress address = rail->address();
    {
      const base::LockGuard guard(circuit_->lock);
      // Before the sender is answered: it may greet at once.
      circuit_->add_rail(open.rail, std::move(rail), open.path);
    }
    in.send(open.path[open.position - 1U].member, RailReady{open.circuit, open.rail, address});
  } catch (const base::Error& error) {
    in.log(Level::info, fmt::format("from {}: {}", in.name_of(peer()), error.what()));
    in.send_along(open.path, RailDown{open.circuit, open.rail, error.what()});
  }
}

void Incoming::hear(const RailDown& down) {
  const base::LockGuard guard(circuit_->lock);
  circuit_->fail_rail(down.rail, down.why);
}

void Incoming::hear(const Close& close, Surroundings& in) {
  const base::LockGuard guard(circuit_->lock);
  const std::string text = fmt::format("{}: {}", in.name_of(peer()), close.why);
  if (close.reason == CloseReason::no_way) {
    circuit_->fail(FailureKind::no_way, text);
  } else {
    circuit_->end_of_sender(text);
  }
}

void Incoming::hear_gone(const std::string& name, const std::string& why, const Surroundings& in) {
  const base::LockGuard guard(circuit_->lock);
  std::string ways;
  for (const ReceiveCircuit::RailView& rail : circuit_->rails()) {
    ways += (ways.empty() ? "; it came by " : "; ") + in.network.text_of(*rail.path);
  }
  circuit_->end_of_sender(fmt::format("{} is gone: {}{}", name, why, ways));
}

bool Incoming::step(bool is_tick, Surroundings& in) {
  if ((is_tick || is_restless()) && circuit_->lock.try_lock()) {
    const base::LockGuard guard(circuit_->lock, base::kAdoptLock);
    circuit_->progress_idle();
  }
  // A way that is gone needs no word: the sender has said so, or knows.
  const FailureKind failure = circuit_->failure();
  if (!is_closing_ && (failure == FailureKind::protocol || failure == FailureKind::usage) &&
      !std::exchange(has_told_failure_, true)) {
    in.log(Level::warning, circuit_->failure_text());
    in.send(peer(), Close{id(), failure == FailureKind::usage ? CloseReason::usage : CloseReason::protocol,
                          circuit_->failure_text()});
  }
  // One that fails before it is open is handed to no program that could close it. Nobody else opens it meanwhile: only
  // this thread has it.
  const bool is_stillborn = failure != FailureKind::none && !circuit_->is_open();
  const bool is_over = is_closing_ || is_stillborn;
  if (is_over) {
    if (!is_stillborn) {
      in.send(peer(), Close{id(), CloseReason::orderly, "the receiver has closed the connection"});
    }
    const base::LockGuard guard(circuit_->lock);
    for (const ReceiveCircuit::RailView& rail : circuit_->rails()) {
      if (rail.rail->type() == IBV_QPT_UC) {
        circuit_->fail_rail(rail.number, "the connection has been closed");  // so that it does not end with the circuit
      }
    }
  }
  wind_up(in);
  return is_over;
}

void Incoming::wind_up(Surroundings& in) {
  std::vector<ReceiveCircuit::Ended> ended;
  {
    const base::LockGuard guard(circuit_->lock);
    ended = circuit_->take_ended();
  }
  for (ReceiveCircuit::Ended& one : ended) {
    in.send_along(one.path, RailDown{id(), one.number, one.rail->failure()});
    if (one.rail->type() == IBV_QPT_UC) {
      in.endings.end(std::move(one.rail), [circuit = circuit_] {});  // what it answers from lies there
    }
  }
}

}  // namespace ringbolt::circuit
