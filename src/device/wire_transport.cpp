#include "device/wire_transport.h"

#include <sys/random.h>

#include <cerrno>

#include "base/clock.h"
#include "device/gids.h"
#include "device/send_queue.h"
#include "wire/syndrome.h"

namespace ringbolt::device {
namespace {

/// What keeps strangers out of the connection; 0 or an errno.
int draw_token(uint64_t& token) {
  while (token == 0) {
    if (getrandom(&token, sizeof token, 0) != sizeof token && errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

WirePath path_of(const QueuePairCore& core) {
  const ibv_qp_attr& attributes = core.attributes;
  const ibv_ah_attr& route = attributes.ah_attr;
  WirePath path;
  path.udp.source = address_of(core.port->addresses()->shown[route.grh.sgid_index]);
  path.udp.destination = address_of(route.grh.dgid);
  path.udp.interface_index = core.port->netdev_index;
  path.udp.traffic_class = route.grh.traffic_class;
  path.remote_qpn = attributes.dest_qp_num;
  path.mtu_bytes = mtu_bytes(attributes.path_mtu);
  path.is_at_stream = !core.port->streams.empty();
  return path;
}

}  // namespace

base::Result<std::unique_ptr<WireTransport>> WireTransport::connect(QueuePairCore& core, Inboxes& inboxes) {
  const WirePath path = path_of(core);
  uint64_t token = 0;
  if (const int error = path.is_at_stream ? 0 : draw_token(token)) {
    return base::fail(error);
  }
  std::unique_ptr<WireTransport> made(new WireTransport(core, path, inboxes));
  inboxes.seal.begin(token);
  inboxes.is_open.store(true, std::memory_order_release);
  try {
    made->requester_.introduce();
  } catch (...) {
    made->disconnect();
    throw;
  }
  return made;
}

WireTransport::~WireTransport() = default;

void WireTransport::disconnect() {
  requester_.finish();
  responder_.finish();
  inboxes_.is_open.store(false);
  inboxes_.requests.clear();
  inboxes_.answers.clear();
}

void WireTransport::send_unsent_answers() {
  if (responder_.has_unsent()) {
    responder_.send_answers(base::now_ns());
  }
}

QueuePairTransport::Delivery WireTransport::delivery(const SendQueue& queue, uint32_t index) {
  const bool is_executed = static_cast<int32_t>(core_.sends.next.load(std::memory_order_relaxed) - index) > 0;
  const SendEntry& entry = queue.entry(index);
  if (is_executed && entry.phase != SendPhase::failed &&
      (entry.phase != SendPhase::wired || requester_.is_complete(entry))) {
    return Delivery::delivered;
  }
  return requester_.failure() == IBV_WC_SUCCESS ? Delivery::underway : Delivery::stuck;
}

uint32_t WireTransport::rnr_timer_us() const { return wire::rnr_timer_us(core_.attributes.min_rnr_timer); }

}  // namespace ringbolt::device
