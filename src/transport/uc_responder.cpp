#include "transport/uc_responder.h"

namespace ringbolt::transport {

void UcResponder::drop_message() {
  if (message_.kind != InboundMessage::none) {
    ++counters_.messages_dropped;
    is_dropping_ = true;
  }
  message_ = {};
}

}  // namespace ringbolt::transport
