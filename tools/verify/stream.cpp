#include <algorithm>
#include <optional>

#include "verify/context.h"
#include "verify/stream_receiver.h"
#include "verify/stream_sender.h"

namespace ringbolt::tools::verify {

Outcome run_stream(const Context& context) {
  const Step& step = context.step;
  RigShape shape;
  const bool sends = context.initiates() || step.is_bidirectional;
  const bool receives = !context.initiates() || step.is_bidirectional;
  shape.sends = sends ? step.send_depth : 1;
  // More than the sender knows of, for what comes twice.
  shape.receives = receives ? step.receive_depth + step.receive_depth / 4 + 1 : 0;
  const Rig rig(context, shape, static_cast<uint16_t>(step.epoch));
  std::optional<StreamSender> sender;
  std::optional<StreamReceiver> receiver;
  if (sends) {
    sender.emplace(context, rig);
  }
  if (receives) {
    receiver.emplace(context, rig, true);
  }
  const Part part(context.watch, title_of(step), [&] {
    return (sender ? sender->where() : "") + (sender && receiver ? "; " : "") + (receiver ? receiver->where() : "");
  });
  while ((sender && !sender->is_done()) || (receiver && !receiver->is_done())) {
    const bool has_sent = sender && !sender->is_done() && sender->advance();
    const bool has_received = receiver && receiver->advance();
    context.watch.turn(has_sent || has_received,
                       sender && !sender->is_done() ? "acknowledgements of what was sent" : "messages");
  }
  Outcome outcome;
  if (sender) {
    outcome.duration_ns = sender->duration_ns();
  }
  if (receiver) {
    outcome.messages = receiver->messages();
    outcome.bytes = receiver->bytes();
    outcome.lost = receiver->lost();
  }
  // The queue pairs stay until the other end has all that it wants.
  context.peer.tell("done", "");
  context.peer.await("done", "the end of the stream");
  return outcome;
}

}  // namespace ringbolt::tools::verify
