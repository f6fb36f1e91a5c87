// What a send circuit does beside frames where a rail may lose some without a word, as UC does: it numbers them, and
// sends again what has not come. Hot path: see send_circuit.h.
//
// A frame is sent again from its slot as it is. So the slot is free only when the frame is taken and the device has
// done with the repetitions: it might read half of the next frame otherwise.
#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "circuit/send_circuit.h"

namespace ringbolt::circuit {
namespace {

/// Rails that fall silent one after the other, without one frame taken on any: then it is not a cable that was pulled.
// Each takes about a second to fall silent.
constexpr uint32_t kMostSilent = 6;
/// Of a device that completes nothing.
// As long as RC takes to give up a peer (rail.cpp).
constexpr uint64_t kMostFullNs = 500'000'000;

}  // namespace

/// Writes the header of a frame that is the rail's next one; its length. Messages in one frame have the longer header,
/// too, which has room for the number.
uint32_t SendCircuit::put_numbered(OnRail& rail, uint16_t slot) {
  FrameHeader header = headers_[slot];
  header.kind = FrameKind::piece;
  header.is_numbered = true;
  // put() counts it right behind this.
  header.number = rail.n_sent;
  emit(header, payload(slot) - kFrameHeaderBytes);
  rail.repeats->note_sent(base::now_ns());
  return kFrameHeaderBytes;
}

void SendCircuit::hear_lossy(OnRail& rail, const FrameHeader& header) {
  if (header.kind == FrameKind::hello_ack) {
    rail.repeats->hear_greeting(base::now_ns());
    rail.is_live = !rail.has_failed;
    open();
  } else if (header.kind == FrameKind::taken && static_cast<int32_t>(header.taken - rail.n_taken) >= 0) {
    // Before the slots are freed: it reckons with the same window.
    rail.repeats->hear(header.taken, header.come, base::now_ns());
    hear_taken(rail, header.taken);
  }
}

/// Sends again what is due.
void SendCircuit::repeat(OnRail& rail) {
  const uint64_t now_ns = base::now_ns();
  if (rail.rail->may_send()) {
    rail.full_ns = 0;
  } else if (rail.full_ns == 0) {
    rail.full_ns = now_ns;
  } else if (now_ns - rail.full_ns > kMostFullNs) {
    give_up(rail, "no send completes any more: the device is stuck");
  }
  // Ends: take_due() counts what it names as sent.
  while (!rail.has_failed && rail.rail->may_send()) {
    const Repeats::Due due = rail.repeats->take_due(now_ns);
    bool is_sent = true;
    switch (due.what) {
      case Repeats::What::nothing:
        return;
      case Repeats::What::greeting:
        is_sent = rail.rail->send(greeting_of(rail), kShortHeaderBytes);
        break;
      case Repeats::What::frame: {
        const uint16_t slot = rail.slots[due.number % kWindow];
        ++n_repeated_;
        // Before it is posted: the completion may come with the next poll.
        ++repeated_[slot].n_reading;
        is_sent = rail.rail->send_told(payload(slot) - kFrameHeaderBytes,
                                       static_cast<uint32_t>(kFrameHeaderBytes) + headers_[slot].length,
                                       kRepeatCookie + slot);
        break;
      }
      case Repeats::What::give_up: {
        const std::string what = due.number == rail.n_sent ? "a greeting" : fmt::format("frame {}", due.number);
        const uint64_t silent_ms = (now_ns - rail.repeats->waits_since_ns()) / 1'000'000;
        give_up(rail,
                fmt::format("{} was sent {} times within {} ms, and nothing was heard of it: the cable or the device "
                            "at its other end loses what it carries",
                            what, rail.repeats->n_tries() + 1, silent_ms));
        return;
      }
    }
    if (!is_sent) {
      drop(rail);
    }
  }
}

void SendCircuit::give_up(OnRail& rail, const std::string& what) {
  rail.was_silent = true;
  (void)rail.rail->fail(fmt::format("{}: {}", rail.rail->name(), what));
  drop(rail);
  // Reset by any frame that is taken (hear_taken()).
  if (++n_silent_ == kMostSilent) {
    fail(FailureKind::no_way,
         fmt::format("nothing of what goes to {} is taken, on {} connections one after the other; the "
                     "last one: {}",
                     peer_name(), n_silent_, rail.rail->failure()));
  }
}

void SendCircuit::note_repeat_done(uint16_t slot) {
  if (slot >= n_slots_ || repeated_[slot].n_reading == 0) {
    return;
  }
  if (--repeated_[slot].n_reading == 0 && repeated_[slot].is_taken) {
    repeated_[slot].is_taken = false;
    free_taken(slot);
  }
}

/// The device reads nothing for this rail any more.
void SendCircuit::end_repeats(const OnRail& rail) {
  for (uint16_t slot = 0; rail.repeats && slot < n_slots_; ++slot) {
    if (repeated_[slot].n_reading > 0 && headers_[slot].rail == rail.number) {
      // Those completions never come: one stands for all.
      repeated_[slot].n_reading = 1;
      note_repeat_done(slot);
    }
  }
}

}  // namespace ringbolt::circuit
